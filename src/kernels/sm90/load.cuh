// The loader: one thread has TMA bring tiles of A and B into the stages.
#pragma once
#include "sm90/pipeline.cuh"
#include "sm90/schedule.cuh"

// >>what lies beyond m and n

// Lines of a matrix beyond its end are slow to ask TMA for. So boxes that reach beyond m or n are of a map of their own, with as many
// lines as there are, and those that begin there are not loaded. Where a box's 64 elements along m or n lie side by side it is whole.
// Of a group's last rows A's boxes are whole, with rows of the next group.
constexpr bool TAILS = GEMMEPI_TAILS;
constexpr int A_LINES = TILE_M / CLUSTER_N, B_LINES = TILE_N / CLUSTER_M; // of this block's share, of B where B_ROWS
constexpr int B_MOST = B_LINES > SPAN ? SPAN : B_LINES, B_BOX = IN_GROUPS && SPANS > 1 && HALF_GROUP % B_MOST ? 64 : B_MOST;

// Bytes of a tile's lines, of which `left` are not beyond the end.
template <bool Rows> __device__ inline u32 tail_bytes(int left, int lines) {
    int there = left < 0 ? 0 : left < lines ? left : lines;
    return (u32)(Rows ? there : (there + 63) / 64 * 64) * LINE;
}
__device__ inline u32 stage_bytes(const gpi__sm90_params &p, const Tile &tile) {
    u32 a = TAILS && !GROUPED_ROWS ? tail_bytes<A_ROWS>((int)p.epilogue.m - tile.m * TILE_M, TILE_M) : A_BYTES;
    u32 b = TAILS ? SPANS * tail_bytes<B_ROWS>(span_left(p, tile), SPAN) : B_BYTES;
    return a + b;
}

// >>this block's share

// Which of the cluster's blocks, of the same rows and of the same columns, get what this one loads.
struct Sharers {
    u32 row, column; // of this block in its cluster
    u16 of_a, of_b;  // bits: blocks
};
// A stage to load: where this block's tiles go, its barrier, and what of the tile exists.
struct Step {
    int block, k;
    int rows_left, columns_left; // from this block's share of A, and from the first column of the tile's spans on
    u32 full, a, b;
};

// A box of `Lines` lines, of which `left` are not beyond the end.
template <int Lines, bool Multicast>
__device__ inline void load_lines(const gpi__tensor_map &map, const gpi__tensor_map &tail, int left, u32 to, u32 barrier,
                                  int x, int y, int item, u16 mask) {
    if (!TAILS || left >= Lines)
        load_box<Multicast>(map, to, barrier, x, y, item, mask);
    else if (left > 0)
        load_box<Multicast>(tail, to, barrier, x, y, item, mask);
}

// The maps of a tile's operands, 0 A and 1 B: of a group of k its own.
template <int Operand> __device__ inline const gpi__tensor_map &map_of(const gpi__sm90_params &p, const Tile &tile) {
#if GEMMEPI_GROUPED == 2
    return ((const gpi__tensor_map *)p.groups.maps)[tile.item * 2 + Operand];
#else
    return Operand ? p.b : p.a;
#endif
}
__device__ inline void take_maps(const gpi__sm90_params &p, const Tile &tile) {
#if GEMMEPI_GROUPED == 2
    acquire_map(map_of<0>(p, tile));
    acquire_map(map_of<1>(p, tile));
#endif
}

// m: the first row of this block's share
__device__ inline void load_a(const gpi__sm90_params &p, const Step &step, const Sharers &with, const Tile &tile, int m, int item) {
    const gpi__tensor_map &map = map_of<0>(p, tile);
    if (A_ROWS) {
        load_lines<A_LINES, (CLUSTER_N > 1)>(map, p.a_tail, step.rows_left, step.a, step.full, step.k, m, item, with.of_a);
    } else {
#pragma unroll
        for (int i = 0; i < A_LINES; i += 64)
            if (!TAILS || i < step.rows_left)
                load_box<(CLUSTER_N > 1)>(map, step.a + i * LINE, step.full, m + i, step.k, item, with.of_a);
    }
}

// All columns of a tile that no other block has.
__device__ inline void load_own_b(const gpi__sm90_params &p, const Step &step, const Tile &tile, int item) {
    constexpr int box = B_ROWS ? B_BOX : 64;
#pragma unroll
    for (int i = 0; i < TILE_N; i += box) {
        int left = step.columns_left - i % SPAN;
        if (B_ROWS)
            load_lines<box, false>(p.b, p.b_tail, left, step.b + i * LINE, step.full, step.k, column_of(p, tile, i), item, 0);
        else if (!TAILS || left > 0)
            load_box<false>(p.b, step.b + i * LINE, step.full, column_of(p, tile, i), step.k, item, 0);
    }
}

