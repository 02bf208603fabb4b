// The epilogue on a run of eight accumulators of one row. Written once, for every kernel that ends in one.
//
// The body knows: the accumulators v, the item of the batch, the row, the first column, how many of the eight columns
// exist, and the tensors in `p`. It may read and write any tensor at (item, row, column), and leaves in v what D
// stores, before scale_d. Which tensors, scales and which activation are compile-time constants, so that what is not
// used costs nothing.
//
// The eight lie side by side, or SPREAD as wgmma leaves them: four pairs, eight columns apart. A row's four lanes then
// have pairs side by side, together 32 columns, and every lane of the warp takes part; what does not exist has valid 0.
//
// GATED: v is two runs, of the same column of both halves, which lie p.n columns apart wherever a tensor has both. The
// product has them (HALVES_IN 2), or the result (HALVES_OUT 2), or both.
#pragma once
#include "types.cuh"
#include "activation.cuh"
#include "amax.cuh"
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
#endif
#ifndef GEMMEPI_APPLIED
#define GEMMEPI_APPLIED 0 // 1: alpha is 1 and there is no C, known beforehand
#endif
#ifndef GEMMEPI_WHOLE
#define GEMMEPI_WHOLE 0 // 1: n is a multiple of eight, so that runs side by side exist whole or not at all
#endif
#ifndef GEMMEPI_SPREAD
#define GEMMEPI_SPREAD 0
#endif
#ifndef GEMMEPI_APART
#define GEMMEPI_APART 0 // SPREAD: 1: of a row's lanes, numbered 0 to 3, the third is 16 behind the first, and rows are two lanes apart
#endif
#ifndef GEMMEPI_BIAS_FIRST
#define GEMMEPI_BIAS_FIRST 0 // 1: the sums that come hold the bias
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

constexpr bool HAS_BIAS = (GEMMEPI_EPILOGUE & FLAG_BIAS) != 0, BIAS_FIRST = HAS_BIAS && GEMMEPI_BIAS_FIRST;
constexpr bool WRITES_AUX = (GEMMEPI_EPILOGUE & FLAG_AUX) != 0;
constexpr bool BACKWARD = (GEMMEPI_EPILOGUE & FLAG_BACKWARD) != 0;
constexpr bool HAS_RESIDUAL = (GEMMEPI_EPILOGUE & FLAG_RESIDUAL) != 0;
constexpr bool HAS_BGRAD = (GEMMEPI_EPILOGUE & FLAG_BGRAD) != 0;
constexpr bool GATED = (GEMMEPI_EPILOGUE & FLAG_GATED) != 0;
constexpr bool GATE_FIRST = (GEMMEPI_EPILOGUE & FLAG_GATE_FIRST) != 0;
constexpr bool UPSTREAM = (GEMMEPI_EPILOGUE & FLAG_UPSTREAM) != 0;
constexpr int ACTIVATION = GEMMEPI_EPILOGUE & 0xff;
constexpr int HALVES = GATED ? 2 : 1, VALUE = GATE_FIRST ? 1 : 0, GATE = 1 - VALUE;
constexpr int HALVES_IN = GATED && (!BACKWARD || UPSTREAM) ? 2 : 1;
constexpr int HALVES_OUT = GATED && BACKWARD ? 2 : 1;
constexpr int HALVES_SAVED = GATED && !UPSTREAM ? 2 : 1; // of the aux that BACKWARD reads
constexpr bool AUX_IS_MASK = SAVES_MASK<ACTIVATION> && !GATED && !UPSTREAM;
constexpr bool ALIGNED = GEMMEPI_ALIGNED;
constexpr bool WHOLE = GEMMEPI_WHOLE;
constexpr bool SPREAD = GEMMEPI_SPREAD, APART = GEMMEPI_APART;
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
constexpr bool AMAX_D = (GEMMEPI_AMAX & 1) != 0;
constexpr bool AMAX_AUX = (GEMMEPI_AMAX & 2) != 0 && WRITES_AUX && !AUX_IS_MASK;

// >>arithmetic of the accumulator: that of I32 is modulo 2^32, so without a sign

__device__ inline int product(int x, int y) {
    return (int)((u32)x * (u32)y);
}
__device__ inline int sum(int x, int y) {
    return (int)((u32)x + (u32)y);
}
template <class A> __device__ inline A product(A x, A y) {
    return x * y;
}
template <class A> __device__ inline A sum(A x, A y) {
    return x + y;
}

typedef decltype(magnitude(Acc())) Magnitude;

// >>memory

__device__ inline long long offset(const gemmepi__kernel_matrix &x, long long item, long long row, long long column) {
    return item * x.stride + row * x.ld + column;
}

