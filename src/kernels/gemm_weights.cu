// Few rows in BF16 or F16 and weights of few bits by mma.sync, from Ampere on: weights.cuh has what stands around it. cp.async brings the
// stages. A lane has 16 elements side by side of weights and of A's rows, of 4 bits 32, in whatever order mma.sync takes them, for both
// have the same.
#define GEMMEPI_WGMMA 0
#include "mma.cuh"
#include "weights.cuh"

constexpr int UNIT = 16; // bytes of a copy, and of what a lane loads

struct alignas(16) Four {
    u32 at[4];
};

// >>copies

// Zeros follow so many bytes, if it is not whole. L2 fetches whole lines: of narrow stages the next one's part, too.
template <bool Whole> __device__ inline void copy_unit(u32 to, const void *from, int bytes) {
    if (Whole)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
// Where a line's unit is: turned so that the lanes that load at a time, of two lines, meet no bank twice.
constexpr int OCTETS_OF_K = SLICE / 32; // that a lane has side by side
template <int Bits> __device__ inline int place_of_unit(int line, int unit) {
    if (Bits != 16)
        return unit ^ (B_LINE < 128 ? 0 : line % 2 * 4);
    return unit ^ (OCTETS_OF_K == 2 ? line % 2 : unit / 8 % 2 ^ line % 2 * 2);
}

// An operand's lines along k, of elements of so many bits; a thread copies its unit of every so many lines. Of weights the second
// half is so many elements behind the first.
template <int Bits, int Lines, int Halves> struct Copies {
    static constexpr int UNITS = STEP * Bits / 8 / UNIT, LINES = THREADS / UNITS, COUNT = Lines < LINES ? 1 : Lines / LINES;
    static constexpr int OF_HALF = Lines / Halves, ELEMENTS = UNIT * 8 / Bits;
    static_assert(OF_HALF % LINES == 0 || (Halves == 1 && Lines < LINES), "all threads copy as much of either half, or some one unit");
    static_assert(LINES % 2 == 0, "a thread's lines have their units in one place");
    const gpi__kernel_matrix &x;
    const u8 *from, *start;
    int exist; // lines of either half

    static __device__ inline long long bytes(long long elements) {
        return Bits < 8 ? elements / (8 / (Bits < 8 ? Bits : 8)) : elements * (Bits / 8);
    }
    __device__ inline Copies(const gpi__kernel_matrix &matrix, long long item, long long first, long long extent, long long first_k)
        : x(matrix) {
        int line = (int)threadIdx.x / UNITS, unit = (int)threadIdx.x % UNITS;
        exist = extent - first < OF_HALF ? (int)(extent - first) : OF_HALF;
        start = (const u8 *)x.data + bytes(item * x.stride + first * x.ld + first_k);
        from = start + bytes(line * x.ld + unit * ELEMENTS);
    }
    // To L2 what of these lines lies in the first stages. A thread has every so many pieces of 128 bytes.
    __device__ inline void prefetch(int k_left, long long extent) const {
        constexpr int PIECE = 128 * 8 / Bits, PIECES = (STAGES - 1) * STEP / PIECE;
        for (int i = (int)threadIdx.x; i < Lines * PIECES; i += THREADS) {
            int line = i / PIECES, k = i % PIECES * PIECE, half = line / OF_HALF;
            const u8 *at = start + bytes((line % OF_HALF + half * extent) * x.ld + k);
            if (line % OF_HALF < exist && k < k_left)
                asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
        }
    }
    // The next stage's, of which so much of k exists; of lines that do not exist, anything: no result has both. extent: as before
    __device__ inline void fetch(u32 stage, int k_left, long long extent) {
        int line = (int)threadIdx.x / UNITS, unit = (int)threadIdx.x % UNITS;
        u32 to = stage + (line * UNITS + place_of_unit<Bits>(line, unit)) * UNIT;
        if (Lines < LINES && line >= Lines)
            return;
        if (k_left >= STEP)
            copy_lines<true>(to, line, UNIT, extent);
        else
            copy_lines<false>(to, line, (k_left - unit * ELEMENTS) * Bits / 8, extent);
        from += STEP * Bits / 8;
    }
    template <bool Whole> __device__ inline void copy_lines(u32 to, int line, int valid, long long extent) const {
        const u8 *at = from;
        valid = valid < 0 ? 0 : valid < UNIT ? valid : UNIT;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            if (i * LINES % OF_HALF + line < exist)
                copy_unit<Whole>(to + i * (LINES * UNITS * UNIT), at, valid);
            at += bytes((Halves > 1 && (i + 1) * LINES == OF_HALF ? extent - OF_HALF + LINES : LINES) * x.ld);
        }
    }
};

