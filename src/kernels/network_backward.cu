// The gradients of a network in one launch: its layers once more, then back through them, and, with NETWORK_DW, the sums over all of a block's rows of
// the gradients of weights and bias, which network_sums.cu adds up.
//
// Each warp has rows of its own. What it makes of them, a layer's input and G, the gradient of its sums, goes to shared memory, in blocks of 512 bytes as
// the weights do: 16 rows, 16 columns, the registers of a fragment one after another. There each warp reads all rows of the block's
// tile, as it adds up some of the gradient of each layer's weights: the transposed input times G, its sums in registers from the first tile to the last.
// The sums of dbias are those of ones times G.
//
// Rows and columns that do not exist are zeros there, whatever a formula makes of them.
#include "network.cuh"

constexpr int TILE_BLOCKS = WARPS * ROW_BLOCKS, TILE_ROWS = TILE_BLOCKS * 16;
constexpr bool HAS_DX = NETWORK_HAS_DX, HAS_DW = NETWORK_HAS_DW;

template <int Layer> struct Layer_of;
#define NETWORK_LAYER(layer, forward, gradient)                                                                                            \
    template <> struct Layer_of<layer> {                                                                                                   \
        static constexpr bool IS_OF_RESULT = gradient::IS_OF_RESULT && layer + 1 < LAYERS;                                                 \
        static __device__ inline void apply(const gpi__network_params &p, const Part &part, float (&v)[VALUES]) {                          \
            constexpr int place = FIRST_PLACES[layer];                                                                                     \
            forward::apply(p.places + place, part, p.parameter[layer], v, v);                                                              \
        }                                                                                                                                  \
        static __device__ inline void differentiate(const gpi__network_params &p, const Part &part, const float (&dy)[VALUES], float (&v)[VALUES]) { \
            constexpr int place = FIRST_PLACES[layer];                                                                                     \
            gradient::apply(p.places + place, part, p.parameter[layer], dy, v);                                                            \
        }                                                                                                                                  \
    };
NETWORK_LAYER_FUNCTIONS(NETWORK_LAYER)

// >>shared memory: weights, the layers' inputs, and G of two layers by turns

__device__ constexpr int inputs_before(int layer) {
    int bytes = SHARED_OF_WEIGHTS;
    for (int i = 0; i < layer; i++)
        bytes += steps_of(WIDTHS[i]) * TILE_BLOCKS * 512;
    return bytes;
}
constexpr int G_BYTES = STEPS * TILE_BLOCKS * 512;
__device__ constexpr int g_at(int layer) {
    return inputs_before(LAYERS) + layer % 2 * G_BYTES;
}

// A warp's own rows of what is Width wide.
template <int Width> __device__ inline u32 own_block(u32 matrix, int i, int step) {
    return matrix + (((int)threadIdx.x / 32 * ROW_BLOCKS + i) * steps_of(Width) + step) * 512;
}
template <int Width> __device__ inline void put_rows(const Fragments &a, u32 matrix) {
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS * steps_of(Width); i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            put_word(own_block<Width>(matrix, i / steps_of(Width), i % steps_of(Width)) + j * 128 + threadIdx.x % 32 * 4, a.at[i % steps_of(Width)][i / steps_of(Width)][j]);
}
template <int Width> __device__ inline void get_rows(u32 matrix, Fragments &a) {
    __syncwarp(); // other lanes have put them
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS * steps_of(Width); i++)
        load_matrices<false>(own_block<Width>(matrix, i / steps_of(Width), i % steps_of(Width)) + threadIdx.x % 32 * 16, a.at[i % steps_of(Width)][i / steps_of(Width)]);
}

// >>layers

// Of a step's values, those of rows that do not exist become zeros.
__device__ inline void cut_rows(const Part &part, int step, Fragments &a) {
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS * 4; i++)
        a.at[step][i / 4][i % 4] &= part.row + i / 4 * 16 + i % 2 * 8 < part.rows ? 0xffffffffu : 0;
}

// The inputs of all layers behind the Layer-th, whose own is `a`, which becomes that of the last.
template <int Layer> __device__ inline void run_forward(const gpi__network_params &p, int row, u32 shared, Fragments &a) {
    constexpr int in = WIDTHS[Layer], out = WIDTHS[Layer + 1];
    put_rows<in>(a, shared + inputs_before(Layer));
    if constexpr (Layer + 1 < LAYERS) {
        Fragments d;
#pragma unroll
        for (int step = 0; step < steps_of(out); step++) {
            float v[VALUES];
            Part part = {row, first_of_step<out>(step), p.rows, out, in};
            sum_products<in, out>(a, step, shared + weights_before(Layer), shared + BIAS_AT + columns_before(Layer) * 4, v);
            Layer_of<Layer>::apply(p, part, v);
            cut_columns<out>(part, v);
            keep_values(v, step, d);
            cut_rows(part, step, d);
        }
        a = d;
        run_forward<Layer + 1>(p, row, shared, a);
    }
}

