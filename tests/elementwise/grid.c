/* Element-wise operations one after the other: every function, layout and rule of the manual by name. Runs on the devices
   that GEMMEPI_TEST_DEVICE names; see ../products/problem.h. */
#include "call.h"

static test_device *here;

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const gemmepi_dtype dtypes[] = {GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_BF16, GEMMEPI_F64};
static const gemmepi_dtype all_dtypes[] = {GEMMEPI_F32,  GEMMEPI_F64,  GEMMEPI_F16,
                                           GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_E5M2};

enum { MANY = 1000000 };

/* Values for the long tests, and where outputs are decoded to. */
static double numbers[MANY], others[MANY], results[MANY];

/* By turns at once and by plan, with the context's workspace and one's own. */
static int hold(call c) {
    static int turn;
    turn++;
    c.by_plan = turn & 1;
    c.own_workspace = (turn & 2) != 0;
    c.by_struct = turn / 2 % 4;
    c.no_stride = (turn & 4) != 0;
    return call_holds(here, &c);
}

/* Runs it, and has output t in results[] as a dense tensor. */
static int run_to_results(const call *c, int t) {
    image m;
    int64_t index[8] = {0}, n = 0;
    gemmepi_status status = call_run(c, here, &m);
    CHECK(status == GEMMEPI_OK, "%s: %s", gemmepi_last_error(), call_line(c).text);
    if (status == GEMMEPI_OK)
        do {
            results[n++] = image_take(&m, &m.o.t[t], index);
        } while (index_next(m.o.t[t].rank, m.o.t[t].shape, index));
    image_free(&m);
    return status == GEMMEPI_OK;
}

static call call_line_of(gemmepi_operation kind, gemmepi_dtype dtype, int64_t n) {
    return call_plain(kind, dtype, 1, &n);
}

static call call_matrix(gemmepi_operation kind, gemmepi_dtype dtype, int64_t rows, int64_t columns) {
    int64_t shape[2];
    shape[0] = rows;
    shape[1] = columns;
    return call_plain(kind, dtype, 2, shape);
}

/* >>activations */

/* Numbers of the dtype around 0, the kinks and the ends, and from everywhere between. */
static int64_t special_numbers(gemmepi_dtype dtype) {
    static const double specials[] = {0,   -0.0, INFINITY, -INFINITY, NAN,     1e-7, -1e-7, 80,   -80,
                                      3,   -3,   1,        -1,        0.5,     -0.5, 2.7,   -2.7, -5.6,
                                      12,  -12,  -20,      20,        -40,     40,   88,    -88,  -104,
                                      100, 700,  -700,     -13,       0.03125, -0.75};
    double u = oracle_roundoff(dtype), tiny = ldexp(1, oracle_format(dtype).lowest), x;
    int64_t n = 0;
    int i, step;
    for (i = 0; i < COUNT(specials); i++)
        for (step = -1; step <= 1; step++)
            numbers[n++] = specials[i] * (1 + 2 * step * u);
    for (i = -9; i <= 9; i++) {
        numbers[n++] = i * tiny;
        numbers[n++] = i * ldexp(tiny, oracle_format(dtype).digits - 1);
    }
    for (x = -12; x <= 12; x += 0.0078125 * 1.37)
        numbers[n++] = x;
    for (x = -110; x <= 110; x += 0.731)
        numbers[n++] = x;
    for (x = -760; x <= 760; x += 7.31)
        numbers[n++] = x;
    return n;
}

/* Gradients of the size of 1. */
static void some_gradients(int64_t n) {
    static const double some[] = {1, -0.375, 3, 0.75, -1.5};
    int64_t i;
    for (i = 0; i < n; i++)
        others[i] = some[i % 5];
}

static void check_activation(gemmepi_dtype dtype, gemmepi_epilogue activation, const double *parameter) {
    int64_t n = special_numbers(dtype);
    call forward = call_line_of(GEMMEPI_OP_ACTIVATION, dtype, n),
         backward = call_line_of(GEMMEPI_OP_ACTIVATION_BACKWARD, dtype, n);
    some_gradients(n);
    forward.o.activation = backward.o.activation = activation;
    forward.o.has_parameter = backward.o.has_parameter = parameter != NULL;
    forward.o.parameter = backward.o.parameter = parameter ? *parameter : 0;
    forward.given[E_A] = backward.given[E_A] = numbers;
    backward.given[E_DY] = others;
    hold(forward);
    hold(backward);
}

static void every_activation_and_derivative_is_right_at_specials_and_between(void) {
    int i, j;
    for (i = 0; i < COUNT(dtypes); i++)
        for (j = 0; j < ACTIVATION_COUNT; j++)
            check_activation(dtypes[i], activation_codes[j], NULL);
}

static void activations_take_their_parameter(void) {
    static const double parameters[] = {0.25, -0.5, 1.75, 1e-3, 0, -0.0};
    int i, p;
    for (i = 0; i < COUNT(dtypes); i++)
        for (p = 0; p < COUNT(parameters); p++) {
            check_activation(dtypes[i], GEMMEPI_LEAKY_RELU, &parameters[p]);
            check_activation(dtypes[i], GEMMEPI_ELU, &parameters[p]);
        }
}

static void the_two_gelus_are_told_apart(void) {
    double at[] = {-2.7, -2.02}, told[4];
    int i;
    for (i = 0; i < 4; i++) {
        call c = call_line_of(i < 2 ? GEMMEPI_OP_ACTIVATION : GEMMEPI_OP_ACTIVATION_BACKWARD, GEMMEPI_F32, 2);
        static const double ones[] = {1, 1};
        c.o.activation = i % 2 ? GEMMEPI_GELU_ERF : GEMMEPI_GELU_TANH;
        c.given[E_A] = at;
        c.given[E_DY] = ones;
        run_to_results(&c, i < 2 ? E_Y : E_DA);
        told[i] = results[i / 2];
    }
    CHECK(fabs(told[0] - told[1]) > 4e-4, "%g and %g", told[0], told[1]);
    CHECK(fabs(told[2] - told[3]) > 6e-4, "%g and %g", told[2], told[3]);
}

static void relu_selects_its_gradient(void) {
    static const double a[] = {-1, 0, -0.0, 1, NAN, -INFINITY, INFINITY, 1e-40},
                        dy[] = {INFINITY, NAN, INFINITY, INFINITY, 5, NAN, NAN, 2},
                        want[] = {0, 0, 0, INFINITY, 0, 0, NAN, 2};
    call c = call_line_of(GEMMEPI_OP_ACTIVATION_BACKWARD, GEMMEPI_F32, COUNT(a));
    int i;
    c.o.activation = GEMMEPI_RELU;
    c.given[E_A] = a;
    c.given[E_DY] = dy;
    run_to_results(&c, E_DA);
    for (i = 0; i < COUNT(a); i++)
        CHECK(results[i] == want[i] || (isnan(want[i]) && isnan(results[i])), "da[%d] is %g, want %g", i,
              results[i], want[i]);
    hold(c);
}

/* Worked values. */
static void worked_values_come_out(void) {
    static const double at[] = {.8, .9, .4, -.5};
    static const struct {
        gemmepi_epilogue activation;
        double y[4];
    } rows[] = {{GEMMEPI_GELU_TANH, {.630431691436, .73422848871, .262161169427, -.154285990175}},
                {GEMMEPI_GELU_ERF, {.630515681133, .734345887188, .262168696644, -.154268769363}},
                {GEMMEPI_SILU, {.551979584902, .639854552363, .239475064045, -.188770334399}},
                {GEMMEPI_SIGMOID, {.689974481128, .710949502625, .598687660112, .377540668798}},
                {GEMMEPI_TANH, {.664036770268, .716297870199, .379948962255, -.46211715726}}};
    int r, i;
    for (r = 0; r < COUNT(rows); r++) {
        call c = call_line_of(GEMMEPI_OP_ACTIVATION, GEMMEPI_F64, 4);
        c.o.activation = rows[r].activation;
        c.given[E_A] = at;
        run_to_results(&c, E_Y);
        for (i = 0; i < 4; i++)
            CHECK(fabs(results[i] - rows[r].y[i]) < 1e-12, "%s at %g is %.13g",
                  activation_name(rows[r].activation), at[i], results[i]);
    }
}

