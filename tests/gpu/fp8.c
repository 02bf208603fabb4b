/* Results in fp8 with NaN, infinities and overflow: on a GPU of compute capability 8.9 or later, where
   cuBLASLt's own kernel (the route lt) stores most of them, and on the host. Operands are small whole numbers and
   scales powers of two, so every sum is exact and D must be its one rounding, to the bit but for the sign of zero
   and the payload of NaN. What D must be is worked out here in double; of oracle.h this takes the storage of
   numbers alone. Runs on the devices that GEMMEPI_TEST_DEVICE names, as in problem.h: "host", a number, by default
   both. */
#include "gemmepi.h"
#include "products/oracle.h"
#include "test.h"

/* >>cases */

typedef enum variation {
    OVERFLOWS, /* sums beyond the largest of D, of either sign; all finite                  */
    INFINITE,  /* infinities, in an operand of E5M2 or else the bias, but nothing that is NaN */
    HAS_NAN,   /* NaN in A and B, 0 times infinity and infinity less infinity               */
    BIAS_NAN   /* NaN in one column of the bias                                             */
} variation;

typedef struct test_case {
    gemmepi_dtype a, b, d;
    gemmepi_epilogue epilogue;
    int m, n, k, batch;
    variation what;
} test_case;

static const gemmepi_dtype operands[][2] = {
    {GEMMEPI_E4M3, GEMMEPI_E4M3}, {GEMMEPI_E5M2, GEMMEPI_E4M3}, {GEMMEPI_E4M3, GEMMEPI_E5M2}};
static const gemmepi_dtype results[] = {GEMMEPI_E4M3, GEMMEPI_E5M2};
static const struct {
    gemmepi_epilogue epilogue;
    const char *name;
} epilogues[] = {{GEMMEPI_NONE, "none"},
                 {GEMMEPI_RELU, "relu"},
                 {GEMMEPI_BIAS, "bias"},
                 {GEMMEPI_RELU | GEMMEPI_BIAS, "relu|bias"}};
static const int shapes[][3] = {{16, 16, 16}, {32, 48, 64}};
static const int batches[] = {1, 3};
static const char *const variation_names[] = {"overflow", "infinity", "nan", "bias nan"};

enum { MAX_M = 32, MAX_N = 48, MAX_K = 64, MAX_BATCH = 3, MAX_LINES = 60 };

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static int is_e5m2_operand(const test_case *c) {
    return c->a == GEMMEPI_E5M2 || c->b == GEMMEPI_E5M2;
}

static int has_case(const test_case *c) {
    int has_bias = (c->epilogue & GEMMEPI_BIAS) != 0;
    return (c->what != BIAS_NAN || has_bias) && (c->what != INFINITE || is_e5m2_operand(c) || has_bias);
}

static const char *epilogue_name(gemmepi_epilogue epilogue) {
    int i = 0;
    while (epilogues[i].epilogue != epilogue)
        i++;
    return epilogues[i].name;
}

/* The start of a line, the same for all that is said of a case. */
static void print_case(const test_case *c, const char *route) {
    printf("  %s x %s -> %s  %-9s  %dx%dx%d  batch %d  %-8s  %-5s  ", oracle_format(c->a).name,
           oracle_format(c->b).name, oracle_format(c->d).name, epilogue_name(c->epilogue), c->m, c->n, c->k,
           c->batch, variation_names[c->what], route);
}

/* >>memory: everything of a case in one block; what lies between is a guard */

#define A_AT       ((size_t)0)
#define B_AT       ((size_t)0x2000)
#define BIAS_AT    ((size_t)0x5000)
#define D_AT       ((size_t)0x6100)
#define SCALE_A_AT ((size_t)0x8000)
#define SCALE_B_AT ((size_t)0x8100)
#define SCALE_D_AT ((size_t)0x8200)
#define AMAX_AT    ((size_t)0x8300)
#define SIZE       ((size_t)0x9000)

#define GUARD  0xa5
#define POISON 0x01 /* the smallest number of both types, which no sum here rounds to */

static unsigned char before[SIZE], after[SIZE];

static const float scale_a = 2, scale_b = 0.25f;

static float scale_d(const test_case *c) {
    return c->d == GEMMEPI_E4M3 ? 8.0f : 64.0f;
}

