/* Ranks, one for each GPU: threads of this process, or one a process. They add up what they have with NCCL, and none waits for
   ever: a rank that fails ends the others, and so does one that does nothing for a time. The CUDA driver and NCCL are found
   when the program runs. Without them ranks are contexts of the host, and their sums plain loops. For Linux.

   Include gemmepi.h before it, and define _POSIX_C_SOURCE 200809L before that. */
#ifndef RANKS_H
#define RANKS_H

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the driver and NCCL, declared by hand: nothing of either is needed to build. A device is its number ---- */

#define DRIVER_FUNCTIONS(X)                                                           \
    X(int, cuInit, (unsigned flags))                                                  \
    X(int, cuGetErrorName, (int error, const char **name))                            \
    X(int, cuDeviceGetCount, (int *count))                                            \
    X(int, cuDeviceGetName, (char *name, int size, int device))                       \
    X(int, cuDeviceCanAccessPeer, (int *can, int device, int peer))                   \
    X(int, cuDevicePrimaryCtxRetain, (void **context, int device))                    \
    X(int, cuCtxSetCurrent, (void *context))                                          \
    X(int, cuCtxGetStreamPriorityRange, (int *least, int *greatest))                  \
    X(int, cuStreamCreateWithPriority, (void **stream, unsigned flags, int priority)) \
    X(int, cuStreamDestroy_v2, (void *stream))                                        \
    X(int, cuStreamQuery, (void *stream))                                             \
    X(int, cuStreamWaitEvent, (void *stream, void *event, unsigned flags))            \
    X(int, cuEventCreate, (void **event, unsigned flags))                             \
    X(int, cuEventDestroy_v2, (void *event))                                          \
    X(int, cuEventRecord, (void *event, void *stream))

typedef struct unique_id {
    char bytes[128];
} unique_id; /* ncclUniqueId, which goes by value */

/* ncclConfig_t of 2.17, which later ones accept as well. */
typedef struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, cluster_size, least_ctas, most_ctas; /* INT_MIN: NCCL's choice */
    const char *network;
} nccl_config;

#define NCCL_FUNCTIONS(X)                                                                                    \
    X(int, ncclGetVersion, (int *version))                                                                   \
    X(const char *, ncclGetErrorString, (int result))                                                        \
    X(const char *, ncclGetLastError, (void *communicator))                                                  \
    X(int, ncclGetUniqueId, (unique_id * id))                                                                \
    X(int, ncclCommInitRankConfig,                                                                           \
      (void **communicator, int ranks, unique_id id, int rank, nccl_config *config))                         \
    X(int, ncclAllReduce,                                                                                    \
      (const void *from, void *to, size_t count, int type, int operation, void *communicator, void *stream)) \
    X(int, ncclCommGetAsyncError, (void *communicator, int *result))                                         \
    X(int, ncclCommAbort, (void *communicator))                                                              \
    X(int, ncclCommDestroy, (void *communicator))

enum { CUDA_NOT_READY = 600, NON_BLOCKING_STREAM = 1, EVENT_WITHOUT_TIME = 2 };
enum { NCCL_FLOAT32 = 7, NCCL_BFLOAT16 = 9, NCCL_SUM = 0, NCCL_IN_PROGRESS = 7 };

/* The first in which a communicator may be given a number of multiprocessors. */
enum { OLDEST_NCCL = 21700 };

#define MEMBER(result, name, parameters) result(*name) parameters;
typedef struct cuda_functions {
    DRIVER_FUNCTIONS(MEMBER)
} cuda_functions;
typedef struct nccl_functions {
    NCCL_FUNCTIONS(MEMBER)
    int version;
    char path[512];
} nccl_functions;
#undef MEMBER

/* Returns the name of a function that the library lacks, or NULL. */
static const char *take_function(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found); /* C has no cast from void * to a function */
    return found ? NULL : name;
}

