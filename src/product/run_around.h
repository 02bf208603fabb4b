/* What is launched around a product (around.h), in one run. */
#ifndef GEMMEPI_PRODUCT_RUN_AROUND_H
#define GEMMEPI_PRODUCT_RUN_AROUND_H

#ifndef GEMMEPI_NO_FORMULA
#include "../elementwise/formula_launch.h"
#endif
#include "around.h"

#ifndef GEMMEPI_NO_FORMULA
/* >>a formula's pointers */

/* The operands in the formula's order, D at RESULT. */
typedef struct gpi__formula_pointers {
    void *operands[GPI__FORMULA_PLACES];
    const float *scales[GPI__FORMULA_PLACES];
    void *amax[GPI__FORMULA_PLACES];
} gpi__formula_pointers;

static void gpi__point_formula(const gpi__problem *problem, const gpi__arguments *arguments,
                               gpi__formula_pointers *to) {
    const gpi__formula *formula = problem->formula->placed.formula;
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
    to->operands[GPI__RESULT] = arguments->pointers[GPI__D];
    to->scales[GPI__RESULT] = (const float *)arguments->pointers[GPI__SCALE_D];
    to->amax[GPI__RESULT] = arguments->pointers[GPI__AMAX_D];
}

/* Where v and the states of reductions are in workspace, and what is left to the product. */
typedef struct gpi__formula_parts {
    char *v, *states, *rest;
} gpi__formula_parts;

static gpi__formula_parts gpi__divide_for_formula(const gpi__formula_step *step, char *workspace) {
    gpi__formula_parts parts;
    parts.v = workspace;
    parts.states = gpi__past(workspace, step->product_bytes);
    parts.rest = gpi__past(parts.states, step->pass.state_bytes);
    return parts;
}

/* For a kernel with the formula inside: the operands, with states in the place of what is reduced. */
static void gpi__point_states(const gpi__formula_step *step, char *states, gpi__formula_pointers *pointers) {
    int u;
    for (u = 0; u < step->pass.used_count; u++) {
        int i = step->pass.used[u];
        if (step->pass.roles[i] == GPI__ROLE_REDUCTION)
            pointers->operands[i] = gpi__states_of(&step->pass, states, i);
    }
}

/* The arguments of the product, of those of `problem`, which has the formula. pointers: for as long as they are used. */
static void gpi__point_product(const gpi__problem *problem, const gpi__formula_step *step,
                               const gpi__formula_parts *parts, gpi__formula_pointers *pointers,
                               gpi__arguments *own) {
    if (step->is_composed) {
        gpi__point_composed(&step->said, own);
    } else if (step->is_inside) {
        if (step->pass.used_count) {
            gpi__point_formula(problem, own, pointers);
            gpi__point_states(step, parts->states, pointers);
            own->operands = pointers->operands;
        }
        gpi__point_inside(problem, &step->slots, own);
    } else {
        own->pointers[GPI__D] = parts->v;
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
                                        const gpi__formula_parts *parts, gemmepi_stream stream) {
    gpi__formula_pointers pointers;
    gpi__formula_run run;
    if (!step->pass.used_count)
        return GEMMEPI_OK;
    gpi__point_formula(problem, arguments, &pointers);
    memset(&run, 0, sizeof run);
    run.value = parts->v;
    run.alpha = 1;
    run.beta = arguments->beta;
    memcpy(&run.device_beta, &arguments->device_beta, sizeof(void *));
    run.uses_c = arguments->uses_c;
    run.c = arguments->pointers[GPI__C];
    run.scale_c = (const float *)arguments->pointers[GPI__SCALE_C];
    run.operands = pointers.operands;
    run.scales = pointers.scales;
    run.amax = pointers.amax;
    run.states = parts->states;
    return gpi__run_formula_pass(context, &step->pass, &run, stream);
}
#endif

/* What a run has on its way from the caller's arguments to the product's. */
typedef struct gpi__way_in {
    const gpi__arguments *inside; /* of around->inside: the caller's, or */
    gpi__arguments within;        /* those of what is inside the launch that finds scales */
    gpi__arguments product;       /* of the plan's problem */
    char *place, *rest;           /* of workspace: the launch's that finds scales, and the product's */
#ifndef GEMMEPI_NO_FORMULA
    gpi__formula_parts parts;
    gpi__formula_pointers pointers;
#endif
} gpi__way_in;

/* Makes the product's arguments, and launches what is ahead of it. */
static gemmepi_status gpi__run_ahead(const gemmepi_context *context, const gpi__around *around,
                                     const gpi__arguments *arguments, char *workspace, gpi__way_in *way,
                                     gemmepi_stream stream) {
    gemmepi_status status = GEMMEPI_OK;
    way->inside = arguments;
    way->place = workspace;
    way->rest = workspace;
    if (around->finds) {
        way->rest = gpi__past(workspace, around->found.bytes);
        way->within = *arguments;
        way->inside = &way->within;
        gpi__point_within(&around->problem, way->place, &way->within);
        if (around->problem.found_scale == GEMMEPI_SCALE_TENSOR)
            status = gpi__run_history(context, &around->found, arguments, way->place, stream);
    }
    way->product = *way->inside;
#ifndef GEMMEPI_NO_FORMULA
    if (around->inside.formula) {
        way->parts = gpi__divide_for_formula(&around->formula, way->rest);
        way->rest = way->parts.rest;
        if (!around->lacks_product)
            gpi__point_product(&around->inside, &around->formula, &way->parts, &way->pointers, &way->product);
    }
#endif
    return status;
}

/* Launches what is behind the product. */
static gemmepi_status gpi__run_behind(const gemmepi_context *context, const gpi__around *around,
                                      const gpi__arguments *arguments, const gpi__way_in *way,
                                      gemmepi_stream stream) {
    gemmepi_status status = GEMMEPI_OK;
#ifndef GEMMEPI_NO_FORMULA
    if (around->inside.formula)
        status =
            gpi__run_behind_v(context, &around->inside, &around->formula, way->inside, &way->parts, stream);
#endif
    if (!status && around->finds && around->problem.found_scale != GEMMEPI_SCALE_TENSOR)
        status = gpi__run_quantise(context, &around->found, arguments, way->place, stream);
    return status;
}

#endif