/* B is stored transposed, the one layout that cuBLASLt has fp8 products for on all of these devices. */
static unsigned char *a_at(const test_case *c, int item, int i, int k) {
    return before + A_AT + (item * c->m + i) * c->k + k;
}
static unsigned char *b_at(const test_case *c, int item, int k, int j) {
    return before + B_AT + (item * c->n + j) * c->k + k;
}
static unsigned char *bias_at(const test_case *c, int item, int j) {
    return before + BIAS_AT + 2 * (item * c->n + j);
}

static int next_random(unsigned *state, int count) {
    *state = *state * 1664525u + 1013904223u;
    return (int)((*state >> 8) % (unsigned)count);
}

/* Columns of B have one sign each, so that a row of large numbers overflows to both sides; such a row is large
   throughout, as tensor cores of fp8 lose what is far smaller than the rest. Column 3 of A and row 3 of B have
   no zeros: an infinity in the other there makes sums infinite, and not NaN. */
static void fill_item(const test_case *c, int item, unsigned *state) {
    static const int sizes[] = {0, 1, 1, 2};
    int i, j, k, overflows = 2;
    for (i = 0; i < c->m; i++)
        for (k = 0; k < c->k; k++) {
            int size = k == 3 ? 1 + next_random(state, 2) : sizes[next_random(state, 4)];
            double x = next_random(state, 2) ? -size : size;
            oracle_encode(c->a, a_at(c, item, i, k), i == overflows ? oracle_format(c->a).most : x);
        }
    for (j = 0; j < c->n; j++)
        for (k = 0; k < c->k; k++) {
            int size = k == 3 ? 1 + next_random(state, 2) : sizes[next_random(state, 4)];
            oracle_encode(c->b, b_at(c, item, k, j), j % 2 ? -size : size);
        }
    for (j = 0; j < c->n; j++)
        oracle_encode(GEMMEPI_BF16, bias_at(c, item, j), (next_random(state, 9) - 4) * 0.5);
}

/* Rows (columns) 4 and 5: an infinity of each sign. */
static void put_infinities(const test_case *c, int item) {
    if (c->a == GEMMEPI_E5M2) {
        *a_at(c, item, 4, 3) = 0x7c;
        *a_at(c, item, 5, 3) = 0xfc;
    } else if (c->b == GEMMEPI_E5M2) {
        *b_at(c, item, 3, 4) = 0x7c;
        *b_at(c, item, 3, 5) = 0xfc;
    } else {
        oracle_encode(GEMMEPI_BF16, bias_at(c, item, 4), INFINITY);
        oracle_encode(GEMMEPI_BF16, bias_at(c, item, 5), -INFINITY);
    }
}

/* Row or column 6: infinity times zero in every third element; row or column 7: infinity less infinity. */
static void put_indefinite(const test_case *c, int item) {
    int i, j;
    for (j = 0; j < c->n && c->a == GEMMEPI_E5M2; j++) {
        *a_at(c, item, 6, 5) = *a_at(c, item, 7, 3) = 0x7c;
        *a_at(c, item, 7, 7) = 0xfc;
        oracle_encode(c->b, b_at(c, item, 5, j), j % 3 ? (j % 2 ? -1 : 1) : 0);
        oracle_encode(c->b, b_at(c, item, 7, j), j % 2 ? -2 : 2);
    }
    for (i = 0; i < c->m && c->b == GEMMEPI_E5M2; i++) {
        *b_at(c, item, 5, 6) = *b_at(c, item, 3, 7) = *b_at(c, item, 7, 7) = 0x7c;
        oracle_encode(c->a, a_at(c, item, i, 5), i % 3 ? 1 : 0);
        oracle_encode(c->a, a_at(c, item, i, 7), i % 2 ? -2 : 2);
    }
}

/* Whole rows of NaN, and a column; the codes of E5M2 with each bit of the mantissa. */
static void put_nan(const test_case *c, int item) {
    *a_at(c, item, 1, 2) = 0x7f;
    *a_at(c, item, 8, c->k - 1) = c->a == GEMMEPI_E5M2 ? 0x7d : 0xff;
    *a_at(c, item, c->m - 1, 0) = c->a == GEMMEPI_E5M2 ? 0xfe : 0x7f;
    *b_at(c, item, 4, c->n - 1) = c->b == GEMMEPI_E5M2 ? 0xfd : 0xff;
}

