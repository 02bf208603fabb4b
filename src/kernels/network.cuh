// What the kernels of networks have in common. A warp has 16 rows of a tile for each of NETWORK_ROW_BLOCKS; its numbers stay in registers from
// layer to layer: the sums that mma.sync leaves a thread, rounded, are what it wants of A for the next layer.
//
// Columns, of any layer's result and of x, have positions: those of 8 columns that follow each other (4 of F32) are with one thread, in tiles of 8 positions
// side by side, so that x, y and operands are read and written 16 bytes at a time, straight from and to memory. A layer does not see it, as its weights
// stand so in shared memory: matrices of 8 x 8, 128 bytes, as ldmatrix and wgmma want them, a line of 8 k for each of 8 n; those of the same k follow each
// other. With .trans the same matrix is one of the transposed weights. F32 is multiplied as TF32, of 8 k with an instruction, and a line has 4 k, even
// positions or, in a matrix behind those, odd ones: so a thread's two sums side by side are what the instruction wants 4 k apart.
#pragma once
#include "formula_kinds.cuh"
#include "mma.cuh"
#include "shared_memory.cuh"
#include "network_function.cuh"
#include "params.h"
#include "activation.cuh"
#if NETWORK_HAS_FORMULAS
#include "formula.cuh"
#endif

typedef NETWORK_ELEMENT Element;
constexpr int LAYERS = NETWORK_LAYERS, WIDTHS[] = {NETWORK_WIDTHS}, FIRST_PLACES[] = {NETWORK_FIRST_PLACES};
constexpr int WARPS = NETWORK_WARPS, THREADS = WARPS * 32, ROW_BLOCKS = NETWORK_ROW_BLOCKS, WARP_ROWS = ROW_BLOCKS * 16;
constexpr bool HAS_BIAS = NETWORK_HAS_BIAS, TRANSPOSED = NETWORK_TRANSPOSED, BY_WGMMA = NETWORK_WGMMA;
constexpr int VALUES = ROW_BLOCKS * 8; // of a thread, of 16 columns: four side by side of rows that are 8 apart
constexpr int IN_WORD = 4 / sizeof(Element), WORDS = 4 / IN_WORD;   // values in a word, and words of four of them
constexpr int TOGETHER = IN_WORD; // steps whose columns are side by side, in eights
constexpr int PARTS = sizeof(Element) / 2, BLOCK_BYTES = PARTS * 512; // instructions for 16 k, and bytes of 16 x 16

__device__ constexpr int steps_of(int width) {
    return (width + 15) / 16;
}
__device__ constexpr int weight_bytes(int layer) {
    return steps_of(WIDTHS[layer]) * steps_of(WIDTHS[layer + 1]) * BLOCK_BYTES;
}
__device__ constexpr int weights_before(int layer) {
    int bytes = 0;
    for (int i = 0; i < layer; i++)
        bytes += weight_bytes(i);
    return bytes;
}
__device__ constexpr int columns_before(int layer) { // padded, of results
    int columns = 0;
    for (int i = 0; i < layer; i++)
        columns += steps_of(WIDTHS[i + 1]) * 16;
    return columns;
}
__device__ constexpr int most_steps() {
    int most = 1;
    for (int i = 0; i <= LAYERS; i++)
        most = steps_of(WIDTHS[i]) > most ? steps_of(WIDTHS[i]) : most;
    return most;
}
constexpr int STEPS = most_steps(), BIAS_AT = weights_before(LAYERS), SHARED_OF_WEIGHTS = BIAS_AT + (HAS_BIAS ? columns_before(LAYERS) * 4 : 0);

// A warp's rows of a layer, 16 columns in a step: of each 16 rows what mma.sync has as A.
struct Fragments {
    u32 at[STEPS][ROW_BLOCKS][PARTS][4];
};

// A thread's values of a layer's step: the i-th is in row + i / 4 * 8, column + i % 4.
struct Part {
    int row, column, rows, columns, depth;
};

// >>instructions

// A word of values side by side: two, or one.
__device__ inline u32 pack(const float *v) {
    float first = v[0], second = v[IN_WORD - 1];
    u32 two;
#if __CUDA_ARCH__ >= 800
    if constexpr (SAME<Element, F32>)
        two = __float_as_uint(first);
    else if constexpr (SAME<Element, F16>)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(second), "f"(first));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(second), "f"(first));
