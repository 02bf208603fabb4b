// Product and epilogue of 16-bit operands, or of F32 as TF32, on Hopper: D = epilogue(alpha op(A) op(B) + beta C).
//
// A block is three warpgroups. One thread of the first loads tiles of A and B, 128 bytes of k at a time, by TMA into a ring of
// stages in shared memory; the other two multiply them with wgmma, sums in registers, and run the epilogue on those. They
// share a tile (each has half of its rows), or take turns (PING_PONG): while one is in its epilogue the other multiplies.
// Blocks stay and take one tile after another. In a cluster blocks of the same rows share tiles of A, blocks of the same
// columns tiles of B: each loads its part of the tile, for all of them. With SPLIT the blocks of a cluster each add up a
// part of k for one tile, and leave each other their sums at the end.
//
// SUMMED: the other three warps of the first warpgroup add up some of A's rows or B's columns over k as their tiles pass. They go
// through the stages of all tiles, which are free when they, too, have left them.
//
// BGRAD: two of those warps each add up what the four warps of a warpgroup leave of a tile, into one line of sums in memory.
// Of a block's last tile the warpgroups do so themselves.
//
// What is beyond k is zeros as TMA loads them. Of rows and columns beyond m and n it is not asked for more than it has to be
// (TAILS), and they are anything: the epilogue uses and stores only what exists. It is behind the other warpgroup's sums, 6500 cycles
// for 128 x 128 x 768 on an H200, but shares the multiprocessor and its power with them: what it does not do is what counts, so
// results of 16 and 32 bits leave by shared memory and TMA.
#include "codes.h"

#define GEMMEPI_SPREAD 1
// An addition in f32 takes a cycle of the other warpgroup's wgmma, so that sums rather begin with the bias. On an H200 it saves 1 to
// 2 percent from k = 2048 on of BIAS alone, with RELU and with GELU_ERF in tiles of 128 columns; in wider ones nothing, and with other
// activations, gates and AUX, whose warpgroups come late to their turn, it costs some. A gate recomputed for its gradient has no
// registers for the bias behind the sums.
#if GEMMEPI_APPLIED && GEMMEPI_SPLIT == 1 && !GEMMEPI_SCALE_A && !GEMMEPI_SCALE_B && \
    ((GEMMEPI_EPILOGUE & (FLAG_GATED | FLAG_UPSTREAM | FLAG_BIAS)) == (FLAG_GATED | FLAG_UPSTREAM | FLAG_BIAS) || \
     (!GEMMEPI_EXACT && GEMMEPI_TILE_N <= 128 && !GEMMEPI_BIAS_AHEAD && \
      (GEMMEPI_EPILOGUE == FLAG_BIAS || GEMMEPI_EPILOGUE == (FLAG_BIAS | CODE_RELU) || \
       GEMMEPI_EPILOGUE == (FLAG_BIAS | CODE_GELU_ERF))))
#define GEMMEPI_BIAS_FIRST 1
#endif
#include "epilogue.cuh"

#ifndef GEMMEPI_TILE_M
#define GEMMEPI_TILE_M     128
#define GEMMEPI_TILE_N     128 // a multiple of 64
#define GEMMEPI_STAGES     5
#define GEMMEPI_PING_PONG  1
#define GEMMEPI_CLUSTER_M  2 // blocks of a cluster along m, which share tiles of B
#define GEMMEPI_CLUSTER_N  1
#define GEMMEPI_SPLIT      1 // more: into as many parts k is split, which the blocks of a cluster add up; each has one tile
#define GEMMEPI_A_ROWS     1 // A's elements along k lie side by side; else those along m
#define GEMMEPI_B_ROWS     1 // likewise B's along k, else those along n
#define GEMMEPI_OPERANDS   "bf16" // of A and B: "bf16", "f16" or, of F32, whose elements along k lie side by side, "tf32"
#define GEMMEPI_ELEMENT    2      // bytes of an element of A or B
#define GEMMEPI_BOX_GROUPS 2      // of a box: 2 where what TMA moves of results is of 16 bits, 1 where it is of 32
#define GEMMEPI_TAILS      0      // some tiles reach beyond m or n by boxes or lines of them, which are not loaded
#endif
#ifndef GEMMEPI_BIAS_AHEAD
#define GEMMEPI_BIAS_AHEAD 0 // 1: all of a tile's bias is loaded before its sums
#endif
#ifndef GEMMEPI_SUMMED
#define GEMMEPI_SUMMED    0 // the operand that is summed over k: 1 A, 2 B
#endif
#ifndef GEMMEPI_SUMS_TYPE
#define GEMMEPI_SUMS_TYPE F32 // of bias_grad
#define GEMMEPI_SUMS_ADD  0 // 1: to what is there
#endif

constexpr int TILE_M = GEMMEPI_TILE_M, TILE_N = GEMMEPI_TILE_N, STAGES = GEMMEPI_STAGES;
constexpr int CLUSTER_M = GEMMEPI_CLUSTER_M, CLUSTER_N = GEMMEPI_CLUSTER_N, SPLIT = GEMMEPI_SPLIT;
constexpr int CLUSTER = CLUSTER_M * CLUSTER_N * SPLIT;
constexpr bool PING_PONG = GEMMEPI_PING_PONG, A_ROWS = GEMMEPI_A_ROWS, B_ROWS = GEMMEPI_B_ROWS;
constexpr int WARPGROUP = 128, CONSUMERS = 2, THREADS = WARPGROUP * (CONSUMERS + 1);
constexpr int PARTS = TILE_M / 64 / (PING_PONG ? 1 : CONSUMERS); // of 64 rows, that a warpgroup has
constexpr int LINE = 128, TILE_K = LINE / GEMMEPI_ELEMENT;       // bytes of a stage's k, or of 64 elements along m or n
constexpr int BOX = 64 * LINE;                                   // 64 lines
// GATED: a tile of B is two, of the same columns of both halves; value and gate of a column end in the same thread.
constexpr int TILE_COLUMNS = TILE_N / HALVES_IN;                // of the result, of either half
constexpr int GROUP = 32, GROUPS = TILE_COLUMNS / GROUP;        // of columns: a run of each lane
constexpr int BOX_GROUPS = GEMMEPI_BOX_GROUPS, BOX_COLUMNS = BOX_GROUPS * GROUP; // that the epilogue takes at a time
constexpr u32 A_BYTES = TILE_M * LINE, B_BYTES = TILE_N * LINE, STAGE_BYTES = A_BYTES + B_BYTES;
// Results go to memory by TMA, 16 rows and 128 bytes of columns at a time, from BUFFERS of each warp, but see IN_PLACE.
constexpr bool STAGED = STAGES_D || STAGES_AUX;
constexpr int BUFFERS = GEMMEPI_BUFFERS;
constexpr int STAGED_BYTES = 16 * LINE, WARPS = CONSUMERS * 4;
// What the epilogue reads comes likewise, a box ahead, into two buffers of each warp.
constexpr int LOADED_AUX = LOADS_AUX ? HALVES_SAVED : 0;
// Gradients take the place of the aux that they are made of, where there are two halves or RESIDUAL, too: it makes room for a
// stage more. Where one fits anyway, buffers of their own are faster, as the next aux is asked for half a box sooner.
constexpr bool IN_PLACE = (GATED || LOADS_RESIDUAL) && STAGES_D && !COPIES_D && LOADED_AUX == HALVES_OUT;
constexpr int STAGED_D = STAGES_D ? HALVES_OUT : 0;
constexpr int STAGED_MATRICES = (IN_PLACE ? 0 : STAGED_D) + (STAGES_AUX ? HALVES_IN : 0); // that have buffers of their own
constexpr int LOADED_MATRICES = LOADED_AUX + (LOADS_RESIDUAL ? HALVES_OUT : 0), LOADED_BUFFERS = LOADED_MATRICES ? 2 : 0;
// Shared memory: stages, buffers, two barriers of each stage and of each warp, and with SPLIT one more.
constexpr u32 LOADED = STAGES * STAGE_BYTES + WARPS * BUFFERS * STAGED_MATRICES * STAGED_BYTES;
constexpr u32 FULL = LOADED + WARPS * LOADED_BUFFERS * LOADED_MATRICES * STAGED_BYTES;
constexpr u32 EMPTY = FULL + STAGES * 8, ARRIVED = EMPTY + STAGES * 8;
// SUMMED: the warps that add up, the lines of a tile; with SPLIT the sums of 16 lines of each warp, in F64 behind the barriers.
constexpr int SUMMED = GEMMEPI_SUMMED, SUMMERS = SUMMED ? 3 : 0, SUMMED_LINES = SUMMED == 1 ? TILE_M : TILE_N;
constexpr u32 RECEIVED = ARRIVED + WARPS * 16, TOTALS = RECEIVED + (SPLIT > 1 ? 16 : 0);
// BGRAD: sums of columns on their way to the warp that adds them up, for each warpgroup a slot: of its four warps those of a unit of
// columns, of which a tile has an even number; and the barriers that tell of sums and of room.
constexpr int UNIT_GROUPS = GATED ? 1 : 2;
constexpr u32 SLOT_BYTES = UNIT_GROUPS * HALVES_OUT * WARPGROUP * 4, SLOTS = TOTALS;
constexpr u32 LEFT = SLOTS + CONSUMERS * SLOT_BYTES, TAKEN = LEFT + CONSUMERS * 8;
#ifdef GEMMEPI_SHARED // bytes that the host gives
static_assert(TOTALS + (SUMMED ? SUMMERS * 16 * 8 : HAS_BGRAD ? TAKEN + CONSUMERS * 8 - TOTALS : 0) == GEMMEPI_SHARED,
              "the host counts the same");
#endif
// What is the same for all rows is loaded a box ahead, where registers are left for it, or ahead of the sums.
constexpr bool AHEAD = !BIAS_FIRST && SPLIT == 1 && PARTS * TILE_N <= 256 && GEMMEPI_APPLIED && !(GATED && WRITES_AUX);
constexpr bool ALL_AHEAD = GEMMEPI_BIAS_AHEAD;
// Both warpgroups do the epilogue of a block's last tile, as there is nothing to multiply any more: a part of its rows each.
constexpr bool SHARES_LAST = PING_PONG && PARTS == 2;
constexpr int COMPILER = __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__;
// One copy of the instructions for all columns, where there are many of them: measured on an H200 with k 768, two halves' gradients
// with sums take 0.955 of the time, GELU_ERF's 0.95. Of boxes of 32 columns there are so many that the compiler does not unroll
// them, and sums in a loop over boxes that is not unrolled have to move by themselves. Without it ptxas before CUDA 13 lacks a register
// for a gate of MISH with AUX of 32 bits, and from 13.0 on for the gradient of ELU.
constexpr bool ROLLS = HAS_BGRAD ? GATED || ACTIVATION == GELU_ERF || BOX_GROUPS == 1 || (ACTIVATION == ELU && COMPILER >= 1300)
                                 : COMPILER < 1300 && BOX_GROUPS == 1 && GATED && WRITES_AUX && ACTIVATION == MISH;
