/* Runs of element-wise operations. */
#ifndef GEMMEPI_ELEMENTWISE_RUN_H
#define GEMMEPI_ELEMENTWISE_RUN_H

#include "pointers.h"

/* A run of a plan, once its pointers have been looked at: of tensors, or of a formula's operands. */
typedef struct gpi__elementwise_run {
    const gpi__elementwise_plan *plan;
    const gemmepi_elementwise_args *args;
    void *const *pointers;
} gpi__elementwise_run;

static gemmepi_status gpi__launch_elementwise(void *user, char *workspace, size_t size,
                                              gemmepi_stream stream) {
    const gpi__elementwise_run *run = (const gpi__elementwise_run *)user;
    const gpi__elementwise_plan *plan = run->plan;
    const gemmepi_elementwise_args *args = run->args;
    void *const *pointers = run->pointers;
    gpi__operation_params operation;
    gemmepi_status status = GEMMEPI_OK;
    int i;
    (void)size;
    if (GPI__FORMULA(plan))
        return gpi__run_formula_on_device(plan->base.context, plan->formula, args, pointers, workspace,
                                          stream);
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

#ifndef GEMMEPI_NO_HOST
static gemmepi_status gpi__run_elementwise_on_host(const gpi__elementwise_plan *plan,
                                                   const gemmepi_elementwise_args *args,
                                                   void *const *pointers) {
    if (GPI__FORMULA(plan))
        return gpi__run_formula_on_host(plan->formula, args, pointers, &plan->base.context->allocator);
    gpi__host_elementwise(&plan->task, pointers, args);
    return GEMMEPI_OK;
}
#endif

/* What a call that plans by itself hands to the run: its args, and the pointers that these or the tensors themselves have. */
typedef struct gpi__elementwise_call {
    gemmepi_elementwise_args args;
    void *pointers[GPI__MOST_POINTERS];
} gpi__elementwise_call;

static void gpi__list_args(const gpi__elementwise_plan *plan, const gemmepi_elementwise_args *args,
                           void *pointers[GPI__MOST_POINTERS]) {
    if (GPI__FORMULA(plan)) {
        gpi__list_formula_pointers(args, plan->formula->formula->operand_count, NULL, pointers);
        return;
    }
    (void)plan;
    gpi__list_pointers_of(args, pointers);
}

/* one_shot: as gpi__run_matmul's, and given is a gpi__elementwise_call. */
static gemmepi_status gpi__run_elementwise(const gemmepi_plan *base, const void *given, int one_shot,
                                           gemmepi_stream stream) {
    const gpi__elementwise_plan *plan = (const gpi__elementwise_plan *)base;
    const gemmepi_elementwise_args *args = (const gemmepi_elementwise_args *)given;
    gemmepi_context *context = plan->base.context;
    void *listed[GPI__MOST_POINTERS];
    void *const *pointers = one_shot ? ((const gpi__elementwise_call *)given)->pointers : listed;
    gpi__elementwise_run run = {plan, args, pointers};
    gpi__regions regions;
    gpi__space space = {args->workspace, args->workspace_size, &regions, stream, 0, 0};
    gpi__entry entry;
    gemmepi_status status = gpi__check_run(context, stream, args->workspace, args->workspace_size);
    if (status || plan->route == GEMMEPI_ROUTE_EMPTY)
        return status;
    if (!one_shot)
        gpi__list_args(plan, args, listed);
    status = gpi__check_pointers(plan, args, one_shot, pointers, &regions);
    if (!status)
        status = gpi__enter_run(context, &space, one_shot, &entry);
    if (status)
        return status;
#ifndef GEMMEPI_NO_HOST
    if (context->is_host)
        return gpi__run_elementwise_on_host(plan, args, pointers);
#endif
    status = gpi__launch_in(context, &space, plan->workspace_size, gpi__launch_elementwise, &run);
    gpi__leave(context, &entry);
    return status;
}

#endif
