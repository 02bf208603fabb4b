// A formula over tensors, of which v is one if the formula reads it, and C may be one. A thread takes the same units of row_steps rows, a block
// threadIdx.x * UNITS units of blockDim.y * row_steps rows. Of reductions each block leaves states, for formula_reduce.cu to join.
//
// The prologue includes formula.cuh and activation.cuh, has what formula/emit.h writes, and defines beside that
//
//     GEMMEPI_T            F32, F64 or I32: the accumulator, in which everything is computed
//     GEMMEPI_INDEX        an integer type that holds all extents
//     GEMMEPI_UNITS        4 or 8. GEMMEPI_ABREAST: 1, or where GEMMEPI_ALIGNED is 0 threads of a row: a thread's units are so many columns apart
//     GEMMEPI_VALUE_TYPE   of v in memory. GEMMEPI_VALUE_SCALE: the public mode of its scale, TENSOR or, of rows, OUTER; else 0
//     GEMMEPI_C_TYPE       GEMMEPI_ADDS_C 1: of C, of which v is yet without beta times as much
//     GEMMEPI_RESULT_TYPE  of D
//     GEMMEPI_STRIDED      1: operands have any strides; items have GEMMEPI_ITEM_AXES axes, and GEMMEPI_STEPPED a bit for each operand, by its
//                          place, whose columns are not side by side. There is no v then
//     GEMMEPI_SCALED       a bit for each operand, by its place, that has a scale; GEMMEPI_AMAX one for each that has an amax
//     GEMMEPI_FOUND        how D's scales are found, as formula_shape.h has it; else 0. GEMMEPI_FOUND_MODE says which: the public mode, OUTER or
//                          VECTOR_128. found_scale.cuh is included
#include "formula_run.cuh"
#include "activation.cuh"

#ifndef GEMMEPI_FOUND
#define GEMMEPI_FOUND 0
#endif
enum { AT_ONCE = 1, AMAX_ALONE, BY_AMAX };

constexpr int THREADS = 256, RESULT = 32, VALUE = GPI__FORMULA_VALUE, ADDEND = VALUE + 1;
constexpr bool IS_INT = SAME<T, I32>;

typedef decltype(magnitude(T())) Magnitude;

// Modulo 2^32 of whole numbers.
__device__ inline T times(T x, T y) {
    if constexpr (IS_INT)
        return (T)((u32)x * (u32)y);
    else
        return x * y;
}

// >>outputs: what a row has of each, and what is gathered over rows. Each may use its Scratch of shared memory to finish, one after another.

#if GEMMEPI_FOUND
constexpr bool OF_WHOLE_ROWS = GEMMEPI_FOUND_MODE == SCALE_OUTER;

__device__ inline long long found_at(const gpi__formula_pass_params &p, const Place &place, long long column) {
    return place.item * p.places[RESULT].scale_stride + (OF_WHOLE_ROWS ? 0 : column / SCALE_STEPS * p.rows) + place.row;
}

// The largest that so many lanes side by side have, in each of them.
template <int Members> __device__ inline u32 largest_of_lanes(const Place &place, const float (&row)[Members][UNITS], u32 lanes) {
    u32 largest = 0;
#pragma unroll
    for (int member = 0; member < Members; member++)
        keep_largest(row[member], place.valid, largest);
    for (u32 step = lanes / 2; step > 0; step /= 2)
        largest = max(largest, __shfl_xor_sync(0xffffffff, largest, (int)step));
    return largest;
}

