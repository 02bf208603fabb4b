/* Threads that share a context: on the fake GPU of fake_cuda.h. */
#include "fake_operations.h"

enum { THREADS = 4, CALLS = 50 };

static gemmepi_context *shared;
static long calls_failed, threads_ready;

static void *call_at_once(void *user) {
    gemmepi_stream stream = (gemmepi_stream)(uintptr_t)(0x100 + 0x100 * *(const int *)user);
    int i;
    count(&threads_ready, 1);
    while (gpi__add(&threads_ready, 0) < THREADS)
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

static gemmepi_plan *shared_plan;

static void *run_at_once(void *user) {
    gemmepi_stream stream = (gemmepi_stream)(uintptr_t)(0x100 + 0x100 * *(const int *)user);
    gemmepi_matmul_desc desc = refusable_product();
    gemmepi_matmul_args args = args_for(&desc);
    int i;
    if (gemmepi_plan_prepare(shared_plan, stream) != GEMMEPI_OK)
        count(&calls_failed, 1);
    count(&threads_ready, 1);
    while (gpi__add(&threads_ready, 0) < THREADS)
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
    while (gpi__add(&threads_ready, 0) < THREADS)
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
    gpu.is_untouched = 1; /* what is cleared there, all threads clear */
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

/* >>all kinds of calls at once, while plans are forgotten: for a sanitizer, which sees what the library reads unguarded */

enum { LOOKERS = 3, LOOKS = 24 };

/* Nothing but the library orders its threads, and what it builds takes long. */
static void *slow_alloc(void *user, size_t size) {
    int i;
    (void)user;
    for (i = 0; i < 20; i++)
        sched_yield();
    return malloc(size);
}
static void plain_free(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

/* A thread, and its own tensors of 12 x 8 elements at most. */
typedef struct looker {
    int number;
    float (*inputs)[96], (*outputs)[96];
    int32_t ends[2];
    void *pointers[1];
} looker;

static float looked_tensors[LOOKERS][8][96];

static gemmepi_operand looked_operand;

static gemmepi_matmul_desc looked_product(int i) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = 1 + i % 12, desc.n = 1 + i / 12, desc.k = 1 + i % 3;
    if (i % 2 == 0)
        return desc;
    desc.formula = "d = silu(v) + b";
    desc.operands = &looked_operand;
    desc.operand_count = 1;
    return desc;
}

static gemmepi_matmul_args looked_args(looker *l, const gemmepi_matmul_desc *desc) {
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    l->pointers[0] = l->inputs[1];
    args.a = l->inputs[0], args.b = l->inputs[1], args.d = l->outputs[0];
    args.operands = desc->formula ? l->pointers : NULL;
    return args;
}

static int look_at_a_plan(looker *l, int i) {
    gemmepi_matmul_desc desc = looked_product(i);
    gemmepi_matmul_args args = looked_args(l, &desc);
    gemmepi_context_details about;
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    char text[2048];
    int failed = gemmepi_plan_matmul(shared, &desc, &plan) || gemmepi_plan_prepare(plan, NULL) ||
                 gemmepi_run_matmul(plan, &args, NULL) || gemmepi_plan_info(plan, &details) ||
                 !gemmepi_plan_explain(plan, text, sizeof text) || gemmepi_context_info(shared, &about);
    gemmepi_plan_destroy(plan);
    return failed;
}

static int call_a_layer(looker *l, int i) {
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    desc.m = 1 + i % 12, desc.n = 4, desc.k = 3;
    desc.activation = GEMMEPI_SILU;
    desc.flags = GEMMEPI_LINEAR_RECOMPUTE | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS |
                 GEMMEPI_LINEAR_BIAS;
    args.a = l->inputs[0], args.b = args.bias = l->inputs[1], args.dy = l->inputs[0];
    args.y = l->outputs[0], args.da = l->outputs[1], args.db = l->outputs[2], args.dbias = l->outputs[3];
    return gemmepi_linear(shared, &desc, &args, NULL) || gemmepi_linear_backward(shared, &desc, &args, NULL);
}

static int call_groups(looker *l, int i) {
    gemmepi_grouped_desc desc;
    gemmepi_grouped_args args;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    desc.product.m = 2 + i % 11, desc.product.n = 4, desc.product.k = 3;
    desc.groups = 2;
    l->ends[0] = 1, l->ends[1] = 2;
    args.product = looked_args(l, &desc.product);
    args.ends = l->ends;
    return gemmepi_grouped(shared, &desc, &args, NULL);
}

static int call_an_operation(looker *l, int i) {
    gemmepi_tensor a, y;
    int64_t shape[2];
    memset(&a, 0, sizeof a);
    shape[0] = 1 + i % 12, shape[1] = 1 + i / 12;
    a.rank = 2, a.shape = shape, a.data = l->inputs[0];
    y = a;
    y.data = l->outputs[4];
    return gemmepi_activation(shared, GEMMEPI_TANH, NAN, &a, &y, NULL) != GEMMEPI_OK;
}

/* What changes how plans are chosen, and what lists kernels; the host has none. */
static int work_ahead(int i) {
    gemmepi_matmul_desc desc = looked_product(2 * (i % 12));
    gemmepi_any_desc problem;
    gemmepi_tune_options options;
    gemmepi_context_details details;
    size_t size = 0;
    memset(&problem, 0, sizeof problem);
    memset(&options, 0, sizeof options);
    problem.matmul = &desc;
    options.again = 1, options.threads = 2;
    if (gemmepi_context_info(shared, &details) || gemmepi_precompile(shared, &problem, 1, 2, NULL, NULL) ||
        gemmepi_tune(shared, &problem, 1, &options, NULL, NULL))
        return 1;
    return !details.is_host && gemmepi_bundle_write(shared, NULL, 0, &size);
}

static void *look_around(void *user) {
    looker *l = (looker *)user;
    gemmepi_stream stream = NULL;
    int i, failed = gemmepi_stream_create(shared, &stream);
    count(&threads_ready, 1);
    while (__atomic_load_n(&threads_ready, __ATOMIC_RELAXED) < LOOKERS)
        sched_yield();
    for (i = 0; i < LOOKS && !failed; i++) {
        gemmepi_matmul_desc desc = looked_product((i + 5 * l->number) % 36);
        gemmepi_matmul_args args = looked_args(l, &desc);
        failed = gemmepi_matmul(shared, &desc, &args, stream) || look_at_a_plan(l, i + 12) ||
                 call_a_layer(l, i) || call_groups(l, i) || call_an_operation(l, i) ||
                 (l->number == 0 && i % 4 == 0 && work_ahead(i));
        if (failed)
            printf("call %d: %s\n", i, gemmepi_last_error());
    }
    count(&calls_failed, failed || gemmepi_stream_destroy(shared, stream));
    return NULL;
}

static void calls_of_all_kinds_go_on_while_plans_are_forgotten(void) {
    static looker lookers[LOOKERS];
    int on_gpu;
    memset(&looked_operand, 0, sizeof looked_operand);
    looked_operand.name = "b", looked_operand.kind = GEMMEPI_PER_COLUMN;
    for (on_gpu = 0; on_gpu < 2; on_gpu++) {
        gemmepi_config config = config_with_all_routes();
        pthread_t threads[LOOKERS];
        int i;
        config.device = on_gpu ? GEMMEPI_DEVICE(0) : GEMMEPI_DEVICE_HOST;
        config.allocator.alloc = slow_alloc, config.allocator.free = plain_free;
        gpu.is_untouched = 1, gpu.archs_spared = 10000; /* plans are forgotten, and compiled again */
        calls_failed = threads_ready = 0;
        shared = open_fake(&config);
        for (i = 0; i < LOOKERS; i++) {
            lookers[i].number = i;
            lookers[i].inputs = looked_tensors[i], lookers[i].outputs = looked_tensors[i] + 2;
            CHECK(pthread_create(&threads[i], NULL, look_around, &lookers[i]) == 0, "no thread");
        }
        for (i = 0; i < LOOKERS; i++)
            pthread_join(threads[i], NULL);
        CHECK(calls_failed == 0, "%ld threads failed", calls_failed);
        gemmepi_destroy(shared);
        nothing_is_left();
    }
}

/* >>a context and a thread for each of several GPUs */

enum { GPUS = 3 };
static gemmepi_context *of_gpu[GPUS];

/* All that a program does with a GPU of its own, while another GPU's context is current to its thread. */
static void *work_on_its_gpu(void *user) {
    const int mine = *(const int *)user;
    gemmepi_context *context = of_gpu[mine];
    gemmepi_matmul_desc descs[3];
    gemmepi_stream stream = NULL;
    void *pointer = NULL;
    float value = 1;
    int i, failed;
    descs[0] = split_product(), descs[1] = lt_product(), descs[2] = pass_alone();
    only_gpu = mine;
    stack[0] = primary_of((mine + 1) % GPUS);
    count(&threads_ready, 1);
    while (gpi__add(&threads_ready, 0) < GPUS)
        sched_yield();
    failed = gemmepi_stream_create(context, &stream) || gemmepi_alloc(context, 1000, &pointer) ||
             gemmepi_upload(context, pointer, &value, sizeof value, stream);
    for (i = 0; i < CALLS && !failed; i++) {
        gemmepi_matmul_desc *desc = &descs[i % 3];
        gemmepi_matmul_args args = args_for(desc);
        gemmepi_plan *plan = NULL;
        desc->m = 8 + 8 * (i % 7);
        failed = gemmepi_plan_matmul(context, desc, &plan) || gemmepi_plan_prepare(plan, stream) ||
                 gemmepi_run_matmul(plan, &args, stream) || gemmepi_matmul(context, desc, &args, stream);
        gemmepi_plan_destroy(plan);
    }
    failed = failed || gemmepi_download(context, &value, pointer, sizeof value, stream) ||
             gemmepi_synchronize(context, stream) || gemmepi_free(context, pointer) ||
             gemmepi_stream_destroy(context, stream);
    gemmepi_destroy(context);
    count(&calls_failed, failed || depth != 0 || stack[0] != primary_of((mine + 1) % GPUS));
    return NULL;
}

static void contexts_of_several_gpus_each_keep_to_their_own(void) {
    gemmepi_config config = fake_config();
    pthread_t threads[GPUS];
    int numbers[GPUS], i;
    gpu.device_count = GPUS;
    calls_failed = threads_ready = 0;
    for (i = 0; i < GPUS; i++) {
        gemmepi_context_details details;
        config.device = GEMMEPI_DEVICE(i);
        of_gpu[i] = open_fake(&config);
        CHECK(gemmepi_context_info(of_gpu[i], &details) == GEMMEPI_OK && details.device == i, "GPU %d is %d",
              i, details.device);
    }
    for (i = 0; i < GPUS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, work_on_its_gpu, &numbers[i]) != 0) {
            printf("the system gives no thread\n");
            exit(1);
        }
    }
    for (i = 0; i < GPUS; i++)
        pthread_join(threads[i], NULL);
    CHECK(calls_failed == 0, "%ld threads failed: %s", calls_failed, gemmepi_last_error());
    nothing_is_left();
}

int main(void) {
    keep_libraries_open();
    RUN(threads_build_and_run_at_once);
    RUN(contexts_of_several_gpus_each_keep_to_their_own);
    RUN(threads_whose_product_is_refused_agree_on_the_next_route);
    RUN(threads_build_and_run_elementwise_operations_at_once);
    RUN(calls_of_all_kinds_go_on_while_plans_are_forgotten);
    return test_finish();
}
