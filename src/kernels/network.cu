// A network's layers, one after another, in one launch: y = f(... f(x w + bias) w + bias ...).
//
// A block brings the weights of all layers to shared memory, once; its warps have tiles of rows, and nothing to do with each other from there on.
// Layers side by side that are alike share their instructions. On Hopper products are wgmma's (network_wgmma.cuh). Sums are the same in both, and so are the
// bits.
#include "network.cuh"

template <int Segment> struct Segment_of;
#define NETWORK_SEGMENT(segment, first, count, name)                                                                             \
    template <> struct Segment_of<segment> {                                                                                     \
        static constexpr int FIRST = first, COUNT = count;                                                                       \
        static __device__ inline void apply(const gpi__network_operand *places, const Part &part, float parameter, float (&v)[VALUES]) { \
            name::apply(places, part, parameter, v, v);                                                                          \
        }                                                                                                                        \
    };
NETWORK_SEGMENTS(NETWORK_SEGMENT)

// In and Out: those of each layer of the segment.
template <int Segment, int In, int Out>
__device__ inline void run_layer(const gpi__network_params &p, int number, int row, u32 shared, Fragments &a, Fragments &d) {
    typedef Segment_of<Segment> S;
    constexpr int place = FIRST_PLACES[S::FIRST], places = FIRST_PLACES[S::FIRST + 1] - place;
    u32 weights = shared + weights_before(S::FIRST) + number * weight_bytes(S::FIRST);
    u32 bias = shared + BIAS_AT + (columns_before(S::FIRST) + number * steps_of(Out) * 16) * 4;
    auto apply = [&](int step, float(&v)[VALUES]) {
        Part part = {row, first_of_step<Out>(step), p.rows, Out, In};
        S::apply(p.places + place + number * places, part, p.parameter[S::FIRST + number], v);
        cut_columns<Out>(part, v);
    };
    make_layer<In, Out>(a, weights, bias, d, [] {}, apply);
}
template <int Segment> __device__ inline void run_segments(const gpi__network_params &p, int row, u32 shared, Fragments &a) {
    typedef Segment_of<Segment> S;
    constexpr int in = WIDTHS[S::FIRST], out = WIDTHS[S::FIRST + 1];
#pragma unroll 1
    for (int number = 0; number < S::COUNT; number++) {
        Fragments d;
        run_layer<Segment, in, out>(p, number, row, shared, a, d);
        a = d;
    }
    if constexpr (S::FIRST + S::COUNT < LAYERS)
        run_segments<Segment + 1>(p, row, shared, a);
}

// Blocks: as many as run at a time, or fewer where there are not so many tiles.
extern "C" __global__ void __launch_bounds__(THREADS, NETWORK_BLOCKS) gemmepi_network(GEMMEPI_PARAMS gpi__network_params params) {
    extern __shared__ __align__(128) u8 memory[];
    u32 shared = (u32)__cvta_generic_to_shared(memory);
    int warp = BY_WGMMA ? __shfl_sync(0xffffffff, (int)threadIdx.x / 32, 0) : (int)threadIdx.x / 32; // the same in all lanes, as far as the compiler knows
    int tile = blockIdx.x * WARPS + warp;
    after_launches_before();
    load_layers<0>(params, shared, [&] { load_biases<0>(params, shared); });
    if (BY_WGMMA)
        show_stores();
    __syncthreads();
    for (; (u32)(BY_WGMMA ? tile / 4 * 4 : tile) * WARP_ROWS < (u32)params.rows; tile += gridDim.x * WARPS) { // four warps go together
        int row = tile * WARP_ROWS + (int)threadIdx.x % 32 / 4;
        Fragments a;
        read_rows<WIDTHS[0], NETWORK_X_ALIGNED>(params.x, params.x_ld, row, params.rows, a);
        run_segments<0>(params, row, shared, a);
        write_rows<WIDTHS[LAYERS], NETWORK_Y_ALIGNED>(params.y, params.y_ld, row, params.rows, a);
    }
}
