/* Runs of element-wise operations. */
#ifndef GEMMEPI_ELEMENTWISE_RUN_H
#define GEMMEPI_ELEMENTWISE_RUN_H

#include "pointers.h"

static void gpi__list_pointers_of(const gemmepi_elementwise_args *args, void *pointers[GPI__TENSORS]) {
    const void *inputs[GPI__OUT_Y];
    inputs[GPI__IN_A] = args->a;
    inputs[GPI__IN_B] = args->b;
    inputs[GPI__IN_W] = args->w;
    inputs[GPI__IN_DY] = args->dy;
    memcpy(pointers, inputs, sizeof inputs);
    pointers[GPI__OUT_Y] = args->y;
    pointers[GPI__OUT_DA] = args->da;
    pointers[GPI__OUT_DB] = args->db;
    pointers[GPI__OUT_DW] = args->dw;
    pointers[GPI__OUT_Y_TRANSPOSED] = args->y_transposed;
}

static gemmepi_status gpi__launch_all(const gpi__elementwise_plan *plan, const gemmepi_elementwise_args *args,
                                      void *const *pointers, void *workspace, gemmepi_stream stream) {
    gpi__operation_params operation;
    gemmepi_status status = GEMMEPI_OK;
    int i;
#ifndef GEMMEPI_NO_FORMULA
    if (plan->formula)
        return gpi__run_formula_on_device(plan->base.context, plan->formula, args, pointers, workspace,
                                          stream);
#endif
    if (plan->route == GEMMEPI_ROUTE_SCALED)
        return gpi__run_scaled(plan->base.context, &plan->scaled, args, pointers, workspace, stream);
    operation.parameter = plan->task.parameter;
    operation.weight = args->weight;
    operation.scale = args->scale;
    operation.amax = args->amax;
    for (i = 0; i < plan->sum_count && !status; i++)
        status =
            gpi__run_axis_sum(plan->base.context, &plan->sums[i], &operation, pointers, workspace, stream);
    if (!status && operation.amax)
        status = gpi__clear_numbers(plan->base.context, operation.amax, gpi__amax_size(&plan->task), stream);
    if (!status && plan->loop.launch.function)
        status = gpi__run_loop(plan->base.context, &plan->loop, &operation, pointers, stream);
    return status;
}

/* Workspace is an output like any other. */
static gemmepi_status gpi__check_own_workspace(const gpi__elementwise_plan *plan,
                                               const gemmepi_elementwise_args *args, void *const *pointers) {
    uintptr_t begin = (uintptr_t)args->workspace, end = begin + plan->workspace_size;
    int t;
    gemmepi_status status =
        gpi__check_given_workspace(args->workspace, args->workspace_size, plan->workspace_size);
    if (status)
        return status;
    for (t = 0; t < GPI__TENSORS; t++) { /* of a formula none: its regions have been looked at */
        uintptr_t base =
            gpi__task_has(&plan->task, t) ? (uintptr_t)pointers[plan->task.operands[t].pointer] : 0;
        if (base && begin < base + (uintptr_t)plan->reach[t].high &&
            base + (uintptr_t)plan->reach[t].low < end)
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.workspace (%p, %llu bytes used) overlaps %s",
                             args->workspace, (gpi__ull)plan->workspace_size,
                             gpi__tensor_names[plan->task.operands[t].pointer]);
    }
    if (args->y_scale && begin < (uintptr_t)(args->y_scale + gpi__scale_count(&plan->task, 0)) &&
        (uintptr_t)args->y_scale < end)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.workspace (%p, %llu bytes used) overlaps args.y_scale (%p)", args->workspace,
                         (gpi__ull)plan->workspace_size, (void *)args->y_scale);
    if (args->amax &&
        begin < (uintptr_t)args->amax +
                    (uintptr_t)gpi__scale_count(&plan->task, 0) * gpi__amax_size(&plan->task) &&
        (uintptr_t)args->amax < end)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.workspace (%p, %llu bytes used) overlaps args.amax (%p)", args->workspace,
                         (gpi__ull)plan->workspace_size, args->amax);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__launch_elementwise(const gpi__elementwise_plan *plan,
                                              const gemmepi_elementwise_args *args, void *const *pointers,
                                              gemmepi_stream stream) {
    gpi__block *block;
    gemmepi_status status;
    if (plan->workspace_size == 0)
        return gpi__launch_all(plan, args, pointers, NULL, stream);
    if (args->workspace) {
        status = gpi__check_own_workspace(plan, args, pointers);
        return status ? status : gpi__launch_all(plan, args, pointers, args->workspace, stream);
    }
    block = gpi__acquire_block(plan->base.context, gpi__key_of_stream(stream), plan->workspace_size,
                               "gemmepi_plan_prepare");
    if (!block)
        return GEMMEPI_BUFFER_TOO_SMALL;
    status = gpi__launch_all(plan, args, pointers, (void *)(uintptr_t)block->address, stream);
    gpi__give_block(block);
    return status;
}

