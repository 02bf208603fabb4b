/* Gradients of formulas as formulas: a list of outputs. */
#ifndef GEMMEPI_FORMULA_DERIVE_H
#define GEMMEPI_FORMULA_DERIVE_H

#include "gradient.h"

static int gpi__adjoint_of(gpi__derivation *d, int which) {
    const gpi__node *nodes = d->graph.nodes;
    int i;
    for (i = 0; i < d->given; i++)
        if (d->adjoints[i].node >= 0 &&
            (which == GPI__OF_VALUE ? nodes[i].op == GPI__OP_VALUE
                                    : nodes[i].op == GPI__OP_OPERAND && nodes[i].place == which))
            return d->adjoints[i].node;
    return gpi__number(&d->graph, 0);
}

static gemmepi_operand_kind gpi__kind_of_gradient(const gpi__derivation *d, int which) {
    int is_full = which == GPI__OF_VALUE || d->sums[which] == GPI__BY_ELEMENTS;
    gemmepi_operand_kind kind = is_full ? GEMMEPI_FULL : d->desc.operands[which].kind;
    return kind == GEMMEPI_NUMBER ? GEMMEPI_SCALAR : kind;
}

static gemmepi_status gpi__add_gradient(gpi__derivation *d, int which) {
    gemmepi_operand_kind kind = gpi__kind_of_gradient(d, which);
    int node = gpi__adjoint_of(d, which), reduction = 0;
    if (node < 0)
        return gpi__refuse_size();
    if (d->desc.exchanged)
        kind = (gemmepi_operand_kind)gpi__kind_across((int)kind);
    if (kind != GEMMEPI_FULL)
        for (reduction = 1; gpi__reductions[reduction].kind != kind;)
            reduction++; /* the first of a kind is the sum */
    GPI__INVALID_IF(
        reduction && kind != GEMMEPI_PER_COLUMN && kind != GEMMEPI_BLOCKED &&
            d->graph.nodes[node].width == GPI__ANY && !gpi__is_number(&d->graph, node) &&
            gpi__has_halves(&d->graph),
        "the gradient of %s is a sum over columns of what does not change along them, in a formula "
        "with halves, and cannot be said in one formula",
        gpi__name_in(d, which));
    gpi__add_output(&d->printer, "d_", gpi__name_in(d, which), node, reduction,
                    kind == GEMMEPI_BLOCKED ? gpi__group_of(&d->desc.operands[which], d->desc.exchanged) : 0);
    return GEMMEPI_OK;
}

/* Nodes that are read from a saved output, but for what is saved itself. */
static void gpi__label_saved(gpi__derivation *d) {
    int i;
    for (i = 0; i < d->graph.count; i++) {
        const gpi__node *node = &d->graph.nodes[i];
        int o = gpi__saved_as(d, i);
        if (o >= 0 && !(node->op == GPI__OP_VALUE && d->readable[GPI__OF_VALUE]) &&
            !(node->op == GPI__OP_OPERAND && d->readable[node->place]))
            d->printer.labels[i] = (int16_t)(GPI__BY_OPERAND + o);
    }
}

static gemmepi_status gpi__check_reads(const gpi__derivation *d) {
    const gpi__printer *p = &d->printer;
    int i, which, operations = 0;
    for (i = 0; i < d->graph.count; i++) {
        operations += p->uses[i] && p->nodes[i].op >= GPI__LEAVES;
        which = p->nodes[i].op == GPI__OP_VALUE    ? (int)GPI__OF_VALUE
                : gpi__is_of_operand(&p->nodes[i]) ? p->nodes[i].place
                                                   : -1;
        GPI__INVALID_IF(which >= 0 && p->uses[i] && p->labels[i] < GPI__BY_OPERAND && !d->readable[which],
                        "the gradient reads %s, which desc.saved does not name, nor can it be computed again",
                        gpi__name_in(d, which));
    }
    return operations <= GPI__FORMULA_NODES ? GEMMEPI_OK : gpi__refuse_size();
}

/* What is another number where n is another part of all columns. */
static int gpi__counts_columns(const gpi__derivation *d) {
    const gpi__printer *p = &d->printer;
    int i;
    for (i = 0; i < d->graph.count; i++) {
        const gpi__node *node = &d->graph.nodes[i];
        if (p->uses[i] && (node->op == GPI__OP_UNIFORM ||
                           (node->op == GPI__OP_INDEX &&
                            (node->place == GPI__INDEX_COLUMN || node->place == GPI__INDEX_COLUMNS))))
            return 1;
    }
    for (i = 0; i < p->output_count; i++)
        if (p->outputs[i].reduction && d->graph.nodes[p->outputs[i].node].width &&
            gpi__reductions[p->outputs[i].reduction].kind != GEMMEPI_PER_COLUMN && !p->outputs[i].group)
            return 1;
    return 0;
}

/* Where the formula has what is 2 n columns wide and the gradient has not, columns would be others in it. */
static gemmepi_status gpi__check_columns(gpi__derivation *d) {
    gemmepi_status status;
    if (d->graph.n_width == GPI__WIDE || !gpi__counts_columns(d))
        return GEMMEPI_OK;
    status = gpi__copy_gradient(d, &d->desc, 0, NULL, NULL);
    if (status || d->gradient.n_width == GPI__NARROW)
        return status;
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "the gradient counts columns (column, columns, uniform, sums over them), of which the formula has "
        "%d times as many: it cannot be said in one formula",
        d->graph.parts);
}

