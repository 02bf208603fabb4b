/* The rows of products by weights in I8: few rows of BF16 or F16 against a copy of as many bytes as the weights and their scales are,
   which a decoding step cannot do without. Part of main.c. */
#include "bench.h"

enum {
    WEIGHTS_SETS = 8,
    WEIGHTS_BYTES = 300 << 20
}; /* of weights by turns, so that L2 has none of the next */

typedef struct weights_form {
    int64_t m, n, k;
    gemmepi_scale_mode scale;
    gemmepi_dtype a;
} weights_form;

static const weights_form weights_forms[] = {
    {1, 4096, 4096, GEMMEPI_SCALE_OUTER, GEMMEPI_BF16},
    {8, 4096, 4096, GEMMEPI_SCALE_OUTER, GEMMEPI_BF16},
    {64, 4096, 4096, GEMMEPI_SCALE_OUTER, GEMMEPI_BF16},
    {1, 14336, 4096, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_BF16},
    {8, 14336, 4096, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_BF16},
    {16, 14336, 4096, GEMMEPI_SCALE_OUTER, GEMMEPI_BF16},
    {64, 14336, 4096, GEMMEPI_SCALE_OUTER, GEMMEPI_BF16},
    {64, 14336, 4096, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_BF16},
    {1, 4096, 14336, GEMMEPI_SCALE_OUTER, GEMMEPI_BF16},
    {16, 4096, 14336, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_BF16},
    {32, 4096, 14336, GEMMEPI_SCALE_OUTER, GEMMEPI_F16},
    {64, 4096, 14336, GEMMEPI_SCALE_OUTER, GEMMEPI_BF16},
    {64, 8192, 28672, GEMMEPI_SCALE_OUTER, GEMMEPI_BF16},
    {7, 5003, 4112, GEMMEPI_SCALE_OUTER, GEMMEPI_F16},
    {23, 11009, 3344, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_BF16},
    {61, 9111, 6000, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_F16},
};

typedef struct weights_work {
    const weights_form *form;
    gemmepi_plan *plan;
    char *memory;
    size_t weights, scales, a, d; /* bytes, in units of 256 */
    int sets, turn[2];
} weights_work;

static size_t weights_unit(int64_t bytes) {
    return ((size_t)bytes + 255) / 256 * 256;
}

static void weights_lay_out(weights_work *w, const weights_form *f) {
    int64_t numbers = f->scale == GEMMEPI_SCALE_OUTER ? f->n : (f->k + 127) / 128 * f->n;
    memset(w, 0, sizeof *w);
    w->form = f;
    w->weights = weights_unit(f->n * f->k);
    w->scales = weights_unit(numbers * (int64_t)sizeof(float));
    w->a = weights_unit(f->m * f->k * 2);
    w->d = weights_unit(f->m * f->n * 2);
    w->sets = (int)((size_t)WEIGHTS_BYTES / w->weights) + 1;
    if (w->sets > WEIGHTS_SETS * 3)
        w->sets = WEIGHTS_SETS * 3;
}

static size_t weights_memory(const bench_row *row, size_t size) {
    weights_work w;
    (void)size;
    weights_lay_out(&w, row->recipe);
    return (w.weights + w.scales) * (size_t)w.sets + w.a + w.d;
}

static int weights_run(bench *b, void *user) {
    weights_work *w = user;
    char *set = w->memory + (w->weights + w->scales) * (size_t)w->turn[0], *beside = w->memory;
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    beside += (w->weights + w->scales) * (size_t)w->sets;
    args.a = beside, args.d = beside + w->a;
    args.b = set, args.scale_b = (const float *)(void *)(set + w->weights);
    w->turn[0] = (w->turn[0] + 1) % w->sets;
    return bench_ok(b, gemmepi_run_matmul(w->plan, &args, b->stream));
}