#else
    Element x, y;
    from_f32(first, x);
    from_f32(second, y);
    two = (u32)x.bits | (u32)y.bits << 16;
#endif
    return two;
}
__device__ inline void unpack(u32 word, float *v) {
    Words<Element, IN_WORD> words = {word};
    float values[IN_WORD];
    words_to_acc(words, values);
    memcpy(v, values, sizeof values);
}

// >>columns and positions

// Of 32 columns a thread has eight, of 16 that are left, and of F32, four: `first`, of the lane. Of a layer so many steps have columns in eights.
__device__ constexpr int steps_in_eights(int width) {
    return WORDS == 2 ? steps_of(width) / 2 * 2 : 0;
}
template <int Width> __device__ inline int first_of_step(int step) {
    int lane = threadIdx.x % 4;
    return step < steps_in_eights(Width) ? step / 2 * 32 + lane * 8 + step % 2 * 4 : step * 16 + lane * 4;
}
template <int Width> __device__ inline u32 position_of(u32 column) {
    constexpr int wide = steps_in_eights(Width) * 16;
    u32 i = column % 16;
    return (int)column < wide ? column / 32 * 32 + column % 8 / 2 * 8 + column % 32 / 8 * 2 + i % 2 : column / 16 * 16 + i % 4 / 2 * 8 + i / 4 * 2 + i % 2;
}
template <int Width> __device__ inline int column_of(u32 position) {
    constexpr int wide = steps_in_eights(Width) * 16;
    u32 i = position % 16;
    return (int)position < wide ? position / 32 * 32 + position % 8 / 2 * 8 + position % 32 / 8 * 2 + i % 2 : position / 16 * 16 + i % 8 / 2 * 4 + i / 8 * 2 + i % 2;
}

// >>rows from and to memory

// Words of a run of Count elements, of which so many exist. Aligned: all do or none, and they lie at a multiple of their size.
template <bool Aligned, int Count> __device__ inline void read_words(const Element *from, int valid, u32 (&words)[Count / IN_WORD]) {
    Words<Element, Count> run = {};
    if (Aligned) {
        if (valid > 0)
            run = *reinterpret_cast<const Words<Element, Count> *>(from);
    } else {
        run = words_of(read_elements<Count>(from, valid));
    }
    memcpy(words, &run, sizeof words);
}
template <bool Aligned, int Count> __device__ inline void write_words(Element *to, int valid, const u32 (&words)[Count / IN_WORD]) {
    Words<Element, Count> run;
    memcpy(&run, words, sizeof run);
    if (Aligned) {
        if (valid > 0)
            *reinterpret_cast<Words<Element, Count> *>(to) = run;
    } else {
        Run<Element, Count> elements = run_of(run);
#pragma unroll
        for (int i = 0; i < Count; i++)
            if (i < valid)
                to[i] = elements.at[i];
    }
}

// A word of a run that begins in a step, of rows that are 8 apart the i-th.
template <class A> __device__ inline auto &word_at(A &a, int step, int i, int word) {
    return a.at[step + word / WORDS][i / 2][word % WORDS / 2][word % 2 * 2 + i % 2];
}

