// Where a run lies: which lanes have which rows and columns, and how tensors are read and written from there.
#pragma once
#include "epilogue_parameters.cuh"

__device__ inline long long offset(const gpi__kernel_matrix &x, long long item, long long row, long long column) {
    return item * x.stride + row * x.ld + column;
}

// INTERLEAVED: what has two halves is accessed as two runs of pairs, so far apart; the elements of a run are those of two members.
template <int Halves> constexpr bool IN_PAIRS = INTERLEAVED && Halves > 1;
constexpr int FROM_RUN_TO_RUN = THIN ? 32 : 2;

// Where a tensor that has so many halves has the column of one: side by side, or within groups. IN_PAIRS: where it has that run of the
// units from `column` on.
template <int Halves> __device__ inline long long column_of_half(const gpi__epilogue_params &p, long long column, int half) {
    if constexpr (IN_PAIRS<Halves>)
        return column * 2 + half * FROM_RUN_TO_RUN;
    else if constexpr (IN_GROUPS && Halves > 1)
        return column + (long long)((u32)column / HALF_GROUP + half) * HALF_GROUP;
    else
        return column + half * p.n;
}

// Columns from a run's first to its i-th, which exists if these are fewer than `valid`.
template <int Halves = 1> __device__ constexpr int place(int i) {
    return IN_PAIRS<Halves> ? i / 2 * (THIN ? 8 : 16) + i % 2
           : THIN           ? i * 4
           : SPREAD         ? i / 2 * 8 + i % 2
                            : i / STRETCH * (ABREAST * STRETCH) + i % STRETCH;
}
template <int Halves> __device__ inline int valid_of_half(int valid, int half) {
    return IN_PAIRS<Halves> ? valid * 2 - half * FROM_RUN_TO_RUN : valid;
}
// The column of a member of a run's i-th unit.
template <int Members> __device__ inline long long column_of_member(const gpi__epilogue_params &p, long long column, int member, int i) {
    if constexpr (IN_PAIRS<Members>)
        return (column + place(i)) * 2 + member;
    else
        return column_of_half<Members>(p, column, member) + place(i);
}

// IN_PAIRS: makes members of runs of pairs, or those of members. Only names of registers change.
template <bool To_pairs, int Halves, class T> __device__ inline void regroup(T (&x)[Halves][RUN]) {
    if constexpr (IN_PAIRS<Halves>) {
        T was[2][RUN];
        memcpy(was, x, sizeof was);
#pragma unroll
        for (int i = 0; i < 2 * RUN; i++) {
            int unit = i / 2, run = THIN ? unit / 4 : unit % 2, at = (THIN ? unit % 4 : unit / 2) * 2 + i % 2;
            if (To_pairs)
                x[run][at] = was[i % 2][unit];
            else
                x[i % 2][unit] = was[run][at];
        }
    }
}
// Which four lanes have a row, of eight, and which row that is: as wgmma and mma.sync leave sums, or APART.
constexpr int IN_ROW = APART ? 16 : 2, OF_ROWS = APART ? 2 : 4; // the second bit of the first, the first of the second
__device__ inline int lane_of_row() {
    return APART ? (int)(threadIdx.x % 2 + threadIdx.x % 32 / IN_ROW * 2) : (int)(threadIdx.x % 4);
}
// SPREAD: the first of this lane's columns, of 32.
__device__ inline int column_of_lane() {
    return lane_of_row() * (THIN ? 1 : 2);
}
__device__ inline int row_of_lane() {
    return (int)(threadIdx.x % 32 / OF_ROWS % 8);
}

template <int Halves> constexpr bool HAS_PAIRS = ALIGNED && (!THIN || IN_PAIRS<Halves>); // SPREAD: of which each is accessed at once

// A run as it lies in memory.
template <class T> struct Read {
    Words<T, STRETCH> at[RUN / STRETCH];
};
template <class T, int Halves = 1> __device__ inline Read<T> read(const T *from, int valid) {
    Read<T> read = {};
    if constexpr (SPREAD) {
#pragma unroll
        for (int i = 0; i < RUN; i += 2)
            if (HAS_PAIRS<Halves> && valid > place<Halves>(i + 1)) {
                read.at[i / 2] = *reinterpret_cast<const Words<T, 2> *>(from + place<Halves>(i));
            } else if (!(HAS_PAIRS<Halves> && WHOLE)) {
                Run<T, 2> pair = {};
#pragma unroll
                for (int j = 0; j < 2; j++)
                    if (valid > place<Halves>(i + j))
                        pair.at[j] = from[place<Halves>(i + j)];
                read.at[i / 2] = words_of(pair);
            }
    } else if constexpr (IN_STRETCHES) {
#pragma unroll
        for (int i = 0; i < RUN; i += STRETCH)
            if (valid > place(i))
                read.at[i / STRETCH] = *reinterpret_cast<const Words<T, STRETCH> *>(from + place(i));
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
    } else if constexpr (IN_STRETCHES) {
#pragma unroll
        for (int i = 0; i < RUN; i += STRETCH) {
            Acc stretch[STRETCH];
            run_to_acc(run_of(read.at[i / STRETCH]), stretch);
#pragma unroll
            for (int j = 0; j < STRETCH; j++)
                values[i + j] = stretch[j];
        }
    } else {
        run_to_acc(run_of(read.at[0]), values);
    }
}

