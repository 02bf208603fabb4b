// The activations, a struct of each: value, derivative, forms of sums and traits. What several are made of is in the files included.
#pragma once

#include "activation_logistic.cuh"
#include "activation_normal.cuh"
#include "codes.h"

#define NAMED(name) name = CODE_##name,
enum { ACTIVATION_CODES(NAMED) };
#undef NAMED

// Of numbers of type A. `parameter` is LEAKY_RELU's and ELU's.
template <int Activation, class A> struct Act;

// What an activation has unless its struct says otherwise.
template <int Activation, class A> struct Any_act {
    using Of = Act<Activation, A>;
    // SAVES_MASK: its AUX is a bit for each element, where there is neither a gate nor UPSTREAM. SELECTS: its derivative is 0 or a constant,
    // applied by selection. ENDS_TAILS: see Logistic_gate. GATES_BY_SUMS: a gate is better made with of_sum(). HAS_ANY_SIZE: its value or its
    // derivative may be any number, so that three factors of a gate meet at once, lest two of them leave the range; it has
    // far_gate_gradient(): dy value act'(gate) where dy value is not plain, of f32 in f64, which has the range of all three.
    static constexpr bool SAVES_MASK = false, SELECTS = false, HAS_ANY_SIZE = false, ENDS_TAILS = false, GATES_BY_SUMS = false;

    // v times the activation, which may be subnormal, 0 or infinite where the product is not
    static __device__ inline A times(A v, A x, A parameter) {
        return v * Of::value(x, parameter);
    }
    // The activation where its derivative at x is made, too.
    static __device__ inline A beside_derivative(A x, A parameter) {
        return Of::value(x, parameter);
    }
    // That of a sum of products; Gate: it is a gate's.
    template <bool> static __device__ inline A of_sum(A x, A parameter) {
        return Of::value(x, parameter);
    }
    // That of a sum and its bias.
    template <bool Gate> static __device__ inline A of_biased_sum(A sum, A bias, A parameter) {
        return Of::template of_sum<Gate>(sum + bias, parameter);
    }
};

// >>of straight lines

template <class A> struct Act<NONE, A> : Any_act<NONE, A> {
    static __device__ inline A value(A x, A) {
        return x;
    }
    static __device__ inline A times_derivative(A v, A, A) {
        return v;
    }
};

template <class A> struct Act<RELU, A> : Any_act<RELU, A> {
    static constexpr bool SAVES_MASK = true, SELECTS = true;
    static __device__ inline A value(A x, A) {
        return x > 0 || x != x ? x : A(0);
    }
    static __device__ inline A times_derivative(A v, A x, A) {
        return x > 0 ? v : A(0);
    }
};

template <class A> struct Act<LEAKY_RELU, A> : Any_act<LEAKY_RELU, A> {
    static constexpr bool HAS_ANY_SIZE = true;
    static __device__ inline A value(A x, A parameter) {
        return x > 0 || x != x ? x : parameter * x;
    }
    static __device__ inline A times(A v, A x, A parameter) {
        return x > 0 ? v * x : product_in_range(x, parameter, v);
    }
    static __device__ inline A times_derivative(A v, A x, A parameter) {
        return x > 0 ? v : v * parameter;
    }
    static __device__ inline A far_gate_gradient(A dy, A value, A gate, A parameter) {
        double both = (double)dy * value;
        if constexpr (sizeof(A) == 8)
            return gate > 0 ? both : product_in_range(dy, value, parameter);
        else
            return (float)(gate > 0 ? both : both * parameter);
    }
};

template <class A> struct Act<SQUARED_RELU, A> : Any_act<SQUARED_RELU, A> {
    static constexpr bool HAS_ANY_SIZE = true;
    static __device__ inline A value(A x, A) {
        return x > 0 || x != x ? x * x : A(0);
    }
    static __device__ inline A times(A v, A x, A) {
        return x > 0 || x != x ? product_in_range(x, x, v) : v * A(0);
    }
    static __device__ inline A times_derivative(A v, A x, A) {
        return x > 0 || x != x ? v * x * 2 : A(0); // 2 x may overflow
    }
    static __device__ inline A far_gate_gradient(A dy, A value, A gate, A) {
        double both = (double)dy * value;
        if constexpr (sizeof(A) == 8)
            return gate > 0 || gate != gate ? product_in_range(dy, value, gate) * 2 : 0;
        else
            return gate > 0 || gate != gate ? (float)(both * gate * 2) : 0;
    }
};

