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

// Of a thread's values, the step-th of the number-th layer of a segment, in place.
template <int Segment> __device__ inline void finish(const gpi__network_params &p, int number, int row, int step, float (&v)[VALUES]) {
    typedef Segment_of<Segment> S;
    constexpr int place = FIRST_PLACES[S::FIRST], places = FIRST_PLACES[S::FIRST + 1] - place, in = WIDTHS[S::FIRST], out = WIDTHS[S::FIRST + 1];
    Part part = {row, first_of_step<out>(step), p.rows, out, in};
    S::apply(p.places + place + number * places, part, p.parameter[S::FIRST + number], v);
    cut_columns<out>(part, v);
}
template <int Segment> __device__ inline u32 bias_of(u32 shared, int number) {
    constexpr int first = Segment_of<Segment>::FIRST;
    return shared + BIAS_AT + (columns_before(first) + number * steps_of(WIDTHS[first + 1]) * 16) * 4;
}
template <int Segment> __device__ inline u32 weights_of(u32 shared, int number) {
    constexpr int first = Segment_of<Segment>::FIRST;
    return shared + weights_before(first) + number * weight_bytes(first);
}

// The last layer, where it shares its instructions with none: its columns go to y as they are made, so many steps at a time, and no register keeps them.
template <int Segment, int Steps> __device__ inline void write_steps(const gpi__network_params &p, int row, u32 shared, const Fragments &a, int step) {
    constexpr int in = WIDTHS[LAYERS - 1], out = WIDTHS[LAYERS];
    Part part = {row, first_of_step<out>(step), p.rows, out, in};
    Fragments d;
#pragma unroll
    for (int i = 0; i < Steps; i++) {
        float v[VALUES];
        sum_products<in, out>(a, step + i, weights_of<Segment>(shared, 0), bias_of<Segment>(shared, 0), v);
        finish<Segment>(p, 0, row, step + i, v);
        keep_values(v, i, d);
    }
    write_columns<NETWORK_Y_ALIGNED, Steps>(p.y, p.y_ld, part, 0, d);
}
template <int Segment> __device__ inline void write_layer(const gpi__network_params &p, int row, u32 shared, const Fragments &a) {
    constexpr int whole = steps_of(WIDTHS[LAYERS]) / TOGETHER * TOGETHER;
#pragma unroll 1
    for (int step = 0; step < whole; step += TOGETHER)
        write_steps<Segment, TOGETHER>(p, row, shared, a, step);
    if constexpr (whole < steps_of(WIDTHS[LAYERS]))
        write_steps<Segment, 1>(p, row, shared, a, whole);
}

// This is always true, but the compiler must not know: it would load the next layer's weights before this one is finished, and would lack registers for
// them. Each segment asks something else, because the compiler makes one branch of two that ask the same.
template <int Segment> __device__ inline bool goes_on(const gpi__network_params &p) {
    int rows = 1;
    if (!BY_WGMMA)
        asm volatile("mov.b32 %0, %1;" : "=r"(rows) : "r"(p.rows));
    return rows > -Segment;
}
template <int Segment> __device__ inline void run_segments(const gpi__network_params &p, int row, u32 shared, Fragments &a) {
    typedef Segment_of<Segment> S;
    constexpr bool is_last = S::FIRST + S::COUNT == LAYERS;
    if constexpr (is_last && S::COUNT == 1 && !BY_WGMMA) {
        write_layer<Segment>(p, row, shared, a);
    } else {
#pragma unroll 1
        for (int number = 0; number < S::COUNT; number++) {
            Fragments d;
            make_layer<WIDTHS[S::FIRST], WIDTHS[S::FIRST + 1]>(a, weights_of<Segment>(shared, number), bias_of<Segment>(shared, number), d, [] {},
                                                              [&](int step, float(&v)[VALUES]) { finish<Segment>(p, number, row, step, v); });
            a = d;
        }
        if constexpr (is_last)
            write_rows<WIDTHS[LAYERS], NETWORK_Y_ALIGNED>(p.y, p.y_ld, row, p.rows, a);
        else if (goes_on<Segment>(p))
            run_segments<Segment + 1>(p, row, shared, a);
    }
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
    }
}
