/* Plans: a route chosen once for a problem, then run any number of times. */
#ifndef GEMMEPI_GEMM_PLAN_H
#define GEMMEPI_GEMM_PLAN_H

#include "../device/destroy.h"
#include "../device/memory.h"
#include "../device/pointers.h"
#ifndef GEMMEPI_NO_HOST
#include "../host/product.h"
#endif
#include "estimate.h"
#include "plain.h"
#include "split.h"

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
    gemmepi__ours ours;                      /* of the route fused */
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
    gemmepi__ours scaled;
    gemmepi_status status;
    size_t size;
    context->only_measures = 1;
    status = gemmepi__ours_build(context, &plan->problem, 0, &scaled);
    context->only_measures = 0;
    size = status ? 0 : gemmepi__ours_workspace(&scaled);
    if (size > plan->workspace_size)
        plan->workspace_size = size;
    return status == GEMMEPI_UNSUPPORTED ? GEMMEPI_OK : status; /* then such runs are, too */
}

/* applied: for runs whose alpha is 1 and which have no C. */
static gemmepi_status gemmepi__try_fused(gemmepi__matmul_plan *plan, int applied) {
    const char *rule = gemmepi__ours_rule(plan->base.context, &plan->problem);
    gemmepi_status status = gemmepi__check_route(plan, GEMMEPI_ROUTE_FUSED);
    if (!status && rule)
        status = gemmepi__fail(GEMMEPI_UNSUPPORTED, "%s", rule);
    if (status)
        return gemmepi__keep_reason(status, plan->fused_reason);
    plan->route = GEMMEPI_ROUTE_FUSED;
    status = gemmepi__ours_build(plan->base.context, &plan->problem, applied, &plan->ours);
    plan->workspace_size = gemmepi__ours_workspace(&plan->ours);
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

static gemmepi_status gemmepi__choose_fused(gemmepi__matmul_plan *plan, gemmepi__choice *choice) {
    choice->tried_fused = 1;
    return gemmepi__or_another(gemmepi__try_fused(plan, choice->applied),
                               plan->estimates.lt > 0 || plan->estimates.split > 0);
}

/* What cuBLASLt refused with its own epilogue may go bare; without sums of operands lt was that epilogue. */
static gemmepi_status gemmepi__choose_split(gemmepi__matmul_plan *plan, const gemmepi__choice *choice) {
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
        status = gemmepi__choose_fused(plan, &choice);
    if (status == GEMMEPI_UNSUPPORTED && !choice.refused)
        status = gemmepi__or_another(gemmepi__try_lt(plan), estimates->fused > 0 && !choice.tried_fused);
    if (status == GEMMEPI_UNSUPPORTED && !choice.tried_fused && estimates->fused > 0 &&
        estimates->fused < estimates->split)
        status = gemmepi__choose_fused(plan, &choice);
    if (status == GEMMEPI_UNSUPPORTED)
        status = gemmepi__choose_split(plan, &choice);
    if (status == GEMMEPI_UNSUPPORTED && !choice.tried_fused)
        status = gemmepi__choose_fused(plan, &choice);
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

/* >>running */

/* Whether the kernel of the route fused can do this run. */
static int gemmepi__suits_fused(const gemmepi__matmul_plan *plan, const gemmepi__arguments *arguments) {
    return !gemmepi__is_applied(&plan->ours) ||
           (arguments->alpha == 1 && !arguments->uses_c && !arguments->device_alpha);
}

static gemmepi_status gemmepi__launch_route(const gemmepi__matmul_plan *plan,
                                            const gemmepi__arguments *arguments, void *workspace,
                                            gemmepi_stream stream) {
    void *const *pointers = arguments->pointers;
    gemmepi__lt_call call;
    if (plan->route == GEMMEPI_ROUTE_SPLIT || plan->route == GEMMEPI_ROUTE_EMPTY)
        return gemmepi__split_run(plan->base.context, &plan->problem, &plan->split, arguments,
                                  (char *)workspace, stream);
    if (plan->route == GEMMEPI_ROUTE_PLAIN)
        return gemmepi__plain_run(plan->base.context, &plan->problem, &plan->plain, arguments,
                                  (char *)workspace, stream);
    if (plan->route == GEMMEPI_ROUTE_FUSED)
        return gemmepi__ours_run(plan->base.context, &plan->problem, &plan->ours, arguments,
                                 (char *)workspace, stream);
    call.alpha = arguments->alpha;
    call.beta = arguments->beta;
    call.a = pointers[GEMMEPI__A];
    call.b = pointers[GEMMEPI__B];
    call.c = pointers[GEMMEPI__C];
    call.d = pointers[GEMMEPI__D];
    call.workspace = workspace;
    return gemmepi__lt_run(plan->base.context, &plan->lt, arguments, &call, stream);
}

static gemmepi_status gemmepi__launch_in_block(const gemmepi__matmul_plan *plan,
                                               const gemmepi__arguments *arguments, gemmepi_stream stream) {
    gemmepi__block *block = gemmepi__take_block(plan->base.context, gemmepi__key_of_stream(stream),
                                                plan->workspace_size, "gemmepi_plan_prepare");
    gemmepi_status status;
    if (!block)
        return GEMMEPI_BUFFER_TOO_SMALL;
    status = gemmepi__launch_route(plan, arguments, (void *)(uintptr_t)block->address, stream);
    gemmepi__give_block(block);
    return status;
}

static gemmepi_status gemmepi__launch_plan(const gemmepi__matmul_plan *plan, const gemmepi_matmul_args *args,
                                           const gemmepi__arguments *arguments, gemmepi_stream stream) {
    gemmepi_status status;
    if (plan->workspace_size == 0)
        return gemmepi__launch_route(plan, arguments, NULL, stream);
    if (!args->workspace)
        return gemmepi__launch_in_block(plan, arguments, stream);
    status = gemmepi__check_given_workspace(args->workspace, args->workspace_size, plan->workspace_size);
    if (!status)
        status = gemmepi__check_workspace(&plan->problem, arguments, args->workspace, plan->workspace_size);
    return status ? status : gemmepi__launch_route(plan, arguments, args->workspace, stream);
}

/* The plan that stands for this one now. */
static const gemmepi__matmul_plan *gemmepi__current_plan(const gemmepi__matmul_plan *plan) {
    const gemmepi__matmul_plan *next;
    while ((next = (const gemmepi__matmul_plan *)gemmepi__load_pointer(plan->replacement_place)) != NULL)
        plan = next;
    return plan;
}

/* What runs of the plan need as it stands now, also those that are not for its own kernel. */
static size_t gemmepi__workspace_now(const gemmepi__matmul_plan *plan) {
    const gemmepi__matmul_plan *current = gemmepi__current_plan(plan);
    const gemmepi__matmul_plan *scaled =
        (const gemmepi__matmul_plan *)gemmepi__load_pointer(current->scaled_place);
    size_t size = current->workspace_size, other;
    other = scaled ? gemmepi__current_plan(scaled)->workspace_size : 0;
    return size > other ? size : other;
}

/* Builds a plan by the next route into a place of this one, if no other thread has done so: `runs` in the log. Why cuBLASLt
   cannot do it stands in gemmepi_last_error. */
static gemmepi_status gemmepi__plan_next(const gemmepi__matmul_plan *plan, gemmepi__atomic_pointer *place,
                                         const char *runs) {
    gemmepi__matmul_plan *next = gemmepi__new_plan(plan->base.context, &plan->problem);
    gemmepi_status status;
    if (!next)
        return GEMMEPI_OUT_OF_MEMORY;
    memcpy(next->fused_reason, plan->fused_reason, sizeof next->fused_reason);
    memcpy(next->lt_reason, plan->lt_reason, sizeof next->lt_reason);
    memcpy(next->split_reason, plan->split_reason, sizeof next->split_reason);
    if (plan->route != GEMMEPI_ROUTE_FUSED)
        (void)gemmepi__keep_reason(GEMMEPI_UNSUPPORTED,
                                   plan->route == GEMMEPI_ROUTE_LT ? next->lt_reason : next->split_reason);
    status = gemmepi__choose_on_device(next, plan);
    gemmepi__lock(&plan->base.context->lock);
    if (!status && !gemmepi__load_pointer(place)) {
        gemmepi__publish_pointer(place, next);
        next = NULL;
    }
    gemmepi__unlock(&plan->base.context->lock);
    if (next)
        gemmepi__release_plan(&next->base);
    else if (plan->route != GEMMEPI_ROUTE_FUSED)
        gemmepi__say(&plan->base.context->log, GEMMEPI_LOG_WARNING,
                     "a product of m %lld, n %lld, k %lld takes another route %s: %s",
                     (long long)gemmepi__callers_m(&plan->problem),
                     (long long)gemmepi__callers_n(&plan->problem), (long long)plan->problem.k, runs,
                     plan->route == GEMMEPI_ROUTE_LT
                         ? ((const gemmepi__matmul_plan *)gemmepi__load_pointer(place))->lt_reason
                         : ((const gemmepi__matmul_plan *)gemmepi__load_pointer(place))->split_reason);
    return status;
}

/* A plan that stands for another may need more than what was counted for that: where the caller gave or reserved less, it takes
   the context's workspace. */
static gemmepi_status gemmepi__launch_current(const gemmepi__matmul_plan *plan, size_t counted,
                                              const gemmepi_matmul_args *args,
                                              const gemmepi__arguments *arguments, gemmepi_stream stream) {
    gemmepi_status status;
    if (plan->workspace_size <= counted || (args->workspace && args->workspace_size >= plan->workspace_size))
        return gemmepi__launch_plan(plan, args, arguments, stream);
    status = gemmepi__reserve(plan->base.context, stream, plan->workspace_size);
    return status ? status : gemmepi__launch_in_block(plan, arguments, stream);
}

/* Why the plan's kernel is not for this run, or NULL. */
static const char *gemmepi__not_for_run(const gemmepi__matmul_plan *plan,
                                        const gemmepi__arguments *arguments) {
    gemmepi__lt_call call;
    if (plan->route == GEMMEPI_ROUTE_FUSED)
        return gemmepi__suits_fused(plan, arguments) ? NULL : GEMMEPI__IS_APPLIED;
    if (plan->route != GEMMEPI_ROUTE_LT && (plan->route != GEMMEPI_ROUTE_SPLIT || plan->split.bare))
        return NULL;
    call.alpha = arguments->alpha;
    call.beta = arguments->beta;
    call.c = arguments->pointers[GEMMEPI__C];
    call.d = arguments->pointers[GEMMEPI__D];
    return gemmepi__lt_rounds_early(
        plan->base.context, plan->route == GEMMEPI_ROUTE_LT ? &plan->lt : &plan->split.product, &call);
}

/* The plan for runs that are not for this one. */
static gemmepi_status gemmepi__scaled_plan(const gemmepi__matmul_plan *plan, const char *why,
                                           const gemmepi__matmul_plan **scaled) {
    gemmepi_status status = GEMMEPI_OK;
    if (!gemmepi__load_pointer(plan->scaled_place)) {
        (void)gemmepi__fail(GEMMEPI_UNSUPPORTED, "%s", why);
        status = gemmepi__plan_next(plan, plan->scaled_place, "in such runs");
    }
    if (!status)
        *scaled =
            gemmepi__current_plan((const gemmepi__matmul_plan *)gemmepi__load_pointer(plan->scaled_place));
    return status;
}

/* Builds beforehand what runs with alpha or C take where the plan's kernel is not for them. */
static gemmepi_status gemmepi__build_for_scalars(const gemmepi__matmul_plan *plan) {
    const gemmepi__matmul_plan *scaled;
    if (plan->route != GEMMEPI_ROUTE_FUSED || !gemmepi__is_applied(&plan->ours))
        return GEMMEPI_OK;
    return gemmepi__scaled_plan(plan, GEMMEPI__IS_APPLIED, &scaled);
}

/* cuBLASLt may refuse when run what its heuristic accepted. Nothing has run then: the next route takes over for good. */
static gemmepi_status gemmepi__run_on_device(const gemmepi__matmul_plan *plan,
                                             const gemmepi_matmul_args *args,
                                             const gemmepi__arguments *arguments, gemmepi_stream stream) {
    const gemmepi__matmul_plan *current = gemmepi__current_plan(plan);
    const char *why = gemmepi__not_for_run(current, arguments);
    size_t counted = /* what the caller knows of for certain */
        current->workspace_size < plan->workspace_size ? current->workspace_size : plan->workspace_size;
    gemmepi_status status = why ? gemmepi__scaled_plan(current, why, &current) : GEMMEPI_OK;
    if (status)
        return status;
    status = gemmepi__launch_current(current, counted, args, arguments, stream);
    while (status == GEMMEPI_UNSUPPORTED && current->route != GEMMEPI_ROUTE_PLAIN) {
        status = gemmepi__plan_next(current, current->replacement_place, "from now on");
        if (status)
            break;
        current = gemmepi__current_plan(current);
        status = gemmepi__launch_current(current, counted, args, arguments, stream);
    }
    return status;
}

#ifndef GEMMEPI_NO_HOST
static gemmepi_status gemmepi__run_on_host(const gemmepi__matmul_plan *plan, gemmepi__arguments *arguments) {
    if (arguments->device_alpha)
        memcpy(&arguments->alpha, arguments->device_alpha, sizeof(double));
    if (arguments->device_beta)
        memcpy(&arguments->beta, arguments->device_beta, sizeof(double));
    if (plan->problem.accumulator == GEMMEPI_I32) {
        arguments->alpha = rint(arguments->alpha);
        arguments->beta = rint(arguments->beta);
    }

    gemmepi__host_product(&plan->problem, arguments, NULL);
    return GEMMEPI_OK;
}
#endif

static gemmepi_status gemmepi__check_reach(const gemmepi__problem *problem, const gemmepi_context *context,
                                           const gemmepi_matmul_args *args,
                                           const gemmepi__arguments *arguments) {
    gemmepi_status status = gemmepi__check_reachable(context, "workspace", args->workspace);
    int i;
    for (i = 0; i < problem->count && !status; i++)
        status = gemmepi__check_reachable(context, gemmepi__argument_name(problem, problem->list[i]),
                                          arguments->pointers[problem->list[i]]);
    for (i = 0; i < 2 && !status; i++)
        status =
            gemmepi__check_reachable(context, gemmepi__scalar_names[i], gemmepi__device_scalar(arguments, i));
    return status;
}

/* one_shot: each pointer is asked about at the driver, which takes a microsecond. */
static gemmepi_status gemmepi__run_matmul(const gemmepi__matmul_plan *plan, const gemmepi_matmul_args *args,
                                          int one_shot, gemmepi_stream stream) {
    gemmepi__arguments arguments;
    gemmepi__entry entry;
    gemmepi_status status;
    status = gemmepi__check_run(plan->base.context, stream, args->workspace, args->workspace_size);
    if (status || gemmepi__writes_nothing(&plan->problem))
        return status;
    status = gemmepi__take_arguments(&plan->problem, args, &arguments);
    if (status)
        return status;
#ifndef GEMMEPI_NO_HOST
    if (plan->base.context->is_host)
        return gemmepi__run_on_host(plan, &arguments);
#endif
    status = gemmepi__enter(plan->base.context, &entry);
    if (status)
        return status;
    if (one_shot || plan->base.context->check_pointers)
        status = gemmepi__check_reach(&plan->problem, plan->base.context, args, &arguments);
    if (!status)
        status = gemmepi__run_on_device(plan, args, &arguments, stream);
    gemmepi__leave(plan->base.context, &entry);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_run_matmul(const gemmepi_plan *plan, const gemmepi_matmul_args *args,
                                              gemmepi_stream stream) {
    gemmepi_status status = gemmepi__check_plan(plan, args, GEMMEPI_PLAN_MATMUL);
    return status ? status : gemmepi__run_matmul((const gemmepi__matmul_plan *)plan, args, 0, stream);
}

static gemmepi_status gemmepi__prepare_matmul(const gemmepi__matmul_plan *plan, gemmepi_stream stream) {
    return gemmepi__reserve(plan->base.context, stream, gemmepi__workspace_now(plan));
}

/* >>one-shot calls: plans kept by problem */

/* The problem's bytes without the views that it does not have: the fewer, the sooner a plan is found. */
typedef struct gemmepi__plan_key {
    size_t size;
    unsigned char bytes[sizeof(gemmepi__problem)];
} gemmepi__plan_key;

static void gemmepi__make_plan_key(const gemmepi__problem *problem, gemmepi__plan_key *key) {
    int operand;
    key->size = offsetof(gemmepi__problem, views);
    memcpy(key->bytes, problem, key->size);
    for (operand = 0; operand < GEMMEPI__OPERANDS; operand++)
        if (gemmepi__has_operand(problem, operand)) {
            memcpy(key->bytes + key->size, &problem->views[operand], sizeof(gemmepi__view));
            key->size += sizeof(gemmepi__view);
        }
}

/* A plan for the problem with a reference for the caller to release. */
static gemmepi_status gemmepi__get_plan(gemmepi_context *context, const gemmepi__problem *problem,
                                        gemmepi__matmul_plan **result) {
    gemmepi__plan_key key;
    gemmepi_plan *kept;
    gemmepi__matmul_plan *plan;
    gemmepi_status status;
    gemmepi__make_plan_key(problem, &key);
    kept = gemmepi__find_kept(context, key.bytes, key.size);
    if (!kept) {
        status = gemmepi__build_plan(context, problem, &plan);
        if (status)
            return status;
        kept = gemmepi__keep(context, key.bytes, key.size, &plan->base);
    }
    *result = (gemmepi__matmul_plan *)kept;
    return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                          const gemmepi_matmul_args *args, gemmepi_stream stream) {
    gemmepi__problem problem;
    gemmepi__matmul_plan *plan;
    gemmepi_status status;
    if (!context || !args)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "args" : "context");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__normalise(desc, gemmepi__alignment_of(args), &problem);
    if (status)
        return status;
    status = gemmepi__get_plan(context, &problem, &plan);
    if (status)
        return status;
    if (!args->workspace)
        status = gemmepi__prepare_matmul(plan, stream);
    if (!status)
        status = gemmepi__run_matmul(plan, args, 1, stream);
    gemmepi__release_plan(&plan->base);
    return status;
}

#endif
