/* Runs of grouped products, and the call that plans by itself. */
#ifndef GEMMEPI_GROUPED_RUN_H
#define GEMMEPI_GROUPED_RUN_H

#include "../product/run.h"
#include "plan.h"
#ifndef GEMMEPI_NO_HOST
#include "../host/grouped.h"
#endif

/* >>launches */

/* Where a run's workspace has what. */
typedef struct gemmepi__grouped_space {
    char *count, *parts, *maps, *gathered[2];
} gemmepi__grouped_space;

static gemmepi__grouped_space gemmepi__divide_space(const gemmepi__grouped_plan *plan, char *workspace) {
    gemmepi__grouped_space space;
    space.count = workspace;
    space.parts = workspace + 256;
    space.maps = space.parts + gemmepi__round_up(plan->parts_size, 256);
    space.gathered[0] = space.maps + gemmepi__round_up(plan->maps_size, 256);
    space.gathered[1] = space.gathered[0] + gemmepi__round_up(plan->gathered_sizes[0], 256);
    return space;
}

/* Points to each amax that the product's kernel raises from 0: of an empty D none is written. */
static void gemmepi__point_amax_of_groups(const gemmepi__problem *problem,
                                          const gemmepi__arguments *arguments,
                                          gemmepi__groups_params *params) {
    int i;
    for (i = 0; i < 2 && !gemmepi__is_empty(problem); i++)
        params->amax[i] = (unsigned *)arguments->pointers[GEMMEPI__AMAX_D + i];
    params->amax_words = problem->accumulator == GEMMEPI_F64 ? 2 : 1;
}

static gemmepi_status gemmepi__launch_groups(const gemmepi__grouped_plan *plan,
                                             const gemmepi__arguments *arguments,
                                             const gemmepi__group_lists *lists,
                                             const gemmepi__grouped_space *space, gemmepi_stream stream) {
    const gemmepi_context *context = plan->base.context;
    gemmepi__groups_params params;
    int i;
    memset(&params, 0, sizeof params);
    params.ends = (const int *)lists->lists[GEMMEPI__FAULT_ENDS];
    for (i = 0; i < 3; i++) {
        params.indices[i] = (const int *)lists->lists[GEMMEPI__FAULT_A + i];
        params.limits[i] =
            (int)(lists->limits[GEMMEPI__FAULT_A + i] > INT_MAX ? INT_MAX
                                                                : lists->limits[GEMMEPI__FAULT_A + i]);
    }
    params.groups = plan->problem.grouping.groups;
    params.positions = (int)gemmepi__positions(&plan->problem);
    params.tile = plan->tile;
    params.low = plan->low;
    params.columns = plan->columns;
    params.band = plan->band;
    params.count = (int *)(void *)space->count;
    params.parts = (gemmepi__group_part *)(void *)space->parts;
    params.faults =
        (gemmepi__fault *)gemmepi__load_pointer((gemmepi__atomic_pointer *)(uintptr_t)&context->faults);
    gemmepi__point_amax_of_groups(&plan->problem, arguments, &params);
    return gemmepi__launch_kernel(context, &plan->groups, &params, "the check of groups", stream);
}

static gemmepi_status gemmepi__launch_gather(const gemmepi__grouped_plan *plan,
                                             const gemmepi__group_lists *lists, int operand, const void *from,
                                             const gemmepi__grouped_space *space, gemmepi_stream stream) {
    gemmepi__gather_params params = plan->gather_params[operand];
    params.from = from;
    params.to = space->gathered[operand];
    params.index = (const int *)lists->lists[GEMMEPI__FAULT_A + operand];
    params.ends = (const int *)lists->lists[GEMMEPI__FAULT_ENDS];
    params.count = (const int *)(const void *)space->count;
    return gemmepi__launch_kernel(plan->base.context, &plan->gathers[operand], &params,
                                  "a copy of gathered rows", stream);
}