static_assert(!HAS_BGRAD || (SHARES_LAST && !SUMMED && GROUPS / UNIT_GROUPS % 2 == 0), "a warp of its own for each warpgroup's sums");
static_assert(TILE_COLUMNS % BOX_COLUMNS == 0, "tiles are of whole boxes");
static_assert(!ALL_AHEAD || (AHEAD && !ROLLS), "a box's bias is found by a constant");
static_assert(GEMMEPI_ELEMENT == 2 || (A_ROWS && B_ROWS && !SUMMED), "wgmma takes wider elements along k alone");
static_assert(SPLIT == 1 || (!PING_PONG && CLUSTER_M * CLUSTER_N == 1), "a cluster is one tile's");
// Together no more than at the launch: 3 * 168. Sums of an operand take more than 24, and so may loads, where RELU's gradient leaves them.
constexpr bool NEEDS_REGISTERS =
    !SUMMED && (TILE_N == 192 || (HAS_BGRAD && !LOADS_MASK) ||
                (TILE_N == 128 && GATED && (((WRITES_AUX || BACKWARD) && !GEMMEPI_APPLIED) || __CUDACC_VER_MAJOR__ < 13)));
constexpr int PRODUCER_REGISTERS = NEEDS_REGISTERS ? 24 : 40, CONSUMER_REGISTERS = NEEDS_REGISTERS ? 240 : 232;
static_assert(PRODUCER_REGISTERS + CONSUMERS * CONSUMER_REGISTERS <= 504, "setmaxnreg waits for ever");

// >>instructions

__device__ inline u32 shared_address(const void *p) {
    return (u32)__cvta_generic_to_shared(p);
}
__device__ inline u32 cluster_rank() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
// What was written to shared memory before is seen by the whole cluster behind it.
__device__ inline void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// No more than that all threads have come: a release costs a trip to memory.
__device__ inline void cluster_meets() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
__device__ inline void barrier_init(u32 barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
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
// An address of this block's in another block of the cluster.
__device__ inline u32 address_in(u32 address, u32 rank) {
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}
// That wgmma has read a stage needs no release: it goes before by wait_group. What a warp has read itself is ordered before.
__device__ inline void barrier_arrive(u32 barrier_there) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier_there) : "memory");
}
__device__ inline void barrier_arrive_here(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// A box of a tensor of three axes to `to`, in the blocks of the mask.
template <bool Multicast>
__device__ inline void load_box(const gemmepi__tensor_map &map, u32 to, u32 barrier, int x, int y, int item, u16 mask) {
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
// Whether this is the lane of its whole warp that speaks to TMA. Behind any condition but elect.sync the compiler puts each of
// TMA's instructions into a loop over lanes. An activation's one output gains little without them: at k = 768 on an H200 SILU and
// SQUARED_RELU 1 percent, while HARDSWISH, GELU_ERF, SIGMOID and TANH lose 2 to 4.
constexpr bool ELECTS =
    BACKWARD || GATED || WRITES_AUX || ACTIVATION == NONE || ACTIVATION == RELU || ACTIVATION == SILU || ACTIVATION == SQUARED_RELU;
__device__ inline bool is_elected() {
    u32 is = threadIdx.x % 32 == 0;
    if (ELECTS)
        asm volatile("{\n.reg .pred is;\nelect.sync _|is, 0xffffffff;\nselp.u32 %0, 1, 0, is;\n}" : "=r"(is));
    return is;
}
__device__ inline void prefetch_map(const gemmepi__tensor_map &map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
__device__ inline void turn_wait(int which) {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + which), "n"(CONSUMERS * WARPGROUP) : "memory");
}
__device__ inline void turn_give(int which) {
    asm volatile("bar.arrive %0, %1;" ::"r"(1 + which), "n"(CONSUMERS * WARPGROUP) : "memory");
}
__device__ inline void multiply_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void multiply_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int Left> __device__ inline void multiply_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}

// >>wgmma: its operands are as many registers as half the tile's columns, each named in the text and in the list

#define GEMMEPI_8(list, i) list(i), list(i + 1), list(i + 2), list(i + 3), list(i + 4), list(i + 5), list(i + 6), list(i + 7)
#define GEMMEPI_32(list, i) GEMMEPI_8(list, i), GEMMEPI_8(list, i + 8), GEMMEPI_8(list, i + 16), GEMMEPI_8(list, i + 24)
#define GEMMEPI_SUM(i) "+f"(sums[i])
#define GEMMEPI_0_TO_31 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GEMMEPI_32_TO_63 \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GEMMEPI_64_TO_95 \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define GEMMEPI_96_TO_127 \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#if GEMMEPI_TILE_N == 64
#define GEMMEPI_NAMES GEMMEPI_0_TO_31
#define GEMMEPI_SUMS GEMMEPI_32(GEMMEPI_SUM, 0)
#define GEMMEPI_ADDS "%34"
#define GEMMEPI_MATRICES "%32, %33"
#define GEMMEPI_TRANSPOSED ", %35, %36"
#elif GEMMEPI_TILE_N == 128
#define GEMMEPI_NAMES GEMMEPI_0_TO_31 ", " GEMMEPI_32_TO_63
#define GEMMEPI_SUMS GEMMEPI_32(GEMMEPI_SUM, 0), GEMMEPI_32(GEMMEPI_SUM, 32)
#define GEMMEPI_ADDS "%66"
#define GEMMEPI_MATRICES "%64, %65"
#define GEMMEPI_TRANSPOSED ", %67, %68"
#elif GEMMEPI_TILE_N == 192
#define GEMMEPI_NAMES GEMMEPI_0_TO_31 ", " GEMMEPI_32_TO_63 ", " GEMMEPI_64_TO_95
#define GEMMEPI_SUMS GEMMEPI_32(GEMMEPI_SUM, 0), GEMMEPI_32(GEMMEPI_SUM, 32), GEMMEPI_32(GEMMEPI_SUM, 64)
#define GEMMEPI_ADDS "%98"
#define GEMMEPI_MATRICES "%96, %97"
#define GEMMEPI_TRANSPOSED ", %99, %100"
#else
#define GEMMEPI_NAMES GEMMEPI_0_TO_31 ", " GEMMEPI_32_TO_63 ", " GEMMEPI_64_TO_95 ", " GEMMEPI_96_TO_127
#define GEMMEPI_SUMS \
    GEMMEPI_32(GEMMEPI_SUM, 0), GEMMEPI_32(GEMMEPI_SUM, 32), GEMMEPI_32(GEMMEPI_SUM, 64), GEMMEPI_32(GEMMEPI_SUM, 96)
#define GEMMEPI_ADDS "%130"
#define GEMMEPI_MATRICES "%128, %129"
#define GEMMEPI_TRANSPOSED ", %131, %132"
#endif
#if GEMMEPI_ELEMENT == 4
#undef GEMMEPI_TRANSPOSED
#define GEMMEPI_TRANSPOSED ""
#define GEMMEPI_STEP_K "k8"
#else
#define GEMMEPI_STEP_K "k16"
#endif
#define GEMMEPI_TEXT_OF(x) #x
#define GEMMEPI_TEXT(x)    GEMMEPI_TEXT_OF(x)

// sums = A B, or with `adds` sums + A B: 64 rows, TILE_N columns, STEP_BYTES of k.
__device__ inline void multiply(float (&sums)[TILE_N / 2], u64 a, u64 b, int adds) {
    asm volatile("{\n"
                 ".reg .pred adds;\n"
                 "setp.ne.b32 adds, " GEMMEPI_ADDS ", 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n" GEMMEPI_TEXT(GEMMEPI_TILE_N) GEMMEPI_STEP_K ".f32." GEMMEPI_OPERANDS
                 "." GEMMEPI_OPERANDS " {" GEMMEPI_NAMES "}, " GEMMEPI_MATRICES ", adds, 1, 1" GEMMEPI_TRANSPOSED ";\n"
                 "}"
                 : GEMMEPI_SUMS
                 : "l"(a), "l"(b), "r"(adds), "n"(!A_ROWS), "n"(!B_ROWS));
}

// What reads the sums comes behind this, and so behind the wait before it.
__device__ inline void sums_are_there(float (&sums)[TILE_N / 2]) {
#pragma unroll
    for (int i = 0; i < TILE_N / 2; i++)
        asm volatile("" : "+f"(sums[i])::"memory");
}

// ptxas before CUDA 13 serialises wgmma whose first sums were never set, though it does not read them.
__device__ inline void begin_sums(float (&sums)[PARTS][TILE_N / 2]) {
    if (__CUDACC_VER_MAJOR__ < 13)
#pragma unroll
        for (int i = 0; i < PARTS * TILE_N / 2; i++)
            sums[i / (TILE_N / 2)][i % (TILE_N / 2)] = 0;
}

// Matrix descriptor of swizzled lines of 128 bytes: where it begins, the bytes from one 64 along m or n to the next where
// those lie side by side, and from 8 lines to the next.
__device__ inline u64 descriptor(u32 address) {
    return (u64)1 << 62 | (u64)(1024 >> 4) << 32 | (u64)(BOX >> 4) << 16 | (u64)(address >> 4 & 0x3fff);
}
// What an instruction takes of k, and of a descriptor, from there to what the next one takes.
constexpr int STEP_BYTES = 32, STEPS = LINE / STEP_BYTES;
template <bool Rows> constexpr u64 STEP = (Rows ? STEP_BYTES : STEP_BYTES / 2 * LINE) >> 4;

// >>tiles

struct Tile {
    int m, n; // in tiles
    u32 item;
};

