/* Networks, forward and backward, against plain loops in double and central differences; on the host and on a GPU if there is one. */
#include "network.h"

static test_device *here;

/* >>activations, with their derivatives written by hand */

static const action actions[] = {{NULL, GEMMEPI_NONE, 1, 0, 0},
                                 {NULL, GEMMEPI_SILU, 1.1, .5, 0},
                                 {NULL, GEMMEPI_TANH, 1, .8, 0},
                                 {NULL, GEMMEPI_SIGMOID, .25, .1, 0},
                                 {NULL, GEMMEPI_GELU_TANH, 1.13, .8, 0},
                                 {"d = sin(2 * v)", 0, 2, 4, 0},
                                 {"d = v * sigmoid(beta * v)", 0, 3, 3, 0},
                                 {"d = tanh(v) * up + rate * v", 0, 2, 1, 0},
                                 {"d = twice * v", 0, 2, 0, 0}, /* its gradient reads no v */
                                 {NULL, GEMMEPI_RELU, 1, 0, 0},
                                 {NULL, GEMMEPI_LEAKY_RELU, 1, 0, -1}};
/* Of many cycles, of which a kernel computes few at a time. */
static const action slow = {"d = log1p(exp(v)) * atan(beta * v) * up + 0.01 * (row - column)", 0, 3, 4, 0};
/* From RELU on they have bends. */
enum { ACTIONS = sizeof actions / sizeof *actions, RELU_IS = ACTIONS - 2 };

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* The result of v, and *slope. i: the layer */
static double act(const network *net, int i, int row, int column, double v, double *slope) {
    const double beta = net->beta[i].at ? net->beta[i].at[column] : 0;
    const double up = net->up[i].at ? net->up[i].at[row * net->width[i] + column] : 0;
    const double rate = net->rate[i].at ? net->rate[i].at[0] : 0;
    const gemmepi_epilogue name = net->acts[i]->activation;
    double s, magnitude;
    if (!net->acts[i]->formula) {
        *slope = oracle_derivative((unsigned)name, net->acts[i]->parameter, v, &magnitude);
        return oracle_activation((unsigned)name, net->acts[i]->parameter, v);
    }
    if (net->acts[i] == &slow) {
        s = log1p(exp(v));
        *slope = (sigmoid(v) * atan(beta * v) + s * beta / (1 + beta * beta * v * v)) * up;
        return s * atan(beta * v) * up + .01 * (row - column);
    }
    switch (net->acts[i] - actions) {
    case 5:
        *slope = 2 * cos(2 * v);
        return sin(2 * v);
    case 6:
        s = sigmoid(beta * v);
        *slope = s + v * beta * s * (1 - s);
        return v * s;
    case 7:
        *slope = (1 - tanh(v) * tanh(v)) * up + rate;
        return tanh(v) * up + rate * v;
    default:
        *slope = 2;
        return 2 * v;
    }
}

/* >>what a network should give */

typedef struct answer {
    double v[MOST_LAYERS][MOST], y[MOST_LAYERS + 1][MOST]; /* y[0]: x, dense */
    double g[MOST], before[MOST];
    double of_y[MOST_LAYERS + 1], of_g; /* bounds of how far they may be off */
} answer;

static double most_of(const double *values, int count) {
    double most = 0;
    int i;
    for (i = 0; i < count; i++)
        most = fabs(values[i]) > most ? fabs(values[i]) : most;
    return most;
}

static double weight(const network *net, int i, int from, int to) {
    const int k = inputs_of(net, i), n = net->width[i];
    return net->w[i].at[has(net, GEMMEPI_NETWORK_TRANSPOSED) ? to * k + from : from * n + to];
}

/* The largest sum of magnitudes of a row or column of w. */
static double gain_of(const network *net, int i, int of_columns) {
    const int k = inputs_of(net, i), n = net->width[i], outer = of_columns ? n : k;
    double most = 0, sum;
    int a, b;
    for (a = 0; a < outer; a++) {
        for (sum = 0, b = 0; b < (of_columns ? k : n); b++)
            sum += fabs(of_columns ? weight(net, i, b, a) : weight(net, i, a, b));
        most = sum > most ? sum : most;
    }
    return most;
}

