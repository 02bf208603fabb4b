// Sums over k of each group's part of an operand whose lines lie side by side along it: bias_grad of groups of k. In F64 and a fixed order.
#include "types.cuh"
#include "params.h"

#ifndef GEMMEPI_X_TYPE
#define GEMMEPI_X_TYPE     F32
#define GEMMEPI_OUT_TYPE   F32
#define GEMMEPI_ACCUMULATE 0 // 1: add to what out holds
#define GEMMEPI_X_SCALE    0 // the public mode of x's scale: TENSOR or OUTER
#endif

constexpr int COLUMNS = 32, ROWS = 32, AT_ONCE = 8; // of a block; rows that a thread loads before it adds them up

// Blocks: groups * column tiles.
extern "C" __global__ void __launch_bounds__(COLUMNS * ROWS)
    gemmepi_group_sums(GEMMEPI_PARAMS gpi__group_sums_params p) {
    __shared__ double shared[ROWS][COLUMNS];
    after_launches_before();
    int nth = (int)(blockIdx.x / p.column_tiles), column = (int)(blockIdx.x - nth * p.column_tiles) * COLUMNS + (int)threadIdx.x;
    if (nth >= *p.count)
        return;
    const gpi__group_part part = p.parts[nth];
    int end = column < p.columns ? part.end : 0;
    const GEMMEPI_X_TYPE *x = (const GEMMEPI_X_TYPE *)p.x.data + column;
    double sum = 0;
    for (int i = part.first + (int)threadIdx.y; i < end; i += ROWS * AT_ONCE) {
        GEMMEPI_X_TYPE values[AT_ONCE] = {};
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            int at = i + j * ROWS;
            if (at < end)
                values[j] = x[(p.index ? p.index[at] : at) * p.x.ld];
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            sum += to_acc<double>(values[j]);
    }
    shared[threadIdx.y][threadIdx.x] = sum;
    for (int half = ROWS / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.y < half)
            shared[threadIdx.y][threadIdx.x] += shared[threadIdx.y + half][threadIdx.x];
    }
    if (threadIdx.y != 0 || column >= p.columns)
        return;
    sum = shared[0][threadIdx.x];
    if (GEMMEPI_X_SCALE)
        sum *= p.scale[GEMMEPI_X_SCALE == SCALE_OUTER ? column : 0];
    GEMMEPI_OUT_TYPE *out = (GEMMEPI_OUT_TYPE *)p.out + part.group * p.out_stride + column;
    if (GEMMEPI_ACCUMULATE)
        sum += to_acc<double>(*out);
    *out = from_acc<GEMMEPI_OUT_TYPE>(sum);
}