// >>multiplication

// Of eight of a lane's k, the first of its bytes, of which so many are left: what is multiplied. All of its products with the same 16 of k lie between two of one sum.
template <class Of>
__device__ inline void add_octet(const Four (&bytes)[SIXTEENS * 2], const Four (&rows)[OCTETS], const Of (&of)[2 * SIXTEENS], int left,
                                 Octet (&sums)[OCTETS]) {
    u32 weights[SIXTEENS][2][4];
#pragma unroll
    for (int i = 0; i < SIXTEENS * 8; i++) {
        int j = i / 2 % 2, second = i / 4 % 2, sixteen = i / 8, line = sixteen * 2 + i % 2, pair = j * 2 + second;
        weights[sixteen][j][i % 2 + second * 2] =
            make_two(In(), bytes[line].at[pair / PAIRS_OF_WORD], pair % PAIRS_OF_WORD, of[line]);
    }
    if (MADE && left < 8) {
#pragma unroll
        for (int i = 0; i < SIXTEENS * 8; i++)
            weights[i / 8][i / 4 % 2][i % 4] = cut_two(weights[i / 8][i / 4 % 2][i % 4], left - i / 4 % 2 * 4 - i / 2 % 2 * 2);
    }
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
        for (int octet = 0; octet < OCTETS; octet++)
#pragma unroll
            for (int i = 0; i < SIXTEENS; i++)
                multiply_16(In(), sums[octet][i], weights[i][j], rows[octet].at[j * 2], rows[octet].at[j * 2 + 1]);
}

// Some of a slice, eight of a lane's k at a time, after which the next ones are the first of its bytes. What is computed in F32 where
// threads have few registers, or beside what is not, goes in a loop. a: its line of rows, own_k: where the lane's k begins, left: of k, from
// there on.
template <class Of>
__device__ inline void add_octets(Four (&bytes)[SIXTEENS * 2], const u8 *a, int own_k, int first, int count, const Of (&of)[2 * SIXTEENS],
                                  int left, Octet (&sums)[OCTETS]) {
    constexpr int WORDS = BITS / 4;
    int eighth = (int)threadIdx.x % 32 / 4;
#pragma unroll((BY_FORM || BLOCKS > 1) && MADE && SAME<Of, Of_group> ? 1 : OCTETS_OF_K)
    for (int i = first; i < first + count; i++) {
        Four rows[OCTETS];
        const u8 *unit = a + place_of_unit<16>(eighth, own_k / 8 + i) * UNIT;
#pragma unroll
        for (int octet = 0; octet < OCTETS; octet++)
            rows[octet] = *reinterpret_cast<const Four *>(unit + octet * 8 * A_LINE);
        add_octet(bytes, rows, of, left - i * 8, sums);
#pragma unroll
        for (int j = 0; j < SIXTEENS * 2; j++) {
            Four now = bytes[j];
#pragma unroll
            for (int word = 0; word < 4; word++)
                bytes[j].at[word] = now.at[(word + WORDS) % 4];
        }
    }
}

