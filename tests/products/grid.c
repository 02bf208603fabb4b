/* Products, systematically: every activation with every set of flags, in every dtype, layout and class of
   size, and what numerics.md states by name. Runs on the devices that GEMMEPI_TEST_DEVICE names; see
   problem.h. */
#include "problem.h"

static test_device *here;

/* One choice of dtypes. */
typedef struct types {
    const char *name;
    gemmepi_dtype operands, results, vectors; /* a, b; c, d, aux, residual; bias, bias_grad */
    gemmepi_compute compute;
} types;

static const types f64 = {"f64", GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_COMPUTE_DEFAULT};
static const types f32 = {"f32", GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_F32};
static const types tf32 = {"tf32", GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_TF32};
static const types f16 = {"f16", GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_COMPUTE_DEFAULT};
static const types bf16 = {"bf16", GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT};
static const types bf16_to_f32 = {"bf16 to f32", GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_F32};
static const types f16_with_f32_vectors = {"f16, f32 vectors", GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F32,
                                           GEMMEPI_COMPUTE_F32};

static const types *const all_types[] = {&f64, &f32, &tf32, &f16, &bf16, &bf16_to_f32, &f16_with_f32_vectors};
static const types *const plain_types[] = {&f64, &f32, &f16, &bf16};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static problem typed(const types *t, int64_t m, int64_t n, int64_t k, gemmepi_epilogue epilogue) {
    problem p = problem_plain(t->operands, m, n, k, epilogue);
    p.desc.compute = t->compute;
    p.desc.c.dtype = p.desc.d.dtype = p.desc.aux.dtype = p.desc.residual.dtype = t->results;
    p.desc.bias.dtype = p.desc.bias_grad.dtype = t->vectors;
    return p;
}

static void lay_out(problem *p, int layout) {
    p->desc.order = layout & 1 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    p->desc.a.transposed = layout >> 1 & 1;
    p->desc.b.transposed = layout >> 2 & 1;
}

#define LAYOUTS 8

static void holds(const problem *p) {
    CHECK(problem_holds(here, p), "see above");
}

/* Runs p, holds it against the oracle and returns tensor t as the device left it, to be freed. */
static double *answer(const problem *p, int t) {
    run r;
    double *values;
    CHECK(problem_holds_run(here, p, NULL, &r), "see above");
    values = run_values(&r, t);
    run_free(&r);
    return values;
}

/* >>the grid */

static const gemmepi_epilogue flag_sets[] = {
    0,
    GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
    GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
    GEMMEPI_BACKWARD | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD | GEMMEPI_BGRAD_ACCUMULATE,
    GEMMEPI_BGRAD | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
    GEMMEPI_BGRAD_A | GEMMEPI_BIAS,
    GEMMEPI_BGRAD_B | GEMMEPI_BGRAD_ACCUMULATE | GEMMEPI_AUX,
};

static int has_a_meaning(gemmepi_epilogue activation, gemmepi_epilogue flags) {
    return activation == GEMMEPI_NONE || !(flags & GEMMEPI_BGRAD) || (flags & GEMMEPI_BACKWARD);
}

/* m, n, k: one element, odd, multiples of 8, tall, wide, one row, one column, one term, many terms */
static const int64_t grid_sizes[][3] = {{1, 1, 1},   {37, 29, 31}, {64, 48, 32}, {620, 3, 9},  {2, 700, 17},
                                        {1, 57, 75}, {61, 1, 75},  {33, 40, 1},  {9, 10, 2049}};

static problem grid_problem(const types *t, gemmepi_epilogue epilogue, const int64_t *size, int variant) {
    problem p = typed(t, size[0], size[1], size[2], epilogue);
    lay_out(&p, variant % LAYOUTS);
    p.seed = (uint64_t)variant + 1;
    p.fill = (fill)(variant / 2 % 4);
    p.desc.batch = 1 + variant / 3 % 2;
    p.by_plan = variant % 2;
    if (variant % 3 != 0 || p.desc.batch > 1)
        problem_space_out(&p, variant % 4 * 3);
    if (variant % 4 == 1)
        p.desc.bias_grad.batch_stride = 0;
    if (variant % 3 == 1)
        problem_scale(&p, p.fill == INTEGERS ? 2 : 0.7, p.fill == INTEGERS ? -1 : 1.7);
    return p;
}

static void grid(const types *t) {
    int activation, flags, size, layout, variant = 0;
    for (activation = 0; activation <= (int)GEMMEPI_TANH; activation++)
        for (flags = 0; flags < COUNT(flag_sets); flags++) {
            if (!has_a_meaning((gemmepi_epilogue)activation, flag_sets[flags]))
                continue;
            if (t == &bf16_to_f32 && flags % 2 == 0)
                continue; /* half of the sets: each is a kernel to compile */
            for (size = 0; size < COUNT(grid_sizes); size++)
                for (layout = 0; layout < (size == 1 ? LAYOUTS : 1); layout++) {
                    gemmepi_epilogue epilogue = (gemmepi_epilogue)activation | flag_sets[flags];
                    problem p = grid_problem(t, epilogue, grid_sizes[size], variant++);
                    holds(&p);
                }
        }
}

static void f64_products_are_within_the_bound(void) {
    grid(&f64);
}

