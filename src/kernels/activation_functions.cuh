// What activations are made of: the hardware's functions, the exponential and what comes of it, and products of three factors. Measured as
// activation.cuh says.
#pragma once

#ifndef GEMMEPI_EXACT
#define GEMMEPI_EXACT 1
#endif

template <class A> constexpr bool IS_SHORT = !GEMMEPI_EXACT && sizeof(A) == 4; // has forms of fewer instructions

// >>arithmetic

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

// >>the exponential

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
// Whether the product of two factors may go first: it is a normal number, or one of them is 0.
template <class A> __device__ inline bool is_plain(A x, A y) {
    A both = fabs(x * y);
    return both <= LARGEST<A> && (both >= LEAST<A> || x == 0 || y == 0);
}
