/* What a product must give and how far from it an answer may be, worked out in double from the operands as
   stored. It shares no line with src/; of gemmepi.h it uses the names of dtypes and epilogues only.

   The bounds are those of numerics.md:

       |out - ref| <= u |ref| + L E + 4 u_acc T + smallest subnormal

   u is the unit roundoff of the stored type, u_acc that of the accumulator.
   E = (4 + k/8) u_acc S, and 2^-9 S more for TF32.
   L is 1.13 for the GELUs, 1.1 for SILU, 1 for the others, |act'(aux)| for BACKWARD.
   T, the magnitudes combined after the product, is here
       |act(v)| + |residual|            forward
       |v| (|t1| + |t2|) + |residual|   BACKWARD; t1 + t2 = act' are the terms in numerics.md's table,
                                        which cancel near a zero of the derivative
       0                                for the pre-activation stored as aux
       sum of T + |old|                 for bias_grad
   BACKWARD is granted what Element-wise grants act' itself, |v| |act'(aux (1 + 2 u_acc)) - act'(aux)| more:
   forward E has room for it, in the tails of act' it has not.
   A bias_grad of BGRAD has the sum of L E for L E, and u_d sum |v| more where D is stored in 16 bits.

   Where operands are small integers (exact), NONE, RELU, aux, mask and bias_grad must be the rounded
   reference itself. */
#ifndef GEMMEPI_TESTS_ORACLE_H
#define GEMMEPI_TESTS_ORACLE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gemmepi.h"

/* >>storage: values of each dtype, rounded to nearest even */

typedef struct number_format {
    int digits;       /* significant bits                                  */
    int lowest;       /* exponent of the smallest subnormal                */
    int highest;      /* every finite value is below 2^highest             */
    size_t size;      /* bytes                                             */
    const char *name; /* as in messages                                    */
} number_format;

/* DTYPE_DEFAULT stands for the bits of RELU's mask. */
static number_format oracle_format(gemmepi_dtype dtype) {
    static const number_format formats[] = {
        {1, 0, 1, 0, "mask"},    {24, -149, 128, 4, "f32"}, {53, -1074, 1024, 8, "f64"},
        {11, -24, 16, 2, "f16"}, {8, -133, 128, 2, "bf16"},
    };
    return formats[dtype];
}

static double oracle_roundoff(gemmepi_dtype dtype) {
    return ldexp(1, -oracle_format(dtype).digits);
}

static double oracle_round(gemmepi_dtype dtype, double x) {
    number_format f = oracle_format(dtype);
    int exponent, unit;
    double rounded;
    if (dtype == GEMMEPI_F64 || x == 0 || isnan(x) || isinf(x))
        return x;
    frexp(x, &exponent);
    unit = exponent - f.digits > f.lowest ? exponent - f.digits : f.lowest;
    rounded = ldexp(nearbyint(ldexp(x, -unit)), unit);
    return fabs(rounded) >= ldexp(1, f.highest) ? copysign(INFINITY, x) : rounded;
}

static uint16_t oracle_encode_f16(double x) {
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double y = fabs(oracle_round(GEMMEPI_F16, x));
    int exponent;
    if (isnan(x))
        return 0x7e00;
    if (isinf(y))
        return sign | 0x7c00;
    if (y < ldexp(1, -14))
        return (uint16_t)(sign | (int)ldexp(y, 24));
    frexp(y, &exponent);
    return (uint16_t)(sign | (((exponent + 14) << 10) + (int)ldexp(y, 11 - exponent) - 1024));
}

static double oracle_decode_f16(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double y = exponent == 31  ? (fraction ? NAN : INFINITY)
               : exponent == 0 ? ldexp(fraction, -24)
                               : ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -y : y;
}

static void oracle_encode(gemmepi_dtype dtype, void *to, double x) {
    float narrow;
    uint32_t bits;
    uint16_t half;
    if (dtype == GEMMEPI_F64) {
        memcpy(to, &x, 8);
        return;
    }
    narrow = (float)oracle_round(dtype, x);
    memcpy(&bits, &narrow, 4);
    half = dtype == GEMMEPI_F16 ? oracle_encode_f16(x) : (uint16_t)(bits >> 16);
    if (dtype == GEMMEPI_F32)
        memcpy(to, &narrow, 4);
    else
        memcpy(to, &half, 2);
}

