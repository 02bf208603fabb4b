// sin and cos without local memory: CUDA's own keep an array there, for large numbers. Off by less than 2 units in the last place.
//
// |x| is a number of quarters of a turn and a rest r between -pi/4 and pi/4. Up to a bound, r comes of fused multiply-adds with pi/2 in
// three parts (Cody and Waite). Beyond it, |x| = m 2^e with a whole m, and of the bits of 2/pi only those count whose product with m 2^e
// is no multiple of four quarters, nor too small to matter (Payne and Hanek).
//
// Where is_near, which the compiler knows, no number is beyond the bound: is_far becomes true if one is, whose result is none then. A
// branch for each number would have each wait for the one before.
#pragma once
#ifndef GEMMEPI_EXACT
#define GEMMEPI_EXACT 1 // 0: of results of 16 bits or fewer
#endif
#ifndef GEMMEPI_HAS_FUNCTIONS // a test on the host brings its own
#include "types.cuh"
#endif

// 32 bits of 2/pi behind 64 zeros, `at` from the first on. The table stands in the function: outside of it, it would belong to every kernel, also to one
// without a sine, and each launch would take 0.3 us longer.
__device__ inline u32 bits_of_two_over_pi(int at) {
    // the upper bits first
    static __constant__ u32 TWO_OVER_PI[] = {
        0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a,
        0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4,
        0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7,
        0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d};
    return (u32)(((u64)TWO_OVER_PI[at >> 5] << 32 | TWO_OVER_PI[(at >> 5) + 1]) >> (32 - (at & 31)));
}

// The rest, and the quarters (modulo four). x is not negative.
__device__ inline float rest_of_far(float x, int &quarters) {
    u32 bits = __float_as_uint(x), m = (bits & 0x7fffff) | 0x800000;
    int at = (int)(bits >> 23) - 150 - 2 + 64;
    u64 low = (u64)m * bits_of_two_over_pi(at + 64), middle = (u64)m * bits_of_two_over_pi(at + 32) + (low >> 32);
    u32 high = m * bits_of_two_over_pi(at) + (u32)(middle >> 32);
    long long rest = (long long)((u64)high << 34 | (u64)(u32)middle << 2 | (u32)low >> 30); // 2^-64 of a quarter each
    quarters = (int)(high >> 30) + (rest < 0);
    return (float)((double)rest * 8.515303950216386e-20); // pi/2 2^-64
}
__device__ inline double rest_of_far(double x, int &quarters);

// x of any sign, the rest of the same.
template <class A> __device__ inline A signed_rest_of_far(A x, int &quarters) {
    A rest = x - x;
    if (rest == 0) {
        rest = rest_of_far(fabs(x), quarters);
        rest = x < 0 ? -rest : rest;
        quarters = x < 0 ? -quarters : quarters;
    }
    return rest;
}

// As 1.5 2^23 is added, the quarters are rounded to a whole number, which is then the lower bits.
__device__ inline float rest_of_turn(float x, int &quarters, bool is_near, bool &is_far) {
    float shifted = fmaf(x, 0.636619747f, 12582912), n = shifted - 12582912, r = fmaf(n, -1.57079637f, x);
    quarters = (int)__float_as_uint(shifted);
    r = fmaf(n, 4.37113883e-8f, r);
    r = fmaf(n, 1.71512451e-15f, r);
    if (is_near)
        is_far |= fabs(x) > 1e5f;
    else if (fabs(x) > 1e5f)
        r = signed_rest_of_far(x, quarters);
    return r;
}

__device__ inline double rest_of_far(double x, int &quarters) {
    u64 bits = (u64)__double_as_longlong(x), m = (bits & 0xfffffffffffffull) | 0x10000000000000ull, part[3];
    int at = (int)(bits >> 52) - 1075 - 2 + 64;
#pragma unroll
    for (int i = 0; i < 3; i++)
        part[i] = (u64)bits_of_two_over_pi(at + 64 * i) << 32 | bits_of_two_over_pi(at + 64 * i + 32);
    u64 carried = __umul64hi(m, part[2]), low = m * part[1] + carried;
    u64 high = m * part[0] + __umul64hi(m, part[1]) + (low < carried);
    long long rest = (long long)(high << 2 | low >> 62); // and what lies below, 2^-64 of a quarter each
    quarters = (int)(high >> 62) + (rest < 0);
    double most = (double)(rest & ~0x7ffll), least = (double)(rest & 0x7ff) + (double)(low << 2) * 5.421010862427522e-20;
    return fma(most, 8.515303950216386e-20, fma(least, 8.515303950216386e-20, most * 3.319411800407449e-36));
}
__device__ inline double rest_of_turn(double x, int &quarters, bool is_near, bool &is_far) {
    double n = rint(x * 0.6366197723675814), r = fma(n, -1.5707963267948966, x);
    quarters = (int)n;
    r = fma(n, -6.123233995736766e-17, r);
    r = fma(n, 1.4973849048591698e-33, r);
    if (is_near)
        is_far |= fabs(x) > 1e9;
    else if (fabs(x) > 1e9)
        r = signed_rest_of_far(x, quarters);
    return r;
}

