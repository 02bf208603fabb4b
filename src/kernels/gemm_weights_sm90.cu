// Rows in BF16 or F16 and weights of few bits by wgmma, on Hopper: weights.cuh has what stands around it. TMA brings the stages: boxes of
// 32 to 128 bytes along k, whose units of 16 bytes are turned by their line's number. A warpgroup has 64 of a tile's columns and all of its
// rows: weights come from registers, and the tensor cores read A's rows in shared memory. Of each eight of k that an instruction takes,
// a lane has a quarter. A is not copied by cp.async: fence.proxy.async, which wgmma would need behind it, waits for all copies under way.
//
// A warp behind those that multiply loads. The two warpgroups go each their own way from stage to stage, so that one makes weights of
// 16 bits while the tensor cores have the other's.
#define GEMMEPI_WGMMA 1
#include "sm90/ptx.cuh"
#include "weights.cuh"

constexpr int LINE = 128, A_BOX = TILE_M * LINE;                              // bytes of 64 of A's k
constexpr int B_BOX_LINE = SLICE * BITS / 8, B_BOX = TILE_N * B_BOX_LINE;     // of a slice of the weights'
static_assert(B_BOX_LINE <= 128 && SLICE % 64 == 0, "a slice is a box");
// Which unit of 16 bytes of a line one is: of lines of 128 bytes it is turned by line % 8, of 64 by line / 2 % 4, of 32 by line / 4 % 2.
__device__ inline int turned_by(int line) {
    return line % 8 / (128 / B_BOX_LINE);
}

// >>stages: a ring that the last warps fill, and the other warps leave

// Those that fill it: one warp, or four where there are operands of a text, or where sums take more registers than a thread has at first.
constexpr bool TRADES = TILE_M > 128;
constexpr int LOADERS = TRADES || MADE_BYTES ? 128 : 32, FEW_REGISTERS = 40, MANY_REGISTERS = 232;

// Where a warp is in it.
struct Ring {
    int stage;
    u32 parity; // of the round

    __device__ inline void advance() {
        if (++stage == STAGES)
            stage = 0, parity ^= 1;
    }
};
struct Barriers {
    u32 full, empty; // of the first stage; those of the next are 8 bytes further
};

// One thread. A stage is full when all bytes have come, and each lane's scales; it is empty when all warps that read it have left it.
__device__ inline void set_up_barriers(const Barriers &barriers) {
#pragma unroll 1
    for (int i = 0; i < STAGES; i++) {
        barrier_init(barriers.full + i * 8, VARIES ? 33 : MADE_BYTES ? LOADERS + 1 : 1);
        barrier_init(barriers.empty + i * 8, WARPS);
    }
    barriers_are_set();
}

// One thread: a stage's operands, from k on. What of it lies beyond m, n or k is zeros, and of a gate's first half the second. But where
// A has fewer rows than a tile, the lines behind them stay as they are: with zeros there 33 rows took up to a third longer than 64.
__device__ inline void load_stage(const gpi__weights_params &p, const Place_of_tile &at, u32 stage, u32 barrier, int k) {
    int a_item = p.a_items ? (int)at.item : 0, b_item = p.b_items ? (int)at.item : 0;
    barrier_expect(barrier, p.a_bytes + B_BYTES);
#pragma unroll
    for (int i = 0; i < WARPS_K * HALVES_IN; i++) {
        int half = i % HALVES_IN, nth = i / HALVES_IN;
        load_box<false>(p.b, stage + A_BYTES + nth * B_BOX + half * (TILE_COLUMNS * B_BOX_LINE), barrier,
                        (k + nth * SLICE) * (BITS == 4 ? 1 : 2) / 2, // where two elements are one
                        (int)(at.column() + half * p.plain.epilogue.n), b_item, 0);
    }
#pragma unroll
    for (int i = 0; i < STEP / 64; i++)
        load_box<false>(p.a, stage + i * A_BOX, barrier, k + i * 64, (int)at.row(), a_item, 0);
}

