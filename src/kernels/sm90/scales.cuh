// Scales of fp8 operands. Those that vary along k come beside a stage's tiles, and what wgmma has added up of it is multiplied by them
// on its way to sums in F32. Those of whole rows and columns are factors of the finished sums, and come with the last stage, or where sums
// are not promoted straight from memory.
//
// wgmma keeps fewer bits of fp8's sums than F32 has: PROMOTES, so that the error of no more than 128 of k is that of one instruction's sums.
#pragma once
#include "sm90/pipeline.cuh"
#include "sm90/schedule.cuh"
#include "sm90/wgmma.cuh"

// >>A's rows, where an index says which they were

__device__ inline int scale_rows(const gpi__sm90_params &params) {
#if GEMMEPI_SCALES_GATHERED
    return (int)params.groups.rows_a;
#else
    return (int)params.epilogue.m;
#endif
}
__device__ inline int scale_row(const gpi__sm90_params &params, const Tile &tile, int row) {
#if GEMMEPI_SCALES_GATHERED
    return row < tile.end ? params.groups.index_a[row] : 0;
#else
    return row;
#endif
}

// >>the warp that brings the scales of stages

// Where the number of a column of B's tile, or of 64, stands: those of a lane's columns of an instruction side by side, as it reads them
// four at a time; from one of a row's four lanes to the next the banks differ.
__device__ inline u32 place_of_b(int column) {
    if (IS_UNIFORM)
        return (u32)column;
    u32 within = (u32)column % COLUMNS;
    return (u32)column / COLUMNS * (4 * LANE_SCALES) + within % 8 / 2 * LANE_SCALES + within / 8 * 2 + within % 2;
}

// Where an operand's numbers of an item begin, and how far it is from one block of k to the next.
struct Scale_block {
    const float *at;
    long long step;
};
template <int Mode>
__device__ inline Scale_block scale_block(const gpi__kernel_scale &scale, u32 item, int extent, int k, int block) {
    Scale_line line = scale_line<Mode>(scale.data + item * scale.stride, 0, extent, k);
    if (Mode == SCALE_OUTER)
        return {line.at, 0};
    return {line.at + block * line.step, line.step};
}
// From there to that of a row or column; those beyond the end are anything: here the last one's.
template <int Mode> __device__ inline int scale_place(int outer, int extent, int k) {
    int there = outer < extent ? outer : extent - 1;
    return Mode != SCALE_BLOCK_128 ? there : there / SCALE_STEPS * ((k + 4 * SCALE_STEPS - 1) / (4 * SCALE_STEPS) * 4);
}

// A lane's arrival when all of its numbers have come.
__device__ inline void arrive_behind_copies(u32 barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// A warp: to the stages of all tiles. It waits for a stage to be left, not for the numbers to come.
__device__ inline void bring_scales(const gpi__sm90_params &params, const Shared &shared, const Work &work) {
    const gpi__epilogue_params &p = params.epilogue;
    const int rows = scale_rows(params), columns = (int)p.n * HALVES_IN;
    Pipeline pipeline = Pipeline::of_loader(shared);
#pragma unroll 1
    for (u32 t = work.first; t < count_tiles(params); t += work.step) {
        const Tile tile = tile_of(params, t, work.rank);
        int block = begin_of_k(params, work.rank);
        Scale_block a = scale_block<GEMMEPI_SCALE_A>(p.scale_a, tile.item, rows, params.k, block);
        Scale_block b = scale_block<GEMMEPI_SCALE_B>(p.scale_b, tile.item, columns, params.k, block);
#pragma unroll 1
        for (; block < end_of_k(params, work.rank); block++) {
            int lane = (int)threadIdx.x % 32;
            asm volatile("" : "+r"(lane)); // places are computed anew, as to keep them takes registers
            bool is_last = block + 1 == end_of_k(params, work.rank);
            pipeline.wait_empty();
#pragma unroll
            for (int i = 0; i < (VARIES_A || is_last ? A_SCALES : 0); i += 32)
                copy_whole<4>(shared.scale_a(pipeline.stage, i + lane),
                           a.at + scale_place<GEMMEPI_SCALE_A>(scale_row(params, tile, first_row(tile) + i + lane), rows, params.k));
#pragma unroll
            for (int i = 0; i < (VARIES_B || is_last ? B_SCALES : 0); i += 32)
                if (B_SCALES % 32 == 0 || i + lane < B_SCALES)
                    copy_whole<4>(shared.scale_b(pipeline.stage, place_of_b(i + lane)),
                               b.at + scale_place<GEMMEPI_SCALE_B>(column_of(params, tile, (i + lane) * (IS_UNIFORM ? 64 : 1)),
                                                                 columns, params.k));
            arrive_behind_copies(shared.full(pipeline.stage));
            pipeline.advance();
            a.at += a.step;
            b.at += b.step;
        }
    }
}

// >>sums in F32

// Of a stage those of this lane's two rows, and of the 64 columns of each unit where they are the same.
struct Stage_scales {
    float rows[2], units[VARIES_B && IS_UNIFORM ? B_SCALES : 1];
};
__device__ inline float read_scale(u32 from) {
    float scale;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(scale) : "r"(from) : "memory");
    return scale;
}
// row: of the tile, this lane's first
__device__ inline Stage_scales read_scales(const Shared &shared, u32 stage, u32 row) {
    Stage_scales scales = {{1, 1}, {1}};
#pragma unroll
    for (int i = 0; i < (VARIES_A ? 2 : 0); i++)
        scales.rows[i] = read_scale(shared.scale_a(stage, row + i * 8));
#pragma unroll
    for (int i = 0; i < (IS_UNIFORM ? B_SCALES : 0); i++)
        scales.units[i] = read_scale(shared.scale_b(stage, i));
    return scales;
}

