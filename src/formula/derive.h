/* Gradients of formulas, in reverse mode on the graph, as formulas. */
#ifndef GEMMEPI_FORMULA_DERIVE_H
#define GEMMEPI_FORMULA_DERIVE_H

#include "print.h"

enum { GEMMEPI__OF_VALUE = GEMMEPI__RESULT + 1, GEMMEPI__DERIVED_NAMES = 2 * GEMMEPI__FORMULA_OPERANDS + 2 };

/* What has come together for a node: an expression as wide as what reads the node, which `width` tells where the expression itself does
   not change along columns. node -1: nothing yet. */
typedef struct gemmepi__adjoint {
    int16_t node, width;
} gemmepi__adjoint;

typedef struct gemmepi__derivation {
    gemmepi__formula_desc desc;
    gemmepi_operand operands[GEMMEPI__FORMULA_OPERANDS]; /* the caller's, with their tensors' dtypes */
    gemmepi__graph graph;
    gemmepi__parser parser;
    gemmepi__printer printer;
    int given; /* nodes of the formula itself */
    int wrt_count;
    int16_t wrt[GEMMEPI__FORMULA_OPERANDS + 1]; /* operands, or OF_VALUE */
    uint8_t readable[GEMMEPI__OF_VALUE + 1];    /* by desc.saved */
    uint8_t depends[GEMMEPI__GRAPH_NODES];      /* on what is in wrt */
    gemmepi__adjoint adjoints[GEMMEPI__GRAPH_NODES];
    int has_0; /* bits: 1 floor, 2 round, 4 comparisons, 8 uniform */
} gemmepi__derivation;

/* >>what is asked for */

static const char *gemmepi__name_in(const gemmepi__derivation *d, int which) {
    if (which == GEMMEPI__OF_VALUE)
        return gemmepi__value_name(&d->desc);
    return which == GEMMEPI__RESULT ? gemmepi__result_name(&d->desc) : d->desc.operands[which].name;
}

static gemmepi_status gemmepi__check_wrt(const gemmepi__derivation *d, int which) {
    const gemmepi_operand *o;
    int i;
    for (i = 0; i < d->wrt_count; i++)
        if (d->wrt[i] == which)
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.wrt names %s twice",
                                 gemmepi__name_in(d, which));
    if (which == GEMMEPI__OF_VALUE)
        return GEMMEPI_OK;
    if (which == GEMMEPI__RESULT || d->desc.operands[which].output)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.wrt names %s, an output; accepted are inputs and the value",
                             gemmepi__name_in(d, which));
    o = &d->desc.operands[which];
    if (o->dtype == GEMMEPI_I32 || o->dtype == GEMMEPI_I64)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.wrt names %s, whose whole numbers have no gradient", o->name);
    if (o->row_period || o->column_period)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.wrt names %s, an input with periods, for whose gradient there is no reduction", o->name);
    if (gemmepi__width_of(&d->graph, o->kind, o->width) < 0)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.wrt names %s, which is %s columns wide and not read; the formula has %s "
                             "columns alone",
                             o->name, o->width == GEMMEPI_WIDTH_HALF ? "n / 2" : "2 n",
                             d->graph.n_width == GEMMEPI__WIDE ? "n and n / 2" : "n and 2 n");
    return GEMMEPI_OK;
}

/* The next name of a list, and where it ends; 0: there is none, -1: an unknown one, with the sentence. */
static int gemmepi__next_name(const gemmepi__derivation *d, const char *field, const char **at, int *which) {
    size_t length;
    while (**at == ' ' || **at == ',')
        ++*at;
    if (!**at)
        return 0;
    length = gemmepi__name_length(*at);
    for (*which = 0; *which <= GEMMEPI__OF_VALUE && length; ++*which)
        if ((*which < d->desc.operand_count || *which >= GEMMEPI__RESULT) &&
            gemmepi__is_name(*at, length, gemmepi__name_in(d, *which))) {
            *at += length;
            return 1;
        }
    (void)gemmepi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "desc.%s has \"%.60s\"; accepted are names of operands, %s and %s, separated by commas", field, *at,
        gemmepi__value_name(&d->desc), gemmepi__result_name(&d->desc));
    return -1;
}

