/* The rows of products: a planned product with its epilogue against cuBLASLt's fastest bare product, against
   cuBLASLt's own epilogue where it has that, and against a bare product with a pass of ours behind it. BF16,
   row-major, A [m, k], B stored [n, k] as a linear layer's weight. Part of bench.c. */
#include "bench.h"
#include "lt.h"

/* >>what a row is */

/* The bounds are hundredths of the bare product's time, the most that ours may take. */
typedef struct product_shape {
    int64_t m, n, k;
    int bound;     /* 5 more with GELU_ERF */
    int bound_aux; /* with the pre-activation saved */
} product_shape;

static const product_shape product_shapes[] = {
    {8192, 8192, 8192, 102, 104}, {4096, 4096, 4096, 100, 106}, {4096, 14336, 4096, 102, 106},
    {8192, 3072, 768, 100, 115},  {8192, 768, 3072, 102, 108},  {2048, 50304, 768, 100, 115},
    {2048, 2048, 2048, 100, 106},
};

typedef struct product_form {
    const char *name;
    gemmepi_epilogue epilogue;
    int lt; /* cuBLASLt's; 0: it has none, or ours has none */
} product_form;

enum {
    PRODUCT_LT_GELU = LT_EPILOGUE_BIAS | LT_EPILOGUE_GELU,
    PRODUCT_LT_RELU = LT_EPILOGUE_BIAS | LT_EPILOGUE_RELU
};

/* n of gates counts both halves, and so does the bare product's. */
static const product_form product_forms[] = {
    {"NONE", GEMMEPI_NONE, 0},
    {"BIAS", GEMMEPI_BIAS, LT_EPILOGUE_BIAS},
    {"BIAS GELU_TANH", GEMMEPI_BIAS | GEMMEPI_GELU_TANH, PRODUCT_LT_GELU},
    {"BIAS SILU", GEMMEPI_BIAS | GEMMEPI_SILU, 0},
    {"BIAS RELU", GEMMEPI_BIAS | GEMMEPI_RELU, PRODUCT_LT_RELU},
    {"BIAS GELU_ERF", GEMMEPI_BIAS | GEMMEPI_GELU_ERF, 0},
    {"BIAS GELU_TANH AUX", GEMMEPI_BIAS | GEMMEPI_GELU_TANH | GEMMEPI_AUX, PRODUCT_LT_GELU | LT_EPILOGUE_AUX},
    {"BIAS SILU AUX", GEMMEPI_BIAS | GEMMEPI_SILU | GEMMEPI_AUX, 0},
    {"BIAS RELU AUX", GEMMEPI_BIAS | GEMMEPI_RELU | GEMMEPI_AUX, PRODUCT_LT_RELU | LT_EPILOGUE_AUX},
    {"BIAS SWIGLU", GEMMEPI_BIAS | GEMMEPI_SILU | GEMMEPI_GATED, 0},
    {"BIAS GEGLU", GEMMEPI_BIAS | GEMMEPI_GELU_TANH | GEMMEPI_GATED, 0},
};

typedef struct product_recipe {
    const product_shape *shape;
    const product_form *form;
} product_recipe;

static int product_bound(const product_recipe *r) {
    gemmepi_epilogue activation = r->form->epilogue & GEMMEPI_ACTIVATION_MASK;
    if (r->form->epilogue == GEMMEPI_NONE)
        return 0;
    if (r->form->epilogue & GEMMEPI_AUX)
        return r->shape->bound_aux;
    return r->shape->bound + (activation == GEMMEPI_GELU_ERF ? 5 : 0);
}

/* >>one row's tensors */

/* A set of what a run reads and writes, alike for all rows of a shape. */
enum { P_A, P_B, P_BIAS, P_D, P_AUX, P_COUNT, P_FIRST_OUTPUT = P_D };

