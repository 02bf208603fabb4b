/* What plans have in common for their users: one handle, whatever it is that it runs. */
#ifndef GEMMEPI_PLANS_PLANS_H
#define GEMMEPI_PLANS_PLANS_H

#include "../grouped/explain.h"
#include "../product/explain.h"
#ifndef GEMMEPI_NO_LINEAR
#include "../linear/explain.h"
#endif

GEMMEPI_API void gemmepi_plan_destroy(gemmepi_plan *plan) {
    if (plan && !gpi__is_of_parent(plan->context))
        gpi__release_plan(plan);
}

GEMMEPI_API gemmepi_status gemmepi_plan_prepare(const gemmepi_plan *plan, gemmepi_stream stream) {
    if (!plan)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "plan is NULL");
    if (gpi__came_by_fork(plan->context))
        return GEMMEPI_INVALID_ARGUMENT;
    if (plan->kind == GEMMEPI_PLAN_GROUPED)
        return gpi__prepare_grouped((const gpi__grouped_plan *)plan, stream);
#ifndef GEMMEPI_NO_ELEMENTWISE
    if (plan->kind == GEMMEPI_PLAN_ELEMENTWISE)
        return gpi__prepare_elementwise((const gpi__elementwise_plan *)plan, stream);
#endif
#ifndef GEMMEPI_NO_LINEAR
    if (plan->kind != GEMMEPI_PLAN_MATMUL)
        return gpi__prepare_layer((const gpi__linear_plan *)plan, stream);
#endif
    return gpi__prepare_matmul((const gpi__matmul_plan *)plan, stream);
}

GEMMEPI_API gemmepi_status gemmepi_plan_info(const gemmepi_plan *plan, gemmepi_plan_details *details) {
    if (details)
        memset(details, 0, sizeof *details);
    if (!plan || !details)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", plan ? "details" : "plan");
    if (gpi__came_by_fork(plan->context))
        return GEMMEPI_INVALID_ARGUMENT;
    if (plan->kind == GEMMEPI_PLAN_MATMUL)
        gpi__matmul_info((const gpi__matmul_plan *)plan, details);
    else if (plan->kind == GEMMEPI_PLAN_GROUPED)
        gpi__grouped_info((const gpi__grouped_plan *)plan, details);
#ifndef GEMMEPI_NO_ELEMENTWISE
    else if (plan->kind == GEMMEPI_PLAN_ELEMENTWISE)
        gpi__elementwise_info((const gpi__elementwise_plan *)plan, details);
#endif
#ifndef GEMMEPI_NO_LINEAR
    else
        gpi__layer_info((const gpi__linear_plan *)plan, details);
#endif
    return GEMMEPI_OK;
}

GEMMEPI_API size_t gemmepi_plan_explain(const gemmepi_plan *plan, char *text, size_t size) {
    gpi__text out = gpi__text_in(text, size);
    if (!plan || gpi__is_of_parent(plan->context))
        return 0;
    if (plan->kind == GEMMEPI_PLAN_MATMUL)
        gpi__explain_matmul(&out, (const gpi__matmul_plan *)plan);
    else if (plan->kind == GEMMEPI_PLAN_GROUPED)
        gpi__explain_grouped(&out, (const gpi__grouped_plan *)plan);
#ifndef GEMMEPI_NO_ELEMENTWISE
    else if (plan->kind == GEMMEPI_PLAN_ELEMENTWISE)
        gpi__explain_elementwise(&out, (const gpi__elementwise_plan *)plan);
#endif
#ifndef GEMMEPI_NO_LINEAR
    else
        gpi__explain_layer(&out, (const gpi__linear_plan *)plan);
#endif
    return out.length;
}

#endif
