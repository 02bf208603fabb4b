/* Gradients in reverse mode on the graph: each node passes on what has come together for it. */
#ifndef GEMMEPI_FORMULA_SWEEP_H
#define GEMMEPI_FORMULA_SWEEP_H

#include "derivation.h"

static gemmepi_status gpi__refuse_size(void) {
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "the gradient of desc.formula has more than %d operations, or expressions that are nested too deep",
        GPI__FORMULA_NODES);
}

/* A sum over columns of a part's width: of all parts. */
static int gpi__narrowed(gpi__graph *graph, int node) {
    int i, sum;
    if (graph->nodes[node].width != GPI__WIDE)
        return gpi__make(graph, GPI__OP_MUL, gpi__number(graph, graph->parts), node, -1);
    sum = gpi__part(graph, node, 0);
    for (i = 1; i < graph->parts; i++)
        sum = gpi__make(graph, GPI__OP_ADD, sum, gpi__part(graph, node, i), -1);
    return sum;
}

/* Adds to what has come together for a node, whose readers are so wide. */
static gemmepi_status gpi__contribute(gpi__derivation *d, int to, int node, int width) {
    gpi__adjoint *adjoint = &d->adjoints[to];
    if (node >= 0 && gpi__is_the_number(&d->graph, node, 0))
        return GEMMEPI_OK;
    if (node >= 0 && adjoint->node >= 0) {
        if (width == GPI__WIDE && adjoint->width == GPI__NARROW) {
            node = gpi__narrowed(&d->graph, node);
            width = GPI__NARROW;
        } else if (width == GPI__NARROW && adjoint->width == GPI__WIDE) {
            adjoint->node = (int16_t)gpi__narrowed(&d->graph, adjoint->node);
        }
        if (adjoint->node >= 0)
            node = gpi__make(&d->graph, GPI__OP_ADD, adjoint->node, node, -1);
    }
    if (node < 0)
        return gpi__refuse_size();
    adjoint->node = (int16_t)node;
    adjoint->width = (int16_t)width;
    return GEMMEPI_OK;
}

/* A leaf that the formula does not have: an upstream, or a result that is read. */
static int gpi__new_leaf(gpi__derivation *d, int op, int output, int width) {
    gpi__node node = gpi__node_of(op, -1, -1, -1);
    node.place = (int16_t)output;
    node.width = (uint8_t)width;
    return gpi__intern(&d->graph, &node);
}

/* A rule's expression. nodes: the arguments x, y and z, the result r and the upstream g. */
static int gpi__apply_rule(gpi__derivation *d, const char *rule, const int16_t nodes[5]) {
    gpi__start_parser(&d->parser, &d->graph, rule);
    d->parser.rule = nodes;
    return gpi__expression(&d->parser, 1);
}

/* Whether anything is of another width than n columns. */
static int gpi__has_halves(const gpi__graph *graph) {
    int i, width = graph->n_width;
    for (i = 0; i < graph->count; i++) {
        if (graph->nodes[i].op >= GPI__OP_PART ||
            (width && graph->nodes[i].width && graph->nodes[i].width != width))
            return 1;
        width = graph->nodes[i].width ? graph->nodes[i].width : width;
    }
    return 0;
}

