/* dense [samples]: each activation, its derivative and its gradients as a gate in F64, over dense samples of all exponents and
   where the functions bend, against long double: within f(x (1 + d)) (1 + e), |d| <= 2u, |e| <= 4u, or 4u of the largest term
   that is added, and one smallest subnormal; a product with a factor is one rounding more. With GATED a factor that is large or
   small meets what is subnormal or overflows by itself. Runs on the devices that GEMMEPI_TEST_DEVICE names. */
#include "products/problem.h"

#include <float.h>

static test_device *here;
static long samples = 30000;

static const double U = DBL_EPSILON / 2;
static const wide SMALLEST = 0x1p-1074L;

typedef struct column {
    double *host;
    void *device;
} column;

static column a, b, dy, da, db;

static void column_open(column *c) {
    c->host = malloc((size_t)samples * sizeof(double));
    CHECK(gemmepi_alloc(here->context, (size_t)samples * sizeof(double), &c->device) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
}
static void column_close(column *c) {
    free(c->host);
    gemmepi_free(here->context, c->device);
}
static void column_up(const column *c) {
    CHECK(gemmepi_upload(here->context, c->device, c->host, (size_t)samples * sizeof(double), NULL) ==
              GEMMEPI_OK,
          "%s", gemmepi_last_error());
}
static void column_down(const column *c) {
    CHECK(gemmepi_download(here->context, c->host, c->device, (size_t)samples * sizeof(double), NULL) ==
              GEMMEPI_OK,
          "%s", gemmepi_last_error());
}
static gemmepi_tensor line_of(const column *c, const int64_t *shape) {
    gemmepi_tensor t = {0};
    t.data = c->device;
    t.dtype = GEMMEPI_F64;
    t.rank = 1;
    t.shape = shape;
    return t;
}

/* >>samples */

static double uniform(rng *r) {
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

/* Where a form ends, and where results become subnormal or 0. */
static const double bends[] = {0,    1,    0.75, 1.28,  3,     5,     6,       13,      15,     20,
                               26.5, 27.2, 30,   36,    37.5,  38.5,  39,      40,      41,     64,
                               300,  350,  355,  372.5, 416,   437,   600,     700,     708.4,  709.8,
                               720,  745,  750,  1000,  1e100, 1e300, DBL_MAX, DBL_MIN, 1e-310, 1e-160};

static double sample(rng *r) {
    double x;
    switch (rng_below(r, 6)) {
    case 0:
        x = (2 * uniform(r) - 1) * 5;
        break;
    case 1:
        x = (2 * uniform(r) - 1) * 42;
        break;
    case 2:
        x = (2 * uniform(r) - 1) * 760;
        break;
    case 3:
        x = ldexp(1 + uniform(r), rng_below(r, 2040) - 1050) * (rng_below(r, 2) ? 1 : -1);
        break;
    case 4:
        x = -36.5 - 3 * uniform(r); /* where Phi is subnormal */
        break;
    default:
        x = bends[rng_below(r, (int)(sizeof bends / sizeof bends[0]))] *
            (1 + (rng_below(r, 9) - 4) * DBL_EPSILON) * (rng_below(r, 2) ? 1 : -1);
    }
    return fabs(x) <= DBL_MAX ? x : 1;
}

/* A factor of any exponent. */
static double factor(rng *r) {
    return ldexp(1 + uniform(r), rng_below(r, 2) ? rng_below(r, 2000) - 1000 : rng_below(r, 20) - 10) *
           (rng_below(r, 2) ? 1 : -1);
}

/* >>bounds */

typedef struct want {
    wide value, bound;
} want;

static want want_function(unsigned activation, int derivative, double parameter, double x) {
    wide terms, unused, there[2];
    want w;
    int side;
    w.value = derivative ? oracle_wide_derivative(activation, parameter, x, &terms)
                         : oracle_wide_activation(activation, parameter, x);
    w.bound = 0;
    if (!derivative)
        terms = w.value;
    for (side = 0; side < 2; side++) {
        wide near = x * (1 + (side ? 2 : -2) * (wide)U);
        there[side] = derivative ? oracle_wide_derivative(activation, parameter, near, &unused)
                                 : oracle_wide_activation(activation, parameter, near);
        /* a step of a derivative is no room */
        if (!(derivative && activation_has(activation, ACTIVATION_JUMPS)))
            w.bound = fmaxl(w.bound, fabsl(there[side] - w.value));
    }
    w.bound = fmaxl(w.bound * (1 + 4 * (wide)U) + 4 * (wide)U * fabsl(w.value), 4 * (wide)U * fabsl(terms));
    w.bound += SMALLEST;
    return w;
}

static double worst;

static void check(const char *what, unsigned activation, double x, double got, want w, wide times,
                  int factors) {
    wide value = w.value * times;
    wide bound = fabsl(times) * w.bound + factors * (wide)U * fabsl(value) + (factors ? SMALLEST : 0), off;
    if (isnan(value) || isinf((double)value)) {
        CHECK(isnan(value) ? isnan(got) : got == (double)value || fabsl(value) <= DBL_MAX,
              "%s %u of %.17g: %.17g, not %Lg", what, activation, x, got, value);
        return;
    }
    if (isinf(got) && fabsl(value) + bound >= (wide)DBL_MAX)
        return;
    off = fabsl(got - value) / bound;
    worst = off > worst ? (double)off : worst;
    CHECK(off <= 1, "%s %u of %.17g: %.17g, not %.20Lg: %.3Lf of the bound", what, activation, x, got, value,
          off);
}

/* >>the tests */

static void begin_columns(void) {
    column_open(&a), column_open(&b), column_open(&dy), column_open(&da), column_open(&db);
}
static void end_columns(void) {
    column_close(&a), column_close(&b), column_close(&dy), column_close(&da), column_close(&db);
}

static void each_activation_and_derivative_in_f64_is_within_its_bound(void) {
    unsigned activation;
    long i;
    begin_columns();
    for (activation = GEMMEPI_RELU; activation <= ACTIVATION_LAST;
         activation = (unsigned)activation_after(activation)) {
        double parameter = oracle_parameter(activation, 0);
        int64_t shape[1];
        gemmepi_tensor ta, ty, tdy;
        rng r = rng_seeded(activation);
        shape[0] = samples;
        for (i = 0; i < samples; i++) {
            a.host[i] = sample(&r);
            dy.host[i] = 1;
        }
        column_up(&a), column_up(&dy);
        ta = line_of(&a, shape), tdy = line_of(&dy, shape), ty = line_of(&da, shape);
        CHECK(gemmepi_activation(here->context, activation, NAN, &ta, &ty, NULL) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        column_down(&da);
        for (worst = i = 0; i < samples; i++)
            check("activation", activation, a.host[i], da.host[i],
                  want_function(activation, 0, parameter, a.host[i]), 1, 0);
        if (getenv("V"))
            printf("  activation %u: %.3f\n", activation, worst);
        CHECK(gemmepi_activation_backward(here->context, activation, NAN, &ta, &tdy, &ty, NULL) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        column_down(&da);
        for (worst = i = 0; i < samples; i++)
            check("derivative", activation, a.host[i], da.host[i],
                  want_function(activation, 1, parameter, a.host[i]), 1, 0);
        if (getenv("V"))
            printf("  derivative %u: %.3f\n", activation, worst);
    }
    end_columns();
}

/* y = value act(gate), and of dy 1 that; the factors are a's here, b the gate. */
static void each_gate_in_f64_is_within_its_bound_whatever_it_is_multiplied_by(void) {
    unsigned activation;
    long i;
    begin_columns();
    for (activation = GEMMEPI_RELU; activation <= ACTIVATION_LAST;
         activation = (unsigned)activation_after(activation)) {
        double parameter = oracle_parameter(activation, 0);
        int64_t shape[1];
        gemmepi_tensor ta, tb, tdy, tda, tdb;
        gemmepi_elementwise_desc desc;
        rng r = rng_seeded(activation + 100);
        shape[0] = samples;
        for (i = 0; i < samples; i++) {
            a.host[i] = factor(&r);
            b.host[i] = sample(&r);
            dy.host[i] = rng_below(&r, 2) ? 1 : factor(&r);
        }
        column_up(&a), column_up(&b), column_up(&dy);
        ta = line_of(&a, shape), tb = line_of(&b, shape), tdy = line_of(&dy, shape);
        tda = line_of(&da, shape), tdb = line_of(&db, shape);
        memset(&desc, 0, sizeof desc);
        desc.operation = GEMMEPI_OP_GATED_BACKWARD;
        desc.activation = activation;
        desc.a = &ta, desc.b = &tb, desc.dy = &tdy, desc.da = &tda, desc.db = &tdb;
        CHECK(gemmepi_elementwise(here->context, &desc, NULL, NULL) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        column_down(&da), column_down(&db);
        for (worst = i = 0; i < samples; i++)
            check("a gate's value", activation, b.host[i], da.host[i],
                  want_function(activation, 0, parameter, b.host[i]), dy.host[i], 2);
        if (getenv("V"))
            printf("  value %u: %.3f\n", activation, worst);
        for (worst = i = 0; i < samples; i++)
            check("a gate's gradient", activation, b.host[i], db.host[i],
                  want_function(activation, 1, parameter, b.host[i]), (wide)dy.host[i] * a.host[i], 3);
        if (getenv("V"))
            printf("  gradient %u: %.3f\n", activation, worst);
    }
    end_columns();
}

int main(int argc, char **argv) {
    test_device devices[2];
    int opened = test_devices_open(devices), i;
    if (argc > 1)
        samples = strtol(argv[1], NULL, 10);
    for (i = 0; i < opened; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(each_activation_and_derivative_in_f64_is_within_its_bound);
        RUN(each_gate_in_f64_is_within_its_bound_whatever_it_is_multiplied_by);
        test_device_close(here);
    }
    return test_finish() || opened == 0;
}
