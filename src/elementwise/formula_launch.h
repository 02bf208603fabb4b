/* Runs of a formula's pass, and what it is in words. */
#ifndef GEMMEPI_ELEMENTWISE_FORMULA_LAUNCH_H
#define GEMMEPI_ELEMENTWISE_FORMULA_LAUNCH_H

#include "formula_pass.h"

static gemmepi_status gpi__clear_formula_amax(const gemmepi_context *context, const gpi__formula_pass *pass,
                                              const gpi__formula_run *run, gemmepi_stream stream) {
    int u, result = 0;
    if (pass->finder.function)
        result = context->driver.memset_d8_async((gpi__cu_deviceptr)(uintptr_t)run->amax[GPI__RESULT], 0,
                                                 pass->finder_bytes, (gpi__cu_stream)stream);
    for (u = 0; u < pass->used_count && !result; u++) {
        int i = pass->used[u];
        if (pass->amax[i])
            result = context->driver.memset_d8_async((gpi__cu_deviceptr)(uintptr_t)run->amax[i], 0,
                                                     pass->amax[i], (gpi__cu_stream)stream);
    }
    return result ? gpi__cuda_failed(&context->driver, result, "clearing amax") : GEMMEPI_OK;
}

/* Returns the states of a place; NULL where there are none, as of reductions over nothing. */
static void *gpi__states_of(const gpi__formula_pass *pass, char *states, int i) {
    return states ? states + pass->state_offsets[i] : NULL;
}

static void gpi__point_operand(const gpi__formula_run *run, const gpi__formula_pass *pass, int i,
                               gpi__formula_place *place) {
    if (pass->roles[i] == GPI__ROLE_NUMBER)
        place->number = *(const double *)run->operands[i];
    else if (pass->roles[i] == GPI__ROLE_POINTER)
        place->data = run->operands[i];
    else if (pass->roles[i] == GPI__ROLE_REDUCTION)
        place->data = gpi__states_of(pass, (char *)run->states, i);
    place->scale = pass->scaled[i] ? run->scales[i] : NULL;
    place->amax = pass->amax[i] && run->amax ? run->amax[i] : NULL;
}

static void gpi__point_source(const gpi__formula_run *run, gpi__formula_pass_params *params) {
    int i;
    for (i = 0; i < 2; i++) {
        params->places[GPI__FORMULA_VALUE + i].data = run->matrices[i];
        params->places[GPI__FORMULA_VALUE + i].scale = run->matrix_scales[i];
    }
    params->device_beta = run->device_beta;
    params->beta = run->beta;
    params->uses_c = run->uses_c;
}

/* launch: the pass's own, or its finder */
static gemmepi_status gpi__launch_formula_pass(const gemmepi_context *context, const gpi__formula_pass *pass,
                                               const gpi__launch *launch, const gpi__formula_run *run,
                                               gemmepi_stream stream) {
    gpi__strided_formula_params strided;
    int u;
    strided.pass = pass->params;
    gpi__point_source(run, &strided.pass);
    for (u = 0; u < pass->used_count; u++)
        gpi__point_operand(run, pass, pass->used[u], &strided.pass.places[pass->used[u]]);
    if (pass->finder.function)
        strided.pass.places[GPI__RESULT].amax = run->amax[GPI__RESULT];
    if (pass->is_strided)
        strided.strides = pass->strides;
    return gpi__launch_kernel(context, launch, pass->is_strided ? (void *)&strided : (void *)&strided.pass,
                              "the formula", stream);
}

static gemmepi_status gpi__launch_reductions(const gemmepi_context *context, const gpi__formula_pass *pass,
                                             const gpi__formula_run *run, gemmepi_stream stream) {
    gpi__formula_reduce_params params = pass->reduce_params;
    gpi__formula_place place;
    int u;
    for (u = 0; u < pass->used_count; u++) {
        int i = pass->used[u];
        if (pass->roles[i] != GPI__ROLE_REDUCTION)
            continue;
        gpi__point_operand(run, pass, i, &place);
        params.reductions[i].states = place.data;
        params.reductions[i].out = run->operands[i];
        params.reductions[i].scale = place.scale;
        params.reductions[i].amax = place.amax;
    }
    return gpi__launch_kernel(context, &pass->finish, &params, "a formula's reductions", stream);
}

static gemmepi_status gpi__run_formula_pass(const gemmepi_context *context, const gpi__formula_pass *pass,
                                            const gpi__formula_run *run, gemmepi_stream stream) {
    gemmepi_status status = gpi__clear_formula_amax(context, pass, run, stream);
    if (!status && pass->finder.function)
        status = gpi__launch_formula_pass(context, pass, &pass->finder, run, stream);
    if (!status && pass->launch.function)
        status = gpi__launch_formula_pass(context, pass, &pass->launch, run, stream);
    if (!status && pass->finish.function)
        status = gpi__launch_reductions(context, pass, run, stream);
    return status;
}

/* >>in words */

/* With clearing each amax. */
static int gpi__formula_launches(const gpi__formula_pass *pass) {
    int u, launches = (pass->launch.function != NULL) + (pass->finish.function != NULL) +
                      2 * (pass->finder.function != NULL);
    for (u = 0; u < pass->used_count; u++)
        launches += pass->amax[pass->used[u]] != 0;
    return launches;
}

/* Its launches, behind those that are counted. The first kernel that is named is the plan's. */
static void gpi__describe_formula_pass(const gpi__formula_pass *pass, gemmepi_plan_details *details) {
    if (!details->kernel[0])
        memcpy(details->kernel, (pass->launch.function ? &pass->launch : &pass->finish)->name,
               sizeof details->kernel);
    details->launches += gpi__formula_launches(pass);
}

/* before: what it does before the formula */
static void gpi__explain_formula_pass(gpi__text *text, const gpi__formula_pass *pass, const char *before) {
    if (pass->finder.function)
        gpi__append(text, "  %s: amax of which scales are made, %u blocks of %u x %u threads\n",
                    pass->finder.name, pass->finder.blocks, pass->finder.threads_x, pass->finder.threads_y);
    if (pass->launch.function)
        gpi__append(text, "  %s: %sthe formula, %u blocks of %u x %u threads, %d columns%s at once%s\n",
                    pass->launch.name, before, pass->launch.blocks, pass->launch.threads_x,
                    pass->launch.threads_y, pass->runs_of, pass->aligned ? "" : " (not aligned)",
                    pass->is_strided ? ", by strides" : "");
    if (pass->finish.function)
        gpi__append(text, "  %s: reductions in a fixed order, %u blocks, %.0f bytes of states\n",
                    pass->finish.name, pass->finish.blocks, (double)pass->state_bytes);
}

#endif
