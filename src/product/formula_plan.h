/* Products with a formula on a GPU, each by a plan of its own within the problem's plan. That is the plan of an epilogue where the formula
   says one (parts/composed.h), or has the formula inside its kernel (parts/inside.h), or makes alpha A B, in workspace and the
   accumulator's type, for a pass to go over that adds beta C (elementwise/formula_pass.h). */
#ifndef GEMMEPI_PRODUCT_FORMULA_PLAN_H
#define GEMMEPI_PRODUCT_FORMULA_PLAN_H

#include "choose.h"
#include "../elementwise/formula_pass.h"
#include "parts/composed.h"

/* >>building */

static int64_t gemmepi__bytes_of_product(const gemmepi__problem *v) {
    const gemmepi__view *view = &v->views[GEMMEPI__D];
    int64_t elements = gemmepi__offset(v->batch, view->batch_stride, 0);
    return elements < 0 ? -1 : elements * (view->bits / 8);
}

/* The product that is v but for C. */
static gemmepi__problem gemmepi__problem_of_v(const gemmepi__problem *problem) {
    gemmepi__problem v = gemmepi__bare_problem(problem);
    v.views[GEMMEPI__D].written = 1;
    v.views[GEMMEPI__D].transposed = 0;
    v.views[GEMMEPI__D].bytes = gemmepi__bytes_of_product(&v);
    v.views[GEMMEPI__C] = v.views[GEMMEPI__D]; /* as where none is described; no run has one */
    v.views[GEMMEPI__C].written = 0;
    v.flags |= GEMMEPI__MAKES_V;
    v.formula = NULL;
    gemmepi__list_operands(&v);
    return v;
}

static gemmepi__formula_source gemmepi__v_as_source(const gemmepi__problem *problem,
                                                    const gemmepi__problem *v) {
    const gemmepi__view *c = &problem->views[GEMMEPI__C];
    gemmepi__formula_source source;
    memset(&source, 0, sizeof source);
    source.c = c->dtype;
    source.c_ld = c->ld;
    source.c_stride = c->batch_stride;
    source.c_scale = c->scale != 0;
    source.c_scale_stride = problem->views[GEMMEPI__SCALE_C].batch_stride;
    source.invariant = gemmepi__is_invariant(problem);
    source.alignment = problem->alignment;
    source.dtype = problem->k ? problem->accumulator : 0;
    source.ld = v->views[GEMMEPI__D].ld;
    source.batch_stride = v->views[GEMMEPI__D].batch_stride;
    return source;
}

static int gemmepi__wants_v(const gemmepi__problem *problem) {
    return problem->formula->placed.formula->reads_value && !gemmepi__is_empty(problem) && problem->k > 0;
}

static gemmepi_status gemmepi__check_size_of_v(const gemmepi__problem *v) {
    int64_t bytes = v->views[GEMMEPI__D].bytes;
    if (bytes < 0 || (int64_t)(size_t)bytes != bytes)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the product does not fit into memory");
    return GEMMEPI_OK;
}

/* Whether a kernel with the formula inside is estimated to take less than v and the pass. With BATCH_INVARIANT m may not tell: it is
   inside wherever the route fused has it. */
static int gemmepi__is_better_inside(const gemmepi_context *context, const gemmepi__problem *inside,
                                     const gemmepi__problem *v, double pass) {
    gemmepi__candidates candidates;
    const gemmepi__candidate *least;
    double rank;
    memset(&candidates, 0, sizeof candidates);
    gemmepi__enumerate(context, inside, gemmepi__may_be_applied(inside), &candidates);
    least = gemmepi__least(&candidates);
    if (!least || least->rank >= GEMMEPI__NEVER)
        return 0;
    if (gemmepi__is_invariant(inside))
        return least->route == GEMMEPI_ROUTE_FUSED;
    rank = least->rank + (gemmepi__reduces_inside(inside) ? GEMMEPI__SUM_LAUNCH : 0);
    gemmepi__enumerate(context, v, gemmepi__may_be_applied(v), &candidates);
    least = gemmepi__least(&candidates);
    return !least || rank < least->rank + pass;
}

/* Why the formula is not to be inside a kernel, or NULL. */
static const char *gemmepi__why_not_inside(const gemmepi_context *context, const gemmepi__problem *problem,
                                           const gemmepi__problem *v) {
    gemmepi__formula_source source = gemmepi__v_as_source(problem, v);
    const char *reason = gemmepi__not_inside(problem);
    gemmepi__problem inside;
    if (reason)
        return reason;
    source.applied = 1; /* most runs have no C */
    inside = gemmepi__problem_inside(problem);
    if (gemmepi__is_better_inside(
            context, &inside, v,
            gemmepi__formula_pass_microseconds(context, &problem->formula->placed, &source)))
        return NULL;
    return gemmepi__half_group(&inside)
               ? "halves of groups are inside the kernel for Hopper alone; v and a pass over it take less by "
                 "estimate, or none is known"
               : "v and a pass over it take less by estimate, or none is known";
}