/* G = dY act'(P) and dbias, its column sums, of the backward cases. */
static void worked_gradients_and_their_column_sums_come_out(void) {
    static const double at[] = {.3, 1.7, 1.1, 3.7}, ones[] = {1, 1, 1, 1};
    static const struct {
        gemmepi_epilogue activation;
        double bias[2];
    } rows[] = {{GEMMEPI_NONE, {2, 2}},
                {GEMMEPI_RELU, {2, 2}},
                {GEMMEPI_GELU_TANH, {1.83595491421, 2.11707135869}},
                {GEMMEPI_GELU_ERF, {1.83629910062, 2.11678185605}},
                {GEMMEPI_SILU, {1.60414698342, 2.13055364389}},
                {GEMMEPI_SIGMOID, {.431828191238, .154150655221}},
                {GEMMEPI_TANH, {1.27433827799, .127451895377}}};
    int r, i;
    for (r = 0; r < COUNT(rows); r++) {
        call c = call_matrix(GEMMEPI_OP_ACTIVATION_BACKWARD, GEMMEPI_F64, 2, 2),
             s = call_matrix(GEMMEPI_OP_BIAS_GRAD, GEMMEPI_F64, 2, 2);
        double g[4];
        c.o.activation = rows[r].activation;
        c.given[E_A] = at;
        c.given[E_DY] = ones;
        run_to_results(&c, E_DA);
        memcpy(g, results, sizeof g);
        s.given[E_A] = g;
        run_to_results(&s, E_Y);
        for (i = 0; i < 2; i++)
            CHECK(fabs(results[i] - rows[r].bias[i]) < 1e-11, "%s: dbias[%d] is %.12g, want %.12g",
                  activation_name(rows[r].activation), i, results[i], rows[r].bias[i]);
    }
}

/* >>gradients against central differences */

enum { POINTS = 24 };

static const double difference_step = 1e-5;

/* Points off the kinks. */
static void some_points(double *to, uint64_t seed) {
    rng r = rng_seeded(seed);
    int i;
    for (i = 0; i < POINTS; i++) {
        to[i] = 8 * uniform(&r) - 4;
        if (fabs(to[i]) < 0.01 || fabs(fabs(to[i]) - 3) < 0.01)
            to[i] += 0.05;
    }
}

/* The derivative of y along input t by central differences, into difference. */
static void differentiate(call c, int t, double *difference) {
    double moved[POINTS], above[POINTS];
    const double *at = c.given[t];
    int i;
    c.given[t] = moved;
    for (i = 0; i < POINTS; i++)
        moved[i] = at[i] + difference_step;
    run_to_results(&c, E_Y);
    memcpy(above, results, sizeof above);
    for (i = 0; i < POINTS; i++)
        moved[i] = at[i] - difference_step;
    run_to_results(&c, E_Y);
    for (i = 0; i < POINTS; i++)
        difference[i] = (above[i] - results[i]) / (2 * difference_step);
}

/* That the gradient along `input` in output t of the backward call is dy times the forward call's. */
static void check_gradient(const call *forward, int input, const call *backward, int t) {
    double difference[POINTS];
    int i;
    differentiate(*forward, input, difference);
    run_to_results(backward, t);
    for (i = 0; i < POINTS; i++) {
        double want = backward->given[E_DY][i] * difference[i];
        CHECK(fabs(results[i] - want) < 1e-7 * (1 + fabs(want)),
              "%s[%d] is %.12g, differences give %.12g: %s", element_names[t], i, results[i], want,
              call_line(backward).text);
    }
}

static void gradients_are_what_central_differences_give(void) {
    static double a[POINTS], b[POINTS], w[POINTS], dy[POINTS];
    int t, j;
    call lerp = call_line_of(GEMMEPI_OP_LERP, GEMMEPI_F64, POINTS),
         lerped = call_line_of(GEMMEPI_OP_LERP_BACKWARD, GEMMEPI_F64, POINTS);
    some_points(a, 1);
    some_points(b, 2);
    some_points(w, 3);
    some_points(dy, 4);
    for (j = 0; j < ACTIVATION_COUNT; j++) {
        call f = call_line_of(GEMMEPI_OP_ACTIVATION, GEMMEPI_F64, POINTS),
             g = call_line_of(GEMMEPI_OP_ACTIVATION_BACKWARD, GEMMEPI_F64, POINTS),
             p = call_line_of(GEMMEPI_OP_GATED, GEMMEPI_F64, POINTS),
             q = call_line_of(GEMMEPI_OP_GATED_BACKWARD, GEMMEPI_F64, POINTS);
        f.o.activation = g.o.activation = p.o.activation = q.o.activation = activation_codes[j];
        f.given[E_A] = g.given[E_A] = p.given[E_A] = q.given[E_A] = a;
        p.given[E_B] = q.given[E_B] = b;
        g.given[E_DY] = q.given[E_DY] = dy;
        check_gradient(&f, E_A, &g, E_DA);
        check_gradient(&p, E_A, &q, E_DA);
        check_gradient(&p, E_B, &q, E_DB);
    }
    lerp.given[E_A] = lerped.given[E_A] = a;
    lerp.given[E_B] = lerped.given[E_B] = b;
    lerp.given[E_W] = lerped.given[E_W] = w;
    lerped.given[E_DY] = dy;
    for (t = 0; t < 3; t++)
        check_gradient(&lerp, E_A + t, &lerped, E_DA + t);
}

/* >>gated */

static void gated_is_right_for_every_activation_in_both_orders(void) {
    int i, j, backward, form;
    for (i = 0; i < 2; i++) /* F32, and the others by turns: a GPU compiles a kernel for each */
        for (j = 0; j < ACTIVATION_COUNT; j++)
            for (backward = 0; backward <= 1; backward++)
                for (form = 0; form < 3; form++) {
                    call c = call_matrix(backward ? GEMMEPI_OP_GATED_BACKWARD : GEMMEPI_OP_GATED,
                                         dtypes[i ? 1 + j % 3 : 0], 9, 68 - form);
                    c.o.activation = activation_codes[j] | (form == 2 ? GEMMEPI_GATE_FIRST : 0);
                    c.seed = (uint64_t)(10 * j + form);
                    c.values = form ? SPECIAL : MIXED;
                    if (form)
                        call_split(&c, form == 1 ? -1 : 0);
                    hold(c);
                }
}

/* Of value, gate and dy two multiply to what is far out of the range, and all three need not. */
static void factors_of_a_gate_out_of_the_range_together_are_right(void) {
    static const double powers[] = {-37, -30, -12, 0, 12, 19.2, 30, 38.2, HUGE_VAL}; /* the last for gates */
    static const gemmepi_epilogue activations[] = {GEMMEPI_SQUARED_RELU, GEMMEPI_LEAKY_RELU, GEMMEPI_ELU,
                                                   GEMMEPI_NONE, GEMMEPI_SILU};
    enum { GATES = COUNT(powers), POWERS = GATES - 1, ALL = POWERS * GATES * POWERS };
    static double value[ALL], gate[ALL], dy[ALL];
    int i, j, t, backward;
    for (t = 0; t < COUNT(dtypes); t++)
        for (j = 0; j < COUNT(activations); j++)
            for (backward = 0; backward <= 1; backward++) {
                call c =
                    call_line_of(backward ? GEMMEPI_OP_GATED_BACKWARD : GEMMEPI_OP_GATED, dtypes[t], ALL);
                double root = dtypes[t] == GEMMEPI_F16 ? 0.12 : dtypes[t] == GEMMEPI_F64 ? 8 : 1;
                for (i = 0; i < ALL; i++) {
                    value[i] =
                        oracle_round(dtypes[t], (i % 2 ? -1.3 : 1.3) * pow(10, root * powers[i % POWERS]));
                    gate[i] = oracle_round(dtypes[t], 1.7 * pow(10, root * powers[i / POWERS % GATES]));
                    dy[i] = oracle_round(dtypes[t], 1.1 * pow(10, root * powers[i / POWERS / GATES]));
                }
                c.o.activation = activations[j];
                c.o.parameter = activations[j] == GEMMEPI_LEAKY_RELU ? 3e30
                                : activations[j] == GEMMEPI_ELU      ? 1e20
                                                                     : 0;
                c.o.has_parameter = c.o.parameter != 0;
                c.given[E_A] = value;
                c.given[E_B] = gate;
                if (backward)
                    c.given[E_DY] = dy;
                hold(c);
                for (i = 0; i < ALL; i++) /* LEAKY_RELU's parameter, ELU's exponential */
                    gate[i] = -gate[i];
                hold(c);
            }
}

static void gated_splits_any_axis_of_ranks_1_to_8(void) {
    static const int64_t shape[] = {2, 3, 1, 4, 2, 1, 3, 5};
    int rank, axis, backward, gate_first;
    for (rank = 1; rank <= 8; rank++)
        for (axis = -rank; axis < rank; axis++)
            for (backward = 0; backward <= 1; backward++)
                for (gate_first = 0; gate_first <= 1; gate_first++) {
                    call c = call_plain(backward ? GEMMEPI_OP_GATED_BACKWARD : GEMMEPI_OP_GATED,
                                        axis & 1 ? GEMMEPI_F32 : GEMMEPI_BF16, rank, shape);
                    c.o.activation = GEMMEPI_SILU | (gate_first ? GEMMEPI_GATE_FIRST : 0);
                    call_split(&c, axis);
                    hold(c);
                }
}

