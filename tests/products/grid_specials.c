/* Infinity, NaN, zeros and tails through every activation and gate. */
#include "grid.h"

/* >>special values */

static const double specials[] = {80,   -80,  1e-7, -1e-7, 0,  -0.0, INFINITY, -INFINITY, NAN,   -5.54,
                                  5.54, -2.7, 2.7,  1,     -1, 20,   -20,      0.75,      -0.75, -12};
#define SPECIALS COUNT(specials)

static void special_values_pass_through_every_activation(void) {
    static const double factors[] = {1, -1, 0.5};
    gemmepi_epilogue activation;
    int t;
    for (t = 0; t < COUNT(special_types); t++)
        for (activation = GEMMEPI_NONE; activation <= ACTIVATION_LAST;
             activation = activation_after(activation)) {
            problem p = typed(special_types[t], SPECIALS, 3, 1, activation | GEMMEPI_AUX);
            p.given[T_A] = specials;
            p.given[T_B] = factors;
            holds(&p);
        }
}

static void special_values_pass_through_every_derivative(void) {
    static const double factors[] = {1, -2, 0.25};
    double ones[SPECIALS], aux[3 * SPECIALS];
    gemmepi_epilogue activation;
    int t, i;
    for (i = 0; i < SPECIALS; i++) {
        ones[i] = 1;
        aux[3 * i] = specials[i];
        aux[3 * i + 1] = -specials[i];
        aux[3 * i + 2] = specials[i] / 4;
    }
    for (t = 0; t < COUNT(special_types); t++)
        for (activation = GEMMEPI_GELU_TANH; activation <= ACTIVATION_LAST;
             activation = activation_after(activation)) {
            problem p = typed(special_types[t], SPECIALS, 3, 1, activation | GEMMEPI_BACKWARD);
            p.given[T_A] = ones;
            p.given[T_B] = factors;
            p.given[T_AUX] = aux;
            holds(&p);
        }
}

/* The manual, of element-wise operations: out = f(x (1 + d)) (1 + e), |d| <= 2u, |e| <= 4u, or within 4u of the largest
   term. */
static expected elementwise(gemmepi_dtype dtype, gemmepi_epilogue epilogue, double x) {
    unsigned activation = epilogue & GEMMEPI_ACTIVATION_MASK;
    double u = oracle_roundoff(dtype), parameter = oracle_parameter(activation, 0), at[3], f[3], terms = 0,
           bend;
    expected want;
    int i;
    at[0] = x;
    at[1] = x * (1 + 2 * u);
    at[2] = x * (1 - 2 * u);
    for (i = 2; i >= 0; i--)
        f[i] = epilogue & GEMMEPI_BACKWARD ? oracle_derivative(activation, parameter, at[i], &terms)
                                           : oracle_activation(activation, parameter, at[i]);
    bend = fmax(fabs(f[1] - f[0]), fabs(f[2] - f[0]));
    want.value = f[0];
    want.bound = fmax(bend * (1 + 4 * u) + 4 * u * fabs(f[0]), 2 * u * (terms + fabs(f[0])));
    want.bound += ldexp(1, oracle_format(dtype).lowest);
    return want;
}

/* v is x itself here, so that E does not cover what is lost in the tail of an activation: a sum of one term, or of many of
   which the others are 0. Of these forward GELU_ERF ends its tail sooner. */
static void tails_keep_their_relative_precision(void) {
    enum { POINTS = 161, MANY = 768 };
    static double x[POINTS], a[POINTS * MANY], b[MANY] = {1};
    gemmepi_epilogue activation;
    int t, i, backward, k;
    for (t = 0; t < COUNT(plain_types); t++)
        for (activation = GEMMEPI_GELU_TANH; activation <= ACTIVATION_LAST;
             activation = activation_after(activation))
            for (backward = 0; backward < 2; backward++)
                for (k = 1; k <= MANY; k += MANY - 1) {
                    gemmepi_dtype dtype = plain_types[t]->results;
                    int ends = activation == GEMMEPI_GELU_ERF && !backward && k > 1 &&
                               oracle_format(dtype).size == 2;
                    problem p = typed(plain_types[t], POINTS, 1, k,
                                      activation | (backward ? GEMMEPI_BACKWARD : GEMMEPI_NONE));
                    double *y;
                    if (!takes(plain_types[t], p.desc.epilogue))
                        continue;
                    for (i = 0; i < POINTS; i++) {
                        x[i] = oracle_round(dtype, (i - POINTS / 2) * 0.17 + 0.01);
                        a[i * k] = backward ? 1 : x[i];
                    }
                    p.given[T_A] = a;
                    p.given[T_B] = b;
                    p.given[T_AUX] = x;
                    y = answer(&p, T_D);
                    for (i = 0; i < POINTS; i++) {
                        expected want = elementwise(dtype, p.desc.epilogue, x[i]);
                        CHECK(fabs(x[i]) < 3 || (ends && x[i] < -5.4) || oracle_accepts(dtype, y[i], want),
                              "%s, %s%s of %.9g, k %d: got %.9g, want %.9g +- %.3g", plain_types[t]->name,
                              activation_name(activation), backward ? "'" : "", x[i], k, y[i], want.value,
                              want.bound);
                        a[i * k] = 0;
                    }
                    free(y);
                }
}