static const gemmepi__route *gemmepi__formula_route_of(gemmepi_route id);

/* What is launched behind the plan of v, which is built: the end of reductions that are inside, or the pass over v, whose problem this
   is. */
static gemmepi_status gemmepi__build_behind_v(gemmepi__matmul_plan *plan, const gemmepi__problem *v) {
    gemmepi_context *context = plan->base.context;
    gemmepi__formula_step *step = (gemmepi__formula_step *)plan->built;
    gemmepi__formula_source source = gemmepi__v_as_source(&plan->problem, v);
    gemmepi__entry entry;
    gemmepi_status status = gemmepi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gemmepi__lock(&context->build_lock);
    if (step->is_inside) {
        status = gemmepi__build_reductions(context, &plan->problem.formula->placed, &source,
                                           (unsigned)gemmepi__states_of_row(&plan->v->problem), &step->pass);
    } else {
        step->product_bytes = plan->v ? (size_t)v->views[GEMMEPI__D].bytes : 0;
        status = gemmepi__build_formula_pass(context, &plan->problem.formula->placed, &source, &step->pass);
    }
    gemmepi__unlock(&context->build_lock);
    gemmepi__leave_relaxed(context, &entry);
    return status;
}

/* Which route a user is told: that of the plan within as it stands, where that does all or v is PLAIN's, else SPLIT. */
static gemmepi_route gemmepi__told_formula_route(const gemmepi__matmul_plan *plan) {
    const gemmepi__formula_step *step = (const gemmepi__formula_step *)plan->built;
    gemmepi_route route;
    if (!plan->v)
        return gemmepi__is_empty(&plan->problem) ? GEMMEPI_ROUTE_EMPTY : GEMMEPI_ROUTE_SPLIT;
    route = gemmepi__current_plan(plan->v)->route->id;
    return step->is_composed || step->is_inside || route == GEMMEPI_ROUTE_PLAIN ? route : GEMMEPI_ROUTE_SPLIT;
}

static void gemmepi__finish_formula_plan(gemmepi__matmul_plan *plan) {
    const gemmepi__formula_step *step = (const gemmepi__formula_step *)plan->built;
    plan->route = gemmepi__formula_route_of(gemmepi__told_formula_route(plan));
    plan->workspace_size = gemmepi__round_up(step->product_bytes, 256) +
                           gemmepi__round_up(step->pass.state_bytes, 256) +
                           (plan->v ? plan->v->workspace_size : 0);
    plan->is_measured = plan->v && plan->v->is_measured;
}

/* >>running */

/* The operands in the formula's order, D at RESULT. */
typedef struct gemmepi__formula_pointers {
    void *operands[GEMMEPI__FORMULA_PLACES];
    const float *scales[GEMMEPI__FORMULA_PLACES];
    void *amax[GEMMEPI__FORMULA_PLACES];
} gemmepi__formula_pointers;

static void gemmepi__point_formula(const gemmepi__problem *problem, const gemmepi__arguments *arguments,
                                   gemmepi__formula_pointers *to) {
    const gemmepi__formula *formula = problem->formula->placed.formula;
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
    to->operands[GEMMEPI__RESULT] = arguments->pointers[GEMMEPI__D];
    to->scales[GEMMEPI__RESULT] = (const float *)arguments->pointers[GEMMEPI__SCALE_D];
    to->amax[GEMMEPI__RESULT] = arguments->pointers[GEMMEPI__AMAX_D];
}

/* Where v and the states of reductions lie in workspace, and what is left to the plan of v. */
typedef struct gemmepi__formula_parts {
    char *v, *states, *rest;
} gemmepi__formula_parts;

static gemmepi__formula_parts gemmepi__divide_for_formula(const gemmepi__matmul_plan *plan, char *workspace) {
    const gemmepi__formula_step *step = (const gemmepi__formula_step *)plan->built;
    gemmepi__formula_parts parts;
    parts.v = workspace;
    parts.states = gemmepi__past(workspace, step->product_bytes);
    parts.rest = gemmepi__past(parts.states, step->pass.state_bytes);
    return parts;
}

/* For a kernel with the formula inside: the operands, with states in the place of what is reduced. */
static void gemmepi__point_states(const gemmepi__matmul_plan *plan, char *states,
                                  gemmepi__formula_pointers *pointers) {
    const gemmepi__formula_step *step = (const gemmepi__formula_step *)plan->built;
    int u;
    for (u = 0; u < step->pass.used_count; u++) {
        int i = step->pass.used[u];
        if (step->pass.roles[i] == GEMMEPI__ROLE_REDUCTION)
            pointers->operands[i] = gemmepi__states_of(&step->pass, states, i);
    }
}