/* pointers: of A and B as the product's kernel reads them. */
static gemmepi_status gemmepi__launch_maps(const gemmepi__grouped_plan *plan, void *const *pointers,
                                           const gemmepi__grouped_space *space, gemmepi_stream stream) {
    const gemmepi_context *context = plan->base.context;
    uint64_t memory[(sizeof(gemmepi__maps_params) + 64) / sizeof(uint64_t)];
    gemmepi__maps_params *params = (gemmepi__maps_params *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    int result;
    memset(params, 0, sizeof *params);
    params->a = plan->built.sm90.params.a;
    params->b = plan->built.sm90.params.b;
    params->maps = space->maps;
    params->count = (const int *)(const void *)space->count;
    params->parts = (const gemmepi__group_part *)(const void *)space->parts;
    result = gemmepi__point_map(&context->driver, &params->a, pointers[GEMMEPI__A]);
    if (!result)
        result = gemmepi__point_map(&context->driver, &params->b, pointers[GEMMEPI__B]);
    if (result)
        return gemmepi__cuda_failed(&context->driver, result, "cuTensorMapReplaceAddress");
    return gemmepi__launch_kernel(context, &plan->maps, params, "the tensor maps of groups", stream);
}

static gemmepi_status gemmepi__launch_group_sums(const gemmepi__grouped_plan *plan,
                                                 const gemmepi__arguments *arguments,
                                                 const gemmepi__group_lists *lists,
                                                 const gemmepi__grouped_space *space, gemmepi_stream stream) {
    gemmepi__group_sums_params params = plan->sums_params;
    int operand = gemmepi__summed_operand(&plan->problem);
    params.x.data = arguments->pointers[operand];
    params.scale = (const float *)arguments->pointers[GEMMEPI__SCALE_OF(operand)];
    params.out = arguments->pointers[GEMMEPI__BIAS_GRAD];
    params.index = (const int *)lists->lists[GEMMEPI__FAULT_A + operand];
    params.count = (const int *)(const void *)space->count;
    params.parts = (const gemmepi__group_part *)(const void *)space->parts;
    return gemmepi__launch_kernel(plan->base.context, &plan->sums, &params, "bias_grad of groups", stream);
}

static void gemmepi__point_groups(const gemmepi__grouped_plan *plan, const gemmepi__group_lists *lists,
                                  const gemmepi__grouped_space *space, gemmepi__kernel_groups *groups) {
    groups->count = (const int *)(const void *)space->count;
    groups->parts = (const gemmepi__group_part *)(const void *)space->parts;
    groups->index_a = (const int *)lists->lists[GEMMEPI__FAULT_A];
    groups->index_b = (const int *)lists->lists[GEMMEPI__FAULT_B];
    groups->index_d = (const int *)lists->lists[GEMMEPI__FAULT_D];
    groups->maps = space->maps;
    groups->rows_a = gemmepi__is_gathered(&plan->problem, GEMMEPI__A) && !plan->problem.grouping.is_of_k
                         ? plan->problem.views[GEMMEPI__A].lines
                         : plan->problem.m;
}

static gemmepi_status gemmepi__launch_grouped(const gemmepi__grouped_plan *plan,
                                              const gemmepi__arguments *arguments,
                                              const gemmepi__group_lists *lists, char *workspace,
                                              gemmepi_stream stream) {
    const gemmepi_context *context = plan->base.context;
    gemmepi__grouped_space space = gemmepi__divide_space(plan, workspace);
    gemmepi__arguments own = *arguments;
    gemmepi_status status = gemmepi__launch_groups(plan, arguments, lists, &space, stream);
    int operand;
    gemmepi__point_groups(plan, lists, &space, &own.groups);
#ifndef GEMMEPI_NO_FORMULA
    if (plan->problem.formula)
        gemmepi__point_inside(&plan->problem, &plan->slots, &own);
#endif
    if (!status && plan->sums.function)
        status = gemmepi__launch_group_sums(plan, arguments, lists, &space, stream);
    if (gemmepi__is_empty(&plan->problem))
        return status;
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B && !status; operand++)
        if (plan->gathers[operand].function) {
            status = gemmepi__launch_gather(plan, lists, operand, own.pointers[operand], &space, stream);
            own.pointers[operand] = space.gathered[operand];
        }
    if (!status && plan->maps.function)
        status = gemmepi__launch_maps(plan, own.pointers, &space, stream);
    if (status)
        return status;
    if (plan->route == GEMMEPI_ROUTE_PLAIN)
        return gemmepi__run_plain(context, &plan->inner, &plan->built.plain, &own, NULL, stream);
    if (gemmepi__adds_as_residual(&plan->problem)) {
        own.pointers[GEMMEPI__RESIDUAL] = own.pointers[GEMMEPI__C];
        own.uses_c = 0;
        own.beta = 0;
    }
    return plan->engine->run(context, &plan->inner, &plan->built.sm90, &own, NULL, stream);
}

