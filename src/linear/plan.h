/* Layers: prepared once, run any number of times, and the calls that do both.

   A layer is a short list of steps, each with a plan or a kernel of its own, between the caller's tensors and temporaries in
   workspace. Forward is one product. Backward is

       copies   of A or B, where products want their items one after another, or without scales that change along the sum
       G        a pass over dY and P, or the product that computes P anew; none where dY is G
       dA, dB   products
       dbias    left by what makes G, or by dB's product, or a sum by itself */
#ifndef GEMMEPI_LINEAR_PLAN_H
#define GEMMEPI_LINEAR_PLAN_H

#include "../elementwise/plan.h"
#include "../product/run.h"
#include "layer.h"

/* Where a pointer of a step comes from: a tensor of the layer, or a temporary. */
enum {
    GEMMEPI__G = GEMMEPI__L_COUNT,
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

/* >>building: matrices */

/* A view of the layer as a desc takes it. */
static gemmepi_matrix gemmepi__layer_matrix(const gemmepi__layer_task *task, int tensor) {
    const gemmepi__view *view = &task->views[tensor];
    gemmepi_matrix matrix;
    memset(&matrix, 0, sizeof matrix);
    if (view->bits != 1) /* RELU's mask takes no dtype */
        matrix.dtype = (gemmepi_dtype)view->dtype;
    matrix.transposed = view->transposed;
    matrix.ld = view->ld;
    matrix.batch_stride = view->batch_stride;
    if (tensor <= GEMMEPI__L_DY && view->scale) {
        matrix.scale.mode = (gemmepi_scale_mode)view->scale;
        matrix.scale.batch_stride = task->views[GEMMEPI__L_SCALE_OF(tensor)].batch_stride;
    }
    return matrix;
}

static gemmepi_vector gemmepi__layer_vector(const gemmepi__layer_task *task, int tensor) {
    gemmepi_vector vector;
    memset(&vector, 0, sizeof vector);
    vector.dtype = (gemmepi_dtype)task->views[tensor].dtype;
    vector.batch_stride = task->views[tensor].batch_stride;
    return vector;
}

/* What backward makes its products from: matrices, and where they lie. */
typedef struct gemmepi__factors {
    gemmepi_matrix a, b, g;
    int a_source, b_source, g_source;
} gemmepi__factors;

/* A line's length rounded up so that each begins at a multiple of 16 bytes. */
static int64_t gemmepi__padded(int64_t length) {
    return gemmepi__divide_up(length, GEMMEPI__RUN) * GEMMEPI__RUN;
}

/* Whether the items of a matrix, `rows` x `columns` as op() has it, follow one another like one of batch * rows rows. */
static int gemmepi__stacks_rows(const gemmepi_matrix *matrix, int64_t batch, int64_t rows) {
    if (matrix->transposed) /* every stored line goes on into the next item */
        return matrix->batch_stride == rows && matrix->ld >= gemmepi__offset(batch, rows, 0);
    return matrix->batch_stride == gemmepi__offset(rows, matrix->ld, 0);
}

/* The same of batch * columns columns. */
static int gemmepi__stacks_columns(const gemmepi_matrix *matrix, int64_t batch, int64_t columns) {
    gemmepi_matrix turned = *matrix;
    turned.transposed = !turned.transposed;
    return gemmepi__stacks_rows(&turned, batch, columns);
}

/* G as it lies in workspace: items follow one another row by row, or, where dA is a sum over them, column by column. */
static gemmepi_matrix gemmepi__g_matrix(const gemmepi__layer_task *task) {
    int side_by_side = task->sums_da && task->m != 0;
    int64_t ld = gemmepi__padded(side_by_side ? gemmepi__times(task->batch, task->n) : task->n);
    gemmepi_matrix g = gemmepi__dense_matrix((gemmepi_dtype)task->g_dtype, task->m, ld);
    if (side_by_side)
        g.batch_stride = task->n;
    if (task->batch <= 1)
        g.batch_stride = 0;
    return g;
}

/* Whether dY may stand for G: nothing is to be multiplied or rounded, and its items lie as the products want them. */
static int gemmepi__dy_is_g(const gemmepi__layer_task *task) {
    gemmepi_matrix dy = gemmepi__layer_matrix(task, GEMMEPI__L_DY);
    uint64_t flags = task->flags;
    if (!gemmepi__is_affine(task->epilogue) || (int32_t)dy.dtype != task->g_dtype ||
        task->views[GEMMEPI__L_DY].scale)
        return 0;
    if (task->batch <= 1)
        return 1;
    return !(task->shares_b && flags & (GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS) &&
             !gemmepi__stacks_rows(&dy, task->batch, task->m)) &&
           !(task->sums_da && flags & GEMMEPI_LINEAR_DA &&
             !gemmepi__stacks_columns(&dy, task->batch, task->n));
}

/* >>building: steps */

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

static uint64_t gemmepi__dbias_epilogue(const gemmepi__layer_task *task, uint64_t sums) {
    uint64_t accumulates = task->flags & GEMMEPI_ACCUMULATE_DBIAS ? GEMMEPI_ACCUMULATE_BIAS_GRAD : 0;
    return task->flags & GEMMEPI_LINEAR_DBIAS ? sums | accumulates : 0;
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
    desc.flags = task->flags & (GEMMEPI_RELAXED | GEMMEPI_FAST_ACCUMULATION);
    desc.alignment = (size_t)task->alignment;
    return desc;
}

/* G = dY act'(P) of a P that was saved, and dbias on the way. */
static gemmepi_status gemmepi__add_pass(gemmepi__linear_plan *layer, const gemmepi_matrix *g) {
    const gemmepi__layer_task *task = &layer->task;
    const gemmepi__view *dy = &task->views[GEMMEPI__L_DY];
    gemmepi__step *step = gemmepi__new_step(layer, GEMMEPI__STEP_PASS, "G");
    gemmepi_matmul_desc desc = gemmepi__step_desc(task, task->m, dy->length, 1, task->batch);
    gemmepi_status status;
    desc.flags = 0;
    desc.epilogue = task->epilogue | gemmepi__dbias_epilogue(task, GEMMEPI_BGRAD);
    if (!gemmepi__is_affine(task->epilogue)) {
        desc.epilogue |= GEMMEPI_BACKWARD;
        desc.aux = gemmepi__layer_matrix(task, GEMMEPI__L_PREACT);
        step->sources[GEMMEPI__AUX] = GEMMEPI__L_PREACT;
        step->sources[GEMMEPI__SCALE_AUX] = GEMMEPI__L_SCALE_PREACT;
    }
    gemmepi__give_parameter(task, &desc);
    desc.a.dtype = dy->dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    desc.d = *g;
    step->sources[GEMMEPI__D] = GEMMEPI__G;
    if (task->flags & GEMMEPI_LINEAR_DBIAS) {
        desc.bias_grad = gemmepi__layer_vector(task, GEMMEPI__L_DBIAS);
        step->sources[GEMMEPI__BIAS_GRAD] = GEMMEPI__L_DBIAS;
    }
    step->given = *dy;
    step->given_source = GEMMEPI__L_DY;
    status = gemmepi__normalise_step(layer, step, &desc, &step->problem);
    gemmepi__mark_g(task, &step->problem);
    if (dy->scale) { /* the pass multiplies by it as by that of an operand */
        step->problem.views[GEMMEPI__A].scale = dy->scale;
        step->problem.views[GEMMEPI__SCALE_A] = task->views[GEMMEPI__L_SCALE_DY];
        step->sources[GEMMEPI__SCALE_A] = GEMMEPI__L_SCALE_DY;
    }
    return status ? status : gemmepi__build_kernels(layer, step);
}

/* G = dY act'(A B + bias), and dbias on the way. */
static gemmepi_status gemmepi__add_recomputation(gemmepi__linear_plan *layer, const gemmepi_matrix *g) {
    const gemmepi__layer_task *task = &layer->task;
    gemmepi__step *step = gemmepi__new_step(layer, GEMMEPI__STEP_PRODUCT, "G");
    gemmepi_matmul_desc desc = gemmepi__step_desc(task, task->m, task->n, task->k, task->batch);
    desc.compute = (gemmepi_compute)task->compute;
    desc.epilogue =
        task->epilogue | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | gemmepi__dbias_epilogue(task, GEMMEPI_BGRAD);
    gemmepi__give_parameter(task, &desc);
    desc.a = gemmepi__layer_matrix(task, GEMMEPI__L_A);
    desc.b = gemmepi__layer_matrix(task, GEMMEPI__L_B);
    desc.aux = gemmepi__layer_matrix(task, GEMMEPI__L_DY);
    desc.d = *g;
    step->sources[GEMMEPI__A] = GEMMEPI__L_A;
    step->sources[GEMMEPI__B] = GEMMEPI__L_B;
    step->sources[GEMMEPI__AUX] = GEMMEPI__L_DY;
    step->sources[GEMMEPI__D] = GEMMEPI__G;
    step->sources[GEMMEPI__SCALE_A] = GEMMEPI__L_SCALE_A;
    step->sources[GEMMEPI__SCALE_B] = GEMMEPI__L_SCALE_B;
    step->sources[GEMMEPI__SCALE_AUX] = GEMMEPI__L_SCALE_DY;
    if (task->flags & GEMMEPI_LINEAR_BIAS) {
        desc.epilogue |= GEMMEPI_BIAS;
        desc.bias = gemmepi__layer_vector(task, GEMMEPI__L_BIAS);
        step->sources[GEMMEPI__BIAS] = GEMMEPI__L_BIAS;
    }
    if (task->flags & GEMMEPI_LINEAR_DBIAS) {
        desc.bias_grad = gemmepi__layer_vector(task, GEMMEPI__L_DBIAS);
        step->sources[GEMMEPI__BIAS_GRAD] = GEMMEPI__L_DBIAS;
    }
    return gemmepi__build_product_step(layer, step, &desc);
}

/* A tensor of three axes, the items of a batch first, as a copy takes it. */
typedef struct gemmepi__three_axes {
    int64_t shape[3], stride[3];
    gemmepi_tensor tensor;
} gemmepi__three_axes;

static void gemmepi__fill_three_axes(gemmepi__three_axes *axes, gemmepi_dtype dtype, int64_t items,
                                     int64_t rows, int64_t columns, int64_t item, int64_t row,
                                     int64_t column) {
    memset(axes, 0, sizeof *axes);
    axes->shape[0] = items;
    axes->shape[1] = rows;
    axes->shape[2] = columns;
    axes->stride[0] = item;
    axes->stride[1] = row;
    axes->stride[2] = column;
    axes->tensor.dtype = dtype;
    axes->tensor.rank = 3;
    axes->tensor.shape = axes->shape;
    axes->tensor.stride = axes->stride;
}

/* A cast of the layer's tensor `from` into the temporary `to`, of `elements`: below 0 if they are too many. */
static gemmepi_status gemmepi__build_copy(gemmepi__linear_plan *layer, gemmepi__step *step,
                                          gemmepi_elementwise_desc *desc, int from, int to,
                                          int64_t elements) {
    gemmepi__task task;
    gemmepi_status status;
    if (elements < 0)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.%s is copied item by item for its product, and has more than 2^56 elements",
            gemmepi__layer_name(&layer->task, from));
    desc->operation = GEMMEPI_OP_CAST;
    status = gemmepi__take_task(desc, (size_t)layer->task.alignment, &task);
    if (!status)
        status = gemmepi__build_elementwise(layer->base.context, &task, &step->copy);
    if (status)
        return status;
    step->workspace_size = step->copy->workspace_size;
    step->sources[GEMMEPI__A] = (int8_t)from;
    step->sources[GEMMEPI__D] = (int8_t)to;
    layer->temporary_bytes[to - GEMMEPI__G] =
        gemmepi__bytes_for(elements, gemmepi_dtype_size(desc->y->dtype));
    return GEMMEPI_OK;
}