/* A copy reads and writes: half of the bytes, within a set. */
static int weights_run_copy(bench *b, void *user) {
    weights_work *w = user;
    size_t half = (w->weights + w->scales) / 2;
    char *set = w->memory + 2 * half * (size_t)w->turn[1];
    w->turn[1] = (w->turn[1] + 1) % w->sets;
    return bench_copy(b, set, set + half, half);
}

static int weights_fill(bench *b, const weights_work *w) {
    char *beside = w->memory + (w->weights + w->scales) * (size_t)w->sets;
    int set;
    for (set = 0; set < w->sets; set++) {
        char *to = w->memory + (w->weights + w->scales) * (size_t)set;
        if (!bench_fill(b, to, GEMMEPI_E4M3, w->weights, set) || /* bytes are bytes */
            !bench_set_floats(b, to + w->weights, 0.01f, w->scales / sizeof(float)))
            return 0;
    }
    return bench_fill(b, beside, w->form->a, w->a, 0) && bench_set_bytes(b, beside + w->a, 0xff, w->d);
}

/* The last element is written. */
static int weights_check(bench *b, void *user) {
    weights_work *w = user;
    const weights_form *f = w->form;
    char *d = w->memory + (w->weights + w->scales) * (size_t)w->sets + w->a;
    unsigned char element[2];
    if (!weights_fill(b, w) || !weights_run(b, w) ||
        !bench_ok(b, gemmepi_download(b->context, element, d + 2 * (f->m * f->n - 1), 2, b->stream)))
        return 0;
    return (element[0] == 0xff && element[1] == 0xff) ? bench_fail(b, "the last element was not written") : 1;
}

static void weights_close(bench_job *job) {
    weights_work *w = job->user;
    gemmepi_plan_destroy(w->plan);
    free(w);
}

static int weights_plan(bench *b, weights_work *w, bench_job *job) {
    gemmepi_matmul_desc desc;
    gemmepi_plan_details details;
    double began = bench_seconds();
    int made;
    memset(&desc, 0, sizeof desc);
    desc.m = w->form->m, desc.n = w->form->n, desc.k = w->form->k;
    desc.a.dtype = w->form->a, desc.b.dtype = GEMMEPI_I8;
    desc.b.transposed = 1, desc.b.scale.mode = w->form->scale;
    made = bench_ok(b, gemmepi_plan_matmul(b->context, &desc, &w->plan)) &&
           bench_ok(b, gemmepi_plan_prepare(w->plan, b->stream)) &&
           bench_ok(b, gemmepi_plan_info(w->plan, &details));
    b->plan_seconds += bench_seconds() - began;
    job->launches = made ? details.launches : 0;
    return made;
}

static int weights_open(bench *b, const bench_row *row, bench_job *job) {
    weights_work *w = malloc(sizeof *w);
    if (!w)
        return bench_fail(b, "out of memory");
    weights_lay_out(w, row->recipe);
    w->memory = b->memory;
    job->user = w;
    job->calls[BENCH_OURS] = weights_run;
    job->calls[BENCH_OTHER] = weights_run_copy;
    job->check = weights_check;
    job->bytes = (double)(w->weights + w->scales);
    if (weights_plan(b, w, job) && weights_fill(b, w))
        return 1;
    weights_close(job);
    return 0;
}

static void weights_rows(bench_list *list) {
    int i;
    for (i = 0; i < COUNT(weights_forms) && list->count < BENCH_MOST_ROWS; i++) {
        const weights_form *f = weights_forms + i;
        bench_row *row = list->rows + list->count++;
        memset(row, 0, sizeof *row);
        row->kind = BENCH_ADDED;
        row->group = "weights";
        snprintf(row->name, sizeof row->name, "weights by %s %d x %d x %d",
                 f->scale == GEMMEPI_SCALE_OUTER ? "rows" : "groups of 128", (int)f->m, (int)f->n, (int)f->k);
        snprintf(row->dtype, sizeof row->dtype, "%s by I8", f->a == GEMMEPI_F16 ? "F16" : "BF16");
        row->bound = 1.25;
        row->recipe = f;
        row->memory = weights_memory;
        row->open = weights_open;
        row->close = weights_close;
    }
}
