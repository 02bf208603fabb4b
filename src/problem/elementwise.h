/* The desc of an element-wise operation becomes a task: every rule checked. */
#ifndef GEMMEPI_PROBLEM_ELEMENTWISE_H
#define GEMMEPI_PROBLEM_ELEMENTWISE_H

#include "overlap.h"
#include "rules.h"
#include "tensor.h"

static gemmepi_status gpi__check_presence_of_tensors(const gpi__operation_row *row, uint32_t given) {
    uint32_t outputs = given & GPI__OUTPUTS, missing = row->needs & ~given, surplus;
    int t;
    if (row->operation == GEMMEPI_OP_GATED_BACKWARD && !(given & GPI__BIT_B))
        missing |= GPI__BIT_DA & ~given;
    if (row->operation == GEMMEPI_OP_LERP_BACKWARD && (given & GPI__BIT_DW))
        missing |= (GPI__BIT_A | GPI__BIT_B | GPI__BIT_W) & ~given;
    surplus = given & ~(row->needs | row->may);
    if (row->operation == GEMMEPI_OP_GATED_BACKWARD && !(given & GPI__BIT_B))
        surplus |= given & GPI__BIT_DB;
    if (row->operation == GEMMEPI_OP_LERP_BACKWARD && !(given & GPI__BIT_DW))
        surplus |= given & (GPI__BIT_A | GPI__BIT_B);
    for (t = 0; t < GPI__TENSORS; t++) {
        GPI__INVALID_IF(missing >> t & 1, "%s is NULL; the operation %s needs it", gpi__tensor_names[t],
                        row->name);
        GPI__INVALID_IF(surplus >> t & 1, "%s is given, but the operation %s has no use for it%s",
                        gpi__tensor_names[t], row->name,
                        !(row->may >> t & 1)                          ? ""
                        : row->operation == GEMMEPI_OP_GATED_BACKWARD ? " without b"
                                                                      : " without dw");
    }
    GPI__INVALID_IF(!outputs, "the operation %s has no output: da, db%s are NULL", row->name,
                    row->operation == GEMMEPI_OP_LERP_BACKWARD ? " and dw" : "");
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_flags(const gemmepi_elementwise_desc *desc, const gpi__operation_row *row,
                                       int has_halves) {
    gemmepi_status status = gpi__check_activation("activation", desc->activation);
    if (!status)
        status = gpi__check_flags_of(GPI__OF_GATE, desc->activation, GEMMEPI_ACTIVATION_MASK);
    if (!status && !row->has_activation && desc->activation)
        status = gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                           "desc.activation is 0x%llx; the operation %s has none: leave it 0",
                           (gpi__ull)desc->activation, row->name);
    if (!status && !has_halves && desc->activation & GEMMEPI_GATE_FIRST)
        status = gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                           "desc.activation has GATE_FIRST; it goes with gates whose b is NULL");
    if (!status)
        status = gpi__check_flags_of(GPI__OF_ELEMENTWISE, desc->flags, 0);
    if (status)
        return status;
    GPI__INVALID_IF(desc->flags & ~row->flags, "desc.flags has %s; the operation %s has no use for it",
                    gpi__flag(desc->flags & ~row->flags)->name, row->name);
    GPI__INVALID_IF(!has_halves && row->operation != GEMMEPI_OP_BIAS_GRAD && desc->axis,
                    "desc.axis is %d; %s", desc->axis,
                    row->has_halves ? "with b nothing is split: leave it 0"
                                    : "the operation has none: leave it 0");
    status = gpi__check_alignment(desc->alignment);
    if (status)
        return status;
    GPI__INVALID_IF(
        (unsigned)desc->scale_mode > GEMMEPI_SCALE_BLOCK_128,
        "desc.scale_mode is %d, which is no gemmepi_scale_mode: accepted are 0 (NONE) to 4 (BLOCK_128)%s",
        (int)desc->scale_mode, GPI__UNINITIALISED);
    GPI__UNSUPPORTED_IF(
        !GPI__HAS_FP8 && desc->scale_mode > GEMMEPI_SCALE_TENSOR,
        "desc.scale_mode is %s, but scales and amax of rows, vectors and blocks were left out of "
        "this program with fp8 (GEMMEPI_NO_FP8)",
        gpi__scale_mode_name(desc->scale_mode));
    GPI__INVALID_IF(
        desc->scale_mode && !(desc->flags & (GEMMEPI_CAST_SCALE | GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX)),
        "desc.scale_mode is %s (%d), but %s", gpi__scale_mode_name(desc->scale_mode), (int)desc->scale_mode,
        row->flags & GEMMEPI_CAST_SCALE ? "desc.flags has none of CAST_SCALE, CAST_Y_SCALE and CAST_AMAX"
                                        : "only CAST has scales");
    GPI__INVALID_IF((desc->flags & GEMMEPI_CAST_SCALE) && (desc->flags & GEMMEPI_CAST_Y_SCALE),
                    "desc.flags has CAST_SCALE and CAST_Y_SCALE; one scale is read, or one written");
    GPI__INVALID_IF(
        (desc->flags & GEMMEPI_CAST_K_IS_ROWS) && desc->scale_mode < GEMMEPI_SCALE_OUTER,
        "desc.flags has CAST_K_IS_ROWS, which goes with the modes OUTER, VECTOR_128 and BLOCK_128");
    return gpi__check_parameter(desc->activation, desc->has_parameter, desc->activation_parameter);
}

