// Activations and derivatives, the forms that do not cancel (the formulas stand in the manual). One source for f32 and
// f64, in f32 at two precisions: EXACT 1 for results of 32 bits, EXACT 0 for those of 16 and fewer.
//
// Nearly all are made of three functions: the exponential, the reciprocal and, for GELU_ERF, the tail of the normal
// distribution. In f32 there are no branches but selections, so that the time does not depend on the numbers.
//
// Measured on the host against long double, with errors of 2^-22.5 and of one unit in the last place put into the
// hardware's exponential and reciprocal, over all exponents and densely where the functions bend; u = 2^-24, 2^-53:
//   EXACT 1  f(x (1 + d)) (1 + e) with |d| <= 2 u, |e| <= 3.9 u of the largest term added, also with a factor v and
//            where the result is subnormal, where e may be one smallest subnormal. In f64 so with CUDA's exp and erf.
//   EXACT 0  relative, of a derivative's largest term: 18 u for |x| < 2, 100 u for |x| < 5 and 170 u for |x| < 10 (3, 18 and
//            25 u in the square mean), but for GELU_ERF itself 2^-21 of x and, where that is more, 2^-13 of the result (of
//            LONG_SUMS see sum_times_own_normal()). Results below 1.2e-38 may be 0,
//            and so may those of |v| > 5e35 where exp(x) < 2^-252. Nearly subnormal are x s(w) of |x| < 2^-118, to 2^-17, and
//            v times MISH's derivative of |v| < 2^-112 above 0, to 2^-10.
#pragma once

#include "codes.h"

#ifndef GEMMEPI_LONG_SUMS
#define GEMMEPI_LONG_SUMS 0 // 1: what activate_sum() takes is a sum of many products, with that much room in its bound
#endif
#ifndef GEMMEPI_EXACT
#define GEMMEPI_EXACT 1
#endif

#define NAMED(name) name = CODE_##name,
enum { ACTIVATION_CODES(NAMED) };
#undef NAMED

// >>traits: what those who call these functions ask of an activation

// Its AUX is a bit for each element, where there is neither a gate nor UPSTREAM.
template <int Activation> constexpr bool SAVES_MASK = Activation == RELU;
// Its derivative is 0 or a constant, applied by selection.
template <int Activation> constexpr bool SELECTS = Activation == RELU || Activation == HARDSIGMOID;
// Its value or its derivative may be any number, so that three factors of a gate meet at once, lest two of them leave the range.
template <int Activation>
constexpr bool HAS_ANY_SIZE = Activation == SQUARED_RELU || Activation == LEAKY_RELU || Activation == ELU;

// Of a sum x of products, whose own error hides what is below 2^-22 of x (2^-17 of LONG_SUMS): at EXACT 0 tails of these end where
// exp(-w) leaves the range, at results of 1e-36 or so, and GELU_ERF's at 1e-37. Elsewhere, and for others, as above.
template <int Activation>
constexpr bool ENDS_TAILS = Activation == SILU || Activation == GELU_TANH || Activation == QUICK_GELU;
// activate_sum() has a form of its own.
template <int Activation>
constexpr bool HAS_FORM_OF_SUMS = !GEMMEPI_EXACT && (ENDS_TAILS<Activation> || Activation == GELU_ERF);
// A gate is better made with that; SILU's is 1 to 2 percent slower so.
template <int Activation> constexpr bool GATES_BY_SUMS = HAS_FORM_OF_SUMS<Activation> && Activation != SILU;
// For activate_biased_sum(); 0 where nothing is gained. With the cube root
// of what GELU_TANH's w log2(e) has of x^3, that is z (z^2 + 4.9122296). As it is below 1, z is finite where x is.
template <int Activation> constexpr float SUM_SCALE = !GEMMEPI_EXACT && Activation == GELU_TANH ? 0.46866869f : 0;

// >>the functions they are made of

