// Product and epilogue where rows or columns are few, or all is, from Ampere on: D = epilogue(alpha op(A) op(B) + beta C).
//
// A block has one small tile. Its warps, and lanes within each, divide k among them. A lane reads its rows of A and columns of
// B from memory into registers, 16 bytes of k at a time, the next ones while it multiplies and adds those before in F32. Lanes, then
// warps add up what they have, always in the same order, and a thread finishes a run of eight. Any ld and any alignment.
//
// What lies beyond m, n and k is zero, and only what exists is stored.
#include "epilogue.cuh"

#ifndef GEMMEPI_ROWS
#define GEMMEPI_INPUT   BF16
#define GEMMEPI_TILE_M  1  // of a block, and of each of its warps
#define GEMMEPI_TILE_N  32 // of both halves together
#define GEMMEPI_ROWS    1  // of a lane
#define GEMMEPI_COLUMNS 8
#define GEMMEPI_A_ROWS  1  // A's elements along k lie side by side; else those along m
#define GEMMEPI_B_ROWS  1  // likewise B's along k, else those along n
#define GEMMEPI_A_UNIT  16 // bytes at whose multiples all lines of A begin: 16, 8, 4 or 2
#define GEMMEPI_B_UNIT  16
#endif

typedef GEMMEPI_INPUT In;
constexpr int ROWS = GEMMEPI_ROWS, COLUMNS = GEMMEPI_COLUMNS / HALVES_IN, DEPTH = 16 / sizeof(In);
constexpr int TILE_M = GEMMEPI_TILE_M, TILE_N = GEMMEPI_TILE_N / HALVES_IN, WIDTH = TILE_N < RUN ? 1 : TILE_N / RUN; // runs of a row
constexpr int LANES_N = TILE_N / COLUMNS, OTHERS = TILE_M / ROWS * LANES_N, LANES_K = 32 / OTHERS;
constexpr int WARPS = 8, THREADS = 32 * WARPS, STEP = WARPS * LANES_K * DEPTH; // STEP: of k
constexpr int SUMS = HALVES_IN * ROWS * COLUMNS, LEFT = SUMS > LANES_K ? SUMS / LANES_K : 1; // of a lane, at first and at last
constexpr bool K_FIRST = LANES_N > 1 ? GEMMEPI_B_ROWS : GEMMEPI_A_ROWS; // lanes side by side read what lies so
static_assert(TILE_M * WIDTH <= THREADS, "a thread has a run at most");

// A lane's part of an operand: Lines along m or n, DEPTH elements along k. Rows: these lie side by side.
template <bool Rows, int Lines, int Unit> struct Part {
    static constexpr int ALONG = Rows ? DEPTH : Lines, ACROSS = Rows ? Lines : DEPTH;
    static constexpr int AT_ONCE = Unit / (int)sizeof(In) < ALONG ? Unit / (int)sizeof(In) : ALONG;
    const In *from;
    long long ld;
    int exist; // lines
    Words<In, AT_ONCE> words[ACROSS][ALONG / AT_ONCE] = {};

    __device__ inline void begin(const gemmepi__kernel_matrix &x, long long item, long long first, long long extent, int first_k,
                                 long long further) {
        ld = x.ld;
        exist = extent - first < Lines ? (int)(extent - first) : Lines;
        first += further;
        from = (const In *)x.data + item * x.stride + (Rows ? first * ld + first_k : first_k * ld + first);
    }
    template <bool Whole> __device__ inline void load(int k_left) {
        int along = Rows ? k_left : exist, across = Rows ? exist : k_left;
#pragma unroll
        for (int i = 0; i < ACROSS; i++)
#pragma unroll
            for (int j = 0; j < ALONG; j += AT_ONCE)
                if (Whole || (i < across && j + AT_ONCE <= along))
                    words[i][j / AT_ONCE] = *reinterpret_cast<const Words<In, AT_ONCE> *>(from + i * ld + j);
                else
                    words[i][j / AT_ONCE] = words_of(read_elements<AT_ONCE>(from + i * ld + j, i < across ? along - j : 0));
    }
    // And goes on to the next.
    __device__ inline void load(int k_left) {
        if (exist == Lines && k_left >= DEPTH)
            load<true>(k_left);
        else
            load<false>(k_left);
        from += Rows ? STEP : STEP * ld;
    }
    __device__ inline void take(float (&values)[Lines][DEPTH]) const {
#pragma unroll
        for (int i = 0; i < ACROSS; i++)
#pragma unroll
            for (int j = 0; j < ALONG; j += AT_ONCE) {
                float some[AT_ONCE];
                words_to_acc(words[i][j / AT_ONCE], some);
#pragma unroll
                for (int l = 0; l < AT_ONCE; l++)
                    values[Rows ? i : j + l][Rows ? j + l : i] = some[l];
            }
    }
};

