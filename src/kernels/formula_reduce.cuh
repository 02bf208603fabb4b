// Reductions of a formula: what is gathered so far is a state. States are joined in an order that is the same each time.
#pragma once
#include "amax.cuh"
#include "formula_kinds.cuh"
#include "params.h"

template <class A> __device__ inline A below_all() {
    if constexpr (SAME<A, F64>)
        return -__longlong_as_double(0x7ff0000000000000);
    else
        return -__uint_as_float(0x7f800000);
}

// The larger number; NaN is above all.
template <class A> __device__ inline A larger_or_nan(A x, A y) {
#if __CUDA_ARCH__ >= 800
    if constexpr (SAME<A, float>) {
        asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(y));
        return x;
    } else
#endif
        return x != x || x > y ? x : y;
}

// exp(x) for a sum of such with x from 0 down, which is 1 at least: in F32 off by 2 |x| + 4 of its units of 2^-24, where exp() takes 2.
__device__ inline float exponential_below(float x) {
    x *= 1.44269502f;
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
}
__device__ inline double exponential_below(double x) {
    return exp(x);
}

// A number of any size from another lane. Every thread of the warp takes part.
template <class S> __device__ inline S from_lane(const S &state, int step) {
    u32 words[sizeof(S) / 4];
    S other;
    memcpy(words, &state, sizeof state);
#pragma unroll
    for (int i = 0; i < (int)(sizeof(S) / 4); i++)
        words[i] = __shfl_xor_sync(0xffffffff, words[i], step);
    memcpy(&other, words, sizeof other);
    return other;
}

// Of `lanes` lanes side by side each has all. Every thread of the warp takes part.
template <class S> __device__ inline void join_lanes(S &state, u32 lanes) {
    for (u32 step = lanes / 2; step > 0; step /= 2)
        state.join(from_lane(state, (int)step));
}

// What becomes of two numbers.
struct Added {
    template <class A> __device__ static A of(A x, A y) {
        return x + y;
    }
};
struct Larger {
    template <class A> __device__ static A of(A x, A y) {
        return larger_or_nan(x, y);
    }
};

// Of numbers, a power of two of them, two and two, so that each step waits for few others.
template <class Joined, class A, int N> __device__ inline A of_pairs(const A (&x)[N]) {
    A left[N];
    memcpy(left, x, sizeof left);
#pragma unroll
    for (int half = N / 2; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < half; i++)
            left[i] = Joined::of(left[i], left[i + half]);
    return left[0];
}

// Of so few numbers that A is enough.
template <class A> struct Sum_of_few {
    A at;
    __device__ static Sum_of_few empty() {
        return {0};
    }
    __device__ void join(const Sum_of_few &other) {
        at += other.at;
    }
};

// Sums of a run are pairs' sums in A, all others are in F64.
template <class A> struct Sum {
    double at;
    __device__ static Sum empty() {
        return {0};
    }
    __device__ void join(const Sum_of_few<A> &other) {
        at += (double)other.at;
    }
    __device__ void join(const Sum &other) {
        at += other.at;
    }
    __device__ void add(A x, long long) {
        at += (double)x;
    }
    template <int N> __device__ void add_run(const A (&x)[N], long long (&)[N], int valid) {
        A there[N];
#pragma unroll
        for (int i = 0; i < N; i++)
            there[i] = i < valid ? x[i] : A(0);
        at += (double)of_pairs<Added>(there);
    }
    __device__ double result() const {
        return at;
    }
};

template <class A> struct Max {
    A at;
    __device__ static Max empty() {
        return {below_all<A>()};
    }
    __device__ void join(const Max &other) {
        at = larger_or_nan(at, other.at);
    }
    __device__ void add(A x, long long) {
        join({x});
    }
    template <int N> __device__ void add_run(const A (&x)[N], long long (&)[N], int valid) {
        A there[N];
#pragma unroll
        for (int i = 0; i < N; i++)
            there[i] = i < valid ? x[i] : below_all<A>();
        join({of_pairs<Larger>(there)});
    }
    __device__ double result() const {
        return (double)at;
    }
};