static void a_gated_tensor_gives_the_bits_of_its_halves(void) {
    static double halves[2 * 3 * 20], value[60], gate[60], together[60];
    call one = call_matrix(GEMMEPI_OP_GATED, GEMMEPI_F32, 3, 20), two = one;
    int i, j;
    for (i = 0; i < 120; i++)
        halves[i] = sin(i * 1.3) * 3;
    for (i = 0; i < 3; i++)
        for (j = 0; j < 20; j++) {
            value[i * 20 + j] = halves[i * 40 + j];
            gate[i * 20 + j] = halves[i * 40 + 20 + j];
        }
    call_split(&one, 1);
    one.o.activation = two.o.activation = GEMMEPI_SILU;
    one.given[E_A] = halves;
    two.given[E_A] = value;
    two.given[E_B] = gate;
    run_to_results(&one, E_Y);
    memcpy(together, results, sizeof together);
    run_to_results(&two, E_Y);
    CHECK(memcmp(together, results, sizeof together) == 0, "they differ");
    one.o.activation |= GEMMEPI_GATE_FIRST;
    two.given[E_A] = gate;
    two.given[E_B] = value;
    run_to_results(&one, E_Y);
    memcpy(together, results, sizeof together);
    run_to_results(&two, E_Y);
    CHECK(memcmp(together, results, sizeof together) == 0, "they differ, gate first");
}

/* y over the value or the gate, also where each is a single element of the axis. */
static void a_gated_tensor_may_take_its_result_in_either_half(void) {
    static const int64_t shapes[][2] = {{4, 1}, {4, 2}, {1, 4}, {1, 1}, {5, 40}, {40, 5}};
    int i, axis, gate_first, half;
    for (i = 0; i < COUNT(shapes); i++)
        for (axis = 0; axis < 2; axis++)
            for (gate_first = 0; gate_first < 2; gate_first++)
                for (half = 0; half < 2; half++) {
                    call c = call_plain(GEMMEPI_OP_GATED, GEMMEPI_F32, 2, shapes[i]);
                    strided *a = &c.o.t[E_A], *y = &c.o.t[E_Y];
                    c.o.activation = GEMMEPI_SILU | (gate_first ? GEMMEPI_GATE_FIRST : 0);
                    call_split(&c, axis);
                    memcpy(y->stride, a->stride, sizeof y->stride);
                    c.in_place[E_Y] = 1 + E_A;
                    c.half[E_Y] = (int)(half * y->shape[axis] * a->stride[axis]);
                    hold(c);
                    y->stride[axis] += y->shape[axis] == 1; /* of an axis of 1, which matters to nobody */
                    hold(c);
                }
}

/* >>gates of which one gradient is wanted */

static void one_gradient_of_a_gate_may_be_left_out(void) {
    int i;
    for (i = 0; i < COUNT(dtypes); i++) {
        call c = call_matrix(GEMMEPI_OP_GATED_BACKWARD, dtypes[i], 5, 33), d = c;
        c.o.activation = d.o.activation = GEMMEPI_GELU_TANH;
        call_drop(&c, E_DA);
        hold(c);
        call_drop(&d, E_DB);
        hold(d);
    }
}

/* Factors and slopes near the ends of the range, of which no two may meet that leave it where all together do not. */
static void what_fits_keeps_its_digits_on_the_way(void) {
    static const struct {
        gemmepi_operation kind;
        gemmepi_epilogue activation;
        double a[3], b[3], dy[3];
    } rows[] = {
        {GEMMEPI_OP_ACTIVATION_BACKWARD, GEMMEPI_SQUARED_RELU, {3e38, 2e38, 3.3e38}, {0}, {1e-5, 0, -0.25}},
        {GEMMEPI_OP_GATED, GEMMEPI_SQUARED_RELU, {1e-15, 0, -2e-20}, {2e19, 1e30, 3e25}, {0}},
        {GEMMEPI_OP_GATED_BACKWARD,
         GEMMEPI_SQUARED_RELU,
         {1e19, 0, 3e18},
         {1e20, 3e38, 1e21},
         {-1e-35, 1, 2e-35}},
        {GEMMEPI_OP_GATED_BACKWARD,
         GEMMEPI_SQUARED_RELU,
         {2e-30, 3e30, -5},
         {3e38, 1e-30, 2},
         {1e-30, 0.5, 7}},
        {GEMMEPI_OP_GATED_BACKWARD, GEMMEPI_ELU, {3e17, -1e5, 2e-30}, {-150, -105, -1}, {5e17, 1e5, 1e-30}},
    };
    static const double large[] = {1e200, 1e-200, -3e160}, gates[] = {1e200, 1e180, 2e250},
                        small[] = {1e-300, 1e-50, 1e-300};
    int r, i;
    for (r = 0; r < COUNT(rows); r++)
        for (i = 0; i < 2; i++) {
            call c = call_line_of(rows[r].kind, i ? GEMMEPI_BF16 : GEMMEPI_F32, 3);
            c.o.activation = rows[r].activation;
            c.given[E_A] = rows[r].a;
            c.given[E_B] = rows[r].b;
            c.given[E_DY] = rows[r].dy;
            hold(c);
        }
    for (i = 0; i < 2; i++) {
        call c = call_line_of(i ? GEMMEPI_OP_GATED_BACKWARD : GEMMEPI_OP_GATED, GEMMEPI_F64, 3);
        c.o.activation = GEMMEPI_SQUARED_RELU;
        c.given[E_A] = i ? large : small;
        c.given[E_B] = gates;
        c.given[E_DY] = small;
        hold(c);
    }
}

/* >>lerp */

static void lerp_is_exact_at_0_and_1_and_right_elsewhere(void) {
    static const double weights[] = {0,   1, 0.5, 0.25,       0.75,       -0.0, -0.5,
                                     1.5, 2, -3,  0.49999999, 0.50000001, 1e-9};
    int i, w;
    for (i = 0; i < COUNT(dtypes); i++)
        for (w = 0; w < COUNT(weights); w++) {
            call c = call_matrix(GEMMEPI_OP_LERP, dtypes[i], 7, 65),
                 b = call_matrix(GEMMEPI_OP_LERP_BACKWARD, dtypes[i], 7, 65);
            call_drop(&c, E_W);
            c.o.weight = b.o.weight = weights[w];
            c.values = w % 2 ? MIXED : SPECIAL;
            hold(c);
            call_drop(&b, E_W);
            call_drop(&b, E_DW);
            call_drop(&b, E_A);
            call_drop(&b, E_B);
            hold(b);
        }
}

static void lerp_takes_a_tensor_as_weight(void) {
    static const int64_t ones[] = {1, 1, 1};
    static const int64_t shape[] = {4, 5, 66};
    int i, mask, missing;
    for (i = 0; i < COUNT(dtypes); i++)
        for (mask = 0; mask < 8; mask++)
            for (missing = 0; missing <= 3; missing += 1) {
                int64_t repeated[3];
                int d, backward;
                for (d = 0; d < 3; d++)
                    repeated[d] = mask >> d & 1 ? shape[d] : ones[d];
                for (backward = 0; backward <= 1; backward++) {
                    call c = call_plain(backward ? GEMMEPI_OP_LERP_BACKWARD : GEMMEPI_OP_LERP, dtypes[i], 3,
                                        shape);
                    strided_set(&c.o.t[E_W], dtypes[i], 3 - missing, repeated + missing);
                    if (backward)
                        strided_set(&c.o.t[E_DW], mask & 1 && is_16_bits(dtypes[i]) ? GEMMEPI_F32 : dtypes[i],
                                    3 - missing, repeated + missing);
                    if (backward && !is_sum(&c.o, E_DW))
                        c.o.t[E_DW].dtype = dtypes[i];
                    c.seed = (uint64_t)mask;
                    hold(c);
                }
            }
}

/* >>sums */

static void gradients_are_summed_over_the_axes_that_repeat(void) {
    static const int64_t shape[] = {6, 7, 40};
    int i, mask, t;
    for (i = 0; i < COUNT(dtypes); i++)
        for (mask = 0; mask < 7; mask++)
            for (t = 0; t < 2; t++) {
                call c = call_plain(GEMMEPI_OP_GATED_BACKWARD, dtypes[i], 3, shape);
                int64_t repeated[3];
                int d, missing = mask == 4 ? 2 : 0;
                for (d = 0; d < 3; d++)
                    repeated[d] = mask >> d & 1 ? shape[d] : 1;
                c.o.activation = mask % 2 ? GEMMEPI_SILU : GEMMEPI_RELU;
                strided_set(&c.o.t[E_A + t], dtypes[i], 3 - missing, repeated + missing);
                strided_set(&c.o.t[E_DA + t], is_16_bits(dtypes[i]) && mask != 2 ? GEMMEPI_F32 : dtypes[i],
                            3 - missing, repeated + missing);
                c.seed = (uint64_t)mask;
                hold(c);
            }
}

