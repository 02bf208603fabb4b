// One pass over a finished product: the second launch of the route split. A thread takes the same eight columns of
// row_steps rows; with BGRAD a block also leaves the sums of its columns, for sum_columns of reduce.cu to finish.
#include "epilogue.cuh"

#ifndef GEMMEPI_PRODUCT_TYPE
#define GEMMEPI_PRODUCT_TYPE F32 // of the product in memory: F32, F64 or I32
#define GEMMEPI_HAS_PRODUCT  1   // 0: k is 0
#endif

constexpr int THREADS = 256;
constexpr int AT_ONCE = sizeof(Acc) == 8 ? 1 : 4; // rows of the product under way at a time: the stores between them
                                                  // keep the compiler from loading ahead by itself

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_pass(GEMMEPI_PARAMS gemmepi__pass_params params) {
    const gemmepi__epilogue_params &p = params.epilogue;
    u32 part = blockIdx.x / p.column_tiles; // item * row_tiles + row tile
    long long column = (long long)(blockIdx.x - part * p.column_tiles) * blockDim.x * RUN + threadIdx.x * RUN;
    u32 item = part / p.row_tiles;
    long long row = (long long)(part - item * p.row_tiles) * params.row_steps * blockDim.y + threadIdx.y;
    int valid = column >= p.n ? 0 : p.n - column < RUN ? (int)(p.n - column) : RUN;
    Epilogue_state state = begin_epilogue(p, item, column, valid);
    Acc sums[RUN] = {};
    for (int first = 0; first < params.row_steps && valid; first += AT_ONCE) {
        Acc v[AT_ONCE][RUN];
        int exists[AT_ONCE];
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            long long at = row + (long long)(first + r) * blockDim.y;
            exists[r] = first + r < params.row_steps && at < p.m ? valid : 0;
            load<GEMMEPI_PRODUCT_TYPE>(params.product, item, at, column, GEMMEPI_HAS_PRODUCT ? exists[r] : 0, v[r]);
        }
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            long long at = row + (long long)(first + r) * blockDim.y;
            if (!exists[r])
                continue;
            epilogue(p, state, item, at, column, valid, v[r]);
            store_result(p, state, item, at, column, valid, v[r]);
            if (HAS_BGRAD)
#pragma unroll
                for (int i = 0; i < RUN; i++)
                    sums[i] = sum(sums[i], v[r][i]);
        }
    }
    if (HAS_BGRAD)
        store_partials<THREADS>(p, part, column, valid, threadIdx.x, threadIdx.y, blockDim.x, sums);
    end_epilogue(p, state);
}
