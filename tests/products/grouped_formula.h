/* Formulas of groups of rows that write outputs next to D, on a device, a position at a time in double. For gpu/grouped_shapes.c as well. */
#ifndef TEST_GROUPED_FORMULA_H
#define TEST_GROUPED_FORMULA_H

#include "grouped_case.h"

enum {
    O_ROWS = 310,
    O_ALL_ROWS = 333, /* of D, where they are scattered */
    O_GROUPS = 7,
    O_K = 80,
    O_MOST_N = 544,
    O_OPERANDS = 4,
    O_D = O_OPERANDS
};
static const int32_t outputs_ends[O_GROUPS] = {0, 1, 1, 38, 175, 176, 301};

/* >>a case */

/* What a row is computed of, and what it becomes. */
typedef struct outputs_row {
    int n;
    double v[O_MOST_N], in[O_OPERANDS][O_MOST_N], out[O_OPERANDS + 1][O_MOST_N];
} outputs_row;

typedef struct outputs_case {
    const char *name, *text;
    gemmepi_operand operands[O_OPERANDS];
    void (*of_row)(outputs_row *row);
    gemmepi_dtype from, to;
    int n, pad, scattered; /* pad: elements behind each line of D and of outputs */
    int is_fast;           /* the kernel for Hopper takes it */
    const char *derived;   /* the formula whose gradient is `text`, put in front of it */
} outputs_case;

#define INPUT(called, of, wide) \
    { .name = called, .kind = of, .width = wide }
#define OUTPUT(called, wide, type) \
    { .name = called, .kind = GEMMEPI_FULL, .width = wide, .dtype = type, .output = 1 }
#define WHOLE GEMMEPI_WIDTH_N
#define AS_D  GEMMEPI_DTYPE_DEFAULT
#define BIAS_AND_P \
    { INPUT("bias", GEMMEPI_PER_COLUMN, WHOLE), OUTPUT("p", WHOLE, AS_D) }

static double tanh_gelu(double x) {
    return x / 2 * (1 + tanh(.7978845608028654 * (x + .044715 * x * x * x)));
}
static double silu_of(double x) {
    return x / (1 + exp(-x));
}
static double d_silu_of(double x) {
    double s = 1 / (1 + exp(-x));
    return s * (1 + x * (1 - s));
}

static void row_of_saved(outputs_row *r) {
    int j;
    for (j = 0; j < r->n; j++)
        r->out[1][j] = r->v[j] + r->in[0][j], r->out[O_D][j] = tanh_gelu(r->out[1][j]);
}
static void row_of_two(outputs_row *r) {
    int j;
    for (j = 0; j < r->n; j++)
        r->out[2][j] = r->v[j], r->out[3][j] = r->v[j] * r->in[1][0], r->out[O_D][j] = r->v[j] + r->in[0][j];
}
static void row_of_blocks(outputs_row *r) {
    int j;
    for (j = 0; j < r->n; j++)
        r->out[O_D][j] = r->v[j] * r->in[0][j / 32] + r->in[1][j / 64], r->out[2][j] = r->v[j];
}
static void row_of_gate(outputs_row *r) {
    int j, half = r->n / 2;
    memcpy(r->out[0], r->v, sizeof r->v);
    for (j = 0; j < half; j++)
        r->out[O_D][j] = silu_of(r->v[j]) * r->v[half + j];
}
/* v is dy, of n columns; operand 0 is what the gate saved. */
static void row_of_gradient(outputs_row *r) {
    int j;
    for (j = 0; j < r->n; j++) {
        double x = r->in[0][j], y = r->in[0][r->n + j];
        r->out[O_D][j] = r->v[j] * y * d_silu_of(x);
        r->out[O_D][r->n + j] = r->v[j] * silu_of(x);
        r->out[1][j] = silu_of(x) * y;
    }
}

