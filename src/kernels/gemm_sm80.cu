// Product and epilogue of operands of 16 bits or F32, from Turing on, of I8, and of fp8, but on Hopper: D = epilogue(alpha op(A) op(B) + beta C).
//
// A block has one tile. Its threads load 128 bytes of k at a time with cp.async into a ring of stages in shared memory,
// lines of 128 bytes whose eight units of 16 the i-th stands in place i ^ line % 8, so that neither they nor ldmatrix wait
// for a bank. Warps multiply with mma.sync, sums in registers, the next fragments loaded while the last are multiplied, and
// run the epilogue on those. F32 goes that way as TF32, of which mma.sync reads the upper 19 bits; or, strict, by fused
// multiply-adds, whose threads have the sums that mma.sync would leave them. Any ld and any alignment: what cp.async cannot
// take (an odd ld of 16 bits) comes through registers, and all does on Turing, which lacks cp.async.
//
// With IN_PARTS a block adds up a part of k, and leaves its sums in memory, for the pass to add up and finish.
//
// Rows and columns beyond m, n and k are zeros; the epilogue stores only what exists.
//
// The files in the order of reading:
//   options       what the host chooses, and the constants that follow
//   load          operands to shared memory
//   multiply      fragments and mma.sync
//   multiply_add  strict F32
//   scales        fp8 and I8
//   block_scales  scaled fp8 and E2M1, on RTX 50
//   finish        the epilogue
#include "sm80/block_scales.cuh"
#include "sm80/finish.cuh"
#include "sm80/load.cuh"
#include "sm80/multiply_add.cuh"
#if GEMMEPI_ELEMENT == 1
#include "sm80/scales.cuh"
#endif