static double in_sums(const network *net) {
    return net->dtype == GEMMEPI_F64 || net->on->is_host ? 1e-15 : ldexp(1, -24);
}

/* Two factors of a product, of which TF32 has 11 bits. */
static double in_factors(const network *net) {
    return net->is_tf32 && !net->on->is_host ? ldexp(1, -9) : 0;
}

static void forward(const network *net, answer *a) {
    int i, r, j, s;
    double slope;
    for (r = 0; r < net->rows; r++)
        for (s = 0; s < net->input; s++)
            a->y[0][r * net->input + s] = net->x.at[r * net->x_ld + s];
    a->of_y[0] = 0;
    for (i = 0; i < net->count; i++) {
        const int k = inputs_of(net, i), n = net->width[i];
        double sums;
        for (r = 0; r < net->rows; r++)
            for (j = 0; j < n; j++) {
                double v = has(net, GEMMEPI_NETWORK_BIAS) ? net->bias[i].at[j] : 0;
                for (s = 0; s < k; s++)
                    v += a->y[i][r * k + s] * weight(net, i, s, j);
                a->v[i][r * n + j] = v;
                a->y[i + 1][r * n + j] = oracle_round(net->dtype, act(net, i, r, j, v, &slope));
            }
        sums = ((4 + k / 8.0) * in_sums(net) + in_factors(net)) *
               (gain_of(net, i, 1) * most_of(a->y[i], net->rows * k) + 1);
        a->of_y[i + 1] = net->acts[i]->slope * (gain_of(net, i, 1) * a->of_y[i] + sums) +
                         (oracle_roundoff(net->dtype) +
                          ldexp(1, net->dtype >= GEMMEPI_F16 && !net->on->is_host ? -15 : -22) *
                              (net->dtype != GEMMEPI_F64)) *
                             2 * most_of(a->y[i + 1], net->rows * n);
    }
}

static int is_exact; /* what is stored is rounded once, and nothing else is */

static void is_near(const held *from, int place, double want, double by, const char *what, int layer) {
    const double got = from->at[place];
    if (is_exact)
        want = oracle_round(from->dtype, want), by = 0;
    CHECK(fabs(got - want) <= by, "%s of layer %d [%d] is %.9g, not %.9g +- %.2g", what, layer, place, got,
          want, by);
}

static void check_forward(network *net, const answer *a) {
    const int n = net->width[net->count - 1];
    int r, j;
    fetch(net, &net->y);
    for (r = 0; r < net->rows; r++)
        for (j = 0; j < net->y_ld; j++)
            if (j < n)
                is_near(&net->y, r * net->y_ld + j, a->y[net->count][r * n + j], a->of_y[net->count], "y",
                        net->count);
            else
                CHECK(net->y.at[r * net->y_ld + j] == .25, "a gap of y was written at %d", r);
}

/* dw and dbias of a layer, of g. */
static void check_weights(network *net, const answer *a, int i, double old) {
    const int k = inputs_of(net, i), n = net->width[i], transposed = has(net, GEMMEPI_NETWORK_TRANSPOSED);
    const double g = most_of(a->g, net->rows * n), y = most_of(a->y[i], net->rows * k);
    const double u = 2 * oracle_roundoff(net->gradient) + net->rows * in_sums(net);
    int r, j, s;
    fetch(net, &net->dw[i]);
    fetch(net, &net->dbias[i]);
    for (j = 0; j < n; j++) {
        double sum = old;
        for (s = 0; s < k; s++) {
            double want = old;
            for (r = 0; r < net->rows; r++)
                want += a->y[i][r * k + s] * a->g[r * n + j];
            is_near(&net->dw[i], transposed ? j * k + s : s * n + j, want,
                    net->rows * (y * a->of_g + g * a->of_y[i] + y * g * (in_sums(net) + in_factors(net))) +
                        u * (fabs(want) + 1),
                    "dw", i);
        }
        for (r = 0; r < net->rows; r++)
            sum += a->g[r * n + j];
        if (has(net, GEMMEPI_NETWORK_BIAS))
            is_near(&net->dbias[i], j, sum, net->rows * (a->of_g + g * in_sums(net)) + u * (fabs(sum) + 1),
                    "dbias", i);
    }
}

