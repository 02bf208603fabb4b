// The ring of stages: one thread loads tiles of A and B into them, warpgroups (and summers) read them in the same order.
#pragma once
#include "sm90/barriers.cuh"

// Whom a reader's thread tells, of TELLERS, that it has left a stage.
__device__ inline u32 told_by(u32 thread, u32 rank) {
    u32 row = rank % CLUSTER_M, column = rank / CLUSTER_M, other = thread - CLUSTER_N;
    return PARTS > 1            ? rank
           : thread < CLUSTER_N ? row + thread * CLUSTER_M
                                : column * CLUSTER_M + (other >= row ? other + 1 : other);
}

// Where a thread is in the ring.
struct Pipeline {
    Shared shared;
    u32 parity, stage; // of the round, and the stage at hand
    bool tells;        // a reader's thread that tells a block
    u32 told;          // `empty` of that block's first stage

    __device__ static inline Pipeline of_loader(const Shared &shared) {
        return {shared, 1, 0, false, 0};
    }
    // thread: of the warp or warpgroup that reads together
    __device__ static inline Pipeline of_reader(const Shared &shared, u32 thread, u32 rank) {
        bool tells = thread < TELLERS;
        u32 block = told_by(thread, rank);
        return {shared, 0, 0, tells, address_in(shared.empty(0), tells ? block : rank)};
    }

    __device__ inline void wait_full() const {
        barrier_wait(shared.full(stage), parity);
    }
    __device__ inline void wait_empty() const {
        barrier_wait(shared.empty(stage), parity);
    }
    // A stage that all of the reader's threads have left.
    __device__ inline void release(u32 which, bool does = true) const {
        if (tells && does)
            barrier_arrive(told + which * 8);
    }
    __device__ inline u32 last() const { // the stage before the one at hand
        return stage ? stage - 1 : STAGES - 1;
    }
    __device__ inline void advance() {
        if (++stage == STAGES)
            stage = 0, parity ^= 1;
    }
    // Over the stages of another's tile.
    __device__ inline void skip(int blocks) {
        stage += (u32)blocks;
        parity ^= stage / STAGES & 1;
        stage %= STAGES;
    }
};
