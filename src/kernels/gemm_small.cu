// Product and epilogue where rows or columns are few, or all is, from Turing on: D = epilogue(alpha op(A) op(B) + beta C).
//
// A block has one small tile. Its warps, and lanes within each, divide k among them. A lane reads its rows of A and columns of
// B from memory into registers, 16 bytes of k at a time, the next ones while it multiplies and adds those before in F32. Lanes, then
// warps add up what they have, always in the same order, and a thread finishes a run of eight. With PARTS the blocks of a cluster divide
// k, too, and the first of them adds up what each has. Any ld and any alignment.
//
// What lies beyond k is zero, what lies beyond m and n goes into sums that nobody takes, and only what exists is stored.
#define GEMMEPI_BRINGS 1
#include "epilogue.cuh"

#ifndef GEMMEPI_ROWS
#define GEMMEPI_INPUT   BF16
#define GEMMEPI_TILE_M  1  // of a block, and of each of its warps
#define GEMMEPI_TILE_N  32 // of both halves together
#define GEMMEPI_ROWS    1  // of a lane
#define GEMMEPI_COLUMNS 8
#define GEMMEPI_WARPS   8
#define GEMMEPI_PARTS   1  // blocks of a cluster
#define GEMMEPI_A_ROWS  1  // A's elements along k lie side by side; else those along m
#define GEMMEPI_B_ROWS  1  // likewise B's along k, else those along n
#define GEMMEPI_A_UNIT  16 // bytes at whose multiples all lines of A begin: 16, 8, 4 or 2
#define GEMMEPI_B_UNIT  16
#endif

typedef GEMMEPI_INPUT In;
constexpr int ROWS = GEMMEPI_ROWS, COLUMNS = GEMMEPI_COLUMNS / HALVES_IN, DEPTH = 16 / sizeof(In);
constexpr int TILE_M = GEMMEPI_TILE_M, TILE_N = GEMMEPI_TILE_N / HALVES_IN, WIDTH = TILE_N < RUN ? 1 : TILE_N / RUN; // runs of a row
constexpr int LANES_N = TILE_N / COLUMNS, OTHERS = TILE_M / ROWS * LANES_N, LANES_K = 32 / OTHERS;
constexpr int WARPS = GEMMEPI_WARPS, THREADS = 32 * WARPS, PARTS = GEMMEPI_PARTS;
constexpr int PART = WARPS * LANES_K * DEPTH, STEP = PARTS * PART; // of k: what a block takes of a step, and a cluster
constexpr int SUMS = HALVES_IN * ROWS * COLUMNS, LEFT = SUMS > LANES_K ? SUMS / LANES_K : 1; // of a lane, at first and at last
constexpr bool K_FIRST = LANES_N > 1 ? GEMMEPI_B_ROWS : GEMMEPI_A_ROWS; // lanes side by side read what lies so
static_assert(!FINDS, "no scales are found here");
static_assert(TILE_M * WIDTH <= THREADS, "a thread has a run at most");

