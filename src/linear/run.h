/* Runs of layers' plans, and the calls that plan by themselves. */
#ifndef GEMMEPI_LINEAR_RUN_H
#define GEMMEPI_LINEAR_RUN_H

#include "../elementwise/run.h"
#include "blocks.h"
#include "pointers.h"

/* >>running */

/* A run's pointers by source, and what its steps may use. */
typedef struct gpi__layer_run {
    const gpi__linear_plan *layer;
    void *sources[GPI__SOURCES];
    char *workspace;
    size_t workspace_size;
} gpi__layer_run;

/* The operands of a formula, in its order. */
typedef struct gpi__step_operands {
    void *operands[GPI__FORMULA_OPERANDS];
    const float *scales[GPI__FORMULA_OPERANDS];
} gpi__step_operands;

/* to: for as long as the arguments are used. */
static void gpi__point_operands(const gpi__layer_task *task, const gpi__step *step, const gpi__layer_run *run,
                                gpi__step_operands *to, gpi__arguments *arguments) {
    const gpi__step_formula *own = &task->formulas[step->formula];
    int i, j, tensor;
    memset(to, 0, sizeof *to);
    for (i = 0; i < task->operand_count; i++) {
        tensor = gpi__added_of(task, GPI__L_OPERANDS + i);
        to->operands[i] = run->sources[tensor < 0 ? GPI__L_OPERANDS + i : GPI__ADDED + tensor];
        to->scales[i] = (const float *)run->sources[GPI__L_OPERAND_SCALES + i];
        if (gpi__layer_has(task, GPI__L_OPERANDS + i) && gpi__is_layers_number(task, GPI__L_OPERANDS + i))
            memcpy(&arguments->numbers[i], to->operands[i], sizeof(double));
    }
    for (j = 0; own->formula && j < (int)sizeof own->beside && own->beside[j] >= 0; j++, i++) {
        tensor = own->beside[j];
        to->operands[i] = run->sources[tensor];
        if (tensor <= GPI__L_DY)
            to->scales[i] = (const float *)run->sources[GPI__L_SCALE_OF(tensor)];
    }
    arguments->operands = to->operands;
    arguments->operand_scales = to->scales;
    arguments->operand_amax = NULL;
}

static void gpi__point_layer(const gpi__linear_plan *layer, void *workspace, size_t size,
                             gpi__layer_run *run) {
    int i;
    run->workspace = (char *)workspace;
    run->workspace_size = size;
    if (layer->ahead) { /* P is there */
        run->workspace += layer->p_bytes;
        run->workspace_size -= layer->p_bytes;
    }
    for (i = 0; i < GPI__TEMPORARIES; i++) {
        size_t bytes = gpi__round_up(layer->temporary_bytes[i], 256);
        run->sources[GPI__G + i] = bytes ? run->workspace : NULL;
        if (bytes) {
            run->workspace += bytes;
            run->workspace_size -= bytes;
        }
    }
    if (layer->ahead && !run->sources[GPI__G])
        run->sources[GPI__G] = workspace;
}

/* No checks: those of the layer cover them. */
static void gpi__point_step(const gpi__step *step, const gpi__problem *problem, const gpi__layer_run *run,
                            gpi__arguments *arguments) {
    int operand;
    memset(arguments, 0, sizeof *arguments);
    for (operand = 0; operand < GPI__OPERANDS; operand++)
        if (step->sources[operand] != GPI__NO_SOURCE && problem->views[operand].dtype)
            arguments->pointers[operand] = run->sources[step->sources[operand]];
    arguments->alpha = 1;
    arguments->beta = step->accumulates;
    arguments->uses_c = step->accumulates;
    if (!step->accumulates)
        arguments->pointers[GPI__C] = NULL;
}

static gemmepi_status gpi__run_product_step(const gpi__linear_plan *layer, const gpi__step *step,
                                            const gpi__layer_run *run, gemmepi_stream stream) {
    const gpi__problem *problem = gpi__asked(step->product);
    gpi__space space = {
        run->workspace, run->workspace_size, NULL, stream, step->product->base.block_number, 0};
    gpi__arguments arguments;
    gpi__step_operands operands;
    if (gpi__writes_nothing(problem))
        return GEMMEPI_OK;
    gpi__point_step(step, problem, run, &arguments);
    if (GPI__FORMULA(problem) || gpi__makes_operands(problem))
        gpi__point_operands(&layer->task, step, run, &operands, &arguments);
#ifndef GEMMEPI_NO_HOST
    if (layer->base.context->is_host)
        return gpi__run_on_host(problem, &arguments, NULL, &layer->base.context->allocator);
#endif
    (void)layer;
    return gpi__run_on_device(step->product, &space, &arguments);
}

static gemmepi_status gpi__run_kernel_step(const gpi__linear_plan *layer, const gpi__step *step,
                                           const gpi__layer_run *run, gemmepi_stream stream) {
    gemmepi_status status = GEMMEPI_OK;
    gpi__arguments arguments;
    gpi__point_step(step, &step->problem, run, &arguments);
#ifndef GEMMEPI_NO_HOST
    if (layer->base.context->is_host && step->kind == GPI__STEP_PASS) {
        gpi__host_given given;
        given.view = &step->given;
        given.data = run->sources[step->given_source];
        gpi__host_flags(&step->problem, &arguments, &given);
        return GEMMEPI_OK;
    }
    if (layer->base.context->is_host) {
        gpi__host_sum_operand(&step->problem, &arguments);
        return GEMMEPI_OK;
    }
#endif
    if (step->kind == GPI__STEP_PASS)
        status = gpi__run_pass(layer->base.context, &step->pass, &step->sums, &arguments,
                               run->sources[step->given_source], run->workspace, stream);
    if (!status)
        status = gpi__run_sums(layer->base.context, &step->sums, &arguments, run->workspace, stream);
    return status;
}

