/* cuBLASLt refuses a product that it planned, and another route takes it: on the fake GPU of fake_cuda.h. */
#include "fake_program.h"

/* >>the next route */

static void a_product_that_cublaslt_refuses_when_run_takes_the_next_route_for_good(void) {
    static const int refusals[] = {GPI__CUBLAS_STATUS_NOT_SUPPORTED, GPI__CUBLAS_STATUS_INVALID_VALUE,
                                   GPI__CUBLAS_STATUS_ARCH_MISMATCH, GPI__CUBLAS_STATUS_INTERNAL_ERROR};
    size_t i;
    for (i = 0; i < GPI__COUNT(refusals); i++) {
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
        CHECK(lines_of("2 ") == 1 && strstr(logged, "uses another route") &&
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
    static const int whole[] = {GPI__CUBLASLT_EPILOGUE_BIAS, GPI__CUBLASLT_EPILOGUE_RELU};
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
            for (call = 1; call < gpu.lt_calls && call < (int)GPI__COUNT(gpu.epilogues); call++)
                CHECK(gpu.epilogues[call] == GPI__CUBLASLT_EPILOGUE_DEFAULT, "%d: call %d: epilogue %d", i,
                      call, gpu.epilogues[call]);
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

/* By what comes then, in the first run already: its alpha and its C, too. */
static void what_cublaslt_refuses_may_be_fused(void) {
    int i;
    for (i = 0; i < 3; i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = refusable_product();
        gemmepi_matmul_args args = fused_args();
        const gpi__epilogue_params *ran = &gpu.last_fused.epilogue;
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
                  explain_has(plan,
                              "chosen from, by estimates for compute capability 9.0 (measured on an H200):"),
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
    CHECK(strstr(logged, "m 64, n 32, k 1024 uses another route"), "the log has: %s", logged);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_product_that_fails_while_it_runs_is_not_tried_by_another_route(void) {
    static const struct {
        int code;
        gemmepi_status status;
    } rows[] = {
        {GPI__CUBLAS_STATUS_EXECUTION_FAILED, GEMMEPI_CUBLAS_ERROR},
        {GPI__CUBLAS_STATUS_NOT_INITIALIZED, GEMMEPI_CUBLAS_ERROR},
        {GPI__CUBLAS_STATUS_ALLOC_FAILED, GEMMEPI_OUT_OF_MEMORY},
    };
    size_t i;
    int split;
    for (i = 0; i < GPI__COUNT(rows); i++)
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
            break_function("nvrtcCompileProgram", GPI__NVRTC_ERROR_COMPILATION);
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

/* >>its workspace */

static int lies_in(const void *pointer, const void *block, size_t size) {
    uintptr_t at = (uintptr_t)pointer, start = (uintptr_t)block;
    return at >= start && at < start + size;
}

static void another_route_takes_the_callers_workspace_where_it_is_large_enough_else_the_contexts(void) {
    static const size_t sizes[] = {LT_WORKSPACE, SPLIT_WORKSPACE - 1, SPLIT_WORKSPACE};
    size_t i;
    for (i = 0; i < GPI__COUNT(sizes); i++) {
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
    break_function("cuMemAlloc_v2", GPI__CUDA_ERROR_OUT_OF_MEMORY);
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

/* >>in a layer */

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
    desc.m = DEPTH, desc.n = desc.k = EDGE;
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

int main(void) {
    keep_libraries_open();
    RUN(a_product_that_cublaslt_refuses_when_run_takes_the_next_route_for_good);
    RUN(a_refused_epilogue_is_left_to_a_pass);
    RUN(a_split_product_refused_with_its_epilogue_goes_bare_before_it_becomes_plain);
    RUN(what_cublaslt_refuses_may_be_fused);
    RUN(a_problem_of_which_every_product_is_refused_becomes_plain);
    RUN(one_shot_calls_keep_the_route_that_was_found);
    RUN(the_warning_gives_the_callers_m_and_n);
    RUN(a_product_that_fails_while_it_runs_is_not_tried_by_another_route);
    RUN(another_route_that_cannot_be_built_is_an_error_until_it_can);
    RUN(another_route_takes_the_callers_workspace_where_it_is_large_enough_else_the_contexts);
    RUN(another_route_reserves_the_workspace_that_was_not_prepared);
    RUN(another_route_reserves_nothing_while_capturing);
    RUN(a_layer_whose_product_takes_another_route_is_prepared_for_it);
    RUN(a_layer_whose_product_takes_another_route_has_all_of_the_callers_workspace);
    return test_finish();
}
