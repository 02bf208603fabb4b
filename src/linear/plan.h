/* Plans of layers: forward's one step, and workspace. */
#ifndef GEMMEPI_LINEAR_PLAN_H
#define GEMMEPI_LINEAR_PLAN_H

#include "backward.h"

static gemmepi_status gemmepi__build_forward(gemmepi__linear_plan *layer, const gemmepi__problem *formula) {
    const gemmepi__layer_task *task = &layer->task;
    gemmepi__step *step;
    gemmepi_matmul_desc desc;
    if (task->formula)
        return gemmepi__add_formula_step(layer, formula, GEMMEPI__L_Y, "Y");
    step = gemmepi__new_step(layer, GEMMEPI__STEP_PRODUCT, "Y");
    desc = gemmepi__layer_product(task, step);
    desc.d = gemmepi__layer_matrix(task, GEMMEPI__L_Y);
    step->sources[GEMMEPI__D] = GEMMEPI__L_Y;
    gemmepi__point_to_scales_of_y(step);
    if (task->found_scale) {
        desc.flags |= task->flags & GEMMEPI__LAYERS_FOUND_FLAGS;
        desc.amax_history = task->amax_history;
        desc.d.scale.mode = (gemmepi_scale_mode)task->found_scale;
        desc.d.scale.batch_stride = task->views[GEMMEPI__L_FOUND_SCALE_Y].batch_stride;
    }
    if (task->flags & GEMMEPI_LINEAR_SAVED) {
        desc.epilogue |= GEMMEPI_AUX;
        desc.aux = gemmepi__layer_matrix(task, GEMMEPI__L_PREACT);
        step->sources[GEMMEPI__AUX] = GEMMEPI__L_PREACT;
        step->sources[GEMMEPI__SCALE_AUX] = GEMMEPI__L_SCALE_PREACT;
    }
    return gemmepi__build_product_step(layer, step, &desc);
}

/* The plan's task has a reference of its own: one-shot calls find the plan by it. */
static void gemmepi__drop_layers_formula(const gemmepi__linear_plan *layer) {
    gemmepi__problem formula;
    memset(&formula, 0, sizeof formula);
    formula.formula = layer->task.formula;
    gemmepi__drop_formula(layer->base.context, &formula);
}

static void gemmepi__destroy_layer(gemmepi_plan *destroyed) {
    gemmepi__linear_plan *layer = (gemmepi__linear_plan *)destroyed;
    int i;
    for (i = 0; i < layer->step_count; i++) {
        if (layer->steps[i].product)
            gemmepi__release_plan(&layer->steps[i].product->base);
        if (layer->steps[i].copy)
            gemmepi__release_plan(&layer->steps[i].copy->base);
    }
    gemmepi__drop_layers_formula(layer);
    gemmepi__delete(&layer->base.context->allocator, layer);
}

static size_t gemmepi__all_temporaries(const gemmepi__linear_plan *layer) {
    size_t size = 0;
    int i;
    for (i = 0; i < GEMMEPI__TEMPORARIES; i++)
        size += gemmepi__round_up(layer->temporary_bytes[i], 256);
    return size;
}

/* Temporaries one after another, then what the largest step needs now. On the host 0: there temporaries are allocated for each
   run. */
static size_t gemmepi__layer_workspace(const gemmepi__linear_plan *layer) {
    size_t most = 0;
    int i;
    if (layer->base.context->is_host)
        return 0;
    for (i = 0; i < layer->step_count; i++) {
        const gemmepi__step *step = &layer->steps[i];
        size_t size = step->product ? gemmepi__workspace_now(step->product) : step->workspace_size;
        most = size > most ? size : most;
    }
    return gemmepi__all_temporaries(layer) + most;
}

/* formula: the problem that gemmepi__take_layer left beside the task. */
static gemmepi_status gemmepi__build_layer(gemmepi_context *context, const gemmepi__layer_task *task,
                                           const gemmepi__problem *formula, gemmepi__linear_plan **result) {
    gemmepi__linear_plan *layer = (gemmepi__linear_plan *)gemmepi__new(&context->allocator, sizeof *layer);
    gemmepi_status status;
    if (!layer)
        return GEMMEPI_OUT_OF_MEMORY;
    layer->base = gemmepi__plan_base(
        context, gemmepi__is_backward(task) ? GEMMEPI_PLAN_LINEAR_BACKWARD : GEMMEPI_PLAN_LINEAR,
        gemmepi__destroy_layer);
    layer->task = *task;
    gemmepi__hold_formula(context, formula);
    status = gemmepi__is_backward(task) ? gemmepi__build_backward(layer, formula)
                                        : gemmepi__build_forward(layer, formula);
    if (status) {
        gemmepi__release_plan(&layer->base);
        return status;
    }
    layer->built_size = gemmepi__layer_workspace(layer);
    *result = layer;
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__plan_layer(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                          int backward, gemmepi_plan **result) {
    gemmepi__layer_task task;
    gemmepi__problem formula;
    gemmepi__linear_plan *layer = NULL;
    gemmepi_status status;
    if (result)
        *result = NULL; /* also after a failure */
    if (!context || !result)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__take_layer(context, desc, backward, GEMMEPI__DEFAULT_ALIGNMENT, &task, &formula);
    if (status)
        return status;
    status = gemmepi__build_layer(context, &task, &formula, &layer);
    gemmepi__drop_formula(context, &formula);
    if (!status)
        *result = &layer->base;
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_plan_linear(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                               gemmepi_plan **plan) {
    return gemmepi__plan_layer(context, desc, 0, plan);
}

GEMMEPI_API gemmepi_status gemmepi_plan_linear_backward(gemmepi_context *context,
                                                        const gemmepi_linear_desc *desc,
                                                        gemmepi_plan **plan) {
    return gemmepi__plan_layer(context, desc, 1, plan);
}

#endif
