/* The tensors of an element-wise operation: each by itself, broadcast to the operation's shape, and their types. */
#ifndef GEMMEPI_PROBLEM_TENSOR_H
#define GEMMEPI_PROBLEM_TENSOR_H

#include "task.h"

/* The strides, those of a dense tensor filled in. Of one without an element they have no meaning and are 0: so no product of them
   overflows, and equal tasks have equal keys. */
static void gpi__convert_strides(const gemmepi_tensor *tensor, int64_t stride[GPI__MAX_RANK]) {
    int64_t dense = 1;
    int d;
    for (d = tensor->rank - 1; d >= 0; d--) {
        stride[d] = tensor->stride ? tensor->stride[d] : dense;
        dense *= tensor->shape[d];
    }
    for (d = 0; d < tensor->rank && dense == 0; d++)
        stride[d] = 0;
}

/* Whether |count| * |stride| + rest stays within 2^56, and what it is. */
static int gpi__reach(int64_t count, int64_t stride, int64_t *rest) {
    if (stride < -GPI__MAX_ELEMENTS || stride > GPI__MAX_ELEMENTS)
        return 0;
    *rest = gpi__offset(count, stride < 0 ? -stride : stride, *rest);
    return *rest >= 0;
}

static int gpi__type_of_tensor(const gemmepi_tensor *tensor) {
    return tensor->dtype ? (int)tensor->dtype : (int)GEMMEPI_F32;
}

/* The elements that lie before and after the first one, if there is any. */
static gemmepi_status gpi__check_range(const gemmepi_tensor *tensor, const char *name,
                                       const int64_t *stride) {
    int64_t before = 0, after = 0, bits = gpi__bits_of(gpi__type_of_tensor(tensor));
    int d;
    for (d = 0; d < tensor->rank; d++)
        if (tensor->shape[d] == 0)
            return GEMMEPI_OK;
    for (d = 0; d < tensor->rank; d++)
        GPI__INVALID_IF(tensor->shape[d] > 1 &&
                            !gpi__reach(tensor->shape[d] - 1, stride[d], stride[d] < 0 ? &before : &after),
                        "%s reaches over more than 2^56 elements: axis %d has %lld of stride %lld", name, d,
                        (long long)tensor->shape[d], (long long)stride[d]);
    if (!tensor->bytes)
        return GEMMEPI_OK;
    before = gpi__bytes_for_bits(before * bits);
    after = gpi__bytes_for_bits((after + 1) * bits);
    GPI__INVALID_IF(tensor->offset > tensor->bytes || (uint64_t)before > tensor->offset ||
                        (uint64_t)after > tensor->bytes - tensor->offset,
                    "%s.bytes is %llu, but its elements reach from byte %lld to byte %lld of the buffer "
                    "(%s.offset is %llu)",
                    name, (gpi__ull)tensor->bytes, (long long)tensor->offset - before,
                    (long long)tensor->offset + after, name, (gpi__ull)tensor->offset);
    return GEMMEPI_OK;
}

/* All but whether its dtype, which is known, is accepted. */
static gemmepi_status gpi__check_layout(const gemmepi_tensor *tensor, const char *name) {
    int64_t stride[GPI__MAX_RANK], count = 1;
    int dtype = gpi__type_of_tensor(tensor), d;
    GPI__INVALID_IF(tensor->rank < 0 || tensor->rank > GPI__MAX_RANK, "%s.rank is %d; accepted are 0 to 8%s",
                    name, tensor->rank, tensor->rank > 64 || tensor->rank < -64 ? GPI__UNINITIALISED : "");
    GPI__INVALID_IF(tensor->rank && !tensor->shape, "%s.shape is NULL, but its rank is %d", name,
                    tensor->rank);
    GPI__INVALID_IF(tensor->offset % gemmepi_dtype_size((gemmepi_dtype)dtype),
                    "%s.offset is %llu; it must be a multiple of an element's size, %d bytes", name,
                    (gpi__ull)tensor->offset, (int)gemmepi_dtype_size((gemmepi_dtype)dtype));
    GPI__INVALID_IF(tensor->offset > (size_t)GPI__MAX_ELEMENTS, "%s.offset is %llu; accepted are 0 to 2^56",
                    name, (gpi__ull)tensor->offset);
    for (d = 0; d < tensor->rank; d++)
        GPI__INVALID_IF(tensor->shape[d] < 0, "%s.shape[%d] is %lld; it may not be negative", name, d,
                        (long long)tensor->shape[d]);
    for (d = 0; d < tensor->rank; d++)
        GPI__INVALID_IF(tensor->shape[d] && count && (count = gpi__offset(count, tensor->shape[d], 0)) < 0,
                        "%s has more than 2^56 elements", name);
    gpi__convert_strides(tensor, stride);
    return gpi__check_range(tensor, name, stride);
}

static gemmepi_status gpi__check_tensor(const gemmepi_tensor *tensor, const char *name) {
    int dtype = gpi__type_of_tensor(tensor);
    GPI__UNSUPPORTED_IF(gpi__is_left_out(dtype), "%s.dtype is " GPI__WITHOUT_FP8, name, gpi__type(dtype));
    if (dtype >= GEMMEPI_F32 && dtype <= GEMMEPI_E5M2)
        return gpi__check_layout(tensor, name);
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "%s.dtype is %d (%s); accepted are F32, F64, F16 and BF16, for casts also E4M3 and E5M2%s", name,
        dtype, gpi__dtype_name((gemmepi_dtype)dtype), gpi__where_it_goes(dtype));
}

/* >>the shape of the operation */

/* "[2, 3]" */
static void gpi__append_shape(gpi__text *text, int rank, const int64_t *shape) {
    int d;
    gpi__append(text, "[");
    for (d = 0; d < rank; d++)
        gpi__append(text, "%s%lld", d ? ", " : "", (long long)shape[d]);
    gpi__append(text, "]");
}

