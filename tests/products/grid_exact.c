/* Products that are exact to the last bit: 8-bit codes, whole numbers, and how far rounding once goes. */
#include "grid.h"

/* >>codes of 8 bits */

typedef struct stored_case {
    double x;
    int e4m3, e5m2, i8; /* codes; of +x and -x the signs differ, in I8 the value does */
} stored_case;

/* ties go to even; what is too large, and infinity, becomes the largest */
static const stored_case stored_cases[] = {
    {0, 0x00, 0x00, 0},          {0.5, 0x30, 0x38, 0},
    {1, 0x38, 0x3c, 1},          {1.5, 0x3c, 0x3e, 2},
    {2.5, 0x42, 0x41, 2},        {1.0625, 0x38, 0x3c, 1},   /* half way in E4M3 */
    {1.1875, 0x3a, 0x3d, 1},                                /* half way in E4M3 */
    {1.125, 0x39, 0x3c, 1},                                 /* half way in E5M2 */
    {1.375, 0x3b, 0x3e, 1},                                 /* half way in E5M2 */
    {0x1p-9, 0x01, 0x18, 0},                                /* the smallest of E4M3 */
    {0x1p-10, 0x00, 0x14, 0},                               /* half of it */
    {0x1.8p-9, 0x02, 0x1a, 0},   {0x1.cp-7, 0x07, 0x23, 0}, /* the largest subnormal of E4M3 */
    {0x1p-6, 0x08, 0x24, 0},     {0x1p-16, 0x00, 0x01, 0},  /* the smallest of E5M2 */
    {0x1p-17, 0x00, 0x00, 0},    {0x1.8p-16, 0x00, 0x02, 0},
    {126.5, 0x70, 0x58, 126},    {127, 0x70, 0x58, 127},
    {127.5, 0x70, 0x58, 127},    {128, 0x70, 0x58, 127},
    {300, 0x79, 0x5d, 127},      {432, 0x7e, 0x5f, 127}, /* half way in E4M3 */
    {448, 0x7e, 0x5f, 127},      {463, 0x7e, 0x5f, 127},
    {464, 0x7e, 0x5f, 127}, /* half way to 480, whose code is NaN's */
    {465, 0x7e, 0x5f, 127},      {480, 0x7e, 0x60, 127},
    {1000, 0x7e, 0x64, 127},     {57344, 0x7e, 0x7b, 127},
    {61439, 0x7e, 0x7b, 127},    {61440, 0x7e, 0x7b, 127}, /* half way to infinity */
    {65536, 0x7e, 0x7b, 127},    {1e30, 0x7e, 0x7b, 127},
    {INFINITY, 0x7e, 0x7b, 127},
};
#define STORED_CASES COUNT(stored_cases)

static int stored_code(const stored_case *c, gemmepi_dtype dtype, int negative) {
    int value;
    if (dtype != GEMMEPI_I8)
        return (dtype == GEMMEPI_E4M3 ? c->e4m3 : c->e5m2) | negative << 7;
    value = c->i8 == 127 && negative && c->x > 127.5 ? 128 : c->i8; /* -127.5 is a tie, and even below */
    value = c->x == 127.5 && negative ? 128 : value;
    return (negative ? -value : value) & 255;
}