/* The scales of A or B one item after another, as a cast reads them; those that are one number for an item are written out
   for each of its `outer` rows (columns of B). *source is where they are then. */
static gemmepi_status gemmepi__add_scales(gemmepi__linear_plan *layer, int tensor, int64_t outer,
                                          int *source) {
    const gemmepi__view *view = &layer->task.views[GEMMEPI__L_SCALE_OF(tensor)];
    int mode = layer->task.views[tensor].scale, repeats = mode == GEMMEPI_SCALE_TENSOR;
    int64_t length = repeats ? outer : view->length;
    int64_t ld =
        mode == GEMMEPI_SCALE_BLOCK_128 ? (length + 3) / 4 * 4 : length; /* one line lost its padding */
    int64_t items = layer->task.batch, item = gemmepi__times(view->lines, ld);
    int to = tensor == GEMMEPI__L_A ? GEMMEPI__SCALES_A : GEMMEPI__SCALES_B;
    gemmepi__three_axes given, dense;
    gemmepi_elementwise_desc desc;
    gemmepi__step *step;
    *source = GEMMEPI__L_SCALE_OF(tensor);
    if (items <= 1 || (!repeats && view->batch_stride == item) || (repeats && view->batch_stride == 0))
        return GEMMEPI_OK;
    *source = to;
    step = gemmepi__new_step(layer, GEMMEPI__STEP_COPY, tensor == GEMMEPI__L_A ? "A's scales" : "B's scales");
    gemmepi__fill_three_axes(&given, GEMMEPI_F32, items, view->lines, length, view->batch_stride, view->ld,
                             !repeats);
    gemmepi__fill_three_axes(&dense, GEMMEPI_F32, items, view->lines, length, item, ld, 1);
    memset(&desc, 0, sizeof desc);
    desc.a = &given.tensor;
    desc.y = &dense.tensor;
    desc.alignment = 4; /* a scale's own */
    return gemmepi__build_copy(layer, step, &desc, GEMMEPI__L_SCALE_OF(tensor), to,
                               gemmepi__offset(items, item, 0));
}

