// Product and epilogue of few rows in BF16 or F16 and weights in I8: D = epilogue(alpha A op(B) + beta C). Two kernels
// include this, which differ in what copies and multiplies: gemm_weights.cu, and on Hopper gemm_weights_sm90.cu (GEMMEPI_WGMMA).
//
// Weights are read as bytes and become 16 bits in registers, without loss. A block has a tile; its warps divide the tile's columns and
// k among them, and with PARTS the blocks of a cluster divide k, too. Slices of k come to a ring of stages in shared memory. To mma and
// wgmma weights are the left operand and A's rows the right one. Warps, then blocks add up what they have, always in the same order, and
// a thread finishes runs of eight.
//
// Scales that change along k come with the stages: the sums of a slice are multiplied by them. What lies beyond m, n and k is zero, and
// only what exists is stored.
#pragma once
#include "epilogue.cuh"
#include "made.cuh"
#include "shared_memory.cuh"

#ifndef GEMMEPI_WARPS_N
#define GEMMEPI_INPUT   BF16 // of A: that or F16
#define GEMMEPI_TILE_M  8
#define GEMMEPI_TILE_N  32 // of both halves together
#define GEMMEPI_WARPS_N 1  // that divide the tile's columns; the others divide k
#define GEMMEPI_PARTS   1  // blocks that divide k
#define GEMMEPI_BLOCKS  1  // of a multiprocessor
#define GEMMEPI_STAGES  8
#endif

typedef GEMMEPI_INPUT In;
constexpr int TILE_M = GEMMEPI_TILE_M, TILE_N = GEMMEPI_TILE_N, TILE_COLUMNS = TILE_N / HALVES_IN; // of either half
constexpr int WARPS = 8, THREADS = 32 * WARPS, WARPS_N = GEMMEPI_WARPS_N, WARPS_K = WARPS / WARPS_N;
constexpr int PARTS = GEMMEPI_PARTS, BLOCKS = GEMMEPI_BLOCKS, STAGES = GEMMEPI_STAGES;
constexpr int WARP_N = TILE_N / WARPS_N, SIXTEENS = WARP_N / 16, OCTETS = TILE_M / 8; // mma's rows and columns
constexpr bool WGMMA = GEMMEPI_WGMMA;
constexpr int SLICE = WGMMA ? TILE_M < 128 ? 128 : 64 : BITS == 4 ? 128 : 64, STEP = WARPS_K * SLICE; // of k: a warp's, a stage's
constexpr bool VARIES = GEMMEPI_SCALE_B == SCALE_VECTOR_128 || GEMMEPI_SCALE_B == SCALE_BLOCK_128; // along k
constexpr int STEP_SCALES = STEP > SCALE_STEPS ? STEP / SCALE_STEPS : 1;                           // of a column, in a stage
__device__ constexpr int groups_of_step(int rows) {
    return rows && STEP > rows ? STEP / (rows ? rows : 1) : 1;
}
// Bytes of a stage where the operands of the text are, up to the i-th. Those along k are whole words of each column.
#define MADE_WIDTH(i, Type, rows, columns, along_k) \
    bytes += i < operand ? TILE_N * (along_k && BYTES_OF<Type, groups_of_step(rows)> < 4 ? 4 : BYTES_OF<Type, groups_of_step(rows)>) : 0;
__device__ constexpr int made_bytes(int operand) {
    int bytes = 0 * operand;
    MADE_COPIED(MADE_WIDTH)
    return bytes;
}
constexpr int MADE_BYTES = made_bytes(MADE_COUNT);
constexpr int A_LINE = STEP * 2, B_LINE = STEP * BITS / 8, A_BYTES = TILE_M * A_LINE, B_BYTES = TILE_N * B_LINE;
constexpr int SCALE_BYTES = VARIES ? 1024 : (MADE_BYTES + 1023) / 1024 * 1024;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES + SCALE_BYTES;
constexpr int RESULT_LINE = TILE_N + 4; // F32: so that lanes meet no bank twice
constexpr int PART_COLUMNS = TILE_COLUMNS / PARTS, WIDTH = PART_COLUMNS / RUN, HEIGHT = THREADS / WIDTH; // of what a block finishes
static_assert(!VARIES || (STEP_SCALES * TILE_N <= THREADS && STEP_SCALES * TILE_N * 4 <= 1024), "a thread copies one scale at most");
static_assert(!(VARIES && MADE), "a text has all scales");
static_assert(!FINDS, "no scales are found here");
static_assert(PART_COLUMNS % RUN == 0 && WARP_N % 16 == 0 && (!VARIES || SCALE_STEPS % SLICE == 0), "runs, fragments and scales are whole");
static_assert(MADE_GROUP % 16 == 0 && (MADE_GROUP == 0 || STEP % MADE_GROUP == 0 || MADE_GROUP % STEP == 0), "a stage has whole groups, or is of one");
static_assert(WARPS_K * TILE_M * RESULT_LINE * 4 <= STAGES * STAGE_BYTES, "sums lie where the stages were");

