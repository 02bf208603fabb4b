/* A library or the driver fails, or is not there, and the call that needs it says so: on the fake GPU of fake_cuda.h. */
#include "fake_operations.h"

/* >>libraries and kernels */

static void a_missing_cublaslt_is_reported_when_no_other_route_is_left(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = lt_product();
    gemmepi_plan *plan = NULL;
    gpu.missing = "cublasLt";
    config.routes = 1u << GEMMEPI_ROUTE_LT;
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_LIBRARY_NOT_FOUND && !plan, "%s",
          gemmepi_last_error());
#if GPI__WINDOWS
    CHECK(sentence_has("cublasLt64_13.dll") && sentence_has("cublasLt64_12.dll"), "%s", gemmepi_last_error());
#else
    CHECK(sentence_has("libcublasLt.so.13") && sentence_has("libcublasLt.so.12"), "%s", gemmepi_last_error());
#endif
    gpu.missing = NULL;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "once it is there: %s",
          gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_cublaslt_that_does_not_open_is_an_error_and_no_leak(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = lt_product();
    gemmepi_plan *plan = NULL;
    break_function("cublasLtCreate", GPI__CUBLAS_STATUS_NOT_INITIALIZED);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_CUBLAS_ERROR && !plan, "%s",
          gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_missing_nvrtc_is_reported_when_a_kernel_is_needed(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = split_product();
    gemmepi_plan *plan = NULL;
    gpu.missing = "nvrtc";
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_LIBRARY_NOT_FOUND && !plan, "%s",
          gemmepi_last_error());
    CHECK(sentence_has("nvrtc"), "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_kernel_that_does_not_compile_is_an_error_with_the_log(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = split_product();
    gemmepi_plan *plan = NULL;
    break_function("nvrtcCompileProgram", GPI__NVRTC_ERROR_COMPILATION);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_COMPILE_ERROR && !plan, "%s",
          gemmepi_last_error());
    CHECK(sentence_has("pass.cu") && sentence_has("sm_90") && sentence_has(compile_log), "%s",
          gemmepi_last_error());
    CHECK(gpu.programs == 0, "%ld programs are left", gpu.programs);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void other_failures_of_building_a_kernel_are_errors_and_no_leaks(void) {
    static const struct {
        const char *function;
        int code;
        gemmepi_status status;
    } rows[] = {
        {"nvrtcGetNumSupportedArchs", 11, GEMMEPI_COMPILE_ERROR},
        {"nvrtcCreateProgram", GPI__NVRTC_ERROR_INTERNAL_ERROR, GEMMEPI_COMPILE_ERROR},
        {"nvrtcGetCUBINSize", 11, GEMMEPI_COMPILE_ERROR},
        {"nvrtcGetCUBIN", 11, GEMMEPI_COMPILE_ERROR},
        {"cuModuleLoadData", GPI__CUDA_ERROR_NO_BINARY_FOR_GPU, GEMMEPI_CUDA_ERROR},
        {"cuModuleGetFunction", GPI__CUDA_ERROR_NOT_FOUND, GEMMEPI_CUDA_ERROR},
        {"cuCtxPushCurrent_v2", GPI__CUDA_ERROR_INVALID_CONTEXT, GEMMEPI_CUDA_ERROR},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = split_product();
        gemmepi_plan *plan = NULL;
        gemmepi_status status;
        break_function(rows[i].function, rows[i].code);
        status = gemmepi_plan_matmul(context, &desc, &plan);
        CHECK(status == rows[i].status && !plan, "%s gives %s: %s", rows[i].function,
              gemmepi_status_name(status), gemmepi_last_error());
        gpu.fails = NULL;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "after %s: %s", rows[i].function,
              gemmepi_last_error());
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* Of what NVRTC made, and of the driver's JIT compiler. */
static void an_image_that_the_driver_does_not_know_is_told_with_the_mend(void) {
    static const int codes[] = {GPI__CUDA_ERROR_UNSUPPORTED_PTX_VERSION, GPI__CUDA_ERROR_INVALID_PTX,
                                GPI__CUDA_ERROR_NO_BINARY_FOR_GPU, GPI__CUDA_ERROR_OUT_OF_MEMORY};
    size_t i;
    for (i = 0; i < GPI__COUNT(codes); i++) {
        gemmepi_config config = fake_config();
        gemmepi_matmul_desc desc = split_product();
        gemmepi_context *context;
        gemmepi_plan *plan = NULL;
        gpu.other_arch = 123, gpu.newest_target = 120;
        context = open_fake(&config);
        break_function("cuModuleLoadData", codes[i]);
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) != GEMMEPI_OK && !plan, "it is planned");
        CHECK((sentence_has(
                   "the driver, of CUDA 13.0, does not accept what NVRTC 13.0 made for compute_120: update "
                   "the driver") &&
               sentence_has("config.library_path")) == (codes[i] != GPI__CUDA_ERROR_OUT_OF_MEMORY),
              "%d: %s", codes[i], gemmepi_last_error());
        gpu.fails = NULL;
        gpu.other_arch = gpu.newest_target = 0;
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void a_chip_that_is_older_than_nvrtc_knows_is_told(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_context *context;
    gemmepi_plan *plan = NULL;
    gpu.other_arch = 70, gpu.archs_are_newer = 1;
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_UNSUPPORTED &&
              sentence_has("fused: its kernels are for compute capability 7.5 and later") &&
              sentence_has(
                  "compute capability is 7.0, older than any that NVRTC 13.0 compiles for (one of CUDA 12"),
          "%s", gemmepi_last_error());
    gpu.other_arch = gpu.archs_are_newer = 0, gpu.archs_told = 0;
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_missing_nvrtc_is_reported_when_an_elementwise_kernel_is_needed(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    element_call c;
    gpu.missing = "nvrtc";
    context = open_fake(&config);
    empty_call(&c);
    CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "an empty one needs none: %s",
          gemmepi_last_error());
    dense_call(&c);
    CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_LIBRARY_NOT_FOUND && sentence_has("nvrtc"), "%s",
          gemmepi_last_error());
    gpu.missing = NULL;
    CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left_and_cublaslt_was_not_loaded();
}