static void gpi__prepare_printer(gpi__derivation *d) {
    gpi__printer *p = &d->printer;
    int i;
    p->nodes = d->graph.nodes;
    p->mode = d->graph.mode;
    p->parts = d->graph.parts;
    p->group = d->graph.group;
    p->exchanged = d->desc.exchanged;
    p->regroups = 1;
    p->between = ";\n";
    p->value = gpi__value_name(&d->desc);
    p->text = d->desc.text;
    p->places = d->graph.names;
    for (i = 0; i < d->desc.operand_count; i++)
        p->names[i] = d->desc.operands[i].name;
    p->names[GPI__RESULT] = gpi__result_name(&d->desc);
}

/* The gradients that are asked for of the graph, whose nodes stay: the printer has their nodes, and all but where to print. */
static gemmepi_status gpi__derive(gpi__derivation *d) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    d->given = d->graph.count;
    d->graph.at = -1;
    d->graph.simplifies = 1;
    d->graph.most = GPI__GRAPH_NODES; /* of which the gradient need not have all */
    for (i = 0; i < GPI__GRAPH_NODES; i++)
        d->adjoints[i].node = -1;
    gpi__mark_dependent(d);
    for (i = 0; i <= GPI__RESULT && !status; i++)
        if (d->graph.assigned[i].node >= 0 && !d->silent[i])
            status = gpi__seed(d, i);
    if (!status)
        status = gpi__sweep(d);
    gpi__prepare_printer(d);
    for (i = 0; i < d->wrt_count && !status; i++)
        status = gpi__add_gradient(d, d->wrt[i]);
    if (status)
        return status;
    d->printer.count = d->graph.count;
    gpi__label_saved(d);
    gpi__count_uses(&d->printer);
    for (i = 0; i < d->graph.count; i++)
        if (d->graph.nodes[i].op == GPI__OP_UNIFORM && d->printer.uses[i])
            d->has_0 |= 8;
    status = gpi__check_columns(d);
    return status ? status : gpi__check_reads(d);
}

/* Whether the text has a leaf, or a result in a node's place. */
static int gpi__gradient_reads(const gpi__derivation *d, int op, int which) {
    const gpi__printer *p = &d->printer;
    int i;
    for (i = 0; i < d->graph.count; i++)
        if (p->uses[i] &&
            (p->labels[i] >= GPI__BY_OPERAND
                 ? op == GPI__OP_OPERAND && p->labels[i] - GPI__BY_OPERAND == which
                 : (op == GPI__OP_OPERAND ? gpi__is_of_operand(&p->nodes[i]) : p->nodes[i].op == op) &&
                       p->nodes[i].place == which))
            return 1;
    return 0;
}

#ifndef GEMMEPI_NO_FORMULA
/* Where the text has another width than n it must say of how many parts, unless of two. */
static gemmepi_status gpi__check_parts(const gpi__derivation *d) {
    int i, others = 0;
    for (i = 0; i < d->graph.count && d->graph.parts != 2; i++) {
        const gpi__node *node = &d->graph.nodes[i];
        if (d->printer.uses[i] && node->op >= GPI__OP_PART)
            return GEMMEPI_OK;
        others |= d->printer.uses[i] && node->width && node->width != d->graph.n_width;
    }
    GPI__INVALID_IF(
        others,
        "the gradient does not divide columns, and so does not say that they are in %d parts: name what the "
        "formula divides in desc.wrt, too",
        d->graph.parts);
    return GEMMEPI_OK;
}

/* To be given to gpi__delete; NULL with the sentence. */
static gemmepi_status gpi__derivation_of(const gemmepi_allocator *allocator, const gemmepi_derive_desc *desc,
                                         gpi__derivation **out) {
    gpi__derivation *d;
    gemmepi_status status;
    *out = NULL;
    GPI__INVALID_IF(!desc, "desc is NULL");
    d = (gpi__derivation *)gpi__new(allocator, sizeof *d);
    if (!d)
        return GEMMEPI_OUT_OF_MEMORY;
    status = gpi__start_derivation(d, desc);
    if (!status)
        status = gpi__derive(d);
    if (!status)
        status = gpi__check_parts(d);
    if (status)
        gpi__delete(allocator, d);
    else
        *out = d;
    return status;
}

static void gpi__print_gradient(gpi__derivation *d, gpi__text *out) {
    static const char *const names[] = {"floor", "round", "comparisons", "uniform"};
    const char *between = "/* derivatives that are 0: ";
    int i;
    d->printer.out = out;
    for (i = 0; i < 4; i++)
        if (d->has_0 >> i & 1) {
            gpi__append(out, "%s%s", between, names[i]);
            between = ", ";
        }
    if (d->has_0)
        gpi__append(out, " */\n");
    gpi__print_statements(&d->printer);
}

GEMMEPI_API size_t gemmepi_derive(const gemmepi_derive_desc *desc, char *text, size_t size) {
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__text out = gpi__text_in(text, size);
    gpi__derivation *d;
    if (gpi__derivation_of(&allocator, desc, &d))
        return 0;
    gpi__print_gradient(d, &out);
    gpi__delete(&allocator, d);
    if (out.length <= GPI__GRADIENT_CHARACTERS)
        return out.length;
    if (out.size)
        text[0] = 0;
    (void)gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                    "the gradient of desc.formula has %llu characters; at most %d are accepted",
                    (gpi__ull)out.length, GPI__GRADIENT_CHARACTERS);
    return 0;
}
#endif

#endif
