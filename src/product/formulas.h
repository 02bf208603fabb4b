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

/* Takes the problem's formula, which is the caller's, into the context, or puts the equal one in its place that is there. Either has a
   reference for the caller to give to gpi__drop_formula. */
static void gpi__share_formula(gemmepi_context *context, gpi__problem *problem) {
    gpi__kept_formula *own = GPI__FORMULA(problem), *kept;
    if (!own)
        return;
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
    problem->formula = kept;
}

/* One reference more, of a problem that has one. */
static void gpi__hold_formula(gemmepi_context *context, const gpi__problem *problem) {
    if (!GPI__FORMULA(problem))
        return;
    gpi__lock(&context->formula_lock);
    problem->formula->references++;
    gpi__unlock(&context->formula_lock);
}

static void gpi__drop_formula(gemmepi_context *context, const gpi__problem *problem) {
    gpi__kept_formula *kept = GPI__FORMULA(problem), **place = &context->formulas;
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

#endif
