/* D in E4M3 or E5M2 whose scales the product finds: of rows, of vectors of 128 columns, and of the amax of earlier runs. A and B of those types
   that formulas make, whose scales are found of rows and vectors. */
#include "grid.h"

static const types *const found_types[] = {&bf16_to_e4m3, &f32_to_e5m2, &e4m3_alone, &e5m2_e4m3_to_e5m2};

static problem finding(const types *t, int64_t m, int64_t n, int64_t k, gemmepi_epilogue epilogue, int mode) {
    problem p = typed(t, m, n, k, epilogue);
    p.desc.flags |= GEMMEPI_FIND_SCALE_D;
    p.desc.d.scale.mode = (gemmepi_scale_mode)mode;
    p.desc.amax_history = mode == GEMMEPI_SCALE_TENSOR ? 7 : 0;
    return p;
}

/* Vectors that are whole, one column, one column short, and more than a tile of any kernel has. */
static void every_mode_holds_at_every_width(void) {
    static const int64_t widths[] = {1, 8, 127, 128, 129, 256, 264, 393, 520};
    int t, w, mode;
    for (t = 0; t < COUNT(found_types); t++)
        for (w = 0; w < COUNT(widths); w++)
            for (mode = GEMMEPI_SCALE_TENSOR; mode <= (int)GEMMEPI_SCALE_VECTOR_128; mode++) {
                problem p = finding(found_types[t], w % 2 ? 70 : 33, widths[w], 48, GEMMEPI_NONE, mode);
                p.fill = (t + w) % 2 ? NORMAL : INTEGERS;
                if (w % 3 == 1)
                    p.desc.flags |= GEMMEPI_POWER_OF_TWO_SCALE;
                holds(&p);
            }
}

/* A block keeps a row whose scale it looks for, or reads it again. */
static void rows_of_any_length_hold(void) {
    static const int64_t lengths[] = {1025, 2048, 3001, 16388, 32772, 32773};
    int i;
    for (i = 0; i < COUNT(lengths); i++) {
        problem p = finding(&bf16_to_e4m3, 3, lengths[i], 8, GEMMEPI_SILU, GEMMEPI_SCALE_OUTER);
        holds(&p);
    }
}

static void modes_hold_with_every_epilogue(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_SILU | GEMMEPI_GATED,
        GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX,
        GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX,
        GEMMEPI_RELU | GEMMEPI_BACKWARD,
        GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_RESIDUAL,
        GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM,
        GEMMEPI_BIAS | GEMMEPI_BGRAD_A,
        GEMMEPI_MISH | GEMMEPI_BIAS | GEMMEPI_BGRAD_B};
    static const int64_t shapes[][3] = {{96, 256, 64}, {65, 514, 96}, {200, 300, 40}};
    int t, e, mode, s;
    for (t = 0; t < COUNT(found_types); t++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (mode = GEMMEPI_SCALE_TENSOR; mode <= (int)GEMMEPI_SCALE_VECTOR_128; mode++)
                for (s = 0; s < COUNT(shapes); s++) {
                    problem p =
                        finding(found_types[t], shapes[s][0], shapes[s][1], shapes[s][2], epilogues[e], mode);
                    if ((t + e + mode) % 2)
                        p.desc.flags |= GEMMEPI_POWER_OF_TWO_SCALE;
                    if (mode != GEMMEPI_SCALE_TENSOR && s == 1)
                        p.desc.flags |= GEMMEPI_AMAX_D;
                    if (s == 2)
                        problem_scale(&p, 0.7, 0.5);
                    holds(&p);
                }
}

static void modes_hold_in_every_layout_and_batch(void) {
    int layout, mode, e;
    for (layout = 0; layout < LAYOUTS; layout++)
        for (mode = GEMMEPI_SCALE_TENSOR; mode <= (int)GEMMEPI_SCALE_VECTOR_128; mode++)
            for (e = 0; e < 2; e++) {
                problem p = finding(&bf16_to_e4m3, 134, 270, 56,
                                    e ? GEMMEPI_SILU | GEMMEPI_GATED : GEMMEPI_BIAS, mode);
                lay_out(&p, layout);
                p.desc.batch = 3;
                problem_space_out(&p, layout % 3 * 5);
                if (mode != GEMMEPI_SCALE_TENSOR)
                    p.desc.d.scale.batch_stride = 3 * 280 + 4 * e;
                p.by_plan = e;
                p.own_workspace = layout & 1;
                holds(&p);
            }
}

