/* A formula that has been parsed and checked: one block that points nowhere else, of what its outputs need alone. */
#ifndef GEMMEPI_FORMULA_FORMULA_H
#define GEMMEPI_FORMULA_FORMULA_H

#include "parse.h"

enum { GPI__BY_PLACE = 1, GPI__BY_INDEX = 2 };

/* Of periods, of a BLOCKED operand: eight columns side by side, the first a multiple of eight, are of one block. */
enum { GPI__RUNS_IN_BLOCKS = 4 };

/* What code depends on of an operand, and its name. */
typedef struct gpi__formula_operand {
    uint8_t kind, width, dtype, output; /* as in gemmepi_operand, dtype never DEFAULT */
    uint8_t accumulate, reduction;      /* reduction: a row of gpi__reductions, 0: none */
    uint8_t used;                       /* bits: what is read, or an output (of D: it is stored); BY_INDEX */
    uint8_t members;                    /* of a unit: 1, or the parts of what is WIDE beside halves */
    uint8_t periods; /* 1: of rows, 2: of columns; of BLOCKED 1 and 2: blocks have more than one */
    int16_t node;    /* of an output: what is stored or goes into the reduction */
    int16_t name;    /* in formula.names */
    int32_t group;   /* of a reduction of groups of columns: their columns, else 0 */
} gpi__formula_operand;

/* Where in the text something stands first that may be refused once extents and scales are known; -1: it is not there. */
typedef struct gpi__formula_places {
    int16_t halves, uniform, rounded, indices[GPI__INDICES];
} gpi__formula_places;

typedef struct gpi__formula {
    size_t size; /* bytes of all */
    int32_t node_count, operand_count;
    int32_t accumulator, d; /* dtypes */
    int32_t n_width, mode;
    int32_t parts; /* of what is WIDE, 2 if nothing says otherwise */
    int32_t
        has_halves; /* a unit has a column of each part: what is WIDE has as many members; else it is one column */
    int32_t reads_value, uses_uniform;
    int32_t is_short; /* what has a short form takes it: 16 bits at most come of each */
    uint32_t indices; /* bits of the GPI__INDEX_ that are read */
    int32_t
        exchanged; /* 1: of column-major order: kinds, indices and reductions are those of the row-major problem, but uniform
                          counts the caller's rows and columns */
    int32_t rounds; /* rounded() is read, which depends on the scale of D */
    int64_t group;  /* columns; 0: halves are of the whole */
    int16_t value_name;
    gpi__formula_operand operands[GPI__FORMULA_OPERANDS + 1];
    const gpi__node
        *nodes; /* what stands before it, and what it and names point to, makes formulas equal or not */
    const char *names;
    gpi__formula_places places;
} gpi__formula;

/* How many values a node has in a unit. */
static int gpi__members(const gpi__formula *formula, int width) {
    return formula->has_halves && width == GPI__WIDE ? formula->parts : 1;
}

/* The operands' places, and D's. */
static int gpi__next_place(const gpi__formula *formula, int i) {
    return i + 1 < formula->operand_count || i >= GPI__RESULT ? i + 1 : (int)GPI__RESULT;
}

/* How many columns something of a gemmepi_width has where n is so many. */
static int64_t gpi__columns_of_width(const gpi__formula *formula, int64_t n, int width) {
    return width == GEMMEPI_WIDTH_HALF     ? n / formula->parts
           : width == GEMMEPI_WIDTH_DOUBLE ? n * formula->parts
                                           : n;
}

/* Whether an argument is a condition. */
static int gpi__is_condition(const gpi__node *node, int argument) {
    return node->op == GPI__OP_OR || node->op == GPI__OP_AND || node->op == GPI__OP_NOT ||
           (node->op == GPI__OP_SELECT && argument == 0);
}

