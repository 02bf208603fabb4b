/* An element-wise formula as every launch sees it: parsed, and its operands placed by their tensors' strides. */
#ifndef GEMMEPI_PROBLEM_ELEMENTWISE_FORMULA_H
#define GEMMEPI_PROBLEM_ELEMENTWISE_FORMULA_H

#include "elementwise.h"
#include "formula.h"

enum { GPI__ROW_AXIS = GPI__MAX_RANK - 2, GPI__COLUMN_AXIS = GPI__MAX_RANK - 1 };

/* Zeroed before it is filled, so that its bytes and the formula's tell tasks apart. Shapes have all eight axes, 1 where one is missing. */
typedef struct gpi__formula_task {
    int64_t tag; /* -2: neither a product nor another element-wise operation begins so */
    int32_t alignment;
    int32_t rank;                        /* of the operation */
    int64_t shape[GPI__MAX_RANK];        /* items, rows, and the columns of what is n wide */
    int64_t offsets[GPI__RESULT + 1];    /* bytes from the pointer to the element of index 0 */
    uint8_t has_tensor[GPI__RESULT + 1]; /* y's at RESULT */
    uint8_t
        is_halved[GPI__RESULT + 2]; /* inputs that are read through left, right, even or odd, or by index */
    int32_t is_empty;               /* no output has an element */
    int32_t unused;
    gpi__any_strides strides;
    gpi__placed_formula placed; /* its pointers are NULL until gpi__point_task */
} gpi__formula_task;

/* Once the task lies where it stays. */
static void gpi__point_task(gpi__formula_task *task, const gpi__formula *formula) {
    task->placed.formula = formula;
    task->placed.strides = &task->strides;
}

/* >>the desc before its formula */

static gemmepi_status gpi__check_beside_elementwise_formula(const gemmepi_elementwise_desc *desc) {
    const char *field = desc->activation                            ? "activation"
                        : desc->has_parameter                       ? "has_parameter"
                        : desc->axis                                ? "axis"
                        : desc->scale_mode                          ? "scale_mode"
                        : desc->flags                               ? "flags"
                        : desc->a || desc->b || desc->w || desc->dy ? "a, b, w or dy"
                        : desc->da || desc->db || desc->dw          ? "da, db or dw"
                        : desc->y_transposed                        ? "y_transposed"
                        : desc->activation_parameter < 0 || desc->activation_parameter > 0
                            ? "activation_parameter"
                            : NULL;
    gemmepi_status status;
    GPI__INVALID_IF(field, "desc.%s is not 0 with desc.formula, which has only y and operands: leave it 0%s",
                    field, GPI__UNINITIALISED);
    status = gpi__check_alignment(desc->alignment);
    return status ? status
                  : gpi__check_operand_list(desc->operands, desc->operand_count, GPI__FORMULA_OPERANDS);
}

/* How errors call a tensor. */
static void gpi__name_formula_tensor(int i, char name[32]) {
    if (i == GPI__RESULT)
        snprintf(name, 32, "y");
    else
        snprintf(name, 32, "desc.operands[%d].tensor", i);
}

static const gemmepi_tensor *gpi__formula_tensor(const gemmepi_elementwise_desc *desc, int i) {
    if (i == GPI__RESULT)
        return desc->y;
    return i < desc->operand_count ? desc->operands[i].tensor : NULL;
}

