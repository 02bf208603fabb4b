// The element-wise operations: what each computes for one index. With its row in gpi__operations and its twin on the
// host this is all that there is of an operation; elementwise.cu and sum.cu bring the values.
#pragma once
#include "types.cuh"
#include "activation.cuh"
#include "amax.cuh"
#include "params.h"

// The prologue defines these for the operation at hand; the values here let the file compile by itself.
#ifndef GEMMEPI_OPERATION
#define GEMMEPI_OPERATION  1 // the public value
#define GEMMEPI_ACTIVATION CODE_SILU // the public value
#define GEMMEPI_USED       0x11 // bit t: tensor t of the enum below is read or written
#define GEMMEPI_ACC        F32
#define GEMMEPI_A_TYPE     F32
#define GEMMEPI_B_TYPE     F32
#define GEMMEPI_W_TYPE     F32
#define GEMMEPI_DY_TYPE    F32
#define GEMMEPI_Y_TYPE     F32
#define GEMMEPI_DA_TYPE    F32
#define GEMMEPI_DB_TYPE    F32
#define GEMMEPI_DW_TYPE    F32
#define GEMMEPI_CAST       0 // what goes with a cast: bits 1 scale, 2 amax
#endif

typedef GEMMEPI_ACC Acc;

enum { IN_A, IN_B, IN_W, IN_DY, OUT_Y, OUT_DA, OUT_DB, OUT_DW, TENSORS };
enum {
    OP_ACTIVATION = 1, OP_ACTIVATION_BACKWARD, OP_GATED, OP_GATED_BACKWARD, OP_LERP, OP_LERP_BACKWARD, OP_BIAS_GRAD, OP_CAST
};

template <int Tensor> struct Type_of;
template <> struct Type_of<IN_A> { typedef GEMMEPI_A_TYPE type; };
template <> struct Type_of<IN_B> { typedef GEMMEPI_B_TYPE type; };
template <> struct Type_of<IN_W> { typedef GEMMEPI_W_TYPE type; };
template <> struct Type_of<IN_DY> { typedef GEMMEPI_DY_TYPE type; };
template <> struct Type_of<OUT_Y> { typedef GEMMEPI_Y_TYPE type; };
template <> struct Type_of<OUT_DA> { typedef GEMMEPI_DA_TYPE type; };
template <> struct Type_of<OUT_DB> { typedef GEMMEPI_DB_TYPE type; };
template <> struct Type_of<OUT_DW> { typedef GEMMEPI_DW_TYPE type; };
template <int Tensor> using Type = typename Type_of<Tensor>::type;

typedef Amax_of<Type<IN_A>> Amax; // holds every value of a
typedef decltype(magnitude(Amax())) Magnitude;

template <int Tensor> constexpr bool USED = (GEMMEPI_USED >> Tensor & 1) != 0;
constexpr bool CAST_SCALE = (GEMMEPI_CAST & 1) != 0, CAST_AMAX = (GEMMEPI_CAST & 2) != 0;

#define GEMMEPI_EACH_INPUT(DO)  DO(IN_A, a) DO(IN_B, b) DO(IN_W, w) DO(IN_DY, dy)
#define GEMMEPI_EACH_OUTPUT(DO) DO(OUT_Y, y) DO(OUT_DA, da) DO(OUT_DB, db) DO(OUT_DW, dw)

// The bytes of the largest element decide how many go into one access of 16 bytes.
template <int Tensor> constexpr int SIZE = USED<Tensor> ? sizeof(Type<Tensor>) : 1;
template <int X, int Y> constexpr int LARGER = X > Y ? X : Y;
template <int Tensor> constexpr int LARGER_PAIR = LARGER<SIZE<Tensor>, SIZE<Tensor + 1>>;
constexpr int LARGEST_SIZE =
    LARGER<LARGER<LARGER_PAIR<IN_A>, LARGER_PAIR<IN_W>>, LARGER<LARGER_PAIR<OUT_Y>, LARGER_PAIR<OUT_DB>>>;
constexpr int VECTOR = 16 / LARGEST_SIZE < RUN ? 16 / LARGEST_SIZE : RUN; // elements

// What is the same for all indices.
struct Scalars {
    Acc parameter, weight, rest; // rest is 1 - weight
    bool near_a;                 // |weight| < 1/2
    Acc scale;
};
__device__ inline Scalars scalars_of(const gpi__operation_params &p) {
    Scalars s;
    s.parameter = (Acc)p.parameter;
    s.weight = (Acc)p.weight;
    s.rest = (Acc)(1 - p.weight);
    s.near_a = p.weight > -0.5 && p.weight < 0.5;
    s.scale = CAST_SCALE ? (Acc)*p.scale : Acc(1);
    return s;
}