/* op(A) or op(B), item by item, as a dense matrix in workspace, whose items are stacked along the sum of the product that it is
   for: A by rows, B by columns (so it is stored transposed). Scales are multiplied in, in F32. */
static gemmepi_status gemmepi__add_copy(gemmepi__linear_plan *layer, int tensor, gemmepi_matrix *matrix,
                                        int *source) {
    const gemmepi__layer_task *task = &layer->task;
    const gemmepi__view *view = &task->views[tensor];
    int is_a = tensor == GEMMEPI__L_A, to = is_a ? GEMMEPI__COPY_A : GEMMEPI__COPY_B, scales = 0;
    int rows_are_lines = view->transposed == !is_a; /* A's rows and B's columns are what is stacked */
    int64_t outer = is_a ? task->m : task->n, ld = gemmepi__padded(task->k), items = task->batch;
    gemmepi_dtype wide = view->scale ? GEMMEPI_F32 : GEMMEPI_BF16;
    gemmepi_dtype dtype = gemmepi__is_fp8(view->dtype) ? wide : (gemmepi_dtype)view->dtype;
    gemmepi__three_axes given, dense;
    gemmepi_elementwise_desc desc;
    gemmepi__step *step;
    gemmepi_status status = view->scale ? gemmepi__add_scales(layer, tensor, outer, &scales) : GEMMEPI_OK;
    if (status)
        return status;
    step = gemmepi__new_step(layer, GEMMEPI__STEP_COPY, is_a ? "a copy of A" : "a copy of B");
    *matrix = gemmepi__dense_matrix(dtype, outer, ld);
    matrix->transposed = !is_a;
    *source = to;
    gemmepi__fill_three_axes(&given, (gemmepi_dtype)view->dtype, items, outer, task->k, view->batch_stride,
                             rows_are_lines ? view->ld : 1, rows_are_lines ? 1 : view->ld);
    gemmepi__fill_three_axes(&dense, dtype, items, outer, task->k, matrix->batch_stride, ld, 1);
    memset(&desc, 0, sizeof desc);
    desc.a = &given.tensor;
    desc.y = &dense.tensor;
    desc.alignment = (size_t)task->alignment;
    if (view->scale) {
        desc.flags = GEMMEPI_CAST_SCALE;
        desc.scale_mode = (gemmepi_scale_mode)view->scale;
        if (view->scale == GEMMEPI_SCALE_TENSOR && scales != GEMMEPI__L_SCALE_OF(tensor))
            desc.scale_mode = GEMMEPI_SCALE_OUTER;
        step->sources[GEMMEPI__SCALE_A] = (int8_t)scales;
    }
    return gemmepi__build_copy(layer, step, &desc, tensor, to,
                               gemmepi__offset(gemmepi__offset(outer, ld, 0), items, 0));
}

