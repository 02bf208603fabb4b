// The formula of an epilogue on a run, which formula/emit.h has written into the prologue: a user's, or that of flags.
// Operands that come as bias, aux and residual do come ahead of the run; all others, which a user's formula alone has, from memory, straight
// to registers.
//
// Besides what formula/emit.h wants the prologue defines the numbers of the operands in those places, -1 for none: GEMMEPI_IN_BIAS,
// GEMMEPI_IN_AUX, GEMMEPI_IN_RESIDUAL and GEMMEPI_IN_FACTOR, of rows, and GEMMEPI_WRITTEN, that of the output which leaves as AUX does.
// GEMMEPI_ADDS_BIAS: v comes with the bias, which the formula does not read then; GEMMEPI_WRITES_VALUE: that output is v as it comes. Of a
// user's formula
// GEMMEPI_INSIDE_SCALED, a bit for each operand that has a scale; and
// GEMMEPI_INSIDE_REDUCES, 1 where it has reductions of rows; GEMMEPI_STATE_COLUMNS, 32 or 64, columns of their states, which exist all
// or none where GEMMEPI_INSIDE_WHOLE is 1;
// GEMMEPI_IN_DEPTH, the place whose number is depth, where it is read.
#pragma once
#include "epilogue_arithmetic.cuh"
#include "epilogue_fragment.cuh"
#include "epilogue_mask.cuh"
#include "epilogue_staging.cuh"
#include "formula.cuh"

// Where a run stands; column is that of its first half.
struct Run_of_formula {
    long long item, row, column;
    int valid;
};

// >>operands that come as bias, aux and residual do, and the output that leaves as AUX does

template <class T> __device__ inline void take_for_all(T one, T (&x)[RUN]) {
#pragma unroll
    for (int i = 0; i < RUN; i++)
        x[i] = one;
}
template <int Members>
__device__ inline Read<GEMMEPI_RESIDUAL_TYPE> read_residual(const gpi__epilogue_params &p, const Run_of_formula &at, int member) {
    return read<GEMMEPI_RESIDUAL_TYPE, Members>((const GEMMEPI_RESIDUAL_TYPE *)p.residual.data +
                                                    offset(p.residual, at.item, at.row, column_of_half<Members>(p, at.column, member)),
                                                valid_of_half<Members>(at.valid, member));
}

// Whether an operand comes as one of those.
__device__ constexpr bool is_in_place(int place) {
    return place == GEMMEPI_IN_BIAS || place == GEMMEPI_IN_AUX || place == GEMMEPI_IN_RESIDUAL || place == GEMMEPI_IN_FACTOR;
}
// Of a member.
template <int Place, int Members>
__device__ inline void load_in_place(const gpi__epilogue_params &p, const Epilogue_state &state, const Of_columns &of, const Saved &saved,
                                     const Run_of_formula &at, int member, Acc (&x)[RUN]) {
    Acc factor = 1, of_row = 0;
    if constexpr (Place == GEMMEPI_IN_BIAS) {
        to_accs(of.bias[member], x);
    } else if constexpr (Place == GEMMEPI_IN_AUX && AUX_IS_MASK) {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            x[i] = Acc(saved.mask >> place(i) & 1);
    } else if constexpr (Place == GEMMEPI_IN_AUX) {
        to_accs(saved.runs[member], x);
        factor = state.scale_aux;
    } else if constexpr (Place == GEMMEPI_IN_RESIDUAL) {
#if GEMMEPI_BRINGS
        to_accs(saved.residual[member], x);
#else
        if constexpr (LOADS_RESIDUAL)
            to_accs(unstage_run<GEMMEPI_RESIDUAL_TYPE, Members>(state.loaded_residual[member]), x);
        else
            to_accs(read_residual<Members>(p, at, member), x);
#endif
        factor = state.scale_residual;
    } else {
        if (at.valid > 0)
            of_row = (Acc)p.row_factor.data[at.item * p.row_factor.stride + at.row];
        take_for_all(of_row, x);
    }
    if ((Place == GEMMEPI_IN_AUX && SCALES_AUX) || (Place == GEMMEPI_IN_RESIDUAL && SCALES_RESIDUAL))
#pragma unroll
        for (int i = 0; i < RUN; i++)
            x[i] = product(x[i], factor);
}