/* What comes from an output's upstream to what it is assigned. */
static gemmepi_status gpi__seed(gpi__derivation *d, int output) {
    int16_t nodes[5] = {-1, -1, -1, -1, -1};
    const gpi__reduction *reduction = &gpi__reductions[d->graph.assigned[output].reduction];
    const char *name = gpi__reduction_name(d->graph.assigned[output].reduction, d->desc.exchanged);
    char place[GPI__PLACE_TEXT];
    int node = d->graph.assigned[output].node, width = d->graph.nodes[node].width, upstream, saved;
    if (!d->depends[node])
        return GEMMEPI_OK;
    (void)gpi__name_place(d->desc.text, d->graph.assigned[output].at, place);
    GPI__INVALID_IF(reduction->op == GPI__REDUCE_MAX || reduction->op == GPI__REDUCE_ARGMAX,
                    "%s: %s, which %s is assigned, has no derivative", place, name,
                    d->desc.operands[output].name);
    GPI__INVALID_IF(
        reduction->name[0] && width == GPI__ANY && !gpi__has_columns((int)reduction->kind) &&
            gpi__has_halves(&d->graph),
        "%s: %s, which %s is assigned, is of what does not change along columns, in a formula with "
        "halves; its gradient cannot be said in one formula",
        place, name, d->desc.operands[output].name);
    upstream = gpi__new_leaf(d, GPI__OP_UPSTREAM, output, gpi__width_of_output(d, output));
    if (upstream >= 0 && reduction->op == GPI__REDUCE_LOGSUMEXP) {
        GPI__INVALID_IF(!d->readable[output],
                        "%s: the gradient of %s reads its result %s, which desc.saved does not name", place,
                        name, d->desc.operands[output].name);
        saved = gpi__new_leaf(d, GPI__OP_OPERAND, output, gpi__width_of_output(d, output));
        nodes[0] = (int16_t)node, nodes[3] = (int16_t)saved, nodes[4] = (int16_t)upstream;
        upstream = saved < 0 ? -1 : gpi__apply_rule(d, "g * exp(x - r)", nodes);
    }
    /* what does not change along columns counts as often as the output has them */
    if (!width && gpi__has_columns((int)reduction->kind))
        width = gpi__width_of_output(d, output);
    return gpi__contribute(d, node, upstream, width ? width : d->graph.n_width);
}

/* The saved output, no reduction, that has a node's values, and changes along columns as they do; -1: none. */
static int gpi__saved_as(const gpi__derivation *d, int number) {
    const gpi__node *node = &d->graph.nodes[number];
    int o = node->op == GPI__OP_NUMBER || node->op == GPI__OP_INDEX || !node->width ? -1 : (int)GPI__RESULT;
    while (o >= 0 &&
           !(d->readable[o] && gpi__unrounded(&d->graph, o) == number && !d->graph.assigned[o].reduction))
        o--;
    return o;
}

/* Returns the rule of an activation by x or by its parameter; room: for one that is made. */
static const char *gpi__rule_of_activation(const gpi__node *node, int argument, char *room, size_t size) {
    const char *rule = gpi__activations[node->place].rules[3 + argument];
    char small[16];
    if (rule)
        return rule;
    snprintf(room, size, "g * d_%s(x%s)", gpi__small_name(node->place, small),
             node->args[1] >= 0 ? ", y" : "");
    return room;
}

static void gpi__note_0(gpi__derivation *d, int op) {
    if (gpi__operation_of(op)->traits & GPI__IS_TRUTH || op == GPI__OP_DERIVE || op == GPI__OP_SIGN)
        d->has_0 |= 4;
    else if (op == GPI__OP_FLOOR || op == GPI__OP_ROUND)
        d->has_0 |= op == GPI__OP_FLOOR ? 1 : 2;
}

/* A node, or the clamp that it is: min(max(x, 0), 6), in any order, of numbers. */
static gpi__node gpi__read_node(const gpi__graph *graph, int number) {
    gpi__node node = graph->nodes[number], clamp = gpi__node_of(GPI__OP_CLAMP, -1, -1, -1);
    int i, inner, outer, is_min = node.op == GPI__OP_MIN;
    for (i = 0; i < 4 && (is_min || node.op == GPI__OP_MAX); i++) {
        inner = node.args[i & 1], outer = node.args[!(i & 1)];
        if (!gpi__is_number(graph, outer) || graph->nodes[inner].op != (is_min ? GPI__OP_MAX : GPI__OP_MIN))
            continue;
        clamp.args[0] = graph->nodes[inner].args[i >> 1];
        inner = graph->nodes[inner].args[!(i >> 1)];
        clamp.args[1] = (int16_t)(is_min ? inner : outer), clamp.args[2] = (int16_t)(is_min ? outer : inner);
        if (gpi__is_number(graph, inner) &&
            graph->nodes[clamp.args[1]].number <= graph->nodes[clamp.args[2]].number)
            return clamp;
    }
    return node;
}

/* What comes from the adjoint of a part to what it is of. */
static int gpi__beside_zeros(gpi__graph *graph, int part, int g) {
    int16_t parts[GPI__MOST_PARTS];
    int i, zero = gpi__number(graph, 0);
    for (i = 0; i < graph->parts; i++)
        parts[i] = (int16_t)(i == part ? g : zero);
    return gpi__join_parts(graph, parts);
}