/* Whether the product for a gradient takes the operand as it lies. stacks: the items of the batch lie so that the product
   sums over them, or it does not have to. */
static int gemmepi__takes_factor(const gemmepi__layer_task *task, int tensor, int sums_items, int stacks) {
    const gemmepi__view *view = &task->views[tensor];
    int varies = view->scale > GEMMEPI_SCALE_TENSOR ||
                 (view->scale && sums_items && task->views[GEMMEPI__L_SCALE_OF(tensor)].batch_stride);
    return !varies && (!sums_items || stacks);
}

static gemmepi_status gemmepi__take_factors(gemmepi__linear_plan *layer, gemmepi__factors *factors) {
    const gemmepi__layer_task *task = &layer->task;
    gemmepi_status status = GEMMEPI_OK;
    int empty = task->m == 0 || task->n == 0 || task->k == 0;
    int sums_a = task->shares_b && task->batch > 1, sums_b = task->sums_da && task->batch > 1;
    factors->a = gemmepi__layer_matrix(task, GEMMEPI__L_A);
    factors->b = gemmepi__layer_matrix(task, GEMMEPI__L_B);
    factors->a_source = GEMMEPI__L_A;
    factors->b_source = GEMMEPI__L_B;
    if (empty) { /* nothing is read: how items would follow one another, and their scales, are all the same */
        factors->a.ld = factors->a.batch_stride = 0;
        factors->b.ld = factors->b.batch_stride = 0;
        memset(&factors->a.scale, 0, sizeof factors->a.scale);
        memset(&factors->b.scale, 0, sizeof factors->b.scale);
    }
    if (task->flags & GEMMEPI_LINEAR_DB && !empty &&
        !gemmepi__takes_factor(task, GEMMEPI__L_A, sums_a,
                               gemmepi__stacks_rows(&factors->a, task->batch, task->m)))
        status = gemmepi__add_copy(layer, GEMMEPI__L_A, &factors->a, &factors->a_source);
    if (!status && task->flags & GEMMEPI_LINEAR_DA && !empty &&
        !gemmepi__takes_factor(task, GEMMEPI__L_B, sums_b,
                               gemmepi__stacks_columns(&factors->b, task->batch, task->n)))
        status = gemmepi__add_copy(layer, GEMMEPI__L_B, &factors->b, &factors->b_source);
    return status;
}

