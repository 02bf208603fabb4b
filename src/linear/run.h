/* Runs of layers' plans, and the calls that plan by themselves. */
#ifndef GEMMEPI_LINEAR_RUN_H
#define GEMMEPI_LINEAR_RUN_H

#include "../elementwise/run.h"
#include "plan.h"
#include "pointers.h"

/* >>running */

/* A run's pointers by source, and what its steps may use. */
typedef struct gemmepi__layer_run {
    void *sources[GEMMEPI__SOURCES];
    char *workspace;
    size_t workspace_size;
} gemmepi__layer_run;

#ifndef GEMMEPI_NO_FORMULA
/* The operands of a formula, in its order. */
typedef struct gemmepi__step_operands {
    void *operands[GEMMEPI__FORMULA_OPERANDS];
    const float *scales[GEMMEPI__FORMULA_OPERANDS];
} gemmepi__step_operands;

/* to: for as long as the arguments are used. */
static void gemmepi__point_operands(const gemmepi__layer_task *task, const gemmepi__layer_run *run,
                                    gemmepi__step_operands *to, gemmepi__arguments *arguments) {
    int i, j, tensor;
    memset(to, 0, sizeof *to);
    for (i = 0; i < task->operand_count; i++) {
        to->operands[i] = run->sources[GEMMEPI__L_OPERANDS + i];
        to->scales[i] = (const float *)run->sources[GEMMEPI__L_OPERAND_SCALES + i];
        if (gemmepi__layer_has(task, GEMMEPI__L_OPERANDS + i) &&
            gemmepi__is_layers_number(task, GEMMEPI__L_OPERANDS + i))
            memcpy(&arguments->numbers[i], to->operands[i], sizeof(double));
    }
    for (j = 0; j < (int)sizeof task->beside && task->beside[j] >= 0; j++, i++) {
        tensor = task->beside[j];
        to->operands[i] = run->sources[tensor];
        if (tensor <= GEMMEPI__L_DY)
            to->scales[i] = (const float *)run->sources[GEMMEPI__L_SCALE_OF(tensor)];
    }
    arguments->operands = to->operands;
    arguments->operand_scales = to->scales;
    arguments->operand_amax = NULL;
}
#endif

static void gemmepi__point_layer(const gemmepi__linear_plan *layer, void *workspace, size_t size,
                                 gemmepi__layer_run *run) {
    int i;
    run->workspace = (char *)workspace;
    run->workspace_size = size;
    for (i = 0; i < GEMMEPI__TEMPORARIES; i++) {
        size_t bytes = gemmepi__round_up(layer->temporary_bytes[i], 256);
        run->sources[GEMMEPI__G + i] = bytes ? run->workspace : NULL;
        if (bytes) {
            run->workspace += bytes;
            run->workspace_size -= bytes;
        }
    }
}

/* No checks: those of the layer cover them. */
static void gemmepi__point_step(const gemmepi__step *step, const gemmepi__problem *problem,
                                const gemmepi__layer_run *run, gemmepi__arguments *arguments) {
    int operand;
    memset(arguments, 0, sizeof *arguments);
    for (operand = 0; operand < GEMMEPI__OPERANDS; operand++)
        if (step->sources[operand] != GEMMEPI__NO_SOURCE && problem->views[operand].dtype)
            arguments->pointers[operand] = run->sources[step->sources[operand]];
    arguments->alpha = 1;
    arguments->beta = step->accumulates;
    arguments->uses_c = step->accumulates;
    if (!step->accumulates)
        arguments->pointers[GEMMEPI__C] = NULL;
}

static void gemmepi__point_copy(const gemmepi__step *step, const gemmepi__layer_run *run,
                                gemmepi_elementwise_args *args, void *pointers[GEMMEPI__TENSORS]) {
    int scale = step->sources[GEMMEPI__SCALE_A];
    memset(args, 0, sizeof *args);
    args->a = run->sources[step->sources[GEMMEPI__A]];
    args->y = run->sources[step->sources[GEMMEPI__D]];
    args->scale = scale == GEMMEPI__NO_SOURCE ? NULL : (const float *)run->sources[scale];
    args->workspace = run->workspace;
    args->workspace_size = run->workspace_size;
    gemmepi__take_pointers_of(args, pointers);
}

