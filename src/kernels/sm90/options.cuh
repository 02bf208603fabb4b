// What the host compiles the kernel for, as one list; and all constants that follow from it for more than one file.
#pragma once

#define GEMMEPI_SPREAD 1 // the epilogue finds sums as wgmma leaves them
#if !(GEMMEPI_PARTS > 1)
#define GEMMEPI_HOLDS 1 // of all rows that a thread has
#endif
#include "epilogue.cuh"
#include "groups.cuh"

// >>the host's choices

#ifndef GEMMEPI_TILE_M
#define GEMMEPI_TILE_M     128
#define GEMMEPI_TILE_N     128 // a multiple of 64
#define GEMMEPI_STAGES     5
#define GEMMEPI_BUFFERS    1 // of each warp's results on their way to memory
#define GEMMEPI_PING_PONG  1 // the two warpgroups take tiles by turns; else they share one
#define GEMMEPI_CLUSTER_M  2 // blocks of a cluster along m, which share tiles of B
#define GEMMEPI_CLUSTER_N  1
#define GEMMEPI_PARTS      1 // more: k is divided into as many parts, which the blocks of a cluster add up; each has one tile
#define GEMMEPI_A_ROWS     1 // A's elements along k lie side by side; else those along m
#define GEMMEPI_B_ROWS     1 // likewise B's along k, else those along n
#define GEMMEPI_OPERANDS   "bf16" // of A and B: "bf16", "f16" or, where elements along k lie side by side, "tf32" of F32, "e4m3" and "e5m2"
#define GEMMEPI_ELEMENT    2      // bytes of an element of A or B
#define GEMMEPI_BOX_GROUPS 2      // of a box: 2 where what TMA moves of results is of 16 bits, 1 where it is of 32
#define GEMMEPI_TAILS      0      // some tiles reach beyond m or n by boxes or lines of them, which are not loaded
#endif
#ifndef GEMMEPI_OPERAND_B
#define GEMMEPI_OPERAND_B  GEMMEPI_OPERANDS // of B, where it is another: of fp8
#endif
#ifndef GEMMEPI_PROMOTES
#define GEMMEPI_PROMOTES   0 // 1: of fp8: what wgmma adds up of a stage goes to sums in F32, with the scales that vary along k
#endif
#ifndef GEMMEPI_UNIFORM
#define GEMMEPI_UNIFORM    0 // 1: 64 columns of a tile, from a multiple of 64 on, have one scale of B
#endif
#ifndef GEMMEPI_SUMMED
#define GEMMEPI_SUMMED     0 // the operand whose totals over k are wanted: 1 A, 2 B
#endif
#ifndef GEMMEPI_SUMS_TYPE
#define GEMMEPI_SUMS_TYPE  F32 // of bias_grad
#define GEMMEPI_SUMS_ADD   0   // 1: to what is there
#endif

// >>threads

constexpr int COMPILER = __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__;
constexpr bool PING_PONG = GEMMEPI_PING_PONG;
constexpr int WARPGROUP = 128, CONSUMERS = 2, THREADS = WARPGROUP * (CONSUMERS + 1); // the first warpgroup loads
constexpr int WARPS = CONSUMERS * 4;                                                 // that multiply
constexpr u32 TURNS = PING_PONG ? CONSUMERS : 1;                                     // tiles from a warpgroup's one to its next
constexpr int SUMMED = GEMMEPI_SUMMED, SUMMERS = SUMMED ? 3 : 0;                     // warps that make totals

// >>tiles and clusters

constexpr int TILE_M = GEMMEPI_TILE_M, TILE_N = GEMMEPI_TILE_N;
constexpr int CLUSTER_M = GEMMEPI_CLUSTER_M, CLUSTER_N = GEMMEPI_CLUSTER_N, PARTS = GEMMEPI_PARTS;
constexpr int CLUSTER = CLUSTER_M * CLUSTER_N * PARTS;
constexpr int STRIPS = TILE_M / 64 / (PING_PONG ? 1 : CONSUMERS); // of 64 rows, that a warpgroup has
// GATED: a tile of B is two, of the same columns of both halves; value and gate of a column end in the same thread.
constexpr int TILE_COLUMNS = TILE_N / HALVES_IN;         // of the result, of either half
constexpr int GROUP = 32, GROUPS = TILE_COLUMNS / GROUP; // of columns: a run of each lane
// A tile of B has the columns of each half in a span of its own; halves of groups as narrow as GROUP lie side by side, in one span for both.
constexpr bool SIDE_BY_SIDE = IN_GROUPS && HALF_GROUP == GROUP && HALVES_IN > 1;
constexpr int SPANS = SIDE_BY_SIDE ? 1 : HALVES_IN, SPAN = TILE_N / SPANS;
static_assert(!IN_GROUPS || HALF_GROUP == GROUP || HALF_GROUP % 64 == 0, "B is loaded 64 columns at a time, or some that divide them");
static_assert(PARTS == 1 || (!PING_PONG && CLUSTER_M * CLUSTER_N == 1), "a cluster is one tile's");

