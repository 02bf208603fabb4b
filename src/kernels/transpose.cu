// A copy of an operand of 32-bit elements, or of bytes, whose lines lie along its other axis, for a kernel that reads elements side by side
// along k alone. A block copies a square; what a line lacks up to out.ld is left as it is, or of bytes anything.
#include "turn.cuh"
#include "params.h"

#ifndef GEMMEPI_TILE
#define GEMMEPI_TILE 64 // lines and elements of a line that a block copies
#endif
#ifndef GEMMEPI_ELEMENT
#define GEMMEPI_ELEMENT 4 // bytes
#endif
#ifndef GEMMEPI_ALIGNED
#define GEMMEPI_ALIGNED 0 // of bytes: 1: lines of x begin at multiples of 4
#endif
#ifndef GEMMEPI_THREADS
#define GEMMEPI_THREADS 256
#endif

constexpr int TILE = GEMMEPI_TILE, THREADS = GEMMEPI_THREADS;

// The block's square: of which item, where it begins, and how much of it exists.
struct Square {
    u32 item;
    long long row, column;
    int rows_left, columns_left;
};
__device__ inline Square square_of_block(const gpi__convert_params &p) {
    u32 across = (u32)((p.columns + TILE - 1) / TILE), of_item = across * (u32)((p.rows + TILE - 1) / TILE);
    u32 item = blockIdx.x / of_item, of_lines = (blockIdx.x - item * of_item) / across;
    long long row = (long long)of_lines * TILE, column = (long long)(blockIdx.x - item * of_item - of_lines * across) * TILE;
    return {item, row, column, p.rows - row < TILE ? (int)(p.rows - row) : TILE,
            p.columns - column < TILE ? (int)(p.columns - column) : TILE};
}

#if GEMMEPI_ELEMENT == 4
constexpr int AT_ONCE = THREADS / TILE, TIMES = TILE / AT_ONCE;

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_transpose(GEMMEPI_PARAMS gpi__convert_params p) {
    __shared__ u32 square[TILE][TILE + 1]; // columns, too, are in banks of their own
    const Square of = square_of_block(p);
    int lane = threadIdx.x % TILE, line = threadIdx.x / TILE;
    after_launches_before();
    const u32 *x = (const u32 *)p.x.data + of.item * p.x.stride + of.row * p.x.ld + of.column;
    u32 *out = (u32 *)p.out.data + of.item * p.out.stride + of.column * p.out.ld + of.row;
    u32 words[TIMES];
#pragma unroll
    for (int i = 0; i < TIMES; i++)
        words[i] = line + i * AT_ONCE < of.rows_left && lane < of.columns_left ? x[(line + i * AT_ONCE) * p.x.ld + lane] : 0;
#pragma unroll
    for (int i = 0; i < TIMES; i++)
        square[line + i * AT_ONCE][lane] = words[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TIMES; i++)
        if (line + i * AT_ONCE < of.columns_left && lane < of.rows_left)
            out[(line + i * AT_ONCE) * p.out.ld + lane] = square[lane][line + i * AT_ONCE];
}
#else
constexpr int WORDS = TILE / 4, AT_ONCE = THREADS / WORDS, TIMES = WORDS / AT_ONCE; // words of a line
static_assert(WORDS == 32, "a warp has a line");

// Four bytes of a line, of which `left` exist.
__device__ inline u32 read_four(const u8 *from, int left) {
    u32 four = 0;
    if (GEMMEPI_ALIGNED && left >= 4)
        return *reinterpret_cast<const u32 *>(from);
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i < left)
            four |= (u32)from[i] << i * 8;
    return four;
}
extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_transpose(GEMMEPI_PARAMS gpi__convert_params p) {
    __shared__ u32 square[TILE * WORDS]; // of a column's words the i-th stands in place i ^ column / 4: all in banks of their own
    const Square of = square_of_block(p);
    int lane = threadIdx.x % WORDS, line = threadIdx.x / WORDS;
    after_launches_before();
    const u8 *x = (const u8 *)p.x.data + of.item * p.x.stride + of.row * p.x.ld + of.column + lane * 4;
    u8 *out = (u8 *)p.out.data + of.item * p.out.stride + of.column * p.out.ld + of.row + lane * 4;
    u32 words[TIMES][4];
#pragma unroll
    for (int i = 0; i < TIMES * 4; i++) {
        int at = (line + i / 4 * AT_ONCE) * 4 + i % 4;
        words[i / 4][i % 4] = at < of.rows_left ? read_four(x + at * p.x.ld, of.columns_left - lane * 4) : 0;
    }
#pragma unroll
    for (int i = 0; i < TIMES; i++) {
        turn(words[i]);
#pragma unroll
        for (int j = 0; j < 4; j++)
            square[(lane * 4 + j) * WORDS + ((line + i * AT_ONCE) ^ lane)] = words[i][j];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TIMES * 4; i++) {
        int at = line + i * AT_ONCE;
        if (at < of.columns_left && lane * 4 < of.rows_left) // lines of out have room for whole words
            *reinterpret_cast<u32 *>(out + at * p.out.ld) = square[at * WORDS + (lane ^ at / 4)];
    }
}
#endif
