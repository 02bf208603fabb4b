/* Plans of element-wise operations: the launches that are prepared once. */
#ifndef GEMMEPI_ELEMENTWISE_PLAN_H
#define GEMMEPI_ELEMENTWISE_PLAN_H

#include "../device/create.h"
#include "../device/memory.h"
#ifndef GEMMEPI_NO_HOST
#include "../host/elementwise.h"
#endif
#include "formula.h"
#include "regions.h"
#include "scaled.h"
#include "sum.h"

#define GPI__MAX_SUMS 3 /* da, db and dw */

typedef struct gpi__elementwise_plan {
    gemmepi_plan base;
    gpi__task task;
    gemmepi_route route;
    size_t workspace_size;
    gpi__axis_sum sums[GPI__MAX_SUMS];
    int sum_count;
    gpi__loop loop;
    gpi__scaled_step scaled;
    gpi__reach_of reach[GPI__TENSORS];
    struct gpi__elementwise_formula *formula; /* in the task's place, which is 0 then; NULL: none */
} gpi__elementwise_plan;

/* >>building */

static gpi__reach_of gpi__reach_of_operand(const gpi__task *task, int t) {
    gpi__layout layout = gpi__layout_of(task, &task->operands[t]);
    return gpi__reach_of_layout(&layout, task->operands[t].offset);
}

static void gpi__need_workspace(gpi__elementwise_plan *plan, size_t bytes) {
    if (bytes > plan->workspace_size)
        plan->workspace_size = bytes;
}

static gemmepi_status gpi__build_launches(gpi__elementwise_plan *plan) {
    const gpi__task *task = &plan->task;
    gemmepi_status status = GEMMEPI_OK;
    uint32_t others = 0;
    int t;
    if (GPI__FORMULA(plan)) {
        status = gpi__build_formula_launches(plan->base.context, plan->formula);
        plan->workspace_size = plan->formula->pass.state_bytes;
        plan->route = plan->formula->pass.finish.blocks ? GEMMEPI_ROUTE_SUM
                      : plan->formula->is_one_line      ? GEMMEPI_ROUTE_CONTIGUOUS
                                                        : GEMMEPI_ROUTE_STRIDED;
        return status;
    }
    if (gpi__is_scaled(task)) {
        plan->route = GEMMEPI_ROUTE_SCALED;
        status = gpi__build_scaled(plan->base.context, task, &plan->scaled);
        gpi__need_workspace(plan, plan->scaled.partial_bytes);
        return status;
    }
    for (t = GPI__OUT_Y; t < GPI__TENSORS && !status; t++) {
        const gpi__operand *operand = &task->operands[t];
        if (!gpi__task_has(task, t) || gpi__operand_is_empty(task, operand))
            continue;
        if (!operand->is_sum) {
            others |= GPI__BIT(t);
            continue;
        }
        status = gpi__build_axis_sum(plan->base.context, task, t, &plan->sums[plan->sum_count]);
        gpi__need_workspace(plan, plan->sums[plan->sum_count++].partial_bytes);
    }
    plan->route = GEMMEPI_ROUTE_SUM;
    if (!status && others) {
        status = gpi__build_loop(plan->base.context, task, others, &plan->loop);
        if (!plan->sum_count)
            plan->route = plan->loop.is_contiguous ? GEMMEPI_ROUTE_CONTIGUOUS : GEMMEPI_ROUTE_STRIDED;
    }
    return status;
}

static gemmepi_status gpi__build_on_device(gpi__elementwise_plan *plan) {
    gpi__entry entry;
    gemmepi_status status = gpi__enter_relaxed(plan->base.context, &entry);
    if (status)
        return status;
    gpi__lock(&plan->base.context->build_lock);
    status = gpi__build_launches(plan);
    gpi__unlock(&plan->base.context->build_lock);
    gpi__leave_relaxed(plan->base.context, &entry);
    return status;
}

static void gpi__destroy_elementwise(gemmepi_plan *destroyed) {
    gpi__elementwise_plan *plan = (gpi__elementwise_plan *)destroyed;
    gpi__delete_elementwise_formula(&plan->base.context->allocator, GPI__FORMULA(plan));
    gpi__delete(&plan->base.context->allocator, plan);
}

/* A plan without its launches, or NULL. */
static gpi__elementwise_plan *gpi__new_elementwise_plan(gemmepi_context *context) {
    gpi__elementwise_plan *plan = (gpi__elementwise_plan *)gpi__new(&context->allocator, sizeof *plan);
    if (plan)
        plan->base = gpi__plan_base(context, GEMMEPI_PLAN_ELEMENTWISE, gpi__destroy_elementwise);
    return plan;
}

/* The plan becomes the result, or is released. */
static gemmepi_status gpi__finish_elementwise(gpi__elementwise_plan *plan, int is_empty,
                                              gemmepi_plan **result) {
    gemmepi_status status = GEMMEPI_OK;
    if (is_empty)
        plan->route = GEMMEPI_ROUTE_EMPTY;
    else if (plan->base.context->is_host)
        plan->route = GEMMEPI_ROUTE_HOST;
    else
        status = gpi__build_on_device(plan);
    return gpi__finish_plan(&plan->base, status, result);
}

static gemmepi_status gpi__build_elementwise(gemmepi_context *context, const gpi__task *task,
                                             gemmepi_plan **result) {
    gpi__elementwise_plan *plan = gpi__new_elementwise_plan(context);
    int t;
    if (!plan)
        return GEMMEPI_OUT_OF_MEMORY;
    plan->task = *task;
    for (t = 0; t < GPI__TENSORS; t++)
        if (gpi__task_has(task, t))
            plan->reach[t] = gpi__reach_of_operand(task, t);
    return gpi__finish_elementwise(plan, task->is_empty, result);
}

/* formula becomes the plan's, or is freed. */
static gemmepi_status gpi__build_formula_plan(gemmepi_context *context, const gpi__formula_task *task,
                                              gpi__formula *formula, gemmepi_plan **result) {
    gpi__elementwise_plan *plan = gpi__new_elementwise_plan(context);
    if (plan)
        plan->formula = gpi__new_elementwise_formula(&context->allocator, task, formula);
    if (plan && plan->formula)
        return gpi__finish_elementwise(plan, task->is_empty, result);
    gpi__delete(&context->allocator, formula);
    if (plan)
        gpi__release_plan(&plan->base);
    return GEMMEPI_OUT_OF_MEMORY;
}

#endif
