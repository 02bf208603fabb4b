/* What backward makes its products from, and the copies of A and B whose items, or scales, do not lie as the products want them. */
#ifndef GEMMEPI_LINEAR_FACTORS_H
#define GEMMEPI_LINEAR_FACTORS_H

#include "step.h"

/* What backward makes its products from: matrices, and where they lie. */
typedef struct gpi__factors {
    gemmepi_matrix a, b, g;
    int a_source, b_source, g_source;
} gpi__factors;

/* Whether the items of a matrix, `rows` x `columns` as op() has it, follow one another like one of batch * rows rows. */
static int gpi__stacks_rows(const gemmepi_matrix *matrix, int64_t batch, int64_t rows) {
    if (matrix->transposed) /* every stored line goes on into the next item */
        return matrix->batch_stride == rows && matrix->ld >= gpi__offset(batch, rows, 0);
    return matrix->batch_stride == gpi__offset(rows, matrix->ld, 0);
}

/* The same of batch * columns columns. */
static int gpi__stacks_columns(const gemmepi_matrix *matrix, int64_t batch, int64_t columns) {
    gemmepi_matrix turned = *matrix;
    turned.transposed = !turned.transposed;
    return gpi__stacks_rows(&turned, batch, columns);
}

/* A tensor of three axes, the items of a batch first, as a copy takes it. */
typedef struct gpi__three_axes {
    int64_t stride[3];
    gemmepi_tensor tensor;
} gpi__three_axes;

static void gpi__fill_three_axes(gpi__three_axes *axes, gemmepi_dtype dtype, const int64_t shape[3],
                                 int64_t item, int64_t row, int64_t column) {
    memset(axes, 0, sizeof *axes);
    axes->stride[0] = item;
    axes->stride[1] = row;
    axes->stride[2] = column;
    axes->tensor.dtype = dtype;
    axes->tensor.rank = 3;
    axes->tensor.shape = shape;
    axes->tensor.stride = axes->stride;
}

static gemmepi_status gpi__build_elementwise_step(gpi__linear_plan *layer, gpi__step *step,
                                                  const gpi__task *task) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gpi__build_elementwise(layer->base.context, task, &plan);
    step->copy = (gpi__elementwise_plan *)plan;
    step->workspace_size = status ? 0 : step->copy->workspace_size;
    return status;
}

/* A cast of the layer's tensor `from` into the temporary `to`, of `elements`: below 0 if they are too many. */
static gemmepi_status gpi__build_copy(gpi__linear_plan *layer, gpi__step *step,
                                      gemmepi_elementwise_desc *desc, int from, int to, int64_t elements) {
    gpi__task task;
    gemmepi_status status;
    GPI__INVALID_IF(elements < 0,
                    "desc.%s is copied item by item for its product, and has more than 2^56 elements",
                    gpi__layer_name(&layer->task, from));
    desc->operation = GEMMEPI_OP_CAST;
    status = gpi__convert_task(desc, (size_t)layer->task.alignment, &task);
    if (!status)
        status = gpi__build_elementwise_step(layer, step, &task);
    if (status)
        return status;
    step->sources[GPI__A] = (int8_t)from;
    step->sources[GPI__D] = (int8_t)to;
    layer->temporary_bytes[to - GPI__G] = gpi__bytes_for(elements, gemmepi_dtype_size(desc->y->dtype));
    return GEMMEPI_OK;
}

/* The scales of A or B one item after another, as a cast reads them; those that are one number for an item are written out
   for each of its `outer` rows (columns of B). *source is where they are then. */
static gemmepi_status gpi__add_scales(gpi__linear_plan *layer, int tensor, int64_t outer, int *source) {
    const gpi__view *view = &layer->task.views[GPI__L_SCALE_OF(tensor)];
    int mode = layer->task.views[tensor].scale, repeats = mode == GEMMEPI_SCALE_TENSOR;
    int64_t length = repeats ? outer : view->length;
    int64_t ld =
        mode == GEMMEPI_SCALE_BLOCK_128 ? (length + 3) / 4 * 4 : length; /* one line lost its padding */
    int64_t items = layer->task.batch, item = gpi__times(view->lines, ld);
    int to = tensor == GPI__L_A ? GPI__SCALES_A : GPI__SCALES_B;
    gpi__three_axes given, dense;
    int64_t shape[3];
    gemmepi_elementwise_desc desc;
    gpi__step *step;
    *source = GPI__L_SCALE_OF(tensor);
    if (items <= 1 || (!repeats && view->batch_stride == item) || (repeats && view->batch_stride == 0))
        return GEMMEPI_OK;
    *source = to;
    step = gpi__new_step(layer, GPI__STEP_COPY, tensor == GPI__L_A ? "A's scales" : "B's scales");
    shape[0] = items;
    shape[1] = view->lines;
    shape[2] = length;
    gpi__fill_three_axes(&given, GEMMEPI_F32, shape, view->batch_stride, view->ld, !repeats);
    gpi__fill_three_axes(&dense, GEMMEPI_F32, shape, item, ld, 1);
    memset(&desc, 0, sizeof desc);
    desc.a = &given.tensor;
    desc.y = &dense.tensor;
    desc.alignment = 4; /* a scale's own */
    return gpi__build_copy(layer, step, &desc, GPI__L_SCALE_OF(tensor), to, gpi__offset(items, item, 0));
}

