// The two warpgroups that multiply: tile after tile its sums, and their epilogue box by box.
#pragma once
#include "sm90/multiply.cuh"
#include "sm90/parts.cuh"

// >>a tile's epilogue

// This warp's rows of a tile, in which it finishes some strips of 64.
template <int Groups> struct Rows {
    const Tile &tile;
    int first, strip; // the first strip's first row, and its number
    const Masks &masks;
    Of_columns (&columns)[Groups]; // of all boxes, or of the next
};

// What this warpgroup does beside a tile: BIAS_FIRST loads the bias of its next one.
struct Next_tile {
    const Work &work;
    u32 count; // of the tile at hand, among this block's
    Of_columns (&bias)[GROUPS];
};

// Boxes: columns after columns, of each the strips. IsLast: a strip of the block's last tile; the other warpgroup has the other.
template <bool IsLast, int Groups, int Strips>
__device__ inline void finish_boxes(const gemmepi__sm90_params &p, const Warpgroup &mine, const Finisher &finisher,
                                    const Rows<Groups> &rows, const Next_tile &following, float (&sums)[Strips][TILE_N / 2]) {
    const Shared &shared = mine.pipeline.shared;
    const Tile &tile = rows.tile;
    constexpr bool rolls = ROLLS || IsLast, has_all = ALL_AHEAD && !IsLast;
#pragma unroll rolls ? 1 : GROUPS
    for (int i = 0; i < GROUPS; i += BOX_GROUPS) {
        Of_columns now[BOX_GROUPS];
        Box_sums column_sums;
        if (!AHEAD && !BIAS_FIRST)
            load_groups(p, tile, i, rows.columns);
        bool is_end = i + BOX_GROUPS == GROUPS; // most of the sums' registers are free
        if (!IsLast && BIAS_FIRST && is_end && following.count + TURNS < mine.tiles)
            load_groups(p, nth_tile(p, following.work, following.count + TURNS), 0, following.bias);
        memcpy(now, rows.columns + (has_all ? i : 0), sizeof now);
        if (AHEAD && !has_all && i + BOX_GROUPS < GROUPS)
            load_groups(p, tile, i + BOX_GROUPS, rows.columns);
#pragma unroll
        for (int strip = 0; strip < Strips; strip++) {
            Sums_of_box box = sums_of_box(sums[strip], rolls ? 0 : i);
            Next_box next = {strip + 1 < Strips || i + BOX_GROUPS < GROUPS, rows.first + (strip + 1 < Strips ? strip + 1 : 0) * 64,
                             strip + 1 < Strips ? i : i + BOX_GROUPS};
            finish_box(p, finisher, {tile, rows.first + strip * 64, rows.strip + strip, i, now, rows.masks, box, next}, column_sums);
            if (HAS_BGRAD && IsLast)
                columns_parked_in(shared.a(0), mine.pipeline.stage).park(rows.strip, mine.thread, i, column_sums);
            if (rolls)
                drop_first_box(sums[strip]);
        }
        if (HAS_BGRAD && !IsLast)
            leave_column_sums(shared, mine.which, mine.thread, i, column_sums);
    }
}

// >>a block's last tile

#if !GEMMEPI_PROMOTES // then each warpgroup has rows of all tiles
// The second strip, whose sums this warpgroup has added up, or the first.
__device__ inline void strip_of_last_tile(const gemmepi__sm90_params &p, const Shared &shared, Warpgroup &mine,
                                         const Finisher &finisher, const Next_tile &following, bool ends) {
    Tile tile = nth_tile(p, following.work, following.count);
    int strip = ends, first_row = tile.m * TILE_M + (int)(mine.thread / 32) * 16, row = first_row + strip * 64;
    float kept[1][TILE_N / 2];
    Of_columns columns[BOX_GROUPS];
    ask_for_inputs(p, finisher.buffers, tile, row, 0);
    Masks masks = load_masks(p, tile, first_row);
    if (AHEAD)
        load_groups(p, tile, 0, columns);
    if (ends) {
        float sums[STRIPS][TILE_N / 2];
        begin_sums(following.bias, sums);
        add_up_last(shared, mine, sums, kept[0]);
    } else {
        stages_are_left(mine.blocks);
        both_meet(); // the sums are parked
        read_parked(parked_in(shared.a(0), mine.pipeline.stage), mine.thread, kept[0]);
    }
    multiply_by_factors(p, tile, row, kept[0]);
    if (HAS_BGRAD)
        warpgroup_meets(mine.which); // before sums are left where stages, or the other strip's sums, were read
    finisher.state = begin_epilogue(p.epilogue, p.BESIDE, tile.item, 0, 0);
    finish_boxes<true, BOX_GROUPS>(p, mine, finisher, {tile, row, strip, masks, columns}, following, kept);
    if (HAS_BGRAD) {
        both_meet(); // all sums are left
        store_parked_columns(p, tile, columns_parked_in(shared.a(0), mine.pipeline.stage));
    }
    end_epilogue(p.epilogue, finisher.state);
}
#endif