/* What is not finite is in the last item of the batch. */
static void fill(const test_case *c) {
    static const float no_amax = -1;
    float factor = scale_d(c);
    unsigned state = 11u + (unsigned)c->m + 7u * (unsigned)c->epilogue + 3u * (unsigned)c->what;
    int item, last = c->batch - 1;
    memset(before, GUARD, SIZE);
    for (item = 0; item < c->batch; item++)
        fill_item(c, item, &state);
    if (c->what == INFINITE)
        put_infinities(c, last);
    if (c->what == HAS_NAN) {
        if (is_e5m2_operand(c))
            put_infinities(c, last);
        put_indefinite(c, last);
        put_nan(c, last);
    }
    if (c->what == BIAS_NAN)
        oracle_encode(GEMMEPI_BF16, bias_at(c, last, 3), NAN);
    memset(before + D_AT, POISON, (size_t)(c->batch * c->m * c->n));
    memcpy(before + SCALE_A_AT, &scale_a, sizeof scale_a);
    memcpy(before + SCALE_B_AT, &scale_b, sizeof scale_b);
    memcpy(before + SCALE_D_AT, &factor, sizeof factor);
    memcpy(before + AMAX_AT, &no_amax, sizeof no_amax);
}

/* >>what D must be */

typedef struct answer {
    double d[MAX_BATCH * MAX_M * MAX_N]; /* as stored: rounded, saturated, NaN */
    double amax;
} answer;

static answer want;

/* v of one element: everything before scale_d. */
static double result_of(const test_case *c, int item, int i, int j) {
    double sum = 0, v;
    int k;
    for (k = 0; k < c->k; k++)
        sum += oracle_decode(c->a, a_at(c, item, i, k)) * oracle_decode(c->b, b_at(c, item, k, j));
    v = (double)scale_a * (double)scale_b * sum;
    if (c->epilogue & GEMMEPI_BIAS)
        v += oracle_decode(GEMMEPI_BF16, bias_at(c, item, j));
    if ((c->epilogue & GEMMEPI_ACTIVATION_MASK) == GEMMEPI_RELU && v <= 0)
        v = 0;
    return v;
}

static void work_out(const test_case *c) {
    int i, j, item, at = 0, nans = 0, infinite = 0, up = 0, down = 0;
    double most = oracle_format(c->d).most;
    int relu = (c->epilogue & GEMMEPI_ACTIVATION_MASK) == GEMMEPI_RELU;
    want.amax = 0;
    for (item = 0; item < c->batch; item++)
        for (i = 0; i < c->m; i++)
            for (j = 0; j < c->n; j++, at++) {
                double v = result_of(c, item, i, j);
                want.d[at] = oracle_round(c->d, v * (double)scale_d(c));
                want.amax = isnan(want.amax) || isnan(v) ? NAN : fmax(want.amax, fabs(v));
                nans += isnan(v) != 0;
                infinite += isinf(v) != 0;
                up += want.d[at] >= most;
                down += want.d[at] <= -most;
            }
    /* a case that lacks what it is there for would pass for nothing */
    CHECK(up > 0 && (relu ? down == 0 : down > 0), "%d and %d sums overflow", up, down);
    CHECK((nans > 0) == (c->what >= HAS_NAN) && nans < at, "%d of %d are NaN", nans, at);
    CHECK(c->what != INFINITE || infinite > 0, "nothing is infinite");
}

/* >>running a case */

typedef struct side {
    gemmepi_context *context;
    char *memory;
} side;

static side host, gpu;
static int wrong_cases, right_cases;
static int routes[GEMMEPI_ROUTE_FUSED + 1], explained[GEMMEPI_ROUTE_FUSED + 1];

static gemmepi_matmul_desc description(const test_case *c) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = c->m;
    desc.n = c->n;
    desc.k = c->k;
    desc.batch = c->batch;
    desc.epilogue = c->epilogue;
    desc.flags = GEMMEPI_AMAX_D;
    desc.a.dtype = c->a;
    desc.b.dtype = c->b;
    desc.d.dtype = c->d;
    desc.b.transposed = 1;
    desc.a.batch_stride = desc.m * desc.k;
    desc.b.batch_stride = desc.n * desc.k;
    desc.d.batch_stride = desc.m * desc.n;
    desc.a.scale.mode = desc.b.scale.mode = desc.d.scale.mode = GEMMEPI_SCALE_TENSOR;
    if (c->epilogue & GEMMEPI_BIAS)
        desc.bias.batch_stride = desc.n;
    return desc;
}

static const float *float_at(const side *s, size_t offset) {
    return (const float *)(const void *)(s->memory + offset);
}

