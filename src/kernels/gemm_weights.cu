// Product and epilogue of few rows in BF16 or F16 and weights in I8, from Ampere on: D = epilogue(alpha A op(B) + beta C).
//
// Weights are read as bytes and become 16 bits in registers, without loss. A block has a tile; its warps divide the tile's columns and
// k among them, and with PARTS the blocks of a cluster divide k, too. cp.async brings slices of k to a ring of stages in shared
// memory. A warp multiplies with mma.sync, to which weights are the left operand and A's rows the right one: a lane has 16 elements
// side by side of each, in whatever order mma.sync takes them, for both have the same. Warps, then blocks add up what they have,
// always in the same order, and a thread finishes runs of eight.
//
// Scales that change along k are multiplied in every 64 of k. What lies beyond m, n and k is zero, and only what exists is stored.
#include "epilogue.cuh"

#ifndef GEMMEPI_WARPS_N
#define GEMMEPI_INPUT   BF16 // of A: that or F16
#define GEMMEPI_TILE_M  8
#define GEMMEPI_TILE_N  32 // of both halves together
#define GEMMEPI_WARPS_N 1  // that divide the tile's columns; the others divide k
#define GEMMEPI_PARTS   1  // blocks that divide k
#define GEMMEPI_STAGES  8
#endif

typedef GEMMEPI_INPUT In;
constexpr int TILE_M = GEMMEPI_TILE_M, TILE_N = GEMMEPI_TILE_N, TILE_COLUMNS = TILE_N / HALVES_IN; // of either half
constexpr int WARPS = 8, THREADS = 32 * WARPS, WARPS_N = GEMMEPI_WARPS_N, WARPS_K = WARPS / WARPS_N;
constexpr int PARTS = GEMMEPI_PARTS, STAGES = GEMMEPI_STAGES;
constexpr int WARP_N = TILE_N / WARPS_N, SIXTEENS = WARP_N / 16, OCTETS = TILE_M / 8; // mma's rows and columns
constexpr int SLICE = 64, STEP = WARPS_K * SLICE;                                     // of k: a warp's, a stage's
constexpr int UNIT = 16;                                                              // bytes of a copy
constexpr int A_LINE = STEP * 2, B_LINE = STEP, A_BYTES = TILE_M * A_LINE, STAGE_BYTES = A_BYTES + TILE_N * B_LINE;
constexpr int RESULT_LINE = TILE_N + 4; // F32: so that lanes meet no bank twice
constexpr int PART_COLUMNS = TILE_COLUMNS / PARTS, WIDTH = PART_COLUMNS / RUN, HEIGHT = THREADS / WIDTH; // of what a block finishes
constexpr bool VARIES = GEMMEPI_SCALE_B == SCALE_VECTOR_128 || GEMMEPI_SCALE_B == SCALE_BLOCK_128;       // along k
static_assert(PART_COLUMNS % RUN == 0 && WARP_N % 16 == 0 && SCALE_STEPS % SLICE == 0, "runs, fragments and scales are whole");
static_assert(WARPS_K * TILE_M * RESULT_LINE * 4 <= STAGES * STAGE_BYTES, "sums lie where the stages were");

struct alignas(16) Four {
    u32 at[4];
};

// >>copies

