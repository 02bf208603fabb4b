/* Layers with a formula: those that say what an activation says, against oracle.h, and gradients of operands of every kind in F64, against
   central differences. A device that runs no formulas is skipped. See ../products/problem.h for the devices. */
#include "call.h"

static test_device *here;

/* >>formulas that say what an activation says */

/* The name of an activation in small letters, with its parameter. */
static void write_call(const layer *l, char *to, size_t size, const char *argument) {
    char name[32];
    size_t i;
    snprintf(name, sizeof name, "%s", activation_name(layer_activation(l)));
    for (i = 0; name[i]; i++)
        name[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
    if (layer_activation(l) == GEMMEPI_NONE)
        snprintf(to, size, "%s", argument);
    else if (l->desc.has_parameter)
        snprintf(to, size, "%s(%s, %.17g)", name, argument, l->desc.activation_parameter);
    else
        snprintf(to, size, "%s(%s)", name, argument);
}

static void give_formula(layer *l, char *room, size_t size) {
    int gate_first = (l->desc.activation & GEMMEPI_GATE_FIRST) != 0;
    char call[96];
    write_call(l, call, sizeof call, !layer_is_gated(l) ? "v" : gate_first ? "left(v)" : "right(v)");
    if (layer_is_gated(l))
        snprintf(room, size, "d = %s(v) * %s", gate_first ? "right" : "left", call);
    else
        snprintf(room, size, "d = %s", call);
    l->formula = room;
    l->desc.dy.scale.batch_stride = l->desc.preact.scale.batch_stride = l->desc.y.scale.batch_stride = 0;
}

static void random_layers_are_what_their_formulas_are(void) {
    uint64_t seed;
    char text[200];
    int most = getenv("TEST_SHARE") ? 300 : 1500;
    for (seed = 1; seed <= (uint64_t)most; seed++) {
        layer l = layer_random(seed);
        give_formula(&l, text, sizeof text);
        CHECK(forward_holds(here, &l), "%s, seed %d", text, (int)seed);
        CHECK(backward_holds(here, &l), "%s, seed %d", text, (int)seed);
    }
}

static void every_activation_and_gate_is_its_formula(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_F64, GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_E4M3};
    static const gemmepi_epilogue gates[] = {0, GEMMEPI_GATED, GEMMEPI_GATED | GEMMEPI_GATE_FIRST};
    char text[200];
    int a, d, gate, way;
    for (a = 0; a < ACTIVATION_COUNT; a++)
        for (d = 0; d < 4; d++)
            for (gate = 0; gate < 3; gate++)
                for (way = 0; way < 4; way++) {
                    layer l = layer_plain(dtypes[d], 9, 10, 7, activation_codes[a] | gates[gate],
                                          ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS |
                                              (way & 1 ? GEMMEPI_LINEAR_SAVED : GEMMEPI_LINEAR_RECOMPUTE));
                    l.desc.m += way & 2;
                    l.desc.order = (gemmepi_order)(way >> 1);
                    if (l.desc.order == GEMMEPI_COLUMN_MAJOR)
                        l.desc.m++, l.desc.m += l.desc.m % 2;
                    l.bare = 1;
                    l.by_plan = way & 1;
                    layer_pad(&l, way);
                    give_formula(&l, text, sizeof text);
                    CHECK(both_hold(here, &l), "%s", text);
                    CHECK(backward_holds(here, &l), "%s", text);
                }
}

static void batches_transposed_weights_and_sums_over_items_hold(void) {
    int items, order, transposed, accumulate, way;
    for (items = 0; items < 3; items++)
        for (order = 0; order < 2; order++)
            for (transposed = 0; transposed < 4; transposed++)
                for (accumulate = 0; accumulate < 2; accumulate++)
                    for (way = 0; way < 2; way++) {
                        layer l = layer_plain(GEMMEPI_F32, 6, 8, 5, GEMMEPI_SILU,
                                              ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS |
                                                  (way ? GEMMEPI_LINEAR_SAVED : GEMMEPI_LINEAR_RECOMPUTE));
                        int data = order ? L_B : L_A;
                        l.desc.order = (gemmepi_order)order;
                        l.desc.a.transposed = transposed & 1;
                        l.desc.b.transposed = transposed >> 1;
                        if (accumulate)
                            l.desc.flags |=
                                GEMMEPI_ACCUMULATE_DA | GEMMEPI_ACCUMULATE_DB | GEMMEPI_ACCUMULATE_DBIAS;
                        layer_pad(&l, 3);
                        layer_spread(&l, 3, items > 0, 2);
                        if (items == 2) { /* G's items lie side by side */
                            layer_matrix_at(&l, data)->batch_stride = 0;
                            layer_matrix_at(&l, layer_gradient(data))->batch_stride = 0;
                        }
                        l.formula = "d = silu(v)";
                        CHECK(backward_holds(here, &l), "items %d", items);
                        CHECK(forward_holds(here, &l), "items %d", items);
                    }
}

