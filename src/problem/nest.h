/* Axes of several tensors in the best order, as few as their strides allow; and the loops of one launch of an element-wise task. */
#ifndef GEMMEPI_PROBLEM_NEST_H
#define GEMMEPI_PROBLEM_NEST_H

#include "elementwise.h"

/* Axes from the innermost on, of so many tensors, wherever they are kept. */
typedef struct gpi__tensor_axes {
    int count, rank;
    uint64_t used,
        first; /* bits of tensors: which there are, and which of them decide first about the order */
    int64_t *extent;
    int *summed;
    int64_t (*stride)[GPI__MAX_RANK]; /* elements */
    int64_t *offset;                  /* bytes to the first element */
    const int *dtype;
} gpi__tensor_axes;

static void gpi__swap_axes(gpi__tensor_axes *axes, int p, int q) {
    int64_t extent = axes->extent[p], stride;
    int summed = axes->summed[p], t;
    axes->extent[p] = axes->extent[q];
    axes->extent[q] = extent;
    axes->summed[p] = axes->summed[q];
    axes->summed[q] = summed;
    for (t = 0; t < axes->count; t++) {
        stride = axes->stride[t][p];
        axes->stride[t][p] = axes->stride[t][q];
        axes->stride[t][q] = stride;
    }
}

/* The n-th tensor that decides about the order, n below twice their count; -1: there is none. */
static int gpi__deciding_tensor(const gpi__tensor_axes *axes, int n) {
    int t = n % axes->count, decides_first = (int)(axes->first >> t & 1);
    return (axes->used >> t & 1) && decides_first == (n < axes->count) ? t : -1;
}

/* Whether an axis is to be inside of another. */
static int gpi__goes_inside(const gpi__tensor_axes *axes, int axis, int other) {
    int n;
    for (n = 0; n < 2 * axes->count; n++) {
        int t = gpi__deciding_tensor(axes, n);
        int64_t p = t < 0 ? 0 : axes->stride[t][axis], q = t < 0 ? 0 : axes->stride[t][other];
        p = p < 0 ? -p : p;
        q = q < 0 ? -q : q;
        if (p && q && p != q)
            return p < q;
    }
    return 0;
}

/* An axis along which the first tensor to decide runs backwards is turned around for all of them. */
static void gpi__turn_axis(gpi__tensor_axes *axes, int axis) {
    int64_t decided = 0;
    int n, t;
    for (n = 0; n < 2 * axes->count && !decided; n++) {
        t = gpi__deciding_tensor(axes, n);
        decided = t < 0 ? 0 : axes->stride[t][axis];
    }
    for (t = 0; t < axes->count && decided < 0; t++) {
        int64_t size = (int64_t)gpi__dtype((gemmepi_dtype)axes->dtype[t])->size;
        axes->offset[t] += (axes->extent[axis] - 1) * axes->stride[t][axis] * size;
        axes->stride[t][axis] = -axes->stride[t][axis];
    }
}

/* By stride, without those of extent 1. No extent is 0 but of what is summed. */
static void gpi__sort_axes(gpi__tensor_axes *axes) {
    int d, e, rank = 0;
    for (d = 0; d < axes->rank; d++)
        if (axes->extent[d] != 1)
            gpi__swap_axes(axes, rank++, d);
    axes->rank = rank;
    for (d = 0; d < rank; d++)
        gpi__turn_axis(axes, d);
    for (d = 1; d < rank; d++)
        for (e = d; e > 0 && gpi__goes_inside(axes, e, e - 1); e--)
            gpi__swap_axes(axes, e, e - 1);
}

static int gpi__axes_merge(const gpi__tensor_axes *axes, int inner, int outer) {
    int t;
    for (t = 0; t < axes->count; t++)
        if (axes->stride[t][outer] != axes->stride[t][inner] * axes->extent[inner])
            return 0;
    return axes->summed[inner] == axes->summed[outer];
}

/* From axis `first` on those of extent 1 go, and two become one where the outer runs on where the inner ends. */
static void gpi__merge_axes(gpi__tensor_axes *axes, int first) {
    int d, rank = first;
    for (d = first; d < axes->rank; d++) {
        if (axes->extent[d] == 1)
            continue;
        if (rank > first && gpi__axes_merge(axes, rank - 1, d))
            axes->extent[rank - 1] *= axes->extent[d];
        else if (rank++ != d)
            gpi__swap_axes(axes, rank - 1, d);
    }
    axes->rank = rank;
}

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
            used |= gpi__inputs_of_node(row->made[t - GPI__OUT_Y]) & task->used;
    return used;
}

/* Outputs decide first, but those of sums, of which there are few elements, last. */
static gpi__tensor_axes gpi__axes_of_nest(gpi__nest *nest, int is_sum) {
    gpi__tensor_axes axes;
    axes.count = GPI__TENSORS;
    axes.rank = nest->rank;
    axes.used = nest->used;
    axes.first = is_sum ? GPI__INPUTS : GPI__OUTPUTS;
    axes.extent = nest->extent;
    axes.summed = nest->summed;
    axes.stride = nest->stride;
    axes.offset = nest->offset;
    axes.dtype = nest->dtype;
    return axes;
}

/* At least one axis is left. No extent that is kept is 0. */
static void gpi__simplify_nest(gpi__nest *nest, int is_sum) {
    gpi__tensor_axes axes = gpi__axes_of_nest(nest, is_sum);
    int t;
    gpi__sort_axes(&axes);
    gpi__merge_axes(&axes, 0);
    nest->rank = axes.rank ? axes.rank : 1;
    if (axes.rank)
        return;
    nest->extent[0] = 1;
    nest->summed[0] = is_sum;
    for (t = 0; t < GPI__TENSORS; t++)
        nest->stride[t][0] = 0;
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
