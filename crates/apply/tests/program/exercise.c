// Copies in every way that programs use, and prints what came of it. The same program, with and without the library, on the fake
// driver and on a real one, must print the same. Each exercise prints codes and checksums only, no times.
//
//   exercise entries | races | threads | capture | fork | errors | kinds | reset | contexts | shared | asleep | large BYTES | fuzz SEED COUNT [MIB]
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int Code;
typedef uint64_t Address;
typedef uintptr_t Handle;

static void *driver;
static Handle context;

static void *function(const char *name) {
    void *address = dlsym(driver, name);
    if (!address) fprintf(stderr, "the driver has no %s\n", name), exit(3);
    return address;
}
// By address: arguments are as wide as the driver's.
#define CALL(name, types, ...) (((Code (*) types)function(name))(__VA_ARGS__))

typedef Code (*Waiting)(Address, Address, size_t);
typedef Code (*Queued)(Address, Address, size_t, Handle);

// One way to copy, by its name. `stream` says whether it takes one.
typedef struct {
    const char *name;
    int in, out, takes_stream;
} Entry;
static const Entry ENTRIES[] = {
    {"cuMemcpy", 1, 1, 0},           {"cuMemcpy_ptds", 1, 1, 0},           {"cuMemcpyAsync", 1, 1, 1},
    {"cuMemcpyAsync_ptsz", 1, 1, 1}, {"cuMemcpyHtoD_v2", 1, 0, 0},         {"cuMemcpyHtoD_v2_ptds", 1, 0, 0},
    {"cuMemcpyHtoDAsync_v2", 1, 0, 1}, {"cuMemcpyHtoDAsync_v2_ptsz", 1, 0, 1}, {"cuMemcpyDtoH_v2", 0, 1, 0},
    {"cuMemcpyDtoH_v2_ptds", 0, 1, 0}, {"cuMemcpyDtoHAsync_v2", 0, 1, 1}, {"cuMemcpyDtoHAsync_v2_ptsz", 0, 1, 1},
};
enum { ENTRY_COUNT = sizeof ENTRIES / sizeof *ENTRIES };

static uint64_t state_of(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static void fill(char *memory, size_t bytes, uint64_t seed) {
    seed = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = state_of(&seed);
        memcpy(memory + at, &word, bytes - at < 8 ? bytes - at : 8);
    }
}

static uint64_t sum(const char *memory, size_t bytes) {
    uint64_t hash = 1469598103934665603u;
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = 0;
        memcpy(&word, memory + at, bytes - at < 8 ? bytes - at : 8);
        hash = (hash ^ word) * 1099511628211u;
        hash ^= hash >> 29;
    }
    return hash;
}

