/* The formulas of a context's plans and calls: equal ones are one block of memory, so that problems are compared by their bytes. Each
   counts who points to it, and the last one frees it. */
#ifndef GEMMEPI_PRODUCT_FORMULAS_H
#define GEMMEPI_PRODUCT_FORMULAS_H

#include "../problem/problem.h"
#include "../device/context.h"

#ifndef GEMMEPI_NO_FORMULA
static gemmepi__kept_formula *gemmepi__find_formula(const gemmepi_context *context,
                                                    const gemmepi__kept_formula *like) {
    gemmepi__kept_formula *kept = context->formulas;
    while (kept && !gemmepi__same_formula(kept, like))
        kept = kept->next;
    return kept;
}
#endif

/* Takes the problem's formula, which is the caller's, into the context, or puts the equal one in its place that is there. Either has a
   reference for the caller to give to gemmepi__drop_formula. */
static void gemmepi__share_formula(gemmepi_context *context, gemmepi__problem *problem) {
#ifndef GEMMEPI_NO_FORMULA
    gemmepi__kept_formula *own = problem->formula, *kept;
    if (!own)
        return;
    own->hash = gemmepi__hash_formula(own);
    gemmepi__lock(&context->formula_lock);
    kept = gemmepi__find_formula(context, own);
    if (!kept) {
        own->next = context->formulas;
        context->formulas = kept = own;
    }
    kept->references++;
    gemmepi__unlock(&context->formula_lock);
    if (kept != own)
        gemmepi__delete_formula(&context->allocator, own);
    problem->formula = kept;
#else
    (void)context, (void)problem;
#endif
}

/* One reference more, of a problem that has one. */
static void gemmepi__hold_formula(gemmepi_context *context, const gemmepi__problem *problem) {
#ifndef GEMMEPI_NO_FORMULA
    if (!problem->formula)
        return;
    gemmepi__lock(&context->formula_lock);
    problem->formula->references++;
    gemmepi__unlock(&context->formula_lock);
#else
    (void)context, (void)problem;
#endif
}

static void gemmepi__drop_formula(gemmepi_context *context, const gemmepi__problem *problem) {
#ifndef GEMMEPI_NO_FORMULA
    gemmepi__kept_formula *kept = problem->formula, **place = &context->formulas;
    if (!kept)
        return;
    gemmepi__lock(&context->formula_lock);
    if (--kept->references > 0)
        kept = NULL;
    while (kept && *place != kept)
        place = &(*place)->next;
    if (kept)
        *place = kept->next;
    gemmepi__unlock(&context->formula_lock);
    gemmepi__delete_formula(&context->allocator, kept);
#else
    (void)context, (void)problem;
#endif
}

#endif
