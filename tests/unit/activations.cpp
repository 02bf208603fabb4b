/* The activations of the kernels and their derivatives, as src/kernels/activation.cuh computes them in f32, compiled for the
   host: over all numbers of BF16, many of F16, and random ones of all exponents. They must be as accurate as that file says,
   with errors put into the hardware's exponential and reciprocal. Compiled for each precision: GEMMEPI_EXACT 1, 0, and 0
   with GEMMEPI_LONG_SUMS. With TEST_SHARE=N over one number in N. */
#include <cmath>
#include <cstdint>
#include <cstring>

#include "activations.h"
#include "test.h"

#define __device__

static uint32_t __float_as_uint(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static float __uint_as_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static float __saturatef(float x) {
    return x > 0 ? (x < 1 ? x : 1) : 0;
}
static double erfcx(double x) {
    if (x > 100)
        return 0.56418958354775628695 / x; /* 1 / (2 x^2) less */
    return (double)(expl((long double)x * x) * erfcl(x));
}

/* >>the hardware's functions, off by as much as they may be */

static double off = 0; /* of what an error may be: -1 to 1 */

static float flushed(float x) {
    return fabsf(x) < 1.17549435e-38f ? copysignf(0, x) : x;
}
#define GEMMEPI_HAS_FUNCTIONS
static float fast_power_of_2(float x) {
    return flushed((float)(exp2(flushed(x)) * (1 + off * 0x1p-22 * 0.70710678)));
}
static float fast_reciprocal(float x) {
    double y = 1 / (double)flushed(x);
    return flushed((float)((float)y == y ? y : y * (1 + off * 0x1p-23))); /* of powers of two it is exact */
}

/* CUDA's in f64, up to as far off as those of 13.0 were measured to be where they are called: 1.6 and 3.3 u with the rounding, and 2.2 of
   erf below a half. */
static double off_f64 = 0; /* of that: -1 to 1 */

static double erf_as_cudas(double x) {
    return (double)(erfl(x) * (1 + off_f64 * (fabs(x) < 0.5 ? 1.4L : 0.8L) * 0x1p-53L));
}
static double erfc_as_cudas(double x) {
    return (double)(erfcl(x) * (1 + off_f64 * 2.5L * 0x1p-53L));
}
#define erf  erf_as_cudas
#define erfc erfc_as_cudas
#include "kernels/activation.cuh"
#undef erf
#undef erfc

/* >>numbers */

static const int share = (int)test_share(); /* one in so many is looked at */

static const double U = 0x1p-24, SMALLEST = 0x1p-149; /* unit roundoff and smallest subnormal of f32 */

/* Where a form ends, bends or is held. */
static const float bends[] = {
    0,      0x1p-126f, 0x1p-100f, 0.015625f, 0.75179f,   1.27846f, 1,          2,      3,     5,       5.4f,
    6,      9.75f,     10,        12.5f,     13,         13.8f,    20,         20.47f, 40,    46.5f,   47,
    64,     80,        87.3f,     88.02f,    88.73f,     103.97f,  123.2f,     209.5f, 600,   1048576, 4096,
    1e15f,  1.9e19f,   3e25f,     1e30f,     1.7e38f,    2.36e38f, 3.3895e38f, 1e-3f,  1e-7f, 1e-20f,  1e-38f,
    1e-40f, 0.5f,      1.5f,      HUGE_VALF, 3.4028e38f, 0.25f,    0.55f};
enum { NEIGHBOURS = 9, RANDOM = 40000, ALL_16 = 65536, F16_EACH = 3 };
enum { NUMBERS = ALL_16 + ALL_16 / F16_EACH + RANDOM + 2 * NEIGHBOURS * (int)(sizeof bends / sizeof *bends) };

static float number(int i) {
    static uint32_t state = 1;
    if (i < ALL_16) /* of BF16 */
        return __uint_as_float((uint32_t)i << 16);
    if ((i -= ALL_16) < ALL_16 / F16_EACH) { /* of F16 */
        int bits = i * F16_EACH, exponent = bits >> 10 & 31, fraction = bits & 1023;
        float size = exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24);
        return bits & 0x8000 ? -size : size;
    }
    if ((i -= ALL_16 / F16_EACH) < RANDOM) { /* of all bits, or of exponents from 2^-10 to 2^7 */
        state = state * 1664525 + 1013904223;
        return i % 2 ? __uint_as_float(state)
                     : ldexpf(1 + (state >> 8) * 0x1p-24f, (int)(state % 18) - 10) * (state & 128 ? 1 : -1);
    }
    i -= RANDOM;
    uint32_t near =
        __float_as_uint(bends[i / (2 * NEIGHBOURS)]) + (uint32_t)(i % NEIGHBOURS) - NEIGHBOURS / 2;
    return __uint_as_float(i / NEIGHBOURS % 2 ? near ^ 0x80000000 : near);
}

