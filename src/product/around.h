/* What is launched around a plan's product on a GPU, from outside in:

       a launch that finds D's scales (parts/found_scale.h), behind the product, or ahead of it where earlier runs tell the scale
       a formula over v = alpha A B + beta C (elementwise/formula_pass.h), where the product's own epilogue (parts/composed.h) or kernel
       (parts/inside.h) is not the formula

   The plan's problem is then what is left for a route: the epilogue that the formula says, the product with the formula inside its
   kernel, or alpha A B in workspace. */
#ifndef GEMMEPI_PRODUCT_AROUND_H
#define GEMMEPI_PRODUCT_AROUND_H

#include "choose.h"
#include "parts/found_scale.h"
#ifndef GEMMEPI_NO_FORMULA
#include "../elementwise/formula_pass.h"
#include "parts/composed.h"
#endif

typedef struct gemmepi__around {
    gemmepi__problem problem; /* the caller's */
    gemmepi__problem
        inside; /* with D as the launch that finds its scales wants it; the caller's where there is none */
    int lacks_product; /* the formula reads no v, or there is none */
    int finds;
    gemmepi__found_step found;
#ifndef GEMMEPI_NO_FORMULA
    gemmepi__formula_step formula; /* of inside.formula, if it has one */
#endif
} gemmepi__around;

/* What the plan was made for. */
static const gemmepi__problem *gemmepi__asked(const gemmepi__matmul_plan *plan) {
    return plan->around ? &plan->around->problem : &plan->problem;
}

#ifndef GEMMEPI_NO_FORMULA
/* >>the product that makes v */

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

/* Builds what is launched behind the product: the end of reductions that are inside its kernel, or the pass over v, whose problem this
   is. */
static gemmepi_status gemmepi__build_behind_v(gemmepi__matmul_plan *plan, const gemmepi__problem *v) {
    gemmepi_context *context = plan->base.context;
    const gemmepi__problem *problem = &plan->around->inside;
    gemmepi__formula_step *step = &plan->around->formula;
    gemmepi__formula_source source = gemmepi__v_as_source(problem, v);
    gemmepi__entry entry;
    gemmepi_status status = gemmepi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gemmepi__lock(&context->build_lock);
    if (step->is_inside) {
        status = gemmepi__build_reductions(context, &problem->formula->placed, &source,
                                           (unsigned)gemmepi__states_of_row(&plan->problem), &step->pass);
    } else {
        step->product_bytes = plan->around->lacks_product ? 0 : (size_t)v->views[GEMMEPI__D].bytes;
        status = gemmepi__build_formula_pass(context, &problem->formula->placed, &source, &step->pass);
    }
    gemmepi__unlock(&context->build_lock);
    gemmepi__leave_relaxed(context, &entry);
    return status;
}
#endif

/* >>workspace: what the launch that finds scales has of it, v, states of reductions, then the product's own */

static size_t gemmepi__bytes_around(const gemmepi__around *around) {
    size_t bytes = gemmepi__round_up(around->found.bytes, 256);
#ifndef GEMMEPI_NO_FORMULA
    bytes += gemmepi__round_up(around->formula.product_bytes, 256) +
             gemmepi__round_up(around->formula.pass.state_bytes, 256);
#endif
    return bytes;
}

/* As the plan was built. */
static size_t gemmepi__workspace_of(const gemmepi__matmul_plan *plan) {
    return plan->workspace_size + (plan->around ? gemmepi__bytes_around(plan->around) : 0);
}

#endif
