// What is compiled into an epilogue, and what a thread keeps from run to run.
#pragma once
#include "types.cuh"
#include "activation.cuh"
#include "amax.cuh"
#include "formula_kinds.cuh"
#include "formula_reduce.cuh"
#include "found_scale.cuh"
#include "params.h"

// The prologue defines these for the problem at hand; the values here let the file compile by itself.
#ifndef GEMMEPI_EPILOGUE
#define GEMMEPI_EPILOGUE     0 // the public value: activation and flags
#define GEMMEPI_ACC          F32
#define GEMMEPI_C_TYPE       F32
#define GEMMEPI_D_TYPE       F32
#define GEMMEPI_BIAS_TYPE    F32
#define GEMMEPI_AUX_TYPE     F32
#define GEMMEPI_RESIDUAL_TYPE F32
#define GEMMEPI_ALIGNED      0 // 1: every run of every tensor starts at a multiple of its size, 16 bytes at most
#define GEMMEPI_SCALE_A      0 // the public mode; the epilogue multiplies TENSOR and OUTER in, the others a main loop
#define GEMMEPI_SCALE_B      0
#define GEMMEPI_SCALES       0 // which others have a scale: bits 1 C, 2 D, 4 AUX, 8 RESIDUAL
#define GEMMEPI_AMAX         0 // what is left in amax: bits 1 D, 2 AUX
#define GEMMEPI_STORES_D     1 // 0: only sums are wanted
#define GEMMEPI_IN_BIAS      -1 // for epilogue_inside.cuh, and what formula/emit.h writes of D = v
#define GEMMEPI_IN_AUX       -1
#define GEMMEPI_IN_RESIDUAL  -1
#define GEMMEPI_IN_FACTOR    -1
#define GEMMEPI_WRITTEN      -1
#define GEMMEPI_WRITES_VALUE 0
#define GEMMEPI_ADDS_BIAS    0
#define GEMMEPI_T            float
#define GEMMEPI_INDEX        int
#define FORMULA_MEMBERS      1
#define FORMULA_VALUE        1
#define FORMULA_RESULT       1
#define FORMULA_EXCHANGED    0
#define FORMULA_INPUTS(X)
#define FORMULA_OUTPUTS(X)
#define FORMULA_SUMS_OF_D(X)
#define FORMULA_UNIFORMS(X)
#define FORMULA_TABLES(X)
struct Formula_in { float v[1]; };
struct Formula_out { float d[1]; };
__device__ static __forceinline__ void formula(const Formula_in &in, Formula_out &out) {
    out.d[0] = in.v[0];
}
#endif
#ifndef GEMMEPI_UNIT_ALPHA
#define GEMMEPI_UNIT_ALPHA 0 // 1: alpha is 1 and there is no C, known beforehand
#endif
#ifndef GEMMEPI_INVARIANT
#define GEMMEPI_INVARIANT 0 // 1: what is computed of a row does not depend on the rows beside it
#endif
#ifndef GEMMEPI_WHOLE
#define GEMMEPI_WHOLE 0 // 1: n is a multiple of eight, so that runs side by side exist whole or not at all
#endif
#ifndef GEMMEPI_HAS_PLACES
#define GEMMEPI_HAS_PLACES 0 // 1: the launch parameters have places of the formula's operands: of all of a caller's, of what flags sum up
#endif
#ifndef GEMMEPI_OF_FLAGS
#define GEMMEPI_OF_FLAGS 1 // 0: the formula is the caller's
#define GEMMEPI_INSIDE_SCALED 0
#define GEMMEPI_INSIDE_REDUCES 0
#define GEMMEPI_INSIDE_WHOLE 0
#define GEMMEPI_STATE_COLUMNS 32
#define GEMMEPI_FORMULA_ROLLS 0 // the kernel for Hopper has one copy of it for all columns: 1, or for all of a tile: 2
#define GEMMEPI_FORMULA_LACKS 0 // 1: no registers are left for anything ahead
#endif
#ifndef GEMMEPI_HOLDS
#define GEMMEPI_HOLDS 0 // 1: the kernel loads a formula's operands that do not change along columns ahead, and keeps them in registers
#endif
#ifndef GEMMEPI_HALF_GROUP
#define GEMMEPI_HALF_GROUP 0 // more: halves are of groups of columns, of either half so many; only sm90/ has such
#endif
#ifndef GEMMEPI_INTERLEAVED
#define GEMMEPI_INTERLEAVED 0 // 1: halves are every second column, of groups of 64 in memory: HALF_GROUP is 32
#endif
#ifndef GEMMEPI_FINDS
#define GEMMEPI_FINDS 0 // 1: D's scales are found, one for each row and 128 columns, and written where scale_d lies
#endif
#ifndef GEMMEPI_SPREAD
#define GEMMEPI_SPREAD 0
#endif
#ifndef GEMMEPI_STRETCH
#define GEMMEPI_STRETCH 8 // columns of a run that lie side by side; fewer: each such stretch may be accessed at once, and exists or not
#define GEMMEPI_ABREAST 1 // threads whose stretches lie side by side, before the next of each
#endif
#ifndef GEMMEPI_BRINGS
#define GEMMEPI_BRINGS 0 // 1: the kernel loads a run's residual ahead, with the aux
#endif
#ifndef GEMMEPI_APART
#define GEMMEPI_APART 0 // SPREAD: 1: of a row's lanes, numbered 0 to 3, the third is 16 behind the first, and rows are two lanes apart
#endif
#ifndef GEMMEPI_LOADED
#define GEMMEPI_LOADED 0 // SPREAD: what the kernel has brought: bits 1 BACKWARD's aux, 2 RESIDUAL, 4 RELU's mask
#endif
#ifndef GEMMEPI_MASK_WORDS
#define GEMMEPI_MASK_WORDS 0 // SPREAD: 1: RELU's mask begins at a multiple of 16 bytes, as its lines do
#endif
#ifndef GEMMEPI_STAGES_WORDS
#define GEMMEPI_STAGES_WORDS 0 // STAGED: 1: each lane stores its own words, as stmatrix is of Hopper
#endif
#ifndef GEMMEPI_STAGED
#define GEMMEPI_STAGED 0 // SPREAD: what the epilogue leaves in shared memory for the kernel to store: bits 1 D, 2 AUX
#endif
#ifndef GEMMEPI_COPIED
#define GEMMEPI_COPIED 0 // STAGED: which of those go in words, to lines that begin anywhere; others in units of 16 bytes, or by TMA
#endif