static gemmepi_status gemmepi__take_lists(gemmepi__derivation *d, const gemmepi_derive_desc *desc) {
    const char *at = desc->wrt ? desc->wrt : "";
    gemmepi_status status;
    int which, i, more;
    while ((more = gemmepi__next_name(d, "wrt", &at, &which)) > 0) {
        status = gemmepi__check_wrt(d, which);
        if (status)
            return status;
        d->wrt[d->wrt_count++] = (int16_t)which;
    }
    if (more < 0)
        return GEMMEPI_INVALID_ARGUMENT;
    if (d->wrt_count == 0)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.wrt is %s; it names what gradients are wanted of",
                             desc->wrt ? "empty" : "NULL");
    for (i = 0; i < d->desc.operand_count; i++) /* a number lies on the host and costs nothing */
        d->readable[i] =
            desc->operands[i].kind == GEMMEPI_NUMBER || (!desc->saved && !desc->operands[i].output);
    d->readable[GEMMEPI__OF_VALUE] = !desc->saved;
    for (at = desc->saved ? desc->saved : ""; (more = gemmepi__next_name(d, "saved", &at, &which)) > 0;)
        d->readable[which] = 1;
    return more < 0 ? GEMMEPI_INVALID_ARGUMENT : GEMMEPI_OK;
}

/* Names that the gradient gives. */
static gemmepi_status gemmepi__check_names_for_gradient(const gemmepi__derivation *d) {
    int i;
    for (i = -2; i < d->desc.operand_count; i++) {
        const char *name = gemmepi__name_in(d, i == -1   ? (int)GEMMEPI__OF_VALUE
                                               : i == -2 ? (int)GEMMEPI__RESULT
                                                         : i);
        if (strcmp(name, "dy") == 0 || strncmp(name, "d_", 2) == 0 || strncmp(name, "dy_", 3) == 0)
            return gemmepi__fail(
                GEMMEPI_INVALID_ARGUMENT,
                "an operand is called %s; dy and names that begin with d_ or dy_ are for its gradient's "
                "operands",
                name);
        if (strlen(name) > GEMMEPI__FORMULA_NAME - 3)
            return gemmepi__fail(
                GEMMEPI_INVALID_ARGUMENT,
                "%s has %d characters; where a gradient has d_ or dy_ before it at most %d are accepted",
                name, (int)strlen(name), (int)GEMMEPI__FORMULA_NAME - 3);
    }
    return GEMMEPI_OK;
}

/* Where count or pointer are bad nothing is taken, which parsing refuses. */
static void gemmepi__take_operands_to_derive(gemmepi__derivation *d, const gemmepi_derive_desc *desc) {
    int i;
    for (i = 0; desc->operands && i < desc->operand_count && desc->operand_count <= GEMMEPI__FORMULA_OPERANDS;
         i++) {
        gemmepi_operand *operand = &d->operands[i];
        *operand = desc->operands[i];
        if (operand->tensor && !operand->dtype)
            operand->dtype = operand->tensor->dtype ? operand->tensor->dtype : GEMMEPI_F32;
        d->desc.operands = d->operands;
    }
}

static gemmepi_status gemmepi__start_derivation(gemmepi__derivation *d, const gemmepi_derive_desc *desc,
                                                const char *result, int exchanged) {
    gemmepi_status status;
    int i;
    d->desc.result = result;
    d->desc.exchanged = exchanged;
    d->desc.text = desc->formula;
    d->desc.operands = desc->operands;
    d->desc.operand_count = desc->operand_count;
    d->desc.value = desc->value;
    d->desc.value_field = "value";
    d->desc.accumulator = GEMMEPI_F32;
    gemmepi__take_operands_to_derive(d, desc);
    for (i = 0; desc->operands && i < desc->operand_count && i < GEMMEPI__FORMULA_OPERANDS; i++)
        if (d->operands[i].dtype == GEMMEPI_F64 && desc->operands[i].kind != GEMMEPI_NUMBER)
            d->desc.accumulator = GEMMEPI_F64;
    d->desc.d = d->desc.accumulator;
    d->desc.of_any_type = 1;
    status = gemmepi__parse(&d->parser, &d->graph, &d->desc);
    if (!status)
        status = gemmepi__check_names_for_gradient(d);
    if (!status)
        status = gemmepi__take_lists(d, desc);
    d->given = d->graph.count;
    d->graph.at = -1;
    d->graph.simplifies = 1;
    d->graph.most = GEMMEPI__GRAPH_NODES; /* of which the gradient need not have all */
    return status;
}

