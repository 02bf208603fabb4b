/* An element-wise formula as its kernel takes it: axes merged and, where the formula does not ask which row, column or item an element is
   of, in the order in which it lies; operands of the kinds that their steps make them. */
#ifndef GEMMEPI_ELEMENTWISE_FORMULA_AXES_H
#define GEMMEPI_ELEMENTWISE_FORMULA_AXES_H

#include "../problem/elementwise_formula.h"
#include "../problem/nest.h"

typedef struct gpi__device_formula {
    gpi__formula formula; /* with other kinds */
    gpi__any_strides strides;
    gpi__placed_formula placed;
    int64_t offsets[GPI__RESULT + 1]; /* bytes from the pointer to the first element */
} gpi__device_formula;

/* Columns, rows, and items from the innermost axis on, with the steps of operands and y. */
typedef struct gpi__formula_axes {
    int64_t extent[GPI__MAX_RANK];
    int64_t stride[GPI__RESULT + 1][GPI__MAX_RANK];
    int summed[GPI__MAX_RANK], dtype[GPI__RESULT + 1];
    gpi__tensor_axes axes; /* of these, and the device formula's offsets */
} gpi__formula_axes;

/* What may be done with the axes: those of items merged; rows merged with them; all of them sorted and merged. */
typedef enum gpi__axes_freedom { GPI__ITEMS_MERGE, GPI__ROWS_MERGE, GPI__ANY_ORDER } gpi__axes_freedom;

/* Whether a reduction's results stay what they are where rows and items, or all axes, are one. */
static int gpi__reduction_allows(const gpi__placed_formula *placed, int i, gpi__axes_freedom freedom) {
    const gpi__formula_operand *o = &placed->formula->operands[i];
    if (!o->output || !o->used || !o->reduction)
        return 1;
    if (gpi__has_rows(o->kind) || gpi__reductions[o->reduction].op == GPI__REDUCE_ARGMAX)
        return freedom < GPI__ANY_ORDER && gpi__has_rows(o->kind);
    return placed->operands[i].batch_stride == 0 && (freedom < GPI__ANY_ORDER || o->kind == GEMMEPI_SCALAR);
}

static int gpi__axes_may(const gpi__placed_formula *placed, gpi__axes_freedom freedom) {
    const gpi__formula *f = placed->formula;
    const uint32_t of_rows = 1u << GPI__INDEX_ROW | 1u << GPI__INDEX_ROWS | 1u << GPI__INDEX_ITEM;
    const uint32_t of_columns = 1u << GPI__INDEX_COLUMN | 1u << GPI__INDEX_COLUMNS;
    int i;
    if (f->indices & of_rows || placed->rows == 0 || placed->columns == 0)
        return 0;
    if (freedom == GPI__ANY_ORDER && (f->indices & of_columns || f->has_halves))
        return 0;
    for (i = 0; i <= GPI__RESULT; i++) {
        int by_index = f->operands[i].used & GPI__BY_INDEX;
        if (!gpi__reduction_allows(placed, i, freedom) || placed->operands[i].row_period ||
            (by_index && f->operands[i].kind == GEMMEPI_PER_ROW) ||
            (freedom == GPI__ANY_ORDER && (placed->operands[i].column_period || by_index)))
            return 0;
    }
    return 1;
}

/* y and outputs decide first. */
static void gpi__convert_formula_axes(const gpi__placed_formula *placed, gpi__device_formula *device,
                                      gpi__formula_axes *from) {
    const gpi__any_strides *strides = placed->strides;
    gpi__tensor_axes *axes = &from->axes;
    int items = (int)strides->axes, i, d;
    memset(from, 0, sizeof *from);
    axes->count = GPI__RESULT + 1;
    axes->rank = 2 + items;
    axes->extent = from->extent;
    axes->summed = from->summed;
    axes->stride = from->stride;
    axes->offset = device->offsets;
    axes->dtype = from->dtype;
    from->extent[0] = placed->columns;
    from->extent[1] = placed->rows;
    for (d = 0; d < items; d++)
        from->extent[2 + d] = strides->extents[items - 1 - d];
    for (i = 0; i <= GPI__RESULT; i++) {
        const gpi__formula_operand *o = &placed->formula->operands[i];
        axes->used |= (uint64_t)(o->used && o->kind != GEMMEPI_NUMBER) << i;
        axes->first |= (uint64_t)(o->output != 0) << i;
        from->dtype[i] = o->dtype;
        from->stride[i][0] = strides->operands[i].column;
        from->stride[i][1] = strides->operands[i].row;
        for (d = 0; d < items; d++)
            from->stride[i][2 + d] = strides->operands[i].items[items - 1 - d];
    }
}