static void bias_grad_sums_all_axes_but_one(void) {
    static const int64_t shapes[][4] = {{37}, {33, 70}, {5, 9, 66}, {3, 4, 5, 65}};
    int i, rank, axis, way;
    for (i = 0; i < COUNT(dtypes); i++)
        for (rank = 1; rank <= 4; rank++)
            for (axis = -rank; axis < rank; axis++)
                for (way = 0; way < 4; way++) {
                    call c = call_plain(GEMMEPI_OP_BIAS_GRAD, dtypes[i], rank, shapes[rank - 1]);
                    c.o.axis = axis;
                    c.o.flags = way & 1 ? GEMMEPI_ACCUMULATE : 0;
                    strided_set(&c.o.t[E_Y], way & 2 && is_16_bits(dtypes[i]) ? GEMMEPI_F32 : dtypes[i], 1,
                                &shapes[rank - 1][operation_axis(&c.o)]);
                    c.seed = (uint64_t)way;
                    hold(c);
                    c.values = WHOLE;
                    hold(c);
                }
}

static void bias_grad_takes_any_strides(void) {
    int i, way;
    for (i = 0; i < COUNT(dtypes); i++)
        for (way = 0; way < 6; way++) {
            call c = call_matrix(GEMMEPI_OP_BIAS_GRAD, dtypes[i], 130, 70);
            strided *a = &c.o.t[E_A];
            c.o.axis = way % 2;
            strided_set(&c.o.t[E_Y], dtypes[i], 1, &a->shape[way % 2]);
            if (way / 2 == 0) { /* transposed */
                a->stride[0] = 1;
                a->stride[1] = 131;
            } else if (way / 2 == 1) { /* backwards, with gaps */
                a->stride[0] = -2 * 75;
                a->stride[1] = -2;
                c.o.t[E_Y].stride[0] = -3;
            } else { /* one row for all */
                a->stride[0] = 0;
                c.o.t[E_Y].stride[0] = 2;
            }
            hold(c);
        }
}

static void sums_of_nothing_are_0(void) {
    static const int64_t shapes[][2] = {{0, 5}, {5, 0}};
    int i, axis, accumulate;
    for (i = 0; i < 2; i++)
        for (axis = 0; axis < 2; axis++)
            for (accumulate = 0; accumulate < 2; accumulate++) {
                call c = call_plain(GEMMEPI_OP_BIAS_GRAD, GEMMEPI_F16, 2, shapes[i]);
                c.o.axis = axis;
                c.o.flags = accumulate ? GEMMEPI_ACCUMULATE : 0;
                strided_set(&c.o.t[E_Y], GEMMEPI_F32, 1, &shapes[i][axis]);
                hold(c);
            }
    for (i = 0; i < 2; i++) {
        static const int64_t one[] = {1, 1};
        call c = call_plain(GEMMEPI_OP_LERP_BACKWARD, GEMMEPI_F32, 2, shapes[i]);
        strided_set(&c.o.t[E_W], GEMMEPI_F32, 1, one);
        strided_set(&c.o.t[E_DW], GEMMEPI_F32, i, one);
        hold(c);
    }
}

static void check_long_sum(gemmepi_dtype dtype, gemmepi_dtype y, int64_t rows, int64_t columns, int axis) {
    call c = call_matrix(GEMMEPI_OP_BIAS_GRAD, dtype, rows, columns);
    int64_t length = axis ? columns : rows;
    c.o.axis = axis;
    strided_set(&c.o.t[E_Y], y, 1, &length);
    c.given[E_A] = numbers;
    hold(c);
}

static void long_sums_lose_nothing(void) {
    static const int64_t rows[] = {1, MANY, 1000, 10};
    int i, axis, way, n;
    for (way = 0; way < 3; way++) {
        for (n = 0; n < MANY; n++) /* ones; what cancels but for ones; a large one and small ones */
            numbers[n] = way == 0   ? 1
                         : way == 1 ? (n % 3 == 0   ? 1024
                                       : n % 3 == 1 ? 1
                                                    : -1024)
                         : n        ? 0.001
                                    : 2000;
        for (i = 0; i < COUNT(rows); i++)
            for (axis = 0; axis < 2; axis++) {
                check_long_sum(GEMMEPI_F16, GEMMEPI_F32, rows[i], MANY / rows[i], axis);
                if (i % 2 == axis)
                    check_long_sum(dtypes[(i + way) % 4], dtypes[(i + way) % 4], rows[i], MANY / rows[i],
                                   axis);
            }
    }
}

static void a_million_ones_of_16_bits_are_a_million(void) {
    call c = call_matrix(GEMMEPI_OP_BIAS_GRAD, GEMMEPI_F16, MANY, 1);
    int64_t one = 1;
    int n;
    for (n = 0; n < MANY; n++)
        numbers[n] = 1;
    strided_set(&c.o.t[E_Y], GEMMEPI_F32, 1, &one);
    c.given[E_A] = numbers;
    run_to_results(&c, E_Y);
    CHECK(results[0] == MANY, "the sum is %g", results[0]);
}

/* >>casts */

/* Every number of 8 bits, some of 16, what lies half way between two and next to that. */
static int64_t cast_numbers(void) {
    static const gemmepi_dtype of[] = {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_F16, GEMMEPI_BF16};
    static const double edges[] = {0,        -0.0,       INFINITY, -INFINITY, NAN,     448,   449,   464,
                                   480,      -465,       57344,    61440,     61441,   65504, 65519, 65520,
                                   65536,    -65520,     3.4e38,   3.39e38,   3.41e38, 1e39,  1e-46, 0x1p-149,
                                   0x1p-150, 0x1.8p-150, 1e300,    -1e300,    1e-320};
    int64_t n = 0;
    int i, code;
    for (i = 0; i < COUNT(of); i++) {
        int wide_one = oracle_format(of[i]).size == 2;
        for (code = 0; code < (wide_one ? 65536 - 97 : 255); code += wide_one ? 97 : 1) {
            unsigned char bits[2], next[2];
            double x, y, half;
            bits[0] = (unsigned char)(code & 255);
            bits[1] = (unsigned char)(code >> 8);
            next[0] = (unsigned char)((code + 1) & 255);
            next[1] = (unsigned char)((code + 1) >> 8);
            x = oracle_decode(of[i], bits);
            y = oracle_decode(of[i], next);
            half = x / 2 + y / 2;
            numbers[n++] = x;
            numbers[n++] = half;
            numbers[n++] = half * (1 + 0x1p-20);
            numbers[n++] = half * (1 - 0x1p-40);
        }
    }
    for (i = 0; i < COUNT(edges); i++)
        numbers[n++] = edges[i];
    return n;
}

static void casts_between_all_types_round_once(void) {
    int64_t n = cast_numbers();
    int from, to;
    for (from = 0; from < COUNT(all_dtypes); from++)
        for (to = 0; to < COUNT(all_dtypes); to++) {
            call c = call_line_of(GEMMEPI_OP_CAST, all_dtypes[from], n);
            c.o.t[E_Y].dtype = all_dtypes[to];
            c.given[E_A] = numbers;
            hold(c);
            c.given[E_A] = NULL;
            c.values = SPREAD;
            hold(c);
        }
}

static const uint64_t scale_flags[] = {GEMMEPI_CAST_SCALE, GEMMEPI_CAST_Y_SCALE,
                                       GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX, GEMMEPI_CAST_AMAX,
                                       GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX};

static void check_scaled_cast(int rank, const int64_t *shape, gemmepi_scale_mode mode, int flags, int turn) {
    static const gemmepi_dtype from[] = {GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F64, GEMMEPI_E5M2};
    call c = call_plain(GEMMEPI_OP_CAST, from[turn % 5], rank, shape);
    c.o.t[E_Y].dtype = turn % 3 ? GEMMEPI_E4M3 : GEMMEPI_E5M2;
    if (flags == 0 && turn % 4 == 0)
        c.o.t[E_Y].dtype = GEMMEPI_BF16;
    c.o.mode = mode;
    c.o.flags = scale_flags[flags];
    c.seed = (uint64_t)turn;
    c.values = turn % 7 == 6 ? SPECIAL : MIXED;
    hold(c);
    if (mode > GEMMEPI_SCALE_TENSOR && rank >= 2) {
        c.o.flags |= GEMMEPI_CAST_K_IS_ROWS;
        hold(c);
    }
}

static void casts_take_scales_of_every_mode(void) {
    static const int64_t shapes[][2] = {{1, 1},     {127, 129}, {128, 128}, {129, 127}, {300, 7},  {3, 300},
                                        {128, 513}, {513, 128}, {1, 1000},  {257, 9},   {130, 640}};
    int mode, flags, i, turn = 0;
    for (mode = 0; mode <= GEMMEPI_SCALE_BLOCK_128; mode++)
        for (flags = 0; flags < COUNT(scale_flags); flags++)
            for (i = 0; i < COUNT(shapes); i++)
                check_scaled_cast(2, shapes[i], (gemmepi_scale_mode)mode, flags, turn++);
}

