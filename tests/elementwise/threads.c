/* One context under many threads that run element-wise operations. Runs on the devices that GEMMEPI_TEST_DEVICE names; see
   ../products/problem.h. */
#include <pthread.h>

#include "call.h"

enum { THREADS = 8, SHARED = 8, ROUNDS = 24, SEEDS = 60 };

static test_device *here;

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

/* >>own streams: every result is held against the oracle */

/* Calls of every kind of launch, also those that need workspace. */
static call shared_calls[SHARED];
static gemmepi_plan *shared_plans[SHARED];

static call cast_rows(uint64_t flags, gemmepi_scale_mode mode) {
    static const int64_t shape[] = {70, 200};
    call c = call_plain(GEMMEPI_OP_CAST, GEMMEPI_BF16, 2, shape);
    c.o.t[E_Y].dtype = GEMMEPI_E4M3;
    c.o.flags = flags;
    c.o.mode = mode;
    return c;
}

static void make_shared_calls(void) {
    static const int64_t square[] = {72, 104}, tall[] = {9000, 8}, row[] = {8};
    call *c = shared_calls;
    c[0] = call_plain(GEMMEPI_OP_ACTIVATION, GEMMEPI_BF16, 2, square);
    c[0].o.activation = GEMMEPI_GELU_TANH;
    c[1] = call_plain(GEMMEPI_OP_GATED_BACKWARD, GEMMEPI_F16, 2, square);
    c[1].o.activation = GEMMEPI_SILU;
    call_split(&c[1], -1);
    c[2] = call_plain(GEMMEPI_OP_GATED, GEMMEPI_F32, 2, square);
    c[2].o.activation = GEMMEPI_SIGMOID;
    c[2].o.t[E_A].stride[0] = 1, c[2].o.t[E_A].stride[1] = square[0];
    c[3] = call_plain(GEMMEPI_OP_BIAS_GRAD, GEMMEPI_F32, 2, tall);
    c[4] = call_plain(GEMMEPI_OP_LERP_BACKWARD, GEMMEPI_F32, 2, tall);
    strided_set(&c[4].o.t[E_W], GEMMEPI_F32, 1, row);
    strided_set(&c[4].o.t[E_DW], GEMMEPI_F32, 1, row);
    c[5] = cast_rows(GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX, GEMMEPI_SCALE_TENSOR);
    c[6] = cast_rows(GEMMEPI_CAST_Y_SCALE, GEMMEPI_SCALE_OUTER);
    c[7] = cast_rows(GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX, GEMMEPI_SCALE_BLOCK_128);
}

/* A run of a shared plan on values of the thread's own. */
static int shared_holds(worker *w, int which, int round) {
    call c = shared_calls[which];
    image m;
    int good;
    c.seed = (uint64_t)(100 * w->number + round + 1); /* values of its own */
    c.own_workspace = round % 2;
    call_place(&c, &m);
    call_fill(&c, &m);
    good = image_upload(&m, &w->device) == GEMMEPI_OK &&
           plan_on(shared_plans[which], &c, &m, &w->device) == GEMMEPI_OK &&
           image_download(&m, &w->device) == GEMMEPI_OK;
    good = good && image_holds(&c, &m);
    image_free(&m);
    return good;
}

static void *run_shared_plans(void *argument) {
    worker *w = (worker *)argument;
    int i;
    for (i = 0; i < ROUNDS; i++)
        w->failures += !shared_holds(w, (i + w->number) % SHARED, i);
    return NULL;
}

static void *run_shared_one_shots(void *argument) {
    worker *w = (worker *)argument;
    int i;
    for (i = 0; i < ROUNDS; i++) {
        call c = shared_calls[(i + w->number / 2) % SHARED]; /* two threads at a time begin with the same */
        c.seed = (uint64_t)(100 * w->number + i + 1);
        w->failures += !call_holds(&w->device, &c);
    }
    return NULL;
}

static void *run_random(void *argument) {
    worker *w = (worker *)argument;
    int i;
    for (i = 0; i < ROUNDS; i++) {
        call c = call_random((uint64_t)(i * 7 + w->number * 3) % SEEDS);
        c.by_plan = (i + w->number) % 2;
        w->failures += !call_holds(&w->device, &c);
    }
    return NULL;
}

/* Some threads make, run and destroy plans of their own while others run shared ones and one-shots. */
static void *run_everything(void *argument) {
    static void *(*const works[])(void *) = {run_random, run_shared_plans, run_shared_one_shots, run_random};
    return works[((worker *)argument)->number % 4](argument);
}

