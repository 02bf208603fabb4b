/* The calls of layers: plans, runs, and both at once. */
#ifndef GEMMEPI_LINEAR_CALLS_H
#define GEMMEPI_LINEAR_CALLS_H

#include "explain.h"

static gemmepi_status gpi__build_layer(const gpi__wish *wish, const gpi__layer_task *task,
                                       const gpi__layer_problems *problems, gemmepi_plan **plan) {
    gpi__blocks_wish blocks = {wish->context, (const gemmepi_linear_desc *)wish->desc, wish->alignment, task};
    if (GPI__HAS_FORMULAS && task->workspace_limit)
        return gpi__build_blocks(&blocks, problems, plan);
    return gpi__build_steps(wish->context, task, problems, plan);
}

static gemmepi_status gpi__make_layer(const gpi__wish *wish, gemmepi_plan **plan) {
    gpi__layer_task task;
    gpi__layer_problems problems;
    gpi__wish kept = *wish;
    gemmepi_status status =
        gpi__convert_layer(wish->context, (const gemmepi_linear_desc *)wish->desc,
                           wish->kind == GEMMEPI_PLAN_LINEAR_BACKWARD, wish->alignment, &task, &problems);
    if (status)
        return status;
    if (task.outputs) /* the task has the gradient's formula, but not that of forward */
        kept.is_kept = 0;
    if (!gpi__is_found(&kept, &task, sizeof task, plan))
        status =
            gpi__keep_built(&kept, &task, sizeof task, gpi__build_layer(wish, &task, &problems, plan), plan);
    gpi__drop_layers_formulas(wish->context, &problems); /* the plan has them */
    return status;
}

static size_t gpi__workspace_of_layer(const gemmepi_plan *plan) {
    return gpi__layer_workspace((const gpi__linear_plan *)plan);
}

static gemmepi_status gpi__tune_layer(const gemmepi_plan *plan, const gemmepi_tune_options *options) {
    const gpi__linear_plan *layer = (const gpi__linear_plan *)plan;
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < GPI__BLOCKS && !status; i++)
        if (layer->blocks[i])
            status = gpi__tune_layer(&layer->blocks[i]->base, options);
    if (layer->ahead && !status)
        status = gpi__tune_layer(&layer->ahead->base, options);
    for (i = 0; i < layer->step_count && !status; i++)
        if (layer->steps[i].product)
            status = gpi__tune_matmul(&layer->steps[i].product->base, options);
    return status;
}

static void gpi__check_layer(const gemmepi_plan *plan) {
    const gpi__linear_plan *layer = (const gpi__linear_plan *)plan;
    int i;
    for (i = 0; i < GPI__BLOCKS; i++)
        if (layer->blocks[i])
            gpi__check_layer(&layer->blocks[i]->base);
    if (layer->ahead)
        gpi__check_layer(&layer->ahead->base);
    for (i = 0; i < layer->step_count; i++)
        if (layer->steps[i].product)
            gpi__check_matmul(&layer->steps[i].product->base);
}

/* Forward, and backward. */
static const gpi__plan_row gpi__layer_plans[2] = {
    GPI__PLAN_ROW(GEMMEPI_PLAN_LINEAR, layer, GPI__TEXTS_OF(gemmepi_linear_desc)),
    GPI__PLAN_ROW(GEMMEPI_PLAN_LINEAR_BACKWARD, layer, GPI__TEXTS_OF(gemmepi_linear_desc))};

GEMMEPI_API gemmepi_status gemmepi_plan_linear(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                               gemmepi_plan **plan) {
    return gpi__plan_desc(&gpi__layer_plans[0], context, desc, plan);
}

GEMMEPI_API gemmepi_status gemmepi_plan_linear_backward(gemmepi_context *context,
                                                        const gemmepi_linear_desc *desc,
                                                        gemmepi_plan **plan) {
    return gpi__plan_desc(&gpi__layer_plans[1], context, desc, plan);
}

GEMMEPI_API gemmepi_status gemmepi_run_linear(const gemmepi_plan *plan, const gemmepi_linear_args *args,
                                              gemmepi_stream stream) {
    return gpi__run_plan(&gpi__layer_plans[0], plan, args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_run_linear_backward(const gemmepi_plan *plan,
                                                       const gemmepi_linear_args *args,
                                                       gemmepi_stream stream) {
    return gpi__run_plan(&gpi__layer_plans[1], plan, args, stream);
}

/* Of the pointers to operands of a formula. */
static uintptr_t gpi__bits_of_operands(const gemmepi_linear_desc *desc, const gemmepi_linear_args *args,
                                       int backward) {
    int has_text = desc->formula || gpi__layer_makes_operands(desc);
    int i, count = has_text && desc->operands && args->operands ? desc->operand_count : 0;
    uintptr_t bits = 0;
    for (i = 0; i < count && count <= GPI__LAYER_OPERANDS; i++)
        if (desc->operands[i].kind >= GEMMEPI_PER_ROW &&
            (backward || gpi__layers_role(&desc->operands[i]) < GPI__IS_GRADIENT))
            bits |= (uintptr_t)args->operands[i];
    return bits;
}

/* The alignment class of the pointers, as gpi__alignment_of for products. Scales have their own rules. */
static size_t gpi__alignment_of_layer(const gemmepi_linear_desc *desc, const gemmepi_linear_args *args,
                                      int backward) {
    uintptr_t bits = (uintptr_t)args->a | (uintptr_t)args->b | (uintptr_t)args->bias |
                     (uintptr_t)args->preact | GPI__DEFAULT_ALIGNMENT;
    bits |= backward
                ? (uintptr_t)args->dy | (uintptr_t)args->da | (uintptr_t)args->db | (uintptr_t)args->dbias
                : (uintptr_t)args->y | (uintptr_t)args->residual;
    bits |= desc ? gpi__bits_of_operands(desc, args, backward) : 0;
    if (backward && desc && desc->before && args->before)
        bits |= (uintptr_t)args->before->preact | gpi__bits_of_operands(desc->before, args->before, 1);
    return (size_t)(bits & (~bits + 1));
}

static gemmepi_status gpi__call_layer(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                      const gemmepi_linear_args *args, int backward, gemmepi_stream stream) {
    gpi__plan_row row = gpi__layer_plans[backward];
    gpi__wish wish = {context, row.kind, desc, 0, 1, NULL};
    gemmepi_status status = gpi__check_call(context, args, "args");
    if (status)
        return status;
    if (backward && desc && desc->before) /* what it points to is not in the text's key */
        row.texts.size = 0;
    wish.alignment = gpi__alignment_of_layer(desc, args, backward);
    return gpi__run_once(&row, &wish, args, args->workspace, stream);
}

GEMMEPI_API gemmepi_status gemmepi_linear(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                          const gemmepi_linear_args *args, gemmepi_stream stream) {
    return gpi__call_layer(context, desc, args, 0, stream);
}

GEMMEPI_API gemmepi_status gemmepi_linear_backward(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                                   const gemmepi_linear_args *args, gemmepi_stream stream) {
    return gpi__call_layer(context, desc, args, 1, stream);
}

#endif