// The rows of a tile from `row` on, the thread's first, of a matrix that is Width wide. Those that do not exist are zeros. What is read at once is of several
// fragments: ptxas would leave it where it came, and move it ahead of each mma.sync, did it not have to compute it, with a zero that it does not know.
template <int Width, bool Aligned> __device__ inline void read_rows(const void *x, long long ld, int row, int rows, Fragments &a) {
    u32 zero = (u32)rows >> 31;
#pragma unroll
    for (int step = 0; step < steps_of(Width); step++) {
        bool in_eights = step < steps_in_eights(Width);
        int column = first_of_step<Width>(step);
        if (in_eights && step % 2)
            continue; // the step before has read it
#pragma unroll
        for (int i = 0; i < ROW_BLOCKS * 2; i++) {
            int valid = row + i * 8 < rows ? Width - column : 0;
            const Element *from = (const Element *)x + (u32)(row + i * 8) * ld + column;
            u32 words[2 * WORDS], four[WORDS] = {};
            if (in_eights)
                read_words<Aligned, 8>(from, valid, words);
            else
                read_words<Aligned, 4>(from, valid, four);
#pragma unroll
            for (int word = 0; word < (in_eights ? 2 : 1) * WORDS; word++)
                word_at(a, step, i, word) = (in_eights ? words[word] : four[word % WORDS]) | zero;
        }
    }
}
// Columns side by side: those of so many steps of `a` from `step` on, two in eights or one. A row as a number without a sign takes one register.
template <bool Aligned, int Steps> __device__ inline void write_columns(void *y, long long ld, const Part &part, int step, const Fragments &a) {
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS * 2; i++) {
        int row = part.row + i * 8;
        u32 words[Steps * WORDS];
#pragma unroll
        for (int word = 0; word < Steps * WORDS; word++)
            words[word] = word_at(a, step, i, word);
        write_words<Aligned, Steps * 4>((Element *)y + (u32)row * ld + part.column, row < part.rows ? part.columns - part.column : 0, words);
    }
}
template <int Width, bool Aligned> __device__ inline void write_rows(void *y, long long ld, int row, int rows, const Fragments &a) {
#pragma unroll
    for (int step = 0; step < steps_of(Width); step++) {
        Part part = {row, first_of_step<Width>(step), rows, Width, 0};
        if (step >= steps_in_eights(Width))
            write_columns<Aligned, 1>(y, ld, part, step, a);
        else if (step % 2 == 0)
            write_columns<Aligned, TOGETHER>(y, ld, part, step, a);
    }
}

// >>weights

// Eight elements of a line of w, of which so many exist.
template <int Length> __device__ inline Words<Element> read_weights(const Element *w, int line, int lines, int column) {
    return read_run<NETWORK_W_ALIGNED && Length % 8 == 0>(w + line * Length + column, line < lines ? existing(Length - column) : 0);
}

// What a thread brings of a layer's weights: of every line of w, or of every two where these are along k and a word has both, runs of eight elements.
// Threads side by side have lines that are apart, so that what they store goes to several banks.
template <int Layer> struct Loader {
    static constexpr int K = WIDTHS[Layer], N = WIDTHS[Layer + 1], PAIRS = steps_of(N), LENGTH = TRANSPOSED ? K : N;
    static constexpr int OF_LINE = TRANSPOSED ? 1 : IN_WORD, RUNS = steps_of(LENGTH) * 2, LINES = steps_of(TRANSPOSED ? N : K) * 16 / OF_LINE; // a line may be two
    static constexpr int ITEMS = (RUNS * LINES + THREADS - 1) / THREADS;
    Words<Element> runs[ITEMS][OF_LINE];

    static __device__ inline u32 line_of(u32 item) {
        constexpr u32 step = 4 * IN_WORD / OF_LINE, block = 4 * step, whole = LINES / block * block; // lines apart, and of 32 columns or of k, of F32 of 16
        u32 i = item / RUNS;
        return (int)i < (int)whole ? i / block * block + i % 4 * step + i % block / 4 : whole + (i - whole) % 4 * (step / 2) + (i - whole) / 4;
    }
    __device__ inline void read(const void *w) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            u32 item = threadIdx.x + i * THREADS;
#pragma unroll
            for (int j = 0; j < OF_LINE; j++)
                runs[i][j] = read_weights<LENGTH>((const Element *)w, item < RUNS * LINES ? (int)line_of(item) * OF_LINE + j : LINES * 2, TRANSPOSED ? N : K, (int)(item % RUNS) * 8);
        }
    }
    // Of a position of k, of 16 bits two, the first even, and one of n.
    static __device__ constexpr u32 place_of(u32 k, u32 n) {
        if (IN_WORD == 1)
            return ((k / 8 * 2 + k % 2) * PAIRS * 2 + n / 8) * 128 + n % 8 * 16 + k % 8 / 2 * 4;
        return (k / 8 * PAIRS * 2 + n / 8) * 128 + n % 8 * 16 + k % 8 * 2;
    }
    // Of a run, in which four columns side by side may be all that a thread has.
    static __device__ inline u32 turn(u32 item, int i) {
        constexpr int whole = steps_in_eights(LENGTH) * 16;
        u32 first = item % RUNS * 8;
        bool is_whole = whole == steps_of(LENGTH) * 16 || (int)first < whole;
        u32 position = position_of<LENGTH>(first), tile = is_whole ? i / 2 : i % 4 / 2, within = is_whole ? i % 2 : i / 4 * 2 + i % 2;
        return position + tile * 8 + within;
    }
    __device__ inline void put(u32 to) const {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            u32 item = threadIdx.x + i * THREADS, line = line_of(item);
            if (item >= RUNS * LINES)
                break;
#pragma unroll
            for (int j = 0; j < (TRANSPOSED ? WORDS * 2 : 8); j++) {
                u32 word = runs[i][0].at[OF_LINE == 2 ? j / 2 : j], of_k = TRANSPOSED ? turn(item, j * IN_WORD) : position_of<K>(line * OF_LINE);
                if constexpr (OF_LINE == 2)
                    word = __byte_perm(word, runs[i][1].at[j / 2], j % 2 ? 0x7632 : 0x5410);
                put_word(to + place_of(of_k, TRANSPOSED ? position_of<N>(line) : turn(item, j)), word);
            }
        }
    }
};

