/* The formula of a product: parsed for its row-major problem, its operands placed and checked. */
#ifndef GEMMEPI_PROBLEM_FORMULA_H
#define GEMMEPI_PROBLEM_FORMULA_H

#include "../formula/placed.h"
#include "view.h"

/* What a problem points to. Immutable once made, but for what the context that keeps it counts. It is of two blocks of memory: this, and
   the formula's. */
typedef struct gpi__kept_formula {
    gpi__placed_formula placed;
    gpi__view views[GPI__FORMULA_OPERANDS]; /* of all but NUMBERs, row-major, a vector as one line */
    uint8_t is_halved
        [GPI__FORMULA_OPERANDS];    /* inputs that are read through left, right, even or odd, or by index */
    gpi__formula *owned;            /* placed.formula, to be freed */
    struct gpi__kept_formula *next; /* of those that the context keeps */
    uint64_t hash;
    long references;
} gpi__kept_formula;

static void gpi__delete_formula(const gemmepi_allocator *allocator, gpi__kept_formula *kept) {
    if (!kept)
        return;
    gpi__delete(allocator, kept->owned);
    gpi__delete(allocator, kept);
}

/* Which inputs are read through left, right, even or odd, or by index. */
static void gpi__note_halves(const gpi__formula *formula, uint8_t *is_halved) {
    uint8_t below[GPI__GRAPH_NODES] = {0};
    int i, a;
    for (i = formula->node_count - 1; i >= 0; i--) {
        const gpi__node *node = &formula->nodes[i];
        int halves = below[i] || node->op == GPI__OP_PART;
        if ((below[i] && node->op == GPI__OP_OPERAND) || node->op == GPI__OP_LOOK_UP)
            is_halved[node->place] = 1;
        for (a = 0; a < 3 && halves; a++)
            if (node->args[a] >= 0)
                below[node->args[a]] = 1;
    }
}

/* The formula of a graph or, where that is NULL, of desc in memory of the allocator, for a product whose accumulator and D have these types. */
static gemmepi_status gpi__make_formula(const gemmepi_allocator *allocator, const gemmepi_matmul_desc *desc,
                                        const gpi__graph *graph, int accumulator, gemmepi_dtype d,
                                        gpi__kept_formula **result) {
    gpi__kept_formula *kept;
    gpi__formula *formula;
    gpi__formula_desc from;
    gemmepi_status status;
    memset(&from, 0, sizeof from);
    from.text = desc->formula;
    from.operands = desc->operands;
    from.operand_count = desc->operand_count;
    from.value = desc->formula_value;
    from.result = desc->formula_result;
    from.exchanged = desc->order == GEMMEPI_COLUMN_MAJOR;
    from.accumulator = (gemmepi_dtype)accumulator;
    from.d = d;
    status =
        graph ? gpi__formula_of(allocator, graph, &formula) : gpi__parse_formula(allocator, &from, &formula);
    if (status)
        return status;
    kept = (gpi__kept_formula *)gpi__new(allocator, sizeof *kept);
    if (!kept) {
        gpi__delete(allocator, formula);
        return GEMMEPI_OUT_OF_MEMORY;
    }
    kept->placed.formula = kept->owned = formula;
    gpi__note_halves(formula, kept->is_halved);
    *result = kept;
    return GEMMEPI_OK;
}

/* D's columns, where the product has n. */
static int64_t gpi__d_columns(const gpi__kept_formula *kept, int64_t n) {
    const gpi__formula *formula = kept->placed.formula;
    return gpi__columns_of_width(formula, n, formula->operands[GPI__RESULT].width);
}

/* Whether D is stored. */
static int gpi__stores_d(const gpi__kept_formula *kept) {
    return kept->placed.formula->operands[GPI__RESULT].used;
}

/* Of a period no more than there are of rows or columns. */
static int64_t gpi__least_of(int kind, int64_t extent, int64_t period) {
    int64_t own = gpi__extent_of_operand(kind, extent, period);
    return own < extent ? own : extent;
}

