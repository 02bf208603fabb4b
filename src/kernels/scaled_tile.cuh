// A tile of 128 x SLOW elements of a matrix, as casts have it: where it lies, and how the threads of a block read it, store it, and
// store it transposed. "fast" is the axis along which threads are neighbours, "slow" the other.
#pragma once
#include "scaled.cuh"
#include "turn.cuh"

#ifndef GEMMEPI_SLOW
#define GEMMEPI_SLOW    64 // 128, or 64 where no number belongs to more than one line along the fast axis, and nothing is transposed
#define GEMMEPI_VECTORS 0  // 1: both tensors are dense and aligned along the fast axis
#define GEMMEPI_TURNS   0  // 1: y is stored transposed, too; 2: and lines of that are dense and aligned, so by words
#endif
#ifndef GEMMEPI_WHOLE
#define GEMMEPI_WHOLE 0 // 1: lines along the fast axis have vectors without a rest
#define GEMMEPI_ITEMS 1 // 0: there is one matrix
#define GEMMEPI_FLAT  0 // 1: whose lines are as long as a tile, one behind the other in both tensors
#endif

constexpr int TILE = SCALE_STEPS, SLOW = GEMMEPI_SLOW, THREADS = 4 * SLOW;
constexpr int WIDE = GEMMEPI_VECTORS ? VECTOR : 1;
constexpr int LANES = TILE / WIDE, ROWS = THREADS / LANES; // threads along the fast and the slow axis
constexpr int VECTORS = SLOW / ROWS;                       // of a thread
constexpr int WORDS = WIDE * sizeof(A) < 4 ? VECTORS : VECTORS * WIDE * (int)sizeof(A) / 4;
constexpr bool TURNS = GEMMEPI_TURNS != 0;
constexpr int AT_ONCE = TURNS ? 4 : 1; // vectors that a thread stores together: of lines side by side

struct Tile {
    const A *a;
    Y *y, *turned;
    u32 item;
    long long fast, slow; // where it begins
    int extent_fast, extent_slow;
};

// Elements from one to the next along the fast axis, and from one line to the next.
__device__ inline long long step_of_a(const gpi__scaled_params &p) {
    return GEMMEPI_WHOLE ? 1 : p.stride_a[0];
}
__device__ inline long long step_of_y(const gpi__scaled_params &p) {
    return GEMMEPI_WHOLE ? 1 : p.stride_y[0];
}
__device__ inline long long line_of_a(const gpi__scaled_params &p) {
    return GEMMEPI_FLAT ? TILE : p.stride_a[1];
}
__device__ inline long long line_of_y(const gpi__scaled_params &p) {
    return GEMMEPI_FLAT ? TILE : p.stride_y[1];
}

// tile: its number, of all items
__device__ inline Tile tile_at(const gpi__scaled_params &p, u32 tile) {
    u32 rest = GEMMEPI_FLAT ? tile : tile / p.tiles[0], item = GEMMEPI_ITEMS ? rest / p.tiles[1] : 0, outer = item;
    long long fast = GEMMEPI_FLAT ? 0 : (long long)(tile - rest * p.tiles[0]) * TILE;
    long long slow = (long long)(GEMMEPI_ITEMS ? rest - item * p.tiles[1] : rest) * SLOW;
    Tile at = {(const A *)p.a + fast * step_of_a(p) + slow * line_of_a(p),
               (Y *)p.y + fast * step_of_y(p) + slow * line_of_y(p),
               TURNS ? (Y *)p.turned + fast * p.stride_turned[0] + slow * p.stride_turned[1] : 0,
               item,
               fast,
               slow,
               !GEMMEPI_FLAT && p.extent[0] - fast < TILE ? (int)(p.extent[0] - fast) : TILE,
               p.extent[1] - slow < SLOW ? (int)(p.extent[1] - slow) : SLOW};
    for (int d = 2; GEMMEPI_ITEMS && d < p.rank; d++) {
        u32 extent = (u32)p.extent[d], next = outer / extent, index = outer - next * extent;
        at.a += index * p.stride_a[d];
        at.y += index * p.stride_y[d];
        if (TURNS)
            at.turned += index * p.stride_turned[d];
        outer = next;
    }
    return at;
}

