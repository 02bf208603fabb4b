/* The route lt: cuBLASLt runs product and epilogue in one kernel. */
#ifndef GEMMEPI_PRODUCT_ROUTES_LT_H
#define GEMMEPI_PRODUCT_ROUTES_LT_H

#include "../matmul_plan.h"
#include "lt_product.h"

#define GPI__LT_REFUSED_RUN "cuBLASLt refused it when it was run"

static gemmepi_status gpi__lt_route_build(gpi__matmul_plan *plan, const gpi__candidate *candidate) {
    gpi__lt_product *lt = (gpi__lt_product *)plan->built;
    gpi__lt_question question;
    gemmepi_status status = gpi__open_lt(plan->base.context);
    if (status)
        return status;
    question = gpi__lt_question_of(plan->base.context, &plan->problem, GPI__LT_WHOLE);
    status = gpi__lt_build(&question, candidate, lt);
    plan->algorithm = lt->algorithm;
    plan->workspace_size = lt->workspace_size;
    return status;
}

static const char *gpi__lt_route_needs_other_plan(const gpi__matmul_plan *plan,
                                                  const gpi__arguments *arguments) {
    return gpi__lt_needs_other_plan(plan->base.context, (const gpi__lt_product *)plan->built, arguments);
}

/* With an epilogue of its own, which the route lt has but for sums of operands, cuBLASLt is not tried again: the bare product is
   left. */
static void gpi__lt_route_give_up(const gpi__matmul_plan *plan, gpi__candidates *candidates) {
    int i;
    (void)plan;
    gpi__refuse_route(candidates, GEMMEPI_ROUTE_LT, GPI__LT_REFUSED_RUN);
    for (i = 0; i < candidates->count; i++)
        candidates->list[i].bare = candidates->list[i].route == GEMMEPI_ROUTE_SPLIT;
}

static gemmepi_status gpi__lt_route_run(const gpi__matmul_plan *plan, const gpi__arguments *arguments,
                                        char *workspace, gemmepi_stream stream) {
    gpi__lt_call call = gpi__lt_call_of(arguments, workspace);
    return gpi__lt_run(plan->base.context, (const gpi__lt_product *)plan->built, arguments, &call, stream);
}

static void gpi__lt_route_describe(const gpi__matmul_plan *plan, gemmepi_plan_details *details) {
    gpi__lt_describe_algo(&plan->base.context->cublaslt, (const gpi__lt_product *)plan->built, details);
    details->launches = 1;
}

static void gpi__lt_route_explain(const gpi__matmul_plan *plan, const char *kernel, gpi__text *text) {
    gpi__append(text, "  %s\n", kernel);
    gpi__lt_explain_product(plan->base.context, text, (const gpi__lt_product *)plan->built);
}

#endif
