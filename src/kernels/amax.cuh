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

template <class A, int N, class M> __device__ inline void keep_largest(const A (&v)[N], int valid, M &largest) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        M size = i < valid ? magnitude(v[i]) : 0;
        largest = size > largest ? size : largest;
    }
}

// The largest of all threads of a warp into memory. Every thread of the warp takes part.
template <class M> __device__ inline void store_largest(void *amax, M largest) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        M other = __shfl_xor_sync(0xffffffff, largest, step);
        largest = other > largest ? other : largest;
    }
    if ((threadIdx.y * blockDim.x + threadIdx.x) % 32 == 0 && largest != 0)
        atomicMax((M *)amax, largest);
}