// Columns from a run's first to its i-th, which exists if these are fewer than `valid`.
__device__ constexpr int place(int i) {
    return SPREAD ? i / 2 * 8 + i % 2 : i;
}
// Which four lanes have a row, of eight, and which row that is: as wgmma and mma.sync leave sums, or APART.
constexpr int IN_ROW = APART ? 16 : 2, OF_ROWS = APART ? 2 : 4; // the second bit of the first, the first of the second
__device__ inline int lane_of_row() {
    return APART ? (int)(threadIdx.x % 2 + threadIdx.x % 32 / IN_ROW * 2) : (int)(threadIdx.x % 4);
}
__device__ inline int row_of_lane() {
    return (int)(threadIdx.x % 32 / OF_ROWS % 8);
}

// A run as it lies in memory.
template <class T> struct Read {
    Words<T, SPREAD ? 2 : RUN> at[SPREAD ? RUN / 2 : 1];
};
template <class T> __device__ inline Read<T> read(const T *from, int valid) {
    Read<T> read = {};
    if constexpr (SPREAD) {
#pragma unroll
        for (int i = 0; i < RUN; i += 2)
            if (ALIGNED && valid > place(i + 1))
                read.at[i / 2] = *reinterpret_cast<const Words<T, 2> *>(from + place(i));
            else if (!(ALIGNED && WHOLE))
                read.at[i / 2] = words_of(read_elements<2>(from + place(i), valid - place(i)));
    } else {
        read.at[0] = read_run<ALIGNED>(from, valid);
    }
    return read;
}
template <class T> __device__ inline void to_accs(const Read<T> &read, Acc (&values)[RUN]) {
    if constexpr (SPREAD) {
#pragma unroll
        for (int i = 0; i < RUN; i += 2) {
            Acc two[2];
            words_to_acc(read.at[i / 2], two);
            values[i] = two[0];
            values[i + 1] = two[1];
        }
    } else {
        run_to_acc(run_of(read.at[0]), values);
    }
}

template <class T> __device__ inline void store_at(T *to, int valid, const Acc (&values)[RUN]) {
    if constexpr (SPREAD) {
        Run<T> run = run_from_acc<T>(values);
#pragma unroll
        for (int i = 0; i < RUN; i += 2) {
            Run<T, 2> pair = {run.at[i], run.at[i + 1]};
            if (ALIGNED && valid > place(i + 1)) {
                *reinterpret_cast<Words<T, 2> *>(to + place(i)) = words_of(pair);
            } else {
                if (valid > place(i))
                    to[place(i)] = pair.at[0];
                if (valid > place(i + 1))
                    to[place(i + 1)] = pair.at[1];
            }
        }
    } else {
        store_run<ALIGNED>(to, valid, values);
    }
}

// STAGED: eight rows and 32 columns of 16 bits to shared memory, by a warp. `to`: lane i's is the place of row i % 8,
// columns i / 8 * 8 on; with STAGES_WORDS the place of its own first pair, whose others are four units on (the unit's number
// xor 1 to 3); of 32 bits likewise (the unit's number xor 2 to 6). Values that do not exist go there too.
template <class T> __device__ inline void stage_run(u32 to, const Acc (&values)[RUN]) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "pairs are of one or two words");
    Words<T> words = words_of(run_from_acc<T>(values));
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to ^ (u32)i << 5), "r"(words.at[2 * i]),
                         "r"(words.at[2 * i + 1])
                         : "memory");
    } else {
#if GEMMEPI_STAGES_WORDS
#pragma unroll
        for (int i = 0; i < 4; i++)
            asm volatile("st.shared.b32 [%0], %1;" ::"r"(to ^ (u32)i << 4), "r"(words.at[i]) : "memory");
#else
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words.at[0]),
                     "r"(words.at[1]), "r"(words.at[2]), "r"(words.at[3])
                     : "memory");
#endif
    }
}

// A word, or its lower half, to memory, without a branch.
__device__ inline void store_word_if(bool does, u64 to, u32 bits) {
    asm volatile("{\n.reg .pred does;\nsetp.ne.u32 does, %2, 0;\n@does st.global.b32 [%0], %1;\n}" ::"l"(to), "r"(bits), "r"((u32)does)
                 : "memory");
}
__device__ inline void store_half_if(bool does, u64 to, u32 bits) {
    asm volatile("{\n.reg .pred does;\nsetp.ne.u32 does, %2, 0;\n@does st.global.b16 [%0], %1;\n}" ::"l"(to), "h"((u16)bits),
                 "r"((u32)does)
                 : "memory");
}

