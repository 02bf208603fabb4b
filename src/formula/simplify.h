/* Nodes made of nodes, of which each is there once: folded, and, of gradients, simplified as of finite numbers that are not 0 where they
   divide; a sum of -0 and 0 may be either. */
#ifndef GEMMEPI_FORMULA_SIMPLIFY_H
#define GEMMEPI_FORMULA_SIMPLIFY_H

#include "graph.h"

static int gemmepi__make(gemmepi__graph *graph, int op, int x, int y, int z);

static int gemmepi__is_op(const gemmepi__graph *graph, int node, int op) {
    return node >= 0 && graph->nodes[node].op == op;
}

static int gemmepi__negative(gemmepi__graph *graph, int x) {
    if (gemmepi__is_the_number(graph, x, 0))
        return x;
    return gemmepi__make(graph, GEMMEPI__OP_NEG, x, -1, -1);
}

/* >>factors: a number stands first in its product, and the rest of it keeps what others share */

/* 2 of 2 * x, -1 of -x, 1 of others; *rest is x. */
static double gemmepi__split_number(const gemmepi__graph *graph, int node, int *rest) {
    const gemmepi__node *n = &graph->nodes[node];
    *rest = node;
    if (n->op == GEMMEPI__OP_NEG) {
        *rest = n->args[0];
        return -1;
    }
    if (n->op != GEMMEPI__OP_MUL || !gemmepi__is_number(graph, n->args[0]))
        return 1;
    *rest = n->args[1];
    return graph->nodes[n->args[0]].number;
}

/* x + y or x * y as a number, rounded as a number of the text is; -1: it is out of F32's range. */
static int gemmepi__join_numbers(gemmepi__graph *graph, int op, double x, double y) {
    double joined = op == GEMMEPI__OP_ADD ? x + y : x * y;
    if (!(fabs(joined) <= FLT_MAX) || (joined != 0 && fabs(joined) < FLT_MIN))
        return -1;
    return gemmepi__number(graph, joined);
}

enum { GEMMEPI__MOST_FACTORS = 8 };

/* The factors of a product in ascending order, behind those that are there; how many there are then, -1: too many. */
static int gemmepi__list_factors(const gemmepi__graph *graph, int node,
                                 int16_t factors[GEMMEPI__MOST_FACTORS], int count) {
    const gemmepi__node *n = &graph->nodes[node];
    int i;
    if (n->op == GEMMEPI__OP_MUL) {
        count = gemmepi__list_factors(graph, n->args[0], factors, count);
        return count < 0 ? -1 : gemmepi__list_factors(graph, n->args[1], factors, count);
    }
    if (count == GEMMEPI__MOST_FACTORS)
        return -1;
    for (i = count; i > 0 && factors[i - 1] > node; i--)
        factors[i] = factors[i - 1];
    factors[i] = (int16_t)node;
    return count + 1;
}

static int gemmepi__same_factors(const gemmepi__graph *graph, int x, int y) {
    int16_t of_x[GEMMEPI__MOST_FACTORS], of_y[GEMMEPI__MOST_FACTORS];
    int count = gemmepi__list_factors(graph, x, of_x, 0);
    return x == y || (count > 0 && gemmepi__list_factors(graph, y, of_y, 0) == count &&
                      memcmp(of_x, of_y, (size_t)count * sizeof of_x[0]) == 0);
}

/* 2 * x of x + x, 5 * x of 2 * x + 3 * x; -1: they are not alike. sign: of y */
static int gemmepi__add_alike(gemmepi__graph *graph, int x, int y, double sign) {
    int rest_x, rest_y, number;
    double of_x = gemmepi__split_number(graph, x, &rest_x),
           of_y = sign * gemmepi__split_number(graph, y, &rest_y);
    if (gemmepi__is_number(graph, rest_x) || !gemmepi__same_factors(graph, rest_x, rest_y))
        return -1;
    number = gemmepi__join_numbers(graph, GEMMEPI__OP_ADD, of_x, of_y);
    return number >= 0 ? gemmepi__make(graph, GEMMEPI__OP_MUL, number, rest_x, -1) : -1;
}

/* g * (x + y) of g * x + g * y, and with -; -1: they have no first factor in common. */
static int gemmepi__add_within(gemmepi__graph *graph, int op, int x, int y) {
    const gemmepi__node *first = &graph->nodes[x], *second = &graph->nodes[y];
    int g = first->args[0];
    if (first->op != GEMMEPI__OP_MUL || second->op != GEMMEPI__OP_MUL || g != second->args[0])
        return -1;
    return gemmepi__make(graph, GEMMEPI__OP_MUL, g,
                         gemmepi__make(graph, op, first->args[1], second->args[1], -1), -1);
}

