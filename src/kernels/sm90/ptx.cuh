// Instructions of Hopper that CUDA C++ has no name for: addresses, clusters, mbarriers, TMA.
#pragma once
#include "params.h"
#include "types.cuh"
#include "shared_memory.cuh"
#include "wgmma_groups.cuh"

// >>addresses

__device__ inline u32 shared_address(const void *p) {
    return (u32)__cvta_generic_to_shared(p);
}
__device__ inline u32 cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
// An address of this block's in another block of the cluster.
__device__ inline u32 address_in(u32 address, u32 rank) {
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

// >>one lane of a warp

// Whether this is the lane of its whole warp that speaks to TMA.
__device__ inline bool is_elected() {
    u32 is;
    asm volatile("{\n.reg .pred is;\nelect.sync _|is, 0xffffffff;\nselp.u32 %0, 1, 0, is;\n}" : "=r"(is));
    return is;
}

// >>barriers of clusters

// What was written to shared memory before is seen by the whole cluster behind it.
__device__ inline void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// No more than that all threads have come: a release costs a trip to memory.
__device__ inline void cluster_meets() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// >>registers

template <int Registers> __device__ inline void keep_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers> __device__ inline void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

// >>mbarriers

__device__ inline void barrier_init(u32 barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ inline void barriers_are_set() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Waits for the phase of this parity to end.
__device__ inline void barrier_wait(u32 barrier, u32 parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}
// That wgmma has read a stage needs no release: it goes before by wait_group. What a warp has read itself is ordered before.
__device__ inline void barrier_arrive(u32 barrier_there) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier_there) : "memory");
}
__device__ inline void barrier_arrive_here(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// >>TMA

__device__ inline void prefetch_map(const gpi__tensor_map &map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
// A box of an operand, of three axes, to `to`, in the blocks of the mask.
template <bool Multicast>
__device__ inline void load_box(const gpi__tensor_map &map, u32 to, u32 barrier, int x, int y, int item, u16 mask) {
    if (Multicast)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                     "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(item), "h"(mask)
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
                     "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(item)
                     : "memory");
}
// Asks for such a box to come to L2, which is right whatever is written there meanwhile.
__device__ inline void fetch_box(const gpi__tensor_map &map, int x, int y, int item) {
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(&map), "r"(x), "r"(y), "r"(item) : "memory");
}
// Where a box of such begins; halves of the whole are an axis of their own.
struct Box_place {
    int column, half;
};
// A box of what the epilogue reads, of four axes.
__device__ inline void load_input(const gpi__tensor_map &map, u32 to, u32 barrier, Box_place at, int row, int item) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
                 "l"(&map), "r"(barrier), "r"(at.column), "r"(row), "r"(at.half), "r"(item)
                 : "memory");
}
// What a kernel before this one has made of a map is seen by TMA.
__device__ inline void acquire_map(const gpi__tensor_map &map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(&map) : "memory");
}
// A box of results.
__device__ inline void store_output(const gpi__tensor_map &map, u32 from, Box_place at, int row, int item) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
                 "r"(from), "r"(at.column), "r"(row), "r"(at.half), "r"(item)
                 : "memory");
}
__device__ inline void commit_stores() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// The lane that has stored: all but the `Left` last boxes have been read from shared memory.
template <int Left> __device__ inline void wait_for_stores() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Left) : "memory");
}
