// The gradients of a network in one launch: its layers once more, then back through them, and, with NETWORK_DW, the sums over all of a block's rows of
// the gradients of weights and bias, which reduce.cu adds up.
//
// Each warp has rows of its own. What it makes of them, a layer's input and G, the gradient of its sums, goes to shared memory, in blocks of 512 bytes as
// the weights do: 16 rows, 16 columns, the registers of a fragment one after another. There each warp reads all rows of the block's
// tile, as it adds up some of the gradient of each layer's weights: the transposed input times G, its sums in registers from the first tile to the last.
// The sums of dbias are those of ones times G.
//
// By wgmma (network_wgmma.cuh) the tensor cores add a layer's dw up from shared memory by themselves, while the functions of the layer before it are computed.
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
            put_word(own_block<Width>(matrix, i / steps_of(Width), i % steps_of(Width)) + j * 128 + threadIdx.x % 32 * 4, a.at[i % steps_of(Width)][i / steps_of(Width)][0][j]);
}
template <int Width> __device__ inline void get_rows(u32 matrix, Fragments &a) {
    __syncwarp(); // other lanes have put them
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS * steps_of(Width); i++)
        load_matrices<false>(own_block<Width>(matrix, i / steps_of(Width), i % steps_of(Width)) + threadIdx.x % 32 * 16, a.at[i % steps_of(Width)][i / steps_of(Width)][0]);
}

// >>layers

// Of a step's values, those of rows that do not exist become zeros.
__device__ inline void cut_rows(int row, int rows, int step, Fragments &a) {
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS * 4; i++)
        a.at[step][i / 4][0][i % 4] &= row + i / 4 * 16 + i % 2 * 8 < rows ? 0xffffffffu : 0;
}

// The inputs of all layers behind the Layer-th, whose own is `a`, which becomes that of the last.
template <int Layer> __device__ inline void run_forward(const gpi__network_params &p, int row, u32 shared, Fragments &a) {
    constexpr int in = WIDTHS[Layer], out = WIDTHS[Layer + 1];
    auto put = [&] { put_rows<in>(a, shared + inputs_before(Layer)); };
    if constexpr (Layer + 1 < LAYERS) {
        Fragments d;
        make_layer<in, out>(a, shared + weights_before(Layer), shared + BIAS_AT + columns_before(Layer) * 4, d, put, [&](int step, float(&v)[VALUES]) {
            Part part = {row, first_of_step<out>(step), p.rows, out, in};
            Layer_of<Layer>::apply(p, part, v);
            cut_columns<out>(part, v);
        });
#pragma unroll
        for (int step = 0; step < steps_of(out); step++)
            cut_rows(row, p.rows, step, d);
        a = d;
        run_forward<Layer + 1>(p, row, shared, a);
    } else {
        put();
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
            multiply_16(Element(), sums.at[i][0], g.at[k][i][0], b[0], b[2]);
            multiply_16(Element(), sums.at[i][1], g.at[k][i][0], b[1], b[3]);
        }
    }
    values_of(sums, v);
}
// Of all its columns, begun by wgmma; and waited for, while so many groups behind these go on.
template <int Layer> __device__ inline void begin_input_gradients(Fragments &g, u32 shared, Sums (&sums)[steps_of(WIDTHS[Layer])]) {
    constexpr int out = WIDTHS[Layer + 1];
    begin_products<out, WIDTHS[Layer], true>(g, shared + weights_before(Layer), steps_of(out) * 256, 128, sums);
}
template <int Behind, int Steps> __device__ inline void wait_for_sums(Sums (&sums)[Steps]) {
    multiply_wait<Behind>();
    pin<Steps>(sums);
}
__device__ inline void unpack_values(const Fragments &a, int step, float (&v)[VALUES]) {
#pragma unroll
    for (int i = 0; i < VALUES; i += IN_WORD)
        unpack(word_at(a, step, i / 4, i % 4 / IN_WORD), v + i);
}

// >>sums of dw and dbias

