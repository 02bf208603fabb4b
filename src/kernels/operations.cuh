// Element-wise operations: between the tensors of one and the function of one index that formula/emit.h writes of it into the prologue, with
// what that needs ahead of it. elementwise.cu and sum.cu bring the values.
#pragma once
#include "types.cuh"
#include "activation.cuh"
#include "amax.cuh"
#include "params.h"

typedef GEMMEPI_T Acc;

enum { IN_A, IN_B, IN_W, IN_DY, OUT_Y, OUT_DA, OUT_DB, OUT_DW, TENSORS };
enum { WEIGHT = TENSORS + 1, REST, SCALE }; // numbers of a run: of LERP without w, w and 1 - w; of CAST

template <int Tensor> struct Type_of { typedef F32 type; };
#define TYPE_OF(place, name, kind_, members, type_, ...) template <> struct Type_of<place> { typedef type_ type; };
FORMULA_INPUTS(TYPE_OF)
FORMULA_OUTPUTS(TYPE_OF)
template <int Tensor> using Type = typename Type_of<Tensor>::type;

typedef Amax_of<Type<IN_A>> Amax; // holds every value of a
typedef decltype(magnitude(Amax())) Magnitude;

constexpr bool CAST_AMAX = GEMMEPI_AMAX;

// What is of tensors alone: numbers, which a formula's inputs are, too, are in Scalars.
#define OF_FULL(...) __VA_ARGS__
#define OF_NUMBER(...)
#define OF_SCALAR(...)

// The bytes of the largest element decide how many go into one access of 16 bytes.
#define OR_SIZE(place, name, kind, ...)     OF_##kind(| (int)sizeof(Type<place>))
#define OR_IS_SCALE(place, name, kind, ...) || place == SCALE
constexpr int SIZES = 0 FORMULA_INPUTS(OR_SIZE) FORMULA_OUTPUTS(OR_SIZE);
constexpr int LARGEST_SIZE = SIZES & 8 ? 8 : SIZES & 4 ? 4 : SIZES & 2 ? 2 : 1;
constexpr bool HAS_SCALE = false FORMULA_INPUTS(OR_IS_SCALE);
constexpr int VECTOR = 16 / LARGEST_SIZE < RUN ? 16 / LARGEST_SIZE : RUN; // elements

// What is the same for all indices.
struct Scalars {
    Acc parameter, weight, rest, scale;
};
// A weight stays on its side of 1/2, where LERP's formula changes.
__device__ inline Scalars scalars_of(const gpi__operation_params &p) {
    Acc weight = (Acc)p.weight;
    if (fabs(p.weight) < 0.5 && fabs(weight) >= Acc(0.5))
        weight *= Acc(0.99999994);
    return {(Acc)p.parameter, weight, (Acc)(1 - p.weight), HAS_SCALE ? (Acc)*p.scale : Acc(1)};
}
template <int Place> __device__ inline Acc value_of(const Acc (&v)[TENSORS], const Scalars &s) {
    if constexpr (Place < TENSORS)
        return v[Place];
    else
        return Place == WEIGHT ? s.weight : Place == REST ? s.rest : s.scale;
}

#define TAKE_VALUE(place, name, ...) in.name[0] = value_of<place>(v, s);
#define KEEP_VALUE(place, name, ...) v[place] = out.name[0];

// v holds the inputs of one index, and receives the outputs.
__device__ inline void compute(Acc (&v)[TENSORS], const Scalars &s) {
    Formula_in in;
    Formula_out out;
    FORMULA_INPUTS(TAKE_VALUE)
#if FORMULA_PARAMETER
    in.parameter = s.parameter;
#endif
#if FORMULA_WAVES
    in.is_near = false;
#endif
    formula(in, out);
    FORMULA_OUTPUTS(KEEP_VALUE)
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
        compute(one, s);
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
