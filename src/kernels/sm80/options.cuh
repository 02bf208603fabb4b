// What the host compiles the kernel for, as one list, and the constants that follow.
#pragma once

#define GEMMEPI_SPREAD 1
#define GEMMEPI_STAGES_WORDS 1
// Where threads read operands themselves, lanes i and i ^ 1 have the same of A, and i and i ^ 2 of B: shared memory gives 16 bytes to a
// whole half of a warp at a time if such two ask for the same, else to a quarter.
#ifdef GEMMEPI_FMA
#define GEMMEPI_APART GEMMEPI_FMA
#endif
#include "epilogue.cuh"
#include "shared_memory.cuh"

#ifndef GEMMEPI_TILE_M
#define GEMMEPI_TILE_M   128
#define GEMMEPI_TILE_N   128 // a multiple of 64
#define GEMMEPI_WARPS_M  4
#define GEMMEPI_WARPS_N  2
#define GEMMEPI_STAGES   3
#define GEMMEPI_BLOCKS   2  // of a multiprocessor
#define GEMMEPI_A_ROWS   1  // A's elements along k lie side by side; else those along m
#define GEMMEPI_B_ROWS   1  // likewise B's along k, else those along n
#define GEMMEPI_A_UNIT   16 // bytes at whose multiples all lines of A begin: 16, 8, 4 or 2
#define GEMMEPI_B_UNIT   16
#define GEMMEPI_ELEMENT  2      // bytes of an element of A and B; 1: of fp8 or I8, whose lines are along k
#define GEMMEPI_OPERANDS "bf16" // as mma.sync names them, which has no F32
#define GEMMEPI_FMA      0      // 1: fused multiply-adds of F32 instead
#define GEMMEPI_IN_PARTS 0      // 1: k is divided into params.parts
#endif

#ifndef GEMMEPI_OPERAND_B
#define GEMMEPI_OPERAND_B GEMMEPI_OPERANDS // of B, where it is another: of fp8
#endif
#ifndef GEMMEPI_PROMOTES
#define GEMMEPI_PROMOTES 0 // 1: of fp8: what mma.sync adds up of a stage goes to sums in F32, with the scales that vary along k
#endif

#ifndef GEMMEPI_BLOCK_SCALES
#define GEMMEPI_BLOCK_SCALES 0      // bytes of scales of 128 bytes of k: 4 of fp8, 8 or 16 of E2M1; 0: tensor cores scale nothing
#define GEMMEPI_BLOCK_SCALES_UNIT 4 // bytes at whose multiples all lines of scales begin
#endif

#ifndef GEMMEPI_F16_SUMS
#define GEMMEPI_F16_SUMS 0 // 1: of F16: mma.sync adds up a stage in F16, which goes to sums in F32
#endif

#ifndef GEMMEPI_OF_I8
#define GEMMEPI_OF_I8 0 // 1: of I8: sums are whole numbers, as bits, until all of k is added up
#endif

// fp8 where mma.sync has none, or NVRTC does not know it (before PTX 8.4): registers of it become two of F16, which has both its types
#define GEMMEPI_BY_F16                                                  \
    (GEMMEPI_ELEMENT == 1 && !GEMMEPI_OF_I8 && !GEMMEPI_BLOCK_SCALES && \
     (__CUDA_ARCH__ < 890 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ < 4)))