/* A sum and another of what is in it: (p + q) + q; -1: it has none. */
static int gemmepi__add_to_sum(gemmepi__graph *graph, int sum, int y) {
    const gemmepi__node n = graph->nodes[sum];
    int which, alike;
    for (which = 1; which >= 0 && n.op == GEMMEPI__OP_ADD; which--) {
        alike = gemmepi__add_alike(graph, n.args[which], y, 1);
        if (alike >= 0)
            return which ? gemmepi__make(graph, GEMMEPI__OP_ADD, n.args[0], alike, -1)
                         : gemmepi__make(graph, GEMMEPI__OP_ADD, alike, n.args[1], -1);
    }
    return -1;
}

/* Numbers to the front: 2 * x of x * 2, 6 * x of 2 * (3 * x), 2 * (x * y) of x * (2 * y); -1: they are there. */
static int gemmepi__number_first(gemmepi__graph *graph, int x, int y) {
    const gemmepi__node *nodes = graph->nodes;
    int number, rest;
    if (gemmepi__is_number(graph, y))
        return gemmepi__is_number(graph, x) ? -1 : gemmepi__make(graph, GEMMEPI__OP_MUL, y, x, -1);
    if (gemmepi__is_op(graph, y, GEMMEPI__OP_MUL) && gemmepi__is_number(graph, nodes[y].args[0])) {
        number = nodes[y].args[0], rest = nodes[y].args[1];
        if (!gemmepi__is_number(graph, x))
            return gemmepi__make(graph, GEMMEPI__OP_MUL, number,
                                 gemmepi__make(graph, GEMMEPI__OP_MUL, x, rest, -1), -1);
        number = gemmepi__join_numbers(graph, GEMMEPI__OP_MUL, nodes[x].number, nodes[number].number);
        return number >= 0 ? gemmepi__make(graph, GEMMEPI__OP_MUL, number, rest, -1) : -1;
    }
    if (!gemmepi__is_op(graph, x, GEMMEPI__OP_MUL) || !gemmepi__is_number(graph, nodes[x].args[0]))
        return -1;
    number = nodes[x].args[0], rest = nodes[x].args[1];
    return gemmepi__make(graph, GEMMEPI__OP_MUL, number, gemmepi__make(graph, GEMMEPI__OP_MUL, rest, y, -1),
                         -1);
}

/* The product without one of its factors; -1: it has no such one. */
static int gemmepi__without_factor(gemmepi__graph *graph, int node, int factor, int depth) {
    const gemmepi__node n = graph->nodes[node];
    int rest;
    if (n.op != GEMMEPI__OP_MUL || depth == GEMMEPI__MOST_FACTORS || gemmepi__is_number(graph, factor))
        return -1;
    if (n.args[1] == factor || n.args[0] == factor)
        return n.args[n.args[1] == factor ? 0 : 1];
    rest = gemmepi__without_factor(graph, n.args[0], factor, depth + 1);
    return rest >= 0 ? gemmepi__make(graph, GEMMEPI__OP_MUL, rest, n.args[1], -1) : -1;
}

/* >>selections */

/* Of c ? x : 0 and c ? 0 : x which of the two is 0; 0: neither. */
static int gemmepi__zero_branch(const gemmepi__graph *graph, int node) {
    const gemmepi__node *n = &graph->nodes[node];
    if (n->op != GEMMEPI__OP_SELECT)
        return 0;
    return gemmepi__is_the_number(graph, n->args[1], 0)   ? 1
           : gemmepi__is_the_number(graph, n->args[2], 0) ? 2
                                                          : 0;
}

/* (c ? x : 0) op y becomes c ? x op y : 0: a y that is NaN has no effect where it is not taken. So does all that is masked, part by part;
   -1: it is not. What is masked is the argument `which` of the operation. */
static int gemmepi__select_outside(gemmepi__graph *graph, const gemmepi__node *node, int which) {
    int masked = node->args[which], other = node->args[1 - which], part, beside, i, made[2];
    const gemmepi__node parts = graph->nodes[masked];
    int first = parts.op == GEMMEPI__OP_SELECT;
    if (gemmepi__is_number(graph, masked) || !graph->masked[masked] || parts.args[first + 1] < 0)
        return -1;
    for (i = 0; i < 2; i++) {
        part = parts.args[first + i];
        beside = parts.op != GEMMEPI__OP_BOTH
                     ? other
                     : gemmepi__make(graph, i ? GEMMEPI__OP_SECOND : GEMMEPI__OP_FIRST, other, -1, -1);
        made[i] = gemmepi__make(graph, node->op, which ? beside : part, which ? part : beside, -1);
    }
    return first ? gemmepi__make(graph, GEMMEPI__OP_SELECT, parts.args[0], made[0], made[1])
                 : gemmepi__make(graph, parts.op, made[0], made[1], -1);
}