// Which tile this block takes as its cluster's t-th: columns of tiles within bands of rows, so that what is under way at a
// time reads few rows of A and few columns of B.
__device__ inline Tile tile_of(const gemmepi__sm90_params &p, u32 t, u32 rank) {
    u32 of_item = p.cluster_rows * p.cluster_columns, item = t / of_item, rest = t - item * of_item;
    u32 of_band = p.band * p.cluster_columns, band = rest / of_band, first = band * p.band;
    u32 height = p.cluster_rows - first < p.band ? p.cluster_rows - first : p.band, within = rest - band * of_band;
    u32 column = within / height, row = first + within - column * height;
    u32 place = SPLIT > 1 ? 0 : rank;
    return {(int)(row * CLUSTER_M + place % CLUSTER_M), (int)(column * CLUSTER_N + place / CLUSTER_M), item};
}

// >>loading

// The blocks of TILE_K that this block adds up: SPLIT, a part of them.
__device__ inline int begin_of_k(const gemmepi__sm90_params &p, u32 part) {
    return SPLIT > 1 ? (int)((u32)((p.k + TILE_K - 1) / TILE_K) * part / SPLIT) : 0;
}
__device__ inline int end_of_k(const gemmepi__sm90_params &p, u32 part) {
    return SPLIT > 1 ? begin_of_k(p, part + 1) : (p.k + TILE_K - 1) / TILE_K;
}

// The column of op(B) that is line `line` of the tile.
__device__ inline int column_of(const gemmepi__sm90_params &p, const Tile &tile, int line) {
    int half = HALVES_IN == 2 && line >= TILE_COLUMNS;
    return tile.n * TILE_COLUMNS + line - half * TILE_COLUMNS + half * (int)p.epilogue.n;
}

// Lines of a matrix beyond its end are slow to ask TMA for, most where many blocks do: on an H200 64 of 128 lines are so for
// 64 x 4096 x 4096, which took more than twice as long. So boxes that reach beyond m or n are of a map of their own, with as many lines as
// there are, and those that begin there are not loaded. Where a box's 64 elements along m or n lie side by side it is whole.
constexpr bool TAILS = GEMMEPI_TAILS;
constexpr int A_LINES = TILE_M / CLUSTER_N, B_LINES = TILE_N / CLUSTER_M; // of this block's part, of B where B_ROWS
constexpr int B_BOX = B_LINES > TILE_COLUMNS ? TILE_COLUMNS : B_LINES;

// Bytes of a tile's lines, of which `left` are not beyond the end.
template <bool Rows> __device__ inline u32 tail_bytes(int left, int lines) {
    int there = left < 0 ? 0 : left < lines ? left : lines;
    return (u32)(Rows ? there : (there + 63) / 64 * 64) * LINE;
}
__device__ inline u32 stage_bytes(const gemmepi__sm90_params &p, const Tile &tile) {
    u32 a = TAILS ? tail_bytes<A_ROWS>((int)p.epilogue.m - tile.m * TILE_M, TILE_M) : A_BYTES;
    u32 b = TAILS ? HALVES_IN * tail_bytes<B_ROWS>((int)p.epilogue.n - tile.n * TILE_COLUMNS, TILE_COLUMNS) : B_BYTES;
    return a + b;
}
// A box of `Lines` lines, of which `left` are not beyond the end.
template <int Lines, bool Multicast>
__device__ inline void load_lines(const gemmepi__tensor_map &map, const gemmepi__tensor_map &tail, int left, u32 to, u32 barrier,
                                  int x, int y, int item, u16 mask) {
    if (!TAILS || left >= Lines)
        load_box<Multicast>(map, to, barrier, x, y, item, mask);
    else if (left > 0)
        load_box<Multicast>(tail, to, barrier, x, y, item, mask);
}

// One thread. Each block loads its part of A's tile for the CLUSTER_N blocks of its row, and of B's for the CLUSTER_M of
// its column.
__device__ inline void produce(const gemmepi__sm90_params &p, u32 shared, u32 rank, u32 first, u32 step) {
    u32 row = SPLIT > 1 ? 0 : rank % CLUSTER_M, column = SPLIT > 1 ? 0 : rank / CLUSTER_M;
    u16 row_mask = 0, column_mask = 0;
    for (int i = 0; i < CLUSTER_N; i++)
        row_mask |= (u16)(1 << (row + i * CLUSTER_M));
    for (int i = 0; i < CLUSTER_M; i++)
        column_mask |= (u16)(1 << (column * CLUSTER_M + i));
    u32 stage = 0, parity = 1; // the first round finds all stages empty
    for (u32 t = first; t < p.tiles; t += step) {
        Tile tile = tile_of(p, t, rank);
        asm volatile("" : "+r"(tile.m), "+r"(tile.n), "+r"(tile.item)); // now, not where it is used
        if (t == first)
            after_launches_before(); // no sooner: most of the instructions up to the first load have come by now
        int m = tile.m * TILE_M + (int)column * A_LINES;
        int a_item = p.a_items ? (int)tile.item : 0, b_item = p.b_items ? (int)tile.item : 0;
        for (int block = begin_of_k(p, rank); block < end_of_k(p, rank); block++) {
            if (TAILS) // what follows from them is computed anew, as to keep it takes registers
                asm volatile("" : "+r"(m), "+r"(tile.m), "+r"(tile.n));
            int k = block * TILE_K, rows_left = (int)p.epilogue.m - m, columns_left = (int)p.epilogue.n - tile.n * TILE_COLUMNS;
            u32 full = shared + FULL + stage * 8, a = shared + stage * STAGE_BYTES + column * A_LINES * LINE;
            u32 b = shared + stage * STAGE_BYTES + A_BYTES;
            barrier_wait(shared + EMPTY + stage * 8, parity);
            barrier_expect(full, stage_bytes(p, tile));
            if (A_ROWS) {
                load_lines<A_LINES, (CLUSTER_N > 1)>(p.a, p.a_tail, rows_left, a, full, k, m, a_item, row_mask);
            } else {
#pragma unroll
                for (int i = 0; i < A_LINES; i += 64)
                    if (!TAILS || i < rows_left)
                        load_box<(CLUSTER_N > 1)>(p.a, a + i * LINE, full, m + i, k, a_item, row_mask);
            }
            if (B_ROWS) {
#pragma unroll
                for (int i = 0; i < B_LINES; i += B_BOX) {
                    int line = (int)row * B_LINES + i;
                    load_lines<B_BOX, (CLUSTER_M > 1)>(p.b, p.b_tail, columns_left - line % TILE_COLUMNS, b + line * LINE,
                                                     full, k, column_of(p, tile, line), b_item, column_mask);
                }
            } else {
#pragma unroll
                for (int i = 0; i < TILE_N; i += 64) // by turns: their number may be odd
                    if ((i / 64 + block) % CLUSTER_M == (int)row && (!TAILS || i % TILE_COLUMNS < columns_left))
                        load_box<(CLUSTER_M > 1)>(p.b, b + i * LINE, full, column_of(p, tile, i), k, b_item, column_mask);
            }
            if (++stage == STAGES)
                stage = 0, parity ^= 1;
        }
    }
}

// >>the epilogue

// Columns from the first of this lane's group-th run to the end, which may lie far behind the tile.
__device__ inline int columns_left(const gemmepi__sm90_params &p, const Tile &tile, int group) {
    return (int)p.epilogue.n - tile.n * TILE_COLUMNS - lane_of_row() * 2 - group * GROUP;
}

template <int Groups>
__device__ inline void load_groups(const gemmepi__sm90_params &p, const Tile &tile, int first_group,
                                   Of_columns (&columns)[Groups]) {
#pragma unroll
    for (int i = 0; i < Groups; i++) {
        long long column = tile.n * TILE_COLUMNS + lane_of_row() * 2 + (first_group + i) * GROUP;
        columns[i] = load_columns(p.epilogue, tile.item, column, columns_left(p, tile, first_group + i));
    }
}

// BIAS_FIRST: sums begin with the bias of a tile's columns.
__device__ inline void begin_sums(const Of_columns (&bias)[GROUPS], float (&sums)[PARTS][TILE_N / 2]) {
    if constexpr (!BIAS_FIRST) {
        begin_sums(sums);
    } else {
#pragma unroll
        for (int i = 0; i < HALVES_IN * GROUPS; i++) {
            int half = i / GROUPS, group = i % GROUPS;
            Acc values[RUN];
            to_accs(bias[group].bias[half], values);
            // F32 that is loaded element by element would be loaded into sums, while wgmma is under way: so ptxas serialises (C7515)
#pragma unroll
            for (int j = 0; j < (sizeof(GEMMEPI_BIAS_TYPE) == 4 && !ALIGNED ? RUN : 0); j++)
                asm volatile("add.f32 %0, %0, 0f80000000;" : "+f"(values[j])); // -0
#pragma unroll
            for (int j = 0; j < PARTS * 2 * RUN; j++) // of each part's two rows of a lane
                sums[j / (2 * RUN)][(half * TILE_COLUMNS + group * GROUP) / 2 + j % (2 * RUN)] =
                    values[j % (2 * RUN) / 4 * 2 + j % 2];
        }
    }
}

// A box of a matrix lies in a warp's part of shared memory as TMA wants it: lines of 128 bytes, of whose eight units of 16 the i-th
// stands in place i ^ line % 8.
struct Staging {
    u32 first; // this warp's buffers
    u32 line;  // this lane's of eight: of 16 bits, that whose unit it addresses, of 32 that of its row
    int turn;
    u32 inputs, arrived; // likewise, and the barriers of its two buffers
    u32 asked, taken;    // boxes of inputs so far
};

// Where this lane's part of the eight rows `half` and the 32 columns `group` goes.
__device__ inline u32 place_in_box(const Staging &staging, int half, int group) {
    u32 unit = BOX_GROUPS == 1 ? threadIdx.x % 4 / 2 : group * 4 + threadIdx.x % 32 / 8;
    return (half * 8 + staging.line) * LINE + ((unit ^ staging.line) << 4) + (BOX_GROUPS == 1 ? threadIdx.x % 2 * 8 : 0);
}
__device__ inline u32 staged_at(const Staging &staging, int matrix, int half, int group) {
    return staging.first + (staging.turn * STAGED_MATRICES + matrix) * STAGED_BYTES + place_in_box(staging, half, group);
}
__device__ inline u32 loaded_at(const Staging &staging, int matrix, int half, int group) {
    return staging.inputs + (staging.taken % 2 * LOADED_MATRICES + matrix) * STAGED_BYTES +
           place_in_box(staging, half, group);
}

