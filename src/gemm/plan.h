/* Plans: a route chosen once for a problem, then run any number of times. */
#ifndef GEMMEPI_GEMM_PLAN_H
#define GEMMEPI_GEMM_PLAN_H

#include "../device/destroy.h"
#include "../device/memory.h"
#ifndef GEMMEPI_NO_HOST
#include "../host/product.h"
#endif
#include "split.h"

#define GEMMEPI__REASON_SIZE 512

struct gemmepi_plan {
    gemmepi_context *context;
    gemmepi__problem problem;
    gemmepi_route route;
    size_t workspace_size;
    gemmepi__lt_product lt;               /* of the route lt */
    gemmepi__split split;                 /* of the route split */
    char lt_reason[GEMMEPI__REASON_SIZE]; /* why not lt */
    long references;
    long last_used; /* by the context's plan_clock; of cached plans, under its lock */
};

/* >>choosing */

/* Whether lt runs the problem; if not, plan->lt_reason says why. Other failures are returned. */
static gemmepi_status gemmepi__try_lt(gemmepi_plan *plan) {
    const char *rule = gemmepi__lt_rule(&plan->problem);
    gemmepi_status status;
    if (rule) {
        snprintf(plan->lt_reason, sizeof plan->lt_reason, "%s", rule);
        return GEMMEPI_UNSUPPORTED;
    }
    status = gemmepi__lt_build(plan->context, &plan->problem, GEMMEPI__LT_WHOLE,
                               &plan->problem.views[GEMMEPI__C], &plan->problem.views[GEMMEPI__D], &plan->lt);
    if (status)
        snprintf(plan->lt_reason, sizeof plan->lt_reason, "%.500s", gemmepi__error_text);
    return status;
}

static gemmepi_status gemmepi__choose_route(gemmepi_plan *plan) {
    char split_reason[GEMMEPI__REASON_SIZE];
    gemmepi_status status = plan->problem.k ? gemmepi__open_lt(plan->context) : GEMMEPI_OK;
    if (status)
        return status;
    status = gemmepi__try_lt(plan);
    if (!status) {
        plan->route = GEMMEPI_ROUTE_LT;
        plan->workspace_size = plan->lt.workspace_size;
        return GEMMEPI_OK;
    }
    if (status != GEMMEPI_UNSUPPORTED)
        return status;
    status = gemmepi__split_build(plan->context, &plan->problem, &plan->split);
    if (!status) {
        plan->route = GEMMEPI_ROUTE_SPLIT;
        plan->workspace_size = gemmepi__split_workspace(&plan->split);
        return GEMMEPI_OK;
    }
    if (status != GEMMEPI_UNSUPPORTED)
        return status;
    snprintf(split_reason, sizeof split_reason, "%.500s", gemmepi__error_text);
    return gemmepi__fail(GEMMEPI_UNSUPPORTED, "no route runs this problem. lt: %s. split: %s",
                         plan->lt_reason, split_reason);
}

/* The context's device: the primary context current, one build at a time. */
static gemmepi_status gemmepi__choose_on_device(gemmepi_plan *plan) {
    gemmepi_context *context = plan->context;
    gemmepi__entry entry;
    gemmepi_status status = gemmepi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gemmepi__lock(&context->build_lock);
    status = gemmepi__choose_route(plan);
    gemmepi__unlock(&context->build_lock);
    gemmepi__leave_relaxed(context, &entry);
    return status;
}

static void gemmepi__release_plan(void *released) {
    gemmepi_plan *plan = (gemmepi_plan *)released;
    if (gemmepi__add(&plan->references, -1) == 0)
        gemmepi__delete(&plan->context->allocator, plan);
}

