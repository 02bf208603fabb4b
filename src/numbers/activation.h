/* The activations: one table of what is known of each, and value and derivative in double, in the forms that do not cancel
   (their formulas stand in api/products.h, what kernels compute in kernels/activation_each.cuh). */
#ifndef GEMMEPI_NUMBERS_ACTIVATION_H
#define GEMMEPI_NUMBERS_ACTIVATION_H

#include "../base/platform.h"

#include <float.h>
#include <math.h>

/* >>the table */

enum {
    GPI__OF_INTEGERS = 1, /* whole numbers stay whole, so that a result in I32 may have it */
    GPI__SAVES_MASK = 2,  /* AUX is a bit for each element where there is neither gate nor UPSTREAM */
    GPI__HAS_FORM_OF_LONG_SUMS = 4, /* one shorter still: kernels/activation_normal.cuh, LONG_SUMS */
    GPI__IS_WIDE_IN_SUMS = 8,       /* lacks registers beside BGRAD in high tiles of gemm_sm80.cu */
    GPI__JOINS_BIAS =
        16 /* where results are short it adds a sum and its bias as it multiplies them: of_biased_sum() of activation_each.cuh */
};

/* cycles: of a warpgroup for an element in each of its threads, in gemm_sm90.cu's epilogue beside what else it does, measured on an
   H200; of a gate for each of its halves half of them. 0: it costs nothing that was seen.
   rules: formulas of derivatives with g upstream: of the activation by its result r; of its derivative by x and by the parameter, where
   NULL is 0; of the activation by x, where NULL is g times its derivative, and by the parameter. What is 0 to the last bit is so by
   selection: its factors may overflow there. */
typedef struct gpi__activation_row {
    gemmepi_epilogue code;
    const char *name; /* as in GEMMEPI_RELU */
    double parameter; /* what it is unless given; 0: it has none */
    int cycles, traits;
    const char *rules[5];
} gpi__activation_row;

#define GPI__ACTIVATION(name) GEMMEPI_##name, #name
#define GPI__U                "(x * (1.5957691216057308 + 0.07135481627260025 * x * x))" /* gelu_tanh(x) is x sigmoid(u) */
#define GPI__SLOPE            "(1.5957691216057308 + 0.21406444881780073 * x * x)"

/* clang-format off */
static const gpi__activation_row gpi__activations[] = {
    {GPI__ACTIVATION(NONE), 0, 0, GPI__OF_INTEGERS, {NULL}},
    {GPI__ACTIVATION(RELU), 0, 0, GPI__OF_INTEGERS | GPI__SAVES_MASK, {"r > 0 ? g : 0", NULL, NULL, "x > 0 ? g : 0"}},
    {GPI__ACTIVATION(GELU_TANH), 0, 14, GPI__IS_WIDE_IN_SUMS | GPI__JOINS_BIAS,
     {NULL, "abs(x) > 40 ? 0 : g * d_sigmoid" GPI__U " * (2 * " GPI__SLOPE
            " + x * (0.42812889763560147 * x - " GPI__SLOPE " * " GPI__SLOPE " * tanh(0.5 * " GPI__U ")))"}},
    {GPI__ACTIVATION(GELU_ERF), 0, 24, GPI__HAS_FORM_OF_LONG_SUMS,
     {NULL, "abs(x) > 40 ? 0 : 0.3989422804014327 * g * (2 - x * x) * exp(-0.5 * x * x)"}},
    {GPI__ACTIVATION(SILU), 0, 14, 0, {NULL, "g * d_sigmoid(x) * (2 - x * tanh(0.5 * x))"}},
    {GPI__ACTIVATION(SIGMOID), 0, 14, 0, {"g * r * (1 - r)", "-(g * r * tanh(0.5 * x))"}},
    {GPI__ACTIVATION(TANH), 0, 14, 0, {"g * (1 - r * r)", "-2 * g * r * tanh(x)"}},
    {GPI__ACTIVATION(LEAKY_RELU), 0.01, 14, 0, {NULL, NULL, "x > 0 ? 0 : g", NULL, "x > 0 ? 0 : g * x"}},
    {GPI__ACTIVATION(ELU), 1, 14, 0, {NULL, "x > 0 ? 0 : g * r", "x > 0 ? 0 : g * exp(x)", NULL, "x > 0 ? 0 : g * expm1(x)"}},
    {GPI__ACTIVATION(SQUARED_RELU), 0, 14, 0,
     {NULL, "x > 0 ? 2 * g : 0", NULL, "x > 0 || isnan(x) ? g * d_squared_relu(x) : 0"}},
    {GPI__ACTIVATION(QUICK_GELU), 0, 14, 0,
     {NULL, "1.702 * g * d_sigmoid(1.702 * x) * (2 - 1.702 * x * tanh(0.851 * x))"}},
    {GPI__ACTIVATION(SOFTPLUS), 0, 14, 0, {NULL, "g * d_sigmoid(x)"}},
    {GPI__ACTIVATION(HARDSWISH), 0, 14, 0, {NULL, "x > -3 && x < 3 ? g / 3 : 0"}},
    {GPI__ACTIVATION(MISH), 0, 14, 0,
     {NULL, "g * d_tanh(softplus(x)) * sigmoid(x) * (2 + x * (1 - sigmoid(x) * (1 + 2 * tanh(softplus(x)))))"}},
    {GPI__ACTIVATION(HARDSIGMOID), 0, 14, 0, {NULL, NULL, NULL, "x > -3 && x < 3 ? g * d_hardsigmoid(x) : 0"}},
};
/* clang-format on */