// x, but 0 below 0 and 1 above 1; NaN is 0 or NaN
__device__ inline float from_0_to_1(float x) {
    return __saturatef(x);
}
__device__ inline double from_0_to_1(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

// The hardware's, of one instruction each, to 2 and 1 units in the last place; the reciprocal of 1 is 1. Subnormal results are 0.
#ifndef GEMMEPI_HAS_FUNCTIONS // a test on the host brings its own
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
#endif

// is ? x : y, both of which are made: where the compiler has a branch for each of many, each waits for the one before.
__device__ inline float choice(bool is, float x, float y) {
#ifdef __CUDA_ARCH__
    float chosen;
    asm("{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\nselp.f32 %0, %1, %2, p;\n}" : "=f"(chosen) : "f"(x), "f"(y), "r"((int)is));
    return chosen;
#else
    return is ? x : y;
#endif
}
__device__ inline double choice(bool is, double x, double y) {
    return is ? x : y;
}

// x y + z with one rounding, whatever the compiler joins
__device__ inline float fused(float x, float y, float z) {
    return fmaf(x, y, z);
}
__device__ inline double fused(double x, double y, double z) {
    return fma(x, y, z);
}

// (q x + next) x + ...: coefficients from that of the highest power on
__device__ inline float polynomial(float, float q) {
    return q;
}
template <class... More> __device__ inline float polynomial(float x, float q, float next, More... more) {
    return polynomial(x, fmaf(x, q, next), more...);
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
    double sum = fma(x, y, 1.0), inverse = 1 / sum, rest = fma(x, y, 1 - sum);
    return fma(inverse, fma(-rest, inverse, fma(-sum, inverse, 1.0)), inverse);
}

// exp(x) = part * root * root. Where exp(x) itself is subnormal or 0 a product v factor exp(x) need not be, and for a factor up to 1
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
// 1.5 2^23 rounds to whole numbers; k + 127 is the exponent of 2^k, and 24 more keep it positive down to k = -151
constexpr float ROUNDER = 12582912 + 127 + 24;
constexpr float LOG_4_HIGH = 1.38629150390625f, LOG_4_LOW = 2.85721364e-06f; // k times the first is exact
__device__ inline float shifted_quotient(float x) {                          // k + ROUNDER
    return fmaf(x, 0.72134752044448170368f, ROUNDER);
}
__device__ inline Reduced_exponential exponential_of_remainder(float shifted, float r) {
    // (exp(r) - 1 - r) / r^2, of least largest error: 2^-29 of exp(r) - 1
    float q = polynomial(r, 2.48440974e-05f, 0.000200913782f, 0.00138897297f, 0.00833266042f, 0.0416666456f, 0.166666716f, 0.5f);
    return {fmaf(r * r, q, r), __uint_as_float(__float_as_uint(shifted) << 23) * 5.9604644775390625e-08f};
}
__device__ inline Reduced_exponential reduced_exponential(float x) {
    x = x < -209.5f ? -209.5f : x; // root is 0 from here on
    float shifted = shifted_quotient(x), k = shifted - ROUNDER;
    return exponential_of_remainder(shifted, fmaf(k, -LOG_4_LOW, fmaf(k, -LOG_4_HIGH, x)));
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

// exp(-x y), the product not rounded, of x and y >= 0 and x y <= 209.9 in f32; with More exp(-x (y + more))
template <bool More>
__device__ inline Reduced_exponential reduced_exponential_of_product(float x, float y, float more) {
    float shifted = shifted_quotient(-x * y), k = shifted - ROUNDER, r = fmaf(-x, y, k * -LOG_4_HIGH);
    if (More)
        r = fmaf(-x, more, r);
    return exponential_of_remainder(shifted, fmaf(k, -LOG_4_LOW, r));
}
template <bool More>
__device__ inline Exponential<float> exponential_of_product(float x, float y, float more) {
    Reduced_exponential e = reduced_exponential_of_product<More>(x, y, more);
    return {1 + e.less_1, e.root};
}
template <bool More>
__device__ inline Exponential<double> exponential_of_product(double x, double y, double more) {
    double product = x * y;
    Exponential<double> e = exponential(-product);
    double rounded = fma(x, y, -product);
    if (More)
        rounded = fma(x, more, rounded);
    return {e.part == 1 ? 1 : fma(e.part, -rounded, e.part), e.root};
}

// exp(x) - 1 without cancellation near 0, of x <= 0; of -0 it may be 0 at EXACT 1
__device__ inline float exponential_less_1(float x) {
#if GEMMEPI_EXACT
    Reduced_exponential e = reduced_exponential(x);
    float square = e.root * e.root;
    return fmaf(e.less_1, square, square - 1);
#else
    // near 0 a polynomial of least largest error: 2^-27
    float q = polynomial(x, 0.00112163485f, 0.00818738621f, 0.0416290909f, 0.166662246f, 0.499999821f);
    return choice(x > -0.5f, x * fmaf(x, q, 1), fast_power_of_2(x * 1.4426950f) - 1);
#endif
}
__device__ inline double exponential_less_1(double x) {
    return expm1(x);
}

__device__ inline float hyperbolic_tangent(float x) {
#if GEMMEPI_EXACT
    float m = exponential_less_1(-2 * fabsf(x));
    return copysignf(ratio(m, 2 + m), x);
#else
    // near 0 an odd polynomial of least largest error, 2^-24.6; elsewhere 1 - 2 / (1 + exp(2 |x|)), of a half at least
    float size = fabsf(x), square = x * x;
    float q = polynomial(square, 0.0164375808f, -0.0526718125f, 0.133207247f, -0.333329469f);
    float far = fmaf(fast_reciprocal(1 + fast_power_of_2(size * 2.8853900f)), -2, 1);
    return choice(size < 0.55f, x * fmaf(square, q, 1), copysignf(far, x));
#endif
}
__device__ inline double hyperbolic_tangent(double x) {
    return tanh(x);
}

// log(1 + e) / (root * root) of e = part * root * root <= 1
__device__ inline float logarithm_of_1_plus(Exponential<float> exponential) {
    float e = exponential.value();
#if GEMMEPI_EXACT
    // (log(1 + e) - e) / e^2, of least largest error: 2^-27 of log(1 + e)
    float q = polynomial(e, -0.00329107419f, 0.0200884603f, -0.0574604832f, 0.106613711f, -0.153449774f, 0.196921214f, -0.249580204f,
                         0.333304644f, -0.499999315f);
    return fmaf(exponential.part * e, q, exponential.part);
#else
    // log(1 + e) / e, of least largest error: 2^-22.1
    return polynomial(e, -0.00853921007f, 0.044089634f, -0.107681714f, 0.177452415f, -0.244954631f, 0.332754791f, -0.499974042f,
                      0.999999821f);
#endif
}
__device__ inline double logarithm_of_1_plus(Exponential<double> e) {
    return e.root == 1 ? log1p(e.part) : e.part;
}

// >>the logistic function

// Of a number x by way of exp(-|x|), accurate in both tails: s(x) = part * root * root, and s(-x)
template <class A> struct Logistic { A part, root, opposite; };
template <class A> __device__ inline Logistic<A> logistic(bool below, Exponential<A> e) {
    A inverse = reciprocal_of_1_plus(e.part * e.root, e.root);
    return {below ? e.part * inverse : inverse, below ? e.root : A(1), below ? inverse : e.value() * inverse};
}

// v factor s, which is s(x)
template <class A> __device__ inline A times_logistic(A v, A factor, Logistic<A> s) {
    return v * s.root * (factor * s.part) * s.root;
}
#if !GEMMEPI_EXACT // in fewer instructions: s(x) = root share, and s(-x) is the rest to 1
template <> struct Logistic<float> { float root, share; };
__device__ inline Logistic<float> logistic(bool below, Exponential<float> e) {
    float root = below ? e.root : 1;
    return {root, root * reciprocal_of_1_plus(e.root, e.root)};
}
__device__ inline float times_logistic(float v, float factor, Logistic<float> s) {
    return v * s.root * (factor * s.share);
}
#endif
template <class A> __device__ inline Logistic<A> logistic(A x) {
    return logistic(x < 0, exponential(-fabs(x)));
}
template <class A> __device__ inline A times_logistic(A v, A factor, A x) {
    return times_logistic(v, factor, logistic(x));
}
template <class A> __device__ inline A times_logistic(A v, A x) {
    return times_logistic(v, A(1), x);
}

// x s(w) at EXACT 0, where `power` is -w log2(e) - 8: what follows stays in f32's range as long as the result does.
__device__ inline float times_logistic_of(float x, float power) {
    constexpr float scale = 0.00390625f; // 2^-8
    return x * scale * fast_reciprocal(fast_power_of_2(power) + scale);
}

// v times the derivative of x s(w), w a function of x and `slope + more` its derivative: s(w) (1 + x (slope + more)
// s(-w)). A root goes into the sum, which may then not overflow where s(w) is 0. At infinity the formula is NaN.
template <bool More, class A>
__device__ inline A times_gate_derivative(A v, A x, Logistic<A> s, A slope, A more) {
    A scale = s.opposite * s.root, change = x * scale;
    if (More)
        change = fused(change, slope, fused(change, more, fused(x, scale, -change) * slope));
    else
        change *= slope;
    return v * s.root * fused(change, s.part, s.root * s.part);
}
#if !GEMMEPI_EXACT
template <bool More>
__device__ inline float times_gate_derivative(float v, float x, Logistic<float> s, float slope, float more) {
    float opposite = fmaf(-s.root, s.share, 1);
    return v * s.root * (x * s.share * opposite * (More ? slope + more : slope) + s.share);
}
#endif

// v factor s(x) s(-x), of x <= 0
template <class A> __device__ inline A times_logistic_derivative(A v, A factor, A x) {
    Exponential<A> e = exponential(x);
    A inverse = reciprocal_of_1_plus(e.part * e.root, e.root);
    return v * e.root * (e.part * inverse * inverse * (factor * e.root));
}

// GELU_TANH and QUICK_GELU are x s(w), w = x factor, and slope + more is the derivative of w. All are of a number held
// where s(w) has long been 0 or 1, so that nothing overflows; at EXACT 0 only `more` needs it.
template <class A> struct Gate {
    Logistic<A> s; // of w
    A slope, more;
};
constexpr double GELU_SLOPE = 2 * 0.79788456080286535588; // of 2 sqrt(2/pi) (x + 0.044715 x^3) at 0
template <class A> __device__ inline Gate<A> gelu_gate(A x) {
    constexpr double c = GELU_SLOPE;
    constexpr A end = sizeof(A) == 8 ? A(40) : A(13.8);
    A size = fabs(x) > end ? end : fabs(x), square = size * size;
    A factor = fused(A(c * 0.044715), square, A(c)), more = A(c * 0.134145) * square;
    A rest = fused(A(c * 0.044715), square, A(c) - factor); // what was rounded off
    return {logistic(x < 0, exponential_of_product<true>(size, factor, rest)), A(c), more};
}
template <class A> __device__ inline Gate<A> quick_gelu_gate(A x) {
    constexpr A end = sizeof(A) == 8 ? A(1000) : A(123.2);
    A size = fabs(x) > end ? end : fabs(x);
    return {logistic(x < 0, exponential_of_product<false>(size, A(1.702), A(0))), A(1.702), A(0)};
}
#if !GEMMEPI_EXACT
constexpr double ROOT_POWER = -0.72134752044448170368; // the root of exp(-x) is 2 to x times this
__device__ inline Gate<float> gelu_gate(float x) {
    constexpr double c = GELU_SLOPE;
    float square = x * x, root = fast_power_of_2(
        fabsf(x) * fmaf(float(ROOT_POWER * c * 0.044715), square, float(ROOT_POWER * c)));
    return {logistic(x < 0, {1, root}), float(c), float(c * 0.134145) * (square < 4096 ? square : 4096)};
}
__device__ inline Gate<float> quick_gelu_gate(float x) {
    return {logistic(x < 0, {1, fast_power_of_2(fabsf(x) * float(ROOT_POWER * 1.702))}), 1.702f, 0};
}
#endif

// >>the normal distribution

// R(y), see below, at EXACT 0: 2^-22.6 (1 + y^2 / 8)
__device__ inline float short_normal_tail(float y) {
    float above = fmaf(y, fmaf(y, fmaf(y, 0.0157306679f, 0.11407923f), 0.352673531f), 0.499999911f);
    float under = fmaf(y, fmaf(y, fmaf(y, 0.0394377708f, 0.28568697f), 0.927633762f), 1.50322306f);
    return above * fast_reciprocal(fmaf(y, under, 1));
}

// v Phi(x), and with Derivative v (Phi(x) + x phi(x)). Phi(-y) = exp(-y^2 / 2) R(y) for y >= 0; R falls like 1 / y and
// is a ratio of polynomials with positive coefficients, made with Lawson's iteration on 0 <= y <= 20 for the least
// largest relative error; from there on the exponential is 0 in f32, whatever v is.
template <bool Derivative> __device__ inline float times_normal(float v, float x) {
#if GEMMEPI_EXACT
    float size = fabsf(x), y = fminf(size, 20.47f); // root is 0 from here on
    Reduced_exponential e = reduced_exponential_of_product<false>(y, 0.5f * y, 0);
    // 2^-27.8 (1 + y^2 / 8): in the tail a rounding of x weighs more. Both are times 53/64: most of their sums then lie
    // below a power of two, where a rounding weighs least.
    float above =
        fmaf(y, fmaf(y, fmaf(y, fmaf(y, 0.0031668392f, 0.03207509f), 0.14717144f), 0.35697037f), 0.4140625f);
    float under = fmaf(y, 0.0079379715f, 0.08040679f);
    float slope = fmaf(y, fmaf(y, fmaf(y, under, 0.37669387f), 0.97712195f), 1.374689f);
    under = fmaf(y, slope, 0.828125f);
    // as in ratio(), and the step knows what was rounded off the sum below
    float inverse = fast_reciprocal(under), tail = above * inverse, lost = fmaf(y, slope, 0.828125f - under);
    tail = fmaf(inverse, fmaf(-lost, tail, fmaf(-under, tail, above)), tail);
    if (Derivative)
        tail = fmaf(size, -0.39894228040143267794f, tail);
    tail = fmaf(tail, e.less_1, tail) * e.root;
    return (x < 0 ? v * tail : v) * (x < 0 ? e.root : fmaf(-tail, e.root, 1));
#else
    float size = fabsf(x), y = fminf(size, 20);
    Exponential<float> e = exponential(-0.5f * x * x);
    float tail = short_normal_tail(y);
    if (Derivative)
        tail = fmaf(size, -0.39894228040143267794f, tail);
    tail *= e.root;
    float rest = e.part * e.root;
    return (x < 0 ? v * tail : v) * (x < 0 ? rest : fmaf(-tail, rest, 1));
#endif
}
// x Phi(x) at EXACT 0: x or 0, less |x| Phi(-|x|), which is |x| exp(-x^2 / 2) and a polynomial in t = 1 / (1 + 0.26 |x|) without
// a constant, made as above for 2^-24 of x and 2^-14 of Phi(-|x|). Only at -inf is a factor of the exponential no number. The
// exponential's root is no subnormal, which would be 0, where the result is one.
__device__ inline float times_own_normal(float x) {
    float size = fabsf(fminf(x, 20)), t = fast_reciprocal(fmaf(size, 0.26f, 1));
    float root = fast_power_of_2(x * -0.36067376f * x);
    float p = polynomial(t, -0.066500567f, 0.20305874f, -0.065038852f, 0.13312194f, 0.087257259f, 0.10438382f, 0.10371772f);
    p *= t * size;
    return fmaf(-p * root, root, fmaxf(x, 0));
}
// x or 0, whichever is more; one instruction from Ampere on
__device__ inline float above_0(float x) {
#if __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(x) : "f"(x));
    return x;
#else
    return x <= 0 ? 0 : x;
#endif
}
// That of a sum: Phi(-|x|) is 2 to a polynomial in -|x|, of least largest error: 2^-22.1 of x (2^-21 with roundings), and 2^-5 of
// Phi(-|x|) up to 13, from where on it is 0. Of LONG_SUMS 2^-18.2 of x, and 2^-7.5 of Phi(-|x|) up to 5; from 6 on it falls faster.
// A gate's is made without minima and maxima: 0.90 of the time at k = 768 on an H200, 0.98 from 2048 on; others are no faster so.
template <bool Gate> __device__ inline float sum_times_own_normal(float x) {
    float y = Gate ? -fabsf(x) : fminf(x, fmaxf(-x, -13)); // -|x|, there -13 of x above 13: a number of +inf, too
#if GEMMEPI_LONG_SUMS
    float p = polynomial(y, 0.000388750457f, 0.00660956977f, 0.0510568805f, -0.460328877f, 1.15084445f, -1.0000087f);
#else
    float p = polynomial(y, 9.13470785e-07f, 4.16792682e-05f, 0.000778685964f, 0.00801064726f, 0.0532111079f, -0.458959132f, 1.15113628f,
                         -0.999999404f);
#endif
    if constexpr (Gate) // infinity times 0 is 0 there
        return fmaf(x, 0.5f, y * -0.5f) - from_0_to_1(-y * fast_power_of_2(p));
    return fmaf(y, fast_power_of_2(p), above_0(x));
}
constexpr double SQRT_HALF = 0.70710678118654752440,
                 SQRT_HALF_REST = 4.8336466567264567e-17; // first less second
constexpr double INV_SQRT_2PI = 0.39894228040143267794;
template <bool Derivative> __device__ inline double times_normal(double v, double x) {
    double y = x > 40 ? 40 : x, square = y * y, argument = y * -SQRT_HALF;
    Exponential<double> e = exponential(-0.5 * x * x);
    if (x > -30) { // corrected for what was rounded off the square and off the argument
        double of_square = fma(y, y, -square),
               of_argument = fma(y, -SQRT_HALF, -argument) + y * SQRT_HALF_REST;
        double less = of_argument * -0.56418958354775628695, half;
        half = square < 1.3 ? fma(-0.5, erf(argument), 0.5) : 0.5 * erfc(argument); // above -1.14 erf has the smaller error
        if (!Derivative) // v is x; one rounding, as the bound has the least room at -0.8
            return fma(v, half, y * (less * e.value()));
        less = fma(x, INV_SQRT_2PI, fma(y * INV_SQRT_2PI, -0.5 * of_square, less));
        return v * fma(less, e.value(), half);
    }
    double factor = Derivative ? x * INV_SQRT_2PI : 0;
    // before erfc is subnormal: erfcx(y) = exp(y^2) erfc(y)
    return v * e.root * (e.part * (0.5 * erfcx(x * -SQRT_HALF) + factor)) * e.root;
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
    if (GEMMEPI_EXACT && x > 0)
        e = {e.value(), 1};
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
    A rise = m.e.part + m.e.part * m.e.value(), y;
    if (GEMMEPI_EXACT) { // above 0 the root is 1, and n / (1 + n) = 1 - 1 / (1 + n) is rounded less often
        A sum = fused(x * rise, m.inverse, x > 0 ? A(-1) : m.n);
        y = v * m.e.root * fused(sum * m.inverse, m.e.root, x > 0 ? A(1) : A(-0.0));
    } else {
        A sum = m.n + x * (rise * m.inverse);
        y = v * (sum * m.inverse * m.e.root) * m.e.root;
    }
    return x > FAR<A> ? v + (x - x) : y; // at infinity the formula is NaN
}

// >>products of more than two factors

// The largest finite number and 2^-126 or 2^-1022; of either type by itself, as newer compilers take no number that a float has not.
template <class A> constexpr A LARGEST = A(3.4028234663852886e38);
template <class A> constexpr A LEAST = A(1.1754943508222875e-38);
template <> constexpr double LARGEST<double> = 1.7976931348623157e308;
template <> constexpr double LEAST<double> = 2.2250738585072014e-308;

// x y z, right where that is in the range, wherever a product of two of them is.
template <class A> __device__ inline A product_in_range(A x, A y, A z) {
    bool x_is_larger = fabs(x) > fabs(y);
    A both = x * y, larger = x_is_larger ? x : y, smaller = x_is_larger ? y : x, outer = larger * z;
    A out = fabs(both) > LARGEST<A> || fabs(outer) <= LARGEST<A> ? outer * smaller : smaller * z * larger;
    return fabs(both) >= LEAST<A> && fabs(both) <= LARGEST<A> ? both * z : out;
}

// >>all of them

// `parameter` is LEAKY_RELU's and ELU's.
template <int Activation, class A> __device__ inline A activate(A x, A parameter) {
    constexpr bool is_short = !GEMMEPI_EXACT && sizeof(A) == 4;
    if constexpr (Activation == RELU)
        return x > 0 || x != x ? x : A(0);
    else if constexpr (Activation == GELU_TANH && is_short)
        return times_logistic_of(x, fmaf(x, fmaf(-0.10294324f, x * x, -2.3022082f), -8));
    else if constexpr (Activation == SILU && is_short)
        return times_logistic_of(x, fmaf(x, -1.4426950f, -8));
    else if constexpr (Activation == SIGMOID && is_short)
        return times_logistic_of(1, fmaf(x, -1.4426950f, -8));
    else if constexpr (Activation == QUICK_GELU && is_short)
        return times_logistic_of(x, fmaf(x, -2.4554670f, -8));
    else if constexpr (Activation == GELU_TANH)
        return times_logistic(x, A(1), gelu_gate(x).s);
    else if constexpr (Activation == GELU_ERF && is_short)
        return times_own_normal(x);
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
        A less = exponential_less_1(x), below = parameter * (is_short ? less : copysign(less, x));
        return choice(x > 0 || x != x, x, below);
    } else if constexpr (Activation == SQUARED_RELU)
        return x > 0 || x != x ? x * x : A(0);
    else if constexpr (Activation == QUICK_GELU)
        return times_logistic(x, A(1), quick_gelu_gate(x).s);
    else if constexpr (Activation == SOFTPLUS)
        return softplus(x);
    else if constexpr (Activation == HARDSWISH)
        return x * from_0_to_1((x + 3) * A(1 / 6.0));
    else if constexpr (Activation == MISH)
        return mish(x);
    else if constexpr (Activation == HARDSIGMOID)
        return x != x ? x : from_0_to_1((x + 3) * A(1 / 6.0));
    else
        return x;
}

__device__ inline float logistic_of_power(float power) { // s(w) of -w log2(e)
    return fast_reciprocal(1 + fast_power_of_2(power));
}
template <int Activation> __device__ inline float power_of_gate(float x) { // -w log2(e)
    if constexpr (Activation == GELU_TANH)
        return x * fmaf(-0.10294324f, x * x, -2.3022082f);
    else if constexpr (Activation == QUICK_GELU)
        return x * -2.4554670f;
    else
        return x * -1.4426950f;
}
// At EXACT 0, of N sums, 2 or 4, whose powers these are: s(w) and exp(-w), with one reciprocal for all. Below 2^(-124 / N) s(w) is 0.
template <int N> __device__ inline void logistics_of_powers(const float (&powers)[N], float (&s)[N], float (&e)[N]) {
    constexpr float most = 124 / N, least = N == 2 ? 2.1684085e-19f : 4.6566218e-10f; // a little above 2^-most
    float sums[N], pairs[2] = {1, 1};
#pragma unroll
    for (int i = 0; i < N; i++) {
        e[i] = fast_power_of_2(fminf(powers[i], most));
        sums[i] = 1 + e[i];
        pairs[i / 2] *= sums[i];
    }
    float inverse = fast_reciprocal(pairs[0] * pairs[1]);
#pragma unroll
    for (int i = 0; i < N; i++)
        s[i] = from_0_to_1(fmaf(sums[i ^ 1], N == 4 ? inverse * pairs[1 - i / 2] : inverse, -least));
}
// The activation of N sums, or that makes of their gradients dy those of the sums.
template <int Activation, bool Backward, int N> __device__ inline void activate_sums(const float (&dy)[N], float (&x)[N]) {
    constexpr float slope = Activation == QUICK_GELU ? 1.702f : 1;
    float powers[N], s[N], e[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        powers[i] = power_of_gate<Activation>(x[i]);
    logistics_of_powers(powers, s, e);
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = Backward ? dy[i] * (s[i] * fmaf(x[i] * s[i], slope * e[i], 1)) : x[i] * s[i];
}
// The activation of a sum of products; Gate: it is a gate's.
template <int Activation, bool Gate = false, class A> __device__ inline A activate_sum(A x, A parameter) {
    if constexpr (!GEMMEPI_EXACT && sizeof(A) == 4 && ENDS_TAILS<Activation>)
        return x * logistic_of_power(power_of_gate<Activation>(x));
    else if constexpr (!GEMMEPI_EXACT && sizeof(A) == 4 && Activation == GELU_ERF)
        return sum_times_own_normal<Gate>(x);
    else
        return activate<Activation>(x, parameter);
}

// That of a sum and its bias, which are added and multiplied by SUM_SCALE at once: z is x times that.
template <int Activation, bool Gate = false, class A> __device__ inline A activate_biased_sum(A sum, A bias, A parameter) {
    if constexpr (sizeof(A) == 4 && SUM_SCALE<Activation> != 0) {
        constexpr float scale = SUM_SCALE<Activation>;
        float z = fmaf(sum, scale, bias * scale), power = z * fmaf(z, -z, -4.9122296f);
        return z * fast_reciprocal(fmaf(fast_power_of_2(power), scale, scale));
    } else
        return activate_sum<Activation, Gate>(sum + bias, parameter);
}

// v times the derivative at x
template <int Activation, class A> __device__ inline A times_derivative(A v, A x, A parameter) {
    if constexpr (Activation == RELU) {
        return x > 0 ? v : A(0);
    } else if constexpr (Activation == GELU_TANH) {
        Gate<A> gate = gelu_gate(x);
        return times_gate_derivative<true>(v, x, gate.s, gate.slope, gate.more);
    } else if constexpr (Activation == GELU_ERF) {
        return times_normal<true>(v, x);
    } else if constexpr (Activation == SILU) {
        return times_gate_derivative<false>(v, x, logistic(x), A(1), A(0));
    } else if constexpr (Activation == SIGMOID) {
        return times_logistic_derivative(v, A(1), -fabs(x));
    } else if constexpr (Activation == TANH) {
        return times_logistic_derivative(v, A(4), -2 * fabs(x));
    } else if constexpr (Activation == LEAKY_RELU) {
        return x > 0 ? v : v * parameter;
    } else if constexpr (Activation == ELU) {
        Exponential<A> e = exponential(x);
        // v and a parameter above 1 take a root each, or the parameter both: nothing leaves the range that comes back
        A large = fabs(parameter) > 1 ? parameter : A(1), small = fabs(parameter) > 1 ? A(1) : parameter;
        A size = large * e.root * e.part, below = (fabs(v) >= 1 ? v : size) * e.root * (fabs(v) >= 1 ? size : v) * small;
        return choice(x > 0, v, below);
    } else if constexpr (Activation == SQUARED_RELU) {
        return x > 0 || x != x ? v * x * 2 : A(0); // 2 x may overflow
    } else if constexpr (Activation == QUICK_GELU) {
        Gate<A> gate = quick_gelu_gate(x);
        return times_gate_derivative<false>(v, x, gate.s, gate.slope, gate.more);
    } else if constexpr (Activation == SOFTPLUS) {
        return times_logistic(v, x);
    } else if constexpr (Activation == HARDSWISH) {
        return v * (x <= -3 ? A(0) : x >= 3 ? A(1) : (x + A(1.5)) * A(1 / 3.0)); // 0 at -1.5
    } else if constexpr (Activation == MISH) {
        return times_mish_derivative(v, x);
    } else if constexpr (Activation == HARDSIGMOID) {
        return x > -3 && x < 3 ? v * A(1 / 6.0) : A(0);
    } else {
        return v;
    }
}

// v times the activation, which may be subnormal, 0 or infinite where the product is not.
template <int Activation, class A> __device__ inline A times_activation(A v, A x, A parameter) {
    if constexpr (Activation == GELU_TANH)
        return times_logistic(v, x, gelu_gate(x).s);
    else if constexpr (Activation == SILU)
        return times_logistic(v, x, x);
    else if constexpr (Activation == SIGMOID)
        return times_logistic(v, A(1), x);
    else if constexpr (Activation == QUICK_GELU)
        return times_logistic(v, x, quick_gelu_gate(x).s);
    else if constexpr (Activation == LEAKY_RELU)
        return x > 0 ? v * x : product_in_range(x, parameter, v);
    else if constexpr (Activation == ELU && !GEMMEPI_EXACT && sizeof(A) == 4) { // what is below 1 comes first
        A first = fabs(parameter) <= 1 ? v : parameter, last = fabs(parameter) <= 1 ? parameter : v;
        return choice(x > 0, v * x, exponential_less_1(x) * first * last);
    } else if constexpr (Activation == ELU)
        return x > 0 ? v * x : product_in_range(copysign(exponential_less_1(x), x), parameter, v);
    else if constexpr (Activation == SQUARED_RELU)
        return x > 0 || x != x ? product_in_range(x, x, v) : v * A(0);
    else
        return v * activate<Activation>(x, parameter);
}

// v times the activation of a gate, both sums of products; and of a sum and its bias.
template <int Activation, class A> __device__ inline A gate_of_sum(A v, A x, A parameter) {
    if constexpr (GATES_BY_SUMS<Activation>)
        return v * activate_sum<Activation, true>(x, parameter);
    else
        return times_activation<Activation>(v, x, parameter);
}
template <int Activation, class A> __device__ inline A gate_of_biased_sum(A v, A sum, A bias, A parameter) {
    if constexpr (GATES_BY_SUMS<Activation>)
        return v * activate_biased_sum<Activation, true>(sum, bias, parameter);
    else
        return times_activation<Activation>(v, sum + bias, parameter);
}

// The activation where its derivative at x is made, too, whose exponential and reciprocal it shares.
template <int Activation, class A> __device__ inline A activate_beside_derivative(A x, A parameter) {
    if constexpr (ENDS_TAILS<Activation>)
        return times_activation<Activation>(A(1), x, parameter);
    else
        return activate<Activation>(x, parameter);
}

// Whether the product of two factors may go first: it is a normal number, or one of them is 0.
template <class A> __device__ inline bool is_plain(A x, A y) {
    A both = fabs(x * y);
    return both <= LARGEST<A> && (both >= LEAST<A> || x == 0 || y == 0);
}
// dy value act'(gate) where dy value is not plain and act' may be any number: of f32 in f64, which has the range of all three factors.
// ELU's in f64 meets dy value, or where that leaves the range the larger factor first and the smaller one last.
template <int Activation> __device__ inline float far_gate_gradient(float dy, float value, float gate, float parameter) {
    double both = (double)dy * value;
    if constexpr (Activation == SQUARED_RELU)
        return gate > 0 || gate != gate ? (float)(both * gate * 2) : 0;
    double below = both * parameter;
    if constexpr (Activation == ELU) { // exp(gate) in two steps: a root of f32 is 0 long before the product is
        float near = fmaxf(gate, -140);
        Exponential<float> e = exponential(near), further = exponential(gate - near);
        below = below * e.part * e.root * e.root * further.part * further.root * further.root;
    }
    return (float)(gate > 0 ? both : below);
}
template <int Activation> __device__ inline double far_gate_gradient(double dy, double value, double gate, double parameter) {
    if constexpr (Activation == SQUARED_RELU)
        return gate > 0 || gate != gate ? product_in_range(dy, value, gate) * 2 : 0;
    else if constexpr (Activation == LEAKY_RELU)
        return gate > 0 ? dy * value : product_in_range(dy, value, parameter);
    bool value_first = fabs(value) > fabs(dy);
    double both = dy * value, first = value_first ? value : dy, last = value_first ? dy : value;
    if (is_plain(dy, value) || last == 0) {
        first = both;
        last = 1;
    }
    return times_derivative<Activation>(first, gate, parameter) * last;
}
// Whether dy value must not go first. Where the derivative is of 1.5 at most, its underflow does little harm, half a smallest subnormal that
// act' multiplies: in f64 alone that counts.
template <int Activation, class A> __device__ inline bool is_far_product(A dy, A value) {
    A both = dy * value;
    if constexpr (HAS_ANY_SIZE<Activation>)
        return !is_plain(dy, value);
    return Activation != RELU && (fabs(both) > LARGEST<A> || (sizeof(A) == 8 && both != 0 && fabs(both) < LEAST<A>));
}
// dy value act'(gate): the gradient of value act(gate) at the gate. Of a far product with a bounded derivative the smaller factor waits (act'
// times the larger one may be subnormal).
template <int Activation, class A> __device__ inline A gate_gradient(A dy, A value, A gate, A parameter) {
    bool is_far = is_far_product<Activation>(dy, value);
    A first = dy * value;
    if constexpr (HAS_ANY_SIZE<Activation>) {
        A out = times_derivative<Activation>(first, gate, parameter);
        return is_far ? far_gate_gradient<Activation>(dy, value, gate, parameter) : out;
    } else {
        if (is_far)
            first = fabs(dy) > fabs(value) ? dy : value;
        A out = times_derivative<Activation>(first, gate, parameter);
        if (is_far && !(SELECTS<Activation> && out == 0)) // 0 by selection
            out *= fabs(dy) > fabs(value) ? value : dy;
        return out;
    }
}
// That in a formula, whose `in` says whether no product is far, which the compiler knows: where one is, is_far becomes true, and the result
// is none.
template <int Activation, class A>
__device__ inline A near_gate_gradient(A dy, A gate, A value, A parameter, bool is_near, bool &is_far) {
    A out = is_near ? times_derivative<Activation>(dy * value, gate, parameter) : gate_gradient<Activation>(dy, value, gate, parameter);
    is_far |= is_near && is_far_product<Activation>(dy, value);
    return out;
}
