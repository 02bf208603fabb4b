// Product and epilogue where k is short, from Turing on: D = epilogue(alpha op(A) op(B) + beta C).
//
// A thread adds up a run of eight columns itself, along all of k and in its order, in F32, and finishes it. What threads have in common they
// read from the cache, and nothing is shared: so the instructions are few, of which a launch behind another kernel waits for each line.
// Any ld and any alignment.
#include "epilogue.cuh"

#ifndef GEMMEPI_TILE_M
#define GEMMEPI_INPUT  BF16
#define GEMMEPI_TILE_M 8   // of a block
#define GEMMEPI_TILE_N 256 // of both halves together
#define GEMMEPI_A_ROWS 1   // A's elements along k lie side by side; else those along m
#define GEMMEPI_B_ROWS 1   // likewise B's along k, else those along n
#define GEMMEPI_B_UNIT 16  // bytes at whose multiples all lines of B begin, and its second half
#endif

typedef GEMMEPI_INPUT In;
constexpr int TILE_M = GEMMEPI_TILE_M, TILE_N = GEMMEPI_TILE_N / HALVES_IN, WIDTH = TILE_N / RUN, THREADS = WIDTH * TILE_M;
static_assert(!FINDS, "no scales are found here");

// Of B's line k, or of the k-th elements of its lines, a run from `from` on, as it is stored. Of lines that do not exist the last one, again.
#if !GEMMEPI_B_ROWS && GEMMEPI_B_UNIT >= 16
typedef Words<In> Columns;
__device__ inline Columns columns_of_b(const In *from, long long ld, int k, int valid) {
    return read_run<true>(from + k * ld, valid);
}
__device__ inline void take(const Columns &columns, Acc (&values)[RUN]) {
    run_to_acc(run_of(columns), values);
}
#else
typedef Run<In> Columns; // words would wait for their elements
__device__ inline Columns columns_of_b(const In *from, long long ld, int k, int valid) {
    Columns columns;
#pragma unroll
    for (int i = 0; GEMMEPI_B_ROWS && i < RUN; i++) {
        columns.at[i] = from[k];
        from += i + 1 < valid ? ld : 0;
    }
    return GEMMEPI_B_ROWS ? columns : read_elements(from + k * ld, valid);
}
__device__ inline void take(const Columns &columns, Acc (&values)[RUN]) {
    run_to_acc(columns, values);
}
#endif

// What a thread multiplies of DEEP steps along k: all of it is on its way before any is taken, so that memory is waited for once.
constexpr int DEEP = sizeof(In) > 2 || HALVES_IN == 2 || GEMMEPI_B_ROWS ? 2 : 4;
struct Steps {
    In a[DEEP];
    Columns b[DEEP][HALVES_IN];
};

// The steps from k on. a: this thread's row; b: its first column of either half.
__device__ inline void load_steps(const gpi__plain_params &params, const In *a, const In *const (&b)[HALVES_IN], int k, int valid, Steps &steps) {
#pragma unroll
    for (int i = 0; i < DEEP; i++)
        if (k + i < (int)params.k) {
            steps.a[i] = a[GEMMEPI_A_ROWS ? k + i : (k + i) * params.a.ld];
#pragma unroll
            for (int half = 0; half < HALVES_IN; half++)
                steps.b[i][half] = columns_of_b(b[half], params.b.ld, k + i, valid);
        }
}

__device__ inline void add_steps(const gpi__plain_params &params, const Steps &steps, int k, Acc (&sums)[HALVES][RUN]) {
#pragma unroll
    for (int i = 0; i < DEEP; i++)
        if (k + i < (int)params.k) {
            Acc of_a = to_acc<Acc>(steps.a[i]);
#pragma unroll
            for (int half = 0; half < HALVES_IN; half++) {
                Acc columns[RUN];
                take(steps.b[i][half], columns);
#pragma unroll
                for (int j = 0; j < RUN; j++)
                    sums[half][j] = fmaf(of_a, columns[j], sums[half][j]);
            }
        }
}

// Blocks: items * row tiles * column tiles.
extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_outer(GEMMEPI_PARAMS gpi__plain_params params) {
    const gpi__epilogue_params &p = params.epilogue;
    u32 line = blockIdx.x / p.column_tiles, item = line / p.row_tiles; // line: item * row tiles + row tile
    u32 x = threadIdx.x % WIDTH, y = threadIdx.x / WIDTH;
    long long row = (long long)(line - item * p.row_tiles) * TILE_M + y;
    long long column = (long long)(blockIdx.x - line * p.column_tiles) * TILE_N + x * RUN;
    int columns_left = column >= p.n ? 0 : p.n - column < RUN ? (int)(p.n - column) : RUN, valid = row < p.m ? columns_left : 0;
    long long from_row = valid ? row : 0, from_column = valid ? column : 0; // what does not exist multiplies the first ones
    begin_launch_behind();
    const In *a = (const In *)params.a.data + item * params.a.stride + (GEMMEPI_A_ROWS ? from_row * params.a.ld : from_row);
    const In *b[HALVES_IN];
#pragma unroll
    for (int half = 0; half < HALVES_IN; half++)
        b[half] = (const In *)params.b.data + item * params.b.stride + (from_column + half * p.n) * (GEMMEPI_B_ROWS ? params.b.ld : 1);
    after_launches_before();

    Acc v[HALVES][RUN] = {};
    Steps steps;
    load_steps(params, a, b, 0, valid, steps);
    // behind those, as what is loaded here may be waited for at once
    Epilogue_state state = begin_epilogue(p, PLACES_OF(params), item, column, valid);
    Of_columns of = load_columns(p, item, column, valid);
    Saved saved;
    load_saved(p, state, item, row, column, valid, saved);
    add_steps(params, steps, 0, v);
#pragma unroll 1
    for (int k = DEEP; k < (int)params.k; k += DEEP) {
        load_steps(params, a, b, k, valid, steps);
        add_steps(params, steps, k, v);
    }
#pragma unroll
    for (int i = 0; i < HALVES_IN * RUN; i++) // beyond n lies anything
        if (i % RUN >= valid)
            v[i / RUN][i % RUN] = 0;
    if (valid > 0) {
        epilogue(p, state, of, saved, item, row, column, valid, v);
        store_result(p, state, item, row, column, valid, v);
    }
    if constexpr (HAS_BGRAD)
        store_partials<THREADS>(p, line, column, columns_left, x, y, WIDTH, v);
    end_epilogue(p, state);
}