/* Of an operation of two kernels also the second one alone. */
static void an_elementwise_kernel_that_does_not_compile_is_an_error_with_the_log(void) {
    int i, spared;
    for (i = 0; i < ELEMENT_CALLS; i++)
        for (spared = 0; spared < 2; spared++) {
            gemmepi_config config = fake_config();
            gemmepi_context *context = open_fake(&config);
            const char *name = element_calls[i].name;
            gemmepi_plan *plan = NULL;
            element_call c;
            long compiled, held, modules;
            int time;
            element_calls[i].make(&c);
            gemmepi_plan_destroy(plan_elementwise(context, &c));
            compiled = gpu.compilations;
            gemmepi_destroy(context);
            if (compiled <= spared)
                continue;
            config = fake_config();
            context = open_fake(&config);
            break_function("nvrtcCompileProgram", GPI__NVRTC_ERROR_COMPILATION);
            gpu.spared = spared;
            for (time = 0; time < 2; time++) {
                gemmepi_status status = time ? call_at_any_time(context, &c, NULL)
                                             : gemmepi_plan_elementwise(context, &c.desc, &plan);
                CHECK(status == GEMMEPI_COMPILE_ERROR && !plan, "%s: %s: %s", name,
                      gemmepi_status_name(status), gemmepi_last_error());
                CHECK(sentence_has(".cu") && sentence_has("sm_90") && sentence_has(compile_log), "%s: %s",
                      name, gemmepi_last_error());
                if (time == 0)
                    held = live, modules = gpu.modules;
            }
            CHECK(live == held && gpu.modules == modules && modules == spared && gpu.programs == 0,
                  "%s: %ld blocks and %ld modules more", name, live - held, gpu.modules);
            CHECK(context->plans.count == 0 && gpu.launches == 0, "%s: it is kept", name);
            gpu.fails = NULL;
            CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%s: %s", name, gemmepi_last_error());
            CHECK(gpu.modules == compiled, "%s: %ld modules of %ld", name, gpu.modules, compiled);
            gemmepi_destroy(context);
            nothing_is_left_and_cublaslt_was_not_loaded();
        }
}

/* >>runs */

