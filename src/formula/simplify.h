/* Nodes made of nodes, of which each is there once: folded, and, of gradients, simplified as of finite numbers that are not 0 where they
   divide; a sum of -0 and 0 may be either. */
#ifndef GEMMEPI_FORMULA_SIMPLIFY_H
#define GEMMEPI_FORMULA_SIMPLIFY_H

#include "graph.h"

static int gpi__make(gpi__graph *graph, int op, int x, int y, int z);
static int gpi__finish(gpi__graph *graph, gpi__node *node);

static int gpi__is_op(const gpi__graph *graph, int node, int op) {
    return node >= 0 && graph->nodes[node].op == op;
}

static int gpi__negative(gpi__graph *graph, int x) {
    if (gpi__is_the_number(graph, x, 0))
        return x;
    return gpi__make(graph, GPI__OP_NEG, x, -1, -1);
}

/* >>parts */

/* Part i of a node, of which a number or what does not change along columns has but one; -1: there is no room. */
static int gpi__part(gpi__graph *graph, int node, int i) {
    gpi__node part = gpi__node_of(GPI__OP_PART, node, -1, -1);
    part.place = (int16_t)i;
    return node < 0 || graph->full ? -1 : gpi__finish(graph, &part);
}

/* All parts side by side; negative: there is no room, or they are too wide. */
static int gpi__join_parts(gpi__graph *graph, const int16_t *parts) {
    int i = graph->parts - 2, joined = parts[i + 1];
    for (; i >= 0 && joined >= 0; i--) {
        gpi__node node = gpi__node_of(GPI__OP_JOIN, parts[i], joined, -1);
        node.place = (int16_t)i;
        joined = parts[i] < 0 || graph->full ? -1 : gpi__finish(graph, &node);
    }
    return joined;
}

/* Whether all that a node joins is 0. */
static int gpi__joins_zeros(const gpi__graph *graph, const gpi__node *node) {
    while (gpi__is_the_number(graph, node->args[0], 0) && gpi__is_op(graph, node->args[1], GPI__OP_JOIN))
        node = &graph->nodes[node->args[1]];
    return gpi__is_the_number(graph, node->args[0], 0) && gpi__is_the_number(graph, node->args[1], 0);
}

/* >>factors: a number stands first in its product, and the rest of it keeps what others share */

/* 2 of 2 * x, -1 of -x, 1 of others; *rest is x. */
static double gpi__split_number(const gpi__graph *graph, int node, int *rest) {
    const gpi__node *n = &graph->nodes[node];
    *rest = node;
    if (n->op == GPI__OP_NEG) {
        *rest = n->args[0];
        return -1;
    }
    if (n->op != GPI__OP_MUL || !gpi__is_number(graph, n->args[0]))
        return 1;
    *rest = n->args[1];
    return graph->nodes[n->args[0]].number;
}

/* x + y or x * y as a number, rounded as a number of the text is; -1: it is out of F32's range. */
static int gpi__join_numbers(gpi__graph *graph, int op, double x, double y) {
    double joined = op == GPI__OP_ADD ? x + y : x * y;
    if (!(fabs(joined) <= FLT_MAX) || (joined != 0 && fabs(joined) < FLT_MIN))
        return -1;
    return gpi__number(graph, joined);
}

enum { GPI__MOST_FACTORS = 8 };

/* The factors of a product in ascending order, behind those that are there; how many there are then, -1: too many. */
static int gpi__list_factors(const gpi__graph *graph, int node, int16_t factors[GPI__MOST_FACTORS],
                             int count) {
    const gpi__node *n = &graph->nodes[node];
    int i;
    if (n->op == GPI__OP_MUL) {
        count = gpi__list_factors(graph, n->args[0], factors, count);
        return count < 0 ? -1 : gpi__list_factors(graph, n->args[1], factors, count);
    }
    if (count == GPI__MOST_FACTORS)
        return -1;
    for (i = count; i > 0 && factors[i - 1] > node; i--)
        factors[i] = factors[i - 1];
    factors[i] = (int16_t)node;
    return count + 1;
}