static void f32_products_are_within_the_bound(void) {
    grid(&f32);
}

static void tf32_products_are_within_the_bound(void) {
    grid(&tf32);
}

static void f16_products_are_within_the_bound(void) {
    grid(&f16);
}

static void bf16_products_are_within_the_bound(void) {
    grid(&bf16);
}

static void bf16_products_with_f32_results_are_within_the_bound(void) {
    grid(&bf16_to_f32);
}

static void long_sums_are_within_the_bound(void) {
    int t, kind;
    for (t = 0; t < COUNT(all_types); t++)
        for (kind = 0; kind < 4; kind++) {
            problem deep = typed(all_types[t], 3, 5, 16384, GEMMEPI_BIAS);
            problem tall = typed(all_types[t], 4099, 3, 2, GEMMEPI_BGRAD);
            problem many = typed(all_types[t], 1, 8, 2, GEMMEPI_BGRAD); /* summed over a large batch */
            many.desc.batch = 5000;
            many.desc.a.batch_stride = 2;
            many.desc.d.batch_stride = 8;
            deep.fill = tall.fill = many.fill = (fill)kind;
            holds(&deep);
            holds(&tall);
            holds(&many);
        }
}

/* >>exactness */

static void small_integers_are_exact(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_NONE | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_NONE | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_BGRAD_ACCUMULATE,
        GEMMEPI_RELU | GEMMEPI_BGRAD_A,
        GEMMEPI_NONE | GEMMEPI_BGRAD_B | GEMMEPI_BGRAD_ACCUMULATE,
    };
    int t, e, layout;
    for (t = 0; t < COUNT(all_types); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (layout = 0; layout < LAYOUTS; layout++) {
                problem p = typed(all_types[t], 21, 35, 3 + 9 * layout, epilogues[e]);
                lay_out(&p, layout);
                p.fill = INTEGERS;
                p.seed = (uint64_t)layout;
                problem_scale(&p, layout % 3 ? 1 : -1, layout % 2 ? 2 : 0);
                holds(&p);
            }
}

static void strict_f32_keeps_the_bits_that_tf32_drops(void) {
    int layout;
    for (layout = 0; layout < LAYOUTS; layout++) {
        problem p = typed(&f32, 40, 24, 64, GEMMEPI_RELU | GEMMEPI_BIAS);
        lay_out(&p, layout);
        p.fill = TWELVE_BITS;
        p.desc.compute = layout % 2 ? GEMMEPI_COMPUTE_F32 : GEMMEPI_COMPUTE_DEFAULT;
        holds(&p);
    }
}

/* >>typical errors */

/* [m, n] of op(A) op(B) with an f32 result: from the GPU itself, on the host summed in f32 here. */
static double *plain_product(const problem *p) {
    problem plain = *p;
    run r;
    float sum;
    double *values, *a, *b;
    int64_t i, j, l;
    plain.desc.epilogue = GEMMEPI_NONE;
    plain.desc.d.dtype = plain.desc.c.dtype = GEMMEPI_F32;
    if (!here->is_host)
        return answer(&plain, T_D);
    CHECK(problem_holds_run(here, &plain, NULL, &r), "see above");
    values = run_values(&r, T_D);
    a = run_values(&r, T_A);
    b = run_values(&r, T_B);
    for (i = 0; i < p->desc.m; i++)
        for (j = 0; j < p->desc.n; j++) {
            for (sum = 0, l = 0; l < p->desc.k; l++)
                sum += (float)(a[i * p->desc.k + l] * b[l * p->desc.n + j]);
            values[i * p->desc.n + j] = (double)sum;
        }
    free(a);
    free(b);
    run_free(&r);
    return values;
}

/* Root-mean-square errors of p's answer, and of the plain product with the epilogue in double, rounded
   once. */
static void typical_errors(const problem *p, double *ours, double *plain) {
    int64_t i, j, index = 0;
    double *once = plain_product(p), magnitude;
    expected *want = malloc(sizeof *want * (size_t)(p->desc.m * p->desc.n));
    oracle_problem o;
    run r;
    CHECK(problem_holds_run(here, p, NULL, &r), "see above");
    o = run_oracle(&r, p);
    oracle_product(&o, want, want, NULL);
    for (*ours = *plain = 0, i = 0; i < p->desc.m; i++)
        for (j = 0; j < p->desc.n; j++, index++) {
            view d = run_result(&r, T_D), bias = r.tensors[T_BIAS].at, aux = r.tensors[T_AUX].at;
            double v = once[index] + (problem_has(p, GEMMEPI_BIAS) ? view_get(&bias, 0, i, j) : 0);
            if (problem_has(p, GEMMEPI_BACKWARD))
                v *= oracle_derivative(o.activation, view_get(&aux, 0, i, j), &magnitude);
            else
                v = oracle_activation(o.activation, v);
            *ours += pow(view_get(&d, 0, i, j) - want[index].value, 2);
            *plain += pow(oracle_round(d.dtype, v) - want[index].value, 2);
        }
    *ours = sqrt(*ours / (double)index);
    *plain = sqrt(*plain / (double)index);
    free(once);
    free(want);
    run_free(&r);
}

