/* The rows of layers: a planned backward against what it cannot do without, the two bare products, each by cuBLASLt's fastest
   algorithm, and a copy of as many bytes as the pass between them moves; then what BGRAD_B adds to a product. Part of
   main.c. */
#include "bench.h"
#include "lt.h"

/* >>what a row is */

typedef struct layer_form {
    const char *name;
    gemmepi_epilogue activation; /* or-ed with GATED or not */
    uint64_t flags;              /* SAVED, RECOMPUTE */
    int64_t n, k;
    int bgrad; /* 1: the product dB with BGRAD_B against that without */
} layer_form;

#define NARROW_N 3072, 768
#define SHORT_N  768, 3072
#define LARGE_N  14336, 4096
#define SAVED    GEMMEPI_LINEAR_SAVED

static const layer_form layer_forms[] = {
    {"GELU_TANH", GEMMEPI_GELU_TANH, SAVED, NARROW_N, 0},
    {"GELU_TANH", GEMMEPI_GELU_TANH, SAVED, SHORT_N, 0},
    {"GELU_TANH", GEMMEPI_GELU_TANH, SAVED, LARGE_N, 0},
    {"SILU", GEMMEPI_SILU, SAVED, NARROW_N, 0},
    {"SILU", GEMMEPI_SILU, SAVED, SHORT_N, 0},
    {"SILU", GEMMEPI_SILU, SAVED, LARGE_N, 0},
    {"RELU", GEMMEPI_RELU, SAVED, NARROW_N, 0},
    {"RELU", GEMMEPI_RELU, SAVED, SHORT_N, 0},
    {"RELU", GEMMEPI_RELU, SAVED, LARGE_N, 0},
    {"NONE", GEMMEPI_NONE, 0, NARROW_N, 0},
    {"NONE", GEMMEPI_NONE, 0, SHORT_N, 0},
    {"NONE", GEMMEPI_NONE, 0, LARGE_N, 0},
    {"SILU recomputed", GEMMEPI_SILU, GEMMEPI_LINEAR_RECOMPUTE, NARROW_N, 0},
    {"SwiGLU", GEMMEPI_SILU | GEMMEPI_GATED, SAVED, NARROW_N, 0},
    {"dB with BGRAD_B", GEMMEPI_NONE, 0, NARROW_N, 1},
    {"dB with BGRAD_B", GEMMEPI_NONE, 0, SHORT_N, 1},
    {"dB with BGRAD_B", GEMMEPI_NONE, 0, LARGE_N, 1},
};

#undef SAVED

/* A set of what a run reads and writes, in this order in memory: the copy is from DY and PREACT to G. */
enum { L_DY, L_PREACT, L_G, L_A, L_B, L_BIAS, L_DA, L_DB, L_DBIAS, L_COUNT, L_FIRST_OUTPUT = L_DA };

enum {
    LAYER_ROWS = 8192,
    LAYER_MOST_SETS = 8,
    LAYER_SETS_MIB = 512, /* of all sets together at least, and two of them: L2 has 50 MiB on an H200 */
    LAYER_MOST_PRODUCTS = 3
};

/* A bare product by its tensors of a set. */
typedef struct layer_product {
    lt_product lt;
    int a, b, d;
} layer_product;

typedef struct layer_work {
    const layer_form *form;
    int64_t m;
    size_t sizes[L_COUNT], places[L_COUNT]; /* from the start of a set */
    size_t set, copied;                     /* bytes */
    double moved;                           /* bytes of a pass over dY, P and G */
    int sets, turn[3];                      /* of ours, of what it is held against, of the copy */
    char *memory;
    gemmepi_plan *layer;
    gemmepi_plan *with, *without;
    lt lt;
    layer_product products[LAYER_MOST_PRODUCTS];
    int product_count, tried; /* which of them is being tried */
} layer_work;

/* Less than 8192 rows where tensors are to be less than 256 MiB. */
static int64_t layer_rows_of(size_t size) {
    int64_t m = (int64_t)(size >> 20) * LAYER_ROWS / 256;
    return m < LAYER_ROWS ? m : LAYER_ROWS;
}

