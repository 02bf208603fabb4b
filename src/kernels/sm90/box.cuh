// The epilogue of a box: a warp's 16 rows of a strip, and BOX_COLUMNS columns.
#pragma once
#include "sm90/box_memory.cuh"
#include "sm90/column_sums.cuh"
#include "sm90/columns.cuh"
#include "sm90/mask.cuh"

// >>what a box is

// The tile's box after the one at hand, if there is one.
struct Next_box {
    bool exists;
    int row, group;
};

// Its sums as wgmma leaves them in a warp: of eight columns a lane has two, in row lane / 4 and in the eighth below.
struct Sums_of_box {
    float at[HALVES_IN][BOX_COLUMNS / 8][4];
};
// Of a formula's operands, of the two rows of a strip that a lane has.
struct Held_of_strip {
    Held_operands at[2];
};
struct Box {
    const Tile &tile;
    int row, strip, group; // the warp's first row, of the strip of its rows that masks count; the first of its groups
    const Of_columns (&columns)[BOX_GROUPS];
    const Masks &masks;
    const Sums_of_box &sums;
    Next_box next;
    const Held_of_strip &held;
};

// What a warp carries from one box to the next.
struct Finisher {
    Epilogue_state &state;
    Buffers &buffers;
};

// Of a strip's sums those of the columns from `group` on.
__device__ inline Sums_of_box sums_of_box(const float (&sums)[TILE_N / 2], int group) {
    Sums_of_box box;
#pragma unroll
    for (int j = 0; j < HALVES_IN * BOX_COLUMNS / 2; j++)
        box.at[j / (BOX_COLUMNS / 2)][j % (BOX_COLUMNS / 2) / 4][j % 4] =
            sums[first_sum(j / (BOX_COLUMNS / 2), group + j % (BOX_COLUMNS / 2) / 16) + j % 16];
    return box;
}
// The next box is the first: one copy of the epilogue is enough for all of them.
template <int N> __device__ inline void drop_first_box(float (&sums)[N]) {
    constexpr int of_box = SIDE_BY_SIDE ? BOX_COLUMNS : BOX_COLUMNS / 2;
#pragma unroll
    for (int i = 0; i + of_box < N; i++)
        sums[i] = sums[i + of_box];
}

// FINDS: what the epilogue leaves of a strip's 128 columns, until their scale is known.
constexpr int VECTOR_GROUPS = VECTOR_COLUMNS / GROUP;
struct Found_vectors {
    Acc runs[FINDS ? VECTOR_GROUPS : 1][2][RUN]; // of groups, of either eight of a warp's 16 rows
};

// >>its runs

// A lane's run: in eight rows, `half` of the box's 16, and 32 columns, the g-th of its groups.
struct Run_place {
    int half, g, row, column, valid;
};
__device__ inline Run_place place_of_run(const gpi__sm90_params &params, const Tile &tile, int row, int first_group, int half, int g) {
    int group = first_group + g;
    int at = row + threadIdx.x % 32 / 4 + half * 8, column = tile.n * TILE_COLUMNS + column_of_lane() + group * GROUP;
    if (((BACKWARD || FINDS) && !GEMMEPI_UNIT_ALPHA) || (FINDS && GATED && HAS_BIAS)) // each for itself: what runs have in common takes registers
        asm volatile("" : "+r"(at), "+r"(column));
    int valid = at < end_of_rows(params, tile) ? columns_left(params, tile, group) : 0;
    return {half, g, row_in_memory(params, at, valid > 0), column, valid};
}

// What BACKWARD reads there.
__device__ inline void load_saved_run(const gpi__sm90_params &params, const Finisher &finisher, const Box &box,
                                      const Run_place &at, Saved &saved) {
#pragma unroll
    for (int i = 0; i < INPUT_AUX; i++)
        finisher.state.loaded_aux[i] = input_at<HALVES_SAVED>(finisher.buffers, 0, i, at.half, at.g);
    if (LOADS_MASK)
        finisher.state.loaded_mask = mask_of(box.masks, box.strip, at.half, box.group + at.g);
    load_saved(params.epilogue, finisher.state, box.tile.item, at.row, at.column, at.valid, saved);
}

// Where its results go.
__device__ inline void set_outputs(Epilogue_state &state, const Buffers &buffers, const Run_place &at) {
#pragma unroll
    for (int i = 0; i < OUTPUT_D; i++)
        state.staged_d[i] = output_at<HALVES_OUT>(buffers, 0, i, at.half, at.g);
#pragma unroll
    for (int i = 0; i < OUTPUTS - OUTPUT_D; i++)
        state.staged_aux[i] = output_at<HALVES_IN>(buffers, OUTPUT_D, i, at.half, at.g);
}

__device__ inline void finish_run(const gpi__sm90_params &params, const Finisher &finisher, const Box &box,
                                  const Run_place &at, Acc (&v)[HALVES][RUN]) {
    const gpi__epilogue_params &p = params.epilogue;
    Epilogue_state &state = finisher.state;
    Saved saved;
#pragma unroll
    for (int i = 0; i < HALVES_IN * RUN; i++)
        v[i / RUN][i % RUN] = box.sums.at[i / RUN][at.g * 4 + i % RUN / 2][at.half * 2 + i % 2];
    set_outputs(state, finisher.buffers, at);
#pragma unroll
    for (int i = 0; i < INPUTS - INPUT_AUX; i++)
        state.loaded_residual[i] = input_at<HALVES_OUT>(finisher.buffers, INPUT_AUX, i, at.half, at.g);
    state.mask_place = at.half + 2 * at.g;
    state.held = box.held.at[at.half];
    load_saved_run(params, finisher, box, at, saved);
    epilogue(p, state, box.columns[at.g], saved, box.tile.item, at.row, at.column, at.valid, v);
    if (!FINDS)
        store_result(p, state, box.tile.item, at.row, at.column, at.valid, v);
}

