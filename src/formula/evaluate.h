/* A formula on the host: in double, for a unit at a time, with a bound of what the accumulator's type may be off. */
#ifndef GEMMEPI_FORMULA_EVALUATE_H
#define GEMMEPI_FORMULA_EVALUATE_H

#include "../numbers/convert.h"
#include "formula.h"

#ifndef GEMMEPI_NO_HOST

/* What a number is, and how far off it may be; an infinite bound says that it may be anything. */
typedef struct gemmepi__estimate {
    double value, bound;
} gemmepi__estimate;

/* All that a unit reads: of what is WIDE both members, else the first. */
typedef struct gemmepi__unit {
    gemmepi__estimate value[2];
    gemmepi__estimate operands[GEMMEPI__FORMULA_OPERANDS][2];
    int64_t whole[GEMMEPI__FORMULA_OPERANDS][2]; /* of inputs in I32 and I64 instead */
    int64_t indices[GEMMEPI__INDICES];           /* but for the column */
    int64_t column[2];
    int scales_d; /* D has a scale, by which it is multiplied as it is stored */
    double scale_d;
    int values_only; /* 1: bounds are not wanted; all that are given are 0 */
} gemmepi__unit;

/* >>random numbers: Philox4x32-10, as J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011) */

static void gemmepi__philox(uint32_t counter[4], uint32_t key0, uint32_t key1) {
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

static double gemmepi__uniform(int64_t seed, uint32_t i, int64_t column, int64_t row, int64_t item) {
    uint32_t counter[4];
    counter[0] = (uint32_t)(column / 4);
    counter[1] = (uint32_t)row;
    counter[2] = (uint32_t)item;
    counter[3] = i;
    gemmepi__philox(counter, (uint32_t)(uint64_t)seed, (uint32_t)((uint64_t)seed >> 32));
    return (counter[column % 4] >> 8) * (1.0 / 16777216);
}

/* >>bounds */

static gemmepi__estimate gemmepi__estimated(double value, double bound) {
    gemmepi__estimate e;
    e.value = value;
    e.bound = bound == bound ? bound : HUGE_VAL;
    if (value != value && bound == 0)
        e.bound = 0;
    return e;
}

static double gemmepi__larger(double x, double y) {
    return x > y || x != x ? x : y; /* NaN is the largest */
}

/* How far f(x) is from y, where both may be the same infinity or no number. */
static double gemmepi__distance(double x, double y) {
    if (x == y || (x != x && y != y))
        return 0;
    return x != x || y != y ? HUGE_VAL : fabs(x - y);
}

/* What the function of the row moves within the bounds of x, of a monotone one. */
static double gemmepi__moves(double (*f)(double), double value, gemmepi__estimate x) {
    if (x.bound == 0)
        return 0;
    return gemmepi__larger(gemmepi__distance(f(x.value - x.bound), value),
                           gemmepi__distance(f(x.value + x.bound), value));
}

static double gemmepi__divide(double x, double y) {
    return x / y;
}

/* Of a function of two numbers that is monotone in each, or, of numbers of one sign, is so apart from its sign. */
static double gemmepi__moves_of_two(double (*f)(double, double), double value, gemmepi__estimate x,
                                    gemmepi__estimate y) {
    double most = 0;
    int corner;
    if (x.bound == 0 && y.bound == 0)
        return 0;
    for (corner = 0; corner < 4; corner++)
        most = gemmepi__larger(most, gemmepi__distance(f(x.value + (corner & 1 ? x.bound : -x.bound),
                                                         y.value + (corner & 2 ? y.bound : -y.bound)),
                                                       value));
    return most;
}

static int gemmepi__may_be_0(gemmepi__estimate x) {
    return !(fabs(x.value) > x.bound);
}

/* Whether x is a condition that may be either. */
static int gemmepi__is_doubtful(gemmepi__estimate x) {
    return x.bound > 0 && gemmepi__may_be_0(x);
}

static double gemmepi__bound_of_product(gemmepi__estimate x, gemmepi__estimate y) {
    double of_y = y.bound == 0 ? 0 : fabs(x.value) * y.bound,
           of_x = x.bound == 0 ? 0 : fabs(y.value) * x.bound;
    return of_x + of_y + (x.bound == 0 || y.bound == 0 ? 0 : x.bound * y.bound);
}

/* u of the accumulator, and its smallest subnormal */
typedef struct gemmepi__precision {
    double unit, smallest;
    int is_f64, is_short, values_only;
} gemmepi__precision;

static gemmepi__precision gemmepi__precision_of(const gemmepi__formula *formula) {
    gemmepi__precision p;
    p.is_f64 = formula->accumulator == GEMMEPI_F64;
    p.unit = p.is_f64 ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    /* what the F32 functions of the hardware make of subnormal numbers may be 0 */
    p.smallest = p.is_f64 ? DBL_MIN * DBL_EPSILON : FLT_MIN;
    p.is_short = formula->is_short;
    p.values_only = 0;
    return p;
}

/* What a result may be off by rounding: it is above the range of F32, too. */
static double gemmepi__rounding(const gemmepi__precision *p, double value, double units) {
    double size = fabs(value);
    if (p->values_only || units == 0 || value == 0 || size > DBL_MAX)
        return 0;
    if (!p->is_f64 && size > FLT_MAX * (1 - units * p->unit))
        return HUGE_VAL;
    /* the host's own rounding, too */
    return (units * p->unit + DBL_EPSILON) * size + (size < p->smallest / p->unit ? p->smallest : 0);
}

/* >>activations: what kernels/activation.cuh says of them */

typedef double gemmepi__activation_function(uint32_t activation, double parameter, double x);

static double gemmepi__derivative_there(uint32_t activation, double parameter, double x) {
    return gemmepi__times_derivative(activation, parameter, 1, x);
}

/* Relative, of the short forms. */
static double gemmepi__short_units(uint32_t code, int is_derivative, double size) {
    if (!is_derivative && code == GEMMEPI_GELU_ERF)
        return 2048;
    return size < 2 ? 18 : size < 5 ? 100 : size < 10 ? 170 : 4096;
}

/* The largest slope of the GELUs: their forms for products, which cuBLASLt's is one of, are held to the error of v by it, wherever v is. */
#define GEMMEPI__GELU_SLOPE 1.13

/* f moves by |f'| within the bounds, and, of those that have a least value, by what lies between: |f''| is 2 (1 + |p|) at most. */
static gemmepi__estimate gemmepi__estimate_activation(const gemmepi__precision *p, const gemmepi__node *node,
                                                      gemmepi__estimate x, gemmepi__estimate parameter) {
    int is_derivative = node->op == GEMMEPI__OP_DERIVE, i;
    gemmepi__activation_function *f = is_derivative ? gemmepi__derivative_there : gemmepi__activate;
    uint32_t code = (uint32_t)gemmepi__activations[node->place].code;
    double b = x.bound + 2 * p->unit * fabs(x.value), size = fabs(x.value);
    double value = f(code, parameter.value, x.value), moved = 0, units = 4, terms = fabs(value);
    if (p->values_only || (code == GEMMEPI_RELU && !is_derivative))
        return gemmepi__estimated(value, x.bound);
    for (i = 0; i < 4; i++)
        moved = gemmepi__larger(
            moved, gemmepi__distance(f(code, parameter.value + (i & 2 ? parameter.bound : -parameter.bound),
                                       x.value + (i & 1 ? b : -b)),
                                     value));
    if (b > 0)
        moved += b * b * 2 * (1 + fabs(parameter.value));
    if (is_derivative && code == GEMMEPI_HARDSWISH)
        moved += b;
    if (is_derivative && code == GEMMEPI_ELU) /* its slope beside a jump */
        moved += b * fabs(parameter.value);
    if (is_derivative)
        terms = size < 10 ? terms + 0.4 * (1 + fabs(parameter.value)) : 2 * terms;
    if (p->is_short)
        units = gemmepi__short_units(code, is_derivative, size);
    if (p->is_short && code == GEMMEPI_GELU_ERF && !is_derivative)
        moved += 8 * p->unit * size;
    if (p->is_short && !is_derivative && (code == GEMMEPI_GELU_ERF || code == GEMMEPI_GELU_TANH))
        moved = gemmepi__larger(moved, GEMMEPI__GELU_SLOPE * x.bound);
    if (p->is_short && !is_derivative && x.value < 0 &&
        (code == GEMMEPI_SILU || code == GEMMEPI_GELU_TANH || code == GEMMEPI_QUICK_GELU ||
         code == GEMMEPI_GELU_ERF))
        moved += 1e-36; /* of these the form for sums ends its tail there */
    return gemmepi__estimated(value, moved + gemmepi__rounding(p, terms, units) +
                                         (value == 0 && x.value != 0 ? p->smallest : 0));
}

/* >>operations */

static gemmepi__estimate gemmepi__estimate_comparison(int op, gemmepi__estimate x, gemmepi__estimate y) {
    double out = 0, reach = x.bound + y.bound;
    int in_doubt = reach > 0 && !(fabs(x.value - y.value) > reach);
    gemmepi__fold_truth(op, x.value, y.value, &out);
    if ((x.value != x.value || y.value != y.value) && reach <= DBL_MAX)
        in_doubt = 0;
    return gemmepi__estimated(out, in_doubt);
}

static gemmepi__estimate gemmepi__estimate_selection(gemmepi__estimate c, gemmepi__estimate x,
                                                     gemmepi__estimate y) {
    gemmepi__estimate taken = c.value != 0 ? x : y, other = c.value != 0 ? y : x;
    if (!gemmepi__is_doubtful(c))
        return taken;
    return gemmepi__estimated(
        taken.value, gemmepi__larger(taken.bound, gemmepi__distance(other.value, taken.value) + other.bound));
}

static gemmepi__estimate gemmepi__estimate_truth(int op, gemmepi__estimate x, gemmepi__estimate y) {
    double out = 0;
    int x_in_doubt = gemmepi__is_doubtful(x), y_in_doubt = gemmepi__is_doubtful(y);
    /* one that is certain decides an && by 0 and an || by 1 */
    int decided = op == GEMMEPI__OP_NOT   ? 0
                  : op == GEMMEPI__OP_AND ? (!x_in_doubt && x.value == 0) || (!y_in_doubt && y.value == 0)
                                          : (!x_in_doubt && x.value != 0) || (!y_in_doubt && y.value != 0);
    gemmepi__fold_truth(op, x.value, y.value, &out);
    return gemmepi__estimated(out, !decided && (x_in_doubt || (op != GEMMEPI__OP_NOT && y_in_doubt)));
}

static double gemmepi__min_of(double x, double y) {
    return x != x || x < y ? x : y;
}

static double gemmepi__max_of(double x, double y) {
    return x != x || x > y ? x : y;
}

/* mod: a jump of y lies where x / y is whole, and where x changes its sign so does the result. */
static double gemmepi__moves_of_mod(gemmepi__estimate x, gemmepi__estimate y) {
    double first = trunc(x.value / y.value), most = fabs(y.value) + y.bound;
    int corner;
    if (x.bound == 0 && y.bound == 0)
        return 0;
    if (gemmepi__may_be_0(y)) /* NaN */
        return HUGE_VAL;
    for (corner = 0; corner < 4; corner++)
        if (trunc((x.value + (corner & 1 ? x.bound : -x.bound)) /
                  (y.value + (corner & 2 ? y.bound : -y.bound))) != first)
            return gemmepi__may_be_0(x) ? 2 * most : most;
    return x.bound + fabs(first) * y.bound;
}

/* pow is monotone in each but where x goes over 0; where that may be a pole, or x^y no number, nothing is known. */
static double gemmepi__moves_of_pow(double value, gemmepi__estimate x, gemmepi__estimate y) {
    double most = gemmepi__moves_of_two(pow, value, x, y);
    if ((x.bound > 0 && gemmepi__may_be_0(x) && y.value - y.bound < 0) ||
        (y.bound > 0 && x.value - x.bound < 0))
        return HUGE_VAL;
    return x.bound > 0 && gemmepi__may_be_0(x) ? most + fabs(value) : most;
}

/* x as a dtype stores it. */
static double gemmepi__as_stored(int dtype, double x) {
    const gemmepi__float_format *format = gemmepi__format_of(dtype);
    if (format)
        return gemmepi__decode(format, gemmepi__encode(format, x));
    if (dtype == GEMMEPI_I8)
        return gemmepi__encode_i8(x);
    return dtype == GEMMEPI_F32
               ? (double)(float)(fabs(x) > FLT_MAX * 1.5 ? (x > 0 ? HUGE_VAL : -HUGE_VAL) : x)
               : x;
}

static gemmepi__estimate gemmepi__estimate_stored(int dtype, gemmepi__estimate x) {
    double value = gemmepi__as_stored(dtype, x.value);
    if (x.bound == 0)
        return gemmepi__estimated(value, 0);
    return gemmepi__estimated(
        value, gemmepi__larger(gemmepi__distance(gemmepi__as_stored(dtype, x.value + x.bound), value),
                               gemmepi__distance(gemmepi__as_stored(dtype, x.value - x.bound), value)));
}

static gemmepi__estimate gemmepi__estimate_one(const gemmepi__precision *p, int op, gemmepi__estimate x) {
    const gemmepi__operation_of_formula *row = gemmepi__operation_of(op);
    double units = 2 * (p->is_f64 ? row->ulps_f64 : row->ulps_f32), value = row->host(x.value), moved;
    if (row->traits & GEMMEPI__WAVES)
        moved = x.bound < 2 ? x.bound : 2;
    else
        moved = gemmepi__moves(row->host, value, x);
    return gemmepi__estimated(
        value, moved + gemmepi__rounding(p, value, units) +
                   (value == 0 && x.value != 0 && units > 0 && !p->values_only ? p->smallest : 0));
}

/* Whether nothing is rounded off. */
static int gemmepi__is_exact(int op, double x, double y, double value) {
    y = op == GEMMEPI__OP_SUB ? -y : y;
    switch (op) {
    case GEMMEPI__OP_ADD:
    case GEMMEPI__OP_SUB:
        return value - x == y && value - y == x;
    case GEMMEPI__OP_MUL:
        return fma(x, y, -value) == 0 && (value != 0 || x == 0 || y == 0);
    case GEMMEPI__OP_DIV:
        return fma(value, y, -x) == 0 && (value != 0 || x == 0);
    default:
        return 0;
    }
}

/* Arithmetic of numbers, each rounded. */
static gemmepi__estimate gemmepi__estimate_arithmetic(const gemmepi__precision *p, int op,
                                                      gemmepi__estimate x, gemmepi__estimate y,
                                                      gemmepi__estimate z) {
    const gemmepi__operation_of_formula *row = gemmepi__operation_of(op);
    double value, moved = x.bound + y.bound;
    switch (op) {
    case GEMMEPI__OP_ADD:
        value = x.value + y.value;
        break;
    case GEMMEPI__OP_SUB:
        value = x.value - y.value;
        break;
    case GEMMEPI__OP_MUL:
        value = x.value * y.value;
        moved = gemmepi__bound_of_product(x, y);
        break;
    case GEMMEPI__OP_DIV:
        value = x.value / y.value;
        moved = y.bound > 0 && gemmepi__may_be_0(y) ? HUGE_VAL
                                                    : gemmepi__moves_of_two(gemmepi__divide, value, x, y);
        break;
    case GEMMEPI__OP_FMA:
        value = fma(x.value, y.value, z.value);
        moved = gemmepi__bound_of_product(x, y) + z.bound;
        break;
    case GEMMEPI__OP_POW:
        value = pow(x.value, y.value);
        moved = gemmepi__moves_of_pow(value, x, y);
        break;
    default: /* MOD */
        value = fmod(x.value, y.value);
        moved = gemmepi__moves_of_mod(x, y);
    }
    if (moved == 0 && !p->values_only && (p->is_f64 || gemmepi__f32_holds(value)) &&
        gemmepi__is_exact(op, x.value, y.value, value))
        return gemmepi__estimated(value, 0);
    return gemmepi__estimated(
        value, moved + gemmepi__rounding(p, value, 2 * (p->is_f64 ? row->ulps_f64 : row->ulps_f32)));
}

/* x times the reciprocal of a number, which is rounded, too, as the number itself is not. */
static gemmepi__estimate gemmepi__estimate_quotient(const gemmepi__precision *p, gemmepi__estimate x,
                                                    double number) {
    double value = x.value / number;
    return gemmepi__estimated(value, x.bound / fabs(number) + gemmepi__rounding(p, value, 2.001));
}

static gemmepi__estimate gemmepi__estimate_order(int op, gemmepi__estimate x, gemmepi__estimate y,
                                                 gemmepi__estimate z) {
    double bound = gemmepi__larger(x.bound, y.bound);
    if (op == GEMMEPI__OP_MIN)
        return gemmepi__estimated(gemmepi__min_of(x.value, y.value), bound);
    if (op == GEMMEPI__OP_MAX)
        return gemmepi__estimated(gemmepi__max_of(x.value, y.value), bound);
    return gemmepi__estimated(gemmepi__min_of(gemmepi__max_of(x.value, y.value), z.value),
                              gemmepi__larger(bound, z.bound));
}

/* Of results in I32: modulo 2^32. */
static gemmepi__estimate gemmepi__estimate_whole(int op, double x, double y) {
    uint32_t a = (uint32_t)gemmepi__wrap(x), b = (uint32_t)gemmepi__wrap(y), out;
    switch (op) {
    case GEMMEPI__OP_ADD:
        out = a + b;
        break;
    case GEMMEPI__OP_SUB:
        out = a - b;
        break;
    case GEMMEPI__OP_MUL:
        out = a * b;
        break;
    default: /* NEG */
        out = 0u - a;
    }
    return gemmepi__estimated(gemmepi__signed(out), 0);
}

/* >>nodes */

typedef struct gemmepi__evaluation {
    const gemmepi__formula *formula;
    const gemmepi__unit *unit;
    gemmepi__precision precision;
    gemmepi__estimate *values; /* two of each node */
} gemmepi__evaluation;

/* A whole number: of the index or the operand, or the half of one. */
static int64_t gemmepi__whole_at(const gemmepi__evaluation *e, int node, int member) {
    const gemmepi__node *n = &e->formula->nodes[node];
    if (n->op == GEMMEPI__OP_FIRST || n->op == GEMMEPI__OP_SECOND)
        return gemmepi__whole_at(e, n->args[0], n->op == GEMMEPI__OP_SECOND);
    if (n->op == GEMMEPI__OP_NUMBER)
        return (int64_t)n->number;
    if (gemmepi__members(e->formula, n->width) == 1)
        member = 0;
    if (n->type != GEMMEPI__OF_WHOLE) /* with results in I32 */
        return gemmepi__wrap(e->values[2 * node + member].value);
    if (n->op == GEMMEPI__OP_OPERAND)
        return e->unit->whole[n->place][member];
    return n->place == GEMMEPI__INDEX_COLUMN ? e->unit->column[member] : e->unit->indices[n->place];
}

static gemmepi__estimate gemmepi__estimate_whole_comparison(const gemmepi__evaluation *e,
                                                            const gemmepi__node *n, int member) {
    int64_t x = gemmepi__whole_at(e, n->args[0], member), y = gemmepi__whole_at(e, n->args[1], member);
    double out = 0;
    gemmepi__fold_truth(n->op, x < y ? -1 : x > y, 0, &out);
    return gemmepi__estimated(out, 0);
}

/* A number that the accumulator must hold: of whole numbers that are large and of the formula's own. */
static gemmepi__estimate gemmepi__as_accumulator(const gemmepi__evaluation *e, double x) {
    if (e->formula->accumulator == GEMMEPI_I32)
        return gemmepi__estimated(gemmepi__wrap(x), 0);
    return gemmepi__estimated(
        x, e->precision.is_f64 || gemmepi__f32_holds(x) ? 0 : gemmepi__rounding(&e->precision, x, 1));
}

/* Of the formula's text: in F32 kernels have it rounded. */
static gemmepi__estimate gemmepi__estimate_number(const gemmepi__evaluation *e, double number) {
    gemmepi__estimate estimate = gemmepi__as_accumulator(e, number);
    if (e->formula->accumulator == GEMMEPI_F32 && fabs(number) < GEMMEPI__ROUNDS_TO_INFINITY)
        estimate.value = (double)(float)number;
    return estimate;
}

static gemmepi__estimate gemmepi__estimate_leaf(const gemmepi__evaluation *e, int node, int member) {
    const gemmepi__node *n = &e->formula->nodes[node];
    int64_t whole;
    if (n->op == GEMMEPI__OP_NUMBER)
        return gemmepi__estimate_number(e, n->number);
    if (n->op == GEMMEPI__OP_VALUE)
        return e->unit->value[member];
    if (n->type != GEMMEPI__OF_WHOLE)
        return e->unit->operands[n->place][member];
    whole = gemmepi__whole_at(e, node, member);
    if (e->formula->accumulator == GEMMEPI_I32)
        return gemmepi__estimated(gemmepi__signed((uint32_t)(uint64_t)whole), 0);
    /* (double) rounds beyond 2^53 */
    return gemmepi__estimated((double)whole, gemmepi__f32_holds((double)whole) &&
                                                     whole < ((int64_t)1 << 53) && whole > -((int64_t)1 << 53)
                                                 ? 0
                                                 : gemmepi__rounding(&e->precision, (double)whole, 1));
}

/* The member of an argument that one of a node is made of. */
static gemmepi__estimate gemmepi__argument(const gemmepi__evaluation *e, const gemmepi__node *n, int a,
                                           int member) {
    static const gemmepi__estimate none = {0, 0};
    int node = n->args[a];
    if (node < 0)
        return none;
    if (n->op == GEMMEPI__OP_FIRST || n->op == GEMMEPI__OP_SECOND)
        member = n->op == GEMMEPI__OP_SECOND;
    else if (gemmepi__members(e->formula, e->formula->nodes[node].width) == 1)
        member = 0;
    return e->values[2 * node + member];
}

/* Of a whole number whether it is not 0, of all its bits. */
static gemmepi__estimate gemmepi__truth_of(const gemmepi__evaluation *e, const gemmepi__node *n, int a,
                                           int member) {
    int node = n->args[a];
    return node >= 0 && e->formula->nodes[node].type == GEMMEPI__OF_WHOLE
               ? gemmepi__estimated(gemmepi__whole_at(e, node, member) != 0, 0)
               : gemmepi__argument(e, n, a, member);
}

static gemmepi__estimate gemmepi__estimate_uniform(const gemmepi__evaluation *e, const gemmepi__node *n,
                                                   int member) {
    int64_t row = e->unit->indices[GEMMEPI__INDEX_ROW], column = e->unit->column[member];
    int exchanged = e->formula->exchanged;
    return gemmepi__estimated(gemmepi__uniform(gemmepi__whole_at(e, n->args[0], 0),
                                               (uint32_t)(uint64_t)gemmepi__whole_at(e, n->args[1], 0),
                                               exchanged ? row : column, exchanged ? column : row,
                                               e->unit->indices[GEMMEPI__INDEX_ITEM]),
                              0);
}

/* What D stands for once it has stored x. */
static gemmepi__estimate gemmepi__estimate_rounded(const gemmepi__evaluation *e, gemmepi__estimate x) {
    gemmepi__estimate scale = gemmepi__estimated(e->unit->scale_d, 0), none = gemmepi__estimated(0, 0);
    if (!e->unit->scales_d)
        return gemmepi__estimate_stored(e->formula->d, x);
    x = gemmepi__estimate_arithmetic(&e->precision, GEMMEPI__OP_MUL, x, scale, none);
    x = gemmepi__estimate_stored(e->formula->d, x);
    return gemmepi__estimate_arithmetic(&e->precision, GEMMEPI__OP_DIV, x, scale, none);
}

static gemmepi__estimate gemmepi__estimate_operation(const gemmepi__evaluation *e, const gemmepi__node *n,
                                                     int member) {
    gemmepi__estimate x = gemmepi__argument(e, n, 0, member), y = gemmepi__argument(e, n, 1, member),
                      z = gemmepi__argument(e, n, 2, member);
    if (gemmepi__is_exact_comparison(e->formula, n))
        return gemmepi__estimate_whole_comparison(e, n, member);
    if (e->formula->accumulator == GEMMEPI_I32 && n->op >= GEMMEPI__OP_ADD && n->op <= GEMMEPI__OP_NEG)
        return gemmepi__estimate_whole(n->op, x.value, y.value);
    switch (n->op) {
    case GEMMEPI__OP_SELECT:
        return gemmepi__estimate_selection(gemmepi__truth_of(e, n, 0, member), y, z);
    case GEMMEPI__OP_OR:
    case GEMMEPI__OP_AND:
    case GEMMEPI__OP_NOT:
        return gemmepi__estimate_truth(n->op, gemmepi__truth_of(e, n, 0, member),
                                       gemmepi__truth_of(e, n, 1, member));
    case GEMMEPI__OP_NEG:
        return gemmepi__estimated(-x.value, x.bound);
    case GEMMEPI__OP_ABS:
        return gemmepi__estimated(fabs(x.value), x.bound);
    case GEMMEPI__OP_ISNAN:
        return gemmepi__estimated(x.value != x.value, x.bound > DBL_MAX);
    case GEMMEPI__OP_ROUNDED:
        return gemmepi__estimate_rounded(e, x);
    case GEMMEPI__OP_UNIFORM:
        return gemmepi__estimate_uniform(e, n, member);
    case GEMMEPI__OP_ACTIVATE:
    case GEMMEPI__OP_DERIVE:
        return gemmepi__estimate_activation(&e->precision, n, x, y);
    case GEMMEPI__OP_BOTH:
        return member ? y : x;
    case GEMMEPI__OP_FIRST:
    case GEMMEPI__OP_SECOND:
        return x;
    case GEMMEPI__OP_MIN:
    case GEMMEPI__OP_MAX:
    case GEMMEPI__OP_CLAMP:
        return gemmepi__estimate_order(n->op, x, y, z);
    default:
        if (gemmepi__divides_by_number(e->formula, n))
            return gemmepi__estimate_quotient(&e->precision, x, y.value);
        if (n->op <= GEMMEPI__OP_GE)
            return gemmepi__estimate_comparison(n->op, x, y);
        if (gemmepi__operation_of(n->op)->host)
            return gemmepi__estimate_one(&e->precision, n->op, x);
        return gemmepi__estimate_arithmetic(&e->precision, n->op, x, y, z);
    }
}

/* Fills in values, two of each node (the second of one that has a single member is not written). Of an output of the formula its
   values are those of its node: what is rounded once when stored, or goes into the reduction. */
static void gemmepi__evaluate(const gemmepi__formula *formula, const gemmepi__unit *unit,
                              gemmepi__estimate *values) {
    gemmepi__evaluation e;
    int node, member;
    e.formula = formula;
    e.unit = unit;
    e.precision = gemmepi__precision_of(formula);
    e.precision.values_only = unit->values_only;
    e.values = values;
    for (node = 0; node < formula->node_count; node++)
        for (member = 0; member < gemmepi__members(formula, formula->nodes[node].width); member++)
            values[2 * node + member] = formula->nodes[node].op < GEMMEPI__LEAVES
                                            ? gemmepi__estimate_leaf(&e, node, member)
                                            : gemmepi__estimate_operation(&e, &formula->nodes[node], member);
}

/* Of an output (a place among formula.operands) in a unit. */
static gemmepi__estimate gemmepi__output_value(const gemmepi__formula *formula,
                                               const gemmepi__estimate *values, int output, int member) {
    int node = formula->operands[output].node;
    return values[2 * node + (gemmepi__members(formula, formula->nodes[node].width) == 2 ? member : 0)];
}
#endif

#endif
