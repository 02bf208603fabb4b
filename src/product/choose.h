/* The candidates that a product's plan is chosen from. cuBLASLt is not asked: to load it takes longer than to build a plan. */
#ifndef GEMMEPI_PRODUCT_CHOOSE_H
#define GEMMEPI_PRODUCT_CHOOSE_H

#include "estimate.h"
#include "routes/plain.h"
#include "routes/split.h"

/* Does not compile where the list is too short for all engines. */
typedef char
    gemmepi__candidates_fit[3 + 3 * GEMMEPI__COUNT(gemmepi__engines) <= GEMMEPI__MOST_CANDIDATES ? 1 : -1];

static int gemmepi__is_left_out(const gemmepi_context *context, gemmepi_route route) {
    return context->routes && !(context->routes >> route & 1);
}

/* A candidate of the route, refused where config.routes or the rule says so. */
static gemmepi__candidate *gemmepi__add_route(const gemmepi_context *context, gemmepi_route route,
                                              const char *rule, gemmepi__candidates *candidates) {
    gemmepi__candidate *added = gemmepi__add_candidate(candidates, route);
    added->engine = GEMMEPI__ANY_ENGINE;
    added->refusal = gemmepi__is_left_out(context, route) ? "config.routes leaves it out" : rule;
    return added;
}

/* cuBLASLt with its own epilogue goes before FUSED where less than a hundredth is to be gained, for it has nothing to compile, and
   always before SPLIT. */
static void gemmepi__enumerate_cublaslt(const gemmepi_context *context, const gemmepi__problem *problem,
                                        int is_known, gemmepi__candidates *candidates) {
    gemmepi__candidate *lt =
        gemmepi__add_route(context, GEMMEPI_ROUTE_LT, gemmepi__lt_rule(problem), candidates);
    gemmepi__candidate *split = gemmepi__add_route(context, GEMMEPI_ROUTE_SPLIT, NULL, candidates);
    double bare = is_known ? gemmepi__bare_microseconds(context, problem) : 0;
    if (is_known && !lt->refusal)
        lt->microseconds =
            bare + gemmepi__lt_epilogue_microseconds(problem) + gemmepi__operand_sum_microseconds(problem);
    if (is_known && !split->refusal)
        split->microseconds = bare + gemmepi__pass_microseconds(problem, 1);
    lt->rank = 0.99 * lt->microseconds;
    split->rank = split->microseconds < lt->rank ? lt->rank : split->microseconds;
}

/* All ways to run the problem, and why others cannot. applied: of FUSED, for runs alone whose alpha is 1 and which have no C. */
static void gemmepi__enumerate(const gemmepi_context *context, const gemmepi__problem *problem, int applied,
                               gemmepi__candidates *candidates) {
    const char *rule = gemmepi__fused_rule(context, problem);
    candidates->count = 0;
    gemmepi__enumerate_cublaslt(context, problem, !gemmepi__engines_rule(context, problem), candidates);
    if (rule || gemmepi__is_left_out(context, GEMMEPI_ROUTE_FUSED))
        gemmepi__add_route(context, GEMMEPI_ROUTE_FUSED, rule, candidates);
    else
        gemmepi__enumerate_fused(context, problem, applied, candidates);
    gemmepi__add_route(context, GEMMEPI_ROUTE_PLAIN, NULL, candidates)->rank = GEMMEPI__NEVER;
}

#endif
