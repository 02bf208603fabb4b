/* A graph written out as a formula again. */
#ifndef GEMMEPI_FORMULA_PRINT_H
#define GEMMEPI_FORMULA_PRINT_H

#include "parse.h"

enum {
    GPI__PRINT_DEPTH = 20,  /* of expressions within one another, before one is given a name */
    GPI__BY_TEXT = 9999,    /* the label of locals that have their name of the text */
    GPI__BY_OUTPUT = 10000, /* labels from here on are of outputs, which a statement assigns */
    GPI__BY_OPERAND = 20000 /* and these of operands that are read in the node's place */
};

typedef struct gpi__printed_output {
    char name[GPI__FORMULA_NAME + 4];
    int node, reduction;
    int64_t group; /* of a reduction of groups of columns */
} gpi__printed_output;

typedef struct gpi__printer {
    gpi__text *out;
    const gpi__node *nodes;
    int count, mode, parts, output_count;
    int exchanged; /* the names are those of column-major order */
    int regroups;  /* 2 * (x * y) is written 2 * x * y */
    int64_t group;
    const char *between;                                  /* statements */
    const char *value, *names[GPI__FORMULA_OPERANDS + 1]; /* the last is D's; NULL: none */
    const char *text;                                     /* of locals that have a name there; NULL: none */
    const int *places;
    gpi__printed_output outputs[GPI__FORMULA_OPERANDS + 1];
    int16_t labels[GPI__GRAPH_NODES]; /* 0: within others; else t1, t2 ..., or as above */
    int16_t uses[GPI__GRAPH_NODES];   /* 0: not needed */
    uint8_t depth[GPI__GRAPH_NODES];
} gpi__printer;

/* >>which nodes have names */

static int gpi__is_leaf(const gpi__printer *p, int node) {
    return p->nodes[node].op < GPI__LEAVES || p->labels[node] >= GPI__BY_OPERAND;
}

/* The a-th argument that is written of a node: of what is joined the a-th part; -1: there are no more. */
static int gpi__written_argument(const gpi__printer *p, int node, int a) {
    if (p->nodes[node].op == GPI__OP_JOIN)
        return a < p->parts ? gpi__joined_part(p->nodes, node, a) : -1;
    return a < 3 ? p->nodes[node].args[a] : -1;
}

/* labels are 0, but for those of operands */
static void gpi__count_uses(gpi__printer *p) {
    int i, a, to;
    memset(p->uses, 0, sizeof p->uses);
    for (i = 0; i < p->output_count; i++)
        p->uses[p->outputs[i].node]++;
    for (i = p->count - 1; i >= 0; i--)
        for (a = 0; p->uses[i] && !gpi__is_leaf(p, i) && (to = gpi__written_argument(p, i, a)) >= 0; a++)
            p->uses[to]++;
}

/* Whether a local's name, which ends where it has no more letters, is another's already. */
static int gpi__is_in_use(const gpi__printer *p, const char *name, size_t length) {
    int i;
    if ((p->value && gpi__is_name(name, length, p->value)) || gpi__is_name(name, length, "dy") ||
        gpi__is_name(name, length, "d"))
        return 1;
    for (i = 0; i <= GPI__RESULT; i++)
        if (p->names[i] && gpi__is_name(name, length, p->names[i]))
            return 1;
    for (i = 0; i < p->output_count; i++)
        if (gpi__is_name(name, length, p->outputs[i].name))
            return 1;
    for (i = 0; i < p->count && p->places; i++)
        if (p->places[i] >= 0 && p->text + p->places[i] != name &&
            gpi__name_length(p->text + p->places[i]) == length &&
            memcmp(p->text + p->places[i], name, length) == 0)
            return 1;
    return 0;
}

/* Whether a local has a name in the text that is nobody else's. */
static int gpi__has_own_name(const gpi__printer *p, int node) {
    size_t length = p->places && p->places[node] >= 0 ? gpi__name_length(p->text + p->places[node]) : 0;
    return length && !gpi__is_in_use(p, p->text + p->places[node], length);
}