__device__ inline void load_result_box(const gemmepi__tensor_map &map, u32 to, u32 barrier, int column, int row, int half,
                                       int item) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
                 "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(half), "r"(item)
                 : "memory");
}

// The elected lane, which alone has stored: all but the `Left` last boxes have been read.
template <int Left> __device__ inline void wait_for_stores() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Left) : "memory");
}

// Has the inputs of a box brought, whose buffer all lanes have left.
__device__ inline void ask_for_inputs(const gemmepi__sm90_params &p, Staging &staging, const Tile &tile, int row, int group) {
    if (LOADED_MATRICES == 0)
        return;
    __syncwarp();
    if (is_elected()) {
        if (IN_PLACE && staging.asked == staging.taken) // results have left the buffer: those of the last box but one,
            wait_for_stores<1>();
        else if (IN_PLACE) // or of the last before the one at hand
            wait_for_stores<0>();
        u32 buffer = staging.asked % 2, barrier = staging.arrived + buffer * 8;
        u32 to = staging.inputs + buffer * LOADED_MATRICES * STAGED_BYTES;
        int column = tile.n * TILE_COLUMNS + group * GROUP;
        barrier_expect(barrier, LOADED_MATRICES * STAGED_BYTES);
#pragma unroll
        for (int half = 0; half < LOADED_AUX; half++)
            load_result_box(p.aux, to + half * STAGED_BYTES, barrier, column, row, half, tile.item);
#pragma unroll
        for (int half = 0; half < LOADED_MATRICES - LOADED_AUX; half++)
            load_result_box(p.residual, to + (LOADED_AUX + half) * STAGED_BYTES, barrier, column, row, half, tile.item);
    }
    staging.asked++;
}
__device__ inline void wait_for_inputs(const Staging &staging) {
    if (LOADED_MATRICES)
        barrier_wait(staging.arrived + staging.taken % 2 * 8, staging.taken / 2 & 1);
}

// The buffer whose turn it is has been read.
__device__ inline void begin_staging() {
    wait_for_stores<BUFFERS - 1>(); // of the elected lane, the others have none
    __syncwarp();
}

__device__ inline void store_box(const gemmepi__tensor_map &map, u32 from, int column, int row, int half, int item) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
                 "r"(from), "r"(column), "r"(row), "r"(half), "r"(item)
                 : "memory");
}

// The results of the box at hand.
__device__ inline u32 box_at(const Staging &staging) {
    return IN_PLACE ? staging.inputs + staging.taken % 2 * LOADED_MATRICES * STAGED_BYTES
                    : staging.first + staging.turn * STAGED_MATRICES * STAGED_BYTES;
}
// What TMA does not take: a matrix of the box whose first row and column these are.
template <class T>
__device__ inline void copy_matrix(const gemmepi__epilogue_params &p, const gemmepi__kernel_matrix &x, u32 from, int column,
                                   int row, int half, int item) {
    copy_box<T, BOX_COLUMNS, true>(from, (T *)x.data + offset(x, item, row, column + half * p.n), x.ld, (int)p.m - row,
                                   (int)p.n - column);
}

__device__ inline void end_staging(const gemmepi__sm90_params &p, Staging &staging, int column, int row, int item) {
    constexpr int moved_d = COPIES_D ? 0 : STAGED_D, moved_aux = COPIES_AUX ? 0 : STAGED_MATRICES - STAGED_D;
    if (moved_d || moved_aux)
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if ((moved_d || moved_aux) && is_elected()) {
        u32 from = box_at(staging);
#pragma unroll
        for (int half = 0; half < moved_d; half++)
            store_box(p.d, from + half * STAGED_BYTES, column, row, half, item);
#pragma unroll
        for (int half = 0; half < moved_aux; half++)
            store_box(p.aux, from + (half + STAGED_D) * STAGED_BYTES, column, row, half, item);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
#pragma unroll
    for (int half = 0; half < (COPIES_D ? STAGED_D : 0); half++)
        copy_matrix<GEMMEPI_D_TYPE>(p.epilogue, p.epilogue.d, box_at(staging) + half * STAGED_BYTES, column, row, half, item);
#pragma unroll
    for (int half = 0; half < (COPIES_AUX ? STAGED_MATRICES - STAGED_D : 0); half++)
        copy_matrix<GEMMEPI_AUX_TYPE>(p.epilogue, p.epilogue.aux, box_at(staging) + (half + STAGED_D) * STAGED_BYTES, column,
                                      row, half, item);
    staging.turn = staging.turn + 1 == BUFFERS ? 0 : staging.turn + 1;
}

// The sums of 16 rows and a box's columns as wgmma leaves them in a warp: of eight columns a lane has two, in row lane / 4 and in
// the eighth below.
struct Box {
    float at[HALVES_IN][BOX_COLUMNS / 8][4];
};

// Of a part's sums those of the columns from `group` on.
__device__ inline Box box_of(const float (&sums)[TILE_N / 2], int group) {
    Box box;
#pragma unroll
    for (int j = 0; j < HALVES_IN * BOX_COLUMNS / 2; j++)
        box.at[j / (BOX_COLUMNS / 2)][j % (BOX_COLUMNS / 2) / 4][j % 4] =
            sums[(j / (BOX_COLUMNS / 2) * TILE_COLUMNS + group * GROUP) / 2 + j % (BOX_COLUMNS / 2)];
    return box;
}
// The next box is the first: one copy of the epilogue is enough for all of them.
__device__ inline void drop_first_box(float (&sums)[TILE_N / 2]) {
#pragma unroll
    for (int i = 0; i + BOX_COLUMNS / 2 < TILE_N / 2; i++)
        sums[i] = sums[i + BOX_COLUMNS / 2];
}

// >>RELU's mask

// LOADS_MASK: of a tile's columns, for two parts of 64 rows the warp's 16 of each: lane i has row i % 16 of part i / 16.
constexpr int MASK_WORDS = TILE_COLUMNS / 32;
struct alignas(MASK_WORDS == 4 ? 16 : 8) Masks {
    u32 words[MASK_WORDS];
};
// row: the warp's first
__device__ inline Masks load_masks(const gemmepi__sm90_params &params, const Tile &tile, int row) {
    const gemmepi__epilogue_params &p = params.epilogue;
    Masks masks = {};
    int column = tile.n * TILE_COLUMNS;
    row += (int)threadIdx.x % 32 / 16 * 64 + threadIdx.x % 16;
    if (!LOADS_MASK || row >= (int)p.m)
        return masks;
    const u8 *bytes = (const u8 *)p.aux.data + offset(p.aux, tile.item, row, column) / 8;
    if (column + TILE_COLUMNS <= (int)p.n)
        masks = *reinterpret_cast<const Masks *>(bytes);
    else // a line may end with its last byte
#pragma unroll
        for (int i = 0; i < MASK_WORDS * 4; i++)
            if (column + i * 8 < (int)p.n)
                masks.words[i / 4] |= (u32)bytes[i] << i % 4 * 8;
    return masks;
}
// Those of this lane's row of eight, `half` of 16 of `part`, and of 32 columns.
__device__ inline u32 mask_of(const Masks &masks, int part, int half, int group) {
    u32 word = masks.words[0];
#pragma unroll
    for (int i = 1; i < MASK_WORDS; i++)
        word = group == i ? masks.words[i] : word;
    return __shfl_sync(0xffffffffu, word, part * 16 + half * 8 + (int)threadIdx.x % 32 / 4);
}

// >>sums of columns

// Few registers are left by an exact activation, by alpha and C beside all of a box's aux, and where a gate is computed anew.
typedef Column_sums<(GEMMEPI_EXACT || (GATED ? UPSTREAM && GEMMEPI_APPLIED : !GEMMEPI_APPLIED))> Box_sums[BOX_GROUPS];

// Where in a slot a lane's sum is, of the i-th of UNIT_GROUPS groups of columns, and a half.
__device__ inline u32 slot_at(u32 shared, u32 group, u32 thread, int i, int half) {
    return shared + SLOTS + group * SLOT_BYTES + ((half * UNIT_GROUPS + i) * WARPGROUP + thread) * 4;
}
// A warp's sums of a tile's columns from `first_group` on, a box, once there is room for them.
__device__ inline void leave_column_sums(u32 shared, u32 group, u32 thread, int first_group, const Box_sums &sums) {
#pragma unroll
    for (int g = 0; g < BOX_GROUPS; g++) {
        int unit = (first_group + g) / UNIT_GROUPS, i = (first_group + g) % UNIT_GROUPS;
        if (i == 0)
            barrier_wait(shared + TAKEN + group * 8, unit % 2 ^ 1);
#pragma unroll
        for (int half = 0; half < HALVES_OUT; half++)
            asm volatile("st.shared.f32 [%0], %1;" ::"r"(slot_at(shared, group, thread, i, half)), "f"(sums[g].sum(half))
                         : "memory");
        if (i + 1 == UNIT_GROUPS) {
            __syncwarp();
            if (thread % 32 == 0)
                barrier_arrive_here(shared + LEFT + group * 8);
        }
    }
}
// The line of a tile's sums in memory.
__device__ inline Acc *line_of_sums(const gemmepi__sm90_params &params, const Tile &tile, int half) {
    const gemmepi__epilogue_params &p = params.epilogue;
    return (Acc *)p.partials + (((long long)tile.item * p.row_tiles + tile.m) * HALVES_OUT + half) * p.n;
}
__device__ inline Acc sum_of_warps(Acc first, Acc second, Acc third, Acc fourth) {
    return (first + second) + (third + fourth);
}

// Two warps, one for each warpgroup: of all of its tiles but the block's last.
__device__ inline void add_column_sums(const gemmepi__sm90_params &p, u32 shared, u32 rank, u32 first, u32 step) {
    u32 group = __shfl_sync(0xffffffffu, threadIdx.x / 32 - 1, 0);
#pragma unroll 1
    for (u32 t = first + group * step; t + step < p.tiles; t += CONSUMERS * step) {
        Tile tile = tile_of(p, t, rank);
        bool exists = tile.m * TILE_M < (int)p.epilogue.m; // else it is of a cluster that reaches beyond m
#pragma unroll 1
        for (int unit = 0; unit < GROUPS / UNIT_GROUPS; unit++) {
            barrier_wait(shared + LEFT + group * 8, unit % 2);
#pragma unroll
            for (int i = 0; i < UNIT_GROUPS * HALVES_OUT; i++) {
                int half = i / UNIT_GROUPS, of_unit = i % UNIT_GROUPS;
                int column = tile.n * TILE_COLUMNS + (unit * UNIT_GROUPS + of_unit) * GROUP + Column_sums<false>::column();
                Acc sums[4];
#pragma unroll
                for (int warp = 0; warp < 4; warp++)
                    asm volatile("ld.shared.f32 %0, [%1];"
                                 : "=f"(sums[warp])
                                 : "r"(slot_at(shared, group, warp * 32 + threadIdx.x % 32, of_unit, half))
                                 : "memory");
                if (exists && column < (int)p.epilogue.n)
                    line_of_sums(p, tile, half)[column] = sum_of_warps(sums[0], sums[1], sums[2], sums[3]);
            }
            __syncwarp(); // all lanes have read them
            if (threadIdx.x % 32 == 0)
                barrier_arrive_here(shared + TAKEN + group * 8);
        }
    }
}

// A lane's run in eight rows, `half` of a warp's 16, and 32 columns.
struct Run_place {
    int row, column, valid;
};
__device__ inline Run_place place_of_run(const gemmepi__sm90_params &params, const Tile &tile, int row, int half, int group) {
    int at = row + threadIdx.x % 32 / 4 + half * 8, column = tile.n * TILE_COLUMNS + lane_of_row() * 2 + group * GROUP;
    if (BACKWARD && !GEMMEPI_APPLIED) // each run for itself: what they have in common would take registers
        asm volatile("" : "+r"(at), "+r"(column));
    return {at, column, at < (int)params.epilogue.m ? columns_left(params, tile, group) : 0};
}

// What BACKWARD reads there: of the g-th group of the box at hand.
__device__ inline void load_saved_run(const gemmepi__sm90_params &params, Epilogue_state &state, const Staging &staging,
                                      const Tile &tile, const Run_place &at, const Masks &masks, int part, int half,
                                      int group, int g, Saved &saved) {
#pragma unroll
    for (int i = 0; i < LOADED_AUX; i++)
        state.loaded_aux[i] = loaded_at(staging, i, half, g);
    if (LOADS_MASK)
        state.loaded_mask = mask_of(masks, part, half, group);
    load_saved(params.epilogue, state, tile.item, at.row, at.column, at.valid, saved);
}

// Where its results go.
__device__ inline void set_staged(Epilogue_state &state, const Staging &staging, int half, int g) {
#pragma unroll
    for (int i = 0; i < STAGED_D; i++)
        state.staged_d[i] = IN_PLACE ? loaded_at(staging, i, half, g) : staged_at(staging, i, half, g);
#pragma unroll
    for (int i = 0; i < STAGED_MATRICES - STAGED_D; i++)
        state.staged_aux[i] = staged_at(staging, i + STAGED_D, half, g);
}

// One's way from shared memory is behind the arithmetic of another if all of a box are asked for first, and 16 rows stored at
// a time; two halves, UPSTREAM, RESIDUAL, and aux that comes from memory in 32 bits take too many registers.
constexpr bool SAVED_FIRST = !GATED && !UPSTREAM && !HAS_RESIDUAL && (LOADS_AUX || LOADS_MASK);

// The tile's box after the one at hand, if there is one.
struct Next_box {
    bool exists;
    int row, group;
};

// Whether all of a box's aux are where LOOKS_NEAR wants them.
__device__ inline bool box_is_near(const Saved (&saved)[BOX_GROUPS][2]) {
    Near near;
#pragma unroll
    for (int i = 0; i < BOX_GROUPS * 2; i++)
        near.take_in(saved[i / 2][i % 2].runs[0]);
    return __all_sync(0xffffffffu, near.has_all());
}

// A box's runs, of which SAVED_FIRST has loaded `saved`.
template <bool IsNear>
__device__ inline void finish_runs(const gemmepi__sm90_params &params, Epilogue_state &state, Staging &staging,
                                   const Tile &tile, int row, int part, int group, const Next_box &next,
                                   const Of_columns (&columns)[BOX_GROUPS], const Masks &masks, const Box &box,
                                   Saved (&saved)[BOX_GROUPS][2], Box_sums &column_sums) {
    const gemmepi__epilogue_params &p = params.epilogue;
#pragma unroll
    for (int g = 0; g < BOX_GROUPS; g++) {
        Acc results[2][HALVES][RUN];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            Run_place at = place_of_run(params, tile, row, half, group + g);
            Acc(&v)[HALVES][RUN] = results[half];
#pragma unroll
            for (int i = 0; i < HALVES_IN * RUN; i++)
                v[i / RUN][i % RUN] = box.at[i / RUN][g * 4 + i % RUN / 2][half * 2 + i % 2];
            set_staged(state, staging, half, g);
#pragma unroll
            for (int i = 0; i < LOADED_MATRICES - LOADED_AUX; i++)
                state.loaded_residual[i] = loaded_at(staging, i + LOADED_AUX, half, g);
            state.mask_place = half + 2 * g;
            if (!SAVED_FIRST)
                load_saved_run(params, state, staging, tile, at, masks, part, half, group + g, g, saved[g][half]);
            epilogue<IsNear>(p, state, columns[g], saved[g][half], tile.item, at.row, at.column, at.valid, v);
            if (!SAVED_FIRST)
                store_result(p, state, tile.item, at.row, at.column, at.valid, v);
            if (HAS_BGRAD)
                column_sums[g].add(v, at.row < (int)p.m);
        }
#pragma unroll
        for (int half = 0; half < (SAVED_FIRST ? 2 : 0); half++) {
            Run_place at = place_of_run(params, tile, row, half, group + g);
            set_staged(state, staging, half, g);
            store_result(p, state, tile.item, at.row, at.column, at.valid, results[half]);
        }
        if (HAS_BGRAD)
            column_sums[g].end_rows();
        if (IN_PLACE && g == 0 && next.exists) // by now the other buffer's results are likely to have left
            ask_for_inputs(params, staging, tile, next.row, next.group);
    }
}

