/* Runs of products' plans: whatever the route, and what stands in for a plan whose own cannot do a run; and the call that plans by
   itself. */
#ifndef GEMMEPI_PRODUCT_RUN_H
#define GEMMEPI_PRODUCT_RUN_H

#include "../device/memory.h"
#include "../device/pointers.h"
#include "plan.h"
#include "run_around.h"
#ifndef GEMMEPI_NO_HOST
#include "../host/found_scale.h"
#endif
#ifndef GEMMEPI_NO_FORMULA
#include "../problem/formula_arguments.h"
#include "text_key.h"
#ifndef GEMMEPI_NO_HOST
#include "../host/formula.h"
#endif
#endif

/* Whose block of workspace it is. What is launched around a product has one next to that of products, because the product, once cuBLASLt
   refuses it, may reserve that in the middle of a run. */
static gemmepi__stream_key gemmepi__key_of_plan(int is_around, gemmepi_stream stream) {
    return is_around ? gemmepi__key_beside(stream) : gemmepi__key_of_stream(stream);
}

static gemmepi_status gemmepi__run_by_route(const gemmepi__matmul_plan *plan, const gemmepi_matmul_args *args,
                                            const gemmepi__arguments *arguments, gemmepi_stream stream);

static gemmepi_status gemmepi__run_around(const gemmepi__matmul_plan *plan,
                                          const gemmepi__arguments *arguments, char *workspace,
                                          gemmepi_stream stream) {
    const gemmepi_context *context = plan->base.context;
    const gemmepi__around *around = plan->around;
    gemmepi__way_in way;
    gemmepi_matmul_args args;
    gemmepi_status status = gemmepi__run_ahead(context, around, arguments, workspace, &way, stream);
    memset(&args, 0, sizeof args);
    args.workspace = way.rest;
    args.workspace_size = plan->workspace_size;
    if (!status && !around->lacks_product)
        status = gemmepi__run_by_route(plan, &args, &way.product, stream);
    return status ? status : gemmepi__run_behind(context, around, arguments, &way, stream);
}

/* is_around: with what is launched around the product, else the product alone. */
static gemmepi_status gemmepi__run_in(const gemmepi__matmul_plan *plan, int is_around,
                                      const gemmepi__arguments *arguments, char *workspace,
                                      gemmepi_stream stream) {
    return is_around ? gemmepi__run_around(plan, arguments, workspace, stream)
                     : plan->route->run(plan, arguments, workspace, stream);
}

static size_t gemmepi__workspace_for(const gemmepi__matmul_plan *plan, int is_around) {
    return is_around ? gemmepi__workspace_of(plan) : plan->workspace_size;
}

static gemmepi_status gemmepi__launch_in_block(const gemmepi__matmul_plan *plan, int is_around,
                                               const gemmepi__arguments *arguments, gemmepi_stream stream) {
    gemmepi__block *block =
        gemmepi__take_block(plan->base.context, gemmepi__key_of_plan(is_around, stream),
                            gemmepi__workspace_for(plan, is_around), "gemmepi_plan_prepare");
    gemmepi_status status;
    if (!block)
        return GEMMEPI_BUFFER_TOO_SMALL;
    status = gemmepi__run_in(plan, is_around, arguments, (char *)(uintptr_t)block->address, stream);
    gemmepi__give_block(block);
    return status;
}

static gemmepi_status gemmepi__launch_plan(const gemmepi__matmul_plan *plan, int is_around,
                                           const gemmepi_matmul_args *args,
                                           const gemmepi__arguments *arguments, gemmepi_stream stream) {
    const gemmepi__problem *problem = is_around ? gemmepi__asked(plan) : &plan->problem;
    size_t size = gemmepi__workspace_for(plan, is_around);
    gemmepi_status status;
    if (size == 0)
        return gemmepi__run_in(plan, is_around, arguments, NULL, stream);
    if (!args->workspace)
        return gemmepi__launch_in_block(plan, is_around, arguments, stream);
    status = gemmepi__check_given_workspace(args->workspace, args->workspace_size, size);
    if (!status)
        status = gemmepi__check_workspace(problem, arguments, args->workspace, size);
#ifndef GEMMEPI_NO_FORMULA
    if (!status && problem->formula)
        status = gemmepi__check_formula_workspace(problem, arguments, args->workspace, size);
#endif
    return status ? status : gemmepi__run_in(plan, is_around, arguments, (char *)args->workspace, stream);
}

