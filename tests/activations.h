/* The activations and their derivatives in the forms that do not cancel; at infinity to the letter, so that inf * 0 is NaN as in
   PyTorch. In long double where the machine has a wider one, because results in F64 are held against them. Of gemmepi.h it uses the
   names alone. */
#ifndef GEMMEPI_TESTS_ACTIVATIONS_H
#define GEMMEPI_TESTS_ACTIVATIONS_H

#include <math.h>

#include "gemmepi.h"

typedef long double wide;

#define ACTIVATION_COUNT 14

/* In the order of the manual. */
static const gemmepi_epilogue activation_codes[ACTIVATION_COUNT] = {
    GEMMEPI_NONE,       GEMMEPI_RELU,     GEMMEPI_GELU_TANH,  GEMMEPI_GELU_ERF, GEMMEPI_SILU,
    GEMMEPI_SIGMOID,    GEMMEPI_TANH,     GEMMEPI_LEAKY_RELU, GEMMEPI_ELU,      GEMMEPI_SQUARED_RELU,
    GEMMEPI_QUICK_GELU, GEMMEPI_SOFTPLUS, GEMMEPI_HARDSWISH,  GEMMEPI_MISH};

static const char *const activation_names[ACTIVATION_COUNT] = {
    "NONE",       "RELU", "GELU_TANH",    "GELU_ERF",   "SILU",     "SIGMOID",   "TANH",
    "LEAKY_RELU", "ELU",  "SQUARED_RELU", "QUICK_GELU", "SOFTPLUS", "HARDSWISH", "MISH"};

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

/* for (a = GEMMEPI_RELU; a <= GEMMEPI_MISH; a = activation_after(a)) */
static gemmepi_epilogue activation_after(gemmepi_epilogue code) {
    return code == GEMMEPI_MISH ? GEMMEPI_MISH + 1 : activation_codes[activation_index(code) + 1];
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
    return given != 0 ? given : activation == GEMMEPI_LEAKY_RELU ? 0.01 : activation == GEMMEPI_ELU ? 1 : 0;
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
    if (isnan(x) && activation != GEMMEPI_NONE && activation != GEMMEPI_LEAKY_RELU)
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

#endif