template <class A> struct Act<HARDSWISH, A> : Any_act<HARDSWISH, A> {
    static __device__ inline A value(A x, A) {
        return x * from_0_to_1((x + 3) * A(1 / 6.0));
    }
    static __device__ inline A times_derivative(A v, A x, A) {
        return v * (x <= -3 ? A(0) : x >= 3 ? A(1) : (x + A(1.5)) * A(1 / 3.0)); // 0 at -1.5
    }
};

template <class A> struct Act<HARDSIGMOID, A> : Any_act<HARDSIGMOID, A> {
    static constexpr bool SELECTS = true;
    static __device__ inline A value(A x, A) {
        return x != x ? x : from_0_to_1((x + 3) * A(1 / 6.0));
    }
    static __device__ inline A times_derivative(A v, A x, A) {
        return x > -3 && x < 3 ? v * A(1 / 6.0) : A(0);
    }
};

// >>of the logistic function

// x s(w), w = x times a factor: a struct has factor(x), which is that times -log2(e), and gate(x). Of a sum x of products, whose own error
// hides what is below 2^-22 of x (2^-17 of LONG_SUMS): at EXACT 0 tails end where exp(-w) leaves the range, at results of 1e-36 or so, and
// GELU_ERF's at 1e-37. Elsewhere, and for others, as activation.cuh says.
template <int Activation, class A> struct Logistic_gate : Any_act<Activation, A> {
    using Of = Act<Activation, A>;
    static constexpr bool ENDS_TAILS = true, MORE = false; // MORE: gate(x).more is not 0
    static constexpr float SLOPE = 1;                      // of w, where MORE is false
    static __device__ inline A value(A x, A) {
        if constexpr (IS_SHORT<A>)
            return times_logistic_of(x, fmaf(x, Of::factor(x), -8));
        else
            return times_logistic(x, A(1), Of::gate(x).s);
    }
    static __device__ inline A times(A v, A x, A) {
        return times_logistic(v, x, Of::gate(x).s);
    }
    static __device__ inline A times_derivative(A v, A x, A) {
        Gate<A> gate = Of::gate(x);
        return times_gate_derivative<Of::MORE>(v, x, gate.s, gate.slope, gate.more);
    }
    // shares exponential and reciprocal with the derivative
    static __device__ inline A beside_derivative(A x, A) {
        return times(A(1), x, A(0));
    }
    template <bool> static __device__ inline A of_sum(A x, A) {
        if constexpr (IS_SHORT<A>)
            return x * logistic_of_power(x * Of::factor(x));
        else
            return value(x, A(0));
    }
};

template <class A> struct Act<SILU, A> : Logistic_gate<SILU, A> { // GATES_BY_SUMS is 1 to 2 percent slower
    static __device__ inline float factor(float) {
        return -1.4426950f;
    }
    static __device__ inline Gate<A> gate(A x) {
        return {logistic(x), A(1), A(0)};
    }
};

constexpr double ROOT_POWER = -0.72134752044448170368; // the root of exp(-x) is 2 to x times this

template <class A> struct Act<QUICK_GELU, A> : Logistic_gate<QUICK_GELU, A> {
    static constexpr bool GATES_BY_SUMS = !GEMMEPI_EXACT;
    static constexpr float SLOPE = 1.702f;
    static __device__ inline float factor(float) {
        return -2.4554670f;
    }
    static __device__ inline Gate<A> gate(A x) {
        if constexpr (IS_SHORT<A>)
            return {logistic(x < 0, Exponential<A>{1, fast_power_of_2(fabsf(x) * float(ROOT_POWER * 1.702))}), 1.702f, 0};
        else {
            constexpr A end = sizeof(A) == 8 ? A(1000) : A(123.2);
            A size = fabs(x) > end ? end : fabs(x);
            return {logistic(x < 0, exponential_of_product<false>(size, A(1.702), A(0))), A(1.702), A(0)};
        }
    }
};

