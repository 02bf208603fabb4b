/* The candidates that a product's plan is chosen from. cuBLASLt is not asked: to load it takes longer than to build a plan. */
#ifndef GEMMEPI_PRODUCT_CHOOSE_H
#define GEMMEPI_PRODUCT_CHOOSE_H

#include "routes/routes.h"

/* Does not compile where the list is too short for all routes and engines. */
typedef char gemmepi__candidates_fit[GEMMEPI__COUNT(gemmepi__routes) + 3 * GEMMEPI__COUNT(gemmepi__engines) <=
                                             GEMMEPI__MOST_CANDIDATES
                                         ? 1
                                         : -1];

/* The routes that may be chosen, in the order in which a user is told of them. */
static const gemmepi_route gemmepi__told_routes[] = {GEMMEPI_ROUTE_FUSED, GEMMEPI_ROUTE_LT,
                                                     GEMMEPI_ROUTE_SPLIT, GEMMEPI_ROUTE_PLAIN};

/* Why config.routes or the rule keeps the problem from a route, or NULL. */
static const char *gemmepi__route_rule(const gemmepi__wanted *wanted, const gemmepi__route *row) {
    if (wanted->context->routes && !(wanted->context->routes >> row->id & 1))
        return "config.routes leaves it out";
    return row->rule ? row->rule(wanted->context, wanted->problem) : NULL;
}

/* All ways to run the problem, and why others cannot. applied: runs alone whose alpha is 1 and which have no C. */
static void gemmepi__enumerate(const gemmepi_context *context, const gemmepi__problem *problem, int applied,
                               gemmepi__candidates *candidates) {
    gemmepi__wanted wanted;
    size_t i;
    wanted.context = context;
    wanted.problem = problem;
    wanted.applied = applied;
    wanted.bare_microseconds =
        gemmepi__engines_rule(context, problem) ? 0 : gemmepi__bare_microseconds(context, problem);
    candidates->count = 0;
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__routes); i++) {
        const gemmepi__route *row = &gemmepi__routes[i];
        const char *refusal = row->enumerate ? gemmepi__route_rule(&wanted, row) : NULL;
        if (refusal)
            gemmepi__add_candidate(candidates, row->id)->refusal = refusal;
        else if (row->enumerate)
            row->enumerate(&wanted, candidates);
    }
}

#endif