// The last warps: all stages from k on. The first of them speaks to TMA, and all copy scales and operands.
__device__ inline void load_stages(const gpi__weights_params &p, const Place_of_tile &at, const Barriers &barriers, int k, int k_end) {
    constexpr int LANE_COPIES = VARIES ? STEP_SCALES * TILE_N / 32 : 0;
    int lane = (int)threadIdx.x - THREADS;
    bool speaks = lane < 32 && is_elected();
    u32 stages = shared_address(shared);
    Ring ring = {0, 1};
    const Place_of_operands operands = {at.item, at.column(), p.plain.epilogue.n, (int)p.plain.k};
    auto scales = [&](int nth) {
        return Scale_copies(p.plain.epilogue, at.item, at.column(), k, (int)p.plain.k, lane + nth * 32);
    };
#pragma unroll 1
    for (; k < k_end; k += STEP, ring.advance()) {
        u32 stage = stages + ring.stage * STAGE_BYTES, full = barriers.full + ring.stage * 8;
        barrier_wait(barriers.empty + ring.stage * 8, ring.parity);
        if (speaks)
            load_stage(p, at, stage, full, k);
        if (VARIES || MADE_BYTES) {
#pragma unroll
            for (int i = 0; i < LANE_COPIES; i++)
                scales(i).fetch(stage);
            copy_operands<LOADERS>(p.made, operands, stage, k, lane);
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(full) : "memory");
        }
        __syncwarp();
    }
}

// >>the instruction: its sums are as many registers as half of A's rows, each named in the text and in the list

#define GEMMEPI_OCTET(o) "+f"(sums[o][0][0]), "+f"(sums[o][0][1]), "+f"(sums[o][0][2]), "+f"(sums[o][0][3])
#define GEMMEPI_OCTETS_4(o) GEMMEPI_OCTET(o), GEMMEPI_OCTET(o + 1), GEMMEPI_OCTET(o + 2), GEMMEPI_OCTET(o + 3)
#define GEMMEPI_OCTETS_8(o) GEMMEPI_OCTETS_4(o), GEMMEPI_OCTETS_4(o + 4)
#define GEMMEPI_0_TO_15 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define GEMMEPI_16_TO_31 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GEMMEPI_32_TO_63 \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GEMMEPI_64_TO_127 \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#if GEMMEPI_TILE_M == 32
#define GEMMEPI_NAMES  "m64n32k16", GEMMEPI_0_TO_15, "%16, %17, %18, %19", "%20"
#define GEMMEPI_OCTETS GEMMEPI_OCTETS_4(0)
#elif GEMMEPI_TILE_M == 64
#define GEMMEPI_NAMES  "m64n64k16", GEMMEPI_0_TO_15 GEMMEPI_16_TO_31, "%32, %33, %34, %35", "%36"
#define GEMMEPI_OCTETS GEMMEPI_OCTETS_8(0)
#elif GEMMEPI_TILE_M == 128
#define GEMMEPI_NAMES  "m64n128k16", GEMMEPI_0_TO_15 GEMMEPI_16_TO_31 GEMMEPI_32_TO_63, "%64, %65, %66, %67", "%68"
#define GEMMEPI_OCTETS GEMMEPI_OCTETS_8(0), GEMMEPI_OCTETS_8(8)
#else
#define GEMMEPI_NAMES \
    "m64n256k16", GEMMEPI_0_TO_15 GEMMEPI_16_TO_31 GEMMEPI_32_TO_63 GEMMEPI_64_TO_127, "%128, %129, %130, %131", "%132"
#define GEMMEPI_OCTETS GEMMEPI_OCTETS_8(0), GEMMEPI_OCTETS_8(8), GEMMEPI_OCTETS_8(16), GEMMEPI_OCTETS_8(24)
#endif
#define GEMMEPI_TEXT(type, shape, sums, weights, rows) \
    "{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\n" \
    "wgmma.mma_async.sync.aligned." shape ".f32." type "." type " {" sums "}, {" weights "}, " rows ", adds, 1, 1, 0;\n}"
#define GEMMEPI_APPLY(macro, ...) macro(__VA_ARGS__)

static_assert(SIXTEENS == 1 && (TILE_M == 32 || TILE_M == 64 || TILE_M == 128 || TILE_M == 256), "a warpgroup has 64 columns, and all rows");
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

