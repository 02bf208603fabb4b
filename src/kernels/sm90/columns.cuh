// What is the same for all rows of a tile: the bias of its columns.
#pragma once
#include "sm90/schedule.cuh"
#include "sm90/wgmma.cuh"

template <int Groups>
__device__ inline void load_groups(const gemmepi__sm90_params &p, const Tile &tile, int first_group,
                                   Of_columns (&columns)[Groups]) {
#pragma unroll
    for (int i = 0; i < Groups; i++) {
        long long column = tile.n * TILE_COLUMNS + lane_of_row() * 2 + (first_group + i) * GROUP;
        columns[i] = load_columns(p.epilogue, tile.item, column, columns_left(p, tile, first_group + i));
    }
}

// Sums begin with the bias of a tile's columns where BIAS_FIRST.
__device__ inline void begin_sums(const Of_columns (&bias)[GROUPS], float (&sums)[STRIPS][TILE_N / 2]) {
    if constexpr (!BIAS_FIRST) {
        begin_sums(sums);
    } else {
#pragma unroll
        for (int i = 0; i < HALVES_IN * GROUPS; i++) {
            int half = i / GROUPS, group = i % GROUPS;
            Acc values[RUN];
            to_accs(bias[group].bias[half], values);
            // F32 that is loaded element by element would be loaded into sums while wgmma is under way: ptxas serialises it (C7515)
#pragma unroll
            for (int j = 0; j < (sizeof(GEMMEPI_BIAS_TYPE) == 4 && !ALIGNED ? RUN : 0); j++)
                asm volatile("add.f32 %0, %0, 0f80000000;" : "+f"(values[j])); // -0
#pragma unroll
            for (int j = 0; j < STRIPS * 2 * RUN; j++) // of each strip's two rows of a lane
                sums[j / (2 * RUN)][first_sum(half, group) + j % (2 * RUN)] =
                    values[j % (2 * RUN) / 4 * 2 + j % 2];
        }
    }
}