template <int Members>
__device__ inline void store_written(const gpi__epilogue_params &p, Epilogue_state &state, const Run_of_formula &at,
                                     const Acc (&x)[Members][RUN]) {
#pragma unroll
    for (int member = 0; member < (AMAX_AUX ? Members : 0); member++)
        keep_largest_of_run(x[member], at.valid, state.largest_aux);
    if constexpr (KEEPS_MASK)
        keep_mask(state, x[0]);
    else if constexpr (WRITES_AUX && AUX_IS_MASK)
        store_mask(p.aux, at.item, at.row, at.column, at.valid, x[0]);
    else if constexpr (WRITES_AUX)
        store_halves<GEMMEPI_AUX_TYPE, STAGES_AUX, SCALES_AUX, Members>(p, p.aux, state.staged_aux, state.scale_aux, at.item, at.row,
                                                                        at.column, at.valid, x);
}

// >>all others

// From `from` on, as many as there are, or one for all.
template <class Type, int Members> __device__ inline void take_run(const Type *from, int valid, Taken<Type> (&x)[RUN]) {
    if constexpr (SAME<Taken<Type>, Acc> && !SAME<Type, I32>)
        to_accs(read<Type, Members>(from, valid), x);
    else {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            x[i] = place<Members>(i) < valid ? from[place<Members>(i)] : Type(0);
    }
}
template <class Type> __device__ inline Taken<Type> take_one(const Type *from) {
    if constexpr (SAME<Taken<Type>, Acc> && !SAME<Type, I32>)
        return to_acc<Acc>(*from);
    else
        return *from;
}

// Of tables that repeat; a period of columns has whole runs of all four lanes.
template <bool Repeats> __device__ inline long long within(long long x, long long period) {
    return Repeats ? (u32)x % (u32)period : x;
}

// Of what is BLOCKED, which a row's 32 columns are one block of.
template <bool Has_blocks> __device__ inline long long through(long long x, long long block) {
    return Has_blocks ? (u32)x / (u32)block : x;
}

// Of an operand that does not change along columns. row may be none of those that exist.
template <int Place, int Kind, int Periods, class Type>
__device__ inline Taken<Type> load_of_row(const gpi__formula_place *beside, long long item, long long row, bool exists) {
    const gpi__formula_place &from = beside[Place];
    const Type *data = (const Type *)from.data + item * from.stride;
    Taken<Type> one = 0;
    if (Kind == kind::SCALAR)
        one = take_one(data);
    else if (exists)
        one = take_one(data + within<(Periods & 1) != 0>(row, from.row_period));
    if constexpr ((GEMMEPI_INSIDE_SCALED >> Place & 1) != 0)
        one *= *from.scale;
    return one;
}

// HOLDS: those of a row, ahead of its runs.
template <int Place, int Kind, int Periods, class Type>
__device__ inline void hold(const gpi__formula_place *beside, long long item, long long row, bool exists, Held<Type, is_of_row(Place, Kind)> &held) {
    if constexpr (is_of_row(Place, Kind))
        held.at = load_of_row<Place, Kind, Periods, Type>(beside, item, row, exists);
}
#define INSIDE_HOLD(place_, name, kind_, members, type, periods) hold<place_, kind::kind_, periods, type>(beside, item, row, exists, held.name);
__device__ inline Held_operands hold_operands(const gpi__formula_place *beside, long long item, long long row, bool exists) {
    Held_operands held;
    (void)beside, (void)item, (void)row, (void)exists;
    FORMULA_INPUTS(INSIDE_HOLD)
    return held;
}

