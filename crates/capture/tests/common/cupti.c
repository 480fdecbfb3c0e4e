// A fake CUPTI for machines without a GPU: delivers one buffer that a real one filled (BUFFER, with records of the
// sizes listed in SIZES). With RATE, it delivers kernels instead: that many for each second in which they were enabled,
// with NAMES different names; with DEVICE, the first record is a GPU of that name. `play` calls back like a program that
// copies on two streams.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void (*requested)(uint8_t **, size_t *, size_t *);
static void (*completed)(void *, uint32_t, uint8_t *, size_t, size_t);
static size_t sizes[4096], records, given;

enum { DEVICE = 8, KERNEL = 10, SIZE = 208, BUFFER_SIZE = 1 << 20 };
static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static uint64_t since, owed;
static void account(void) {
  uint64_t at = now();
  if (since && getenv("RATE")) owed += (at - since) / 1000 * atoll(getenv("RATE")) / 1000000, since = at;
}
static int set(uint32_t kind, int on) {
  if (getenv("SAYS_CALLS") && on && (kind == 4 || kind == 5)) fprintf(stderr, "all calls of kind %u\n", kind);
  if (kind == KERNEL) account(), since = on ? now() : 0;
  return 0;
}

static char *name_of(uint64_t number) {
  static char (*all)[16];
  uint64_t names = getenv("NAMES") ? atoll(getenv("NAMES")) : 1;
  if (!all) {
    all = malloc(names * sizeof *all);
    for (uint64_t i = 0; i < names; i++) snprintf(all[i], sizeof *all, names > 1 ? "gemm_%llu" : "gemm", (unsigned long long)i);
  }
  return all[number % names];
}

static void give_kernels(void) {
  static uint64_t number;
  account();
  while (owed > 0) {
    uint64_t part = owed < BUFFER_SIZE / SIZE ? owed : BUFFER_SIZE / SIZE;
    uint8_t *buffer;
    size_t size, most;
    requested(&buffer, &size, &most);
    owed -= part;
    if (!buffer) continue;
    memset(buffer, 0, part * SIZE);
    for (uint64_t i = 0; i < part; i++, number++) {
      uint8_t *record = buffer + i * SIZE;
      char *name = name_of(number);
      if (number == 0 && getenv("DEVICE")) {
        *(uint32_t *)record = DEVICE;
        *(uint64_t *)(record + 16) = 150ull << 30, *(char **)(record + 136) = getenv("DEVICE");
        continue;
      }
      // One after the other, up to now.
      static uint64_t at;
      if (at < now() - 1000000000) at = now() - 1000000000;
      at += 2000;
      *(uint32_t *)record = KERNEL;
      *(uint64_t *)(record + 16) = at, *(uint64_t *)(record + 24) = at + 1000;
      *(uint32_t *)(record + 48) = 7, *(uint32_t *)(record + 92) = (uint32_t)number;
      *(char **)(record + 104) = name;
    }
    completed(NULL, 0, buffer, size, part * SIZE);
  }
}

static void (*called)(void *, uint32_t, uint32_t, const void *);
// CUpti_CallbackData.
struct about {
  int site;
  const void *function;
  const uintptr_t *arguments;
  const int *result;
  const void *symbol;
  void *context;
  uint32_t context_id;
  uint64_t *data;
  uint32_t correlation;
};
static const char *const calls[] = {"", "cudaStreamCreateWithFlags_v5000", "cudaMemcpyAsync_v3020", "cudaMemsetAsync_v3020", "cudaLaunchHostFunc_v10000", "cudaStreamDestroy_v5050"};

static void call(uint32_t which, uint32_t correlation, const uintptr_t *arguments) {
  int result = 0;
  struct about about = {.arguments = arguments, .result = &result, .correlation = correlation};
  for (about.site = 0; about.site < 2; about.site++) called(NULL, 2, which, &about);
}

// Streams have the addresses 0 and 0xa00, and the ids 7 and 13.
void play(void) {
  uintptr_t stream = 0xa00;
  call(1, 1, (uintptr_t[]){(uintptr_t)&stream, 1});
  call(2, 2, (uintptr_t[]){0x7000, 0x1000, 4096, 1, stream});
  call(3, 3, (uintptr_t[]){0x7800, 0, 1024, 0});
  call(4, 4, (uintptr_t[]){stream, 0, 0});
  call(5, 5, (uintptr_t[]){stream});
  call(2, 6, (uintptr_t[]){0x7000, 0x1000, 4096, 1, stream});
}

int cuptiSubscribe(void **subscriber, void *callback, void *data) {
  *subscriber = &given, called = callback;
  return getenv("TAKEN") ? 39 : 0;
}
int cuptiUnsubscribe(void *subscriber) { return fputs("unsubscribed\n", stderr), 0; }
int cuptiActivityRegisterCallbacks(void *request, void *complete) {
  requested = request, completed = complete;
  return 0;
}
int cuptiActivityEnable(uint32_t kind) { return set(kind, 1); }
int cuptiActivityDisable(uint32_t kind) { return set(kind, 0); }
int cuptiActivityEnableDriverApi(uint32_t call, uint8_t on) { return 0; }
int cuptiActivityEnableRuntimeApi(uint32_t call, uint8_t on) { return 0; }
int cuptiEnableCallback(uint32_t on, void *subscriber, uint32_t domain, uint32_t call) { return 0; }
int cuptiGetCallbackName(uint32_t domain, uint32_t call, const char **name) {
  if (domain != 2 || call < 1 || call > 5) return 1;
  return *name = calls[call], 0;
}
int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id) { return *id = stream ? 13 : 7, 0; }
int cuptiSetThreadIdType(uint32_t type) { return 0; }
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped) { return *dropped = 0; }
int cuptiGetVersion(uint32_t *version) { return *version = 130001, 0; }
int cuptiGetTimestamp(uint64_t *at) { return *at = now(), 0; }

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
  static size_t next;
  if (getenv("RATE")) {
    *record = *record ? *record + SIZE : buffer;
    return *record + SIZE > buffer + valid;
  }
  if (!*record) next = 0;
  if (next == records) return 1;
  *record = next ? *record + sizes[next - 1] : buffer;
  return next++, 0;
}

int cuptiActivityFlushAll(uint32_t flag) {
  static int flushes;
  if (getenv("HANGS") && flushes++ > 0) for (;;) pause();
  if (getenv("RATE")) return give_kernels(), 0;
  if (given) return 0;
  given = 1;
  FILE *list = fopen(getenv("SIZES"), "r");
  while (fscanf(list, "%zu", &sizes[records]) == 1) records++;
  fclose(list);
  uint8_t *buffer;
  size_t size, most;
  requested(&buffer, &size, &most);
  FILE *file = fopen(getenv("BUFFER"), "r");
  size_t valid = fread(buffer, 1, size, file);
  fclose(file);
  completed(NULL, 0, buffer, size, valid);
  return 0;
}
