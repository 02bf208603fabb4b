// The largest magnitude of what the threads of a launch have seen.
#pragma once
#include "types.cuh"

// |x| as bits, which order as the numbers do, NaN above all
__device__ inline u32 magnitude(float x) {
    return __float_as_uint(x) & 0x7fffffff;
}
__device__ inline u64 magnitude(double x) {
    return (u64)__double_as_longlong(x) & 0x7fffffffffffffff;
}
__device__ inline u32 magnitude(int) { // whole numbers have no amax
    return 0;
}

// The larger of two.
__device__ inline u32 larger_magnitude(float x, float y) {
#if __CUDA_ARCH__ >= 800
    float largest;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(largest) : "f"(fabsf(x)), "f"(fabsf(y)));
    return __float_as_uint(largest);
#else
    return magnitude(x) > magnitude(y) ? magnitude(x) : magnitude(y);
#endif
}

template <class A, int N, class M> __device__ inline void keep_largest(const A (&v)[N], int valid, M &largest) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        M size = i < valid ? magnitude(v[i]) : 0;
        largest = size > largest ? size : largest;
    }
}

// The type of amax: f64 for f64, else f32, in which every other number is exact.
template <bool Is_f64> struct Amax_type {
    typedef float type;
};
template <> struct Amax_type<true> {
    typedef double type;
};
template <class T> using Amax_of = typename Amax_type<SAME<T, F64>>::type;

template <class Amax, class A, int N, class M> __device__ inline void keep_largest_of(const A (&v)[N], M &largest) {
    Amax sizes[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        sizes[i] = (Amax)v[i];
    keep_largest(sizes, N, largest);
}

// The largest of all threads of a warp, in each of them. Every thread of the warp takes part.
template <class M> __device__ inline M largest_of_warp(M largest) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        M other = __shfl_xor_sync(0xffffffff, largest, step);
        largest = other > largest ? other : largest;
    }
    return largest;
}

// Into memory, which most often holds a larger number already: a look at it spares the atomic operations, of which memory
// makes one at a time. What the look finds may be old, then it is too small.
template <class M> __device__ inline void raise_to(void *amax, M largest) {
    if (largest > *(volatile M *)amax)
        atomicMax((M *)amax, largest);
}

// Every thread of the warp takes part.
template <class M> __device__ inline void store_largest(void *amax, M largest) {
    largest = largest_of_warp(largest);
    if ((threadIdx.y * blockDim.x + threadIdx.x) % 32 == 0)
        raise_to(amax, largest);
}

// Every thread of the block, which is a line of Threads, takes part.
template <int Threads, class M> __device__ inline void store_largest_of_block(void *amax, M largest) {
    __shared__ M warps[Threads / 32];
    largest = largest_of_warp(largest);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = largest;
    __syncthreads();
    if (threadIdx.x < 32) {
        largest = largest_of_warp(threadIdx.x < Threads / 32 ? warps[threadIdx.x] : M(0));
        if (threadIdx.x == 0)
            raise_to(amax, largest);
    }
}
