// The normal distribution's Phi.
#pragma once

#include "activation_functions.cuh"

#ifndef GEMMEPI_LONG_SUMS
#define GEMMEPI_LONG_SUMS 0 // 1: what activate_sum() takes is a sum of many products, with that much room in its bound
#endif

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