static int gpi__same_factors(const gpi__graph *graph, int x, int y) {
    int16_t of_x[GPI__MOST_FACTORS], of_y[GPI__MOST_FACTORS];
    int count = gpi__list_factors(graph, x, of_x, 0);
    return x == y || (count > 0 && gpi__list_factors(graph, y, of_y, 0) == count &&
                      memcmp(of_x, of_y, (size_t)count * sizeof of_x[0]) == 0);
}

/* 2 * x of x + x, 5 * x of 2 * x + 3 * x; -1: they are not alike. sign: of y */
static int gpi__add_alike(gpi__graph *graph, int x, int y, double sign) {
    int rest_x, rest_y, number;
    double of_x = gpi__split_number(graph, x, &rest_x), of_y = sign * gpi__split_number(graph, y, &rest_y);
    if (gpi__is_number(graph, rest_x) || !gpi__same_factors(graph, rest_x, rest_y))
        return -1;
    number = gpi__join_numbers(graph, GPI__OP_ADD, of_x, of_y);
    return number >= 0 ? gpi__make(graph, GPI__OP_MUL, number, rest_x, -1) : -1;
}

/* g * (x + y) of g * x + g * y, and with -; -1: they have no first factor in common. */
static int gpi__add_within(gpi__graph *graph, int op, int x, int y) {
    const gpi__node *first = &graph->nodes[x], *second = &graph->nodes[y];
    int g = first->args[0];
    if (first->op != GPI__OP_MUL || second->op != GPI__OP_MUL || g != second->args[0])
        return -1;
    return gpi__make(graph, GPI__OP_MUL, g, gpi__make(graph, op, first->args[1], second->args[1], -1), -1);
}

/* Numbers to the front: 2 * x of x * 2, 6 * x of 2 * (3 * x), 2 * (x * y) of x * (2 * y); -1: they are there. */
static int gpi__number_first(gpi__graph *graph, int x, int y) {
    const gpi__node *nodes = graph->nodes;
    int number, rest;
    if (gpi__is_number(graph, y))
        return gpi__is_number(graph, x) ? -1 : gpi__make(graph, GPI__OP_MUL, y, x, -1);
    if (gpi__is_op(graph, y, GPI__OP_MUL) && gpi__is_number(graph, nodes[y].args[0])) {
        number = nodes[y].args[0], rest = nodes[y].args[1];
        if (!gpi__is_number(graph, x))
            return gpi__make(graph, GPI__OP_MUL, number, gpi__make(graph, GPI__OP_MUL, x, rest, -1), -1);
        number = gpi__join_numbers(graph, GPI__OP_MUL, nodes[x].number, nodes[number].number);
        return number >= 0 ? gpi__make(graph, GPI__OP_MUL, number, rest, -1) : -1;
    }
    if (!gpi__is_op(graph, x, GPI__OP_MUL) || !gpi__is_number(graph, nodes[x].args[0]))
        return -1;
    number = nodes[x].args[0], rest = nodes[x].args[1];
    return gpi__make(graph, GPI__OP_MUL, number, gpi__make(graph, GPI__OP_MUL, rest, y, -1), -1);
}

/* The product without one of its factors; -1: it has no such one. */
static int gpi__without_factor(gpi__graph *graph, int node, int factor, int depth) {
    const gpi__node n = graph->nodes[node];
    int rest;
    if (n.op != GPI__OP_MUL || depth == GPI__MOST_FACTORS || gpi__is_number(graph, factor))
        return -1;
    if (n.args[1] == factor || n.args[0] == factor)
        return n.args[n.args[1] == factor ? 0 : 1];
    rest = gpi__without_factor(graph, n.args[0], factor, depth + 1);
    return rest >= 0 ? gpi__make(graph, GPI__OP_MUL, rest, n.args[1], -1) : -1;
}

/* >>selections */

/* Of c ? x : 0 and c ? 0 : x which of the two is 0; 0: neither. */
static int gpi__zero_branch(const gpi__graph *graph, int node) {
    const gpi__node *n = &graph->nodes[node];
    if (n->op != GPI__OP_SELECT)
        return 0;
    return gpi__is_the_number(graph, n->args[1], 0) ? 1 : gpi__is_the_number(graph, n->args[2], 0) ? 2 : 0;
}