// Zeros follow so many bytes. L2 fetches whole lines: of narrow stages the next one's part, too.
__device__ inline void copy_unit(u32 to, const void *from, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ inline void copies_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int Left> __device__ inline void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

// Where a line's unit is: turned so that the lanes that load at a time, of two lines, meet no bank twice.
template <int Size> __device__ inline int place_of_unit(int line, int unit) {
    return unit ^ (Size == 2 ? line % 2 : STEP < 128 ? 0 : line % 2 * 4);
}

// An operand's lines along k, of elements of so many bytes; a thread copies its unit of every so many lines. Of weights the second
// half is so many elements behind the first.
template <class T, int Lines, int Halves> struct Copies {
    static constexpr int UNITS = STEP * (int)sizeof(T) / UNIT, LINES = THREADS / UNITS, COUNT = Lines < LINES ? 1 : Lines / LINES;
    static constexpr int OF_HALF = Lines / Halves, ELEMENTS = UNIT / (int)sizeof(T);
    static_assert(OF_HALF % LINES == 0 || (Halves == 1 && Lines < LINES), "all threads copy as much of either half, or some one unit");
    static_assert(LINES % 2 == 0, "a thread's lines have their units in one place");
    const gemmepi__kernel_matrix &x;
    const T *from;
    int exist; // lines of either half

    __device__ inline Copies(const gemmepi__kernel_matrix &matrix, long long item, long long first, long long extent, long long first_k)
        : x(matrix) {
        int line = (int)threadIdx.x / UNITS, unit = (int)threadIdx.x % UNITS;
        exist = extent - first < OF_HALF ? (int)(extent - first) : OF_HALF;
        from = (const T *)x.data + item * x.stride + (first + line) * x.ld + first_k + unit * ELEMENTS;
    }
    // The next stage's, of which so much of k exists. extent: as before
    __device__ inline void fetch(u32 stage, int k_left, long long extent) {
        int line = (int)threadIdx.x / UNITS, unit = (int)threadIdx.x % UNITS;
        int valid = (k_left - unit * ELEMENTS) * (int)sizeof(T);
        u32 to = stage + (line * UNITS + place_of_unit<sizeof(T)>(line, unit)) * UNIT;
        valid = valid < 0 ? 0 : valid < UNIT ? valid : UNIT;
        const T *at = from;
        if (Lines < LINES && line >= Lines)
            return;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            copy_unit(to + i * (LINES * UNITS * UNIT), at, i * LINES % OF_HALF + line < exist ? valid : 0);
            at += (Halves > 1 && (i + 1) * LINES == OF_HALF ? extent - OF_HALF + LINES : LINES) * x.ld;
        }
        from += STEP;
    }
};

// >>multiplication

// Four of I8, of a word, as two words of 16 bits. BF16: 128 + the lower seven bits, less 128 or, where the eighth is set, 256; F16:
// 1152 + x, less 1152. All of these are exact.
__device__ inline void widen(BF16, u32 word, u32 &first, u32 &second) {
    constexpr u32 one = 0x3f803f80;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 two = __byte_perm(word, 0x43434343, i ? 0x4342 : 0x4140), wide;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(wide) : "r"(two & 0xff7fff7f), "r"(one), "r"((two & 0xff80ff80) | 0x80008000));
        (i ? second : first) = wide;
    }
}
__device__ inline void widen(F16, u32 word, u32 &first, u32 &second) {
    word ^= 0x80808080;
    asm("sub.f16x2 %0, %1, %2;" : "=r"(first) : "r"(__byte_perm(word, 0x64646464, 0x4140)), "r"(0x64806480));
    asm("sub.f16x2 %0, %1, %2;" : "=r"(second) : "r"(__byte_perm(word, 0x64646464, 0x4342)), "r"(0x64806480));
}

__device__ inline void multiply_16(BF16, float (&sums)[4], const u32 (&weights)[4], u32 first, u32 second) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(weights[0]), "r"(weights[1]), "r"(weights[2]), "r"(weights[3]), "r"(first), "r"(second));
}
__device__ inline void multiply_16(F16, float (&sums)[4], const u32 (&weights)[4], u32 first, u32 second) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(weights[0]), "r"(weights[1]), "r"(weights[2]), "r"(weights[3]), "r"(first), "r"(second));
}

// >>scales along k

// Of a lane's columns; those of the next two slices are on their way while one is multiplied.
struct Slice_scales {
    const float *scale;
    int place[2 * SIXTEENS];
    float now[2 * SIXTEENS], next[2 * SIXTEENS], last[2 * SIXTEENS];
    int k, k_end; // k: the first of the slice that is asked for last