__device__ inline void load_b(const gpi__sm90_params &p, const Step &step, const Sharers &with, const Tile &tile, int item) {
    const gpi__tensor_map &map = map_of<1>(p, tile);
    if (MAY_LIE_BESIDE && tile.m) {
        load_own_b(p, step, tile, item);
        return;
    }
    if (B_ROWS) {
#pragma unroll
        for (int i = 0; i < B_LINES; i += B_BOX) {
            int line = (int)with.row * B_LINES + i;
            load_lines<B_BOX, (CLUSTER_M > 1)>(map, p.b_tail, step.columns_left - line % SPAN, step.b + line * LINE,
                                             step.full, step.k, column_of(p, tile, line), item, with.of_b);
        }
    } else {
#pragma unroll
        for (int i = 0; i < TILE_N; i += 64) // by turns: their number may be odd
            if ((i / 64 + step.block) % CLUSTER_M == (int)with.row && (!TAILS || i % SPAN < step.columns_left))
                load_box<(CLUSTER_M > 1)>(map, step.b + i * LINE, step.full, column_of(p, tile, i), step.k, item, with.of_b);
    }
}

// >>ahead of launches before this one

// Of few rows, what takes longest is to read B, mostly weights, which the launch before has seldom written. So the first stages of it come
// to L2 while that one ends. Lines beyond the end are read as they come. Gradients are of many rows, and lack a register for it, as do
// scales that are found.
constexpr bool FETCHES = !GROUPED && !BACKWARD && !ADDS_COLUMNS && !FINDS;
constexpr int FEW_ROWS = 64;
__device__ inline void fetch_b(const gpi__sm90_params &p, u32 row, const Tile &tile, u32 rank) {
    int item = p.b_items ? (int)tile.item : 0, begin = begin_of_k(p, rank), end = end_of_k(p, rank);
    end = end < begin + STAGES ? end : begin + STAGES;
#pragma unroll 1
    for (int k = begin * TILE_K; k < end * TILE_K; k += TILE_K)
        if (B_ROWS) {
#pragma unroll
            for (int i = 0; i < B_LINES; i += B_BOX)
                fetch_box(p.b, k, column_of(p, tile, (int)row * B_LINES + i), item);
        } else {
#pragma unroll 1
            for (int i = (int)row * 64; i < TILE_N; i += CLUSTER_M * 64)
                fetch_box(p.b, column_of(p, tile, i), k, item);
        }
}

// Where the loader has few registers, before it keeps anything in them: what is computed of the first tile here is computed anew later.
constexpr bool FETCHES_FIRST = FETCHES && NEEDS_REGISTERS;
__device__ inline void fetch_first(const gpi__sm90_params &p, const Work &work) {
    u32 first = work.first;
    asm volatile("" : "+r"(first));
    if (p.epilogue.m <= FEW_ROWS && first < count_tiles(p))
        fetch_b(p, PARTS > 1 ? 0 : work.rank % CLUSTER_M, tile_of(p, first, work.rank), work.rank);
}

// >>all tiles

__device__ inline void produce(const gpi__sm90_params &p, const Shared &shared, const Work &work) {
    if (FETCHES_FIRST)
        fetch_first(p, work);
    u32 row = PARTS > 1 ? 0 : work.rank % CLUSTER_M, column = PARTS > 1 ? 0 : work.rank / CLUSTER_M;
    u16 of_a = 0, of_b = 0;
    for (int i = 0; i < CLUSTER_N; i++)
        of_a |= (u16)(1 << (row + i * CLUSTER_M));
    for (int i = 0; i < CLUSTER_M; i++)
        of_b |= (u16)(1 << (column * CLUSTER_M + i));
    const Sharers with = {row, column, of_a, of_b};
    Pipeline pipeline = Pipeline::of_loader(shared);
    for (u32 t = work.first; t < count_tiles(p); t += work.step) {
        Tile tile = tile_of(p, t, work.rank);
        asm volatile("" : "+r"(tile.m), "+r"(tile.n), "+r"(tile.item)); // now, not where it is used
        if (FETCHES && !FETCHES_FIRST && t == work.first && p.epilogue.m <= FEW_ROWS)
            fetch_b(p, with.row, tile, work.rank);
        if (t == work.first)
            after_launches_before(); // no sooner: most of the instructions up to the first load have come by now
        int m = first_row(tile) + (int)with.column * A_LINES;
        int a_item = p.a_items ? (int)tile.item : 0, b_item = p.b_items ? (int)tile.item : 0;
        take_maps(p, tile);
        for (int block = begin_of_k(p, work.rank); block < (GROUPED_K ? blocks_of_tile(p, tile, work.rank) : end_of_k(p, work.rank)); block++) {
            if (TAILS) // what follows from them is computed anew, as to keep it takes registers
                asm volatile("" : "+r"(m), "+r"(tile.m), "+r"(tile.n));
            Step step = {block,
                         first_k(tile) + block * TILE_K,
                         GROUPED_ROWS ? TILE_M : (int)p.epilogue.m - m,
                         span_left(p, tile),
                         shared.full(pipeline.stage),
                         shared.a(pipeline.stage) + with.column * A_LINES * LINE,
                         shared.b(pipeline.stage)};
            pipeline.wait_empty();
            barrier_expect(step.full, stage_bytes(p, tile));
            load_a(p, step, with, tile, m, a_item);
            load_b(p, step, with, tile, b_item);
            pipeline.advance();
        }
    }
}