/* What y_transposed goes with. */
static gemmepi_status gpi__check_transposed(const gpi__task *task, const gemmepi_elementwise_desc *desc) {
    int y = task->operands[GPI__OUT_Y].dtype, turned = task->operands[GPI__OUT_Y_TRANSPOSED].dtype;
    GPI__INVALID_IF(!gpi__is_fp8(y),
                    "y_transposed is given, but y has the dtype %s; accepted are E4M3 and E5M2",
                    gpi__type(y));
    GPI__INVALID_IF(turned != y, "y_transposed has the dtype %s, y has %s; they must be the same",
                    gpi__type(turned), gpi__type(y));
    GPI__INVALID_IF(desc->scale_mode == GEMMEPI_SCALE_OUTER,
                    "y_transposed is given, but desc.scale_mode is OUTER: a scale of its rows is one of "
                    "y's columns, so cast a twice; one cast accepts TENSOR, VECTOR_128 and BLOCK_128");
    GPI__INVALID_IF(desc->scale_mode > GEMMEPI_SCALE_OUTER && !(desc->flags & GEMMEPI_CAST_Y_SCALE),
                    "y_transposed is given with scales of vectors or blocks, but desc.flags has no "
                    "CAST_Y_SCALE: they are found, or one for all is given");
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_scaled(const gpi__task *task, const gemmepi_elementwise_desc *desc) {
    int y = task->operands[GPI__OUT_Y].dtype;
    GPI__INVALID_IF((desc->flags & GEMMEPI_CAST_Y_SCALE) && !gpi__is_fp8(y),
                    "desc.flags has CAST_Y_SCALE, but y has the dtype %s; accepted are E4M3 and E5M2",
                    gpi__type(y));
    if (gpi__task_has(task, GPI__OUT_Y_TRANSPOSED))
        return gpi__check_transposed(task, desc);
    GPI__INVALID_IF((desc->flags & GEMMEPI_CAST_K_IS_ROWS) && task->rank < 2,
                    "desc.flags has CAST_K_IS_ROWS, but y has %d axes; it needs two", task->rank);
    return GEMMEPI_OK;
}

static gpi__layout gpi__layout_of(const gpi__task *task, const gpi__operand *operand) {
    gpi__layout layout;
    int d;
    memset(&layout, 0, sizeof layout);
    layout.rank = task->rank;
    layout.size = (int64_t)gpi__dtype((gemmepi_dtype)operand->dtype)->size;
    for (d = 0; d < task->rank; d++) {
        int repeats = operand->stride[d] == 0 && task->shape[d] != 0;
        layout.shape[d] = (operand->summed >> d & 1) || repeats ? 1 : task->shape[d];
        layout.stride[d] = layout.shape[d] > 1 ? operand->stride[d] * layout.size : 0;
    }
    return layout;
}

static int gpi__operand_is_empty(const gpi__task *task, const gpi__operand *operand) {
    int d;
    for (d = 0; d < task->rank; d++)
        if (task->shape[d] == 0 && !(operand->summed >> d & 1))
            return 1;
    return 0;
}

/* No two elements of an output may be one. */
static gemmepi_status gpi__check_written(gpi__task *task, int which) {
    const gpi__operand *operand = &task->operands[which];
    gpi__layout layout = gpi__layout_of(task, operand);
    int d, repeats = GPI__APART;
    if (gpi__operand_is_empty(task, operand))
        return GEMMEPI_OK;
    task->is_empty = 0;
    for (d = 0; d < task->rank; d++)
        if (!(operand->summed >> d & 1) && task->shape[d] > 1 && operand->stride[d] == 0)
            repeats = GPI__SHARED;
    if (!repeats && operand->pointer != which) /* two halves of one tensor */
        repeats =
            gpi__layouts_share(&layout, &layout, operand->offset - task->operands[operand->pointer].offset);
    if (!repeats)
        repeats = gpi__layout_repeats(&layout);
    GPI__INVALID_IF(
        repeats, "%s is written, but its strides put several of its elements into the same place%s",
        gpi__tensor_names[operand->pointer],
        repeats == GPI__UNDECIDED ? ", or so close that telling would take too long: write a dense tensor"
                                  : "");
    return GEMMEPI_OK;
}

/* bias_grad: y runs along one axis of a, and is summed over the others. */
static gemmepi_status gpi__convert_bias_grad(gpi__task *task, const gemmepi_elementwise_desc *desc) {
    gpi__operand *y = &task->operands[GPI__OUT_Y];
    int64_t stride[GPI__MAX_RANK];
    int axis = 0, d;
    gemmepi_status status;
    GPI__INVALID_IF(desc->a->rank == 0, "a has no axis to keep; its rank must be 1 to 8");
    status = gpi__check_axis("axis", desc->axis, desc->a->rank, &axis);
    if (status)
        return status;
    if (desc->y->rank != 1 || desc->y->shape[0] != desc->a->shape[axis])
        return gpi__refuse_shape(task, desc->y, GPI__OUT_Y, "y has one axis, of the extent of the one kept");
    gpi__convert_strides(desc->y, stride);
    y->is_sum = 1;
    for (d = 0; d < task->rank; d++)
        if (d == axis)
            y->stride[d] = task->shape[d] == 1 ? 0 : stride[0];
        else
            y->summed |= 1 << d;
    return GEMMEPI_OK;
}

/* What tells garbage from a desc, before a pointer of it is followed. */
static gemmepi_status gpi__check_operation(const gemmepi_elementwise_desc *desc) {
    const char *other;
    GPI__INVALID_IF(!desc, "desc is NULL");
    other = desc->formula          ? "formula"
            : desc->operands       ? "operands"
            : desc->operand_count  ? "operand_count"
            : desc->formula_result ? "formula_result"
                                   : NULL;
    GPI__INVALID_IF(
        other && (desc->operation || !desc->formula),
        desc->operation
            ? "desc.%s is given, and desc.operation is %d (%s); a formula replaces the operation: "
              "leave one of them 0%s"
            : "desc.%s is given, but desc.formula is NULL (and desc.operation %d, %s)%s",
        other, (int)desc->operation,
        (size_t)desc->operation <= GPI__COUNT(gpi__operations) && (int)desc->operation > 0
            ? gpi__operation((int)desc->operation)->name
            : "none",
        GPI__UNINITIALISED);
    GPI__UNSUPPORTED_IF(!GPI__HAS_FORMULAS && desc->formula, GPI__NO_FORMULAS);
    if (desc->formula)
        return GEMMEPI_OK;
    GPI__INVALID_IF((int)desc->operation < 1 || (size_t)desc->operation > GPI__COUNT(gpi__operations),
                    "desc.operation is %d; accepted are 1 (ACTIVATION) to %d (CAST), and 0 with a formula%s",
                    (int)desc->operation, (int)GPI__COUNT(gpi__operations),
                    desc->operation ? GPI__UNINITIALISED : "");
    if (desc->has_parameter != 0 && desc->has_parameter != 1)
        return gpi__check_parameter(desc->activation, desc->has_parameter, desc->activation_parameter);
    return gpi__check_flags_of(GPI__OF_ELEMENTWISE, desc->flags, 0);
}

/* The desc's tensors, and the pointers of args, in the order of a task's. */
static void gpi__list_tensors(const gemmepi_elementwise_desc *desc,
                              const gemmepi_tensor *tensors[GPI__TENSORS]) {
#define GPI__TENSOR_OF_DESC(NAME, name) tensors[GPI__##NAME] = desc->name;
    GPI__TENSOR_ROWS(GPI__TENSOR_OF_DESC)
}

static void gpi__list_pointers_of(const gemmepi_elementwise_args *args, void *pointers[GPI__TENSORS]) {
#define GPI__TENSOR_OF_ARGS(NAME, name) args->name,
    const void *const all[GPI__TENSORS] = {GPI__TENSOR_ROWS(GPI__TENSOR_OF_ARGS)};
    memcpy(pointers, all, sizeof all);
}

/* What the desc says of the operation, once it is checked; the shape is that of the result. */
static void gpi__fill_task(const gemmepi_elementwise_desc *desc, size_t alignment, gpi__task *task) {
    const gemmepi_tensor *shaped = desc->operation == GEMMEPI_OP_BIAS_GRAD ? desc->a
                                   : desc->y                               ? desc->y
                                                                           : desc->dy;
    int axis;
    task->tag = -1;
    task->operation = (int32_t)desc->operation;
    task->activation = (int32_t)gpi__activation(desc->activation);
    task->parameter =
        desc->has_parameter ? desc->activation_parameter : gpi__default_parameter(desc->activation);
    task->flags = desc->flags;
    task->scale_mode = (int32_t)desc->scale_mode;
    if (!task->scale_mode && (desc->flags & GPI__CAST_FLAGS || desc->y_transposed))
        task->scale_mode = GEMMEPI_SCALE_TENSOR;
    task->alignment = (int32_t)(desc->alignment ? desc->alignment : alignment);
    task->used = task->given;
    task->is_empty = 1;
    task->rank = shaped->rank;
    for (axis = 0; axis < shaped->rank; axis++)
        task->shape[axis] = shaped->shape[axis];
}

/* The axis along which a, and da, have the result's columns twice. */
static gemmepi_status gpi__convert_halved_axis(const gpi__task *task, const gemmepi_elementwise_desc *desc,
                                               int *axis) {
    gemmepi_status status;
    if (desc->a->rank != task->rank)
        return gpi__refuse_shape(task, desc->a, GPI__IN_A, "a, which is split, has as many axes");
    GPI__INVALID_IF(task->rank == 0, "a has no axis to split; its rank must be 1 to 8");
    status = gpi__check_axis("split_dim (axis)", desc->axis, task->rank, axis);
    if (!status && desc->a->shape[*axis] % 2)
        status = gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                           "axis %d of a, which is split, has the extent %lld; it must be even", *axis,
                           (long long)desc->a->shape[*axis]);
    if (!status && desc->da && desc->da->rank != task->rank)
        status = gpi__refuse_shape(task, desc->da, GPI__OUT_DA, "da has as many axes as a");
    return status;
}