// A lane's part of an operand in a step: Lines along m or n, DEPTH elements along k. They are ACROSS runs of ALONG elements that lie side
// by side (Rows: along k). Where a run begins anywhere it is read as the two aligned words of its size that cover it, and shifted when
// it is taken. So bytes beside it are read, but none outside of the matrix: runs near its ends are read element by element.
template <bool Rows, int Lines, int Unit> struct Part {
    static constexpr int ALONG = Rows ? DEPTH : Lines, ACROSS = Rows ? Lines : DEPTH, BYTES = ALONG * (int)sizeof(In);
    static constexpr bool SHIFTED = BYTES > 2 * Unit;
    static constexpr int AT_ONCE = SHIFTED || Unit > BYTES ? ALONG : Unit / (int)sizeof(In), PIECES = SHIFTED ? 2 : ALONG / AT_ONCE;
    typedef Words<In, AT_ONCE> Piece;
    const char *from; // where the step lies that is loaded next
    long long ld;     // in bytes
    int exist;        // lines
    int least;        // of k that is left, for words to be inside of the matrix
    bool starts_inside; // the words of the first step
    bool easy = false;  // the step that is loaded is in words
    u32 shifts = 0;     // those of an address that shift what is taken next
    Piece pieces[ACROSS][PIECES] = {};

    // further: to the half's lines, of all `whole`.
    __device__ inline void begin(const gpi__kernel_matrix &x, long long item, long long first, long long extent, int first_k,
                                 long long further, long long whole) {
        const In *start = (const In *)x.data + item * x.stride;
        ld = x.ld * (long long)sizeof(In);
        exist = extent - first < Lines ? (int)(extent - first) : Lines;
        first += further;
        from = (const char *)(start + (Rows ? first * x.ld + first_k : first_k * x.ld + first));
        starts_inside = !SHIFTED || from - (const char *)start >= (long long)shift_of(0, BYTES - 1);
        least = DEPTH;
        if (Rows) // the last line has none behind it
            least += SHIFTED && first + exist >= whole ? DEPTH : 0;
        else if (first + (SHIFTED ? 2 : 1) * ALONG > whole)
            least += x.ld >= 2 * ALONG ? 1 : 2 * ALONG;
    }
    __device__ inline u32 shift_of(int i, u32 bits) const {
        return ((u32)(u64)from + (u32)i * (u32)ld) & bits;
    }
    // Lines that do not exist are the last one again.
    __device__ inline void go_to_next_run(const char *&at, int i) const {
        at += !Rows || i + 1 < exist ? ld : 0;
    }
    __device__ inline void load_words(const char *at, int i) {
        if (SHIFTED) {
            u32 shift = (u32)(u64)at & (BYTES - 1);
            at -= shift;
            pieces[i][0] = *reinterpret_cast<const Piece *>(at);
            if (shift)
                pieces[i][PIECES - 1] = *reinterpret_cast<const Piece *>(at + BYTES);
        } else {
#pragma unroll
            for (int j = 0; j < PIECES; j++)
                pieces[i][j] = *reinterpret_cast<const Piece *>(at + j * sizeof(Piece));
        }
    }
    __device__ inline void load_words() {
        const char *at = from;
#pragma unroll
        for (int i = 0; i < ACROSS; i++) {
            load_words(at, i);
            go_to_next_run(at, i);
        }
    }
    __device__ inline void load_elements(int k_left) {
        int along = Rows ? k_left : exist, across = Rows ? exist : k_left;
        const char *at = from;
#pragma unroll
        for (int i = 0; i < ACROSS; i++) {
#pragma unroll
            for (int j = 0; j < ALONG; j += AT_ONCE) {
                const In *piece = (const In *)at + j;
                if (!SHIFTED && i < across && j + AT_ONCE <= along)
                    pieces[i][j / AT_ONCE] = *reinterpret_cast<const Piece *>(piece);
                else
                    pieces[i][j / AT_ONCE] = words_of(read_elements<AT_ONCE>(piece, i < across ? along - j : 0));
            }
            go_to_next_run(at, i);
        }
    }
    // After the step has been loaded where it is easy.
    __device__ inline void end_loads(int k_left) {
        if (!easy && k_left > 0)
            load_elements(k_left);
        shifts = easy ? BYTES - 1 : 0;
        from += Rows ? STEP * (long long)sizeof(In) : STEP * ld;
    }
    // Moves words down by the shift's whole words, a bit of the shift after the other from Bit on. NVRTC does not unroll a loop over bits.
    template <int Bit, int Count> __device__ static inline void shift_words(u32 (&words)[Count], u32 shift) {
        if constexpr (Bit >= 4 && Bit >= Unit) {
#pragma unroll
            for (int j = 0; j < Count - Bit / 4; j++)
                words[j] = shift & Bit ? words[j + Bit / 4] : words[j];
            shift_words<Bit / 2>(words, shift);
        }
    }
    // Run i, as F32.
    __device__ inline void take(int i, float (&values)[Lines][DEPTH]) const {
        float some[PIECES][AT_ONCE];
        if constexpr (SHIFTED) {
            constexpr int WORDS = BYTES / 4;
            u32 words[2 * WORDS], shift = shift_of(i, shifts);
#pragma unroll
            for (int j = 0; j < 2 * WORDS; j++)
                words[j] = pieces[i][j / WORDS].at[j % WORDS];
            shift_words<BYTES / 2>(words, shift);
#pragma unroll
            for (int j = 0; Unit < 4 && j < WORDS; j++)
                words[j] = __funnelshift_r(words[j], words[j + 1], shift * 8); // of the shift's last two bits
            Piece piece;
#pragma unroll
            for (int j = 0; j < WORDS; j++)
                piece.at[j] = words[j];
            words_to_acc(piece, some[0]);
        } else {
#pragma unroll
            for (int j = 0; j < PIECES; j++)
                words_to_acc(pieces[i][j], some[j]);
        }
#pragma unroll
        for (int j = 0; j < ALONG; j++)
            values[Rows ? i : j][Rows ? j : i] = some[j / AT_ONCE][j % AT_ONCE];
    }
    // All runs, in whose place the next ones are loaded.
    __device__ inline void take_and_load(float (&values)[Lines][DEPTH]) {
        const char *at = from;
#pragma unroll
        for (int i = 0; i < ACROSS; i++) {
            take(i, values);
            if (easy)
                load_words(at, i);
            go_to_next_run(at, i);
        }
    }
};

