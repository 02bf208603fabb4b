/* Grouped products against oracle.h, a position at a time: rows of groups, and k in groups; gathered, scattered, weighted. What they refuse, and what
   only the device can see. On the host, and on a GPU by every route that takes them. */
#include "grouped_case.h"

/* >>cases */

#define E4M3   GEMMEPI_E4M3
#define FIND   GEMMEPI_FIND_SCALE_D
#define NO     GEMMEPI_SCALE_NONE
#define TENSOR GEMMEPI_SCALE_TENSOR
#define OUTER  GEMMEPI_SCALE_OUTER
#define VECTOR GEMMEPI_SCALE_VECTOR_128
#define BLOCK  GEMMEPI_SCALE_BLOCK_128

static gemmepi_grouped_desc small_desc(void) {
    gemmepi_grouped_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.product.m = 32, desc.product.n = 16, desc.product.k = 16;
    desc.product.a.dtype = BF16;
    desc.groups = 4;
    return desc;
}

static void check_refused(const gemmepi_grouped_desc *desc, const char *says) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gemmepi_plan_grouped(here->context, desc, &plan);
    CHECK(status != GEMMEPI_OK && strstr(gemmepi_last_error(), says) && !plan,
          "'%s' should be said, and is: %s", says, status ? gemmepi_last_error() : "nothing");
    gemmepi_plan_destroy(plan);
}

/* On a GPU the share that TEST_SHARE names. */
static void run_cases(const grouped_case *cases, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        int number = (int)i;
        if (here->is_host || test_takes(test_key(&number, 1)))
            run_case(&cases[i], 100 + i);
    }
}
#define RUN_CASES(cases) run_cases(cases, sizeof(cases) / sizeof *(cases))

/* clang-format off */

static void rows_of_groups_are_products_by_their_own_weights(void) {
    static const grouped_case cases[] = {
        {"bf16, even", BF16, BF16, GEMMEPI_NONE, 0, 4, 256, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 0},
        {"bf16, weights [n, k], random", BF16, BF16, GEMMEPI_NONE, 0, 9, 500, 136, 200, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"f16 to f32, one group has all", F16, F32, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 5, 300, 96, 264, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, NO, NO, 1},
        {"nothing in any group", BF16, BF16, GEMMEPI_NONE, 0, 5, 300, 96, 264, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 3},
        {"one group", BF16, BF16, GEMMEPI_GELU_TANH | GEMMEPI_BIAS, 0, 1, 131, 72, 72, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 0},
        {"4096 groups", BF16, BF16, GEMMEPI_NONE, 0, 4096, 700, 64, 8, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 4},
        {"64 groups", BF16, BF16, GEMMEPI_NONE, 0, 64, 640, 64, 64, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"one row, gathered and scattered", BF16, BF16, GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX, 0, 3, 1, 64, 72, 0, 0, 1, 9, 0, 9, 0, 8, 2, .5, NO, NO, 1},
        {"one row of fp8, gathered and scattered", E4M3, BF16, GEMMEPI_NONE, 0, 3, 1, 128, 80, 0, 0, 1, 9, 0, 9, 1, 16, 0, 0, NO, NO, 1},
    };
    wants_fused = here->context != NULL && strstr(here->name, "without") == NULL;
    RUN_CASES(cases);
}

