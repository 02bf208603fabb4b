/* What a formula's values may be off in the accumulator's type, beside what the host makes of them: evaluated once more, each number with a
   bound. The library needs no bounds; tests hold kernels to them, and the host's own evaluation to these values. */
#ifndef GEMMEPI_TESTS_FORMULA_BOUNDS_H
#define GEMMEPI_TESTS_FORMULA_BOUNDS_H

#include "test.h"

#include "formula/evaluate.h"

/* What a number is, and how far off it may be; an infinite bound says that it may be anything. */
typedef struct estimate {
    double value, bound;
} estimate;

/* All that a unit reads: of what is WIDE all members, else the first. */
typedef struct bounded_unit {
    estimate value[GPI__MOST_PARTS];
    estimate operands[GPI__FORMULA_OPERANDS][GPI__MOST_PARTS];
    int64_t whole[GPI__FORMULA_OPERANDS][GPI__MOST_PARTS]; /* of inputs in I32 and I64 instead */
    int64_t indices[GPI__INDICES];                         /* but for the column */
    int64_t column[GPI__MOST_PARTS];
    int scales_d; /* D has a scale, by which it is multiplied as it is stored */
    double scale_d;
    estimate (*look_up)(const void *tables, int operand,
                        int64_t index); /* an element of what is read by index */
    const void *tables;
} bounded_unit;

/* >>bounds */

static estimate estimated(double value, double bound) {
    estimate e;
    e.value = value;
    e.bound = bound == bound ? bound : HUGE_VAL;
    if (value != value && bound == 0)
        e.bound = 0;
    return e;
}

static double larger(double x, double y) {
    return x > y || x != x ? x : y; /* NaN is the largest */
}

/* How far f(x) is from y, where both may be the same infinity or no number. */
static double distance(double x, double y) {
    if (x == y || (x != x && y != y))
        return 0;
    return x != x || y != y ? HUGE_VAL : fabs(x - y);
}

/* What the function of the row moves within the bounds of x, of a monotone one. */
static double moves(double (*f)(double), double value, estimate x) {
    if (x.bound == 0)
        return 0;
    return larger(distance(f(x.value - x.bound), value), distance(f(x.value + x.bound), value));
}

static double divide(double x, double y) {
    return x / y;
}

/* Of a function of two numbers that is monotone in each, or, of numbers of one sign, is so apart from its sign. */
static double moves_of_two(double (*f)(double, double), double value, estimate x, estimate y) {
    double most = 0;
    int corner;
    if (x.bound == 0 && y.bound == 0)
        return 0;
    for (corner = 0; corner < 4; corner++)
        most = larger(most, distance(f(x.value + (corner & 1 ? x.bound : -x.bound),
                                       y.value + (corner & 2 ? y.bound : -y.bound)),
                                     value));
    return most;
}

static int may_be_0(estimate x) {
    return !(fabs(x.value) > x.bound);
}

/* Whether x is a condition that may be either. */
static int is_doubtful(estimate x) {
    return x.bound > 0 && may_be_0(x);
}

static double bound_of_product(estimate x, estimate y) {
    double of_y = y.bound == 0 ? 0 : fabs(x.value) * y.bound,
           of_x = x.bound == 0 ? 0 : fabs(y.value) * x.bound;
    return of_x + of_y + (x.bound == 0 || y.bound == 0 ? 0 : x.bound * y.bound);
}

/* u of the accumulator, and its smallest subnormal */
typedef struct precision {
    double unit, smallest;
    int is_f64, is_short;
} precision;

static precision precision_of(const gpi__formula *formula) {
    precision p;
    p.is_f64 = formula->accumulator == GEMMEPI_F64;
    p.unit = p.is_f64 ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    /* what the F32 functions of the hardware make of subnormal numbers may be 0 */
    p.smallest = p.is_f64 ? DBL_MIN * DBL_EPSILON : FLT_MIN;
    p.is_short = formula->is_short;
    return p;
}

/* What a result may be off by rounding: it is above the range of F32, too. */
static double rounding(const precision *p, double value, double units) {
    double size = fabs(value);
    if (units == 0 || value == 0 || size > DBL_MAX)
        return 0;
    if (!p->is_f64 && size > FLT_MAX * (1 - units * p->unit))
        return HUGE_VAL;
    /* the host's own rounding, too */
    return (units * p->unit + DBL_EPSILON) * size + (size < p->smallest / p->unit ? p->smallest : 0);
}