/* What runs of the plan need as it stands now, also those that are not for its own kernel. */
static size_t gemmepi__workspace_now(const gemmepi__matmul_plan *plan) {
    const gemmepi__matmul_plan *current = gemmepi__current_plan(plan);
    const gemmepi__matmul_plan *scaled =
        (const gemmepi__matmul_plan *)gemmepi__load_pointer(current->scaled_place);
    size_t size = current->workspace_size, other;
    if (plan->around)
        return gemmepi__workspace_of(plan);
    other = scaled ? gemmepi__current_plan(scaled)->workspace_size : 0;
    return size > other ? size : other;
}

/* Builds a plan by the next route into a place of this one, if no other thread has done so: `runs` in the log. Why this one
   cannot do it stands in gemmepi_last_error; that of a plan for some runs alone was known beforehand, and is nobody's news. */
static gemmepi_status gemmepi__plan_next(const gemmepi__matmul_plan *plan, gemmepi__atomic_pointer *place,
                                         const char *runs) {
    gemmepi__matmul_plan *next = gemmepi__new_plan(plan->base.context, &plan->problem);
    gemmepi_status status;
    if (!next)
        return GEMMEPI_OUT_OF_MEMORY;
    memcpy(next->reasons, plan->reasons, sizeof next->reasons);
    if (!plan->applied)
        gemmepi__keep_reason(next, plan->route->id);
    status = gemmepi__choose_on_device(next, plan);
    gemmepi__lock(&plan->base.context->lock);
    if (!status && !gemmepi__load_pointer(place)) {
        gemmepi__publish_pointer(place, next);
        next = NULL;
    }
    gemmepi__unlock(&plan->base.context->lock);
    if (next)
        gemmepi__release_plan(&next->base);
    else if (!plan->applied)
        gemmepi__say(&plan->base.context->log, GEMMEPI_LOG_WARNING,
                     "a product of m %lld, n %lld, k %lld takes another route %s: %s",
                     (long long)gemmepi__callers_m(&plan->problem),
                     (long long)gemmepi__callers_n(&plan->problem), (long long)plan->problem.k, runs,
                     ((const gemmepi__matmul_plan *)gemmepi__load_pointer(place))->reasons[plan->route->id]);
    return status;
}

/* A plan that stands for another may need more than what was counted for that: where the caller gave or reserved less, it takes
   the context's workspace. */
static gemmepi_status gemmepi__launch_current(const gemmepi__matmul_plan *plan, size_t counted,
                                              const gemmepi_matmul_args *args,
                                              const gemmepi__arguments *arguments, gemmepi_stream stream) {
    gemmepi_status status;
    if (plan->workspace_size <= counted || (args->workspace && args->workspace_size >= plan->workspace_size))
        return gemmepi__launch_plan(plan, 0, args, arguments, stream);
    status = gemmepi__reserve_for(plan->base.context, stream, gemmepi__key_of_plan(0, stream),
                                  plan->workspace_size);
    return status ? status : gemmepi__launch_in_block(plan, 0, arguments, stream);
}

#define GEMMEPI__IS_APPLIED "alpha 1 and no C are compiled in"

/* Why the plan is not for this run, or NULL. */
static const char *gemmepi__not_for_run(const gemmepi__matmul_plan *plan,
                                        const gemmepi__arguments *arguments) {
    int uses_c = arguments->uses_c && !gemmepi__adds_as_residual(&plan->problem);
    if (plan->applied && (arguments->alpha != 1 || uses_c || arguments->device_alpha))
        return GEMMEPI__IS_APPLIED;
    return plan->route->not_for ? plan->route->not_for(plan, arguments) : NULL;
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
    if (!plan->applied)
        return GEMMEPI_OK;
    return gemmepi__scaled_plan(plan, GEMMEPI__IS_APPLIED, &scaled);
}

