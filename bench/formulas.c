/* The rows of formulas: a product with one against the same bare product, by cuBLASLt's fastest algorithm. Where a formula reads or
   writes matrices beside D, their way through memory is part of its time. Part of main.c. */
#include "bench.h"
#include "lt.h"

/* >>what a row is */

enum { FORMULA_MOST_OPERANDS = 4, FORMULA_MOST_SETS = 8, FORMULA_SETS_MIB = 256 };

typedef struct formula_form {
    const char *name, *formula;
    gemmepi_operand operands
        [FORMULA_MOST_OPERANDS]; /* up to the first without a name; those with a period of rows are tables */
    int64_t m, n, k;
    gemmepi_dtype d; /* DEFAULT: none is stored */
    uint64_t flags;
    double bound;
} formula_form;

#define IN(name, kind, dtype) \
    { name, kind, GEMMEPI_WIDTH_N, dtype, 0, 0, 0, 0, 0, 0, {GEMMEPI_SCALE_NONE, 0}, 0, NULL }
#define HALF(name)                                                                                          \
    {                                                                                                       \
        name, GEMMEPI_FULL, GEMMEPI_WIDTH_HALF, GEMMEPI_BF16, 0, 0, 0, 0, 0, 0, {GEMMEPI_SCALE_NONE, 0}, 0, \
            NULL                                                                                            \
    }
#define OUT(name, kind, dtype) \
    { name, kind, GEMMEPI_WIDTH_N, dtype, 1, 0, 0, 0, 0, 0, {GEMMEPI_SCALE_NONE, 0}, 0, NULL }
#define ROWS   GEMMEPI_PER_ROW
#define COLUMN GEMMEPI_PER_COLUMN
#define FULL   GEMMEPI_FULL
#define F32    GEMMEPI_F32
#define BF16   GEMMEPI_BF16
#define NONE_D GEMMEPI_DTYPE_DEFAULT

#define FORMULA_OF_SIZE(m, n, k, bound)                                                                      \
    {"norm", "d = v * rstd * gain", {IN("rstd", ROWS, F32), IN("gain", COLUMN, F32)}, m, n, k, BF16, 0,      \
     bound},                                                                                                 \
        {"gate with squares",                                                                                \
         "d = silu(v + bias) * up + residual; ss = row_sum(d * d)",                                          \
         {IN("bias", COLUMN, BF16), IN("up", FULL, BF16), IN("residual", FULL, BF16), OUT("ss", ROWS, F32)}, \
         m,                                                                                                  \
         n,                                                                                                  \
         k,                                                                                                  \
         BF16,                                                                                               \
         0,                                                                                                  \
         bound},                                                                                             \
        {"dropout",                                                                                          \
         "d = (uniform(seed, 0) >= 0.1 ? v / 0.9 : 0) + residual",                                           \
         {IN("seed", GEMMEPI_SCALAR, GEMMEPI_I64), IN("residual", FULL, BF16)},                              \
         m,                                                                                                  \
         n,                                                                                                  \
         k,                                                                                                  \
         BF16,                                                                                               \
         0,                                                                                                  \
         bound},                                                                                             \
        {"RoPE",                                                                                             \
         "x = left(v, 128); y = right(v, 128); d = pair(x * c - y * s, y * c + x * s, 128)",                 \
         {HALF("c"), HALF("s")},                                                                             \
         m,                                                                                                  \
         n,                                                                                                  \
         k,                                                                                                  \
         BF16,                                                                                               \
         0,                                                                                                  \
         bound},                                                                                             \
        {"GELU to fp8",                                                                                      \
         "d = gelu_erf(v + bias)",                                                                           \
         {IN("bias", COLUMN, BF16)},                                                                         \
         m,                                                                                                  \
         n,                                                                                                  \
         k,                                                                                                  \
         GEMMEPI_E4M3,                                                                                       \
         GEMMEPI_AMAX_D,                                                                                     \
         bound},                                                                                             \
    {                                                                                                        \
        "sines", "d = sin(30 * (v + bias))", {IN("bias", COLUMN, BF16)}, m, n, k, BF16, 0, 0                 \
    }
