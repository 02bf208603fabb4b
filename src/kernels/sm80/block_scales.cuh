// Scales of blocks of k on their way to mma.sync, which multiplies by them: of fp8 32 of k, in E8M0, of E2M1 32 or, in E4M3, 16. A stage has
// SCALES bytes of each line of A, then of B, behind both, of which a step reads a quarter.
#pragma once
#include "sm80/load.cuh"
#include "sm80/multiply.cuh"

#if GEMMEPI_BLOCK_SCALES
constexpr int BLOCK = LINE / SCALES; // bytes of k

// Of one operand's Lines, as Loader has them: a stage's, from `from` on to the first line's place. Those of rows and columns, and of k, that
// do not exist are 0. extent: along m or n, of which `first` lines are before the block's
template <int Lines, int Halves>
__device__ inline void copy_scales(u32 to, const u8 *from, long long ld, int extent, int first, int k_left) {
    constexpr int UNIT = GEMMEPI_BLOCK_SCALES_UNIT, PIECES = SCALES / UNIT, COUNT = Lines * PIECES, of_half = Lines / Halves;
    int valid = k_left <= 0 ? 0 : (k_left + BLOCK - 1) / BLOCK;
#pragma unroll
    for (int i = 0; i < COUNT; i += THREADS) {
        int one = i + threadIdx.x, line = one / PIECES, at = one % PIECES * UNIT, within = line % of_half;
        int bytes = first + within < extent ? valid - at : 0;
        if (COUNT % THREADS == 0 || one < COUNT)
            copy_some<UNIT>(to + one * UNIT, from + (line / of_half * extent + within) * ld + at,
                            bytes <= 0 ? 0 : bytes < UNIT ? bytes : UNIT);
    }
}

// >>fragments

__device__ inline u32 load_scales(u32 from) {
    u32 word;
    if constexpr (SCALES == 4)
        asm volatile("ld.shared.u8 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
    else if constexpr (SCALES == 8)
        asm volatile("ld.shared.u16 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
    else
        asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
    return word;
}

// Of the i-th 16 rows the first or second eight; of the j-th eight columns.
__device__ inline u32 line_of_a(u32 from, int i, int half) {
    return from + (i * 16 + half * 8) * SCALES;
}
__device__ inline u32 line_of_b(u32 from, int j) {
    constexpr int of_half = PAIRS * 2 / HALVES_IN;
    return from + (j % of_half * 8 + j / of_half * TILE_COLUMNS) * SCALES;
}

// Signs of scales in E4M3 go to the elements, as mma.sync knows none: a word of 8 elements, in whose line four blocks of 16 have scales.
__device__ inline u32 with_sign(u32 elements, u32 scales, int block) {
    return elements ^ (scales >> (8 * block + 7) & 1) * 0x88888888u;
}
// a, b: of row_of_lane() of the warp's rows and columns.
__device__ inline void take_signs(u32 a, u32 b, Fragments &fragments) {
    int block = lane_of_row() / 2;
    u32 signs = 0;
#pragma unroll
    for (u32 scales : fragments.scales_a)
        signs |= scales;
#pragma unroll
    for (u32 scales : fragments.scales_b)
        signs |= scales;
    if (__all_sync(~0u, !(signs & 0x80808080u)))
        return;
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS * 4; i++)
        fragments.a[i / 4][i % 4] = with_sign(fragments.a[i / 4][i % 4], load_scales(line_of_a(a, i / 4, i % 2)), block + i % 4 / 2 * 2);
#pragma unroll
    for (int j = 0; j < PAIRS * 4; j++)
        fragments.b[j / 4][j % 4] = with_sign(fragments.b[j / 4][j % 4], load_scales(line_of_b(b, j / 2)), block + j % 2 * 2);
#pragma unroll
    for (u32 &scales : fragments.scales_a)
        scales &= 0x7f7f7f7fu;
#pragma unroll
    for (u32 &scales : fragments.scales_b)
        scales &= 0x7f7f7f7fu;
}

// Of A and B. Where nothing is scaled it is empty, below.
struct Block_scales {
    const gpi__sm80_params &params;
    const u8 *a, *b;        // of the block's first row and column, and the next stage
    int tile_m, tile_n;     // these
    u32 a_lane, b_lane;     // this lane's of the warp's first rows and columns, in a stage

    // warp_m, warp_n: the warp's first row and column in the tile; shared: the first stage
    __device__ inline Block_scales(const gpi__sm80_params &params, long long item, int tile_m, int tile_n, int first_k, int warp_m,
                                   int warp_n, u32 shared)
        : params(params), tile_m(tile_m), tile_n(tile_n) {
        a = (const u8 *)params.scales_a.data + item * params.scales_a.stride + tile_m * params.scales_a.ld + first_k / BLOCK;
        b = (const u8 *)params.scales_b.data + item * params.scales_b.stride + tile_n * params.scales_b.ld + first_k / BLOCK;
        a_lane = shared + A_BYTES + B_BYTES + (warp_m + row_of_lane()) * SCALES;
        b_lane = a_lane + (TILE_M + warp_n - warp_m) * SCALES;
    }

    // Those of a stage, and goes on to the next.
    __device__ inline void fetch(u32 stage, int k_left) {
        u32 to = stage + A_BYTES + B_BYTES;
        copy_scales<TILE_M, 1>(to, a, params.scales_a.ld, (int)params.epilogue.m, tile_m, k_left);
        copy_scales<TILE_N, HALVES_IN>(to + TILE_M * SCALES, b, params.scales_b.ld, (int)params.epilogue.n, tile_n, k_left);
        a += SCALES;
        b += SCALES;
    }
    // read: from the first stage to the one that is read
    __device__ inline void load(u32 read, int step, Fragments &fragments) const {
        int lane = lane_of_row(), second = ROW_BLOCKS > 1 ? lane / 2 : 0;
        u32 of_a = a_lane + read + step * (SCALES / 4), of_b = b_lane + read + step * (SCALES / 4);
#pragma unroll
        for (int i = 0; i < (ROW_BLOCKS + 1) / 2; i++)
            fragments.scales_a[i] = load_scales(line_of_a(of_a, i * 2 + second, lane % 2));
#pragma unroll
        for (int j = 0; j < PAIRS / 2; j++)
            fragments.scales_b[j] = load_scales(line_of_b(of_b, j * 4) + lane * 8 * SCALES);
        if (SCALES == 16)
            take_signs(of_a, of_b, fragments);
    }
};
#else
struct Block_scales {
    __device__ inline Block_scales(const gpi__sm80_params &, long long, int, int, int, int, int, u32) {}
    __device__ inline void fetch(u32, int) {}
    __device__ inline void load(u32, int, Fragments &) const {}
};
#endif
