/* Worked cases, forward and backward; gradients against central differences; what forward saves for backward. */
#include "grid.h"

#include <float.h>

/* >>worked cases */

/* Equal to the 12 digits that are shown. */
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
                if (!takes(all_types[t], p.desc.epilogue))
                    continue;
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

/* The same pre-activation as value and gate: row by row .8 act(.9) and .4 act(-.5), the gate first .9 act(.8) and
   -.5 act(.4). In column-major order the halves are the rows: .8 act(.4) and .9 act(-.5), or .4 act(.8) and
   -.5 act(.9). */
static void worked_gates_come_out(void) {
    static const double a[] = {1, 2, -1, 3, -2, 4}, b[] = {.5, -.3, .1, .7, -.2, .4}, bias[] = {-.1, .2};
    static const double v[] = {.8, .9, .4, -.5};
    static const int value[2][2][2] = {{{0, 2}, {1, 3}}, {{0, 1}, {2, 3}}},
                     gate[2][2][2] = {{{1, 3}, {0, 2}}, {{2, 3}, {0, 1}}};
    const types *t = all_types[grid_types];
    int i, layout, first, j;
    for (i = 0; i < COUNT(forward_cases); i++)
        for (layout = 0; layout < LAYOUTS; layout++)
            for (first = 0; first < 2; first++) {
                int columns = layout % 2;
                problem p = typed(t, 2, 2, 3,
                                  forward_cases[i].activation | GEMMEPI_GATED | GEMMEPI_AUX |
                                      (first ? GEMMEPI_GATE_FIRST : 0) | (columns ? 0 : GEMMEPI_BIAS));
                double *y, *aux, shifted[4];
                if (!takes(t, forward_cases[i].activation | GEMMEPI_GATED))
                    continue;
                lay_out(&p, layout);
                p.given[T_A] = a;
                p.given[T_B] = b;
                p.given[T_BIAS] = bias;
                for (j = 0; j < 4; j++) /* there a bias would run along the rows: C has it */
                    shifted[j] = bias[j % 2];
                if (columns) {
                    problem_scale(&p, 1, 1);
                    p.desc.c.dtype = t->vectors;
                    p.given[T_C] = shifted;
                }
                y = answer(&p, T_D);
                aux = answer(&p, T_AUX);
                check_shown(t, "aux", aux, v, 4);
                for (j = 0; j < 2 && t == &f64; j++) {
                    double want = v[value[columns][first][j]] * forward_cases[i].y[gate[columns][first][j]];
                    CHECK(fabs(y[j] - want) < 1e-12, "%s, layout %d, y[%d] is %.13g, not %.13g",
                          activation_name(forward_cases[i].activation), layout, j, y[j], want);
                }
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
            if (takes(plain_types[t], backward_cases[i].activation | GEMMEPI_BACKWARD))
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

/* loss = sum R (act(X W + bias) V), or with a gate of the halves in place of act: a hidden layer, and what its gradients
   are made of */
typedef struct network {
    gemmepi_epilogue activation; /* and GATED and GATE_FIRST */
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

/* The columns that are multiplied by V: HIDDEN of them, or half. */
static int network_width(const network *net) {
    return net->activation & GEMMEPI_GATED ? HIDDEN / 2 : HIDDEN;
}

static double network_loss(const network *net) {
    problem layer = network_layer(net, 0), last = typed(&f64, X_ROWS, OUT, network_width(net), GEMMEPI_NONE);
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
              "activation 0x%llx, %s[%d]: gradient %.12g, difference %.12g",
              (unsigned long long)net->activation, name, i, gradient[i], difference);
    }
}

static void turn(double *to, const double *from, int rows, int columns) {
    int i, j;
    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}

/* d loss / d (X W + bias) and its column sums, from the pre-activation saved or computed anew. */
static double *network_gradient(const network *net, int upstream, double **dbias) {
    double turned_v[OUT * HIDDEN], *aux;
    int width = network_width(net);
    problem back, forward = network_layer(net, GEMMEPI_AUX);
    double *g;
    turn(turned_v, net->v, width, OUT);
    back = typed(&f64, X_ROWS, width, OUT,
                 upstream ? GEMMEPI_NONE : net->activation | GEMMEPI_BACKWARD | GEMMEPI_BGRAD);
    back.desc.b.transposed = 1;
    back.given[T_A] = net->r;
    back.given[T_B] = turned_v;
    if (upstream) {
        aux = answer(&back, T_D);
        back = network_layer(net, GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BGRAD);
    } else {
        aux = answer(&forward, T_AUX);
    }
    back.given[T_AUX] = aux;
    g = answer(&back, T_D);
    *dbias = answer(&back, T_BIAS_GRAD);
    free(aux);
    return g;
}

static void check_network(gemmepi_epilogue activation, int upstream) {
    double turned_w[HIDDEN * X_COLUMNS], turned_x[X_COLUMNS * X_ROWS];
    double *g, *dbias, *x_gradient, *w_gradient;
    problem dx, dw;
    network net;
    net.activation = activation;
    network_fill(net.x, COUNT(net.x), 1);
    network_fill(net.w, COUNT(net.w), 2);
    network_fill(net.bias, COUNT(net.bias), 3);
    network_fill(net.v, COUNT(net.v), 4);
    network_fill(net.r, COUNT(net.r), 5);
    turn(turned_w, net.w, X_COLUMNS, HIDDEN);
    turn(turned_x, net.x, X_ROWS, X_COLUMNS);
    g = network_gradient(&net, upstream, &dbias);
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
    free(g);
    free(dbias);
    free(x_gradient);
    free(w_gradient);
}

static void gradients_equal_central_differences(void) {
    gemmepi_epilogue activation;
    for (activation = GEMMEPI_RELU; activation <= ACTIVATION_LAST;
         activation = activation_after(activation)) {
        if (!takes(&f64, activation))
            continue;
        check_network(activation, 0);
        check_network(activation, 1);
    }
}

static void gradients_of_gates_equal_central_differences(void) {
    gemmepi_epilogue activation;
    int upstream;
    for (activation = GEMMEPI_NONE; activation <= ACTIVATION_LAST; activation = activation_after(activation))
        for (upstream = 0; upstream < 2; upstream++) {
            if (!takes(&f64, activation | GEMMEPI_GATED | (upstream ? GEMMEPI_UPSTREAM : 0)))
                continue;
            check_network(activation | GEMMEPI_GATED, upstream);
            check_network(activation | GEMMEPI_GATED | GEMMEPI_GATE_FIRST, upstream);
        }
}

/* >>the mask and the saved pre-activation */

/* Eleven values along a row of the mask; the second row has them negated. Bits past the eleventh stay. */
static void the_mask_has_a_bit_where_v_is_above_zero(void) {
    static const double signs[] = {1, -1};
    double values[] = {0, -0.0, NAN, 1, -1, 6e-8, INFINITY, -INFINITY, 2, -3, 4};
    int t, layout;
    for (t = 0; t < COUNT(special_types); t++)
        for (layout = 0; layout < 2; layout++) {
            problem p =
                typed(special_types[t], layout ? 11 : 2, layout ? 2 : 11, 1, GEMMEPI_RELU | GEMMEPI_AUX);
            run r;
            const unsigned char *before, *after;
            lay_out(&p, layout);
            values[5] = special_types[t] == &e5m2_to_f32 ? 0x1p-16 : 6e-8; /* the smallest there is */
            p.given[layout ? T_A : T_B] = values;
            p.given[layout ? T_B : T_A] = signs;
            CHECK(problem_holds_run(here, &p, NULL, &r), "see above");
            before = r.before + r.tensors[T_AUX].offset;
            after = r.after + r.tensors[T_AUX].offset;
            CHECK(after[0] == 0x68 && (after[1] & 7) == 5, "%s: %02x %02x", special_types[t]->name, after[0],
                  after[1]);
            CHECK(after[16] == 0x90 && (after[17] & 7) == 2, "%s: %02x %02x", special_types[t]->name,
                  after[16], after[17]);
            CHECK((after[1] ^ before[1]) >> 3 == 0 && (after[17] ^ before[17]) >> 3 == 0,
                  "bits past the end changed");
            run_free(&r);
        }
}

static void the_aux_of_forward_feeds_backward(void) {
    gemmepi_epilogue activation;
    int t, layout;
    for (t = 0; t < COUNT(plain_types); t++)
        for (activation = GEMMEPI_RELU; activation <= ACTIVATION_LAST;
             activation = activation_after(activation))
            for (layout = 0; layout < 2; layout++) {
                problem forward = typed(plain_types[t], 20, 33, 9, activation | GEMMEPI_AUX);
                problem backward =
                    typed(plain_types[t], 20, 33, 14, activation | GEMMEPI_BACKWARD | GEMMEPI_BGRAD);
                run saved, used;
                if (!takes(plain_types[t], forward.desc.epilogue))
                    continue;
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

/* The aux of a forward gate, both halves of it, feeds the backward one; and the upstream gradient that this makes of
   one product is what UPSTREAM makes of the other. */
static void saved_and_recomputed_gates_have_the_same_gradients(void) {
    gemmepi_epilogue gate;
    int layout, upstream, i, first;
    for (gate = GEMMEPI_NONE; gate <= ACTIVATION_LAST; gate = activation_after(gate))
        for (first = 0; first < 2; first++)
            for (layout = 0; layout < LAYOUTS; layout++) {
                gemmepi_epilogue e = gate | GEMMEPI_GATED | (first ? GEMMEPI_GATE_FIRST : 0);
                problem p = typed(&f64, 10, 12, 9, e | GEMMEPI_AUX | GEMMEPI_BIAS), back;
                double *saved, *dy, *g[2];
                if (!takes(&f64, e))
                    continue;
                lay_out(&p, layout);
                saved = answer(&p, T_AUX);
                back = typed(&f64, layout % 2 ? 5 : 10, layout % 2 ? 12 : 6, 7, GEMMEPI_NONE);
                lay_out(&back, layout);
                dy = answer(&back, T_D);
                back.desc.epilogue = e | GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
                back.given[T_AUX] = saved;
                g[0] = answer(&back, T_D);
                p.desc.epilogue = e | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS;
                p.given[T_AUX] = dy;
                g[1] = answer(&p, T_D);
                for (i = 0; i < 120; i++)
                    CHECK(fabs(g[0][i] - g[1][i]) <= 1e-13 * (1 + fabs(g[0][i])),
                          "%s: element %d is %.17g saved and %.17g anew", problem_line(&p).text, i, g[0][i],
                          g[1][i]);
                for (upstream = 0; upstream < 2; upstream++)
                    free(g[upstream]);
                free(saved);
                free(dy);
            }
}

/* D as the device leaves it, whatever the oracle's double makes of it. */
static double *values_of(const problem *p) {
    run r;
    double *values;
    run_make(&r, p);
    CHECK(run_execute(&r, p, here, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    values = run_values(&r, T_D);
    run_free(&r);
    return values;
}

/* Of dy, value and act'(gate) in F64, two of which multiply to what is far out of the range, or subnormal, where all three need not, in long
   double: within 16 roundings and four smallest subnormals. */
static void gradients_of_gates_in_f64_fit_where_two_factors_do_not(void) {
    static const struct {
        gemmepi_epilogue activation;
        double parameter, gates[4];
    } rows[] = {{GEMMEPI_SILU, 0, {0.75, -0.5, 3, -400}},
                {GEMMEPI_GELU_ERF, 0, {0.5, -0.25, -3, 9}},
                {GEMMEPI_SQUARED_RELU, 0, {1e200, 2e-200, 7e100, 3e-30}},
                {GEMMEPI_LEAKY_RELU, 3e250, {-1, -1e300, 2, -1e-300}},
                {GEMMEPI_ELU, 1e220, {-0.5, -300, 2, -650}}};
    static const double dys[] = {1e-300, -1e200, 3e160, 1e-30, 2e307, 7e-310, -1},
                        values[] = {1e200, -1e-200, 1e300, 3e-310, 2e-308, -5e-160, 1.5};
    enum { M = COUNT(dys), N = 4 * COUNT(values) };
    static const double ones[N] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static double aux[M * 2 * N];
    int row, i, j, finite = 0;
    if (sizeof(wide) <= sizeof(double))
        SKIP("long double is not wider than double");
    for (row = 0; row < COUNT(rows); row++) {
        problem p = typed(&f64, M, N, 1, rows[row].activation | GEMMEPI_GATED | GEMMEPI_BACKWARD);
        double *got;
        if (rows[row].parameter != 0)
            problem_give_parameter(&p, rows[row].parameter);
        for (i = 0; i < M * N; i++) {
            aux[i / N * 2 * N + i % N] = values[i % N / 4];
            aux[i / N * 2 * N + N + i % N] = rows[row].gates[i % 4];
        }
        p.given[T_A] = dys, p.given[T_B] = ones, p.given[T_AUX] = aux;
        got = values_of(&p);
        for (i = 0; i < M; i++)
            for (j = 0; j < N; j++) {
                wide terms,
                    exact = oracle_wide_derivative((unsigned)rows[row].activation, rows[row].parameter,
                                                   rows[row].gates[j % 4], &terms);
                double d = got[i * 2 * N + N + j];
                exact *= (wide)dys[i] * values[j / 4];
                finite += isfinite(d);
                if (fabsl(exact) > DBL_MAX)
                    CHECK(isinf(d) && (d > 0) == (exact > 0), "%s: %g %g at %g is %g, beyond the range",
                          activation_name(rows[row].activation), dys[i], values[j / 4],
                          rows[row].gates[j % 4], d);
                else
                    CHECK(fabsl(d - exact) <= 16 * 0x1p-53L * fabsl(exact) + 4 * 0x1p-1074L,
                          "%s: %g %g at %g is %.17g, not %.17Lg", activation_name(rows[row].activation),
                          dys[i], values[j / 4], rows[row].gates[j % 4], d, exact);
            }
        free(got);
    }
    CHECK(finite > M * N, "%d numbers are finite", finite);
}

static void run_all(void) {
    RUN(worked_forward_cases_come_out);
    RUN_TYPES(worked_gates_come_out, all_types);
    RUN(worked_backward_cases_come_out);
    RUN(worked_batched_gradients_come_out);
    RUN(gradients_equal_central_differences);
    RUN(gradients_of_gates_equal_central_differences);
    RUN(saved_and_recomputed_gates_have_the_same_gradients);
    RUN(gradients_of_gates_in_f64_fit_where_two_factors_do_not);
    RUN(the_mask_has_a_bit_where_v_is_above_zero);
    RUN(the_aux_of_forward_feeds_backward);
}

int main(void) {
    return run_on_devices(run_all);
}
