// Activations and derivatives, the forms that do not cancel (the formulas stand in the manual). One source for f32 and
// f64, in f32 at two precisions: EXACT 1 for results of 32 bits, EXACT 0 for those of 16 and fewer.
//
// Nearly all are made of three functions: the exponential, the reciprocal and, for GELU_ERF, the tail of the normal
// distribution. In f32 there are no branches but selections, so that the time does not depend on the numbers.
//
// Measured on the host against long double, with errors of 2^-22.5 and of one unit in the last place put into the
// hardware's exponential and reciprocal, over all exponents and densely where the functions bend; u = 2^-24:
//   EXACT 1  f(x (1 + d)) (1 + e) with |d| <= 2 u, |e| <= 4 u, also where the result is subnormal, where e may be one
//            smallest subnormal. A little more take GELU_ERF (4.3 u) and, of the largest term added and with the
//            factor v, the derivatives of MISH (4.3 u) and GELU_TANH (4.7 u).
//   EXACT 0  relative 2^-14, of a derivative's largest term; results below 1.2e-38 may be 0, and so may those of
//            |v| > 5e35 where exp(x) < 2^-252.
#pragma once

#ifndef GEMMEPI_EXACT
#define GEMMEPI_EXACT 1
#endif

enum {
    NONE, RELU, GELU_TANH, GELU_ERF, SILU, SIGMOID, TANH, LEAKY_RELU, ELU, SQUARED_RELU, QUICK_GELU, SOFTPLUS, HARDSWISH, MISH
};

// >>the functions they are made of

// The hardware's, of one instruction each, to 2 and 1 units in the last place. Subnormal results are 0.
__device__ inline float fast_power_of_2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline float fast_reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// x / y of 1 <= y < 2^126, where x / y does not overflow; a step of Newton's leaves little more than one rounding
__device__ inline float ratio(float x, float y) {
    float inverse = fast_reciprocal(y), guess = x * inverse;
    return GEMMEPI_EXACT ? fmaf(inverse, fmaf(-y, guess, x), guess) : guess;
}

// 1 / (1 + x y) of x y >= 0, as good: the step knows what was rounded off the sum
__device__ inline float reciprocal_of_1_plus(float x, float y) {
    float sum = fmaf(x, y, 1), inverse = fast_reciprocal(sum);
    if (!GEMMEPI_EXACT)
        return inverse;
    float rest = fmaf(x, y, 1 - sum);
    return fmaf(inverse, fmaf(-rest, inverse, fmaf(-sum, inverse, 1)), inverse);
}
__device__ inline double reciprocal_of_1_plus(double x, double y) {
    return 1 / (1 + x * y);
}

// exp(x) = part * root * root. Where exp(x) itself is subnormal or 0 a product v factor exp(x) need not be, and
// v * root * (factor * part) * root is right there too.
template <class A> struct Exponential {
    A part, root;
    __device__ A value() const {
        return part * root * root;
    }
};

// exp(x) = (1 + less_1) 4^k, with root = 2^k and the remainder x - k log(4) in +-log(2), of x <= 64; less_1 keeps NaN
struct Reduced_exponential {
    float less_1, root;
};
__device__ inline Reduced_exponential reduced_exponential(float x) {
    x = x < -209.5f ? -209.5f : x; // root is 0 from here on
    // 1.5 2^23 rounds to whole numbers; k + 127 is the exponent of 2^k, and 24 more keep it positive down to k = -151
    constexpr float rounder = 12582912 + 127 + 24;
    float shifted = fmaf(x, 0.72134752044448170368f, rounder), k = shifted - rounder;
    float r = fmaf(k, -2.85721364e-06f, fmaf(k, -1.38629150390625f, x)); // log(4) in two parts
    // (exp(r) - 1 - r) / r^2, of least largest error: 2^-29 of exp(r) - 1
    float q = fmaf(r, 2.48440974e-05f, 0.000200913782f);
    q = fmaf(r, q, 0.00138897297f);
    q = fmaf(r, q, 0.00833266042f);
    q = fmaf(r, q, 0.0416666456f);
    q = fmaf(r, q, 0.166666716f);
    q = fmaf(r, q, 0.5f);
    return {fmaf(r * r, q, r), __uint_as_float(__float_as_uint(shifted) << 23) * 5.9604644775390625e-08f};
}