// Layers are read together as long as a thread has registers for it, so that they are waited for once.
__device__ constexpr int end_of_group(int first) {
    int words = 0, end = first;
    while (end < LAYERS && (end == first || words <= 64)) {
        words += weight_bytes(end) / 4 / THREADS;
        end++;
    }
    return end;
}
// While it waits, it does something else.
template <int Layer, int End, class Else> __device__ inline void load_group(const gpi__network_params &p, u32 shared, Else something) {
    if constexpr (Layer < End) {
        Loader<Layer> loader;
        loader.read(p.w[Layer]);
        load_group<Layer + 1, End>(p, shared, something);
        loader.put(shared + weights_before(Layer));
    } else {
        something();
    }
}
template <int Layer> __device__ inline void load_biases(const gpi__network_params &p, u32 shared) {
    constexpr int out = WIDTHS[Layer + 1];
    int i = threadIdx.x;
    float bias = HAS_BIAS && i < out ? to_f32(((const NETWORK_BIAS_TYPE *)p.bias[Layer])[i]) : 0;
    if constexpr (Layer + 1 < LAYERS)
        load_biases<Layer + 1>(p, shared);
    if (HAS_BIAS && i < steps_of(out) * 16)
        put_word(shared + BIAS_AT + (columns_before(Layer) + i) * 4, __float_as_uint(bias));
}
template <int Layer, class Else> __device__ inline void load_layers(const gpi__network_params &p, u32 shared, Else something) {
    constexpr int end = end_of_group(Layer);
    load_group<Layer, end>(p, shared, something);
    if constexpr (end < LAYERS)
        load_layers<end>(p, shared, [] {});
}

// >>a layer

// As mma.sync leaves them of 16 columns, and in the order of a thread's values.
struct Sums {
    float at[ROW_BLOCKS][2][4];
};
__device__ inline void values_of(const Sums &sums, float (&v)[VALUES]) {
#pragma unroll
    for (int i = 0; i < VALUES; i++)
        v[i] = sums.at[i / 8][i % 4 / 2][i / 4 % 2 * 2 + i % 2];
}

// Of 16 k and 16 n, four matrices: those of the first 8 n (of both 8 k), then of the others.
template <int Out, bool Turned> __device__ inline void load_weights(u32 weights, int k, int n, u32 (&b)[4]) {
    u32 lane = threadIdx.x % 32, line = steps_of(Out) * 256;
    load_matrices<Turned>(weights + k * 2 * line + n * 256 + lane / 8 % 2 * line + lane / 16 * 128 + lane % 8 * 16, b);
}
// Of 16 columns, the step-th, where sums begin: at the bias, if there is one, of the layer, in shared memory.
template <int Out> __device__ inline void begin_sums(int step, u32 bias, Sums &sums) {
    float first[4] = {};
    if (HAS_BIAS)
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(first[0]), "=f"(first[1]), "=f"(first[2]), "=f"(first[3])
                     : "r"(bias + first_of_step<Out>(step) * 4));