static gemmepi_status gpi__check_reach_of(const gpi__elementwise_plan *plan,
                                          const gemmepi_elementwise_args *args, void *const *pointers) {
    const gemmepi_context *context = plan->base.context;
    gemmepi_status status = gpi__check_reachable(context, "workspace", args->workspace);
    int t;
    for (t = 0; t < GPI__TENSORS && !status; t++)
        status = gpi__check_reachable(context, gpi__tensor_names[t], pointers[t]);
    if (!status)
        status = gpi__check_reachable(context, "scale", args->scale);
    if (!status)
        status = gpi__check_reachable(context, "y_scale", args->y_scale);
    if (!status)
        status = gpi__check_reachable(context, "y_transposed_scale", args->y_transposed_scale);
    return status ? status : gpi__check_reachable(context, "amax", args->amax);
}

#ifndef GEMMEPI_NO_FORMULA
/* pointers: as gpi__list_formula_pointers has them. */
static gemmepi_status gpi__run_formula(const gpi__elementwise_plan *plan,
                                       const gemmepi_elementwise_args *args, void *const *pointers,
                                       int one_shot, gemmepi_stream stream) {
    const gpi__elementwise_formula *own = plan->formula;
    gpi__tensor_regions regions;
    gpi__entry entry;
    gemmepi_status status = gpi__check_run(plan->base.context, stream, args->workspace, args->workspace_size);
    if (status || plan->route == GEMMEPI_ROUTE_EMPTY)
        return status;
    status = gpi__check_formula_pointers(&own->task, own->reach, pointers, args, &regions);
    if (status)
        return status;
#ifndef GEMMEPI_NO_HOST
    if (plan->route == GEMMEPI_ROUTE_HOST)
        return gpi__run_formula_on_host(own, args, pointers, &plan->base.context->allocator);
#endif
    if (args->workspace && plan->workspace_size)
        status =
            gpi__check_workspace_of_formula(own->formula, &regions, args->workspace, plan->workspace_size);
    if (!status)
        status = gpi__enter(plan->base.context, &entry);
    if (status)
        return status;
    if (one_shot || plan->base.context->check_pointers)
        status = gpi__check_reachable(plan->base.context, "workspace", args->workspace);
    if (!status && (one_shot || plan->base.context->check_pointers))
        status = gpi__check_reach_of_formula(plan->base.context, own->formula, &regions);
    if (!status)
        status = gpi__launch_elementwise(plan, args, pointers, stream);
    gpi__leave(plan->base.context, &entry);
    return status;
}
#endif

/* one_shot: as gpi__run_matmul's. */
static gemmepi_status gpi__run_elementwise(const gpi__elementwise_plan *plan,
                                           const gemmepi_elementwise_args *args, int one_shot,
                                           gemmepi_stream stream) {
    void *pointers[GPI__TENSORS];
    gpi__entry entry;
    gemmepi_status status;
    status = gpi__check_run(plan->base.context, stream, args->workspace, args->workspace_size);
    if (status || plan->route == GEMMEPI_ROUTE_EMPTY)
        return status;
    if (args->weight != 0 && gpi__task_has(&plan->task, GPI__IN_W))
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.weight is %g beside w; leave it 0, or w NULL",
                         args->weight);
    if (args->weight != 0 && plan->task.operation != GEMMEPI_OP_LERP &&
        plan->task.operation != GEMMEPI_OP_LERP_BACKWARD)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.weight is %g; the operation %s has none: leave it 0",
                         args->weight, gpi__operation(plan->task.operation)->name);
    if (plan->task.accumulator != GEMMEPI_F64 && fabs(args->weight) > FLT_MAX &&
        fabs(args->weight) <= DBL_MAX)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.weight is %g; the largest F32 is 3.4e38",
                         args->weight);
    gpi__list_pointers_of(args, pointers);
    status = gpi__check_pointers(plan, one_shot, pointers);
    if (!status && (plan->task.operation == GEMMEPI_OP_CAST || args->scale || args->y_scale || args->amax ||
                    args->y_transposed_scale))
        status = gpi__check_numbers(plan, args);
    if (status)
        return status;
#ifndef GEMMEPI_NO_HOST
    if (plan->route == GEMMEPI_ROUTE_HOST) {
        gpi__host_elementwise(&plan->task, pointers, args);
        return GEMMEPI_OK;
    }
#endif
    status = gpi__enter(plan->base.context, &entry);
    if (status)
        return status;
    if (one_shot || plan->base.context->check_pointers)
        status = gpi__check_reach_of(plan, args, pointers);
    if (!status)
        status = gpi__launch_elementwise(plan, args, pointers, stream);
    gpi__leave(plan->base.context, &entry);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_run_elementwise(const gemmepi_plan *plan,
                                                   const gemmepi_elementwise_args *args,
                                                   gemmepi_stream stream) {
    const gpi__elementwise_plan *own = (const gpi__elementwise_plan *)plan;
    gemmepi_status status = gpi__check_plan(plan, args, GEMMEPI_PLAN_ELEMENTWISE);
#ifndef GEMMEPI_NO_FORMULA
    void *pointers[GPI__RESULT + 1];
    if (!status && own->formula) {
        gpi__list_formula_pointers(args, own->formula->formula->operand_count, NULL, pointers);
        return gpi__run_formula(own, args, pointers, 0, stream);
    }
#endif
    return status ? status : gpi__run_elementwise(own, args, 0, stream);
}

static gemmepi_status gpi__prepare_elementwise(const gpi__elementwise_plan *plan, gemmepi_stream stream) {
    return gpi__reserve_for(plan->base.context, stream, gpi__key_of_stream(stream), plan->workspace_size);
}

#endif
