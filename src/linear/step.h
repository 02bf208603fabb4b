/* Layers: prepared once, run any number of times, and the calls that do both.

   A layer is a short list of steps, each with a plan or a kernel of its own, between the caller's tensors and temporaries in
   workspace. Forward is one product. Backward is

       copies   of A or B, where products want their items one after another, or without scales that change along the sum
       G        a pass over dY and P, or the product that computes P anew; none where dY is G
       dA, dB   products
       dbias    left by what makes G, or by dB's product, or a sum by itself
       sums     of what those leave in workspace, over items, or rows and columns of blocks */
#ifndef GEMMEPI_LINEAR_STEP_H
#define GEMMEPI_LINEAR_STEP_H

#include "../elementwise/plan.h"
#include "../product/run.h"
#include "convert.h"

/* Where a pointer of a step comes from: a tensor of the layer, or a temporary. */
enum {
    GPI__G = GPI__L_ALL,
    GPI__COPY_A,
    GPI__COPY_B,
    GPI__SCALES_A,
    GPI__SCALES_B,
    GPI__ADDED, /* and as many as are added up */
    GPI__SOURCES = GPI__ADDED + GPI__LAYER_ADDED,
    GPI__NO_SOURCE = -1
};

#define GPI__TEMPORARIES (GPI__SOURCES - GPI__G)

typedef enum gpi__step_kind {
    GPI__STEP_PRODUCT,
    GPI__STEP_PASS, /* an epilogue over a finished product: dY */
    GPI__STEP_SUM,  /* dbias from G alone */
    GPI__STEP_COPY  /* or a sum of what is added up */
} gpi__step_kind;

typedef struct gpi__step {
    gpi__step_kind kind;
    const char *what;            /* it makes, in words */
    gpi__matmul_plan *product;   /* of PRODUCT */
    gpi__elementwise_plan *copy; /* of COPY */
    gpi__problem problem;        /* of PASS and SUM */
    gpi__view given;             /* PASS: dY as a product */
    gpi__pass pass;
    gpi__sums sums;
    int8_t
        sources[GPI__OPERANDS]; /* of the problem's operands; of a copy A, D and SCALE_A are what it takes */
    int8_t given_source;
    int8_t formula;        /* which of the layer's a product has, if any */
    int accumulates;       /* beta is 1 and C is D */
    size_t workspace_size; /* of what is no product */
} gpi__step;

#define GPI__MAX_STEPS    8 /* copies of A and B and their scales, G, dA, dB, dbias */
#define GPI__STEPS_OF_SUM 4 /* of whole blocks, and of what is left of rows and columns */

/* Which block of rows a plan is for: the first, which may overwrite sums over rows, those that add to them, and a last one that is smaller. */
enum { GPI__FIRST_BLOCK, GPI__NEXT_BLOCK, GPI__LAST_BLOCK, GPI__BLOCKS };

typedef struct gpi__linear_plan {
    gemmepi_plan base;
    gpi__layer_task task;
    gpi__step *steps; /* which follow */
    int step_count;
    size_t temporary_bytes[GPI__TEMPORARIES];
    struct gpi__linear_plan *blocks
        [GPI__BLOCKS]; /* of a backward by blocks of rows, in the place of steps; NULL: there is none such */
    struct gpi__linear_plan *ahead; /* of a block with LINEAR_FORWARD: its forward, run before it */
    size_t p_bytes;                 /* of the P between both, ahead of all in workspace */
    int64_t block_rows;             /* of all but the last */
    size_t built_size; /* the workspace as it was built: more once a product takes another route */
} gpi__linear_plan;

/* >>building */

static gpi__step *gpi__new_step(gpi__linear_plan *layer, gpi__step_kind kind, const char *what) {
    gpi__step *step = &layer->steps[layer->step_count++];
    step->kind = kind;
    step->what = what;
    step->formula = GPI__OF_FIRST;
    memset(step->sources, GPI__NO_SOURCE, sizeof step->sources);
    step->given_source = GPI__NO_SOURCE;
    return step;
}

/* Whether nobody wants G itself. */
static int gpi__wants_only_sums(const gpi__layer_task *task) {
    return !(task->flags & (GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB));
}

static void gpi__mark_g(const gpi__layer_task *task, gpi__problem *problem) {
    problem->flags |= gpi__wants_only_sums(task) ? GPI__ONLY_SUMS : 0;
}

/* The problem of a desc that the layer made. Temporaries begin at multiples of 256. */
static gemmepi_status gpi__normalise_step(const gpi__linear_plan *layer, gpi__step *step,
                                          const gemmepi_matmul_desc *desc, gpi__problem *problem) {
    gemmepi_status status = gpi__normalise(desc, (size_t)layer->task.alignment, problem);
    int operand;
    for (operand = 0; operand < GPI__OPERANDS && !status; operand++)
        if (step->sources[operand] >= GPI__G && problem->views[operand].dtype)
            problem->views[operand].alignment = 256;
    return status;
}

/* Where a product multiplies A or B of the layer that text makes, what is stored is put in its place, and the text with it. */
static void gpi__put_made(const gpi__layer_task *task, const gpi__step *step, gpi__problem *problem) {
    int i, from;
    for (i = GPI__A; i <= GPI__B; i++) {
        from = step->sources[i];
        if ((from != GPI__L_A && from != GPI__L_B) || !task->made[from].formula || !problem->views[i].dtype)
            continue;
        problem->made[i].formula = task->made[from].formula;
        problem->made[i].view = problem->views[i];
        problem->made[i].view.alignment = 256; /* workspace's */
        problem->views[i] = task->views[from];
        problem->views[i].transposed = problem->made[i].view.transposed;
        problem->views[GPI__SCALE_OF(i)] = task->views[GPI__L_SCALE_OF(from)];
    }
    gpi__list_operands(problem);
}

