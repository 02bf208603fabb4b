/* An element-wise formula as its kernel takes it: axes merged and, where the formula does not ask which row, column or item an element is
   of, in the order in which it lies; operands of the kinds that their steps make them. */
#ifndef GEMMEPI_ELEMENTWISE_FORMULA_AXES_H
#define GEMMEPI_ELEMENTWISE_FORMULA_AXES_H

#include "../problem/elementwise_formula.h"

typedef struct gemmepi__device_formula {
    gemmepi__formula formula; /* with other kinds */
    gemmepi__any_strides strides;
    gemmepi__placed_formula placed;
    int64_t offsets[GEMMEPI__RESULT + 1]; /* bytes from the pointer to the first element */
} gemmepi__device_formula;

/* Axes from the innermost on, with each operand's steps. */
typedef struct gemmepi__formula_axes {
    int count;
    int64_t extent[GEMMEPI__MAX_RANK];
    int64_t step[GEMMEPI__MAX_RANK][GEMMEPI__RESULT + 1];
} gemmepi__formula_axes;

/* What may be done with the axes: those of items merged; rows merged with them; all of them sorted and merged. */
typedef enum gemmepi__axes_freedom {
    GEMMEPI__ITEMS_MERGE,
    GEMMEPI__ROWS_MERGE,
    GEMMEPI__ANY_ORDER
} gemmepi__axes_freedom;

/* Whether a reduction's results stay what they are where rows and items, or all axes, are one. */
static int gemmepi__reduction_allows(const gemmepi__placed_formula *placed, int i,
                                     gemmepi__axes_freedom freedom) {
    const gemmepi__formula_operand *o = &placed->formula->operands[i];
    if (!o->output || !o->used || !o->reduction)
        return 1;
    if (o->kind == GEMMEPI_PER_ROW || gemmepi__reductions[o->reduction].op == GEMMEPI__REDUCE_ARGMAX)
        return freedom < GEMMEPI__ANY_ORDER && o->kind == GEMMEPI_PER_ROW;
    return placed->operands[i].batch_stride == 0 &&
           (freedom < GEMMEPI__ANY_ORDER || o->kind == GEMMEPI_SCALAR);
}

static int gemmepi__axes_may(const gemmepi__placed_formula *placed, gemmepi__axes_freedom freedom) {
    const gemmepi__formula *f = placed->formula;
    const uint32_t of_rows = 1u << GEMMEPI__INDEX_ROW | 1u << GEMMEPI__INDEX_ROWS | 1u << GEMMEPI__INDEX_ITEM;
    const uint32_t of_columns = 1u << GEMMEPI__INDEX_COLUMN | 1u << GEMMEPI__INDEX_COLUMNS;
    int i;
    if (f->indices & of_rows || placed->rows == 0 || placed->columns == 0)
        return 0;
    if (freedom == GEMMEPI__ANY_ORDER && (f->indices & of_columns || f->has_halves))
        return 0;
    for (i = 0; i <= GEMMEPI__RESULT; i++) {
        if (!gemmepi__reduction_allows(placed, i, freedom) || placed->operands[i].row_period ||
            (freedom == GEMMEPI__ANY_ORDER && placed->operands[i].column_period))
            return 0;
    }
    return 1;
}

static gemmepi__axes_freedom gemmepi__freedom_of(const gemmepi__placed_formula *placed) {
    return gemmepi__axes_may(placed, GEMMEPI__ANY_ORDER)    ? GEMMEPI__ANY_ORDER
           : gemmepi__axes_may(placed, GEMMEPI__ROWS_MERGE) ? GEMMEPI__ROWS_MERGE
                                                            : GEMMEPI__ITEMS_MERGE;
}

/* Columns, rows, and items from the innermost axis on. */
static void gemmepi__take_formula_axes(const gemmepi__placed_formula *placed, gemmepi__formula_axes *axes) {
    const gemmepi__any_strides *strides = placed->strides;
    int items = (int)strides->axes, i, d;
    memset(axes, 0, sizeof *axes);
    axes->count = 2 + items;
    axes->extent[0] = placed->columns;
    axes->extent[1] = placed->rows;
    for (d = 0; d < items; d++)
        axes->extent[2 + d] = strides->extents[items - 1 - d];
    for (i = 0; i <= GEMMEPI__RESULT; i++) {
        axes->step[0][i] = strides->operands[i].column;
        axes->step[1][i] = strides->operands[i].row;
        for (d = 0; d < items; d++)
            axes->step[2 + d][i] = strides->operands[i].items[items - 1 - d];
    }
}

