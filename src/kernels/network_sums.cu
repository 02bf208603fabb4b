// The sums of blocks of network_backward.cu, added up in their order, as dw and dbias of every layer, or onto what is there (NETWORK_ACCUMULATES).
#include "network.cuh"

constexpr int SUMS = 32, LANES = THREADS / SUMS, COUNT = sums_before(LAYERS); // a block has so many sums, each of so many threads

typedef NETWORK_GRADIENT_TYPE Gradient;

template <int Layer> __device__ inline void store_sum(const gpi__network_sums_params &p, int at, float sum) {
    if constexpr (Layer < LAYERS) {
        constexpr int first = sums_before(Layer), weights = WIDTHS[Layer] * WIDTHS[Layer + 1];
        if (at >= sums_before(Layer + 1)) {
            store_sum<Layer + 1>(p, at, sum);
        } else {
            Gradient *to = at < first + weights ? (Gradient *)p.dw[Layer] + (at - first) : (Gradient *)p.dbias[Layer] + (at - first - weights);
            if (NETWORK_ACCUMULATES)
                sum += to_f32(*to);
            from_f32(sum, *to);
        }
    }
}

// Of the i-th sum a thread adds up each LANES-th block.
extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_network_sums(GEMMEPI_PARAMS gpi__network_sums_params params) {
    __shared__ float parts[LANES][SUMS];
    int mine = threadIdx.x % SUMS, lane = threadIdx.x / SUMS, at = blockIdx.x * SUMS + mine;
    float sum = 0;
    after_launches_before();
    if (at < COUNT)
#pragma unroll 8
        for (int i = lane; i < params.count; i += LANES)
            sum += params.partials[(long long)i * COUNT + at];
    parts[lane][mine] = sum;
    __syncthreads();
    if (lane > 0 || at >= COUNT)
        return;
#pragma unroll
    for (int i = 1; i < LANES; i++)
        sum += parts[i][mine];
    store_sum<0>(params, at, sum);
}