static void empty_layers_with_a_formula_are_right(void) {
    static const int64_t sizes[][3] = {{0, 6, 5}, {4, 0, 5}, {4, 6, 0}, {0, 0, 0}};
    int s, order, way, bare;
    for (s = 0; s < 4; s++)
        for (order = 0; order < 2; order++)
            for (way = 0; way < 4; way++)
                for (bare = 1; bare < 3; bare++) {
                    layer l = layer_plain(GEMMEPI_F32, sizes[s][0], sizes[s][1], sizes[s][2], GEMMEPI_SILU,
                                          ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS |
                                              (way & 1 ? GEMMEPI_LINEAR_SAVED : GEMMEPI_LINEAR_RECOMPUTE));
                    l.desc.order = (gemmepi_order)order;
                    l.bare = bare;
                    if (way & 2)
                        l.desc.flags |= GEMMEPI_ACCUMULATE_DBIAS | GEMMEPI_ACCUMULATE_DB;
                    l.formula = "d = silu(v)";
                    CHECK(backward_holds(here, &l) && forward_holds(here, &l), "m %d n %d k %d",
                          (int)sizes[s][0], (int)sizes[s][1], (int)sizes[s][2]);
                }
}

/* >>gradients of operands, against differences. What follows is told as it lies: `lines` of `length` elements, of which halves are. A
   column-major layer on the same memory has m and n, a and b, and kinds exchanged. */

enum { LINES = 5, LENGTH = 12, DEPTH = 3, BATCH = 3, MOST_OPERANDS = 6 };

/* 'c': one for each place in a line; 'r': for each line; 's', 'f', 'n': SCALAR, FULL, NUMBER; 'C', 'F' of half the length, 'D', 'E' of a third; 'l': I64 for each
   line; 'S': one I64; 't': FULL of half the length, of two lines that repeat; 'B': BLOCKED, of 2 lines and 5 places; 'i': as 'c', read by index. Those of "crsfCFDEB" have a gradient. */
typedef struct gradient_case {
    const char *formula, *operands; /* "beta:c up:f" */
    char width;                     /* of Y: 'n', 'h', 'd', of thirds 't', 'T' */
    const char *value, *result;
} gradient_case;

static const gradient_case gradient_cases[] = {
    {"d = v * sigmoid(beta * v)", "beta:c", 'n', NULL, NULL},
    {"d = v * sigmoid(beta * v)", "beta:r", 'n', NULL, NULL},
    {"d = v * sigmoid(beta * v)", "beta:s", 'n', NULL, NULL},
    {"d = v * sigmoid(beta * v)", "beta:f", 'n', NULL, NULL},
    {"d = silu(v) * up + r * g", "up:f r:f g:c", 'n', NULL, NULL},
    {"d = left(v) * silu(right(v))", "", 'h', NULL, NULL},
    {"d = left(v) * silu(right(v) + b) * s", "b:C s:s", 'h', NULL, NULL},
    {"g = min(left(v), 0.7); d = g * sigmoid(alpha * g) * (right(v) + 1) + u", "alpha:n u:F", 'h', NULL,
     NULL},
    {"d = pair(sin(v), cos(v) * g)", "g:c", 'd', NULL, NULL},
    {"g = sigmoid(part(v, 0, 3) + b); d = g * u + (1 - g) * part(v, 2, 3)", "b:D u:E", 't', NULL, NULL},
    {"d = parts(sin(v), v * g, 0.5 * v)", "g:c", 'T', NULL, NULL},
    {"d = d_silu(v) * up", "up:f", 'n', NULL, NULL},
    {"d = cap * tanh(v / cap) * gain", "cap:n gain:r", 'n', NULL, NULL},
    {"d = uniform(seed, 1) < 0.6 ? v * beta / 0.6 : 0", "seed:S beta:c", 'n', NULL, NULL},
    {"d = stochastic(silu(v) * beta, seed)", "seed:S beta:c", 'n', NULL, NULL},
    {"x = even(v); y = odd(v); d = interleave(x * c - y * s, y * c + x * s)", "c:t s:t", 'n', NULL, NULL},
    {"d = r + gamma * v", "r:f gamma:c", 'n', NULL, NULL},
    {"d = silu(v * q) * beta + q * v * v", "q:B beta:c", 'n', NULL, NULL},
    {"d = left(v * q) * silu(right(v)) * right(q)", "q:B", 'h', NULL, NULL},
    {"h = v * a + b; d = h * h * s", "a:c b:r s:s", 'n', NULL, NULL},
    {"d = silu(v * t[label]) * u + t[column] * v * beta", "t:i label:l u:f beta:r", 'n', NULL, NULL},
    {"d = column == label ? v * v : v * beta", "label:l beta:r", 'n', NULL, NULL},
    {"out = x * sigmoid(beta * x)", "beta:c", 'n', "x", "out"},
    {"d = exp(v * beta)", "beta:c", 'n', NULL,
     NULL}, /* whose gradient has Y in it, which backward does not read */
    {"bias2 = v * product + bias; dbias = bias2 * preact; d = dbias * bias2", "product:c bias:r preact:f",
     'n', NULL, NULL},
    {"d = exp(v * depth / 8) * s // a comment ends it", "s:s", 'n', NULL, NULL},
    {"d = v * a; /* one that nothing reads */", "a:c b:c", 'n', NULL, NULL},
};

/* A tensor with its gradient, in double, items `stride` apart; stride 0: one for the batch. */
typedef struct piece {
    char name[16], gradient_name[20], kind;
    int lines, length, ld, stride;
    double *at, *gradient;
    int gradient_ld, gradient_stride, accumulates;
    int64_t whole[BATCH * 2 * LINES]; /* of kinds that are whole numbers */
    double number;
} piece;

typedef struct world {
    const gradient_case *of;
    int order, items, saved, bias, accumulate, batch;
    piece x, w, b, y, p, dy, operands[MOST_OPERANDS];
    int count;
    gemmepi_operand list[2 * MOST_OPERANDS];
    void *pointers[2 * MOST_OPERANDS];
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
    rng random;
} world;

