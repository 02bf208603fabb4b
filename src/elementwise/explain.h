/* What an element-wise plan is, as a struct and in words. */
#ifndef GEMMEPI_ELEMENTWISE_EXPLAIN_H
#define GEMMEPI_ELEMENTWISE_EXPLAIN_H

#include "plan.h"

static int gpi__elementwise_launches(const gpi__elementwise_plan *plan) {
    int launches = (plan->loop.launch.function != NULL) + (plan->scaled.cast.function != NULL) +
                   (plan->scaled.amax.function != NULL) +
                   (plan->scaled.amax_bytes != 0 || plan->scaled.is_tensor),
        i;
    if (plan->loop.launch.function && (plan->task.flags & GEMMEPI_CAST_AMAX))
        launches++; /* clearing it */
    for (i = 0; i < plan->sum_count; i++)
        launches += 1 + (plan->sums[i].second.launch.function != NULL);
    return launches;
}

static const char *gpi__elementwise_kernel(const gpi__elementwise_plan *plan) {
    switch (plan->route) {
    case GEMMEPI_ROUTE_CONTIGUOUS:
    case GEMMEPI_ROUTE_STRIDED:
        return plan->loop.launch.name;
    case GEMMEPI_ROUTE_SUM:
        return plan->sums[0].first.launch.name;
    case GEMMEPI_ROUTE_SCALED:
        return plan->scaled.cast.name;
    case GEMMEPI_ROUTE_HOST:
        return plan->formula ? "gpi__host_formula" : "gpi__host_elementwise";
    default:
        return "";
    }
}

static gemmepi_dtype gpi__accumulator_of(const gpi__elementwise_plan *plan) {
    if (GPI__FORMULA(plan))
        return (gemmepi_dtype)plan->formula->formula->accumulator;
    return (gemmepi_dtype)plan->task.accumulator;
}

static void gpi__describe_elementwise(const gemmepi_plan *base, gemmepi_plan_details *details) {
    const gpi__elementwise_plan *plan = (const gpi__elementwise_plan *)base;
    details->route = plan->route;
    snprintf(details->kernel, sizeof details->kernel, "%s", gpi__elementwise_kernel(plan));
    if (plan->route == GEMMEPI_ROUTE_STRIDED && !plan->formula) {
        details->tile_m = plan->loop.tile_j;
        details->tile_n = plan->loop.tile_i;
    } else if (plan->route == GEMMEPI_ROUTE_SCALED) {
        details->tile_m = plan->scaled.tile_slow;
        details->tile_n = GPI__SCALED_TILE;
    }
    details->launches = gpi__elementwise_launches(plan);
    if (GPI__FORMULA(plan))
        gpi__describe_formula_pass(&plan->formula->pass, details);
    details->accumulator = plan->base.context->is_host ? GEMMEPI_F64 : gpi__accumulator_of(plan);
    details->compute = details->accumulator == GEMMEPI_F64   ? GEMMEPI_COMPUTE_F64
                       : details->accumulator == GEMMEPI_I32 ? GEMMEPI_COMPUTE_I32
                                                             : GEMMEPI_COMPUTE_F32;
}

static void gpi__explain_tensor(gpi__text *text, const gpi__task *task, int t) {
    const gpi__operand *operand = &task->operands[t];
    gpi__append(text, "  %s: %s, strides ", gpi__tensor_names[t], gpi__type(operand->dtype));
    gpi__append_shape(text, task->rank, operand->stride);
    if (operand->pointer != t)
        gpi__append(text, ", the second operand in %s", gpi__tensor_names[operand->pointer]);
    gpi__append(text, "%s\n", operand->is_sum ? ", a sum" : "");
}

static void gpi__explain_loop(gpi__text *text, const gpi__elementwise_plan *plan) {
    static const char *const modes[] = {"by vectors", "one number for a line", "element by element",
                                        "transposed, element by element", "transposed"};
    const gpi__nest *nest = &plan->loop.nest;
    int vector = gpi__vector_of(gpi__largest_size(nest, ~0u)), t;
    if (plan->loop.is_contiguous) {
        gpi__append(text, "  contiguous: one line of %lld elements, %d at a time\n",
                    (long long)nest->extent[0], vector);
        return;
    }
    gpi__append(text, "  strided: %d axes after merging, tiles of %d x %d;", nest->rank, plan->loop.tile_j,
                plan->loop.tile_i);
    for (t = 0; t < GPI__TENSORS; t++)
        if (gpi__nest_has(nest, t))
            gpi__append(text, " %s %s,", gpi__tensor_names[t],
                        modes[gpi__mode_of(&plan->task, &plan->loop, t, vector)]);
    gpi__append(text, " not contiguous: %s\n",
                nest->rank > 1 ? "the tensors do not merge into one line"
                               : "a tensor is not dense or not aligned");
}

/* That nothing is launched. */
static void gpi__explain_nothing(gpi__text *text, const gpi__elementwise_plan *plan) {
    if (plan->route == GEMMEPI_ROUTE_EMPTY)
        gpi__append(text, "  empty: no output has an element\n");
    if (plan->route == GEMMEPI_ROUTE_HOST)
        gpi__append(text, "  host: plain C\n");
}

