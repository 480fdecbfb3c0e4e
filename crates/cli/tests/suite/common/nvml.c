// A driver with two GPUs, for tests. Each answers until the file of $LOST_0 or $LOST_1 exists; from then on every call
// about it fails with the NVML error that the file has as a number.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int index; } Gpu;
static Gpu gpus[2] = {{0}, {1}};

static int lost(const Gpu *gpu) {
    const char *path = getenv(gpu->index ? "LOST_1" : "LOST_0");
    FILE *file = path ? fopen(path, "r") : NULL;
    int error = 0;
    if (file) {
        if (fscanf(file, "%d", &error) != 1) error = 15;
        fclose(file);
    }
    return error;
}

#define ASKED(gpu) do { int error = lost(gpu); if (error) return error; } while (0)

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned length) { return snprintf(text, length, "999.1") < 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu **gpu) {
    if (index > 1) return 6;
    ASKED(&gpus[index]);
    *gpu = &gpus[index];
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Gpu **gpu) { (void)uuid; *gpu = &gpus[0]; return lost(*gpu); }
int nvmlDeviceGetIndex(Gpu *gpu, unsigned *index) { ASKED(gpu); *index = gpu->index; return 0; }
int nvmlDeviceGetName(Gpu *gpu, char *text, unsigned length) { ASKED(gpu); return snprintf(text, length, "NVIDIA H200") < 0; }
int nvmlDeviceGetUUID(Gpu *gpu, char *text, unsigned length) { ASKED(gpu); return snprintf(text, length, "GPU-%d", gpu->index) < 0; }
int nvmlDeviceGetMaxClockInfo(Gpu *gpu, int type, unsigned *value) { ASKED(gpu); *value = type == 1 ? 1980 : 0; return 0; }
// Only where a test asks for it: tables of `top` are wider with it.
int nvmlDeviceGetEnforcedPowerLimit(Gpu *gpu, unsigned *value) {
    ASKED(gpu);
    if (!getenv("WITH_NVML")) return 3;
    *value = 699999;
    return 0;
}
int nvmlDeviceGetPowerUsage(Gpu *gpu, unsigned *milliwatts) { ASKED(gpu); *milliwatts = 131000; return 0; }
int nvmlDeviceGetCurrPcieLinkGeneration(Gpu *gpu, unsigned *value) { ASKED(gpu); *value = 5; return 0; }
int nvmlDeviceGetMaxPcieLinkGeneration(Gpu *gpu, unsigned *value) { ASKED(gpu); *value = 5; return 0; }
int nvmlDeviceGetCurrPcieLinkWidth(Gpu *gpu, unsigned *value) { ASKED(gpu); *value = 16; return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(Gpu *gpu, unsigned *value) { ASKED(gpu); *value = 16; return 0; }

typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory;

int nvmlDeviceGetMemoryInfo_v2(Gpu *gpu, Memory *memory) {
    ASKED(gpu);
    memory->total = 150ull << 30, memory->reserved = 0, memory->free = 100ull << 30, memory->used = 50ull << 30;
    return 0;
}

int nvmlDeviceGetUtilizationRates(Gpu *gpu, unsigned *gpu_memory) { ASKED(gpu); gpu_memory[0] = 99, gpu_memory[1] = 2; return 0; }

typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned kind, result;
    unsigned long long value;
} Field;

int nvmlDeviceGetFieldValues(Gpu *gpu, int count, Field *fields) {
    static unsigned long long bytes;
    ASKED(gpu);
    for (int i = 0; i < count; i++) fields[i].kind = 3, fields[i].result = 0, fields[i].value = bytes += 1000000;
    return 0;
}