/* halved: the axis along which a and da are, or -1. */
static gemmepi_status gpi__convert_operand(gpi__task *task, const gemmepi_elementwise_desc *desc,
                                           const gemmepi_tensor *tensor, int t, int halved) {
    gpi__operand *operand = &task->operands[t];
    operand->dtype = gpi__type_of_tensor(tensor);
    operand->pointer = t;
    operand->offset = (int64_t)tensor->offset;
    if (task->operation == GEMMEPI_OP_BIAS_GRAD && t == GPI__OUT_Y)
        return gpi__convert_bias_grad(task, desc);
    if (t == GPI__OUT_Y_TRANSPOSED)
        return gpi__convert_transposed(task, tensor);
    return gpi__broadcast(task, tensor, t, t == GPI__IN_A || t == GPI__OUT_DA ? halved : -1);
}

/* desc -> task, or the sentence that says what is wrong with it. alignment is the pointers'. */
static gemmepi_status gpi__convert_task(const gemmepi_elementwise_desc *desc, size_t alignment,
                                        gpi__task *task) {
    const gemmepi_tensor *tensors[GPI__TENSORS];
    const gpi__operation_row *row;
    int has_halves, halved = -1, t;
    gemmepi_status status;
    memset(task, 0, sizeof *task);
    status = gpi__check_operation(desc);
    if (status)
        return status;
    row = gpi__operation((int)desc->operation);
    gpi__list_tensors(desc, tensors);
    for (t = 0; t < GPI__TENSORS; t++)
        if (tensors[t])
            task->given |= GPI__BIT(t);
    has_halves = row->has_halves && !desc->b;
    status = gpi__check_presence_of_tensors(row, task->given);
    if (!status)
        status = gpi__check_flags(desc, row, has_halves);
    for (t = 0; t < GPI__TENSORS && !status; t++)
        if (tensors[t])
            status = gpi__check_tensor(tensors[t], gpi__tensor_names[t]);
    if (status)
        return status;
    gpi__fill_task(desc, alignment, task);
    if (has_halves)
        status = gpi__convert_halved_axis(task, desc, &halved);
    for (t = 0; t < GPI__TENSORS && !status; t++)
        if (tensors[t])
            status = gpi__convert_operand(task, desc, tensors[t], t, halved);
    if (!status)
        status = gpi__check_dtypes(task);
    if (!status && row->operation == GEMMEPI_OP_CAST)
        status = gpi__check_scaled(task, desc);
    if (status)
        return status;
    if (has_halves) {
        int gate_first = (desc->activation & GEMMEPI_GATE_FIRST) != 0;
        gpi__halve(task, GPI__IN_A, halved, gate_first);
        if (desc->da)
            gpi__halve(task, GPI__OUT_DA, halved, gate_first);
    }
    for (t = GPI__OUT_Y; t < GPI__TENSORS && !status; t++)
        if (gpi__task_has(task, t))
            status = gpi__check_written(task, t);
    task->accumulator = GEMMEPI_F32;
    for (t = 0; t < GPI__TENSORS; t++)
        if (task->operands[t].dtype == GEMMEPI_F64)
            task->accumulator = GEMMEPI_F64;
    return status ? status : gpi__check_range_of_parameter(desc->activation_parameter, task->accumulator);
}

#endif
