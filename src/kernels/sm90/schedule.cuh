// Which tiles a block takes, and which part of k.
#pragma once
#include "sm90/options.cuh"

struct Tile {
    int m, n; // in tiles; of groups of rows m is whether the cluster's blocks lie side by side
    u32 item;
#if GEMMEPI_GROUPED
    int first, end; // of the item's group: rows, or steps of k
#endif
};

// >>grouped products: tiles are listed, each a part of a group and a column; or a group is an item, with its own part of k

#if GEMMEPI_GROUPED == 1
__device__ inline int first_row(const Tile &tile) {
    return tile.first;
}
__device__ inline int end_of_rows(const gpi__sm90_params &p, const Tile &tile) {
    return tile.end;
}
__device__ inline u32 count_tiles(const gpi__sm90_params &p) {
    return (u32)*p.groups.count;
}
#else
__device__ inline int first_row(const Tile &tile) {
    return tile.m * TILE_M;
}
__device__ inline int end_of_rows(const gpi__sm90_params &p, const Tile &tile) {
    return (int)p.epilogue.m;
}
__device__ inline u32 count_tiles(const gpi__sm90_params &p) {
#if GEMMEPI_GROUPED == 2
    return *p.groups.count ? p.tiles : 0;
#else
    return p.tiles;
#endif
}
#endif

// The row of D, and of what has its rows, that a position has, if it exists.
__device__ inline int row_in_memory(const gpi__sm90_params &p, int position, bool exists) {
#if GEMMEPI_SCATTERED
    return exists ? (int)row_of_d(p.groups, position) : 0;
#else
    return position;
#endif
}

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

// Of a cluster's t-th tile: columns of tiles within bands of rows, so that what is under way at a time reads few rows of A and few
// columns of B.
struct Tile_place {
    u32 item, row, column;
};
__device__ inline Tile_place place_of_tile(const gpi__sm90_params &p, u32 t) {
    u32 rows = p.cluster_rows, of_item = rows * p.cluster_columns, item = t / of_item, rest = t - item * of_item;
    u32 of_band = p.band * p.cluster_columns, band = rest / of_band, first = band * p.band;
    u32 height = rows - first < p.band ? rows - first : p.band, within = rest - band * of_band;
    u32 column = within / height, row = first + within - column * height;
    return {item, row, column};
}

// The block's tile of them.
#if GEMMEPI_GROUPED == 1
// As groups.cu lists them. Where a group's last rows are those of one tile, the blocks of a cluster that else lie one above the other take
// them side by side.
constexpr bool MAY_LIE_BESIDE = CLUSTER_M > 1;
static_assert(PARTS == 1 && (CLUSTER_M == 1 || (CLUSTER_M == 2 && CLUSTER_N == 1)), "two columns have one tile's rows");
__device__ inline Tile tile_of(const gpi__sm90_params &p, u32 t, u32 rank) {
    const gpi__group_part part = p.groups.parts[t];
    bool beside = MAY_LIE_BESIDE && part.end - part.first <= TILE_M;
    int row = (int)rank % CLUSTER_M, column = part.column * CLUSTER_N + (int)rank / CLUSTER_M;
    return {beside, column + (beside ? row : 0), (u32)part.group, part.first + (beside ? 0 : row * TILE_M), part.end};
}
#else
constexpr bool MAY_LIE_BESIDE = false;
__device__ inline Tile tile_of(const gpi__sm90_params &p, u32 t, u32 rank) {
    Tile_place at = place_of_tile(p, t);
    u32 place = PARTS > 1 ? 0 : rank;
    int row = (int)(at.row * CLUSTER_M + place % CLUSTER_M), column = (int)(at.column * CLUSTER_N + place / CLUSTER_M);
#if GEMMEPI_GROUPED
    static_assert(PARTS == 1, "a group's k is one");
    const gpi__group_part part = p.groups.parts[at.item];
    return {row, column, (u32)part.group, part.first, part.end};
#else
    return {row, column, at.item};
#endif
}
#endif

// This block's.
__device__ inline Tile nth_tile(const gpi__sm90_params &p, const Work &work, u32 nth) {
    return tile_of(p, work.first + nth * work.step, work.rank);
}

// Groups of rows: what tile_of() reads of a later tile is fetched while this one's sums are made.
__device__ inline void look_ahead(const gpi__sm90_params &p, u32 t, u32 tiles) {
#if GEMMEPI_GROUPED == 1
    if (t < tiles)
        asm volatile("prefetch.global.L1 [%0];" ::"l"(p.groups.parts + t));
#endif
}

// The blocks of TILE_K that this block adds up: of k in PARTS a part.
__device__ inline int begin_of_k(const gpi__sm90_params &p, u32 part) {
    return PARTS > 1 ? (int)((u32)((p.k + TILE_K - 1) / TILE_K) * part / PARTS) : 0;
}
__device__ inline int end_of_k(const gpi__sm90_params &p, u32 part) {
    return PARTS > 1 ? begin_of_k(p, part + 1) : (p.k + TILE_K - 1) / TILE_K;
}
__device__ inline int blocks_of_k(const gpi__sm90_params &p, u32 part) {
    return end_of_k(p, part) - begin_of_k(p, part);
}

// Those of a tile, and its first step of k. Of an empty group one of zeros, as there is one at least.
#if GEMMEPI_GROUPED == 2
static_assert(!PING_PONG && PARTS == 1, "warpgroups go through the stages of their own tiles alone");
__device__ inline int blocks_of_tile(const gpi__sm90_params &p, const Tile &tile, u32 rank) {
    return tile.end > tile.first ? (tile.end - tile.first + TILE_K - 1) / TILE_K : 1;
}
__device__ inline int first_k(const Tile &tile) {
    return tile.end > tile.first ? tile.first : tile.end > 0 ? tile.end : 1;
}
#else
__device__ inline int blocks_of_tile(const gpi__sm90_params &p, const Tile &tile, u32 rank) {
    return blocks_of_k(p, rank);
}
__device__ inline int first_k(const Tile &tile) {
    return 0;
}
#endif

// The column of op(B) that is line `line` of the tile.
__device__ inline int column_of(const gpi__sm90_params &p, const Tile &tile, int line) {
    int half = SPANS == 2 && line >= SPAN;
    if (IN_GROUPS)
        return (int)column_of_half<SPANS>(p.epilogue, tile.n * SPAN + line - half * SPAN, half);
    return tile.n * SPAN + line - half * SPAN + half * (int)p.epilogue.n;
}
// Columns of a span from the tile's first to the end, which may lie before that.
__device__ inline int span_left(const gpi__sm90_params &p, const Tile &tile) {
    return (int)p.epilogue.n * (HALVES_IN / SPANS) - tile.n * SPAN;
}
// The first of this lane's sums of a half's 32 columns.
__device__ constexpr int first_sum(int half, int group) {
    return SIDE_BY_SIDE ? (group * 2 + half) * GROUP / 2 : (half * TILE_COLUMNS + group * GROUP) / 2;
}
// Columns from the first of this lane's group-th run to the end, which may lie far behind the tile.
__device__ inline int columns_left(const gpi__sm90_params &p, const Tile &tile, int group) {
    return (int)p.epilogue.n - tile.n * TILE_COLUMNS - column_of_lane() - group * GROUP;
}
