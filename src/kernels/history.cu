// The scale of D that is found before a run, of the amax of earlier ones.
#include "found_scale.cuh"
#include "params.h"
#include "types.cuh"

#ifndef GEMMEPI_Y_TYPE
#define GEMMEPI_Y_TYPE E4M3
#endif

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
        float scale = scale_of_amax<GEMMEPI_Y_TYPE>(largest);
        p.history[0] = 0;
        *p.scale = scale;
        *p.reciprocal = factor_of_scale(scale);
    }
}
