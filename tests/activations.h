/* The activations and their derivatives in the forms that do not cancel; at infinity to the letter, so that inf * 0 is NaN as in
   PyTorch. In long double where the machine has a wider one, because results in F64 are held against them. Of gemmepi.h it uses the
   names alone. */
#ifndef GEMMEPI_TESTS_ACTIVATIONS_H
#define GEMMEPI_TESTS_ACTIVATIONS_H

#include <math.h>

#ifndef GEMMEPI_H
#include "gemmepi.h"
#endif

typedef long double wide;

/* X(name, parameter, slope, traits) in the order of their codes. parameter: what it is unless given, 0: it has none. slope: the largest
   |act'|, of those with a parameter p of |p| <= 1; SQUARED_RELU's has none. */
/* clang-format off */
#define ACTIVATION_LIST(X)                                                                      \
    X(NONE,         0,    1,    ACTIVATION_IS_RATIONAL)                                         \
    X(RELU,         0,    1,    ACTIVATION_IS_RATIONAL | ACTIVATION_SELECTS)                    \
    X(GELU_TANH,    0,    1.13, 0)                                                              \
    X(GELU_ERF,     0,    1.13, 0)                                                              \
    X(SILU,         0,    1.1,  0)                                                              \
    X(SIGMOID,      0,    1,    0)                                                              \
    X(TANH,         0,    1,    0)                                                              \
    X(LEAKY_RELU,   0.01, 1,    ACTIVATION_IS_RATIONAL)                                         \
    X(ELU,          1,    1,    0)                                                              \
    X(SQUARED_RELU, 0,    1,    ACTIVATION_IS_RATIONAL | ACTIVATION_SELECTS)                    \
    X(QUICK_GELU,   0,    1.1,  0)                                                              \
    X(SOFTPLUS,     0,    1,    0)                                                              \
    X(HARDSWISH,    0,    1.5,  ACTIVATION_IS_RATIONAL | ACTIVATION_JUMPS)                      \
    X(MISH,         0,    1.1,  0)                                                              \
    X(HARDSIGMOID,  0,    1,    ACTIVATION_IS_RATIONAL | ACTIVATION_SELECTS | ACTIVATION_JUMPS)
/* clang-format on */

enum {
    ACTIVATION_IS_RATIONAL = 1, /* no exponential */
    ACTIVATION_SELECTS = 2,     /* the derivative has one term, which is 0 by selection where it is 0 */
    ACTIVATION_JUMPS = 4        /* the derivative does, elsewhere than at 0 */
};

#define ACTIVATION_INDEX_OF(name, parameter, slope, traits)     ACTIVATION_INDEX_##name,
#define ACTIVATION_CODE_OF(name, parameter, slope, traits)      GEMMEPI_##name,
#define ACTIVATION_NAME_OF(name, parameter, slope, traits)      #name,
#define ACTIVATION_PARAMETER_OF(name, parameter, slope, traits) parameter,
#define ACTIVATION_SLOPE_OF(name, parameter, slope, traits)     slope,
#define ACTIVATION_TRAITS_OF(name, parameter, slope, traits)    traits,

enum { ACTIVATION_LIST(ACTIVATION_INDEX_OF) ACTIVATION_COUNT };

static const gemmepi_epilogue activation_codes[] = {ACTIVATION_LIST(ACTIVATION_CODE_OF)};
static const char *const activation_names[] = {ACTIVATION_LIST(ACTIVATION_NAME_OF)};
static const double activation_parameters[] = {ACTIVATION_LIST(ACTIVATION_PARAMETER_OF)};
static const double activation_slopes[] = {ACTIVATION_LIST(ACTIVATION_SLOPE_OF)};
static const int activation_traits[] = {ACTIVATION_LIST(ACTIVATION_TRAITS_OF)};

#define ACTIVATION_LAST activation_codes[ACTIVATION_COUNT - 1]

/* Where an epilogue's activation stands in those; -1: it has none of them. */
static int activation_index(gemmepi_epilogue epilogue) {
    int i = ACTIVATION_COUNT - 1;
    while (i >= 0 && activation_codes[i] != (epilogue & GEMMEPI_ACTIVATION_MASK))
        i--;
    return i;
}

static const char *activation_name(gemmepi_epilogue epilogue) {
    int i = activation_index(epilogue);
    return i < 0 ? "unknown" : activation_names[i];
}

static int activation_has(gemmepi_epilogue epilogue, int trait) {
    int i = activation_index(epilogue);
    return i >= 0 && activation_traits[i] & trait;
}

static int activation_has_parameter(gemmepi_epilogue epilogue) {
    int i = activation_index(epilogue);
    return i >= 0 && activation_parameters[i] != 0;
}

