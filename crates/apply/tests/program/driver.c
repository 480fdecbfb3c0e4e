// A CUDA driver without a GPU, for tests: "device" memory is the host's, each stream is a thread that works through its queue
// late and in small parts, so that a wrong order shows. What it does with pageable memory is what NVIDIA documents: a copy to the
// GPU has read its source when the call returns, a copy from the GPU is done.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int Code;
enum { OK = 0, INVALID_VALUE = 1, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_READY = 600, BROKEN = 700, UNSUPPORTED = 900, OTHER_THREAD = 906 };

typedef struct Task {
    enum { COPY, EVENT, CALL } kind;
    void *to, *from, *staging;
    size_t bytes;
    struct Event *event;
    uint64_t version;
    struct Task *next;
} Task;

typedef struct Event {
    uint64_t recorded, reached;
} Event;

typedef struct Stream {
    pthread_t thread;
    Task *first, *last;
    int busy, capturing, counts;
    uintptr_t context;
} Stream;

typedef struct Range {
    uint64_t at;
    size_t bytes;
    int kind; // 1 pinned, 2 device, 3 managed
    int file;
    struct Range *next;
} Range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static Range *ranges;
static Stream legacy;
static __thread Stream *own;
static __thread int capture_mode;
static __thread uintptr_t context;
static int captures, initialized, process;
static uint64_t context_number = 1;
// Each GPU has its primary context, and a program may make more: their handles are numbers from these on.
enum { GPUS = 2, PRIMARY = 77, MADE = 100 };
static uintptr_t made_contexts;
long fakePageable, fakePinned, fakeQueriesInCapture;
static long copies, fails_after = -1;

static void late(void) {
    static __thread unsigned seed = 1;
    if (rand_r(&seed) % 4 == 0) usleep(rand_r(&seed) % 200);
}

static void *serve(void *argument) {
    Stream *stream = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!stream->first) pthread_cond_wait(&changed, &lock);
        Task *task = stream->first;
        stream->busy = 1;
        pthread_mutex_unlock(&lock);
        late();
        if (task->kind == COPY) {
            size_t half = task->bytes / 2;
            memcpy((char *)task->to + half, (char *)task->from + half, task->bytes - half);
            late();
            memcpy(task->to, task->from, half);
            free(task->staging);
        }
        pthread_mutex_lock(&lock);
        if (task->kind == EVENT && task->event->reached < task->version) task->event->reached = task->version;
        stream->first = task->next;
        if (!stream->first) stream->last = NULL;
        stream->busy = 0;
        free(task);
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

static void start(Stream *stream) {
    pthread_create(&stream->thread, NULL, serve, stream);
    pthread_detach(stream->thread);
}

static Stream *of(uintptr_t handle) {
    if (handle == 0 || handle == 1) return &legacy;
    if (handle != 2) return (Stream *)handle;
    if (!own) start(own = calloc(1, sizeof *own));
    return own;
}

