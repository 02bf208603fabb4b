/* Plans that take a candidate of the route fused which a test names, whatever is fastest. */
#ifndef GEMMEPI_TESTS_GPU_CANDIDATE_H
#define GEMMEPI_TESTS_GPU_CANDIDATE_H

#include "../products/problem.h"

/* GEMMEPI_TEST_ARCH: the GPU is taken for one of this compute capability, as in 76, whose kernels are those of 7.5 in PTX: the driver of
   a later GPU compiles that. */
static void take_for_other_chip(test_device *device) {
    const char *as = getenv("GEMMEPI_TEST_ARCH");
    if (!as)
        return;
    device->context->arch = atoi(as);
    device->has_fused = 0;
}

static int number_of(const gpi__engine *engine) {
    int i = 0;
    while (gpi__engines[i] != engine)
        i++;
    return i;
}

/* With k whole, and operands as they lie. */
static gpi__candidate candidate_by(const gpi__engine *engine, int shape, int unit_alpha) {
    gpi__candidate candidate;
    memset(&candidate, 0, sizeof candidate);
    candidate.route = GEMMEPI_ROUTE_FUSED;
    candidate.engine = number_of(engine);
    candidate.shape = shape;
    candidate.parts = 1;
    candidate.unit_alpha = unit_alpha;
    return candidate;
}

/* What a plan of the desc is of; to be given to gpi__drop_formulas. */
static gpi__problem problem_of(gemmepi_context *context, const gemmepi_matmul_desc *desc) {
    gpi__problem problem;
    memset(&problem, 0, sizeof problem);
    CHECK(gpi__convert_problem(context, desc, GPI__DEFAULT_ALIGNMENT, &problem) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    return problem;
}

/* The product that a kernel runs: D's scales may be found behind it. */
static gpi__problem product_of(const gpi__problem *problem) {
    return gpi__finds_around(problem) ? gpi__problem_within(problem) : *problem;
}

/* The problem's plan as this candidate, also for what has alpha and C; no other kernel is compiled. NULL where that fails. processors: for
   a grid of as many blocks, each of which has many tiles where these are few; 0: those that there are. */
static gemmepi_plan *plan_by(gemmepi_context *context, const gpi__problem *problem,
                             const gpi__candidate *candidate, int processors) {
    gemmepi_plan *plan = NULL;
    int all = context->multiprocessors;
    gemmepi_status status;
    context->multiprocessors = processors ? processors : all;
    status = gpi__build_plan_by(context, problem, candidate, &plan);
    context->multiprocessors = all;
    CHECK(status == GEMMEPI_OK, "%s", gemmepi_last_error());
    return plan;
}

/* The plan that the product has inside. */
static const gpi__matmul_plan *matmul_of(const gemmepi_plan *plan) {
    return (const gpi__matmul_plan *)plan;
}

/* Destroys the plan, whose runs were by its kernel, not by one chosen for alpha or C. */
static void drop_plan(gemmepi_plan *plan) {
    CHECK(!plan || !gpi__load_pointer(matmul_of(plan)->general_place), "a kernel ran that nobody has named");
    gemmepi_plan_destroy(plan);
}

#endif
