// Few rows in BF16 or F16 and weights in I8 by wgmma, on Hopper: weights.cuh has what stands around it. TMA brings the stages: boxes of
// 128 bytes along k, whose units of 16 bytes are turned by their line's number. A warpgroup has 64 of a tile's columns and all of its
// rows: weights come from registers, and the tensor cores read A's rows in shared memory. Of each eight of k that an instruction takes,
// a lane has a quarter. A is not copied by cp.async: fence.proxy.async, which wgmma would need behind it, waits for all copies under way.
#define GEMMEPI_WGMMA 1
#include "sm90/ptx.cuh"
#include "weights.cuh"

constexpr int LINE = 128, A_BOX = TILE_M * LINE, B_BOX = TILE_N * LINE; // bytes of 64 of A's k, of 128 of the weights'

// >>stages

// One thread: a stage's operands, from k on. What of it lies beyond m, n or k is zeros, and of a gate's first half the second.
__device__ inline void load_stage(const gemmepi__weights_params &p, const Place_of_tile &at, u32 stage, u32 barrier, int k) {
    int a_item = p.a_items ? (int)at.item : 0, b_item = p.b_items ? (int)at.item : 0;
    barrier_expect(barrier, A_BYTES + B_BYTES);
#pragma unroll
    for (int i = 0; i < WARPS_K * HALVES_IN; i++) {
        int half = i % HALVES_IN, nth = i / HALVES_IN;
        load_box<false>(p.b, stage + A_BYTES + nth * B_BOX + half * (TILE_COLUMNS * LINE), barrier, k + nth * 128,
                        (int)(at.column() + half * p.plain.epilogue.n), b_item, 0);
    }
#pragma unroll
    for (int i = 0; i < STEP / 64; i++)
        load_box<false>(p.a, stage + i * A_BOX, barrier, k + i * 64, (int)at.row(), a_item, 0);
}

// >>the instruction: its sums are as many registers as half of A's rows, each named in the text and in the list

#define GEMMEPI_OCTET(o) "+f"(sums[o][0][0]), "+f"(sums[o][0][1]), "+f"(sums[o][0][2]), "+f"(sums[o][0][3])
#if GEMMEPI_TILE_M == 32
#define GEMMEPI_NAMES \
    "m64n32k16", "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15", "%16, %17, %18, %19", "%20"
#define GEMMEPI_OCTETS GEMMEPI_OCTET(0), GEMMEPI_OCTET(1), GEMMEPI_OCTET(2), GEMMEPI_OCTET(3)
#else
#define GEMMEPI_NAMES \
    "m64n64k16", \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31", \
        "%32, %33, %34, %35", "%36"
#define GEMMEPI_OCTETS \
    GEMMEPI_OCTET(0), GEMMEPI_OCTET(1), GEMMEPI_OCTET(2), GEMMEPI_OCTET(3), GEMMEPI_OCTET(4), GEMMEPI_OCTET(5), GEMMEPI_OCTET(6), \
        GEMMEPI_OCTET(7)
#endif
#define GEMMEPI_TEXT(type, shape, sums, weights, rows) \
    "{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\n" \
    "wgmma.mma_async.sync.aligned." shape ".f32." type "." type " {" sums "}, {" weights "}, " rows ", adds, 1, 1, 0;\n}"
#define GEMMEPI_APPLY(macro, ...) macro(__VA_ARGS__)

static_assert(SIXTEENS == 1 && (TILE_M == 32 || TILE_M == 64), "a warpgroup has 64 columns, and all rows");
__device__ inline void multiply_64(BF16, Octet (&sums)[OCTETS], const u32 (&weights)[4], u64 rows) {
    asm volatile(GEMMEPI_APPLY(GEMMEPI_TEXT, "bf16", GEMMEPI_NAMES)
                 : GEMMEPI_OCTETS
                 : "r"(weights[0]), "r"(weights[1]), "r"(weights[2]), "r"(weights[3]), "l"(rows));
}
__device__ inline void multiply_64(F16, Octet (&sums)[OCTETS], const u32 (&weights)[4], u64 rows) {
    asm volatile(GEMMEPI_APPLY(GEMMEPI_TEXT, "f16", GEMMEPI_NAMES)
                 : GEMMEPI_OCTETS
                 : "r"(weights[0]), "r"(weights[1]), "r"(weights[2]), "r"(weights[3]), "l"(rows));
}

// >>a slice

// Of lines of 128 bytes, turned, eight of them in 1024 bytes: 64 of k.
__device__ inline u64 descriptor(u32 address) {
    return (u64)1 << 62 | (u64)(1024 >> 4) << 32 | (u64)(address >> 4 & 0x3fff);
}

