/* Plans that take a candidate of the route fused which a test names, whatever is fastest. */
#ifndef GEMMEPI_TESTS_GPU_CANDIDATE_H
#define GEMMEPI_TESTS_GPU_CANDIDATE_H

#include "../products/problem.h"

/* What is inside a product's plan. */
static gpi__matmul_plan *matmul_of(gemmepi_plan *plan) {
    return (gpi__matmul_plan *)plan;
}

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
static gpi__candidate candidate_by(const gpi__engine *engine, int shape, int applied) {
    gpi__candidate candidate;
    memset(&candidate, 0, sizeof candidate);
    candidate.route = GEMMEPI_ROUTE_FUSED;
    candidate.engine = number_of(engine);
    candidate.shape = shape;
    candidate.parts = 1;
    candidate.applied = applied;
    return candidate;
}

static gemmepi_status build_candidate(gpi__matmul_plan *plan, const gpi__candidate *candidate) {
    gpi__fused *built = (gpi__fused *)plan->built;
    gemmepi_status status = gpi__build_fused(plan->base.context, &plan->problem, candidate, built);
    plan->workspace_size = gpi__fused_workspace(built);
    plan->applied = candidate->applied;
    return status;
}

/* The plan, built as this candidate; NULL where that fails, which destroys it. processors: for a grid of as many blocks, each of which
   has many tiles where these are few; 0: those that there are. */
static gemmepi_plan *plan_by(gemmepi_plan *plan, const gpi__candidate *candidate, int processors) {
    gemmepi_context *context = matmul_of(plan)->base.context;
    int all = context->multiprocessors;
    gpi__entry entry;
    gemmepi_status status = gpi__enter_relaxed(context, &entry);
    if (!status) {
        gpi__lock(&context->build_lock);
        context->multiprocessors = processors ? processors : all;
        status = build_candidate(matmul_of(plan), candidate);
        context->multiprocessors = all;
        gpi__unlock(&context->build_lock);
        gpi__leave_relaxed(context, &entry);
    }
    CHECK(status == GEMMEPI_OK, "%s", gemmepi_last_error());
    if (!status)
        return plan;
    gemmepi_plan_destroy(plan);
    return NULL;
}

#endif
