/* Gradients of formulas as formulas: a list of outputs. */
#ifndef GEMMEPI_FORMULA_DERIVE_H
#define GEMMEPI_FORMULA_DERIVE_H

#include "sweep.h"

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

#endif