/* A tensor by itself; of an operand also what its other fields say beside it. */
static gemmepi_status gpi__check_formula_tensor(const gemmepi_elementwise_desc *desc, int i) {
    const gemmepi_tensor *tensor = gpi__formula_tensor(desc, i);
    const gemmepi_operand *operand = i == GPI__RESULT ? NULL : &desc->operands[i];
    char name[32];
    gpi__name_formula_tensor(i, name);
    GPI__INVALID_IF(operand && (operand->kind == GEMMEPI_NUMBER) != !tensor &&
                        (int)operand->kind >= GEMMEPI_NUMBER && (int)operand->kind <= GEMMEPI_BLOCKED,
                    "%s is %s", name,
                    tensor ? "given, but the operand is a NUMBER, which is on the host: leave it NULL"
                           : "NULL; element-wise each operand but a NUMBER has a tensor");
    if (!tensor)
        return GEMMEPI_OK;
    GPI__UNSUPPORTED_IF(gpi__is_left_out(gpi__type_of_tensor(tensor)), "%s.dtype is " GPI__WITHOUT_FP8, name,
                        gpi__type(gpi__type_of_tensor(tensor)));
    GPI__INVALID_IF(!gpi__dtype_is_known((gemmepi_dtype)gpi__type_of_tensor(tensor)),
                    "%s.dtype is %d, which is no gemmepi_dtype%s", name, (int)tensor->dtype,
                    GPI__UNINITIALISED);
    GPI__INVALID_IF(operand && operand->dtype && (int)operand->dtype != gpi__type_of_tensor(tensor),
                    "desc.operands[%d].dtype is %s (%d), but its tensor has %s: leave it 0", i,
                    gpi__dtype_name(operand->dtype), (int)operand->dtype,
                    gpi__type(gpi__type_of_tensor(tensor)));
    GPI__INVALID_IF(operand && (operand->ld || operand->batch_stride),
                    "desc.operands[%d].%s is %lld; element-wise its tensor has strides: leave it 0", i,
                    operand->ld ? "ld" : "batch_stride",
                    (long long)(operand->ld ? operand->ld : operand->batch_stride));
    return gpi__check_layout(tensor, name);
}

/* What the formula computes in. */
static gemmepi_status gpi__formula_types(const gemmepi_elementwise_desc *desc, gpi__formula_desc *from) {
    int i, y = desc->y ? gpi__type_of_tensor(desc->y) : 0;
    from->accumulator = y == GEMMEPI_I32 ? GEMMEPI_I32 : GEMMEPI_F32;
    for (i = 0; i <= GPI__RESULT; i++) {
        const gemmepi_tensor *tensor = gpi__formula_tensor(desc, i);
        if (tensor && gpi__type_of_tensor(tensor) == GEMMEPI_F64)
            from->accumulator = GEMMEPI_F64;
    }
    from->d = y ? (gemmepi_dtype)y : from->accumulator;
    GPI__INVALID_IF(gpi__is_only_read(y),
                    "y.dtype is %s; accepted are F32, F16, BF16, E4M3, E5M2, I8, I32 and F64%s", gpi__type(y),
                    gpi__where_it_goes(y));
    GPI__INVALID_IF(y && y != GEMMEPI_F64 && from->accumulator == GEMMEPI_F64,
                    "y has the dtype %s, but a tensor among the operands has F64, with which all have F64",
                    gpi__type(y));
    return GEMMEPI_OK;
}

/* The formula in memory of the allocator, or the sentence. */
static gemmepi_status gpi__parse_elementwise(const gemmepi_allocator *allocator,
                                             const gemmepi_elementwise_desc *desc, gpi__formula **formula) {
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gpi__formula_desc from;
    gemmepi_status status = gpi__check_beside_elementwise_formula(desc);
    int i;
    memset(&from, 0, sizeof from);
    for (i = 0; i <= GPI__RESULT && !status; i++)
        if (i < desc->operand_count || i == GPI__RESULT)
            status = gpi__check_formula_tensor(desc, i);
    if (!status)
        status = gpi__formula_types(desc, &from);
    if (status)
        return status;
    for (i = 0; i < desc->operand_count; i++) {
        operands[i] = desc->operands[i];
        if (operands[i].tensor)
            operands[i].dtype = (gemmepi_dtype)gpi__type_of_tensor(operands[i].tensor);
    }
    from.text = desc->formula;
    from.operands = operands;
    from.operand_count = desc->operand_count;
    from.result = desc->formula_result;
    from.without_value = 1;
    status = gpi__parse_formula(allocator, &from, formula);
    if (status || (desc->y != NULL) == (*formula)->operands[GPI__RESULT].used)
        return status;
    gpi__delete(allocator, *formula);
    *formula = NULL;
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                     desc->y ? "y is given, but the formula does not assign %s: leave it NULL"
                             : "y is NULL, but the formula assigns %s, which it is",
                     desc->formula_result ? desc->formula_result : "d");
}

/* >>the shape of the operation */