static void gpi__explain_steps(gpi__text *text, const gpi__formula_task *task, int i) {
    const gpi__steps *steps = &task->strides.operands[i];
    int64_t strides[GPI__MAX_RANK];
    int d, axis = 0, first = GPI__MAX_RANK - task->rank;
    for (d = 0; d < GPI__MAX_RANK; d++)
        strides[d] = d == GPI__COLUMN_AXIS                       ? steps->column
                     : d == GPI__ROW_AXIS                        ? steps->row
                     : task->strides.axes && task->shape[d] != 1 ? steps->items[axis++]
                                                                 : 0;
    gpi__append_shape(text, task->rank, &strides[first]);
}

static void gpi__explain_formula_operand(gpi__text *text, const gpi__formula_task *task, int i) {
    const gpi__formula *formula = task->placed.formula;
    const gpi__formula_operand *operand = &formula->operands[i];
    gpi__append(text, "  %s: %s", formula->names + operand->name, gpi__kind_names[operand->kind]);
    if (operand->kind == GEMMEPI_BLOCKED)
        gpi__append_block(text, formula, &task->placed.operands[i]);
    if (task->has_tensor[i]) {
        gpi__append(text, ", %s, strides ", gpi__type(operand->dtype));
        gpi__explain_steps(text, task, i);
    }
    gpi__append(text, "%s%s%s\n", operand->output ? ", written" : "", operand->accumulate ? ", added to" : "",
                operand->used     ? ""
                : operand->output ? ", without an element"
                                  : ", not read");
}

static void gpi__explain_formula_plan(gpi__text *text, const gpi__elementwise_plan *plan) {
    const gpi__formula_task *task = &plan->formula->task;
    const gpi__formula *formula = plan->formula->formula;
    int i;
    gpi__append(text, "a formula over ");
    gpi__append_shape(text, task->rank, &task->shape[GPI__MAX_RANK - task->rank]);
    gpi__append(text, " in %s\n  formula: ", gpi__type(formula->accumulator));
    gpi__print_formula(text, formula);
    gpi__append(text, "\n");
    for (i = 0; i <= GPI__RESULT; i++)
        if (i < formula->operand_count || task->has_tensor[i])
            gpi__explain_formula_operand(text, task, i);
    gpi__explain_nothing(text, plan);
    gpi__explain_formula_pass(text, &plan->formula->pass, "");
    if (plan->formula->pass.launch.function)
        gpi__append(text, "  %.0f bytes moved, about %.1f microseconds at the rate of memory\n",
                    plan->formula->pass.bytes, plan->formula->microseconds);
}

static void gpi__explain_operation(gpi__text *text, const gpi__elementwise_plan *plan) {
    const gpi__task *task = &plan->task;
    int t, i;
    gpi__append(text, "%s", gpi__operation(task->operation)->name);
    if (gpi__operation(task->operation)->has_activation)
        gpi__append(text, " %s", gpi__activation_name((gemmepi_epilogue)task->activation));
    gpi__append(text, " over ");
    gpi__append_shape(text, task->rank, task->shape);
    gpi__append(text, "\n");
    for (t = 0; t < GPI__TENSORS; t++)
        if (gpi__task_has(task, t))
            gpi__explain_tensor(text, task, t);
    gpi__explain_nothing(text, plan);
    for (i = 0; i < plan->sum_count; i++) {
        const gpi__axis_sum *sum = &plan->sums[i];
        gpi__append(text, "  sum: %s, %lld times %lld terms, the innermost axis is %s, %s\n",
                    gpi__tensor_names[sum->first.output], (long long)sum->first.params.kept_count,
                    (long long)gpi__nest_count(&sum->first.nest, 1), sum->first.is_kept ? "kept" : "added up",
                    sum->second.launch.function ? "by way of partial sums" : "one launch");
    }
    if (plan->loop.launch.function)
        gpi__explain_loop(text, plan);
    if (plan->scaled.cast.function && plan->scaled.row_threads)
        gpi__append(text, "  scaled: a row in the registers of %d threads, one pass\n",
                    plan->scaled.row_threads);
    else if (plan->scaled.cast.function && plan->scaled.is_tensor)
        gpi__append(
            text,
            "  scaled: tiles of 128 by %d, %u blocks: amax, then the cast, which begins before that ends\n",
            plan->scaled.tile_slow, plan->scaled.cast.blocks);
    else if (plan->scaled.cast.function)
        gpi__append(text, "  scaled: tiles of 128 by %d, %s\n", plan->scaled.tile_slow,
                    plan->scaled.amax.function ? "amax first, then the cast" : "one pass");
}

static void gpi__explain_elementwise(gpi__text *text, const gemmepi_plan *base,
                                     const gemmepi_plan_details *details) {
    const gpi__elementwise_plan *plan = (const gpi__elementwise_plan *)base;
    if (GPI__FORMULA(plan))
        gpi__explain_formula_plan(text, plan);
    else
        gpi__explain_operation(text, plan);
    gpi__append(text, "  %d launches, %llu bytes of workspace\n", details->launches,
                (gpi__ull)details->workspace_size);
}

#endif