enum {
    PRODUCT_MOST_SETS = 8,
    PRODUCT_SETS_MIB = 512,     /* of all sets together at least, or as many as there may be: L2 has 50 MiB */
    PRODUCT_BLOCK = 8 * 131071, /* normals, eight times a prime: no two lines of a matrix are alike */
    PRODUCT_SET_SHIFT = 1 << 16, /* bytes of the block between the first of two sets */
    PRODUCT_LEAST_RUNS = 2,      /* of a batch */
    PRODUCT_ELEMENT = 2,         /* bytes */
    PRODUCT_MASK_LINE = 128,     /* bits that a line of RELU's mask is a multiple of */
    PRODUCT_MOST_K = 8192,       /* of the shapes above */
    PRODUCT_SAMPLES = 48         /* elements that are computed anew */
};

typedef struct product_layout {
    size_t sizes[P_COUNT], places[P_COUNT]; /* from the start of a set */
    size_t set;                             /* bytes */
    int sets;
} product_layout;

typedef struct product_work {
    const product_shape *shape;
    const product_form *form;
    product_layout layout;
    int turn[BENCH_SERIES]; /* the set that each series has taken last */
    char *memory;
    gemmepi_plan *ours, *pass;
    lt_product epilogue;
    double lines[2][PRODUCT_MOST_K]; /* of A and B, for the check */
} product_work;

/* What the rows of a shape share, as long as b->kept says so, and what the rows of all share. */
static struct {
    gemmepi_context *split; /* whose plans take the route split alone */
    lt lt;
    lt_product plain;
} product_kept;

static product_layout product_lay_out(const product_shape *shape) {
    size_t m = (size_t)shape->m, n = (size_t)shape->n, k = (size_t)shape->k, sets;
    product_layout l;
    int t;
    memset(&l, 0, sizeof l);
    l.sizes[P_A] = m * k * PRODUCT_ELEMENT;
    l.sizes[P_B] = n * k * PRODUCT_ELEMENT;
    l.sizes[P_BIAS] = n * PRODUCT_ELEMENT;
    l.sizes[P_D] = l.sizes[P_AUX] = m * n * PRODUCT_ELEMENT;
    for (t = 0; t < P_COUNT; t++) {
        l.places[t] = l.set;
        l.set += (l.sizes[t] + 255) / 256 * 256;
    }
    sets = ((size_t)PRODUCT_SETS_MIB << 20) / l.set;
    l.sets = sets < 2 ? 2 : sets > PRODUCT_MOST_SETS ? PRODUCT_MOST_SETS : (int)sets;
    return l;
}

static size_t product_bytes(const product_layout *l) {
    return l->set * (size_t)l->sets;
}

/* The sizes are the shape's own, whatever is wanted of other rows. */
static size_t product_memory(const bench_row *row, size_t size) {
    const product_recipe *r = row->recipe;
    product_layout l = product_lay_out(r->shape);
    (void)size;
    return product_bytes(&l) + LT_WORKSPACE;
}

static char *product_tensor(const product_work *w, int set, int t) {
    return w->memory + w->layout.set * (size_t)set + w->layout.places[t];
}

/* The next set, of those that this series has taken in turn. */
static int product_next(product_work *w, int series) {
    w->turn[series] = (w->turn[series] + 1) % w->layout.sets;
    return w->turn[series];
}

/* A tensor of each set, of PRODUCT_BLOCK of the normals from `first` on, times factor. */
static int product_fill(bench *b, const product_work *w, int t, int first, double factor) {
    size_t bytes = (size_t)PRODUCT_BLOCK * PRODUCT_ELEMENT;
    char *block = NULL;
    int set, filled = bench_make_block(b, GEMMEPI_BF16, first, PRODUCT_BLOCK, factor, &block);
    for (set = 0; filled && set < w->layout.sets; set++)
        filled = bench_spread(b, product_tensor(w, set, t), w->layout.sizes[t], block, bytes,
                              (size_t)set * PRODUCT_SET_SHIFT);
    return bench_ok(b, gemmepi_free(b->context, block)) && filled;
}

