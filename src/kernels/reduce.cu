// Sums of the rows or the columns of a matrix, in a fixed order, into bias_grad, dw and dbias of a network, or partial sums. They are
// added in F64, because a column may have millions of rows, but for those of blocks of a network.
#include "types.cuh"
#include "params.h"

#ifndef GEMMEPI_X_TYPE
#define GEMMEPI_X_TYPE     F32
#define GEMMEPI_OUT_TYPE   F32
#define GEMMEPI_ACCUMULATE 0 // 1: add to what out holds
#define GEMMEPI_X_SCALE    0 // the public mode of x's scale; x is summed along k
#define GEMMEPI_OF_ROWS    0 // 1: sums of rows, whose terms are side by side; 0: of columns
#define GEMMEPI_LANES      8 // threads that share a sum, a power of two
#define GEMMEPI_GATHERED   0 // 1: an index says which row is a group's next one
#define GEMMEPI_OF_NETWORK 0 // 1: one line of sums has several outputs
#endif

#if GEMMEPI_OF_NETWORK
typedef F32 Sum;
#else
typedef F64 Sum;
#endif
typedef GEMMEPI_OUT_TYPE Out;

constexpr int LANES = GEMMEPI_LANES, THREADS = GEMMEPI_OF_ROWS ? 128 : 32 * LANES, SUMS = THREADS / LANES; // of a block
constexpr int APART = GEMMEPI_OF_ROWS ? 1 : SUMS; // the lanes of a sum
constexpr u32 AT_ONCE = 8;                        // numbers that a thread loads before it adds them up
constexpr bool VARIES = GEMMEPI_X_SCALE == SCALE_VECTOR_128 || GEMMEPI_X_SCALE == SCALE_BLOCK_128; // along k

// The scale of one sum, where it does not vary along k.
__device__ inline Sum whole_scale(const float *scale, long long outer) {
    return GEMMEPI_X_SCALE == SCALE_TENSOR ? scale[0] : GEMMEPI_X_SCALE == SCALE_OUTER ? scale[outer] : 1;
}

__device__ inline void finish(const gpi__reduce_params &p, long long line, long long at, Sum sum) {
    Out *out = (Out *)p.out + line * p.out_stride + at;
#if GEMMEPI_OF_NETWORK
    for (int i = 0; i < p.outputs && at >= p.begins[i]; i++)
        out = (Out *)p.output[i] + (at - p.begins[i]);
#endif
    if (GEMMEPI_ACCUMULATE)
        sum += to_acc<Sum>(*out);
    *out = from_acc<Out>(sum);
}

// The sum of those of x that are first, first + LANES, ... below last along it; each times its factor.
__device__ inline Sum sum_up(const gpi__reduce_params &p, const GEMMEPI_X_TYPE *x, long long first, long long last,
                             const Scale_line &factors) {
    const long long stride = GEMMEPI_OF_ROWS ? 1 : p.x.ld;
    u32 count = first < last ? (u32)((last - first + LANES - 1) / LANES) : 0, i = 0;
    Sum sum = 0;
    if (!GEMMEPI_GATHERED)
        x += first * stride;
#pragma unroll 1
    do { // once at least: what is stored behind it waits as well
        GEMMEPI_X_TYPE values[AT_ONCE] = {};
        if (i == 0)
            after_launches_before(); // no sooner: most of the instructions up to the last load have come by now
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++, x += GEMMEPI_GATHERED ? 0 : LANES * stride)
            if (i + j < count)
#if GEMMEPI_GATHERED
                values[j] = x[p.groups.index_a[first + (i + j) * LANES] * stride];
#else
                values[j] = *x;
#endif
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++)
            if (!VARIES)
                sum += to_acc<Sum>(values[j]);
            else if (i + j < count)
                sum += to_acc<Sum>(values[j]) * factors.at[(first + (long long)(i + j) * LANES) / SCALE_STEPS * factors.step];
        i += AT_ONCE;
    } while (i < count);
    return sum;
}

// out[item * parts + part][at] = the sum of the part's terms, or out[group][at]. Blocks: items * parts * tiles of SUMS, or groups * tiles.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemmepi_reduce(GEMMEPI_PARAMS gpi__reduce_params p) {
    __shared__ Sum shared[THREADS];
    u32 tiles = (u32)((p.results + SUMS - 1) / SUMS); // 32 bits, as all counts of blocks
    u32 line = blockIdx.x / tiles, item = line / (u32)p.parts;
    u32 mine = GEMMEPI_OF_ROWS ? threadIdx.x / LANES : threadIdx.x % SUMS, lane = GEMMEPI_OF_ROWS ? threadIdx.x % LANES : threadIdx.x / SUMS;
    long long at = (long long)(blockIdx.x - line * tiles) * SUMS + mine;
    long long first = (line - item * (u32)p.parts) * p.part_terms;
    long long last = first + p.part_terms < p.terms ? first + p.part_terms : p.terms;
#if GEMMEPI_GROUPED
    after_launches_before();
    if (line >= (u32)*p.groups.count)
        return;
    const gpi__group_part part = p.groups.parts[line];
    line = part.group, item = 0, first = part.first, last = part.end;
#endif
    const float *scale = p.scale.data + item * p.scale.stride;
    const GEMMEPI_X_TYPE *x = (const GEMMEPI_X_TYPE *)p.x.data + item * p.x.stride + at * (GEMMEPI_OF_ROWS ? p.x.ld : 1);
    shared[threadIdx.x] =
        sum_up(p, x, first + lane, at < p.results ? last : 0, scale_line<GEMMEPI_X_SCALE>(scale, at, p.results, p.terms));
    for (u32 half = LANES / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half)
            shared[threadIdx.x] += shared[threadIdx.x + half * APART];
    }
    if (lane == 0 && at < p.results)
        finish(p, line, at, shared[threadIdx.x] * whole_scale(scale, at));
}