/* The pass, once v is there (run.h); nothing where what makes it does all. */
static gemmepi_status gemmepi__formula_run_plan(const gemmepi__matmul_plan *plan,
                                                const gemmepi__arguments *arguments, char *workspace,
                                                gemmepi_stream stream) {
    const gemmepi__formula_step *step = (const gemmepi__formula_step *)plan->built;
    gemmepi__formula_parts parts = gemmepi__divide_for_formula(plan, workspace);
    gemmepi__formula_pointers pointers;
    gemmepi__formula_run run;
    if (!step->pass.used_count)
        return GEMMEPI_OK;
    gemmepi__point_formula(&plan->problem, arguments, &pointers);
    memset(&run, 0, sizeof run);
    run.value = parts.v;
    run.alpha = 1;
    run.beta = arguments->beta;
    memcpy(&run.device_beta, &arguments->device_beta, sizeof(void *));
    run.uses_c = arguments->uses_c;
    run.c = arguments->pointers[GEMMEPI__C];
    run.scale_c = (const float *)arguments->pointers[GEMMEPI__SCALE_C];
    run.operands = pointers.operands;
    run.scales = pointers.scales;
    run.amax = pointers.amax;
    run.states = parts.states;
    return gemmepi__run_formula_pass(plan->base.context, &step->pass, &run, stream);
}

/* >>in words */

static void gemmepi__formula_describe(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
    const gemmepi__formula_step *step = (const gemmepi__formula_step *)plan->built;
    int i;
    details->launches = 0;
    if (plan->v) {
        const gemmepi__matmul_plan *v = gemmepi__current_plan(plan->v);
        v->route->describe(v, details);
    } else {
        memcpy(details->kernel, step->pass.launch.function ? step->pass.launch.name : step->pass.finish.name,
               sizeof details->kernel);
    }
    details->launches += (step->pass.launch.function != NULL) + (step->pass.finish.function != NULL);
    for (i = 0; i < GEMMEPI__FORMULA_PLACES; i++)
        details->launches += step->pass.amax[i] != 0;
}

/* "GELU_TANH|BIAS" */
static void gemmepi__append_composition(gemmepi__text *text, gemmepi_epilogue epilogue) {
    char name[256];
    gemmepi__text room = gemmepi__text_in(name, sizeof name);
    gemmepi__append_epilogue(&room, epilogue);
    gemmepi__append(text, "%s", name);
}

static void gemmepi__formula_explain(const gemmepi__matmul_plan *plan, const char *kernel,
                                     gemmepi__text *text) {
    const gemmepi__formula_step *step = (const gemmepi__formula_step *)plan->built;
    if (plan->v && step->is_composed) {
        const gemmepi__matmul_plan *v = gemmepi__current_plan(plan->v);
        gemmepi__append(text, "  the formula is ");
        gemmepi__append_composition(text, v->problem.epilogue);
        gemmepi__append(text, ":\n");
        v->route->explain(v, kernel, text);
    } else if (plan->v && step->is_inside) {
        const gemmepi__matmul_plan *v = gemmepi__current_plan(plan->v);
        gemmepi__append(text, "  the formula is inside the kernel:\n");
        v->route->explain(v, kernel, text);
    } else if (plan->v) {
        const gemmepi__matmul_plan *v = gemmepi__current_plan(plan->v);
        gemmepi__append(text, "  %s, into workspace in %s, by the route %s:\n",
                        plan->problem.formula->placed.formula->names +
                            plan->problem.formula->placed.formula->value_name,
                        gemmepi__dtype((gemmepi_dtype)plan->problem.accumulator)->name,
                        gemmepi__route_names[v->route->id]);
        v->route->explain(v, kernel, text);
    }
    gemmepi__explain_formula_pass(text, &step->pass, "");
}

/* >>rows beside those of gemmepi__routes: chosen by their plan's v */

static const gemmepi__route gemmepi__formula_routes[] = {
    {GEMMEPI_ROUTE_LT, NULL, NULL, NULL, gemmepi__formula_run_plan, NULL, NULL, gemmepi__formula_describe,
     gemmepi__formula_explain},
    {GEMMEPI_ROUTE_FUSED, NULL, NULL, NULL, gemmepi__formula_run_plan, NULL, NULL, gemmepi__formula_describe,
     gemmepi__formula_explain},
    {GEMMEPI_ROUTE_SPLIT, NULL, NULL, NULL, gemmepi__formula_run_plan, NULL, NULL, gemmepi__formula_describe,
     gemmepi__formula_explain},
    {GEMMEPI_ROUTE_PLAIN, NULL, NULL, NULL, gemmepi__formula_run_plan, NULL, NULL, gemmepi__formula_describe,
     gemmepi__formula_explain},
    {GEMMEPI_ROUTE_EMPTY, NULL, NULL, NULL, gemmepi__formula_run_plan, NULL, NULL, gemmepi__formula_describe,
     gemmepi__formula_explain},
};

static const gemmepi__route *gemmepi__formula_route_of(gemmepi_route id) {
    const gemmepi__route *row = gemmepi__formula_routes;
    while (row->id != id)
        row++;
    return row;
}

#endif