// >>all tiles

__device__ inline void consume(const gemmepi__sm90_params &p, const Shared &shared, const Work &work) {
    // This warpgroup; by a shuffle, for the compiler to see that all of a warp have the same
    u32 which = __shfl_sync(0xffffffffu, threadIdx.x / WARPGROUP - 1, 0), thread = threadIdx.x % WARPGROUP;
    u32 tiles = PARTS > 1 ? 1 : (p.tiles - work.first + work.step - 1) / work.step;
    int blocks = blocks_of_k(p, work.rank), first_strip = PING_PONG ? 0 : (int)which * STRIPS;
    Warpgroup mine = {which, thread, tiles, first_strip, blocks, Pipeline::of_reader(shared, HAS_SCALES ? thread % 32 : thread, work.rank)};
    Epilogue_state state;
    Buffers buffers = buffers_of(shared);
    const Finisher finisher = {state, buffers};

    // The first turn
    if (PING_PONG && which == 1) {
        turn_give(0);
        mine.pipeline.skip(blocks);
    }
    bool ends = SHARES_LAST && (tiles - 1) % CONSUMERS == which; // with the block's last tile
    u32 count = PING_PONG ? which : 0;
    Of_columns bias[GROUPS]; // BIAS_FIRST: of the next tile

    // Tiles. This stands here as in a function of its own it becomes other machine code, of up to 2 percent more instructions.
    if (BIAS_FIRST && count < tiles)
        load_groups(p, nth_tile(p, work, count), 0, bias);
    for (; count < tiles - ends; count += TURNS) {
        Tile tile = nth_tile(p, work, count);
        float sums[STRIPS][TILE_N / 2];
        Of_columns columns[ALL_AHEAD ? GROUPS : BOX_GROUPS];
        begin_sums(bias, sums);
        int row = tile.m * TILE_M + first_strip * 64 + (int)(thread / 32) * 16;
        Masks masks;
        if (PARTS == 1) {
            ask_for_inputs(p, buffers, tile, row, 0);
            masks = load_masks(p, tile, row);
        }
        if (AHEAD)
            load_groups(p, tile, 0, columns); // before the sums, so that the epilogue need not wait
        if (PROMOTES) // so that scales are there when the sums are: nobody else multiplies while it waits for them
            state = begin_epilogue(p.epilogue, p.BESIDE, tile.item, 0, 0);
        add_up_tile(shared, mine, sums);
        if (!PROMOTES)
            state = begin_epilogue(p.epilogue, p.BESIDE, tile.item, 0, 0);
#pragma unroll
        for (int strip = 0; strip < (HAS_FACTORS && !PROMOTES ? STRIPS : 0); strip++)
            multiply_by_factors(p, tile, row + strip * 64, sums[strip]);
        if (PARTS > 1)
            exchange_sums(p, finisher, tile, shared, work.rank, sums[0]);
        else
            finish_boxes<false, ALL_AHEAD ? GROUPS : BOX_GROUPS>(p, mine, finisher, {tile, row, 0, masks, columns},
                                                                 {work, count, bias}, sums);
        end_epilogue(p.epilogue, state);
    }

    // The last tile
#if !GEMMEPI_PROMOTES
    if (SHARES_LAST)
        strip_of_last_tile(p, shared, mine, finisher, {work, tiles - 1, bias}, ends);
#endif
    if (HAS_OUTPUTS) // shared memory stays until all of it is read
        wait_for_stores<0>();
}