static gemmepi_status gemmepi__build_plan(gemmepi_context *context, const gemmepi__problem *problem,
                                          gemmepi_plan **result) {
    gemmepi_plan *plan = (gemmepi_plan *)gemmepi__new(&context->allocator, sizeof *plan);
    gemmepi_status status = GEMMEPI_OK;
    if (!plan)
        return GEMMEPI_OUT_OF_MEMORY;
    plan->context = context;
    plan->problem = *problem;
    plan->references = 1;
    if (gemmepi__is_empty(problem)) {
        plan->route = GEMMEPI_ROUTE_EMPTY;
        gemmepi__say(&context->log, GEMMEPI_LOG_INFO,
                     "a product of m %lld, n %lld, batch %lld is empty: runs write nothing",
                     (long long)problem->m, (long long)problem->n, (long long)problem->batch);
    } else if (context->is_host) {
        plan->route = GEMMEPI_ROUTE_HOST;
    } else {
        status = gemmepi__choose_on_device(plan);
    }
    if (status)
        gemmepi__release_plan(plan);
    else
        *result = plan;
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_plan_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                               gemmepi_plan **plan) {
    gemmepi__problem problem;
    gemmepi_status status;
    if (!context || !plan)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    status = gemmepi__normalise(desc, &problem);
    return status ? status : gemmepi__build_plan(context, &problem, plan);
}

GEMMEPI_API void gemmepi_plan_destroy(gemmepi_plan *plan) {
    if (plan)
        gemmepi__release_plan(plan);
}

/* >>running */

static gemmepi_status gemmepi__launch_route(const gemmepi_plan *plan, const gemmepi__arguments *arguments,
                                            void *workspace, gemmepi_stream stream) {
    if (plan->route == GEMMEPI_ROUTE_LT)
        return gemmepi__lt_run(plan->context, &plan->lt, arguments, arguments->alpha, arguments->beta,
                               arguments->pointers[GEMMEPI__C], arguments->pointers[GEMMEPI__D], workspace,
                               stream);
    return gemmepi__split_run(plan->context, &plan->split, arguments, (char *)workspace, stream);
}

static gemmepi_status gemmepi__run_on_device(const gemmepi_plan *plan, const gemmepi_matmul_args *args,
                                             const gemmepi__arguments *arguments, gemmepi_stream stream) {
    gemmepi__block *block;
    gemmepi_status status;
    if (plan->workspace_size == 0)
        return gemmepi__launch_route(plan, arguments, NULL, stream);
    if (args->workspace) {
        status = gemmepi__check_workspace(&plan->problem, arguments, args->workspace, args->workspace_size,
                                          plan->workspace_size);
        return status ? status : gemmepi__launch_route(plan, arguments, args->workspace, stream);
    }
    block = gemmepi__find_block(plan->context, gemmepi__key_of_stream(stream), plan->workspace_size);
    if (!block)
        return gemmepi__fail(
            GEMMEPI_BUFFER_TOO_SMALL,
            "args.workspace is NULL and gemmepi_prepare has reserved no %llu bytes for this stream",
            (gemmepi__ull)plan->workspace_size);
    gemmepi__lock(&block->turn);
    status = gemmepi__launch_route(plan, arguments, (void *)(uintptr_t)block->address, stream);
    gemmepi__unlock(&block->turn);
    return status;
}

#ifndef GEMMEPI_NO_HOST
static gemmepi_status gemmepi__run_on_host(const gemmepi_plan *plan, gemmepi__arguments *arguments) {
    if (arguments->device_alpha)
        memcpy(&arguments->alpha, arguments->device_alpha, sizeof(double));
    if (arguments->device_beta)
        memcpy(&arguments->beta, arguments->device_beta, sizeof(double));
    gemmepi__host_product(&plan->problem, arguments);
    return GEMMEPI_OK;
}
#endif

GEMMEPI_API gemmepi_status gemmepi_plan_run(const gemmepi_plan *plan, const gemmepi_matmul_args *args,
                                            gemmepi_stream stream) {
    gemmepi__arguments arguments;
    gemmepi__entry entry;
    gemmepi_status status;
    if (!plan || !args)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", plan ? "args" : "plan");
    if (plan->route == GEMMEPI_ROUTE_EMPTY)
        return GEMMEPI_OK;
    status = gemmepi__take_arguments(&plan->problem, args, &arguments);
    if (status)
        return status;
#ifndef GEMMEPI_NO_HOST
    if (plan->route == GEMMEPI_ROUTE_HOST)
        return gemmepi__run_on_host(plan, &arguments);
#endif
    status = gemmepi__enter(plan->context, &entry);
    if (status)
        return status;
    status = gemmepi__run_on_device(plan, args, &arguments, stream);
    gemmepi__leave(plan->context, &entry);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_prepare(const gemmepi_plan *plan, gemmepi_stream stream) {
    if (!plan)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "plan is NULL");
    return gemmepi__reserve(plan->context, stream, plan->workspace_size);
}

