/* Formulas in plain C, of products and of element-wise operations: v as any product's, if there is one, then the formula a unit at a time
   in double, each output rounded once. Nothing is as large as a matrix or a row. Column reductions have a walk of their own, ahead of the
   one that writes what is read in place. */
#ifndef GEMMEPI_HOST_FORMULA_H
#define GEMMEPI_HOST_FORMULA_H

#include "../formula/evaluate.h"
#include "../problem/formula_arguments.h"
#include "product.h"

/* A reduction under way. */
typedef struct gpi__reduced {
    gpi__sum sum;  /* of LOGSUMEXP: of exponentials above most */
    double most;   /* NaN is the largest */
    int64_t place; /* the lowest of the largest */
    int has_any;
} gpi__reduced;

typedef struct gpi__host_formula {
    const gpi__problem *problem; /* NULL: there is no v, and D has neither scale nor amax */
    const gpi__arguments *arguments;
    const gpi__formula *formula;
    const gpi__placed_formula *placed;
    int by_columns;       /* this walk is for reductions of columns, which the other leaves out */
    int64_t first, units; /* of the block: units, and how many */
    int64_t column,
        slots; /* v's: where the block's begin; above 1: each part has its own tile, 1: they follow one another */
    gpi__host_tile tile;
    gpi__unit unit;
    double amax[GPI__FORMULA_OPERANDS + 1];
    uint8_t has_amax[GPI__FORMULA_OPERANDS + 1];
    double (*v)[GPI__HOST_TILE][GPI__HOST_TILE]; /* a tile of each part */
    gpi__reduced *cells; /* of each output: by rows of a tile, or by columns of all parts' */
    double *values;      /* of each node as many as there are parts */
} gpi__host_formula;

/* >>which columns belong to a unit */

/* Whether v has several members. */
static int gpi__v_is_wide(const gpi__formula *formula) {
    return gpi__members(formula, formula->n_width) > 1;
}

static int64_t gpi__units_of(const gpi__placed_formula *placed) {
    return placed->columns / gpi__members(placed->formula, placed->formula->n_width);
}

/* How many units lie between a unit's members. */
static int64_t gpi__half_of(const gpi__placed_formula *placed) {
    const gpi__formula *formula = placed->formula;
    int64_t units = gpi__units_of(placed);
    return formula->mode == GPI__EVEN_ODD || !units ? 1 : formula->group ? formula->group / 2 : units;
}

/* Of what is WIDE, the column of a unit's member. */
static int64_t gpi__column_of(const gpi__placed_formula *placed, int64_t unit, int member) {
    int64_t half = gpi__half_of(placed);
    return placed->formula->has_halves
               ? unit / half * (placed->formula->parts * half) + unit % half + member * half
               : unit;
}

/* The column of an operand that has so many members. */
static int64_t gpi__column_among(const gpi__placed_formula *placed, int members, int64_t unit, int member) {
    return members > 1 ? gpi__column_of(placed, unit, member) : unit;
}

/* The block of units from `first` on: at most a tile of each part, or as many that follow one another. */
static void gpi__start_units(gpi__host_formula *h, int64_t first) {
    int64_t half = gpi__half_of(h->placed), left = gpi__units_of(h->placed) - first;
    h->first = first;
    h->slots = 1;
    h->units = gpi__smaller(left, GPI__HOST_TILE);
    h->column = first;
    if (!h->formula->has_halves)
        return;
    if (half <= GPI__HOST_TILE) /* whole groups */
        h->units = gpi__smaller(left, GPI__HOST_TILE / half * half);
    else
        h->units = gpi__smaller(h->units, half - first % half);
    if (!gpi__v_is_wide(h->formula))
        return;
    h->slots = half <= GPI__HOST_TILE ? 1 : h->formula->parts;
    h->column = gpi__column_of(h->placed, first, 0);
}

/* >>reading */

static int64_t gpi__place_by_strides(const gpi__any_strides *strides, int o, int64_t item, int64_t row,
                                     int64_t column) {
    const gpi__steps *steps = &strides->operands[o];
    int64_t at = row * steps->row + column * steps->column;
    int d;
    for (d = (int)strides->axes - 1; d >= 0; d--) {
        at += item % strides->extents[d] * steps->items[d];
        item /= strides->extents[d];
    }
    return at;
}