/* A masked sum s: s op y becomes s != 0 ? s op y : 0. Part by part each factor would come to each of its terms, which double in chains. */
static int gpi__select_sum(gpi__graph *graph, const gpi__node *node, int sum) {
    int zero = gpi__number(graph, 0), there = gpi__make(graph, GPI__OP_NE, sum, zero, -1);
    return gpi__make(graph, GPI__OP_SELECT, there, gpi__intern(graph, node), zero);
}

/* (c ? x : 0) op y becomes c ? x op y : 0: a y that is NaN has no effect where it is not taken. So does all that is masked, part by part;
   -1: it is not. What is masked is the argument `which` of the operation. */
static int gpi__select_outside(gpi__graph *graph, const gpi__node *node, int which) {
    int masked = node->args[which], other = node->args[1 - which], part, beside, i;
    const gpi__node parts = graph->nodes[masked];
    int first = parts.op == GPI__OP_SELECT, joins = parts.op == GPI__OP_JOIN;
    int16_t made[GPI__MOST_PARTS];
    if (gpi__is_number(graph, masked) || !graph->masked[masked] || parts.args[first + 1] < 0)
        return -1;
    if ((parts.op == GPI__OP_ADD || parts.op == GPI__OP_SUB) && !gpi__is_number(graph, other))
        return gpi__select_sum(graph, node, masked);
    for (i = 0; i < (joins ? graph->parts : 2); i++) {
        part = joins ? gpi__joined_part(graph->nodes, masked, i) : parts.args[first + i];
        beside = joins ? gpi__part(graph, other, i) : other;
        made[i] = (int16_t)gpi__make(graph, node->op, which ? beside : part, which ? part : beside, -1);
    }
    if (joins)
        return gpi__join_parts(graph, made);
    return first ? gpi__make(graph, GPI__OP_SELECT, parts.args[0], made[0], made[1])
                 : gpi__make(graph, parts.op, made[0], made[1], -1);
}

/* One part of columns of what is masked: of its parts, so that the selections are outside; of what is joined, that one. -1: it stays. */
static int gpi__part_of_parts(gpi__graph *graph, int x, int part) {
    const gpi__node n = graph->nodes[x];
    int i, made[3] = {-1, -1, -1};
    if (n.op == GPI__OP_JOIN)
        return gpi__joined_part(graph->nodes, x, part);
    if (!graph->masked[x])
        return -1;
    for (i = 0; i < 3 && n.args[i] >= 0; i++)
        made[i] = gpi__part(graph, n.args[i], part);
    return gpi__make(graph, n.op, made[0], made[1], made[2]);
}

static int gpi__negative_selection(gpi__graph *graph, gpi__node select) {
    int first = gpi__negative(graph, select.args[1]);
    return gpi__make(graph, GPI__OP_SELECT, select.args[0], first, gpi__negative(graph, select.args[2]));
}

/* g * (c ? a : b) of c ? g * a : g * b; -1: they have no first factor in common. */
static int gpi__select_within(gpi__graph *graph, int c, int x, int y) {
    double of_x = gpi__split_number(graph, x, &x), of_y = gpi__split_number(graph, y, &y);
    const gpi__node n = graph->nodes[x];
    if (n.op != GPI__OP_MUL || (y = gpi__without_factor(graph, y, n.args[0], 0)) < 0)
        return -1;
    x = gpi__make(graph, GPI__OP_MUL, gpi__number(graph, of_x), n.args[1], -1);
    y = gpi__make(graph, GPI__OP_MUL, gpi__number(graph, of_y), y, -1);
    return gpi__make(graph, GPI__OP_MUL, n.args[0], gpi__make(graph, GPI__OP_SELECT, c, x, y), -1);
}

/* clamp(x, -k, k) of abs(x) < k ? x : k * sign(x), k a number above 0; -1: it is none. */
static int gpi__select_clamp(gpi__graph *graph, int c, int x, int y) {
    const gpi__node n = graph->nodes[c];
    int k = n.args[1], is_less = n.op == GPI__OP_LT || n.op == GPI__OP_LE, inside = is_less ? x : y;
    if ((!is_less && n.op != GPI__OP_GT && n.op != GPI__OP_GE) ||
        !gpi__is_op(graph, n.args[0], GPI__OP_ABS) || graph->nodes[n.args[0]].args[0] != inside ||
        !gpi__is_number(graph, k) || !(graph->nodes[k].number > 0) ||
        gpi__make(graph, GPI__OP_MUL, k, gpi__make(graph, GPI__OP_SIGN, inside, -1, -1), -1) !=
            (is_less ? y : x))
        return -1;
    return gpi__make(graph, GPI__OP_CLAMP, inside, gpi__number(graph, -graph->nodes[k].number), k);
}

