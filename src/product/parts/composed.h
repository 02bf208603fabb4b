/* A formula that says what an epilogue says (formula/compose.h) is run as that: the problem with the epilogue in the formula's place, and
   what a run gives it. Where the two would differ it stays a formula. */
#ifndef GEMMEPI_PRODUCT_PARTS_COMPOSED_H
#define GEMMEPI_PRODUCT_PARTS_COMPOSED_H

#include "../../problem/scales.h"
#include "inside.h"
#include "pass.h"
#ifndef GEMMEPI_NO_FORMULA

/* >>the problem */

/* The operand where the epilogue has it, with its scale: one number for all items. */
static void gemmepi__compose_operand(gemmepi__problem *problem, int operand, int i) {
    gemmepi__view *view = &problem->views[operand];
    if (i < 0)
        return;
    *view = problem->formula->views[i];
    view->alignment = gemmepi__alignment_for(problem, view);
    if (!problem->formula->placed.operands[i].scale)
        return;
    view->scale = GEMMEPI_SCALE_TENSOR;
    view = &problem->views[GEMMEPI__SCALE_OF(operand)];
    view->lines = view->length = view->ld = 1;
    (void)gemmepi__take_numbers(problem, GEMMEPI__SCALE_OF(operand), GEMMEPI_F32,
                                4); /* nothing that is checked is given */
}

/* Types and what lies with them: what an epilogue's tensor may be. */
static int gemmepi__may_be_operand(const gemmepi__problem *problem, int operand, int i) {
    const gemmepi__formula_operand *o;
    const gemmepi__placed_operand *place;
    if (i < 0)
        return 1;
    o = &problem->formula->placed.formula->operands[i];
    place = &problem->formula->placed.operands[i];
    return gemmepi__side_types(problem, operand) >> o->dtype & 1 &&
           (operand < GEMMEPI__BIAS || (!place->scale && !place->amax));
}

/* Of a problem with a formula, and of what that says. */
static gemmepi__problem gemmepi__composed_problem(const gemmepi__problem *problem,
                                                  const gemmepi__composition *said) {
    gemmepi__problem composed = *problem;
    composed.epilogue = said->epilogue;
    composed.parameter = said->parameter;
    gemmepi__compose_operand(&composed, GEMMEPI__BIAS, said->bias);
    gemmepi__compose_operand(&composed, GEMMEPI__AUX, said->aux);
    gemmepi__compose_operand(&composed, GEMMEPI__RESIDUAL, said->residual);
    gemmepi__compose_operand(&composed, GEMMEPI__BIAS_GRAD, said->bias_grad);
    if (said->bias_grad >= 0 && problem->formula->placed.formula->operands[said->bias_grad].accumulate)
        composed.epilogue |= GEMMEPI_ACCUMULATE_BIAS_GRAD;
    if (gemmepi__has(&composed, GEMMEPI_AUX) && problem->formula->placed.operands[said->aux].amax) {
        composed.flags |= GEMMEPI_AMAX_AUX;
        (void)gemmepi__take_amax(&composed, GEMMEPI_AMAX_AUX, GEMMEPI__AMAX_AUX, GEMMEPI__AUX);
    }
    composed.formula = NULL;
    gemmepi__list_operands(&composed);
    return composed;
}

/* Whether aux is stored where a run may have the residual, which a formula reads first and an epilogue afterwards. */
static int gemmepi__may_store_over_residual(const gemmepi__problem *composed) {
    return gemmepi__has(composed, GEMMEPI_AUX) && gemmepi__has(composed, GEMMEPI_RESIDUAL) &&
           gemmepi__same_layout(composed, &composed->views[GEMMEPI__AUX],
                                &composed->views[GEMMEPI__RESIDUAL]);
}

/* Whether the epilogue's activation is exact where the formula's is short, which inside a kernel takes less: of 16 bits operands go into one,
   and a sum of columns does not, as a formula's. */
