// Scales of blocks of k on their way to mma.sync, which multiplies by them: of fp8 32 of k, in E8M0, of E2M1 32 or, in E4M3, 16. A stage has
// SCALES bytes of each line of A, then of B, behind both, of which a step reads a quarter.
#pragma once
#include "sm80/load.cuh"
#include "sm80/multiply.cuh"

#if GEMMEPI_BLOCK_SCALES
constexpr int BLOCK = LINE / SCALES; // bytes of k

// Of one operand's Lines, as Loader has them; those of rows and columns, and of k, that do not exist are 0.
template <int Lines, int Halves> struct Scale_loader {
    static constexpr int UNIT = GEMMEPI_BLOCK_SCALES_UNIT, PIECES = SCALES / UNIT;
    const u8 *from;
    long long ld, apart;
    int exist;

    // first, extent: along m or n; first_k: in bytes
    __device__ inline Scale_loader(const gpi__kernel_matrix &x, long long item, long long first, long long extent, int first_k) {
        ld = x.ld;
        apart = extent;
        from = (const u8 *)x.data + item * x.stride + first * ld + first_k / BLOCK;
        exist = extent - first < Lines ? (int)(extent - first) : Lines;
    }
    // to: the first line's place
    __device__ inline void fetch(u32 to, int k_left) const {
        constexpr int of_half = Lines / Halves, COUNT = Lines * PIECES;
        int valid = k_left <= 0 ? 0 : (k_left + BLOCK - 1) / BLOCK;
#pragma unroll
        for (int i = 0; i < COUNT; i += THREADS) {
            int one = i + threadIdx.x, line = one / PIECES, at = one % PIECES * UNIT, within = line % of_half;
            int bytes = within < exist ? valid - at : 0;
            if (COUNT % THREADS == 0 || one < COUNT)
                copy_some<UNIT>(to + one * UNIT, from + (line / of_half * apart + within) * ld + at,
                                bytes <= 0 ? 0 : bytes < UNIT ? bytes : UNIT);
        }
    }
    __device__ inline void next() {
        from += SCALES;
    }
};

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

// Signs of scales in E4M3 go to the elements, as mma.sync knows none: a word of 8 elements, in whose line four blocks of 16 have scales.
__device__ inline u32 with_sign(u32 elements, u32 scales, int block) {
    return elements ^ (scales >> (8 * block + 7) & 1) * 0x88888888u;
}
__device__ inline void take_signs(u32 a, Fragments &fragments) {
    int block = lane_of_row() / 2;
    u32 signs = 0;
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS; i++)
        signs |= fragments.scales_a[i];
#pragma unroll
    for (int j = 0; j < PAIRS * 2; j++)
        signs |= fragments.scales_b[j];
    if (__all_sync(~0u, !(signs & 0x80808080u)))
        return;
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) { // of rows
            u32 scales = load_scales(a + (i * 16 + half * 8) * SCALES);
            fragments.a[i][half] = with_sign(fragments.a[i][half], scales, block);
            fragments.a[i][half + 2] = with_sign(fragments.a[i][half + 2], scales, block + 2);
        }
#pragma unroll
    for (int j = 0; j < PAIRS * 4; j++)
        fragments.b[j / 4][j % 4] = with_sign(fragments.b[j / 4][j % 4], fragments.scales_b[j / 2], block + j % 2 * 2);
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS; i++)
        fragments.scales_a[i] &= 0x7f7f7f7fu;
#pragma unroll
    for (int j = 0; j < PAIRS * 2; j++)
        fragments.scales_b[j] &= 0x7f7f7f7fu;
}

// Of A and B. Where nothing is scaled it is empty, below.
struct Block_scales {
    Scale_loader<TILE_M, 1> a;
    Scale_loader<TILE_N, HALVES_IN> b;
    u32 a_lane, b_lane; // this lane's of the warp's first rows and columns, in a stage

    // tile_m, tile_n: the block's first row and column; warp_m, warp_n: the warp's in these; shared: the first stage
    __device__ inline Block_scales(const gpi__sm80_params &params, long long item, long long tile_m, long long tile_n, int first_k,
                                   int warp_m, int warp_n, u32 shared)
        : a(params.scales_a, item, tile_m, params.epilogue.m, first_k), b(params.scales_b, item, tile_n, params.epilogue.n, first_k),
          a_lane(shared + A_BYTES + B_BYTES + (warp_m + row_of_lane()) * SCALES), b_lane(a_lane + (TILE_M + warp_n - warp_m) * SCALES) {}

    // Those of a stage, and goes on to the next.
    __device__ inline void fetch(u32 stage, int k_left) {
        a.fetch(stage + A_BYTES + B_BYTES, k_left);
        b.fetch(stage + A_BYTES + B_BYTES + TILE_M * SCALES, k_left);
        a.next();
        b.next();
    }
    // read: from the first stage to the one that is read
    __device__ inline void load(u32 read, int step, Fragments &fragments) const {
        constexpr int of_half = PAIRS * 2 / HALVES_IN;
        u32 of_a = a_lane + read + step * (SCALES / 4), of_b = b_lane + read + step * (SCALES / 4);
#pragma unroll
        for (int i = 0; i < ROW_BLOCKS; i++)
            fragments.scales_a[i] = load_scales(of_a + (i * 16 + threadIdx.x % 2 * 8) * SCALES);
#pragma unroll
        for (int j = 0; j < PAIRS * 2; j++)
            fragments.scales_b[j] = load_scales(of_b + (j % of_half * 8 + j / of_half * TILE_COLUMNS) * SCALES);
        if (SCALES == 16)
            take_signs(of_a, fragments);
    }
};
#else
struct Block_scales {
    __device__ inline Block_scales(const gpi__sm80_params &, long long, long long, long long, int, int, int, u32) {}
    __device__ inline void fetch(u32, int) {}
    __device__ inline void load(u32, int, Fragments &) const {}
};
#endif
