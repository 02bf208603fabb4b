// Sums of a matrix over its rows or along them, in a fixed order, into bias_grad or into partial sums. They are added in
// f64, because a column may have millions of rows; there are few enough of them to cost nothing.
#include "types.cuh"
#include "params.h"

#ifndef GEMMEPI_X_TYPE
#define GEMMEPI_X_TYPE     F32
#define GEMMEPI_OUT_TYPE   F32
#define GEMMEPI_ACCUMULATE 0 // 1: add to what out holds
#define GEMMEPI_X_SCALE    0 // the public mode of x's scale; x is summed along k
#define GEMMEPI_ROWS       8 // of a block's threads in sum_columns, a power of two
#endif

constexpr int COLUMNS = 32, ROWS = GEMMEPI_ROWS; // sum_columns: a block
constexpr int LINE_THREADS = 128;     // sum_rows: a block
constexpr bool VARIES = GEMMEPI_X_SCALE == SCALE_VECTOR_128 || GEMMEPI_X_SCALE == SCALE_BLOCK_128; // along k

// The scale of one sum, where it does not vary along k.
__device__ inline double whole_scale(const float *scale, long long outer) {
    return GEMMEPI_X_SCALE == SCALE_TENSOR ? scale[0] : GEMMEPI_X_SCALE == SCALE_OUTER ? scale[outer] : 1;
}

__device__ inline void finish(const gemmepi__reduce_params &p, long long line, long long at, double sum) {
    GEMMEPI_OUT_TYPE *out = (GEMMEPI_OUT_TYPE *)p.out + line * p.out_stride + at;
    if (GEMMEPI_ACCUMULATE)
        sum += to_acc<double>(*out);
    *out = from_acc<GEMMEPI_OUT_TYPE>(sum);
}

// out[item * parts + part][column] = sum over the part's rows. Blocks: items * parts * column tiles.
extern "C" __global__ void __launch_bounds__(COLUMNS * ROWS)
    gemmepi_sum_columns(GEMMEPI_PARAMS gemmepi__reduce_params p) {
    __shared__ double shared[ROWS][COLUMNS];
    after_launches_before();
    u32 column_tiles = (u32)((p.columns + COLUMNS - 1) / COLUMNS); // 32 bits, as all counts of blocks
    u32 line = blockIdx.x / column_tiles, item = line / (u32)p.parts;
    long long column = (long long)(blockIdx.x - line * column_tiles) * COLUMNS + threadIdx.x;
    long long first = (line - item * (u32)p.parts) * p.part_rows;
    long long last = first + p.part_rows < p.rows ? first + p.part_rows : p.rows;
    const float *scale = p.scale.data + item * p.scale.stride;
    double sum = 0;
    if (column < p.columns) {
        const GEMMEPI_X_TYPE *x = (const GEMMEPI_X_TYPE *)p.x.data + item * p.x.stride + column;
        Scale_line factors = scale_line<GEMMEPI_X_SCALE>(scale, column, p.columns, p.rows);
#pragma unroll 8
        for (long long row = first + threadIdx.y; row < last; row += ROWS) {
            double value = to_acc<double>(x[row * p.x.ld]);
            sum += VARIES ? value * factors.at[row / SCALE_STEPS * factors.step] : value;
        }
    }
    shared[threadIdx.y][threadIdx.x] = sum;
    for (int half = ROWS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            shared[threadIdx.y][threadIdx.x] += shared[threadIdx.y + half][threadIdx.x];
    }
    if (threadIdx.y == 0 && column < p.columns)
        finish(p, line, column, shared[0][threadIdx.x] * whole_scale(scale, column));
}

// out[item][row] = sum along the row. Blocks: items * rows.
extern "C" __global__ void __launch_bounds__(LINE_THREADS)
    gemmepi_sum_rows(GEMMEPI_PARAMS gemmepi__reduce_params p) {
    __shared__ double shared[LINE_THREADS];
    after_launches_before();
    u32 item = blockIdx.x / (u32)p.rows;
    long long row = blockIdx.x - item * (u32)p.rows;
    const GEMMEPI_X_TYPE *x = (const GEMMEPI_X_TYPE *)p.x.data + item * p.x.stride + row * p.x.ld;
    const float *scale = p.scale.data + item * p.scale.stride;
    Scale_line factors = scale_line<GEMMEPI_X_SCALE>(scale, row, p.rows, p.columns);
    double sum = 0;
#pragma unroll 4
    for (long long column = threadIdx.x; column < p.columns; column += LINE_THREADS) {
        double value = to_acc<double>(x[column]);
        sum += VARIES ? value * factors.at[column / SCALE_STEPS * factors.step] : value;
    }
    shared[threadIdx.x] = sum;
    for (int half = LINE_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        finish(p, item, row, shared[0] * whole_scale(scale, row));
}