// Matrices that come straight from memory, of a warp's 16 rows and so many columns: half a warp asks for a line of each row. at: a lane's.
template <int Place, int Kind, int Members, int Periods, class Type>
__device__ inline void prefetch_operand(const gpi__epilogue_params &p, const gpi__formula_place *beside, const Run_of_formula &at, int columns) {
    constexpr bool is_loaded = (Place == GEMMEPI_IN_RESIDUAL && LOADS_RESIDUAL) || (Place == GEMMEPI_IN_AUX && LOADS_AUX);
    if constexpr (!GEMMEPI_OF_FLAGS && Kind == kind::FULL && !is_loaded) {
        const gpi__formula_place &from = beside[Place];
        const Type *line = (const Type *)from.data + at.item * from.stride + within<(Periods & 1) != 0>(at.row, from.row_period) * from.ld;
        int lines = (columns * (int)sizeof(Type) + 127) / 128, per_line = 128 / (int)sizeof(Type);
#pragma unroll
        for (int i = 0; i < Members * lines; i += 2) {
            int mine = i + (int)threadIdx.x % 32 / 16, column = (int)at.column + mine % lines * per_line;
            long long there = column_of_half<Members>(p, column, mine / lines);
            if constexpr (IN_PAIRS<Members>)
                column = (int)at.column + mine * per_line / 2, there = column * 2;
            const Type *first = line + within<(Periods & 2) != 0>(there, from.column_period);
            if (mine < Members * lines && at.valid && column < p.n)
                asm volatile("prefetch.global.L1 [%0];" ::"l"(first));
        }
    }
}
#define INSIDE_PREFETCH(place_, name, kind_, members, type, periods) \
    prefetch_operand<place_, kind::kind_, members, periods, type>(p, beside, at, columns);
__device__ inline void prefetch_operands(const gpi__epilogue_params &p, const gpi__formula_place *beside, const Run_of_formula &at, int columns) {
    (void)p, (void)beside, (void)at, (void)columns;
    FORMULA_INPUTS(INSIDE_PREFETCH)
}

// A run of an operand, as it comes from memory.
template <int Place, int Kind, int Members, int Periods, class Type>
__device__ inline void load_operand(const gpi__epilogue_params &p, const Epilogue_state &state, const Of_columns &of,
                                    const Saved &saved, const Run_of_formula &at, int member, const Held<Type, is_of_row(Place, Kind)> &held,
                                    Taken<Type> (&x)[RUN]) {
    if constexpr (is_in_place(Place)) {
        load_in_place<Place, Members>(p, state, of, saved, at, member, x);
        return;
    } else if constexpr (is_of_row(Place, Kind)) {
        if constexpr (HOLDS)
            take_for_all(held.at, x);
        else
            take_for_all(load_of_row<Place, Kind, Periods, Type>(state.beside, at.item, at.row, at.valid > 0), x);
        return;
    }
    const gpi__formula_place &from = state.beside[Place];
    const Type *data = (const Type *)from.data + at.item * from.stride;
    if constexpr (Kind == kind::NUMBER) {
        take_for_all(from_acc<Acc>(from.number), x);
    } else if constexpr (Kind == kind::BLOCKED) {
        const Type *line = data + through<(Periods & 1) != 0>(at.row, from.row_period) * from.ld;
        long long column = column_of_half<Members>(p, at.column, member);
        int valid = valid_of_half<Members>(at.valid, member);
        if constexpr ((Periods & 2) == 0)
            take_run<Type, Members>(line + column, valid, x);
        else
            take_for_all(valid > 0 ? take_one(line + through<true>(column, from.column_period)) : Taken<Type>(0), x);
    } else { // ld is 0 of what is PER_COLUMN
        long long row = within<(Periods & 1) != 0>(at.row, from.row_period);
        long long column = within<(Periods & 2) != 0>(column_of_half<Members>(p, at.column, member), from.column_period);
        take_run<Type, Members>(data + row * from.ld + column, valid_of_half<Members>(at.valid, member), x);
    }
    if constexpr ((GEMMEPI_INSIDE_SCALED >> Place & 1) != 0)
#pragma unroll
        for (int i = 0; i < RUN; i++)
            x[i] *= *from.scale;
}

// Of an operand that is read by index, the line of a run's row: 0 elements where the row does not exist.
template <int Place, int Kind, int Periods, class Type>
__device__ inline Table<Type> table_of(const gpi__formula_place *beside, const Run_of_formula &at) {
    const gpi__formula_place &from = beside[Place];
    const Type *data = (const Type *)from.data + at.item * from.stride;
    if (Kind == kind::FULL)
        data += within<(Periods & 1) != 0>(at.row, from.row_period) * from.ld;
    return {data, at.valid > 0 ? from.column_period : 0, 1, (GEMMEPI_INSIDE_SCALED >> Place & 1) != 0 ? *from.scale : 1};
}
#define INSIDE_COUNT(place_, name, kind_, type, periods) +1
constexpr bool HAS_TABLES = 0 FORMULA_TABLES(INSIDE_COUNT) > 0;
#define INSIDE_TABLE(place_, name, kind_, type, periods) in.name = table_of<place_, kind::kind_, periods, type>(state.beside, run);

