/* Plans of products: a route chosen once for a problem, and built. */
#ifndef GEMMEPI_PRODUCT_PLAN_H
#define GEMMEPI_PRODUCT_PLAN_H

#include "../device/destroy.h"
#include "choose.h"

#define GEMMEPI__REASON_SIZE 512
#define GEMMEPI__IS_APPLIED  "alpha 1 and no C are compiled in"

typedef struct gemmepi__matmul_plan gemmepi__matmul_plan;
struct gemmepi__matmul_plan {
    gemmepi_plan base;
    gemmepi__problem problem;
    gemmepi_route route;
    size_t workspace_size;
    gemmepi__lt_product lt;         /* of the route lt */
    gemmepi__split split;           /* of the route split; of empty its sums alone */
    gemmepi__plain plain;           /* of the route plain */
    gemmepi__fused fused;           /* of the route fused */
    gemmepi__candidates candidates; /* what it was chosen from */
    char reasons[GEMMEPI__COUNT(gemmepi__route_names)][GEMMEPI__REASON_SIZE]; /* why a route failed, or "" */
    /* The plan that runs in place of this one once cuBLASLt has refused it: a field of its own plan, reached by a pointer
       because users hold plans as const. */
    gemmepi__atomic_pointer replacement;
    gemmepi__atomic_pointer *replacement_place;
    /* Likewise the plan for those runs alone that this one's kernel cannot do: cuBLASLt would round D = alpha A B + D twice,
       or alpha 1 and no C are compiled in. */
    gemmepi__atomic_pointer scaled;
    gemmepi__atomic_pointer *scaled_place;
};

/* >>building a candidate as it is */

static gemmepi_status gemmepi__build_lt(gemmepi__matmul_plan *plan) {
    gemmepi_status status = gemmepi__open_lt(plan->base.context);
    if (status)
        return status;
    status = gemmepi__lt_build(plan->base.context, &plan->problem, GEMMEPI__LT_WHOLE,
                               &plan->problem.views[GEMMEPI__C], &plan->problem.views[GEMMEPI__D], &plan->lt);
    plan->workspace_size = plan->lt.workspace_size;
    return status;
}