#define TAKE(result, name, parameters) missing = missing ? missing : take_function(library, #name, &to->name);

/* Both return 1, or 0 with the reason. */
static int load_driver(cuda_functions *to, char *reason, size_t size) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    const char *missing = NULL;
    if (!library)
        return snprintf(reason, size, "%s", dlerror()), 0;
    DRIVER_FUNCTIONS(TAKE)
    if (missing)
        return snprintf(reason, size, "libcuda.so.1 has no %s", missing), 0;
    const int error = to->cuInit(0);
    if (error)
        return snprintf(reason, size, "cuInit returned %d", error), 0;
    return 1;
}

static int try_nccl(nccl_functions *to, const char *path, char *reason, size_t size) {
    void *library = dlopen(path, RTLD_NOW);
    const char *missing = NULL;
    if (!library)
        return snprintf(reason, size, "%s", dlerror()), 0;
    NCCL_FUNCTIONS(TAKE)
    if (missing)
        return snprintf(reason, size, "%s has no %s: it is no NCCL, or older than 2.17", path, missing), 0;
    if (to->ncclGetVersion(&to->version) || to->version < OLDEST_NCCL)
        return snprintf(reason, size, "%s is NCCL of version code %d, older than 2.17 (%d)", path,
                        to->version, OLDEST_NCCL),
               0;
    snprintf(to->path, sizeof to->path, "%s", path);
    return 1;
}
#undef TAKE

static int try_wheel(nccl_functions *to, const char *prefix, char *reason, size_t size) {
    char pattern[1024];
    glob_t found;
    int taken = 0;
    snprintf(pattern, sizeof pattern, "%s/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2", prefix);
    if (glob(pattern, 0, NULL, &found))
        return 0;
    for (size_t i = 0; i < found.gl_pathc && !taken; i++)
        taken = try_nccl(to, found.gl_pathv[i], reason, size);
    globfree(&found);
    return taken;
}

/* The wheels nvidia-nccl-cu12 and -cu13: of a python3 on PATH, whose folder may be that of a virtual environment, or pip's own places. */
static int try_wheels(nccl_functions *to, char *reason, size_t size) {
    const char *folders = getenv("PATH"), *home = getenv("HOME");
    char path[1024];
    for (int length; folders && *folders; folders += length + (folders[length] == ':')) {
        length = (int)strcspn(folders, ":");
        snprintf(path, sizeof path, "%.*s/python3", length, folders);
        if (access(path, X_OK))
            continue;
        snprintf(path, sizeof path, "%.*s/..", length, folders);
        if (try_wheel(to, path, reason, size))
            return 1;
    }
    snprintf(path, sizeof path, "%s/.local", home ? home : "");
    return try_wheel(to, "/usr/local", reason, size) || (home && try_wheel(to, path, reason, size));
}

/* given: a file, or a folder that has it; NULL: the system's, else that of PyPI's wheels. */
static int load_nccl(nccl_functions *to, const char *given, char *reason, size_t size) {
    char path[1024];
    /* NVLink multicast stays off, unless the user's environment has it on: NCCL uses multicast memory where the driver says that
       there is some, and fails where a virtual machine or container then does not hand it out. */
    setenv("NCCL_NVLS_ENABLE", "0", 0);
    if (!given)
        return try_nccl(to, "libnccl.so.2", reason, size) || try_wheels(to, reason, size);
    snprintf(path, sizeof path, "%s/libnccl.so.2", given);
    if (access(path, R_OK))
        snprintf(path, sizeof path, "%s%s", strchr(given, '/') ? "" : "./", given);
    return try_nccl(to, path, reason, size);
}

/* ---- ranks ---- */

typedef struct team team;

/* Sums that run at the same time as products, and those that have the GPU to themselves, are of a communicator each. */
enum { ALONE, BESIDE_PRODUCTS, COMMUNICATORS };