// `row` is the warp's first of op(A), of the part of its rows that `masks` counts; `group` is the box's first.
__device__ inline void finish_box(const gemmepi__sm90_params &params, Epilogue_state &state, Staging &staging,
                                  const Tile &tile, int row, int part, int group, const Next_box &next,
                                  const Of_columns (&columns)[BOX_GROUPS], const Masks &masks, const Box &box,
                                  Box_sums &column_sums) {
    const gemmepi__epilogue_params &p = params.epilogue;
    Saved saved[BOX_GROUPS][2];
    if (!IN_PLACE && next.exists)
        ask_for_inputs(params, staging, tile, next.row, next.group);
    wait_for_inputs(staging);
#pragma unroll
    for (int i = 0; i < (SAVED_FIRST ? BOX_GROUPS * 2 : 0); i++)
        load_saved_run(params, state, staging, tile, place_of_run(params, tile, row, i % 2, group + i / 2), masks, part,
                       i % 2, group + i / 2, i / 2, saved[i / 2][i % 2]);
    if (STAGED_MATRICES)
        begin_staging();
    if (LOOKS_NEAR && box_is_near(saved))
        finish_runs<LOOKS_NEAR>(params, state, staging, tile, row, part, group, next, columns, masks, box, saved, column_sums);
    else
        finish_runs<false>(params, state, staging, tile, row, part, group, next, columns, masks, box, saved, column_sums);
    if (KEEPS_MASK)
        store_kept_masks(p, state, tile.item, row, tile.n * TILE_COLUMNS + group * GROUP, BOX_GROUPS);
    if (STAGED)
        end_staging(params, staging, tile.n * TILE_COLUMNS + group * GROUP, row, tile.item);
    staging.taken++;
}

// >>sums of k in parts

// The boxes of a tile that exist go in turn to the blocks of the cluster, in these to their warps. Each block leaves its sums of a
// box in the block that finishes it, where the stages were, and a barrier there counts their bytes: on an H200 to read them from
// where they were made took 2000 to 8000 cycles, and to leave them there for all to see 1100 to 2200.
static_assert(SPLIT == 1 || PARTS == 1, "a warp has 16 rows");
constexpr u32 FOURS_OF_BOX = HALVES_IN * BOX_COLUMNS / 8; // a lane's sums, four at a time
constexpr u32 BOX_BYTES = FOURS_OF_BOX * 32 * 16, BOXES = WARPS * (GROUPS / BOX_GROUPS);
static_assert(SPLIT == 1 || (BOXES % SPLIT == 0 && BOXES * BOX_BYTES <= STAGES * STAGE_BYTES), "the stages have room for them");
constexpr bool STORES_ASYNC = COMPILER >= 1201; // 12.0 knows no st.async

struct Boxes {
    u32 rows, columns;
};
__device__ inline Boxes boxes_of(const gemmepi__sm90_params &p, const Tile &tile) {
    u32 rows = (u32)p.epilogue.m - tile.m * TILE_M, columns = (u32)p.epilogue.n - tile.n * TILE_COLUMNS;
    return {((rows < TILE_M ? rows : TILE_M) + 15) / 16,
            ((columns < TILE_COLUMNS ? columns : TILE_COLUMNS) + BOX_COLUMNS - 1) / BOX_COLUMNS};
}
// Of a block's slot-th box the sums of block `from`.
__device__ inline u32 left_at(u32 slot, u32 from) {
    return (slot * SPLIT + from) * BOX_BYTES + threadIdx.x % 32 * 16;
}

__device__ inline void leave_sums(const gemmepi__sm90_params &p, const Tile &tile, u32 shared, u32 rank,
                                  const float (&sums)[TILE_N / 2]) {
    Boxes boxes = boxes_of(p, tile);
    u32 row = threadIdx.x / 32 - 4;
    if (STORES_ASYNC && threadIdx.x == WARPGROUP)
        barrier_expect(shared + RECEIVED, (boxes.rows * boxes.columns + SPLIT - 1 - rank) / SPLIT * SPLIT * BOX_BYTES);
#pragma unroll
    for (int group = 0; group < GROUPS; group += BOX_GROUPS) {
        u32 i = group / BOX_GROUPS * boxes.rows + row;
        u32 there = address_in(shared, i % SPLIT), to = there + left_at(i / SPLIT, rank);
        Box box = box_of(sums, group);
        if (row >= boxes.rows || group / BOX_GROUPS >= boxes.columns)
            continue;
#pragma unroll
        for (int j = 0; j < FOURS_OF_BOX; j++) {
            const float *four = box.at[j / (BOX_COLUMNS / 8)][j % (BOX_COLUMNS / 8)];
            if (STORES_ASYNC)
                asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                                 to + j * 512),
                             "f"(four[0]), "f"(four[1]), "f"(four[2]), "f"(four[3]), "r"(there + RECEIVED)
                             : "memory");
            else
                asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to + j * 512), "f"(four[0]), "f"(four[1]),
                             "f"(four[2]), "f"(four[3])
                             : "memory");
        }
    }
}