static void what_fused_cannot_have_is_an_error(void) {
    static const char *const functions[] = {"cuTensorMapEncodeTiled", "cuFuncSetAttribute",
                                            "cuTensorMapReplaceAddress", "cuLaunchKernelEx"};
    size_t i;
    for (i = 0; i < GPI__COUNT(functions); i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_matmul_args args = fused_args();
        break_function(functions[i], 999);
        CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_CUDA_ERROR, "%s: %s", functions[i],
              gemmepi_last_error());
        gpu.fails = NULL;
        CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "after %s: %s", functions[i],
              gemmepi_last_error());
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void a_product_that_cublaslt_fails_to_run_is_an_error(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = lt_product();
    gemmepi_matmul_args args = args_for(&desc);
    break_function("cublasLtMatmul", GPI__CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_CUBLAS_ERROR, "%s", gemmepi_last_error());
    CHECK(sentence_has("CUBLAS_STATUS_EXECUTION_FAILED"), "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_launch_that_the_driver_refuses_is_an_error(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = pass_alone();
    gemmepi_matmul_args args = args_for(&desc);
    break_function("cuLaunchKernelEx", 719);
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_CUDA_ERROR, "%s", gemmepi_last_error());
    CHECK(sentence_has("gemmepi_pass") && sentence_has("719"), "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void an_amax_that_the_driver_does_not_clear_is_an_error(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    int i;
    for (i = 0; i < 2; i++) { /* the routes split and plain */
        gemmepi_matmul_desc desc = lt_product();
        gemmepi_matmul_args args;
        long launches = gpu.launches;
        desc.flags = GEMMEPI_AMAX_D;
        desc.m += i; /* another plan */
        args = args_for(&desc);
        gpu.heuristic_answers = !i;
        break_function("cuMemsetD8Async", 719);
        CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_CUDA_ERROR, "%s", gemmepi_last_error());
        CHECK(sentence_has("amax") && sentence_has("719"), "%s", gemmepi_last_error());
        CHECK(gpu.launches == launches, "a kernel was launched after it");
        gpu.fails = NULL;
        CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gpu.memsets == i + 1 && gpu.launches == launches + 1, "%ld memsets, %ld launches", gpu.memsets,
              gpu.launches - launches);
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Each kernel and each memset of each operation, of plans and of one-shot calls. */
static void an_elementwise_launch_that_the_driver_refuses_is_an_error(void) {
    int i, nth, one_shot;
    for (i = 0; i < ELEMENT_CALLS; i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context = open_fake(&config);
        const char *name = element_calls[i].name;
        gemmepi_plan *plan;
        element_call c;
        int all = element_calls[i].memsets + element_calls[i].kernels, is_extended;
        element_calls[i].make(&c);
        plan = plan_elementwise(context, &c);
        is_extended = c.desc.formula ||
                      ((gpi__elementwise_plan *)plan)->scaled.is_tensor; /* its launches may overlap */
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        for (nth = 0; nth < 2 * all; nth++) {
            int is_memset = nth / 2 < element_calls[i].memsets;
            long spared = is_memset ? 0 : nth / 2 - element_calls[i].memsets;
            gemmepi_status status;
            one_shot = nth % 2;
            break_function(is_memset     ? "cuMemsetD8Async"
                           : is_extended ? "cuLaunchKernelEx"
                                         : "cuLaunchKernel",
                           719);
            gpu.spared = spared;
            status =
                one_shot ? call_at_any_time(context, &c, NULL) : gemmepi_run_elementwise(plan, &c.args, NULL);
            CHECK(status == GEMMEPI_CUDA_ERROR && sentence_has("719"), "%s: %s: %s", name,
                  gemmepi_status_name(status), gemmepi_last_error());
            CHECK(!is_memset || sentence_has("amax"), "%s: %s", name, gemmepi_last_error());
            CHECK(gpu.launches == spared, "%s: %ld kernels after %ld", name, gpu.launches, spared);
            calls_of_the_driver();
            gpu.fails = NULL;
            status =
                one_shot ? call_at_any_time(context, &c, NULL) : gemmepi_run_elementwise(plan, &c.args, NULL);
            CHECK(status == GEMMEPI_OK && calls_of_the_driver() == all, "%s: a later run: %s", name,
                  gemmepi_last_error());
        }
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left_and_cublaslt_was_not_loaded();
    }
}

int main(void) {
    keep_libraries_open();
    RUN(a_missing_cublaslt_is_reported_when_no_other_route_is_left);
    RUN(a_cublaslt_that_does_not_open_is_an_error_and_no_leak);
    RUN(a_missing_nvrtc_is_reported_when_a_kernel_is_needed);
    RUN(a_kernel_that_does_not_compile_is_an_error_with_the_log);
    RUN(other_failures_of_building_a_kernel_are_errors_and_no_leaks);
    RUN(an_image_that_the_driver_does_not_know_is_told_with_the_mend);
    RUN(a_chip_that_is_older_than_nvrtc_knows_is_told);
    RUN(a_missing_nvrtc_is_reported_when_an_elementwise_kernel_is_needed);
    RUN(an_elementwise_kernel_that_does_not_compile_is_an_error_with_the_log);
    RUN(what_fused_cannot_have_is_an_error);
    RUN(a_product_that_cublaslt_fails_to_run_is_an_error);
    RUN(a_launch_that_the_driver_refuses_is_an_error);
    RUN(an_amax_that_the_driver_does_not_clear_is_an_error);
    RUN(an_elementwise_launch_that_the_driver_refuses_is_an_error);
    return test_finish();
}