/* One half of columns of what is masked: of its parts, so that the selections are outside; of a pair, one of the two. -1: it stays. */
static int gemmepi__half_of_parts(gemmepi__graph *graph, int op, int x) {
    const gemmepi__node n = graph->nodes[x];
    int i, made[3] = {-1, -1, -1};
    if (n.op == GEMMEPI__OP_BOTH)
        return n.args[op == GEMMEPI__OP_SECOND];
    if (!graph->masked[x])
        return -1;
    for (i = 0; i < 3 && n.args[i] >= 0; i++)
        made[i] = gemmepi__make(graph, op, n.args[i], -1, -1);
    return gemmepi__make(graph, n.op, made[0], made[1], made[2]);
}

static int gemmepi__negative_selection(gemmepi__graph *graph, gemmepi__node select) {
    int first = gemmepi__negative(graph, select.args[1]);
    return gemmepi__make(graph, GEMMEPI__OP_SELECT, select.args[0], first,
                         gemmepi__negative(graph, select.args[2]));
}

/* Two selections by one condition. */
static int gemmepi__add_selections(gemmepi__graph *graph, int x, int y) {
    const gemmepi__node first = graph->nodes[x], second = graph->nodes[y];
    int a;
    if (!gemmepi__zero_branch(graph, x) || !gemmepi__zero_branch(graph, y) || first.args[0] != second.args[0])
        return -1;
    a = gemmepi__make(graph, GEMMEPI__OP_ADD, first.args[1], second.args[1], -1);
    return gemmepi__make(graph, GEMMEPI__OP_SELECT, first.args[0], a,
                         gemmepi__make(graph, GEMMEPI__OP_ADD, first.args[2], second.args[2], -1));
}

/* >>all */

/* x + y of what is alike, or has a factor in common; -1: neither. */
static int gemmepi__join_terms(gemmepi__graph *graph, int op, int x, int y) {
    int joined = gemmepi__add_alike(graph, x, y, op == GEMMEPI__OP_SUB ? -1 : 1);
    if (joined < 0 && op == GEMMEPI__OP_ADD)
        joined = gemmepi__add_to_sum(graph, x, y);
    return joined >= 0 ? joined : gemmepi__add_within(graph, op, x, y);
}

/* -2 * x as -(2 * x); -1: it begins with no such number. */
static int gemmepi__without_sign(gemmepi__graph *graph, int node) {
    const gemmepi__node *n = &graph->nodes[node];
    if (n->op != GEMMEPI__OP_MUL || !gemmepi__is_number(graph, n->args[0]) ||
        !(graph->nodes[n->args[0]].number < 0))
        return -1;
    return gemmepi__make(graph, GEMMEPI__OP_MUL, gemmepi__number(graph, -graph->nodes[n->args[0]].number),
                         n->args[1], -1);
}

static int gemmepi__simplify_difference(gemmepi__graph *graph, int x, int y) {
    int positive;
    if (gemmepi__is_the_number(graph, y, 0))
        return x;
    if (gemmepi__is_the_number(graph, x, 0))
        return gemmepi__negative(graph, y);
    positive =
        gemmepi__is_op(graph, y, GEMMEPI__OP_NEG) ? graph->nodes[y].args[0] : gemmepi__without_sign(graph, y);
    return positive >= 0 ? gemmepi__make(graph, GEMMEPI__OP_ADD, x, positive, -1)
                         : gemmepi__join_terms(graph, GEMMEPI__OP_SUB, x, y);
}