// >>reductions along rows: of each row and 32 or 64 columns a state in memory, for formula_reduce.cu

static_assert(SPREAD || !GEMMEPI_INSIDE_REDUCES, "a row's lanes have 32 columns");

// Of a lane's numbers; those that do not exist change nothing. `columns`: of an argmax, -1 where there is none.
template <class Part, int N> __device__ inline Part part_of_lane(const Acc (&x)[N], const long long (&columns)[N]) {
    if constexpr (SAME<Part, Argmax<Acc>>) {
        Part part = Part::empty();
#pragma unroll
        for (int i = 0; i < N; i++)
            if (columns[i] >= 0)
                part.add(x[i], columns[i]);
        return part;
    } else if constexpr (SAME<Part, Sum_of_few<Acc>>) {
        return {of_pairs<Added>(x)};
    } else if constexpr (SAME<Part, Max<Acc>>) {
        return {of_pairs<Larger>(x)};
    } else {
        Part part = {of_pairs<Larger>(x), 0};
        Acc powers[N];
#pragma unroll
        for (int i = 0; i < N; i++)
            powers[i] = exponential_below(x[i] - part.shift());
        part.sum = of_pairs<Added>(powers);
        return part;
    }
}

// An output's run goes into the part that this lane keeps of its row and 32 columns.
template <int Members, int Reduction>
__device__ inline void keep_part(const gpi__epilogue_params &p, const Run_of_formula &at, const Acc (&x)[Members][RUN],
                                 Left_of<Acc, Reduction> &part) {
    Acc there[Members * RUN];
    long long columns[Members * RUN];
#pragma unroll
    for (int i = 0; i < Members * RUN; i++) {
        bool exists = GEMMEPI_INSIDE_WHOLE || place(i % RUN) < at.valid;
        there[i] = exists ? x[i / RUN][i % RUN] : SAME<Left_of<Acc, Reduction>, Sum_of_few<Acc>> ? Acc(0) : below_all<Acc>();
        columns[i] = exists ? column_of_half<Members>(p, at.column, i / RUN) + place(i % RUN) : -1;
    }
    part = part_of_lane<Left_of<Acc, Reduction>>(there, columns);
}

// Of a box's runs, eight rows and 32 columns each, the first ones become its states: the i-th and those that follow it by as many.
constexpr int STATES_OF_BOX = RUNS_OF_BOX / (GEMMEPI_STATE_COLUMNS / 32);
template <class Part> __device__ inline void join_groups(Part (&parts)[RUNS_OF_BOX]) {
#pragma unroll
    for (int i = STATES_OF_BOX; i < RUNS_OF_BOX; i++)
        parts[i % STATES_OF_BOX].join(parts[i]);
}
// Of the four lanes of each row each gets all. Parts wait for the lanes together, not one after another.
template <class Part> __device__ inline void join_lanes_of_rows(Part (&parts)[RUNS_OF_BOX]) {
    join_groups(parts);
#pragma unroll
    for (int step = 1; step <= IN_ROW; step += IN_ROW - 1)
#pragma unroll
        for (int i = 0; i < STATES_OF_BOX; i++)
            parts[i].join(from_lane(parts[i], step));
}
template <class T> // an exponential for each run, not two for each join
__device__ inline void join_lanes_of_rows(Logsumexp<T> (&parts)[RUNS_OF_BOX]) {
    Max<T> most[RUNS_OF_BOX];
    Sum_of_few<Acc> sums[RUNS_OF_BOX];
#pragma unroll
    for (int i = 0; i < RUNS_OF_BOX; i++)
        most[i] = {parts[i].most};
    join_lanes_of_rows(most);
#pragma unroll
    for (int i = 0; i < RUNS_OF_BOX; i++) {
        Logsumexp<T> joined = {most[i % STATES_OF_BOX].at, 0};
        sums[i] = {parts[i].sum * exponential_below(parts[i].most - joined.shift())};
    }
    join_lanes_of_rows(sums);
#pragma unroll
    for (int i = 0; i < STATES_OF_BOX; i++)
        parts[i] = {most[i].at, sums[i].at};
}