// >>scales along k

// Scales that change along k, of each stage the one of that number; of what is beyond n the last column's, beyond k zeros.
struct Scale_copies {
    const float *from;
    long long step; // between the scales of a column
    int k, k_end;   // k: where the next one begins
    int number;

    __device__ inline Scale_copies(const gpi__epilogue_params &p, long long item, long long first, int first_k, int end, int nth) {
        int own = nth % TILE_N;
        long long outer = first + own % TILE_COLUMNS;
        if (!VARIES)
            return;
        outer = (outer < p.n ? outer : p.n - 1) + own / TILE_COLUMNS * p.n;
        Scale_line line = scale_line<GEMMEPI_SCALE_B>(p.scale_b.data + item * p.scale_b.stride, outer, HALVES_IN * p.n, end);
        from = line.at, step = line.step;
        k = first_k + nth / TILE_N * SCALE_STEPS, k_end = end, number = nth;
    }
    __device__ inline void fetch(u32 stage) {
        if (VARIES && number < STEP_SCALES * TILE_N) {
            u32 to = stage + A_BYTES + B_BYTES + (u32)number * 4;
            copy_some<4>(to, k < k_end ? from + k / SCALE_STEPS * step : from, k < k_end ? 4 : 0);
            k += STEP;
        }
    }
};

// Where a block's operands of the text are.
struct Place_of_operands {
    long long item, column, n;
    int k_end;
};

// >>operands of the text: they lie behind the weights, one after another; what is beyond n or k is zero

// Words of those that are side by side along columns, of each group of k.
template <class Type, int Rows, int Columns, int Copiers>
__device__ inline void copy_along_columns(const gpi__formula_place &from, const Place_of_operands &at, u32 to, int k, int nth) {
    constexpr int PER_WORD = Columns == 1 ? 4 / (int)sizeof(Type) : 1, LINE_WORDS = TILE_N / PER_WORD;
    constexpr int WORDS = groups_of_step(Rows) * LINE_WORDS;
    static_assert(PER_WORD > 0 && (Columns == 1 || sizeof(Type) == 4), "words are whole");
    const Type *data = (const Type *)from.data + at.item * from.stride;
#pragma unroll(Copiers < THREADS ? 2 : 16)
    for (int first = 0; first < WORDS; first += Copiers) {
        int i = first + nth, own = i % LINE_WORDS * PER_WORD, row = k + i / LINE_WORDS * Rows;
        long long column = at.column + own % TILE_COLUMNS;
        bool exists = column < at.n && (Rows == 0 || row < at.k_end);
        column = exists ? column + own / TILE_COLUMNS * at.n : 0;
        const Type *element = data + (Rows && exists ? row / (Rows ? Rows : 1) * from.ld : 0) + column / Columns;
        if (WORDS % Copiers == 0 || i < WORDS)
            copy_some<4>(to + i * 4, element, exists ? 4 : 0);
    }
}
// Words of those that are side by side along k, of each column. Of groups that are less than a word, the word that has them.
template <class Type, int Rows, int Columns, int Copiers>
__device__ inline void copy_along_k(const gpi__formula_place &from, const Place_of_operands &at, u32 to, int k, int nth) {
    constexpr int OF_WORD = IS_PACKED<Type> ? 8 : 4 / (int)sizeof(Type), BYTES = BYTES_OF<Type, groups_of_step(Rows)>;
    constexpr int COLUMN_WORDS = BYTES < 4 ? 1 : BYTES / 4, WORDS = COLUMN_WORDS * TILE_N;
    static_assert(Rows > 0, "of each group there is one");
    const u8 *data = (const u8 *)line_from<Type>(from.data, at.item * from.stride);
    int first_byte = k / Rows / OF_WORD * 4, end = ((at.k_end + Rows - 1) / Rows * (32 / OF_WORD) + 7) / 8;
#pragma unroll(Copiers < THREADS ? 2 : 16)
    for (int first = 0; first < WORDS; first += Copiers) {
        int i = first + nth, own = i / COLUMN_WORDS, byte = first_byte + i % COLUMN_WORDS * 4;
        long long column = at.column + own % TILE_COLUMNS;
        bool exists = column < at.n && byte < end;
        column = exists ? column + own / TILE_COLUMNS * at.n : 0;
        const u8 *word = (const u8 *)line_from<Type>(data, column / Columns * from.ld) + (exists ? byte : 0);
        if (WORDS % Copiers == 0 || i < WORDS)
            copy_some<4>(to + i * 4, word, !exists ? 0 : end - byte < 4 ? end - byte : 4);
    }
}
template <class Type, int Rows, int Columns, bool Along_k, int Copiers>
__device__ inline void copy_operand(const gpi__formula_place &from, const Place_of_operands &at, u32 to, int k, int nth) {
    if constexpr (Along_k)
        copy_along_k<Type, Rows, Columns, Copiers>(from, at, to, k, nth);
    else
        copy_along_columns<Type, Rows, Columns, Copiers>(from, at, to, k, nth);
}
#define MADE_COPY(i, Type, rows, columns, along_k) \
    copy_operand<Type, rows, columns, along_k, Copiers>(made[i], at, stage + A_BYTES + B_BYTES + made_bytes(i), k, nth);
