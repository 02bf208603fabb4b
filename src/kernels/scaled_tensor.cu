// Casts of whole tensors whose scale is made of their amax, in two launches of one kernel. The first leaves an amax of each block. The second
// may begin before that has ended: it reads its first tiles at once, as they are not written on the way, and waits for the amax alone. It
// takes the tiles in the other direction: those that were read last are in L2 still. Both tensors are dense and aligned along the fast
// axis, in vectors without a rest.
#define GEMMEPI_WHOLE 1
#ifndef GEMMEPI_ITEMS
#define GEMMEPI_SLOW    64
#define GEMMEPI_VECTORS 1
#define GEMMEPI_TURNS   0
#define GEMMEPI_ITEMS   1
#define GEMMEPI_FLAT    0
#endif
#include "scaled_tile.cuh"

constexpr int KEPT = WORDS > 16 || TURNS ? 1 : 2; // tiles of a round: in registers while it lasts

enum { FINDS_AMAX, STORES }; // p.phase

// The number of a tile of this block, as it comes to it.
__device__ inline u32 tile_of_round(u32 round, int i) {
    return blockIdx.x + gridDim.x * (round * KEPT + i);
}
__device__ inline u32 rounds_of_block(const gpi__scaled_params &p) {
    u32 step = gridDim.x * KEPT;
    return (p.tile_count - blockIdx.x + step - 1) / step;
}

__device__ inline void load_round(const gpi__scaled_params &p, u32 round, Words<A, WIDE> (&words)[KEPT][VECTORS]) {
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        u32 number = tile_of_round(round, i);
        Tile tile = tile_at(p, number < p.tile_count ? number : 0);
        if (number >= p.tile_count)
            tile.extent_slow = 0; // nothing of it is read
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            words[i][v] = load_vector(p, tile, v);
    }
}

__device__ inline void keep_largest_of_round(const Words<A, WIDE> (&words)[KEPT][VECTORS], Magnitude &largest) {
#pragma unroll
    for (int i = 0; i < KEPT; i++)
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            Acc values[WIDE];
            words_to_acc(words[i][v], values);
            keep_largest_of<Amax>(values, largest);
        }
}

__device__ inline void store_round(const gpi__scaled_params &p, u32 round, const Words<A, WIDE> (&words)[KEPT][VECTORS],
                                   Acc factor) {
    __shared__ Square squares[KEPT];
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        u32 number = tile_of_round(round, i);
        if (number >= p.tile_count)
            break;
        const Tile tile = tile_at(p, number);
#pragma unroll
        for (int v = 0; v < VECTORS; v += AT_ONCE) {
            Run<Y, WIDE> runs[AT_ONCE];
#pragma unroll
            for (int r = 0; r < AT_ONCE; r++) {
                Acc values[WIDE];
                words_to_acc(words[i][v + r], values);
#pragma unroll
                for (int e = 0; e < WIDE; e++)
                    values[e] *= factor;
                runs[r] = run_from_acc<Y>(values);
                store_vector(p, tile, v + r, runs[r]);
            }
            keep_turned(squares[i], v, runs);
        }
        if (TURNS) {
            __syncthreads();
            store_turned(p, tile, squares[i]);
        }
    }
    if (TURNS)
        __syncthreads(); // the next round begins with the first square
}

// The largest of the block's threads, in each of them.
__device__ inline Magnitude largest_of_block(Magnitude largest) {
    __shared__ Magnitude warps[THREADS / 32];
    largest = largest_of_warp(largest);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = largest;
    __syncthreads();
    return largest_of_warp(warps[threadIdx.x % (THREADS / 32)]);
}
// Of all blocks of the launch before, which are as many.
__device__ inline Magnitude largest_of_grid(const Magnitude *partials) {
    Magnitude largest = 0;
    for (u32 i = threadIdx.x; i < gridDim.x; i += THREADS) {
        Magnitude other = *(const volatile Magnitude *)(partials + i);
        largest = other > largest ? other : largest;
    }
    return largest_of_block(largest);
}

// Of a multiprocessor: beside 32 words the axes of items, or conversions without instructions for them, take the registers of two.
constexpr int BLOCKS = TURNS && WORDS > 16 && (GEMMEPI_ITEMS || !GEMMEPI_FP8_INSTRUCTIONS) ? 1 : 1024 / THREADS;

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gemmepi_scaled_tensor(GEMMEPI_PARAMS gpi__scaled_params p) {
    Words<A, WIDE> words[KEPT][VECTORS];
    Magnitude *partials = (Magnitude *)p.partials, largest = 0;
    u32 rounds = rounds_of_block(p);
    if (p.phase == FINDS_AMAX) {
        after_launches_before();
        for (u32 round = 0; round < rounds; round++) {
            load_round(p, round, words);
            keep_largest_of_round(words, largest);
        }
        largest = largest_of_block(largest);
        if (threadIdx.x == 0)
            partials[blockIdx.x] = largest;
        return;
    }
    u32 round = rounds - 1;
    load_round(p, round, words); // a was there before the first launch
    after_launches_before();
    largest = largest_of_grid(partials);
    float scale = scale_of_amax<Y>(largest);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *p.y_scale = scale;
        if (GEMMEPI_AMAX)
            *(Magnitude *)p.amax = largest;
    }
    Acc factor = 1 / (Acc)scale;
    for (;;) {
        store_round(p, round, words, factor);
        if (round-- == 0)
            return;
        load_round(p, round, words);
    }
}