static uint32_t gpi__activation(gemmepi_epilogue epilogue) {
    return (uint32_t)(epilogue & GEMMEPI_ACTIVATION_MASK);
}

/* NULL where the code is no activation's. */
static const gpi__activation_row *gpi__activation_of(gemmepi_epilogue epilogue) {
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__activations); i++)
        if (gpi__activations[i].code == gpi__activation(epilogue))
            return &gpi__activations[i];
    return NULL;
}

/* "SILU", or NULL where the code is no activation's. */
static const char *gpi__activation_name(gemmepi_epilogue epilogue) {
    const gpi__activation_row *row = gpi__activation_of(epilogue);
    return row ? row->name : NULL;
}

static int gpi__activation_has(gemmepi_epilogue epilogue, int trait) {
    const gpi__activation_row *row = gpi__activation_of(epilogue);
    return row && (row->traits & trait);
}

/* Whether it takes time that a kernel would show. */
static int gpi__activation_costs(gemmepi_epilogue epilogue) {
    const gpi__activation_row *row = gpi__activation_of(epilogue);
    return row && row->cycles > 0;
}

/* The parameter of an activation that has one and was given none; 0 for the others. */
static double gpi__default_parameter(gemmepi_epilogue epilogue) {
    const gpi__activation_row *row = gpi__activation_of(epilogue);
    return row ? row->parameter : 0;
}

#ifndef GEMMEPI_NO_HOST
/* >>what they are made of */

/* 1 / (1 + exp(-x)) without overflow, accurate in both tails */
static double gpi__logistic(double x) {
    double e = exp(x < 0 ? x : -x);
    return (x < 0 ? e : 1) / (1 + e);
}

/* factor times the logistic of x. Far below zero the logistic itself is subnormal and short of digits, although the
   result need not be: there its root is multiplied in twice. */
static double gpi__scaled_logistic(double factor, double x) {
    double root;
    if (x > -600)
        return factor * gpi__logistic(x);
    root = exp(0.5 * x);
    return factor * root * root;
}

#define GPI__SQRT_2_OVER_PI 0.79788456080286535588
#define GPI__SQRT_HALF      0.70710678118654752440
#define GPI__INV_SQRT_2PI   0.39894228040143267794

/* 2 sqrt(2/pi) (x + 0.044715 x^3): the tanh form of GELU is x times the logistic of this */
static double gpi__gelu_argument(double x) {
    return x * (2 * GPI__SQRT_2_OVER_PI + 2 * GPI__SQRT_2_OVER_PI * 0.044715 * (x * x));
}

