/* Prints the tables of docs/routes.md: which route each epilogue takes for each type, as the plans of this machine answer. Every
   cell of the grid (types x cuBLASLt's sixteen epilogues x four layouts x an even and an odd size) is run on random
   operands, and four rows and four columns of what it leaves are held against oracle.h. Fails where a cell with a
   meaning is refused or wrong, or one without is not refused. With --host, on the host; with --without-fused, by the other
   routes. */
#include <stdio.h>

#include "products/oracle.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

typedef struct row {
    const char *name;
    gemmepi_epilogue epilogue;
} row;

/* clang-format off */
#define ROW(name) {#name, GEMMEPI_EPILOGUE_##name}
#define BEYOND(act)                                                                 \
    {#act "\\|BIAS", GEMMEPI_##act | GEMMEPI_BIAS},                                 \
    {#act "\\|BIAS\\|AUX", GEMMEPI_##act | GEMMEPI_BIAS | GEMMEPI_AUX},             \
    {#act "\\|BACKWARD\\|BGRAD", GEMMEPI_##act | GEMMEPI_BACKWARD | GEMMEPI_BGRAD}
/* clang-format on */

static const row sixteen[] = {
    ROW(DEFAULT), ROW(BIAS),        ROW(RELU),   ROW(RELU_BIAS), ROW(RELU_AUX), ROW(RELU_AUX_BIAS),
    ROW(DRELU),   ROW(DRELU_BGRAD), ROW(GELU),   ROW(GELU_BIAS), ROW(GELU_AUX), ROW(GELU_AUX_BIAS),
    ROW(DGELU),   ROW(DGELU_BGRAD), ROW(BGRADA), ROW(BGRADB),
};
static const row beyond[] = {
    BEYOND(SILU), BEYOND(SIGMOID), BEYOND(TANH), BEYOND(GELU_ERF), {"RESIDUAL", GEMMEPI_RESIDUAL},
};

typedef struct column {
    const char *name;
    gemmepi_dtype a, b, d, side; /* side: bias and bias_grad */
    gemmepi_compute compute;
} column;

static const column floats[] = {
    {"F64", GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_COMPUTE_DEFAULT},
    {"F32", GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT},
    {"TF32", GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_TF32},
    {"F16", GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT},
    {"BF16", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
    {"BF16 to F32", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT},
};
static const column narrow[] = {
    {"E4M3 to BF16", GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
    {"E4M3 to F16", GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT},
    {"E4M3 to F32", GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
    {"E4M3 to E4M3", GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
    {"E5M2, E4M3 to BF16", GEMMEPI_E5M2, GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
    {"E4M3, E5M2 to E5M2", GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_E5M2, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
    {"E5M2 to BF16", GEMMEPI_E5M2, GEMMEPI_E5M2, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
    {"I8 to I32", GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I32, GEMMEPI_I32, GEMMEPI_COMPUTE_DEFAULT},
    {"I8 to I8", GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT},
    {"I8 to BF16", GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT},
    {"BF16, I8 to BF16", GEMMEPI_BF16, GEMMEPI_I8, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
};

static gemmepi_context *context;
static int sizes[2] = {1024, 1021};

/* >>operands of one column and size, the same values in every layout */

enum { SAMPLES = 4, LARGEST = 1024 };

typedef struct element_row {
    element at[LARGEST];
} element_row;

static struct {
    int size;
    oracle_problem p;
    double *a, *b; /* rows of op(A), columns of op(B), unscaled */
    unsigned char *bytes;
    size_t bytes_size;
    element_row *rows, *columns; /* the sums of the samples */
} here;

static uint64_t state;

static double uniform(void) { /* splitmix64, -1 to 1 */
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ldexp((double)((z ^ (z >> 31)) >> 11), -52) - 1;
}

static int sample(int i) { /* the first and the last are among them */
    return i * (here.size - 1) / (SAMPLES - 1);
}

/* Everything that a cell may read or write, in one block: tensors at multiples of 256. */
enum {
    T_A,
    T_B,
    T_TURNED_A,
    T_TURNED_B,
    T_AUX,
    T_MASK,
    T_RESIDUAL,
    T_BIAS,
    T_SCALES,
    T_D,
    T_BIAS_GRAD,
    T_COUNT
};

static struct { size_t offset, bytes; } places[T_COUNT];

static void *memory; /* on the device */

static int mask_ld(void) {
    return (here.size + 127) / 128 * 128;
}

static void lay_out(const column *c) {
    size_t square = (size_t)here.size * (size_t)here.size, line = (size_t)here.size, at = 0;
    int t;
    places[T_A].bytes = places[T_TURNED_A].bytes = square * gemmepi_dtype_size(c->a);
    places[T_B].bytes = places[T_TURNED_B].bytes = square * gemmepi_dtype_size(c->b);
    places[T_AUX].bytes = places[T_D].bytes = places[T_RESIDUAL].bytes = square * gemmepi_dtype_size(c->d);
    places[T_MASK].bytes = (size_t)mask_ld() / 8 * line;
    places[T_BIAS].bytes = places[T_BIAS_GRAD].bytes = line * gemmepi_dtype_size(c->side);
    places[T_SCALES].bytes = 5 * 256;
    for (t = 0; t < T_COUNT; t++) {
        places[t].offset = at;
        at += (places[t].bytes + 255) / 256 * 256;
    }
    here.bytes_size = at;
}

static view dense(gemmepi_dtype dtype, int t, int64_t row) {
    view v = {NULL, GEMMEPI_F32, 0, 1, 0};
    v.dtype = dtype;
    v.row = row;
    v.data = here.bytes + places[t].offset;
    return v;
}

/* A number of the dtype's, of size about 1 times the scale of the dtype. */
static void fill(view *v, view *turned, double *values, double scale) {
    int64_t i, j;
    for (i = 0; i < here.size; i++)
        for (j = 0; j < here.size; j++) {
            view_set(v, 0, i, j, uniform() * scale);
            if (turned)
                view_set(turned, 0, j, i, view_get(v, 0, i, j));
            if (values)
                values[i * here.size + j] = view_get(v, 0, i, j);
        }
}

static int takes_scale(gemmepi_dtype dtype) {
    return oracle_is_fp8(dtype) || dtype == GEMMEPI_I8;
}

static gemmepi_scale scale_for(const column *c, gemmepi_dtype dtype) {
    gemmepi_scale scale = {GEMMEPI_SCALE_NONE, 0};
    if (takes_scale(dtype) && c->d != GEMMEPI_I32)
        scale.mode = GEMMEPI_SCALE_TENSOR;
    return scale;
}

static void set_scale(scales *s, const column *c, gemmepi_dtype dtype, int i, double value) {
    *s = oracle_scales(scale_for(c, dtype), here.size, here.size);
    s->at.data = here.bytes + places[T_SCALES].offset + 256 * i;
    view_set(&s->at, 0, 0, 0, value);
}

static double magnitude_of(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_I8 ? 127 : dtype == GEMMEPI_E4M3 ? 8 : 1;
}

static int make_operands(const column *c, int size) {
    oracle_problem *p = &here.p;
    view turned_a, turned_b, b;
    int i, j;
    memset(p, 0, sizeof *p);
    here.size = size;
    lay_out(c);
    free(here.bytes);
    here.bytes = calloc(here.bytes_size, 1);
    if (!here.bytes)
        return 0;
    state = 1;
    p->m = p->n = p->k = size;
    p->batch = 1;
    p->tf32 = c->compute == GEMMEPI_COMPUTE_TF32;
    p->alpha = c->d == GEMMEPI_I32 ? 1 : 3 / sqrt(size);
    p->a = dense(c->a, T_A, size);
    turned_a = dense(c->a, T_TURNED_A, size);
    fill(&p->a, &turned_a, here.a, magnitude_of(c->a));
    b = dense(c->b, T_TURNED_B, size); /* [n, k], as the samples want it */
    turned_b = dense(c->b, T_B, size);
    fill(&b, &turned_b, here.b, magnitude_of(c->b));
    p->b = turned_b;
    p->d = dense(c->d, T_D, size);
    p->residual = dense(c->d, T_RESIDUAL, size);
    fill(&p->residual, NULL, NULL, magnitude_of(c->d));
    p->bias = dense(c->side, T_BIAS, 0);
    for (j = 0; j < size; j++)
        view_set(&p->bias, 0, 0, j, uniform() * (c->side == GEMMEPI_I32 ? 1000 : 1));
    p->bias_grad = dense(c->side, T_BIAS_GRAD, 0);
    set_scale(&p->scale_a, c, c->a, 0, 1 / magnitude_of(c->a));
    set_scale(&p->scale_b, c, c->b, 1, 1 / magnitude_of(c->b));
    set_scale(&p->scale_d, c, c->d, 2, 20);
    set_scale(&p->scale_aux, c, c->d, 3, 0.05);
    set_scale(&p->scale_residual, c, c->d, 4, 0.01);
    for (i = 0; i < size * size; i++) {
        here.a[i] *= oracle_scale(&p->scale_a, 0, 0, 0);
        here.b[i] *= oracle_scale(&p->scale_b, 0, 0, 0);
    }
    for (i = 0; i < SAMPLES; i++)
        for (j = 0; j < size; j++) {
            here.rows[i].at[j] = oracle_sum(p, here.a + sample(i) * size, here.b + j * size);
            here.columns[i].at[j] = oracle_sum(p, here.a + j * size, here.b + sample(i) * size);
        }
    return 1;
}

/* >>one cell */

static char wrong[512]; /* the first thing that was */

static void complain(const char *what, int i, int j, double got, expected want) {
    if (!wrong[0])
        snprintf(wrong, sizeof wrong, "%s[%d, %d] is %.9g, not %.9g within %.3g", what, i, j, got, want.value,
                 want.bound);
}

static element finish(element sums, int i, int j) {
    if (here.p.d.dtype == GEMMEPI_I32)
        oracle_whole_element(&here.p, &sums, 0, i, j);
    else
        oracle_element(&here.p, &sums, 0, i, j);
    return sums;
}

static void check_element(const view *d, const view *aux, const element *e, int i, int j) {
    const oracle_problem *p = &here.p;
    expected want = oracle_d(p, e, 0, i, j);
    int mask = p->activation == GEMMEPI_RELU;
    if (!oracle_accepts(d->dtype, view_get(d, 0, i, j), want))
        complain("d", i, j, view_get(d, 0, i, j), want);
    if (!(p->flags & GEMMEPI_AUX))
        return;
    want = mask ? oracle_mask_bit(p, e) : oracle_aux(p, e, 0);
    if (!oracle_accepts(aux->dtype, view_get(aux, 0, i, j), want))
        complain("aux", i, j, view_get(aux, 0, i, j), want);
}

static void check_sum(int i, const total *t) {
    expected want = oracle_bias_grad(&here.p, t, 0);
    if (!oracle_accepts(here.p.bias_grad.dtype, view_get(&here.p.bias_grad, 0, 0, i), want))
        complain("bias_grad", 0, i, view_get(&here.p.bias_grad, 0, 0, i), want);
}

static void check_samples(const view *d, const view *aux) {
    const oracle_problem *p = &here.p;
    int s, j;
    for (s = 0; s < SAMPLES; s++) {
        total sum = {0, 0, 0, 0, 0}, of_a = sum, of_b = sum;
        for (j = 0; j < here.size; j++) {
            element along = finish(here.rows[s].at[j], sample(s), j),
                    down = finish(here.columns[s].at[j], j, sample(s));
            check_element(d, aux, &along, sample(s), j);
            check_element(d, aux, &down, j, sample(s));
            oracle_add_element(p, &sum, &down);
        }
        oracle_add_operand(p, &of_a, here.a + sample(s) * here.size);
        oracle_add_operand(p, &of_b, here.b + sample(s) * here.size);
        if (p->flags & GEMMEPI_BGRAD)
            check_sum(sample(s), &sum);
        if (p->flags & (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
            check_sum(sample(s), p->flags & GEMMEPI_BGRAD_A ? &of_a : &of_b);
    }
}

static void *on_device(int t) {
    return (char *)memory + places[t].offset;
}

static gemmepi_matmul_desc describe(const column *c, const row *r, int layout, int size) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = desc.n = desc.k = size;
    desc.batch = 1;
    desc.compute = c->compute;
    desc.epilogue = r->epilogue;
    desc.a.dtype = c->a;
    desc.b.dtype = c->b;
    desc.d.dtype = c->d;
    desc.bias.dtype = desc.bias_grad.dtype = c->side;
    desc.residual.dtype = c->d;
    desc.a.transposed = layout & 1;
    desc.b.transposed = layout >> 1;
    desc.a.scale = scale_for(c, c->a);
    desc.b.scale = scale_for(c, c->b);
    desc.d.scale = desc.residual.scale = scale_for(c, c->d);
    if ((r->epilogue & GEMMEPI_ACTIVATION_MASK) != GEMMEPI_RELU)
        desc.aux.scale = scale_for(c, c->d);
    return desc;
}

static gemmepi_matmul_args arguments(const gemmepi_matmul_desc *desc) {
    gemmepi_epilogue e = desc->epilogue;
    int mask = (e & GEMMEPI_ACTIVATION_MASK) == GEMMEPI_RELU;
    const char *at = (const char *)on_device(T_SCALES);
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = on_device(desc->a.transposed ? T_TURNED_A : T_A);
    args.b = on_device(desc->b.transposed ? T_TURNED_B : T_B);
    args.d = on_device(T_D);
    args.alpha = &here.p.alpha;
    if (e & GEMMEPI_BIAS)
        args.bias = on_device(T_BIAS);
    if (e & (GEMMEPI_AUX | GEMMEPI_BACKWARD))
        args.aux = on_device(mask ? T_MASK : T_AUX);
    if (e & GEMMEPI_RESIDUAL)
        args.residual = on_device(T_RESIDUAL);
    if (e & (GEMMEPI_BGRAD | GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
        args.bias_grad = on_device(T_BIAS_GRAD);
    args.scale_a = desc->a.scale.mode ? (const float *)(const void *)at : NULL;
    args.scale_b = desc->b.scale.mode ? (const float *)(const void *)(at + 256) : NULL;
    args.scale_d = desc->d.scale.mode ? (const float *)(const void *)(at + 512) : NULL;
    args.scale_aux = args.aux && desc->aux.scale.mode ? (const float *)(const void *)(at + 768) : NULL;
    args.scale_residual =
        args.residual && desc->residual.scale.mode ? (const float *)(const void *)(at + 1024) : NULL;
    return args;
}

/* Runs a plan on poisoned outputs and checks what it leaves. The reason, or NULL. */
static const char *run_cell(const gemmepi_plan *plan, const gemmepi_matmul_desc *desc, const row *r) {
    gemmepi_matmul_args args = arguments(desc);
    oracle_problem *p = &here.p;
    view aux;
    p->activation = r->epilogue & GEMMEPI_ACTIVATION_MASK;
    p->flags = r->epilogue & ~GEMMEPI_ACTIVATION_MASK;
    aux = dense(p->d.dtype, T_AUX, here.size);
    if (p->activation == GEMMEPI_RELU)
        aux = dense(GEMMEPI_DTYPE_DEFAULT, T_MASK, mask_ld());
    p->aux = aux;
    state = 2;
    if (p->flags & GEMMEPI_BACKWARD)
        fill(&p->aux, NULL, NULL, 3 * magnitude_of(p->d.dtype));
    memset(here.bytes + places[T_D].offset, 0xff, here.bytes_size - places[T_D].offset);
    wrong[0] = 0;
    if (gemmepi_upload(context, memory, here.bytes, here.bytes_size, NULL) != GEMMEPI_OK ||
        gemmepi_plan_prepare(plan, NULL) != GEMMEPI_OK ||
        gemmepi_run_matmul(plan, &args, NULL) != GEMMEPI_OK ||
        gemmepi_download(context, here.bytes, memory, here.bytes_size, NULL) != GEMMEPI_OK)
        return gemmepi_last_error();
    check_samples(&p->d, &p->aux);
    return wrong[0] ? wrong : NULL;
}

static int has_meaning(const column *c, const row *r) {
    return c->d != GEMMEPI_I32 || ((r->epilogue & GEMMEPI_ACTIVATION_MASK) <= GEMMEPI_RELU &&
                                   !(r->epilogue & (GEMMEPI_BACKWARD | GEMMEPI_BGRAD)));
}

/* >>the grid */

static struct { int cells, right, meaningless, failed; } counts;

static void report(const column *c, const row *r, int layout, const char *what) {
    counts.failed++;
    fprintf(stderr, "%s, %s, %d, %c%c: %s\n", c->name, r->name, here.size, layout & 1 ? 'T' : 'N',
            layout >> 1 ? 'T' : 'N', what);
}

/* The route, or -1 where it is refused, as it should be, or -2 where something is wrong. */
static int cell(const column *c, const row *r, int layout) {
    gemmepi_matmul_desc desc = describe(c, r, layout, here.size);
    gemmepi_plan_details details;
    gemmepi_plan *plan;
    const char *fault;
    gemmepi_status status = gemmepi_plan_matmul(context, &desc, &plan);
    counts.cells++;
    if (status != GEMMEPI_OK && !has_meaning(c, r) && status == GEMMEPI_INVALID_ARGUMENT) {
        counts.meaningless++;
        return -1;
    }
    if (status != GEMMEPI_OK) {
        report(c, r, layout, gemmepi_last_error());
        return -2;
    }
    fault = has_meaning(c, r) ? run_cell(plan, &desc, r) : "is accepted, but has no meaning";
    gemmepi_plan_info(plan, &details);
    gemmepi_plan_destroy(plan);
    if (fault) {
        report(c, r, layout, fault);
        return -2;
    }
    counts.right++;
    return details.route;
}

/* of gemmepi_route; element-wise ones are none of a product's */
static const char *const route_names[] = {"empty", "lt", "split", "host", "plain", NULL,
                                          NULL,    NULL, NULL,    NULL,   "fused"};
enum { ROUTES = COUNT(route_names) };

/* "lt", or "4 lt, 4 split" where the cells differ */
static void print_routes(const int *routes, int count) {
    int number[ROUTES] = {0}, refused = 0, i, printed = 0;
    for (i = 0; i < count; i++) {
        refused += routes[i] < 0;
        if (routes[i] >= 0)
            number[routes[i]]++;
    }
    printf(" ");
    if (refused)
        printf("-");
    for (i = 0; i < ROUTES; i++) {
        if (number[i] == count)
            printf("%s", route_names[i]);
        else if (number[i])
            printf("%s%d %s", printed || refused ? ", " : "", number[i], route_names[i]);
        printed += number[i] != 0;
    }
    printf(" |");
}

enum { MOST_ROWS = 16, MOST_COLUMNS = 11, EACH = 8 };

typedef struct table {
    const column *columns;
    int column_count;
    const row *rows;
    int row_count;
    int layouts, sizes; /* of each cell */
} table;

static const table tables[] = {
    {floats, COUNT(floats), sixteen, COUNT(sixteen), 4, 2},
    {narrow, COUNT(narrow), sixteen, COUNT(sixteen), 4, 2},
    {floats, COUNT(floats), beyond, COUNT(beyond), 1, 1},
    {narrow, COUNT(narrow), beyond, COUNT(beyond), 1, 1},
};

/* Bit 0: A transposed, bit 1: B. The first is N, T. */
static int layout_of(int i) {
    return (i + 2) % 4;
}

/* >>kernels, by all cores before any cell runs: one after the other they would take longer than all else */

static void append_problems(const table *t, gemmepi_matmul_desc *descs, size_t *count) {
    int i, j, layout, size;
    for (j = 0; j < t->column_count; j++)
        for (i = 0; i < t->row_count; i++)
            for (size = 0; size < t->sizes; size++)
                for (layout = 0; layout < t->layouts; layout++)
                    if (has_meaning(t->columns + j, t->rows + i))
                        descs[(*count)++] =
                            describe(t->columns + j, t->rows + i, layout_of(layout), sizes[size]);
}

static void show_progress(void *user, size_t done, size_t count) {
    (void)user;
    if (done * 100 / count != (done - 1) * 100 / count)
        fprintf(stderr, "\r%d of %d plans made%s", (int)done, (int)count, done == count ? "\n" : "");
}

/* What fails does so again in its cell. */
static void compile_ahead(void) {
    size_t most = COUNT(tables) * (size_t)(MOST_ROWS * MOST_COLUMNS * EACH), count = 0, i;
    gemmepi_matmul_desc *descs = malloc(most * sizeof *descs);
    gemmepi_any_desc *problems = calloc(most, sizeof *problems);
    for (i = 0; i < COUNT(tables) && descs; i++)
        append_problems(tables + i, descs, &count);
    for (i = 0; i < count && problems; i++)
        problems[i].matmul = descs + i;
    if (descs && problems)
        gemmepi_precompile(context, problems, count, 0, show_progress, NULL);
    free(descs);
    free(problems);
}

/* >>the tables */

static void print_table(const char *title, const table *t) {
    static int routes[MOST_COLUMNS][MOST_ROWS][EACH];
    int i, j, size, layout;
    for (j = 0; j < t->column_count; j++)
        for (size = 0; size < t->sizes; size++) {
            if (!make_operands(t->columns + j, sizes[size]))
                exit(1);
            for (i = 0; i < t->row_count; i++)
                for (layout = 0; layout < t->layouts; layout++)
                    routes[j][i][size * t->layouts + layout] =
                        cell(t->columns + j, t->rows + i, layout_of(layout));
        }
    printf("\n| %s |", title);
    for (j = 0; j < t->column_count; j++)
        printf(" %s |", t->columns[j].name);
    printf("\n|---|");
    for (j = 0; j < t->column_count; j++)
        printf("---|");
    printf("\n");
    for (i = 0; i < t->row_count; i++) {
        printf("| %s |", t->rows[i].name);
        for (j = 0; j < t->column_count; j++)
            print_routes(routes[j][i], t->sizes * t->layouts);
        printf("\n");
    }
    fflush(stdout);
}

int main(int argc, char **argv) {
    gemmepi_config config = {0};
    gemmepi_context_details details;
    char title[256];
    int i;
    for (i = 1; i < argc; i++)
        if (strcmp(argv[i], "--host") == 0) {
            config.device = GEMMEPI_DEVICE_HOST;
        } else if (strcmp(argv[i], "--without-fused") == 0) {
            config.routes = 1u << GEMMEPI_ROUTE_LT | 1u << GEMMEPI_ROUTE_SPLIT | 1u << GEMMEPI_ROUTE_PLAIN;
        } else {
            fprintf(stderr, "%s is no option: known are --host and --without-fused\n", argv[i]);
            return 1;
        }
    if (gemmepi_create(&config, &context) != GEMMEPI_OK ||
        gemmepi_context_info(context, &details) != GEMMEPI_OK) {
        fprintf(stderr, "%s\n", gemmepi_last_error());
        return 1;
    }
    if (details.is_host) { /* plain C is slow */
        sizes[0] = 48;
        sizes[1] = 45;
    }
    here.a = malloc(LARGEST * LARGEST * sizeof(double));
    here.b = malloc(LARGEST * LARGEST * sizeof(double));
    here.rows = malloc(SAMPLES * sizeof *here.rows);
    here.columns = malloc(SAMPLES * sizeof *here.columns);
    if (!here.a || !here.b || !here.rows || !here.columns ||
        gemmepi_alloc(context, (size_t)128 << 20, &memory) != GEMMEPI_OK) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    compile_ahead();
    for (i = 0; i < COUNT(tables); i++) {
        if (tables[i].sizes == 2)
            snprintf(title, sizeof title, "%s, %d^3 and %d^3, A and B as they are or transposed",
                     details.name, sizes[0], sizes[1]);
        else
            snprintf(title, sizeof title, "%d^3, B transposed", sizes[0]);
        print_table(title, tables + i);
    }
    i = counts.cells - counts.meaningless;
    printf("\n%d cells, %d without a meaning and refused; of the other %d, %d ran and were right.\n",
           counts.cells, counts.meaningless, i, counts.right);
    gemmepi_free(context, memory);
    gemmepi_destroy(context);
    free(here.a);
    free(here.b);
    free(here.rows);
    free(here.columns);
    free(here.bytes);
    return counts.failed != 0;
}