// Divides by the scales that it finds of 128 columns, which lanes side by side have; or raises the amax that each scale is made of; or divides by
// what these say.
template <class Type, int Members>
__device__ inline void find_scales(const gpi__formula_pass_params &p, const Place &place, float (&row)[Members][UNITS]) {
    float *scales = (float *)p.places[RESULT].scale, scale = 1;
    u32 *amax = (u32 *)p.places[RESULT].amax, lanes = SCALE_STEPS / UNITS;
    if (GEMMEPI_FOUND == AT_ONCE) {
        lanes = lanes < blockDim.x ? lanes : blockDim.x;
        scale = scale_of_amax<Type>(largest_of_lanes(place, row, lanes));
        if (threadIdx.x % lanes == 0 && place.valid)
            scales[found_at(p, place, place.unit)] = scale;
    } else if (GEMMEPI_FOUND == AMAX_ALONE && OF_WHOLE_ROWS) {
        u32 largest = largest_of_lanes(place, row, blockDim.x < 32 ? blockDim.x : 32);
        if (threadIdx.x % 32 == 0 && place.valid)
            raise_to(amax + found_at(p, place, 0), largest);
    } else if (OF_WHOLE_ROWS && place.valid) {
        scale = scale_of_amax<Type>(amax[found_at(p, place, 0)]);
        if (place.unit == 0)
            scales[found_at(p, place, 0)] = scale;
    }
    float factor = factor_of_scale(scale);
#pragma unroll
    for (int j = 0; j < Members * UNITS; j++) {
        float &x = row[j / UNITS][j % UNITS];
        long long column = column_of<Members>(p.units, place.unit + j % UNITS, j / UNITS), at = found_at(p, place, column);
        if (GEMMEPI_FOUND == AT_ONCE || OF_WHOLE_ROWS) {
            x *= factor;
        } else if (j % UNITS < place.valid && GEMMEPI_FOUND == AMAX_ALONE) {
            raise_to(amax + at, magnitude(x));
        } else if (j % UNITS < place.valid) {
            scale = scale_of_amax<Type>(amax[at]);
            x *= factor_of_scale(scale);
            if (column % SCALE_STEPS == 0)
                scales[at] = scale;
        }
    }
}
#endif

template <int Number, int Members, class Type> struct Stored {
    static constexpr bool IS_SCALED = (GEMMEPI_SCALED >> Number & 1) != 0, HAS_AMAX = (GEMMEPI_AMAX >> Number & 1) != 0;
    struct Scratch {};
    T row[Members][UNITS];
    Magnitude largest;

    __device__ void begin() {
        largest = 0;
    }
    __device__ void finish_row(const gpi__formula_pass_params &p, const Place &place, u32) {
        const gpi__formula_place &to = p.places[Number];
        if (HAS_AMAX)
#pragma unroll
            for (int member = 0; member < Members; member++)
                keep_largest(row[member], place.valid, largest);
        if constexpr (IS_SCALED)
#pragma unroll
            for (int i = 0; i < Members * UNITS; i++)
                row[i / UNITS][i % UNITS] = times(row[i / UNITS][i % UNITS], (T)to.scale[place.item * to.scale_stride]);
#if GEMMEPI_FOUND
        if constexpr (Number == RESULT)
            find_scales<Type>(p, place, row);
#endif
        if (place.valid && GEMMEPI_FOUND != AMAX_ALONE)
            store_units<Members, IS_STEPPED<Number>>((Type *)to.data + item_start<Number>(p, place) + place.row * to.ld, column_step<Number>(place),
                                                     p.units, place, row);
    }
    __device__ void finish(const gpi__formula_pass_params &p, const Place &, long long, Scratch &) {
        if constexpr (HAS_AMAX)
            store_largest(p.places[Number].amax, largest);
    }
};

// What this thread has of a row.
template <class S, int Members>
__device__ inline void add_row(S &state, const gpi__formula_pass_params &p, const Place &place, const T (&row)[Members][UNITS]) {
#pragma unroll
    for (int member = 0; member < Members; member++) {
        long long columns[UNITS];
#pragma unroll
        for (int i = 0; i < UNITS; i++)
            columns[i] = column_of<Members>(p.units, place.unit + i * ABREAST, member);
        state.add_run(row[member], columns, place.valid);
    }
}

// row_sum and so on: a state of each row and column tile.
template <int Number, int Members, int Reduction> struct Of_rows {
    typedef State_of<T, Reduction> State;
    struct Scratch {};
    T row[Members][UNITS];

    __device__ void begin() {}
    __device__ void finish_row(const gpi__formula_pass_params &p, const Place &place, u32 column_tile) {
        State state = State::empty();
        add_row(state, p, place, row);
        join_lanes(state, blockDim.x);
        if (threadIdx.x == 0 && place.row < p.rows)
            ((State *)p.places[Number].data)[(place.item * p.rows + place.row) * p.column_tiles + column_tile] = state;
    }
    __device__ void finish(const gpi__formula_pass_params &, const Place &, long long, Scratch &) {}
};

