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
typedef struct gemmepi__route {
    gemmepi_route id;
    /* Why it does not take a problem, or NULL. */
    const char *(*rule)(const gemmepi_context *context, const gemmepi__problem *problem);
    /* Adds its candidates, with estimates. The rule has been asked. */
    void (*enumerate)(const gemmepi__wanted *wanted, gemmepi__candidates *candidates);
    /* Builds the candidate as it is into plan->built, and says what workspace it needs. GEMMEPI_UNSUPPORTED, with the sentence,
       where it cannot. */
    gemmepi_status (*build)(gemmepi__matmul_plan *plan, const gemmepi__candidate *candidate);
    /* The primary context is current. GEMMEPI_UNSUPPORTED where nothing has run, and another route is to. */
    gemmepi_status (*run)(const gemmepi__matmul_plan *plan, const gemmepi__arguments *arguments,
                          char *workspace, gemmepi_stream stream);
    /* Why the plan is not for such a run, or NULL. Without it, it is for all. */
    const char *(*not_for)(const gemmepi__matmul_plan *plan, const gemmepi__arguments *arguments);
    /* Takes out of the candidates what cannot run in the plan's stead. Without it no other route is tried. */
    void (*give_up)(const gemmepi__matmul_plan *plan, gemmepi__candidates *candidates);
    /* The kernel's name, its tile, and the launches. */
    void (*describe)(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details);
    /* In words; kernel: as describe has named it. */
    void (*explain)(const gemmepi__matmul_plan *plan, const char *kernel, gemmepi__text *text);
} gemmepi__route;

/* A plan, and room for what any route builds. */
typedef struct gemmepi__routed_plan {
    gemmepi__matmul_plan plan;
    union {
        gemmepi__lt_product lt;
        gemmepi__split split;
        gemmepi__plain plain;
        gemmepi__fused fused;
        gemmepi__sums empty;
    } built;
} gemmepi__routed_plan;

/* >>candidates of cuBLASLt, and of the kernel for all else */

/* What cuBLASLt's sums of an operand take beside those of an aligned one in D's own type: each step of k, on an H100, 0.07 where D is in
   F32 and 0.4 where lines begin anywhere, and 3.5 at least. */
static double gemmepi__lt_sum_microseconds(const gemmepi__problem *problem) {
    int operand = gemmepi__has(problem, GEMMEPI_BGRAD_A) ? GEMMEPI__A : GEMMEPI__B;
    double more = 3.5;
    if (!gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B))
        return 0;
    if (gemmepi__unit_of(problem, &problem->views[GEMMEPI__A], 0) < 16 ||
        gemmepi__unit_of(problem, &problem->views[GEMMEPI__B], 0) < 16)
        more += 0.4 * (double)problem->k;
    else if (problem->views[GEMMEPI__D].dtype != problem->views[operand].dtype)
        more += 0.07 * (double)problem->k;
    return gemmepi__operand_sum_microseconds(problem) + more;
}

/* Where products wait for A and B, cuBLASLt takes so much longer than the kernel for Hopper: 158 and 167 us against 154 for heads of
   attention (192 of 64 x 1024 x 1024), 20.5 against 19.0 for a row by weights of 6144 x 4096; in CUDA graphs and on a stream, on an
   H100. */
#define GEMMEPI__LT_READS 1.05

static double gemmepi__lt_microseconds(const gemmepi__wanted *wanted) {
    const gemmepi_context *context = wanted->context;
    double own = wanted->bare_microseconds + gemmepi__lt_epilogue_microseconds(wanted->problem) +
                 gemmepi__lt_sum_microseconds(wanted->problem);
    double all = gemmepi__with_memory(context, wanted->problem, own);
    int waits = gemmepi__chip_has(context->arch, GEMMEPI__HOPPER) &&
                gemmepi__waits_for_operands(context, wanted->problem, own);
    return waits ? GEMMEPI__LT_READS * all : all;
}

/* It goes before FUSED where less than a hundredth is to be gained, for it has nothing to compile. */
static void gemmepi__enumerate_lt(const gemmepi__wanted *wanted, gemmepi__candidates *candidates) {
    gemmepi__candidate *lt = gemmepi__add_candidate(candidates, GEMMEPI_ROUTE_LT);
    lt->otherwise = "its estimate is not less";
    if (wanted->bare_microseconds > 0)
        lt->microseconds = gemmepi__lt_microseconds(wanted);
    lt->rank = 0.99 * lt->microseconds;
}

