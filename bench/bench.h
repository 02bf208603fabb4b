/* The measuring machinery: a device (or the host in its place), its memory, and timing by turns. It knows
   nothing of what is measured: rows come from the lists (elementwise.c, linear.c, products.c), which give each
   a job to run and others to hold it against. Functions return 1, or 0 with a sentence in bench.fault. */
#ifndef GEMMEPI_BENCH_BENCH_H
#define GEMMEPI_BENCH_BENCH_H

#include <math.h>
#include <stddef.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gemmepi.h"

#include "driver.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

enum {
    BENCH_MOST_ROUNDS = 1000,
    BENCH_MOST_ROWS = 1024,
    BENCH_DTYPES = 9,          /* as many as gemmepi_dtype has values */
    BENCH_BLOCK = 2 << 20,     /* random numbers, repeated to fill tensors */
    BENCH_BATCH_TIME = 2000,   /* microseconds of a batch of runs at least, */
    BENCH_BATCH_RUNS = 5,      /* and runs of it on a GPU */
    BENCH_CALLS = 1000,        /* of a block that measures the host's time, */
    BENCH_CALLS_IN_QUEUE = 500 /* and launches between two waits: the driver's queue must not fill up */
};

typedef struct bench {
    gemmepi_context *context;
    gemmepi_context_details details;
    gemmepi_stream stream;
    driver driver; /* on a GPU alone, as all up to `empty` */
    int device;
    void *primary, *began, *ended, *module, *empty;
    char *memory;     /* of the row that is measured */
    const void *kept; /* whose tensors products.c has left in it; NULL: nothing to rely on */
    float *normals;
    char *blocks[BENCH_DTYPES]; /* the normals in each dtype, on the device; NULL until needed */
    int is_ampere;              /* ours and the opponents have none of the kernels that only Hopper has */
    int rounds;
    double warm; /* seconds of rounds ahead of those of a row of products */
    size_t size; /* bytes of a main tensor */
    double plan_seconds;
    int cublaslt_version; /* of what products are held against; 0: nothing yet */
    char fault[512];
} bench;

typedef int (*bench_call)(bench *b, void *user);

/* What is timed by turns in a row. */
enum {
    BENCH_OURS,
    BENCH_OTHER,    /* what ours is held against; BENCH_LAYER, BENCH_PRODUCT: bare products */
    BENCH_COPY,     /* BENCH_LAYER: of as many bytes as its passes move */
    BENCH_EPILOGUE, /* BENCH_PRODUCT: cuBLASLt's product with its own epilogue */
    BENCH_PASS,     /* BENCH_PRODUCT: cuBLASLt's product, then a pass of ours */
    BENCH_SERIES
};

/* What a row's list makes of it to be measured. */
typedef struct bench_job {
    void *user;
    bench_call calls[BENCH_SERIES]; /* each once, without waiting; NULL: the row has none */
    bench_call check;               /* of what the runs have left */
    double bytes;                   /* that a run moves; 0: that is not the question */
    int launches;                   /* of a run of ours */
    int products;                   /* BENCH_LAYER: of the other */
    int least_runs;                 /* of a batch on a GPU; 0: BENCH_BATCH_RUNS */
    gemmepi_plan_details plan;      /* BENCH_PRODUCT: ours */
} bench_job;

typedef enum bench_kind {
    BENCH_SPEED, /* time of the other / time of ours, on the device: the bound is the least that is wanted */
    BENCH_HOST_COST, /* time of ours / time of the other, on the host: the bound is the most that is wanted */
    BENCH_ADDED,     /* likewise on the device */
    BENCH_LAYER,     /* time of ours / what the other, its bare products, and the copy allow: likewise */
    BENCH_PRODUCT    /* time of ours / the bare product's: likewise */
} bench_kind;

