/* Plans of element-wise operations: the launches that are prepared once. */
#ifndef GEMMEPI_ELEMENTWISE_PLAN_H
#define GEMMEPI_ELEMENTWISE_PLAN_H

#include "../device/create.h"
#include "../device/memory.h"
#ifndef GEMMEPI_NO_HOST
#include "../host/elementwise.h"
#endif
#ifndef GEMMEPI_NO_FORMULA
#include "formula.h"
#endif
#include "reach.h"
#include "scaled.h"
#include "sum.h"

#define GEMMEPI__MAX_SUMS 3 /* da, db and dw */

typedef struct gemmepi__elementwise_plan {
    gemmepi_plan base;
    gemmepi__task task;
    gemmepi_route route;
    size_t workspace_size;
    gemmepi__axis_sum sums[GEMMEPI__MAX_SUMS];
    int sum_count;
    gemmepi__loop loop;
    gemmepi__scaled_step scaled;
    gemmepi__reach_of reach[GEMMEPI__TENSORS];
    struct gemmepi__elementwise_formula *formula; /* in the task's place, which is 0 then; NULL: none */
} gemmepi__elementwise_plan;

/* >>building */

static gemmepi__reach_of gemmepi__reach_of_operand(const gemmepi__task *task, int t) {
    gemmepi__layout layout = gemmepi__layout_of(task, &task->operands[t]);
    return gemmepi__reach_of_layout(&layout, task->operands[t].offset);
}

static void gemmepi__need_workspace(gemmepi__elementwise_plan *plan, size_t bytes) {
    if (bytes > plan->workspace_size)
        plan->workspace_size = bytes;
}

static gemmepi_status gemmepi__build_launches(gemmepi__elementwise_plan *plan) {
    const gemmepi__task *task = &plan->task;
    gemmepi_status status = GEMMEPI_OK;
    uint32_t others = 0;
    int t;
#ifndef GEMMEPI_NO_FORMULA
    if (plan->formula) {
        status = gemmepi__build_formula_launches(plan->base.context, plan->formula);
        plan->workspace_size = plan->formula->pass.state_bytes;
        plan->route = plan->formula->pass.finish.blocks ? GEMMEPI_ROUTE_SUM
                      : plan->formula->is_one_line      ? GEMMEPI_ROUTE_CONTIGUOUS
                                                        : GEMMEPI_ROUTE_STRIDED;
        return status;
    }
#endif
    if (gemmepi__is_scaled(task)) {
        plan->route = GEMMEPI_ROUTE_SCALED;
        status = gemmepi__build_scaled(plan->base.context, task, &plan->scaled);
        gemmepi__need_workspace(plan, plan->scaled.partial_bytes);
        return status;
    }
    for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS && !status; t++) {
        const gemmepi__operand *operand = &task->operands[t];
        if (!gemmepi__task_has(task, t) || gemmepi__operand_is_empty(task, operand))
            continue;
        if (!operand->is_sum) {
            others |= GEMMEPI__BIT(t);
            continue;
        }
        status = gemmepi__build_axis_sum(plan->base.context, task, t, &plan->sums[plan->sum_count]);
        gemmepi__need_workspace(plan, plan->sums[plan->sum_count++].partial_bytes);
    }
    plan->route = GEMMEPI_ROUTE_SUM;
    if (!status && others) {
        status = gemmepi__build_loop(plan->base.context, task, others, &plan->loop);
        if (!plan->sum_count)
            plan->route = plan->loop.is_contiguous ? GEMMEPI_ROUTE_CONTIGUOUS : GEMMEPI_ROUTE_STRIDED;
    }
    return status;
}

static gemmepi_status gemmepi__build_on_device(gemmepi__elementwise_plan *plan) {
    gemmepi__entry entry;
    gemmepi_status status = gemmepi__enter_relaxed(plan->base.context, &entry);
    if (status)
        return status;
    gemmepi__lock(&plan->base.context->build_lock);
    status = gemmepi__build_launches(plan);
    gemmepi__unlock(&plan->base.context->build_lock);
    gemmepi__leave_relaxed(plan->base.context, &entry);
    return status;
}

static void gemmepi__destroy_elementwise(gemmepi_plan *destroyed) {
    gemmepi__elementwise_plan *plan = (gemmepi__elementwise_plan *)destroyed;
#ifndef GEMMEPI_NO_FORMULA
    gemmepi__delete_elementwise_formula(&plan->base.context->allocator, plan->formula);
#endif
    gemmepi__delete(&plan->base.context->allocator, plan);
}