static int gemmepi__is_shorter_inside(const gemmepi__problem *problem, const gemmepi__problem *composed) {
    int has_forms = gemmepi__activation(composed->epilogue) != GEMMEPI_NONE &&
                    gemmepi__activation(composed->epilogue) != GEMMEPI_RELU;
    return has_forms && problem->formula->placed.formula->is_short && gemmepi__wants_exact(composed) &&
           problem->views[GEMMEPI__A].bits > 8 && problem->views[GEMMEPI__B].bits > 8 &&
           !gemmepi__has(composed, GEMMEPI_BGRAD);
}

/* Why what the formula says is yet no composition, or NULL. */
static const char *gemmepi__not_composed(const gemmepi__problem *problem, const gemmepi__problem *composed,
                                         const gemmepi__composition *said) {
    if (!gemmepi__may_be_operand(problem, GEMMEPI__BIAS, said->bias) ||
        !gemmepi__may_be_operand(problem, GEMMEPI__AUX, said->aux) ||
        !gemmepi__may_be_operand(problem, GEMMEPI__RESIDUAL, said->residual) ||
        !gemmepi__may_be_operand(problem, GEMMEPI__BIAS_GRAD, said->bias_grad))
        return "an operand has a type, a scale or an amax that epilogues do not take";
    if (gemmepi__aux_is_mask(said->epilogue))
        return "RELU's aux is a mask of bits";
    if (gemmepi__has(composed, GEMMEPI_BGRAD) && !gemmepi__has(composed, GEMMEPI_BACKWARD) &&
        gemmepi__activation(said->epilogue) != GEMMEPI_NONE)
        return "BGRAD goes with BACKWARD or with the activation NONE";
    if (problem->accumulator == GEMMEPI_I32 &&
        (!gemmepi__activation_has(said->epilogue, GEMMEPI__OF_INTEGERS) ||
         gemmepi__has(composed, GEMMEPI_BACKWARD | GEMMEPI_BGRAD)))
        return "its epilogue has no meaning in I32";
    if (gemmepi__is_shorter_inside(problem, composed))
        return "its activation is short, that of the epilogue exact";
    if (gemmepi__may_store_over_residual(composed))
        return "what is saved may lie where the residual does, which an epilogue reads later";
    return NULL;
}

/* Whether the formula says what an epilogue says, and may be run as that: then *is is 1, and said and composed are filled in. The status
   is OK unless memory has run out. */
static gemmepi_status gemmepi__take_composition(const gemmepi_context *context,
                                                const gemmepi__problem *problem, gemmepi__composition *said,
                                                gemmepi__problem *composed, int *is) {
    gemmepi_status status;
    *is = 0;
    if (gemmepi__half_group_of(problem))
        return GEMMEPI_OK;
    status = gemmepi__compose(&context->allocator, problem->formula->placed.formula, said, is);
    if (status || !*is)
        return status;
    *composed = gemmepi__composed_problem(problem, said);
    *is = !gemmepi__not_composed(problem, composed, said);
    return GEMMEPI_OK;
}

/* >>a run */

static void gemmepi__point_composed_operand(gemmepi__arguments *arguments, int operand, int i) {
    if (i < 0)
        return;
    arguments->pointers[operand] = arguments->operands[i];
    if (operand <= GEMMEPI__RESIDUAL && arguments->operand_scales)
        memcpy(&arguments->pointers[GEMMEPI__SCALE_OF(operand)], &arguments->operand_scales[i],
               sizeof(void *));
    if (operand == GEMMEPI__AUX && arguments->operand_amax)
        arguments->pointers[GEMMEPI__AMAX_AUX] = arguments->operand_amax[i];
}

/* A run's arguments as the composition's problem has them. */
static void gemmepi__point_composed(const gemmepi__composition *said, gemmepi__arguments *arguments) {
    gemmepi__point_composed_operand(arguments, GEMMEPI__BIAS, said->bias);
    gemmepi__point_composed_operand(arguments, GEMMEPI__AUX, said->aux);
    gemmepi__point_composed_operand(arguments, GEMMEPI__RESIDUAL, said->residual);
    gemmepi__point_composed_operand(arguments, GEMMEPI__BIAS_GRAD, said->bias_grad);
}
#endif

#endif
