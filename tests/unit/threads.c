/* Threads that share a context: on the fake GPU of fake_cuda.h. */
#include "fake_operations.h"

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
    while (gemmepi__add(&threads_ready, 0) < GPUS)
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
    return test_finish();
}
