/* Each allocation of host memory fails once, in whole programs: on the fake GPU of fake_cuda.h, and on the host. */
#include "fake_operations.h"

/* >>products */

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
            status = gemmepi_plan_prepare(plan, (gemmepi_stream)(uintptr_t)GPI__CU_STREAM_PER_THREAD);
        if (!status)
            status = gemmepi_run_matmul(plan, &args, (gemmepi_stream)(uintptr_t)GPI__CU_STREAM_PER_THREAD);
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

static void with_a_cache_a_program_may_run_out_of_host_memory_anywhere(void) {
    new_folder();
    every_allocation_may_fail(folder, GEMMEPI_DEVICE(0));
    empty_folder();
}

static void the_host_may_run_out_of_memory_anywhere(void) {
    every_allocation_may_fail("", GEMMEPI_DEVICE_HOST);
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

/* >>element-wise operations */

/* A call, a plan and its run in an open context; each that fails is made once more with memory enough. The number of
   failures. */
static int elementwise_program(gemmepi_context *context, int which) {
    gemmepi_stream stream = (gemmepi_stream)(uintptr_t)GPI__CU_STREAM_PER_THREAD;
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

int main(void) {
    keep_libraries_open();
    RUN(a_program_may_run_out_of_host_memory_anywhere);
    RUN(with_a_cache_a_program_may_run_out_of_host_memory_anywhere);
    RUN(the_host_may_run_out_of_memory_anywhere);
    RUN(host_memory_may_run_out_while_another_route_is_taken);
    RUN(elementwise_calls_may_run_out_of_host_memory_anywhere);
    RUN(with_a_cache_elementwise_calls_may_run_out_of_host_memory_anywhere);
    RUN(on_the_host_elementwise_calls_may_run_out_of_memory_anywhere);
    return test_finish();
}