// k_end: where k ends
__device__ inline void add_products(const Stage &stage, int k_end, const Held_for_made &held, Octet (&sums)[OCTETS]) {
    constexpr int AT_ONCE = MADE_GROUP == 16 ? 2 : OCTETS_OF_K; // of one group
    int warp_n = (int)threadIdx.x / 32 % WARPS_N, warp_k = (int)threadIdx.x / 32 / WARPS_N;
    int eighth = (int)threadIdx.x % 32 / 4, quarter = (int)threadIdx.x % 4, own_k = warp_k * SLICE + quarter * (8 * OCTETS_OF_K);
    const u8 *a = shared + stage.at + eighth * A_LINE, *b = shared + stage.at + A_BYTES + (warp_n * WARP_N + eighth) * B_LINE;
    Four bytes[SIXTEENS * 2];
    b += place_of_unit<BITS>(eighth, own_k * BITS / 8 / UNIT) * UNIT;
#pragma unroll
    for (int i = 0; i < SIXTEENS * 2; i++)
        bytes[i] = *reinterpret_cast<const Four *>(b + i * 8 * B_LINE);
#pragma unroll 1
    for (int first = 0; first < OCTETS_OF_K; first += AT_ONCE) {
        Of_columns_made of;
        if (MADE && read_columns(stage, own_k + first * 8, held, of) && stage.k + STEP <= k_end) {
            Pairs_of_columns pairs;
            in_pairs_of_columns(of, pairs);
            add_octets(bytes, a, own_k, first, AT_ONCE, pairs, STEP, sums);
        } else {
            add_octets(bytes, a, own_k, first, AT_ONCE, of, k_end - stage.k - own_k, sums);
        }
    }
}

__device__ inline void multiply_slice(const Stage &stage, int k_end, const Held_for_made &held, Octet (&totals)[OCTETS]) {
    if constexpr (VARIES) {
        Column_scales scales;
        Octet sums[OCTETS] = {};
        read_scales(stage.at, scales);
        add_products(stage, k_end, held, sums);
        add_scaled(sums, scales, totals);
    } else {
        add_products(stage, k_end, held, totals);
    }
}

// >>the kernel

#if GEMMEPI_MADE
typedef gpi__weights_params Params;
#define PLAIN params.plain
#define MADE_PLACES params.made
#else
typedef gpi__plain_params Params;
#define PLAIN params
#define MADE_PLACES nullptr
#endif

// Blocks: items * column tiles * row tiles * parts, these side by side.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) CLUSTER
    gemmepi_weights(GEMMEPI_PARAMS Params params) {
    const gpi__epilogue_params &p = PLAIN.epilogue;
    const Place_of_tile at(p);
    int k = (int)PLAIN.k, part_k = ((k + STEP - 1) / STEP + PARTS - 1) / PARTS * STEP, first_k = (int)rank_in_cluster() * part_k;

    Copies<16, TILE_M, 1> a(PLAIN.a, at.item, at.row(), p.m, first_k);
    Copies<BITS, TILE_N, HALVES_IN> b(PLAIN.b, at.item, at.column(), p.n, first_k);
    if (PLAIN.ahead)
        b.prefetch(k - first_k < part_k ? k - first_k : part_k, p.n); // before they are written, too: L2 is where that is seen
    after_launches_before();
    Scale_copies scales(p, at.item, at.column(), first_k, k, (int)threadIdx.x);
    const Place_of_operands operands = {at.item, at.column(), p.n, k};
    const Held_for_made held = hold_operands_of_made(MADE_PLACES, at.item);
    u32 stages = (u32)__cvta_generic_to_shared(shared);
    int k_left = k - first_k < part_k ? k - first_k : part_k, k_end = first_k + k_left; // of this block's part: left to be fetched
    auto fetch = [&](u32 stage) {
        b.fetch(stage + A_BYTES, k_left, p.n);
        a.fetch(stage, k_left, p.m);
        scales.fetch(stage);
        copy_operands<THREADS>(MADE_PLACES, operands, stage, k_end - k_left, (int)threadIdx.x);
    };
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++, k_left -= STEP) {
        if (k_left > 0)
            fetch(stages + stage * STAGE_BYTES);
        copies_commit();
    }
    Octet totals[OCTETS] = {};
    int now = 0; // the stage's place
#pragma unroll 1
    for (; k_left > -(STAGES - 1) * STEP; k_left -= STEP) {
        copies_wait<STAGES - 2>();
        __syncthreads(); // this stage has come for all, and all are through with the one before it
        if (k_left > 0)
            fetch(stages + (now ? now - STAGE_BYTES : (STAGES - 1) * STAGE_BYTES));
        copies_commit();
        multiply_slice({now, k_end - k_left - (STAGES - 1) * STEP}, k, held, totals);
        now = now < (STAGES - 1) * STAGE_BYTES ? now + STAGE_BYTES : 0;
    }
    copies_wait<0>();
    add_up_and_finish(PLAIN, at, totals);
}