typedef Part<GEMMEPI_A_ROWS, ROWS, GEMMEPI_A_UNIT> A_part;
typedef Part<GEMMEPI_B_ROWS, COLUMNS, GEMMEPI_B_UNIT> B_part;

// What run i of A's part, or of B's, is multiplied by, of all.
template <bool Of_a>
__device__ inline void multiply(int i, const float (&rows)[ROWS][DEPTH], const float (&columns)[COLUMNS][DEPTH], float *sums) {
    constexpr bool Rows = Of_a ? GEMMEPI_A_ROWS : GEMMEPI_B_ROWS;
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
#pragma unroll
        for (int j = 0; j < ROWS * COLUMNS; j++)
            if ((!Rows ? k : Of_a ? j / COLUMNS : j % COLUMNS) == i)
                sums[j] = fmaf(rows[j / COLUMNS][k], columns[j % COLUMNS][k], sums[j]);
}

// A step that has been loaded is added to the sums, while the next one is loaded where it is easy. Of the operand that has more lines a
// run at a time is in F32.
__device__ inline void add_step(A_part &a, B_part (&b)[HALVES_IN], float (&sums)[SUMS]) {
    constexpr bool A_IS_LAST = ROWS > COLUMNS;
    float rows[ROWS][DEPTH], columns[HALVES_IN][COLUMNS][DEPTH];
    if constexpr (A_IS_LAST) {
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++)
            b[half].take_and_load(columns[half]);
        const char *at = a.from;
#pragma unroll
        for (int i = 0; i < A_part::ACROSS; i++) {
            a.take(i, rows);
            if (a.easy)
                a.load_words(at, i);
            a.go_to_next_run(at, i);
#pragma unroll
            for (int half = 0; half < HALVES_IN; half++)
                multiply<true>(i, rows, columns[half], sums + half * ROWS * COLUMNS);
        }
    } else {
        a.take_and_load(rows);
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++) {
            const char *at = b[half].from;
#pragma unroll
            for (int i = 0; i < B_part::ACROSS; i++) {
                b[half].take(i, columns[half]);
                if (b[half].easy)
                    b[half].load_words(at, i);
                b[half].go_to_next_run(at, i);
                multiply<false>(i, rows, columns[half], sums + half * ROWS * COLUMNS);
            }
        }
    }
}

// All steps of a lane, each loaded while the one before is added to the sums.
__device__ inline void add_steps(A_part &a, B_part (&b)[HALVES_IN], int k_left, float (&sums)[SUMS]) {
    bool some = false; // has been loaded
#pragma unroll 1
    do {
        a.easy = k_left >= a.least && (some || a.starts_inside);
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++)
            b[half].easy = k_left >= b[half].least && (some || b[half].starts_inside);
        if (some) {
            add_step(a, b, sums);
        } else {
            if (a.easy)
                a.load_words();
#pragma unroll
            for (int half = 0; half < HALVES_IN; half++)
                if (b[half].easy)
                    b[half].load_words();
        }
        a.end_loads(k_left);
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++)
            b[half].end_loads(k_left);
        some = k_left > 0;
        k_left -= STEP;
    } while (some);
}