template <int Bits> struct Pair_as_stored { typedef unsigned short type; };
template <> struct Pair_as_stored<4> { typedef u8 type; };
template <> struct Pair_as_stored<16> { typedef u32 type; };
// Of the line of a lane's columns, and of its eighth behind.
__device__ inline void load_pairs(const u8 *line, u32 (&pairs)[STEPS][4]) {
    int turn = turned_by((int)threadIdx.x % 32 / 4);
#pragma unroll
    for (int i = 0; i < STEPS * 4; i++) { // wgmma's order: a line, the eighth behind it, and both again eight of k further
        int at = i / 4 * 2 * BITS + i / 2 % 2 * BITS;
        pairs[i / 4][i % 4] = *reinterpret_cast<const Pair_as_stored<BITS>::type *>(line + (at / 16 ^ turn) * 16 + at % 16 + i % 2 * 8 * B_BOX_LINE);
    }
}

// What the sums are stands between what comes before and what comes behind.
__device__ inline void pin(Octet (&sums)[OCTETS]) {
#pragma unroll
    for (int i = 0; i < OCTETS * 4; i++)
        asm volatile("" : "+f"(sums[i / 4][0][i % 4])::"memory");
}

// Products on their way to the sums: of the pairs, and of the rows from there on.
__device__ inline void begin_products(const u32 (&pairs)[STEPS][4], u64 rows, Octet (&sums)[OCTETS]) {
    pin(sums);
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        u32 weights[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            weights[i] = widen_two(In(), pairs[step][i], 0);
        multiply_begin();
        multiply_64(In(), sums, weights, rows + (step / 4 * A_BOX + step % 4 * 32) / 16);
    }
    multiply_commit();
}

// A warp's slices of `count` stages, one at least. The next one's pairs are loaded while the tensor cores have this one's.
__device__ inline void multiply_stages(const Barriers &barriers, int count, Octet (&totals)[OCTETS]) {
    int lane = (int)threadIdx.x % 32, warp_n = (int)threadIdx.x / 32 % WARPS_N, nth = warpgroup_of_k();
    const u8 *line = shared + (A_BYTES + nth * B_BOX + (warp_n * WARP_N + lane / 4) * B_BOX_LINE + lane % 4 * BITS / 4);
    u32 rows = shared_address(shared) + nth * (SLICE / 64 * A_BOX);
    u32 pairs[STEPS][4];
    Ring ring = {0, 0};
    barrier_wait(barriers.full, 0);
    load_pairs(line, pairs);
#pragma unroll 1
    for (;;) {
        Octet of_slice[OCTETS] = {};
        Octet(&sums)[OCTETS] = VARIES ? of_slice : totals;
        int stage = ring.stage;
        Column_scales scales;
        if (VARIES)
            read_scales(stage * STAGE_BYTES, scales);
        begin_products(pairs, descriptor(rows + stage * STAGE_BYTES), sums);
        ring.advance();
        if (--count) {
            barrier_wait(barriers.full + ring.stage * 8, ring.parity);
            load_pairs(line + ring.stage * STAGE_BYTES, pairs);
        }
        multiply_wait<0>();
        pin(sums);
        if (VARIES) {
            add_scaled(sums, scales, totals);
            __syncwarp();
        }
        if (lane == 0)
            barrier_arrive_here(barriers.empty + stage * 8);
        if (!count)
            break;
    }
}

// >>made ones: while the tensor cores have a slice's, the next one's are made

typedef u32 Fragments[STEPS][4];