// v holds the inputs of one index, and receives the outputs.
__device__ inline void operate(Acc (&v)[TENSORS], const Scalars &s) {
    constexpr int operation = GEMMEPI_OPERATION;
    if constexpr (operation == OP_ACTIVATION) {
        v[OUT_Y] = activate<GEMMEPI_ACTIVATION>(v[IN_A], s.parameter);
    } else if constexpr (operation == OP_ACTIVATION_BACKWARD) {
        v[OUT_DA] = times_derivative<GEMMEPI_ACTIVATION>(v[IN_DY], v[IN_A], s.parameter);
    } else if constexpr (operation == OP_GATED) {
        v[OUT_Y] = times_activation<GEMMEPI_ACTIVATION>(v[IN_A], v[IN_B], s.parameter);
    } else if constexpr (operation == OP_GATED_BACKWARD) {
        if (USED<OUT_DA>)
            v[OUT_DA] = times_activation<GEMMEPI_ACTIVATION>(v[IN_DY], v[IN_B], s.parameter);
        if (USED<OUT_DB>)
            v[OUT_DB] = gate_gradient<GEMMEPI_ACTIVATION>(v[IN_DY], v[IN_A], v[IN_B], s.parameter);
    } else if constexpr (operation == OP_LERP) {
        Acc a = v[IN_A], b = v[IN_B], w = USED<IN_W> ? v[IN_W] : s.weight, rest = USED<IN_W> ? 1 - w : s.rest;
        bool near_a = USED<IN_W> ? w > Acc(-0.5) && w < Acc(0.5) : s.near_a;
        v[OUT_Y] = near_a ? a + w * (b - a) : b - (b - a) * rest;
    } else if constexpr (operation == OP_LERP_BACKWARD) {
        Acc w = USED<IN_W> ? v[IN_W] : s.weight, rest = USED<IN_W> ? 1 - w : s.rest;
        v[OUT_DA] = rest * v[IN_DY];
        v[OUT_DB] = w * v[IN_DY];
        if (USED<OUT_DW>)
            v[OUT_DW] = v[IN_DY] * (v[IN_B] - v[IN_A]);
    } else {
        v[OUT_Y] = CAST_SCALE ? v[IN_A] * s.scale : v[IN_A];
    }
}

// A vector of each tensor as it lies in memory.
template <int Tensor> using Vector = Words<Type<Tensor>, VECTOR>;

// One vector of inputs, already in f32 or f64, into one of outputs. Of CAST_AMAX's vector all elements count: those that
// do not exist are 0.
__device__ inline void operate_on(Acc (&v)[TENSORS][VECTOR], const Scalars &s, Magnitude &largest) {
    if (CAST_AMAX)
        keep_largest_of<Amax>(v[IN_A], largest);
#pragma unroll
    for (int i = 0; i < VECTOR; i++) {
        Acc one[TENSORS];
#pragma unroll
        for (int t = 0; t < TENSORS; t++)
            one[t] = v[t][i];
        operate(one, s);
#pragma unroll
        for (int t = OUT_Y; t < TENSORS; t++)
            v[t][i] = one[t];
    }
}

template <int Tensor> __device__ inline void to_values(const Vector<Tensor> &words, Acc (&v)[TENSORS][VECTOR]) {
    words_to_acc(words, v[Tensor]);
}
template <int Tensor> __device__ inline Vector<Tensor> from_values(const Acc (&v)[TENSORS][VECTOR]) {
    return words_of(run_from_acc<Type<Tensor>>(v[Tensor]));
}
template <int Tensor> __device__ inline void repeat_value(Type<Tensor> x, Acc (&v)[TENSORS][VECTOR]) {
#pragma unroll
    for (int i = 0; i < VECTOR; i++)
        v[Tensor][i] = to_acc<Acc>(x);
}

// `valid` elements of a vector at `from`; all at once where it exists whole, as those of dense tensors do.
template <int Tensor> __device__ inline Vector<Tensor> load_vector(const Type<Tensor> *from, int valid) {
    if (valid == VECTOR)
        return *reinterpret_cast<const Vector<Tensor> *>(from);
    return words_of(read_elements<VECTOR>(from, valid));
}
template <int Tensor> __device__ inline void store_vector(Type<Tensor> *to, int valid, const Vector<Tensor> &words) {
    if (valid == VECTOR) {
        *reinterpret_cast<Vector<Tensor> *>(to) = words;
    } else {
        Run<Type<Tensor>, VECTOR> run = run_of(words);
#pragma unroll
        for (int i = 0; i < VECTOR; i++)
            if (i < valid)
                to[i] = run.at[i];
    }
}