/* >>the sweep */

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

/* >>the gradient as a list of outputs */

static int gemmepi__adjoint_of(gemmepi__derivation *d, int which) {
    const gemmepi__node *nodes = d->graph.nodes;
    int i;
    for (i = 0; i < d->given; i++)
        if (d->adjoints[i].node >= 0 &&
            (which == GEMMEPI__OF_VALUE ? nodes[i].op == GEMMEPI__OP_VALUE
                                        : nodes[i].op == GEMMEPI__OP_OPERAND && nodes[i].place == which))
            return d->adjoints[i].node;
    return gemmepi__number(&d->graph, 0);
}

static gemmepi_operand_kind gemmepi__kind_of_gradient(const gemmepi__derivation *d, int which) {
    gemmepi_operand_kind kind = which == GEMMEPI__OF_VALUE ? GEMMEPI_FULL : d->desc.operands[which].kind;
    return kind == GEMMEPI_NUMBER ? GEMMEPI_SCALAR : kind;
}

static gemmepi_status gemmepi__add_gradient(gemmepi__derivation *d, int which) {
    gemmepi_operand_kind kind = gemmepi__kind_of_gradient(d, which);
    int node = gemmepi__adjoint_of(d, which), reduction = 0;
    if (node < 0)
        return gemmepi__refuse_size();
    if (d->desc.exchanged)
        kind = (gemmepi_operand_kind)gemmepi__kind_across((int)kind);
    if (kind != GEMMEPI_FULL)
        for (reduction = 1; gemmepi__reductions[reduction].kind != kind;)
            reduction++; /* the first of a kind is the sum */
    if (reduction && kind != GEMMEPI_PER_COLUMN && d->graph.nodes[node].width == GEMMEPI__ANY &&
        !gemmepi__is_number(&d->graph, node) && gemmepi__has_halves(&d->graph))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "the gradient of %s is a sum over columns of what does not change along them, in a formula "
            "with halves, and cannot be said in one formula",
            gemmepi__name_in(d, which));
    gemmepi__add_output(&d->printer, "d_", gemmepi__name_in(d, which), node, reduction);
    return GEMMEPI_OK;
}

/* Nodes that are read from a saved output, which is no reduction, and changes along columns as they do. */
static void gemmepi__label_saved(gemmepi__derivation *d) {
    const gemmepi__node *node;
    int o;
    for (o = 0; o <= GEMMEPI__RESULT; o++) {
        if (!d->readable[o] || d->graph.assigned[o].node < 0 || d->graph.assigned[o].reduction)
            continue;
        node = &d->graph.nodes[d->graph.assigned[o].node];
        if (node->op == GEMMEPI__OP_NUMBER || node->op == GEMMEPI__OP_INDEX || node->width == GEMMEPI__ANY ||
            (node->op == GEMMEPI__OP_VALUE && d->readable[GEMMEPI__OF_VALUE]) ||
            (node->op == GEMMEPI__OP_OPERAND && d->readable[node->place]))
            continue;
        d->printer.labels[d->graph.assigned[o].node] = (int16_t)(GEMMEPI__BY_OPERAND + o);
    }
}

static gemmepi_status gemmepi__check_reads(const gemmepi__derivation *d) {
    const gemmepi__printer *p = &d->printer;
    int i, which, operations = 0;
    for (i = 0; i < d->graph.count; i++) {
        operations += p->uses[i] && p->nodes[i].op >= GEMMEPI__LEAVES;
        which = p->nodes[i].op == GEMMEPI__OP_VALUE     ? (int)GEMMEPI__OF_VALUE
                : p->nodes[i].op == GEMMEPI__OP_OPERAND ? p->nodes[i].place
                                                        : -1;
        if (which >= 0 && p->uses[i] && p->labels[i] < GEMMEPI__BY_OPERAND && !d->readable[which])
            return gemmepi__fail(
                GEMMEPI_INVALID_ARGUMENT,
                "the gradient reads %s, which desc.saved does not name, nor can it be computed anew",
                gemmepi__name_in(d, which));
    }
    return operations <= GEMMEPI__FORMULA_NODES ? GEMMEPI_OK : gemmepi__refuse_size();
}