static void push(Stream *stream, Task task) {
    Task *queued = malloc(sizeof task);
    *queued = task;
    pthread_mutex_lock(&lock);
    if (stream->last) stream->last->next = queued;
    else stream->first = queued;
    stream->last = queued;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void drain(Stream *stream) {
    pthread_mutex_lock(&lock);
    while (stream->first || stream->busy) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static Range *at(uint64_t address) {
    pthread_mutex_lock(&lock);
    Range *range = ranges;
    while (range && !(address >= range->at && address < range->at + range->bytes)) range = range->next;
    pthread_mutex_unlock(&lock);
    return range;
}

static void add(void *address, size_t bytes, int kind) {
    Range *range = malloc(sizeof *range);
    pthread_mutex_lock(&lock);
    *range = (Range){(uint64_t)(uintptr_t)address, bytes, kind, -1, ranges};
    ranges = range;
    pthread_mutex_unlock(&lock);
}

static Code usable(void) {
    if (!initialized || process != getpid()) return 3;
    return context ? OK : INVALID_CONTEXT;
}

// Calls that NVIDIA calls unsafe during a capture of any thread.
static Code unsafe_in_capture(void) {
    if (captures && capture_mode != 2) {
        __atomic_add_fetch(&fakeQueriesInCapture, 1, __ATOMIC_RELAXED);
        return UNSUPPORTED;
    }
    return OK;
}

static int is_mapped(const void *memory, size_t bytes) {
    uintptr_t first = (uintptr_t)memory & ~4095ul, last = (uintptr_t)memory + bytes;
    unsigned char *pages = malloc((last - first) / 4096 + 1);
    int mapped = mincore((void *)first, last - first, pages) == 0;
    free(pages);
    return mapped;
}

static Code copy(uint64_t to, uint64_t from, size_t bytes, uintptr_t handle, int waits) {
    Code code = usable();
    if (code) return code;
    Stream *stream = of(handle);
    if (handle > 2 && stream->context != context) return INVALID_HANDLE;
    Range *target = at(to), *source = at(from);
    for (int side = 0; side < 2; side++) {
        Range *range = side ? source : target;
        uint64_t address = side ? from : to;
        if (range && address + bytes > range->at + range->bytes) return INVALID_VALUE;
        if (!range && !is_mapped((void *)(uintptr_t)address, bytes)) return INVALID_VALUE;
    }
    if (stream->capturing) return source && target && !waits ? OK : UNSUPPORTED;
    if (waits && (code = unsafe_in_capture())) return code;
    if (__atomic_add_fetch(&copies, 1, __ATOMIC_RELAXED) == fails_after) return BROKEN;
    __atomic_add_fetch(source && target ? &fakePinned : &fakePageable, 1, __ATOMIC_RELAXED);
    Task task = {.kind = COPY, .to = (void *)(uintptr_t)to, .from = (void *)(uintptr_t)from, .bytes = bytes};
    if (waits) drain(stream);
    if (!source) {
        task.staging = task.from = malloc(bytes);
        memcpy(task.staging, (void *)(uintptr_t)from, bytes);
    }
    push(stream, task);
    if (waits || !target) drain(stream);
    return OK;
}

#define COPIES(SUFFIX, STREAM_SUFFIX, DEFAULT)                                                                             \
    Code cuMemcpy##SUFFIX(uint64_t to, uint64_t from, size_t n) { return copy(to, from, n, DEFAULT, 1); }                        \
    Code cuMemcpyAsync##STREAM_SUFFIX(uint64_t to, uint64_t from, size_t n, uintptr_t s) { return copy(to, from, n, s ? s : DEFAULT, 0); } \
    Code cuMemcpyHtoD_v2##SUFFIX(uint64_t to, uint64_t from, size_t n) { return copy(to, from, n, DEFAULT, 1); }                 \
    Code cuMemcpyHtoDAsync_v2##STREAM_SUFFIX(uint64_t to, uint64_t from, size_t n, uintptr_t s) { return copy(to, from, n, s ? s : DEFAULT, 0); } \
    Code cuMemcpyDtoH_v2##SUFFIX(uint64_t to, uint64_t from, size_t n) { return copy(to, from, n, DEFAULT, 1); }                 \
    Code cuMemcpyDtoHAsync_v2##STREAM_SUFFIX(uint64_t to, uint64_t from, size_t n, uintptr_t s) { return copy(to, from, n, s ? s : DEFAULT, 0); }
COPIES(, , 1)
COPIES(_ptds, _ptsz, 2)

Code cuInit(unsigned flags) {
    if (!initialized) {
        process = getpid();
        initialized = 1;
        start(&legacy);
        if (getenv("FAKE_FAILS_AFTER")) fails_after = atol(getenv("FAKE_FAILS_AFTER"));
    }
    return process == getpid() && !flags ? OK : 3;
}
Code cuDriverGetVersion(int *version) { return *version = 13000, OK; }
Code cuDeviceGet(int *device, int number) { return *device = number, number < GPUS ? OK : 101; }
Code cuDeviceGetCount(int *count) { return *count = GPUS, OK; }
Code cuDevicePrimaryCtxRetain(uintptr_t *made, int device) { return *made = PRIMARY + device, usable() == 3 ? 3 : OK; }
static int is_context(uintptr_t handle) { return (handle >= PRIMARY && handle < PRIMARY + GPUS) || (handle > MADE && handle <= made_contexts); }
Code cuCtxCreate_v2(uintptr_t *made, unsigned flags, int device) {
    (void)flags, (void)device;
    pthread_mutex_lock(&lock);
    if (made_contexts < MADE) made_contexts = MADE;
    *made = context = ++made_contexts;
    pthread_mutex_unlock(&lock);
    return OK;
}
Code cuCtxDestroy_v2(uintptr_t ended) { return context = context == ended ? 0 : context, is_context(ended) ? OK : INVALID_CONTEXT; }
Code cuDevicePrimaryCtxReset_v2(int device) {
    (void)device;
    pthread_mutex_lock(&lock);
    // As the driver: memory of the context is gone, and so is the registration of the program's.
    ranges = NULL;
    context_number++;
    pthread_mutex_unlock(&lock);
    return OK;
}
Code cuCtxSetCurrent(uintptr_t wanted) { return context = is_context(wanted) ? wanted : 0, OK; }
Code cuCtxGetCurrent(uintptr_t *current) { return *current = context, OK; }
Code cuCtxGetId(uintptr_t of_context, unsigned long long *id) {
    return *id = context_number * 1000 + of_context, is_context(of_context) ? OK : INVALID_CONTEXT;
}
Code cuCtxGetDevice(int *device) { return *device = context > MADE ? 0 : (int)(context - PRIMARY), usable(); }
Code cuCtxSynchronize(void) { return drain(&legacy), OK; }
Code cuDeviceGetPCIBusId(char *name, int length, int device) { return snprintf(name, length, "0000:ff:1f.%d", device), OK; }
Code cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 100 && getenv("FAKE_COHERENT") ? 1 : 0;
    return OK;
}
// Memory that another process can map by the number of the file.
Code cuMemAlloc_v2(uint64_t *made, size_t bytes) {
    int file = memfd_create("device", 0);
    if (file < 0 || ftruncate(file, bytes)) return 2;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    add(memory, bytes, 2);
    at((uint64_t)(uintptr_t)memory)->file = file;
    return *made = (uint64_t)(uintptr_t)memory, OK;
}
typedef struct Shared {
    int process, file;
    size_t bytes;
    char rest[48];
} Shared;
Code cuIpcGetMemHandle(Shared *shared, uint64_t address) {
    Range *range = at(address);
    if (!range || range->kind != 2) return INVALID_VALUE;
    return *shared = (Shared){getpid(), range->file, range->bytes, {0}}, OK;
}
Code cuIpcOpenMemHandle_v2(uint64_t *made, Shared shared, unsigned flags) {
    char path[64];
    (void)flags;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", shared.process, shared.file);
    int file = open(path, O_RDWR);
    if (file < 0) return INVALID_HANDLE;
    void *memory = mmap(NULL, shared.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    add(memory, shared.bytes, 2);
    return *made = (uint64_t)(uintptr_t)memory, OK;
}
Code cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) { return memset((void *)(uintptr_t)to, value, bytes), OK; }
Code cuMemAllocManaged(uint64_t *made, size_t bytes, unsigned flags) {
    (void)flags;
    void *memory = calloc(1, bytes);
    add(memory, bytes, 3);
    return *made = (uint64_t)(uintptr_t)memory, OK;
}
Code cuMemHostAlloc(void **made, size_t bytes, unsigned flags) {
    (void)flags;
    *made = calloc(1, bytes);
    add(*made, bytes, 1);
    return OK;
}
Code cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags) {
    (void)flags;
    Code code = unsafe_in_capture();
    if (code) return code;
    if (getenv("FAKE_REGISTERS_NOTHING")) return 2;
    add(memory, bytes, 1);
    return OK;
}
Code cuMemHostUnregister(void *memory) { return memory ? INVALID_VALUE : OK; }
Code cuPointerGetAttributes(unsigned count, const int *asked, void **answers, uint64_t address) {
    if (usable()) return usable();
    Range *range = at(address);
    for (unsigned number = 0; number < count; number++) switch (asked[number]) {
        case 2: *(unsigned *)answers[number] = !range ? 0 : range->kind == 3 ? 2 : range->kind; break;
        case 8: *(unsigned *)answers[number] = range && range->kind == 3; break;
        case 11: *(uint64_t *)answers[number] = range ? range->at : 0; break;
        case 12: *(size_t *)answers[number] = range ? range->bytes : 0; break;
        default: return INVALID_VALUE;
    }
    return OK;
}
Code cuStreamCreate(uintptr_t *made, unsigned flags) {
    (void)flags;
    Stream *stream = calloc(1, sizeof *stream);
    stream->context = context;
    start(stream);
    return *made = (uintptr_t)stream, OK;
}
Code cuStreamSynchronize(uintptr_t handle) {
    Code code = usable();
    if (!code && !(code = of(handle)->capturing ? UNSUPPORTED : OK)) drain(of(handle));
    return code;
}
Code cuStreamGetCtx(uintptr_t handle, uintptr_t *found) { return *found = handle > 2 ? of(handle)->context : context, OK; }
Code cuStreamIsCapturing(uintptr_t handle, int *status) { return *status = of(handle)->capturing, OK; }
Code cuStreamBeginCapture_v2(uintptr_t handle, int mode) {
    if (handle <= 2 || of(handle)->capturing) return UNSUPPORTED;
    of(handle)->capturing = 1;
    captures += of(handle)->counts = mode == 0;
    return OK;
}
Code cuStreamEndCapture(uintptr_t handle, uintptr_t *graph) {
    if (!of(handle)->capturing) return INVALID_VALUE;
    of(handle)->capturing = 0;
    captures -= of(handle)->counts;
    return *graph = 1, OK;
}
Code cuThreadExchangeStreamCaptureMode(int *mode) {
    int before = capture_mode;
    capture_mode = *mode;
    return *mode = before, OK;
}
Code cuEventCreate(uintptr_t *made, unsigned flags) { return (void)flags, *made = (uintptr_t)calloc(1, sizeof(Event)), OK; }
Code cuEventRecord(uintptr_t event, uintptr_t handle) {
    pthread_mutex_lock(&lock);
    uint64_t version = ++((Event *)event)->recorded;
    pthread_mutex_unlock(&lock);
    push(of(handle), (Task){.kind = EVENT, .event = (Event *)event, .version = version});
    return OK;
}
Code cuEventQuery(uintptr_t event) {
    Code code = unsafe_in_capture();
    if (code) return code;
    pthread_mutex_lock(&lock);
    Event *asked = (Event *)event;
    code = asked->reached < asked->recorded ? NOT_READY : OK;
    pthread_mutex_unlock(&lock);
    return code;
}
Code cuEventSynchronize(uintptr_t event) {
    Event *awaited = (Event *)event;
    pthread_mutex_lock(&lock);
    while (awaited->reached < awaited->recorded) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return OK;
}

