// Product and epilogue of operands of 16 bits or F32, from Ampere on: D = epilogue(alpha op(A) op(B) + beta C).
//
// A block has one tile. Its threads load 128 bytes of k at a time with cp.async into a ring of stages in shared memory,
// lines of 128 bytes whose eight units of 16 the i-th stands in place i ^ line % 8, so that neither they nor ldmatrix wait
// for a bank. Warps multiply with mma.sync, sums in registers, the next fragments loaded while the last are multiplied, and
// run the epilogue on those. F32 goes that way as TF32, of which mma.sync reads the upper 19 bits; or, strict, by fused
// multiply-adds, whose threads have the sums that mma.sync would leave them. Any ld and any alignment: what cp.async cannot
// take (an odd ld of 16 bits) comes through registers.
//
// With IN_PARTS a block adds up a part of k, and leaves its sums in memory, for the pass to add up and finish.
//
// Rows and columns beyond m, n and k are zeros; the epilogue stores only what exists.
#define GEMMEPI_SPREAD 1
#define GEMMEPI_STAGES_WORDS 1
// Where threads read operands themselves, lanes i and i ^ 1 have the same of A, and i and i ^ 2 of B: shared memory gives 16 bytes to a
// whole half of a warp at a time if such two ask for the same, else to a quarter.
#ifdef GEMMEPI_FMA
#define GEMMEPI_APART GEMMEPI_FMA
#endif
#include "epilogue.cuh"

#ifndef GEMMEPI_TILE_M
#define GEMMEPI_TILE_M   128
#define GEMMEPI_TILE_N   128 // a multiple of 64
#define GEMMEPI_WARPS_M  4
#define GEMMEPI_WARPS_N  2
#define GEMMEPI_STAGES   3
#define GEMMEPI_BLOCKS   2  // of a multiprocessor
#define GEMMEPI_A_ROWS   1  // A's elements along k lie side by side; else those along m
#define GEMMEPI_B_ROWS   1  // likewise B's along k, else those along n
#define GEMMEPI_A_UNIT   16 // bytes at whose multiples all lines of A begin: 16, 8, 4 or 2
#define GEMMEPI_B_UNIT   16
#define GEMMEPI_ELEMENT  2      // bytes of an element of A and B
#define GEMMEPI_OPERANDS "bf16" // as mma.sync names them, which has no F32
#define GEMMEPI_FMA      0      // 1: fused multiply-adds of F32 instead
#define GEMMEPI_IN_PARTS 0      // 1: k is divided into params.parts
#endif