/* >>one-shot calls: plans kept by problem */

/* Plans are some 2 KB; a program with more shapes than this builds the least recently used ones anew. */
#define GEMMEPI__MAX_CACHED_PLANS 1024

typedef struct gemmepi__oldest {
    gemmepi_plan *plan;
} gemmepi__oldest;

static void gemmepi__consider_oldest(void *user, gemmepi__map_entry *entry) {
    gemmepi__oldest *oldest = (gemmepi__oldest *)user;
    gemmepi_plan *plan = (gemmepi_plan *)entry->value;
    if (!oldest->plan || plan->last_used < oldest->plan->last_used)
        oldest->plan = plan;
}

/* With the lock held: the plan with one more reference, or NULL. */
static gemmepi_plan *gemmepi__find_plan(gemmepi_context *context, const gemmepi__problem *problem) {
    gemmepi_plan *plan = (gemmepi_plan *)gemmepi__map_find(&context->plans, problem, sizeof *problem);
    if (plan) {
        gemmepi__add(&plan->references, 1);
        plan->last_used = ++context->plan_clock;
    }
    return plan;
}

/* With the lock held: keeps the plan under a reference of the cache's own, if there is memory for it. */
static void gemmepi__keep_plan(gemmepi_context *context, gemmepi_plan *plan) {
    gemmepi__oldest oldest = {NULL};
    context->release_plan = gemmepi__release_plan;
    if (context->plans.count >= GEMMEPI__MAX_CACHED_PLANS) {
        gemmepi__map_each(&context->plans, gemmepi__consider_oldest, &oldest);
        gemmepi__map_remove(&context->plans, &oldest.plan->problem, sizeof oldest.plan->problem);
        gemmepi__release_plan(oldest.plan);
    }
    plan->last_used = ++context->plan_clock;
    if (gemmepi__map_insert(&context->plans, &plan->problem, sizeof plan->problem, plan))
        gemmepi__add(&plan->references, 1);
}

/* A plan for the problem with a reference for the caller to release. */
static gemmepi_status gemmepi__get_plan(gemmepi_context *context, const gemmepi__problem *problem,
                                        gemmepi_plan **result) {
    gemmepi_plan *plan, *other;
    gemmepi_status status;
    gemmepi__lock(&context->lock);
    plan = gemmepi__find_plan(context, problem);
    gemmepi__unlock(&context->lock);
    if (plan) {
        *result = plan;
        return GEMMEPI_OK;
    }
    status = gemmepi__build_plan(context, problem, &plan);
    if (status)
        return status;
    gemmepi__lock(&context->lock);
    other = gemmepi__find_plan(context, problem); /* another thread was quicker: its plan is as good */
    if (!other)
        gemmepi__keep_plan(context, plan);
    gemmepi__unlock(&context->lock);
    if (other)
        gemmepi__release_plan(plan);
    *result = other ? other : plan;
    return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                          const gemmepi_matmul_args *args, gemmepi_stream stream) {
    gemmepi__problem problem;
    gemmepi_plan *plan;
    gemmepi_status status;
    if (!context || !args)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "args" : "context");
    status = gemmepi__normalise(desc, &problem);
    if (status)
        return status;
    if (!desc->alignment)
        problem.alignment = (int32_t)gemmepi__alignment_of(args);
    status = gemmepi__get_plan(context, &problem, &plan);
    if (status)
        return status;
    if (!args->workspace)
        status = gemmepi_prepare(plan, stream);
    if (!status)
        status = gemmepi_plan_run(plan, args, stream);
    gemmepi__release_plan(plan);
    return status;
}

#endif
