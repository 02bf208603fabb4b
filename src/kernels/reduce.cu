// Sums of a matrix over its rows or along them, in a fixed order, into bias_grad or into partial sums.
#include "types.cuh"
#include "params.h"

#ifndef GEMMEPI_X_TYPE
#define GEMMEPI_X_TYPE     F32
#define GEMMEPI_OUT_TYPE   F32
#define GEMMEPI_ACC        F32
#define GEMMEPI_ACCUMULATE 0 // 1: add to what out holds
#endif

typedef GEMMEPI_ACC Acc;

constexpr int COLUMNS = 32, ROWS = 8;   // sum_columns: a block
constexpr int LINE_THREADS = 128;       // sum_rows: a block

__device__ inline void finish(const gemmepi__reduce_params &p, long long group, long long at, Acc sum) {
    GEMMEPI_OUT_TYPE *out = (GEMMEPI_OUT_TYPE *)p.out + group * p.out_stride + at;
    if (GEMMEPI_ACCUMULATE)
        sum += to_acc<Acc>(*out);
    *out = from_acc<GEMMEPI_OUT_TYPE>(sum);
}

// out[group][column] = sum over the group's items and rows. Blocks: groups * parts * column tiles; with parts > 1
// out is partial sums, out[group * parts + part][column], for a second launch.
extern "C" __global__ void __launch_bounds__(COLUMNS * ROWS)
    gemmepi_sum_columns(const __grid_constant__ gemmepi__reduce_params p) {
    __shared__ Acc shared[ROWS][COLUMNS];
    u32 column_tiles = (u32)((p.columns + COLUMNS - 1) / COLUMNS); // 32 bits, as all counts of blocks
    u32 tile = blockIdx.x / column_tiles, group = tile / (u32)p.parts;
    long long part = tile - group * (u32)p.parts;
    long long column = (long long)(blockIdx.x - tile * column_tiles) * COLUMNS + threadIdx.x;
    long long first = part * p.part_rows, last = first + p.part_rows < p.rows ? first + p.part_rows : p.rows;
    Acc sum = 0;
    if (column < p.columns)
        for (long long item = 0; item < p.items; item++) {
            const GEMMEPI_X_TYPE *x = (const GEMMEPI_X_TYPE *)p.x.data + (group * p.items + item) * p.x.stride + column;
#pragma unroll 4
            for (long long row = first + threadIdx.y; row < last; row += ROWS)
                sum += to_acc<Acc>(x[row * p.x.ld]);
        }
    shared[threadIdx.y][threadIdx.x] = sum;
    for (int half = ROWS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            shared[threadIdx.y][threadIdx.x] += shared[threadIdx.y + half][threadIdx.x];
    }
    if (threadIdx.y == 0 && column < p.columns)
        finish(p, group * p.parts + part, column, shared[0][threadIdx.x]);
}

// out[group][row] = sum over the group's items and the row. Blocks: groups * rows.
extern "C" __global__ void __launch_bounds__(LINE_THREADS)
    gemmepi_sum_rows(const __grid_constant__ gemmepi__reduce_params p) {
    __shared__ Acc shared[LINE_THREADS];
    u32 group = blockIdx.x / (u32)p.rows;
    long long row = blockIdx.x - group * (u32)p.rows;
    Acc sum = 0;
    for (long long item = 0; item < p.items; item++) {
        const GEMMEPI_X_TYPE *x = (const GEMMEPI_X_TYPE *)p.x.data + (group * p.items + item) * p.x.stride + row * p.x.ld;
#pragma unroll 4
        for (long long column = threadIdx.x; column < p.columns; column += LINE_THREADS)
            sum += to_acc<Acc>(x[column]);
    }
    shared[threadIdx.x] = sum;
    for (int half = LINE_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        finish(p, group, row, shared[0]);
}
