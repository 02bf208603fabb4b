// One pass over a finished product: the second launch of the route split. A thread takes the same eight columns of
// row_steps rows; with BGRAD a block also leaves the sums of its columns, for sum_columns of reduce.cu to finish.
#include "epilogue.cuh"

#ifndef GEMMEPI_PRODUCT_TYPE
#define GEMMEPI_PRODUCT_TYPE F32 // of the product in memory; of an upstream gradient any
#define GEMMEPI_HAS_PRODUCT  1   // 0: k is 0
#endif

constexpr int THREADS = 256;
// Rows under way at a time: the stores between them keep the compiler from loading ahead by itself. Elements that are loaded
// one by one take a predicate each, of which a thread has seven; so do the masks of older chips.
#if __CUDA_ARCH__ < 800
constexpr int MOST_AT_ONCE = BACKWARD ? 2 : 4;
#else
constexpr int MOST_AT_ONCE = 4;
#endif
constexpr int AT_ONCE = sizeof(Acc) == 8 ? 1 : GATED ? (ALIGNED ? 2 : 1) : MOST_AT_ONCE;

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_pass(GEMMEPI_PARAMS gemmepi__pass_params params) {
    const gemmepi__epilogue_params &p = params.epilogue;
    u32 part = blockIdx.x / p.column_tiles; // item * row_tiles + row tile
    long long column = (long long)(blockIdx.x - part * p.column_tiles) * blockDim.x * RUN + threadIdx.x * RUN;
    u32 item = part / p.row_tiles;
    long long row = (long long)(part - item * p.row_tiles) * params.row_steps * blockDim.y + threadIdx.y;
    int valid = column >= p.n ? 0 : p.n - column < RUN ? (int)(p.n - column) : RUN;
    Epilogue_state state = begin_epilogue(p, item, column, valid);
    Acc sums[HALVES_OUT][RUN] = {};
    for (int first = 0; first < params.row_steps && valid; first += AT_ONCE) {
        Words<GEMMEPI_PRODUCT_TYPE> products[AT_ONCE][HALVES_IN];
        Saved saved[AT_ONCE];
        int exists[AT_ONCE];
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            long long at = row + (long long)(first + r) * blockDim.y;
            exists[r] = first + r < params.row_steps && at < p.m ? valid : 0;
#pragma unroll
            for (int half = 0; half < HALVES_IN; half++)
                products[r][half] = read_run<ALIGNED>((const GEMMEPI_PRODUCT_TYPE *)params.product.data +
                                                          offset(params.product, item, at, column + half * p.n),
                                                      GEMMEPI_HAS_PRODUCT ? exists[r] : 0);
            load_saved(p, item, at, column, exists[r], saved[r]);
        }
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            long long at = row + (long long)(first + r) * blockDim.y;
            Acc v[HALVES][RUN];
            if (!exists[r])
                continue;
#pragma unroll
            for (int half = 0; half < HALVES_IN; half++)
                run_to_acc(run_of(products[r][half]), v[half]);
            epilogue(p, state, saved[r], item, at, column, valid, v);
            store_result(p, state, item, at, column, valid, v);
            if (HAS_BGRAD)
#pragma unroll
                for (int i = 0; i < HALVES_OUT * RUN; i++)
                    sums[i / RUN][i % RUN] = sum(sums[i / RUN][i % RUN], v[i / RUN][i % RUN]);
        }
    }
    if (HAS_BGRAD)
        store_partials<THREADS>(p, part, column, valid, threadIdx.x, threadIdx.y, blockDim.x, sums);
    end_epilogue(p, state);
}
