// Scales that are found for D where the kernel before does not find them: of rows and vectors of a finished D in F32, and, before a run,
// of the amax of earlier ones.
#include "found_scale.cuh"
#include "params.h"
#include "types.cuh"

#ifndef GEMMEPI_D_TYPE
#define GEMMEPI_D_TYPE  E4M3
#define GEMMEPI_MODE    3 // the public mode: OUTER or VECTOR_128
#define GEMMEPI_ALIGNED 0 // 1: four columns of x and of D begin at multiples of their size
#define GEMMEPI_KEPT    1 // fours that a thread has of a span at most, which it keeps; 0: there are too many, it reads them again
#endif

typedef GEMMEPI_D_TYPE D;
constexpr int THREADS = 256, TAKEN = 4;                                           // columns that a thread takes at a time
constexpr int KEPT = GEMMEPI_KEPT;
constexpr bool BY_ROWS = GEMMEPI_MODE == SCALE_OUTER;                             // a block has a row, else a warp a vector
constexpr int LANES = BY_ROWS ? THREADS : 32, SPANS_OF_BLOCK = THREADS / LANES; // threads of a span, which has one scale

__device__ inline Words<F32, TAKEN> read_four(const float *from, long long left) {
    if (GEMMEPI_ALIGNED && left >= TAKEN)
        return *reinterpret_cast<const Words<F32, TAKEN> *>(from);
    return words_of(read_elements<TAKEN>(from, left < TAKEN ? (int)left : TAKEN));
}

// The largest of a span's threads, in each of them.
__device__ inline u32 largest_of_span(u32 largest) {
    largest = largest_of_warp(largest);
    if constexpr (BY_ROWS) {
        __shared__ u32 of_warps[THREADS / 32];
        if (threadIdx.x % 32 == 0)
            of_warps[threadIdx.x / 32] = largest;
        __syncthreads();
        largest = largest_of_warp(of_warps[threadIdx.x % (THREADS / 32)]);
    }
    return largest;
}

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_quantise(GEMMEPI_PARAMS gpi__quantise_params p) {
    long long spans = BY_ROWS ? 1 : (p.columns + SCALE_STEPS - 1) / SCALE_STEPS; // of a row
    long long span = (long long)blockIdx.x * SPANS_OF_BLOCK + threadIdx.x / LANES; // rows first, then columns, then items
    long long rest = span / p.rows, row = span - rest * p.rows, item = rest / spans, first = (rest - item * spans) * SCALE_STEPS;
    after_launches_before();
    if (item >= p.items)
        return;
    long long left = p.columns - first, count = BY_ROWS || left < SCALE_STEPS ? left : SCALE_STEPS;
    const float *x = (const float *)p.x.data + item * p.x.stride + row * p.x.ld + first;
    D *d = (D *)p.d.data + item * p.d.stride + row * p.d.ld + first;
    long long begin = threadIdx.x % LANES * TAKEN;
    Words<F32, TAKEN> kept[KEPT ? KEPT : 1];
    u32 largest = 0;
#pragma unroll
    for (int k = 0; k < KEPT; k++) // all of them are asked for at once
        if (begin + k * LANES * TAKEN < count)
            kept[k] = read_four(x + begin + k * LANES * TAKEN, count - begin - k * LANES * TAKEN);
    auto four_at = [&](long long i, int k) { return KEPT ? kept[k] : read_four(x + i, count - i); };
#pragma unroll KEPT ? KEPT : 1
    for (long long k = 0; KEPT ? k < KEPT : begin + k * LANES * TAKEN < count; k++) {
        long long i = begin + k * LANES * TAKEN;
        F32 values[TAKEN];
        if (i >= count)
            break;
        words_to_acc(four_at(i, (int)k), values);
        keep_largest(values, TAKEN, largest);
    }
    float scale = scale_of_amax<D>(largest_of_span(largest)), factor = factor_of_scale(scale);
    if (threadIdx.x % LANES == 0)
        p.scale[item * p.scale_stride + first / SCALE_STEPS * p.rows + row] = scale;
#pragma unroll KEPT ? KEPT : 1
    for (long long k = 0; KEPT ? k < KEPT : begin + k * LANES * TAKEN < count; k++) {
        long long i = begin + k * LANES * TAKEN;
        F32 values[TAKEN];
        if (i >= count)
            break;
        words_to_acc(four_at(i, (int)k), values);
#pragma unroll
        for (int e = 0; e < TAKEN; e++)
            values[e] *= factor;
        Run<D, TAKEN> run = run_from_acc<D>(values);
        if (GEMMEPI_ALIGNED && count - i >= TAKEN)
            *reinterpret_cast<Words<D, TAKEN> *>(d + i) = words_of(run);
        else
#pragma unroll
            for (int e = 0; e < TAKEN; e++)
                if (e < count - i)
                    d[i + e] = run.at[e];
    }
}

// One block, a thread for each run: the largest finite amax, and all of them one place on. The first is 0 then, for the run to raise.
extern "C" __global__ void __launch_bounds__(1024) gemmepi_history(GEMMEPI_PARAMS gpi__history_params p) {
    __shared__ u32 of_warps[32];
    after_launches_before();
    u32 i = threadIdx.x, amax = i < (u32)p.count ? magnitude(p.history[i]) : 0;
    u32 finite = amax < 0x7f800000 ? amax : 0, largest = largest_of_warp(finite);
    if (i % 32 == 0)
        of_warps[i / 32] = largest;
    __syncthreads(); // all of the history is read
    if (i + 1 < (u32)p.count)
        p.history[i + 1] = __uint_as_float(amax);
    if (i >= 32)
        return;
    largest = largest_of_warp(i < blockDim.x / 32 ? of_warps[i] : 0);
    if (i == 0) {
        float scale = scale_of_amax<D>(largest);
        p.history[0] = 0;
        *p.scale = scale;
        *p.reciprocal = factor_of_scale(scale);
    }
}