/* A and the bias are normal, and so are the sums: B, of other numbers than A's, is scaled by 1 / sqrt(k). */
static int product_fill_inputs(bench *b, const product_work *w) {
    return product_fill(b, w, P_A, 0, 1) && product_fill(b, w, P_BIAS, 0, 1) &&
           product_fill(b, w, P_B, PRODUCT_BLOCK, 1 / sqrt((double)w->shape->k));
}

/* 0xff: a NaN that no run makes, and in a mask ones alone. */
static int product_wipe_outputs(bench *b, const product_work *w) {
    int set, t;
    for (set = 0; set < w->layout.sets; set++)
        for (t = P_FIRST_OUTPUT; t < P_COUNT; t++)
            if (!bench_set_bytes(b, product_tensor(w, set, t), 0xff, w->layout.sizes[t]))
                return 0;
    return 1;
}

/* Bits from a line of RELU's mask to the next, ours and cuBLASLt's. */
static int64_t product_mask_line(const product_work *w) {
    return (w->shape->n + PRODUCT_MASK_LINE - 1) / PRODUCT_MASK_LINE * PRODUCT_MASK_LINE;
}

/* >>ours, and the pass behind a bare product */

static gemmepi_status product_plan(bench *b, gemmepi_context *context, const product_work *w,
                                   gemmepi_epilogue epilogue, gemmepi_plan **plan) {
    gemmepi_matmul_desc desc;
    gemmepi_status status;
    double began = bench_seconds();
    memset(&desc, 0, sizeof desc);
    desc.m = w->shape->m, desc.n = w->shape->n, desc.k = w->shape->k, desc.batch = 1;
    desc.a.dtype = GEMMEPI_BF16;
    desc.b.transposed = 1;
    desc.epilogue = epilogue;
    status = gemmepi_plan_matmul(context, &desc, plan);
    if (status == GEMMEPI_OK)
        status = gemmepi_prepare(*plan, b->stream);
    b->plan_seconds += bench_seconds() - began;
    return status;
}

static int product_run_plan(bench *b, const product_work *w, const gemmepi_plan *plan, int set) {
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = product_tensor(w, set, P_A);
    args.b = product_tensor(w, set, P_B);
    args.d = product_tensor(w, set, P_D);
    args.bias = w->form->epilogue & GEMMEPI_BIAS ? product_tensor(w, set, P_BIAS) : NULL;
    args.aux = w->form->epilogue & GEMMEPI_AUX ? product_tensor(w, set, P_AUX) : NULL;
    return bench_ok(b, gemmepi_plan_run(plan, &args, b->stream));
}

static int product_run_ours(bench *b, void *user) {
    product_work *w = user;
    return product_run_plan(b, w, w->ours, product_next(w, BENCH_OURS));
}

static int product_run_pass(bench *b, void *user) {
    product_work *w = user;
    return product_run_plan(b, w, w->pass, product_next(w, BENCH_PASS));
}

/* The first run may take another route than was planned. */
static int product_open_ours(bench *b, product_work *w, bench_job *job) {
    if (!bench_ok(b, product_plan(b, b->context, w, w->form->epilogue, &w->ours)) ||
        !product_run_ours(b, w) || !bench_ok(b, gemmepi_plan_info(w->ours, &job->plan)))
        return 0;
    job->launches = job->plan.launches;
    job->calls[BENCH_OURS] = product_run_ours;
    return 1;
}

/* Where the route split runs the epilogue. */
static int product_open_pass(bench *b, product_work *w, bench_job *job) {
    gemmepi_status status;
    if (w->form->epilogue == GEMMEPI_NONE)
        return 1;
    status = product_plan(b, product_kept.split, w, w->form->epilogue, &w->pass);
    if (status == GEMMEPI_UNSUPPORTED)
        return 1;
    job->calls[BENCH_PASS] = product_run_pass;
    return bench_ok(b, status);
}

/* >>cuBLASLt's */