/* Two selections by one condition. */
static int gpi__add_selections(gpi__graph *graph, int x, int y) {
    const gpi__node first = graph->nodes[x], second = graph->nodes[y];
    int a;
    if (!gpi__zero_branch(graph, x) || !gpi__zero_branch(graph, y) || first.args[0] != second.args[0])
        return -1;
    a = gpi__make(graph, GPI__OP_ADD, first.args[1], second.args[1], -1);
    return gpi__make(graph, GPI__OP_SELECT, first.args[0], a,
                     gpi__make(graph, GPI__OP_ADD, first.args[2], second.args[2], -1));
}

/* >>the logistic function */

static int gpi__sigmoid(gpi__graph *graph, int x) {
    gpi__node node = gpi__node_of(GPI__OP_ACTIVATE, x, -1, -1);
    node.place = (int16_t)(gpi__activation_of(GEMMEPI_SIGMOID) - gpi__activations);
    return x < 0 || graph->full ? -1 : gpi__finish(graph, &node);
}

/* g * sigmoid(x) of g / (1 + exp(x)) * exp(x); -1: it is none. */
static int gpi__product_of_logistic(gpi__graph *graph, int quotient, int e) {
    const gpi__node n = graph->nodes[quotient];
    int sum = n.op == GPI__OP_DIV && gpi__is_op(graph, e, GPI__OP_EXP) ? n.args[1] : -1, i;
    for (i = 0; i < 2 && gpi__is_op(graph, sum, GPI__OP_ADD); i++)
        if (graph->nodes[sum].args[i] == e && gpi__is_the_number(graph, graph->nodes[sum].args[!i], 1))
            return gpi__make(graph, GPI__OP_MUL, n.args[0], gpi__sigmoid(graph, graph->nodes[e].args[0]), -1);
    return -1;
}

/* g * sigmoid(x) of (x > 0 ? g : ..) - g * sigmoid(-abs(x)) * sign(x), as of max(x, 0) + log1p(exp(-abs(x))); -1: it is none. */
static int gpi__difference_of_logistic(gpi__graph *graph, int step, int y) {
    const gpi__node s = graph->nodes[step], *c = &graph->nodes[s.op == GPI__OP_SELECT ? s.args[0] : step];
    int x = c->args[0], g = s.args[1], zero = c->args[1], down;
    if ((c->op != GPI__OP_GT && c->op != GPI__OP_GE) || s.op != GPI__OP_SELECT ||
        !gpi__is_the_number(graph, zero, 0) || !gpi__is_op(graph, y, GPI__OP_MUL))
        return -1;
    down = gpi__make(graph, GPI__OP_MUL, gpi__number(graph, 0.5), g, -1);
    down = gpi__make(graph, GPI__OP_SELECT, gpi__make(graph, GPI__OP_EQ, x, zero, -1), down, zero);
    if (s.args[2] != zero && s.args[2] != down)
        return -1;
    down = gpi__sigmoid(graph, gpi__negative(graph, gpi__make(graph, GPI__OP_ABS, x, -1, -1)));
    down = gpi__make(graph, GPI__OP_MUL, gpi__make(graph, GPI__OP_MUL, g, down, -1),
                     gpi__make(graph, GPI__OP_SIGN, x, -1, -1), -1);
    return down == y ? gpi__make(graph, GPI__OP_MUL, g, gpi__sigmoid(graph, x), -1) : -1;
}

/* x + sign * y of two that come to one; -1: they do not. */
static int gpi__join_two(gpi__graph *graph, int x, int y, int sign) {
    int joined = gpi__add_alike(graph, x, y, sign);
    if (joined >= 0 || (sign > 0 && !gpi__is_op(graph, x, GPI__OP_NEG)))
        return joined;
    return sign > 0 ? gpi__difference_of_logistic(graph, y, graph->nodes[x].args[0])
                    : gpi__difference_of_logistic(graph, x, y);
}

