// A block's last tile: sums and column sums that wait in shared memory, where the stages were, for the other warpgroup.
//
// Behind the last tile nothing is multiplied. The warpgroup that multiplies it leaves the first strip's sums to the other one, which
// has nothing else to do, and keeps the second's.
#pragma once
#include "sm90/box.cuh"

// >>sums

constexpr u32 PART_BYTES = 64 * TILE_N * 4; // of 64 rows
constexpr u32 FOURS = WARPGROUP * 16;       // bytes of four sums of each thread, which lie side by side
constexpr u32 PARKED_STAGES = (PART_BYTES + STAGE_BYTES - 1) / STAGE_BYTES;
static_assert(!SHARES_LAST || (PARKED_STAGES <= 2 && STAGE_BYTES % FOURS == 0), "the stages have room");

// Where they lie: from `first` on and, beyond the bytes of a stage, from `rest` on, in the order of the registers.
struct Parked {
    u32 first, rest;

    __device__ inline u32 at(u32 four, u32 thread) const {
        u32 offset = four * FOURS;
        return (offset < STAGE_BYTES ? first + offset : rest + (offset - STAGE_BYTES)) + thread * 16;
    }
};
// From a stage on; `stages` is the first's address
__device__ inline Parked parked_in(u32 stages, u32 stage) {
    return {stages + stage * STAGE_BYTES, stages + (stage + 1 == STAGES ? 0 : stage + 1) * STAGE_BYTES};
}

__device__ inline void park(const Parked &parked, u32 thread, const float (&sums)[TILE_N / 2]) {
#pragma unroll
    for (int i = 0; i < TILE_N / 8; i++)
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(parked.at(i, thread)), "f"(sums[i * 4]),
                     "f"(sums[i * 4 + 1]), "f"(sums[i * 4 + 2]), "f"(sums[i * 4 + 3])
                     : "memory");
}
__device__ inline void read_parked(const Parked &parked, u32 thread, float (&sums)[TILE_N / 2]) {
#pragma unroll
    for (int i = 0; i < TILE_N / 2; i += 4)
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(sums[i]), "=f"(sums[i + 1]), "=f"(sums[i + 2]), "=f"(sums[i + 3])
                     : "r"(parked.at(i / 4, thread))
                     : "memory");
}

// >>column sums

// BGRAD: each warp leaves the sums of its strip of the tile's rows, those of a box's columns where the box's first four sums were, the
// second strip in the next stage.
static_assert(!HAS_BGRAD || !SHARES_LAST || (PARKED_STAGES == 1 && HALVES_OUT * BOX_COLUMNS * 4 <= FOURS / 4),
              "a warp's four are as much");
struct Parked_columns {
    u32 of_first, of_second; // strips

    __device__ inline u32 at(u32 strip, u32 thread, int group, int half) const { // of a lane, of 32 columns
        return (strip ? of_second : of_first) + group / BOX_GROUPS * BOX_GROUPS * 4 * FOURS + thread / 32 * (FOURS / 4) +
               ((half * BOX_GROUPS + group % BOX_GROUPS) * 32 + thread % 32) * 4;
    }
    __device__ inline void park(u32 strip, u32 thread, int group, const Box_sums &sums) const {
#pragma unroll
        for (int i = 0; i < BOX_GROUPS * HALVES_OUT; i++)
            asm volatile("st.shared.f32 [%0], %1;" ::"r"(at(strip, thread, group + i / HALVES_OUT, i % HALVES_OUT)),
                         "f"(sums[i / HALVES_OUT].sum(i % HALVES_OUT))
                         : "memory");
    }
    // of all warps and both strips
    __device__ inline Acc sum(u32 lane, int group, int half) const {
        Acc of[4];
#pragma unroll
        for (u32 warp = 0; warp < 4; warp++) {
            Acc first, second;
            asm volatile("ld.shared.f32 %0, [%1];" : "=f"(first) : "r"(at(0, warp * 32 + lane, group, half)) : "memory");
            asm volatile("ld.shared.f32 %0, [%1];" : "=f"(second) : "r"(at(1, warp * 32 + lane, group, half)) : "memory");
            of[warp] = first + second;
        }
        return sum_of_warps(of[0], of[1], of[2], of[3]);
    }
};
__device__ inline Parked_columns columns_parked_in(u32 stages, u32 stage) {
    return {parked_in(stages, stage).first, parked_in(stages, stage).rest};
}
// Both warpgroups: the tile's line.
__device__ inline void store_parked_columns(const gemmepi__sm90_params &p, const Tile &tile, const Parked_columns &parked) {
    if (tile.m * TILE_M >= (int)p.epilogue.m) // of a cluster that reaches beyond m
        return;
    for (int warp = (int)threadIdx.x / 32 - 4; warp < HALVES_OUT * GROUPS; warp += CONSUMERS * 4) {
        int half = warp / GROUPS, group = warp % GROUPS;
        int column = tile.n * TILE_COLUMNS + group * GROUP + Column_sums<false>::column();
        if (column < (int)p.epilogue.n)
            line_of_sums(p, tile, 0, half)[column] = parked.sum(threadIdx.x % 32, group, half);
    }
}