typedef struct rank {
    team *all;
    int number, device; /* device -1: the host */
    gemmepi_context *context;
    gemmepi_context *beside; /* whose products leave team.ctas multiprocessors to sums */
    gemmepi_stream stream;   /* of products */
    gemmepi_stream sums;     /* the second stream, of sums */
    void *made, *summed;     /* events: what is to be added up has been made, all sums are there */
    void *communicators[COMMUNICATORS];
    pthread_t thread;
    /* under the lock */
    const char *doing;
    double since;
    int has_ended;
    char sentence[700]; /* why it failed */
} rank;

struct team {
    const cuda_functions *driver; /* NULL: contexts of the host */
    const nccl_functions *nccl;   /* NULL: sums in plain loops between threads */
    int count, here;              /* of all processes, and of this one */
    int ctas;        /* multiprocessors that a sum during products uses at most; 0: as many as NCCL likes */
    double patience; /* seconds without progress, after which a rank has failed */
    const char *id_path; /* file by which processes share NCCL's ids; NULL: one process */
    unique_id ids[COMMUNICATORS];
    rank *of;      /* those of this process */
    float **parts; /* what plain sums add up, by rank */
    void (*work)(rank *);
    void *job;
    pthread_mutex_t lock;
    pthread_cond_t change;
    int failed, waiting; /* failed: the first rank that did, or -1; waiting: in meet */
    long round;
};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void doze(void) {
    const struct timespec while_ = {0, 2000000};
    nanosleep(&while_, NULL);
}

/* The thread's end. Kernels of NCCL's that wait for other GPUs end with their communicator. */
static void leave(rank *me) {
    for (int i = 0; i < COMMUNICATORS; i++)
        if (me->communicators[i])
            me->all->nccl->ncclCommAbort(me->communicators[i]);
    pthread_mutex_lock(&me->all->lock);
    me->has_ended = 1;
    pthread_mutex_unlock(&me->all->lock);
    pthread_exit(NULL);
}

static void note_failure(rank *me, const char *format, va_list values) {
    if (!me->sentence[0])
        vsnprintf(me->sentence, sizeof me->sentence, format, values);
    if (me->all->failed < 0)
        me->all->failed = me->number;
    pthread_cond_broadcast(&me->all->change);
}

/* Ends this rank with a sentence, and the others as soon as they look. Does not return. */
static void stop(rank *me, const char *format, ...) {
    va_list values;
    va_start(values, format);
    pthread_mutex_lock(&me->all->lock);
    note_failure(me, format, values);
    pthread_mutex_unlock(&me->all->lock);
    va_end(values);
    leave(me);
}

static void check(rank *me, gemmepi_status status) {
    if (status)
        stop(me, "%s: %s", gemmepi_status_name(status), gemmepi_last_error());
}

static void check_cuda(rank *me, int error, const char *what) {
    const char *name = "an unknown error";
    if (error)
        me->all->driver->cuGetErrorName(error, &name), stop(me, "%s: %s", what, name);
}

static void check_nccl(rank *me, int result, const char *what) {
    if (result)
        stop(me, "%s: %s. NCCL's last words: %s (NCCL_DEBUG=WARN says more)", what,
             me->all->nccl->ncclGetErrorString(result),
             me->all->nccl->ncclGetLastError(me->communicators[ALONE]));
}

/* Ends this rank if another has failed. */
static void look_around(rank *me) {
    pthread_mutex_lock(&me->all->lock);
    const int failed = me->all->failed >= 0;
    pthread_mutex_unlock(&me->all->lock);
    if (failed)
        leave(me);
}

/* Its patience counts from here. what is constant. */
static void turn_to(rank *me, const char *what) {
    pthread_mutex_lock(&me->all->lock);
    me->doing = what;
    me->since = seconds();
    pthread_mutex_unlock(&me->all->lock);
    look_around(me);
}

