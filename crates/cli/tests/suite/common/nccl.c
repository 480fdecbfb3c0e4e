// An NCCL whose ranks are processes that share a file in $FAKE_NCCL: they really wait for each other and really sum. Like the real one, it
// waits forever for a rank that is gone.
// $FAKE_NCCL_INIT and $FAKE_NCCL_REDUCE: what a rank does instead of its part (fail, die, hang, wrong).
// $FAKE_NCCL_SLOW_MS: it ends each all-reduce late. $FAKE_NCCL_LATE_MS: it is late for the first four repetitions of eleven.
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 8, CHUNK = 1 << 16 };

typedef struct {
    atomic_int waiting, round;
    float parts[MOST][CHUNK];
} Shared;

typedef struct {
    Shared *shared;
    int rank, size;
} Comm;

typedef struct { char text[128]; } Id;

static int instead(const char *variable) {
    const char *what = getenv(variable);
    if (!what) return 0;
    if (!strcmp(what, "die")) _exit(9);
    if (!strcmp(what, "hang")) pause();
    return !strcmp(what, "fail") ? 3 : 0;
}

static int is(const char *variable, const char *value) {
    const char *what = getenv(variable);
    return what && !strcmp(what, value);
}

static void wait_ms(const char *variable) {
    const char *ms = getenv(variable);
    if (ms) usleep(1000 * atoi(ms));
}

static void meet(Comm *comm) {
    int round = atomic_load(&comm->shared->round);
    if (atomic_fetch_add(&comm->shared->waiting, 1) + 1 == comm->size) {
        atomic_store(&comm->shared->waiting, 0);
        atomic_fetch_add(&comm->shared->round, 1);
    }
    while (atomic_load(&comm->shared->round) == round) usleep(20);
}

int ncclGetVersion(int *version) {
    const char *given = getenv("FAKE_NCCL_VERSION");
    return *version = given ? atoi(given) : 22105, 0;
}
const char *ncclGetErrorString(int error) { return error == 3 ? "internal error" : "unknown"; }
int ncclGroupStart(void) { return 0; }
int ncclGroupEnd(void) { return 0; }

int ncclGetUniqueId(Id *id) {
    memset(id, 0, sizeof *id);
    snprintf(id->text, sizeof id->text, "%s/world", getenv("FAKE_NCCL"));
    return 0;
}

int ncclCommInitRank(Comm **out, int size, Id id, int rank) {
    int error = instead("FAKE_NCCL_INIT");
    if (error) return error;
    int file = open(id.text, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(Shared)) || size > MOST) return 2;
    Comm *comm = *out = malloc(sizeof *comm);
    comm->shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    comm->rank = rank, comm->size = size;
    meet(comm);
    return 0;
}

int ncclAllReduce(const float *from, float *to, size_t count, int type, int op, Comm *comm, void *stream) {
    static int calls;
    if (calls % 11 == 0 && calls < 44) wait_ms("FAKE_NCCL_LATE_MS");
    calls++;
    int error = instead("FAKE_NCCL_REDUCE");
    if (error) return error;
    for (size_t at = 0; at < count; at += CHUNK) {
        size_t part = count - at < CHUNK ? count - at : CHUNK;
        memcpy(comm->shared->parts[comm->rank], from + at, part * sizeof *from);
        meet(comm);
        for (size_t i = 0; i < part; i++) {
            float sum = 0;
            for (int rank = 0; rank < comm->size; rank++) sum += comm->shared->parts[rank][i];
            to[at + i] = sum;
        }
        meet(comm);
    }
    if (is("FAKE_NCCL_REDUCE", "wrong")) to[count - 1] += 1;
    if (count > 1) wait_ms("FAKE_NCCL_SLOW_MS");
    return 0;
}

int ncclCommDestroy(Comm *comm) { return munmap(comm->shared, sizeof(Shared)), free(comm), 0; }
