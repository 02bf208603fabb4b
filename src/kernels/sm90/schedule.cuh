// Which tiles a block takes, and which part of k.
#pragma once
#include "sm90/options.cuh"

struct Tile {
    int m, n; // in tiles
    u32 item;
#if GEMMEPI_GROUPED
    int first, end; // of the item's group: rows, or steps of k
#endif
};

// >>grouped products: tiles are parts of groups, times columns; or a group is an item, with its own part of k

#if GEMMEPI_GROUPED == 1
__device__ inline int first_row(const Tile &tile) {
    return tile.first;
}
__device__ inline int end_of_rows(const gemmepi__sm90_params &p, const Tile &tile) {
    return tile.end;
}
__device__ inline u32 count_tiles(const gemmepi__sm90_params &p) {
    return (u32)*p.groups.count * p.cluster_columns;
}
#else
__device__ inline int first_row(const Tile &tile) {
    return tile.m * TILE_M;
}
__device__ inline int end_of_rows(const gemmepi__sm90_params &p, const Tile &tile) {
    return (int)p.epilogue.m;
}
__device__ inline u32 count_tiles(const gemmepi__sm90_params &p) {
#if GEMMEPI_GROUPED == 2
    return *p.groups.count ? p.tiles : 0;
#else
    return p.tiles;
#endif
}
#endif

// >>which tile

// A block's: every `step`-th tile of its cluster from the first on, of which it takes the one of its rank.
struct Work {
    u32 rank, first, step;
};

// The first tile of this block's cluster: read where it is needed, as to keep it takes a register of the loading warp's few.
__device__ inline u32 first_tile() {
    u32 block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block / CLUSTER;
}

// The block's tile of its cluster's t-th: columns of tiles within bands of rows, so that what is under way at a time reads few rows
// of A and few columns of B.
__device__ inline Tile tile_of(const gemmepi__sm90_params &p, u32 t, u32 rank) {
#if GEMMEPI_GROUPED == 1 // bands are of one group, whose B its rows share
    const gemmepi__group_part any = p.groups.parts[t / p.cluster_columns];
    u32 rows = (u32)any.parts, rest = t - (u32)any.first_part * p.cluster_columns;
#else
    u32 rows = p.cluster_rows, of_item = rows * p.cluster_columns, item = t / of_item, rest = t - item * of_item;
#endif
    u32 of_band = p.band * p.cluster_columns, band = rest / of_band, first = band * p.band;
    u32 height = rows - first < p.band ? rows - first : p.band, within = rest - band * of_band;
    u32 column = within / height, row = first + within - column * height;
    u32 place = PARTS > 1 ? 0 : rank;
#if GEMMEPI_GROUPED == 2
    const gemmepi__group_part of_k = p.groups.parts[item];
    return {(int)(row * CLUSTER_M + place % CLUSTER_M), (int)(column * CLUSTER_N + place / CLUSTER_M), item, of_k.first, of_k.end};
#elif GEMMEPI_GROUPED == 1
    static_assert(CLUSTER_M == 1 && PARTS == 1, "a cluster's tiles have the same rows");
    const gemmepi__group_part part = p.groups.parts[any.first_part + row];
    return {(int)row, (int)(column * CLUSTER_N + place), (u32)part.group, part.first, part.end};
#else
    return {(int)(row * CLUSTER_M + place % CLUSTER_M), (int)(column * CLUSTER_N + place / CLUSTER_M), item};
#endif
}

// This block's.
__device__ inline Tile nth_tile(const gemmepi__sm90_params &p, const Work &work, u32 nth) {
    return tile_of(p, work.first + nth * work.step, work.rank);
}

// Groups of rows: what tile_of() reads of a later tile is fetched while this one's sums are made.
__device__ inline void look_ahead(const gemmepi__sm90_params &p, u32 t, u32 tiles) {
#if GEMMEPI_GROUPED == 1
    if (t < tiles)
        asm volatile("prefetch.global.L1 [%0];" ::"l"(p.groups.parts + t / p.cluster_columns));
#endif
}

// The blocks of TILE_K that this block adds up: of k in PARTS a part.
__device__ inline int begin_of_k(const gemmepi__sm90_params &p, u32 part) {
    return PARTS > 1 ? (int)((u32)((p.k + TILE_K - 1) / TILE_K) * part / PARTS) : 0;
}
__device__ inline int end_of_k(const gemmepi__sm90_params &p, u32 part) {
    return PARTS > 1 ? begin_of_k(p, part + 1) : (p.k + TILE_K - 1) / TILE_K;
}
__device__ inline int blocks_of_k(const gemmepi__sm90_params &p, u32 part) {
    return end_of_k(p, part) - begin_of_k(p, part);
}

// Those of a tile, and its first step of k. Of an empty group one of zeros, as there is one at least.
#if GEMMEPI_GROUPED == 2
static_assert(!PING_PONG && PARTS == 1, "warpgroups go through the stages of their own tiles alone");
__device__ inline int blocks_of_tile(const gemmepi__sm90_params &p, const Tile &tile, u32 rank) {
    return tile.end > tile.first ? (tile.end - tile.first + TILE_K - 1) / TILE_K : 1;
}
__device__ inline int first_k(const Tile &tile) {
    return tile.end > tile.first ? tile.first : tile.end > 0 ? tile.end : 1;
}
#else
__device__ inline int blocks_of_tile(const gemmepi__sm90_params &p, const Tile &tile, u32 rank) {
    return blocks_of_k(p, rank);
}
__device__ inline int first_k(const Tile &tile) {
    return 0;
}
#endif

// The column of op(B) that is line `line` of the tile.
__device__ inline int column_of(const gemmepi__sm90_params &p, const Tile &tile, int line) {
    int half = SPANS == 2 && line >= SPAN;
    if (IN_GROUPS)
        return (int)column_of_half<SPANS>(p.epilogue, tile.n * SPAN + line - half * SPAN, half);
    return tile.n * SPAN + line - half * SPAN + half * (int)p.epilogue.n;
}
// Columns of a span from the tile's first to the end, which may lie before that.
__device__ inline int span_left(const gemmepi__sm90_params &p, const Tile &tile) {
    return (int)p.epilogue.n * (HALVES_IN / SPANS) - tile.n * SPAN;
}
// The first of this lane's sums of a half's 32 columns.
__device__ constexpr int first_sum(int half, int group) {
    return SIDE_BY_SIDE ? (group * 2 + half) * GROUP / 2 : (half * TILE_COLUMNS + group * GROUP) / 2;
}
// Columns from the first of this lane's group-th run to the end, which may lie far behind the tile.
__device__ inline int columns_left(const gemmepi__sm90_params &p, const Tile &tile, int group) {
    return (int)p.epilogue.n - tile.n * TILE_COLUMNS - lane_of_row() * 2 - group * GROUP;
}