// row_sum(x, w) and so on: a state of each row and column_period columns, a power of two of runs, which lanes side by side have.
template <int Number, int Members, int Reduction> struct Of_groups {
    typedef State_of<T, Reduction> State;
    struct Scratch {};
    T row[Members][UNITS];

    __device__ void begin() {}
    __device__ void finish_row(const gpi__formula_pass_params &p, const Place &place, u32) {
        const gpi__formula_place &to = p.places[Number];
        u32 lanes = (u32)to.column_period / UNITS;
#pragma unroll
        for (int member = 0; member < Members; member++) {
            State state = State::empty();
            long long columns[UNITS] = {}; // which these reductions do not ask for
            state.add_run(row[member], columns, place.valid);
            join_lanes(state, lanes);
            if (threadIdx.x % lanes == 0 && place.valid)
                ((State *)to.data)[(place.item * p.rows + place.row) * to.ld +
                                   through(column_of<Members>(p.units, place.unit, member), to.column_period)] = state;
        }
    }
    __device__ void finish(const gpi__formula_pass_params &, const Place &, long long, Scratch &) {}
};

// column_sum and so on: a state of each column and row tile.
template <int Number, int Members, int Reduction> struct Of_columns {
    typedef State_of<T, Reduction> State;
    struct Scratch {
        State states[UNITS][THREADS];
    };
    T row[Members][UNITS];
    State states[Members][UNITS];

    __device__ void begin() {
#pragma unroll
        for (int i = 0; i < Members * UNITS; i++)
            states[i / UNITS][i % UNITS] = State::empty();
    }
    __device__ void finish_row(const gpi__formula_pass_params &, const Place &place, u32) {
#pragma unroll
        for (int i = 0; i < Members * UNITS; i++)
            if (i % UNITS < place.valid)
                states[i / UNITS][i % UNITS].add(row[i / UNITS][i % UNITS], place.row);
    }
    __device__ void finish(const gpi__formula_pass_params &p, const Place &place, long long row_tile, Scratch &scratch) {
        State(&shared)[UNITS][THREADS] = scratch.states;
        u32 thread = threadIdx.y * blockDim.x + threadIdx.x;
        State *to = (State *)p.places[Number].data + row_tile * p.units * Members;
#pragma unroll
        for (int member = 0; member < Members; member++) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < UNITS; i++)
                shared[i][thread] = states[member][i];
            for (u32 half = blockDim.y / 2; half > 0; half /= 2) {
                __syncthreads();
                if (threadIdx.y < half)
#pragma unroll
                    for (int i = 0; i < UNITS; i++)
                        shared[i][thread].join(shared[i][thread + half * blockDim.x]);
            }
            if (threadIdx.y == 0)
#pragma unroll
                for (int i = 0; i < UNITS; i++)
                    if (i < place.valid)
                        to[column_of<Members>(p.units, place.unit + i * ABREAST, member)] = shared[i][thread];
        }
    }
};

// all_sum and all_max: a state of each block.
template <int Number, int Members, int Reduction> struct Of_all {
    typedef State_of<T, Reduction> State;
    struct Scratch {
        State states[THREADS / 32];
    };
    T row[Members][UNITS];
    State state;

    __device__ void begin() {
        state = State::empty();
    }
    __device__ void finish_row(const gpi__formula_pass_params &p, const Place &place, u32) {
        add_row(state, p, place, row);
    }
    __device__ void finish(const gpi__formula_pass_params &p, const Place &, long long, Scratch &scratch) {
        State(&shared)[THREADS / 32] = scratch.states;
        u32 thread = threadIdx.y * blockDim.x + threadIdx.x;
        join_lanes(state, 32);
        __syncthreads();
        if (thread % 32 == 0)
            shared[thread / 32] = state;
        __syncthreads();
        if (thread > 0)
            return;
        for (int warp = 1; warp < THREADS / 32; warp++)
            state.join(shared[warp]);
        ((State *)p.places[Number].data)[blockIdx.x] = state;
    }
};

template <int Number, int Kind, int Members, class Type, int Reduction> __device__ auto output() {
    if constexpr (Reduction == reduction::none)
        return Stored<Number, Members, Type>();
    else if constexpr (Kind == kind::PER_ROW)
        return Of_rows<Number, Members, Reduction>();
    else if constexpr (Kind == kind::BLOCKED)
        return Of_groups<Number, Members, Reduction>();
    else if constexpr (Kind == kind::PER_COLUMN)
        return Of_columns<Number, Members, Reduction>();
    else
        return Of_all<Number, Members, Reduction>();
}

// >>all operands, by the formula's table, and v