__device__ inline Exponential<float> exponential(float x) {
#if GEMMEPI_EXACT
    Reduced_exponential e = reduced_exponential(x);
    return {1 + e.less_1, e.root};
#else
    return {1, fast_power_of_2(x * 0.72134752044448170368f)};
#endif
}
__device__ inline Exponential<double> exponential(double x) {
    bool far = !(x > -600);
    double e = exp(far ? 0.5 * x : x);
    return {far ? 1 : e, far ? e : 1};
}

// exp(x) - 1 without cancellation near 0, of x <= 0; of -0 it may be 0
__device__ inline float exponential_less_1(float x) {
#if GEMMEPI_EXACT
    Reduced_exponential e = reduced_exponential(x);
    float square = e.root * e.root;
    return fmaf(e.less_1, square, square - 1);
#else
    // near 0 two terms of the series: 2^-14.5
    return x > -0.015625f ? x * fmaf(x, 0.5f, 1) : exponential(x).value() - 1;
#endif
}
__device__ inline double exponential_less_1(double x) {
    return expm1(x);
}

__device__ inline float hyperbolic_tangent(float x) {
    float m = exponential_less_1(-2 * fabsf(x));
    return copysignf(ratio(m, 2 + m), x);
}
__device__ inline double hyperbolic_tangent(double x) {
    return tanh(x);
}

// log(1 + e) / (root * root) of e = part * root * root <= 1
__device__ inline float logarithm_of_1_plus(Exponential<float> exponential) {
    float e = exponential.value(), q;
#if GEMMEPI_EXACT
    // (log(1 + e) - e) / e^2, of least largest error: 2^-27 of log(1 + e)
    q = fmaf(e, -0.00329107419f, 0.0200884603f);
    q = fmaf(e, q, -0.0574604832f);
    q = fmaf(e, q, 0.106613711f);
    q = fmaf(e, q, -0.153449774f);
    q = fmaf(e, q, 0.196921214f);
    q = fmaf(e, q, -0.249580204f);
    q = fmaf(e, q, 0.333304644f);
    q = fmaf(e, q, -0.499999315f);
    return fmaf(exponential.part * e, q, exponential.part);
#else
    // log(1 + e) / e, of least largest error: 2^-14
    q = fmaf(e, 0.0413442105f, -0.157421246f);
    q = fmaf(e, q, 0.306297272f);
    q = fmaf(e, q, -0.496977061f);
    return fmaf(e, q, 0.999943256f);
#endif
}
__device__ inline double logarithm_of_1_plus(Exponential<double> e) {
    return e.root == 1 ? log1p(e.part) : e.part;
}

// >>the logistic function

// Of a number x by way of exp(-|x|), accurate in both tails: s(x) = part * root * root, and s(-x)
template <class A> struct Logistic {
    A part, root, opposite;
};
template <class A> __device__ inline Logistic<A> logistic(A x) {
    bool below = x < 0;
    Exponential<A> e = exponential(-fabs(x));
    A inverse = reciprocal_of_1_plus(e.part * e.root, e.root);
    return {below ? e.part * inverse : inverse, below ? e.root : A(1), below ? inverse : e.value() * inverse};
}

// v factor s(x)
template <class A> __device__ inline A times_logistic(A v, A factor, A x) {
    Logistic<A> s = logistic(x);
    return v * s.root * (factor * s.part) * s.root;
}
template <class A> __device__ inline A times_logistic(A v, A x) {
    return times_logistic(v, A(1), x);
}

// v times the derivative of x s(w), w a function of x and `slope` its derivative: s(w) (1 + x slope s(-w)). A root goes
// into the sum, which may then not overflow where s(w) is 0. At infinity the formula is NaN.
template <class A> __device__ inline A times_gate_derivative(A v, A x, A w, A slope) {
    Logistic<A> s = logistic(w);
    return v * s.root * ((s.root + x * (s.opposite * s.root) * slope) * s.part);
}

// v factor s(x) s(-x), of x <= 0
template <class A> __device__ inline A times_logistic_derivative(A v, A factor, A x) {
    Exponential<A> e = exponential(x);
    A inverse = reciprocal_of_1_plus(e.part * e.root, e.root);
    return v * e.root * (e.part * inverse * inverse * (factor * e.root));
}