static int gpi__is_exact_comparison(const gpi__formula *formula, const gpi__node *node) {
    return node->op >= GPI__OP_EQ && node->op <= GPI__OP_GE &&
           gpi__is_whole_node(&formula->nodes[node->args[0]], formula->accumulator) &&
           gpi__is_whole_node(&formula->nodes[node->args[1]], formula->accumulator);
}

/* Whether a quotient is made with the reciprocal of its divisor, a number: where results are short, of less work and a rounding more. */
static int gpi__divides_by_number(const gpi__formula *formula, const gpi__node *node) {
    const gpi__node *divisor = node->op == GPI__OP_DIV ? &formula->nodes[node->args[1]] : NULL;
    double size = divisor && divisor->op == GPI__OP_NUMBER ? fabs(divisor->number) : 0;
    return formula->is_short && size > 1e-37 && size < 1e37;
}

/* >>from the graph */

/* What has a short form of less work: activations, sines, and quotients by a number, made with its reciprocal. */
static int gpi__has_short_form(const gpi__graph *graph, const gpi__node *node) {
    return gpi__is_of_activation(node->op) || node->op == GPI__OP_SIN || node->op == GPI__OP_COS ||
           (node->op == GPI__OP_DIV && graph->nodes[node->args[1]].op == GPI__OP_NUMBER);
}

/* Whether an output is a sum of D's columns, which is of what D takes: the gradient of a bias by D's. */
static int gpi__sums_result(const gpi__graph *graph, int i) {
    const gpi__reduction *of = &gpi__reductions[graph->assigned[i].reduction];
    return i != GPI__RESULT && graph->assigned[i].node == gpi__unrounded(graph, GPI__RESULT) &&
           of->kind == GEMMEPI_PER_COLUMN && of->op == GPI__REDUCE_SUM;
}

/* Whether all that comes of each of these has 16 bits at most, which is no reduction's sum but that of D's columns. */
static int gpi__is_short(const gpi__graph *graph, const uint8_t *live, const gpi__formula *formula) {
    uint8_t exact[GPI__GRAPH_NODES] = {0};
    int i, a;
    if (graph->desc->accumulator != GEMMEPI_F32)
        return 0;
    for (i = 0; i <= GPI__RESULT; i++)
        if (graph->assigned[i].node >= 0 && !gpi__sums_result(graph, i) &&
            (graph->assigned[i].reduction ||
             gemmepi_dtype_size((gemmepi_dtype)formula->operands[i].dtype) > 2))
            exact[graph->assigned[i].node] = 1;
    for (i = graph->count - 1; i >= 0; i--) {
        if (!exact[i] || !live[i])
            continue;
        if (gpi__has_short_form(graph, &graph->nodes[i]))
            return 0;
        for (a = 0; a < 3; a++)
            if (graph->nodes[i].args[a] >= 0)
                exact[graph->nodes[i].args[a]] = 1;
    }
    return 1;
}

static void gpi__note_node(gpi__formula *formula, const gpi__node *node) {
    if (node->op == GPI__OP_INDEX)
        formula->indices |= 1u << node->place;
    if (node->op == GPI__OP_VALUE)
        formula->reads_value = 1;
    if (node->op == GPI__OP_OPERAND)
        formula->operands[node->place].used |= GPI__BY_PLACE;
    if (node->op == GPI__OP_LOOK_UP)
        formula->operands[node->place].used |= GPI__BY_INDEX;
    if (node->op == GPI__OP_ROUNDED)
        formula->rounds = 1;
    if (gpi__seed_argument(node->op) >= 0) {
        formula->uses_uniform = 1;
        formula->indices |= 1u << GPI__INDEX_ROW | 1u << GPI__INDEX_COLUMN | 1u << GPI__INDEX_ITEM;
    }
    if (node->width == GPI__NARROW || node->op >= GPI__OP_PART)
        formula->has_halves = 1;
}