/* Back to columns, rows and items; an axis that is not there has one element. */
static void gpi__place_axes(const gpi__tensor_axes *axes, gpi__device_formula *device) {
    gpi__any_strides *strides = &device->strides;
    int items = axes->rank > 2 ? axes->rank - 2 : 0, i, d;
    memset(strides, 0, sizeof *strides);
    strides->axes = items;
    device->placed.columns = axes->rank > 0 ? axes->extent[0] : 1;
    device->placed.rows = axes->rank > 1 ? axes->extent[1] : 1;
    device->placed.items = 1;
    for (d = 0; d < items; d++) {
        strides->extents[d] = axes->extent[axes->rank - 1 - d];
        device->placed.items *= strides->extents[d];
    }
    for (i = 0; i <= GPI__RESULT; i++) {
        strides->operands[i].column = axes->rank > 0 ? axes->stride[i][0] : 0;
        strides->operands[i].row = axes->rank > 1 ? axes->stride[i][1] : 0;
        for (d = 0; d < items; d++)
            strides->operands[i].items[d] = axes->stride[i][axes->rank - 1 - d];
    }
}

/* An input by what changes along: so what repeats is read once. Periods stay what they are of. */
static int gpi__kind_by_steps(const gpi__placed_formula *placed, const gpi__steps *steps, int i) {
    const gpi__formula_operand *o = &placed->formula->operands[i];
    if (!o->output && o->kind == GEMMEPI_PER_COLUMN && steps->row)
        return GEMMEPI_FULL; /* items have become rows, and each has a table */
    if (o->output || o->kind == GEMMEPI_NUMBER || placed->operands[i].row_period ||
        placed->operands[i].column_period || o->used & GPI__BY_INDEX)
        return o->kind;
    return steps->column ? steps->row ? GEMMEPI_FULL : GEMMEPI_PER_COLUMN
           : steps->row  ? GEMMEPI_PER_ROW
                         : GEMMEPI_SCALAR;
}

static void gpi__place_for_device(gpi__device_formula *device) {
    int i, d;
    for (i = 0; i <= GPI__RESULT; i++) {
        gpi__formula_operand *o = &device->formula.operands[i];
        gpi__steps *steps = &device->strides.operands[i];
        gpi__placed_operand *place = &device->placed.operands[i];
        if (!o->used)
            continue;
        o->kind = (uint8_t)gpi__kind_by_steps(&device->placed, steps, i);
        if (o->output && !o->reduction && steps->column == 0) /* of one column */
            steps->column = 1;
        place->ld = steps->row;
        place->batch_stride = 0;
        for (d = 0; d < (int)device->strides.axes; d++)
            if (steps->items[d])
                place->batch_stride = steps->items[d];
    }
}

/* Whether columns must stay side by side, two in a byte. */
static int gpi__reads_packed(const gpi__formula *formula) {
    int i;
    for (i = 0; i < formula->operand_count; i++)
        if (formula->operands[i].used && gpi__is_packed(formula->operands[i].dtype))
            return 1;
    return 0;
}

/* The result points into itself and to the task's formula. */
static void gpi__convert_device_formula(const gpi__formula_task *task, gpi__device_formula *device) {
    gpi__axes_freedom freedom = gpi__axes_may(&task->placed, GPI__ANY_ORDER)    ? GPI__ANY_ORDER
                                : gpi__axes_may(&task->placed, GPI__ROWS_MERGE) ? GPI__ROWS_MERGE
                                                                                : GPI__ITEMS_MERGE;
    gpi__formula_axes from;
    device->formula = *task->placed.formula;
    device->placed = task->placed;
    device->placed.formula = &device->formula;
    device->placed.strides = &device->strides;
    memcpy(device->offsets, task->offsets, sizeof device->offsets);
    gpi__convert_formula_axes(&task->placed, device, &from);
    if (freedom == GPI__ANY_ORDER && !gpi__reads_packed(&device->formula))
        gpi__sort_axes(&from.axes);
    gpi__merge_axes(&from.axes, freedom == GPI__ANY_ORDER ? 0 : freedom == GPI__ROWS_MERGE ? 1 : 2);
    gpi__place_axes(&from.axes, device);
    gpi__place_for_device(device);
}

/* Bytes that all vectors begin at multiples of, a power of two: of pointers so aligned. */
static int64_t gpi__alignment_on_device(const gpi__device_formula *device, int64_t alignment) {
    int64_t bits = alignment;
    int i;
    for (i = 0; i <= GPI__RESULT; i++) {
        const gpi__formula_operand *o = &device->formula.operands[i];
        if (o->used && o->kind >= GEMMEPI_PER_COLUMN && !(o->output && o->reduction) &&
            !gpi__is_in_blocks(o, &device->placed.operands[i]) && device->strides.operands[i].column == 1)
            bits |= device->offsets[i];
    }
    return bits & -bits;
}

#endif
