/* operand_formula [COUNT [SEED]]: layers whose a, b or both are made by formulas, drawn in F64, in batches or not: forward against direct loops, every gradient
   against central differences of those loops. Then weights in 4 bits, exactly, and what is refused. On the host and, if there is one, on the GPU
   that GEMMEPI_TEST_DEVICE numbers. */
#include "../products/problem.h"

static test_device *here;
static int draws;
static uint64_t first_seed = 1;

/* >>what is drawn */

enum {
    OF_ROW,
    OF_COLUMN,
    OF_BOTH,
    SCALAR,
    NUMBER,
    OF_BLOCKS,
    PER_SIDE,
    EXTRA = 2 * PER_SIDE,
    MOST_LISTED = 2 * EXTRA + 1
};

/* $ is the side's letter. What is stored is times / divisor as wide as what is made, along its contiguous axis. */
typedef struct making {
    const char *text;
    int times, divisor;
    unsigned operands;
} making;

static const making makings[] = {
    {"$ * r$ * c$", 1, 1, 1u << OF_ROW | 1u << OF_COLUMN},
    {"($ - s$) * f$ + r$", 1, 1, 1u << SCALAR | 1u << OF_BOTH | 1u << OF_ROW},
    {"t = left($); t * sigmoid(t) * right($)", 2, 1, 0},
    {"left($) * c$ + right($) * r$", 2, 1, 1u << OF_COLUMN | 1u << OF_ROW},
    {"pair($, $ * $)", 1, 2, 0},
    {"$ * n$ + row - 2 * column", 1, 1, 1u << NUMBER},
    {"sin($) + c$", 1, 1, 1u << OF_COLUMN},
    {"$ * $ * s$", 1, 1, 1u << SCALAR},
    {"sin($ * depth / 8) + r$", 1, 1, 1u << OF_ROW},
    {"$ * $ * g$ + r$", 1, 1, 1u << OF_BLOCKS | 1u << OF_ROW},
    {"$ * g$ + c$", 1, 1, 1u << OF_BLOCKS | 1u << OF_COLUMN},
    {"left($ * g$) * right($)", 2, 1, 1u << OF_BLOCKS},
};
enum { MAKINGS = sizeof makings / sizeof *makings, PLAIN = -1 };
enum { IDENTITY, SAVED, RECOMPUTED, OWN_SAVED, OWN_RECOMPUTED, GIVEN_G, WAYS };

/* Doubles on the host, and their memory on the device, behind which `gradient` lies. */
typedef struct piece {
    int lines, length, ld, count, block_rows, block_columns;
    gemmepi_width width;
    int stride; /* from one item to the next; 0: all have it */
    double *at, *gradient;
    char *device, *device_gradient;
} piece;

typedef struct side {
    int making, transposed, rows, columns, by_rows;
    int block_rows, block_columns;
    char text[80];
    piece stored, operands[PER_SIDE];
} side;

typedef struct draw {
    int m, n, k, batch, item, order, way, has_bias, accumulates;
    int asks; /* bits: for the gradient of A, of B */
    side sides[2];
    piece bias, extra, y, p, dy;
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
    gemmepi_operand list[MOST_LISTED];
    void *pointers[MOST_LISTED];
    piece *listed[MOST_LISTED]; /* of a gradient: whose it is */
    char names[MOST_LISTED][8];
    rng random;
} draw;

static draw w;

static int elements(const piece *t) {
    return (t->stride ? w.batch - 1 : 0) * t->stride + (t->lines - 1) * t->ld + t->length;
}

/* Of the item that is looked at. */
static double *item_of(const piece *t) {
    return t->at + w.item * t->stride;
}