/* cuBLASLt may refuse when run what its heuristic accepted. Nothing has run then: the next route takes over for good. */
static gemmepi_status gemmepi__run_by_route(const gemmepi__matmul_plan *plan, const gemmepi_matmul_args *args,
                                            const gemmepi__arguments *arguments, gemmepi_stream stream) {
    const gemmepi__matmul_plan *current = gemmepi__current_plan(plan);
    const char *why = gemmepi__not_for_run(current, arguments);
    size_t counted = /* what the caller knows of for certain */
        current->workspace_size < plan->workspace_size ? current->workspace_size : plan->workspace_size;
    gemmepi_status status = why ? gemmepi__scaled_plan(current, why, &current) : GEMMEPI_OK;
    if (status)
        return status;
    status = gemmepi__launch_current(current, counted, args, arguments, stream);
    while (status == GEMMEPI_UNSUPPORTED && current->route->give_up) {
        status = gemmepi__plan_next(current, current->replacement_place, "from now on");
        if (status)
            break;
        current = gemmepi__current_plan(current);
        status = gemmepi__launch_current(current, counted, args, arguments, stream);
    }
    return status;
}

static gemmepi_status gemmepi__run_on_device(const gemmepi__matmul_plan *plan,
                                             const gemmepi_matmul_args *args,
                                             const gemmepi__arguments *arguments, gemmepi_stream stream) {
    return plan->around ? gemmepi__launch_plan(plan, 1, args, arguments, stream)
                        : gemmepi__run_by_route(plan, args, arguments, stream);
}

#ifndef GEMMEPI_NO_HOST
static gemmepi_status gemmepi__run_problem_on_host(const gemmepi__problem *problem,
                                                   const gemmepi__arguments *arguments,
                                                   const gemmepi_allocator *allocator) {
#ifndef GEMMEPI_NO_FORMULA
    if (problem->formula)
        return gemmepi__host_formula_run(problem, arguments, allocator);
#endif
    (void)allocator;
    gemmepi__host_product(problem, arguments, NULL);
    return GEMMEPI_OK;
}

/* FIND_SCALE_D: D in F32 in memory of the allocator, unless its scale is that of earlier runs. */
static gemmepi_status gemmepi__run_found_on_host(const gemmepi__matmul_plan *plan,
                                                 const gemmepi__arguments *arguments) {
    const gemmepi_allocator *allocator = &plan->base.context->allocator;
    const gemmepi__problem *problem = &plan->problem;
    gemmepi__problem within = gemmepi__problem_within(problem);
    int is_tensor = problem->found_scale == GEMMEPI_SCALE_TENSOR;
    gemmepi__arguments own = *arguments;
    float reciprocal, *d = &reciprocal;
    gemmepi_status status;
    if (is_tensor)
        reciprocal = gemmepi__host_scale_of_history(problem, arguments);
    else if ((d = (float *)gemmepi__new(
                  allocator, gemmepi__bytes_for(problem->views[GEMMEPI__D].bytes, sizeof(float)))) == NULL)
        return GEMMEPI_OUT_OF_MEMORY;
    gemmepi__point_within(problem, d, &own);
    status = gemmepi__run_problem_on_host(&within, &own, allocator);
    if (!status && !is_tensor)
        gemmepi__host_find_scales(problem, arguments, d);
    if (!is_tensor)
        gemmepi__delete(allocator, d);
    return status;
}

/* Scalars that lie on the device, which is the host. */
static void gemmepi__fetch_scalars(const gemmepi__problem *problem, gemmepi__arguments *arguments) {
    if (arguments->device_alpha)
        memcpy(&arguments->alpha, arguments->device_alpha, sizeof(double));
    if (arguments->device_beta)
        memcpy(&arguments->beta, arguments->device_beta, sizeof(double));
    if (problem->accumulator == GEMMEPI_I32) {
        arguments->alpha = rint(arguments->alpha);
        arguments->beta = rint(arguments->beta);
    }
}