// Before what is ahead in the stream has ended: a block's part of the longer operand, or its beginning, comes to L2. Weights take
// longest to come, and are seldom what the launch before has written.
constexpr int AHEAD_BYTES = 32768;
template <bool Rows, int Lines> __device__ inline void fetch_ahead(const gpi__kernel_matrix &x, long long item, long long first,
                                                                   long long extent, long long further, int first_k, int k) {
    constexpr int ROOM = AHEAD_BYTES / Lines / (int)sizeof(In), MOST = PARTS > 1 && PART < ROOM ? PART : ROOM; // of k
    const In *from = (const In *)x.data + item * x.stride + first_k * (Rows ? 1 : x.ld);
    int steps = k - first_k < MOST ? k - first_k : MOST, there = extent - first < Lines ? (int)(extent - first) : Lines;
    first += further;
    if (Rows) {
        if ((int)threadIdx.x < there && steps > 0)
            fetch_run(from + (first + (int)threadIdx.x) * x.ld, (u32)(steps * sizeof(In)));
    } else {
        for (int i = (int)threadIdx.x; i < steps; i += THREADS)
            fetch_line(from + i * x.ld + first);
    }
}

// What lanes along k have each of all SUMS becomes LEFT of them in each, summed, from the one on whose number it returns.
__device__ inline int sum_of_lanes(int lane_k, float (&sums)[SUMS]) {
    int first = 0;
#pragma unroll
    for (int step = 1; step < LANES_K; step *= 2) {
        bool halves = 2 * step <= SUMS, upper = halves && lane_k & step;
#pragma unroll
        for (int j = 0; j < SUMS / (2 * step) + !halves; j++) {
            float other = sums[halves ? j + SUMS / (2 * step) : j], sent = upper ? sums[j] : other;
            sums[j] = (upper ? other : sums[j]) + __shfl_xor_sync(0xffffffffu, sent, K_FIRST ? step : step * OTHERS);
        }
        first += upper ? SUMS / (2 * step) : 0;
    }
    return first;
}

// What lanes along k have of a tile at this row and column is added up, to where add_parts takes it.
__device__ inline void leave_sums(int lane_k, int row, int column, float (&sums)[SUMS], float (&of_warp)[HALVES_IN * TILE_M * TILE_N]) {
    int from = sum_of_lanes(lane_k, sums);
#pragma unroll
    for (int i = 0; i < LEFT; i++) {
        int at = from + i;
        of_warp[(at / (COLUMNS * ROWS) * TILE_M + row + at / COLUMNS % ROWS) * TILE_N + column + at % COLUMNS] = sums[i];
    }
}

// Between blocks of a cluster: sums that all of them have left in shared memory are there, and, later, the first has read them.
#if GEMMEPI_PARTS > 1
#define CLUSTER __cluster_dims__(GEMMEPI_PARTS, 1, 1)
__device__ inline void all_have_come() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ inline float sum_of_part(const float *at, u32 part) {
    u32 there;
    float sum;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((u32)__cvta_generic_to_shared(at)), "r"(part));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(sum) : "r"(there) : "memory");
    return sum;
}
#else
#define CLUSTER
#endif