// Always in the same order.
__device__ inline void add_left(u32 shared, u32 slot, Box &box) {
    box = {};
#pragma unroll 1
    for (u32 block = 0; block < SPLIT; block++)
#pragma unroll
        for (int j = 0; j < FOURS_OF_BOX; j++) {
            float *four = box.at[j / (BOX_COLUMNS / 8)][j % (BOX_COLUMNS / 8)], x[4];
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                         : "r"(shared + left_at(slot, block) + j * 512)
                         : "memory");
#pragma unroll
            for (int i = 0; i < 4; i++)
                four[i] += x[i];
        }
}

__device__ inline void finish_left(const gemmepi__sm90_params &p, Epilogue_state &state, Staging &staging,
                                   const Tile &tile, u32 shared, u32 rank) {
    Boxes boxes = boxes_of(p, tile);
    for (u32 slot = threadIdx.x / 32 - 4; slot * SPLIT + rank < boxes.rows * boxes.columns; slot += WARPS) {
        u32 i = slot * SPLIT + rank;
        int group = (int)(i / boxes.rows) * BOX_GROUPS, row = tile.m * TILE_M + (int)(i % boxes.rows) * 16;
        Of_columns columns[BOX_GROUPS];
        load_groups(p, tile, group, columns);
        ask_for_inputs(p, staging, tile, row, group);
        Masks masks = load_masks(p, tile, row);
        Box box;
        add_left(shared, slot, box);
        Box_sums none;
        finish_box(p, state, staging, tile, row, 0, group, {false, 0, 0}, columns, masks, box, none);
    }
}

// >>sums in shared memory, where the stages were

constexpr u32 PART_BYTES = 64 * TILE_N * 4; // of 64 rows

// Sums that lie from `first` on and, beyond the bytes of a stage, from `rest` on. Four of each thread of a warpgroup are side by
// side, in the order of the registers.
struct Parked {
    u32 first, rest;
};
constexpr u32 FOURS = WARPGROUP * 16; // bytes of them
__device__ inline u32 parked_at(const Parked &parked, u32 four, u32 thread) {
    u32 at = four * FOURS;
    return (at < STAGE_BYTES ? parked.first + at : parked.rest + (at - STAGE_BYTES)) + thread * 16;
}

__device__ inline void park(const Parked &parked, u32 thread, const float (&sums)[TILE_N / 2]) {
#pragma unroll
    for (int i = 0; i < TILE_N / 8; i++)
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(parked_at(parked, i, thread)), "f"(sums[i * 4]),
                     "f"(sums[i * 4 + 1]), "f"(sums[i * 4 + 2]), "f"(sums[i * 4 + 3])
                     : "memory");
}

// >>a block's last tile

// Behind it nothing is multiplied. The warpgroup that multiplies it leaves the first part's sums to the other one, which has
// nothing else to do, and keeps the second's. Of the last blocks of k, as many as there are stages beside those for the sums, it
// first adds up all for the first part, and then for the second: these are behind the other's epilogue.
constexpr u32 PARKED_STAGES = (PART_BYTES + STAGE_BYTES - 1) / STAGE_BYTES;
constexpr int LAST_BLOCKS = STAGES - (int)PARKED_STAGES;
static_assert(!SHARES_LAST || (LAST_BLOCKS > 0 && PARKED_STAGES <= 2 && STAGE_BYTES % FOURS == 0), "the stages have room");

// From a stage on
__device__ inline Parked parked_in(u32 shared, u32 stage) {
    return {shared + stage * STAGE_BYTES, shared + (stage + 1 == STAGES ? 0 : stage + 1) * STAGE_BYTES};
}
__device__ inline void read_parked(const Parked &parked, u32 thread, float (&sums)[TILE_N / 2]) {
#pragma unroll
    for (int i = 0; i < TILE_N / 2; i += 4)
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(sums[i]), "=f"(sums[i + 1]), "=f"(sums[i + 2]), "=f"(sums[i + 3])
                     : "r"(parked_at(parked, i / 4, thread))
                     : "memory");
}
// Twice, as compute-sanitizer's racecheck does not take in the first barrier at once, nor one where some only arrive.
__device__ inline void both_meet() {
    asm volatile("bar.sync 6, %0;\nbar.sync 6, %0;" ::"n"(CONSUMERS * WARPGROUP) : "memory");
}
__device__ inline void meet_summers() {
    asm volatile("bar.sync 7, %0;\nbar.sync 7, %0;" ::"n"(WARPGROUP + SUMMERS * 32) : "memory");
}
__device__ inline void warpgroup_meets(int warpgroup) {
    asm volatile("bar.sync %0, %1;" ::"r"(4 + warpgroup), "n"(WARPGROUP) : "memory");
}
// The stages behind the last one are free: where all of them are the last tile's they are, but for the warps that add up an operand,
// and else when the other warpgroup has multiplied its last tile.
__device__ inline void stages_are_left(int blocks) {
    if (blocks < STAGES)
        both_meet();
}

// BGRAD: each warp leaves the sums of its part of the tile's rows, of a box's columns where the first four sums of their box were, the
// second part in the next stage.
static_assert(!HAS_BGRAD || (PARKED_STAGES == 1 && HALVES_OUT * BOX_COLUMNS * 4 <= FOURS / 4), "a warp's four are as much");
struct Left_sums {
    u32 of_first, of_second; // parts
    __device__ inline u32 at(u32 part, u32 thread, int group, int half) const { // of a lane, of 32 columns
        return (part ? of_second : of_first) + group / BOX_GROUPS * BOX_GROUPS * 4 * FOURS + thread / 32 * (FOURS / 4) +
               ((half * BOX_GROUPS + group % BOX_GROUPS) * 32 + thread % 32) * 4;
    }
    __device__ inline void leave(u32 part, u32 thread, int group, const Box_sums &sums) const {
#pragma unroll
        for (int i = 0; i < BOX_GROUPS * HALVES_OUT; i++)
            asm volatile("st.shared.f32 [%0], %1;" ::"r"(at(part, thread, group + i / HALVES_OUT, i % HALVES_OUT)),
                         "f"(sums[i / HALVES_OUT].sum(i % HALVES_OUT))
                         : "memory");
    }
    // of all warps and both parts
    __device__ inline Acc sum(u32 lane, int group, int half) const {
        Acc of[4];
#pragma unroll
        for (u32 warp = 0; warp < 4; warp++) {
            Acc first, second;
            asm volatile("ld.shared.f32 %0, [%1];" : "=f"(first) : "r"(at(0, warp * 32 + lane, group, half)) : "memory");
            asm volatile("ld.shared.f32 %0, [%1];" : "=f"(second) : "r"(at(1, warp * 32 + lane, group, half)) : "memory");
            of[warp] = first + second;
        }
        return sum_of_warps(of[0], of[1], of[2], of[3]);
    }
};
__device__ inline Left_sums left_in(u32 shared, u32 stage) {
    return {parked_in(shared, stage).first, parked_in(shared, stage).rest};
}
// Both warpgroups: the tile's line.
__device__ inline void store_left_sums(const gemmepi__sm90_params &p, const Tile &tile, const Left_sums &left) {
    if (tile.m * TILE_M >= (int)p.epilogue.m) // of a cluster that reaches beyond m
        return;
    for (int warp = (int)threadIdx.x / 32 - 4; warp < HALVES_OUT * GROUPS; warp += CONSUMERS * 4) {
        int half = warp / GROUPS, group = warp % GROUPS;
        int column = tile.n * TILE_COLUMNS + group * GROUP + Column_sums<false>::column();
        if (column < (int)p.epilogue.n)
            line_of_sums(p, tile, half)[column] = left.sum(threadIdx.x % 32, group, half);
    }
}

// >>telling

// A stage's end is told to the blocks that load into it, those of the row and of the column: TELLERS threads do, each one block.
constexpr u32 TELLERS = CLUSTER_N + CLUSTER_M - 1;
__device__ inline u32 told_by(u32 thread, u32 rank) {
    u32 row = rank % CLUSTER_M, column = rank / CLUSTER_M, other = thread - CLUSTER_N;
    return SPLIT > 1            ? rank
           : thread < CLUSTER_N ? row + thread * CLUSTER_M
                                : column * CLUSTER_M + (other >= row ? other + 1 : other);
}

// >>sums of an operand

// A tile's lines are slices of 16. Of all tiles along the other axis, through each of which the operand passes whole, each has
// some, so that none is held up: a warp has one at most.
constexpr bool SUMMED_ROWS = SUMMED == 1 ? A_ROWS : B_ROWS;
constexpr int SLICES = SUMMED_LINES / 16;

// Into bias_grad, or a line of an item.
__device__ inline void store_total(const gemmepi__sm90_params &p, u32 item, int at, double sum) {
    GEMMEPI_SUMS_TYPE *to = (GEMMEPI_SUMS_TYPE *)p.sums + item * p.sums_stride + at;
    if (GEMMEPI_SUMS_ADD)
        sum += to_acc<double>(*to);
    *to = from_acc<GEMMEPI_SUMS_TYPE>(sum);
}

// This warp's in a tile, or a negative number.
__device__ inline int slice_of(const gemmepi__sm90_params &p, const Tile &tile, int summer) {
    int across = SUMMED == 1 ? tile.n : tile.m, slice = across + summer * p.sum_tiles;
    return across < p.sum_tiles && slice < SLICES ? slice : -1;
}

// What a lane adds up over a tile's k: half of each line of TILE_K; where lines lie along m or n, eight of them, 4 of each 64 of
// k. Those of some stages together, so that k may be long.
constexpr int SUMMED_AT_ONCE = 64;
struct Slice_sums {
    float at[SUMMED_ROWS ? 1 : 8], before[SUMMED_ROWS ? 1 : 8];
};
__device__ inline void keep_sums(Slice_sums &sums) {
#pragma unroll
    for (int i = 0; i < (SUMMED_ROWS ? 1 : 8); i++) {
        sums.before[i] += sums.at[i];
        sums.at[i] = 0;
    }
}