/* D^T [n, m] = B A^T, B [n, k] being a column-major [k, n] transposed. */
static lt_form product_lt_form(const product_work *w, int epilogue) {
    lt_form form;
    memset(&form, 0, sizeof form);
    form.rows = w->shape->n, form.columns = w->shape->m, form.inner = w->shape->k;
    form.a_transposed = 1;
    form.d_type = LT_REAL_16BF;
    form.epilogue = epilogue;
    if (epilogue & LT_EPILOGUE_AUX)
        form.aux_ld = epilogue & LT_EPILOGUE_RELU ? product_mask_line(w) : w->shape->n;
    return form;
}

static lt_pointers product_lt_pointers(const product_work *w, int set) {
    lt_pointers pointers;
    pointers.a = product_tensor(w, set, P_B);
    pointers.b = product_tensor(w, set, P_A);
    pointers.d = product_tensor(w, set, P_D);
    pointers.bias = product_tensor(w, set, P_BIAS);
    pointers.aux = product_tensor(w, set, P_AUX);
    return pointers;
}

static int product_run_plain(bench *b, void *user) {
    product_work *w = user;
    lt_pointers pointers = product_lt_pointers(w, product_next(w, BENCH_OTHER));
    return lt_run(b, &product_kept.lt, &product_kept.plain, &pointers);
}

static int product_run_epilogue(bench *b, void *user) {
    product_work *w = user;
    lt_pointers pointers = product_lt_pointers(w, product_next(w, BENCH_EPILOGUE));
    return lt_run(b, &product_kept.lt, &w->epilogue, &pointers);
}

static int product_open_epilogue(bench *b, product_work *w, bench_job *job) {
    lt_form form = product_lt_form(w, w->form->lt);
    lt_pointers pointers = product_lt_pointers(w, 0);
    int found;
    if (!w->form->lt)
        return 1;
    if (!lt_describe(b, &product_kept.lt, &w->epilogue, &form) ||
        !lt_point(b, &product_kept.lt, &w->epilogue, &pointers) ||
        !lt_choose(b, &product_kept.lt, &w->epilogue, product_run_epilogue, w, &found))
        return 0;
    if (found)
        job->calls[BENCH_EPILOGUE] = product_run_epilogue;
    return 1;
}

/* >>what rows share */

static int product_open_split(bench *b) {
    gemmepi_config config;
    if (product_kept.split)
        return 1;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE(b->details.device);
    config.routes = 1u << GEMMEPI_ROUTE_SPLIT;
    return bench_ok(b, gemmepi_create(&config, &product_kept.split));
}

/* A plan of the route split loads cuBLASLt, which the system's loader need not find by itself. */
static int product_open_lt(bench *b, const product_work *w) {
    gemmepi_context_details details;
    gemmepi_plan *plan = NULL;
    gemmepi_status status;
    int planned;
    if (product_kept.lt.handle)
        return 1;
    status = product_plan(b, product_kept.split, w, GEMMEPI_BIAS | GEMMEPI_SILU, &plan);
    planned = status == GEMMEPI_UNSUPPORTED || bench_ok(b, status);
    gemmepi_plan_destroy(plan);
    if (!planned || !bench_ok(b, gemmepi_context_info(product_kept.split, &details)))
        return 0;
    b->cublaslt_version = details.cublaslt_version;
    if (lt_open(b, &product_kept.lt))
        return 1;
    lt_close(&product_kept.lt);
    return 0;
}

/* The tensors and the bare product of the row's shape, which the row before may have left. */
static int product_keep(bench *b, product_work *w) {
    lt_form form = product_lt_form(w, 0);
    if (b->kept == w->shape)
        return 1;
    b->kept = NULL;
    lt_forget(&product_kept.lt, &product_kept.plain);
    if (!product_open_split(b) || !product_open_lt(b, w) || !product_fill_inputs(b, w))
        return 0;
    product_kept.lt.workspace = w->memory + product_bytes(&w->layout);
    if (!lt_describe(b, &product_kept.lt, &product_kept.plain, &form) ||
        !lt_choose_bare(b, &product_kept.lt, &product_kept.plain, product_run_plain, w))
        return 0;
    b->kept = w->shape;
    return 1;
}

