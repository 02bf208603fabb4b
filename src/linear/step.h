/* Layers: prepared once, run any number of times, and the calls that do both.

   A layer is a short list of steps, each with a plan or a kernel of its own, between the caller's tensors and temporaries in
   workspace. Forward is one product. Backward is

       copies   of A or B, where products want their items one after another, or without scales that change along the sum
       G        a pass over dY and P, or the product that computes P anew; none where dY is G
       dA, dB   products
       dbias    left by what makes G, or by dB's product, or a sum by itself */
#ifndef GEMMEPI_LINEAR_STEP_H
#define GEMMEPI_LINEAR_STEP_H

#include "../elementwise/plan.h"
#include "../product/run.h"
#include "take.h"

/* Where a pointer of a step comes from: a tensor of the layer, or a temporary. */
enum {
    GEMMEPI__G = GEMMEPI__L_ALL,
    GEMMEPI__COPY_A,
    GEMMEPI__COPY_B,
    GEMMEPI__SCALES_A,
    GEMMEPI__SCALES_B,
    GEMMEPI__SOURCES,
    GEMMEPI__NO_SOURCE = -1
};

#define GEMMEPI__TEMPORARIES (GEMMEPI__SOURCES - GEMMEPI__G)

typedef enum gemmepi__step_kind {
    GEMMEPI__STEP_PRODUCT,
    GEMMEPI__STEP_PASS, /* an epilogue over a finished product: dY */
    GEMMEPI__STEP_SUM,  /* dbias from G alone */
    GEMMEPI__STEP_COPY
} gemmepi__step_kind;

typedef struct gemmepi__step {
    gemmepi__step_kind kind;
    const char *what;                /* it makes, in words */
    gemmepi__matmul_plan *product;   /* of PRODUCT */
    gemmepi__elementwise_plan *copy; /* of COPY */
    gemmepi__problem problem;        /* of PASS and SUM */
    gemmepi__view given;             /* PASS: dY as a product */
    gemmepi__pass pass;
    gemmepi__sums sums;
    int8_t sources
        [GEMMEPI__OPERANDS]; /* of the problem's operands; of a copy A, D and SCALE_A are what it takes */
    int8_t given_source;
    int accumulates;       /* beta is 1 and C is D */
    size_t workspace_size; /* of what is no product */
} gemmepi__step;

#define GEMMEPI__MAX_STEPS 8 /* copies of A and B and their scales, G, dA, dB, dbias */

typedef struct gemmepi__linear_plan {
    gemmepi_plan base;
    gemmepi__layer_task task;
    gemmepi__step steps[GEMMEPI__MAX_STEPS];
    int step_count;
    size_t temporary_bytes[GEMMEPI__TEMPORARIES];
    size_t built_size; /* the workspace as it was built: more once a product takes another route */
} gemmepi__linear_plan;

/* >>building */

static gemmepi__step *gemmepi__new_step(gemmepi__linear_plan *layer, gemmepi__step_kind kind,
                                        const char *what) {
    gemmepi__step *step = &layer->steps[layer->step_count++];
    step->kind = kind;
    step->what = what;
    memset(step->sources, GEMMEPI__NO_SOURCE, sizeof step->sources);
    step->given_source = GEMMEPI__NO_SOURCE;
    return step;
}

/* Whether nobody wants G itself. */
static int gemmepi__wants_only_sums(const gemmepi__layer_task *task) {
    return !(task->flags & (GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB));
}

static void gemmepi__mark_g(const gemmepi__layer_task *task, gemmepi__problem *problem) {
    problem->flags |= gemmepi__wants_only_sums(task) ? GEMMEPI__ONLY_SUMS : 0;
}

/* The problem of a desc that the layer made. Temporaries begin at multiples of 256. */
static gemmepi_status gemmepi__normalise_step(const gemmepi__linear_plan *layer, gemmepi__step *step,
                                              const gemmepi_matmul_desc *desc, gemmepi__problem *problem) {
    gemmepi_status status = gemmepi__normalise(desc, (size_t)layer->task.alignment, problem);
    int operand;
    for (operand = 0; operand < GEMMEPI__OPERANDS && !status; operand++)
        if (step->sources[operand] >= GEMMEPI__G && problem->views[operand].dtype)
            problem->views[operand].alignment = 256;
    return status;
}

static gemmepi_status gemmepi__build_product_step(gemmepi__linear_plan *layer, gemmepi__step *step,
                                                  const gemmepi_matmul_desc *desc) {
    gemmepi__problem problem;
    gemmepi_status status = gemmepi__normalise_step(layer, step, desc, &problem);
    if (!status && step->sources[GEMMEPI__D] == GEMMEPI__G)
        gemmepi__mark_g(&layer->task, &problem);
    if (!status)
        status = gemmepi__build_plan(layer->base.context, &problem, &step->product);
    return status;
}

static size_t gemmepi__pass_step_workspace(const gemmepi__step *step) {
    return gemmepi__round_up(step->pass.partial_bytes, 256) + step->sums.partial_bytes;
}