static void check_dx(network *net, const answer *a, double old) {
    int r, s;
    fetch(net, &net->dx);
    for (r = 0; r < net->rows; r++)
        for (s = 0; s < net->x_ld; s++)
            if (s < net->input)
                is_near(&net->dx, r * net->x_ld + s, a->before[r * net->input + s] + old,
                        a->of_g + 2 * oracle_roundoff(net->dtype) * (fabs(a->before[r * net->input + s]) + 1),
                        "dx", 0);
            else
                CHECK(net->dx.at[r * net->x_ld + s] == .25, "a gap of dx was written at %d", r);
}

/* The layers' gradients, from the last to the first, each held against what the library has. */
static void check_backward(network *net, answer *a) {
    const double old = has(net, GEMMEPI_ACCUMULATE_DW) ? .25 : 0, u = oracle_roundoff(net->dtype);
    int i, r, j, s, n = net->width[net->count - 1];
    for (r = 0; r < net->rows; r++)
        for (j = 0; j < n; j++)
            a->before[r * n + j] = net->dy.at[r * net->y_ld + j];
    a->of_g = 0;
    for (i = net->count - 1; i >= 0; i--) {
        const int k = inputs_of(net, i);
        double slope, of_v, dy;
        n = net->width[i];
        dy = most_of(a->before, net->rows * n);
        of_v = gain_of(net, i, 1) *
                   (a->of_y[i] + 12 * in_sums(net) + in_factors(net) * most_of(a->y[i], net->rows * k)) +
               u * most_of(a->v[i], net->rows * n);
        for (r = 0; r < net->rows; r++)
            for (j = 0; j < n; j++) {
                (void)act(net, i, r, j, a->v[i][r * n + j], &slope);
                a->g[r * n + j] = a->before[r * n + j] * slope;
            }
        a->of_g = net->acts[i]->slope * a->of_g +
                  dy * (net->acts[i]->bend * of_v +
                        ldexp(1, net->dtype == GEMMEPI_F64 ? -49 : -15) * (net->acts[i]->slope)) +
                  2 * u * most_of(a->g, net->rows * n);
        if (has(net, GEMMEPI_NETWORK_DW))
            check_weights(net, a, i, old);
        for (r = 0; r < net->rows; r++)
            for (s = 0; s < k; s++) {
                double sum = 0;
                for (j = 0; j < n; j++)
                    sum += a->g[r * n + j] * weight(net, i, s, j);
                a->before[r * k + s] = sum;
            }
        a->of_g = gain_of(net, i, 0) * (a->of_g + most_of(a->g, net->rows * n) *
                                                      ((4 + n / 8.0) * in_sums(net) + in_factors(net))) +
                  u * most_of(a->before, net->rows * k);
    }
    if (has(net, GEMMEPI_NETWORK_DX))
        check_dx(net, a, has(net, GEMMEPI_ACCUMULATE_DX) ? .25 : 0);
}

static void check_network(network *net, uint64_t seed, double step) {
    static answer a;
    net->on = here;
    open_network(net, seed, step);
    run_network(net, (int)(seed & 1));
    forward(net, &a);
    check_forward(net, &a);
    if (has(net, GEMMEPI_NETWORK_DX | GEMMEPI_NETWORK_DW))
        check_backward(net, &a);
    close_network(net);
}

/* >>tests */

