/* Gradients in reverse mode on the graph: each node passes on what has come together for it. */
#ifndef GEMMEPI_FORMULA_SWEEP_H
#define GEMMEPI_FORMULA_SWEEP_H

#include "derivation.h"

static gemmepi_status gemmepi__refuse_size(void) {
    return gemmepi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "the gradient of desc.formula has more than %d operations, or expressions that lie too deep",
        GEMMEPI__FORMULA_NODES);
}

/* A sum over columns of half the width: of both halves. */
static int gemmepi__narrowed(gemmepi__graph *graph, int node) {
    if (graph->nodes[node].width != GEMMEPI__WIDE)
        return gemmepi__make(graph, GEMMEPI__OP_MUL, gemmepi__number(graph, 2), node, -1);
    return gemmepi__make(graph, GEMMEPI__OP_ADD, gemmepi__make(graph, GEMMEPI__OP_FIRST, node, -1, -1),
                         gemmepi__make(graph, GEMMEPI__OP_SECOND, node, -1, -1), -1);
}

/* Adds to what has come together for a node, whose readers are so wide. */
static gemmepi_status gemmepi__contribute(gemmepi__derivation *d, int to, int node, int width) {
    gemmepi__adjoint *adjoint = &d->adjoints[to];
    if (node >= 0 && gemmepi__is_the_number(&d->graph, node, 0))
        return GEMMEPI_OK;
    if (node >= 0 && adjoint->node >= 0) {
        if (width == GEMMEPI__WIDE && adjoint->width == GEMMEPI__NARROW) {
            node = gemmepi__narrowed(&d->graph, node);
            width = GEMMEPI__NARROW;
        } else if (width == GEMMEPI__NARROW && adjoint->width == GEMMEPI__WIDE) {
            adjoint->node = (int16_t)gemmepi__narrowed(&d->graph, adjoint->node);
        }
        if (adjoint->node >= 0)
            node = gemmepi__make(&d->graph, GEMMEPI__OP_ADD, adjoint->node, node, -1);
    }
    if (node < 0)
        return gemmepi__refuse_size();
    adjoint->node = (int16_t)node;
    adjoint->width = (int16_t)width;
    return GEMMEPI_OK;
}

/* A leaf that the formula does not have: an upstream, or a result that is read. */
static int gemmepi__new_leaf(gemmepi__derivation *d, int op, int output, int width) {
    gemmepi__node node = gemmepi__node_of(op, -1, -1, -1);
    node.place = (int16_t)output;
    node.width = (uint8_t)width;
    return gemmepi__intern(&d->graph, &node);
}

static int gemmepi__width_of_output(const gemmepi__derivation *d, int output) {
    int width;
    if (output != GEMMEPI__RESULT)
        return gemmepi__width_of(&d->graph, d->desc.operands[output].kind, d->desc.operands[output].width);
    width = (int)d->graph.nodes[d->graph.assigned[output].node].width;
    return width ? width : d->graph.n_width;
}

/* A rule's expression. nodes: the arguments x, y and z, the result r and the upstream g. */
static int gemmepi__apply_rule(gemmepi__derivation *d, const char *rule, const int16_t nodes[5]) {
    gemmepi__start_parser(&d->parser, &d->graph, rule);
    d->parser.rule = nodes;
    return gemmepi__expression(&d->parser, 1);
}

/* Whether anything is of another width than n columns. */
static int gemmepi__has_halves(const gemmepi__graph *graph) {
    int i, width = graph->n_width;
    for (i = 0; i < graph->count; i++) {
        if (graph->nodes[i].op >= GEMMEPI__OP_FIRST ||
            (width && graph->nodes[i].width && graph->nodes[i].width != width))
            return 1;
        width = graph->nodes[i].width ? graph->nodes[i].width : width;
    }
    return 0;
}

/* What comes from an output's upstream to what it is assigned. */
static gemmepi_status gemmepi__seed(gemmepi__derivation *d, int output) {
    int16_t nodes[5] = {-1, -1, -1, -1, -1};
    const gemmepi__reduction *reduction = &gemmepi__reductions[d->graph.assigned[output].reduction];
    char place[GEMMEPI__PLACE_TEXT];
    int node = d->graph.assigned[output].node, width = d->graph.nodes[node].width, upstream, saved;
    if (!d->depends[node])
        return GEMMEPI_OK;
    (void)gemmepi__name_place(d->desc.text, d->graph.assigned[output].at, place);
    if (reduction->op == GEMMEPI__REDUCE_MAX || reduction->op == GEMMEPI__REDUCE_ARGMAX)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s: %s, which %s is assigned, has no derivative",
                             place, reduction->name, d->desc.operands[output].name);
    if (reduction->name[0] && width == GEMMEPI__ANY && reduction->kind != GEMMEPI_PER_COLUMN &&
        gemmepi__has_halves(&d->graph))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "%s: %s, which %s is assigned, is of what does not change along columns, in a formula with "
            "halves; its gradient cannot be said in one formula",
            place, reduction->name, d->desc.operands[output].name);
    upstream = gemmepi__new_leaf(d, GEMMEPI__OP_UPSTREAM, output, gemmepi__width_of_output(d, output));
    if (upstream >= 0 && reduction->op == GEMMEPI__REDUCE_LOGSUMEXP) {
        if (!d->readable[output])
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 "%s: the gradient of %s reads its result %s, which desc.saved does not name",
                                 place, reduction->name, d->desc.operands[output].name);
        saved = gemmepi__new_leaf(d, GEMMEPI__OP_OPERAND, output, gemmepi__width_of_output(d, output));
        nodes[0] = (int16_t)node, nodes[3] = (int16_t)saved, nodes[4] = (int16_t)upstream;
        upstream = saved < 0 ? -1 : gemmepi__apply_rule(d, "g * exp(x - r)", nodes);
    }
    /* what does not change along columns counts as often as the output has them */
    if (!width && (reduction->kind == GEMMEPI_PER_COLUMN || reduction->kind == GEMMEPI_FULL))
        width = gemmepi__width_of_output(d, output);
    return gemmepi__contribute(d, node, upstream, width ? width : d->graph.n_width);
}

