// A copy of an operand whose lines lie along its other axis, for a kernel that reads elements side by side along k alone, or the second half
// of a gate's columns at multiples of 16 bytes alone. A block copies a square; what a line lacks up to out.ld is left as it is, or anything.
#include "turn.cuh"
#include "params.h"

#ifndef GEMMEPI_TILE
#define GEMMEPI_TILE 64 // lines and elements of a line that a block copies
#endif
#ifndef GEMMEPI_ELEMENT
#define GEMMEPI_ELEMENT 4 // bytes: 1, 2 or 4
#endif
#ifndef GEMMEPI_ALIGNED
#define GEMMEPI_ALIGNED 0 // 1: lines of x begin at multiples of 4 bytes
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

typedef Word_of<GEMMEPI_ELEMENT>::type Element;
constexpr int PER_WORD = 4 / GEMMEPI_ELEMENT, WORDS = TILE / PER_WORD; // words of a line
constexpr int AT_ONCE = THREADS / WORDS, TIMES = WORDS / AT_ONCE;
static_assert(WORDS % 32 == 0, "a warp has words of one line");

// A word of a line, of which `left` elements exist.
__device__ inline u32 read_word(const Element *from, int left) {
    u32 word = 0;
    if (GEMMEPI_ALIGNED && left >= PER_WORD)
        return *reinterpret_cast<const u32 *>(from);
#pragma unroll
    for (int i = 0; i < PER_WORD; i++)
        if (i < left)
            word |= (u32)from[i] << i * 8 * GEMMEPI_ELEMENT;
    return word;
}

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_transpose(GEMMEPI_PARAMS gpi__convert_params p) {
    __shared__ u32 square[TILE * WORDS]; // of a column the i-th word is in place i ^ column / PER_WORD: all in banks of their own
    const Square of = square_of_block(p);
    int lane = threadIdx.x % WORDS, line = threadIdx.x / WORDS, across = lane * PER_WORD;
    after_launches_before();
    const Element *x = (const Element *)p.x.data + of.item * p.x.stride + of.row * p.x.ld + of.column + across;
    Element *out = (Element *)p.out.data + of.item * p.out.stride + of.column * p.out.ld + of.row + across;
    u32 words[TIMES][PER_WORD];
#pragma unroll
    for (int i = 0; i < TIMES * PER_WORD; i++) {
        int at = (line + i / PER_WORD * AT_ONCE) * PER_WORD + i % PER_WORD;
        words[i / PER_WORD][i % PER_WORD] = at < of.rows_left ? read_word(x + at * p.x.ld, of.columns_left - across) : 0;
    }
#pragma unroll
    for (int i = 0; i < TIMES; i++) {
        turn(words[i]);
#pragma unroll
        for (int j = 0; j < PER_WORD; j++)
            square[(across + j) * WORDS + ((line + i * AT_ONCE) ^ lane)] = words[i][j];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TIMES * PER_WORD; i++) {
        int at = line + i * AT_ONCE;
        if (at < of.columns_left && across < of.rows_left) // lines of out have room for whole words
            *reinterpret_cast<u32 *>(out + at * p.out.ld) = square[at * WORDS + (lane ^ at / PER_WORD)];
    }
}
