/* A formula that says what an epilogue says (formula/compose.h) is run as that: the problem with the epilogue in the formula's place.
   Where the two would differ it stays a formula. */
#ifndef GEMMEPI_PRODUCT_PARTS_COMPOSED_H
#define GEMMEPI_PRODUCT_PARTS_COMPOSED_H

#include "inside.h"
#include "pass.h"

/* Types and what lies with them: whether what the formula has in a slot may be the epilogue's tensor. */
static int gpi__may_be_operand(const gpi__problem *problem, int operand, int i) {
    const gpi__placed_formula *placed = &problem->formula->placed;
    return i < 0 || (gpi__side_types(problem, operand) >> placed->formula->operands[i].dtype & 1 &&
                     (operand < GPI__BIAS || (!placed->operands[i].scale && !placed->operands[i].amax)));
}

/* Of a problem with a formula, and of what that says. */
static gpi__problem gpi__composed_problem(const gpi__problem *problem, const gpi__composition *said) {
    const gpi__placed_formula *placed = &problem->formula->placed;
    gpi__problem composed = gpi__problem_with_slots(problem, said);
    int aux = said->slots[GPI__IN_AUX], bias_grad = said->slots[GPI__IN_BIAS_GRAD];
    if (bias_grad >= 0 && placed->formula->operands[bias_grad].accumulate)
        composed.epilogue |= GEMMEPI_ACCUMULATE_BIAS_GRAD;
    if (gpi__has(&composed, GEMMEPI_AUX) && placed->operands[aux].amax) {
        composed.flags |= GEMMEPI_AMAX_AUX;
        (void)gpi__convert_amax(&composed, GEMMEPI_AMAX_AUX, GPI__AMAX_AUX, GPI__AUX);
    }
    composed.formula = NULL;
    gpi__list_operands(&composed);
    return composed;
}

/* Whether aux is stored where a run may have the residual, which a formula reads first and an epilogue afterwards. */
static int gpi__may_store_over_residual(const gpi__problem *composed) {
    return gpi__has(composed, GEMMEPI_AUX) && gpi__has(composed, GEMMEPI_RESIDUAL) &&
           gpi__same_layout(composed, &composed->views[GPI__AUX], &composed->views[GPI__RESIDUAL]);
}

/* Whether the epilogue's activation is exact where the formula's is short, which inside a kernel takes less: of 16 bits operands go into one,
   and a sum of columns does not, as a formula's. */
static int gpi__is_shorter_inside(const gpi__problem *problem, const gpi__problem *composed) {
    int has_forms = gpi__activation(composed->epilogue) != GEMMEPI_NONE &&
                    gpi__activation(composed->epilogue) != GEMMEPI_RELU;
    return has_forms && problem->formula->placed.formula->is_short && gpi__wants_exact(composed) &&
           problem->views[GPI__A].bits > 8 && problem->views[GPI__B].bits > 8 &&
           !gpi__has(composed, GEMMEPI_BGRAD);
}

/* Why what the formula says is yet no composition, or NULL. */
static const char *gpi__not_composed(const gpi__problem *problem, const gpi__problem *composed,
                                     const gpi__composition *said) {
    int s;
    for (s = 0; s < GPI__SLOTS; s++)
        if (!gpi__may_be_operand(problem, GPI__OPERAND_OF_SLOT(s), said->slots[s]))
            return "an operand has a type, a scale or an amax that epilogues do not have";
    if (gpi__aux_is_mask(said->epilogue))
        return "RELU's aux is a mask of bits";
    if (gpi__has(composed, GEMMEPI_BGRAD) && !gpi__has(composed, GEMMEPI_BACKWARD) &&
        gpi__activation(said->epilogue) != GEMMEPI_NONE)
        return "BGRAD goes with BACKWARD or with the activation NONE";
    if (problem->accumulator == GEMMEPI_I32 && (!gpi__activation_has(said->epilogue, GPI__OF_INTEGERS) ||
                                                gpi__has(composed, GEMMEPI_BACKWARD | GEMMEPI_BGRAD)))
        return "its epilogue has no meaning in I32";
    if (gpi__is_shorter_inside(problem, composed))
        return "its activation is short, that of the epilogue exact";
    if (gpi__may_store_over_residual(composed))
        return "what is saved may be where the residual is, which an epilogue reads later";
    return NULL;
}

/* Whether the formula says what an epilogue says, and may be run as that: then *is is 1, and said and composed are filled in. The status
   is OK unless memory has run out. */
static gemmepi_status gpi__find_composition(const gemmepi_context *context, const gpi__problem *problem,
                                            gpi__composition *said, gpi__problem *composed, int *is) {
    gemmepi_status status;
    *is = 0;
    if (gpi__half_group_of(problem))
        return GEMMEPI_OK;
    status = gpi__compose(&context->allocator, problem->formula->placed.formula, said, is);
    if (status || !*is)
        return status;
    *composed = gpi__composed_problem(problem, said);
    *is = !gpi__not_composed(problem, composed, said);
    return GEMMEPI_OK;
}

#endif