// A box from there to memory, by a warp: 16 rows of so many columns. Its lines are 128 bytes apart, and of their eight units of 16 the
// i-th stands in place i ^ line % 8. `to` has row 0, column 0; what is left may be more than the box, or less than nothing.
template <class T, int Columns, bool InWords>
__device__ inline void copy_box(u32 from, T *to, long long ld, int rows_left, int columns_left) {
    constexpr int per_word = 4 / sizeof(T), words = InWords ? Columns / per_word : Columns / per_word / 4;
    constexpr int at_once = words < 32 ? 32 / words : 1; // lines
    constexpr int under_way = BACKWARD && GATED ? 2 : sizeof(T) == 4 ? 8 : 4; // loads, for which there are registers
    constexpr int rounds = 16 / at_once, loaded = rounds < under_way ? rounds : under_way;
    int line = (int)threadIdx.x % 32 / words, word = (int)threadIdx.x % words;
    int left = columns_left < Columns ? columns_left : Columns, first = word * (InWords ? per_word : 4 * per_word);
    u64 at = (u64)(to + line * ld), step = (u64)(at_once * ld) * sizeof(T);
#pragma unroll 1
    for (int i = 0; i < rounds && i * at_once < rows_left; i += loaded) {
        u32 bits[loaded][InWords ? 1 : 4], next[loaded];
#pragma unroll
        for (int j = 0; j < loaded; j++) {
            u32 of_line = from + (line + j * at_once) * 128;
            int turn = (line + j * at_once) % 8;
            if constexpr (InWords)
                asm volatile("ld.shared.b32 %0, [%1];"
                             : "=r"(bits[j][0])
                             : "r"(of_line + ((word / 4 ^ turn) << 4) + word % 4 * 4)
                             : "memory");
            else
                asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(bits[j][0]), "=r"(bits[j][1]), "=r"(bits[j][2]), "=r"(bits[j][3])
                             : "r"(of_line + ((word ^ turn) << 4))
                             : "memory");
        }
        if constexpr (InWords && per_word == 2)
#pragma unroll
            for (int j = 0; j < loaded; j++)
                next[j] = __shfl_sync(0xffffffffu, bits[j][0], (int)threadIdx.x % 32 + 1);
#pragma unroll
        for (int j = 0; j < loaded; j++, at += step) {
            int left_here = line + j * at_once < rows_left ? left : 0;
            if constexpr (!InWords) {
                uint4 unit;
                memcpy(&unit, bits[j], sizeof unit);
                if (first < left_here)
                    *reinterpret_cast<uint4 *>(at + word * 16) = unit;
            } else if constexpr (per_word == 1)
                store_word_if(first < left_here, at + word * 4, bits[j][0]);
            else { // words of memory may be the halves of two of these
                u32 between = (u32)at >> 1 & 1;
                int left_of_word = left_here - first - (int)between;
                u64 of_word = at + word * 4 + between * 2;
                u32 here = __byte_perm(bits[j][0], next[j], between ? 0x5432 : 0x3210);
                store_half_if(between && word == 0 && left_here > 0, at, bits[j][0]);
                store_word_if(left_of_word >= 2, of_word, here);
                store_half_if(left_of_word == 1, of_word, here);
            }
        }
        line += loaded * at_once;
    }
}

// LOADED: likewise from there.
template <class T> __device__ inline Read<T> unstage_run(u32 from) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "pairs are of one or two words");
    u32 words[sizeof(T) * 2];
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                         : "=r"(words[2 * i]), "=r"(words[2 * i + 1])
                         : "r"(from ^ (u32)i << 5)
                         : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                     : "r"(from)
                     : "memory");
    }
    Read<T> read;
    memcpy(&read, words, sizeof read);
    return read;
}

template <class T>
__device__ inline void load(const gemmepi__kernel_matrix &x, long long item, long long row, long long column, int valid,
                            Acc (&values)[RUN]) {
    to_accs(read((const T *)x.data + offset(x, item, row, column), valid), values);
}

template <class T, bool Staged>
__device__ inline void store(const gemmepi__kernel_matrix &x, u32 staged, long long item, long long row,
                             long long column, int valid, const Acc (&values)[RUN]) {
    if constexpr (Staged)
        stage_run<T>(staged, values);
    else
        store_at((T *)x.data + offset(x, item, row, column), valid, values);
}

template <class T, bool Staged>
__device__ inline void store_scaled(const gemmepi__kernel_matrix &x, u32 staged, Acc scale, long long item,
                                    long long row, long long column, int valid, const Acc (&values)[RUN]) {
    Acc scaled[RUN];
#pragma unroll
    for (int i = 0; i < RUN; i++)
        scaled[i] = product(values[i], scale);
    store<T, Staged>(x, staged, item, row, column, valid, scaled);
}