// 2 sqrt(2/pi) (x + 0.044715 x^3), of which GELU_TANH is x times the logistic, and its derivative. This is held where
// the logistic of the other has long been 0 or 1, so that nothing overflows.
template <class A> __device__ inline A gelu_argument(A x) {
    constexpr double c = 2 * 0.79788456080286535588;
    return x * (A(c) + A(c * 0.044715) * (x * x));
}
template <class A> __device__ inline A gelu_argument_derivative(A x) {
    constexpr double c = 2 * 0.79788456080286535588;
    A square = x * x;
    return A(c) + A(c * 0.134145) * (square < 4096 ? square : A(4096));
}

// >>the normal distribution

// v Phi(x), and with Derivative v (Phi(x) + x phi(x)). Phi(-y) = exp(-y^2 / 2) R(y) for y >= 0; R falls like 1 / y and
// is a ratio of polynomials with positive coefficients, made with Lawson's iteration on 0 <= y <= 20 for the least
// largest relative error; from there on the exponential is 0 in f32, whatever v is.
template <bool Derivative> __device__ inline float times_normal(float v, float x) {
    float size = fabsf(x), y = fminf(size, 20);
    Exponential<float> e = exponential(-0.5f * x * x);
#if GEMMEPI_EXACT
    // 2^-27.8 (1 + y^2 / 8): in the tail a rounding of x weighs more. Both are times 7/8: the sums of small y then lie
    // below a power of two, where a rounding weighs least.
    float above = fmaf(y, fmaf(y, fmaf(y, fmaf(y, 0.0033460944f, 0.0338906609f), 0.155501902f), 0.377176225f), 0.4375f);
    float under = fmaf(y, 0.00838729087f, 0.0849581212f);
    under = fmaf(y, fmaf(y, fmaf(y, fmaf(y, under, 0.398016185f), 1.03243077f), 1.45250154f), 0.875f);
#else
    // 2^-14.9
    float above = fmaf(y, fmaf(y, 0.0654278398f, 0.285007954f), 0.500016153f);
    float under = fmaf(y, fmaf(y, fmaf(y, 0.163887367f, 0.718412399f), 1.3688705f), 1);
#endif
    float tail = ratio(above, under);
    if (Derivative)
        tail = fmaf(size, -0.39894228040143267794f, tail);
    tail *= e.root;
    float rest = e.part * e.root;
    return (x < 0 ? v * tail : v) * (x < 0 ? rest : fmaf(-tail, rest, 1));
}
template <bool Derivative> __device__ inline double times_normal(double v, double x) {
    Exponential<double> e = exponential(-0.5 * x * x);
    double argument = x * -0.70710678118654752440, factor = Derivative ? x * 0.39894228040143267794 : 0;
    if (x > -30)
        return v * (Derivative ? 0.5 * erfc(argument) + factor * e.value() : 0.5 * erfc(argument));
    // before erfc is subnormal: erfcx(y) = exp(y^2) erfc(y)
    return v * e.root * (e.part * (0.5 * erfcx(argument) + factor)) * e.root;
}

// >>softplus and mish

// log(1 + exp(x))
template <class A> __device__ inline A softplus(A x) {
    Exponential<A> e = exponential(-fabs(x));
    return e.root * logarithm_of_1_plus(e) * e.root + (x > 0 ? x : A(0));
}

// tanh(log(1 + exp(x))) is n / (1 + n), n = e + e^2 / 2, e = exp(x): MISH is x times this, and its derivative
// (n + x e (1 + e) / (1 + n)) / (1 + n). Both are e.root^2 times something. From FAR on the tanh is 1 to a unit of A.
template <class A> struct Mish {
    Exponential<A> e;
    A n, inverse; // n without e.root^2, and 1 / (1 + n)
};
template <class A> constexpr A FAR = sizeof(A) == 8 ? A(40) : A(20);
template <class A> __device__ inline Mish<A> mish_parts(A x) {
    Exponential<A> e = exponential(x > FAR<A> ? FAR<A> : x);
    A n = e.part + e.part * (A(0.5) * e.value());
    return {e, n, reciprocal_of_1_plus(n * e.root, e.root)};
}
template <class A> __device__ inline A mish(A x) {
    Mish<A> m = mish_parts(x);
    A y = x * m.e.root * (m.n * m.inverse) * m.e.root;
    return x > FAR<A> ? x : y;
}
template <class A> __device__ inline A times_mish_derivative(A v, A x) {
    Mish<A> m = mish_parts(x);
    A sum = m.n + x * ((m.e.part + m.e.part * m.e.value()) * m.inverse);
    A y = v * (sum * m.inverse * m.e.root) * m.e.root;
    return x > FAR<A> ? v + (x - x) : y; // at infinity the formula is NaN
}

