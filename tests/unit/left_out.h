/* The route fused where one of its kernels, or both, are left out of the program, on the fake GPU of fake_cuda.h. Whoever includes
   this defines GEMMEPI_NO_SM80, GEMMEPI_NO_SM90 or both. */
#include "explained.h"

typedef struct wanted {
    int arch;
    gemmepi_dtype dtype;
    int64_t lda;
    const char *kernel; /* how its name begins; NULL: no kernel takes it */
    const char *options;
} wanted;

static gemmepi_matmul_desc product_of(const wanted *want) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = desc.n = desc.k = 1024;
    desc.a.dtype = want->dtype;
    desc.a.ld = want->lda;
    desc.epilogue = GEMMEPI_SILU;
    return desc;
}

static gemmepi_context *open_with(const wanted *want, unsigned routes) {
    gemmepi_config config = config_with_all_routes();
    gpu.other_arch = want->arch;
    config.routes = routes;
    return open_fake(&config);
}

static void check_fused(const wanted *want) {
    gemmepi_context *context = open_with(want, 1u << GEMMEPI_ROUTE_FUSED);
    gemmepi_matmul_desc desc = product_of(want);
    gemmepi_plan_details details;
    gemmepi_plan *plan;
    gemmepi_status status = gemmepi_plan_matmul(context, &desc, &plan);
    if (want->kernel)
        CHECK(!status && !gemmepi_plan_info(plan, &details) &&
                  !strncmp(details.kernel, want->kernel, strlen(want->kernel)),
              "arch %d: %s", want->arch, status ? gemmepi_last_error() : details.kernel);
    else
        CHECK(status == GEMMEPI_UNSUPPORTED && sentence_has(want->options), "arch %d: %s", want->arch,
              gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

#ifdef GEMMEPI_NO_SM80
/* With all routes it is another's, and why is said. */
static void check_others(const wanted *want) {
    static char text[8192];
    gemmepi_context *context = open_with(want, 0);
    gemmepi_matmul_desc desc = product_of(want);
    gemmepi_plan_details details;
    gemmepi_plan *plan;
    CHECK(!gemmepi_plan_matmul(context, &desc, &plan) && !gemmepi_plan_info(plan, &details) &&
              details.route != GEMMEPI_ROUTE_FUSED && gemmepi_plan_explain(plan, text, sizeof text) &&
              strstr(text, want->options),
          "arch %d: %s", want->arch, plan ? text : gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
}
#endif

#ifdef GEMMEPI_NO_SM80
#ifdef GEMMEPI_NO_SM90
static const wanted all_wanted[] = {
    {90, GEMMEPI_BF16, 0, NULL, "GEMMEPI_NO_SM80, GEMMEPI_NO_SM90"},
    {80, GEMMEPI_F32, 0, NULL, "GEMMEPI_NO_SM80, GEMMEPI_NO_SM90"},
};
#else
/* lda 1025: copied to lines that TMA takes; F32 is strict */
static const wanted all_wanted[] = {
    {90, GEMMEPI_BF16, 0, "gemmepi_sm90_", NULL},
    {90, GEMMEPI_BF16, 1025, "gemmepi_sm90_", NULL},
    {90, GEMMEPI_F32, 0, NULL, "GEMMEPI_NO_SM80"},
    {80, GEMMEPI_BF16, 0, NULL, "GEMMEPI_NO_SM80"},
};
#endif
#else
static const wanted all_wanted[] = {
    {90, GEMMEPI_BF16, 0, "gemmepi_sm80_", NULL},
    {80, GEMMEPI_BF16, 1025, "gemmepi_sm80_", NULL},
    {90, GEMMEPI_F32, 0, "gemmepi_sm80_", NULL},
};
#endif

static void problems_take_the_kernel_that_is_left(void) {
    size_t i;
    for (i = 0; i < sizeof all_wanted / sizeof all_wanted[0]; i++)
        check_fused(&all_wanted[i]);
}

#ifdef GEMMEPI_NO_SM80
static void what_is_left_out_is_said(void) {
    size_t i;
    for (i = 0; i < sizeof all_wanted / sizeof all_wanted[0]; i++)
        if (!all_wanted[i].kernel)
            check_others(&all_wanted[i]);
}
#endif

static int has_source(const char *name) {
    const gpi__source *source = gpi__sources;
    while (source->name && strcmp(source->name, name))
        source++;
    return source->name != NULL;
}

static void the_text_of_a_kernel_is_left_out(void) {
    CHECK(has_source("gemm_sm80.cu") == GPI__HAS_SM80, "gemm_sm80.cu");
    CHECK(has_source("gemm_small.cu") == GPI__HAS_SM80, "gemm_small.cu");
    CHECK(has_source("gemm_sm90.cu") == GPI__HAS_SM90, "gemm_sm90.cu");
    CHECK(has_source("gemm_plain.cu"), "gemm_plain.cu");
}

int main(void) {
    RUN(problems_take_the_kernel_that_is_left);
#ifdef GEMMEPI_NO_SM80
    RUN(what_is_left_out_is_said);
#endif
    RUN(the_text_of_a_kernel_is_left_out);
    RUN(plans_of_every_size_and_route_are_explained);
    return test_finish();
}
