/* What an element-wise operation must give, and how far from it an answer may be, worked out one index at a time from the
   tensors as they lie in memory. It shares no line with src/; of gemmepi.h it uses names of constants only. Numbers of each
   dtype, activations and derivatives are those of the products' oracle.

   The bounds are those of the manual, with u the unit roundoff of F32 (F64 in F64) and the stored type's own rounding on
   top where that is coarser:

       out = f(x (1 + d)) (1 + e), |d| <= 2u, |e| <= 4u     or     |out - ref| <= 4u times the largest term

   where results of 16 bits may have 2^-12 in e for the functions that have an exponential, and be 0 below 2^-126. A
   product with dy or a gate's value is one more rounding. f is taken at both ends of d.
   Selections and copies are exact, so is lerp at 0 and 1. A sum has the bounds of its terms and, of the sum of their
   magnitudes, 4 * 2^-24 where 16-bit values are added (eight at a time in F32) and (8 + 2 sqrt n) 2^-53 where not.
   Casts are exact; with scales y is what one of the numbers within 4u of scale a rounds to. */
#ifndef GEMMEPI_TESTS_ELEMENTWISE_ORACLE_H
#define GEMMEPI_TESTS_ELEMENTWISE_ORACLE_H

#include "../products/problem.h"

#include <float.h>

enum { E_A, E_B, E_W, E_DY, E_Y, E_DA, E_DB, E_DW, E_TURNED, E_TENSORS };

static const char *const element_names[] = {"a", "b", "w", "dy", "y", "da", "db", "dw", "y_transposed"};

typedef struct strided {
    int used;
    gemmepi_dtype dtype;
    int rank;
    int64_t shape[8], stride[8]; /* in elements */
    unsigned char *first;        /* the element whose indices are all 0 */
} strided;

/* An operation and where its tensors lie. y is without b what a (da) has in two halves. */
typedef struct operation {
    gemmepi_operation kind;
    gemmepi_epilogue activation; /* GATE_FIRST or not */
    int has_parameter;           /* 0: the default, and parameter is 0 */
    double parameter;
    double weight;
    int axis;
    gemmepi_scale_mode mode;
    uint64_t flags;
    strided t[E_TENSORS];
} operation;

/* >>tensors */

static int64_t strided_count(const strided *t) {
    int64_t count = 1;
    int d;
    for (d = 0; d < t->rank; d++)
        count *= t->shape[d];
    return count;
}

/* The element at an index of `rank` axes, to which the tensor is broadcast. */
static unsigned char *strided_at(const strided *t, int rank, const int64_t *index) {
    int64_t at = 0;
    int d;
    for (d = 0; d < t->rank; d++)
        if (t->shape[d] != 1)
            at += index[rank - t->rank + d] * t->stride[d];
    return t->first + at * (int64_t)oracle_format(t->dtype).size;
}

static double strided_get(const strided *t, int rank, const int64_t *index) {
    return oracle_decode(t->dtype, strided_at(t, rank, index));
}

/* The number of the element among all, as a dense tensor has them. */
static int64_t strided_number(const strided *t, int rank, const int64_t *index) {
    int64_t number = 0;
    int d;
    for (d = 0; d < t->rank; d++)
        number = number * t->shape[d] + (t->shape[d] != 1 ? index[rank - t->rank + d] : 0);
    return number;
}

/* The next index, the last axis first; 0 after the last. */
static int index_next(int rank, const int64_t *shape, int64_t *index) {
    int d;
    for (d = rank - 1; d >= 0; d--) {
        if (++index[d] < shape[d])
            return 1;
        index[d] = 0;
    }
    return 0;
}

/* The last two axes exchanged. */
static strided strided_turned(const strided *t) {
    strided turned = *t;
    int last = t->rank - 1;
    turned.shape[last] = t->shape[last - 1], turned.shape[last - 1] = t->shape[last];
    turned.stride[last] = t->stride[last - 1], turned.stride[last - 1] = t->stride[last];
    return turned;
}

static const strided *operation_shaped(const operation *o) {
    return o->kind == GEMMEPI_OP_BIAS_GRAD ? &o->t[E_A] : o->t[E_Y].used ? &o->t[E_Y] : &o->t[E_DY];
}

static unsigned operation_activation(const operation *o) {
    return (unsigned)(o->activation & GEMMEPI_ACTIVATION_MASK);
}

static int operation_is_split(const operation *o) {
    return (o->kind == GEMMEPI_OP_GATED || o->kind == GEMMEPI_OP_GATED_BACKWARD) && !o->t[E_B].used;
}

static int operation_axis(const operation *o) {
    return o->axis < 0 ? o->axis + operation_shaped(o)->rank : o->axis;
}

