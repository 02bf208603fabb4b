/* The route lt: cuBLASLt runs product and epilogue in one kernel. */
#ifndef GEMMEPI_PRODUCT_ROUTES_LT_H
#define GEMMEPI_PRODUCT_ROUTES_LT_H

#include "../matmul_plan.h"
#include "lt_product.h"

#define GEMMEPI__LT_REFUSED_RUN "cuBLASLt refused it when it was run"

static gemmepi_status gemmepi__lt_route_build(gemmepi__matmul_plan *plan,
                                              const gemmepi__candidate *candidate) {
    gemmepi__lt_product *lt = (gemmepi__lt_product *)plan->built;
    gemmepi__lt_question question;
    gemmepi_status status = gemmepi__open_lt(plan->base.context);
    if (status)
        return status;
    question = gemmepi__lt_question_of(plan->base.context, &plan->problem, GEMMEPI__LT_WHOLE);
    status = gemmepi__lt_build(&question, candidate, lt);
    plan->algorithm = lt->algorithm;
    plan->workspace_size = lt->workspace_size;
    return status;
}

static const char *gemmepi__lt_route_not_for(const gemmepi__matmul_plan *plan,
                                             const gemmepi__arguments *arguments) {
    return gemmepi__lt_not_for_run(plan->base.context, (const gemmepi__lt_product *)plan->built, arguments);
}

/* With an epilogue of its own, which the route lt has but for sums of operands, cuBLASLt is not tried again: the bare product is
   left. */
static void gemmepi__lt_route_give_up(const gemmepi__matmul_plan *plan, gemmepi__candidates *candidates) {
    int i;
    (void)plan;
    gemmepi__refuse_route(candidates, GEMMEPI_ROUTE_LT, GEMMEPI__LT_REFUSED_RUN);
    for (i = 0; i < candidates->count; i++)
        candidates->list[i].bare = candidates->list[i].route == GEMMEPI_ROUTE_SPLIT;
}

static gemmepi_status gemmepi__lt_route_run(const gemmepi__matmul_plan *plan,
                                            const gemmepi__arguments *arguments, char *workspace,
                                            gemmepi_stream stream) {
    gemmepi__lt_call call = gemmepi__lt_call_of(arguments, workspace);
    return gemmepi__lt_run(plan->base.context, (const gemmepi__lt_product *)plan->built, arguments, &call,
                           stream);
}

static void gemmepi__lt_route_describe(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
    gemmepi__lt_describe_algo(&plan->base.context->cublaslt, (const gemmepi__lt_product *)plan->built,
                              details);
    details->launches = 1;
}

static void gemmepi__lt_route_explain(const gemmepi__matmul_plan *plan, const char *kernel,
                                      gemmepi__text *text) {
    gemmepi__append(text, "  %s\n", kernel);
    gemmepi__lt_explain_product(text, (const gemmepi__lt_product *)plan->built);
}

#endif