static gemmepi_matmul_args arguments(const side *s, const test_case *c) {
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = s->memory + A_AT;
    args.b = s->memory + B_AT;
    args.d = s->memory + D_AT;
    args.bias = c->epilogue & GEMMEPI_BIAS ? s->memory + BIAS_AT : NULL;
    args.scale_a = float_at(s, SCALE_A_AT);
    args.scale_b = float_at(s, SCALE_B_AT);
    args.scale_d = float_at(s, SCALE_D_AT);
    args.amax_d = s->memory + AMAX_AT;
    return args;
}

static int is_same(double x, double y) {
    return isnan(x) ? isnan(y) != 0 : x == y;
}

/* What is wrong with D, in words after the case; returns whether anything is. */
static int compare_d(const test_case *c, const char *route, int says) {
    int count = c->batch * c->m * c->n, i, wrong = 0, first = 0, lost = 0, made = 0, infinite = 0;
    for (i = 0; i < count; i++) {
        double got = oracle_decode(c->d, after + D_AT + i);
        if (is_same(want.d[i], got))
            continue;
        first = wrong++ ? first : i;
        lost += isnan(want.d[i]) != 0;
        made += isnan(got) != 0;
        infinite += isinf(got) != 0;
    }
    if (wrong && says) {
        print_case(c, route);
        printf("%d of %d wrong (%d NaN lost, %d NaN made, %d infinite), ", wrong, count, lost, made,
               infinite);
        printf("first item %d row %d column %d: code %02x = %g, not %02x = %g\n", first / (c->m * c->n),
               first / c->n % c->m, first % c->n, after[D_AT + (size_t)first],
               oracle_decode(c->d, after + D_AT + first), oracle_encode_8_bits(c->d, want.d[first]),
               want.d[first]);
    }
    return wrong != 0;
}

static int compare_amax(const test_case *c, const char *route, int says) {
    float amax;
    memcpy(&amax, after + AMAX_AT, sizeof amax);
    if (is_same(want.amax, (double)amax))
        return 0;
    if (says) {
        print_case(c, route);
        printf("amax_d is %g, not %g\n", (double)amax, want.amax);
    }
    return 1;
}

/* Operands, scales and the guards must be as they were. */
static int compare_rest(const test_case *c, const char *route, int says) {
    size_t i, d_end = D_AT + (size_t)(c->batch * c->m * c->n);
    for (i = 0; i < SIZE; i++) {
        int is_output = (i >= D_AT && i < d_end) || (i >= AMAX_AT && i < AMAX_AT + sizeof(float));
        if (is_output || before[i] == after[i])
            continue;
        if (says) {
            print_case(c, route);
            printf("the byte at %ld from the start of D, which has %ld, became %02x\n", (long)i - (long)D_AT,
                   (long)(d_end - D_AT), after[i]);
        }
        return 1;
    }
    return 0;
}

/* The first wrong case of each route is explained. */
static int compare(const test_case *c, const gemmepi_plan *plan, const gemmepi_plan_details *details) {
    const char *route = details->route_name;
    char text[4096];
    int says = wrong_cases < MAX_LINES;
    int wrong = compare_d(c, route, says);
    wrong |= compare_amax(c, route, says);
    wrong |= compare_rest(c, route, says);
    if (wrong && explained[details->route]++ == 0) {
        gemmepi_plan_explain(plan, text, sizeof text);
        printf("%s\n", text);
    }
    return wrong;
}

static int failed_call(const test_case *c, const char *call) {
    print_case(c, "?");
    printf("%s: %s\n", call, gemmepi_last_error());
    return 1;
}

/* Returns whether anything is wrong; it is printed. */
static int run_planned(const side *s, const test_case *c, const gemmepi_plan *plan) {
    gemmepi_matmul_args args = arguments(s, c);
    gemmepi_plan_details details;
    if (gemmepi_plan_info(plan, &details) != GEMMEPI_OK || gemmepi_plan_prepare(plan, NULL) != GEMMEPI_OK)
        return failed_call(c, "gemmepi_plan_prepare");
    if (gemmepi_upload(s->context, s->memory, before, SIZE, NULL) != GEMMEPI_OK ||
        gemmepi_run_matmul(plan, &args, NULL) != GEMMEPI_OK ||
        gemmepi_download(s->context, after, s->memory, SIZE, NULL) != GEMMEPI_OK)
        return failed_call(c, "gemmepi_run_matmul");
    /* of the plan that has run, which may not be the one that was made */
    if (gemmepi_plan_info(plan, &details) != GEMMEPI_OK)
        return failed_call(c, "gemmepi_plan_info");
    routes[details.route]++;
    CHECK((details.route == GEMMEPI_ROUTE_HOST) == (s == &host), "route %s", details.route_name);
    return compare(c, plan, &details);
}

