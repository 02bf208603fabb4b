/* The rows of fp8 products, E4M3 row-major with weights [n, k]: of each pair of scale modes against the fastest of cuBLASLt's algorithms that
   gemmepi_tune finds, where cuBLASLt has the pair, else against ours of another pair; and of epilogues, into BF16 or into E4M3 with scales
   that are found, against cuBLASLt's bare product into BF16 with one scale for each operand. Part of main.c. */
#include "bench.h"

typedef struct fp8_form {
    const char *name;
    int64_t m, n, k; /* n of gates counts both halves, and so does the opponent's */
    gemmepi_scale_mode a, b;
    gemmepi_epilogue epilogue;
    int finds; /* D is E4M3, and its scales of 1 x 128 are found; else BF16 */
    /* The opponent's. Of a bare product it is ours where these are others than the row's own. */
    gemmepi_scale_mode other_a, other_b;
    double bound;
} fp8_form;

#define FP8_SWIGLU (GEMMEPI_SILU | GEMMEPI_GATED)

/* The modes' short names. */
#define FP8_T GEMMEPI_SCALE_TENSOR
#define FP8_O GEMMEPI_SCALE_OUTER
#define FP8_V GEMMEPI_SCALE_VECTOR_128
#define FP8_B GEMMEPI_SCALE_BLOCK_128

#define FP8_MODE(name, m, n, k, a, b) \
    { name, m, n, k, a, b, GEMMEPI_NONE, 0, a, b, 1.02 }
#define FP8_EPILOGUE(name, m, n, k, epilogue, finds) \
    { name, m, n, k, FP8_T, FP8_T, epilogue, finds, FP8_T, FP8_T, 1.06 }
#define FP8_ALL_MODES(m, n, k)                                                                              \
    FP8_MODE("TENSOR by TENSOR", m, n, k, FP8_T, FP8_T), FP8_MODE("OUTER by OUTER", m, n, k, FP8_O, FP8_O), \
        FP8_MODE("VECTOR by BLOCK", m, n, k, FP8_V, FP8_B),                                                 \
        FP8_MODE("VECTOR by VECTOR", m, n, k, FP8_V, FP8_V), {                                              \
        "BLOCK by BLOCK", m, n, k, FP8_B, FP8_B, GEMMEPI_NONE, 0, FP8_V, FP8_B, 1.1                         \
    }
#define FP8_ALL_EPILOGUES(m, n, k)                                                                       \
    FP8_EPILOGUE("SILU", m, n, k, GEMMEPI_SILU, 0), FP8_EPILOGUE("GELU", m, n, k, GEMMEPI_GELU_TANH, 0), \
        FP8_EPILOGUE("SWIGLU", m, n, k, FP8_SWIGLU, 0),                                                  \
        FP8_EPILOGUE("SWIGLU to E4M3", m, n, k, FP8_SWIGLU, 1)

static const fp8_form fp8_forms[] = {
    FP8_ALL_MODES(8192, 8192, 8192),
    FP8_ALL_MODES(4096, 7168, 2048),
    FP8_ALL_EPILOGUES(8192, 8192, 8192),
    FP8_ALL_EPILOGUES(4096, 7168, 2048),
    FP8_EPILOGUE("SWIGLU to E4M3", 8192, 28672, 4096, FP8_SWIGLU, 1),
};

typedef struct fp8_work {
    const fp8_form *form;
    gemmepi_plan *plan, *other;
    gemmepi_context *lt; /* whose only route is cuBLASLt's */
    char *a, *b, *d, *scales_a, *scales_b, *found;
    size_t bytes_a, bytes_b, bytes_d, scales; /* of both operands together */
} fp8_work;

/* >>tensors */

/* Scales have room for one of each 128 of a line, as many as any mode has. */
static size_t fp8_lay_out(fp8_work *w, const fp8_form *f, char *memory) {
    size_t vectors = (size_t)(f->k + 127) / 128, columns = (size_t)(f->n + 127) / 128;
    memset(w, 0, sizeof *w);
    w->form = f;
    w->bytes_a = (size_t)f->m * (size_t)f->k, w->bytes_b = (size_t)f->n * (size_t)f->k;
    w->bytes_d = (size_t)f->m * (size_t)f->n * 2;
    w->a = memory;
    w->b = w->a + bench_unit(w->bytes_a);
    w->d = w->b + bench_unit(w->bytes_b);
    w->scales_a = w->d + bench_unit(w->bytes_d);
    w->scales_b = w->scales_a + bench_unit((size_t)f->m * vectors * 4);
    w->found = w->scales_b + bench_unit((size_t)f->n * vectors * 4);
    w->scales = (size_t)(w->found - w->scales_a);
    return (size_t)(w->found - memory) + (size_t)f->m * columns * 4;
}

static size_t fp8_memory(const bench_row *row, size_t size) {
    static char first[1];
    fp8_work w;
    (void)size;
    return fp8_lay_out(&w, row->recipe, first);
}

static int fp8_fill(bench *b, const fp8_work *w) {
    return bench_fill(b, w->a, GEMMEPI_E4M3, w->bytes_a, 0) &&
           bench_fill(b, w->b, GEMMEPI_E4M3, w->bytes_b, 1) &&
           bench_set_floats(b, w->scales_a, 0.125f, w->scales / sizeof(float));
}

/* >>runs */