static gemmepi_status gemmepi__take_g(gemmepi__linear_plan *layer, gemmepi__factors *factors) {
    const gemmepi__layer_task *task = &layer->task;
    int64_t elements;
    factors->g = gemmepi__g_matrix(task);
    factors->g_source = GEMMEPI__G;
    if (task->m == 0 || task->n == 0)
        return GEMMEPI_OK; /* it has no element, and no step makes it */
    if (gemmepi__dy_is_g(task)) {
        factors->g = gemmepi__layer_matrix(task, GEMMEPI__L_DY);
        factors->g_source = GEMMEPI__L_DY;
        return GEMMEPI_OK;
    }
    elements = gemmepi__offset(task->m, factors->g.ld, 0);
    elements = elements < 0 || task->sums_da ? elements : gemmepi__offset(task->batch, elements, 0);
    if (elements < 0)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "G has more than 2^56 elements");
    if (!gemmepi__wants_only_sums(task))
        layer->temporary_bytes[0] =
            gemmepi__bytes_for(elements, gemmepi_dtype_size((gemmepi_dtype)task->g_dtype));
    return task->flags & GEMMEPI_LINEAR_RECOMPUTE ? gemmepi__add_recomputation(layer, &factors->g)
                                                  : gemmepi__add_pass(layer, &factors->g);
}

/* What dA's and dB's products have in common: D, which they overwrite or add to. */
static gemmepi__step *gemmepi__new_gradient(gemmepi__linear_plan *layer, int tensor,
                                            gemmepi_matmul_desc *desc) {
    const gemmepi__layer_task *task = &layer->task;
    int is_da = tensor == GEMMEPI__L_DA;
    gemmepi__step *step = gemmepi__new_step(layer, GEMMEPI__STEP_PRODUCT, is_da ? "dA" : "dB");
    desc->d = gemmepi__layer_matrix(task, tensor);
    desc->d.transposed = 0;
    desc->flags = 0;
    step->sources[GEMMEPI__D] = (int8_t)tensor;
    step->accumulates = (task->flags & (is_da ? GEMMEPI_ACCUMULATE_DA : GEMMEPI_ACCUMULATE_DB)) != 0;
    if (step->accumulates) {
        desc->flags = GEMMEPI_ACCUMULATE;
        step->sources[GEMMEPI__C] = (int8_t)tensor;
    }
    return step;
}

