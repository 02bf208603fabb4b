/* The routes of products, a row each. To add one: a file with the functions of a row, and its row here. */
#ifndef GEMMEPI_PRODUCT_ROUTES_ROUTES_H
#define GEMMEPI_PRODUCT_ROUTES_ROUTES_H

#ifndef GEMMEPI_NO_HOST
#include "../../host/product.h"
#endif
#include "../estimate.h"
#include "../parts/found_scale.h"
#include "plain.h"
#include "split.h"

/* Without a rule it takes every problem, without enumerate it is never chosen. There is nothing to destroy: kernels are the
   context's. */
typedef struct gpi__route {
    gemmepi_route id;
    /* Why it does not take a problem, or NULL. */
    const char *(*rule)(const gemmepi_context *context, const gpi__problem *problem);
    /* Adds its candidates, with estimates. The rule has been asked. */
    void (*enumerate)(const gpi__wanted *wanted, gpi__candidates *candidates);
    /* Builds the candidate as it is into plan->built, and says what workspace it needs. GEMMEPI_UNSUPPORTED, with the sentence,
       where it cannot. */
    gemmepi_status (*build)(gpi__matmul_plan *plan, const gpi__candidate *candidate);
    /* The primary context is current. GEMMEPI_UNSUPPORTED where nothing has run, and another route is to. */
    gemmepi_status (*run)(const gpi__matmul_plan *plan, const gpi__arguments *arguments, char *workspace,
                          gemmepi_stream stream);
    /* Why the plan is not for such a run, or NULL. Without it, it is for all. */
    const char *(*needs_other_plan)(const gpi__matmul_plan *plan, const gpi__arguments *arguments);
    /* Takes out of the candidates what cannot run in the plan's stead. Without it no other route is tried. */
    void (*give_up)(const gpi__matmul_plan *plan, gpi__candidates *candidates);
    /* The kernel's name, its tile, and the launches. */
    void (*describe)(const gpi__matmul_plan *plan, gemmepi_plan_details *details);
    /* In words; kernel: as describe has named it. */
    void (*explain)(const gpi__matmul_plan *plan, const char *kernel, gpi__text *text);
} gpi__route;

/* A plan, and room for what any route builds. */
typedef struct gpi__routed_plan {
    gpi__matmul_plan plan;
    union {
        gpi__lt_product lt;
        gpi__split split;
        gpi__plain plain;
        gpi__fused fused;
        gpi__sums empty;
    } built;
} gpi__routed_plan;

/* >>candidates of cuBLASLt, and of the kernel for all else */

/* Returns what cuBLASLt's sums of an operand take. */
static double gpi__lt_sum_microseconds(const gpi__problem *problem) {
    int operand = gpi__summed_operand(problem);
    double more = GPI__LT_SUM;
    if (operand < 0)
        return 0;
    if (gpi__unit_of(problem, &problem->views[GPI__A], 0) < 16 ||
        gpi__unit_of(problem, &problem->views[GPI__B], 0) < 16)
        more += GPI__LT_SUM_ODD * (double)problem->k;
    else if (problem->views[GPI__D].dtype != problem->views[operand].dtype)
        more += GPI__LT_SUM_F32 * (double)problem->k;
    return gpi__operand_sum_microseconds(problem) + more;
}

static double gpi__lt_microseconds(const gpi__wanted *wanted) {
    const gemmepi_context *context = wanted->context;
    double own = wanted->bare_microseconds + gpi__lt_epilogue_microseconds(wanted->problem) +
                 gpi__lt_sum_microseconds(wanted->problem);
    double all = gpi__with_memory(context, wanted->problem, own);
    gpi__lt_question question = gpi__lt_question_of(context, wanted->problem, GPI__LT_WHOLE);
    int waits = gpi__lt_known(&question, GPI__LT_ASKED_READS) &&
                gpi__waits_for_operands(context, wanted->problem, own);
    return waits ? GPI__LT_READS * all : all;
}

