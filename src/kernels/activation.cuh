// Activations and derivatives, the forms that do not cancel (the formulas stand in the manual). One source for f32 and
// f64. EXACT 0, for results of 16 bits, takes the hardware's exponential and reciprocal: a few units in the last place
// of f32, far below what 16 bits hold.
#pragma once

#ifndef GEMMEPI_EXACT
#define GEMMEPI_EXACT 1
#endif

enum { NONE, RELU, GELU_TANH, GELU_ERF, SILU, SIGMOID, TANH };

__device__ inline double exponential(double x) {
    return exp(x);
}
__device__ inline double ratio(double x, double y) {
    return x / y;
}
__device__ inline double hyperbolic_tangent(double x) {
    return tanh(x);
}
__device__ inline double complementary_error(double x) {
    return erfc(x);
}

__device__ inline float exponential(float x) {
#if GEMMEPI_EXACT
    return expf(x);
#else
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
    return y;
#endif
}
__device__ inline float ratio(float x, float y) {
#if GEMMEPI_EXACT
    return x / y;
#else
    float r;
    asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(y));
    return x * r;
#endif
}
__device__ inline float hyperbolic_tangent(float x) {
#if GEMMEPI_EXACT
    return tanhf(x);
#else
    // (1 - e) / (1 + e) loses 1 / |x| in relative terms near 0, where two terms of the series hold 22 bits
    float size = fabsf(x);
    float e = exponential(-2 * size);
    float y = size < 0.03125f ? size - size * size * size * (1 / 3.0f) : ratio(1 - e, 1 + e);
    return x != x ? x : copysignf(y, x);
#endif
}
__device__ inline float complementary_error(float x) {
    return erfcf(x);
}

// v factor Phi(x), Phi of the normal distribution. In f32 erfc is subnormal and short of digits below -13, although the
// result need not be: there it is the scaled function erfcx(y) = exp(y^2) erfc(y) times the exponential, whose root is
// multiplied in twice.
__device__ inline double times_normal_cdf(double v, double factor, double x) {
    return v * (factor * (0.5 * complementary_error(x * -0.70710678118654752440)));
}
__device__ inline float times_normal_cdf(float v, float factor, float x) {
    if (!GEMMEPI_EXACT || x > -12.5f)
        return v * (factor * (0.5f * complementary_error(x * -0.70710678118654752440f)));
    float root = exponential(-0.25f * x * x);
    return v * root * (factor * (0.5f * erfcxf(x * -0.70710678118654752440f))) * root;
}

// v factor times the normal distribution's density at x, with the same care
template <class A> __device__ inline A times_normal_density(A v, A factor, A x) {
    factor *= A(0.39894228040143267794);
    if (!GEMMEPI_EXACT || (x > A(-12.5) && x < A(12.5)))
        return v * (factor * exponential(A(-0.5) * x * x));
    A root = exponential(A(-0.25) * x * x);
    return v * root * factor * root;
}

// 1 / (1 + exp(-x)) without overflow, accurate in both tails
template <class A> __device__ inline A logistic(A x) {
    A e = exponential(x < 0 ? x : -x);
    return ratio(x < 0 ? e : A(1), 1 + e);
}

// v factor times the logistic of x. Far below zero the logistic itself is subnormal and short of digits, although the
// result need not be: there its root is multiplied in twice. Results of 16 bits do not reach so far down.
template <class A> __device__ inline A times_logistic(A v, A factor, A x) {
    if (!GEMMEPI_EXACT || x > (sizeof(A) == 8 ? -600 : -80))
        return v * (factor * logistic(x));
    A root = exponential(x * A(0.5));
    return v * root * factor * root;
}

// 2 sqrt(2/pi) (x + 0.044715 x^3): the tanh form of GELU is x times the logistic of this
template <class A> __device__ inline A gelu_argument(A x) {
    constexpr A c = A(2 * 0.79788456080286535588);
    return x * (c + c * A(0.044715) * (x * x));
}

template <int Activation, class A> __device__ inline A activate(A x) {
    if constexpr (Activation == RELU)
        return x > 0 || x != x ? x : A(0);
    else if constexpr (Activation == GELU_TANH)
        return times_logistic(A(1), x, gelu_argument(x));
    else if constexpr (Activation == GELU_ERF)
        return times_normal_cdf(A(1), x, x);
    else if constexpr (Activation == SILU)
        return times_logistic(A(1), x, x);
    else if constexpr (Activation == SIGMOID)
        return logistic(x);
    else if constexpr (Activation == TANH)
        return hyperbolic_tangent(x);
    else
        return x;
}

// v times the derivative at x. RELU's is applied by selection and is not here.
template <int Activation, class A> __device__ inline A times_derivative(A v, A x) {
    if constexpr (Activation == GELU_TANH) {
        A argument = gelu_argument(x);
        // beyond 64 the last factor is 0 or 1 and nothing must overflow; at infinity the formula is NaN
        A within = x > 64 && x - x == 0 ? A(64) : x < -64 && x - x == 0 ? A(-64) : x;
        constexpr A c = A(0.79788456080286535588);
        return times_logistic(v, 1 + 2 * within * logistic(-argument) * (c + c * A(0.134145) * (within * within)),
                              argument);
    } else if constexpr (Activation == GELU_ERF) {
        return times_normal_cdf(v, A(1), x) + times_normal_density(v, x, x);
    } else if constexpr (Activation == SILU) {
        return times_logistic(v, 1 + x * logistic(-x), x);
    } else if constexpr (Activation == SIGMOID) {
        return times_logistic(v, logistic(x < 0 ? -x : x), x < 0 ? x : -x);
    } else if constexpr (Activation == TANH) {
        return times_logistic(v, 4 * logistic(2 * (x < 0 ? -x : x)), -2 * (x < 0 ? -x : x));
    } else {
        return v;
    }
}