/* >>workspace */

static gemmepi_status gemmepi__launch_grouped_in_block(const gemmepi__grouped_plan *plan,
                                                       const gemmepi__arguments *arguments,
                                                       const gemmepi__group_lists *lists,
                                                       gemmepi_stream stream) {
    gemmepi__block *block = gemmepi__take_block(plan->base.context, gemmepi__key_of_stream(stream),
                                                gemmepi__grouped_workspace(plan), "gemmepi_plan_prepare");
    gemmepi_status status;
    if (!block)
        return GEMMEPI_BUFFER_TOO_SMALL;
    status = gemmepi__launch_grouped(plan, arguments, lists, (char *)(uintptr_t)block->address, stream);
    gemmepi__give_block(block);
    return status;
}

/* No list may lie in workspace. */
static gemmepi_status gemmepi__check_lists_workspace(const gemmepi__problem *problem,
                                                     const gemmepi__group_lists *lists, const void *workspace,
                                                     size_t needed) {
    uintptr_t begin = (uintptr_t)workspace;
    int i;
    for (i = 0; i < GEMMEPI__FAULTS; i++) {
        uintptr_t list = (uintptr_t)lists->lists[i];
        uintptr_t size = 4 * (uintptr_t)(i ? gemmepi__positions(problem) : problem->grouping.groups);
        if (list && list < begin + needed && begin < list + size)
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 "args.workspace (%p, %llu bytes used) overlaps args.%s (%p)", workspace,
                                 (gemmepi__ull)needed, gemmepi__names_of_lists[i], (const void *)list);
    }
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__run_grouped_on_device(const gemmepi__grouped_plan *plan,
                                                     const gemmepi_matmul_args *args,
                                                     const gemmepi__arguments *arguments,
                                                     const gemmepi__group_lists *lists,
                                                     gemmepi_stream stream) {
    int uses_c = arguments->uses_c && !gemmepi__adds_as_residual(&plan->problem);
    size_t needed = gemmepi__grouped_workspace(plan);
    gemmepi_status status = GEMMEPI_OK;
    if (plan->applied && (arguments->alpha != 1 || uses_c || arguments->device_alpha))
        status = gemmepi__general_groups(plan, &plan);
    if (status)
        return status;
    if (!args->workspace)
        return gemmepi__launch_grouped_in_block(plan, arguments, lists, stream);
    status = gemmepi__check_given_workspace(args->workspace, args->workspace_size, needed);
    if (!status)
        status = gemmepi__check_workspace(&plan->problem, arguments, args->workspace, needed);
    if (!status)
        status = gemmepi__check_lists_workspace(&plan->problem, lists, args->workspace, needed);
#ifndef GEMMEPI_NO_FORMULA
    if (!status && plan->problem.formula)
        status = gemmepi__check_formula_workspace(&plan->problem, arguments, args->workspace, needed);
#endif
    return status ? status : gemmepi__launch_grouped(plan, arguments, lists, (char *)args->workspace, stream);
}

/* >>runs */

