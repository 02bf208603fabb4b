/* A formula on the host: in double, for a run of units at a time, node by node. tests/formula_bounds.h has how far off the accumulator's type may
   be. */
#ifndef GEMMEPI_FORMULA_EVALUATE_H
#define GEMMEPI_FORMULA_EVALUATE_H

#include "../numbers/convert.h"
#include "formula.h"

#ifndef GEMMEPI_NO_HOST

#define GPI__UNITS 32 /* units at most */

/* A member of a node in each unit: whole numbers of a node that is OF_WHOLE. */
typedef union gpi__cells {
    double numbers[GPI__UNITS];
    int64_t whole[GPI__UNITS];
} gpi__cells;

/* What units of one row read whose columns are equally far apart. Values are formula->parts of each node (of one that has a single member only
   the first): before they are evaluated those of VALUE and OPERAND are there, afterwards all, and those of an output's node are what is
   rounded once when stored, or goes into the reduction. */
typedef struct gpi__run {
    const gpi__formula *formula;
    int count;
    int has_constants; /* what does not change along columns is there, of a run that was as long */
    gpi__cells *values;
    int64_t indices[GPI__INDICES]; /* but for the column */
    int64_t columns[GPI__MOST_PARTS],
        step;     /* of the first unit, of what is WIDE each member's; and to the next */
    int scales_d; /* D has a scale, by which it is multiplied as it is stored */
    double scale_d;
    double (*look_up)(const void *tables, int operand, int64_t index); /* 0 where there is no such element */
    const void *tables;
} gpi__run;

/* >>random numbers: Philox4x32-10, as J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011) */

