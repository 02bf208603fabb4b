// BGRAD: sums of what the epilogue leaves over rows.
#pragma once
#include "epilogue_formula.cuh"
#include "epilogue_fragment.cuh"

// BGRAD: adds the column sums of a block's threads over y, a halving at a time, so that the order is always the same.
// Thread (x, y) of Threads holds those of run x of the tile, of `width`; `part` counts tiles of rows of all items.
template <int Threads>
__device__ inline void store_partials(const gpi__epilogue_params &p, long long part, long long column, int valid,
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
            for (int i = 0; i < RUN && place(i) < valid; i++)
                ((Acc *)p.partials)[(part * HALVES_OUT + half) * p.n + column + place(i)] = shared[half * RUN + i][thread];
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
    __device__ inline void store(const gpi__epilogue_params &p, long long line, int first) const {
#pragma unroll
        for (int half = 0; half < HALVES_OUT; half++) {
            Acc of_column = sum(half);
            if (first + column() < (int)p.n)
                ((Acc *)p.partials)[(line * HALVES_OUT + half) * p.n + first + column()] = of_column;
        }
    }
};