static double oracle_decode(gemmepi_dtype dtype, const void *from) {
    double number;
    float narrow;
    uint16_t half;
    uint32_t bits;
    if (dtype == GEMMEPI_F64) {
        memcpy(&number, from, 8);
        return number;
    }
    if (dtype == GEMMEPI_F32) {
        memcpy(&narrow, from, 4);
        return (double)narrow;
    }
    memcpy(&half, from, 2);
    if (dtype == GEMMEPI_F16)
        return oracle_decode_f16(half);
    bits = (uint32_t)half << 16;
    memcpy(&narrow, &bits, 4);
    return (double)narrow;
}

/* >>layout */

/* A matrix, or a vector as a matrix of one row or one column, of which each item of the batch has its own
   or all share one. Steps are in elements, in bits for a mask. */
typedef struct view {
    unsigned char *data;
    gemmepi_dtype dtype; /* DEFAULT: a mask */
    int64_t row, column, item;
} view;

/* The layout rules of gemmepi_matrix. */
static view oracle_view(gemmepi_dtype dtype, gemmepi_order order, int transposed, int64_t ld,
                        int64_t stride) {
    view v = {NULL, dtype, 1, 1, stride};
    if ((order == GEMMEPI_ROW_MAJOR) != (transposed != 0))
        v.row = ld;
    else
        v.column = ld;
    return v;
}

static int64_t view_index(const view *v, int64_t item, int64_t i, int64_t j) {
    return item * v->item + i * v->row + j * v->column;
}

static double view_get(const view *v, int64_t item, int64_t i, int64_t j) {
    int64_t index = view_index(v, item, i, j);
    if (v->dtype == GEMMEPI_DTYPE_DEFAULT)
        return v->data[index / 8] >> index % 8 & 1;
    return oracle_decode(v->dtype, v->data + index * (int64_t)oracle_format(v->dtype).size);
}

static void view_set(const view *v, int64_t item, int64_t i, int64_t j, double x) {
    int64_t index = view_index(v, item, i, j);
    if (v->dtype == GEMMEPI_DTYPE_DEFAULT)
        v->data[index / 8] = (unsigned char)((v->data[index / 8] & ~(1 << index % 8)) | (x > 0) << index % 8);
    else
        oracle_encode(v->dtype, v->data + index * (int64_t)oracle_format(v->dtype).size, x);
}

/* >>activations, in the forms that do not cancel; at infinity to the letter, so that inf * 0 is NaN as in
   PyTorch. In long double where the machine has a wider one, because results in F64 are held against them. */

typedef long double wide;

#define ORACLE_SQRT_HALF         0.707106781186547524400844362104849039L
#define ORACLE_SQRT_2_OVER_PI    0.797884560802865355879892119868763737L
#define ORACLE_INVERSE_SQRT_2_PI 0.398942280401432677939946059934381868L

static wide oracle_logistic(wide x) {
    return x >= 0 ? 1 / (1 + expl(-x)) : expl(x) / (1 + expl(x));
}

static wide oracle_normal_cdf(wide x) {
    return erfcl(-x * ORACLE_SQRT_HALF) / 2;
}

static wide oracle_gelu_argument(wide x) { /* 2 w */
    return 2 * ORACLE_SQRT_2_OVER_PI * (x + 0.044715L * x * x * x);
}

static double oracle_activation(unsigned activation, double x) {
    if (isnan(x))
        return x;
    switch (activation) {
    case GEMMEPI_RELU:
        return x > 0 ? x : 0;
    case GEMMEPI_GELU_TANH:
        return (double)(x * oracle_logistic(oracle_gelu_argument(x)));
    case GEMMEPI_GELU_ERF:
        return (double)(x * oracle_normal_cdf(x));
    case GEMMEPI_SILU:
        return (double)(x * oracle_logistic(x));
    case GEMMEPI_SIGMOID:
        return (double)oracle_logistic(x);
    case GEMMEPI_TANH:
        return (double)tanhl(x);
    default:
        return x;
    }
}

/* act'(x), and the magnitudes of its terms. For RELU x is the bit of the mask. */
static double oracle_derivative(unsigned activation, double at, double *magnitude) {
    wide first = 1, second = 0, x = at, w;
    if (isnan(at))
        return *magnitude = at;
    switch (activation) {
    case GEMMEPI_RELU:
        first = x > 0;
        break;
    case GEMMEPI_GELU_TANH:
        w = oracle_gelu_argument(x);
        first = oracle_logistic(w);
        second = 2 * x * first * oracle_logistic(-w) * ORACLE_SQRT_2_OVER_PI * (1 + 0.134145L * x * x);
        break;
    case GEMMEPI_GELU_ERF:
        first = oracle_normal_cdf(x);
        second = x * ORACLE_INVERSE_SQRT_2_PI * expl(-x * x / 2);
        break;
    case GEMMEPI_SILU:
        first = oracle_logistic(x);
        second = first * x * oracle_logistic(-x);
        break;
    case GEMMEPI_SIGMOID:
        first = oracle_logistic(x) * oracle_logistic(-x);
        break;
    case GEMMEPI_TANH:
        first = 4 * oracle_logistic(2 * x) * oracle_logistic(-2 * x);
        break;
    default:
        break;
    }
    *magnitude = (double)(fabsl(first) + fabsl(second));
    return (double)(first + second);
}

