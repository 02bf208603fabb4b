/* What happens on a machine with a GPU when something fails, or when nothing does: on the fake one of fake_cuda.h. */
#include "fake_cuda.h"

/* >>problems */

enum { EDGE = 64 };

static gemmepi_matmul_desc product(gemmepi_dtype dtype, gemmepi_epilogue epilogue) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = desc.n = desc.k = EDGE;
    desc.batch = 1;
    desc.a.dtype = dtype;
    desc.epilogue = epilogue;
    return desc;
}

/* cuBLASLt has the one; the other takes a product and two kernels, the third a kernel alone. */
static gemmepi_matmul_desc lt_product(void) {
    return product(GEMMEPI_F32, GEMMEPI_BIAS);
}
static gemmepi_matmul_desc split_product(void) {
    return product(GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD);
}
static gemmepi_matmul_desc pass_alone(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_F32, GEMMEPI_TANH | GEMMEPI_BIAS);
    desc.k = 0;
    return desc;
}

/* cuBLASLt has it, and a product of its own needs more workspace: 64 x 64 sums in F32. */
static gemmepi_matmul_desc refusable_product(void) {
    return product(GEMMEPI_BF16, GEMMEPI_RELU);
}
enum { LT_WORKSPACE = 4096, SPLIT_WORKSPACE = LT_WORKSPACE + 4 * EDGE * EDGE };

static double memory[8][EDGE * EDGE]; /* stands for tensors on the device, larger than any of them */

/* What is inside a product's plan. */
static const gemmepi__matmul_plan *matmul_of(const gemmepi_plan *plan) {
    return (const gemmepi__matmul_plan *)plan;
}

static int explain_has(const gemmepi_plan *plan, const char *what) {
    static char text[4096];
    gemmepi_plan_explain(plan, text, sizeof text);
    return strstr(text, what) != NULL;
}

static int is_kernel(const gemmepi_plan_details *details, const char *stem) {
    return strncmp(details->kernel, stem, strlen(stem)) == 0;
}

static gemmepi_matmul_args args_for(const gemmepi_matmul_desc *desc) {
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = desc->k ? memory[0] : NULL;
    args.b = desc->k ? memory[1] : NULL;
    args.d = memory[2];
    args.bias = desc->epilogue & GEMMEPI_BIAS ? memory[3] : NULL;
    args.aux = desc->epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD) ? memory[4] : NULL;
    args.bias_grad = desc->epilogue & GEMMEPI_BGRAD ? memory[5] : NULL;
    args.amax_d = desc->flags & GEMMEPI_AMAX_D ? memory[6] : NULL;
    return args;
}

/* >>creating */

static void without_a_gpu_the_host_is_taken_unless_a_device_is_asked_for(void) {
    static const char *const ways[] = {"cuInit fails", "no device", "no driver"};
    size_t way;
    for (way = 0; way < GEMMEPI__COUNT(ways); way++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context = NULL;
        gemmepi_context_details details;
        if (way == 0)
            break_function("cuInit", GEMMEPI__CUDA_ERROR_NO_DEVICE);
        else if (way == 1)
            gpu.device_count = 0;
        else
            gpu.missing = "cuda";
        config.log = keep_log;
        CHECK(gemmepi_create(&config, &context) == GEMMEPI_OK, "%s: %s", ways[way], gemmepi_last_error());
        CHECK(gemmepi_context_info(context, &details) == GEMMEPI_OK && details.is_host, "%s", ways[way]);
        CHECK(strstr(logged, "no GPU can be used, so the host is"), "%s: the log has: %s", ways[way], logged);
        gemmepi_destroy(context);
        context = NULL;
        config.device = GEMMEPI_DEVICE(0);
        CHECK(gemmepi_create(&config, &context) == (way == 2 ? GEMMEPI_LIBRARY_NOT_FOUND : GEMMEPI_NO_DEVICE),
              "%s: %s", ways[way], gemmepi_last_error());
        CHECK(context == NULL, "%s: a context was given", ways[way]);
        nothing_is_left();
    }
}

static void a_device_beyond_the_last_is_refused_by_number(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = NULL;
    config.device = GEMMEPI_DEVICE(3);
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_NO_DEVICE, "%s", gemmepi_last_error());
    CHECK(sentence_has("CUDA device 3") && sentence_has("has 1"), "%s", gemmepi_last_error());
    nothing_is_left();
}

static void library_path_only_needs_a_library_path(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = NULL;
    config.library_path_only = 1;
    config.library_path = NULL;
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_INVALID_ARGUMENT, "%s", gemmepi_last_error());
    CHECK(sentence_has("config.library_path_only is 1 and config.library_path is NULL"), "%s",
          gemmepi_last_error());
    config.library_path = "";
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_INVALID_ARGUMENT, "%s", gemmepi_last_error());
    config.library_path_only = 7;
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("config.library_path_only is 7"),
          "%s", gemmepi_last_error());
    nothing_is_left();
}

static void a_driver_without_a_function_is_refused_by_the_functions_name(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = NULL;
    config.device = GEMMEPI_DEVICE(0);
    gpu.missing = "cuLaunchKernel";
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_LIBRARY_NOT_FOUND, "%s", gemmepi_last_error());
    CHECK(sentence_has("cuLaunchKernel"), "%s", gemmepi_last_error());
    nothing_is_left();
}

static void a_failed_create_leaves_nothing_behind(void) {
    static const struct {
        const char *function;
        int code;
        gemmepi_status status;
    } rows[] = {
        {"cuInit", 999, GEMMEPI_NO_DEVICE},
        {"cuDeviceGetCount", 999, GEMMEPI_CUDA_ERROR},
        {"cuDeviceGet", 999, GEMMEPI_CUDA_ERROR},
        {"cuDeviceGetName", 999, GEMMEPI_CUDA_ERROR},
        {"cuDeviceGetAttribute", 999, GEMMEPI_CUDA_ERROR},
        {"cuDevicePrimaryCtxRetain", 999, GEMMEPI_CUDA_ERROR},
        {"cuDevicePrimaryCtxRetain", GEMMEPI__CUDA_ERROR_OUT_OF_MEMORY, GEMMEPI_OUT_OF_MEMORY},
        {"cuDriverGetVersion", 999, GEMMEPI_LIBRARY_NOT_FOUND},
    };
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(rows); i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context = NULL;
        gemmepi_status status;
        config.device = GEMMEPI_DEVICE(0);
        break_function(rows[i].function, rows[i].code);
        status = gemmepi_create(&config, &context);
        CHECK(status == rows[i].status, "%s gives %s: %s", rows[i].function, gemmepi_status_name(status),
              gemmepi_last_error());
        CHECK(context == NULL, "%s: a context was given", rows[i].function);
        config.device = 0;
        if (i > 0) /* on the host; cuInit has it already */
            gemmepi_destroy(open_fake(&config));
        nothing_is_left();
    }
}