/* exp(-x (y + more)) of x, y >= 0 and finite products, which are not rounded; more is small */
static double gpi__exp_of_product(double x, double y, double more) {
    double product = x * y, e = exp(-product);
    return fma(e, -fma(x, more, fma(x, y, -product)), e);
}

/* 1 / (1 + x), with what was rounded off the sum */
static double gpi__reciprocal_of_1_plus(double x) {
    double sum = 1 + x, rest = sum > 2 ? 1 - (sum - x) : x - (sum - 1), inverse = 1 / sum;
    return fma(inverse, fma(-rest, inverse, fma(-sum, inverse, 1.0)), inverse);
}

/* The derivative of x s(w), of e = exp(-|w|) and the derivative slope + more of w: s(w) (1 + x (slope + more) s(-w)) */
static double gpi__gate_derivative(double x, double e, double slope, double more) {
    double inverse = gpi__reciprocal_of_1_plus(e), small = e * inverse;
    double s = x < 0 ? small : inverse, opposite = x < 0 ? inverse : small, change = x * opposite;
    change = fma(change, slope, fma(change, more, fma(x, opposite, -change) * slope));
    return fma(change, s, s);
}

/* e = exp(-|w|) of w = gpi__gelu_argument(x) where |x| < 30, and beyond that 0 */
static double gpi__gelu_exponential(double x) {
    double c = 2 * GPI__SQRT_2_OVER_PI, size = x < 0 ? -x : x, square, factor;
    size = size > 30 ? 30 : size;
    square = size * size;
    factor = fma(c * 0.044715, square, c);
    return gpi__exp_of_product(size, factor, fma(c * 0.044715, square, c - factor));
}

/* what was rounded off -x sqrt(1/2), times the slope of erfc / 2 but for its exponential; of bounded x */
static double gpi__rounded_off(double x) {
    double argument = -x * GPI__SQRT_HALF;
    return (fma(-x, GPI__SQRT_HALF, -argument) + x * 4.8336466567264567e-17) * -0.56418958354775628695;
}

/* Phi(x) is phi(x) times this over -x, for x < -30: to 2^-50, where a rounding of x weighs 900 of them */
static double gpi__normal_tail(double x) {
    double w = 1 / (x * x);
    return 1 - w * (1 - 3 * w * (1 - 5 * w * (1 - 7 * w * (1 - 9 * w))));
}

/* factor phi(x) of x < -30, where the exponential is subnormal although the result need not be */
static double gpi__times_density(double factor, double x) {
    double root = exp(-0.25 * x * x);
    return GPI__INV_SQRT_2PI * root * factor * root;
}

/* of x >= -30 */
static double gpi__normal(double x) {
    double within = x > 40 ? 40 : x;
    return fma(gpi__rounded_off(within), exp(-0.5 * within * within), 0.5 * erfc(-within * GPI__SQRT_HALF));
}

/* n of tanh(log(1 + exp(x))) = n / (n + 2), for |x| <= 40 */
static double gpi__mish_product(double x) {
    double e = exp(x);
    return e * (e + 2);
}

/* >>value and derivative */

static double gpi__activate(uint32_t activation, double parameter, double x) {
    double n;
    switch (activation) {
    case GEMMEPI_RELU:
        return x > 0 || x != x ? x : 0;
    case GEMMEPI_GELU_TANH:
        if (x < -15)
            return gpi__scaled_logistic(x, gpi__gelu_argument(x));
        n = gpi__gelu_exponential(x);
        return x * ((x < 0 ? n : 1) / (1 + n));
    case GEMMEPI_GELU_ERF: /* at infinity the formula is NaN */
        return x < -30 ? gpi__times_density(x - x - gpi__normal_tail(x), x) : x * gpi__normal(x);
    case GEMMEPI_SILU:
        return gpi__scaled_logistic(x, x);
    case GEMMEPI_SIGMOID:
        return gpi__logistic(x);
    case GEMMEPI_TANH:
        return tanh(x);
    case GEMMEPI_LEAKY_RELU:
        return x > 0 || x != x ? x : parameter * x;
    case GEMMEPI_ELU:
        return x > 0 || x != x ? x : parameter * expm1(x);
    case GEMMEPI_SQUARED_RELU:
        return x > 0 || x != x ? x * x : 0;
    case GEMMEPI_QUICK_GELU:
        return gpi__scaled_logistic(x, 1.702 * x);
    case GEMMEPI_SOFTPLUS:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    case GEMMEPI_HARDSWISH:
        return x * ((x < -3 ? 0 : x > 3 ? 6 : x + 3) / 6);
    case GEMMEPI_MISH: /* far below zero the factor is exp(x), as the logistic is, far above 1 */
        if (x < -40 || x > 40)
            return x < 0 ? gpi__scaled_logistic(x, x) : x;
        n = gpi__mish_product(x);
        return x * (n / (n + 2));
    case GEMMEPI_HARDSIGMOID:
        return (x < -3 ? 0 : x > 3 ? 6 : x + 3) / 6;
    default:
        return x;
    }
}

