/* A formula with the places of its operands: what a problem has of it, in row-major order. */
#ifndef GEMMEPI_FORMULA_PLACED_H
#define GEMMEPI_FORMULA_PLACED_H

#include "formula.h"

/* In elements of the operand's type. Lines of FULL operands are rows. */
typedef struct gemmepi__placed_operand {
    int64_t ld;                        /* of FULL: from one row to the next */
    int64_t batch_stride;              /* 0: one for all items */
    int64_t row_period, column_period; /* of inputs: element (row % p, column % q); 0: none */
    int64_t scale_stride;              /* of D's scale: from one item's to the next */
    int32_t scale, amax; /* of fp8 and I8: 1 where a scale (one F32) is given, and amax (one F32) wanted */
} gemmepi__placed_operand;

typedef struct gemmepi__placed_formula {
    const gemmepi__formula *formula;
    int64_t rows, columns, depth,
        items; /* of v: m, n, k, batch; D is as wide as formula->operands[RESULT].width says */
    gemmepi__placed_operand operands[GEMMEPI__FORMULA_OPERANDS + 1]; /* in the formula's order, D at RESULT */
} gemmepi__placed_formula;

#endif
