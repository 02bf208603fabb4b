// Casts with a scale for each row, made of the row's amax, in one pass: the threads of a row, a warp or several, have it in registers
// between the two. Rows lie densely and begin at multiples of 16 bytes.
#include "scaled.cuh"

#ifndef GEMMEPI_GROUP
#define GEMMEPI_GROUP   128 // threads of a row
#define GEMMEPI_VECTORS 4   // that each of them has
#endif

constexpr int GROUP = GEMMEPI_GROUP, VECTORS = GEMMEPI_VECTORS, THREADS = GROUP < 128 ? 128 : GROUP, ROWS = THREADS / GROUP;

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

// Blocks: rows of all items, divided by ROWS.
extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_scaled_rows(GEMMEPI_PARAMS gpi__scaled_params p) {
    u32 line = blockIdx.x * ROWS + threadIdx.x / GROUP, rows = (u32)p.extent[1], outer = line / rows, row = line - outer * rows;
    int lane = (int)threadIdx.x % GROUP;
    const A *a = (const A *)p.a + row * p.stride_a[1];
    Y *y = (Y *)p.y + row * p.stride_y[1];
    for (int d = 2; d < p.rank; d++) {
        u32 extent = (u32)p.extent[d], next = outer / extent, at = outer - next * extent;
        a += at * p.stride_a[d];
        y += at * p.stride_y[d];
        outer = next;
    }
    bool exists = outer == 0; // rows beyond the last are of an item beyond
    int extent = exists ? (int)p.extent[0] : 0;
    Words<A, VECTOR> words[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        int first = (v * GROUP + lane) * VECTOR;
        if (first + VECTOR <= extent)
            words[v] = *reinterpret_cast<const Words<A, VECTOR> *>(a + first);
        else
            words[v] = words_of(read_elements<VECTOR>(a + first, extent - first));
    }
    Magnitude largest = 0;
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        Acc values[VECTOR];
        words_to_acc(words[v], values);
        keep_largest_of<Amax>(values, largest);
    }
    largest = largest_of_row(largest);
    float scale = scale_of_amax<Y>(largest);
    if (exists && lane == 0) {
        p.y_scale[line] = scale;
        if (GEMMEPI_AMAX)
            ((Magnitude *)p.amax)[line] = largest;
    }
    Acc factor = 1 / (Acc)scale;
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        int first = (v * GROUP + lane) * VECTOR;
        Acc values[VECTOR];
        if (SAME<A, F16> && THREADS * VECTORS > 4096) // widened again: for what was widened before registers are too few
#pragma unroll
            for (u32 &word : words[v].at)
                asm volatile("" : "+r"(word));
        words_to_acc(words[v], values);
#pragma unroll
        for (int e = 0; e < VECTOR; e++)
            values[e] *= factor;
        Run<Y, VECTOR> run = run_from_acc<Y>(values);
        if (first + VECTOR <= extent)
            *reinterpret_cast<Words<Y, VECTOR> *>(y + first) = words_of(run);
        else
#pragma unroll
            for (int e = 0; e < VECTOR; e++)
                if (first + e < extent)
                    y[first + e] = run.at[e];
    }
}
