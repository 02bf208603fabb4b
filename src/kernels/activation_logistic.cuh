// The logistic function s, and x s(w).
#pragma once

#include "activation_functions.cuh"

// Of a number x by way of exp(-|x|), accurate in both tails: s(x) = part * root * root, and s(-x)
template <class A> struct Logistic { A part, root, opposite; };
template <class A> __device__ inline Logistic<A> logistic(bool below, Exponential<A> e) {
    A inverse = reciprocal_of_1_plus(e.part * e.root, e.root);
    return {below ? e.part * inverse : inverse, below ? e.root : A(1), below ? inverse : e.value() * inverse};
}

// v factor s, which is s(x)
template <class A> __device__ inline A times_logistic(A v, A factor, Logistic<A> s) {
    return v * s.root * (factor * s.part) * s.root;
}
#if !GEMMEPI_EXACT // in fewer instructions: s(x) = root share, and s(-x) is the rest to 1
template <> struct Logistic<float> { float root, share; };
__device__ inline Logistic<float> logistic(bool below, Exponential<float> e) {
    float root = below ? e.root : 1;
    return {root, root * reciprocal_of_1_plus(e.root, e.root)};
}
__device__ inline float times_logistic(float v, float factor, Logistic<float> s) {
    return v * s.root * (factor * s.share);
}
#endif
template <class A> __device__ inline Logistic<A> logistic(A x) {
    return logistic(x < 0, exponential(-fabs(x)));
}
template <class A> __device__ inline A times_logistic(A v, A factor, A x) {
    return times_logistic(v, factor, logistic(x));
}
template <class A> __device__ inline A times_logistic(A v, A x) {
    return times_logistic(v, A(1), x);
}

// x s(w) at EXACT 0, where `power` is -w log2(e) - 8: what follows stays in f32's range as long as the result does.
__device__ inline float times_logistic_of(float x, float power) {
    constexpr float scale = 0.00390625f; // 2^-8
    return x * scale * fast_reciprocal(fast_power_of_2(power) + scale);
}

// v times the derivative of x s(w), w a function of x and `slope + more` its derivative: s(w) (1 + x (slope + more)
// s(-w)). A root goes into the sum, which may then not overflow where s(w) is 0. At infinity the formula is NaN.
template <bool More, class A>
__device__ inline A times_gate_derivative(A v, A x, Logistic<A> s, A slope, A more) {
    A scale = s.opposite * s.root, change = x * scale;
    if (More)
        change = fused(change, slope, fused(change, more, fused(x, scale, -change) * slope));
    else
        change *= slope;
    return v * s.root * fused(change, s.part, s.root * s.part);
}
#if !GEMMEPI_EXACT
template <bool More>
__device__ inline float times_gate_derivative(float v, float x, Logistic<float> s, float slope, float more) {
    float opposite = fmaf(-s.root, s.share, 1);
    return v * s.root * (x * s.share * opposite * (More ? slope + more : slope) + s.share);
}
#endif

// v factor s(x) s(-x), of x <= 0
template <class A> __device__ inline A times_logistic_derivative(A v, A factor, A x) {
    Exponential<A> e = exponential(x);
    A inverse = reciprocal_of_1_plus(e.part * e.root, e.root);
    return v * e.root * (e.part * inverse * inverse * (factor * e.root));
}

// Of x s(w), where w is x times a factor: s(w), and the derivative of w is slope + more. All are of a number held where s(w) has long
// been 0 or 1, so that nothing overflows; at EXACT 0 only `more` needs it.
template <class A> struct Gate {
    Logistic<A> s;
    A slope, more;
};

// >>at EXACT 0, of sums: w is no further than exp(-w) is in the range

__device__ inline float logistic_of_power(float power) { // s(w) of -w log2(e)
    return fast_reciprocal(1 + fast_power_of_2(power));
}
// At EXACT 0, of N sums, 2 or 4, whose powers these are: s(w) and exp(-w), with one reciprocal for all. Below 2^(-124 / N) s(w) is 0.
template <int N> __device__ inline void logistics_of_powers(const float (&powers)[N], float (&s)[N], float (&e)[N]) {
    constexpr float most = 124 / N, least = N == 2 ? 2.1684085e-19f : 4.6566218e-10f; // a little above 2^-most
    float sums[N], pairs[2] = {1, 1};
#pragma unroll
    for (int i = 0; i < N; i++) {
        e[i] = fast_power_of_2(fminf(powers[i], most));
        sums[i] = 1 + e[i];
        pairs[i / 2] *= sums[i];
    }
    float inverse = fast_reciprocal(pairs[0] * pairs[1]);
#pragma unroll
    for (int i = 0; i < N; i++)
        s[i] = from_0_to_1(fmaf(sums[i ^ 1], N == 4 ? inverse * pairs[1 - i / 2] : inverse, -least));
}