#if GEMMEPI_ELEMENT == 2
typedef u16 Element;
#define GEMMEPI_MMA "m16n8k16"
#else
typedef u32 Element;
#define GEMMEPI_MMA "m16n8k8"
#endif
constexpr int ELEMENT = GEMMEPI_ELEMENT, LINE = 128;
constexpr bool IN_PARTS = GEMMEPI_IN_PARTS;
constexpr bool FMA = GEMMEPI_FMA; // ELEMENT 4 without it: TF32
constexpr int TILE_M = GEMMEPI_TILE_M, TILE_N = GEMMEPI_TILE_N, TILE_K = LINE / ELEMENT, STAGES = GEMMEPI_STAGES;
constexpr int STEPS = 4; // into which a stage is divided, of 32 bytes of k
constexpr int WARPS_M = GEMMEPI_WARPS_M, WARPS_N = GEMMEPI_WARPS_N, THREADS = 32 * WARPS_M * WARPS_N;
constexpr int WARP_M = TILE_M / WARPS_M, WARP_N = TILE_N / WARPS_N; // GATED: WARP_N counts both halves' columns
constexpr bool A_ROWS = GEMMEPI_A_ROWS, B_ROWS = GEMMEPI_B_ROWS;
constexpr int TILE_COLUMNS = TILE_N / HALVES_IN, WARP_COLUMNS = WARP_N / HALVES_IN; // of the result, of either half
constexpr int ROW_BLOCKS = WARP_M / 16, PAIRS = WARP_N / 16; // of mma's 16 rows; of two of its 8 columns
constexpr int BOX = TILE_K * LINE; // as many lines; along m or n where those lie side by side
constexpr u32 A_BYTES = TILE_M * LINE, B_BYTES = TILE_N * LINE, STAGE_BYTES = A_BYTES + B_BYTES;
// Results of 16 bits, and wider ones that do not lie at multiples of 16 bytes, go through shared memory, where the stages were, 16
// rows and a box's columns at a time, 128 bytes at most.
constexpr bool STAGED = STAGES_D || STAGES_AUX;
constexpr bool STAGES_WIDE = (STAGES_D && sizeof(GEMMEPI_D_TYPE) == 4) || (STAGES_AUX && sizeof(GEMMEPI_AUX_TYPE) == 4);
constexpr int GROUP = 32, GROUPS = WARP_COLUMNS / GROUP; // of columns: a run of each lane
constexpr int BOX_GROUPS = GROUPS % 2 || STAGES_WIDE ? 1 : 2, BOX_COLUMNS = BOX_GROUPS * GROUP;
constexpr int STAGED_D = STAGES_D ? HALVES_OUT : 0, STAGED_MATRICES = STAGED_D + (STAGES_AUX ? HALVES_IN : 0);
constexpr int STAGED_BYTES = 16 * LINE;
static_assert(!FINDS, "no scales are found here");
static_assert(WARP_M % 16 == 0 && WARP_COLUMNS % GROUP == 0, "a warp has whole runs of both halves");
static_assert(TILE_COLUMNS % TILE_K == 0 || B_ROWS || HALVES_IN == 1, "lines along n are of one half");
static_assert(THREADS / 32 * STAGED_MATRICES * STAGED_BYTES <= STAGES * STAGE_BYTES, "results lie where the stages were");

// >>instructions