static gemmepi_status gemmepi__run_on_host(const gemmepi__matmul_plan *plan, gemmepi__arguments *arguments) {
    gemmepi__fetch_scalars(&plan->problem, arguments);
    if (plan->problem.found_scale && !gemmepi__is_empty(&plan->problem))
        return gemmepi__run_found_on_host(plan, arguments);
    return gemmepi__run_problem_on_host(&plan->problem, arguments, &plan->base.context->allocator);
}
#endif

#ifndef GEMMEPI_NO_FORMULA
/* Numbers lie on the host. */
static gemmepi_status gemmepi__check_formula_reach(const gemmepi__problem *problem,
                                                   const gemmepi_context *context,
                                                   const gemmepi__arguments *arguments) {
    gemmepi__regions regions;
    gemmepi_status status = GEMMEPI_OK;
    char name[128];
    int i;
    gemmepi__list_regions(problem, arguments, &regions);
    for (i = 0; i < regions.count && !status; i++) {
        gemmepi__name_region(problem, &regions.list[i], name, sizeof name);
        status = gemmepi__check_reachable(context, name + strlen("args."), regions.list[i].pointer);
    }
    return status;
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
#ifndef GEMMEPI_NO_FORMULA
    if (!status && problem->formula)
        status = gemmepi__check_formula_reach(problem, context, arguments);
#endif
    return status;
}

/* one_shot: each pointer is asked about at the driver, which takes a microsecond. */
static gemmepi_status gemmepi__run_matmul(const gemmepi__matmul_plan *plan, const gemmepi_matmul_args *args,
                                          int one_shot, gemmepi_stream stream) {
    const gemmepi__problem *problem = gemmepi__asked(plan);
    gemmepi__arguments arguments;
    gemmepi__entry entry;
    gemmepi_status status;
    status = gemmepi__check_run(plan->base.context, stream, args->workspace, args->workspace_size);
    if (status || gemmepi__writes_nothing(problem))
        return status;
    status = gemmepi__take_arguments(problem, args, &arguments);
#ifndef GEMMEPI_NO_FORMULA
    if (!status && problem->formula)
        status = gemmepi__take_formula_arguments(problem, args, &arguments);
#endif
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
        status = gemmepi__check_reach(problem, plan->base.context, args, &arguments);
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
    return gemmepi__reserve_for(plan->base.context, stream,
                                gemmepi__key_of_plan(plan->around != NULL, stream),
                                gemmepi__workspace_now(plan));
}

/* >>one-shot calls: plans kept by problem */

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

/* Likewise for a desc. */
static gemmepi_status gemmepi__plan_of_desc(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                            size_t alignment, gemmepi__matmul_plan **result) {
    gemmepi__problem problem;
    gemmepi_status status = gemmepi__take_problem(context, desc, alignment, &problem);
    if (status)
        return status;
    status = gemmepi__get_plan(context, &problem, result);
    gemmepi__drop_formula(context, &problem); /* the plan has it */
    return status;
}

/* One with a formula is looked for by its text first. */
static gemmepi_status gemmepi__plan_of_call(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                            size_t alignment, gemmepi__matmul_plan **result) {
#ifndef GEMMEPI_NO_FORMULA
    gemmepi__text_key key;
    gemmepi_status status;
    if (desc && desc->formula) {
        GEMMEPI__MAKE_TEXT_KEY(&key, GEMMEPI__PRODUCT_BY_TEXT, alignment, desc, gemmepi_matmul_desc);
        *result = (gemmepi__matmul_plan *)gemmepi__find_by_text(context, &key);
        if (*result)
            return GEMMEPI_OK;
        status = gemmepi__plan_of_desc(context, desc, alignment, result);
        if (!status)
            gemmepi__keep_by_text(context, &key, &(*result)->base);
        return status;
    }
#endif
    return gemmepi__plan_of_desc(context, desc, alignment, result);
}

GEMMEPI_API gemmepi_status gemmepi_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                          const gemmepi_matmul_args *args, gemmepi_stream stream) {
    gemmepi__matmul_plan *plan;
    gemmepi_status status;
    if (!context || !args)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "args" : "context");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__plan_of_call(context, desc, gemmepi__alignment_of(desc, args), &plan);
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
