/* What is launched around a product (around.h), in one run. */
#ifndef GEMMEPI_PRODUCT_RUN_AROUND_H
#define GEMMEPI_PRODUCT_RUN_AROUND_H

#include "../elementwise/formula_launch.h"
#include "around.h"

/* Where a run's workspace has what: operands that are made, what is the launch's that finds scales, v, states of the pass, and the product's
   own. */
typedef struct gpi__around_space {
    char *made[2], *found, *v, *states, *product;
} gpi__around_space;

static gpi__around_space gpi__divide_around(const gpi__around *around, char *workspace) {
    gpi__around_space at;
    at.made[0] = at.made[1] = at.found = workspace;
    at.made[1] = gpi__past(workspace, gpi__bytes_of_made(around, GPI__A));
    at.found = gpi__past(at.made[1], gpi__bytes_of_made(around, GPI__B));
    at.v = at.states = at.product = gpi__past(at.found, around->found.bytes);
    at.states = gpi__past(at.v, around->formula.product_bytes);
    at.product = gpi__past(at.states, around->formula.pass.state_bytes);
    return at;
}

/* >>a formula's pointers */

/* The operands in the formula's order, D at RESULT. */
typedef struct gpi__formula_pointers {
    void *operands[GPI__FORMULA_PLACES];
    const float *scales[GPI__FORMULA_PLACES];
    void *amax[GPI__FORMULA_PLACES];
} gpi__formula_pointers;

static void gpi__point_formula(const gpi__kept_formula *kept, const gpi__arguments *arguments,
                               gpi__formula_pointers *to) {
    const gpi__formula *formula = kept->placed.formula;
    int i;
    for (i = 0; i < formula->operand_count; i++) {
        const void *number = &arguments->numbers[i];
        if (formula->operands[i].kind == GEMMEPI_NUMBER)
            memcpy(&to->operands[i], &number, sizeof number);
        else
            to->operands[i] = arguments->operands[i];
        to->scales[i] = arguments->operand_scales ? arguments->operand_scales[i] : NULL;
        to->amax[i] = arguments->operand_amax ? arguments->operand_amax[i] : NULL;
    }
}

/* Runs what makes operand i and finds its scales. */
static gemmepi_status gpi__run_one_made(const gemmepi_context *context, const gpi__around *around, int i,
                                        char *place, gpi__arguments *own, gemmepi_stream stream) {
    gpi__made_sizes sizes = gpi__sizes_of_made(around, i);
    float *scale = (float *)(void *)(place + sizes.made);
    gpi__formula_pointers pointers;
    gpi__formula_run run;
    gemmepi_status status = GEMMEPI_OK;
    gpi__point_formula(around->problem.made[i].formula, own, &pointers);
    pointers.operands[GPI__RESULT] = place;
    pointers.scales[GPI__RESULT] = scale;
    pointers.amax[GPI__RESULT] = place + sizes.made + sizes.scale;
    memset(&run, 0, sizeof run);
    run.matrices[0] = own->pointers[i];
    run.matrix_scales[0] = (const float *)own->pointers[GPI__SCALE_OF(i)];
    run.operands = pointers.operands;
    run.scales = pointers.scales;
    run.amax = pointers.amax;
    if (around->made[i].used_count)
        status = gpi__run_formula_pass(context, &around->made[i], &run, stream);
    own->pointers[i] = place;
    own->pointers[GPI__SCALE_OF(i)] = sizes.scale ? scale : NULL;
    return status;
}

/* Makes the operands that formulas make, and points the product to them. */
static gemmepi_status gpi__run_made(const gemmepi_context *context, const gpi__around *around,
                                    const gpi__around_space *at, gpi__arguments *own, gemmepi_stream stream) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = GPI__A; i <= GPI__B && !status; i++)
        if (around->problem.made[i].formula && !around->inside.made[i].formula)
            status = gpi__run_one_made(context, around, i, at->made[i], own, stream);
    return status;
}

/* The arguments of the product, of those of `problem`, which has the formula. */
static void gpi__point_product(const gpi__problem *problem, const gpi__formula_step *step,
                               const gpi__around_space *at, gpi__arguments *own) {
    if (step->is_inside)
        own->inside = problem->formula;
    if (step->is_composed || step->is_inside) {
        gpi__point_slots(&step->said, own);
    } else {
        own->pointers[GPI__D] = at->v;
        own->pointers[GPI__SCALE_D] = own->pointers[GPI__AMAX_D] = NULL;
        own->pointers[GPI__C] = own->pointers[GPI__SCALE_C] = NULL; /* the pass adds it */
        own->beta = 0;
        own->device_beta = NULL;
        own->uses_c = 0;
    }
}

/* The pass, once v is there; nothing where what makes it does all. */
static gemmepi_status gpi__run_behind_v(const gemmepi_context *context, const gpi__problem *problem,
                                        const gpi__formula_step *step, const gpi__arguments *arguments,
                                        const gpi__around_space *at, gemmepi_stream stream) {
    gpi__formula_pointers pointers;
    gpi__formula_run run;
    if (!step->pass.used_count)
        return GEMMEPI_OK;
    gpi__point_formula(problem->formula, arguments, &pointers);
    pointers.operands[GPI__RESULT] = arguments->pointers[GPI__D];
    pointers.scales[GPI__RESULT] = (const float *)arguments->pointers[GPI__SCALE_D];
    pointers.amax[GPI__RESULT] = arguments->pointers[GPI__AMAX_D];
    memset(&run, 0, sizeof run);
    run.matrices[0] = at->v;
    run.matrices[1] = arguments->pointers[GPI__C];
    run.matrix_scales[1] = (const float *)arguments->pointers[GPI__SCALE_C];
    run.beta = arguments->beta;
    memcpy(&run.device_beta, &arguments->device_beta, sizeof(void *));
    run.uses_c = arguments->uses_c;
    run.operands = pointers.operands;
    run.scales = pointers.scales;
    run.amax = pointers.amax;
    run.states = at->states;
    return gpi__run_formula_pass(context, &step->pass, &run, stream);
}

#endif