static int gemmepi__simplify_sum(gemmepi__graph *graph, int x, int y) {
    const gemmepi__node *nodes = graph->nodes;
    int first;
    if (gemmepi__is_the_number(graph, x, 0))
        return y;
    if (gemmepi__is_the_number(graph, y, 0))
        return x;
    if (gemmepi__is_op(graph, y, GEMMEPI__OP_NEG))
        return gemmepi__make(graph, GEMMEPI__OP_SUB, x, nodes[y].args[0], -1);
    if (gemmepi__is_op(graph, x, GEMMEPI__OP_NEG))
        return gemmepi__make(graph, GEMMEPI__OP_SUB, y, nodes[x].args[0], -1);
    if ((first = gemmepi__without_sign(graph, y)) >= 0)
        return gemmepi__make(graph, GEMMEPI__OP_SUB, x, first, -1);
    if ((first = gemmepi__without_sign(graph, x)) >= 0)
        return gemmepi__make(graph, GEMMEPI__OP_SUB, y, first, -1);
    if (gemmepi__is_op(graph, x, GEMMEPI__OP_BOTH) && gemmepi__is_op(graph, y, GEMMEPI__OP_BOTH)) {
        first = gemmepi__make(graph, GEMMEPI__OP_ADD, nodes[x].args[0], nodes[y].args[0], -1);
        return gemmepi__make(graph, GEMMEPI__OP_BOTH, first,
                             gemmepi__make(graph, GEMMEPI__OP_ADD, nodes[x].args[1], nodes[y].args[1], -1),
                             -1);
    }
    first = gemmepi__add_selections(graph, x, y);
    return first >= 0 ? first : gemmepi__join_terms(graph, GEMMEPI__OP_ADD, x, y);
}

static int gemmepi__simplify_product(gemmepi__graph *graph, const gemmepi__node *node) {
    int x = node->args[0], y = node->args[1], selected;
    if (gemmepi__is_the_number(graph, x, 0) || gemmepi__is_the_number(graph, y, 1))
        return x;
    if (gemmepi__is_the_number(graph, y, 0) || gemmepi__is_the_number(graph, x, 1))
        return y;
    if (gemmepi__is_the_number(graph, x, -1))
        return gemmepi__negative(graph, y);
    if (gemmepi__is_the_number(graph, y, -1))
        return gemmepi__negative(graph, x);
    if (gemmepi__is_op(graph, x, GEMMEPI__OP_NEG))
        return gemmepi__negative(graph,
                                 gemmepi__make(graph, GEMMEPI__OP_MUL, graph->nodes[x].args[0], y, -1));
    if (gemmepi__is_op(graph, y, GEMMEPI__OP_NEG))
        return gemmepi__negative(graph,
                                 gemmepi__make(graph, GEMMEPI__OP_MUL, x, graph->nodes[y].args[0], -1));
    selected = gemmepi__number_first(graph, x, y);
    if (selected < 0)
        selected = gemmepi__select_outside(graph, node, 0);
    return selected >= 0 ? selected : gemmepi__select_outside(graph, node, 1);
}

static int gemmepi__simplify_quotient(gemmepi__graph *graph, const gemmepi__node *node) {
    int x = node->args[0], y = node->args[1], rest;
    if (gemmepi__is_op(graph, x, GEMMEPI__OP_NEG))
        return gemmepi__negative(graph,
                                 gemmepi__make(graph, GEMMEPI__OP_DIV, graph->nodes[x].args[0], y, -1));
    if (gemmepi__is_the_number(graph, x, 0) || gemmepi__is_the_number(graph, y, 1))
        return x;
    rest = gemmepi__without_factor(graph, x, y, 0);
    return rest >= 0 ? rest : gemmepi__select_outside(graph, node, 0);
}

static int gemmepi__simplify_negative(gemmepi__graph *graph, int x) {
    const gemmepi__node *n = &graph->nodes[x];
    if (n->op == GEMMEPI__OP_NEG)
        return n->args[0];
    if (gemmepi__zero_branch(graph, x))
        return gemmepi__negative_selection(graph, *n);
    if (n->op == GEMMEPI__OP_SUB)
        return gemmepi__make(graph, GEMMEPI__OP_SUB, n->args[1], n->args[0], -1);
    if (n->op == GEMMEPI__OP_MUL && gemmepi__is_number(graph, n->args[0]))
        return gemmepi__make(graph, GEMMEPI__OP_MUL, gemmepi__number(graph, -graph->nodes[n->args[0]].number),
                             n->args[1], -1);
    return -1;
}

