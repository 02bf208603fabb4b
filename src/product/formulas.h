/* The formulas of a context's plans and calls: equal ones are one block of memory, so that problems are compared by their bytes. Each
   counts who points to it, and the last one frees it. */
#ifndef GEMMEPI_PRODUCT_FORMULAS_H
#define GEMMEPI_PRODUCT_FORMULAS_H

#include "../problem/problem.h"
#include "../device/context.h"

static gpi__kept_formula *gpi__find_formula(const gemmepi_context *context, const gpi__kept_formula *like) {
    gpi__kept_formula *kept = context->formulas;
    while (kept && !gpi__same_formula(kept, like))
        kept = kept->next;
    return kept;
}

static gpi__kept_formula *gpi__share_one(gemmepi_context *context, gpi__kept_formula *own) {
    gpi__kept_formula *kept;
    if (!own)
        return NULL;
    own->hash = gpi__hash_formula(own);
    gpi__lock(&context->formula_lock);
    kept = gpi__find_formula(context, own);
    if (!kept) {
        own->next = context->formulas;
        context->formulas = kept = own;
    }
    kept->references++;
    gpi__unlock(&context->formula_lock);
    if (kept != own)
        gpi__delete_formula(&context->allocator, own);
    return kept;
}

static void gpi__drop_one(gemmepi_context *context, gpi__kept_formula *kept) {
    gpi__kept_formula **place = &context->formulas;
    if (!kept)
        return;
    gpi__lock(&context->formula_lock);
    if (--kept->references > 0)
        kept = NULL;
    while (kept && *place != kept)
        place = &(*place)->next;
    if (kept)
        *place = kept->next;
    gpi__unlock(&context->formula_lock);
    gpi__delete_formula(&context->allocator, kept);
}

/* Takes the problem's formulas, which are the caller's, into the context, or puts the equal ones in their place that are there. Each has a
   reference for the caller to give to gpi__drop_formulas. */
static void gpi__share_formulas(gemmepi_context *context, gpi__problem *problem) {
    int i;
    for (i = 0; i < GPI__FORMULAS; i++)
        *gpi__formula_slot(problem, i) = gpi__share_one(context, *gpi__formula_slot(problem, i));
}

/* One reference more, of a problem that has them. */
static void gpi__hold_formulas(gemmepi_context *context, const gpi__problem *problem) {
    int i;
    gpi__lock(&context->formula_lock);
    for (i = 0; i < GPI__FORMULAS; i++)
        if (gpi__nth_formula(problem, i))
            gpi__nth_formula(problem, i)->references++;
    gpi__unlock(&context->formula_lock);
}

static void gpi__drop_formulas(gemmepi_context *context, const gpi__problem *problem) {
    int i;
    for (i = 0; i < GPI__FORMULAS; i++)
        gpi__drop_one(context, gpi__nth_formula(problem, i));
}

#endif