/* The kernels of a step that is no plan. */
static gemmepi_status gemmepi__build_kernels(gemmepi__linear_plan *layer, gemmepi__step *step) {
    gemmepi_context *context = layer->base.context;
    gemmepi__entry entry;
    gemmepi_status status;
    if (context->is_host || gemmepi__is_empty(&step->problem))
        return GEMMEPI_OK;
    status = gemmepi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gemmepi__lock(&context->build_lock);
    if (step->kind == GEMMEPI__STEP_PASS)
        status = gemmepi__build_pass(context, &step->problem, &step->given, 1, 1, &step->pass);
    if (!status && gemmepi__has(&step->problem, GEMMEPI__ANY_BGRAD))
        status =
            gemmepi__build_sums(context, &step->problem, step->pass.params.epilogue.row_tiles, &step->sums);
    gemmepi__unlock(&context->build_lock);
    gemmepi__leave_relaxed(context, &entry);
    step->workspace_size = gemmepi__pass_step_workspace(step);
    return status;
}

/* dbias as the step's sums, of the kind that the flag `sums` names, where the layer has one. */
static void gemmepi__leave_dbias(const gemmepi__layer_task *task, uint64_t sums, gemmepi_matmul_desc *desc,
                                 gemmepi__step *step) {
    if (!(task->flags & GEMMEPI_LINEAR_DBIAS))
        return;
    desc->epilogue |= sums | (task->flags & GEMMEPI_ACCUMULATE_DBIAS ? GEMMEPI_ACCUMULATE_BIAS_GRAD : 0);
    desc->bias_grad = gemmepi__layer_vector(task, GEMMEPI__L_DBIAS);
    step->sources[GEMMEPI__BIAS_GRAD] = GEMMEPI__L_DBIAS;
}

static void gemmepi__give_parameter(const gemmepi__layer_task *task, gemmepi_matmul_desc *desc) {
    desc->has_parameter = gemmepi__default_parameter(task->epilogue) != 0;
    desc->activation_parameter = desc->has_parameter ? task->parameter : 0;
}

static gemmepi_matmul_desc gemmepi__step_desc(const gemmepi__layer_task *task, int64_t m, int64_t n,
                                              int64_t k, int64_t batch) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = m;
    desc.n = n;
    desc.k = k;
    desc.batch = batch;
    desc.flags = task->flags & GEMMEPI__LAYERS_PRODUCT_FLAGS;
    desc.alignment = (size_t)task->alignment;
    return desc;
}

/* Of a step whose D is Y: its scale, or those that it finds. */
static void gemmepi__point_to_scales_of_y(gemmepi__step *step) {
    step->sources[GEMMEPI__SCALE_D] = GEMMEPI__L_SCALE_Y;
    step->sources[GEMMEPI__FOUND_SCALE_D] = GEMMEPI__L_FOUND_SCALE_Y;
    step->sources[GEMMEPI__AMAX_HISTORY] = GEMMEPI__L_AMAX_HISTORY;
}

/* A product with a formula, whose problem gemmepi__take_layer has made. d: where D goes. */
static gemmepi_status gemmepi__add_formula_step(gemmepi__linear_plan *layer, const gemmepi__problem *formula,
                                                int d, const char *what) {
    gemmepi__step *step = gemmepi__new_step(layer, GEMMEPI__STEP_PRODUCT, what);
    gemmepi__problem problem = *formula;
    step->sources[GEMMEPI__A] = GEMMEPI__L_A;
    step->sources[GEMMEPI__B] = GEMMEPI__L_B;
    step->sources[GEMMEPI__SCALE_A] = GEMMEPI__L_SCALE_A;
    step->sources[GEMMEPI__SCALE_B] = GEMMEPI__L_SCALE_B;
    step->sources[GEMMEPI__D] = (int8_t)d;
    if (d == GEMMEPI__L_Y)
        gemmepi__point_to_scales_of_y(step);
    else
        problem.views[GEMMEPI__D].alignment = 256;
    return gemmepi__build_plan(layer->base.context, &problem, &step->product);
}

/* The layer's own product with its activation: act(A B + bias). */
static gemmepi_matmul_desc gemmepi__layer_product(const gemmepi__layer_task *task, gemmepi__step *step) {
    gemmepi_matmul_desc desc = gemmepi__step_desc(task, task->m, task->n, task->k, task->batch);
    desc.compute = (gemmepi_compute)task->compute;
    desc.epilogue = task->epilogue;
    gemmepi__give_parameter(task, &desc);
    desc.a = gemmepi__layer_matrix(task, GEMMEPI__L_A);
    desc.b = gemmepi__layer_matrix(task, GEMMEPI__L_B);
    step->sources[GEMMEPI__A] = GEMMEPI__L_A;
    step->sources[GEMMEPI__B] = GEMMEPI__L_B;
    step->sources[GEMMEPI__SCALE_A] = GEMMEPI__L_SCALE_A;
    step->sources[GEMMEPI__SCALE_B] = GEMMEPI__L_SCALE_B;
    if (task->flags & GEMMEPI_LINEAR_BIAS) {
        desc.epilogue |= GEMMEPI_BIAS;
        desc.bias = gemmepi__layer_vector(task, GEMMEPI__L_BIAS);
        step->sources[GEMMEPI__BIAS] = GEMMEPI__L_BIAS;
    }
    return desc;
}

#endif