#if FORMULA_VALUE
#define INPUTS(X) FORMULA_INPUTS(X) X(VALUE, v, FULL, FORMULA_VALUE, GEMMEPI_VALUE_TYPE, 0)
#else
#define INPUTS(X) FORMULA_INPUTS(X)
#endif
#if GEMMEPI_ADDS_C
#define ADDENDS(X) X(ADDEND, c, FULL, FORMULA_VALUE, GEMMEPI_C_TYPE, 0)
#else
#define ADDENDS(X)
#endif
#if FORMULA_RESULT
#define RESULTS(X) FORMULA_OUTPUTS(X) X(RESULT, d, FULL, FORMULA_RESULT, GEMMEPI_RESULT_TYPE, none, 0)
#else
#define RESULTS(X) FORMULA_OUTPUTS(X)
#endif
#define INPUT(place, name, kind_, members, type, periods)  Input<place, kind::kind_, members, type, periods> name;
#define VALUES(place, name, kind_, members, type, periods) Read<type> name[members][UNITS];
#define OUTPUT(place, name, kind_, members, type, reduction_, accumulates) \
    decltype(output<place, kind::kind_, members, type, reduction::reduction_>()) name;

struct Inputs {
    INPUTS(INPUT) ADDENDS(INPUT)
};
struct Values {
    INPUTS(VALUES) ADDENDS(VALUES)
};
struct Outputs {
    RESULTS(OUTPUT)
};
#define SCRATCH(place, name, kind_, members, type, reduction_, accumulates) decltype(Outputs::name)::Scratch name;
union Scratch {
    RESULTS(SCRATCH)
};

// >>random numbers: four columns of the caller's from a multiple of 4 on have one counter

template <int Members>
__device__ inline void draw(const gpi__formula_pass_params &p, const Place &place, I64 seed, I64 i, float (&x)[Members][UNITS]) {
#pragma unroll
    for (int j = 0; j < Members * UNITS; j++) {
        long long column = column_of<FORMULA_MEMBERS>(p.units, place.unit + j % UNITS, j / UNITS);
        if (FORMULA_EXCHANGED) {
            x[j / UNITS][j % UNITS] = formula_uniform(seed, i, place.row, column, place.item);
        } else if (FORMULA_MEMBERS > 1) {
            x[j / UNITS][j % UNITS] = formula_uniform(seed, i, column, place.row, place.item);
        } else if (j % 4 == 0) {
            Random_words words = random_words(seed, i, column, place.row, place.item);
#pragma unroll
            for (int k = 0; k < 4; k++)
                x[j / UNITS][j % UNITS + k] = random_number(words.at[k]);
        }
    }
}
#define DRAWN(name, members, seed, number)      float name[members][UNITS];
#define DRAW(name, members, seed, number)       draw(p, place, seed, number, drawn.name);
#define TAKE_DRAWN(name, members, seed, number) \
    for (int member = 0; member < members; member++) \
        in.name[member] = drawn.name[member][i];
struct Drawn {
    FORMULA_UNIFORMS(DRAWN)
};

#if GEMMEPI_ADDS_C
__device__ inline void add_c(T beta, Values &values) {
#pragma unroll
    for (int i = 0; i < FORMULA_VALUE * UNITS; i++) {
        T &x = values.v[i / UNITS][i % UNITS], more = times(beta, values.c[i / UNITS][i % UNITS]);
        if constexpr (IS_INT)
            x = (T)((u32)x + (u32)more);
        else
            x += more;
    }
}
#endif

#define TAKE_UNIT(place, name, kind_, members, type, periods) \
    for (int member = 0; member < members; member++)          \
        in.name[member] = values.name[member][i];
#define TAKE_TABLE(place_, name, kind_, type, periods) in.name = table_of<place_, kind::kind_, periods, type>(p, place);
#define KEEP_UNIT(place, name, kind_, members, type, reduction_, accumulates) \
    for (int member = 0; member < members; member++)                         \
        outputs.name.row[member][i] = out.name[member];

__device__ inline T scale_of_result(const gpi__formula_pass_params &p, const Place &place) {
    if constexpr ((GEMMEPI_SCALED >> RESULT & 1) != 0)
        return (T)p.places[RESULT].scale[place.item * p.places[RESULT].scale_stride];
    else
        return 1;
}