template <int Copiers>
__device__ inline void copy_operands(const gpi__formula_place *made, const Place_of_operands &at, u32 stage, int k, int nth) {
    (void)made, (void)at, (void)stage, (void)k, (void)nth;
    MADE_COPIED(MADE_COPY)
}

// Those that are one for all.
struct Held_for_made {
    float at[MADE_COUNT];
    const void *tables[MADE_COUNT];
};
struct Number {};
template <class Type> __device__ inline float hold_made(const gpi__formula_place &from, long long item) {
    if constexpr (SAME<Type, Number>)
        return (float)from.number;
    else
        return to_acc<F32>(((const Type *)from.data)[item * from.stride]);
}
#define MADE_HOLD(i, Type)       held.at[i] = hold_made<Type>(made[i], item);
#define MADE_HOLD_TABLE(i, Type) held.tables[i] = (const Type *)made[i].data + item * made[i].stride;
__device__ inline Held_for_made hold_operands_of_made(const gpi__formula_place *made, long long item) {
    Held_for_made held = {};
    (void)made, (void)item;
    MADE_HELD(MADE_HOLD)
    MADE_TABLES(MADE_HOLD_TABLE)
    return held;
}

// >>a warp's slice of a stage

extern __shared__ __align__(1024) u8 shared[];

// Where a stage is: its bytes, and the first of its k.
struct Stage {
    int at, k;
};

// Of a stage's k from `first` on those of a column of the tile, so many further.
template <class Type, int Rows, bool Along_k>
__device__ inline float read_operand(const u8 *operand, int k, int first, int column, int further) {
    constexpr int GROUPS = groups_of_step(Rows), BYTES = BYTES_OF<Type, GROUPS>;
    constexpr int STRIDE = Along_k ? BYTES < 4 ? 4 : BYTES : (int)sizeof(Type);
    int group = GROUPS > 1 ? first / (Rows ? Rows : 1) : 0;
    if (Along_k && BYTES < 4)
        group += k / (Rows ? Rows : 1) % (IS_PACKED<Type> ? 8 : 4 / (int)sizeof(Type));
    return to_acc<F32>(element_of((const Type *)(operand + column * STRIDE + further * STRIDE), Along_k ? group : group * TILE_N));
}
#define MADE_READ(i, Type, rows, columns, along_k) \
    o[i] = read_operand<Type, rows, along_k>(shared + stage.at + A_BYTES + B_BYTES + made_bytes(i), stage.k, first, column, further);
#define MADE_TAKE(i, Type)       o[i] = held.at[i];
#define MADE_TAKE_TABLE(j, Type) of[i].tables[j] = held.tables[j];
__device__ inline void read_operands(const Stage &stage, int first, int column, int further, const Held_for_made &held, float (&o)[MADE_COUNT]) {
    (void)stage, (void)first, (void)column, (void)further, (void)held, (void)o;
    MADE_COPIED(MADE_READ)
    MADE_HELD(MADE_TAKE)
}