typedef struct bench_row {
    bench_kind kind;
    const char *group;
    char name[64], dtype[24]; /* without commas */
    double bound;             /* 0: none */
    int64_t m, n, k;          /* BENCH_PRODUCT */
    const char *epilogue;     /* BENCH_PRODUCT */
    int drawn;                /* BENCH_PRODUCT: in the chart, if that has a panel for the epilogue */
    const void *recipe;       /* the list's own */
    size_t (*memory)(const struct bench_row *row, size_t size);
    int (*open)(bench *b, const struct bench_row *row, bench_job *job);
    void (*close)(bench_job *job);
} bench_row;

typedef struct bench_list {
    bench_row rows[BENCH_MOST_ROWS];
    int count;
} bench_list;

typedef struct bench_result {
    int rounds, launches, products;
    double bytes;
    gemmepi_plan_details plan;                     /* BENCH_PRODUCT */
    int measured[BENCH_SERIES];                    /* 1: the row has this series */
    double times[BENCH_SERIES][BENCH_MOST_ROUNDS]; /* microseconds */
} bench_result;

/* >>faults and time */

static int bench_fail(bench *b, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(b->fault, sizeof b->fault, format, arguments);
    va_end(arguments);
    return 0;
}

/* Of a tensor, up to where the next may begin. */
static size_t bench_unit(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

static int bench_ok(bench *b, gemmepi_status status) {
    return status == GEMMEPI_OK || bench_fail(b, "%s: %s", gemmepi_status_name(status), gemmepi_last_error());
}

static int bench_did(bench *b, int result, const char *what) {
    const char *name = NULL;
    if (!result)
        return 1;
    b->driver.error_name(result, &name);
    return bench_fail(b, "%s: the CUDA driver returned %s (%d)", what, name ? name : "an unknown error",
                      result);
}

static double bench_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* >>memory of the device */

static driver_address bench_address(const void *pointer) {
    return (driver_address)(uintptr_t)pointer;
}

static int bench_copy(bench *b, void *to, const void *from, size_t bytes) {
    if (!b->details.is_host)
        return bench_did(b, b->driver.copy(bench_address(to), bench_address(from), bytes, b->stream),
                         "a copy");
    memcpy(to, from, bytes);
    return 1;
}

static int bench_set_bytes(bench *b, void *to, unsigned char value, size_t bytes) {
    if (!b->details.is_host)
        return bench_did(b, b->driver.set_bytes(bench_address(to), value, bytes, b->stream),
                         "cuMemsetD8Async");
    memset(to, value, bytes);
    return 1;
}

static int bench_set_floats(bench *b, void *to, float value, size_t count) {
    unsigned word;
    size_t i;
    memcpy(&word, &value, sizeof word);
    if (!b->details.is_host)
        return bench_did(b, b->driver.set_words(bench_address(to), word, count, b->stream),
                         "cuMemsetD32Async");
    for (i = 0; i < count; i++)
        memcpy((char *)to + i * sizeof value, &value, sizeof value);
    return 1;
}

/* >>random numbers */

static double bench_uniform(uint64_t *state) { /* splitmix64, 0 to 1, both excluded */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 12) + 0.5) * ldexp(1, -52);
}

static void bench_make_normals(float *values, int count) {
    uint64_t state = 1;
    int i;
    for (i = 0; i < count; i += 2) {
        double radius = sqrt(-2 * log(bench_uniform(&state)));
        double angle = 6.283185307179586 * bench_uniform(&state);
        values[i] = (float)(radius * cos(angle));
        values[i + 1] = (float)(radius * sin(angle));
    }
}

/* x rounded to a type of so many exponent and mantissa bits; x is far from its largest number. */
static unsigned bench_encode(double x, int exponent_bits, int mantissa_bits) {
    int exponent, bias = (1 << (exponent_bits - 1)) - 1;
    double size = fabs(x);
    frexp(size, &exponent);
    exponent += bias - 1;
    if (exponent < 1 || size == 0)
        exponent = 1;
    return (x < 0 ? 1u << (exponent_bits + mantissa_bits) : 0) + ((unsigned)(exponent - 1) << mantissa_bits) +
           (unsigned)nearbyint(ldexp(size, mantissa_bits - exponent + bias));
}

