// The two warpgroups that multiply: tile after tile its sums, and their epilogue box by box.
#pragma once
#include "sm90/multiply.cuh"
#include "sm90/parts.cuh"

// >>a tile's epilogue

// This warp's rows of a tile, in which it finishes some strips of 64.
struct Rows {
    const Tile &tile;
    int first; // the first strip's first row
    const Masks &masks;
    Of_columns (&columns)[BOX_GROUPS]; // of the next box
    const Held_of_strip (&held)[STRIPS];
};

// row: the warp's first
__device__ inline Held_of_strip hold_strip(const gpi__sm90_params &p, const Tile &tile, int row) {
    Held_of_strip held;
#pragma unroll
    for (int half = 0; half < (HOLDS ? 2 : 0); half++, row += 8) {
        int mine = row + row_of_lane();
        bool exists = mine < end_of_rows(p, tile);
        held.at[half] = hold_operands(PLACES_OF(p), tile.item, row_in_memory(p, mine, exists), exists);
    }
    return held;
}

// row: the first strip's first
__device__ inline void hold_strips(const gpi__sm90_params &p, const Tile &tile, int row, Held_of_strip (&held)[STRIPS]) {
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++)
        held[strip] = hold_strip(p, tile, row + strip * 64);
}

// Boxes: columns after columns, of each the strips.
__device__ inline void finish_boxes(const gpi__sm90_params &p, const Warpgroup &mine, const Finisher &finisher,
                                    const Rows &rows, float (&sums)[STRIPS][TILE_N / 2]) {
    const Shared &shared = mine.pipeline.shared;
    const Tile &tile = rows.tile;
#pragma unroll ROLLS ? 1 : GROUPS
    for (int i = 0; i < GROUPS; i += BOX_GROUPS) {
        Of_columns now[BOX_GROUPS];
        Box_sums column_sums;
        if (!AHEAD)
            load_groups(p, tile, i, rows.columns);
        memcpy(now, rows.columns, sizeof now);
        if (AHEAD && i + BOX_GROUPS < GROUPS)
            load_groups(p, tile, i + BOX_GROUPS, rows.columns);
#pragma unroll
        for (int strip = 0; strip < STRIPS; strip++) {
            Sums_of_box box = sums_of_box(sums[strip], ROLLS ? 0 : i);
            Next_box next = {strip + 1 < STRIPS || i + BOX_GROUPS < GROUPS, rows.first + (strip + 1 < STRIPS ? strip + 1 : 0) * 64,
                             strip + 1 < STRIPS ? i : i + BOX_GROUPS};
            Found_vectors never;
            finish_box(p, finisher, {tile, rows.first + strip * 64, strip, i, now, rows.masks, box, next, rows.held[strip]}, column_sums,
                       never);
            if (ROLLS)
                drop_first_box(sums[strip]);
        }
        if (ADDS_COLUMNS)
            leave_column_sums(shared, mine.which, mine.thread, i, column_sums);
    }
}

// ROLLS_STRIPS: strips, and of each the boxes, by one copy of the instructions, which a box is then all that its cache must hold.
__device__ inline void finish_strips(const gpi__sm90_params &p, const Finisher &finisher, const Rows &rows,
                                     float (&sums)[STRIPS][TILE_N / 2]) {
    constexpr int boxes = GROUPS / BOX_GROUPS;
#pragma unroll 1
    for (int i = 0; i < STRIPS * boxes; i++) {
        int strip = i / boxes, group = i % boxes * BOX_GROUPS;
        Of_columns now[BOX_GROUPS];
        Held_of_strip held = rows.held[0];
        Box_sums none;
        Found_vectors never;
        if (STRIPS > 1 && strip > 0)
            held = rows.held[STRIPS - 1];
        if (!AHEAD)
            load_groups(p, rows.tile, group, rows.columns);
        memcpy(now, rows.columns, sizeof now);
        Next_box next = {i + 1 < STRIPS * boxes, rows.first + (i + 1) / boxes * 64, (i + 1) % boxes * BOX_GROUPS};
        if (AHEAD && boxes > 1 && next.exists)
            load_groups(p, rows.tile, next.group, rows.columns);
        finish_box(p, finisher,
                   {rows.tile, rows.first + strip * 64, strip, group, now, rows.masks, sums_of_box(sums[0], 0), next, held}, none, never);
        drop_first_box(reinterpret_cast<float(&)[STRIPS * TILE_N / 2]>(sums));
    }
}

// FINISHES_FIRST: a strip's sums get their factors and C where they are.
__device__ inline void finish_products_of_strip(const gpi__sm90_params &p, const Epilogue_state &state, const Tile &tile, int row,
                                                float (&sums)[TILE_N / 2]) {
#pragma unroll
    for (int run = 0; run < 2 * GROUPS; run++) {
        Run_place at = place_of_run(p, tile, row, 0, run % 2, run / 2);
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++) {
            Acc v[RUN];
#pragma unroll
            for (int i = 0; i < RUN; i++)
                v[i] = sums[first_sum(half, at.g) + i / 2 * 4 + at.half * 2 + i % 2];
            finish_product(p.epilogue, state, half_of_run(p.epilogue, {tile.item, at.row, at.column, at.valid}, half), half, v);
#pragma unroll
            for (int i = 0; i < RUN; i++)
                sums[first_sum(half, at.g) + i / 2 * 4 + at.half * 2 + i % 2] = v[i];
        }
    }
}