static world z;

static int elements_of(const piece *t) {
    return (BATCH - 1) * t->stride + (t->lines - 1) * t->ld + t->length;
}

/* items: how many of the batch's it has */
static void make_piece(piece *t, const char *name, char kind, int lines, int length, int has_items) {
    int i;
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->gradient_name, sizeof t->gradient_name, "d_%s", name);
    t->kind = kind;
    t->lines = lines;
    t->length = length;
    t->ld = lines > 1 ? length + 1 : length;
    t->stride = has_items ? t->ld * lines + 2 : 0;
    t->gradient_ld = t->ld;
    t->gradient_stride = t->stride;
    t->at = (double *)malloc(sizeof(double) * (size_t)(elements_of(t) + 1));
    for (i = 0; i < elements_of(t); i++)
        t->at[i] = (rng_below(&z.random, 257) - 128) / 128.0 + 0.003;
    t->gradient = NULL;
}

static int elements_of_gradient(const piece *t) {
    return (BATCH - 1) * (t->gradient_stride > t->stride ? t->gradient_stride : t->stride) +
           t->lines * t->ld + 1;
}

/* With a stride of its own, if it has one: of each item, though all items share what it is the gradient of. */
static void make_gradient(piece *t, int stride) {
    int i, elements;
    t->gradient_stride = stride;
    elements = elements_of_gradient(t);
    t->gradient = (double *)malloc(sizeof(double) * (size_t)elements);
    for (i = 0; i < elements; i++)
        t->gradient[i] = t->accumulates ? 0.25 : NAN;
}

static gemmepi_operand_kind kind_here(char kind) {
    int across = z.order == GEMMEPI_COLUMN_MAJOR;
    switch (kind) {
    case 'n':
        return GEMMEPI_NUMBER;
    case 's':
    case 'S':
        return GEMMEPI_SCALAR;
    case 'c':
    case 'i':
    case 'C':
    case 'D':
        return across ? GEMMEPI_PER_ROW : GEMMEPI_PER_COLUMN;
    case 'B':
        return GEMMEPI_BLOCKED;
    case 'r':
    case 'l':
        return across ? GEMMEPI_PER_COLUMN : GEMMEPI_PER_ROW;
    default:
        return GEMMEPI_FULL;
    }
}

static void list_operand(piece *t) {
    gemmepi_operand *o = &z.list[z.desc.operand_count];
    int i;
    memset(o, 0, sizeof *o);
    o->name = t->name;
    o->kind = kind_here(t->kind);
    o->width = strchr("CFDEt", t->kind) ? GEMMEPI_WIDTH_HALF : GEMMEPI_WIDTH_N;
    o->dtype = strchr("lS", t->kind) ? GEMMEPI_I64 : GEMMEPI_DTYPE_DEFAULT;
    o->ld = o->kind >= GEMMEPI_FULL ? t->ld : 0;
    if (t->kind == 'B') {
        o->block_rows = z.order == GEMMEPI_ROW_MAJOR ? 2 : 5;
        o->block_columns = z.order == GEMMEPI_ROW_MAJOR ? 5 : 2;
    }
    o->batch_stride = z.batch > 1 ? t->stride : 0;
    if (t->kind == 't' && z.order == GEMMEPI_ROW_MAJOR)
        o->row_period = 2;
    else if (t->kind == 't')
        o->column_period = 2;
    for (i = 0; i < BATCH * 2 * LINES; i++)
        t->whole[i] = rng_below(&z.random, LINES);
    t->number = 1.5;
    z.pointers[z.desc.operand_count++] = t->kind == 'n'          ? (void *)&t->number
                                         : strchr("lS", t->kind) ? (void *)t->whole
                                                                 : (void *)t->at;
}

/* Where all items share an operand along lines or a scalar, its gradient is the sum; of other kinds it may be that, or has items. */
static void list_gradient(piece *t) {
    gemmepi_operand *o = &z.list[z.desc.operand_count];
    int sums = z.batch > 1 && !t->stride && (z.saved || strchr("csCD", t->kind));
    if (!strchr("crsfCFDEB", t->kind))
        return;
    t->accumulates = z.accumulate && (sums || !strchr("fFE", t->kind));
    make_gradient(t, z.batch == 1 || sums ? 0 : t->lines * t->ld + 2);
    *o = z.list[z.desc.operand_count - 1];
    o->name = t->gradient_name;
    o->output = 1;
    o->accumulate = t->accumulates;
    o->batch_stride = t->gradient_stride;
    z.pointers[z.desc.operand_count++] = t->gradient;
}

static void make_operands(void) {
    const char *at = z.of->operands;
    char name[16], kind;
    int used, halved;
    while (sscanf(at, " %15[a-z0-9]:%c%n", name, &kind, &used) == 2) {
        piece *t = &z.operands[z.count++];
        int has_items = z.batch > 1 && z.items && !strchr("sSn", kind);
        halved = strchr("CFt", kind) ? LENGTH / 2 : strchr("DE", kind) ? LENGTH / 3 : LENGTH;
        make_piece(t, name, kind,
                   strchr("fFE", kind) ? LINES
                   : kind == 't'       ? 2
                   : kind == 'B'       ? (LINES + 1) / 2
                                       : 1,
                   strchr("sSn", kind)  ? 1
                   : strchr("rl", kind) ? LINES
                   : kind == 'B'        ? (LENGTH + 4) / 5
                                        : halved,
                   has_items);
        list_operand(t);
        list_gradient(t);
        at += used;
    }
}

