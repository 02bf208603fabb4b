/* Layers, systematically: every activation and gate, saved and recomputed, in every dtype, layout, form of batch and class of
   size, and what the manual states by name. Runs on the devices that GEMMEPI_TEST_DEVICE names; see
   ../products/problem.h. */
#include "call.h"

static test_device *here;

/* One choice of dtypes; those left 0 follow. */
typedef struct types {
    const char *name;
    gemmepi_dtype a, b, y, dy, gradients, vectors, g;
    gemmepi_compute compute;
} types;

#define D0 GEMMEPI_DTYPE_DEFAULT

static const types f64 = {"f64", GEMMEPI_F64, D0, D0, D0, D0, D0, D0, GEMMEPI_COMPUTE_DEFAULT};
static const types f32 = {"f32", GEMMEPI_F32, D0, D0, D0, D0, D0, D0, GEMMEPI_COMPUTE_DEFAULT};
static const types bf16 = {"bf16", GEMMEPI_BF16, D0, D0, D0, D0, D0, D0, GEMMEPI_COMPUTE_DEFAULT};
static const types e4m3_e5m2 = {"e4m3 by e5m2", GEMMEPI_E4M3, GEMMEPI_E5M2,           D0, D0, D0,
                                GEMMEPI_F32,    D0,           GEMMEPI_COMPUTE_DEFAULT};
static const types e4m3 = {"e4m3", GEMMEPI_E4M3, D0, D0, D0, D0, D0, D0, GEMMEPI_COMPUTE_DEFAULT};

static const types other_types[] = {
    {"tf32", GEMMEPI_F32, D0, D0, D0, D0, D0, D0, GEMMEPI_COMPUTE_TF32},
    {"f16", GEMMEPI_F16, D0, D0, D0, D0, D0, D0, GEMMEPI_COMPUTE_DEFAULT},
    {"bf16, f32 gradients", GEMMEPI_BF16, D0, D0, D0, GEMMEPI_F32, GEMMEPI_F32, D0, GEMMEPI_COMPUTE_DEFAULT},
    {"bf16, all else f32", GEMMEPI_BF16, D0, GEMMEPI_F32, D0, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32,
     GEMMEPI_COMPUTE_F32},
    {"f16, f32 g", GEMMEPI_F16, D0, D0, D0, D0, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_COMPUTE_DEFAULT},
    {"f16, f32 gradients", GEMMEPI_F16, D0, D0, GEMMEPI_F32, GEMMEPI_F32, D0, D0, GEMMEPI_COMPUTE_DEFAULT},
    {"f32, bf16 g", GEMMEPI_F32, D0, D0, D0, D0, D0, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT},
    {"f16 by bf16", GEMMEPI_F16, GEMMEPI_BF16, D0, D0, D0, D0, D0, GEMMEPI_COMPUTE_DEFAULT},
    {"bf16 by f32", GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_BF16, D0, D0, D0,
     GEMMEPI_COMPUTE_DEFAULT},
    {"f32 by f16, tf32", GEMMEPI_F32, GEMMEPI_F16, D0, GEMMEPI_F16, D0, D0, D0, GEMMEPI_COMPUTE_TF32},
    {"e4m3", GEMMEPI_E4M3, D0, D0, D0, D0, D0, D0, GEMMEPI_COMPUTE_DEFAULT},
    {"e4m3 by e5m2", GEMMEPI_E4M3, GEMMEPI_E5M2, D0, D0, D0, GEMMEPI_F32, D0, GEMMEPI_COMPUTE_DEFAULT},
    {"e5m2 by e4m3, f32", GEMMEPI_E5M2, GEMMEPI_E4M3, D0, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32, GEMMEPI_F32,
     GEMMEPI_COMPUTE_DEFAULT},
    {"e4m3, dy e5m2", GEMMEPI_E4M3, D0, GEMMEPI_F16, GEMMEPI_E5M2, GEMMEPI_F32, D0, GEMMEPI_F16,
     GEMMEPI_COMPUTE_DEFAULT},
    {"e4m3 by bf16", GEMMEPI_E4M3, GEMMEPI_BF16, D0, D0, D0, D0, D0, GEMMEPI_COMPUTE_DEFAULT},
};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static layer typed(const types *t, int64_t m, int64_t n, int64_t k, gemmepi_epilogue activation,
                   uint64_t flags) {
    layer l = layer_plain(t->a, m, n, k, activation, flags);
    l.desc.b.dtype = t->b;
    l.desc.y.dtype = t->y;
    l.desc.dy.dtype = t->dy;
    l.desc.da.dtype = l.desc.db.dtype = t->gradients;
    l.desc.bias.dtype = l.desc.dbias.dtype = t->vectors;
    l.desc.g_dtype = t->g;
    l.desc.compute = t->compute;
    l.bare = 1;
    l.promise = 1;
    return l;
}

/* SAVED or RECOMPUTE, where backward needs one of them. */
static uint64_t p_flag(gemmepi_epilogue activation, int recompute) {
    if (activation == GEMMEPI_NONE)
        return 0;
    return recompute ? GEMMEPI_LINEAR_RECOMPUTE : GEMMEPI_LINEAR_SAVED;
}

static const gemmepi_epilogue gates[] = {0, GEMMEPI_GATED, GEMMEPI_GATED | GEMMEPI_GATE_FIRST};

/* Does `what` with f64, f32, bf16 and all others. */
static void for_all_types(void (*what)(const types *t)) {
    int i;
    what(&f64);
    what(&f32);
    what(&bf16);
    for (i = 0; i < COUNT(other_types); i++)
        what(other_types + i);
}

/* >>worked cases */

static const double worked_a[] = {1, 2, 3, 4}, worked_b[] = {.5, .3, -.1, .7}, ones[] = {1, 1, 1, 1},
                    no_bias[] = {0, 0}, worked_preact[] = {.3, 1.7, 1.1, 3.7};
static const double forward_a[] = {1, 2, -1, 3, -2, 4}, forward_b[] = {.5, -.3, .1, .7, -.2, .4},
                    forward_bias[] = {-.1, .2};

/* The first elements of t are those, to the last digit shown. */
static void check_digits(const image *m, int t, const double *want, int count, const char *name) {
    int i;
    for (i = 0; i < count; i++) {
        double got = image_got(m, t, 0, i / m->r[t].columns, i % m->r[t].columns);
        char shown[40], wanted[40];
        snprintf(shown, sizeof shown, "%.12g", got);
        snprintf(wanted, sizeof wanted, "%.12g", want[i]);
        CHECK(strcmp(shown, wanted) == 0 || fabs(got - want[i]) <= 5.1e-13 * fmax(1e-2, fabs(want[i])) * 10,
              "%s: %s[%d] is %s, not %s", name, layer_names[t], i, shown, wanted);
    }
}

static void worked_forward_cases_come_out(void) {
    static const struct {
        const char *name;
        gemmepi_epilogue activation;
        double y[4];
    } cases[] = {
        {"GELU_TANH", GEMMEPI_GELU_TANH, {.630431691436, .73422848871, .262161169427, -.154285990175}},
        {"GELU_ERF", GEMMEPI_GELU_ERF, {.630515681133, .734345887188, .262168696644, -.154268769363}},
        {"SILU", GEMMEPI_SILU, {.551979584902, .639854552363, .239475064045, -.188770334399}},
        {"SIGMOID", GEMMEPI_SIGMOID, {.689974481128, .710949502625, .598687660112, .377540668798}},
        {"TANH", GEMMEPI_TANH, {.664036770268, .716297870199, .379948962255, -.46211715726}},
    };
    static const double preact[] = {.8, .9, .4, -.5};
    int i, way;
    for (i = 0; i < COUNT(cases); i++)
        for (way = 0; way < 4; way++) {
            layer l = layer_plain(GEMMEPI_F64, 2, 2, 3, cases[i].activation,
                                  GEMMEPI_LINEAR_BIAS |
                                      (way & 1 ? GEMMEPI_LINEAR_SAVED : GEMMEPI_LINEAR_RECOMPUTE));
            image m;
            l.given[L_A] = forward_a;
            l.given[L_B] = forward_b;
            l.given[L_BIAS] = forward_bias;
            l.by_plan = way >> 1;
            CHECK(layer_execute(&l, &m, here, 0) == GEMMEPI_OK, "%s", gemmepi_last_error());
            check_digits(&m, L_Y, cases[i].y, 4, cases[i].name);
            if (way & 1)
                check_digits(&m, L_PREACT, preact, 4, cases[i].name);
            image_free(&m);
        }
}