#if GEMMEPI_ELEMENT == 1
typedef u8 Element; // or two of E2M1
#if GEMMEPI_BLOCK_SCALES == 4
#define GEMMEPI_MMA "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X"
#define GEMMEPI_SCALE_TYPE ".ue8m0"
#elif GEMMEPI_BLOCK_SCALES == 8
#define GEMMEPI_MMA "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X"
#define GEMMEPI_SCALE_TYPE ".ue8m0"
#elif GEMMEPI_BLOCK_SCALES == 16
#define GEMMEPI_MMA "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
#define GEMMEPI_SCALE_TYPE ".ue4m3"
#else
#define GEMMEPI_MMA "m16n8k32"
#endif
#elif GEMMEPI_ELEMENT == 2
typedef u16 Element;
#define GEMMEPI_MMA "m16n8k16"
#else
typedef u32 Element;
#define GEMMEPI_MMA "m16n8k8"
#endif
constexpr int ELEMENT = GEMMEPI_ELEMENT, LINE = 128;
constexpr bool IN_PARTS = GEMMEPI_IN_PARTS;
constexpr bool FMA = GEMMEPI_FMA; // ELEMENT 4 without it: TF32
constexpr bool PROMOTES = GEMMEPI_PROMOTES, F16_SUMS = GEMMEPI_F16_SUMS;
constexpr int TILE_M = GEMMEPI_TILE_M, TILE_N = GEMMEPI_TILE_N, TILE_K = LINE / ELEMENT, STAGES = GEMMEPI_STAGES;
constexpr int STEPS = 4; // into which a stage is divided, of 32 bytes of k
constexpr int WARPS_M = GEMMEPI_WARPS_M, WARPS_N = GEMMEPI_WARPS_N, THREADS = 32 * WARPS_M * WARPS_N;
constexpr int WARP_M = TILE_M / WARPS_M, WARP_N = TILE_N / WARPS_N; // GATED: WARP_N counts both halves' columns
constexpr bool A_ROWS = GEMMEPI_A_ROWS, B_ROWS = GEMMEPI_B_ROWS;
constexpr int TILE_COLUMNS = TILE_N / HALVES_IN, WARP_COLUMNS = WARP_N / HALVES_IN; // of the result, of either half
constexpr int ROW_BLOCKS = WARP_M / 16, PAIRS = WARP_N / 16; // of mma's 16 rows; of two of its 8 columns
// What a stage adds up, where that has registers of its own: as many numbers as the sums, or pairs in F16.
#if GEMMEPI_F16_SUMS
typedef u32 Stage_sums[ROW_BLOCKS][PAIRS * 2][2];
#else
typedef float Stage_sums[ROW_BLOCKS][PAIRS * 2][4];
#endif
constexpr int BOX = TILE_K * LINE; // as many lines; along m or n where those lie side by side
constexpr int SCALES = GEMMEPI_BLOCK_SCALES;
constexpr u32 A_BYTES = TILE_M * LINE, B_BYTES = TILE_N * LINE;
constexpr u32 STAGE_BYTES = A_BYTES + B_BYTES + (TILE_M + TILE_N) * SCALES;
// Results of 16 bits, and wider ones that do not lie at multiples of 16 bytes, go through shared memory, where the stages were, 16
// rows and a box's columns at a time, 128 bytes at most.
constexpr bool STAGED = STAGES_D || STAGES_AUX;
constexpr bool STAGES_WIDE = (STAGES_D && sizeof(GEMMEPI_D_TYPE) == 4) || (STAGES_AUX && sizeof(GEMMEPI_AUX_TYPE) == 4);
constexpr int GROUP = 32, GROUPS = WARP_COLUMNS / GROUP; // of columns: a run of each lane
constexpr int BOX_GROUPS = GROUPS % 2 || STAGES_WIDE ? 1 : 2, BOX_COLUMNS = BOX_GROUPS * GROUP;
constexpr int STAGED_D = STAGES_D ? HALVES_OUT : 0, STAGED_MATRICES = STAGED_D + (STAGES_AUX ? HALVES_IN : 0);
constexpr int STAGED_BYTES = 16 * LINE;
static_assert(!FINDS, "no scales are found here");
static_assert(ELEMENT > 1 || (A_ROWS && B_ROWS), "ldmatrix turns no bytes");
static_assert(STAGE_BYTES % LINE == 0, "what exchanges units by an address begins at whole lines");
static_assert(WARP_M % 16 == 0 && WARP_COLUMNS % GROUP == 0, "a warp has whole runs of both halves");
static_assert(TILE_COLUMNS % TILE_K == 0 || B_ROWS || HALVES_IN == 1, "lines along n are of one half");
static_assert(THREADS / 32 * STAGED_MATRICES * STAGED_BYTES <= STAGES * STAGE_BYTES, "results lie where the stages were");

// By what a line's units are exchanged. F32 that lies along m or n is read a word at a time: 4 lines, 32 bytes of each.
template <bool Rows> __device__ constexpr int turn_of(int line) {
    return Rows || ELEMENT == 2 ? line % 8 : line % 4 * 2;
}