static void gemmepi__swap_formula_axes(gemmepi__formula_axes *axes, int p, int q) {
    int64_t extent = axes->extent[p], steps[GEMMEPI__RESULT + 1];
    axes->extent[p] = axes->extent[q];
    axes->extent[q] = extent;
    memcpy(steps, axes->step[p], sizeof steps);
    memcpy(axes->step[p], axes->step[q], sizeof steps);
    memcpy(axes->step[q], steps, sizeof steps);
}

/* The n-th tensor that decides about the order: y and outputs ahead of inputs. -1: no such operand. */
static int gemmepi__deciding_tensor(const gemmepi__formula *formula, int n) {
    int i = n % (GEMMEPI__RESULT + 1), is_output = n <= GEMMEPI__RESULT;
    const gemmepi__formula_operand *o = &formula->operands[i];
    return o->used && o->kind != GEMMEPI_NUMBER && o->output == is_output ? i : -1;
}

/* Whether an axis is to be inside of another. */
static int gemmepi__lies_inside(const gemmepi__formula *formula, const gemmepi__formula_axes *axes, int p,
                                int q) {
    int n;
    for (n = 0; n < 2 * (GEMMEPI__RESULT + 1); n++) {
        int i = gemmepi__deciding_tensor(formula, n);
        int64_t x = i < 0 ? 0 : axes->step[p][i], y = i < 0 ? 0 : axes->step[q][i];
        x = x < 0 ? -x : x;
        y = y < 0 ? -y : y;
        if (x && y && x != y)
            return x < y;
    }
    return 0;
}

/* An axis along which the first tensor to decide runs backwards is turned around for all. */
static void gemmepi__turn_formula_axis(gemmepi__device_formula *device, gemmepi__formula_axes *axes, int d) {
    int64_t decided = 0;
    int n, i;
    for (n = 0; n < 2 * (GEMMEPI__RESULT + 1) && !decided; n++) {
        i = gemmepi__deciding_tensor(&device->formula, n);
        decided = i < 0 ? 0 : axes->step[d][i];
    }
    for (i = 0; i <= GEMMEPI__RESULT && decided < 0; i++) {
        int64_t size = (int64_t)gemmepi__dtype((gemmepi_dtype)device->formula.operands[i].dtype)->size;
        device->offsets[i] += (axes->extent[d] - 1) * axes->step[d][i] * size;
        axes->step[d][i] = -axes->step[d][i];
    }
}

static int gemmepi__formula_axes_merge(const gemmepi__formula_axes *axes, int inner, int outer) {
    int i;
    for (i = 0; i <= GEMMEPI__RESULT; i++)
        if (axes->step[outer][i] != axes->step[inner][i] * axes->extent[inner])
            return 0;
    return 1;
}

/* From axis `first` on those of extent 1 go, and two become one where the outer runs on where the inner ends. */
static void gemmepi__merge_formula_axes(gemmepi__formula_axes *axes, int first) {
    int d, kept = first;
    for (d = first; d < axes->count; d++) {
        if (axes->extent[d] == 1)
            continue;
        if (kept > first && gemmepi__formula_axes_merge(axes, kept - 1, d))
            axes->extent[kept - 1] *= axes->extent[d];
        else if (kept++ != d)
            gemmepi__swap_formula_axes(axes, kept - 1, d);
    }
    axes->count = kept;
}

static void gemmepi__sort_formula_axes(gemmepi__device_formula *device, gemmepi__formula_axes *axes) {
    int d, e, kept = 0;
    for (d = 0; d < axes->count; d++)
        if (axes->extent[d] != 1)
            gemmepi__swap_formula_axes(axes, kept++, d);
    axes->count = kept;
    for (d = 0; d < axes->count; d++)
        gemmepi__turn_formula_axis(device, axes, d);
    for (d = 1; d < axes->count; d++)
        for (e = d; e > 0 && gemmepi__lies_inside(&device->formula, axes, e, e - 1); e--)
            gemmepi__swap_formula_axes(axes, e, e - 1);
}

