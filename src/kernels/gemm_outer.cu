// Product and epilogue where k is short, from Turing on: D = epilogue(alpha op(A) op(B) + beta C).
//
// A thread has eight columns of a row. It loads all that it multiplies before it multiplies any, so that memory is waited for once, and adds up
// in F32 along k, in its order. What threads have in common they read from the cache, and nothing is shared. k is compiled in: instructions
// are few, of which a launch behind another kernel waits for each line. Any ld and any alignment.
#define GEMMEPI_BRINGS 1
#include "epilogue.cuh"

#ifndef GEMMEPI_TILE_M
#define GEMMEPI_INPUT   BF16
#define GEMMEPI_TILE_M  8   // of a block
#define GEMMEPI_TILE_N  256 // of both halves together
#define GEMMEPI_K       4
#define GEMMEPI_BATCHED 1  // 0: of one item
#define GEMMEPI_A_ROWS  1  // A's elements along k lie side by side; else those along m
#define GEMMEPI_B_ROWS  1  // likewise B's along k, else those along n
#define GEMMEPI_A_UNIT  16 // bytes at whose multiples all lines of A begin
#define GEMMEPI_B_UNIT  16 // likewise B, and its second half
#define GEMMEPI_B_DENSE 0  // 1: B_ROWS: so does each eighth line of B, as there is nothing between them
#define GEMMEPI_SUMS    0  // of one item: the operand whose sums along k go to bias_grad, 1 A, 2 B
#define GEMMEPI_SUMS_TYPE F32
#define GEMMEPI_SUMS_ADD  0 // 1: to what is there
#endif

typedef GEMMEPI_INPUT In;
constexpr int TILE_M = GEMMEPI_TILE_M, TILE_N = GEMMEPI_TILE_N / HALVES_IN, WIDTH = TILE_N / RUN, THREADS = WIDTH * TILE_M, K = GEMMEPI_K;
constexpr int MOST = HALVES_IN == 1 ? 16 : sizeof(In) > 2 ? 4 : 8, FIRST = K < MOST ? K : MOST; // steps of k that are loaded at once
static_assert(!FINDS, "no scales are found here");
static_assert(GEMMEPI_SUMS != 2 || FIRST == K, "what is summed is there at once");

// Elements side by side, the first at a multiple of Unit bytes: from the I-th on.
template <int Unit, int I = 0, int N> __device__ inline void load_along(const In *from, In (&to)[N]) {
    if constexpr (I < N) {
        constexpr int left = N - I, most = Unit / (int)sizeof(In) < left ? Unit / (int)sizeof(In) : left;
        constexpr int AT_ONCE = most >= 8 ? 8 : most >= 4 ? 4 : most >= 2 ? 2 : 1;
        Run<In, AT_ONCE> some = *reinterpret_cast<const Run<In, AT_ONCE> *>(from + I);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            to[I + i] = some.at[i];
        load_along<Unit, I + AT_ONCE>(from, to);
    }
}

// A row of A.
__device__ inline void load_row(const gpi__plain_params &params, const In *a, long long row, In (&to)[K]) {
    a += row * (GEMMEPI_A_ROWS ? params.a.ld : 1);
    if (GEMMEPI_A_ROWS)
        load_along<GEMMEPI_A_UNIT>(a, to);
    else
#pragma unroll
        for (int k = 0; k < K; k++)
            to[k] = a[k * params.a.ld];
}