/* Large enough for every shape of the kernel for Hopper, with tails. */
static void kernels_of_whole_tiles_hold(void) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_NONE, GEMMEPI_SILU | GEMMEPI_GATED, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX,
        GEMMEPI_SILU | GEMMEPI_BACKWARD, GEMMEPI_RELU | GEMMEPI_BACKWARD};
    static const int64_t shapes[][3] = {{512, 1024, 128}, {391, 1040, 64}, {1100, 2304, 64}};
    int e, s;
    for (e = 0; e < COUNT(epilogues); e++)
        for (s = 0; s < (here->is_host ? 1 : COUNT(shapes)); s++) {
            problem p = finding(&bf16_to_e4m3, shapes[s][0], shapes[s][1], shapes[s][2], epilogues[e],
                                GEMMEPI_SCALE_VECTOR_128);
            p.desc.b.transposed = s & 1;
            if (s == 2)
                problem_scale(&p, 0.7, 0.5);
            holds(&p);
        }
}

/* D's second half begins within 128 columns of the first, or not. */
static void halves_of_any_width_hold(void) {
    static const int64_t widths[] = {128, 256, 384, 640};
    int w, mode;
    for (w = 0; w < COUNT(widths); w++)
        for (mode = GEMMEPI_SCALE_OUTER; mode <= (int)GEMMEPI_SCALE_VECTOR_128; mode++) {
            problem p = finding(&f32_to_e5m2, 18, widths[w], 32,
                                GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM, mode);
            p.fill = NORMAL;
            holds(&p);
        }
}

/* The kernels for these find none themselves. */
static void products_by_weights_in_i8_hold(void) {
    static const int64_t widths[] = {1, 56, 128, 264};
    int w, mode, gated;
    for (w = 0; w < COUNT(widths); w++)
        for (mode = GEMMEPI_SCALE_TENSOR; mode <= (int)GEMMEPI_SCALE_VECTOR_128; mode++)
            for (gated = 0; gated < 2; gated++) {
                problem p = finding(&bf16_to_e4m3, w + 2, widths[w] << gated, 320,
                                    GEMMEPI_SILU | (gated ? GEMMEPI_GATED : GEMMEPI_BIAS), mode);
                p.desc.b.dtype = GEMMEPI_I8;
                p.desc.b.transposed = 1;
                p.desc.b.scale.mode = w % 2 ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_VECTOR_128;
                holds(&p);
            }
}

static int has_all_routes; /* else BATCH_INVARIANT may find none that is left */

static void invariant_rows_hold(void) {
    int64_t width;
    int mode;
    for (mode = GEMMEPI_SCALE_OUTER; mode <= (int)GEMMEPI_SCALE_VECTOR_128; mode++)
        for (width = 48; width <= 264; width += 216) {
            problem p = finding(&bf16_to_e4m3, 70, width, 64, GEMMEPI_SILU | GEMMEPI_GATED, mode);
            p.desc.flags |= GEMMEPI_BATCH_INVARIANT;
            holds(&p);
        }
}

/* The numbers of A are those of row and column, so that what is stored is known by hand: rows of zeros, of NaN, with an infinity, of one
   size, and of numbers so small that their scale is held at 2^-126. */