/* D = L R as it stands, or the transposed product, D^T = R^T L^T, where D is stored transposed. */
static void gemmepi__turn_product(gemmepi_matmul_desc *desc, gemmepi__step *step) {
    gemmepi_matrix left = desc->a;
    int64_t m = desc->m;
    int8_t source = step->sources[GEMMEPI__A], scale = step->sources[GEMMEPI__SCALE_A];
    desc->a = desc->b;
    desc->b = left;
    desc->a.transposed = !desc->a.transposed;
    desc->b.transposed = !desc->b.transposed;
    desc->m = desc->n;
    desc->n = m;
    step->sources[GEMMEPI__A] = step->sources[GEMMEPI__B];
    step->sources[GEMMEPI__B] = source;
    step->sources[GEMMEPI__SCALE_A] = step->sources[GEMMEPI__SCALE_B];
    step->sources[GEMMEPI__SCALE_B] = scale;
    desc->epilogue = gemmepi__callers_epilogue(desc->epilogue, 1);
}

/* dA = G op(B)^T: one product of all items where they are stacked, or where dA sums over them. */
static gemmepi_status gemmepi__add_da(gemmepi__linear_plan *layer, const gemmepi__factors *factors) {
    const gemmepi__layer_task *task = &layer->task;
    gemmepi_matrix da = gemmepi__layer_matrix(task, GEMMEPI__L_DA);
    int sums = task->sums_da, stacks;
    gemmepi_matmul_desc desc = gemmepi__step_desc(task, task->m, task->k, task->n, sums ? 1 : task->batch);
    gemmepi__step *step = gemmepi__new_gradient(layer, GEMMEPI__L_DA, &desc);
    desc.a = factors->g;
    desc.b = factors->b;
    desc.b.transposed = !desc.b.transposed;
    stacks = !sums && task->shares_b && task->batch > 1 &&
             gemmepi__stacks_rows(&desc.a, task->batch, task->m) &&
             gemmepi__stacks_rows(&da, task->batch, task->m);
    if (sums)
        desc.k = gemmepi__times(task->batch, task->n);
    if (stacks) {
        desc.m = gemmepi__times(task->batch, task->m);
        desc.batch = 1;
    }
    desc.compute =
        gemmepi__gradient_compute((gemmepi_compute)task->compute, (int)desc.a.dtype, (int)desc.b.dtype);
    step->sources[GEMMEPI__A] = (int8_t)factors->g_source;
    step->sources[GEMMEPI__B] = (int8_t)factors->b_source;
    step->sources[GEMMEPI__SCALE_B] = GEMMEPI__L_SCALE_B;
    if (da.transposed)
        gemmepi__turn_product(&desc, step);
    return gemmepi__build_product_step(layer, step, &desc);
}

/* dB = op(A)^T G, and dbias where nothing else leaves it. */
static void gemmepi__fill_db(const gemmepi__layer_task *task, const gemmepi__factors *factors, int sums_dbias,
                             gemmepi_matmul_desc *desc, gemmepi__step *step) {
    desc->a = factors->a;
    desc->a.transposed = !desc->a.transposed;
    desc->b = factors->g;
    desc->compute =
        gemmepi__gradient_compute((gemmepi_compute)task->compute, (int)desc->a.dtype, (int)desc->b.dtype);
    step->sources[GEMMEPI__A] = (int8_t)factors->a_source;
    step->sources[GEMMEPI__B] = (int8_t)factors->g_source;
    step->sources[GEMMEPI__SCALE_A] = GEMMEPI__L_SCALE_A;
    if (sums_dbias) {
        desc->epilogue = gemmepi__dbias_epilogue(task, GEMMEPI_BGRAD_B);
        desc->bias_grad = gemmepi__layer_vector(task, GEMMEPI__L_DBIAS);
        step->sources[GEMMEPI__BIAS_GRAD] = GEMMEPI__L_DBIAS;
    }
}

/* The product that dB is, of `rows` rows of op(A)^T. */
static gemmepi_matmul_desc gemmepi__db_desc(const gemmepi__layer_task *task, int64_t rows) {
    return gemmepi__step_desc(task, rows, task->n,
                              task->shares_b ? gemmepi__times(task->batch, task->m) : task->m,
                              task->shares_b ? 1 : task->batch);
}

/* gemm_sm90.cu sums G on the way. By cuBLASLt dbias costs 23, 9 and 121 us at m 8192 and (n, k) = (3072, 768), (768, 3072),
   (14336, 4096) in BF16 on an H200, and an element-wise sum of G 25, 13 and 92. */