/* What comes from a node's adjoint to one of its arguments; -1: there is no room. */
static int gpi__passed_on(gpi__derivation *d, int number, int argument, int g) {
    static const char *const of_first[2][2] = {{"x <= y ? g : 0", "y < x ? g : 0"},
                                               {"x >= y ? g : 0", "y > x ? g : 0"}};
    const gpi__node node = gpi__read_node(&d->graph, number);
    int16_t nodes[5];
    char room[96];
    const char *rule;
    int zero = gpi__number(&d->graph, 0);
    switch (node.op) {
    case GPI__OP_PART:
        return gpi__beside_zeros(&d->graph, node.place, g);
    case GPI__OP_JOIN: /* the rest of a list has all of it */
        return gpi__is_op(&d->graph, node.args[argument], GPI__OP_JOIN)
                   ? g
                   : gpi__part(&d->graph, g, node.place + argument);
    case GPI__OP_ACTIVATE:
        rule = gpi__saved_as(d, number) >= 0 ? gpi__activations[node.place].rules[0] : NULL;
        if (!rule)
            rule = gpi__rule_of_activation(&node, argument, room, sizeof room);
        break;
    case GPI__OP_DERIVE:
        rule = gpi__activations[node.place].rules[1 + argument];
        rule = rule ? rule : "0";
        break;
    default:
        rule = d->ties_to_first && (node.op == GPI__OP_MIN || node.op == GPI__OP_MAX)
                   ? of_first[node.op == GPI__OP_MAX][argument]
                   : gpi__operation_of(node.op)->derivatives[argument];
    }
    if (strcmp(rule, "0") == 0) {
        gpi__note_0(d, node.op == GPI__OP_SELECT ? (int)GPI__OP_NE : (int)node.op);
        return zero;
    }
    memcpy(nodes, node.args, sizeof node.args);
    nodes[3] = (int16_t)number, nodes[4] = (int16_t)g;
    return gpi__apply_rule(d, rule, nodes);
}

/* Whole numbers have no gradient, so it is the table's that is wanted. */
static gemmepi_status gpi__refuse_table(const gpi__derivation *d, int node) {
    char place[GPI__PLACE_TEXT];
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "%s: %s is read by index; its gradient is a sum over equal indices, for which there is no "
        "reduction",
        gpi__name_place(d->desc.text, d->graph.places[node], place),
        gpi__name_in(d, d->graph.nodes[node].place));
}

static gemmepi_status gpi__sweep(gpi__derivation *d) {
    gemmepi_status status = GEMMEPI_OK;
    int i, a, passed, to, width;
    for (i = d->given - 1; i >= 0 && !status; i--) {
        if (d->adjoints[i].node < 0 || d->graph.nodes[i].op < GPI__LEAVES)
            continue;
        if (d->graph.nodes[i].op == GPI__OP_LOOK_UP && d->depends[i])
            return gpi__refuse_table(d, i);
        for (a = 0; a < 3 && !status; a++) {
            to = gpi__read_node(&d->graph, i).args[a];
            if (to < 0 || !d->depends[to])
                continue;
            passed = gpi__passed_on(d, i, a, d->adjoints[i].node);
            width = d->graph.nodes[i].op < GPI__OP_PART ? (int)d->adjoints[i].width
                    : d->graph.nodes[i].op == GPI__OP_PART || gpi__is_op(&d->graph, to, GPI__OP_JOIN)
                        ? (int)GPI__WIDE
                        : (int)GPI__NARROW;
            status = gpi__contribute(d, to, passed, width);
        }
    }
    return status;
}

static void gpi__mark_dependent(gpi__derivation *d) {
    const gpi__node *nodes = d->graph.nodes;
    int i, a, w;
    for (i = 0; i < d->given; i++) {
        for (w = 0; w < d->wrt_count; w++)
            if (d->wrt[w] == GPI__OF_VALUE ? nodes[i].op == GPI__OP_VALUE
                                           : gpi__is_of_operand(&nodes[i]) && nodes[i].place == d->wrt[w])
                d->depends[i] = 1;
        for (a = 0; a < 3; a++)
            if (nodes[i].args[a] >= 0 && d->depends[nodes[i].args[a]])
                d->depends[i] = 1;
    }
}

#endif
