/* Formulas on the host, held against plain C, and their bounds. */
#include "formula_cases.h"

/* >>of one unit */

static estimate here[4 * GPI__GRAPH_NODES];
static double scale_of_d; /* 0: there is none */

/* The value of D with v, r and u as given, all exact. */
static estimate value_of(const char *text, gemmepi_dtype accumulator, gemmepi_dtype d, estimate v, estimate r,
                         estimate u) {
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gpi__formula *f = parsed(text, accumulator, d);
    bounded_unit unit;
    estimate out = {0, 0};
    int i, count = operands_of(text, operands);
    CHECK(f != NULL, "%s: %s", text, gemmepi_last_error());
    if (!f)
        return out;
    memset(&unit, 0, sizeof unit);
    unit.value[0] = v;
    unit.scales_d = scale_of_d != 0, unit.scale_d = scale_of_d;
    for (i = 0; i < count; i++)
        unit.operands[i][0] = strcmp(operands[i].name, "r") == 0 ? r : u;
    evaluate_bounded(f, &unit, here);
    out = bounded_output(f, here, GPI__RESULT, 0);
    freed(f);
    return out;
}

static estimate exactly(double x) {
    estimate e;
    e.value = x;
    e.bound = 0;
    return e;
}

static estimate about(double x, double bound) {
    estimate e;
    e.value = x;
    e.bound = bound;
    return e;
}

static int same(double x, double y) {
    return x == y || (x != x && y != y);
}

/* With v, r and u; `expected` is plain C. */
#define COMPUTES(text, expected)                                                                         \
    do {                                                                                                 \
        int i_;                                                                                          \
        for (i_ = 0; i_ < 40; i_++) {                                                                    \
            double v = random_number(), r = random_number(), u = random_number(), want = (expected);     \
            estimate got = value_of(text, GEMMEPI_F64, GEMMEPI_F64, exactly(v), exactly(r), exactly(u)); \
            (void)r, (void)u, (void)v;                                                                   \
            CHECK(same(got.value, want) || fabs(got.value - want) <= 4 * got.bound + 1e-15 * fabs(want), \
                  "%s of %.17g, %.17g, %.17g: %.17g, not %.17g", text, v, r, u, got.value, want);        \
        }                                                                                                \
    } while (0)

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static void operators_and_functions_compute_what_c_does(void) {
    COMPUTES("d = v + r * u - 3", v + r * u - 3);
    COMPUTES("d = -(v / (r + 5)) * u", -(v / (r + 5)) * u);
    COMPUTES("d = v < r ? u : v >= 1 ? -u : 7", v < r ? u : v >= 1 ? -u : 7);
    COMPUTES("d = (v < r) + 2 * (v > u) + 4 * (v <= 0.5) + 8 * (u != v)",
             (v < r) + 2 * (v > u) + 4 * (v <= 0.5) + 8 * (u != v));
    COMPUTES("d = v > 0 && r > 0 || !(u > 0)", (v > 0 && r > 0) || !(u > 0));
    COMPUTES("d = floor(v * 4)", floor(v * 4));
    COMPUTES("d = round(v * 4)", rint(v * 4));
    COMPUTES("d = sign(v) + 2 * sign(u * u)", (v > 0 ? 1 : v < 0 ? -1 : v) + (u != 0 ? 2 : 0));
    COMPUTES("d = isnan(sign(v)) + isnan(sign(1 / (v - v) - 1 / (v - v)))", isnan(v) + 1);
    COMPUTES("d = abs(v) + min(r, u) * max(v, u) - clamp(r, -0.5, 1)",
             fabs(v) + fmin(r, u) * fmax(v, u) - fmin(fmax(r, -0.5), 1));
    COMPUTES("d = exp(v) + exp2(r) * expm1(u)", exp(v) + exp2(r) * expm1(u));
    COMPUTES("d = log(v + 3) + log2(r + 3) * log1p(u + 2.5)", log(v + 3) + log2(r + 3) * log1p(u + 2.5));
    COMPUTES("d = pow(v + 3, r) + sqrt(u + 3) * rsqrt(v + 3)", pow(v + 3, r) + sqrt(u + 3) / sqrt(v + 3));
    COMPUTES("d = sin(v * 9) + cos(r) * tanh(u) - erf(v)", sin(v * 9) + cos(r) * tanh(u) - erf(v));
    COMPUTES("d = mod(v * 8, r + 5)", fmod(v * 8, r + 5));
    COMPUTES("d = fma(v, r, u)", v * r + u);
    COMPUTES("d = isnan(v / r * 0)", 0);
    COMPUTES("d = silu(v) + sigmoid(r) * relu(u)", v * sigmoid(v) + sigmoid(r) * (u > 0 ? u : 0));
    COMPUTES("d = d_silu(v) * d_sigmoid(r)", sigmoid(v) * (1 + v * sigmoid(-v)) * sigmoid(r) * sigmoid(-r));
    COMPUTES("d = gelu_erf(v) - elu(r) + elu(u, 0.5) + leaky_relu(v)",
             v * erfc(-v * sqrt(0.5)) / 2 - (r > 0 ? r : expm1(r)) + (u > 0 ? u : 0.5 * expm1(u)) +
                 (v > 0 ? v : 0.01 * v));
    COMPUTES("d = d_elu(r, 3) + d_relu(v) + d_leaky_relu(u, 7)",
             (r > 0 ? 1 : 3 * exp(r)) + (v > 0) + (u > 0 ? 1 : 7));
    COMPUTES("d = softplus(v) + hardsigmoid(r) * squared_relu(u)",
             log1p(exp(v)) + fmin(fmax(r + 3, 0), 6) / 6 * (u > 0 ? u * u : 0));
    COMPUTES("x = v * r; d = x * x; o = d + u", v * r * v * r);
}

static double of_f64(const char *text, double v, double r) {
    return value_of(text, GEMMEPI_F64, GEMMEPI_F64, exactly(v), exactly(r), exactly(0)).value;
}

