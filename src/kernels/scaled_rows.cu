// Casts with a scale for each row, made of the row's amax, in one pass: the threads of a row, a warp or several, have it in registers
// between the two, or read it again where it is too long. Rows lie densely. With GEMMEPI_REST they are parts of longer rows.
// Behind a product this finds the scales of D, of rows or of 128 columns.
#include "scaled.cuh"

#ifndef GEMMEPI_GROUP
#define GEMMEPI_THREADS 128 // of a block: of one row or some
#define GEMMEPI_GROUP   128 // of a row
#define GEMMEPI_VECTORS 4   // that each of them has; 0: too many to keep
#define GEMMEPI_RANK    2   // p's
#define GEMMEPI_ALIGNED 1   // vectors of all rows begin at multiples of their size
#define GEMMEPI_REST    0   // elements of the last rows along axis 2; 0: as many as of the others
#endif

constexpr int GROUP = GEMMEPI_GROUP, VECTORS = GEMMEPI_VECTORS, THREADS = GEMMEPI_THREADS, ROWS = THREADS / GROUP;
constexpr bool KEEPS = VECTORS != 0;
constexpr bool ALWAYS = GEMMEPI_ALIGNED; // what is read of rows is more than what is not there
#if GEMMEPI_VECTORS
typedef int Extent;
#else
typedef long long Extent;
#endif

// The largest of a row's threads, in each of them. Every thread of the block takes part.
__device__ inline Magnitude largest_of_row(Magnitude largest) {
    __shared__ Magnitude warps[THREADS / 32];
    largest = largest_of_warp(largest);
    if (GROUP > 32) {
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = largest;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < GROUP / 32; i++) {
            Magnitude other = warps[threadIdx.x / GROUP * (GROUP / 32) + i];
            largest = other > largest ? other : largest;
        }
    }
    return largest;
}

__device__ inline Words<A, VECTOR> read_vector(const A *from, Extent valid) {
    if (GEMMEPI_ALIGNED && valid >= VECTOR)
        return *reinterpret_cast<const Words<A, VECTOR> *>(from);
    return words_of(read_elements<VECTOR>(from, valid < VECTOR ? (int)valid : VECTOR));
}

__device__ inline void store_vector(Y *to, const Run<Y, VECTOR> &run, Extent valid) {
    if (GEMMEPI_ALIGNED && valid >= VECTOR)
        *reinterpret_cast<Words<Y, VECTOR> *>(to) = words_of(run);
    else
#pragma unroll
        for (int e = 0; e < VECTOR; e++)
            if (e < valid)
                to[e] = run.at[e];
}

// Blocks: rows of all items, divided by ROWS.
extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_scaled_rows(GEMMEPI_PARAMS gpi__scaled_params p) {
    u32 line = blockIdx.x * ROWS + threadIdx.x / GROUP, outer = line;
    int lane = (int)threadIdx.x % GROUP;
    const A *a = (const A *)p.a;
    Y *y = (Y *)p.y;
    Extent extent = (Extent)p.extent[0];
    long long place = line; // of the scale
    bool exists = true;
    const int rank = VECTORS == 1 ? GEMMEPI_RANK : p.rank; // where the loop costs as much as the rest, and registers are enough
    for (int d = 1; d < rank; d++) {
        u32 along = (u32)p.extent[d], next = 0, at = outer;
        if (d + 1 < rank) {
            next = outer / along;
            at = outer - next * along;
        } else {
            exists = at < along;
            place += at * p.scale_gap;
        }
        a += at * p.stride_a[d];
        y += at * p.stride_y[d];
        if (GEMMEPI_REST && d == 2 && at + 1 == along)
            extent = GEMMEPI_REST;
        outer = next;
    }
    extent = exists ? extent : 0;
    after_launches_before();
    Words<A, VECTOR> words[KEEPS ? VECTORS : 1];
#pragma unroll
    for (int v = 0; v < VECTORS; v++)
        if (ALWAYS || (v * GROUP + lane) * VECTOR < extent)
            words[v] = read_vector(a + (v * GROUP + lane) * VECTOR, extent - (v * GROUP + lane) * VECTOR);
    auto vector_at = [&](Extent first, int v) { return KEEPS ? words[v] : read_vector(a + first, extent - first); };
    Magnitude largest = 0;
#pragma unroll KEEPS ? VECTORS : 4
    for (Extent v = 0; KEEPS ? v < VECTORS : (v * GROUP + lane) * VECTOR < extent; v++) {
        Extent first = (v * GROUP + lane) * VECTOR;
        Acc values[VECTOR];
        if (!ALWAYS && first >= extent)
            break;
        words_to_acc(vector_at(first, (int)v), values);
        keep_largest_of<Amax>(values, largest);
    }
    largest = largest_of_row(largest);
    float scale = scale_of_amax<Y>(largest);
    if (exists && lane == 0) {
        p.y_scale[place] = scale;
        if (GEMMEPI_AMAX)
            ((Magnitude *)p.amax)[line] = largest;
    }
    Acc factor = SAME<A, F32> ? (Acc)factor_of_scale(scale) : 1 / (Acc)scale; // other types would keep what is widened
#pragma unroll KEEPS ? VECTORS : 4
    for (Extent v = 0; KEEPS ? v < VECTORS : (v * GROUP + lane) * VECTOR < extent; v++) {
        Extent first = (v * GROUP + lane) * VECTOR;
        Acc values[VECTOR];
        if (!ALWAYS && first >= extent)
            break;
        if (SAME<A, F16> && THREADS * VECTORS > 4096) // widened again: for what was widened before registers are too few
#pragma unroll
            for (u32 &word : words[v].at)
                asm volatile("" : "+r"(word));
        words_to_acc(vector_at(first, (int)v), values);
#pragma unroll
        for (int e = 0; e < VECTOR; e++)
            values[e] *= factor;
        store_vector(y + first, run_from_acc<Y>(values), extent - first);
    }
}