/* Moves the index of a split tensor to its value (0) or gate (1). */
static void index_halve(const operation *o, int half, int64_t *index) {
    int second = half != ((o->activation & GEMMEPI_GATE_FIRST) != 0);
    if (second)
        index[operation_axis(o)] += operation_shaped(o)->shape[operation_axis(o)];
}

/* The value of input t; b of a split operation is a's gate. */
static double operation_get(const operation *o, int t, const int64_t *index) {
    const strided *shaped = operation_shaped(o);
    int64_t moved[8];
    memcpy(moved, index, sizeof moved);
    if (t == E_W && !o->t[E_W].used)
        return o->weight;
    if (operation_is_split(o) && (t == E_A || t == E_B)) {
        index_halve(o, t == E_B, moved);
        t = E_A;
    }
    return o->t[t].used ? strided_get(&o->t[t], shaped->rank, moved) : 0;
}

/* >>one term */

/* A value and how far from it an answer may be. exact: not at all, copied: nor in the sign of a zero; free: the formula has
   infinity times what may or may not be rounded to 0. */
typedef struct term {
    wide value;
    double bound;
    int exact, copied, free;
} term;

/* u of what is computed. */
static double operation_roundoff(const operation *o) {
    int t;
    for (t = 0; t < E_TENSORS; t++)
        if (o->t[t].used && o->t[t].dtype == GEMMEPI_F64)
            return ldexp(1, -53);
    return ldexp(1, -24);
}

static double operation_smallest(const operation *o) {
    return operation_roundoff(o) < ldexp(1, -50) ? ldexp(1, -1074) : ldexp(1, -149);
}

static int is_16_bits(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_F16 || dtype == GEMMEPI_BF16;
}

static int is_transcendental(unsigned activation) {
    return !activation_has(activation, ACTIVATION_IS_RATIONAL);
}

/* e: what a term may be off in relative terms, and what else in absolute ones. kernels/activation.cuh says from where on
   those of 16 bits may be 0. */
static double operation_slack(const operation *o, unsigned activation) {
    double u = operation_roundoff(o);
    return 4 * u +
           (is_16_bits(operation_shaped(o)->dtype) && is_transcendental(activation) ? ldexp(1, -12) : 0);
}

static double operation_floor(const operation *o, unsigned activation) {
    if (is_16_bits(operation_shaped(o)->dtype) && is_transcendental(activation))
        return ldexp(1, -126);
    return 2 * operation_smallest(o);
}

static double larger_of(double x, double y) {
    return x > y ? x : y;
}

/* The value of the activation at x, or of its derivative, and what it may be off. */
static term term_of_slope(const operation *o, int derivative, double x) {
    unsigned activation = operation_activation(o);
    double parameter = oracle_given_parameter(activation, o->has_parameter, o->parameter),
           u = operation_roundoff(o), magnitude = 0;
    term t = {0, 0, 0, 0, 0};
    int side;
    t.exact = activation == GEMMEPI_NONE || activation == GEMMEPI_RELU;
    t.value = derivative ? oracle_derivative(activation, parameter, x, &magnitude)
                         : oracle_activation(activation, parameter, x);
    if (!derivative)
        magnitude = fabs((double)t.value);
    if (!derivative && activation == GEMMEPI_SQUARED_RELU && x > 0) /* a double may lose these */
        t.value = (wide)x * x;
    if (!derivative && activation == GEMMEPI_LEAKY_RELU && x < 0)
        t.value = (wide)parameter * x;
    if (t.exact || isnan((double)t.value) || isinf((double)t.value))
        return t;
    for (side = -1; side <= 1 && !activation_has(activation, ACTIVATION_JUMPS); side += 2) {
        double near = x * (1 + side * 2 * u), wanted = fabs(x) * 2 * u, moved = fabs(near - x), there, unused;
        if (isinf(near) || moved == 0)
            continue;
        there = derivative ? oracle_derivative(activation, parameter, near, &unused)
                           : oracle_activation(activation, parameter, near);
        there = fabs(there - (double)t.value) * (moved < wanted ? wanted / moved : 1); /* near is rounded */
        t.bound = larger_of(t.bound, there);
    }
    t.bound += operation_slack(o, activation) * magnitude + operation_floor(o, activation);
    if (u < ldexp(1, -50)) /* a factor of x may be below the normal range, of which F64 has no more room */
        t.bound += (fabs(x) < 1000 ? fabs(x) : 1000) * operation_smallest(o);
    return t;
}

