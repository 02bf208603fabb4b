/* A cublasLtMatmul that refuses to run what its heuristic accepted, on a GPU: config.resolve_symbol puts a function before
   the real one that refuses some calls. What the next route computes is held against the host. */
#include "gemmepi.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

/* >>a cublasLtMatmul that refuses */

typedef int(GPI__CUDA_CALL *matmul_function)(void *handle, void *desc, const void *alpha, const void *a,
                                             void *a_layout, const void *b, void *b_layout, const void *beta,
                                             const void *c, void *c_layout, void *d, void *d_layout,
                                             const void *algo, void *workspace, size_t workspace_size,
                                             void *stream);

enum { NOT_SUPPORTED = 15, DESC_SIZE = sizeof(gpi__lt_matmul_desc), ALWAYS = -1 };

static matmul_function real_matmul;
static int refusals; /* so many calls are refused from now on, ALWAYS: all */
static int calls, refused;
static unsigned char refused_desc[DESC_SIZE]; /* of the last refused call: the same is refused again */
static int warnings;

static int GPI__CUDA_CALL refusing_matmul(void *handle, void *desc, const void *alpha, const void *a,
                                          void *a_layout, const void *b, void *b_layout, const void *beta,
                                          const void *c, void *c_layout, void *d, void *d_layout,
                                          const void *algo, void *workspace, size_t workspace_size,
                                          void *stream) {
    calls++;
    if (refusals == ALWAYS || refused < refusals ||
        (refused && memcmp(refused_desc, desc, sizeof refused_desc) == 0)) {
        memcpy(refused_desc, desc, sizeof refused_desc);
        refused++;
        return NOT_SUPPORTED;
    }
    return real_matmul(handle, desc, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algo,
                       workspace, workspace_size, stream);
}

static void *resolve(void *user, const char *library, const char *symbol, void *found) {
    matmul_function function = refusing_matmul;
    (void)user;
    if (!found || strcmp(library, "cublasLt") != 0 || strcmp(symbol, "cublasLtMatmul") != 0)
        return found;
    memcpy(&real_matmul, &found, sizeof found);
    memcpy(&found, &function, sizeof found);
    return found;
}

static void count_warnings(void *user, gemmepi_log_level level, const char *message) {
    (void)user;
    warnings += level == GEMMEPI_LOG_WARNING && strstr(message, "uses another route") &&
                strstr(message, "cublasLtMatmul refused");
}

static void refuse(int count) {
    refusals = count;
    calls = refused = warnings = 0;
}

/* >>problems: A, B, D, bias and scales in one block, the same on both sides */

enum { M = 200, N = 136, K = 1096 }; /* k enough for cuBLASLt to be estimated as faster than PLAIN */

#define A_AT       ((size_t)0)
#define B_AT       ((size_t)0x70000)
#define D_AT       ((size_t)0xc0000)
#define BIAS_AT    ((size_t)0xd0000)
#define SCALE_A_AT ((size_t)0xd1000)
#define SCALE_B_AT ((size_t)0xd1100)
#define SIZE       ((size_t)0xd2000)

/* Does not compile where they overlap. */
typedef char operands_fit[2 * M * K <= B_AT - A_AT && 2 * K * N <= D_AT - B_AT && 2 * M * N <= BIAS_AT - D_AT
                              ? 1
                              : -1];

/* where a product runs */
typedef struct side {
    gemmepi_context *context;
    char *memory;
} side;

static side gpu, host;

static gemmepi_matmul_desc product(gemmepi_dtype operands, gemmepi_epilogue epilogue) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = M;
    desc.n = N;
    desc.k = K;
    desc.batch = 1;
    desc.a.dtype = operands;
    desc.d.dtype = GEMMEPI_BF16;
    desc.epilogue = epilogue;
    if (operands == GEMMEPI_E4M3) { /* the layout that cuBLASLt has fp8 products for */
        desc.b.transposed = 1;
        desc.a.scale.mode = desc.b.scale.mode = GEMMEPI_SCALE_TENSOR;
    }
    return desc;
}

static gemmepi_matmul_args arguments(const gemmepi_matmul_desc *desc, char *memory) {
    int scaled = desc->a.scale.mode != GEMMEPI_SCALE_NONE;
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = memory + A_AT;
    args.b = memory + B_AT;
    args.d = memory + D_AT;
    args.bias = desc->epilogue & GEMMEPI_BIAS ? memory + BIAS_AT : NULL;
    args.scale_a = (const float *)(const void *)(scaled ? memory + SCALE_A_AT : NULL);
    args.scale_b = (const float *)(const void *)(scaled ? memory + SCALE_B_AT : NULL);
    return args;
}