// RELU's mask: offsets count bits, and a run side by side begins at a multiple of 8, so that it is one byte. Bits past n
// stay.
__device__ inline void store_mask_byte(u8 *byte, u32 bits, int valid) {
    u32 mine = (1u << valid) - 1;
    *byte = valid == RUN ? (u8)bits : (u8)((*byte & ~mine) | (bits & mine));
}
__device__ inline u32 mask_of_run(const Acc (&v)[RUN]) {
    u32 bits = 0;
#pragma unroll
    for (int i = 0; i < RUN; i++)
        bits |= (u32)(v[i] > 0) << place(i);
    return bits;
}
// SPREAD: that of 32 columns of a row, in all of its lanes.
__device__ inline u32 mask_of_row(const Acc (&v)[RUN]) {
    u32 bits = mask_of_run(v) << 2 * lane_of_row();
    bits |= __shfl_xor_sync(0xffffffffu, bits, 1);
    return bits | __shfl_xor_sync(0xffffffffu, bits, IN_ROW);
}
__device__ inline void store_mask(const gemmepi__kernel_matrix &x, long long item, long long row, long long column,
                                  int valid, const Acc (&v)[RUN]) {
    u32 bits;
    if (SPREAD) { // of which each lane writes eight
        int lane = lane_of_row();
        bits = mask_of_row(v) >> 8 * lane & 0xff;
        column += 6 * lane;
        valid = existing(valid - 6 * lane);
        if (valid <= 0)
            return;
    } else {
        bits = mask_of_run(v);
    }
    store_mask_byte((u8 *)x.data + offset(x, item, row, column) / 8, bits, valid);
}

// Of those of a run that exist.
__device__ inline void keep_largest_of_run(const Acc (&v)[RUN], int valid, Magnitude &largest) {
    Acc existing[RUN];
#pragma unroll
    for (int i = 0; i < RUN; i++)
        existing[i] = place(i) < valid ? v[i] : Acc(0);
    keep_largest(existing, RUN, largest);
}

// >>the epilogue

// What a thread keeps from run to run: its runs are of one item and of the same columns.
struct Epilogue_state {
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

__device__ inline Acc scalar(const double *on_device, double given) {
    return from_acc<Acc>(on_device ? *on_device : given);
}

template <bool Exists> __device__ inline Acc tensor_scale(const gemmepi__kernel_scale &scale, long long item) {
    if constexpr (Exists)
        return (Acc)scale.data[item * scale.stride];
    else
        return 1;
}

__device__ inline bool takes_c(const gemmepi__epilogue_params &p, const Epilogue_state &state) {
    return !GEMMEPI_APPLIED && p.uses_c && state.beta != 0;
}

__device__ inline Epilogue_state begin_epilogue(const gemmepi__epilogue_params &p, long long item, long long column,
                                                int valid) {
    Epilogue_state state = {};
    state.alpha = GEMMEPI_APPLIED ? Acc(1) : scalar(p.device_alpha, p.alpha);
    state.beta = GEMMEPI_APPLIED ? Acc(0) : scalar(p.device_beta, p.beta);
    if (GEMMEPI_SCALE_A == SCALE_TENSOR)
        state.alpha = product(state.alpha, tensor_scale<true>(p.scale_a, item));
    if (GEMMEPI_SCALE_B == SCALE_TENSOR)
        state.alpha = product(state.alpha, tensor_scale<true>(p.scale_b, item));
    if (GEMMEPI_SCALE_B == SCALE_OUTER) {
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++) {
            const float *scale = p.scale_b.data + item * p.scale_b.stride + column + half * p.n;
#pragma unroll
            for (int i = 0; i < RUN; i++)
                state.column_factors[half][i] = i < valid ? product(state.alpha, (Acc)scale[i]) : Acc(0);
        }
    }
    state.scale_c = takes_c(p, state) ? tensor_scale<SCALES_C>(p.scale_c, item) : Acc(1); // else it may be missing
    state.scale_d = tensor_scale<SCALES_D>(p.scale_d, item);
    state.scale_aux = tensor_scale<SCALES_AUX>(p.scale_aux, item);
    state.scale_residual = tensor_scale<SCALES_RESIDUAL>(p.scale_residual, item);
    return state;
}

__device__ inline void multiply_by_factors(const gemmepi__epilogue_params &p, const Epilogue_state &state,
                                           long long item, long long row, const Acc (&column_factors)[RUN],
                                           Acc (&v)[RUN]) {
    constexpr bool by_column = GEMMEPI_SCALE_B == SCALE_OUTER;
    Acc row_factor = by_column ? Acc(1) : state.alpha;
    if (GEMMEPI_SCALE_A == SCALE_OUTER)
        row_factor = product(row_factor, (Acc)p.scale_a.data[item * p.scale_a.stride + row]);
#pragma unroll
    for (int i = 0; i < RUN; i++)
        v[i] = product(v[i], !by_column                       ? row_factor
                             : GEMMEPI_SCALE_A == SCALE_OUTER ? product(row_factor, column_factors[i])
                                                              : column_factors[i]);
}

