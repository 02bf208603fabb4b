// Scales of fp8 operands. Those that vary along k come beside a stage's tiles, and what wgmma has added up of it is multiplied by them
// on its way to sums in F32. Those of whole rows and columns are factors of the finished sums.
//
// wgmma keeps fewer bits of fp8's sums than F32 has: PROMOTES, so that the error of no more than 128 of k is that of one instruction's sums.
#pragma once
#include "sm90/pipeline.cuh"
#include "sm90/schedule.cuh"
#include "sm90/wgmma.cuh"

// >>the warp that brings the scales of stages

constexpr int A_ROUNDS = (A_SCALES + 31) / 32, B_ROUNDS = (B_SCALES + 31) / 32; // of a stage: numbers that each lane brings

// Where an operand's numbers of an item begin, and how far it is from one block of k to the next.
struct Scale_block {
    const float *at;
    long long step;
};
template <int Mode>
__device__ inline Scale_block scale_block(const gemmepi__kernel_scale &scale, u32 item, int extent, int k, int block) {
    Scale_line line = scale_line<Mode>(scale.data + item * scale.stride, 0, extent, k);
    return {line.at + block * line.step, line.step};
}
// From there to that of a row or column; those beyond the end are anything: here the last one's.
template <int Mode> __device__ inline int scale_place(int outer, int extent, int k) {
    int there = outer < extent ? outer : extent - 1;
    return Mode == SCALE_VECTOR_128 ? there : there / SCALE_STEPS * ((k + 4 * SCALE_STEPS - 1) / (4 * SCALE_STEPS) * 4);
}

template <int Count, int Rounds>
__device__ inline void put_scales(u32 to, const float (&scales)[Rounds]) {
    u32 lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < Rounds; i++)
        if (Count % 32 == 0 || i * 32 + lane < (u32)Count)
            asm volatile("st.shared.f32 [%0], %1;" ::"r"(to + (i * 32 + lane) * 4), "f"(scales[i]) : "memory");
}

// A warp: to the stages of all tiles, those of a stage on their way while it waits for it.
__device__ inline void bring_scales(const gemmepi__sm90_params &params, const Shared &shared, const Work &work) {
    const gemmepi__epilogue_params &p = params.epilogue;
    const int rows = (int)p.m, columns = (int)p.n * HALVES_IN;
    Pipeline pipeline = Pipeline::of_loader(shared);
#pragma unroll 1
    for (u32 t = work.first; t < params.tiles; t += work.step) {
        const Tile tile = tile_of(params, t, work.rank);
        int block = begin_of_k(params, work.rank);
        Scale_block a = scale_block<GEMMEPI_SCALE_A>(p.scale_a, tile.item, rows, params.k, block);
        Scale_block b = scale_block<GEMMEPI_SCALE_B>(p.scale_b, tile.item, columns, params.k, block);
#pragma unroll 1
        for (; block < end_of_k(params, work.rank); block++) {
            float of_a[A_ROUNDS ? A_ROUNDS : 1], of_b[B_ROUNDS ? B_ROUNDS : 1];
            int lane = (int)threadIdx.x % 32;
            asm volatile("" : "+r"(lane)); // places are computed anew, as to keep them takes registers
#pragma unroll
            for (int i = 0; i < A_ROUNDS; i++)
                of_a[i] = a.at[scale_place<GEMMEPI_SCALE_A>(tile.m * TILE_M + i * 32 + lane, rows, params.k)];
#pragma unroll
            for (int i = 0; i < B_ROUNDS; i++) {
                int nth = i * 32 + lane, line = nth < B_SCALES ? IS_UNIFORM ? nth * 64 : nth : 0;
                of_b[i] = b.at[scale_place<GEMMEPI_SCALE_B>(column_of(params, tile, line), columns, params.k)];
            }
            pipeline.wait_empty();
            if constexpr (A_SCALES > 0)
                put_scales<A_SCALES>(shared.scale_a(pipeline.stage, 0), of_a);
            if constexpr (B_SCALES > 0)
                put_scales<B_SCALES>(shared.scale_b(pipeline.stage, 0), of_b);
            __syncwarp();
            if (lane == 0)
                barrier_arrive_here(shared.full(pipeline.stage));
            pipeline.advance();
            a.at += a.step;
            b.at += b.step;
        }
    }
}

// >>sums in F32

// Of a stage those of this lane's two rows, and of the 64 columns of each unit where they are the same.
struct Stage_scales {
    float rows[2], units[B_SCALES && IS_UNIFORM ? B_SCALES : 1];
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

// What an instruction's columns, from `first` of the tile on, have added up, to the sums.
__device__ inline void promote(const Shared &shared, u32 stage, int first, const Stage_scales &scales,
                               const float (&partial)[COLUMNS / 2], float (&sums)[TILE_N / 2]) {
#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i += 4) { // eight columns, of which this lane has two, of two rows
        float of_columns[2] = {1, 1};
        if (VARIES_B && !IS_UNIFORM)
            asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                         : "=f"(of_columns[0]), "=f"(of_columns[1])
                         : "r"(shared.scale_b(stage, first + i * 2 + threadIdx.x % 4 * 2))
                         : "memory");
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float x = partial[i + j], row = scales.rows[j / 2];
            if (VARIES_B && IS_UNIFORM)
                row *= scales.units[(first + i * 2) / 64];
            if (VARIES_B && !IS_UNIFORM)
                x *= of_columns[j % 2];
            float &sum = sums[first / 2 + i + j];
            sum = HAS_SCALES ? fmaf(x, row, sum) : sum + x;
        }
    }
}

// >>factors of finished sums

// row: the warp's first of a strip. What lies beyond the end stays as it is.
__device__ inline void multiply_by_factors(const gemmepi__sm90_params &params, const Tile &tile, int row, float (&sums)[TILE_N / 2]) {
    if constexpr (HAS_FACTORS) {
        const gemmepi__epilogue_params &p = params.epilogue;
        int lane = (int)threadIdx.x % 32, first_row = row + lane / 4, column = lane % 4 * 2;
        float rows[2] = {1, 1}, columns[2] = {1, 1};
        if constexpr (GEMMEPI_SCALE_A == SCALE_OUTER)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (first_row + i * 8 < (int)p.m)
                    rows[i] = p.scale_a.data[tile.item * p.scale_a.stride + first_row + i * 8];
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