static void gpi__keep_operand(const gpi__graph *graph, int i, gpi__formula_operand *out) {
    const gemmepi_operand *operand = &graph->desc->operands[i];
    int exchanged = graph->desc->exchanged;
    out->kind = (uint8_t)(exchanged ? gpi__kind_across((int)operand->kind) : (int)operand->kind);
    out->width = (uint8_t)operand->width;
    out->dtype = (uint8_t)gpi__dtype_of_operand(graph, i);
    out->output = out->used = (uint8_t)operand->output;
    out->accumulate = (uint8_t)operand->accumulate;
    out->periods = (uint8_t)((operand->row_period != 0 || operand->block_rows > 1) << exchanged |
                             (operand->column_period != 0 || operand->block_columns > 1) << !exchanged);
    if (operand->kind == GEMMEPI_BLOCKED &&
        gpi__group_of(&graph->desc->operands[i], graph->desc->exchanged) % 8 == 0)
        out->periods |= GPI__RUNS_IN_BLOCKS;
}

/* D as an operand: as wide as what it is assigned, n where that has no width. */
static void gpi__keep_result(const gpi__graph *graph, gpi__formula_operand *out) {
    int node = graph->assigned[GPI__RESULT].node;
    int width = node >= 0 ? graph->nodes[node].width : 0;
    out->kind = GEMMEPI_FULL;
    out->dtype = (uint8_t)graph->desc->d;
    out->output = 1;
    out->used = node >= 0;
    out->width = (uint8_t)(!width || width == graph->n_width ? GEMMEPI_WIDTH_N
                           : width == GPI__WIDE              ? GEMMEPI_WIDTH_DOUBLE
                                                             : GEMMEPI_WIDTH_HALF);
}

static void gpi__keep_operands(const gpi__graph *graph, gpi__formula *formula, const int16_t *renumbered) {
    int i, node;
    for (i = 0; i <= GPI__RESULT; i++) {
        gpi__formula_operand *out = &formula->operands[i];
        if (i < graph->desc->operand_count)
            gpi__keep_operand(graph, i, out);
        else if (i == GPI__RESULT)
            gpi__keep_result(graph, out);
        else
            continue;
        node = graph->assigned[i].node;
        out->node = node >= 0 ? renumbered[node] : -1;
        out->reduction = (uint8_t)graph->assigned[i].reduction;
        if (out->reduction && out->kind == GEMMEPI_BLOCKED)
            out->group = (int32_t)gpi__group_of(&graph->desc->operands[i], graph->desc->exchanged);
        if (out->output && out->used && out->width != GEMMEPI_WIDTH_N)
            formula->has_halves = 1;
    }
}

/* Once has_halves is known. */
static void gpi__count_members(gpi__formula *formula) {
    int i, width;
    for (i = 0; i <= GPI__RESULT; i++) {
        gpi__formula_operand *operand = &formula->operands[i];
        width = formula->n_width + (operand->width == GEMMEPI_WIDTH_DOUBLE) -
                (operand->width == GEMMEPI_WIDTH_HALF);
        if (!gpi__has_columns(operand->kind))
            width = GPI__ANY;
        operand->members = (uint8_t)gpi__members(formula, width);
        if (operand->output && operand->used && operand->reduction) /* of all members of what goes in */
            operand->members = (uint8_t)gpi__members(formula, formula->nodes[operand->node].width
                                                                  ? formula->nodes[operand->node].width
                                                              : width ? width
                                                                      : formula->n_width);
    }
}

static size_t gpi__names_size(const gpi__formula_desc *desc) {
    size_t size = strlen(gpi__value_name(desc)) + strlen(gpi__result_name(desc)) + 2;
    int i;
    for (i = 0; i < desc->operand_count; i++)
        size += strlen(desc->operands[i].name) + 1;
    return size;
}

