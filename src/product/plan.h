/* Plans of products: a route chosen once for a problem, and built. */
#ifndef GEMMEPI_PRODUCT_PLAN_H
#define GEMMEPI_PRODUCT_PLAN_H

#include "../device/destroy.h"
#include "estimate.h"
#include "routes/plain.h"
#include "routes/split.h"

#define GEMMEPI__REASON_SIZE 512
#define GEMMEPI__IS_APPLIED  "alpha 1 and no C are compiled in"

typedef struct gemmepi__matmul_plan gemmepi__matmul_plan;
struct gemmepi__matmul_plan {
    gemmepi_plan base;
    gemmepi__problem problem;
    gemmepi_route route;
    size_t workspace_size;
    gemmepi__lt_product lt;                  /* of the route lt */
    gemmepi__split split;                    /* of the route split; of empty its sums alone */
    gemmepi__plain plain;                    /* of the route plain */
    gemmepi__fused fused;                    /* of the route fused */
    char fused_reason[GEMMEPI__REASON_SIZE]; /* why not fused */
    char lt_reason[GEMMEPI__REASON_SIZE];    /* why not lt */
    char split_reason[GEMMEPI__REASON_SIZE]; /* why not split */
    gemmepi__estimates estimates;
    /* The plan that runs in place of this one once cuBLASLt has refused it: a field of its own plan, reached by a pointer
       because users hold plans as const. */
    gemmepi__atomic_pointer replacement;
    gemmepi__atomic_pointer *replacement_place;
    /* Likewise the plan for those runs alone that this one's kernel cannot do: cuBLASLt would round D = alpha A B + D twice,
       or alpha 1 and no C are compiled in. */
    gemmepi__atomic_pointer scaled;
    gemmepi__atomic_pointer *scaled_place;
};

/* >>choosing */

/* Notes why a route does not run a problem; other failures are returned. */
static gemmepi_status gemmepi__keep_reason(gemmepi_status status, char *reason) {
    if (status == GEMMEPI_UNSUPPORTED || status == GEMMEPI_LIBRARY_NOT_FOUND)
        snprintf(reason, GEMMEPI__REASON_SIZE, "%.500s", gemmepi__error_text);
    return status;
}

/* GEMMEPI_UNSUPPORTED where config.routes leaves a route out. */
static gemmepi_status gemmepi__check_route(const gemmepi__matmul_plan *plan, gemmepi_route route) {
    if (gemmepi__is_left_out(plan->base.context, route))
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "config.routes leaves it out");
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__try_lt(gemmepi__matmul_plan *plan) {
    const char *rule = gemmepi__lt_rule(&plan->problem);
    gemmepi_status status = gemmepi__check_route(plan, GEMMEPI_ROUTE_LT);
    if (!status && rule)
        status = gemmepi__fail(GEMMEPI_UNSUPPORTED, "%s", rule);
    if (!status)
        status = gemmepi__open_lt(plan->base.context);
    if (status)
        return gemmepi__keep_reason(status, plan->lt_reason);
    status = gemmepi__lt_build(plan->base.context, &plan->problem, GEMMEPI__LT_WHOLE,
                               &plan->problem.views[GEMMEPI__C], &plan->problem.views[GEMMEPI__D], &plan->lt);
    plan->workspace_size = plan->lt.workspace_size;
    plan->route = GEMMEPI_ROUTE_LT;
    return gemmepi__keep_reason(status, plan->lt_reason);
}

static gemmepi_status gemmepi__try_split(gemmepi__matmul_plan *plan, int bare) {
    gemmepi_status status = gemmepi__check_route(plan, GEMMEPI_ROUTE_SPLIT);
    if (!status && plan->problem.k)
        status = gemmepi__open_lt(plan->base.context);
    if (!status) {
        status = gemmepi__split_build(plan->base.context, &plan->problem, bare, &plan->split);
        plan->workspace_size = gemmepi__split_workspace(&plan->split);
        plan->route = GEMMEPI_ROUTE_SPLIT;
    }
    return gemmepi__keep_reason(status, plan->split_reason);
}

/* Counts what runs with alpha or C need, too, whose kernel is compiled in the first of them. */
static gemmepi_status gemmepi__count_scaled(gemmepi__matmul_plan *plan) {
    gemmepi_context *context = plan->base.context;
    gemmepi__candidate candidate = gemmepi__choose_fused(context, &plan->problem, 0);
    gemmepi__fused scaled;
    gemmepi_status status;
    size_t size;
    context->only_measures = 1;
    status = gemmepi__fused_build(context, &plan->problem, &candidate, &scaled);
    context->only_measures = 0;
    size = status ? 0 : gemmepi__fused_workspace(&scaled);
    if (size > plan->workspace_size)
        plan->workspace_size = size;
    return status == GEMMEPI_UNSUPPORTED ? GEMMEPI_OK : status; /* then such runs are, too */
}

