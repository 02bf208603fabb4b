// Product and epilogue of 16-bit or fp8 operands, or of F32 as TF32, on Hopper: D = epilogue(alpha op(A) op(B) + beta C).
//
// A block is three warpgroups. One thread of the first loads tiles of A and B, 128 bytes of k at a time, by TMA into a ring of
// stages in shared memory; the other two multiply them with wgmma, sums in registers, and run the epilogue on those. They
// share a tile (each has half of its rows), or take turns (PING_PONG): while one is in its epilogue the other multiplies.
// Blocks stay and take one tile after another. In a cluster blocks of the same rows share tiles of A, blocks of the same
// columns tiles of B: each loads its share of the tile, for all of them. With PARTS the blocks of a cluster each add up a
// part of k for one tile, and send each other their sums at the end.
//
// The other three warps of the first warpgroup have nothing to load. SUMMED: they make totals of A's rows or B's columns over k as
// their tiles pass. ADDS_COLUMNS: two of them add up what a warpgroup leaves of sums of columns. HAS_SCALES: the last of them brings the
// scales of fp8 that vary along k.
//
// What is beyond k is zeros as TMA loads them. Of rows and columns beyond m and n it is not asked for more than it has to be
// (TAILS), and they are anything: the epilogue uses and stores only what exists. It is behind the other warpgroup's sums, but shares
// the multiprocessor and its power with them: what it does not do is what counts.
//
// The files in the order of reading; a file includes what it needs:
//   options       what the host chooses, and the constants that follow
//   shared        how shared memory is laid out
//   ptx           instructions without a name in CUDA C++
//   barriers      a table of them: owner, arrivals, phase
//   pipeline      the ring of stages
//   schedule      which tiles a block takes
//   load          the loader's thread
//   columns, mask, box_memory, column_sums, box   the epilogue of 16 rows and some columns
//   wgmma, scales, multiply   a tile's sums
//   parts         what the blocks of a cluster send each other
//   totals        what the warps add up that have nothing to load
//   consume       what a warpgroup does from its first tile to its last
#include "sm90/options.cuh"
#include "sm90/consume.cuh"
#include "sm90/load.cuh"
#include "sm90/totals.cuh"

// One thread: the maps of all that TMA loads.
__device__ inline void prefetch_maps(const gpi__sm90_params &p) {
    prefetch_map(p.a);
    prefetch_map(p.b);
    if (TAILS && A_ROWS)
        prefetch_map(p.a_tail);
    if (TAILS && B_ROWS)
        prefetch_map(p.b_tail);
    if (LOADS_AUX)
        prefetch_map(p.aux);
}

// The first warpgroup: one thread loads, other warps add up.
__device__ inline void help(const gpi__sm90_params &p, const Shared &shared, u32 rank, u32 step) {
    if (threadIdx.x < 32 && is_elected())
        produce(p, shared, {rank, first_tile(), step});
    if (SUMMED && threadIdx.x >= 32)
        add_operand(p, shared, {rank, first_tile(), step});
    if (ADDS_COLUMNS && threadIdx.x >= 32 && threadIdx.x < 32 + CONSUMERS * 32)
        add_column_sums(p, shared, {rank, first_tile(), step});
#if GEMMEPI_ELEMENT == 1
    if (HAS_SCALES && threadIdx.x >= WARPGROUP - 32)
        bring_scales(p, shared, {rank, first_tile(), step});
#endif
    __syncwarp();

    // Sums of k in parts: with all consumers
    if (PARTS > 1 && SUMMED)
        cluster_barrier();
    else if (PARTS > 1)
        cluster_meets();
    if (PARTS > 1 && !SENDS_ASYNC)
        cluster_barrier();
    if (SUMMED && PARTS > 1 && rank == 0 && threadIdx.x >= 32)
        store_totals(p, shared, tile_of(p, first_tile(), rank), (int)threadIdx.x / 32 - 1);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    gemmepi_fused(GEMMEPI_PARAMS gpi__sm90_params p) {
    // Shared memory
    extern __shared__ __align__(1024) u8 memory[]; // as TMA's swizzled boxes lie
    const Shared shared = {shared_address(memory)};
    u32 rank = CLUSTER > 1 ? cluster_rank() : 0, step = gridDim.x / CLUSTER;
    if (shared.first % 1024)
        __trap();

    // Barriers
    if (threadIdx.x == 0) {
        prefetch_maps(p);
        set_up_barriers(shared);
    }
    __syncthreads();
    if (CLUSTER > 1)
        cluster_meets();

    // Launches before this one
    if (GROUPED || threadIdx.x >= 32) // of the first warp one thread, in produce()
        after_launches_before();

    // Roles
    if (threadIdx.x < WARPGROUP) {
        keep_registers<PRODUCER_REGISTERS>();
        help(p, shared, rank, step);
    } else {
        take_registers<CONSUMER_REGISTERS>();
        consume(p, shared, {rank, first_tile(), step});
    }

    // The cluster's end: no block goes while another may arrive at its barriers, write its stages or read its totals
    if (CLUSTER > 1 && (PARTS == 1 || SUMMED))
        cluster_meets();
}