/* The product of a step. */
static gemmepi_status gpi__build_step(gpi__linear_plan *layer, const gpi__problem *given, gpi__step *step) {
    gemmepi_plan *plan = NULL;
    gpi__problem problem = *given;
    gemmepi_status status;
    if (gpi__makes_factors(&layer->task))
        gpi__put_made(&layer->task, step, &problem);
    status = gpi__build_plan(layer->base.context, &problem, &plan);
    step->product = (gpi__matmul_plan *)plan;
    return status;
}

static gemmepi_status gpi__build_product_step(gpi__linear_plan *layer, gpi__step *step,
                                              const gemmepi_matmul_desc *desc) {
    gpi__problem problem;
    gemmepi_status status = gpi__normalise_step(layer, step, desc, &problem);
    if (!status && step->sources[GPI__D] == GPI__G)
        gpi__mark_g(&layer->task, &problem);
    if (!status)
        status = gpi__build_step(layer, &problem, step);
    return status;
}

/* Builds the kernels of a step that is no plan. No such step is empty. */
static gemmepi_status gpi__build_kernels(gpi__linear_plan *layer, gpi__step *step) {
    gemmepi_context *context = layer->base.context;
    gpi__entry entry;
    gemmepi_status status;
    if (context->is_host)
        return GEMMEPI_OK;
    status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gpi__lock(&context->build_lock);
    if (step->kind == GPI__STEP_PASS)
        status = gpi__build_pass(context, &step->problem, &step->given, 1, 1, &step->pass);
    if (!status)
        status = gpi__build_sums(context, &step->problem, step->pass.params.epilogue.row_tiles, &step->sums);
    gpi__unlock(&context->build_lock);
    gpi__leave_relaxed(context, &entry);
    step->workspace_size = step->sums.bytes;
    return status;
}

/* dbias as the step's sums, of the kind that the flag `sums` names, where the layer has one. */
static void gpi__leave_dbias(const gpi__layer_task *task, uint64_t sums, gemmepi_matmul_desc *desc,
                             gpi__step *step) {
    if (!(task->flags & GEMMEPI_LINEAR_DBIAS))
        return;
    desc->epilogue |= sums | (task->flags & GEMMEPI_ACCUMULATE_DBIAS ? GEMMEPI_ACCUMULATE_BIAS_GRAD : 0);
    desc->bias_grad = gpi__layer_vector(task, GPI__L_DBIAS);
    step->sources[GPI__BIAS_GRAD] = GPI__L_DBIAS;
}

static void gpi__give_parameter(const gpi__layer_task *task, gemmepi_matmul_desc *desc) {
    desc->has_parameter = gpi__default_parameter(task->epilogue) != 0;
    desc->activation_parameter = desc->has_parameter ? task->parameter : 0;
}

static gemmepi_matmul_desc gpi__step_desc(const gpi__layer_task *task, int64_t m, int64_t n, int64_t k,
                                          int64_t batch) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = m;
    desc.n = n;
    desc.k = k;
    desc.batch = batch;
    desc.flags = task->flags & GPI__LAYERS_PRODUCT_FLAGS;
    desc.alignment = (size_t)task->alignment;
    return desc;
}

/* Of a step whose D is Y: its scale, or those that it finds. */
static void gpi__point_to_scales_of_y(gpi__step *step) {
    step->sources[GPI__SCALE_D] = GPI__L_SCALE_Y;
    step->sources[GPI__FOUND_SCALE_D] = GPI__L_FOUND_SCALE_Y;
    step->sources[GPI__AMAX_HISTORY] = GPI__L_AMAX_HISTORY;
}

static void gpi__point_to_factors(gpi__step *step) {
    step->sources[GPI__A] = GPI__L_A;
    step->sources[GPI__B] = GPI__L_B;
    step->sources[GPI__SCALE_A] = GPI__L_SCALE_A;
    step->sources[GPI__SCALE_B] = GPI__L_SCALE_B;
}

/* A x B, of which gpi__convert_layer has made Y or G, the problem: what that does not have of the tensors stays out. d: where D goes. */
static gemmepi_status gpi__add_converted(gpi__linear_plan *layer, const gpi__problem *converted, int d,
                                         const char *what) {
    gpi__step *step = gpi__new_step(layer, GPI__STEP_PRODUCT, what);
    gpi__problem problem = *converted;
    int aux = d == GPI__L_Y ? GPI__L_PREACT : GPI__L_DY;
    gpi__point_to_factors(step);
    step->sources[GPI__D] = (int8_t)d;
    step->sources[GPI__BIAS] = GPI__L_BIAS;
    step->sources[GPI__BIAS_GRAD] = GPI__L_DBIAS;
    step->sources[GPI__RESIDUAL] = GPI__L_RESIDUAL;
    step->sources[GPI__SCALE_RESIDUAL] = GPI__L_SCALE_RESIDUAL;
    step->sources[GPI__AUX] = (int8_t)aux;
    step->sources[GPI__SCALE_AUX] = (int8_t)GPI__L_SCALE_OF(aux);
    if (d == GPI__L_Y)
        gpi__point_to_scales_of_y(step);
    else
        problem.views[GPI__D].alignment = 256;
    if (d == GPI__G && !problem.formula)
        gpi__mark_g(&layer->task, &problem);
    return gpi__build_step(layer, &problem, step);
}

#endif
