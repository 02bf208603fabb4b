/* The loops of one launch: the axes of an element-wise task in the best order, as few as its strides allow. */
#ifndef GEMMEPI_PROBLEM_NEST_H
#define GEMMEPI_PROBLEM_NEST_H

#include "elementwise.h"

/* Axes from the innermost on. Those of a sum are kept or summed. */
typedef struct gpi__nest {
    uint32_t used; /* bit t: tensor t is read or written */
    int rank;
    int64_t extent[GPI__MAX_RANK];
    int summed[GPI__MAX_RANK]; /* 1: the axis is added up */
    int dtype[GPI__TENSORS];
    int pointer[GPI__TENSORS];                   /* the tensor whose pointer it goes by */
    int64_t offset[GPI__TENSORS];                /* bytes to the first element */
    int64_t stride[GPI__TENSORS][GPI__MAX_RANK]; /* elements */
} gpi__nest;

static int gpi__nest_has(const gpi__nest *nest, int tensor) {
    return (int)(nest->used >> tensor & 1);
}

/* The tensors of some of the outputs: they and what they are made of. */
static uint32_t gpi__tensors_of(const gpi__task *task, uint32_t outputs) {
    const gpi__operation_row *row = gpi__operation(task->operation);
    uint32_t used = outputs;
    int t;
    for (t = GPI__OUT_Y; t < GPI__TENSORS; t++)
        if (outputs >> t & 1)
            used |= row->reads[t - GPI__OUT_Y] & task->used;
    return used;
}

static void gpi__swap_axes(gpi__nest *nest, int p, int q) {
    int64_t extent = nest->extent[p], stride;
    int summed = nest->summed[p], t;
    nest->extent[p] = nest->extent[q];
    nest->extent[q] = extent;
    nest->summed[p] = nest->summed[q];
    nest->summed[q] = summed;
    for (t = 0; t < GPI__TENSORS; t++) {
        stride = nest->stride[t][p];
        nest->stride[t][p] = nest->stride[t][q];
        nest->stride[t][q] = stride;
    }
}

/* Outputs go before inputs, but those of sums, of which there are few elements, after them. */
static int gpi__goes_before(const gpi__nest *nest, int is_sum, int axis, int other) {
    int i;
    for (i = 0; i < GPI__TENSORS; i++) {
        int t = is_sum ? i : (i + GPI__OUT_Y) % GPI__TENSORS;
        int64_t p = nest->stride[t][axis], q = nest->stride[t][other];
        if (gpi__nest_has(nest, t) && p && q && p != q)
            return p < q;
    }
    return 0;
}

/* An axis along which the tensor that decides runs backwards is turned around for all of them. */
static void gpi__turn_axis(gpi__nest *nest, int is_sum, int axis) {
    int i, t;
    for (i = 0; i < GPI__TENSORS; i++) {
        t = is_sum ? i : (i + GPI__OUT_Y) % GPI__TENSORS;
        if (gpi__nest_has(nest, t) && nest->stride[t][axis] > 0)
            return;
        if (gpi__nest_has(nest, t) && nest->stride[t][axis] < 0)
            break;
    }
    for (t = 0; t < GPI__TENSORS; t++) {
        int64_t size = (int64_t)gpi__dtype((gemmepi_dtype)nest->dtype[t])->size;
        nest->offset[t] += (nest->extent[axis] - 1) * nest->stride[t][axis] * size;
        nest->stride[t][axis] = -nest->stride[t][axis];
    }
}

static int gpi__axes_merge(const gpi__nest *nest, int inner, int outer) {
    int t;
    for (t = 0; t < GPI__TENSORS; t++)
        if (nest->stride[t][outer] != nest->stride[t][inner] * nest->extent[inner])
            return 0;
    return nest->summed[inner] == nest->summed[outer];
}

/* Axes of extent 1 go; the others are sorted by stride, and merged where one runs on where another ends. At least one is
   left. No extent that is kept is 0. */
static void gpi__simplify_nest(gpi__nest *nest, int is_sum) {
    int d, e, t, rank = 0;
    for (d = 0; d < nest->rank; d++)
        if (nest->extent[d] != 1)
            gpi__swap_axes(nest, rank++, d);
    nest->rank = rank;
    for (d = 0; d < rank; d++)
        gpi__turn_axis(nest, is_sum, d);
    for (d = 1; d < rank; d++)
        for (e = d; e > 0 && gpi__goes_before(nest, is_sum, e, e - 1); e--)
            gpi__swap_axes(nest, e, e - 1);
    for (d = 0, e = 1; e < rank; e++)
        if (gpi__axes_merge(nest, d, e)) {
            nest->extent[d] *= nest->extent[e];
        } else if (++d != e) {
            gpi__swap_axes(nest, d, e);
        }
    nest->rank = rank ? d + 1 : 1;
    if (rank == 0) {
        nest->extent[0] = 1;
        nest->summed[0] = is_sum;
        for (t = 0; t < GPI__TENSORS; t++)
            nest->stride[t][0] = 0;
    }
}

/* The loops that make `outputs`: any that are no sums, or one sum. */
static void gpi__convert_nest(const gpi__task *task, uint32_t outputs, gpi__nest *nest) {
    int d, t, is_sum = 0;
    memset(nest, 0, sizeof *nest);
    nest->used = gpi__tensors_of(task, outputs);
    nest->rank = task->rank;
    for (t = 0; t < GPI__TENSORS; t++) {
        const gpi__operand *operand = &task->operands[t];
        if (!gpi__nest_has(nest, t))
            continue;
        nest->dtype[t] = operand->dtype;
        nest->pointer[t] = operand->pointer;
        nest->offset[t] = operand->offset;
        if (t >= GPI__OUT_Y && operand->is_sum)
            is_sum = 1;
        for (d = 0; d < task->rank; d++) {
            nest->stride[t][task->rank - 1 - d] = operand->stride[d];
            if (t >= GPI__OUT_Y && (operand->summed >> d & 1))
                nest->summed[task->rank - 1 - d] = 1;
        }
    }
    for (d = 0; d < task->rank; d++)
        nest->extent[task->rank - 1 - d] = task->shape[d];
    gpi__simplify_nest(nest, is_sum);
}

/* Of all kept axes, or of all summed ones. */
static int64_t gpi__nest_count(const gpi__nest *nest, int summed) {
    int64_t count = 1;
    int d;
    for (d = 0; d < nest->rank; d++)
        if (nest->summed[d] == summed)
            count *= nest->extent[d];
    return count;
}

#endif