static void stores_of_8_bits_round_to_even_and_saturate(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};
    static const double signs[] = {1, -1}, scale[] = {0.25};
    double x[STORED_CASES];
    int t, i, j, scaled;
    for (t = 0; t < COUNT(dtypes); t++)
        for (scaled = 0; scaled < 2; scaled++) {
            problem p = problem_plain(GEMMEPI_F32, STORED_CASES, 2, 1, GEMMEPI_NONE | GEMMEPI_AUX);
            run r;
            p.desc.d.dtype = dtypes[t];
            p.desc.aux.dtype = dtypes[(t + 1) % 3];
            p.desc.d.scale.mode = scaled ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
            for (i = 0; i < STORED_CASES; i++)
                x[i] = stored_cases[i].x * (scaled ? 4 : 1);
            p.given[T_A] = x;
            p.given[T_B] = signs;
            p.given[T_SCALE_D] = scale;
            CHECK(problem_holds_run(here, &p, NULL, &r), "see above");
            for (i = 0; i < STORED_CASES; i++)
                for (j = 0; j < 2; j++) {
                    int got = r.after[r.tensors[T_D].offset + (size_t)(2 * i + j)];
                    int want = stored_code(stored_cases + i, dtypes[t], j);
                    CHECK(got == want || (want == 0x80 && got == 0 && dtypes[t] != GEMMEPI_I8),
                          "%g stored as %s is %02x, not %02x", x[i] * signs[j], oracle_format(dtypes[t]).name,
                          (unsigned)got, (unsigned)want);
                }
            run_free(&r);
        }
}

static void nan_stays_nan_in_8_bits_and_is_zero_in_i8(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};
    static const double nan[] = {NAN}, one[] = {1};
    gemmepi_epilogue activation;
    int t;
    for (t = 0; t < COUNT(dtypes); t++)
        for (activation = GEMMEPI_NONE; activation <= GEMMEPI_RELU;
             activation = activation_after(activation)) {
            problem p = problem_plain(GEMMEPI_F32, 1, 1, 1, activation);
            double d;
            p.desc.d.dtype = dtypes[t];
            p.given[T_A] = nan;
            p.given[T_B] = one;
            d = one_answer(&p, T_D);
            CHECK(dtypes[t] == GEMMEPI_I8 ? d == 0 : isnan(d) != 0, "%s: %g", oracle_format(dtypes[t]).name,
                  d);
        }
}

/* Each of the 256 codes as an operand, as C and as residual; d is F32, or as the operand. */
static void every_code_of_8_bits_is_read(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};
    static const int from[] = {T_A, T_C, T_RESIDUAL};
    int t, i, f, narrow;
    for (t = 0; t < COUNT(dtypes); t++)
        for (narrow = 0; narrow < 2; narrow++)
            for (f = 0; f < COUNT(from); f++) {
                problem p = problem_plain(dtypes[t], 256, 1, 1, GEMMEPI_RESIDUAL);
                run r;
                p.desc.d.dtype = narrow ? dtypes[t] : GEMMEPI_F32;
                p.desc.c.dtype = p.desc.residual.dtype = dtypes[t];
                problem_scale(&p, 1, 1);
                p.fill = INTEGERS;
                run_make(&r, &p);
                for (i = 0; i < 256; i++)
                    r.before[r.tensors[from[f]].offset + (size_t)i] = (unsigned char)i;
                CHECK(run_execute(&r, &p, here, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
                CHECK(run_compare(&r, &p, here), "see above");
                run_free(&r);
            }
}

/* A sum that the result's type would round away before the bias, which leaves 1 of it. */
static void the_bias_is_added_before_rounding(void) {
    static const types *const kinds[] = {&f16, &bf16, &e4m3_to_bf16, &e4m3, &i8_to_bf16, &i8, &bf16_to_e4m3};
    static const double large[] = {2048, 256, 256, 16, 256, 256, 16};
    double a[16 * 16], b[16 * 16], bias[16], *d;
    int t, i;
    for (t = 0; t < COUNT(kinds); t++) {
        problem p = typed(kinds[t], 16, 16, 16, GEMMEPI_BIAS);
        lay_out(&p, 4);
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        for (i = 0; i < 16; i++) {
            a[16 * i] = b[i] = sqrt(large[t]);
            if (large[t] > 256) {
                a[16 * i] = 64;
                b[i] = 32;
            }
            a[16 * i + 1] = b[16 + i] = 1;
            bias[i] = -large[t];
        }
        p.given[T_A] = a;
        p.given[T_B] = b;
        p.given[T_BIAS] = bias;
        p.fill = INTEGERS;
        d = answer(&p, T_D);
        for (i = 0; i < 256; i++)
            CHECK(d[i] == 1, "%s: %g", kinds[t]->name, d[i]);
        free(d);
    }
}

/* >>whole numbers */

static void i32_results_are_exact(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_NONE,
        GEMMEPI_BIAS,
        GEMMEPI_RELU,
        GEMMEPI_RELU | GEMMEPI_AUX,
        GEMMEPI_BGRAD_A,
        GEMMEPI_BGRAD_B,
        GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_A | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_NONE | GEMMEPI_AUX | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
        GEMMEPI_NONE | GEMMEPI_GATED,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_AUX | GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_NONE | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BIAS};
    int e, size, way, variant = 0;
    for (e = 0; e < COUNT(epilogues); e++)
        for (way = 0; way < 2; way++)
            for (size = 0; size < (way ? COUNT(odd_sizes) : COUNT(aligned_sizes)); size++, variant++) {
                const int64_t *s = way ? odd_sizes[size] : aligned_sizes[size];
                problem p = typed(&i8_to_i32, s[0], s[1], s[2], epilogues[e]);
                lay_out(&p, way ? (e + e / LAYOUTS) % LAYOUTS : 4);
                p.seed = (uint64_t)variant;
                p.by_plan = variant % 2;
                p.desc.batch = 1 + variant / 2 % 2;
                if (p.desc.batch > 1)
                    problem_space_out(&p, way * 3);
                if (e % 2)
                    problem_scale(&p, 3, -70001);
                holds(&p);
            }
}

