// The epilogue on a run of eight accumulators of one row. Written once, for every kernel that ends in one.
//
// The body knows: the accumulators v, the item of the batch, the row, the first column, how many of the eight columns
// exist, and the tensors in `p`. It may read and write any tensor at (item, row, column), and leaves in v what D
// stores. Which tensors and which activation are compile-time constants, so that what is not used costs nothing.
#pragma once
#include "types.cuh"
#include "activation.cuh"
#include "params.h"

// The prologue defines these for the problem at hand; the values here let the file compile by itself.
#ifndef GEMMEPI_EPILOGUE
#define GEMMEPI_EPILOGUE     0 // the public value: activation and flags
#define GEMMEPI_ACC          F32
#define GEMMEPI_C_TYPE       F32
#define GEMMEPI_D_TYPE       F32
#define GEMMEPI_BIAS_TYPE    F32
#define GEMMEPI_AUX_TYPE     F32
#define GEMMEPI_RESIDUAL_TYPE F32
#define GEMMEPI_ALIGNED      0 // 1: every run of every tensor starts at a multiple of its size, 16 bytes at most
#define GEMMEPI_HAS_PRODUCT  1 // 0: k is 0
#endif

typedef GEMMEPI_ACC Acc;

constexpr bool HAS_BIAS = (GEMMEPI_EPILOGUE & 0x100) != 0;
constexpr bool WRITES_AUX = (GEMMEPI_EPILOGUE & 0x200) != 0;
constexpr bool BACKWARD = (GEMMEPI_EPILOGUE & 0x400) != 0;
constexpr bool HAS_RESIDUAL = (GEMMEPI_EPILOGUE & 0x800) != 0;
constexpr bool HAS_BGRAD = (GEMMEPI_EPILOGUE & 0x1000) != 0;
constexpr int ACTIVATION = GEMMEPI_EPILOGUE & 0xff;
constexpr bool ALIGNED = GEMMEPI_ALIGNED;

__device__ inline long long offset(const gemmepi__kernel_matrix &x, long long item, long long row, long long column) {
    return item * x.stride + row * x.ld + column;
}

template <class T>
__device__ inline void load(const gemmepi__kernel_matrix &x, long long item, long long row, long long column, int valid,
                            Acc (&values)[RUN]) {
    load_run<ALIGNED>((const T *)x.data + offset(x, item, row, column), valid, values);
}

template <class T>
__device__ inline void store(const gemmepi__kernel_matrix &x, long long item, long long row, long long column, int valid,
                             const Acc (&values)[RUN]) {
    store_run<ALIGNED>((T *)x.data + offset(x, item, row, column), valid, values);
}

// RELU's mask: offsets count bits, and column is a multiple of 8, so that a run is one byte. Bits past n stay.
__device__ inline void store_mask(const gemmepi__kernel_matrix &x, long long item, long long row, long long column,
                                  int valid, const Acc (&v)[RUN]) {
    u8 *byte = (u8 *)x.data + offset(x, item, row, column) / 8;
    u32 bits = 0, mine = (1u << valid) - 1;
#pragma unroll
    for (int i = 0; i < RUN; i++)
        bits |= (u32)(v[i] > 0) << i;
    *byte = valid == RUN ? (u8)bits : (u8)((*byte & ~mine) | (bits & mine));
}

__device__ inline void multiply_by_derivative(const gemmepi__kernel_matrix &aux, long long item, long long row,
                                              long long column, int valid, Acc (&v)[RUN]) {
    if (ACTIVATION == RELU) {
        u32 bits = ((const u8 *)aux.data)[offset(aux, item, row, column) / 8];
#pragma unroll
        for (int i = 0; i < RUN; i++)
            v[i] = bits >> i & 1 ? v[i] : Acc(0);
    } else {
        Acc saved[RUN];
        load<GEMMEPI_AUX_TYPE>(aux, item, row, column, valid, saved);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            v[i] *= derivative<ACTIVATION>(saved[i]);
    }
}

__device__ inline void epilogue(const gemmepi__pass_params &p, Acc alpha, Acc beta, long long item, long long row,
                                long long column, int valid, Acc (&v)[RUN]) {
    Acc other[RUN];
#pragma unroll
    for (int i = 0; i < RUN; i++)
        v[i] *= alpha;
    if (p.uses_c && beta != 0) {
        load<GEMMEPI_C_TYPE>(p.c, item, row, column, valid, other);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            v[i] += beta * other[i];
    }
    if (HAS_BIAS) {
        load<GEMMEPI_BIAS_TYPE>(p.bias, item, 0, column, valid, other);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            v[i] += other[i];
    }
    if (WRITES_AUX) {
        if (ACTIVATION == RELU)
            store_mask(p.aux, item, row, column, valid, v);
        else
            store<GEMMEPI_AUX_TYPE>(p.aux, item, row, column, valid, v);
    }
    if (BACKWARD) {
        multiply_by_derivative(p.aux, item, row, column, valid, v);
    } else {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            v[i] = activate<ACTIVATION>(v[i]);
    }
    if (HAS_RESIDUAL) {
        load<GEMMEPI_RESIDUAL_TYPE>(p.residual, item, row, column, valid, other);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            v[i] += other[i];
    }
}
