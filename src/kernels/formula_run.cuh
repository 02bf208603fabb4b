// Runs of a formula's operands: UNITS units of a row, from and to memory, side by side, or, where lines are not aligned, so that what a warp
// asks for at a time is side by side. A unit is a column, or, of a formula with halves, a pair of them: what is wide has two members then,
// what is narrow has one, at the unit's own column.
#pragma once
#include "formula.cuh"
#include "formula_reduce.cuh"

typedef GEMMEPI_T T;
constexpr int UNITS = GEMMEPI_UNITS;
constexpr bool ALIGNED = GEMMEPI_ALIGNED; // runs of every operand start at multiples of their size, 16 bytes at most
constexpr bool ALTERNATES = FORMULA_HALVES == 2;

// From one unit of a run to the next: so many threads' units are side by side.
constexpr int ABREAST = GEMMEPI_ABREAST;

// Which units a thread has, of which row.
struct Place {
    long long item, row, unit;
    int valid; // units that exist, the first ones; none where the row does not
#if GEMMEPI_STRIDED
    const gpi__formula_strides *strides;
    long long index[GEMMEPI_ITEM_AXES]; // of the item, from the innermost axis on
#endif
};

#if GEMMEPI_STRIDED
typedef gpi__strided_formula_params Params;
__device__ inline const gpi__formula_pass_params &pass_of(const Params &params) {
    return params.pass;
}
__device__ inline void find_item(const Params &params, Place &place) {
    u32 rest = (u32)place.item;
    place.strides = &params.strides;
#pragma unroll
    for (int axis = 0; axis < GEMMEPI_ITEM_AXES - 1; axis++) {
        u32 extent = (u32)params.strides.extents[axis];
        place.index[axis] = rest % extent;
        rest /= extent;
    }
    place.index[GEMMEPI_ITEM_AXES - 1] = rest;
}
#else
typedef gpi__formula_pass_params Params;
__device__ inline const gpi__formula_pass_params &pass_of(const Params &params) {
    return params;
}
__device__ inline void find_item(const Params &, Place &) {}
#endif

// Where the item of an operand begins.
template <int Number> __device__ inline long long item_start(const gpi__formula_pass_params &p, const Place &place) {
#if GEMMEPI_STRIDED
    long long start = place.index[0] * p.places[Number].stride;
#pragma unroll
    for (int axis = 1; axis < GEMMEPI_ITEM_AXES; axis++)
        start += place.index[axis] * place.strides->steps[Number].items[axis - 1];
    return start;
#else
    return place.item * p.places[Number].stride;
#endif
}

// From one column of an operand to the next.
template <int Number> constexpr bool IS_STEPPED = (GEMMEPI_STEPPED >> Number & 1) != 0;
template <int Number> __device__ inline long long column_step(const Place &place) {
#if GEMMEPI_STRIDED
    if (IS_STEPPED<Number>)
        return place.strides->steps[Number].column;
#endif
    return 1;
}

// The column of a unit's member.
template <int Members> __device__ inline long long column_of(long long units, long long unit, int member) {
    constexpr long long half = FORMULA_GROUP / 2 > 0 ? FORMULA_GROUP / 2 : 1;
    if (Members == 1)
        return unit;
    if (ALTERNATES)
        return 2 * unit + member;
    if (FORMULA_GROUP == 0)
        return unit + member * units;
    long long group = unit >> 32 ? unit / half : (long long)((u32)unit / (u32)half);
    return unit + (group + member) * half;
}

__device__ inline long long within(long long x, long long period) {
    if (period == 0)
        return x;
    return (x | period) >> 32 ? x % period : (long long)((u32)x % (u32)period);
}

__device__ inline long long through(long long x, long long block) {
    if (block == 0)
        return x;
    return (x | block) >> 32 ? x / block : (long long)((u32)x / (u32)block);
}

// Both members of a run as they lie in memory: alternating, or one behind the other.
__device__ constexpr int member_at(int place) {
    return ALTERNATES ? place % 2 : place / UNITS;
}
__device__ constexpr int unit_at(int place) {
    return ALTERNATES ? place / 2 : place % UNITS;
}
template <int Members> __device__ constexpr int place_of(int member, int unit) {
    return Members == 1 ? unit : ALTERNATES ? 2 * unit + member : member * UNITS + unit;
}
template <int Members> __device__ inline long long column_of_piece(long long units, long long unit, int piece) {
    return Members == 2 && ALTERNATES ? 2 * unit + piece * UNITS : column_of<Members>(units, unit, piece);
}