/* What the operation comes to; -1: it stays. */
static int gemmepi__simplify_node(gemmepi__graph *graph, const gemmepi__node *node) {
    const gemmepi__node *nodes = graph->nodes;
    int x = node->args[0], y = node->args[1];
    switch (node->op) {
    case GEMMEPI__OP_ADD:
        return gemmepi__simplify_sum(graph, x, y);
    case GEMMEPI__OP_SUB:
        return gemmepi__simplify_difference(graph, x, y);
    case GEMMEPI__OP_MUL:
        return gemmepi__simplify_product(graph, node);
    case GEMMEPI__OP_DIV:
        return gemmepi__simplify_quotient(graph, node);
    case GEMMEPI__OP_NEG:
        return gemmepi__simplify_negative(graph, x);
    case GEMMEPI__OP_POW:
        return gemmepi__is_the_number(graph, y, 1)   ? x
               : gemmepi__is_the_number(graph, y, 0) ? gemmepi__number(graph, 1)
                                                     : -1;
    case GEMMEPI__OP_SELECT:
        if (gemmepi__is_number(graph, x))
            return node->args[nodes[x].number != 0 ? 1 : 2];
        return y == node->args[2] ? y : -1;
    case GEMMEPI__OP_BOTH:
        return gemmepi__is_the_number(graph, x, 0) && x == y ? x : -1;
    case GEMMEPI__OP_FIRST:
    case GEMMEPI__OP_SECOND:
        return gemmepi__half_of_parts(graph, node->op, x);
    default:
        return -1;
    }
}

/* >>nodes of nodes */

/* The width of what an operation makes of arguments so wide; -1: they are of different widths. */
static int gemmepi__joint_width(int op, const int widths[3]) {
    int i, joint = GEMMEPI__ANY;
    for (i = 0; i < 3; i++) {
        if (widths[i] && joint && widths[i] != joint)
            return -1;
        joint = widths[i] ? widths[i] : joint;
    }
    switch (op) {
    case GEMMEPI__OP_FIRST:
    case GEMMEPI__OP_SECOND:
        return joint == GEMMEPI__NARROW ? -1 : joint ? (int)GEMMEPI__NARROW : (int)GEMMEPI__ANY;
    case GEMMEPI__OP_BOTH:
        return joint == GEMMEPI__WIDE ? -1 : GEMMEPI__WIDE;
    case GEMMEPI__OP_UNIFORM:
        return GEMMEPI__WIDE;
    default:
        return joint;
    }
}

static int gemmepi__result_type(const gemmepi__graph *graph, const gemmepi__node *node) {
    if (node->op == GEMMEPI__OP_FIRST || node->op == GEMMEPI__OP_SECOND)
        return graph->nodes[node->args[0]].type;
    return gemmepi__operation_of(node->op)->traits & GEMMEPI__IS_TRUTH ? GEMMEPI__OF_TRUTH
                                                                       : GEMMEPI__OF_NUMBERS;
}

/* What the operation comes to; -1: it stays, or there is no room. A sum whose parts have parts in common would be gone through once for
   each way to them: what was found is kept. */
static int gemmepi__come_to(gemmepi__graph *graph, const gemmepi__node *node) {
    int place = (int)(gemmepi__hash_word(gemmepi__hash(node->args, sizeof node->args), node->op) %
                      GEMMEPI__SIMPLIFIED);
    gemmepi__simplified *s = &graph->simplified[place];
    int found;
    if (s->op == node->op && memcmp(s->args, node->args, sizeof s->args) == 0)
        return s->result;
    found = gemmepi__simplify_node(graph, node);
    if (found >= 0) {
        s->op = node->op;
        memcpy(s->args, node->args, sizeof s->args);
        s->result = (int16_t)found;
    }
    return found;
}

/* The node with type and width filled in, or what it comes to. -1: there is no room, or an argument is -1; -2: widths differ. */
static int gemmepi__finish(gemmepi__graph *graph, gemmepi__node *node) {
    int widths[3], i, width, found;
    for (i = 0; i < 3; i++)
        widths[i] = node->args[i] >= 0 ? graph->nodes[node->args[i]].width : 0;
    width = gemmepi__joint_width(node->op, widths);
    if (width < 0)
        return -2;
    if ((node->op == GEMMEPI__OP_FIRST || node->op == GEMMEPI__OP_SECOND) && width == GEMMEPI__ANY)
        return node->args[0];
    found = gemmepi__fold(graph, node);
    if (found < 0 && graph->simplifies)
        found = gemmepi__come_to(graph, node);
    if (found >= 0)
        return found;
    node->width = (uint8_t)width;
    node->type = (uint8_t)gemmepi__result_type(graph, node);
    return gemmepi__intern(graph, node);
}

/* An operation of nodes that fit; -1: there is no room. */
static int gemmepi__make(gemmepi__graph *graph, int op, int x, int y, int z) {
    gemmepi__node node = gemmepi__node_of(op, x, y, z);
    int least = gemmepi__operation_of(op)->least;
    if (x < 0 || (least > 1 && y < 0) || (least > 2 && z < 0) || graph->full)
        return -1;
    return gemmepi__finish(graph, &node);
}

#endif