static gemmepi_status gemmepi__add_db(gemmepi__linear_plan *layer, const gemmepi__factors *factors,
                                      int sums_dbias) {
    gemmepi_matmul_desc desc = gemmepi__db_desc(&layer->task, layer->task.k);
    gemmepi__step *step = gemmepi__new_gradient(layer, GEMMEPI__L_DB, &desc);
    gemmepi__fill_db(&layer->task, factors, sums_dbias, &desc, step);
    if (layer->task.views[GEMMEPI__L_DB].transposed)
        gemmepi__turn_product(&desc, step);
    return gemmepi__build_product_step(layer, step, &desc);
}

/* dbias as the sums of G's columns alone: those of a product that is not made. */
static gemmepi_status gemmepi__add_dbias(gemmepi__linear_plan *layer, const gemmepi__factors *factors) {
    gemmepi__step *step = gemmepi__new_step(layer, GEMMEPI__STEP_SUM, "dbias");
    gemmepi__factors sums = *factors;
    gemmepi_matmul_desc desc = gemmepi__db_desc(&layer->task, 1);
    gemmepi_status status;
    memset(&sums.a, 0, sizeof sums.a);
    sums.a.dtype = sums.g.dtype;
    desc.flags = 0;
    gemmepi__fill_db(&layer->task, &sums, 1, &desc, step);
    desc.d = gemmepi__dense_matrix(sums.g.dtype, 1, desc.n);
    status = gemmepi__normalise_step(layer, step, &desc, &step->problem);
    return status ? status : gemmepi__build_kernels(layer, step);
}

/* A gradient without an element has no step: the axes that its product would sum over may be longer than any product's. Where it
   has one, batch * m * n is a number of elements. */
static gemmepi_status gemmepi__build_backward(gemmepi__linear_plan *layer) {
    const gemmepi__layer_task *task = &layer->task;
    gemmepi__factors factors;
    gemmepi_status status = gemmepi__take_factors(layer, &factors);
    int has_da = task->flags & GEMMEPI_LINEAR_DA && task->m != 0 && task->k != 0;
    int has_db = task->flags & GEMMEPI_LINEAR_DB && task->n != 0 && task->k != 0;
    int before = layer->step_count, sums_dbias;
    if (!status)
        status = gemmepi__take_g(layer, &factors);
    /* dY itself, or no element at all, leaves no sums */
    sums_dbias = task->flags & GEMMEPI_LINEAR_DBIAS && layer->step_count == before;
    if (!status && has_da)
        status = gemmepi__add_da(layer, &factors);
    if (!status && has_db)
        status = gemmepi__add_db(layer, &factors, sums_dbias);
    if (!status && sums_dbias && !has_db && task->n != 0)
        status = gemmepi__add_dbias(layer, &factors);
    return status;
}