// The aux that BACKWARD reads, as it lies in memory: RELU's mask, the upstream gradient, or the pre-activation. Kernels
// load it ahead.
struct Saved {
    Read<GEMMEPI_AUX_TYPE> runs[HALVES_SAVED];
    u32 mask;
};
// RELU's mask of a row's 32 columns: each of its four lanes reads the byte of eight of them. Bit place(i) is the i-th's.
__device__ inline u32 load_spread_mask(const gemmepi__epilogue_params &p, long long item, long long row, long long column,
                                       int valid) {
    int lane = lane_of_row();
    u32 byte = 0;
    if (valid > 6 * lane)
        byte = ((const u8 *)p.aux.data)[offset(p.aux, item, row, column + 6 * lane) / 8];
    u32 bits = byte << 8 * lane;
    bits |= __shfl_xor_sync(0xffffffffu, bits, 1);
    bits |= __shfl_xor_sync(0xffffffffu, bits, IN_ROW);
    return bits >> 2 * lane;
}

__device__ inline void load_saved(const gemmepi__epilogue_params &p, const Epilogue_state &state, long long item,
                                  long long row, long long column, int valid, Saved &saved) {
    if (!BACKWARD || (!SPREAD && valid == 0))
        return;
    if constexpr (LOADS_MASK) {
        saved.mask = state.loaded_mask >> 2 * lane_of_row();
    } else if constexpr (AUX_IS_MASK && SPREAD) {
        saved.mask = load_spread_mask(p, item, row, column, valid);
    } else if constexpr (AUX_IS_MASK) {
        saved.mask = ((const u8 *)p.aux.data)[offset(p.aux, item, row, column) / 8];
    } else {
#pragma unroll
        for (int half = 0; half < HALVES_SAVED; half++) {
            if constexpr (LOADS_AUX)
                saved.runs[half] = unstage_run<GEMMEPI_AUX_TYPE>(state.loaded_aux[half]);
            else
                saved.runs[half] = read(
                    (const GEMMEPI_AUX_TYPE *)p.aux.data + offset(p.aux, item, row, column + half * p.n), valid);
        }
    }
}

// LOOKS_NEAR: the kernel looks whether all aux at hand are where near_derivative() holds, as they nearly always are.
constexpr bool LOOKS_NEAR =
    LOADS_AUX && sizeof(GEMMEPI_AUX_TYPE) == 2 && HAS_NEAR_DERIVATIVE<ACTIVATION> && SAME<Acc, F32> && !GATED && !UPSTREAM && !HAS_RESIDUAL && !SCALES_AUX;
// Two of a number that T, of 16 bits, has exactly.
template <class T> __device__ inline u32 pair_of(float x) {
    u32 bits = __float_as_uint(x), of_f16 = (bits >> 16 & 0x8000) | (((bits & 0x7fffffff) >> 13) - (112 << 10));
    return (SAME<T, BF16> ? bits >> 16 : of_f16) * 0x10001u;
}
// The largest of aux as integers of 16 bits: without a sign, of which those below NEAR are larger, and with one, of which those above
// NEAR_END are, which F16 has not. NaN may count as either.
constexpr bool NEAR_ENDS = HAS_NEAR_END<ACTIVATION> && SAME<GEMMEPI_AUX_TYPE, BF16>;
struct Near {
    u32 low = pair_of<GEMMEPI_AUX_TYPE>(NEAR<ACTIVATION>), high = pair_of<GEMMEPI_AUX_TYPE>(NEAR_END);

    __device__ inline void take_in(const Read<GEMMEPI_AUX_TYPE> &read) {
        u32 words[4];
        memcpy(words, &read, sizeof words);
#pragma unroll
        for (int i = 0; i < 4; i += 2) { // one instruction each
            asm("{\n.reg .b32 most;\nmax.u16x2 most, %0, %1;\nmax.u16x2 %0, most, %2;\n}"
                : "+r"(low)
                : "r"(words[i]), "r"(words[i + 1]));
            if (NEAR_ENDS)
                asm("{\n.reg .b32 most;\nmax.s16x2 most, %0, %1;\nmax.s16x2 %0, most, %2;\n}"
                    : "+r"(high)
                    : "r"(words[i]), "r"(words[i + 1]));
        }
    }
    __device__ inline bool has_all() const {
        Near none;
        return low == none.low && high == none.high;
    }
};