/* How wide an output of the gradient is. */
static int gemmepi__width_of_gradient(const gemmepi__derivation *d, int which) {
    return which == GEMMEPI__OF_VALUE
               ? d->graph.n_width
               : gemmepi__width_of(&d->graph, d->desc.operands[which].kind, d->desc.operands[which].width);
}

/* Of a formula with 2 n columns: whether its gradient, read as one with n columns and their halves, would be refused. If not, it is read
   so. */
static int gemmepi__tells_width(const gemmepi__derivation *d) {
    const gemmepi__printer *p = &d->printer;
    int widths[GEMMEPI__GRAPH_NODES], of_args[3], i, a, joint;
    for (i = 0; i < d->graph.count; i++) {
        const gemmepi__node *node = &d->graph.nodes[i];
        widths[i] = node->width;
        if (!p->uses[i] || node->op == GEMMEPI__OP_INDEX)
            continue;
        if (gemmepi__is_leaf(p, i)) {
            if (node->width == GEMMEPI__WIDE)
                return 1;
            widths[i] = node->width ? (int)GEMMEPI__WIDE : (int)GEMMEPI__ANY;
            continue;
        }
        for (a = 0; a < 3; a++)
            of_args[a] = node->args[a] >= 0 ? widths[node->args[a]] : 0;
        if ((joint = gemmepi__joint_width(node->op, of_args)) < 0)
            return 1;
        widths[i] = joint;
    }
    for (i = 0; i < d->wrt_count; i++) {
        int width = gemmepi__width_of_gradient(d, d->wrt[i]);
        if (width == GEMMEPI__WIDE || (width && widths[p->outputs[i].node] == GEMMEPI__NARROW))
            return 1;
    }
    return 0;
}

/* What is another number where n is another part of all columns. */
static int gemmepi__counts_columns(const gemmepi__derivation *d) {
    const gemmepi__printer *p = &d->printer;
    int i;
    for (i = 0; i < d->graph.count; i++) {
        const gemmepi__node *node = &d->graph.nodes[i];
        if (p->uses[i] && (node->op == GEMMEPI__OP_UNIFORM ||
                           (node->op == GEMMEPI__OP_INDEX &&
                            (node->place == GEMMEPI__INDEX_COLUMN || node->place == GEMMEPI__INDEX_COLUMNS))))
            return 1;
    }
    for (i = 0; i < p->output_count; i++)
        if (p->outputs[i].reduction && d->graph.nodes[p->outputs[i].node].width &&
            gemmepi__reductions[p->outputs[i].reduction].kind != GEMMEPI_PER_COLUMN)
            return 1;
    return 0;
}

/* Where the formula has what is 2 n columns wide and the gradient has not, columns would be others in it. */
static gemmepi_status gemmepi__check_columns(const gemmepi__derivation *d) {
    if (d->graph.n_width == GEMMEPI__NARROW && gemmepi__counts_columns(d) && !gemmepi__tells_width(d))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "the gradient counts columns (column, columns, uniform, sums over them), of which the formula has "
            "twice as many: it cannot be said in one formula");
    return GEMMEPI_OK;
}

static void gemmepi__prepare_printer(gemmepi__derivation *d) {
    gemmepi__printer *p = &d->printer;
    int i;
    p->nodes = d->graph.nodes;
    p->mode = d->graph.mode;
    p->group = d->graph.group;
    p->exchanged = d->desc.exchanged;
    p->regroups = 1;
    p->between = ";\n";
    p->value = gemmepi__value_name(&d->desc);
    p->text = d->desc.text;
    p->places = d->graph.names;
    for (i = 0; i < d->desc.operand_count; i++)
        p->names[i] = d->desc.operands[i].name;
    p->names[GEMMEPI__RESULT] = gemmepi__result_name(&d->desc);
}

