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

/* Whatever workspace args have is large enough, and apart. */
static gemmepi_status gpi__launch_elementwise(const gpi__elementwise_plan *plan,
                                              const gemmepi_elementwise_args *args, void *const *pointers,
                                              gemmepi_stream stream) {
    gpi__block *block;
    gemmepi_status status;
    if (plan->workspace_size == 0)
        return gpi__launch_all(plan, args, pointers, NULL, stream);
    if (args->workspace)
        return gpi__launch_all(plan, args, pointers, args->workspace, stream);
    block = gpi__acquire_block(plan->base.context, gpi__key_of_stream(stream), plan->workspace_size,
                               "gemmepi_plan_prepare");
    if (!block)
        return GEMMEPI_BUFFER_TOO_SMALL;
    status = gpi__launch_all(plan, args, pointers, (void *)(uintptr_t)block->address, stream);
    gpi__give_block(block);
    return status;
}

#ifndef GEMMEPI_NO_HOST
static gemmepi_status gpi__run_elementwise_on_host(const gpi__elementwise_plan *plan,
                                                   const gemmepi_elementwise_args *args,
                                                   void *const *pointers) {
#ifndef GEMMEPI_NO_FORMULA
    if (plan->formula)
        return gpi__run_formula_on_host(plan->formula, args, pointers, &plan->base.context->allocator);
#endif
    gpi__host_elementwise(&plan->task, pointers, args);
    return GEMMEPI_OK;
}
#endif

/* pointers: of tensors, or of a formula's operands, as args or the tensors themselves have them. one_shot: as gpi__run_matmul's. */
static gemmepi_status gpi__run_elementwise(const gpi__elementwise_plan *plan,
                                           const gemmepi_elementwise_args *args, void *const *pointers,
                                           int one_shot, gemmepi_stream stream) {
    gemmepi_context *context = plan->base.context;
    gpi__tensor_regions regions;
    gpi__entry entry;
    gemmepi_status status = gpi__check_run(context, stream, args->workspace, args->workspace_size);
    if (status || plan->route == GEMMEPI_ROUTE_EMPTY)
        return status;
    status = gpi__check_pointers(plan, args, one_shot, pointers, &regions);
#ifndef GEMMEPI_NO_HOST
    if (!status && plan->route == GEMMEPI_ROUTE_HOST) {
        status = gpi__check_tensors_reachable(context, &regions);
        return status ? status : gpi__run_elementwise_on_host(plan, args, pointers);
    }
#endif
    if (!status && args->workspace && plan->workspace_size) {
        status = gpi__check_given_workspace(args->workspace, args->workspace_size, plan->workspace_size);
        if (!status)
            status = gpi__check_workspace_apart(&regions, args->workspace, plan->workspace_size);
    }
    if (!status)
        status = gpi__enter(context, &entry);
    if (status)
        return status;
    if (one_shot || context->check_pointers) {
        status = gpi__check_reachable(context, "workspace", args->workspace, (int64_t)args->workspace_size);
        if (!status)
            status = gpi__check_tensors_reachable(context, &regions);
    }
    if (!status)
        status = gpi__launch_elementwise(plan, args, pointers, stream);
    gpi__leave(context, &entry);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_run_elementwise(const gemmepi_plan *plan,
                                                   const gemmepi_elementwise_args *args,
                                                   gemmepi_stream stream) {
    const gpi__elementwise_plan *own = (const gpi__elementwise_plan *)plan;
    void *pointers[GPI__MOST_POINTERS];
    gemmepi_status status = gpi__check_plan(plan, args, GEMMEPI_PLAN_ELEMENTWISE);
    if (status)
        return status;
#ifndef GEMMEPI_NO_FORMULA
    if (own->formula)
        gpi__list_formula_pointers(args, own->formula->formula->operand_count, NULL, pointers);
    else
#endif
        gpi__list_pointers_of(args, pointers);
    return gpi__run_elementwise(own, args, pointers, 0, stream);
}

static gemmepi_status gpi__prepare_elementwise(const gpi__elementwise_plan *plan, gemmepi_stream stream) {
    return gpi__reserve_for(plan->base.context, stream, gpi__key_of_stream(stream), plan->workspace_size);
}

#endif