static int fp8_run_plan(bench *b, const fp8_work *w, const gemmepi_plan *plan, int finds) {
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = w->a, args.b = w->b, args.d = w->d;
    args.scale_a = (const float *)(const void *)w->scales_a;
    args.scale_b = (const float *)(const void *)w->scales_b;
    args.found_scale_d = finds ? (float *)(void *)w->found : NULL;
    return bench_ok(b, gemmepi_run_matmul(plan, &args, b->stream));
}

static int fp8_run(bench *b, void *user) {
    fp8_work *w = user;
    return fp8_run_plan(b, w, w->plan, w->form->finds);
}

static int fp8_run_other(bench *b, void *user) {
    fp8_work *w = user;
    return fp8_run_plan(b, w, w->other, 0);
}

/* The last element is written. */
static int fp8_check(bench *b, void *user) {
    fp8_work *w = user;
    const fp8_form *f = w->form;
    int gated = (f->epilogue & GEMMEPI_GATED) != 0, element = f->finds ? 1 : 2;
    size_t count = (size_t)f->m * (size_t)(gated ? f->n / 2 : f->n);
    unsigned char last[2] = {0xff, 0xff};
    if (!bench_set_bytes(b, w->d, 0xff, w->bytes_d) || !fp8_run(b, w) ||
        !bench_ok(b, gemmepi_download(b->context, last, w->d + (count - 1) * (size_t)element, (size_t)element,
                                      b->stream)))
        return 0;
    return last[0] == 0xff && last[1] == 0xff ? bench_fail(b, "the last element was not written") : 1;
}

/* >>plans */

static gemmepi_matmul_desc fp8_desc(const fp8_form *f, int is_other) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = f->m, desc.n = f->n, desc.k = f->k;
    desc.a.dtype = GEMMEPI_E4M3;
    desc.b.transposed = 1;
    desc.a.scale.mode = is_other ? f->other_a : f->a;
    desc.b.scale.mode = is_other ? f->other_b : f->b;
    desc.d.dtype = GEMMEPI_BF16;
    if (is_other)
        return desc;
    desc.epilogue = f->epilogue;
    if (f->finds) {
        desc.flags = GEMMEPI_FIND_SCALE_D;
        desc.d.dtype = GEMMEPI_E4M3;
        desc.d.scale.mode = GEMMEPI_SCALE_VECTOR_128;
    }
    return desc;
}

static int fp8_plan(bench *b, gemmepi_context *context, const gemmepi_matmul_desc *desc,
                    gemmepi_plan **plan) {
    return bench_ok(b, gemmepi_plan_matmul(context, desc, plan)) &&
           bench_ok(b, gemmepi_plan_prepare(*plan, b->stream));
}

/* By the fastest of cuBLASLt's algorithms. */
static int fp8_plan_lt(bench *b, fp8_work *w, const gemmepi_matmul_desc *desc) {
    gemmepi_any_desc problem;
    memset(&problem, 0, sizeof problem);
    problem.matmul = desc;
    return bench_open_route(b, GEMMEPI_ROUTE_LT, &w->lt) &&
           bench_ok(b, gemmepi_tune(w->lt, &problem, 1, NULL, NULL, NULL)) &&
           fp8_plan(b, w->lt, desc, &w->other);
}

/* >>a row */

static void fp8_close(bench_job *job) {
    fp8_work *w = job->user;
    gemmepi_plan_destroy(w->plan);
    gemmepi_plan_destroy(w->other);
    gemmepi_destroy(w->lt);
    free(w);
}

static int fp8_open(bench *b, const bench_row *row, bench_job *job) {
    const fp8_form *f = row->recipe;
    fp8_work *w = malloc(sizeof *w);
    gemmepi_matmul_desc ours = fp8_desc(f, 0), other = fp8_desc(f, 1);
    gemmepi_plan_details details;
    double began = bench_seconds();
    int planned;
    memset(&details, 0, sizeof details);
    if (!w)
        return bench_fail(b, "out of memory");
    fp8_lay_out(w, f, b->memory);
    job->user = w;
    job->calls[BENCH_OURS] = fp8_run;
    job->calls[BENCH_OTHER] = fp8_run_other;
    job->check = fp8_check;
    planned = fp8_plan(b, b->context, &ours, &w->plan) && bench_ok(b, gemmepi_plan_info(w->plan, &details));
    b->plan_seconds += bench_seconds() - began;
    job->launches = details.launches;
    if (planned && fp8_fill(b, w) &&
        (f->epilogue || f->a == f->other_a ? fp8_plan_lt(b, w, &other)
                                           : fp8_plan(b, b->context, &other, &w->other)))
        return 1;
    fp8_close(job);
    return 0;
}

static void fp8_rows(bench_list *list) {
    int i;
    for (i = 0; i < COUNT(fp8_forms) && list->count < BENCH_MOST_ROWS; i++) {
        const fp8_form *f = fp8_forms + i;
        bench_row *row = list->rows + list->count++;
        memset(row, 0, sizeof *row);
        row->kind = BENCH_ADDED;
        row->group = "fp8";
        snprintf(row->name, sizeof row->name, "fp8 %s %d x %d x %d", f->name, (int)f->m, (int)f->n,
                 (int)f->k);
        snprintf(row->dtype, sizeof row->dtype, "E4M3");
        row->bound = f->bound;
        row->recipe = f;
        row->memory = fp8_memory;
        row->open = fp8_open;
        row->close = fp8_close;
    }
}