/* A sum or difference, plus sign * y, which comes to one with a term of it: (p + q) + q; -1: with none. */
static int gpi__add_to_sum(gpi__graph *graph, int sum, int y, int sign) {
    const gpi__node n = graph->nodes[sum];
    int first = n.args[0], second = n.args[1], joined, is_sum = n.op == GPI__OP_ADD;
    if (!is_sum && n.op != GPI__OP_SUB)
        return -1;
    joined = is_sum     ? gpi__join_two(graph, second, y, sign)
             : sign > 0 ? gpi__join_two(graph, y, second, -1)
                        : gpi__join_two(graph, second, y, 1);
    if (joined >= 0)
        return gpi__make(graph, is_sum || sign > 0 ? GPI__OP_ADD : GPI__OP_SUB, first, joined, -1);
    joined = gpi__join_two(graph, first, y, sign);
    return joined < 0 ? -1 : gpi__make(graph, n.op, joined, second, -1);
}

/* >>all */

/* x + y of what is alike, or has a factor in common; -1: neither. */
static int gpi__join_terms(gpi__graph *graph, int op, int x, int y) {
    int sign = op == GPI__OP_SUB ? -1 : 1, joined = gpi__join_two(graph, x, y, sign);
    if (joined < 0)
        joined = gpi__add_to_sum(graph, x, y, sign);
    return joined >= 0 ? joined : gpi__add_within(graph, op, x, y);
}

/* -2 * x as -(2 * x); -1: it begins with no such number. */
static int gpi__without_sign(gpi__graph *graph, int node) {
    const gpi__node *n = &graph->nodes[node];
    if (n->op != GPI__OP_MUL || !gpi__is_number(graph, n->args[0]) || !(graph->nodes[n->args[0]].number < 0))
        return -1;
    return gpi__make(graph, GPI__OP_MUL, gpi__number(graph, -graph->nodes[n->args[0]].number), n->args[1],
                     -1);
}

static int gpi__simplify_difference(gpi__graph *graph, int x, int y) {
    int positive;
    if (gpi__is_the_number(graph, y, 0))
        return x;
    if (gpi__is_the_number(graph, x, 0))
        return gpi__negative(graph, y);
    positive = gpi__is_op(graph, y, GPI__OP_NEG) ? graph->nodes[y].args[0] : gpi__without_sign(graph, y);
    return positive >= 0 ? gpi__make(graph, GPI__OP_ADD, x, positive, -1)
                         : gpi__join_terms(graph, GPI__OP_SUB, x, y);
}

static int gpi__add_joined(gpi__graph *graph, int x, int y) {
    int16_t sums[GPI__MOST_PARTS];
    int i;
    for (i = 0; i < graph->parts; i++)
        sums[i] = (int16_t)gpi__make(graph, GPI__OP_ADD, gpi__joined_part(graph->nodes, x, i),
                                     gpi__joined_part(graph->nodes, y, i), -1);
    return gpi__join_parts(graph, sums);
}

static int gpi__simplify_sum(gpi__graph *graph, int x, int y) {
    const gpi__node *nodes = graph->nodes;
    int first;
    if (gpi__is_the_number(graph, x, 0))
        return y;
    if (gpi__is_the_number(graph, y, 0))
        return x;
    if (gpi__is_op(graph, y, GPI__OP_NEG))
        return gpi__make(graph, GPI__OP_SUB, x, nodes[y].args[0], -1);
    if (gpi__is_op(graph, x, GPI__OP_NEG))
        return gpi__make(graph, GPI__OP_SUB, y, nodes[x].args[0], -1);
    if ((first = gpi__without_sign(graph, y)) >= 0)
        return gpi__make(graph, GPI__OP_SUB, x, first, -1);
    if ((first = gpi__without_sign(graph, x)) >= 0)
        return gpi__make(graph, GPI__OP_SUB, y, first, -1);
    if (gpi__is_op(graph, x, GPI__OP_JOIN) && gpi__is_op(graph, y, GPI__OP_JOIN))
        return gpi__add_joined(graph, x, y);
    first = gpi__add_selections(graph, x, y);
    return first >= 0 ? first : gpi__join_terms(graph, GPI__OP_ADD, x, y);
}