/* Of activations whose derivative is 0 by selection, and of parameters. */
static const char *gemmepi__rule_of_activation(const gemmepi__node *node, int argument, char *room,
                                               size_t size) {
    const gemmepi__activation_row *row = &gemmepi__activations[node->place];
    const char *selected = row->code == GEMMEPI_SQUARED_RELU  ? "x > 0 || isnan(x) ? %s : 0"
                           : row->code == GEMMEPI_HARDSIGMOID ? "x > -3 && x < 3 ? %s : 0"
                                                              : "%s";
    char slope[48], small[16];
    if (row->code == GEMMEPI_RELU)
        return "x > 0 ? g : 0";
    if (argument == 1)
        return row->code == GEMMEPI_ELU ? "x > 0 ? 0 : g * expm1(x)" : "x > 0 ? 0 : g * x";
    snprintf(slope, sizeof slope, "g * d_%s(x%s)", gemmepi__small_name(node->place, small),
             node->args[1] >= 0 ? ", y" : "");
    snprintf(room, size, selected, slope); /* of the three above */
    return room;
}

static void gemmepi__note_0(gemmepi__derivation *d, int op) {
    if (gemmepi__operation_of(op)->traits & GEMMEPI__IS_TRUTH)
        d->has_0 |= 4;
    else if (op == GEMMEPI__OP_FLOOR || op == GEMMEPI__OP_ROUND)
        d->has_0 |= op == GEMMEPI__OP_FLOOR ? 1 : 2;
}

/* What comes from a node's adjoint to one of its arguments; -1: there is no room, -2: refused. */
static int gemmepi__passed_on(gemmepi__derivation *d, int number, int argument, int g) {
    const gemmepi__node node = d->graph.nodes[number];
    int16_t nodes[5];
    char room[96], place[GEMMEPI__PLACE_TEXT];
    const char *rule;
    int zero = gemmepi__number(&d->graph, 0);
    switch (node.op) {
    case GEMMEPI__OP_FIRST:
        return gemmepi__make(&d->graph, GEMMEPI__OP_BOTH, g, zero, -1);
    case GEMMEPI__OP_SECOND:
        return gemmepi__make(&d->graph, GEMMEPI__OP_BOTH, zero, g, -1);
    case GEMMEPI__OP_BOTH:
        return gemmepi__make(&d->graph, argument ? GEMMEPI__OP_SECOND : GEMMEPI__OP_FIRST, g, -1, -1);
    case GEMMEPI__OP_ACTIVATE:
        rule = gemmepi__rule_of_activation(&node, argument, room, sizeof room);
        break;
    case GEMMEPI__OP_DERIVE:
        (void)gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                            "%s: d_%s has no derivative; the second derivatives of activations are not known",
                            gemmepi__name_place(d->desc.text, d->graph.places[number], place),
                            gemmepi__small_name(node.place, room));
        return -2;
    default:
        rule = gemmepi__operation_of(node.op)->derivatives[argument];
    }
    if (strcmp(rule, "0") == 0) {
        gemmepi__note_0(d, node.op == GEMMEPI__OP_SELECT ? (int)GEMMEPI__OP_NE : (int)node.op);
        return zero;
    }
    memcpy(nodes, node.args, sizeof node.args);
    nodes[3] = (int16_t)number, nodes[4] = (int16_t)g;
    return gemmepi__apply_rule(d, rule, nodes);
}

static gemmepi_status gemmepi__sweep(gemmepi__derivation *d) {
    gemmepi_status status = GEMMEPI_OK;
    int i, a, passed, to, width;
    for (i = d->given - 1; i >= 0 && !status; i--) {
        if (d->adjoints[i].node < 0 || d->graph.nodes[i].op < GEMMEPI__LEAVES)
            continue;
        for (a = 0; a < 3 && !status; a++) {
            to = d->graph.nodes[i].args[a];
            if (to < 0 || !d->depends[to])
                continue;
            passed = gemmepi__passed_on(d, i, a, d->adjoints[i].node);
            if (passed == -2)
                return GEMMEPI_INVALID_ARGUMENT;
            width = d->graph.nodes[i].op == GEMMEPI__OP_BOTH    ? (int)GEMMEPI__NARROW
                    : d->graph.nodes[i].op >= GEMMEPI__OP_FIRST ? (int)GEMMEPI__WIDE
                                                                : (int)d->adjoints[i].width;
            status = gemmepi__contribute(d, to, passed, width);
        }
    }
    return status;
}

static void gemmepi__mark_dependent(gemmepi__derivation *d) {
    const gemmepi__node *nodes = d->graph.nodes;
    int i, a, w;
    for (i = 0; i < d->given; i++) {
        for (w = 0; w < d->wrt_count; w++)
            if (d->wrt[w] == GEMMEPI__OF_VALUE
                    ? nodes[i].op == GEMMEPI__OP_VALUE
                    : nodes[i].op == GEMMEPI__OP_OPERAND && nodes[i].place == d->wrt[w])
                d->depends[i] = 1;
        for (a = 0; a < 3; a++)
            if (nodes[i].args[a] >= 0 && d->depends[nodes[i].args[a]])
                d->depends[i] = 1;
    }
}

#endif