template <int Unit> __device__ inline void copy_whole(u32 to, const void *from) {
    if constexpr (Unit == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(Unit) : "memory");
}
// Zeros follow so many bytes.
template <int Unit> __device__ inline void copy_some(u32 to, const void *from, int bytes) {
    if constexpr (Unit == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(bytes), "n"(Unit)
                     : "memory");
}
__device__ inline void copies_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int Left> __device__ inline void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}
template <bool Turned> __device__ inline void load_matrices(u32 from, u32 (&to)[4]) {
    if constexpr (Turned)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
}
__device__ inline void load_words(u32 from, u32 &to) {
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(to) : "r"(from) : "memory");
}
__device__ inline void load_words(u32 from, float &to0, float &to1) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to0), "=f"(to1) : "r"(from) : "memory");
}
__device__ inline void load_words(u32 from, float (&to)[4]) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(from)
                 : "memory");
}
#if !GEMMEPI_FMA
// sums += A B: 16 rows, 8 columns, 32 bytes of k.
__device__ inline void multiply(float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned." GEMMEPI_MMA ".row.col.f32." GEMMEPI_OPERANDS "." GEMMEPI_OPERANDS ".f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif

// >>loading

// By what a line's units are exchanged. F32 that lies along m or n is read a word at a time: 4 lines, 32 bytes of each.
template <bool Rows> __device__ constexpr int turn_of(int line) {
    return Rows || ELEMENT == 2 ? line % 8 : line % 4 * 2;
}

// Of one operand: Lines rows of op(A) or columns of op(B), whose elements along k (Rows) or those lie side by side. As many
// threads as a line has pieces copy it together, each its piece of some lines of each stage, a quarter of them at a time.
// Halves: of B, which lie `apart` elements along Lines.
template <bool Rows, int Lines, int Unit, int Halves> struct Loader {
    static constexpr int PIECE = Unit == 2 ? 16 : Unit, PIECES = LINE / PIECE, ELEMENTS = PIECE / ELEMENT;
    static constexpr int STEP = THREADS / PIECES, COUNT = Lines / STEP; // lines between two of a thread's
    static constexpr int PART = (COUNT + 3) / 4; // of them at a time, at most
    static_assert(TILE_K % STEP == 0 && Lines / Halves % STEP == 0, "all threads copy as much");
    const Element *from, *at; // this thread's first piece of the stage, and its next one
    long long ld, apart;
    int exist;                       // from this thread's first line or piece on, along m or n
    bool inside;                     // all of the block's exist
    u32 to;                          // in a stage
    Element held[Unit == 2 ? PART * ELEMENTS : 1]; // what comes through registers

    // first, extent: along m or n; first_k: of the block's part
    __device__ inline Loader(const gpi__kernel_matrix &x, long long item, long long first, long long extent,
                             long long first_k) {
        int line = (int)threadIdx.x / PIECES, piece = (int)threadIdx.x % PIECES, unit = piece * PIECE / 16;
        ld = x.ld;
        apart = extent;
        from = (const Element *)x.data + item * x.stride +
               (Rows ? (first + line) * ld + first_k + piece * ELEMENTS : (first_k + line) * ld + first + piece * ELEMENTS);
        long long left = extent - first - (Rows ? line : piece * ELEMENTS);
        exist = left < Lines ? (int)left : Lines;
        inside = first + Lines / Halves <= extent;
        to = line * LINE + ((unit ^ turn_of<Rows>(line)) << 4) + piece * PIECE % 16;
    }

    // Goes on to the i-th piece, of which so many elements exist; k_left: from the stage's first on
    __device__ inline int go_to(int i, int k_left) {
        constexpr int of_half = Lines / Halves, of_run = Rows ? of_half : TILE_K; // lines that are ld apart
        int line = i * STEP, half = line / of_half, within = line % of_half;
        int piece_k = (int)threadIdx.x % PIECES * ELEMENTS, line_k = (int)threadIdx.x / PIECES;
        if (line % of_run)
            at += STEP * ld;
        else
            at = from + (Rows ? half * apart * ld : within / TILE_K * TILE_K + half * apart);
        asm volatile("" : "+l"(at), "+r"(exist)); // one after another: all at once would take registers
        if (Rows)
            return within < exist ? k_left - piece_k : 0;
        return line_k + line % TILE_K < k_left ? exist - within / TILE_K * TILE_K : 0;
    }
    __device__ inline u32 place_of(u32 stage, int i) const {
        return ((stage + to) ^ (u32)(turn_of<Rows>(i * STEP) << 4)) + i * STEP * LINE;
    }

    template <bool Whole> __device__ inline void fetch_part(u32 stage, int part, int k_left) {
#pragma unroll
        for (int p = 0; p < PART; p++) {
            int i = part * PART + p;
            if (i >= COUNT)
                break;
            int valid = go_to(i, k_left);
            if constexpr (Unit == 2) {
#pragma unroll
                for (int j = 0; j < ELEMENTS; j++)
                    held[p * ELEMENTS + j] = Whole || j < valid ? at[j] : (Element)0;
            } else if (Whole)
                copy_whole<Unit>(place_of(stage, i), at);
            else
                copy_some<Unit>(place_of(stage, i), at, valid <= 0 ? 0 : valid >= ELEMENTS ? PIECE : valid * ELEMENT);
        }
    }
    __device__ inline void fetch(u32 stage, int part, int k_left) {
        if (inside && k_left >= TILE_K)
            fetch_part<true>(stage, part, k_left);
        else
            fetch_part<false>(stage, part, k_left);
    }
    // What came through registers goes where it was fetched for.
    __device__ inline void put(u32 stage, int part) const {
        if constexpr (Unit == 2) {
#pragma unroll
            for (int p = 0; p < PART; p++) {
                u32 words[4];
                memcpy(words, held + p * ELEMENTS, sizeof words);
                asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(place_of(stage, part * PART + p)), "r"(words[0]),
                             "r"(words[1]), "r"(words[2]), "r"(words[3])
                             : "memory");
            }
        }
    }

    __device__ inline void next() {
        from += Rows ? TILE_K : TILE_K * ld;
        asm volatile("" : "+l"(ld)); // so that what follows from it does not stay in registers
    }
};

// >>multiplying