/* C, the bias and the residual are any of 32 bits, so most of the sums above wrap too. */
static void i32_results_with_alpha_and_beta_wrap_around(void) {
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE, GEMMEPI_BIAS | GEMMEPI_AUX, GEMMEPI_RELU,
                                                 GEMMEPI_BGRAD_A, GEMMEPI_BGRAD_B};
    static double old[64 * 64];
    int e, i;
    for (i = 0; i < COUNT(old); i++)
        old[i] = (i % 2 ? -1 : 1) * (2147483647 - 1000003.0 * (i % 2000));
    for (e = 0; e < COUNT(epilogues); e++) {
        problem p = typed(&i8_to_i32, 64, 64, 64, epilogues[e]);
        problem_scale(&p, -3, -702);
        p.given[T_C] = old;
        holds(&p);
        problem_scale(&p, 1, 1);
        holds(&p);
    }
}

static void i32_results_wrap_around(void) {
    enum { LONG = 140000 };
    static const double old[] = {2147483647, -2147483647};
    double *all = malloc(sizeof *all * 2 * LONG), *d;
    int i;
    problem p = typed(&i8_to_i32, 2, 2, LONG, GEMMEPI_RELU | GEMMEPI_AUX);
    problem sums = typed(&i8_to_i32, 2, 2, LONG, GEMMEPI_BGRAD_A | GEMMEPI_ACCUMULATE_BIAS_GRAD);
    for (i = 0; i < 2 * LONG; i++)
        all[i] = 127;
    p.given[T_A] = p.given[T_B] = sums.given[T_A] = sums.given[T_B] = all;
    sums.given[T_BIAS_GRAD] = old;
    d = answer(&p, T_D);
    CHECK(d[0] == 0, "RELU of what wrapped below zero: %g", d[0]);
    free(d);
    d = answer(&sums, T_D);
    CHECK(d[3] == LONG * 16129.0 - 4294967296.0, "%.17g", d[3]);
    free(d);
    d = answer(&sums, T_BIAS_GRAD);
    CHECK(d[0] == 2147483647 + LONG * 127.0 - 4294967296.0 && d[1] == -2147483647 + LONG * 127.0,
          "%.17g %.17g", d[0], d[1]);
    free(d);
    free(all);
}

