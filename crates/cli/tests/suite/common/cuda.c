// A CUDA driver whose GPUs are host memory, for tests of processes that use one GPU each. There are $FAKE_GPUS of them. Everything is done
// when its call returns.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int gpus(void) {
    const char *given = getenv("FAKE_GPUS");
    return given ? atoi(given) : 8;
}

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { return *version = 12080, 0; }
int cuGetErrorName(int error, const char **name) { return *name = "FAKE_ERROR", 0; }
int cuGetErrorString(int error, const char **text) { return *text = "a fake error", 0; }
int cuDeviceGetCount(int *count) { return *count = gpus(), 0; }
int cuDeviceGet(int *device, int number) { return *device = number, 0; }
int cuDeviceGetName(char *name, int length, int device) { return snprintf(name, length, "NVIDIA H200"), 0; }
int cuDeviceGetUuid_v2(char *uuid, int device) { return memset(uuid, 7 + device, 16), 0; }
// 33 is the bus.
int cuDeviceGetAttribute(int *value, int which, int device) { return *value = which == 33 ? 16 + device : 0, 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = (void *)(uintptr_t)(device + 1), 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
// An eighth of it is one buffer at most, and that is little to sum.
int cuMemGetInfo_v2(size_t *available, size_t *total) { return *available = 8 << 20, *total = 1ull << 37, 0; }

int cuStreamCreate(void **stream, unsigned flags) { return *stream = malloc(1), 0; }
int cuStreamDestroy_v2(void *stream) { return free(stream), 0; }
int cuStreamSynchronize(void *stream) { return 0; }

int cuMemAlloc_v2(uint64_t *pointer, size_t bytes) { return *pointer = (uint64_t)malloc(bytes), 0; }
int cuMemFree_v2(uint64_t pointer) { return free((void *)pointer), 0; }
int cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) { return *pointer = malloc(bytes), 0; }
int cuMemFreeHost(void *pointer) { return free(pointer), 0; }
int cuMemsetD8_v2(uint64_t pointer, unsigned char value, size_t bytes) { return memset((void *)pointer, value, bytes), 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) { return memcpy((void *)to, from, bytes), 0; }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) { return memcpy(to, (void *)from, bytes), 0; }
