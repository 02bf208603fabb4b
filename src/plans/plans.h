/* What plans of every kind are for their users: one handle. */
#ifndef GEMMEPI_PLANS_PLANS_H
#define GEMMEPI_PLANS_PLANS_H

#include "../grouped/calls.h"
#ifndef GEMMEPI_NO_NETWORK
#include "../network/calls.h"
#elif !defined(GEMMEPI_NO_LINEAR)
#include "../linear/calls.h"
#elif !defined(GEMMEPI_NO_ELEMENTWISE)
#include "../elementwise/calls.h"
#endif

/* Those of a kind that was left out of the program are made by nobody. */
static const gpi__plan_row *gpi__row_of(const gemmepi_plan *plan) {
    switch (plan->kind) {
    case GEMMEPI_PLAN_GROUPED:
        return &gpi__grouped_plans;
#ifndef GEMMEPI_NO_ELEMENTWISE
    case GEMMEPI_PLAN_ELEMENTWISE:
        return &gpi__elementwise_plans;
#endif
#ifndef GEMMEPI_NO_LINEAR
    case GEMMEPI_PLAN_LINEAR:
    case GEMMEPI_PLAN_LINEAR_BACKWARD:
        return &gpi__layer_plans[plan->kind == GEMMEPI_PLAN_LINEAR_BACKWARD];
#endif
#ifndef GEMMEPI_NO_NETWORK
    case GEMMEPI_PLAN_NETWORK:
    case GEMMEPI_PLAN_NETWORK_BACKWARD:
        return &gpi__network_plans[plan->kind == GEMMEPI_PLAN_NETWORK_BACKWARD];
#endif
    default:
        return &gpi__product_plans;
    }
}

GEMMEPI_API void gemmepi_plan_destroy(gemmepi_plan *plan) {
    if (plan && !gpi__has_ended(plan))
        gpi__release_plan(plan);
}

GEMMEPI_API gemmepi_status gemmepi_plan_prepare(const gemmepi_plan *plan, gemmepi_stream stream) {
    GPI__INVALID_IF(!plan, "plan is NULL");
    if (gpi__has_ended(plan))
        return GEMMEPI_INVALID_ARGUMENT;
    return gpi__prepare(gpi__row_of(plan), plan, stream);
}

GEMMEPI_API gemmepi_status gemmepi_plan_info(const gemmepi_plan *plan, gemmepi_plan_details *details) {
    if (details)
        memset(details, 0, sizeof *details);
    GPI__INVALID_IF(!plan || !details, "%s is NULL", plan ? "details" : "plan");
    if (gpi__has_ended(plan))
        return GEMMEPI_INVALID_ARGUMENT;
    gpi__describe(gpi__row_of(plan), plan, details);
    return GEMMEPI_OK;
}

GEMMEPI_API size_t gemmepi_plan_explain(const gemmepi_plan *plan, char *text, size_t size) {
    gpi__text out = gpi__text_in(text, size);
    if (!plan || gpi__has_ended(plan))
        return 0;
    gpi__explain(gpi__row_of(plan), &out, plan);
    return out.length;
}

#endif