/* The whole, up to a printer that has all but where to print. */
static gemmepi_status gemmepi__derive(gemmepi__derivation *d) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < GEMMEPI__GRAPH_NODES; i++)
        d->adjoints[i].node = -1;
    gemmepi__mark_dependent(d);
    for (i = 0; i <= GEMMEPI__RESULT && !status; i++)
        if (d->graph.assigned[i].node >= 0)
            status = gemmepi__seed(d, i);
    if (!status)
        status = gemmepi__sweep(d);
    gemmepi__prepare_printer(d);
    for (i = 0; i < d->wrt_count && !status; i++)
        status = gemmepi__add_gradient(d, d->wrt[i]);
    if (status)
        return status;
    d->printer.count = d->graph.count;
    gemmepi__label_saved(d);
    gemmepi__count_uses(&d->printer);
    for (i = 0; i < d->graph.count; i++)
        if (d->graph.nodes[i].op == GEMMEPI__OP_UNIFORM && d->printer.uses[i])
            d->has_0 |= 8;
    status = gemmepi__check_columns(d);
    return status ? status : gemmepi__check_reads(d);
}

static void gemmepi__print_gradient(gemmepi__derivation *d, gemmepi__text *out) {
    static const char *const names[] = {"floor", "round", "comparisons", "uniform"};
    const char *between = "/* derivatives that are 0: ";
    int i;
    d->printer.out = out;
    for (i = 0; i < 4; i++)
        if (d->has_0 >> i & 1) {
            gemmepi__append(out, "%s%s", between, names[i]);
            between = ", ";
        }
    if (d->has_0)
        gemmepi__append(out, " */\n");
    gemmepi__print_statements(&d->printer);
}

/* To be given to gemmepi__delete; NULL with the sentence. result: what the formula calls D, NULL: "d"; exchanged: 1 of column-major order. */
static gemmepi_status gemmepi__derivation_of(const gemmepi_allocator *allocator,
                                             const gemmepi_derive_desc *desc, const char *result,
                                             int exchanged, gemmepi__derivation **out) {
    gemmepi__derivation *d;
    gemmepi_status status;
    *out = NULL;
    if (!desc)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc is NULL");
    d = (gemmepi__derivation *)gemmepi__new(allocator, sizeof *d);
    if (!d)
        return GEMMEPI_OUT_OF_MEMORY;
    status = gemmepi__start_derivation(d, desc, result, exchanged);
    if (!status)
        status = gemmepi__derive(d);
    if (status)
        gemmepi__delete(allocator, d);
    else
        *out = d;
    return status;
}

GEMMEPI_API size_t gemmepi_derive(const gemmepi_derive_desc *desc, char *text, size_t size) {
    gemmepi_allocator allocator = gemmepi__default_allocator();
    gemmepi__text out = gemmepi__text_in(text, size);
    gemmepi__derivation *d;
    if (gemmepi__derivation_of(&allocator, desc, NULL, 0, &d))
        return 0;
    gemmepi__print_gradient(d, &out);
    gemmepi__delete(&allocator, d);
    if (out.length <= GEMMEPI__FORMULA_CHARACTERS)
        return out.length;
    if (out.size)
        text[0] = 0;
    (void)gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                        "the gradient of desc.formula has %llu characters; a formula has at most %d",
                        (gemmepi__ull)out.length, GEMMEPI__FORMULA_CHARACTERS);
    return 0;
}

/* >>its operands */

/* Names of this thread's last list. */
static GEMMEPI__THREAD_LOCAL char gemmepi__derived_names[GEMMEPI__DERIVED_NAMES][GEMMEPI__FORMULA_NAME + 4];

typedef struct gemmepi__operand_list {
    gemmepi_operand *operands;
    int room, count, names;
} gemmepi__operand_list;

static void gemmepi__list_operand(gemmepi__operand_list *list, const gemmepi_operand *operand) {
    if (list->count < list->room)
        list->operands[list->count] = *operand;
    list->count++;
}

static const char *gemmepi__derived_name(gemmepi__operand_list *list, const char *before, const char *name) {
    char *to = gemmepi__derived_names[list->names++];
    snprintf(to, sizeof gemmepi__derived_names[0], "%s%s", before, name);
    return to;
}

static void gemmepi__list_new(gemmepi__operand_list *list, const char *name, gemmepi_operand_kind kind,
                              gemmepi_width width) {
    gemmepi_operand operand;
    memset(&operand, 0, sizeof operand);
    operand.name = name;
    operand.kind = kind;
    operand.width = width;
    gemmepi__list_operand(list, &operand);
}