/* >>what they may be off */

struct Want {
    double value, bound;
};

/* Where there is room for roundings of x: what f moves by 2 u. */
template <class Function> static double moves_of(Function f, double x, double value) {
    return fmax(fabs(f(x * (1 + 2 * U)) - value), fabs(f(x * (1 - 2 * U)) - value));
}

/* Of the largest term, at EXACT 0 */
static double relative(double x) {
    return (fabs(x) < 2 ? 18 : fabs(x) < 5 ? 100 : fabs(x) < 10 ? 170 : 4096) * U;
}

/* terms: the magnitudes of a result's terms together, or the result */
template <class Function> static Want want(Function f, double x, double terms) {
    double value = f(x);
#if GEMMEPI_EXACT
    return {value, moves_of(f, x, value) * (1 + 4 * U) + 3.9 * U * fmax(terms, fabs(value)) + SMALLEST};
#else
    return {value, relative(x) * terms + 1.2e-38};
#endif
}

static bool is_within(float got, const Want &want) {
    if (isnan(want.value) || isinf(want.value))
        return isnan(want.value) ? isnan(got) : (double)got == want.value;
    if (isinf(got)) /* what rounds there */
        return fabs(want.value) + want.bound >= 0x1.ffffffp127;
    return fabs(got - want.value) <= want.bound;
}

#define CHECK_WITHIN(got, wanted, what, x)                                                            \
    do {                                                                                              \
        Want wanted_ = (wanted);                                                                      \
        float got_ = (got);                                                                           \
        CHECK(is_within(got_, wanted_), "%s of %.9g: %.9g, not %.9g +- %.3g (%.1f times that)", what, \
              (double)(x), (double)got_, wanted_.value, wanted_.bound,                                \
              fabs(got_ - wanted_.value) / wanted_.bound);                                            \
    } while (0)

static double given = 0; /* the parameter */

template <int Activation> static double parameter_of() {
    return oracle_parameter(Activation, given);
}

/* >>tests, of each activation */

/* What the short forms lose of an activation itself: elsewhere of a result, or of what a sum may be off. */
template <int Activation> static Want want_of(double x) {
    Want w = want([](double at) { return oracle_activation(Activation, parameter_of<Activation>(), at); }, x,
                  fabs(oracle_activation(Activation, parameter_of<Activation>(), x)));
#if !GEMMEPI_EXACT
    if (Activation == GELU_ERF)
        w.bound = fmax(w.bound, fmax(0x1p-21 * fabs(x), 0x1p-13 * fabs(w.value)));
#endif
    return w;
}

template <int Activation> static void activation_is_as_accurate_as_it_says() {
    for (off = -1; off <= 1; off += 2)
        for (int i = 0; i < NUMBERS; i += share) {
            float x = number(i);
            CHECK_WITHIN(activate<Activation>(x, (float)parameter_of<Activation>()), want_of<Activation>(x),
                         "f", x);
            CHECK_WITHIN(activate_beside_derivative<Activation>(x, (float)parameter_of<Activation>()),
                         want_of<Activation>(x), "f beside f'", x);
        }
}

