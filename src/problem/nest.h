/* The loops of one launch: the axes of an element-wise task in the best order, as few as its strides allow. */
#ifndef GEMMEPI_PROBLEM_NEST_H
#define GEMMEPI_PROBLEM_NEST_H

#include "elementwise.h"

/* Axes from the innermost on. Those of a sum are kept or summed. */
typedef struct gemmepi__nest {
    uint32_t used; /* bit t: tensor t is read or written */
    int rank;
    int64_t extent[GEMMEPI__MAX_RANK];
    int summed[GEMMEPI__MAX_RANK]; /* 1: the axis is added up */
    int dtype[GEMMEPI__TENSORS];
    int pointer[GEMMEPI__TENSORS];                       /* the tensor whose pointer it goes by */
    int64_t offset[GEMMEPI__TENSORS];                    /* bytes to the first element */
    int64_t stride[GEMMEPI__TENSORS][GEMMEPI__MAX_RANK]; /* elements */
} gemmepi__nest;

static int gemmepi__nest_has(const gemmepi__nest *nest, int tensor) {
    return (int)(nest->used >> tensor & 1);
}

/* The tensors of some of the outputs: they and what they are made of. */
static uint32_t gemmepi__tensors_of(const gemmepi__task *task, uint32_t outputs) {
    const gemmepi__operation_row *row = gemmepi__operation(task->operation);
    uint32_t used = outputs;
    int t;
    for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS; t++)
        if (outputs >> t & 1)
            used |= row->reads[t - GEMMEPI__OUT_Y] & task->used;
    return used;
}

static void gemmepi__swap_axes(gemmepi__nest *nest, int p, int q) {
    int64_t extent = nest->extent[p], stride;
    int summed = nest->summed[p], t;
    nest->extent[p] = nest->extent[q];
    nest->extent[q] = extent;
    nest->summed[p] = nest->summed[q];
    nest->summed[q] = summed;
    for (t = 0; t < GEMMEPI__TENSORS; t++) {
        stride = nest->stride[t][p];
        nest->stride[t][p] = nest->stride[t][q];
        nest->stride[t][q] = stride;
    }
}

/* Outputs go before inputs, but those of sums, of which there are few elements, after them. */
static int gemmepi__goes_before(const gemmepi__nest *nest, int is_sum, int axis, int other) {
    int i;
    for (i = 0; i < GEMMEPI__TENSORS; i++) {
        int t = is_sum ? i : (i + GEMMEPI__OUT_Y) % GEMMEPI__TENSORS;
        int64_t p = nest->stride[t][axis], q = nest->stride[t][other];
        if (gemmepi__nest_has(nest, t) && p && q && p != q)
            return p < q;
    }
    return 0;
}

/* An axis along which the tensor that decides runs backwards is turned around for all of them. */
static void gemmepi__turn_axis(gemmepi__nest *nest, int is_sum, int axis) {
    int i, t;
    for (i = 0; i < GEMMEPI__TENSORS; i++) {
        t = is_sum ? i : (i + GEMMEPI__OUT_Y) % GEMMEPI__TENSORS;
        if (gemmepi__nest_has(nest, t) && nest->stride[t][axis] > 0)
            return;
        if (gemmepi__nest_has(nest, t) && nest->stride[t][axis] < 0)
            break;
    }
    for (t = 0; t < GEMMEPI__TENSORS; t++) {
        int64_t size = (int64_t)gemmepi__dtype((gemmepi_dtype)nest->dtype[t])->size;
        nest->offset[t] += (nest->extent[axis] - 1) * nest->stride[t][axis] * size;
        nest->stride[t][axis] = -nest->stride[t][axis];
    }
}

static int gemmepi__axes_merge(const gemmepi__nest *nest, int inner, int outer) {
    int t;
    for (t = 0; t < GEMMEPI__TENSORS; t++)
        if (nest->stride[t][outer] != nest->stride[t][inner] * nest->extent[inner])
            return 0;
    return nest->summed[inner] == nest->summed[outer];
}

/* Axes of extent 1 go; the others are sorted by stride, and merged where one runs on where another ends. At least one is
   left. No extent that is kept is 0. */
static void gemmepi__simplify_nest(gemmepi__nest *nest, int is_sum) {
    int d, e, t, rank = 0;
    for (d = 0; d < nest->rank; d++)
        if (nest->extent[d] != 1)
            gemmepi__swap_axes(nest, rank++, d);
    nest->rank = rank;
    for (d = 0; d < rank; d++)
        gemmepi__turn_axis(nest, is_sum, d);
    for (d = 1; d < rank; d++)
        for (e = d; e > 0 && gemmepi__goes_before(nest, is_sum, e, e - 1); e--)
            gemmepi__swap_axes(nest, e, e - 1);
    for (d = 0, e = 1; e < rank; e++)
        if (gemmepi__axes_merge(nest, d, e)) {
            nest->extent[d] *= nest->extent[e];
        } else if (++d != e) {
            gemmepi__swap_axes(nest, d, e);
        }
    nest->rank = rank ? d + 1 : 1;
    if (rank == 0) {
        nest->extent[0] = 1;
        nest->summed[0] = is_sum;
        for (t = 0; t < GEMMEPI__TENSORS; t++)
            nest->stride[t][0] = 0;
    }
}

/* The loops that make `outputs`: any that are no sums, or one sum. */
static void gemmepi__take_nest(const gemmepi__task *task, uint32_t outputs, gemmepi__nest *nest) {
    int d, t, is_sum = 0;
    memset(nest, 0, sizeof *nest);
    nest->used = gemmepi__tensors_of(task, outputs);
    nest->rank = task->rank;
    for (t = 0; t < GEMMEPI__TENSORS; t++) {
        const gemmepi__operand *operand = &task->operands[t];
        if (!gemmepi__nest_has(nest, t))
            continue;
        nest->dtype[t] = operand->dtype;
        nest->pointer[t] = operand->pointer;
        nest->offset[t] = operand->offset;
        if (t >= GEMMEPI__OUT_Y && operand->is_sum)
            is_sum = 1;
        for (d = 0; d < task->rank; d++) {
            nest->stride[t][task->rank - 1 - d] = operand->stride[d];
            if (t >= GEMMEPI__OUT_Y && (operand->summed >> d & 1))
                nest->summed[task->rank - 1 - d] = 1;
        }
    }
    for (d = 0; d < task->rank; d++)
        nest->extent[task->rank - 1 - d] = task->shape[d];
    gemmepi__simplify_nest(nest, is_sum);
}

/* Of all kept axes, or of all summed ones. */
static int64_t gemmepi__nest_count(const gemmepi__nest *nest, int summed) {
    int64_t count = 1;
    int d;
    for (d = 0; d < nest->rank; d++)
        if (nest->summed[d] == summed)
            count *= nest->extent[d];
    return count;
}

#endif
