/* The operands of a gradient. */
#ifndef GEMMEPI_FORMULA_DERIVED_OPERANDS_H
#define GEMMEPI_FORMULA_DERIVED_OPERANDS_H

#include "derive.h"

#ifndef GEMMEPI_NO_FORMULA
/* Names of this thread's lists, and where the next goes: those of the desc and of its list are kept. */
static GPI__THREAD_LOCAL char gpi__derived_names[GPI__DERIVED_NAMES][GPI__FORMULA_NAME + 4];
static GPI__THREAD_LOCAL int gpi__next_derived_name;

typedef struct gpi__operand_list {
    const gemmepi_derive_desc *of;
    gemmepi_operand *operands;
    int room, count;
} gpi__operand_list;

static void gpi__list_operand(gpi__operand_list *list, const gemmepi_operand *operand) {
    if (list->count < list->room)
        list->operands[list->count] = *operand;
    list->count++;
}

static int gpi__has_name_there(const gemmepi_operand *operands, int count, const char *at) {
    int i;
    for (i = 0; i < count; i++)
        if (operands[i].name == at)
            return 1;
    return 0;
}

static const char *gpi__derived_name(const gpi__operand_list *list, const char *before, const char *name) {
    char made[GPI__FORMULA_NAME + 4], *to;
    int i;
    snprintf(made, sizeof made, "%s%s", before, name);
    for (i = 0; i < GPI__DERIVED_NAMES; i++)
        if (strcmp(gpi__derived_names[i], made) == 0)
            return gpi__derived_names[i];
    do
        to = gpi__derived_names[gpi__next_derived_name++ % GPI__DERIVED_NAMES];
    while (gpi__has_name_there(list->of->operands, list->of->operand_count, to) || to == list->of->value ||
           gpi__has_name_there(list->operands, list->count < list->room ? list->count : list->room, to));
    memcpy(to, made, sizeof made);
    return to;
}

/* of: whose blocks it has, or NULL. */
static void gpi__list_new(gpi__operand_list *list, const char *name, gemmepi_operand_kind kind,
                          gemmepi_width width, const gemmepi_operand *of) {
    gemmepi_operand operand;
    memset(&operand, 0, sizeof operand);
    operand.name = name;
    operand.kind = kind;
    operand.width = width;
    operand.block_rows = of ? of->block_rows : 0;
    operand.block_columns = of ? of->block_columns : 0;
    gpi__list_operand(list, &operand);
}

/* As desc's widths count: of the text of an operand from what is made. */
static gemmepi_width gpi__listed_width(const gpi__derivation *d, int width) {
    return gpi__public_width(d->desc.is_of_operand ? gpi__width_of_output(d, GPI__RESULT) : d->graph.n_width,
                             width);
}

/* An operand of the formula, or D, that the gradient reads. */
static void gpi__list_read(gpi__operand_list *list, const gpi__derivation *d, int which) {
    gemmepi_operand operand;
    if (which == GPI__RESULT) {
        gpi__list_new(list, "d", GEMMEPI_FULL, gpi__listed_width(d, gpi__width_of_output(d, which)), NULL);
        return;
    }
    operand = d->desc.operands[which];
    if (operand.output && operand.dtype == GEMMEPI_DTYPE_DEFAULT && d->graph.assigned[which].reduction)
        operand.dtype = gpi__dtype_of_operand(&d->graph, which);
    operand.output = operand.accumulate = operand.amax = 0;
    operand.width = list->of->operands[which].width;
    gpi__list_operand(list, &operand);
}

static void gpi__list_upstream(gpi__operand_list *list, const gpi__derivation *d, int output) {
    if (!gpi__gradient_reads(d, GPI__OP_UPSTREAM, output))
        return;
    gpi__list_new(
        list, output == GPI__RESULT ? "dy" : gpi__derived_name(list, "dy_", d->desc.operands[output].name),
        output == GPI__RESULT ? GEMMEPI_FULL : d->desc.operands[output].kind,
        gpi__listed_width(d, gpi__width_of_output(d, output)),
        output == GPI__RESULT ? NULL : &d->desc.operands[output]);
}

static void gpi__list_gradient(gpi__operand_list *list, const gpi__derivation *d, int which) {
    const gemmepi_operand *of = which == GPI__OF_VALUE ? NULL : &d->desc.operands[which];
    gemmepi_operand operand;
    memset(&operand, 0, sizeof operand);
    operand.name = gpi__derived_name(list, "d_", gpi__name_in(d, which));
    operand.kind = gpi__kind_of_gradient(d, which);
    operand.output = 1;
    operand.width = of ? list->of->operands[which].width : gpi__listed_width(d, d->graph.n_width);
    if (of) {
        operand.block_rows = of->block_rows;
        operand.block_columns = of->block_columns;
        operand.dtype = of->kind == GEMMEPI_FULL && !of->tensor ? of->dtype : GEMMEPI_DTYPE_DEFAULT;
    }
    gpi__list_operand(list, &operand);
}

GEMMEPI_API int gemmepi_derive_operands(const gemmepi_derive_desc *desc, gemmepi_operand *operands,
                                        int count) {
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__operand_list list;
    gpi__derivation *d;
    int i;
    if (gpi__derivation_of(&allocator, desc, &d))
        return 0;
    list.operands = operands;
    list.room = operands ? count : 0;
    list.of = desc;
    list.count = 0;
    if (gpi__gradient_reads(d, GPI__OP_VALUE, 0))
        gpi__list_new(&list, gpi__value_name(&d->desc), GEMMEPI_FULL, gpi__listed_width(d, d->graph.n_width),
                      NULL);
    gpi__list_upstream(&list, d, GPI__RESULT);
    for (i = 0; i <= GPI__RESULT; i++)
        if (gpi__gradient_reads(d, GPI__OP_OPERAND, i))
            gpi__list_read(&list, d, i);
    for (i = 0; i < d->desc.operand_count; i++)
        gpi__list_upstream(&list, d, i);
    for (i = 0; i < d->wrt_count; i++)
        gpi__list_gradient(&list, d, d->wrt[i]);
    gpi__delete(&allocator, d);
    return list.count;
}
#endif

#endif