/* Before the context goes. */
static void products_close(void) {
    lt_forget(&product_kept.lt, &product_kept.plain);
    lt_close(&product_kept.lt);
    gemmepi_destroy(product_kept.split);
    product_kept.split = NULL;
}

/* >>is ours right */

static double product_number(uint16_t half) {
    uint32_t word = (uint32_t)half << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return (double)value;
}

static double product_activation(gemmepi_epilogue epilogue, double v) {
    switch (epilogue & GEMMEPI_ACTIVATION_MASK) {
    case GEMMEPI_RELU:
        return v > 0 ? v : 0;
    case GEMMEPI_GELU_TANH:
        return 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    case GEMMEPI_GELU_ERF:
        return 0.5 * v * (1 + erf(0.7071067811865476 * v));
    case GEMMEPI_SILU:
        return v / (1 + exp(-v));
    default:
        return v;
    }
}

static int product_read(bench *b, const product_work *w, int set, int t, int64_t first, int64_t count,
                        double *to) {
    uint16_t halves[PRODUCT_MOST_K];
    const char *from = product_tensor(w, set, t) + first * PRODUCT_ELEMENT;
    int64_t i;
    if (!bench_ok(b, gemmepi_download(b->context, halves, from, (size_t)count * PRODUCT_ELEMENT, b->stream)))
        return 0;
    for (i = 0; i < count; i++)
        to[i] = product_number(halves[i]);
    return 1;
}

/* The pre-activation. */
static int product_expect(bench *b, product_work *w, int set, int64_t i, int64_t j, double *v) {
    int64_t k = w->shape->k, step;
    *v = 0;
    if (!product_read(b, w, set, P_A, i * k, k, w->lines[0]) ||
        !product_read(b, w, set, P_B, j * k, k, w->lines[1]) ||
        (w->form->epilogue & GEMMEPI_BIAS && !product_read(b, w, set, P_BIAS, j, 1, v)))
        return 0;
    for (step = 0; step < k; step++)
        *v += w->lines[0][step] * w->lines[1][step];
    return 1;
}

/* Sums are about 1. A NaN is off, too. */
static int product_is_near(double is, double expected) {
    return fabs(is - expected) <= 0.02 * fabs(expected) + 0.01;
}

static int product_check_mask(bench *b, const product_work *w, int set, int64_t i, int64_t j, double v) {
    unsigned char byte;
    const char *from = product_tensor(w, set, P_AUX) + (i * product_mask_line(w) + j) / 8;
    if (!bench_ok(b, gemmepi_download(b->context, &byte, from, 1, b->stream)))
        return 0;
    return product_is_near(v, 0) || (byte >> j % 8 & 1) == (v > 0) ||
           bench_fail(b, "the mask's bit (%lld, %lld) of set %d is wrong: v is %g", (long long)i,
                      (long long)j, set, v);
}

static int product_check_number(bench *b, const product_work *w, int set, int t, int64_t i, int64_t j,
                                int64_t columns, double expected) {
    double is;
    return product_read(b, w, set, t, i * columns + j, 1, &is) &&
           (product_is_near(is, expected) ||
            bench_fail(b, "%s (%lld, %lld) of set %d is %g and not %g", t == P_D ? "D" : "aux", (long long)i,
                       (long long)j, set, is, expected));
}