/* D in BF16, without a bound; the operands are last. */
#define FORMULA_UNBOUND(name, text, m, n, k, ...) \
    { name, text, {__VA_ARGS__}, m, n, k, BF16, 0, 0 }
#define FORMULA_GRADIENTS(m, n, k)                                                                        \
    FORMULA_UNBOUND("gradient", "d = v * d_gelu_tanh(p); y = gelu_tanh(p)", m, n, k, IN("p", FULL, BF16), \
                    OUT("y", FULL, BF16)),                                                                \
        FORMULA_UNBOUND("gradient with sums",                                                             \
                        "d = v * d_gelu_tanh(p); y = gelu_tanh(p); db = column_sum(d)", m, n, k,          \
                        IN("p", FULL, BF16), OUT("y", FULL, BF16), OUT("db", COLUMN, BF16)),              \
        FORMULA_UNBOUND("DGELU_BGRAD", "d = v * d_gelu_tanh(p); db = column_sum(d)", m, n, k,             \
                        IN("p", FULL, BF16), OUT("db", COLUMN, BF16)),                                    \
        FORMULA_UNBOUND("statistics", "d = v; s = column_sum(v); ss = column_sum(v * v)", m, n, k,        \
                        OUT("s", COLUMN, F32), OUT("ss", COLUMN, F32))
#define FORMULA_LOSS(m, n, k)                                                                                \
    {                                                                                                        \
        "loss", "lse = row_logsumexp(v); hit = row_sum(column == label ? v : 0)",                            \
            {IN("label", ROWS, GEMMEPI_I64), OUT("lse", ROWS, F32), OUT("hit", ROWS, F32)}, m, n, k, NONE_D, \
            0, 1.10                                                                                          \
    }

static const formula_form formula_forms[] = {
    FORMULA_OF_SIZE(4096, 4096, 4096, 1.05), FORMULA_OF_SIZE(8192, 3072, 768, 1.15),
    FORMULA_GRADIENTS(4096, 4096, 4096),     FORMULA_GRADIENTS(8192, 3072, 768),
    FORMULA_GRADIENTS(8192, 768, 3072),      FORMULA_LOSS(2048, 50304, 768),
    FORMULA_LOSS(4096, 128256, 4096)};

/* A set of tensors: A, B, the bare product's D, ours with scale and amax, and the operands. */
enum {
    FM_A,
    FM_B,
    FM_BARE,
    FM_D,
    FM_SCALE,
    FM_AMAX,
    FM_OPERANDS,
    FM_COUNT = FM_OPERANDS + FORMULA_MOST_OPERANDS
};

typedef struct formula_work {
    const formula_form *form;
    int count;
    size_t sizes[FM_COUNT], places[FM_COUNT], set;
    int sets, turn[2];
    char *memory;
    gemmepi_plan *plan;
    lt lt;
    lt_product bare;
} formula_work;

static size_t formula_operand_size(const formula_form *f, const gemmepi_operand *o) {
    size_t element = o->dtype == GEMMEPI_I64 ? 8 : gemmepi_dtype_size(o->dtype);
    size_t columns = (size_t)f->n / (o->width == GEMMEPI_WIDTH_HALF ? 2 : 1);
    return element * (o->kind == GEMMEPI_FULL         ? (size_t)f->m * columns
                      : o->kind == GEMMEPI_PER_ROW    ? (size_t)f->m
                      : o->kind == GEMMEPI_PER_COLUMN ? columns
                                                      : 1);
}

static void formula_lay_out(formula_work *w, const formula_form *f) {
    size_t m = (size_t)f->m, n = (size_t)f->n, k = (size_t)f->k;
    int i;
    memset(w, 0, sizeof *w);
    w->form = f;
    while (w->count < FORMULA_MOST_OPERANDS && f->operands[w->count].name)
        w->count++;
    w->sizes[FM_A] = 2 * m * k;
    w->sizes[FM_B] = 2 * k * n;
    w->sizes[FM_BARE] = 2 * m * n;
    w->sizes[FM_D] = f->d ? gemmepi_dtype_size(f->d) * m * n : 0;
    w->sizes[FM_SCALE] = w->sizes[FM_AMAX] = 4;
    for (i = 0; i < w->count; i++)
        w->sizes[FM_OPERANDS + i] = formula_operand_size(f, &f->operands[i]);
    for (i = 0; i < FM_COUNT; i++) {
        w->places[i] = w->set;
        w->set += (w->sizes[i] + 255) / 256 * 256;
    }
    w->sets = (int)(((size_t)FORMULA_SETS_MIB << 20) / w->set) + 1;
    w->sets = w->sets < 2 ? 2 : w->sets > FORMULA_MOST_SETS ? FORMULA_MOST_SETS : w->sets;
}

