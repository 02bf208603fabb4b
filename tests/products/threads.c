/* One context under many threads. Runs on the devices that GEMMEPI_TEST_DEVICE names; see problem.h. */
#include <pthread.h>

#include "problem.h"

enum { THREADS = 8, SHARED = 6, ROUNDS = 24, SEEDS = 40 };

static test_device *here;
static problem shared_problems[SHARED];
static gemmepi_plan *shared_plans[SHARED];

/* A thread with its own stream and memory on the context of all. */
typedef struct worker {
    pthread_t thread;
    test_device device;
    int number, failures;
} worker;

static void worker_open(worker *w, int number) {
    memset(w, 0, sizeof *w);
    w->number = number;
    w->device.context = here->context;
    w->device.is_host = here->is_host;
    memcpy(w->device.name, here->name, sizeof here->name);
    w->failures = gemmepi_stream_create(here->context, &w->device.stream) != GEMMEPI_OK;
}

static void worker_close(worker *w) {
    gemmepi_stream_destroy(here->context, w->device.stream);
    gemmepi_free(here->context, w->device.arena);
    gemmepi_free(here->context, w->device.workspace);
}

/* Runs work on eight threads at once. */
static void run_threads(void *(*work)(void *)) {
    static worker workers[THREADS];
    int i;
    for (i = 0; i < THREADS; i++)
        worker_open(workers + i, i);
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_create(&workers[i].thread, NULL, work, workers + i) == 0, "no thread");
    for (i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK(workers[i].failures == 0, "thread %d: %d failures", i, workers[i].failures);
        worker_close(workers + i);
    }
}

static void *run_shared_plans(void *argument) {
    worker *w = argument;
    int i;
    for (i = 0; i < ROUNDS; i++) {
        int which = (i + w->number) % SHARED;
        problem p = shared_problems[which];
        run r;
        p.own_workspace = i % 2;
        w->failures += !problem_holds_run(&w->device, &p, shared_plans[which], &r);
        run_free(&r);
    }
    return NULL;
}

static void *run_one_shots(void *argument) {
    worker *w = argument;
    int i;
    for (i = 0; i < ROUNDS; i++) {
        problem p = problem_random((uint64_t)(i * 7 + w->number * 3) % SEEDS);
        p.by_plan = p.own_workspace = 0;
        w->failures += !problem_holds(&w->device, &p);
    }
    return NULL;
}

static void *run_own_plans(void *argument) {
    worker *w = argument;
    int i;
    for (i = 0; i < ROUNDS; i++) {
        problem p = problem_random((uint64_t)(i + w->number * 5) % SEEDS);
        p.by_plan = 1;
        if (p.desc.alignment == 0)
            p.desc.alignment = 1;
        w->failures += !problem_holds(&w->device, &p);
    }
    return NULL;
}

/* Some threads make, run and destroy plans of their own while others run shared ones and one-shots. */
static void *run_everything(void *argument) {
    static void *(*const works[])(void *) = {run_own_plans, run_shared_plans, run_own_plans, run_one_shots};
    return works[((worker *)argument)->number % 4](argument);
}

/* >>one stream for all: runs through the context's workspace must not meet in it */

enum { SIDE = 48, RUNS = 100, CHECKS = 20 };

/* One product of each thread, and what it gives when it runs alone. */
typedef struct lone {
    void *memory; /* A, B, D */
    gemmepi_matmul_args args;
    float alone[SIDE * SIDE], again[SIDE * SIDE];
} lone;

static lone lones[THREADS];
static gemmepi_plan *lone_plan;

static int lone_run(lone *l, int times, float *result) {
    int right = 1, i;
    for (i = 0; i < times; i++)
        right &= gemmepi_run_matmul(lone_plan, &l->args, NULL) == GEMMEPI_OK;
    return right && gemmepi_download(here->context, result, l->args.d, sizeof l->alone, NULL) == GEMMEPI_OK;
}

static int lone_open(lone *l, int number) {
    float *values = malloc(2 * sizeof l->alone);
    int i, right;
    for (i = 0; i < 2 * SIDE * SIDE; i++)
        values[i] = (float)((i * 37 + number * 101) % 64 - 32) / 32;
    memset(l, 0, sizeof *l);
    right = gemmepi_alloc(here->context, 3 * sizeof l->alone, &l->memory) == GEMMEPI_OK &&
            gemmepi_upload(here->context, l->memory, values, 2 * sizeof l->alone, NULL) == GEMMEPI_OK;
    l->args.a = l->memory;
    l->args.b = (char *)l->memory + sizeof l->alone;
    l->args.residual = l->args.a;
    l->args.d = (char *)l->memory + 2 * sizeof l->alone;
    free(values);
    return right && lone_run(l, 1, l->alone);
}