// Polynomials that meet sin and cos in the nodes of Chebyshev's for |r| < pi/4.
__device__ inline float wave_of_rest(float r, bool is_cosine) {
    float z = r * r, of_z = is_cosine ? 2.454789137e-5f : -1.958784123e-4f;
    of_z = fmaf(of_z, z, is_cosine ? -1.388830249e-3f : 8.332747966e-3f);
    of_z = fmaf(of_z, z, is_cosine ? 4.166666418e-2f : -1.666666418e-1f);
    return fmaf((is_cosine ? z : r) * z, of_z, is_cosine ? fmaf(z, -0.5f, 1) : r);
}
__device__ inline double wave_of_rest(double r, bool is_cosine) {
    double z = r * r, of_z = is_cosine ? -1.1382614868556325e-11 : 1.5918101230274120e-10;
    of_z = fma(of_z, z, is_cosine ? 2.0876146024689747e-9 : -2.5051131455427946e-8);
    of_z = fma(of_z, z, is_cosine ? -2.7557317270560326e-7 : 2.7557316100683029e-6);
    of_z = fma(of_z, z, is_cosine ? 2.4801587298763433e-5 : -1.9841269836754971e-4);
    of_z = fma(of_z, z, is_cosine ? -1.3888888888887395e-3 : 8.3333333333309462e-3);
    of_z = fma(of_z, z, is_cosine ? 4.1666666666666664e-2 : -1.6666666666666666e-1);
    return fma((is_cosine ? z : r) * z, of_z, is_cosine ? fma(z, -0.5, 1.0) : r);
}

template <class A> constexpr bool HAS_SHORT_WAVES = !GEMMEPI_EXACT && sizeof(A) == 4;

// Those of results of 16 bits or fewer: r is the rest to the nearest multiple of pi, n of them, and a polynomial for |r| < pi/2 + 0.006 of least largest
// error, 2^-19.7 of the result, is all. Pi has two parts, both below what it is, lest -0 become 0.
__device__ inline float short_wave(float x, float n, u32 is_odd) {
    float r = fmaf(n, -1.50995803e-7f, fmaf(n, -3.1415925f, x)), z = r * r;
    float q = fmaf(z, fmaf(z, -1.8532316e-4f, 8.31397826e-3f), -0.166658339f);
    return __uint_as_float(__float_as_uint(r * fmaf(z, q, 1)) ^ is_odd << 31);
}
__device__ inline float short_sin(float x) {
    float shifted = fmaf(x, 0.318309873f, 12582912);
    return short_wave(x, shifted - 12582912, __float_as_uint(shifted));
}
__device__ inline float short_cos(float x) { // half of pi further
    float shifted = fmaf(x, 0.318309873f, -0.5f) + 12582912;
    return short_wave(x, shifted - 12582912 + 0.5f, ~__float_as_uint(shifted));
}
__device__ inline bool has_short_wave(float x, bool is_near, bool &is_far) {
    bool is_beyond = fabsf(x) > 1e5f;
    is_far |= is_near && is_beyond;
    return is_near || !is_beyond;
}

// sin of -0 is -0.
template <class A> __device__ inline A formula_sin(A x, bool is_near, bool &is_far) {
    int quarters;
    if constexpr (HAS_SHORT_WAVES<A>)
        if (has_short_wave(x, is_near, is_far))
            return short_sin(x);
    A r = rest_of_turn(x, quarters, is_near, is_far), wave = wave_of_rest(r, quarters & 1);
    wave = quarters & 2 ? -wave : wave;
    return x == 0 ? x : wave;
}
template <class A> __device__ inline A formula_cos(A x, bool is_near, bool &is_far) {
    int quarters;
    if constexpr (HAS_SHORT_WAVES<A>)
        if (has_short_wave(x, is_near, is_far))
            return short_cos(x);
    A r = rest_of_turn(x, quarters, is_near, is_far), wave = wave_of_rest(r, !(quarters & 1));
    return (quarters + 1) & 2 ? -wave : wave;
}