static void functions_that_are_short_for_others_compute_what_c_does(void) {
    COMPUTES("d = ceil(v * 4) + 2 * trunc(r * 4)", ceil(v * 4) + 2 * trunc(r * 4));
    COMPUTES("d = sinh(v * 9)", sinh(v * 9));
    COMPUTES("d = cosh(v * 9)", cosh(v * 9));
    COMPUTES("d = tan(v)", tan(v));
    COMPUTES("d = atan(v * 5)", atan(v * 5));
    COMPUTES("d = erfc(v * 4)", erfc(v * 4));
    COMPUTES("d = logaddexp(v * 9, r * 9)", log(exp(v * 9) + exp(r * 9)));
    COMPUTES("d = v * pi", v * 3.14159265358979323846);
}

static void functions_that_are_short_for_others_are_right_at_their_ends(void) {
    const double inf = HUGE_VAL;
    static const double far[] = {1e-9, 700, 710.3, -710.3};
    size_t i;
    for (i = 0; i < GPI__COUNT(far); i++) {
        CHECK(fabs(of_f64("d = sinh(v)", far[i], 0) / sinh(far[i]) - 1) < 1e-15, "sinh(%g)", far[i]);
        CHECK(fabs(of_f64("d = cosh(v)", far[i], 0) / cosh(far[i]) - 1) < 2e-15, "cosh(%g)", far[i]);
    }
    CHECK(fabs(of_f64("d = erfc(v)", 10, 0) / 2.0884875837625447e-45 - 1) < 1e-14, "erfc(10)");
    CHECK(of_f64("d = cosh(v)", -inf, 0) == inf && of_f64("d = sinh(v)", -inf, 0) == -inf, "of -inf");
    CHECK(of_f64("d = logaddexp(v, r)", inf, inf) == inf, "of two infinities");
    CHECK(of_f64("d = logaddexp(v, r)", -inf, -inf) == -inf, "of two negative infinities");
    CHECK(of_f64("d = logaddexp(v, r)", -1e30, 1) == 1, "of what is masked");
    CHECK(isnan(of_f64("d = logaddexp(v, r)", NAN, 1)) && isnan(of_f64("d = trunc(v)", NAN, 1)), "of NaN");
    CHECK(signbit(of_f64("d = ceil(v)", -0.5, 0)) && signbit(of_f64("d = trunc(v)", -0.5, 0)), "-0");
    CHECK(of_f64("d = isinf(v) + 2 * isinf(r)", -inf, 3) == 1 && of_f64("d = isinf(v)", NAN, 3) == 0,
          "isinf");
    CHECK(of_f64("d = v < inf ? inf : -inf", 1, 0) == inf, "inf");
}

#define IS(text, v, r, expected)                                                                        \
    do {                                                                                                \
        estimate got_ = value_of(text, GEMMEPI_F32, GEMMEPI_BF16, exactly(v), exactly(r), exactly(0));  \
        CHECK(same(got_.value, (expected)), "%s of %g and %g is %.17g", text, (double)(v), (double)(r), \
              got_.value);                                                                              \
    } while (0)

static void nan_goes_where_it_should_and_nowhere_else(void) {
    const double nan = NAN, inf = HUGE_VAL;
    IS("d = min(v, r)", nan, 1, nan);
    IS("d = min(v, r)", 1, nan, nan);
    IS("d = max(v, r)", nan, 1, nan);
    IS("d = max(v, r)", 1, nan, nan);
    IS("d = clamp(v, 0, 1)", nan, 0, nan);
    IS("d = clamp(0.5, v, r)", nan, 1, nan);
    IS("d = clamp(0.5, v, r)", 0, nan, nan);
    IS("d = v > 0 ? v : r", nan, 2, 2);
    IS("d = v > 0 ? r : v", 3, nan, nan);
    IS("d = v > 0 ? v : r", 3, nan, 3);
    IS("d = isnan(v) ? r : v", nan, 5, 5);
    IS("d = isnan(v)", inf, 0, 0);
    IS("d = isnan(v)", -inf, 0, 0);
    IS("d = v == v", nan, 0, 0);
    IS("d = v != v", nan, 0, 1);
    IS("d = (v ? 1 : 2)", nan, 0, 1);
    IS("d = relu(v)", nan, 0, nan);
    IS("d = v - r", inf, inf, nan);
    IS("d = v == r", inf, inf, 1);
    IS("d = 0 * v", inf, 0, nan);
    IS("d = v / r", 1, 0, inf);
}

static void zeros_have_the_signs_that_ieee_754_gives_them(void) {
    static const struct {
        const char *text;
        double v, r;
        int is_negative;
    } cases[] = {
        {"d = -v", 0, 0, 1},          {"d = -v", -0.0, 0, 0},        {"d = 0 - v", 0, 0, 0},
        {"d = abs(v)", -0.0, 0, 0},   {"d = sign(v)", -0.0, 0, 1},   {"d = sign(v)", 0.0, 0, 0},
        {"d = v * r", 0, -1, 1},      {"d = v / r", 0, -1, 1},       {"d = v + r", -0.0, 0, 0},
        {"d = v + r", -0.0, -0.0, 1}, {"d = round(v)", -0.25, 0, 1}, {"d = sqrt(v)", -0.0, 0, 1},
        {"d = mod(v, r)", -4, 2, 1},  {"d = relu(v)", -1, 0, 0},     {"d = v > 1 ? r : v", -0.0, 1, 1},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        double got = value_of(cases[i].text, GEMMEPI_F32, GEMMEPI_F32, exactly(cases[i].v),
                              exactly(cases[i].r), exactly(0))
                         .value;
        CHECK(got == 0 && !signbit(got) == !cases[i].is_negative, "%s of %g and %g is %g", cases[i].text,
              cases[i].v, cases[i].r, got);
    }
}

static void halves_round_to_even_and_ties_are_held(void) {
    IS("d = round(v)", 0.5, 0, 0);
    IS("d = round(v)", 1.5, 0, 2);
    IS("d = round(v)", 2.5, 0, 2);
    IS("d = round(v)", -2.5, 0, -2);
    IS("d = clamp(v, 1, -1)", 0, 0, -1); /* min(max(x, low), high) */
    IS("d = mod(v, r)", -7, 3, -1);
    IS("d = mod(v, r)", 7, -3, 1);
    IS("d = rounded(v)", 1.00390625, 0, 1); /* BF16: a tie, to even */
    IS("d = rounded(v)", 1.01171875, 0, 1.015625);
    IS("d = d_hardswish(v)", -3, 0, 0);
    IS("d = d_relu(v)", 0, 0, 0);
}

