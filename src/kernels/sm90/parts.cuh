// PARTS: the blocks of a cluster add up a part of k each, and exchange their sums at the end.
//
// The boxes of a tile that exist go in turn to the blocks, in these to their warps. Each block sends its sums of a box to the block
// that finishes it, where the stages were, and a barrier there counts their bytes.
#pragma once
#include "sm90/box.cuh"

static_assert(PARTS == 1 || STRIPS == 1, "a warp has 16 rows");
static_assert(PARTS == 1 || !FINDS, "boxes of 128 columns go to several blocks");
constexpr u32 FOURS_OF_BOX = HALVES_IN * BOX_COLUMNS / 8; // a lane's sums, four at a time
constexpr u32 SENT_BYTES = FOURS_OF_BOX * 32 * 16, BOXES = WARPS * (GROUPS / BOX_GROUPS);
static_assert(PARTS == 1 || (BOXES % PARTS == 0 && BOXES * SENT_BYTES <= STAGES * STAGE_BYTES), "the stages have room for them");
constexpr bool SENDS_ASYNC = COMPILER >= 1201; // 12.0 knows no st.async

// Of a tile, those that exist.
struct Box_counts {
    u32 rows, columns;
};
__device__ inline Box_counts boxes_of(const gpi__sm90_params &p, const Tile &tile) {
    u32 rows = (u32)p.epilogue.m - tile.m * TILE_M, columns = (u32)p.epilogue.n - tile.n * TILE_COLUMNS;
    return {((rows < TILE_M ? rows : TILE_M) + 15) / 16,
            ((columns < TILE_COLUMNS ? columns : TILE_COLUMNS) + BOX_COLUMNS - 1) / BOX_COLUMNS};
}
// Of a block's nth box the sums from another, in the block's shared memory.
__device__ inline u32 received_at(u32 nth, u32 from) {
    return Shared::STAGE + (nth * PARTS + from) * SENT_BYTES + threadIdx.x % 32 * 16;
}

// Of a box, to a place and a barrier in shared memory of a block of the cluster.
__device__ inline void send_box(u32 to, u32 received, const Sums_of_box &box) {
#pragma unroll
    for (int j = 0; j < FOURS_OF_BOX; j++) {
        const float *four = box.at[j / (BOX_COLUMNS / 8)][j % (BOX_COLUMNS / 8)];
        if (SENDS_ASYNC)
            asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                             to + j * 512),
                         "f"(four[0]), "f"(four[1]), "f"(four[2]), "f"(four[3]), "r"(received)
                         : "memory");
        else
            asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to + j * 512), "f"(four[0]), "f"(four[1]),
                         "f"(four[2]), "f"(four[3])
                         : "memory");
    }
}
__device__ inline void send_sums(const gpi__sm90_params &p, const Tile &tile, const Shared &shared, u32 rank,
                                 const float (&sums)[TILE_N / 2]) {
    Box_counts boxes = boxes_of(p, tile);
    u32 row = threadIdx.x / 32 - 4;
    if (SENDS_ASYNC && threadIdx.x == WARPGROUP)
        barrier_expect(shared.received(), (boxes.rows * boxes.columns + PARTS - 1 - rank) / PARTS * PARTS * SENT_BYTES);
#pragma unroll
    for (int group = 0; group < GROUPS; group += BOX_GROUPS) {
        u32 i = group / BOX_GROUPS * boxes.rows + row;
        Shared there = {address_in(shared.first, i % PARTS)};
        u32 to = there.first + received_at(i / PARTS, rank);
        Sums_of_box box = sums_of_box(sums, group);
        if (row >= boxes.rows || group / BOX_GROUPS >= boxes.columns)
            continue;
        send_box(to, there.received(), box);
    }
}

// Always in the same order.
__device__ inline void add_received(const Shared &shared, u32 nth, Sums_of_box &box) {
    box = {};
#pragma unroll 1
    for (u32 block = 0; block < PARTS; block++)
#pragma unroll
        for (int j = 0; j < FOURS_OF_BOX; j++) {
            float *four = box.at[j / (BOX_COLUMNS / 8)][j % (BOX_COLUMNS / 8)], x[4];
            get_words(shared.first + received_at(nth, block) + j * 512, x);
#pragma unroll
            for (int i = 0; i < 4; i++)
                four[i] += x[i];
        }
}

// This block's boxes.
__device__ inline void finish_received(const gpi__sm90_params &p, const Finisher &finisher, const Tile &tile,
                                       const Shared &shared, u32 rank) {
    Box_counts boxes = boxes_of(p, tile);
    for (u32 nth = threadIdx.x / 32 - 4; nth * PARTS + rank < boxes.rows * boxes.columns; nth += WARPS) {
        u32 i = nth * PARTS + rank;
        int group = (int)(i / boxes.rows) * BOX_GROUPS, row = tile.m * TILE_M + (int)(i % boxes.rows) * 16;
        Of_columns columns[BOX_GROUPS];
        load_groups(p, tile, group, columns);
        ask_for_inputs(p, finisher.buffers, tile, row, group);
        Masks masks = load_masks(p, tile, row);
        Sums_of_box sums;
        add_received(shared, nth, sums);
        Box_sums none;
        Found_vectors never;
        finish_box(p, finisher, {tile, row, 0, group, columns, masks, sums, {false, 0, 0}, {}}, none, never);
    }
}

// A tile whose parts are summed: all blocks send, then finish.
__device__ inline void exchange_sums(const gpi__sm90_params &p, const Finisher &finisher, const Tile &tile,
                                     const Shared &shared, u32 rank, const float (&sums)[TILE_N / 2]) {
    cluster_meets(); // all have left their stages
    send_sums(p, tile, shared, rank, sums);
    if (SENDS_ASYNC)
        barrier_wait(shared.received(), 0);
    else
        cluster_barrier();
    finish_received(p, finisher, tile, shared, rank);
}