static size_t formula_memory(const bench_row *row, size_t size) {
    formula_work w;
    (void)size;
    formula_lay_out(&w, row->recipe);
    return w.set * (size_t)w.sets + LT_WORKSPACE;
}

static void *formula_tensor(const formula_work *w, int set, int which) {
    return w->memory + w->set * (size_t)set + w->places[which];
}

/* Inputs random, of I64 zeros; a scale of 1; outputs 0xff. */
static int formula_fill(bench *b, const formula_work *w) {
    int set, i;
    for (set = 0; set < w->sets; set++)
        for (i = 0; i < FM_COUNT; i++) {
            const gemmepi_operand *o = i >= FM_OPERANDS ? &w->form->operands[i - FM_OPERANDS] : NULL;
            gemmepi_dtype dtype = o ? o->dtype : GEMMEPI_BF16;
            void *to = formula_tensor(w, set, i);
            int filled = !w->sizes[i]                              ? 1
                         : i == FM_SCALE                           ? bench_set_floats(b, to, 1, 1)
                         : o && !o->output && dtype == GEMMEPI_I64 ? bench_set_bytes(b, to, 0, w->sizes[i])
                         : i <= FM_B || (o && !o->output) ? bench_fill(b, to, dtype, w->sizes[i], set + i)
                                                          : bench_set_bytes(b, to, 0xff, w->sizes[i]);
            if (!filled)
                return 0;
        }
    return 1;
}

/* >>both */

static int formula_plan(bench *b, formula_work *w, bench_job *job) {
    const formula_form *f = w->form;
    gemmepi_matmul_desc desc;
    gemmepi_plan_details details;
    double began = bench_seconds();
    int made;
    memset(&desc, 0, sizeof desc);
    desc.m = f->m, desc.n = f->n, desc.k = f->k, desc.batch = 1;
    desc.a.dtype = GEMMEPI_BF16;
    desc.d.dtype = f->d ? f->d : GEMMEPI_BF16;
    desc.d.scale.mode = f->flags & GEMMEPI_AMAX_D ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
    desc.flags = f->flags;
    desc.formula = f->formula, desc.operands = f->operands, desc.operand_count = w->count;
    made = bench_ok(b, gemmepi_plan_matmul(b->context, &desc, &w->plan)) &&
           bench_ok(b, gemmepi_plan_prepare(w->plan, b->stream)) &&
           bench_ok(b, gemmepi_plan_info(w->plan, &details));
    b->plan_seconds += bench_seconds() - began;
    if (made)
        job->launches = details.launches;
    return made;
}

static int formula_next(formula_work *w, int which) {
    w->turn[which] = (w->turn[which] + 1) % w->sets;
    return w->turn[which];
}

static int formula_run_set(bench *b, formula_work *w, int set) {
    int i;
    void *pointers[FORMULA_MOST_OPERANDS];
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    for (i = 0; i < w->count; i++)
        pointers[i] = formula_tensor(w, set, FM_OPERANDS + i);
    args.a = formula_tensor(w, set, FM_A);
    args.b = formula_tensor(w, set, FM_B);
    args.d = w->form->d ? formula_tensor(w, set, FM_D) : NULL;
    args.operands = w->count ? pointers : NULL;
    if (w->form->flags & GEMMEPI_AMAX_D) {
        args.scale_d = formula_tensor(w, set, FM_SCALE);
        args.amax_d = formula_tensor(w, set, FM_AMAX);
    }
    return bench_ok(b, gemmepi_run_matmul(w->plan, &args, b->stream));
}