__device__ inline void finish_runs(const gpi__sm90_params &params, const Finisher &finisher, const Box &box,
                                   Box_sums &column_sums, Found_vectors &found) {
#pragma unroll
    for (int g = 0; g < BOX_GROUPS; g++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            Run_place at = place_of_run(params, box.tile, box.row, box.group, half, g);
            Acc results[HALVES][RUN];
            finish_run(params, finisher, box, at, results);
            if constexpr (ADDS_COLUMNS)
                column_sums[g].add(finisher.state, at.row < (int)params.epilogue.m);
            if (FINDS)
                memcpy(found.runs[FINDS ? (box.group + g) % VECTOR_GROUPS : 0][half], results[0], sizeof results[0]);
        }
        if (ADDS_COLUMNS)
            column_sums[g].end_rows();
    }
}

// >>the whole box

// What the epilogue reads of a box: by TMA, or to the cache.
__device__ inline void ask_for_box(const gpi__sm90_params &params, const Finisher &finisher, const Tile &tile, int row, int group) {
    ask_for_inputs(params, finisher.buffers, tile, row, group);
    int mine = row + (int)threadIdx.x % 16;
    bool exists = mine < end_of_rows(params, tile);
    prefetch_operands(params.epilogue, PLACES_OF(params),
                      {tile.item, row_in_memory(params, mine, exists), tile.n * TILE_COLUMNS + group * GROUP, exists}, BOX_COLUMNS);
}
__device__ inline void finish_box(const gpi__sm90_params &params, const Finisher &finisher, const Box &box,
                                  Box_sums &column_sums, Found_vectors &found) {
    if (box.next.exists)
        ask_for_box(params, finisher, box.tile, box.next.row, box.next.group);
    wait_for_inputs(finisher.buffers);
    if (OUTPUTS)
        begin_outputs();
    finish_runs(params, finisher, box, column_sums, found);
    if (KEEPS_MASK)
        store_kept_masks(params.epilogue, finisher.state, box.tile.item, box.row, box.tile.n * TILE_COLUMNS + box.group * GROUP,
                         BOX_GROUPS);
    static_assert(!GEMMEPI_INSIDE_REDUCES || BOX_COLUMNS % GEMMEPI_STATE_COLUMNS == 0, "a box has whole states");
    store_kept_states(params.epilogue, finisher.state, box.tile.item, box.row, box.tile.n * TILE_COLUMNS + box.group * GROUP, BOX_GROUPS);
    if (HAS_OUTPUTS)
        end_outputs(params, finisher.buffers, box.tile.n * TILE_COLUMNS + box.group * GROUP, box.row, box.tile);
    finisher.buffers.taken++;
}

// >>FINDS: 128 columns, once all their boxes are finished

// Of a lane's runs of eight rows, all of which exist; a NaN is the largest.
__device__ inline Magnitude largest_of_runs(const Found_vectors &found, int half) {
    float largest = 0;
#pragma unroll
    for (int i = 0; i < VECTOR_GROUPS * RUN; i++)
        asm("max.NaN.f32 %0, %0, %1;" : "+f"(largest) : "f"(fabsf(found.runs[FINDS ? i / RUN : 0][half][i % RUN])));
    return magnitude(largest);
}

// Of a warp's 16 rows from `row` on; a row's columns are those of four lanes, to which they lie alike.
__device__ inline void store_vectors(const gpi__sm90_params &params, const Finisher &finisher, const Tile &tile, int row, int group,
                                     const Found_vectors &found) {
    const gpi__epilogue_params &p = params.epilogue;
#pragma unroll
    for (int half = 0; half < (FINDS ? 2 : 0); half++) {
        int at = row + threadIdx.x % 32 / 4 + half * 8, first = tile.n * TILE_COLUMNS + group * GROUP;
        if (!GEMMEPI_UNIT_ALPHA)
            asm volatile("" : "+r"(at), "+r"(first));
        bool exists = at < end_of_rows(params, tile);
        at = row_in_memory(params, at, exists);
        Magnitude largest = first + VECTOR_COLUMNS <= (int)p.n && exists ? largest_of_runs(found, half) : 0;
#pragma unroll
        for (int g = 0; g < VECTOR_GROUPS; g++)
            if (first + VECTOR_COLUMNS > (int)p.n)
                keep_largest_of_run(found.runs[FINDS ? g : 0][half], exists ? columns_left(params, tile, group + g) : 0, largest);
        if (AMAX_D && largest > finisher.state.largest_d)
            finisher.state.largest_d = largest;
#pragma unroll
        for (int step = 1; step < 4; step *= 2) {
            Magnitude other = __shfl_xor_sync(0xffffffffu, largest, step);
            largest = other > largest ? other : largest;
        }
        float scale = scale_of_amax<GEMMEPI_D_TYPE>(largest);
        if (exists && lane_of_row() == 0 && first < (int)p.n)
            write_scale(p, tile.item, at, first, scale);
#pragma unroll
        for (int g = 0; g < VECTOR_GROUPS; g++)
            store_by_scale(p, scale, tile.item, at, first + g * GROUP + column_of_lane(),
                           exists ? columns_left(params, tile, group + g) : 0, found.runs[FINDS ? g : 0][half]);
    }
}