static void gpi__label_nodes(gpi__printer *p) {
    int i, a, to, number = 0;
    for (i = p->output_count - 1; i >= 0; i--)
        if (!p->outputs[i].reduction && !gpi__is_leaf(p, p->outputs[i].node) &&
            p->nodes[p->outputs[i].node].op != GPI__OP_STOCHASTIC) /* which is read without its rounding */
            p->labels[p->outputs[i].node] = (int16_t)(GPI__BY_OUTPUT + i);
    for (i = 0; i < p->count; i++) {
        p->depth[i] = 1;
        if (!p->uses[i] || gpi__is_leaf(p, i))
            continue;
        for (a = 0; (to = gpi__written_argument(p, i, a)) >= 0; a++)
            if (!p->labels[to] && p->depth[to] >= p->depth[i])
                p->depth[i] = (uint8_t)(p->depth[to] + 1);
        if (!p->labels[i] && p->nodes[i].op != GPI__OP_STOCHASTIC &&
            (p->uses[i] > 1 || p->depth[i] > GPI__PRINT_DEPTH))
            p->labels[i] = (int16_t)(gpi__has_own_name(p, i) ? (int)GPI__BY_TEXT : ++number);
    }
}

/* t1 and so on, with a line below where that is somebody's. */
static void gpi__print_local(const gpi__printer *p, int node) {
    char name[32];
    int lines = 0;
    if (p->labels[node] == GPI__BY_TEXT) {
        gpi__append(p->out, "%.*s", (int)gpi__name_length(p->text + p->places[node]),
                    p->text + p->places[node]);
        return;
    }
    do
        snprintf(name, sizeof name, "t%.*s%d", lines++, "________________", p->labels[node]);
    while (lines < 16 && gpi__is_in_use(p, name, strlen(name)));
    gpi__append(p->out, "%s", name);
}

/* >>expressions */

static void gpi__print_expression(const gpi__printer *p, int node, int precedence);

static void gpi__print_leaf(const gpi__printer *p, const gpi__node *node, int precedence) {
    char number[GPI__NUMBER_SIZE];
    switch (node->op) {
    case GPI__OP_NUMBER:
        gpi__print_number(number, node->number);
        gpi__append(p->out, number[0] == '-' && precedence > 8 ? "(%s)" : "%s", number);
        break;
    case GPI__OP_VALUE:
        gpi__append(p->out, "%s", p->value);
        break;
    case GPI__OP_OPERAND:
        gpi__append(p->out, "%s", p->names[node->place]);
        break;
    case GPI__OP_INDEX:
        gpi__append(p->out, "%s",
                    gpi__index_names[p->exchanged ? gpi__index_across(node->place) : node->place]);
        break;
    default: /* an upstream */
        if (node->place == GPI__RESULT)
            gpi__append(p->out, "dy");
        else
            gpi__append(p->out, "dy_%s", p->names[node->place]);
    }
}

static void gpi__print_function_name(const gpi__printer *p, const gpi__node *node) {
    char small[16] = "";
    int row = p->mode == GPI__EVEN_ODD ? 3 : 0;
    if (node->op == GPI__OP_ACTIVATE || node->op == GPI__OP_DERIVE)
        gpi__small_name(node->place, small);
    gpi__append(p->out, "%s%s",
                node->op < GPI__OP_PART || p->parts != 2
                    ? gpi__operation_of(node->op)->name
                    : gpi__part_names[row + (node->op == GPI__OP_JOIN ? 2 : node->place)].name,
                small);
}

/* The parameter of an activation, and the i of stochastic, that are those they have unless given, are not written. */
static int gpi__goes_without_saying(const gpi__printer *p, const gpi__node *node, int argument) {
    const gpi__node *parameter;
    int is_stochastic = node->op == GPI__OP_STOCHASTIC;
    if (is_stochastic ? argument != 2
                      : argument != 1 || (node->op != GPI__OP_ACTIVATE && node->op != GPI__OP_DERIVE))
        return 0;
    parameter = &p->nodes[node->args[argument]];
    return parameter->op == GPI__OP_NUMBER &&
           parameter->number ==
               (is_stochastic ? GPI__STOCHASTIC_STREAM : gpi__activations[node->place].parameter);
}

static void gpi__print_call(const gpi__printer *p, const gpi__node *node) {
    int a, to;
    gpi__print_function_name(p, node);
    for (a = 0; (to = gpi__written_argument(p, (int)(node - p->nodes), a)) >= 0 &&
                !gpi__goes_without_saying(p, node, a);
         a++) {
        gpi__append(p->out, a ? ", " : "(");
        gpi__print_expression(p, to, 1);
    }
    if (node->op == GPI__OP_PART && p->parts != 2)
        gpi__append(p->out, ", %d, %d", node->place, p->parts);
    if (node->op >= GPI__OP_PART && p->group)
        gpi__append(p->out, ", %lld", (long long)p->group);
    gpi__append(p->out, ")");
}