// step: from one column to the next; 1 but where Is_stepped.
template <int Members, bool Is_periodic, bool Is_stepped, class Type>
__device__ inline void load_run(const Type *line, long long period, long long step, long long units, const Place &place,
                                Words<Type, UNITS> (&to)[Members]) {
    if (ALIGNED && !Is_stepped && place.valid == UNITS) {
#pragma unroll
        for (int piece = 0; piece < Members; piece++) {
            long long column = column_of_piece<Members>(units, place.unit, piece);
            to[piece] = *reinterpret_cast<const Words<Type, UNITS> *>(line_from<Type>(line, Is_periodic ? within(column, period) : column));
        }
        return;
    }
#pragma unroll
    for (int piece = 0; piece < Members; piece++) {
        Run<Type, UNITS> run = {};
#pragma unroll
        for (int i = 0; i < UNITS; i++) {
            int at = piece * UNITS + i, unit = Members == 1 ? at : unit_at(at);
            long long column = column_of<Members>(units, place.unit + unit * ABREAST, Members == 1 ? 0 : member_at(at));
            if (unit < place.valid)
                run.at[i] = element_of(line, (Is_periodic ? within(column, period) : column) * step);
        }
        to[piece] = words_of(run);
    }
}

template <int Members, bool Is_stepped, class Type>
__device__ inline void store_units(Type *line, long long step, long long units, const Place &place, const T (&x)[Members][UNITS]) {
#pragma unroll
    for (int piece = 0; piece < Members; piece++) {
        T values[UNITS];
#pragma unroll
        for (int i = 0; i < UNITS; i++) {
            int at = piece * UNITS + i;
            values[i] = Members == 1 ? x[0][i] : x[member_at(at) % Members][unit_at(at) % UNITS];
        }
        Run<Type, UNITS> run = run_from_acc<Type>(values);
        if (ALIGNED && !Is_stepped && place.valid == UNITS) {
            store_words(line + column_of_piece<Members>(units, place.unit, piece), words_of(run));
            continue;
        }
#pragma unroll
        for (int i = 0; i < UNITS; i++) {
            int at = piece * UNITS + i, unit = Members == 1 ? at : unit_at(at);
            if (unit < place.valid)
                line[column_of<Members>(units, place.unit + unit * ABREAST, Members == 1 ? 0 : member_at(at)) * step] = run.at[i];
        }
    }
}

// What is read of an input: whole numbers of operands as they are, all else in the accumulator's type.
template <class Type> constexpr bool IS_WHOLE = SAME<Type, I32> || SAME<Type, I64>;
template <bool Whole, class Type> struct Type_read {
    typedef T type;
};
template <class Type> struct Type_read<true, Type> {
    typedef Type type;
};
template <class Type> using Read = typename Type_read<IS_WHOLE<Type>, Type>::type;

template <class Type> __device__ inline Read<Type> read_as(Type x) {
    if constexpr (IS_WHOLE<Type>)
        return x;
    else
        return to_acc<T>(x);
}

// Of an input that is read by index, the line of a row: 0 elements where the row does not exist.
template <int Number, int Kind, int Periods, class Type>
__device__ inline Table<Type> table_of(const gpi__formula_pass_params &p, const Place &place) {
    const gpi__formula_place &operand = p.places[Number];
    const Type *data = line_from<Type>(operand.data, item_start<Number>(p, place));
    if (Kind == kind::FULL)
        data = line_from<Type>(data, (Periods & 1 ? within(place.row, operand.row_period) : place.row) * operand.ld);
    return {data, place.valid ? operand.column_period : 0, Kind == kind::PER_ROW ? operand.ld : column_step<Number>(place),
            (GEMMEPI_SCALED >> Number & 1) != 0 ? *operand.scale : 1};
}

// Of what is BLOCKED, in blocks of several columns: the element of each unit, one for all where a run is of one block.
template <int Members, bool In_one_block, class Type>
__device__ inline void load_blocks(const Type *line, long long block, long long step, long long units, const Place &place,
                                   Read<Type> (&to)[Members][UNITS]) {
    constexpr bool is_one = In_one_block && (Members == 1 || (ALIGNED && !ALTERNATES));
#pragma unroll
    for (int member = 0; member < Members; member++)
#pragma unroll
        for (int i = 0; i < UNITS; i++)
            if (is_one && i > 0)
                to[member][i] = to[member][0];
            else
                to[member][i] = i < place.valid ? read_as(element_of(line, through(column_of<Members>(units, place.unit + i, member), block) * step))
                                                : Read<Type>(0);
}

// As read, of both members of a run or one.
template <int Members, class Type>
__device__ inline void read_runs(const Words<Type, UNITS> (&runs)[Members], Read<Type> (&x)[Members][UNITS]) {
#pragma unroll
    for (int piece = 0; piece < Members; piece++)
        if constexpr (IS_WHOLE<Type>) {
            Run<Type, UNITS> run = run_of(runs[piece]);
#pragma unroll
            for (int i = 0; i < UNITS; i++)
                x[piece][i] = run.at[i];
        } else {
            words_to_acc(runs[piece], x[piece]);
        }
}