/* Which of its elements is that of a row or column. */
static int64_t gpi__index_in_operand(int kind, int64_t index, int64_t period) {
    if (!period)
        return index;
    return kind == GEMMEPI_BLOCKED ? index / period : index % period;
}

/* Where an operand's element lies. */
static int64_t gpi__place_of(const gpi__host_formula *h, int o, int64_t item, int64_t row, int64_t column) {
    const gpi__placed_operand *place = &h->placed->operands[o];
    int kind = h->formula->operands[o].kind;
    row = gpi__index_in_operand(kind, row, place->row_period);
    column = gpi__index_in_operand(kind, column, place->column_period);
    if (h->placed->strides)
        return gpi__place_by_strides(h->placed->strides, o, item, row, column);
    return item * place->batch_stride + (kind >= GEMMEPI_FULL         ? row * place->ld + column
                                         : kind == GEMMEPI_PER_ROW    ? row
                                         : kind == GEMMEPI_PER_COLUMN ? column
                                                                      : 0);
}

static double gpi__scale_of_operand(const gpi__host_formula *h, int o) {
    return h->placed->operands[o].scale ? (double)h->arguments->operand_scales[o][0] : 1;
}

/* table[index] of the unit. */
static double gpi__look_up_on_host(const void *tables, int o, int64_t index) {
    const gpi__host_formula *h = (const gpi__host_formula *)tables;
    const gpi__formula_operand *operand = &h->formula->operands[o];
    const int64_t *indices = h->unit.indices;
    double value;
    int64_t row = operand->kind == GEMMEPI_PER_ROW ? index : indices[GPI__INDEX_ROW];
    if (index < 0 || index >= gpi__table_length(h->placed, o))
        return 0;
    gpi__load_run(operand->dtype, h->arguments->operands[o],
                  gpi__place_of(h, o, indices[GPI__INDEX_ITEM], row, index), 1, 1, &value);
    return value * gpi__scale_of_operand(h, o);
}

static void gpi__read_into_unit(gpi__host_formula *h, int o, int64_t item, int64_t row, int64_t unit,
                                int member) {
    const gpi__formula_operand *operand = &h->formula->operands[o];
    int64_t at = gpi__place_of(h, o, item, row, gpi__column_among(h->placed, operand->members, unit, member));
    const void *base = h->arguments->operands[o];
    double *value = &h->unit.operands[o][member];
    if (operand->kind == GEMMEPI_NUMBER)
        *value = h->formula->accumulator == GEMMEPI_F32
                     ? (double)(float)h->arguments->numbers[o] /* as kernels */
                     : h->arguments->numbers[o];
    else if (operand->dtype == GEMMEPI_I64)
        h->unit.whole[o][member] = ((const int64_t *)base)[at];
    else if (operand->dtype == GEMMEPI_I32)
        h->unit.whole[o][member] = ((const int32_t *)base)[at];
    else
        gpi__load_run(operand->dtype, base, at, 1, 1, value);
    if (h->placed->operands[o].scale)
        *value *= gpi__scale_of_operand(h, o);
}

static void gpi__fill_unit(gpi__host_formula *h, int64_t item, int64_t row, int64_t r, int64_t unit) {
    int o, member, two = gpi__v_is_wide(h->formula);
    int64_t column, at;
    h->unit.scales_d = h->problem && h->placed->operands[GPI__RESULT].scale;
    if (h->unit.scales_d)
        h->unit.scale_d = gpi__host_scale(h->problem, h->arguments, GPI__D, item);
    h->unit.indices[GPI__INDEX_ROW] = row;
    h->unit.indices[GPI__INDEX_ITEM] = item;
    for (member = 0; member < gpi__members(h->formula, GPI__WIDE); member++) {
        h->unit.column[member] = column = gpi__column_of(h->placed, unit, member);
        at = (two ? column : unit) - h->column;
        h->unit.value[member] = h->slots > 1 ? h->v[member][r][unit - h->first]
                                             : h->v[at / GPI__HOST_TILE][r][at % GPI__HOST_TILE];
    }
    for (o = 0; o < h->formula->operand_count; o++)
        for (member = 0; member < h->formula->operands[o].members; member++)
            if (!h->formula->operands[o].output && h->formula->operands[o].used & GPI__BY_PLACE)
                gpi__read_into_unit(h, o, item, row, unit, member);
}