static void long_sums_of_i8_are_exact(void) {
    enum { LONG = 140000 };
    static const types *const kinds[] = {&i8_to_f32, &i8_to_f16, &i8};
    double *a = malloc(sizeof *a * 2 * LONG), *b = malloc(sizeof *b * 2 * LONG), *d;
    int t, i, way;
    for (i = 0; i < 2 * LONG; i++) {
        a[i] = 127;
        b[i] = i % 2 ? -128 : 127;
    }
    for (t = 0; t < COUNT(kinds); t++)
        for (way = 0; way < 2; way++) { /* b[l][0] is 127, b[l][1] -128; or both in turn along k */
            problem p = typed(kinds[t], 2, 2, LONG, GEMMEPI_NONE);
            float first = (float)(127.0 * 127 * LONG), second = (float)(-127.0 * 128 * LONG),
                  both = (float)(-127.0 * LONG / 2);
            p.given[T_A] = a;
            p.given[T_B] = b;
            p.desc.b.transposed = way;
            if (way) /* items of op(B) are given: turn them */
                for (i = 0; i < LONG; i++)
                    b[2 * i] = b[2 * i + 1] = i % 2 ? -128 : 127;
            d = answer(&p, T_D);
            CHECK(t > 0 || (d[0] == (double)(way ? both : first) && d[1] == (double)(way ? both : second)),
                  "%.17g %.17g", d[0], d[1]);
            free(d);
            for (i = 0; i < 2 * LONG; i++)
                b[i] = i % 2 ? -128 : 127;
        }
    free(a);
    free(b);
}

static void scalars_on_the_device_are_rounded_for_i32(void) {
    static const double scalars[][2] = {{2.4, -1.6}, {-0.7, 3}, {1e6, 0.9}, {2147483647, -2147483648.0}};
    int i, c;
    for (i = 0; i < COUNT(scalars); i++)
        for (c = 0; c < 2; c++) {
            problem p = typed(&i8_to_i32, 19, 32, 16, GEMMEPI_BIAS);
            problem_scale(&p, scalars[i][0], scalars[i][1]);
            p.has_beta = c;
            p.beta = c ? p.beta : 0;
            p.desc.flags = GEMMEPI_DEVICE_SCALARS;
            holds(&p);
        }
}

/* >>exactness */

