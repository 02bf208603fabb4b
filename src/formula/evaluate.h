/* A formula on the host: in double, for a unit at a time. tests/formula_bounds.h has how far off the accumulator's type may be. */
#ifndef GEMMEPI_FORMULA_EVALUATE_H
#define GEMMEPI_FORMULA_EVALUATE_H

#include "../numbers/convert.h"
#include "formula.h"

#ifndef GEMMEPI_NO_HOST

/* All that a unit reads: of what is WIDE all members, else the first. */
typedef struct gpi__unit {
    double value[GPI__MOST_PARTS];
    double operands[GPI__FORMULA_OPERANDS][GPI__MOST_PARTS];
    int64_t whole[GPI__FORMULA_OPERANDS][GPI__MOST_PARTS]; /* of inputs in I32 and I64 instead */
    int64_t indices[GPI__INDICES];                         /* but for the column */
    int64_t column[GPI__MOST_PARTS];
    int scales_d; /* D has a scale, by which it is multiplied as it is stored */
    double scale_d;
    double (*look_up)(const void *tables, int operand, int64_t index); /* 0 where there is no such element */
    const void *tables;
} gpi__unit;

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

/* Of numbers that need not be whole. */
static double gpi__evaluate_arithmetic(int op, double x, double y, double z) {
    switch (op) {
    case GPI__OP_ADD:
        return x + y;
    case GPI__OP_SUB:
        return x - y;
    case GPI__OP_MUL:
        return x * y;
    case GPI__OP_DIV:
        return x / y;
    case GPI__OP_FMA:
        return fma(x, y, z);
    case GPI__OP_POW:
        return pow(x, y);
    case GPI__OP_MIN:
        return gpi__min_of(x, y);
    case GPI__OP_MAX:
        return gpi__max_of(x, y);
    case GPI__OP_CLAMP:
        return gpi__min_of(gpi__max_of(x, y), z);
    default: /* MOD */
        return fmod(x, y);
    }
}

/* Of results in I32: modulo 2^32. */
static double gpi__evaluate_whole(int op, double x, double y) {
    uint32_t a = (uint32_t)gpi__wrap(x), b = (uint32_t)gpi__wrap(y), out;
    switch (op) {
    case GPI__OP_ADD:
        out = a + b;
        break;
    case GPI__OP_SUB:
        out = a - b;
        break;
    case GPI__OP_MUL:
        out = a * b;
        break;
    default: /* NEG */
        out = 0u - a;
    }
    return gpi__signed(out);
}

/* >>nodes */

typedef struct gpi__evaluation {
    const gpi__formula *formula;
    const gpi__unit *unit;
    double *values; /* of each node as many as there are parts */
} gpi__evaluation;

/* A whole number: of the index or the operand, or a part of one. */
static int64_t gpi__whole_at(const gpi__evaluation *e, int node, int member) {
    const gpi__node *n = &e->formula->nodes[node];
    if (n->op == GPI__OP_PART)
        return gpi__whole_at(e, n->args[0], n->place);
    if (n->op == GPI__OP_NUMBER)
        return (int64_t)n->number;
    if (gpi__members(e->formula, n->width) == 1)
        member = 0;
    if (n->type != GPI__OF_WHOLE) /* with results in I32 */
        return gpi__wrap(e->values[e->formula->parts * node + member]);
    if (n->op == GPI__OP_OPERAND)
        return e->unit->whole[n->place][member];
    return n->place == GPI__INDEX_COLUMN ? e->unit->column[member] : e->unit->indices[n->place];
}

static double gpi__evaluate_comparison(const gpi__evaluation *e, const gpi__node *n, int member) {
    int64_t x = gpi__whole_at(e, n->args[0], member), y = gpi__whole_at(e, n->args[1], member);
    double out = 0;
    gpi__fold_truth(n->op, x < y ? -1 : x > y, 0, &out);
    return out;
}

/* Of the formula's text, as the accumulator holds it. */
static double gpi__evaluate_number(const gpi__evaluation *e, double number) {
    if (e->formula->accumulator == GEMMEPI_I32)
        return gpi__wrap(number);
    return e->formula->accumulator == GEMMEPI_F32 && fabs(number) < GPI__ROUNDS_TO_INFINITY
               ? (double)(float)number
               : number;
}

static double gpi__evaluate_leaf(const gpi__evaluation *e, int node, int member) {
    const gpi__node *n = &e->formula->nodes[node];
    int64_t whole;
    if (n->op == GPI__OP_NUMBER)
        return gpi__evaluate_number(e, n->number);
    if (n->op == GPI__OP_VALUE)
        return e->unit->value[member];
    if (n->type != GPI__OF_WHOLE)
        return e->unit->operands[n->place][member];
    whole = gpi__whole_at(e, node, member);
    return e->formula->accumulator == GEMMEPI_I32 ? gpi__signed((uint32_t)(uint64_t)whole) : (double)whole;
}

/* The member of an argument that one of a node is made of. */
static int gpi__member_of_argument(const gpi__formula *formula, const gpi__node *n, int node, int member) {
    if (n->op == GPI__OP_PART)
        return n->place;
    return gpi__members(formula, formula->nodes[node].width) == 1 ? 0 : member;
}