/* v of the block's columns, of `rows` rows. */
static void gpi__fill_tile(gpi__host_formula *h, int64_t item, int64_t row, int64_t rows) {
    int64_t parts = gpi__members(h->formula, h->formula->n_width), r;
    int64_t columns = h->slots == 1 ? parts * h->units : h->units;
    gpi__host_place at;
    int slot;
    for (slot = 0; slot < parts && h->formula->reads_value; slot++) {
        at.item = item;
        at.row = row;
        at.column =
            h->slots > 1 ? gpi__column_of(h->placed, h->first, slot) : h->column + slot * GPI__HOST_TILE;
        at.count = h->slots > 1 ? columns : columns - slot * GPI__HOST_TILE;
        if (at.count <= 0)
            continue;
        at.count = gpi__smaller(at.count, GPI__HOST_TILE);
        gpi__host_multiply(h->problem, h->arguments, &h->tile, at, rows, h->v[slot]);
        for (r = 0; r < rows; r++, at.row++)
            gpi__host_finish_product(h->problem, h->arguments, &h->tile, at, h->v[slot][r]);
    }
}

/* >>writing */

static void gpi__write_output(gpi__host_formula *h, int o, int64_t item, int64_t row, int64_t column,
                              double value) {
    int is_d = o == GPI__RESULT, dtype = h->formula->operands[o].dtype;
    double scale = !is_d         ? gpi__scale_of_operand(h, o)
                   : !h->problem ? 1
                                 : gpi__host_scale(h->problem, h->arguments, GPI__D, item);
    double scaled = h->placed->operands[o].scale ? value * scale : value;
    void *base = is_d ? h->arguments->pointers[GPI__D] : h->arguments->operands[o];
    gpi__host_amax(&h->amax[o], 1, &value);
    h->has_amax[o] = 1;
    gpi__store_run(dtype, base, gpi__place_of(h, o, item, row, column), 1, &scaled);
}

static void gpi__reduce(gpi__reduced *cell, int op, double x, int64_t place) {
    double before = cell->most;
    int is_nan = x != x, is_larger = is_nan ? before == before : x > before;
    if (op == GPI__REDUCE_SUM) {
        gpi__add_to(&cell->sum, x);
        return;
    }
    if (!cell->has_any || is_larger ||
        ((x == before || (is_nan && before != before)) && place < cell->place)) {
        cell->most = x;
        cell->place = place;
    }
    if (op == GPI__REDUCE_LOGSUMEXP && x - x == 0) { /* else it is 0 or all */
        if (!cell->has_any || !(before - before == 0)) {
            cell->sum.total = 1, cell->sum.lost = 0;
        } else if (x > before) {
            cell->sum.total *= exp(before - x), cell->sum.lost *= exp(before - x);
            gpi__add_to(&cell->sum, 1);
        } else {
            gpi__add_to(&cell->sum, exp(x - before));
        }
    }
    cell->has_any = 1;
}

/* Writes a reduction of an output, which starts anew. */
static void gpi__write_reduced(gpi__host_formula *h, int o, int64_t item, int64_t row, int64_t column,
                               gpi__reduced *cell) {
    const gpi__formula_operand *operand = &h->formula->operands[o];
    int op = (int)gpi__reductions[operand->reduction].op;
    int negates = gpi__reductions[operand->reduction].of_negatives;
    double value = cell->has_any ? cell->most : -HUGE_VAL, there;
    if (operand->accumulate) {
        gpi__load_run(operand->dtype, h->arguments->operands[o], gpi__place_of(h, o, item, row, column), 1, 1,
                      &there);
        gpi__add_to(&cell->sum, there);
    }
    if (op == GPI__REDUCE_SUM)
        value = gpi__total_of(&cell->sum);
    else if (op == GPI__REDUCE_ARGMAX)
        value = (double)cell->place;
    else if (op == GPI__REDUCE_LOGSUMEXP && value - value == 0)
        value += log(gpi__total_of(&cell->sum));
    gpi__write_output(h, o, item, row, column, negates ? -value : value);
    memset(cell, 0, sizeof *cell);
}