static void gpi__keep_names(const gpi__formula_desc *desc, gpi__formula *formula, char *names) {
    size_t at = 0;
    int i;
    formula->names = names;
    for (i = -1; i <= GPI__RESULT; i++) {
        const char *name = i < 0                     ? gpi__value_name(desc)
                           : i == GPI__RESULT        ? gpi__result_name(desc)
                           : i < desc->operand_count ? desc->operands[i].name
                                                     : NULL;
        if (!name)
            continue;
        memcpy(names + at, name, strlen(name) + 1);
        *(i < 0 ? &formula->value_name : &formula->operands[i].name) = (int16_t)at;
        at += strlen(name) + 1;
    }
}

static void gpi__note_first(int16_t *place, int at) {
    if (at >= 0 && (*place < 0 || at < *place))
        *place = (int16_t)at;
}

static void gpi__keep_places(const gpi__graph *graph, const uint8_t *live, gpi__formula_places *places) {
    int i, by_width = -1;
    memset(places, -1, sizeof *places);
    for (i = 0; i < graph->count; i++) {
        const gpi__node *node = &graph->nodes[i];
        if (!live[i])
            continue;
        if (node->op >= GPI__OP_PART)
            gpi__note_first(&places->halves, graph->places[i]);
        else if (gpi__seed_argument(node->op) >= 0)
            gpi__note_first(&places->uniform, graph->places[i]);
        else if (node->op == GPI__OP_ROUNDED)
            gpi__note_first(&places->rounded, graph->places[i]);
        else if (node->op == GPI__OP_INDEX)
            gpi__note_first(&places->indices[node->place], graph->places[i]);
        if (by_width < 0 && node->width == GPI__NARROW)
            by_width = graph->places[i];
    }
    for (i = 0; i < graph->desc->operand_count && by_width < 0; i++)
        if (graph->desc->operands[i].output && graph->desc->operands[i].width)
            by_width = graph->assigned[i].at;
    if (places->halves < 0)
        places->halves = (int16_t)by_width;
}

/* What of the graph the outputs need, to be given to gpi__delete. */
static gemmepi_status gpi__formula_of(const gemmepi_allocator *allocator, const gpi__graph *graph,
                                      gpi__formula **result) {
    uint8_t live[GPI__GRAPH_NODES];
    int16_t renumbered[GPI__GRAPH_NODES];
    gpi__formula *formula;
    gpi__node *nodes;
    size_t size = (sizeof *formula + 7) / 8 * 8, bytes;
    int i, a, count = 0;
    gpi__mark_live(graph, live);
    for (i = 0; i < graph->count; i++)
        renumbered[i] = (int16_t)(live[i] ? count++ : -1);
    bytes = size + (size_t)count * sizeof *nodes + gpi__names_size(graph->desc);
    *result = formula = (gpi__formula *)gpi__new(allocator, bytes);
    if (!formula)
        return GEMMEPI_OUT_OF_MEMORY;
    formula->size = bytes;
    formula->node_count = count;
    formula->operand_count = graph->desc->operand_count;
    formula->accumulator = (int32_t)graph->desc->accumulator;
    formula->d = (int32_t)graph->desc->d;
    formula->n_width = graph->n_width;
    formula->mode = graph->mode;
    formula->parts = graph->parts;
    formula->group = graph->group;
    formula->exchanged = graph->desc->exchanged;
    formula->has_halves = graph->n_width == GPI__NARROW; /* beside what is 2 n columns wide */
    formula->nodes = nodes = (gpi__node *)(void *)((char *)formula + size);
    gpi__keep_names(graph->desc, formula, (char *)(nodes + count));
    gpi__keep_operands(graph, formula, renumbered);
    gpi__keep_places(graph, live, &formula->places);
    for (i = 0; i < graph->count; i++) {
        if (!live[i])
            continue;
        *nodes = graph->nodes[i];
        for (a = 0; a < 3; a++)
            if (nodes->args[a] >= 0)
                nodes->args[a] = renumbered[nodes->args[a]];
        gpi__note_node(formula, nodes++);
    }
    if (formula->has_halves && formula->mode == GPI__NO_HALVES)
        formula->mode = GPI__LEFT_RIGHT; /* two widths that never meet */
    gpi__count_members(formula);
    formula->is_short = gpi__is_short(graph, live, formula);
    return GEMMEPI_OK;
}

