/* Plans of layers: forward's one step, and workspace. */
#ifndef GEMMEPI_LINEAR_PLAN_H
#define GEMMEPI_LINEAR_PLAN_H

#include "backward.h"

/* The plan's task has references of its own: one-shot calls find the plan by it. */
static void gpi__drop_plans_formulas(const gpi__linear_plan *layer) {
    int i;
    for (i = 0; i < GPI__LAYER_FORMULAS; i++)
        gpi__drop_one(layer->base.context, GPI__FORMULA(&layer->task.formulas[i]));
    for (i = GPI__A; i <= GPI__B; i++)
        gpi__drop_one(layer->base.context, GPI__FORMULA(&layer->task.made[i]));
}

static void gpi__destroy_layer(gemmepi_plan *destroyed) {
    gpi__linear_plan *layer = (gpi__linear_plan *)destroyed;
    int i;
    for (i = 0; i < GPI__BLOCKS; i++)
        if (layer->blocks[i])
            gpi__release_plan(&layer->blocks[i]->base);
    if (layer->ahead)
        gpi__release_plan(&layer->ahead->base);
    for (i = 0; i < layer->step_count; i++) {
        if (layer->steps[i].product)
            gpi__release_plan(&layer->steps[i].product->base);
        if (layer->steps[i].copy)
            gpi__release_plan(&layer->steps[i].copy->base);
    }
    gpi__drop_plans_formulas(layer);
    gpi__delete(&layer->base.context->allocator, layer);
}

/* Of a layer by blocks: of that which needs most. */
static size_t gpi__all_temporaries(const gpi__linear_plan *layer) {
    size_t size = 0, of_block;
    int i;
    for (i = 0; i < GPI__BLOCKS; i++) {
        of_block = layer->blocks[i] ? gpi__all_temporaries(layer->blocks[i]) : 0;
        size = size > of_block ? size : of_block;
    }
    for (i = 0; i < GPI__TEMPORARIES; i++)
        size += gpi__round_up(layer->temporary_bytes[i], 256);
    return size + layer->p_bytes;
}

/* Temporaries one after another, then what the largest step needs now. On the host 0: there temporaries are allocated for each
   run. */
static size_t gpi__layer_workspace(const gpi__linear_plan *layer) {
    size_t most = 0;
    int i;
    if (layer->base.context->is_host)
        return 0;
    for (i = 0; layer->blocks[0] && i < GPI__BLOCKS; i++) {
        size_t size = layer->blocks[i] ? gpi__layer_workspace(layer->blocks[i]) : 0;
        most = size > most ? size : most;
    }
    if (layer->blocks[0])
        return most;
    if (layer->ahead)
        most = gpi__layer_workspace(layer->ahead);
    for (i = 0; i < layer->step_count; i++) {
        const gpi__step *step = &layer->steps[i];
        size_t size = step->product ? gpi__workspace_now(step->product) : step->workspace_size;
        most = size > most ? size : most;
    }
    return gpi__all_temporaries(layer) + most;
}

static gpi__linear_plan *gpi__new_layer(gemmepi_context *context, const gpi__layer_task *task,
                                        const gpi__layer_problems *problems) {
    size_t steps = (size_t)(GPI__MAX_STEPS + GPI__STEPS_OF_SUM * task->added_count);
    gpi__linear_plan *layer =
        (gpi__linear_plan *)gpi__new(&context->allocator, sizeof *layer + steps * sizeof *layer->steps);
    int i;
    if (!layer)
        return NULL;
    layer->steps = (gpi__step *)(layer + 1);
    layer->base =
        gpi__plan_base(context, gpi__is_backward(task) ? GEMMEPI_PLAN_LINEAR_BACKWARD : GEMMEPI_PLAN_LINEAR,
                       gpi__destroy_layer);
    layer->base.block_number = 1;
    layer->task = *task;
    for (i = 0; i < GPI__LAYER_FORMULAS; i++)
        gpi__hold_formulas(context, &problems->of[i]);
    return layer;
}

static gemmepi_status gpi__finish_layer(gpi__linear_plan *layer, gemmepi_status status,
                                        gemmepi_plan **result) {
    layer->built_size = status ? 0 : gpi__layer_workspace(layer);
    return gpi__finish_plan(&layer->base, status, result);
}

/* A plan of steps. problems: what gpi__convert_layer left beside the task. */
static gemmepi_status gpi__build_steps(gemmepi_context *context, const gpi__layer_task *task,
                                       const gpi__layer_problems *problems, gemmepi_plan **result) {
    gpi__linear_plan *layer = gpi__new_layer(context, task, problems);
    if (!layer)
        return GEMMEPI_OUT_OF_MEMORY;
    return gpi__finish_layer(layer,
                             gpi__is_backward(task)
                                 ? gpi__build_backward(layer, problems)
                                 : gpi__add_converted(layer, &problems->of[GPI__OF_FIRST], GPI__L_Y, "Y"),
                             result);
}

#endif