static void scales_of_casts_go_with_the_last_two_axes(void) {
    static const int64_t four[] = {2, 3, 130, 9}, three[] = {3, 9, 260}, one[] = {300},
                         eight[] = {2, 1, 2, 1, 1, 2, 5, 130};
    int mode, flags, turn = 0;
    for (mode = 1; mode <= GEMMEPI_SCALE_BLOCK_128; mode++)
        for (flags = 0; flags < COUNT(scale_flags); flags++) {
            check_scaled_cast(4, four, (gemmepi_scale_mode)mode, flags, turn++);
            check_scaled_cast(3, three, (gemmepi_scale_mode)mode, flags, turn++);
            check_scaled_cast(1, one, (gemmepi_scale_mode)mode, flags, turn++);
            check_scaled_cast(8, eight, (gemmepi_scale_mode)mode, flags, turn++);
            check_scaled_cast(0, NULL, (gemmepi_scale_mode)mode, flags, turn++);
        }
}

/* Of 129 rows, and of 129 columns where k is rows: the last line of numbers is of one, and further matrices follow it. */
static void a_row_beyond_whole_blocks_has_numbers_of_its_own_before_the_next_matrix(void) {
    static const int64_t rows[3] = {3, 129, 140}, columns[3] = {3, 140, 129}, both[3] = {2, 257, 129};
    int mode, flags, turn = 0;
    for (mode = GEMMEPI_SCALE_OUTER; mode <= GEMMEPI_SCALE_BLOCK_128; mode++)
        for (flags = 0; flags < COUNT(scale_flags); flags++) {
            check_scaled_cast(3, rows, (gemmepi_scale_mode)mode, flags, turn++);
            check_scaled_cast(3, columns, (gemmepi_scale_mode)mode, flags, turn++);
            check_scaled_cast(3, both, (gemmepi_scale_mode)mode, flags, turn++);
        }
}

static void scaled_casts_take_any_strides(void) {
    int mode, flags, way, rows;
    for (mode = 1; mode <= GEMMEPI_SCALE_BLOCK_128; mode++)
        for (flags = 0; flags < COUNT(scale_flags); flags++)
            for (way = 0; way < 4; way++)
                for (rows = 0; rows <= (mode > 1); rows++) {
                    call c = call_matrix(GEMMEPI_OP_CAST, GEMMEPI_F32, 131, 259);
                    strided *a = &c.o.t[E_A], *y = &c.o.t[E_Y];
                    y->dtype = GEMMEPI_E4M3;
                    if (way & 1) {
                        a->stride[0] = 1;
                        a->stride[1] = 131;
                    }
                    if (way & 2) {
                        y->stride[0] = -2;
                        y->stride[1] = 300;
                    }
                    c.o.mode = (gemmepi_scale_mode)mode;
                    c.o.flags = scale_flags[flags] | (rows ? GEMMEPI_CAST_K_IS_ROWS : 0);
                    hold(c);
                }
}

/* From a lane's vector to more than a block has registers for; lines lie at multiples of 16 bytes, and are longer than rows. */
static void rows_of_any_length_have_scales_of_their_own(void) {
    static const gemmepi_dtype from[] = {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_E5M2};
    static const int64_t lengths[] = {1, 7, 8, 129, 256, 1000, 1032, 2048, 4096, 8200, 40000, 70000, 140000};
    int t, i, turn = 0;
    for (t = 0; t < COUNT(from); t++)
        for (i = 0; i < COUNT(lengths); i++, turn++) {
            int64_t shape[3], line = (lengths[i] + 15) / 16 * 16 + 16 * (i % 2);
            call c;
            shape[0] = 1 + turn % 3, shape[1] = lengths[i] < 3000 ? 37 : 3, shape[2] = lengths[i];
            c = call_plain(GEMMEPI_OP_CAST, from[t], 3, shape);
            c.o.t[E_Y].dtype = turn % 2 ? GEMMEPI_E4M3 : GEMMEPI_E5M2;
            c.o.t[E_A].stride[1] = c.o.t[E_Y].stride[1] = line;
            c.o.t[E_A].stride[0] = line * shape[1] + 32, c.o.t[E_Y].stride[0] = line * shape[1];
            c.o.mode = GEMMEPI_SCALE_OUTER;
            c.o.flags = GEMMEPI_CAST_Y_SCALE | (turn % 4 < 2 ? GEMMEPI_CAST_AMAX : 0);
            c.seed = (uint64_t)turn;
            c.values = turn % 5 == 4 ? SPECIAL : MIXED;
            hold(c);
        }
}

static const uint64_t one_scale_flags[] = {0,
                                           GEMMEPI_CAST_SCALE,
                                           GEMMEPI_CAST_Y_SCALE,
                                           GEMMEPI_CAST_AMAX,
                                           GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX,
                                           GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX};

/* kernel: which types, of which each may compile one */
static call call_both_layouts(int rank, const int64_t *shape, gemmepi_scale_mode mode, uint64_t flags,
                              int kernel, int turn) {
    static const gemmepi_dtype from[] = {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_E5M2, GEMMEPI_F64};
    call c = call_plain(GEMMEPI_OP_CAST, from[kernel % 5], rank, shape);
    c.o.t[E_Y].dtype = kernel % 3 ? GEMMEPI_E4M3 : GEMMEPI_E5M2;
    call_turn(&c);
    c.o.mode = mode;
    c.o.flags = flags;
    c.seed = (uint64_t)turn;
    c.values = turn % 7 == 6 ? SPECIAL : turn % 4 == 3 ? SPREAD : MIXED;
    return c;
}

/* y_transposed is what a cast of the transposed matrix makes: with one scale it is y's, else it has scales of its own. */
static void a_cast_may_make_both_layouts(void) {
    static const int64_t shapes[][2] = {{1, 1},    {3, 5},     {128, 128}, {127, 129}, {130, 260},
                                        {64, 520}, {257, 136}, {1, 300},   {300, 1},   {8, 1000},
                                        {1000, 8}, {4, 4},     {132, 24},  {384, 640}, {256, 1160}};
    int i, f, mode, turn = 0;
    for (i = 0; i < COUNT(shapes); i++) {
        for (f = 0; f < COUNT(one_scale_flags); f++, turn++)
            hold(call_both_layouts(2, shapes[i],
                                   one_scale_flags[f] && i % 2 ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE,
                                   one_scale_flags[f], f == 2 ? i : f, turn));
        for (mode = GEMMEPI_SCALE_VECTOR_128; mode <= GEMMEPI_SCALE_BLOCK_128; mode++)
            for (f = 0; f < 4; f++, turn++)
                hold(call_both_layouts(2, shapes[i], (gemmepi_scale_mode)mode,
                                       GEMMEPI_CAST_Y_SCALE | (f & 1 ? GEMMEPI_CAST_AMAX : 0) |
                                           (f & 2 ? GEMMEPI_CAST_K_IS_ROWS : 0),
                                       f + mode, turn));
    }
}

static void both_layouts_take_any_strides_and_items(void) {
    static const int64_t three[] = {3, 130, 264}, four[] = {2, 2, 72, 40};
    int way, mode, f, turn = 0;
    for (way = 0; way < 5; way++)
        for (mode = GEMMEPI_SCALE_TENSOR; mode <= GEMMEPI_SCALE_BLOCK_128; mode++)
            for (f = 0; f < 2; f++, turn++) {
                call c = way < 4 ? call_both_layouts(3, three, (gemmepi_scale_mode)mode, GEMMEPI_CAST_Y_SCALE,
                                                     mode, turn)
                                 : call_both_layouts(4, four, (gemmepi_scale_mode)mode, GEMMEPI_CAST_Y_SCALE,
                                                     mode, turn);
                strided *a = &c.o.t[E_A], *y = &c.o.t[E_Y], *turned = &c.o.t[E_TURNED];
                if (mode == GEMMEPI_SCALE_OUTER)
                    continue;
                if (way == 1) { /* the lines of a and of y are its columns */
                    a->stride[2] = y->stride[2] = 130;
                    a->stride[1] = y->stride[1] = 1;
                }
                if (way == 2) { /* longer lines: aligned, or not */
                    y->stride[1] = 272, y->stride[0] = 272 * 130;
                    turned->stride[1] = f ? 132 : 131, turned->stride[0] = turned->stride[1] * 264;
                }
                if (way == 3) { /* of every second element, and backwards */
                    turned->stride[2] = f ? 2 : -1, turned->stride[1] = 260, turned->stride[0] = 260 * 264;
                }
                if (f)
                    c.o.flags |= GEMMEPI_CAST_AMAX;
                hold(c);
            }
}