static void *run_on_one_stream(void *argument) {
    worker *w = argument;
    lone *l = &lones[w->number];
    int i;
    for (i = 0; i < CHECKS; i++)
        w->failures += !lone_run(l, RUNS, l->again) || memcmp(l->alone, l->again, sizeof l->alone) != 0;
    return NULL;
}

static void threads_share_one_stream_and_its_workspace(void) {
    gemmepi_matmul_desc desc =
        problem_plain(GEMMEPI_F32, SIDE, SIDE, SIDE, GEMMEPI_SILU | GEMMEPI_RESIDUAL).desc;
    int i;
    CHECK(gemmepi_plan_matmul(here->context, &desc, &lone_plan) == GEMMEPI_OK &&
              gemmepi_plan_prepare(lone_plan, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (i = 0; i < THREADS; i++)
        CHECK(lone_open(&lones[i], i), "%s", gemmepi_last_error());
    run_threads(run_on_one_stream);
    for (i = 0; i < THREADS; i++)
        gemmepi_free(here->context, lones[i].memory);
    gemmepi_plan_destroy(lone_plan);
}

/* A refusal names the value of this thread's own call. */
static void *fail_by_oneself(void *argument) {
    worker *w = argument;
    gemmepi_matmul_desc desc = problem_plain(GEMMEPI_F32, 4, 4, 4, GEMMEPI_NONE).desc;
    gemmepi_plan *plan = NULL;
    char value[16];
    int i;
    desc.m = -1000 - w->number;
    snprintf(value, sizeof value, "-%d", 1000 + w->number);
    for (i = 0; i < 500; i++) {
        w->failures += gemmepi_plan_matmul(here->context, &desc, &plan) != GEMMEPI_INVALID_ARGUMENT;
        w->failures += strstr(gemmepi_last_error(), value) == NULL;
    }
    return NULL;
}

static void threads_share_plans(void) {
    run_threads(run_shared_plans);
}

static void threads_make_one_shot_calls(void) {
    run_threads(run_one_shots);
}

static void plans_come_and_go_while_others_run(void) {
    run_threads(run_everything);
}

static void each_thread_has_its_own_last_error(void) {
    run_threads(fail_by_oneself);
}

/* Random problems that run something, each of its own kernel. */
static void plans_are_made_once_for_all_threads(void) {
    uint64_t seed = 1000;
    int i;
    for (i = 0; i < SHARED; seed += 5) {
        shared_problems[i] = problem_random(seed);
        if (problem_is_empty(shared_problems + i))
            continue;
        if (shared_problems[i].desc.alignment == 0)
            shared_problems[i].desc.alignment = 1;
        shared_problems[i].by_plan = 1;
        shared_plans[i] = NULL;
        CHECK(gemmepi_plan_matmul(here->context, &shared_problems[i].desc, shared_plans + i) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        i++;
    }
}

static long kernels_so_far(void) {
    gemmepi_context_details details;
    CHECK(gemmepi_context_info(here->context, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return (long)(details.kernels_compiled + details.kernels_from_disk);
}

/* Plans of them find every kernel in memory. */
static void what_is_precompiled_is_there(void) {
    enum { MANY = 16 };
    problem list[MANY];
    gemmepi_any_desc problems[MANY];
    long before;
    int i;
    memset(problems, 0, sizeof problems);
    for (i = 0; i < MANY; i++) {
        list[i] = problem_random(4000 + 5 * (uint64_t)i);
        problems[i].matmul = &list[i].desc;
    }
    CHECK(gemmepi_precompile(here->context, problems, MANY, 0, NULL, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    before = kernels_so_far();
    for (i = 0; i < MANY; i++) {
        gemmepi_plan *plan = NULL;
        CHECK(gemmepi_plan_matmul(here->context, &list[i].desc, &plan) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        gemmepi_plan_destroy(plan);
    }
    CHECK(kernels_so_far() == before, "%ld kernels more", kernels_so_far() - before);
}

int main(void) {
    test_device devices[2];
    int count = test_devices_open(devices), i, plan;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(plans_are_made_once_for_all_threads);
        RUN(threads_share_plans);
        RUN(threads_share_one_stream_and_its_workspace);
        RUN(threads_make_one_shot_calls);
        RUN(plans_come_and_go_while_others_run);
        RUN(each_thread_has_its_own_last_error);
        RUN(what_is_precompiled_is_there);
        for (plan = 0; plan < SHARED; plan++)
            gemmepi_plan_destroy(shared_plans[plan]);
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
