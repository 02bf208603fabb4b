/* Runs of grouped products, and the call that plans by itself. */
#ifndef GEMMEPI_GROUPED_RUN_H
#define GEMMEPI_GROUPED_RUN_H

#include "../product/run.h"
#include "plan.h"

/* >>launches */

/* Where a run's workspace has what. */
typedef struct gpi__grouped_space {
    char *count, *parts, *maps, *gathered[2];
} gpi__grouped_space;

static gpi__grouped_space gpi__divide_space(const gpi__grouped_plan *plan, char *workspace) {
    gpi__grouped_space space;
    space.count = workspace;
    space.parts = workspace + 256;
    space.maps = space.parts + gpi__round_up(plan->parts_size, 256);
    space.gathered[0] = space.maps + gpi__round_up(plan->maps_size, 256);
    space.gathered[1] = space.gathered[0] + gpi__round_up(plan->gathered_sizes[0], 256);
    return space;
}

/* Points to each amax that the product's kernel raises from 0: of an empty D none is written. */
static void gpi__point_amax_of_groups(const gpi__problem *problem, const gpi__arguments *arguments,
                                      gpi__groups_params *params) {
    int i;
    for (i = 0; i < 2 && !gpi__is_empty(problem); i++)
        params->amax[i] = (unsigned *)arguments->pointers[GPI__AMAX_D + i];
    params->amax_words = problem->accumulator == GEMMEPI_F64 ? 2 : 1;
}

static gemmepi_status gpi__launch_groups(const gpi__grouped_plan *plan, const gpi__arguments *arguments,
                                         const gpi__group_lists *lists, const gpi__grouped_space *space,
                                         gemmepi_stream stream) {
    const gemmepi_context *context = plan->base.context;
    gpi__groups_params params;
    int i;
    memset(&params, 0, sizeof params);
    params.ends = (const int *)lists->lists[GPI__FAULT_ENDS];
    for (i = 0; i < 3; i++) {
        params.indices[i] = (const int *)lists->lists[GPI__FAULT_A + i];
        params.limits[i] =
            (int)(lists->limits[GPI__FAULT_A + i] > INT_MAX ? INT_MAX : lists->limits[GPI__FAULT_A + i]);
    }
    params.groups = plan->problem.grouping.groups;
    params.positions = (int)gpi__positions(&plan->problem);
    params.tile = plan->tile;
    params.low = plan->low;
    params.columns = plan->columns;
    params.band = plan->band;
    params.count = (int *)(void *)space->count;
    params.parts = (gpi__group_part *)(void *)space->parts;
    params.faults = (gpi__fault *)gpi__load_pointer((gpi__atomic_pointer *)(uintptr_t)&context->faults);
    gpi__point_amax_of_groups(&plan->problem, arguments, &params);
    return gpi__launch_kernel(context, &plan->groups, &params, "the check of groups", stream);
}

static gemmepi_status gpi__launch_gather(const gpi__grouped_plan *plan, const gpi__group_lists *lists,
                                         int operand, const void *from, const gpi__grouped_space *space,
                                         gemmepi_stream stream) {
    gpi__gather_params params = plan->gather_params[operand];
    params.from = from;
    params.to = space->gathered[operand];
    params.index = (const int *)lists->lists[GPI__FAULT_A + operand];
    params.ends = (const int *)lists->lists[GPI__FAULT_ENDS];
    params.count = (const int *)(const void *)space->count;
    return gpi__launch_kernel(plan->base.context, &plan->gathers[operand], &params, "a copy of gathered rows",
                              stream);
}