/* Writes a group's reduction once its last column has gone in: columns of a member come in order. */
static void gpi__finish_group(gpi__host_formula *h, int o, int64_t item, int64_t row, int64_t column,
                              gpi__reduced *cell) {
    if ((column + 1) % h->formula->operands[o].group == 0)
        gpi__write_reduced(h, o, item, row, column, cell);
}

/* The reduction's kind of an output that this walk makes, or 0; of no reduction FULL. */
static int gpi__made_here(const gpi__host_formula *h, int o) {
    const gpi__formula_operand *operand = &h->formula->operands[o];
    return operand->output && operand->used && (operand->kind == GEMMEPI_PER_COLUMN) == h->by_columns
               ? (int)operand->kind
               : 0;
}

static gpi__reduced *gpi__cell(const gpi__host_formula *h, int o, int64_t i) {
    return &h->cells[o * gpi__members(h->formula, GPI__WIDE) * GPI__HOST_TILE + i];
}

/* What a unit's outputs become; r: the row in the tile. */
static void gpi__load_unit(gpi__host_formula *h, int64_t item, int64_t row, int64_t r, int64_t unit) {
    int o, member;
    for (o = 0; o <= GPI__RESULT; o++) {
        const gpi__formula_operand *operand = &h->formula->operands[o];
        int kind = gpi__made_here(h, o);
        for (member = 0; member < operand->members && kind; member++) {
            double value = gpi__output_value(h->formula, h->values, o, member);
            int64_t column = gpi__column_among(h->placed, operand->members, unit, member);
            const gpi__reduction *reduction = &gpi__reductions[operand->reduction];
            int64_t cell = kind == GEMMEPI_PER_ROW      ? r
                           : kind == GEMMEPI_BLOCKED    ? member * GPI__HOST_TILE + r
                           : kind == GEMMEPI_PER_COLUMN ? member * GPI__HOST_TILE + unit - h->first
                                                        : 0;
            if (kind == GEMMEPI_FULL)
                gpi__write_output(h, o, item, row, column, value);
            else
                gpi__reduce(gpi__cell(h, o, cell), (int)reduction->op,
                            reduction->of_negatives ? -value : value, kind == GEMMEPI_PER_ROW ? column : row);
            if (kind == GEMMEPI_BLOCKED)
                gpi__finish_group(h, o, item, row, column, gpi__cell(h, o, cell));
        }
    }
}

/* Reductions of that kind, which are finished: of the rows from `row` on, of the block's columns, or of all. */
static void gpi__finish_kind(gpi__host_formula *h, int kind, int64_t item, int64_t row, int64_t rows) {
    int o, member;
    int64_t i;
    for (o = 0; o < h->formula->operand_count; o++) {
        const gpi__formula_operand *operand = &h->formula->operands[o];
        if (gpi__made_here(h, o) != kind ||
            (kind != GEMMEPI_PER_ROW && !h->placed->operands[o].batch_stride && item + 1 < h->placed->items))
            continue;
        for (i = 0; i < rows && kind != GEMMEPI_PER_COLUMN; i++)
            gpi__write_reduced(h, o, item, row + i, 0, gpi__cell(h, o, i));
        for (member = 0; member < operand->members && kind == GEMMEPI_PER_COLUMN; member++)
            for (i = 0; i < h->units; i++)
                gpi__write_reduced(h, o, item, 0,
                                   gpi__column_among(h->placed, operand->members, h->first + i, member),
                                   gpi__cell(h, o, member * GPI__HOST_TILE + i));
    }
}

/* >>walks */

static void gpi__walk_block(gpi__host_formula *h, int64_t item, int64_t row, int64_t rows) {
    int64_t r, u;
    gpi__fill_tile(h, item, row, rows);
    for (r = 0; r < rows; r++)
        for (u = h->first; u < h->first + h->units; u++) {
            gpi__fill_unit(h, item, row + r, r, u);
            gpi__evaluate(h->formula, &h->unit, h->values);
            gpi__load_unit(h, item, row + r, r, u);
        }
}