/* for (a = GEMMEPI_RELU; a <= ACTIVATION_LAST; a = activation_after(a)) */
static gemmepi_epilogue activation_after(gemmepi_epilogue code) {
    return code == ACTIVATION_LAST ? code + 1 : activation_codes[activation_index(code) + 1];
}

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

/* tanh(log(1 + exp(x))) and 1 less its square */
static wide oracle_mish(wide x) {
    return tanhl(x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)));
}

static wide oracle_mish_rest(wide x) {
    wide e = expl(x < 0 ? x : -x), both = x < 0 ? e * (e + 2) + 2 : 1 + 2 * e + 2 * e * e;
    return x < 0 ? 4 * (1 + e) * (1 + e) / (both * both) : 4 * e * e * (1 + e) * (1 + e) / (both * both);
}

static double oracle_parameter(unsigned activation, double given) {
    int i = activation_index(activation);
    return given != 0 || i < 0 ? given : activation_parameters[i];
}

/* 0 is a parameter like any other. */
static double oracle_given_parameter(unsigned activation, int is_given, double given) {
    return is_given ? given : oracle_parameter(activation, 0);
}

static wide oracle_wide_activation(unsigned activation, double parameter, wide x) {
    if (isnan(x))
        return x;
    switch (activation) {
    case GEMMEPI_RELU:
        return x > 0 ? x : 0;
    case GEMMEPI_GELU_TANH:
        return (x * oracle_logistic(oracle_gelu_argument(x)));
    case GEMMEPI_GELU_ERF:
        return (x * oracle_normal_cdf(x));
    case GEMMEPI_SILU:
        return (x * oracle_logistic(x));
    case GEMMEPI_SIGMOID:
        return oracle_logistic(x);
    case GEMMEPI_TANH:
        return tanhl(x);
    case GEMMEPI_LEAKY_RELU:
        return x > 0 ? x : parameter * x;
    case GEMMEPI_ELU:
        return x > 0 ? x : (parameter * expm1l(x));
    case GEMMEPI_SQUARED_RELU:
        return x > 0 ? x * x : 0;
    case GEMMEPI_QUICK_GELU:
        return (x * oracle_logistic(1.702L * x));
    case GEMMEPI_SOFTPLUS:
        return (x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)));
    case GEMMEPI_HARDSWISH:
        return (x * fminl(fmaxl(x + 3, 0), 6) / 6);
    case GEMMEPI_MISH:
        return (x * oracle_mish(x));
    case GEMMEPI_HARDSIGMOID:
        return fminl(fmaxl(x + 3, 0), 6) / 6;
    default:
        return x;
    }
}

static double oracle_activation(unsigned activation, double parameter, double x) {
    return (double)oracle_wide_activation(activation, parameter, x);
}

/* act'(x), and the magnitudes of its terms. For RELU x is the bit of the mask. */
static wide oracle_wide_derivative(unsigned activation, double parameter, wide x, wide *magnitude) {
    wide first = 1, second = 0, w;
    if (isnan(x) && activation != GEMMEPI_NONE && activation != GEMMEPI_RELU &&
        activation != GEMMEPI_LEAKY_RELU && activation != GEMMEPI_HARDSIGMOID)
        return *magnitude = x;
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
    case GEMMEPI_LEAKY_RELU:
        first = x > 0 ? 1 : parameter;
        break;
    case GEMMEPI_ELU:
        first = x > 0 ? 1 : parameter * expl(x);
        break;
    case GEMMEPI_SQUARED_RELU:
        first = x > 0 ? 2 * x : 0;
        break;
    case GEMMEPI_QUICK_GELU:
        first = oracle_logistic(1.702L * x);
        second = first * 1.702L * x * oracle_logistic(-1.702L * x);
        break;
    case GEMMEPI_SOFTPLUS:
        first = oracle_logistic(x);
        break;
    case GEMMEPI_HARDSWISH:
        first = x <= -3 ? 0 : x >= 3 ? 1 : 0.5L;
        second = x > -3 && x < 3 ? x / 3 : 0;
        break;
    case GEMMEPI_MISH:
        first = oracle_mish(x);
        second = x * oracle_logistic(x) * oracle_mish_rest(x);
        break;
    case GEMMEPI_HARDSIGMOID:
        first = x > -3 && x < 3 ? 1 / 6.0L : 0;
        break;
    default:
        break;
    }
    *magnitude = fabsl(first) + fabsl(second);
    return first + second;
}

static double oracle_derivative(unsigned activation, double parameter, double at, double *magnitude) {
    wide terms, derivative = oracle_wide_derivative(activation, parameter, at, &terms);
    *magnitude = (double)terms;
    return (double)derivative;
}

/* Whether the derivative is 0 by selection, so that even an infinity times it is 0. */
static int oracle_selects_0(unsigned activation, double at) {
    double magnitude;
    return activation_has(activation, ACTIVATION_SELECTS) &&
           oracle_derivative(activation, 0, at, &magnitude) == 0;
}

#endif
