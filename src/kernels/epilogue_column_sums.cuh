// Sums of what the epilogue leaves over rows: reductions of columns and of all.
#pragma once
#include "epilogue_arithmetic.cuh"
#include "epilogue_fragment.cuh"

// >>COLUMN_LINES of sums, or of the largest numbers

__device__ inline Acc join_in_line(int line, Acc x, Acc y) {
    if (LARGEST_LINES >> line & 1)
        return larger_or_nan(x, y);
    return x + y;
}
// To which nothing need be added.
__device__ inline Acc nothing_in_line(int line) {
    if (LARGEST_LINES >> line & 1)
        return below_all<Acc>();
    return Acc(-0.0);
}

// The sums of a run over eight rows, one of the run's to each lane. Lanes halve what they have left with each exchange, always in the same
// order.
__device__ inline Acc sum_of_rows(int line, const Acc (&of_run)[RUN]) {
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
            left[j] = join_in_line(line, kept, __shfl_xor_sync(0xffffffffu, sent, count * OF_ROWS));
        }
    return left[0];
}

// What a warp adds up of 32 columns, 16 rows at a time. Where registers are few, the lanes' sums are added up AtOnce, else at the end.
template <bool AtOnce> struct Column_sums {
    static constexpr int LINES = ADDS_COLUMNS ? COLUMN_LINES : 1;
    Acc of_lane[LINES][RUN], of_lanes[LINES];

    __device__ inline Column_sums() : of_lanes{} {
#pragma unroll
        for (int line = 0; line < LINES; line++)
            if (LARGEST_LINES >> line & 1)
                of_lanes[line] = nothing_in_line(line);
        begin_rows();
    }
    __device__ inline void begin_rows() {
#pragma unroll
        for (int i = 0; i < LINES * RUN; i++)
            of_lane[i / RUN][i % RUN] = nothing_in_line(i / RUN);
    }

    // one row of this lane's; beyond m it may be anything
    __device__ inline void add(Epilogue_state &state, bool exists) {
        const Acc(*values)[RUN] = state.of_columns.lines();
        if (exists)
#pragma unroll
            for (int i = 0; i < LINES * RUN; i++)
                of_lane[i / RUN][i % RUN] = join_in_line(i / RUN, of_lane[i / RUN][i % RUN], values[i / RUN][i % RUN]);
    }

    // after 16
    __device__ inline void end_rows() {
        if constexpr (AtOnce) {
#pragma unroll
            for (int line = 0; line < LINES; line++)
                of_lanes[line] = join_in_line(line, of_lanes[line], sum_of_rows(line, of_lane[line]));
            begin_rows();
        }
    }

    // of the column of 32 that is this lane's
    __device__ static inline int column() {
        return lane_of_row() * 2 + place(row_of_lane());
    }
    __device__ inline Acc sum(int line) const {
        return AtOnce ? of_lanes[line] : sum_of_rows(line, of_lane[line]);
    }
    __device__ inline void store(const gpi__epilogue_params &p, const gpi__formula_place *beside, long long rows, int first) const;
};

// >>to memory: of some rows, whose number among those of all items is `rows`

// A state of a column, or of all, by a warp, of the 32 columns of its lanes.
template <int Place, int Kind, int Members, int Reduction>
__device__ inline void store_column_states(const gpi__epilogue_params &p, const gpi__formula_place *beside, long long rows, long long column,
                                           bool exists, const Acc (&sums)[Column_sums<true>::LINES]) {
    constexpr int line = first_line(Place);
    Left_of<Acc, Reduction> *to = (Left_of<Acc, Reduction> *)beside[Place].data + rows * beside[Place].ld;
    if constexpr (Kind == kind::PER_COLUMN) {
#pragma unroll
        for (int member = 0; member < Members; member++)
            if (exists)
                to[column_of_half<Members>(p, column, member)] = {sums[line + member]};
    } else {
        Acc all = sums[line];
#pragma unroll
        for (int member = 1; member < Members; member++)
            all = join_in_line(line, all, sums[line + member]);
        if (!exists)
            all = nothing_in_line(line);
#pragma unroll
        for (int lanes = 1; lanes < 32; lanes *= 2)
            all = join_in_line(line, all, __shfl_xor_sync(0xffffffffu, all, lanes));
        if (threadIdx.x % 32 == 0 && exists)
            to[column / 32] = {all};
    }
}
#define STORE_COLUMN_STATES(place_, name, kind_, members, type, reduction_, accumulates) \
    if constexpr (is_of_columns(reduction::reduction_))                                  \
        store_column_states<place_, kind::kind_, members, reduction::reduction_>(p, beside, rows, column, exists, sums);
__device__ inline void store_column_sums(const gpi__epilogue_params &p, const gpi__formula_place *beside, long long rows, long long column,
                                         bool exists, const Acc (&sums)[Column_sums<true>::LINES]) {
    COLUMN_OUTPUTS(STORE_COLUMN_STATES)
}

// SPREAD: by a warp, what each lane has of its column of 32, `first` on.
__device__ inline void store_sums_of_lanes(const gpi__epilogue_params &p, const gpi__formula_place *beside, long long rows, int first,
                                           const Acc (&sums)[Column_sums<true>::LINES]) {
    int column = first + Column_sums<true>::column();
    store_column_sums(p, beside, rows, column, column < (int)p.n, sums);
}
template <bool AtOnce>
__device__ inline void Column_sums<AtOnce>::store(const gpi__epilogue_params &p, const gpi__formula_place *beside, long long rows, int first) const {
    Acc sums[LINES];
#pragma unroll
    for (int line = 0; line < LINES; line++)
        sums[line] = sum(line);
    store_sums_of_lanes(p, beside, rows, first, sums);
}

// Else by a block, of a tile: adds up what its threads have over y, a halving at a time, so that the order is always the same.
struct Threads_of_tile {
    u32 x, y, width; // the thread's: of run x of the tile
    long long rows, column;
    int valid;
};
template <int Threads>
__device__ inline void store_sums_of_threads(const gpi__epilogue_params &p, const gpi__formula_place *beside, const Threads_of_tile &at,
                                             const Acc (*sums)[RUN]) {
    __shared__ Acc shared[COLUMN_LINES * RUN][Threads];
    u32 thread = at.y * at.width + at.x;
#pragma unroll
    for (int i = 0; i < COLUMN_LINES * RUN; i++)
        shared[i][thread] = sums[i / RUN][i % RUN];
    for (u32 half = Threads / at.width / 2; half > 0; half /= 2) {
        __syncthreads();
        if (at.y < half)
#pragma unroll
            for (int i = 0; i < COLUMN_LINES * RUN; i++)
                shared[i][thread] = join_in_line(i / RUN, shared[i][thread], shared[i][thread + half * at.width]);
    }
    if (at.y == 0)
        for (int i = 0; i < RUN && place(i) < at.valid; i++) {
            Acc of_column[Column_sums<true>::LINES];
#pragma unroll
            for (int line = 0; line < COLUMN_LINES; line++)
                of_column[line] = shared[line * RUN + i][thread];
            store_column_sums(p, beside, at.rows, at.column + place(i), true, of_column);
        }
}
