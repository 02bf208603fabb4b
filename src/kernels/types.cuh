// Element types and runs of eight of them in memory. No CUDA header: NVRTC alone compiles this.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;

// A kernel's struct of parameters, read where it lies. Before Volta a plain parameter does, at the price of a copy.
#if __CUDA_ARCH__ >= 700
#define GEMMEPI_PARAMS const __grid_constant__
#else
#define GEMMEPI_PARAMS const
#endif

typedef float F32;
typedef double F64;
struct F16 {
    u16 bits;
};
struct BF16 {
    u16 bits;
};

// to_f32/from_f32 and to_acc/from_acc: without loss one way, one rounding to nearest even the other
__device__ inline float to_f32(F32 x) {
    return x;
}
__device__ inline float to_f32(F16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
__device__ inline float to_f32(BF16 x) {
    return __uint_as_float((u32)x.bits << 16);
}
__device__ inline void from_f32(float x, F32 &y) {
    y = x;
}
__device__ inline void from_f32(float x, F16 &y) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
}
__device__ inline void from_f32(float x, BF16 &y) {
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
    u32 bits = __float_as_uint(x);
    y.bits = x != x ? (u16)0x7fff : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
}

// T to the accumulator type A and back; F64 goes with F64 alone
template <class A, class T> __device__ inline A to_acc(T x) {
    return to_f32(x);
}
template <> __device__ inline double to_acc<double, double>(double x) {
    return x;
}
template <class T> __device__ inline T from_acc(float x) {
    T y;
    from_f32(x, y);
    return y;
}
// To less than f64 by way of an f32 whose last bit tells of what was cut off ("round to odd"): so it is rounded once.
template <class T> __device__ inline T from_acc(double x) {
    T y;
    float cut = __double2float_rz(x);
    from_f32(cut == x ? cut : __uint_as_float(__float_as_uint(cut) | 1), y);
    return y;
}
template <> __device__ inline double from_acc<double>(double x) {
    return x;
}
template <> __device__ inline float from_acc<float>(double x) {
    return (float)x;
}

// Eight elements of a row, the unit of every pass of ours: one byte of RELU's mask, one 16-byte access in 16 bits.
constexpr int RUN = 8;

template <class T> struct alignas(sizeof(T) * RUN > 16 ? 16 : sizeof(T) * RUN) Run {
    T at[RUN];
};

// Loads a run of which `valid` elements exist (the others become 0). Aligned: the whole run may be read at once.
template <bool Aligned, class A, class T>
__device__ inline void load_run(const T *from, int valid, A (&values)[RUN]) {
    if (Aligned && valid == RUN) {
        Run<T> run = *reinterpret_cast<const Run<T> *>(from);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            values[i] = to_acc<A>(run.at[i]);
    } else {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            values[i] = i < valid ? to_acc<A>(from[i]) : A(0);
    }
}

template <bool Aligned, class A, class T>
__device__ inline void store_run(T *to, int valid, const A (&values)[RUN]) {
    if (Aligned && valid == RUN) {
        Run<T> run;
#pragma unroll
        for (int i = 0; i < RUN; i++)
            run.at[i] = from_acc<T>(values[i]);
        *reinterpret_cast<Run<T> *>(to) = run;
    } else {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            if (i < valid)
                to[i] = from_acc<T>(values[i]);
    }
}
