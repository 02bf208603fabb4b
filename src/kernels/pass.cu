// One pass over a finished product, behind the launch or launches that leave it. A thread takes the same eight columns of
// row_steps rows: side by side, or in stretches where lines begin anywhere, so that what a warp asks for at a time is side by side.
// A block also leaves the sums of its columns, where these are asked for, for formula_reduce.cu to finish.
#define GEMMEPI_BRINGS 1
#include "epilogue.cuh"

#ifndef GEMMEPI_PRODUCT_TYPE
#define GEMMEPI_PRODUCT_TYPE F32 // of the product in memory; of an upstream gradient any
#define GEMMEPI_HAS_PRODUCT  1   // 0: k is 0
#define GEMMEPI_PARTS        1   // of the product, params.part elements apart, that are added up
#define GEMMEPI_BLOCKS       1   // that a multiprocessor is to hold: as many as leave registers enough
#endif

constexpr int THREADS = 256, PARTS = GEMMEPI_PARTS;
#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 1200
constexpr int BLOCKS = GEMMEPI_BLOCKS;
#else
constexpr int BLOCKS = GEMMEPI_BLOCKS < 2 ? 1 : 2; // some take a register more here than a third leaves
#endif
// Rows that a thread has under way, and whether as one of them is taken the one as many rows on is loaded in its place: not where
// a row is two runs of the product, or three of F32 in stretches, a gate's two that are saved among them, whose registers hold as much.
constexpr int AT_ONCE = sizeof(Acc) == 8 || GATED || sizeof(GEMMEPI_PRODUCT_TYPE) == 4 ? 1 : 2;
constexpr bool AHEAD = HALVES_IN == 1 && !(GATED && IN_STRETCHES && sizeof(GEMMEPI_AUX_TYPE) == 4);
constexpr bool KEEPS_BIAS = !GATED && !ADDS_COLUMNS; // from row to row

// A thread's rows: `count` of them, blockDim.y apart.
struct Rows {
    long long item, first, column;
    int count, run; // run: elements of each that exist
};

// What a row takes from memory before it is computed.
struct Fetched {
    Read<GEMMEPI_PRODUCT_TYPE> products[HALVES_IN];
    Saved saved;
};

__device__ inline void fetch(const gpi__pass_params &params, const Epilogue_state &state, const Rows &rows, int r, Fetched &fetched) {
    long long row = rows.first + (long long)r * blockDim.y;
    int exists = r < rows.count ? rows.run : 0;
#pragma unroll
    for (int half = 0; half < HALVES_IN; half++)
        fetched.products[half] = read(
            (const GEMMEPI_PRODUCT_TYPE *)params.product.data +
                offset(params.product, rows.item, row, rows.column + half * params.epilogue.n),
            GEMMEPI_HAS_PRODUCT ? exists : 0);
    load_saved(params.epilogue, state, rows.item, row, rows.column, exists, fetched.saved);
#if GEMMEPI_BRINGS
    load_residual(params.epilogue, {rows.item, row, rows.column, exists}, fetched.saved);
#endif
}

// The other parts of the product, some of which are loaded at a time.
__device__ inline void add_parts(const gpi__pass_params &params, const Rows &rows, long long row, Acc (&v)[HALVES][RUN]) {
#pragma unroll
    for (int half = 0; half < HALVES_IN; half++) {
        const GEMMEPI_PRODUCT_TYPE *from =
            (const GEMMEPI_PRODUCT_TYPE *)params.product.data +
            offset(params.product, rows.item, row, rows.column + half * params.epilogue.n);
#pragma unroll (BLOCKS == 1 ? 16 : 4)
        for (int part = 1; part < PARTS; part++) {
            Acc more[RUN];
            to_accs(read(from + part * params.part, rows.run), more);
#pragma unroll
            for (int i = 0; i < RUN; i++)
                v[half][i] = sum(v[half][i], more[i]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) gemmepi_pass(GEMMEPI_PARAMS gpi__pass_params params) {
    const gpi__epilogue_params &p = params.epilogue;
    u32 part = blockIdx.x / p.column_tiles; // item * row_tiles + row tile
    u32 item = part / p.row_tiles;
    long long column = (long long)(blockIdx.x - part * p.column_tiles) * blockDim.x * RUN + threadIdx.x * STRETCH;
    long long row = (long long)(part - item * p.row_tiles) * params.row_steps * blockDim.y + threadIdx.y;
    int most = row >= p.m ? 0 : p.m - row > (long long)params.row_steps * blockDim.y ? params.row_steps : (int)((p.m - row + blockDim.y - 1) / blockDim.y);
    constexpr bool whole = WHOLE && !IN_STRETCHES;
    constexpr int reach = ABREAST * RUN; // no run ends behind so many columns
    int valid = column >= p.n ? 0 : whole || p.n - column >= reach ? reach : (int)(p.n - column);
    Rows rows = {item, row, column, valid ? most : 0, whole ? RUN : valid};
    after_launches_before();
    Epilogue_state state = begin_epilogue(p, PLACES_OF(params), item, column, valid);
    Column_sums<false> sums;
    Of_columns of;
    if (KEEPS_BIAS)
        of = load_columns(p, item, column, valid);
    Fetched ahead[AT_ONCE];
    if (AHEAD)
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++)
            fetch(params, state, rows, r, ahead[r]);
    for (int first = 0; first < (FINDS ? params.row_steps : rows.count); first += AT_ONCE) { // FINDS: all of a warp look for a scale
        if (!AHEAD)
#pragma unroll
            for (int r = 0; r < AT_ONCE; r++)
                fetch(params, state, rows, first + r, ahead[r]);
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            Fetched now = ahead[r];
            Acc v[HALVES][RUN];
            if (AHEAD)
                fetch(params, state, rows, first + r + AT_ONCE, ahead[r]);
            bool exists = first + r < rows.count;
            if (!FINDS && !exists)
                continue;
#pragma unroll
            for (int half = 0; half < HALVES_IN; half++)
                to_accs(now.products[half], v[half]);
            long long at = row + (long long)(first + r) * blockDim.y;
            int run = FINDS && !exists ? 0 : rows.run;
            if (FINDS && at >= p.m)
                at = p.m - 1;
            add_parts(params, rows, at, v);
            epilogue(p, state, KEEPS_BIAS ? of : load_columns(p, item, column, run), now.saved, item, at, column, run, v);
            if constexpr (FINDS)
                store_found_result(p, state, item, at, column, run, v);
            else
                store_result(p, state, item, at, column, run, v);
            if constexpr (ADDS_COLUMNS)
                sums.add(state, exists);
        }
    }
    if constexpr (ADDS_COLUMNS)
        store_sums_of_threads<THREADS>(p, PLACES_OF(params), {threadIdx.x, threadIdx.y, blockDim.x, part, column, valid}, sums.of_lane);
    end_epilogue(p, state);
}
