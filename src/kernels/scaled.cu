// Casts with scales and amax of rows, of 128 steps of k, or of blocks of 128 x 128; and of whole tensors where the scale is
// made from their amax, or both layouts are stored. A block has a tile. A scale's matrix has rows and k: which of the two axes is k is a
// define. What is stored transposed has vectors along the other axis, with scales of their own.
#include "scaled_tile.cuh"

#ifndef GEMMEPI_MODE
#define GEMMEPI_MODE     3 // the public mode of scales and amax
#define GEMMEPI_K_FAST   1 // 1: k is the fast axis
#define GEMMEPI_SCALE    2 // the enum below
#define GEMMEPI_STORES   1 // 0: only amax
#endif

enum { AS_IT_IS, GIVEN, FROM_TILE, FROM_AMAX }; // the scale: none, p.scale, made here, made of what p.amax holds already

constexpr bool K_FAST = GEMMEPI_K_FAST;
constexpr bool TAKES_AMAX = GEMMEPI_AMAX || GEMMEPI_SCALE == FROM_TILE;
constexpr bool KEEPS_VALUES = WORDS <= 64 && WIDE > 1; // in registers between amax and store; else it reads again

// Of the numbers, scales or amax, that a tile has: one for each row, or one alone. TWO: as many more, for what is transposed.
constexpr bool BY_ROWS = GEMMEPI_MODE == SCALE_OUTER || GEMMEPI_MODE == SCALE_VECTOR_128;
constexpr bool IS_SHARED = GEMMEPI_MODE == SCALE_TENSOR || GEMMEPI_MODE == SCALE_OUTER;
constexpr bool TWO = TURNS && GEMMEPI_STORES && GEMMEPI_MODE == SCALE_VECTOR_128;
template <bool Fast_is_k> __device__ inline int index_of(int fast, int slow) {
    return BY_ROWS ? Fast_is_k ? slow : fast : 0;
}

// A number's place among those of all items.
template <bool Fast_is_k>
__device__ inline long long place_of(const gpi__scaled_params &p, long long item, long long fast, long long slow) {
    long long row = Fast_is_k ? slow : fast, k = Fast_is_k ? fast : slow;
    long long rows = p.extent[Fast_is_k ? 1 : 0], steps = (p.extent[Fast_is_k ? 0 : 1] + SCALE_STEPS - 1) / SCALE_STEPS;
    if (GEMMEPI_MODE == SCALE_TENSOR)
        return 0;
    if (GEMMEPI_MODE == SCALE_OUTER)
        return item * rows + row;
    if (GEMMEPI_MODE == SCALE_VECTOR_128)
        return (item * steps + k / SCALE_STEPS) * rows + row;
    long long line = (steps + 3) / 4 * 4;
    return (item * ((rows + SCALE_STEPS - 1) / SCALE_STEPS) + row / SCALE_STEPS) * line + k / SCALE_STEPS;
}
// Of the tile's number that this thread has.
template <bool Fast_is_k> __device__ inline long long place_of_thread(const gpi__scaled_params &p, const Tile &tile) {
    return place_of<Fast_is_k>(p, tile.item, tile.fast + (Fast_is_k ? 0 : threadIdx.x), tile.slow + (Fast_is_k ? threadIdx.x : 0));
}
template <bool Fast_is_k> __device__ inline bool has_number(const Tile &tile) {
    return (int)threadIdx.x < (BY_ROWS ? Fast_is_k ? tile.extent_slow : tile.extent_fast : 1);
}

// A thread's vectors, of which each line's largest goes to `lines`, each column's to `columns`, or all of them to lines[0].
template <class Take> __device__ inline void take_amax(Magnitude *lines, Magnitude *columns, Take take) {
    Magnitude of_columns[WIDE] = {};
#pragma unroll KEEPS_VALUES ? VECTORS : 8
    for (int v = 0; v < VECTORS; v++) {
        Acc values[WIDE];
        Magnitude of_line = 0;
        words_to_acc(take(v), values);
        keep_largest_of<Amax>(values, of_line);
#pragma unroll
        for (int e = 0; e < WIDE; e++) {
            Magnitude size = magnitude((Amax)values[e]);
            of_columns[e] = size > of_columns[e] ? size : of_columns[e];
        }
        if (BY_ROWS && (K_FAST || TWO)) {
#pragma unroll
            for (int step = (LANES < 32 ? LANES : 32) / 2; step > 0; step /= 2) {
                Magnitude other = __shfl_xor_sync(0xffffffff, of_line, step);
                of_line = other > of_line ? other : of_line;
            }
            if (threadIdx.x % (LANES < 32 ? LANES : 32) == 0)
                atomicMax(&lines[line_of_vector(v)], of_line);
        }
    }
    if (BY_ROWS && K_FAST && !TWO)
        return;
    Magnitude all = 0;
#pragma unroll
    for (int e = 0; e < WIDE; e++) {
        if (BY_ROWS)
            atomicMax(&columns[column_of_thread() + e], of_columns[e]);
        all = of_columns[e] > all ? of_columns[e] : all;
    }
    all = BY_ROWS ? all : largest_of_warp(all);
    if (!BY_ROWS && threadIdx.x % 32 == 0)
        atomicMax(&lines[0], all);
}

