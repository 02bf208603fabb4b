/* The names that a profiler shows: on the fake GPU of fake_cuda.h. */
#include "fake_program.h"

/* A profiler shows the name that the driver was asked for. */
static void check_name(const gemmepi_plan_details *details, const char *entry, const char *expected) {
    char define[300];
    snprintf(define, sizeof define, "#define %s %s\n", entry, expected);
    CHECK(strcmp(details->kernel, expected) == 0, "%s, not %s", details->kernel, expected);
    CHECK(strcmp(gpu.last_kernel, expected) == 0, "the driver was asked for %s, not %s", gpu.last_kernel,
          expected);
    CHECK(strncmp(gpu.last_source, define, strlen(define)) == 0, "not %s ahead of %.200s", define,
          gpu.last_source);
}

static void kernels_of_products_have_names_that_say_what_they_are(void) {
    static const struct {
        gemmepi_dtype dtype, d;
        gemmepi_epilogue epilogue;
        gemmepi_compute compute;
        unsigned routes;
        const char *entry, *before, *after; /* the tile between the last two */
    } rows[] = {
        {GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_SILU | GEMMEPI_BIAS, GEMMEPI_COMPUTE_DEFAULT,
         1u << GEMMEPI_ROUTE_FUSED, "gemmepi_fused", "gemmepi_sm90_bf16_", "_silu_bias"},
        {GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_NONE, GEMMEPI_COMPUTE_DEFAULT, 1u << GEMMEPI_ROUTE_FUSED,
         "gemmepi_fused", "gemmepi_sm90_f16_", "_to_f32"},
        {GEMMEPI_F32, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_GELU_TANH, GEMMEPI_COMPUTE_F32,
         1u << GEMMEPI_ROUTE_FUSED, "gemmepi_mma", "gemmepi_sm80_f32_", "_gelu_tanh"},
        {GEMMEPI_BF16, GEMMEPI_DTYPE_DEFAULT, GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX,
         GEMMEPI_COMPUTE_DEFAULT, 1u << GEMMEPI_ROUTE_PLAIN, "gemmepi_plain", "gemmepi_plain_bf16_bf16",
         "_relu_bias_aux"},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        planned p = planned_begin(0, rows[i].routes);
        char expected[200], tile[40] = "";
        p.desc.a.dtype = rows[i].dtype, p.desc.d.dtype = rows[i].d;
        p.desc.epilogue = rows[i].epilogue, p.desc.compute = rows[i].compute;
        p.desc.m = p.desc.n = p.desc.k = 4096;
        if (planned_plan(&p)) {
            if (p.details.route == GEMMEPI_ROUTE_FUSED)
                snprintf(tile, sizeof tile, "%dx%d", p.details.tile_m, p.details.tile_n);
            snprintf(expected, sizeof expected, "%s%s%s", rows[i].before, tile, rows[i].after);
            check_name(&p.details, rows[i].entry, expected);
            CHECK(explain_has(p.plan, expected), "explain does not name %s", expected);
        }
        planned_end(&p);
    }
}

static void kernels_of_passes_and_operations_have_names_that_say_what_they_are(void) {
    static const int64_t shape[1] = {4096};
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = pass_alone();
    gemmepi_plan *plan = NULL;
    gemmepi_elementwise_desc operation;
    gemmepi_plan *elementwise = NULL;
    gemmepi_plan_details details;
    gemmepi_tensor tensor;
    if (gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK && !gemmepi_plan_info(plan, &details))
        check_name(&details, "gemmepi_pass", "gemmepi_pass_f32_tanh_bias");
    gemmepi_plan_destroy(plan);
    memset(&operation, 0, sizeof operation);
    memset(&tensor, 0, sizeof tensor);
    tensor.dtype = GEMMEPI_BF16, tensor.rank = 1, tensor.shape = shape;
    operation.operation = GEMMEPI_OP_ACTIVATION;
    operation.activation = GEMMEPI_SILU;
    operation.a = operation.y = &tensor;
    CHECK(gemmepi_plan_elementwise(context, &operation, &elementwise) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    if (elementwise && !gemmepi_plan_info(elementwise, &details))
        check_name(&details, "gemmepi_contiguous", "gemmepi_elementwise_silu_bf16");
    gemmepi_plan_destroy(elementwise);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_kernels_name_is_of_few_letters_and_fits(void) {
    gpi__launch launch;
    size_t i;
    gpi__name_kernel(&launch, "gemmepi_%s %s-%d", "BF16", "a.b", 12);
    CHECK(strcmp(launch.name, "gemmepi_bf16_a_b_12") == 0, "%s", launch.name);
    gpi__name_kernel(&launch, "gemmepi_%0200d", 7);
    CHECK(strlen(launch.name) == sizeof launch.name - 1, "%d letters", (int)strlen(launch.name));
    for (i = 0; launch.name[i]; i++)
        CHECK(strchr("abcdefghijklmnopqrstuvwxyz0123456789_", launch.name[i]), "%c", launch.name[i]);
}

int main(void) {
    keep_libraries_open();
    RUN(kernels_of_products_have_names_that_say_what_they_are);
    RUN(kernels_of_passes_and_operations_have_names_that_say_what_they_are);
    RUN(a_kernels_name_is_of_few_letters_and_fits);
    return test_finish();
}