// Of 16 columns of the layer's input, the step-th, the gradient: G times the transposed weights.
template <int Layer> __device__ inline void differentiate_input(const Fragments &g, int step, u32 shared, float (&v)[VALUES]) {
    constexpr int out = WIDTHS[Layer + 1];
    Sums sums = {};
#pragma unroll
    for (int k = 0; k < steps_of(out); k++) {
        u32 b[4];
        load_weights<out, true>(shared + weights_before(Layer), step, k, b);
#pragma unroll
        for (int i = 0; i < ROW_BLOCKS; i++) {
            multiply_16(Element(), sums.at[i][0], g.at[k][i], b[0], b[2]);
            multiply_16(Element(), sums.at[i][1], g.at[k][i], b[1], b[3]);
        }
    }
    values_of(sums, v);
}
__device__ inline void unpack_values(const Fragments &a, int step, float (&v)[VALUES]) {
#pragma unroll
    for (int i = 0; i < VALUES; i += 2)
        unpack(a.at[step][i / 8][i / 4 % 2 + i % 4 / 2 * 2], v[i], v[i + 1]);
}

// >>sums of dw and dbias

// A layer's dw is divided among warps, rows by so many of them, as few registers as can be.
__device__ constexpr int tile_of(int extent, int warps) {
    return (extent + warps - 1) / warps;
}
__device__ constexpr int warps_along_rows(int layer) {
    int best = 1, least = 1 << 30;
    for (int warps = 1; warps <= WARPS; warps *= 2) {
        int rows = tile_of(steps_of(WIDTHS[layer]), warps), columns = tile_of(steps_of(WIDTHS[layer + 1]), WARPS / warps);
        int cost = rows * columns * 64 + rows + columns;
        if (cost < least) {
            least = cost;
            best = warps;
        }
    }
    return best;
}
template <int Layer> struct Gradients {
    static constexpr int HEIGHT = WIDTHS[Layer], WIDTH = WIDTHS[Layer + 1], ROW_WARPS = warps_along_rows(Layer), COLUMN_WARPS = WARPS / ROW_WARPS;
    static constexpr int ROWS = steps_of(HEIGHT), COLUMNS = steps_of(WIDTH); // blocks of 16 of w's rows and columns: all, and a warp's
    static constexpr int OWN_ROWS = tile_of(ROWS, ROW_WARPS), OWN_COLUMNS = tile_of(COLUMNS, COLUMN_WARPS), OWN_BIASES = tile_of(OWN_COLUMNS, ROW_WARPS);
    float sums[OWN_ROWS][OWN_COLUMNS][2][4], biases[OWN_BIASES][2][4];

    static __device__ inline int row(int i) {
        return (int)threadIdx.x / 32 % ROW_WARPS * OWN_ROWS + i;
    }
    static __device__ inline int column(int j) {
        return (int)threadIdx.x / 32 / ROW_WARPS * OWN_COLUMNS + j;
    }
    static __device__ inline bool has_row(int i) {
        return ROW_WARPS * OWN_ROWS == ROWS || row(i) < ROWS;
    }
    static __device__ inline bool has_column(int j) {
        return COLUMN_WARPS * OWN_COLUMNS == COLUMNS || column(j) < COLUMNS;
    }
    static __device__ inline bool has_bias(int j) { // warps that have the same columns share their sums out
        return HAS_BIAS && (int)threadIdx.x / 32 % ROW_WARPS == j % ROW_WARPS;
    }

    __device__ inline void begin() {
        memset(sums, 0, sizeof sums);
        memset(biases, 0, sizeof biases);
    }
    __device__ inline void add(u32 input, u32 g) {
        const u32 one = SAME<Element, F16> ? 0x3c003c00 : 0x3f803f80, ones[4] = {one, one, one, one};
        const u32 lane = threadIdx.x % 32, crossed = (lane & 7) * 16 + (lane >> 3 & 1) * 256 + (lane >> 4) * 128; // of a block of four, the second behind the third
#pragma unroll 2
        for (int block = 0; block < TILE_BLOCKS; block++) {
            u32 a[OWN_ROWS][4];
#pragma unroll
            for (int i = 0; i < OWN_ROWS; i++)
                if (has_row(i))
                    load_matrices<true>(input + (block * ROWS + row(i)) * 512 + crossed, a[i]);
#pragma unroll
            for (int j = 0; j < OWN_COLUMNS; j++)
                if (has_column(j)) {
                    u32 b[4];
                    load_matrices<true>(g + (block * COLUMNS + column(j)) * 512 + threadIdx.x % 32 * 16, b);
#pragma unroll
                    for (int i = 0; i < OWN_ROWS * 2; i++)
                        if (has_row(i / 2))
                            multiply_16(Element(), sums[i / 2][j][i % 2], a[i / 2], b[i % 2 * 2], b[i % 2 * 2 + 1]);
                    if (has_bias(j)) {
                        multiply_16(Element(), biases[j / ROW_WARPS][0], ones, b[0], b[1]);
                        multiply_16(Element(), biases[j / ROW_WARPS][1], ones, b[2], b[3]);
                    }
                }
        }
    }

    static __device__ inline void store_sum(float *to, int row, int column, float sum) {
        if (row < HEIGHT && column < WIDTH)
            to[TRANSPOSED ? column * HEIGHT + row : row * WIDTH + column] = sum;
    }
    __device__ inline void store(float *to) const {
        int lane = threadIdx.x % 32;
#pragma unroll
        for (int j = 0; j < OWN_COLUMNS * 4; j++) {
            int column_here = column_of<WIDTH>(column(j / 4) * 16 + j / 2 % 2 * 8 + lane % 4 * 2 + j % 2);
            if (!has_column(j / 4))
                break;
#pragma unroll
            for (int i = 0; i < OWN_ROWS * 2; i++)
                if (has_row(i / 2))
                    store_sum(to, column_of<HEIGHT>(row(i / 2) * 16 + i % 2 * 8 + lane / 4), column_here, sums[i / 2][j / 4][j / 2 % 2][i % 2 * 2 + j % 2]);
            if (has_bias(j / 4) && lane < 4 && column_here < WIDTH)
                to[HEIGHT * WIDTH + column_here] = biases[j / 4 / ROW_WARPS][j / 2 % 2][j % 2];
        }
    }
};