static int product_check_element(bench *b, product_work *w, int set, int64_t i, int64_t j, int64_t columns) {
    gemmepi_epilogue epilogue = w->form->epilogue;
    int is_mask = (epilogue & GEMMEPI_ACTIVATION_MASK) == GEMMEPI_RELU;
    double v, gate, expected;
    if (!product_expect(b, w, set, i, j, &v))
        return 0;
    expected = product_activation(epilogue, v);
    if (epilogue & GEMMEPI_GATED) {
        if (!product_expect(b, w, set, i, j + columns, &gate))
            return 0;
        expected = v * product_activation(epilogue, gate);
    }
    return product_check_number(b, w, set, P_D, i, j, columns, expected) &&
           (!(epilogue & GEMMEPI_AUX) ||
            (is_mask ? product_check_mask(b, w, set, i, j, v)
                     : product_check_number(b, w, set, P_AUX, i, j, columns, v)));
}

/* The others write the same outputs, so ours runs once more on each set. Corners, then elements anywhere. */
static int product_check(bench *b, void *user) {
    product_work *w = user;
    int64_t m = w->shape->m, columns = w->form->epilogue & GEMMEPI_GATED ? w->shape->n / 2 : w->shape->n;
    uint64_t state = 1;
    int s;
    if (!product_wipe_outputs(b, w) || !bench_repeat(b, product_run_ours, w, w->layout.sets))
        return 0;
    for (s = 0; s < PRODUCT_SAMPLES; s++) {
        int64_t i = s < 4 ? (s & 1) * (m - 1) : (int64_t)(bench_uniform(&state) * (double)m);
        int64_t j = s < 4 ? (s >> 1) * (columns - 1) : (int64_t)(bench_uniform(&state) * (double)columns);
        if (!product_check_element(b, w, s % w->layout.sets, i, j, columns))
            return 0;
    }
    return 1;
}

/* >>the rows */

static void product_close(bench_job *job) {
    product_work *w = job->user;
    lt_forget(&product_kept.lt, &w->epilogue);
    gemmepi_plan_destroy(w->ours);
    gemmepi_plan_destroy(w->pass);
    free(w);
}

static int product_open(bench *b, const bench_row *row, bench_job *job) {
    const product_recipe *r = row->recipe;
    product_work *w = calloc(1, sizeof *w);
    if (!w)
        return bench_fail(b, "out of memory");
    w->shape = r->shape;
    w->form = r->form;
    w->layout = product_lay_out(r->shape);
    w->memory = b->memory;
    job->user = w;
    job->check = product_check;
    job->least_runs = PRODUCT_LEAST_RUNS;
    job->calls[BENCH_OTHER] = product_run_plain;
    if (product_keep(b, w) && product_open_ours(b, w, job) && product_open_pass(b, w, job) &&
        product_open_epilogue(b, w, job))
        return 1;
    product_close(job);
    return 0;
}

static void product_add_row(bench_list *list, const product_recipe *r) {
    bench_row *row = list->rows + list->count;
    const product_shape *shape = r->shape;
    if (list->count == BENCH_MOST_ROWS)
        return;
    list->count++;
    memset(row, 0, sizeof *row);
    row->kind = BENCH_PRODUCT;
    row->group = "products m x n x k";
    row->m = shape->m, row->n = shape->n, row->k = shape->k;
    row->epilogue = r->form->name;
    snprintf(row->name, sizeof row->name, "product %dx%dx%d %s", (int)row->m, (int)row->n, (int)row->k,
             row->epilogue);
    snprintf(row->dtype, sizeof row->dtype, "BF16");
    row->bound = product_bound(r) / 100.0;
    row->recipe = r;
    row->memory = product_memory;
    row->open = product_open;
    row->close = product_close;
}

/* The rows of a shape follow each other. */
static void products_rows(bench_list *list) {
    static product_recipe recipes[COUNT(product_shapes) * COUNT(product_forms)];
    int shape, form;
    for (shape = 0; shape < COUNT(product_shapes); shape++)
        for (form = 0; form < COUNT(product_forms); form++) {
            product_recipe *r = recipes + shape * COUNT(product_forms) + form;
            r->shape = product_shapes + shape;
            r->form = product_forms + form;
            product_add_row(list, r);
        }
}