static unsigned next_random(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Operands of +-0.25 to 1, NaN where D will be. */
static void fill(unsigned char *block, gemmepi_dtype operands) {
    static const float scales[] = {1.5f, -0.5f};
    unsigned state = 7;
    size_t i;
    memset(block, 0xff, SIZE);
    for (i = 0; i < D_AT; i++)
        block[i] = (unsigned char)(0x28 + next_random(&state) % 16 + next_random(&state) % 2 * 0x80);
    for (i = 0; i < (operands == GEMMEPI_E4M3 ? 0 : D_AT); i += 2) {
        unsigned short value =
            (unsigned short)(0x3e80 + next_random(&state) % 256 + next_random(&state) % 2 * 0x8000);
        memcpy(block + i, &value, sizeof value);
    }
    for (i = 0; i < 2 * N; i += 2) {
        unsigned short value = (unsigned short)(0x3f80 + next_random(&state) % 128);
        memcpy(block + BIAS_AT + i, &value, sizeof value);
    }
    memcpy(block + SCALE_A_AT, &scales[0], sizeof(float));
    memcpy(block + SCALE_B_AT, &scales[1], sizeof(float));
}

static void upload(const side *to, const unsigned char *block) {
    CHECK(gemmepi_upload(to->context, to->memory, block, SIZE, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
}

static void download_d(const side *from, unsigned short *d) {
    CHECK(gemmepi_download(from->context, d, from->memory + D_AT, sizeof *d * M * N, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
}

static double number_of_bf16(unsigned short bits) {
    unsigned wide = (unsigned)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

/* One rounding to BF16 apart, and the error of the sums: of K terms up to 1 in F32, on the tensor cores of fp8 2^-12 of
   them. */
static void check_d(const char *what, const unsigned short *got, const unsigned short *want,
                    gemmepi_dtype operands) {
    double sums = operands == GEMMEPI_E4M3 ? ldexp(K, -12) : 1e-4;
    int i, wrong = 0, first = 0;
    for (i = 0; i < M * N; i++) {
        double x = number_of_bf16(got[i]), y = number_of_bf16(want[i]);
        if (!(fabs(x - y) <= sums + ldexp(fabs(y), -7)) && wrong++ == 0)
            first = i;
    }
    CHECK(wrong == 0, "%s: %d of %d wrong, first (%d, %d): %g, not %g", what, wrong, M * N, first / N,
          first % N, number_of_bf16(got[first]), number_of_bf16(want[first]));
}

/* >>the tests */

static unsigned char block[SIZE];
static unsigned short want[M * N], got[M * N];

static void run_on_the_host(const gemmepi_matmul_desc *desc) {
    gemmepi_matmul_args args = arguments(desc, host.memory);
    upload(&host, block);
    CHECK(gemmepi_matmul(host.context, desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    download_d(&host, want);
}

static gemmepi_plan_details details_of(const gemmepi_plan *plan) {
    gemmepi_plan_details details;
    memset(&details, 0, sizeof details);
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return details;
}

/* Runs a plan three times with `count` refusals before the first; `expected` is the route that it has then. */
static void check_runs(const gemmepi_plan *plan, const gemmepi_matmul_desc *desc, void *workspace,
                       size_t workspace_size, int count, int replacements, gemmepi_route expected) {
    gemmepi_matmul_args args = arguments(desc, gpu.memory);
    gemmepi_plan_details details;
    char text[4096];
    int run, calls_a_run = expected == GEMMEPI_ROUTE_PLAIN ? 0 : 1;
    args.workspace = workspace;
    args.workspace_size = workspace_size;
    refuse(count);
    for (run = 1; run <= 3; run++) {
        upload(&gpu, block);
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "run %d: %s", run, gemmepi_last_error());
        download_d(&gpu, got);
        details = details_of(plan);
        check_d(details.kernel, got, want, desc->a.dtype);
        CHECK(calls == replacements + run * calls_a_run && refused == replacements,
              "run %d: %d calls, %d refused", run, calls, refused);
        CHECK(details.route == expected, "run %d: route %s", run, details.route_name);
        CHECK(warnings == replacements, "run %d: %d warnings", run, warnings);
    }
    gemmepi_plan_explain(plan, text, sizeof text);
    CHECK(strstr(text, "cublasLtMatmul refused") && strstr(text, details.route_name), "explain: %s", text);
}

static void check_refusals(gemmepi_dtype operands, gemmepi_epilogue epilogue, int count) {
    gemmepi_matmul_desc desc = product(operands, epilogue);
    gemmepi_plan *plan = NULL;
    gemmepi_route route, expected;
    size_t size;
    void *workspace = NULL;
    int with_workspace, replacements;
    fill(block, operands);
    run_on_the_host(&desc);
    refuse(0);
    for (with_workspace = 0; with_workspace < 2; with_workspace++) {
        CHECK(gemmepi_plan_matmul(gpu.context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        if (!plan)
            return;
        route = details_of(plan).route;
        size = details_of(plan).workspace_size;
        expected = route == GEMMEPI_ROUTE_LT && count == 1 ? GEMMEPI_ROUTE_SPLIT : GEMMEPI_ROUTE_PLAIN;
        replacements = route == GEMMEPI_ROUTE_LT && count == ALWAYS ? 2 : 1;
        CHECK(route == GEMMEPI_ROUTE_LT || route == GEMMEPI_ROUTE_SPLIT,
              "there is nothing to refuse in the route %s", details_of(plan).route_name);
        if (with_workspace) /* of the first route: the next one may need more */
            CHECK(gemmepi_alloc(gpu.context, size + 256, &workspace) == GEMMEPI_OK, "%s",
                  gemmepi_last_error());
        else
            CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        if (route == GEMMEPI_ROUTE_LT || route == GEMMEPI_ROUTE_SPLIT)
            check_runs(plan, &desc, workspace, workspace ? size : 0, count, replacements, expected);
        refuse(0);
        gemmepi_plan_destroy(plan);
        plan = NULL;
    }
    CHECK(gemmepi_free(gpu.context, workspace) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static void a_product_with_bias_is_right_after_one_refusal(void) {
    check_refusals(GEMMEPI_BF16, GEMMEPI_BIAS, 1);
}
static void a_product_with_bias_is_right_after_all_refusals(void) {
    check_refusals(GEMMEPI_BF16, GEMMEPI_BIAS, ALWAYS);
}
static void a_product_with_relu_is_right_after_one_refusal(void) {
    check_refusals(GEMMEPI_BF16, GEMMEPI_RELU, 1);
}
static void a_product_with_relu_is_right_after_all_refusals(void) {
    check_refusals(GEMMEPI_BF16, GEMMEPI_RELU, ALWAYS);
}
static void a_product_with_silu_is_right_after_one_refusal(void) {
    check_refusals(GEMMEPI_BF16, GEMMEPI_SILU, 1);
}
static void a_product_with_silu_is_right_after_all_refusals(void) {
    check_refusals(GEMMEPI_BF16, GEMMEPI_SILU, ALWAYS);
}
static void an_fp8_product_is_right_after_one_refusal(void) {
    check_refusals(GEMMEPI_E4M3, GEMMEPI_BIAS, 1);
}
static void an_fp8_product_is_right_after_all_refusals(void) {
    check_refusals(GEMMEPI_E4M3, GEMMEPI_BIAS, ALWAYS);
}

/* Of a kind that no test above has planned, so that the one-shot call is the first. */
static void one_shot_calls_stay_with_the_route_that_was_found(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_RELU | GEMMEPI_BIAS);
    gemmepi_matmul_args args = arguments(&desc, gpu.memory);
    int i, first = 0;
    fill(block, GEMMEPI_BF16);
    run_on_the_host(&desc);
    refuse(1);
    for (i = 0; i < 3; i++) {
        upload(&gpu, block);
        CHECK(gemmepi_matmul(gpu.context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        download_d(&gpu, got);
        check_d("one shot", got, want, GEMMEPI_BF16);
        first = i == 0 ? calls : first;
        CHECK(warnings == 1 && refused == 1, "%d warnings, %d refused", warnings, refused);
    }
    CHECK(calls == first + 2 * (first - 1), "%d calls, %d in the first run", calls, first);
    refuse(0);
}

static int open_side(side *s, int device) {
    gemmepi_config config;
    void *memory = NULL;
    memset(&config, 0, sizeof config);
    config.device = device;
    if (device != GEMMEPI_DEVICE_HOST)
        config.routes = 1u << GEMMEPI_ROUTE_LT | 1u << GEMMEPI_ROUTE_SPLIT | 1u << GEMMEPI_ROUTE_PLAIN;
    config.log = count_warnings;
    config.resolve_symbol = device == GEMMEPI_DEVICE_HOST ? NULL : resolve;
    if (gemmepi_create(&config, &s->context) != GEMMEPI_OK ||
        gemmepi_alloc(s->context, SIZE, &memory) != GEMMEPI_OK)
        return 0;
    s->memory = (char *)memory;
    return 1;
}

static void close_side(side *s) {
    gemmepi_free(s->context, s->memory);
    gemmepi_destroy(s->context);
}

int main(void) {
    if (!open_side(&gpu, GEMMEPI_DEVICE(0))) {
        printf("skip refusals: %s\n0 passed, 0 failed, 1 skipped\n", gemmepi_last_error());
        return 0;
    }
    if (!open_side(&host, GEMMEPI_DEVICE_HOST)) {
        printf("FAIL refusals: %s\n0 passed, 1 failed, 0 skipped\n", gemmepi_last_error());
        return 1;
    }
    RUN(a_product_with_bias_is_right_after_one_refusal);
    RUN(a_product_with_bias_is_right_after_all_refusals);
    RUN(a_product_with_relu_is_right_after_one_refusal);
    RUN(a_product_with_relu_is_right_after_all_refusals);
    RUN(a_product_with_silu_is_right_after_one_refusal);
    RUN(a_product_with_silu_is_right_after_all_refusals);
    RUN(an_fp8_product_is_right_after_one_refusal);
    RUN(an_fp8_product_is_right_after_all_refusals);
    RUN(one_shot_calls_stay_with_the_route_that_was_found);
    close_side(&host);
    close_side(&gpu);
    return test_finish();
}