static gemmepi_status gpi__run_copy_step(const gpi__linear_plan *layer, const gpi__step *step,
                                         const gpi__layer_run *run, gemmepi_stream stream) {
    int scale = step->sources[GPI__SCALE_A];
    gemmepi_elementwise_args args;
    void *pointers[GPI__TENSORS];
    gpi__elementwise_run copy = {step->copy, &args, pointers};
    gpi__space space = {run->workspace, run->workspace_size, NULL, stream, 0, 0};
    memset(&args, 0, sizeof args);
    args.a = run->sources[step->sources[GPI__A]];
    args.y = run->sources[step->sources[GPI__D]];
    args.scale = scale == GPI__NO_SOURCE ? NULL : (const float *)run->sources[scale];
    gpi__list_pointers_of(&args, pointers);
#ifndef GEMMEPI_NO_HOST
    if (layer->base.context->is_host) {
        gpi__host_elementwise(&step->copy->task, pointers, &args);
        return GEMMEPI_OK;
    }
#endif
    return gpi__launch_in(layer->base.context, &space, step->copy->workspace_size, gpi__launch_elementwise,
                          &copy);
}

/* Runs the steps of a layer, or of one block. */
static gemmepi_status gpi__run_block(gpi__layer_run *run, char *workspace, size_t size,
                                     gemmepi_stream stream) {
    const gpi__linear_plan *layer = run->layer;
    gemmepi_status status = GEMMEPI_OK;
    int i;
    gpi__point_layer(layer, workspace, size, run);
    for (i = 0; i < layer->step_count && !status; i++) {
        const gpi__step *step = &layer->steps[i];
        status = step->kind == GPI__STEP_PRODUCT ? gpi__run_product_step(layer, step, run, stream)
                 : step->kind == GPI__STEP_COPY  ? gpi__run_copy_step(layer, step, run, stream)
                                                 : gpi__run_kernel_step(layer, step, run, stream);
    }
    return status;
}

static const gpi__linear_plan *gpi__block_at(const gpi__linear_plan *layer, int64_t first) {
    int which = first == 0                                  ? GPI__FIRST_BLOCK
                : layer->task.m - first < layer->block_rows ? GPI__LAST_BLOCK
                                                            : GPI__NEXT_BLOCK;
    return layer->blocks[which];
}

/* With LINEAR_FORWARD: runs the block's forward, to the beginning of the workspace, which run_block then leaves alone. */
static gemmepi_status gpi__run_block_ahead(gpi__layer_run *run, char *workspace, size_t size,
                                           gemmepi_stream stream) {
    gpi__layer_run ahead = *run;
    if (!run->layer->ahead)
        return GEMMEPI_OK;
    run->sources[GPI__L_PREACT] = workspace;
    ahead.layer = run->layer->ahead;
    ahead.sources[GPI__L_PREACT] = workspace;
    return gpi__run_block(&ahead, workspace + run->layer->p_bytes, size - run->layer->p_bytes, stream);
}

/* In a workspace of so many bytes; on the host, or with the primary context current. */
static gemmepi_status gpi__run_steps(void *user, char *workspace, size_t size, gemmepi_stream stream) {
    gpi__layer_run *run = (gpi__layer_run *)user;
    const gpi__linear_plan *layer = run->layer;
    gemmepi_status status = GEMMEPI_OK;
    int64_t first = 0;
    gpi__layer_run block;
    if (GPI__HAS_FORMULAS && layer->blocks[GPI__FIRST_BLOCK]) {
        do {
            block.layer = gpi__block_at(layer, first);
            gpi__point_block(&layer->task, run->sources, first, block.sources);
            status = gpi__run_block_ahead(&block, workspace, size, stream);
            if (!status)
                status = gpi__run_block(&block, workspace, size, stream);
            first += layer->block_rows;
        } while (!status && first < layer->task.m);
        return status;
    }
    return gpi__run_block(run, workspace, size, stream);
}

/* Workspace is had before the first step is launched. The context's own is a block beside that for products, because a product that
   cuBLASLt refuses may reserve that in the middle of a layer. Of what is given a step may use all. */
static gemmepi_status gpi__run_layer_on_device(gpi__layer_run *run, const gpi__space *space) {
    const gpi__linear_plan *layer = run->layer;
    return gpi__launch_as_counted(layer->base.context, space, gpi__layer_workspace(layer), layer->built_size,
                                  gpi__run_steps, run);
}

/* one_shot: as gpi__run_matmul's. */
static gemmepi_status gpi__run_layer(const gemmepi_plan *base, const void *given, int one_shot,
                                     gemmepi_stream stream) {
    const gpi__linear_plan *layer = (const gpi__linear_plan *)base;
    const gemmepi_linear_args *args = (const gemmepi_linear_args *)given;
    gemmepi_context *context = layer->base.context;
    gpi__layer_run run;
    gpi__regions regions;
    gpi__space space = {args->workspace, args->workspace_size, &regions, stream, base->block_number, 1};
    gpi__entry entry;
    gemmepi_status status = gpi__check_run(context, stream, args->workspace, args->workspace_size);
    if (status)
        return status;
    run.layer = layer;
    status = gpi__convert_layer_pointers(&layer->task, args, run.sources, &regions);
    if (!status)
        status = gpi__enter_run(context, &space, one_shot, &entry);
    if (status)
        return status;
    if (context->is_host)
        return gpi__launch_on_host(context, &space, gpi__all_temporaries(layer), gpi__run_steps, &run);
    status = gpi__run_layer_on_device(&run, &space);
    gpi__leave(context, &entry);
    return status;
}

#endif