// Of a slice's instructions along k so many, which are of one group.
template <class Of>
__device__ inline void make_steps(const u32 (&pairs)[STEPS][4], int first, int count, const Of (&of)[2], Fragments &made) {
#pragma unroll
    for (int step = first; step < first + count; step++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            made[step][i] = make_two(In(), pairs[step][i], 0, of[i % 2]);
}
__device__ inline void make_slice(const Stage &stage, int k_end, const u8 *line, const Held_for_made &held, Fragments &made) {
    constexpr int AT_ONCE = MADE_GROUP && MADE_GROUP < SLICE ? MADE_GROUP / 16 : STEPS;
    int own_k = warpgroup_of_k() * SLICE, left = k_end - stage.k - own_k;
    u32 pairs[STEPS][4];
    load_pairs(line + stage.at, pairs);
#pragma unroll
    for (int first = 0; first < STEPS; first += AT_ONCE) {
        Of_columns_made of;
        if (MADE && read_columns(stage, own_k + first * 16, held, of)) {
            Pairs_of_columns own;
            in_pairs_of_columns(of, own);
            make_steps(pairs, first, AT_ONCE, own, made);
        } else {
            make_steps(pairs, first, AT_ONCE, of, made);
        }
    }
    if (MADE && left < SLICE) {
#pragma unroll
        for (int i = 0; i < STEPS * 4; i++)
            made[i / 4][i % 4] = cut_two(made[i / 4][i % 4], left - i / 4 * 16 - i / 2 % 2 * 8 - (int)threadIdx.x % 4 * 2);
    }
}

__device__ inline void begin_made(const Fragments &made, u64 rows, Octet (&sums)[OCTETS]) {
    pin(sums);
    multiply_begin();
#pragma unroll
    for (int step = 0; step < STEPS; step++)
        multiply_64(In(), sums, made[step], rows + (step / 4 * A_BOX + step % 4 * 32) / 16);
    multiply_commit();
}

// A warp's slices of all stages from k on, one at least.
__device__ inline void multiply_made_stages(const Barriers &barriers, int k, int k_end, const Held_for_made &held, Octet (&totals)[OCTETS]) {
    int lane = (int)threadIdx.x % 32, warp_n = (int)threadIdx.x / 32 % WARPS_N, nth = warpgroup_of_k();
    const u8 *line = shared + (A_BYTES + nth * B_BOX + (warp_n * WARP_N + lane / 4) * B_BOX_LINE + lane % 4 * BITS / 4);
    u32 rows = shared_address(shared) + nth * (SLICE / 64 * A_BOX);
    Ring ring = {0, 0};
    int before = -1; // the stage whose products may still be on their way
    auto go_on = [&](Fragments &made) {
        barrier_wait(barriers.full + ring.stage * 8, ring.parity);
        make_slice({ring.stage * STAGE_BYTES, k}, k_end, line, held, made);
        begin_made(made, descriptor(rows + ring.stage * STAGE_BYTES), totals);
        multiply_wait<1>();
        if (lane == 0 && before >= 0)
            barrier_arrive_here(barriers.empty + before * 8);
        before = ring.stage;
        ring.advance();
        k += STEP;
    };
    Fragments first, second;
#pragma unroll 1
    while (k + STEP < k_end) {
        go_on(first);
        go_on(second);
    }
    if (k < k_end)
        go_on(first);
    multiply_wait<0>();
    pin(totals);
}

// >>the kernel

// Blocks: items * column tiles * row tiles * parts, these side by side.
extern "C" __global__ void __launch_bounds__(THREADS + LOADERS, 1) CLUSTER
    gemmepi_weights(GEMMEPI_PARAMS gpi__weights_params params) {
    __shared__ u64 full[STAGES], empty[STAGES];
    const Place_of_tile at(params.plain.epilogue);
    const Barriers barriers = {shared_address(full), shared_address(empty)};
    int k_end = (int)params.plain.k, part_k = ((k_end + STEP - 1) / STEP + PARTS - 1) / PARTS * STEP, k = (int)rank_in_cluster() * part_k;
    k_end = k_end - k < part_k ? k_end : k + part_k;
    if (shared_address(shared) % 1024)
        __trap();
    if (threadIdx.x == THREADS) {
        prefetch_map(params.a);
        prefetch_map(params.b);
        set_up_barriers(barriers);
    }
    __syncthreads();
    after_launches_before();
    if (threadIdx.x >= THREADS) {
        if (TRADES)
            keep_registers<FEW_REGISTERS>();
        if (MADE_BYTES || threadIdx.x < THREADS + 32)
            load_stages(params, at, barriers, k, k_end);
        return;
    }
    if (TRADES)
        take_registers<MANY_REGISTERS>();
    Octet totals[OCTETS] = {};
    if constexpr (MADE || (TILE_M > 64 && !VARIES)) {
        if (k < k_end)

        multiply_made_stages(barriers, k, k_end, hold_operands_of_made(params.made, at.item), totals);
    } else if (k < k_end) {
        multiply_stages(barriers, (k_end - k + STEP - 1) / STEP, totals);
    }
    add_up_and_finish(params.plain, at, totals);
}
