/* A formula with the places of its operands: what a problem has of it, in row-major order. */
#ifndef GEMMEPI_FORMULA_PLACED_H
#define GEMMEPI_FORMULA_PLACED_H

#include "formula.h"

/* In elements of the operand's type. Lines of FULL operands are rows. */
typedef struct gpi__placed_operand {
    int64_t ld;           /* of FULL and BLOCKED: from one row to the next */
    int64_t batch_stride; /* 0: one for all items */
    int64_t row_period,
        column_period; /* of inputs: element (row % p, column % q), BLOCKED ones' (row / p, column / q); 0: none */
    int64_t scale_stride; /* of D's scale: from one item's to the next */
    int32_t scale, amax;  /* of fp8 and I8: 1 where a scale (one F32) is given, and amax (one F32) wanted */
} gpi__placed_operand;

#define GPI__ITEM_AXES 6

/* In elements, from one row, column or item of each axis to the next; 0 where an operand repeats. */
typedef struct gpi__steps {
    int64_t row, column, items[GPI__ITEM_AXES];
} gpi__steps;

/* Operands of any strides. Items are counted as in a dense tensor of these axes, the last of which is the innermost. */
typedef struct gpi__any_strides {
    int64_t axes; /* of items */
    int64_t extents[GPI__ITEM_AXES];
    gpi__steps operands[GPI__FORMULA_OPERANDS + 1];
} gpi__any_strides;

typedef struct gpi__placed_formula {
    const gpi__formula *formula;
    /* NULL: operands lie as their ld and batch_stride say. Else these are the row's step and, of reductions, that of all items */
    const gpi__any_strides *strides;
    int64_t rows, columns, depth,
        items; /* of v: m, n, k, batch; D is as wide as formula->operands[RESULT].width says */
    gpi__placed_operand operands[GPI__FORMULA_OPERANDS + 1]; /* in the formula's order, D at RESULT */
} gpi__placed_formula;

/* The periods of an input as it is given; those of a BLOCKED one are its blocks' extents, where they are more than 1. */
static void gpi__place_periods(const gemmepi_operand *given, int exchanged, gpi__placed_operand *place) {
    int64_t rows = given->block_rows > 1 ? given->block_rows : given->row_period;
    int64_t columns = given->block_columns > 1 ? given->block_columns : given->column_period;
    place->row_period = exchanged ? columns : rows;
    place->column_period = exchanged ? rows : columns;
}

/* How many elements an operand has along an axis of so many. */
static int64_t gpi__extent_of_operand(int kind, int64_t extent, int64_t period) {
    if (!period)
        return extent;
    return kind == GEMMEPI_BLOCKED ? extent / period + (extent % period != 0) : period;
}

/* Whether an operand has an element for several columns, which are read one at a time. */
static int gpi__is_in_blocks(const gpi__formula_operand *operand, const gpi__placed_operand *place) {
    return operand->kind == GEMMEPI_BLOCKED && place->column_period;
}

/* Appends a block's extents, as the caller has them. */
static void gpi__append_block(gpi__text *text, const gpi__formula *formula,
                              const gpi__placed_operand *place) {
    int64_t rows = place->row_period ? place->row_period : 1;
    int64_t columns = place->column_period ? place->column_period : 1;
    gpi__append(text, " of %lld x %lld", (long long)(formula->exchanged ? columns : rows),
                (long long)(formula->exchanged ? rows : columns));
}

/* How many elements an input has that is read by index. */
static int64_t gpi__table_length(const gpi__placed_formula *placed, int i) {
    const gpi__placed_operand *at = &placed->operands[i];
    if (placed->formula->operands[i].kind == GEMMEPI_PER_ROW)
        return at->row_period ? at->row_period : placed->rows;
    return at->column_period ? at->column_period : placed->columns;
}

#endif
