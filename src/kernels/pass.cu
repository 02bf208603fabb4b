// One pass over a finished product: the second launch of the route split. A thread takes the same eight columns of
// row_steps rows; with BGRAD a block also leaves the sums of its columns, for sum_columns of reduce.cu to finish.
#include "epilogue.cuh"

constexpr int THREADS = 256;

// Adds the threads' sums over threadIdx.y, a halving at a time, so that the order is always the same.
__device__ inline void store_partials(const gemmepi__pass_params &p, long long part, long long column, int valid,
                                      const Acc (&sums)[RUN]) {
    __shared__ Acc shared[RUN][THREADS];
    int thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
    for (int i = 0; i < RUN; i++)
        shared[i][thread] = sums[i];
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
#pragma unroll
            for (int i = 0; i < RUN; i++)
                shared[i][thread] += shared[i][thread + half * blockDim.x];
    }
    if (threadIdx.y == 0)
        for (int i = 0; i < valid; i++)
            ((Acc *)p.partials)[part * p.n + column + i] = shared[i][thread];
}

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_pass(const __grid_constant__ gemmepi__pass_params p) {
    long long tile = blockIdx.x;
    long long column = ((tile % p.column_tiles) * blockDim.x + threadIdx.x) * RUN;
    long long part = tile / p.column_tiles; // item * row_tiles + row tile
    long long item = part / p.row_tiles;
    long long row = (part % p.row_tiles) * p.row_steps * blockDim.y + threadIdx.y;
    int valid = column >= p.n ? 0 : p.n - column < RUN ? (int)(p.n - column) : RUN;
    Acc alpha = p.device_alpha ? (Acc)*p.device_alpha : (Acc)p.alpha;
    Acc beta = p.device_beta ? (Acc)*p.device_beta : (Acc)p.beta;
    Acc sums[RUN] = {};
    for (int step = 0; step < p.row_steps && row < p.m && valid; step++, row += blockDim.y) {
        Acc v[RUN] = {};
        if (GEMMEPI_HAS_PRODUCT)
            load<Acc>(p.product, item, row, column, valid, v);
        epilogue(p, alpha, beta, item, row, column, valid, v);
        store<GEMMEPI_D_TYPE>(p.d, item, row, column, valid, v);
        if (HAS_BGRAD)
#pragma unroll
            for (int i = 0; i < RUN; i++)
                sums[i] += v[i];
    }
    if (HAS_BGRAD)
        store_partials(p, part, column, valid, sums);
}