/* A tensor with all eight axes. Strides of axes of one element are 0. */
typedef struct gpi__wide_shape {
    int64_t extent[GPI__MAX_RANK], stride[GPI__MAX_RANK];
} gpi__wide_shape;

static gpi__wide_shape gpi__widen_shape(const gemmepi_tensor *tensor) {
    gpi__wide_shape wide;
    int64_t stride[GPI__MAX_RANK];
    int d, first = GPI__MAX_RANK - tensor->rank;
    gpi__convert_strides(tensor, stride);
    for (d = 0; d < GPI__MAX_RANK; d++) {
        wide.extent[d] = d < first ? 1 : tensor->shape[d - first];
        wide.stride[d] = wide.extent[d] == 1 ? 0 : stride[d - first];
    }
    return wide;
}

static gemmepi_status gpi__refuse_formula_shape(const gpi__formula_task *task, const gemmepi_tensor *tensor,
                                                int i, const char *rule) {
    char mine[200], its[200], name[32];
    gpi__text given = gpi__text_in(mine, sizeof mine), wanted = gpi__text_in(its, sizeof its);
    gpi__append_shape(&given, tensor->rank, tensor->shape);
    gpi__append_shape(&wanted, task->rank, &task->shape[GPI__MAX_RANK - task->rank]);
    gpi__name_formula_tensor(i, name);
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s has the shape %s, the operation %s: %s", name, mine, its,
                     rule);
}

/* The period of an input along an axis, or its blocks' extent; 0: none. */
static int64_t gpi__period_along(const gemmepi_elementwise_desc *desc, int i, int d) {
    gpi__placed_operand place;
    if (i == GPI__RESULT || d < GPI__ROW_AXIS)
        return 0;
    gpi__place_periods(&desc->operands[i], 0, &place);
    return d == GPI__ROW_AXIS ? place.row_period : place.column_period;
}

/* How many columns of n a tensor's are. */
static int64_t gpi__columns_of_n(const gpi__formula *formula, int64_t columns, int width) {
    return width == GEMMEPI_WIDTH_HALF     ? formula->parts * columns
           : width == GEMMEPI_WIDTH_DOUBLE ? columns / formula->parts
                                           : columns;
}

/* Along each axis the extent of the first tensor that has more or less than one there, y ahead. Of one column that is all there is. */
static void gpi__convert_formula_shape(const gemmepi_elementwise_desc *desc, const gpi__formula *formula,
                                       gpi__formula_task *task) {
    int i, o, d;
    for (d = 0; d < GPI__MAX_RANK; d++)
        task->shape[d] = 1;
    for (o = -1; o < desc->operand_count; o++) {
        const gemmepi_tensor *tensor;
        gpi__wide_shape wide;
        i = o < 0 ? (int)GPI__RESULT : o;
        tensor = gpi__formula_tensor(desc, i);
        if (!tensor)
            continue;
        wide = gpi__widen_shape(tensor);
        task->rank = tensor->rank > task->rank ? tensor->rank : task->rank;
        for (d = 0; d < GPI__MAX_RANK; d++)
            if (wide.extent[d] != 1 && task->shape[d] == 1 && !gpi__period_along(desc, i, d))
                task->shape[d] = d == GPI__COLUMN_AXIS
                                     ? gpi__columns_of_n(formula, wide.extent[d], formula->operands[i].width)
                                     : wide.extent[d];
    }
    for (i = 0; i <= GPI__RESULT && task->shape[GPI__COLUMN_AXIS] == 1; i++)
        if (gpi__formula_tensor(desc, i) && formula->operands[i].output &&
            formula->operands[i].width == GEMMEPI_WIDTH_HALF)
            task->shape[GPI__COLUMN_AXIS] = formula->parts;
}

static gemmepi_status gpi__check_formula_shape(const gpi__formula_task *task, const char *text,
                                               const gpi__formula *formula) {
    int64_t count = formula->parts; /* of what is 2 n wide */
    int d;
    for (d = 0; d < GPI__MAX_RANK; d++)
        if (task->shape[d] && count >= 0)
            count = gpi__offset(count, task->shape[d], 0);
    GPI__INVALID_IF(count < 0, "the operation has more than 2^55 elements");
    for (count = 1, d = 0; d < GPI__ROW_AXIS; d++)
        count *= task->shape[d];
    return gpi__check_formula_extents(formula, text, task->shape[GPI__ROW_AXIS],
                                      task->shape[GPI__COLUMN_AXIS], count);
}