    __device__ inline Slice_scales(const gemmepi__epilogue_params &p, long long item, long long first, int column, int first_k, int end) {
        if (!VARIES)
            return;
        scale = p.scale_b.data + item * p.scale_b.stride;
        k = first_k, k_end = end;
#pragma unroll
        for (int i = 0; i < 2 * SIXTEENS; i++) {
            int own = column + 8 * i;
            long long outer = first + own % TILE_COLUMNS;
            outer = (outer < p.n ? outer : p.n - 1) + own / TILE_COLUMNS * p.n; // columns past the end take the last one's
            place[i] = (int)(scale_line<GEMMEPI_SCALE_B>(scale, outer, HALVES_IN * p.n, k_end).at - scale);
        }
        load(p, next);
        k += STEP;
        load(p, last);
    }
    __device__ inline void load(const gemmepi__epilogue_params &p, float (&to)[2 * SIXTEENS]) const {
        const float *from = scale + k / SCALE_STEPS * scale_line<GEMMEPI_SCALE_B>(scale, 0, HALVES_IN * p.n, 0).step;
#pragma unroll
        for (int i = 0; i < 2 * SIXTEENS; i++)
            to[i] = k < k_end ? from[place[i]] : 0;
    }
    __device__ inline void go_on(const gemmepi__epilogue_params &p) {
        memcpy(now, next, sizeof now);
        memcpy(next, last, sizeof next);
        k += STEP;
        load(p, last);
    }
};

// >>multiplying slices

typedef float Octet[SIXTEENS][4]; // of a lane: columns `eighth` and eight further of each 16, rows 2 quarter and the next

// A warp's slice of a stage, half of it at a time: 32 of k. All of its products with the same 16 of k lie between two of one sum.
__device__ inline void add_products(const u8 *a, const u8 *b, int eighth, Octet (&sums)[OCTETS]) {
    Four bytes[SIXTEENS * 2];
#pragma unroll
    for (int i = 0; i < SIXTEENS * 2; i++)
        bytes[i] = *reinterpret_cast<const Four *>(b + i * 8 * B_LINE);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u32 weights[SIXTEENS][2][4];
        Four rows[OCTETS];
#pragma unroll
        for (int octet = 0; octet < OCTETS; octet++) // the second unit is the first one's neighbour
            rows[octet] = *reinterpret_cast<const Four *>(a + octet * 8 * A_LINE + (half ? eighth % 2 ? -UNIT : UNIT : 0));
#pragma unroll
        for (int i = 0; i < SIXTEENS * 4; i++) {
            int j = i / 2 % 2;
            widen(In(), bytes[i / 4 * 2 + i % 2].at[half * 2 + j], weights[i / 4][j][i % 2], weights[i / 4][j][i % 2 + 2]);
        }
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int octet = 0; octet < OCTETS; octet++)
#pragma unroll
                for (int i = 0; i < SIXTEENS; i++)
                    multiply_16(In(), sums[octet][i], weights[i][j], rows[octet].at[j * 2], rows[octet].at[j * 2 + 1]);
    }
}

__device__ inline void multiply_slice(const u8 *stage, const Slice_scales &scales, Octet (&totals)[OCTETS]) {
    int warp_n = (int)threadIdx.x / 32 % WARPS_N, warp_k = (int)threadIdx.x / 32 / WARPS_N;
    int eighth = (int)threadIdx.x % 32 / 4, quarter = (int)threadIdx.x % 4;
    const u8 *a = stage + eighth * A_LINE, *b = stage + A_BYTES + (warp_n * WARP_N + eighth) * B_LINE;
    a += place_of_unit<2>(eighth, warp_k * (SLICE * 2 / UNIT) + 2 * quarter) * UNIT;
    b += place_of_unit<1>(eighth, warp_k * (SLICE / UNIT) + quarter) * UNIT;
    if constexpr (VARIES) {
        Octet sums[OCTETS] = {};
        add_products(a, b, eighth, sums);
#pragma unroll
        for (int octet = 0; octet < OCTETS; octet++)
#pragma unroll
            for (int i = 0; i < SIXTEENS * 4; i++)
                totals[octet][i / 4][i % 4] = fmaf(sums[octet][i / 4][i % 4], scales.now[i / 2], totals[octet][i / 4][i % 4]);
    } else {
        add_products(a, b, eighth, totals);
    }
}

// >>adding up, in shared memory: [warp of k][row][column of both halves]