static gemmepi_status gemmepi__build_elementwise(gemmepi_context *context, const gemmepi__task *task,
                                                 gemmepi__elementwise_plan **result) {
    gemmepi__elementwise_plan *plan =
        (gemmepi__elementwise_plan *)gemmepi__new(&context->allocator, sizeof *plan);
    gemmepi_status status = GEMMEPI_OK;
    int t;
    if (!plan)
        return GEMMEPI_OUT_OF_MEMORY;
    plan->base = gemmepi__plan_base(context, GEMMEPI_PLAN_ELEMENTWISE, gemmepi__destroy_elementwise);
    plan->task = *task;
    for (t = 0; t < GEMMEPI__TENSORS; t++)
        if (gemmepi__task_has(task, t))
            plan->reach[t] = gemmepi__reach_of_operand(task, t);
    if (task->is_empty)
        plan->route = GEMMEPI_ROUTE_EMPTY;
    else if (context->is_host)
        plan->route = GEMMEPI_ROUTE_HOST;
    else
        status = gemmepi__build_on_device(plan);
    if (status)
        gemmepi__release_plan(&plan->base);
    else
        *result = plan;
    return status;
}

#ifndef GEMMEPI_NO_FORMULA
static gemmepi_status gemmepi__choose_for_formula(gemmepi__elementwise_plan *plan) {
    if (plan->formula->task.is_empty)
        plan->route = GEMMEPI_ROUTE_EMPTY;
    else if (plan->base.context->is_host)
        plan->route = GEMMEPI_ROUTE_HOST;
    else
        return gemmepi__build_on_device(plan);
    return GEMMEPI_OK;
}

/* formula becomes the plan's, or is freed. */
static gemmepi_status gemmepi__build_formula_plan(gemmepi_context *context, const gemmepi__formula_task *task,
                                                  gemmepi__formula *formula,
                                                  gemmepi__elementwise_plan **result) {
    gemmepi__elementwise_plan *plan =
        (gemmepi__elementwise_plan *)gemmepi__new(&context->allocator, sizeof *plan);
    gemmepi_status status = GEMMEPI_OUT_OF_MEMORY;
    if (plan) {
        plan->base = gemmepi__plan_base(context, GEMMEPI_PLAN_ELEMENTWISE, gemmepi__destroy_elementwise);
        plan->formula = gemmepi__new_elementwise_formula(&context->allocator, task, formula);
        if (plan->formula)
            status = gemmepi__choose_for_formula(plan);
    }
    if (!plan || !plan->formula)
        gemmepi__delete(&context->allocator, formula);
    if (!status)
        *result = plan;
    else if (plan)
        gemmepi__release_plan(&plan->base);
    return status;
}

static gemmepi_status gemmepi__plan_formula(gemmepi_context *context, const gemmepi_elementwise_desc *desc,
                                            gemmepi__elementwise_plan **plan) {
    gemmepi__formula_task task;
    gemmepi__formula *formula;
    gemmepi_status status =
        gemmepi__take_formula_task(&context->allocator, desc, GEMMEPI__DEFAULT_ALIGNMENT, &task, &formula);
    return status ? status : gemmepi__build_formula_plan(context, &task, formula, plan);
}
#endif

static gemmepi_status gemmepi__plan_elementwise(gemmepi_context *context,
                                                const gemmepi_elementwise_desc *desc,
                                                gemmepi__elementwise_plan **plan) {
    gemmepi__task task;
    gemmepi_status status = gemmepi__check_operation(desc);
#ifndef GEMMEPI_NO_FORMULA
    if (!status && desc->formula)
        return gemmepi__plan_formula(context, desc, plan);
#endif
    if (!status)
        status = gemmepi__take_task(desc, GEMMEPI__DEFAULT_ALIGNMENT, &task);
    return status ? status : gemmepi__build_elementwise(context, &task, plan);
}

GEMMEPI_API gemmepi_status gemmepi_plan_elementwise(gemmepi_context *context,
                                                    const gemmepi_elementwise_desc *desc,
                                                    gemmepi_plan **result) {
    gemmepi__elementwise_plan *plan = NULL;
    gemmepi_status status;
    if (result)
        *result = NULL; /* also after a failure */
    if (!context || !result)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__plan_elementwise(context, desc, &plan);
    if (!status)
        *result = &plan->base;
    return status;
}

#endif