/* >>bounds */

#define BOUND(text, v, r, least, most)                                                             \
    do {                                                                                           \
        estimate got_ = value_of(text, GEMMEPI_F32, GEMMEPI_BF16, v, r, exactly(0));               \
        CHECK(got_.bound >= (least) && got_.bound <= (most), "%s: %.9g +- %.9g", text, got_.value, \
              got_.bound);                                                                         \
    } while (0)

static const double U = 1.0 / 16777216;

static void exact_arithmetic_has_no_bound(void) {
    BOUND("d = v + r", exactly(1.5), exactly(2.25), 0, 0);
    BOUND("d = v * r - 3", exactly(1.5), exactly(2.25), 0, 0);
    BOUND("d = v / r", exactly(3), exactly(4), 0, 0);
    BOUND("d = -max(v, r)", exactly(3), exactly(4), 0, 0);
    BOUND("d = v > r ? v : r", exactly(3), exactly(4), 0, 0);
    BOUND("d = 2 * v == r", exactly(3), exactly(6), 0, 0);
}

static void every_step_adds_its_rounding(void) {
    BOUND("d = v + r", exactly(1), exactly(U), U,
          1.2 * U); /* half a unit in the last place of 1 is u, of F32 */
    BOUND("d = v * 0.1", exactly(1), exactly(0), 0.1 * U, 0.3 * U);
    BOUND("d = v + r", about(1, 1e-3), about(2, 1e-4), 1.1e-3, 1.1e-3 + 4 * U);
    BOUND("d = v - r", about(1, 1e-3), about(1, 1e-3), 2e-3, 2e-3 + U);
    BOUND("d = v * r", about(3, 1e-3), about(-5, 1e-4), 5.3e-3, 5.31e-3);
    BOUND("d = v / r", about(3, 1e-3), about(5, 0), 2e-4, 2.01e-4);
    BOUND("d = exp(v)", about(2, 1e-3), exactly(0), 7.38e-3, 7.40e-3);
    BOUND("d = exp(v)", exactly(2), exactly(0), 4 * U, 32 * U); /* two units in the last place */
    BOUND("d = sqrt(v)", exactly(2), exactly(0), U, 2 * U);
    BOUND("d = silu(v)", about(1, 1e-3), exactly(0), 9e-4,
          9.4e-4); /* its slope is 0.93, its form the short one */
    BOUND("d = sin(v)", about(1, 5), exactly(0), 1.9, 2.1);
}

static void what_may_jump_spans_both_results(void) {
    BOUND("d = floor(v)", about(1.9999, 1e-3), exactly(0), 1, 1);
    BOUND("d = floor(v)", about(1.5, 1e-3), exactly(0), 0, 0);
    BOUND("d = round(v)", about(1.4999, 1e-3), exactly(0), 1, 1);
    BOUND("d = v > r", about(1, 1e-3), about(1.0005, 0), 1, 1);
    BOUND("d = v > r", about(1, 1e-3), about(1.002, 0), 0, 0);
    BOUND("d = v > r ? 10 : 3", about(1, 1e-3), about(1.0005, 0), 7, 7);
    BOUND("d = v > r ? 10 : 3", about(1, 1e-3), about(2, 0), 0, 0);
    BOUND("d = v > r && r > 5", about(1, 1e-3), about(1.0005, 0), 0, 0); /* the second decides */
    BOUND("d = v > r || r > 1", about(1, 1e-3), about(1.0005, 0), 0, 0);
    BOUND("d = !(v > r)", about(1, 1e-3), about(1.0005, 0), 1, 1);
    BOUND("d = mod(v, r)", about(5.9999, 1e-3), exactly(2), 1.9, 2.1);
    BOUND("d = mod(v, r)", about(5, 1e-3), exactly(2), 1e-3, 1.1e-3);
    BOUND("d = v / r", about(1, 0), about(1e-4, 1e-3), HUGE_VAL, HUGE_VAL);
    BOUND("d = log(v)", about(1e-4, 1e-3), exactly(0), HUGE_VAL, HUGE_VAL);
    BOUND("d = d_relu(v)", about(1e-4, 1e-3), exactly(0), 1, 1.01);
    BOUND("d = rounded(v)", about(1.00390625, 1e-6), exactly(0), 0.0078125, 0.0078125);
    BOUND("d = rounded(v)", about(1.001, 1e-6), exactly(0), 0, 0);
    BOUND("d = abs(v)", about(1e-4, 1e-3), exactly(0), 1e-3, 1e-3);
    BOUND("d = sign(v)", about(1, 1e-3), exactly(0), 0, 0);
    BOUND("d = pow(v, 2)", about(1e-4, 1e-3), exactly(0), 1.2e-6, 1.4e-6);
}

/* >>docs/numerics.md: the table whose rows begin with names in backticks */

/* The row of an operation by the text between two backticks, in which | has a backslash ahead; -1: none. */
static int operation_called(const char *name, size_t length) {
    int op;
    if (length == 4 && memcmp(name, "\\|\\|", 4) == 0)
        return GPI__OP_OR;
    for (op = GPI__LEAVES; op < GPI__OP_ACTIVATE; op++)
        if (strlen(gpi__operation_of(op)->name) == length &&
            memcmp(gpi__operation_of(op)->name, name, length) == 0)
            return op;
    return -1;
}

/* A row of the table: its names, and the errors behind them. */
static void check_row_of_document(const char *line, int *seen) {
    const char *at = line, *cells = strstr(line, "` | ");
    double f32 = -1, f64 = -1;
    CHECK(cells && sscanf(cells + 4, "%lf | %lf |", &f32, &f64) == 2, "%s", line);
    while (cells && (at = strchr(at, '`')) != NULL && at < cells) {
        const char *end = strchr(at + 1, '`');
        int op = operation_called(at + 1, (size_t)(end - at) - 1);
        CHECK(op >= 0, "no operation is called %.*s", (int)(end - at) - 1, at + 1);
        CHECK(op < 0 || (gpi__operation_of(op)->ulps_f32 == f32 && gpi__operation_of(op)->ulps_f64 == f64),
              "%.*s is off by %g and %g, not %g and %g", (int)(end - at) - 1, at + 1,
              op < 0 ? 0 : gpi__operation_of(op)->ulps_f32, op < 0 ? 0 : gpi__operation_of(op)->ulps_f64, f32,
              f64);
        if (op >= 0)
            seen[op]++;
        at = end + 1;
    }
}