__device__ inline void store_sums(float *results, const Octet (&sums)[OCTETS]) {
    int warp_n = (int)threadIdx.x / 32 % WARPS_N, warp_k = (int)threadIdx.x / 32 / WARPS_N;
    int eighth = (int)threadIdx.x % 32 / 4, quarter = (int)threadIdx.x % 4;
    results += (warp_k * TILE_M + 2 * quarter) * RESULT_LINE + warp_n * WARP_N + eighth;
#pragma unroll
    for (int octet = 0; octet < OCTETS; octet++)
#pragma unroll
        for (int i = 0; i < SIXTEENS * 4; i++)
            results[(octet * 8 + i % 2) * RESULT_LINE + i / 2 * 8] = sums[octet][i / 4][i % 4];
}

struct alignas(16) Four_sums {
    float at[4];
};

__device__ inline void add_warps(float *results) {
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < TILE_M * TILE_N / 4; i += THREADS) {
        float *at = results + i / (TILE_N / 4) * RESULT_LINE + i % (TILE_N / 4) * 4;
        Four_sums sums = *reinterpret_cast<Four_sums *>(at);
#pragma unroll
        for (int warp = 1; warp < WARPS_K; warp++) {
            Four_sums other = *reinterpret_cast<Four_sums *>(at + warp * TILE_M * RESULT_LINE);
#pragma unroll
            for (int j = 0; j < 4; j++)
                sums.at[j] += other.at[j];
        }
        *reinterpret_cast<Four_sums *>(at) = sums;
    }
}

// Releases: what every block of the cluster has written is seen by all behind it.
template <bool Releases> __device__ inline void blocks_meet() {
#if GEMMEPI_PARTS > 1
    if (Releases)
        asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    else
        asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

__device__ inline u32 rank_in_cluster() {
    u32 rank = 0;
#if GEMMEPI_PARTS > 1
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}

// Four sums of the block of that rank.
__device__ inline Four_sums sums_of_part(const float *at, u32 rank) {
    Four_sums sums;
#if GEMMEPI_PARTS > 1
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((u32)__cvta_generic_to_shared(at)), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(sums.at[0]), "=f"(sums.at[1]), "=f"(sums.at[2]), "=f"(sums.at[3])
                 : "r"(there)
                 : "memory");
#else
    sums = *reinterpret_cast<const Four_sums *>(at);
#endif
    return sums;
}