/* Waits for the other ranks of this process. */
static void meet(rank *me) {
    team *all = me->all;
    turn_to(me, "waiting for the other ranks");
    pthread_mutex_lock(&all->lock);
    const long round = all->round;
    if (++all->waiting == all->here) {
        all->waiting = 0;
        all->round++;
        pthread_cond_broadcast(&all->change);
    }
    while (all->round == round && all->failed < 0)
        pthread_cond_wait(&all->change, &all->lock);
    const int met = all->round != round;
    pthread_mutex_unlock(&all->lock);
    if (!met)
        leave(me);
}

/* Waits until the stream of products has done all, and with it the sums that it waits for. gemmepi_synchronize and copies wait in the
   driver, where a rank would not see that another has failed: they come after this. */
static void finish(rank *me) {
    const cuda_functions *cuda = me->all->driver;
    int result = 0;
    turn_to(me, "waiting for its products and sums to be done");
    while (cuda && (result = cuda->cuStreamQuery(me->stream)) == CUDA_NOT_READY) {
        for (int i = 0, error = 0; i < COMMUNICATORS && me->communicators[i]; i++) {
            check_nccl(me, me->all->nccl->ncclCommGetAsyncError(me->communicators[i], &error), "asking NCCL");
            check_nccl(me, error == NCCL_IN_PROGRESS ? 0 : error, "a sum over the GPUs");
        }
        look_around(me);
        sched_yield();
    }
    check_cuda(me, result, "products and sums");
}

/* ---- sums ---- */

/* Each rank adds up its share of the elements, in the order of ranks, and hands the sums to all. */
static void add_up_here(rank *me, float *buffer, int64_t count) {
    const team *all = me->all;
    all->parts[me->number] = buffer;
    meet(me);
    for (int64_t i = count * me->number / all->count; i < count * (me->number + 1) / all->count; i++) {
        float sum = 0;
        for (int r = 0; r < all->count; r++)
            sum += all->parts[r][i];
        for (int r = 0; r < all->count; r++)
            all->parts[r][i] = sum;
    }
    meet(me);
}

/* buffer (F32 or BF16) becomes the sum of all ranks' buffers: on the second stream during products, else on theirs. */
static void add_up(rank *me, void *buffer, int64_t count, gemmepi_dtype dtype, int is_beside) {
    const nccl_functions *nccl = me->all->nccl;
    turn_to(me, "adding up over the ranks");
    if (me->all->count == 1)
        return;
    if (nccl)
        check_nccl(me,
                   nccl->ncclAllReduce(buffer, buffer, (size_t)count,
                                       dtype == GEMMEPI_BF16 ? NCCL_BFLOAT16 : NCCL_FLOAT32, NCCL_SUM,
                                       me->communicators[is_beside ? BESIDE_PRODUCTS : ALONE],
                                       is_beside ? me->sums : me->stream),
                   "ncclAllReduce");
    else
        add_up_here(me, buffer, count);
}

/* What comes to the stream `then` waits for what is in the stream `first` now. On the host all is done in the order of calls. */
static void order(rank *me, gemmepi_stream first, void *event, gemmepi_stream then) {
    const cuda_functions *cuda = me->all->driver;
    if (!cuda)
        return;
    check_cuda(me, cuda->cuEventRecord(event, first), "cuEventRecord");
    check_cuda(me, cuda->cuStreamWaitEvent(then, event, 0), "cuStreamWaitEvent");
}

/* ---- beginning and end ---- */