static void gpi__enumerate_lt(const gpi__wanted *wanted, gpi__candidates *candidates) {
    gpi__candidate *lt = gpi__add_candidate(candidates, GEMMEPI_ROUTE_LT);
    lt->otherwise = "its estimate is not less";
    if (wanted->bare_microseconds > 0)
        lt->microseconds = gpi__lt_microseconds(wanted);
    lt->rank = GPI__LT_MARGIN * lt->microseconds;
}

/* What it would find out by asking cuBLASLt, which takes long to load. */
static const char *gpi__split_rule(const gemmepi_context *context, const gpi__problem *problem) {
    (void)context;
    return problem->k && gpi__is_of_weights(problem) && gpi__scale_varies_along_k(problem, GPI__B)
               ? "scales that change along k are no factors of a converted product"
               : NULL;
}

/* A bare product and a pass; where sums of an operand are all that cuBLASLt leaves, these. */
static double gpi__split_microseconds(const gpi__wanted *wanted) {
    const gpi__problem *problem = wanted->problem;
    gpi__problem bare = gpi__bare_problem(problem), rest = gpi__without_sums(problem);
    if (gpi__summed_operand(problem) >= 0 && !gpi__lt_rule(wanted->context, &rest))
        return gpi__with_memory(wanted->context, &rest,
                                wanted->bare_microseconds + gpi__lt_epilogue_microseconds(&rest)) +
               gpi__sums_microseconds(problem);
    return gpi__with_memory(wanted->context, &bare, wanted->bare_microseconds) +
           gpi__pass_microseconds(wanted->context, problem, 1);
}

/* It goes after LT, whose row is above its own. */
static void gpi__enumerate_split(const gpi__wanted *wanted, gpi__candidates *candidates) {
    double before = gpi__least_of_routes(candidates, 1u << GEMMEPI_ROUTE_LT)->rank;
    gpi__candidate *split = gpi__add_candidate(candidates, GEMMEPI_ROUTE_SPLIT);
    split->otherwise = "it needs a pass more";
    if (wanted->bare_microseconds > 0)
        split->microseconds = gpi__split_microseconds(wanted);
    split->rank = split->microseconds;
    if (split->rank < before)
        split->rank = before;
}

/* Returns the microseconds of the kernel for all else, roughly: a multiprocessor multiplies for all its tiles at the rate of multiply-adds, with
   the epilogue of each behind it. */
static double gpi__plain_microseconds(const gemmepi_context *context, const gpi__problem *problem) {
    const gpi__chip *chip = gpi__chip_of(context->arch);
    const double area = GPI__PLAIN_TILE * GPI__PLAIN_TILE;
    double begin = GPI__PLAIN_LAUNCH;
    double each = (double)gpi__divide_up(problem->m, GPI__PLAIN_TILE) *
                  (double)gpi__divide_up(problem->n, GPI__PLAIN_TILE) * (double)problem->batch /
                  context->multiprocessors;
    double finish =
        GPI__PLAIN_BLOCK +
        area / 128 * (GPI__STORING + (gpi__plain_has_pass(problem) ? 0 : gpi__epilogue_cycles(problem)));
    if (each > 1) /* tiles wait for each other's lines */
        finish += gpi__epilogue_is_aligned(problem) ? 0 : GPI__PLAIN_ODD;
    else
        each = 1;
    if (problem->flags & GEMMEPI_ACCUMULATE)
        begin += GPI__PLAIN_C;
    return (begin + each * ((double)problem->k * area / chip->fma + finish)) / chip->megahertz +
           (gpi__plain_has_pass(problem) ? gpi__pass_microseconds(context, problem, 1)
                                         : gpi__sums_microseconds(problem));
}

/* Its time is compared where engines take the problem: of the others nobody knows what cuBLASLt takes, so it is the last resort. */
static void gpi__enumerate_plain(const gpi__wanted *wanted, gpi__candidates *candidates) {
    gpi__candidate *plain = gpi__add_candidate(candidates, GEMMEPI_ROUTE_PLAIN);
    plain->otherwise = wanted->problem->k ? "slower than the others" : "there is no product";
    plain->rank = GPI__NEVER;
    if (wanted->bare_microseconds > 0)
        plain->rank = plain->microseconds = gpi__with_memory(
            wanted->context, wanted->problem, gpi__plain_microseconds(wanted->context, wanted->problem));
}

