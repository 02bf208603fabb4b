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
#define GEMMEPI_LANES      128 // that share a row in sum_rows, a power of two
#endif

constexpr int COLUMNS = 32, ROWS = GEMMEPI_ROWS; // sum_columns: a block
constexpr int LINE_THREADS = 128;     // sum_rows: a block
constexpr int LANES = GEMMEPI_LANES, LINES = LINE_THREADS / LANES;
constexpr u32 AT_ONCE = 8;            // numbers that a thread loads before it adds them up
constexpr bool VARIES = GEMMEPI_X_SCALE == SCALE_VECTOR_128 || GEMMEPI_X_SCALE == SCALE_BLOCK_128; // along k

// The scale of one sum, where it does not vary along k.
__device__ inline double whole_scale(const float *scale, long long outer) {
    return GEMMEPI_X_SCALE == SCALE_TENSOR ? scale[0] : GEMMEPI_X_SCALE == SCALE_OUTER ? scale[outer] : 1;
}

__device__ inline void finish(const gpi__reduce_params &p, long long line, long long at, double sum) {
    GEMMEPI_OUT_TYPE *out = (GEMMEPI_OUT_TYPE *)p.out + line * p.out_stride + at;
    if (GEMMEPI_ACCUMULATE)
        sum += to_acc<double>(*out);
    *out = from_acc<GEMMEPI_OUT_TYPE>(sum);
}

// The sum of those of x, a line along which sums are made, that are first, first + step, ... below last; each times its factor.
// Elements from one to the next are `stride` apart.
__device__ inline double sum_up(const GEMMEPI_X_TYPE *x, long long stride, long long first, int step, long long last,
                                const Scale_line &factors) {
    u32 count = first < last ? (u32)((last - first + step - 1) / step) : 0, i = 0;
    double sum = 0;
    x += first * stride;
    stride *= step;
#pragma unroll 1
    do { // once at least: what is stored behind it waits as well
        GEMMEPI_X_TYPE values[AT_ONCE] = {};
        if (i == 0)
            after_launches_before(); // no sooner: most of the instructions up to the last load have come by now
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++, x += stride)
            if (i + j < count)
                values[j] = *x;
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++)
            if (!VARIES)
                sum += to_acc<double>(values[j]);
            else if (i + j < count)
                sum += to_acc<double>(values[j]) * factors.at[(first + (long long)(i + j) * step) / SCALE_STEPS * factors.step];
        i += AT_ONCE;
    } while (i < count);
    return sum;
}

// out[item * parts + part][column] = sum over the part's rows. Blocks: items * parts * column tiles.
extern "C" __global__ void __launch_bounds__(COLUMNS * ROWS, 1)
    gemmepi_sum_columns(GEMMEPI_PARAMS gpi__reduce_params p) {
    __shared__ double shared[ROWS][COLUMNS];
    u32 column_tiles = (u32)((p.columns + COLUMNS - 1) / COLUMNS); // 32 bits, as all counts of blocks
    u32 line = blockIdx.x / column_tiles, item = line / (u32)p.parts;
    long long column = (long long)(blockIdx.x - line * column_tiles) * COLUMNS + threadIdx.x;
    long long first = (line - item * (u32)p.parts) * p.part_rows;
    long long last = first + p.part_rows < p.rows ? first + p.part_rows : p.rows;
    const float *scale = p.scale.data + item * p.scale.stride;
    shared[threadIdx.y][threadIdx.x] =
        sum_up((const GEMMEPI_X_TYPE *)p.x.data + item * p.x.stride + column, p.x.ld, first + threadIdx.y, ROWS,
               column < p.columns ? last : 0, scale_line<GEMMEPI_X_SCALE>(scale, column, p.columns, p.rows));
    for (int half = ROWS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            shared[threadIdx.y][threadIdx.x] += shared[threadIdx.y + half][threadIdx.x];
    }
    if (threadIdx.y == 0 && column < p.columns)
        finish(p, line, column, shared[0][threadIdx.x] * whole_scale(scale, column));
}

// out[item][row] = sum along the row. Blocks: items * tiles of LINES rows.
extern "C" __global__ void __launch_bounds__(LINE_THREADS, 1)
    gemmepi_sum_rows(GEMMEPI_PARAMS gpi__reduce_params p) {
    __shared__ double shared[LINES][LANES];
    u32 row_tiles = (u32)((p.rows + LINES - 1) / LINES), item = blockIdx.x / row_tiles;
    long long row = (long long)(blockIdx.x - item * row_tiles) * LINES + threadIdx.y;
    const float *scale = p.scale.data + item * p.scale.stride;
    double *sums = shared[threadIdx.y];
    sums[threadIdx.x] = sum_up((const GEMMEPI_X_TYPE *)p.x.data + item * p.x.stride + row * p.x.ld, 1, threadIdx.x, LANES,
                               row < p.rows ? p.columns : 0, scale_line<GEMMEPI_X_SCALE>(scale, row, p.rows, p.columns));
    for (int half = LANES / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0 && row < p.rows)
        finish(p, item, row, sums[0] * whole_scale(scale, row));
}