// Where a lane's address of four 8 x 8 matrices is: those of 16 along m or n, `outer` 8 of which it names, and 32 bytes of
// k, `k` 16 of which. Words along m or n each lane loads itself: its own of the first matrix.
template <bool Rows> __device__ inline u32 fragment_lane(int first, int outer, int k) {
    int lane = threadIdx.x % 8, word = threadIdx.x % 32 / 4, line = threadIdx.x % 4;
    if (!Rows && ELEMENT == 4)
        return (u32)(first / TILE_K * BOX + line * LINE + ((first % TILE_K / 4 + word / 4 ^ turn_of<Rows>(line)) << 4) + word % 4 * 4);
    return Rows ? (u32)((first + outer * 8 + lane) * LINE + ((k ^ lane) << 4))
                : (u32)(first / TILE_K * BOX + (k * 8 + lane) * LINE + ((first % TILE_K / 8 ^ outer ^ lane) << 4));
}
// Of its i-th 16 along m or n, and the step-th 32 bytes of k.
template <bool Rows> __device__ inline u32 fragment_at(u32 lane, int i, int step) {
    constexpr int sixteens = TILE_K / 16, units = 16 * ELEMENT / 16; // of a line along m or n
    return Rows ? (lane ^ (u32)step << 5) + i * 16 * LINE
                : (lane ^ (u32)(i % sixteens * units) << 4) + i / sixteens * BOX + step * (TILE_K / STEPS) * LINE;
}
// KInner: of the four matrices, those of the same 8 along m or n follow each other, as B has them; else those of the same k.
template <bool Rows, bool KInner> __device__ inline void load_fragment(u32 from, u32 (&to)[4]) {
    if constexpr (Rows || ELEMENT == 2)
        load_matrices<!Rows>(from, to);
    else
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int outer = KInner ? i / 2 : i % 2, k = KInner ? i % 2 : i / 2;
            load_words((from ^ (u32)outer << 5) + k * 4 * LINE, to[i]);
        }
}

struct Fragments {
    u32 a[ROW_BLOCKS][4], b[PAIRS][4];
};

__device__ inline void load_fragments(u32 a, u32 b, int step, Fragments &fragments) {
    constexpr int of_half = PAIRS / HALVES_IN;
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS; i++)
        load_fragment<A_ROWS, false>(fragment_at<A_ROWS>(a, i, step), fragments.a[i]);
#pragma unroll
    for (int i = 0; i < PAIRS; i++)
        load_fragment<B_ROWS, true>(fragment_at<B_ROWS>(b, i % of_half, step) + i / of_half * TILE_COLUMNS * LINE,
                                    fragments.b[i]);
}

__device__ inline void multiply_fragments(const Fragments &fragments, float (&sums)[ROW_BLOCKS][PAIRS * 2][4]) {
#if !GEMMEPI_FMA
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS; i++)
#pragma unroll
        for (int j = 0; j < PAIRS * 2; j++)
            multiply(sums[i][j], fragments.a[i], fragments.b[j / 2][j % 2 * 2], fragments.b[j / 2][j % 2 * 2 + 1]);
#endif
}

// >>multiplying and adding

// Where a lane's first value is: A's of a warp's row row_of_lane(), B's of columns lane_of_row() * 2 and the next.
template <bool Rows> __device__ inline u32 value_lane(int first, int at) {
    return Rows ? (u32)((first + at) * LINE + (at % 8 << 4)) : (u32)(first / TILE_K * BOX + first % TILE_K * ELEMENT + (at / 4 << 4) + at % 4 * 4);
}
// Eight further along m or n, i times, and four further along k.
template <bool Rows> __device__ inline u32 value_at(u32 lane, int i, int four) {
    return Rows ? (lane ^ (u32)four << 4) + i * 8 * LINE : (lane ^ (u32)(i % 4) << 5) + i / 4 * BOX + four * 4 * LINE;
}
// Along m or n: of the k-th of the four lines.
__device__ inline u32 line_at(u32 from, int k) {
    return (from ^ (u32)turn_of<false>(k) << 4) + k * LINE;
}