/* way: 1 saved, else recomputed (NONE: neither); 2 by plan; 4 with a bias of 0 */
static void check_worked(gemmepi_epilogue activation, const double *da, const double *db, const double *dbias,
                         const char *name, int way) {
    layer l =
        layer_plain(GEMMEPI_F64, 2, 2, 2, activation, ALL_GRADIENTS | p_flag(activation, (way & 1) == 0));
    image m;
    if (way & 4)
        l.desc.flags |= GEMMEPI_LINEAR_BIAS;
    l.given[L_A] = worked_a;
    l.given[L_B] = worked_b;
    l.given[L_DY] = ones;
    l.given[L_BIAS] = no_bias;
    l.given[L_PREACT] = worked_preact;
    l.by_plan = way >> 1 & 1;
    CHECK(layer_execute(&l, &m, here, 1) == GEMMEPI_OK, "%s: %s", name, gemmepi_last_error());
    check_digits(&m, L_DA, da, 4, name);
    check_digits(&m, L_DB, db, 4, name);
    check_digits(&m, L_DBIAS, dbias, 2, name);
    image_free(&m);
}

static void worked_backward_cases_come_out(void) {
    static const struct {
        const char *name;
        gemmepi_epilogue activation;
        double da[4], db[4], dbias[2];
    } cases[] = {
        {"NONE", GEMMEPI_NONE, {.8, .6, .8, .6}, {4, 4, 6, 6}, {2, 2}},
        {"RELU", GEMMEPI_RELU, {.8, .6, .8, .6}, {4, 4, 6, 6}, {2, 2}},
        {"GELU_TANH",
         GEMMEPI_GELU_TANH,
         {.700922115255, .707910696853, .852176749455, .590443762808},
         {4.04327383935, 4.11938481316, 5.87922875355, 6.23645617185},
         {1.83595491421, 2.11707135869}},
        {"GELU_ERF",
         GEMMEPI_GELU_ERF,
         {.700759274048, .707489801465, .852424833075, .590627587708},
         {4.0442417682, 4.11970963058, 5.88054086881, 6.23649148663},
         {1.83629910062, 2.11678185605}},
        {"SILU",
         GEMMEPI_SILU,
         {.644159356587, .682517152299, .797080228287, .648455700079},
         {3.51688092961, 4.25653192214, 5.12102791303, 6.38708556602},
         {1.60414698342, 2.13055364389}},
        {"SIGMOID",
         GEMMEPI_SIGMOID,
         {.161410879935, .0669781917073, .10074841225, -.00225555217613},
         {.806567950333, .201240471732, 1.23839614157, .355391126953},
         {.431828191238, .154150655221}},
        {"TANH",
         GEMMEPI_TANH,
         {.495071442103, -.00400678673925, .180333265503, -.0342107142957},
         {1.99274091031, .132335944864, 3.26707918829, .25978784024},
         {1.27433827799, .127451895377}},
    };
    int i, way;
    for (i = 0; i < COUNT(cases); i++)
        for (way = 0; way < 8; way++)
            check_worked(cases[i].activation, cases[i].da, cases[i].db, cases[i].dbias, cases[i].name, way);
}