static void draw(network *net, rng *random, int acts) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_F64, GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_BF16};
    static const uint64_t flags[] = {GEMMEPI_NETWORK_BIAS,  GEMMEPI_NETWORK_TRANSPOSED, GEMMEPI_NETWORK_SAVED,
                                     GEMMEPI_NETWORK_DX,    GEMMEPI_NETWORK_DW,         GEMMEPI_ACCUMULATE_DX,
                                     GEMMEPI_ACCUMULATE_DW, GEMMEPI_BATCH_INVARIANT};
    static const int rows[] = {1, 2, 17, 64, 129};
    int i;
    memset(net, 0, sizeof *net);
    net->dtype = dtypes[rng_below(random, 4)];
    net->gradient = net->dtype == GEMMEPI_F64 || rng_one_in(random, 2) ? net->dtype : GEMMEPI_F32;
    net->rows = rows[rng_below(random, 5)];
    net->input = 1 + rng_below(random, rng_one_in(random, 2) ? 4 : 40);
    net->count = 1 + rng_below(random, 4);
    for (i = 0; i < net->count; i++) {
        net->width[i] = rng_one_in(random, 2) ? 16 << rng_below(random, 3) : 1 + rng_below(random, 70);
        net->acts[i] = &actions[rng_below(random, acts)];
    }
    for (i = 0; i < 8; i++)
        net->flags |= rng_one_in(random, 2) ? flags[i] : 0;
    if (!has(net, GEMMEPI_NETWORK_DX))
        net->flags &= ~GEMMEPI_ACCUMULATE_DX;
    if (!has(net, GEMMEPI_NETWORK_DW))
        net->flags &= ~GEMMEPI_ACCUMULATE_DW;
    net->x_ld = rng_one_in(random, 2) ? net->input + 3 : 0;
    net->y_ld = rng_one_in(random, 2) ? net->width[net->count - 1] + 5 : 0;
    net->is_tf32 = net->dtype == GEMMEPI_F32 && rng_one_in(random, 2);
}

static void networks_drawn_at_random_are_what_plain_loops_say(void) {
    static network net;
    rng random = rng_seeded(57);
    int i;
    for (i = 0; i < 200; i++) {
        draw(&net, &random, RELU_IS);
        if (test_takes((uint64_t)i * 2 + 1))
            check_network(&net, (uint64_t)i, 0);
    }
}

/* Where there is a kernel for them: of 16 bits, or forward in F32 as TF32, with nothing that is by layers alone, and now and then several tiles for a block. */
static void narrow_networks_run_in_one_kernel(void) {
    static const int rows[] = {3, 40, 129, MOST_ROWS};
    static network net;
    rng random = rng_seeded(59);
    int i, j;
    for (i = 0; i < 120; i++) {
        draw(&net, &random, i % 3 ? RELU_IS : 1);
        net.dtype = net.dtype == GEMMEPI_F64 ? GEMMEPI_F16 : net.dtype;
        net.is_tf32 = net.dtype == GEMMEPI_F32;
        net.gradient = i & 1 ? net.dtype : GEMMEPI_F32;
        net.rows = rows[rng_below(&random, 4)];
        net.flags &= ~(GEMMEPI_NETWORK_SAVED | GEMMEPI_ACCUMULATE_DX);
        if (net.is_tf32)
            net.flags &= ~(GEMMEPI_NETWORK_DX | GEMMEPI_NETWORK_DW | GEMMEPI_ACCUMULATE_DW);
        for (j = 0; j < net.count; j++) {
            net.width[j] = i % 2 ? 8 << rng_below(&random, 4) : net.width[j];
            net.width[j] =
                net.is_tf32 && net.width[j] > 64 ? 64 : net.width[j]; /* more is too much for some chips */
        }
        net.y_ld = net.y_ld ? net.width[net.count - 1] + (i % 3 ? 8 : 5) : 0;
        net.in_one_kernel = 1;
        if (test_takes((uint64_t)i * 2 + 1))
            check_network(&net, (uint64_t)i, 0);
    }
}

