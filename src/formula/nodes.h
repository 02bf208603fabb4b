/* What names and operations in a text become: nodes, with what is refused of them. */
#ifndef GEMMEPI_FORMULA_NODES_H
#define GEMMEPI_FORMULA_NODES_H

#include "hints.h"
#include "parser.h"

/* What is made now stands there, if it is not of a rule. */
static void gpi__note_place(gpi__parser *p, size_t at) {
    p->graph->at = (int16_t)(p->whole ? p->call : p->rule ? -1 : (int)at);
}

static const char *gpi__width_in_words(const gpi__graph *graph, int width, char room[16]) {
    if (width == graph->n_width)
        return "n";
    snprintf(room, 16, width == GPI__WIDE ? "%d n" : "n / %d", graph->parts);
    return room;
}

static int gpi__refuse_room(const gpi__parser *p, size_t at) {
    return gpi__refuse(p, at, "the formula has more than %d operations", GPI__FORMULA_NODES);
}

static int gpi__refuse_widths(gpi__parser *p, size_t at, const gpi__node *node, const char *name) {
    const gpi__graph *graph = p->graph;
    const char *width[3];
    char room[3][16];
    int i, count = 0;
    p->is_of_widths = 1;
    if (node->op == GPI__OP_PART)
        return gpi__refuse(p, at, "%s divides what is only %s columns wide; halves and parts are not nested",
                           name, gpi__width_in_words(graph, GPI__NARROW, room[0]));
    if (node->op == GPI__OP_JOIN)
        return gpi__refuse(p, at, "%s joins %s; what is %s columns wide is none", name,
                           graph->parts == 2 ? "halves" : "parts",
                           gpi__width_in_words(graph, GPI__WIDE, room[0]));
    for (i = 0; i < 3; i++)
        if (node->args[i] >= 0 && graph->nodes[node->args[i]].width) {
            width[count] = gpi__width_in_words(graph, graph->nodes[node->args[i]].width, room[count]);
            count++;
        }
    return gpi__refuse(p, at,
                       "%s needs equal widths; one is %s columns wide, another %s (left, right, even and "
                       "odd are halves)",
                       name, width[0], strcmp(width[1], width[0]) ? width[1] : width[2]);
}

/* In I32 formulas. */
static int gpi__goes_with_whole(const gpi__node *node) {
    if (node->op == GPI__OP_ACTIVATE)
        return gpi__activations[node->place].traits & GPI__OF_INTEGERS;
    return gpi__operation_of(node->op)->traits & GPI__WHOLE_TOO;
}

/* An operation by the sign or name that stands at `at`; -1 with the sentence. */
static int gpi__apply(gpi__parser *p, size_t at, const char *name, gpi__node *node) {
    int made;
    if (p->whole)
        name = p->called;
    if (p->graph->desc->accumulator == GEMMEPI_I32 && !gpi__goes_with_whole(node))
        return gpi__refuse(p, at,
                           "%s does not go with results in I32; accepted are + - * min max relu, "
                           "comparisons and ?:",
                           name);
    gpi__note_place(p, at);
    made = gpi__finish(p->graph, node);
    if (made == -2)
        return gpi__refuse_widths(p, at, node, name);
    return made >= 0 ? made : gpi__refuse_room(p, at);
}

static int gpi__leaf(gpi__parser *p, size_t at, int op, int place, int type, int width) {
    gpi__node node = gpi__node_of(op, -1, -1, -1);
    int made;
    node.place = (int16_t)place;
    node.type = (uint8_t)type;
    node.width = (uint8_t)width;
    gpi__note_place(p, at);
    made = gpi__intern(p->graph, &node);
    return made >= 0 ? made : gpi__refuse_room(p, at);
}

/* Of operands; -1: wider than WIDE or narrower than NARROW. */
static int gpi__width_of(const gpi__graph *graph, gemmepi_operand_kind kind, gemmepi_width width) {
    int shift = width == GEMMEPI_WIDTH_HALF ? -1 : width == GEMMEPI_WIDTH_DOUBLE ? 1 : 0;
    if (!gpi__has_width((int)kind, graph->desc->exchanged))
        return GPI__ANY;
    shift += graph->n_width;
    return shift == GPI__NARROW || shift == GPI__WIDE ? shift : -1;
}

static int gpi__refuse_third_width(gpi__parser *p, size_t at, const gemmepi_operand *operand) {
    int parts = p->graph->parts;
    p->is_of_widths = 1;
    return gpi__refuse(
        p, at,
        p->graph->n_width == GPI__WIDE
            ? "%s is %d n columns wide, a third width next to n and n / %d; a formula has two at most"
            : "%s is n / %d columns wide, a third width next to n and %d n; a formula has two at most",
        operand->name, parts, parts);
}