/* Its own error hides what tails lose, below 2^-22 of it, and what GELU_ERF's shortest form is off. */
template <int Activation> static void activation_of_a_sum_is_as_accurate_as_it_says() {
    double hidden = GEMMEPI_EXACT                                 ? 0
                    : Act<Activation, float>::ENDS_TAILS          ? 0x1p-22
                    : Activation == GELU_ERF && GEMMEPI_LONG_SUMS ? exp2(-18.2)
                                                                  : 0;
    for (off = -1; off <= 1; off += 2)
        for (int i = 0; i < NUMBERS; i += share) {
            float x = number(i);
            Want w = want_of<Activation>(x);
            if (!isinf(x))
                w.bound = fmax(w.bound, hidden * fabs((double)x));
            float parameter = (float)parameter_of<Activation>();
            CHECK_WITHIN((activate_sum<Activation, false>(x, parameter)), w, "of a sum", x);
            CHECK_WITHIN((activate_sum<Activation, true>(x, parameter)), w, "of a gate's sum", x);
            CHECK_WITHIN((activate_biased_sum<Activation, false>(x, 0.0f, parameter)), w,
                         "of a sum and a bias", x);
        }
}

template <int Activation> static Want want_derivative(double x);

#if !GEMMEPI_EXACT
/* Of N sums with one reciprocal: each as accurate whatever the others are. */
template <int Activation, bool Backward, int N> static void sums_together_are_as_accurate_as_they_say() {
    for (off = -1; off <= 1; off += 2)
        for (int i = 0; i + N <= NUMBERS; i += share) {
            float x[N], y[N], dy[N];
            for (int j = 0; j < N; j++)
                x[j] = y[j] = number(j ? i * (2 * j + 1) % NUMBERS : i), dy[j] = 1;
            activate_sums<Activation, Backward>(dy, y);
            for (int j = 0; j < N; j++) {
                Want w = Backward ? want_derivative<Activation>(x[j]) : want_of<Activation>(x[j]);
                if (!isinf(x[j]))
                    w.bound = fmax(w.bound, 0x1p-22 * fmax(1, fabs((double)x[j])));
                CHECK_WITHIN(y[j], w, "of sums together", x[j]);
            }
        }
}
template <int Activation> static void sums_together_are_as_accurate_as_they_say() {
    if constexpr (Act<Activation, float>::ENDS_TAILS) {
        sums_together_are_as_accurate_as_they_say<Activation, false, 2>();
        sums_together_are_as_accurate_as_they_say<Activation, false, 4>();
        if constexpr (Activation != GELU_TANH) {
            sums_together_are_as_accurate_as_they_say<Activation, true, 2>();
            sums_together_are_as_accurate_as_they_say<Activation, true, 4>();
        }
    }
}
#endif

template <int Activation> static Want want_derivative(double x) {
    double terms;
    oracle_derivative(Activation, parameter_of<Activation>(), x, &terms);
    return want(
        [](double at) {
            double unused;
            return oracle_derivative(Activation, parameter_of<Activation>(), at, &unused);
        },
        x, terms);
}

template <int Activation> static void derivative_is_as_accurate_as_it_says() {
    for (off = -1; off <= 1; off += 2)
        for (int i = 0; i < NUMBERS; i += share) {
            float x = number(i);
            if (Activation == RELU && isnan(x))
                continue; /* selects */
            CHECK_WITHIN(times_derivative<Activation>(1.0f, x, (float)parameter_of<Activation>()),
                         want_derivative<Activation>(x), "f'", x);
        }
}

static float factor(uint32_t &state) {
    state = state * 1664525 + 1013904223;
    return ldexpf(1 + (state >> 8) * 0x1p-24f, (int)(state >> 5 & 255) - 128) * (state & 16 ? -1 : 1);
}

static void tanh_keeps_the_sign_of_zero() {
    CHECK(signbit(activate<TANH>(-0.0f, 0.0f)) && !signbit(activate<TANH>(0.0f, 0.0f)), "it does not");
}

/* Far gates of ELU, whose exponential an f32 does not hold, of dy value that one does not hold either. */
static void a_gates_gradient_is_there_where_its_factors_are_not() {
    static const float gates[] = {-139.5f, -141, -175, -208, -230.25f, -260};
    enum { N = sizeof gates / sizeof *gates };
    for (int i = 0; i < N; i++) {
        float dy = 3e38f, value = i % 2 ? -3e38f : 2e38f;
        double exact = (double)dy * value * 0.5 * exp((double)gates[i]);
        Want w = {exact, fabs(exact) * (GEMMEPI_EXACT ? 16 * U : 4096 * U) + SMALLEST};
        CHECK_WITHIN(gate_gradient<ELU>(dy, value, gates[i], 0.5f), w, "a far gate's gradient", gates[i]);
    }
}

