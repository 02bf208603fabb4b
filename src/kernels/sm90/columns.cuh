// What is the same for all rows of a tile: the bias of its columns.
#pragma once
#include "sm90/schedule.cuh"

template <int Groups>
__device__ inline void load_groups(const gpi__sm90_params &p, const Tile &tile, int first_group,
                                   Of_columns (&columns)[Groups]) {
#pragma unroll
    for (int i = 0; i < Groups; i++) {
        long long column = tile.n * TILE_COLUMNS + column_of_lane() + (first_group + i) * GROUP;
        columns[i] = load_columns(p.epilogue, tile.item, column, columns_left(p, tile, first_group + i));
    }
}
