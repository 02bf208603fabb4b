// Sums of columns over a warpgroup's rows of a tile, into one line for these in memory.
//
// Warps leave theirs in a slot, a unit of columns at a time; a warp that has nothing to load adds up those of four and stores them.
#pragma once
#include "sm90/barriers.cuh"
#include "sm90/schedule.cuh"

// Of a box. Few registers are left by an exact activation, by alpha and C beside all of a box's aux, where a gate is computed
// anew, by a formula, and where the warpgroups share a tile.
typedef Column_sums<(GEMMEPI_FORMULA_ROLLS || GEMMEPI_EXACT || !PING_PONG || (GATED ? UPSTREAM && GEMMEPI_UNIT_ALPHA : !GEMMEPI_UNIT_ALPHA))> Box_sums[BOX_GROUPS];

// A warp's sums of a tile's columns from `first_group` on, a box, once there is room for them.
__device__ inline void leave_column_sums(const Shared &shared, u32 warpgroup, u32 thread, int first_group, const Box_sums &sums) {
#pragma unroll
    for (int g = 0; g < BOX_GROUPS; g++) {
        int unit = (first_group + g) / UNIT_GROUPS, i = (first_group + g) % UNIT_GROUPS;
        if (i == 0)
            barrier_wait(shared.slot_empty(warpgroup), unit % 2 ^ 1);
#pragma unroll
        for (int line = 0; line < COLUMN_LINES; line++)
            asm volatile("st.shared.f32 [%0], %1;" ::"r"(shared.slot(warpgroup, thread, i, line)), "f"(sums[g].sum(line))
                         : "memory");
        if (i + 1 == UNIT_GROUPS) {
            __syncwarp();
            if (thread % 32 == 0)
                barrier_arrive_here(shared.slot_full(warpgroup));
        }
    }
}

// Those of a unit of columns; `exists`: the warpgroup's rows, else they are of a tile or a cluster that reaches beyond m. Where both share a
// tile each has rows of its own in memory.
__device__ inline void add_slot(const gpi__sm90_params &p, const Shared &shared, u32 warpgroup, const Tile &tile, int unit,
                                bool exists) {
    u32 nth = PING_PONG ? (u32)tile.m : (u32)tile.m * CONSUMERS + warpgroup;
    long long rows = (long long)tile.item * p.epilogue.row_tiles + nth;
#pragma unroll
    for (int i = 0; i < UNIT_GROUPS; i++) {
        Acc sums[Column_sums<true>::LINES];
#pragma unroll
        for (int line = 0; line < COLUMN_LINES; line++) {
            Acc of_warps[4];
#pragma unroll
            for (int warp = 0; warp < 4; warp++)
                asm volatile("ld.shared.f32 %0, [%1];"
                             : "=f"(of_warps[warp])
                             : "r"(shared.slot(warpgroup, warp * 32 + threadIdx.x % 32, i, line))
                             : "memory");
            sums[line] = join_in_line(line, join_in_line(line, of_warps[0], of_warps[1]), join_in_line(line, of_warps[2], of_warps[3]));
        }
        if (exists)
            store_sums_of_lanes(p.epilogue, PLACES_OF(p), rows, tile.n * TILE_COLUMNS + (unit * UNIT_GROUPS + i) * GROUP, sums);
    }
}

// Two warps, one for each warpgroup: of all of its tiles.
__device__ inline void add_column_sums(const gpi__sm90_params &p, const Shared &shared, const Work &work) {
    u32 warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 32 - 1, 0);
#pragma unroll 1
    for (u32 t = work.first + (PING_PONG ? warpgroup * work.step : 0); t < p.tiles; t += TURNS * work.step) {
        Tile tile = tile_of(p, t, work.rank);
        bool exists = tile.m * TILE_M + (PING_PONG ? 0 : (int)warpgroup * STRIPS * 64) < (int)p.epilogue.m;
#pragma unroll 1
        for (int unit = 0; unit < GROUPS / UNIT_GROUPS; unit++) {
            barrier_wait(shared.slot_full(warpgroup), unit % 2);
            add_slot(p, shared, warpgroup, tile, unit, exists);
            __syncwarp(); // all lanes have read them
            if (threadIdx.x % 32 == 0)
                barrier_arrive_here(shared.slot_empty(warpgroup));
        }
    }
}