/* Longer than what all blocks of an emulated GPU have at a time; and again, in a workspace that holds anything. */
static void a_scale_of_a_whole_tensor_is_found_again_and_again(void) {
    static const int64_t shapes[][2] = {{513, 1152}, {640, 1024}, {1, 128},  {2, 64},
                                        {5, 8},      {300, 1000}, {70, 8200}};
    static const gemmepi_dtype from[] = {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_E4M3, GEMMEPI_F16};
    int i, again, turn = 0;
    for (i = 0; i < COUNT(shapes); i++)
        for (again = 0; again < 4; again++, turn++) {
            call c = call_plain(GEMMEPI_OP_CAST, from[again], 2, shapes[i]);
            c.o.t[E_Y].dtype = turn % 2 ? GEMMEPI_E4M3 : GEMMEPI_E5M2;
            if (turn % 3 == 2)
                call_turn(&c);
            if (i == 5) /* lines with gaps */
                c.o.t[E_A].stride[0] = 1016, c.o.t[E_Y].stride[0] = 1008;
            c.o.flags = GEMMEPI_CAST_Y_SCALE | (turn % 5 < 2 ? GEMMEPI_CAST_AMAX : 0);
            c.seed = (uint64_t)turn;
            c.values = turn % 11 == 10 ? SPECIAL : SPREAD;
            hold(c);
        }
}

/* amax is F64 where a is, whatever y is; and what is F64 on one side is multiplied in F64. */
static void casts_from_and_to_f64_have_the_amax_of_a(void) {
    static const struct {
        gemmepi_dtype a, y;
    } ways[] = {{GEMMEPI_F32, GEMMEPI_F64},  {GEMMEPI_F64, GEMMEPI_F64},  {GEMMEPI_F16, GEMMEPI_F64},
                {GEMMEPI_BF16, GEMMEPI_F64}, {GEMMEPI_E4M3, GEMMEPI_F64}, {GEMMEPI_F64, GEMMEPI_F32}};
    static const int64_t shapes[][2] = {{131, 261}, {1, 1}, {3, 7}};
    int i, mode, s;
    for (i = 0; i < COUNT(ways); i++)
        for (mode = GEMMEPI_SCALE_TENSOR; mode <= GEMMEPI_SCALE_BLOCK_128; mode++)
            for (s = 0; s < COUNT(shapes); s++) {
                call c = call_plain(GEMMEPI_OP_CAST, ways[i].a, 2, shapes[s]);
                if (!here->is_host && i >= 2 && ((i + mode) & 1)) /* a kernel for each */
                    continue;
                c.o.t[E_Y].dtype = ways[i].y;
                c.o.mode = (gemmepi_scale_mode)mode;
                c.o.flags = GEMMEPI_CAST_AMAX | (i == 1 || (i + mode) / 2 % 2 ? GEMMEPI_CAST_SCALE : 0);
                c.values = s == 1 ? SPREAD : MIXED;
                c.seed = (uint64_t)(10 * i + mode);
                hold(c);
                c.o.flags ^= GEMMEPI_CAST_SCALE;
                if (here->is_host)
                    hold(c);
            }
}

/* Of nothing there is no largest. */
static void an_empty_cast_leaves_its_numbers_as_they_were(void) {
    static const uint64_t flags[] = {GEMMEPI_CAST_AMAX, GEMMEPI_CAST_Y_SCALE,
                                     GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX};
    static const int64_t shapes[][3] = {{0, 5, 6}, {5, 0, 6}, {5, 6, 0}, {0, 0, 0}};
    int mode, f, s, rank;
    for (mode = 0; mode <= GEMMEPI_SCALE_BLOCK_128; mode++)
        for (f = 0; f < COUNT(flags); f++)
            for (s = 0; s < COUNT(shapes); s++)
                for (rank = 1; rank <= 3; rank++) {
                    call c = call_plain(GEMMEPI_OP_CAST, GEMMEPI_F32, rank, shapes[s]);
                    if (strided_count(&c.o.t[E_A]) > 0)
                        continue;
                    c.o.t[E_Y].dtype = GEMMEPI_E4M3;
                    c.o.mode = (gemmepi_scale_mode)mode;
                    c.o.flags = flags[f];
                    hold(c);
                }
}

/* Groups of nothing but 0, with an infinity, with NaN, tiny and huge ones. */
static void the_scales_of_a_cast_are_1_where_there_is_no_amax(void) {
    static const double rows[] = {0, INFINITY, NAN, 1e-44, 3e38, 1e-30, 448, -0.0, 57344, -INFINITY};
    int i, j, mode, to;
    for (i = 0; i < COUNT(rows); i++)
        for (j = 0; j < 130; j++)
            numbers[i * 130 + j] = j == 7 || rows[i] == 0 ? rows[i] : fmin(1, fabs(rows[i])) / 2;
    for (mode = GEMMEPI_SCALE_TENSOR; mode <= GEMMEPI_SCALE_BLOCK_128; mode++)
        for (to = 0; to < 2; to++) {
            call c = call_matrix(GEMMEPI_OP_CAST, GEMMEPI_F32, COUNT(rows), 130);
            c.o.t[E_Y].dtype = to ? GEMMEPI_E4M3 : GEMMEPI_E5M2;
            c.o.mode = (gemmepi_scale_mode)mode;
            c.o.flags = GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX;
            c.given[E_A] = numbers;
            hold(c);
        }
    for (i = 0; i < COUNT(rows); i++) { /* and one by one */
        call c = call_line_of(GEMMEPI_OP_CAST, GEMMEPI_F32, 130);
        c.o.t[E_Y].dtype = GEMMEPI_E4M3;
        c.o.flags = GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX;
        c.given[E_A] = numbers + i * 130;
        hold(c);
    }
}

/* >>layouts */

enum {
    DENSE,
    PADDED,
    TRANSPOSED,
    ROTATED,
    BACKWARDS,
    LAST_BACKWARDS,
    STEP_2,
    STEP_3,
    OFF_BY_ONE,
    LAYOUTS,
    REPEATED = LAYOUTS,
    REPEATED_FIRST,
    INPUT_LAYOUTS
};

static void lay(call *c, int t, int layout) {
    strided *x = &c->o.t[t];
    int64_t step = layout == STEP_2 ? 2 : layout == STEP_3 ? 3 : 1;
    int i;
    if (!x->used)
        return;
    c->shift[t] = layout == OFF_BY_ONE;
    c->lead[t] = layout == PADDED ? 5 : 0;
    for (i = 0; i < x->rank; i++) {
        int axis = layout == TRANSPOSED ? i
                   : layout == ROTATED  ? (x->rank + x->rank / 2 - i) % x->rank
                                        : x->rank - 1 - i;
        int backwards = layout == BACKWARDS || (layout == LAST_BACKWARDS && i == 0);
        x->stride[axis] = backwards ? -step : step;
        step *= x->shape[axis] > 0 ? x->shape[axis] : 1;
        step += layout == PADDED ? 3 : 0;
    }
    if (x->rank && layout >= REPEATED)
        x->stride[layout == REPEATED ? x->rank - 1 : 0] = 0;
}

static void lay_all(call *c, int inputs, int outputs) {
    int t;
    for (t = 0; t < E_TENSORS; t++)
        lay(c, t, t < E_Y ? inputs : outputs);
}

/* One call of each operation, of different dtypes. */
static call call_of_kind(int kind, int rank, const int64_t *shape) {
    static const gemmepi_dtype of[] = {GEMMEPI_F32,  GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F32,
                                       GEMMEPI_BF16, GEMMEPI_F64, GEMMEPI_F16,  GEMMEPI_F32};
    call c = call_plain((gemmepi_operation)kind, of[kind], rank, shape);
    if (kind <= GEMMEPI_OP_GATED_BACKWARD)
        c.o.activation = kind & 1 ? GEMMEPI_SILU : GEMMEPI_RELU;
    if (kind == GEMMEPI_OP_CAST)
        c.o.t[E_Y].dtype = GEMMEPI_BF16;
    return c;
}

static void every_layout_goes_with_every_other(void) {
    static const int64_t shapes[][4] = {{9, 65}, {3, 5, 40}, {2, 3, 5, 9}, {64, 72}};
    static const int ranks[] = {2, 3, 4, 2};
    int kind, s, inputs, outputs;
    for (kind = 1; kind <= GEMMEPI_OP_CAST; kind++)
        for (s = 0; s < COUNT(ranks); s++)
            for (inputs = 0; inputs < INPUT_LAYOUTS; inputs++)
                for (outputs = 0; outputs < LAYOUTS; outputs++) {
                    call c = call_of_kind(kind, ranks[s], shapes[s]);
                    lay_all(&c, inputs, outputs);
                    hold(c);
                }
}

static void inputs_of_one_call_may_lie_differently(void) {
    static const int64_t shape[] = {5, 6, 34};
    int kind, t, mixed;
    for (kind = 1; kind <= GEMMEPI_OP_CAST; kind++)
        for (mixed = 0; mixed < 24; mixed++) {
            call c = call_of_kind(kind, 3, shape);
            for (t = 0; t < E_TENSORS; t++)
                lay(&c, t,
                    (int)(random_hash((uint64_t)(mixed * 8 + t)) % (t < E_Y ? INPUT_LAYOUTS : LAYOUTS)));
            hold(c);
        }
}