__device__ inline void compute(const gpi__formula_pass_params &p, const Place &place, const Values &values, Outputs &outputs) {
    Drawn drawn;
    (void)drawn; // there may be none
#pragma unroll
    for (int i = 0; i < UNITS; i++) {
        Formula_in in;
        Formula_out out;
        INPUTS(TAKE_UNIT)
        FORMULA_TABLES(TAKE_TABLE)
#if FORMULA_INDICES & 1
        in.row = (GEMMEPI_INDEX)place.row;
#endif
#if FORMULA_INDICES & 2
        for (int member = 0; member < FORMULA_MEMBERS; member++)
            in.column[member] = (GEMMEPI_INDEX)column_of<FORMULA_MEMBERS>(p.units, place.unit + i * ABREAST, member);
#endif
#if FORMULA_INDICES & 4
        in.item = (GEMMEPI_INDEX)place.item;
#endif
#if FORMULA_INDICES & 8
        in.rows = (GEMMEPI_INDEX)p.rows;
#endif
#if FORMULA_INDICES & 16
        in.columns = (GEMMEPI_INDEX)p.columns;
#endif
#if FORMULA_INDICES & 32
        in.depth = (GEMMEPI_INDEX)p.depth;
#endif
#if FORMULA_WAVES
        in.is_near = false;
#endif
#if FORMULA_ROUNDS
        in.scale_d = scale_of_result(p, place);
#endif
        if (i == 0) { // what seeds are made of is the same for all
            FORMULA_UNIFORMS(DRAW)
        }
        FORMULA_UNIFORMS(TAKE_DRAWN)
        formula(in, out);
        RESULTS(KEEP_UNIT)
    }
}

#define BEGIN_INPUT(place_, name, kind_, members, type, periods)                        inputs.name.begin(params, place);
#define LOAD_INPUT(place_, name, kind_, members, type, periods)                         inputs.name.load(params, place);
#define TAKE_INPUT(place_, name, kind_, members, type, periods)                         inputs.name.take(values.name);
#define BEGIN_OUTPUT(place_, name, kind_, members, type, reduction_, accumulates)       outputs.name.begin();
#define FINISH_ROW(place_, name, kind_, members, type, reduction_, accumulates)         outputs.name.finish_row(params, place, column_tile);
#define FINISH_OUTPUT(place_, name, kind_, members, type, reduction_, accumulates)      outputs.name.finish(params, place, row_tile, scratch.name);

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_formula_pass(GEMMEPI_PARAMS Params all) {
    const gpi__formula_pass_params &params = pass_of(all);
    after_launches_before();
    u32 row_tile = blockIdx.x / params.column_tiles, item = row_tile / params.row_tiles; // of rows of all items
    u32 column_tile = blockIdx.x - row_tile * params.column_tiles;
    long long first = (long long)(row_tile - item * params.row_tiles) * params.row_steps * blockDim.y;
    constexpr int mine = ABREAST > 1 ? 1 : UNITS, reach = ABREAST * UNITS; // mine: units of a thread side by side; reach: columns from its first unit to its last at most
    long long unit = ((long long)column_tile * blockDim.x * (UNITS / mine) + threadIdx.x) * mine;
    int left = unit >= params.units ? 0 : params.units - unit >= reach ? reach : (int)(params.units - unit);
    int valid = (left + ABREAST - 1) / ABREAST;
    Place place = {item, 0, unit, valid};
    __shared__ Scratch scratch;
    find_item(all, place);
    Inputs inputs;
    Outputs outputs;
    (void)inputs; // there may be none
    INPUTS(BEGIN_INPUT)
    RESULTS(BEGIN_OUTPUT)
#if GEMMEPI_ADDS_C
    T beta = params.uses_c ? from_acc<T>(params.device_beta ? *params.device_beta : params.beta) : T(0);
    if (beta != 0) {
        ADDENDS(BEGIN_INPUT)
    }
#endif
#pragma unroll 1
    for (int step = 0; step < params.row_steps && first + (long long)step * blockDim.y < params.rows; step++) {
        Values values;
        place.row = first + (long long)step * blockDim.y + threadIdx.y;
        place.valid = place.row < params.rows ? valid : 0;
        INPUTS(LOAD_INPUT)
        INPUTS(TAKE_INPUT)
#if GEMMEPI_ADDS_C
        if (beta != 0) {
            ADDENDS(LOAD_INPUT)
            ADDENDS(TAKE_INPUT)
            add_c(beta, values);
        }
#endif
        compute(params, place, values, outputs);
        RESULTS(FINISH_ROW)
    }
    place.valid = valid;
    RESULTS(FINISH_OUTPUT)
}