/* Rank 0 of several processes leaves NCCL's ids in a file, which appears under its name when it is whole; the others wait for it. */
static void share_ids(rank *me) {
    team *all = me->all;
    char aside[1024];
    FILE *file;
    for (int i = 0; i < COMMUNICATORS && me->number == 0; i++)
        check_nccl(me, all->nccl->ncclGetUniqueId(&all->ids[i]), "ncclGetUniqueId");
    if (all->id_path && me->number == 0) {
        if (access(all->id_path, F_OK) == 0)
            stop(me, "%s is there already: --id needs a new name for each run", all->id_path);
        snprintf(aside, sizeof aside, "%s.new", all->id_path);
        file = fopen(aside, "wb");
        const int is_whole = file && fwrite(all->ids, sizeof all->ids, 1, file) == 1;
        if (!file || fclose(file) || !is_whole || rename(aside, all->id_path))
            stop(me, "%s: cannot be written", all->id_path);
    } else if (all->id_path) {
        turn_to(me, "waiting for the file of NCCL's ids, which rank 0 writes");
        while (!(file = fopen(all->id_path, "rb")))
            look_around(me), doze();
        const int is_whole = fread(all->ids, sizeof all->ids, 1, file) == 1;
        if (fclose(file) || !is_whole)
            stop(me, "%s: has no ids of NCCL", all->id_path);
    } else
        meet(me);
}

/* All ranks have read the id's file when they are connected. */
static void connect_ranks(rank *me) {
    team *all = me->all;
    share_ids(me);
    turn_to(me, "connecting with the other ranks (ncclCommInitRank)");
    for (int i = 0; i < COMMUNICATORS; i++) {
        nccl_config config = {sizeof config, 0xcafebeef, OLDEST_NCCL, INT_MIN,
                              INT_MIN,       INT_MIN,    INT_MIN,     NULL};
        if (i == BESIDE_PRODUCTS && all->ctas)
            config.most_ctas = all->ctas;
        check_nccl(me,
                   all->nccl->ncclCommInitRankConfig(&me->communicators[i], all->count, all->ids[i],
                                                     me->number, &config),
                   "ncclCommInitRank");
    }
    if (all->id_path && me->number == 0)
        remove(all->id_path);
}

/* One or two contexts of gemmepi's, two streams, and the communicators. NCCL works with the device that is current to the thread. Its primary context
   is kept for the next ranks, until the program ends. */
static void open_rank(rank *me) {
    const cuda_functions *cuda = me->all->driver;
    gemmepi_config config = {.device = cuda ? GEMMEPI_DEVICE(me->device) : GEMMEPI_DEVICE_HOST};
    gemmepi_context_details details;
    turn_to(me, "opening its device");
    check(me, gemmepi_create(&config, &me->context));
    check(me, gemmepi_context_info(me->context, &details));
    me->beside = me->context;
    if (me->all->ctas && details.multiprocessors > me->all->ctas) { /* which the host has not */
        config.multiprocessors = details.multiprocessors - me->all->ctas;
        check(me, gemmepi_create(&config, &me->beside));
    }
    check(me, gemmepi_stream_create(me->context, &me->stream));
    if (cuda) {
        int least, greatest;
        void *primary;
        check_cuda(me, cuda->cuDevicePrimaryCtxRetain(&primary, me->device), "cuDevicePrimaryCtxRetain");
        check_cuda(me, cuda->cuCtxSetCurrent(primary), "cuCtxSetCurrent");
        /* The greatest priority: else a sum would wait until the next product has begun all its blocks. */
        check_cuda(me, cuda->cuCtxGetStreamPriorityRange(&least, &greatest), "cuCtxGetStreamPriorityRange");
        check_cuda(me, cuda->cuStreamCreateWithPriority(&me->sums, NON_BLOCKING_STREAM, greatest),
                   "cuStreamCreateWithPriority");
        check_cuda(me, cuda->cuEventCreate(&me->made, EVENT_WITHOUT_TIME), "cuEventCreate");
        check_cuda(me, cuda->cuEventCreate(&me->summed, EVENT_WITHOUT_TIME), "cuEventCreate");
    } else
        check(me, gemmepi_stream_create(me->context, &me->sums));
    if (me->all->nccl && me->all->count > 1)
        connect_ranks(me);
}