static void errors_of_functions_are_those_of_the_document(void) {
    FILE *file = fopen("docs/numerics.md", "r");
    int seen[GPI__OPS] = {0}, op, rows = 0;
    char line[1024];
    file = file ? file : fopen("../docs/numerics.md", "r");
    CHECK(file != NULL, "docs/numerics.md is not found");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "| `", 3) == 0)
            check_row_of_document(line, seen), rows++;
    if (file)
        fclose(file);
    CHECK(rows >= 5, "%d rows", rows);
    for (op = GPI__LEAVES; op < GPI__OP_ACTIVATE; op++) /* of the two - the first */
        CHECK(seen[op] == (op != GPI__OP_NEG), "%s is there %d times", gpi__operation_of(op)->name, seen[op]);
}

/* Of arguments that are exact, by what the table says, and the host's own rounding. */
static void bounds_of_functions_are_those_of_the_table(void) {
    int op, is_f64;
    for (op = GPI__OP_EXP; op <= GPI__OP_ERF; op++)
        for (is_f64 = 0; is_f64 < 2; is_f64++) {
            const gpi__operation_of_formula *row = gpi__operation_of(op);
            double ulps = is_f64 ? row->ulps_f64 : row->ulps_f32, unit = is_f64 ? 0x1p-52 : 0x1p-23;
            gemmepi_dtype dtype = is_f64 ? GEMMEPI_F64 : GEMMEPI_F32;
            estimate got;
            char text[32];
            snprintf(text, sizeof text, row->least == 2 ? "d = %s(v, r)" : "d = %s(v)", row->name);
            got = value_of(text, dtype, dtype, exactly(0.7), exactly(1.3), exactly(0));
            CHECK(got.bound >= ulps * unit * fabs(got.value) &&
                      got.bound <= (ulps + (is_f64 ? 1.01 : 0.01)) * unit * fabs(got.value),
                  "%s in %s: %g +- %g", text, is_f64 ? "F64" : "F32", got.value, got.bound);
        }
}

/* rounded(v) of D in E4M3 with a scale. E4M3's steps are 16 from 128 to 256, 32 from 256 to 448. */
static void check_rounded(double scale, estimate v, double value, double least, double most) {
    estimate got;
    scale_of_d = scale;
    got = value_of("d = rounded(v)", GEMMEPI_F32, GEMMEPI_E4M3, v, exactly(0), exactly(0));
    scale_of_d = 0;
    CHECK(got.value == value && got.bound >= least && got.bound <= most, "%g of %g: %.9g +- %.9g", scale,
          v.value, got.value, got.bound);
}

static void what_is_beyond_f32_rounds_to_an_infinity_of_its_sign(void) {
    int is_bf16;
    for (is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        gemmepi_dtype d = is_bf16 ? GEMMEPI_BF16 : GEMMEPI_F32;
        CHECK(value_of("d = rounded(v)", GEMMEPI_F32, d, exactly(-1e39), exactly(0), exactly(0)).value ==
                      -HUGE_VAL &&
                  value_of("d = rounded(v)", GEMMEPI_F32, d, exactly(1e39), exactly(0), exactly(0)).value ==
                      HUGE_VAL,
              "type %d", (int)d);
    }
}

static void rounded_is_what_d_stands_for_by_its_scale(void) {
    check_rounded(0, exactly(1000), 448, 0, 0);
    check_rounded(0.25, exactly(1000), 1024, 0, 0);
    check_rounded(0.25, exactly(-1e6), -1792, 0, 0);
    check_rounded(0.25, exactly(992), 1024, 0, 0); /* a tie, to even, that is exact */
    check_rounded(0.25, about(1000, 5), 1024, 0, 0);
    check_rounded(0.25, about(1000, 9), 1024, 64, 64.1);    /* over the tie at 992 */
    check_rounded(0.1, exactly(2000), 192 / 0.1, 160, 161); /* 200, a tie for 0.1, and more for F32's */
    check_rounded(0.1, exactly(2100), 208 / 0.1, 1e-5, 1e-3);
    check_rounded(1e-30, exactly(1.01e32), 104 / 1e-30, 1e24, 1e26);
}

/* Every formula at numbers moved within their bounds, in all corners that a generator finds. */
static void bounds_cover_what_inputs_within_theirs_give(void) {
    static data d, moved;
    size_t i, count = GPI__COUNT(smooth_formulas);
    int turn, o, at, checked = 0;
    for (i = 0; i < count + GPI__COUNT(other_formulas); i++) {
        const char *text = i < count ? smooth_formulas[i] : other_formulas[i - count];
        gpi__formula *f = parsed(text, GEMMEPI_F64, GEMMEPI_F64);
        CHECK(f != NULL, "%s: %s", text, gemmepi_last_error());
        if (!f)
            continue;
        for (turn = 0; turn < 6; turn++) {
            fill_randomly(f, &d);
            for (at = 0; at < MOST; at++) {
                d.value.at[at].bound = turn % 2 ? 0.05 : 1e-6;
                for (o = 0; o < f->operand_count; o++)
                    d.operands[o].at[at].bound = turn % 2 ? 0.03 : 1e-6;
            }
            moved = d;
            for (at = 0; at < MOST; at++) {
                moved.value.at[at].value += moved.value.at[at].bound * random_number() / 2;
                moved.value.at[at].bound = 0;
                for (o = 0; o < f->operand_count; o++) {
                    moved.operands[o].at[at].value += moved.operands[o].at[at].bound * random_number() / 2;
                    moved.operands[o].at[at].bound = 0;
                }
            }
            run_formula(f, &d);
            run_formula(f, &moved);
            for (o = 0; o <= GPI__RESULT; o++)
                for (at = 0; f->operands[o].output && f->operands[o].used && !f->operands[o].reduction &&
                             at < elements_of(f->operands[o].kind, f->parts, f->operands[o].width);
                     at++) {
                    estimate a = d.operands[o].at[at], b = moved.operands[o].at[at];
                    checked++;
                    CHECK(a.bound == HUGE_VAL || same(a.value, b.value) ||
                              fabs(a.value - b.value) <= a.bound * (1 + 1e-9) + b.bound,
                          "%s: %.17g +- %.9g, and %.17g", text, a.value, a.bound, b.value);
                }
        }
        freed(f);
    }
    CHECK(checked > 5000, "%d", checked);
}

