// A copy of an operand of 32-bit elements whose lines lie along its other axis, for a kernel that reads elements side by side along
// k alone. A block copies a square; what a line lacks up to out.ld is left as it is.
#include "types.cuh"
#include "params.h"

#ifndef GEMMEPI_TILE
#define GEMMEPI_TILE 64 // lines and elements of a line that a block copies
#endif
#ifndef GEMMEPI_THREADS
#define GEMMEPI_THREADS 256
#endif

constexpr int TILE = GEMMEPI_TILE, THREADS = GEMMEPI_THREADS, AT_ONCE = THREADS / TILE, TIMES = TILE / AT_ONCE;

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_transpose(GEMMEPI_PARAMS gemmepi__convert_params p) {
    __shared__ u32 square[TILE][TILE + 1]; // columns, too, are in banks of their own
    u32 across = (u32)((p.columns + TILE - 1) / TILE), of_item = across * (u32)((p.rows + TILE - 1) / TILE);
    u32 item = blockIdx.x / of_item, of_lines = (blockIdx.x - item * of_item) / across;
    long long row = (long long)of_lines * TILE, column = (long long)(blockIdx.x - item * of_item - of_lines * across) * TILE;
    int lane = threadIdx.x % TILE, line = threadIdx.x / TILE;
    int rows_left = p.rows - row < TILE ? (int)(p.rows - row) : TILE;
    int columns_left = p.columns - column < TILE ? (int)(p.columns - column) : TILE;
    after_launches_before();
    const u32 *x = (const u32 *)p.x.data + item * p.x.stride + row * p.x.ld + column;
    u32 *out = (u32 *)p.out.data + item * p.out.stride + column * p.out.ld + row;
    u32 words[TIMES];
#pragma unroll
    for (int i = 0; i < TIMES; i++)
        words[i] = line + i * AT_ONCE < rows_left && lane < columns_left ? x[(line + i * AT_ONCE) * p.x.ld + lane] : 0;
#pragma unroll
    for (int i = 0; i < TIMES; i++)
        square[line + i * AT_ONCE][lane] = words[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TIMES; i++)
        if (line + i * AT_ONCE < columns_left && lane < rows_left)
            out[(line + i * AT_ONCE) * p.out.ld + lane] = square[lane][line + i * AT_ONCE];
}
