// The end of a formula's reductions: joins the states that the tiles of formula_pass.cu left, or the epilogue of a product.
//
// The prologue says what GEMMEPI_T is, and lists the outputs that are reductions in FORMULA_OUTPUTS, as formula/emit.h does;
// GEMMEPI_SCALED and GEMMEPI_AMAX have a bit for each place; GEMMEPI_LEFT: an epilogue left the states;
// GEMMEPI_THREADS: 256 or, where columns have many states, 1024.
#include "formula_reduce.cuh"

constexpr int THREADS = GEMMEPI_THREADS;
constexpr int STATE = 16; // bytes of one at most
template <class Left> constexpr int AT_ONCE = sizeof(Left) == 4 ? 8 : 4; // states that a thread loads before it joins them

// Of the threads of a result the first has all: of those side by side, where their states are,
template <class S> __device__ inline void join_side_by_side(S *warps, S &state, u32 lane, u32 lanes) {
    join_lanes(state, lanes < 32 ? lanes : 32);
    if (lanes <= 32)
        return;
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = state;
    __syncthreads();
    if (lane == 0)
        for (u32 i = 1; i < lanes / 32; i++)
            state.join(warps[threadIdx.x / 32 + i]);
}
// and `apart`.
template <class S> __device__ inline void join_apart(S *shared, S &state, u32 lane, u32 lanes, u32 apart) {
    shared[threadIdx.x] = state;
    for (u32 half = lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half)
            shared[threadIdx.x].join(shared[threadIdx.x + half * apart]);
    }
    state = shared[threadIdx.x];
}

template <class S, class Type, bool Negates, bool Accumulates, bool Is_scaled, bool Has_amax>
__device__ inline void store_reduction(const gpi__formula_reduction &p, long long at, const S &state) {
    Type *out = (Type *)p.out + at;
    if constexpr (SAME<Type, I32>) {
        *out = state.column() == ~0ull ? 0 : (I32)state.low;
    } else {
        double result = Negates ? -state.result() : state.result();
        if (Accumulates)
            result += to_acc<double>(*out);
        if (Has_amax)
            raise_to(p.amax, magnitude((Amax_of<Type>)result));
        *out = from_acc<Type>(Is_scaled ? result * (double)*p.scale : result);
    }
}

template <class S, class Left, class Type, bool Negates, bool Accumulates, bool Is_scaled, bool Has_amax>
__device__ inline void finish_reduction(const gpi__formula_reduction &p, void *memory) {
    static_assert(sizeof(S) <= STATE, "states have room");
    S *shared = (S *)memory;
    u32 results = THREADS / p.lanes, block = blockIdx.x - p.first_block;
    u32 mine = p.is_along_lines ? threadIdx.x / p.lanes : threadIdx.x % results;
    u32 lane = p.is_along_lines ? threadIdx.x % p.lanes : threadIdx.x / results;
    long long which = (long long)block * results + mine;
    long long group = which / p.count, at = which - group * p.count;
    const Left *states = (const Left *)p.states + group * p.group_step + at * p.result_step;
    long long first = lane, lines = group < p.groups ? p.lines : 0;
    S state = S::empty();
#pragma unroll 1
    do { // once at least: what is stored behind it waits as well
        Left some[AT_ONCE<Left>];
        if (first == lane)
            after_launches_before(); // no sooner: most of the instructions up to the last load have come by now
#pragma unroll
        for (int i = 0; i < AT_ONCE<Left>; i++)
            some[i] = first + i * p.lanes < lines ? states[(first + i * p.lanes) * p.line_step] : Left::empty();
#pragma unroll
        for (int i = 0; i < AT_ONCE<Left>; i++)
            state.join(some[i]);
        first += AT_ONCE<Left> * p.lanes;
    } while (first < lines);
    if (p.is_along_lines)
        join_side_by_side(shared, state, lane, p.lanes);
    else
        join_apart(shared, state, lane, p.lanes, results);
    long long line = p.of_line ? at / p.of_line : 0;
    if (lane == 0 && group < p.groups)
        store_reduction<S, Type, Negates, Accumulates, Is_scaled, Has_amax>(
            p, group * p.out_stride + line * p.out_line + (at - line * p.of_line) * p.out_step, state);
}

#ifdef GEMMEPI_LEFT
template <int Reduction> using Given = Left_of<GEMMEPI_T, Reduction>;
#else
template <int Reduction> using Given = State_of<GEMMEPI_T, Reduction>;
#endif
#define FINISH(place, name, kind_, members, type, reduction_, accumulates)                                                  \
    if (blockIdx.x >= params.reductions[place].first_block &&                                                               \
        blockIdx.x - params.reductions[place].first_block < params.reductions[place].blocks)                                \
        finish_reduction<State_of<GEMMEPI_T, reduction::reduction_>, Given<reduction::reduction_>, type, is_of_negatives(reduction::reduction_), accumulates != 0, \
                         (GEMMEPI_SCALED >> place & 1) != 0, (GEMMEPI_AMAX >> place & 1) != 0>(params.reductions[place], shared);

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemmepi_formula_reduce(GEMMEPI_PARAMS gpi__formula_reduce_params params) {
    __shared__ __align__(STATE) char shared[THREADS * STATE];
    FORMULA_OUTPUTS(FINISH)
}
