// Activations and derivatives, the forms that do not cancel (the formulas stand in the manual). One source for f32 and
// f64. EXACT 0, for results of 16 bits, takes the hardware's exponential and reciprocal: a few units in the last place
// of f32, far below what 16 bits hold.
#pragma once

#ifndef GEMMEPI_EXACT
#define GEMMEPI_EXACT 1
#endif

enum {
    NONE, RELU, GELU_TANH, GELU_ERF, SILU, SIGMOID, TANH, LEAKY_RELU, ELU, SQUARED_RELU, QUICK_GELU, SOFTPLUS, HARDSWISH, MISH
};

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

// exp(x) - 1 and log(1 + x) without cancellation near 0, of x <= 0 and of 0 <= x <= 1
__device__ inline double exponential_less_1(double x) {
    return expm1(x);
}
__device__ inline double logarithm_of_1_plus(double x) {
    return log1p(x);
}
__device__ inline float exponential_less_1(float x) {
    return expm1f(x);
}
__device__ inline float logarithm_of_1_plus(float x) {
    return log1pf(x);
}

// From here on 1 + exp(-|x|) is 1 to a unit of A, so that log(1 + exp(x)) and what is made of it are exp(x), as the
// logistic is, or x.
template <class A> constexpr A FAR = sizeof(A) == 8 ? A(40) : A(20);

// log(1 + exp(x))
template <class A> __device__ inline A softplus(A x) {
    if (x < -FAR<A>)
        return times_logistic(A(1), A(1), x);
    A rest = logarithm_of_1_plus(exponential(x < 0 ? x : -x));
    return x > 0 ? x + rest : rest;
}

// tanh(log(1 + exp(x))), of which exp(x) (exp(x) + 2) is what tanh makes a ratio of; |x| <= FAR
template <class A> __device__ inline A mish_product(A x) {
    A e = exponential(x);
    return e * (e + 2);
}
template <class A> __device__ inline A mish(A x) {
    if (x < -FAR<A>)
        return times_logistic(A(1), x, x);
    if (x > FAR<A>)
        return x;
    A n = mish_product(x);
    return x * ratio(n, n + 2);
}
template <class A> __device__ inline A times_mish_derivative(A v, A x) {
    if (x < -FAR<A>)
        return times_logistic(v, 1 + x, x);
    if (x > FAR<A>)
        return v + (x - x); // at infinity the formula is NaN
    A n = mish_product(x), inverse = ratio(A(1), n + 2), t = n * inverse;
    return v * (t + x * logistic(x) * (2 * inverse) * (1 + t));
}

// `parameter` is LEAKY_RELU's and ELU's.
template <int Activation, class A> __device__ inline A activate(A x, A parameter) {
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
    else if constexpr (Activation == LEAKY_RELU)
        return x > 0 || x != x ? x : parameter * x;
    else if constexpr (Activation == ELU)
        return x > 0 || x != x ? x : parameter * exponential_less_1(x);
    else if constexpr (Activation == SQUARED_RELU)
        return x > 0 || x != x ? x * x : A(0);
    else if constexpr (Activation == QUICK_GELU)
        return times_logistic(A(1), x, A(1.702) * x);
    else if constexpr (Activation == SOFTPLUS)
        return softplus(x);
    else if constexpr (Activation == HARDSWISH)
        return x * ((x < -3 ? A(0) : x > 3 ? A(6) : x + 3) / 6);
    else if constexpr (Activation == MISH)
        return mish(x);
    else
        return x;
}

// v times the derivative at x. RELU's is applied by selection and is not here.
template <int Activation, class A> __device__ inline A times_derivative(A v, A x, A parameter) {
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
    } else if constexpr (Activation == LEAKY_RELU) {
        return x > 0 ? v : x == x ? v * parameter : x;
    } else if constexpr (Activation == ELU) {
        if (x > 0)
            return v;
        A root = exponential(x * A(0.5)); // exp(x) itself may be subnormal
        return v * root * parameter * root;
    } else if constexpr (Activation == SQUARED_RELU) {
        return x > 0 || x != x ? v * (2 * x) : A(0);
    } else if constexpr (Activation == QUICK_GELU) {
        A z = A(1.702) * (x > A(1e30) && x - x == 0 ? A(1e30) : x < A(-1e30) && x - x == 0 ? A(-1e30) : x); // not to overflow
        return times_logistic(v, 1 + z * logistic(-z), z);
    } else if constexpr (Activation == SOFTPLUS) {
        return times_logistic(v, A(1), x);
    } else if constexpr (Activation == HARDSWISH) {
        return v * (x <= -3 ? A(0) : x >= 3 ? A(1) : x / 3 + A(0.5));
    } else if constexpr (Activation == MISH) {
        return times_mish_derivative(v, x);
    } else {
        return v;
    }
}
