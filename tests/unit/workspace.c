/* Workspace: who gives it, when it is reserved, and what needs it: on the fake GPU of fake_cuda.h. */
#include "fake_operations.h"

/* >>products */

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

/* ACCUMULATE's C is D: the sentence has the name that the caller has given. */
static void a_d_that_is_added_to_does_not_lie_in_the_workspace(void) {
    planned p = planned_begin(80, 0);
    p.desc.m = p.desc.n = 128, p.desc.k = 8192;
    p.desc.epilogue = GEMMEPI_NONE;
    p.desc.flags = GEMMEPI_ACCUMULATE;
    p.args.bias = p.args.c = NULL, p.args.beta = NULL;
    if (planned_plan(&p)) {
        CHECK(p.details.workspace_size > 256, "%s, %d bytes", p.details.route_name,
              (int)p.details.workspace_size);
        p.args.workspace = p.args.d;
        p.args.workspace_size = p.details.workspace_size;
        CHECK(gemmepi_run_matmul(p.plan, &p.args, NULL) == GEMMEPI_INVALID_ARGUMENT &&
                  sentence_has("overlaps args.d "),
              "%s", gemmepi_last_error());
        CHECK(gpu.launches == 0, "%ld launches", gpu.launches);
    }
    planned_end(&p);
}

/* >>a context's blocks */