// Where a thread's vectors begin along the fast axis, and in which line its v-th one is.
__device__ inline int column_of_thread() {
    return threadIdx.x % LANES * WIDE;
}
__device__ inline int line_of_vector(int v) {
    int j = threadIdx.x / LANES;
    return TURNS ? (v / AT_ONCE * ROWS + j) * AT_ONCE + v % AT_ONCE : j + v * ROWS;
}

__device__ inline Words<A, WIDE> load_vector(const gpi__scaled_params &p, const Tile &tile, int v) {
    int i = column_of_thread(), line = line_of_vector(v), left = tile.extent_fast - i, valid = left < WIDE ? left : WIDE;
    const A *from = tile.a + line * line_of_a(p) + i * step_of_a(p);
    if (line < tile.extent_slow && valid == WIDE)
        return *reinterpret_cast<const Words<A, WIDE> *>(from);
    if (GEMMEPI_WHOLE)
        return Words<A, WIDE>();
    return words_of(read_elements<WIDE>(from, line < tile.extent_slow ? valid : 0));
}

__device__ inline void store_vector(const gpi__scaled_params &p, const Tile &tile, int v, const Run<Y, WIDE> &run) {
    int i = column_of_thread(), line = line_of_vector(v), left = tile.extent_fast - i, valid = left < WIDE ? left : WIDE;
    Y *to = tile.y + line * line_of_y(p) + i * step_of_y(p);
    if (line < tile.extent_slow && valid == WIDE)
        *reinterpret_cast<Words<Y, WIDE> *>(to) = words_of(run);
    else if (!GEMMEPI_WHOLE && line < tile.extent_slow)
#pragma unroll
        for (int e = 0; e < WIDE; e++)
            if (e < valid)
                to[e] = run.at[e];
}

// The tile transposed, of elements of a byte, in words of four lines each: of a column's words the i-th stands in place i ^ column / WIDE, so that those of
// threads side by side are in banks of their own.
constexpr int COLUMN_WORDS = SLOW / 4;
typedef u32 Square[TURNS ? TILE * COLUMN_WORDS : 1];

__device__ inline u32 &word_of_square(Square &square, int column, int word) {
    return square[column * COLUMN_WORDS + (word ^ column / WIDE % COLUMN_WORDS)];
}

// runs: of the vectors v to v + 3
__device__ inline void keep_turned(Square &square, int v, const Run<Y, WIDE> (&runs)[AT_ONCE]) {
    int i = column_of_thread(), word = line_of_vector(v) / AT_ONCE;
    if constexpr (TURNS && WIDE % 4 == 0) {
        u32 lines[AT_ONCE][(WIDE + 3) / 4];
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++)
            memcpy(lines[r], &runs[r], WIDE);
#pragma unroll
        for (int h = 0; h < WIDE / 4; h++) {
            u32 four[4] = {lines[0][h], lines[1][h], lines[2][h], lines[3][h]};
            turn(four);
#pragma unroll
            for (int e = 0; e < 4; e++)
                word_of_square(square, i + h * 4 + e, word) = four[e];
        }
    } else if constexpr (TURNS) {
#pragma unroll
        for (int e = 0; e < WIDE; e++) {
            u32 four = 0;
#pragma unroll
            for (int r = 0; r < AT_ONCE; r++)
                four |= (u32)*reinterpret_cast<const u8 *>(&runs[r].at[e]) << r * 8;
            word_of_square(square, i + e, word) = four;
        }
    }
}

// Behind a barrier: a warp has a column's words.
__device__ inline void store_turned(const gpi__scaled_params &p, const Tile &tile, Square &square) {
    int lane = threadIdx.x % COLUMN_WORDS;
#pragma unroll 4
    for (int column = threadIdx.x / COLUMN_WORDS; column < tile.extent_fast; column += THREADS / COLUMN_WORDS) {
        u32 four = word_of_square(square, column, lane);
        Y *to = tile.turned + column * p.stride_turned[0] + lane * 4 * p.stride_turned[1];
        int left = tile.extent_slow - lane * 4;
        if (GEMMEPI_TURNS == 2 && left >= 4)
            *reinterpret_cast<u32 *>(to) = four;
        else
#pragma unroll
            for (int r = 0; r < 4; r++)
                if (r < left)
                    *reinterpret_cast<u8 *>(to + r * p.stride_turned[1]) = (u8)(four >> r * 8);
    }
}
