/* What a product must give and how far from it an answer may be, worked out in double from the operands as
   stored. It shares no line with src/; of gemmepi.h it uses the names of dtypes and epilogues only.

   The bounds are those of the manual:

       |out - ref| <= u |ref| + L E + 4 u_acc T + smallest subnormal

   u is the unit roundoff of the stored type, u_acc that of the accumulator.
   E = (4 + k/8) u_acc S, and 2^-9 S more for TF32, 2^-11 S for each four of k that are begun, of 64 at most, where sums may be in F16; where both operands are E4M3 or E5M2, 2^-10 S more for each 32
   of k, but for at most 128 unless accumulation is fast: what the tensor cores of Hopper lose on operands of one sign,
   measured (random normal operands stay within the manual's 2^-12).
   I8 times I8 is exact: there S takes the sum for the terms, blocks of 128 of it where scales differ along k, and
   the k of E counts 32 and those blocks at most.
   L is 1.13 for the GELUs, 1.1 for SILU, 1 for the others, |act'(aux)| for BACKWARD.
   T, the magnitudes combined after the product, is here
       |act(v)| + |residual|            forward
       |v| (|t1| + |t2|) + |residual|   BACKWARD; t1 + t2 = act' are the terms in the manual's table,
                                        which cancel near a zero of the derivative
       0                                for the pre-activation stored as aux
       sum of T + |old|                 for bias_grad
   BACKWARD is granted what Element-wise grants act' itself, |v| |act'(aux (1 + 2 u_acc)) - act'(aux)| more:
   forward E has room for it, in the tails of act' it has not.
   UPSTREAM, aux act'(v), has |aux| times the most that act' moves between v - E and v + E for L E, and for T
       |aux| (|t1| + |t2|) + |residual|
   so that of RELU and LEAKY_RELU either branch is right where |v| <= E.
   GATED has, F and F' for the most that act(gate) and act'(gate) move where the gate is off by its E (L E for
   act) or, saved, by 2 u_acc of itself, and E for the error of what is not saved, 0 for the rest
       |act| E_value + (|value| + E_value) F                     forward
       |act| E_v + (|v| + E_v) F                                 d value
       |act'| (|value| E_v + |v| E_value + E_v E_value) + (|v| + E_v) (|value| + E_value) F'    d gate
   in place of L E (v is the upstream gradient), and in T the products of these magnitudes. F and F', and what act' moves
   for UPSTREAM, have 2 smallest subnormals of the accumulator more, since act and act' are rounded to it before they are
   multiplied; of F64, where a factor of x may be subnormal too, 2 + |x|. Infinity times what the accumulator may
   round to 0 is anything.
   A bias_grad of BGRAD has the sum of L E for L E, and u_d sum |v| more where D is stored in 16 bits.

   A result of 8 bits (E4M3, E5M2, I8), which may have a scale, must be what one of the numbers within
       |scale| (L E + (4 u_acc + 2^-12) T) + u_acc |ref|
   of the reference rounds to, saturated: 2^-12 has room for the shorter forms of activations, so it is
   not there for NONE and RELU, nor for aux. For the two of fp8 that is tighter than the bound above.
   An amax lies between the largest |v| less and the largest |v| plus its bound, and is rounded to the accumulator.

   Where operands are small integers and scales powers of two (exact), NONE, RELU, aux, mask, bias_grad and amax must
   be the rounded reference itself. I32 results must be in any case. */
#ifndef GEMMEPI_TESTS_ORACLE_H
#define GEMMEPI_TESTS_ORACLE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../activations.h"
#include "gemmepi.h"

/* >>storage: values of each dtype, rounded to nearest even */

typedef struct number_format {
    int digits;       /* significant bits                                  */
    int lowest;       /* exponent of the smallest subnormal                */
    int highest;      /* every finite value is below 2^highest             */
    size_t size;      /* bytes                                             */
    const char *name; /* as in messages                                    */
    double most;      /* stores saturate there; 0: they become infinite    */
} number_format;

/* DTYPE_DEFAULT stands for the bits of RELU's mask. */
static number_format oracle_format(gemmepi_dtype dtype) {
    static const number_format formats[] = {
        {1, 0, 1, 0, "mask", 0},        {24, -149, 128, 4, "f32", 0}, {53, -1074, 1024, 8, "f64", 0},
        {11, -24, 16, 2, "f16", 0},     {8, -133, 128, 2, "bf16", 0}, {4, -9, 9, 1, "e4m3", 448},
        {3, -16, 16, 1, "e5m2", 57344}, {7, 0, 8, 1, "i8", 127},      {32, 0, 32, 4, "i32", 0},
    };
    return formats[dtype];
}

static int oracle_is_fp8(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_E4M3 || dtype == GEMMEPI_E5M2;
}

/* The dtypes that may have a scale, and saturate. */
static int oracle_is_narrow(gemmepi_dtype dtype) {
    return oracle_format(dtype).size == 1;
}

static double oracle_roundoff(gemmepi_dtype dtype) {
    return ldexp(1, -oracle_format(dtype).digits);
}

/* What is above the largest finite value: infinity, or the value itself; I8 has one more below. */
static double oracle_beyond(gemmepi_dtype dtype, double x) {
    double most = oracle_format(dtype).most;
    if (dtype == GEMMEPI_I8 && x < 0)
        return -128;
    return copysign(most > 0 ? most : INFINITY, x);
}