static int formula_run(bench *b, void *user) {
    formula_work *w = user;
    return formula_run_set(b, w, formula_next(w, 0));
}

/* D^T [n, m] = B^T A^T, as cuBLASLt counts. */
static int formula_run_bare_set(bench *b, formula_work *w, int set) {
    lt_pointers pointers = {NULL, NULL, NULL, NULL, NULL, NULL};
    pointers.a = formula_tensor(w, set, FM_B);
    pointers.b = formula_tensor(w, set, FM_A);
    pointers.d = formula_tensor(w, set, FM_BARE);
    return lt_run(b, &w->lt, &w->bare, &pointers);
}

static int formula_run_bare(bench *b, void *user) {
    formula_work *w = user;
    return formula_run_bare_set(b, w, formula_next(w, 1));
}

static int formula_prepare_bare(bench *b, formula_work *w) {
    lt_form form = {0};
    form.type = LT_REAL_16BF;
    form.rows = w->form->n, form.columns = w->form->m, form.inner = w->form->k;
    return lt_open(b, &w->lt) && lt_describe(b, &w->lt, &w->bare, &form) &&
           lt_choose_bare(b, &w->lt, &w->bare, formula_run_bare, w);
}

/* >>the rows */

/* The last element of every output of every set is written. */
static int formula_check(bench *b, void *user) {
    formula_work *w = user;
    unsigned char element[4];
    int set, i, j;
    if (!formula_fill(b, w) || !bench_repeat(b, formula_run, w, w->sets))
        return 0;
    for (set = 0; set < w->sets; set++)
        for (i = FM_D; i < FM_OPERANDS + w->count; i++) {
            const gemmepi_operand *o = i >= FM_OPERANDS ? &w->form->operands[i - FM_OPERANDS] : NULL;
            size_t size = o ? gemmepi_dtype_size(o->dtype) : w->form->d ? gemmepi_dtype_size(w->form->d) : 0;
            int poisoned = 0;
            if (i == FM_SCALE || i == FM_AMAX || (o ? !o->output : !size))
                continue;
            if (!bench_ok(b, gemmepi_download(b->context, element,
                                              (char *)formula_tensor(w, set, i) + w->sizes[i] - size, size,
                                              b->stream)))
                return 0;
            for (j = 0; j < (int)size; j++)
                poisoned += element[j] == 0xff;
            if (poisoned == (int)size)
                return bench_fail(b, "the last element of an output was not written");
        }
    return 1;
}

static void formula_close(bench_job *job) {
    formula_work *w = job->user;
    lt_forget(&w->lt, &w->bare);
    lt_close(&w->lt);
    gemmepi_plan_destroy(w->plan);
    free(w);
}

static int formula_open(bench *b, const bench_row *row, bench_job *job) {
    formula_work *w = malloc(sizeof *w);
    if (!w)
        return bench_fail(b, "out of memory");
    formula_lay_out(w, row->recipe);
    w->memory = b->memory;
    w->lt.workspace = w->memory + w->set * (size_t)w->sets;
    job->user = w;
    job->calls[BENCH_OURS] = formula_run;
    job->calls[BENCH_OTHER] = formula_run_bare;
    job->check = formula_check;
    /* the plan comes first: it loads cuBLASLt */
    if (formula_plan(b, w, job) && formula_fill(b, w) && formula_prepare_bare(b, w))
        return 1;
    formula_close(job);
    return 0;
}

static void formula_rows(bench_list *list) {
    int i;
    for (i = 0; i < COUNT(formula_forms) && list->count < BENCH_MOST_ROWS; i++) {
        const formula_form *f = formula_forms + i;
        bench_row *row = list->rows + list->count++;
        memset(row, 0, sizeof *row);
        row->kind = BENCH_ADDED;
        row->group = "formulas";
        snprintf(row->name, sizeof row->name, "%s %d x %d x %d", f->name, (int)f->m, (int)f->n, (int)f->k);
        snprintf(row->dtype, sizeof row->dtype, "BF16");
        row->bound = f->bound;
        row->recipe = f;
        row->memory = formula_memory;
        row->open = formula_open;
        row->close = formula_close;
    }
}