static void run_case(const side *s, const test_case *c) {
    gemmepi_matmul_desc desc = description(c);
    gemmepi_plan *plan = NULL;
    int wrong;
    fill(c);
    work_out(c);
    wrong = gemmepi_plan_matmul(s->context, &desc, &plan) != GEMMEPI_OK
                ? failed_call(c, "gemmepi_plan_matmul")
                : run_planned(s, c, plan);
    gemmepi_plan_destroy(plan);
    wrong_cases += wrong;
    right_cases += !wrong;
}

/* Case number `index` of all; 0 when there are no more. */
static int take_case(int index, test_case *c) {
    int pair = index % COUNT(operands), d, epilogue, shape;
    index /= COUNT(operands);
    d = index % COUNT(results);
    index /= COUNT(results);
    epilogue = index % COUNT(epilogues);
    index /= COUNT(epilogues);
    shape = index % COUNT(shapes);
    index /= COUNT(shapes);
    if (index >= COUNT(batches))
        return 0;
    c->a = operands[pair][0];
    c->b = operands[pair][1];
    c->d = results[d];
    c->epilogue = epilogues[epilogue].epilogue;
    c->m = shapes[shape][0];
    c->n = shapes[shape][1];
    c->k = shapes[shape][2];
    c->batch = batches[index];
    return 1;
}

static void run_all(const side *s, variation what) {
    test_case c;
    int index;
    if (!s->context)
        return;
    wrong_cases = right_cases = 0;
    memset(routes, 0, sizeof routes);
    memset(explained, 0, sizeof explained);
    memset(&c, 0, sizeof c);
    c.what = what;
    for (index = 0; take_case(index, &c); index++)
        if (has_case(&c))
            run_case(s, &c);
    CHECK(wrong_cases == 0, "%d of %d cases are wrong", wrong_cases, wrong_cases + right_cases);
    CHECK(right_cases + wrong_cases > 0, "there was no case");
    if (s == &gpu)
        printf("  %s: %d cases by lt, %d by split, %d by plain, %d by fused\n", variation_names[what],
               routes[GEMMEPI_ROUTE_LT], routes[GEMMEPI_ROUTE_SPLIT], routes[GEMMEPI_ROUTE_PLAIN],
               routes[GEMMEPI_ROUTE_FUSED]);
}

/* >>tests */

static void on_the_host_overflow_saturates(void) {
    run_all(&host, OVERFLOWS);
}
static void on_the_host_infinities_saturate_and_amax_is_infinite(void) {
    run_all(&host, INFINITE);
}
static void on_the_host_nan_stays_where_it_is_and_amax_is_nan(void) {
    run_all(&host, HAS_NAN);
}
static void on_the_host_nan_of_the_bias_fills_its_column(void) {
    run_all(&host, BIAS_NAN);
}

static void on_the_gpu_overflow_saturates(void) {
    run_all(&gpu, OVERFLOWS);
}
static void on_the_gpu_infinities_saturate_and_amax_is_infinite(void) {
    run_all(&gpu, INFINITE);
}
static void on_the_gpu_nan_stays_where_it_is_and_amax_is_nan(void) {
    run_all(&gpu, HAS_NAN);
}
static void on_the_gpu_nan_of_the_bias_fills_its_column(void) {
    run_all(&gpu, BIAS_NAN);
}

enum {
    KINDS = COUNT(operands) * COUNT(results) * COUNT(epilogues)
}; /* the shapes and batches of each follow */

/* Prints what cuBLASLt's own kernel does not take and, for one, why. Where it took nothing the tests below would
   say nothing of its stores. */
