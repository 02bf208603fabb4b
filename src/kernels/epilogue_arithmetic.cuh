// Sums and products of runs, in the accumulator's type.
#pragma once
#include "epilogue_parameters.cuh"

// >>arithmetic of the accumulator: that of I32 is modulo 2^32, so without a sign

__device__ inline int product(int x, int y) {
    return (int)((u32)x * (u32)y);
}
__device__ inline int sum(int x, int y) {
    return (int)((u32)x + (u32)y);
}
template <class A> __device__ inline A product(A x, A y) {
    return x * y;
}
template <class A> __device__ inline A sum(A x, A y) {
    return x + y;
}

// row_factor: alpha with the scale of A's row, where columns have no factors of their own.
__device__ inline void multiply_by_factors(Acc row_factor, const Acc (&column_factors)[RUN], Acc (&v)[RUN]) {
    constexpr bool by_column = COLUMNS_SCALED;
#pragma unroll
    for (int i = 0; i < RUN; i++)
        v[i] = product(v[i], !by_column                       ? row_factor
                             : ROWS_SCALED ? product(row_factor, column_factors[i])
                                                              : column_factors[i]);
}

__device__ inline void add_product(Acc factor, const Acc (&c)[RUN], Acc (&v)[RUN]) {
#pragma unroll
    for (int i = 0; i < RUN; i++)
        v[i] = sum(v[i], product(factor, c[i]));
}