__device__ inline void load_a_values(u32 from, float (&to)[4]) {
    if constexpr (A_ROWS)
        load_words(from, to);
    else
#pragma unroll
        for (int k = 0; k < 4; k++) {
            u32 word;
            load_words(line_at(from, k), word);
            to[k] = __uint_as_float(word);
        }
}
__device__ inline void load_b_values(u32 from, float (&to)[2][4]) {
    if constexpr (B_ROWS) {
        load_words(from, to[0]);
        load_words((from ^ 16) + LINE, to[1]);
    } else {
#pragma unroll
        for (int k = 0; k < 4; k++)
            load_words(line_at(from, k), to[0][k], to[1][k]);
    }
}

// sums += A B: a warp's rows and columns, 32 bytes of k. In order of k.
__device__ inline void multiply_add(u32 a, u32 b, int step, float (&sums)[ROW_BLOCKS][PAIRS * 2][4]) {
    constexpr int of_half = PAIRS * 2 / HALVES_IN;
#pragma unroll
    for (int four = step * 2; four < step * 2 + 2; four++) {
        float rows[ROW_BLOCKS * 2][4];
#pragma unroll
        for (int i = 0; i < ROW_BLOCKS * 2; i++)
            load_a_values(value_at<A_ROWS>(a, i, four), rows[i]);
#pragma unroll
        for (int j = 0; j < PAIRS * 2; j++) {
            float columns[2][4];
            load_b_values(value_at<B_ROWS>(b, j % of_half, four) + j / of_half * TILE_COLUMNS * LINE, columns);
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
                for (int i = 0; i < ROW_BLOCKS * 4; i++) {
                    float &sum = sums[i / 4][j][i % 4];
                    sum = __fmaf_rn(rows[i / 2][k], columns[i % 2][k], sum);
                }
        }
    }
}

__device__ inline void take_sums(const float (&from)[ROW_BLOCKS][PAIRS * 2][4], float (&sums)[ROW_BLOCKS][PAIRS * 2][4]) {
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS * PAIRS * 8; i++)
        sums[i / (PAIRS * 8)][i / 4 % (PAIRS * 2)][i % 4] += from[i / (PAIRS * 8)][i / 4 % (PAIRS * 2)][i % 4];
}

// >>the epilogue

// Where this lane's run of 16 bits or 32 goes, of eight rows the lane's, and of the g-th 32 columns of a box.
template <class T> __device__ inline u32 place_in_box(int half, int g) {
    int row = row_of_lane(), unit = sizeof(T) == 4 ? lane_of_row() / 2 : g * 4;
    return (half * 8 + row) * LINE + ((unit ^ row) << 4) + (sizeof(T) == 4 ? lane_of_row() % 2 * 8 : lane_of_row() * 4);
}