static void plain_products_of_e4m3_are_cublaslts(void) {
    char text[4096], reasons[KINDS][160];
    int index, others[KINDS] = {0};
    test_case c;
    memset(&c, 0, sizeof c);
    for (index = 0; take_case(index, &c); index++) {
        gemmepi_matmul_desc desc = description(&c);
        gemmepi_plan_details details;
        gemmepi_plan *plan = NULL;
        int is_plain = c.a == GEMMEPI_E4M3 && c.b == GEMMEPI_E4M3 && c.d == GEMMEPI_E4M3 &&
                       c.epilogue == GEMMEPI_NONE && c.batch == 1;
        if (gemmepi_plan_matmul(gpu.context, &desc, &plan) != GEMMEPI_OK ||
            gemmepi_plan_info(plan, &details) != GEMMEPI_OK) {
            CHECK(0, "%s", gemmepi_last_error());
        } else if (details.route != GEMMEPI_ROUTE_LT) {
            const char *reason;
            gemmepi_plan_explain(plan, text, sizeof text);
            reason = strstr(text, "not lt");
            reason = reason ? reason : text;
            snprintf(reasons[index % KINDS], sizeof reasons[0], "%.*s", (int)strcspn(reason, "\n"), reason);
            others[index % KINDS]++;
            CHECK(!is_plain, "%dx%dx%d: %s", c.m, c.n, c.k, text);
        }
        gemmepi_plan_destroy(plan);
    }
    for (index = 0; index < KINDS; index++)
        if (others[index] && take_case(index, &c))
            printf("  %s x %s -> %s  %-9s  %d of %d by other routes: %s\n", oracle_format(c.a).name,
                   oracle_format(c.b).name, oracle_format(c.d).name, epilogue_name(c.epilogue), others[index],
                   COUNT(shapes) * COUNT(batches), reasons[index]);
}

static int open_side(side *s, int device, unsigned routes_left) {
    gemmepi_config config;
    void *memory = NULL;
    memset(&config, 0, sizeof config);
    config.device = device;
    config.routes = routes_left;
    if (gemmepi_create(&config, &s->context) != GEMMEPI_OK)
        return 0;
    if (gemmepi_alloc(s->context, SIZE, &memory) != GEMMEPI_OK) {
        gemmepi_destroy(s->context);
        s->context = NULL;
        return 0;
    }
    s->memory = (char *)memory;
    return 1;
}

static void close_side(side *s) {
    gemmepi_free(s->context, s->memory);
    gemmepi_destroy(s->context);
}

static void test_the_host(void) {
    if (!open_side(&host, GEMMEPI_DEVICE_HOST, 0)) {
        printf("FAIL the host: %s\n", gemmepi_last_error());
        test_failed++;
        return;
    }
    RUN(on_the_host_overflow_saturates);
    RUN(on_the_host_infinities_saturate_and_amax_is_infinite);
    RUN(on_the_host_nan_stays_where_it_is_and_amax_is_nan);
    RUN(on_the_host_nan_of_the_bias_fills_its_column);
    close_side(&host);
}

static void run_variations_on_the_gpu(void) {
    RUN(on_the_gpu_overflow_saturates);
    RUN(on_the_gpu_infinities_saturate_and_amax_is_infinite);
    RUN(on_the_gpu_nan_stays_where_it_is_and_amax_is_nan);
    RUN(on_the_gpu_nan_of_the_bias_fills_its_column);
}

/* By cuBLASLt, by our kernel for everything, and on Hopper by the engine for fp8. required: the device was named, so that without it there
   is a failure. */
static void test_the_gpu(int device, int required) {
    static const unsigned by[] = {1u << GEMMEPI_ROUTE_LT | 1u << GEMMEPI_ROUTE_SPLIT,
                                  1u << GEMMEPI_ROUTE_PLAIN, 1u << GEMMEPI_ROUTE_FUSED};
    gemmepi_context_details details;
    int i;
    for (i = 0; i < COUNT(by); i++) {
        memset(&details, 0, sizeof details);
        if (!open_side(&gpu, device, by[i])) {
            printf("%s fp8 results of a GPU: %s\n", required ? "FAIL" : "skip", gemmepi_last_error());
            *(required ? &test_failed : &test_skipped) += 1;
            return;
        }
        gemmepi_context_info(gpu.context, &details);
        if (i < 2 && details.compute_capability < 89) {
            printf(
                "skip fp8 results of a GPU: %s has compute capability %d.%d, cuBLASLt's fp8 begins with 8.9\n",
                details.name, details.compute_capability / 10, details.compute_capability % 10);
            test_skipped++;
        } else if (i < 2 || details.compute_capability == 90) {
            if (i == 0)
                RUN(plain_products_of_e4m3_are_cublaslts);
            run_variations_on_the_gpu();
        }
        close_side(&gpu);
    }
}

int main(void) {
    const char *name = getenv("GEMMEPI_TEST_DEVICE");
    int is_number = name && name[0] >= '0' && name[0] <= '9';
    if (!is_number)
        test_the_host();
    if (!name || is_number)
        test_the_gpu(GEMMEPI_DEVICE(is_number ? atoi(name) : 0), is_number);
    return test_finish();
}
