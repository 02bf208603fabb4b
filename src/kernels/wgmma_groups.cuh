// Groups of wgmma, as all kernels for Hopper begin, end and wait for them.
#pragma once
#include "types.cuh"

__device__ inline void multiply_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void multiply_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int Left> __device__ inline void multiply_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}
// What this warp has written to shared memory is seen by TMA and wgmma behind it; by those of other warps behind a barrier.
__device__ inline void show_stores() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