// What is the same for all rows: the bias of a run's columns.
struct Of_columns {
    Read<GEMMEPI_BIAS_TYPE> bias[HALVES_IN];
};
__device__ inline Of_columns load_columns(const gemmepi__epilogue_params &p, long long item, long long column, int valid) {
    Of_columns of;
    if (HAS_BIAS)
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++)
            of.bias[half] =
                read((const GEMMEPI_BIAS_TYPE *)p.bias.data + offset(p.bias, item, 0, column + half * p.n), valid);
    return of;
}

// KEEPS_MASK: each of a row's four lanes keeps the mask of one of the box's runs,
__device__ inline void keep_mask(Epilogue_state &state, const Acc (&v)[RUN]) {
    u32 bits = mask_of_row(v);
    if (lane_of_row() == state.mask_place)
        state.kept_mask = bits;
}
// until the box of 16 rows and as many groups of 32 columns has ended: row and column are its first.
__device__ inline void store_kept_masks(const gemmepi__epilogue_params &p, const Epilogue_state &state, long long item,
                                        int row, int column, int groups) {
    int group = lane_of_row() / 2;
    row += lane_of_row() % 2 * 8 + row_of_lane();
    column += group * 32;
    if (group >= groups || row >= (int)p.m)
        return;
    u8 *bytes = (u8 *)p.aux.data + offset(p.aux, item, row, column) / 8;
    if (column + 32 <= (int)p.n)
        *reinterpret_cast<u32 *>(bytes) = state.kept_mask;
    else
        for (int i = 0; column + i * RUN < (int)p.n; i++)
            store_mask_byte(bytes + i, state.kept_mask >> i * RUN & 0xff, existing((int)p.n - column - i * RUN));
}

// The bias is added to what activate_scaled_sum() takes, and nothing else wants the sum.
constexpr bool SCALES_SUM =
    HAS_BIAS && !BIAS_FIRST && !BACKWARD && !WRITES_AUX && !AMAX_AUX && SAME<Acc, F32> && SUM_SCALE<ACTIVATION> != 0;

// v up to the activation, or what SCALES_SUM makes of it: factors, C, bias, and what AUX keeps of it. column is that of the half.
__device__ inline void finish_product(const gemmepi__epilogue_params &p, Epilogue_state &state, const Of_columns &of,
                                      int half, long long item, long long row, long long column, int valid,
                                      Acc (&v)[RUN]) {
    Acc other[RUN];
    multiply_by_factors(p, state, item, row, state.column_factors[half], v);
    if (takes_c(p, state)) {
        Acc factor = SCALES_C ? product(state.beta, state.scale_c) : state.beta;
        load<GEMMEPI_C_TYPE>(p.c, item, row, column, valid, other);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            v[i] = sum(v[i], product(factor, other[i]));
    }
    if (HAS_BIAS && !BIAS_FIRST) {
        to_accs(of.bias[half], other);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            if constexpr (SCALES_SUM)
                v[i] = half == GATE % HALVES ? fmaf(v[i], SUM_SCALE<ACTIVATION>, other[i] * SUM_SCALE<ACTIVATION>)
                                             : v[i] + other[i];
            else
                v[i] = sum(v[i], other[i]);
    }
    if (AMAX_AUX)
        keep_largest_of_run(v, valid, state.largest_aux);
    if (WRITES_AUX) {
        if (KEEPS_MASK)
            keep_mask(state, v);
        else if (AUX_IS_MASK)
            store_mask(p.aux, item, row, column, valid, v);
        else if (SCALES_AUX)
            store_scaled<GEMMEPI_AUX_TYPE, STAGES_AUX>(p.aux, state.staged_aux[half], state.scale_aux, item, row, column,
                                                       valid, v);
        else
            store<GEMMEPI_AUX_TYPE, STAGES_AUX>(p.aux, state.staged_aux[half], item, row, column, valid, v);
    }
}

// The activation of what finish_product() leaves.
__device__ inline Acc activate_finished(const gemmepi__epilogue_params &p, Acc v) {
    if constexpr (SCALES_SUM)
        return activate_scaled_sum<ACTIVATION>(v);
    else
        return activate_sum<ACTIVATION, GATED>(v, (Acc)p.parameter);
}

// One column of a value and a gate column.
__device__ inline void multiply_halves(const gemmepi__epilogue_params &p, Acc (&v)[HALVES][RUN]) {
#pragma unroll
    for (int i = 0; i < RUN; i++) {
        if constexpr (SAME<Acc, I32>)
            v[0][i] = product(v[VALUE % HALVES][i], activate<ACTIVATION>(v[GATE % HALVES][i], Acc(0)));
        else if constexpr (GATES_BY_SUMS<ACTIVATION>)
            v[0][i] = v[VALUE % HALVES][i] * activate_finished(p, v[GATE % HALVES][i]);
        else
            v[0][i] = times_activation<ACTIVATION>(v[VALUE % HALVES][i], v[GATE % HALVES][i], (Acc)p.parameter);
    }
}

