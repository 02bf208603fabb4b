/* What is launched around a plan's product on a GPU, from outside in:

       a formula over what is stored as A, or as B, into workspace, ahead of all else
       a launch that finds D's scales (parts/found_scale.h), behind the product, or ahead of it where earlier runs tell the scale
       a formula over v = alpha A B + beta C (elementwise/formula_pass.h), where the product's own epilogue (parts/composed.h) or kernel
       (parts/inside.h) is not the formula

   The plan's problem is then what is left for a route: the epilogue that the formula says, the product with the formula inside its
   kernel, or alpha A B in workspace. */
#ifndef GEMMEPI_PRODUCT_AROUND_H
#define GEMMEPI_PRODUCT_AROUND_H

#include "choose.h"
#include "parts/found_scale.h"
#include "../elementwise/formula_pass.h"
#include "parts/composed.h"

typedef struct gpi__around {
    gpi__problem problem; /* the caller's */
    gpi__problem inside;  /* of made operands, with D as the launch that finds its scales wants it */
    int lacks_product;    /* the formula reads no v, or there is none */
    int finds;
    gpi__found_step found;
    gpi__formula_step formula; /* of inside.formula, if it has one */
    gpi__formula_pass made[2]; /* that make A and B of what is stored; used_count 0: none does */
} gpi__around;

/* What the plan was made for. */
static const gpi__problem *gpi__asked(const gpi__matmul_plan *plan) {
    return plan->around ? &plan->around->problem : &plan->problem;
}

/* >>operands that are made */

static gpi__formula_matrix gpi__formula_matrix_of(const gpi__problem *problem, int operand) {
    const gpi__view *view = &problem->views[operand];
    gpi__formula_matrix matrix;
    matrix.dtype = view->dtype;
    matrix.scale = view->scale;
    matrix.ld = view->ld;
    matrix.batch_stride = view->batch_stride;
    matrix.scale_stride = problem->views[GPI__SCALE_OF(operand)].batch_stride;
    return matrix;
}

/* What is stored as v of the operand's formula. */
static gpi__formula_source gpi__stored_as_source(const gpi__problem *problem, int i) {
    gpi__formula_source source;
    memset(&source, 0, sizeof source);
    source.matrices[0] = gpi__formula_matrix_of(problem, i);
    source.alignment = problem->alignment;
    if (problem->made[i].scale.dtype) {
        source.found = problem->made[i].view.dtype;
        source.found_mode = problem->made[i].view.scale;
        source.found_stride = problem->made[i].scale.batch_stride;
        source.found_power = (problem->flags & GEMMEPI_POWER_OF_TWO_SCALE) != 0;
    }
    return source;
}

/* Builds the passes that make operands, of those that have elements and are read. Under the build lock. */
static gemmepi_status gpi__build_made(gemmepi_context *context, gpi__around *around) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = GPI__A; i <= GPI__B && !status && gpi__reads_operands(&around->problem); i++) {
        const gpi__made *made = &around->problem.made[i];
        gpi__formula_source source = gpi__stored_as_source(&around->problem, i);
        if (made->formula && !around->inside.made[i].formula && made->view.bytes)
            status = gpi__build_formula_pass(context, &made->formula->placed, &source, &around->made[i]);
    }
    return status;
}

/* The product as a kernel has it that makes B on the way to it, or multiplies both as they are stored, by their scales. */
static gpi__problem gpi__problem_in_registers(const gemmepi_context *context, const gpi__problem *problem) {
    gpi__problem own = *problem;
    if (!gpi__is_scaled_product(problem) || gpi__scaled_rule(context, problem))
        gpi__replace_made(&own, GPI__A);
    return own;
}

static double gpi__least_rank(const gemmepi_context *context, const gpi__problem *problem) {
    gpi__problem product =
        problem->formula || gpi__finds_around(problem) ? gpi__bare_problem(problem) : *problem;
    gpi__candidates candidates;
    const gpi__candidate *least;
    gpi__list_operands(&product);
    memset(&candidates, 0, sizeof candidates);
    gpi__enumerate(context, &product, gpi__may_have_unit_alpha(&product), &candidates);
    least = gpi__least(&candidates);
    return least ? least->rank : GPI__NEVER;
}

/* Whether a kernel that reads what is stored takes less than passes and a product of what these make, by estimate. */
static int gpi__is_better_in_registers(const gemmepi_context *context, const gpi__problem *problem) {
    gpi__problem inside = gpi__problem_in_registers(context, problem), passed = gpi__problem_of_made(problem);
    double rank, passes = 0;
    int i;
    if (!GPI__FORMULA(&inside.made[GPI__B]) || gpi__is_empty(problem) ||
        !(gpi__is_of_weights(&inside) || gpi__is_scaled_product(&inside)))
        return 0;
    for (i = GPI__A; i <= GPI__B; i++) {
        gpi__formula_source source = gpi__stored_as_source(problem, i);
        if (inside.made[i].formula)
            passes += gpi__formula_pass_microseconds(context, &inside.made[i].formula->placed, &source);
    }
    rank = gpi__least_rank(context, &inside);
    return rank < GPI__NEVER && rank < gpi__least_rank(context, &passed) + passes;
}

/* What is made, the scales that are found of it, and the amax that these are made of. */
typedef struct gpi__made_sizes {
    size_t made, scale, amax;
} gpi__made_sizes;

static gpi__made_sizes gpi__sizes_of_made(const gpi__around *around, int i) {
    gpi__made_sizes sizes = {0, 0, 0};
    if (!around->made[i].used_count)
        return sizes;
    sizes.made = gpi__round_up((size_t)around->problem.made[i].view.bytes, 256);
    sizes.scale = gpi__round_up((size_t)around->problem.made[i].scale.bytes, 256);
    sizes.amax = gpi__round_up(around->made[i].finder_bytes, 256);
    return sizes;
}

