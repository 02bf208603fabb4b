/* Epilogues in plain C, formulas as well as what flags say, and formulas over tensors: v, if there is one, then the graph in double, a run of units
   at a time, each output rounded once. Nothing is as large as a matrix or a row. */
#ifndef GEMMEPI_HOST_FORMULA_H
#define GEMMEPI_HOST_FORMULA_H

#include "../problem/epilogue_graph.h"
#include "../problem/formula_arguments.h"
#include "product.h"

/* A reduction under way. */
typedef struct gpi__reduced {
    gpi__sum sum;  /* of LOGSUMEXP: of exponentials above most */
    double most;   /* NaN is the largest */
    int64_t place; /* the lowest of the largest */
    int has_any;
} gpi__reduced;

/* Where a finished product lies, if it is not to be made. */
typedef struct gpi__host_given {
    const gpi__view *view;
    const void *data;
} gpi__host_given;

typedef struct gpi__host_formula {
    const gpi__problem *problem; /* NULL: there is no v, and D has no amax */
    const gpi__arguments *arguments;
    const gpi__host_given *given; /* NULL: the product is made */
    const gpi__formula *formula;
    const gpi__placed_formula *placed;
    unsigned kinds; /* bits: of the outputs that this walk makes */
    int64_t first;  /* the first unit of the run */
    int spread;     /* v's members lie next to each other, in as many tiles; else each has its own tile */
    gpi__host_tile tile; /* 32 KB, which are not cleared */
    gpi__run run;
    double amax[GPI__FORMULA_OPERANDS + 1];
    uint8_t has_amax[GPI__FORMULA_OPERANDS + 1];
    double (*v)[GPI__HOST_TILE][GPI__HOST_TILE]; /* a tile of each part */
    gpi__reduced *cells; /* of each output: by rows of a tile, or by columns of all parts' */
} gpi__host_formula;

/* >>which columns belong to a unit */

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

/* The run of units from `first` on whose columns are equally far apart; of 0 behind the last. */
static void gpi__start_units(gpi__host_formula *h, int64_t first) {
    int64_t half = gpi__half_of(h->placed),
            count = gpi__smaller(gpi__units_of(h->placed) - first, GPI__UNITS);
    int member, has_halves = h->formula->has_halves;
    if (has_halves && half > 1)
        count = gpi__smaller(count, half - first % half);
    h->first = first;
    h->run.count = (int)count;
    h->run.step = has_halves && half == 1 ? h->formula->parts : 1;
    h->spread = h->run.step > 1 && gpi__members(h->formula, h->formula->n_width) > 1;
    for (member = 0; member < gpi__members(h->formula, GPI__WIDE); member++)
        h->run.columns[member] = gpi__column_of(h->placed, first, member);
}

/* Of something with so many members: the column of one in the run's first unit, and how far they are apart. */
typedef struct gpi__host_columns {
    int64_t first, step;
} gpi__host_columns;

static gpi__host_columns gpi__columns_of_run(const gpi__host_formula *h, int members, int member) {
    gpi__host_columns columns = {members > 1 ? h->run.columns[member] : h->first,
                                 members > 1 ? h->run.step : 1};
    return columns;
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
    const gpi__placed_operand *place = &h->placed->operands[o];
    const void *scales = !place->scale      ? NULL
                         : o == GPI__RESULT ? h->arguments->pointers[GPI__SCALE_D]
                                            : (const void *)h->arguments->operand_scales[o];
    return scales ? (double)((const float *)scales)[h->run.indices[GPI__INDEX_ITEM] * place->scale_stride]
                  : 1;
}

/* table[index] of the run's row. */
static double gpi__look_up_on_host(const void *tables, int o, int64_t index) {
    const gpi__host_formula *h = (const gpi__host_formula *)tables;
    const gpi__formula_operand *operand = &h->formula->operands[o];
    const int64_t *indices = h->run.indices;
    double value;
    int64_t row = operand->kind == GEMMEPI_PER_ROW ? index : indices[GPI__INDEX_ROW];
    if (index < 0 || index >= gpi__table_length(h->placed, o))
        return 0;
    gpi__load_run(operand->dtype, h->arguments->operands[o],
                  gpi__place_of(h, o, indices[GPI__INDEX_ITEM], row, index), 1, 1, &value);
    return value * gpi__scale_of_operand(h, o);
}