typedef GEMMEPI_ACC Acc;

constexpr bool HAS_BIAS = (GEMMEPI_EPILOGUE & FLAG_BIAS) != 0;
constexpr bool WRITES_AUX = (GEMMEPI_EPILOGUE & FLAG_AUX) != 0;
constexpr bool BACKWARD = (GEMMEPI_EPILOGUE & FLAG_BACKWARD) != 0;
constexpr bool HAS_RESIDUAL = (GEMMEPI_EPILOGUE & FLAG_RESIDUAL) != 0;
constexpr bool GATED = (GEMMEPI_EPILOGUE & FLAG_GATED) != 0;
constexpr bool GATE_FIRST = (GEMMEPI_EPILOGUE & FLAG_GATE_FIRST) != 0;
constexpr bool UPSTREAM = (GEMMEPI_EPILOGUE & FLAG_UPSTREAM) != 0;
constexpr int ACTIVATION = GEMMEPI_EPILOGUE & 0xff;
constexpr int HALVES = GATED ? 2 : 1, VALUE = GATE_FIRST ? 1 : 0, GATE = 1 - VALUE;
constexpr int HALVES_IN = GATED && (!BACKWARD || UPSTREAM) ? 2 : 1;
constexpr int HALVES_OUT = GATED && (BACKWARD || UPSTREAM) ? 2 : 1; // UPSTREAM alone: a formula, which reads no aux
constexpr bool IN_GROUPS = GEMMEPI_HALF_GROUP > 0; // halves
constexpr int HALF_GROUP = IN_GROUPS ? GEMMEPI_HALF_GROUP : 1;
// INTERLEAVED: the columns 2 u and 2 u + 1 of what has two halves are those of the unit u, and one lane has both. Where the product has
// them a lane's pairs are its units, four apart (THIN), else its units are pairs as everywhere.
constexpr bool INTERLEAVED = GEMMEPI_INTERLEAVED, THIN = INTERLEAVED && HALVES_IN == 2;
constexpr int HALVES_SAVED = GATED && !UPSTREAM ? 2 : 1; // of the aux that BACKWARD reads
constexpr bool AUX_IS_MASK = Act<ACTIVATION, float>::SAVES_MASK && !GATED && !UPSTREAM;
constexpr bool ALIGNED = GEMMEPI_ALIGNED;
constexpr bool WHOLE = GEMMEPI_WHOLE;
constexpr bool SPREAD = GEMMEPI_SPREAD, APART = GEMMEPI_APART;
constexpr int STRETCH = SPREAD ? 2 : GEMMEPI_STRETCH, ABREAST = GEMMEPI_ABREAST;
constexpr bool IN_STRETCHES = !SPREAD && STRETCH < RUN;
// Scales of A's rows and B's columns, where they are the epilogue's: runs of a SPREAD one are of many columns, and its kernel's sums have them.
constexpr bool ROWS_SCALED = GEMMEPI_SCALE_A == SCALE_OUTER && !SPREAD, COLUMNS_SCALED = GEMMEPI_SCALE_B == SCALE_OUTER && !SPREAD;
constexpr bool STAGES_D = (GEMMEPI_STAGED & 1) != 0;
constexpr bool LOADS_AUX = (GEMMEPI_LOADED & 1) != 0 && BACKWARD && !AUX_IS_MASK;
constexpr bool LOADS_MASK = (GEMMEPI_LOADED & 4) != 0 && BACKWARD && AUX_IS_MASK;
constexpr bool LOADS_RESIDUAL = (GEMMEPI_LOADED & 2) != 0 && HAS_RESIDUAL;
constexpr bool STAGES_AUX = (GEMMEPI_STAGED & 2) != 0 && WRITES_AUX && !AUX_IS_MASK;
constexpr bool COPIES_D = (GEMMEPI_COPIED & 1) != 0, COPIES_AUX = (GEMMEPI_COPIED & 2) != 0;
constexpr bool KEEPS_MASK = SPREAD && GEMMEPI_MASK_WORDS && WRITES_AUX && AUX_IS_MASK; // for store_kept_masks()
constexpr bool SCALES_C = (GEMMEPI_SCALES & 1) != 0;
constexpr bool SCALES_D = (GEMMEPI_SCALES & 2) != 0;
constexpr bool SCALES_AUX = (GEMMEPI_SCALES & 4) != 0 && !AUX_IS_MASK;
constexpr bool SCALES_RESIDUAL = (GEMMEPI_SCALES & 8) != 0;
constexpr bool FINDS = GEMMEPI_FINDS;
constexpr bool FINISHES_FIRST = SPREAD && FINDS && HALVES_IN == 2 && !GEMMEPI_UNIT_ALPHA; // C is added to all sums before any is used
constexpr bool AMAX_D = (GEMMEPI_AMAX & 1) != 0;
constexpr bool AMAX_AUX = (GEMMEPI_AMAX & 2) != 0 && WRITES_AUX && !AUX_IS_MASK;