/* >>operands */

/* Whether a kind has an element for each index along an axis. */
static int gpi__is_along(int kind, int d) {
    return d < GPI__ROW_AXIS ? 1 : d == GPI__ROW_AXIS ? gpi__has_rows(kind) : gpi__has_columns(kind);
}

/* What an axis of an operand must be, or NULL. covers: the output is one for all items. */
static const char *gpi__rule_of_axis(const gpi__formula_operand *operand, int d, int64_t extent,
                                     int64_t wanted, int64_t period, int covers) {
    if (!gpi__is_along(operand->kind, d))
        return extent == 1 ? NULL
               : operand->kind == GEMMEPI_PER_ROW
                   ? "PER_ROW operands have the extent 1 in columns, the last axis"
               : operand->kind == GEMMEPI_PER_COLUMN
                   ? "PER_COLUMN operands have the extent 1 in rows, the last axis but one"
                   : "SCALARs have the extent 1 in rows and columns, the last two axes";
    if (period && operand->kind != GEMMEPI_BLOCKED)
        return extent == period ? NULL : "an axis with a period has that extent";
    wanted = gpi__extent_of_operand(operand->kind, wanted, period);
    if (extent == wanted || (!operand->output && extent == 1) || (covers && d < GPI__ROW_AXIS))
        return NULL;
    return period
               ? "of what is BLOCKED each axis has the extent through block_rows or block_columns, rounded up, and of inputs also 1"
           : !operand->output
               ? "each axis, from the last on, has the same extent or 1 (of what is HALF half the columns, of "
                 "DOUBLE twice as many)"
           : operand->kind == GEMMEPI_FULL
               ? "y and outputs of the kind FULL have all of it (HALF half the columns, DOUBLE twice as many)"
           : gpi__may_cover_batch(operand)
               ? "an output has all of it but 1 where it is added up, and all axes before the last two, or 1 in all "
                 "of them"
               : "an output has all of it but 1 where it is added up, and all axes before the last two";
}

static int gpi__covers_items(const gpi__formula_operand *operand, const gpi__wide_shape *wide) {
    int d;
    for (d = 0; d < GPI__ROW_AXIS; d++)
        if (wide->extent[d] != 1)
            return 0;
    return operand->output && gpi__may_cover_batch(operand);
}

/* The step from one item to the next of a reduction's results: one for all axes of items. 0: it covers them. */
static gemmepi_status gpi__step_of_items(const gpi__wide_shape *wide, int i, int64_t *step) {
    int64_t next = 0;
    int d;
    *step = 0;
    for (d = GPI__ROW_AXIS - 1; d >= 0; d--) {
        if (wide->extent[d] == 1)
            continue;
        if (!*step)
            *step = wide->stride[d];
        else if (wide->stride[d] != next)
            return gpi__fail(
                GEMMEPI_INVALID_ARGUMENT,
                "desc.operands[%d].tensor is a reduction's, and its axes before the last two are not laid out as in a dense "
                "tensor: the stride of the one is to be the stride times the extent of the next, %lld",
                i, (long long)next);
        next = wide->extent[d] * wide->stride[d];
    }
    return GEMMEPI_OK;
}

/* No two elements of an output may be one. */
static gemmepi_status gpi__check_written_tensor(const gemmepi_tensor *tensor, int i) {
    gpi__wide_shape wide = gpi__widen_shape(tensor);
    gpi__layout layout;
    char name[32];
    int d, repeats;
    memset(&layout, 0, sizeof layout);
    layout.rank = GPI__MAX_RANK;
    layout.size = (int64_t)gpi__dtype((gemmepi_dtype)gpi__type_of_tensor(tensor))->size;
    for (d = 0; d < GPI__MAX_RANK; d++) {
        layout.shape[d] = wide.extent[d];
        layout.stride[d] = wide.stride[d] * layout.size;
    }
    repeats = gpi__layout_repeats(&layout);
    if (!repeats)
        return GEMMEPI_OK;
    gpi__name_formula_tensor(i, name);
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                     "%s is written, but its strides put several of its elements into the same place%s", name,
                     repeats == GPI__UNDECIDED
                         ? ", or so close that telling would take too long: write a dense tensor"
                         : "");
}