// >>stages: tiles of A and B

constexpr int STAGES = GEMMEPI_STAGES;
constexpr bool A_ROWS = GEMMEPI_A_ROWS, B_ROWS = GEMMEPI_B_ROWS;
constexpr int LINE = 128, TILE_K = LINE / GEMMEPI_ELEMENT; // bytes of a stage's k, or of 64 elements along m or n
constexpr int LINES_64 = 64 * LINE;
constexpr u32 A_BYTES = TILE_M * LINE, B_BYTES = TILE_N * LINE, STAGE_BYTES = A_BYTES + B_BYTES;
static_assert(GEMMEPI_ELEMENT == 2 || (A_ROWS && B_ROWS && !SUMMED), "wgmma takes other than 16 bits along k alone");

// >>fp8: a stage is as long as what a scale of VECTOR_128 or BLOCK_128 is for

constexpr bool PROMOTES = GEMMEPI_PROMOTES;
constexpr bool VARIES_A = GEMMEPI_SCALE_A == SCALE_VECTOR_128 || GEMMEPI_SCALE_A == SCALE_BLOCK_128; // along k
constexpr bool VARIES_B = GEMMEPI_SCALE_B == SCALE_VECTOR_128 || GEMMEPI_SCALE_B == SCALE_BLOCK_128;
// Scales of whole rows and columns are factors of finished sums: where these are promoted they come with a tile's last stage.
constexpr bool FACTOR_A = GEMMEPI_SCALE_A == SCALE_OUTER, FACTOR_B = GEMMEPI_SCALE_B == SCALE_OUTER, HAS_FACTORS = FACTOR_A || FACTOR_B;
constexpr bool HAS_SCALES = VARIES_A || VARIES_B || (PROMOTES && HAS_FACTORS); // beside a stage's tiles
// Of a stage: a scale for each row of A's tile, and one for each column of B's, or for each 64 where they are the same.
constexpr bool IS_UNIFORM = GEMMEPI_UNIFORM;
constexpr int A_SCALES = VARIES_A || (PROMOTES && FACTOR_A) ? TILE_M : 0;
constexpr int B_SCALES = VARIES_B || (PROMOTES && FACTOR_B) ? IS_UNIFORM ? TILE_N / 64 : TILE_N : 0;
constexpr int LANE_SCALES = (TILE_N > 128 ? 128 : TILE_N) / 4 + 4; // from one lane's numbers of B to the next one's
constexpr int B_PLACES = IS_UNIFORM ? B_SCALES : (B_SCALES + 127) / 128 * 4 * LANE_SCALES;
constexpr u32 SCALE_BYTES = (A_SCALES + B_PLACES + 3) / 4 * 16;
static_assert(!HAS_SCALES || (PROMOTES && TILE_K == SCALE_STEPS), "scales are multiplied in as sums are promoted");
static_assert(!PROMOTES || (GEMMEPI_ELEMENT == 1 && STRIPS == 1 && !PING_PONG), "registers have two sums of each element");

// >>boxes: what the epilogue takes at a time, a warp's 16 rows and 128 bytes of columns

constexpr int BOX_GROUPS = GEMMEPI_BOX_GROUPS, BOX_COLUMNS = BOX_GROUPS * GROUP;
constexpr int BOX_BYTES = 16 * LINE; // of one matrix
static_assert(TILE_COLUMNS % BOX_COLUMNS == 0, "tiles are of whole boxes");
// Of matrices with two halves a box has columns of one half, or both halves of a group that are together as wide.
constexpr bool BOXES_GROUPS = IN_GROUPS && HALF_GROUP < BOX_COLUMNS;
static_assert(!INTERLEAVED || HALF_GROUP == GROUP, "a group's pairs are next to each other");
// Inputs: what the epilogue reads comes by TMA a box ahead, into two buffers of each warp.
constexpr int INPUT_AUX = LOADS_AUX ? HALVES_SAVED : 0;
constexpr int INPUTS = INPUT_AUX + (LOADS_RESIDUAL ? HALVES_OUT : 0), INPUT_BUFFERS = INPUTS ? 2 : 0;
// Outputs: results of 16 and 32 bits leave by TMA, or in words, from OUTPUT_BUFFERS of each warp.
constexpr bool HAS_OUTPUTS = STAGES_D || STAGES_AUX;
constexpr int OUTPUT_D = STAGES_D ? HALVES_OUT : 0, OUTPUT_BUFFERS = GEMMEPI_BUFFERS;
constexpr int OUTPUTS = OUTPUT_D + (STAGES_AUX ? HALVES_IN : 0);

