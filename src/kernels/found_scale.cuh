// The scale of a result of 8 bits, made of an amax: the one place where kernels make it.
#pragma once
#include "amax.cuh"

#ifndef GEMMEPI_POWER_OF_TWO
#define GEMMEPI_POWER_OF_TWO 0 // 1: rounded up to a power of two
#endif

// The amax over the largest number of T, held between 2^-126 and the largest F32; 1 where it is 0 or not finite. Without
// a function that is called for a division, which would have registers put aside: with the remainder of a first quotient the second is
// rounded right, as the divisor's reciprocal is.
template <class T> __device__ inline float scale_of_amax(u32 amax) {
    constexpr float largest = SAME<T, E5M2> ? 57344.f : 448.f, reciprocal = 1 / largest;
    constexpr u32 infinity = 0x7f800000, of_exponent = 0x00800000;
    float size = __uint_as_float(amax), quotient = size * reciprocal;
    u32 scale = __float_as_uint(fmaf(fmaf(-quotient, largest, size), reciprocal, quotient));
    scale = scale < of_exponent ? of_exponent : scale; // 2^-126
    if (GEMMEPI_POWER_OF_TWO)
        scale = (scale + of_exponent - 1) & infinity;
    return amax == 0 || amax >= infinity ? 1.f : __uint_as_float(scale);
}

// The same of an amax in F64, which may lead out of F32.
template <class T> __device__ inline float scale_of_amax(u64 bits) {
    constexpr double largest = SAME<T, E5M2> ? 57344. : 448.;
    constexpr float least = 1.17549435e-38f, most = 3.40282347e38f;
    double amax = __longlong_as_double((long long)bits), scale = amax / largest;
    return amax == 0 || amax - amax != 0 ? 1.f : scale < least ? least : scale > most ? most : (float)scale;
}

// 1 / scale, of such a scale, whose reciprocal is no subnormal number; of a power of two exactly.
__device__ inline float factor_of_scale(float scale) {
    float first;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(first) : "f"(scale));
    return fmaf(first, fmaf(-scale, first, 1.f), first);
}
