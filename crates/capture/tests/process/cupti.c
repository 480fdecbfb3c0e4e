// A fake CUPTI for machines without a GPU: delivers one buffer that a real one filled (BUFFER, with records of the
// sizes listed in SIZES).
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void (*requested)(uint8_t **, size_t *, size_t *);
static void (*completed)(void *, uint32_t, uint8_t *, size_t, size_t);
static size_t sizes[4096], records, given;

int cuptiSubscribe(void **subscriber, void *callback, void *data) {
  *subscriber = &given;
  return getenv("TAKEN") ? 39 : 0;
}
int cuptiUnsubscribe(void *subscriber) { return fputs("unsubscribed\n", stderr), 0; }
int cuptiActivityRegisterCallbacks(void *request, void *complete) {
  requested = request, completed = complete;
  return 0;
}
int cuptiActivityEnable(uint32_t kind) { return 0; }
int cuptiActivityDisable(uint32_t kind) { return 0; }
int cuptiActivityEnableDriverApi(uint32_t call, uint8_t on) { return 0; }
int cuptiActivityEnableRuntimeApi(uint32_t call, uint8_t on) { return 0; }
int cuptiEnableCallback(uint32_t on, void *subscriber, uint32_t domain, uint32_t call) { return 0; }
int cuptiGetCallbackName(uint32_t domain, uint32_t call, const char **name) { return 1; }
int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id) { return 1; }
int cuptiSetThreadIdType(uint32_t type) { return 0; }
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped) { return *dropped = 0; }
int cuptiGetVersion(uint32_t *version) { return *version = 130001, 0; }
int cuptiGetTimestamp(uint64_t *now) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  *now = time.tv_sec * 1000000000ull + time.tv_nsec;
  return 0;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
  static size_t next;
  if (!*record) next = 0;
  if (next == records) return 1;
  *record = next ? *record + sizes[next - 1] : buffer;
  return next++, 0;
}

int cuptiActivityFlushAll(uint32_t flag) {
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
