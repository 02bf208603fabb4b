// What fp8 and I8 have behind their sums. fp8: sums in F32 beside those of mma.sync, which keeps fewer bits of them, and scales. Those that vary along k multiply what a stage, 128
// of k, has added up, on its way to the sums in F32; those of whole rows and columns the finished sums.
#pragma once
#include "sm80/options.cuh"

constexpr int MODE_A = GEMMEPI_SCALE_A, MODE_B = GEMMEPI_SCALE_B;
constexpr int STAGE_A = MODE_A > SCALE_OUTER ? MODE_A : SCALE_NONE, STAGE_B = MODE_B > SCALE_OUTER ? MODE_B : SCALE_NONE;
constexpr int WHOLE_A = MODE_A == SCALE_OUTER ? MODE_A : SCALE_NONE, WHOLE_B = MODE_B == SCALE_OUTER ? MODE_B : SCALE_NONE;
static_assert(TILE_K == SCALE_STEPS, "a stage has one block of scales");
static_assert(PROMOTES || !(STAGE_A || STAGE_B), "what varies along k has a stage's sums apart");

// The number of a row of op(A) or a column of op(B) in a block of k. Those beyond the end are anything: here the last one's.
template <int Mode>
__device__ inline float scale_number(const gpi__kernel_scale &scale, long long item, long long outer, long long extent, int k, int block) {
    if constexpr (Mode == SCALE_NONE)
        return 1;
    outer = outer < extent ? outer : extent - 1;
    const float *of_item = scale.data + item * scale.stride;
    if constexpr (Mode == SCALE_OUTER)
        return of_item[outer];
    Scale_line line = scale_line<Mode>(of_item, outer, extent, k);
    return line.at[block * line.step];
}

// Of I8: from whole numbers, as bits.
__device__ inline void to_floats(float (&sums)[ROW_BLOCKS][PAIRS * 2][4]) {
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS * PAIRS * 8; i++) {
        float &sum = sums[i / (PAIRS * 8)][i / 4 % (PAIRS * 2)][i % 4];
        sum = (float)__float_as_int(sum);
    }
}

// Where a warp's sums are: its item, first row and first column.
struct Place_of_sums {
    long long item;
    int row, column;
};

// Adds what a stage has added up, times its scales, or multiplies: sums = of_stage scale + sums, or sums scale.
template <int Of_a, int Of_b, bool Adds>
__device__ inline void scale_sums(const gpi__sm80_params &params, const Place_of_sums &place, int block,
                                  const float (&of_stage)[ROW_BLOCKS][PAIRS * 2][4], float (&sums)[ROW_BLOCKS][PAIRS * 2][4]) {
    constexpr int of_half = PAIRS * 2 / HALVES_IN;
    const gpi__epilogue_params &p = params.epilogue;
    int first_row = place.row + row_of_lane(), first_column = place.column + lane_of_row() * 2;
    asm volatile("" : "+r"(first_row), "+r"(first_column)); // addresses are computed anew, as to keep them takes registers
    float rows[ROW_BLOCKS * 2], columns[2];
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS * 2; i++) // a warp's rows are of one block, and its columns, but for halves
        rows[i] = Of_a == SCALE_BLOCK_128 && i ? rows[0]
                                               : scale_number<Of_a>(p.scale_a, place.item, first_row + i * 8, p.m, params.k, block);
#pragma unroll
    for (int j = 0; j < PAIRS * 2; j++) {
        long long column = column_of_half<HALVES_IN>(p, first_column + j % of_half * 8, j / of_half);
#pragma unroll
        for (int e = 0; e < 2; e++)
            if (Of_b != SCALE_BLOCK_128 || HALVES_IN == 2 || j + e == 0)
                columns[e] = scale_number<Of_b>(p.scale_b, place.item, column + e, p.n * HALVES_IN, params.k, block);
            else
                columns[e] = columns[0];
#pragma unroll
        for (int i = 0; i < ROW_BLOCKS * 4; i++) {
            float &sum = sums[i / 4][j][i % 4], factor = rows[i / 2] * columns[i % 2];
            sum = Adds ? fmaf(of_stage[i / 4][j][i % 4], factor, sum) : sum * factor;
        }
    }
}
