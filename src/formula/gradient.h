/* A gradient as a graph by itself, with operands of its own: what would be parsed of its text, node by node. */
#ifndef GEMMEPI_FORMULA_GRADIENT_H
#define GEMMEPI_FORMULA_GRADIENT_H

#include "sweep.h"

typedef struct gpi__copying {
    const gpi__derivation *of;
    gpi__graph *to;
    int value; /* the operand that v is; -1: v is the value here, too */
    const int16_t *
        upstreams; /* the operands that the upstreams of outputs are, RESULT's last (-1: it is the value); NULL: all are 0 */
    int value_width;                 /* in the formula, of what is n columns wide in the gradient */
    int16_t nodes[GPI__GRAPH_NODES]; /* what has been made; -1: not yet */
} gpi__copying;

static int gpi__copy_node(gpi__copying *c, int number);

/* Where all of an upstream is one number, it does not change along columns. */
static int gpi__is_one_number(const gemmepi_operand *operand) {
    return operand->kind == GEMMEPI_SCALAR || operand->kind == GEMMEPI_NUMBER;
}

static int gpi__copy_leaf(const gpi__copying *c, gpi__node leaf) {
    int is_upstream = leaf.op == GPI__OP_UPSTREAM;
    if (leaf.op == GPI__OP_NUMBER && leaf.number < 0)
        return gpi__make(c->to, GPI__OP_NEG, gpi__number(c->to, -leaf.number), -1, -1);
    if (leaf.op == GPI__OP_VALUE && c->to->product >= 0)
        return c->to->product;
    if (is_upstream || (leaf.op == GPI__OP_VALUE && c->value >= 0)) {
        int place = !is_upstream ? c->value : c->upstreams ? c->upstreams[leaf.place] : 0;
        leaf.op = place < 0 ? GPI__OP_VALUE : GPI__OP_OPERAND;
        leaf.place = (int16_t)(place < 0 ? 0 : place);
        if (is_upstream && c->upstreams && place >= 0 && gpi__is_one_number(&c->to->desc->operands[place]))
            leaf.width = GPI__ANY;
    }
    if (leaf.width && leaf.op != GPI__OP_INDEX)
        leaf.width = (uint8_t)(leaf.width + c->to->n_width - c->value_width);
    return leaf.width <= GPI__WIDE ? gpi__intern(c->to, &leaf) : -1;
}

/* left * a node, its first factor first: (2 * x) * y of 2 * (x * y). */
static int gpi__copy_behind(gpi__copying *c, int left, int number) {
    const gpi__node *node = &c->of->graph.nodes[number];
    if (c->of->printer.labels[number] || (node->op != GPI__OP_MUL && node->op != GPI__OP_DIV))
        return gpi__make(c->to, GPI__OP_MUL, left, gpi__copy_node(c, number), -1);
    left = gpi__copy_behind(c, left, node->args[0]);
    return gpi__make(c->to, node->op, left, gpi__copy_node(c, node->args[1]), -1);
}

static int gpi__copy_operation(gpi__copying *c, const gpi__node *from) {
    gpi__node node = *from;
    int a;
    if (gpi__begins_with_number(&c->of->printer, from))
        return gpi__copy_behind(c, gpi__copy_node(c, from->args[0]), from->args[1]);
    for (a = 0; a < 3 && from->args[a] >= 0; a++)
        if ((node.args[a] = (int16_t)gpi__copy_node(c, from->args[a])) < 0)
            return -1;
    if (from->op >= GPI__OP_PART) {
        c->to->mode = c->of->graph.mode;
        c->to->group = c->of->graph.group;
    }
    return gpi__finish(c->to, &node);
}

/* Negative: there is no room, or widths differ. */
static int gpi__copy_node(gpi__copying *c, int number) {
    gpi__node from = c->of->graph.nodes[number];
    int label = c->of->printer.labels[number];
    if (label >= GPI__BY_OPERAND) {
        from.op = GPI__OP_OPERAND;
        from.place = (int16_t)(label - GPI__BY_OPERAND);
    }
    if (c->nodes[number] < 0)
        c->nodes[number] =
            (int16_t)(from.op < GPI__LEAVES ? gpi__copy_leaf(c, from) : gpi__copy_operation(c, &from));
    return c->nodes[number];
}

/* What has a name in the text, and the outputs; -1: as above, or an output has another width. */
static int gpi__copy_outputs(gpi__copying *c, const int16_t *outputs) {
    const gpi__printer *p = &c->of->printer;
    int i, at, node, wanted;
    memset(c->nodes, -1, sizeof c->nodes);
    for (i = 0; i < p->count; i++)
        if (p->uses[i] && p->labels[i])
            (void)gpi__copy_node(c, i);
    for (i = 0; i < p->output_count; i++) {
        at = outputs ? outputs[i] : c->of->wrt[i] == GPI__OF_VALUE ? (int)GPI__RESULT : c->of->wrt[i];
        node = gpi__copy_node(c, p->outputs[i].node);
        wanted = at == GPI__RESULT
                     ? c->to->n_width + c->of->graph.n_width - c->value_width
                     : gpi__width_of(c->to, c->to->desc->operands[at].kind, c->to->desc->operands[at].width);
        if (node < 0 || wanted < 0)
            return -1;
        if (wanted && c->to->nodes[node].width && c->to->nodes[node].width != wanted)
            return -1;
        c->to->assigned[at].node = (int16_t)node;
        c->to->assigned[at].reduction = (int16_t)p->outputs[i].reduction;
    }
    return 0;
}

/* d->gradient: the gradients that were asked for as a formula for desc, whose operands value (-1: none) and upstreams are v and what comes in
   for each output. The i-th goes to outputs[i], NULL: to an operand as wide. n is as wide as where its text is parsed. */
static gemmepi_status gpi__copy_gradient(gpi__derivation *d, const gpi__formula_desc *desc, int value,
                                         const int16_t *upstreams, const int16_t *outputs) {
    int dy_is_value = upstreams && upstreams[GPI__RESULT] < 0, n_width;
    int value_width = dy_is_value ? gpi__width_of_output(d, GPI__RESULT) : d->graph.n_width;
    gpi__copying c = {d, &d->gradient, value, upstreams, value_width, {0}};
    gpi__label_nodes(&d->printer);
    for (n_width = GPI__WIDE; n_width >= value_width; n_width--) {
        gpi__clear_graph(c.to, desc, n_width);
        c.to->parts = d->graph.parts; /* by which operands have their widths, also those that are not read */
        gpi__make_product(c.to);
        if (gpi__copy_outputs(&c, outputs) == 0)
            return GEMMEPI_OK;
    }
    return gpi__refuse_size();
}

#endif