static void every_kind_of_epilogue_goes_with_groups_of_rows(void) {
    static const grouped_case cases[] = {
        {"swiglu", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 6, 400, 128, 256, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"swiglu with bias and aux", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_AUX, 0, 6, 400, 128, 272, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"gradient of swiglu", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD, 0, 6, 400, 128, 136, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"gradient of gelu", BF16, BF16, GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD, 0, 6, 400, 128, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"relu with its mask", BF16, BF16, GEMMEPI_RELU | GEMMEPI_AUX, 0, 6, 400, 128, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"gradient of relu", BF16, BF16, GEMMEPI_RELU | GEMMEPI_BACKWARD, 0, 6, 400, 128, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"residual", F16, F16, GEMMEPI_TANH | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, 0, 6, 400, 72, 200, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"alpha and C", BF16, BF16, GEMMEPI_NONE, 0, 6, 400, 72, 200, 0, 0, 1, 0, 0, 0, 0, 0, 2, .5, NO, NO, 2},
        {"added to D", BF16, F32, GEMMEPI_NONE, GEMMEPI_ACCUMULATE, 6, 400, 72, 200, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
    };
    wants_fused = strstr(here->name, "without") == NULL;
    RUN_CASES(cases);
}

static void rows_are_gathered_scattered_and_weighted(void) {
    static const grouped_case cases[] = {
        {"gathered", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 6, 400, 128, 256, 0, 0, 1, 50, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"scattered", BF16, BF16, GEMMEPI_NONE, 0, 6, 400, 128, 256, 0, 0, 1, 0, 0, 410, 0, 0, 0, 0, NO, NO, 2},
        {"scattered with weights", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 128, 72, 0, 0, 0, 0, 0, 410, 1, 0, 0, 0, NO, NO, 2},
        {"gathered, scattered, all beside", BF16, BF16, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL, 0, 6, 400, 128, 72, 0, 0, 0, 70, 0, 410, 0, 8, 0, 0, NO, NO, 0},
        {"scattered gradient", BF16, BF16, GEMMEPI_SILU | GEMMEPI_BACKWARD, 0, 6, 400, 128, 72, 0, 0, 0, 0, 0, 410, 1, 0, 0, 0, NO, NO, 0},
        {"weights alone", BF16, BF16, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 6, 400, 128, 72, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, NO, NO, 2},
    };
    wants_fused = strstr(here->name, "without") == NULL;
    RUN_CASES(cases);
}

static void what_no_fast_kernel_takes_runs_all_the_same(void) {
    static const grouped_case cases[] = {
        {"odd sizes", BF16, BF16, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 6, 300, 37, 53, 0, 0, 1, 0, 0, 0, 0, 3, 0, 0, NO, NO, 2},
        {"odd gates", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX, 0, 6, 300, 37, 54, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, NO, NO, 2},
        {"odd gates, weights [n, k], gathered", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 6, 300, 37, 142, 0, 0, 1, 40, 0, 310, 1, 3, 0, 0, NO, NO, 2},
        {"gates of 12 columns, whose lines are aligned", BF16, BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 2, 40, 16, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 0},
        {"gates of 11 columns, whose lines are aligned", E4M3, BF16, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX, 0, 2, 40, 32, 22, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, NO, NO, 0},
        {"f32", F32, F32, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 0, 6, 300, 64, 64, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"f64", GEMMEPI_F64, GEMMEPI_F64, GEMMEPI_NONE, 0, 6, 200, 30, 33, 0, 0, 1, 20, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"i8", GEMMEPI_I8, GEMMEPI_I32, GEMMEPI_RELU, 0, 6, 200, 30, 33, 0, 0, 1, 20, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"fp8 with scales of rows", E4M3, BF16, GEMMEPI_SILU, 0, 6, 300, 256, 64, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 2},
        {"fp8 with scales along k and by blocks", E4M3, BF16, GEMMEPI_NONE, 0, 6, 300, 300, 150, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
        {"fp8 likewise, gathered, a gate", E4M3, BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 6, 300, 300, 150, 0, 0, 1, 77, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
        {"fp8 rows, gathered and scattered", E4M3, BF16, GEMMEPI_NONE, 0, 6, 300, 128, 150, 0, 0, 0, 77, 0, 310, 0, 0, 0, 0, OUTER, VECTOR, 2},
        {"fp8, both by blocks, groups begin anywhere", E4M3, F32, GEMMEPI_NONE, 0, 6, 300, 260, 150, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, BLOCK, BLOCK, 2},
        {"fp8, both by blocks", E4M3, F32, GEMMEPI_NONE, 0, 6, 300, 260, 150, 0, 0, 1, 200, 0, 0, 0, 0, 0, 0, BLOCK, BLOCK, 2},
        {"k 0", BF16, BF16, GEMMEPI_NONE | GEMMEPI_BIAS, 0, 6, 300, 0, 40, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
    };
    wants_fused = 0;
    RUN_CASES(cases);
}

static void fp8_rows_of_groups_are_products_by_the_fast_kernel(void) {
    static const grouped_case cases[] = {
        {"one scale for all", E4M3, BF16, GEMMEPI_NONE, 0, 6, 400, 272, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, TENSOR, TENSOR, 2},
        {"1 x 128 by 128 x 128", E4M3, BF16, GEMMEPI_NONE, 0, 6, 500, 400, 272, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
        {"likewise, one group has all", E4M3, BF16, GEMMEPI_NONE, 0, 6, 500, 272, 264, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 1},
        {"likewise, even", E4M3, F32, GEMMEPI_BIAS, 0, 3, 600, 128, 256, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 0},
        {"likewise, nothing in any group", E4M3, BF16, GEMMEPI_NONE, 0, 6, 500, 256, 264, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 3},
        {"likewise, a gate, gathered", E4M3, BF16, GEMMEPI_SILU | GEMMEPI_GATED, 0, 6, 400, 384, 256, 0, 0, 1, 77, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
        {"likewise, scattered with weights", E4M3, BF16, GEMMEPI_NONE, 0, 6, 400, 256, 136, 0, 0, 1, 0, 0, 410, 1, 0, 0, 0, VECTOR, BLOCK, 2},
        {"1 x 128 both, alpha and C", E4M3, BF16, GEMMEPI_NONE, 0, 6, 400, 256, 136, 0, 0, 1, 0, 0, 0, 0, 0, 2, .5, VECTOR, VECTOR, 2},
        {"blocks both, gathered", E4M3, BF16, GEMMEPI_NONE, 0, 6, 400, 272, 136, 0, 0, 1, 300, 0, 0, 0, 0, 0, 0, BLOCK, BLOCK, 2},
        {"rows and columns, a bias and gelu, gathered and scattered", E4M3, BF16, GEMMEPI_GELU_TANH | GEMMEPI_BIAS, 0, 6, 400, 144, 264, 0, 0, 1, 77, 0, 410, 0, 0, 0, 0, OUTER, OUTER, 2},
        {"rows and columns, fast sums, gathered", E4M3, BF16, GEMMEPI_SILU, GEMMEPI_FAST_ACCUMULATION, 6, 400, 144, 264, 0, 0, 1, 77, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 2},
        {"fast sums, a gate with aux", E4M3, BF16, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX, GEMMEPI_FAST_ACCUMULATION, 6, 400, 144, 272, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 2},
        {"e5m2, gradient of silu", GEMMEPI_E5M2, BF16, GEMMEPI_SILU | GEMMEPI_BACKWARD, 0, 6, 400, 256, 136, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
        {"64 groups", E4M3, BF16, GEMMEPI_NONE, 0, 64, 640, 128, 64, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
    };
    wants_fused = strstr(here->name, "without") == NULL;
    RUN_CASES(cases);
}

static void scales_are_found_for_rows_of_groups(void) {
    static const grouped_case cases[] = {
        {"swiglu of fp8", E4M3, E4M3, GEMMEPI_SILU | GEMMEPI_GATED, FIND, 6, 400, 272, 528, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
        {"likewise with a bias, gathered and scattered", E4M3, E4M3, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS, FIND, 6, 400, 144, 272, 0, 0, 1, 90, 0, 410, 0, 0, 0, 0, VECTOR, BLOCK, 2},
        {"one group has all, columns left", E4M3, E4M3, GEMMEPI_NONE, FIND, 5, 300, 128, 344, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 1},
        {"of bf16", BF16, E4M3, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX, FIND, 6, 500, 72, 264, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"of bf16, scattered with weights", BF16, E4M3, GEMMEPI_SILU | GEMMEPI_GATED, FIND, 6, 400, 72, 256, 0, 0, 1, 0, 0, 410, 1, 0, 0, 0, NO, NO, 2},
        {"with alpha and C", BF16, E4M3, GEMMEPI_NONE, FIND, 3, 300, 64, 128, 0, 0, 1, 0, 0, 0, 0, 0, 2, .5, NO, NO, 0},
        {"rows of one vector", E4M3, E4M3, GEMMEPI_SILU | GEMMEPI_BIAS, FIND, 4, 300, 144, 104, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, VECTOR, BLOCK, 2},
    };
    if (!here->is_host && (!here->has_fused || strstr(here->name, "without") != NULL))
        SKIP("no kernel for Hopper: scales of groups are refused there");
    wants_fused = 1;
    RUN_CASES(cases);
}

/* Where the kernel for Hopper is not, or does not take the product. */
static void scales_of_groups_are_refused_where_no_kernel_finds_them(void) {
    gemmepi_grouped_desc desc = small_desc();
    gemmepi_plan *plan = NULL;
    desc.product.d.dtype = E4M3, desc.product.d.scale.mode = VECTOR, desc.product.flags = FIND;
    desc.product.k = 15;
    if (here->is_host)
        CHECK(gemmepi_plan_grouped(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    else
        check_refused(&desc, "no route");
    gemmepi_plan_destroy(plan);
    desc.grouping = GEMMEPI_GROUPS_OF_K;
    check_refused(&desc, "GROUPS_OF_ROWS");
    desc.grouping = GEMMEPI_GROUPS_OF_ROWS, desc.product.d.scale.mode = OUTER, desc.product.n = 129;
    check_refused(&desc, "at most 128 columns");
    desc.product.n = 0; /* an empty product */
    CHECK(gemmepi_plan_grouped(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
}

static void groups_of_k_are_products_by_the_fast_kernel(void) {
    static const grouped_case cases[] = {
        {"bf16 to f32", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 72, 136, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"bf16, large", BF16, BF16, GEMMEPI_NONE, 0, 5, 640, 264, 392, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"gathered both", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 72, 136, 1, 1, 0, 90, 80, 0, 0, 8, 0, 0, NO, NO, 2},
        {"added to D", BF16, F32, GEMMEPI_NONE, GEMMEPI_ACCUMULATE, 6, 400, 72, 136, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"sums of b", BF16, F32, GEMMEPI_BGRAD_B, 0, 6, 400, 72, 136, 1, 1, 0, 0, 80, 0, 0, 0, 0, 0, NO, NO, 2},
        {"sums of a, added", BF16, F32, GEMMEPI_BGRAD_A | GEMMEPI_ACCUMULATE_BIAS_GRAD, GEMMEPI_ACCUMULATE, 6, 600, 72, 136, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 1},
        {"all empty, with a bias", BF16, BF16, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 6, 400, 40, 40, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 3},
        {"300 groups", BF16, F32, GEMMEPI_NONE, 0, 300, 400, 8, 8, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 4},
        {"one group has all", F16, F16, GEMMEPI_NONE, 0, 6, 400, 40, 40, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 1},
        {"k of one, gathered both", BF16, F32, GEMMEPI_NONE, 0, 3, 1, 72, 136, 1, 1, 0, 9, 8, 0, 0, 8, 0, 0, NO, NO, 1},
    };
    wants_fused = strstr(here->name, "without") == NULL;
    RUN_CASES(cases);
}

static void groups_of_k_are_products_of_their_own(void) {
    static const grouped_case cases[] = {
        {"bf16", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 72, 136, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"bf16, even", BF16, BF16, GEMMEPI_NONE, 0, 4, 512, 128, 128, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 0},
        {"added to D", BF16, F32, GEMMEPI_NONE, GEMMEPI_ACCUMULATE, 6, 400, 72, 136, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"one group has all", F16, F16, GEMMEPI_NONE, 0, 6, 400, 40, 40, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 1},
        {"all empty, with a bias", BF16, BF16, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 6, 400, 40, 40, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 3},
        {"odd, gathered both", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 37, 53, 1, 1, 0, 90, 80, 0, 0, 3, 0, 0, NO, NO, 2},
        {"a along k, b along k", BF16, F32, GEMMEPI_NONE, 0, 6, 400, 37, 53, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"gates and aux", BF16, F32, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX, 0, 3, 200, 37, 54, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"odd sums", F16, F32, GEMMEPI_BGRAD_A, 0, 6, 400, 37, 53, 1, 1, 0, 90, 0, 0, 0, 3, 0, 0, NO, NO, 2},
        {"sums beside an empty d", BF16, F32, GEMMEPI_BGRAD_A, 0, 6, 400, 40, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, NO, NO, 2},
        {"fp8 sums with scales of rows", E4M3, F32, GEMMEPI_BGRAD_B, 0, 6, 400, 37, 53, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 2},
        {"fp8 with scales of rows", E4M3, F32, GEMMEPI_NONE, 0, 6, 400, 37, 53, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, OUTER, OUTER, 2},
    };
    wants_fused = 0;
    RUN_CASES(cases);
}

/* clang-format on */

/* >>amax */

static float most_of(const float *values, int count) {
    float most = 0;
    int i;
    for (i = 0; i < count; i++)
        most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
    return most;
}

/* D and AUX in F32 are stored as they are counted. The first group has the largest numbers, and the last one small ones. */
static void the_amax_is_that_of_all_groups(void) {
    enum { GROUPS = 3, POSITIONS = 60, OTHER = 24, COLUMNS = 32 };
    static const int32_t ends[GROUPS] = {20, 20, POSITIONS};
    static uint16_t a[POSITIONS * OTHER], b[GROUPS * POSITIONS * COLUMNS];
    static float d[GROUPS * POSITIONS * COLUMNS], aux[GROUPS * POSITIONS * COLUMNS];
    int of_k, i;
    for (i = 0; i < POSITIONS * OTHER; i++)
        a[i] = (uint16_t)(i < POSITIONS * OTHER / 4 ? 0x4100 + i % 64
                                                    : 0x3f00 + i % 64); /* about 8, and about 1/2 */
    for (i = 0; i < GROUPS * POSITIONS * COLUMNS; i++)
        b[i] = (uint16_t)((i % 2 ? 0x3f00 : 0xbf40) + i % 31); /* columns below 0 are the larger ones */
    for (of_k = 0; of_k < 2; of_k++) {
        int rows = of_k ? OTHER : POSITIONS, count = rows * COLUMNS * (of_k ? GROUPS : 1);
        gemmepi_grouped_desc desc;
        gemmepi_grouped_args args;
        float amax[2] = {-1, -1};
        void *memory[7];
        memset(&desc, 0, sizeof desc);
        memset(&args, 0, sizeof args);
        desc.groups = GROUPS, desc.grouping = of_k ? GEMMEPI_GROUPS_OF_K : GEMMEPI_GROUPS_OF_ROWS;
        desc.product.m = rows, desc.product.n = COLUMNS, desc.product.k = of_k ? POSITIONS : OTHER;
        desc.product.a.dtype = BF16, desc.product.a.transposed = of_k;
        desc.product.d.dtype = desc.product.aux.dtype = F32;
        desc.product.epilogue = GEMMEPI_SILU | GEMMEPI_AUX;
        desc.product.flags = GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX;
        memory[0] = send(a, sizeof a), memory[1] = send(b, sizeof b), memory[2] = send(d, sizeof d);
        memory[3] = send(aux, sizeof aux), memory[4] = send(ends, sizeof ends);
        memory[5] = send(amax, 4), memory[6] = send(amax, 4);
        args.product.a = memory[0], args.product.b = memory[1], args.product.d = memory[2];
        args.product.aux = memory[3], args.product.amax_d = memory[5], args.product.amax_aux = memory[6];
        args.ends = (const int32_t *)memory[4];
        CHECK(gemmepi_grouped(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        CHECK(gemmepi_download(here->context, d, memory[2], (size_t)count * 4, here->stream) == GEMMEPI_OK &&
                  gemmepi_download(here->context, aux, memory[3], (size_t)count * 4, here->stream) ==
                      GEMMEPI_OK &&
                  gemmepi_download(here->context, &amax[0], memory[5], 4, here->stream) == GEMMEPI_OK &&
                  gemmepi_download(here->context, &amax[1], memory[6], 4, here->stream) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        CHECK(amax[0] == most_of(d, count) && amax[0] > 2 * most_of(d + count * 2 / 3, count / 3),
              "on %s, groups of %s: amax of d is %g and should be %g", here->name, of_k ? "k" : "rows",
              amax[0], most_of(d, count));
        CHECK(amax[1] == most_of(aux, count) && amax[1] != amax[0],
              "on %s, groups of %s: amax of aux is %g and should be %g", here->name, of_k ? "k" : "rows",
              amax[1], most_of(aux, count));
        for (i = 0; i < 7; i++)
            gemmepi_free(here->context, memory[i]);
    }
}

/* >>formulas */

enum { F_ROWS = 330, F_GROUPS = 5, F_N = 176, F_K = 72 };

/* Numbers that BF16 has, of which a formula's operands are made. */
static void make_numbers(uint16_t *to, double *values, int64_t count, rng *random) {
    view v = oracle_view(BF16, GEMMEPI_ROW_MAJOR, 0, count, 0);
    int64_t i;
    v.data = (unsigned char *)to;
    for (i = 0; i < count; i++)
        view_set(&v, 0, 0, i, (rng_below(random, 17) - 8) / 4.0), values[i] = view_get(&v, 0, 0, i);
}

typedef struct formula_run {
    uint16_t a[F_ROWS * F_K], b[F_GROUPS * F_N * F_K], bias[F_GROUPS * F_N], x[F_ROWS * F_N], row[F_ROWS],
        d[F_ROWS * F_N];
    double as[F_ROWS * F_K], bs[F_GROUPS * F_N * F_K], biases[F_GROUPS * F_N], xs[F_ROWS * F_N], rows[F_ROWS];
    int32_t ends[F_GROUPS];
    gemmepi_grouped_desc desc;
    gemmepi_operand operands[4];
} formula_run;

static void make_formula_run(formula_run *f, const char *text, int64_t k) {
    rng random = rng_seeded(9);
    static const int32_t ends[F_GROUPS] = {3, 3, 140, 300, 322};
    memset(&f->desc, 0, sizeof f->desc);
    memset(f->operands, 0, sizeof f->operands);
    memset(f->d, 0xff, sizeof f->d);
    memcpy(f->ends, ends, sizeof ends);
    make_numbers(f->a, f->as, F_ROWS * F_K, &random),
        make_numbers(f->b, f->bs, F_GROUPS * F_N * F_K, &random);
    make_numbers(f->bias, f->biases, F_GROUPS * F_N, &random);
    make_numbers(f->x, f->xs, F_ROWS * F_N, &random), make_numbers(f->row, f->rows, F_ROWS, &random);
    f->desc.product.m = F_ROWS, f->desc.product.n = F_N, f->desc.product.k = k;
    f->desc.product.a.dtype = BF16, f->desc.product.a.ld = F_K, f->desc.product.b.ld = F_K;
    f->desc.product.b.transposed = 1, f->desc.product.b.batch_stride = F_N * F_K;
    f->desc.product.formula = text, f->desc.product.operands = f->operands;
    f->desc.groups = F_GROUPS;
}

static gemmepi_status run_formula(formula_run *f, const double *number, int uses_rows) {
    gemmepi_grouped_args args;
    void *memory[7];
    const void *operands[4];
    gemmepi_status status;
    int i;
    memset(&args, 0, sizeof args);
    memory[0] = send(f->a, sizeof f->a), memory[1] = send(f->b, sizeof f->b);
    memory[2] = send(f->bias, sizeof f->bias), memory[3] = send(f->x, sizeof f->x);
    memory[4] = send(f->row, sizeof f->row), memory[5] = send(f->d, sizeof f->d);
    memory[6] = send(f->ends, sizeof f->ends);
    operands[0] = uses_rows ? memory[3] : memory[2], operands[1] = memory[4], operands[2] = number;
    operands[3] = memory[4];
    args.product.a = memory[0], args.product.b = memory[1], args.product.d = memory[5];
    args.product.operands = (void *const *)operands;
    args.ends = (const int32_t *)memory[6];
    status = gemmepi_grouped(here->context, &f->desc, &args, here->stream);
    if (!status)
        status = gemmepi_download(here->context, f->d, memory[5], sizeof f->d, here->stream);
    for (i = 0; i < 7; i++)
        gemmepi_free(here->context, memory[i]);
    return status;
}

/* v[row, column] of the row's group. */
static double value_of(const formula_run *f, int group, int row, int column) {
    double sum = 0;
    int i;
    for (i = 0; i < F_K; i++)
        sum += f->as[row * F_K + i] * f->bs[(group * F_N + column) * F_K + i];
    return sum;
}

static double of_gate(const formula_run *f, int group, int row, int column) {
    double g = value_of(f, group, row, column) + f->biases[group * F_N + column], gate = g < 7 ? g : 7;
    double u = value_of(f, group, row, column + F_N / 2) + f->biases[group * F_N + column + F_N / 2];
    u = u < -7 ? -7 : u > 7 ? 7 : u;
    return gate / (1 + exp(-1.702 * gate)) * (u + 1);
}

static double of_rows(const formula_run *f, int group, int row, int column) {
    return 3 * value_of(f, group, row, column) * f->rows[row] + f->xs[row * F_N + column];
}

static void check_formula_rows(const formula_run *f, int columns,
                               double (*of)(const formula_run *, int, int, int)) {
    view d = oracle_view(BF16, GEMMEPI_ROW_MAJOR, 0, columns, 0);
    int row, column, group = 0, wrong = 0;
    d.data = (unsigned char *)(uintptr_t)f->d;
    for (row = 0; row < F_ROWS && !wrong; row++) {
        while (group < F_GROUPS && row >= f->ends[group])
            group++;
        for (column = 0; column < columns && !wrong; column++) {
            double got = view_get(&d, 0, row, column),
                   want = group < F_GROUPS ? of(f, group, row, column) : 0;
            wrong = group == F_GROUPS ? got == got : !(fabs(got - want) <= fabs(want) * 0x1p-7 + 1e-3);
            CHECK(!wrong, "on %s: d[%d, %d] of group %d is %g and should be %g", here->name, row, column,
                  group, got, want);
        }
    }
}

static void formulas_go_with_groups_of_rows(void) {
    static formula_run f;
    static const double three = 3;
    int i;
    make_formula_run(
        &f, "u = v + bias; g = min(left(u), 7); d = g * sigmoid(1.702 * g) * (clamp(right(u), -7, 7) + 1)",
        F_K);
    f.operands[0].name = "bias", f.operands[0].kind = GEMMEPI_PER_COLUMN;
    f.operands[0].batch_stride = F_N; /* each group its own */
    f.desc.product.operand_count = 1;
    CHECK(run_formula(&f, NULL, 0) == GEMMEPI_OK, "on %s: %s", here->name, gemmepi_last_error());
    check_formula_rows(&f, F_N / 2, of_gate);
    make_formula_run(&f, "d = 1 < 3 ? number * v * factor + x : left_out", F_K);
    f.operands[3].name = "left_out", f.operands[3].kind = GEMMEPI_SCALAR; /* with a pointer */
    f.operands[0].name = "x", f.operands[0].kind = GEMMEPI_FULL;
    f.operands[1].name = "factor", f.operands[1].kind = GEMMEPI_PER_ROW;
    f.operands[2].name = "number", f.operands[2].kind = GEMMEPI_NUMBER;
    f.desc.product.operand_count = 4;
    for (i = 0; i < 3; i++) { /* the plan of the first is the second's, but not that of fewer groups */
        CHECK(run_formula(&f, &three, 1) == GEMMEPI_OK, "on %s: %s", here->name, gemmepi_last_error());
        check_formula_rows(&f, F_N, of_rows);
        memset(f.d, 0xff, sizeof f.d);
        if (i == 1)
            f.desc.groups = F_GROUPS - 1, f.ends[F_GROUPS - 1] = f.ends[F_GROUPS - 2];
    }
}

static void formulas_without_a_meaning_for_groups_are_refused_in_words(void) {
    static formula_run f;
#define FORMULA_REFUSED(text, change, says)                          \
    do {                                                             \
        make_formula_run(&f, text, F_K);                             \
        f.operands[0].name = "x", f.operands[0].kind = GEMMEPI_FULL; \
        f.desc.product.operand_count = 1;                            \
        change;                                                      \
        check_refused(&f.desc, says);                                \
    } while (0)
    FORMULA_REFUSED("d = v + x + row", (void)0, "desc.product.formula, column 13: row, item, rows, uniform");
    FORMULA_REFUSED("d = v * (uniform(x, 0) < 0.5)",
                    (f.operands[0].kind = GEMMEPI_SCALAR, f.operands[0].dtype = GEMMEPI_I64),
                    "desc.product.formula, column 10: row, item, rows, uniform");
    FORMULA_REFUSED("d = stochastic(v, x)",
                    (f.desc.product.d.dtype = GEMMEPI_BF16, f.operands[0].kind = GEMMEPI_SCALAR,
                     f.operands[0].dtype = GEMMEPI_I64),
                    "desc.product.formula, column 5: row, item, rows, uniform and stochastic");
    FORMULA_REFUSED("d = left(v, 6) * right(v, 6) + 0 * x", (f.operands[0].width = GEMMEPI_WIDTH_HALF),
                    "desc.product.formula, column 5: halves are of groups of 6");
    FORMULA_REFUSED("d = v + x", f.operands[0].batch_stride = F_ROWS * F_N, "has a batch_stride");
    FORMULA_REFUSED("d = v + x", f.desc.weighted = 1, "weighted");
    FORMULA_REFUSED("d = v + x", f.desc.grouping = GEMMEPI_GROUPS_OF_K, "GROUPS_OF_K");
    FORMULA_REFUSED("d = v + ", (void)0, "formula");
}

/* With batch stride 0 a PER_COLUMN operand is one for all groups, where an epilogue's bias is one for each. */
static void explain_says_which_groups_an_operand_is_for(void) {
    static formula_run f;
    gemmepi_plan *plan = NULL;
    static char text[8192];
    make_formula_run(&f, "d = v * s + shared + own + full", F_K);
    memset(f.operands, 0, sizeof f.operands);
    f.operands[0].name = "s", f.operands[0].kind = GEMMEPI_NUMBER;
    f.operands[1].name = "shared", f.operands[1].kind = GEMMEPI_PER_COLUMN;
    f.operands[2].name = "own", f.operands[2].kind = GEMMEPI_PER_COLUMN, f.operands[2].batch_stride = F_N;
    f.operands[3].name = "full", f.operands[3].kind = GEMMEPI_FULL;
    f.desc.product.operand_count = 4;
    CHECK(gemmepi_plan_grouped(here->context, &f.desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_explain(plan, text, sizeof text);
    CHECK(strstr(text, "  s         F64, NUMBER, the same for all groups\n") &&
              strstr(text, "batch stride 0, the same for all groups\n") &&
              strstr(text, ", its own for each group\n") && strstr(text, ", with the rows of d\n"),
          "%s", text);
    gemmepi_plan_destroy(plan);
}

/* >>bad input */

static void descs_without_a_meaning_are_refused_in_words(void) {
#define REFUSED(change, says)                         \
    do {                                              \
        gemmepi_grouped_desc desc = small_desc();     \
        gemmepi_matmul_desc *product = &desc.product; \
        (void)product;                                \
        change;                                       \
        check_refused(&desc, says);                   \
    } while (0)
    REFUSED(desc.groups = 0, "desc.groups is 0");
    REFUSED(desc.groups = 4097, "desc.groups is 4097");
    REFUSED(desc.grouping = (gemmepi_grouping)2, "desc.grouping is 2");
    REFUSED(product->batch = 2, "desc.product.batch is 2");
    REFUSED(product->order = GEMMEPI_COLUMN_MAJOR, "row-major");
    REFUSED(product->epilogue = GEMMEPI_BGRAD, "BGRAD");
    REFUSED(product->epilogue = GEMMEPI_BGRAD_B, "BGRAD");
    REFUSED((desc.grouping = GEMMEPI_GROUPS_OF_K, product->epilogue = GEMMEPI_BGRAD_A), "stored [k, m]");
    REFUSED(product->flags = GEMMEPI_BATCH_INVARIANT, "BATCH_INVARIANT");
    REFUSED(product->flags = GEMMEPI_FIND_SCALE_D, "FIND_SCALE_D with desc.product.d.scale.mode NONE (0)");
    REFUSED((product->flags = GEMMEPI_FIND_SCALE_D, product->d.scale.mode = GEMMEPI_SCALE_VECTOR_128,
             product->d.dtype = GEMMEPI_E4M3, product->formula = "d = v * 2"),
            "FIND_SCALE_D, and desc.product.formula is given");
    REFUSED(desc.gather_a = -1, "desc.gather_a is -1");
    REFUSED(desc.gather_b = 8, "desc.gather_b is 8 with GROUPS_OF_ROWS");
    REFUSED((desc.gather_a = 8, product->a.transposed = 1), "desc.product.a.transposed is 1");
    REFUSED((desc.grouping = GEMMEPI_GROUPS_OF_K, desc.gather_a = 8), "desc.product.a.transposed is 0");
    REFUSED((desc.grouping = GEMMEPI_GROUPS_OF_K, desc.scatter_d = 8), "desc.scatter_d is not 0");
    REFUSED((desc.grouping = GEMMEPI_GROUPS_OF_K, desc.weighted = 1), "desc.weighted is not 0");
    REFUSED(desc.weighted = 2, "desc.weighted is 2");
    REFUSED(product->d.batch_stride = 512, "desc.product.d has a batch_stride");
    REFUSED((desc.grouping = GEMMEPI_GROUPS_OF_K, product->b.batch_stride = 512),
            "desc.product.b has a batch_stride");
    REFUSED((desc.grouping = GEMMEPI_GROUPS_OF_K, product->a.dtype = E4M3,
             product->a.scale.mode = GEMMEPI_SCALE_VECTOR_128),
            "desc.product.a.scale.mode is VECTOR_128 (3) with GROUPS_OF_K");
    REFUSED(product->m = (int64_t)1 << 30, "desc.product.m is 1073741824");
    REFUSED(product->n = -1, "desc.product.n is -1");
    REFUSED(product->a.ld = 3, "desc.product.a.ld is 3");
    REFUSED(product->epilogue = (uint64_t)1 << 63, "desc.product.epilogue");
    REFUSED((product->formula = "d = v + x", product->operand_count = 0), "desc.product.formula, column");
}

static char said[1024];

/* A run of a small product with these lists: its status, or that of the call that waits for it, and what that said. */
static gemmepi_status run_lists(const int32_t *ends, const int32_t *index_a, const int32_t *index_d,
                                int *was_written) {
    static uint16_t d[40 * 16], values[32 * 16 * 4];
    gemmepi_grouped_desc desc = small_desc();
    gemmepi_grouped_args args;
    void *memory[6];
    gemmepi_status status;
    int i;
    memset(d, 0xff, sizeof d);
    memset(&args, 0, sizeof args);
    desc.gather_a = index_a ? 20 : 0, desc.scatter_d = index_d ? 40 : 0;
    memory[0] = send(values, sizeof values), memory[1] = send(values, sizeof values),
    memory[2] = send(d, sizeof d);
    memory[3] = send(ends, 16), memory[4] = send(index_a ? index_a : ends, index_a ? 128 : 16);
    memory[5] = send(index_d ? index_d : ends, index_d ? 128 : 16);
    args.product.a = memory[0], args.product.b = memory[1], args.product.d = memory[2];
    args.ends = (const int32_t *)memory[3];
    args.index_a = index_a ? (const int32_t *)memory[4] : NULL,
    args.index_d = index_d ? (const int32_t *)memory[5] : NULL;
    status = gemmepi_grouped(here->context, &desc, &args, here->stream);
    if (!status)
        status = gemmepi_synchronize(here->context, here->stream);
    snprintf(said, sizeof said, "%s", status ? gemmepi_last_error() : "nothing");
    CHECK(gemmepi_synchronize(here->context, here->stream) == GEMMEPI_OK, "it is said once: %s",
          gemmepi_last_error());
    {
        static uint16_t now[40 * 16];
        CHECK(gemmepi_download(here->context, now, memory[2], sizeof now, here->stream) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        *was_written = memcmp(now, d, sizeof d) != 0;
    }
    for (i = 0; i < 6; i++)
        gemmepi_free(here->context, memory[i]);
    return status;
}

static void wrong_ends_and_indices_write_nothing_and_are_told(void) {
    static const int32_t good[4] = {8, 8, 20, 32}, falling[4] = {8, 7, 20, 32}, beyond[4] = {8, 8, 20, 33},
                         below[4] = {-1, 8, 20, 32}, shorter[4] = {8, 8, 20, 31};
    int32_t a[32], d[32];
    int i, written;
    for (i = 0; i < 32; i++)
        a[i] = i % 20, d[i] = i;
    CHECK(run_lists(good, a, d, &written) == GEMMEPI_OK && written, "%s", gemmepi_last_error());
#define TOLD(says, ends, index_a, index_d)                                                       \
    CHECK(run_lists(ends, index_a, index_d, &written) == GEMMEPI_INVALID_ARGUMENT && !written && \
              strstr(said, says),                                                                \
          "'%s' should be said, and nothing be written: %s", says, said)
    TOLD("args.ends[1] of a grouped product is 7, but 8 comes before it", falling, NULL, NULL);
    TOLD("args.ends[3] of a grouped product is 33, but there are 32", beyond, NULL, NULL);
    TOLD("args.ends[0] of a grouped product is -1, but 0 comes before it", below, NULL, NULL);
    a[5] = 20;
    TOLD("args.index_a[5] of a grouped product is 20; accepted are 0 to 19", good, a, d);
    a[5] = -1;
    TOLD("args.index_a[5] of a grouped product is -1", good, a, NULL);
    a[5] = 5, d[31] = 40;
    TOLD("args.index_d[31] of a grouped product is 40; accepted are 0 to 39", good, a, d);
    CHECK(run_lists(good, a, NULL, &written) == GEMMEPI_OK && written, "after what was wrong: %s",
          gemmepi_last_error());
    d[31] = 4;
    if (here->is_host)
        TOLD("args.index_d[31] of a grouped product is 4, as index_d[4] is", good, a, d);
    CHECK(!here->is_host || run_lists(shorter, a, d, &written) == GEMMEPI_OK,
          "a row of a position that is of no group: %s", said);
}

static void a_run_wants_its_own_plan_lists_and_workspace(void) {
    gemmepi_grouped_desc desc = small_desc();
    gemmepi_grouped_args args;
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    static const int32_t ends[4] = {8, 8, 20, 32};
    static const uint16_t values[32 * 16 * 4];
    uint16_t d[32 * 16];
    void *memory[5];
    gemmepi_stream stream = NULL; /* a new one, for which no workspace was reserved */
    int i;
    CHECK(gemmepi_stream_create(here->context, &stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    memset(&args, 0, sizeof args);
    CHECK(gemmepi_plan_grouped(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    if (!plan)
        return;
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.kind == GEMMEPI_PLAN_GROUPED &&
              details.deterministic,
          "kind %d", (int)details.kind);
    memory[0] = send(values, sizeof values), memory[1] = send(values, sizeof values);
    memory[2] = send(values, sizeof d), memory[3] = send(ends, sizeof ends);
    CHECK(gemmepi_alloc(here->context, details.workspace_size + 256, &memory[4]) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    args.product.a = memory[0], args.product.b = memory[1], args.product.d = memory[2];
#define RUN_REFUSED(says)                                                                               \
    CHECK(gemmepi_run_grouped(plan, &args, stream) != GEMMEPI_OK && strstr(gemmepi_last_error(), says), \
          "'%s' should be said, and is: %s", says, gemmepi_last_error())
    RUN_REFUSED("args.ends is NULL");
    args.ends = (const int32_t *)((char *)memory[3] + 2);
    RUN_REFUSED("args.ends is");
    args.ends = (const int32_t *)memory[2];
    RUN_REFUSED("overlaps args.ends");
    args.ends = (const int32_t *)memory[3], args.product.d = NULL;
    RUN_REFUSED("args.product.d is NULL");
    args.product.d = memory[0];
    RUN_REFUSED("args.product.a");
    args.product.d = memory[2], args.product.bias = memory[1];
    RUN_REFUSED("args.product.bias is given");
    args.product.bias = NULL;
    args.ends = (const int32_t *)memory[3], args.index_a = args.ends;
    RUN_REFUSED("args.index_a is given, but desc.gather_a is 0");
    args.index_a = NULL, args.weights = (const float *)memory[3];
    RUN_REFUSED("args.weights is given, but desc.weighted is 0");
    args.weights = NULL;
    if (!here->is_host) {
        RUN_REFUSED("args.product.workspace is NULL");
        args.product.workspace = memory[4], args.product.workspace_size = details.workspace_size - 1;
        RUN_REFUSED("args.product.workspace_size is");
    }
    args.product.workspace = memory[4], args.product.workspace_size = details.workspace_size + 256;
    CHECK(gemmepi_run_grouped(plan, &args, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_run_matmul(plan, &args.product, stream) != GEMMEPI_OK &&
              strstr(gemmepi_last_error(), "gemmepi_plan_grouped"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_synchronize(here->context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    CHECK(gemmepi_stream_destroy(here->context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < 5; i++)
        gemmepi_free(here->context, memory[i]);
}

static void sentences_about_accumulate_speak_of_d(void) {
    gemmepi_grouped_desc desc = small_desc(), wide = desc;
    gemmepi_grouped_args args;
    static const int32_t ends[4] = {8, 8, 20, 32};
    static const uint16_t values[32 * 16 * 4];
    void *memory[4];
    const char *says;
    int i;
    memset(&args, 0, sizeof args);
    for (i = 0; i < 3; i++)
        memory[i] = send(values, sizeof values);
    memory[3] = send(ends, sizeof ends);
    args.product.a = memory[0], args.product.b = memory[1];
    args.ends = (const int32_t *)memory[3];
    desc.product.flags = GEMMEPI_ACCUMULATE;
    for (i = 0; i < 2; i++) {
        desc.grouping = i ? GEMMEPI_GROUPS_OF_K : GEMMEPI_GROUPS_OF_ROWS;
        CHECK(gemmepi_grouped(here->context, &desc, &args, here->stream) == GEMMEPI_INVALID_ARGUMENT,
              "grouping %d", i);
        says = gemmepi_last_error();
        CHECK(strstr(says, "args.product.d is NULL") && strstr(says, "desc.product.flags has ACCUMULATE") &&
                  !strstr(says, "beta") && !strstr(says, "product.c"),
              "%s", says);
    }
    wide.product.flags = GEMMEPI_ACCUMULATE, wide.scatter_d = 1 << 29, wide.product.n = (int64_t)1 << 48;
    check_refused(&wide, "desc.product.d spans");
    for (i = 0; i < 4; i++)
        gemmepi_free(here->context, memory[i]);
}

static void weights_that_are_refused_are_called_weights(void) {
    gemmepi_grouped_desc desc = small_desc();
    gemmepi_grouped_args args;
    static const int32_t ends[4] = {8, 8, 20, 32};
    static const uint16_t values[32 * 16 * 4];
    void *memory[4];
    char explained[4096];
    gemmepi_plan *plan = NULL;
    int i;
    memset(&args, 0, sizeof args);
    desc.weighted = 1;
    for (i = 0; i < 3; i++)
        memory[i] = send(values, sizeof values);
    memory[3] = send(ends, sizeof ends);
    args.product.a = memory[0], args.product.b = memory[1], args.product.d = memory[2];
    args.ends = (const int32_t *)memory[3];
#define SAYS(says)                                                                               \
    CHECK(gemmepi_grouped(here->context, &desc, &args, here->stream) != GEMMEPI_OK &&            \
              strstr(gemmepi_last_error(), says) && !strstr(gemmepi_last_error(), "row_factor"), \
          "'%s' should be said, and is: %s", says, gemmepi_last_error())
    args.weights = (const float *)((char *)memory[0] + 2);
    SAYS("args.weights is ");
    args.weights = (const float *)((char *)memory[2] + 64);
    SAYS("overlaps args.weights");
    args.weights = (const float *)(uintptr_t)-4;
    SAYS("args.weights is ");
    args.weights = NULL;
    SAYS("args.weights is NULL");
    CHECK(gemmepi_plan_grouped(here->context, &desc, &plan) == GEMMEPI_OK &&
              gemmepi_plan_explain(plan, explained, sizeof explained) && strstr(explained, "\n  weights ") &&
              !strstr(explained, "\n  row_factor"),
          "%s", explained);
    gemmepi_plan_destroy(plan);
    for (i = 0; i < 4; i++)
        gemmepi_free(here->context, memory[i]);
}

int main(void) {
    test_device devices[TEST_MOST_DEVICES];
    int count = test_devices_open_with_routes(devices), i;
    if (count == 0)
        return 1;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(rows_of_groups_are_products_by_their_own_weights);
        RUN(every_kind_of_epilogue_goes_with_groups_of_rows);
        RUN(rows_are_gathered_scattered_and_weighted);
        RUN(what_no_fast_kernel_takes_runs_all_the_same);
        RUN(fp8_rows_of_groups_are_products_by_the_fast_kernel);
        RUN(scales_are_found_for_rows_of_groups);
        RUN(scales_of_groups_are_refused_where_no_kernel_finds_them);
        RUN(groups_of_k_are_products_by_the_fast_kernel);
        RUN(groups_of_k_are_products_of_their_own);
        RUN(the_amax_is_that_of_all_groups);
        RUN(formulas_go_with_groups_of_rows);
        RUN(formulas_without_a_meaning_for_groups_are_refused_in_words);
        RUN(explain_says_which_groups_an_operand_is_for);
        RUN(descs_without_a_meaning_are_refused_in_words);
        RUN(wrong_ends_and_indices_write_nothing_and_are_told);
        RUN(a_run_wants_its_own_plan_lists_and_workspace);
        RUN(sentences_about_accumulate_speak_of_d);
        RUN(weights_that_are_refused_are_called_weights);
        test_device_close(here);
    }
    return test_finish();
}