static void small_integers_are_exact(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_NONE | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_NONE | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_RELU | GEMMEPI_BGRAD_A,
        GEMMEPI_NONE | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD,
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

/* Where C is D and beta is 1 too: a sum that is rounded before D is added to it shows in large sums. */
static void what_is_added_to_is_rounded_once(void) {
    static const types *const narrow[] = {&bf16, &f16, &e4m3_to_bf16};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE, GEMMEPI_BIAS, GEMMEPI_RELU | GEMMEPI_BIAS,
                                                 GEMMEPI_NONE | GEMMEPI_BGRAD_B};
    int t, e, way;
    for (t = 0; t < COUNT(narrow); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (way = 0; way < 16; way++) {
                problem p = typed(narrow[t], 64, way & 4 ? 56 : 256, way & 4 ? 2328 : 1024, epilogues[e]);
                p.fill = INTEGERS;
                p.seed = (uint64_t)way;
                p.desc.a.transposed = way & 1;
                p.desc.b.transposed = way >> 1 & 1;
                p.in_place[T_C] = 1;
                problem_scale(&p, way & 8 ? 2 : 1, 1);
                holds(&p);
            }
}

/* D += A B, with a bias and sums of an operand or without, from a plan and in one call, alpha on the host and on the device. */
static void accumulation_adds_to_what_d_holds(void) {
    static const types *const kinds[] = {&f64, &f32, &tf32, &f16, &bf16, &bf16_to_f32, &e4m3_to_bf16, &i8};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE, GEMMEPI_BIAS, GEMMEPI_BIAS | GEMMEPI_RESIDUAL,
                                                 GEMMEPI_BGRAD_A, GEMMEPI_BGRAD_B};
    int t, e, way;
    for (t = 0; t < COUNT(kinds); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (way = 0; way < 8; way++) {
                problem p = typed(kinds[t], way & 4 ? 61 : 64, 48, 72, epilogues[e]);
                if (!here->is_host && (t + e + way) % 3 != 0)
                    continue; /* each is a kernel to compile */
                p.fill = INTEGERS;
                p.desc.order = way & 1 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
                p.desc.flags = GEMMEPI_ACCUMULATE | (way & 4 ? GEMMEPI_DEVICE_SCALARS : 0);
                p.desc.batch = way & 1 ? 3 : 0; /* 0 means 1 */
                if (way & 1)
                    problem_space_out(&p, way & 2 ? 3 : 0);
                memset(&p.desc.c, 0, sizeof p.desc.c);
                p.by_plan = way >> 1 & 1;
                p.in_place[T_C] = 1;
                problem_scale(&p, way & 2 ? 2 : 1, 1);
                holds(&p);
            }
}

static void a_batch_left_zero_is_one_product(void) {
    int by_plan;
    for (by_plan = 0; by_plan < 2; by_plan++) {
        problem p = typed(&f32, 20, 33, 9, GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX);
        p.desc.batch = 0;
        p.by_plan = by_plan;
        holds(&p);
    }
}

static void small_integers_make_exact_gates(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_NONE | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_NONE | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BIAS | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_NONE | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM |
            GEMMEPI_BIAS | GEMMEPI_BGRAD,
        GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD,
        GEMMEPI_NONE | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_RESIDUAL,
    };
    int e, layout;
    for (e = 0; e < COUNT(epilogues); e++)
        for (layout = 0; layout < LAYOUTS; layout++) {
            problem p = typed(integer_types[grid_types], 21, 35, 3 + 5 * layout, epilogues[e]);
            lay_out(&p, layout);
            p.fill = INTEGERS;
            p.seed = (uint64_t)layout;
            p.desc.batch = 1 + layout / 4;
            problem_space_out(&p, layout % 3);
            problem_scale(&p, layout % 3 ? 1 : -1, layout % 2 ? 2 : 0);
            if (grid_types % 2)
                add_scales(&p, GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_TENSOR);
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
    int64_t i, j, index = 0, of_d = 0;
    double *once = plain_product(p);
    element *v = malloc(sizeof *v * (size_t)(p->desc.m * p->desc.n));
    answers want;
    oracle_problem o;
    run r;
    CHECK(problem_holds_run(here, p, NULL, &r), "see above");
    o = run_oracle(&r, p);
    want = answers_make(&o);
    oracle_product(&o, &want);
    for (i = 0; i < p->desc.m; i++)
        for (j = 0; j < p->desc.n; j++, index++) {
            memset(v + index, 0, sizeof *v);
            v[index].v = once[index] + (problem_has(p, GEMMEPI_BIAS) ? view_get(&o.bias, 0, i, j) : 0);
        }
    for (*ours = *plain = 0, i = 0; i < oracle_rows(&o); i++)
        for (j = 0; j < oracle_columns(&o); j++, of_d++) {
            view d = run_result(&r, T_D);
            double rounded = oracle_round(d.dtype, oracle_result(&o, v, 0, i, j).result);
            *ours += pow(view_get(&d, 0, i, j) - want.d[of_d].value, 2);
            *plain += pow(rounded - want.d[of_d].value, 2);
        }
    *ours = sqrt(*ours / (double)of_d);
    *plain = sqrt(*plain / (double)of_d);
    free(once);
    free(v);
    answers_free(&want);
    run_free(&r);
}

static void typical_errors_are_those_of_rounding_once(void) {
    static const types *const kinds[] = {&f32, &f16, &bf16, &e4m3_to_bf16};
    gemmepi_epilogue activation;
    int t, backward;
    double ours, plain;
    for (t = 0; t < COUNT(kinds); t++)
        for (activation = GEMMEPI_NONE; activation <= ACTIVATION_LAST;
             activation = activation_after(activation))
            for (backward = 0; backward < 2; backward++) {
                problem p =
                    typed(kinds[t], 88, 96, 256, activation | (backward ? GEMMEPI_BACKWARD : GEMMEPI_BIAS));
                if (!takes(kinds[t], p.desc.epilogue))
                    continue;
                typical_errors(&p, &ours, &plain);
                CHECK(ours <= 1.5 * plain, "%s on %s: %s: rms error %g, rounding once %g", kinds[t]->name,
                      here->name, problem_line(&p).text, ours, plain);
            }
}

static void typical_errors_of_gates_are_those_of_rounding_once(void) {
    static const types *const kinds[] = {&f32, &f16, &bf16, &e4m3_to_bf16};
    static const gemmepi_epilogue flags[] = {GEMMEPI_GATED | GEMMEPI_BIAS, GEMMEPI_GATED | GEMMEPI_BACKWARD,
                                             GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM |
                                                 GEMMEPI_BIAS,
                                             GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BIAS};
    gemmepi_epilogue activation;
    int t, e;
    double ours, plain;
    for (t = 0; t < COUNT(kinds); t++)
        for (activation = GEMMEPI_NONE; activation <= ACTIVATION_LAST;
             activation = activation_after(activation))
            for (e = 0; e < COUNT(flags); e++) {
                problem p = typed(kinds[t], 88, 96, 256, activation | flags[e]);
                if (!takes(kinds[t], activation | flags[e]) ||
                    (!here->is_host && ((int)activation + e) % 4 != 0))
                    continue;
                typical_errors(&p, &ours, &plain);
                CHECK(ours <= 1.5 * plain, "%s on %s: %s: rms error %g, rounding once %g", kinds[t]->name,
                      here->name, problem_line(&p).text, ours, plain);
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
        {GEMMEPI_E4M3, 1.0625, 1},
        {GEMMEPI_E4M3, 0x1.8p-9, 0x1p-8},
        {GEMMEPI_E4M3, 464, 448},
        {GEMMEPI_E4M3, -500, -448},
        {GEMMEPI_E4M3, INFINITY, 448},
        {GEMMEPI_E5M2, 0x1p-17, 0},
        {GEMMEPI_E5M2, 1e6, 57344},
        {GEMMEPI_E5M2, -INFINITY, -57344},
        {GEMMEPI_I8, 2.5, 2},
        {GEMMEPI_I8, 127.6, 127},
        {GEMMEPI_I8, -127.5, -128},
        {GEMMEPI_I8, -1e9, -128},
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
    for (bits = 0; bits < 256; bits++)
        for (i = GEMMEPI_E4M3; i <= (int)GEMMEPI_I8; i++) {
            uint8_t code[8] = {0}, again[8] = {0};
            double value;
            code[0] = (uint8_t)bits;
            value = oracle_decode((gemmepi_dtype)i, code);
            oracle_encode((gemmepi_dtype)i, again, value);
            CHECK(isnan(value) || again[0] == code[0], "%s %02x comes back as %02x",
                  oracle_format((gemmepi_dtype)i).name, bits, again[0]);
        }
}

static void run_all(void) {
    RUN(small_integers_are_exact);
    RUN(what_is_added_to_is_rounded_once);
    RUN(accumulation_adds_to_what_d_holds);
    RUN(a_batch_left_zero_is_one_product);
    RUN_TYPES(small_integers_make_exact_gates, integer_types);
    RUN(strict_f32_keeps_the_bits_that_tf32_drops);
    RUN(typical_errors_are_those_of_rounding_once);
    RUN(typical_errors_of_gates_are_those_of_rounding_once);
    RUN(stores_of_8_bits_round_to_even_and_saturate);
    RUN(nan_stays_nan_in_8_bits_and_is_zero_in_i8);
    RUN(every_code_of_8_bits_is_read);
    RUN(the_bias_is_added_before_rounding);
    RUN(i32_results_are_exact);
    RUN(i32_results_wrap_around);
    RUN(i32_results_with_alpha_and_beta_wrap_around);
    RUN(long_sums_of_i8_are_exact);
    RUN(scalars_on_the_device_are_rounded_for_i32);
}

int main(void) {
    RUN(the_oracle_rounds_to_nearest_even);
    return run_on_devices(run_all);
}