// Blocks: tiles of all parts of all items; columns of tiles within bands of rows, so that what is under way at a time reads
// few rows of A and few columns of B.
extern "C" __global__ void __launch_bounds__(THREADS, GEMMEPI_BLOCKS)
    gemmepi_mma(GEMMEPI_PARAMS gpi__sm80_params params) {
    extern __shared__ __align__(128) u8 memory[];
    const gpi__epilogue_params &p = params.epilogue;
    u32 shared = (u32)__cvta_generic_to_shared(memory);
    u32 of_part = params.tile_rows * p.column_tiles, slice = blockIdx.x / of_part, rest = blockIdx.x - slice * of_part;
    u32 item = IN_PARTS ? slice / params.parts : slice; // slice: item * parts + part, of the sums in memory too
    int first_k = IN_PARTS ? (int)(slice - item * params.parts) * params.part_k : 0;
    u32 of_band = params.band * p.column_tiles, band = rest / of_band, above = band * params.band;
    u32 height = params.tile_rows - above < params.band ? params.tile_rows - above : params.band;
    u32 within = rest - band * of_band, tile_n = within / height, tile_m = above + within - tile_n * height;

    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warp_m = warp % WARPS_M, warp_n = warp / WARPS_M;
    Loader<A_ROWS, TILE_M, GEMMEPI_A_UNIT, 1> a(params.a, item, (long long)tile_m * TILE_M, p.m, first_k);
    Loader<B_ROWS, TILE_N, GEMMEPI_B_UNIT, HALVES_IN> b(params.b, item, (long long)tile_n * TILE_COLUMNS, p.n, first_k);
    u32 a_lane = shared + (FMA ? value_lane<A_ROWS>(warp_m * WARP_M, row_of_lane())
                               : fragment_lane<A_ROWS>(warp_m * WARP_M, lane / 8 % 2, lane / 16));
    u32 b_lane = shared + A_BYTES + (FMA ? value_lane<B_ROWS>(warp_n * WARP_COLUMNS, lane_of_row() * 2)
                                         : fragment_lane<B_ROWS>(warp_n * WARP_COLUMNS, lane / 16, lane / 8 % 2));
    Block_scales scales(params, item, (int)(tile_m * TILE_M), (int)(tile_n * TILE_COLUMNS), first_k, warp_m * WARP_M,
                        warp_n * WARP_COLUMNS, shared);
    int k_left = IN_PARTS && params.k - first_k > params.part_k ? params.part_k : params.k - first_k;
    int steps = (k_left + TILE_K - 1) / TILE_K; // beyond the last no byte is read
#pragma unroll 1
    for (int i = 0; i < STAGES - 1; i++) {
        u32 stage = shared + i * STAGE_BYTES;
        if (i == 0)
            after_launches_before(); // in a branch, or ptxas moves it up to before all these divisions
#pragma unroll
        for (int part = 0; part < 4; part++) {
            a.fetch(stage, part, k_left);
            b.fetch(stage + A_BYTES, part, k_left);
            a.put(stage, part);
            b.put(stage + A_BYTES, part);
        }
        scales.fetch(stage, k_left);
        copies_commit();
        a.next();
        b.next();
        k_left -= TILE_K;
    }
    float sums[ROW_BLOCKS][PAIRS * 2][4] = {};
#if GEMMEPI_ELEMENT == 1
    const Place_of_sums place = {item, (int)(tile_m * TILE_M) + warp_m * WARP_M, (int)(tile_n * TILE_COLUMNS) + warp_n * WARP_COLUMNS};
#endif
    Fragments fragments[2];
    u32 read = 0, written = (STAGES - 1) * STAGE_BYTES; // stages
    copies_wait<STAGES - 2>();
    __syncthreads();
    if (!FMA)
        load_fragments(a_lane, b_lane, 0, fragments[0]);
    scales.load(0, 0, fragments[0]);
    for (int block = 0; block < steps; block++) {
        Stage_sums of_stage = {}; // FMA: so that fewer roundings meet large sums; PROMOTES; F16_SUMS
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            bool last = step == STEPS - 1;
            // into the stage whose last fragments all warps have
            a.fetch(shared + written, step, k_left);
            b.fetch(shared + written + A_BYTES, step, k_left);
#if GEMMEPI_FMA
            multiply_add(a_lane + read, b_lane + read, step, of_stage);
#endif
            if (last) { // the next stage; behind the last one is what nobody uses
                a.put(shared + written, step);
                b.put(shared + written + A_BYTES, step);
                scales.fetch(shared + written, k_left);
                copies_commit();
                written = written + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : written + STAGE_BYTES;
                read = read + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : read + STAGE_BYTES;
                copies_wait<STAGES - 2>();
                __syncthreads();
            }
            if (!FMA) {
                load_fragments(a_lane + read, b_lane + read, (step + 1) % STEPS, fragments[(step + 1) % 2]);
                scales.load(read, (step + 1) % STEPS, fragments[(step + 1) % 2]);
                if (PROMOTES || F16_SUMS)
                    multiply_fragments(fragments[step % 2], of_stage);
                else
                    multiply_fragments(fragments[step % 2], sums);
            }
            if (!last) {
                a.put(shared + written, step);
                b.put(shared + written + A_BYTES, step);
            }
        }
        if (FMA || F16_SUMS)
            take_sums(of_stage, sums);
#if GEMMEPI_ELEMENT == 1
        if (PROMOTES)
            scale_sums<STAGE_A, STAGE_B, true>(params, place, first_k / TILE_K + block, of_stage, sums);
#endif
        a.next();
        b.next();
        k_left -= TILE_K;
    }
    copies_wait<0>();
    __syncthreads();
#if GEMMEPI_ELEMENT == 1
    if (GEMMEPI_OF_I8)
        to_floats(sums);
    if (WHOLE_A || WHOLE_B)
        scale_sums<WHOLE_A, WHOLE_B, false>(params, place, 0, sums, sums);
#endif
    long long line = ((long long)slice * p.row_tiles) + tile_m * WARPS_M + warp_m;
    finish(params, slice, (int)(tile_m * TILE_M) + warp_m * WARP_M, (int)(tile_n * TILE_COLUMNS) + warp_n * WARP_COLUMNS, line,
           shared + warp * (STAGED_MATRICES * STAGED_BYTES), sums);
}