static gemmepi_status gemmepi__build_split(gemmepi__matmul_plan *plan, const gemmepi__candidate *candidate) {
    gemmepi_status status = plan->problem.k ? gemmepi__open_lt(plan->base.context) : GEMMEPI_OK;
    if (status)
        return status;
    status = gemmepi__split_build(plan->base.context, &plan->problem, candidate->bare, &plan->split);
    plan->workspace_size = gemmepi__split_workspace(&plan->split);
    return status;
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

static gemmepi_status gemmepi__build_fused(gemmepi__matmul_plan *plan, const gemmepi__candidate *candidate) {
    gemmepi_status status = gemmepi__fused_build(plan->base.context, &plan->problem, candidate, &plan->fused);
    plan->workspace_size = gemmepi__fused_workspace(&plan->fused);
    return !status && candidate->applied ? gemmepi__count_scaled(plan) : status;
}

static gemmepi_status gemmepi__build_plain(gemmepi__matmul_plan *plan) {
    gemmepi_status status = gemmepi__plain_build(plan->base.context, &plan->problem, &plan->plain);
    plan->workspace_size = gemmepi__plain_workspace(&plan->plain);
    return status;
}

static gemmepi_status gemmepi__build_candidate(gemmepi__matmul_plan *plan,
                                               const gemmepi__candidate *candidate) {
    plan->route = candidate->route;
    switch (candidate->route) {
    case GEMMEPI_ROUTE_FUSED:
        return gemmepi__build_fused(plan, candidate);
    case GEMMEPI_ROUTE_LT:
        return gemmepi__build_lt(plan);
    case GEMMEPI_ROUTE_SPLIT:
        return gemmepi__build_split(plan, candidate);
    default:
        return gemmepi__build_plain(plan);
    }
}

/* >>choosing */

/* Keeps the calling thread's error text as why the route cannot run the problem. */
static void gemmepi__keep_reason(gemmepi__matmul_plan *plan, gemmepi_route route) {
    snprintf(plan->reasons[route], GEMMEPI__REASON_SIZE, "%.500s", gemmepi__error_text);
}

/* In place of a plan of FUSED that is not for this run: FUSED for any alpha goes first. */
static void gemmepi__prefer_fused(gemmepi__candidates *candidates) {
    int i;
    for (i = 0; i < candidates->count; i++)
        if (candidates->list[i].route != GEMMEPI_ROUTE_FUSED)
            candidates->list[i].rank = GEMMEPI__NEVER;
}

/* In place of a plan that cuBLASLt refused when it was run: with an epilogue of its own, which the route lt has but for sums of
   operands, the bare product is left. */
static void gemmepi__do_without(const gemmepi__matmul_plan *refused, gemmepi__candidates *candidates) {
    static const char refusal[] = "cuBLASLt refused it when it was run";
    int i;
    gemmepi__refuse_route(candidates, GEMMEPI_ROUTE_LT, refusal);
    if (refused->route == GEMMEPI_ROUTE_SPLIT && refused->split.bare)
        gemmepi__refuse_route(candidates, GEMMEPI_ROUTE_SPLIT, refusal);
    for (i = 0; i < candidates->count; i++)
        candidates->list[i].bare = candidates->list[i].route == GEMMEPI_ROUTE_SPLIT;
}

/* Whether one is left whose time is known: PLAIN's is not. */
static int gemmepi__has_another(const gemmepi__candidates *candidates) {
    const gemmepi__candidate *least = gemmepi__least(candidates);
    return least && least->microseconds > 0;
}

static gemmepi_status gemmepi__fail_all(const gemmepi__matmul_plan *plan) {
    const char *reasons[GEMMEPI__COUNT(gemmepi__route_names)] = {0};
    int i;
    for (i = 0; i < plan->candidates.count; i++)
        reasons[plan->candidates.list[i].route] = plan->candidates.list[i].refusal;
    return gemmepi__fail(GEMMEPI_UNSUPPORTED,
                         "no route runs this problem. fused: %s. lt: %s. split: %s. plain: %s",
                         reasons[GEMMEPI_ROUTE_FUSED], reasons[GEMMEPI_ROUTE_LT],
                         reasons[GEMMEPI_ROUTE_SPLIT], reasons[GEMMEPI_ROUTE_PLAIN]);
}

/* Builds the best candidate that can be built. A library that is not there ends planning, unless a candidate is left that may do
   without it. instead_of: the plan, if any, that cannot do a run, or cannot any more. */
static gemmepi_status gemmepi__choose(gemmepi__matmul_plan *plan, const gemmepi__matmul_plan *instead_of) {
    const gemmepi__candidate *best;
    int applied = !instead_of && !(plan->problem.flags & (GEMMEPI_DEVICE_SCALARS | GEMMEPI_ACCUMULATE));
    gemmepi__enumerate(plan->base.context, &plan->problem, applied, &plan->candidates);
    if (instead_of && instead_of->route == GEMMEPI_ROUTE_FUSED)
        gemmepi__prefer_fused(&plan->candidates);
    else if (instead_of)
        gemmepi__do_without(instead_of, &plan->candidates);
    while ((best = gemmepi__least(&plan->candidates)) != NULL) {
        gemmepi_status status = gemmepi__build_candidate(plan, best);
        if (status != GEMMEPI_UNSUPPORTED && status != GEMMEPI_LIBRARY_NOT_FOUND)
            return status;
        gemmepi__keep_reason(plan, best->route);
        gemmepi__refuse_route(&plan->candidates, best->route, plan->reasons[best->route]);
        if (status == GEMMEPI_LIBRARY_NOT_FOUND && !gemmepi__has_another(&plan->candidates))
            return status;
    }
    return gemmepi__fail_all(plan);
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
    status =
        gemmepi__is_empty(&plan->problem) ? gemmepi__build_empty(plan) : gemmepi__choose(plan, instead_of);
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