static double gpi__gelu_tanh_derivative(double x) {
    double argument, limited;
    if (x >= -15)
        return gpi__gate_derivative(x, gpi__gelu_exponential(x), 2 * GPI__SQRT_2_OVER_PI,
                                    2 * GPI__SQRT_2_OVER_PI * 0.134145 * (x > 30 ? 900 : x * x));
    argument = gpi__gelu_argument(x);
    /* beyond 64 the last factor is 0 or 1 and nothing must overflow; at infinity the formula is NaN */
    limited = x > 64 && x < HUGE_VAL ? 64 : x < -64 && x > -HUGE_VAL ? -64 : x;
    return gpi__scaled_logistic(1 + 2 * limited * gpi__logistic(-argument) *
                                        (GPI__SQRT_2_OVER_PI * (1 + 0.134145 * limited * limited)),
                                argument);
}

static double gpi__gelu_erf_derivative(double x) {
    double limited = x > 40 ? 40 : x, rest;
    if (x < -30)
        return gpi__times_density(x - gpi__normal_tail(x) / x, x);
    /* what was rounded off the argument, off the square and off x / sqrt(2 pi) */
    rest = gpi__rounded_off(limited);
    rest = fma(limited * GPI__INV_SQRT_2PI, -0.5 * fma(limited, limited, -(limited * limited)), rest);
    return fma(fma(x, GPI__INV_SQRT_2PI, rest), exp(-0.5 * x * x), 0.5 * erfc(-limited * GPI__SQRT_HALF));
}

static double gpi__mish_derivative(double x) {
    double power, n, inverse, rest;
    if (x < -40)
        return gpi__scaled_logistic(1 + x, x);
    if (x > 40)
        return 1 + (x - x); /* at infinity the formula is NaN */
    /* above 0 n / (1 + n) is 1 - 1 / (1 + n), which is rounded less often */
    power = exp(x);
    n = fma(power, 0.5 * power, power);
    inverse = gpi__reciprocal_of_1_plus(n);
    rest = fma(x * fma(power, power, power), inverse, x > 0 ? -1 : n);
    return x > 0 ? fma(rest, inverse, 1.0) : rest * inverse;
}

