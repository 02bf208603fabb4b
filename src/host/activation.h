/* Activations and their derivatives in double, in the forms that do not cancel (see the manual's table). */
#ifndef GEMMEPI_HOST_ACTIVATION_H
#define GEMMEPI_HOST_ACTIVATION_H

#include "../base/platform.h"

#include <math.h>

/* 1 / (1 + exp(-x)) without overflow, accurate in both tails */
static double gemmepi__logistic(double x) {
    double e = exp(x < 0 ? x : -x);
    return (x < 0 ? e : 1) / (1 + e);
}

/* factor times the logistic of x. Far below zero the logistic itself is subnormal and short of digits, although the
   result need not be: there its root is multiplied in twice. */
static double gemmepi__scaled_logistic(double factor, double x) {
    double root;
    if (x > -600)
        return factor * gemmepi__logistic(x);
    root = exp(0.5 * x);
    return factor * root * root;
}

#define GEMMEPI__SQRT_2_OVER_PI 0.79788456080286535588
#define GEMMEPI__SQRT_HALF      0.70710678118654752440
#define GEMMEPI__INV_SQRT_2PI   0.39894228040143267794

/* 2 sqrt(2/pi) (x + 0.044715 x^3): the tanh form of GELU is x times the logistic of this */
static double gemmepi__gelu_argument(double x) {
    return x * (2 * GEMMEPI__SQRT_2_OVER_PI + 2 * GEMMEPI__SQRT_2_OVER_PI * 0.044715 * (x * x));
}

/* log(1 + exp(x)), accurate in the left tail */
static double gemmepi__softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* n of tanh(log(1 + exp(x))) = n / (n + 2), for |x| <= 40 */
static double gemmepi__mish_product(double x) {
    double e = exp(x);
    return e * (e + 2);
}

static double gemmepi__activate(uint32_t activation, double parameter, double x) {
    double n;
    switch (activation) {
    case GEMMEPI_RELU:
        return x > 0 || x != x ? x : 0;
    case GEMMEPI_GELU_TANH:
        return gemmepi__scaled_logistic(x, gemmepi__gelu_argument(x));
    case GEMMEPI_GELU_ERF:
        return x * (0.5 * erfc(-x * GEMMEPI__SQRT_HALF));
    case GEMMEPI_SILU:
        return gemmepi__scaled_logistic(x, x);
    case GEMMEPI_SIGMOID:
        return gemmepi__logistic(x);
    case GEMMEPI_TANH:
        return tanh(x);
    case GEMMEPI_LEAKY_RELU:
        return x > 0 || x != x ? x : parameter * x;
    case GEMMEPI_ELU:
        return x > 0 || x != x ? x : parameter * expm1(x);
    case GEMMEPI_SQUARED_RELU:
        return x > 0 || x != x ? x * x : 0;
    case GEMMEPI_QUICK_GELU:
        return gemmepi__scaled_logistic(x, 1.702 * x);
    case GEMMEPI_SOFTPLUS:
        return gemmepi__softplus(x);
    case GEMMEPI_HARDSWISH:
        return x * ((x < -3 ? 0 : x > 3 ? 6 : x + 3) / 6);
    case GEMMEPI_MISH: /* far below zero the factor is exp(x), as the logistic is, far above 1 */
        if (x < -40 || x > 40)
            return x < 0 ? gemmepi__scaled_logistic(x, x) : x;
        n = gemmepi__mish_product(x);
        return x * (n / (n + 2));
    default:
        return x;
    }
}

/* That of the RELUs is applied by selection: see below. */
static double gemmepi__derivative(uint32_t activation, double parameter, double x) {
    double argument, within, size, n;
    switch (activation) {
    case GEMMEPI_GELU_TANH:
        argument = gemmepi__gelu_argument(x);
        /* beyond 64 the last factor is 0 or 1 and nothing must overflow; at infinity the formula is NaN */
        within = x > 64 && x < HUGE_VAL ? 64 : x < -64 && x > -HUGE_VAL ? -64 : x;
        return gemmepi__scaled_logistic(1 + 2 * within * gemmepi__logistic(-argument) *
                                                (GEMMEPI__SQRT_2_OVER_PI * (1 + 0.134145 * within * within)),
                                        argument);
    case GEMMEPI_GELU_ERF:
        return 0.5 * erfc(-x * GEMMEPI__SQRT_HALF) + x * (GEMMEPI__INV_SQRT_2PI * exp(-0.5 * x * x));
    case GEMMEPI_SILU:
        return gemmepi__scaled_logistic(1 + x * gemmepi__logistic(-x), x);
    case GEMMEPI_SIGMOID:
        return gemmepi__logistic(x) * gemmepi__logistic(-x);
    case GEMMEPI_TANH:
        size = x < 0 ? -x : x;
        return gemmepi__scaled_logistic(4 * gemmepi__logistic(2 * size), -2 * size);
    case GEMMEPI_LEAKY_RELU:
        return x > 0 ? 1 : x == x ? parameter : x;
    case GEMMEPI_ELU:
        return x > 0 ? 1 : parameter * exp(x);
    case GEMMEPI_SQUARED_RELU:
        return x > 0 || x != x ? 2 * x : 0;
    case GEMMEPI_QUICK_GELU: /* 1.702 x must not overflow where x does not */
        argument = 1.702 * (x > 1e300 && x < HUGE_VAL ? 1e300 : x < -1e300 && x > -HUGE_VAL ? -1e300 : x);
        return gemmepi__scaled_logistic(1 + argument * gemmepi__logistic(-argument), argument);
    case GEMMEPI_SOFTPLUS:
        return gemmepi__logistic(x);
    case GEMMEPI_HARDSWISH:
        return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
    case GEMMEPI_MISH:
        if (x < -40)
            return gemmepi__scaled_logistic(1 + x, x);
        if (x > 40)
            return 1 + (x - x); /* at infinity the formula is NaN */
        n = gemmepi__mish_product(x);
        return n / (n + 2) + x * gemmepi__logistic(x) * (2 / (n + 2)) * (1 + n / (n + 2));
    default:
        return 1;
    }
}

/* v times the derivative; the RELUs select, so that inf * 0 does not arise. */
static double gemmepi__times_derivative(uint32_t activation, double parameter, double v, double x) {
    if (activation == GEMMEPI_RELU)
        return x > 0 ? v : 0;
    if (activation == GEMMEPI_SQUARED_RELU && x <= 0)
        return 0;
    return v * gemmepi__derivative(activation, parameter, x);
}

#endif
