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

// >>what flags say, in the form in which formula/emit.h writes what a text says: a column's outputs from its inputs, or one's of each half

#if GEMMEPI_FORMULA
constexpr int IN_ROW_FACTOR = -1;
constexpr bool ADDS_BIAS = false;
#else
enum { GEMMEPI_IN_BIAS, GEMMEPI_IN_AUX, GEMMEPI_IN_RESIDUAL, IN_ROW_FACTOR };
#define FORMULA_INPUTS(X)                                          \
    X(GEMMEPI_IN_BIAS, bias, PER_COLUMN, HALVES_IN, Acc, 0)        \
    X(GEMMEPI_IN_AUX, aux, FULL, HALVES_SAVED, Acc, 0)             \
    X(GEMMEPI_IN_RESIDUAL, residual, FULL, HALVES_OUT, Acc, 0)     \
    X(IN_ROW_FACTOR, row_factor, PER_ROW, 1, Acc, 0)
#define FORMULA_OUTPUTS(X) // AUX has what goes in
#define FORMULA_TABLES(X)
#define FORMULA_UNIFORMS(X)
#define FORMULA_VALUE  1
#define FORMULA_RESULT 1
#define FORMULA_WAVES  1 // there is what may be far: a gate's gradient, where factors leave the range together

struct Formula_in {
    Acc v[HALVES_IN], bias[HALVES_IN], aux[HALVES_SAVED], residual[HALVES_OUT], row_factor[1], parameter;
    bool is_kept, is_near; // is_kept: by RELU's mask
};
struct Formula_out {
    Acc d[HALVES_OUT];
    bool is_far;
};

// v has the bias, but where some activation adds it, and nothing else wants the sum (nor registers for both halves).
constexpr bool JOINS_BIAS = HAS_BIAS && !BACKWARD && !WRITES_AUX && !(FINDS && GATED) && SAME<Acc, F32> && SUM_SCALE<ACTIVATION> != 0;
constexpr bool ADDS_BIAS = HAS_BIAS && !JOINS_BIAS;

__device__ inline Acc activate_half(const Formula_in &in, int half) {
    if constexpr (JOINS_BIAS)
        return activate_biased_sum<ACTIVATION, GATED>(in.v[half], in.bias[half], in.parameter);
    else
        return activate_sum<ACTIVATION, GATED>(in.v[half], in.parameter);
}
__device__ inline Acc gated(const Formula_in &in, const Acc (&z)[HALVES_IN]) {
    if constexpr (SAME<Acc, I32>)
        return product(z[VALUE % HALVES_IN], activate<ACTIVATION>(z[GATE % HALVES_IN], Acc(0)));
    else if constexpr (GATES_BY_SUMS<ACTIVATION>)
        return z[VALUE % HALVES_IN] * activate_half(in, GATE % HALVES_IN);
    else
        return times_activation<ACTIVATION>(z[VALUE % HALVES_IN], z[GATE % HALVES_IN], in.parameter);
}
__device__ __forceinline__ void formula(const Formula_in &in, Formula_out &out) {
    Acc(&y)[HALVES_OUT] = out.d;
    Acc z[HALVES_IN];
    out.is_far = false;
    for (int half = 0; half < HALVES_IN; half++)
        z[half] = JOINS_BIAS ? sum(in.v[half], in.bias[half]) : in.v[half];
    if constexpr (BACKWARD && AUX_IS_MASK) {
        y[0] = in.is_kept ? z[0] : Acc(0);
    } else if constexpr (BACKWARD && SAME<Acc, I32>) {
        y[0] = z[0];
    } else if constexpr (BACKWARD && GATED) {
        const Acc *pair = UPSTREAM ? z : in.aux, dy = UPSTREAM ? in.aux[0] : z[0], value = pair[VALUE % HALVES], gate = pair[GATE % HALVES];
        y[VALUE % HALVES_OUT] = times_activation<ACTIVATION>(dy, gate, in.parameter);
        bool by_run = SPREAD && in.is_near; // elsewhere registers are too few
        y[GATE % HALVES_OUT] = by_run ? times_derivative<ACTIVATION>(dy * value, gate, in.parameter)
                                      : gate_gradient<ACTIVATION>(dy, value, gate, in.parameter);
        out.is_far = SPREAD && is_far_product<ACTIVATION>(dy, value);
    } else if constexpr (BACKWARD) {
        y[0] = UPSTREAM ? times_derivative<ACTIVATION>(in.aux[0], z[0], in.parameter)
                        : times_derivative<ACTIVATION>(z[0], in.aux[0], in.parameter);
    } else if constexpr (GATED) {
        y[0] = gated(in, z);
    } else {
        y[0] = activate_half(in, 0);
    }
    for (int half = 0; half < HALVES_OUT; half++) {
        y[half] = GEMMEPI_ROW_FACTOR ? product(y[half], in.row_factor[0]) : y[half];
        y[half] = HAS_RESIDUAL ? sum(y[half], in.residual[half]) : y[half];
    }
}
#endif