#define SAVED   "x = v + bias; p = x; d = gelu_tanh(x)"
#define TWO     "p = v; q = v * f; d = v + x"
#define GATE    "p = v; d = silu(left(v)) * right(v)"
#define OF_GATE "d = silu(left(v)) * right(v)"
#define ALSO    "y = silu(left(v)) * right(v)"
#define OF_BLOCKS(columns) \
    { .name = columns == 64 ? "t" : "s", .kind = GEMMEPI_BLOCKED, .block_rows = 1, .block_columns = columns }
#define TWO_ARE(type)                                                                                  \
    {                                                                                                  \
        INPUT("x", GEMMEPI_FULL, WHOLE), INPUT("f", GEMMEPI_PER_ROW, WHOLE), OUTPUT("p", WHOLE, AS_D), \
            OUTPUT("q", WHOLE, type)                                                                   \
    }
#define SAVED_AND_Y \
    { INPUT("v", GEMMEPI_FULL, GEMMEPI_WIDTH_DOUBLE), OUTPUT("y", WHOLE, AS_D) }

static const outputs_case outputs_cases[] = {
    {"a saved sum", SAVED, BIAS_AND_P, row_of_saved, BF16, BF16, 264, 0, 0, 1, NULL},
    {"scattered, in wider lines", SAVED, BIAS_AND_P, row_of_saved, BF16, BF16, 264, 16, 1, 1, NULL},
    {"of an odd n", SAVED, BIAS_AND_P, row_of_saved, BF16, BF16, 131, 3, 0, 0, NULL},
    {"of f32", SAVED, BIAS_AND_P, row_of_saved, F16, F32, 136, 4, 0, 1, NULL},
    {"two outputs", TWO, TWO_ARE(AS_D), row_of_two, BF16, BF16, 200, 0, 0, 1, NULL},
    {"two, scattered", TWO, TWO_ARE(AS_D), row_of_two, BF16, BF16, 200, 8, 1, 1, NULL},
    {"two, one in f32, scattered", TWO, TWO_ARE(F32), row_of_two, BF16, BF16, 392, 0, 1, 1, NULL},
    {"two of fp8", TWO, TWO_ARE(AS_D), row_of_two, GEMMEPI_E4M3, BF16, 264, 0, 0, 1, NULL},
    {"two of whole numbers", TWO, TWO_ARE(AS_D), row_of_two, GEMMEPI_I8, GEMMEPI_I32, 40, 0, 1, 0, NULL},
    {"two of f64", TWO, TWO_ARE(AS_D), row_of_two, GEMMEPI_F64, GEMMEPI_F64, 33, 1, 1, 0, NULL},
    {"blocks of columns",
     "p = v; d = v * s + t",
     {OF_BLOCKS(32), OF_BLOCKS(64), OUTPUT("p", WHOLE, AS_D)},
     row_of_blocks,
     BF16,
     BF16,
     200,
     0,
     0,
     0,
     NULL},
    {"likewise, scattered",
     "p = v; d = v * s + t",
     {OF_BLOCKS(32), OF_BLOCKS(64), OUTPUT("p", WHOLE, F32)},
     row_of_blocks,
     BF16,
     BF16,
     131,
     3,
     1,
     0,
     NULL},
    {"a gate and its saved halves",
     GATE,
     {OUTPUT("p", WHOLE, AS_D)},
     row_of_gate,
     BF16,
     BF16,
     272,
     0,
     0,
     1,
     NULL},
    {"likewise, scattered", GATE, {OUTPUT("p", WHOLE, AS_D)}, row_of_gate, BF16, BF16, 528, 8, 1, 1, NULL},
    {"a gate of fp8, scattered",
     GATE,
     {OUTPUT("p", WHOLE, AS_D)},
     row_of_gate,
     GEMMEPI_E4M3,
     BF16,
     272,
     0,
     1,
     1,
     NULL},
    {"a gate of f32", GATE, {OUTPUT("p", WHOLE, AS_D)}, row_of_gate, F16, F32, 272, 0, 0, 1, NULL},
    {"a gate's gradient, and the gate again", ALSO, SAVED_AND_Y, row_of_gradient, BF16, BF16, 136, 0, 0, 1,
     OF_GATE},
    {"likewise, scattered, in wider lines", ALSO, SAVED_AND_Y, row_of_gradient, BF16, BF16, 264, 8, 1, 1,
     OF_GATE},
    {"that of an odd n", ALSO, SAVED_AND_Y, row_of_gradient, BF16, BF16, 67, 1, 1, 0, OF_GATE},
};