/* >>all */

typedef struct gpi__formula_work {
    gpi__graph graph;
    gpi__parser parser;
} gpi__formula_work;

/* The formula of a desc, to be given to gpi__delete, or the sentence that says what is wrong. Nothing of the desc is kept. */
static gemmepi_status gpi__parse_formula(const gemmepi_allocator *allocator, const gpi__formula_desc *desc,
                                         gpi__formula **formula) {
    gpi__formula_work *work;
    gemmepi_status status;
    *formula = NULL;
    work = (gpi__formula_work *)gpi__new(allocator, sizeof *work);
    if (!work)
        return GEMMEPI_OUT_OF_MEMORY;
    status = gpi__parse(&work->parser, &work->graph, desc);
    if (!status)
        status = gpi__formula_of(allocator, &work->graph, formula);
    gpi__delete(allocator, work);
    return status;
}

/* Whether groups of a reduction's columns are whole, and in one part of what has several. */
static int gpi__divides_columns(const gpi__formula *formula, int i, int64_t n) {
    const gpi__formula_operand *operand = &formula->operands[i];
    int64_t columns = gpi__columns_of_width(formula, n, operand->width);
    if (operand->members > 1 && formula->mode == GPI__EVEN_ODD)
        return 0;
    if (operand->members > 1)
        columns = formula->group ? formula->group / 2 : columns / operand->members;
    return columns % operand->group == 0;
}

/* What extents must be: of D's rows and columns as the product has them, n, and items. text: the formula's. */
static gemmepi_status gpi__check_formula_extents(const gpi__formula *formula, const char *text, int64_t m,
                                                 int64_t n, int64_t items) {
    const int64_t most = 4294967295;
    const char *name = formula->exchanged ? "m" : "n";
    char place[GPI__PLACE_TEXT];
    int64_t wide = n, parts = formula->parts;
    int i;
    (void)gpi__name_place(text, formula->places.halves, place);
    if (formula->has_halves && formula->n_width == GPI__NARROW) {
        GPI__INVALID_IF(n > INT64_MAX / parts, "%s: %s is %lld, and the formula is %d %s columns wide", place,
                        name, (long long)n, (int)parts, name);
        wide = parts * n;
    }
    GPI__INVALID_IF(formula->has_halves && parts > 2 && wide % parts,
                    "%s: %s is %lld, and the formula has %d parts: it must be a multiple of %d", place, name,
                    (long long)n, (int)parts, (int)parts);
    GPI__INVALID_IF(formula->has_halves && wide % 2 && parts == 2,
                    "%s: %s is %lld, and the formula has halves: it must be even", place, name, (long long)n);
    GPI__INVALID_IF(
        formula->has_halves && formula->group && wide % formula->group,
        "%s: halves are of groups of %lld, and the formula is %lld columns wide: it must be a multiple",
        place, (long long)formula->group, (long long)wide);
    for (i = 0; i < formula->operand_count; i++)
        GPI__INVALID_IF(
            formula->operands[i].group && !gpi__divides_columns(formula, i, n),
            "%s is reduced by groups of %d, and %s is %lld: the columns that are reduced, of each part "
            "where x has several, must be a multiple%s",
            formula->names + formula->operands[i].name, (int)formula->operands[i].group, name, (long long)n,
            formula->operands[i].members > 1 && formula->mode == GPI__EVEN_ODD
                ? "; of even and odd columns joined there are no groups"
                : "");
    GPI__INVALID_IF(formula->uses_uniform && (m > most || wide > most || items > most),
                    "%s: random numbers are for extents below 2^32; they are %lld, %lld and %lld",
                    gpi__name_place(text, formula->places.uniform, place), (long long)m, (long long)wide,
                    (long long)items);
    return GEMMEPI_OK;
}

#endif
