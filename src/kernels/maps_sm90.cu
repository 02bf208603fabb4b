// Groups of k: for each group tensor maps of A and B that end where it does, so that TMA brings zeros for what is beyond. Their lines lie
// along k.
#include "types.cuh"
#include "params.h"

#ifndef GEMMEPI_THREADS
#define GEMMEPI_THREADS 128
#endif

constexpr int THREADS = GEMMEPI_THREADS;
constexpr int WORDS = 16; // of a map

// Lines from `end` on are outside. There is one at least, as a map wants it.
__device__ inline void end_lines_at(gpi__tensor_map *map, int end) {
    asm volatile("tensormap.replace.tile.global_dim.global.b1024.b32 [%0], 1, %1;" ::"l"(map), "r"(end > 0 ? end : 1) : "memory");
}

// A thread makes a group's.
extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_maps(GEMMEPI_PARAMS gpi__maps_params p) {
    after_launches_before();
    int group = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (group >= *p.count)
        return;
    unsigned long long *to = (unsigned long long *)p.maps + group * 2 * WORDS;
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        to[i] = p.a.words[i];
        to[WORDS + i] = p.b.words[i];
    }
    end_lines_at((gpi__tensor_map *)to, p.parts[group].end);
    end_lines_at((gpi__tensor_map *)(to + WORDS), p.parts[group].end);
    asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}