// Before what is ahead in the stream has ended: a block's part of the longer operand, or its beginning, comes to L2. Weights take
// longest to come, and are seldom what the launch before has written.
constexpr int AHEAD_BYTES = 32768;
template <bool Rows, int Lines> __device__ inline void fetch_ahead(const gemmepi__kernel_matrix &x, long long item, long long first,
                                                                   long long extent, long long further, int k) {
    constexpr int MOST = AHEAD_BYTES / Lines / (int)sizeof(In); // of k
    const In *from = (const In *)x.data + item * x.stride;
    int steps = k < MOST ? k : MOST, there = extent - first < Lines ? (int)(extent - first) : Lines;
    first += further;
    if (Rows) {
        if ((int)threadIdx.x < there)
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

// Blocks: items * row tiles * column tiles.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemmepi_small(GEMMEPI_PARAMS gemmepi__plain_params params) {
    __shared__ alignas(16) float results[WARPS][HALVES_IN][TILE_M][TILE_N];
    const gemmepi__epilogue_params &p = params.epilogue;
    u32 part = blockIdx.x / p.column_tiles, item = part / p.row_tiles; // part: item * row tiles + row tile
    long long tile_row = (long long)(part - item * p.row_tiles) * TILE_M;
    long long tile_column = (long long)(blockIdx.x - part * p.column_tiles) * TILE_N;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int lane_k = K_FIRST ? lane % LANES_K : lane / OTHERS, other = K_FIRST ? lane / LANES_K : lane % OTHERS;
    int row = other / LANES_N * ROWS, column = other % LANES_N * COLUMNS;
    int first_k = (warp * LANES_K + lane_k) * DEPTH, k_left = (int)params.k - first_k;
    Part<GEMMEPI_A_ROWS, ROWS, GEMMEPI_A_UNIT> a;
    Part<GEMMEPI_B_ROWS, COLUMNS, GEMMEPI_B_UNIT> b[HALVES_IN];
    a.begin(params.a, item, tile_row + row, p.m, first_k, 0);
#pragma unroll
    for (int half = 0; half < HALVES_IN; half++)
        b[half].begin(params.b, item, tile_column + column, p.n, first_k, half * p.n);

    begin_launch_behind();
    if (p.m < p.n)
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++)
            fetch_ahead<GEMMEPI_B_ROWS, TILE_N>(params.b, item, tile_column, p.n, half * p.n, (int)params.k);
    else
        fetch_ahead<GEMMEPI_A_ROWS, TILE_M>(params.a, item, tile_row, p.m, 0, (int)params.k);

    after_launches_before();
    // what the run that this thread finishes needs beside its sums
    int x = (int)threadIdx.x % WIDTH, y = (int)threadIdx.x / WIDTH;
    long long own_row = tile_row + y, first = tile_column + x * RUN;
    int valid = y < TILE_M && own_row < p.m && first < p.n ? (p.n - first < RUN ? (int)(p.n - first) : RUN) : 0;
    Epilogue_state state = begin_epilogue(p, params.BESIDE, item, first, valid);
    Of_columns of = load_columns(p, item, first, valid);
    Saved saved;
    load_saved(p, state, item, own_row, first, valid, saved);

    float sums[SUMS] = {};
#pragma unroll 1
    for (k_left += STEP; k_left > 0; k_left -= STEP) { // at first zeros are multiplied, while operands are loaded
        float rows[ROWS][DEPTH], columns[HALVES_IN][COLUMNS][DEPTH];
        a.take(rows);
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++)
            b[half].take(columns[half]);
        a.load(k_left - STEP);
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++)
            b[half].load(k_left - STEP);
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
#pragma unroll
            for (int i = 0; i < SUMS; i++)
                sums[i] = fmaf(rows[i / COLUMNS % ROWS][k], columns[i / (COLUMNS * ROWS)][i % COLUMNS][k], sums[i]);
    }
    int from = sum_of_lanes(lane_k, sums);
#pragma unroll
    for (int i = 0; i < LEFT; i++) {
        int at = from + i;
        results[warp][at / (COLUMNS * ROWS)][row + at / COLUMNS % ROWS][column + at % COLUMNS] = sums[i];
    }
    __syncthreads();

    Acc v[HALVES][RUN] = {};
    if (valid > 0) {
#pragma unroll
        for (int i = 0; i < WARPS * HALVES_IN * RUN; i++) {
            int half = i / RUN % HALVES_IN, j = i % RUN;
            if (j < TILE_N)
                v[half][j] += results[i / (HALVES_IN * RUN)][half][y][x * RUN + j];
        }
        epilogue(p, state, of, saved, item, own_row, first, valid, v);
        store_result(p, state, item, own_row, first, valid, v);
    }
    if constexpr (HAS_BGRAD) {
        Acc column_sums[HALVES_OUT][RUN];
        memcpy(column_sums, v, sizeof column_sums);
        store_partials<THREADS>(p, part, first, valid, x, y, WIDTH, column_sums);
    }
    end_epilogue(p, state);
}