static double oracle_round(gemmepi_dtype dtype, double x) {
    number_format f = oracle_format(dtype);
    int exponent, unit;
    double rounded;
    if (dtype == GEMMEPI_F64 || x == 0 || isnan(x))
        return x;
    if (isinf(x))
        return oracle_beyond(dtype, x);
    frexp(x, &exponent);
    unit = exponent - f.digits > f.lowest ? exponent - f.digits : f.lowest;
    rounded = ldexp(nearbyint(ldexp(x, -unit)), unit);
    return fabs(rounded) >= ldexp(1, f.highest) || (f.most > 0 && fabs(rounded) > f.most)
               ? oracle_beyond(dtype, x)
               : rounded;
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

static uint8_t oracle_encode_e4m3(double x) {
    int sign = signbit(x) ? 0x80 : 0, exponent;
    double y = fabs(oracle_round(GEMMEPI_E4M3, x));
    if (isnan(x))
        return 0x7f;
    if (y < ldexp(1, -6))
        return (uint8_t)(sign | (int)ldexp(y, 9));
    frexp(y, &exponent);
    return (uint8_t)(sign | (((exponent + 6) << 3) + (int)ldexp(y, 4 - exponent) - 8));
}

static double oracle_decode_e4m3(uint8_t bits) {
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    double y = exponent == 15 && fraction == 7 ? NAN
               : exponent == 0                 ? ldexp(fraction, -9)
                                               : ldexp(8 + fraction, exponent - 10);
    return bits & 0x80 ? -y : y;
}

/* The upper half of an F16. An infinity that is to be read stays one. */
static uint8_t oracle_encode_e5m2(double x) {
    return (uint8_t)(oracle_encode_f16(isinf(x) ? x : oracle_round(GEMMEPI_E5M2, x)) >> 8);
}

static uint8_t oracle_encode_8_bits(gemmepi_dtype dtype, double x) {
    if (dtype == GEMMEPI_I8)
        return isnan(x) ? 0 : (uint8_t)(int)oracle_round(GEMMEPI_I8, x);
    return dtype == GEMMEPI_E4M3 ? oracle_encode_e4m3(x) : oracle_encode_e5m2(x);
}

static uint16_t oracle_encode_16_bits(gemmepi_dtype dtype, double x) {
    float narrow = (float)oracle_round(dtype, x);
    uint32_t bits;
    memcpy(&bits, &narrow, 4);
    return dtype == GEMMEPI_F16 ? oracle_encode_f16(x) : (uint16_t)(bits >> 16);
}

static void oracle_encode(gemmepi_dtype dtype, void *to, double x) {
    float narrow = dtype == GEMMEPI_F32 ? (float)x : 0;
    int32_t whole = dtype == GEMMEPI_I32 ? (int32_t)x : 0;
    uint16_t half;
    switch (oracle_format(dtype).size) {
    case 8:
        memcpy(to, &x, 8);
        break;
    case 4:
        memcpy(to, dtype == GEMMEPI_I32 ? (void *)&whole : (void *)&narrow, 4);
        break;
    case 2:
        half = oracle_encode_16_bits(dtype, x);
        memcpy(to, &half, 2);
        break;
    default:
        *(uint8_t *)to = oracle_encode_8_bits(dtype, x);
    }
}

/* Philox4x32-10, from its paper's description: word `which` of the block. */
static double philox_uniform(uint64_t seed, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, int which) {
    uint32_t x[4], key[2], next[4];
    int round;
    x[0] = c0, x[1] = c1, x[2] = c2, x[3] = c3;
    key[0] = (uint32_t)seed, key[1] = (uint32_t)(seed >> 32);
    for (round = 0; round < 10; round++) {
        uint64_t p = 0xD2511F53ull * x[0], q = 0xCD9E8D57ull * x[2];
        next[0] = (uint32_t)(q >> 32) ^ x[1] ^ key[0];
        next[1] = (uint32_t)q;
        next[2] = (uint32_t)(p >> 32) ^ x[3] ^ key[1];
        next[3] = (uint32_t)p;
        memcpy(x, next, sizeof x);
        key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
    }
    return (x[which] >> 8) / 16777216.0;
}

static double oracle_decode_8_bits(gemmepi_dtype dtype, uint8_t bits) {
    if (dtype == GEMMEPI_I8)
        return bits < 128 ? bits : bits - 256;
    return dtype == GEMMEPI_E4M3 ? oracle_decode_e4m3(bits) : oracle_decode_f16((uint16_t)(bits << 8));
}

static double oracle_decode(gemmepi_dtype dtype, const void *from) {
    double number;
    float narrow;
    int32_t whole;
    uint16_t half;
    uint32_t bits;
    if (dtype == GEMMEPI_F64) {
        memcpy(&number, from, 8);
        return number;
    }
    if (dtype == GEMMEPI_I32) {
        memcpy(&whole, from, 4);
        return (double)whole;
    }
    if (dtype == GEMMEPI_F32) {
        memcpy(&narrow, from, 4);
        return (double)narrow;
    }
    if (dtype == GEMMEPI_E8M0)
        return ldexp(1, *(const uint8_t *)from - 127);
    if (oracle_is_narrow(dtype))
        return oracle_decode_8_bits(dtype, *(const uint8_t *)from);
    memcpy(&half, from, 2);
    if (dtype == GEMMEPI_F16)
        return oracle_decode_f16(half);
    bits = (uint32_t)half << 16;
    memcpy(&narrow, &bits, 4);
    return (double)narrow;
}

/* x as one of its neighbours among the numbers of 16 bits: the one of larger magnitude where its share and u come to 1. */
static double oracle_by_chance(gemmepi_dtype dtype, double x, double u) {
    double size = fabs(x), lower, upper;
    uint16_t code;
    if (dtype != GEMMEPI_F16 && dtype != GEMMEPI_BF16)
        return x;
    oracle_encode(dtype, (unsigned char *)&code, size);
    code = (uint16_t)(code - (oracle_decode(dtype, (unsigned char *)&code) > size));
    lower = oracle_decode(dtype, (unsigned char *)&code), code++;
    upper = oracle_decode(dtype, (unsigned char *)&code);
    return copysign((size - lower) / (upper - lower) + u >= 1 ? upper : lower, x);
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

/* >>scales */

/* The scales of one matrix. Those of a and b along their outer extent (rows of op(A), columns of op(B)) and k. */
typedef struct scales {
    gemmepi_scale_mode mode;
    view at;
    int64_t rows, columns; /* of at, of one item */
} scales;

/* Where the numbers of each mode lie. */
static scales oracle_scales(gemmepi_scale scale, int64_t outer, int64_t k) {
    int64_t steps = (k + 127) / 128;
    scales s = {GEMMEPI_SCALE_NONE, {NULL, GEMMEPI_F32, 1, 1, 0}, 1, 1};
    s.mode = scale.mode;
    s.at.item = scale.batch_stride;
    if (s.mode == GEMMEPI_SCALE_OUTER)
        s.rows = outer;
    if (s.mode == GEMMEPI_SCALE_VECTOR_128) {
        s.rows = steps;
        s.columns = s.at.row = outer;
    }
    if (s.mode == GEMMEPI_SCALE_BLOCK_128) {
        s.rows = (outer + 127) / 128;
        s.columns = steps;
        s.at.row = (steps + 3) / 4 * 4;
    }
    return s;
}

static double oracle_scale(const scales *s, int64_t item, int64_t outer, int64_t k) {
    switch (s->mode) {
    case GEMMEPI_SCALE_TENSOR:
        return view_get(&s->at, item, 0, 0);
    case GEMMEPI_SCALE_OUTER:
        return view_get(&s->at, item, outer, 0);
    case GEMMEPI_SCALE_VECTOR_128:
        return view_get(&s->at, item, k / 128, outer);
    case GEMMEPI_SCALE_BLOCK_128:
        return view_get(&s->at, item, outer / 128, k / 128);
    default:
        return 1;
    }
}

/* >>gates */

/* RELU alone saves bits. */
static int oracle_has_mask(gemmepi_epilogue e) {
    return (e & GEMMEPI_ACTIVATION_MASK) == GEMMEPI_RELU && (e & (GEMMEPI_AUX | GEMMEPI_BACKWARD)) &&
           !(e & (GEMMEPI_GATED | GEMMEPI_UPSTREAM));
}

/* The product is a value and a gate beside each other; else, with GATED, aux is. */
static int oracle_makes_halves(gemmepi_epilogue e) {
    return (e & GEMMEPI_GATED) && (!(e & GEMMEPI_BACKWARD) || (e & GEMMEPI_UPSTREAM));
}

/* How long D and residual, and how long aux is along the halves, where the product is n long. */
static int64_t oracle_result_extent(gemmepi_epilogue e, int64_t n) {
    if (!(e & GEMMEPI_GATED) || (e & GEMMEPI_UPSTREAM))
        return n;
    return e & GEMMEPI_BACKWARD ? 2 * n : n / 2;
}

static int64_t oracle_aux_extent(gemmepi_epilogue e, int64_t n) {
    if (!(e & GEMMEPI_GATED) || !(e & GEMMEPI_BACKWARD))
        return n;
    return e & GEMMEPI_UPSTREAM ? n / 2 : 2 * n;
}

/* >>products */

/* A value and how far from it an answer may be. For RELU's mask the value is v: the bit is v > 0, free
   where v is within its bound of zero. For 8 bits the bound is that of the value before it is rounded. Below zero:
   anything is accepted. */
typedef struct expected {
    double value, bound;
} expected;

/* A problem without defaults. Vectors are views too: bias_grad of shape [1, n] or [m, 1]. */
typedef struct oracle_problem {
    int64_t m, n, k, batch; /* of the product */
    unsigned activation;
    gemmepi_epilogue flags;
    int tf32, f16_sums, relaxed, fast, exact;
    int bgrad_rows; /* BGRAD sums rows of D (column-major) in place of columns */
    int gate_rows;  /* GATED's halves are rows (column-major) in place of columns */
    double alpha, beta, parameter;
    view a, b, c, d, bias, aux, bias_grad, residual;
    scales scale_a, scale_b, scale_c, scale_d, scale_aux, scale_residual;
    int power_of_two;
    scales found; /* of d's lines, as they were found, where mode is not NONE */
} oracle_problem;

/* What a product must give: D as [batch, rows, columns] and aux as [batch, m, n] dense, [items, length] with a row for
   each item or one where the view of bias_grad has item step 0, and one number each. */
typedef struct answers {
    expected *d, *aux, *bias_grad, amax_d, amax_aux;
    struct largest
        *found; /* of what each found scale is for, but of one for all: as found.at has them, items apart */
} answers;

/* One element of the result on its way. */
typedef struct element {
    wide sum;                     /* of op(A) op(B)                    */
    double magnitude;             /* of its terms                      */
    double v, error;              /* before the activation, and E      */
    double result, spread, terms; /* before rounding, L E, T           */
    int exact_v, exact;           /* v, result                         */
    int saved;                    /* v is not summed but read          */
    int free;                     /* the result may be anything        */
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

static int oracle_both_fp8(const oracle_problem *p) {
    return oracle_is_fp8(p->a.dtype) && oracle_is_fp8(p->b.dtype);
}

static int oracle_both_i8(const oracle_problem *p) {
    return p->a.dtype == GEMMEPI_I8 && p->b.dtype == GEMMEPI_I8;
}

/* Terms that are summed exactly; 0: none. */
static int64_t oracle_exact_steps(const oracle_problem *p) {
    int along_k = p->scale_a.mode > GEMMEPI_SCALE_OUTER || p->scale_b.mode > GEMMEPI_SCALE_OUTER;
    return !oracle_both_i8(p) ? 0 : along_k ? 128 : p->k;
}

/* E of S */
static double oracle_product_error(const oracle_problem *p, double magnitude) {
    double u = oracle_roundoff(oracle_accumulator(p)), k = (double)p->k, more = 0;
    int64_t steps = oracle_exact_steps(p);
    if (steps > 0)
        k = fmin(k, 32 + k / (double)steps);
    if (p->tf32)
        more += ldexp(1, -9);
    if (p->f16_sums)
        more += ldexp(ceil(fmin(k, 64) / 4), -11);
    if (oracle_both_fp8(p))
        more += ldexp(ceil((p->fast ? k : fmin(k, 128)) / 32), -10);
    return ((4 + k / 8) * u + more) * magnitude;
}

/* What an exact sum stays exact under: multiples of 1, or with scales, alpha and beta of 1/2 and more each, of 1/8.
   Sums of fp8 products, which Hopper keeps 13 bits of, before their scales of 1/2 each; F16 has whole numbers up to 2^11. */
static double oracle_exact_limit(const oracle_problem *p, int of_products) {
    int scaled = p->scale_a.mode || p->scale_b.mode || p->scale_c.mode || p->scale_residual.mode;
    int bits = of_products && p->f16_sums ? 11 : of_products && oracle_both_fp8(p) ? 12 : 22;
    return ldexp(1, bits - (scaled ? 2 : 0));
}

/* Of value times gate, likewise: multiples of 1/4, or with scales of 1/64. */
static double oracle_exact_gated_limit(const oracle_problem *p) {
    int scaled =
        p->scale_a.mode || p->scale_b.mode || p->scale_c.mode || p->scale_residual.mode || p->scale_aux.mode;
    return ldexp(1, scaled ? 18 : 22);
}

/* The largest |act'| near v. */
static double oracle_slope(const oracle_problem *p, double v) {
    double slope = activation_slopes[activation_index(p->activation)];
    if (p->activation == GEMMEPI_SQUARED_RELU && v > 0 && isfinite(v))
        return 2.2 * v + 1;
    return activation_has_parameter(p->activation) ? fmax(slope, fabs(p->parameter)) : slope;
}

/* The manual's bounds are for the strict contract. RELAXED admits cuBLASLt's approximate tanh, which was seen to be off
   by 5e-6, */
static double oracle_relaxed_tanh(const oracle_problem *p) {
    if (!p->relaxed || p->activation != GEMMEPI_GELU_TANH)
        return 0;
    return p->flags & GEMMEPI_BACKWARD ? 0 : 5e-6; /* its derivative is never taken */
}

/* and algorithms that round alpha op(A) op(B) + beta C to a D of 16 bits before the rest. */
static double oracle_relaxed_rounding(const oracle_problem *p, double sum, double c) {
    return p->relaxed && oracle_format(p->d.dtype).size == 2
               ? oracle_roundoff(p->d.dtype) * (fabs(sum) + fabs(c))
               : 0;
}

static void oracle_forward(const oracle_problem *p, element *e) {
    e->result = oracle_activation(p->activation, p->parameter, e->v);
    e->spread = oracle_slope(p, e->v) * e->error;
    e->terms = fabs(e->result);
}

/* How far v act' moves where its argument is off by 2 u_acc of itself, which the manual grants every
   function (Element-wise: out = f(x (1 + d)) (1 + e)). Only in the tails is that more than E. */
static double oracle_bend(const oracle_problem *p, double v, double aux, double derivative) {
    double nearby = aux * (1 + 2 * oracle_roundoff(oracle_accumulator(p))), magnitude;
    if (p->activation == GEMMEPI_RELU || !isfinite(v) || !isfinite(aux))
        return 0;
    return fabs(v) * fabs(oracle_derivative(p->activation, p->parameter, nearby, &magnitude) - derivative);
}

/* v times the derivative, or 0 where it is selected. */
static double oracle_times_derivative(const oracle_problem *p, double v, double at, double derivative) {
    if (p->activation == GEMMEPI_RELU)
        return at > 0 ? v : 0;
    return oracle_selects_0(p->activation, at) ? 0 : v * derivative;
}

static void oracle_backward(const oracle_problem *p, element *e, double aux) {
    double magnitude, derivative = oracle_derivative(p->activation, p->parameter, aux, &magnitude);
    e->result = oracle_times_derivative(p, e->v, aux, derivative);
    e->spread = fabs(derivative) * e->error + oracle_bend(p, e->v, aux, derivative);
    e->terms = activation_has(p->activation, ACTIVATION_SELECTS) ? fabs(e->result) : fabs(e->v) * magnitude;
}

/* What of act and act' at x is lost where they are subnormal. */
static double oracle_floor(const oracle_problem *p, double x) {
    gemmepi_dtype dtype = oracle_accumulator(p);
    double units = dtype == GEMMEPI_F64 ? 2 + fmin(fabs(x), 1000) : 2;
    return p->activation > GEMMEPI_RELU && !isnan(x) ? ldexp(units, oracle_format(dtype).lowest) : 0;
}

/* Infinity times a number that may be 0 in the accumulator. */
static int oracle_is_free(const oracle_problem *p, double factor, double x) {
    return isinf(factor) && x != 0 && fabs(x) < ldexp(1, oracle_accumulator(p) == GEMMEPI_F64 ? -1000 : -120);
}

/* The most that act' moves where its argument is off by error, and by 2 u_acc of itself as above. */
static double oracle_swing(const oracle_problem *p, double at, double error) {
    static const double parts[] = {-1, -0.5, 0.5, 1};
    double reach = error + 2 * oracle_roundoff(oracle_accumulator(p)) * fabs(at), magnitude, most = 0;
    double derivative = oracle_derivative(p->activation, p->parameter, at, &magnitude);
    int i;
    for (i = 0; i < 4 && isfinite(at) && p->activation != GEMMEPI_NONE; i++)
        most = fmax(most,
                    fabs(oracle_derivative(p->activation, p->parameter, at + parts[i] * reach, &magnitude) -
                         derivative));
    return most;
}

/* The result is aux times act'(v). */
static void oracle_upstream(const oracle_problem *p, element *e, double aux) {
    double magnitude, derivative = oracle_derivative(p->activation, p->parameter, e->v, &magnitude);
    e->result = oracle_times_derivative(p, aux, e->v, derivative);
    e->spread = fabs(aux) * (oracle_swing(p, e->v, e->error) + oracle_floor(p, e->v));
    e->terms = activation_has(p->activation, ACTIVATION_SELECTS) ? fabs(e->result) : fabs(aux) * magnitude;
    e->free = oracle_is_free(p, aux, derivative);
}

/* The result is x act(gate): the value, or an upstream gradient. */
static void oracle_gate(const oracle_problem *p, element *e, const element *x, const element *gate) {
    double act = oracle_activation(p->activation, p->parameter, gate->v), moves;
    double nearby = gate->v * (1 + 2 * oracle_roundoff(oracle_accumulator(p)));
    if (gate->saved)
        moves = fabs(oracle_activation(p->activation, p->parameter, nearby) - act);
    else
        moves = oracle_slope(p, gate->v) * gate->error;
    moves += oracle_floor(p, gate->v);
    e->result = x->v * act;
    e->spread = fabs(act) * x->error + (fabs(x->v) + x->error) * moves;
    e->terms = fabs(e->result);
    e->free = oracle_is_free(p, x->v, act);
}

/* The result is x value act'(gate), of an upstream gradient x. */
static void oracle_gate_gradient(const oracle_problem *p, element *e, const element *x, const element *value,
                                 const element *gate) {
    double magnitude, derivative = oracle_derivative(p->activation, p->parameter, gate->v, &magnitude);
    double swing = oracle_swing(p, gate->v, gate->error) + oracle_floor(p, gate->v), both = x->v * value->v;
    if (p->activation == GEMMEPI_RELU)
        derivative = gate->v > 0;
    e->result = oracle_times_derivative(p, both, gate->v, derivative);
    e->spread =
        fabs(derivative) * (fabs(value->v) * x->error + fabs(x->v) * value->error + x->error * value->error);
    e->spread += (fabs(x->v) + x->error) * (fabs(value->v) + value->error) * swing;
    e->terms = activation_has(p->activation, ACTIVATION_SELECTS) ? fabs(e->result) : fabs(both) * magnitude;
    e->free = oracle_is_free(p, both, derivative);
}

static double oracle_residual(const oracle_problem *p, int64_t item, int64_t i, int64_t j) {
    return view_get(&p->residual, item, i, j) * oracle_scale(&p->scale_residual, item, 0, 0);
}

static double oracle_saved(const oracle_problem *p, int64_t item, int64_t i, int64_t j) {
    return view_get(&p->aux, item, i, j) * oracle_scale(&p->scale_aux, item, 0, 0);
}

/* From the sum over k to v; e has sum and magnitude. */
static void oracle_take_v(const oracle_problem *p, element *e, int64_t item, int64_t i, int64_t j) {
    double scale_c = p->beta != 0 ? oracle_scale(&p->scale_c, item, 0, 0) : 0;
    double c = p->beta != 0 ? p->beta * scale_c * view_get(&p->c, item, i, j) : 0;
    double bias = p->flags & GEMMEPI_BIAS ? view_get(&p->bias, item, i, j) : 0;
    double all = fabs(p->alpha) * e->magnitude + fabs(c) + fabs(bias), rounding;
    e->v = (double)(p->alpha * e->sum + c + bias);
    rounding = oracle_relaxed_rounding(p, (double)(p->alpha * e->sum), c);
    e->exact_v = p->exact && all < oracle_exact_limit(p, 0) && e->magnitude < oracle_exact_limit(p, 1) &&
                 rounding == 0;
    e->error = !isfinite(all) ? 0 : oracle_product_error(p, all) + rounding;
}

/* An element of D, of what is a value, a gate, and the one that belongs to both. */
typedef struct halves {
    element value, gate, both;
    int is_gate;
} halves;

/* Element (i, j), with `along` for its index along the halves: of the products v of one item, or of aux. */
static element oracle_half(const oracle_problem *p, const element *v, int64_t item, int64_t i, int64_t j,
                           int64_t along) {
    element e;
    i = p->gate_rows ? along : i;
    j = p->gate_rows ? j : along;
    if (v != NULL)
        return v[i * p->n + j];
    memset(&e, 0, sizeof e);
    e.v = oracle_saved(p, item, i, j);
    e.exact_v = p->exact;
    e.saved = 1;
    return e;
}

static halves oracle_halves(const oracle_problem *p, const element *v, int64_t item, int64_t i, int64_t j) {
    int64_t along = p->gate_rows ? i : j, extent = p->gate_rows ? p->m : p->n;
    int64_t half = oracle_makes_halves(p->flags) ? extent / 2 : extent, first = along % half;
    int gate_first = (p->flags & GEMMEPI_GATE_FIRST) != 0;
    const element *of_two = oracle_makes_halves(p->flags) ? v : NULL, *of_one = of_two == NULL ? v : NULL;
    halves h;
    h.value = oracle_half(p, of_two, item, i, j, first + (gate_first ? half : 0));
    h.gate = oracle_half(p, of_two, item, i, j, first + (gate_first ? 0 : half));
    h.both = h.value;
    if (p->flags & GEMMEPI_BACKWARD)
        h.both = oracle_half(p, of_one, item, i, j, first);
    h.is_gate = (along >= half) != gate_first;
    return h;
}

static element oracle_gated(const oracle_problem *p, const element *v, int64_t item, int64_t i, int64_t j) {
    halves h = oracle_halves(p, v, item, i, j);
    element e = h.both;
    e.exact_v = h.value.exact_v && h.gate.exact_v && h.both.exact_v;
    if (p->flags & GEMMEPI_BACKWARD && h.is_gate)
        oracle_gate_gradient(p, &e, &h.both, &h.value, &h.gate);
    else
        oracle_gate(p, &e, &h.both, &h.gate);
    e.exact_v = e.exact_v && fabs(e.result) < oracle_exact_gated_limit(p);
    return e;
}

/* The result of one v, without GATED. */
static void oracle_act(const oracle_problem *p, element *e, int64_t item, int64_t i, int64_t j) {
    if (p->flags & GEMMEPI_UPSTREAM)
        oracle_upstream(p, e, oracle_saved(p, item, i, j));
    else if (p->flags & GEMMEPI_BACKWARD)
        oracle_backward(p, e, oracle_saved(p, item, i, j));
    else
        oracle_forward(p, e);
}

/* From the result of the activation to what is stored. */
static void oracle_finish(const oracle_problem *p, element *e, int64_t item, int64_t i, int64_t j) {
    double limit = p->flags & GEMMEPI_GATED ? oracle_exact_gated_limit(p) : oracle_exact_limit(p, 0);
    e->spread += oracle_relaxed_tanh(p);
    e->exact = e->exact_v && p->activation <= GEMMEPI_RELU;
    if (p->flags & GEMMEPI_RESIDUAL) {
        double residual = oracle_residual(p, item, i, j);
        e->result += residual;
        e->terms += fabs(residual);
        e->exact = e->exact && e->terms < limit;
    }
    if (!isfinite(e->result) || isnan(e->spread))
        e->spread = 0;
}

/* Element (i, j) of D, from the products v of one item. */
static element oracle_result(const oracle_problem *p, const element *v, int64_t item, int64_t i, int64_t j) {
    element e;
    if (p->flags & GEMMEPI_GATED) {
        e = oracle_gated(p, v, item, i, j);
    } else {
        e = v[i * p->n + j];
        oracle_act(p, &e, item, i, j);
    }
    oracle_finish(p, &e, item, i, j);
    return e;
}

/* From the sum over k to what is stored, without GATED; e has sum and magnitude. */
static void oracle_element(const oracle_problem *p, element *e, int64_t item, int64_t i, int64_t j) {
    oracle_take_v(p, e, item, i, j);
    oracle_act(p, e, item, i, j);
    oracle_finish(p, e, item, i, j);
}

/* A whole number modulo 2^32, and the I32 that has these bits. */
static uint32_t oracle_modulo(wide x) {
    return (uint32_t)(int64_t)x;
}

static double oracle_from_modulo(uint32_t x) {
    return x < 0x80000000u ? (double)x : (double)x - 4294967296.0;
}

/* oracle_take_v, oracle_result and oracle_element for I32 results. */
static void oracle_take_whole_v(const oracle_problem *p, element *e, int64_t item, int64_t i, int64_t j) {
    uint32_t v = oracle_modulo(nearbyint(p->alpha)) * oracle_modulo(e->sum);
    if (p->beta != 0)
        v += oracle_modulo(nearbyint(p->beta)) * oracle_modulo(view_get(&p->c, item, i, j));
    if (p->flags & GEMMEPI_BIAS)
        v += oracle_modulo(view_get(&p->bias, item, i, j));
    e->v = oracle_from_modulo(v);
    e->error = 0;
    e->exact_v = 1;
}

/* The result of e, which may be a gate, and of its value. */
static void oracle_whole_finish(const oracle_problem *p, element *e, const element *value, int64_t item,
                                int64_t i, int64_t j) {
    uint32_t result = p->activation == GEMMEPI_RELU && e->v < 0 ? 0 : oracle_modulo(e->v);
    if (value != NULL)
        result *= oracle_modulo(value->v);
    if (p->flags & GEMMEPI_RESIDUAL)
        result += oracle_modulo(oracle_residual(p, item, i, j));
    e->result = oracle_from_modulo(result);
    e->spread = e->terms = 0;
    e->exact = 1;
}

static element oracle_whole_result(const oracle_problem *p, const element *v, int64_t item, int64_t i,
                                   int64_t j) {
    element e;
    if (p->flags & GEMMEPI_GATED) {
        halves h = oracle_halves(p, v, item, i, j);
        e = h.gate;
        oracle_whole_finish(p, &e, &h.value, item, i, j);
    } else {
        e = v[i * p->n + j];
        oracle_whole_finish(p, &e, NULL, item, i, j);
    }
    return e;
}

static void oracle_whole_element(const oracle_problem *p, element *e, int64_t item, int64_t i, int64_t j) {
    oracle_take_whole_v(p, e, item, i, j);
    oracle_whole_finish(p, e, NULL, item, i, j);
}

/* How far off the result in the accumulator may be. */
static double oracle_spread(const oracle_problem *p, const element *e) {
    int shorter = p->activation > GEMMEPI_RELU && oracle_format(p->d.dtype).size <= 2;
    return e->spread +
           (4 * oracle_roundoff(oracle_accumulator(p)) + (shorter ? ldexp(1, -12) : 0)) * e->terms;
}

/* A residual may cancel all of a gradient but what the short forms of derivatives are off, which the rounding of D hides otherwise. */
static double oracle_spread_beside(const oracle_problem *p, const element *e) {
    int shorter = p->activation > GEMMEPI_RELU && oracle_format(p->d.dtype).size <= 2;
    return e->spread + (shorter && p->flags & GEMMEPI_RESIDUAL && p->flags & GEMMEPI_BACKWARD
                            ? exp2(-16.5) * e->terms
                            : 0);
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

/* For 8 bits: a number that may be off by spread, times a scale. */
static expected oracle_stored_narrow(const oracle_problem *p, gemmepi_dtype dtype, double value,
                                     double spread, double scale, int exact) {
    expected x;
    x.value = exact ? oracle_round(dtype, value * scale) : value * scale;
    x.bound = exact ? 0 : fabs(scale) * spread + oracle_roundoff(oracle_accumulator(p)) * fabs(x.value);
    return x;
}

/* A found scale, which is that of a line of D: column-major, of a column. */
static double oracle_found(const oracle_problem *p, int64_t item, int64_t i, int64_t j) {
    return oracle_scale(&p->found, item, p->gate_rows ? j : i, p->gate_rows ? i : j);
}

/* D is multiplied by the reciprocal of such a scale, which takes two roundings more. */
static expected oracle_found_d(const oracle_problem *p, const element *e, double scale) {
    int half;
    int exact = e->exact && frexp(scale, &half) == 0.5;
    expected x = oracle_stored_narrow(p, p->d.dtype, e->result, oracle_spread(p, e), 1 / scale, exact);
    if (!exact)
        x.bound += 2 * oracle_roundoff(oracle_accumulator(p)) * fabs(x.value);
    return x;
}

static expected oracle_d(const oracle_problem *p, const element *e, int64_t item, int64_t i, int64_t j) {
    static const expected anything = {0, -1};
    if (e->free)
        return anything;
    if (p->found.mode)
        return oracle_found_d(p, e, oracle_found(p, item, i, j));
    if (oracle_is_narrow(p->d.dtype))
        return oracle_stored_narrow(p, p->d.dtype, e->result, oracle_spread(p, e),
                                    oracle_scale(&p->scale_d, item, 0, 0), e->exact);
    return oracle_stored(p, p->d.dtype, e->result, oracle_spread_beside(p, e), e->terms, e->exact);
}

static expected oracle_aux(const oracle_problem *p, const element *e, int64_t item) {
    if (oracle_is_narrow(p->aux.dtype))
        return oracle_stored_narrow(p, p->aux.dtype, e->v, e->error, oracle_scale(&p->scale_aux, item, 0, 0),
                                    e->exact_v);
    return oracle_stored(p, p->aux.dtype, e->v, e->error, 0, e->exact_v);
}

/* The largest magnitude so far, and the least and the most that an answer may take it for. */
typedef struct largest {
    double value, low, high;
    int exact;
} largest;

static double oracle_larger(double x, double y) { /* NaN stays */
    return isnan(x) || x > y ? x : y;
}

static void oracle_take(largest *l, double value, double spread, int exact) {
    l->value = oracle_larger(l->value, fabs(value));
    l->low = oracle_larger(l->low, fabs(value) - spread);
    l->high = oracle_larger(l->high, fabs(value) + spread);
    l->exact = l->exact && exact;
}

static expected oracle_amax(const oracle_problem *p, const largest *l) {
    gemmepi_dtype dtype = oracle_accumulator(p);
    expected x;
    x.value = l->exact ? oracle_round(dtype, l->value) : l->value;
    x.bound =
        l->exact ? 0 : oracle_stored_bound(dtype, l->value, fmax(l->high - l->value, l->value - l->low));
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
    int sixteen_bits = oracle_format(p->d.dtype).size == 2 && p->relaxed;
    int kept = !sixteen_bits || oracle_round(p->d.dtype, e->result) == e->result;
    double rounding = sixteen_bits ? oracle_roundoff(p->d.dtype) * fabs(e->result) : 0;
    oracle_add(t, e->result, fabs(e->result), e->spread + rounding, e->terms, e->exact && kept);
}

static expected oracle_bias_grad(const oracle_problem *p, const total *t, double old) {
    double value = (double)(t->value + old);
    int exact = t->exact && t->magnitude + fabs(old) < oracle_exact_limit(p, 0);
    if (p->d.dtype == GEMMEPI_I32)
        return oracle_stored(p, GEMMEPI_I32, oracle_from_modulo(oracle_modulo(t->value + old)), 0, 0, 1);
    return oracle_stored(p, p->bias_grad.dtype, value, t->spread, t->terms + fabs(old), exact);
}

/* The sum over some k, and its terms' magnitudes. */
static void oracle_dot(const oracle_problem *p, element *e, const double *a, const double *b, int64_t terms) {
    double sum = 0, magnitude = 0;
    wide precise = 0;
    int64_t k;
    if (p->a.dtype == GEMMEPI_F64) {
        for (k = 0; k < terms; k++) {
            precise += (wide)a[k] * b[k];
            magnitude += fabs(a[k] * b[k]);
        }
    } else {
        for (k = 0; k < terms; k++) {
            sum += a[k] * b[k];
            magnitude += fabs(a[k] * b[k]);
        }
    }
    e->sum += precise + sum;
    /* sums of I8 are exact, but for what double leaves of scaled ones */
    e->magnitude += oracle_both_i8(p) ? fabs(sum) + ldexp(magnitude, -26) : magnitude;
}

static element oracle_sum(const oracle_problem *p, const double *a, const double *b) {
    int64_t step = oracle_exact_steps(p) > 0 ? oracle_exact_steps(p) : p->k, k;
    element e;
    memset(&e, 0, sizeof e);
    for (k = 0; k < p->k; k += step)
        oracle_dot(p, &e, a + k, b + k, k + step < p->k ? step : p->k - k);
    return e;
}

/* scaled rows of op(A), or columns of op(B), one after the other */
static void oracle_unpack(double *to, const view *v, const scales *s, int64_t item, int64_t lines, int64_t k,
                          int columns) {
    int64_t line, i;
    for (line = 0; line < lines; line++)
        for (i = 0; i < k; i++)
            *to++ = (columns ? view_get(v, item, i, line) : view_get(v, item, line, i)) *
                    oracle_scale(s, item, line, i);
}

/* The products of one item, [m, n]; a and b are unpacked. */
static void oracle_products(const oracle_problem *p, int64_t item, const double *a, const double *b,
                            element *v) {
    int64_t i, j;
    for (i = 0; i < p->m; i++)
        for (j = 0; j < p->n; j++, v++) {
            *v = oracle_sum(p, a + i * p->k, b + j * p->k);
            if (p->d.dtype == GEMMEPI_I32)
                oracle_take_whole_v(p, v, item, i, j);
            else
                oracle_take_v(p, v, item, i, j);
        }
}

static int64_t oracle_rows(const oracle_problem *p) {
    return p->gate_rows ? oracle_result_extent(p->flags, p->m) : p->m;
}

static int64_t oracle_columns(const oracle_problem *p) {
    return p->gate_rows ? p->n : oracle_result_extent(p->flags, p->n);
}

static void oracle_store_aux(const oracle_problem *p, int64_t item, const element *v, expected *aux,
                             largest *most) {
    int64_t i;
    for (i = 0; i < p->m * p->n; i++, v++) {
        oracle_take(most, v->v, v->error, v->exact_v);
        if (p->flags & GEMMEPI_AUX)
            aux[i] =
                oracle_has_mask(p->flags | p->activation) ? oracle_mask_bit(p, v) : oracle_aux(p, v, item);
    }
}

/* Among those of an item. */
static int64_t oracle_found_index(const oracle_problem *p, int64_t i, int64_t j) {
    int64_t line = p->gate_rows ? j : i, along = p->gate_rows ? i : j;
    return p->found.mode == GEMMEPI_SCALE_VECTOR_128 ? along / 128 * p->found.columns + line : line;
}

/* found: NULL, or of the item. */
static void oracle_item(const oracle_problem *p, int64_t item, const element *v, expected *d, total *sums,
                        largest *most, largest *found) {
    int64_t i, j;
    for (i = 0; i < oracle_rows(p); i++)
        for (j = 0; j < oracle_columns(p); j++, d++) {
            element e = p->d.dtype == GEMMEPI_I32 ? oracle_whole_result(p, v, item, i, j)
                                                  : oracle_result(p, v, item, i, j);
            *d = oracle_d(p, &e, item, i, j);
            oracle_take(most, e.result, oracle_spread(p, &e), e.exact);
            if (found)
                oracle_take(found + oracle_found_index(p, i, j), e.result, oracle_spread(p, &e), e.exact);
            if (p->flags & GEMMEPI_BGRAD)
                oracle_add_element(p, sums + (p->bgrad_rows ? i : j), &e);
        }
}

static void oracle_add_operands(const oracle_problem *p, const double *a, const double *b, total *sums) {
    int64_t i;
    for (i = 0; i < p->m && p->flags & GEMMEPI_BGRAD_A; i++)
        oracle_add_operand(p, sums + i, a + i * p->k);
    for (i = 0; i < p->n && p->flags & GEMMEPI_BGRAD_B; i++)
        oracle_add_operand(p, sums + i, b + i * p->k);
}

/* The length of bias_grad. */
static int64_t oracle_sums(const oracle_problem *p) {
    if (p->flags & GEMMEPI_BGRAD)
        return p->bgrad_rows ? oracle_rows(p) : oracle_columns(p);
    return p->flags & GEMMEPI_BGRAD_A ? p->m : p->n;
}

/* Writes d, aux with AUX, bias_grad unless NULL, and both amax. */
static void oracle_product(const oracle_problem *p, answers *to) {
    int along_rows = p->flags & GEMMEPI_BGRAD_A || (p->flags & GEMMEPI_BGRAD && p->bgrad_rows);
    int64_t length = oracle_sums(p), d_size = oracle_rows(p) * oracle_columns(p), item, i;
    double *a = malloc(sizeof *a * (size_t)(p->m * p->k + 1));
    double *b = malloc(sizeof *b * (size_t)(p->n * p->k + 1));
    total *sums = malloc(sizeof *sums * (size_t)(length + 1));
    element *v = malloc(sizeof *v * (size_t)(p->m * p->n + 1));
    expected *bias_grad = to->bias_grad;
    largest most[2] = {{0, 0, 0, 1}, {0, 0, 0, 1}};
    for (item = 0; item < p->batch; item++) {
        int first = item == 0 || p->bias_grad.item != 0,
            last = item == p->batch - 1 || p->bias_grad.item != 0;
        oracle_unpack(a, &p->a, &p->scale_a, item, p->m, p->k, 0);
        oracle_unpack(b, &p->b, &p->scale_b, item, p->n, p->k, 1);
        for (i = 0; i < length && first; i++) {
            sums[i].value = sums[i].magnitude = sums[i].spread = sums[i].terms = 0;
            sums[i].exact = 1;
        }
        oracle_products(p, item, a, b, v);
        oracle_store_aux(p, item, v, to->aux + item * p->m * p->n, most + 1);
        oracle_item(p, item, v, to->d + item * d_size, sums, most,
                    to->found ? to->found + item * p->found.rows * p->found.columns : NULL);
        oracle_add_operands(p, a, b, sums);
        for (i = 0; i < length && last && bias_grad != NULL; i++) {
            int64_t row = along_rows ? i : 0, column = along_rows ? 0 : i;
            int adds = (p->flags & GEMMEPI_ACCUMULATE_BIAS_GRAD) != 0;
            double old = adds ? view_get(&p->bias_grad, item, row, column) : 0;
            *bias_grad++ = oracle_bias_grad(p, sums + i, old);
        }
    }
    to->amax_d = oracle_amax(p, most);
    to->amax_aux = oracle_amax(p, most + 1);
    free(a);
    free(b);
    free(sums);
    free(v);
}

/* >>scales that are found */

/* What the manual makes of an amax. */
static double oracle_scale_of_amax(const oracle_problem *p, double amax) {
    double scale = amax / (p->d.dtype == GEMMEPI_E5M2 ? 57344.0 : 448.0);
    int exponent;
    if (amax == 0 || !isfinite(amax))
        return 1;
    scale = fmax(scale, ldexp(1, -126));
    if (!p->power_of_two)
        return scale;
    return frexp(scale, &exponent) == 0.5 ? scale : ldexp(1, exponent);
}

/* Whether a scale is that of a number between the least and the most that amax may be; a rounding or two more. */
static int oracle_accepts_found(const oracle_problem *p, double got, const largest *amax) {
    double room = p->power_of_two ? 0 : ldexp(1, -22), low = amax->low > 0 ? amax->low : 0;
    int half;
    if (p->power_of_two && frexp(got, &half) != 0.5)
        return 0;
    if (amax->value == 0 && amax->high == 0)
        return got == 1;
    if (!isfinite(amax->value))
        return got == 1;
    if (amax->exact)
        return fabs(got - oracle_scale_of_amax(p, amax->value)) <= ldexp(fabs(got), -24);
    return (low == 0 && got == 1) ||
           (got >= oracle_scale_of_amax(p, low == 0 ? 1e-300 : low * (1 - ldexp(1, -22))) * (1 - room) &&
            got <= oracle_scale_of_amax(p, amax->high * (1 + ldexp(1, -22))) * (1 + room));
}

/* >>verdicts */

/* 8 bits: one of the numbers within the bound, rounded. NaN is 0 in I8. */
static int oracle_accepts_narrow(gemmepi_dtype dtype, double got, expected want) {
    if (isnan(want.value))
        return dtype == GEMMEPI_I8 ? got == 0 : isnan(got) != 0;
    if (isinf(want.value))
        return got == oracle_round(dtype, want.value);
    return got >= oracle_round(dtype, want.value - want.bound) &&
           got <= oracle_round(dtype, want.value + want.bound);
}

/* NaN and infinity must be where the reference has them; an answer may overflow where the bound reaches
   there. */
static int oracle_accepts(gemmepi_dtype dtype, double got, expected want) {
    number_format f = oracle_format(dtype);
    if (want.bound < 0)
        return 1;
    if (dtype == GEMMEPI_DTYPE_DEFAULT)
        return (want.bound > 0 && !(fabs(want.value) > want.bound)) || (got > 0) == (want.value > 0);
    if (oracle_is_narrow(dtype))
        return oracle_accepts_narrow(dtype, got, want);
    if (isnan(want.value) || isinf(want.value))
        return isnan(want.value) ? isnan(got) != 0 : got == want.value;
    if (isinf(got))
        return (got > 0) == (want.value > 0) &&
               fabs(want.value) + want.bound >= ldexp(1, f.highest) - ldexp(1, f.highest - f.digits - 1);
    return fabs(got - want.value) <= want.bound;
}

#endif