static void rows_of_zeros_nan_and_infinity_have_the_scale_one(void) {
    enum { M = 6, N = 130 };
    static double a[M], b[N];
    int power, i, j;
    for (power = 0; power < 2; power++) {
        problem p = finding(&f32_to_e4m3, M, N, 1, GEMMEPI_NONE, GEMMEPI_SCALE_VECTOR_128);
        double *scales, *d;
        run r;
        for (j = 0; j < N; j++)
            b[j] = j == 0 ? 2 : 1;
        a[0] = 0, a[1] = NAN, a[2] = INFINITY, a[3] = 224, a[4] = 1e-38, a[5] = -3;
        p.given[T_A] = a, p.given[T_B] = b;
        p.desc.flags |= power ? GEMMEPI_POWER_OF_TWO_SCALE : 0;
        CHECK(problem_holds_run(here, &p, NULL, &r), "see above");
        scales = run_values(&r, T_FOUND_SCALE), d = run_values(&r, T_D);
        for (i = 0; i < 3; i++)
            CHECK(scales[i] == 1 && scales[M + i] == 1, "row %d has the scales %g and %g", i, scales[i],
                  scales[M + i]);
        CHECK(scales[3] == 1 && scales[M + 3] == 0.5, "%g and %g", scales[3], scales[M + 3]);
        CHECK(scales[4] == ldexp(1, -126), "%g", scales[4]);
        CHECK(scales[5] == (power ? 1.0 / 64 : (double)(6.0f / 448)), "%g", scales[5]);
        CHECK(d[0] == 0 && isnan(d[N]) && d[2 * N] == 448 && d[3 * N] == 448 && d[3 * N + 128] == 448,
              "%g %g %g %g %g", d[0], d[N], d[2 * N], d[3 * N], d[3 * N + 128]);
        CHECK(d[5 * N] == (power ? -384 : -448), "%g", d[5 * N]);
        free(scales), free(d), run_free(&r);
    }
}

/* A row of at most 128 columns is one vector: the same numbers by either name, and as many launches. */
static void rows_of_one_vector_are_found_as_vectors(void) {
    static const int64_t widths[] = {1, 24, 104, 128};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE, GEMMEPI_GELU_TANH | GEMMEPI_BIAS,
                                                 GEMMEPI_SILU | GEMMEPI_GATED};
    int w, e, t;
    for (w = 0; w < COUNT(widths); w++)
        for (e = 0; e < COUNT(epilogues); e++)
            for (t = 0; t < COUNT(found_types); t++) {
                problem p = finding(found_types[t], 150, widths[w] * (epilogues[e] & GEMMEPI_GATED ? 2 : 1),
                                    272, epilogues[e], GEMMEPI_SCALE_OUTER);
                double *scales[2] = {NULL, NULL}, *d[2] = {NULL, NULL};
                int mode, i, differ = 0;
                if (epilogues[e] & GEMMEPI_GATED && found_types[t] == &e4m3_alone)
                    p.desc.flags |= GEMMEPI_POWER_OF_TWO_SCALE;
                for (mode = 0; mode < 2; mode++) {
                    run r;
                    p.desc.d.scale.mode = mode ? GEMMEPI_SCALE_VECTOR_128 : GEMMEPI_SCALE_OUTER;
                    CHECK(problem_holds_run(here, &p, NULL, &r), "width %d", (int)widths[w]);
                    scales[mode] = run_values(&r, T_FOUND_SCALE), d[mode] = run_values(&r, T_D);
                    run_free(&r);
                }
                for (i = 0; i < 150; i++)
                    differ += scales[0][i] != scales[1][i];
                for (i = 0; i < 150 * (int)widths[w]; i++)
                    differ += d[0][i] != d[1][i];
                CHECK(differ == 0, "width %d, epilogue %d, types %d: %d numbers differ", (int)widths[w], e, t,
                      differ);
                for (mode = 0; mode < 2; mode++)
                    free(scales[mode]), free(d[mode]);
            }
}

static void fill_chain(double *to, int count, uint64_t seed) {
    int i;
    for (i = 0; i < count; i++)
        to[i] = oracle_round(GEMMEPI_BF16, random_normal(random_hash(seed + (uint64_t)i)));
}