template <int Place, int Reduction>
__device__ inline void store_kept_parts(const gpi__epilogue_params &p, const Epilogue_state &state, long long item, int row,
                                        int column, Kept_parts<Reduction> &kept) {
    if constexpr (Reduction != reduction::none) {
        const gpi__formula_place &to = state.beside[Place];
        join_lanes_of_rows(kept.parts);
        Left_of<Acc, Reduction> mine = kept.parts[0]; // each lane stores one
#pragma unroll
        for (int i = 1; i < STATES_OF_BOX; i++)
            if (lane_of_row() == i)
                mine = kept.parts[i];
        if (row < (int)p.m && column < (int)p.n)
            ((Left_of<Acc, Reduction> *)to.data)[item * to.stride + row * to.ld + column / GEMMEPI_STATE_COLUMNS] = mine;
    }
}

// Until the box of 16 rows and as many groups of 32 columns has ended: row and column are its first.
__device__ inline void store_kept_states(const gpi__epilogue_params &p, Epilogue_state &state, long long item, int row,
                                         int column, int groups) {
    int first = lane_of_row() / 2 * GEMMEPI_STATE_COLUMNS;
    row += lane_of_row() % 2 * 8 + row_of_lane();
    column = first < groups * 32 ? column + first : (int)p.n;
#define INSIDE_STORE_KEPT(place_, name, kind_, members, type, reduction_, accumulates) \
    store_kept_parts<place_, of_rows(reduction::reduction_)>(p, state, item, row, column, state.kept_parts.name);
    FORMULA_OUTPUTS(INSIDE_STORE_KEPT)
}

// >>random numbers: a run's beforehand, as lanes share them

// A counter's four words are for two pairs side by side, which two lanes have; of every two counters each lane computes one.
constexpr bool SHARES_RANDOM = SPREAD && WHOLE && !FORMULA_EXCHANGED;
__device__ inline void draw_shared(I64 seed, I64 i, GEMMEPI_INDEX column, const Run_of_formula &at, float (&x)[RUN]) {
    bool is_second = (column & 2) != 0;
#pragma unroll
    for (int first = 0; first < RUN; first += 4) {
        Random_words words = random_words(seed, i, column + place(first) + (is_second ? place(2) : 0), at.row, at.item);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            u32 kept = is_second ? words.at[2 + j] : words.at[j], given = is_second ? words.at[j] : words.at[2 + j];
            u32 got = __shfl_xor_sync(0xffffffff, given, 1);
            x[first + j] = random_number(is_second ? got : kept);
            x[first + 2 + j] = random_number(is_second ? kept : got);
        }
    }
}
__device__ inline void draw_apart(I64 seed, I64 i, GEMMEPI_INDEX column, const Run_of_formula &at, float (&x)[RUN]) {
#pragma unroll
    for (int j = 0; j < RUN; j++) {
        GEMMEPI_INDEX of_x = column + place(j);
        x[j] = FORMULA_EXCHANGED ? formula_uniform(seed, i, at.row, of_x, at.item) : formula_uniform(seed, i, of_x, at.row, at.item);
    }
}
#define INSIDE_DRAWN(name, members, seed, number) float name[members][RUN];
struct Drawn_runs {
    FORMULA_UNIFORMS(INSIDE_DRAWN)
};
// Of all members.
template <int Members>
__device__ inline void draw_run(const gpi__epilogue_params &p, I64 seed, I64 i, const Run_of_formula &at,
                                float (&x)[Members][RUN]) {
#pragma unroll
    for (int member = 0; member < Members; member++) {
        GEMMEPI_INDEX column = (GEMMEPI_INDEX)column_of_half<FORMULA_MEMBERS>(p, at.column, member);
        if (SHARES_RANDOM)
            draw_shared(seed, i, column, at, x[member]);
        else
            draw_apart(seed, i, column, at, x[member]);
    }
}
#define INSIDE_DRAW(name, members, seed, number) draw_run(p, seed, number, at, drawn.name);
// `in` has what is the same for all elements.
__device__ inline void draw(const gpi__epilogue_params &p, const Run_of_formula &at, const Formula_in &in, Drawn_runs &drawn) {
    (void)p, (void)at, (void)in, (void)drawn;
    FORMULA_UNIFORMS(INSIDE_DRAW)
}