/* Backward computes what is long for two values at a time, with their operands and indices. */
static void long_functions_are_what_plain_loops_say(void) {
    static network net;
    static char text[1 << 14];
    gemmepi_plan *plan = NULL;
    int i;
    memset(&net, 0, sizeof net);
    net.on = here, net.dtype = net.gradient = GEMMEPI_F16, net.rows = 141, net.input = 9, net.count = 3;
    net.flags = GEMMEPI_NETWORK_BIAS | GEMMEPI_NETWORK_DX | GEMMEPI_NETWORK_DW;
    for (i = 0; i < 3; i++)
        net.width[i] = 64, net.acts[i] = &slow;
    net.in_one_kernel = 1;
    check_network(&net, 3, 0);
    must(gemmepi_plan_network_backward(here->context, &net.desc, &plan));
    (void)gemmepi_plan_explain(plan, text, sizeof text);
    CHECK(!here->has_fused || strstr(text, "formulas for two values at a time"), "%s", text);
    gemmepi_plan_destroy(plan);
}

/* Of few rows the kernel has another shape. */
static void check_fewer_rows(gemmepi_dtype dtype) {
    enum { FEW = 40, OUT = 5 };
    static network net;
    static double y[FEW * OUT];
    int i;
    memset(&net, 0, sizeof net);
    net.on = here, net.dtype = net.gradient = dtype, net.is_tf32 = dtype == GEMMEPI_F32;
    net.rows = MOST_ROWS, net.input = 20, net.count = 3;
    net.flags = GEMMEPI_NETWORK_BIAS | GEMMEPI_BATCH_INVARIANT;
    net.width[0] = 64, net.width[1] = 48, net.width[2] = OUT;
    net.acts[0] = &actions[1], net.acts[1] = &actions[5], net.acts[2] = &actions[4];
    open_network(&net, 6, 0);
    must(gemmepi_network(here->context, &net.desc, &net.args, here->stream));
    fetch(&net, &net.y);
    memcpy(y, net.y.at, sizeof y);
    net.desc.rows = FEW;
    must(gemmepi_network(here->context, &net.desc, &net.args, here->stream));
    fetch(&net, &net.y);
    for (i = 0; i < FEW * OUT; i++)
        CHECK(net.y.at[i] == y[i], "element %d is %.9g of few rows, %.9g of many", i, net.y.at[i], y[i]);
    close_network(&net);
}

static void rows_have_the_same_bits_whatever_their_number(void) {
    check_fewer_rows(GEMMEPI_F16);
    check_fewer_rows(GEMMEPI_F32);
}

/* Small whole numbers, of which no sum is rounded in any type: bends are where they are. */
static void networks_of_whole_numbers_are_exact(void) {
    static network net;
    rng random = rng_seeded(58);
    int i, j;
    is_exact = 1;
    for (i = 0; i < 64; i++) {
        draw(&net, &random, 1);
        net.count = net.count > 2 ? 2 : net.count;
        net.input = 1 + net.input % 5;
        for (j = 0; j < net.count; j++)
            net.width[j] = 1 + net.width[j] % (j ? 60 : 6),
            net.acts[j] =
                &actions[rng_one_in(&random, 4) ? 0 : RELU_IS + rng_below(&random, ACTIONS - RELU_IS)];
        net.y_ld = 0;
        if (test_takes((uint64_t)i * 2 + 1))
            check_network(&net, (uint64_t)i, 1);
    }
    is_exact = 0;
}

/* The sum of dy y, by the library's own forward. */
static double loss(network *net) {
    double sum = 0;
    int r, j;
    must(gemmepi_network(here->context, &net->desc, &net->args, here->stream));
    fetch(net, &net->y);
    for (r = 0; r < net->rows; r++)
        for (j = 0; j < net->width[net->count - 1]; j++)
            sum += net->y.at[r * net->y_ld + j] * net->dy.at[r * net->y_ld + j];
    return sum;
}

