// A formula of the user's in an epilogue: what formula/emit.h has written into the prologue, on a run. Operands that the host has given
// the places of bias, aux and residual come as these do, ahead of the run; all others come from memory, straight to registers.
//
// The prologue defines GEMMEPI_FORMULA and, besides what formula/emit.h wants, the numbers of the operands in those places, -1 for none:
// GEMMEPI_IN_BIAS, GEMMEPI_IN_AUX and GEMMEPI_IN_RESIDUAL; GEMMEPI_INSIDE_SCALED, a bit for each operand that has a scale; and
// GEMMEPI_INSIDE_REDUCES, 1 where it has reductions, of rows; GEMMEPI_INSIDE_WHOLE, 1 where the 32 columns of a state exist all or none.
#pragma once
#include "epilogue_formula.cuh"
#include "epilogue_fragment.cuh"
#include "epilogue_staging.cuh"

#if GEMMEPI_FORMULA
#include "formula.cuh"
#include "formula_kinds.cuh"
#if GEMMEPI_INSIDE_REDUCES
#include "formula_reduce.cuh"
#endif

// What an operand's elements become: whole numbers stay such.
template <class Type> __device__ inline auto taken() {
    if constexpr (SAME<Type, I32> || SAME<Type, I64>)
        return Type();
    else
        return Acc();
}
template <class Type> using Taken = decltype(taken<Type>());

// From `from` on, as many as there are, or one for all.
template <class Type> __device__ inline void take_run(const Type *from, int valid, Taken<Type> (&x)[RUN]) {
    if constexpr (SAME<Taken<Type>, Acc> && !SAME<Type, I32>)
        to_accs(read(from, valid), x);
    else
#pragma unroll
        for (int i = 0; i < RUN; i++)
            x[i] = place(i) < valid ? from[place(i)] : Type(0);
}
template <class Type> __device__ inline void take_one(const Type *from, bool exists, Taken<Type> (&x)[RUN]) {
    Taken<Type> one = 0;
    if (exists) {
        if constexpr (SAME<Taken<Type>, Acc> && !SAME<Type, I32>)
            one = to_acc<Acc>(*from);
        else
            one = *from;
    }
#pragma unroll
    for (int i = 0; i < RUN; i++)
        x[i] = one;
}

// Where a run stands; column is that of its first half.
struct Run_of_formula {
    long long item, row, column;
    int valid;
};

// A member of an operand's run.
template <int Place, int Kind, int Members, class Type>
__device__ inline void load_operand(const gemmepi__epilogue_params &p, const Epilogue_state &state, const Of_columns &of,
                                    const Saved &saved, const Run_of_formula &at, int member, Taken<Type> (&x)[RUN]) {
    const gemmepi__formula_place &from = state.beside[Place];
    const Type *data = (const Type *)from.data + at.item * from.stride;
    if constexpr (Place == GEMMEPI_IN_BIAS) {
        to_accs(of.bias[member], x);
    } else if constexpr (Place == GEMMEPI_IN_AUX) {
        to_accs(saved.runs[member], x);
    } else if constexpr (Place == GEMMEPI_IN_RESIDUAL) {
        if constexpr (LOADS_RESIDUAL)
            to_accs(unstage_run<Type>(state.loaded_residual[member]), x);
        else
            take_run(data + at.row * from.ld + column_of_half<Members>(p, at.column, member), at.valid, x);
    } else if constexpr (Kind == kind::NUMBER) {
        Acc number = from_acc<Acc>(from.number);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            x[i] = number;
    } else if constexpr (Kind == kind::SCALAR) {
        take_one(data, true, x);
    } else if constexpr (Kind == kind::PER_ROW) {
        take_one(data + at.row, at.valid > 0, x);
    } else {
        take_run(data + at.row * from.ld + column_of_half<Members>(p, at.column, member), at.valid, x); // ld is 0 of what is PER_COLUMN
    }
    if constexpr ((GEMMEPI_INSIDE_SCALED >> Place & 1) != 0)
#pragma unroll
        for (int i = 0; i < RUN; i++)
            x[i] *= *from.scale;
}

#if GEMMEPI_INSIDE_REDUCES
// >>reductions along rows: of each row and 32 columns a state in memory, for formula_reduce.cu

// Of a row's four lanes each has all.
__device__ inline Acc sum_of_row(Acc x) {
    x += from_lane(x, 1);
    return x + from_lane(x, IN_ROW);
}
__device__ inline Acc largest_of_row(Acc x) {
    x = larger_or_nan(x, from_lane(x, 1));
    return larger_or_nan(x, from_lane(x, IN_ROW));
}

// The state of a row's lanes, which have so many numbers each; those that do not exist change nothing. `columns`: of an argmax.
template <class State, int N> __device__ inline State state_of_row(const Acc (&x)[N], const long long (&columns)[N]) {
    if constexpr (SAME<State, Argmax<Acc>>) {
        State state = State::empty();
#pragma unroll
        for (int i = 0; i < N; i++)
            if (columns[i] >= 0)
                state.add(x[i], columns[i]);
        state.join(from_lane(state, 1));
        state.join(from_lane(state, IN_ROW));
        return state;
    } else if constexpr (SAME<State, Sum<Acc>>) {
        return {(double)sum_of_row(sum_of_pairs(x))};
    } else if constexpr (SAME<State, Max<Acc>>) {
        return {largest_of_row(largest_of_pairs(x))};
    } else {
        State state = {largest_of_row(largest_of_pairs(x)), 0};
        Acc powers[N];
#pragma unroll
        for (int i = 0; i < N; i++)
            powers[i] = exponential_below(x[i] - state.shift());
        state.sum = sum_of_row(sum_of_pairs(powers));
        return state;
    }
}