static void typical_errors_are_those_of_rounding_once(void) {
    static const types *const kinds[] = {&f32, &f16, &bf16};
    gemmepi_epilogue activation;
    int t, backward;
    double ours, plain;
    for (t = 0; t < COUNT(kinds); t++)
        for (activation = GEMMEPI_NONE; activation <= GEMMEPI_TANH; activation++)
            for (backward = 0; backward < 2; backward++) {
                problem p =
                    typed(kinds[t], 88, 96, 256, activation | (backward ? GEMMEPI_BACKWARD : GEMMEPI_BIAS));
                typical_errors(&p, &ours, &plain);
                CHECK(ours <= 1.5 * plain, "%s on %s: %s: rms error %g, rounding once %g", kinds[t]->name,
                      here->name, problem_line(&p).text, ours, plain);
            }
}

/* >>special values */

static const double specials[] = {80,   -80,  1e-7, -1e-7, 0,  -0.0, INFINITY, -INFINITY, NAN,   -5.54,
                                  5.54, -2.7, 2.7,  1,     -1, 20,   -20,      0.75,      -0.75, -12};
#define SPECIALS COUNT(specials)

static void special_values_pass_through_every_activation(void) {
    static const double factors[] = {1, -1, 0.5};
    gemmepi_epilogue activation;
    int t;
    for (t = 0; t < COUNT(all_types); t++)
        for (activation = GEMMEPI_NONE; activation <= GEMMEPI_TANH; activation++) {
            problem p = typed(all_types[t], SPECIALS, 3, 1, activation | GEMMEPI_AUX);
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
    for (t = 0; t < COUNT(all_types); t++)
        for (activation = GEMMEPI_GELU_TANH; activation <= GEMMEPI_TANH; activation++) {
            problem p = typed(all_types[t], SPECIALS, 3, 1, activation | GEMMEPI_BACKWARD);
            p.given[T_A] = ones;
            p.given[T_B] = factors;
            p.given[T_AUX] = aux;
            holds(&p);
        }
}

/* numerics.md, Element-wise: out = f(x (1 + d)) (1 + e), |d| <= 2u, |e| <= 4u, or within 4u of the largest
   term. */
static expected elementwise(gemmepi_dtype dtype, gemmepi_epilogue epilogue, double x) {
    unsigned activation = epilogue & GEMMEPI_ACTIVATION_MASK;
    double u = oracle_roundoff(dtype), at[3], f[3], terms = 0, bend;
    expected want;
    int i;
    at[0] = x;
    at[1] = x * (1 + 2 * u);
    at[2] = x * (1 - 2 * u);
    for (i = 2; i >= 0; i--)
        f[i] = epilogue & GEMMEPI_BACKWARD ? oracle_derivative(activation, at[i], &terms)
                                           : oracle_activation(activation, at[i]);
    bend = fmax(fabs(f[1] - f[0]), fabs(f[2] - f[0]));
    want.value = f[0];
    want.bound = fmax(bend * (1 + 4 * u) + 4 * u * fabs(f[0]), 2 * u * (terms + fabs(f[0])));
    want.bound += ldexp(1, oracle_format(dtype).lowest);
    return want;
}

/* v is x itself here, so that E does not cover what is lost in the tail of an activation. */
static void tails_keep_their_relative_precision(void) {
    enum { POINTS = 161 };
    double x[POINTS], one[POINTS], *y;
    gemmepi_epilogue activation;
    int t, i, backward;
    for (t = 0; t < COUNT(plain_types); t++)
        for (activation = GEMMEPI_GELU_TANH; activation <= GEMMEPI_TANH; activation++)
            for (backward = 0; backward < 2; backward++) {
                gemmepi_dtype dtype = plain_types[t]->results;
                problem p = typed(plain_types[t], POINTS, 1, 1,
                                  activation | (backward ? GEMMEPI_BACKWARD : GEMMEPI_NONE));
                for (i = 0; i < POINTS; i++) {
                    x[i] = oracle_round(dtype, (i - POINTS / 2) * 0.17 + 0.01);
                    one[i] = 1;
                }
                p.given[T_A] = backward ? one : x;
                p.given[T_B] = one;
                p.given[T_AUX] = x;
                y = answer(&p, T_D);
                for (i = 0; i < POINTS; i++) {
                    expected want = elementwise(dtype, p.desc.epilogue, x[i]);
                    CHECK(fabs(x[i]) < 3 || oracle_accepts(dtype, y[i], want),
                          "%s, activation %u%s of %.9g: got %.9g, want %.9g +- %.3g", plain_types[t]->name,
                          activation, backward ? "'" : "", x[i], y[i], want.value, want.bound);
                }
                free(y);
            }
}

static void relu_backward_selects_so_that_infinity_times_zero_does_not_arise(void) {
    static const double a[] = {INFINITY, -INFINITY, NAN, 3}, b[] = {1, 1}, bits[] = {0, 1, 0, 1, 0, 1, 0, 1};
    int t, i;
    for (t = 0; t < COUNT(plain_types); t++) {
        problem p = typed(plain_types[t], 4, 2, 1, GEMMEPI_RELU | GEMMEPI_BACKWARD);
        double *d;
        p.given[T_A] = a;
        p.given[T_B] = b;
        p.given[T_AUX] = bits;
        d = answer(&p, T_D);
        for (i = 0; i < 4; i++)
            CHECK(d[2 * i] == 0, "row %d of %s with a clear bit: %g", i, plain_types[t]->name, d[2 * i]);
        free(d);
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

/* >>worked cases */

/* Equal to the 12 digits shown in numerics.md. */
static int as_shown(double got, double shown) {
    double unit = pow(10, floor(log10(fabs(shown))) - 11);
    return fabs(got - shown) <= 0.501 * unit;
}

static void check_shown(const types *t, const char *what, const double *got, const double *shown, int count) {
    int i;
    for (i = 0; i < count && t == &f64; i++)
        CHECK(as_shown(got[i], shown[i]), "%s[%d]: got %.13g, worked %.12g", what, i, got[i], shown[i]);
}

typedef struct forward_case {
    gemmepi_epilogue activation;
    double y[4];
} forward_case;

static const forward_case forward_cases[] = {
    {GEMMEPI_GELU_TANH, {.630431691436, .73422848871, .262161169427, -.154285990175}},
    {GEMMEPI_GELU_ERF, {.630515681133, .734345887188, .262168696644, -.154268769363}},
    {GEMMEPI_SILU, {.551979584902, .639854552363, .239475064045, -.188770334399}},
    {GEMMEPI_SIGMOID, {.689974481128, .710949502625, .598687660112, .377540668798}},
    {GEMMEPI_TANH, {.664036770268, .716297870199, .379948962255, -.46211715726}},
};

static void worked_forward_cases_come_out(void) {
    static const double a[] = {1, 2, -1, 3, -2, 4}, b[] = {.5, -.3, .1, .7, -.2, .4}, bias[] = {-.1, .2};
    static const double preactivation[] = {.8, .9, .4, -.5};
    int t, i, layout;
    for (t = 0; t < COUNT(all_types); t++)
        for (i = 0; i < COUNT(forward_cases); i++)
            for (layout = 0; layout < LAYOUTS; layout += 2) { /* row-major, where bias is [n] */
                problem p =
                    typed(all_types[t], 2, 2, 3, forward_cases[i].activation | GEMMEPI_BIAS | GEMMEPI_AUX);
                double *y, *aux;
                lay_out(&p, layout);
                p.given[T_A] = a;
                p.given[T_B] = b;
                p.given[T_BIAS] = bias;
                y = answer(&p, T_D);
                aux = answer(&p, T_AUX);
                check_shown(all_types[t], "Y", y, forward_cases[i].y, 4);
                check_shown(all_types[t], "aux", aux, preactivation, 4);
                free(y);
                free(aux);
            }
}

typedef struct backward_case {
    gemmepi_epilogue activation;
    double da[4], db[4], dbias[2];
} backward_case;

static const backward_case backward_cases[] = {
    {GEMMEPI_NONE, {.8, .6, .8, .6}, {4, 4, 6, 6}, {2, 2}},
    {GEMMEPI_RELU, {.8, .6, .8, .6}, {4, 4, 6, 6}, {2, 2}},
    {GEMMEPI_GELU_TANH,
     {.700922115255, .707910696853, .852176749455, .590443762808},
     {4.04327383935, 4.11938481316, 5.87922875355, 6.23645617185},
     {1.83595491421, 2.11707135869}},
    {GEMMEPI_GELU_ERF,
     {.700759274048, .707489801465, .852424833075, .590627587708},
     {4.0442417682, 4.11970963058, 5.88054086881, 6.23649148663},
     {1.83629910062, 2.11678185605}},
    {GEMMEPI_SILU,
     {.644159356587, .682517152299, .797080228287, .648455700079},
     {3.51688092961, 4.25653192214, 5.12102791303, 6.38708556602},
     {1.60414698342, 2.13055364389}},
    {GEMMEPI_SIGMOID,
     {.161410879935, .0669781917073, .10074841225, -.00225555217613},
     {.806567950333, .201240471732, 1.23839614157, .355391126953},
     {.431828191238, .154150655221}},
    {GEMMEPI_TANH,
     {.495071442103, -.00400678673925, .180333265503, -.0342107142957},
     {1.99274091031, .132335944864, 3.26707918829, .25978784024},
     {1.27433827799, .127451895377}},
};

/* [a b; c d] transposed */
static const double *turned(const double *x, double *to) {
    to[0] = x[0];
    to[1] = x[2];
    to[2] = x[1];
    to[3] = x[3];
    return to;
}

/* A 2 x 2 x 2 product of given operands. */
static problem worked_product(const types *t, gemmepi_epilogue epilogue, const double *a, const double *b) {
    problem p = typed(t, 2, 2, 2, epilogue);
    p.given[T_A] = a;
    p.given[T_B] = b;
    return p;
}

static void worked_backward_case(const types *t, const backward_case *c) {
    static const double a[] = {1, 2, 3, 4}, b[] = {.5, .3, -.1, .7}, one[] = {1, 0, 0, 1},
                        dy[] = {1, 1, 1, 1};
    gemmepi_epilogue back = c->activation ? c->activation | GEMMEPI_BACKWARD | GEMMEPI_BGRAD : GEMMEPI_BGRAD;
    double turned_a[4], turned_b[4], *aux, *g, *dbias, *da, *db;
    problem p = worked_product(t, c->activation | GEMMEPI_AUX, a, b);
    aux = answer(&p, T_AUX);
    p = worked_product(t, back, one, dy);
    p.given[T_AUX] = aux;
    g = answer(&p, T_D);
    dbias = answer(&p, T_BIAS_GRAD);
    p = worked_product(t, GEMMEPI_NONE, g, turned(b, turned_b));
    p.desc.b.transposed = 1;
    da = answer(&p, T_D);
    p = worked_product(t, GEMMEPI_NONE, turned(a, turned_a), g);
    p.desc.a.transposed = 1;
    db = answer(&p, T_D);
    check_shown(t, "dA", da, c->da, 4);
    check_shown(t, "dB", db, c->db, 4);
    check_shown(t, "dbias", dbias, c->dbias, 2);
    free(aux);
    free(g);
    free(dbias);
    free(da);
    free(db);
}

static void worked_backward_cases_come_out(void) {
    int t, i;
    for (t = 0; t < COUNT(plain_types); t++)
        for (i = 0; i < COUNT(backward_cases); i++)
            worked_backward_case(plain_types[t], backward_cases + i);
}

static void worked_batched_gradients_come_out(void) {
    /* op(A) = A^T [3, 2] of each item, [3, 4] of both */
    static const double own[] = {1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12},
                        both[] = {1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12};
    static const double dy[] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const double own_want[] = {5, 7, 9, 17, 19, 21}, shared_want[] = {22, 26, 30};
    int t, i;
    for (t = 0; t < COUNT(plain_types); t++) {
        problem per_item = typed(plain_types[t], 3, 2, 2, GEMMEPI_NONE);
        problem shared = typed(plain_types[t], 3, 2, 4, GEMMEPI_NONE);
        double *db;
        per_item.desc.batch = 2;
        per_item.desc.a.transposed = shared.desc.a.transposed = 1;
        problem_space_out(&per_item, 0);
        per_item.given[T_A] = own;
        shared.given[T_A] = both;
        per_item.given[T_B] = shared.given[T_B] = dy;
        db = answer(&per_item, T_D);
        for (i = 0; i < 12; i++)
            CHECK(db[i] == own_want[i / 2], "dB[%d] is %g", i, db[i]);
        free(db);
        db = answer(&shared, T_D);
        for (i = 0; i < 6; i++)
            CHECK(db[i] == shared_want[i / 2], "shared dB[%d] is %g", i, db[i]);
        free(db);
    }
}

/* >>gradients against central differences */

enum { X_ROWS = 4, X_COLUMNS = 5, HIDDEN = 6, OUT = 3 };

/* loss = sum R (act(X W + bias) V): a hidden layer, and what its gradients are made of */
typedef struct network {
    gemmepi_epilogue activation;
    double x[X_ROWS * X_COLUMNS], w[X_COLUMNS * HIDDEN], bias[HIDDEN], v[HIDDEN * OUT], r[X_ROWS * OUT];
} network;

static void network_fill(double *values, int count, uint64_t salt) {
    int i;
    for (i = 0; i < count; i++)
        values[i] = random_normal(random_hash(salt * 1000 + (uint64_t)i));
}

static problem network_layer(const network *net, gemmepi_epilogue more) {
    problem p = typed(&f64, X_ROWS, HIDDEN, X_COLUMNS, net->activation | GEMMEPI_BIAS | more);
    p.given[T_A] = net->x;
    p.given[T_B] = net->w;
    p.given[T_BIAS] = net->bias;
    return p;
}

static double network_loss(const network *net) {
    problem layer = network_layer(net, 0), last = typed(&f64, X_ROWS, OUT, HIDDEN, GEMMEPI_NONE);
    double *hidden = answer(&layer, T_D), *out, loss = 0;
    int i;
    last.given[T_A] = hidden;
    last.given[T_B] = net->v;
    out = answer(&last, T_D);
    for (i = 0; i < X_ROWS * OUT; i++)
        loss += net->r[i] * out[i];
    free(hidden);
    free(out);
    return loss;
}

static void check_gradient(network *net, double *parameters, const double *gradient, int count,
                           const char *name) {
    const double step = 1e-5;
    int i;
    for (i = 0; i < count; i += 2) {
        double kept = parameters[i], above, below, difference;
        parameters[i] = kept + step;
        above = network_loss(net);
        parameters[i] = kept - step;
        below = network_loss(net);
        parameters[i] = kept;
        difference = (above - below) / (2 * step);
        CHECK(fabs(difference - gradient[i]) <= 1e-8 * (1 + fabs(gradient[i])),
              "activation %u, %s[%d]: gradient %.12g, difference %.12g", net->activation, name, i,
              gradient[i], difference);
    }
}

static void turn(double *to, const double *from, int rows, int columns) {
    int i, j;
    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}

static void gradients_equal_central_differences(void) {
    double turned_v[OUT * HIDDEN], turned_w[HIDDEN * X_COLUMNS], turned_x[X_COLUMNS * X_ROWS];
    network net;
    for (net.activation = GEMMEPI_RELU; net.activation <= GEMMEPI_TANH; net.activation++) {
        problem forward, back, dx, dw;
        double *aux, *g, *dbias, *x_gradient, *w_gradient;
        network_fill(net.x, COUNT(net.x), 1);
        network_fill(net.w, COUNT(net.w), 2);
        network_fill(net.bias, COUNT(net.bias), 3);
        network_fill(net.v, COUNT(net.v), 4);
        network_fill(net.r, COUNT(net.r), 5);
        turn(turned_v, net.v, HIDDEN, OUT);
        turn(turned_w, net.w, X_COLUMNS, HIDDEN);
        turn(turned_x, net.x, X_ROWS, X_COLUMNS);
        forward = network_layer(&net, GEMMEPI_AUX);
        aux = answer(&forward, T_AUX);
        back = typed(&f64, X_ROWS, HIDDEN, OUT, net.activation | GEMMEPI_BACKWARD | GEMMEPI_BGRAD);
        back.desc.b.transposed = 1;
        back.given[T_A] = net.r;
        back.given[T_B] = turned_v;
        back.given[T_AUX] = aux;
        g = answer(&back, T_D);
        dbias = answer(&back, T_BIAS_GRAD);
        dx = typed(&f64, X_ROWS, X_COLUMNS, HIDDEN, GEMMEPI_NONE);
        dx.given[T_A] = g;
        dx.given[T_B] = turned_w;
        x_gradient = answer(&dx, T_D);
        dw = typed(&f64, X_COLUMNS, HIDDEN, X_ROWS, GEMMEPI_NONE);
        dw.given[T_A] = turned_x;
        dw.given[T_B] = g;
        w_gradient = answer(&dw, T_D);
        check_gradient(&net, net.bias, dbias, COUNT(net.bias), "bias");
        check_gradient(&net, net.x, x_gradient, COUNT(net.x), "x");
        check_gradient(&net, net.w, w_gradient, COUNT(net.w), "w");
        free(aux);
        free(g);
        free(dbias);
        free(x_gradient);
        free(w_gradient);
    }
}

/* >>edges */

static void no_terms_leave_beta_c_and_the_epilogue(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_GELU_ERF | GEMMEPI_BIAS | GEMMEPI_AUX, GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_A,
        GEMMEPI_NONE | GEMMEPI_BGRAD_B | GEMMEPI_BGRAD_ACCUMULATE};
    int t, e, layout;
    for (t = 0; t < COUNT(plain_types); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (layout = 0; layout < LAYOUTS; layout++) {
                problem p = typed(plain_types[t], 11, 14, 0, epilogues[e]);
                lay_out(&p, layout);
                if (layout % 3)
                    problem_scale(&p, 3, 0.7);
                p.by_plan = layout % 2;
                holds(&p);
            }
}

static void alpha_zero_leaves_beta_c_and_the_epilogue(void) {
    static const int64_t sizes[][3] = {{3, 1, 106}, {1, 3, 106}, {1, 1, 50}, {40, 33, 64}};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE, GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD,
                                                 GEMMEPI_RELU | GEMMEPI_BIAS};
    int t, e, size, way;
    for (t = 0; t < COUNT(plain_types); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (size = 0; size < COUNT(sizes); size++)
                for (way = 0; way < 2 * LAYOUTS; way++) {
                    problem p =
                        typed(plain_types[t], sizes[size][0], sizes[size][1], sizes[size][2], epilogues[e]);
                    lay_out(&p, way);
                    problem_scale(&p, 0, way / LAYOUTS);
                    p.desc.flags = way % 3 == 2 ? GEMMEPI_DEVICE_SCALARS : 0;
                    holds(&p);
                }
}

static void an_empty_product_writes_nothing(void) {
    static const int64_t empty[][4] = {{0, 5, 3, 1}, {5, 0, 3, 1}, {5, 6, 3, 0}, {0, 0, 0, 1}, {0, 5, 3, 2}};
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX, GEMMEPI_NONE | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_BGRAD_A, GEMMEPI_NONE | GEMMEPI_BGRAD_B};
    int i, e, way;
    for (i = 0; i < COUNT(empty); i++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (way = 0; way < 4; way++) {
                problem p =
                    typed(way & 1 ? &f32 : &bf16, empty[i][0], empty[i][1], empty[i][2], epilogues[e]);
                p.desc.batch = empty[i][3];
                p.by_plan = way >> 1;
                if (way & 1 || p.desc.batch > 1)
                    problem_space_out(&p, 1);
                holds(&p);
            }
}

static void beta_zero_never_reads_c(void) {
    int t, way;
    for (t = 0; t < COUNT(plain_types); t++)
        for (way = 0; way < 8;
             way++) { /* C full of NaN or NULL, beta on the host or the device, one shot or plan */
            problem p = typed(plain_types[t], 19, 24, 16, GEMMEPI_SILU | GEMMEPI_BIAS);
            problem_scale(&p, 0.7, 0);
            p.no_c = way & 1;
            p.desc.flags = way & 2 && !p.no_c ? GEMMEPI_DEVICE_SCALARS : 0;
            p.by_plan = way >> 2;
            holds(&p);
        }
}

static void scalars_on_the_device_are_those_of_the_host(void) {
    int t, way;
    for (t = 0; t < COUNT(plain_types); t++)
        for (way = 0; way < 4; way++) {
            problem p = typed(plain_types[t], 19, 24, 16, GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD);
            problem_scale(&p, 0.7, -1.3);
            p.has_beta = way & 1;
            p.beta = p.has_beta ? p.beta : 0;
            p.by_plan = way >> 1;
            p.desc.flags = GEMMEPI_DEVICE_SCALARS;
            holds(&p);
        }
}

static void c_residual_and_aux_may_be_d(void) {
    static const int which[] = {T_C, T_RESIDUAL, T_AUX};
    int t, subset, i;
    for (t = 0; t < COUNT(plain_types); t++)
        for (subset = 1; subset < 8; subset++) {
            problem p =
                typed(plain_types[t], 45, 37, 20, GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL);
            p.desc.batch = 2;
            problem_space_out(&p, 3);
            problem_scale(&p, 1, 0.5);
            for (i = 0; i < 3; i++)
                p.in_place[which[i]] = subset >> i & 1;
            holds(&p);
        }
}

static void bias_grad_is_per_item_or_the_sum_over_the_batch(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_NONE | GEMMEPI_BGRAD,
        GEMMEPI_TANH | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_BGRAD_ACCUMULATE,
        GEMMEPI_NONE | GEMMEPI_BGRAD_A, GEMMEPI_SILU | GEMMEPI_BGRAD_B | GEMMEPI_BGRAD_ACCUMULATE};
    int t, e, way;
    for (t = 0; t < COUNT(all_types); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (way = 0; way < 8; way++) {
                problem p = typed(all_types[t], 31, 18, 12, epilogues[e]);
                lay_out(&p, way & 1);
                p.desc.batch = 4;
                problem_space_out(&p, 2);
                if (way & 2)
                    p.desc.bias_grad.batch_stride = 0;
                if (way & 4)
                    p.desc.a.batch_stride = p.desc.b.batch_stride = 0;
                p.fill = INTEGERS;
                holds(&p);
            }
}

static void the_backward_of_none_multiplies_by_one(void) {
    int t;
    for (t = 0; t < COUNT(plain_types); t++) {
        problem p = typed(plain_types[t], 17, 10, 12, GEMMEPI_NONE | GEMMEPI_BACKWARD | GEMMEPI_BGRAD);
        holds(&p);
    }
}

/* >>the mask and the saved pre-activation */

/* Eleven values along a row of the mask; the second row has them negated. Bits past the eleventh stay. */
static void the_mask_has_a_bit_where_v_is_above_zero(void) {
    static const double values[] = {0, -0.0, NAN, 1, -1, 6e-8, INFINITY, -INFINITY, 2, -3, 4},
                        signs[] = {1, -1};
    int t, layout;
    for (t = 0; t < COUNT(all_types); t++)
        for (layout = 0; layout < 2; layout++) {
            problem p = typed(all_types[t], layout ? 11 : 2, layout ? 2 : 11, 1, GEMMEPI_RELU | GEMMEPI_AUX);
            run r;
            const unsigned char *before, *after;
            lay_out(&p, layout);
            p.given[layout ? T_A : T_B] = values;
            p.given[layout ? T_B : T_A] = signs;
            CHECK(problem_holds_run(here, &p, NULL, &r), "see above");
            before = r.before + r.tensors[T_AUX].offset;
            after = r.after + r.tensors[T_AUX].offset;
            CHECK(after[0] == 0x68 && (after[1] & 7) == 5, "%s: %02x %02x", all_types[t]->name, after[0],
                  after[1]);
            CHECK(after[16] == 0x90 && (after[17] & 7) == 2, "%s: %02x %02x", all_types[t]->name, after[16],
                  after[17]);
            CHECK((after[1] ^ before[1]) >> 3 == 0 && (after[17] ^ before[17]) >> 3 == 0,
                  "bits past the end changed");
            run_free(&r);
        }
}

static void the_aux_of_forward_feeds_backward(void) {
    gemmepi_epilogue activation;
    int t, layout;
    for (t = 0; t < COUNT(plain_types); t++)
        for (activation = GEMMEPI_RELU; activation <= GEMMEPI_TANH; activation++)
            for (layout = 0; layout < 2; layout++) {
                problem forward = typed(plain_types[t], 20, 33, 9, activation | GEMMEPI_AUX);
                problem backward =
                    typed(plain_types[t], 20, 33, 14, activation | GEMMEPI_BACKWARD | GEMMEPI_BGRAD);
                run saved, used;
                lay_out(&forward, layout);
                lay_out(&backward, layout);
                CHECK(problem_holds_run(here, &forward, NULL, &saved), "see above");
                run_make(&used, &backward);
                memcpy(used.before + used.tensors[T_AUX].offset, saved.after + saved.tensors[T_AUX].offset,
                       used.tensors[T_AUX].bytes);
                CHECK(run_execute(&used, &backward, here, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
                CHECK(run_compare(&used, &backward, here), "see above");
                run_free(&saved);
                run_free(&used);
            }
}

/* >>bits */

static const gemmepi_epilogue bit_epilogues[] = {GEMMEPI_NONE, GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX,
                                                 GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
                                                 GEMMEPI_NONE | GEMMEPI_BGRAD_B};

static int same_bits(const problem *first, const problem *second) {
    run one, two;
    int same = problem_holds_run(here, first, NULL, &one);
    same = problem_holds_run(here, second, NULL, &two) && same && memcmp(one.after, two.after, one.size) == 0;
    run_free(&one);
    run_free(&two);
    return same;
}

static problem bit_problem(const types *t, gemmepi_epilogue epilogue) {
    problem p = typed(t, 72, 40, 2100, epilogue);
    p.desc.batch = 2;
    problem_space_out(&p, 8);
    p.desc.bias_grad.batch_stride = 0;
    p.desc.alignment = 16;
    return p;
}

static void a_repeated_run_gives_the_same_bits(void) {
    int t, e;
    for (t = 0; t < COUNT(plain_types); t++)
        for (e = 0; e < COUNT(bit_epilogues); e++) {
            problem p = bit_problem(plain_types[t], bit_epilogues[e]);
            CHECK(same_bits(&p, &p), "%s", problem_line(&p).text);
        }
}

static void one_shot_gives_the_bits_of_the_plan(void) {
    int t, e;
    for (t = 0; t < COUNT(plain_types); t++)
        for (e = 0; e < COUNT(bit_epilogues); e++) {
            problem p = bit_problem(plain_types[t], bit_epilogues[e]), by_plan = p;
            by_plan.by_plan = by_plan.own_workspace = 1;
            CHECK(same_bits(&p, &by_plan), "%s", problem_line(&p).text);
        }
}

/* >>the oracle itself */

static void the_oracle_rounds_to_nearest_even(void) {
    static const struct {
        gemmepi_dtype dtype;
        double x, rounded;
    } cases[] = {
        {GEMMEPI_F16, 65519.99, 65504},
        {GEMMEPI_F16, 65520, INFINITY},
        {GEMMEPI_F16, 0x1p-25, 0},
        {GEMMEPI_F16, 0x1.8p-24, 0x1p-23},
        {GEMMEPI_F16, 2049, 2048},
        {GEMMEPI_F16, 2051, 2052},
        {GEMMEPI_BF16, 257, 256},
        {GEMMEPI_BF16, 259, 260},
        {GEMMEPI_BF16, 0x1.ffp127, INFINITY},
        {GEMMEPI_BF16, 0x1.fefp127, 0x1.fep127},
        {GEMMEPI_BF16, 0x1.8p-133, 0x1p-132},
        {GEMMEPI_F32, 16777217, 16777216},
    };
    unsigned bits;
    int i;
    for (i = 0; i < COUNT(cases); i++)
        CHECK(oracle_round(cases[i].dtype, cases[i].x) == cases[i].rounded, "%g gives %g", cases[i].x,
              oracle_round(cases[i].dtype, cases[i].x));
    for (bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits, as_f16 = 0, as_bf16 = 0;
        double from_f16 = oracle_decode(GEMMEPI_F16, &half), from_bf16 = oracle_decode(GEMMEPI_BF16, &half);
        oracle_encode(GEMMEPI_F16, &as_f16, from_f16);
        oracle_encode(GEMMEPI_BF16, &as_bf16, from_bf16);
        CHECK(isnan(from_f16) || as_f16 == half, "f16 %04x comes back as %04x", bits, as_f16);
        CHECK(isnan(from_bf16) || as_bf16 == half, "bf16 %04x comes back as %04x", bits, as_bf16);
    }
}

static void run_all(void) {
    RUN(small_integers_are_exact);
    RUN(strict_f32_keeps_the_bits_that_tf32_drops);
    RUN(worked_forward_cases_come_out);
    RUN(worked_backward_cases_come_out);
    RUN(worked_batched_gradients_come_out);
    RUN(gradients_equal_central_differences);
    RUN(special_values_pass_through_every_activation);
    RUN(special_values_pass_through_every_derivative);
    RUN(tails_keep_their_relative_precision);
    RUN(relu_backward_selects_so_that_infinity_times_zero_does_not_arise);
    RUN(the_two_gelus_are_told_apart);
    RUN(no_terms_leave_beta_c_and_the_epilogue);
    RUN(alpha_zero_leaves_beta_c_and_the_epilogue);
    RUN(an_empty_product_writes_nothing);
    RUN(beta_zero_never_reads_c);
    RUN(scalars_on_the_device_are_those_of_the_host);
    RUN(c_residual_and_aux_may_be_d);
    RUN(bias_grad_is_per_item_or_the_sum_over_the_batch);
    RUN(the_backward_of_none_multiplies_by_one);
    RUN(the_mask_has_a_bit_where_v_is_above_zero);
    RUN(the_aux_of_forward_feeds_backward);
    RUN(a_repeated_run_gives_the_same_bits);
    RUN(one_shot_gives_the_bits_of_the_plan);
    RUN(typical_errors_are_those_of_rounding_once);
    RUN(f64_products_are_within_the_bound);
    RUN(f32_products_are_within_the_bound);
    RUN(tf32_products_are_within_the_bound);
    RUN(f16_products_are_within_the_bound);
    RUN(bf16_products_are_within_the_bound);
    RUN(bf16_products_with_f32_results_are_within_the_bound);
    RUN(long_sums_are_within_the_bound);
}

int main(void) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    RUN(the_oracle_rounds_to_nearest_even);
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        run_all();
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
