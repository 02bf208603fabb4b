// Every barrier, in shared memory (mbarriers), by number (bar.sync) and of a cluster, in one place.
//
//   mbarrier          one for             arrivals of a phase              a phase ends when            who waits
//   full              stage               1, the loader, and its bytes     a stage's tiles have come    warpgroups, summers
//                                         with HAS_SCALES 32 lanes'        and its scales
//   empty             stage               TELLERS of each that reads it,   all have read it             the loader
//                                         with HAS_SCALES of each warp
//   input_full        warp's buffer, 2    1, the elected lane, and bytes   aux or residual have come    the warp
//   received          block, PARTS        1, and the bytes of all blocks   the cluster's sums are here  both warpgroups
//   slot_full         warpgroup, sums     4, its warps                     a unit's sums are in         the warp that adds up
//   slot_empty        warpgroup, sums     1, the warp that adds up         they have been taken         the warpgroup
//
//   bar.sync          threads             what it guards
//   0                 block               barriers are set up before use (__syncthreads)
//   1, 2              both warpgroups     PING_PONG: the first's, the second's turn to multiply
//
//   cluster           blocks              what it guards
//   at first          all                 barriers are set up before another block arrives there
//   PARTS             all                 all have left their stages, where sums will be sent; without st.async: sums are here
//   SUMMED            all                 totals of parts are here
//   at last           all                 nobody writes or reads there any more
//
// A phase's parity begins with 0. Who waits for `empty` or `slot_empty` begins with 1, so that the first round finds all empty.
// Without st.async (before NVRTC 12.1) the cluster's barriers stand for `received`.
#pragma once
#include "sm90/ptx.cuh"
#include "sm90/shared.cuh"

// A stage's end is told to the blocks that load into it, those of the row and of the column: so many threads do, each one block.
constexpr u32 TELLERS = CLUSTER_N + CLUSTER_M - 1;
// Of a warpgroup all warps tell, where each has read scales itself; of tiles no warp's wgmma ends before the others'.
constexpr u32 TELLING_WARPS = HAS_SCALES ? 4 : 1;

// One thread
__device__ inline void set_up_barriers(const Shared &shared) {
    for (int i = 0; i < STAGES; i++) {
        barrier_init(shared.full(i), 1 + (HAS_SCALES ? 32 : 0));
        barrier_init(shared.empty(i), ((PING_PONG ? 1 : CONSUMERS) * TELLING_WARPS + SUMMERS) * TELLERS);
    }
    for (int i = 0; i < (INPUTS ? 2 * WARPS : 0); i++)
        barrier_init(shared.first + Shared::INPUT_FULL + i * 8, 1);
    if (PARTS > 1)
        barrier_init(shared.received(), 1);
    for (int i = 0; i < (ADDS_COLUMNS ? CONSUMERS : 0); i++) {
        barrier_init(shared.slot_full(i), 4);
        barrier_init(shared.slot_empty(i), 1);
    }
    barriers_are_set();
}

// >>by number

__device__ inline void turn_wait(u32 warpgroup) {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + warpgroup), "n"(CONSUMERS * WARPGROUP) : "memory");
}
__device__ inline void turn_give(u32 warpgroup) {
    asm volatile("bar.arrive %0, %1;" ::"r"(1 + warpgroup), "n"(CONSUMERS * WARPGROUP) : "memory");
}