// A layer's dw is divided among warps, rows by so many of them: four, whose rows wgmma multiplies together, or as few registers as can be.
__device__ constexpr int tile_of(int extent, int warps) {
    return (extent + warps - 1) / warps;
}
__device__ constexpr int warps_along_rows(int layer) {
    int best = 4, least = 1 << 30;
    for (int warps = 1; !BY_WGMMA && warps <= WARPS; warps *= 2) {
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
    static constexpr int OWN_ROWS = tile_of(ROWS, ROW_WARPS), OWN_COLUMNS = tile_of(COLUMNS, COLUMN_WARPS), OWN_BIASES = tile_of(OWN_COLUMNS * 2, ROW_WARPS);
    Sums sums[OWN_ROWS][OWN_COLUMNS];
    float biases[OWN_BIASES][4];

    static __device__ inline int row(int i) {
        return i * ROW_WARPS + (int)threadIdx.x / 32 % ROW_WARPS;
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
    static __device__ inline bool has_bias(int j) { // of 8 columns; warps that have the same share their sums out
        return HAS_BIAS && (int)threadIdx.x / 32 % ROW_WARPS == j % ROW_WARPS;
    }

    __device__ inline void begin() {
        memset(sums, 0, sizeof sums);
        memset(biases, 0, sizeof biases);
    }
    __device__ inline void add(u32 input, u32 g) {
        const u32 one = SAME<Element, F16> ? 0x3c003c00 : 0x3f803f80, ones[4] = {one, one, one, one};
        const u32 lane = threadIdx.x % 32, crossed = (lane & 7) * 16 + (lane >> 3 & 1) * 256 + (lane >> 4) * 128; // of a block of four, the second behind the third
        if constexpr (BY_WGMMA)
            begin_add(input, g);
#pragma unroll 2
        for (int block = 0; block < TILE_BLOCKS && (HAS_BIAS || !BY_WGMMA); block++) {
            u32 a[OWN_ROWS][4];
#pragma unroll
            for (int i = 0; i < OWN_ROWS; i++)
                if (!BY_WGMMA && has_row(i))
                    load_matrices<true>(input + (block * ROWS + row(i)) * 512 + crossed, a[i]);
#pragma unroll
            for (int j = 0; j < OWN_COLUMNS; j++)
                if (has_column(j) && (!BY_WGMMA || has_bias(j * 2) || has_bias(j * 2 + 1))) {
                    u32 b[4];
                    load_matrices<true>(g + (block * COLUMNS + column(j)) * 512 + threadIdx.x % 32 * 16, b);
#pragma unroll
                    for (int i = 0; i < OWN_ROWS * 2; i++)
                        if (!BY_WGMMA && has_row(i / 2))
                            multiply_16(Element(), sums[i / 2][j].at[0][i % 2], a[i / 2], b[i % 2 * 2], b[i % 2 * 2 + 1]);
#pragma unroll
                    for (int half = 0; half < 2; half++)
                        if (has_bias(j * 2 + half))
                            multiply_16(Element(), biases[(j * 2 + half) / ROW_WARPS], ones, b[half * 2], b[half * 2 + 1]);
                }
        }
    }
    // By wgmma four warps have each 64 rows of w, from their own on; sums of rows and columns that do not exist are never stored.
    __device__ inline void begin_add(u32 input, u32 g) {
        u64 a = descriptor(input, 256, 128), b = descriptor(g + column(0) * 512, 256, 128);
        pin_all();
        multiply_begin();
#pragma unroll
        for (int block = 0; block < TILE_BLOCKS; block++)
#pragma unroll
            for (int i = 0; i < OWN_ROWS; i++)
                multiply_64<OWN_COLUMNS>(Element(), sums[i], a + (block * ROWS + i * 4) * 32, b + block * COLUMNS * 32);
        multiply_commit();
    }
    __device__ inline void pin_all() {
#pragma unroll
        for (int i = 0; i < OWN_ROWS; i++)
            pin<OWN_COLUMNS>(sums[i]);
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
                    store_sum(to, column_of<HEIGHT>(row(i / 2) * 16 + i % 2 * 8 + lane / 4), column_here, sums[i / 2][j / 4].at[0][j / 2 % 2][i % 2 * 2 + j % 2]);
            if (has_bias(j / 2) && lane < 4 && column_here < WIDTH)
                to[HEIGHT * WIDTH + column_here] = biases[j / 2 / ROW_WARPS][j % 2];
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
    __device__ inline void pin_all() {
        own.pin_all();
        before.pin_all();
    }
    __device__ inline void store(float *to) const {
        own.store(to + sums_before(Layer));
        before.store(to);
    }
};
template <> struct All_gradients<-1> {
    __device__ inline void begin() {}
    __device__ inline void pin_all() {}
    __device__ inline void store(float *) const {}
};

// >>backward

// What G of a layer gives its dw, once it is there for all.
template <int Layer> __device__ inline void add_gradients(u32 shared, const Fragments &g, Gradients<Layer> &gradients) {
    if (HAS_DW) {
        put_rows<WIDTHS[Layer + 1]>(g, shared + g_at(Layer));
        if (BY_WGMMA)
            show_stores();
        __syncthreads();
        gradients.add(shared + inputs_before(Layer), shared + g_at(Layer));
    }
}

// G of the Layer-th of what it has as its input or, for RELU, its result. behind: G of the layer behind it, or dy. Meanwhile `something` is done: with wgmma, whose
// sums of dw go on behind it.
template <int Layer, class Else, class Each>
__device__ inline void make_gradient(u32 shared, Fragments &a, Fragments &behind, Fragments &g, Else something, Each each) {
    constexpr int in = WIDTHS[Layer], out = WIDTHS[Layer + 1];
    constexpr bool is_last = Layer + 1 == LAYERS, of_result = Layer_of<Layer>::IS_OF_RESULT;
    const u32 weights = shared + weights_before(Layer), bias = shared + BIAS_AT + columns_before(Layer) * 4;
    if constexpr (BY_WGMMA) {
        Sums of_dy[steps_of(out)] = {}, sums[steps_of(out)];
        float v[steps_of(out)][VALUES];
        if constexpr (!is_last)
            begin_input_gradients<Layer + 1>(behind, shared, of_dy);
        if constexpr (!of_result)
            begin_layer<in, out>(a, weights, bias, sums);
        something();
        wait_for_sums<HAS_DW && !is_last>(of_dy);
        if constexpr (!of_result)
            pin<steps_of(out)>(sums);
#pragma unroll
        for (int step = 0; step < steps_of(out); step++) {
            float dy[VALUES];
            values_of(of_dy[step], dy);
            if constexpr (!of_result)
                values_of(sums[step], v[step]);
            each(step, dy, v[step]);
        }
        multiply_wait<0>();
#pragma unroll
        for (int step = 0; step < steps_of(out); step++)
            keep_values(v[step], step, g);
    } else {
        something();
#pragma unroll
        for (int step = 0; step < steps_of(out); step++) {
            float v[VALUES], dy[VALUES];
            if constexpr (!of_result)
                sum_products<in, out>(a, step, weights, bias, v);
            if constexpr (!is_last)
                differentiate_input<Layer + 1>(behind, step, shared, dy);
            each(step, dy, v);
            keep_values(v, step, g);
        }
    }
}

// dx, of the first layer's G, while `something` is done.
template <class Else> __device__ inline void make_dx(const gpi__network_params &p, int row, u32 shared, Fragments &g, Else something) {
    constexpr int in = WIDTHS[0];
    Fragments dx;
    Sums sums[steps_of(in)] = {};
    if constexpr (BY_WGMMA)
        begin_input_gradients<0>(g, shared, sums);
    something();
    if constexpr (BY_WGMMA)
        wait_for_sums<HAS_DW>(sums);
#pragma unroll
    for (int step = 0; step < steps_of(in); step++) {
        float v[VALUES];
        if constexpr (BY_WGMMA)
            values_of(sums[step], v);
        else
            differentiate_input<0>(g, step, shared, v);
        keep_values(v, step, dx);
    }
    write_rows<in, NETWORK_X_ALIGNED>(p.dx, p.x_ld, row, p.rows, dx);
}

// From the Layer-th on. behind: G of the layer behind it, or dy. something: what that is yet to give.
template <int Layer, class Else>
__device__ inline void run_backward(const gpi__network_params &p, int row, u32 shared, Fragments &behind, All_gradients<Layer> &gradients, Else something) {
    constexpr int in = WIDTHS[Layer], out = WIDTHS[Layer + 1];
    constexpr bool of_result = Layer_of<Layer>::IS_OF_RESULT; // which the layer behind has as its input
    Fragments a, g;
    get_rows<of_result ? out : in>(shared + inputs_before(Layer + of_result), a);
    make_gradient<Layer>(shared, a, behind, g, something, [&](int step, float(&dy)[VALUES], float(&v)[VALUES]) {
        Part part = {row, first_of_step<out>(step), p.rows, out, in};
        if constexpr (of_result)
            unpack_values(a, step, v);
        if constexpr (Layer + 1 == LAYERS)
            unpack_values(behind, step, dy);
        Layer_of<Layer>::differentiate(p, part, dy, v);
        cut_columns<out>(part, v);
    });
#pragma unroll
    for (int step = 0; step < steps_of(out); step++)
        cut_rows(row, p.rows, step, g);
    auto add = [&] { add_gradients<Layer>(shared, g, gradients.own); };
    if constexpr (Layer > 0)
        run_backward<Layer - 1>(p, row, shared, g, gradients.before, add);
    else if constexpr (HAS_DX)
        make_dx(p, row, shared, g, add);
    else
        add();
}

// Blocks: as many as run at a time, or fewer where there are not so many tiles.
extern "C" __global__ void __launch_bounds__(THREADS, NETWORK_BLOCKS) gemmepi_network_backward(GEMMEPI_PARAMS gpi__network_params params) {
    extern __shared__ __align__(128) u8 memory[];
    u32 shared = (u32)__cvta_generic_to_shared(memory);
    All_gradients<LAYERS - 1> gradients;
    after_launches_before();
    load_layers<0>(params, shared, [&] { load_biases<0>(params, shared); });
    if (BY_WGMMA)
        show_stores();
    gradients.begin();
    for (int tile = blockIdx.x; tile * (long long)TILE_ROWS < params.rows; tile += gridDim.x) {
        int row = tile * TILE_ROWS + (int)threadIdx.x / 32 * WARP_ROWS + (int)threadIdx.x % 32 / 4;
        Fragments a, dy;
        read_rows<WIDTHS[0], NETWORK_X_ALIGNED>(params.x, params.x_ld, row, params.rows, a);
        read_rows<WIDTHS[LAYERS], NETWORK_Y_ALIGNED>(params.dy, params.y_ld, row, params.rows, dy);
        __syncthreads(); // weights are there, and all have read what the tile before left
        run_forward<0>(params, row, shared, a);
        run_backward<LAYERS - 1>(params, row, shared, dy, gradients, [] {});
        if constexpr (BY_WGMMA) {
            multiply_wait<0>();
            gradients.pin_all();
        }
    }
    if (HAS_DW)
        gradients.store(params.partials + (long long)blockIdx.x * sums_before(LAYERS));
}