static void gpi__philox(uint32_t counter[4], uint32_t key0, uint32_t key1) {
    int round;
    for (round = 0; round < 10; round++) {
        uint64_t first = (uint64_t)0xd2511f53u * counter[0], second = (uint64_t)0xcd9e8d57u * counter[2];
        counter[0] = (uint32_t)(second >> 32) ^ counter[1] ^ key0;
        counter[1] = (uint32_t)second;
        counter[2] = (uint32_t)(first >> 32) ^ counter[3] ^ key1;
        counter[3] = (uint32_t)first;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
}

static double gpi__uniform(int64_t seed, uint32_t i, int64_t column, int64_t row, int64_t item) {
    uint32_t counter[4];
    counter[0] = (uint32_t)(column / 4);
    counter[1] = (uint32_t)row;
    counter[2] = (uint32_t)item;
    counter[3] = i;
    gpi__philox(counter, (uint32_t)(uint64_t)seed, (uint32_t)((uint64_t)seed >> 32));
    return (counter[column % 4] >> 8) * (1.0 / 16777216);
}

/* >>operations */

static double gpi__min_of(double x, double y) {
    return x != x || x < y ? x : y;
}

static double gpi__max_of(double x, double y) {
    return x != x || x > y ? x : y;
}

/* + - * and -x of results in I32: modulo 2^32. */
static double gpi__evaluate_whole(int op, double x, double y) {
    uint32_t a = (uint32_t)gpi__wrap(x), b = (uint32_t)gpi__wrap(y);
    return gpi__signed(op == GPI__OP_ADD   ? a + b
                       : op == GPI__OP_SUB ? a - b
                       : op == GPI__OP_MUL ? a * b
                                           : 0u - a);
}

/* x as a dtype stores it. */
static double gpi__as_stored(int dtype, double x) {
    const gpi__float_format *format = gpi__format_of(dtype);
    if (format)
        return gpi__decode(format, gpi__encode(format, x));
    if (dtype == GEMMEPI_I8)
        return gpi__encode_i8(x);
    return dtype == GEMMEPI_F32
               ? (double)(float)(fabs(x) > FLT_MAX * 1.5 ? (x > 0 ? HUGE_VAL : -HUGE_VAL) : x)
               : x;
}

/* x as one of its neighbours in F16 or BF16: the magnitude in units of their distance, plus u of [0, 1), is rounded down. */
static double gpi__round_by_chance(int dtype, double x, double u) {
    const gpi__float_format *format = gpi__format_of(dtype);
    int least = 2 - (1 << (format->exponent_bits - 1)), exponent;
    double unit;
    if (!(fabs(x) <= DBL_MAX))
        return x;
    (void)frexp(x, &exponent);
    unit = ldexp(1.0, (exponent - 1 > least ? exponent - 1 : least) - format->mantissa_bits);
    return copysign(floor(fabs(x) / unit + u) * unit, x);
}

/* >>nodes */

#define GPI__EACH(value)             \
    for (i = 0; i < run->count; i++) \
    out[i] = (value)
#define GPI__CASE(op, value) \
    case GPI__OP_##op:       \
        GPI__EACH(value);    \
        break

/* The node whose values those of a node's member are, and which member of it: parts, and what joins them, have none of their own. */
static int gpi__owner_of(const gpi__formula *formula, int node, int *member) {
    const gpi__node *nodes = formula->nodes;
    while (nodes[node].op >= GPI__OP_PART) {
        int is_part = nodes[node].op == GPI__OP_PART, part = is_part ? nodes[node].place : 0;
        node = is_part ? nodes[node].args[0] : gpi__joined_part(nodes, node, *member);
        *member = part;
    }
    *member = gpi__members(formula, nodes[node].width) > 1 ? *member : 0;
    return node;
}

static gpi__cells *gpi__cells_of(const gpi__run *run, int node, int member) {
    node = gpi__owner_of(run->formula, node, &member);
    return &run->values[run->formula->parts * node + member];
}

/* A node's values as the accumulator has them: those that are whole numbers in `room`. */
static const double *gpi__numbers_of(const gpi__run *run, int node, int member, double *room) {
    int i, of_whole = run->formula->accumulator == GEMMEPI_I32,
           owner = gpi__owner_of(run->formula, node, &member);
    const gpi__cells *cells = &run->values[run->formula->parts * owner + member];
    if (run->formula->nodes[owner].type != GPI__OF_WHOLE)
        return cells->numbers;
    for (i = 0; i < run->count; i++)
        room[i] = of_whole ? gpi__signed((uint32_t)(uint64_t)cells->whole[i]) : (double)cells->whole[i];
    return room;
}

/* And as whole numbers, exactly: of what is whole, or the accumulator is I32. */
static const int64_t *gpi__wholes_of(const gpi__run *run, int node, int member, int64_t *room) {
    const gpi__cells *cells = gpi__cells_of(run, node, member);
    const gpi__node *n = &run->formula->nodes[gpi__owner_of(run->formula, node, &member)];
    int i;
    if (n->type == GPI__OF_WHOLE)
        return cells->whole;
    for (i = 0; i < run->count; i++)
        room[i] = n->op == GPI__OP_NUMBER ? (int64_t)n->number : gpi__wrap(cells->numbers[i]);
    return room;
}

/* An argument of a node; a condition by all bits of a whole number. One that is not there is 0. */
static const double *gpi__argument(const gpi__run *run, const gpi__node *n, int a, int member, double *room) {
    static const double none[GPI__UNITS] = {0};
    int node = n->args[a], i;
    if (node < 0)
        return none;
    if (!gpi__is_condition(n, a) || run->formula->nodes[node].type != GPI__OF_WHOLE)
        return gpi__numbers_of(run, node, member, room);
    for (i = 0; i < run->count; i++)
        room[i] = gpi__cells_of(run, node, member)->whole[i] != 0;
    return room;
}

/* Of the formula's text, as the accumulator holds it. */
static double gpi__evaluate_number(const gpi__formula *formula, double number) {
    if (formula->accumulator == GEMMEPI_I32)
        return gpi__wrap(number);
    return formula->accumulator == GEMMEPI_F32 && fabs(number) < GPI__ROUNDS_TO_INFINITY
               ? (double)(float)number
               : number;
}

static void gpi__evaluate_leaf(const gpi__run *run, const gpi__node *n, int member, gpi__cells *to) {
    int i;
    for (i = 0; i < run->count && n->op == GPI__OP_NUMBER; i++)
        to->numbers[i] = gpi__evaluate_number(run->formula, n->number);
    for (i = 0; i < run->count && n->op == GPI__OP_INDEX; i++)
        to->whole[i] =
            n->place == GPI__INDEX_COLUMN ? run->columns[member] + i * run->step : run->indices[n->place];
}

/* What whole numbers are compared or read by. 0: it is another operation. */
static int gpi__evaluate_exactly(const gpi__run *run, const gpi__node *n, int member, double *out) {
    int64_t room[2][GPI__UNITS];
    const int64_t *x, *y;
    int i, compares = gpi__is_exact_comparison(run->formula, n);
    if (!compares && n->op != GPI__OP_LOOK_UP)
        return 0;
    x = gpi__wholes_of(run, n->args[0], member, room[0]);
    y = compares ? gpi__wholes_of(run, n->args[1], member, room[1]) : x;
    for (i = 0; i < run->count; i++)
        if (compares)
            gpi__fold_truth(n->op, x[i] < y[i] ? -1 : x[i] > y[i], 0, &out[i]);
        else
            out[i] = run->look_up(run->tables, n->place, x[i]);
    return 1;
}

/* The random numbers of uniform() and stochastic(). */
static void gpi__evaluate_draw(const gpi__run *run, const gpi__node *n, int member, const double *x,
                               double *out) {
    int i, exchanged = run->formula->exchanged, at = gpi__seed_argument(n->op);
    int64_t row = run->indices[GPI__INDEX_ROW], room[2][GPI__UNITS];
    const int64_t *seeds = gpi__wholes_of(run, n->args[at], 0, room[0]);
    const int64_t *streams = gpi__wholes_of(run, n->args[at + 1], 0, room[1]);
    for (i = 0; i < run->count; i++) {
        int64_t column = run->columns[member] + i * run->step;
        double u = gpi__uniform(seeds[i], (uint32_t)(uint64_t)streams[i], exchanged ? row : column,
                                exchanged ? column : row, run->indices[GPI__INDEX_ITEM]);
        out[i] = n->op == GPI__OP_STOCHASTIC ? gpi__round_by_chance(n->place, x[i], u) : u;
    }
}

/* What D stands for once it has stored x. */
static double gpi__evaluate_rounded(const gpi__run *run, double x) {
    return run->scales_d ? gpi__as_stored(run->formula->d, x * run->scale_d) / run->scale_d
                         : gpi__as_stored(run->formula->d, x);
}

/* Parameters that are no argument stand in the node. */
static void gpi__evaluate_activation(const gpi__run *run, const gpi__node *n, const double *x,
                                     const double *y, const double *z, double *out) {
    uint32_t code = (uint32_t)gpi__activations[n->place].code;
    double p = n->number;
    int i, given = n->args[1] >= 0;
    if (n->op == GPI__OP_ACTIVATE && code == GEMMEPI_RELU)
        GPI__EACH(gpi__max_of(x[i], 0));
    else if (n->op == GPI__OP_ACTIVATE)
        GPI__EACH(gpi__activate(code, given ? y[i] : p, x[i]));
    else if (n->op == GPI__OP_DERIVE)
        GPI__EACH(gpi__times_derivative(code, given ? y[i] : p, 1, x[i]));
    else if (n->op == GPI__OP_GATE)
        GPI__EACH(gpi__times_activation(code, p, x[i], y[i]));
    else if (n->args[2] < 0)
        GPI__EACH(gpi__times_derivative(code, p, x[i], y[i]));
    else
        GPI__EACH(gpi__gate_gradient(code, p, x[i], z[i], y[i]));
}

/* Of numbers that need not be whole. */
static void gpi__evaluate_arithmetic(const gpi__run *run, const gpi__node *n, int member,
                                     const double *const *args, double *out) {
    const double *x = args[0], *y = args[1], *z = args[2];
    double (*of_one)(double) = gpi__operation_of(n->op)->host;
    int i;
    switch (n->op) {
        GPI__CASE(SELECT, x[i] != 0 ? y[i] : z[i]);
        GPI__CASE(ADD, x[i] + y[i]);
        GPI__CASE(SUB, x[i] - y[i]);
        GPI__CASE(MUL, x[i] * y[i]);
        GPI__CASE(DIV, x[i] / y[i]);
        GPI__CASE(NEG, -x[i]);
        GPI__CASE(ABS, fabs(x[i]));
        GPI__CASE(FMA, fma(x[i], y[i], z[i]));
        GPI__CASE(POW, pow(x[i], y[i]));
        GPI__CASE(MIN, gpi__min_of(x[i], y[i]));
        GPI__CASE(MAX, gpi__max_of(x[i], y[i]));
        GPI__CASE(CLAMP, gpi__min_of(gpi__max_of(x[i], y[i]), z[i]));
        GPI__CASE(MOD, fmod(x[i], y[i]));
        GPI__CASE(ISNAN, x[i] != x[i]);
        GPI__CASE(ROUNDED, gpi__evaluate_rounded(run, x[i]));
    case GPI__OP_UNIFORM:
    case GPI__OP_STOCHASTIC:
        gpi__evaluate_draw(run, n, member, x, out);
        break;
    case GPI__OP_ACTIVATE:
    case GPI__OP_DERIVE:
    case GPI__OP_GATE:
    case GPI__OP_GRADIENT:
        gpi__evaluate_activation(run, n, x, y, z, out);
        break;
    default:
        for (i = 0; i < run->count; i++)
            if (!gpi__fold_truth(n->op, x[i], y[i], &out[i]))
                out[i] = of_one(x[i]);
    }
}

static void gpi__evaluate_node(const gpi__run *run, const gpi__node *n, int member, gpi__cells *to) {
    double room[3][GPI__UNITS], *out = to->numbers;
    const double *args[3];
    int i, a;
    if (n->op < GPI__LEAVES)
        gpi__evaluate_leaf(run, n, member, to);
    if (n->op < GPI__LEAVES || gpi__evaluate_exactly(run, n, member, out))
        return;
    for (a = 0; a < 3; a++)
        args[a] = gpi__argument(run, n, a, member, room[a]);
    if (run->formula->accumulator == GEMMEPI_I32 && n->op >= GPI__OP_ADD && n->op <= GPI__OP_NEG)
        GPI__EACH(gpi__evaluate_whole(n->op, args[0][i], args[1][i]));
    else
        gpi__evaluate_arithmetic(run, n, member, args, out);
}

/* What does not change along columns is computed once. */
static void gpi__evaluate(gpi__run *run) {
    const gpi__formula *formula = run->formula;
    int node, member, i, count = run->count;
    for (node = 0; node < formula->node_count; node++) {
        const gpi__node *n = &formula->nodes[node];
        gpi__cells *to = &run->values[formula->parts * node];
        if (n->op >= GPI__OP_PART || (run->has_constants && n->width == GPI__ANY))
            continue;
        run->count = n->width == GPI__ANY ? 1 : count;
        for (member = 0; member < gpi__members(formula, n->width); member++)
            gpi__evaluate_node(run, n, member, &to[member]);
        for (i = run->count; i < count; i++)
            memcpy(&to->whole[i], &to->whole[0], sizeof to->whole[0]);
    }
    run->count = count;
}

/* Of an output (a place among formula.operands). */
static const double *gpi__output_values(const gpi__run *run, int output, int member, double *room) {
    return gpi__numbers_of(run, run->formula->operands[output].node, member, room);
}

#undef GPI__EACH
#undef GPI__CASE
#endif

#endif
