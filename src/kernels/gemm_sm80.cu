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

// The tile of a block. slice: item * parts + part, of the sums in memory too.
struct Place_of_block {
    u32 slice, item, tile_m, tile_n;
    int first_k;
};

// Blocks are tiles of all parts of all items; columns of tiles inside bands of rows, so that what is under way at a time reads
// few rows of A and few columns of B.
__device__ inline Place_of_block place_of_block(const gpi__sm80_params &params) {
    Place_of_block place;
    u32 of_part = params.tile_rows * params.epilogue.column_tiles, slice = blockIdx.x / of_part, rest = blockIdx.x - slice * of_part;
    place.slice = slice;
    place.item = IN_PARTS ? slice / params.parts : slice;
    place.first_k = IN_PARTS ? (int)(slice - place.item * params.parts) * params.part_k : 0;
    u32 of_band = params.band * params.epilogue.column_tiles, band = rest / of_band, above = band * params.band;
    u32 height = params.tile_rows - above < params.band ? params.tile_rows - above : params.band;
    u32 inside = rest - band * of_band;
    place.tile_n = inside / height;
    place.tile_m = above + inside - place.tile_n * height;
    return place;
}

// What threads load of a stage: fetch and put of A and B, by parts, each put after its fetch.
struct Loaders {
    Loader<A_ROWS, TILE_M, GEMMEPI_A_UNIT, 1> a;
    Loader<B_ROWS, TILE_N, GEMMEPI_B_UNIT, HALVES_IN> b;
    __device__ Loaders(const gpi__sm80_params &params, const Place_of_block &at)
        : a(params.a, at.item, (long long)at.tile_m * TILE_M, params.epilogue.m, at.first_k),
          b(params.b, at.item, (long long)at.tile_n * TILE_COLUMNS, params.epilogue.n, at.first_k) {}
    __device__ void fetch(u32 stage, int part, int k_left) {
        a.fetch(stage, part, k_left);
        b.fetch(stage + A_BYTES, part, k_left);
    }
    __device__ void put(u32 stage, int part) {
        a.put(stage, part);
        b.put(stage + A_BYTES, part);
    }
    __device__ void load(u32 stage, int k_left) {
#pragma unroll
        for (int part = 0; part < 4; part++) {
            fetch(stage, part, k_left);
            put(stage, part);
        }
    }
    __device__ void next() {
        a.next();
        b.next();
    }
};

__device__ inline u32 stage_after(u32 stage) {
    return stage + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : stage + STAGE_BYTES;
}

#if GEMMEPI_ELEMENT == 1
__device__ inline void scale_whole(const gpi__sm80_params &params, const Place_of_sums &place, float (&sums)[ROW_BLOCKS][PAIRS * 2][4]) {
    if (GEMMEPI_OF_I8)
        to_floats(sums);
    if (WHOLE_A || WHOLE_B)
        scale_sums<WHOLE_A, WHOLE_B, false>(params, place, 0, sums, sums);
}
#endif

__device__ inline void multiply_step(const Fragments &fragments, Stage_sums &of_stage, float (&sums)[ROW_BLOCKS][PAIRS * 2][4]) {
    if (PROMOTES || F16_SUMS)
        multiply_fragments(fragments, of_stage);
    else
        multiply_fragments(fragments, sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, GEMMEPI_BLOCKS)
    gemmepi_mma(GEMMEPI_PARAMS gpi__sm80_params params) {
    extern __shared__ __align__(128) u8 memory[];
    const gpi__epilogue_params &p = params.epilogue;
    u32 shared = (u32)__cvta_generic_to_shared(memory);
    Place_of_block at = place_of_block(params);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warp_m = warp % WARPS_M, warp_n = warp / WARPS_M;
    Loaders loaders(params, at);
    u32 a_lane = shared + (FMA ? value_lane<A_ROWS>(warp_m * WARP_M, row_of_lane())
                               : fragment_lane<A_ROWS>(warp_m * WARP_M, lane / 8 % 2, lane / 16));
    u32 b_lane = shared + A_BYTES + (FMA ? value_lane<B_ROWS>(warp_n * WARP_COLUMNS, lane_of_row() * 2)
                                         : fragment_lane<B_ROWS>(warp_n * WARP_COLUMNS, lane / 16, lane / 8 % 2));
    Block_scales scales(params, at.item, (int)(at.tile_m * TILE_M), (int)(at.tile_n * TILE_COLUMNS), at.first_k, warp_m * WARP_M,
                        warp_n * WARP_COLUMNS, shared);
    int k_left = IN_PARTS && params.k - at.first_k > params.part_k ? params.part_k : params.k - at.first_k;
    int steps = (k_left + TILE_K - 1) / TILE_K; // beyond the last no byte is read
#pragma unroll 1
    for (int i = 0; i < STAGES - 1; i++) {
        u32 stage = shared + i * STAGE_BYTES;
        if (i == 0)
            after_launches_before(); // in a branch, or ptxas moves it up to before all these divisions
        loaders.load(stage, k_left);
        scales.fetch(stage, k_left);
        copies_commit();
        loaders.next();
        k_left -= TILE_K;
    }

    float sums[ROW_BLOCKS][PAIRS * 2][4] = {};
#if GEMMEPI_ELEMENT == 1
    const Place_of_sums place = {at.item, (int)(at.tile_m * TILE_M) + warp_m * WARP_M,
                                 (int)(at.tile_n * TILE_COLUMNS) + warp_n * WARP_COLUMNS};
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
            loaders.fetch(shared + written, step, k_left); // into the stage whose last fragments all warps have
#if GEMMEPI_FMA
            multiply_add(a_lane + read, b_lane + read, step, of_stage);
#endif
            if (last) { // the next stage; behind the last one is what nobody uses
                loaders.put(shared + written, step);
                scales.fetch(shared + written, k_left);
                copies_commit();
                written = stage_after(written);
                read = stage_after(read);
                copies_wait<STAGES - 2>();
                __syncthreads();
            }
            if (!FMA) {
                load_fragments(a_lane + read, b_lane + read, (step + 1) % STEPS, fragments[(step + 1) % 2]);
                scales.load(read, (step + 1) % STEPS, fragments[(step + 1) % 2]);
                multiply_step(fragments[step % 2], of_stage, sums);
            }
            if (!last)
                loaders.put(shared + written, step);
        }
        if (FMA || F16_SUMS)
            take_sums(of_stage, sums);
#if GEMMEPI_ELEMENT == 1
        if (PROMOTES)
            scale_sums<STAGE_A, STAGE_B, true>(params, place, at.first_k / TILE_K + block, of_stage, sums);
#endif
        loaders.next();
        k_left -= TILE_K;
    }
    copies_wait<0>();
    __syncthreads();
#if GEMMEPI_ELEMENT == 1
    scale_whole(params, place, sums);
#endif
    long long line = ((long long)at.slice * p.row_tiles) + at.tile_m * WARPS_M + warp_m;
    finish(params, at.slice, (int)(at.tile_m * TILE_M) + warp_m * WARP_M, (int)(at.tile_n * TILE_COLUMNS) + warp_n * WARP_COLUMNS,
           line, shared + warp * (STAGED_MATRICES * STAGED_BYTES), sums);
}