// The tile's numbers, a thread each: largest is of y's, and behind it of what is transposed; so is factor, where scales are made.
__device__ inline void settle(const gpi__scaled_params &p, const Tile &tile, const Magnitude *largest, Acc *factor) {
    if (has_number<K_FAST>(tile)) {
        long long at = place_of_thread<K_FAST>(p, tile);
        if (GEMMEPI_SCALE == FROM_TILE || GEMMEPI_SCALE == FROM_AMAX) {
            float scale =
                scale_of_amax<Y>(GEMMEPI_SCALE == FROM_TILE ? largest[threadIdx.x] : ((const Magnitude *)p.amax)[at]);
            factor[threadIdx.x] = 1 / (Acc)scale;
            bool is_first = GEMMEPI_MODE == SCALE_TENSOR ? blockIdx.x == 0 : (K_FAST ? tile.fast : tile.slow) == 0;
            if (GEMMEPI_SCALE == FROM_TILE || is_first)
                p.y_scale[at] = scale;
            if (TURNS && GEMMEPI_MODE == SCALE_BLOCK_128)
                p.turned_scale[place_of_thread<!K_FAST>(p, tile)] = scale;
        }
        if (GEMMEPI_AMAX && !IS_SHARED)
            ((Magnitude *)p.amax)[at] = largest[threadIdx.x];
    }
    if (TWO && has_number<!K_FAST>(tile)) {
        float scale = scale_of_amax<Y>(largest[TILE + threadIdx.x]);
        factor[TILE + threadIdx.x] = 1 / (Acc)scale;
        p.turned_scale[place_of_thread<!K_FAST>(p, tile)] = scale;
    }
}

// Numbers that other tiles have a part in: what memory holds is looked at early, as raise_to does, and raised at the end; nothing waits.
constexpr bool RAISES = GEMMEPI_AMAX && IS_SHARED;
__device__ inline Magnitude known_amax(const gpi__scaled_params &p, const Tile &tile) {
    if (RAISES && has_number<K_FAST>(tile))
        return *((const volatile Magnitude *)p.amax + place_of_thread<K_FAST>(p, tile));
    return 0;
}
__device__ inline void raise_amax(const gpi__scaled_params &p, const Tile &tile, const Magnitude *largest, Magnitude known) {
    if (RAISES && has_number<K_FAST>(tile) && largest[threadIdx.x] > known)
        atomicMax((Magnitude *)p.amax + place_of_thread<K_FAST>(p, tile), largest[threadIdx.x]);
}

template <bool Fast_is_k> __device__ inline Run<Y, WIDE> rounded(const Words<A, WIDE> &words, const Acc *factor, int v) {
    Acc values[WIDE];
    words_to_acc(words, values);
#pragma unroll
    for (int e = 0; e < WIDE; e++)
        if (GEMMEPI_SCALE != AS_IT_IS)
            values[e] *= factor[index_of<Fast_is_k>(column_of_thread() + e, line_of_vector(v))];
    return run_from_acc<Y>(values);
}

// Of a multiprocessor: where a thread finds a tile's numbers along both axes beside F64, or amax, it takes the registers of two.
constexpr int BLOCKS = TWO && (GEMMEPI_AMAX || sizeof(A) == 8) ? 1 : 1024 / THREADS;

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gemmepi_scaled(GEMMEPI_PARAMS gpi__scaled_params p) {
    __shared__ Magnitude largest[TWO ? 2 * TILE : TILE];
    __shared__ Acc factor[TWO ? 2 * TILE : TILE];
    __shared__ Square square;
    // behind the launch that finds amax the last tiles go first: those are in L2 still
    const Tile tile = tile_at(p, GEMMEPI_SCALE == FROM_AMAX ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
    Words<A, WIDE> words[KEEPS_VALUES ? VECTORS : 1];
    if (threadIdx.x < (TWO ? 2 * TILE : TILE)) {
        largest[threadIdx.x] = 0;
        if (GEMMEPI_SCALE == GIVEN && has_number<K_FAST>(tile))
            factor[threadIdx.x] = p.scale[place_of_thread<K_FAST>(p, tile)];
    }
    if (KEEPS_VALUES)
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            words[KEEPS_VALUES ? v : 0] = load_vector(p, tile, v);
    const Magnitude known = known_amax(p, tile);
    auto take = [&](int v) { return KEEPS_VALUES ? words[KEEPS_VALUES ? v : 0] : load_vector(p, tile, v); };
    __syncthreads();
    if (TAKES_AMAX) {
        take_amax(&largest[TWO && !K_FAST ? TILE : 0], &largest[TWO && K_FAST ? TILE : 0], take);
        __syncthreads();
    }
    settle(p, tile, largest, factor); // the rest of largest is 0, and of factor not looked at
    if (!GEMMEPI_STORES) {
        raise_amax(p, tile, largest, known);
        return;
    }
    __syncthreads();
#pragma unroll KEEPS_VALUES ? VECTORS / AT_ONCE : 8 / AT_ONCE
    for (int v = 0; v < VECTORS; v += AT_ONCE) {
        Run<Y, WIDE> runs[AT_ONCE];
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            runs[r] = rounded<K_FAST>(take(v + r), factor, v + r);
            store_vector(p, tile, v + r, runs[r]);
        }
        if (TWO)
#pragma unroll
            for (int r = 0; r < AT_ONCE; r++)
                runs[r] = rounded<!K_FAST>(take(v + r), factor + TILE, v + r);
        keep_turned(square, v, runs);
    }
    if (TURNS) {
        __syncthreads();
        store_turned(p, tile, square);
    }
    raise_amax(p, tile, largest, known);
}