template <class A> struct Act<GELU_TANH, A> : Logistic_gate<GELU_TANH, A> {
    static constexpr bool GATES_BY_SUMS = !GEMMEPI_EXACT, MORE = true;
    static constexpr double C = 2 * 0.79788456080286535588; // the slope of w = 2 sqrt(2/pi) (x + 0.044715 x^3) at 0
    static __device__ inline float factor(float x) {
        return fmaf(-0.10294324f, x * x, -2.3022082f);
    }
    static __device__ inline Gate<A> gate(A x) {
        if constexpr (IS_SHORT<A>) {
            float square = x * x, root = fast_power_of_2(
                fabsf(x) * fmaf(float(ROOT_POWER * C * 0.044715), square, float(ROOT_POWER * C)));
            return {logistic(x < 0, Exponential<A>{1, root}), float(C), float(C * 0.134145) * (square < 4096 ? square : 4096)};
        } else {
            constexpr A end = sizeof(A) == 8 ? A(40) : A(13.8);
            A size = fabs(x) > end ? end : fabs(x), square = size * size;
            A factor = fused(A(C * 0.044715), square, A(C)), more = A(C * 0.134145) * square;
            A rest = fused(A(C * 0.044715), square, A(C) - factor); // what was rounded off
            return {logistic(x < 0, exponential_of_product<true>(size, factor, rest)), A(C), more};
        }
    }
    // Sum and bias are added and multiplied by scale at once, the cube root of what w log2(e) has of x^3: z is x times that, and the power
    // z (z^2 + 4.9122296). As scale is below 1, z is finite where x is.
    template <bool> static __device__ inline A of_biased_sum(A sum, A bias, A parameter) {
        if constexpr (IS_SHORT<A>) {
            constexpr float scale = 0.46866869f;
            float z = fmaf(sum, scale, bias * scale), power = z * fmaf(z, -z, -4.9122296f);
            return z * fast_reciprocal(fmaf(fast_power_of_2(power), scale, scale));
        } else
            return Act::value(sum + bias, parameter);
    }
};

template <class A> struct Act<SIGMOID, A> : Any_act<SIGMOID, A> {
    static __device__ inline A value(A x, A) {
        if constexpr (IS_SHORT<A>)
            return times_logistic_of(1, fmaf(x, -1.4426950f, -8));
        else
            return times_logistic(A(1), x);
    }
    static __device__ inline A times(A v, A x, A) {
        return times_logistic(v, A(1), x);
    }
    static __device__ inline A times_derivative(A v, A x, A) {
        return times_logistic_derivative(v, A(1), -fabs(x));
    }
};

// >>of the exponential

template <class A> struct Act<TANH, A> : Any_act<TANH, A> {
    static __device__ inline A value(A x, A) {
        return hyperbolic_tangent(x);
    }
    static __device__ inline A times_derivative(A v, A x, A) {
        return times_logistic_derivative(v, A(4), -2 * fabs(x));
    }
};

template <class A> struct Act<ELU, A> : Any_act<ELU, A> {
    static constexpr bool HAS_ANY_SIZE = true;
    static __device__ inline A value(A x, A parameter) {
        A less = exponential_less_1(x), below = parameter * (IS_SHORT<A> ? less : copysign(less, x));
        return choice(x > 0 || x != x, x, below);
    }
    static __device__ inline A times(A v, A x, A parameter) {
        if constexpr (IS_SHORT<A>) { // what is below 1 comes first
            A first = fabs(parameter) <= 1 ? v : parameter, last = fabs(parameter) <= 1 ? parameter : v;
            return choice(x > 0, v * x, exponential_less_1(x) * first * last);
        } else
            return x > 0 ? v * x : product_in_range(copysign(exponential_less_1(x), x), parameter, v);
    }
    static __device__ inline A times_derivative(A v, A x, A parameter) {
        Exponential<A> e = exponential(x);
        // v and a parameter above 1 take a root each, or the parameter both: nothing leaves the range that comes back
        A large = fabs(parameter) > 1 ? parameter : A(1), small = fabs(parameter) > 1 ? A(1) : parameter;
        A size = large * e.root * e.part, below = (fabs(v) >= 1 ? v : size) * e.root * (fabs(v) >= 1 ? size : v) * small;
        return choice(x > 0, v, below);
    }
    // In f64 the derivative meets dy value, or where that leaves the range the larger factor first and the smaller one last.
    static __device__ inline A far_gate_gradient(A dy, A value, A gate, A parameter) {
        double both = (double)dy * value;
        if constexpr (sizeof(A) == 8) {
            bool value_first = fabs(value) > fabs(dy);
            double first = value_first ? value : dy, last = value_first ? dy : value;
            if (is_plain(dy, value) || last == 0) {
                first = both;
                last = 1;
            }
            return times_derivative(first, gate, parameter) * last;
        } else { // exp(gate) in two steps: a root of f32 is 0 long before the product is
            double below = both * parameter;
            float near = fmaxf(gate, -140);
            Exponential<float> e = exponential(near), further = exponential(gate - near);
            below = below * e.part * e.root * e.root * further.part * further.root * further.root;
            return (float)(gate > 0 ? both : below);
        }
    }
};

