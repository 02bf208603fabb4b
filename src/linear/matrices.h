/* The matrices and vectors of a layer's steps, as descs of products take them. */
#ifndef GEMMEPI_LINEAR_MATRICES_H
#define GEMMEPI_LINEAR_MATRICES_H

#include "../product/plan.h"
#include "desc.h"

/* A view of the layer as a desc takes it: of A and B that text makes what is multiplied. */
static gemmepi_matrix gpi__layer_matrix(const gpi__layer_task *task, int tensor) {
    int is_made = tensor <= GPI__L_B && task->made[tensor].formula != NULL;
    const gpi__view *view = is_made ? &task->made[tensor].view : &task->views[tensor];
    gemmepi_matrix matrix;
    memset(&matrix, 0, sizeof matrix);
    if (view->bits != 1) /* RELU's mask takes no dtype */
        matrix.dtype = (gemmepi_dtype)view->dtype;
    matrix.transposed = view->transposed;
    matrix.ld = view->ld;
    matrix.batch_stride = view->batch_stride;
    if (tensor <= GPI__L_DY && view->scale && !is_made) {
        matrix.scale.mode = (gemmepi_scale_mode)view->scale;
        matrix.scale.batch_stride = task->views[GPI__L_SCALE_OF(tensor)].batch_stride;
    }
    return matrix;
}

/* What the product of dA or dB writes: that, or where the items are that are added up. */
static gemmepi_matrix gpi__gradient_matrix(const gpi__layer_task *task, int tensor) {
    gemmepi_matrix matrix = gpi__layer_matrix(task, tensor);
    int added = gpi__added_of(task, tensor);
    if (added < 0)
        return matrix;
    matrix.dtype = (gemmepi_dtype)task->added[added].from.dtype;
    matrix.ld = task->added[added].from.ld;
    matrix.batch_stride = task->added[added].from.batch_stride;
    return matrix;
}

static gemmepi_vector gpi__layer_vector(const gpi__layer_task *task, int tensor) {
    gemmepi_vector vector;
    memset(&vector, 0, sizeof vector);
    vector.dtype = (gemmepi_dtype)task->views[tensor].dtype;
    vector.batch_stride = task->views[tensor].batch_stride;
    return vector;
}

/* A line's length rounded up so that each begins at a multiple of 16 bytes. */
static int64_t gpi__padded(int64_t length) {
    return gpi__divide_up(length, GPI__RUN) * GPI__RUN;
}

/* G as it lies in workspace: items follow one another row by row, or, where dA is a sum over them, column by column. */
static gemmepi_matrix gpi__g_matrix(const gpi__layer_task *task) {
    int side_by_side = task->shares_a && task->m != 0;
    int64_t ld = gpi__padded(side_by_side ? gpi__times(task->batch, task->n) : task->n);
    gemmepi_matrix g = gpi__dense_matrix((gemmepi_dtype)task->g_dtype, task->m, ld);
    if (side_by_side)
        g.batch_stride = task->n;
    if (task->batch <= 1)
        g.batch_stride = 0;
    return g;
}

#endif