/* Where it is 0 by selection see below. */
static double gpi__derivative(uint32_t activation, double parameter, double x) {
    double argument, size;
    switch (activation) {
    case GEMMEPI_GELU_TANH:
        return gpi__gelu_tanh_derivative(x);
    case GEMMEPI_GELU_ERF:
        return gpi__gelu_erf_derivative(x);
    case GEMMEPI_SILU:
        if (x >= -600)
            return gpi__gate_derivative(x, exp(x < 0 ? x : -x), 1, 0);
        return gpi__scaled_logistic(1 + x * gpi__logistic(-x), x);
    case GEMMEPI_SIGMOID:
        return gpi__logistic(x) * gpi__logistic(-x);
    case GEMMEPI_TANH:
        size = x < 0 ? -x : x;
        return gpi__scaled_logistic(4 * gpi__logistic(2 * size), -2 * size);
    case GEMMEPI_LEAKY_RELU:
        return x > 0 ? 1 : parameter;
    case GEMMEPI_ELU:
        return x > 0 ? 1 : parameter * exp(x);
    case GEMMEPI_SQUARED_RELU:
        return x > 0 || x != x ? 2 * x : 0;
    case GEMMEPI_QUICK_GELU: /* 1.702 x must not overflow where x does not */
        if (x >= -350) {
            size = x < 0 ? -x : x > 1000 ? 1000 : x;
            return gpi__gate_derivative(x, gpi__exp_of_product(size, 1.702, 0), 1.702, 0);
        }
        argument = 1.702 * (x > 1e300 && x < HUGE_VAL ? 1e300 : x < -1e300 && x > -HUGE_VAL ? -1e300 : x);
        return gpi__scaled_logistic(1 + argument * gpi__logistic(-argument), argument);
    case GEMMEPI_SOFTPLUS:
        return gpi__logistic(x);
    case GEMMEPI_HARDSWISH:
        return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
    case GEMMEPI_MISH:
        return gpi__mish_derivative(x);
    case GEMMEPI_HARDSIGMOID:
        return 1 / 6.0;
    default:
        return 1;
    }
}

/* Whether the derivative is 0 by selection, so that inf * 0 does not arise. */
static int gpi__selects_0(uint32_t activation, double x) {
    switch (activation) {
    case GEMMEPI_RELU:
        return !(x > 0);
    case GEMMEPI_SQUARED_RELU:
        return x <= 0;
    case GEMMEPI_HARDSIGMOID:
        return !(x > -3 && x < 3);
    default:
        return 0;
    }
}

/* v times the derivative */
static double gpi__times_derivative(uint32_t activation, double parameter, double v, double x) {
    if (gpi__selects_0(activation, x))
        return 0;
    if (activation == GEMMEPI_SQUARED_RELU)
        return v * x * 2; /* 2 x may overflow */
    return v * gpi__derivative(activation, parameter, x);
}

/* x y z, right where that is in the range, wherever a product of two of them is */
static double gpi__product_in_range(double x, double y, double z) {
    double both = x * y, size = fabs(both), larger, smaller, outer;
    if (size >= DBL_MIN && size <= DBL_MAX)
        return both * z;
    larger = fabs(x) > fabs(y) ? x : y;
    smaller = fabs(x) > fabs(y) ? y : x;
    outer = larger * z;
    return size > DBL_MAX || fabs(outer) <= DBL_MAX ? outer * smaller : smaller * z * larger;
}

/* v times the activation, which may be subnormal or infinite where the product is not */
static double gpi__times_activation(uint32_t activation, double parameter, double v, double x) {
    int is_below = x <= 0;
    if (activation == GEMMEPI_SQUARED_RELU && !is_below)
        return gpi__product_in_range(x, x, v);
    if (activation == GEMMEPI_LEAKY_RELU && is_below)
        return gpi__product_in_range(x, parameter, v);
    if (activation == GEMMEPI_ELU && is_below)
        return gpi__product_in_range(expm1(x), parameter, v);
    return v * gpi__activate(activation, parameter, x);
}

/* dy value act'(gate); of three factors that may be any number, else with dy value first where it is a number that is not
   subnormal, or the larger one */
static double gpi__gate_gradient(uint32_t activation, double parameter, double dy, double value,
                                 double gate) {
    double both = dy * value, size = fabs(both), first = both, last = 1;
    if (gpi__selects_0(activation, gate))
        return 0;
    if (activation == GEMMEPI_SQUARED_RELU)
        return gpi__product_in_range(dy, value, gate) * 2;
    if (!(gate > 0) && (activation == GEMMEPI_LEAKY_RELU || activation == GEMMEPI_ELU))
        return gpi__product_in_range(dy, value, gpi__derivative(activation, parameter, gate));
    if (!(size <= DBL_MAX && (size >= DBL_MIN || dy == 0 || value == 0))) {
        int value_first = fabs(value) > fabs(dy);
        first = value_first ? value : dy;
        last = value_first ? dy : value;
    }
    return gpi__times_derivative(activation, parameter, first, gate) * last;
}
#endif

#endif