static size_t gpi__bytes_of_made(const gpi__around *around, int i) {
    gpi__made_sizes sizes = gpi__sizes_of_made(around, i);
    return sizes.made + sizes.scale + sizes.amax;
}

/* >>the product that makes v */

static int64_t gpi__bytes_of_product(const gpi__problem *v) {
    const gpi__view *view = &v->views[GPI__D];
    int64_t elements = gpi__offset(v->batch, view->batch_stride, 0);
    return elements < 0 ? -1 : elements * (view->bits / 8);
}

/* The product that is v but for C. */
static gpi__problem gpi__problem_of_v(const gpi__problem *problem) {
    gpi__problem v = gpi__bare_problem(problem);
    v.views[GPI__D].written = 1;
    v.views[GPI__D].transposed = 0;
    v.views[GPI__D].bytes = gpi__bytes_of_product(&v);
    v.views[GPI__C] = v.views[GPI__D]; /* as where none is described; no run has one */
    v.views[GPI__C].written = 0;
    v.flags |= GPI__MAKES_V;
    v.formula = NULL;
    gpi__list_operands(&v);
    return v;
}

static gpi__formula_source gpi__v_as_source(const gpi__problem *problem, const gpi__problem *v) {
    gpi__formula_source source;
    memset(&source, 0, sizeof source);
    source.invariant = gpi__is_invariant(problem);
    source.alignment = problem->alignment;
    if (!problem->formula->placed.formula->reads_value)
        return source;
    source.matrices[0] = gpi__formula_matrix_of(v, GPI__D);
    source.matrices[1] = gpi__formula_matrix_of(problem, GPI__C);
    return source;
}

static int gpi__wants_v(const gpi__problem *problem) {
    return problem->formula->placed.formula->reads_value && !gpi__is_empty(problem);
}

static gemmepi_status gpi__check_size_of_v(const gpi__problem *v) {
    int64_t bytes = v->views[GPI__D].bytes;
    GPI__UNSUPPORTED_IF(bytes < 0 || (int64_t)(size_t)bytes != bytes, "the product does not fit into memory");
    return GEMMEPI_OK;
}

/* Whether a kernel with the formula inside is estimated to take less than v and the pass. With BATCH_INVARIANT m may not tell: it is
   inside wherever the route fused has it. */
static int gpi__is_better_inside(const gemmepi_context *context, const gpi__problem *inside,
                                 const gpi__problem *v, double pass) {
    gpi__candidates candidates;
    const gpi__candidate *least;
    double rank;
    memset(&candidates, 0, sizeof candidates);
    gpi__enumerate(context, inside, gpi__may_have_unit_alpha(inside), &candidates);
    least = gpi__least(&candidates);
    if (!least || least->rank >= GPI__NEVER)
        return 0;
    if (gpi__is_invariant(inside))
        return least->route == GEMMEPI_ROUTE_FUSED;
    rank = least->rank + (gpi__reduces_inside(inside) ? GPI__ANOTHER_LAUNCH : 0);
    gpi__enumerate(context, v, gpi__may_have_unit_alpha(v), &candidates);
    least = gpi__least(&candidates);
    return !least || rank < least->rank + pass;
}

/* Why the formula is not to be inside a kernel, or NULL. */
static const char *gpi__why_not_inside(const gemmepi_context *context, const gpi__problem *problem,
                                       const gpi__problem *v) {
    gpi__formula_source source = gpi__v_as_source(problem, v);
    const char *reason = gpi__not_inside(problem);
    gpi__problem inside;
    if (reason)
        return reason;
    source.matrices[1].dtype = 0; /* most runs have no C */
    inside = gpi__problem_inside(problem);
    if (gpi__is_better_inside(context, &inside, v,
                              gpi__formula_pass_microseconds(context, &problem->formula->placed, &source)))
        return NULL;
    return gpi__half_group(&inside)
               ? "halves of groups are inside only the kernel for Hopper; v and a pass over it take less by "
                 "estimate, or none is known"
               : "v and a pass over it take less by estimate, or none is known";
}

/* Builds the pass over v, whose problem this is. */
static gemmepi_status gpi__build_behind_v(gpi__matmul_plan *plan, const gpi__problem *v) {
    gemmepi_context *context = plan->base.context;
    const gpi__problem *problem = &plan->around->inside;
    gpi__formula_step *step = &plan->around->formula;
    gpi__formula_source source = gpi__v_as_source(problem, v);
    gpi__entry entry;
    gemmepi_status status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gpi__lock(&context->build_lock);
    step->product_bytes = plan->around->lacks_product ? 0 : (size_t)v->views[GPI__D].bytes;
    status = gpi__build_formula_pass(context, &problem->formula->placed, &source, &step->pass);
    gpi__unlock(&context->build_lock);
    gpi__leave_relaxed(context, &entry);
    return status;
}

/* >>workspace: operands that are made, what the launch that finds scales has of it, v, states of the pass, then the product's own */

static size_t gpi__bytes_around(const gpi__around *around) {
    size_t bytes = gpi__round_up(around->found.bytes, 256);
    bytes += gpi__bytes_of_made(around, GPI__A) + gpi__bytes_of_made(around, GPI__B);
    bytes += gpi__round_up(around->formula.product_bytes, 256) +
             gpi__round_up(around->formula.pass.state_bytes, 256);
    return bytes;
}

/* As the plan was built. */
static size_t gpi__workspace_of(const gpi__matmul_plan *plan) {
    return plan->workspace_size + (plan->around ? gpi__bytes_around(plan->around) : 0);
}

#endif