/* pointers: of A and B as the product's kernel reads them. */
static gemmepi_status gpi__launch_maps(const gpi__grouped_plan *plan, void *const *pointers,
                                       const gpi__grouped_space *space, gemmepi_stream stream) {
    const gemmepi_context *context = plan->base.context;
    uint64_t memory[(sizeof(gpi__maps_params) + 64) / sizeof(uint64_t)];
    gpi__maps_params *params = (gpi__maps_params *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    int result;
    memset(params, 0, sizeof *params);
    params->a = plan->built.sm90.params.a;
    params->b = plan->built.sm90.params.b;
    params->maps = space->maps;
    params->count = (const int *)(const void *)space->count;
    params->parts = (const gpi__group_part *)(const void *)space->parts;
    result = gpi__point_map(&context->driver, &params->a, pointers[GPI__A]);
    if (!result)
        result = gpi__point_map(&context->driver, &params->b, pointers[GPI__B]);
    if (result)
        return gpi__cuda_failed(&context->driver, result, "cuTensorMapReplaceAddress");
    return gpi__launch_kernel(context, &plan->maps, params, "the tensor maps of groups", stream);
}

static void gpi__point_groups(const gpi__grouped_plan *plan, const gpi__group_lists *lists,
                              const gpi__grouped_space *space, gpi__kernel_groups *groups) {
    groups->count = (const int *)(const void *)space->count;
    groups->parts = (const gpi__group_part *)(const void *)space->parts;
    groups->index_a = (const int *)lists->lists[GPI__FAULT_A];
    groups->index_b = (const int *)lists->lists[GPI__FAULT_B];
    groups->index_d = (const int *)lists->lists[GPI__FAULT_D];
    groups->maps = space->maps;
    groups->rows_a = gpi__is_gathered(&plan->problem, GPI__A) && !plan->problem.grouping.is_of_k
                         ? plan->problem.views[GPI__A].lines
                         : plan->problem.m;
}

/* A run of a plan, once its pointers have been looked at. */
typedef struct gpi__grouped_run {
    const gpi__grouped_plan *plan;
    gpi__arguments arguments;
    gpi__group_lists lists;
} gpi__grouped_run;

static gemmepi_status gpi__launch_grouped(void *user, char *workspace, size_t size, gemmepi_stream stream) {
    const gpi__grouped_run *run = (const gpi__grouped_run *)user;
    const gpi__grouped_plan *plan = run->plan;
    const gpi__arguments *arguments = &run->arguments;
    const gpi__group_lists *lists = &run->lists;
    const gemmepi_context *context = plan->base.context;
    gpi__around_space at = {{NULL, NULL}, NULL, NULL, NULL, workspace};
    gpi__arguments own = *arguments;
    gpi__grouped_space space;
    gemmepi_status status = GEMMEPI_OK;
    int operand;
    (void)size;
    if (plan->around) {
        at = gpi__divide_around(plan->around, workspace);
        status = gpi__run_made(context, plan->around, &at, &own, stream);
    }
    space = gpi__divide_space(plan, at.product);
    if (!status)
        status = gpi__launch_groups(plan, arguments, lists, &space, stream);
    gpi__point_groups(plan, lists, &space, &own.groups);
    own.inside = GPI__FORMULA(&plan->problem);
    if (own.inside)
        gpi__point_slots(&plan->said, &own);
    if (!status)
        status = gpi__run_sums(context, &plan->sums, &own, NULL, stream);
    if (gpi__is_empty(&plan->problem))
        return status;
    for (operand = GPI__A; operand <= GPI__B && !status; operand++)
        if (plan->gathers[operand].function) {
            status = gpi__launch_gather(plan, lists, operand, own.pointers[operand], &space, stream);
            own.pointers[operand] = space.gathered[operand];
        }
    if (!status && plan->maps.function)
        status = gpi__launch_maps(plan, own.pointers, &space, stream);
    if (status)
        return status;
    if (plan->route == GEMMEPI_ROUTE_PLAIN)
        return gpi__run_tiles(context, &plan->inner, &plan->built, &own, NULL, stream);
    if (gpi__adds_as_residual(&plan->problem)) {
        own.pointers[GPI__RESIDUAL] = own.pointers[GPI__C];
        own.uses_c = 0;
        own.beta = 0;
    }
    return plan->engine->run(context, &plan->inner, &plan->built, &own, NULL, stream);
}

/* >>runs */

#ifndef GEMMEPI_NO_HOST
/* Positions behind the last end are of no group, as some programs want, and those who give sizes or beginnings do not. */
static void gpi__tell_of_rest(const gpi__grouped_plan *plan, const gpi__group_lists *lists) {
    int64_t all = gpi__positions(&plan->problem), groups = plan->problem.grouping.groups;
    const int32_t *ends = lists->lists[GPI__FAULT_ENDS];
    if (groups && ends[groups - 1] >= 0 && ends[groups - 1] < all)
        gpi__say(
            &plan->base.context->log, GEMMEPI_LOG_INFO,
            "the last of args.ends is %d, and %s from there up to desc.product.%s (%lld) are of no group; ends say where groups end, "
            "not how large they are or where they begin",
            (int)ends[groups - 1], plan->problem.grouping.is_of_k ? "steps" : "rows",
            plan->problem.grouping.is_of_k ? "k" : "m", (long long)all);
}
#endif

/* By the plan, or that for runs with alpha or C. */
static gemmepi_status gpi__run_grouped_on_device(gpi__grouped_run *run, const gpi__space *space) {
    const gpi__grouped_plan *plan = run->plan;
    const gpi__arguments *arguments = &run->arguments;
    int uses_c = arguments->uses_c && !gpi__adds_as_residual(&plan->problem);
    size_t needed = gpi__grouped_workspace(plan);
    gemmepi_status status = GEMMEPI_OK;
    if (plan->unit_alpha && (arguments->alpha != 1 || uses_c || arguments->device_alpha))
        status = gpi__general_groups(plan, &run->plan);
    return status ? status : gpi__launch_in(plan->base.context, space, needed, gpi__launch_grouped, run);
}

static gemmepi_status gpi__run_grouped(const gemmepi_plan *base, const void *given, int one_shot,
                                       gemmepi_stream stream) {
    const gpi__grouped_plan *plan = (const gpi__grouped_plan *)base;
    const gemmepi_grouped_args *args = (const gemmepi_grouped_args *)given;
    gemmepi_context *context = plan->base.context;
    gpi__grouped_run run;
    gpi__regions regions;
    gpi__space space = {args->product.workspace, args->product.workspace_size, &regions, stream, 0, 0};
    gpi__entry entry;
    gemmepi_status status = gpi__check_run(context, stream, space.workspace, space.size);
    if (status || plan->route == GEMMEPI_ROUTE_EMPTY)
        return status;
    run.plan = plan;
    status = gpi__convert_grouped_arguments(gpi__asked_of_groups(plan), args, &run.arguments, &run.lists,
                                            &regions);
    if (!status)
        status = gpi__enter_run(context, &space, one_shot, &entry);
    if (status)
        return status;
#ifndef GEMMEPI_NO_HOST
    if (context->is_host) {
        status = gpi__run_on_host(&plan->problem, &run.arguments, &run.lists, &context->allocator);
        if (!status)
            gpi__tell_of_rest(plan, &run.lists);
        return status;
    }
#endif
    status = gpi__run_grouped_on_device(&run, &space);
    gpi__leave(context, &entry);
    return status;
}

#endif