static void bench_store(void *block, gemmepi_dtype dtype, int i, float value) {
    uint16_t half = 0;
    if (dtype == GEMMEPI_F32)
        memcpy((float *)block + i, &value, sizeof value);
    else if (dtype == GEMMEPI_E4M3)
        ((unsigned char *)block)[i] = (unsigned char)bench_encode(value, 4, 3);
    else {
        half = (uint16_t)(dtype == GEMMEPI_F16 ? bench_encode(value, 5, 10) : bench_encode(value, 8, 7));
        memcpy((uint16_t *)block + i, &half, sizeof half);
    }
}

static int bench_has_block(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_F32 || dtype == GEMMEPI_F16 || dtype == GEMMEPI_BF16 || dtype == GEMMEPI_E4M3;
}

/* Some of the normals times factor, on the device. *block is the caller's to free, also where this fails. */
static int bench_make_block(bench *b, gemmepi_dtype dtype, int first, int count, double factor,
                            char **block) {
    size_t bytes = (size_t)count * gemmepi_dtype_size(dtype);
    void *values, *pointer = NULL;
    int i, made;
    if (!bench_has_block(dtype))
        return bench_fail(b, "there are no random numbers of dtype %d", (int)dtype);
    values = malloc(bytes);
    if (!values)
        return bench_fail(b, "out of memory");
    for (i = 0; i < count; i++)
        bench_store(values, dtype, i, (float)(b->normals[first + i] * factor));
    made = bench_ok(b, gemmepi_alloc(b->context, bytes, &pointer));
    *block = pointer;
    made = made && bench_ok(b, gemmepi_upload(b->context, pointer, values, bytes, b->stream));
    free(values);
    return made;
}

static size_t bench_smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* A block of so many bytes from byte `start` on, over and over. */
static int bench_spread(bench *b, void *to, size_t bytes, const char *from, size_t block, size_t start) {
    size_t done = bench_smaller(bytes, block - start), more;
    if (!bench_copy(b, to, from + start, done))
        return 0;
    more = bench_smaller(bytes - done, start);
    if (more && !bench_copy(b, (char *)to + done, from, more))
        return 0;
    for (done += more; done < bytes; done += more) {
        more = bench_smaller(bytes - done, done);
        if (!bench_copy(b, (char *)to + done, to, more))
            return 0;
    }
    return 1;
}

/* Random normal numbers: the dtype's block, made when first asked for, from its turn-th sixteenth on. */
static int bench_fill(bench *b, void *to, gemmepi_dtype dtype, size_t bytes, int turn) {
    size_t block = BENCH_BLOCK * gemmepi_dtype_size(dtype);
    if (!b->blocks[dtype] && !bench_make_block(b, dtype, 0, BENCH_BLOCK, 1, &b->blocks[dtype]))
        return 0;
    return bench_spread(b, to, bytes, b->blocks[dtype], block, block / 16 * ((size_t)turn % 16));
}

/* >>opening and closing */

/* What launches are held against. The oldest PTX that has the target: any driver takes it. */
static int bench_load_empty(bench *b) {
    char text[160];
    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_%d\n.address_size 64\n.visible .entry empty() { ret; }\n",
             b->details.compute_capability < 80 ? b->details.compute_capability : 80);
    return bench_did(b, b->driver.module_load(&b->module, text), "loading an empty kernel") &&
           bench_did(b, b->driver.module_function(&b->empty, b->module, "empty"), "cuModuleGetFunction");
}

static int bench_launch_empty(bench *b) {
    return bench_did(b, b->driver.launch(b->empty, 1, 1, 1, 32, 1, 1, 0, b->stream, NULL, NULL),
                     "cuLaunchKernel");
}

/* The context that gemmepi uses too is made current, as in any program that works with CUDA. */
static int bench_open_driver(bench *b) {
    char reason[128];
    if (!driver_load(&b->driver, reason, sizeof reason))
        return bench_fail(b, "%s", reason);
    return bench_did(b, b->driver.device_get(&b->device, b->details.device), "cuDeviceGet") &&
           bench_did(b, b->driver.primary_retain(&b->primary, b->device), "cuDevicePrimaryCtxRetain") &&
           bench_did(b, b->driver.set_current(b->primary), "cuCtxSetCurrent") &&
           bench_did(b, b->driver.event_create(&b->began, 0), "cuEventCreate") &&
           bench_did(b, b->driver.event_create(&b->ended, 0), "cuEventCreate") && bench_load_empty(b);
}