typedef float Octet[SIXTEENS][4]; // of a lane: columns `eighth` and eight further of each 16, rows 2 quarter and the next

// The operands of a lane's columns, in the group that a stage's k from `first` on is of. Whether 16 bits are enough for all of the warp's:
// where its lanes are of one group, each looks at one of the columns that four of them share.
typedef Of_group Of_columns_made[2 * SIXTEENS];
typedef In_pairs Pairs_of_columns[2 * SIXTEENS];
__device__ inline void in_pairs_of_columns(const Of_columns_made &of, Pairs_of_columns &pairs) {
#pragma unroll
    for (int i = 0; i < 2 * SIXTEENS; i++)
        pairs[i] = in_pairs(In(), of[i]);
}
__device__ inline bool read_columns(const Stage &stage, int first, const Held_for_made &held, Of_columns_made &of) {
    constexpr bool SHARES = MADE_GROUP == 0 || MADE_GROUP >= SLICE || WGMMA;
    int column = (int)threadIdx.x / 32 % WARPS_N * WARP_N + (int)threadIdx.x % 32 / 4;
    bool fits = true;
#pragma unroll
    for (int i = 0; i < 2 * SIXTEENS; i++) {
        read_operands(stage, first, column, 8 * i, held, of[i].o);
        MADE_TABLES(MADE_TAKE_TABLE)
        if (BY_FORM && !SHARES)
            fits = fits_in_16_bits<In>(of[i].o) && fits;
    }
    if (BY_FORM && SHARES) {
#pragma unroll
        for (int i = 0; i < 2 * SIXTEENS; i += 4) {
            float o[MADE_COUNT];
            read_operands(stage, first, column + 8 * ((int)threadIdx.x % (SIXTEENS > 1 ? 4 : 2)), 8 * i, held, o);
            fits = fits_in_16_bits<In>(o) && fits;
        }
    }
    return BY_FORM && __all_sync(0xffffffff, fits);
}

// Scales that change along k: those of a lane's columns of each 16, and sums of a slice times them.
typedef float Column_scales[2 * SIXTEENS];