// This thread's columns of B, of one half and some steps of k. Of those that do not exist the first one, again; or, where words are wide, 0,
// so that what a line has is at one address: for an address of each there are no registers.
__device__ inline bool exists(int i, int valid) {
    return WHOLE && !IN_STRETCHES || place(i) < valid;
}
__device__ inline int existing_place(int i, int valid) {
    return exists(i, valid) ? place(i) : 0;
}
#if !GEMMEPI_B_ROWS && GEMMEPI_B_UNIT >= 16 && GEMMEPI_STRETCH == 8
template <int Steps> struct Columns {
    Words<In> lines[Steps];
    __device__ inline void load(const In *b, long long ld, int valid) {
        if (WHOLE || valid == RUN)
#pragma unroll
            for (int k = 0; k < Steps; k++)
                lines[k] = *reinterpret_cast<const Words<In> *>(b + k * ld);
        else
#pragma unroll
            for (int k = 0; k < Steps; k++)
                lines[k] = words_of(read_elements(b + k * ld, valid));
    }
    __device__ inline void take(int k, Acc (&values)[RUN]) const {
        words_to_acc(lines[k], values);
    }
};
#else
template <int Steps> struct Columns {
    In at[Steps][RUN];
#if GEMMEPI_B_ROWS
    __device__ inline void load(const In *b, long long ld, int valid) {
        if (GEMMEPI_B_DENSE && !IN_STRETCHES && (WHOLE || valid == RUN)) {
            In all[RUN * Steps];
            load_along<16>(b, all);
#pragma unroll
            for (int i = 0; i < RUN * Steps; i++)
                at[i % Steps][i / Steps] = all[i];
        } else {
#pragma unroll
            for (int j = 0; j < RUN; j++) {
                In line[Steps];
                load_along<GEMMEPI_B_UNIT>(b + existing_place(j, valid) * ld, line);
#pragma unroll
                for (int k = 0; k < Steps; k++)
                    at[k][j] = line[k];
            }
        }
    }
#else
    static constexpr int AT_ONCE = IN_STRETCHES && GEMMEPI_B_UNIT >= STRETCH * (int)sizeof(In) ? STRETCH : 1;
    __device__ inline void load(const In *b, long long ld, int valid) {
#pragma unroll
        for (int i = 0; i < Steps * RUN; i += AT_ONCE) {
            In some[AT_ONCE] = {};
            if (sizeof(In) <= 2)
                load_along<GEMMEPI_B_UNIT>(b + i / RUN * ld + existing_place(i % RUN, valid), some);
            else if (i % RUN == 0 || exists(i % RUN, valid))
                load_along<GEMMEPI_B_UNIT>(b + i / RUN * ld + place(i % RUN), some);
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
                at[i / RUN][i % RUN + j] = some[j];
        }
    }
#endif
    __device__ inline void take(int k, Acc (&values)[RUN]) const {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            values[i] = to_acc<Acc>(at[k][i]);
    }
};
#endif

template <int Steps>
__device__ inline void load_steps(const gpi__plain_params &params, const In *b, int k, int valid, Columns<Steps> (&to)[HALVES_IN]) {
#pragma unroll
    for (int half = 0; half < HALVES_IN; half++)
        to[half].load(b + half * params.epilogue.n * (GEMMEPI_B_ROWS ? params.b.ld : 1) + k * (GEMMEPI_B_ROWS ? 1 : params.b.ld), params.b.ld,
                      valid);
}
// of_a: what the columns are multiplied by at each of the steps
template <int Steps, class Of_a, class Sum>
__device__ inline void add_steps(Of_a of_a, const Columns<Steps> (&of_b)[HALVES_IN], Sum (&sums)[HALVES][RUN]) {
#pragma unroll
    for (int k = 0; k < Steps; k++) {
        Sum factor = of_a(k);
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++) {
            Acc columns[RUN];
            of_b[half].take(k, columns);
#pragma unroll
            for (int j = 0; j < RUN; j++)
                sums[half][j] = fma(factor, (Sum)columns[j], sums[half][j]);
        }
    }
}
// The steps from From on, if any.
template <int From>
__device__ inline void add_others(const gpi__plain_params &params, const In (&row)[K], const In *b, int valid, Acc (&sums)[HALVES][RUN]) {
    if constexpr (From < K) {
        constexpr int STEPS = K - From < MOST ? K - From : MOST;
        Columns<STEPS> others[HALVES_IN];
        load_steps(params, b, From, valid, others);
        add_steps([&](int k) { return to_acc<Acc>(row[From + k]); }, others, sums);
        add_others<From + STEPS>(params, row, b, valid, sums);
    }
}