static char *uploaded(const double *values, int count) {
    void *device = NULL;
    CHECK(gemmepi_alloc(here->context, (size_t)(count + 1) * 8, &device) == GEMMEPI_OK &&
              gemmepi_upload(here->context, device, values, (size_t)count * 8, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    return (char *)device;
}

static piece drawn_piece(int lines, int length, int is_shared) {
    piece t;
    int i;
    memset(&t, 0, sizeof t);
    t.lines = lines, t.length = length, t.ld = lines > 1 ? length + rng_below(&w.random, 3) : length;
    t.stride = w.batch > 1 && !is_shared ? lines * t.ld + 1 + rng_below(&w.random, 3) : 0;
    t.count = t.lines && t.length ? elements(&t) : 0;
    t.at = (double *)malloc((size_t)(t.count + 1) * 8);
    t.gradient = (double *)malloc((size_t)(t.count + 1) * 8);
    for (i = 0; i < t.count; i++) {
        t.at[i] = (rng_below(&w.random, 257) - 128) / 128.0 + 0.003;
        t.gradient[i] = NAN;
    }
    t.device = uploaded(t.at, t.count);
    return t;
}

static void freed_piece(piece *t) {
    free(t->at), free(t->gradient);
    gemmepi_free(here->context, t->device), gemmepi_free(here->context, t->device_gradient);
}

static void fetch(double *to, const char *from, int count) {
    CHECK(gemmepi_download(here->context, to, from, (size_t)count * 8, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
}

/* Room for a gradient, in which sums that are added to are 0.25 before. */
static char *room_for_gradient(piece *t, int is_sum) {
    int i;
    for (i = 0; i < t->count; i++)
        t->gradient[i] = is_sum ? 0.25 : NAN;
    t->device_gradient = uploaded(t->gradient, t->count);
    return t->device_gradient;
}

static void draw_side(int which) {
    side *s = &w.sides[which];
    const char *from;
    char *to = s->text, letter = "ab"[which];
    int length, is_shared;
    s->transposed = rng_one_in(&w.random, 2);
    s->rows = which ? w.k : w.m, s->columns = which ? w.n : w.k;
    s->by_rows = (w.order == GEMMEPI_ROW_MAJOR) != s->transposed;
    s->making = rng_one_in(&w.random, 3) ? PLAIN : rng_below(&w.random, MAKINGS);
    length = s->by_rows ? s->columns : s->rows;
    if (s->making != PLAIN && length % makings[s->making].divisor)
        s->making = 0;
    if (s->making != PLAIN) {
        for (from = makings[s->making].text; *from; from++)
            *to++ = *from == '$' ? letter : *from;
        *to = 0;
        length = length * makings[s->making].times / makings[s->making].divisor;
    }
    is_shared = rng_one_in(&w.random, 2);
    if (which && s->making == PLAIN && w.sides[0].making == PLAIN && !w.sides[0].stored.stride)
        is_shared = 0; /* without texts both are not */
    s->stored = drawn_piece(s->by_rows ? s->rows : s->columns, length, is_shared);
    s->block_rows = 1 + rng_below(&w.random, 4), s->block_columns = 1 + rng_below(&w.random, 4);
    if (rng_one_in(&w.random, 2)) /* of which kernels have sums */
        *(s->by_rows ? &s->block_columns : &s->block_rows) = 8;
}

static int through(int extent, int block) {
    return (extent + block - 1) / block;
}

/* Lists an operand, and its gradient where it has one. */
static void list_operand(const char *name, gemmepi_operand_kind kind, piece *t, int has_gradient) {
    gemmepi_operand *o = &w.list[w.desc.operand_count];
    int is_matrix = kind >= GEMMEPI_FULL, is_sum = kind != GEMMEPI_FULL || (w.batch > 1 && !t->stride);
    memset(o, 0, sizeof *o);
    snprintf(w.names[w.desc.operand_count], 8, "%s", name);
    o->name = w.names[w.desc.operand_count], o->kind = kind;
    o->dtype = kind == GEMMEPI_NUMBER ? GEMMEPI_DTYPE_DEFAULT : GEMMEPI_F64;
    o->width = t->width;
    o->block_rows = t->block_rows, o->block_columns = t->block_columns;
    o->ld = is_matrix ? t->ld : 0, o->batch_stride = kind == GEMMEPI_NUMBER ? 0 : t->stride;
    w.pointers[w.desc.operand_count++] = kind == GEMMEPI_NUMBER ? (void *)t->at : (void *)t->device;
    if (!has_gradient)
        return;
    o[1] = *o;
    snprintf(w.names[w.desc.operand_count], 8, "d_%s", name);
    o[1].name = w.names[w.desc.operand_count];
    o[1].output = 1, o[1].accumulate = w.accumulates && is_sum;
    w.listed[w.desc.operand_count] = t;
    w.pointers[w.desc.operand_count++] = room_for_gradient(t, o[1].accumulate);
}

static void draw_operands(int which, int has_gradients) {
    static const gemmepi_operand_kind kinds[] = {GEMMEPI_PER_ROW, GEMMEPI_PER_COLUMN, GEMMEPI_FULL,
                                                 GEMMEPI_SCALAR,  GEMMEPI_NUMBER,     GEMMEPI_BLOCKED};
    side *s = &w.sides[which];
    char name[4];
    int i;
    for (i = 0; i < PER_SIDE; i++) {
        piece *t = &s->operands[i];
        int along = i == OF_COLUMN ? s->by_rows : i == OF_ROW ? !s->by_rows : 0;
        int of_stored = i == OF_BLOCKS && s->making != PLAIN ? makings[s->making].times : 1;
        int down = s->by_rows ? 1 : of_stored, across = s->by_rows ? of_stored : 1;
        int rows = i == OF_BLOCKS ? through(down * s->rows, s->block_rows) : s->rows;
        int columns = i == OF_BLOCKS ? through(across * s->columns, s->block_columns) : s->columns;
        int is_matrix = i == OF_BOTH || i == OF_BLOCKS;
        int same_width = s->making != PLAIN && makings[s->making].times == makings[s->making].divisor;
        *t = drawn_piece(!is_matrix   ? 1
                         : s->by_rows ? rows
                                      : columns,
                         is_matrix        ? (s->by_rows ? columns : rows)
                         : i == OF_ROW    ? rows
                         : i == OF_COLUMN ? columns
                                          : 1,
                         i == NUMBER || rng_one_in(&w.random, 2));
        if (i == OF_BLOCKS)
            t->block_rows = s->block_rows, t->block_columns = s->block_columns;
        if (s->making == PLAIN || !(makings[s->making].operands >> i & 1))
            continue;
        snprintf(name, sizeof name, "%c%c", "rcfsng"[i], "ab"[which]);
        if (of_stored > 1)
            t->width = GEMMEPI_WIDTH_DOUBLE;
        list_operand(name, kinds[i], t,
                     has_gradients && i != NUMBER && (same_width || along || i == OF_BLOCKS));
    }
}

/* >>what is expected */

static double stored_at(const side *s, int line, int at) {
    return item_of(&s->stored)[line * s->stored.ld + at];
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double block_of(const side *s, int row, int column) {
    const piece *blocks = &s->operands[OF_BLOCKS];
    int block_row = row / s->block_rows, block_column = column / s->block_columns;
    return item_of(
        blocks)[s->by_rows ? block_row * blocks->ld + block_column : block_column * blocks->ld + block_row];
}

static double made_at(const side *s, int row, int column) {
    int line = s->by_rows ? row : column, at = s->by_rows ? column : row;
    int length = s->by_rows ? s->columns : s->rows;
    const piece *o = s->operands;
    double x = s->making == 4 ? stored_at(s, line, at % (length / 2)) : stored_at(s, line, at);
    switch (s->making) {
    case 0:
        return x * item_of(&o[OF_ROW])[row] * item_of(&o[OF_COLUMN])[column];
    case 1:
        return (x - item_of(&o[SCALAR])[0]) * item_of(&o[OF_BOTH])[line * o[OF_BOTH].ld + at] +
               item_of(&o[OF_ROW])[row];
    case 2:
        return x * sigmoid(x) * stored_at(s, line, at + length);
    case 3:
        return x * item_of(&o[OF_COLUMN])[column] +
               stored_at(s, line, at + length) * item_of(&o[OF_ROW])[row];
    case 4:
        return at < length / 2 ? x : x * x;
    case 5:
        return x * item_of(&o[NUMBER])[0] + row - 2 * column;
    case 6:
        return sin(x) + item_of(&o[OF_COLUMN])[column];
    case 7:
        return x * x * item_of(&o[SCALAR])[0];
    case 9:
        return x * x * block_of(s, row, column) + item_of(&o[OF_ROW])[row];
    case 10:
        return x * block_of(s, row, column) + item_of(&o[OF_COLUMN])[column];
    case 11:
        return x * block_of(s, row, column) * stored_at(s, line, at + length);
    case 8:
        return sin(x * w.k / 8) + item_of(&o[OF_ROW])[row];
    default:
        return x;
    }
}

static double result_at(int row, int column) {
    double p = w.has_bias ? w.bias.at[w.order == GEMMEPI_ROW_MAJOR ? column : row] : 0;
    int i;
    for (i = 0; i < w.k; i++)
        p += made_at(&w.sides[0], row, i) * made_at(&w.sides[1], i, column);
    return w.way == SAVED || w.way == RECOMPUTED           ? p * sigmoid(p)
           : w.way == OWN_SAVED || w.way == OWN_RECOMPUTED ? sin(p * w.extra.at[0])
                                                           : p;
}

static int place(const piece *t, int row, int column) {
    return w.order == GEMMEPI_ROW_MAJOR ? row * t->ld + column : column * t->ld + row;
}

static double loss(void) {
    double sum = 0;
    int row, column;
    for (w.item = 0; w.item < w.batch; w.item++)
        for (row = 0; row < w.m; row++)
            for (column = 0; column < w.n; column++)
                sum += item_of(&w.dy)[place(&w.dy, row, column)] * result_at(row, column);
    return sum;
}

static double slope(double *x, double h) {
    double kept = *x, above;
    *x = kept + h, above = loss();
    *x = kept - h, above -= loss();
    *x = kept;
    return above / (2 * h);
}

static void check_gradient(const char *name, piece *t, double before, uint64_t seed) {
    const double h = 1e-5;
    int line, at, item;
    fetch(t->gradient, t->device_gradient, t->count);
    for (item = 0; item < (t->stride ? w.batch : 1); item++)
        for (line = 0; line < t->lines; line++)
            for (at = 0; at < t->length; at++) {
                int where = item * t->stride + line * t->ld + at;
                double *x = &t->at[where], got = t->gradient[where];
                double want =
                    before + (4 * slope(x, h) - slope(x, 2 * h)) / 3; /* but for the fourth power of h */
                CHECK(
                    fabs(got - want) <= 1e-6 * (1 + fabs(want)),
                    "seed %d: %s [%d, %d, %d] is %.9g, not %.9g; m %d, n %d, k %d, batch %d, order %d, way %d, a%s %s, b%s %s",
                    (int)seed, name, item, line, at, got, want, w.m, w.n, w.k, w.batch, w.order, w.way,
                    w.sides[0].transposed ? " transposed" : "", w.sides[0].text,
                    w.sides[1].transposed ? " transposed" : "", w.sides[1].text);
            }
}

static void check_result(uint64_t seed) {
    double *y = (double *)malloc((size_t)w.y.count * 8);
    int row, column;
    fetch(y, w.y.device, w.y.count);
    for (w.item = 0; w.item < w.batch; w.item++)
        for (row = 0; row < w.m; row++)
            for (column = 0; column < w.n; column++) {
                double got = y[w.item * w.y.stride + place(&w.y, row, column)], want = result_at(row, column);
                CHECK(w.way == GIVEN_G || fabs(got - want) <= 1e-12 * (1 + fabs(want)),
                      "seed %d: y [%d, %d] is %.17g, not %.17g", (int)seed, row, column, got, want);
            }
    free(y);
}

/* >>runs */

static gemmepi_matrix matrix_of(const piece *t) {
    gemmepi_matrix matrix;
    memset(&matrix, 0, sizeof matrix);
    matrix.dtype = GEMMEPI_F64, matrix.ld = t->ld, matrix.batch_stride = t->stride;
    return matrix;
}

static int has_text(int which) {
    return w.sides[which].making != PLAIN;
}

static void fill_layer(void) {
    gemmepi_linear_desc *d = &w.desc;
    int which;
    d->m = w.m, d->n = w.n, d->k = w.k, d->order = (gemmepi_order)w.order;
    d->batch = w.batch == 1 && rng_one_in(&w.random, 2) ? 0 : w.batch;
    for (which = 0; which < 2; which++) {
        side *s = &w.sides[which];
        gemmepi_matrix *matrix = which ? &d->b : &d->a;
        *matrix = matrix_of(&s->stored);
        matrix->transposed = s->transposed;
        matrix->formula = has_text(which) ? s->text : NULL;
        *(which ? &d->db : &d->da) = matrix_of(&s->stored);
    }
    d->y = matrix_of(&w.y), d->preact = matrix_of(&w.p), d->dy = matrix_of(&w.dy);
    d->activation = w.way == SAVED || w.way == RECOMPUTED ? GEMMEPI_SILU : GEMMEPI_NONE;
    d->flags |= w.has_bias ? GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_DBIAS : 0;
    d->flags |= w.way == SAVED || w.way == OWN_SAVED             ? GEMMEPI_LINEAR_SAVED
                : w.way == RECOMPUTED || w.way == OWN_RECOMPUTED ? GEMMEPI_LINEAR_RECOMPUTE
                : w.way == GIVEN_G                               ? GEMMEPI_LINEAR_DY_IS_G
                                                                 : 0;
    if (w.way == OWN_SAVED || w.way == OWN_RECOMPUTED) {
        d->formula = "d = sin(v * e)";
        list_operand("e", GEMMEPI_SCALAR, &w.extra, 1);
    }
    d->operands = w.desc.operand_count ? w.list : NULL;
}

static int has_gradient(void) {
    int i, count = 0;
    for (i = 0; i < w.desc.operand_count; i++)
        count += w.listed[i] != NULL;
    return count;
}

/* Of A, of B or of both, or of what their texts read alone. */
static void ask_for_gradients(void) {
    int which;
    for (which = 0; which < 2; which++) {
        piece *t = &w.sides[which].stored;
        int only_operands = has_text(which) && rng_one_in(&w.random, 4);
        if (w.asks >> which & 1 && !only_operands) {
            w.desc.flags |= which ? GEMMEPI_LINEAR_DB : GEMMEPI_LINEAR_DA;
            if (w.accumulates)
                w.desc.flags |= which ? GEMMEPI_ACCUMULATE_DB : GEMMEPI_ACCUMULATE_DA;
            *(which ? &w.args.db : &w.args.da) = room_for_gradient(t, w.accumulates);
        }
        draw_operands(which, w.asks >> which & 1);
    }
}

static void run_layer(uint64_t seed) {
    gemmepi_plan *forward = NULL, *backward = NULL;
    gemmepi_linear_args *args = &w.args;
    args->a = w.sides[0].stored.device, args->b = w.sides[1].stored.device;
    args->y = w.y.device, args->dy = w.dy.device;
    args->bias = w.has_bias ? w.bias.device : NULL;
    args->preact = w.desc.flags & GEMMEPI_LINEAR_SAVED ? w.p.device : NULL;
    if (w.has_bias)
        args->dbias = room_for_gradient(&w.bias, 0);
    args->operands = w.desc.operand_count ? w.pointers : NULL;
    if (rng_one_in(&w.random, 2)) {
        CHECK(gemmepi_linear(here->context, &w.desc, args, NULL) == GEMMEPI_OK &&
                  gemmepi_linear_backward(here->context, &w.desc, args, NULL) == GEMMEPI_OK,
              "seed %d: %s", (int)seed, gemmepi_last_error());
        return;
    }
    w.desc.alignment = 8;
    CHECK(gemmepi_plan_linear(here->context, &w.desc, &forward) == GEMMEPI_OK &&
              gemmepi_plan_prepare(forward, NULL) == GEMMEPI_OK &&
              gemmepi_run_linear(forward, args, NULL) == GEMMEPI_OK,
          "seed %d, forward: %s", (int)seed, gemmepi_last_error());
    CHECK(gemmepi_plan_linear_backward(here->context, &w.desc, &backward) == GEMMEPI_OK &&
              gemmepi_plan_prepare(backward, NULL) == GEMMEPI_OK &&
              gemmepi_run_linear_backward(backward, args, NULL) == GEMMEPI_OK,
          "seed %d, backward: %s", (int)seed, gemmepi_last_error());
    gemmepi_plan_destroy(forward), gemmepi_plan_destroy(backward);
}

static void check_layer(uint64_t seed) {
    int i;
    check_result(seed);
    if (w.desc.flags & GEMMEPI_LINEAR_DA)
        check_gradient("da", &w.sides[0].stored, w.desc.flags & GEMMEPI_ACCUMULATE_DA ? 0.25 : 0, seed);
    if (w.desc.flags & GEMMEPI_LINEAR_DB)
        check_gradient("db", &w.sides[1].stored, w.desc.flags & GEMMEPI_ACCUMULATE_DB ? 0.25 : 0, seed);
    if (w.has_bias)
        check_gradient("dbias", &w.bias, 0, seed);
    for (i = 0; i < w.desc.operand_count; i++)
        if (w.listed[i])
            check_gradient(w.list[i].name, w.listed[i], w.list[i].accumulate ? 0.25 : 0, seed);
}

static int drawn_size(void) {
    return rng_one_in(&w.random, 20) ? 0 : rng_one_in(&w.random, 6) ? 8 : 1 + rng_below(&w.random, 7);
}

static void one_draw(uint64_t seed) {
    int by_rows, i;
    memset(&w, 0, sizeof w);
    w.random = rng_seeded(seed);
    w.m = drawn_size(), w.n = drawn_size(), w.k = drawn_size();
    w.order = rng_one_in(&w.random, 2) ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    w.way = rng_below(&w.random, WAYS), w.has_bias = rng_one_in(&w.random, 2);
    w.accumulates = rng_one_in(&w.random, 3);
    w.batch = rng_one_in(&w.random, 3) ? 2 + rng_below(&w.random, 2) : 1;
    w.asks = rng_one_in(&w.random, 3) ? 1 << rng_below(&w.random, 2) : 3;
    by_rows = w.order == GEMMEPI_ROW_MAJOR;
    draw_side(0), draw_side(1);
    w.bias = drawn_piece(1, by_rows ? w.n : w.m, 1), w.extra = drawn_piece(1, 1, 1);
    w.y = drawn_piece(by_rows ? w.m : w.n, by_rows ? w.n : w.m, 0);
    w.p = drawn_piece(w.y.lines, w.y.length, 0), w.dy = drawn_piece(w.y.lines, w.y.length, 0);
    ask_for_gradients();
    fill_layer();
    if (w.desc.flags & (GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS) || has_gradient()) {
        run_layer(seed);
        check_layer(seed);
    }
    for (i = 0; i < 2; i++) {
        int o;
        freed_piece(&w.sides[i].stored);
        for (o = 0; o < PER_SIDE; o++)
            freed_piece(&w.sides[i].operands[o]);
    }
    freed_piece(&w.bias), freed_piece(&w.extra), freed_piece(&w.y), freed_piece(&w.p), freed_piece(&w.dy);
}

static void layers_of_made_operands_and_their_gradients_are_what_differences_say(void) {
    int i, count = draws ? draws : here->is_host ? 3000 : 12;
    for (i = 0; i < count; i++)
        one_draw(first_seed + (uint64_t)i);
}

/* >>weights in 4 bits */

enum { M = 5, N = 6, K = 8, GROUP = 4 };

static void *put(const void *values, size_t size) {
    void *device = NULL;
    CHECK(gemmepi_alloc(here->context, size, &device) == GEMMEPI_OK &&
              gemmepi_upload(here->context, device, values, size, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    return device;
}

/* Y = X W and dX = dY W^T of whole numbers, W = (b - zero) * scale of groups of k, stored [n, k]. Weights have no gradient, but zeros and
   scales have. */
static void weights_in_4_bits_have_a_forward_and_pass_gradients_on(void) {
    float x[M * K], dy[M * N], y[M * N], dx[M * K], zero[N * K / GROUP], scale[N * K / GROUP];
    float gradients[2][N * K / GROUP] = {{0}};
    double want_of[2][N * K / GROUP];
    unsigned char packed[N * K / 2];
    double weight[K][N];
    gemmepi_operand operands[4];
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
    void *pointers[4];
    rng random = rng_seeded(7);
    int i, j, at;
    memset(packed, 0, sizeof packed), memset(operands, 0, sizeof operands);
    memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args);
    for (i = 0; i < M * K; i++)
        x[i] = (float)(rng_below(&random, 7) - 3), dx[i] = NAN;
    for (i = 0; i < M * N; i++)
        dy[i] = (float)(rng_below(&random, 7) - 3), y[i] = NAN;
    for (i = 0; i < N * K / GROUP; i++)
        zero[i] = (float)rng_below(&random, 16), scale[i] = (float)(1 + rng_below(&random, 3));
    for (i = 0; i < N * K; i++) {
        int code = rng_below(&random, 16);
        packed[i / 2] = (unsigned char)(packed[i / 2] | code << 4 * (i % 2));
        weight[i % K][i / K] = (code - zero[i / GROUP]) * scale[i / GROUP];
    }
    desc.m = M, desc.n = N, desc.k = K, desc.flags = GEMMEPI_LINEAR_DA;
    desc.b.dtype = GEMMEPI_U4, desc.b.transposed = 1, desc.b.formula = "(b - zero) * scale";
    for (i = 0; i < 2; i++) { /* blocks of rows of op(B), which lie side by side */
        operands[i].name = i ? "scale" : "zero", operands[i].kind = GEMMEPI_BLOCKED;
        operands[i].dtype = GEMMEPI_F32, operands[i].block_rows = GROUP, operands[i].block_columns = 1;
        operands[2 + i] = operands[i], operands[2 + i].output = 1;
        operands[2 + i].name = i ? "d_scale" : "d_zero";
        pointers[2 + i] = put(gradients[i], sizeof gradients[i]);
    }
    desc.operands = operands, desc.operand_count = 4;
    args.operands = pointers;
    pointers[0] = put(zero, sizeof zero), pointers[1] = put(scale, sizeof scale);
    args.a = put(x, sizeof x), args.b = put(packed, sizeof packed), args.dy = put(dy, sizeof dy);
    args.y = put(y, sizeof y), args.da = put(dx, sizeof dx);
    CHECK(gemmepi_linear(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
              gemmepi_linear_backward(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, y, args.y, sizeof y, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, dx, args.da, sizeof dx, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (i = 0; i < M; i++) {
        for (j = 0; j < N; j++) {
            double want = 0;
            for (at = 0; at < K; at++)
                want += x[i * K + at] * weight[at][j];
            CHECK(y[i * N + j] == want, "y [%d, %d] is %g, not %g", i, j, y[i * N + j], want);
        }
        for (at = 0; at < K; at++) {
            double want = 0;
            for (j = 0; j < N; j++)
                want += dy[i * N + j] * weight[at][j];
            CHECK(dx[i * K + at] == want, "da [%d, %d] is %g, not %g", i, at, dx[i * K + at], want);
        }
    }
    memset(want_of, 0, sizeof want_of);
    for (i = 0; i < N * K; i++) {
        double of_weight = 0;
        for (at = 0; at < M; at++)
            of_weight += x[at * K + i % K] * dy[at * N + i / K];
        want_of[0][i / GROUP] -= of_weight * scale[i / GROUP];
        want_of[1][i / GROUP] += of_weight * weight[i % K][i / K] / scale[i / GROUP];
    }
    for (i = 0; i < 2; i++) {
        CHECK(gemmepi_download(here->context, gradients[i], pointers[2 + i], sizeof gradients[i], NULL) ==
                  GEMMEPI_OK,
              "%s", gemmepi_last_error());
        for (at = 0; at < N * K / GROUP; at++)
            CHECK(gradients[i][at] == want_of[i][at], "%s [%d] is %g, not %g", operands[2 + i].name, at,
                  gradients[i][at], want_of[i][at]);
    }
    args.db = args.da;
    CHECK(gemmepi_linear_backward(here->context, &desc, &args, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "args.db is given") &&
              strstr(gemmepi_last_error(), "no LINEAR_DB"),
          "%s", gemmepi_last_error());
    for (i = 0; i < 4; i++)
        gemmepi_free(here->context, pointers[i]);
    gemmepi_free(here->context, (void *)args.a), gemmepi_free(here->context, (void *)args.b);
    gemmepi_free(here->context, (void *)args.dy), gemmepi_free(here->context, args.y);
    gemmepi_free(here->context, args.da);
}

/* >>16 and 8 bits */

/* a in dtype, with a scale where that has 8 bits, times r: all numbers are whole and small, so all is exact. In column-major order the same
   memory is b. */
static struct {
    float x[M * K], w[K * N], dy[M * N], r[M], y[M * N], dr[M], scale;
    uint16_t da[M * K], wide[K * N];
    unsigned char stored[M * K * 4];
} typed;

static void fill_typed(gemmepi_dtype dtype) {
    rng random = rng_seeded(11);
    int i;
    memset(&typed, 0xff, sizeof typed);
    typed.scale = gemmepi_dtype_size(dtype) == 1 ? 2 : 1;
    for (i = 0; i < M * K; i++) {
        typed.x[i] = (float)(rng_below(&random, 5) - 2);
        oracle_encode(dtype, typed.stored + (size_t)i * gemmepi_dtype_size(dtype), typed.x[i]);
    }
    for (i = 0; i < K * N; i++) {
        typed.w[i] = (float)(rng_below(&random, 5) - 2);
        oracle_encode(GEMMEPI_BF16, &typed.wide[i], typed.w[i]);
    }
    for (i = 0; i < M * N; i++)
        typed.dy[i] = (float)(rng_below(&random, 5) - 2);
    for (i = 0; i < M; i++)
        typed.r[i] = (float)(1 + i % 2);
}

static void run_typed(gemmepi_dtype dtype, int by_rows) {
    gemmepi_operand operands[2];
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
    void *memory[7], *pointers[2];
    int i;
    memset(operands, 0, sizeof operands), memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args);
    operands[0].name = "r", operands[0].kind = by_rows ? GEMMEPI_PER_ROW : GEMMEPI_PER_COLUMN;
    operands[0].dtype = GEMMEPI_F32;
    operands[1] = operands[0], operands[1].name = "d_r", operands[1].output = 1;
    desc.order = by_rows ? GEMMEPI_ROW_MAJOR : GEMMEPI_COLUMN_MAJOR;
    desc.m = by_rows ? M : N, desc.n = by_rows ? N : M, desc.k = K;
    (by_rows ? &desc.a : &desc.b)->dtype = dtype, (by_rows ? &desc.b : &desc.a)->dtype = GEMMEPI_BF16;
    (by_rows ? &desc.a : &desc.b)->formula = by_rows ? "a * r" : "b * r";
    (by_rows ? &desc.a : &desc.b)->scale.mode = typed.scale == 2 ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
    desc.y.dtype = desc.dy.dtype = desc.g_dtype = GEMMEPI_F32;
    (by_rows ? &desc.da : &desc.db)->dtype = GEMMEPI_BF16;
    desc.flags = by_rows ? GEMMEPI_LINEAR_DA : GEMMEPI_LINEAR_DB;
    desc.operands = operands, desc.operand_count = 2, args.operands = pointers;
    memory[0] = pointers[0] = put(typed.r, sizeof typed.r),
    memory[1] = pointers[1] = put(typed.dr, sizeof typed.dr);
    memory[2] = put(typed.stored, sizeof typed.stored), memory[3] = put(typed.wide, sizeof typed.wide);
    args.a = memory[by_rows ? 2 : 3], args.b = memory[by_rows ? 3 : 2];
    args.dy = memory[4] = put(typed.dy, sizeof typed.dy), args.y = memory[5] = put(typed.y, sizeof typed.y);
    memory[6] = *(by_rows ? &args.da : &args.db) = put(typed.da, sizeof typed.da);
    if (typed.scale == 2)
        *(by_rows ? &args.scale_a : &args.scale_b) = (const float *)put(&typed.scale, sizeof typed.scale);
    CHECK(gemmepi_linear(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
              gemmepi_linear_backward(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, typed.y, memory[5], sizeof typed.y, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, typed.dr, memory[1], sizeof typed.dr, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, typed.da, memory[6], sizeof typed.da, NULL) == GEMMEPI_OK,
          "type %d: %s", (int)dtype, gemmepi_last_error());
    for (i = 0; i < 7; i++)
        gemmepi_free(here->context, memory[i]);
    gemmepi_free(here->context, (void *)args.scale_a), gemmepi_free(here->context, (void *)args.scale_b);
}

static void compare_typed(gemmepi_dtype dtype) {
    int i, j, at;
    for (i = 0; i < M; i++) {
        double sum = 0;
        for (j = 0; j < N; j++) {
            double want = 0;
            for (at = 0; at < K; at++)
                want += typed.x[i * K + at] * typed.scale * typed.r[i] * typed.w[at * N + j];
            CHECK(typed.y[i * N + j] == want, "type %d: y [%d, %d] is %g, not %g", (int)dtype, i, j,
                  typed.y[i * N + j], want);
        }
        for (at = 0; at < K; at++) {
            double made = 0, got = oracle_decode(GEMMEPI_BF16, &typed.da[i * K + at]);
            for (j = 0; j < N; j++)
                made += typed.dy[i * N + j] * typed.w[at * N + j];
            sum += made * typed.x[i * K + at] * typed.scale;
            CHECK(got == made * typed.r[i], "type %d: da [%d, %d] is %g, not %g", (int)dtype, i, at, got,
                  made * typed.r[i]);
        }
        CHECK(typed.dr[i] == sum, "type %d: d_r [%d] is %g, not %g", (int)dtype, i, typed.dr[i], sum);
    }
}

static void gradients_of_what_is_stored_in_16_and_8_bits_are_exact_where_all_is_whole(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_E4M3,
                                           GEMMEPI_E5M2};
    size_t i;
    int by_rows;
    for (i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        for (by_rows = 0; by_rows < 2; by_rows++) {
            fill_typed(dtypes[i]);
            run_typed(dtypes[i], by_rows);
            compare_typed(dtypes[i]);
        }
}

/* >>a chain */

/* dA through SILU of the layer before, where B is made, and where what is made of it is stored: of one item, or the sum over those of a batch
   that shares A. */
static void check_through_the_layer_before(int items) {
    static double p[M * K], weights[2 * K * N], made[2 * K * N], dy[2 * M * N], da[2][M * K];
    int stored, i;
    for (i = 0; i < M * K; i++)
        p[i] = sin(i);
    for (i = 0; i < 2 * K * N; i++)
        weights[i] = cos(2 * i), made[i] = weights[i] * 3;
    for (i = 0; i < 2 * M * N; i++)
        dy[i] = sin(3 * i);
    for (stored = 0; stored < 2; stored++) {
        gemmepi_linear_desc desc, before;
        gemmepi_linear_args args, args_before;
        memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args);
        memset(&before, 0, sizeof before), memset(&args_before, 0, sizeof args_before);
        desc.m = M, desc.n = N, desc.k = K, desc.a.dtype = GEMMEPI_F64, desc.flags = GEMMEPI_LINEAR_DA;
        desc.b.formula = stored ? NULL : "b * 3", desc.before = &before, args.before = &args_before;
        if (items > 1)
            desc.batch = items, desc.b.batch_stride = K * N,
            desc.y.batch_stride = desc.dy.batch_stride = M * N;
        before.m = M, before.n = K, before.k = 1, before.a.dtype = GEMMEPI_F64;
        before.activation = GEMMEPI_SILU, before.flags = GEMMEPI_LINEAR_SAVED;
        args.b = put(stored ? made : weights, sizeof made), args.dy = put(dy, sizeof dy);
        args.da = put(p, sizeof p), args_before.preact = put(p, sizeof p);
        CHECK(gemmepi_linear_backward(here->context, &desc, &args, NULL) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        fetch(da[stored], (char *)args.da, M * K);
        gemmepi_free(here->context, (void *)args.b), gemmepi_free(here->context, (void *)args.dy);
        gemmepi_free(here->context, args.da), gemmepi_free(here->context, (void *)args_before.preact);
    }
    for (i = 0; i < M * K; i++) {
        double s = sigmoid(p[i]), sum = 0, want;
        int j;
        for (j = 0; j < items * N; j++)
            sum += dy[j / N * M * N + i / K * N + j % N] * made[j / N * K * N + i % K * N + j % N];
        want = sum * s * (1 + p[i] * (1 - s));
        for (stored = 0; stored < 2; stored++)
            CHECK(fabs(da[stored][i] - want) <= 1e-12 * (1 + fabs(want)), "%d items, %d: %.17g, not %.17g",
                  items, i, da[stored][i], want);
    }
}

static void da_goes_through_the_layer_before_where_b_is_made(void) {
    check_through_the_layer_before(1);
    check_through_the_layer_before(2);
}

/* >>without d */

/* A loss by rows whose a is made is that of the same a stored: db, and with FORWARD the loss. */
static void a_loss_whose_a_is_made_has_the_gradients_of_one_that_is_stored(void) {
    enum { ROWS = 300, OUT = 9, DEPTH = 6 };
    static double x[ROWS * DEPTH], made[ROWS * DEPTH], weights[DEPTH * OUT], r[ROWS],
        got[2][ROWS + DEPTH * OUT];
    int with_forward, stored, i;
    for (i = 0; i < ROWS * DEPTH; i++)
        x[i] = sin(i), made[i] = x[i] * cos(i / DEPTH) * 2;
    for (i = 0; i < ROWS; i++)
        r[i] = cos(i) * 2;
    for (i = 0; i < DEPTH * OUT; i++)
        weights[i] = sin(3 * i);
    for (with_forward = 0; with_forward < 2; with_forward++) {
        for (stored = 0; stored < 2; stored++) {
            gemmepi_operand operands[3];
            gemmepi_linear_desc desc;
            gemmepi_linear_args args;
            double one = 1;
            void *pointers[3];
            memset(operands, 0, sizeof operands), memset(&desc, 0, sizeof desc),
                memset(&args, 0, sizeof args);
            operands[0].name = "lse", operands[0].kind = GEMMEPI_PER_ROW, operands[0].output = 1;
            operands[1].name = "dy_lse", operands[1].kind = GEMMEPI_NUMBER;
            operands[2].name = "r", operands[2].kind = GEMMEPI_PER_ROW;
            operands[0].dtype = operands[2].dtype = GEMMEPI_F64;
            desc.m = ROWS, desc.n = OUT, desc.k = DEPTH, desc.a.dtype = GEMMEPI_F64;
            desc.flags =
                GEMMEPI_LINEAR_DB | (with_forward ? GEMMEPI_LINEAR_FORWARD : GEMMEPI_LINEAR_RECOMPUTE);
            desc.a.formula = stored ? NULL : "a * r", desc.formula = "lse = row_logsumexp(v)";
            desc.operands = operands, desc.operand_count = 3, args.operands = pointers;
            pointers[0] = put(got[stored], sizeof r), pointers[1] = gemmepi_number(&one);
            pointers[2] = put(r, sizeof r);
            args.a = put(stored ? made : x, sizeof x), args.b = put(weights, sizeof weights);
            args.db = put(weights, sizeof weights);
            if (!with_forward)
                CHECK(gemmepi_linear(here->context, &desc, &args, NULL) == GEMMEPI_OK, "%s",
                      gemmepi_last_error());
            CHECK(gemmepi_linear_backward(here->context, &desc, &args, NULL) == GEMMEPI_OK, "%s",
                  gemmepi_last_error());
            fetch(got[stored], (char *)pointers[0], ROWS);
            fetch(got[stored] + ROWS, (char *)args.db, DEPTH * OUT);
            gemmepi_free(here->context, pointers[0]), gemmepi_free(here->context, pointers[2]);
            gemmepi_free(here->context, (void *)args.a), gemmepi_free(here->context, (void *)args.b);
            gemmepi_free(here->context, args.db);
        }
        for (i = 0; i < ROWS + DEPTH * OUT; i++)
            CHECK(fabs(got[0][i] - got[1][i]) <= 1e-11 * (1 + fabs(got[1][i])), "%d: %.17g, not %.17g", i,
                  got[0][i], got[1][i]);
    }
}

/* >>operands of blocks */

enum { B_M = 4, B_N = 3, B_K = 16, B_BLOCK = 8, B_BLOCKS = B_K / B_BLOCK, B_BATCH = 2 };

/* Y = (X g) W, where g has an element for each `rows` x 8 of X. All is whole. */
static struct {
    double x[B_BATCH][B_M][B_K], w[B_K][B_N], dy[B_BATCH][B_M][B_N], g[B_BATCH][B_M][B_BLOCKS];
    double y[B_BATCH][B_M][B_N], dg[B_BATCH][B_M][B_BLOCKS], dx[B_BATCH][B_M][B_K];
} blocks;

static void fill_blocks(void) {
    double *at = &blocks.x[0][0][0];
    rng random = rng_seeded(5);
    size_t i;
    for (i = 0; i < sizeof blocks / sizeof *at; i++)
        at[i] = rng_below(&random, 7) - 3;
}

static void check_row_of_blocks(int t, int i, int rows) {
    double sum;
    int j, l;
    for (j = 0; j < B_N; j++) {
        for (sum = 0, l = 0; l < B_K; l++)
            sum += blocks.x[t][i][l] * blocks.g[t][i / rows][l / B_BLOCK] * blocks.w[l][j];
        CHECK(blocks.y[t][i][j] == sum, "rows %d: y [%d, %d, %d] is %g, not %g", rows, t, i, j,
              blocks.y[t][i][j], sum);
    }
}

static void check_gradients_of_blocks(int t, int block, int rows) {
    double sum, z;
    int i, j, l, c;
    for (c = 0; c < B_BLOCKS; c++) {
        for (sum = 0, i = block * rows; i < (block + 1) * rows && i < B_M; i++)
            for (l = c * B_BLOCK; l < (c + 1) * B_BLOCK; l++) {
                for (z = 0, j = 0; j < B_N; j++)
                    z += blocks.dy[t][i][j] * blocks.w[l][j];
                sum += z * blocks.x[t][i][l];
            }
        CHECK(blocks.dg[t][block][c] == sum, "rows %d: dg [%d, %d, %d] is %g, not %g", rows, t, block, c,
              blocks.dg[t][block][c], sum);
    }
}

static void run_blocks(int rows) {
    gemmepi_operand operands[2];
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
    void *pointers[2];
    int i, block;
    fill_blocks();
    memset(operands, 0, sizeof operands), memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args);
    operands[0].name = "g", operands[0].kind = GEMMEPI_BLOCKED, operands[0].dtype = GEMMEPI_F64;
    operands[0].block_rows = rows, operands[0].block_columns = B_BLOCK;
    operands[0].batch_stride = B_M * B_BLOCKS;
    operands[1] = operands[0], operands[1].name = "d_g", operands[1].output = 1;
    desc.m = B_M, desc.n = B_N, desc.k = B_K, desc.batch = B_BATCH, desc.a.dtype = GEMMEPI_F64;
    desc.a.formula = "a * g", desc.operands = operands, desc.operand_count = 2;
    desc.a.batch_stride = desc.da.batch_stride = B_M * B_K;
    desc.y.batch_stride = desc.dy.batch_stride = B_M * B_N;
    desc.flags = GEMMEPI_LINEAR_DA;
    args.a = put(blocks.x, sizeof blocks.x), args.b = put(blocks.w, sizeof blocks.w);
    args.dy = put(blocks.dy, sizeof blocks.dy), args.y = put(blocks.y, sizeof blocks.y);
    args.da = put(blocks.dx, sizeof blocks.dx), pointers[0] = put(blocks.g, sizeof blocks.g);
    args.operands = pointers, pointers[1] = put(blocks.dg, sizeof blocks.dg);
    CHECK(gemmepi_linear(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
              gemmepi_linear_backward(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, blocks.y, args.y, sizeof blocks.y, NULL) == GEMMEPI_OK &&
              gemmepi_download(here->context, blocks.dg, pointers[1], sizeof blocks.dg, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (i = 0; i < B_BATCH * B_M; i++)
        check_row_of_blocks(i / B_M, i % B_M, rows);
    for (i = 0; i < B_BATCH; i++)
        for (block = 0; block * rows < B_M; block++)
            check_gradients_of_blocks(i, block, rows);
    gemmepi_free(here->context, (void *)args.a), gemmepi_free(here->context, (void *)args.b);
    gemmepi_free(here->context, (void *)args.dy), gemmepi_free(here->context, args.y);
    gemmepi_free(here->context, args.da), gemmepi_free(here->context, pointers[0]);
    gemmepi_free(here->context, pointers[1]);
}

static void operands_of_blocks_have_items_and_gradients(void) {
    run_blocks(1);
    run_blocks(2);
    run_blocks(3); /* the last has one row */
}

/* >>what is refused */

typedef struct refusal {
    const char *a, *b, *result;
    uint64_t flags;
    unsigned gradients; /* bits: of x, of c, of s */
    const char *says;
} refusal;

enum {
    DA = 1,
    DB = 2,
    WITH_BATCH = 4,
    WITH_I4 = 8,
    COLUMN_MAJOR = 32,
    WITH_BEFORE = 64,
    OUTPUT = 128,
    BEFORES_FORMULA = 256
};

static uint64_t flags_of(uint64_t flags) {
    return (flags & DA ? GEMMEPI_LINEAR_DA : 0) | (flags & DB ? GEMMEPI_LINEAR_DB : 0) | GEMMEPI_LINEAR_DBIAS;
}

static void refused(const refusal *r) {
    gemmepi_operand operands[7];
    gemmepi_linear_desc desc, before;
    gemmepi_plan *plan = NULL;
    gemmepi_status status;
    int count = 3;
    memset(&desc, 0, sizeof desc), memset(operands, 0, sizeof operands);
    operands[0].name = "x", operands[0].kind = GEMMEPI_PER_ROW, operands[0].dtype = GEMMEPI_F32;
    operands[1].name = "c", operands[1].kind = GEMMEPI_PER_COLUMN, operands[1].dtype = GEMMEPI_F32;
    operands[2].name = "s", operands[2].kind = GEMMEPI_SCALAR, operands[2].dtype = GEMMEPI_F32;
    if (r->gradients & 4)
        operands[count] = operands[2], operands[count].name = "d_s", operands[count++].output = 1;
    if (r->gradients & 1)
        operands[count] = operands[0], operands[count].name = "d_x", operands[count++].output = 1;
    if (r->gradients & 2)
        operands[count] = operands[1], operands[count].name = "d_c", operands[count++].output = 1;
    if (r->flags & OUTPUT)
        operands[count] = operands[0], operands[count].name = "out", operands[count++].output = 1;
    desc.m = 4, desc.n = 5, desc.k = 6, desc.operands = operands, desc.operand_count = count;
    desc.a.formula = r->a, desc.b.formula = r->b, desc.formula = r->result;
    desc.flags = flags_of(r->flags);
    desc.batch = r->flags & WITH_BATCH ? 2 : 0;
    desc.order = r->flags & COLUMN_MAJOR ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    if (r->flags & WITH_I4)
        desc.a.dtype = desc.b.dtype = GEMMEPI_I4, desc.n = 8, desc.k = 8;
    before = desc, before.a.formula = NULL, before.n = desc.k, before.k = 5;
    before.operands = NULL, before.operand_count = 0;
    before.formula = r->flags & BEFORES_FORMULA ? "d = v * v" : NULL;
    if (r->flags & WITH_BEFORE && r->flags & COLUMN_MAJOR)
        before.m = desc.k, before.n = desc.n;
    if (r->flags & WITH_BEFORE)
        desc.before = &before;
    status = gemmepi_plan_linear_backward(here->context, &desc, &plan);
    CHECK((status == GEMMEPI_INVALID_ARGUMENT || status == GEMMEPI_UNSUPPORTED) &&
              strstr(gemmepi_last_error(), r->says),
          "%d: %s\n   and not: %s", (int)status, status ? gemmepi_last_error() : "OK", r->says);
    gemmepi_plan_destroy(plan);
}

static void what_backward_does_not_do_through_a_formula_is_refused_in_words(void) {
    static const refusal refusals[] = {
        {"a", "b", NULL, DB | WITH_I4, 0, "desc.flags has LINEAR_DB, but desc.b.dtype is I4"},
        {"a", "b", NULL, DB | WITH_I4 | COLUMN_MAJOR, 0, "desc.flags has LINEAR_DB, but desc.b.dtype is I4"},
        {"a * x", NULL, NULL, DA, 2, "desc.operands[3] is d_c, but no formula of this backward reads c"},
        {"0.5 > 1 ? c : a", NULL, "d = v + 1", DA, 2, "d_c, but no formula of this backward reads c"},
        {"a * x", "b", NULL, DA | WITH_I4, 0, "desc.flags has LINEAR_DA, but desc.a.dtype is I4"},
        {"a * s", "b * s", NULL, DA | DB, 4, "desc.a.formula and desc.b.formula both read s: list s twice"},
        {"a * s", NULL, "d = v + s", DA, 4, "desc.a.formula and desc.formula both read s: list s twice"},
        {"a * x", NULL, NULL, DA | WITH_BEFORE, 0, "desc.before is given, and desc.a.formula"},
        {NULL, "b * x", NULL, DB | COLUMN_MAJOR | WITH_BEFORE, 0, "desc.before is given, and desc.b.formula"},
        {NULL, "b * x", NULL, DA | WITH_BEFORE | BEFORES_FORMULA, 0,
         "desc.before->formula is given, and desc.b.formula"},
        {"a * x", NULL, NULL, DA | OUTPUT, 0,
         "desc.operands[3] (of out) is an output, but desc.formula is NULL"},
        {"left(a) * right(a) * x", NULL, NULL, DA, 1, "desc.a.formula counts columns"},
        {"floor(a) * y", NULL, NULL, DA, 0, "desc.a.formula, column 12: y is not known here"},
        {"a * x", NULL, "d = v * x", DB, 0, "is read by two formulas"},
        {"a * d_x", NULL, NULL, DA, 1, "it reads d_x, an output"},
    };
    size_t i;
    for (i = 0; i < sizeof refusals / sizeof *refusals; i++)
        refused(&refusals[i]);
}

static void explain_names_what_makes_the_operands(void) {
    gemmepi_linear_desc desc;
    gemmepi_plan *plan = NULL;
    char text[4000];
    memset(&desc, 0, sizeof desc);
    desc.m = 4, desc.n = 5, desc.k = 6, desc.a.formula = "sin(a)",
    desc.flags = GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB;
    CHECK(gemmepi_plan_linear_backward(here->context, &desc, &plan) == GEMMEPI_OK &&
              gemmepi_plan_explain(plan, text, sizeof text) > 0,
          "%s", gemmepi_last_error());
    CHECK(strstr(text, "dA through the formula of a") && strstr(text, "op(A) = sin(a)"), "%s", text);
    gemmepi_plan_destroy(plan);
}

int main(int argc, char **argv) {
    test_device devices[2];
    int opened = test_devices_open(devices), i;
    draws = argc > 1 ? atoi(argv[1]) : 0;
    first_seed = argc > 2 ? (uint64_t)atoi(argv[2]) : first_seed;
    for (i = 0; i < opened; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(layers_of_made_operands_and_their_gradients_are_what_differences_say);
        RUN(weights_in_4_bits_have_a_forward_and_pass_gradients_on);
        RUN(gradients_of_what_is_stored_in_16_and_8_bits_are_exact_where_all_is_whole);
        RUN(operands_of_blocks_have_items_and_gradients);
        RUN(da_goes_through_the_layer_before_where_b_is_made);
        RUN(a_loss_whose_a_is_made_has_the_gradients_of_one_that_is_stored);
        RUN(what_backward_does_not_do_through_a_formula_is_refused_in_words);
        RUN(explain_names_what_makes_the_operands);
        test_device_close(here);
    }
    return test_finish() || opened == 0;
}
