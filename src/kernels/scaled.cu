// Casts with scales and amax of rows, of 128 steps of k, or of blocks of 128 x 128; and of whole tensors where the scale is
// made from their amax. A block has a tile of 128 x SLOW elements of a matrix: "fast" is the axis along which threads are
// neighbours, "slow" the other. A scale's matrix has rows and k: which of the two axes is k is a define.
#include "scaled.cuh"

#ifndef GEMMEPI_MODE
#define GEMMEPI_MODE     3 // the public mode of scales and amax
#define GEMMEPI_K_FAST   1 // 1: k is the fast axis
#define GEMMEPI_VECTORS  0 // 1: both tensors are dense and aligned along the fast axis
#define GEMMEPI_SCALE    2 // the enum below
#define GEMMEPI_STORES   1 // 0: only amax
#define GEMMEPI_SLOW     64 // 128, or 64 where no number belongs to more than one line along the fast axis
#endif

enum { AS_IT_IS, GIVEN, FROM_TILE, FROM_AMAX }; // the scale: none, p.scale, made here, made of what p.amax holds already

constexpr int TILE = SCALE_STEPS, SLOW = GEMMEPI_SLOW, THREADS = 4 * SLOW;
constexpr int WIDE = GEMMEPI_VECTORS ? VECTOR : 1;
constexpr int LANES = TILE / WIDE, ROWS = THREADS / LANES; // threads along the fast and the slow axis
constexpr int VECTORS = SLOW / ROWS;                       // of a thread
constexpr bool K_FAST = GEMMEPI_K_FAST;
constexpr bool TAKES_AMAX = GEMMEPI_AMAX || GEMMEPI_SCALE == FROM_TILE;
constexpr int WORDS = WIDE * sizeof(A) < 4 ? VECTORS : VECTORS * WIDE * (int)sizeof(A) / 4;
constexpr bool KEEPS_VALUES = WORDS <= 64 && WIDE > 1; // in registers between amax and store; else it reads again

// Of the numbers, scales or amax, that a tile has: one for each row, or one alone.
constexpr bool BY_ROWS = GEMMEPI_MODE == SCALE_OUTER || GEMMEPI_MODE == SCALE_VECTOR_128;
__device__ inline int index_of(int fast, int slow) {
    return BY_ROWS ? K_FAST ? slow : fast : 0;
}