/* dy value act'(gate) and dy act(gate), whose product of two factors may be far out of the range where that of all three is not. */
template <int Activation> static void gates_gradients_are_within() {
    uint32_t state = 2;
    enum { N = 4 };
    for (off = -1; off <= 1; off += 2)
        for (int i = 0; i + N <= NUMBERS; i += N * share) {
            float dy[N], value[N], gate[N], out[N];
            for (int j = 0; j < N; j++) {
                dy[j] = factor(state);
                value[j] = factor(state);
                gate[j] = number(i + j);
                out[j] =
                    gate_gradient<Activation>(dy[j], value[j], gate[j], (float)parameter_of<Activation>());
            }
            for (int j = 0; j < N; j++) {
                Want slope = want_derivative<Activation>(gate[j]), act = want_of<Activation>(gate[j]);
                double both = (double)dy[j] * value[j];
                if (isnan(gate[j]))
                    continue;
                double lost = GEMMEPI_EXACT ? 8 * SMALLEST : 1e-36; /* as factors of the exponential are */
                Want product = {both * slope.value,
                                fabs(both) * slope.bound * 1.001 + 8 * U * fabs(both * slope.value) + lost};
                CHECK_WITHIN(out[j], product, "a gate's gradient", gate[j]);
                product = {dy[j] * act.value,
                           fabs(dy[j]) * act.bound * 1.001 + 8 * U * fabs(dy[j] * act.value) + lost};
                CHECK_WITHIN(times_activation<Activation>(dy[j], gate[j], (float)parameter_of<Activation>()),
                             product, "times f", gate[j]);
                product = {dy[j] * slope.value,
                           fabs(dy[j]) * slope.bound * 1.001 + 8 * U * fabs(dy[j] * slope.value) + lost};
                CHECK_WITHIN(times_derivative<Activation>(dy[j], gate[j], (float)parameter_of<Activation>()),
                             product, "times f'", gate[j]);
            }
        }
}

template <int Activation> static void a_gates_gradients_are_as_accurate_as_they_say() {
    static const double parameters[] = {0, 3e30, -3e30, 3e-30};
    for (int i = 0; i < (Activation == LEAKY_RELU || Activation == ELU ? 4 : 1); i++) {
        given = parameters[i];
        gates_gradients_are_within<Activation>();
    }
    given = 0;
}

/* In f64, where dy value is subnormal: within one smallest subnormal, and the rounding of three factors. */
template <int Activation> static void a_gates_gradient_in_f64_is_right_where_dy_value_is_subnormal() {
    uint32_t state = 3;
    enum { N = 4 };
    for (int i = 0; i + N <= 40000; i += N * share) {
        double dy[N], value[N], gate[N], out[N];
        for (int j = 0; j < N; j++) {
            int exponent;
            dy[j] = ldexp(frexp((double)factor(state), &exponent), -540);
            value[j] = ldexp(frexp((double)factor(state), &exponent), -525 - (int)(state >> 9 & 15));
            gate[j] = number(ALL_16 + ALL_16 / F16_EACH + 1 + 2 * ((i + j) % (RANDOM / 2 - 1)));
            if (i % 3)
                gate[j] = fmod(gate[j], 4);
        }
        for (int j = 0; j < N; j++)
            out[j] = gate_gradient<Activation>(dy[j], value[j], gate[j], parameter_of<Activation>());
        for (int j = 0; j < N; j++) {
            wide terms,
                slope = oracle_wide_derivative(Activation, parameter_of<Activation>(), gate[j], &terms);
            wide exact = (wide)dy[j] * value[j] * slope;
            wide off_by = fmaxl(fabsl(out[j] - exact) - 6 * 0x1p-53L * fabsl(exact), 0) / 0x1p-1074L;
            CHECK(isnan(gate[j]) || isinf(gate[j]) || off_by <= 1, "of %.17g: %.17g, not %.8Lg: off by %.3Lf",
                  gate[j], out[j], exact, off_by);
        }
    }
}