/* factor times the slope, to the letter at infinities but where both are too near to the ends of the range */
static term term_times(const operation *o, wide factor, term slope) {
    double size = fabs((double)slope.value);
    term t = slope;
    t.value *= factor;
    t.free = isinf(factor) && size < ldexp(1, -120) && slope.value != 0;
    t.bound = isinf(factor) || isnan(factor)
                  ? 0
                  : (double)(slope.bound * fabsl(factor)) + operation_floor(o, operation_activation(o)) +
                        operation_roundoff(o) * fabs((double)t.value);
    if (slope.exact) /* a product that is rounded */
        t.bound = 2 * operation_roundoff(o) * fabs((double)t.value) + operation_smallest(o);
    t.exact = 0;
    return t;
}

/* factor act'(x) */
static term term_backward(const operation *o, wide factor, double x, int factor_is_exact) {
    static const term zero = {0, 0, 1, 0, 0};
    unsigned activation = operation_activation(o);
    term t = zero;
    if (activation == GEMMEPI_RELU || activation == GEMMEPI_NONE) {
        t.value = x > 0 || activation == GEMMEPI_NONE ? factor : 0;
        t.exact = factor_is_exact;
        t.bound = t.exact ? 0 : 2 * operation_roundoff(o) * fabs((double)t.value) + operation_smallest(o);
        return t;
    }
    return oracle_selects_0(activation, x) ? zero : term_times(o, factor, term_of_slope(o, 1, x));
}

static term term_lerp(const operation *o, wide a, wide b, wide w) {
    term t = {0, 0, 0, 0, 0};
    wide moved = w * (b - a), back = (b - a) * (1 - w);
    int near = fabsl(w) < 0.5L;
    t.value = near ? a + moved : b - back;
    t.exact = isfinite((double)(b - a)) && (w == 0 || w == 1);
    if (t.exact)
        t.value = w == 0 ? a : b;
    else if (isfinite((double)t.value))
        t.bound = 4 * operation_roundoff(o) *
                      (double)(near ? fmaxl(fabsl(a), fabsl(moved)) : fmaxl(fabsl(b), fabsl(back))) +
                  2 * operation_smallest(o);
    return t;
}

/* What goes into output `out` for the index: y, da, db (da's gate where a is split) or dw. */
static term oracle_term(const operation *o, int out, const int64_t *index) {
    double a = operation_get(o, E_A, index), b = operation_get(o, E_B, index),
           w = operation_get(o, E_W, index), dy = operation_get(o, E_DY, index);
    term t = {0, 0, 1, 1, 0};
    switch (o->kind) {
    case GEMMEPI_OP_ACTIVATION:
        t = term_of_slope(o, 0, a);
        t.copied = operation_activation(o) == GEMMEPI_NONE;
        return t;
    case GEMMEPI_OP_ACTIVATION_BACKWARD:
        return term_backward(o, dy, a, 1);
    case GEMMEPI_OP_GATED:
        return term_times(o, a, term_of_slope(o, 0, b));
    case GEMMEPI_OP_GATED_BACKWARD:
        return out == E_DA ? term_times(o, dy, term_of_slope(o, 0, b)) : term_backward(o, (wide)dy * a, b, 0);
    case GEMMEPI_OP_LERP:
        return term_lerp(o, a, b, w);
    case GEMMEPI_OP_LERP_BACKWARD:
        t.value = out == E_DA ? (1 - (wide)w) * dy : out == E_DB ? (wide)w * dy : (wide)dy * ((wide)b - a);
        t.exact = t.copied = 0;
        if (isfinite((double)t.value))
            t.bound = 4 * operation_roundoff(o) * fabs((double)t.value) + 2 * operation_smallest(o);
        return t;
    default:
        t.value = a;
        return t;
    }
}

/* Whether `got`, of this dtype, is the term's value as near as it must be. */
static int term_allows(const term *t, gemmepi_dtype dtype, double got) {
    double value = (double)t->value;
    if (t->free)
        return 1;
    if (isnan(value))
        return isnan(got);
    if (t->copied && (signbit(value) != 0) != (signbit(got) != 0))
        return 0;
    if (t->exact || isinf(value))
        return got == oracle_round(dtype, value);
    return got >= oracle_round(dtype, (double)(t->value - t->bound)) &&
           got <= oracle_round(dtype, (double)(t->value + t->bound));
}

/* >>sums */

typedef struct sum {
    wide value;
    double magnitude, bound;
    int64_t count;
    int free;
} sum;

static void sum_add(sum *s, const term *t) {
    s->value += t->value;
    s->magnitude += fabs((double)t->value);
    s->bound += t->bound;
    s->free |= t->free;
    s->count++;
}