static void device_memory_that_runs_out_is_reported(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = lt_product();
    gemmepi_matmul_args args = args_for(&desc);
    void *pointer = memory;
    break_function("cuMemAlloc_v2", GPI__CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(gemmepi_alloc(context, 12345, &pointer) == GEMMEPI_OUT_OF_MEMORY, "%s", gemmepi_last_error());
    CHECK(pointer == NULL && sentence_has("12345"), "%s", gemmepi_last_error());
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OUT_OF_MEMORY, "%s", gemmepi_last_error());
    CHECK(gpu.products == 0, "it ran all the same");
    gpu.fails = NULL;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Small ones, and those of 64 MiB and more. */
static void the_blocks_of_growing_problems_are_less_than_four_times_the_largest(void) {
    static const int64_t edges[] = {64, 4096};
    size_t i;
    for (i = 0; i < GPI__COUNT(edges); i++) {
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
    run->status = gemmepi_run_matmul(run->plan, &args, (gemmepi_stream)(uintptr_t)GPI__CU_STREAM_PER_THREAD);
    return NULL;
}

static void default_streams_that_are_one_share_a_workspace_and_others_do_not(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = split_product();
    gemmepi_matmul_args args = args_for(&desc);
    gemmepi_stream legacy = (gemmepi_stream)(uintptr_t)GPI__CU_STREAM_LEGACY;
    prepared run = {NULL, GEMMEPI_OK};
    pthread_t thread;
    CHECK(gemmepi_plan_matmul(context, &desc, &run.plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(run.plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_run_matmul(run.plan, &args, legacy) == GEMMEPI_OK, "NULL's is legacy's: %s",
          gemmepi_last_error());
    run_on_this_threads_default_stream(&run);
    CHECK(run.status == GEMMEPI_BUFFER_TOO_SMALL, "the thread's own stream took another's workspace");
    CHECK(gemmepi_plan_prepare(run.plan, (gemmepi_stream)(uintptr_t)GPI__CU_STREAM_PER_THREAD) == GEMMEPI_OK,
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

static void a_block_is_of_one_stream_thread_and_use(void) {
    static const uintptr_t handles[] = {0, GPI__CU_STREAM_PER_THREAD, 0x5000, 0x6000};
    gpi__stream_key keys[10];
    gpi__block block;
    int i, j, count = 0;
    memset(&block, 0, sizeof block);
    for (i = 0; i < 4; i++) {
        keys[count++] = gpi__key_of_block((gemmepi_stream)handles[i], 0);
        keys[count++] = gpi__key_of_block((gemmepi_stream)handles[i], 1);
    }
    keys[count] = keys[2], keys[count++].thread += 1;
    keys[count] = keys[2], keys[count++].numbered_by += 8;
    for (i = 0; i < count; i++)
        for (j = 0; j < count; j++) {
            block.stream = keys[i];
            CHECK(gpi__is_of_stream(&block, keys[j]) == (i == j), "%d and %d", i, j);
        }
    block.stream = gpi__key_of_stream((gemmepi_stream)(uintptr_t)GPI__CU_STREAM_LEGACY);
    CHECK(gpi__is_of_stream(&block, keys[0]), "the legacy stream is NULL's");
}

static void a_workspace_of_the_caller_s_is_a_multiple_of_256(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    uintptr_t off;
    for (off = 0; off <= 512; off++)
        CHECK((gpi__check_run(context, NULL, (void *)(0x1000 + off), 100) == GEMMEPI_OK) == (off % 256 == 0),
              "%d bytes", (int)off);
    gemmepi_destroy(context);
}

/* >>element-wise operations */

static void an_elementwise_workspace_that_the_device_has_no_memory_for_is_an_error(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_plan *plan;
    element_call c;
    large_sum_call(&c);
    plan = plan_elementwise(context, &c);
    break_function("cuMemAlloc_v2", GPI__CUDA_ERROR_OUT_OF_MEMORY);
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

/* A run with C takes another kernel in the same workspace, whose tiles may be others. */
static void the_workspace_of_groups_is_enough_for_runs_with_c(void) {
    static const int64_t sizes[][4] = {{8, 700, 784, 72},     {64, 16384, 4096, 2048},
                                       {64, 512, 4096, 2048}, {128, 32768, 2048, 768},
                                       {4, 640, 528, 64},     {4096, 700, 656, 64}};
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE, GEMMEPI_RESIDUAL, GEMMEPI_SILU | GEMMEPI_GATED,
                                                 GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX};
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    size_t i, j;
    gpu.other_arch = 90;
    context = open_fake(&config);
    context->multiprocessors = 132;
    for (i = 0; i < GPI__COUNT(sizes); i++)
        for (j = 0; j <= GPI__COUNT(epilogues); j++) { /* last with scales that are found */
            gemmepi_grouped_desc desc;
            gemmepi_plan *made = NULL;
            const gpi__grouped_plan *plan, *general = NULL;
            memset(&desc, 0, sizeof desc);
            desc.grouping = GEMMEPI_GROUPS_OF_ROWS, desc.groups = (int)sizes[i][0];
            desc.product.m = sizes[i][1], desc.product.n = sizes[i][2], desc.product.k = sizes[i][3];
            desc.product.a.dtype = desc.product.b.dtype = desc.product.d.dtype = GEMMEPI_BF16;
            desc.product.b.transposed = 1;
            if (j < GPI__COUNT(epilogues)) {
                desc.product.epilogue = epilogues[j];
            } else {
                desc.product.flags = GEMMEPI_FIND_SCALE_D, desc.product.d.dtype = GEMMEPI_E4M3;
                desc.product.d.scale.mode = GEMMEPI_SCALE_VECTOR_128;
            }
            CHECK(gemmepi_plan_grouped(context, &desc, &made) == GEMMEPI_OK, "%s", gemmepi_last_error());
            if (!made)
                continue;
            plan = (const gpi__grouped_plan *)made;
            CHECK(plan->unit_alpha && gpi__general_groups(plan, &general) == GEMMEPI_OK, "%s: %s",
                  plan->not_fused ? plan->not_fused : "fused", gemmepi_last_error());
            CHECK(general && gpi__grouped_workspace(general) <= gpi__grouped_workspace(plan),
                  "%d groups of %d x %d: %d bytes, with C %d", (int)sizes[i][0], (int)sizes[i][1],
                  (int)sizes[i][2], (int)gpi__grouped_workspace(plan),
                  general ? (int)gpi__grouped_workspace(general) : 0);
            gemmepi_plan_destroy(made);
        }
    gemmepi_destroy(context);
    gpu.other_arch = 0;
}

/* >>layers */

/* Addresses of a layer's tensors, each far from the others. */
static gemmepi_linear_args far_layer(void) {
    gemmepi_linear_args args;
    char *at = (char *)((uintptr_t)1 << 40);
    memset(&args, 0, sizeof args);
    args.a = at, args.b = at + (1ull << 32), args.preact = at + (2ull << 32), args.dy = at + (3ull << 32);
    args.da = at + (4ull << 32), args.db = at + (5ull << 32), args.dbias = at + (6ull << 32);
    args.workspace = at + (7ull << 32);
    return args;
}

static void a_layer_runs_in_the_callers_workspace_from_its_exact_size_on(void) {
    static const int64_t sizes[][3] = {{128, 128, 128}, {48, 72, 80}, {1024, 264, 512}, {130, 66, 34}};
    size_t i;
    for (i = 0; i < GPI__COUNT(sizes); i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_linear_args args = far_layer();
        gemmepi_plan_details details;
        gemmepi_linear_desc desc;
        gemmepi_plan *plan = NULL;
        long before;
        memset(&desc, 0, sizeof desc);
        desc.m = sizes[i][0], desc.n = sizes[i][1], desc.k = sizes[i][2];
        desc.a.dtype = GEMMEPI_BF16, desc.activation = GEMMEPI_SILU;
        desc.flags = GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB |
                     GEMMEPI_LINEAR_DBIAS;
        gpu.is_untouched = 1;
        CHECK(gemmepi_plan_linear_backward(context, &desc, &plan) == GEMMEPI_OK &&
                  gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.workspace_size > 0,
              "%s", gemmepi_last_error());
        before = gpu.device_allocations;
        args.workspace_size = details.workspace_size - 1;
        CHECK(gemmepi_run_linear_backward(plan, &args, NULL) == GEMMEPI_BUFFER_TOO_SMALL &&
                  sentence_has("args.workspace_size"),
              "%d: %s", (int)i, gemmepi_last_error());
        args.workspace_size = 0;
        CHECK(gemmepi_run_linear_backward(plan, &args, NULL) == GEMMEPI_BUFFER_TOO_SMALL &&
                  sentence_has("args.workspace_size"),
              "%d, of 0 bytes: %s", (int)i, gemmepi_last_error());
        args.workspace_size = details.workspace_size, args.workspace = (char *)args.workspace + 128;
        CHECK(gemmepi_run_linear_backward(plan, &args, NULL) == GEMMEPI_MISALIGNED, "%d: %s", (int)i,
              gemmepi_last_error());
        args.workspace_size = (details.workspace_size / 256 + 2) * 256; /* all of it is the run's */
        args.workspace = (char *)args.db - args.workspace_size + 256;
        CHECK(gemmepi_run_linear_backward(plan, &args, NULL) == GEMMEPI_INVALID_ARGUMENT &&
                  sentence_has("args.workspace") && sentence_has("args.db"),
              "%d: %s", (int)i, gemmepi_last_error());
        args.workspace_size = details.workspace_size;
        args.workspace = (char *)args.db - (details.workspace_size / 256) * 256;
        if (details.workspace_size % 256)
            CHECK(gemmepi_run_linear_backward(plan, &args, NULL) == GEMMEPI_INVALID_ARGUMENT &&
                      sentence_has("args.workspace") && sentence_has("args.db"),
                  "%d: %s", (int)i, gemmepi_last_error());
        args.workspace = NULL, args.workspace_size = 0;
        CHECK(gemmepi_run_linear_backward(plan, &args, NULL) == GEMMEPI_BUFFER_TOO_SMALL &&
                  sentence_has("gemmepi_plan_prepare"),
              "%d: %s", (int)i, gemmepi_last_error());
        CHECK(gpu.products == 0 && calls_of_the_driver() == 0, "%d: something was launched", (int)i);
        args.workspace = far_layer().workspace, args.workspace_size = details.workspace_size;
        CHECK(gemmepi_run_linear_backward(plan, &args, NULL) == GEMMEPI_OK, "%d: %s", (int)i,
              gemmepi_last_error());
        CHECK(gpu.device_allocations == before, "%d: %ld blocks", (int)i, gpu.device_allocations - before);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

int main(void) {
    keep_libraries_open();
    RUN(a_run_after_prepare_allocates_nothing_and_has_workspace);
    RUN(the_callers_workspace_is_taken);
    RUN(a_run_without_prepare_has_no_workspace_and_launches_nothing);
    RUN(a_one_shot_call_does_not_allocate_while_capturing);
    RUN(the_workspace_of_runs_with_alpha_is_counted_from_the_beginning);
    RUN(the_workspace_of_groups_is_enough_for_runs_with_c);
    RUN(runs_with_alpha_reserve_nothing_themselves);
    RUN(scalars_on_the_device_do_not_lie_in_the_workspace);
    RUN(a_d_that_is_added_to_does_not_lie_in_the_workspace);
    RUN(device_memory_that_runs_out_is_reported);
    RUN(the_blocks_of_growing_problems_are_less_than_four_times_the_largest);
    RUN(a_block_is_as_large_as_it_must_be_where_there_is_no_memory_for_more);
    RUN(default_streams_that_are_one_share_a_workspace_and_others_do_not);
    RUN(a_block_is_of_one_stream_thread_and_use);
    RUN(a_workspace_of_the_caller_s_is_a_multiple_of_256);
    RUN(an_elementwise_workspace_that_the_device_has_no_memory_for_is_an_error);
    RUN(an_elementwise_run_without_workspace_launches_nothing);
    RUN(a_one_shot_elementwise_call_does_not_allocate_while_capturing);
    RUN(a_layer_runs_in_the_callers_workspace_from_its_exact_size_on);
    return test_finish();
}