/* Everything but the context, which the caller has created. */
static int bench_open(bench *b, size_t memory) {
    void *pointer = NULL;
    if (!bench_ok(b, gemmepi_context_info(b->context, &b->details)) ||
        !bench_ok(b, gemmepi_stream_create(b->context, &b->stream)) ||
        (!b->details.is_host && !bench_open_driver(b)))
        return 0;
    if (!bench_ok(b, gemmepi_alloc(b->context, memory, &pointer)))
        return 0;
    b->memory = pointer;
    b->normals = malloc(BENCH_BLOCK * sizeof(float));
    if (!b->normals)
        return bench_fail(b, "out of memory");
    bench_make_normals(b->normals, BENCH_BLOCK);
    return 1;
}

/* A context of the device whose plans take one route alone. */
static int bench_open_route(bench *b, gemmepi_route route, gemmepi_context **context) {
    gemmepi_config config;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE(b->details.device);
    config.routes = 1u << route;
    return bench_ok(b, gemmepi_create(&config, context));
}

/* Whatever bench_open has left, and the context. */
static void bench_close(bench *b) {
    int i;
    for (i = 0; i < BENCH_DTYPES; i++)
        gemmepi_free(b->context, b->blocks[i]);
    gemmepi_free(b->context, b->memory);
    free(b->normals);
    gemmepi_stream_destroy(b->context, b->stream);
    if (b->module)
        b->driver.module_unload(b->module);
    if (b->began)
        b->driver.event_destroy(b->began);
    if (b->ended)
        b->driver.event_destroy(b->ended);
    gemmepi_destroy(b->context);
    if (b->primary)
        b->driver.primary_release(b->device);
}

/* >>timing */

static int bench_repeat(bench *b, bench_call call, void *user, int count) {
    int i;
    for (i = 0; i < count; i++)
        if (!call(b, user))
            return 0;
    return 1;
}

/* Microseconds of one of count calls, from the first's start to the last's end. */
static int bench_time(bench *b, bench_call call, void *user, int count, double *microseconds) {
    double began = bench_seconds();
    float milliseconds = 0;
    if (b->details.is_host) {
        if (!bench_repeat(b, call, user, count))
            return 0;
        *microseconds = 1e6 * (bench_seconds() - began) / count;
        return 1;
    }
    if (!bench_did(b, b->driver.event_record(b->began, b->stream), "cuEventRecord") ||
        !bench_repeat(b, call, user, count) ||
        !bench_did(b, b->driver.event_record(b->ended, b->stream), "cuEventRecord") ||
        !bench_did(b, b->driver.event_synchronize(b->ended), "cuEventSynchronize") ||
        !bench_did(b, b->driver.event_elapsed(&milliseconds, b->began, b->ended), "cuEventElapsedTime"))
        return 0;
    *microseconds = 1e3 * (double)milliseconds / count;
    return 1;
}

/* How many calls make a batch, `least` of them or more. Warms up too. */
static int bench_batch(bench *b, bench_call call, void *user, int least, int *count) {
    double once;
    if (!bench_time(b, call, user, 1, &once) || !bench_time(b, call, user, least, &once))
        return 0;
    *count = once * 10000 < BENCH_BATCH_TIME ? 10000 : (int)ceil(BENCH_BATCH_TIME / once);
    if (*count < least)
        *count = least;
    return 1;
}

/* The row's series at a step of a round: each round begins with the next of them, and every other round goes
   backwards, so that none always follows the same. */
static int bench_turn(int round, int step, int count) {
    return (round + (round % 2 ? count - step : step)) % count;
}

/* Each round times all series. Rounds that begin before `warm` seconds have gone do not count: under products a GPU's clock falls to
   what its power limit allows within a tenth of a second; until then each kernel has its own. */