/* The extents of an operand, of which periods leave what one table has. */
static void gpi__lay_out_operand(gpi__kept_formula *kept, int i, int64_t given_ld) {
    const gpi__placed_formula *placed = &kept->placed;
    const gpi__formula_operand *operand = &placed->formula->operands[i];
    const gpi__placed_operand *place = &placed->operands[i];
    gpi__view *view = &kept->views[i];
    int64_t columns = gpi__columns_of_width(placed->formula, placed->columns, operand->width);
    int kind = operand->kind;
    view->dtype = operand->dtype;
    view->bits = gpi__bits_of(operand->dtype);
    view->alignment = view->bits < 8 ? 1 : view->bits / 8;
    view->written = operand->output;
    view->lines = kind >= GEMMEPI_FULL ? gpi__least_of(kind, placed->rows, place->row_period) : 1;
    view->length = kind == GEMMEPI_PER_ROW  ? gpi__least_of(kind, placed->rows, place->row_period)
                   : kind == GEMMEPI_SCALAR ? 1
                                            : gpi__least_of(kind, columns, place->column_period);
    if (operand->used & GPI__BY_INDEX)
        view->length = gpi__table_length(placed, i);
    view->ld = given_ld ? given_ld : place->column_period && kind == GEMMEPI_FULL ? place->column_period : 0;
    view->batch_stride = place->batch_stride;
}

/* An output covers the batch with one item where it is along D's lines or one number; a place among rows would not say of which item. */
static int gpi__may_cover_batch(const gpi__formula_operand *operand) {
    return (operand->kind == GEMMEPI_PER_COLUMN || operand->kind == GEMMEPI_SCALAR) &&
           gpi__reductions[operand->reduction].op != GPI__REDUCE_ARGMAX;
}

/* Of 4 bits a line has whole bytes, and so has what is from one to the next. who: desc's field; of: behind its own fields, for sentences. */
static gemmepi_status gpi__check_packed(const gpi__view *view, const char *who, const char *of, int64_t ld,
                                        int64_t batch_stride) {
    const char *type = gpi__type(view->dtype);
    if (!gpi__is_packed(view->dtype))
        return GEMMEPI_OK;
    GPI__INVALID_IF(ld % 2 || batch_stride % 2,
                    "desc.%s.%s%s is %lld; of %s a byte has two elements, so accepted are even numbers", who,
                    ld % 2 ? "ld" : "batch_stride", of, (long long)(ld % 2 ? ld : batch_stride), type);
    GPI__INVALID_IF(view->length % 2,
                    "desc.%s.dtype%s is %s, of which a byte has two elements, but a line as stored has %lld; "
                    "accepted are even numbers",
                    who, of, type, (long long)view->length);
    return GEMMEPI_OK;
}

/* The same of an operand, which may have a period. */
static gemmepi_status gpi__check_packed_operand(const gpi__kept_formula *kept, const gemmepi_operand *given,
                                                int i) {
    int64_t period = given->kind == GEMMEPI_BLOCKED ? 0 : kept->placed.operands[i].column_period;
    char who[32], of[80];
    GPI__INVALID_IF(gpi__is_packed(kept->views[i].dtype) && period % 2,
                    "desc.operands[%d].%s (of %s) is %lld; of %s a byte has two elements, so accepted are "
                    "even numbers",
                    i, kept->placed.formula->exchanged ? "row_period" : "column_period", given->name,
                    (long long)period, gpi__type(kept->views[i].dtype));
    snprintf(who, sizeof who, "operands[%d]", i);
    snprintf(of, sizeof of, " (of %s)", given->name);
    return gpi__check_packed(&kept->views[i], who, of, given->ld, given->batch_stride);
}

