// A network of few rows, whose time is what is waited for: a block has 16, and a warp 16 columns of every layer. The weights of all layers are on their way to
// shared memory, as they are stored, while the first ones are multiplied; what a warp makes of a layer the others read from there, in two places by turns.
// Each number is the sum that network.cu has, in the same order, of a thread that has the same four columns, and so are the bits.
#include "network.cuh"

constexpr int EXCHANGED_AT = SHARED_OF_WEIGHTS, EXCHANGED_BYTES = STEPS * BLOCK_BYTES;
typedef Words<NETWORK_BIAS_TYPE, 4> Bias;

template <int Layer> struct Layer_of;
#define NETWORK_LAYER(layer, name)                                                                                               \
    template <> struct Layer_of<layer> {                                                                                         \
        static __device__ inline void apply(const gpi__network_params &p, const Part &part, float (&v)[VALUES]) {                \
            constexpr int place = FIRST_PLACES[layer];                                                                           \
            name::apply(p.places + place, part, p.parameter[layer], v, v);                                                       \
        }                                                                                                                        \
    };
NETWORK_LAYER_FUNCTIONS(NETWORK_LAYER)

// The four columns of a step that a thread has.
__device__ inline int first_column(int step) {
    return step * 16 + threadIdx.x % 4 * 4;
}
template <int Width> __device__ inline bool has_step(int step) {
    return steps_of(Width) == WARPS || step < steps_of(Width);
}

// >>weights

// Lines of w, in chunks of 16 bytes, whose places in a line are exchanged so that what lanes read at once is in several banks. What does not exist is 0.
// Of each 16 k a thread multiplies by four, and of a warp's columns by two side by side: mma.sync leaves them, with those of another thread, to one thread.
template <int Layer> struct Weights {
    static constexpr int K = WIDTHS[Layer], N = WIDTHS[Layer + 1], LENGTH = TRANSPOSED ? K : N, LINES = TRANSPOSED ? N : K;
    static constexpr int OF_CHUNK = 16 / sizeof(Element), CHUNKS = steps_of(LENGTH) * 16 / OF_CHUNK, ITEMS = steps_of(LINES) * 16 * CHUNKS;
    static constexpr int OF_STEP = TRANSPOSED ? 2 : 4, RUN_OF_LINE = TRANSPOSED ? 4 : 2; // lines, and elements of each
    u32 words[steps_of(K)][OF_STEP][RUN_OF_LINE / IN_WORD];

    static __device__ inline u32 place_of(u32 line, u32 element) {
        constexpr u32 turns = (CHUNKS & -CHUNKS) - 1;
        u32 turn = TRANSPOSED ? line / 2 * 4 : line / 8 * 2;
        return line * CHUNKS * 16 + (element / OF_CHUNK ^ (turn & turns & 7)) * 16 + element % OF_CHUNK * (u32)sizeof(Element);
    }
    static __device__ inline void request(const gpi__network_params &p, u32 to) {
#pragma unroll
        for (int i = 0; i < (ITEMS + THREADS - 1) / THREADS; i++) {
            u32 item = threadIdx.x + i * THREADS, line = item / CHUNKS, first = item % CHUNKS * OF_CHUNK;
            if (ITEMS % THREADS != 0 && item >= ITEMS)
                break;
            bring((const Element *)p.w[Layer], line * LENGTH + first, LINES % 16 == 0 || line < LINES ? LENGTH - (int)first : 0, to + place_of(line, first));
        }
        copies_commit();
    }
    // Of a line of which so many elements are left.
    static __device__ inline void bring(const Element *w, u32 at, int left, u32 to) {
        constexpr bool aligned = NETWORK_W_ALIGNED && LENGTH % 8 == 0;
        const Element *from = w + at;
        if constexpr (aligned && ASYNC) {
            if (K % 16 == 0 && N % 16 == 0)
                left = OF_CHUNK;
            copy_some<16>(to, left > 0 ? from : w, left > 0 ? 16 : 0);
        } else {
            u32 words[4];
            read_words<aligned, OF_CHUNK>(from, left, words);
            put_words(to, words);
        }
    }
    __device__ inline void get(u32 from, int step) {
        u32 column = step * 16 + threadIdx.x % 32 / 4 * 2;
#pragma unroll
        for (int i = 0; i < steps_of(K) * OF_STEP; i++) {
            u32 k = first_of_step<K>(i / OF_STEP), line = i % OF_STEP; // lines turned alike
            get_words(from + (TRANSPOSED ? place_of(column, k) : place_of(k, column)) + line * CHUNKS * 16, words[i / OF_STEP][line]);
        }
    }
    // For mma.sync: of a step's k the part-th instruction's, of a tile of 8 columns; a run's first column is in the first tile, and the next in the second.
    __device__ inline u32 of(int step, int part, int tile, int half) const {
        const u32(&of_step)[OF_STEP][RUN_OF_LINE / IN_WORD] = words[step];
        if constexpr (TRANSPOSED)
            return of_step[tile][(PARTS - 1) * part * 2 + half];
        else if constexpr (PARTS == 2)
            return of_step[part * 2 + half][tile];
        else
            return __byte_perm(of_step[half * 2][0], of_step[half * 2 + 1][0], tile ? 0x7632 : 0x5410);
    }
    __device__ inline void multiply(const Fragments &a, const Bias &bias, float (&v)[VALUES]) const {
        float first[4] = {}, sums[2][4];
        if (HAS_BIAS)
            words_to_acc(bias, first);
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            sums[i % 2][i / 2] = first[i % 4];
#pragma unroll
        for (int i = 0; i < steps_of(K) * PARTS * 2; i++) {
            int k = i / PARTS / 2, part = i / 2 % PARTS, tile = i % 2;
            multiply_16(Element(), sums[tile], a.at[k][0][part], of(k, part, tile, 0), of(k, part, tile, 1));
        }
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            v[i] = sums[i % 2][i / 2];
    }
};
template <> struct Weights<LAYERS> {};