// The scales of a lane's columns among 16, from `first` of the tile on: two of each eight.
__device__ inline void read_column_scales(const Shared &shared, u32 stage, int first, float (&scales)[4]) {
    u32 nth = (u32)first / COLUMNS * (4 * LANE_SCALES) + threadIdx.x % 4 * LANE_SCALES + (u32)first % COLUMNS / 4;
    get_words(shared.scale_b(stage, nth), scales);
}

// What an instruction's columns, from `first` of the tile on, have added up, to the sums.
__device__ inline void promote(const Shared &shared, u32 stage, int first, const Stage_scales &scales,
                               const float (&partial)[COLUMNS / 2], float (&sums)[TILE_N / 2]) {
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i += 8) { // 16 columns, of each eight of which this lane has two, of two rows
        float of_columns[4] = {1, 1, 1, 1};
        if (VARIES_B && !IS_UNIFORM)
            read_column_scales(shared, stage, first + i * 2, of_columns);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float x = partial[i + j], row = scales.rows[j / 2 % 2];
            if (VARIES_B && IS_UNIFORM)
                row *= scales.units[(first + i * 2) / 64];
            if (VARIES_B && !IS_UNIFORM)
                x *= of_columns[j / 4 * 2 + j % 2];
            float &sum = sums[first / 2 + i + j];
            sum = VARIES_A || VARIES_B ? fmaf(x, row, sum) : sum + x;
        }
    }
}

// >>factors of finished sums

// PROMOTES: they are beside the tile's last stage. row: of the tile, this lane's first
__device__ inline void multiply_by_factors(const Shared &shared, u32 stage, u32 row, float (&sums)[TILE_N / 2]) {
    float rows[2] = {1, 1};
#pragma unroll
    for (int i = 0; i < (FACTOR_A ? 2 : 0); i++)
        rows[i] = read_scale(shared.scale_a(stage, row + i * 8));
#pragma unroll
    for (int i = 0; i < TILE_N / 2; i += 8) {
        float columns[4] = {1, 1, 1, 1};
        if (FACTOR_B)
            read_column_scales(shared, stage, i * 2, columns);
#pragma unroll
        for (int j = 0; j < 8; j++)
            sums[i + j] *= rows[j / 2 % 2] * columns[j / 4 * 2 + j % 2];
    }
}
// row: the warp's first of a strip. What lies beyond the end stays as it is.
__device__ inline void multiply_by_factors(const gpi__sm90_params &params, const Tile &tile, int row, float (&sums)[TILE_N / 2]) {
    if constexpr (HAS_FACTORS && !PROMOTES) {
        const gpi__epilogue_params &p = params.epilogue;
        int lane = (int)threadIdx.x % 32, first_row = row + lane / 4, column = lane % 4 * 2;
        float rows[2] = {1, 1}, columns[2] = {1, 1};
        if constexpr (GEMMEPI_SCALE_A == SCALE_OUTER)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (first_row + i * 8 < (int)p.m)
                    rows[i] = p.scale_a.data[tile.item * p.scale_a.stride + scale_row(params, tile, first_row + i * 8)];
#pragma unroll
        for (int unit = 0; unit < TILE_N; unit += 64) { // of columns that lie side by side
            const float *of_unit = p.scale_b.data + tile.item * p.scale_b.stride + column_of(params, tile, unit) + column;
            int left = span_left(params, tile) - unit % SPAN - column;
            asm volatile("" : "+l"(of_unit), "+r"(left)::"memory"); // a unit after the other: there are no registers for all
#pragma unroll
            for (int i = 0; i < 32; i += 4) {
                if constexpr (GEMMEPI_SCALE_B == SCALE_OUTER)
#pragma unroll
                    for (int j = 0; j < 2; j++)
                        columns[j] = i * 2 + j < left ? of_unit[i * 2 + j] : 1;
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sums[unit / 2 + i + j] *= rows[j / 2] * columns[j % 2];
            }
        }
    }
}
