/* A graph written out as a formula again. */
#ifndef GEMMEPI_FORMULA_PRINT_H
#define GEMMEPI_FORMULA_PRINT_H

#include "parse.h"

enum {
    GEMMEPI__PRINT_DEPTH = 20,  /* of expressions within one another, before one is given a name */
    GEMMEPI__BY_TEXT = 9999,    /* the label of locals that have their name of the text */
    GEMMEPI__BY_OUTPUT = 10000, /* labels from here on are of outputs, which a statement assigns */
    GEMMEPI__BY_OPERAND = 20000 /* and these of operands that are read in the node's place */
};

typedef struct gemmepi__printed_output {
    char name[GEMMEPI__FORMULA_NAME + 4];
    int node, reduction;
} gemmepi__printed_output;

typedef struct gemmepi__printer {
    gemmepi__text *out;
    const gemmepi__node *nodes;
    int count, mode, output_count;
    int exchanged; /* the names are those of column-major order */
    int regroups;  /* 2 * (x * y) is written 2 * x * y */
    int64_t group;
    const char *between;                                      /* statements */
    const char *value, *names[GEMMEPI__FORMULA_OPERANDS + 1]; /* the last is D's; NULL: none */
    const char *text; /* of locals that have a name there; NULL: none */
    const int *places;
    gemmepi__printed_output outputs[GEMMEPI__FORMULA_OPERANDS + 1];
    int16_t labels[GEMMEPI__GRAPH_NODES]; /* 0: within others; else t1, t2 ..., or as above */
    int16_t uses[GEMMEPI__GRAPH_NODES];   /* 0: not needed */
    uint8_t depth[GEMMEPI__GRAPH_NODES];
} gemmepi__printer;

/* >>which nodes have names */

static int gemmepi__is_leaf(const gemmepi__printer *p, int node) {
    return p->nodes[node].op < GEMMEPI__LEAVES || p->labels[node] >= GEMMEPI__BY_OPERAND;
}

/* labels are 0, but for those of operands */
static void gemmepi__count_uses(gemmepi__printer *p) {
    int i, a;
    memset(p->uses, 0, sizeof p->uses);
    for (i = 0; i < p->output_count; i++)
        p->uses[p->outputs[i].node]++;
    for (i = p->count - 1; i >= 0; i--)
        for (a = 0; a < 3 && p->uses[i] && !gemmepi__is_leaf(p, i); a++)
            if (p->nodes[i].args[a] >= 0)
                p->uses[p->nodes[i].args[a]]++;
}

/* Whether a local's name, which ends where it has no more letters, is another's already. */
static int gemmepi__is_taken(const gemmepi__printer *p, const char *name, size_t length) {
    int i;
    if ((p->value && gemmepi__is_name(name, length, p->value)) || gemmepi__is_name(name, length, "dy") ||
        gemmepi__is_name(name, length, "d"))
        return 1;
    for (i = 0; i <= GEMMEPI__RESULT; i++)
        if (p->names[i] && gemmepi__is_name(name, length, p->names[i]))
            return 1;
    for (i = 0; i < p->output_count; i++)
        if (gemmepi__is_name(name, length, p->outputs[i].name))
            return 1;
    for (i = 0; i < p->count && p->places; i++)
        if (p->places[i] >= 0 && p->text + p->places[i] != name &&
            gemmepi__name_length(p->text + p->places[i]) == length &&
            memcmp(p->text + p->places[i], name, length) == 0)
            return 1;
    return 0;
}

/* Whether a local has a name in the text that is nobody else's. */
static int gemmepi__has_own_name(const gemmepi__printer *p, int node) {
    size_t length = p->places && p->places[node] >= 0 ? gemmepi__name_length(p->text + p->places[node]) : 0;
    return length && !gemmepi__is_taken(p, p->text + p->places[node], length);
}