/* >>where D has no element: of the product and its epilogue nothing is left but the sums of bias_grad */

static gemmepi_status gpi__empty_build(gpi__matmul_plan *plan, const gpi__candidate *candidate) {
    gpi__sums *sums = (gpi__sums *)plan->built;
    gemmepi_status status = gpi__build_sums(plan->base.context, &plan->problem, 0, sums);
    (void)candidate;
    plan->workspace_size = gpi__round_up(sums->bytes, 256);
    return status;
}

static gemmepi_status gpi__empty_run(const gpi__matmul_plan *plan, const gpi__arguments *arguments,
                                     char *workspace, gemmepi_stream stream) {
    return gpi__run_sums(plan->base.context, (const gpi__sums *)plan->built, arguments, workspace, stream);
}

static void gpi__empty_describe(const gpi__matmul_plan *plan, gemmepi_plan_details *details) {
    const gpi__sums *sums = (const gpi__sums *)plan->built;
    memcpy(details->kernel, gpi__name_of_sums(sums), sizeof details->kernel);
    details->launches = gpi__sums_launches(sums);
}

static void gpi__empty_explain(const gpi__matmul_plan *plan, const char *kernel, gpi__text *text) {
    (void)kernel;
    gpi__append(text, "  m or n is 0: %s\n",
                gpi__writes_nothing(&plan->problem) ? "nothing runs, nothing is written"
                                                    : "only the sums of bias_grad are written");
}

/* >>the host, whose runs are run.h's */

static void gpi__host_describe(const gpi__matmul_plan *plan, gemmepi_plan_details *details) {
    snprintf(details->kernel, sizeof details->kernel, "gpi__host_%s",
             plan->problem.formula ? "formula" : "product");
#ifndef GEMMEPI_NO_HOST
    details->tile_m = details->tile_n = GPI__HOST_TILE;
#endif
}

static void gpi__host_explain(const gpi__matmul_plan *plan, const char *kernel, gpi__text *text) {
    (void)plan;
    (void)kernel;
    gpi__append(text, "  plain C, accumulated in F64\n"
                      "  not fused, not lt, not split, not plain: the context runs on the host\n");
}

/* >>the table */

/* In the order in which candidates are listed: of two of one rank the first is taken. */
static const gpi__route gpi__routes[] = {
    {GEMMEPI_ROUTE_LT, gpi__lt_rule, gpi__enumerate_lt, gpi__lt_route_build, gpi__lt_route_run,
     gpi__lt_route_needs_other_plan, gpi__lt_route_give_up, gpi__lt_route_describe, gpi__lt_route_explain},
    {GEMMEPI_ROUTE_SPLIT, gpi__split_rule, gpi__enumerate_split, gpi__split_build, gpi__split_run,
     gpi__split_needs_other_plan, gpi__split_give_up, gpi__split_describe, gpi__split_explain},
    {GEMMEPI_ROUTE_FUSED, gpi__fused_rule, gpi__enumerate_fused, gpi__fused_build, gpi__fused_run, NULL,
     gpi__fused_give_up, gpi__fused_describe, gpi__fused_explain},
    {GEMMEPI_ROUTE_PLAIN, NULL, gpi__enumerate_plain, gpi__plain_build, gpi__plain_run, NULL, NULL,
     gpi__plain_describe, gpi__plain_explain},
    {GEMMEPI_ROUTE_EMPTY, NULL, NULL, gpi__empty_build, gpi__empty_run, NULL, NULL, gpi__empty_describe,
     gpi__empty_explain},
    {GEMMEPI_ROUTE_HOST, NULL, NULL, NULL, NULL, NULL, NULL, gpi__host_describe, gpi__host_explain},
};

static const gpi__route *gpi__route_of(gemmepi_route id) {
    const gpi__route *row = gpi__routes;
    while (row->id != id)
        row++;
    return row;
}

#endif