static void gpi__place_by_steps(const gemmepi_elementwise_desc *desc, int i, const gpi__wide_shape *wide,
                                gpi__formula_task *task) {
    gpi__steps *steps = &task->strides.operands[i];
    gpi__placed_operand *place = &task->placed.operands[i];
    int d, axis = 0;
    for (d = 0; d < GPI__ROW_AXIS; d++)
        if (task->shape[d] != 1)
            steps->items[axis++] = wide->stride[d];
    steps->row = place->ld = wide->stride[GPI__ROW_AXIS];
    steps->column = wide->stride[GPI__COLUMN_AXIS];
    task->has_tensor[i] = 1;
    if (i == GPI__RESULT)
        return;
    gpi__place_periods(&desc->operands[i], 0, place);
    place->scale = desc->operands[i].scale.mode != GEMMEPI_SCALE_NONE;
    place->amax = desc->operands[i].amax;
}

/* Of 4 bits the elements of a byte are side by side along the last axis, and all else has whole bytes. */
static gemmepi_status gpi__check_packed_tensor(const gemmepi_operand *operand, int i,
                                               const gpi__wide_shape *wide) {
    const char *name = gpi__type(gpi__type_of_tensor(operand->tensor));
    int d;
    if (!gpi__is_packed(gpi__type_of_tensor(operand->tensor)))
        return GEMMEPI_OK;
    GPI__INVALID_IF(
        wide->extent[GPI__COLUMN_AXIS] % 2,
        "desc.operands[%d].tensor (of %s) has %lld elements along the last axis; of %s a byte has "
        "two, so accepted are even numbers",
        i, operand->name, (long long)wide->extent[GPI__COLUMN_AXIS], name);
    for (d = 0; d < GPI__MAX_RANK; d++)
        GPI__INVALID_IF(
            d == GPI__COLUMN_AXIS ? wide->extent[d] && wide->stride[d] != 1 : wide->stride[d] % 2 != 0,
            "desc.operands[%d].tensor.stride (of %s) is %lld along axis %d; of %s a byte has two "
            "elements, so accepted are 1 along the last axis and even numbers along others",
            i, operand->name, (long long)wide->stride[d], d - GPI__MAX_RANK + operand->tensor->rank, name);
    return GEMMEPI_OK;
}

/* Checks an operand against the shape and places it. An output without an element is not made. */
static gemmepi_status gpi__place_tensor(const gemmepi_elementwise_desc *desc, int i, gpi__formula *formula,
                                        gpi__formula_task *task) {
    const gemmepi_tensor *tensor = gpi__formula_tensor(desc, i);
    gpi__formula_operand *operand = &formula->operands[i];
    gpi__wide_shape wide;
    gemmepi_status status = GEMMEPI_OK;
    int d, covers;
    if (!tensor)
        return GEMMEPI_OK;
    wide = gpi__widen_shape(tensor);
    covers = gpi__covers_items(operand, &wide);
    for (d = 0; d < GPI__MAX_RANK; d++) {
        int64_t n = task->shape[d];
        const char *rule =
            gpi__rule_of_axis(operand, d, wide.extent[d],
                              d == GPI__COLUMN_AXIS ? gpi__columns_of_width(formula, n, operand->width) : n,
                              gpi__period_along(desc, i, d), covers);
        if (rule)
            return gpi__refuse_formula_shape(task, tensor, i, rule);
    }
    status = i == GPI__RESULT ? GEMMEPI_OK : gpi__check_packed_tensor(&desc->operands[i], i, &wide);
    if (status)
        return status;
    gpi__place_by_steps(desc, i, &wide, task);
    task->offsets[i] = (int64_t)tensor->offset;
    if (operand->output)
        status = gpi__check_written_tensor(tensor, i);
    if (!status && operand->reduction)
        status = gpi__step_of_items(&wide, i, &task->placed.operands[i].batch_stride);
    for (d = 0; d < GPI__MAX_RANK; d++)
        if (operand->output && wide.extent[d] == 0)
            operand->used = 0;
    return status;
}