static void gemmepi__label_nodes(gemmepi__printer *p) {
    int i, a, number = 0;
    for (i = p->output_count - 1; i >= 0; i--)
        if (!p->outputs[i].reduction && !gemmepi__is_leaf(p, p->outputs[i].node))
            p->labels[p->outputs[i].node] = (int16_t)(GEMMEPI__BY_OUTPUT + i);
    for (i = 0; i < p->count; i++) {
        p->depth[i] = 1;
        if (!p->uses[i] || gemmepi__is_leaf(p, i))
            continue;
        for (a = 0; a < 3; a++)
            if (p->nodes[i].args[a] >= 0 && !p->labels[p->nodes[i].args[a]] &&
                p->depth[p->nodes[i].args[a]] >= p->depth[i])
                p->depth[i] = (uint8_t)(p->depth[p->nodes[i].args[a]] + 1);
        if (!p->labels[i] && (p->uses[i] > 1 || p->depth[i] > GEMMEPI__PRINT_DEPTH))
            p->labels[i] = (int16_t)(gemmepi__has_own_name(p, i) ? (int)GEMMEPI__BY_TEXT : ++number);
    }
}

/* t1 and so on, with a line below where that is somebody's. */
static void gemmepi__print_local(const gemmepi__printer *p, int node) {
    char name[32];
    int lines = 0;
    if (p->labels[node] == GEMMEPI__BY_TEXT) {
        gemmepi__append(p->out, "%.*s", (int)gemmepi__name_length(p->text + p->places[node]),
                        p->text + p->places[node]);
        return;
    }
    do
        snprintf(name, sizeof name, "t%.*s%d", lines++, "________________", p->labels[node]);
    while (lines < 16 && gemmepi__is_taken(p, name, strlen(name)));
    gemmepi__append(p->out, "%s", name);
}

/* >>expressions */

static void gemmepi__print_expression(const gemmepi__printer *p, int node, int precedence);

static void gemmepi__print_leaf(const gemmepi__printer *p, const gemmepi__node *node, int precedence) {
    char number[GEMMEPI__NUMBER_SIZE];
    switch (node->op) {
    case GEMMEPI__OP_NUMBER:
        gemmepi__print_number(number, node->number);
        gemmepi__append(p->out, number[0] == '-' && precedence > 8 ? "(%s)" : "%s", number);
        break;
    case GEMMEPI__OP_VALUE:
        gemmepi__append(p->out, "%s", p->value);
        break;
    case GEMMEPI__OP_OPERAND:
        gemmepi__append(p->out, "%s", p->names[node->place]);
        break;
    case GEMMEPI__OP_INDEX:
        gemmepi__append(
            p->out, "%s",
            gemmepi__index_names[p->exchanged ? gemmepi__index_across(node->place) : node->place]);
        break;
    default: /* an upstream */
        if (node->place == GEMMEPI__RESULT)
            gemmepi__append(p->out, "dy");
        else
            gemmepi__append(p->out, "dy_%s", p->names[node->place]);
    }
}

static void gemmepi__print_function_name(const gemmepi__printer *p, const gemmepi__node *node) {
    static const char *const second[] = {"even", "odd", "interleave"};
    char small[16] = "";
    if (node->op == GEMMEPI__OP_ACTIVATE || node->op == GEMMEPI__OP_DERIVE)
        gemmepi__small_name(node->place, small);
    gemmepi__append(p->out, "%s%s",
                    node->op >= GEMMEPI__OP_FIRST && p->mode == GEMMEPI__EVEN_ODD
                        ? second[node->op - GEMMEPI__OP_FIRST]
                        : gemmepi__operation_of(node->op)->name,
                    small);
}

/* The parameter of an activation that has the one it has unless given, is not written. */
static int gemmepi__goes_without_saying(const gemmepi__printer *p, const gemmepi__node *node, int argument) {
    const gemmepi__node *parameter = &p->nodes[node->args[argument]];
    return argument == 1 && (node->op == GEMMEPI__OP_ACTIVATE || node->op == GEMMEPI__OP_DERIVE) &&
           parameter->op == GEMMEPI__OP_NUMBER &&
           parameter->number == gemmepi__activations[node->place].parameter;
}

static void gemmepi__print_call(const gemmepi__printer *p, const gemmepi__node *node) {
    int a;
    gemmepi__print_function_name(p, node);
    for (a = 0; a < 3 && node->args[a] >= 0 && !gemmepi__goes_without_saying(p, node, a); a++) {
        gemmepi__append(p->out, a ? ", " : "(");
        gemmepi__print_expression(p, node->args[a], 1);
    }
    if (node->op >= GEMMEPI__OP_FIRST && p->group)
        gemmepi__append(p->out, ", %lld", (long long)p->group);
    gemmepi__append(p->out, ")");
}