static double gpi__argument(const gpi__evaluation *e, const gpi__node *n, int a, int member) {
    int node = n->args[a];
    return node < 0
               ? 0
               : e->values[e->formula->parts * node + gpi__member_of_argument(e->formula, n, node, member)];
}

/* Of a whole number whether it is not 0, of all its bits. */
static double gpi__truth_of(const gpi__evaluation *e, const gpi__node *n, int a, int member) {
    int node = n->args[a];
    return node >= 0 && e->formula->nodes[node].type == GPI__OF_WHOLE ? gpi__whole_at(e, node, member) != 0
                                                                      : gpi__argument(e, n, a, member);
}

/* The random number of uniform() and stochastic(). */
static double gpi__evaluate_draw(const gpi__evaluation *e, const gpi__node *n, int member) {
    int64_t row = e->unit->indices[GPI__INDEX_ROW], column = e->unit->column[member];
    int exchanged = e->formula->exchanged, at = gpi__seed_argument(n->op);
    return gpi__uniform(gpi__whole_at(e, n->args[at], 0),
                        (uint32_t)(uint64_t)gpi__whole_at(e, n->args[at + 1], 0), exchanged ? row : column,
                        exchanged ? column : row, e->unit->indices[GPI__INDEX_ITEM]);
}

/* What D stands for once it has stored x. */
static double gpi__evaluate_rounded(const gpi__evaluation *e, double x) {
    double scale = e->unit->scale_d;
    return e->unit->scales_d ? gpi__as_stored(e->formula->d, x * scale) / scale
                             : gpi__as_stored(e->formula->d, x);
}

static double gpi__evaluate_activation(const gpi__node *n, double x, double parameter) {
    uint32_t code = (uint32_t)gpi__activations[n->place].code;
    return n->op == GPI__OP_DERIVE ? gpi__times_derivative(code, parameter, 1, x)
                                   : gpi__activate(code, parameter, x);
}

static double gpi__evaluate_operation(const gpi__evaluation *e, const gpi__node *n, int member) {
    double x = gpi__argument(e, n, 0, member), y = gpi__argument(e, n, 1, member), out = 0;
    if (gpi__is_exact_comparison(e->formula, n))
        return gpi__evaluate_comparison(e, n, member);
    if (e->formula->accumulator == GEMMEPI_I32 && n->op >= GPI__OP_ADD && n->op <= GPI__OP_NEG)
        return gpi__evaluate_whole(n->op, x, y);
    switch (n->op) {
    case GPI__OP_SELECT:
        return gpi__argument(e, n, gpi__truth_of(e, n, 0, member) != 0 ? 1 : 2, member);
    case GPI__OP_OR:
    case GPI__OP_AND:
    case GPI__OP_NOT:
        gpi__fold_truth(n->op, gpi__truth_of(e, n, 0, member), gpi__truth_of(e, n, 1, member), &out);
        return out;
    case GPI__OP_NEG:
        return -x;
    case GPI__OP_ABS:
        return fabs(x);
    case GPI__OP_ISNAN:
        return x != x;
    case GPI__OP_ROUNDED:
        return gpi__evaluate_rounded(e, x);
    case GPI__OP_UNIFORM:
        return gpi__evaluate_draw(e, n, member);
    case GPI__OP_STOCHASTIC:
        return gpi__round_by_chance(n->place, x, gpi__evaluate_draw(e, n, member));
    case GPI__OP_LOOK_UP:
        return e->unit->look_up(e->unit->tables, n->place, gpi__whole_at(e, n->args[0], member));
    case GPI__OP_ACTIVATE:
    case GPI__OP_DERIVE:
        return gpi__evaluate_activation(n, x, y);
    case GPI__OP_JOIN:
        return member > n->place ? y : x;
    case GPI__OP_PART:
        return x;
    default:
        if (gpi__fold_truth(n->op, x, y, &out))
            return out;
        return gpi__operation_of(n->op)->host
                   ? gpi__operation_of(n->op)->host(x)
                   : gpi__evaluate_arithmetic(n->op, x, y, gpi__argument(e, n, 2, member));
    }
}

/* Fills in values, formula->parts of each node (of one that has a single member only the first is written). Of an output of the formula its
   values are those of its node: what is rounded once when stored, or goes into the reduction. */
static void gpi__evaluate(const gpi__formula *formula, const gpi__unit *unit, double *values) {
    gpi__evaluation e;
    int node, member;
    e.formula = formula;
    e.unit = unit;
    e.values = values;
    for (node = 0; node < formula->node_count; node++)
        for (member = 0; member < gpi__members(formula, formula->nodes[node].width); member++)
            values[formula->parts * node + member] =
                formula->nodes[node].op < GPI__LEAVES
                    ? gpi__evaluate_leaf(&e, node, member)
                    : gpi__evaluate_operation(&e, &formula->nodes[node], member);
}

/* Of an output (a place among formula.operands) in a unit. */
static double gpi__output_value(const gpi__formula *formula, const double *values, int output, int member) {
    int node = formula->operands[output].node;
    return values[formula->parts * node +
                  (gpi__members(formula, formula->nodes[node].width) > 1 ? member : 0)];
}
#endif

#endif