/* Worked out in double from the operands, it is off by the rounding of D alone: 2^-4 of each term at most. */
static void a_product_takes_what_another_has_found(void) {
    enum { M = 150, K = 64, N = 384, L = 48 };
    static double x[M * K], w[K * N], second[N * L];
    static uint16_t bits_x[M * K], bits_w[K * N], bits_second[N * L];
    static float result[M * L];
    static double hidden[M * N];
    int mode, i, j, l;
    fill_chain(x, M * K, 1), fill_chain(w, K * N, 1 << 20), fill_chain(second, N * L, 1 << 24);
    for (i = 0; i < M * K; i++)
        oracle_encode(GEMMEPI_BF16, &bits_x[i], x[i]);
    for (i = 0; i < K * N; i++)
        oracle_encode(GEMMEPI_BF16, &bits_w[i], w[i]);
    for (i = 0; i < N * L; i++)
        oracle_encode(GEMMEPI_BF16, &bits_second[i], second[i]);
    for (i = 0; i < M; i++)
        for (j = 0; j < N; j++) {
            double sum = 0;
            for (l = 0; l < K; l++)
                sum += x[i * K + l] * w[l * N + j];
            hidden[i * N + j] = sum > 0 ? sum : 0;
        }
    for (mode = GEMMEPI_SCALE_OUTER; mode <= (int)GEMMEPI_SCALE_VECTOR_128; mode++) {
        gemmepi_context *context = here->context;
        gemmepi_matmul_desc first = {0}, next = {0};
        gemmepi_matmul_args args = {0};
        void *device[5];
        const void *from[3] = {bits_x, bits_w, bits_second};
        size_t sizes[5] = {sizeof bits_x, sizeof bits_w, sizeof bits_second, M * N, M * 3 * sizeof(float)};
        void *out;
        double worst = 0;
        for (i = 0; i < 5; i++) {
            CHECK(gemmepi_alloc(context, sizes[i], &device[i]) == GEMMEPI_OK, "%s", gemmepi_last_error());
            if (i < 3)
                CHECK(gemmepi_upload(context, device[i], from[i], sizes[i], here->stream) == GEMMEPI_OK, "%s",
                      gemmepi_last_error());
        }
        CHECK(gemmepi_alloc(context, sizeof result, &out) == GEMMEPI_OK, "%s", gemmepi_last_error());
        first.m = M, first.n = N, first.k = K, first.a.dtype = GEMMEPI_BF16, first.d.dtype = GEMMEPI_E4M3;
        first.epilogue = GEMMEPI_RELU, first.flags = GEMMEPI_FIND_SCALE_D;
        first.d.scale.mode = (gemmepi_scale_mode)mode;
        args.a = device[0], args.b = device[1], args.d = device[3], args.found_scale_d = (float *)device[4];
        CHECK(gemmepi_matmul(context, &first, &args, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
        memset(&args, 0, sizeof args);
        next.m = M, next.n = L, next.k = N, next.a.dtype = GEMMEPI_E4M3, next.b.dtype = GEMMEPI_BF16;
        next.d.dtype = GEMMEPI_F32, next.a.scale.mode = (gemmepi_scale_mode)mode;
        args.a = device[3], args.scale_a = (const float *)device[4], args.b = device[2], args.d = out;
        CHECK(gemmepi_matmul(context, &next, &args, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_download(context, result, out, sizeof result, here->stream) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        for (i = 0; i < M; i++)
            for (j = 0; j < L; j++) {
                double sum = 0, terms = 0;
                for (l = 0; l < N; l++) {
                    sum += hidden[i * N + l] * second[l * L + j];
                    terms += fabs(hidden[i * N + l] * second[l * L + j]);
                }
                worst = fmax(worst, fabs(sum - (double)result[i * L + j]) / terms);
            }
        CHECK(worst < 1.0 / 16 && worst > 1e-4, "mode %d: off by %g of the terms", mode, worst);
        for (i = 0; i < 5; i++)
            gemmepi_free(context, device[i]);
        gemmepi_free(context, out);
    }
}

/* >>by hand: operands in device memory, one product after another */

enum { ROWS = 40, COLUMNS = 300, DEPTH = 24 };

typedef struct by_hand {
    void *a, *b, *d;
    float *found, *history;
} by_hand;

static void *hand_over(const void *data, size_t bytes) {
    void *device = NULL;
    CHECK(gemmepi_alloc(here->context, bytes, &device) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_upload(here->context, device, data, bytes, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    return device;
}

static void hand_back(void *to, const void *device, size_t bytes) {
    CHECK(gemmepi_download(here->context, to, device, bytes, here->stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
}

/* A of small whole numbers times `size`, and B. */
static by_hand open_by_hand(float size) {
    static float a[ROWS * DEPTH], b[DEPTH * COLUMNS], history[8];
    by_hand x;
    int i;
    for (i = 0; i < ROWS * DEPTH; i++)
        a[i] = size * (float)(random_hash((uint64_t)i) % 5) - 2 * size;
    for (i = 0; i < DEPTH * COLUMNS; i++)
        b[i] = (float)(random_hash((uint64_t)i + 7777) % 5) - 2;
    x.a = hand_over(a, sizeof a), x.b = hand_over(b, sizeof b), x.d = hand_over(b, ROWS * COLUMNS);
    x.found = (float *)hand_over(b, 3 * ROWS * sizeof(float)),
    x.history = (float *)hand_over(history, sizeof history);
    return x;
}

static void close_by_hand(const by_hand *x) {
    gemmepi_free(here->context, x->a), gemmepi_free(here->context, x->b), gemmepi_free(here->context, x->d);
    gemmepi_free(here->context, x->found), gemmepi_free(here->context, x->history);
}

static gemmepi_matmul_desc desc_by_hand(int mode) {
    gemmepi_matmul_desc desc = {0};
    desc.m = ROWS, desc.n = COLUMNS, desc.k = DEPTH, desc.d.dtype = GEMMEPI_E4M3;
    desc.flags = GEMMEPI_FIND_SCALE_D, desc.d.scale.mode = (gemmepi_scale_mode)mode;
    desc.amax_history = mode == GEMMEPI_SCALE_TENSOR ? 3 : 0;
    return desc;
}

static gemmepi_matmul_args args_by_hand(const by_hand *x, int mode) {
    gemmepi_matmul_args args = {0};
    args.a = x->a, args.b = x->b, args.d = x->d, args.found_scale_d = x->found;
    args.amax_history = mode == GEMMEPI_SCALE_TENSOR ? x->history : NULL;
    return args;
}

/* With whole numbers all sums are exact. */
static void a_formula_finds_the_scales_of_its_composition(void) {
    static unsigned char d[2][ROWS * COLUMNS];
    static float scales[2][3 * ROWS];
    int mode, formula;
    for (mode = GEMMEPI_SCALE_TENSOR; mode <= (int)GEMMEPI_SCALE_VECTOR_128; mode++) {
        size_t count = mode == GEMMEPI_SCALE_TENSOR ? 1 : mode == GEMMEPI_SCALE_OUTER ? ROWS : 3 * ROWS;
        for (formula = 0; formula < 2; formula++) {
            by_hand x = open_by_hand(1);
            gemmepi_matmul_desc desc = desc_by_hand(mode);
            gemmepi_matmul_args args = args_by_hand(&x, mode);
            desc.epilogue = formula ? GEMMEPI_NONE : GEMMEPI_RELU;
            desc.formula = formula ? "d = relu(v)" : NULL;
            CHECK(gemmepi_matmul(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
                  gemmepi_last_error());
            hand_back(d[formula], x.d, sizeof d[0]),
                hand_back(scales[formula], x.found, count * sizeof(float));
            close_by_hand(&x);
        }
        CHECK(memcmp(d[0], d[1], sizeof d[0]) == 0 &&
                  memcmp(scales[0], scales[1], count * sizeof(float)) == 0,
              "mode %d: the scales begin with %g and %g", mode, (double)scales[0][0], (double)scales[1][0]);
    }
}

/* Runs by one plan, each of an A twice as large as that before, so that each scale is that of the run before; when they shrink, it is that
   of the largest of three. */
static void a_history_moves_one_place_on_with_every_run(void) {
    static const float sizes[] = {1, 2, 4, 8, 2, 1, 1};
    by_hand x = open_by_hand(1);
    gemmepi_matmul_desc desc = desc_by_hand(GEMMEPI_SCALE_TENSOR);
    gemmepi_matmul_args args = args_by_hand(&x, GEMMEPI_SCALE_TENSOR);
    gemmepi_plan *plan = NULL;
    float first = 0, history[3], scale;
    double alpha, largest;
    int i, j;
    args.alpha = &alpha;
    CHECK(gemmepi_plan_matmul(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(plan, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < COUNT(sizes); i++) {
        alpha = (double)sizes[i];
        CHECK(gemmepi_run_matmul(plan, &args, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
        hand_back(history, x.history, sizeof history), hand_back(&scale, x.found, sizeof scale);
        first = i == 0 ? history[0] : first;
        for (j = 0; j < 3; j++)
            CHECK(history[j] == (i < j ? 0 : first * sizes[i - j]), "run %d: number %d is %g", i, j,
                  (double)history[j]);
        for (largest = 0, j = 1; j <= 3 && j <= i; j++)
            largest = fmax(largest, (double)(first * sizes[i - j]));
        CHECK(scale == (i == 0 ? 1 : (float)(largest / 448)), "run %d: %g of %g", i, (double)scale, largest);
    }
    gemmepi_plan_destroy(plan);
    close_by_hand(&x);
}

/* >>of an a or b that a formula makes */

enum { MADE_ROWS = 9, MADE_K = 300 };

/* What is stored times a factor of each row and each k, all of few bits, so that the products are exact; rows of zeros, with a NaN, with an
   infinity, and so small that the scale is held. */
typedef struct made_numbers {
    uint16_t stored[MADE_ROWS * MADE_K], ones[MADE_K * MADE_K]; /* BF16 */
    float rows[MADE_ROWS], along[MADE_K];
    double values
        [2][MADE_ROWS *
            MADE_K]; /* of `a * r * c`, and of `pair(a * r, a * r / 1024)` of half as many that are stored */
} made_numbers;

enum { OF_ZEROS = 2, WITH_NAN = 3, WITH_INFINITY = 4, OF_LITTLE = 5, THE_NAN = 140 };

static made_numbers *draw_made(void) {
    static const float factors[] = {1, -2, 0.5, 3};
    made_numbers *x = (made_numbers *)calloc(1, sizeof *x);
    int i, k;
    for (k = 0; k < MADE_K; k++) {
        x->along[k] = factors[random_hash((uint64_t)k) % 4];
        oracle_encode(GEMMEPI_BF16, &x->ones[k * MADE_K + k], 1);
    }
    for (i = 0; i < MADE_ROWS; i++) {
        x->rows[i] = i == OF_LITTLE ? ldexpf(1, -122) : ldexpf(1, 3 * i - 12);
        for (k = 0; k < MADE_K; k++) {
            double stored =
                oracle_round(GEMMEPI_BF16, random_normal(random_hash(900 + (uint64_t)(i * MADE_K + k))));
            stored = i == OF_ZEROS                        ? 0
                     : k == THE_NAN && i == WITH_NAN      ? (double)NAN
                     : k == THE_NAN && i == WITH_INFINITY ? -(double)INFINITY
                                                          : stored;
            oracle_encode(GEMMEPI_BF16, &x->stored[i * MADE_K + k], stored);
            x->values[0][i * MADE_K + k] = stored * (double)x->rows[i] * (double)x->along[k];
            if (k < MADE_K / 2) {
                x->values[1][i * MADE_K + k] = stored * (double)x->rows[i];
                x->values[1][i * MADE_K + MADE_K / 2 + k] = stored * (double)x->rows[i] / 1024;
            }
        }
    }
    return x;
}

/* Of the row's numbers from `first` on, as the manual has it; the largest of the type is `most`. */
static double scale_of_made(const double *row, int first, int count, double most, int is_power) {
    double amax = 0, scale, power = ldexp(1, -126);
    int i;
    for (i = first; i < first + count; i++) {
        if (!isfinite(row[i]))
            return 1;
        amax = fmax(amax, fabs(row[i]));
    }
    scale = amax == 0 ? 1 : fmax(ldexp(1, -126), (double)(float)(amax / most));
    while (power < scale)
        power *= 2;
    return is_power ? power : scale;
}

/* D is what was multiplied, times the other operand's ones. A quotient next to the middle of two numbers may have become either. */
static void check_made(const double *values, const float *d, gemmepi_dtype dtype, int mode, int is_power,
                       int is_b) {
    double most = dtype == GEMMEPI_E4M3 ? 448 : 57344;
    int span = mode == GEMMEPI_SCALE_OUTER ? MADE_K : 128, i, k, wrong = 0;
    for (i = 0; i < MADE_ROWS; i++)
        for (k = 0; k < MADE_K; k++) {
            const double *row = values + i * MADE_K;
            int first = k / span * span, count = MADE_K - first < span ? MADE_K - first : span;
            double got = (double)(is_b ? d[k * MADE_ROWS + i] : d[i * MADE_K + k]);
            double scale = scale_of_made(row, first, count, most, is_power), unit = ldexp(1, -22);
            double less = scale * oracle_round(dtype, row[k] / scale * (1 - unit));
            double more = scale * oracle_round(dtype, row[k] / scale * (1 + unit));
            int holds_here = i == WITH_NAN ? isnan(got)
                                           : fabs(got - less) <= unit * fabs(less) ||
                                                 fabs(got - more) <= unit * fabs(more);
            if (!holds_here && wrong++ == 0)
                CHECK(0, "%s, type %d, mode %d%s: row %d, k %d is %g, expected %g of %g by the scale %g",
                      is_b ? "b" : "a", (int)dtype, mode, is_power ? ", powers of two" : "", i, k, got, less,
                      row[k], scale);
        }
    CHECK(wrong == 0, "%d of %d are wrong", wrong, MADE_ROWS * MADE_K);
}

static void scales_of_what_a_formula_makes_are_found_of_its_rows(void) {
    made_numbers *x = draw_made();
    float *d = (float *)malloc(sizeof(float) * MADE_ROWS * MADE_K);
    void *stored = hand_over(x->stored, sizeof x->stored), *ones = hand_over(x->ones, sizeof x->ones);
    void *out = hand_over(x->values, sizeof(float) * MADE_ROWS * MADE_K), *pointers[2];
    int way;
    pointers[0] = hand_over(x->rows, sizeof x->rows), pointers[1] = hand_over(x->along, sizeof x->along);
    for (way = 0; way < 32; way++) {
        int is_pair = way >> 4, is_b = way & 1, is_power = way >> 1 & 1,
            mode = way & 4 ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_VECTOR_128;
        gemmepi_operand operands[2] = {{0}};
        gemmepi_matmul_desc desc = {0};
        gemmepi_matmul_args args = {0};
        gemmepi_matrix *made = is_b ? &desc.b : &desc.a;
        operands[0].name = "r", operands[1].name = "c";
        operands[0].kind = is_b ? GEMMEPI_PER_COLUMN : GEMMEPI_PER_ROW;
        operands[1].kind = is_b ? GEMMEPI_PER_ROW : GEMMEPI_PER_COLUMN;
        operands[0].dtype = operands[1].dtype = desc.d.dtype = GEMMEPI_F32;
        desc.m = is_b ? MADE_K : MADE_ROWS, desc.n = is_b ? MADE_ROWS : MADE_K, desc.k = MADE_K;
        desc.a.dtype = desc.b.dtype = GEMMEPI_BF16, desc.b.transposed = is_b;
        desc.operands = operands, desc.operand_count = 2;
        desc.flags = (is_b ? GEMMEPI_FIND_SCALE_B : GEMMEPI_FIND_SCALE_A) |
                     (is_power ? GEMMEPI_POWER_OF_TWO_SCALE : 0);
        made->formula = is_pair ? (is_b ? "pair(b * r, b * r / 1024)" : "pair(a * r, a * r / 1024)")
                        : is_b  ? "b * r * c"
                                : "a * r * c";
        made->ld = MADE_K;
        made->compute_dtype = way & 8 ? GEMMEPI_E5M2 : GEMMEPI_E4M3,
        made->scale.mode = (gemmepi_scale_mode)mode;
        args.a = is_b ? ones : stored, args.b = is_b ? stored : ones, args.d = out, args.operands = pointers;
        CHECK(gemmepi_matmul(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        hand_back(d, out, sizeof(float) * MADE_ROWS * MADE_K);
        check_made(x->values[is_pair], d, made->compute_dtype, mode, is_power, is_b);
    }
    gemmepi_free(here->context, stored), gemmepi_free(here->context, ones), gemmepi_free(here->context, out);
    gemmepi_free(here->context, pointers[0]), gemmepi_free(here->context, pointers[1]);
    free(d), free(x);
}

/* Rows of groups, in an order of their own or gathered from those that are made, by matrices of ones. */
static void groups_have_rows_whose_scales_are_found(void) {
    enum { POSITIONS = 6, GROUPS = 2 };
    static const int32_t given_ends[GROUPS] = {2, 5}, given_index[POSITIONS] = {7, 0, 5, 3, 8, 1};
    static float d[POSITIONS * MADE_K];
    made_numbers *x = draw_made();
    int32_t *ends = (int32_t *)hand_over(given_ends, sizeof given_ends);
    int32_t *index = (int32_t *)hand_over(given_index, sizeof given_index);
    void *stored = hand_over(x->stored, sizeof x->stored), *out = hand_over(d, sizeof d), *pointers[2],
         *ones = NULL;
    int way, i, k;
    pointers[0] = hand_over(x->rows, sizeof x->rows), pointers[1] = hand_over(x->along, sizeof x->along);
    CHECK(gemmepi_alloc(here->context, GROUPS * sizeof x->ones, &ones) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    for (i = 0; i < GROUPS; i++)
        CHECK(gemmepi_upload(here->context, (char *)ones + (size_t)i * sizeof x->ones, x->ones,
                             sizeof x->ones, here->stream) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
    for (way = 0; way < 4; way++) {
        int is_gathered = way & 1, span = way & 2 ? MADE_K : 128;
        gemmepi_operand operands[2] = {{0}};
        gemmepi_grouped_desc desc = {0};
        gemmepi_grouped_args args = {0};
        operands[0].name = "r", operands[0].kind = GEMMEPI_PER_ROW, operands[0].dtype = GEMMEPI_F32;
        operands[1].name = "c", operands[1].kind = GEMMEPI_PER_COLUMN, operands[1].dtype = GEMMEPI_F32;
        desc.groups = GROUPS, desc.gather_a = is_gathered ? MADE_ROWS : 0;
        desc.product.m = POSITIONS, desc.product.n = desc.product.k = MADE_K;
        desc.product.a.dtype = desc.product.b.dtype = GEMMEPI_BF16, desc.product.d.dtype = GEMMEPI_F32;
        desc.product.operands = operands, desc.product.operand_count = 2;
        desc.product.flags = GEMMEPI_FIND_SCALE_A | GEMMEPI_POWER_OF_TWO_SCALE;
        desc.product.a.formula = "a * r * c", desc.product.a.compute_dtype = GEMMEPI_E4M3;
        desc.product.a.scale.mode = way & 2 ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_VECTOR_128;
        args.product.a = stored, args.product.b = ones, args.product.d = out,
        args.product.operands = pointers;
        args.ends = ends, args.index_a = is_gathered ? index : NULL;
        CHECK(gemmepi_grouped(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        hand_back(d, out, sizeof d);
        for (i = 0; i < given_ends[GROUPS - 1]; i++) {
            const double *row = x->values[0] + (is_gathered ? given_index[i] : i) * MADE_K;
            int wrong = 0;
            for (k = 0; k < MADE_K; k++) {
                int first = k / span * span;
                double scale =
                    scale_of_made(row, first, MADE_K - first < span ? MADE_K - first : span, 448, 1);
                double want = scale * oracle_round(GEMMEPI_E4M3, row[k] / scale);
                wrong += row == x->values[0] + WITH_NAN * MADE_K ? !isnan(d[i * MADE_K + k])
                                                                 : (double)d[i * MADE_K + k] != want;
            }
            CHECK(wrong == 0, "gathered %d, scales of %d, row %d: %d of %d are wrong", is_gathered, span, i,
                  wrong, MADE_K);
        }
    }
    gemmepi_free(here->context, stored), gemmepi_free(here->context, ones), gemmepi_free(here->context, out);
    gemmepi_free(here->context, pointers[0]), gemmepi_free(here->context, pointers[1]);
    gemmepi_free(here->context, ends), gemmepi_free(here->context, index);
    free(x);
}

static void run_all(void) {
    RUN(every_mode_holds_at_every_width);
    RUN(rows_of_any_length_hold);
    RUN(modes_hold_with_every_epilogue);
    RUN(modes_hold_in_every_layout_and_batch);
    RUN(kernels_of_whole_tiles_hold);
    RUN(halves_of_any_width_hold);
    RUN(products_by_weights_in_i8_hold);
    if (has_all_routes)
        RUN(invariant_rows_hold);
    RUN(rows_of_zeros_nan_and_infinity_have_the_scale_one);
    RUN(rows_of_one_vector_are_found_as_vectors);
    RUN(a_product_takes_what_another_has_found);
    RUN(a_formula_finds_the_scales_of_its_composition);
    RUN(a_history_moves_one_place_on_with_every_run);
    RUN(scales_of_what_a_formula_makes_are_found_of_its_rows);
    RUN(groups_have_rows_whose_scales_are_found);
}

/* On a GPU by each route that finds scales. */
int main(void) {
    test_device devices[TEST_MOST_DEVICES];
    int count = test_devices_open_with_routes(devices), i;
    for (i = 0; i < count; i++) {
        here = devices + i;
        has_all_routes = strstr(here->name, "fused") == NULL;
        printf("on %s:\n", here->name);
        run_all();
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