// bias_grad of one operand, whose sums stand where those of results would. Exact numbers, added up in F64.
__device__ inline void store_sum(const gpi__epilogue_params &p, long long at, double sum) {
    GEMMEPI_SUMS_TYPE *to = (GEMMEPI_SUMS_TYPE *)p.sums + at;
    if (GEMMEPI_SUMS_ADD)
        sum += to_acc<double>(*to);
    *to = from_acc<GEMMEPI_SUMS_TYPE>(sum);
}
__device__ inline void store_sum_of_row(const gpi__epilogue_params &p, long long row, const In (&values)[K]) {
    double sum = 0;
#pragma unroll
    for (int k = 0; k < K; k++)
        sum += to_acc<double>(values[k]);
    store_sum(p, row, sum);
}
__device__ inline void store_sums_of_columns(const gpi__epilogue_params &p, long long column, int valid, const Columns<FIRST> (&of_b)[HALVES_IN]) {
    double sums[HALVES][RUN] = {};
    add_steps([](int) { return 1.0; }, of_b, sums);
#pragma unroll
    for (int half = 0; half < HALVES_IN; half++)
#pragma unroll
        for (int i = 0; i < RUN; i++)
            if (place(i) < valid)
                store_sum(p, column + half * p.n + place(i), sums[half][i]);
}

// Blocks: items * row tiles * column tiles.
extern "C" __global__ void __launch_bounds__(THREADS, 1) gemmepi_outer(GEMMEPI_PARAMS gpi__plain_params params) {
    const gpi__epilogue_params &p = params.epilogue;
    u32 line = blockIdx.x / p.column_tiles, item = GEMMEPI_BATCHED ? line / p.row_tiles : 0; // line: item * row tiles + row tile
    u32 x = threadIdx.x % WIDTH, y = threadIdx.x / WIDTH;
    long long row = (long long)(line - item * p.row_tiles) * TILE_M + y;
    long long column = (long long)(blockIdx.x - line * p.column_tiles) * TILE_N + x * (IN_STRETCHES ? STRETCH : RUN);
    constexpr int reach = ABREAST * RUN; // no run ends behind so many columns
    int columns_left = column >= p.n ? 0 : p.n - column < reach ? (int)(p.n - column) : reach, valid = row < p.m ? columns_left : 0;
    begin_launch_behind();
    const In *a = (const In *)params.a.data + item * params.a.stride;
    const In *b = (const In *)params.b.data + item * params.b.stride +
                  (columns_left ? column : 0) * (GEMMEPI_B_ROWS ? params.b.ld : 1); // what does not exist multiplies the first columns
    after_launches_before();

    In of_a[K];
    Columns<FIRST> of_b[HALVES_IN];
    load_row(params, a, row < p.m ? row : 0, of_a);
    load_steps(params, b, 0, columns_left, of_b);
    // behind those, as what is loaded here may be waited for at once
    Epilogue_state state = begin_epilogue(p, PLACES_OF(params), item, column, valid);
    Of_columns of = load_columns(p, item, column, valid);
    Saved saved;
    load_saved(p, state, item, row, column, valid, saved);
    load_residual(p, {item, row, column, valid}, saved);
    Acc v[HALVES][RUN] = {};
    add_steps([&](int k) { return to_acc<Acc>(of_a[k]); }, of_b, v);
    add_others<FIRST>(params, of_a, b, columns_left, v);
    if (valid > 0) { // beyond lies anything
        int run = WHOLE && !IN_STRETCHES ? RUN : valid;
        epilogue(p, state, of, saved, item, row, column, run, v);
        store_result(p, state, item, row, column, run, v);
    }
    if (GEMMEPI_SUMS == 1 && column == 0 && row < p.m)
        store_sum_of_row(p, row, of_a);
    if (GEMMEPI_SUMS == 2 && line == 0 && y == 0)
        store_sums_of_columns(p, column, columns_left, of_b);
    if constexpr (ADDS_COLUMNS)
        store_sums_of_threads<THREADS>(p, PLACES_OF(params), {x, y, WIDTH, line, column, columns_left}, state.of_columns.lines());
    end_epilogue(p, state);
}