static void every_extent_is_right(void) {
    static const int64_t extents[] = {1, 7, 8, 9, 63, 64, 65, 255, 257, 1000};
    int kind, i, j, layout;
    for (kind = 1; kind <= GEMMEPI_OP_CAST; kind++)
        for (i = 0; i < COUNT(extents); i++) {
            for (layout = 0; layout < LAYOUTS; layout++) {
                call c = call_of_kind(kind, 1, &extents[i]);
                lay_all(&c, layout, layout);
                hold(c);
            }
            for (j = 0; j < COUNT(extents); j++) {
                int64_t shape[2];
                call c;
                shape[0] = extents[i];
                shape[1] = extents[j];
                if (shape[0] * shape[1] > 70000)
                    continue;
                c = call_of_kind(kind, 2, shape);
                lay_all(&c, (i + j) % LAYOUTS, i * j % LAYOUTS);
                hold(c);
            }
        }
}

static void scalars_are_tensors_of_rank_0(void) {
    int kind, i;
    for (kind = 1; kind <= GEMMEPI_OP_CAST; kind++)
        for (i = 0; i < 2; i++) {
            call c;
            if (kind == GEMMEPI_OP_BIAS_GRAD)
                continue;
            c = call_of_kind(kind, 0, NULL);
            c.seed = (uint64_t)i;
            c.lead[E_A] = i;
            hold(c);
        }
}

static void inputs_are_broadcast_as_in_numpy(void) {
    static const int64_t shape[] = {4, 3, 66};
    int mask, missing, t;
    for (mask = 0; mask < 8; mask++)
        for (missing = 0; missing <= 3; missing++)
            for (t = E_A; t <= E_W; t++) {
                call c = call_plain(GEMMEPI_OP_LERP, t == E_A ? GEMMEPI_F16 : GEMMEPI_F32, 3, shape);
                int64_t repeated[3];
                int d;
                for (d = 0; d < 3; d++)
                    repeated[d] = mask >> d & 1 ? shape[d] : 1;
                strided_set(&c.o.t[t], c.o.t[t].dtype, 3 - missing, repeated + missing);
                hold(c);
            }
}

/* Of every operation, with an empty axis in each place. */
static void empty_tensors_succeed_and_touch_nothing(void) {
    int kind, axis, d;
    for (kind = 1; kind <= GEMMEPI_OP_CAST; kind++)
        for (axis = 0; axis < 3; axis++) {
            int64_t shape[3];
            call c;
            for (d = 0; d < 3; d++)
                shape[d] = d == axis ? 0 : 5;
            c = call_of_kind(kind, 3, shape);
            hold(c);
            if (kind == GEMMEPI_OP_GATED || kind == GEMMEPI_OP_GATED_BACKWARD) {
                call_split(&c, axis);
                hold(c);
            }
        }
}

/* Empty ones need no memory at all. */
static void empty_tensors_need_no_data(void) {
    int64_t shape[] = {3, 0};
    gemmepi_tensor none;
    gemmepi_status status;
    memset(&none, 0, sizeof none);
    none.rank = 2;
    none.shape = shape;
    status = gemmepi_activation(here->context, GEMMEPI_SILU, NAN, &none, &none, here->stream);
    CHECK(status == GEMMEPI_OK, "%s", gemmepi_last_error());
}

/* Strides of axes with one index are never taken, and those of an empty tensor not at all. */
static void strides_that_nothing_uses_may_be_any(void) {
    static const int64_t any[] = {INT64_MAX, INT64_MIN, INT64_MIN + 1, INT64_MAX / 2, 0};
    static const int64_t shapes[][3] = {{1, 2, 1}, {2, 1, 1}, {1, 1, 3}, {1, 1, 1}, {0, 3, 1}, {3, 0, 2}};
    int kind, i, s, d, t, rank;
    for (kind = 1; kind <= GEMMEPI_OP_CAST; kind++)
        for (s = 0; s < COUNT(shapes); s++)
            for (i = 0; i < COUNT(any); i++)
                for (rank = 2; rank <= 3; rank++) {
                    call c = call_of_kind(kind, rank, shapes[s]);
                    if (i == 3 && (kind == GEMMEPI_OP_GATED || kind == GEMMEPI_OP_GATED_BACKWARD))
                        call_split(&c, -1);
                    for (t = 0; t < E_TENSORS; t++)
                        for (d = 0; d < c.o.t[t].rank; d++)
                            if (c.o.t[t].shape[d] == 1 || strided_count(&c.o.t[t]) == 0)
                                c.o.t[t].stride[d] = any[i];
                    hold(c);
                }
}

/* Many matrices too small for a tile, and images whose channels lie together. */
static void batches_of_small_transposes_are_right(void) {
    static const int64_t shapes[][3] = {{1000, 3, 3}, {300, 3, 49}, {200, 16, 16}, {50, 32, 32}};
    int s, way, d;
    for (s = 0; s < COUNT(shapes); s++)
        for (d = 0; d < 2; d++)
            for (way = 1; way < 6; way++) {
                call c = call_plain(way == 5 ? GEMMEPI_OP_LERP : GEMMEPI_OP_ACTIVATION,
                                    d ? GEMMEPI_BF16 : GEMMEPI_F32, 3, shapes[s]);
                int64_t turned[3];
                turned[0] = shapes[s][1] * shapes[s][2] + (way == 4 ? 5 : 0);
                turned[1] = 1;
                turned[2] = shapes[s][1];
                c.o.activation = way == 5 ? GEMMEPI_NONE : GEMMEPI_SILU;
                if (way != 2)
                    memcpy(c.o.t[E_A].stride, turned, sizeof turned);
                if (way == 2 || way == 3)
                    memcpy(c.o.t[E_Y].stride, turned, sizeof turned);
                hold(c);
            }
}

static void outputs_may_be_an_input(void) {
    static const struct {
        int kind, output, input, split;
    } ways[] = {{GEMMEPI_OP_ACTIVATION, E_Y, E_A, 0},
                {GEMMEPI_OP_ACTIVATION_BACKWARD, E_DA, E_A, 0},
                {GEMMEPI_OP_ACTIVATION_BACKWARD, E_DA, E_DY, 0},
                {GEMMEPI_OP_GATED, E_Y, E_A, 0},
                {GEMMEPI_OP_GATED, E_Y, E_B, 0},
                {GEMMEPI_OP_GATED_BACKWARD, E_DA, E_A, 0},
                {GEMMEPI_OP_GATED_BACKWARD, E_DB, E_A, 0},
                {GEMMEPI_OP_GATED_BACKWARD, E_DA, E_B, 0},
                {GEMMEPI_OP_GATED_BACKWARD, E_DB, E_DY, 0},
                {GEMMEPI_OP_GATED_BACKWARD, E_DA, E_A, 1},
                {GEMMEPI_OP_LERP, E_Y, E_A, 0},
                {GEMMEPI_OP_LERP, E_Y, E_B, 0},
                {GEMMEPI_OP_LERP, E_Y, E_W, 0},
                {GEMMEPI_OP_LERP_BACKWARD, E_DA, E_DY, 0},
                {GEMMEPI_OP_LERP_BACKWARD, E_DB, E_W, 0},
                {GEMMEPI_OP_LERP_BACKWARD, E_DW, E_B, 0},
                {GEMMEPI_OP_CAST, E_Y, E_A, 0}};
    static const int64_t shape[] = {6, 7, 66};
    int i, layout, d;
    for (i = 0; i < COUNT(ways); i++)
        for (d = 0; d < 2; d++)
            for (layout = 0; layout < LAYOUTS; layout++) {
                call c = call_plain((gemmepi_operation)ways[i].kind, d ? GEMMEPI_F32 : GEMMEPI_F16, 3, shape);
                c.o.activation = ways[i].kind <= GEMMEPI_OP_GATED_BACKWARD ? GEMMEPI_SILU : 0;
                if (ways[i].split)
                    call_split(&c, 1);
                lay_all(&c, layout, layout);
                c.in_place[ways[i].output] = 1 + ways[i].input;
                hold(c);
            }
}

static void two_outputs_may_each_be_an_input(void) {
    static const int64_t shape[] = {6, 66};
    call c = call_plain(GEMMEPI_OP_GATED_BACKWARD, GEMMEPI_BF16, 2, shape),
         l = call_plain(GEMMEPI_OP_LERP_BACKWARD, GEMMEPI_F32, 2, shape), s;
    c.o.activation = GEMMEPI_SILU;
    c.in_place[E_DA] = 1 + E_B;
    c.in_place[E_DB] = 1 + E_A;
    hold(c);
    l.in_place[E_DA] = 1 + E_A;
    l.in_place[E_DB] = 1 + E_DY;
    l.in_place[E_DW] = 1 + E_W;
    hold(l);
    s = l; /* a sum beside what is in place is of the inputs as they were */
    s.in_place[E_DW] = 0;
    strided_set(&s.o.t[E_W], GEMMEPI_F32, 1, &shape[1]);
    strided_set(&s.o.t[E_DW], GEMMEPI_F32, 1, &shape[1]);
    hold(s);
}