/* What it would find out by asking cuBLASLt, which takes long to load. */
static const char *gemmepi__split_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
    (void)context;
    return problem->k && gemmepi__is_of_weights(problem) && gemmepi__scale_varies_along_k(problem, GEMMEPI__B)
               ? "scales that change along k cannot be taken out of a converted product"
               : NULL;
}

/* A bare product and a pass; where sums of an operand are all that cuBLASLt leaves, these. */
static double gemmepi__split_microseconds(const gemmepi__wanted *wanted) {
    const gemmepi__problem *problem = wanted->problem;
    gemmepi__problem bare = gemmepi__bare_problem(problem), rest = gemmepi__without_sums(problem);
    if (gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) && !gemmepi__lt_rule(wanted->context, &rest))
        return gemmepi__with_memory(wanted->context, &rest,
                                    wanted->bare_microseconds + gemmepi__lt_epilogue_microseconds(&rest)) +
               gemmepi__sums_microseconds(problem);
    return gemmepi__with_memory(wanted->context, &bare, wanted->bare_microseconds) +
           gemmepi__pass_microseconds(wanted->context, problem, 1);
}

/* It goes after LT, whose row is above its own. */
static void gemmepi__enumerate_split(const gemmepi__wanted *wanted, gemmepi__candidates *candidates) {
    double before = gemmepi__least_of_route(candidates, GEMMEPI_ROUTE_LT)->rank;
    gemmepi__candidate *split = gemmepi__add_candidate(candidates, GEMMEPI_ROUTE_SPLIT);
    split->otherwise = "it takes a pass more";
    if (wanted->bare_microseconds > 0)
        split->microseconds = gemmepi__split_microseconds(wanted);
    split->rank = split->microseconds;
    if (split->rank < before)
        split->rank = before;
}

/* Microseconds of the kernel for all else, roughly: a multiprocessor multiplies for all its tiles at the rate of multiply-adds, with
   the epilogue of each behind it. Of 48 random products in CUDA graphs on an H100 it was off by a quarter in the mean. */
static double gemmepi__plain_microseconds(const gemmepi_context *context, const gemmepi__problem *problem) {
    const gemmepi__chip *chip = gemmepi__chip_of(context->arch);
    const double area = GEMMEPI__PLAIN_TILE * GEMMEPI__PLAIN_TILE;
    double begin = 2900;
    double each = (double)gemmepi__divide_up(problem->m, GEMMEPI__PLAIN_TILE) *
                  (double)gemmepi__divide_up(problem->n, GEMMEPI__PLAIN_TILE) * (double)problem->batch /
                  context->multiprocessors;
    double finish = 700 + area / 128 *
                              (GEMMEPI__STORING_CYCLES +
                               (gemmepi__plain_has_pass(problem) ? 0 : gemmepi__epilogue_cycles(problem)));
    if (each > 1) /* tiles wait for each other's lines */
        finish += gemmepi__epilogue_is_aligned(problem) ? 250 : 2200;
    else
        each = 1;
    if (problem->flags & GEMMEPI_ACCUMULATE)
        begin += 1400; /* it waits for what D holds */
    return (begin + each * ((double)problem->k * area / chip->fma + finish)) / chip->megahertz +
           (gemmepi__plain_has_pass(problem) ? gemmepi__pass_microseconds(context, problem, 1)
                                             : gemmepi__sums_microseconds(problem));
}

/* Its time is compared where engines take the problem: of the others nobody knows what cuBLASLt takes, so it is the last resort. */
static void gemmepi__enumerate_plain(const gemmepi__wanted *wanted, gemmepi__candidates *candidates) {
    gemmepi__candidate *plain = gemmepi__add_candidate(candidates, GEMMEPI_ROUTE_PLAIN);
    plain->otherwise = wanted->problem->k ? "slower than the others" : "there is no product";
    plain->rank = GEMMEPI__NEVER;
    if (wanted->bare_microseconds > 0)
        plain->rank = plain->microseconds = gemmepi__with_memory(
            wanted->context, wanted->problem, gemmepi__plain_microseconds(wanted->context, wanted->problem));
}