static void relu_backward_selects_so_that_infinity_times_zero_does_not_arise(void) {
    static const double a[] = {INFINITY, -INFINITY, NAN, 3}, b[] = {1, 1}, bits[] = {0, 1, 0, 1, 0, 1, 0, 1};
    int t, i;
    for (t = 0; t < COUNT(special_types); t++) {
        problem p = typed(special_types[t], 4, 2, 1, GEMMEPI_RELU | GEMMEPI_BACKWARD);
        double *d;
        p.given[T_A] = a;
        p.given[T_B] = b;
        p.given[T_AUX] = bits;
        d = answer(&p, T_D);
        for (i = 0; i < 4; i++)
            CHECK(d[2 * i] == 0, "row %d of %s with a clear bit: %g", i, special_types[t]->name, d[2 * i]);
        free(d);
    }
}

/* v is exactly C, given in F32 or F64, of which every value there is fits. */
static problem given_problem(const types *t, int64_t m, int64_t n, gemmepi_epilogue epilogue,
                             const double *v) {
    problem p = typed(t, m, n, 0, epilogue);
    problem_scale(&p, 1, 1);
    p.desc.c.dtype = p.desc.aux.dtype = t == &f64 ? GEMMEPI_F64 : GEMMEPI_F32;
    p.given[T_C] = v;
    return p;
}

/* Every special value with every special gate, and upstream gradients one after the other. */
static void special_values_pass_through_every_gate(void) {
    static const double gradients[] = {1, -2, 0.25, 0, INFINITY, NAN};
    static double pairs[2 * SPECIALS * SPECIALS], same[SPECIALS * SPECIALS];
    int t, i, j, g, i_gate;
    for (i = 0; i < SPECIALS; i++)
        for (j = 0; j < SPECIALS; j++) {
            pairs[2 * SPECIALS * i + j] = specials[i];
            pairs[2 * SPECIALS * i + SPECIALS + j] = specials[j];
        }
    for (t = 0; t < COUNT(special_types); t++)
        for (i_gate = 0; i_gate < ACTIVATION_COUNT; i_gate++) {
            gemmepi_epilogue gate = activation_codes[i_gate] | GEMMEPI_GATED;
            problem p = given_problem(special_types[t], SPECIALS, 2 * SPECIALS, gate | GEMMEPI_AUX, pairs);
            if (!here->is_host && (i_gate + t) % 3 != 0)
                continue; /* each is a kernel to compile */
            holds(&p);
            for (g = 0; g < COUNT(gradients); g++) {
                for (i = 0; i < SPECIALS * SPECIALS; i++)
                    same[i] = gradients[g];
                p = given_problem(special_types[t], SPECIALS, SPECIALS, gate | GEMMEPI_BACKWARD, same);
                p.given[T_AUX] = pairs;
                holds(&p);
                p = given_problem(special_types[t], SPECIALS, 2 * SPECIALS,
                                  gate | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM, pairs);
                p.given[T_AUX] = same;
                holds(&p);
                p = given_problem(special_types[t], SPECIALS, SPECIALS,
                                  (gate & GEMMEPI_ACTIVATION_MASK) | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM,
                                  pairs + SPECIALS); /* the first row's gates, and half of the second's */
                p.given[T_AUX] = same;
                holds(&p);
            }
        }
}

/* A gate of RELU that is not above zero gives 0 as its gradient, whatever the value and the upstream gradient. */
static void a_gate_of_relu_selects_so_that_infinity_times_zero_does_not_arise(void) {
    static const double v[] = {INFINITY, -INFINITY, NAN, 3}, upstream[] = {INFINITY, NAN, -INFINITY, 2},
                        saved[] = {1, -1, INFINITY, -0.0, NAN, -2, INFINITY, NAN};
    int t, i;
    for (t = 0; t < COUNT(special_types); t++) {
        problem p = given_problem(special_types[t], 4, 1, GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BACKWARD, v);
        double *d;
        p.given[T_AUX] = saved;
        d = answer(&p, T_D);
        for (i = 0; i < 4; i++)
            CHECK(d[2 * i + 1] == 0, "row %d of %s: d gate is %g", i, special_types[t]->name, d[2 * i + 1]);
        free(d);
        p = given_problem(special_types[t], 4, 2,
                          GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM, saved);
        p.given[T_AUX] = upstream;
        d = answer(&p, T_D);
        for (i = 0; i < 4; i++)
            CHECK(d[2 * i + 1] == 0, "row %d of %s, from upstream: d gate is %g", i, special_types[t]->name,
                  d[2 * i + 1]);
        free(d);
        p = given_problem(special_types[t], 4, 2, GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM, saved);
        p.given[T_AUX] = saved;
        d = answer(&p, T_D);
        CHECK(d[1] == 0 && d[3] == 0 && d[4] == 0 && d[5] == 0 && d[7] == 0, "%s: %g %g %g %g %g",
              special_types[t]->name, d[1], d[3], d[4], d[5], d[7]);
        free(d);
    }
}

