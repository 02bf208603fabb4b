/* What plans have in common for their users: one handle, whatever it is that it runs. */
#ifndef GEMMEPI_PLANS_PLANS_H
#define GEMMEPI_PLANS_PLANS_H

#include "../grouped/explain.h"
#include "../product/explain.h"
#ifndef GEMMEPI_NO_LINEAR
#include "../linear/explain.h"
#endif

GEMMEPI_API void gemmepi_plan_destroy(gemmepi_plan *plan) {
    if (plan && !gemmepi__is_of_parent(plan->context))
        gemmepi__release_plan(plan);
}

GEMMEPI_API gemmepi_status gemmepi_plan_prepare(const gemmepi_plan *plan, gemmepi_stream stream) {
    if (!plan)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "plan is NULL");
    if (gemmepi__came_by_fork(plan->context))
        return GEMMEPI_INVALID_ARGUMENT;
    if (plan->kind == GEMMEPI_PLAN_GROUPED)
        return gemmepi__prepare_grouped((const gemmepi__grouped_plan *)plan, stream);
#ifndef GEMMEPI_NO_ELEMENTWISE
    if (plan->kind == GEMMEPI_PLAN_ELEMENTWISE)
        return gemmepi__prepare_elementwise((const gemmepi__elementwise_plan *)plan, stream);
#endif
#ifndef GEMMEPI_NO_LINEAR
    if (plan->kind != GEMMEPI_PLAN_MATMUL)
        return gemmepi__prepare_layer((const gemmepi__linear_plan *)plan, stream);
#endif
    return gemmepi__prepare_matmul((const gemmepi__matmul_plan *)plan, stream);
}

GEMMEPI_API gemmepi_status gemmepi_plan_info(const gemmepi_plan *plan, gemmepi_plan_details *details) {
    if (details)
        memset(details, 0, sizeof *details);
    if (!plan || !details)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", plan ? "details" : "plan");
    if (gemmepi__came_by_fork(plan->context))
        return GEMMEPI_INVALID_ARGUMENT;
    if (plan->kind == GEMMEPI_PLAN_MATMUL)
        gemmepi__matmul_info((const gemmepi__matmul_plan *)plan, details);
    else if (plan->kind == GEMMEPI_PLAN_GROUPED)
        gemmepi__grouped_info((const gemmepi__grouped_plan *)plan, details);
#ifndef GEMMEPI_NO_ELEMENTWISE
    else if (plan->kind == GEMMEPI_PLAN_ELEMENTWISE)
        gemmepi__elementwise_info((const gemmepi__elementwise_plan *)plan, details);
#endif
#ifndef GEMMEPI_NO_LINEAR
    else
        gemmepi__layer_info((const gemmepi__linear_plan *)plan, details);
#endif
    return GEMMEPI_OK;
}

GEMMEPI_API size_t gemmepi_plan_explain(const gemmepi_plan *plan, char *text, size_t size) {
    gemmepi__text out = gemmepi__text_in(text, size);
    if (!plan || gemmepi__is_of_parent(plan->context))
        return 0;
    if (plan->kind == GEMMEPI_PLAN_MATMUL)
        gemmepi__explain_matmul(&out, (const gemmepi__matmul_plan *)plan);
    else if (plan->kind == GEMMEPI_PLAN_GROUPED)
        gemmepi__explain_grouped(&out, (const gemmepi__grouped_plan *)plan);
#ifndef GEMMEPI_NO_ELEMENTWISE
    else if (plan->kind == GEMMEPI_PLAN_ELEMENTWISE)
        gemmepi__explain_elementwise(&out, (const gemmepi__elementwise_plan *)plan);
#endif
#ifndef GEMMEPI_NO_LINEAR
    else
        gemmepi__explain_layer(&out, (const gemmepi__linear_plan *)plan);
#endif
    return out.length;
}

#endif