static void gpi__read_run(const gpi__host_formula *h, const gpi__node *n, gpi__host_columns columns,
                          gpi__cells *to) {
    int o = n->place, dtype = h->formula->operands[o].dtype, i;
    int is_number = h->formula->operands[o].kind == GEMMEPI_NUMBER; /* on the host, in F64 */
    int64_t item = h->run.indices[GPI__INDEX_ITEM], row = h->run.indices[GPI__INDEX_ROW];
    int64_t at = gpi__place_of(h, o, item, row, columns.first);
    int64_t step = gpi__place_of(h, o, item, row, columns.first + columns.step) - at;
    int is_line = !h->placed->operands[o].column_period && n->type != GPI__OF_WHOLE;
    const void *base = is_number ? &h->arguments->numbers[o] : h->arguments->operands[o];
    if (is_line)
        gpi__load_run(dtype, base, at, step, h->run.count, to->numbers);
    for (i = 0; i < h->run.count && !is_line; i++) {
        at = gpi__place_of(h, o, item, row, columns.first + i * columns.step);
        if (n->type != GPI__OF_WHOLE)
            gpi__load_run(dtype, base, at, 1, 1, &to->numbers[i]);
        else
            to->whole[i] = dtype == GEMMEPI_I64 ? ((const int64_t *)base)[at] : ((const int32_t *)base)[at];
    }
    for (i = 0; i < h->run.count && h->placed->operands[o].scale; i++)
        to->numbers[i] *= gpi__scale_of_operand(h, o);
    for (i = 0; i < h->run.count && is_number && h->formula->accumulator == GEMMEPI_F32; i++)
        to->numbers[i] = (double)(float)to->numbers[i]; /* as kernels */
}

static void gpi__fill_value(const gpi__host_formula *h, int64_t r, int member, gpi__cells *to) {
    int i;
    if (!h->spread)
        memcpy(to->numbers, h->v[member][r], sizeof to->numbers);
    for (i = 0; i < h->run.count && h->spread; i++, member += (int)h->run.step)
        to->numbers[i] = h->v[member / GPI__HOST_TILE][r][member % GPI__HOST_TILE];
}

/* What the run reads; r: the row in the tile. */
static void gpi__fill_run(gpi__host_formula *h, int64_t r) {
    const gpi__formula *f = h->formula;
    int node, member;
    for (node = 0; node < f->node_count; node++) {
        const gpi__node *n = &f->nodes[node];
        for (member = 0; member < gpi__members(f, n->width) && n->op < GPI__LEAVES; member++) {
            gpi__cells *to = gpi__cells_of(&h->run, node, member);
            if (n->op == GPI__OP_VALUE)
                gpi__fill_value(h, r, member, to);
            else if (n->op == GPI__OP_OPERAND)
                gpi__read_run(h, n, gpi__columns_of_run(h, f->operands[n->place].members, member), to);
        }
    }
}

/* v of the run's columns, of `rows` rows. */
static void gpi__fill_tile(gpi__host_formula *h, int64_t row, int64_t rows) {
    int parts = gpi__members(h->formula, h->formula->n_width), slot;
    const gpi__view *given = h->given ? h->given->view : NULL;
    gpi__host_place at;
    int64_t r;
    at.item = h->run.indices[GPI__INDEX_ITEM];
    for (slot = 0; slot < parts && h->formula->reads_value; slot++) {
        at.row = row;
        at.column = gpi__columns_of_run(h, parts, h->spread ? 0 : slot).first;
        at.count = h->run.count;
        if (h->spread) {
            at.column += slot * GPI__HOST_TILE;
            at.count = gpi__smaller(parts * at.count - slot * GPI__HOST_TILE, GPI__HOST_TILE);
        }
        if (at.count <= 0)
            continue;
        if (!given)
            gpi__host_multiply(h->problem, h->arguments, &h->tile, at, rows, h->v[slot]);
        for (r = 0; r < rows; r++, at.row++) {
            if (given)
                gpi__load_run(given->dtype, h->given->data, gpi__index_of(given, at.item, at.row, at.column),
                              1, at.count, h->v[slot][r]);
            gpi__host_finish_product(h->problem, h->arguments, at, h->v[slot][r]);
        }
    }
}

/* >>writing */

static int gpi__wants_amax(const gpi__host_formula *h, int o) {
    return o == GPI__RESULT ? h->problem && gpi__has_operand(h->problem, GPI__AMAX_D)
                            : h->placed->operands[o].amax != 0;
}