/* >>where D has no element: of the product and its epilogue nothing is left but the sums of bias_grad */

static gemmepi_status gemmepi__empty_build(gemmepi__matmul_plan *plan, const gemmepi__candidate *candidate) {
    gemmepi__sums *sums = (gemmepi__sums *)plan->built;
    gemmepi_status status = gemmepi__build_sums(plan->base.context, &plan->problem, 0, sums);
    (void)candidate;
    plan->workspace_size = gemmepi__round_up(sums->partial_bytes, 256);
    return status;
}

static gemmepi_status gemmepi__empty_run(const gemmepi__matmul_plan *plan,
                                         const gemmepi__arguments *arguments, char *workspace,
                                         gemmepi_stream stream) {
    return gemmepi__run_sums(plan->base.context, (const gemmepi__sums *)plan->built, arguments, workspace,
                             workspace, stream);
}

static void gemmepi__empty_describe(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
    const gemmepi__sums *sums = (const gemmepi__sums *)plan->built;
    memcpy(details->kernel, sums->first.name, sizeof details->kernel);
    details->launches = gemmepi__sums_launches(sums);
}

static void gemmepi__empty_explain(const gemmepi__matmul_plan *plan, const char *kernel,
                                   gemmepi__text *text) {
    (void)kernel;
    gemmepi__append(text, "  m or n is 0: %s\n",
                    gemmepi__writes_nothing(&plan->problem) ? "nothing runs, nothing is written"
                                                            : "only the sums of bias_grad are written");
}

/* >>the host, whose runs are run.h's */

static void gemmepi__host_describe(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
    snprintf(details->kernel, sizeof details->kernel, "gemmepi__host_%s",
             plan->problem.formula ? "formula" : "product");
#ifndef GEMMEPI_NO_HOST
    details->tile_m = details->tile_n = GEMMEPI__HOST_TILE;
#endif
}

static void gemmepi__host_explain(const gemmepi__matmul_plan *plan, const char *kernel, gemmepi__text *text) {
    (void)plan;
    (void)kernel;
    gemmepi__append(text, "  plain C, accumulated in F64\n"
                          "  not fused, not lt, not split, not plain: the context runs on the host\n");
}

/* >>the table */

/* In the order in which candidates are listed: of two of one rank the first is taken. */
static const gemmepi__route gemmepi__routes[] = {
    {GEMMEPI_ROUTE_LT, gemmepi__lt_rule, gemmepi__enumerate_lt, gemmepi__lt_route_build,
     gemmepi__lt_route_run, gemmepi__lt_route_not_for, gemmepi__lt_route_give_up, gemmepi__lt_route_describe,
     gemmepi__lt_route_explain},
    {GEMMEPI_ROUTE_SPLIT, gemmepi__split_rule, gemmepi__enumerate_split, gemmepi__split_build,
     gemmepi__split_run, gemmepi__split_not_for, gemmepi__split_give_up, gemmepi__split_describe,
     gemmepi__split_explain},
    {GEMMEPI_ROUTE_FUSED, gemmepi__fused_rule, gemmepi__enumerate_fused, gemmepi__fused_build,
     gemmepi__fused_run, NULL, gemmepi__fused_give_up, gemmepi__fused_describe, gemmepi__fused_explain},
    {GEMMEPI_ROUTE_PLAIN, NULL, gemmepi__enumerate_plain, gemmepi__plain_build, gemmepi__plain_run, NULL,
     NULL, gemmepi__plain_describe, gemmepi__plain_explain},
    {GEMMEPI_ROUTE_EMPTY, NULL, NULL, gemmepi__empty_build, gemmepi__empty_run, NULL, NULL,
     gemmepi__empty_describe, gemmepi__empty_explain},
    {GEMMEPI_ROUTE_HOST, NULL, NULL, NULL, NULL, NULL, NULL, gemmepi__host_describe, gemmepi__host_explain},
};

static const gemmepi__route *gemmepi__route_of(gemmepi_route id) {
    const gemmepi__route *row = gemmepi__routes;
    while (row->id != id)
        row++;
    return row;
}

#endif