/* The extents that the formula is run over. Without items there are no rows either: then what covers the items is of nothing. */
static void gpi__place_extents(gpi__formula_task *task) {
    gpi__placed_formula *placed = &task->placed;
    int d;
    placed->rows = task->shape[GPI__ROW_AXIS];
    placed->columns = task->shape[GPI__COLUMN_AXIS];
    placed->items = 1;
    for (d = 0; d < GPI__ROW_AXIS; d++) {
        placed->items *= task->shape[d];
        if (task->shape[d] != 1)
            task->strides.extents[task->strides.axes++] = task->shape[d];
    }
    if (placed->items)
        return;
    placed->items = 1;
    placed->rows = 0;
    memset(&task->strides, 0, offsetof(gpi__any_strides, operands));
}

/* desc, which has a formula, -> task and formula, this to be given to gpi__delete, or the sentence. alignment is the pointers'. */
static gemmepi_status gpi__convert_formula_task(const gemmepi_allocator *allocator,
                                                const gemmepi_elementwise_desc *desc, size_t alignment,
                                                gpi__formula_task *task, gpi__formula **result) {
    gpi__formula *formula = NULL;
    gemmepi_status status;
    int i;
    memset(task, 0, sizeof *task);
    *result = NULL;
    status = gpi__parse_elementwise(allocator, desc, &formula);
    if (status)
        return status;
    task->tag = -2;
    task->alignment = (int32_t)(desc->alignment ? desc->alignment : alignment);
    gpi__convert_formula_shape(desc, formula, task);
    gpi__note_halves(formula, task->is_halved);
    status = gpi__check_formula_shape(task, desc->formula, formula);
    for (i = 0; i <= GPI__RESULT && !status; i++)
        status = gpi__place_tensor(desc, i, formula, task);
    gpi__place_extents(task);
    task->is_empty = 1;
    for (i = 0; i <= GPI__RESULT; i++)
        if (formula->operands[i].output && formula->operands[i].used)
            task->is_empty = 0;
    if (status)
        gpi__delete(allocator, formula);
    else
        *result = formula;
    return status;
}

/* >>where a tensor lies */

/* As many elements along an axis as an operand has there. */
static int64_t gpi__extent_of_steps(int kind, int64_t extent, int64_t period, int64_t step) {
    return step == 0 && extent != 0 ? 1 : gpi__extent_of_operand(kind, extent, period);
}

static gpi__layout gpi__layout_of_tensor(const gpi__formula_task *task, int i) {
    const gpi__placed_formula *placed = &task->placed;
    const gpi__formula_operand *operand = &placed->formula->operands[i];
    const gpi__placed_operand *place = &placed->operands[i];
    const gpi__steps *steps = &task->strides.operands[i];
    gpi__layout layout;
    int d, axes = (int)task->strides.axes, bits = gpi__bits_of(operand->dtype);
    memset(&layout, 0, sizeof layout);
    layout.rank = axes + 2;
    layout.size = (int64_t)gpi__dtype((gemmepi_dtype)operand->dtype)->size;
    for (d = 0; d < axes; d++) {
        layout.shape[d] = gpi__extent_of_steps(0, task->strides.extents[d], 0, steps->items[d]);
        layout.stride[d] = steps->items[d] * bits / 8;
    }
    layout.shape[axes] = gpi__extent_of_steps(operand->kind, placed->rows, place->row_period, steps->row);
    layout.stride[axes] = steps->row * bits / 8;
    layout.shape[axes + 1] = gpi__extent_of_steps(
        operand->kind, gpi__columns_of_width(placed->formula, placed->columns, operand->width),
        place->column_period, steps->column);
    layout.stride[axes + 1] = steps->column * layout.size;
    if (bits < 8)
        layout.shape[axes + 1] /= 2;                       /* bytes */
    if (operand->output && operand->kind < GEMMEPI_FULL) { /* of nothing, too */
        layout.shape[axes] = operand->kind == GEMMEPI_PER_ROW ? layout.shape[axes] : 1;
        layout.shape[axes + 1] = operand->kind == GEMMEPI_PER_COLUMN ? layout.shape[axes + 1] : 1;
    }
    return layout;
}

#endif