/* >>whole numbers */

static void whole_results_are_modulo_2_to_32(void) {
    static const struct {
        const char *text;
        double v, r, want;
    } cases[] = {
        {"d = v + r", 2147483647, 1, -2147483648.0},
        {"d = v - r", -2147483648.0, 1, 2147483647},
        {"d = v * r", 65536, 65537, 65536},
        {"d = v * r", -3, 5, -15},
        {"d = -v", -2147483648.0, 0, -2147483648.0},
        {"d = v + 2147483648", 0, 0, -2147483648.0},
        {"d = max(v, -5) + min(v, -7)", -6, 0, -12},
        {"d = relu(v) + (v == r)", 4, 4, 5},
        {"d = v > r ? v : -r", 2, 3, -3},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gpi__formula *f = parsed(cases[i].text, GEMMEPI_I32, GEMMEPI_I32);
        bounded_unit unit;
        estimate got;
        CHECK(f != NULL, "%s", gemmepi_last_error());
        if (!f)
            continue;
        memset(&unit, 0, sizeof unit);
        unit.value[0].value = cases[i].v;
        unit.whole[0][0] = (int64_t)cases[i].r;
        evaluate_bounded(f, &unit, here);
        got = bounded_output(f, here, GPI__RESULT, 0);
        CHECK(got.value == cases[i].want && got.bound == 0, "%s: %.0f", cases[i].text, got.value);
        freed(f);
    }
}

static void whole_numbers_compare_exactly_however_large(void) {
    static const struct {
        const char *text;
        int64_t label, column;
        double want;
    } cases[] = {
        {"d = column < label", INT64_MIN, 1, 0},
        {"d = column > label", INT64_MAX, -2, 0},
        {"d = column == label", 16777217, 16777217, 1},
        {"d = column == label", 16777217, 16777216, 0}, /* F32 has one number for both */
        {"d = column < label", 9007199254740993, 9007199254740992, 1},
        {"d = label > 16777216", 16777217, 0, 1},
        {"d = label < 9007199254740991", 9007199254740990, 0, 1},
        {"d = label != 4611686018427387905", 4611686018427387905, 0, 0},
        {"d = column + 0 == label", 16777217, 16777216, 1}, /* a sum is a number like others */
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gpi__formula *f = parsed(cases[i].text, GEMMEPI_F32, GEMMEPI_F32);
        bounded_unit unit;
        CHECK(f != NULL, "%s", gemmepi_last_error());
        if (!f)
            continue;
        memset(&unit, 0, sizeof unit);
        unit.whole[0][0] = cases[i].label;
        unit.column[0] = cases[i].column;
        evaluate_bounded(f, &unit, here);
        if (i < 7)
            CHECK(bounded_output(f, here, GPI__RESULT, 0).value == cases[i].want &&
                      bounded_output(f, here, GPI__RESULT, 0).bound == 0,
                  "%s", cases[i].text);
        else
            CHECK(bounded_output(f, here, GPI__RESULT, 0).bound == 1 || i == 7, "%s", cases[i].text);
        freed(f);
    }
}

/* Of a whole number all bits are looked at, also where results are in I32. */
static void a_large_whole_number_is_true(void) {
    static const char *const texts[] = {"d = label ? 1 : 0", "d = !label ? 0 : 1", "d = label && 1"};
    size_t i;
    for (i = 0; i < GPI__COUNT(texts); i++) {
        gpi__formula *f = parsed(texts[i], GEMMEPI_I32, GEMMEPI_I32);
        bounded_unit unit;
        CHECK(f != NULL, "%s", gemmepi_last_error());
        if (!f)
            continue;
        memset(&unit, 0, sizeof unit);
        unit.whole[0][0] = (int64_t)1 << 32;
        evaluate_bounded(f, &unit, here);
        CHECK(bounded_output(f, here, GPI__RESULT, 0).value == 1, "%s", texts[i]);
        freed(f);
    }
}

/* >>members */

static void each_member_of_a_unit_has_its_own_numbers(void) {
    static const struct {
        const char *text;
        double first, second;
    } cases[] = {
        {"q = pair(left(v), right(v)); d = fma(q, 2, column)", 13, 52},
        {"q = pair(left(v), right(v)); d = q * 10 + (column == label)", 50, 61},
        {"q = pair(left(v), right(v)); d = clamp(q, 0, q - 1)", 4, 5},
        {"q = pair(left(v), right(v)); d = q > 5 ? column : label", 40, 40},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gpi__formula *f = parsed(cases[i].text, GEMMEPI_F64, GEMMEPI_F64);
        bounded_unit unit;
        CHECK(f != NULL, "%s", gemmepi_last_error());
        if (!f)
            continue;
        memset(&unit, 0, sizeof unit);
        unit.value[0].value = 5, unit.value[1].value = 6;
        unit.column[0] = 3, unit.column[1] = 40;
        unit.whole[0][0] = 40, unit.whole[0][1] = 3; /* one number of a row: the second is not there */
        evaluate_bounded(f, &unit, here);
        CHECK(bounded_output(f, here, GPI__RESULT, 0).value == cases[i].first &&
                  bounded_output(f, here, GPI__RESULT, 1).value == cases[i].second,
              "%s is %g and %g", cases[i].text, bounded_output(f, here, GPI__RESULT, 0).value,
              bounded_output(f, here, GPI__RESULT, 1).value);
        freed(f);
    }
}

/* >>random numbers */