/* >>making it */

typedef struct outputs_run {
    gemmepi_grouped_desc desc;
    gemmepi_grouped_args args;
    gemmepi_operand operands[O_OPERANDS];
    grouped_tensor tensors[O_OPERANDS + 3]; /* D behind the operands, then A and B */
    int32_t index_d[O_ROWS];
    char text[512];
    void *pointers[O_OPERANDS], *lists[2];
    double alpha; /* 1 or 2, with which another kernel runs */
} outputs_run;

static int64_t outputs_rows(const outputs_case *c) {
    return c->scattered ? O_ALL_ROWS : O_ROWS;
}

static void make_outputs_operand(const outputs_case *c, outputs_run *r, int i, rng *random) {
    gemmepi_operand *o = &r->operands[i];
    gemmepi_dtype dtype = o->dtype ? o->dtype : c->to;
    int64_t columns = o->width == GEMMEPI_WIDTH_DOUBLE ? 2 * c->n : c->n;
    if (o->kind == GEMMEPI_FULL) {
        make_tensor(&r->tensors[i], dtype, 0, 1, outputs_rows(c), columns, c->pad, random, o->output);
        o->ld = r->tensors[i].at.row;
    } else if (o->kind == GEMMEPI_BLOCKED) {
        make_tensor(&r->tensors[i], dtype, 0, 1, outputs_rows(c),
                    (columns + o->block_columns - 1) / o->block_columns, c->pad, random, 0);
        o->ld = r->tensors[i].at.row;
    } else if (o->kind == GEMMEPI_PER_ROW) {
        make_tensor(&r->tensors[i], dtype, 0, 1, 1, outputs_rows(c), 0, random, 0);
    } else {
        make_tensor(&r->tensors[i], dtype, 0, O_GROUPS, 1, columns, 0, random, 0);
        o->batch_stride = columns;
    }
}

/* The text, and the names of v and D, of the gradient where there is one. */
static void write_outputs_text(const outputs_case *c, outputs_run *r) {
    gemmepi_derive_desc derive;
    size_t length = 0;
    memset(&derive, 0, sizeof derive);
    if (c->derived) {
        derive.formula = c->derived, derive.wrt = "v";
        length = gemmepi_derive(&derive, r->text, sizeof r->text);
        CHECK(length, "%s", gemmepi_last_error());
        r->desc.product.formula_value = "dy", r->desc.product.formula_result = "d_v";
    }
    snprintf(r->text + length, sizeof r->text - length, "%s%s", length ? "; " : "", c->text);
    r->desc.product.formula = r->text;
}