constexpr int STEPS = SLICE / 16; // instructions along k

// Which of the warpgroups that divide k this one is, the same in all lanes as far as the compiler knows.
__device__ inline int warpgroup_of_k() {
    return WARPS_K > 1 ? __shfl_sync(0xffffffff, (int)threadIdx.x / 32 / WARPS_N, 0) : 0;
}

// Pairs are all loaded first: wgmma's fences let none pass.
__device__ inline void load_pairs(int stage, u32 (&pairs)[STEPS][4]) {
    int warp_n = (int)threadIdx.x / 32 % WARPS_N, eighth = (int)threadIdx.x % 32 / 4, quarter = (int)threadIdx.x % 4;
    const u8 *line = shared + (stage + A_BYTES + warpgroup_of_k() * B_BOX + (warp_n * WARP_N + eighth) * LINE + quarter * 2);
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        const u8 *unit = line + (step ^ eighth) * 16;
#pragma unroll
        for (int i = 0; i < 4; i++) // wgmma's order: a line, the eighth behind it, and both again eight of k further
            pairs[step][i] = *reinterpret_cast<const unsigned short *>(unit + i % 2 * 8 * LINE + i / 2 * 8);
    }
}

// What the sums are stands between what comes before and what comes behind.
__device__ inline void pin(Octet (&sums)[OCTETS]) {
#pragma unroll
    for (int i = 0; i < OCTETS * 4; i++)
        asm volatile("" : "+f"(sums[i / 4][0][i % 4])::"memory");
}

__device__ inline void add_products(int stage, Octet (&sums)[OCTETS]) {
    u64 rows = descriptor(shared_address(shared) + stage + warpgroup_of_k() * (SLICE / 64 * A_BOX));
    u32 pairs[STEPS][4];
    load_pairs(stage, pairs);
    pin(sums);
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        u32 weights[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            weights[i] = widen_two(In(), pairs[step][i], 0x4140);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply_64(In(), sums, weights, rows + (step / 4 * A_BOX + step % 4 * 32) / 16);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    pin(sums);
}

// >>the kernel

// One thread: every stage's barrier.
__device__ inline void set_up_barriers(u32 barriers) {
#pragma unroll 1
    for (int i = 0; i < STAGES; i++)
        barrier_init(barriers + i * 8, 1);
    barriers_are_set();
}

// Blocks: items * column tiles * row tiles * parts, these side by side.
extern "C" __global__ void __launch_bounds__(THREADS, 1) CLUSTER
    gemmepi_weights(GEMMEPI_PARAMS gemmepi__weights_params params) {
    __shared__ u64 full[STAGES];
    const Place_of_tile at(params.plain.epilogue);
    int k_end = (int)params.plain.k, part_k = ((k_end + STEP - 1) / STEP + PARTS - 1) / PARTS * STEP;
    int k = (int)rank_in_cluster() * part_k, next = k; // what is multiplied and what is loaded next
    u32 stages = shared_address(shared), barriers = shared_address(full), parity = 0;
    k_end = k_end - k < part_k ? k_end : k + part_k;
    if (stages % 1024)
        __trap();
    if (threadIdx.x == 0)
        set_up_barriers(barriers);
    __syncthreads();

    after_launches_before();
    Scale_copies scales(params.plain.epilogue, at.item, at.column(), k, (int)params.plain.k);
#pragma unroll 1
    for (int i = 0; i < STAGES - 1; i++, next += STEP) {
        if (next < k_end) {
            if (threadIdx.x == 0)
                load_stage(params, at, stages + i * STAGE_BYTES, barriers + i * 8, next);
            scales.fetch(stages + i * STAGE_BYTES);
        }
        if (VARIES)
            copies_commit();
    }
    Octet totals[OCTETS] = {};
    int now = 0; // the stage's number
#pragma unroll 1
    for (; k < k_end; k += STEP, next += STEP) {
        int before = now ? now - 1 : STAGES - 1;
        if (VARIES)
            copies_wait<STAGES - 2>();
        __syncthreads(); // scales of this stage have come for all, and all are through with the one before it
        if (next < k_end) {
            if (threadIdx.x == 0)
                load_stage(params, at, stages + before * STAGE_BYTES, barriers + before * 8, next);
            scales.fetch(stages + before * STAGE_BYTES);
        }
        if (VARIES)
            copies_commit();
        barrier_wait(barriers + now * 8, parity);
        multiply_slice(now * STAGE_BYTES, totals);
        now = now < STAGES - 1 ? now + 1 : 0;
        parity ^= now == 0;
    }
    if (VARIES)
        copies_wait<0>();
    add_up_and_finish(params.plain, at, totals);
}