static void casts_with_one_scale_may_be_in_place(void) {
    int flags;
    for (flags = 0; flags < COUNT(scale_flags); flags++) {
        call c = call_matrix(GEMMEPI_OP_CAST, GEMMEPI_E4M3, 140, 270);
        c.o.flags = scale_flags[flags];
        c.in_place[E_Y] = 1 + E_A;
        if (!call_is_scaled(&c))
            hold(c);
    }
}

/* Large enough for many blocks and several rounds of each. */
static void large_tensors_are_right(void) {
    static const int64_t line[] = {1000003}, matrix[] = {1021, 977};
    int way;
    for (way = 0; way < 4; way++) {
        call c = call_plain(GEMMEPI_OP_ACTIVATION, way & 1 ? GEMMEPI_F16 : GEMMEPI_F32, way & 2 ? 2 : 1,
                            way & 2 ? matrix : line);
        c.o.activation = way == 3 ? GEMMEPI_GELU_TANH : GEMMEPI_RELU;
        if (way & 2)
            lay(&c, E_A, TRANSPOSED);
        hold(c);
    }
}

/* >>plans */

static int same_outputs(const call *c, const image *p, const image *q) {
    int t, same = 1;
    for (t = E_Y; t < E_TENSORS; t++) {
        const strided *x = &p->o.t[t], *z = &q->o.t[t];
        int64_t index[8] = {0};
        size_t size = oracle_format(x->dtype).size;
        if (!x->used || strided_count(x) == 0)
            continue;
        do {
            const unsigned char *mine = p->after + (strided_at(x, x->rank, index) - p->before),
                                *its = q->after + (strided_at(z, z->rank, index) - q->before);
            same &= memcmp(mine, its, size) == 0;
        } while (index_next(x->rank, x->shape, index));
    }
    CHECK(same, "%s", call_line(c).text);
    return same;
}

/* A plan run on memory here and there gives what the call at once does. */
static void check_plan(call c) {
    image at_once, first, second;
    gemmepi_plan *plan = NULL;
    gemmepi_status status;
    c.by_plan = 0;
    status = call_run(&c, here, &at_once);
    CHECK(status == GEMMEPI_OK, "%s: %s", gemmepi_last_error(), call_line(&c).text);
    call_place(&c, &first);
    call_fill(&c, &first);
    c.spacing = 5000;
    call_place(&c, &second);
    call_fill(&c, &second);
    if (status == GEMMEPI_OK)
        status = call_plan(&c, &first, here, &plan);
    if (status == GEMMEPI_OK) {
        CHECK(image_upload(&first, here) == GEMMEPI_OK && plan_on(plan, &c, &first, here) == GEMMEPI_OK &&
                  image_download(&first, here) == GEMMEPI_OK,
              "%s: %s", gemmepi_last_error(), call_line(&c).text);
        CHECK(image_upload(&second, here) == GEMMEPI_OK && plan_on(plan, &c, &second, here) == GEMMEPI_OK &&
                  image_download(&second, here) == GEMMEPI_OK,
              "%s: %s", gemmepi_last_error(), call_line(&c).text);
        same_outputs(&c, &at_once, &first);
        same_outputs(&c, &at_once, &second);
        image_holds(&c, &second);
    }
    CHECK(status == GEMMEPI_OK, "%s: %s", gemmepi_last_error(), call_line(&c).text);
    gemmepi_plan_destroy(plan);
    image_free(&at_once);
    image_free(&first);
    image_free(&second);
}

static void plans_give_the_bits_of_calls_at_once_wherever_the_memory_is(void) {
    static const int64_t shape[] = {65, 130};
    uint64_t seed, last = here->is_host ? 900 : 520;
    int kind;
    for (kind = 1; kind <= GEMMEPI_OP_CAST; kind++)
        check_plan(call_of_kind(kind, 2, shape));
    for (seed = 500; seed < last; seed++)
        check_plan(call_random(seed));
}

static void sums_repeat_bit_by_bit(void) {
    static const int64_t shape[] = {3000, 70};
    int i, again, axis;
    for (i = 0; i < COUNT(dtypes); i++)
        for (axis = 0; axis < 2; axis++) {
            call c = call_plain(GEMMEPI_OP_BIAS_GRAD, dtypes[i], 2, shape);
            image first, next;
            c.o.axis = axis;
            strided_set(&c.o.t[E_Y], dtypes[i], 1, &shape[axis]);
            CHECK(call_run(&c, here, &first) == GEMMEPI_OK, "%s", gemmepi_last_error());
            for (again = 0; again < 3; again++) {
                CHECK(call_run(&c, here, &next) == GEMMEPI_OK, "%s", gemmepi_last_error());
                same_outputs(&c, &first, &next);
                image_free(&next);
            }
            image_free(&first);
        }
}

static void a_plan_says_what_it_does(void) {
    static const int64_t shape[] = {65, 130};
    int kind;
    for (kind = 1; kind <= GEMMEPI_OP_CAST; kind++) {
        call c = call_of_kind(kind, 2, shape);
        gemmepi_plan *plan = NULL;
        gemmepi_plan_details details;
        char text[4000] = "";
        size_t length;
        image m;
        call_place(&c, &m);
        CHECK(call_plan(&c, &m, here, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(details.kind == GEMMEPI_PLAN_ELEMENTWISE, "kind %d", (int)details.kind);
        CHECK((details.route == GEMMEPI_ROUTE_HOST) == here->is_host, "route %d on %s", (int)details.route,
              here->name);
        CHECK(details.deterministic && details.route_name != NULL && details.route_name[0], "operation %d",
              kind);
        length = gemmepi_plan_explain(plan, text, sizeof text);
        CHECK(length > 0 && length == strlen(text), "%d of %d", (int)length, (int)strlen(text));
        CHECK(gemmepi_plan_explain(plan, NULL, 0) == length, "the length changes");
        gemmepi_plan_destroy(plan);
        image_free(&m);
    }
}

int main(void) {
    test_device devices[2];
    int opened = test_devices_open(devices), i;
    for (i = 0; i < opened; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(every_activation_and_derivative_is_right_at_specials_and_between);
        RUN(activations_take_their_parameter);
        RUN(the_two_gelus_are_told_apart);
        RUN(relu_selects_its_gradient);
        RUN(worked_values_come_out);
        RUN(worked_gradients_and_their_column_sums_come_out);
        RUN(gradients_are_what_central_differences_give);
        RUN(gated_is_right_for_every_activation_in_both_orders);
        RUN(factors_of_a_gate_out_of_the_range_together_are_right);
        RUN(gated_splits_any_axis_of_ranks_1_to_8);
        RUN(a_gated_tensor_gives_the_bits_of_its_halves);
        RUN(a_gated_tensor_may_take_its_result_in_either_half);
        RUN(one_gradient_of_a_gate_may_be_left_out);
        RUN(what_fits_keeps_its_digits_on_the_way);
        RUN(lerp_is_exact_at_0_and_1_and_right_elsewhere);
        RUN(lerp_takes_a_tensor_as_weight);
        RUN(gradients_are_summed_over_the_axes_that_repeat);
        RUN(bias_grad_sums_all_axes_but_one);
        RUN(bias_grad_takes_any_strides);
        RUN(sums_of_nothing_are_0);
        RUN(long_sums_lose_nothing);
        RUN(a_million_ones_of_16_bits_are_a_million);
        RUN(casts_between_all_types_round_once);
        RUN(casts_take_scales_of_every_mode);
        RUN(scales_of_casts_go_with_the_last_two_axes);
        RUN(a_row_beyond_whole_blocks_has_numbers_of_its_own_before_the_next_matrix);
        RUN(scaled_casts_take_any_strides);
        RUN(rows_of_any_length_have_scales_of_their_own);
        RUN(a_cast_may_make_both_layouts);
        RUN(both_layouts_take_any_strides_and_items);
        RUN(a_scale_of_a_whole_tensor_is_found_again_and_again);
        RUN(casts_from_and_to_f64_have_the_amax_of_a);
        RUN(an_empty_cast_leaves_its_numbers_as_they_were);
        RUN(the_scales_of_a_cast_are_1_where_there_is_no_amax);
        RUN(every_layout_goes_with_every_other);
        RUN(inputs_of_one_call_may_lie_differently);
        RUN(every_extent_is_right);
        RUN(scalars_are_tensors_of_rank_0);
        RUN(inputs_are_broadcast_as_in_numpy);
        RUN(empty_tensors_succeed_and_touch_nothing);
        RUN(empty_tensors_need_no_data);
        RUN(strides_that_nothing_uses_may_be_any);
        RUN(batches_of_small_transposes_are_right);
        RUN(outputs_may_be_an_input);
        RUN(two_outputs_may_each_be_an_input);
        RUN(casts_with_one_scale_may_be_in_place);
        RUN(large_tensors_are_right);
        RUN(plans_give_the_bits_of_calls_at_once_wherever_the_memory_is);
        RUN(sums_repeat_bit_by_bit);
        RUN(a_plan_says_what_it_does);
        test_device_close(here);
    }
    return test_finish() || opened == 0;
}