static gemmepi_status gpi__place_formula_operand(gpi__kept_formula *kept, const gemmepi_operand *given, int i,
                                                 int64_t items) {
    const gpi__formula *formula = kept->placed.formula;
    const gpi__formula_operand *operand = &formula->operands[i];
    gpi__placed_operand *place = &kept->placed.operands[i];
    gpi__view *view = &kept->views[i];
    char name[32];
    gemmepi_status status;
    GPI__INVALID_IF(given->tensor,
                    "desc.operands[%d].tensor (of %s) is given; it goes with element-wise operations: "
                    "leave it NULL, and say how the operand is stored by ld and batch_stride",
                    i, given->name);
    if (operand->kind == GEMMEPI_NUMBER)
        return GEMMEPI_OK;
    gpi__place_periods(given, formula->exchanged, place);
    place->batch_stride = given->batch_stride;
    place->scale = given->scale.mode != GEMMEPI_SCALE_NONE;
    place->amax = given->amax;
    gpi__lay_out_operand(kept, i, given->ld);
    status = gpi__check_packed_operand(kept, given, i);
    if (status)
        return status;
    snprintf(name, sizeof name, "operands[%d]", i);
    status = gpi__check_view(view, name, items);
    if (!status && operand->output && (view->batch_stride || !gpi__may_cover_batch(operand)))
        status = gpi__check_output(view, name, items);
    GPI__REFUSE_IF(status, status, "%s (the formula calls it %s)", gpi__error_text, given->name);
    place->ld = view->ld;
    place->batch_stride = view->batch_stride;
    return GEMMEPI_OK;
}

/* Extents of the row-major problem, and how many items there are of what has rows; d is D's view. */
static gemmepi_status gpi__place_formula(gpi__kept_formula *kept, const gemmepi_matmul_desc *desc,
                                         const int64_t extents[5], const gpi__view *d) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    kept->placed.rows = extents[0];
    kept->placed.columns = extents[1];
    kept->placed.depth = extents[2];
    kept->placed.items = extents[3];
    kept->placed.operands[GPI__RESULT].ld = d->ld;
    kept->placed.operands[GPI__RESULT].batch_stride = d->batch_stride;
    kept->placed.operands[GPI__RESULT].scale = d->scale != 0;
    kept->placed.operands[GPI__RESULT].amax = (desc->flags & GEMMEPI_AMAX_D) != 0;
    for (i = 0; i < kept->placed.formula->operand_count && !status; i++) {
        int kind = kept->placed.formula->operands[i].kind;
        status =
            gpi__place_formula_operand(kept, &desc->operands[i], i, extents[gpi__has_rows(kind) ? 4 : 3]);
    }
    return status;
}

/* Whether an output has an element though D may have none: a reduction over nothing. */
static int gpi__reduces_nothing(const gpi__kept_formula *kept) {
    const gpi__formula *formula = kept->placed.formula;
    int i;
    for (i = 0; i < formula->operand_count; i++)
        if (formula->operands[i].output && kept->views[i].bytes)
            return 1;
    return 0;
}

/* >>keeping: equal formulas of a context are one */

/* Bytes of nodes and names. */
static size_t gpi__rest_of_formula(const gpi__formula *formula) {
    return formula->size - (size_t)((const char *)formula->nodes - (const char *)formula);
}

static uint64_t gpi__hash_formula(const gpi__kept_formula *kept) {
    const gpi__formula *formula = kept->placed.formula;
    size_t head = offsetof(gpi__placed_formula, rows), fields = offsetof(gpi__formula, nodes);
    uint64_t hash = gpi__hash((const char *)&kept->placed + head, sizeof kept->placed - head);
    hash = gpi__hash_word(hash, gpi__hash(formula, fields));
    return gpi__hash_word(hash, gpi__hash(formula->nodes, gpi__rest_of_formula(formula)));
}

static int gpi__same_formula(const gpi__kept_formula *x, const gpi__kept_formula *y) {
    const gpi__formula *f = x->placed.formula, *g = y->placed.formula;
    size_t head = offsetof(gpi__placed_formula, rows), fields = offsetof(gpi__formula, nodes);
    return x->hash == y->hash && f->size == g->size && memcmp(f, g, fields) == 0 &&
           memcmp(f->nodes, g->nodes, gpi__rest_of_formula(f)) == 0 &&
           memcmp((const char *)&x->placed + head, (const char *)&y->placed + head,
                  sizeof x->placed - head) == 0;
}

#endif
