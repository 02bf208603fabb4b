/* The rows of layers: a planned backward against what it cannot do without, the two bare products, each by cuBLASLt's fastest
   algorithm, and a copy of as many bytes as the pass between them moves; then what BGRAD_B adds to a product. Part of
   bench.c. */
#include "bench.h"

/* >>cuBLASLt, as far as bare products need it: declared by hand, found when the program runs */

typedef struct lt_answer {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} lt_answer;

enum {
    LT_REAL_32F = 0, /* cudaDataType */
    LT_REAL_16BF = 14,
    LT_COMPUTE_32F = 68, /* cublasComputeType_t */
    LT_TRANSPOSED = 1,
    LT_DESC_TRANSA = 3,
    LT_DESC_TRANSB = 4,
    LT_PREFERENCE_WORKSPACE = 1
};

/* our field, the exported name, parameters; every result is an int, 0 for success */
#define LT_FUNCTIONS(X)                                                                                      \
    X(create, cublasLtCreate, (void **handle))                                                               \
    X(destroy, cublasLtDestroy, (void *handle))                                                              \
    X(desc_create, cublasLtMatmulDescCreate, (void **desc, int compute, int scale_type))                     \
    X(desc_destroy, cublasLtMatmulDescDestroy, (void *desc))                                                 \
    X(desc_set, cublasLtMatmulDescSetAttribute, (void *desc, int attribute, const void *value, size_t size)) \
    X(layout_create, cublasLtMatrixLayoutCreate,                                                             \
      (void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld))                                \
    X(layout_destroy, cublasLtMatrixLayoutDestroy, (void *layout))                                           \
    X(preference_create, cublasLtMatmulPreferenceCreate, (void **preference))                                \
    X(preference_destroy, cublasLtMatmulPreferenceDestroy, (void *preference))                               \
    X(preference_set, cublasLtMatmulPreferenceSetAttribute,                                                  \
      (void *preference, int attribute, const void *value, size_t size))                                     \
    X(heuristic, cublasLtMatmulAlgoGetHeuristic,                                                             \
      (void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference, int requested,        \
       lt_answer *answers, int *returned))                                                                   \
    X(matmul, cublasLtMatmul,                                                                                \
      (void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b,            \
       void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,             \
       const uint64_t *algorithm, void *workspace, size_t workspace_size, void *stream))

typedef struct lt {
#define LT_FIELD(field, symbol, parameters) int(*field) parameters;
    LT_FUNCTIONS(LT_FIELD)
#undef LT_FIELD
    void *handle, *preference;
} lt;

static int lt_did(bench *b, int result, const char *what) {
    return !result || bench_fail(b, "%s: cuBLASLt returned %d", what, result);
}