static void worked_batched_gradients_come_out(void) {
    static const double a[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                        dy[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                        per_item[2][3] = {{5, 7, 9}, {17, 19, 21}}, shared[1][3] = {{22, 26, 30}};
    int way;
    for (way = 0; way < 4; way++) {
        int items = way & 1, item, i, j;
        layer l = layer_plain(GEMMEPI_F64, 2, 4, 3, GEMMEPI_NONE, ALL_GRADIENTS);
        image m;
        layer_spread(&l, 2, items, 0);
        l.given[L_A] = a;
        l.given[L_DY] = dy;
        l.by_plan = way >> 1;
        CHECK(layer_execute(&l, &m, here, 1) == GEMMEPI_OK, "%s", gemmepi_last_error());
        for (item = 0; item <= items; item++)
            for (j = 0; j < 4; j++) {
                double sum = image_got(&m, L_DBIAS, item, 0, j);
                CHECK(sum == (items ? 2 : 4), "dbias of item %d is %g", item, sum);
                for (i = 0; i < 3; i++) {
                    double got = image_got(&m, L_DB, item, i, j);
                    CHECK(got == (items ? per_item : shared)[item][i], "db of item %d (%d, %d) is %g", item,
                          i, j, got);
                }
            }
        image_free(&m);
    }
}

/* >>activations and types */

static void check_activation(const types *t, gemmepi_epilogue activation, int recompute) {
    layer l =
        typed(t, 9, 10, 7, activation, ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS | p_flag(activation, recompute));
    l.by_plan = recompute;
    CHECK(backward_holds(here, &l), "%s", t->name);
}

static void check_activations(const types *t) {
    int i, gate, recompute;
    for (i = 0; i < ACTIVATION_COUNT; i++)
        for (gate = 0; gate < COUNT(gates); gate++)
            for (recompute = 0; recompute < 2; recompute++)
                check_activation(t, activation_codes[i] | gates[gate], recompute);
}

static void every_activation_and_gate_holds_in_f64(void) {
    check_activations(&f64);
}

static void every_activation_and_gate_holds_in_f32(void) {
    check_activations(&f32);
}

static void every_activation_and_gate_holds_in_bf16(void) {
    check_activations(&bf16);
}

static void every_activation_and_gate_holds_in_fp8(void) {
    check_activations(&e4m3_e5m2);
}

static void check_a_few_activations(const types *t) {
    static const gemmepi_epilogue few[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_GELU_TANH,
                                           GEMMEPI_SILU | GEMMEPI_GATED,
                                           GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST};
    int i, recompute;
    for (i = 0; i < COUNT(few); i++)
        for (recompute = 0; recompute < 2; recompute++)
            check_activation(t, few[i], recompute);
}

static void every_choice_of_types_holds(void) {
    for_all_types(check_a_few_activations);
}

static void a_parameter_other_than_the_default_holds(void) {
    static const gemmepi_epilogue two[] = {GEMMEPI_LEAKY_RELU, GEMMEPI_ELU};
    static const double some[] = {1.7, -0.3, 0};
    int i, gate, recompute, p;
    for (i = 0; i < 2; i++)
        for (gate = 0; gate < COUNT(gates); gate++)
            for (recompute = 0; recompute < 2; recompute++)
                for (p = 0; p < COUNT(some); p++) {
                    layer l = typed(&f32, 9, 10, 7, two[i] | gates[gate],
                                    ALL_GRADIENTS | p_flag(GEMMEPI_ELU, recompute));
                    l.desc.has_parameter = 1;
                    l.desc.activation_parameter = some[p];
                    CHECK(backward_holds(here, &l), "%s", activation_name(two[i]));
                    CHECK(forward_holds(here, &l), "%s", activation_name(two[i]));
                }
}

static void check_forward(const types *t) {
    static const gemmepi_epilogue few[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_GELU_ERF,
                                           GEMMEPI_SILU | GEMMEPI_GATED,
                                           GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST};
    int i, saved, bias;
    for (i = 0; i < COUNT(few); i++)
        for (saved = 0; saved < 2; saved++)
            for (bias = 0; bias < 2; bias++) {
                layer l = typed(t, 9, 10, 7, few[i],
                                p_flag(few[i], !saved) | (bias ? GEMMEPI_LINEAR_BIAS : 0) |
                                    (saved ? ALL_GRADIENTS : 0));
                l.by_plan = saved != bias;
                CHECK(forward_holds(here, &l), "%s", t->name);
            }
}

static void forward_holds_in_every_choice_of_types(void) {
    for_all_types(check_forward);
}

static void check_chain(const types *t) {
    static const gemmepi_epilogue few[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_MISH,
                                           GEMMEPI_GELU_ERF | GEMMEPI_GATED,
                                           GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST};
    int i, order;
    for (i = 0; i < COUNT(few); i++)
        for (order = 0; order < 2; order++) {
            layer l = typed(t, 10, 12, 7, few[i], ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS | p_flag(few[i], 0));
            l.bare = order;
            l.desc.order = (gemmepi_order)order;
            layer_pad(&l, 3);
            CHECK(both_hold(here, &l), "%s", t->name);
        }
}

static void what_forward_saves_feeds_backward(void) {
    for_all_types(check_chain);
}

static void check_whole_numbers(const types *t) {
    static const gemmepi_epilogue few[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_NONE | GEMMEPI_GATED,
                                           GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST};
    int i, recompute, accumulate;
    for (i = 0; i < COUNT(few); i++)
        for (recompute = 0; recompute < 2; recompute++)
            for (accumulate = 0; accumulate < 2; accumulate++) {
                layer l = typed(t, 17, 12, 19, few[i],
                                ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS | p_flag(few[i], recompute));
                l.values = WHOLE;
                if (accumulate)
                    l.desc.flags |= GEMMEPI_ACCUMULATE_DA | GEMMEPI_ACCUMULATE_DB | GEMMEPI_ACCUMULATE_DBIAS;
                CHECK(backward_holds(here, &l), "%s", t->name);
            }
}

static void small_whole_numbers_are_exact(void) {
    for_all_types(check_whole_numbers);
}

static void sums_without_cancellation_are_within_the_bound(void) {
    static const types *const some[] = {&f64, &f32, &bf16, &e4m3, other_types, other_types + 1};
    int i, recompute;
    for (i = 0; i < COUNT(some); i++)
        for (recompute = 0; recompute < 2; recompute++) {
            layer l = typed(some[i], 33, 30, 65, GEMMEPI_SIGMOID,
                            ALL_GRADIENTS | p_flag(GEMMEPI_SIGMOID, recompute));
            l.values = NO_SIGNS;
            CHECK(backward_holds(here, &l), "%s", some[i]->name);
        }
}

/* Rounded to bf16, each of these values of G is 2^-9 off, always upwards. */
static void dbias_sums_what_is_not_rounded(void) {
    double dy[64 * 8], a[64 * 4], b[4 * 8];
    int i;
    layer l =
        typed(&bf16, 64, 8, 4, GEMMEPI_LEAKY_RELU, GEMMEPI_LINEAR_DBIAS | p_flag(GEMMEPI_LEAKY_RELU, 1));
    image m;
    for (i = 0; i < 64 * 8; i++)
        dy[i] = 1;
    for (i = 0; i < 64 * 4; i++)
        a[i] = -1;
    for (i = 0; i < 4 * 8; i++)
        b[i] = 1;
    l.desc.has_parameter = 1;
    l.desc.activation_parameter = 1 + 3.0 / 512;
    l.desc.dbias.dtype = GEMMEPI_F32;
    l.given[L_DY] = dy;
    l.given[L_A] = a;
    l.given[L_B] = b;
    CHECK(layer_execute(&l, &m, here, 1) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < 8; i++)
        CHECK(fabs(image_got(&m, L_DBIAS, 0, 0, i) - 64.375) < 1e-4, "dbias[%d] is %.9g, not 64.375", i,
              image_got(&m, L_DBIAS, 0, 0, i));
    image_free(&m);
}

/* The sums of dy's two columns where RELU's mask, or P computed anew, lets them pass. */
static void check_selected(layer *l, double first, double second) {
    image m;
    CHECK(layer_execute(l, &m, here, 1) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(image_got(&m, L_DBIAS, 0, 0, 0) == first && image_got(&m, L_DBIAS, 0, 0, 1) == second,
          "dbias is %g %g, not %g %g", image_got(&m, L_DBIAS, 0, 0, 0), image_got(&m, L_DBIAS, 0, 0, 1),
          first, second);
    if (layer_uses(l, L_DA))
        CHECK(image_got(&m, L_DA, 0, 0, 0) == 2 && image_got(&m, L_DA, 0, 1, 0) == -2, "da is %g %g",
              image_got(&m, L_DA, 0, 0, 0), image_got(&m, L_DA, 0, 1, 0));
    image_free(&m);
}

static void relu_selects_so_that_infinity_times_zero_does_not_arise(void) {
    static const double a[] = {1, 1}, b[] = {-1, 2}, preact[] = {0, 1, 1, 0},
                        dy[] = {INFINITY, 1, 2, -INFINITY}, other_dy[] = {INFINITY, 3, -INFINITY, 4};
    layer l =
        typed(&f32, 2, 2, 1, GEMMEPI_RELU, GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DBIAS | GEMMEPI_LINEAR_SAVED);
    l.given[L_A] = a;
    l.given[L_B] = b;
    l.given[L_PREACT] = preact;
    l.given[L_DY] = dy;
    check_selected(&l, 2, 1);
    l.desc.flags = GEMMEPI_LINEAR_DBIAS | GEMMEPI_LINEAR_RECOMPUTE;
    l.given[L_DY] = other_dy;
    check_selected(&l, 0, 7);
}

/* >>outputs */

/* Gradient bits of a number below 8: DA, DB, DBIAS; likewise ACCUMULATE. */
static uint64_t gradients(int asked, int accumulated) {
    return (uint64_t)asked * GEMMEPI_LINEAR_DA | (uint64_t)accumulated * GEMMEPI_ACCUMULATE_DA;
}

static void check_outputs(const types *t, gemmepi_epilogue activation, int recompute) {
    int asked, accumulated, layout;
    for (asked = 1; asked < 8; asked++)
        for (accumulated = 0; accumulated < 8; accumulated++)
            for (layout = 0; layout < 4; layout++) {
                layer l = typed(t, 9, 10, 7, activation,
                                gradients(asked, accumulated) | p_flag(activation, recompute));
                if (accumulated & ~asked)
                    continue;
                l.desc.a.transposed = layout & 1;
                l.desc.b.transposed = layout >> 1;
                l.by_plan = accumulated != 0;
                l.bare = asked % 2;
                CHECK(backward_holds(here, &l), "%s asked for %d, accumulated %d", t->name, asked,
                      accumulated);
            }
}

static void each_subset_of_gradients_overwrites_or_accumulates(void) {
    static const types *const some[] = {&f64, &f32, &bf16, &e4m3_e5m2, other_types + 2};
    int i;
    for (i = 0; i < COUNT(some); i++) {
        check_outputs(some[i], GEMMEPI_NONE, 0);
        check_outputs(some[i], GEMMEPI_RELU, 0);
        check_outputs(some[i], GEMMEPI_SILU, 1);
        check_outputs(some[i], GEMMEPI_GELU_TANH | GEMMEPI_GATED, 0);
        check_outputs(some[i], GEMMEPI_SIGMOID | GEMMEPI_GATED | GEMMEPI_GATE_FIRST, 1);
    }
}

/* >>layouts */

static const gemmepi_epilogue a_few[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_TANH,
                                         GEMMEPI_SILU | GEMMEPI_GATED,
                                         GEMMEPI_GELU_ERF | GEMMEPI_GATED | GEMMEPI_GATE_FIRST};

static void shift_all(layer *l, int by) {
    int t;
    for (t = 0; t < L_SCALE_A; t++)
        l->shift[t] = by ? (by + 2 * t) % 16 + 1 : 0;
}

static void check_layouts(const types *t, gemmepi_epilogue activation, int recompute) {
    int layout;
    for (layout = 0; layout < 64; layout++) {
        layer l =
            typed(t, 14, 10, 7, activation,
                  gradients(7, layout & 32 ? 7 : 0) | GEMMEPI_LINEAR_BIAS | p_flag(activation, recompute));
        l.desc.order = (gemmepi_order)(layout & 1);
        l.desc.a.transposed = layout >> 1 & 1;
        l.desc.b.transposed = layout >> 2 & 1;
        if (layout & 8) { /* said, or left 0 */
            l.desc.da.transposed = l.desc.a.transposed;
            l.desc.db.transposed = l.desc.b.transposed;
        }
        layer_pad(&l, layout & 8 ? 5 : 0);
        shift_all(&l, layout & 16 ? 1 : 0);
        CHECK(backward_holds(here, &l), "%s", t->name);
        CHECK(layout % 3 || forward_holds(here, &l), "%s", t->name);
    }
}

static void layouts_and_alignments_hold(void) {
    static const types *const some[] = {&f64, &f32, &bf16, &e4m3_e5m2};
    int i, j;
    for (i = 0; i < COUNT(some); i++)
        for (j = 0; j < COUNT(a_few); j++) {
            check_layouts(some[i], a_few[j], 0);
            check_layouts(some[i], a_few[j], 1);
        }
}

/* What a multiple of 16 in every respect may take, and what an element more or less does to it. */
static void sizes_hold(void) {
    static const int64_t sizes[][3] = {{1, 2, 1},    {2, 2, 1},    {1, 2, 9},    {16, 16, 16},
                                       {15, 18, 17}, {64, 64, 64}, {65, 62, 33}, {128, 2, 64},
                                       {2, 130, 64}, {3, 4, 257},  {257, 6, 5},  {33, 72, 129}};
    static const types *const some[] = {&f64, &f32, other_types, &bf16, other_types + 1, &e4m3_e5m2};
    int i, j, s, order;
    for (i = 0; i < COUNT(some); i++)
        for (s = 0; s < COUNT(sizes); s++)
            for (j = 0; j < COUNT(a_few); j++)
                for (order = 0; order < 2; order++) {
                    int64_t m = sizes[s][order], n = sizes[s][!order];
                    int which[3];
                    layer l =
                        typed(some[i], m, n, sizes[s][2], a_few[j], ALL_GRADIENTS | p_flag(a_few[j], s % 2));
                    which[0] = i, which[1] = s, which[2] = j;
                    if (!here->is_host && !test_takes(test_key(which, 3)))
                        continue;
                    l.desc.order = (gemmepi_order)order;
                    CHECK(backward_holds(here, &l), "%s", some[i]->name);
                }
}

/* n counts one where nothing is split. */
static void a_single_row_or_column_holds(void) {
    static const int64_t sizes[][3] = {{1, 1, 1}, {1, 1, 40}, {40, 1, 1}, {1, 40, 1}, {1, 7, 9}, {7, 1, 9}};
    static const types *const some[] = {&f64, &f32, &bf16, &e4m3};
    int i, s, j, recompute;
    for (i = 0; i < COUNT(some); i++)
        for (s = 0; s < COUNT(sizes); s++)
            for (j = 0; j < 3; j++)
                for (recompute = 0; recompute < 2; recompute++) {
                    layer l = typed(some[i], sizes[s][0], sizes[s][1], sizes[s][2], a_few[j],
                                    ALL_GRADIENTS | p_flag(a_few[j], recompute));
                    CHECK(backward_holds(here, &l), "%s", some[i]->name);
                }
}

static void long_sums_are_within_the_bound(void) {
    static const types *const some[] = {&f32, other_types, &bf16, other_types + 2, &e4m3};
    static const int64_t sizes[][3] = {{5000, 6, 3}, {3, 5000, 6}, {3, 6, 5000}};
    int i, s, recompute;
    for (i = 0; i < COUNT(some); i++)
        for (s = 0; s < COUNT(sizes); s++)
            for (recompute = 0; recompute < 2; recompute++) {
                layer l = typed(some[i], sizes[s][0], sizes[s][1], sizes[s][2], GEMMEPI_SILU,
                                ALL_GRADIENTS | p_flag(GEMMEPI_SILU, recompute));
                CHECK(backward_holds(here, &l), "%s", some[i]->name);
            }
}

/* >>batches */

/* form: of the activations, A in row-major order: 0 adjacent, 1 with gaps, 2 rows of all items by turns, 3 transposed,
   4 transposed with gaps, 5 transposed with lines by turns, so that each goes on into the next item, 6 those with gaps, 7 the
   same for all items with a gradient of each, 8 that with the sum (the weight has items), 9 and 10 that of transposed ones.
   weight: 0 as the form says, 1 transposed, 2 and with lines by turns where it has items */
enum { FORMS = 11, WEIGHTS = 3 };

static int form_is_sum(int form) {
    return form == 8 || form == 10;
}

static void batch_form(layer *l, int form, int items, int weight) {
    int heavy = layer_weight(l), data = heavy == L_B ? L_A : L_B, gap = form == 1 || form == 4 ? 5 : 0;
    gemmepi_matrix *matrix = layer_matrix_at(l, data), *gradient = layer_matrix_at(l, layer_gradient(data));
    matrix->transposed = (form >= 3 && form <= 6) || form >= 9;
    layer_matrix_at(l, heavy)->transposed = weight > 0;
    layer_pad(l, gap ? 3 : 0);
    layer_spread(l, 3, items, gap);
    if (form == 2 || form == 5 || form == 6) {
        layer_interleave(l, data, form == 5 ? 0 : 2);
        layer_interleave(l, layer_gradient(data), form == 5 ? 0 : 1);
    }
    if (weight == 2 && items) {
        layer_interleave(l, heavy, gap);
        layer_interleave(l, layer_gradient(heavy), gap ? 1 : 0);
    }
    if (form >= 7)
        matrix->batch_stride = 0;
    if (form_is_sum(form))
        gradient->batch_stride = 0;
}

static void check_batches(const types *t, gemmepi_epilogue activation, int recompute, int accumulate) {
    int form, items, order, weight;
    for (form = 0; form < FORMS; form++)
        for (items = 0; items < 2; items++)
            for (order = 0; order < 2; order++)
                for (weight = 0; weight < (items ? WEIGHTS : 2); weight++) {
                    layer l = typed(t, 6, 8, 5, activation,
                                    ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS | p_flag(activation, recompute));
                    if (form_is_sum(form) && !items)
                        continue;
                    if (accumulate)
                        l.desc.flags |= gradients(7, 7);
                    l.desc.order = (gemmepi_order)order;
                    batch_form(&l, form, items, weight);
                    CHECK(backward_holds(here, &l), "%s form %d items %d", t->name, form, items);
                    CHECK(weight || forward_holds(here, &l), "%s form %d items %d", t->name, form, items);
                }
}

static void every_form_of_a_batch_holds(void) {
    static const types *const some[] = {&f64, &f32, &bf16, &e4m3_e5m2};
    int i, j, recompute;
    for (i = 0; i < COUNT(some); i++)
        for (j = 0; j < COUNT(a_few); j++)
            for (recompute = 0; recompute < 2; recompute++)
                check_batches(some[i], a_few[j], recompute, (i + j + recompute) % 2);
}

static void each_subset_of_gradients_of_a_batch_holds(void) {
    int j, asked, items, gap;
    for (j = 0; j < COUNT(a_few); j++)
        for (asked = 1; asked < 8; asked++)
            for (items = 0; items < 2; items++)
                for (gap = 0; gap < 4; gap += 3) {
                    layer l = typed(j % 2 ? &bf16 : &f64, 6, 8, 5, a_few[j],
                                    gradients(asked, gap ? asked : 0) | p_flag(a_few[j], gap));
                    l.desc.a.transposed = l.desc.b.transposed = (asked + j) % 2;
                    layer_pad(&l, gap);
                    layer_spread(&l, 3, items, gap);
                    CHECK(backward_holds(here, &l), "asked for %d, items %d", asked, items);
                }
}

static void one_dy_for_all_items_holds(void) {
    int j, items, order;
    for (j = 0; j < COUNT(a_few); j++)
        for (items = 0; items < 2; items++)
            for (order = 0; order < 2; order++) {
                layer l = typed(&f32, 6, 8, 5, a_few[j], ALL_GRADIENTS | p_flag(a_few[j], j % 2));
                l.desc.order = (gemmepi_order)order;
                layer_spread(&l, 3, items, 0);
                l.desc.dy.batch_stride = 0;
                CHECK(backward_holds(here, &l), "%s", activation_name(a_few[j]));
                l.desc.flags = gradients(7, 7) | p_flag(a_few[j], 1 - j % 2);
                CHECK(backward_holds(here, &l), "%s", activation_name(a_few[j]));
            }
}

/* A and dY are the same for all items. */
static void nothing_but_the_weight_has_items_holds(void) {
    int j, sum;
    for (j = 0; j < COUNT(a_few); j++)
        for (sum = 0; sum < 2; sum++) {
            layer l = typed(&f32, 6, 8, 5, a_few[j], ALL_GRADIENTS | p_flag(a_few[j], 0));
            layer_spread(&l, 3, 1, 0);
            l.desc.dy.batch_stride = l.desc.a.batch_stride = 0;
            if (sum)
                l.desc.da.batch_stride = 0;
            CHECK(backward_holds(here, &l), "%s", activation_name(a_few[j]));
        }
}

static void one_bias_for_all_items_has_the_sum_as_its_gradient(void) {
    int j, recompute, order;
    for (j = 0; j < COUNT(a_few); j++)
        for (recompute = 0; recompute < 2; recompute++)
            for (order = 0; order < 2; order++) {
                layer l = typed(recompute ? &bf16 : &f32, 6, 8, 5, a_few[j],
                                ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS | p_flag(a_few[j], recompute));
                l.desc.order = (gemmepi_order)order;
                layer_spread(&l, 3, 1, 2);
                l.desc.bias.batch_stride = l.desc.dbias.batch_stride = 0;
                CHECK(backward_holds(here, &l), "%s", activation_name(a_few[j]));
                l.desc.flags |= gradients(0, 7);
                CHECK(backward_holds(here, &l), "%s", activation_name(a_few[j]));
            }
}

static void batches_are_exact_in_whole_numbers(void) {
    int form, items, recompute, weight;
    for (form = 0; form < FORMS; form++)
        for (items = form_is_sum(form); items < 2; items++)
            for (recompute = 0; recompute < 2; recompute++)
                for (weight = 0; weight < WEIGHTS; weight++) {
                    layer l = typed(&bf16, 33, 24, 17, GEMMEPI_RELU,
                                    gradients(7, weight == 1 ? 7 : 0) | GEMMEPI_LINEAR_BIAS |
                                        p_flag(GEMMEPI_RELU, recompute));
                    l.values = WHOLE;
                    batch_form(&l, form, items, weight);
                    CHECK(backward_holds(here, &l), "form %d items %d", form, items);
                }
}

/* >>nothing to sum */

static void check_empty(const types *t, int64_t m, int64_t n, int64_t k, int64_t batch) {
    int j, recompute, accumulate, items, order;
    for (j = 0; j < COUNT(a_few); j++)
        for (recompute = 0; recompute < 2; recompute++)
            for (accumulate = 0; accumulate < 2; accumulate++)
                for (items = 0; items < 2; items++)
                    for (order = 0; order < 2; order++) {
                        layer l = typed(t, m, n, k, a_few[j],
                                        ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS | p_flag(a_few[j], recompute));
                        l.desc.order = (gemmepi_order)order;
                        layer_pad(&l, 8); /* no stride of an item is 0 */
                        layer_spread(&l, batch, items, 8);
                        if (accumulate)
                            l.desc.flags |= gradients(7, 7);
                        l.by_plan = items;
                        l.bare = 1 + order;
                        CHECK(backward_holds(here, &l), "m %d n %d k %d batch %d", (int)m, (int)n, (int)k,
                              (int)batch);
                        CHECK(forward_holds(here, &l), "m %d n %d k %d batch %d", (int)m, (int)n, (int)k,
                              (int)batch);
                    }
}

/* There is no scale of what is not there. */
static void check_empty_of_scaled(int64_t m, int64_t n, int64_t k, int64_t batch) {
    int mode, order, items;
    for (mode = 1; mode <= (int)GEMMEPI_SCALE_BLOCK_128; mode++)
        for (order = 0; order < 2; order++)
            for (items = 0; items < 2; items++) {
                layer l = typed(&e4m3_e5m2, m, n, k, GEMMEPI_SILU,
                                ALL_GRADIENTS | p_flag(GEMMEPI_SILU, items != order));
                l.desc.order = (gemmepi_order)order;
                layer_pad(&l, 8);
                layer_spread(&l, batch, items, 8);
                layer_scale(&l, L_A, (gemmepi_scale_mode)mode, -1);
                layer_scale(&l, L_B, (gemmepi_scale_mode)(5 - mode), -1);
                CHECK(backward_holds(here, &l), "m %d n %d k %d batch %d", (int)m, (int)n, (int)k,
                      (int)batch);
                CHECK(forward_holds(here, &l), "m %d n %d k %d batch %d", (int)m, (int)n, (int)k, (int)batch);
            }
}

static void sums_over_nothing_are_zero_with_scales_too(void) {
    check_empty_of_scaled(0, 4, 5, 1);
    check_empty_of_scaled(4, 0, 5, 1);
    check_empty_of_scaled(4, 6, 0, 1);
    check_empty_of_scaled(0, 4, 5, 0);
}

static int layer_has_elements(const layer *l, int t, int backward) {
    region r = layer_region(l, t);
    return layer_uses(l, t) && layer_needs(l, t, backward) && region_bytes(&r) > 0;
}

/* Every pointer is NULL: that is right where no tensor of the direction has an element, else refused. */
static void check_nothing_given(const layer *l, int backward) {
    gemmepi_linear_args none;
    gemmepi_status status;
    int t, needs = 0;
    memset(&none, 0, sizeof none);
    for (t = 0; t < L_SCALE_A; t++)
        needs += layer_has_elements(l, t, backward);
    status = backward ? gemmepi_linear_backward(here->context, &l->desc, &none, here->stream)
                      : gemmepi_linear(here->context, &l->desc, &none, here->stream);
    CHECK(status == (needs ? GEMMEPI_INVALID_ARGUMENT : GEMMEPI_OK), "%s (%s): %s, %s",
          gemmepi_status_name(status), status ? gemmepi_last_error() : "", backward ? "backward" : "forward",
          layer_text(l).text);
    CHECK(gemmepi_synchronize(here->context, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    if (status != GEMMEPI_INVALID_ARGUMENT)
        return;
    for (t = 0; t < L_SCALE_A; t++) {
        char name[32];
        snprintf(name, sizeof name, "args.%s is NULL", layer_names[t]);
        if (strstr(gemmepi_last_error(), name) != NULL)
            CHECK(layer_has_elements(l, t, backward), "'%s': %s", gemmepi_last_error(), layer_text(l).text);
    }
}

/* Outputs, ACCUMULATE, BIAS, SAVED or RECOMPUTE, in either order, layouts by turns. */
static void check_every_flag_of_nothing(int64_t m, int64_t n, int64_t k, int64_t batch,
                                        gemmepi_epilogue activation) {
    int turn;
    for (turn = 0; turn < 8 * 8 * 2 * 2 * 2; turn++) {
        int asked = turn & 7, accumulated = turn >> 3 & 7, bias = turn >> 6 & 1, order = turn >> 8;
        layer l = typed(turn % 3 ? &f32 : &bf16, m, n, k, activation,
                        gradients(asked, accumulated) | (bias ? GEMMEPI_LINEAR_BIAS : 0) |
                            p_flag(activation, turn >> 7 & 1));
        if (!asked || accumulated & ~asked)
            continue;
        l.desc.order = (gemmepi_order)order;
        l.desc.a.transposed = turn % 5 & 1;
        l.desc.b.transposed = turn % 5 >> 1 & 1;
        layer_pad(&l, 3); /* no stride of an item is 0 */
        if (batch > 1)
            layer_spread(&l, batch, turn % 7 & 1, 8);
        l.desc.batch = batch;
        l.bare = 2;
        check_nothing_given(&l, 0);
        check_nothing_given(&l, 1);
        CHECK(backward_holds(here, &l), "m %d n %d k %d batch %d", (int)m, (int)n, (int)k, (int)batch);
        CHECK(forward_holds(here, &l), "m %d n %d k %d batch %d", (int)m, (int)n, (int)k, (int)batch);
    }
}

static void empty_layers_are_right_with_every_flag_and_every_pointer_null(void) {
    static const gemmepi_epilogue two[] = {GEMMEPI_NONE, GEMMEPI_SILU};
    int sizes, batch, i;
    for (sizes = 0; sizes < 7; sizes++) /* at least one of the three is 0 */
        for (batch = 0; batch < 3; batch++)
            for (i = 0; i < COUNT(two); i++)
                check_every_flag_of_nothing(sizes & 1 ? 4 : 0, sizes & 2 ? 6 : 0, sizes & 4 ? 5 : 0, batch,
                                            two[i]);
}

static void a_batch_of_0_is_one_of_1(void) {
    int j, order, layout, backward;
    for (j = 0; j < COUNT(a_few); j++)
        for (order = 0; order < 2; order++)
            for (layout = 0; layout < 4; layout++)
                for (backward = 0; backward < 2; backward++) {
                    layer l = typed(layout ? &f32 : &bf16, 6, 8, 5, a_few[j],
                                    gradients(7, layout & 1 ? 7 : 0) | GEMMEPI_LINEAR_BIAS |
                                        p_flag(a_few[j], order));
                    image zero, one;
                    l.desc.order = (gemmepi_order)order;
                    l.desc.a.transposed = layout & 1;
                    l.desc.b.transposed = layout >> 1;
                    l.by_plan = layout & 1;
                    l.desc.batch = 0;
                    if (!here->is_host && !test_takes(layer_key(&l)))
                        continue;
                    CHECK(direction_holds(here, &l, backward), "layout %d", layout);
                    CHECK(layer_execute(&l, &zero, here, backward) == GEMMEPI_OK, "%s", gemmepi_last_error());
                    l.desc.batch = 1;
                    CHECK(layer_execute(&l, &one, here, backward) == GEMMEPI_OK, "%s", gemmepi_last_error());
                    CHECK(zero.size == one.size && memcmp(zero.after, one.after, one.size) == 0,
                          "layout %d: other bits", layout);
                    image_free(&zero);
                    image_free(&one);
                }
}

/* A weight as nn.Linear keeps it, [n, k]: its gradient is the transpose of that of one of [k, n], to the bit where sums are
   exact. */
static void a_gradient_lies_as_its_operand_is_stored(void) {
    static const double a[] = {1, 2, -1, 3, -2, 4}, b[] = {5, -3, 1, 7, -2, 4},
                        turned[] = {5, 1, -2, -3, 7, 4}, dy[] = {1, 2, 3, -4},
                        db[3][2] = {{10, -10}, {-4, 12}, {11, -18}};
    int transposed, order, way, i, j;
    for (transposed = 0; transposed < 2; transposed++)
        for (order = 0; order < 2; order++)
            for (way = 0; way < 4; way++) {
                layer l = layer_plain(GEMMEPI_F32, 2, 2, 3, GEMMEPI_NONE,
                                      GEMMEPI_LINEAR_DB | (way & 1 ? GEMMEPI_ACCUMULATE_DB : 0));
                const float *stored;
                image m;
                l.desc.order = (gemmepi_order)order;
                l.desc.b.transposed = transposed;
                l.desc.db.transposed = way & 2 ? transposed : 0;
                l.given[L_A] = a;
                l.given[L_B] = b;
                l.given[L_DY] = dy;
                l.given[L_DB] = turned;
                CHECK(layer_execute(&l, &m, here, 1) == GEMMEPI_OK, "%s", gemmepi_last_error());
                stored = (const float *)(const void *)(m.after + m.data[L_DB]);
                for (i = 0; i < 3; i++)
                    for (j = 0; j < 2; j++) {
                        int by_rows = transposed == order;
                        float got = stored[by_rows ? 2 * i + j : 3 * j + i];
                        double want = db[i][j] + (way & 1 ? turned[2 * i + j] : 0);
                        CHECK((double)got == want, "transposed %d order %d: db(%d, %d) is %g, not %g",
                              transposed, order, i, j, (double)got, want);
                    }
                image_free(&m);
            }
}

static void sums_over_nothing_are_zero(void) {
    static const types *const some[] = {&f32, &bf16, &f64};
    int i;
    for (i = 0; i < COUNT(some); i++) {
        check_empty(some[i], 0, 4, 5, 1);
        check_empty(some[i], 4, 0, 5, 1);
        check_empty(some[i], 4, 6, 0, 1);
        check_empty(some[i], 0, 6, 5, 0);
        check_empty(some[i], 0, 4, 5, 2);
        check_empty(some[i], 4, 0, 5, 2);
        check_empty(some[i], 4, 6, 0, 2);
        check_empty(some[i], 0, 0, 5, 1);
        check_empty(some[i], 0, 0, 0, 0);
    }
}

/* >>scales */

static void check_scales(const types *t, gemmepi_epilogue activation, int recompute, gemmepi_scale_mode of_a,
                         gemmepi_scale_mode of_b, int64_t batch, int whole) {
    layer l = typed(t, 140, 132, 150, activation, ALL_GRADIENTS | p_flag(activation, recompute));
    if (batch > 1) {
        l.desc.m = 12;
        l.desc.n = 14;
        l.desc.k = 130;
    }
    if (whole) {
        l.values = WHOLE;
        l.desc.k = recompute ? 20 : l.desc.k;
    }
    layer_spread(&l, batch, batch > 1, 0);
    if (oracle_is_fp8(layer_dtype(&l, L_A)))
        layer_scale(&l, L_A, of_a, batch > 1 ? 0 : -1);
    if (oracle_is_fp8(layer_dtype(&l, L_B)))
        layer_scale(&l, L_B, of_b, batch > 1 ? 0 : -1);
    CHECK(backward_holds(here, &l), "%s a %d b %d batch %d", t->name, (int)of_a, (int)of_b, (int)batch);
}

static void every_pair_of_scale_modes_holds(void) {
    int a, b;
    for (a = 0; a <= (int)GEMMEPI_SCALE_BLOCK_128; a++)
        for (b = 0; b <= (int)GEMMEPI_SCALE_BLOCK_128; b++) {
            gemmepi_scale_mode of_a = (gemmepi_scale_mode)a, of_b = (gemmepi_scale_mode)b;
            check_scales(&e4m3, GEMMEPI_NONE, 0, of_a, of_b, 1, 0);
            check_scales(&e4m3_e5m2, GEMMEPI_SILU, 1, of_a, of_b, 1, 0);
            check_scales(&e4m3_e5m2, GEMMEPI_GELU_TANH | GEMMEPI_GATED, 0, of_a, of_b, 1, 0);
            check_scales(&e4m3, GEMMEPI_RELU, 0, of_a, of_b, 1, 1);
            check_scales(&e4m3_e5m2, GEMMEPI_SILU, a % 2, of_a, of_b, 2, 0);
        }
}

/* Scales of one mode, one after the other or gap numbers apart or the same for all items, in a batch of which the weight
   has items or not. Those that a gradient's sum would have to step over may be refused; one number for a
   matrix may not, nor one for each row or column that goes on from item to item. */
static void check_scales_of_items(gemmepi_scale_mode mode, int items, int64_t gap, int64_t m) {
    int order, recompute;
    for (order = 0; order < 2; order++)
        for (recompute = 0; recompute < 2; recompute++) {
            layer l = typed(&e4m3_e5m2, order ? 14 : m, order ? m : 14, 130, GEMMEPI_SILU,
                            ALL_GRADIENTS | p_flag(GEMMEPI_SILU, recompute));
            int weight = order ? L_A : L_B;
            l.desc.order = (gemmepi_order)order;
            layer_spread(&l, 3, items, 0);
            layer_scale(&l, order ? L_B : L_A, mode, gap);
            layer_scale(&l, weight, mode, items ? gap : -1);
            l.may_be_unsupported = mode > GEMMEPI_SCALE_OUTER || (mode == GEMMEPI_SCALE_OUTER && gap != 0);
            CHECK(backward_holds(here, &l), "mode %d items %d gap %d m %d", (int)mode, items, (int)gap,
                  (int)m);
            CHECK(forward_holds(here, &l), "mode %d items %d gap %d m %d", (int)mode, items, (int)gap,
                  (int)m);
        }
}

static void scales_of_items_hold_or_are_refused_by_name(void) {
    int mode, items, gap;
    for (mode = 1; mode <= (int)GEMMEPI_SCALE_BLOCK_128; mode++)
        for (items = 0; items < 2; items++)
            for (gap = -1; gap < 6; gap += gap < 0 ? 1 : 5) {
                check_scales_of_items((gemmepi_scale_mode)mode, items, gap, 12);
                check_scales_of_items((gemmepi_scale_mode)mode, items, gap, 128);
            }
}

static void one_scaled_operand_beside_one_that_is_not_holds(void) {
    static const types *mixed = &other_types[COUNT(other_types) - 1];
    int mode, recompute;
    for (mode = 0; mode <= (int)GEMMEPI_SCALE_BLOCK_128; mode++)
        for (recompute = 0; recompute < 2; recompute++)
            check_scales(mixed, GEMMEPI_TANH, recompute, (gemmepi_scale_mode)mode, GEMMEPI_SCALE_NONE, 1, 0);
}

static void scales_hold_in_other_layouts(void) {
    int layout, mode;
    for (layout = 0; layout < 8; layout++)
        for (mode = 1; mode <= (int)GEMMEPI_SCALE_BLOCK_128; mode++) {
            layer l = typed(&e4m3_e5m2, 140, 134, 136, GEMMEPI_SILU,
                            ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS | p_flag(GEMMEPI_SILU, layout >> 2));
            l.desc.order = (gemmepi_order)(layout >> 1 & 1);
            l.desc.a.transposed = l.desc.b.transposed = layout & 1;
            layer_pad(&l, layout & 1 ? 3 : 0);
            layer_scale(&l, L_A, (gemmepi_scale_mode)mode, -1);
            layer_scale(&l, L_B, (gemmepi_scale_mode)(5 - mode), -1);
            CHECK(backward_holds(here, &l), "layout %d", layout);
        }
}

static void y_preact_and_dy_have_scales(void) {
    static const gemmepi_dtype fp8[] = {GEMMEPI_E4M3, GEMMEPI_E5M2};
    int i, j, items;
    for (i = 0; i < 2; i++)
        for (j = 0; j < COUNT(a_few); j++)
            for (items = 0; items < 2; items++) {
                layer l = typed(&bf16, 14, 12, 9, a_few[j],
                                ALL_GRADIENTS | p_flag(a_few[j], a_few[j] == GEMMEPI_RELU));
                l.desc.y.dtype = l.desc.dy.dtype = fp8[i];
                l.desc.preact.dtype = layer_uses(&l, L_PREACT) ? fp8[!i] : GEMMEPI_DTYPE_DEFAULT;
                l.desc.dbias.dtype = GEMMEPI_F32;
                layer_spread(&l, 2, items, 3);
                layer_scale(&l, L_DY, GEMMEPI_SCALE_TENSOR, items ? 3 : -1);
                layer_scale(&l, L_Y, GEMMEPI_SCALE_TENSOR, items ? 1 : -1);
                if (layer_uses(&l, L_PREACT))
                    layer_scale(&l, L_PREACT, GEMMEPI_SCALE_TENSOR, items ? 0 : -1);
                CHECK(backward_holds(here, &l), "%s", activation_name(a_few[j]));
                CHECK(forward_holds(here, &l), "%s", activation_name(a_few[j]));
            }
}

/* RELAXED is for every layer, FAST_ACCUMULATION for operands of 8 bits. */
static void fast_accumulation_and_relaxed_hold(void) {
    static const types *const some[] = {&e4m3, &e4m3_e5m2, &bf16, &f32};
    int i, recompute;
    for (i = 0; i < COUNT(some); i++)
        for (recompute = 0; recompute < 2; recompute++) {
            layer l = typed(some[i], 64, 48, 160, GEMMEPI_SILU,
                            ALL_GRADIENTS | GEMMEPI_RELAXED | p_flag(GEMMEPI_SILU, recompute));
            if (i < 2)
                l.desc.flags |= GEMMEPI_FAST_ACCUMULATION;
            CHECK(backward_holds(here, &l), "%s", some[i]->name);
            CHECK(i >= 2 || forward_holds(here, &l), "%s", some[i]->name);
        }
}

/* Whatever its products take then. */
static void batch_invariant_layers_hold(void) {
    static const types *const some[] = {&e4m3, &bf16, &f32};
    int i, recompute;
    for (i = 0; i < COUNT(some); i++)
        for (recompute = 0; recompute < 2; recompute++) {
            layer l = typed(some[i], 70, 48, 160, GEMMEPI_SILU,
                            ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS | GEMMEPI_BATCH_INVARIANT |
                                p_flag(GEMMEPI_SILU, recompute));
            CHECK(backward_holds(here, &l), "%s", some[i]->name);
            CHECK(forward_holds(here, &l), "%s", some[i]->name);
        }
}

/* >>the same bits */

static void check_same_bits(const types *t, gemmepi_epilogue activation, int recompute) {
    layer l =
        typed(t, 70, 66, 50, activation, ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS | p_flag(activation, recompute));
    image first, again;
    int way, backward;
    if (!test_takes(layer_key(&l)))
        return;
    for (backward = 0; backward < 2; backward++) {
        l.by_plan = l.own_workspace = 0;
        CHECK(layer_execute(&l, &first, here, backward) == GEMMEPI_OK, "%s", gemmepi_last_error());
        for (way = 0; way < 3; way++) {
            l.by_plan = way > 0;
            l.own_workspace = way > 1;
            CHECK(layer_execute(&l, &again, here, backward) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(first.size == again.size && memcmp(first.after, again.after, first.size) == 0,
                  "%s %s: %s gives other bits", t->name, activation_name(activation),
                  way == 0   ? "a second run"
                  : way == 1 ? "a plan"
                             : "a plan with the caller's workspace");
            image_free(&again);
        }
        image_free(&first);
    }
}

static void check_same_bits_of_a_few(const types *t) {
    int j;
    for (j = 0; j < COUNT(a_few); j++) {
        check_same_bits(t, a_few[j], 0);
        check_same_bits(t, a_few[j], 1);
    }
}

static void repeated_runs_plans_and_one_shots_give_the_same_bits(void) {
    for_all_types(check_same_bits_of_a_few);
}

/* >>plans */

/* Of a share on a GPU, where each plan has kernels to compile, those without an activation stand for all. */
static int is_spared(gemmepi_epilogue activation) {
    return !here->is_host && test_share() > 1 && activation != GEMMEPI_NONE;
}

static void check_workspace(const types *t, gemmepi_epilogue activation, int recompute, int64_t batch) {
    layer l = typed(t, 20, 18, 22, activation, ALL_GRADIENTS | p_flag(activation, recompute));
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    gemmepi_linear_args args;
    image m;
    layer_spread(&l, batch, 0, batch > 1 ? 7 : 0);
    l.by_plan = l.own_workspace = 1;
    CHECK(backward_holds(here, &l), "%s", t->name);
    layer_place(&l, &m);
    layer_fill(&l, &m, 1);
    CHECK(image_upload(&m, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(layer_plan(&l, here, 1, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    args = layer_args(&l, &m, here, 1);
    if (plan != NULL && details.workspace_size > 0) {
        CHECK(
            test_device_reserve(here, &here->workspace, &here->workspace_size, details.workspace_size + 256),
            "%s", gemmepi_last_error());
        args.workspace = here->workspace;
        args.workspace_size = details.workspace_size - 1;
        CHECK(layer_plan_run(plan, &args, here, 1) == GEMMEPI_BUFFER_TOO_SMALL,
              "%s: a workspace one byte too small is taken", t->name);
        CHECK(strstr(gemmepi_last_error(), "workspace") != NULL, "%s", gemmepi_last_error());
        args.workspace = (char *)here->workspace + 64;
        args.workspace_size = details.workspace_size;
        CHECK(layer_plan_run(plan, &args, here, 1) == GEMMEPI_MISALIGNED,
              "%s: a misaligned workspace is taken", t->name);
        CHECK(strstr(gemmepi_last_error(), "workspace") != NULL, "%s", gemmepi_last_error());
    }
    CHECK(image_download(&m, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(memcmp(m.before, m.after, m.size) == 0, "%s: a refused run wrote", t->name);
    gemmepi_plan_destroy(plan);
    image_free(&m);
}

static void the_workspace_may_be_the_callers_and_exactly_as_large(void) {
    static const types *const some[] = {&f64, &f32, &bf16, other_types + 3, &e4m3_e5m2};
    int i, j;
    for (i = 0; i < COUNT(some); i++)
        for (j = 0; j < COUNT(a_few); j++) {
            if (is_spared(a_few[j]))
                continue;
            check_workspace(some[i], a_few[j], 0, 1);
            check_workspace(some[i], a_few[j], 1, 3);
        }
}

static void check_details(const types *t) {
    int j, backward;
    for (j = 0; j < COUNT(a_few); j++)
        for (backward = 0; backward < 2; backward++) {
            layer l = typed(t, 20, 18, 22, a_few[j], ALL_GRADIENTS | p_flag(a_few[j], 0));
            gemmepi_plan *plan = NULL;
            gemmepi_plan_details d;
            char text[4000] = "", part[20];
            size_t length;
            if (is_spared(a_few[j]))
                continue;
            CHECK(layer_plan(&l, here, backward, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
            if (plan == NULL)
                continue;
            CHECK(gemmepi_plan_info(plan, &d) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(d.kind == (backward ? GEMMEPI_PLAN_LINEAR_BACKWARD : GEMMEPI_PLAN_LINEAR), "kind %d",
                  (int)d.kind);
            CHECK(here->is_host ? d.route == GEMMEPI_ROUTE_HOST
                  : backward    ? d.route == GEMMEPI_ROUTE_LINEAR
                                : d.route != GEMMEPI_ROUTE_LINEAR,
                  "%s: route %d", t->name, (int)d.route);
            CHECK(d.route_name != NULL && d.route_name[0] != 0, "no name of route %d", (int)d.route);
            CHECK(here->is_host || d.launches > 0, "%d launches", d.launches);
            CHECK(d.compute != GEMMEPI_COMPUTE_DEFAULT, "compute is DEFAULT");
            CHECK(d.accumulator == layer_accumulator(&l) || (here->is_host && d.accumulator == GEMMEPI_F64),
                  "accumulator %d", (int)d.accumulator);
            CHECK(d.deterministic == 1, "not deterministic");
            length = gemmepi_plan_explain(plan, text, sizeof text);
            CHECK(length > 0 && (length >= sizeof text || strlen(text) == length), "%d bytes of text",
                  (int)length);
            CHECK(gemmepi_plan_explain(plan, NULL, 0) == length, "another length without a buffer");
            memset(part, 'x', sizeof part);
            CHECK(gemmepi_plan_explain(plan, part, 10) == length && memcmp(part, text, 9) == 0 &&
                      part[9] == 0 && part[10] == 'x',
                  "a short buffer has the beginning");
            gemmepi_plan_destroy(plan);
        }
}

static void a_plan_says_what_it_is(void) {
    for_all_types(check_details);
}

/* One plan run on two sets of values, and the same struct of arguments for both directions. */
static void a_plan_runs_again_and_again(void) {
    layer l = typed(&f32, 12, 14, 9, GEMMEPI_SILU, ALL_GRADIENTS | p_flag(GEMMEPI_SILU, 1));
    gemmepi_plan *plan = NULL;
    uint64_t seed;
    CHECK(layer_plan(&l, here, 1, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(plan, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (seed = 1; seed < 4 && plan != NULL; seed++) {
        image m;
        gemmepi_linear_args args;
        l.seed = seed;
        layer_place(&l, &m);
        layer_fill(&l, &m, 1);
        CHECK(image_upload(&m, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
        args = layer_args(&l, &m, here, 1);
        CHECK(layer_plan_run(plan, &args, here, 1) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(image_download(&m, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(image_holds(here, &l, &m, 1), "run %d", (int)seed);
        image_free(&m);
    }
    gemmepi_plan_destroy(plan);
}

/* >>central differences */

enum { DM = 4, DN = 6, DK = 3 };

static double difference_values[3][DK * DN + DM * DK]; /* of a, b, bias */
static double difference_r[DM * DN];

/* sum(Y * R) */
static double loss(layer *l) {
    image m;
    double sum = 0;
    int64_t i, j;
    uint64_t kept = l->desc.flags;
    l->desc.flags = GEMMEPI_LINEAR_BIAS;
    CHECK(layer_execute(l, &m, here, 0) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < m.r[L_Y].rows; i++)
        for (j = 0; j < m.r[L_Y].columns; j++)
            sum += image_got(&m, L_Y, 0, i, j) * difference_r[i * m.r[L_Y].columns + j];
    image_free(&m);
    l->desc.flags = kept;
    return sum;
}

/* Whether some P is so near a kink that a difference would step over it. */
static int is_near_a_kink(const layer *l) {
    layer none = *l;
    image m;
    int64_t i, j;
    int near = 0;
    none.desc.activation = GEMMEPI_NONE;
    none.desc.flags = GEMMEPI_LINEAR_BIAS;
    CHECK(layer_execute(&none, &m, here, 0) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < DM; i++)
        for (j = 0; j < DN; j++) {
            double p = fabs(image_got(&m, L_Y, 0, i, j));
            near = near || p < 0.01 || fabs(p - 3) < 0.01;
        }
    image_free(&m);
    return near;
}

static void draw_difference_values(uint64_t seed) {
    rng r = rng_seeded(seed);
    int i, which;
    for (which = 0; which < 3; which++)
        for (i = 0; i < DK * DN + DM * DK; i++)
            difference_values[which][i] = random_normal(rng_next(&r)) * (which ? 1 : 2);
    for (i = 0; i < DM * DN; i++)
        difference_r[i] = random_normal(rng_next(&r));
}

static void check_differences_of(layer *l, const image *m, int t, int of) {
    int64_t columns = m->r[t].columns, count = m->r[t].rows * columns, i;
    double *values = difference_values[of];
    const double h = 1e-5;
    for (i = 0; i < count; i++) {
        double kept = values[i], got = image_got(m, t, 0, i / columns, i % columns), want;
        values[i] = kept + h;
        want = loss(l);
        values[i] = kept - h;
        want = (want - loss(l)) / (2 * h);
        values[i] = kept;
        CHECK(fabs(got - want) <= 1e-7 * (1 + fabs(want)), "%s[%d] is %.12g, the difference %.12g: %s",
              layer_names[t], (int)i, got, want, layer_text(l).text);
    }
}

/* Forward, then backward from what it saved; then each number a little up and down. */
static void check_differences(gemmepi_epilogue activation, gemmepi_order order, int recompute) {
    layer l = layer_plain(GEMMEPI_F64, DM, DN, DK, activation,
                          ALL_GRADIENTS | GEMMEPI_LINEAR_BIAS | p_flag(activation, recompute));
    uint64_t seed = 1;
    image m;
    l.desc.order = order;
    l.given[L_A] = difference_values[0];
    l.given[L_B] = difference_values[1];
    l.given[L_BIAS] = difference_values[2];
    l.given[L_DY] = difference_r;
    do
        draw_difference_values(seed++);
    while (is_near_a_kink(&l) && seed < 100);
    CHECK(layer_execute(&l, &m, here, 0) == GEMMEPI_OK, "%s", gemmepi_last_error());
    memcpy(m.before, m.after, m.size);
    layer_fill_tensor(&l, &m, L_DY);
    CHECK(image_upload(&m, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(layer_run(&l, &m, here, 1) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(image_download(&m, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
    check_differences_of(&l, &m, L_DA, 0);
    check_differences_of(&l, &m, L_DB, 1);
    check_differences_of(&l, &m, L_DBIAS, 2);
    image_free(&m);
}

static void gradients_equal_central_differences(void) {
    int i, gate, recompute;
    for (i = 0; i < ACTIVATION_COUNT; i++)
        for (gate = 0; gate < COUNT(gates); gate++)
            for (recompute = 0; recompute < 2; recompute++) {
                int what[3];
                what[0] = i, what[1] = gate, what[2] = recompute;
                if (!test_takes(test_key(what, 3)))
                    continue;
                check_differences(activation_codes[i] | gates[gate], (gemmepi_order)((i + recompute) % 2),
                                  recompute);
            }
}

static void run_all(void) {
    RUN(worked_forward_cases_come_out);
    RUN(worked_backward_cases_come_out);
    RUN(worked_batched_gradients_come_out);
    RUN(gradients_equal_central_differences);
    RUN(every_activation_and_gate_holds_in_f64);
    RUN(every_activation_and_gate_holds_in_f32);
    RUN(every_activation_and_gate_holds_in_bf16);
    RUN(every_activation_and_gate_holds_in_fp8);
    RUN(every_choice_of_types_holds);
    RUN(a_parameter_other_than_the_default_holds);
    RUN(forward_holds_in_every_choice_of_types);
    RUN(what_forward_saves_feeds_backward);
    RUN(small_whole_numbers_are_exact);
    RUN(sums_without_cancellation_are_within_the_bound);
    RUN(dbias_sums_what_is_not_rounded);
    RUN(relu_selects_so_that_infinity_times_zero_does_not_arise);
    RUN(each_subset_of_gradients_overwrites_or_accumulates);
    RUN(layouts_and_alignments_hold);
    RUN(sizes_hold);
    RUN(a_single_row_or_column_holds);
    RUN(long_sums_are_within_the_bound);
    RUN(every_form_of_a_batch_holds);
    RUN(each_subset_of_gradients_of_a_batch_holds);
    RUN(one_dy_for_all_items_holds);
    RUN(nothing_but_the_weight_has_items_holds);
    RUN(one_bias_for_all_items_has_the_sum_as_its_gradient);
    RUN(batches_are_exact_in_whole_numbers);
    RUN(sums_over_nothing_are_zero);
    RUN(empty_layers_are_right_with_every_flag_and_every_pointer_null);
    RUN(a_batch_of_0_is_one_of_1);
    RUN(a_gradient_lies_as_its_operand_is_stored);
    RUN(sums_over_nothing_are_zero_with_scales_too);
    RUN(every_pair_of_scale_modes_holds);
    RUN(scales_of_items_hold_or_are_refused_by_name);
    RUN(one_scaled_operand_beside_one_that_is_not_holds);
    RUN(scales_hold_in_other_layouts);
    RUN(y_preact_and_dy_have_scales);
    RUN(fast_accumulation_and_relaxed_hold);
    RUN(batch_invariant_layers_hold);
    RUN(repeated_runs_plans_and_one_shots_give_the_same_bits);
    RUN(the_workspace_may_be_the_callers_and_exactly_as_large);
    RUN(a_plan_says_what_it_is);
    RUN(a_plan_runs_again_and_again);
}

int main(void) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        run_all();
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
