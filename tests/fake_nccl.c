/* What examples/parallel.c takes of NCCL, for ranks whose memory is the host's (contexts of the host, GPUs of tests/emulator): threads or
   processes that share a file. So the calls, and
   how ranks end when one fails, are tested where there is no GPU. A sum waits for all ranks, for ever if one is gone.

   FAKE_NCCL in the environment says what is to go wrong: `old` (the version), `init` (no communicator), `sum` (the third sum). With `tell`
   each communicator says at its end how many sums it has made, and of how many multiprocessors. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_RANKS = 8, MOST_NUMBERS = 1 << 20 };
enum {
    SUCCESS = 0,
    SYSTEM_ERROR = 2,
    INVALID_ARGUMENT = 4,
    REMOTE_ERROR = 6,
    FLOAT32 = 7,
    BFLOAT16 = 9,
    SUM = 0
};

typedef struct unique_id {
    char path[128];
} unique_id;

typedef struct config {
    size_t size;
    unsigned magic, version;
    int blocking, cluster_size, least_ctas, most_ctas;
    const char *network;
} config;

typedef struct shared {
    int waiting, round;
    float numbers[MOST_RANKS][MOST_NUMBERS];
} shared;

typedef struct communicator {
    shared *with;
    int ranks, rank, sums, most_ctas;
} communicator;

static int goes_wrong(const char *what) {
    const char *wrong = getenv("FAKE_NCCL");
    return wrong && strcmp(wrong, what) == 0;
}

static void meet(communicator *me) {
    const int round = __atomic_load_n(&me->with->round, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&me->with->waiting, 1, __ATOMIC_SEQ_CST) == me->ranks) {
        __atomic_store_n(&me->with->waiting, 0, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&me->with->round, 1, __ATOMIC_SEQ_CST);
    }
    while (__atomic_load_n(&me->with->round, __ATOMIC_SEQ_CST) == round)
        usleep(50);
}

int ncclGetVersion(int *version) {
    *version = goes_wrong("old") ? 21602 : 22000;
    return SUCCESS;
}

const char *ncclGetErrorString(int result) {
    return result == REMOTE_ERROR ? "remote process exited or there was a network error"
                                  : "an error of the fake";
}

const char *ncclGetLastError(void *of) {
    return of ? "of a communicator" : "of no communicator";
}

int ncclGetUniqueId(unique_id *id) {
    const char *folder = getenv("TMPDIR");
    memset(id, 0, sizeof *id);
    snprintf(id->path, sizeof id->path, "%.90s/fake_nccl_XXXXXX", folder ? folder : "/tmp");
    const int file = mkstemp(id->path);
    return file >= 0 && !ftruncate(file, sizeof(shared)) && !close(file) ? SUCCESS : SYSTEM_ERROR;
}

int ncclCommInitRankConfig(void **result, int ranks, unique_id id, int rank, config *of) {
    communicator *me = calloc(1, sizeof *me);
    const int file = open(id.path, O_RDWR);
    if (of->size < sizeof *of || of->magic != 0xcafebeef || of->version < 21700 || of->most_ctas == 0)
        return INVALID_ARGUMENT;
    if (!me || file < 0 || ranks > MOST_RANKS || goes_wrong("init")) {
        unlink(id.path);
        return SYSTEM_ERROR;
    }
    me->with = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    me->ranks = ranks, me->rank = rank, me->most_ctas = of->most_ctas;
    if (me->with == MAP_FAILED)
        return SYSTEM_ERROR;
    meet(me);
    if (rank == 0)
        unlink(id.path);
    *result = me;
    return SUCCESS;
}

static float number_at(const void *values, size_t i, int type) {
    float value;
    if (type == FLOAT32)
        return ((const float *)values)[i];
    const unsigned bits = (unsigned)((const unsigned short *)values)[i] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Numbers of BF16 are cut, not rounded. */
static void store(void *values, size_t i, int type, float value) {
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == FLOAT32)
        ((float *)values)[i] = value;
    else
        ((unsigned short *)values)[i] = (unsigned short)(bits >> 16);
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, void *of, void *stream) {
    communicator *me = of;
    if (!me || !stream || (type != FLOAT32 && type != BFLOAT16) || operation != SUM || count > MOST_NUMBERS)
        return INVALID_ARGUMENT;
    if (++me->sums == 3 && goes_wrong("sum"))
        return REMOTE_ERROR;
    for (size_t i = 0; i < count; i++)
        me->with->numbers[me->rank][i] = number_at(from, i, type);
    meet(me);
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (int r = 0; r < me->ranks; r++)
            sum += me->with->numbers[r][i];
        store(to, i, type, sum);
    }
    meet(me);
    return SUCCESS;
}

int ncclCommGetAsyncError(void *of, int *error) {
    (void)of;
    *error = SUCCESS;
    return SUCCESS;
}

int ncclCommDestroy(void *of) {
    communicator *me = of;
    if (goes_wrong("tell"))
        fprintf(stderr, "rank %d of %d: %d sums of %d multiprocessors\n", me->rank, me->ranks, me->sums,
                me->most_ctas < 0 ? 0 : me->most_ctas);
    munmap(me->with, sizeof(shared));
    free(me);
    return SUCCESS;
}

int ncclCommAbort(void *of) {
    (void)of; /* its memory stays: the program ends */
    return SUCCESS;
}