// A member that is there or not.
struct Nothing {};
template <bool Exists, class X> struct Held {
    typedef X type;
};
template <class X> struct Held<false, X> {
    typedef Nothing type;
};
template <int Members, class Type> struct Runs {
    Words<Type, UNITS> at[Members];
};
template <int Members, class Type> struct Elements {
    Read<Type> at[Members][UNITS];
};

// An input in a thread: what is the same for all rows, and what a row has.
template <int Number, int Kind, int Members, class Type, int Periods> struct Input {
    static constexpr bool IS_SCALED = (GEMMEPI_SCALED >> Number & 1) != 0, ROWS_SCALED = Number == GPI__FORMULA_VALUE && GEMMEPI_VALUE_SCALE == SCALE_OUTER;
    static constexpr bool IN_BLOCKS = Kind == kind::BLOCKED && (Periods & 2) != 0;
    static constexpr bool IS_FULL = Kind == kind::FULL || (Kind == kind::BLOCKED && !IN_BLOCKS), HAS_COLUMNS = IS_FULL || Kind == kind::PER_COLUMN;
    typename Held<HAS_COLUMNS, Runs<Members, Type>>::type runs;
    typename Held<IN_BLOCKS, Elements<Members, Type>>::type elements;
    typename Held<!HAS_COLUMNS && !IN_BLOCKS, Read<Type>>::type one;
    typename Held<IS_SCALED, float>::type factor;

    __device__ void load_line(const gpi__formula_pass_params &p, const Place &place, long long row) {
        const gpi__formula_place &operand = p.places[Number];
        load_run<Members, (Periods & 2) != 0, IS_STEPPED<Number>>(line_from<Type>(line_from<Type>(operand.data, item_start<Number>(p, place)), row * operand.ld),
                                                             operand.column_period, column_step<Number>(place), p.units, place, runs.at);
    }
    // Once for all rows: place.row is not looked at.
    __device__ void begin(const gpi__formula_pass_params &p, const Place &place) {
        const gpi__formula_place &operand = p.places[Number];
        if constexpr (IS_SCALED && !ROWS_SCALED)
            factor = operand.scale[place.item * operand.scale_stride];
        if constexpr (Kind == kind::PER_COLUMN)
            load_line(p, place, 0);
        if constexpr (Kind == kind::NUMBER)
            one = (T)operand.number;
        if constexpr (Kind == kind::SCALAR)
            one = scaled(read_as(((const Type *)operand.data)[item_start<Number>(p, place)]));
    }
    __device__ void load(const gpi__formula_pass_params &p, const Place &place) {
        const gpi__formula_place &operand = p.places[Number];
        long long row = !(Periods & 1) ? place.row : Kind == kind::BLOCKED ? through(place.row, operand.row_period) : within(place.row, operand.row_period);
        if constexpr (IS_FULL)
            load_line(p, place, row);
        if constexpr (ROWS_SCALED)
            factor = place.valid ? operand.scale[place.item * operand.scale_stride + row] : 0;
        if constexpr (IN_BLOCKS)
            load_blocks<Members, (Periods & 4) != 0>(line_from<Type>(line_from<Type>(operand.data, item_start<Number>(p, place)), row * operand.ld),
                                                     operand.column_period, column_step<Number>(place), p.units, place, elements.at);
        if constexpr (Kind == kind::PER_ROW)
            one = place.valid ? scaled(read_as(((const Type *)operand.data)[item_start<Number>(p, place) + row * operand.ld])) : Read<Type>(0);
    }
    __device__ Read<Type> scaled(Read<Type> x) const {
        if constexpr (IS_SCALED)
            return x * (T)factor;
        else
            return x;
    }
    __device__ void take(Read<Type> (&x)[Members][UNITS]) const {
        if constexpr (HAS_COLUMNS) {
            Read<Type> values[Members][UNITS];
            read_runs(runs.at, values);
#pragma unroll
            for (int i = 0; i < Members * UNITS; i++) {
                int at = place_of<Members>(i / UNITS, i % UNITS);
                x[i / UNITS][i % UNITS] = scaled(values[at / UNITS][at % UNITS]);
            }
        } else {
#pragma unroll
            for (int i = 0; i < Members * UNITS; i++)
                if constexpr (IN_BLOCKS)
                    x[i / UNITS][i % UNITS] = scaled(elements.at[i / UNITS][i % UNITS]);
                else
                    x[i / UNITS][i % UNITS] = one;
        }
    }
};