/* `count` values of an output. */
static void gpi__write_output(gpi__host_formula *h, int o, int64_t row, gpi__host_columns columns, int count,
                              const double *values) {
    int64_t item = h->run.indices[GPI__INDEX_ITEM], at = gpi__place_of(h, o, item, row, columns.first);
    int64_t step = count > 1 ? gpi__place_of(h, o, item, row, columns.first + columns.step) - at : 1;
    double scale = gpi__scale_of_operand(h, o), scaled[GPI__UNITS];
    int i;
    if (gpi__wants_amax(h, o)) {
        gpi__host_amax(&h->amax[o], count, values);
        h->has_amax[o] = 1;
    }
    for (i = 0; i < count && h->placed->operands[o].scale; i++)
        scaled[i] = values[i] * scale;
    gpi__store_strided(h->formula->operands[o].dtype,
                       o == GPI__RESULT ? h->arguments->pointers[GPI__D] : h->arguments->operands[o], at,
                       step, count, h->placed->operands[o].scale ? scaled : values);
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
static void gpi__write_reduced(gpi__host_formula *h, int o, int64_t row, int64_t column, gpi__reduced *cell) {
    gpi__host_columns columns = {column, 1};
    const gpi__formula_operand *operand = &h->formula->operands[o];
    int op = (int)gpi__reductions[operand->reduction].op;
    int negates = gpi__reductions[operand->reduction].of_negatives;
    double value = cell->has_any ? cell->most : -HUGE_VAL, there;
    if (operand->accumulate) {
        gpi__load_run(operand->dtype, h->arguments->operands[o],
                      gpi__place_of(h, o, h->run.indices[GPI__INDEX_ITEM], row, column), 1, 1, &there);
        gpi__add_to(&cell->sum, there);
    }
    if (op == GPI__REDUCE_SUM)
        value = gpi__total_of(&cell->sum);
    else if (op == GPI__REDUCE_ARGMAX)
        value = (double)cell->place;
    else if (op == GPI__REDUCE_LOGSUMEXP && value - value == 0)
        value += log(gpi__total_of(&cell->sum));
    value = negates ? -value : value;
    gpi__write_output(h, o, row, columns, 1, &value);
    memset(cell, 0, sizeof *cell);
}

/* The kind of an output that this walk makes, or 0; FULL: of no reduction. */
static int gpi__made_here(const gpi__host_formula *h, int o) {
    const gpi__formula_operand *operand = &h->formula->operands[o];
    return operand->output && operand->used && h->kinds >> operand->kind & 1 ? (int)operand->kind : 0;
}

static gpi__reduced *gpi__cell(const gpi__host_formula *h, int o, int64_t i) {
    return &h->cells[o * gpi__members(h->formula, GPI__WIDE) * GPI__HOST_TILE + i];
}

/* The run's values of an output go into its reduction, unit by unit; r: the row in the tile. A group's is written once its last column has gone
   in: columns of a member come in order. */
static void gpi__reduce_run(gpi__host_formula *h, int o, int64_t row, int64_t r) {
    const gpi__formula_operand *operand = &h->formula->operands[o];
    const gpi__reduction *of = &gpi__reductions[operand->reduction];
    gpi__reduced *cells = gpi__cell(h, o, 0);
    gpi__host_columns columns[GPI__MOST_PARTS];
    double room[GPI__MOST_PARTS][GPI__UNITS];
    const double *values[GPI__MOST_PARTS];
    int kind = operand->kind, member, i;
    for (member = 0; member < operand->members; member++) {
        columns[member] = gpi__columns_of_run(h, operand->members, member);
        values[member] = gpi__output_values(&h->run, o, member, room[member]);
    }
    for (i = 0; i < h->run.count; i++)
        for (member = 0; member < operand->members; member++) {
            int64_t column = columns[member].first + i * columns[member].step;
            gpi__reduced *cell = cells + (kind == GEMMEPI_PER_ROW      ? r
                                          : kind == GEMMEPI_BLOCKED    ? member * GPI__HOST_TILE + r
                                          : kind == GEMMEPI_PER_COLUMN ? member * GPI__HOST_TILE + i
                                                                       : 0);
            gpi__reduce(cell, (int)of->op, of->of_negatives ? -values[member][i] : values[member][i],
                        kind == GEMMEPI_PER_ROW ? column : row);
            if (kind == GEMMEPI_BLOCKED && (column + 1) % operand->group == 0)
                gpi__write_reduced(h, o, row, column, cell);
        }
}

static void gpi__finish_run(gpi__host_formula *h, int64_t row, int64_t r) {
    double room[GPI__UNITS];
    int o, member;
    for (o = gpi__next_place(h->formula, -1); o <= GPI__RESULT; o = gpi__next_place(h->formula, o)) {
        int kind = gpi__made_here(h, o), members = h->formula->operands[o].members;
        for (member = 0; member < members && kind == GEMMEPI_FULL; member++)
            gpi__write_output(h, o, row, gpi__columns_of_run(h, members, member), h->run.count,
                              gpi__output_values(&h->run, o, member, room));
        if (kind && kind != GEMMEPI_FULL)
            gpi__reduce_run(h, o, row, r);
    }
}

/* Reductions of that kind, which are finished: of the rows from `row` on, of the block's columns, or of all. */
static void gpi__finish_kind(gpi__host_formula *h, int kind, int64_t row, int64_t rows) {
    int64_t item = h->run.indices[GPI__INDEX_ITEM], i;
    int o, member;
    for (o = 0; o < h->formula->operand_count; o++) {
        const gpi__formula_operand *operand = &h->formula->operands[o];
        if (gpi__made_here(h, o) != kind ||
            (kind != GEMMEPI_PER_ROW && !h->placed->operands[o].batch_stride && item + 1 < h->placed->items))
            continue;
        for (i = 0; i < rows && kind != GEMMEPI_PER_COLUMN; i++)
            gpi__write_reduced(h, o, row + i, 0, gpi__cell(h, o, i));
        for (member = 0; member < operand->members && kind == GEMMEPI_PER_COLUMN; member++) {
            gpi__host_columns columns = gpi__columns_of_run(h, operand->members, member);
            for (i = 0; i < h->run.count; i++)
                gpi__write_reduced(h, o, 0, columns.first + i * columns.step,
                                   gpi__cell(h, o, member * GPI__HOST_TILE + i));
        }
    }
}

/* >>walks */

static void gpi__start_item(gpi__host_formula *h, int64_t item) {
    h->run.indices[GPI__INDEX_ITEM] = item;
    h->run.scales_d = h->placed->operands[GPI__RESULT].scale;
    h->run.scale_d = gpi__scale_of_operand(h, GPI__RESULT);
}

static void gpi__walk_block(gpi__host_formula *h, int64_t row, int64_t rows) {
    int64_t r;
    gpi__fill_tile(h, row, rows);
    for (r = 0; r < rows; r++) {
        h->run.indices[GPI__INDEX_ROW] = row + r;
        gpi__fill_run(h, r);
        gpi__evaluate(&h->run);
        gpi__finish_run(h, row + r, r);
    }
}

/* Without v each row by itself, as memory mostly has it, if it is longer than a run. */
static void gpi__walk_rows(gpi__host_formula *h) {
    int together = h->formula->reads_value || h->placed->columns <= GPI__UNITS;
    int64_t most = together ? GPI__HOST_TILE : 1, item, row, rows;
    for (item = 0; item < h->placed->items; item++) {
        gpi__start_item(h, item);
        for (row = 0; row < h->placed->rows; row += rows) {
            rows = gpi__smaller(h->placed->rows - row, most);
            for (gpi__start_units(h, 0); h->run.count > 0; gpi__start_units(h, h->first + h->run.count))
                gpi__walk_block(h, row, rows);
            gpi__finish_kind(h, GEMMEPI_PER_ROW, row, rows);
        }
        gpi__finish_kind(h, GEMMEPI_SCALAR, 0, 1);
    }
}

static void gpi__walk_columns(gpi__host_formula *h) {
    int64_t item, row, rows;
    for (gpi__start_units(h, 0); h->run.count > 0; gpi__start_units(h, h->first + h->run.count))
        for (item = 0; item < h->placed->items; item++) {
            gpi__start_item(h, item);
            for (row = 0; row < h->placed->rows; row += rows) {
                rows = gpi__smaller(h->placed->rows - row, GPI__HOST_TILE);
                gpi__walk_block(h, row, rows);
            }
            gpi__finish_kind(h, GEMMEPI_PER_COLUMN, 0, 0);
        }
}

/* Bits: the kinds of outputs. */
static unsigned gpi__output_kinds(const gpi__formula *formula) {
    unsigned kinds = 0;
    int o;
    for (o = 0; o <= GPI__RESULT; o++)
        if (formula->operands[o].output && formula->operands[o].used)
            kinds |= 1u << formula->operands[o].kind;
    return kinds;
}

/* Reductions of columns want a walk of their own where there are others: ahead of the one that writes what is read in place. Without v
   and these it is by rows, too. */
static void gpi__walk_kinds(gpi__host_formula *h) {
    unsigned kinds = gpi__output_kinds(h->formula), by_rows = kinds & ~(1u << GEMMEPI_PER_COLUMN);
    int by_columns = !(by_rows & ~(1u << GEMMEPI_FULL)) && (kinds != by_rows || h->formula->reads_value);
    h->kinds = by_columns ? kinds : kinds & ~by_rows;
    if (h->kinds)
        gpi__walk_columns(h);
    h->kinds = by_rows;
    if (!by_columns)
        gpi__walk_rows(h);
}

/* What a walk needs of memory beside itself: on the stack, unless it is more. */
#define GPI__HOST_ROOM 6144

/* problem NULL: without v. Of arguments D's pointer, and all of the formula. */
static gemmepi_status gpi__host_formula_over(const gpi__problem *problem, const gpi__placed_formula *placed,
                                             const gpi__arguments *arguments, const gpi__host_given *given,
                                             const gemmepi_allocator *allocator) {
    size_t parts = (size_t)gpi__members(placed->formula, GPI__WIDE);
    size_t cells = parts * GPI__HOST_TILE * (size_t)placed->formula->operand_count;
    size_t values = (size_t)placed->formula->parts * (size_t)placed->formula->node_count;
    size_t size = parts * sizeof(double[GPI__HOST_TILE][GPI__HOST_TILE]) + cells * sizeof(gpi__reduced) +
                  values * sizeof(gpi__cells);
    double room[GPI__HOST_ROOM];
    void *more = size > sizeof room ? gpi__new(allocator, size) : NULL;
    gpi__host_formula h;
    int o;
    if (size > sizeof room && !more)
        return GEMMEPI_OUT_OF_MEMORY;
    memset(&h, 0, offsetof(gpi__host_formula, tile));
    memset(&h.run, 0, sizeof h - offsetof(gpi__host_formula, run));
    h.v = (double(*)[GPI__HOST_TILE][GPI__HOST_TILE])(more ? more : (void *)room);
    h.cells = (gpi__reduced *)(void *)(h.v + parts);
    memset(h.cells, 0, cells * sizeof *h.cells);
    h.run.values = (gpi__cells *)(void *)(h.cells + cells);
    h.problem = problem;
    h.arguments = arguments;
    h.given = given;
    h.placed = placed;
    h.run.formula = h.formula = placed->formula;
    h.run.look_up = gpi__look_up_on_host;
    h.run.tables = &h;
    h.run.indices[GPI__INDEX_ROWS] = placed->rows;
    h.run.indices[GPI__INDEX_COLUMNS] = gpi__members(placed->formula, GPI__WIDE) * gpi__units_of(placed);
    h.run.indices[GPI__INDEX_DEPTH] = placed->depth;
    gpi__walk_kinds(&h);
    for (o = 0; o < h.formula->operand_count; o++)
        if (h.has_amax[o])
            gpi__store_run(placed->operands[o].amax, arguments->operand_amax[o], 0, 1, &h.amax[o]);
    if (h.has_amax[GPI__RESULT])
        gpi__host_store_amax(problem, arguments, GPI__AMAX_D, h.amax[GPI__RESULT]);
    gpi__delete(allocator, more);
    return GEMMEPI_OK;
}

/* A product with what its flags say, or that over a product that is given; there is always room. */
static void gpi__host_flags(const gpi__problem *problem, const gpi__arguments *arguments,
                            const gpi__host_given *given) {
    const float *scales[] = {(const float *)arguments->pointers[GPI__SCALE_AUX],
                             (const float *)arguments->pointers[GPI__SCALE_RESIDUAL]};
    void *operands[GPI__SLOTS + 1];
    gpi__arguments own = *arguments;
    gpi__flags_formula flags;
    gpi__formula_of_flags(problem, &flags);
    memcpy(operands, &arguments->pointers[GPI__AUX], GPI__SLOTS * sizeof operands[0]);
    operands[GPI__IN_FACTOR] = arguments->pointers[GPI__ROW_FACTOR];
    own.operands = operands;
    own.operand_scales = scales;
    own.operand_amax = &arguments->pointers[GPI__AMAX_AUX]; /* AUX is the first */
    (void)gpi__host_formula_over(problem, &flags.placed, &own, given, NULL);
    if (gpi__summed_operand(problem) >= 0)
        gpi__host_sum_operand(problem, arguments);
}

/* A product with its formula, or its flags. */
static gemmepi_status gpi__host_product(const gpi__problem *problem, const gpi__arguments *arguments,
                                        const gemmepi_allocator *allocator) {
    if (GPI__FORMULA(problem))
        return gpi__host_formula_over(problem, &problem->formula->placed, arguments, NULL, allocator);
    gpi__host_flags(problem, arguments, NULL);
    return GEMMEPI_OK;
}

#endif