#pragma unroll
    for (int i = 0; i < VALUES; i++)
        sums.at[i / 8][i / 4 % 2][i % 4] = first[i / 4 % 2 * 2 + i % 2];
}
// Of 16 columns, the step-th, the sums of a's rows: bias and products. bias, weights: of the layer, in shared memory.
template <int In, int Out> __device__ inline void sum_products(const Fragments &a, int step, u32 weights, u32 bias, float (&v)[VALUES]) {
    Sums sums;
    begin_sums<Out>(step, bias, sums);
#pragma unroll
    for (int k = 0; k < steps_of(In) * PARTS; k++) {
        u32 b[4];
        load_weights<Out, false>(weights, k, step, b);
#pragma unroll
        for (int i = 0; i < ROW_BLOCKS; i++) {
            multiply_16(Element(), sums.at[i][0], a.at[k / PARTS][i][k % PARTS], b[0], b[1]);
            multiply_16(Element(), sums.at[i][1], a.at[k / PARTS][i][k % PARTS], b[2], b[3]);
        }
    }
    values_of(sums, v);
}
__device__ inline void keep_values(const float (&v)[VALUES], int step, Fragments &a) {
#pragma unroll
    for (int i = 0; i < VALUES; i += IN_WORD)
        word_at(a, step, i / 4, i % 4 / IN_WORD) = pack(v + i);
}
// Columns that do not exist are zeros whatever becomes of those.
template <int Width> __device__ inline void cut_columns(const Part &part, float (&v)[VALUES]) {
    if constexpr (Width % 16 != 0)
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            v[i] = part.column + i % 4 < Width ? v[i] : 0;
}

#include "network_wgmma.cuh"

// A layer of a warp's rows, `each` of 16 columns' sums, the step-th, becomes d. With wgmma, which has its fragments until the last sums are there,
// `something` is done while it multiplies.
template <int In, int Out, class Else, class Each>
__device__ inline void make_layer(Fragments &a, u32 weights, u32 bias, Fragments &d, Else something, Each each) {
    if constexpr (BY_WGMMA) {
        Sums sums[steps_of(Out)];
        float v[steps_of(Out)][VALUES];
        begin_layer<In, Out>(a, weights, bias, sums);
        something();
        for_products<Out, 0, 0>(sums, [&](int step) {
            values_of(sums[step], v[step]);
            each(step, v[step]);
        });
#pragma unroll
        for (int step = 0; step < steps_of(Out); step++)
            keep_values(v[step], step, d);
    } else {
        something();
#pragma unroll
        for (int step = 0; step < steps_of(Out); step++) {
            float v[VALUES];
            sum_products<In, Out>(a, step, weights, bias, v);
            each(step, v);
            keep_values(v, step, d);
        }
    }
}

// >>the sums of gradients of weights and bias: a block's, one layer after another, as w and bias are stored

__device__ constexpr int sums_before(int layer) {
    int count = 0;
    for (int i = 0; i < layer; i++)
        count += (WIDTHS[i] + HAS_BIAS) * WIDTHS[i + 1];
    return count;
}

// >>what functions of layers use

template <class Type> using Taken = decltype(taken_as<Type, float>());
template <class Type> __device__ inline Taken<Type> taken(Type x) {
    if constexpr (SAME<Taken<Type>, Type>)
        return x;
    else
        return to_acc<float>(x);
}
template <class T> __device__ inline void for_all(T one, T (&x)[VALUES]) {
#pragma unroll
    for (int i = 0; i < VALUES; i++)
        x[i] = one;
}
// The first Count go behind the others.
template <int Count, class T> __device__ inline void turn_round(T (&x)[VALUES]) {
    T turned[VALUES];
#pragma unroll
    for (int i = 0; i < VALUES; i++)
        turned[i] = x[(i + Count) % VALUES];
    memcpy(x, turned, sizeof x);
}
// Of the values that are in one row, four for F16, two for BF16, whose tails go further.
template <int Activation, bool Backward> __device__ inline void activate_runs(const float (&dy)[VALUES], float (&v)[VALUES]) {
    constexpr int run = SAME<Element, F16> ? 4 : 2;
#pragma unroll
    for (int first = 0; first < VALUES; first += run) {
        float x[run], of_dy[run];
#pragma unroll
        for (int i = 0; i < run; i++) {
            x[i] = v[first + i];
            of_dy[i] = dy[first + i];
        }
        activate_sums<Activation, Backward>(of_dy, x);
#pragma unroll
        for (int i = 0; i < run; i++)
            v[first + i] = x[i];
    }
}