// Of a run, for which a gate's gradient looks for overflow at once: all where a thread has registers for it.
constexpr int TOGETHER = !SPREAD ? 1 : GEMMEPI_APPLIED && !HAS_RESIDUAL ? RUN : 4;

// The upstream gradient and the pre-activation, of which one is v and the other saved, into the gradient.
template <bool IsNear>
__device__ inline void differentiate(const gemmepi__epilogue_params &p, const Epilogue_state &state, const Saved &saved,
                                     Acc (&v)[HALVES][RUN]) {
    if constexpr (AUX_IS_MASK) {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            v[0][i] = saved.mask >> place(i) & 1 ? v[0][i] : Acc(0);
    } else if constexpr (!SAME<Acc, I32>) {
        Acc aside[HALVES_SAVED][RUN];
#pragma unroll
        for (int half = 0; half < HALVES_SAVED; half++) {
            to_accs(saved.runs[half], aside[half]);
#pragma unroll
            for (int i = 0; SCALES_AUX && i < RUN; i++)
                aside[half][i] *= state.scale_aux;
        }
        if constexpr (GATED) {
            const Acc *dy = UPSTREAM ? aside[0] : v[0];
            const Acc(*pair)[RUN] = UPSTREAM ? v : aside;
#pragma unroll
            for (int i = 0; i < RUN; i += TOGETHER) {
                Acc upstream[TOGETHER], value[TOGETHER], gate[TOGETHER], of_gate[TOGETHER];
                memcpy(upstream, dy + i, sizeof upstream);
                memcpy(value, pair[VALUE] + i, sizeof value);
                memcpy(gate, pair[GATE] + i, sizeof gate);
                gate_gradients<ACTIVATION>(upstream, value, gate, (Acc)p.parameter, of_gate);
#pragma unroll
                for (int j = 0; j < TOGETHER; j++)
                    v[VALUE][i + j] = times_activation<ACTIVATION>(upstream[j], gate[j], (Acc)p.parameter);
                memcpy(v[GATE] + i, of_gate, sizeof of_gate);
            }
        } else {
#pragma unroll
            for (int i = 0; i < RUN; i++)
                if constexpr (IsNear)
                    v[0][i] *= near_derivative<ACTIVATION>(aside[0][i]);
                else
                    v[0][i] = UPSTREAM ? times_derivative<ACTIVATION>(aside[0][i], v[0][i], (Acc)p.parameter)
                                       : times_derivative<ACTIVATION>(v[0][i], aside[0][i], (Acc)p.parameter);
        }
    }
}

// v: HALVES_IN runs of the product go in, HALVES_OUT of the result come out. IsNear: LOOKS_NEAR found all of aux near.
template <bool IsNear = false>
__device__ inline void epilogue(const gemmepi__epilogue_params &p, Epilogue_state &state, const Of_columns &of,
                                const Saved &saved, long long item, long long row, long long column, int valid,
                                Acc (&v)[HALVES][RUN]) {
#pragma unroll
    for (int half = 0; half < HALVES_IN; half++)
        finish_product(p, state, of, half, item, row, column + half * p.n, valid, v[half]);
    if constexpr (BACKWARD) {
        differentiate<IsNear>(p, state, saved, v);
    } else if constexpr (GATED) {
        multiply_halves(p, v);
    } else {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            v[0][i] = activate_finished(p, v[0][i]);
    }
    if (HAS_RESIDUAL)
#pragma unroll
        for (int half = 0; half < HALVES_OUT; half++) {
            Acc other[RUN];
            if constexpr (LOADS_RESIDUAL)
                to_accs(unstage_run<GEMMEPI_RESIDUAL_TYPE>(state.loaded_residual[half]), other);
            else
                load<GEMMEPI_RESIDUAL_TYPE>(p.residual, item, row, column + half * p.n, valid, other);
#pragma unroll
            for (int i = 0; i < RUN; i++)
                v[half][i] = sum(v[half][i], SCALES_RESIDUAL ? product(other[i], state.scale_residual) : other[i]);
        }
}

// Of what the epilogue left: amax_d, and D.
__device__ inline void store_result(const gemmepi__epilogue_params &p, Epilogue_state &state, long long item,
                                    long long row, long long column, int valid, const Acc (&v)[HALVES][RUN]) {
#pragma unroll
    for (int half = 0; half < HALVES_OUT; half++) {
        if (AMAX_D)
            keep_largest_of_run(v[half], valid, state.largest_d);
        if (!GEMMEPI_STORES_D)
            continue;
        if (SCALES_D)
            store_scaled<GEMMEPI_D_TYPE, STAGES_D>(p.d, state.staged_d[half], state.scale_d, item, row, column + half * p.n, valid,
                                                   v[half]);
        else
            store<GEMMEPI_D_TYPE, STAGES_D>(p.d, state.staged_d[half], item, row, column + half * p.n, valid, v[half]);
    }
}