static int bench_speed(bench *b, const bench_job *job, double warm, bench_result *result) {
    int series[BENCH_SERIES], batches[BENCH_SERIES], count = 0, i;
    double began, unused;
    int least = b->details.is_host ? 1 : job->least_runs ? job->least_runs : BENCH_BATCH_RUNS;
    for (i = 0; i < BENCH_SERIES; i++)
        if (job->calls[i]) {
            if (!bench_batch(b, job->calls[i], job->user, least, &batches[i]))
                return 0;
            series[count++] = i;
        }
    began = bench_seconds();
    for (i = 0; i % count || bench_seconds() - began < warm; i++) {
        int s = series[bench_turn(i / count, i % count, count)];
        if (!bench_time(b, job->calls[s], job->user, batches[s], &unused))
            return 0;
    }
    for (i = 0; i < count * b->rounds; i++) {
        int round = i / count, s = series[bench_turn(round, i % count, count)];
        if (!bench_time(b, job->calls[s], job->user, batches[s], &result->times[s][round]))
            return 0;
    }
    return 1;
}

/* Microseconds of the host for one call, waits for the device left out. */
static int bench_host_time(bench *b, bench_call call, void *user, int launches, double *microseconds) {
    int some = BENCH_CALLS_IN_QUEUE / (launches > 1 ? launches : 1), calls = 0;
    double began, total = 0;
    for (; calls < BENCH_CALLS; calls += some) {
        began = bench_seconds();
        if (!bench_repeat(b, call, user, some))
            return 0;
        total += bench_seconds() - began;
        if (!bench_ok(b, gemmepi_synchronize(b->context, b->stream)))
            return 0;
    }
    *microseconds = 1e6 * total / calls;
    return 1;
}

static int bench_host_cost(bench *b, const bench_job *job, bench_result *result) {
    bench_call ours = job->calls[BENCH_OURS], other = job->calls[BENCH_OTHER];
    double warm;
    int i;
    if (!bench_host_time(b, ours, job->user, job->launches, &warm) ||
        !bench_host_time(b, other, job->user, 1, &warm))
        return 0;
    for (i = 0; i < b->rounds; i++)
        if (!bench_host_time(b, ours, job->user, job->launches, &result->times[BENCH_OURS][i]) ||
            !bench_host_time(b, other, job->user, 1, &result->times[BENCH_OTHER][i]))
            return 0;
    return 1;
}

/* The row, from its memory to the check of what it left. */
static int bench_measure(bench *b, const bench_row *row, bench_result *result) {
    bench_job job;
    int measured, i, of_products = row->kind != BENCH_SPEED && row->kind != BENCH_HOST_COST;
    memset(&job, 0, sizeof job);
    result->rounds = 0;
    if (row->kind != BENCH_PRODUCT)
        b->kept = NULL;
    if (!row->open(b, row, &job))
        return 0;
    measured = bench_ok(b, gemmepi_synchronize(b->context, b->stream)) &&
               (row->kind == BENCH_HOST_COST ? bench_host_cost(b, &job, result)
                                             : bench_speed(b, &job, of_products ? b->warm : 0, result)) &&
               bench_ok(b, gemmepi_synchronize(b->context, b->stream)) && job.check(b, job.user);
    if (measured)
        result->rounds = b->rounds;
    result->bytes = job.bytes;
    result->launches = job.launches;
    result->products = job.products;
    result->plan = job.plan;
    for (i = 0; i < BENCH_SERIES; i++)
        result->measured[i] = job.calls[i] != NULL;
    row->close(&job);
    return measured;
}

/* The clocks of an idle GPU are low. */
static int bench_warm_up(bench *b, size_t bytes) {
    double began = bench_seconds();
    int i;
    while (!b->details.is_host && bench_seconds() - began < 0.3) {
        for (i = 0; i < 20; i++)
            if (!bench_copy(b, b->memory + bytes / 2, b->memory, bytes / 2))
                return 0;
        if (!bench_ok(b, gemmepi_synchronize(b->context, b->stream)))
            return 0;
    }
    return 1;
}

#endif
