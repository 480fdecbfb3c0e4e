// A fake CUDA driver with one GPU.
#include <stdio.h>
#include <string.h>

int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int number) { return *device = 40 + number, 0; }
int cuDeviceGetName(char *name, int length, int device) { return snprintf(name, length, "GPU of device %d", device), 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = 1ull << 37, 0; }
int cuDeviceGetAttribute(int *value, int which, int device) { return *value = which == 16 ? 132 : which == 75 ? 9 : 0, 0; }
int cuDeviceGetUuid(char *uuid, int device) { return memset(uuid, 7, 16), 0; }
