/* Chains of layers: gradients through the activation of the layer before, and residuals, against plain loops in double; on the host and on
   a GPU if there is one. A column-major layer is the row-major one with a and b exchanged, in the same memory. */
#include "../products/problem.h"

#include <ctype.h>

static test_device *here;

enum { MOST = 40000, SLOTS = 20 };

/* Numbers on the device, dense, and as they are read back. */
typedef struct held {
    gemmepi_dtype dtype; /* 0: bits */
    int count;
    double at[MOST];
    unsigned char bytes[MOST * 8];
    void *there;
} held;
static held slots[SLOTS];
static int used;

static size_t bytes_of(const held *h) {
    return h->dtype ? (size_t)h->count * gemmepi_dtype_size(h->dtype) : (size_t)h->count / 8;
}

static void take(held *h) {
    int i;
    CHECK(gemmepi_download(here->context, h->bytes, h->there, bytes_of(h), here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    for (i = 0; h->dtype && i < h->count; i++)
        h->at[i] = oracle_decode(h->dtype, h->bytes + (size_t)i * gemmepi_dtype_size(h->dtype));
}

/* random NULL: what is written, poisoned. */
static held *make(gemmepi_dtype dtype, int count, rng *random) {
    held *h = &slots[used++];
    int i;
    h->dtype = dtype;
    h->count = count;
    memset(h->bytes, 0xff, sizeof h->bytes);
    for (i = 0; random && i < count; i++)
        oracle_encode(dtype, h->bytes + (size_t)i * gemmepi_dtype_size(dtype),
                      (rng_below(random, 65) - 32) / 32.0);
    CHECK(gemmepi_alloc(here->context, bytes_of(h) + 16, &h->there) == GEMMEPI_OK &&
              gemmepi_upload(here->context, h->there, h->bytes, bytes_of(h), here->stream) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    take(h);
    return h;
}

static held *make_of(gemmepi_dtype dtype, int count, const double *values) {
    held *h = make(dtype, count, NULL);
    int i;
    for (i = 0; i < count; i++)
        oracle_encode(dtype, h->bytes + (size_t)i * gemmepi_dtype_size(dtype), values[i]);
    CHECK(gemmepi_upload(here->context, h->there, h->bytes, bytes_of(h), here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    return h;
}

static void drop_all(void) {
    while (used)
        gemmepi_free(here->context, slots[--used].there);
}

static void is_near(double got, double want, double by, const char *what, int at) {
    CHECK(fabs(got - want) <= by, "%s[%d] is %.9g, not %.9g +- %.2g", what, at, got, want, by);
}

/* Two layers: x [rows, width] w1 = p [rows, inner], y1 = act(p), whose width is `joint`; y1 w2 = y2 [rows, outer]. Each item of the batch
   has its own x, and its own w2 if has_items; or (of_all) x is that of all, whose gradient is a sum. */
typedef struct chain {
    gemmepi_epilogue activation;
    gemmepi_dtype dtype;
    int batch, has_items, of_all, column_major, rows, width, inner, joint, outer;
    const char *formula; /* that the first layer says its activation with; NULL: by name */
    held *x, *w1, *b1, *p, *y1, *w2, *y2, *dy, *g1, *dw1, *db1;
    gemmepi_linear_desc first, second;
    gemmepi_linear_args of_first, of_second;
} chain;

static double roundoff(const chain *c) {
    return c->dtype == GEMMEPI_F64 ? 1e-13 : c->dtype == GEMMEPI_F32 ? 4e-6 : 1.0 / 128;
}

static void exchange(gemmepi_linear_desc *desc, gemmepi_linear_args *args) {
    const gemmepi_matrix a = desc->a, da = desc->da;
    const void *of_a = args->a;
    void *of_da = args->da;
    const int64_t m = desc->m;
    const uint64_t flags = desc->flags;
    desc->order = GEMMEPI_COLUMN_MAJOR;
    desc->a = desc->b, desc->b = a, desc->da = desc->db, desc->db = da, desc->m = desc->n, desc->n = m;
    desc->flags &= ~(GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB);
    desc->flags |= flags & GEMMEPI_LINEAR_DA ? GEMMEPI_LINEAR_DB : 0;
    desc->flags |= flags & GEMMEPI_LINEAR_DB ? GEMMEPI_LINEAR_DA : 0;
    args->a = args->b, args->b = of_a, args->da = args->db, args->db = of_da;
}

static int saves_mask(const chain *c) {
    return c->activation == GEMMEPI_RELU && !c->formula;
}

static void describe_first(chain *c) {
    gemmepi_linear_desc *d = &c->first;
    d->m = c->rows, d->n = c->inner, d->k = c->width, d->batch = c->of_all ? 1 : c->batch;
    d->a.dtype = d->b.dtype = d->y.dtype = d->dy.dtype = d->da.dtype = d->db.dtype = c->dtype;
    d->activation = c->formula ? 0 : c->activation, d->formula = c->formula;
    d->flags = GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS | GEMMEPI_LINEAR_DY_IS_G;
    d->flags |= c->activation ? GEMMEPI_LINEAR_SAVED : 0;
    d->a.batch_stride = (int64_t)c->rows * c->width;
    d->y.batch_stride = (int64_t)c->rows * c->joint;
    d->dy.batch_stride = (int64_t)c->rows * c->inner;
    d->preact.batch_stride = saves_mask(c) ? (int64_t)c->rows * 128 : (int64_t)c->rows * c->inner;
    c->of_first.a = c->x->there, c->of_first.b = c->w1->there, c->of_first.bias = c->b1->there;
    c->of_first.y = c->y1->there, c->of_first.preact = c->activation ? c->p->there : NULL;
    c->of_first.dy = c->g1->there, c->of_first.db = c->dw1->there, c->of_first.dbias = c->db1->there;
}

static void describe_second(chain *c) {
    gemmepi_linear_desc *d = &c->second;
    d->m = c->rows, d->n = c->outer, d->k = c->joint, d->batch = c->batch;
    d->a.dtype = d->b.dtype = d->y.dtype = d->dy.dtype = d->da.dtype = c->dtype;
    d->flags = GEMMEPI_LINEAR_DA;
    d->a.batch_stride = c->of_all ? 0 : (int64_t)c->rows * c->joint;
    d->b.batch_stride = c->has_items ? (int64_t)c->joint * c->outer : 0;
    d->y.batch_stride = d->dy.batch_stride = (int64_t)c->rows * c->outer;
    d->da.batch_stride = c->of_all ? 0 : (int64_t)c->rows * c->inner;
    d->before = &c->first;
    c->of_second.a = c->y1->there, c->of_second.b = c->w2->there, c->of_second.y = c->y2->there;
    c->of_second.dy = c->dy->there, c->of_second.da = c->g1->there;
    c->of_second.before = &c->of_first;
}

static int rows_of_x(const chain *c) {
    return c->of_all ? c->rows : c->batch * c->rows;
}

static void open_chain(chain *c) {
    rng random = rng_seeded((uint64_t)c->activation * 8 + (uint64_t)c->batch);
    const int rows = rows_of_x(c), all = c->batch * c->rows, gated = (c->activation & GEMMEPI_GATED) != 0;
    c->joint = gated ? c->inner / 2 : c->inner;
    c->x = make(c->dtype, rows * c->width, &random), c->w1 = make(c->dtype, c->width * c->inner, &random);
    c->b1 = make(c->dtype, c->inner, &random);
    c->p =
        saves_mask(c) ? make(GEMMEPI_DTYPE_DEFAULT, rows * 128, NULL) : make(c->dtype, rows * c->inner, NULL);
    c->y1 = make(c->dtype, rows * c->joint, NULL);
    c->w2 = make(c->dtype, (c->has_items ? c->batch : 1) * c->joint * c->outer, &random);
    c->y2 = make(c->dtype, all * c->outer, NULL), c->dy = make(c->dtype, all * c->outer, &random);
    c->g1 = make(c->dtype, rows * c->inner, NULL);
    c->dw1 = make(c->dtype, c->width * c->inner, NULL), c->db1 = make(c->dtype, c->inner, NULL);
    memset(&c->first, 0, sizeof c->first), memset(&c->second, 0, sizeof c->second);
    memset(&c->of_first, 0, sizeof c->of_first), memset(&c->of_second, 0, sizeof c->of_second);
    describe_first(c);
    describe_second(c);
    if (!c->column_major)
        return;
    exchange(&c->first, &c->of_first);
    exchange(&c->second, &c->of_second);
}

/* Forward and backward of both, the second one's by a plan or not. */
static void run_chain(chain *c, int by_plan) {
    gemmepi_plan *plan = NULL;
    CHECK(gemmepi_linear(here->context, &c->first, &c->of_first, here->stream) == GEMMEPI_OK &&
              gemmepi_linear(here->context, &c->second, &c->of_second, here->stream) == GEMMEPI_OK,
          "forward: %s", gemmepi_last_error());
    if (by_plan)
        CHECK(gemmepi_plan_linear_backward(here->context, &c->second, &plan) == GEMMEPI_OK &&
                  gemmepi_plan_prepare(plan, here->stream) == GEMMEPI_OK &&
                  gemmepi_run_linear_backward(plan, &c->of_second, here->stream) == GEMMEPI_OK,
              "plan of backward: %s", gemmepi_last_error());
    else
        CHECK(gemmepi_linear_backward(here->context, &c->second, &c->of_second, here->stream) == GEMMEPI_OK,
              "backward of the second: %s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    CHECK(gemmepi_linear_backward(here->context, &c->first, &c->of_first, here->stream) == GEMMEPI_OK,
          "backward of the first: %s", gemmepi_last_error());
    take(c->p), take(c->g1), take(c->dw1), take(c->db1);
}

/* P of a row, as forward has stored it, or, where it stores bits, as it computes it. */
static double preact(const chain *c, int row, int column) {
    double sum = c->b1->at[column];
    int s;
    if (c->activation && !saves_mask(c))
        return c->p->at[row * c->inner + column];
    for (s = 0; s < c->width; s++)
        sum += c->x->at[row * c->width + s] * c->w1->at[s * c->inner + column];
    return sum;
}

/* The gradient of y1, and the sum of its terms' magnitudes. */
static double gradient_of_y1(const chain *c, int row, int column, double *terms) {
    double sum = 0;
    int j, of = row;
    for (*terms = 0; of < c->batch * c->rows; of += c->of_all ? c->rows : c->batch * c->rows)
        for (j = 0; j < c->outer; j++) {
            const int item = c->has_items ? of / c->rows : 0;
            const double term =
                c->dy->at[of * c->outer + j] * c->w2->at[(item * c->joint + column) * c->outer + j];
            sum += term, *terms += fabs(term);
        }
    return sum;
}

static void check_row(const chain *c, int row) {
    const unsigned act = (unsigned)(c->activation & GEMMEPI_ACTIVATION_MASK);
    const double parameter = oracle_given_parameter(act, 0, 0), u = roundoff(c);
    double *const got = c->g1->at + row * c->inner, terms, most;
    int j, first = c->activation & GEMMEPI_GATE_FIRST ? c->joint : 0;
    for (j = 0; j < c->joint; j++) {
        const double up = gradient_of_y1(c, row, j, &terms);
        const double p = preact(c, row, c->activation & GEMMEPI_GATED ? c->joint - first + j : j);
        const double slope = act ? oracle_derivative(act, parameter, p, &most) : 1;
        if (c->activation & GEMMEPI_GATED) {
            const double value = preact(c, row, first + j),
                         of_gate = act ? oracle_activation(act, parameter, p) : p;
            is_near(got[first + j], up * of_gate, 4 * u * (1 + fabs(of_gate)) * terms, "value of g", j);
            is_near(got[c->joint - first + j], up * value * slope, 4 * u * (1 + fabs(value * slope)) * terms,
                    "gate of g", j);
        } else if (act != GEMMEPI_RELU || fabs(p) > 1e-3) {
            is_near(got[j], up * slope, 4 * u * (1 + fabs(slope)) * terms, "g", j);
        }
    }
}

/* The gradients of the first layer, from its g as it is stored. */
static void check_first(const chain *c) {
    int s, j, row;
    for (j = 0; j < c->inner; j++)
        for (s = -1; s < c->width; s++) {
            double sum = 0, terms = 0;
            for (row = 0; row < rows_of_x(c); row++) {
                const double term =
                    (s < 0 ? 1 : c->x->at[row * c->width + s]) * c->g1->at[row * c->inner + j];
                sum += term, terms += fabs(term);
            }
            is_near(s < 0 ? c->db1->at[j] : c->dw1->at[s * c->inner + j], sum,
                    2 * roundoff(c) * (terms + 1e-3), s < 0 ? "dbias" : "dw", s < 0 ? j : s * c->inner + j);
        }
}

/* An activation or gate as text. */
static const char *said(gemmepi_epilogue activation, char room[160]) {
    const int is_gate = (activation & GEMMEPI_GATED) != 0;
    const char *const of = !is_gate ? "v" : activation & GEMMEPI_GATE_FIRST ? "left(v)" : "right(v)";
    char name[32];
    int i;
    snprintf(name, sizeof name, "%s",
             activation & GEMMEPI_ACTIVATION_MASK ? activation_name(activation) : "");
    for (i = 0; name[i]; i++)
        name[i] = (char)tolower((unsigned char)name[i]);
    snprintf(room, 160, is_gate ? "d = %s(%s) * %s(v)" : "d = %s(%s)", name, of,
             activation & GEMMEPI_GATE_FIRST ? "right" : "left");
    return room;
}

/* items: 1: w2 has items, 2: and x is that of all. by_formula: the first layer says its activation so. */
static void check_chain(gemmepi_epilogue activation, gemmepi_dtype dtype, int batch, int items,
                        int column_major, int by_formula) {
    static chain c;
    const int numbers[] = {(int)activation, (int)dtype, batch, items, column_major, by_formula};
    char room[160];
    int row;
    if (!test_takes(test_key(numbers, 6)))
        return;
    c.formula = by_formula ? said(activation, room) : NULL;
    c.activation = activation, c.dtype = dtype, c.batch = batch;
    c.has_items = items > 0, c.of_all = items == 2, c.column_major = column_major;
    c.rows = 19 + 8 * c.has_items, c.width = 7, c.inner = 34, c.outer = 21;
    open_chain(&c);
    run_chain(&c, items > 0);
    for (row = 0; row < rows_of_x(&c); row++)
        check_row(&c, row);
    check_first(&c);
    drop_all();
}

static void da_goes_through_every_activation_and_gate_of_the_layer_before(void) {
    int i;
    for (i = 0; i < ACTIVATION_COUNT; i++) {
        const gemmepi_epilogue gate = activation_codes[i] | GEMMEPI_GATED | (i & 1 ? GEMMEPI_GATE_FIRST : 0);
        int by_formula;
        for (by_formula = 0; by_formula < 2; by_formula++) {
            check_chain(activation_codes[i], GEMMEPI_F32, 1, 0, i & 1, by_formula);
            check_chain(gate, GEMMEPI_F32, 1, 0, i & 2, by_formula);
        }
    }
}

static void chains_hold_in_every_type_order_and_batch(void) {
    static const gemmepi_epilogue some[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_GELU_TANH,
                                            GEMMEPI_SILU | GEMMEPI_GATED, GEMMEPI_NONE | GEMMEPI_GATED};
    static const gemmepi_dtype dtypes[] = {GEMMEPI_F64, GEMMEPI_F32, GEMMEPI_BF16};
    int i, form;
    for (i = 0; i < 15; i++)
        for (form = 0; form < 8; form++)
            check_chain(some[i % 5], dtypes[i / 5], form < 2 ? 1 : 3, form < 4 ? 0 : form / 2 - 1, form & 1,
                        (i + form) & 1);
}

/* ---- formulas of the layer before, whose gradient is that of two backwards with its dY between them ---- */

enum { A_ROWS = 6, A_N = 8, A_K = 3, A_OUTER = 5, A_BATCH = 2 };

typedef struct said_chain {
    const char *formula;
    int columns; /* of y */
    int saves;
    gemmepi_width width; /* of the operands up and beta */
} said_chain;

/* Operands of every kind: up is FULL, beta PER_COLUMN, gain PER_ROW, rate a SCALAR, twice a NUMBER, seed the bits of a number, sum an output. */
static int list_operands(gemmepi_operand operands[7], void *pointers[7], const said_chain *of,
                         int column_major, rng *random) {
    static double two = 2;
    static const char *const names[] = {"up", "beta", "gain", "rate", "twice", "seed", "sum"};
    static const gemmepi_operand_kind kinds[] = {GEMMEPI_FULL,   GEMMEPI_PER_COLUMN, GEMMEPI_PER_ROW,
                                                 GEMMEPI_SCALAR, GEMMEPI_NUMBER,     GEMMEPI_SCALAR,
                                                 GEMMEPI_PER_ROW};
    int i, count = 0;
    for (i = 0; i < 7; i++) {
        gemmepi_operand *o = &operands[count];
        if (!strstr(of->formula, names[i]))
            continue;
        memset(o, 0, sizeof *o);
        o->name = names[i], o->kind = kinds[i];
        if (column_major && i != 6 && (o->kind == GEMMEPI_PER_ROW || o->kind == GEMMEPI_PER_COLUMN))
            o->kind = o->kind == GEMMEPI_PER_ROW ? GEMMEPI_PER_COLUMN : GEMMEPI_PER_ROW;
        o->width = i < 2 ? of->width : GEMMEPI_WIDTH_N;
        o->dtype = i == 5 ? GEMMEPI_I64 : GEMMEPI_DTYPE_DEFAULT;
        o->output = i == 6;
        o->batch_stride = i == 0 ? A_ROWS * 3 * A_N : i == 2 ? A_ROWS : i == 6 ? A_N : 0;
        pointers[count++] =
            i == 4 ? (void *)&two
                   : make(GEMMEPI_F64, A_BATCH * A_ROWS * 3 * A_N, i == 6 ? NULL : random)->there;
    }
    return count;
}

static void check_said(const said_chain *of, int column_major) {
    rng random = rng_seeded(5);
    gemmepi_linear_desc first, second;
    gemmepi_linear_args of_first, of_second;
    gemmepi_operand operands[7];
    void *pointers[7];
    held *x = make(GEMMEPI_F64, A_BATCH * A_ROWS * A_K, &random), *w1 = make(GEMMEPI_F64, A_K * A_N, &random);
    held *y = make(GEMMEPI_F64, A_BATCH * A_ROWS * of->columns, NULL),
         *p = make(GEMMEPI_F64, A_BATCH * A_ROWS * A_N, NULL);
    held *w2 = make(GEMMEPI_F64, of->columns * A_OUTER, &random),
         *dy = make(GEMMEPI_F64, A_BATCH * A_ROWS * A_OUTER, &random);
    held *between = make(GEMMEPI_F64, A_BATCH * A_ROWS * of->columns, NULL),
         *g = make(GEMMEPI_F64, A_BATCH * A_ROWS * A_N, NULL);
    held *want = make(GEMMEPI_F64, A_K * A_N, NULL), *got = make(GEMMEPI_F64, A_K * A_N, NULL);
    int i;
    memset(&first, 0, sizeof first), memset(&second, 0, sizeof second);
    memset(&of_first, 0, sizeof of_first), memset(&of_second, 0, sizeof of_second);
    first.m = second.m = A_ROWS, first.n = A_N, first.k = A_K, second.k = of->columns, second.n = A_OUTER;
    first.batch = second.batch = A_BATCH,
    first.a.dtype = first.b.dtype = second.a.dtype = second.b.dtype = GEMMEPI_F64;
    first.a.batch_stride = A_ROWS * A_K, first.preact.batch_stride = A_ROWS * A_N;
    first.y.batch_stride = first.dy.batch_stride = second.a.batch_stride = second.da.batch_stride =
        A_ROWS * of->columns;
    second.dy.batch_stride = A_ROWS * A_OUTER;
    first.formula = of->formula, first.operands = operands;
    first.operand_count = list_operands(operands, pointers, of, column_major, &random);
    first.flags = GEMMEPI_LINEAR_DB | (of->saves ? GEMMEPI_LINEAR_SAVED : 0);
    second.flags = GEMMEPI_LINEAR_DA;
    of_first.a = x->there, of_first.b = w1->there, of_first.y = y->there;
    of_first.preact = of->saves ? p->there : NULL, of_first.operands = pointers;
    of_first.dy = between->there, of_first.db = want->there;
    of_second.a = y->there, of_second.b = w2->there, of_second.dy = dy->there, of_second.da = between->there;
    if (column_major)
        exchange(&first, &of_first), exchange(&second, &of_second);
    CHECK(!gemmepi_linear(here->context, &first, &of_first, here->stream) &&
              !gemmepi_linear_backward(here->context, &second, &of_second, here->stream) &&
              !gemmepi_linear_backward(here->context, &first, &of_first, here->stream),
          "%s apart: %s", of->formula, gemmepi_last_error());
    take(want);
    second.before = &first, of_second.before = &of_first;
    *(column_major ? &second.db : &second.da) = first.preact;
    first.dy = first.preact, first.flags |= GEMMEPI_LINEAR_DY_IS_G, of_first.dy = g->there;
    *(column_major ? &of_second.db : &of_second.da) = g->there;
    *(column_major ? &of_first.da : &of_first.db) = got->there;
    CHECK(!gemmepi_linear_backward(here->context, &second, &of_second, here->stream) &&
              !gemmepi_linear_backward(here->context, &first, &of_first, here->stream),
          "%s: %s", of->formula, gemmepi_last_error());
    take(got);
    for (i = 0; i < A_K * A_N; i++)
        is_near(got->at[i], want->at[i], 1e-12, of->formula, i);
    drop_all();
}

static void da_goes_through_the_formula_of_the_layer_before(void) {
    static const said_chain rows[] = {
        {"d = sin(30 * v)", 8, 1, GEMMEPI_WIDTH_N},
        {"d = v * sigmoid(beta * v) * up", 8, 1, GEMMEPI_WIDTH_N},
        {"d = gain * tanh(v) + rate * up", 8, 1, GEMMEPI_WIDTH_N},
        {"d = 3 * v * rate + up", 8, 0, GEMMEPI_WIDTH_N}, /* no P */
        {"d = uniform(seed, 0) < 0.5 ? 0 : twice * v", 8, 0, GEMMEPI_WIDTH_N},
        {"sum = row_sum(v * v); d = exp(v) * column", 8, 1, GEMMEPI_WIDTH_N},
        {"d = left(v) * silu(right(v)) * gain + rate", 4, 1, GEMMEPI_WIDTH_N},
        {"d = beta * left(v) * gelu_tanh(right(v)) * up", 4, 1, GEMMEPI_WIDTH_HALF},
        {"d = left(v * up) * silu(right(v * beta))", 4, 1, GEMMEPI_WIDTH_N},
        {"d = even(v) * silu(odd(v)) * up", 4, 1, GEMMEPI_WIDTH_HALF},
        {"d = part(v, 0, 4) * tanh(part(v, 1, 4)) + part(v, 2, 4) * up * part(v, 3, 4)", 2, 1,
         GEMMEPI_WIDTH_HALF},
        {"d = parts(v, sin(v), v * v) * beta", 24, 1, GEMMEPI_WIDTH_DOUBLE},
        {"d = pair(sin(v), cos(v))", 16, 1, GEMMEPI_WIDTH_N},
        {"d = pair(v * rate, v * v) * up", 16, 1, GEMMEPI_WIDTH_DOUBLE},
        {"d = sin(depth * v) + depth * up", 8, 1, GEMMEPI_WIDTH_N}, /* that layer's k, not dA's */
        {"d = part(v, 1, 4) * depth", 2, 0, GEMMEPI_WIDTH_N}};
    size_t i;
    for (i = 0; i < 2 * sizeof rows / sizeof *rows; i++)
        if (test_takes((uint64_t)i))
            check_said(&rows[i / 2], (int)(i & 1));
}

/* ---- three layers, whose loss is the sum of c y3 ---- */

enum { ROWS = 5, WIDTH = 6, WEIGHTS = WIDTH * WIDTH };

static double loss_of(const double *x, double w[3][WEIGHTS], const double *c) {
    double y[ROWS][WIDTH], next[ROWS][WIDTH], loss = 0;
    int layer, i, j, s;
    memcpy(y, x, sizeof y);
    for (layer = 0; layer < 3; layer++) {
        for (i = 0; i < ROWS; i++)
            for (j = 0; j < WIDTH; j++) {
                double p = 0;
                for (s = 0; s < WIDTH; s++)
                    p += y[i][s] * w[layer][s * WIDTH + j];
                next[i][j] = layer == 2 ? p : oracle_activation(GEMMEPI_MISH, 0, p);
            }
        memcpy(y, next, sizeof y);
    }
    for (i = 0; i < ROWS * WIDTH; i++)
        loss += c[i] * y[i / WIDTH][i % WIDTH];
    return loss;
}

static void check_three_layers(const char *formula) {
    rng random = rng_seeded(3);
    gemmepi_linear_desc desc[3];
    gemmepi_linear_args args[3];
    held *x = make(GEMMEPI_F64, ROWS * WIDTH, &random), *c = make(GEMMEPI_F64, ROWS * WIDTH, &random);
    held *y[3], *p[3], *g[3], *w[3], *dw[3];
    double weights[3][WEIGHTS];
    int i, l;
    memset(desc, 0, sizeof desc), memset(args, 0, sizeof args);
    for (l = 0; l < 3; l++) {
        y[l] = make(GEMMEPI_F64, ROWS * WIDTH, NULL), p[l] = make(GEMMEPI_F64, ROWS * WIDTH, NULL);
        g[l] = make(GEMMEPI_F64, ROWS * WIDTH, NULL);
        w[l] = make(GEMMEPI_F64, WEIGHTS, &random), dw[l] = make(GEMMEPI_F64, WEIGHTS, NULL);
        memcpy(weights[l], w[l]->at, sizeof weights[l]);
        desc[l].m = ROWS, desc[l].n = desc[l].k = WIDTH, desc[l].a.dtype = GEMMEPI_F64;
        desc[l].flags = GEMMEPI_LINEAR_DB | (l ? GEMMEPI_LINEAR_DA : 0);
        desc[l].flags |= l < 2 ? GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DY_IS_G : 0;
        desc[l].activation = l < 2 && !formula ? GEMMEPI_MISH : GEMMEPI_NONE;
        desc[l].formula = l < 2 ? formula : NULL;
        desc[l].before = l ? &desc[l - 1] : NULL;
        args[l].a = l ? y[l - 1]->there : x->there, args[l].b = w[l]->there, args[l].db = dw[l]->there;
        args[l].y = y[l]->there, args[l].preact = l < 2 ? p[l]->there : NULL;
        args[l].dy = l < 2 ? g[l]->there : c->there, args[l].da = l ? g[l - 1]->there : NULL;
        args[l].before = l ? &args[l - 1] : NULL;
        CHECK(!gemmepi_linear(here->context, &desc[l], &args[l], here->stream), "%s", gemmepi_last_error());
    }
    for (l = 2; l >= 0; l--)
        CHECK(!gemmepi_linear_backward(here->context, &desc[l], &args[l], here->stream), "%s",
              gemmepi_last_error());
    for (l = 0; l < 3; l++)
        for (take(dw[l]), i = 0; i < WEIGHTS; i++) {
            const double old = weights[l][i], h = 1e-5;
            double up, down;
            weights[l][i] = old + h, up = loss_of(x->at, weights, c->at);
            weights[l][i] = old - h, down = loss_of(x->at, weights, c->at);
            weights[l][i] = old;
            is_near(dw[l]->at[i], (up - down) / (2 * h), 1e-7, "dw", l * WEIGHTS + i);
        }
    drop_all();
}

static void three_layers_have_the_gradients_that_differences_say(void) {
    check_three_layers(NULL);
    check_three_layers("d = v * tanh(log(1 + exp(v)))");
}

/* ---- what is read of the layer before ---- */

/* Two rows of one column: P of the layer before is 1 and -1, dY w2 is 3, which a formula doubles. */
typedef struct pair {
    gemmepi_linear_desc before, desc;
    gemmepi_linear_args of_before, args;
    held *p, *g;
} pair;

static void open_pair(pair *of, gemmepi_dtype saved) {
    static const double one[] = {1, 1}, three[] = {3}, signs[] = {1, -1};
    held *dy, *w2;
    memset(of, 0, sizeof *of);
    dy = make_of(GEMMEPI_F32, 2, one), w2 = make_of(GEMMEPI_F32, 1, three);
    of->p = make_of(saved, 2, signs), of->g = make(GEMMEPI_F32, 2, NULL);
    of->before.m = of->desc.m = 2, of->before.n = of->before.k = of->desc.n = of->desc.k = 1;
    of->before.flags = GEMMEPI_LINEAR_SAVED, of->before.preact.dtype = saved;
    of->desc.flags = GEMMEPI_LINEAR_DA, of->desc.before = &of->before;
    of->args.dy = dy->there, of->args.b = w2->there, of->args.da = of->g->there;
    of->args.before = &of->of_before, of->of_before.preact = of->p->there;
}

static void gives(pair *of, double first, double second) {
    CHECK(!gemmepi_linear_backward(here->context, &of->desc, &of->args, here->stream), "%s",
          gemmepi_last_error());
    take(of->g);
    is_near(of->g->at[0], first, 1e-6, "g", 0);
    is_near(of->g->at[1], second, 1e-6, "g", 1);
}

/* Whatever a plan of the same pointer was made for. */
static void each_call_reads_the_layer_before_again(void) {
    pair of;
    int doubled;
    open_pair(&of, GEMMEPI_F32);
    for (doubled = 1; doubled <= 2; doubled++) {
        of.desc.formula = doubled == 2 ? "d = 2 * v" : NULL;
        of.before.activation = GEMMEPI_SQUARED_RELU, gives(&of, 6 * doubled, 0);
        of.before.activation = GEMMEPI_LEAKY_RELU, of.before.has_parameter = 1;
        of.before.activation_parameter = 0.5, gives(&of, 3 * doubled, 1.5 * doubled);
        of.before.activation_parameter = 0.25, gives(&of, 3 * doubled, 0.75 * doubled);
        of.before.has_parameter = 0, of.before.activation_parameter = 0;
    }
    of.desc.formula = NULL, of.before.activation = 0, of.before.formula = "d = depth * v * v";
    of.before.k = 1, gives(&of, 6, -6);
    of.before.k = 2, gives(&of, 12, -12);
    drop_all();
}

/* By the scale that backward has of it. */
static void p_of_the_layer_before_may_have_a_scale(void) {
    static const double half[] = {0.5};
    pair of;
    open_pair(&of, GEMMEPI_E4M3);
    of.before.activation = GEMMEPI_SQUARED_RELU;
    of.before.preact.scale.mode = GEMMEPI_SCALE_TENSOR;
    of.of_before.scale_preact = (const float *)make_of(GEMMEPI_F32, 1, half)->there;
    gives(&of, 3, 0);
    of.before.activation = 0, of.before.formula = "d = relu(v) * relu(v)";
    gives(&of, 3, 0);
    of.before.formula = "d = 2 * v"; /* whose gradient does not read P */
    gives(&of, 6, 6);
    drop_all();
}

/* An output that the gradient does not read is as wide as the formula says, though the gradient has no parts. */
static void outputs_of_the_layer_before_have_the_widths_of_its_parts(void) {
    gemmepi_operand third;
    pair of;
    void *nowhere = NULL;
    open_pair(&of, GEMMEPI_F32);
    memset(&third, 0, sizeof third);
    third.name = "third", third.kind = GEMMEPI_FULL, third.width = GEMMEPI_WIDTH_HALF;
    third.output = 1, third.ld = 2;
    of.before.n = of.desc.k = 6;
    of.before.formula = "d = 2 * v; third = part(v, 2, 3)";
    of.before.operands = &third, of.before.operand_count = 1, of.of_before.operands = &nowhere;
    of.args.b = make(GEMMEPI_F32, 6, NULL)->there, of.args.da = make(GEMMEPI_F32, 12, NULL)->there;
    CHECK(!gemmepi_linear_backward(here->context, &of.desc, &of.args, here->stream), "%s",
          gemmepi_last_error());
    drop_all();
}

/* As a da is that no dtype is given for. */
static void g_of_a_y_of_8_bits_is_bf16_by_default(void) {
    static const double three[] = {3}, two[] = {2};
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
    held *db = make(GEMMEPI_BF16, 1, NULL);
    memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args);
    desc.m = desc.n = desc.k = 1;
    desc.a.dtype = GEMMEPI_BF16, desc.y.dtype = GEMMEPI_E4M3, desc.activation = GEMMEPI_GELU_ERF;
    desc.flags = GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DY_IS_G;
    args.a = make_of(GEMMEPI_BF16, 1, three)->there, args.dy = make_of(GEMMEPI_BF16, 1, two)->there;
    args.db = db->there;
    CHECK(!gemmepi_linear_backward(here->context, &desc, &args, here->stream), "%s", gemmepi_last_error());
    take(db);
    is_near(db->at[0], 6, 0, "db", 0);
    drop_all();
}

static void explains(const gemmepi_linear_desc *desc, const char *words) {
    static char text[1 << 14];
    gemmepi_plan *plan = NULL;
    CHECK(!gemmepi_plan_linear_backward(here->context, desc, &plan), "%s", gemmepi_last_error());
    gemmepi_plan_explain(plan, text, sizeof text);
    CHECK(strstr(text, words) != NULL, "no '%s' in: %s", words, text);
    gemmepi_plan_destroy(plan);
}

static void explain_says_what_a_layer_of_a_chain_does(void) {
    pair of;
    open_pair(&of, GEMMEPI_F32);
    of.before.activation = GEMMEPI_MISH;
    explains(&of.desc, "activation NONE, dA through activation MISH of the layer before: 1 step,");
    of.before.flags |= GEMMEPI_LINEAR_DY_IS_G | GEMMEPI_LINEAR_DB;
    explains(&of.before, "activation NONE, dY is G: 1 step,");
    drop_all();
}

/* ---- residuals ---- */

static void check_residual(gemmepi_epilogue activation, gemmepi_dtype dtype, int in_place, int column_major) {
    enum { M = 37, N = 26, K = 9, BATCH = 2 };
    const unsigned act = (unsigned)(activation & GEMMEPI_ACTIVATION_MASK);
    const int gated = (activation & GEMMEPI_GATED) != 0, columns = gated ? N / 2 : N;
    const double u = dtype == GEMMEPI_F64 ? 1e-13 : dtype == GEMMEPI_F32 ? 1e-5 : 1.0 / 64;
    rng random = rng_seeded(activation + 1);
    held *a = make(dtype, BATCH * M * K, &random), *b = make(dtype, K * N, &random);
    held *r = make(dtype, BATCH * M * columns, &random),
         *y = in_place ? r : make(dtype, BATCH * M * columns, NULL);
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
    double before[BATCH * M * N];
    int row, j, s;
    memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args);
    memcpy(before, r->at, sizeof(double) * (size_t)r->count);
    desc.m = M, desc.n = N, desc.k = K, desc.batch = BATCH,
    desc.a.dtype = desc.b.dtype = desc.y.dtype = dtype;
    desc.activation = activation, desc.flags = GEMMEPI_LINEAR_RESIDUAL;
    desc.a.batch_stride = M * K, desc.y.batch_stride = desc.residual.batch_stride = M * columns;
    args.a = a->there, args.b = b->there, args.y = y->there, args.residual = r->there;
    if (column_major)
        exchange(&desc, &args);
    CHECK(!gemmepi_linear(here->context, &desc, &args, here->stream), "%s", gemmepi_last_error());
    for (take(y), row = 0; row < BATCH * M; row++)
        for (j = 0; j < columns; j++) {
            double p[2] = {0, 0}, want;
            for (s = 0; s < K; s++) {
                p[0] += a->at[row * K + s] * b->at[s * N + j];
                p[1] += gated ? a->at[row * K + s] * b->at[s * N + columns + j] : 0;
            }
            want = gated ? p[0] * oracle_activation(act, oracle_given_parameter(act, 0, 0), p[1])
                         : oracle_activation(act, oracle_given_parameter(act, 0, 0), p[0]);
            is_near(y->at[row * columns + j], want + before[row * columns + j], u * (4 + fabs(want)), "y",
                    row * columns + j);
        }
    drop_all();
}

static void y_has_a_residual_which_it_may_be(void) {
    static const gemmepi_epilogue some[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_GELU_ERF,
                                            GEMMEPI_SILU | GEMMEPI_GATED};
    int i;
    for (i = 0; i < 16; i++)
        check_residual(some[i % 4], i < 8 ? GEMMEPI_F32 : GEMMEPI_BF16, i / 4 & 1, i & 1);
}

int main(void) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(da_goes_through_every_activation_and_gate_of_the_layer_before);
        RUN(chains_hold_in_every_type_order_and_batch);
        RUN(da_goes_through_the_formula_of_the_layer_before);
        RUN(three_layers_have_the_gradients_that_differences_say);
        RUN(each_call_reads_the_layer_before_again);
        RUN(p_of_the_layer_before_may_have_a_scale);
        RUN(outputs_of_the_layer_before_have_the_widths_of_its_parts);
        RUN(g_of_a_y_of_8_bits_is_bf16_by_default);
        RUN(explain_says_what_a_layer_of_a_chain_does);
        RUN(y_has_a_residual_which_it_may_be);
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
