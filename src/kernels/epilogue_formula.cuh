// What an epilogue computes, of runs of the accumulator's type. It knows neither where numbers lie nor which lane has them.
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

// The bias is added to what activate_scaled_sum() takes, and nothing else wants the sum.
constexpr bool SCALES_SUM =
    HAS_BIAS && !BACKWARD && !WRITES_AUX && !AMAX_AUX && SAME<Acc, F32> && SUM_SCALE<ACTIVATION> != 0;

// To the sums of a half, or what SCALES_SUM makes of both.
__device__ inline void add_bias(int half, const Acc (&bias)[RUN], Acc (&v)[RUN]) {
#pragma unroll
    for (int i = 0; i < RUN; i++)
        if constexpr (SCALES_SUM)
            v[i] = half == GATE % HALVES ? fmaf(v[i], SUM_SCALE<ACTIVATION>, bias[i] * SUM_SCALE<ACTIVATION>)
                                         : v[i] + bias[i];
        else
            v[i] = sum(v[i], bias[i]);
}

// The activation of what add_bias() leaves.
__device__ inline Acc activate_finished(Acc parameter, Acc v) {
    if constexpr (SCALES_SUM)
        return activate_scaled_sum<ACTIVATION>(v);
    else
        return activate_sum<ACTIVATION, GATED>(v, parameter);
}

// One column of a value and a gate column.
__device__ inline void multiply_halves(Acc parameter, Acc (&v)[HALVES][RUN]) {
#pragma unroll
    for (int i = 0; i < RUN; i++) {
        if constexpr (SAME<Acc, I32>)
            v[0][i] = product(v[VALUE % HALVES][i], activate<ACTIVATION>(v[GATE % HALVES][i], Acc(0)));
        else if constexpr (GATES_BY_SUMS<ACTIVATION>)
            v[0][i] = v[VALUE % HALVES][i] * activate_finished(parameter, v[GATE % HALVES][i]);
        else
            v[0][i] = times_activation<ACTIVATION>(v[VALUE % HALVES][i], v[GATE % HALVES][i], parameter);
    }
}

// Of a run, for which a gate's gradient looks for overflow at once: all where a thread has registers for it.
constexpr int TOGETHER = !SPREAD ? 1 : GEMMEPI_APPLIED && !HAS_RESIDUAL ? RUN : 4;

// Of one column, into its gradient.
__device__ inline void differentiate(Acc parameter, const Acc (&saved)[HALVES_SAVED][RUN], Acc (&v)[HALVES][RUN]) {
#pragma unroll
    for (int i = 0; i < RUN; i++)
        v[0][i] = UPSTREAM ? times_derivative<ACTIVATION>(saved[0][i], v[0][i], parameter)
                           : times_derivative<ACTIVATION>(v[0][i], saved[0][i], parameter);
}

__device__ inline void add_residual(Acc scale, const Acc (&residual)[RUN], Acc (&v)[RUN]) {
#pragma unroll
    for (int i = 0; i < RUN; i++)
        v[i] = sum(v[i], SCALES_RESIDUAL ? product(residual[i], scale) : residual[i]);
}