/* That which gemmepi has loaded, wherever it has found it: the system's loader knows it by its name from then on. */
static void *lt_open(void) {
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    void *library = NULL;
    int i;
    for (i = 0; i < COUNT(names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    for (i = 0; i < COUNT(names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static int lt_load(bench *b, lt *l) {
    void *library = lt_open(), *address;
    if (!library)
        return bench_fail(b, "libcublasLt.so.13 and .12 cannot be opened");
/* by memcpy: ISO C has no conversion from objects to functions */
#define LT_FIND(field, symbol, parameters)                        \
    address = dlsym(library, #symbol);                            \
    if (!address)                                                 \
        return bench_fail(b, "libcublasLt.so lacks %s", #symbol); \
    memcpy(&l->field, &address, sizeof address);
    LT_FUNCTIONS(LT_FIND)
#undef LT_FIND
    return 1;
}

/* >>what a row is */

typedef struct layer_form {
    const char *name;
    gemmepi_epilogue activation; /* or-ed with GATED or not */
    uint32_t flags;              /* SAVED, RECOMPUTE */
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
    LAYER_ANSWERS = 16,   /* that the heuristic is asked for, */
    LAYER_TRIALS = 3,     /* times that each is measured, the least counts, */
    LAYER_TRIAL_RUNS = 5, /* and runs each time */
    LAYER_WORKSPACE = 32 << 20,
    LAYER_MOST_PRODUCTS = 3
};

/* A bare product as cuBLASLt has it: column-major, by its tensors of a set. */
typedef struct lt_product {
    void *desc, *a_layout, *b_layout, *d_layout;
    int a, b, d;
    lt_answer answer;
} lt_product;

typedef struct layer_work {
    const layer_form *form;
    int64_t m;
    size_t sizes[L_COUNT], places[L_COUNT]; /* from the start of a set */
    size_t set, copied;                     /* bytes */
    double moved;                           /* bytes of a pass over dY, P and G */
    int sets, turn[3];                      /* of ours, of what it is held against, of the copy */
    char *memory, *workspace;
    gemmepi_layer *layer;
    gemmepi_plan *with, *without;
    lt lt;
    lt_product products[LAYER_MOST_PRODUCTS];
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
    return w.set * (size_t)w.sets + LAYER_WORKSPACE;
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
    made = bench_ok(b, gemmepi_linear_backward_plan(b->context, &desc, &w->layer)) &&
           bench_ok(b, gemmepi_linear_prepare(w->layer, b->stream)) &&
           bench_ok(b, gemmepi_linear_info(w->layer, &details));
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
    return bench_ok(b, gemmepi_linear_run(w->layer, &args, b->stream));
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

static int lt_run(bench *b, layer_work *w, const lt_product *p, int set) {
    static const float one = 1, zero = 0;
    const void *a = layer_tensor(w, set, p->a), *of_b = layer_tensor(w, set, p->b);
    void *d = layer_tensor(w, set, p->d);
    return lt_did(b,
                  w->lt.matmul(w->lt.handle, p->desc, &one, a, p->a_layout, of_b, p->b_layout, &zero, d,
                               p->d_layout, d, p->d_layout, p->answer.algorithm, w->workspace,
                               LAYER_WORKSPACE, b->stream),
                  "cublasLtMatmul");
}

static int lt_run_tried(bench *b, void *user) {
    layer_work *w = user;
    return lt_run(b, w, w->products + w->tried, layer_next(w, 1));
}

static int lt_run_all(bench *b, void *user) {
    layer_work *w = user;
    int i, set = layer_next(w, 1);
    for (i = 0; i < w->product_count; i++)
        if (!lt_run(b, w, w->products + i, set))
            return 0;
    return 1;
}

/* Row-major matrices are column-major ones transposed, so d^T [rows, columns] = op(a) op(b) with `a` the right operand. */
static int lt_describe(bench *b, lt *l, lt_product *p, int64_t rows, int64_t columns, int64_t inner,
                       int a_transposed, int b_transposed) {
    const int transposed = LT_TRANSPOSED;
    int64_t a_rows = a_transposed ? inner : rows, b_rows = b_transposed ? columns : inner;
    int64_t a_columns = a_transposed ? rows : inner, b_columns = b_transposed ? inner : columns;
    return lt_did(b, l->desc_create(&p->desc, LT_COMPUTE_32F, LT_REAL_32F), "cublasLtMatmulDescCreate") &&
           (!a_transposed || lt_did(b, l->desc_set(p->desc, LT_DESC_TRANSA, &transposed, sizeof transposed),
                                    "setting TRANSA")) &&
           (!b_transposed || lt_did(b, l->desc_set(p->desc, LT_DESC_TRANSB, &transposed, sizeof transposed),
                                    "setting TRANSB")) &&
           lt_did(b,
                  l->layout_create(&p->a_layout, LT_REAL_16BF, (uint64_t)a_rows, (uint64_t)a_columns, a_rows),
                  "the layout of A") &&
           lt_did(b,
                  l->layout_create(&p->b_layout, LT_REAL_16BF, (uint64_t)b_rows, (uint64_t)b_columns, b_rows),
                  "the layout of B") &&
           lt_did(b, l->layout_create(&p->d_layout, LT_REAL_16BF, (uint64_t)rows, (uint64_t)columns, rows),
                  "the layout of D");
}

/* Times the algorithms that the heuristic names, and keeps the fastest that runs. */
static int lt_choose(bench *b, layer_work *w) {
    lt_product *p = w->products + w->tried;
    lt_answer answers[LAYER_ANSWERS], best;
    double least = 0, time;
    int count = 0, i, trial;
    if (!lt_did(b,
                w->lt.heuristic(w->lt.handle, p->desc, p->a_layout, p->b_layout, p->d_layout, p->d_layout,
                                w->lt.preference, LAYER_ANSWERS, answers, &count),
                "cublasLtMatmulAlgoGetHeuristic"))
        return 0;
    for (i = 0; i < count; i++) {
        p->answer = answers[i];
        if (answers[i].state || !lt_run_tried(b, w)) /* it warms up, too */
            continue;
        for (trial = 0; trial < LAYER_TRIALS; trial++) {
            if (!bench_time(b, lt_run_tried, w, LAYER_TRIAL_RUNS, &time))
                return 0;
            if (least == 0 || time < least)
                least = time, best = answers[i];
        }
    }
    if (least == 0)
        return bench_fail(b, "cuBLASLt runs none of its %d algorithms for a bare product", count);
    p->answer = best;
    return 1;
}

static int lt_add(bench *b, layer_work *w, int a, int of_b, int d, int64_t rows, int64_t columns,
                  int64_t inner, int a_transposed, int b_transposed) {
    lt_product *p = w->products + w->product_count;
    p->a = a, p->b = of_b, p->d = d;
    w->tried = w->product_count++;
    return lt_describe(b, &w->lt, p, rows, columns, inner, a_transposed, b_transposed) && lt_choose(b, w);
}

/* dA^T [k, m] = B G^T and dB^T [n, k] = G^T A; to compute P anew also P^T [n, m] = B^T A^T, where G is later. */
static int lt_prepare(bench *b, layer_work *w) {
    const uint64_t workspace = LAYER_WORKSPACE;
    int64_t m = w->m, n = w->form->n, k = w->form->k;
    lt *l = &w->lt;
    return lt_load(b, l) && lt_did(b, l->create(&l->handle), "cublasLtCreate") &&
           lt_did(b, l->preference_create(&l->preference), "cublasLtMatmulPreferenceCreate") &&
           lt_did(b, l->preference_set(l->preference, LT_PREFERENCE_WORKSPACE, &workspace, sizeof workspace),
                  "setting the workspace") &&
           (!(w->form->flags & GEMMEPI_LINEAR_RECOMPUTE) || lt_add(b, w, L_B, L_A, L_G, n, m, k, 0, 0)) &&
           lt_add(b, w, L_B, L_G, L_DA, k, m, n, 1, 0) && lt_add(b, w, L_G, L_A, L_DB, n, k, m, 0, 1);
}

static void lt_close(layer_work *w) {
    lt *l = &w->lt;
    int i;
    for (i = 0; i < w->product_count; i++) {
        lt_product *p = w->products + i;
        if (p->desc)
            l->desc_destroy(p->desc);
        if (p->a_layout)
            l->layout_destroy(p->a_layout);
        if (p->b_layout)
            l->layout_destroy(p->b_layout);
        if (p->d_layout)
            l->layout_destroy(p->d_layout);
    }
    if (l->preference)
        l->preference_destroy(l->preference);
    if (l->handle)
        l->destroy(l->handle);
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
           bench_ok(b, gemmepi_prepare(*plan, b->stream)) && bench_ok(b, gemmepi_plan_info(*plan, &details));
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
    return bench_ok(b, gemmepi_plan_run(plan, &args, b->stream));
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
    lt_close(w);
    gemmepi_linear_destroy(w->layer);
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
    w->workspace = w->memory + w->set * (size_t)w->sets;
    job->user = w;
    job->run = w->form->bgrad ? layer_run_with : layer_run;
    job->other = w->form->bgrad ? layer_run_without : lt_run_all;
    job->copy = layer_copy;
    job->check = layer_check;
    job->bytes = w->form->bgrad ? 0 : w->moved;
    if (w->form->bgrad)
        opened = layer_plan_product(b, w, GEMMEPI_BGRAD_B, &w->with, &job->launches) &&
                 layer_plan_product(b, w, GEMMEPI_NONE, &w->without, &launches) && layer_fill(b, w);
    else /* the plan comes first: it loads cuBLASLt */
        opened = layer_plan(b, w, &job->launches) && layer_fill(b, w) && lt_prepare(b, w);
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
