// The epilogue of a warp's sums.
#pragma once
#include "sm80/options.cuh"

// Where this lane's run of 16 bits or 32 goes, of eight rows the lane's, and of the g-th 32 columns of a box.
template <class T> __device__ inline u32 place_in_box(int half, int g) {
    int row = row_of_lane(), unit = sizeof(T) == 4 ? lane_of_row() / 2 : g * 4;
    return (half * 8 + row) * LINE + ((unit ^ row) << 4) + (sizeof(T) == 4 ? lane_of_row() % 2 * 8 : lane_of_row() * 4);
}

// Where a lane's run of each output waits in shared memory.
__device__ inline void place_run(u32 staged, int half, int g, Epilogue_state &state) {
#pragma unroll
    for (int j = 0; j < STAGED_D; j++)
        state.staged_d[j] = staged + j * STAGED_BYTES + place_in_box<GEMMEPI_D_TYPE>(half, g);
#pragma unroll
    for (int j = 0; j < STAGED_MATRICES - STAGED_D; j++)
        state.staged_aux[j] = staged + (STAGED_D + j) * STAGED_BYTES + place_in_box<GEMMEPI_AUX_TYPE>(half, g);
    state.mask_place = half + 2 * g;
}

// 16 rows of a box: the first, and what exists from there on.
struct Box_rows {
    long long item;
    int row, column, rows_left, columns_left;
};

// Copies them from shared memory.
__device__ inline void copy_rows(const gpi__epilogue_params &p, const Box_rows &at, u32 staged) {
    __syncwarp();
#pragma unroll
    for (int j = 0; j < STAGED_D; j++)
        copy_box<GEMMEPI_D_TYPE, BOX_COLUMNS, COPIES_D>(
            staged + j * STAGED_BYTES, (GEMMEPI_D_TYPE *)p.d.data + offset(p.d, at.item, at.row, at.column + j * p.n), p.d.ld,
            at.rows_left, at.columns_left);
#pragma unroll
    for (int j = 0; j < STAGED_MATRICES - STAGED_D; j++)
        copy_box<GEMMEPI_AUX_TYPE, BOX_COLUMNS, COPIES_AUX>(
            staged + (STAGED_D + j) * STAGED_BYTES,
            (GEMMEPI_AUX_TYPE *)p.aux.data + offset(p.aux, at.item, at.row, at.column + j * p.n), p.aux.ld, at.rows_left,
            at.columns_left);
    __syncwarp();
}

// row, column: the warp's first; line: its line of partial sums
__device__ inline void finish(const gpi__sm80_params &params, long long item, int row, int column, long long line,
                              u32 staged, const float (&sums)[ROW_BLOCKS][PAIRS * 2][4]) {
    const gpi__epilogue_params &p = params.epilogue;
    int of_row = row_of_lane();
    Epilogue_state state = begin_epilogue(p, PLACES_OF(params), item, 0, 0);
#pragma unroll
    for (int box = 0; box < GROUPS; box += BOX_GROUPS) {
        Of_columns of[BOX_GROUPS];
        Column_sums<(GEMMEPI_FORMULA_ROLLS || ROW_BLOCKS > 2)> column_sums[BOX_GROUPS]; // tall tiles leave few registers
        int box_column = column + box * GROUP, box_left = (int)p.n - box_column;
        int first = box_column + lane_of_row() * 2, left = box_left - lane_of_row() * 2;
#pragma unroll
        for (int g = 0; g < BOX_GROUPS; g++)
            of[g] = load_columns(p, item, first + g * GROUP, left - g * GROUP);
#pragma unroll
        for (int i = 0; i < ROW_BLOCKS; i++) {
#pragma unroll
            for (int g = 0; g < BOX_GROUPS; g++) {
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    int at = row + i * 16 + half * 8 + of_row, exists = at < (int)p.m;
                    int valid = exists ? left - g * GROUP : 0;
                    Acc v[HALVES][RUN];
                    Saved saved;
#pragma unroll
                    for (int j = 0; j < HALVES_IN * RUN; j++)
                        v[j / RUN][j % RUN] =
                            sums[i][j / RUN * WARP_COLUMNS / 8 + (box + g) * 4 + j % RUN / 2][half * 2 + j % 2];
                    place_run(staged, half, g, state);
                    load_saved(p, state, item, at, first + g * GROUP, valid, saved);
                    epilogue(p, state, of[g], saved, item, at, first + g * GROUP, valid, v);
                    store_result(p, state, item, at, first + g * GROUP, valid, v);
                    if constexpr (ADDS_COLUMNS)
                        column_sums[g].add(state, exists);
                }
                if (ADDS_COLUMNS)
                    column_sums[g].end_rows();
            }
            if (KEEPS_MASK)
                store_kept_masks(p, state, item, row + i * 16, box_column, BOX_GROUPS);
            static_assert(!GEMMEPI_INSIDE_REDUCES || BOX_COLUMNS % GEMMEPI_STATE_COLUMNS == 0, "a box has whole states");
            store_kept_states(p, state, item, row + i * 16, box_column, BOX_GROUPS);
            if (STAGED)
                copy_rows(p, {item, row + i * 16, box_column, (int)p.m - row - i * 16, box_left}, staged);
        }
        if (ADDS_COLUMNS && row < (int)p.m)
#pragma unroll
            for (int g = 0; g < BOX_GROUPS; g++)
                column_sums[g].store(p, PLACES_OF(params), line, box_column + g * GROUP);
    }
    end_epilogue(p, state);
}
