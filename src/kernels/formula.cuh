// What the code of formulas calls beside CUDA's functions and activation.cuh.
#pragma once
#include "trig.cuh"
#ifndef GEMMEPI_HAS_FUNCTIONS // a test on the host brings its own
#include "types.cuh"
#endif

typedef long long I64;

// A line of an operand that is read by index: 0 where it has no such element.
template <class Type> struct Table {
    const Type *data;
    I64 length, step; // step: from one element to the next
    float factor;
    __device__ GEMMEPI_T operator[](I64 i) const {
        return (u64)i < (u64)length ? to_acc<GEMMEPI_T>(element_of(data, i * step)) * (GEMMEPI_T)factor : GEMMEPI_T(0);
    }
};

// min and max that propagate NaN; one instruction each from Ampere on
template <class A> __device__ inline A formula_min(A x, A y) {
    return x != x || x < y ? x : y;
}
template <class A> __device__ inline A formula_max(A x, A y) {
    return x != x || x > y ? x : y;
}
#if __CUDA_ARCH__ >= 800
template <> __device__ inline float formula_min(float x, float y) {
    float z;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
template <> __device__ inline float formula_max(float x, float y) {
    float z;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
#endif

// What compares with an index, which is no limit of its type, as x does: a comparison of 64 bits takes two of 32.
template <class Index> __device__ inline Index formula_index(I64 x) {
    if constexpr (sizeof(Index) == 8)
        return x;
    else
        return x < -2147483647 ? -2147483647 - 1 : x > 2147483647 ? 2147483647 : (int)x;
}

// As the compiler has it the upper word costs an addition of zero.
__device__ inline u64 product_of_words(u32 x, u32 y) {
#ifdef __CUDA_ARCH__
    u64 z;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(z) : "r"(x), "r"(y));
    return z;
#else
    return (u64)x * y;
#endif
}

// Philox4x32-10: the four words of counter (column / 4, row, item, i) under the seed. Extents are below 2^32.
struct Random_words {
    u32 at[4];
};
__device__ inline Random_words random_words(I64 seed, I64 i, I64 column, I64 row, I64 item) {
    u32 a = (u32)column >> 2, b = (u32)row, c = (u32)item, d = (u32)i, key = (u32)seed, next_key = (u32)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 first = product_of_words(0xd2511f53, a), second = product_of_words(0xcd9e8d57, c);
        a = (u32)(second >> 32) ^ b ^ key;
        c = (u32)(first >> 32) ^ d ^ next_key;
        b = (u32)second;
        d = (u32)first;
        key += 0x9e3779b9;
        next_key += 0xbb67ae85;
    }
    return {{a, b, c, d}};
}
// A word's upper 24 bits as a number in [0, 1).
__device__ inline float random_number(u32 word) {
    return (float)(word >> 8) * 5.9604644775390625e-08f;
}
// Word column % 4.
__device__ inline float formula_uniform(I64 seed, I64 i, I64 column, I64 row, I64 item) {
    Random_words words = random_words(seed, i, column, row, item);
    u32 which = (u32)column & 3;
    return random_number(which < 2 ? which == 0 ? words.at[0] : words.at[1] : which == 2 ? words.at[2] : words.at[3]);
}

// x as a neighbour that has Cut bits less, 16: of BF16, 13: of F16: the magnitude in units of their distance, plus u, is rounded down,
// exactly: u has 24 bits, of which those below what is cut off come to no carry.
template <int Cut> __device__ inline float formula_stochastic(float x, float u) {
    u32 added = __float_as_uint(x) + (int)(u * (1 << Cut));
    float y = __uint_as_float(added & ~0u << Cut);
    if (Cut == 13 && fabs(x) < 6.103515625e-05f) { // of F16's subnormal numbers, whose distance is 2^-24
        float units = fabs(x) * 16777216, whole = floor(units);
        y = copysign((units - whole >= 1 - u ? whole + 1 : whole) * 5.9604644775390625e-08f, x);
    }
    return x - x == 0 ? y : x; // infinity and NaN
}