__device__ inline void read_scales(int stage, Column_scales &scales) {
    int warp_n = (int)threadIdx.x / 32 % WARPS_N, warp_k = (int)threadIdx.x / 32 / WARPS_N, eighth = (int)threadIdx.x % 32 / 4;
    const float *of_slice = reinterpret_cast<const float *>(shared + stage + A_BYTES + B_BYTES) + warp_k * SLICE / SCALE_STEPS * TILE_N;
#pragma unroll
    for (int i = 0; i < 2 * SIXTEENS; i++)
        scales[i] = of_slice[warp_n * WARP_N + eighth + 8 * i];
}
__device__ inline void add_scaled(const Octet (&sums)[OCTETS], const Column_scales &scales, Octet (&totals)[OCTETS]) {
#pragma unroll
    for (int octet = 0; octet < OCTETS; octet++)
#pragma unroll
        for (int i = 0; i < SIXTEENS * 4; i++)
            totals[octet][i / 4][i % 4] = fmaf(sums[octet][i / 4][i % 4], scales[i / 2], totals[octet][i / 4][i % 4]);
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
    for (int i = (int)threadIdx.x; i < (WARPS_K > 1 ? TILE_M * TILE_N / 4 : 0); i += THREADS) {
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

// >>parts: the blocks of a cluster

#if GEMMEPI_PARTS > 1
#define CLUSTER __cluster_dims__(GEMMEPI_PARTS, 1, 1)
__device__ inline u32 rank_in_cluster() {
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Four sums of the block of that rank.
__device__ inline Four_sums sums_of_part(const float *at, u32 rank) {
    Four_sums sums;
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((u32)__cvta_generic_to_shared(at)), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(sums.at[0]), "=f"(sums.at[1]), "=f"(sums.at[2]), "=f"(sums.at[3])
                 : "r"(there)
                 : "memory");
    return sums;
}

// Where the i-th four of the columns are that this block finishes, which no other reads.
__device__ inline int own_four(int i) {
    constexpr int FOURS = PART_COLUMNS / 4, LINE_FOURS = HALVES_IN * FOURS;
    int four = i % LINE_FOURS, column = (int)rank_in_cluster() * PART_COLUMNS + four % FOURS * 4;
    return i / LINE_FOURS * RESULT_LINE + four / FOURS * TILE_COLUMNS + column;
}

// What is on its way from other blocks at a time is eight loads of each thread.
__device__ inline void add_parts(float *results) {
    constexpr int ALL = TILE_M * HALVES_IN * PART_COLUMNS / 4, AT_ONCE = 8 / PARTS;
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#pragma unroll 1
    for (int first = (int)threadIdx.x; first < ALL; first += AT_ONCE * THREADS) {
        Four_sums sums[AT_ONCE][PARTS];
#pragma unroll
        for (int i = 0; i < AT_ONCE * PARTS; i++)
            if (first + i / PARTS * THREADS < ALL)
                sums[i / PARTS][i % PARTS] = sums_of_part(results + own_four(first + i / PARTS * THREADS), i % PARTS);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
#pragma unroll
            for (int j = 0; j < (PARTS - 1) * 4; j++)
                sums[i][0].at[j % 4] += sums[i][j / 4 + 1].at[j % 4];
            if (first + i * THREADS < ALL)
                *reinterpret_cast<Four_sums *>(results + own_four(first + i * THREADS)) = sums[i][0];
        }
    }
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
// Before a block ends.
__device__ inline void others_have_read() {
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
#else
#define CLUSTER
__device__ inline u32 rank_in_cluster() {
    return 0;
}
__device__ inline void add_parts(float *) {}
__device__ inline void others_have_read() {}
#endif

// >>finishing

// A run of the result, of both halves of the product.
__device__ inline void take_run(const float *results, int row, int column, Acc (&v)[HALVES][RUN]) {
#pragma unroll
    for (int i = 0; i < HALVES_IN * RUN; i += 4) {
        const float *at = results + row * RESULT_LINE + i / RUN * TILE_COLUMNS + column + i % RUN;
        Four_sums sums = *reinterpret_cast<const Four_sums *>(at);
#pragma unroll
        for (int j = 0; j < 4; j++)
            v[i / RUN][i % RUN + j] = sums.at[j];
    }
}

// Which tile this block has, or a part of.
struct Place_of_tile {
    u32 item, row_tile, column_tile;

    __device__ inline Place_of_tile(const gpi__epilogue_params &p) {
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
__device__ inline void finish(const gpi__plain_params &params, const Place_of_tile &at, const float *results) {
    const gpi__epilogue_params &p = params.epilogue;
    int x = (int)threadIdx.x % WIDTH, y = (int)threadIdx.x / WIDTH, own_column = (int)rank_in_cluster() * PART_COLUMNS + x * RUN;
    int rows = p.m - at.row() < TILE_M ? (int)(p.m - at.row()) : TILE_M;
    long long first = at.column() + own_column;
    int valid = p.n - first < RUN ? (p.n > first ? (int)(p.n - first) : 0) : RUN;
    Epilogue_state state = begin_epilogue(p, PLACES_OF(params), at.item, first, valid);
    Of_columns of = load_columns(p, at.item, first, valid);
    Column_sums<false> column_sums;
#pragma unroll 1
    for (int y_row = y; y_row < rows && valid > 0; y_row += HEIGHT) {
        long long row = at.row() + y_row;
        Acc v[HALVES][RUN] = {};
        Saved saved;
        load_saved(p, state, at.item, row, first, valid, saved);
        take_run(results, y_row, own_column, v);
        epilogue(p, state, of, saved, at.item, row, first, valid, v);
        store_result(p, state, at.item, row, first, valid, v);
        if constexpr (ADDS_COLUMNS)
            column_sums.add(state, true);
    }
    others_have_read();
    if constexpr (ADDS_COLUMNS)
        store_sums_of_threads<THREADS>(p, PLACES_OF(params), {(u32)x, (u32)y, WIDTH, at.item * p.row_tiles + at.row_tile, first, valid},
                                       column_sums.of_lane);
    end_epilogue(p, state);
}

// What stands behind the multiplication: all that has been copied has come, and been read by this warp.
__device__ inline void add_up_and_finish(const gpi__plain_params &params, const Place_of_tile &at, const Octet (&totals)[OCTETS]) {
    float *results = reinterpret_cast<float *>(shared);
    __syncthreads();
    store_sums(results, totals);
    __syncthreads();
    add_warps(results);
    add_parts(results);
    __syncthreads();
    finish(params, at, results);
}
