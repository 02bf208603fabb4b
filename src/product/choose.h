/* The candidates that a product's plan is chosen from. cuBLASLt is not asked: to load it takes longer than to build a plan. */
#ifndef GEMMEPI_PRODUCT_CHOOSE_H
#define GEMMEPI_PRODUCT_CHOOSE_H

#include "routes/routes.h"

/* Does not compile where the list is too short for all routes and engines. */
typedef char
    gpi__candidates_fit[GPI__COUNT(gpi__routes) + 3 * GPI__COUNT(gpi__engines) <= GPI__MOST_CANDIDATES ? 1
                                                                                                       : -1];

/* The routes that may be chosen, in the order in which a user is told of them. */
static const gemmepi_route gpi__told_routes[] = {GEMMEPI_ROUTE_FUSED, GEMMEPI_ROUTE_LT, GEMMEPI_ROUTE_SPLIT,
                                                 GEMMEPI_ROUTE_PLAIN};

/* With BATCH_INVARIANT: why the route would not give a row the same bits at all m, or NULL. The route fused takes what its kernels take,
   and the route plain, whose kernel has one shape, all else: the extent of m does not tell. */
static const char *gpi__route_varies(const gpi__wanted *wanted, gemmepi_route route) {
    gpi__problem of_one_row;
    if (!gpi__is_invariant(wanted->problem) || route == GEMMEPI_ROUTE_FUSED)
        return NULL;
    if (route != GEMMEPI_ROUTE_PLAIN)
        return "BATCH_INVARIANT: cuBLASLt's algorithm, and with it the bits of a row, depends on m";
    of_one_row = *wanted->problem;
    of_one_row.m = 1;
    return gpi__fused_rule(wanted->context, &of_one_row)
               ? NULL
               : "BATCH_INVARIANT: the route fused runs such a product at any m";
}

/* The routes that config.routes leaves to a problem. What makes v for a formula is a part of the route SPLIT, as cuBLASLt's product is,
   or PLAIN. */
static unsigned gpi__routes_left(const gpi__wanted *wanted) {
    unsigned routes = wanted->context->routes, split = 1u << GEMMEPI_ROUTE_SPLIT;
    if (!routes)
        return ~0u;
    if (!(wanted->problem->flags & GPI__MAKES_V))
        return routes;
    return routes & split ? routes | 1u << GEMMEPI_ROUTE_LT : routes & 1u << GEMMEPI_ROUTE_PLAIN;
}

/* Why config.routes, BATCH_INVARIANT or the rule keeps the problem from a route, or NULL. */
static const char *gpi__route_rule(const gpi__wanted *wanted, const gpi__route *row) {
    const char *varies = gpi__route_varies(wanted, row->id);
    if (!(gpi__routes_left(wanted) >> row->id & 1))
        return wanted->context->routes >> row->id & 1
                   ? "v is made for a formula, which only split and plain do, and config.routes leaves out split"
                   : "config.routes leaves it out";
    if (varies)
        return varies;
    if (GPI__FORMULA(&wanted->problem->made[GPI__B]) && row->id != GEMMEPI_ROUTE_FUSED)
        return "it does not make b on the way to the product";
    if (wanted->problem->formula && (row->id == GEMMEPI_ROUTE_LT || row->id == GEMMEPI_ROUTE_SPLIT))
        return "cuBLASLt runs no formulas";
    if (row->id == GEMMEPI_ROUTE_PLAIN && gpi__leaves_states(wanted->problem))
        return "its kernel leaves no states of rows for a formula's reductions";
    if (row->id == GEMMEPI_ROUTE_PLAIN && gpi__half_group_rule(wanted->problem))
        return gpi__half_group_rule(wanted->problem);
    return row->rule ? row->rule(wanted->context, wanted->problem) : NULL;
}

/* All ways to run the problem, and why others cannot. */
static void gpi__enumerate_as_flagged(const gemmepi_context *context, const gpi__problem *problem,
                                      int unit_alpha, gpi__candidates *candidates) {
    gpi__wanted wanted;
    size_t i;
    wanted.context = context;
    wanted.problem = problem;
    wanted.unit_alpha = unit_alpha;
    wanted.bare_microseconds = gpi__engines_rule(context, problem) || GPI__FORMULA(&problem->made[GPI__B])
                                   ? 0
                                   : gpi__bare_microseconds(context, problem);
    candidates->count = 0;
    for (i = 0; i < GPI__COUNT(gpi__routes); i++) {
        const gpi__route *row = &gpi__routes[i];
        const char *refusal = row->enumerate ? gpi__route_rule(&wanted, row) : NULL;
        if (refusal)
            gpi__add_candidate(candidates, row->id)->refusal = refusal;
        else if (row->enumerate)
            row->enumerate(&wanted, candidates);
    }
}

/* The same, and with BATCH_INVARIANT what would be taken without it. */
static void gpi__enumerate(const gemmepi_context *context, const gpi__problem *problem, int unit_alpha,
                           gpi__candidates *candidates) {
    gpi__problem varying = *problem;
    const gpi__candidate *least;
    memset(&candidates->without_flag, 0, sizeof candidates->without_flag);
    if (gpi__is_invariant(problem)) {
        varying.flags &= ~(uint64_t)GEMMEPI_BATCH_INVARIANT;
        gpi__enumerate_as_flagged(context, &varying, unit_alpha, candidates);
        least = gpi__least(candidates);
        if (least)
            candidates->without_flag = *least;
    }
    gpi__enumerate_as_flagged(context, problem, unit_alpha, candidates);
}

#endif