static gemmepi_width gemmepi__public_width(const gemmepi__graph *graph, int width) {
    return !width || width == graph->n_width ? GEMMEPI_WIDTH_N
           : width == GEMMEPI__WIDE          ? GEMMEPI_WIDTH_DOUBLE
                                             : GEMMEPI_WIDTH_HALF;
}

/* An operand of the formula, or D, that the gradient reads. */
static void gemmepi__list_read(gemmepi__operand_list *list, const gemmepi__derivation *d, int which) {
    gemmepi_operand operand;
    if (which == GEMMEPI__RESULT) {
        gemmepi__list_new(list, "d", GEMMEPI_FULL,
                          gemmepi__public_width(&d->graph, gemmepi__width_of_output(d, which)));
        return;
    }
    operand = d->desc.operands[which];
    if (operand.output && operand.dtype == GEMMEPI_DTYPE_DEFAULT && d->graph.assigned[which].reduction)
        operand.dtype = gemmepi__dtype_of_operand(&d->graph, which);
    operand.output = operand.accumulate = operand.amax = 0;
    gemmepi__list_operand(list, &operand);
}

/* Whether the text has a leaf, or a result in a node's place. */
static int gemmepi__gradient_reads(const gemmepi__derivation *d, int op, int which) {
    const gemmepi__printer *p = &d->printer;
    int i;
    for (i = 0; i < d->graph.count; i++)
        if (p->uses[i] && (p->labels[i] >= GEMMEPI__BY_OPERAND
                               ? op == GEMMEPI__OP_OPERAND && p->labels[i] - GEMMEPI__BY_OPERAND == which
                               : p->nodes[i].op == op && p->nodes[i].place == which))
            return 1;
    return 0;
}

static void gemmepi__list_upstream(gemmepi__operand_list *list, const gemmepi__derivation *d, int output) {
    if (!gemmepi__gradient_reads(d, GEMMEPI__OP_UPSTREAM, output))
        return;
    gemmepi__list_new(
        list,
        output == GEMMEPI__RESULT ? "dy" : gemmepi__derived_name(list, "dy_", d->desc.operands[output].name),
        output == GEMMEPI__RESULT ? GEMMEPI_FULL : d->desc.operands[output].kind,
        gemmepi__public_width(&d->graph, gemmepi__width_of_output(d, output)));
}

static void gemmepi__list_gradient(gemmepi__operand_list *list, const gemmepi__derivation *d, int which) {
    const gemmepi_operand *of = which == GEMMEPI__OF_VALUE ? NULL : &d->desc.operands[which];
    gemmepi_operand operand;
    memset(&operand, 0, sizeof operand);
    operand.name = gemmepi__derived_name(list, "d_", gemmepi__name_in(d, which));
    operand.kind = gemmepi__kind_of_gradient(d, which);
    operand.output = 1;
    if (of) {
        operand.width = of->width;
        operand.dtype = of->kind == GEMMEPI_FULL && !of->tensor ? of->dtype : GEMMEPI_DTYPE_DEFAULT;
    }
    gemmepi__list_operand(list, &operand);
}

GEMMEPI_API int gemmepi_derive_operands(const gemmepi_derive_desc *desc, gemmepi_operand *operands,
                                        int count) {
    gemmepi_allocator allocator = gemmepi__default_allocator();
    gemmepi__operand_list list;
    gemmepi__derivation *d;
    int i;
    if (gemmepi__derivation_of(&allocator, desc, NULL, 0, &d))
        return 0;
    list.operands = operands;
    list.room = operands ? count : 0;
    list.count = list.names = 0;
    if (gemmepi__gradient_reads(d, GEMMEPI__OP_VALUE, 0))
        gemmepi__list_new(&list, gemmepi__value_name(&d->desc), GEMMEPI_FULL, GEMMEPI_WIDTH_N);
    gemmepi__list_upstream(&list, d, GEMMEPI__RESULT);
    for (i = 0; i <= GEMMEPI__RESULT; i++)
        if (gemmepi__gradient_reads(d, GEMMEPI__OP_OPERAND, i))
            gemmepi__list_read(&list, d, i);
    for (i = 0; i < d->desc.operand_count; i++)
        gemmepi__list_upstream(&list, d, i);
    for (i = 0; i < d->wrt_count; i++)
        gemmepi__list_gradient(&list, d, d->wrt[i]);
    gemmepi__delete(&allocator, d);
    return list.count;
}

#endif