// Where a lane's first 16 bytes of a stage are: of line lane / 2 of the slice its half; or of 16 of k line lane / 2, but so that
// eight lanes read from all banks, and half of the slice.
__device__ inline u32 slice_lane(int slice) {
    u32 pair = threadIdx.x % 32 / 2, half = threadIdx.x % 2;
    u32 line = SUMMED_ROWS ? slice * 16 + pair : pair % 4 * 2 + pair / 4 % 2 + pair / 8 * 8;
    u32 unit = SUMMED_ROWS ? half * 4 : slice % 4 * 2 + half;
    return (SUMMED == 1 ? 0 : A_BYTES) + (SUMMED_ROWS ? 0 : slice / 4 * BOX) + line * LINE + ((unit ^ line % 8) << 4);
}
__device__ inline u32 slice_at(u32 lane, int i) {
    return SUMMED_ROWS ? lane ^ i << 4 : lane + i * 16 * LINE;
}

__device__ inline void to_floats(u32 word, float &low, float &high) {
    if (GEMMEPI_OPERANDS[0] == 'b') {
        low = __uint_as_float(word << 16);
        high = __uint_as_float(word & 0xffff0000);
    } else {
        asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\ncvt.f32.f16 %0, low;\ncvt.f32.f16 %1, high;\n}"
            : "=f"(low), "=f"(high)
            : "r"(word));
    }
}