typedef decltype(magnitude(Acc())) Magnitude;

// A formula's operands, of the launch parameters.
#if GEMMEPI_HAS_PLACES
#define PLACES_OF(params) (params).places
#else
#define PLACES_OF(params) nullptr
#endif
template <class Type> using Taken = decltype(taken_as<Type, Acc>());

// Operands that do not change along columns, of a row: for four rows no more than 12 registers, else each run loads them.
__device__ constexpr bool is_of_row(int place, int kind) {
    return place != GEMMEPI_IN_FACTOR && (kind == kind::SCALAR || kind == kind::PER_ROW);
}
template <class Type, bool Is_of_row> struct Held {};
template <class Type> struct Held<Type, true> { Taken<Type> at; };
#define HELD_OPERAND(place_, name, kind_, members, type, periods) Held<type, is_of_row(place_, kind::kind_)> name;
#define HELD_WORDS(place_, name, kind_, members, type, periods) \
    +(int)sizeof(Taken<type>) / 4 * (!is_of_row(place_, kind::kind_) ? 0 : kind::kind_ == kind::SCALAR ? 1 : 4)
constexpr bool HOLDS = GEMMEPI_HOLDS && 0 FORMULA_INPUTS(HELD_WORDS) <= 12;
struct Held_operands {
    FORMULA_INPUTS(HELD_OPERAND)
};