template <int Place, int Members, class Type, int Reduction>
__device__ inline void finish_output(const gpi__epilogue_params &p, Epilogue_state &state, const Run_of_formula &at,
                                     const Acc (&x)[Members][RUN], Kept_parts<of_rows(Reduction)> &kept) {
    const gpi__formula_place &to = state.beside[Place];
    if constexpr (is_of_columns(Reduction))
        memcpy(state.of_columns.lines()[first_line(Place)], x, sizeof x);
    else if constexpr (Reduction != reduction::none)
        keep_part<Members, Reduction>(p, at, x, kept.parts[state.mask_place]);
    else if constexpr (Place == GEMMEPI_WRITTEN)
        store_written(p, state, at, x);
    else {
        const gpi__kernel_matrix matrix = {to.data, to.ld, to.stride};
        store_halves<Type, false, false, Members>(p, matrix, nullptr, Acc(1), at.item, at.row, at.column, at.valid, x);
    }
}
#define INSIDE_LOAD(place_, name, kind_, members, type, periods)                                                                        \
    for (int member = 0; member < members; member++)                                                                                    \
        load_operand<place_, kind::kind_, members, periods, type>(p, state, of, saved, run, member, state.held.name, x.runs.name[member]); \
    regroup<false>(x.runs.name);
#define INSIDE_STORE(place_, name, kind_, members, type, reduction_, accumulates) \
    finish_output<place_, members, type, reduction::reduction_>(p, state, run, x.outputs.name, state.kept_parts.name);

#define INSIDE_SUM_D(place_, name, kind_, members, type, reduction_, accumulates) \
    memcpy(state.of_columns.lines()[first_line(place_)], v, members * sizeof v[0]);

// >>a run

#define INSIDE_RUNS(place_, name, kind_, members, type, periods) Taken<type> name[members][RUN];
struct Operand_runs {
    FORMULA_INPUTS(INSIDE_RUNS)
};
#define INSIDE_OUTPUTS(place_, name, kind_, members, type, reduction_, accumulates) Acc name[members][RUN];
struct Output_runs {
    FORMULA_OUTPUTS(INSIDE_OUTPUTS)
};

// What of a run goes into the formula and comes out, and v with what becomes of it.
struct Numbers_of_run {
    Operand_runs runs;
    Drawn_runs drawn;
    Output_runs outputs;
    Acc v[HALVES][RUN];
};

// The i-th of a run, whose numbers are the at-th. FORMULA_VALUE members of v go in, FORMULA_RESULT of D come out. Near: false where a
// number was too far (trig.cuh).
#define INSIDE_TAKE(place_, name, kind_, members, type, periods) \
    for (int member = 0; member < members; member++)             \
        in.name[member] = x.runs.name[member][at];
#define INSIDE_KEEP(place_, name, kind_, members, type, reduction_, accumulates) \
    for (int member = 0; member < members; member++)                            \
        x.outputs.name[member][at] = out.name[member];
#define INSIDE_TAKE_DRAWN(name, members, seed, number) \
    for (int member = 0; member < members; member++)  \
        in.name[member] = x.drawn.name[member][at];
template <bool Near>
__device__ inline bool compute_element(const gpi__epilogue_params &p, const Epilogue_state &state, const Run_of_formula &run, int i,
                                       int at, Numbers_of_run &x) {
    Formula_in in;
    Formula_out out;
    FORMULA_INPUTS(INSIDE_TAKE)
    FORMULA_TABLES(INSIDE_TABLE)
    FORMULA_UNIFORMS(INSIDE_TAKE_DRAWN)
#if FORMULA_VALUE
    for (int member = 0; member < HALVES_IN; member++)
        in.v[member] = x.v[member][at];
#endif
#if FORMULA_INDICES & 1
    in.row = (GEMMEPI_INDEX)run.row;
#endif
#if FORMULA_INDICES & 2
    for (int member = 0; member < FORMULA_MEMBERS; member++) {
        GEMMEPI_INDEX first = (GEMMEPI_INDEX)column_of_member<FORMULA_MEMBERS>(p, run.column, member, i / 2 * 2);
        // as it is: so a compiler sees that a pair shares its random numbers
        in.column[member] = INTERLEAVED       ? (GEMMEPI_INDEX)column_of_member<FORMULA_MEMBERS>(p, run.column, member, i)
                            : SPREAD && WHOLE ? (first & ~(GEMMEPI_INDEX)1) | (i & 1)
                                              : first + (i & 1);
    }
#endif
#if FORMULA_INDICES & 4
    in.item = (GEMMEPI_INDEX)run.item;
#endif
#if FORMULA_INDICES & 8
    in.rows = (GEMMEPI_INDEX)p.m;
#endif
#if FORMULA_INDICES & 16
    in.columns = (GEMMEPI_INDEX)(p.n * FORMULA_MEMBERS);
#endif
#if FORMULA_INDICES & 32
    in.depth = (GEMMEPI_INDEX)state.beside[GEMMEPI_IN_DEPTH].number;
#endif
#if FORMULA_ROUNDS
    in.scale_d = SCALES_D ? state.scale_d : Acc(1);
#endif
#if FORMULA_WAVES
    in.is_near = Near && (SPREAD || FORMULA_WAVES & 1); // elsewhere registers are too few for gates' gradients
#endif
#if FORMULA_PARAMETER
    in.parameter = (Acc)p.parameter;
#endif
    formula(in, out);
#if FORMULA_RESULT
    for (int member = 0; member < HALVES_OUT; member++)
        x.v[member][at] = out.d[member];
#endif
    FORMULA_OUTPUTS(INSIDE_KEEP)
#if FORMULA_WAVES
    return !out.is_far;
#else
    return true;
#endif
}