static gemmepi_status gemmepi__run_product_step(const gemmepi__linear_plan *layer, const gemmepi__step *step,
                                                const gemmepi__layer_run *run, gemmepi_stream stream) {
    gemmepi_matmul_args args;
    gemmepi__arguments arguments;
#ifndef GEMMEPI_NO_FORMULA
    gemmepi__step_operands operands;
#endif
    if (gemmepi__writes_nothing(gemmepi__asked(step->product)))
        return GEMMEPI_OK;
    gemmepi__point_step(step, gemmepi__asked(step->product), run, &arguments);
#ifndef GEMMEPI_NO_FORMULA
    if (gemmepi__asked(step->product)->formula)
        gemmepi__point_operands(&layer->task, run, &operands, &arguments);
#endif
#ifndef GEMMEPI_NO_HOST
    if (layer->base.context->is_host)
        return gemmepi__run_on_host(step->product, &arguments);
#endif
    (void)layer;
    memset(&args, 0, sizeof args);
    args.workspace = run->workspace;
    args.workspace_size = run->workspace_size;
    return gemmepi__run_on_device(step->product, &args, &arguments, stream);
}

static gemmepi_status gemmepi__run_kernel_step(const gemmepi__linear_plan *layer, const gemmepi__step *step,
                                               const gemmepi__layer_run *run, gemmepi_stream stream) {
    gemmepi_status status = GEMMEPI_OK;
    gemmepi__arguments arguments;
    char *between = gemmepi__past(run->workspace, step->pass.partial_bytes);
    gemmepi__point_step(step, &step->problem, run, &arguments);
#ifndef GEMMEPI_NO_HOST
    if (layer->base.context->is_host && step->kind == GEMMEPI__STEP_PASS) {
        gemmepi__host_given given;
        given.view = &step->given;
        given.data = run->sources[step->given_source];
        gemmepi__host_product(&step->problem, &arguments, &given);
        return GEMMEPI_OK;
    }
    if (layer->base.context->is_host) {
        gemmepi__host_sum_operand(&step->problem, &arguments);
        return GEMMEPI_OK;
    }
#endif
    if (step->kind == GEMMEPI__STEP_PASS)
        status = gemmepi__run_pass(layer->base.context, &step->pass, &arguments,
                                   run->sources[step->given_source], run->workspace, stream);
    if (!status)
        status =
            gemmepi__run_sums(layer->base.context, &step->sums, &arguments, run->workspace, between, stream);
    return status;
}

static gemmepi_status gemmepi__run_copy_step(const gemmepi__linear_plan *layer, const gemmepi__step *step,
                                             const gemmepi__layer_run *run, gemmepi_stream stream) {
    gemmepi_elementwise_args args;
    void *pointers[GEMMEPI__TENSORS];
    gemmepi__point_copy(step, run, &args, pointers);
#ifndef GEMMEPI_NO_HOST
    if (layer->base.context->is_host) {
        gemmepi__host_elementwise(&step->copy->task, pointers, &args);
        return GEMMEPI_OK;
    }
#endif
    (void)layer;
    return gemmepi__launch_elementwise(step->copy, &args, pointers, stream);
}

/* The primary context is current, but on the host. */
static gemmepi_status gemmepi__run_steps(const gemmepi__linear_plan *layer, const gemmepi__layer_run *run,
                                         gemmepi_stream stream) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < layer->step_count && !status; i++) {
        const gemmepi__step *step = &layer->steps[i];
        status = step->kind == GEMMEPI__STEP_PRODUCT ? gemmepi__run_product_step(layer, step, run, stream)
                 : step->kind == GEMMEPI__STEP_COPY  ? gemmepi__run_copy_step(layer, step, run, stream)
                                                     : gemmepi__run_kernel_step(layer, step, run, stream);
    }
    return status;
}

/* The temporaries of a host's run are memory for its time. */
static gemmepi_status gemmepi__run_layer_on_host(const gemmepi__linear_plan *layer, gemmepi__layer_run *run) {
    size_t size = gemmepi__all_temporaries(layer);
    void *memory = size ? gemmepi__new(&layer->base.context->allocator, size) : NULL;
    gemmepi_status status;
    if (size && !memory)
        return GEMMEPI_OUT_OF_MEMORY;
    gemmepi__point_layer(layer, memory, size, run);
    status = gemmepi__run_steps(layer, run, NULL);
    if (memory)
        gemmepi__delete(&layer->base.context->allocator, memory);
    return status;
}

/* The context's own workspace for layers is a block beside that for products, because a product that cuBLASLt refuses may
   reserve that in the middle of a layer. */
