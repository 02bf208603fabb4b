// What a layer computes of its sums, or, backward, of those and of dy: read once for each function of a network's layers, in a namespace of
// its own. Of a formula the prologue has what formula/emit.h writes ahead of this; of an activation
// NETWORK_ACTIVATION. Bias is in the sums already: a formula's operand of that name, whose place is NETWORK_BIAS, -1 for none, is -0, which adds nothing.
// NETWORK_DY: the place of dy. NETWORK_BACKWARD: 1 where v becomes the gradient of v. IS_OF_RESULT: that is made of the layer's result as well as of its sums.
#ifdef NETWORK_BIAS // else it is read so that kernels on disk are known by this text, too
#ifdef FORMULA_INPUTS
constexpr bool IS_OF_RESULT = false;

#define FUNCTION_RUNS(place_, name, kind_, members, type, periods) Taken<type> name[VALUES];
struct Inputs {
    FORMULA_INPUTS(FUNCTION_RUNS)
};

template <int Place, int Kind, class Type>
__device__ inline void load_input(const gpi__network_operand *places, const Part &part, const float (&dy)[VALUES], Taken<Type> (&x)[VALUES]) {
    if constexpr (Place == NETWORK_BIAS) {
        for_all(Taken<Type>(-0.f), x);
    } else if constexpr (Place == NETWORK_DY) {
        memcpy(x, dy, sizeof x);
    } else if constexpr (Kind == kind::NUMBER) {
        for_all((Taken<Type>)places[Place].number, x);
    } else if constexpr (Kind == kind::SCALAR) {
        for_all(taken<Type>(*(const Type *)places[Place].data), x);
    } else {
#pragma unroll
        for (int i = 0; i < VALUES; i++) {
            int row = part.row + i / 4 * 8, column = part.column + i % 4;
            bool exists = (Kind == kind::PER_COLUMN || row < part.rows) && (Kind == kind::PER_ROW || column < part.columns);
            const Type *at = (const Type *)places[Place].data + (Kind == kind::PER_COLUMN ? 0 : (u32)row * places[Place].ld) + (Kind == kind::PER_ROW ? 0 : column);
            x[i] = exists ? taken<Type>(*at) : Taken<Type>(0);
        }
    }
}

#define FUNCTION_LOAD(place_, name, kind_, members, type, periods) load_input<place_, kind::kind_, type>(places, part, dy, inputs.name);
#define FUNCTION_TAKE(place_, name, kind_, members, type, periods) in.name[0] = inputs.name[at];
#define FUNCTION_TURN(place_, name, kind_, members, type, periods) turn_round<AtOnce>(inputs.name);

// The i-th value, whose numbers are the at-th.
template <bool Near> __device__ inline bool compute(const Part &part, int i, int at, const Inputs &inputs, float (&v)[VALUES]) {
    Formula_in in;
    Formula_out out;
    (void)inputs;
    FORMULA_INPUTS(FUNCTION_TAKE)
#if FORMULA_VALUE
    in.v[0] = v[at];
#endif
#if FORMULA_INDICES & 1
    in.row = part.row + i / 4 * 8;
#endif
#if FORMULA_INDICES & 2
    in.column[0] = part.column + i % 4;
#endif
#if FORMULA_INDICES & 4
    in.item = 0;
#endif
#if FORMULA_INDICES & 8
    in.rows = part.rows;
#endif
#if FORMULA_INDICES & 16
    in.columns = part.columns;
#endif
#if FORMULA_INDICES & 32
    in.depth = part.depth;
#endif
#if FORMULA_ROUNDS
    in.scale_d = 1;
#endif
#if FORMULA_WAVES
    in.is_near = Near;
#endif
    formula(in, out);
    v[at] = out.d[0];
#if FORMULA_WAVES
    return !out.is_far;
#else
    return true;
#endif
}

// So many values at once, with instructions of their own, in turns that share them: a long function's for all values of every layer would be more than a
// multiprocessor keeps at hand.
template <bool Near, int AtOnce> __device__ inline bool compute_all(const Part &part, Inputs &inputs, float (&v)[VALUES]) {
    bool is_right = true;
#pragma unroll 1
    for (int first = 0; first < VALUES; first += AtOnce) {
#pragma unroll
        for (int i = 0; i < AtOnce; i++)
            is_right &= compute<Near>(part, first + i, i, inputs, v);
        turn_round<AtOnce>(v);
        FORMULA_INPUTS(FUNCTION_TURN)
    }
    return is_right;
}

// Where a number is too far for the short way of sines (trig.cuh), which is rare, all go by one copy of the long one.
__device__ inline void apply(const gpi__network_operand *places, const Part &part, float, const float (&dy)[VALUES], float (&v)[VALUES]) {
    Inputs inputs;
    float given[VALUES];
    (void)places, (void)dy;
    FORMULA_INPUTS(FUNCTION_LOAD)
    memcpy(given, v, sizeof v);
    if (!compute_all<true, NETWORK_TURNS ? 2 : VALUES>(part, inputs, v) && FORMULA_WAVES) {
        memcpy(v, given, sizeof v);
        compute_all<false, 1>(part, inputs, v);
    }
}

#undef FUNCTION_RUNS
#undef FUNCTION_LOAD
#undef FUNCTION_TAKE
#undef FUNCTION_TURN
#undef FORMULA_MEMBERS
#undef FORMULA_HALVES
#undef FORMULA_GROUP
#undef FORMULA_VALUE
#undef FORMULA_RESULT
#undef FORMULA_INDICES
#undef FORMULA_EXCHANGED
#undef FORMULA_EXACT
#undef FORMULA_ROUNDS
#undef FORMULA_WAVES
#undef FORMULA_PARAMETER
#undef FORMULA_UNIFORMS
#undef FORMULA_TABLES
#undef FORMULA_INPUTS
#undef FORMULA_OUTPUTS
#undef FORMULA_RANDOM
#else
constexpr bool IS_OF_RESULT = NETWORK_ACTIVATION == RELU;

__device__ inline void apply(const gpi__network_operand *, const Part &, float parameter, const float (&dy)[VALUES], float (&v)[VALUES]) {
    (void)dy;
    if constexpr (!GEMMEPI_EXACT && Act<NETWORK_ACTIVATION, float>::ENDS_TAILS && !(NETWORK_BACKWARD && NETWORK_ACTIVATION == GELU_TANH)) {
        activate_runs<NETWORK_ACTIVATION, NETWORK_BACKWARD>(dy, v);
    } else {
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            v[i] = NETWORK_BACKWARD ? times_derivative<NETWORK_ACTIVATION>(dy[i], v[i], parameter)
                                    : activate_sum<NETWORK_ACTIVATION, false>(v[i], parameter);
    }
}

#endif
#undef NETWORK_BIAS
#undef NETWORK_DY
#undef NETWORK_BACKWARD
#undef NETWORK_ACTIVATION
#endif