/* applied: for runs whose alpha is 1 and which have no C. */
static gemmepi_status gemmepi__try_fused(gemmepi__matmul_plan *plan, int applied) {
    const char *rule = gemmepi__fused_rule(plan->base.context, &plan->problem);
    gemmepi__candidate candidate;
    gemmepi_status status = gemmepi__check_route(plan, GEMMEPI_ROUTE_FUSED);
    if (!status && rule)
        status = gemmepi__fail(GEMMEPI_UNSUPPORTED, "%s", rule);
    if (status)
        return gemmepi__keep_reason(status, plan->fused_reason);
    plan->route = GEMMEPI_ROUTE_FUSED;
    candidate = gemmepi__choose_fused(plan->base.context, &plan->problem, applied);
    status = gemmepi__fused_build(plan->base.context, &plan->problem, &candidate, &plan->fused);
    plan->workspace_size = gemmepi__fused_workspace(&plan->fused);
    if (!status && applied)
        status = gemmepi__count_scaled(plan);
    return gemmepi__keep_reason(status, plan->fused_reason);
}

static gemmepi_status gemmepi__try_plain(gemmepi__matmul_plan *plan) {
    gemmepi_status status = gemmepi__check_route(plan, GEMMEPI_ROUTE_PLAIN);
    if (!status) {
        status = gemmepi__plain_build(plan->base.context, &plan->problem, &plan->plain);
        plan->workspace_size = gemmepi__plain_workspace(&plan->plain);
        plan->route = GEMMEPI_ROUTE_PLAIN;
    }
    return status;
}

/* A library that is not there ends planning, unless another route is left that may do without it. */
static gemmepi_status gemmepi__or_another(gemmepi_status status, int has_another) {
    return status == GEMMEPI_LIBRARY_NOT_FOUND && has_another ? GEMMEPI_UNSUPPORTED : status;
}

/* What gemmepi__choose_route knows. */
typedef struct gemmepi__choice {
    const gemmepi__matmul_plan *refused; /* the plan, if any, that cuBLASLt refused when it ran */
    int applied;                         /* of the route fused */
    int tried_fused;
} gemmepi__choice;

static gemmepi_status gemmepi__go_fused(gemmepi__matmul_plan *plan, gemmepi__choice *choice) {
    choice->tried_fused = 1;
    return gemmepi__or_another(gemmepi__try_fused(plan, choice->applied),
                               plan->estimates.lt > 0 || plan->estimates.split > 0);
}

/* What cuBLASLt refused with its own epilogue may go bare; without sums of operands lt was that epilogue. */
static gemmepi_status gemmepi__go_split(gemmepi__matmul_plan *plan, const gemmepi__choice *choice) {
    const gemmepi__matmul_plan *refused = choice->refused;
    int goes_bare = refused && (refused->route == GEMMEPI_ROUTE_LT || !refused->split.bare);
    if (refused && !goes_bare)
        return GEMMEPI_UNSUPPORTED;
    return gemmepi__or_another(gemmepi__try_split(plan, goes_bare),
                               plan->estimates.fused > 0 && !choice->tried_fused);
}

/* The route of the least estimate that runs the problem; those tried before have left their reasons. instead_of: the plan, if
   any, that cannot do a run, or cannot any more. */
static gemmepi_status gemmepi__choose_route(gemmepi__matmul_plan *plan,
                                            const gemmepi__matmul_plan *instead_of) {
    int was_fused = instead_of && instead_of->route == GEMMEPI_ROUTE_FUSED;
    const gemmepi__estimates *estimates = &plan->estimates;
    gemmepi_status status = GEMMEPI_UNSUPPORTED;
    char reason[GEMMEPI__REASON_SIZE];
    gemmepi__choice choice;
    choice.refused = was_fused ? NULL : instead_of;
    choice.applied = !instead_of && !(plan->problem.flags & (GEMMEPI_DEVICE_SCALARS | GEMMEPI_ACCUMULATE));
    choice.tried_fused = 0;
    gemmepi__estimate_routes(plan->base.context, &plan->problem, &plan->estimates);
    if (was_fused || (!choice.refused && gemmepi__fused_is_least(estimates)))
        status = gemmepi__go_fused(plan, &choice);
    if (status == GEMMEPI_UNSUPPORTED && !choice.refused)
        status = gemmepi__or_another(gemmepi__try_lt(plan), estimates->fused > 0 && !choice.tried_fused);
    if (status == GEMMEPI_UNSUPPORTED && !choice.tried_fused && estimates->fused > 0 &&
        estimates->fused < estimates->split)
        status = gemmepi__go_fused(plan, &choice);
    if (status == GEMMEPI_UNSUPPORTED)
        status = gemmepi__go_split(plan, &choice);
    if (status == GEMMEPI_UNSUPPORTED && !choice.tried_fused)
        status = gemmepi__go_fused(plan, &choice);
    if (status == GEMMEPI_UNSUPPORTED)
        status = gemmepi__try_plain(plan);
    if (gemmepi__keep_reason(status, reason) != GEMMEPI_UNSUPPORTED)
        return status;
    return gemmepi__fail(GEMMEPI_UNSUPPORTED,
                         "no route runs this problem. fused: %s. lt: %s. split: %s. plain: %s",
                         plan->fused_reason, plan->lt_reason, plan->split_reason, reason);
}