// >>how the epilogue goes

// What is the same for all rows is loaded a box ahead, where registers are left for it.
constexpr bool AHEAD = !FINDS && PARTS == 1 && STRIPS * TILE_N <= 256 && GEMMEPI_UNIT_ALPHA && !GEMMEPI_FORMULA_LACKS &&
                       !(GATED && (WRITES_AUX || (BACKWARD && STRIPS == 1)));
// One copy of the instructions for all columns, where there are many of them, as of some formulas and of gates' gradients in 32 bits; and
// where ptxas would lack a register without: before CUDA 13 for a gate of MISH with AUX of 32 bits, from 13.0 on for the gradient of ELU; for
// ELU and gates made anew behind a bias; beside sums of columns for a factor of rows, and for gradients in tiles of 192 columns where k is
// A's outer axis and B's inner one; for an exact activation whose results of 32 bits are
// copied in words, and SIGMOID's in any case.
constexpr bool ROLLS = GEMMEPI_FORMULA_ROLLS ||
                       (ADDS_COLUMNS ? GATED || ACTIVATION == GELU_ERF || BOX_GROUPS == 1 || GEMMEPI_IN_FACTOR >= 0 ||
                                       (ACTIVATION == ELU && COMPILER >= 1300) ||
                                       (BACKWARD && !LOADS_MASK && TILE_N == 192 && !A_ROWS && B_ROWS)
                                 : (HAS_BIAS && (ACTIVATION == ELU || (GATED && UPSTREAM))) ||
                                       BOX_GROUPS == 1 && ((GATED && BACKWARD) || (GROUPED && WRITES_AUX) ||
                                                       (COMPILER < 1300 && GATED && WRITES_AUX && ACTIVATION == MISH) ||
                                                       (GEMMEPI_EXACT && (GEMMEPI_COPIED || ACTIVATION == SIGMOID))));
// One copy for all strips, too, where sums lie box by box.
constexpr bool ROLLS_STRIPS = GEMMEPI_FORMULA_ROLLS > 1 && PARTS == 1 && !FINDS && !ADDS_COLUMNS && (HALVES_IN == 1 || SIDE_BY_SIDE);
static_assert(!FINDS || (TILE_COLUMNS % SCALE_STEPS == 0 && !ADDS_COLUMNS && HALVES_OUT == 1), "a tile has whole vectors, of one half");
// ADDS_COLUMNS: column sums go to the warp that adds them up a unit of columns at a time.
constexpr int UNIT_GROUPS = GATED || TILE_N % 128 ? 1 : 2;
static_assert(!ADDS_COLUMNS || (PARTS == 1 && !SUMMED && GROUPS / UNIT_GROUPS % 2 == 0),
              "a warp of its own for each warpgroup's sums, and the same parity for each tile");

// >>registers

// Together no more than at the launch: 3 * 168. Totals of an operand and scales take more than 24, and so may loads, where RELU's
// gradient leaves them.
constexpr bool NEEDS_REGISTERS =
    !SUMMED && !HAS_SCALES && ((ADDS_COLUMNS && !LOADS_MASK) || GEMMEPI_FORMULA_ROLLS || FINDS ||
                (TILE_N == 128 && GATED && (((WRITES_AUX || BACKWARD || UPSTREAM) && !GEMMEPI_UNIT_ALPHA) || __CUDACC_VER_MAJOR__ < 13 ||
                                            (ACTIVATION == QUICK_GELU && WRITES_AUX && !HAS_BIAS && BOX_GROUPS == 1 && GEMMEPI_COPIED &&
                                             TILE_M == 128))));
constexpr int PRODUCER_REGISTERS = NEEDS_REGISTERS ? 24 : 40, CONSUMER_REGISTERS = NEEDS_REGISTERS ? 240 : 232;
static_assert(PRODUCER_REGISTERS + CONSUMERS * CONSUMER_REGISTERS <= 504, "setmaxnreg waits for ever");