// Of a row's four lanes each has a pair of every eight columns. Traded, each has eight side by side, of elements of a byte 64 bits: the
// eights after its number. Every thread of a warp takes part.
template <class T> __device__ inline Words<T> trade_pairs(const Words<T> &pairs) {
    u32 of_first = pairs.at[0], of_second = pairs.at[1];
    bool is_odd = lane_of_row() % 2, is_upper = lane_of_row() / 2;
    u32 kept = is_upper ? of_second : of_first, other = __shfl_xor_sync(0xffffffff, is_upper ? of_first : of_second, IN_ROW);
    u32 lower = is_upper ? other : kept, upper = is_upper ? kept : other; // of the lanes 0 or 1, of 2 or 3: a pair of two eights
    u32 evens = (lower & 0xffff) | upper << 16, odds = lower >> 16 | (upper & 0xffff0000);
    u32 traded = __shfl_xor_sync(0xffffffff, is_odd ? evens : odds, 1);
    u32 of_even = is_odd ? traded : evens, of_odd = is_odd ? odds : traded; // pairs 0 and 2, 1 and 3 of the eight
    Words<T> eight;
    eight.at[0] = (of_even & 0xffff) | of_odd << 16;
    eight.at[1] = of_even >> 16 | (of_odd & 0xffff0000);
    return eight;
}

template <class T, int Halves = 1> __device__ inline void store_at(T *to, int valid, const Acc (&values)[RUN]) {
    if constexpr (SPREAD && ALIGNED && WHOLE && sizeof(T) == 1 && !INTERLEAVED) {
        Words<T> eight = trade_pairs(words_of(run_from_acc<T>(values)));
        if (valid > 6 * lane_of_row())
            *reinterpret_cast<Words<T> *>(to + 6 * lane_of_row()) = eight;
    } else if constexpr (SPREAD) {
        Run<T> run = run_from_acc<T>(values);
#pragma unroll
        for (int i = 0; i < RUN; i += 2) {
            Run<T, 2> pair = {run.at[i], run.at[i + 1]};
            if (HAS_PAIRS<Halves> && valid > place<Halves>(i + 1)) {
                *reinterpret_cast<Words<T, 2> *>(to + place<Halves>(i)) = words_of(pair);
            } else if (!(HAS_PAIRS<Halves> && WHOLE)) {
                if (valid > place<Halves>(i))
                    to[place<Halves>(i)] = pair.at[0];
                if (valid > place<Halves>(i + 1))
                    to[place<Halves>(i + 1)] = pair.at[1];
            }
        }
    } else if constexpr (IN_STRETCHES) {
        Run<T> run = run_from_acc<T>(values);
#pragma unroll
        for (int i = 0; i < RUN; i += STRETCH) {
            Run<T, STRETCH> stretch;
#pragma unroll
            for (int j = 0; j < STRETCH; j++)
                stretch.at[j] = run.at[i + j];
            if (valid > place(i))
                store_words(to + place(i), words_of(stretch));
        }
    } else {
        store_run<ALIGNED>(to, valid, values);
    }
}

template <class T, int Halves = 1>
__device__ inline void load(const gpi__kernel_matrix &x, long long item, long long row, long long column, int valid,
                            Acc (&values)[RUN]) {
    to_accs(read<T, Halves>((const T *)x.data + offset(x, item, row, column), valid), values);
}

// Of those of a run that exist: pairs of SPREAD ones do as a whole where n is a multiple of eight.
__device__ inline void keep_largest_of_run(const Acc (&v)[RUN], int valid, Magnitude &largest) {
    if constexpr (SPREAD && WHOLE && SAME<Acc, F32>) {
#pragma unroll
        for (int i = 0; i < RUN; i += 2) {
            Magnitude size = larger_magnitude(v[i], v[i + 1]);
            if (place(i) < valid && size > largest)
                largest = size;
        }
    } else {
        Acc existing[RUN];
#pragma unroll
        for (int i = 0; i < RUN; i++)
            existing[i] = place(i) < valid ? v[i] : Acc(0);
        keep_largest(existing, RUN, largest);
    }
}

// The aux that BACKWARD reads, as it lies in memory: RELU's mask, the upstream gradient, or the pre-activation. Kernels
// load it ahead.
struct Saved {
    Read<GEMMEPI_AUX_TYPE> runs[HALVES_SAVED];
    u32 mask;
#if GEMMEPI_BRINGS
    Read<GEMMEPI_RESIDUAL_TYPE> residual[HALVES_OUT];
#endif
};

// What is the same for all rows: the bias of a run's columns.
struct Of_columns {
    Read<GEMMEPI_BIAS_TYPE> bias[HALVES_IN];
};
__device__ inline Of_columns load_columns(const gpi__epilogue_params &p, long long item, long long column, int valid) {
    Of_columns of;
    if (HAS_BIAS)
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++)
            of.bias[half] =
                read<GEMMEPI_BIAS_TYPE, HALVES_IN>(
                    (const GEMMEPI_BIAS_TYPE *)p.bias.data + offset(p.bias, item, 0, column_of_half<HALVES_IN>(p, column, half)),
                    valid_of_half<HALVES_IN>(valid, half));
    return of;
}