// A number's place among those of all items.
__device__ inline long long place_of(const gemmepi__scaled_params &p, long long item, long long fast, long long slow) {
    long long row = K_FAST ? slow : fast, k = K_FAST ? fast : slow;
    long long rows = p.extent[K_FAST ? 1 : 0], steps = (p.extent[K_FAST ? 0 : 1] + SCALE_STEPS - 1) / SCALE_STEPS;
    if (GEMMEPI_MODE == SCALE_TENSOR)
        return 0;
    if (GEMMEPI_MODE == SCALE_OUTER)
        return item * rows + row;
    if (GEMMEPI_MODE == SCALE_VECTOR_128)
        return (item * steps + k / SCALE_STEPS) * rows + row;
    long long line = (steps + 3) / 4 * 4;
    return (item * ((rows + SCALE_STEPS - 1) / SCALE_STEPS) + row / SCALE_STEPS) * line + k / SCALE_STEPS;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1024 / THREADS) gemmepi_scaled(GEMMEPI_PARAMS gemmepi__scaled_params p) {
    __shared__ Magnitude largest[TILE];
    __shared__ Acc factor[TILE];
    // behind the launch that finds amax the last tiles go first: those are in L2 still
    u32 tile = GEMMEPI_SCALE == FROM_AMAX ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    u32 rest = tile / p.tiles[0], item = rest / p.tiles[1], outer = item;
    long long fast = (long long)(tile - rest * p.tiles[0]) * TILE, slow = (long long)(rest - item * p.tiles[1]) * SLOW;
    int extent_fast = p.extent[0] - fast < TILE ? (int)(p.extent[0] - fast) : TILE;
    int extent_slow = p.extent[1] - slow < SLOW ? (int)(p.extent[1] - slow) : SLOW;
    const A *a = (const A *)p.a + fast * p.stride_a[0] + slow * p.stride_a[1];
    Y *y = (Y *)p.y + fast * p.stride_y[0] + slow * p.stride_y[1];
    for (int d = 2; d < p.rank; d++) {
        u32 extent = (u32)p.extent[d], next = outer / extent, at = outer - next * extent;
        a += at * p.stride_a[d];
        y += at * p.stride_y[d];
        outer = next;
    }
    int numbers = BY_ROWS ? K_FAST ? extent_slow : extent_fast : 1, i = threadIdx.x % LANES * WIDE, j = threadIdx.x / LANES;
    int left = extent_fast - i, valid = left < WIDE ? left : WIDE;
    Words<A, WIDE> words[KEEPS_VALUES ? VECTORS : 1];
    if (threadIdx.x < TILE) {
        largest[threadIdx.x] = 0;
        if (GEMMEPI_SCALE == GIVEN && threadIdx.x < numbers)
            factor[threadIdx.x] = p.scale[place_of(p, item, fast + (K_FAST ? 0 : threadIdx.x), slow + (K_FAST ? threadIdx.x : 0))];
    }
    auto load = [&](int v) -> Words<A, WIDE> {
        int row = j + v * ROWS;
        const A *from = a + row * p.stride_a[1] + i * p.stride_a[0];
        if (row < extent_slow && valid == WIDE)
            return *reinterpret_cast<const Words<A, WIDE> *>(from);
        return words_of(read_elements<WIDE>(from, row < extent_slow ? valid : 0));
    };
    if (KEEPS_VALUES)
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            words[KEEPS_VALUES ? v : 0] = load(v);
    __syncthreads();
    if (TAKES_AMAX) {
        Magnitude columns[WIDE] = {};
#pragma unroll KEEPS_VALUES ? VECTORS : 8
        for (int v = 0; v < VECTORS; v++) {
            Acc values[WIDE];
            Magnitude row = 0;
            words_to_acc(KEEPS_VALUES ? words[KEEPS_VALUES ? v : 0] : load(v), values);
            keep_largest_of<Amax>(values, row);
#pragma unroll
            for (int e = 0; e < WIDE; e++)
{
                Magnitude size = magnitude((Amax)values[e]);
                columns[e] = size > columns[e] ? size : columns[e];
            }
            if (BY_ROWS && K_FAST) {
#pragma unroll
                for (int step = (LANES < 32 ? LANES : 32) / 2; step > 0; step /= 2) {
                    Magnitude other = __shfl_xor_sync(0xffffffff, row, step);
                    row = other > row ? other : row;
                }
                if (threadIdx.x % (LANES < 32 ? LANES : 32) == 0)
                    atomicMax(&largest[j + v * ROWS], row);
            }
        }
        if (!(BY_ROWS && K_FAST)) {
            Magnitude all = 0;
#pragma unroll
            for (int e = 0; e < WIDE; e++) {
                if (BY_ROWS)
                    atomicMax(&largest[i + e], columns[e]);
                all = columns[e] > all ? columns[e] : all;
            }
            all = BY_ROWS ? all : largest_of_warp(all);
            if (!BY_ROWS && threadIdx.x % 32 == 0)
                atomicMax(&largest[0], all);
        }
        __syncthreads();
    }
    if (threadIdx.x < numbers) { // the rest of largest is 0, and of factor not looked at
        long long at = place_of(p, item, fast + (K_FAST ? 0 : threadIdx.x), slow + (K_FAST ? threadIdx.x : 0));
        if (GEMMEPI_SCALE == FROM_TILE || GEMMEPI_SCALE == FROM_AMAX) {
            float scale = scale_from(GEMMEPI_SCALE == FROM_TILE ? largest[threadIdx.x] : ((const Magnitude *)p.amax)[at]);
            factor[threadIdx.x] = 1 / (Acc)scale;
            if (GEMMEPI_SCALE == FROM_TILE || (GEMMEPI_MODE == SCALE_TENSOR ? blockIdx.x == 0 : (K_FAST ? fast : slow) == 0))
                p.y_scale[at] = scale;
        }
        if (GEMMEPI_AMAX && (GEMMEPI_MODE == SCALE_TENSOR || GEMMEPI_MODE == SCALE_OUTER))
            raise_to((Magnitude *)p.amax + at, largest[threadIdx.x]);
        else if (GEMMEPI_AMAX)
            ((Magnitude *)p.amax)[at] = largest[threadIdx.x];
    }
    if (!GEMMEPI_STORES)
        return;
    __syncthreads();
#pragma unroll KEEPS_VALUES ? VECTORS : 8
    for (int v = 0; v < VECTORS; v++) {
        Acc values[WIDE];
        int row = j + v * ROWS;
        words_to_acc(KEEPS_VALUES ? words[KEEPS_VALUES ? v : 0] : load(v), values);
#pragma unroll
        for (int e = 0; e < WIDE; e++) {
            if (GEMMEPI_SCALE != AS_IT_IS)
                values[e] *= factor[index_of(i + e, row)];
        }
        Run<Y, WIDE> run = run_from_acc<Y>(values);
        Y *to = y + row * p.stride_y[1] + i * p.stride_y[0];
        if (row < extent_slow && valid == WIDE)
            *reinterpret_cast<Words<Y, WIDE> *>(to) = words_of(run);
        else if (row < extent_slow)
#pragma unroll
            for (int e = 0; e < WIDE; e++)
                if (e < valid)
                    to[e] = run.at[e];
    }
}