static gemmepi_status gemmepi__run_layer_in_block(const gemmepi__linear_plan *layer, size_t needed,
                                                  gemmepi__layer_run *run, gemmepi_stream stream) {
    gemmepi__block *block =
        gemmepi__take_block(layer->base.context, gemmepi__key_beside(stream), needed, "gemmepi_plan_prepare");
    gemmepi_status status;
    if (!block)
        return GEMMEPI_BUFFER_TOO_SMALL;
    gemmepi__point_layer(layer, (void *)(uintptr_t)block->address, block->size, run);
    status = gemmepi__run_steps(layer, run, stream);
    gemmepi__give_block(block);
    return status;
}

/* Workspace is had before the first step is launched. A layer whose product has taken a route that needs more may do so without
   the caller knowing: then it takes the context's, as products do. */
static gemmepi_status gemmepi__run_layer_on_device(const gemmepi__linear_plan *layer,
                                                   const gemmepi_linear_args *args, gemmepi__layer_run *run,
                                                   gemmepi_stream stream) {
    size_t needed = gemmepi__layer_workspace(layer), given = args->workspace ? args->workspace_size : 0;
    gemmepi_status status;
    if (needed > layer->built_size && given < needed) {
        status = gemmepi__reserve_for(layer->base.context, stream, gemmepi__key_beside(stream), needed);
        return status ? status : gemmepi__run_layer_in_block(layer, needed, run, stream);
    }
    if (needed && !args->workspace)
        return gemmepi__run_layer_in_block(layer, needed, run, stream);
    if (needed || given) {
        status = gemmepi__check_given_workspace(args->workspace, given, needed);
        if (!status)
            status = gemmepi__check_layer_workspace(&layer->task, args, run->sources);
        if (status)
            return status;
    }
    gemmepi__point_layer(layer, args->workspace, given, run);
    return gemmepi__run_steps(layer, run, stream);
}

static gemmepi_status gemmepi__check_layer_reach(const gemmepi__linear_plan *layer,
                                                 const gemmepi_linear_args *args, void *const *pointers) {
    const gemmepi_context *context = layer->base.context;
    gemmepi_status status = gemmepi__check_reachable(context, "workspace", args->workspace);
    char room[128];
    int t;
    for (t = 0; t < gemmepi__layer_pointers(&layer->task) && !status; t++)
        if (gemmepi__layer_has(&layer->task, t) && !gemmepi__is_layers_number(&layer->task, t))
            status = gemmepi__check_reachable(context, gemmepi__layer_pointers_name(&layer->task, t, room),
                                              pointers[t]);
    return status;
}