// FINDS: strips, and of each the boxes, so that what is kept of a vector is stored before the next strip.
__device__ inline void finish_vectors(const gpi__sm90_params &p, const Finisher &finisher, const Rows &rows,
                                      float (&sums)[STRIPS][TILE_N / 2]) {
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++) {
        int row = rows.first + strip * 64;
        Found_vectors found;
        if (FINISHES_FIRST)
            finish_products_of_strip(p, finisher.state, rows.tile, row, sums[strip]);
#pragma unroll
        for (int i = 0; i < GROUPS; i += BOX_GROUPS) {
            Of_columns now[BOX_GROUPS];
            Box_sums none;
            bool is_end = i + BOX_GROUPS == GROUPS;
            load_groups(p, rows.tile, i, now);
            Next_box next = {strip + 1 < STRIPS || !is_end, is_end ? row + 64 : row, is_end ? 0 : i + BOX_GROUPS};
            finish_box(p, finisher, {rows.tile, row, strip, i, now, rows.masks, sums_of_box(sums[strip], i), next, rows.held[strip]}, none,
                       found);
            if ((i + BOX_GROUPS) % VECTOR_GROUPS == 0)
                store_vectors(p, finisher, rows.tile, row, i + BOX_GROUPS - VECTOR_GROUPS, found);
        }
    }
}

// The epilogue of a tile's strips.
__device__ inline void finish_tile(const gpi__sm90_params &p, const Warpgroup &mine, const Finisher &finisher, const Rows &rows,
                                   float (&sums)[STRIPS][TILE_N / 2]) {
    if constexpr (ROLLS_STRIPS)
        finish_strips(p, finisher, rows, sums);
    else if constexpr (FINDS)
        finish_vectors(p, finisher, rows, sums);
    else
        finish_boxes(p, mine, finisher, rows, sums);
}

// Raises the largest of all tiles by a tile's.
__device__ inline void keep_largest(const Epilogue_state &state, Magnitude &largest_d, Magnitude &largest_aux) {
    if (AMAX_D && state.largest_d > largest_d)
        largest_d = state.largest_d;
    if (AMAX_AUX && state.largest_aux > largest_aux)
        largest_aux = state.largest_aux;
}

// >>all tiles

__device__ inline void consume(const gpi__sm90_params &p, const Shared &shared, const Work &work) {
    // This warpgroup; by a shuffle, for the compiler to see that all of a warp have the same
    u32 which = __shfl_sync(0xffffffffu, threadIdx.x / WARPGROUP - 1, 0), thread = threadIdx.x % WARPGROUP;
    u32 all = count_tiles(p), tiles = PARTS > 1 ? 1 : (all - work.first + work.step - 1) / work.step;
    if (GROUPED && work.first >= all) // a grid is as large as the groups may make it
        return;
    int blocks = GROUPED_K ? 0 : blocks_of_k(p, work.rank), first_strip = PING_PONG ? 0 : (int)which * STRIPS;
    Warpgroup mine = {which, thread, tiles, first_strip, blocks, Pipeline::of_reader(shared, HAS_SCALES ? thread % 32 : thread, work.rank)};
    Epilogue_state state;
    Magnitude largest_d = 0, largest_aux = 0; // of all tiles
    Buffers buffers = buffers_of(shared);
    const Finisher finisher = {state, buffers};

    // The first turn
    if (PING_PONG && which == 1) {
        turn_give(0);
        mine.pipeline.skip(blocks);
    }
    u32 count = PING_PONG ? which : 0;

    // Tiles. This stands here as in a function of its own it becomes other machine code, of up to 2 percent more instructions.
    for (; count < tiles; count += TURNS) {
        Tile tile = nth_tile(p, work, count);
        float sums[STRIPS][TILE_N / 2];
        Of_columns columns[BOX_GROUPS];
        begin_sums(sums);
        look_ahead(p, work.first + (count + TURNS) * work.step, all);
        if (GROUPED_K)
            mine.blocks = blocks_of_tile(p, tile, work.rank);
        int row = first_row(tile) + first_strip * 64 + (int)(thread / 32) * 16;
        Masks masks;
        if (PARTS == 1) {
            ask_for_box(p, finisher, tile, row, 0);
            masks = load_masks(p, tile, row);
        }
        Held_of_strip held[STRIPS];
        hold_strips(p, tile, row, held);
        if (AHEAD)
            load_groups(p, tile, 0, columns); // before the sums, so that the epilogue need not wait
        if (PROMOTES) // so that scales are there when the sums are: nobody else multiplies while it waits for them
            state = begin_epilogue(p.epilogue, PLACES_OF(p), tile.item, 0, 0);
        add_up_tile(shared, mine, count, sums);
        if (!PROMOTES)
            state = begin_epilogue(p.epilogue, PLACES_OF(p), tile.item, 0, 0);
#if GEMMEPI_ELEMENT == 1
#pragma unroll
        for (int strip = 0; strip < (HAS_FACTORS && !PROMOTES ? STRIPS : 0); strip++)
            multiply_by_factors(p, tile, row + strip * 64, sums[strip]);
#endif
        if (PARTS > 1)
            exchange_sums(p, finisher, tile, shared, work.rank, sums[0]);
        else
            finish_tile(p, mine, finisher, {tile, row, masks, columns, held}, sums);
        keep_largest(state, largest_d, largest_aux);
    }
    state.largest_d = largest_d, state.largest_aux = largest_aux;
    end_epilogue(p.epilogue, state); // once: a look at memory takes long
    if (HAS_OUTPUTS) // shared memory stays until all of it is read
        wait_for_stores<0>();
}