static gemmepi_matrix matrix_of(const piece *t, int ld, int stride) {
    gemmepi_matrix matrix;
    (void)t;
    memset(&matrix, 0, sizeof matrix);
    matrix.dtype = GEMMEPI_F64;
    matrix.ld = ld;
    matrix.batch_stride = z.batch > 1 ? stride : 0;
    return matrix;
}

static void make_layer(void) {
    gemmepi_linear_desc *d = &z.desc;
    int across = z.order == GEMMEPI_COLUMN_MAJOR;
    gemmepi_matrix x = matrix_of(&z.x, z.x.ld, z.x.stride), w = matrix_of(&z.w, z.w.ld, z.w.stride);
    d->alignment = sizeof(double); /* where a compiler puts `whole` */
    d->m = across ? LENGTH : LINES;
    d->n = across ? LINES : LENGTH;
    d->k = DEPTH;
    d->batch = z.batch;
    d->order = (gemmepi_order)z.order;
    d->a = d->da = across ? w : x;
    d->b = d->db = across ? x : w;
    d->y = matrix_of(&z.y, z.y.ld, z.y.stride);
    d->dy = matrix_of(&z.dy, z.dy.ld, z.dy.stride);
    d->preact = matrix_of(&z.p, z.p.ld, z.p.stride);
    d->bias.batch_stride = d->dbias.batch_stride = z.batch > 1 ? z.b.stride : 0;
    d->flags = ALL_GRADIENTS | (z.bias ? GEMMEPI_LINEAR_BIAS : 0) |
               (z.saved ? GEMMEPI_LINEAR_SAVED : GEMMEPI_LINEAR_RECOMPUTE);
    if (z.accumulate)
        d->flags |= GEMMEPI_ACCUMULATE_DA | GEMMEPI_ACCUMULATE_DB | GEMMEPI_ACCUMULATE_DBIAS;
    d->formula = z.of->formula;
    d->formula_value = z.of->value;
    d->formula_result = z.of->result;
    d->operands = z.list;
    z.args.a = across ? z.w.at : z.x.at;
    z.args.b = across ? z.x.at : z.w.at;
    z.args.da = across ? z.w.gradient : z.x.gradient;
    z.args.db = across ? z.x.gradient : z.w.gradient;
    z.args.bias = z.bias ? z.b.at : NULL;
    z.args.dbias = z.b.gradient;
    z.args.y = z.y.at;
    z.args.dy = z.dy.at;
    z.args.preact = z.saved ? z.p.at : NULL;
    z.args.operands = z.desc.operand_count ? z.pointers : NULL;
}

/* way, bits: 1 saved, else recomputed; 2 with a bias; 4 accumulating */
static void make_world(const gradient_case *of, int order, int batch, int items, int way) {
    int columns = of->width == 'h'   ? LENGTH / 2
                  : of->width == 'd' ? 2 * LENGTH
                  : of->width == 't' ? LENGTH / 3
                  : of->width == 'T' ? 3 * LENGTH
                                     : LENGTH;
    memset(&z, 0, sizeof z);
    z.random = rng_seeded((uint64_t)(of - gradient_cases) * 64 + (uint64_t)(order + batch + items));
    z.of = of, z.order = order, z.batch = batch, z.items = items;
    z.saved = way & 1, z.bias = way >> 1 & 1, z.accumulate = way >> 2;
    make_piece(&z.x, "x", 'f', LINES, DEPTH, batch > 1);
    make_piece(&z.w, "w", 'f', DEPTH, LENGTH, batch > 1 && items);
    make_piece(&z.b, "b", 'c', 1, LENGTH, batch > 1 && items);
    make_piece(&z.y, "y", 'f', LINES, columns, batch > 1);
    make_piece(&z.dy, "dy", 'f', LINES, columns, batch > 1);
    make_piece(&z.p, "p", 'f', LINES, LENGTH, batch > 1);
    z.x.accumulates = z.w.accumulates = z.b.accumulates = z.accumulate;
    make_gradient(&z.x, z.x.stride);
    make_gradient(&z.w, z.w.stride);
    make_gradient(&z.b, z.b.stride);
    make_operands();
    make_layer();
}

static void free_piece(piece *t) {
    free(t->at);
    free(t->gradient);
}

static void free_world(void) {
    int i;
    piece *const all[] = {&z.x, &z.w, &z.b, &z.y, &z.dy, &z.p};
    for (i = 0; i < 6; i++)
        free_piece(all[i]);
    for (i = 0; i < z.count; i++)
        free_piece(&z.operands[i]);
}