// row, column: the warp's first; line: its line of partial sums
__device__ inline void finish(const gpi__sm80_params &params, long long item, int row, int column, long long line,
                              u32 staged, const float (&sums)[ROW_BLOCKS][PAIRS * 2][4]) {
    const gpi__epilogue_params &p = params.epilogue;
    int of_row = row_of_lane();
    Epilogue_state state = begin_epilogue(p, params.BESIDE, item, 0, 0);
#pragma unroll
    for (int box = 0; box < GROUPS; box += BOX_GROUPS) {
        Of_columns of[BOX_GROUPS];
        Column_sums<(GEMMEPI_FORMULA || ROW_BLOCKS > 2)> column_sums[BOX_GROUPS]; // tall tiles leave few registers
        int box_column = column + box * GROUP, box_left = (int)p.n - box_column;
        int first = box_column + lane_of_row() * 2, left = box_left - lane_of_row() * 2;
#pragma unroll
        for (int g = 0; g < BOX_GROUPS; g++)
            of[g] = load_columns(p, item, first + g * GROUP, left - g * GROUP);
#pragma unroll
        for (int i = 0; i < ROW_BLOCKS; i++) {
#pragma unroll
            for (int g = 0; g < BOX_GROUPS; g++) {
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    int at = row + i * 16 + half * 8 + of_row, exists = at < (int)p.m;
                    int valid = exists ? left - g * GROUP : 0;
                    Acc v[HALVES][RUN];
                    Saved saved;
#pragma unroll
                    for (int j = 0; j < HALVES_IN * RUN; j++)
                        v[j / RUN][j % RUN] =
                            sums[i][j / RUN * WARP_COLUMNS / 8 + (box + g) * 4 + j % RUN / 2][half * 2 + j % 2];
#pragma unroll
                    for (int j = 0; j < STAGED_D; j++)
                        state.staged_d[j] = staged + j * STAGED_BYTES + place_in_box<GEMMEPI_D_TYPE>(half, g);
#pragma unroll
                    for (int j = 0; j < STAGED_MATRICES - STAGED_D; j++)
                        state.staged_aux[j] = staged + (STAGED_D + j) * STAGED_BYTES + place_in_box<GEMMEPI_AUX_TYPE>(half, g);
                    state.mask_place = half + 2 * g;
                    load_saved(p, state, item, at, first + g * GROUP, valid, saved);
                    epilogue(p, state, of[g], saved, item, at, first + g * GROUP, valid, v);
                    store_result(p, state, item, at, first + g * GROUP, valid, v);
                    if constexpr (ADDS_COLUMNS)
                        column_sums[g].add(v, state, exists);
                }
                if (ADDS_COLUMNS)
                    column_sums[g].end_rows();
            }
            if (KEEPS_MASK)
                store_kept_masks(p, state, item, row + i * 16, box_column, BOX_GROUPS);
#if GEMMEPI_FORMULA && GEMMEPI_INSIDE_REDUCES
            static_assert(BOX_COLUMNS % GEMMEPI_STATE_COLUMNS == 0, "a box has whole states");
            store_kept_states(p, state, item, row + i * 16, box_column, BOX_GROUPS);
#endif
            if (STAGED) {
                int rows_left = (int)p.m - row - i * 16;
                __syncwarp();
#pragma unroll
                for (int j = 0; j < STAGED_D; j++)
                    copy_box<GEMMEPI_D_TYPE, BOX_COLUMNS, COPIES_D>(
                        staged + j * STAGED_BYTES,
                        (GEMMEPI_D_TYPE *)p.d.data + offset(p.d, item, row + i * 16, box_column + j * p.n), p.d.ld, rows_left,
                        box_left);
#pragma unroll
                for (int j = 0; j < STAGED_MATRICES - STAGED_D; j++)
                    copy_box<GEMMEPI_AUX_TYPE, BOX_COLUMNS, COPIES_AUX>(
                        staged + (STAGED_D + j) * STAGED_BYTES,
                        (GEMMEPI_AUX_TYPE *)p.aux.data + offset(p.aux, item, row + i * 16, box_column + j * p.n), p.aux.ld,
                        rows_left, box_left);
                __syncwarp();
            }
        }
        if (ADDS_COLUMNS && row < (int)p.m)
#pragma unroll
            for (int g = 0; g < BOX_GROUPS; g++)
                column_sums[g].store(p, params.BESIDE, line, box_column + g * GROUP);
    }
    end_epilogue(p, state);
}

// >>the kernel