/* D has no element, so of the product and its epilogue nothing is left but the sums of bias_grad. */
static gemmepi_status gemmepi__build_empty(gemmepi__matmul_plan *plan) {
    gemmepi_status status = gemmepi__build_sums(plan->base.context, &plan->problem, 0, &plan->split.sums);
    plan->workspace_size = gemmepi__split_workspace(&plan->split);
    return status;
}

/* The context's device: the primary context current, one build at a time. */
static gemmepi_status gemmepi__choose_on_device(gemmepi__matmul_plan *plan,
                                                const gemmepi__matmul_plan *instead_of) {
    gemmepi_context *context = plan->base.context;
    gemmepi__entry entry;
    gemmepi_status status = gemmepi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gemmepi__lock(&context->build_lock);
    status = gemmepi__is_empty(&plan->problem) ? gemmepi__build_empty(plan)
                                               : gemmepi__choose_route(plan, instead_of);
    gemmepi__unlock(&context->build_lock);
    gemmepi__leave_relaxed(context, &entry);
    return status;
}

static void gemmepi__destroy_matmul(gemmepi_plan *destroyed) {
    gemmepi__matmul_plan *plan = (gemmepi__matmul_plan *)destroyed;
    gemmepi_plan *replacement = (gemmepi_plan *)gemmepi__load_pointer(&plan->replacement);
    gemmepi_plan *scaled = (gemmepi_plan *)gemmepi__load_pointer(&plan->scaled);
    if (replacement)
        gemmepi__release_plan(replacement);
    if (scaled)
        gemmepi__release_plan(scaled);
    gemmepi__delete(&plan->base.context->allocator, plan);
}

static gemmepi__matmul_plan *gemmepi__new_plan(gemmepi_context *context, const gemmepi__problem *problem) {
    gemmepi__matmul_plan *plan = (gemmepi__matmul_plan *)gemmepi__new(&context->allocator, sizeof *plan);
    if (!plan)
        return NULL;
    plan->base = gemmepi__plan_base(context, GEMMEPI_PLAN_MATMUL, gemmepi__destroy_matmul);
    plan->problem = *problem;
    plan->replacement_place = &plan->replacement;
    plan->scaled_place = &plan->scaled;
    return plan;
}

static gemmepi_status gemmepi__build_plan(gemmepi_context *context, const gemmepi__problem *problem,
                                          gemmepi__matmul_plan **result) {
    gemmepi__matmul_plan *plan = gemmepi__new_plan(context, problem);
    gemmepi_status status = GEMMEPI_OK;
    if (!plan)
        return GEMMEPI_OUT_OF_MEMORY;
    if (gemmepi__is_empty(problem)) {
        int only_sums = !gemmepi__writes_nothing(problem);
        plan->route = GEMMEPI_ROUTE_EMPTY;
        gemmepi__say(&context->log, GEMMEPI_LOG_INFO,
                     "a product of m %lld, n %lld, batch %lld is empty: runs write %s",
                     (long long)gemmepi__callers_m(problem), (long long)gemmepi__callers_n(problem),
                     (long long)problem->batch, only_sums ? "bias_grad alone" : "nothing");
        if (only_sums && !context->is_host)
            status = gemmepi__choose_on_device(plan, NULL);
    } else if (context->is_host) {
        plan->route = GEMMEPI_ROUTE_HOST;
    } else {
        status = gemmepi__choose_on_device(plan, NULL);
    }
    if (status)
        gemmepi__release_plan(&plan->base);
    else
        *result = plan;
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_plan_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                               gemmepi_plan **result) {
    gemmepi__problem problem;
    gemmepi__matmul_plan *plan = NULL;
    gemmepi_status status;
    if (result)
        *result = NULL; /* also after a failure */
    if (!context || !result)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__normalise(desc, GEMMEPI__DEFAULT_ALIGNMENT, &problem);
    if (!status)
        status = gemmepi__build_plan(context, &problem, &plan);
    if (!status)
        *result = &plan->base;
    return status;
}

#endif