static void plans_are_made_once_for_all_threads(void) {
    int i;
    make_shared_calls();
    for (i = 0; i < SHARED; i++) {
        image m;
        call_place(&shared_calls[i], &m);
        shared_plans[i] = NULL;
        CHECK(call_plan(&shared_calls[i], &m, here, &shared_plans[i]) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        image_free(&m);
    }
}

static void threads_share_elementwise_plans(void) {
    run_threads(run_shared_plans);
}

static void threads_make_the_same_one_shot_calls(void) {
    run_threads(run_shared_one_shots);
}

static void elementwise_plans_come_and_go_while_others_run(void) {
    run_threads(run_everything);
}

/* >>one stream for all: runs through the context's workspace must not meet in it */

enum { ROWS = 6000, COLUMNS = 8, RUNS = 40, CHECKS = 10 };

/* What each thread adds up and casts, and what that gives when it runs alone. */
typedef struct lone_results {
    float sums[COLUMNS], scales[COLUMNS];
    unsigned char narrow[ROWS * COLUMNS];
} lone_results;

typedef struct lone {
    float *a; /* on the device */
    lone_results *to;
    lone_results alone, again;
} lone;

static lone lones[THREADS];
static gemmepi_plan *sum_plan, *cast_plan;
static const int64_t lone_shape[] = {ROWS, COLUMNS}, lone_row[] = {COLUMNS};

static gemmepi_tensor lone_tensor(void *data, gemmepi_dtype dtype, int rank) {
    gemmepi_tensor t;
    memset(&t, 0, sizeof t);
    t.data = data;
    t.dtype = dtype;
    t.rank = rank;
    t.shape = rank == 1 ? lone_row : lone_shape;
    return t;
}

static gemmepi_elementwise_desc lone_cast(const gemmepi_tensor *a, const gemmepi_tensor *y) {
    gemmepi_elementwise_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.operation = GEMMEPI_OP_CAST;
    desc.scale_mode = GEMMEPI_SCALE_OUTER;
    desc.flags = GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_K_IS_ROWS;
    desc.a = a;
    desc.y = y;
    return desc;
}

/* By plans, or by one-shot calls, which find those of the others. */
static int lone_run(const lone *l, int by_plan) {
    gemmepi_tensor a = lone_tensor(l->a, GEMMEPI_F32, 2), sums = lone_tensor(l->to->sums, GEMMEPI_F32, 1),
                   narrow = lone_tensor(l->to->narrow, GEMMEPI_E4M3, 2);
    gemmepi_elementwise_desc desc = lone_cast(&a, &narrow);
    gemmepi_elementwise_args args;
    memset(&args, 0, sizeof args);
    if (!by_plan) {
        args.y_scale = l->to->scales;
        return gemmepi_bias_grad(here->context, &a, -1, 0, &sums, NULL) == GEMMEPI_OK &&
               gemmepi_elementwise(here->context, &desc, &args, NULL) == GEMMEPI_OK;
    }
    args.a = l->a;
    args.y = l->to->sums;
    if (gemmepi_run_elementwise(sum_plan, &args, NULL) != GEMMEPI_OK)
        return 0;
    args.y = l->to->narrow;
    args.y_scale = l->to->scales;
    return gemmepi_run_elementwise(cast_plan, &args, NULL) == GEMMEPI_OK;
}

static int lone_read(const lone *l, lone_results *results) {
    return gemmepi_download(here->context, results, l->to, sizeof *results, NULL) == GEMMEPI_OK;
}

/* Whole numbers, so that the sums are known. */
static int lone_open(lone *l, int number) {
    float *numbers = (float *)malloc(sizeof(float) * ROWS * COLUMNS), most[COLUMNS];
    double sums[COLUMNS];
    void *a = NULL, *to = NULL;
    int i, good;
    memset(l, 0, sizeof *l);
    memset(sums, 0, sizeof sums);
    memset(most, 0, sizeof most);
    for (i = 0; i < ROWS * COLUMNS; i++) {
        int column = i % COLUMNS;
        numbers[i] = (float)((i * 37 + number * 101) % (64 + number) - 30);
        sums[column] += (double)numbers[i];
        most[column] = fabsf(numbers[i]) > most[column] ? fabsf(numbers[i]) : most[column];
    }
    good = gemmepi_alloc(here->context, sizeof(float) * ROWS * COLUMNS, &a) == GEMMEPI_OK &&
           gemmepi_alloc(here->context, sizeof(lone_results), &to) == GEMMEPI_OK &&
           gemmepi_upload(here->context, a, numbers, sizeof(float) * ROWS * COLUMNS, NULL) == GEMMEPI_OK;
    l->a = (float *)a;
    l->to = (lone_results *)to;
    free(numbers);
    good = good && lone_run(l, 1) && lone_read(l, &l->alone);
    for (i = 0; i < COLUMNS; i++) {
        good = good && (double)l->alone.sums[i] == sums[i];
        good = good && fabsf(l->alone.scales[i] * 448 - most[i]) <= 1e-6f * most[i];
    }
    return good;
}

static void *run_on_one_stream(void *argument) {
    worker *w = (worker *)argument;
    lone *l = &lones[w->number];
    int i, k;
    for (i = 0; i < CHECKS; i++) {
        for (k = 0; k < RUNS; k++)
            w->failures += !lone_run(l, (k + w->number) % 2);
        w->failures += !lone_read(l, &l->again) || memcmp(&l->alone, &l->again, sizeof l->alone) != 0;
    }
    return NULL;
}

static void make_lone_plans(void) {
    gemmepi_tensor a = lone_tensor(NULL, GEMMEPI_F32, 2), sums = lone_tensor(NULL, GEMMEPI_F32, 1),
                   narrow = lone_tensor(NULL, GEMMEPI_E4M3, 2);
    gemmepi_elementwise_desc desc;
    sum_plan = cast_plan = NULL;
    memset(&desc, 0, sizeof desc);
    desc.operation = GEMMEPI_OP_BIAS_GRAD;
    desc.axis = -1;
    desc.a = &a;
    desc.y = &sums;
    CHECK(gemmepi_plan_elementwise(here->context, &desc, &sum_plan) == GEMMEPI_OK &&
              gemmepi_plan_prepare(sum_plan, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    desc = lone_cast(&a, &narrow);
    CHECK(gemmepi_plan_elementwise(here->context, &desc, &cast_plan) == GEMMEPI_OK &&
              gemmepi_plan_prepare(cast_plan, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
}

static void threads_share_one_stream_and_its_workspace(void) {
    gemmepi_plan_details sums, casts;
    int i;
    make_lone_plans();
    CHECK(gemmepi_plan_info(sum_plan, &sums) == GEMMEPI_OK &&
              gemmepi_plan_info(cast_plan, &casts) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    CHECK(here->is_host || (sums.workspace_size && casts.workspace_size),
          "nothing to share: %d and %d bytes of workspace", (int)sums.workspace_size,
          (int)casts.workspace_size);
    for (i = 0; i < THREADS; i++)
        CHECK(lone_open(&lones[i], i), "thread %d alone: %s", i, gemmepi_last_error());
    run_threads(run_on_one_stream);
    for (i = 0; i < THREADS; i++) {
        gemmepi_free(here->context, lones[i].a);
        gemmepi_free(here->context, lones[i].to);
    }
    gemmepi_plan_destroy(sum_plan);
    gemmepi_plan_destroy(cast_plan);
}

/* A refusal names the value of this thread's own call. */
static void *fail_by_oneself(void *argument) {
    worker *w = (worker *)argument;
    static const int64_t shape[] = {4};
    gemmepi_tensor a;
    char value[24];
    int i;
    memset(&a, 0, sizeof a);
    a.rank = 1000 + w->number;
    a.shape = shape;
    snprintf(value, sizeof value, "a.rank is %d", a.rank);
    for (i = 0; i < 500; i++) {
        w->failures += gemmepi_activation(here->context, GEMMEPI_RELU, NAN, &a, &a, w->device.stream) !=
                       GEMMEPI_INVALID_ARGUMENT;
        w->failures += strstr(gemmepi_last_error(), value) == NULL;
    }
    return NULL;
}

static void each_thread_has_its_own_last_error(void) {
    run_threads(fail_by_oneself);
}

int main(void) {
    test_device devices[2];
    int count = test_devices_open(devices), i, plan;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(plans_are_made_once_for_all_threads);
        RUN(threads_share_elementwise_plans);
        RUN(threads_share_one_stream_and_its_workspace);
        RUN(threads_make_the_same_one_shot_calls);
        RUN(elementwise_plans_come_and_go_while_others_run);
        RUN(each_thread_has_its_own_last_error);
        for (plan = 0; plan < SHARED; plan++)
            gemmepi_plan_destroy(shared_plans[plan]);
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