static void check_difference(network *net, held *of, const held *gradient, const char *what) {
    const double step = 1e-5;
    int i;
    for (i = 0; i < of->count; i += 1 + of->count / 7) {
        const double at = of->at[i];
        double above, slope;
        put(net, of, i, at + step), above = loss(net);
        put(net, of, i, at - step), slope = (above - loss(net)) / (2 * step);
        put(net, of, i, at);
        CHECK(fabs(slope - gradient->at[i]) <= 1e-7 * (1 + fabs(slope)),
              "%s[%d] is %.12g, differences say %.12g", what, i, gradient->at[i], slope);
    }
}

/* With gradients of a formula's operand, too, which a layer has from its own backward. */
static void gradients_are_those_of_differences(void) {
    static network net;
    int i, form;
    for (form = 0; form < 12; form++) {
        memset(&net, 0, sizeof net);
        net.on = here, net.dtype = net.gradient = GEMMEPI_F64, net.rows = 5, net.input = 3, net.count = 3;
        net.flags = GEMMEPI_NETWORK_DW | GEMMEPI_NETWORK_DX | GEMMEPI_NETWORK_BIAS;
        net.flags |= form & 1 ? GEMMEPI_NETWORK_SAVED : 0;
        for (i = 0; i < 3; i++)
            net.width[i] = 7 - i, net.acts[i] = &actions[(form / 2 + 3 * i) % RELU_IS];
        open_network(&net, (uint64_t)form, 0);
        for (i = 0; i < 3; i++)
            if (net.beta[i].at)
                add_operand(&net, i, "d_beta", GEMMEPI_PER_COLUMN, &net.dbeta[i], 1);
        run_network(&net, 1);
        fetch(&net, &net.dx);
        check_difference(&net, &net.x, &net.dx, "dx");
        for (i = 0; i < 3; i++) {
            fetch(&net, &net.dw[i]), check_difference(&net, &net.w[i], &net.dw[i], "dw");
            fetch(&net, &net.dbias[i]), check_difference(&net, &net.bias[i], &net.dbias[i], "dbias");
            if (net.beta[i].at)
                fetch(&net, &net.dbeta[i]), check_difference(&net, &net.beta[i], &net.dbeta[i], "dbeta");
        }
        close_network(&net);
    }
}

/* Those of operands are asked for by themselves: layers below have no backward then. */
static void gradients_of_operands_come_alone_too(void) {
    static network net;
    int i, which;
    for (which = 0; which < 3; which++) {
        memset(&net, 0, sizeof net);
        net.on = here, net.dtype = net.gradient = GEMMEPI_F64, net.rows = 5, net.input = 3, net.count = 3;
        for (i = 0; i < 3; i++)
            net.width[i] = 7 - i, net.acts[i] = &actions[i == which ? 6 : 2 + i];
        open_network(&net, (uint64_t)which, 0);
        add_operand(&net, which, "d_beta", GEMMEPI_PER_COLUMN, &net.dbeta[which], 1);
        run_network(&net, 1);
        fetch(&net, &net.dbeta[which]);
        check_difference(&net, &net.beta[which], &net.dbeta[which], "dbeta");
        close_network(&net);
    }
}

/* Without rows there is nothing to write but sums over rows, which are 0. */
static void a_network_without_rows_has_gradients_of_0(void) {
    static network net;
    int i;
    memset(&net, 0, sizeof net);
    net.on = here, net.dtype = net.gradient = GEMMEPI_F32, net.input = 3, net.count = 2;
    net.flags = GEMMEPI_NETWORK_DW | GEMMEPI_NETWORK_DX | GEMMEPI_NETWORK_BIAS;
    net.width[0] = 6, net.width[1] = 2, net.acts[0] = &actions[1], net.acts[1] = &actions[5];
    open_network(&net, 1, 0);
    run_network(&net, 1);
    for (i = 0; i < 2; i++) {
        fetch(&net, &net.dw[i]), fetch(&net, &net.dbias[i]);
        CHECK(most_of(net.dw[i].at, net.dw[i].count) == 0 &&
                  most_of(net.dbias[i].at, net.dbias[i].count) == 0,
              "layer %d has a gradient", i);
    }
    close_network(&net);
}