/* Whether a node is a number times what begins with none, and so may be grouped otherwise. */
static int gemmepi__begins_with_number(const gemmepi__printer *p, const gemmepi__node *node) {
    int first = node->args[1];
    if (node->op != GEMMEPI__OP_MUL || p->nodes[node->args[0]].op != GEMMEPI__OP_NUMBER)
        return 0;
    while (!p->labels[first] &&
           (p->nodes[first].op == GEMMEPI__OP_MUL || p->nodes[first].op == GEMMEPI__OP_DIV))
        first = p->nodes[first].args[0];
    return p->nodes[first].op != GEMMEPI__OP_NUMBER;
}

static void gemmepi__print_operation(const gemmepi__printer *p, const gemmepi__node *node, int precedence) {
    const gemmepi__operation_of_formula *row = gemmepi__operation_of(node->op);
    if (row->precedence == 9) {
        gemmepi__print_call(p, node);
        return;
    }
    if (row->precedence < precedence)
        gemmepi__append(p->out, "(");
    if (node->op == GEMMEPI__OP_SELECT) {
        gemmepi__print_expression(p, node->args[0], 2);
        gemmepi__append(p->out, " ? ");
        gemmepi__print_expression(p, node->args[1], 2);
        gemmepi__append(p->out, " : ");
        gemmepi__print_expression(p, node->args[2], 1);
    } else if (row->least == 1) {
        gemmepi__append(p->out, "%s", row->name);
        gemmepi__print_expression(p, node->args[0], 9);
    } else {
        gemmepi__print_expression(p, node->args[0], row->precedence);
        gemmepi__append(p->out, " %s ", row->name);
        gemmepi__print_expression(p, node->args[1],
                                  row->precedence + !(p->regroups && gemmepi__begins_with_number(p, node)));
    }
    if (row->precedence < precedence)
        gemmepi__append(p->out, ")");
}

/* Of an expression, in parentheses where its operator binds less than precedence. */
static void gemmepi__print_expression(const gemmepi__printer *p, int node, int precedence) {
    int label = p->labels[node];
    if (label >= GEMMEPI__BY_OPERAND)
        gemmepi__append(p->out, "%s", p->names[label - GEMMEPI__BY_OPERAND]);
    else if (label >= GEMMEPI__BY_OUTPUT)
        gemmepi__append(p->out, "%s", p->outputs[label - GEMMEPI__BY_OUTPUT].name);
    else if (label)
        gemmepi__print_local(p, node);
    else if (p->nodes[node].op < GEMMEPI__LEAVES)
        gemmepi__print_leaf(p, &p->nodes[node], precedence);
    else
        gemmepi__print_operation(p, &p->nodes[node], precedence);
}

/* >>statements */

/* All that has a name in the order of the graph, then the outputs that are left. */
static void gemmepi__print_statements(gemmepi__printer *p) {
    const char *between = "";
    int i, node;
    gemmepi__count_uses(p);
    gemmepi__label_nodes(p);
    for (i = 0; i < p->count; i++) {
        int label = p->labels[i];
        if (!p->uses[i] || !label || label >= GEMMEPI__BY_OPERAND)
            continue;
        gemmepi__append(p->out, "%s", between);
        gemmepi__print_expression(p, i, 1);
        gemmepi__append(p->out, " = ");
        gemmepi__print_operation(p, &p->nodes[i], 1);
        between = p->between;
    }
    for (i = 0; i < p->output_count; i++) {
        const gemmepi__printed_output *output = &p->outputs[i];
        node = output->node;
        if (!output->reduction && p->labels[node] == GEMMEPI__BY_OUTPUT + i)
            continue;
        gemmepi__append(p->out, "%s%s = %s%s", between, output->name,
                        gemmepi__reductions[p->exchanged ? gemmepi__reduction_across(output->reduction)
                                                         : output->reduction]
                            .name,
                        output->reduction ? "(" : "");
        gemmepi__print_expression(p, node, 1);
        gemmepi__append(p->out, output->reduction ? ")" : "");
        between = p->between;
    }
}

static void gemmepi__add_output(gemmepi__printer *p, const char *before, const char *name, int node,
                                int reduction) {
    gemmepi__printed_output *output = &p->outputs[p->output_count++];
    snprintf(output->name, sizeof output->name, "%s%s", before, name);
    output->node = node;
    output->reduction = reduction;
}

#endif