static int gpi__read_operand(gpi__parser *p, size_t at, int i) {
    gpi__graph *graph = p->graph;
    const gemmepi_operand *operand = &graph->desc->operands[i];
    int width = gpi__width_of(graph, operand->kind, operand->width);
    int is_whole = operand->dtype == GEMMEPI_I64 || operand->dtype == GEMMEPI_I32 ||
                   (graph->desc->accumulator == GEMMEPI_I32 && operand->kind != GEMMEPI_NUMBER);
    if (operand->output) {
        if (graph->assigned[i].node < 0)
            return gpi__refuse(p, at, "%s is an output and has no value yet; assign it first", operand->name);
        if (graph->assigned[i].reduction)
            return gpi__refuse(
                p, at,
                "%s is a reduction, which no later statement can read: a second formula can, by an operand",
                operand->name);
        return gpi__unrounded(graph, i);
    }
    if (width < 0)
        return gpi__refuse_third_width(p, at, operand);
    return gpi__leaf(p, at, GPI__OP_OPERAND, i, is_whole ? GPI__OF_WHOLE : GPI__OF_NUMBERS, width);
}

/* A row of gpi__written_functions; -1: none. */
static int gpi__written_called(const char *name, size_t length) {
    int i = (int)GPI__COUNT(gpi__written_functions) - 1;
    while (i >= 0 && !gpi__is_name(name, length, gpi__written_functions[i].name))
        i--;
    return i;
}

/* Whether a mean is called there: of rows, as of other means not all is known that they are of. */
static int gpi__is_mean(const char *at, size_t length) {
    return gpi__is_name(at, length, "row_mean") && at[gpi__next_token(at, length)] == '(';
}

/* What a name stands for; -1 with the sentence, -2 - i: row i of gpi__written_functions, a number. */
static int gpi__read_name(gpi__parser *p, size_t at, const char *name, size_t length) {
    const gpi__formula_desc *desc = p->graph->desc;
    const char *letter, *nearest;
    int i, result = GPI__RESULT;
    if (p->rule && length == 1 && (letter = strchr("xyzrg", name[0])) != NULL)
        return p->rule[letter - "xyzrg"];
    for (i = p->local_count - 1; i >= 0; i--)
        if ((size_t)p->locals[i].length == length && memcmp(p->locals[i].name, name, length) == 0) {
            p->locals[i].is_read = 1;
            return p->locals[i].node;
        }
    if (!desc->without_value && gpi__is_name(name, length, gpi__value_name(desc)))
        return p->graph->product >= 0
                   ? p->graph->product
                   : gpi__leaf(p, at, GPI__OP_VALUE, 0, GPI__OF_NUMBERS, p->graph->n_width);
    if (!desc->without_result && gpi__is_name(name, length, gpi__result_name(desc)))
        return p->graph->assigned[result].node >= 0
                   ? gpi__unrounded(p->graph, result)
                   : gpi__refuse(p, at, "%s has no value yet; assign it first", gpi__result_name(desc));
    for (i = 0; i < desc->operand_count; i++)
        if (gpi__is_name(name, length, desc->operands[i].name))
            return gpi__read_operand(p, at, i);
    i = gpi__index_called(name, length);
    if (i >= 0 && desc->exchanged)
        i = gpi__index_across(i);
    if (i >= 0)
        return gpi__leaf(p, at, GPI__OP_INDEX, i, GPI__OF_WHOLE,
                         i == GPI__INDEX_COLUMN ? GPI__WIDE : GPI__ANY);
    i = gpi__written_called(name, length);
    if (i >= 0 && !gpi__written_functions[i].count)
        return -2 - i;
    if (i >= 0 || gpi__is_reserved(name, length))
        return gpi__refuse(p, at, "%.*s is a function: its arguments follow in parentheses", (int)length,
                           name);
    nearest = gpi__nearest_name(desc, name, length, 0);
    return gpi__refuse(
        p, at,
        "%.*s is not known here: no operand has that name, and no statement before this one assigns it%s%s%s",
        (int)(length > 60 ? 60 : length), name,
        nearest               ? "; did you mean "
        : desc->is_of_operand ? "; what is stored is called "
                              : "",
        nearest               ? nearest
        : desc->is_of_operand ? desc->value
                              : "",
        nearest ? "?" : "");
}

#endif