static void an_exchanged_formula_draws_what_the_caller_s_row_and_column_have(void) {
    gpi__formula *f = parsed("d = uniform(seed, 1)", GEMMEPI_F64, GEMMEPI_F64);
    bounded_unit unit;
    int is_exchanged;
    CHECK(f != NULL, "%s", gemmepi_last_error());
    memset(&unit, 0, sizeof unit);
    for (is_exchanged = 0; f && is_exchanged < 2; is_exchanged++) {
        f->exchanged = is_exchanged;
        unit.whole[0][0] = 7;
        unit.indices[GPI__INDEX_ROW] = is_exchanged ? 9 : 4, unit.column[0] = is_exchanged ? 4 : 9;
        unit.indices[GPI__INDEX_ITEM] = 2;
        evaluate_bounded(f, &unit, here);
        CHECK(bounded_output(f, here, GPI__RESULT, 0).value == gpi__uniform(7, 1, 9, 4, 2), "exchanged %d",
              is_exchanged);
    }
    freed(f);
}

static void philox_gives_its_published_vectors(void) {
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
        {{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
         {0xffffffffu, 0xffffffffu},
         {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
        {{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
         {0xa4093822u, 0x299f31d0u},
         {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        uint32_t counter[4];
        memcpy(counter, cases[i].counter, sizeof counter);
        gpi__philox(counter, cases[i].key[0], cases[i].key[1]);
        CHECK(memcmp(counter, cases[i].want, sizeof counter) == 0, "%08x %08x %08x %08x", counter[0],
              counter[1], counter[2], counter[3]);
    }
    CHECK(gpi__uniform(0, 0, 0, 0, 0) == 0x6627e8 / 16777216.0, "the upper 24 bits of the first word");
    CHECK(gpi__uniform(0, 0, 3, 0, 0) == 0x9b00db / 16777216.0, "of the last");
    /* key and counter as the published third vector has them: its words are columns 4 c to 4 c + 3 */
    CHECK(gpi__uniform((int64_t)(0x299f31d0a4093822u), 0x03707344u, (int64_t)0x243f6a88u * 4 + 2, 0x85a308d3u,
                       0x13198a2eu) == 0x5001e4 / 16777216.0,
          "seed, column, row, item and i in their places");
}

/* >>rounding by chance */

static const double almost_1 = 1 - 0x1p-24, inf = HUGE_VAL;

static void a_number_between_two_becomes_the_upper_where_its_share_and_u_come_to_1(void) {
    static const struct {
        int dtype;
        double x, lower, upper, u; /* the least u that gives the upper one */
    } cases[] = {
        {GEMMEPI_BF16, 1 + 0x1p-9, 1, 1 + 0x1p-7, 0.75},
        {GEMMEPI_BF16, 1 + 0x1p-23, 1, 1 + 0x1p-7, 1 - 0x1p-16},
        {GEMMEPI_BF16, 1.9990234375, 1.9921875, 2, 0.125},
        {GEMMEPI_BF16, 0x1.8p-133, 0x1p-133, 0x1p-132, 0.5}, /* subnormal */
        {GEMMEPI_BF16, 0x1p-149, 0, 0x1p-133, 1 - 0x1p-16},  /* the smallest of F32 */
        {GEMMEPI_BF16, 0x1.fep127 + 0x1p118, 0x1.fep127, 0x1p128, 0.75},
        {GEMMEPI_F16, 1 + 0x1p-12, 1, 1 + 0x1p-10, 0.75},
        {GEMMEPI_F16, 0x1p-14 - 0x1p-25, 0x1p-14 - 0x1p-24, 0x1p-14, 0.5}, /* the least normal one */
        {GEMMEPI_F16, 5.25 * 0x1p-24, 5 * 0x1p-24, 6 * 0x1p-24, 0.75},
        {GEMMEPI_F16, 0x1p-40, 0, 0x1p-24, 1 - 0x1p-16},
        {GEMMEPI_F16, 65512, 65504, 65536, 0.75},
    };
    size_t i;
    int sign;
    for (i = 0; i < GPI__COUNT(cases); i++)
        for (sign = -1; sign <= 1; sign += 2) {
            double below = gpi__round_by_chance(cases[i].dtype, sign * cases[i].x, cases[i].u - 0x1p-24),
                   from = gpi__round_by_chance(cases[i].dtype, sign * cases[i].x, cases[i].u);
            CHECK(below == sign * cases[i].lower && from == sign * cases[i].upper, "%a: %a and %a",
                  sign * cases[i].x, below, from);
        }
    CHECK(gpi__round_by_chance(GEMMEPI_F16, 1e30, 0) > 65536 &&
              gpi__round_by_chance(GEMMEPI_F16, -0x1p-60, almost_1) == 0,
          "what is far out of range stays so, and what is far below it is 0");
}

static void what_the_type_has_stays_what_it_is_and_so_do_nan_and_infinity(void) {
    static const int dtypes[] = {GEMMEPI_F16, GEMMEPI_BF16};
    uint32_t code;
    int i;
    for (i = 0; i < 2; i++) {
        for (code = 0; code < 65536; code++) {
            double x = gpi__decode(gpi__format_of(dtypes[i]), code),
                   up = gpi__round_by_chance(dtypes[i], x, almost_1),
                   down = gpi__round_by_chance(dtypes[i], x, 0);
            CHECK(x != x ? up != up && down != down : up == x && down == x && !signbit(up) == !signbit(x),
                  "%a becomes %a or %a", x, down, up);
        }
        CHECK(gpi__round_by_chance(dtypes[i], inf, almost_1) == inf &&
                  gpi__round_by_chance(dtypes[i], -inf, 0) == -inf,
              "infinity");
    }
}

/* Of many seeds the share of those with the upper neighbour is within four sigma of where x is between the two. */
static void the_mean_over_many_seeds_is_x(void) {
    static const struct {
        gemmepi_dtype dtype;
        double x;
    } cases[] = {{GEMMEPI_BF16, 1.00390625}, {GEMMEPI_BF16, -3.14}, {GEMMEPI_BF16, 1e-40},
                 {GEMMEPI_F16, 0.1},         {GEMMEPI_F16, 1e-7},   {GEMMEPI_F16, -1234.56}};
    enum { SEEDS = 20000 };
    bounded_unit unit;
    size_t i;
    int seed;
    memset(&unit, 0, sizeof unit);
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gpi__formula *f = parsed("d = stochastic(v, seed)", GEMMEPI_F32, cases[i].dtype);
        double sum = 0, x = (double)(float)cases[i].x, share, step, got;
        double up = gpi__round_by_chance((int)cases[i].dtype, x, almost_1),
               down = gpi__round_by_chance((int)cases[i].dtype, x, 0);
        CHECK(f != NULL, "%s", gemmepi_last_error());
        step = up - down, share = (x - down) / step;
        unit.value[0].value = x;
        for (seed = 0; f && seed < SEEDS; seed++) {
            unit.whole[0][0] = seed * (int64_t)0x100000001, unit.indices[GPI__INDEX_ROW] = seed % 7;
            unit.column[0] = seed % 5;
            evaluate_bounded(f, &unit, here);
            got = bounded_output(f, here, GPI__RESULT, 0).value;
            CHECK(got == up || got == down, "%g is neither %g nor %g", got, down, up);
            sum += (got - down) / step;
        }
        CHECK(fabs(sum - SEEDS * share) < 4 * sqrt(SEEDS * share * (1 - share)) && share > 0.01 &&
                  share < 0.99,
              "%g of %d are %g, not %g", sum, SEEDS, up, SEEDS * share);
        freed(f);
    }
}

static int operand_called(const gpi__formula *f, const char *name) {
    int i = 0;
    while (i < f->operand_count && strcmp(f->names + f->operands[i].name, name) != 0)
        i++;
    return i;
}

static void a_rounding_by_chance_draws_what_uniform_does(void) {
    gpi__formula *f =
        parsed("d = stochastic(v, seed, 5); o = stochastic(v, seed)", GEMMEPI_F32, GEMMEPI_BF16);
    bounded_unit unit;
    int i;
    CHECK(f != NULL, "%s", gemmepi_last_error());
    memset(&unit, 0, sizeof unit);
    unit.indices[GPI__INDEX_ITEM] = 3;
    for (i = 0; f && i < 2 * 64; i++) {
        int o = operand_called(f, "o"), seed = operand_called(f, "seed"), row, column;
        double u, also;
        unit.value[0].value = 1 + 0x1p-8;
        f->exchanged = i % 2;
        row = i / 2 % 8, column = i / 16;
        unit.whole[seed][0] = -9;
        unit.indices[GPI__INDEX_ROW] = f->exchanged ? column : row,
        unit.column[0] = f->exchanged ? row : column;
        evaluate_bounded(f, &unit, here);
        u = gpi__uniform(-9, 5, column, row, 3), also = gpi__uniform(-9, 0xffffffffu, column, row, 3);
        CHECK(bounded_output(f, here, GPI__RESULT, 0).value == (u >= 0.5 ? 1 + 0x1p-7 : 1) &&
                  bounded_output(f, here, o, 0).value == (also >= 0.5 ? 1 + 0x1p-7 : 1),
              "u %g and %g", u, also);
    }
    freed(f);
}

/* >>widths and reductions, on matrices */

static void halves_are_of_the_columns_they_say(void) {
    static const struct {
        const char *text;
        int left, right;
    } cases[] = {
        {"d = left(v) * 100 + right(column)", 1, COLUMNS / 2 + 1},
        {"d = even(v) * 100 + odd(column)", 2, 3},
        {"d = left(v, 4) * 100 + right(column, 4)", 1, 3},
    };
    static data d;
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gpi__formula *f = parsed(cases[i].text, GEMMEPI_F64, GEMMEPI_F64);
        CHECK(f != NULL, "%s", gemmepi_last_error());
        if (!f)
            continue;
        fill_randomly(f, &d);
        run_formula(f, &d);
        CHECK(d.operands[GPI__RESULT].at[COLUMNS / 2 + 1].value ==
                  d.value.at[COLUMNS + cases[i].left].value * 100 + cases[i].right,
              "%s: %g", cases[i].text, d.operands[GPI__RESULT].at[COLUMNS / 2 + 1].value);
        freed(f);
    }
}

static void parts_are_of_the_columns_they_say(void) {
    static data d;
    char text[64];
    int parts, part, column;
    for (parts = 2; parts <= MOST_PARTS; parts++)
        for (part = 0; part < parts; part++) {
            gpi__formula *f;
            snprintf(text, sizeof text, "d = part(v, %d, %d) * 100 + part(column, %d, %d)", part, parts,
                     parts - 1 - part, parts);
            f = parsed(text, GEMMEPI_F64, GEMMEPI_F64);
            CHECK(f != NULL, "%s", gemmepi_last_error());
            if (!f)
                continue;
            fill_randomly(f, &d);
            run_formula(f, &d);
            for (column = 0; column < COLUMNS / parts; column++)
                CHECK(d.operands[GPI__RESULT].at[COLUMNS / parts + column].value ==
                          d.value.at[COLUMNS + part * COLUMNS / parts + column].value * 100 +
                              (parts - 1 - part) * COLUMNS / parts + column,
                      "%s at %d", text, column);
            freed(f);
        }
}

static void pair_and_interleave_are_the_way_back(void) {
    static const char *const texts[] = {
        "d = pair(left(v), right(v))", "d = interleave(even(v), odd(v))",
        "d = parts(part(v, 0, 4), part(v, 1, 4), part(v, 2, 4), part(v, 3, 4))",
        "d = pair(left(v, 4), right(v, 4), 4)"};
    static data d;
    size_t i;
    int at;
    for (i = 0; i < GPI__COUNT(texts); i++) {
        gpi__formula *f = parsed(texts[i], GEMMEPI_F64, GEMMEPI_F64);
        CHECK(f != NULL, "%s", gemmepi_last_error());
        if (!f)
            continue;
        fill_randomly(f, &d);
        run_formula(f, &d);
        for (at = 0; at < ROWS * COLUMNS; at++)
            CHECK(d.operands[GPI__RESULT].at[at].value == d.value.at[at].value, "%s at %d", texts[i], at);
        freed(f);
    }
}

static void sums_are_over_all_columns_of_their_width(void) {
    static const struct {
        const char *text;
        int width;
    } cases[] = {{"rs = row_sum(h)", GEMMEPI_WIDTH_HALF},
                 {"rs = row_sum(w)", GEMMEPI_WIDTH_DOUBLE},
                 {"rs = row_sum(r)", GEMMEPI_WIDTH_N},
                 {"rs = row_sum(r); d = left(v)", GEMMEPI_WIDTH_N},
                 {"rs = row_sum(r); d = pair(v, v)", GEMMEPI_WIDTH_N}};
    static data d;
    size_t i;
    int column;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gpi__formula *f = parsed(cases[i].text, GEMMEPI_F64, GEMMEPI_F64);
        double sum = 0;
        CHECK(f != NULL, "%s", gemmepi_last_error());
        if (!f)
            continue;
        fill_randomly(f, &d);
        run_formula(f, &d);
        for (column = 0; column < columns_of(2, cases[i].width); column++)
            sum += d.operands[0].at[columns_of(2, cases[i].width) + column].value;
        CHECK(fabs(d.operands[1].at[1].value - sum) < 1e-12, "%s: %g, not %g", cases[i].text,
              d.operands[1].at[1].value, sum);
        freed(f);
    }
}

static void a_mean_is_a_sum_through_the_columns_of_its_width(void) {
    static const char *const texts[][2] = {
        {"rs = row_mean(v)", "rs = row_sum(v)"},
        {"rs = row_mean(left(v))", "rs = row_sum(left(v))"},
        {"rs = row_mean(w)", "rs = row_sum(w)"},
        {"rs = row_mean(v); o = left(w)", "rs = row_sum(v); o = left(w)"},
        {"rs = row_mean(h); d = part(v, 0, 3)", "rs = row_sum(h); d = part(v, 0, 3)"},
        {"rs = row_mean(v); o = part(w, 3, 4)", "rs = row_sum(v); o = part(w, 3, 4)"}};
    static const double columns[] = {COLUMNS, COLUMNS / 2, 2 * COLUMNS, COLUMNS, COLUMNS / 3, COLUMNS};
    static data d;
    size_t i;
    int one;
    for (i = 0; i < GPI__COUNT(texts); i++) {
        double got[2] = {0, 0};
        for (one = 0; one < 2; one++) {
            gpi__formula *f = parsed(texts[i][one], GEMMEPI_F64, GEMMEPI_F64);
            int o = 0;
            CHECK(f != NULL, "%s", gemmepi_last_error());
            if (!f)
                return;
            if (!one)
                fill_randomly(f, &d);
            run_formula(f, &d);
            while (f->operands[o].reduction == 0)
                o++;
            got[one] = d.operands[o].at[1].value;
            freed(f);
        }
        CHECK(fabs(got[0] * columns[i] - got[1]) < 1e-12, "%s: %g of %g", texts[i][0], got[0], got[1]);
    }
}

static void reductions_take_what_their_sentence_says(void) {
    static data d;
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    const char *text = "rs = row_sum(v * 2); rt = row_argmax(v); cs = column_max(v + r); al = all_sum(v)";
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__formula_desc desc = desc_of(text, operands, operands_of(text, operands), GEMMEPI_F64, GEMMEPI_F64);
    gpi__formula *f;
    double sum = 0, all = 0;
    int i;
    CHECK(gpi__parse_formula(&allocator, &desc, &f) == GEMMEPI_OK, "%s", gemmepi_last_error());
    if (!f)
        return;
    fill_randomly(f, &d);
    d.value.at[COLUMNS + 3].value = d.value.at[COLUMNS + 6].value = 5; /* a tie in row 1 */
    run_formula(f, &d);
    for (i = 0; i < ROWS * COLUMNS; i++) {
        sum += i / COLUMNS == 1 ? d.value.at[i].value * 2 : 0;
        all += d.value.at[i].value;
    }
    CHECK(fabs(d.operands[1].at[1].value - sum) < 1e-12, "row_sum %g, not %g", d.operands[1].at[1].value,
          sum);
    CHECK(d.operands[2].whole[1] == 3, "row_argmax %d", (int)d.operands[2].whole[1]);
    CHECK(fabs(d.operands[4].at[0].value - all) < 1e-12, "all_sum %g, not %g", d.operands[4].at[0].value,
          all);
    CHECK(d.operands[3].at[2].value >= d.value.at[2].value + d.operands[0].at[2].value &&
              d.operands[3].at[2].value >=
                  d.value.at[COLUMNS + 2].value + d.operands[0].at[COLUMNS + 2].value,
          "column_max");
    freed(f);
}

int main(void) {
    RUN(operators_and_functions_compute_what_c_does);
    RUN(functions_that_are_short_for_others_compute_what_c_does);
    RUN(functions_that_are_short_for_others_are_right_at_their_ends);
    RUN(nan_goes_where_it_should_and_nowhere_else);
    RUN(zeros_have_the_signs_that_ieee_754_gives_them);
    RUN(halves_round_to_even_and_ties_are_held);
    RUN(exact_arithmetic_has_no_bound);
    RUN(every_step_adds_its_rounding);
    RUN(what_may_jump_spans_both_results);
    RUN(errors_of_functions_are_those_of_the_document);
    RUN(bounds_of_functions_are_those_of_the_table);
    RUN(what_is_beyond_f32_rounds_to_an_infinity_of_its_sign);
    RUN(rounded_is_what_d_stands_for_by_its_scale);
    RUN(bounds_cover_what_inputs_within_theirs_give);
    RUN(whole_results_are_modulo_2_to_32);
    RUN(whole_numbers_compare_exactly_however_large);
    RUN(a_large_whole_number_is_true);
    RUN(each_member_of_a_unit_has_its_own_numbers);
    RUN(an_exchanged_formula_draws_what_the_caller_s_row_and_column_have);
    RUN(philox_gives_its_published_vectors);
    RUN(a_number_between_two_becomes_the_upper_where_its_share_and_u_come_to_1);
    RUN(what_the_type_has_stays_what_it_is_and_so_do_nan_and_infinity);
    RUN(the_mean_over_many_seeds_is_x);
    RUN(a_rounding_by_chance_draws_what_uniform_does);
    RUN(halves_are_of_the_columns_they_say);
    RUN(parts_are_of_the_columns_they_say);
    RUN(pair_and_interleave_are_the_way_back);
    RUN(sums_are_over_all_columns_of_their_width);
    RUN(a_mean_is_a_sum_through_the_columns_of_its_width);
    RUN(reductions_take_what_their_sentence_says);
    return test_finish();
}
