// FINDS: the scales of D's vectors, a row's 128 columns each, made of what the epilogue leaves of them.
#pragma once
#include "epilogue_fragment.cuh"
#include "epilogue_staging.cuh"

constexpr int VECTOR_COLUMNS = SCALE_STEPS;

// The scale that makes D's 8 bits of a vector, for one of its lanes to write; column: any of the vector's, counted over D's halves.
// Of grouped products all groups have one D, and the stride is from one vector of a row to the next.
__device__ inline void write_scale(const gpi__epilogue_params &p, long long item, long long row, long long column, float scale) {
#if GEMMEPI_GROUPED
    const_cast<float *>(p.scale_d.data)[column / VECTOR_COLUMNS * p.scale_d.stride + row] = scale;
#else
    const_cast<float *>(p.scale_d.data)[item * p.scale_d.stride + column / VECTOR_COLUMNS * p.m + row] = scale;
#endif
}

// A run of D of which the vector's scale is known.
__device__ inline void store_by_scale(const gpi__epilogue_params &p, float scale, long long item, long long row, long long column,
                                      int valid, const Acc (&v)[RUN]) {
    if constexpr (SAME<Acc, F32>)
        store_halves<GEMMEPI_D_TYPE, false, true, 1>(p, p.d, nullptr, factor_of_scale(scale), item, row, column, valid, &v);
}

// The largest of the lanes that have a vector, in each of them: in a pass neighbours, of the 16 that are 128 columns those that there are.
// Every thread of the warp takes part.
__device__ inline Magnitude largest_of_neighbours(Magnitude largest) {
    for (u32 step = (blockDim.x * RUN < VECTOR_COLUMNS ? blockDim.x : VECTOR_COLUMNS / RUN) / 2; step > 0; step /= 2) {
        Magnitude other = __shfl_xor_sync(0xffffffff, largest, step);
        largest = other > largest ? other : largest;
    }
    return largest;
}

// Of what the epilogue left, in a pass: amax_d, the scales and D. Lanes take part whose rows or columns do not exist.
__device__ inline void store_found_result(const gpi__epilogue_params &p, Epilogue_state &state, long long item, long long row,
                                          long long column, int valid, const Acc (&v)[HALVES][RUN]) {
#pragma unroll
    for (int half = 0; half < HALVES_OUT; half++) {
        Magnitude largest = 0;
        keep_largest_of_run(v[half], valid, largest);
        if (AMAX_D && largest > state.largest_d)
            state.largest_d = largest;
        largest = largest_of_neighbours(largest);
        float scale = scale_of_amax<GEMMEPI_D_TYPE>((u32)largest);
        long long at = column_of_half<HALVES_OUT>(p, column, half);
        if (valid > 0 && threadIdx.x % (VECTOR_COLUMNS / RUN) == 0)
            write_scale(p, item, row, at, scale);
        store_by_scale(p, scale, item, row, at, valid, v[half]);
    }
}