#ifndef GEMMEPI_NO_HOST
/* FIND_SCALE_D: D in F32 in memory of the allocator, then the scales of the rows that positions have. */
static gemmepi_status gemmepi__find_groups_on_host(const gemmepi__problem *problem,
                                                   const gemmepi__arguments *arguments,
                                                   const gemmepi__group_lists *lists,
                                                   const gemmepi_allocator *allocator) {
    const int32_t *rows = lists->lists[GEMMEPI__FAULT_D];
    gemmepi__problem within = gemmepi__problem_within(problem);
    gemmepi__arguments own = *arguments;
    size_t bytes = gemmepi__bytes_for(problem->views[GEMMEPI__D].bytes, sizeof(float));
    float *d = (float *)gemmepi__new(allocator, bytes);
    gemmepi_status status;
    int64_t i;
    if (!d)
        return GEMMEPI_OUT_OF_MEMORY;
    gemmepi__point_within(problem, d, &own);
    status = gemmepi__host_grouped(&within, &own, lists, allocator);
    for (i = 0; !status && i < lists->lists[GEMMEPI__FAULT_ENDS][problem->grouping.groups - 1]; i++)
        gemmepi__host_find_scales_of_row(problem, arguments, d, 0, rows ? rows[i] : i);
    gemmepi__delete(allocator, d);
    return status;
}

static gemmepi_status gemmepi__run_grouped_on_host(const gemmepi__grouped_plan *plan,
                                                   gemmepi__arguments *arguments,
                                                   const gemmepi__group_lists *lists) {
    const gemmepi_allocator *allocator = &plan->base.context->allocator;
    gemmepi__fetch_scalars(&plan->problem, arguments);
    if (plan->problem.found_scale && !gemmepi__is_empty(&plan->problem))
        return gemmepi__find_groups_on_host(&plan->problem, arguments, lists, allocator);
    return gemmepi__host_grouped(&plan->problem, arguments, lists, allocator);
}
#endif

static gemmepi_status gemmepi__check_lists_reach(const gemmepi_context *context,
                                                 const gemmepi__group_lists *lists) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < GEMMEPI__FAULTS && !status; i++)
        status = gemmepi__check_reachable(context, gemmepi__names_of_lists[i], lists->lists[i]);
    return status;
}

