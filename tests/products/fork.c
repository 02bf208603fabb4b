/* A fork() while other threads use the library: the child is told, and makes a context of its own. On the host alone, because
   CUDA itself does not survive a fork. */
#include "test.h"

#if defined(_WIN32)
int main(void) {
    return test_finish();
}
#else

#include "gemmepi.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, FORKS = 400, N = 4, PATIENCE = 20 };

static gemmepi_context *parents;
static gemmepi_plan *parents_plan;
static float one[N * N], result[N * N];
static volatile int stops;

static gemmepi_matmul_desc product_of(int n) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = n;
    desc.n = desc.k = N;
    desc.batch = 1;
    return desc;
}

static gemmepi_context *host_context(void) {
    gemmepi_context *context = NULL;
    gemmepi_config config;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    return gemmepi_create(&config, &context) == GEMMEPI_OK ? context : NULL;
}

static gemmepi_status multiply(gemmepi_context *context, int n, float *d) {
    gemmepi_matmul_desc desc = product_of(n);
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = args.b = one;
    args.d = d;
    return gemmepi_matmul(context, &desc, &args, NULL);
}

/* Takes the context's locks as often as it can. */
static void *keep_busy(void *user) {
    float own[N * N];
    int round = 0;
    (void)user;
    while (!stops) {
        gemmepi_context *context = round % 64 == 0 ? host_context() : NULL;
        multiply(parents, 1 + round++ % N, own);
        gemmepi_destroy(context);
    }
    return NULL;
}

static int is_told(gemmepi_status status) {
    return status == GEMMEPI_INVALID_ARGUMENT && strstr(gemmepi_last_error(), "made before fork()") != NULL;
}

/* What is wrong in the child, as its exit status; 0: nothing. */
static int be_a_child(void) {
    gemmepi_matmul_desc desc = product_of(N);
    gemmepi_matmul_args args;
    gemmepi_plan *plan = NULL;
    gemmepi_context *context;
    gemmepi_context_details details;
    void *memory = NULL;
    size_t size;
    memset(&args, 0, sizeof args);
    args.a = args.b = one;
    args.d = result;
    if (!is_told(multiply(parents, N, result)))
        return 1;
    if (!is_told(gemmepi_plan_matmul(parents, &desc, &plan)) || plan)
        return 2;
    if (!is_told(gemmepi_run_matmul(parents_plan, &args, NULL)))
        return 3;
    if (!is_told(gemmepi_bundle_write(parents, NULL, 0, &size)) ||
        !is_told(gemmepi_context_info(parents, &details)) || !is_told(gemmepi_alloc(parents, 16, &memory)))
        return 4;
    gemmepi_plan_destroy(parents_plan);
    gemmepi_destroy(parents);
    context = host_context();
    if (!context || multiply(context, N, result) || result[0] != N || result[N * N - 1] != N)
        return 5;
    gemmepi_destroy(context);
    return 0;
}

static int fork_once(void) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE); /* ends a child that hangs */
        _exit(be_a_child());
    }
    return child < 0 || waitpid(child, &status, 0) != child     ? 100
           : WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? 101
           : WIFEXITED(status)                                  ? WEXITSTATUS(status)
                                                                : 102;
}

static void a_child_is_told_and_makes_its_own_context_while_the_parents_threads_work(void) {
    pthread_t threads[THREADS];
    int i;
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, keep_busy, NULL) == 0, "no thread");
    for (i = 0; i < FORKS && !test_failures_here; i++) {
        int wrong = fork_once();
        CHECK(wrong == 0,
              "fork %d: %d (100 no child, 101 it hung, 102 it crashed, else what be_a_child found)", i,
              wrong);
    }
    stops = 1;
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void the_parent_goes_on_with_its_own(void) {
    CHECK(multiply(parents, N, result) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(result[0] == N, "%g", result[0]);
}

int main(void) {
    gemmepi_matmul_desc desc = product_of(N);
    int i;
    for (i = 0; i < N * N; i++)
        one[i] = 1;
    parents = host_context();
    if (!parents || gemmepi_plan_matmul(parents, &desc, &parents_plan)) {
        printf("FAIL no context on the host: %s\n", gemmepi_last_error());
        return 1;
    }
    RUN(a_child_is_told_and_makes_its_own_context_while_the_parents_threads_work);
    RUN(the_parent_goes_on_with_its_own);
    gemmepi_plan_destroy(parents_plan);
    gemmepi_destroy(parents);
    return test_finish();
}
#endif