static gemmepi_status gpi__refuse_shape(const gpi__task *task, const gemmepi_tensor *tensor, int which,
                                        const char *rule) {
    char mine[200], its[200];
    gpi__text given = gpi__text_in(mine, sizeof mine), wanted = gpi__text_in(its, sizeof its);
    gpi__append_shape(&given, tensor->rank, tensor->shape);
    gpi__append_shape(&wanted, task->rank, task->shape);
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s has the shape %s, the operation %s: %s",
                     gpi__tensor_names[which], mine, its, rule);
}

/* y_transposed, whose strides go by y's axes. */
static gemmepi_status gpi__convert_transposed(gpi__task *task, const gemmepi_tensor *tensor) {
    gpi__operand *operand = &task->operands[GPI__OUT_Y_TRANSPOSED];
    int64_t stride[GPI__MAX_RANK];
    int last = task->rank - 1, d;
    GPI__INVALID_IF(task->rank < 2, "y_transposed is given, but y has %d axes; it needs two", task->rank);
    for (d = 0; d < task->rank; d++)
        if (tensor->rank != task->rank ||
            tensor->shape[d < last - 1 ? d : 2 * last - 1 - d] != task->shape[d])
            return gpi__refuse_shape(task, tensor, GPI__OUT_Y_TRANSPOSED,
                                     "it has the last two axes exchanged, and the others as they are");
    gpi__convert_strides(tensor, stride);
    for (d = 0; d < task->rank; d++)
        if (task->shape[d] != 1)
            operand->stride[d] = stride[d < last - 1 ? d : 2 * last - 1 - d];
    return GEMMEPI_OK;
}

/* A tensor's strides along the axes of the operation, on which it repeats where its extent is 1 or the axis is missing.
   halved: the axis on which it has twice the extent, or -1. */
static gemmepi_status gpi__broadcast(gpi__task *task, const gemmepi_tensor *tensor, int which, int halved) {
    gpi__operand *operand = &task->operands[which];
    int64_t stride[GPI__MAX_RANK];
    int is_gradient = which >= GPI__OUT_DA, may_repeat = which < GPI__IN_DY || is_gradient, d;
    int first = task->rank - tensor->rank;
    if (first < 0)
        return gpi__refuse_shape(task, tensor, which, "it may not have more axes");
    gpi__convert_strides(tensor, stride);
    for (d = 0; d < task->rank; d++) {
        int64_t extent = d < first ? 1 : tensor->shape[d - first];
        int64_t wanted = d == halved ? 2 * task->shape[d] : task->shape[d];
        int repeats = extent == 1 && wanted != 1 && d != halved;
        if (extent != wanted && !(repeats && may_repeat))
            return gpi__refuse_shape(
                task, tensor, which,
                d == halved
                    ? "desc.axis, which is split, has twice the operation's extent (-1 is the last axis)"
                : may_repeat ? "each axis, from the last on, has the same extent or 1"
                             : "they must be the same");
        if (d < first || repeats) {
            if (is_gradient && wanted != 1) {
                operand->is_sum = 1;
                operand->summed |= 1 << d;
            }
        } else if (wanted != 1) {
            operand->stride[d] = stride[d - first];
        }
    }
    if (may_repeat || first == 0)
        return GEMMEPI_OK;
    return gpi__refuse_shape(task, tensor, which, "they must have the same number of axes");
}

static gemmepi_status gpi__check_axis(const char *name, int axis, int rank, int *result) {
    *result = axis < 0 ? axis + rank : axis;
    GPI__INVALID_IF(*result < 0 || *result >= rank, "%s is %d; a has %d axes, so accepted are %d to %d", name,
                    axis, rank, -rank, rank - 1);
    return GEMMEPI_OK;
}

/* a (which A) or da (DA) holds value and gate: two operands of one pointer. The operand has been broadcast. */
static void gpi__halve(gpi__task *task, int which, int axis, int gate_first) {
    gpi__operand *value = &task->operands[which], *gate = &task->operands[which + 1];
    int64_t size = (int64_t)gpi__dtype((gemmepi_dtype)value->dtype)->size;
    int64_t second = task->shape[axis] * value->stride[axis] * size;
    if (task->shape[axis] == 1)
        value->stride[axis] = 0; /* as of every axis of extent 1 */
    *gate = *value;
    if (gate_first)
        value->offset += second;
    else
        gate->offset += second;
    task->used |= GPI__BIT(which + 1);
}

/* >>dtypes */

static gemmepi_status gpi__check_dtypes(const gpi__task *task) {
    int first = task->operands[gpi__task_has(task, GPI__IN_A) ? GPI__IN_A : GPI__IN_DY].dtype, t;
    const char *of = gpi__task_has(task, GPI__IN_A) ? "a" : "dy";
    if (task->operation == GEMMEPI_OP_CAST)
        return GEMMEPI_OK;
    for (t = 0; t < GPI__TENSORS; t++) {
        int dtype = task->operands[t].dtype;
        if (!dtype)
            continue;
        GPI__INVALID_IF(gpi__is_fp8(dtype), "%s has the dtype %s, which only casts accept",
                        gpi__tensor_names[t], gpi__type(dtype));
        GPI__INVALID_IF(dtype != first && !(task->operands[t].is_sum && dtype == GEMMEPI_F32 &&
                                            gemmepi_dtype_size((gemmepi_dtype)first) == 2),
                        "%s has the dtype %s, %s has %s; they must be the same, only sums of 16-bit tensors "
                        "may be F32",
                        gpi__tensor_names[t], gpi__type(dtype), of, gpi__type(first));
    }
    return GEMMEPI_OK;
}

#endif