static gemmepi_status gemmepi__build_forward(gemmepi__linear_plan *layer) {
    const gemmepi__layer_task *task = &layer->task;
    gemmepi__step *step = gemmepi__new_step(layer, GEMMEPI__STEP_PRODUCT, "Y");
    gemmepi_matmul_desc desc = gemmepi__step_desc(task, task->m, task->n, task->k, task->batch);
    desc.compute = (gemmepi_compute)task->compute;
    desc.epilogue = task->epilogue;
    gemmepi__give_parameter(task, &desc);
    desc.a = gemmepi__layer_matrix(task, GEMMEPI__L_A);
    desc.b = gemmepi__layer_matrix(task, GEMMEPI__L_B);
    desc.d = gemmepi__layer_matrix(task, GEMMEPI__L_Y);
    step->sources[GEMMEPI__A] = GEMMEPI__L_A;
    step->sources[GEMMEPI__B] = GEMMEPI__L_B;
    step->sources[GEMMEPI__D] = GEMMEPI__L_Y;
    step->sources[GEMMEPI__SCALE_A] = GEMMEPI__L_SCALE_A;
    step->sources[GEMMEPI__SCALE_B] = GEMMEPI__L_SCALE_B;
    step->sources[GEMMEPI__SCALE_D] = GEMMEPI__L_SCALE_Y;
    if (task->flags & GEMMEPI_LINEAR_BIAS) {
        desc.epilogue |= GEMMEPI_BIAS;
        desc.bias = gemmepi__layer_vector(task, GEMMEPI__L_BIAS);
        step->sources[GEMMEPI__BIAS] = GEMMEPI__L_BIAS;
    }
    if (task->flags & GEMMEPI_LINEAR_SAVED) {
        desc.epilogue |= GEMMEPI_AUX;
        desc.aux = gemmepi__layer_matrix(task, GEMMEPI__L_PREACT);
        step->sources[GEMMEPI__AUX] = GEMMEPI__L_PREACT;
        step->sources[GEMMEPI__SCALE_AUX] = GEMMEPI__L_SCALE_PREACT;
    }
    return gemmepi__build_product_step(layer, step, &desc);
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

static gemmepi_status gemmepi__build_layer(gemmepi_context *context, const gemmepi__layer_task *task,
                                           gemmepi__linear_plan **result) {
    gemmepi__linear_plan *layer = (gemmepi__linear_plan *)gemmepi__new(&context->allocator, sizeof *layer);
    gemmepi_status status;
    if (!layer)
        return GEMMEPI_OUT_OF_MEMORY;
    layer->base = gemmepi__plan_base(
        context, gemmepi__is_backward(task) ? GEMMEPI_PLAN_LINEAR_BACKWARD : GEMMEPI_PLAN_LINEAR,
        gemmepi__destroy_layer);
    layer->task = *task;
    status = gemmepi__is_backward(task) ? gemmepi__build_backward(layer) : gemmepi__build_forward(layer);
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
    gemmepi__linear_plan *layer = NULL;
    gemmepi_status status;
    if (result)
        *result = NULL; /* also after a failure */
    if (!context || !result)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__take_layer(desc, backward, GEMMEPI__DEFAULT_ALIGNMENT, &task);
    if (!status)
        status = gemmepi__build_layer(context, &task, &layer);
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

/* >>running */

/* A run's pointers by source, and what its steps may use. */
typedef struct gemmepi__layer_run {
    void *sources[GEMMEPI__SOURCES];
    char *workspace;
    size_t workspace_size;
} gemmepi__layer_run;

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
    if (gemmepi__writes_nothing(&step->product->problem))
        return GEMMEPI_OK;
    gemmepi__point_step(step, &step->product->problem, run, &arguments);
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
        gemmepi__host_elementwise(&step->copy->task, pointers, 0, args.scale, NULL, NULL);
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
static gemmepi__stream_key gemmepi__layer_key(gemmepi_stream stream) {
    gemmepi__stream_key key = gemmepi__key_of_stream(stream);
    key.thread = ~key.thread; /* no thread has that number */
    return key;
}

static gemmepi_status gemmepi__run_layer_in_block(const gemmepi__linear_plan *layer, size_t needed,
                                                  gemmepi__layer_run *run, gemmepi_stream stream) {
    gemmepi__block *block =
        gemmepi__take_block(layer->base.context, gemmepi__layer_key(stream), needed, "gemmepi_plan_prepare");
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
        status = gemmepi__reserve_for(layer->base.context, stream, gemmepi__layer_key(stream), needed);
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
    int t;
    for (t = 0; t < GEMMEPI__L_COUNT && !status; t++)
        if (gemmepi__layer_has(&layer->task, t))
            status = gemmepi__check_reachable(context, gemmepi__layer_name(&layer->task, t), pointers[t]);
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
    return gemmepi__reserve_for(layer->base.context, stream, gemmepi__layer_key(stream),
                                gemmepi__layer_workspace(layer));
}

/* >>calls that plan by themselves */

/* The alignment class of the pointers, as gemmepi__alignment_of for products. Scales have their own rules. */
static size_t gemmepi__alignment_of_layer(const gemmepi_linear_args *args, int backward) {
    uintptr_t bits = (uintptr_t)args->a | (uintptr_t)args->b | (uintptr_t)args->bias |
                     (uintptr_t)args->preact | GEMMEPI__DEFAULT_ALIGNMENT;
    bits |= backward
                ? (uintptr_t)args->dy | (uintptr_t)args->da | (uintptr_t)args->db | (uintptr_t)args->dbias
                : (uintptr_t)args->y;
    return (size_t)(bits & (~bits + 1));
}

static gemmepi_status gemmepi__call_layer(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                          const gemmepi_linear_args *args, int backward,
                                          gemmepi_stream stream) {
    gemmepi__layer_task task;
    gemmepi__linear_plan *layer;
    gemmepi_plan *kept;
    gemmepi_status status;
    if (!context || !args)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "args" : "context");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__take_layer(desc, backward, gemmepi__alignment_of_layer(args, backward), &task);
    if (status)
        return status;
    kept = gemmepi__find_kept(context, &task, sizeof task);
    if (!kept) {
        status = gemmepi__build_layer(context, &task, &layer);
        if (status)
            return status;
        kept = gemmepi__keep(context, &task, sizeof task, &layer->base);
    }
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
