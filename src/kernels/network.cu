// A network's layers, one after another, in one launch: y = f(... f(x w + bias) w + bias ...).
//
// A block brings the weights of all layers to shared memory, once; its warps have tiles of rows, and nothing to do with each other from there on.
// Layers side by side that are alike share their instructions. Of few rows (NETWORK_SHARES) a block has 16, whose columns its warps divide: what a warp
// makes of a layer the others read from shared memory, in two places by turns. On Hopper products of more rows are wgmma's (network_wgmma.cuh). Sums are the
// same in each of these, and so are the bits.
#include "network.cuh"

constexpr bool SHARES = NETWORK_SHARES;
constexpr int EXCHANGED_AT = SHARED_OF_WEIGHTS, EXCHANGED_BYTES = STEPS * BLOCK_BYTES;

template <int Segment> struct Segment_of;
#define NETWORK_SEGMENT(segment, first, count, name)                                                                             \
    template <> struct Segment_of<segment> {                                                                                     \
        static constexpr int FIRST = first, COUNT = count;                                                                       \
        static __device__ inline void apply(const gpi__network_operand *places, const Part &part, float parameter, float (&v)[VALUES]) { \
            name::apply(places, part, parameter, v, v);                                                                          \
        }                                                                                                                        \
    };
NETWORK_SEGMENTS(NETWORK_SEGMENT)

// Of 16 columns, the step-th.
__device__ inline void give_to_all(u32 exchanged, int step, const u32 (&a)[PARTS][4]) {
#pragma unroll
    for (int i = 0; i < PARTS; i++)
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(exchanged + step * BLOCK_BYTES + i * 512 + threadIdx.x % 32 * 16), "r"(a[i][0]), "r"(a[i][1]),
                     "r"(a[i][2]), "r"(a[i][3])
                     : "memory");
}
template <int Width> __device__ inline void take_from_all(u32 exchanged, Fragments &a) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < steps_of(Width) * PARTS; i++) {
        u32(&part)[4] = a.at[i / PARTS][0][i % PARTS];
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(part[0]), "=r"(part[1]), "=r"(part[2]), "=r"(part[3])
                     : "r"(exchanged + i * 512 + threadIdx.x % 32 * 16)
                     : "memory");
    }
}

// In and Out: those of each layer of the segment.
template <int Segment, int In, int Out>
__device__ inline void run_layer(const gpi__network_params &p, int number, int row, u32 shared, Fragments &a, Fragments &d) {
    typedef Segment_of<Segment> S;
    constexpr int place = FIRST_PLACES[S::FIRST], places = FIRST_PLACES[S::FIRST + 1] - place;
    u32 weights = shared + weights_before(S::FIRST) + number * weight_bytes(S::FIRST);
    u32 bias = shared + BIAS_AT + (columns_before(S::FIRST) + number * steps_of(Out) * 16) * 4;
    u32 exchanged = shared + EXCHANGED_AT + (S::FIRST + number) % 2 * EXCHANGED_BYTES;
    auto apply = [&](int step, float(&v)[VALUES]) {
        Part part = {row, first_of_step<Out>(step), p.rows, Out, In};
        S::apply(p.places + place + number * places, part, p.parameter[S::FIRST + number], v);
        cut_columns<Out>(part, v);
    };
    if constexpr (!SHARES) {
        make_layer<In, Out>(a, weights, bias, d, [] {}, apply);
    } else {
#pragma unroll
        for (int i = 0; i < (steps_of(Out) + WARPS - 1) / WARPS; i++) {
            int step = i * WARPS + (int)threadIdx.x / 32;
            float v[VALUES];
            if (step >= steps_of(Out))
                break;
            sum_products<In, Out>(a, step, weights, bias, v);
            apply(step, v);
            keep_values(v, i, d);
            give_to_all(exchanged, step, d.at[i][0]);
        }
        take_from_all<Out>(exchanged, d);
    }
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
    int tile = SHARES ? blockIdx.x : blockIdx.x * WARPS + warp;
    Fragments a;
    auto row = [&] { return tile * WARP_ROWS + (int)threadIdx.x % 32 / 4; };
    auto read = [&] { read_rows<WIDTHS[0], NETWORK_X_ALIGNED>(params.x, params.x_ld, row(), params.rows, a); };
    after_launches_before();
    load_layers<0>(params, shared, [&] {
        if (SHARES)
            read();
        load_biases<0>(params, shared);
    });
    if (BY_WGMMA)
        show_stores();
    __syncthreads();
    while ((u32)(BY_WGMMA ? tile / 4 * 4 : tile) * WARP_ROWS < (u32)params.rows) { // four warps go together
        if (!SHARES)
            read();
        run_segments<0>(params, row(), shared, a);
        if (!SHARES || threadIdx.x < 32)
            write_rows<WIDTHS[LAYERS], NETWORK_Y_ALIGNED>(params.y, params.y_ld, row(), params.rows, a);
        tile += SHARES ? gridDim.x : gridDim.x * WARPS;
        if (SHARES) {
            read();
            __syncthreads(); // all have read what this tile leaves
        }
    }
}