/* Whether a node is a number times what begins with none, and so may be grouped otherwise. */
static int gpi__begins_with_number(const gpi__printer *p, const gpi__node *node) {
    int first = node->args[1];
    if (node->op != GPI__OP_MUL || p->nodes[node->args[0]].op != GPI__OP_NUMBER)
        return 0;
    while (!p->labels[first] && (p->nodes[first].op == GPI__OP_MUL || p->nodes[first].op == GPI__OP_DIV))
        first = p->nodes[first].args[0];
    return p->nodes[first].op != GPI__OP_NUMBER;
}

static void gpi__print_operation(const gpi__printer *p, const gpi__node *node, int precedence) {
    const gpi__operation_of_formula *row = gpi__operation_of(node->op);
    if (node->op == GPI__OP_LOOK_UP) {
        gpi__append(p->out, "%s[", p->names[node->place]);
        gpi__print_expression(p, node->args[0], 1);
        gpi__append(p->out, "]");
        return;
    }
    if (row->precedence == 9) {
        gpi__print_call(p, node);
        return;
    }
    if (row->precedence < precedence)
        gpi__append(p->out, "(");
    if (node->op == GPI__OP_SELECT) {
        gpi__print_expression(p, node->args[0], 2);
        gpi__append(p->out, " ? ");
        gpi__print_expression(p, node->args[1], 2);
        gpi__append(p->out, " : ");
        gpi__print_expression(p, node->args[2], 1);
    } else if (row->least == 1) {
        gpi__append(p->out, "%s", row->name);
        gpi__print_expression(p, node->args[0], 9);
    } else {
        gpi__print_expression(p, node->args[0], row->precedence + (row->traits == GPI__COMPARES));
        gpi__append(p->out, " %s ", row->name);
        gpi__print_expression(p, node->args[1],
                              row->precedence + !(p->regroups && gpi__begins_with_number(p, node)));
    }
    if (row->precedence < precedence)
        gpi__append(p->out, ")");
}

/* Of an expression, in parentheses where its operator binds less than precedence. */
static void gpi__print_expression(const gpi__printer *p, int node, int precedence) {
    int label = p->labels[node];
    if (label >= GPI__BY_OPERAND)
        gpi__append(p->out, "%s", p->names[label - GPI__BY_OPERAND]);
    else if (label >= GPI__BY_OUTPUT)
        gpi__append(p->out, "%s", p->outputs[label - GPI__BY_OUTPUT].name);
    else if (label)
        gpi__print_local(p, node);
    else if (p->nodes[node].op < GPI__LEAVES)
        gpi__print_leaf(p, &p->nodes[node], precedence);
    else
        gpi__print_operation(p, &p->nodes[node], precedence);
}

/* >>statements */

/* All that has a name in the order of the graph, then the outputs that are left. */
static void gpi__print_statements(gpi__printer *p) {
    const char *between = "";
    int i, node;
    gpi__count_uses(p);
    gpi__label_nodes(p);
    for (i = 0; i < p->count; i++) {
        int label = p->labels[i];
        if (!p->uses[i] || !label || label >= GPI__BY_OPERAND)
            continue;
        gpi__append(p->out, "%s", between);
        gpi__print_expression(p, i, 1);
        gpi__append(p->out, " = ");
        gpi__print_operation(p, &p->nodes[i], 1);
        between = p->between;
    }
    for (i = 0; i < p->output_count; i++) {
        const gpi__printed_output *output = &p->outputs[i];
        node = output->node;
        if (!output->reduction && p->labels[node] == GPI__BY_OUTPUT + i)
            continue;
        gpi__append(p->out, "%s%s = %s%s", between, output->name,
                    gpi__reduction_name(output->reduction, p->exchanged), output->reduction ? "(" : "");
        gpi__print_expression(p, node, 1);
        if (output->group)
            gpi__append(p->out, ", %lld", (long long)output->group);
        gpi__append(p->out, output->reduction ? ")" : "");
        between = p->between;
    }
}

static void gpi__add_output(gpi__printer *p, const char *before, const char *name, int node, int reduction,
                            int64_t group) {
    gpi__printed_output *output = &p->outputs[p->output_count++];
    snprintf(output->name, sizeof output->name, "%s%s", before, name);
    output->node = node;
    output->reduction = reduction;
    output->group = group;
}

#endif
