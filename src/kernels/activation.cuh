// Activations and derivatives, the forms that do not cancel (the formulas stand in the manual). One source for f32 and
// f64, in f32 at two precisions: EXACT 1 for results of 32 bits, EXACT 0 for those of 16 and fewer.
//
// Nearly all are made of three functions: the exponential, the reciprocal and, for GELU_ERF, the tail of the normal
// distribution. In f32 there are no branches but selections, so that the time does not depend on the numbers.
//
// Measured on the host against long double, with errors of 2^-22.5 and of one unit in the last place put into the
// hardware's exponential and reciprocal, over all exponents and densely where the functions bend; u = 2^-24, 2^-53:
//   EXACT 1  f(x (1 + d)) (1 + e) with |d| <= 2 u, |e| <= 3.9 u of the largest term added, also with a factor v and
//            where the result is subnormal, where e may be one smallest subnormal. In f64 so with CUDA's exp and erf.
//   EXACT 0  relative, of a derivative's largest term: 18 u for |x| < 2, 100 u for |x| < 5 and 170 u for |x| < 10 (3, 18 and
//            25 u in the square mean), but for GELU_ERF itself 2^-21 of x and, where that is more, 2^-13 of the result (of
//            LONG_SUMS see sum_times_own_normal()). Results below 1.2e-38 may be 0,
//            and so may those of |v| > 5e35 where exp(x) < 2^-252. Nearly subnormal are x s(w) of |x| < 2^-118, to 2^-17, and
//            v times MISH's derivative of |v| < 2^-112 above 0, to 2^-10.
#pragma once

#include "activation_each.cuh"

// `parameter` is LEAKY_RELU's and ELU's.
template <int Activation, class A> __device__ inline A activate(A x, A parameter) {
    return Act<Activation, A>::value(x, parameter);
}
template <int Activation, class A> __device__ inline A times_derivative(A v, A x, A parameter) {
    return Act<Activation, A>::times_derivative(v, x, parameter);
}
template <int Activation, class A> __device__ inline A times_activation(A v, A x, A parameter) {
    return Act<Activation, A>::times(v, x, parameter);
}
template <int Activation, class A> __device__ inline A activate_beside_derivative(A x, A parameter) {
    return Act<Activation, A>::beside_derivative(x, parameter);
}

// >>of sums of products

template <int Activation, bool Gate = false, class A> __device__ inline A activate_sum(A x, A parameter) {
    return Act<Activation, A>::template of_sum<Gate>(x, parameter);
}
template <int Activation, bool Gate = false, class A> __device__ inline A activate_biased_sum(A sum, A bias, A parameter) {
    return Act<Activation, A>::template of_biased_sum<Gate>(sum, bias, parameter);
}
// The activation of N sums, or that makes of their gradients dy those of the sums.
template <int Activation, bool Backward, int N> __device__ inline void activate_sums(const float (&dy)[N], float (&x)[N]) {
    using Of = Act<Activation, float>;
    float powers[N], s[N], e[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        powers[i] = x[i] * Of::factor(x[i]);
    logistics_of_powers(powers, s, e);
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = Backward ? dy[i] * (s[i] * fmaf(x[i] * s[i], Of::SLOPE * e[i], 1)) : x[i] * s[i];
}

// >>gates

// v times the activation of a gate, both sums of products; and of a sum and its bias.
template <int Activation, class A> __device__ inline A gate_of_sum(A v, A x, A parameter) {
    if constexpr (Act<Activation, A>::GATES_BY_SUMS)
        return v * activate_sum<Activation, true>(x, parameter);
    else
        return times_activation<Activation>(v, x, parameter);
}
template <int Activation, class A> __device__ inline A gate_of_biased_sum(A v, A sum, A bias, A parameter) {
    if constexpr (Act<Activation, A>::GATES_BY_SUMS)
        return v * activate_biased_sum<Activation, true>(sum, bias, parameter);
    else
        return times_activation<Activation>(v, sum + bias, parameter);
}

// Whether dy value must not go first. Where the derivative is of 1.5 at most, its underflow does little harm, half a smallest subnormal that
// act' multiplies: in f64 alone that counts.
template <int Activation, class A> __device__ inline bool is_far_product(A dy, A value) {
    A both = dy * value;
    if constexpr (Act<Activation, A>::HAS_ANY_SIZE)
        return !is_plain(dy, value);
    return Activation != RELU && (fabs(both) > LARGEST<A> || (sizeof(A) == 8 && both != 0 && fabs(both) < LEAST<A>));
}
// dy value act'(gate): the gradient of value act(gate) at the gate. Of a far product with a bounded derivative the smaller factor waits (act'
// times the larger one may be subnormal).
template <int Activation, class A> __device__ inline A gate_gradient(A dy, A value, A gate, A parameter) {
    bool is_far = is_far_product<Activation>(dy, value);
    A first = dy * value;
    if constexpr (Act<Activation, A>::HAS_ANY_SIZE) {
        A out = times_derivative<Activation>(first, gate, parameter);
        return is_far ? Act<Activation, A>::far_gate_gradient(dy, value, gate, parameter) : out;
    } else {
        if (is_far)
            first = fabs(dy) > fabs(value) ? dy : value;
        A out = times_derivative<Activation>(first, gate, parameter);
        if (is_far && !(Act<Activation, A>::SELECTS && out == 0)) // 0 by selection
            out *= fabs(dy) > fabs(value) ? value : dy;
        return out;
    }
}
// That in a formula, whose `in` says whether no product is far, which the compiler knows: where one is, is_far becomes true, and the result
// is none.
template <int Activation, class A>
__device__ inline A near_gate_gradient(A dy, A gate, A value, A parameter, bool is_near, bool &is_far) {
    A out = is_near ? times_derivative<Activation>(dy * value, gate, parameter) : gate_gradient<Activation>(dy, value, gate, parameter);
    is_far |= is_near && is_far_product<Activation>(dy, value);
    return out;
}