static char *fresh(size_t bytes) { return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

static Code begin(void) {
    int device;
    Code code = CALL("cuInit", (unsigned), 0);
    if (!code) code = CALL("cuDeviceGet", (int *, int), &device, 0);
    if (!code) code = CALL("cuDevicePrimaryCtxRetain", (Handle *, int), &context, device);
    if (!code) code = CALL("cuCtxSetCurrent", (Handle), context);
    return code;
}

static Address on_device(size_t bytes) {
    Address address = 0;
    Code code = CALL("cuMemAlloc_v2", (Address *, size_t), &address, bytes);
    if (code) fprintf(stderr, "no memory on the device: %d\n", code), exit(3);
    return address;
}

static Handle new_stream(unsigned flags) {
    Handle stream = 0;
    CALL("cuStreamCreate", (Handle *, unsigned), &stream, flags);
    return stream;
}

static Code wait_for(Handle stream) { return CALL("cuStreamSynchronize", (Handle), stream); }

static Code copy(const Entry *entry, void *address, Address to, Address from, size_t bytes, Handle stream) {
    return entry->takes_stream ? ((Queued)address)(to, from, bytes, stream) : ((Waiting)address)(to, from, bytes);
}
static Code copy_by(const char *name, Address to, Address from, size_t bytes, Handle stream) {
    for (int number = 0; number < ENTRY_COUNT; number++)
        if (!strcmp(ENTRIES[number].name, name)) return copy(&ENTRIES[number], function(name), to, from, bytes, stream);
    return -1;
}

static const size_t SIZES[] = {0, 1, 4095, 65536, 1 << 20, (1 << 20) + 1, (3 << 20) + 12345, 16 << 20, (70 << 20) + 77};

// Every entry point, by `dlsym` and by `cuGetProcAddress`, at odd addresses, there and back.
static void entries(void) {
    size_t room = (70 << 20) + 4096;
    char *source = fresh(room), *target = fresh(room);
    Address device = on_device(room);
    Handle stream = new_stream(1);
    for (size_t size = 0; size < sizeof SIZES / sizeof *SIZES; size++)
        for (int number = 0; number < ENTRY_COUNT; number++) {
            const Entry *entry = &ENTRIES[number];
            size_t bytes = SIZES[size], shift = (number * 37 + size * 11) % 1000;
            Code there = 0, back = 0;
            fill(source + shift, bytes, number * 100 + size);
            memset(target + shift, 0, bytes);
            if (entry->in) there = copy(entry, function(entry->name), device + shift, (Address)source + shift, bytes, stream);
            else there = copy_by("cuMemcpyHtoD_v2", device + shift, (Address)source + shift, bytes, 0);
            // Another stream may only go on when this one is done.
            wait_for(stream), wait_for(1), wait_for(2);
            if (entry->out) back = copy(entry, function(entry->name), (Address)target + shift, device + shift, bytes, stream);
            else back = copy_by("cuMemcpyDtoH_v2", (Address)target + shift, device + shift, bytes, 0);
            printf("%s %zu: %d %d %s\n", entry->name, bytes, there, back, memcmp(source + shift, target + shift, bytes) ? "differs" : "same");
        }
    for (int form = 0; form < 2; form++)
        for (int version = 11080; version <= 13000; version += 1920) {
            Code (*lookup)(const char *, void **, int, uint64_t, int *) = (void *)function("cuGetProcAddress_v2");
            Code (*again)(const char *, void **, int, uint64_t, int *) = NULL;
            void *in = NULL, *out = NULL;
            int status = 0;
            Code code = lookup("cuGetProcAddress", (void **)&again, version, 0, &status);
            // The per-thread forms came with version 7.0.
            if (!code) code = again("cuMemcpyHtoDAsync", &in, form ? 7000 : 3020, form * 2, &status);
            if (!code) code = again("cuMemcpyDtoHAsync", &out, form ? 7000 : 3020, form * 2, &status);
            if (code) { printf("cuGetProcAddress: %d\n", code); continue; }
            fill(source, 5 << 20, form + 5000);
            memset(target, 0, 5 << 20);
            Code there = ((Queued)in)(device, (Address)source, 5 << 20, 0), back = ((Queued)out)((Address)target, device, 5 << 20, 0);
            printf("cuGetProcAddress %d %d: %d %d %s\n", form, version, there, back, memcmp(source, target, 5 << 20) ? "differs" : "same");
        }
}

// The source is overwritten right after the call, the target is read right after it, while the stream is busy.
static void races(void) {
    size_t bytes = (24 << 20) + 4321;
    char *source = fresh(bytes), *target = fresh(bytes), *expected = fresh(bytes);
    Address device = on_device(4 * bytes);
    Handle streams[2] = {new_stream(1), 0};
    for (int round = 0; round < 24; round++) {
        Handle stream = streams[round % 2];
        Address at = device + round % 4 * bytes;
        // Copies within the device, so that the stream has something to do.
        for (int number = 0; number < 8; number++) copy_by("cuMemcpyAsync", device + 3 * bytes, device + 2 * bytes, bytes / 2, stream);
        fill(source, bytes, round), memcpy(expected, source, bytes);
        Code there = copy_by("cuMemcpyHtoDAsync_v2", at, (Address)source, bytes, stream);
        memset(source, 0xee, bytes);
        memset(target, 0, bytes);
        Code back = copy_by("cuMemcpyDtoHAsync_v2", (Address)target, at, bytes, stream);
        printf("race %d: %d %d %s\n", round, there, back, memcmp(expected, target, bytes) ? "differs" : "same");
        wait_for(stream);
    }
}

typedef struct {
    int number;
    uint64_t sum;
    Code code;
} Work;

static void *work(void *argument) {
    Work *work = argument;
    CALL("cuCtxSetCurrent", (Handle), context);
    size_t bytes = 9 << 20;
    char *source = malloc(bytes), *target = malloc(bytes);
    Address device = on_device(bytes);
    // Some threads use the default stream of each thread, some their own stream, some share the legacy one.
    Handle stream = work->number % 3 == 0 ? 2 : work->number % 3 == 1 ? new_stream(1) : 1;
    for (int round = 0; round < 12; round++) {
        size_t part = bytes - round * 77777 - work->number;
        fill(source, part, work->number * 1000 + round);
        work->code |= copy_by("cuMemcpyHtoDAsync_v2", device, (Address)source, part, stream);
        memset(source, 0, part);
        work->code |= copy_by("cuMemcpyDtoHAsync_v2", (Address)target, device, part, stream);
        work->sum = work->sum * 31 + sum(target, part);
    }
    return NULL;
}

static void threads(void) {
    enum { COUNT = 9 };
    pthread_t running[COUNT];
    Work works[COUNT] = {0};
    for (int number = 0; number < COUNT; number++) {
        works[number].number = number;
        pthread_create(&running[number], NULL, work, &works[number]);
    }
    for (int number = 0; number < COUNT; number++) {
        pthread_join(running[number], NULL);
        printf("thread %d: %d %016lx\n", number, works[number].code, works[number].sum);
    }
}

// During a capture, every answer is the driver's own; before and after it, copies work.
static void capture(void) {
    size_t bytes = 8 << 20;
    char *source = fresh(bytes), *target = fresh(bytes);
    Address device = on_device(bytes);
    Handle stream = new_stream(1), other = new_stream(1), graph = 0;
    for (int mode = 0; mode < 3; mode++) {
        fill(source, bytes, mode);
        printf("before: %d\n", copy_by("cuMemcpyHtoDAsync_v2", device, (Address)source, bytes, other));
        wait_for(other);
        Code began = CALL("cuStreamBeginCapture_v2", (Handle, int), stream, mode);
        Code within = mode == 2 ? 0 : copy_by("cuMemcpyHtoD_v2", device, (Address)source, bytes, 0);
        Code ended = CALL("cuStreamEndCapture", (Handle, Handle *), stream, &graph);
        printf("mode %d: began %d, a waiting copy within %d, ended %d\n", mode, began, within, ended);
        memset(target, 0, bytes);
        Code back = copy_by("cuMemcpyDtoH_v2", (Address)target, device, bytes, 0);
        printf("after: %d %s\n", back, memcmp(source, target, bytes) ? "differs" : "same");
    }
}

static void round_trip(const char *who) {
    size_t bytes = 6 << 20;
    char *source = fresh(bytes), *target = fresh(bytes);
    Code code = begin();
    if (code) {
        printf("%s: %d\n", who, code), fflush(stdout);
        return;
    }
    Address device = on_device(bytes);
    fill(source, bytes, 3);
    Code there = copy_by("cuMemcpyHtoD_v2", device, (Address)source, bytes, 0), back = copy_by("cuMemcpyDtoH_v2", (Address)target, device, bytes, 0);
    printf("%s: %d %d %s\n", who, there, back, memcmp(source, target, bytes) ? "differs" : "same"), fflush(stdout);
}

// How long the threads of the library ran so far, in microseconds, and how many there are.
static long ran(int *threads) {
    DIR *all = opendir("/proc/self/task");
    long total = 0;
    *threads = 0;
    for (struct dirent *one; (one = readdir(all));) {
        char path[300], name[32] = "";
        unsigned long long nanoseconds = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", one->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (!fgets(name, sizeof name, file)) name[0] = 0;
        fclose(file);
        if (strncmp(name, "busbound", 8)) continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", one->d_name);
        if ((file = fopen(path, "r"))) {
            if (fscanf(file, "%llu", &nanoseconds) == 1) ++*threads, total += nanoseconds / 1000;
            fclose(file);
        }
    }
    closedir(all);
    return total;
}

// What the threads do while nothing is copied: said on standard error, because without the library there are none.
static void asleep(void) {
    int threads;
    ran(&threads);
    fprintf(stderr, "%d threads before the first copy\n", threads);
    round_trip("copied");
    usleep(100000);
    long before = ran(&threads);
    usleep(400000);
    fprintf(stderr, "%d threads ran %ld us of 400 ms\n", threads, ran(&threads) - before);
    round_trip("copied again");
}

// A child forked before the parent uses CUDA has its own; one forked after it gets the driver's error; both leave the parent alone.
static void forks(void) {
    int status;
    fflush(stdout);
    for (int turn = 0; turn < 2; turn++) {
        pid_t child = fork();
        if (child == 0) round_trip(turn ? "child after" : "child before"), _exit(0);
        waitpid(child, &status, 0);
        printf("it ended with %d\n", status), fflush(stdout);
        round_trip("parent");
    }
    // A child that lives on, as the workers of a loader do: what the parent writes now must reach the GPU.
    pid_t child = fork();
    if (child == 0) pause(), _exit(0);
    for (int turn = 0; turn < 3; turn++) round_trip("parent beside a child");
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

// What is wrong stays wrong, with the driver's own code.
static void errors(void) {
    size_t bytes = 8 << 20;
    char *source = fresh(bytes);
    Address device = on_device(bytes);
    fill(source, bytes, 1);
    printf("past the end of the device's memory: %d\n", copy_by("cuMemcpyHtoD_v2", device + 4096, (Address)source, bytes, 0));
    printf("a device address that is none: %d\n", copy_by("cuMemcpyHtoD_v2", 4096, (Address)source, bytes, 0));
    printf("the same, back: %d\n", copy_by("cuMemcpyDtoH_v2", (Address)source, 4096, bytes, 0));
    printf("after it: %d\n", copy_by("cuMemcpyHtoD_v2", device, (Address)source, bytes, 0));
    CALL("cuCtxSetCurrent", (Handle), 0);
    printf("without a context: %d\n", copy_by("cuMemcpyHtoD_v2", device, (Address)source, bytes, 0));
}

// Memory that is gone in part: the driver may return an error or the process may get a signal, with the library as without.
static void gone(void) {
    size_t bytes = 8 << 20;
    char *source = fresh(bytes);
    Address device = on_device(bytes);
    fill(source, bytes, 1);
    munmap(source + (5 << 20), 1 << 20);
    printf("host memory with a hole: %d\n", copy_by("cuMemcpyHtoD_v2", device, (Address)source, bytes, 0)), fflush(stdout);
    mprotect(source, 4096, PROT_READ);
    printf("host memory that cannot be written: %d\n", copy_by("cuMemcpyDtoH_v2", (Address)source, device, 4 << 20, 0));
}

// Memory that is not pageable goes to the driver as it is.
static void kinds(void) {
    size_t bytes = 8 << 20;
    char *pinned = NULL, *target = fresh(bytes);
    Address managed = 0, device = on_device(bytes), other = on_device(bytes);
    CALL("cuMemHostAlloc", (void **, size_t, unsigned), (void **)&pinned, bytes, 0);
    CALL("cuMemAllocManaged", (Address *, size_t, unsigned), &managed, bytes, 1);
    fill(pinned, bytes, 4);
    printf("pinned: %d\n", copy_by("cuMemcpyHtoD_v2", device, (Address)pinned, bytes, 0));
    printf("within the device: %d\n", copy_by("cuMemcpy", other, device, bytes, 0));
    printf("managed: %d\n", copy_by("cuMemcpy", managed, other, bytes, 0));
    printf("host to host: %d\n", copy_by("cuMemcpy", (Address)target, (Address)pinned, bytes, 0));
    memset(target, 0, bytes);
    printf("back: %d", copy_by("cuMemcpy", (Address)target, managed, bytes, 0));
    printf(" %s\n", memcmp(pinned, target, bytes) ? "differs" : "same");
    // Half of it pinned: the driver's to judge.
    char *half = fresh(bytes);
    fill(half, bytes, 5);
    printf("registered: %d\n", CALL("cuMemHostRegister_v2", (void *, size_t, unsigned), half, bytes / 2, 0));
    Code code = copy_by("cuMemcpyHtoD_v2", device, (Address)half, bytes, 0);
    printf("pinned in part: %d\n", code);
}

// The context ends and begins again.
static void reset(void) {
    for (int round = 0; round < 12; round++) {
        round_trip("context");
        printf("reset: %d\n", CALL("cuDevicePrimaryCtxReset_v2", (int), 0));
    }
}

// Every GPU and every context has its own streams and memory; a thread uses one after the other, several at the same time.
typedef struct {
    int number;
    Handle contexts[8];
    int count;
    Code code;
    uint64_t sum;
} Tour;

static void *tour(void *argument) {
    Tour *tour = argument;
    size_t bytes = (5 << 20) + 321;
    char *source = malloc(bytes), *target = malloc(bytes);
    for (int turn = 0; turn < 3 * tour->count; turn++) {
        CALL("cuCtxSetCurrent", (Handle), tour->contexts[(turn + tour->number) % tour->count]);
        Address device = on_device(bytes);
        Handle stream = turn % 2 ? new_stream(1) : 2;
        fill(source, bytes, tour->number * 100 + turn);
        tour->code |= copy_by("cuMemcpyHtoDAsync_v2", device, (Address)source, bytes, stream);
        memset(source, 0, bytes);
        tour->code |= copy_by("cuMemcpyDtoHAsync_v2", (Address)target, device, bytes, stream);
        tour->sum = tour->sum * 31 + sum(target, bytes);
    }
    return NULL;
}

static void contexts(void) {
    enum { COUNT = 4 };
    int devices = 0;
    pthread_t running[COUNT];
    Tour tours[COUNT] = {0};
    Handle all[8] = {context}, second = 0;
    CALL("cuDeviceGetCount", (int *), &devices);
    int count = 1;
    for (int device = 1; device < devices && device < 4; device++)
        if (!CALL("cuDevicePrimaryCtxRetain", (Handle *, int), &all[count], device)) count++;
    printf("a second context: %d\n", CALL("cuCtxCreate_v2", (Handle *, unsigned, int), &second, 0, 0));
    all[count++] = second;
    for (int number = 0; number < COUNT; number++) {
        tours[number] = (Tour){.number = number, .count = count};
        memcpy(tours[number].contexts, all, sizeof all);
        pthread_create(&running[number], NULL, tour, &tours[number]);
    }
    for (int number = 0; number < COUNT; number++) {
        pthread_join(running[number], NULL);
        printf("thread %d: %d %016lx\n", number, tours[number].code, tours[number].sum);
    }
    // A stream of another context than the current one: whatever the driver says.
    size_t bytes = 4 << 20;
    char *source = fresh(bytes);
    CALL("cuCtxSetCurrent", (Handle), second);
    Handle stream = new_stream(1);
    CALL("cuCtxSetCurrent", (Handle), context);
    printf("a stream of the other context: %d\n", copy_by("cuMemcpyHtoDAsync_v2", on_device(bytes), (Address)source, bytes, stream));
    printf("it ends: %d\n", CALL("cuCtxDestroy_v2", (Handle), second));
    CALL("cuCtxSetCurrent", (Handle), context);
    round_trip("after it");
}

// Memory of another process: what the GPU of one wrote, the other one reads.
typedef struct {
    char bytes[64];
} Shared;

static void read_shared(int from, int to) {
    size_t bytes = 7 << 20;
    Shared shared;
    Address device = 0;
    char *target = fresh(bytes);
    if (begin() || read(from, &shared, sizeof shared) != sizeof shared) exit(3);
    Code opened = ((Code (*)(Address *, Shared, unsigned))function("cuIpcOpenMemHandle_v2"))(&device, shared, 1);
    printf("opened: %d\n", opened), fflush(stdout);
    if (!opened) {
        Code code = copy_by("cuMemcpyDtoH_v2", (Address)target, device, bytes, 0);
        printf("read: %d %016lx\n", code, sum(target, bytes)), fflush(stdout);
        fill(target, bytes, 12);
        code = copy_by("cuMemcpyHtoD_v2", device, (Address)target, bytes, 0);
        printf("written: %d %d\n", code, CALL("cuCtxSynchronize", (void))), fflush(stdout);
    }
    if (write(to, "x", 1) != 1) exit(3);
}

static void share(void) {
    int there[2], back[2], status;
    if (pipe(there) || pipe(back)) exit(3);
    pid_t child = fork();
    if (child == 0) read_shared(there[0], back[1]), _exit(0);
    size_t bytes = 7 << 20;
    Shared shared = {{0}};
    char *source = fresh(bytes), done;
    if (begin()) exit(3);
    Address device = on_device(bytes);
    fill(source, bytes, 11);
    printf("sum: %016lx\n", sum(source, bytes));
    copy_by("cuMemcpyHtoD_v2", device, (Address)source, bytes, 0);
    CALL("cuCtxSynchronize", (void));
    printf("a handle: %d\n", CALL("cuIpcGetMemHandle", (Shared *, Address), &shared, device));
    if (write(there[1], &shared, sizeof shared) != sizeof shared || read(back[0], &done, 1) != 1) exit(3);
    waitpid(child, &status, 0);
    Code code = copy_by("cuMemcpyDtoH_v2", (Address)source, device, bytes, 0);
    printf("what the other wrote: %d %016lx\n", code, sum(source, bytes));
}

static void large(size_t bytes) {
    char *source = fresh(bytes + 3), *target = fresh(bytes + 3);
    Address device = on_device(bytes + 1);
    fill(source + 3, bytes, 9);
    Code there = copy_by("cuMemcpyHtoDAsync_v2", device + 1, (Address)source + 3, bytes, 0);
    Code back = copy_by("cuMemcpyDtoHAsync_v2", (Address)target + 1, device + 1, bytes, 0);
    printf("%zu bytes: %d %d %s\n", bytes, there, back, memcmp(source + 3, target + 1, bytes) ? "differs" : "same");
}

// Random copies. Each stream has its own memory on the device, so that the result does not depend on how streams are interleaved;
// the legacy stream, which waits for the others, uses all of it.
static void fuzz(uint64_t seed, long count, size_t mib) {
    enum { STREAMS = 4 };
    const size_t REGION = mib << 20;
    uint64_t state = seed * 2654435761u + 12345, results = 0;
    // To find the call that differs.
    int is_traced = getenv("EXERCISE_TRACE") != NULL;
    char *host = fresh(REGION), *pinned = NULL;
    Address device = on_device(STREAMS * (size_t)REGION);
    CALL("cuMemHostAlloc", (void **, size_t, unsigned), (void **)&pinned, REGION, 0);
    // The first ones wait for the legacy stream, the last ones do not.
    Handle streams[STREAMS] = {new_stream(0), new_stream(0), new_stream(1), 2};
    CALL("cuMemsetD8_v2", (Address, unsigned char, size_t), device, 0, STREAMS * (size_t)REGION);
    for (long done = 0; done < count; done++) {
        int number = state_of(&state) % STREAMS, way = state_of(&state) % 10, is_odd = state_of(&state) % 50 == 0;
        size_t most = state_of(&state) % 3 ? REGION : 2 << 20, bytes = state_of(&state) % most;
        size_t at = state_of(&state) % (REGION - bytes), on = state_of(&state) % (REGION - bytes);
        Address there = device + number * (size_t)REGION + on;
        char *memory = state_of(&state) % 8 ? host : pinned;
        Code code = 0;
        if (is_odd) there = device + STREAMS * (size_t)REGION - bytes / 2;
        if (way < 4) {
            fill(memory + at, bytes, state);
            int waits = state_of(&state) % 4 == 0;
            if (waits) wait_for(streams[number]);
            code = waits ? copy_by("cuMemcpyHtoD_v2", there, (Address)memory + at, bytes, 0)
                         : copy_by("cuMemcpyHtoDAsync_v2", there, (Address)memory + at, bytes, streams[number]);
            // A waiting copy has read its source when it returns, but may not have arrived: streams that do not wait for the
            // legacy one would not see it yet.
            if (waits) wait_for(1);
            if (memory == pinned) wait_for(streams[number]);
            memset(memory + at, (int)done, bytes < 4096 ? bytes : 4096);
        } else if (way < 8) {
            int is_fresh = state_of(&state) % 4 == 0;
            char *target = is_fresh ? fresh(bytes + 1) : memory + at;
            int waits = state_of(&state) % 4 == 0;
            if (waits) wait_for(streams[number]);
            code = waits ? copy_by("cuMemcpyDtoH_v2", (Address)target, there, bytes, 0)
                         : copy_by("cuMemcpyDtoHAsync_v2", (Address)target, there, bytes, streams[number]);
            if (memory == pinned) wait_for(streams[number]);
            results = results * 31 + (code ? 0 : sum(target, bytes));
            if (is_fresh) munmap(target, bytes + 1);
        } else if (way == 8) {
            code = copy_by("cuMemcpyAsync", there, (Address)host + at, bytes, streams[number]);
        } else {
            code = wait_for(streams[number]);
        }
        results = results * 31 + (uint64_t)code;
        if (is_traced)
            printf("%ld: way %d, stream %d, %zu bytes at %zu and %zu, %s%s: %d %016lx\n", done, way, number, bytes, at, on,
                   memory == pinned ? "pinned" : "pageable", is_odd ? ", odd" : "", code, results);
        if (done % 500 == 499 || done == count - 1) printf("%ld: %016lx\n", done + 1, results), fflush(stdout);
    }
    for (int number = 0; number < STREAMS; number++) {
        wait_for(streams[number]);
        copy_by("cuMemcpyDtoH_v2", (Address)host, device + number * (size_t)REGION, REGION, 0);
        printf("stream %d: %016lx\n", number, sum(host, REGION));
    }
}

int main(int count, char **arguments) {
    // What was printed before a signal counts.
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *what = count > 1 ? arguments[1] : "entries";
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return fprintf(stderr, "%s\n", dlerror()), 3;
    if (!strcmp(what, "fork")) return forks(), 0;
    if (!strcmp(what, "shared")) return share(), 0;
    Code code = begin();
    if (code) return fprintf(stderr, "CUDA does not begin: %d\n", code), 3;
    if (!strcmp(what, "entries")) entries();
    else if (!strcmp(what, "races")) races();
    else if (!strcmp(what, "threads")) threads();
    else if (!strcmp(what, "capture")) capture();
    else if (!strcmp(what, "errors")) errors();
    else if (!strcmp(what, "gone")) gone();
    else if (!strcmp(what, "kinds")) kinds();
    else if (!strcmp(what, "reset")) reset();
    else if (!strcmp(what, "contexts")) contexts();
    else if (!strcmp(what, "asleep")) asleep();
    else if (!strcmp(what, "large")) large(strtoull(arguments[2], NULL, 0));
    else if (!strcmp(what, "fuzz")) fuzz(strtoull(arguments[2], NULL, 0), atol(arguments[3]), count > 4 ? strtoull(arguments[4], NULL, 0) : 24);
    else return fprintf(stderr, "no exercise named %s\n", what), 2;
    return 0;
}