// Each block adds up what its warps have, then the first adds up these, always in the same order: they stand where its first warp's did.
template <int Count> __device__ inline void add_parts(u32 part, float (&results)[WARPS][Count]) {
#if GEMMEPI_PARTS > 1
    __shared__ float of_part[Count];
    for (int i = (int)threadIdx.x; i < Count; i += THREADS) {
        float sum = results[0][i];
#pragma unroll
        for (int warp = 1; warp < WARPS; warp++)
            sum += results[warp][i];
        of_part[i] = sum;
    }
    __syncwarp();
    all_have_come();
    for (int i = (int)threadIdx.x; part == 0 && i < Count; i += THREADS) {
        float sums[PARTS];
#pragma unroll
        for (int other = 0; other < PARTS; other++)
            sums[other] = sum_of_part(of_part + i, other);
#pragma unroll
        for (int other = 1; other < PARTS; other++)
            sums[0] += sums[other];
        results[0][i] = sums[0];
    }
    __syncthreads();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
// Before a block ends.
__device__ inline void first_has_read() {
#if GEMMEPI_PARTS > 1
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// Run x of row y: the sum of all warps, or, where parts are added up, the first's.
__device__ inline void take_run(const float (&results)[WARPS][HALVES_IN * TILE_M * TILE_N], int x, int y, int valid, Acc (&v)[HALVES][RUN]) {
#pragma unroll
    for (int i = 0; i < (PARTS > 1 ? 1 : WARPS) * HALVES_IN * RUN; i++) {
        int half = i / RUN % HALVES_IN, j = i % RUN;
        if (j < TILE_N)
            v[half][j] += results[i / (HALVES_IN * RUN)][(half * TILE_M + y) * TILE_N + x * RUN + j];
    }
#pragma unroll
    for (int i = 0; i < HALVES_IN * RUN; i++) // beyond n lies anything
        v[i / RUN][i % RUN] = i % RUN < valid ? v[i / RUN][i % RUN] : 0;
}

// Blocks: items * row tiles * column tiles * PARTS.
extern "C" __global__ void __launch_bounds__(THREADS, 1) CLUSTER
    gemmepi_small(GEMMEPI_PARAMS gpi__plain_params params) {
    __shared__ alignas(16) float results[WARPS][HALVES_IN * TILE_M * TILE_N];
    const gpi__epilogue_params &p = params.epilogue;
    u32 tile = blockIdx.x / PARTS, part = blockIdx.x % PARTS; // whose cluster is one of PARTS blocks side by side
    u32 line = tile / p.column_tiles, item = line / p.row_tiles; // line: item * row tiles + row tile
    long long tile_row = (long long)(line - item * p.row_tiles) * TILE_M;
    long long tile_column = (long long)(tile - line * p.column_tiles) * TILE_N;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int lane_k = K_FIRST ? lane % LANES_K : lane / OTHERS, other = K_FIRST ? lane / LANES_K : lane % OTHERS;
    int row = other / LANES_N * ROWS, column = other % LANES_N * COLUMNS;
    int block_k = (int)part * PART, first_k = block_k + (warp * LANES_K + lane_k) * DEPTH, k_left = (int)params.k - first_k;
    A_part a;
    B_part b[HALVES_IN];
    a.begin(params.a, item, tile_row + row, p.m, first_k, 0, p.m);
#pragma unroll
    for (int half = 0; half < HALVES_IN; half++)
        b[half].begin(params.b, item, tile_column + column, p.n, first_k, half * p.n, HALVES_IN * p.n);
    if (a.exist <= 0 || b[0].exist <= 0)
        k_left = 0;

    begin_launch_behind();
    if (p.m < p.n)
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++)
            fetch_ahead<GEMMEPI_B_ROWS, TILE_N>(params.b, item, tile_column, p.n, half * p.n, block_k, (int)params.k);
    else
        fetch_ahead<GEMMEPI_A_ROWS, TILE_M>(params.a, item, tile_row, p.m, 0, block_k, (int)params.k);

    after_launches_before();
    // what the run that this thread finishes needs beside its sums
    int x = (int)threadIdx.x % WIDTH, y = (int)threadIdx.x / WIDTH;
    long long own_row = tile_row + y, first = tile_column + x * RUN;
    int valid = part == 0 && y < TILE_M && own_row < p.m && first < p.n ? (p.n - first < RUN ? (int)(p.n - first) : RUN) : 0;
    Epilogue_state state = begin_epilogue(p, PLACES_OF(params), item, first, valid);
    Of_columns of = load_columns(p, item, first, valid);
    Saved saved;
    load_saved(p, state, item, own_row, first, valid, saved);
    load_residual(p, {item, own_row, first, valid}, saved);

    float sums[SUMS] = {};
    add_steps(a, b, k_left, sums);
    leave_sums(lane_k, row, column, sums, results[warp]);
    __syncthreads();
    add_parts(part, results);

    Acc v[HALVES][RUN] = {};
    if (valid > 0) {
        take_run(results, x, y, valid, v);
        epilogue(p, state, of, saved, item, own_row, first, valid, v);
        store_result(p, state, item, own_row, first, valid, v);
    }
    if constexpr (ADDS_COLUMNS)
        store_sums_of_threads<THREADS>(p, PLACES_OF(params), {(u32)x, (u32)y, WIDTH, line, first, valid}, state.of_columns.lines());
    end_epilogue(p, state);
    first_has_read();
}
