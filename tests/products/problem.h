/* Products to test with: described by hand or drawn from a seed, laid out in one block of device memory
   between sentinels, run through the public interface and held against oracle.h. */
#ifndef GEMMEPI_TESTS_PROBLEM_H
#define GEMMEPI_TESTS_PROBLEM_H

#include <stdarg.h>
#include <stdio.h>

#include "../test.h"
#include "oracle.h"

/* >>random numbers, the same on every machine */

static uint64_t random_hash(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

typedef struct rng {
    uint64_t state;
} rng;

static uint64_t rng_next(rng *r) {
    return random_hash(r->state++);
}

static int rng_below(rng *r, int n) {
    return (int)(rng_next(r) % (uint64_t)n);
}

/* true in one of n cases */
static int rng_one_in(rng *r, int n) {
    return rng_below(r, n) == 0;
}

static rng rng_seeded(uint64_t seed) {
    rng r = {0};
    r.state = random_hash(seed ^ 0x6a09e667f3bcc909u);
    return r;
}

/* >>devices */

typedef struct test_device {
    gemmepi_context *context;
    gemmepi_stream stream;
    char name[128];
    int which, is_host, has_fused;
    void *arena, *workspace; /* device memory, grown as needed */
    size_t arena_size, workspace_size;
} test_device;

static int test_device_open(test_device *device, int which, unsigned routes) {
    gemmepi_config config = {0};
    gemmepi_context_details details;
    memset(device, 0, sizeof *device);
    config.device = which;
    config.routes = routes;
    if (gemmepi_create(&config, &device->context) != GEMMEPI_OK)
        return 0;
    if (gemmepi_context_info(device->context, &details) != GEMMEPI_OK)
        return 0;
    snprintf(device->name, sizeof device->name, "%.100s%s", details.name,
             !routes                             ? ""
             : routes >> GEMMEPI_ROUTE_FUSED & 1 ? " by fused"
                                                 : " without fused");
    device->is_host = details.is_host;
    device->which = which;
    device->has_fused = details.compute_capability == 90;
    return 1;
}

static void test_device_close(test_device *device) {
    gemmepi_free(device->context, device->arena);
    gemmepi_free(device->context, device->workspace);
    gemmepi_destroy(device->context);
}

/* Opens what GEMMEPI_TEST_DEVICE names ("host" or a number), by default the host and a GPU where there is
   one. Returns how many, 0 if one that was named is not there. */
static int test_devices_open(test_device *devices) {
    const char *name = getenv("GEMMEPI_TEST_DEVICE");
    int count = 0;
    if (name != NULL && strcmp(name, "host") != 0 && !(name[0] >= '0' && name[0] <= '9')) {
        printf("GEMMEPI_TEST_DEVICE is %s; accepted are host and the number of a GPU\n", name);
        return 0;
    }
    if (name != NULL && name[0] >= '0' && name[0] <= '9') {
        count = test_device_open(devices, GEMMEPI_DEVICE(atoi(name)), 0);
        if (count == 0)
            printf("GEMMEPI_TEST_DEVICE is %s: %s\n", name, gemmepi_last_error());
        return count;
    }
    count = test_device_open(devices, GEMMEPI_DEVICE_HOST, 0);
    if (count == 0)
        printf("the host does not open: %s\n", gemmepi_last_error());
    if (count == 1 && name == NULL) {
        if (test_device_open(devices + 1, GEMMEPI_DEVICE(0), 0))
            count++;
        else
            printf("skipped on a GPU: %s\n", gemmepi_last_error());
    }
    return count;
}

/* As above, and a GPU that has the route fused twice more, without it and with it wherever it can be: so that each route is
   tested there, whatever is chosen. */
enum { TEST_MOST_DEVICES = 4 };

static int test_devices_open_with_routes(test_device devices[TEST_MOST_DEVICES]) {
    unsigned plain = 1u << GEMMEPI_ROUTE_PLAIN, fused = plain | 1u << GEMMEPI_ROUTE_FUSED;
    unsigned others = plain | 1u << GEMMEPI_ROUTE_LT | 1u << GEMMEPI_ROUTE_SPLIT;
    int count = test_devices_open(devices), gpu = count - 1;
    if (count > 0 && devices[gpu].has_fused) {
        count += test_device_open(devices + count, devices[gpu].which, others);
        count += test_device_open(devices + count, devices[gpu].which, fused);
    }
    return count;
}

/* Device memory of at least size bytes at *block. What it held is lost. */
static int test_device_reserve(test_device *device, void **block, size_t *have, size_t size) {
    if (size <= *have)
        return 1;
    if (gemmepi_free(device->context, *block) != GEMMEPI_OK)
        return 0;
    *block = NULL;
    *have = 0;
    if (gemmepi_alloc(device->context, size * 2, block) != GEMMEPI_OK)
        return 0;
    *have = size * 2;
    return 1;
}

/* >>problems */

enum {
    T_A,
    T_B,
    T_C,
    T_D,
    T_BIAS,
    T_AUX,
    T_BIAS_GRAD,
    T_RESIDUAL,
    T_SCALARS,
    T_SCALE_A,
    T_SCALE_B,
    T_SCALE_C,
    T_SCALE_D,
    T_SCALE_AUX,
    T_SCALE_RESIDUAL,
    T_AMAX_D,
    T_AMAX_AUX,
    T_FOUND_SCALE,
    T_AMAX_HISTORY,
    T_COUNT
};

static const char *const tensor_names[] = {"a",           "b",         "c",
                                           "d",           "bias",      "aux",
                                           "bias_grad",   "residual",  "scalars",
                                           "scale_a",     "scale_b",   "scale_c",
                                           "scale_d",     "scale_aux", "scale_residual",
                                           "amax_d",      "amax_aux",  "found_scale_d",
                                           "amax_history"};

/* What the operands are filled with. */
typedef enum fill {
    NORMAL,     /* products of about unit size              */
    POSITIVE,   /* no cancellation                          */
    CANCELLING, /* the terms of a sum cancel in pairs       */
    INTEGERS,   /* small, scales 1/2, 1, 2: sums are exact  */
    TWELVE_BITS /* A has 12 significant bits, B is -1, 0, 1 */
} fill;

typedef struct problem {
    uint64_t seed; /* of the values, and of everything if random */
    gemmepi_matmul_desc desc;
    fill fill;
    int has_alpha, has_beta;      /* else NULL                                                          */
    double alpha, beta;           /* 1 and 0 where NULL                                                 */
    int no_c;                     /* c is NULL although beta is given; beta is 0                        */
    int in_place[T_COUNT];        /* c, residual or aux are exactly d                                   */
    size_t shift[T_COUNT];        /* bytes from a multiple of 256 to the pointer                        */
    int by_plan;                  /* else gemmepi_matmul                                                */
    int own_workspace;            /* the caller's, else the context's                                   */
    const double *given[T_COUNT]; /* values in place of fill, [items, rows, columns] of op()       */
} problem;

/* A dense product of one dtype; the caller changes what differs. */
static problem problem_plain(gemmepi_dtype dtype, int64_t m, int64_t n, int64_t k,
                             gemmepi_epilogue epilogue) {
    problem p;
    memset(&p, 0, sizeof p);
    p.desc.m = m;
    p.desc.n = n;
    p.desc.k = k;
    p.desc.batch = 1;
    p.desc.a.dtype = dtype;
    if (dtype == GEMMEPI_E4M3 || dtype == GEMMEPI_E5M2)
        p.desc.d.dtype = dtype; /* D's own default is BF16 */
    p.desc.epilogue = epilogue;
    p.alpha = 1;
    p.seed = 1;
    return p;
}

static void problem_scale(problem *p, double alpha, double beta) {
    p->has_alpha = p->has_beta = 1;
    p->alpha = alpha;
    p->beta = beta;
}

static unsigned problem_activation(const problem *p) {
    return (unsigned)(p->desc.epilogue & GEMMEPI_ACTIVATION_MASK);
}

/* 0 means 1. */
static int64_t problem_batch(const problem *p) {
    return p->desc.batch == 0 ? 1 : p->desc.batch;
}

static int problem_accumulates(const problem *p) {
    return (p->desc.flags & GEMMEPI_ACCUMULATE) != 0;
}

static void problem_give_parameter(problem *p, double parameter) {
    p->desc.has_parameter = 1;
    p->desc.activation_parameter = parameter;
}

static int problem_has(const problem *p, gemmepi_epilogue flags) {
    return (p->desc.epilogue & flags) != 0;
}

static int problem_finds(const problem *p) {
    return (p->desc.flags & GEMMEPI_FIND_SCALE_D) != 0;
}

static int problem_is_empty(const problem *p) {
    return p->desc.m == 0 || p->desc.n == 0;
}

/* Whether a run writes the output t: sums are written over no rows, too. */
static int problem_writes(const problem *p, int t) {
    return !problem_is_empty(p) || t == T_BIAS_GRAD;
}

static int problem_has_mask(const problem *p) {
    return oracle_has_mask(p->desc.epilogue);
}

/* The rows and columns of op() of a matrix. */
typedef struct extents {
    int64_t rows, columns;
} extents;

static extents problem_extents(const problem *p, int t) {
    const gemmepi_matmul_desc *d = &p->desc;
    gemmepi_epilogue e = d->epilogue;
    extents x;
    int64_t *along = d->order == GEMMEPI_COLUMN_MAJOR ? &x.rows : &x.columns; /* the halves, and the bias */
    x.rows = t == T_B ? d->k : d->m;
    x.columns = t == T_A ? d->k : d->n;
    if (t == T_D || t == T_RESIDUAL)
        *along = oracle_result_extent(e, *along);
    if (t == T_AUX)
        *along = oracle_aux_extent(e, *along);
    return x;
}

/* t has d's shape, so that it may be exactly d. */
static int problem_fits_d(const problem *p, int t) {
    extents x = problem_extents(p, t), d = problem_extents(p, T_D);
    return x.rows == d.rows && x.columns == d.columns;
}

/* Halves that the product makes are of one length. */
static void problem_make_even(problem *p) {
    if (oracle_makes_halves(p->desc.epilogue) && p->desc.order == GEMMEPI_COLUMN_MAJOR)
        p->desc.m += p->desc.m % 2;
    else if (oracle_makes_halves(p->desc.epilogue))
        p->desc.n += p->desc.n % 2;
}

static int problem_bgrad_along_rows(const problem *p) {
    return problem_has(p, GEMMEPI_BGRAD_A) ||
           (problem_has(p, GEMMEPI_BGRAD) && p->desc.order == GEMMEPI_COLUMN_MAJOR);
}

static gemmepi_dtype dtype_or(gemmepi_dtype dtype, gemmepi_dtype otherwise) {
    return dtype ? dtype : otherwise;
}

/* What D is where desc leaves it to a: in 16 bits where a is fp8 and nothing is said of D's scale. */
static gemmepi_dtype type_of_result(const gemmepi_matmul_desc *desc) {
    int is_fp8 = desc->a.dtype == GEMMEPI_E4M3 || desc->a.dtype == GEMMEPI_E5M2;
    if (is_fp8 && !desc->d.scale.mode && !(desc->flags & (GEMMEPI_FIND_SCALE_D | GEMMEPI_AMAX_D)))
        return GEMMEPI_BF16;
    return desc->a.dtype ? desc->a.dtype : GEMMEPI_F32;
}

/* The dtype of a matrix or vector, by the rules for those left out. RELU's mask has none. */
static gemmepi_dtype problem_dtype(const problem *p, int t) {
    const gemmepi_matmul_desc *desc = &p->desc;
    gemmepi_dtype a = dtype_or(desc->a.dtype, GEMMEPI_F32), d = dtype_or(desc->d.dtype, type_of_result(desc));
    gemmepi_dtype added = oracle_is_fp8(d) ? GEMMEPI_BF16 : d;
    gemmepi_dtype vectors = d == GEMMEPI_I8 ? GEMMEPI_F32 : added;
    switch (t) {
    case T_A:
        return a;
    case T_B:
        return dtype_or(desc->b.dtype, a);
    case T_C:
        return problem_accumulates(p) ? d : dtype_or(desc->c.dtype, added);
    case T_RESIDUAL:
        return dtype_or(desc->residual.dtype, added);
    case T_AUX:
        return problem_has_mask(p) ? GEMMEPI_DTYPE_DEFAULT : dtype_or(desc->aux.dtype, d);
    case T_BIAS:
        return dtype_or(desc->bias.dtype, vectors);
    case T_BIAS_GRAD:
        return dtype_or(desc->bias_grad.dtype, vectors);
    default:
        return d;
    }
}

/* Results are whole numbers modulo 2^32. */
static int problem_is_whole(const problem *p) {
    return problem_dtype(p, T_D) == GEMMEPI_I32;
}

/* The matrix that a tensor is, or whose scales it is; NULL for the others. */
static gemmepi_matrix *problem_matrix(problem *p, int t) {
    gemmepi_matmul_desc *d = &p->desc;
    return t == T_A || t == T_SCALE_A                 ? &d->a
           : t == T_B || t == T_SCALE_B               ? &d->b
           : t == T_C || t == T_SCALE_C               ? &d->c
           : t == T_D || t == T_SCALE_D               ? &d->d
           : t == T_AUX || t == T_SCALE_AUX           ? &d->aux
           : t == T_RESIDUAL || t == T_SCALE_RESIDUAL ? &d->residual
                                                      : NULL;
}

static int tensor_of_scale(int t) {
    static const int of[] = {T_A, T_B, T_C, T_D, T_AUX, T_RESIDUAL};
    return of[t - T_SCALE_A];
}

static gemmepi_scale problem_scale_of(const problem *p, int t) {
    problem copy = *p;
    return problem_matrix(&copy, t)->scale;
}

/* Elements of one bias or bias_grad. */
static int64_t problem_length(const problem *p, int t) {
    extents x = problem_extents(p, t == T_BIAS_GRAD && problem_has(p, GEMMEPI_BGRAD) ? T_D : T_C);
    int by_rows = t == T_BIAS ? p->desc.order == GEMMEPI_COLUMN_MAJOR : problem_bgrad_along_rows(p);
    return by_rows ? x.rows : x.columns;
}

static int64_t problem_outer(const problem *p, int t) {
    return t == T_B || t == T_SCALE_B ? p->desc.n : p->desc.m;
}

static void matrix_space_out(gemmepi_matrix *matrix, const problem *p, int t, int64_t pad) {
    int64_t rows = problem_extents(p, t).rows, columns = problem_extents(p, t).columns;
    int along_rows = (p->desc.order == GEMMEPI_ROW_MAJOR) != (matrix->transposed != 0);
    matrix->ld = (along_rows ? columns : rows) + pad;
    matrix->ld += matrix->ld == 0;
    matrix->batch_stride = matrix->ld * (along_rows ? rows : columns) + pad;
    matrix->batch_stride += matrix->batch_stride == 0;
}

/* Gives every row and every item of the batch its own place, pad elements apart; a bias_grad for each
   item. */
static void problem_space_out(problem *p, int64_t pad) {
    gemmepi_matmul_desc *d = &p->desc;
    matrix_space_out(&d->a, p, T_A, pad);
    matrix_space_out(&d->b, p, T_B, pad);
    matrix_space_out(&d->c, p, T_C, pad);
    matrix_space_out(&d->d, p, T_D, pad);
    matrix_space_out(&d->aux, p, T_AUX, pad);
    matrix_space_out(&d->residual, p, T_RESIDUAL, pad);
    if (problem_has_mask(p)) {
        d->aux.ld = (d->aux.ld + 127) / 128 * 128;
        d->aux.batch_stride = d->aux.ld * (d->order ? d->n : d->m) + 128;
    }
    d->bias.batch_stride = (d->order ? d->m : d->n) + pad;
    d->bias_grad.batch_stride = (d->m + d->n) * (problem_has(p, GEMMEPI_GATED) ? 2 : 1) + pad;
}

/* Gives every item of the batch scales of its own. */
static void problem_space_out_scales(problem *p, int64_t pad) {
    int t;
    for (t = T_SCALE_A; t <= T_SCALE_RESIDUAL; t++) {
        gemmepi_scale *scale = &problem_matrix(p, t)->scale;
        scales s = oracle_scales(*scale, problem_outer(p, t), p->desc.k);
        if (scale->mode)
            scale->batch_stride = s.rows * (s.at.row > 1 ? s.at.row : s.columns) + pad;
    }
}

/* >>one line that says what a problem is */

typedef struct sentence {
    char text[1600];
    size_t length;
} sentence;

static void line_add(sentence *l, const char *format, ...) {
    va_list arguments;
    int written;
    va_start(arguments, format);
    written = vsnprintf(l->text + l->length, sizeof l->text - l->length, format, arguments);
    va_end(arguments);
    if (written > 0 && l->length + (size_t)written < sizeof l->text)
        l->length += (size_t)written;
}

static void line_add_scalar(sentence *l, const char *name, int given, double value) {
    if (given)
        line_add(l, " %s %g", name, value);
    else
        line_add(l, " %s NULL", name);
}

static void line_add_epilogue(sentence *l, gemmepi_epilogue epilogue) {
    static const char *const flags[] = {"BIAS",  "AUX",        "BACKWARD", "RESIDUAL",
                                        "BGRAD", "BGRAD_A",    "BGRAD_B",  "ACCUMULATE_BIAS_GRAD",
                                        "GATED", "GATE_FIRST", "UPSTREAM"};
    unsigned bit;
    line_add(l, " %s", activation_name(epilogue & GEMMEPI_ACTIVATION_MASK));
    for (bit = 0; bit < sizeof flags / sizeof *flags; bit++)
        if (epilogue & GEMMEPI_BIAS << bit)
            line_add(l, "|%s", flags[bit]);
}

static void line_add_scale(sentence *l, gemmepi_scale scale) {
    static const char *const modes[] = {"", " TENSOR", " OUTER", " VECTOR_128", " BLOCK_128"};
    if (scale.mode)
        line_add(l, "%s scale stride %lld", modes[scale.mode], (long long)scale.batch_stride);
}

static void line_add_tensor(sentence *l, int t, const gemmepi_matrix *matrix, const problem *p) {
    line_add(l, " %s{%s%s ld %lld stride %lld%s", tensor_names[t],
             matrix->dtype ? oracle_format(matrix->dtype).name : "0", matrix->transposed ? " transposed" : "",
             (long long)matrix->ld, (long long)matrix->batch_stride, p->in_place[t] ? " in place" : "");
    if (p->shift[t])
        line_add(l, " +%u", (unsigned)p->shift[t]);
    line_add_scale(l, matrix->scale);
    line_add(l, "}");
}

static sentence problem_line(const problem *p) {
    static const char *const computes[] = {"", " F32", " TF32", " F64", " I32", " F16"};
    static const char *const fills[] = {"normal", "positive", "cancelling", "integers", "twelve bits"};
    const gemmepi_matmul_desc *d = &p->desc;
    sentence l = {{0}, 0};
    line_add(&l, "%lldx%lldx%lld batch %lld %s%s", (long long)d->m, (long long)d->n, (long long)d->k,
             (long long)d->batch, d->order ? "column-major" : "row-major", computes[d->compute]);
    line_add_epilogue(&l, d->epilogue);
    if (d->has_parameter)
        line_add(&l, "(%g)", d->activation_parameter);
    line_add(
        &l, "%s%s%s%s%s%s%s", problem_accumulates(p) ? " accumulate" : "",
        d->flags & GEMMEPI_BATCH_INVARIANT ? " invariant" : "", d->flags & GEMMEPI_RELAXED ? " relaxed" : "",
        d->flags & GEMMEPI_DEVICE_SCALARS ? " device scalars" : "",
        d->flags & GEMMEPI_FAST_ACCUMULATION ? " fast accumulation" : "",
        d->flags & GEMMEPI_AMAX_D ? " amax of d" : "", d->flags & GEMMEPI_AMAX_AUX ? " amax of aux" : "");
    line_add_scalar(&l, "alpha", p->has_alpha, p->alpha);
    line_add_scalar(&l, "beta", p->has_beta, p->beta);
    line_add_tensor(&l, T_A, &d->a, p);
    line_add_tensor(&l, T_B, &d->b, p);
    line_add_tensor(&l, T_C, &d->c, p);
    line_add_tensor(&l, T_D, &d->d, p);
    if (problem_has(p, GEMMEPI_AUX | GEMMEPI_BACKWARD))
        line_add_tensor(&l, T_AUX, &d->aux, p);
    if (problem_has(p, GEMMEPI_RESIDUAL))
        line_add_tensor(&l, T_RESIDUAL, &d->residual, p);
    line_add(&l, " bias{%s stride %lld} bias_grad{%s stride %lld}",
             d->bias.dtype ? oracle_format(d->bias.dtype).name : "0", (long long)d->bias.batch_stride,
             d->bias_grad.dtype ? oracle_format(d->bias_grad.dtype).name : "0",
             (long long)d->bias_grad.batch_stride);
    line_add(&l, " alignment %u %s %s, %s values", (unsigned)d->alignment,
             p->by_plan ? "by plan" : "one shot", p->own_workspace ? "own workspace" : "context's workspace",
             fills[p->fill]);
    return l;
}

/* >>layout: every tensor in one block, its own bytes marked */

typedef struct tensor {
    view at;
    int64_t items, rows, columns;
    size_t offset, bytes; /* in the block; from the first to behind the last element, gaps included */
    int used, written;
} tensor;

typedef struct run {
    tensor tensors[T_COUNT];
    size_t size;
    unsigned char *before, *after; /* the block as uploaded, and as downloaded */
    unsigned char *writable;       /* the bits of each byte that may change    */
} run;

static void tensor_matrix(tensor *t, const problem *p, int which, gemmepi_matrix matrix) {
    gemmepi_dtype dtype = problem_dtype(p, which);
    int64_t rows = problem_extents(p, which).rows, columns = problem_extents(p, which).columns;
    int along_rows = (p->desc.order == GEMMEPI_ROW_MAJOR) != (matrix.transposed != 0);
    int64_t length = along_rows ? columns : rows;
    int64_t dense = dtype == GEMMEPI_DTYPE_DEFAULT ? (length + 127) / 128 * 128 : length;
    t->at = oracle_view(dtype, p->desc.order, matrix.transposed, matrix.ld ? matrix.ld : dense,
                        matrix.batch_stride);
    t->items = matrix.batch_stride == 0 ? 1 : problem_batch(p);
    t->rows = rows;
    t->columns = columns;
    t->used = 1;
}

static void tensor_vector(tensor *t, const problem *p, int which, gemmepi_vector vector, int along_rows) {
    view at = {NULL, GEMMEPI_DTYPE_DEFAULT, 0, 0, 0};
    at.dtype = problem_dtype(p, which);
    at.row = along_rows;
    at.column = !along_rows;
    at.item = vector.batch_stride;
    t->at = at;
    t->items = vector.batch_stride == 0 ? 1 : problem_batch(p);
    t->rows = along_rows ? problem_length(p, which) : 1;
    t->columns = along_rows ? 1 : problem_length(p, which);
    t->used = 1;
}

/* c without ld and batch_stride has d's layout; where its shape is another it is dense. */
static gemmepi_matrix problem_c(const problem *p) {
    gemmepi_matrix c = p->desc.c;
    int is_open = c.ld == 0 && c.batch_stride == 0;
    if (is_open && !problem_fits_d(p, T_C))
        c.batch_stride = p->desc.m * p->desc.n;
    else if (is_open)
        c.ld = p->desc.d.ld, c.batch_stride = p->desc.d.batch_stride;
    return c;
}

/* A number or a few, dense. */
static void tensor_numbers(tensor *t, gemmepi_dtype dtype, int64_t columns) {
    view at = {NULL, GEMMEPI_F64, 0, 1, 0};
    at.dtype = dtype;
    t->at = at;
    t->items = t->rows = t->used = 1;
    t->columns = columns;
}

/* d's lines and how long they are: rows, or column-major columns. */
static scales problem_found(const problem *p) {
    extents d = problem_extents(p, T_D);
    int by_rows = p->desc.order == GEMMEPI_ROW_MAJOR;
    return oracle_scales(p->desc.d.scale, by_rows ? d.rows : d.columns, by_rows ? d.columns : d.rows);
}

static void tensor_scale(tensor *t, const problem *p, int of) {
    gemmepi_scale scale = problem_scale_of(p, of);
    int finds = problem_finds(p) && of == T_SCALE_D;
    scales s = finds ? problem_found(p) : oracle_scales(scale, problem_outer(p, of), p->desc.k);
    if (!scale.mode)
        return;
    t->at = s.at;
    t->items = scale.batch_stride == 0 ? 1 : problem_batch(p);
    t->rows = s.rows;
    t->columns = s.columns;
    t->used = 1;
}

static void run_describe_numbers(run *r, const problem *p) {
    gemmepi_dtype accumulator = problem_dtype(p, T_A) == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    tensor *t = r->tensors;
    int i;
    if (p->desc.flags & GEMMEPI_DEVICE_SCALARS)
        tensor_numbers(t + T_SCALARS, GEMMEPI_F64, 2);
    for (i = T_SCALE_A; i <= T_SCALE_RESIDUAL; i++)
        tensor_scale(i == T_SCALE_D && problem_finds(p) ? t + T_FOUND_SCALE : t + i, p, i);
    if (p->desc.amax_history)
        tensor_numbers(t + T_AMAX_HISTORY, GEMMEPI_F32, p->desc.amax_history);
    t[T_FOUND_SCALE].written = t[T_AMAX_HISTORY].written = 1;
    if (p->desc.flags & GEMMEPI_AMAX_D)
        tensor_numbers(t + T_AMAX_D, accumulator, 1);
    if (p->desc.flags & GEMMEPI_AMAX_AUX)
        tensor_numbers(t + T_AMAX_AUX, accumulator, 1);
    t[T_AMAX_D].written = t[T_AMAX_AUX].written = 1;
}

static void run_describe(run *r, const problem *p) {
    const gemmepi_matmul_desc *desc = &p->desc;
    tensor *t = r->tensors;
    tensor_matrix(t + T_A, p, T_A, desc->a);
    tensor_matrix(t + T_B, p, T_B, desc->b);
    tensor_matrix(t + T_D, p, T_D, desc->d);
    t[T_D].written = 1;
    if (p->has_beta && !p->no_c)
        tensor_matrix(t + T_C, p, T_C, problem_c(p));
    if (problem_has(p, GEMMEPI_AUX | GEMMEPI_BACKWARD))
        tensor_matrix(t + T_AUX, p, T_AUX, desc->aux);
    t[T_AUX].written = problem_has(p, GEMMEPI_AUX);
    if (problem_has(p, GEMMEPI_RESIDUAL))
        tensor_matrix(t + T_RESIDUAL, p, T_RESIDUAL, desc->residual);
    if (problem_has(p, GEMMEPI_BIAS))
        tensor_vector(t + T_BIAS, p, T_BIAS, desc->bias, desc->order == GEMMEPI_COLUMN_MAJOR);
    if (problem_has(p, GEMMEPI_BGRAD | GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
        tensor_vector(t + T_BIAS_GRAD, p, T_BIAS_GRAD, desc->bias_grad, problem_bgrad_along_rows(p));
    t[T_BIAS_GRAD].written = 1;
    run_describe_numbers(r, p);
}

static size_t tensor_bytes(const tensor *t) {
    size_t size = oracle_format(t->at.dtype).size;
    int64_t last;
    if (t->items == 0 || t->rows == 0 || t->columns == 0)
        return 0;
    last = view_index(&t->at, t->items - 1, t->rows - 1, t->columns - 1);
    return size ? (size_t)(last + 1) * size : (size_t)(last / 8 + 1);
}

#define RUN_GUARD 512 /* bytes between tensors, at least */

static void run_place(run *r, const problem *p) {
    size_t end = 0;
    int t;
    for (t = 0; t < T_COUNT; t++) {
        tensor *x = r->tensors + t;
        if (!x->used || p->in_place[t])
            continue;
        x->bytes = tensor_bytes(x);
        x->offset = (end + RUN_GUARD + 255) / 256 * 256 + p->shift[t];
        end = x->offset + x->bytes;
    }
    for (t = 0; t < T_COUNT; t++)
        if (p->in_place[t]) {
            r->tensors[t].offset = r->tensors[T_D].offset;
            r->tensors[t].bytes = r->tensors[T_D].bytes;
        }
    r->size = end + RUN_GUARD;
}

/* >>values */

static double random_uniform(uint64_t hash) { /* in (0, 1) */
    return ((double)(hash >> 12) + 0.5) * ldexp(1, -52);
}

static double random_normal(uint64_t hash) {
    return sqrt(-2 * log(random_uniform(hash))) * cos(6.283185307179586 * random_uniform(random_hash(hash)));
}

static double random_integer(uint64_t hash, int most) {
    return (double)(int)(hash % (uint64_t)(2 * most + 1)) - most;
}

/* About the size of an operand's elements: those of I8 use its whole range. */
static double operand_size(const problem *p, int t) {
    if (problem_dtype(p, t) == GEMMEPI_I8)
        return 30;
    return t == T_A ? 1 : 1.5 / sqrt((double)p->desc.k);
}

/* Entry (row, l) of A or of B's transpose. */
static double operand_value(const problem *p, int t, int64_t item, int64_t row, int64_t l) {
    uint64_t base = random_hash(p->seed * 16 + (uint64_t)t) + (uint64_t)(item * 1000003 + row) * 65537u;
    uint64_t hash = random_hash(base + (uint64_t)l), pair = random_hash(base + (uint64_t)l / 2);
    double size = operand_size(p, t), whole = size > 1 ? size : 1;
    switch (p->fill) {
    case POSITIVE:
        return fabs(random_normal(hash)) * (size > 1 ? size : size * size);
    case CANCELLING:
        if (t == T_B && l % 2)
            return -random_normal(pair) * (1 + 0.01 * random_normal(hash)) * whole;
        return random_normal(pair) * whole;
    case INTEGERS:
        return random_integer(hash, 3);
    case TWELVE_BITS:
        if (t == T_B)
            return random_integer(hash, 1);
        return (double)(2049 + hash % 1024 * 2) * (hash >> 20 & 1 ? 1 : -1);
    default:
        return random_normal(hash) * size;
    }
}

static double other_value(const problem *p, int t, uint64_t index) {
    uint64_t hash = random_hash(random_hash(p->seed * 16 + (uint64_t)t) + index);
    double size = problem_dtype(p, t) != GEMMEPI_I8 ? 1 : problem_scale_of(p, t).mode ? 30 : 3;
    if (p->fill == INTEGERS || p->fill == TWELVE_BITS)
        return random_integer(hash, 8);
    if (problem_dtype(p, t) == GEMMEPI_I32)
        return (double)(hash >> 32) - 2147483648.0;
    if (t == T_AUX)
        return 2 * random_normal(hash) * size;
    return size * (p->fill == POSITIVE     ? fabs(random_normal(hash))
                   : p->fill == CANCELLING ? 0.01 * random_normal(hash)
                                           : random_normal(hash));
}

/* Between 1/8 and 8, some of them negative; those of I8 bring its range to about 1, or a result into its range. */
static double scale_value(const problem *p, int t, uint64_t index) {
    uint64_t hash = random_hash(random_hash(p->seed * 32 + (uint64_t)t) + index);
    int exponent = (int)(hash % 6) - 3, of = tensor_of_scale(t);
    int stored = of == T_D || (of == T_AUX && problem_has(p, GEMMEPI_AUX));
    double sign = hash >> 32 & 7 || p->fill == POSITIVE ? 1 : -1;
    if (p->fill == INTEGERS || p->fill == TWELVE_BITS)
        return ldexp(1, (int)(hash % 3) - 1);
    if (problem_dtype(p, of) == GEMMEPI_I8)
        exponent += stored ? 4 : -5;
    return sign * ldexp(1 + random_uniform(random_hash(hash)), exponent);
}

static double tensor_value(const problem *p, int t, int64_t item, int64_t i, int64_t j, uint64_t index) {
    if (p->given[t] != NULL)
        return p->given[t][index];
    if (t == T_SCALARS)
        return j == 0 ? p->alpha : p->beta;
    if (t >= T_SCALE_A && t <= T_SCALE_RESIDUAL)
        return scale_value(p, t, index);
    if (t == T_AMAX_HISTORY) /* some runs are yet to come, and one was not finite */
        return index % 5 == 4 ? INFINITY : index % 3 == 2 ? 0 : fabs(scale_value(p, T_SCALE_D, index));
    if (t == T_A || t == T_B)
        return operand_value(p, t, item, t == T_A ? i : j, t == T_A ? j : i);
    return other_value(p, t, index);
}

/* Values that are never read stay sentinels, which are NaN in every dtype that has it. */
static int run_reads(const problem *p, int t) {
    if (t == T_C || t == T_SCALE_C)
        return p->beta != 0;
    if (t == T_AMAX_D || t == T_AMAX_AUX || t == T_FOUND_SCALE)
        return 0;
    if (t == T_AUX)
        return problem_has(p, GEMMEPI_BACKWARD);
    if (t == T_BIAS_GRAD)
        return problem_has(p, GEMMEPI_ACCUMULATE_BIAS_GRAD);
    return t != T_D;
}

static void run_mark(run *r, const view *at, int64_t index) {
    size_t size = oracle_format(at->dtype).size;
    unsigned char *marks = r->writable + (at->data - r->before);
    if (size)
        memset(marks + index * (int64_t)size, 0xff, size);
    else
        marks[index / 8] |= (unsigned char)(1 << index % 8);
}

/* What a tensor holds before its values: nothing that an answer could be. An amax may be NaN, and whole numbers and
   masks have no NaN. */
static void run_prefill_tensor(run *r, const problem *p, int t) {
    tensor *x = r->tensors + t;
    gemmepi_dtype dtype = x->at.dtype;
    int amax = t == T_AMAX_D || t == T_AMAX_AUX;
    size_t byte;
    if (amax)
        memset(r->before + x->offset, 0x42, x->bytes);
    if (dtype == GEMMEPI_DTYPE_DEFAULT || dtype == GEMMEPI_I8 || dtype == GEMMEPI_I32)
        for (byte = 0; byte < x->bytes; byte++)
            r->before[x->offset + byte] = (unsigned char)random_hash(p->seed + byte);
}

static void run_fill_tensor(run *r, const problem *p, int t) {
    tensor *x = r->tensors + t;
    int64_t item, i, j;
    uint64_t index = 0;
    x->at.data = r->before + x->offset;
    for (item = 0; item < x->items; item++)
        for (i = 0; i < x->rows; i++)
            for (j = 0; j < x->columns; j++, index++) {
                if (run_reads(p, t))
                    view_set(&x->at, item, i, j, tensor_value(p, t, item, i, j, index));
                if (x->written && problem_writes(p, t))
                    run_mark(r, &x->at, view_index(&x->at, item, i, j));
            }
}

/* Where everything lies; a test may move tensors before run_fill. */
static void run_lay_out(run *r, const problem *p) {
    memset(r, 0, sizeof *r);
    run_describe(r, p);
    run_place(r, p);
}

static void run_fill(run *r, const problem *p) {
    int t;
    r->before = malloc(r->size);
    r->after = malloc(r->size);
    r->writable = calloc(r->size, 1);
    memset(r->before, 0xff, r->size);
    for (t = 0; t < T_COUNT; t++)
        if (r->tensors[t].used && !p->in_place[t])
            run_prefill_tensor(r, p, t);
    for (t = 0; t < T_COUNT; t++)
        if (r->tensors[t].used)
            run_fill_tensor(r, p, t);
}

static void run_make(run *r, const problem *p) {
    run_lay_out(r, p);
    run_fill(r, p);
}

static void run_free(run *r) {
    free(r->before);
    free(r->after);
    free(r->writable);
}

/* >>running */

static void *run_pointer(const run *r, const test_device *device, int t) {
    return r->tensors[t].used ? (char *)device->arena + r->tensors[t].offset : NULL;
}

static gemmepi_matmul_args run_args(const run *r, const problem *p, const test_device *device) {
    gemmepi_matmul_args args = {0};
    const double *scalars = run_pointer(r, device, T_SCALARS);
    args.a = run_pointer(r, device, T_A);
    args.b = run_pointer(r, device, T_B);
    args.c = run_pointer(r, device, T_C);
    args.d = run_pointer(r, device, T_D);
    args.bias = run_pointer(r, device, T_BIAS);
    args.aux = run_pointer(r, device, T_AUX);
    args.bias_grad = run_pointer(r, device, T_BIAS_GRAD);
    args.residual = run_pointer(r, device, T_RESIDUAL);
    args.scale_a = run_pointer(r, device, T_SCALE_A);
    args.scale_b = run_pointer(r, device, T_SCALE_B);
    args.scale_c = run_pointer(r, device, T_SCALE_C);
    args.scale_d = run_pointer(r, device, T_SCALE_D);
    args.scale_aux = run_pointer(r, device, T_SCALE_AUX);
    args.scale_residual = run_pointer(r, device, T_SCALE_RESIDUAL);
    args.amax_d = run_pointer(r, device, T_AMAX_D);
    args.amax_aux = run_pointer(r, device, T_AMAX_AUX);
    args.found_scale_d = run_pointer(r, device, T_FOUND_SCALE);
    args.amax_history = run_pointer(r, device, T_AMAX_HISTORY);
    args.alpha = !p->has_alpha ? NULL : scalars ? scalars : &p->alpha;
    args.beta = !p->has_beta ? NULL : scalars ? scalars + 1 : &p->beta;
    if (problem_accumulates(p)) {
        args.c = NULL;
        args.beta = NULL;
    }
    return args;
}

static gemmepi_status run_upload(run *r, test_device *device) {
    if (!test_device_reserve(device, &device->arena, &device->arena_size, r->size))
        return GEMMEPI_OUT_OF_MEMORY;
    return gemmepi_upload(device->context, device->arena, r->before, r->size, device->stream);
}

static gemmepi_status run_download(run *r, test_device *device) {
    return gemmepi_download(device->context, r->after, device->arena, r->size, device->stream);
}

/* Launches by the plan, with a workspace of the caller's if the problem says so. */
static gemmepi_status run_plan(const gemmepi_plan *plan, const problem *p, test_device *device,
                               gemmepi_matmul_args *args) {
    gemmepi_plan_details details;
    gemmepi_status status = gemmepi_plan_info(plan, &details);
    if (status == GEMMEPI_OK && p->own_workspace) {
        if (!test_device_reserve(device, &device->workspace, &device->workspace_size,
                                 details.workspace_size + 1))
            return GEMMEPI_OUT_OF_MEMORY;
        args->workspace = device->workspace;
        args->workspace_size = details.workspace_size;
    } else if (status == GEMMEPI_OK) {
        status = gemmepi_plan_prepare(plan, device->stream);
    }
    return status == GEMMEPI_OK ? gemmepi_run_matmul(plan, args, device->stream) : status;
}

/* Uploads, runs, downloads. A plan of this problem may be given. */
static gemmepi_status run_execute(run *r, const problem *p, test_device *device, const gemmepi_plan *shared) {
    gemmepi_matmul_args args;
    gemmepi_plan *plan = NULL;
    gemmepi_status status = run_upload(r, device);
    args = run_args(r, p, device);
    if (status == GEMMEPI_OK && shared != NULL) {
        status = run_plan(shared, p, device, &args);
    } else if (status == GEMMEPI_OK && p->by_plan) {
        status = gemmepi_plan_matmul(device->context, &p->desc, &plan);
        if (status == GEMMEPI_OK)
            status = run_plan(plan, p, device, &args);
        if (status != GEMMEPI_OK) {
            gemmepi_plan_destroy(plan);
            return status;
        }
    } else if (status == GEMMEPI_OK) {
        status = gemmepi_matmul(device->context, &p->desc, &args, device->stream);
    }
    if (status == GEMMEPI_OK)
        status = run_download(r, device);
    gemmepi_plan_destroy(plan);
    return status;
}

/* >>verdicts */

/* Prints what went wrong, the first few times in a test. */
static void problem_report(test_device *device, const problem *p, const char *what) {
    static const int most = 4;
    static int test, reports;
    gemmepi_matmul_desc desc = p->desc;
    gemmepi_plan *plan = NULL;
    char text[2000] = "";
    if (test != test_count_here)
        reports = 0;
    test = test_count_here;
    if (reports++ >= most)
        return;
    if (gemmepi_plan_matmul(device->context, &desc, &plan) == GEMMEPI_OK)
        gemmepi_plan_explain(plan, text, sizeof text);
    gemmepi_plan_destroy(plan);
    printf("  on %s, seed %llu: %s\n    %s\n    explain: %s\n", device->name, (unsigned long long)p->seed,
           what, problem_line(p).text, text);
}

static scales run_scales(const run *r, const problem *p, int t) {
    scales s = oracle_scales(problem_scale_of(p, t), problem_outer(p, t), p->desc.k);
    if (r->tensors[t].used)
        s.at = r->tensors[t].at;
    return s;
}

static oracle_problem run_oracle(const run *r, const problem *p) {
    const tensor *t = r->tensors;
    oracle_problem o;
    memset(&o, 0, sizeof o);
    o.m = p->desc.m;
    o.n = p->desc.n;
    o.k = p->desc.k;
    o.batch = problem_batch(p);
    o.activation = problem_activation(p);
    o.parameter = p->desc.has_parameter ? p->desc.activation_parameter : oracle_parameter(o.activation, 0);
    o.flags = p->desc.epilogue & ~GEMMEPI_ACTIVATION_MASK;
    o.tf32 = p->desc.compute == GEMMEPI_COMPUTE_TF32;
    o.f16_sums = p->desc.compute == GEMMEPI_COMPUTE_F16;
    o.relaxed = (p->desc.flags & GEMMEPI_RELAXED) && !problem_has(p, GEMMEPI_GATED | GEMMEPI_UPSTREAM);
    o.fast = (p->desc.flags & GEMMEPI_FAST_ACCUMULATION) != 0;
    o.exact = p->fill == INTEGERS || p->fill == TWELVE_BITS;
    o.bgrad_rows = problem_bgrad_along_rows(p);
    o.gate_rows = p->desc.order == GEMMEPI_COLUMN_MAJOR;
    o.alpha = p->alpha;
    o.beta = p->beta;
    o.a = t[T_A].at;
    o.b = t[T_B].at;
    o.c = t[T_C].at;
    o.d = t[T_D].at;
    o.bias = t[T_BIAS].at;
    o.aux = t[T_AUX].at;
    o.bias_grad = t[T_BIAS_GRAD].at;
    o.residual = t[T_RESIDUAL].at;
    o.scale_a = run_scales(r, p, T_SCALE_A);
    o.scale_b = run_scales(r, p, T_SCALE_B);
    o.scale_c = run_scales(r, p, T_SCALE_C);
    if (problem_finds(p)) {
        o.found = problem_found(p);
        o.found.at = t[T_FOUND_SCALE].at;
        o.found.at.data = r->after + t[T_FOUND_SCALE].offset;
        o.power_of_two = (p->desc.flags & GEMMEPI_POWER_OF_TWO_SCALE) != 0;
    } else
        o.scale_d = run_scales(r, p, T_SCALE_D);
    o.scale_aux = run_scales(r, p, T_SCALE_AUX);
    o.scale_residual = run_scales(r, p, T_SCALE_RESIDUAL);
    return o;
}

/* A tensor as the device left it. */
static view run_result(const run *r, int t) {
    view v = r->tensors[t].at;
    v.data = r->after + r->tensors[t].offset;
    return v;
}

/* [items, rows, columns] of what the device left, to be freed. */
static double *run_values(const run *r, int t) {
    const tensor *x = r->tensors + t;
    view v = run_result(r, t);
    double *values = malloc(sizeof *values * (size_t)(x->items * x->rows * x->columns + 1)), *to = values;
    int64_t item, i, j;
    for (item = 0; item < x->items; item++)
        for (i = 0; i < x->rows; i++)
            for (j = 0; j < x->columns; j++)
                *to++ = view_get(&v, item, i, j);
    return values;
}

/* How far beyond its bound an answer is; 0 if accepted. */
static double excess(gemmepi_dtype dtype, double got, expected want) {
    double error = fabs(got - want.value);
    if (oracle_accepts(dtype, got, want))
        return 0;
    return isfinite(error) && want.bound > 0 ? error / want.bound : INFINITY;
}

static int run_compare_tensor(test_device *device, const run *r, const problem *p, int t,
                              const expected *want) {
    const tensor *x = r->tensors + t;
    view v = run_result(r, t);
    int64_t item, i, j, index = 0, wrong = 0, at[3] = {0, 0, 0};
    expected worst_want = {0, 0};
    double worst = 0, worst_got = 0;
    char what[300];
    for (item = 0; item < x->items; item++)
        for (i = 0; i < x->rows; i++)
            for (j = 0; j < x->columns; j++, index++) {
                double got = view_get(&v, item, i, j), beyond = excess(v.dtype, got, want[index]);
                wrong += beyond > 0;
                if (beyond > worst) {
                    worst = beyond;
                    worst_got = got;
                    worst_want = want[index];
                    at[0] = item;
                    at[1] = i;
                    at[2] = j;
                }
            }
    if (wrong == 0)
        return 1;
    snprintf(what, sizeof what,
             "%s: %lld of %lld wrong, worst at item %lld (%lld, %lld): got %.17g, want %.17g +- %.3g",
             tensor_names[t], (long long)wrong, (long long)index, (long long)at[0], (long long)at[1],
             (long long)at[2], worst_got, worst_want.value, worst_want.bound);
    problem_report(device, p, what);
    return 0;
}

/* Bits that may not change: inputs, gaps between rows, what surrounds each tensor. */
static int run_compare_untouched(test_device *device, const run *r, const problem *p) {
    size_t i;
    int t, near = T_A;
    char what[200];
    for (i = 0; i < r->size; i++)
        if ((r->before[i] ^ r->after[i]) & ~r->writable[i]) {
            for (t = 0; t < T_COUNT; t++)
                if (r->tensors[t].used && r->tensors[t].offset <= i &&
                    r->tensors[t].offset >= r->tensors[near].offset)
                    near = t;
            snprintf(what, sizeof what,
                     "byte %lld from the start of %s (%lld bytes long) changed from %02x to %02x",
                     (long long)i - (long long)r->tensors[near].offset, tensor_names[near],
                     (long long)r->tensors[near].bytes, r->before[i], r->after[i]);
            problem_report(device, p, what);
            return 0;
        }
    return 1;
}

/* gemmepi_epilogue_info agrees with the layout worked out here. */
static int run_compare_needs(test_device *device, const run *r, const problem *p) {
    const tensor *t = r->tensors;
    gemmepi_epilogue_needs needs;
    int right;
    if (gemmepi_epilogue_info(&p->desc, &needs) != GEMMEPI_OK) {
        problem_report(device, p, gemmepi_last_error());
        return 0;
    }
    right = needs.reads_bias == t[T_BIAS].used && needs.reads_residual == t[T_RESIDUAL].used &&
            needs.reads_aux == problem_has(p, GEMMEPI_BACKWARD) &&
            needs.writes_aux == problem_has(p, GEMMEPI_AUX) &&
            needs.writes_bias_grad == t[T_BIAS_GRAD].used &&
            needs.accumulates_bias_grad == problem_has(p, GEMMEPI_ACCUMULATE_BIAS_GRAD) &&
            needs.aux_is_mask == problem_has_mask(p);
    right = right && (!t[T_BIAS].used || needs.bias_length == t[T_BIAS].rows * t[T_BIAS].columns) &&
            (!t[T_BIAS_GRAD].used || needs.bias_grad_length == t[T_BIAS_GRAD].rows * t[T_BIAS_GRAD].columns);
    if (!problem_is_empty(p))
        right = right && needs.bias_bytes == t[T_BIAS].bytes && needs.aux_bytes == t[T_AUX].bytes &&
                needs.residual_bytes == t[T_RESIDUAL].bytes && needs.scale_a_bytes == t[T_SCALE_A].bytes &&
                needs.scale_b_bytes == t[T_SCALE_B].bytes &&
                needs.found_scale_d_bytes == t[T_FOUND_SCALE].bytes;
    if (problem_writes(p, T_BIAS_GRAD))
        right = right && needs.bias_grad_bytes == t[T_BIAS_GRAD].bytes;
    if (!right)
        problem_report(device, p, "gemmepi_epilogue_info tells otherwise than the layout");
    return right;
}

/* Room for the answers to a problem, to be freed. */
static answers answers_make(const oracle_problem *o) {
    size_t elements = (size_t)(2 * o->batch * o->m * o->n + 1),
           sums = (size_t)(2 * o->batch * (o->m + o->n) + 1);
    answers x;
    memset(&x, 0, sizeof x);
    x.d = malloc(sizeof *x.d * elements);
    x.aux = malloc(sizeof *x.aux * elements);
    x.bias_grad = malloc(sizeof *x.bias_grad * sums);
    return x;
}

static void answers_free(answers *x) {
    free(x->d);
    free(x->aux);
    free(x->bias_grad);
    free(x->found);
}

/* Room for the largest of what each scale is found for, where that is of this run. */
static struct largest *found_make(const oracle_problem *o) {
    static const largest none = {0, 0, 0, 1};
    int64_t count = o->batch * o->found.rows * o->found.columns, i;
    largest *found;
    if (o->found.mode <= GEMMEPI_SCALE_TENSOR)
        return NULL;
    found = malloc(sizeof *found * (size_t)(count + 1));
    for (i = 0; i < count; i++)
        found[i] = none;
    return found;
}

/* Scales of this run against what they are of. */
static int run_compare_found(test_device *device, const run *r, const problem *p, const oracle_problem *o,
                             const largest *found) {
    const tensor *x = &r->tensors[T_FOUND_SCALE];
    int64_t item, i, j;
    char what[300];
    for (item = 0; item < x->items; item++)
        for (i = 0; i < x->rows; i++)
            for (j = 0; j < x->columns; j++, found++) {
                double got = view_get(&o->found.at, item, i, j);
                if (oracle_accepts_found(o, got, found))
                    continue;
                snprintf(
                    what, sizeof what,
                    "found_scale_d of item %lld (%lld, %lld) is %.9g; of amax %.9g, between %.9g and %.9g",
                    (long long)item, (long long)i, (long long)j, got, found->value, found->low, found->high);
                problem_report(device, p, what);
                return 0;
            }
    return 1;
}

/* The scale of earlier runs' amax, which has moved one place on; the first is that of this run. */
static int run_compare_history(test_device *device, const run *r, const problem *p, const oracle_problem *o,
                               const expected *amax) {
    view before = r->tensors[T_AMAX_HISTORY].at, after = run_result(r, T_AMAX_HISTORY);
    largest most = {0, 0, 0, 1};
    int right, i;
    char what[200];
    for (i = 0; i < p->desc.amax_history; i++)
        if (isfinite(view_get(&before, 0, 0, i)))
            oracle_take(&most, view_get(&before, 0, 0, i), 0, 1);
    right = oracle_accepts_found(o, view_get(&o->found.at, 0, 0, 0), &most) &&
            excess(GEMMEPI_F32, view_get(&after, 0, 0, 0), *amax) == 0;
    for (i = 1; i < p->desc.amax_history; i++)
        right = right && view_get(&after, 0, 0, i) == view_get(&before, 0, 0, i - 1);
    if (right)
        return 1;
    snprintf(
        what, sizeof what, "found_scale_d is %.9g of %.9g, and the history begins with %.9g of %.9g +- %g",
        view_get(&o->found.at, 0, 0, 0), most.value, view_get(&after, 0, 0, 0), amax->value, amax->bound);
    problem_report(device, p, what);
    return 0;
}

static int run_compare_answers(test_device *device, const run *r, const problem *p, const answers *want) {
    const tensor *t = r->tensors;
    int right = 1;
    if (t[T_BIAS_GRAD].used)
        right = run_compare_tensor(device, r, p, T_BIAS_GRAD, want->bias_grad);
    if (problem_is_empty(p))
        return right;
    right = run_compare_tensor(device, r, p, T_D, want->d) && right;
    if (problem_has(p, GEMMEPI_AUX))
        right = run_compare_tensor(device, r, p, T_AUX, want->aux) && right;
    if (t[T_AMAX_D].used)
        right = run_compare_tensor(device, r, p, T_AMAX_D, &want->amax_d) && right;
    if (t[T_AMAX_AUX].used)
        right = run_compare_tensor(device, r, p, T_AMAX_AUX, &want->amax_aux) && right;
    return right;
}

static int run_compare(run *r, const problem *p, test_device *device) {
    oracle_problem o = run_oracle(r, p);
    int right = run_compare_untouched(device, r, p) && run_compare_needs(device, r, p);
    answers want;
    want = answers_make(&o);
    if (!r->tensors[T_BIAS_GRAD].used) {
        free(want.bias_grad);
        want.bias_grad = NULL;
    }
    want.found = found_make(&o);
    oracle_product(&o, &want);
    right = run_compare_answers(device, r, p, &want) && right;
    if (want.found && !problem_is_empty(p))
        right = run_compare_found(device, r, p, &o, want.found) && right;
    if (p->desc.amax_history && !problem_is_empty(p))
        right = run_compare_history(device, r, p, &o, &want.amax_d) && right;
    answers_free(&want);
    return right;
}

/* Runs p and holds everything against the oracle; r has the bytes afterwards and is the caller's to free. */
static int problem_holds_run(test_device *device, const problem *p, const gemmepi_plan *shared, run *r) {
    gemmepi_status status;
    sentence what = {{0}, 0};
    run_make(r, p);
    status = run_execute(r, p, device, shared);
    if (status == GEMMEPI_OK)
        return run_compare(r, p, device);
    line_add(&what, "%s: %s", gemmepi_status_name(status), gemmepi_last_error());
    problem_report(device, p, what.text);
    return 0;
}

/* What is compiled into kernels: types, modes of scales, epilogue and flags. */
static uint64_t problem_key(const problem *p) {
    int numbers[T_COUNT + 3], t;
    for (t = 0; t < T_SCALARS; t++)
        numbers[t] = (int)problem_dtype(p, t);
    numbers[T_SCALARS] = 0;
    for (t = T_SCALE_A; t < T_COUNT; t++)
        numbers[t] = t < T_AMAX_D ? (int)problem_scale_of(p, t).mode : 0;
    numbers[T_COUNT] = (int)p->desc.epilogue;
    numbers[T_COUNT + 1] = (int)(p->desc.flags ^ p->desc.flags >> 32);
    numbers[T_COUNT + 2] = (int)p->desc.compute;
    return test_key(numbers, T_COUNT + 3);
}

/* 1 too where TEST_SHARE leaves it out. */
static int problem_holds(test_device *device, const problem *p) {
    run r;
    int right;
    if (!test_takes(problem_key(p)))
        return 1;
    right = problem_holds_run(device, p, NULL, &r);
    run_free(&r);
    return right;
}

/* >>random problems */

static gemmepi_dtype random_of(rng *r, const gemmepi_dtype *dtypes, int count) {
    return dtypes[rng_below(r, count)];
}

/* The kinds of operands there are. */
static void random_operands(gemmepi_matmul_desc *d, rng *r) {
    static const gemmepi_dtype wide_ones[] = {GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_BF16};
    static const gemmepi_dtype fp8[] = {GEMMEPI_E4M3, GEMMEPI_E5M2};
    static const gemmepi_dtype any[] = {GEMMEPI_F32,  GEMMEPI_F16,  GEMMEPI_BF16,
                                        GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};
    switch (rng_below(r, 10)) {
    case 0:
        d->a.dtype = d->b.dtype = GEMMEPI_F64;
        break;
    case 1:
    case 2:
    case 3:
        d->a.dtype = d->b.dtype = random_of(r, wide_ones, 4);
        break;
    case 4:
    case 5:
        d->a.dtype = random_of(r, fp8, 2);
        d->b.dtype = random_of(r, fp8, 2);
        break;
    case 6:
    case 7:
        d->a.dtype = d->b.dtype = GEMMEPI_I8;
        break;
    default:
        d->a.dtype = random_of(r, any, 6);
        d->b.dtype = random_of(r, any, 6);
    }
}

/* A default, what the operands have, F32, or any of the first few. */
static gemmepi_dtype random_side(rng *r, gemmepi_dtype operand, int count) {
    static const gemmepi_dtype any[] = {GEMMEPI_F32,  GEMMEPI_F16,  GEMMEPI_BF16,
                                        GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};
    if (rng_one_in(r, 2))
        return GEMMEPI_DTYPE_DEFAULT;
    if (operand == GEMMEPI_F64 || (rng_one_in(r, 2) && (count == 6 || !oracle_is_narrow(operand))))
        return operand;
    return rng_one_in(r, 2) ? GEMMEPI_F32 : random_of(r, any, count);
}

static gemmepi_compute random_compute(const gemmepi_matmul_desc *d, gemmepi_dtype a, gemmepi_dtype b,
                                      rng *r) {
    int whole = a == GEMMEPI_I8 && b == GEMMEPI_I8;
    int f32 = a == GEMMEPI_F32 || b == GEMMEPI_F32 || (a == GEMMEPI_F16 && b == GEMMEPI_BF16) ||
              (a == GEMMEPI_BF16 && b == GEMMEPI_F16);
    if (f32 && rng_one_in(r, 4))
        return GEMMEPI_COMPUTE_TF32;
    if (a == GEMMEPI_F16 && b == a && rng_one_in(r, 3))
        return GEMMEPI_COMPUTE_F16;
    if (rng_one_in(r, 2))
        return GEMMEPI_COMPUTE_DEFAULT;
    if (a == GEMMEPI_F64)
        return GEMMEPI_COMPUTE_F64;
    return whole && (d->d.dtype == GEMMEPI_I32 || rng_one_in(r, 2)) ? GEMMEPI_COMPUTE_I32
                                                                    : GEMMEPI_COMPUTE_F32;
}

/* Dtypes and epilogue, of which each new one may compile a kernel: five seeds in a row share them. */
static void random_dtypes(problem *p, rng *r) {
    gemmepi_matmul_desc *d = &p->desc;
    gemmepi_dtype a, b, *sides[6];
    int i, whole;
    sides[0] = &d->c.dtype;
    sides[1] = &d->d.dtype;
    sides[2] = &d->aux.dtype;
    sides[3] = &d->residual.dtype;
    sides[4] = &d->bias.dtype;
    sides[5] = &d->bias_grad.dtype;
    random_operands(d, r);
    a = d->a.dtype;
    b = d->b.dtype;
    whole = a == GEMMEPI_I8 && b == GEMMEPI_I8 && rng_one_in(r, 2);
    for (i = 0; i < 6; i++)
        *sides[i] = random_side(r, a, i < 4 ? 6 : 3);
    for (i = 0; i < 6 && whole; i++)
        *sides[i] = i == 1 || rng_one_in(r, 2) ? GEMMEPI_I32 : GEMMEPI_DTYPE_DEFAULT;
    d->compute = random_compute(d, a, b, r);
    if (a == GEMMEPI_F32 && rng_one_in(r, 2))
        d->a.dtype = GEMMEPI_DTYPE_DEFAULT;
    if (a == b && rng_one_in(r, 2))
        d->b.dtype = GEMMEPI_DTYPE_DEFAULT;
}

/* What there is of it where results are whole numbers. */
static gemmepi_epilogue whole_epilogue(gemmepi_epilogue e) {
    gemmepi_epilogue activation = e & GEMMEPI_ACTIVATION_MASK;
    e &= ~(GEMMEPI_ACTIVATION_MASK | GEMMEPI_BACKWARD);
    if (e & GEMMEPI_BGRAD)
        e = (e & ~GEMMEPI_BGRAD) | GEMMEPI_BGRAD_B;
    return e | (activation_index(activation) % 2 ? GEMMEPI_RELU : GEMMEPI_NONE);
}

static void random_epilogue(problem *p, rng *r) {
    static const gemmepi_epilogue bgrads[] = {GEMMEPI_BGRAD, GEMMEPI_BGRAD, GEMMEPI_BGRAD_A, GEMMEPI_BGRAD_B};
    gemmepi_epilogue e = activation_codes[rng_below(r, rng_one_in(r, 3) ? ACTIVATION_COUNT : 7)],
                     bgrad = bgrads[rng_below(r, 4)];
    int backward = rng_one_in(r, 3);
    e |= backward ? GEMMEPI_BACKWARD : rng_one_in(r, 3) ? GEMMEPI_AUX : 0;
    e |= rng_one_in(r, 2) ? GEMMEPI_BIAS : 0;
    e |= rng_one_in(r, 3) ? GEMMEPI_RESIDUAL : 0;
    if (bgrad == GEMMEPI_BGRAD && !backward && (e & GEMMEPI_ACTIVATION_MASK) != GEMMEPI_NONE)
        bgrad = GEMMEPI_BGRAD_A;
    if (rng_one_in(r, backward ? 2 : 4))
        e |= bgrad | (rng_one_in(r, 2) ? GEMMEPI_ACCUMULATE_BIAS_GRAD : 0);
    p->desc.epilogue = problem_is_whole(p) ? whole_epilogue(e) : e;
    if (activation_has_parameter(problem_activation(p)) && rng_one_in(r, 2))
        problem_give_parameter(p, rng_one_in(r, 4) ? 0 : rng_below(r, 5) * 0.4 - 0.5);
    p->desc.flags |= rng_one_in(r, 5) ? GEMMEPI_RELAXED : 0;
}

/* A gate, and an upstream gradient in place of a saved pre-activation. Column-major halves need an even m. */
static void random_gate(problem *p, rng *r) {
    int gated = rng_one_in(r, 3), first = rng_one_in(r, 2), upstream = rng_one_in(r, gated ? 2 : 5);
    if (gated)
        p->desc.epilogue |= GEMMEPI_GATED | (first ? GEMMEPI_GATE_FIRST : 0);
    if (upstream && problem_has(p, GEMMEPI_BACKWARD))
        p->desc.epilogue |= GEMMEPI_UPSTREAM;
}

static void random_flags(problem *p, rng *r) {
    int fp8 = oracle_is_fp8(problem_dtype(p, T_A)) && oracle_is_fp8(problem_dtype(p, T_B));
    int fast = rng_one_in(r, 3), amax_d = rng_one_in(r, 4), amax_aux = rng_one_in(r, 3);
    if (fast && fp8)
        p->desc.flags |= GEMMEPI_FAST_ACCUMULATION;
    if (amax_d && !problem_is_whole(p))
        p->desc.flags |= GEMMEPI_AMAX_D;
    if (amax_aux && !problem_is_whole(p) && problem_has(p, GEMMEPI_AUX) && !problem_has_mask(p))
        p->desc.flags |= GEMMEPI_AMAX_AUX;
}

static int64_t random_size(rng *r) {
    static const int most[] = {3, 20, 70, 130};
    int bound = most[rng_below(r, 4)];
    return rng_one_in(r, 3) ? (1 + rng_below(r, (bound + 7) / 8)) * 8 : 1 + rng_below(r, bound);
}

static void random_sizes(problem *p, rng *r) {
    p->desc.m = random_size(r);
    p->desc.n = random_size(r);
    p->desc.k = rng_one_in(r, 30) ? 0 : rng_one_in(r, 10) ? 1 : random_size(r) * (1 + rng_below(r, 3));
    if (rng_one_in(r, 12))
        p->desc.k += 1000 + rng_below(r, 1000);
    if (rng_one_in(r, 40))
        *(rng_one_in(r, 2) ? &p->desc.m : &p->desc.n) = 0;
    p->desc.batch = rng_one_in(r, 60) ? 0 : rng_one_in(r, 2) ? 1 + rng_below(r, 4) : 1;
}

/* Rows dense or with a gap; items one after the other, interleaved as the heads of an attention are, or
   all one. */
static void random_layout(gemmepi_matrix *matrix, const problem *p, rng *r, int t, int input) {
    int64_t rows = problem_extents(p, t).rows, columns = problem_extents(p, t).columns;
    int along_rows = (p->desc.order == GEMMEPI_ROW_MAJOR) != (matrix->transposed != 0);
    int64_t length = along_rows ? columns : rows, lines = along_rows ? rows : columns,
            batch = problem_batch(p);
    int64_t ld = rng_one_in(r, 3)   ? length
                 : rng_one_in(r, 2) ? (length + 7) / 8 * 8
                                    : length + rng_below(r, 10);
    int way = rng_below(r, 4);
    ld = ld > 0 ? ld : 1;
    matrix->ld = ld == length && rng_one_in(r, 2) ? 0 : ld;
    if (way == 0 && input) {
        matrix->batch_stride = 0;
    } else if (way == 1) {
        matrix->ld = ld * batch;
        matrix->batch_stride = ld;
    } else {
        matrix->batch_stride = ld * lines + (rng_one_in(r, 2) ? rng_below(r, 20) : 0);
        matrix->batch_stride += matrix->batch_stride == 0;
    }
}

static void random_mask_layout(gemmepi_matrix *matrix, const problem *p, rng *r, int input) {
    int row_major = p->desc.order == GEMMEPI_ROW_MAJOR;
    int64_t length = row_major ? p->desc.n : p->desc.m, lines = row_major ? p->desc.m : p->desc.n;
    int64_t dense = (length + 127) / 128 * 128, ld = dense + 128 * rng_below(r, 2);
    matrix->ld = ld == dense && rng_one_in(r, 2) ? 0 : ld;
    matrix->batch_stride = input && rng_one_in(r, 4) ? 0 : ld * lines + 128 * rng_below(r, 2);
    matrix->batch_stride += matrix->batch_stride == 0 && !input ? 128 : 0;
}

static int64_t random_vector_stride(rng *r, int64_t length) {
    return rng_one_in(r, 2) ? 0 : length + rng_below(r, 5);
}

static void random_layouts(problem *p, rng *r) {
    gemmepi_matmul_desc *d = &p->desc;
    int backward = problem_has(p, GEMMEPI_BACKWARD), mask = problem_has_mask(p);
    d->order = rng_one_in(r, 2) ? GEMMEPI_ROW_MAJOR : GEMMEPI_COLUMN_MAJOR;
    d->a.transposed = rng_one_in(r, 2);
    d->b.transposed = rng_one_in(r, 2);
    problem_make_even(p);
    random_layout(&d->a, p, r, T_A, 1);
    random_layout(&d->b, p, r, T_B, 1);
    random_layout(&d->d, p, r, T_D, 0);
    random_layout(&d->residual, p, r, T_RESIDUAL, 1);
    if (rng_one_in(r, 2))
        random_layout(&d->c, p, r, T_C, 1);
    else
        memset(&d->c, 0, sizeof d->c);
    if (mask) {
        d->aux.dtype = GEMMEPI_DTYPE_DEFAULT;
        random_mask_layout(&d->aux, p, r, backward);
    } else
        random_layout(&d->aux, p, r, T_AUX, backward);
    d->bias.batch_stride = random_vector_stride(r, problem_length(p, T_BIAS));
    d->bias_grad.batch_stride = random_vector_stride(r, problem_length(p, T_BIAS_GRAD));
}

static void random_scalars(problem *p, rng *r) {
    static const double plain[] = {1, 0, -1, 0.7, 1.7}, halves[] = {1, 0, -1, 2, 0.5},
                        whole[] = {1, 0, -1, 3, -70001};
    const double *values = problem_is_whole(p) ? whole : p->fill == INTEGERS ? halves : plain;
    p->has_alpha = rng_one_in(r, 2);
    p->has_beta = rng_one_in(r, 2);
    p->alpha = p->has_alpha ? values[rng_below(r, 5)] : 1;
    p->beta = p->has_beta ? values[rng_below(r, 5)] : 0;
    p->desc.flags |= rng_one_in(r, 5) ? GEMMEPI_DEVICE_SCALARS : 0;
    p->no_c = p->beta == 0 && rng_one_in(r, 2) && !(p->desc.flags & GEMMEPI_DEVICE_SCALARS);
}

/* I8 without scales makes large results, in which activations do not show: alpha brings them back. */
static void random_small_alpha(problem *p) {
    int t;
    for (t = T_A; t <= T_B && p->has_alpha && !problem_is_whole(p) && p->fill != INTEGERS; t++)
        if (problem_dtype(p, t) == GEMMEPI_I8 && !problem_scale_of(p, t).mode)
            p->alpha /= 32;
}

/* D += where the epilogue allows it. */
static void random_accumulation(problem *p, int wanted) {
    if (!wanted || problem_activation(p) != GEMMEPI_NONE ||
        problem_has(p, GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_AUX | GEMMEPI_BGRAD))
        return;
    p->desc.flags |= GEMMEPI_ACCUMULATE;
    p->beta = 1;
    memset(&p->desc.c, 0, sizeof p->desc.c);
}

/* Some of c, residual and aux exactly d. */
static void random_in_place(problem *p, rng *r) {
    gemmepi_matmul_desc *d = &p->desc;
    gemmepi_dtype d_dtype = problem_dtype(p, T_D);
    if (p->has_beta && !p->no_c && rng_one_in(r, 4) && problem_fits_d(p, T_C)) {
        p->in_place[T_C] = 1;
        d->c = d->d;
        d->c.dtype = d_dtype;
        if (rng_one_in(r, 2) && !oracle_is_fp8(d_dtype) && !problem_has(p, GEMMEPI_GATED))
            memset(&d->c, 0, sizeof d->c);
        random_accumulation(p, rng_one_in(r, 2));
    }
    if (problem_has(p, GEMMEPI_RESIDUAL) && rng_one_in(r, 4)) {
        p->in_place[T_RESIDUAL] = 1;
        d->residual = d->d;
        d->residual.dtype = d_dtype;
    }
    if (problem_has(p, GEMMEPI_BACKWARD) && !problem_has_mask(p) && rng_one_in(r, 4) &&
        problem_fits_d(p, T_AUX)) {
        p->in_place[T_AUX] = 1;
        d->aux = d->d;
    }
}

/* Not all zero. */
static int problem_has_c_of_its_own(const problem *p) {
    static const gemmepi_matrix zero;
    return p->has_beta && !p->no_c && memcmp(&p->desc.c, &zero, sizeof zero) != 0;
}

static int problem_may_scale(const problem *p, int t) {
    int there = t == T_D && problem_accumulates(p) ? 0
                : t == T_C                         ? problem_has_c_of_its_own(p)
                : t == T_AUX      ? problem_has(p, GEMMEPI_AUX | GEMMEPI_BACKWARD) && !problem_has_mask(p)
                : t == T_RESIDUAL ? problem_has(p, GEMMEPI_RESIDUAL)
                                  : 1;
    return there && oracle_is_narrow(problem_dtype(p, t)) && !problem_is_whole(p);
}

/* Modes by the kernel's numbers, strides by the problem's. */
static void random_scales(problem *p, rng *kernel, rng *r) {
    int t;
    for (t = T_SCALE_A; t <= T_SCALE_RESIDUAL; t++) {
        gemmepi_scale *scale = &problem_matrix(p, t)->scale;
        int mode = rng_below(kernel, t <= T_SCALE_B ? 8 : 2), own = rng_one_in(r, 2), pad = rng_below(r, 6);
        if (!problem_may_scale(p, tensor_of_scale(t)))
            continue;
        scale->mode = mode > (int)GEMMEPI_SCALE_BLOCK_128 ? GEMMEPI_SCALE_TENSOR : (gemmepi_scale_mode)mode;
        if (scale->mode && own) {
            scales s = oracle_scales(*scale, problem_outer(p, t), p->desc.k);
            scale->batch_stride = s.rows * (s.at.row > 1 ? s.at.row : s.columns) + pad;
        }
    }
}

/* Pointers that are multiples of their element's size only, of 16, or of 256; and the promise that fits. */
static void random_alignment(problem *p, rng *r) {
    int kind = rng_below(r, 4), t;
    size_t all = 256, promise;
    run shape;
    memset(&shape, 0, sizeof shape);
    run_describe(&shape, p);
    for (t = 0; t < T_SCALARS; t++) {
        size_t size = oracle_format(shape.tensors[t].at.dtype).size;
        size_t unit = kind == 0 ? (size ? size : 1) : kind == 1 ? 16 : 256;
        p->shift[t] = shape.tensors[t].used ? (size_t)rng_below(r, 8) * unit % 256 : 0;
        all |= p->shift[t];
    }
    for (t = T_SCALE_A; t < T_COUNT; t++) {
        int large = t < T_AMAX_D && problem_scale_of(p, t).mode > GEMMEPI_SCALE_TENSOR;
        size_t unit = large ? 16 : oracle_format(shape.tensors[t].at.dtype).size;
        p->shift[t] = shape.tensors[t].used ? (size_t)rng_below(r, 8) * unit % 256 : 0;
    }
    promise = all & (~all + 1); /* the lowest bit */
    p->by_plan = rng_one_in(r, 2);
    p->own_workspace = p->by_plan && rng_one_in(r, 2);
    if ((p->by_plan && promise < 16) || rng_one_in(r, 2))
        p->desc.alignment = promise >> (rng_one_in(r, 2) && promise > 8 ? rng_below(r, 3) : 0);
}

/* Of those whose D is fp8 a third find its scales. By the kernel's number, but for strides. */
static void random_finding(problem *p, rng *kernel, rng *r) {
    gemmepi_scale *scale = &p->desc.d.scale;
    scales s;
    if (!oracle_is_fp8(problem_dtype(p, T_D)) || problem_accumulates(p) || !rng_one_in(kernel, 3))
        return;
    p->desc.flags |= GEMMEPI_FIND_SCALE_D | (rng_one_in(kernel, 3) ? GEMMEPI_POWER_OF_TWO_SCALE : 0);
    scale->mode = (gemmepi_scale_mode)(1 + rng_below(kernel, 3));
    scale->batch_stride = 0;
    s = problem_found(p);
    if (scale->mode == GEMMEPI_SCALE_TENSOR) {
        p->desc.flags &= ~(uint64_t)GEMMEPI_AMAX_D;
        p->desc.amax_history = 1 + rng_below(r, 40);
    } else if (problem_batch(p) > 1)
        scale->batch_stride = s.rows * s.columns + rng_below(r, 6);
}

static problem problem_random(uint64_t seed) {
    problem p = problem_plain(GEMMEPI_F32, 1, 1, 1, 0);
    rng kernel = rng_seeded(~(seed / 5)), r = rng_seeded(seed), gate = rng_seeded(~(seed / 5) ^ 0x6a7e);
    rng finding = rng_seeded(~(seed / 5) ^ 0xf14d);
    p.seed = seed;
    p.fill = (fill)rng_below(&r, 4);
    random_dtypes(&p, &kernel);
    random_epilogue(&p, &kernel);
    random_gate(&p, &gate);
    random_flags(&p, &kernel);
    random_sizes(&p, &r);
    random_layouts(&p, &r);
    random_scalars(&p, &r);
    random_in_place(&p, &r);
    random_scales(&p, &kernel, &r);
    random_small_alpha(&p);
    random_alignment(&p, &r);
    random_finding(&p, &finding, &r);
    return p;
}

#endif