/* op(A) or op(B), item by item, as a dense matrix in workspace, whose items are stacked along the sum of the product that it is
   for: A by rows, B by columns (so it is stored transposed). Scales are multiplied in, in F32. */
static gemmepi_status gpi__add_copy(gpi__linear_plan *layer, int tensor, gemmepi_matrix *matrix,
                                    int *source) {
    const gpi__layer_task *task = &layer->task;
    const gpi__view *view = &task->views[tensor];
    int is_a = tensor == GPI__L_A, to = is_a ? GPI__COPY_A : GPI__COPY_B, scales = 0;
    int rows_are_lines = view->transposed == !is_a; /* A's rows and B's columns are what is stacked */
    int64_t outer = is_a ? task->m : task->n, ld = gpi__padded(task->k), items = task->batch;
    gemmepi_dtype wide = view->scale ? GEMMEPI_F32 : GEMMEPI_BF16;
    gemmepi_dtype dtype = gpi__is_fp8(view->dtype) ? wide : (gemmepi_dtype)view->dtype;
    gpi__three_axes given, dense;
    int64_t shape[3];
    gemmepi_elementwise_desc desc;
    gpi__step *step;
    gemmepi_status status = view->scale ? gpi__add_scales(layer, tensor, outer, &scales) : GEMMEPI_OK;
    if (status)
        return status;
    step = gpi__new_step(layer, GPI__STEP_COPY, is_a ? "a copy of A" : "a copy of B");
    *matrix = gpi__dense_matrix(dtype, outer, ld);
    matrix->transposed = !is_a;
    *source = to;
    shape[0] = items;
    shape[1] = outer;
    shape[2] = task->k;
    gpi__fill_three_axes(&given, (gemmepi_dtype)view->dtype, shape, view->batch_stride,
                         rows_are_lines ? view->ld : 1, rows_are_lines ? 1 : view->ld);
    gpi__fill_three_axes(&dense, dtype, shape, matrix->batch_stride, ld, 1);
    memset(&desc, 0, sizeof desc);
    desc.a = &given.tensor;
    desc.y = &dense.tensor;
    desc.alignment = (size_t)task->alignment;
    if (view->scale) {
        desc.flags = GEMMEPI_CAST_SCALE;
        desc.scale_mode = (gemmepi_scale_mode)view->scale;
        if (view->scale == GEMMEPI_SCALE_TENSOR && scales != GPI__L_SCALE_OF(tensor))
            desc.scale_mode = GEMMEPI_SCALE_OUTER;
        step->sources[GPI__SCALE_A] = (int8_t)scales;
    }
    return gpi__build_copy(layer, step, &desc, tensor, to, gpi__offset(gpi__offset(outer, ld, 0), items, 0));
}

/* Whether the product for a gradient takes the operand as it lies. stacks: the items of the batch lie so that the product
   sums over them, or it does not have to. */
static int gpi__accepts_factor(const gpi__layer_task *task, int tensor, int over_items, int stacks) {
    const gpi__view *view = &task->views[tensor];
    int varies = view->scale > GEMMEPI_SCALE_TENSOR ||
                 (view->scale && over_items && task->views[GPI__L_SCALE_OF(tensor)].batch_stride);
    return !varies && (!over_items || stacks);
}

/* Whether one product of all items is dB. */
static int gpi__sums_db_over_items(const gpi__layer_task *task) {
    return task->shares_b && !(task->adds_items >> GPI__B & 1);
}

static gemmepi_status gpi__build_factors(gpi__linear_plan *layer, gpi__factors *factors) {
    const gpi__layer_task *task = &layer->task;
    gemmepi_status status = GEMMEPI_OK;
    int empty = task->m == 0 || task->n == 0 || task->k == 0;
    int a_over_items = gpi__sums_db_over_items(task) && task->batch > 1,
        b_over_items = task->shares_a && task->batch > 1;
    factors->a = gpi__layer_matrix(task, GPI__L_A);
    factors->b = gpi__layer_matrix(task, GPI__L_B);
    factors->a_source = GPI__L_A;
    factors->b_source = GPI__L_B;
    if (empty &&
        !gpi__makes_factors(
            task)) { /* nothing is read: how items would follow one another, and their scales, are all the same */
        factors->a.ld = factors->a.batch_stride = 0;
        factors->b.ld = factors->b.batch_stride = 0;
        memset(&factors->a.scale, 0, sizeof factors->a.scale);
        memset(&factors->b.scale, 0, sizeof factors->b.scale);
    }
    if (task->flags & GEMMEPI_LINEAR_DB && !empty &&
        !gpi__accepts_factor(task, GPI__L_A, a_over_items,
                             gpi__stacks_rows(&factors->a, task->batch, task->m)))
        status = gpi__add_copy(layer, GPI__L_A, &factors->a, &factors->a_source);
    if (!status && task->flags & GEMMEPI_LINEAR_DA && !empty &&
        !gpi__accepts_factor(task, GPI__L_B, b_over_items,
                             gpi__stacks_columns(&factors->b, task->batch, task->n)))
        status = gpi__add_copy(layer, GPI__L_B, &factors->b, &factors->b_source);
    return status;
}

#endif