static void a_context_gives_everything_back(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc descs[3];
    gemmepi_stream stream = NULL;
    void *pointer = NULL;
    int i;
    descs[0] = lt_product(), descs[1] = split_product(), descs[2] = pass_alone();
    CHECK(gemmepi_stream_create(context, &stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < 3; i++) {
        gemmepi_matmul_args args = args_for(&descs[i]);
        CHECK(gemmepi_matmul(context, &descs[i], &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_matmul(context, &descs[i], &args, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    }
    CHECK(gpu.products == 4 && gpu.launches == 6, "%ld products, %ld launches", gpu.products, gpu.launches);
    CHECK(gpu.heuristics == 2, "a plan was built more than once: %ld", gpu.heuristics);
    CHECK(gemmepi_alloc(context, 1000, &pointer) == GEMMEPI_OK && pointer, "%s", gemmepi_last_error());
    CHECK(gemmepi_free(context, pointer) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_stream_destroy(context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>memory that runs out */

/* All that a program does; the first status that is not OK. */
static gemmepi_status whole_program(const gemmepi_config *config) {
    gemmepi_matmul_desc descs[3];
    gemmepi_context *context = NULL;
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gemmepi_create(config, &context);
    int i;
    descs[0] = lt_product(), descs[1] = split_product(), descs[2] = pass_alone();
    for (i = 0; i < 3 && !status; i++) {
        gemmepi_matmul_args args = args_for(&descs[i]);
        status = gemmepi_matmul(context, &descs[i], &args, NULL);
        if (!status)
            status = gemmepi_plan_matmul(context, &descs[i], &plan);
        if (!status)
            status = gemmepi_plan_prepare(plan, (gemmepi_stream)(uintptr_t)GEMMEPI__CU_STREAM_PER_THREAD);
        if (!status)
            status =
                gemmepi_run_matmul(plan, &args, (gemmepi_stream)(uintptr_t)GEMMEPI__CU_STREAM_PER_THREAD);
        gemmepi_plan_destroy(plan);
        plan = NULL;
    }
    gemmepi_destroy(context);
    return status;
}

static void every_allocation_may_fail(const char *cache_path, int device) {
    long k, total, refused = 0;
    gemmepi_config config = fake_config();
    config.device = device;
    config.cache_path = cache_path;
    CHECK(whole_program(&config) == GEMMEPI_OK, "%s", gemmepi_last_error());
    total = allocations;
    CHECK(total > 3, "only %ld allocations", total);
    /* a failure that is worked around (no entry in a cache) may lead to more of them */
    for (k = 1; k <= total + 20; k++) {
        gemmepi_status status;
        fake_config();
        fails_at = k;
        status = whole_program(&config);
        CHECK(status == GEMMEPI_OUT_OF_MEMORY || status == GEMMEPI_OK, "allocation %ld of %ld gives %s: %s",
              k, total, gemmepi_status_name(status), gemmepi_last_error());
        CHECK(status == GEMMEPI_OK || sentence_has("memory"), "allocation %ld: %s", k, gemmepi_last_error());
        refused += status != GEMMEPI_OK;
        nothing_is_left();
    }
    CHECK(refused >= 3, "only %ld of %ld allocations matter", refused, total);
}

static void a_program_may_run_out_of_host_memory_anywhere(void) {
    every_allocation_may_fail("", GEMMEPI_DEVICE(0));
}

static void the_host_may_run_out_of_memory_anywhere(void) {
    every_allocation_may_fail("", GEMMEPI_DEVICE_HOST);
}

static void device_memory_that_runs_out_is_reported(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = lt_product();
    gemmepi_matmul_args args = args_for(&desc);
    void *pointer = memory;
    break_function("cuMemAlloc_v2", GEMMEPI__CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(gemmepi_alloc(context, 12345, &pointer) == GEMMEPI_OUT_OF_MEMORY, "%s", gemmepi_last_error());
    CHECK(pointer == NULL && sentence_has("12345"), "%s", gemmepi_last_error());
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OUT_OF_MEMORY, "%s", gemmepi_last_error());
    CHECK(gpu.products == 0, "it ran all the same");
    gpu.fails = NULL;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* A context whose two ones are not there sends D = A B + D to the route split. */
static void a_context_without_its_ones_works(void) {
    static const char *const functions[] = {"cuMemAlloc_v2", "cuStreamCreate", "cuMemcpyHtoDAsync_v2",
                                            "cuStreamSynchronize"};
    static const double one = 1;
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(functions); i++) {
        gemmepi_config config = fake_config();
        gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_NONE);
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_context *context;
        config.device = GEMMEPI_DEVICE(0);
        config.log = keep_log;
        break_function(functions[i], GEMMEPI__CUDA_ERROR_OUT_OF_MEMORY);
        context = open_fake(&config);
        CHECK(strstr(logged, "takes the route split"), "%s: the log has: %s", functions[i], logged);
        gpu.fails = NULL;
        args.c = args.d;
        args.beta = &one;
        CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s: %s", functions[i],
              gemmepi_last_error());
        CHECK(strstr(logged, "without scalars on the device"), "%s: the log has: %s", functions[i], logged);
        CHECK(gpu.products == 1 && gpu.launches == 1, "%s: %ld products, %ld passes", functions[i],
              gpu.products, gpu.launches);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* >>libraries and kernels that fail */

static void a_missing_cublaslt_is_reported_when_planning(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = lt_product();
    gemmepi_plan *plan = NULL;
    gpu.missing = "cublasLt";
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_LIBRARY_NOT_FOUND && !plan, "%s",
          gemmepi_last_error());
#if GEMMEPI__WINDOWS
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
    break_function("cublasLtCreate", GEMMEPI__CUBLAS_STATUS_NOT_INITIALIZED);
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
    break_function("nvrtcCompileProgram", GEMMEPI__NVRTC_ERROR_COMPILATION);
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
        {"nvrtcCreateProgram", GEMMEPI__NVRTC_ERROR_INTERNAL_ERROR, GEMMEPI_COMPILE_ERROR},
        {"nvrtcGetCUBINSize", 11, GEMMEPI_COMPILE_ERROR},
        {"nvrtcGetCUBIN", 11, GEMMEPI_COMPILE_ERROR},
        {"cuModuleLoadData", GEMMEPI__CUDA_ERROR_NO_BINARY_FOR_GPU, GEMMEPI_CUDA_ERROR},
        {"cuModuleGetFunction", GEMMEPI__CUDA_ERROR_NOT_FOUND, GEMMEPI_CUDA_ERROR},
        {"cuCtxPushCurrent_v2", GEMMEPI__CUDA_ERROR_INVALID_CONTEXT, GEMMEPI_CUDA_ERROR},
    };
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(rows); i++) {
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

/* cuBLASLt that knows of both rounds the product before it adds D. */
static void what_is_added_to_d_is_not_told_that_beta_is_1(void) {
    static const struct {
        double alpha, beta;
        int in_place, is_hidden, is_split;
        gemmepi_dtype dtype;
        uint64_t flags;
    } rows[] = {
        {1, 1, 1, 1, 0, GEMMEPI_BF16, 0},
        {1, 1, 0, 0, 0, GEMMEPI_BF16, 0},
        {1, 2, 1, 0, 0, GEMMEPI_F16, 0},
        {2, 1, 1, 0, 1, GEMMEPI_F16, 0},
        {1, 1, 1, 0, 0, GEMMEPI_F32, 0},
        {2, 1, 0, 0, 0, GEMMEPI_F16, 0},
        {2, 1, 1, 0, 0, GEMMEPI_F16, GEMMEPI_RELAXED},
    };
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(rows); i++) {
        static const double one = 1;
        gemmepi_config config = fake_config();
        gemmepi_context *context;
        gemmepi_matmul_desc desc = product(rows[i].dtype, GEMMEPI_NONE);
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_plan *plan = NULL;
        config.log = keep_log;
        context = open_fake(&config);
        desc.flags = rows[i].flags;
        args.c = rows[i].in_place ? args.d : memory[7];
        args.alpha = &rows[i].alpha;
        args.beta = &rows[i].beta;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", (int)i, gemmepi_last_error());
        CHECK(gpu.last_alpha && (gpu.last_beta == gpu.last_alpha + 1) == rows[i].is_hidden,
              "%d: scalars at %p and %p", (int)i, (const void *)gpu.last_alpha, (const void *)gpu.last_beta);
        CHECK(!rows[i].is_hidden || (gpu.last_alpha[0] == 1 && gpu.last_alpha[1] == 1), "%d: %g %g", (int)i,
              (double)gpu.last_alpha[0], (double)gpu.last_alpha[1]);
        CHECK((gpu.launches == 1) == rows[i].is_split, "%d: %ld passes", (int)i, gpu.launches);
        CHECK(explain_has(plan, "route lt"), "%d: the plan changed its route", (int)i);
        CHECK((strstr(logged, "with such an alpha it rounds") != NULL) == rows[i].is_split,
              "%d: the log has: %s", (int)i, logged);
        args.c = args.d;
        args.alpha = args.beta = &one; /* other runs of the plan go on as before */
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK &&
                  gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK,
              "%d: %s", (int)i, gemmepi_last_error());
        CHECK(gpu.launches == rows[i].is_split, "%d: %ld passes", (int)i, gpu.launches);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* >>the route fused */

static gemmepi_matmul_desc fused_product(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_BIAS);
    desc.m = 2048, desc.n = 1024, desc.k = 512;
    return desc;
}

/* Nothing is read or written there. */
static gemmepi_matmul_args fused_args(void) {
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = (const void *)(uintptr_t)0x10000000;
    args.b = (const void *)(uintptr_t)0x20000000;
    args.bias = (const void *)(uintptr_t)0x30000000;
    args.d = (void *)(uintptr_t)0x40000000;
    return args;
}

static void a_fused_run_has_its_own_pointers_in_its_maps(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    int run;
    desc.batch = 3;
    desc.a.batch_stride = desc.m * desc.k;
    desc.d.batch_stride = desc.m * desc.n;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(explain_has(plan, "route fused") && explain_has(plan, "  gemmepi_sm90_") &&
              explain_has(plan, ": product and epilogue"),
          "another route");
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.launches == 1 &&
              details.workspace_size == 0 && details.route == GEMMEPI_ROUTE_FUSED,
          "%d launches", details.launches);
    for (run = 0; run < 2; run++) {
        const gemmepi__sm90_params *last = &gpu.last_fused;
        args.a = (const void *)(uintptr_t)(0x10000000 + 256 * run);
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(last->a.words[0] == (uintptr_t)args.a && last->b.words[0] == (uintptr_t)args.b,
              "pointers of another run");
        CHECK(last->a.words[1] == 512 && last->a.words[2] == 2048 && last->a.words[3] == 3, "A's extents");
        CHECK(last->a.words[6] == 2 * 512 && last->a.words[7] == 2 * 2048 * 512, "A's strides");
        CHECK(last->d.words[6] == 2 * 1024 && last->d.words[8] == 2 * 2048 * 1024, "D's strides");
        CHECK(last->b.words[1] == 1024 && last->b.words[2] == 512 && last->b.words[3] == 1, "B's extents");
        CHECK(last->a_items == 1 && last->b_items == 0 && last->epilogue.d.data == args.d, "other operands");
        CHECK(gpu.last_shared > 48 << 10 && gpu.last_shared <= 227 << 10, "%u bytes of shared memory",
              gpu.last_shared);
    }
    CHECK(gpu.launches == 2 && gpu.products == 0 && gpu.overlapping == 2, "%ld launches", gpu.launches);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Results of 16 bits, or of 32, have maps, whose halves are an axis of their own; others have none, nor has an aux of another width
   than D. */
static void fused_results_have_maps_of_their_own(void) {
    static const struct {
        gemmepi_dtype d, aux;
        int d_ld, aux_ld, has_d, has_aux; /* ld beyond the length */
    } cases[] = {{GEMMEPI_BF16, GEMMEPI_BF16, 0, 0, 1, 1}, {GEMMEPI_F32, GEMMEPI_F32, 0, 0, 1, 1},
                 {GEMMEPI_BF16, GEMMEPI_BF16, 1, 0, 0, 1}, {GEMMEPI_BF16, GEMMEPI_BF16, 0, 4, 1, 0},
                 {GEMMEPI_F32, GEMMEPI_BF16, 0, 0, 1, 0},  {GEMMEPI_BF16, GEMMEPI_F32, 0, 0, 1, 0},
                 {GEMMEPI_F32, GEMMEPI_F32, 4, 2, 1, 0},   {GEMMEPI_E4M3, GEMMEPI_E4M3, 0, 0, 0, 0},
                 {GEMMEPI_E4M3, GEMMEPI_BF16, 0, 0, 0, 1}};
    int i;
    for (i = 0; i < (int)GEMMEPI__COUNT(cases); i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_matmul_args args = fused_args();
        const gemmepi__tensor_map *d = &gpu.last_fused.d, *aux = &gpu.last_fused.aux;
        gemmepi_plan *plan = NULL;
        desc.epilogue |= GEMMEPI_GATED | GEMMEPI_AUX;
        args.aux = (void *)(uintptr_t)0x50000000;
        desc.d.dtype = cases[i].d, desc.d.ld = desc.n / 2 + cases[i].d_ld;
        desc.aux.dtype = cases[i].aux, desc.aux.ld = desc.n + cases[i].aux_ld;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(d->words[0] == (cases[i].has_d ? (uintptr_t)args.d : 0), "%d: D's address", i);
        CHECK(aux->words[0] == (cases[i].has_aux ? (uintptr_t)args.aux : 0), "%d: AUX's address", i);
        if (i < 2)
            CHECK(d->words[1] == 512 && d->words[2] == 2048 && d->words[3] == 1 && aux->words[1] == 512 &&
                      aux->words[2] == 2048 && aux->words[3] == 2 && aux->words[4] == 1,
                  "extents");
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void routes_that_are_none_of_products_are_refused(void) {
    gemmepi_config config = fake_config();
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_context *context = NULL;
    gemmepi_plan *plan = NULL;
    config.routes = 1u << GEMMEPI_ROUTE_SUM;
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("config.routes is 0x80"),
          "%s", gemmepi_last_error());
    config.routes = 1u << GEMMEPI_ROUTE_LT; /* has no SILU */
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_UNSUPPORTED &&
              sentence_has("fused: config.routes leaves it out") &&
              sentence_has("split: config.routes leaves it out") &&
              sentence_has("plain: config.routes leaves it out"),
          "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Before CUDA 12.3 a captured launch may not overlap. */
static void an_older_driver_launches_without_overlap(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    context = open_fake(&config);
    context->driver.version = 12020;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.launches == 1 && gpu.overlapping == 0, "%ld of %ld launches overlap", gpu.overlapping,
          gpu.launches);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* A context on a chip, a product and its plan. */
typedef struct planned {
    gemmepi_context *context;
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_plan *plan;
    gemmepi_plan_details details;
} planned;

/* arch 0: DEVICE_ARCH. routes: of the config */
static planned planned_begin(int arch, uint32_t routes) {
    planned p;
    gemmepi_config config = config_with_all_routes();
    memset(&p, 0, sizeof p);
    gpu.other_arch = arch;
    gpu.launches = gpu.overlapping = 0;
    if (routes)
        config.routes = routes;
    p.context = open_fake(&config);
    p.desc = fused_product();
    p.args = fused_args();
    return p;
}

static int planned_plan(planned *p) {
    int made = gemmepi_plan_matmul(p->context, &p->desc, &p->plan) == GEMMEPI_OK &&
               gemmepi_plan_info(p->plan, &p->details) == GEMMEPI_OK;
    CHECK(made, "%s", gemmepi_last_error());
    return made;
}

static void planned_run(planned *p) {
    CHECK(gemmepi_plan_prepare(p->plan, NULL) == GEMMEPI_OK &&
              gemmepi_run_matmul(p->plan, &p->args, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
}

static void planned_end(planned *p) {
    gemmepi_plan_destroy(p->plan);
    gemmepi_destroy(p->context);
    gpu.other_arch = 0;
    nothing_is_left();
}

/* TMA is slow for what lies beyond an operand, so the last boxes of lines along k have a map of their own, with as many as there
   are. Where those along m or n lie side by side boxes are whole, and none begins beyond. */
static void boxes_have_no_lines_beyond_an_operand(void) {
    static const struct {
        int64_t m, n;
        int rows, columns; /* of last boxes; 40 columns side by side are in one box of 64 */
    } cases[] = {{24, 4096, 24, 0}, {4096, 40, 0, 40}, {4096, 4096, 0, 0}};
    int i, layout;
    for (i = 0; i < (int)GEMMEPI__COUNT(cases); i++)
        for (layout = 0; layout < 4; layout++) {
            planned p = planned_begin(0, 1u << GEMMEPI_ROUTE_FUSED);
            const gemmepi__sm90_params *last = &gpu.last_fused;
            const gemmepi__sm90 *fused;
            p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.k = 1024;
            p.desc.a.transposed = layout & 1, p.desc.b.transposed = layout >> 1;
            if (planned_plan(&p)) {
                fused = &matmul_of(p.plan)->fused.built.sm90;
                planned_run(&p);
                CHECK(!(strcmp(matmul_of(p.plan)->fused.engine->name, "sm80") == 0) &&
                          fused->tails == (cases[i].rows || (cases[i].columns && p.desc.b.transposed)),
                      "%d, layout %d: tails %d", i, layout, fused->tails);
                if (cases[i].rows && !p.desc.a.transposed)
                    CHECK(fused->last_a == cases[i].rows && last->a_tail.words[0] == (uintptr_t)p.args.a &&
                              (int)last->a_tail.words[5] == cases[i].rows,
                          "%d, layout %d: the last box of A has %d lines", i, layout,
                          (int)last->a_tail.words[5]);
                if (cases[i].columns && p.desc.b.transposed)
                    CHECK(fused->last_b == cases[i].columns && last->b_tail.words[0] == (uintptr_t)p.args.b &&
                              (int)last->b_tail.words[5] == cases[i].columns,
                          "%d, layout %d: the last box of B has %d lines", i, layout,
                          (int)last->b_tail.words[5]);
                CHECK((int)last->a.words[10] == ((p.desc.a.transposed ? p.desc.m : p.desc.k) % 128
                                                     ? GEMMEPI__CU_TENSOR_MAP_L2_PROMOTION_L2_128B
                                                     : GEMMEPI__CU_TENSOR_MAP_L2_PROMOTION_L2_256B),
                      "%d, layout %d: lines of A are brought to L2 by %d", i, layout, (int)last->a.words[10]);
                CHECK(!p.desc.a.transposed || fused->last_a == 0, "%d: A has another map", i);
                CHECK(p.desc.b.transposed || fused->last_b == 0, "%d: B has another map", i);
            }
            planned_end(&p);
        }
}

/* The kernel leaves a line of sums for each 128 rows in workspace, of both halves of a gate's gradient; one launch adds them up, or
   two where a column has more than 512 of them. */
static void a_fused_gradient_leaves_its_sums(void) {
    static const struct {
        int64_t m, n;
        int batch, shared, gated, launches;
    } cases[] = {{2048, 1024, 1, 1, 0, 2}, {2000, 1024, 3, 0, 0, 2},     {2048, 1024, 3, 1, 0, 2},
                 {4096, 4096, 1, 1, 0, 2}, {128 * 512, 128, 1, 1, 0, 2}, {128 * 513, 128, 1, 1, 0, 3},
                 {2048, 1024, 1, 1, 1, 2}};
    int i;
    for (i = 0; i < (int)GEMMEPI__COUNT(cases); i++) {
        planned p = planned_begin(0, 0);
        int64_t tiles = (cases[i].m + 127) / 128;
        size_t lines = (size_t)(tiles * cases[i].n * cases[i].batch * (1 + cases[i].gated)) * sizeof(float);
        const gemmepi__sm90_params *last = &gpu.last_fused;
        p.desc.epilogue = GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD;
        if (cases[i].gated)
            p.desc.epilogue |= GEMMEPI_GATED;
        p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.batch = cases[i].batch;
        if (p.desc.batch > 1) {
            p.desc.a.batch_stride = p.desc.m * p.desc.k;
            p.desc.d.batch_stride = p.desc.aux.batch_stride = p.desc.m * p.desc.n;
            p.desc.bias_grad.batch_stride = cases[i].shared ? 0 : p.desc.n + 8;
        }
        p.args.aux = (void *)(uintptr_t)0x50000000;
        p.args.bias = NULL;
        p.args.bias_grad = (void *)(uintptr_t)0x30000000;
        if (planned_plan(&p)) {
            CHECK(p.details.route == GEMMEPI_ROUTE_FUSED && p.details.launches == cases[i].launches,
                  "%d: route %d, %d launches", i, (int)p.details.route, p.details.launches);
            CHECK(cases[i].launches == 2 ? p.details.workspace_size == lines
                                         : p.details.workspace_size > lines,
                  "%d: %lu bytes", i, (unsigned long)p.details.workspace_size);
            CHECK(explain_has(p.plan, "more launch"), "%d: explain does not tell", i);
            planned_run(&p);
            CHECK(last->epilogue.row_tiles == (unsigned)tiles, "%d: %u lines", i, last->epilogue.row_tiles);
        }
        CHECK(gpu.launches == cases[i].launches && gpu.overlapping == gpu.launches,
              "%d: %ld of %ld launches overlap", i, gpu.overlapping, gpu.launches);
        planned_end(&p);
    }
}

/* There is no product, but sums over no rows, or of an operand that is there: whatever routes are allowed. */
static void an_empty_product_leaves_its_sums(void) {
    static const struct {
        gemmepi_epilogue epilogue;
        int64_t m, n;
        int batch, launches;
    } cases[] = {{GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 0, 1024, 1, 1},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 0, 1024, 3, 1},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 2048, 0, 1, 0},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 0, 1024, 0, 1},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD, 0, 1024, 1, 0},
                 {GEMMEPI_BGRAD_A, 2048, 0, 1, 1},
                 {GEMMEPI_BGRAD_A, 2048, 0, 3, 2},
                 {GEMMEPI_BGRAD_B, 0, 1024, 1, 1},
                 {GEMMEPI_BGRAD_B, 2048, 0, 1, 0}};
    int i, lt_only;
    for (i = 0; i < (int)GEMMEPI__COUNT(cases); i++)
        for (lt_only = 0; lt_only < 2; lt_only++) {
            planned p = planned_begin(0, lt_only ? 1u << GEMMEPI_ROUTE_LT : 0);
            int writes = cases[i].launches != 0;
            gemmepi_status without;
            p.desc.epilogue = cases[i].epilogue;
            p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.batch = cases[i].batch;
            p.args.bias = NULL;
            if (cases[i].epilogue & GEMMEPI_BACKWARD)
                p.args.aux = (void *)(uintptr_t)0x50000000;
            if (planned_plan(&p)) {
                CHECK(p.details.route == GEMMEPI_ROUTE_EMPTY && p.details.launches == cases[i].launches,
                      "%d: route %d, %d launches", i, (int)p.details.route, p.details.launches);
                CHECK(writes ? is_kernel(&p.details, "gemmepi_sum_") : !p.details.kernel[0], "%d: kernel %s",
                      i, p.details.kernel);
                CHECK(explain_has(p.plan, "sums of bias_grad are written") == writes, "%d: explained wrong",
                      i);
                without = gemmepi_run_matmul(p.plan, &p.args, NULL);
                CHECK(without == (writes ? GEMMEPI_INVALID_ARGUMENT : GEMMEPI_OK), "%d: %d without bias_grad",
                      i, (int)without);
                p.args.bias_grad = (void *)(uintptr_t)0x30000000;
                planned_run(&p);
            }
            CHECK(gpu.launches == cases[i].launches, "%d: %ld launches", i, gpu.launches);
            planned_end(&p);
        }
}

/* k in parts: gates take the small tiles that the bare product does; no multiprocessor has room for more than its share of the blocks,
   and the pass has a block for each multiprocessor, where its threads are not all of a warp or it sums. */
static void blocks_are_shared_out_evenly(void) {
    static const struct {
        gemmepi_epilogue epilogue;
        int64_t m, n, k;
        int tile_m;      /* of parts, which are 64 wide */
        int room, waves; /* blocks that a multiprocessor has room for; how often all have as many */
        int pass_blocks; /* at least; 0: no pass */
    } cases[] = {{GEMMEPI_SILU | GEMMEPI_GATED, 300, 300, 300, 32, 1, 1, 132},
                 {GEMMEPI_SILU | GEMMEPI_GATED, 64, 2048, 2048, 64, 2, 1, 132},
                 {GEMMEPI_SILU | GEMMEPI_GATED, 16, 256, 2048, 32, 1, 1, 8},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 64, 2048, 2048, 64, 2, 1, 1},
                 {GEMMEPI_BIAS, 64, 2048, 64, 0, 1, 1, 0},
                 {GEMMEPI_SILU, 4096, 4096, 512, 0, 2, 4, 0}};
    int i;
    for (i = 0; i < (int)GEMMEPI__COUNT(cases); i++) {
        planned p = planned_begin(90, 1u << GEMMEPI_ROUTE_FUSED);
        p.desc.epilogue = cases[i].epilogue;
        p.desc.a.dtype = GEMMEPI_F32;
        p.desc.b.transposed = 1;
        p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.k = cases[i].k;
        if (planned_plan(&p)) {
            const gemmepi__sm80 *mma = &matmul_of(p.plan)->fused.built.sm80;
            const gemmepi__launch *pass = &mma->pass.launch;
            unsigned room = gemmepi__most_shared(90) / (mma->launch.shared ? mma->launch.shared : 1);
            CHECK((strcmp(matmul_of(p.plan)->fused.engine->name, "sm80") == 0) &&
                      (int)room == cases[i].room &&
                      (int)gemmepi__divide_up(mma->launch.blocks, 132 * room) == cases[i].waves,
                  "%d: %u blocks with %u bytes each", i, mma->launch.blocks, mma->launch.shared);
            CHECK((mma->parts > 1) == (cases[i].pass_blocks > 0) &&
                      (mma->parts == 1 || (mma->shape.tile_m == cases[i].tile_m && mma->shape.tile_n == 64)),
                  "%d: %d parts, tiles of %d x %d", i, mma->parts, mma->shape.tile_m, mma->shape.tile_n);
            CHECK((int)pass->blocks >= cases[i].pass_blocks &&
                      (!pass->function || pass->threads_x * pass->threads_y >= 32),
                  "%d: a pass of %u blocks of %u x %u", i, pass->blocks, pass->threads_x, pass->threads_y);
        }
        planned_end(&p);
    }
}

/* What was fastest, where it was measured: tiles, the bias before the sums, and one band of rows where A is small and B large. */
static void hopper_kernel_is_cut_as_measured(void) {
    static const struct {
        gemmepi_epilogue epilogue;
        int64_t m, n, k;
        int tile_n, bias_ahead, bands;
    } cases[] = {{GEMMEPI_BIAS, 8192, 3072, 768, 128, 1, 3},
                 {GEMMEPI_BIAS | GEMMEPI_RELU, 2048, 50304, 768, 128, 1, 1},
                 {GEMMEPI_BIAS | GEMMEPI_RELU, 4096, 4096, 4096, 128, 0, 1},
                 {GEMMEPI_BIAS | GEMMEPI_SILU, 8192, 3072, 768, 128, 1, 3},
                 {GEMMEPI_BIAS | GEMMEPI_SILU, 4096, 4096, 4096, 128, 0, 1},
                 {GEMMEPI_BIAS | GEMMEPI_SILU | GEMMEPI_AUX, 8192, 3072, 768, 128, 0, 11},
                 {GEMMEPI_BIAS | GEMMEPI_GELU_TANH | GEMMEPI_AUX, 8192, 3072, 768, 128, 1, 11},
                 {GEMMEPI_BIAS | GEMMEPI_GELU_ERF, 8192, 3072, 768, 128, 0, 3},
                 {GEMMEPI_BIAS, 8192, 8192, 8192, 192, 0, 5},
                 {GEMMEPI_BIAS | GEMMEPI_GELU_ERF, 8192, 8192, 8192, 192, 0, 5},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 8192, 3072, 768, 128, 0, 6},
                 {GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 2048, 50304, 768, 128, 0, 1}};
    int i;
    for (i = 0; i < (int)GEMMEPI__COUNT(cases); i++) {
        planned p = planned_begin(90, 1u << GEMMEPI_ROUTE_FUSED);
        p.desc.epilogue = cases[i].epilogue;
        p.desc.m = cases[i].m, p.desc.n = cases[i].n, p.desc.k = cases[i].k;
        if (planned_plan(&p)) {
            const gemmepi__sm90 *fused = &matmul_of(p.plan)->fused.built.sm90;
            unsigned band = fused->params.band, rows = fused->params.cluster_rows;
            int ahead = gemmepi__loads_bias_ahead(&matmul_of(p.plan)->problem, fused);
            CHECK(!(strcmp(matmul_of(p.plan)->fused.engine->name, "sm80") == 0) &&
                      fused->shape.tile_m == 128 && fused->shape.tile_n == cases[i].tile_n &&
                      ahead == cases[i].bias_ahead,
                  "%d: tiles of %d x %d, bias ahead %d", i, fused->shape.tile_m, fused->shape.tile_n, ahead);
            CHECK((int)gemmepi__divide_up(rows, band) == cases[i].bands, "%d: %u rows in bands of %u", i,
                  rows, band);
        }
        planned_end(&p);
    }
}

/* The kernel writes them into bias_grad itself; where the items of a batch share it, into lines that one launch adds up. */
static void sums_of_an_operand_are_the_fused_kernels_own(void) {
    int i;
    for (i = 0; i < 6; i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_matmul_args args = fused_args();
        gemmepi_plan_details details;
        gemmepi_plan *plan = NULL;
        int of_a = i % 2, shared = i / 2 == 2;
        int64_t length = of_a ? desc.m : desc.n;
        size_t lines = shared ? (size_t)(3 * length) * sizeof(double) : 0;
        const gemmepi__sm90_params *last = &gpu.last_fused;
        desc.epilogue |= of_a ? GEMMEPI_BGRAD_A : GEMMEPI_BGRAD_B;
        args.bias_grad = (void *)(uintptr_t)0x50000000;
        if (i / 2) {
            desc.batch = 3;
            desc.a.batch_stride = desc.m * desc.k;
            desc.d.batch_stride = desc.m * desc.n;
            desc.bias_grad.batch_stride = shared ? 0 : length + 8;
        }
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.route == GEMMEPI_ROUTE_FUSED &&
                  details.launches == 1 + shared && details.workspace_size == lines,
              "%d: route %d, %d launches, %lu bytes", i, (int)details.route, details.launches,
              (unsigned long)details.workspace_size);
        CHECK(explain_has(plan, of_a ? "bias_grad: sums of a as" : "bias_grad: sums of b as") &&
                  explain_has(plan, "by 1 more launch") == shared,
              "%d: explain does not tell", i);
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gpu.launches = 0;
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(gpu.launches == 1 + shared, "%d: %ld launches", i, gpu.launches);
        CHECK((last->sums == args.bias_grad) == !shared && last->sums != NULL, "%d: sums elsewhere", i);
        CHECK(last->sums_stride == (shared ? length : desc.bias_grad.batch_stride), "%d: stride %lld", i,
              last->sums_stride);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* The model against an H200: the times of the route fused there, in microseconds, which clock and power move by some 5 %. */
static void estimates_are_near_what_was_measured(void) {
    static const struct {
        int64_t m, n, k;
        gemmepi_epilogue epilogue;
        double microseconds;
    } rows[] = {
        {8192, 3072, 768, GEMMEPI_BIAS, 54.5},
        {8192, 3072, 768, GEMMEPI_BIAS | GEMMEPI_SILU, 58},
        {8192, 3072, 768, GEMMEPI_BIAS | GEMMEPI_GELU_ERF, 62.5},
        {8192, 3072, 768, GEMMEPI_BIAS | GEMMEPI_SILU | GEMMEPI_AUX, 65},
        {8192, 3072, 768, GEMMEPI_BACKWARD | GEMMEPI_SILU, 70.2},
        {8192, 3072, 768, GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_SILU, 79.1},
        {8192, 3072, 768, GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_GELU_TANH, 87.4},
        {8192, 3072, 768, GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_GELU_ERF, 88.2},
        {2048, 50304, 768, GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_GELU_TANH, 331},
        {8192, 768, 3072, GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_RELU, 60.5},
        {2048, 2048, 2048, GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_SILU, 32.3},
        {2048, 2048, 2048, GEMMEPI_BIAS | GEMMEPI_SILU, 27},
        {4096, 4096, 4096, GEMMEPI_BIAS | GEMMEPI_SILU, 183},
    };
    static gemmepi_context h200;
    size_t i;
    h200.arch = 90, h200.multiprocessors = 132;
    for (i = 0; i < GEMMEPI__COUNT(rows); i++) {
        gemmepi_matmul_desc desc;
        gemmepi__problem problem;
        gemmepi__estimates estimates;
        memset(&desc, 0, sizeof desc);
        desc.m = rows[i].m, desc.n = rows[i].n, desc.k = rows[i].k, desc.batch = 1;
        desc.a.dtype = GEMMEPI_BF16;
        desc.epilogue = rows[i].epilogue;
        CHECK(gemmepi__normalise(&desc, GEMMEPI__DEFAULT_ALIGNMENT, &problem) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        gemmepi__estimate_routes(&h200, &problem, &estimates);
        CHECK(fabs(estimates.fused / rows[i].microseconds - 1) < 0.12, "row %d: %g us, not %g", (int)i,
              estimates.fused, rows[i].microseconds);
        CHECK(gemmepi__fused_is_least(&estimates), "row %d takes another route", (int)i);
    }
}

/* cuBLASLt reads the operand once more. */
static void a_product_that_sums_an_operand_goes_fused(void) {
    static gemmepi_context h200;
    gemmepi_matmul_desc desc;
    gemmepi__problem problem;
    gemmepi__estimates bare, summing;
    h200.arch = 90, h200.multiprocessors = 132;
    memset(&desc, 0, sizeof desc);
    desc.m = desc.n = desc.k = 4096, desc.batch = 1;
    desc.a.dtype = GEMMEPI_BF16;
    desc.a.transposed = 1;
    CHECK(gemmepi__normalise(&desc, GEMMEPI__DEFAULT_ALIGNMENT, &problem) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    gemmepi__estimate_routes(&h200, &problem, &bare);
    desc.epilogue = GEMMEPI_BGRAD_B;
    CHECK(gemmepi__normalise(&desc, GEMMEPI__DEFAULT_ALIGNMENT, &problem) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    gemmepi__estimate_routes(&h200, &problem, &summing);
    CHECK(summing.fused == bare.fused && summing.lt > bare.lt + 10, "fused %g and %g us, lt %g and %g",
          bare.fused, summing.fused, bare.lt, summing.lt);
    CHECK(!gemmepi__fused_is_least(&bare) && gemmepi__fused_is_least(&summing), "another route");
}

static void what_tma_does_not_take_is_copied_by_threads(void) {
    static const double two = 2;
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    config.routes = 1u << GEMMEPI_ROUTE_FUSED;
    context = open_fake(&config);
    desc.epilogue |= GEMMEPI_GATED, desc.n = 1016; /* the second half of b begins at a multiple of 8 bytes */
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.route == GEMMEPI_ROUTE_FUSED &&
              is_kernel(&details, "gemmepi_sm80_") && details.launches == 1,
          "%s by %s", details.route_name, details.kernel);
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.launches == 1 && gpu.overlapping == 1, "%ld of %ld launches overlap", gpu.overlapping,
          gpu.launches);
    args.alpha = &two;
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.launches == 2, "%ld launches", gpu.launches);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void other_chips_from_8_0_on_have_the_second_kernel(void) {
    static const int archs[] = {75, 80, 86, 89, 100, 120};
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(archs); i++) {
        planned p = planned_begin(archs[i], 0);
        int is_taken = archs[i] >= 80, is_made = planned_plan(&p);
        CHECK(!is_taken || is_kernel(&p.details, "gemmepi_sm80_"), "%d: %s by %s", archs[i],
              p.details.route_name, p.details.kernel);
        CHECK(is_taken == (p.details.route == GEMMEPI_ROUTE_FUSED) &&
                  is_taken == explain_has(p.plan, "not gemmepi_sm90: its kernel is for compute") &&
                  is_taken != explain_has(p.plan, "not fused: its kernels are for compute capability 8.0"),
              "%d: another explanation", archs[i]);
        if (is_taken && is_made)
            planned_run(&p);
        CHECK(!is_taken || (gpu.launches == 1 && gpu.overlapping == (archs[i] > 90)),
              "%d: %ld launches, of which %ld overlap", archs[i], gpu.launches, gpu.overlapping);
        planned_end(&p);
    }
}

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
    for (i = 0; i < GEMMEPI__COUNT(rows); i++) {
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
    gemmepi__launch launch;
    size_t i;
    gemmepi__name_kernel(&launch, "gemmepi_%s %s-%d", "BF16", "a.b", 12);
    CHECK(strcmp(launch.name, "gemmepi_bf16_a_b_12") == 0, "%s", launch.name);
    gemmepi__name_kernel(&launch, "gemmepi_%0200d", 7);
    CHECK(strlen(launch.name) == sizeof launch.name - 1, "%d letters", (int)strlen(launch.name));
    for (i = 0; launch.name[i]; i++)
        CHECK(strchr("abcdefghijklmnopqrstuvwxyz0123456789_", launch.name[i]), "%c", launch.name[i]);
}

static void operands_of_odd_lines_are_packed_first(void) {
    planned p = planned_begin(0, 0);
    p.desc.a.ld = p.desc.k + 1;
    if (planned_plan(&p)) {
        CHECK(p.details.route == GEMMEPI_ROUTE_FUSED && is_kernel(&p.details, "gemmepi_sm90_") &&
                  p.details.launches == 2 && p.details.workspace_size == (size_t)(2 * p.desc.m * p.desc.k),
              "%s by %s, %d launches", p.details.route_name, p.details.kernel, p.details.launches);
        CHECK(explain_has(p.plan, "gemmepi_pack: a to workspace") && !explain_has(p.plan, "gemmepi_pack: b"),
              "another explanation");
        planned_run(&p);
    }
    CHECK(gpu.launches == 2 && gpu.overlapping == 2, "%ld of %ld launches overlap", gpu.overlapping,
          gpu.launches);
    planned_end(&p);
}

/* Strict F32 by the second kernel, TF32 by that for Hopper, for which operands lie along k: what does not is transposed first, or
   packed, where that is less. */
static void f32_has_both_kernels(void) {
    static const struct {
        gemmepi_compute compute;
        int m, transposed, odd; /* bits: A, B */
        const char *kernel, *first, *second;
    } cases[] = {
        {GEMMEPI_COMPUTE_F32, 4096, 0, 0, "gemmepi_sm80_", NULL, NULL},
        {GEMMEPI_COMPUTE_F32, 4096, 0, 1, "gemmepi_sm80_", "gemmepi_convert_f32_to_f32: a", NULL},
        {GEMMEPI_COMPUTE_F32, 64, 0, 1, "gemmepi_sm80_", NULL, NULL},
        {GEMMEPI_COMPUTE_TF32, 4096, 2, 0, "gemmepi_sm90_", NULL, NULL},
        {GEMMEPI_COMPUTE_TF32, 4096, 2, 1, "gemmepi_sm90_", "gemmepi_convert_f32_to_f32: a", NULL},
        {GEMMEPI_COMPUTE_TF32, 4096, 0, 0, "gemmepi_sm90_", "gemmepi_transpose: b", NULL},
        {GEMMEPI_COMPUTE_TF32, 4096, 1, 0, "gemmepi_sm90_", "gemmepi_transpose: a", "gemmepi_transpose: b"},
        {GEMMEPI_COMPUTE_TF32, 4096, 0, 3, "gemmepi_sm90_", "gemmepi_convert_f32_to_f32: a",
         "gemmepi_transpose: b"},
        {GEMMEPI_COMPUTE_TF32, 64, 0, 0, "gemmepi_sm80_", NULL, NULL},
    };
    int i;
    for (i = 0; i < (int)GEMMEPI__COUNT(cases); i++) {
        int copies = (cases[i].first != NULL) + (cases[i].second != NULL);
        planned p = planned_begin(0, 1u << GEMMEPI_ROUTE_FUSED);
        p.desc.a.dtype = GEMMEPI_F32, p.desc.compute = cases[i].compute;
        p.desc.m = cases[i].m, p.desc.n = p.desc.k = 4096;
        p.desc.a.transposed = cases[i].transposed & 1, p.desc.b.transposed = cases[i].transposed >> 1;
        p.desc.a.ld = (p.desc.a.transposed ? p.desc.m : p.desc.k) + (cases[i].odd & 1);
        p.desc.b.ld = (p.desc.b.transposed ? p.desc.k : p.desc.n) + (cases[i].odd >> 1);
        if (planned_plan(&p)) {
            CHECK(is_kernel(&p.details, cases[i].kernel) && p.details.compute == cases[i].compute,
                  "%d: %s by %s", i, p.details.route_name, p.details.kernel);
            CHECK(p.details.launches - (gemmepi__describe_built(&matmul_of(p.plan)->fused).pass != NULL) ==
                      1 + copies,
                  "%d: %d launches", i, p.details.launches);
            CHECK((!cases[i].first || explain_has(p.plan, cases[i].first)) &&
                      (!cases[i].second || explain_has(p.plan, cases[i].second)),
                  "%d: another explanation", i);
            planned_run(&p);
            CHECK(gpu.launches == p.details.launches, "%d: %ld launches", i, gpu.launches);
        }
        planned_end(&p);
    }
}

/* Few tiles and a long k: its parts, and a pass that adds them up. */
static void the_second_kernel_divides_k_among_blocks(void) {
    static const double two = 2;
    planned p = planned_begin(80, 0);
    p.desc.m = p.desc.n = 128, p.desc.k = 8192;
    p.desc.epilogue = GEMMEPI_SILU | GEMMEPI_BACKWARD;
    p.args.aux = (void *)(uintptr_t)0x50000000, p.args.bias = NULL;
    if (planned_plan(&p)) {
        CHECK(is_kernel(&p.details, "gemmepi_sm80_") && p.details.launches == 2 &&
                  p.details.workspace_size >= 2 * 128 * 128 * sizeof(float),
              "%d launches of %s, %d bytes", p.details.launches, p.details.kernel,
              (int)p.details.workspace_size);
        CHECK(explain_has(p.plan, "gemmepi_sm80_") &&
                  explain_has(p.plan, ": the sum of k's parts, the epilogue"),
              "another explanation");
        planned_run(&p);
        CHECK(gpu.launches == 2, "%ld launches", gpu.launches);
        p.args.alpha = &two; /* by kernels of its own, in the same workspace */
        CHECK(gemmepi_run_matmul(p.plan, &p.args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    }
    CHECK(gpu.launches == 4, "%ld launches", gpu.launches);
    planned_end(&p);
}

/* Runs of eight are stored in pairs: in each part they must begin at a multiple of their size. */
static void parts_of_a_narrow_product_are_aligned(void) {
    int n;
    for (n = 1; n < 20; n++) {
        planned p = planned_begin(80, 0);
        p.desc.m = 1, p.desc.n = n, p.desc.k = 8192, p.desc.batch = 1 + n % 2;
        p.desc.a.batch_stride = p.desc.k, p.desc.d.batch_stride = n;
        if (planned_plan(&p)) {
            const gemmepi__sm80 *mma = &matmul_of(p.plan)->fused.built.sm80;
            int64_t part = mma->params.epilogue.d.stride;
            CHECK(matmul_of(p.plan)->route == GEMMEPI_ROUTE_FUSED && mma->parts > 1, "n %d is not in parts",
                  n);
            CHECK(part % 4 == 0 && part >= n, "n %d: stride %d", n, (int)part);
            CHECK(mma->pass.params.part == part && mma->pass.params.product.stride == mma->parts * part,
                  "n %d: the pass reads other places", n);
            CHECK(mma->product_bytes == (size_t)(p.desc.batch * mma->parts * part) * sizeof(float),
                  "n %d: %d bytes", n, (int)mma->product_bytes);
        }
        planned_end(&p);
    }
}

static gemmepi__estimates estimates_of(gemmepi_dtype dtype, gemmepi_compute compute,
                                       gemmepi_epilogue epilogue, int layout, int64_t edge, int64_t n) {
    planned p = planned_begin(0, 0);
    gemmepi__estimates estimates = {0, 0, 0};
    p.desc.a.dtype = dtype, p.desc.compute = compute, p.desc.epilogue = epilogue;
    p.desc.m = p.desc.k = edge, p.desc.n = n;
    p.desc.a.transposed = layout & 1, p.desc.b.transposed = layout >> 1;
    if (planned_plan(&p))
        gemmepi__estimate_routes(p.context, &matmul_of(p.plan)->problem, &estimates);
    planned_end(&p);
    return estimates;
}

/* A call of cuBLASLt takes the host longer than a launch; its TF32 is slower for each operand that does not lie along k, all but
   strict F32 where lines of D are no whole units, and DRELU_BGRAD takes 7 us more. */
static void cublaslt_is_estimated_as_long_as_it_takes(void) {
    const gemmepi_epilogue drelu = GEMMEPI_RELU | GEMMEPI_BACKWARD;
    double of_layout[4], whole, odd, without, with;
    int layout, small, sums;
    for (small = 0; small < 2; small++) {
        planned p = planned_begin(0, 0);
        p.desc.epilogue = GEMMEPI_NONE, p.args.bias = NULL;
        p.desc.m = p.desc.n = small ? 128 : 4096, p.desc.k = small ? 64 : 2048;
        if (planned_plan(&p))
            CHECK(p.details.route == (small ? GEMMEPI_ROUTE_FUSED : GEMMEPI_ROUTE_LT), "small %d by %s",
                  small, p.details.route_name);
        planned_end(&p);
    }
    for (sums = 0; sums < 2; sums++) { /* tiles for three multiprocessors of four, and a k to divide */
        planned p = planned_begin(0, 0);
        p.desc.epilogue = sums ? GEMMEPI_BGRAD_B : GEMMEPI_NONE;
        p.args.bias = NULL, p.args.bias_grad = sums ? (void *)(uintptr_t)0x50000000 : NULL;
        p.desc.m = 768, p.desc.n = 3072, p.desc.k = 8192, p.desc.a.transposed = 1;
        if (planned_plan(&p))
            CHECK(p.details.route == (sums ? GEMMEPI_ROUTE_FUSED : GEMMEPI_ROUTE_LT), "sums %d by %s", sums,
                  p.details.route_name);
        planned_end(&p);
    }
    for (layout = 0; layout < 4; layout++)
        of_layout[layout] =
            estimates_of(GEMMEPI_F32, GEMMEPI_COMPUTE_TF32, GEMMEPI_SILU, layout, 2048, 2048).split;
    CHECK(of_layout[2] < of_layout[0] && of_layout[0] == of_layout[3] && of_layout[0] < of_layout[1],
          "%g %g %g %g", of_layout[0], of_layout[1], of_layout[2], of_layout[3]);
    whole = estimates_of(GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SILU, 2, 2048, 2048).split;
    odd = estimates_of(GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SILU, 2, 2048, 2044).split;
    CHECK(odd > 2 * whole, "%g, with lines of 2044 %g", whole, odd);
    without = estimates_of(GEMMEPI_F32, GEMMEPI_COMPUTE_F32, drelu, 0, 128, 128).lt;
    with = estimates_of(GEMMEPI_F32, GEMMEPI_COMPUTE_F32, drelu | GEMMEPI_BGRAD, 0, 128, 128).lt;
    CHECK(without > 0 && with > without + 6, "%g, with the sums %g", without, with);
}

static void what_fused_does_not_take_says_why(void) {
    static const char *const rules[] = {"not fused: a and b are not both BF16, both F16 or both F32",
                                        "not fused: k is 0",
                                        "gemmepi_pack: a to workspace, lines of whole 16 bytes",
                                        "gemmepi_pack: b to workspace",
                                        "not fused: config.routes leaves it out",
                                        "not gemmepi_sm90: TMA takes the second half of b",
                                        "not gemmepi_sm90: TMA takes a and b at multiples"};
    int i;
    for (i = 0; i < (int)GEMMEPI__COUNT(rules); i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context;
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_plan *plan = NULL;
        if (i == 4)
            config.routes = NOT_FUSED;
        if (i == 5)
            desc.epilogue |= GEMMEPI_GATED, desc.n = 1016; /* halves of 508 columns */
        if (i == 5)
            config.routes = 1u << GEMMEPI_ROUTE_FUSED;
        if (i == 6)
            desc.batch = 2, desc.a.batch_stride = (int64_t)1 << 39, desc.d.batch_stride = desc.m * desc.n;
        context = open_fake(&config);
        if (i == 0)
            desc.b.dtype = GEMMEPI_F16;
        else if (i == 1)
            desc.k = 0;
        else if (i == 2)
            desc.a.ld = desc.k + 1;
        else if (i == 3)
            desc.alignment = 8;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(explain_has(plan, rules[i]), "%d: another rule", i);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void what_fused_cannot_have_is_an_error(void) {
    static const char *const functions[] = {"cuTensorMapEncodeTiled", "cuFuncSetAttribute",
                                            "cuTensorMapReplaceAddress", "cuLaunchKernelEx"};
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(functions); i++) {
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
    break_function("cublasLtMatmul", GEMMEPI__CUBLAS_STATUS_EXECUTION_FAILED);
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

static gemmepi_route route_of(const gemmepi_plan *plan) {
    gemmepi_plan_details details;
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return details.route;
}

static void a_problem_that_no_route_runs_is_refused_with_the_reasons_of_both(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc descs[2];
    int i;
    descs[0] = lt_product(), descs[1] = split_product();
    gpu.heuristic_answers = 0;
    for (i = 0; i < 2; i++) {
        gemmepi_plan *plan = NULL;
        descs[i].m = descs[i].n = (int64_t)1 << 24; /* 2^36 tiles */
        CHECK(gemmepi_plan_matmul(context, &descs[i], &plan) == GEMMEPI_UNSUPPORTED && !plan, "%s",
              gemmepi_last_error());
        CHECK(sentence_has("lt: ") && sentence_has("split: ") && sentence_has("plain: "), "%s",
              gemmepi_last_error());
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_problem_that_cublaslt_has_no_algorithm_for_is_plain(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    int i;
    for (i = 0; i < 4; i++) {
        gemmepi_matmul_desc desc = i % 2 ? split_product() : lt_product();
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_plan *plan = NULL;
        gpu.heuristic_answers = i >= 2;
        if (i >= 2)
            break_function("cublasLtMatmulAlgoGetHeuristic", GEMMEPI__CUBLAS_STATUS_NOT_SUPPORTED);
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK && plan, "%s", gemmepi_last_error());
        CHECK(route_of(plan) == GEMMEPI_ROUTE_PLAIN, "route %d", (int)route_of(plan));
        CHECK(explain_has(plan, "route plain") && explain_has(plan, "not lt: ") &&
                  explain_has(plan, "not split: cuBLASLt 130100 has no algorithm"),
              "explain does not tell why");
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gemmepi_plan_destroy(plan);
    }
    CHECK(gpu.lt_calls == 0 && gpu.launches == 2 * 1 + 2 * 2, "%ld calls, %ld launches", gpu.lt_calls,
          gpu.launches);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>products that cuBLASLt refuses when they run */

static long warnings;

static void count_warnings(void *user, gemmepi_log_level level, const char *message) {
    (void)user, (void)message;
    if (level == GEMMEPI_LOG_WARNING)
        count(&warnings, 1);
}

static int lines_of(const char *start) {
    const char *line = logged;
    int lines = 0;
    while (line && *line) {
        lines += strncmp(line, start, strlen(start)) == 0;
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return lines;
}

static gemmepi_plan *plan_on(gemmepi_context *context, const gemmepi_matmul_desc *desc, gemmepi_route route) {
    gemmepi_plan *plan = NULL;
    CHECK(gemmepi_plan_matmul(context, desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(route_of(plan) == route, "route %d", (int)route_of(plan));
    CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return plan;
}

static void a_product_that_cublaslt_refuses_when_run_takes_the_next_route_for_good(void) {
    static const int refusals[] = {GEMMEPI__CUBLAS_STATUS_NOT_SUPPORTED, GEMMEPI__CUBLAS_STATUS_INVALID_VALUE,
                                   GEMMEPI__CUBLAS_STATUS_ARCH_MISMATCH,
                                   GEMMEPI__CUBLAS_STATUS_INTERNAL_ERROR};
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(refusals); i++) {
        gemmepi_config config = fake_config();
        gemmepi_matmul_desc desc = refusable_product();
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_context *context;
        gemmepi_plan *plan;
        long heuristics;
        config.log = keep_log;
        context = open_fake(&config);
        plan = plan_on(context, &desc, GEMMEPI_ROUTE_LT);
        gpu.refusals = 1;
        gpu.refusal = refusals[i];
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", refusals[i],
              gemmepi_last_error());
        CHECK(gpu.lt_calls == 2 && gpu.products == 1, "%d: %ld calls", refusals[i], gpu.lt_calls);
        CHECK(route_of(plan) == GEMMEPI_ROUTE_SPLIT, "%d: route %d", refusals[i], (int)route_of(plan));
        CHECK(explain_has(plan, "route split") && explain_has(plan, "not lt: cublasLtMatmul refused"),
              "%d: explain does not tell why", refusals[i]);
        CHECK(lines_of("2 ") == 1 && strstr(logged, "takes another route") &&
                  strstr(logged, "cublasLtMatmul refused"),
              "%d: the log has: %s", refusals[i], logged);
        heuristics = gpu.heuristics;
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", refusals[i],
              gemmepi_last_error());
        CHECK(gpu.lt_calls == 3 && gpu.products == 2, "%d: it was tried again, %ld calls", refusals[i],
              gpu.lt_calls);
        CHECK(gpu.heuristics == heuristics && lines_of("2 ") == 1, "%d: planned again", refusals[i]);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* Asked for the same product with the same epilogue, cuBLASLt would refuse once more. */
static void a_refused_epilogue_is_left_to_a_pass(void) {
    gemmepi_matmul_desc descs[3];
    int i;
    descs[0] = refusable_product(), descs[1] = lt_product(), descs[2] = lt_product();
    descs[2].epilogue = GEMMEPI_BGRAD_B;
    for (i = 0; i < 3; i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context;
        gemmepi_matmul_args args = args_for(&descs[i]);
        gemmepi_plan *plan;
        int run;
        args.bias_grad = i == 2 ? memory[5] : NULL;
        config.log = keep_log;
        context = open_fake(&config);
        plan = plan_on(context, &descs[i], GEMMEPI_ROUTE_LT);
        gpu.refuses_epilogues = 1;
        for (run = 1; run <= 2; run++) {
            CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(gpu.products == run && gpu.lt_calls == run + 1, "problem %d: %ld products of %ld calls", i,
                  gpu.products, gpu.lt_calls);
            CHECK(gpu.launches >= run, "problem %d: the epilogue was not run", i);
        }
        CHECK(route_of(plan) == GEMMEPI_ROUTE_SPLIT, "problem %d: route %d", i, (int)route_of(plan));
        CHECK(lines_of("2 ") == 1, "problem %d: the log has: %s", i, logged);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* The product of a split plan may carry cuBLASLt's epilogue: refused with it, it is tried without, and our kernel
   comes after that alone. */
static void a_split_product_refused_with_its_epilogue_goes_bare_before_it_becomes_plain(void) {
    static const int whole[] = {GEMMEPI__CUBLASLT_EPILOGUE_BIAS, GEMMEPI__CUBLASLT_EPILOGUE_RELU};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_BIAS | GEMMEPI_BGRAD_A,
                                                 GEMMEPI_RELU | GEMMEPI_BGRAD_B};
    int i, refused, run, call;
    for (i = 0; i < 2 * 2; i++) {
        gemmepi_config config = fake_config();
        gemmepi_matmul_desc desc = product(GEMMEPI_F32, epilogues[i / 2]);
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_context *context;
        gemmepi_plan *plan;
        gemmepi_plan_details before, after;
        gemmepi_route route = i % 2 ? GEMMEPI_ROUTE_PLAIN : GEMMEPI_ROUTE_SPLIT;
        refused = 1 + i % 2; /* the product with its epilogue, then also the bare one */
        args.bias_grad = memory[5];
        config.log = keep_log;
        context = open_fake(&config);
        plan = plan_on(context, &desc, GEMMEPI_ROUTE_SPLIT);
        CHECK(gemmepi_plan_info(plan, &before) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gpu.refusals = refused;
        for (run = 1; run <= 2; run++) {
            long calls = route == GEMMEPI_ROUTE_SPLIT ? run + 1 : 2, launches = gpu.launches;
            CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
            CHECK(gpu.lt_calls == calls && gpu.products == calls - refused, "%d: %ld products of %ld calls",
                  i, gpu.products, gpu.lt_calls);
            CHECK(gpu.epilogues[0] == whole[i / 2], "%d: epilogue %d", i, gpu.epilogues[0]);
            for (call = 1; call < gpu.lt_calls && call < (int)GEMMEPI__COUNT(gpu.epilogues); call++)
                CHECK(gpu.epilogues[call] == GEMMEPI__CUBLASLT_EPILOGUE_DEFAULT, "%d: call %d: epilogue %d",
                      i, call, gpu.epilogues[call]);
            CHECK(route_of(plan) == route, "%d: route %d", i, (int)route_of(plan));
            CHECK(gemmepi_plan_info(plan, &after) == GEMMEPI_OK, "%s", gemmepi_last_error());
            launches = gpu.launches - launches;
            CHECK(after.launches == before.launches + (route == GEMMEPI_ROUTE_SPLIT) &&
                      launches == after.launches - (route == GEMMEPI_ROUTE_SPLIT),
                  "%d: %ld kernels, %d launches and before %d", i, launches, after.launches, before.launches);
        }
        CHECK(explain_has(plan, i % 2 ? "not split: cublasLtMatmul refused" : "route split"),
              "%d: explain does not tell", i);
        CHECK(explain_has(plan, "not lt: cuBLASLt has no such epilogue"), "%d: explain forgot why not lt", i);
        CHECK(lines_of("2 ") == refused, "%d: the log has: %s", i, logged);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* alpha 1 and no C are compiled in; runs with others have a plan of their own, which is built once. */
static void a_fused_run_with_alpha_or_c_has_its_own_kernel(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    double two = 2;
    gemmepi_plan *plan = NULL;
    int run;
    config.log = keep_log;
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.compilations == 1 && gpu.for_sm_90a == 1 &&
              explain_has(plan, "runs with alpha or C have a kernel of their own"),
          "%ld kernels", gpu.compilations);
    for (run = 0; run < 5; run++) {
        args.alpha = run % 2 ? &two : NULL;
        args.beta = run == 4 ? &two : NULL;
        args.c = run == 4 ? (const void *)(uintptr_t)0x60000000 : NULL;
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", run, gemmepi_last_error());
        CHECK(gpu.last_fused.epilogue.alpha == (run % 2 ? 2 : 1) &&
                  gpu.last_fused.epilogue.uses_c == (run == 4),
              "%d: alpha %g", run, gpu.last_fused.epilogue.alpha);
        CHECK(gpu.compilations == (run > 0 ? 2 : 1), "%d: %ld kernels", run, gpu.compilations);
    }
    CHECK(lines_of("2 ") == 0, "the log has: %s", logged);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* GELU_ERF's shortest form is for those alone whose bound leaves it the room. */
static void long_sums_are_those_of_which_the_bound_grows_with_k(void) {
    static const struct {
        int64_t k;
        gemmepi_dtype operands, results;
        gemmepi_epilogue epilogue;
        uint64_t flags;
        int is_long;
    } cases[] = {
        {768, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 0, 1},
        {767, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 0, 0},
        {4096, GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_GELU_ERF | GEMMEPI_GATED, 0, 1},
        {4096, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_GELU_TANH | GEMMEPI_BIAS, 0, 0},
        {4096, GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 0, 0},
        {4096, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD, 0, 0},
        {4096, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_GELU_ERF | GEMMEPI_RESIDUAL, 0, 0},
        {4096, GEMMEPI_BF16, GEMMEPI_BF16, GEMMEPI_GELU_ERF, GEMMEPI_AMAX_D, 0},
        {4096, GEMMEPI_I8, GEMMEPI_BF16, GEMMEPI_GELU_ERF, 0, 0},
    };
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    int i;
    for (i = 0; i < (int)GEMMEPI__COUNT(cases); i++) {
        gemmepi_matmul_desc desc = product(cases[i].operands, cases[i].epilogue);
        gemmepi_plan *plan = NULL;
        int is_long;
        desc.m = 256, desc.n = 256, desc.k = cases[i].k;
        desc.d.dtype = cases[i].results;
        desc.flags = cases[i].flags;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        is_long = plan && gemmepi__has_long_sums(&matmul_of(plan)->problem);
        CHECK(is_long == cases[i].is_long, "%d: %d", i, is_long);
        gemmepi_plan_destroy(plan);
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

/* With AUX of a gate the kernel for alpha 1 and no C sums A on the way, and the other leaves that to launches of their own, which
   need workspace: the plan counts it before there is such a run, which may be captured then. */
static void the_workspace_of_runs_with_alpha_is_counted_from_the_beginning(void) {
    int with_c, ways;
    for (with_c = 0; with_c < 2; with_c++)
        for (ways = 0; ways < 2; ways++) {
            planned p = planned_begin(0, 1u << GEMMEPI_ROUTE_FUSED);
            const double two = 2;
            long before;
            p.desc.m = 3080, p.desc.n = 6144, p.desc.k = 4096;
            p.desc.a.transposed = 1;
            p.desc.epilogue = GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX | GEMMEPI_BGRAD_A;
            p.args.bias = NULL;
            p.args.aux = (void *)(uintptr_t)0x50000000;
            p.args.bias_grad = (void *)(uintptr_t)0x70000000;
            if (!planned_plan(&p))
                return;
            CHECK(gpu.compilations == 1 && p.details.workspace_size > 0, "%ld kernels, %d bytes",
                  gpu.compilations, (int)p.details.workspace_size);
            if (ways) {
                p.args.workspace_size = p.details.workspace_size;
                CHECK(gemmepi_alloc(p.context, p.details.workspace_size, &p.args.workspace) == GEMMEPI_OK,
                      "%s", gemmepi_last_error());
            } else
                CHECK(gemmepi_plan_prepare(p.plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
            before = gpu.device_allocations;
            if (with_c)
                p.args.beta = &two, p.args.c = (const void *)(uintptr_t)0x60000000;
            else
                p.args.alpha = &two;
            gpu.is_capturing = 1;
            CHECK(gemmepi_run_matmul(p.plan, &p.args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(gpu.device_allocations == before, "%ld allocations", gpu.device_allocations - before);
            CHECK(gpu.launches == 3 && gpu.compilations > 1, "%ld launches", gpu.launches);
            gpu.is_capturing = 0;
            CHECK(gemmepi_plan_info(p.plan, &p.details) == GEMMEPI_OK && p.details.launches == 1,
                  "%d launches", p.details.launches);
            p.args.alpha = p.args.beta = NULL, p.args.c = NULL;
            if (ways) {
                p.args.workspace_size--;
                CHECK(gemmepi_run_matmul(p.plan, &p.args, NULL) == GEMMEPI_BUFFER_TOO_SMALL &&
                          gpu.launches == 3,
                      "one byte less: %s", gemmepi_last_error());
                p.args.workspace_size++;
            }
            CHECK(gemmepi_run_matmul(p.plan, &p.args, NULL) == GEMMEPI_OK && gpu.launches == 4,
                  "%ld launches: %s", gpu.launches, gemmepi_last_error());
            gemmepi_free(p.context, p.args.workspace);
            planned_end(&p);
        }
}

/* What was counted from the beginning is the caller's to give or to reserve, whatever alpha is. */
static void runs_with_alpha_reserve_nothing_themselves(void) {
    static const double two = 2;
    int with_alpha;
    for (with_alpha = 0; with_alpha < 2; with_alpha++) {
        planned p = planned_begin(80, 0);
        long before;
        p.desc.m = p.desc.n = 128, p.desc.k = 8192; /* in parts */
        p.desc.epilogue = GEMMEPI_SILU;
        p.args.bias = NULL;
        p.args.alpha = with_alpha ? &two : NULL;
        if (planned_plan(&p)) {
            CHECK(p.details.route == GEMMEPI_ROUTE_FUSED && p.details.workspace_size > 256, "%s, %d bytes",
                  p.details.route_name, (int)p.details.workspace_size);
            before = gpu.device_allocations;
            CHECK(gemmepi_run_matmul(p.plan, &p.args, NULL) == GEMMEPI_BUFFER_TOO_SMALL &&
                      sentence_has("gemmepi_plan_prepare"),
                  "alpha %d, not prepared: %s", 1 + with_alpha, gemmepi_last_error());
            p.args.workspace = (void *)(uintptr_t)0x50000000;
            p.args.workspace_size = 256;
            CHECK(gemmepi_run_matmul(p.plan, &p.args, NULL) == GEMMEPI_BUFFER_TOO_SMALL &&
                      sentence_has("args.workspace_size is 256"),
                  "alpha %d, too little given: %s", 1 + with_alpha, gemmepi_last_error());
            CHECK(gpu.device_allocations == before && gpu.launches == 0,
                  "alpha %d: %ld allocations, %ld launches", 1 + with_alpha, gpu.device_allocations - before,
                  gpu.launches);
            p.args.workspace = NULL, p.args.workspace_size = 0;
            planned_run(&p);
        }
        planned_end(&p);
    }
}

/* A product in parts is written there before the pass reads alpha and beta. */
static void scalars_on_the_device_do_not_lie_in_the_workspace(void) {
    int which;
    for (which = 0; which < 3; which++) {
        planned p = planned_begin(80, 0);
        p.desc.m = p.desc.n = 128, p.desc.k = 8192;
        p.desc.epilogue = GEMMEPI_SILU;
        p.desc.flags = GEMMEPI_DEVICE_SCALARS;
        p.args.bias = NULL;
        if (planned_plan(&p)) {
            char *workspace = (char *)(uintptr_t)0x50000000, *end = workspace + p.details.workspace_size;
            p.args.workspace = workspace;
            p.args.workspace_size = p.details.workspace_size;
            p.args.c = (const void *)(uintptr_t)0x60000000;
            p.args.alpha = (const double *)(void *)(which == 0 ? end - 8 : end);
            p.args.beta = (const double *)(void *)(which == 1 ? workspace : end);
            CHECK(p.details.route == GEMMEPI_ROUTE_FUSED && p.details.workspace_size > 256, "%s, %d bytes",
                  p.details.route_name, (int)p.details.workspace_size);
            CHECK(gemmepi_run_matmul(p.plan, &p.args, NULL) ==
                          (which < 2 ? GEMMEPI_INVALID_ARGUMENT : GEMMEPI_OK) &&
                      (which == 2 || sentence_has(which ? "args.beta" : "args.alpha")),
                  "%d: %s", which, gemmepi_last_error());
            CHECK(gpu.launches == (which < 2 ? 0 : p.details.launches), "%ld launches", gpu.launches);
        }
        planned_end(&p);
    }
}

/* What is made ahead of its runs has both kernels: a list's product, and a gradient that is added to another. */
static void kernels_for_alpha_and_c_are_built_ahead(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    gemmepi_any_desc problem;
    gemmepi_linear_desc layer;
    gemmepi_linear_args run;
    gemmepi_plan *backward = NULL;
    double two = 2;
    long kernels;
    config.routes = 1u << GEMMEPI_ROUTE_FUSED;
    context = open_fake(&config);
    memset(&problem, 0, sizeof problem);
    problem.matmul = &desc;
    CHECK(gemmepi_precompile(context, &problem, 1, 1, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    kernels = gpu.compilations;
    args.alpha = &two;
    CHECK(kernels == 2 && gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK &&
              gpu.compilations == kernels,
          "%ld kernels, then %ld: %s", kernels, gpu.compilations, gemmepi_last_error());
    memset(&layer, 0, sizeof layer);
    memset(&run, 0, sizeof run);
    layer.m = 2048, layer.n = 1024, layer.k = 512, layer.batch = 1;
    layer.a.dtype = GEMMEPI_BF16;
    layer.flags = GEMMEPI_LINEAR_DB | GEMMEPI_ACCUMULATE_DB;
    CHECK(gemmepi_plan_linear_backward(context, &layer, &backward) == GEMMEPI_OK, "%s", gemmepi_last_error());
    kernels = gpu.compilations;
    run.a = args.a, run.dy = args.b, run.db = args.d;
    CHECK(gemmepi_run_linear_backward(backward, &run, NULL) == GEMMEPI_OK && gpu.compilations == kernels &&
              gpu.last_fused.epilogue.uses_c,
          "%ld kernels more: %s", gpu.compilations - kernels, gemmepi_last_error());
    gemmepi_plan_destroy(backward);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* By what comes then, in the first run already: its alpha and its C, too. */
static void what_cublaslt_refuses_may_be_fused(void) {
    int i;
    for (i = 0; i < 3; i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = refusable_product();
        gemmepi_matmul_args args = fused_args();
        const gemmepi__epilogue_params *ran = &gpu.last_fused.epilogue;
        gemmepi_plan *plan;
        double two = 2;
        int run;
        desc.m = desc.n = 4096, desc.k = 2048; /* enough for cuBLASLt to be estimated no slower */
        args.bias = NULL;
        plan = plan_on(context, &desc, GEMMEPI_ROUTE_LT);
        if (i > 0)
            args.alpha = &two;
        if (i > 1)
            args.beta = &two, args.c = args.d;
        CHECK(explain_has(plan, "not fused: its estimate is not less") &&
                  explain_has(plan, "estimates: fused "),
              "no estimates");
        gpu.refusals = -1;
        for (run = 1; run < 3; run++) {
            CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(route_of(plan) == GEMMEPI_ROUTE_FUSED && gpu.launches == run && gpu.lt_calls == 1,
                  "route %d", (int)route_of(plan));
            CHECK(ran->alpha == (i ? 2 : 1) && ran->uses_c == (i > 1), "%d: alpha %g, %s C", i, ran->alpha,
                  ran->uses_c ? "with" : "without");
        }
        CHECK(explain_has(plan, "not lt: cublasLtMatmul refused"), "explain does not tell why not lt");
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* A library that is not there leaves the routes that do without it. */
static void a_missing_library_leaves_the_other_routes(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_plan *plan = NULL;
    desc.epilogue = GEMMEPI_RELU; /* lt has it, too */
    gpu.missing = "nvrtc";
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK && route_of(plan) == GEMMEPI_ROUTE_LT,
          "without NVRTC: %s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
    config = config_with_all_routes();
    gpu.missing = "cublasLt";
    context = open_fake(&config);
    desc.epilogue = GEMMEPI_NONE; /* lt would be taken */
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK && route_of(plan) == GEMMEPI_ROUTE_FUSED,
          "without cuBLASLt: %s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_problem_of_which_every_product_is_refused_becomes_plain(void) {
    gemmepi_matmul_desc descs[2];
    int i, run;
    descs[0] = refusable_product(), descs[1] = split_product();
    for (i = 0; i < 2; i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context;
        gemmepi_matmul_args args = args_for(&descs[i]);
        gemmepi_plan *plan;
        gemmepi_plan_details details;
        int refused = 2 - i; /* lt and split, or split alone */
        config.log = keep_log;
        context = open_fake(&config);
        plan = plan_on(context, &descs[i], i ? GEMMEPI_ROUTE_SPLIT : GEMMEPI_ROUTE_LT);
        gpu.refusals = -1;
        for (run = 1; run <= 2; run++) {
            CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(gpu.lt_calls == refused && gpu.products == 0, "%ld calls", gpu.lt_calls);
            CHECK(gpu.launches == run * (1 + i), "%ld launches", gpu.launches);
        }
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.route == GEMMEPI_ROUTE_PLAIN &&
                  strcmp(details.route_name, "plain") == 0 && is_kernel(&details, "gemmepi_plain_"),
              "route %s, kernel %s", details.route_name, details.kernel);
        CHECK(explain_has(plan, "route plain") && explain_has(plan, "not split: cublasLtMatmul refused"),
              "explain does not tell why not split");
        CHECK(
            explain_has(plan, i ? "not lt: cuBLASLt has no such epilogue" : "not lt: cublasLtMatmul refused"),
            "explain does not tell why not lt");
        CHECK(lines_of("2 ") == refused, "the log has: %s", logged);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void one_shot_calls_keep_the_route_that_was_found(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = refusable_product();
    gemmepi_matmul_args args = args_for(&desc);
    long heuristics;
    int i;
    config.log = keep_log;
    context = open_fake(&config);
    gpu.refusals = 1;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    heuristics = gpu.heuristics;
    for (i = 0; i < 3; i++)
        CHECK(gemmepi_matmul(context, &desc, &args, (gemmepi_stream)(uintptr_t)0x5000) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
    CHECK(gpu.lt_calls == 5 && gpu.products == 4, "%ld calls", gpu.lt_calls);
    CHECK(gpu.heuristics == heuristics && lines_of("2 ") == 1, "the log has: %s", logged);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Inside, a column-major product has them exchanged. */
static void the_warning_gives_the_callers_m_and_n(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = refusable_product();
    gemmepi_matmul_args args = args_for(&desc);
    desc.order = GEMMEPI_COLUMN_MAJOR;
    desc.n = EDGE / 2;
    config.log = keep_log;
    context = open_fake(&config);
    gpu.refusals = 1;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strstr(logged, "m 64, n 32, k 64 takes another route"), "the log has: %s", logged);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_product_that_fails_while_it_runs_is_not_tried_by_another_route(void) {
    static const struct {
        int code;
        gemmepi_status status;
    } rows[] = {
        {GEMMEPI__CUBLAS_STATUS_EXECUTION_FAILED, GEMMEPI_CUBLAS_ERROR},
        {GEMMEPI__CUBLAS_STATUS_NOT_INITIALIZED, GEMMEPI_CUBLAS_ERROR},
        {GEMMEPI__CUBLAS_STATUS_ALLOC_FAILED, GEMMEPI_OUT_OF_MEMORY},
    };
    size_t i;
    int split;
    for (i = 0; i < GEMMEPI__COUNT(rows); i++)
        for (split = 0; split < 2; split++) {
            gemmepi_config config = fake_config();
            gemmepi_matmul_desc desc = split ? split_product() : refusable_product();
            gemmepi_route route = split ? GEMMEPI_ROUTE_SPLIT : GEMMEPI_ROUTE_LT;
            gemmepi_matmul_args args = args_for(&desc);
            gemmepi_context *context;
            gemmepi_plan *plan;
            config.log = keep_log;
            context = open_fake(&config);
            plan = plan_on(context, &desc, route);
            break_function("cublasLtMatmul", rows[i].code);
            CHECK(gemmepi_run_matmul(plan, &args, NULL) == rows[i].status, "%d: %s", rows[i].code,
                  gemmepi_last_error());
            CHECK(gpu.lt_calls == 1 && gpu.launches == 0, "%d: %ld calls, %ld launches", rows[i].code,
                  gpu.lt_calls, gpu.launches);
            CHECK(route_of(plan) == route && lines_of("2 ") == 0, "%d: the log has: %s", rows[i].code,
                  logged);
            gemmepi_plan_destroy(plan);
            gemmepi_destroy(context);
            nothing_is_left();
        }
}

static int lies_in(const void *pointer, const void *block, size_t size) {
    uintptr_t at = (uintptr_t)pointer, start = (uintptr_t)block;
    return at >= start && at < start + size;
}

static void another_route_takes_the_callers_workspace_where_it_is_large_enough_else_the_contexts(void) {
    static const size_t sizes[] = {LT_WORKSPACE, SPLIT_WORKSPACE - 1, SPLIT_WORKSPACE};
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(sizes); i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = refusable_product();
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_plan_details details;
        gemmepi_plan *plan = NULL;
        int fits = sizes[i] >= SPLIT_WORKSPACE, run;
        long before;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.workspace_size == LT_WORKSPACE,
              "%d bytes", (int)details.workspace_size);
        CHECK(gemmepi_alloc(context, sizes[i], &args.workspace) == GEMMEPI_OK, "%s", gemmepi_last_error());
        args.workspace_size = sizes[i];
        before = gpu.device_allocations;
        gpu.refuses_epilogues = 1;
        for (run = 0; run < 2; run++) {
            CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(lies_in(gpu.last_workspace, args.workspace, sizes[i]) == fits, "%d bytes: it ran elsewhere",
                  (int)sizes[i]);
            CHECK(gpu.device_allocations == before + !fits, "%d bytes: %ld allocations", (int)sizes[i],
                  gpu.device_allocations - before);
        }
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.workspace_size == SPLIT_WORKSPACE,
              "%d bytes", (int)details.workspace_size);
        gemmepi_free(context, args.workspace);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void another_route_reserves_the_workspace_that_was_not_prepared(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = refusable_product();
    gemmepi_matmul_args args = args_for(&desc);
    gemmepi_plan *plan = plan_on(context, &desc, GEMMEPI_ROUTE_LT);
    long before = gpu.device_allocations;
    gpu.refuses_epilogues = 1;
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.device_allocations == before + 1, "%ld allocations", gpu.device_allocations - before);
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK && gpu.device_allocations == before + 1,
          "reserved again: %s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK && gpu.device_allocations == before + 1,
          "what is there is enough: %s", gemmepi_last_error());
    break_function("cuMemAlloc_v2", GEMMEPI__CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(gemmepi_run_matmul(plan, &args, (gemmepi_stream)(uintptr_t)0x5000) == GEMMEPI_OUT_OF_MEMORY, "%s",
          gemmepi_last_error());
    gpu.fails = NULL;
    CHECK(gemmepi_run_matmul(plan, &args, (gemmepi_stream)(uintptr_t)0x5000) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void another_route_reserves_nothing_while_capturing(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = refusable_product();
    gemmepi_matmul_args args = args_for(&desc), with_its_own = args;
    gemmepi_plan *plan = plan_on(context, &desc, GEMMEPI_ROUTE_LT);
    long before;
    CHECK(gemmepi_alloc(context, SPLIT_WORKSPACE, &with_its_own.workspace) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    with_its_own.workspace_size = LT_WORKSPACE;
    before = gpu.device_allocations;
    gpu.refuses_epilogues = gpu.is_capturing = 1;
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_BUFFER_TOO_SMALL && sentence_has("captured"), "%s",
          gemmepi_last_error());
    CHECK(gemmepi_run_matmul(plan, &with_its_own, NULL) == GEMMEPI_BUFFER_TOO_SMALL, "%s",
          gemmepi_last_error());
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_BUFFER_TOO_SMALL, "%s",
          gemmepi_last_error());
    CHECK(gpu.device_allocations == before && gpu.products == 0 && gpu.launches == 0, "%ld products",
          gpu.products);
    with_its_own.workspace_size = SPLIT_WORKSPACE;
    CHECK(gemmepi_run_matmul(plan, &with_its_own, NULL) == GEMMEPI_OK, "with enough of the caller's: %s",
          gemmepi_last_error());
    gpu.is_capturing = 0;
    CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gpu.is_capturing = 1;
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "prepared anew: %s", gemmepi_last_error());
    gpu.is_capturing = 0;
    gemmepi_free(context, with_its_own.workspace);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* A layer whose dA is a product that cuBLASLt takes and whose dB, with the sums that are dbias, is one that it refuses when run. */
typedef struct refusable_layer {
    gemmepi_context *context;
    gemmepi_plan *plan;
    gemmepi_linear_args args;
    size_t built; /* its workspace, before */
} refusable_layer;

static size_t workspace_of(const gemmepi_plan *layer) {
    gemmepi_plan_details details;
    CHECK(gemmepi_plan_info(layer, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return details.workspace_size;
}

static void open_refusable_layer(refusable_layer *l) {
    gemmepi_config config = fake_config();
    gemmepi_linear_desc desc;
    memset(l, 0, sizeof *l);
    memset(&desc, 0, sizeof desc);
    l->context = open_fake(&config);
    desc.m = desc.n = desc.k = EDGE;
    desc.batch = 1;
    desc.a.dtype = GEMMEPI_BF16;
    desc.flags = GEMMEPI_LINEAR_DA | GEMMEPI_ACCUMULATE_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS;
    CHECK(gemmepi_plan_linear_backward(l->context, &desc, &l->plan) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    l->args.a = memory[0], l->args.b = memory[1], l->args.dy = memory[2];
    l->args.da = memory[3], l->args.db = memory[4], l->args.dbias = memory[5];
    l->built = workspace_of(l->plan);
    gpu.refuses_epilogues = 1;
}

static void close_refusable_layer(refusable_layer *l) {
    gemmepi_plan_destroy(l->plan);
    gemmepi_destroy(l->context);
    nothing_is_left();
}

static void a_layer_whose_product_takes_another_route_is_prepared_for_it(void) {
    gemmepi_stream others[2] = {(gemmepi_stream)(uintptr_t)0x5000, (gemmepi_stream)(uintptr_t)0x6000};
    refusable_layer l;
    char text[4096], bytes[64];
    size_t now;
    long products;
    int run;
    open_refusable_layer(&l);
    CHECK(gemmepi_plan_prepare(l.plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (run = 0; run < 2; run++)
        CHECK(gemmepi_run_linear_backward(l.plan, &l.args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    now = workspace_of(l.plan);
    CHECK(now > l.built, "%d bytes, and before %d", (int)now, (int)l.built);
    gemmepi_plan_explain(l.plan, text, sizeof text);
    snprintf(bytes, sizeof bytes, "workspace %d bytes", (int)now);
    CHECK(strstr(text, bytes), "explain has not %s: %s", bytes, text);
    CHECK(gemmepi_plan_prepare(l.plan, others[0]) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gpu.is_capturing = 1;
    CHECK(gemmepi_run_linear_backward(l.plan, &l.args, others[0]) == GEMMEPI_OK, "prepared: %s",
          gemmepi_last_error());
    products = gpu.products;
    CHECK(gemmepi_run_linear_backward(l.plan, &l.args, others[1]) == GEMMEPI_BUFFER_TOO_SMALL &&
              sentence_has("captured") && gpu.products == products,
          "%ld products, not prepared: %s", gpu.products - products, gemmepi_last_error());
    close_refusable_layer(&l);
}

static void a_layer_whose_product_takes_another_route_has_all_of_the_callers_workspace(void) {
    gemmepi_stream other = (gemmepi_stream)(uintptr_t)0x5000;
    const size_t plenty = 1 << 20;
    refusable_layer l;
    void *workspace = NULL;
    long allocations_before, products;
    size_t now;
    open_refusable_layer(&l);
    CHECK(gemmepi_alloc(l.context, plenty, &workspace) == GEMMEPI_OK, "%s", gemmepi_last_error());
    allocations_before = gpu.device_allocations;
    l.args.workspace = workspace;
    l.args.workspace_size = plenty;
    gpu.is_capturing = 1;
    CHECK(gemmepi_run_linear_backward(l.plan, &l.args, NULL) == GEMMEPI_OK, "refused in this run: %s",
          gemmepi_last_error());
    CHECK(lies_in(gpu.last_workspace, workspace, plenty), "it ran elsewhere");
    now = workspace_of(l.plan);
    l.args.workspace_size = now;
    CHECK(now > l.built && gemmepi_run_linear_backward(l.plan, &l.args, NULL) == GEMMEPI_OK &&
              lies_in(gpu.last_workspace, workspace, now),
          "with %d bytes: %s", (int)now, gemmepi_last_error());
    products = gpu.products;
    l.args.workspace_size = now - 1;
    CHECK(gemmepi_run_linear_backward(l.plan, &l.args, other) == GEMMEPI_BUFFER_TOO_SMALL &&
              gpu.products == products,
          "%ld products with one byte less: %s", gpu.products - products, gemmepi_last_error());
    CHECK(gpu.device_allocations == allocations_before, "%ld allocations",
          gpu.device_allocations - allocations_before);
    gpu.is_capturing = 0;
    l.args.workspace_size = l.built; /* what a caller knows from before: the context's is taken */
    CHECK(gemmepi_run_linear_backward(l.plan, &l.args, other) == GEMMEPI_OK &&
              gpu.device_allocations == allocations_before + 1 &&
              !lies_in(gpu.last_workspace, workspace, plenty),
          "%ld allocations: %s", gpu.device_allocations - allocations_before, gemmepi_last_error());
    l.args.workspace_size = plenty;
    l.args.da = (char *)workspace + plenty / 2;
    products = gpu.products;
    CHECK(gemmepi_run_linear_backward(l.plan, &l.args, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("workspace") && gpu.products == products,
          "a tensor in it: %s", gemmepi_last_error());
    l.args.workspace_size = ~(size_t)0; /* as much as is wanted */
    CHECK(gemmepi_run_linear_backward(l.plan, &l.args, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("workspace") && gpu.products == products,
          "a tensor in it, of any size: %s", gemmepi_last_error());
    gemmepi_free(l.context, workspace);
    close_refusable_layer(&l);
}

/* Nor may asking for it go on without end. */
static void another_route_that_cannot_be_built_is_an_error_until_it_can(void) {
    static const gemmepi_status statuses[] = {GEMMEPI_LIBRARY_NOT_FOUND, GEMMEPI_COMPILE_ERROR,
                                              GEMMEPI_UNSUPPORTED};
    int i;
    for (i = 0; i < 3; i++) {
        gemmepi_config config = fake_config();
        gemmepi_matmul_desc desc = refusable_product();
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_context *context;
        gemmepi_plan *plan;
        gemmepi_status status;
        config.log = count_warnings;
        warnings = 0;
        context = open_fake(&config);
        plan = plan_on(context, &desc, GEMMEPI_ROUTE_LT);
        gpu.refuses_epilogues = 1;
        gpu.missing = i == 0 ? "nvrtc" : NULL;
        if (i == 1)
            break_function("nvrtcCompileProgram", GEMMEPI__NVRTC_ERROR_COMPILATION);
        gpu.archs_are_newer = i == 2;
        status = gemmepi_run_matmul(plan, &args, NULL);
        CHECK(status == statuses[i], "%s: %s", gemmepi_status_name(status), gemmepi_last_error());
        CHECK(gpu.products == 0 && gpu.launches == 0 && gpu.archs_told < 10, "asked %ld times",
              gpu.archs_told);
        CHECK(warnings == 0 && route_of(plan) == GEMMEPI_ROUTE_LT, "%ld warnings", warnings);
        gpu.missing = gpu.fails = NULL;
        gpu.archs_are_newer = 0;
        gpu.archs_told = 0;
        CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(warnings == 1 && route_of(plan) == GEMMEPI_ROUTE_SPLIT, "%ld warnings", warnings);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static gemmepi_status program_with_refusals(const gemmepi_config *config) {
    gemmepi_matmul_desc desc = refusable_product();
    gemmepi_matmul_args args = args_for(&desc);
    gemmepi_context *context = NULL;
    gemmepi_status status = gemmepi_create(config, &context);
    int i;
    for (i = 0; i < 2 && !status; i++)
        status = gemmepi_matmul(context, &desc, &args, NULL);
    gemmepi_destroy(context);
    return status;
}

static void host_memory_may_run_out_while_another_route_is_taken(void) {
    gemmepi_config config = fake_config();
    long k, total, refused = 0;
    int refusals;
    config.device = GEMMEPI_DEVICE(0);
    for (refusals = -1; refusals <= 1; refusals += 2) {
        fake_config();
        gpu.refusals = refusals;
        CHECK(program_with_refusals(&config) == GEMMEPI_OK, "%s", gemmepi_last_error());
        total = allocations;
        for (k = 1; k <= total + 5; k++) {
            gemmepi_status status;
            fake_config();
            gpu.refusals = refusals;
            fails_at = k;
            status = program_with_refusals(&config);
            CHECK(status == GEMMEPI_OUT_OF_MEMORY || status == GEMMEPI_OK,
                  "allocation %ld of %ld gives %s: %s", k, total, gemmepi_status_name(status),
                  gemmepi_last_error());
            refused += status != GEMMEPI_OK;
            nothing_is_left();
        }
    }
    CHECK(refused >= 10, "only %ld allocations matter", refused);
}

/* >>workspace and capture */

static void a_run_after_prepare_allocates_nothing_and_has_workspace(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc descs[2];
    int i, run;
    descs[0] = lt_product(), descs[1] = split_product();
    for (i = 0; i < 2; i++) {
        gemmepi_matmul_args args = args_for(&descs[i]);
        gemmepi_plan *plan = NULL;
        gemmepi_plan_details details;
        long before_host, before_device;
        CHECK(gemmepi_plan_matmul(context, &descs[i], &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.workspace_size >= 4096, "%d bytes",
              (int)details.workspace_size);
        before_host = allocations, before_device = gpu.device_allocations;
        gpu.is_capturing = 1; /* so it may be captured */
        for (run = 0; run < 3; run++) {
            gpu.last_workspace = NULL;
            CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(gpu.last_workspace && gpu.last_workspace_size == 4096, "no workspace");
        }
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "what is there is enough: %s",
              gemmepi_last_error());
        gpu.is_capturing = 0;
        CHECK(allocations == before_host, "%ld blocks of host memory", allocations - before_host);
        CHECK(gpu.device_allocations == before_device, "%ld of the device's",
              gpu.device_allocations - before_device);
        gemmepi_plan_destroy(plan);
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

static void the_callers_workspace_is_taken(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = lt_product();
    gemmepi_matmul_args args = args_for(&desc);
    void *workspace = NULL;
    long before;
    CHECK(gemmepi_alloc(context, 4096, &workspace) == GEMMEPI_OK, "%s", gemmepi_last_error());
    before = gpu.device_allocations;
    args.workspace = workspace;
    args.workspace_size = 4096;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.last_workspace == workspace, "another was taken");
    args.workspace_size = 4095;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_BUFFER_TOO_SMALL && sentence_has("4096"),
          "%s", gemmepi_last_error());
    CHECK(gpu.device_allocations == before && gpu.products == 1, "%ld products", gpu.products);
    gemmepi_free(context, workspace);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_run_without_prepare_has_no_workspace_and_launches_nothing(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = split_product();
    gemmepi_matmul_args args = args_for(&desc);
    gemmepi_plan *plan = NULL;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_BUFFER_TOO_SMALL, "%s", gemmepi_last_error());
    CHECK(sentence_has("gemmepi_plan_prepare"), "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(plan, (gemmepi_stream)(uintptr_t)0x5000) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_BUFFER_TOO_SMALL, "another stream's was taken");
    CHECK(gpu.products == 0 && gpu.launches == 0, "%ld products, %ld launches", gpu.products, gpu.launches);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_one_shot_call_does_not_allocate_while_capturing(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = lt_product();
    gemmepi_matmul_args args = args_for(&desc);
    gpu.is_capturing = 1;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_BUFFER_TOO_SMALL, "%s",
          gemmepi_last_error());
    CHECK(sentence_has("captured"), "%s", gemmepi_last_error());
    CHECK(gpu.device_allocations == OF_THE_CONTEXT && gpu.products == 0, "%ld allocations",
          gpu.device_allocations);
    gpu.is_capturing = 0;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gpu.is_capturing = 1;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "with workspace from before: %s",
          gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Small ones, and those of 64 MiB and more. */
static void the_blocks_of_growing_problems_are_less_than_four_times_the_largest(void) {
    static const int64_t edges[] = {64, 4096};
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(edges); i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context = open_fake(&config);
        gemmepi_plan_details details;
        size_t before = gpu.device_bytes;
        int step;
        memset(&details, 0, sizeof details);
        for (step = 0; step < 200; step++) {
            gemmepi_matmul_desc desc = split_product();
            gemmepi_plan *plan = NULL;
            desc.m = edges[i], desc.n = edges[i] + 16 * step;
            CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK &&
                      gemmepi_plan_info(plan, &details) == GEMMEPI_OK &&
                      gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK,
                  "%s", gemmepi_last_error());
            gemmepi_plan_destroy(plan);
        }
        CHECK(details.workspace_size >= (size_t)(4 * edges[i] * edges[i]) &&
                  gpu.device_bytes - before < 4 * details.workspace_size,
              "%.1f MiB in all, %.1f the largest", (double)(gpu.device_bytes - before) / (1 << 20),
              (double)details.workspace_size / (1 << 20));
        CHECK(gpu.device_blocks == gpu.device_allocations,
              "a block was freed, which a graph may have captured");
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void a_block_is_as_large_as_it_must_be_where_there_is_no_memory_for_more(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = split_product();
    gemmepi_plan *plans[2] = {NULL, NULL};
    gemmepi_plan_details details;
    int i;
    for (i = 0; i < 2; i++) {
        CHECK(gemmepi_plan_matmul(context, &desc, &plans[i]) == GEMMEPI_OK &&
                  gemmepi_plan_info(plans[i], &details) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        desc.m += 16;
    }
    CHECK(gemmepi_plan_prepare(plans[0], NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gpu.largest_block = details.workspace_size - 1;
    CHECK(gemmepi_plan_prepare(plans[1], NULL) == GEMMEPI_OUT_OF_MEMORY && sentence_has("workspace"), "%s",
          gemmepi_last_error());
    gpu.largest_block++;
    CHECK(gemmepi_plan_prepare(plans[1], NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < 2; i++)
        gemmepi_plan_destroy(plans[i]);
    gemmepi_destroy(context);
    nothing_is_left();
}

typedef struct prepared {
    gemmepi_plan *plan;
    gemmepi_status status;
} prepared;

static void *run_on_this_threads_default_stream(void *user) {
    prepared *run = (prepared *)user;
    gemmepi_matmul_desc desc = split_product();
    gemmepi_matmul_args args = args_for(&desc);
    run->status =
        gemmepi_run_matmul(run->plan, &args, (gemmepi_stream)(uintptr_t)GEMMEPI__CU_STREAM_PER_THREAD);
    return NULL;
}

static void default_streams_that_are_one_share_a_workspace_and_others_do_not(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = split_product();
    gemmepi_matmul_args args = args_for(&desc);
    gemmepi_stream legacy = (gemmepi_stream)(uintptr_t)GEMMEPI__CU_STREAM_LEGACY;
    prepared run = {NULL, GEMMEPI_OK};
    pthread_t thread;
    CHECK(gemmepi_plan_matmul(context, &desc, &run.plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(run.plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_run_matmul(run.plan, &args, legacy) == GEMMEPI_OK, "NULL's is legacy's: %s",
          gemmepi_last_error());
    run_on_this_threads_default_stream(&run);
    CHECK(run.status == GEMMEPI_BUFFER_TOO_SMALL, "the thread's own stream took another's workspace");
    CHECK(gemmepi_plan_prepare(run.plan, (gemmepi_stream)(uintptr_t)GEMMEPI__CU_STREAM_PER_THREAD) ==
              GEMMEPI_OK,
          "%s", gemmepi_last_error());
    run_on_this_threads_default_stream(&run);
    CHECK(run.status == GEMMEPI_OK, "%s", gemmepi_last_error());
    if (pthread_create(&thread, NULL, run_on_this_threads_default_stream, &run) == 0) {
        pthread_join(thread, NULL);
        CHECK(run.status == GEMMEPI_BUFFER_TOO_SMALL, "another thread's stream took this one's workspace");
    }
    gemmepi_plan_destroy(run.plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>laziness and the cache on disk */

static char folder[600];

static void empty_folder(void) {
    char entry[GEMMEPI__ENTRY_SIZE] = "", path[1000];
    while (gemmepi__next_entry(folder, "", entry)) {
        snprintf(path, sizeof path, "%s/%s", folder, entry);
        remove(path); /* . and .. stay */
    }
    rmdir(folder);
}

static const char *new_folder(void) {
    static int number;
    const char *temporary = getenv("TMPDIR");
    if (!temporary)
        temporary = getenv("TEMP");
    snprintf(folder, sizeof folder, "%.400s/gemmepi-faults-%ld-%d", temporary ? temporary : "/tmp",
             (long)getpid(), number++);
    empty_folder();
    return folder;
}

static void run_split_and_pass(const gemmepi_config *config, gemmepi_context_details *details) {
    gemmepi_context *context = open_fake(config);
    gemmepi_matmul_desc descs[2];
    int i;
    descs[0] = split_product(), descs[1] = pass_alone();
    for (i = 0; i < 2; i++) {
        gemmepi_matmul_args args = args_for(&descs[i]);
        CHECK(gemmepi_matmul(context, &descs[i], &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    }
    CHECK(gemmepi_context_info(context, details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* The count of forks is raised by hand, which is all that a fork() does. */
static void a_child_asks_nothing_of_the_parents_gpu(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config), *own = NULL;
    gemmepi_matmul_desc desc = split_product();
    gemmepi_matmul_args args = args_for(&desc);
    gemmepi_stream stream = NULL;
    void *memory = NULL;
    long modules, blocks;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    modules = gpu.modules;
    blocks = gpu.device_blocks;
    gemmepi__forks++;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_INVALID_ARGUMENT && sentence_has("fork()"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_alloc(context, 16, &memory) == GEMMEPI_INVALID_ARGUMENT, "memory");
    CHECK(gemmepi_stream_create(context, &stream) == GEMMEPI_INVALID_ARGUMENT, "a stream");
    CHECK(gemmepi_synchronize(context, NULL) == GEMMEPI_INVALID_ARGUMENT, "the parent's work");
    gemmepi_destroy(context);
    CHECK(gpu.modules == modules && gpu.device_blocks == blocks && gpu.released == 0,
          "%ld modules, %ld blocks, released %ld times", gpu.modules, gpu.device_blocks, gpu.released);
    config.device = GEMMEPI_DEVICE(0);
    break_function("cuInit", 3);
    CHECK(gemmepi_create(&config, &own) == GEMMEPI_NO_DEVICE && sentence_has("after a fork()"), "%s",
          gemmepi_last_error());
    gemmepi__forks--;
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_second_context_compiles_nothing_and_never_looks_for_nvrtc(void) {
    gemmepi_config config = fake_config();
    gemmepi_context_details cold, warm;
    config.cache_path = new_folder();
    config.log = keep_log;
    run_split_and_pass(&config, &cold);
    CHECK(cold.kernels_compiled == gpu.compilations && gpu.compilations >= 2, "%ld compiled",
          gpu.compilations);
    CHECK(cold.nvrtc_version == 13000 && gpu.asked_nvrtc > 0, "version %d", cold.nvrtc_version);
    plug_in();
    gpu.missing = "nvrtc";
    run_split_and_pass(&config, &warm);
    CHECK(gpu.compilations == 0 && warm.kernels_compiled == 0, "%ld compiled; the log: %s", gpu.compilations,
          logged);
    CHECK(warm.kernels_from_disk == cold.kernels_compiled, "%d from disk", (int)warm.kernels_from_disk);
    CHECK(gpu.asked_nvrtc == 0 && warm.nvrtc_version == 0, "nvrtc was asked for %ld functions",
          gpu.asked_nvrtc);
    empty_folder();
}

/* The file's bytes, with a zero behind them; -1 if there is no such file in the folder. */
static long read_dumped(const char *name, char *data, size_t size) {
    char path[1000];
    long length;
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (!file)
        return -1;
    length = (long)fread(data, 1, size - 1, file);
    data[length] = 0;
    fclose(file);
    return length;
}

static void what_is_compiled_is_dumped_where_that_is_asked_for(void) {
    static char data[1 << 20];
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = pass_alone();
    gemmepi_plan *plan = NULL;
    config.dump_path = new_folder();
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
    CHECK(read_dumped("gemmepi_pass_f32_tanh_bias.cubin", data, sizeof data) == (long)sizeof cubin &&
              memcmp(data, cubin, sizeof cubin) == 0,
          "no cubin in %s", folder);
    CHECK(read_dumped("gemmepi_pass_f32_tanh_bias.ptx", data, sizeof data) >= 0 &&
              strcmp(data, fake_ptx) == 0,
          "no PTX in %s", folder);
    CHECK(read_dumped("gemmepi_pass_f32_tanh_bias.cu", data, sizeof data) > 0, "no source in %s", folder);
    CHECK(strncmp(data, "#define gemmepi_pass gemmepi_pass_f32_tanh_bias\n", 48) == 0, "%.100s", data);
    CHECK(strstr(data, "gemmepi_pass(") && strstr(data, "gemmepi__epilogue_params") &&
              !strstr(data, "#include \""),
          "not the whole source");
    empty_folder();
}

static void a_dump_that_cannot_be_written_is_a_warning(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = pass_alone();
    gemmepi_plan *plan = NULL;
    char path[700];
    FILE *file = fopen(new_folder(), "wb"); /* a file where the folder should be */
    CHECK(file != NULL, "no file %s", folder);
    if (file)
        fclose(file);
    snprintf(path, sizeof path, "%s/dump", folder);
    config.dump_path = path;
    config.log = keep_log;
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strstr(logged, "2 gemmepi_pass_f32_tanh_bias cannot be written to config.dump_path"),
          "the log has: %s", logged);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
    remove(folder);
}

#if !GEMMEPI__WINDOWS
extern int test_setenv(const char *name, const char *value, int overwrite) __asm__("setenv");
extern int test_unsetenv(const char *name) __asm__("unsetenv");
extern int fileno_of(FILE *file) __asm__("fileno");

/* What a context and a plan write to stderr where GEMMEPI_LOG is value (NULL: not set). */
static const char *said_to_stderr(const char *value, gemmepi_log_function callback) {
    static char said[8192];
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = pass_alone();
    gemmepi_plan *plan = NULL;
    FILE *file = tmpfile();
    int kept = dup(2);
    size_t length = 0;
    if (value)
        test_setenv("GEMMEPI_LOG", value, 1);
    else
        test_unsetenv("GEMMEPI_LOG");
    config.log = callback;
    if (file && kept >= 0) {
        fflush(stderr);
        dup2(fileno_of(file), 2);
        context = open_fake(&config);
        gemmepi_plan_matmul(context, &desc, &plan);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        fflush(stderr);
        dup2(kept, 2);
        rewind(file);
        length = fread(said, 1, sizeof said - 1, file);
    }
    said[length] = 0;
    if (file)
        fclose(file);
    close(kept);
    test_unsetenv("GEMMEPI_LOG");
    return said;
}

static void the_environment_sends_the_log_to_stderr_and_nothing_else_does(void) {
    const char *said;
    CHECK(said_to_stderr(NULL, NULL)[0] == 0, "not asked for: %s", said_to_stderr(NULL, NULL));
    CHECK(said_to_stderr("loud", NULL)[0] == 0, "an unknown value: %s", said_to_stderr("loud", NULL));
    CHECK(said_to_stderr("error", NULL)[0] == 0, "nothing failed: %s", said_to_stderr("error", NULL));
    said = said_to_stderr("info", NULL);
    CHECK(strstr(said, "gemmepi info: ") && !strstr(said, "gemmepi debug: "), "info: %s", said);
    said = said_to_stderr("debug", NULL);
    CHECK(strstr(said, "gemmepi info: ") && strstr(said, "gemmepi debug: compiled pass.cu"), "debug: %s",
          said);
    CHECK(said[0] && said[strlen(said) - 1] == '\n', "no whole line: %s", said);
    CHECK(said_to_stderr("debug", keep_log)[0] == 0, "beside a callback: %s",
          said_to_stderr("debug", keep_log));
}
#endif

static void a_kernel_on_disk_that_the_driver_refuses_is_compiled_anew(void) {
    gemmepi_config config = fake_config();
    gemmepi_context_details details;
    config.cache_path = new_folder();
    run_split_and_pass(&config, &details);
    plug_in();
    break_function("cuModuleLoadData", GEMMEPI__CUDA_ERROR_INVALID_IMAGE);
    {
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = pass_alone();
        gemmepi_plan *plan = NULL;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_CUDA_ERROR && !plan, "%s",
              gemmepi_last_error());
        CHECK(gpu.compilations == 1, "%ld compiled", gpu.compilations);
        gpu.fails = NULL;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
    }
    nothing_is_left();
    empty_folder();
}

static void with_a_cache_a_program_may_run_out_of_host_memory_anywhere(void) {
    new_folder();
    every_allocation_may_fail(folder, GEMMEPI_DEVICE(0));
    empty_folder();
}

static void libraries_are_loaded_when_first_needed(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc lt = lt_product(), pass = pass_alone();
    gemmepi_matmul_args lt_args = args_for(&lt), pass_args = args_for(&pass);
    CHECK(gpu.asked_cuda > 0 && gpu.asked_nvrtc == 0 && gpu.asked_lt == 0,
          "create loads more than the driver");
    CHECK(gemmepi_matmul(context, &lt, &lt_args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.asked_lt > 0 && gpu.asked_nvrtc == 0, "lt needs no NVRTC");
    gemmepi_destroy(context);
    config = fake_config();
    context = open_fake(&config);
    CHECK(gemmepi_matmul(context, &pass, &pass_args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.asked_nvrtc > 0 && gpu.asked_lt == 0, "a pass alone needs no cuBLASLt");
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>the caller's current context */

static void the_callers_current_context_stays_as_it_was(void) {
    gemmepi__cu_context currents[3];
    int i;
    currents[0] = NULL, currents[1] = callers_own, currents[2] = primary;
    for (i = 0; i < 3; i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context;
        gemmepi_matmul_desc desc = split_product();
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_plan *plan = NULL;
        gemmepi_stream stream = NULL;
        void *pointer = NULL;
        float value = 1;
#define STAYS(call)                                                                                    \
    do {                                                                                               \
        CHECK((call) == GEMMEPI_OK, "%s", gemmepi_last_error());                                       \
        CHECK(depth == 0 && stack[0] == currents[i] && capture_mode == 1, "depth %d, capture mode %d", \
              depth, capture_mode);                                                                    \
    } while (0)
        stack[0] = currents[i];
        capture_mode = 1;
        STAYS(gemmepi_create(&config, &context));
        STAYS(gemmepi_alloc(context, 256, &pointer));
        STAYS(gemmepi_upload(context, pointer, &value, sizeof value, NULL));
        STAYS(gemmepi_download(context, &value, pointer, sizeof value, NULL));
        STAYS(gemmepi_free(context, pointer));
        STAYS(gemmepi_stream_create(context, &stream));
        STAYS(gemmepi_plan_matmul(context, &desc, &plan));
        STAYS(gemmepi_plan_prepare(plan, stream));
        STAYS(gemmepi_run_matmul(plan, &args, stream));
        STAYS(gemmepi_matmul(context, &desc, &args, NULL));
        STAYS(gemmepi_synchronize(context, stream));
        STAYS(gemmepi_stream_destroy(context, stream));
        gemmepi_plan_destroy(plan);
        break_function("cublasLtMatmul", GEMMEPI__CUBLAS_STATUS_EXECUTION_FAILED);
        CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_CUBLAS_ERROR, "%s",
              gemmepi_last_error());
        CHECK(depth == 0 && stack[0] == currents[i] && capture_mode == 1, "after a failure: depth %d", depth);
        gemmepi_destroy(context);
        CHECK(depth == 0 && stack[0] == currents[i] && capture_mode == 1, "after destroy: depth %d", depth);
        capture_mode = 0;
        nothing_is_left();
    }
}

/* >>element-wise operations */

enum { SUM_ROWS = 20000, SUM_COLUMNS = 8, CAST_ROWS = 40, CAST_COLUMNS = 300 };

/* Stands for tensors and numbers on the device; of the host's too, so that it is as large as they are. */
static double element_memory[8][SUM_ROWS * SUM_COLUMNS / 2], number_memory[3][2 * CAST_COLUMNS];

enum { A, B, W, DY, Y, DA, DB, DW, ELEMENT_TENSORS };

/* An operation as both interfaces take it. Its parts point to one another: it is not copied. */
typedef struct element_call {
    gemmepi_tensor t[ELEMENT_TENSORS];
    int64_t shape[ELEMENT_TENSORS][2], stride[ELEMENT_TENSORS][2];
    gemmepi_elementwise_desc desc;
    gemmepi_elementwise_args args;
} element_call;

static void *element_pointer(int t, size_t bytes) {
    return (char *)element_memory[t] + bytes;
}

/* t[which] is dense */
static void give_tensor(element_call *c, int which, gemmepi_dtype dtype, int64_t rows, int64_t columns) {
    gemmepi_tensor *t = &c->t[which];
    c->shape[which][0] = rows, c->shape[which][1] = columns;
    t->data = element_pointer(which, 0);
    t->dtype = dtype;
    t->rank = 2;
    t->shape = c->shape[which];
}

/* of one axis */
static void give_line(element_call *c, int which, gemmepi_dtype dtype, int64_t count_of_elements) {
    give_tensor(c, which, dtype, count_of_elements, 0);
    c->t[which].rank = 1;
}

static void begin_call(element_call *c, gemmepi_operation operation) {
    memset(c, 0, sizeof *c);
    c->desc.operation = operation;
}

static const gemmepi_tensor *tensor_or_null(const element_call *c, int which) {
    return c->t[which].data ? &c->t[which] : NULL;
}

/* desc and args, of the tensors that were given */
static void end_call(element_call *c) {
    c->desc.a = tensor_or_null(c, A), c->desc.b = tensor_or_null(c, B);
    c->desc.w = tensor_or_null(c, W), c->desc.dy = tensor_or_null(c, DY);
    c->desc.y = tensor_or_null(c, Y), c->desc.da = tensor_or_null(c, DA);
    c->desc.db = tensor_or_null(c, DB), c->desc.dw = tensor_or_null(c, DW);
    c->args.a = c->t[A].data, c->args.b = c->t[B].data, c->args.w = c->t[W].data, c->args.dy = c->t[DY].data;
    c->args.y = c->t[Y].data, c->args.da = c->t[DA].data;
    c->args.db = c->t[DB].data, c->args.dw = c->t[DW].data;
    c->args.scale = c->desc.flags & GEMMEPI_CAST_SCALE ? (float *)number_memory[0] : NULL;
    c->args.y_scale = c->desc.flags & GEMMEPI_CAST_Y_SCALE ? (float *)number_memory[1] : NULL;
    c->args.amax = c->desc.flags & GEMMEPI_CAST_AMAX ? number_memory[2] : NULL;
}

static void activation_call(element_call *c, int64_t rows, int64_t columns) {
    begin_call(c, GEMMEPI_OP_ACTIVATION);
    c->desc.activation = GEMMEPI_SILU;
    give_tensor(c, A, GEMMEPI_F32, rows, columns);
    give_tensor(c, Y, GEMMEPI_F32, rows, columns);
    end_call(c);
}

static void transposed_call(element_call *c) {
    activation_call(c, EDGE, EDGE);
    c->stride[A][0] = 1, c->stride[A][1] = EDGE;
    c->t[A].stride = c->stride[A];
}

static void split_call(element_call *c) {
    begin_call(c, GEMMEPI_OP_GATED_BACKWARD);
    c->desc.activation = GEMMEPI_SILU;
    c->desc.axis = -1;
    give_tensor(c, A, GEMMEPI_BF16, EDGE, 2 * EDGE);
    give_tensor(c, DY, GEMMEPI_BF16, EDGE, EDGE);
    give_tensor(c, DA, GEMMEPI_BF16, EDGE, 2 * EDGE);
    end_call(c);
}

static void sum_call(element_call *c, int64_t rows) {
    begin_call(c, GEMMEPI_OP_BIAS_GRAD);
    c->desc.axis = 1;
    give_tensor(c, A, GEMMEPI_F32, rows, SUM_COLUMNS);
    give_line(c, Y, GEMMEPI_F32, SUM_COLUMNS);
    end_call(c);
}

static void small_sum_call(element_call *c) {
    sum_call(c, 20);
}
static void large_sum_call(element_call *c) {
    sum_call(c, SUM_ROWS);
}
static void sum_of_nothing_call(element_call *c) {
    sum_call(c, 0);
}
static void dense_call(element_call *c) {
    activation_call(c, EDGE, EDGE);
}
static void empty_call(element_call *c) {
    activation_call(c, 0, EDGE);
}

/* One gradient for each index, and two that are sums. */
static void lerp_call(element_call *c) {
    begin_call(c, GEMMEPI_OP_LERP_BACKWARD);
    give_tensor(c, A, GEMMEPI_F32, SUM_ROWS, SUM_COLUMNS);
    give_line(c, B, GEMMEPI_F32, SUM_COLUMNS);
    give_line(c, W, GEMMEPI_F32, SUM_COLUMNS);
    give_tensor(c, DY, GEMMEPI_F32, SUM_ROWS, SUM_COLUMNS);
    give_tensor(c, DA, GEMMEPI_F32, SUM_ROWS, SUM_COLUMNS);
    give_line(c, DB, GEMMEPI_F32, SUM_COLUMNS);
    give_line(c, DW, GEMMEPI_F32, SUM_COLUMNS);
    end_call(c);
}

static void cast_call(element_call *c, gemmepi_scale_mode mode, uint64_t flags) {
    begin_call(c, GEMMEPI_OP_CAST);
    c->desc.scale_mode = mode;
    c->desc.flags = flags;
    give_tensor(c, A, GEMMEPI_F32, CAST_ROWS, CAST_COLUMNS);
    give_tensor(c, Y, GEMMEPI_E4M3, CAST_ROWS, CAST_COLUMNS);
    end_call(c);
}

static void plain_cast(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_NONE, 0);
}
static void cast_with_scale(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_TENSOR, GEMMEPI_CAST_SCALE);
}
static void cast_with_amax(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_NONE, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX);
}
static void cast_of_new_scale(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_TENSOR, GEMMEPI_CAST_Y_SCALE);
}
static void cast_of_rows(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE);
}
static void cast_of_rows_with_amax(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_AMAX);
}
static void cast_of_new_rows(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_K_IS_ROWS);
}
static void cast_of_new_rows_with_amax(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX);
}
static void cast_of_new_blocks(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_BLOCK_128, GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX);
}

/* What a run of each does, in the order of calls of the driver. */
static const struct {
    const char *name;
    void (*make)(element_call *c);
    gemmepi_route route;
    int memsets, kernels, has_workspace;
} element_calls[] = {
    {"dense", dense_call, GEMMEPI_ROUTE_CONTIGUOUS, 0, 1, 0},
    {"transposed", transposed_call, GEMMEPI_ROUTE_STRIDED, 0, 1, 0},
    {"split", split_call, GEMMEPI_ROUTE_STRIDED, 0, 1, 0},
    {"small sum", small_sum_call, GEMMEPI_ROUTE_SUM, 0, 1, 0},
    {"sum of nothing", sum_of_nothing_call, GEMMEPI_ROUTE_SUM, 0, 1, 0},
    {"large sum", large_sum_call, GEMMEPI_ROUTE_SUM, 0, 2, 1},
    {"sums beside a loop", lerp_call, GEMMEPI_ROUTE_SUM, 0, 5, 1},
    {"cast", plain_cast, GEMMEPI_ROUTE_CONTIGUOUS, 0, 1, 0},
    {"cast with scale", cast_with_scale, GEMMEPI_ROUTE_CONTIGUOUS, 0, 1, 0},
    {"cast with amax", cast_with_amax, GEMMEPI_ROUTE_CONTIGUOUS, 1, 1, 0},
    {"cast of a new scale", cast_of_new_scale, GEMMEPI_ROUTE_SCALED, 1, 2, 1},
    {"cast of rows", cast_of_rows, GEMMEPI_ROUTE_SCALED, 0, 1, 0},
    {"cast of rows with amax", cast_of_rows_with_amax, GEMMEPI_ROUTE_SCALED, 1, 1, 0},
    {"cast of new rows", cast_of_new_rows, GEMMEPI_ROUTE_SCALED, 1, 2, 1},
    {"cast of new rows with amax", cast_of_new_rows_with_amax, GEMMEPI_ROUTE_SCALED, 1, 2, 0},
    {"cast of new blocks", cast_of_new_blocks, GEMMEPI_ROUTE_SCALED, 0, 1, 0},
    {"empty", empty_call, GEMMEPI_ROUTE_EMPTY, 0, 0, 0},
};

enum { ELEMENT_CALLS = (int)GEMMEPI__COUNT(element_calls) };

static gemmepi_status call_at_any_time(gemmepi_context *context, const element_call *c,
                                       gemmepi_stream stream) {
    const gemmepi_elementwise_desc *d = &c->desc;
    switch (d->operation) {
    case GEMMEPI_OP_ACTIVATION:
        return gemmepi_activation(context, d->activation, NAN, d->a, d->y, stream);
    case GEMMEPI_OP_BIAS_GRAD:
        return gemmepi_bias_grad(context, d->a, d->axis, 0, d->y, stream);
    default:
        return d->operation == GEMMEPI_OP_CAST && !d->flags
                   ? gemmepi_cast(context, d->a, d->y, stream)
                   : gemmepi_elementwise(context, d, &c->args, stream);
    }
}

/* NULL where it has none, which CHECK has said. */
static gemmepi_plan *plan_elementwise(gemmepi_context *context, const element_call *c) {
    gemmepi_plan *plan = NULL;
    CHECK(gemmepi_plan_elementwise(context, &c->desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return plan;
}

/* Kernels launched and numbers cleared, since the last time it was asked. */
static long calls_of_the_driver(void) {
    long calls = gpu.launches + gpu.memsets;
    gpu.launches = gpu.memsets = 0;
    return calls;
}

static void nothing_is_left_and_cublaslt_was_not_loaded(void) {
    CHECK(gpu.asked_lt == 0, "cuBLASLt was asked for %ld functions", gpu.asked_lt);
    nothing_is_left();
}

static void elementwise_plans_launch_what_they_say(void) {
    int i;
    for (i = 0; i < ELEMENT_CALLS; i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context = open_fake(&config);
        const char *name = element_calls[i].name;
        int launches = element_calls[i].memsets + element_calls[i].kernels;
        gemmepi_plan_details details;
        gemmepi_plan *plan;
        element_call c;
        long before_host, before_device;
        char text[2000], wanted[40];
        element_calls[i].make(&c);
        plan = plan_elementwise(context, &c);
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(details.route == element_calls[i].route, "%s: route %s", name, details.route_name);
        CHECK(details.launches == launches, "%s: %d launches", name, details.launches);
        CHECK((details.workspace_size != 0) == element_calls[i].has_workspace, "%s: %d bytes", name,
              (int)details.workspace_size);
        gemmepi_plan_explain(plan, text, sizeof text);
        snprintf(wanted, sizeof wanted, "%d launches", launches);
        CHECK(strstr(text, wanted), "%s: explain tells %s", name, text);
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        before_host = allocations, before_device = gpu.device_allocations;
        CHECK(before_device == OF_THE_CONTEXT + element_calls[i].has_workspace, "%s: %ld blocks", name,
              before_device);
        gpu.is_capturing = 1; /* so it may be captured */
        CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_OK, "%s: %s", name,
              gemmepi_last_error());
        CHECK(gpu.launches == element_calls[i].kernels && gpu.memsets == element_calls[i].memsets,
              "%s: %ld kernels, %ld memsets", name, gpu.launches, gpu.memsets);
        calls_of_the_driver();
        CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%s: %s", name, gemmepi_last_error());
        CHECK(calls_of_the_driver() == launches, "%s: the one-shot call differs", name);
        gpu.is_capturing = 0;
        CHECK(gpu.device_allocations == before_device, "%s: a run allocates", name);
        before_host = allocations - before_host;
        CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_OK, "%s: %s", name,
              gemmepi_last_error());
        CHECK(gpu.wrong_context == 0 && before_host <= 4, "%s: %ld allocations", name, before_host);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left_and_cublaslt_was_not_loaded();
    }
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
            break_function("nvrtcCompileProgram", GEMMEPI__NVRTC_ERROR_COMPILATION);
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

/* A call, a plan and its run in an open context; each that fails is made once more with memory enough. The number of
   failures. */
static int elementwise_program(gemmepi_context *context, int which) {
    gemmepi_stream stream = (gemmepi_stream)(uintptr_t)GEMMEPI__CU_STREAM_PER_THREAD;
    gemmepi_plan *plan = NULL;
    element_call c;
    int step, again, failures = 0;
    element_calls[which].make(&c);
    for (step = 0; step < 4; step++)
        for (again = 0; again < 2; again++) {
            gemmepi_status status = step == 0   ? call_at_any_time(context, &c, NULL)
                                    : step == 1 ? gemmepi_plan_elementwise(context, &c.desc, &plan)
                                    : step == 2 ? gemmepi_plan_prepare(plan, stream)
                                                : gemmepi_run_elementwise(plan, &c.args, stream);
            if (status == GEMMEPI_OK)
                break;
            CHECK(status == GEMMEPI_OUT_OF_MEMORY && sentence_has("memory") && !again, "%s, step %d: %s: %s",
                  element_calls[which].name, step, gemmepi_status_name(status), gemmepi_last_error());
            failures++;
        }
    gemmepi_plan_destroy(plan);
    return failures;
}

/* cache_path: "", or the folder, which is emptied before each program */
static void every_elementwise_allocation_may_fail(const char *cache_path, int device) {
    int which;
    for (which = 0; which < ELEMENT_CALLS; which++) {
        long k, reached = 1, refused = 0;
        for (k = 1; reached; k++) {
            gemmepi_config config = fake_config();
            gemmepi_context *context;
            config.device = device;
            config.cache_path = cache_path;
            if (cache_path[0])
                empty_folder();
            context = open_fake(&config);
            fails_at = allocations + k;
            refused += elementwise_program(context, which);
            reached = allocations >= fails_at;
            gemmepi_destroy(context);
            nothing_is_left_and_cublaslt_was_not_loaded();
        }
        CHECK(refused >= 2, "%s: only %ld of %ld allocations matter", element_calls[which].name, refused, k);
    }
}

static void elementwise_calls_may_run_out_of_host_memory_anywhere(void) {
    every_elementwise_allocation_may_fail("", GEMMEPI_DEVICE(0));
}

static void with_a_cache_elementwise_calls_may_run_out_of_host_memory_anywhere(void) {
    every_elementwise_allocation_may_fail(new_folder(), GEMMEPI_DEVICE(0));
    empty_folder();
}

static void on_the_host_elementwise_calls_may_run_out_of_memory_anywhere(void) {
    every_elementwise_allocation_may_fail("", GEMMEPI_DEVICE_HOST);
}

static void an_elementwise_workspace_that_the_device_has_no_memory_for_is_an_error(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_plan *plan;
    element_call c;
    large_sum_call(&c);
    plan = plan_elementwise(context, &c);
    break_function("cuMemAlloc_v2", GEMMEPI__CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OUT_OF_MEMORY, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OUT_OF_MEMORY && sentence_has("workspace"), "%s",
          gemmepi_last_error());
    CHECK(calls_of_the_driver() == 0, "it ran all the same");
    gpu.fails = NULL;
    CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left_and_cublaslt_was_not_loaded();
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
        int all = element_calls[i].memsets + element_calls[i].kernels;
        element_calls[i].make(&c);
        plan = plan_elementwise(context, &c);
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        for (nth = 0; nth < 2 * all; nth++) {
            int is_memset = nth / 2 < element_calls[i].memsets;
            long spared = is_memset ? 0 : nth / 2 - element_calls[i].memsets;
            gemmepi_status status;
            one_shot = nth % 2;
            break_function(is_memset ? "cuMemsetD8Async" : "cuLaunchKernel", 719);
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

/* What a one-shot call adds to the plans that are kept, the kernels compiled and the memory that is held. */
typedef struct added {
    long plans, kernels, blocks;
} added;

static added added_by(gemmepi_context *context, const element_call *c, gemmepi_stream stream) {
    added before = {0, 0, 0};
    before.plans = (long)context->plans.count, before.kernels = gpu.compilations, before.blocks = live;
    CHECK(call_at_any_time(context, c, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    before.plans = (long)context->plans.count - before.plans;
    before.kernels = gpu.compilations - before.kernels;
    before.blocks = live - before.blocks;
    return before;
}

static void one_shot_calls_of_an_operation_build_one_plan(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_stream other = (gemmepi_stream)(uintptr_t)0x7000;
    element_call c;
    added more;
    int i;
    for (i = 0; i < ELEMENT_CALLS; i++) {
        element_calls[i].make(&c);
        more = added_by(context, &c, NULL);
        CHECK(more.plans == 1, "%s: %ld plans", element_calls[i].name, more.plans);
        more = added_by(context, &c, NULL);
        CHECK(more.plans == 0 && more.kernels == 0 && more.blocks == 0, "%s: %ld plans again",
              element_calls[i].name, more.plans);
        more = added_by(context, &c, other);
        CHECK(more.plans == 0 && more.kernels == 0, "%s: another plan for another stream",
              element_calls[i].name);
    }
    dense_call(&c);
    c.t[A].data = element_pointer(B, 512), c.t[Y].data = element_pointer(DY, 16);
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 0, "other pointers, as aligned, are another plan");
    c.t[A].data = element_pointer(B, 4);
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 1 && more.kernels == 1, "less aligned: %ld plans, %ld kernels", more.plans,
          more.kernels);
    c.t[Y].data = element_pointer(DY, 12);
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 0, "the least alignment is the same");
    activation_call(&c, EDGE, EDGE - 1);
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 1 && more.kernels == 0, "another shape: %ld plans, %ld kernels", more.plans,
          more.kernels);
    dense_call(&c);
    c.desc.activation = GEMMEPI_TANH;
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 1 && more.kernels == 1, "another function: %ld plans, %ld kernels", more.plans,
          more.kernels);
    lerp_call(&c);
    c.t[A].data = c.t[B].data = c.t[DW].data = NULL; /* a and b go with dw alone */
    end_call(&c);
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 1, "without dw: %ld plans", more.plans);
    c.t[W].data = NULL;
    end_call(&c);
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 1, "without w: %ld plans", more.plans);
    c.args.weight = 0.25;
    more = added_by(context, &c, NULL);
    CHECK(more.plans == 0, "a weight is an argument, not another plan");
    gemmepi_destroy(context);
    nothing_is_left_and_cublaslt_was_not_loaded();
}

/* Of a tensor without an element they have no meaning, however large: they neither overflow nor tell problems apart. */
static void strides_of_nothing_are_all_the_same(void) {
    static const int64_t strides[][2] = {{INT64_MAX, INT64_MAX}, {INT64_MIN, 1}, {SUM_COLUMNS, 1}};
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    int i;
    for (i = 0; i < (int)GEMMEPI__COUNT(strides); i++) {
        gemmepi_matmul_desc desc = pass_alone();
        gemmepi_matmul_args args = args_for(&desc);
        desc.m = EDGE / 2, desc.batch = 2;
        desc.d.batch_stride = EDGE * EDGE / 2;
        desc.a.ld = desc.a.batch_stride = i == 1 ? 0 : strides[i][0];
        CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(context->plans.count == 1, "%d: %d plans of one product", i, (int)context->plans.count);
    }
    for (i = 0; i < (int)GEMMEPI__COUNT(strides); i++) {
        element_call c;
        sum_of_nothing_call(&c);
        c.t[A].stride = strides[i];
        CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(context->plans.count == 2, "%d: %d plans of one sum", i, (int)context->plans.count - 1);
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Products and element-wise operations share the places. */
static void of_many_one_shot_calls_the_oldest_is_dropped(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    static element_call used, unused, c;
    long held = 0, before;
    int i;
    activation_call(&used, 1, 5);
    activation_call(&unused, 1, 6);
    CHECK(added_by(context, &unused, NULL).plans == 1, "no plan");
    CHECK(added_by(context, &used, NULL).plans == 1, "no plan");
    for (i = 0; i < GEMMEPI__MAX_KEPT + 200; i++) {
        if (i == GEMMEPI__MAX_KEPT) {
            CHECK(context->plans.count == GEMMEPI__MAX_KEPT, "%d plans", (int)context->plans.count);
            held = live;
        }
        if (i % 3 == 0) {
            gemmepi_matmul_desc desc = pass_alone();
            gemmepi_matmul_args args;
            desc.m = 1 + i % EDGE, desc.n = 1 + i / EDGE;
            args = args_for(&desc);
            CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        } else {
            activation_call(&c, 1, 1000 + i);
            CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        }
        before = allocations;
        CHECK(call_at_any_time(context, &used, NULL) == GEMMEPI_OK && allocations == before,
              "after %d others one in use was dropped", i);
    }
    CHECK(context->plans.count == GEMMEPI__MAX_KEPT, "%d plans", (int)context->plans.count);
    CHECK(live == held, "200 more plans hold %ld blocks more", live - held);
    before = allocations;
    CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK && allocations == before,
          "the newest was dropped");
    CHECK(call_at_any_time(context, &unused, NULL) == GEMMEPI_OK && allocations > before,
          "the oldest was not dropped");
    CHECK(live == held, "%ld blocks more", live - held);
    gemmepi_destroy(context);
    nothing_is_left_and_cublaslt_was_not_loaded();
}

static void an_elementwise_run_without_workspace_launches_nothing(void) {
    int i;
    for (i = 0; i < ELEMENT_CALLS; i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context = open_fake(&config);
        const char *name = element_calls[i].name;
        gemmepi_plan_details details;
        gemmepi_plan *plan;
        void *workspace = NULL;
        element_call c;
        element_calls[i].make(&c);
        if (!element_calls[i].has_workspace) {
            gemmepi_destroy(context);
            continue;
        }
        plan = plan_elementwise(context, &c);
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_BUFFER_TOO_SMALL &&
                  sentence_has("gemmepi_plan_prepare"),
              "%s: %s", name, gemmepi_last_error());
        CHECK(gemmepi_plan_prepare(plan, (gemmepi_stream)(uintptr_t)0x5000) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_BUFFER_TOO_SMALL,
              "%s: another stream's was taken", name);
        CHECK(gemmepi_alloc(context, details.workspace_size + 256, &workspace) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        c.args.workspace = workspace;
        c.args.workspace_size = details.workspace_size - 1;
        CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_BUFFER_TOO_SMALL &&
                  sentence_has("args.workspace_size"),
              "%s: %s", name, gemmepi_last_error());
        c.args.workspace_size++;
        c.args.workspace = (char *)workspace + 64;
        CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_MISALIGNED, "%s: %s", name,
              gemmepi_last_error());
        c.args.workspace = workspace;
        if (c.args.y_scale) {
            c.args.y_scale = (float *)workspace;
            CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_INVALID_ARGUMENT &&
                      sentence_has("args.workspace"),
                  "%s: y_scale in the workspace: %s", name, gemmepi_last_error());
            c.args.y_scale = (float *)number_memory[1];
        }
        CHECK(calls_of_the_driver() == 0, "%s: something was launched", name);
        CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_OK, "%s: %s", name,
              gemmepi_last_error());
        CHECK(calls_of_the_driver() == details.launches, "%s: not all was launched", name);
        gemmepi_free(context, workspace);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left_and_cublaslt_was_not_loaded();
    }
}

static void a_one_shot_elementwise_call_does_not_allocate_while_capturing(void) {
    int i;
    for (i = 0; i < ELEMENT_CALLS; i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context = open_fake(&config);
        const char *name = element_calls[i].name;
        element_call c;
        gemmepi_status status;
        int launches = element_calls[i].memsets + element_calls[i].kernels;
        element_calls[i].make(&c);
        gpu.is_capturing = 1;
        status = call_at_any_time(context, &c, NULL);
        if (element_calls[i].has_workspace) {
            CHECK(status == GEMMEPI_BUFFER_TOO_SMALL && sentence_has("captured") && sentence_has("workspace"),
                  "%s: %s: %s", name, gemmepi_status_name(status), gemmepi_last_error());
            CHECK(calls_of_the_driver() == 0, "%s: something was launched", name);
        } else {
            CHECK(status == GEMMEPI_OK && calls_of_the_driver() == launches, "%s: %s", name,
                  gemmepi_last_error());
        }
        CHECK(gpu.device_allocations == OF_THE_CONTEXT, "%s: %ld allocations", name, gpu.device_allocations);
        gpu.is_capturing = 0;
        CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%s: %s", name, gemmepi_last_error());
        gpu.is_capturing = 1;
        calls_of_the_driver();
        CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK && calls_of_the_driver() == launches,
              "%s, with workspace from before: %s", name, gemmepi_last_error());
        gpu.is_capturing = 0;
        gemmepi_destroy(context);
        nothing_is_left_and_cublaslt_was_not_loaded();
    }
}

/* Spoils a call so that it is refused with `status` and a sentence that has `word`. */
typedef struct spoiled {
    const char *call, *word;
    gemmepi_status status;
    void (*spoil)(element_call *c);
} spoiled;

static void spoil_null(element_call *c) {
    c->args.a = c->t[A].data = NULL;
}
static void spoil_alignment(element_call *c) {
    c->args.a = c->t[A].data = element_pointer(A, 2);
}
static void spoil_overlap(element_call *c) {
    c->args.y = c->t[Y].data = element_pointer(A, 16);
}
static void spoil_sum_overlap(element_call *c) {
    c->args.db = c->t[DB].data = element_pointer(A, 0);
}
static void spoil_sums_overlap(element_call *c) {
    c->args.db = c->t[DB].data = element_pointer(DW, 16);
}
static void spoil_amax(element_call *c) {
    c->args.amax = element_pointer(Y, 4);
}
static void spoil_amax_alignment(element_call *c) {
    c->args.amax = (char *)number_memory[2] + 2;
}
static void spoil_y_scale(element_call *c) {
    c->args.y_scale = (float *)element_pointer(A, 64);
}
static void spoil_y_scale_and_amax(element_call *c) {
    c->args.amax = c->args.y_scale + 1;
}
static void spoil_scale_and_amax(element_call *c) {
    c->args.amax = (float *)number_memory[0];
}

static const spoiled spoileds[] = {
    {"dense", "a is NULL", GEMMEPI_INVALID_ARGUMENT, spoil_null},
    {"dense", "a is", GEMMEPI_MISALIGNED, spoil_alignment},
    {"dense", "overlaps a", GEMMEPI_INVALID_ARGUMENT, spoil_overlap},
    {"transposed", "overlaps a", GEMMEPI_INVALID_ARGUMENT, spoil_overlap},
    {"large sum", "a is NULL", GEMMEPI_INVALID_ARGUMENT, spoil_null},
    {"large sum", "overlaps a", GEMMEPI_INVALID_ARGUMENT, spoil_overlap},
    {"sums beside a loop", "overlaps a", GEMMEPI_INVALID_ARGUMENT, spoil_sum_overlap},
    {"sums beside a loop", "overlaps dw", GEMMEPI_INVALID_ARGUMENT, spoil_sums_overlap},
    {"cast of new rows", "overlaps a", GEMMEPI_INVALID_ARGUMENT, spoil_overlap},
    {"cast of new rows", "y_scale", GEMMEPI_INVALID_ARGUMENT, spoil_y_scale},
    {"cast with amax", "amax", GEMMEPI_INVALID_ARGUMENT, spoil_amax},
    {"cast with amax", "amax", GEMMEPI_MISALIGNED, spoil_amax_alignment},
    {"cast of new rows with amax", "y_scale", GEMMEPI_INVALID_ARGUMENT, spoil_y_scale_and_amax},
    {"cast with amax", "scale", GEMMEPI_INVALID_ARGUMENT, spoil_scale_and_amax},
};

static void refused_elementwise_arguments_launch_nothing(void) {
    size_t i;
    int k;
    for (i = 0; i < GEMMEPI__COUNT(spoileds); i++) {
        const spoiled *s = &spoileds[i];
        gemmepi_config config = fake_config();
        gemmepi_context *context = open_fake(&config);
        gemmepi_plan *plan;
        gemmepi_status status;
        element_call c;
        for (k = 0; strcmp(element_calls[k].name, s->call) != 0; k++) {
        }
        element_calls[k].make(&c);
        plan = plan_elementwise(context, &c);
        CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        s->spoil(&c);
        status = gemmepi_run_elementwise(plan, &c.args, NULL);
        CHECK(status == s->status && sentence_has(s->word), "%s, %s: %s: %s", s->call, s->word,
              gemmepi_status_name(status), status ? gemmepi_last_error() : "");
        status = call_at_any_time(context, &c, NULL);
        CHECK(status == s->status && sentence_has(s->word), "%s, %s, one-shot: %s: %s", s->call, s->word,
              gemmepi_status_name(status), status ? gemmepi_last_error() : "");
        CHECK(calls_of_the_driver() == 0, "%s, %s: something was launched", s->call, s->word);
        element_calls[k].make(&c);
        CHECK(gemmepi_run_elementwise(plan, &c.args, NULL) == GEMMEPI_OK &&
                  call_at_any_time(context, &c, NULL) == GEMMEPI_OK,
              "%s, %s: afterwards: %s", s->call, s->word, gemmepi_last_error());
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left_and_cublaslt_was_not_loaded();
    }
}

static void the_callers_current_context_stays_as_it_was_after_elementwise_calls(void) {
    int i, broken_one;
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    stack[0] = callers_own;
    capture_mode = 1;
    context = open_fake(&config);
    for (i = 0; i < ELEMENT_CALLS; i++)
        for (broken_one = 0; broken_one < 2; broken_one++) {
            element_call c;
            element_calls[i].make(&c);
            if (broken_one)
                break_function("cuLaunchKernel", 719);
            call_at_any_time(context, &c, NULL);
            gpu.fails = NULL;
            CHECK(depth == 0 && stack[0] == callers_own && capture_mode == 1, "%s: depth %d, capture mode %d",
                  element_calls[i].name, depth, capture_mode);
        }
    gemmepi_destroy(context);
    capture_mode = 0;
    nothing_is_left_and_cublaslt_was_not_loaded();
}

/* The kernels of element-wise operations come from disk as all others do. */
static void a_second_context_compiles_no_elementwise_kernel(void) {
    gemmepi_config config = fake_config();
    const char *cache = new_folder();
    long compiled = 0;
    int second, i;
    for (second = 0; second < 2; second++) {
        gemmepi_context *context;
        gemmepi_context_details details;
        config = fake_config();
        config.cache_path = cache;
        gpu.missing = second ? "nvrtc" : NULL;
        context = open_fake(&config);
        for (i = 0; i < ELEMENT_CALLS; i++) {
            element_call c;
            element_calls[i].make(&c);
            CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%s: %s", element_calls[i].name,
                  gemmepi_last_error());
        }
        CHECK(gemmepi_context_info(context, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
        if (!second)
            compiled = (long)details.kernels_compiled;
        CHECK(gpu.compilations == (second ? 0 : compiled) &&
                  details.kernels_from_disk == (second ? compiled : 0),
              "%ld compiled, %d from disk", gpu.compilations, (int)details.kernels_from_disk);
        gemmepi_destroy(context);
        nothing_is_left_and_cublaslt_was_not_loaded();
    }
    empty_folder();
}

/* >>threads */

enum { THREADS = 4, CALLS = 50 };

static gemmepi_context *shared;
static long calls_failed, threads_ready;

static void *call_at_once(void *user) {
    gemmepi_stream stream = (gemmepi_stream)(uintptr_t)(0x100 + 0x100 * *(const int *)user);
    int i;
    count(&threads_ready, 1);
    while (gemmepi__add(&threads_ready, 0) < THREADS)
        sched_yield();
    /* all threads make the same calls in the same order, so that they build the same plans at once */
    for (i = 0; i < CALLS; i++) {
        gemmepi_matmul_desc desc = i % 3 == 0 ? split_product() : i % 3 == 1 ? lt_product() : pass_alone();
        gemmepi_matmul_args args;
        desc.m = 8 + 8 * (i % 7);
        args = args_for(&desc);
        if (gemmepi_matmul(shared, &desc, &args, stream) != GEMMEPI_OK)
            count(&calls_failed, 1);
    }
    return NULL;
}

static void threads_build_and_run_at_once(void) {
    gemmepi_config config = fake_config();
    gemmepi_context_details details;
    pthread_t threads[THREADS];
    int numbers[THREADS], i;
    shared = open_fake(&config);
    calls_failed = threads_ready = 0;
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, call_at_once, &numbers[i]) != 0) {
            printf("the system gives no thread\n");
            exit(1);
        }
    }
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(calls_failed == 0, "%ld calls failed", calls_failed);
    CHECK(gemmepi_context_info(shared, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(details.kernels_compiled == gpu.compilations && gpu.compilations <= 4,
          "%ld kernels were compiled; each is compiled once", gpu.compilations);
    gemmepi_destroy(shared);
    nothing_is_left();
}

/* >>work ahead */

enum { AHEAD = 12 };

/* A list in which every kind of problem is, and some twice. */
typedef struct ahead_list {
    gemmepi_matmul_desc products[AHEAD];
    gemmepi_linear_desc layer;
    gemmepi_any_desc problems[AHEAD];
    size_t told; /* by progress */
    int in_order;
} ahead_list;

static void make_ahead(ahead_list *list) {
    static const gemmepi_epilogue activations[] = {GEMMEPI_SILU, GEMMEPI_MISH, GEMMEPI_GELU_ERF,
                                                   GEMMEPI_QUICK_GELU};
    int i;
    memset(list, 0, sizeof *list);
    for (i = 0; i < AHEAD; i++) {
        list->products[i] = product(GEMMEPI_BF16, activations[i % 4] | GEMMEPI_BIAS);
        list->problems[i].matmul = &list->products[i];
    }
    list->layer.m = list->layer.n = list->layer.k = EDGE;
    list->layer.batch = 1;
    list->layer.a.dtype = GEMMEPI_BF16;
    list->layer.activation = GEMMEPI_SILU;
    list->layer.flags = GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DBIAS;
    list->problems[AHEAD - 1].matmul = NULL;
    list->problems[AHEAD - 1].linear_backward = &list->layer;
    list->in_order = 1;
}

static void note_progress(void *user, size_t done, size_t total) {
    ahead_list *list = (ahead_list *)user;
    list->in_order = list->in_order && done == list->told + 1 && total == AHEAD;
    list->told = done;
}

static void what_is_precompiled_is_there(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    static ahead_list list;
    gemmepi_matmul_args args;
    long compiled;
    int i;
    make_ahead(&list);
    CHECK(gemmepi_precompile(context, list.problems, AHEAD, 0, note_progress, &list) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    CHECK(list.told == AHEAD && list.in_order, "told of %d problems", (int)list.told);
    compiled = gpu.compilations;
    CHECK(compiled == 6, "%ld kernels, of 4 activations and a gradient with its sums", compiled);
    CHECK(gpu.products == 0 && gpu.launches == 0, "%ld products, %ld launches", gpu.products, gpu.launches);
    for (i = 0; i < AHEAD - 1; i++) {
        args = args_for(&list.products[i]);
        CHECK(gemmepi_matmul(context, &list.products[i], &args, NULL) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
    }
    CHECK(gpu.compilations == compiled, "%ld more", gpu.compilations - compiled);
    CHECK(gemmepi_precompile(context, list.problems, AHEAD, 3, NULL, NULL) == GEMMEPI_OK &&
              gpu.compilations == compiled,
          "again: %s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void kernels_are_compiled_side_by_side(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    static ahead_list list;
    make_ahead(&list);
    gpu.meeting = 4;
    CHECK(gemmepi_precompile(context, list.problems, 4, 4, NULL, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    CHECK(gpu.met == 4, "at most %ld at a time", gpu.met);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void threads_that_want_the_same_kernel_wait_for_one(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_any_desc problems[8];
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_SILU);
    int i;
    memset(problems, 0, sizeof problems);
    for (i = 0; i < 8; i++)
        problems[i].matmul = &desc;
    gpu.meeting = 2; /* the one takes its time, so that the others come meanwhile */
    gpu.patience = 100000;
    CHECK(gemmepi_precompile(context, problems, 8, 8, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.compilations == 1, "%ld compiled", gpu.compilations);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_problem_that_fails_keeps_no_other_from_being_compiled(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    static ahead_list list;
    make_ahead(&list);
    list.products[2].m = -1;
    list.problems[5].matmul = NULL;
    list.problems[7].linear = &list.layer;
    CHECK(gemmepi_precompile(context, list.problems, AHEAD, 4, note_progress, &list) ==
              GEMMEPI_INVALID_ARGUMENT,
          "%s", gemmepi_last_error());
    CHECK(sentence_has("problems[2]") && sentence_has("desc.m"), "%s", gemmepi_last_error());
    CHECK(list.told == AHEAD && gpu.compilations == 6, "%d told, %ld compiled", (int)list.told,
          gpu.compilations);
    CHECK(gemmepi_precompile(context, list.problems + 5, 1, 1, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("problems[0]: 0 of matmul"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_precompile(context, list.problems + 7, 1, 1, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("problems[0]: 2 of matmul"),
          "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_kernel_that_did_not_compile_is_tried_again(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_SILU);
    gemmepi_any_desc problems[4];
    int i;
    memset(problems, 0, sizeof problems);
    for (i = 0; i < 4; i++)
        problems[i].matmul = &desc;
    break_function("nvrtcCompileProgram", GEMMEPI__NVRTC_ERROR_COMPILATION);
    CHECK(gemmepi_precompile(context, problems, 4, 4, NULL, NULL) == GEMMEPI_COMPILE_ERROR &&
              sentence_has("problems[0]"),
          "%s", gemmepi_last_error());
    gpu.fails = NULL;
    CHECK(gemmepi_precompile(context, problems, 4, 4, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.compilations == 5, "%ld compilations, four that failed and one", gpu.compilations);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_list_that_is_none_is_refused(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    static ahead_list list;
    make_ahead(&list);
    CHECK(gemmepi_precompile(NULL, list.problems, 1, 0, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("context is NULL"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_precompile(context, NULL, 1, 0, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("problems is NULL"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_precompile(context, list.problems, 1, -2, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("threads is -2"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_precompile(context, NULL, 0, 0, note_progress, &list) == GEMMEPI_OK && list.told == 0, "%s",
          gemmepi_last_error());
    CHECK(gpu.compilations == 0, "%ld compiled", gpu.compilations);
    gemmepi_destroy(context);
    nothing_is_left();
}

static gemmepi_plan *shared_plan;

static void *run_at_once(void *user) {
    gemmepi_stream stream = (gemmepi_stream)(uintptr_t)(0x100 + 0x100 * *(const int *)user);
    gemmepi_matmul_desc desc = refusable_product();
    gemmepi_matmul_args args = args_for(&desc);
    int i;
    if (gemmepi_plan_prepare(shared_plan, stream) != GEMMEPI_OK)
        count(&calls_failed, 1);
    count(&threads_ready, 1);
    while (gemmepi__add(&threads_ready, 0) < THREADS)
        sched_yield();
    for (i = 0; i < 5; i++)
        if (gemmepi_run_matmul(shared_plan, &args, stream) != GEMMEPI_OK)
            count(&calls_failed, 1);
    return NULL;
}

static void threads_whose_product_is_refused_agree_on_the_next_route(void) {
    int always;
    for (always = 0; always < 2; always++) {
        gemmepi_config config = fake_config();
        gemmepi_matmul_desc desc = refusable_product();
        pthread_t threads[THREADS];
        int numbers[THREADS], i;
        config.log = count_warnings;
        warnings = calls_failed = threads_ready = 0;
        shared = open_fake(&config);
        shared_plan = plan_on(shared, &desc, GEMMEPI_ROUTE_LT);
        gpu.refuses_epilogues = 1;
        gpu.refusals = always ? -1 : 0;
        for (i = 0; i < THREADS; i++) {
            numbers[i] = i;
            if (pthread_create(&threads[i], NULL, run_at_once, &numbers[i]) != 0) {
                printf("the system gives no thread\n");
                exit(1);
            }
        }
        for (i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        CHECK(calls_failed == 0, "%ld calls failed", calls_failed);
        CHECK(gpu.launches == 5 * THREADS && gpu.products == (always ? 0 : 5 * THREADS),
              "%ld products, %ld launches", gpu.products, gpu.launches);
        CHECK(route_of(shared_plan) == (always ? GEMMEPI_ROUTE_PLAIN : GEMMEPI_ROUTE_SPLIT), "route %d",
              (int)route_of(shared_plan));
        CHECK(warnings == 1 + always, "%ld warnings", warnings);
        gemmepi_plan_destroy(shared_plan);
        gemmepi_destroy(shared);
        nothing_is_left();
    }
}

static void *call_elementwise_at_once(void *user) {
    gemmepi_stream stream = (gemmepi_stream)(uintptr_t)(0x100 + 0x100 * (*(const int *)user / 2));
    int i;
    count(&threads_ready, 1);
    while (gemmepi__add(&threads_ready, 0) < THREADS)
        sched_yield();
    for (i = 0; i < CALLS; i++) {
        element_call c;
        element_calls[i % ELEMENT_CALLS].make(&c);
        if (call_at_any_time(shared, &c, stream) != GEMMEPI_OK)
            count(&calls_failed, 1);
    }
    return NULL;
}

/* Two threads go by each stream. */
static void threads_build_and_run_elementwise_operations_at_once(void) {
    gemmepi_config config = fake_config();
    pthread_t threads[THREADS];
    int numbers[THREADS], i;
    long launches = 0;
    shared = open_fake(&config);
    calls_failed = threads_ready = 0;
    for (i = 0; i < CALLS; i++)
        launches +=
            THREADS * (element_calls[i % ELEMENT_CALLS].kernels + element_calls[i % ELEMENT_CALLS].memsets);
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, call_elementwise_at_once, &numbers[i]) != 0) {
            printf("the system gives no thread\n");
            exit(1);
        }
    }
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(calls_failed == 0, "%ld calls failed", calls_failed);
    CHECK(shared->plans.count == (size_t)ELEMENT_CALLS, "%d plans", (int)shared->plans.count);
    CHECK(gpu.modules == gpu.compilations, "a kernel was compiled twice");
    CHECK(calls_of_the_driver() == launches, "not as many launches as %ld", launches);
    gemmepi_destroy(shared);
    nothing_is_left_and_cublaslt_was_not_loaded();
}

/* Where this machine has the real libraries the loader opens them, to hand what they export to the resolver; kept open,
   each of the many contexts here finds them open. */
static void keep_libraries_open(void) {
    static gemmepi__log nobody;
    static gemmepi__nvrtc nvrtc;
    static gemmepi__cublaslt lt;
    gemmepi__loader loader;
    memset(&loader, 0, sizeof loader);
    loader.log = &nobody;
    gemmepi__load_nvrtc(&loader, &nvrtc);
    gemmepi__load_cublaslt(&loader, &lt);
}

int main(void) {
    keep_libraries_open();
    RUN(without_a_gpu_the_host_is_taken_unless_a_device_is_asked_for);
    RUN(a_device_beyond_the_last_is_refused_by_number);
    RUN(library_path_only_needs_a_library_path);
    RUN(a_driver_without_a_function_is_refused_by_the_functions_name);
    RUN(a_failed_create_leaves_nothing_behind);
    RUN(a_context_gives_everything_back);
    RUN(a_program_may_run_out_of_host_memory_anywhere);
    RUN(with_a_cache_a_program_may_run_out_of_host_memory_anywhere);
    RUN(the_host_may_run_out_of_memory_anywhere);
    RUN(device_memory_that_runs_out_is_reported);
    RUN(a_missing_cublaslt_is_reported_when_planning);
    RUN(a_cublaslt_that_does_not_open_is_an_error_and_no_leak);
    RUN(a_missing_nvrtc_is_reported_when_a_kernel_is_needed);
    RUN(a_kernel_that_does_not_compile_is_an_error_with_the_log);
    RUN(other_failures_of_building_a_kernel_are_errors_and_no_leaks);
    RUN(what_is_added_to_d_is_not_told_that_beta_is_1);
    RUN(a_context_without_its_ones_works);
    RUN(a_fused_run_has_its_own_pointers_in_its_maps);
    RUN(fused_results_have_maps_of_their_own);
    RUN(a_fused_run_with_alpha_or_c_has_its_own_kernel);
    RUN(long_sums_are_those_of_which_the_bound_grows_with_k);
    RUN(the_workspace_of_runs_with_alpha_is_counted_from_the_beginning);
    RUN(runs_with_alpha_reserve_nothing_themselves);
    RUN(scalars_on_the_device_do_not_lie_in_the_workspace);
    RUN(kernels_for_alpha_and_c_are_built_ahead);
    RUN(what_cublaslt_refuses_may_be_fused);
    RUN(a_missing_library_leaves_the_other_routes);
    RUN(routes_that_are_none_of_products_are_refused);
    RUN(an_older_driver_launches_without_overlap);
    RUN(boxes_have_no_lines_beyond_an_operand);
    RUN(a_fused_gradient_leaves_its_sums);
    RUN(an_empty_product_leaves_its_sums);
    RUN(blocks_are_shared_out_evenly);
    RUN(hopper_kernel_is_cut_as_measured);
    RUN(sums_of_an_operand_are_the_fused_kernels_own);
    RUN(a_product_that_sums_an_operand_goes_fused);
    RUN(estimates_are_near_what_was_measured);
    RUN(what_tma_does_not_take_is_copied_by_threads);
    RUN(other_chips_from_8_0_on_have_the_second_kernel);
    RUN(kernels_of_products_have_names_that_say_what_they_are);
    RUN(kernels_of_passes_and_operations_have_names_that_say_what_they_are);
    RUN(a_kernels_name_is_of_few_letters_and_fits);
    RUN(operands_of_odd_lines_are_packed_first);
    RUN(f32_has_both_kernels);
    RUN(cublaslt_is_estimated_as_long_as_it_takes);
    RUN(the_second_kernel_divides_k_among_blocks);
    RUN(parts_of_a_narrow_product_are_aligned);
    RUN(what_fused_does_not_take_says_why);
    RUN(what_fused_cannot_have_is_an_error);
    RUN(a_product_that_cublaslt_fails_to_run_is_an_error);
    RUN(a_launch_that_the_driver_refuses_is_an_error);
    RUN(an_amax_that_the_driver_does_not_clear_is_an_error);
    RUN(a_problem_that_no_route_runs_is_refused_with_the_reasons_of_both);
    RUN(a_problem_that_cublaslt_has_no_algorithm_for_is_plain);
    RUN(a_product_that_cublaslt_refuses_when_run_takes_the_next_route_for_good);
    RUN(a_refused_epilogue_is_left_to_a_pass);
    RUN(a_split_product_refused_with_its_epilogue_goes_bare_before_it_becomes_plain);
    RUN(a_problem_of_which_every_product_is_refused_becomes_plain);
    RUN(one_shot_calls_keep_the_route_that_was_found);
    RUN(the_warning_gives_the_callers_m_and_n);
    RUN(a_product_that_fails_while_it_runs_is_not_tried_by_another_route);
    RUN(another_route_takes_the_callers_workspace_where_it_is_large_enough_else_the_contexts);
    RUN(another_route_reserves_the_workspace_that_was_not_prepared);
    RUN(another_route_reserves_nothing_while_capturing);
    RUN(a_layer_whose_product_takes_another_route_is_prepared_for_it);
    RUN(a_layer_whose_product_takes_another_route_has_all_of_the_callers_workspace);
    RUN(another_route_that_cannot_be_built_is_an_error_until_it_can);
    RUN(host_memory_may_run_out_while_another_route_is_taken);
    RUN(a_run_after_prepare_allocates_nothing_and_has_workspace);
    RUN(the_callers_workspace_is_taken);
    RUN(a_run_without_prepare_has_no_workspace_and_launches_nothing);
    RUN(a_one_shot_call_does_not_allocate_while_capturing);
    RUN(the_blocks_of_growing_problems_are_less_than_four_times_the_largest);
    RUN(a_block_is_as_large_as_it_must_be_where_there_is_no_memory_for_more);
    RUN(default_streams_that_are_one_share_a_workspace_and_others_do_not);
    RUN(a_child_asks_nothing_of_the_parents_gpu);
    RUN(a_second_context_compiles_nothing_and_never_looks_for_nvrtc);
    RUN(what_is_compiled_is_dumped_where_that_is_asked_for);
    RUN(a_dump_that_cannot_be_written_is_a_warning);
#if !GEMMEPI__WINDOWS
    RUN(the_environment_sends_the_log_to_stderr_and_nothing_else_does);
#endif
    RUN(a_kernel_on_disk_that_the_driver_refuses_is_compiled_anew);
    RUN(libraries_are_loaded_when_first_needed);
    RUN(the_callers_current_context_stays_as_it_was);
    RUN(elementwise_plans_launch_what_they_say);
    RUN(an_elementwise_kernel_that_does_not_compile_is_an_error_with_the_log);
    RUN(a_missing_nvrtc_is_reported_when_an_elementwise_kernel_is_needed);
    RUN(elementwise_calls_may_run_out_of_host_memory_anywhere);
    RUN(with_a_cache_elementwise_calls_may_run_out_of_host_memory_anywhere);
    RUN(on_the_host_elementwise_calls_may_run_out_of_memory_anywhere);
    RUN(an_elementwise_workspace_that_the_device_has_no_memory_for_is_an_error);
    RUN(an_elementwise_launch_that_the_driver_refuses_is_an_error);
    RUN(one_shot_calls_of_an_operation_build_one_plan);
    RUN(strides_of_nothing_are_all_the_same);
    RUN(of_many_one_shot_calls_the_oldest_is_dropped);
    RUN(an_elementwise_run_without_workspace_launches_nothing);
    RUN(a_one_shot_elementwise_call_does_not_allocate_while_capturing);
    RUN(refused_elementwise_arguments_launch_nothing);
    RUN(the_callers_current_context_stays_as_it_was_after_elementwise_calls);
    RUN(a_second_context_compiles_no_elementwise_kernel);
    RUN(threads_build_and_run_at_once);
    RUN(what_is_precompiled_is_there);
    RUN(kernels_are_compiled_side_by_side);
    RUN(threads_that_want_the_same_kernel_wait_for_one);
    RUN(a_problem_that_fails_keeps_no_other_from_being_compiled);
    RUN(a_kernel_that_did_not_compile_is_tried_again);
    RUN(a_list_that_is_none_is_refused);
    RUN(threads_whose_product_is_refused_agree_on_the_next_route);
    RUN(threads_build_and_run_elementwise_operations_at_once);
    return test_finish();
}