/* one_shot: as gemmepi__run_matmul's. */
static gemmepi_status gemmepi__run_layer(const gemmepi__linear_plan *layer, const gemmepi_linear_args *args,
                                         int one_shot, gemmepi_stream stream) {
    gemmepi__layer_run run;
    gemmepi__entry entry;
    gemmepi_status status;
    status = gemmepi__check_run(layer->base.context, stream, args->workspace, args->workspace_size);
    if (status)
        return status;
    status = gemmepi__check_layer_arrays(&layer->task, args);
    if (status)
        return status;
    gemmepi__take_layer_pointers(&layer->task, args, run.sources);
    status = gemmepi__check_layer_presence(&layer->task, run.sources);
    if (!status)
        status = gemmepi__check_layer_alignment(&layer->task, run.sources);
    if (!status)
        status = gemmepi__check_layer_overlap(&layer->task, run.sources);
    if (!status && args->workspace && layer->base.context->is_host)
        status = gemmepi__check_layer_workspace(&layer->task, args, run.sources);
    if (status || layer->base.context->is_host)
        return status ? status : gemmepi__run_layer_on_host(layer, &run);
    status = gemmepi__enter(layer->base.context, &entry);
    if (status)
        return status;
    if (one_shot || layer->base.context->check_pointers)
        status = gemmepi__check_layer_reach(layer, args, run.sources);
    if (!status)
        status = gemmepi__run_layer_on_device(layer, args, &run, stream);
    gemmepi__leave(layer->base.context, &entry);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_run_linear(const gemmepi_plan *plan, const gemmepi_linear_args *args,
                                              gemmepi_stream stream) {
    gemmepi_status status = gemmepi__check_plan(plan, args, GEMMEPI_PLAN_LINEAR);
    return status ? status : gemmepi__run_layer((const gemmepi__linear_plan *)plan, args, 0, stream);
}

GEMMEPI_API gemmepi_status gemmepi_run_linear_backward(const gemmepi_plan *plan,
                                                       const gemmepi_linear_args *args,
                                                       gemmepi_stream stream) {
    gemmepi_status status = gemmepi__check_plan(plan, args, GEMMEPI_PLAN_LINEAR_BACKWARD);
    return status ? status : gemmepi__run_layer((const gemmepi__linear_plan *)plan, args, 0, stream);
}

static gemmepi_status gemmepi__prepare_layer(const gemmepi__linear_plan *layer, gemmepi_stream stream) {
    return gemmepi__reserve_for(layer->base.context, stream, gemmepi__key_beside(stream),
                                gemmepi__layer_workspace(layer));
}

/* >>calls that plan by themselves */

/* The alignment class of the pointers, as gemmepi__alignment_of for products. Scales have their own rules. */
static size_t gemmepi__alignment_of_layer(const gemmepi_linear_desc *desc, const gemmepi_linear_args *args,
                                          int backward) {
    int i, count = desc && desc->formula && desc->operands && args->operands ? desc->operand_count : 0;
    uintptr_t bits = (uintptr_t)args->a | (uintptr_t)args->b | (uintptr_t)args->bias |
                     (uintptr_t)args->preact | GEMMEPI__DEFAULT_ALIGNMENT;
    bits |= backward
                ? (uintptr_t)args->dy | (uintptr_t)args->da | (uintptr_t)args->db | (uintptr_t)args->dbias
                : (uintptr_t)args->y;
    for (i = 0; i < count && count <= GEMMEPI__LAYER_OPERANDS; i++)
        if (desc->operands[i].kind >= GEMMEPI_PER_ROW && (backward || !desc->operands[i].output))
            bits |= (uintptr_t)args->operands[i];
    return (size_t)(bits & (~bits + 1));
}

/* The plan with a reference for the caller to release. */
static gemmepi_status gemmepi__layer_of_desc(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                             int backward, size_t alignment, gemmepi_plan **kept) {
    gemmepi__layer_task task;
    gemmepi__problem formula;
    gemmepi__linear_plan *layer;
    gemmepi_status status = gemmepi__take_layer(context, desc, backward, alignment, &task, &formula);
    if (status)
        return status;
    *kept = gemmepi__find_kept(context, &task, sizeof task);
    if (!*kept) {
        status = gemmepi__build_layer(context, &task, &formula, &layer);
        *kept = status ? NULL : gemmepi__keep(context, &task, sizeof task, &layer->base);
    }
    gemmepi__drop_formula(context, &formula); /* the plan has it */
    return status;
}

/* One with a formula is looked for by its text first. */
static gemmepi_status gemmepi__layer_of_call(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                             int backward, size_t alignment, gemmepi_plan **kept) {
#ifndef GEMMEPI_NO_FORMULA
    gemmepi__text_key key;
    gemmepi_status status;
    if (desc && desc->formula) {
        GEMMEPI__MAKE_TEXT_KEY(&key, backward ? GEMMEPI__BACKWARD_BY_TEXT : GEMMEPI__LAYER_BY_TEXT, alignment,
                               desc, gemmepi_linear_desc);
        *kept = gemmepi__find_by_text(context, &key);
        if (*kept)
            return GEMMEPI_OK;
        status = gemmepi__layer_of_desc(context, desc, backward, alignment, kept);
        if (!status)
            gemmepi__keep_by_text(context, &key, *kept);
        return status;
    }
#endif
    return gemmepi__layer_of_desc(context, desc, backward, alignment, kept);
}

static gemmepi_status gemmepi__call_layer(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                          const gemmepi_linear_args *args, int backward,
                                          gemmepi_stream stream) {
    gemmepi__linear_plan *layer;
    gemmepi_plan *kept;
    gemmepi_status status;
    if (!context || !args)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "args" : "context");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__layer_of_call(context, desc, backward,
                                    gemmepi__alignment_of_layer(desc, args, backward), &kept);
    if (status)
        return status;
    layer = (gemmepi__linear_plan *)kept;
    if (!args->workspace)
        status = gemmepi__prepare_layer(layer, stream);
    if (!status)
        status = gemmepi__run_layer(layer, args, 1, stream);
    gemmepi__release_plan(kept);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_linear(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                          const gemmepi_linear_args *args, gemmepi_stream stream) {
    return gemmepi__call_layer(context, desc, args, 0, stream);
}

GEMMEPI_API gemmepi_status gemmepi_linear_backward(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                                   const gemmepi_linear_args *args, gemmepi_stream stream) {
    return gemmepi__call_layer(context, desc, args, 1, stream);
}

#endif