// The largest number, and the sum of exp(x - shift()): so nothing overflows that need not.
template <class A> struct Logsumexp {
    A most, sum;
    __device__ static Logsumexp empty() {
        return {below_all<A>(), 0};
    }
    // The largest number, or 0 where that is infinite or NaN: then the sum is 0, infinite or NaN, and says so itself.
    __device__ A shift() const {
        return most - most == 0 ? most : A(0);
    }
    __device__ void join(const Logsumexp &other) {
        A mine = most, its = other.most;
        most = larger_or_nan(mine, its);
        sum = sum * exponential_below(mine - shift()) + other.sum * exponential_below(its - shift());
    }
    __device__ void add(A x, long long) {
        join({x, 1});
    }
    template <int N> __device__ void add_run(const A (&x)[N], long long (&columns)[N], int valid) {
        Max<A> all = Max<A>::empty();
        all.add_run(x, columns, valid);
        Logsumexp run = {all.at, 0};
        A there[N];
#pragma unroll
        for (int i = 0; i < N; i++)
            there[i] = i < valid ? exponential_below(x[i] - run.shift()) : A(0);
        run.sum = of_pairs<Added>(there);
        join(run);
    }
    __device__ double result() const {
        return (double)shift() + log((double)sum);
    }
};

// The largest number first: so each lane has one exponential to compute, not two for each join.
template <class A> __device__ inline void join_lanes(Logsumexp<A> &state, u32 lanes) {
    Max<A> all = {state.most};
    Logsumexp<A> joined;
    join_lanes(all, lanes);
    joined.most = all.at;
    joined.sum = state.sum * exponential_below(state.most - joined.shift());
    for (u32 step = lanes / 2; step > 0; step /= 2)
        joined.sum += from_lane(joined.sum, (int)step);
    state = joined;
}

// The lowest column, or row, of the largest number; NaN is above all. -1: of none.
template <class A> struct Argmax {
    A at;
    u32 low, high; // of the column
    __device__ static Argmax empty() {
        return {below_all<A>(), 0xffffffff, 0xffffffff};
    }
    __device__ u64 column() const { // that of none is above all
        return (u64)high << 32 | low;
    }
    __device__ void join(const Argmax &other) {
        bool mine_is_nan = at != at, its_is_nan = other.at != other.at, is_lower = other.column() < column();
        bool takes = its_is_nan ? !mine_is_nan || is_lower : !mine_is_nan && (other.at > at || (other.at == at && is_lower));
        if (takes)
            *this = other;
    }
    __device__ void add(A x, long long column) {
        join({x, (u32)column, (u32)(column >> 32)});
    }
    template <int N> __device__ void add_run(const A (&x)[N], long long (&columns)[N], int valid) {
#pragma unroll
        for (int i = 0; i < N; i++)
            if (i < valid)
                add(x[i], columns[i]);
    }
};

template <class A, int Reduction> __device__ auto empty_state() {
    if constexpr (Reduction == reduction::row_sum || Reduction == reduction::column_sum || Reduction == reduction::all_sum)
        return Sum<A>();
    else if constexpr (Reduction == reduction::row_argmax || Reduction == reduction::column_argmax)
        return Argmax<A>();
    else if constexpr (Reduction == reduction::row_logsumexp || Reduction == reduction::column_logsumexp)
        return Logsumexp<A>();
    else
        return Max<A>();
}
template <class A, int Reduction> using State_of = decltype(empty_state<A, Reduction>());

// What the epilogue of a product leaves of a box's columns, or of a tile's rows: sums are of few.
template <class A, int Reduction> __device__ auto empty_left() {
    if constexpr (SAME<State_of<A, Reduction>, Sum<A>>)
        return Sum_of_few<A>();
    else
        return State_of<A, Reduction>();
}
template <class A, int Reduction> using Left_of = decltype(empty_left<A, Reduction>());