/* >>products */

/* A problem without defaults. Vectors are views too: bias_grad of shape [1, n] or [m, 1]. */
typedef struct oracle_problem {
    int64_t m, n, k, batch;
    unsigned activation;
    gemmepi_epilogue flags;
    int tf32, relaxed, exact;
    int bgrad_rows; /* BGRAD sums rows of D (column-major) in place of columns */
    double alpha, beta;
    view a, b, c, d, bias, aux, bias_grad, residual;
} oracle_problem;

/* A value and how far from it an answer may be. For RELU's mask the value is v: the bit is v > 0, free
   where v is within its bound of zero. */
typedef struct expected {
    double value, bound;
} expected;

/* One element of the result on its way. */
typedef struct element {
    wide sum;                     /* of op(A) op(B)                    */
    double magnitude;             /* of its terms                      */
    double v, error;              /* before the activation, and E      */
    double result, spread, terms; /* before rounding, L E, T           */
    int exact_v, exact;           /* v, result                         */
} element;

/* What a sum over elements adds up to. */
typedef struct total {
    wide value;
    double magnitude, spread, terms;
    int exact;
} total;

static gemmepi_dtype oracle_accumulator(const oracle_problem *p) {
    return p->a.dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
}

static double oracle_stored_bound(gemmepi_dtype dtype, double value, double spread) {
    return oracle_roundoff(dtype) * fabs(value) + spread + ldexp(1, oracle_format(dtype).lowest);
}

static double oracle_product_error(const oracle_problem *p, double magnitude) {
    double u = oracle_roundoff(oracle_accumulator(p));
    return ((4 + (double)p->k / 8) * u + (p->tf32 ? ldexp(1, -9) : 0)) * magnitude;
}

/* What an exact sum stays exact under. */
#define ORACLE_EXACT_LIMIT 4194304.0 /* 2^22 */

static double oracle_slope(unsigned activation) {
    return activation == GEMMEPI_GELU_TANH || activation == GEMMEPI_GELU_ERF ? 1.13
           : activation == GEMMEPI_SILU                                      ? 1.1
                                                                             : 1;
}

/* numerics.md's bounds are for the strict contract. RELAXED admits cuBLASLt's approximate tanh, of which
   cublaslt.md has 5e-6 forward and 1.5e-5 for the derivative, */
static double oracle_relaxed_tanh(const oracle_problem *p, double v) {
    if (!p->relaxed || p->activation != GEMMEPI_GELU_TANH)
        return 0;
    return p->flags & GEMMEPI_BACKWARD ? 1.5e-5 * fabs(v) : 5e-6;
}

/* and algorithms that round alpha op(A) op(B) + beta C to a D of 16 bits before the rest. */
static double oracle_relaxed_rounding(const oracle_problem *p, double sum, double c) {
    return p->relaxed && oracle_format(p->d.dtype).size == 2
               ? oracle_roundoff(p->d.dtype) * (fabs(sum) + fabs(c))
               : 0;
}

static void oracle_forward(const oracle_problem *p, element *e) {
    e->result = oracle_activation(p->activation, e->v);
    e->spread = oracle_slope(p->activation) * e->error;
    e->terms = fabs(e->result);
}

/* How far v act' moves where its argument is off by 2 u_acc of itself, which numerics.md grants every
   function (Element-wise: out = f(x (1 + d)) (1 + e)). Only in the tails is that more than E. */
static double oracle_bend(const oracle_problem *p, double v, double aux, double derivative) {
    double nearby = aux * (1 + 2 * oracle_roundoff(oracle_accumulator(p))), magnitude;
    if (p->activation == GEMMEPI_RELU || !isfinite(v) || !isfinite(aux))
        return 0;
    return fabs(v) * fabs(oracle_derivative(p->activation, nearby, &magnitude) - derivative);
}