static void close_rank(rank *me) {
    const cuda_functions *cuda = me->all->driver;
    finish(me);
    turn_to(me, "closing its device");
    for (int i = 0; i < COMMUNICATORS; i++) {
        void *communicator = me->communicators[i];
        me->communicators[i] = NULL;
        if (communicator)
            check_nccl(me, me->all->nccl->ncclCommDestroy(communicator), "ncclCommDestroy");
    }
    if (cuda) {
        check_cuda(me, cuda->cuEventDestroy_v2(me->made), "cuEventDestroy");
        check_cuda(me, cuda->cuEventDestroy_v2(me->summed), "cuEventDestroy");
        check_cuda(me, cuda->cuStreamDestroy_v2(me->sums), "cuStreamDestroy");
        check_cuda(me, cuda->cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
    } else
        check(me, gemmepi_stream_destroy(me->context, me->sums));
    check(me, gemmepi_stream_destroy(me->context, me->stream));
    if (me->beside != me->context)
        gemmepi_destroy(me->beside);
    gemmepi_destroy(me->context);
}

static void *begin_rank(void *given) {
    rank *me = given;
    open_rank(me);
    me->all->work(me);
    close_rank(me);
    pthread_mutex_lock(&me->all->lock);
    me->has_ended = 1;
    pthread_mutex_unlock(&me->all->lock);
    return NULL;
}

static void lose_patience(rank *me, const char *format, ...) {
    va_list values;
    va_start(values, format);
    note_failure(me, format, values);
    va_end(values);
}

/* Returns how many of this process's ranks have not ended. One that was busy with one thing for too long has failed. */
static int count_busy(team *all) {
    int busy = 0;
    pthread_mutex_lock(&all->lock);
    for (int i = 0; i < all->here; i++) {
        rank *r = &all->of[i];
        busy += !r->has_ended;
        if (!r->has_ended && all->failed < 0 && seconds() - r->since > all->patience)
            for (int j = 0; j < all->here;
                 j++) /* the one that hangs is among those that have not moved for so long */
                if (!all->of[j].has_ended && seconds() - all->of[j].since > 0.9 * all->patience)
                    lose_patience(
                        &all->of[j],
                        "has been %s for %.0f s, and gives up: it or another rank hangs, or a process was killed",
                        all->of[j].doing, all->patience);
    }
    pthread_mutex_unlock(&all->lock);
    return busy;
}

/* Runs work on every rank of this process. If one fails, each says why it ended, and so does the program: a rank that waits in the
   driver or in NCCL, where nothing reaches it, gets five seconds. */
static void run_ranks(team *all) {
    double failed_at = 0;
    for (int i = 0; i < all->here; i++) {
        rank *r = &all->of[i];
        r->doing = "beginning", r->since = seconds();
        if (pthread_create(&r->thread, NULL, begin_rank, r)) {
            fprintf(stderr, "rank %d: no thread can be made\n", r->number);
            exit(1);
        }
    }
    while (count_busy(all) && (failed_at == 0 || seconds() < failed_at + 5)) {
        pthread_mutex_lock(&all->lock);
        if (all->failed >= 0 && failed_at == 0)
            failed_at = seconds();
        pthread_mutex_unlock(&all->lock);
        doze();
    }
    pthread_mutex_lock(&all->lock);
    for (int i = 0; i < all->here && all->failed >= 0; i++) {
        const rank *r = &all->of[i];
        if (r->sentence[0])
            fprintf(stderr, "rank %d: %s\n", r->number, r->sentence);
        else
            fprintf(stderr, "rank %d: ends, because rank %d has failed%s%s\n", r->number, all->failed,
                    r->has_ended ? "" : "; it was still ", r->has_ended ? "" : r->doing);
    }
    pthread_mutex_unlock(&all->lock);
    fflush(NULL);
    for (int i = 0; i < all->here; i++)
        if (all->of[i].has_ended)
            pthread_join(all->of[i].thread, NULL);
    if (all->failed >= 0)
        _exit(1); /* not exit: CUDA would wait for its GPUs there */
}

#endif