static void make_outputs_run(const outputs_case *c, outputs_run *r, uint64_t seed) {
    rng random = rng_seeded(seed);
    gemmepi_matmul_desc *d = &r->desc.product;
    int64_t columns = c->derived ? 2 * c->n : c->of_row == row_of_gate ? c->n / 2 : c->n;
    int i;
    memset(r, 0, sizeof *r);
    memcpy(r->operands, c->operands, sizeof r->operands);
    r->alpha = seed % 2 ? 2 : 1;
    write_outputs_text(c, r);
    for (i = 0; i < O_OPERANDS && r->operands[i].name; i++)
        make_outputs_operand(c, r, i, &random);
    make_tensor(&r->tensors[O_D], c->to, 0, 1, outputs_rows(c), columns, c->pad, &random, 1);
    make_tensor(&r->tensors[O_D + 1], c->from, 0, 1, O_ROWS, O_K, 0, &random, 0);
    make_tensor(&r->tensors[O_D + 2], c->from, 1, O_GROUPS, O_K, c->n, 0, &random, 0);
    d->m = O_ROWS, d->n = c->n, d->k = O_K;
    d->a.dtype = c->from, d->b.transposed = 1, d->d.dtype = c->to, d->d.ld = r->tensors[O_D].at.row;
    d->operands = r->operands, d->operand_count = i;
    r->desc.groups = O_GROUPS, r->desc.scatter_d = c->scattered ? O_ALL_ROWS : 0;
    for (i = 0; i < O_ROWS; i++)
        r->index_d[i] = c->scattered ? (i * 7 + 3) % O_ALL_ROWS : i;
}

static void send_outputs_run(const outputs_case *c, outputs_run *r) {
    gemmepi_matmul_args *a = &r->args.product;
    int t;
    for (t = 0; t < O_D + 3; t++)
        r->tensors[t].device =
            r->tensors[t].at.data ? send(r->tensors[t].at.data, r->tensors[t].bytes) : NULL;
    for (t = 0; t < O_OPERANDS; t++)
        r->pointers[t] = r->tensors[t].device;
    r->lists[0] = send(outputs_ends, sizeof outputs_ends), r->lists[1] = send(r->index_d, sizeof r->index_d);
    a->a = r->tensors[O_D + 1].device, a->b = r->tensors[O_D + 2].device, a->d = r->tensors[O_D].device;
    a->operands = r->pointers, a->alpha = r->alpha == 1 ? NULL : &r->alpha;
    r->args.ends = (const int32_t *)r->lists[0];
    r->args.index_d = c->scattered ? (const int32_t *)r->lists[1] : NULL;
}

static void free_outputs_run(outputs_run *r) {
    int t;
    for (t = 0; t < O_D + 3; t++) {
        free(r->tensors[t].at.data);
        gemmepi_free(here->context, r->tensors[t].device);
    }
    gemmepi_free(here->context, r->lists[0]), gemmepi_free(here->context, r->lists[1]);
}

/* >>what it must give */

static int is_written(const outputs_run *r, int t) {
    return t == O_D || (r->operands[t].name && r->operands[t].output);
}

/* Position i of a group: its v, and what operands have for its row of D. */
static void read_outputs_row(const outputs_case *c, const outputs_run *r, int group, int i,
                             outputs_row *row) {
    const grouped_tensor *a = &r->tensors[O_D + 1], *b = &r->tensors[O_D + 2];
    int64_t of_d = r->index_d[i], j;
    int t, k;
    row->n = c->n;
    for (j = 0; j < c->n; j++)
        for (row->v[j] = 0, k = 0; k < O_K; k++)
            row->v[j] += r->alpha * view_get(&a->at, 0, i, k) * view_get(&b->at, group, k, j);
    for (t = 0; t < O_OPERANDS && r->operands[t].name; t++) {
        const grouped_tensor *x = &r->tensors[t];
        int kind = (int)r->operands[t].kind;
        if (kind == GEMMEPI_PER_ROW)
            row->in[t][0] = view_get(&x->at, 0, 0, of_d);
        for (j = 0; j < x->columns && !is_written(r, t) && kind != GEMMEPI_PER_ROW; j++)
            row->in[t][j] =
                kind >= GEMMEPI_FULL ? view_get(&x->at, 0, of_d, j) : view_get(&x->at, group, 0, j);
    }
}

static int is_near(gemmepi_dtype dtype, double got, double want) {
    double part = dtype == BF16 ? 0x1p-8 : dtype == GEMMEPI_F64 ? 1e-13 : 0x1p-14;
    return fabs(got - want) <= fabs(want) * part + (dtype == GEMMEPI_F64 ? 1e-12 : 1e-3);
}