template <int Place, int Members, int Reduction>
__device__ inline void leave_state(const gemmepi__epilogue_params &p, const Epilogue_state &state, const Run_of_formula &at,
                                   const Acc (&x)[Members][RUN]) {
    typedef State_of<Acc, Reduction> State;
    static_assert(SPREAD, "a row's lanes have 32 columns");
    const gemmepi__formula_place &to = state.beside[Place];
    Acc there[Members * RUN];
    long long columns[Members * RUN];
#pragma unroll
    for (int i = 0; i < Members * RUN; i++) {
        bool exists = GEMMEPI_INSIDE_WHOLE || place(i % RUN) < at.valid;
        there[i] = exists ? x[i / RUN][i % RUN] : SAME<State, Sum<Acc>> ? Acc(0) : below_all<Acc>();
        columns[i] = exists ? column_of_half<Members>(p, at.column, i / RUN) + place(i % RUN) : -1;
    }
    State of_row = state_of_row<State>(there, columns);
    if (lane_of_row() == 0 && at.row < p.m && at.column < p.n)
        ((State *)to.data)[at.item * to.stride + at.row * to.ld + at.column / 32] = of_row;
}
#endif

// >>a run

template <int Place, int Members, class Type, int Reduction>
__device__ inline void store_output(const gemmepi__epilogue_params &p, const Epilogue_state &state, const Run_of_formula &at,
                                    const Acc (&x)[Members][RUN]) {
    const gemmepi__formula_place &to = state.beside[Place];
    if constexpr (Reduction == reduction::none)
#pragma unroll
        for (int member = 0; member < Members; member++)
            store_at((Type *)to.data + at.item * to.stride + at.row * to.ld + column_of_half<Members>(p, at.column, member),
                     at.valid, x[member]);
#if GEMMEPI_INSIDE_REDUCES
    else
        leave_state<Place, Members, Reduction>(p, state, at, x);
#endif
}

#define INSIDE_RUNS(place_, name, kind_, members, type, periods) Taken<type> name[members][RUN];
struct Operand_runs {
    FORMULA_INPUTS(INSIDE_RUNS)
};
#define INSIDE_OUTPUTS(place_, name, kind_, members, type, reduction_, accumulates) Acc name[members][RUN];
struct Output_runs {
    FORMULA_OUTPUTS(INSIDE_OUTPUTS)
};

// The i-th of a run. FORMULA_VALUE members of v go in, FORMULA_RESULT of D come out.
#define INSIDE_TAKE(place_, name, kind_, members, type, periods) \
    for (int member = 0; member < members; member++)             \
        in.name[member] = runs.name[member][i];
#define INSIDE_KEEP(place_, name, kind_, members, type, reduction_, accumulates) \
    for (int member = 0; member < members; member++)                            \
        outputs.name[member][i] = out.name[member];
__device__ inline void compute_element(const gemmepi__epilogue_params &p, const Run_of_formula &at, const Operand_runs &runs, int i,
                                       Acc (&v)[HALVES][RUN], Output_runs &outputs) {
    Formula_in in;
    Formula_out out;
    FORMULA_INPUTS(INSIDE_TAKE)
#if FORMULA_VALUE
    for (int member = 0; member < FORMULA_VALUE; member++)
        in.v[member] = v[member][i];
#endif
#if FORMULA_INDICES & 1
    in.row = (GEMMEPI_INDEX)at.row;
#endif
#if FORMULA_INDICES & 2
    for (int member = 0; member < FORMULA_MEMBERS; member++) {
        GEMMEPI_INDEX first = (GEMMEPI_INDEX)(column_of_half<FORMULA_MEMBERS>(p, at.column, member) + place(i / 2 * 2));
        // as it is: so a compiler sees that a pair shares its random numbers
        in.column[member] = SPREAD && WHOLE ? (first & ~(GEMMEPI_INDEX)1) | (i & 1) : first + (i & 1);
    }
#endif
#if FORMULA_INDICES & 4
    in.item = (GEMMEPI_INDEX)at.item;
#endif
#if FORMULA_INDICES & 8
    in.rows = (GEMMEPI_INDEX)p.m;
#endif
#if FORMULA_INDICES & 16
    in.columns = (GEMMEPI_INDEX)(p.n * FORMULA_MEMBERS);
#endif
    formula(in, out);
#if FORMULA_RESULT
    for (int member = 0; member < FORMULA_RESULT; member++)
        v[member][i] = out.d[member];
#endif
    FORMULA_OUTPUTS(INSIDE_KEEP)
}

// v: what the product left, with its factors and C.
#define INSIDE_LOAD(place_, name, kind_, members, type, periods) \
    for (int member = 0; member < members; member++)             \
        load_operand<place_, kind::kind_, members, type>(p, state, of, saved, at, member, runs.name[member]);
#define INSIDE_STORE(place_, name, kind_, members, type, reduction_, accumulates) \
    store_output<place_, members, type, reduction::reduction_>(p, state, at, outputs.name);
__device__ inline void apply_formula(const gemmepi__epilogue_params &p, const Epilogue_state &state, const Of_columns &of,
                                     const Saved &saved, const Run_of_formula &at, Acc (&v)[HALVES][RUN]) {
    Operand_runs runs;
    Output_runs outputs;
    (void)runs, (void)outputs; // there may be none
    FORMULA_INPUTS(INSIDE_LOAD)
#pragma unroll
    for (int i = 0; i < RUN; i++)
        compute_element(p, at, runs, i, v, outputs);
    FORMULA_OUTPUTS(INSIDE_STORE)
}
#endif