static double random_f64(uint64_t &state) { /* 0 to 1 */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

/* f(x (1 + d)) (1 + e) of |d| <= 2u, |e| <= 4u, or 4u of the largest term, and one smallest subnormal. */
static wide bound_in_f64(bool is_derivative, wide x, wide value) {
    wide terms = value, moves = 0, unused;
    if (is_derivative)
        oracle_wide_derivative(GELU_ERF, 0, x, &terms);
    for (int side = -1; side <= 1; side += 2) {
        wide near = x * (1 + side * 0x1p-52L);
        moves = fmaxl(moves, fabsl((is_derivative ? oracle_wide_derivative(GELU_ERF, 0, near, &unused)
                                                  : oracle_wide_activation(GELU_ERF, 0, near)) -
                                   value));
    }
    return fmaxl(moves * (1 + 0x1p-51L) + 0x1p-51L * fabsl(value), 0x1p-51L * fabsl(terms)) + 0x1p-1074L;
}

/* Where d has no room, as the function bends, and down its tail until it is 0. */
static void gelu_erf_in_f64_is_within_its_bound_as_dense_as_can_be() {
    uint64_t state = 7;
    for (off_f64 = -1; off_f64 <= 1; off_f64 += 2)
        for (int i = 0; i < 600000; i += share) {
            double r = random_f64(state), x = i % 3 == 0   ? -0.5 - r
                                              : i % 3 == 1 ? -1.5 - 3.5 * r
                                                           : -5 - 35 * r;
            wide terms, act = oracle_wide_activation(GELU_ERF, 0, x),
                        slope = oracle_wide_derivative(GELU_ERF, 0, x, &terms);
            double got = activate<GELU_ERF>(x, 0.0), got_slope = times_derivative<GELU_ERF>(1.0, x, 0.0);
            CHECK(fabsl(got - act) <= bound_in_f64(false, x, act),
                  "f of %.17g: %.17g, not %.20Lg: %.3Lf of the bound", x, got, act,
                  fabsl(got - act) / bound_in_f64(false, x, act));
            CHECK(fabsl(got_slope - slope) <= bound_in_f64(true, x, slope),
                  "f' of %.17g: %.17g, not %.20Lg: %.3Lf of the bound", x, got_slope, slope,
                  fabsl(got_slope - slope) / bound_in_f64(true, x, slope));
        }
    off_f64 = 0;
    CHECK(isinf(activate<GELU_ERF>((double)HUGE_VAL, 0.0)) &&
              isnan(activate<GELU_ERF>(-(double)HUGE_VAL, 0.0)) && activate<GELU_ERF>(1e300, 0.0) == 1e300,
          "at infinity");
}

#if GEMMEPI_EXACT
#define RUN_TOGETHER(activation) (void)0
#else
#define RUN_TOGETHER(activation) RUN(sums_together_are_as_accurate_as_they_say<activation>)
#endif
#if GEMMEPI_EXACT
#define RUN_F64(activation) RUN(a_gates_gradient_in_f64_is_right_where_dy_value_is_subnormal<activation>)
#else
#define RUN_F64(activation) (void)a_gates_gradient_in_f64_is_right_where_dy_value_is_subnormal<activation>
#endif

#if GEMMEPI_LONG_SUMS /* for which sums alone have forms of their own */
#define RUN_ALL(activation) RUN(activation_of_a_sum_is_as_accurate_as_it_says<activation>)
#else
#define RUN_ALL(activation)                                         \
    RUN(activation_is_as_accurate_as_it_says<activation>);          \
    RUN(activation_of_a_sum_is_as_accurate_as_it_says<activation>); \
    RUN(derivative_is_as_accurate_as_it_says<activation>);          \
    RUN(a_gates_gradients_are_as_accurate_as_they_say<activation>); \
    RUN_TOGETHER(activation);                                       \
    RUN_F64(activation)
#endif

#define RUN_ROW(name, parameter, slope, traits) RUN_ALL(name);

int main() {
    ACTIVATION_LIST(RUN_ROW)
#if GEMMEPI_EXACT
    RUN(gelu_erf_in_f64_is_within_its_bound_as_dense_as_can_be);
#else
    (void)gelu_erf_in_f64_is_within_its_bound_as_dense_as_can_be;
#endif
    RUN(a_gates_gradient_is_there_where_its_factors_are_not);
    RUN(tanh_keeps_the_sign_of_zero);
    return test_finish();
}