// >>all of them

// x, but 0 below 0 and 1 above 1; NaN is 0 or NaN
__device__ inline float from_0_to_1(float x) {
    return __saturatef(x);
}
__device__ inline double from_0_to_1(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

// `parameter` is LEAKY_RELU's and ELU's.
template <int Activation, class A> __device__ inline A activate(A x, A parameter) {
    if constexpr (Activation == RELU)
        return x > 0 || x != x ? x : A(0);
    else if constexpr (Activation == GELU_TANH)
        return times_logistic(x, gelu_argument(x));
    else if constexpr (Activation == GELU_ERF)
        return times_normal<false>(x, x);
    else if constexpr (Activation == SILU)
        return times_logistic(x, x);
    else if constexpr (Activation == SIGMOID)
        return times_logistic(A(1), x);
    else if constexpr (Activation == TANH)
        return hyperbolic_tangent(x);
    else if constexpr (Activation == LEAKY_RELU)
        return x > 0 || x != x ? x : parameter * x;
    else if constexpr (Activation == ELU) {
        A below = parameter * copysign(exponential_less_1(x), x);
        return x > 0 || x != x ? x : below;
    } else if constexpr (Activation == SQUARED_RELU)
        return x > 0 || x != x ? x * x : A(0);
    else if constexpr (Activation == QUICK_GELU)
        return times_logistic(x, A(1.702) * x);
    else if constexpr (Activation == SOFTPLUS)
        return softplus(x);
    else if constexpr (Activation == HARDSWISH)
        return x * from_0_to_1((x + 3) * A(1 / 6.0));
    else if constexpr (Activation == MISH)
        return mish(x);
    else
        return x;
}

// v times the derivative at x. RELU's is applied by selection.
template <int Activation, class A> __device__ inline A times_derivative(A v, A x, A parameter) {
    if constexpr (Activation == RELU) {
        return x > 0 ? v : A(0);
    } else if constexpr (Activation == GELU_TANH) {
        return times_gate_derivative(v, x, gelu_argument(x), gelu_argument_derivative(x));
    } else if constexpr (Activation == GELU_ERF) {
        return times_normal<true>(v, x);
    } else if constexpr (Activation == SILU) {
        return times_gate_derivative(v, x, x, A(1));
    } else if constexpr (Activation == SIGMOID) {
        return times_logistic_derivative(v, A(1), -fabs(x));
    } else if constexpr (Activation == TANH) {
        return times_logistic_derivative(v, A(4), -2 * fabs(x));
    } else if constexpr (Activation == LEAKY_RELU) {
        return x > 0 ? v : x == x ? v * parameter : x;
    } else if constexpr (Activation == ELU) {
        Exponential<A> e = exponential(x);
        return x > 0 ? v : v * e.root * (parameter * e.part) * e.root;
    } else if constexpr (Activation == SQUARED_RELU) {
        return x > 0 || x != x ? v * (2 * x) : A(0);
    } else if constexpr (Activation == QUICK_GELU) {
        return times_gate_derivative(v, x, A(1.702) * x, A(1.702));
    } else if constexpr (Activation == SOFTPLUS) {
        return times_logistic(v, x);
    } else if constexpr (Activation == HARDSWISH) {
        return v * (x <= -3 ? A(0) : x >= 3 ? A(1) : x * A(1 / 3.0) + A(0.5));
    } else if constexpr (Activation == MISH) {
        return times_mish_derivative(v, x);
    } else {
        return v;
    }
}

// v times the activation, which may be subnormal or 0 where the product is not.
template <int Activation, class A> __device__ inline A times_activation(A v, A x, A parameter) {
    if constexpr (Activation == GELU_TANH)
        return times_logistic(v, x, gelu_argument(x));
    else if constexpr (Activation == SILU)
        return times_logistic(v, x, x);
    else if constexpr (Activation == SIGMOID)
        return times_logistic(v, A(1), x);
    else if constexpr (Activation == QUICK_GELU)
        return times_logistic(v, x, A(1.702) * x);
    else
        return v * activate<Activation>(x, parameter);
}