static void oracle_backward(const oracle_problem *p, element *e, double aux) {
    double magnitude, derivative = oracle_derivative(p->activation, aux, &magnitude);
    e->result = p->activation == GEMMEPI_RELU ? (aux > 0 ? e->v : 0) : e->v * derivative;
    e->spread = fabs(derivative) * e->error + oracle_bend(p, e->v, aux, derivative);
    e->terms = p->activation == GEMMEPI_RELU ? fabs(e->result) : fabs(e->v) * magnitude;
}

/* From the sum over k to what is stored; e has sum and magnitude. */
static void oracle_element(const oracle_problem *p, element *e, int64_t item, int64_t i, int64_t j) {
    double c = p->beta != 0 ? p->beta * view_get(&p->c, item, i, j) : 0;
    double bias = p->flags & GEMMEPI_BIAS ? view_get(&p->bias, item, i, j) : 0;
    double all = fabs(p->alpha) * e->magnitude + fabs(c) + fabs(bias), rounding;
    e->v = (double)(p->alpha * e->sum + c + bias);
    rounding = oracle_relaxed_rounding(p, (double)(p->alpha * e->sum), c);
    e->exact_v = p->exact && all < ORACLE_EXACT_LIMIT && rounding == 0;
    e->error = !isfinite(all) ? 0 : oracle_product_error(p, all) + rounding;
    if (p->flags & GEMMEPI_BACKWARD)
        oracle_backward(p, e, view_get(&p->aux, item, i, j));
    else
        oracle_forward(p, e);
    e->spread += oracle_relaxed_tanh(p, e->v);
    e->exact = e->exact_v && p->activation <= GEMMEPI_RELU;
    if (p->flags & GEMMEPI_RESIDUAL) {
        double residual = view_get(&p->residual, item, i, j);
        e->result += residual;
        e->terms += fabs(residual);
        e->exact = e->exact && e->terms < ORACLE_EXACT_LIMIT;
    }
}

static expected oracle_stored(const oracle_problem *p, gemmepi_dtype dtype, double value, double spread,
                              double terms, int exact) {
    expected x;
    x.value = exact ? oracle_round(dtype, value) : value;
    x.bound = 0;
    if (!exact)
        x.bound =
            oracle_stored_bound(dtype, value, spread + 4 * oracle_roundoff(oracle_accumulator(p)) * terms);
    return x;
}

/* bit v > 0; RELAXED leaves it open for zero and NaN */
static expected oracle_mask_bit(const oracle_problem *p, const element *e) {
    expected x;
    x.value = e->v;
    x.bound = p->relaxed && !(e->v > 0 || e->v < 0) ? INFINITY : e->exact_v ? 0 : e->error;
    return x;
}

static void oracle_add(total *t, wide value, double magnitude, double spread, double terms, int exact) {
    t->value += value;
    t->magnitude += magnitude;
    t->spread += spread;
    t->terms += terms;
    t->exact = t->exact && exact;
}

/* The sum over k of one row of A or column of B is a product with ones, but one that TF32 has no part in. */
static void oracle_add_operand(const oracle_problem *p, total *t, const double *values) {
    double magnitude = 0;
    wide sum = 0;
    int64_t k;
    for (k = 0; k < p->k; k++) {
        sum += values[k];
        magnitude += fabs(values[k]);
    }
    oracle_add(t, sum, magnitude, (4 + (double)p->k / 8) * oracle_roundoff(oracle_accumulator(p)) * magnitude,
               (double)fabsl(sum), p->exact);
}

static void oracle_add_element(const oracle_problem *p, total *t, const element *e) {
    int kept = !p->relaxed || p->d.dtype == oracle_accumulator(p) ||
               oracle_round(p->d.dtype, e->result) == e->result;
    int sixteen_bits = oracle_format(p->d.dtype).size == 2 && p->relaxed;
    double rounding = sixteen_bits ? oracle_roundoff(p->d.dtype) * fabs(e->result) : 0;
    oracle_add(t, e->result, fabs(e->result), e->spread + rounding, e->terms, e->exact && kept);
}

static expected oracle_bias_grad(const oracle_problem *p, const total *t, double old) {
    double value = (double)(t->value + old);
    int exact = t->exact && t->magnitude + fabs(old) < ORACLE_EXACT_LIMIT;
    return oracle_stored(p, p->bias_grad.dtype, value, t->spread, t->terms + fabs(old), exact);
}

static void oracle_dot(const oracle_problem *p, element *e, const double *a, const double *b) {
    double sum = 0, magnitude = 0;
    wide precise = 0;
    int64_t k;
    if (p->a.dtype == GEMMEPI_F64) {
        for (k = 0; k < p->k; k++) {
            precise += (wide)a[k] * b[k];
            magnitude += fabs(a[k] * b[k]);
        }
    } else {
        for (k = 0; k < p->k; k++) {
            sum += a[k] * b[k];
            magnitude += fabs(a[k] * b[k]);
        }
    }
    e->sum = precise + sum;
    e->magnitude = magnitude;
}