// Blocks: tiles of all parts of all items; columns of tiles within bands of rows, so that what is under way at a time reads
// few rows of A and few columns of B.
extern "C" __global__ void __launch_bounds__(THREADS, GEMMEPI_BLOCKS)
    gemmepi_mma(GEMMEPI_PARAMS gpi__sm80_params params) {
    extern __shared__ __align__(128) u8 memory[];
    const gpi__epilogue_params &p = params.epilogue;
    u32 shared = (u32)__cvta_generic_to_shared(memory);
    u32 of_part = params.tile_rows * p.column_tiles, slice = blockIdx.x / of_part, rest = blockIdx.x - slice * of_part;
    u32 item = IN_PARTS ? slice / params.parts : slice; // slice: item * parts + part, of the sums in memory too
    int first_k = IN_PARTS ? (int)(slice - item * params.parts) * params.part_k : 0;
    u32 of_band = params.band * p.column_tiles, band = rest / of_band, above = band * params.band;
    u32 height = params.tile_rows - above < params.band ? params.tile_rows - above : params.band;
    u32 within = rest - band * of_band, tile_n = within / height, tile_m = above + within - tile_n * height;

    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warp_m = warp % WARPS_M, warp_n = warp / WARPS_M;
    Loader<A_ROWS, TILE_M, GEMMEPI_A_UNIT, 1> a(params.a, item, (long long)tile_m * TILE_M, p.m, first_k);
    Loader<B_ROWS, TILE_N, GEMMEPI_B_UNIT, HALVES_IN> b(params.b, item, (long long)tile_n * TILE_COLUMNS, p.n, first_k);
    u32 a_lane = shared + (FMA ? value_lane<A_ROWS>(warp_m * WARP_M, row_of_lane())
                               : fragment_lane<A_ROWS>(warp_m * WARP_M, lane / 8 % 2, lane / 16));
    u32 b_lane = shared + A_BYTES + (FMA ? value_lane<B_ROWS>(warp_n * WARP_COLUMNS, lane_of_row() * 2)
                                         : fragment_lane<B_ROWS>(warp_n * WARP_COLUMNS, lane / 16, lane / 8 % 2));
    int k_left = IN_PARTS && params.k - first_k > params.part_k ? params.part_k : params.k - first_k;
    int steps = (k_left + TILE_K - 1) / TILE_K; // beyond the last no byte is read
#pragma unroll 1
    for (int i = 0; i < STAGES - 1; i++) {
        u32 stage = shared + i * STAGE_BYTES;
        if (i == 0)
            after_launches_before(); // in a branch, or ptxas moves it up to before all these divisions
#pragma unroll
        for (int part = 0; part < 4; part++) {
            a.fetch(stage, part, k_left);
            b.fetch(stage + A_BYTES, part, k_left);
            a.put(stage, part);
            b.put(stage + A_BYTES, part);
        }
        copies_commit();
        a.next();
        b.next();
        k_left -= TILE_K;
    }
    float sums[ROW_BLOCKS][PAIRS * 2][4] = {};
    Fragments fragments[2];
    u32 read = 0, written = (STAGES - 1) * STAGE_BYTES; // stages
    copies_wait<STAGES - 2>();
    __syncthreads();
    if (!FMA)
        load_fragments(a_lane, b_lane, 0, fragments[0]);
    for (int block = 0; block < steps; block++) {
        float of_stage[ROW_BLOCKS][PAIRS * 2][4] = {}; // FMA: so that fewer roundings meet large sums
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            bool last = step == STEPS - 1;
            // into the stage whose last fragments all warps have
            a.fetch(shared + written, step, k_left);
            b.fetch(shared + written + A_BYTES, step, k_left);
            if (FMA)
                multiply_add(a_lane + read, b_lane + read, step, of_stage);
            if (last) { // the next stage; behind the last one is what nobody uses
                a.put(shared + written, step);
                b.put(shared + written + A_BYTES, step);
                copies_commit();
                written = written + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : written + STAGE_BYTES;
                read = read + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : read + STAGE_BYTES;
                copies_wait<STAGES - 2>();
                __syncthreads();
            }
            if (!FMA) {
                load_fragments(a_lane + read, b_lane + read, (step + 1) % STEPS, fragments[(step + 1) % 2]);
                multiply_fragments(fragments[step % 2], sums);
            }
            if (!last) {
                a.put(shared + written, step);
                b.put(shared + written + A_BYTES, step);
            }
        }
        if (FMA)
            take_sums(of_stage, sums);
        a.next();
        b.next();
        k_left -= TILE_K;
    }
    copies_wait<0>();
    __syncthreads();
    long long line = ((long long)slice * p.row_tiles) + tile_m * WARPS_M + warp_m;
    finish(params, slice, (int)(tile_m * TILE_M) + warp_m * WARP_M, (int)(tile_n * TILE_COLUMNS) + warp_n * WARP_COLUMNS, line,
           shared + warp * (STAGED_MATRICES * STAGED_BYTES), sums);
}
