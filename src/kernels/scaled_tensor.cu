// Casts of whole tensors whose scale is made of their amax, in one launch: blocks that run at once find the amax of their tiles, meet, and
// store what they have read, the last tiles first: those are in registers or in L2 still. Where a GPU cannot run them at once the same
// kernel is launched twice. Both tensors are dense and aligned along the fast axis, in vectors without a rest.
#define GEMMEPI_WHOLE 1
#ifndef GEMMEPI_ITEMS
#define GEMMEPI_SLOW    128
#define GEMMEPI_VECTORS 1
#define GEMMEPI_TURNS   0
#define GEMMEPI_ITEMS   1
#define GEMMEPI_FLAT    0
#endif
#include "scaled_tile.cuh"

constexpr int KEPT = WORDS > 32 ? 1 : WORDS > 16 ? 2 : 4; // tiles of a round: in registers while it lasts

enum { ALL_AT_ONCE, FINDS_AMAX, STORES }; // p.phase

// The number of a tile of this block, as it comes to it.
__device__ inline u32 tile_of_round(u32 round, int i) {
    return blockIdx.x + gridDim.x * (round * KEPT + i);
}
__device__ inline u32 rounds_of_block(const gemmepi__scaled_params &p) {
    u32 step = gridDim.x * KEPT;
    return (p.tile_count - blockIdx.x + step - 1) / step;
}

__device__ inline void load_round(const gemmepi__scaled_params &p, u32 round, Words<A, WIDE> (&words)[KEPT][VECTORS]) {
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

__device__ inline void store_round(const gemmepi__scaled_params &p, u32 round, const Words<A, WIDE> (&words)[KEPT][VECTORS],
                                   Acc factor) {
    __shared__ Square squares[2]; // by turns: while one is stored the next is filled
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
            keep_turned(squares[i % 2], v, runs);
        }
        if (TURNS) {
            __syncthreads();
            store_turned(p, tile, squares[i % 2]);
        }
    }
    if (TURNS)
        __syncthreads(); // the next round begins with the first square
}

// Numbers in memory that blocks share. What a block has written is there before it comes, and what it has read was there before.
__device__ inline u32 come(u32 *arrived) {
    u32 before;
#if __CUDA_ARCH__ >= 700
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"((u64)arrived) : "memory");
#else
    __threadfence();
    before = atomicAdd(arrived, 1);
    __threadfence();
#endif
    return before;
}
__device__ inline u32 look(const u32 *at) {
    u32 number;
#if __CUDA_ARCH__ >= 700
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(number) : "l"((u64)at) : "memory");
#else
    number = *(const volatile u32 *)at;
    __threadfence();
#endif
    return number;
}
__device__ inline void tell(u32 *at, u32 number) {
#if __CUDA_ARCH__ >= 700
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"((u64)at), "r"(number) : "memory");
#else
    __threadfence();
    *(volatile u32 *)at = number;
#endif
}

// The blocks, which all run, meet. arrived: how many have come, 0 before and after, and a number that changes as they meet.
__device__ inline void meet(u32 *arrived) {
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 *meetings = arrived + 1, before = look(meetings);
        if (come(arrived) == gridDim.x - 1) {
            *(volatile u32 *)arrived = 0;
            tell(meetings, before + 1);
        } else {
            while (look(meetings) == before) {
            }
        }
    }
    __syncthreads();
}

// The largest of the block's threads, in each of them.
__device__ inline Magnitude largest_of_block(Magnitude largest) {
    __shared__ Magnitude warps[THREADS / 32];
    __syncthreads();
    largest = largest_of_warp(largest);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = largest;
    __syncthreads();
    return largest_of_warp(warps[threadIdx.x % (THREADS / 32)]);
}
// Of all blocks, which have written theirs.
__device__ inline Magnitude largest_of_grid(const volatile Magnitude *partials) {
    Magnitude largest = 0;
    for (u32 i = threadIdx.x; i < gridDim.x; i += THREADS) {
        Magnitude other = partials[i];
        largest = other > largest ? other : largest;
    }
    return largest_of_block(largest);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemmepi_scaled_tensor(GEMMEPI_PARAMS gemmepi__scaled_params p) {
    Words<A, WIDE> words[KEPT][VECTORS];
    Magnitude *partials = (Magnitude *)p.partials, largest = 0;
    u32 rounds = rounds_of_block(p);
    if (p.phase != STORES) {
        for (u32 round = 0; round < rounds; round++) {
            load_round(p, round, words);
            keep_largest_of_round(words, largest);
        }
        largest = largest_of_block(largest);
        if (threadIdx.x == 0)
            partials[blockIdx.x] = largest;
    }
    if (p.phase == FINDS_AMAX)
        return;
    if (p.phase == ALL_AT_ONCE)
        meet(p.arrived);
    largest = largest_of_grid(partials);
    float scale = scale_of_amax<Y>(largest);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *p.y_scale = scale;
        if (GEMMEPI_AMAX)
            *(Magnitude *)p.amax = largest;
    }
    Acc factor = 1 / (Acc)scale;
    for (u32 round = rounds; round-- > 0;) {
        if (round + 1 < rounds || p.phase == STORES)
            load_round(p, round, words);
        store_round(p, round, words, factor);
    }
}