// After a thread's last run; every thread of a warp takes part.
__device__ inline void end_epilogue(const gemmepi__epilogue_params &p, const Epilogue_state &state) {
    if (AMAX_D)
        store_largest(p.amax_d, state.largest_d);
    if (AMAX_AUX)
        store_largest(p.amax_aux, state.largest_aux);
}

// BGRAD: adds the column sums of a block's threads over y, a halving at a time, so that the order is always the same.
// Thread (x, y) of Threads holds those of run x of the tile, of `width`; `part` counts tiles of rows of all items.
template <int Threads>
__device__ inline void store_partials(const gemmepi__epilogue_params &p, long long part, long long column, int valid,
                                      u32 x, u32 y, u32 width, const Acc (&sums)[HALVES_OUT][RUN]) {
    __shared__ Acc shared[HALVES_OUT * RUN][Threads];
    u32 thread = y * width + x;
#pragma unroll
    for (int i = 0; i < HALVES_OUT * RUN; i++)
        shared[i][thread] = sums[i / RUN][i % RUN];
    for (u32 half = Threads / width / 2; half > 0; half /= 2) {
        __syncthreads();
        if (y < half)
#pragma unroll
            for (int i = 0; i < HALVES_OUT * RUN; i++)
                shared[i][thread] = sum(shared[i][thread], shared[i][thread + half * width]);
    }
    if (y == 0)
        for (int half = 0; half < HALVES_OUT; half++)
            for (int i = 0; i < valid; i++)
                ((Acc *)p.partials)[(part * HALVES_OUT + half) * p.n + column + i] = shared[half * RUN + i][thread];
}

// SPREAD: the sums of a run over eight rows, one of the run's to each lane. Lanes halve what they have
// left with each exchange, always in the same order.
__device__ inline Acc sum_of_rows(const Acc (&of_run)[RUN]) {
    static_assert(!SPREAD || RUN == 8, "a sum for each lane");
    Acc left[RUN];
#pragma unroll
    for (int j = 0; j < RUN; j++)
        left[j] = of_run[j];
#pragma unroll
    for (int count = RUN / 2; count > 0; count /= 2)
#pragma unroll
        for (int j = 0; j < count; j++) {
            bool upper = threadIdx.x & (u32)count * OF_ROWS;
            Acc sent = upper ? left[j] : left[j + count], kept = upper ? left[j + count] : left[j];
            left[j] = kept + __shfl_xor_sync(0xffffffffu, sent, count * OF_ROWS);
        }
    return left[0];
}

// BGRAD: what a warp adds up of 32 columns, 16 rows at a time. Where registers are few, the lanes' sums are added up AtOnce, else
// at the end.
template <bool AtOnce> struct Column_sums {
    Acc of_lane[HALVES_OUT][RUN], of_lanes[HALVES_OUT];

    __device__ inline Column_sums() : of_lanes{} {
        begin_rows();
    }
    __device__ inline void begin_rows() {
#pragma unroll
        for (int i = 0; i < HALVES_OUT * RUN; i++)
            of_lane[i / RUN][i % RUN] = Acc(-0.0); // to which nothing need be added
    }

    // one row of this lane's; beyond m v may be anything
    __device__ inline void add(const Acc (&v)[HALVES][RUN], bool exists) {
        if (exists)
#pragma unroll
            for (int i = 0; i < HALVES_OUT * RUN; i++)
                of_lane[i / RUN][i % RUN] += v[i / RUN][i % RUN];
    }

    // after 16
    __device__ inline void end_rows() {
        if constexpr (AtOnce) {
#pragma unroll
            for (int half = 0; half < HALVES_OUT; half++)
                of_lanes[half] += sum_of_rows(of_lane[half]);
            begin_rows();
        }
    }

    // of the column of 32 that is this lane's
    __device__ static inline int column() {
        return lane_of_row() * 2 + place(row_of_lane());
    }
    __device__ inline Acc sum(int half) const {
        return AtOnce ? of_lanes[half] : sum_of_rows(of_lane[half]);
    }

    // line: of partial sums, each of which has both halves
    __device__ inline void store(const gemmepi__epilogue_params &p, long long line, int first) const {
#pragma unroll
        for (int half = 0; half < HALVES_OUT; half++) {
            Acc of_column = sum(half);
            if (first + column() < (int)p.n)
                ((Acc *)p.partials)[(line * HALVES_OUT + half) * p.n + first + column()] = of_column;
        }
    }
};
