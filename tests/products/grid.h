/* What the tests of products share: problems of a choice of types, answers, and how they run on each device that
   GEMMEPI_TEST_DEVICE names; see problem.h. */
#ifndef GEMMEPI_TESTS_GRID_H
#define GEMMEPI_TESTS_GRID_H

#include "problem.h"
#include "types.h"

static test_device *here;

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static problem typed(const types *t, int64_t m, int64_t n, int64_t k, gemmepi_epilogue epilogue) {
    problem p = problem_plain(t->operands, m, n, k, epilogue);
    p.desc.compute = t->compute;
    p.desc.b.dtype = t->second;
    p.desc.d.dtype = t->results;
    p.desc.c.dtype = p.desc.aux.dtype = p.desc.residual.dtype = t->others ? t->others : t->results;
    if (problem_has_mask(&p)) /* of bits: it has no dtype */
        p.desc.aux.dtype = GEMMEPI_DTYPE_DEFAULT;
    p.desc.bias.dtype = p.desc.bias_grad.dtype = t->vectors;
    return p;
}

static void lay_out(problem *p, int layout) {
    p->desc.order = layout & 1 ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    p->desc.a.transposed = layout >> 1 & 1;
    p->desc.b.transposed = layout >> 2 & 1;
    problem_make_even(p);
}

#define LAYOUTS 8

/* Every matrix that may have a scale gets one; a and b of these modes. */
static void add_scales(problem *p, gemmepi_scale_mode a, gemmepi_scale_mode b) {
    int t;
    for (t = T_SCALE_A; t <= T_SCALE_RESIDUAL; t++)
        if (problem_may_scale(p, tensor_of_scale(t)))
            problem_matrix(p, t)->scale.mode = t == T_SCALE_A ? a : t == T_SCALE_B ? b : GEMMEPI_SCALE_TENSOR;
}

static void holds(const problem *p) {
    CHECK(problem_holds(here, p), "see above");
}

/* Of a test that compares answers: whether it is to look at this epilogue. */
static int takes(const types *t, gemmepi_epilogue epilogue) {
    problem p = typed(t, 1, 1, 1, epilogue);
    return test_takes(problem_key(&p));
}

/* Runs p, holds it against the oracle and returns tensor t as the device left it, to be freed. */
static double *answer(const problem *p, int t) {
    run r;
    double *values;
    CHECK(problem_holds_run(here, p, NULL, &r), "see above");
    values = run_values(&r, t);
    run_free(&r);
    return values;
}

/* Each activation, or each of a list of types, is a test of its own, so that those of a GPU, which compile some hundred kernels,
   run side by side. */
static int grid_activation, grid_types;

static void run_each(const char *name, const char *of, int *at, int count, void (*test)(void)) {
    for (*at = 0; *at < count; (*at)++) {
        static char named[96];
        /* of a share on a GPU one in four, and others of another grid: a test's first key is taken always */
        if (!here->is_host && test_share() > 1 && (*at + (int)strlen(name)) % 4 != 0)
            continue;
        snprintf(named, sizeof named, "%s_%s_%d", name, of, *at);
        test_run(named, test);
    }
}
static void run_each_activation(const char *name, void (*test)(void)) {
    run_each(name, "activation", &grid_activation, ACTIVATION_COUNT, test);
}
static void run_each_types(const char *name, int count, void (*test)(void)) {
    run_each(name, "types", &grid_types, count, test);
}
#define RUN_GRID(function)      run_each_activation(#function, function)
#define RUN_TYPES(function, of) run_each_types(#function, COUNT(of), function)

static const int64_t aligned_sizes[][3] = {{32, 48, 64},
                                           {16, 16, 16},
                                           {144, 32, 128},
                                           {16, 272, 320},
                                           {64, 64, 32}},
                     odd_sizes[][3] = {{37, 29, 31}, {1, 57, 75}, {130, 3, 9},
                                       {9, 10, 300}, {61, 1, 1},  {2, 200, 17}};

static double one_answer(const problem *p, int t) {
    double *values = answer(p, t), value = values[0];
    free(values);
    return value;
}

/* Runs a file's tests on each device. */
static int run_on_devices(void (*run_all)(void)) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        run_all();
        test_device_close(here);
    }
    return test_finish() || count == 0;
}

#endif