/* Terms of an operation whose tensors have 16 bits are added eight at a time in F32. */
static term sum_close(const operation *o, const sum *s) {
    term t = {0, 0, 0, 0, 0};
    double loss = is_16_bits(operation_shaped(o)->dtype) ? ldexp(4, -24) : 0;
    t.value = s->value;
    t.free = s->free;
    t.exact = s->count == 0;
    if (isfinite((double)s->value))
        t.bound = s->bound + s->magnitude * (loss + ldexp(8 + 2 * sqrt((double)s->count), -53)) +
                  (operation_roundoff(o) < ldexp(1, -50) ? 2 * ldexp(1, -53) * fabs((double)s->value) : 0);
    return t;
}

/* >>casts with scales */

/* Which of the scales goes with an element of a, and how many there are: the matrices are the last two axes. */
typedef struct scale_layout {
    gemmepi_scale_mode mode;
    int64_t rows, k, items, per_item;
    int rank, k_axis, row_axis; /* -1: there is none, its extent is 1 */
    const int64_t *shape;
} scale_layout;

static scale_layout scale_layout_of(const operation *o) {
    const strided *a = &o->t[E_A];
    int k_is_rows = (o->flags & GEMMEPI_CAST_K_IS_ROWS) != 0, d;
    scale_layout s;
    memset(&s, 0, sizeof s);
    s.mode = o->mode ? o->mode : GEMMEPI_SCALE_TENSOR;
    s.rank = a->rank;
    s.shape = a->shape;
    s.k_axis = k_is_rows ? a->rank - 2 : a->rank - 1;
    s.row_axis = k_is_rows ? a->rank - 1 : a->rank >= 2 ? a->rank - 2 : -1;
    s.k = s.k_axis >= 0 ? a->shape[s.k_axis] : 1;
    s.rows = s.row_axis >= 0 ? a->shape[s.row_axis] : 1;
    s.items = 1;
    for (d = 0; d < a->rank - 2; d++)
        s.items *= a->shape[d];
    s.per_item = s.mode == GEMMEPI_SCALE_OUTER        ? s.rows
                 : s.mode == GEMMEPI_SCALE_VECTOR_128 ? (s.k + 127) / 128 * s.rows
                 : s.mode == GEMMEPI_SCALE_BLOCK_128  ? (s.rows + 127) / 128 * ((s.k + 511) / 512 * 4)
                                                      : 0;
    return s;
}

/* Room for all numbers. */
static int64_t scale_count(const scale_layout *s) {
    return s->mode == GEMMEPI_SCALE_TENSOR ? 1 : s->items * s->per_item;
}

static int64_t scale_number(const scale_layout *s, const int64_t *index) {
    int64_t item = 0, row = s->row_axis >= 0 ? index[s->row_axis] : 0,
            k = s->k_axis >= 0 ? index[s->k_axis] : 0;
    int d;
    for (d = 0; d < s->rank - 2; d++)
        item = item * s->shape[d] + index[d];
    switch (s->mode) {
    case GEMMEPI_SCALE_OUTER:
        return item * s->per_item + row;
    case GEMMEPI_SCALE_VECTOR_128:
        return item * s->per_item + k / 128 * s->rows + row;
    case GEMMEPI_SCALE_BLOCK_128:
        return item * s->per_item + row / 128 * ((s->k + 511) / 512 * 4) + k / 128;
    default:
        return 0;
    }
}

/* The largest |a| of those that share a number; NaN wins. */
static double larger_magnitude(double most, double x) {
    return isnan(most) || isnan(x) ? NAN : larger_of(most, fabs(x));
}

static double oracle_y_scale(gemmepi_dtype dtype, double amax) {
    double scale = amax / oracle_format(dtype).most;
    if (!(amax > 0) || isinf(amax))
        return 1;
    scale = larger_of(scale, ldexp(1, -126));
    return scale < FLT_MAX ? oracle_round(GEMMEPI_F32, scale) : FLT_MAX;
}

/* The cast of the transposed a to y_transposed. */
static operation operation_turned(const operation *o) {
    operation turned = *o;
    turned.t[E_A] = strided_turned(&o->t[E_A]);
    turned.t[E_Y] = o->t[E_TURNED];
    turned.t[E_TURNED].used = 0;
    turned.flags &= ~GEMMEPI_CAST_AMAX;
    return turned;
}

/* a times a scale, or over one; F64 rounds a product once */
static term term_scaled(const operation *o, double a, double scale, int divides) {
    term t = {0, 0, 0, 0, 0};
    t.value = divides ? (wide)a / scale : (wide)a * scale;
    t.exact = !divides && o->t[E_Y].dtype == GEMMEPI_F64;
    if (t.exact)
        t.value = a * scale;
    else if (isfinite((double)t.value))
        t.bound = 4 * operation_roundoff(o) * fabs((double)t.value) + 2 * operation_smallest(o);
    return t;
}

#endif
