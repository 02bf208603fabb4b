// A tile's sums: wgmma over the stages of its k.
#pragma once
#include "sm90/pipeline.cuh"
#if GEMMEPI_ELEMENT == 1 // fp8
#include "sm90/scales.cuh"
#endif
#include "sm90/wgmma.cuh"

// One of the two that multiply.
struct Warpgroup {
    u32 which, thread, tiles; // tiles: of the block
    int first_strip; // of the tile's rows
    int blocks;     // of a tile's k
    Pipeline pipeline;
};

#if GEMMEPI_PROMOTES
// sums = this warpgroup's rows of a tile, which are 0 before: of each stage by way of an instruction's sums, of some columns after others.
// While these go to the sums, the other warpgroup multiplies. All stages are left.
__device__ inline void add_up_tile(const Shared &shared, Warpgroup &mine, u32, float (&all_sums)[STRIPS][TILE_N / 2]) {
    Pipeline &pipeline = mine.pipeline;
    float (&sums)[TILE_N / 2] = all_sums[0];
    float partial[COLUMNS / 2];
    int blocks = mine.blocks;
    u32 row = mine.first_strip * 64 + mine.thread / 32 * 16 + mine.thread % 32 / 4;
#pragma unroll
    for (int i = 0; i < (__CUDACC_VER_MAJOR__ < 13 ? COLUMNS / 2 : 0); i++) // as begin_sums() says
        partial[i] = 0;
#pragma unroll 1
    do { // there is one at least
        u64 a = descriptor(shared.a(pipeline.stage) + mine.first_strip * LINES_64), b = descriptor(shared.b(pipeline.stage));
        pipeline.wait_full();
        const Stage_scales scales = read_scales(shared, pipeline.stage, row);
#pragma unroll
        for (int column = 0; column < TILE_N; column += COLUMNS) {
            multiply_begin();
#pragma unroll
            for (int step = 0; step < STEPS; step++)
                multiply(partial, a + step * STEP<true>, b + column * (LINE >> 4) + step * STEP<true>, step > 0);
            multiply_commit();
            multiply_wait<0>();
            sums_are_there(partial);
            bool is_last = column + COLUMNS == TILE_N, reads_scales = (VARIES_B && !IS_UNIFORM) || HAS_FACTORS;
            if (is_last && !reads_scales)
                pipeline.release(pipeline.stage);
            promote(shared, pipeline.stage, column, scales, partial, sums);
            if (is_last && reads_scales) {
                if (HAS_FACTORS && blocks == 1)
                    multiply_by_factors(shared, pipeline.stage, row, sums);
                __syncwarp();
                pipeline.release(pipeline.stage);
            }
        }
        pipeline.advance();
    } while (--blocks);
}
#else
// A strip's rows in one of a stage's STEPS of k. adds: in the first step, to what is there; the others always do.
__device__ inline void multiply_strip(u64 a, u64 b, int step, int strip, int adds, float (&sums)[STRIPS][TILE_N / 2]) {
    multiply(sums[strip], a + strip * (LINES_64 >> 4) + step * STEP<A_ROWS>, b + step * STEP<B_ROWS>,
             step > 0 ? 1 : adds);
}

// sums = this warpgroup's rows of a tile. The last stage is still being read.
__device__ inline void add_up(const Shared &shared, Pipeline &pipeline, int first_strip, int blocks,
                              float (&sums)[STRIPS][TILE_N / 2]) {
    u32 last = 0, adds = 0;
#pragma unroll 1
    do { // there is one at least
        u64 a = descriptor(shared.a(pipeline.stage) + first_strip * LINES_64), b = descriptor(shared.b(pipeline.stage));
        pipeline.wait_full();
        multiply_begin();
#pragma unroll
        for (int step = 0; step < STEPS; step++)
#pragma unroll
            for (int strip = 0; strip < STRIPS; strip++)
                multiply_strip(a, b, step, strip, adds, sums);
        multiply_commit();
        multiply_wait<1>();
        pipeline.release(last, adds); // the stage before is read
        asm volatile("mov.u32 %0, 1;" : "=r"(adds)); // not seen through: one copy of the loop is enough
        last = pipeline.stage;
        pipeline.advance();
    } while (--blocks);
}

// The block's tile `count` in its warpgroup's turn, and the stages told to be free.
__device__ inline void add_up_tile(const Shared &shared, Warpgroup &mine, u32 count, float (&sums)[STRIPS][TILE_N / 2]) {
    if (PING_PONG)
        turn_wait(mine.which);
    add_up(shared, mine.pipeline, mine.first_strip, mine.blocks, sums);
    if (PING_PONG && count + 1 < mine.tiles)
        turn_give(1 - mine.which);
    multiply_wait<0>();
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++)
        sums_are_there(sums[strip]);
    mine.pipeline.release(mine.pipeline.last());
    if (PING_PONG)
        mine.pipeline.skip(mine.blocks);
}
#endif
