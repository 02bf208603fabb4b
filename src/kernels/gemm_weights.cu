// Few rows in BF16 or F16 and weights in I8 by mma.sync, from Ampere on: weights.cuh has what stands around it. cp.async brings the
// stages. A lane has 16 elements side by side of weights and of A's rows, in whatever order mma.sync takes them, for both have the same.
#define GEMMEPI_WGMMA 0
#include "weights.cuh"

constexpr int UNIT = 16; // bytes of a copy, and of what a lane loads

struct alignas(16) Four {
    u32 at[4];
};

// >>copies

// Zeros follow so many bytes. L2 fetches whole lines: of narrow stages the next one's part, too.
__device__ inline void copy_unit(u32 to, const void *from, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
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
    const gpi__kernel_matrix &x;
    const T *from, *start;
    int exist; // lines of either half

    __device__ inline Copies(const gpi__kernel_matrix &matrix, long long item, long long first, long long extent, long long first_k)
        : x(matrix) {
        int line = (int)threadIdx.x / UNITS, unit = (int)threadIdx.x % UNITS;
        exist = extent - first < OF_HALF ? (int)(extent - first) : OF_HALF;
        start = (const T *)x.data + item * x.stride + first * x.ld + first_k;
        from = start + line * x.ld + unit * ELEMENTS;
    }
    // To L2 what of these lines lies in the first stages. A thread has every so many pieces of 128 bytes.
    __device__ inline void prefetch(int k_left, long long extent) const {
        constexpr int PIECE = 128 / (int)sizeof(T), PIECES = (STAGES - 1) * STEP / PIECE;
        for (int i = (int)threadIdx.x; i < Lines * PIECES; i += THREADS) {
            int line = i / PIECES, k = i % PIECES * PIECE, half = line / OF_HALF;
            const T *at = start + (line % OF_HALF + half * extent) * x.ld + k;
            if (line % OF_HALF < exist && k < k_left)
                asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
        }
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

// Half of a slice at a time: 32 of k. All of its products with the same 16 of k lie between two of one sum.
__device__ inline void add_products(int stage, Octet (&sums)[OCTETS]) {
    int warp_n = (int)threadIdx.x / 32 % WARPS_N, warp_k = (int)threadIdx.x / 32 / WARPS_N;
    int eighth = (int)threadIdx.x % 32 / 4, quarter = (int)threadIdx.x % 4;
    const u8 *a = shared + stage + eighth * A_LINE, *b = shared + stage + A_BYTES + (warp_n * WARP_N + eighth) * B_LINE;
    Four bytes[SIXTEENS * 2];
    a += place_of_unit<2>(eighth, warp_k * (SLICE * 2 / UNIT) + 2 * quarter) * UNIT;
    b += place_of_unit<1>(eighth, warp_k * (SLICE / UNIT) + quarter) * UNIT;
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
        for (int i = 0; i < SIXTEENS * 8; i++) {
            int j = i / 2 % 2, second = i / 4 % 2, of = i / 8;
            weights[of][j][i % 2 + second * 2] =
                widen_two(In(), bytes[of * 2 + i % 2].at[half * 2 + j], second ? 0x4342 : 0x4140);
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

__device__ inline void multiply_slice(int stage, Octet (&totals)[OCTETS]) {
    if constexpr (VARIES) {
        Column_scales scales;
        Octet sums[OCTETS] = {};
        read_scales(stage, scales);
        add_products(stage, sums);
        add_scaled(sums, scales, totals);
    } else {
        add_products(stage, totals);
    }
}

// >>the kernel

// Blocks: items * column tiles * row tiles * parts, these side by side.
extern "C" __global__ void __launch_bounds__(THREADS, 1) CLUSTER
    gemmepi_weights(GEMMEPI_PARAMS gpi__plain_params params) {
    const gpi__epilogue_params &p = params.epilogue;
    const Place_of_tile at(p);
    int k = (int)params.k, part_k = ((k + STEP - 1) / STEP + PARTS - 1) / PARTS * STEP, first_k = (int)rank_in_cluster() * part_k;

    Copies<In, TILE_M, 1> a(params.a, at.item, at.row(), p.m, first_k);
    Copies<I8, TILE_N, HALVES_IN> b(params.b, at.item, at.column(), p.n, first_k);
    if (params.ahead)
        b.prefetch(k - first_k < part_k ? k - first_k : part_k, p.n); // before they are written, too: L2 is where that is seen
    after_launches_before();
    Scale_copies scales(p, at.item, at.column(), first_k, k, (int)threadIdx.x);
    u32 stages = (u32)__cvta_generic_to_shared(shared);
    int k_left = k - first_k < part_k ? k - first_k : part_k; // of this block's part, from the next stage to be fetched on
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++, k_left -= STEP) {
        if (k_left > 0) {
            b.fetch(stages + stage * STAGE_BYTES + A_BYTES, k_left, p.n);
            a.fetch(stages + stage * STAGE_BYTES, k_left, p.m);
            scales.fetch(stages + stage * STAGE_BYTES);
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
            scales.fetch(next);
        }
        copies_commit();
        multiply_slice(now, totals);
        now = now < (STAGES - 1) * STAGE_BYTES ? now + STAGE_BYTES : 0;
    }
    copies_wait<0>();
    add_up_and_finish(params, at, totals);
}