static gemmepi_status gemmepi__run_grouped(const gemmepi__grouped_plan *plan,
                                           const gemmepi_grouped_args *args, int one_shot,
                                           gemmepi_stream stream) {
    gemmepi_context *context = plan->base.context;
    gemmepi__arguments arguments;
    gemmepi__group_lists lists;
    gemmepi__entry entry;
    gemmepi_status status =
        gemmepi__check_run(context, stream, args->product.workspace, args->product.workspace_size);
    if (status || plan->route == GEMMEPI_ROUTE_EMPTY)
        return status;
    status = gemmepi__take_grouped_arguments(&plan->problem, args, &arguments, &lists);
#ifndef GEMMEPI_NO_FORMULA
    if (!status && plan->problem.formula)
        status = gemmepi__take_formula_arguments(&plan->problem, &args->product, &arguments);
#endif
    if (status)
        return status;
#ifndef GEMMEPI_NO_HOST
    if (context->is_host)
        return gemmepi__run_grouped_on_host(plan, &arguments, &lists);
#endif
    status = gemmepi__enter(context, &entry);
    if (status)
        return status;
    if (one_shot || context->check_pointers) {
        status = gemmepi__check_reach(&plan->problem, context, &args->product, &arguments);
        if (!status)
            status = gemmepi__check_lists_reach(context, &lists);
    }
    if (!status)
        status = gemmepi__run_grouped_on_device(plan, &args->product, &arguments, &lists, stream);
    gemmepi__leave(context, &entry);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_run_grouped(const gemmepi_plan *plan, const gemmepi_grouped_args *args,
                                               gemmepi_stream stream) {
    gemmepi_status status = gemmepi__check_plan(plan, args, GEMMEPI_PLAN_GROUPED);
    if (!status)
        status = gemmepi__run_grouped((const gemmepi__grouped_plan *)plan, args, 0, stream);
    return gemmepi__in_groups_words(status);
}

/* >>one-shot calls */

/* A plan for the problem with a reference for the caller to release. */
static gemmepi_status gemmepi__get_grouped(gemmepi_context *context, const gemmepi__problem *problem,
                                           gemmepi__grouped_plan **result) {
    gemmepi__plan_key key;
    gemmepi_plan *kept;
    gemmepi__grouped_plan *plan;
    gemmepi_status status;
    gemmepi__make_plan_key(problem, &key);
    kept = gemmepi__find_kept(context, key.bytes, key.size);
    if (!kept) {
        status = gemmepi__build_grouped(context, problem, gemmepi__may_be_applied(problem), &plan);
        if (status)
            return status;
        kept = gemmepi__keep(context, key.bytes, key.size, &plan->base);
    }
    *result = (gemmepi__grouped_plan *)kept;
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__grouped_of_desc(gemmepi_context *context, const gemmepi_grouped_desc *desc,
                                               size_t alignment, gemmepi__grouped_plan **result) {
    gemmepi__problem problem;
    gemmepi_status status = gemmepi__take_grouped(&context->allocator, desc, alignment, &problem);
    if (status)
        return status;
    gemmepi__share_formula(context, &problem);
    status = gemmepi__get_grouped(context, &problem, result);
    gemmepi__drop_formula(context, &problem); /* the plan has it */
    return status;
}

#ifndef GEMMEPI_NO_FORMULA
/* What a grouped desc has beside its product, in a key that has that. */
static void gemmepi__add_groups_to_key(gemmepi__text_key *key, const gemmepi_grouped_desc *desc) {
    const int64_t own[] = {desc->groups,   desc->grouping,  desc->gather_a,
                           desc->gather_b, desc->scatter_d, desc->weighted};
    if (key->size && !gemmepi__add_to_key(key, own, sizeof own))
        key->size = 0;
}
#endif

/* One with a formula is looked for by its text first. */
static gemmepi_status gemmepi__grouped_of_call(gemmepi_context *context, const gemmepi_grouped_desc *desc,
                                               size_t alignment, gemmepi__grouped_plan **result) {
#ifndef GEMMEPI_NO_FORMULA
    gemmepi__text_key key;
    gemmepi_status status;
    if (desc->product.formula) {
        GEMMEPI__MAKE_TEXT_KEY(&key, GEMMEPI__GROUPED_BY_TEXT, alignment, &desc->product,
                               gemmepi_matmul_desc);
        gemmepi__add_groups_to_key(&key, desc);
        *result = (gemmepi__grouped_plan *)gemmepi__find_by_text(context, &key);
        if (*result)
            return GEMMEPI_OK;
        status = gemmepi__grouped_of_desc(context, desc, alignment, result);
        if (!status)
            gemmepi__keep_by_text(context, &key, &(*result)->base);
        return status;
    }
#endif
    return gemmepi__grouped_of_desc(context, desc, alignment, result);
}

GEMMEPI_API gemmepi_status gemmepi_grouped(gemmepi_context *context, const gemmepi_grouped_desc *desc,
                                           const gemmepi_grouped_args *args, gemmepi_stream stream) {
    gemmepi__grouped_plan *plan;
    gemmepi_status status;
    if (!context || !args || !desc)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL",
                             !context ? "context"
                             : args   ? "desc"
                                      : "args");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status =
        gemmepi__grouped_of_call(context, desc, gemmepi__alignment_of(&desc->product, &args->product), &plan);
    if (status)
        return status;
    if (!args->product.workspace)
        status = gemmepi__prepare_grouped(plan, stream);
    if (!status)
        status = gemmepi__run_grouped(plan, args, 1, stream);
    gemmepi__release_plan(&plan->base);
    return gemmepi__in_groups_words(status);
}

#endif