// A run of the result, of both halves of the product.
__device__ inline void take_run(const float *results, int row, int column, Acc (&v)[HALVES][RUN]) {
#pragma unroll
    for (int i = 0; i < HALVES_IN * RUN; i += 4) {
        const float *at = results + row * RESULT_LINE + i / RUN * TILE_COLUMNS + column + i % RUN;
        Four_sums sums = sums_of_part(at, 0);
#pragma unroll
        for (int part = 1; part < PARTS; part++) {
            Four_sums other = sums_of_part(at, part);
#pragma unroll
            for (int j = 0; j < 4; j++)
                sums.at[j] += other.at[j];
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
            v[i / RUN][i % RUN + j] = sums.at[j];
    }
}

// >>the kernel

#if GEMMEPI_PARTS > 1
#define CLUSTER __cluster_dims__(GEMMEPI_PARTS, 1, 1)
#else
#define CLUSTER
#endif

// Which tile this block has, or a part of.
struct Place_of_tile {
    u32 item, row_tile, column_tile;

    __device__ inline Place_of_tile(const gemmepi__epilogue_params &p) {
        u32 tile = blockIdx.x / PARTS, columns = tile / p.row_tiles;
        row_tile = tile - columns * p.row_tiles;
        item = columns / p.column_tiles;
        column_tile = columns - item * p.column_tiles;
    }
    __device__ inline long long row() const {
        return (long long)row_tile * TILE_M;
    }
    __device__ inline long long column() const {
        return (long long)column_tile * TILE_COLUMNS;
    }
};

// The epilogue on this block's columns of the tile.
__device__ inline void finish(const gemmepi__plain_params &params, const Place_of_tile &at, const float *results) {
    const gemmepi__epilogue_params &p = params.epilogue;
    int x = (int)threadIdx.x % WIDTH, y = (int)threadIdx.x / WIDTH, own_column = (int)rank_in_cluster() * PART_COLUMNS + x * RUN;
    int rows = p.m - at.row() < TILE_M ? (int)(p.m - at.row()) : TILE_M;
    long long first = at.column() + own_column;
    int valid = p.n - first < RUN ? (p.n > first ? (int)(p.n - first) : 0) : RUN;
    Epilogue_state state = begin_epilogue(p, params.BESIDE, at.item, first, valid);
    Of_columns of = load_columns(p, at.item, first, valid);
    Acc column_sums[HALVES_OUT][RUN] = {};
#pragma unroll 1
    for (int y_row = y; y_row < rows && valid > 0; y_row += HEIGHT) {
        long long row = at.row() + y_row;
        Acc v[HALVES][RUN] = {};
        Saved saved;
        load_saved(p, state, at.item, row, first, valid, saved);
        take_run(results, y_row, own_column, v);
        epilogue(p, state, of, saved, at.item, row, first, valid, v);
        store_result(p, state, at.item, row, first, valid, v);
        if (HAS_BGRAD)
#pragma unroll
            for (int i = 0; i < HALVES_OUT * RUN; i++)
                column_sums[i / RUN][i % RUN] = sum(column_sums[i / RUN][i % RUN], v[i / RUN][i % RUN]);
    }
    if (PARTS > 1)
        blocks_meet<false>(); // no block ends before the others have read its sums
    if constexpr (HAS_BGRAD)
        store_partials<THREADS>(p, at.item * p.row_tiles + at.row_tile, first, valid, x, y, WIDTH, column_sums);
    end_epilogue(p, state);
}

extern __shared__ u8 shared[];

// Blocks: items * column tiles * row tiles * parts, these side by side.
extern "C" __global__ void __launch_bounds__(THREADS, 1) CLUSTER
    gemmepi_weights(GEMMEPI_PARAMS gemmepi__plain_params params) {
    const gemmepi__epilogue_params &p = params.epilogue;
    const Place_of_tile at(p);
    int warp = (int)threadIdx.x / 32, warp_n = warp % WARPS_N, warp_k = warp / WARPS_N;
    int k = (int)params.k, part_k = ((k + STEP - 1) / STEP + PARTS - 1) / PARTS * STEP, first_k = (int)rank_in_cluster() * part_k;

    after_launches_before();
    Copies<In, TILE_M, 1> a(params.a, at.item, at.row(), p.m, first_k);
    Copies<I8, TILE_N, HALVES_IN> b(params.b, at.item, at.column(), p.n, first_k);
    Slice_scales scales(p, at.item, at.column(), warp_n * WARP_N + (int)threadIdx.x % 32 / 4, first_k + warp_k * SLICE, k);
    u32 stages = (u32)__cvta_generic_to_shared(shared);
    int k_left = k - first_k < part_k ? k - first_k : part_k; // of this block's part, from the next stage to be fetched on
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++, k_left -= STEP) {
        if (k_left > 0) {
            b.fetch(stages + stage * STAGE_BYTES + A_BYTES, k_left, p.n);
            a.fetch(stages + stage * STAGE_BYTES, k_left, p.m);
        }
        copies_commit();
    }
    Octet totals[OCTETS] = {};
    int now = 0; // the stage's place
#pragma unroll 1
    for (; k_left > -(STAGES - 1) * STEP; k_left -= STEP) {
        copies_wait<STAGES - 2>();
        __syncthreads(); // this stage has come for all, and all are through with the one before it
        if (k_left > 0) {
            u32 next = stages + (now ? now - STAGE_BYTES : (STAGES - 1) * STAGE_BYTES);
            b.fetch(next + A_BYTES, k_left, p.n);
            a.fetch(next, k_left, p.m);
        }
        copies_commit();
        if (VARIES)
            scales.go_on(p);
        multiply_slice(shared + now, scales, totals);
        now = now < (STAGES - 1) * STAGE_BYTES ? now + STAGE_BYTES : 0;
    }
    copies_wait<0>();
    __syncthreads();
    float *results = reinterpret_cast<float *>(shared);
    store_sums(results, totals);
    __syncthreads();
    add_warps(results);
    blocks_meet<true>();
    finish(params, at, results);
}
