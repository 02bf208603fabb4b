/* The rows of products: a planned product with its epilogue against cuBLASLt's fastest bare product, against
   cuBLASLt's own epilogue where it has that, and against a bare product with a pass of ours behind it. BF16, some F32,
   row-major, A [m, k], B stored [n, k] as a linear layer's weight; backward, where dX = dY W, the same weight is
   B [k, n]. Part of main.c. */
#include "bench.h"
#include "lt.h"

/* >>what a row is */

typedef struct product_form {
    const char *name;
    gemmepi_epilogue epilogue;
    int lt; /* cuBLASLt's; 0: it has none, or ours has none */
} product_form;

enum {
    PRODUCT_LT_GELU = LT_EPILOGUE_BIAS | LT_EPILOGUE_GELU,
    PRODUCT_LT_RELU = LT_EPILOGUE_BIAS | LT_EPILOGUE_RELU,
    PRODUCT_LT_DGELU = LT_EPILOGUE_DGELU | LT_EPILOGUE_AUX | LT_EPILOGUE_BGRAD,
    PRODUCT_LT_DRELU = LT_EPILOGUE_DRELU | LT_EPILOGUE_AUX | LT_EPILOGUE_BGRAD
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

#define PRODUCT_BACKWARD       (GEMMEPI_BACKWARD | GEMMEPI_BGRAD)
#define PRODUCT_GATED_BACKWARD (GEMMEPI_BACKWARD | GEMMEPI_GATED)

static const product_form product_forms_backward[] = {
    {"BACKWARD GELU_TANH BGRAD", PRODUCT_BACKWARD | GEMMEPI_GELU_TANH, PRODUCT_LT_DGELU},
    {"BACKWARD SILU BGRAD", PRODUCT_BACKWARD | GEMMEPI_SILU, 0},
    {"BACKWARD RELU BGRAD", PRODUCT_BACKWARD | GEMMEPI_RELU, PRODUCT_LT_DRELU},
    {"BACKWARD GELU_ERF BGRAD", PRODUCT_BACKWARD | GEMMEPI_GELU_ERF, 0},
    {"BACKWARD SILU", GEMMEPI_BACKWARD | GEMMEPI_SILU, 0},
};

/* n counts one half, as the bare product's: D and aux are [m, 2n]. */
static const product_form product_forms_gated_backward[] = {
    {"BACKWARD SWIGLU", PRODUCT_GATED_BACKWARD | GEMMEPI_SILU, 0},
    {"BACKWARD GEGLU", PRODUCT_GATED_BACKWARD | GEMMEPI_GELU_TANH, 0},
    {"BACKWARD SWIGLU BGRAD", PRODUCT_GATED_BACKWARD | GEMMEPI_SILU | GEMMEPI_BGRAD, 0},
};

static const product_form product_forms_odd[] = {
    {"NONE", GEMMEPI_NONE, 0},
    {"BIAS SILU", GEMMEPI_BIAS | GEMMEPI_SILU, 0},
};

static const product_form product_forms_words[] = {
    {"NONE", GEMMEPI_NONE, 0},
    {"BIAS GELU_TANH", GEMMEPI_BIAS | GEMMEPI_GELU_TANH, PRODUCT_LT_GELU},
    {"BIAS SILU", GEMMEPI_BIAS | GEMMEPI_SILU, 0},
    {"BIAS SILU AUX", GEMMEPI_BIAS | GEMMEPI_SILU | GEMMEPI_AUX, 0},
    {"BIAS SWIGLU", GEMMEPI_BIAS | GEMMEPI_SILU | GEMMEPI_GATED, 0},
};

/* What tensors are of, and how they are multiplied. */
typedef struct product_type {
    gemmepi_dtype dtype;
    gemmepi_compute compute;
    int lt, lt_compute; /* cuBLASLt's names for them; 0: its default */
    int element;        /* bytes */
    double near;        /* how far a result may be off: so much, and twice that of itself */
    const char *name;
} product_type;

static const product_type product_bf16 = {GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, LT_REAL_16BF, 0, 2, 0.01,
                                          "BF16"};
static const product_type product_f32 = {GEMMEPI_F32, GEMMEPI_COMPUTE_F32, LT_REAL_32F, 0, 4, 2e-5, "F32"};
static const product_type product_tf32 = {
    GEMMEPI_F32, GEMMEPI_COMPUTE_TF32, LT_REAL_32F, LT_COMPUTE_TF32, 4, 0.003, "TF32"};

/* Shapes of one kind. */
typedef struct product_family {
    const product_type *type; /* of A, B, bias, D and aux; of 32 bits forward alone */
    const char *name;         /* what stands before the sizes in a row's name */
    int b_transposed;         /* B is stored [n, k] */
    int saved;                /* halves of D and of the aux that is read, each [m, n]; 0: forward */
    int pad, pad_d;           /* elements after each line of A and B, of D */
    int bounds_none;          /* whether the bound is NONE's too */
    int drawn;                /* in the chart */
    const product_form *forms;
    int count; /* of forms, as many as there are forward at most */
} product_family;

static const product_family product_forward = {&product_bf16,       "", 1, 0, 0, 0, 0, 1, product_forms,
                                               COUNT(product_forms)};
static const product_family product_backward = {
    &product_bf16, "dX ", 0, 1, 0, 0, 0, 0, product_forms_backward, COUNT(product_forms_backward)};
static const product_family product_gated_backward = {&product_bf16,
                                                      "dX ",
                                                      0,
                                                      2,
                                                      0,
                                                      0,
                                                      0,
                                                      0,
                                                      product_forms_gated_backward,
                                                      COUNT(product_forms_gated_backward)};
/* Lines of an odd number of elements, which TMA does not take: D's where n is odd, A's and B's, or all. */
static const product_family product_odd_n = {&product_bf16,           "", 1, 0, 0, 0, 0, 0, product_forms_odd,
                                             COUNT(product_forms_odd)};
static const product_family product_odd = {
    &product_bf16, "odd ", 1, 0, 1, 0, 1, 0, product_forms_odd, COUNT(product_forms_odd)};
static const product_family product_odd_d = {
    &product_bf16, "odd D ", 1, 0, 1, 1, 1, 0, product_forms_odd, COUNT(product_forms_odd)};
static const product_family product_words = {
    &product_f32, "", 1, 0, 0, 0, 0, 0, product_forms_words, COUNT(product_forms_words)};
static const product_family product_tensor_words = {
    &product_tf32, "", 1, 0, 0, 0, 0, 0, product_forms_words, COUNT(product_forms_words)};

/* The bounds are hundredths of the bare product's time, the most that ours may take. */
typedef struct product_shape {
    const product_family *family;
    int64_t m, n, k;
    int bound;     /* 5 more with GELU_ERF */
    int bound_aux; /* with the pre-activation saved */
} product_shape;

static const product_shape product_shapes[] = {
    {&product_forward, 8192, 8192, 8192, 102, 104},
    {&product_forward, 4096, 4096, 4096, 100, 106},
    {&product_forward, 4096, 14336, 4096, 102, 106},
    {&product_forward, 8192, 3072, 768, 100, 115},
    {&product_forward, 8192, 768, 3072, 102, 108},
    {&product_forward, 2048, 50304, 768, 100, 115},
    {&product_forward, 2048, 2048, 2048, 100, 106},
    {&product_backward, 8192, 8192, 8192, 106, 0},
    {&product_backward, 4096, 4096, 4096, 110, 0},
    {&product_backward, 4096, 14336, 4096, 110, 0},
    {&product_backward, 8192, 3072, 768, 120, 0},
    {&product_backward, 8192, 768, 3072, 112, 0},
    {&product_backward, 2048, 50304, 768, 120, 0},
    {&product_backward, 2048, 2048, 2048, 112, 0},
    {&product_gated_backward, 8192, 14336, 4096, 112, 0},
    {&product_odd_n, 2048, 50257, 768, 0, 0},
    {&product_odd, 1000, 1000, 1000, 100, 0},
    {&product_odd_d, 1000, 1000, 1000, 100, 0},
    {&product_words, 4096, 4096, 4096, 0, 0},
    {&product_words, 8192, 3072, 768, 0, 0},
    {&product_words, 300, 300, 300, 0, 0},
    {&product_tensor_words, 4096, 4096, 4096, 0, 0},
    {&product_tensor_words, 8192, 3072, 768, 0, 0},
    {&product_tensor_words, 300, 300, 300, 0, 0},
};

typedef struct product_recipe {
    const product_shape *shape;
    const product_form *form;
} product_recipe;

static int product_bound(const product_recipe *r) {
    gemmepi_epilogue activation = r->form->epilogue & GEMMEPI_ACTIVATION_MASK;
    if (r->form->epilogue == GEMMEPI_NONE && !r->shape->family->bounds_none)
        return 0;
    if (r->form->epilogue & GEMMEPI_AUX)
        return r->shape->bound_aux;
    if (!r->shape->bound)
        return 0;
    return r->shape->bound + (activation == GEMMEPI_GELU_ERF ? 5 : 0);
}

/* >>one row's tensors */

/* A set of what a run reads and writes, alike for all rows of a shape. SAVED and MASK are the aux that BACKWARD reads,
   AUX is the one that is written. */
enum { P_A, P_B, P_BIAS, P_SAVED, P_MASK, P_D, P_AUX, P_BIAS_GRAD, P_COUNT, P_FIRST_OUTPUT = P_D };

enum {
    PRODUCT_MOST_SETS = 8,
    PRODUCT_SETS_MIB = 512,     /* of all sets together at least, or as many as there may be: L2 has 50 MiB */
    PRODUCT_BLOCK = 8 * 131071, /* normals, eight times a prime: no two lines of a matrix are alike */
    PRODUCT_SET_SHIFT = 1 << 16, /* bytes of the block between the first of two sets */
    PRODUCT_LEAST_RUNS = 2,      /* of a batch */
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
    double lines[2][PRODUCT_MOST_K]; /* of A and B, for the check, */
    uint16_t *b_copy; /* and all of B of one set, where its columns are no lines; NULL: not yet */
    int b_set;
} product_work;

/* What the rows of a shape share, as long as b->kept says so, and what the rows of all share. */
static struct {
    gemmepi_context *split; /* whose plans take the route split alone */
    lt lt;
    lt_product plain;
} product_kept;

/* Elements from a line to the next. */
static int64_t product_a_line(const product_shape *shape) {
    return shape->k + shape->family->pad;
}

static int64_t product_b_line(const product_shape *shape) {
    return (shape->family->b_transposed ? shape->k : shape->n) + shape->family->pad;
}

/* Bits from a line of RELU's mask to the next, ours and cuBLASLt's. */
static int64_t product_mask_line(const product_shape *shape) {
    return (shape->n + PRODUCT_MASK_LINE - 1) / PRODUCT_MASK_LINE * PRODUCT_MASK_LINE;
}

/* Elements of each tensor. */
static void product_count(const product_shape *shape, int64_t *counts) {
    const product_family *family = shape->family;
    counts[P_A] = shape->m * product_a_line(shape);
    counts[P_B] = (family->b_transposed ? shape->n : shape->k) * product_b_line(shape);
    counts[P_BIAS] = shape->n;
    counts[P_D] = shape->m * (shape->n + family->pad_d);
    counts[P_AUX] = shape->m * shape->n;
    if (!family->saved)
        return;
    counts[P_AUX] = 0;
    counts[P_SAVED] = counts[P_D] = shape->m * shape->n * family->saved;
    counts[P_MASK] = shape->m * product_mask_line(shape) / (8 * shape->family->type->element);
    counts[P_BIAS_GRAD] = shape->n * family->saved;
}

static product_layout product_lay_out(const product_shape *shape) {
    int64_t counts[P_COUNT] = {0};
    product_layout l;
    size_t sets;
    int t;
    memset(&l, 0, sizeof l);
    product_count(shape, counts);
    for (t = 0; t < P_COUNT; t++)
        l.sizes[t] = (size_t)(counts[t] * shape->family->type->element);
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

/* A tensor of each set, where the shape has it, of the block. */
static int product_spread(bench *b, const product_work *w, int t, const char *block) {
    size_t bytes = (size_t)PRODUCT_BLOCK * (size_t)w->shape->family->type->element;
    int set;
    for (set = 0; w->layout.sizes[t] && set < w->layout.sets; set++)
        if (!bench_spread(b, product_tensor(w, set, t), w->layout.sizes[t], block, bytes,
                          (size_t)set * PRODUCT_SET_SHIFT))
            return 0;
    return 1;
}

/* Of PRODUCT_BLOCK of the normals from `first` on, times factor. */
static int product_fill(bench *b, const product_work *w, int t, int first, double factor) {
    char *block = NULL;
    int filled = bench_make_block(b, w->shape->family->type->dtype, first, PRODUCT_BLOCK, factor, &block) &&
                 product_spread(b, w, t, block);
    return bench_ok(b, gemmepi_free(b->context, block)) && filled;
}

/* Random bits, on the device. *block is the caller's to free, also where this fails. */
static int product_make_bits(bench *b, const product_type *type, char **block) {
    size_t bytes = (size_t)PRODUCT_BLOCK * (size_t)type->element, i;
    unsigned char *values = malloc(bytes);
    uint64_t state = 2;
    void *pointer = NULL;
    int made;
    if (!values)
        return bench_fail(b, "out of memory");
    for (i = 0; i < bytes; i++)
        values[i] = (unsigned char)(256 * bench_uniform(&state));
    made = bench_ok(b, gemmepi_alloc(b->context, bytes, &pointer));
    *block = pointer;
    made = made && bench_ok(b, gemmepi_upload(b->context, pointer, values, bytes, b->stream));
    free(values);
    return made;
}

static int product_fill_mask(bench *b, const product_work *w) {
    char *block = NULL;
    int filled = !w->layout.sizes[P_MASK] || (product_make_bits(b, w->shape->family->type, &block) &&
                                              product_spread(b, w, P_MASK, block));
    return bench_ok(b, gemmepi_free(b->context, block)) && filled;
}

/* A and the bias are normal, and so are the sums: B, of other numbers than A's, is scaled by 1 / sqrt(k).
   Pre-activations are normal as well. */
static int product_fill_inputs(bench *b, const product_work *w) {
    return product_fill(b, w, P_A, 0, 1) && product_fill(b, w, P_BIAS, 0, 1) &&
           product_fill(b, w, P_B, PRODUCT_BLOCK, 1 / sqrt((double)w->shape->k)) &&
           product_fill(b, w, P_SAVED, PRODUCT_BLOCK / 2, 1) && product_fill_mask(b, w);
}

/* 0xff: a NaN that no run makes, and in a mask ones alone. */
static int product_wipe_outputs(bench *b, const product_work *w) {
    int set, t;
    for (set = 0; set < w->layout.sets; set++)
        for (t = P_FIRST_OUTPUT; t < P_COUNT; t++)
            if (w->layout.sizes[t] &&
                !bench_set_bytes(b, product_tensor(w, set, t), 0xff, w->layout.sizes[t]))
                return 0;
    return 1;
}

/* The columns of D and of its saved half, without a gate's. */
static int64_t product_columns(const product_work *w) {
    int joined = w->form->epilogue & GEMMEPI_GATED && !w->shape->family->saved;
    return joined ? w->shape->n / 2 : w->shape->n;
}

/* Elements from a line of D to the next. */
static int64_t product_d_line(const product_work *w) {
    const product_family *family = w->shape->family;
    return product_columns(w) * (family->saved ? family->saved : 1) + family->pad_d;
}

static int product_is_relu(const product_work *w) {
    return (w->form->epilogue & GEMMEPI_ACTIVATION_MASK) == GEMMEPI_RELU;
}

/* What the form reads or writes as aux. */
static int product_aux(const product_work *w) {
    return !w->shape->family->saved ? P_AUX : product_is_relu(w) ? P_MASK : P_SAVED;
}

/* >>ours, and the pass behind a bare product */

static gemmepi_status product_plan(bench *b, gemmepi_context *context, const product_work *w,
                                   gemmepi_epilogue epilogue, gemmepi_plan **plan) {
    gemmepi_matmul_desc desc;
    gemmepi_status status;
    double began = bench_seconds();
    memset(&desc, 0, sizeof desc);
    desc.m = w->shape->m, desc.n = w->shape->n, desc.k = w->shape->k, desc.batch = 1;
    desc.a.dtype = w->shape->family->type->dtype;
    desc.compute = w->shape->family->type->compute;
    desc.a.ld = product_a_line(w->shape);
    desc.b.ld = product_b_line(w->shape);
    desc.b.transposed = w->shape->family->b_transposed;
    desc.d.ld = w->shape->family->pad_d ? product_d_line(w) : 0;
    desc.epilogue = epilogue;
    status = gemmepi_plan_matmul(context, &desc, plan);
    if (status == GEMMEPI_OK)
        status = gemmepi_plan_prepare(*plan, b->stream);
    b->plan_seconds += bench_seconds() - began;
    return status;
}

static int product_run_plan(bench *b, const product_work *w, const gemmepi_plan *plan, int set) {
    gemmepi_epilogue epilogue = w->form->epilogue;
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = product_tensor(w, set, P_A);
    args.b = product_tensor(w, set, P_B);
    args.d = product_tensor(w, set, P_D);
    args.bias = epilogue & GEMMEPI_BIAS ? product_tensor(w, set, P_BIAS) : NULL;
    args.aux = epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD) ? product_tensor(w, set, product_aux(w)) : NULL;
    args.bias_grad = epilogue & GEMMEPI_BGRAD ? product_tensor(w, set, P_BIAS_GRAD) : NULL;
    return bench_ok(b, gemmepi_run_matmul(plan, &args, b->stream));
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

/* D^T [n, m] = op(B)^T A^T: B [n, k] is a column-major [k, n] transposed, B [k, n] a column-major [n, k]. */
static lt_form product_lt_form(const product_work *w, int epilogue) {
    const product_shape *shape = w->shape;
    lt_form form;
    memset(&form, 0, sizeof form);
    form.rows = shape->n, form.columns = shape->m, form.inner = shape->k;
    form.a_transposed = shape->family->b_transposed;
    form.a_ld = product_b_line(shape), form.b_ld = product_a_line(shape);
    form.d_ld = shape->n + shape->family->pad_d;
    form.type = shape->family->type->lt;
    form.compute = shape->family->type->lt_compute;
    form.epilogue = epilogue;
    if (epilogue & LT_EPILOGUE_AUX)
        form.aux_ld = product_is_relu(w) ? product_mask_line(shape) : shape->n;
    return form;
}

static lt_pointers product_lt_pointers(const product_work *w, int set) {
    lt_pointers pointers;
    pointers.a = product_tensor(w, set, P_B);
    pointers.b = product_tensor(w, set, P_A);
    pointers.d = product_tensor(w, set, P_D);
    pointers.bias = product_tensor(w, set, w->form->epilogue & GEMMEPI_BGRAD ? P_BIAS_GRAD : P_BIAS);
    pointers.aux = product_tensor(w, set, product_aux(w));
    pointers.c = NULL;
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
    return product_kept.split || bench_open_route(b, GEMMEPI_ROUTE_SPLIT, &product_kept.split);
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

/* Of what is saved. RELU's is in a mask. */
static double product_derivative(gemmepi_epilogue epilogue, double x) {
    double q;
    switch (epilogue & GEMMEPI_ACTIVATION_MASK) {
    case GEMMEPI_GELU_TANH:
        q = 1 / (1 + exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)));
        return q + 2 * x * q * (1 - q) * 0.7978845608028654 * (1 + 0.134145 * x * x);
    case GEMMEPI_GELU_ERF:
        return 0.5 * (1 + erf(0.7071067811865476 * x)) + x * 0.3989422804014327 * exp(-0.5 * x * x);
    case GEMMEPI_SILU:
        q = 1 / (1 + exp(-x));
        return q * (1 + x * (1 - q));
    default:
        return 1;
    }
}

static int product_read(bench *b, const product_work *w, int set, int t, int64_t first, int64_t count,
                        double *to) {
    union {
        float words[PRODUCT_MOST_K];
        uint16_t halves[PRODUCT_MOST_K];
    } read;
    int element = w->shape->family->type->element;
    const char *from = product_tensor(w, set, t) + first * element;
    int64_t i;
    if (!bench_ok(b, gemmepi_download(b->context, &read, from, (size_t)(count * element), b->stream)))
        return 0;
    for (i = 0; i < count; i++)
        to[i] = element == 4 ? (double)read.words[i] : product_number(read.halves[i]);
    return 1;
}

/* All of a tensor, the caller's to free; NULL where that fails. */
static uint16_t *product_download(bench *b, const product_work *w, int set, int t) {
    size_t bytes = w->layout.sizes[t];
    uint16_t *copy = malloc(bytes);
    if (copy && bench_ok(b, gemmepi_download(b->context, copy, product_tensor(w, set, t), bytes, b->stream)))
        return copy;
    if (!copy)
        bench_fail(b, "out of memory");
    free(copy);
    return NULL;
}

/* A column of B [k, n] from a copy: thousands of downloads of one element each would take longer. */
static int product_read_from_copy(bench *b, product_work *w, int set, int64_t j, double *to) {
    int64_t step;
    if (!w->b_copy || w->b_set != set) {
        free(w->b_copy);
        w->b_copy = product_download(b, w, set, P_B);
        w->b_set = set;
    }
    for (step = 0; w->b_copy && step < w->shape->k; step++)
        to[step] = product_number(w->b_copy[step * product_b_line(w->shape) + j]);
    return w->b_copy != NULL;
}

/* A column of op(B). */
static int product_read_column(bench *b, product_work *w, int set, int64_t j, double *to) {
    return w->shape->family->b_transposed
               ? product_read(b, w, set, P_B, j * product_b_line(w->shape), w->shape->k, to)
               : product_read_from_copy(b, w, set, j, to);
}

/* What comes before the activation. */
static int product_expect(bench *b, product_work *w, int set, int64_t i, int64_t j, double *v) {
    int64_t k = w->shape->k, step;
    *v = 0;
    if (!product_read(b, w, set, P_A, i * product_a_line(w->shape), k, w->lines[0]) ||
        !product_read_column(b, w, set, j, w->lines[1]) ||
        (w->form->epilogue & GEMMEPI_BIAS && !product_read(b, w, set, P_BIAS, j, 1, v)))
        return 0;
    for (step = 0; step < k; step++)
        *v += w->lines[0][step] * w->lines[1][step];
    return 1;
}

/* Sums are about 1. A NaN is off, too. */
static int product_is_near(const product_work *w, double is, double expected) {
    return fabs(is - expected) <= w->shape->family->type->near * (1 + 2 * fabs(expected));
}

static int product_read_bit(bench *b, const product_work *w, int set, int64_t i, int64_t j, int *bit) {
    unsigned char byte = 0;
    const char *from = product_tensor(w, set, product_aux(w)) + (i * product_mask_line(w->shape) + j) / 8;
    if (!bench_ok(b, gemmepi_download(b->context, &byte, from, 1, b->stream)))
        return 0;
    *bit = byte >> j % 8 & 1;
    return 1;
}

static int product_check_mask(bench *b, const product_work *w, int set, int64_t i, int64_t j, double v) {
    int bit;
    return product_read_bit(b, w, set, i, j, &bit) &&
           (product_is_near(w, v, 0) || bit == (v > 0) ||
            bench_fail(b, "the mask's bit (%lld, %lld) of set %d is wrong: v is %g", (long long)i,
                       (long long)j, set, v));
}

static int product_check_number(bench *b, const product_work *w, int set, int t, int64_t i, int64_t j,
                                int64_t line, double expected) {
    double is;
    return product_read(b, w, set, t, i * line + j, 1, &is) &&
           (product_is_near(w, is, expected) ||
            bench_fail(b, "%s (%lld, %lld) of set %d is %g and not %g", t == P_D ? "D" : "aux", (long long)i,
                       (long long)j, set, is, expected));
}

static int product_check_forward(bench *b, product_work *w, int set, int64_t i, int64_t j) {
    gemmepi_epilogue epilogue = w->form->epilogue;
    int64_t columns = product_columns(w);
    double v, gate, expected;
    if (!product_expect(b, w, set, i, j, &v))
        return 0;
    expected = product_activation(epilogue, v);
    if (epilogue & GEMMEPI_GATED) {
        if (!product_expect(b, w, set, i, j + columns, &gate))
            return 0;
        expected = v * product_activation(epilogue, gate);
    }
    return product_check_number(b, w, set, P_D, i, j, product_d_line(w), expected) &&
           (!(epilogue & GEMMEPI_AUX) ||
            (product_is_relu(w) ? product_check_mask(b, w, set, i, j, v)
                                : product_check_number(b, w, set, P_AUX, i, j, columns, v)));
}

/* The halves' elements from v, the gradient of the gate's result. */
static int product_check_halves(bench *b, const product_work *w, int set, int64_t i, int64_t j, double v) {
    gemmepi_epilogue epilogue = w->form->epilogue;
    int64_t n = w->shape->n, line = product_d_line(w);
    double value, gate;
    return product_read(b, w, set, P_SAVED, i * line + j, 1, &value) &&
           product_read(b, w, set, P_SAVED, i * line + n + j, 1, &gate) &&
           product_check_number(b, w, set, P_D, i, j, line, v * product_activation(epilogue, gate)) &&
           product_check_number(b, w, set, P_D, i, n + j, line,
                                v * value * product_derivative(epilogue, gate));
}

static int product_check_backward(bench *b, product_work *w, int set, int64_t i, int64_t j) {
    gemmepi_epilogue epilogue = w->form->epilogue;
    int64_t line = product_d_line(w);
    double v, saved;
    int bit = 0;
    if (!product_expect(b, w, set, i, j, &v))
        return 0;
    if (epilogue & GEMMEPI_GATED)
        return product_check_halves(b, w, set, i, j, v);
    if (product_is_relu(w))
        return product_read_bit(b, w, set, i, j, &bit) &&
               product_check_number(b, w, set, P_D, i, j, line, bit ? v : 0);
    return product_read(b, w, set, P_SAVED, i * line + j, 1, &saved) &&
           product_check_number(b, w, set, P_D, i, j, line, v * product_derivative(epilogue, saved));
}

static int product_check_element(bench *b, product_work *w, int set, int64_t i, int64_t j) {
    return w->shape->family->saved ? product_check_backward(b, w, set, i, j)
                                   : product_check_forward(b, w, set, i, j);
}

/* Corners, then elements anywhere; a set's follow each other, as their B is downloaded. */
static int product_check_elements(bench *b, product_work *w) {
    int64_t m = w->shape->m, columns = product_columns(w);
    uint64_t state = 1;
    int s;
    for (s = 0; s < PRODUCT_SAMPLES; s++) {
        int64_t i = s < 4 ? (s & 1) * (m - 1) : (int64_t)(bench_uniform(&state) * (double)m);
        int64_t j = s < 4 ? (s >> 1) * (columns - 1) : (int64_t)(bench_uniform(&state) * (double)columns);
        if (!product_check_element(b, w, s * w->layout.sets / PRODUCT_SAMPLES, i, j))
            return 0;
    }
    return 1;
}

/* Of each column of D as stored: the sum, and the sum of the squares. */
static void product_sum_columns(const uint16_t *d, int64_t m, int64_t columns, double *sums,
                                double *squares) {
    int64_t i, j;
    for (i = 0; i < m; i++, d += columns)
        for (j = 0; j < columns; j++) {
            double x = product_number(d[j]);
            sums[j] += x;
            squares[j] += x * x;
        }
}

/* Ours may sum before D is rounded. Roundings of some 2^-9.3 of the elements add up as a random walk does: 2^-6 of the
   root of the squares' sum is ten times that. 2^-7 of the sum is twice its own rounding. A NaN is off, too. */
static int product_is_sum(double is, double sum, double squares) {
    return fabs(is - sum) <= fabs(sum) / 128 + sqrt(squares) / 64;
}

/* All columns, against D of the same set. */
static int product_compare_sums(bench *b, const product_work *w, const uint16_t *d, const uint16_t *grad,
                                double *sums) {
    int64_t columns = product_d_line(w), j;
    double *squares = sums + columns;
    product_sum_columns(d, w->shape->m, columns, sums, squares);
    for (j = 0; j < columns; j++)
        if (!product_is_sum(product_number(grad[j]), sums[j], squares[j]))
            return bench_fail(b, "bias_grad %lld is %g, and D's column sums to %g", (long long)j,
                              product_number(grad[j]), sums[j]);
    return 1;
}

/* Of one set, the last. */
static int product_check_bias_grad(bench *b, const product_work *w) {
    int set = w->layout.sets - 1;
    double *sums = calloc(2 * (size_t)product_d_line(w), sizeof *sums);
    uint16_t *d = product_download(b, w, set, P_D), *grad = product_download(b, w, set, P_BIAS_GRAD);
    int right = 0;
    if (!sums)
        bench_fail(b, "out of memory");
    else if (d && grad)
        right = product_compare_sums(b, w, d, grad, sums);
    free(sums);
    free(d);
    free(grad);
    return right;
}

/* The others write the same outputs, so ours runs once more on each set. */
static int product_check(bench *b, void *user) {
    product_work *w = user;
    return product_wipe_outputs(b, w) && bench_repeat(b, product_run_ours, w, w->layout.sets) &&
           product_check_elements(b, w) &&
           (!(w->form->epilogue & GEMMEPI_BGRAD) || product_check_bias_grad(b, w));
}

/* >>the rows */

static void product_close(bench_job *job) {
    product_work *w = job->user;
    lt_forget(&product_kept.lt, &w->epilogue);
    gemmepi_plan_destroy(w->ours);
    gemmepi_plan_destroy(w->pass);
    free(w->b_copy);
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
    row->drawn = shape->family->drawn;
    snprintf(row->name, sizeof row->name, "product %s%dx%dx%d %s", shape->family->name, (int)row->m,
             (int)row->n, (int)row->k, row->epilogue);
    snprintf(row->dtype, sizeof row->dtype, "%s", shape->family->type->name);
    row->bound = product_bound(r) / 100.0;
    row->recipe = r;
    row->memory = product_memory;
    row->open = product_open;
    row->close = product_close;
}

/* The rows of a shape follow each other. */
static void products_rows(bench_list *list) {
    static product_recipe recipes[COUNT(product_shapes)][COUNT(product_forms)];
    int shape, form;
    for (shape = 0; shape < COUNT(product_shapes); shape++)
        for (form = 0; form < product_shapes[shape].family->count; form++) {
            product_recipe *r = &recipes[shape][form];
            r->shape = product_shapes + shape;
            r->form = product_shapes[shape].family->forms + form;
            product_add_row(list, r);
        }
}
