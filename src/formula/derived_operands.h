/* The operands of a gradient. */
#ifndef GEMMEPI_FORMULA_DERIVED_OPERANDS_H
#define GEMMEPI_FORMULA_DERIVED_OPERANDS_H

#include "derive.h"

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