/* rows of op(A), or columns of op(B), one after the other */
static void oracle_unpack(double *to, const view *v, int64_t item, int64_t lines, int64_t k, int columns) {
    int64_t line, i;
    for (line = 0; line < lines; line++)
        for (i = 0; i < k; i++)
            *to++ = columns ? view_get(v, item, i, line) : view_get(v, item, line, i);
}

static void oracle_item(const oracle_problem *p, int64_t item, const double *a, const double *b, expected *d,
                        expected *aux, total *sums) {
    int64_t i, j;
    for (i = 0; i < p->m; i++)
        for (j = 0; j < p->n; j++, d++, aux++) {
            element e;
            oracle_dot(p, &e, a + i * p->k, b + j * p->k);
            oracle_element(p, &e, item, i, j);
            *d = oracle_stored(p, p->d.dtype, e.result, e.spread, e.terms, e.exact);
            if (p->flags & GEMMEPI_AUX)
                *aux = p->activation == GEMMEPI_RELU
                           ? oracle_mask_bit(p, &e)
                           : oracle_stored(p, p->aux.dtype, e.v, e.error, 0, e.exact_v);
            if (p->flags & GEMMEPI_BGRAD)
                oracle_add_element(p, sums + (p->bgrad_rows ? i : j), &e);
        }
    for (i = 0; i < p->m && p->flags & GEMMEPI_BGRAD_A; i++)
        oracle_add_operand(p, sums + i, a + i * p->k);
    for (j = 0; j < p->n && p->flags & GEMMEPI_BGRAD_B; j++)
        oracle_add_operand(p, sums + j, b + j * p->k);
}

/* d and aux are [batch, m, n] dense, bias_grad [items, length]: a row for each item, or one where its view
   has item step 0. */
static void oracle_product(const oracle_problem *p, expected *d, expected *aux, expected *bias_grad) {
    int along_rows = p->flags & GEMMEPI_BGRAD_A || (p->flags & GEMMEPI_BGRAD && p->bgrad_rows);
    int64_t length = along_rows ? p->m : p->n, item, i;
    double *a = malloc(sizeof *a * (size_t)(p->m * p->k + 1));
    double *b = malloc(sizeof *b * (size_t)(p->n * p->k + 1));
    total *sums = malloc(sizeof *sums * (size_t)(length + 1));
    for (item = 0; item < p->batch; item++) {
        int first = item == 0 || p->bias_grad.item != 0,
            last = item == p->batch - 1 || p->bias_grad.item != 0;
        oracle_unpack(a, &p->a, item, p->m, p->k, 0);
        oracle_unpack(b, &p->b, item, p->n, p->k, 1);
        for (i = 0; i < length && first; i++) {
            sums[i].value = sums[i].magnitude = sums[i].spread = sums[i].terms = 0;
            sums[i].exact = 1;
        }
        oracle_item(p, item, a, b, d + item * p->m * p->n, aux + item * p->m * p->n, sums);
        for (i = 0; i < length && last && bias_grad != NULL; i++) {
            int64_t row = along_rows ? i : 0, column = along_rows ? 0 : i;
            int adds = (p->flags & GEMMEPI_BGRAD_ACCUMULATE) != 0;
            double old = adds ? view_get(&p->bias_grad, item, row, column) : 0;
            *bias_grad++ = oracle_bias_grad(p, sums + i, old);
        }
    }
    free(a);
    free(b);
    free(sums);
}

/* >>verdicts */

/* NaN and infinity must be where the reference has them; an answer may overflow where the bound reaches
   there. */
static int oracle_accepts(gemmepi_dtype dtype, double got, expected want) {
    number_format f = oracle_format(dtype);
    if (dtype == GEMMEPI_DTYPE_DEFAULT)
        return (want.bound > 0 && !(fabs(want.value) > want.bound)) || (got > 0) == (want.value > 0);
    if (isnan(want.value) || isinf(want.value))
        return isnan(want.value) ? isnan(got) != 0 : got == want.value;
    if (isinf(got))
        return (got > 0) == (want.value > 0) &&
               fabs(want.value) + want.bound >= ldexp(1, f.highest) - ldexp(1, f.highest - f.digits - 1);
    return fabs(got - want.value) <= want.bound;
}

#endif