template <class A> struct Act<SOFTPLUS, A> : Any_act<SOFTPLUS, A> {
    static __device__ inline A value(A x, A) { // log(1 + exp(x))
        Exponential<A> e = exponential(-fabs(x));
        return e.root * logarithm_of_1_plus(e) * e.root + (x > 0 ? x : A(0));
    }
    static __device__ inline A times_derivative(A v, A x, A) {
        return times_logistic(v, x);
    }
};

// tanh(log(1 + exp(x))) is n / (1 + n), n = e + e^2 / 2, e = exp(x): MISH is x times this, and its derivative
// (n + x e (1 + e) / (1 + n)) / (1 + n). Both are e.root^2 times something. From FAR on the tanh is 1 to a unit of A.
template <class A> struct Act<MISH, A> : Any_act<MISH, A> {
    static constexpr A FAR = sizeof(A) == 8 ? A(40) : A(20);
    struct Parts {
        Exponential<A> e;
        A n, inverse; // n without e.root^2, and 1 / (1 + n)
    };
    static __device__ inline Parts parts(A x) {
        Exponential<A> e = exponential(x > FAR ? FAR : x);
        if (GEMMEPI_EXACT && x > 0)
            e = {e.value(), 1};
        A n = e.part + e.part * (A(0.5) * e.value());
        return {e, n, reciprocal_of_1_plus(n * e.root, e.root)};
    }
    static __device__ inline A value(A x, A) {
        Parts m = parts(x);
        A y = x * m.e.root * (m.n * m.inverse) * m.e.root;
        return x > FAR ? x : y;
    }
    static __device__ inline A times_derivative(A v, A x, A) {
        Parts m = parts(x);
        A rise = m.e.part + m.e.part * m.e.value(), y;
        if (GEMMEPI_EXACT) { // above 0 the root is 1, and n / (1 + n) = 1 - 1 / (1 + n) is rounded less often
            A sum = fused(x * rise, m.inverse, x > 0 ? A(-1) : m.n);
            y = v * m.e.root * fused(sum * m.inverse, m.e.root, x > 0 ? A(1) : A(-0.0));
        } else {
            A sum = m.n + x * (rise * m.inverse);
            y = v * (sum * m.inverse * m.e.root) * m.e.root;
        }
        return x > FAR ? v + (x - x) : y; // at infinity the formula is NaN
    }
};

// >>of the normal distribution

template <class A> struct Act<GELU_ERF, A> : Any_act<GELU_ERF, A> {
    static constexpr bool GATES_BY_SUMS = !GEMMEPI_EXACT;
    static __device__ inline A value(A x, A) {
        if constexpr (IS_SHORT<A>)
            return times_own_normal(x);
        else
            return times_normal<false>(x, x);
    }
    static __device__ inline A times_derivative(A v, A x, A) {
        return times_normal<true>(v, x);
    }
    template <bool Gate> static __device__ inline A of_sum(A x, A parameter) {
        if constexpr (IS_SHORT<A>)
            return sum_times_own_normal<Gate>(x);
        else
            return value(x, parameter);
    }
};
