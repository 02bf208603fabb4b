// One pass over a finished product: the second launch of the route split. A thread takes the same eight columns of
// row_steps rows; with BGRAD a block also leaves the sums of its columns, for sum_columns of reduce.cu to finish.
#include "epilogue.cuh"

constexpr int THREADS = 256;
constexpr int AT_ONCE = sizeof(Acc) == 8 ? 1 : 4; // rows of the product under way at a time: the stores between them
                                                  // keep the compiler from loading ahead by itself

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

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_pass(GEMMEPI_PARAMS gemmepi__pass_params p) {
    u32 part = blockIdx.x / p.column_tiles; // item * row_tiles + row tile
    long long column = (long long)(blockIdx.x - part * p.column_tiles) * blockDim.x * RUN + threadIdx.x * RUN;
    u32 item = part / p.row_tiles;
    long long row = (long long)(part - item * p.row_tiles) * p.row_steps * blockDim.y + threadIdx.y;
    int valid = column >= p.n ? 0 : p.n - column < RUN ? (int)(p.n - column) : RUN;
    Acc alpha = p.device_alpha ? (Acc)*p.device_alpha : (Acc)p.alpha;
    Acc beta = p.device_beta ? (Acc)*p.device_beta : (Acc)p.beta;
    Acc sums[RUN] = {};
    for (int first = 0; first < p.row_steps && valid; first += AT_ONCE) {
        Acc v[AT_ONCE][RUN];
        int exists[AT_ONCE];
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            long long at = row + (long long)(first + r) * blockDim.y;
            exists[r] = first + r < p.row_steps && at < p.m ? valid : 0;
            load<Acc>(p.product, item, at, column, GEMMEPI_HAS_PRODUCT ? exists[r] : 0, v[r]);
        }
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            long long at = row + (long long)(first + r) * blockDim.y;
            if (!exists[r])
                continue;
            epilogue(p, alpha, beta, item, at, column, valid, v[r]);
            store<GEMMEPI_D_TYPE>(p.d, item, at, column, valid, v[r]);
            if (HAS_BGRAD)
#pragma unroll
                for (int i = 0; i < RUN; i++)
                    sums[i] += v[r][i];
        }
    }
    if (HAS_BGRAD)
        store_partials(p, part, column, valid, sums);
}