/* Back to columns, rows and items; an axis that is not there has one element. */
static void gemmepi__place_axes(const gemmepi__formula_axes *axes, gemmepi__device_formula *device) {
    gemmepi__any_strides *strides = &device->strides;
    int items = axes->count > 2 ? axes->count - 2 : 0, i, d;
    memset(strides, 0, sizeof *strides);
    strides->axes = items;
    device->placed.columns = axes->count > 0 ? axes->extent[0] : 1;
    device->placed.rows = axes->count > 1 ? axes->extent[1] : 1;
    device->placed.items = 1;
    for (d = 0; d < items; d++) {
        strides->extents[d] = axes->extent[axes->count - 1 - d];
        device->placed.items *= strides->extents[d];
    }
    for (i = 0; i <= GEMMEPI__RESULT; i++) {
        strides->operands[i].column = axes->count > 0 ? axes->step[0][i] : 0;
        strides->operands[i].row = axes->count > 1 ? axes->step[1][i] : 0;
        for (d = 0; d < items; d++)
            strides->operands[i].items[d] = axes->step[axes->count - 1 - d][i];
    }
}

/* An input by what changes along: so what repeats is read once. Periods stay what they are of. */
static int gemmepi__kind_by_steps(const gemmepi__placed_formula *placed, const gemmepi__steps *steps, int i) {
    const gemmepi__formula_operand *o = &placed->formula->operands[i];
    if (!o->output && o->kind == GEMMEPI_PER_COLUMN && steps->row)
        return GEMMEPI_FULL; /* items have become rows, and each has a table */
    if (o->output || o->kind == GEMMEPI_NUMBER || placed->operands[i].row_period ||
        placed->operands[i].column_period)
        return o->kind;
    return steps->column ? steps->row ? GEMMEPI_FULL : GEMMEPI_PER_COLUMN
           : steps->row  ? GEMMEPI_PER_ROW
                         : GEMMEPI_SCALAR;
}

static void gemmepi__place_for_device(gemmepi__device_formula *device) {
    int i, d;
    for (i = 0; i <= GEMMEPI__RESULT; i++) {
        gemmepi__formula_operand *o = &device->formula.operands[i];
        gemmepi__steps *steps = &device->strides.operands[i];
        gemmepi__placed_operand *place = &device->placed.operands[i];
        if (!o->used)
            continue;
        o->kind = (uint8_t)gemmepi__kind_by_steps(&device->placed, steps, i);
        if (o->output && !o->reduction && steps->column == 0) /* of one column */
            steps->column = 1;
        place->ld = steps->row;
        place->batch_stride = 0;
        for (d = 0; d < (int)device->strides.axes; d++)
            if (steps->items[d])
                place->batch_stride = steps->items[d];
    }
}

/* The result points into itself and to the task's formula. */
static void gemmepi__take_device_formula(const gemmepi__formula_task *task, gemmepi__device_formula *device) {
    gemmepi__axes_freedom freedom = gemmepi__freedom_of(&task->placed);
    gemmepi__formula_axes axes;
    device->formula = *task->placed.formula;
    device->placed = task->placed;
    device->placed.formula = &device->formula;
    device->placed.strides = &device->strides;
    memcpy(device->offsets, task->offsets, sizeof device->offsets);
    gemmepi__take_formula_axes(&task->placed, &axes);
    if (freedom == GEMMEPI__ANY_ORDER)
        gemmepi__sort_formula_axes(device, &axes);
    gemmepi__merge_formula_axes(&axes, freedom == GEMMEPI__ANY_ORDER    ? 0
                                       : freedom == GEMMEPI__ROWS_MERGE ? 1
                                                                        : 2);
    gemmepi__place_axes(&axes, device);
    gemmepi__place_for_device(device);
}

/* Bytes that all vectors begin at multiples of, a power of two: of pointers so aligned. */
static int64_t gemmepi__alignment_on_device(const gemmepi__device_formula *device, int64_t alignment) {
    int64_t bits = alignment;
    int i;
    for (i = 0; i <= GEMMEPI__RESULT; i++) {
        const gemmepi__formula_operand *o = &device->formula.operands[i];
        if (o->used && o->kind >= GEMMEPI_PER_COLUMN && !(o->output && o->reduction) &&
            device->strides.operands[i].column == 1)
            bits |= device->offsets[i];
    }
    return bits & -bits;
}

#endif