static int gpi__simplify_product(gpi__graph *graph, const gpi__node *node) {
    int x = node->args[0], y = node->args[1], selected;
    if (gpi__is_the_number(graph, x, 0) || gpi__is_the_number(graph, y, 1))
        return x;
    if (gpi__is_the_number(graph, y, 0) || gpi__is_the_number(graph, x, 1))
        return y;
    if (gpi__is_the_number(graph, x, -1))
        return gpi__negative(graph, y);
    if (gpi__is_the_number(graph, y, -1))
        return gpi__negative(graph, x);
    if (gpi__is_op(graph, x, GPI__OP_NEG))
        return gpi__negative(graph, gpi__make(graph, GPI__OP_MUL, graph->nodes[x].args[0], y, -1));
    if (gpi__is_op(graph, y, GPI__OP_NEG))
        return gpi__negative(graph, gpi__make(graph, GPI__OP_MUL, x, graph->nodes[y].args[0], -1));
    selected = gpi__product_of_logistic(graph, x, y);
    if (selected < 0)
        selected = gpi__number_first(graph, x, y);
    if (selected < 0)
        selected = gpi__select_outside(graph, node, 0);
    return selected >= 0 ? selected : gpi__select_outside(graph, node, 1);
}

static int gpi__simplify_quotient(gpi__graph *graph, const gpi__node *node) {
    int x = node->args[0], y = node->args[1], rest;
    if (gpi__is_op(graph, x, GPI__OP_NEG))
        return gpi__negative(graph, gpi__make(graph, GPI__OP_DIV, graph->nodes[x].args[0], y, -1));
    if (gpi__is_the_number(graph, x, 0) || gpi__is_the_number(graph, y, 1))
        return x;
    rest = gpi__without_factor(graph, x, y, 0);
    return rest >= 0 ? rest : gpi__select_outside(graph, node, 0);
}

static int gpi__simplify_negative(gpi__graph *graph, int x) {
    const gpi__node *n = &graph->nodes[x];
    if (n->op == GPI__OP_NEG)
        return n->args[0];
    if (gpi__zero_branch(graph, x))
        return gpi__negative_selection(graph, *n);
    if (n->op == GPI__OP_SUB)
        return gpi__make(graph, GPI__OP_SUB, n->args[1], n->args[0], -1);
    if (n->op == GPI__OP_MUL && gpi__is_number(graph, n->args[0]))
        return gpi__make(graph, GPI__OP_MUL, gpi__number(graph, -graph->nodes[n->args[0]].number), n->args[1],
                         -1);
    return -1;
}

/* What the operation comes to; -1: it stays. */
static int gpi__simplify_node(gpi__graph *graph, const gpi__node *node) {
    const gpi__node *nodes = graph->nodes;
    int x = node->args[0], y = node->args[1], found;
    switch (node->op) {
    case GPI__OP_ADD:
        return gpi__simplify_sum(graph, x, y);
    case GPI__OP_SUB:
        return gpi__simplify_difference(graph, x, y);
    case GPI__OP_MUL:
        return gpi__simplify_product(graph, node);
    case GPI__OP_DIV:
        return gpi__simplify_quotient(graph, node);
    case GPI__OP_NEG:
        return gpi__simplify_negative(graph, x);
    case GPI__OP_POW:
        return gpi__is_the_number(graph, y, 1)   ? x
               : gpi__is_the_number(graph, y, 0) ? gpi__number(graph, 1)
                                                 : -1;
    case GPI__OP_EQ:
        return gpi__is_number(graph, x) && !gpi__is_number(graph, y) ? gpi__make(graph, GPI__OP_EQ, y, x, -1)
                                                                     : -1;
    case GPI__OP_SELECT:
        if (gpi__is_number(graph, x))
            return node->args[nodes[x].number != 0 ? 1 : 2];
        if (y == node->args[2])
            return y;
        found = gpi__select_clamp(graph, x, y, node->args[2]);
        return found >= 0 ? found : gpi__select_within(graph, x, y, node->args[2]);
    case GPI__OP_JOIN:
        return node->place == 0 && gpi__joins_zeros(graph, node) ? x : -1;
    case GPI__OP_PART:
        return gpi__part_of_parts(graph, x, node->place);
    default:
        return -1;
    }
}

/* >>nodes of nodes */