// Those of the Layer-th and all before it.
template <int Layer> struct All_gradients {
    Gradients<Layer> own;
    All_gradients<Layer - 1> before;
    __device__ inline void begin() {
        own.begin();
        before.begin();
    }
    __device__ inline void store(float *to) const {
        own.store(to + sums_before(Layer));
        before.store(to);
    }
};
template <> struct All_gradients<-1> {
    __device__ inline void begin() {}
    __device__ inline void store(float *) const {}
};

// >>backward

// From the Layer-th on. behind: G of the layer behind it, or dy.
template <int Layer>
__device__ inline void run_backward(const gpi__network_params &p, int row, u32 shared, const Fragments &behind, All_gradients<Layer> &gradients) {
    constexpr int in = WIDTHS[Layer], out = WIDTHS[Layer + 1];
    constexpr bool of_result = Layer_of<Layer>::IS_OF_RESULT; // which the layer behind has as its input
    Fragments a, g;
    get_rows<of_result ? out : in>(shared + inputs_before(Layer + of_result), a);
#pragma unroll
    for (int step = 0; step < steps_of(out); step++) {
        float v[VALUES], dy[VALUES];
        Part part = {row, first_of_step<out>(step), p.rows, out, in};
        if constexpr (of_result)
            unpack_values(a, step, v);
        else
            sum_products<in, out>(a, step, shared + weights_before(Layer), shared + BIAS_AT + columns_before(Layer) * 4, v);
        if constexpr (Layer + 1 < LAYERS)
            differentiate_input<Layer + 1>(behind, step, shared, dy);
        else
            unpack_values(behind, step, dy);
        Layer_of<Layer>::differentiate(p, part, dy, v);
        cut_columns<out>(part, v);
        keep_values(v, step, g);
        cut_rows(part, step, g);
    }
    if (HAS_DW) {
        put_rows<out>(g, shared + g_at(Layer));
        __syncthreads();
        gradients.own.add(shared + inputs_before(Layer), shared + g_at(Layer));
    }
    if constexpr (Layer > 0) {
        run_backward<Layer - 1>(p, row, shared, g, gradients.before);
    } else if (HAS_DX) {
#pragma unroll
        for (int step = 0; step < steps_of(in); step++) {
            float v[VALUES];
            differentiate_input<0>(g, step, shared, v);
            keep_values(v, step, a);
        }
        write_rows<in, NETWORK_X_ALIGNED>(p.dx, p.x_ld, row, p.rows, a);
    }
}

// Blocks: as many as run at a time, or fewer where there are not so many tiles.
extern "C" __global__ void __launch_bounds__(THREADS, NETWORK_BLOCKS) gemmepi_network_backward(GEMMEPI_PARAMS gpi__network_params params) {
    extern __shared__ __align__(128) u8 memory[];
    u32 shared = (u32)__cvta_generic_to_shared(memory);
    All_gradients<LAYERS - 1> gradients;
    after_launches_before();
    load_layers<0>(params, shared, [&] { load_biases<0>(params, shared); });
    gradients.begin();
    for (int tile = blockIdx.x; tile * (long long)TILE_ROWS < params.rows; tile += gridDim.x) {
        int row = tile * TILE_ROWS + (int)threadIdx.x / 32 * WARP_ROWS + (int)threadIdx.x % 32 / 4;
        Fragments a, dy;
        read_rows<WIDTHS[0], NETWORK_X_ALIGNED>(params.x, params.x_ld, row, params.rows, a);
        read_rows<WIDTHS[LAYERS], NETWORK_Y_ALIGNED>(params.dy, params.y_ld, row, params.rows, dy);
        __syncthreads(); // weights are there, and all have read what the tile before left
        run_forward<0>(params, row, shared, a);
        run_backward<LAYERS - 1>(params, row, shared, dy, gradients);
    }
    if (HAS_DW)
        gradients.store(params.partials + (long long)blockIdx.x * sums_before(LAYERS));
}