/* >>activations: what kernels/activation.cuh says of them */

typedef double activation_function(uint32_t activation, double parameter, double x);

static double derivative_there(uint32_t activation, double parameter, double x) {
    return gpi__times_derivative(activation, parameter, 1, x);
}

/* Relative, of the short forms. */
static double short_units(uint32_t code, int is_derivative, double size) {
    if (!is_derivative && code == GEMMEPI_GELU_ERF)
        return 2048;
    return size < 2 ? 18 : size < 5 ? 100 : size < 10 ? 170 : 4096;
}

/* The largest slope of the GELUs: their forms for products, which cuBLASLt's is one of, are held to the error of v by it, wherever v is. */
#define GELU_SLOPE 1.13

/* f moves by |f'| within the bounds, and, of those that have a least value, by what lies between: |f''| is 2 (1 + |p|) at most. */
static estimate estimate_activation(const precision *p, const gpi__node *node, estimate x,
                                    estimate parameter) {
    int is_derivative = node->op == GPI__OP_DERIVE, i;
    activation_function *f = is_derivative ? derivative_there : gpi__activate;
    uint32_t code = (uint32_t)gpi__activations[node->place].code;
    double b = x.bound + 2 * p->unit * fabs(x.value), size = fabs(x.value);
    double value = f(code, parameter.value, x.value), moved = 0, units = 4, terms = fabs(value);
    if (code == GEMMEPI_RELU && !is_derivative)
        return estimated(value, x.bound);
    for (i = 0; i < 4; i++)
        moved = larger(moved, distance(f(code, parameter.value + (i & 2 ? parameter.bound : -parameter.bound),
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
        units = short_units(code, is_derivative, size);
    if (p->is_short && code == GEMMEPI_GELU_ERF && !is_derivative)
        moved += 8 * p->unit * size;
    if (p->is_short && !is_derivative && (code == GEMMEPI_GELU_ERF || code == GEMMEPI_GELU_TANH))
        moved = larger(moved, GELU_SLOPE * x.bound);
    if (p->is_short && !is_derivative && x.value < 0 &&
        (code == GEMMEPI_SILU || code == GEMMEPI_GELU_TANH || code == GEMMEPI_QUICK_GELU ||
         code == GEMMEPI_GELU_ERF))
        moved += 1e-36; /* of these the form for sums ends its tail there */
    return estimated(value,
                     moved + rounding(p, terms, units) + (value == 0 && x.value != 0 ? p->smallest : 0));
}

/* >>operations */

static estimate estimate_comparison(int op, estimate x, estimate y) {
    double out = 0, reach = x.bound + y.bound;
    int in_doubt = reach > 0 && !(fabs(x.value - y.value) > reach);
    gpi__fold_truth(op, x.value, y.value, &out);
    if ((x.value != x.value || y.value != y.value) && reach <= DBL_MAX)
        in_doubt = 0;
    return estimated(out, in_doubt);
}

static estimate estimate_selection(estimate c, estimate x, estimate y) {
    estimate taken = c.value != 0 ? x : y, other = c.value != 0 ? y : x;
    if (!is_doubtful(c))
        return taken;
    return estimated(taken.value, larger(taken.bound, distance(other.value, taken.value) + other.bound));
}

static estimate estimate_truth(int op, estimate x, estimate y) {
    double out = 0;
    int x_in_doubt = is_doubtful(x), y_in_doubt = is_doubtful(y);
    /* one that is certain decides an && by 0 and an || by 1 */
    int decided = op == GPI__OP_NOT   ? 0
                  : op == GPI__OP_AND ? (!x_in_doubt && x.value == 0) || (!y_in_doubt && y.value == 0)
                                      : (!x_in_doubt && x.value != 0) || (!y_in_doubt && y.value != 0);
    gpi__fold_truth(op, x.value, y.value, &out);
    return estimated(out, !decided && (x_in_doubt || (op != GPI__OP_NOT && y_in_doubt)));
}

/* mod: a jump of y lies where x / y is whole, and where x changes its sign so does the result. */
static double moves_of_mod(estimate x, estimate y) {
    double first = trunc(x.value / y.value), most = fabs(y.value) + y.bound;
    int corner;
    if (x.bound == 0 && y.bound == 0)
        return 0;
    if (may_be_0(y)) /* NaN */
        return HUGE_VAL;
    for (corner = 0; corner < 4; corner++)
        if (trunc((x.value + (corner & 1 ? x.bound : -x.bound)) /
                  (y.value + (corner & 2 ? y.bound : -y.bound))) != first)
            return may_be_0(x) ? 2 * most : most;
    return x.bound + fabs(first) * y.bound;
}

/* pow is monotone in each but where x goes over 0; where that may be a pole, or x^y no number, nothing is known. */
static double moves_of_pow(double value, estimate x, estimate y) {
    double most = moves_of_two(pow, value, x, y);
    if ((x.bound > 0 && may_be_0(x) && y.value - y.bound < 0) || (y.bound > 0 && x.value - x.bound < 0))
        return HUGE_VAL;
    return x.bound > 0 && may_be_0(x) ? most + fabs(value) : most;
}

static estimate estimate_stored(int dtype, estimate x) {
    double value = gpi__as_stored(dtype, x.value);
    if (x.bound == 0)
        return estimated(value, 0);
    return estimated(value, larger(distance(gpi__as_stored(dtype, x.value + x.bound), value),
                                   distance(gpi__as_stored(dtype, x.value - x.bound), value)));
}

static estimate estimate_one(const precision *p, int op, estimate x) {
    const gpi__operation_of_formula *row = gpi__operation_of(op);
    double units = 2 * (p->is_f64 ? row->ulps_f64 : row->ulps_f32), value = row->host(x.value), moved;
    if (row->traits & GPI__WAVES && p->is_short) /* kernels/trig.cuh */
        x.bound += ldexp(fabs(x.value), -48), units = 23;
    if (row->traits & GPI__WAVES)
        moved = x.bound < 2 ? x.bound : 2;
    else
        moved = moves(row->host, value, x);
    return estimated(value, moved + rounding(p, value, units) +
                                (value == 0 && x.value != 0 && units > 0 ? p->smallest : 0));
}

/* Whether nothing is rounded off. */
static int is_exact(int op, double x, double y, double value) {
    y = op == GPI__OP_SUB ? -y : y;
    switch (op) {
    case GPI__OP_ADD:
    case GPI__OP_SUB:
        return value - x == y && value - y == x;
    case GPI__OP_MUL:
        return fma(x, y, -value) == 0 && (value != 0 || x == 0 || y == 0);
    case GPI__OP_DIV:
        return fma(value, y, -x) == 0 && (value != 0 || x == 0);
    default:
        return 0;
    }
}

/* Arithmetic of numbers, each rounded. */
static estimate estimate_arithmetic(const precision *p, int op, estimate x, estimate y, estimate z) {
    const gpi__operation_of_formula *row = gpi__operation_of(op);
    double value, moved = x.bound + y.bound;
    switch (op) {
    case GPI__OP_ADD:
        value = x.value + y.value;
        break;
    case GPI__OP_SUB:
        value = x.value - y.value;
        break;
    case GPI__OP_MUL:
        value = x.value * y.value;
        moved = bound_of_product(x, y);
        break;
    case GPI__OP_DIV:
        value = x.value / y.value;
        moved = y.bound > 0 && may_be_0(y) ? HUGE_VAL : moves_of_two(divide, value, x, y);
        break;
    case GPI__OP_FMA:
        value = fma(x.value, y.value, z.value);
        moved = bound_of_product(x, y) + z.bound;
        break;
    case GPI__OP_POW:
        value = pow(x.value, y.value);
        moved = moves_of_pow(value, x, y);
        break;
    default: /* MOD */
        value = fmod(x.value, y.value);
        moved = moves_of_mod(x, y);
    }
    if (moved == 0 && (p->is_f64 || gpi__f32_holds(value)) && is_exact(op, x.value, y.value, value))
        return estimated(value, 0);
    return estimated(value, moved + rounding(p, value, 2 * (p->is_f64 ? row->ulps_f64 : row->ulps_f32)));
}

/* x times the reciprocal of a number, which is rounded, too, as the number itself is not. */
static estimate estimate_quotient(const precision *p, estimate x, double number) {
    double value = x.value / number;
    return estimated(value, x.bound / fabs(number) + rounding(p, value, 2.001));
}

static estimate estimate_order(int op, estimate x, estimate y, estimate z) {
    double bound = larger(x.bound, y.bound);
    if (op == GPI__OP_MIN)
        return estimated(gpi__min_of(x.value, y.value), bound);
    if (op == GPI__OP_MAX)
        return estimated(gpi__max_of(x.value, y.value), bound);
    return estimated(gpi__min_of(gpi__max_of(x.value, y.value), z.value), larger(bound, z.bound));
}

/* Of results in I32: modulo 2^32. */
static estimate estimate_whole(int op, double x, double y) {
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
    return estimated(gpi__signed(out), 0);
}

/* >>nodes */

typedef struct bounded_evaluation {
    const gpi__formula *formula;
    const bounded_unit *unit;
    precision precision;
    estimate *values; /* of each node as many as there are parts */
} bounded_evaluation;

/* A whole number: of the index or the operand, or the half of one. */
static int64_t bounded_whole_at(const bounded_evaluation *e, int node, int member) {
    const gpi__node *n = &e->formula->nodes[node];
    if (n->op == GPI__OP_PART)
        return bounded_whole_at(e, n->args[0], n->place);
    if (n->op == GPI__OP_NUMBER)
        return (int64_t)n->number;
    if (gpi__members(e->formula, n->width) == 1)
        member = 0;
    if (n->type != GPI__OF_WHOLE) /* with results in I32 */
        return gpi__wrap(e->values[e->formula->parts * node + member].value);
    if (n->op == GPI__OP_OPERAND)
        return e->unit->whole[n->place][member];
    return n->place == GPI__INDEX_COLUMN ? e->unit->column[member] : e->unit->indices[n->place];
}

static estimate estimate_whole_comparison(const bounded_evaluation *e, const gpi__node *n, int member) {
    int64_t x = bounded_whole_at(e, n->args[0], member), y = bounded_whole_at(e, n->args[1], member);
    double out = 0;
    gpi__fold_truth(n->op, x < y ? -1 : x > y, 0, &out);
    return estimated(out, 0);
}

/* A number that the accumulator must hold: of whole numbers that are large and of the formula's own. */
static estimate as_accumulator(const bounded_evaluation *e, double x) {
    if (e->formula->accumulator == GEMMEPI_I32)
        return estimated(gpi__wrap(x), 0);
    return estimated(x, e->precision.is_f64 || gpi__f32_holds(x) ? 0 : rounding(&e->precision, x, 1));
}

/* Of the formula's text: in F32 kernels have it rounded. */
static estimate estimate_number(const bounded_evaluation *e, double number) {
    estimate estimate = as_accumulator(e, number);
    if (e->formula->accumulator == GEMMEPI_F32 && fabs(number) < GPI__ROUNDS_TO_INFINITY)
        estimate.value = (double)(float)number;
    return estimate;
}

static estimate estimate_leaf(const bounded_evaluation *e, int node, int member) {
    const gpi__node *n = &e->formula->nodes[node];
    int64_t whole;
    if (n->op == GPI__OP_NUMBER)
        return estimate_number(e, n->number);
    if (n->op == GPI__OP_VALUE)
        return e->unit->value[member];
    if (n->type != GPI__OF_WHOLE)
        return e->unit->operands[n->place][member];
    whole = bounded_whole_at(e, node, member);
    if (e->formula->accumulator == GEMMEPI_I32)
        return estimated(gpi__signed((uint32_t)(uint64_t)whole), 0);
    /* (double) rounds beyond 2^53 */
    return estimated((double)whole, gpi__f32_holds((double)whole) && whole < ((int64_t)1 << 53) &&
                                            whole > -((int64_t)1 << 53)
                                        ? 0
                                        : rounding(&e->precision, (double)whole, 1));
}

/* The member of an argument that one of a node is made of. */
static estimate bounded_argument(const bounded_evaluation *e, const gpi__node *n, int a, int member) {
    static const estimate none = {0, 0};
    int node = n->args[a];
    if (node < 0)
        return none;
    if (n->op == GPI__OP_PART)
        member = n->place;
    else if (gpi__members(e->formula, e->formula->nodes[node].width) == 1)
        member = 0;
    return e->values[e->formula->parts * node + member];
}

/* Of a whole number whether it is not 0, of all its bits. */
static estimate bounded_truth_of(const bounded_evaluation *e, const gpi__node *n, int a, int member) {
    int node = n->args[a];
    return node >= 0 && e->formula->nodes[node].type == GPI__OF_WHOLE
               ? estimated(bounded_whole_at(e, node, member) != 0, 0)
               : bounded_argument(e, n, a, member);
}

/* The random number of a function whose arguments from `at` on are its seed and i. */
static double random_there(const bounded_evaluation *e, const gpi__node *n, int at, int member) {
    int64_t row = e->unit->indices[GPI__INDEX_ROW], column = e->unit->column[member];
    int exchanged = e->formula->exchanged;
    return gpi__uniform(bounded_whole_at(e, n->args[at], 0),
                        (uint32_t)(uint64_t)bounded_whole_at(e, n->args[at + 1], 0), exchanged ? row : column,
                        exchanged ? column : row, e->unit->indices[GPI__INDEX_ITEM]);
}

/* Rounded by chance it does not fall as x rises. */
static estimate estimate_stochastic(const bounded_evaluation *e, const gpi__node *n, estimate x, int member) {
    double u = random_there(e, n, 1, member), value = gpi__round_by_chance(n->place, x.value, u);
    if (x.bound == 0)
        return estimated(value, 0);
    return estimated(value, larger(distance(gpi__round_by_chance(n->place, x.value + x.bound, u), value),
                                   distance(gpi__round_by_chance(n->place, x.value - x.bound, u), value)));
}

/* What D stands for once it has stored x. */
static estimate estimate_rounded(const bounded_evaluation *e, estimate x) {
    estimate scale = estimated(e->unit->scale_d, 0), none = estimated(0, 0);
    if (!e->unit->scales_d)
        return estimate_stored(e->formula->d, x);
    x = estimate_arithmetic(&e->precision, GPI__OP_MUL, x, scale, none);
    x = estimate_stored(e->formula->d, x);
    return estimate_arithmetic(&e->precision, GPI__OP_DIV, x, scale, none);
}

static estimate estimate_operation(const bounded_evaluation *e, const gpi__node *n, int member) {
    estimate x = bounded_argument(e, n, 0, member), y = bounded_argument(e, n, 1, member),
             z = bounded_argument(e, n, 2, member);
    if (gpi__is_exact_comparison(e->formula, n))
        return estimate_whole_comparison(e, n, member);
    if (e->formula->accumulator == GEMMEPI_I32 && n->op >= GPI__OP_ADD && n->op <= GPI__OP_NEG)
        return estimate_whole(n->op, x.value, y.value);
    switch (n->op) {
    case GPI__OP_SELECT:
        return estimate_selection(bounded_truth_of(e, n, 0, member), y, z);
    case GPI__OP_OR:
    case GPI__OP_AND:
    case GPI__OP_NOT:
        return estimate_truth(n->op, bounded_truth_of(e, n, 0, member), bounded_truth_of(e, n, 1, member));
    case GPI__OP_NEG:
        return estimated(-x.value, x.bound);
    case GPI__OP_ABS:
        return estimated(fabs(x.value), x.bound);
    case GPI__OP_ISNAN:
        return estimated(x.value != x.value, x.bound > DBL_MAX);
    case GPI__OP_ROUNDED:
        return estimate_rounded(e, x);
    case GPI__OP_UNIFORM:
        return estimated(random_there(e, n, 0, member), 0);
    case GPI__OP_STOCHASTIC:
        return estimate_stochastic(e, n, x, member);
    case GPI__OP_LOOK_UP:
        return e->unit->look_up(e->unit->tables, n->place, bounded_whole_at(e, n->args[0], member));
    case GPI__OP_ACTIVATE:
    case GPI__OP_DERIVE:
        return estimate_activation(&e->precision, n, x, y);
    case GPI__OP_JOIN:
        return member > n->place ? y : x;
    case GPI__OP_PART:
        return x;
    case GPI__OP_MIN:
    case GPI__OP_MAX:
    case GPI__OP_CLAMP:
        return estimate_order(n->op, x, y, z);
    default:
        if (gpi__divides_by_number(e->formula, n))
            return estimate_quotient(&e->precision, x, y.value);
        if (n->op <= GPI__OP_GE)
            return estimate_comparison(n->op, x, y);
        if (gpi__operation_of(n->op)->host)
            return estimate_one(&e->precision, n->op, x);
        return estimate_arithmetic(&e->precision, n->op, x, y, z);
    }
}

static double look_up_value(const void *unit, int operand, int64_t index) {
    const bounded_unit *bounded = (const bounded_unit *)unit;
    return bounded->look_up(bounded->tables, operand, index).value;
}

/* What the host reads: a run of a few units that are all this one. */
static void read_by_host(const gpi__formula *formula, const bounded_unit *bounded, gpi__run *run) {
    int node, member, i;
    run->formula = formula;
    run->count = 3;
    run->step = 0, run->has_constants = 0;
    memcpy(run->columns, bounded->column, sizeof run->columns);
    memcpy(run->indices, bounded->indices, sizeof run->indices);
    run->scales_d = bounded->scales_d, run->scale_d = bounded->scale_d;
    run->look_up = look_up_value, run->tables = bounded;
    for (node = 0; node < formula->node_count; node++)
        for (member = 0; member < gpi__members(formula, formula->nodes[node].width); member++)
            for (i = 0; i < run->count; i++) {
                const gpi__node *n = &formula->nodes[node];
                gpi__cells *cells = gpi__cells_of(run, node, member);
                if (n->op == GPI__OP_VALUE)
                    cells->numbers[i] = bounded->value[member].value;
                else if (n->op == GPI__OP_OPERAND && n->type == GPI__OF_WHOLE)
                    cells->whole[i] = bounded->whole[n->place][member];
                else if (n->op == GPI__OP_OPERAND)
                    cells->numbers[i] = bounded->operands[n->place][member].value;
            }
}

/* The host's own evaluation has the same values. */
static void host_has_the_same_values(const gpi__formula *formula, const bounded_unit *bounded,
                                     const estimate *values) {
    double room[GPI__UNITS];
    gpi__run run;
    int node, member, i;
    run.values =
        (gpi__cells *)malloc(sizeof *run.values * (size_t)(formula->parts * (formula->node_count + 1)));
    read_by_host(formula, bounded, &run);
    gpi__evaluate(&run);
    for (node = 0; node < formula->node_count; node++)
        for (member = 0; member < gpi__members(formula, formula->nodes[node].width); member++)
            for (i = 0; i < run.count; i++) {
                double x = gpi__numbers_of(&run, node, member, room)[i],
                       y = values[formula->parts * node + member].value;
                CHECK((x == y && !signbit(x) == !signbit(y)) || (x != x && y != y),
                      "node %d, operation %d: %.17g, not %.17g", node, formula->nodes[node].op, x, y);
            }
    free(run.values);
}

/* Fills in values, formula->parts of each node (of one that has a single member the first). Of an output of the formula its
   values are those of its node: what is rounded once when stored, or goes into the reduction. */
static void evaluate_bounded(const gpi__formula *formula, const bounded_unit *unit, estimate *values) {
    bounded_evaluation e;
    int node, member;
    e.formula = formula;
    e.unit = unit;
    e.precision = precision_of(formula);
    e.values = values;
    for (node = 0; node < formula->node_count; node++)
        for (member = 0; member < gpi__members(formula, formula->nodes[node].width); member++)
            values[formula->parts * node + member] =
                formula->nodes[node].op < GPI__LEAVES ? estimate_leaf(&e, node, member)
                                                      : estimate_operation(&e, &formula->nodes[node], member);
    host_has_the_same_values(formula, unit, values);
}

/* Of an output (a place among formula.operands) in a unit. */
static estimate bounded_output(const gpi__formula *formula, const estimate *values, int output, int member) {
    int node = formula->operands[output].node;
    return values[formula->parts * node +
                  (gpi__members(formula, formula->nodes[node].width) > 1 ? member : 0)];
}
#endif