/* The width of what an operation makes of arguments so wide; -1: they are of different widths. */
static int gpi__joint_width(int op, const int widths[3]) {
    int i, joint = GPI__ANY;
    for (i = 0; i < 3; i++) {
        if (widths[i] && joint && widths[i] != joint)
            return -1;
        joint = widths[i] ? widths[i] : joint;
    }
    switch (op) {
    case GPI__OP_PART:
        return joint == GPI__NARROW ? -1 : joint ? (int)GPI__NARROW : (int)GPI__ANY;
    case GPI__OP_JOIN:
        return joint == GPI__WIDE ? -1 : GPI__WIDE;
    case GPI__OP_UNIFORM:
        return GPI__WIDE;
    default:
        return joint;
    }
}

static int gpi__result_type(const gpi__graph *graph, const gpi__node *node) {
    if (node->op == GPI__OP_PART)
        return graph->nodes[node->args[0]].type;
    return gpi__operation_of(node->op)->traits & GPI__IS_TRUTH ? GPI__OF_TRUTH : GPI__OF_NUMBERS;
}

/* What the operation comes to; -1: it stays, or there is no room. A sum whose parts have parts in common would be gone through once for
   each way to them: what was found is kept. */
static int gpi__come_to(gpi__graph *graph, const gpi__node *node) {
    int op = node->op + 256 * node->place, found;
    int place =
        (int)(gpi__hash_word(gpi__hash(node->args, sizeof node->args), (uint64_t)op) % GPI__SIMPLIFIED);
    gpi__simplified *s = &graph->simplified[place];
    if (s->op == op && memcmp(s->args, node->args, sizeof s->args) == 0)
        return s->result;
    found = gpi__simplify_node(graph, node);
    if (found >= 0) {
        s->op = (int16_t)op;
        memcpy(s->args, node->args, sizeof s->args);
        s->result = (int16_t)found;
    }
    return found;
}

/* The node with type and width filled in, or what it comes to. -1: there is no room, or an argument is -1; -2: widths differ. */
static int gpi__finish(gpi__graph *graph, gpi__node *node) {
    int widths[3], i, width, found;
    for (i = 0; i < 3; i++)
        widths[i] = node->args[i] >= 0 ? graph->nodes[node->args[i]].width : 0;
    if (node->op == GPI__OP_JOIN && gpi__is_op(graph, node->args[1], GPI__OP_JOIN) &&
        graph->nodes[node->args[1]].place == node->place + 1)
        widths[1] = GPI__NARROW; /* the rest of the list */
    width = gpi__joint_width(node->op, widths);
    if (width < 0)
        return -2;
    if (node->op == GPI__OP_PART && width == GPI__ANY)
        return node->args[0];
    if (node->op == GPI__OP_STOCHASTIC && !width) /* each column has a number of its own */
        width = graph->n_width;
    node->width = (uint8_t)width;
    node->type = (uint8_t)gpi__result_type(graph, node);
    found = gpi__fold(graph, node);
    if (found < 0 && graph->simplifies)
        found = gpi__come_to(graph, node);
    return found >= 0 ? found : gpi__intern(graph, node);
}

/* An operation of nodes that fit; -1: there is no room. */
static int gpi__make(gpi__graph *graph, int op, int x, int y, int z) {
    gpi__node node = gpi__node_of(op, x, y, z);
    int least = gpi__operation_of(op)->least;
    if (x < 0 || (least > 1 && y < 0) || (least > 2 && z < 0) || graph->full)
        return -1;
    return gpi__finish(graph, &node);
}

/* What desc.product says, as the graph's first nodes. */
static void gpi__make_product(gpi__graph *graph) {
    gpi__node node = gpi__node_of(GPI__OP_VALUE, -1, -1, -1);
    if (!graph->desc->product)
        return;
    node.width = (uint8_t)graph->n_width;
    graph->product = gpi__intern(graph, &node);
    if (graph->desc->product == 1)
        return;
    node.op = GPI__OP_OPERAND;
    node.place = (int16_t)(graph->desc->product - 2);
    node.type = graph->desc->accumulator == GEMMEPI_I32 ? GPI__OF_WHOLE : GPI__OF_NUMBERS;
    graph->product = gpi__make(graph, GPI__OP_ADD, graph->product, gpi__intern(graph, &node), -1);
}

#endif