// What a lane keeps of a formula's reductions, of each run of a box of 16 rows and 64 columns at most, until all its lanes are joined.
constexpr int RUNS_OF_BOX = 4;
template <int Reduction> struct Kept_parts {
    Left_of<Acc, Reduction> parts[RUNS_OF_BOX];
};
template <> struct Kept_parts<reduction::none> {};
#define KEPT_PARTS(place_, name, kind_, members, type, reduction_, accumulates) Kept_parts<of_rows(reduction::reduction_)> name;
struct Kept_outputs {
    FORMULA_OUTPUTS(KEPT_PARTS)
};

// >>lines of column sums: what an epilogue adds up over rows, reductions of columns and of all, of each member of each; some are largest
// numbers instead. FORMULA_SUMS_OF_D is of D, which no output says again.
#define COLUMN_OUTPUTS(X) FORMULA_OUTPUTS(X) FORMULA_SUMS_OF_D(X)
#define COLUMN_LINES_OF(place_, name, kind_, members, type, reduction_, accumulates) +(is_of_columns(reduction::reduction_) ? members : 0)
#define COLUMN_LINES_AHEAD(place_, name, kind_, members, type, reduction_, accumulates) \
    +(is_of_columns(reduction::reduction_) && place_ < place ? members : 0)
#define LARGEST_LINES_OF(place_, name, kind_, members, type, reduction_, accumulates) \
    | (is_largest(reduction::reduction_) ? ((1u << members) - 1) << first_line(place_) : 0)
__device__ constexpr int first_line(int place) { // of an output
    return 0 * place COLUMN_OUTPUTS(COLUMN_LINES_AHEAD);
}
constexpr int COLUMN_LINES = 0 COLUMN_OUTPUTS(COLUMN_LINES_OF);
constexpr u32 LARGEST_LINES = 0 COLUMN_OUTPUTS(LARGEST_LINES_OF);
constexpr bool ADDS_COLUMNS = COLUMN_LINES > 0;
// Of a run, as the formula leaves them.
template <int Lines> struct Column_values {
    Acc at[Lines][RUN];
    __device__ Acc (*lines())[RUN] {
        return at;
    }
};
template <> struct Column_values<0> {
    __device__ Acc (*lines())[RUN] {
        return nullptr;
    }
};

// What a thread keeps from run to run: its runs are of one item and of the same columns.
struct Epilogue_state {
    const gpi__formula_place *beside;
    Kept_outputs kept_parts;
    Held_operands held; // HOLDS: of the run at hand
    Column_values<COLUMN_LINES> of_columns; // likewise
    Acc alpha, beta; // alpha with the scales of A and B where they are one number, beta without C's
    Acc scale_c, scale_d, scale_aux, scale_residual;
    Acc column_factors[HALVES_IN][RUN]; // alpha with the scales of B's columns
    Magnitude largest_d, largest_aux;
    u32 staged_d[HALVES_OUT], staged_aux[HALVES_IN];             // where the run at hand goes, if STAGED,
    u32 loaded_aux[HALVES_SAVED], loaded_residual[HALVES_OUT]; // and comes from, if LOADED
    u32 loaded_mask;                                             // likewise: of this row's 32 columns
    u32 kept_mask;  // KEEPS_MASK: of the four runs of a box in this lane's rows and columns, the one that it stores,
    int mask_place; // and which of them the run at hand is: the rows' half + 2 * the columns' group
};