template <int Layer> __device__ inline void request_layers(const gpi__network_params &p, u32 shared) {
    if constexpr (Layer < LAYERS) {
        Weights<Layer>::request(p, shared + weights_before(Layer));
        request_layers<Layer + 1>(p, shared);
    }
}
template <int Layer> __device__ inline void get_weights(u32 shared, int step, Weights<Layer> &weights) {
    if constexpr (Layer < LAYERS)
        if (has_step<WIDTHS[Layer + 1]>(step))
            weights.get(shared + weights_before(Layer), step);
}
// All have what was asked for of the layers up to this one.
template <int Layer> __device__ inline void wait_for_layer() {
    copies_wait<Layer < LAYERS ? LAYERS - 1 - Layer : 0>();
    __syncthreads();
}
template <int Layer> __device__ inline void read_biases(const gpi__network_params &p, int step, Bias (&biases)[LAYERS]) {
    constexpr int out = WIDTHS[Layer + 1];
    const NETWORK_BIAS_TYPE *from = (const NETWORK_BIAS_TYPE *)p.bias[Layer] + first_column(step);
    int left = out - first_column(step);
    if (NETWORK_W_ALIGNED && out % 4 == 0)
        biases[Layer] = left > 0 ? *reinterpret_cast<const Bias *>(from) : Bias{};
    else
        biases[Layer] = words_of(read_elements<4>(from, left));
    if constexpr (Layer + 1 < LAYERS)
        read_biases<Layer + 1>(p, step, biases);
}

// >>layers

// Of 16 columns, the step-th, to where the next layer's mma.sync has them: the thread's four are another thread's, of another step.
template <int Width> __device__ inline void give_to_all(u32 exchanged, int step, const u32 (&a)[PARTS][4]) {
    int lane = threadIdx.x % 32, turned = step / 2 * 2 + lane % 2, from = lane / 4 * 4 + step % 2 * 2 + lane % 4 / 2;
    bool in_eights = step < steps_in_eights(Width);
#pragma unroll
    for (int i = 0; i < PARTS; i++)
        put_words(exchanged + (in_eights ? turned : step) * BLOCK_BYTES + i * 512 + (in_eights ? from : lane) * 16, a[i]);
}
template <int Width> __device__ inline void take_from_all(u32 exchanged, Fragments &a) {
#pragma unroll
    for (int i = 0; i < steps_of(Width) * PARTS; i++)
        get_words(exchanged + i * 512 + threadIdx.x % 32 * 16, a.at[i / PARTS][0][i % PARTS]);
}
// The weights are the thread's; those of the next layer are there, and become so while tensor cores multiply.
template <int Layer>
__device__ inline void run_layers(const gpi__network_params &p, int step, int row, u32 shared, Fragments &a, Weights<Layer> &weights, const Bias (&biases)[LAYERS]) {
    constexpr int in = WIDTHS[Layer], out = WIDTHS[Layer + 1];
    u32 exchanged = shared + EXCHANGED_AT + Layer % 2 * EXCHANGED_BYTES;
    Part part = {row, first_column(step), p.rows, out, in};
    Weights<Layer + 1> next;
    Fragments d;
    float v[VALUES];
    if (has_step<out>(step))
        weights.multiply(a, biases[Layer], v);
    get_weights(shared, step, next);
    if (has_step<out>(step)) {
        Layer_of<Layer>::apply(p, part, v);
        cut_columns<out>(part, v);
        keep_values(v, 0, d);
    }
    if constexpr (Layer + 1 == LAYERS) {
        if (has_step<out>(step))
            write_columns<NETWORK_Y_ALIGNED, 1>(p.y, p.y_ld, part, 0, d);
    } else {
        if (has_step<out>(step))
            give_to_all<out>(exchanged, step, d.at[0][0]);
        wait_for_layer<Layer + 2>();
        take_from_all<out>(exchanged, d);
        run_layers<Layer + 1>(p, step, row, shared, d, next, biases);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_network(GEMMEPI_PARAMS gpi__network_params params) {
    extern __shared__ __align__(128) u8 memory[];
    u32 shared = (u32)__cvta_generic_to_shared(memory);
    int step = threadIdx.x / 32u, row = blockIdx.x * 16 + threadIdx.x % 32u / 4;
    Fragments a;
    Weights<0> weights;
    Bias biases[LAYERS];
    after_launches_before();
    read_rows<WIDTHS[0], NETWORK_X_ALIGNED>(params.x, params.x_ld, row, params.rows, a);
    if (HAS_BIAS)
        read_biases<0>(params, step, biases);
    request_layers<0>(params, shared);
    wait_for_layer<1>();
    get_weights(shared, step, weights);
    run_layers<0>(params, step, row, shared, a, weights, biases);
}