// A run with numbers that are far, which is rare: by one copy of the instructions, so that the others are all that their cache holds. It
// has the first of a run, which goes round. Likewise every run that reads by index: there are no registers for its loads side by side.
template <class T, int N> __device__ inline void turn_round(T (&x)[N][RUN]) {
#pragma unroll
    for (int member = 0; member < N; member++) {
        T first = x[member][0];
#pragma unroll
        for (int i = 0; i + 1 < RUN; i++)
            x[member][i] = x[member][i + 1];
        x[member][RUN - 1] = first;
    }
}
#define INSIDE_TURN_RUN(place_, name, kind_, members, type, periods) turn_round(x.runs.name);
#define INSIDE_TURN_DRAWN(name, members, seed, number) turn_round(x.drawn.name);
#define INSIDE_TURN_OUTPUT(place_, name, kind_, members, type, reduction_, accumulates) turn_round(x.outputs.name);
__device__ inline void compute_far_run(const gpi__epilogue_params &p, const Epilogue_state &state, const Run_of_formula &run,
                                       Numbers_of_run &x) {
#pragma unroll 1
    for (int i = 0; i < RUN; i++) {
        compute_element<false>(p, state, run, i, 0, x);
        turn_round(x.v);
        FORMULA_INPUTS(INSIDE_TURN_RUN)
        FORMULA_UNIFORMS(INSIDE_TURN_DRAWN)
        FORMULA_OUTPUTS(INSIDE_TURN_OUTPUT)
    }
}
__device__ inline void compute_run(const gpi__epilogue_params &p, const Epilogue_state &state, const Run_of_formula &run,
                                   Numbers_of_run &x) {
    Acc given[HALVES][RUN];
    bool is_right = !HAS_TABLES;
    memcpy(given, x.v, sizeof given);
#pragma unroll
    for (int i = 0; i < RUN && !HAS_TABLES; i++)
        is_right &= compute_element<true>(p, state, run, i, i, x);
    if (!is_right) {
        memcpy(x.v, given, sizeof given);
        compute_far_run(p, state, run, x);
    }
}

// v: what the product left, with its factors and C, and, if the kernel adds it, the bias.
__device__ inline void apply_formula(const gpi__epilogue_params &p, Epilogue_state &state, const Of_columns &of,
                                     const Saved &saved, const Run_of_formula &run, Acc (&v)[HALVES][RUN]) {
    Numbers_of_run x;
    memcpy(x.v, v, sizeof x.v);
    FORMULA_INPUTS(INSIDE_LOAD)
    Formula_in in;
    constexpr int at = 0; // of any element, what is the same for all
    (void)in, (void)at;   // there may be none
    FORMULA_INPUTS(INSIDE_TAKE)
    draw(p, run, in, x.drawn);
    if constexpr (GEMMEPI_WRITES_VALUE) // before the rest is computed, which takes its registers
        store_written(p, state, run, v);
    compute_run(p, state, run, x);
    FORMULA_OUTPUTS(INSIDE_STORE)
    memcpy(v, x.v, sizeof x.v);
    FORMULA_SUMS_OF_D(INSIDE_SUM_D)
}
