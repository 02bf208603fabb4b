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
    return x * (2 * GEMMEPI__SQRT_2_OVER_PI * (1 + 0.044715 * x * x));
}

static double gemmepi__activate(uint32_t activation, double x) {
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
    default:
        return x;
    }
}

/* RELU's derivative is applied by selection and is not here. */
static double gemmepi__derivative(uint32_t activation, double x) {
    double argument, within, size;
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
    default:
        return 1;
    }
}

#endif