__device__ inline void add_stage(u32 lane, Slice_sums &sums) {
    u32 words[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[i][0]), "=r"(words[i][1]), "=r"(words[i][2]), "=r"(words[i][3])
                     : "r"(slice_at(lane, i))
                     : "memory");
    float parts[4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float low, high;
            to_floats(words[i][j], low, high);
            if (SUMMED_ROWS) {
                parts[j] += low + high;
            } else {
                sums.at[SUMMED_ROWS ? 0 : j * 2] += low;
                sums.at[SUMMED_ROWS ? 0 : j * 2 + 1] += high;
            }
        }
    if (SUMMED_ROWS)
        sums.at[0] += (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// Of the lanes together: which line's sum this lane has then, if any, and that sum.
__device__ inline int line_of_sum() {
    int lane = threadIdx.x % 32;
    return SUMMED_ROWS ? (lane % 2 ? -1 : lane / 2) : (lane < 16 ? lane % 2 * 8 + lane / 2 : -1);
}
__device__ inline double sum_of_slice(const Slice_sums &sums) {
    double mine = 0;
#pragma unroll
    for (int i = 0; i < (SUMMED_ROWS ? 1 : 8); i++) {
        double sum = (double)sums.before[i] + sums.at[i];
#pragma unroll
        for (int lanes = SUMMED_ROWS ? 1 : 2; lanes <= (SUMMED_ROWS ? 1 : 16); lanes *= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
        if (SUMMED_ROWS || threadIdx.x % 32 / 2 == i)
            mine = sum;
    }
    return mine;
}

__device__ inline void store_sum(const gemmepi__sm90_params &p, const Tile &tile, int line, double sum) {
    int at = SUMMED == 1 ? tile.m * TILE_M + line : column_of(p, tile, line);
    int left = SUMMED == 1 ? (int)p.epilogue.m - at : (int)p.epilogue.n - tile.n * TILE_COLUMNS - line % TILE_COLUMNS;
    if (left > 0)
        store_total(p, tile.item, at, sum);
}

// SPLIT: each block has sums of its part of k, which the first adds up, always in the same order.
__device__ inline u32 total_at(u32 shared, int summer) {
    return shared + TOTALS + (summer * 16 + line_of_sum()) * 8;
}
__device__ inline void leave_total(u32 shared, int summer, double total) {
    if (line_of_sum() >= 0)
        asm volatile("st.shared.f64 [%0], %1;" ::"r"(total_at(shared, summer)), "d"(total) : "memory");
}
__device__ inline void store_totals(const gemmepi__sm90_params &p, u32 shared, const Tile &tile, int summer) {
    int slice = slice_of(p, tile, summer);
    double sum = 0;
    if (slice < 0 || line_of_sum() < 0)
        return;
#pragma unroll 1
    for (int block = 0; block < SPLIT; block++) {
        double total;
        asm volatile("ld.shared::cluster.f64 %0, [%1];"
                     : "=d"(total)
                     : "r"(address_in(total_at(shared, summer), block))
                     : "memory");
        sum += total;
    }
    store_sum(p, tile, slice * 16 + line_of_sum(), sum);
}

// Three warps. Where nothing is to add they wait for each stage all the same: to leave it before it is full would count for
// another round.
__device__ inline void add_operand(const gemmepi__sm90_params &p, u32 shared, u32 rank, u32 first, u32 step) {
    int summer = (int)__shfl_sync(0xffffffffu, threadIdx.x / 32 - 1, 0);
    bool tells = threadIdx.x % 32 < TELLERS;
    u32 told = told_by(threadIdx.x % 32, rank), empty = address_in(shared + EMPTY, tells ? told : rank);
    u32 stage = 0, parity = 0;
    int blocks = end_of_k(p, rank) - begin_of_k(p, rank);
#pragma unroll 1
    for (u32 t = first; t < p.tiles; t += step) {
        int slice = slice_of(p, tile_of(p, t, rank), summer);
        u32 lane = shared + slice_lane(slice < 0 ? 0 : slice);
        Slice_sums sums = {};
#pragma unroll 1
        for (int block = 0; block < blocks; block++) {
            barrier_wait(shared + FULL + stage * 8, parity);
            if (slice >= 0)
                add_stage(lane + stage * STAGE_BYTES, sums);
            if (block % SUMMED_AT_ONCE == SUMMED_AT_ONCE - 1)
                keep_sums(sums);
            __syncwarp(); // all lanes have read it
            if (tells)
                barrier_arrive(empty + stage * 8);
            if (++stage == STAGES)
                stage = 0, parity ^= 1;
        }
        if (slice < 0)
            continue;
        double sum = sum_of_slice(sums);
        if (SPLIT > 1)
            leave_total(shared, summer, sum);
        else if (line_of_sum() >= 0)
            store_sum(p, tile_of(p, t, rank), slice * 16 + line_of_sum(), sum);
    }
    if (SHARES_LAST)
        meet_summers();
}

// >>multiplying

__device__ inline void skip_stages(u32 &stage, u32 &parity, int blocks) {
    stage += (u32)blocks;
    parity ^= stage / STAGES & 1;
    stage %= STAGES;
}

// sums = this warpgroup's rows of a tile, or with BIAS_FIRST to what they are. The last stage is still being read.
__device__ inline void add_up(u32 shared, u32 empty, bool tells, int first_part, int blocks, u32 &stage, u32 &parity,
                              float (&sums)[PARTS][TILE_N / 2]) {
    u32 last = 0, adds = 0;
#pragma unroll 1
    do { // there is one at least
        u64 a = descriptor(shared + stage * STAGE_BYTES + first_part * BOX);
        u64 b = descriptor(shared + stage * STAGE_BYTES + A_BYTES);
        barrier_wait(shared + FULL + stage * 8, parity);
        multiply_begin();
#pragma unroll
        for (int i = 0; i < STEPS; i++)
#pragma unroll
            for (int part = 0; part < PARTS; part++)
                multiply(sums[part], a + part * (BOX >> 4) + i * STEP<A_ROWS>, b + i * STEP<B_ROWS>,
                         i > 0 || BIAS_FIRST ? 1 : adds);
        multiply_commit();
        multiply_wait<1>();
        if (tells && adds) // the stage before is read
            barrier_arrive(empty + last * 8);
        asm volatile("mov.u32 %0, 1;" : "=r"(adds)); // not seen through: one copy of the loop is enough
        last = stage;
        if (++stage == STAGES)
            stage = 0, parity ^= 1;
    } while (--blocks);
}

// One part after the other, of LAST_BLOCKS, which stay in their stages; behind others if `adds`. The second's sums are still added
// up.
__device__ inline void add_up_in_turn(u32 shared, u32 adds, u32 &stage, u32 &parity, float (&sums)[PARTS][TILE_N / 2]) {
    u32 first = stage;
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        u32 add = adds;
        stage = first;
#pragma unroll
        for (int block = 0; block < LAST_BLOCKS; block++) {
            u64 a = descriptor(shared + stage * STAGE_BYTES), b = descriptor(shared + stage * STAGE_BYTES + A_BYTES);
            if (part == 0)
                barrier_wait(shared + FULL + stage * 8, parity);
            multiply_begin();
#pragma unroll
            for (int i = 0; i < STEPS; i++)
                multiply(sums[part], a + part * (BOX >> 4) + i * STEP<A_ROWS>, b + i * STEP<B_ROWS>,
                         i > 0 || BIAS_FIRST ? 1 : add);
            add = 1;
            if (++stage == STAGES)
                stage = 0, parity ^= part == 0;
        }
        multiply_commit();
    }
    multiply_wait<1>();
}

// A block's last tile: in `kept` the sums of its second part, while those of the first are left to the other warpgroup.
__device__ inline void add_up_last(u32 shared, u32 empty, bool tells, u32 group, int blocks, u32 &stage, u32 &parity,
                                   float (&sums)[PARTS][TILE_N / 2], float (&kept)[TILE_N / 2]) {
    int in_turn = blocks < LAST_BLOCKS ? 0 : LAST_BLOCKS;
    turn_wait((int)group);
    if (in_turn < blocks)
        add_up(shared, empty, tells, 0, blocks - in_turn, stage, parity, sums);
    if (in_turn)
        add_up_in_turn(shared, in_turn < blocks, stage, parity, sums);
    else
        multiply_wait<0>();
    sums_are_there(sums[0]);
    if (SUMMED)
        meet_summers();
    stages_are_left(blocks);
    warpgroup_meets((int)group); // no warp's wgmma reads any more where sums will be
    park(parked_in(shared, stage), threadIdx.x % WARPGROUP, sums[0]);
    both_meet(); // the sums are parked
    multiply_wait<0>();
    sums_are_there(sums[PARTS - 1]);
    memcpy(kept, sums[PARTS - 1], sizeof kept);
}

// A tile in its warpgroup's turn, and the stages told to be free.
__device__ inline void add_up_tile(u32 shared, u32 empty, bool tells, u32 group, int first_part, int blocks, u32 &stage,
                                   u32 &parity, float (&sums)[PARTS][TILE_N / 2]) {
    if (PING_PONG)
        turn_wait((int)group);
    add_up(shared, empty, tells, first_part, blocks, stage, parity, sums);
    if (PING_PONG)
        turn_give(1 - (int)group);
    multiply_wait<0>();
#pragma unroll
    for (int part = 0; part < PARTS; part++)
        sums_are_there(sums[part]);
    if (tells)
        barrier_arrive(empty + (stage ? stage - 1 : STAGES - 1) * 8);
    if (PING_PONG)
        skip_stages(stage, parity, blocks);
}

__device__ inline void consume(const gemmepi__sm90_params &p, u32 shared, u32 rank, u32 first, u32 step) {
    // by a shuffle, for the compiler to see that all of a warp have the same
    u32 group = __shfl_sync(0xffffffffu, threadIdx.x / WARPGROUP - 1, 0), thread = threadIdx.x % WARPGROUP;
    u32 stage = 0, parity = 0, tiles = SPLIT > 1 ? 1 : (p.tiles - first + step - 1) / step; // of this block
    int blocks = end_of_k(p, rank) - begin_of_k(p, rank);
    int first_part = PING_PONG ? 0 : (int)group * PARTS; // of the tile's rows
    bool tells = thread < TELLERS;
    u32 told = told_by(thread, rank), empty = address_in(shared + EMPTY, tells ? told : rank);
    Staging staging = {shared + STAGES * STAGE_BYTES + (threadIdx.x / 32 - 4) * (BUFFERS * STAGED_MATRICES * STAGED_BYTES),
                       BOX_GROUPS == 1 ? threadIdx.x % 32 / 4 : threadIdx.x % 8,
                       0,
                       shared + LOADED + (threadIdx.x / 32 - 4) * (LOADED_BUFFERS * LOADED_MATRICES * STAGED_BYTES),
                       shared + ARRIVED + (threadIdx.x / 32 - 4) * 16,
                       0,
                       0};
    Epilogue_state state;
    if (PING_PONG && group == 1) {
        turn_give(0);
        skip_stages(stage, parity, blocks);
    }
    bool ends = SHARES_LAST && (tiles - 1) % CONSUMERS == group; // with the block's last tile
    constexpr u32 turns = PING_PONG ? CONSUMERS : 1;
    u32 count = PING_PONG ? group : 0;
    Of_columns bias[GROUPS]; // BIAS_FIRST: of the next tile
    if (BIAS_FIRST && count < tiles)
        load_groups(p, tile_of(p, first + count * step, rank), 0, bias);
    for (; count < tiles - ends; count += turns) {
        Tile tile = tile_of(p, first + count * step, rank);
        float sums[PARTS][TILE_N / 2];
        Of_columns columns[ALL_AHEAD ? GROUPS : BOX_GROUPS];
        begin_sums(bias, sums);
        int warp_row = tile.m * TILE_M + first_part * 64 + (int)(thread / 32) * 16;
        Masks masks;
        if (SPLIT == 1) {
            ask_for_inputs(p, staging, tile, warp_row, 0);
            masks = load_masks(p, tile, warp_row);
        }
        if (AHEAD)
            load_groups(p, tile, 0, columns); // before the sums, so that the epilogue need not wait
        add_up_tile(shared, empty, tells, group, first_part, blocks, stage, parity, sums);
        state = begin_epilogue(p.epilogue, tile.item, 0, 0);
        if (SPLIT > 1) {
            cluster_meets(); // all have left their stages
            leave_sums(p, tile, shared, rank, sums[0]);
            if (STORES_ASYNC)
                barrier_wait(shared + RECEIVED, 0);
            else
                cluster_barrier();
            finish_left(p, state, staging, tile, shared, rank);
        } else {
#pragma unroll ROLLS ? 1 : GROUPS
            for (int i = 0; i < GROUPS; i += BOX_GROUPS) {
                Of_columns now[BOX_GROUPS];
                if (!AHEAD && !BIAS_FIRST)
                    load_groups(p, tile, i, columns);
                if (BIAS_FIRST && i + BOX_GROUPS == GROUPS && count + turns < tiles) // most of the sums' registers are free
                    load_groups(p, tile_of(p, first + (count + turns) * step, rank), 0, bias);
                memcpy(now, columns + (ALL_AHEAD ? i : 0), sizeof now);
                if (AHEAD && !ALL_AHEAD && i + BOX_GROUPS < GROUPS)
                    load_groups(p, tile, i + BOX_GROUPS, columns);
                Box_sums column_sums;
#pragma unroll
                for (int part = 0; part < PARTS; part++) {
                    Box box = box_of(sums[part], ROLLS ? 0 : i);
                    Next_box next = {part + 1 < PARTS || i + BOX_GROUPS < GROUPS,
                                     warp_row + (part + 1 < PARTS ? part + 1 : 0) * 64, part + 1 < PARTS ? i : i + BOX_GROUPS};
                    finish_box(p, state, staging, tile, warp_row + part * 64, part, i, next, now, masks, box, column_sums);
                    if (ROLLS)
                        drop_first_box(sums[part]);
                }
                if (HAS_BGRAD)
                    leave_column_sums(shared, group, thread, i, column_sums);
            }
        }
        end_epilogue(p.epilogue, state);
    }
    if (SHARES_LAST) {
        Tile tile = tile_of(p, first + (tiles - 1) * step, rank);
        int part = ends, first_row = tile.m * TILE_M + (int)(thread / 32) * 16, row = first_row + part * 64;
        float kept[TILE_N / 2];
        Of_columns columns[BOX_GROUPS];
        ask_for_inputs(p, staging, tile, row, 0);
        Masks masks = load_masks(p, tile, first_row);
        if (AHEAD)
            load_groups(p, tile, 0, columns);
        if (ends) {
            float sums[PARTS][TILE_N / 2];
            begin_sums(bias, sums);
            add_up_last(shared, empty, tells, group, blocks, stage, parity, sums, kept);
        } else {
            stages_are_left(blocks);
            both_meet(); // the sums are parked
            read_parked(parked_in(shared, stage), thread, kept);
        }
        if (HAS_BGRAD)
            warpgroup_meets((int)group); // before sums are left where stages, or the other part's sums, were read
        state = begin_epilogue(p.epilogue, tile.item, 0, 0);
#pragma unroll 1
        for (int i = 0; i < GROUPS; i += BOX_GROUPS) {
            Of_columns now[BOX_GROUPS];
            Box_sums column_sums;
            Box box = box_of(kept, 0);
            if (!AHEAD && !BIAS_FIRST)
                load_groups(p, tile, i, columns);
            memcpy(now, columns, sizeof now);
            if (AHEAD && i + BOX_GROUPS < GROUPS)
                load_groups(p, tile, i + BOX_GROUPS, columns);
            Next_box next = {i + BOX_GROUPS < GROUPS, row, i + BOX_GROUPS};
            finish_box(p, state, staging, tile, row, part, i, next, now, masks, box, column_sums);
            if (HAS_BGRAD)
                left_in(shared, stage).leave(part, thread, i, column_sums);
            drop_first_box(kept);
        }
        if (HAS_BGRAD)
            both_meet(); // all sums are left
        if (HAS_BGRAD)
            store_left_sums(p, tile, left_in(shared, stage));
        end_epilogue(p.epilogue, state);
    }
    if (STAGED) // shared memory stays until all of it is read
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// The first tile of this block's cluster: read where it is needed, as to keep it takes a register of the loading warp's few.
__device__ inline u32 first_tile() {
    u32 block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block / CLUSTER;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    gemmepi_fused(GEMMEPI_PARAMS gemmepi__sm90_params p) {
    extern __shared__ __align__(1024) u8 memory[]; // as TMA's swizzled boxes lie
    u32 shared = shared_address(memory), rank = CLUSTER > 1 ? cluster_rank() : 0;
    u32 step = gridDim.x / CLUSTER;
    if (shared % 1024)
        __trap();
    if (threadIdx.x == 0) {
        prefetch_map(p.a);
        prefetch_map(p.b);
        if (TAILS && A_ROWS)
            prefetch_map(p.a_tail);
        if (TAILS && B_ROWS)
            prefetch_map(p.b_tail);
        if (LOADS_AUX)
            prefetch_map(p.aux);
        for (int i = 0; i < STAGES; i++) {
            barrier_init(shared + FULL + i * 8, 1);
            barrier_init(shared + EMPTY + i * 8, ((PING_PONG ? 1 : CONSUMERS) + SUMMERS) * TELLERS);
        }
        for (int i = 0; i < (LOADED_MATRICES ? 2 * WARPS : 0); i++)
            barrier_init(shared + ARRIVED + i * 8, 1);
        if (SPLIT > 1)
            barrier_init(shared + RECEIVED, 1);
        for (int i = 0; i < (HAS_BGRAD ? CONSUMERS : 0); i++) {
            barrier_init(shared + LEFT + i * 8, 4);
            barrier_init(shared + TAKEN + i * 8, 1);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (CLUSTER > 1)
        cluster_meets();
    if (threadIdx.x >= 32) // of the first warp one thread, in produce()
        after_launches_before();
    if (threadIdx.x < WARPGROUP) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(PRODUCER_REGISTERS));
        if (threadIdx.x < 32 && is_elected())
            produce(p, shared, rank, first_tile(), step);
        if (SUMMED && threadIdx.x >= 32)
            add_operand(p, shared, rank, first_tile(), step);
        if (HAS_BGRAD && threadIdx.x >= 32 && threadIdx.x < 32 + CONSUMERS * 32)
            add_column_sums(p, shared, rank, first_tile(), step);
        __syncwarp();
        if (SPLIT > 1 && SUMMED)
            cluster_barrier();
        else if (SPLIT > 1) // with all consumers
            cluster_meets();
        if (SPLIT > 1 && !STORES_ASYNC)
            cluster_barrier();
        if (SUMMED && SPLIT > 1 && rank == 0 && threadIdx.x >= 32)
            store_totals(p, shared, tile_of(p, first_tile(), rank), (int)threadIdx.x / 32 - 1);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(CONSUMER_REGISTERS));
        consume(p, shared, rank, first_tile(), step);
    }
    // no block goes while another may arrive at its barriers, write its stages or read its totals
    if (CLUSTER > 1 && (SPLIT == 1 || SUMMED))
        cluster_meets();
}