/* The value and the upstream gradient are 1 here: what is left are act and act' of the gate. */
static void gates_keep_their_relative_precision_in_the_tails(void) {
    enum { POINTS = 161 };
    double pairs[2 * POINTS], one[POINTS], *forward, *saved, *anew;
    gemmepi_epilogue activation;
    int t, i;
    for (t = 0; t < COUNT(plain_types); t++)
        for (activation = GEMMEPI_GELU_TANH; activation <= ACTIVATION_LAST;
             activation = activation_after(activation)) {
            gemmepi_dtype dtype = plain_types[t]->results;
            gemmepi_epilogue gate = activation | GEMMEPI_GATED, back = gate | GEMMEPI_BACKWARD;
            problem p;
            if (!takes(plain_types[t], gate))
                continue;
            for (i = 0; i < POINTS; i++) {
                pairs[2 * i] = one[i] = 1;
                pairs[2 * i + 1] = oracle_round(dtype, (i - POINTS / 2) * 0.17 + 0.01);
            }
            p = given_problem(plain_types[t], POINTS, 2, gate, pairs);
            forward = answer(&p, T_D);
            p = given_problem(plain_types[t], POINTS, 1, back, one);
            p.given[T_AUX] = pairs;
            saved = answer(&p, T_D);
            p = given_problem(plain_types[t], POINTS, 2, back | GEMMEPI_UPSTREAM, pairs);
            p.given[T_AUX] = one;
            anew = answer(&p, T_D);
            for (i = 0; i < POINTS; i++) {
                double x = pairs[2 * i + 1];
                expected act = elementwise(dtype, activation, x);
                expected slope = elementwise(dtype, activation | GEMMEPI_BACKWARD, x);
                CHECK(fabs(x) < 3 || (oracle_accepts(dtype, forward[i], act) &&
                                      oracle_accepts(dtype, saved[2 * i], act) &&
                                      oracle_accepts(dtype, anew[2 * i], act)),
                      "%s, %s of %.9g: got %.9g, %.9g and %.9g, want %.9g +- %.3g", plain_types[t]->name,
                      activation_name(activation), x, forward[i], saved[2 * i], anew[2 * i], act.value,
                      act.bound);
                CHECK(fabs(x) < 3 || (oracle_accepts(dtype, saved[2 * i + 1], slope) &&
                                      oracle_accepts(dtype, anew[2 * i + 1], slope)),
                      "%s, %s' of %.9g: got %.9g and %.9g, want %.9g +- %.3g", plain_types[t]->name,
                      activation_name(activation), x, saved[2 * i + 1], anew[2 * i + 1], slope.value,
                      slope.bound);
            }
            free(forward);
            free(saved);
            free(anew);
        }
}

/* x -> act(x), or act'(x) with BACKWARD, for 17 points from -4 to 4 with -2.7 among them */
static double *curve(const types *t, gemmepi_epilogue epilogue, const double *x, const double *ones) {
    problem p = typed(t, 17, 1, 1, epilogue);
    p.given[T_A] = epilogue & GEMMEPI_BACKWARD ? ones : x;
    p.given[T_B] = ones;
    p.given[T_AUX] = x;
    return answer(&p, T_D);
}

static void the_two_gelus_are_told_apart(void) {
    static const gemmepi_epilogue flags[] = {0, GEMMEPI_BACKWARD};
    static const types *const fine[] = {&f64, &f32, &f16}; /* bf16 rounds to more than they are apart */
    static const double apart[] = {4.7e-4, 8.7e-4};
    double x[17], ones[17], most;
    int t, f, i;
    for (i = 0; i < 17; i++) {
        x[i] = i == 3 ? -2.7 : -4 + i * 0.5;
        ones[i] = 1;
    }
    for (t = 0; t < COUNT(fine); t++)
        for (f = 0; f < 2; f++) {
            double *with_tanh = curve(fine[t], GEMMEPI_GELU_TANH | flags[f], x, ones);
            double *with_erf = curve(fine[t], GEMMEPI_GELU_ERF | flags[f], x, ones);
            for (most = 0, i = 0; i < 17; i++)
                if (fabs(with_tanh[i] - with_erf[i]) > most && x[i] < 0)
                    most = fabs(with_tanh[i] - with_erf[i]);
            CHECK(most > 0.8 * apart[f] && most < 1.2 * apart[f], "%s: %s at most %g apart", fine[t]->name,
                  f ? "derivatives" : "values", most);
            free(with_tanh);
            free(with_erf);
        }
}

static void run_all(void) {
    RUN(special_values_pass_through_every_activation);
    RUN(special_values_pass_through_every_derivative);
    RUN(special_values_pass_through_every_gate);
    RUN(tails_keep_their_relative_precision);
    RUN(gates_keep_their_relative_precision_in_the_tails);
    RUN(relu_backward_selects_so_that_infinity_times_zero_does_not_arise);
    RUN(a_gate_of_relu_selects_so_that_infinity_times_zero_does_not_arise);
    RUN(the_two_gelus_are_told_apart);
}

int main(void) {
    return run_on_devices(run_all);
}
