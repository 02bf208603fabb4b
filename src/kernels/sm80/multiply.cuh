// A stage multiplied by mma.sync: how its fragments are found in shared memory, and what the instruction is.
#pragma once
#include "mma.cuh"
#include "sm80/options.cuh"

// >>instructions

#if GEMMEPI_OF_I8
__device__ inline void multiply(float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    int whole[4];
    memcpy(whole, sums, sizeof whole);
    multiply_32(whole, a, b0, b1);
    memcpy(sums, whole, sizeof whole);
}
#elif GEMMEPI_BLOCK_SCALES
// sums += A B, each block of k times its scales, which lanes have in their lowest bytes: of A's rows lane / 4 and that + 8 the of_a-th two of
// four lanes, of B's columns lane / 4 the of_b-th of these.
__device__ inline void multiply(float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1, u32 scales_a, u32 scales_b, u16 of_a, u16 of_b) {
    asm volatile("mma.sync.aligned." GEMMEPI_MMA ".f32." GEMMEPI_OPERANDS "." GEMMEPI_OPERAND_B ".f32" GEMMEPI_SCALE_TYPE
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {0, %12}, {%11}, {0, %13};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(scales_a), "r"(scales_b), "h"(of_a),
                 "h"(of_b));
}
#elif GEMMEPI_BY_F16
// Exponent: the bits of it, as in e4m3.
template <char Exponent> __device__ inline void widen(u32 four, u32 &first, u32 &second) {
    u32 wide[2];
    if constexpr (Exponent == '4')
        unpack_fp8<E4M3>(four, wide);
    else
        unpack_fp8<E5M2>(four, wide);
    first = wide[0], second = wide[1];
}
// sums += A B: of each four of k the first two, then the others. A sum may have its products in any order, if A and B have the same.
__device__ inline void multiply(float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    u32 of_a[2][4], of_b[2][2];
#pragma unroll
    for (int i = 0; i < 4; i++)
        widen<GEMMEPI_OPERANDS[1]>(a[i], of_a[0][i], of_a[1][i]);
    widen<GEMMEPI_OPERAND_B[1]>(b0, of_b[0][0], of_b[1][0]);
    widen<GEMMEPI_OPERAND_B[1]>(b1, of_b[0][1], of_b[1][1]);
#pragma unroll
    for (int i = 0; i < 2; i++)
        multiply_16(F16(), sums, of_a[i], of_b[i][0], of_b[i][1]);
}
#elif !GEMMEPI_FMA
// sums += A B: 16 rows, 8 columns, 32 bytes of k.
__device__ inline void multiply(float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
    asm volatile(MULTIPLIED(GEMMEPI_MMA ".row.col.f32." GEMMEPI_OPERANDS "." GEMMEPI_OPERAND_B ".f32", "f"));
#else
    multiply_16(F16(), sums, a, b0, b1);
#endif
}
#endif

#if GEMMEPI_F16_SUMS
// sums += A B: pairs of columns, of 16 rows and 8 columns, 32 bytes of k.
__device__ inline void multiply(u32 (&sums)[2], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                 : "+r"(sums[0]), "+r"(sums[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else // half as many
#pragma unroll
    for (int i = 0; i < 2; i++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
                     : "+r"(sums[0]), "+r"(sums[1])
                     : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(i ? b1 : b0));
#endif
}
#endif

// >>fragments

// Where a lane's address of four 8 x 8 matrices is: those of 16 along m or n, `outer` 8 of which it names, and 32 bytes of
// k, `k` 16 of which. Words along m or n each lane loads itself: its own of the first matrix.
template <bool Rows> __device__ inline u32 fragment_lane(int first, int outer, int k) {
    int lane = threadIdx.x % 8, word = threadIdx.x % 32 / 4, line = threadIdx.x % 4;
    if (!Rows && ELEMENT == 4)
        return (u32)(first / TILE_K * BOX + line * LINE + ((first % TILE_K / 4 + word / 4 ^ turn_of<Rows>(line)) << 4) + word % 4 * 4);
    return Rows ? (u32)((first + outer * 8 + lane) * LINE + ((k ^ lane) << 4))
                : (u32)(first / TILE_K * BOX + (k * 8 + lane) * LINE + ((first % TILE_K / 8 ^ outer ^ lane) << 4));
}
// Of its i-th 16 along m or n, and the step-th 32 bytes of k.
template <bool Rows> __device__ inline u32 fragment_at(u32 lane, int i, int step) {
    constexpr int sixteens = TILE_K / 16, units = 16 * ELEMENT / 16; // of a line along m or n
    return Rows ? (lane ^ (u32)step << 5) + i * 16 * LINE
                : (lane ^ (u32)(i % sixteens * units) << 4) + i / sixteens * BOX + step * (TILE_K / STEPS) * LINE;
}
// KInner: of the four matrices, those of the same 8 along m or n follow each other, as B has them; else those of the same k.
template <bool Rows, bool KInner> __device__ inline void load_fragment(u32 from, u32 (&to)[4]) {
    if constexpr (Rows || ELEMENT == 2)
        load_matrices<!Rows>(from, to);
    else
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int outer = KInner ? i / 2 : i % 2, k = KInner ? i % 2 : i / 2;
            to[i] = get_word((from ^ (u32)outer << 5) + k * 4 * LINE);
        }
}

struct Fragments {
    u32 a[ROW_BLOCKS][4], b[PAIRS][4];
    u32 scales_a[(ROW_BLOCKS + 1) / 2], scales_b[PAIRS / 2]; // SCALES: of two times 16 rows, and of four times 8 columns, a lane each
};

__device__ inline void load_fragments(u32 a, u32 b, int step, Fragments &fragments) {
    constexpr int of_half = PAIRS / HALVES_IN;
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS; i++)
        load_fragment<A_ROWS, false>(fragment_at<A_ROWS>(a, i, step), fragments.a[i]);
#pragma unroll
    for (int i = 0; i < PAIRS; i++)
        load_fragment<B_ROWS, true>(fragment_at<B_ROWS>(b, i % of_half, step) + i / of_half * TILE_COLUMNS * LINE,
                                    fragments.b[i]);
}

template <class Sums> __device__ inline void multiply_fragments(const Fragments &fragments, Sums &sums) {
#if !GEMMEPI_FMA
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS; i++)
#pragma unroll
        for (int j = 0; j < PAIRS * 2; j++)
#if GEMMEPI_BLOCK_SCALES
            multiply(sums[i][j], fragments.a[i], fragments.b[j / 2][j % 2 * 2], fragments.b[j / 2][j % 2 * 2 + 1],
                     fragments.scales_a[i / 2], fragments.scales_b[j / 4], i % 2, j % 4);
#else
            multiply(sums[i][j], fragments.a[i], fragments.b[j / 2][j % 2 * 2], fragments.b[j / 2][j % 2 * 2 + 1]);
#endif
#endif
}

// What mma.sync has added up in F16 goes to sums in F32.
__device__ inline void take_sums(const u32 (&from)[ROW_BLOCKS][PAIRS * 2][2], float (&sums)[ROW_BLOCKS][PAIRS * 2][4]) {
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS * PAIRS * 8; i++) {
        u32 pair = from[i / (PAIRS * 8)][i / 4 % (PAIRS * 2)][i % 4 / 2];
        sums[i / (PAIRS * 8)][i / 4 % (PAIRS * 2)][i % 4] += to_f32(F16{(u16)(pair >> i % 2 * 16)});
    }
}