static void saved_and_made_again_agree(void) {
    static network net;
    static double kept[MOST];
    int saves, i;
    for (saves = 0; saves < 2; saves++) {
        memset(&net, 0, sizeof net);
        net.on = here, net.dtype = net.gradient = GEMMEPI_F64, net.rows = 33, net.input = 5, net.count = 3;
        net.flags = GEMMEPI_NETWORK_DW | GEMMEPI_NETWORK_DX | (saves ? GEMMEPI_NETWORK_SAVED : 0);
        for (i = 0; i < 3; i++)
            net.width[i] = 20, net.acts[i] = &actions[4 + i];
        open_network(&net, 3, 0);
        run_network(&net, 0);
        fetch(&net, &net.dw[0]);
        for (i = 0; i < net.dw[0].count && saves; i++)
            CHECK(fabs(kept[i] - net.dw[0].at[i]) <= 1e-12, "dw[%d] is %.17g and %.17g", i, kept[i],
                  net.dw[0].at[i]);
        memcpy(kept, net.dw[0].at, (size_t)net.dw[0].count * sizeof *kept);
        close_network(&net);
    }
}

/* Fourier features: the first layer's input is made of coordinates. */
static void the_first_layers_input_may_be_made_by_text(void) {
    enum { ROWS = 9, FEATURES = 10, OUT = 3 };
    static network net;
    static double v[ROWS * FEATURES];
    int r, j, s;
    memset(&net, 0, sizeof net);
    net.on = here, net.dtype = net.gradient = GEMMEPI_F64, net.rows = ROWS, net.input = FEATURES,
    net.count = 2;
    net.flags = GEMMEPI_NETWORK_DW;
    net.width[0] = 8, net.width[1] = OUT, net.acts[0] = &actions[6], net.acts[1] = &actions[0];
    open_network(&net, 4, 0);
    net.up[1] = hold(&net, GEMMEPI_F64, FEATURES, NULL, 0, 0);
    for (j = 0; j < FEATURES; j++)
        put(&net, &net.up[1], j, j + .5);
    net.desc.input_formula = "sin(frequency * a)";
    add_operand(&net, 0, "frequency", GEMMEPI_PER_COLUMN, &net.up[1], 0);
    run_network(&net, 1);
    for (r = 0; r < ROWS; r++)
        for (s = 0; s < FEATURES; s++)
            v[r * FEATURES + s] = sin(net.up[1].at[s] * net.x.at[r * FEATURES + s]);
    fetch(&net, &net.y);
    for (r = 0; r < ROWS; r++)
        for (j = 0; j < OUT; j++) {
            double want = 0, slope, hidden;
            for (s = 0; s < net.width[0]; s++) {
                int t;
                for (hidden = 0, t = 0; t < FEATURES; t++)
                    hidden += v[r * FEATURES + t] * net.w[0].at[t * net.width[0] + s];
                want += act(&net, 0, r, s, hidden, &slope) * net.w[1].at[s * OUT + j];
            }
            is_near(&net.y, r * OUT + j, want, 1e-12, "y", 2);
        }
    fetch(&net, &net.dw[0]);
    check_difference(&net, &net.w[0], &net.dw[0], "dw");
    close_network(&net);
}

int main(int argc, char **argv) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(narrow_networks_run_in_one_kernel);
        RUN(long_functions_are_what_plain_loops_say);
        RUN(rows_have_the_same_bits_whatever_their_number);
        if (argc > 1 && strcmp(argv[1], "kernel") == 0) {
            test_device_close(here);
            continue;
        }
        RUN(networks_drawn_at_random_are_what_plain_loops_say);
        RUN(networks_of_whole_numbers_are_exact);
        RUN(gradients_are_those_of_differences);
        RUN(gradients_of_operands_come_alone_too);
        RUN(a_network_without_rows_has_gradients_of_0);
        RUN(saved_and_made_again_agree);
        RUN(the_first_layers_input_may_be_made_by_text);
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