static size_t layer_round_up(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

static void layer_lay_out(layer_work *w, const layer_form *f, size_t size) {
    size_t m, n = (size_t)f->n, k = (size_t)f->k, columns = f->activation & GEMMEPI_GATED ? n / 2 : n;
    size_t element = 2, g;
    int t;
    memset(w, 0, sizeof *w);
    w->form = f;
    w->m = layer_rows_of(size);
    m = (size_t)w->m;
    g = m * n * element;
    w->sizes[L_DY] = m * columns * element;
    if (f->flags & GEMMEPI_LINEAR_SAVED)
        w->sizes[L_PREACT] = f->activation == GEMMEPI_RELU ? m * n / 8 : g;
    w->moved = (double)(w->sizes[L_DY] + w->sizes[L_PREACT] + (f->activation ? g : 0));
    w->copied = (size_t)w->moved / 2 / 256 * 256;
    w->sizes[L_G] = g > w->copied ? g : w->copied;
    w->sizes[L_A] = w->sizes[L_DA] = m * k * element;
    w->sizes[L_B] = w->sizes[L_DB] = k * n * element;
    w->sizes[L_BIAS] = w->sizes[L_DBIAS] = n * element;
    for (t = 0; t < L_COUNT; t++) {
        w->places[t] = w->set;
        w->set += layer_round_up(w->sizes[t]);
    }
    w->sets = (int)(((size_t)LAYER_SETS_MIB << 20) / w->set) + 1;
    w->sets = w->sets < 2 ? 2 : w->sets > LAYER_MOST_SETS ? LAYER_MOST_SETS : w->sets;
}

static size_t layer_memory(const bench_row *row, size_t size) {
    layer_work w;
    layer_lay_out(&w, row->recipe, size);
    return w.set * (size_t)w.sets + LT_WORKSPACE;
}

static void *layer_tensor(const layer_work *w, int set, int t) {
    return w->sizes[t] ? w->memory + w->set * (size_t)set + w->places[t] : NULL;
}

/* Inputs random (RELU's mask too), outputs 0xff, which is a NaN that no run makes. */
static int layer_fill(bench *b, const layer_work *w) {
    int set, t;
    for (set = 0; set < w->sets; set++)
        for (t = 0; t < L_COUNT; t++) {
            void *to = layer_tensor(w, set, t);
            if (to && !(t >= L_FIRST_OUTPUT ? bench_set_bytes(b, to, 0xff, w->sizes[t])
                                            : bench_fill(b, to, GEMMEPI_BF16, w->sizes[t], set + 2 * t)))
                return 0;
        }
    return 1;
}

/* The next set, of those that this call has taken in turn. */
static int layer_next(layer_work *w, int which) {
    w->turn[which] = (w->turn[which] + 1) % w->sets;
    return w->turn[which];
}

/* >>ours */

static int layer_plan(bench *b, layer_work *w, int *launches) {
    const layer_form *f = w->form;
    gemmepi_linear_desc desc;
    gemmepi_plan_details details;
    double began = bench_seconds();
    int made;
    memset(&desc, 0, sizeof desc);
    desc.m = w->m, desc.n = f->n, desc.k = f->k, desc.batch = 1;
    desc.a.dtype = GEMMEPI_BF16;
    desc.activation = f->activation;
    desc.flags =
        f->flags | GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS;
    made = bench_ok(b, gemmepi_plan_linear_backward(b->context, &desc, &w->layer)) &&
           bench_ok(b, gemmepi_plan_prepare(w->layer, b->stream)) &&
           bench_ok(b, gemmepi_plan_info(w->layer, &details));
    b->plan_seconds += bench_seconds() - began;
    if (made)
        *launches = details.launches;
    return made;
}

static int layer_run(bench *b, void *user) {
    layer_work *w = user;
    int set = layer_next(w, 0);
    gemmepi_linear_args args;
    memset(&args, 0, sizeof args);
    args.a = layer_tensor(w, set, L_A);
    args.b = layer_tensor(w, set, L_B);
    args.bias = layer_tensor(w, set, L_BIAS);
    args.preact = layer_tensor(w, set, L_PREACT);
    args.dy = layer_tensor(w, set, L_DY);
    args.da = layer_tensor(w, set, L_DA);
    args.db = layer_tensor(w, set, L_DB);
    args.dbias = layer_tensor(w, set, L_DBIAS);
    return bench_ok(b, gemmepi_run_linear_backward(w->layer, &args, b->stream));
}

static int layer_copy(bench *b, void *user) {
    layer_work *w = user;
    int set = layer_next(w, 2);
    return bench_copy(b, layer_tensor(w, set, L_G), layer_tensor(w, set, L_DY), w->copied);
}

/* Have the runs written this output of each set? Looks at elements from the first to the last. */
static int layer_check_output(bench *b, const layer_work *w, int t) {
    enum { SAMPLES = 33 };
    size_t count = w->sizes[t] / 2;
    unsigned char element[2];
    int set, i;
    for (set = 0; set < w->sets; set++)
        for (i = 0; i < SAMPLES; i++) {
            size_t at = (count - 1) / (SAMPLES - 1) * (size_t)i;
            const char *from = (const char *)layer_tensor(w, set, t) + 2 * at;
            if (!bench_ok(b, gemmepi_download(b->context, element, from, sizeof element, b->stream)))
                return 0;
            if (element[0] == 0xff && element[1] == 0xff)
                return bench_fail(b, "element %lu of %lu of an output was not written", (unsigned long)at,
                                  (unsigned long)count);
        }
    return 1;
}

/* >>the bare products */

static int layer_run_bare(bench *b, layer_work *w, const layer_product *p, int set) {
    lt_pointers pointers = {NULL, NULL, NULL, NULL, NULL, NULL};
    pointers.a = layer_tensor(w, set, p->a);
    pointers.b = layer_tensor(w, set, p->b);
    pointers.d = layer_tensor(w, set, p->d);
    return lt_run(b, &w->lt, &p->lt, &pointers);
}

static int layer_run_tried(bench *b, void *user) {
    layer_work *w = user;
    return layer_run_bare(b, w, w->products + w->tried, layer_next(w, 1));
}

static int layer_run_products(bench *b, void *user) {
    layer_work *w = user;
    int i, set = layer_next(w, 1);
    for (i = 0; i < w->product_count; i++)
        if (!layer_run_bare(b, w, w->products + i, set))
            return 0;
    return 1;
}

static int layer_add_product(bench *b, layer_work *w, int a, int of_b, int d, const lt_form *form) {
    layer_product *p = w->products + w->product_count;
    p->a = a, p->b = of_b, p->d = d;
    w->tried = w->product_count++;
    return lt_describe(b, &w->lt, &p->lt, form) && lt_choose_bare(b, &w->lt, &p->lt, layer_run_tried, w);
}

/* dA^T [k, m] = B G^T and dB^T [n, k] = G^T A; to compute P anew also P^T [n, m] = B^T A^T, where G is later. */
static int layer_prepare_products(bench *b, layer_work *w) {
    int64_t m = w->m, n = w->form->n, k = w->form->k;
    lt_form p = {0}, da = {0}, db = {0};
    p.type = da.type = db.type = LT_REAL_16BF;
    p.rows = n, p.columns = m, p.inner = k;
    da.rows = k, da.columns = m, da.inner = n, da.a_transposed = 1;
    db.rows = n, db.columns = k, db.inner = m, db.b_transposed = 1;
    return lt_open(b, &w->lt) &&
           (!(w->form->flags & GEMMEPI_LINEAR_RECOMPUTE) || layer_add_product(b, w, L_B, L_A, L_G, &p)) &&
           layer_add_product(b, w, L_B, L_G, L_DA, &da) && layer_add_product(b, w, L_G, L_A, L_DB, &db);
}

static void layer_close_products(layer_work *w) {
    int i;
    for (i = 0; i < w->product_count; i++)
        lt_forget(&w->lt, &w->products[i].lt);
    lt_close(&w->lt);
}

/* >>BGRAD_B */

/* dB [k, n] = A^T G, whose bias_grad sums G over the product's k, which is the layer's m. */
static int layer_plan_product(bench *b, const layer_work *w, gemmepi_epilogue epilogue, gemmepi_plan **plan,
                              int *launches) {
    gemmepi_matmul_desc desc;
    gemmepi_plan_details details;
    double began = bench_seconds();
    int made;
    memset(&desc, 0, sizeof desc);
    desc.m = w->form->k, desc.n = w->form->n, desc.k = w->m, desc.batch = 1;
    desc.a.dtype = GEMMEPI_BF16;
    desc.a.transposed = 1;
    desc.epilogue = epilogue;
    made = bench_ok(b, gemmepi_plan_matmul(b->context, &desc, plan)) &&
           bench_ok(b, gemmepi_plan_prepare(*plan, b->stream)) &&
           bench_ok(b, gemmepi_plan_info(*plan, &details));
    b->plan_seconds += bench_seconds() - began;
    if (made)
        *launches = details.launches;
    return made;
}

static int layer_run_product(bench *b, const layer_work *w, const gemmepi_plan *plan, int set, int bgrad) {
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = layer_tensor(w, set, L_A);
    args.b = layer_tensor(w, set, L_G);
    args.d = layer_tensor(w, set, L_DB);
    args.bias_grad = bgrad ? layer_tensor(w, set, L_DBIAS) : NULL;
    return bench_ok(b, gemmepi_run_matmul(plan, &args, b->stream));
}

static int layer_run_with(bench *b, void *user) {
    layer_work *w = user;
    return layer_run_product(b, w, w->with, layer_next(w, 0), 1);
}

static int layer_run_without(bench *b, void *user) {
    layer_work *w = user;
    return layer_run_product(b, w, w->without, layer_next(w, 1), 0);
}

/* >>the rows */

/* Bare products write the same outputs, so ours runs once more. */
static int layer_check(bench *b, void *user) {
    layer_work *w = user;
    int t = w->form->bgrad ? L_DB : L_DA;
    if (!layer_fill(b, w) || !bench_repeat(b, w->form->bgrad ? layer_run_with : layer_run, w, w->sets))
        return 0;
    for (; t <= L_DBIAS; t++)
        if (!layer_check_output(b, w, t))
            return 0;
    return 1;
}

static void layer_close(bench_job *job) {
    layer_work *w = job->user;
    layer_close_products(w);
    gemmepi_plan_destroy(w->layer);
    gemmepi_plan_destroy(w->with);
    gemmepi_plan_destroy(w->without);
    free(w);
}

static int layer_open(bench *b, const bench_row *row, bench_job *job) {
    layer_work *w = malloc(sizeof *w);
    int opened, launches;
    if (!w)
        return bench_fail(b, "out of memory");
    layer_lay_out(w, row->recipe, b->size);
    w->memory = b->memory;
    w->lt.workspace = w->memory + w->set * (size_t)w->sets;
    job->user = w;
    job->calls[BENCH_OURS] = w->form->bgrad ? layer_run_with : layer_run;
    job->calls[BENCH_OTHER] = w->form->bgrad ? layer_run_without : layer_run_products;
    job->calls[BENCH_COPY] = layer_copy;
    job->check = layer_check;
    job->bytes = w->form->bgrad ? 0 : w->moved;
    if (w->form->bgrad)
        opened = layer_plan_product(b, w, GEMMEPI_BGRAD_B, &w->with, &job->launches) &&
                 layer_plan_product(b, w, GEMMEPI_NONE, &w->without, &launches) && layer_fill(b, w);
    else /* the plan comes first: it loads cuBLASLt */
        opened = layer_plan(b, w, &job->launches) && layer_fill(b, w) && layer_prepare_products(b, w);
    job->products = w->product_count;
    if (!opened)
        layer_close(job);
    return opened;
}

static void linear_rows(bench_list *list) {
    int i;
    for (i = 0; i < COUNT(layer_forms) && list->count < BENCH_MOST_ROWS; i++) {
        const layer_form *f = layer_forms + i;
        bench_row *row = list->rows + list->count++;
        memset(row, 0, sizeof *row);
        row->kind = f->bgrad ? BENCH_ADDED : BENCH_LAYER;
        row->group = f->bgrad ? "sums beside a product" : "backward of a layer";
        snprintf(row->name, sizeof row->name, "%s%s n %d k %d", f->bgrad ? "" : "layer ", f->name, (int)f->n,
                 (int)f->k);
        snprintf(row->dtype, sizeof row->dtype, "BF16");
        row->bound = f->bgrad ? 0 : 1;
        row->recipe = f;
        row->memory = layer_memory;
        row->open = layer_open;
        row->close = layer_close;
    }
}