/* All but reductions of columns. */
static void gpi__walk_rows(gpi__host_formula *h) {
    int64_t item, row, rows;
    for (item = 0; item < h->placed->items; item++) {
        for (row = 0; row < h->placed->rows; row += rows) {
            rows = gpi__smaller(h->placed->rows - row, GPI__HOST_TILE);
            for (gpi__start_units(h, 0); h->units > 0; gpi__start_units(h, h->first + h->units))
                gpi__walk_block(h, item, row, rows);
            gpi__finish_kind(h, GEMMEPI_PER_ROW, item, row, rows);
        }
        gpi__finish_kind(h, GEMMEPI_SCALAR, item, 0, 1);
    }
}

static void gpi__walk_columns(gpi__host_formula *h) {
    int64_t item, row, rows;
    for (gpi__start_units(h, 0); h->units > 0; gpi__start_units(h, h->first + h->units))
        for (item = 0; item < h->placed->items; item++) {
            for (row = 0; row < h->placed->rows; row += rows) {
                rows = gpi__smaller(h->placed->rows - row, GPI__HOST_TILE);
                gpi__walk_block(h, item, row, rows);
            }
            gpi__finish_kind(h, GEMMEPI_PER_COLUMN, item, 0, 0);
        }
}

/* Whether there are outputs of that kind, or, if it is 0, of others. */
static int gpi__has_outputs(const gpi__formula *formula, int of_columns) {
    int o;
    for (o = 0; o <= GPI__RESULT; o++)
        if (formula->operands[o].output && formula->operands[o].used &&
            (formula->operands[o].kind == GEMMEPI_PER_COLUMN) == of_columns)
            return 1;
    return 0;
}

/* problem NULL: without v. Of arguments D's pointer, and all of the formula. */
static gemmepi_status gpi__host_formula_over(const gpi__problem *problem, const gpi__placed_formula *placed,
                                             const gpi__arguments *arguments,
                                             const gemmepi_allocator *allocator) {
    size_t parts = (size_t)gpi__members(placed->formula, GPI__WIDE);
    size_t cells = parts * GPI__HOST_TILE * (size_t)placed->formula->operand_count;
    size_t values = (size_t)placed->formula->parts * (size_t)placed->formula->node_count;
    gpi__host_formula *h = (gpi__host_formula *)gpi__new(
        allocator, sizeof *h + parts * sizeof *h->v + cells * sizeof *h->cells + values * sizeof *h->values);
    int o;
    if (!h)
        return GEMMEPI_OUT_OF_MEMORY;
    h->v = (double(*)[GPI__HOST_TILE][GPI__HOST_TILE])(void *)(h + 1);
    h->cells = (gpi__reduced *)(void *)(h->v + parts);
    h->values = (double *)(void *)(h->cells + cells);
    h->problem = problem;
    h->arguments = arguments;
    h->placed = placed;
    h->formula = placed->formula;
    h->unit.look_up = gpi__look_up_on_host;
    h->unit.tables = h;
    h->unit.indices[GPI__INDEX_ROWS] = placed->rows;
    h->unit.indices[GPI__INDEX_COLUMNS] = gpi__members(placed->formula, GPI__WIDE) * gpi__units_of(placed);
    h->unit.indices[GPI__INDEX_DEPTH] = placed->depth;
    h->by_columns = 1;
    if (gpi__has_outputs(h->formula, 1))
        gpi__walk_columns(h);
    h->by_columns = 0;
    if (gpi__has_outputs(h->formula, 0))
        gpi__walk_rows(h);
    for (o = 0; o < h->formula->operand_count; o++)
        if (placed->operands[o].amax && h->has_amax[o])
            gpi__store_run(GEMMEPI_F32, arguments->operand_amax[o], 0, 1, &h->amax[o]);
    if (problem && h->has_amax[GPI__RESULT])
        gpi__host_store_amax(problem, arguments, GPI__AMAX_D, h->amax[GPI__RESULT]);
    gpi__delete(allocator, h);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__host_formula_run(const gpi__problem *problem, const gpi__arguments *arguments,
                                            const gemmepi_allocator *allocator) {
    return gpi__host_formula_over(problem, &problem->formula->placed, arguments, allocator);
}

#endif