/* L, the sum of Y's elements times dY's. */
static double loss(const gemmepi_plan *forward) {
    long double sum = 0;
    int item, i, j;
    CHECK(gemmepi_run_linear(forward, &z.args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (item = 0; item < z.batch; item++)
        for (i = 0; i < z.y.lines; i++)
            for (j = 0; j < z.y.length; j++)
                sum += (long double)z.y.at[item * z.y.stride + i * z.y.ld + j] *
                       z.dy.at[item * z.dy.stride + i * z.dy.ld + j];
    return (double)sum;
}

/* Every element of a gradient: of what all items share the sum of what the items have. */
static int piece_holds(const gemmepi_plan *forward, piece *t) {
    int item, i, j, each, good = 1, own = t->stride ? z.batch : 1;
    const double h = 1e-5;
    for (item = 0; item < own; item++)
        for (i = 0; i < t->lines; i++)
            for (j = 0; j < t->length; j++) {
                double *x = &t->at[item * t->stride + i * t->ld + j], kept = *x, above, got = 0, want;
                *x = kept + h;
                above = loss(forward);
                *x = kept - h;
                want = (above - loss(forward)) / (2 * h);
                *x = kept;
                for (each = 0; each < (own == 1 && t->gradient_stride ? z.batch : 1); each++)
                    got += t->gradient[(item + each) * t->gradient_stride + i * t->gradient_ld + j];
                if (t->accumulates)
                    want += 0.25 * each;
                if (fabs(got - want) <= 2e-6 * (1 + fabs(want)))
                    continue;
                good = 0;
                CHECK(0, "%s, %s at item %d (%d, %d): %.9g, not %.9g", z.of->formula, t->gradient_name, item,
                      i, j, got, want);
            }
    return good;
}

/* Forward, backward, and each gradient against differences of forward. */
static void check_gradients(const gradient_case *of, int order, int batch, int items, int way) {
    gemmepi_plan *forward = NULL, *backward = NULL;
    int i, good;
    make_world(of, order, batch, items, way);
    good = gemmepi_plan_linear(here->context, &z.desc, &forward) == GEMMEPI_OK &&
           gemmepi_plan_linear_backward(here->context, &z.desc, &backward) == GEMMEPI_OK &&
           gemmepi_run_linear(forward, &z.args, NULL) == GEMMEPI_OK &&
           gemmepi_run_linear_backward(backward, &z.args, NULL) == GEMMEPI_OK;
    CHECK(good, "%s: %s", of->formula, gemmepi_last_error());
    good = good && piece_holds(forward, &z.x) && piece_holds(forward, &z.w);
    if (good && z.bias)
        good = piece_holds(forward, &z.b);
    for (i = 0; i < z.count && good; i++)
        if (z.operands[i].gradient)
            good = piece_holds(forward, &z.operands[i]);
    CHECK(good, "%s: order %d, batch %d, items %d, way %d", of->formula, order, batch, items, way);
    gemmepi_plan_destroy(forward);
    gemmepi_plan_destroy(backward);
    free_world();
}

static void gradients_of_operands_are_what_differences_say(void) {
    size_t i;
    int order, form, way;
    if (!here->is_host)
        SKIP("differences are of the host, in F64");
    for (i = 0; i < sizeof gradient_cases / sizeof gradient_cases[0]; i++)
        for (order = 0; order < 2; order++)
            for (form = 0; form < 3; form++)
                for (way = 0; way < 8; way++)
                    check_gradients(&gradient_cases[i], order, form ? BATCH : 1, form == 2, way);
}

/* >>the same on a GPU, against the host */

enum { MOST_BLOCKS = 40 };

/* Memory of the host, and where it is on the device. */
static struct block {
    void *host, *device;
    size_t bytes;
} blocks[MOST_BLOCKS];
static int block_count;

static void *on_device(void *memory, size_t bytes) {
    struct block *block = &blocks[block_count];
    if (memory == NULL)
        return NULL;
    block->host = memory;
    block->bytes = bytes;
    CHECK(gemmepi_alloc(here->context, bytes, &block->device) == GEMMEPI_OK &&
              gemmepi_upload(here->context, block->device, memory, bytes, here->stream) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    block_count++;
    return block->device;
}

static void take_from_device(void) {
    while (block_count > 0) {
        struct block *block = &blocks[--block_count];
        CHECK(gemmepi_download(here->context, block->host, block->device, block->bytes, here->stream) ==
                      GEMMEPI_OK &&
                  gemmepi_free(here->context, block->device) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
    }
}

/* The gradient of rate is the sum of dy up, which divides no columns; what is as wide as a part is so all the same. */
static void a_gradient_without_parts_has_operands_as_wide_as_one(void) {
    static float a[2] = {1, 2}, b[9], up[6] = {1, 2, 3, 4, 5, 6}, rate = 2;
    static float dy[6] = {1, 10, 100, 1000, 10000, 100000}, got;
    static const char *const names[] = {"up", "rate", "d_rate", "last"};
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
    gemmepi_operand operands[4];
    void *pointers[4];
    int i;
    memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args), memset(operands, 0, sizeof operands);
    for (i = 0; i < 4; i++) {
        operands[i].name = names[i], operands[i].output = i > 1;
        operands[i].kind = i % 3 ? GEMMEPI_SCALAR : GEMMEPI_FULL;
        operands[i].width = i % 3 ? GEMMEPI_WIDTH_N : GEMMEPI_WIDTH_HALF, operands[i].ld = i % 3 ? 0 : 3;
    }
    desc.m = 2, desc.n = 9, desc.k = 1;
    desc.formula = "d = part(v, 0, 3) + rate * up; last = part(v, 2, 3)";
    desc.operands = operands, desc.operand_count = 4;
    pointers[0] = on_device(up, sizeof up), pointers[1] = on_device(&rate, sizeof rate);
    pointers[2] = on_device(&got, sizeof got), pointers[3] = NULL;
    args.a = on_device(a, sizeof a), args.b = on_device(b, sizeof b), args.dy = on_device(dy, sizeof dy);
    args.operands = pointers;
    CHECK(gemmepi_linear_backward(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    take_from_device();
    CHECK(got == 654321, "d_rate is %g", got);
}

static int are_the_same(const float *x, const float *y, int count) {
    while (count > 0 && x[count - 1] >= y[count - 1] && x[count - 1] <= y[count - 1])
        count--;
    return count == 0;
}

/* x [2, 1], w [1, 16], q of 1 x 8 or 2 x 8: all that comes out is whole. */
static void gradients_of_blocks_are_sums_of_groups(void) {
    static const char *const names[] = {"q", "d_q", "ss", "dy_ss"};
    int way, i, j;
    for (way = 0; way < 4; way++) {
        int order = way & 1, rows = 1 + (way >> 1);
        float x[2] = {1, -2}, w[16], q[4] = {3, 1, -2, 5}, dy[32], dy_ss[4] = {1, 2, 0, -3}, dx[2], dw[16],
              d_q[4], ss[4], y[32];
        float got_dx[2] = {0}, got_dw[16] = {0}, got_dq[4] = {0}, got_ss[4] = {0};
        float *tensors[4];
        gemmepi_linear_desc desc;
        gemmepi_linear_args args;
        gemmepi_operand operands[4];
        void *pointers[4];
        memset(&desc, 0, sizeof desc), memset(&args, 0, sizeof args), memset(operands, 0, sizeof operands);
        for (j = 0; j < 16; j++)
            w[j] = (float)(j % 5 - 2);
        for (i = 0; i < 32; i++)
            dy[i] = (float)(i % 7 - 3);
        for (i = 0; i < 2; i++)
            for (j = 0; j < 16; j++) {
                int at = i / rows * 2 + j / 8;
                float v = x[i] * w[j], g = dy[i * 16 + j] * q[at] + 2 * v * dy_ss[i * 2 + j / 8];
                got_dx[i] += g * w[j], got_dw[j] += g * x[i];
                got_dq[at] += dy[i * 16 + j] * v, got_ss[i * 2 + j / 8] += v * v;
            }
        for (i = 0; i < 4; i++) {
            operands[i].name = names[i], operands[i].kind = GEMMEPI_BLOCKED,
            operands[i].output = i == 1 || i == 2;
            operands[i].block_rows = order ? 8 : 1, operands[i].block_columns = order ? 1 : 8;
            if (i < 2)
                *(order ? &operands[i].block_columns : &operands[i].block_rows) = rows;
        }
        tensors[0] = q, tensors[1] = d_q, tensors[2] = ss, tensors[3] = dy_ss;
        memset(ss, 0xff, sizeof ss), memset(d_q, 0xff, sizeof d_q), memset(dx, 0xff, sizeof dx),
            memset(dw, 0xff, sizeof dw);
        for (i = 0; i < 4; i++)
            pointers[i] = on_device(tensors[i], sizeof ss);
        desc.m = order ? 16 : 2, desc.n = order ? 2 : 16, desc.k = 1, desc.order = (gemmepi_order)order;
        desc.formula = order ? "d = v * q; ss = column_sum(v * v, 8)" : "d = v * q; ss = row_sum(v * v, 8)";
        desc.flags = GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_RECOMPUTE;
        desc.operands = operands, desc.operand_count = 4;
        args.a = on_device(order ? w : x, order ? sizeof w : sizeof x);
        args.b = on_device(order ? x : w, order ? sizeof x : sizeof w);
        args.da = on_device(order ? dw : dx, order ? sizeof dw : sizeof dx);
        args.db = on_device(order ? dx : dw, order ? sizeof dx : sizeof dw);
        args.y = on_device(y, sizeof y), args.dy = on_device(dy, sizeof dy);
        args.operands = pointers;
        CHECK(gemmepi_linear(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        CHECK(gemmepi_linear_backward(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        take_from_device();
        CHECK(are_the_same(ss, got_ss, 4) && are_the_same(d_q, got_dq, (size_t)(4 / rows)),
              "order %d, rows %d: ss %g %g, d_q %g %g", order, rows, ss[0], ss[3], d_q[0], d_q[1]);
        CHECK(are_the_same(dx, got_dx, 2) && are_the_same(dw, got_dw, 16), "order %d: dx %g, dw %g", order,
              dx[1], dw[15]);
        operands[1].block_rows = operands[1].block_columns = 8; /* and not those of q */
        CHECK(gemmepi_linear_backward(here->context, &desc, &args, here->stream) ==
                      GEMMEPI_INVALID_ARGUMENT &&
                  strstr(gemmepi_last_error(),
                         "desc.operands[1].block_rows and block_columns (of d_q) are 8 and 8"),
              "%s", gemmepi_last_error());
    }
}

static double *piece_on_device(piece *t) {
    return (double *)on_device(t->at, sizeof(double) * (size_t)(elements_of(t) + 1));
}

static double *gradient_on_device(piece *t) {
    return (double *)on_device(t->gradient, sizeof(double) * (size_t)elements_of_gradient(t));
}

/* Numbers stay where they are. */
static void operands_on_device(void) {
    int i, j;
    for (i = j = 0; i < z.count; i++, j++) {
        piece *t = &z.operands[i];
        if (strchr("lS", t->kind))
            z.pointers[j] = on_device(t->whole, sizeof t->whole);
        else if (t->kind != 'n')
            z.pointers[j] = piece_on_device(t);
        if (t->gradient)
            z.pointers[++j] = gradient_on_device(t);
    }
}

static void world_on_device(void) {
    int across = z.order == GEMMEPI_COLUMN_MAJOR;
    double *x = piece_on_device(&z.x), *w = piece_on_device(&z.w);
    double *dx = gradient_on_device(&z.x), *dw = gradient_on_device(&z.w);
    z.args.a = across ? w : x;
    z.args.b = across ? x : w;
    z.args.da = across ? dw : dx;
    z.args.db = across ? dx : dw;
    z.args.bias = z.bias ? piece_on_device(&z.b) : NULL;
    z.args.dbias = gradient_on_device(&z.b);
    z.args.y = piece_on_device(&z.y);
    z.args.dy = piece_on_device(&z.dy);
    z.args.preact = z.saved ? piece_on_device(&z.p) : NULL;
    operands_on_device();
}

/* All gradients, one after another. */
static int list_gradients(double *to) {
    piece *all[3 + MOST_OPERANDS] = {&z.x, &z.w, &z.b};
    int i, count = 0;
    for (i = 0; i < z.count; i++)
        all[3 + i] = &z.operands[i];
    for (i = 0; i < 3 + z.count; i++)
        if (all[i]->gradient) {
            memcpy(to + count, all[i]->gradient, sizeof(double) * (size_t)elements_of_gradient(all[i]));
            count += elements_of_gradient(all[i]);
        }
    return count;
}

static void run_world(gemmepi_context *context, gemmepi_stream stream) {
    CHECK(gemmepi_linear(context, &z.desc, &z.args, stream) == GEMMEPI_OK, "%s: %s", z.of->formula,
          gemmepi_last_error());
    CHECK(gemmepi_linear_backward(context, &z.desc, &z.args, stream) == GEMMEPI_OK, "%s: %s", z.of->formula,
          gemmepi_last_error());
}

static void compare_with_host(gemmepi_context *host, const gradient_case *of, int order, int batch, int items,
                              int way) {
    static double want[8192], got[8192];
    int i, count;
    make_world(of, order, batch, items, way);
    run_world(host, NULL);
    count = list_gradients(want);
    free_world();
    make_world(of, order, batch, items, way);
    world_on_device();
    run_world(here->context, here->stream);
    take_from_device();
    CHECK(list_gradients(got) == count, "%d", count);
    for (i = 0; i < count; i++)
        CHECK(got[i] == want[i] || (got[i] != got[i] && want[i] != want[i]) ||
                  fabs(got[i] - want[i]) <= 1e-11 * (1 + fabs(want[i])),
              "%s, order %d, batch %d, items %d, way %d: number %d is %.17g, not %.17g", of->formula, order,
              batch, items, way, i, got[i], want[i]);
    free_world();
}

static void gradients_of_operands_on_a_gpu_are_the_hosts(void) {
    gemmepi_config config = {0};
    gemmepi_context *host;
    int i, order, form;
    if (here->is_host)
        SKIP("this is the host");
    config.device = GEMMEPI_DEVICE_HOST;
    if (gemmepi_create(&config, &host) != GEMMEPI_OK)
        SKIP("the host does not open");
    for (i = 0; i < (int)(sizeof gradient_cases / sizeof gradient_cases[0]); i++)
        for (order = 0; order < 2; order++)
            for (form = 0; form < 3; form++) {
                int key[2] = {i, order};
                if (!test_takes(test_key(key, 2)))
                    continue;
                compare_with_host(host, &gradient_cases[i], order, form ? BATCH : 1, form == 2,
                                  2 + form % 2 * 3);
                compare_with_host(host, &gradient_cases[i], order, form ? BATCH : 1, form == 2,
                                  5 - form % 2 * 3);
            }
    gemmepi_destroy(host);
}

/* >>16 bits: the same values, which both types hold, in F64 */

enum { ROWS = 9, COLUMNS = 12, INNER = 7, CELLS = ROWS * COLUMNS };

typedef struct typed_layer {
    double memory[16][CELLS];
    double y[CELLS], d_up[CELLS], d_beta[COLUMNS], d_rate, db[CELLS]; /* what comes out */
} typed_layer;

/* seed below 0: twice those of the other sign */
static void store_values(typed_layer *t, int place, gemmepi_dtype dtype, int count, int seed) {
    size_t size = gemmepi_dtype_size(dtype);
    int i;
    for (i = 0; i < count; i++)
        oracle_encode(dtype, (unsigned char *)t->memory[place] + (size_t)i * size,
                      (seed < 0 ? 2 : 1) * ((i * 7 + abs(seed) * 5) % 17 - 8) / 8.0);
}

static void load_values(const typed_layer *t, int place, gemmepi_dtype dtype, int count, double *to) {
    size_t size = gemmepi_dtype_size(dtype);
    int i;
    for (i = 0; i < count; i++)
        to[i] = oracle_decode(dtype, (const unsigned char *)t->memory[place] + (size_t)i * size);
}

/* What up is: as all else, twice that, or in fp8 with the scale 2. */
enum { PLAIN, DOUBLED, SCALED };

/* sums: of bias, beta and its gradient */
static void run_typed(typed_layer *t, gemmepi_dtype dtype, gemmepi_dtype sums, uint64_t way, int up) {
    gemmepi_operand o[6];
    void *pointers[6];
    float two = 2;
    const float *scales[6] = {NULL, NULL, NULL, NULL, NULL, NULL};
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
    int i;
    memset(t, 0, sizeof *t);
    memset(o, 0, sizeof o);
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    o[0].name = "up", o[1].name = "d_up", o[0].kind = o[1].kind = GEMMEPI_FULL;
    o[2].name = "beta", o[3].name = "d_beta", o[2].kind = o[3].kind = GEMMEPI_PER_COLUMN;
    o[4].name = "rate", o[5].name = "d_rate", o[4].kind = o[5].kind = GEMMEPI_SCALAR;
    o[1].output = o[3].output = o[5].output = 1;
    o[2].dtype = o[3].dtype = sums;
    if (up == SCALED)
        o[0].dtype = GEMMEPI_E4M3, o[0].scale.mode = GEMMEPI_SCALE_TENSOR, scales[0] = &two;
    desc.m = ROWS, desc.n = COLUMNS, desc.k = INNER;
    desc.a.dtype = dtype;
    desc.preact.dtype = dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    desc.bias.dtype = sums;
    desc.flags = GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_DB | way;
    desc.formula = "d = silu(v) * up + tanh(beta * v) * rate";
    desc.operands = o, desc.operand_count = 6;
    store_values(t, 0, dtype, ROWS * INNER, 1), store_values(t, 1, dtype, INNER * COLUMNS, 2);
    store_values(t, 2, sums, COLUMNS, 3), store_values(t, 3, dtype, CELLS, 4);
    store_values(t, 4, up == SCALED ? GEMMEPI_E4M3 : dtype, CELLS, up == DOUBLED ? -5 : 5);
    store_values(t, 6, sums, COLUMNS, 6), store_values(t, 8, dtype, 1, 7);
    for (i = 0; i < 6; i++)
        pointers[i] = t->memory[4 + i];
    args.a = t->memory[0], args.b = t->memory[1], args.bias = t->memory[2], args.dy = t->memory[3];
    args.y = t->memory[10], args.preact = t->memory[11], args.db = t->memory[12];
    args.operands = pointers;
    args.operand_scales = up == SCALED ? scales : NULL;
    if (!(way & GEMMEPI_LINEAR_SAVED))
        args.preact = NULL;
    CHECK(gemmepi_linear(here->context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_linear_backward(here->context, &desc, &args, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    load_values(t, 10, dtype, CELLS, t->y), load_values(t, 12, dtype, INNER * COLUMNS, t->db);
    load_values(t, 5, up == SCALED ? GEMMEPI_BF16 : dtype, CELLS, t->d_up);
    load_values(t, 7, sums, COLUMNS, t->d_beta);
    load_values(t, 9, dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32, 1, &t->d_rate);
}

static void compare(const double *got, const double *want, int count, double by, const char *what) {
    int i;
    for (i = 0; i < count; i++)
        CHECK(fabs(got[i] - want[i]) <= by * (0.25 + fabs(want[i])), "%s[%d] is %.9g, not %.9g", what, i,
              got[i], want[i]);
}

static void sixteen_bits_are_near_what_f64_gives(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F32};
    static const uint64_t ways[] = {GEMMEPI_LINEAR_SAVED, GEMMEPI_LINEAR_RECOMPUTE};
    static typed_layer exact, near;
    int d, sums, way;
    double u;
    if (!here->is_host)
        SKIP("the memory is the host's");
    for (d = 0; d < 3; d++)
        for (sums = 0; sums < 2; sums++)
            for (way = 0; way < 2; way++) {
                u = oracle_roundoff(dtypes[d]);
                run_typed(&exact, GEMMEPI_F64, GEMMEPI_F64, ways[way], PLAIN);
                run_typed(&near, dtypes[d], sums ? GEMMEPI_F32 : dtypes[d], ways[way], PLAIN);
                compare(near.y, exact.y, CELLS, 2 * u, "y");
                compare(near.d_up, exact.d_up, CELLS, 2 * u, "d_up");
                compare(near.d_beta, exact.d_beta, COLUMNS, sums ? 1e-5 : 2 * u, "d_beta");
                compare(&near.d_rate, &exact.d_rate, 1, 1e-5, "d_rate");
                compare(near.db, exact.db, INNER * COLUMNS, 16 * u, "db"); /* of a G that is rounded */
                run_typed(&exact, dtypes[d], GEMMEPI_F32, ways[way], DOUBLED);
                run_typed(&near, dtypes[d], GEMMEPI_F32, ways[way], SCALED);
                CHECK(memcmp(near.y, exact.y, sizeof near.y) == 0 &&
                          memcmp(near.db, exact.db, sizeof near.db) == 0 &&
                          memcmp(near.d_beta, exact.d_beta, sizeof near.d_beta) == 0,
                      "an operand in fp8 times its scale");
                compare(near.d_up, exact.d_up, CELLS, ldexp(1, -7), "d_up of an operand in fp8");
            }
}

/* >>all */

static int runs_formulas(void) {
    layer l = layer_plain(GEMMEPI_F32, 1, 1, 1, GEMMEPI_NONE, 0);
    gemmepi_plan *plan = NULL;
    l.formula = "d = v";
    if (layer_plan(&l, here, 0, &plan) == GEMMEPI_UNSUPPORTED)
        return 0;
    gemmepi_plan_destroy(plan);
    return 1;
}

static void run_all(void) {
    RUN(gradients_of_operands_are_what_differences_say);
    RUN(gradients_of_operands_on_a_gpu_are_the_hosts);
    RUN(a_gradient_without_parts_has_operands_as_wide_as_one);
    RUN(gradients_of_blocks_are_sums_of_groups);
    RUN(every_activation_and_gate_is_its_formula);
    RUN(random_layers_are_what_their_formulas_are);
    RUN(sixteen_bits_are_near_what_f64_gives);
    RUN(batches_transposed_weights_and_sums_over_items_hold);
    RUN(empty_layers_with_a_formula_are_right);
}

int main(void) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        if (runs_formulas())
            run_all();
        else
            printf("skip it runs no formulas\n");
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