// By the names that programs ask for: in the form of the legacy default stream, and of that of each thread.
#define ONE(NAME) {#NAME, (void *)NAME, (void *)NAME}
#define TWO(NAME, LEGACY, PER_THREAD) {#NAME, (void *)LEGACY, (void *)PER_THREAD}
static const struct { const char *name; void *legacy, *per_thread; } FUNCTIONS[] = {
    TWO(cuMemcpy, cuMemcpy, cuMemcpy_ptds),
    TWO(cuMemcpyAsync, cuMemcpyAsync, cuMemcpyAsync_ptsz),
    TWO(cuMemcpyHtoD, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds),
    TWO(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz),
    TWO(cuMemcpyDtoH, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds),
    TWO(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz),
    TWO(cuStreamBeginCapture, cuStreamBeginCapture_v2, cuStreamBeginCapture_v2),
    ONE(cuStreamEndCapture),
};

Code cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long flags, int *status);
Code cuGetProcAddress(const char *name, void **found, int version, unsigned long flags) {
    return cuGetProcAddress_v2(name, found, version, flags, NULL);
}
Code cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long flags, int *status) {
    if (status) *status = 0;
    *found = NULL;
    if (!strcmp(name, "cuGetProcAddress")) *found = version < 12000 ? (void *)cuGetProcAddress : (void *)cuGetProcAddress_v2;
    for (size_t number = 0; number < sizeof FUNCTIONS / sizeof *FUNCTIONS; number++)
        if (!strcmp(name, FUNCTIONS[number].name)) *found = flags & 2 ? FUNCTIONS[number].per_thread : FUNCTIONS[number].legacy;
    return *found ? OK : 500;
}