static int compare_outputs_row(const outputs_case *c, const outputs_run *r, int i, const outputs_row *row) {
    int t;
    int64_t j;
    for (t = 0; t <= O_D; t++)
        for (j = 0; is_written(r, t) && j < r->tensors[t].columns; j++) {
            double got = view_get(&r->tensors[t].at, 0, r->index_d[i], j), want = row->out[t][j];
            if (!is_near(r->tensors[t].at.dtype, got, want)) {
                CHECK(0, "%s on %s: %s of position %d, column %d, is %g and should be %g", c->name,
                      here->name, t == O_D ? "d" : r->operands[t].name, i, (int)j, got, want);
                return 1;
            }
        }
    return 0;
}

/* Rows that no position has, and what is behind lines, are as they were: every byte is 255. */
static void check_outputs_rest(const outputs_case *c, const outputs_run *r, int t, const char *has_row) {
    const grouped_tensor *x = &r->tensors[t];
    size_t size = oracle_format(x->at.dtype).size, line = (size_t)x->at.row * size, i, row;
    for (row = 0; row < (size_t)x->rows; row++)
        for (i = has_row[row] ? (size_t)x->columns * size : 0; i < line; i++)
            if (x->at.data[row * line + i] != 255) {
                CHECK(0, "%s on %s: %s was written at row %d, byte %d", c->name, here->name,
                      t == O_D ? "d" : r->operands[t].name, (int)row, (int)i);
                return;
            }
}

/* Rows that positions have, which has_row is told. */
static int compare_outputs(const outputs_case *c, const outputs_run *r, char has_row[O_ALL_ROWS]) {
    static outputs_row row; /* large */
    int group, i = 0, wrong = 0;
    for (group = 0; group < O_GROUPS; group++)
        for (; i < outputs_ends[group] && !wrong; i++) {
            has_row[r->index_d[i]] = 1;
            read_outputs_row(c, r, group, i, &row);
            c->of_row(&row);
            wrong = compare_outputs_row(c, r, i, &row);
        }
    return wrong;
}

static void run_outputs_case(const outputs_case *c, uint64_t seed) {
    static outputs_run r; /* large */
    gemmepi_plan *plan = NULL;
    char text[4096], has_row[O_ALL_ROWS] = {0};
    int t;
    make_outputs_run(c, &r, seed);
    send_outputs_run(c, &r);
    CHECK(plan_groups(&r.desc, &r.args, &plan) == GEMMEPI_OK, "%s on %s: %s", c->name, here->name,
          gemmepi_last_error());
    if (plan) {
        gemmepi_plan_explain(plan, text, sizeof text);
        CHECK(!wants_fused || !c->is_fast || !here->has_fused || says_route(plan, "fused"), "%s on %s: %s",
              c->name, here->name, text);
    }
    if (plan) {
        CHECK(gemmepi_plan_prepare(plan, here->stream) == GEMMEPI_OK &&
                  gemmepi_run_grouped(plan, &r.args, here->stream) == GEMMEPI_OK,
              "%s on %s: %s", c->name, here->name, gemmepi_last_error());
        for (t = 0; t <= O_D; t++)
            if (is_written(&r, t))
                CHECK(gemmepi_download(here->context, r.tensors[t].at.data, r.tensors[t].device,
                                       r.tensors[t].bytes, here->stream) == GEMMEPI_OK,
                      "%s on %s: %s", c->name, here->name, gemmepi_last_error());
        for (t = compare_outputs(c, &r, has_row) ? O_D + 1 : 0; t <= O_D; t++)
            if (is_written(&r, t))
                check_outputs_rest(c, &r, t, has_row);
    }
    gemmepi_plan_destroy(plan);
    free_outputs_run(&r);
}

#endif
