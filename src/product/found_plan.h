/* Products around which a launch finds D's scales (parts/found_scale.h), each by a plan of its own within the problem's plan. */
#ifndef GEMMEPI_PRODUCT_FOUND_PLAN_H
#define GEMMEPI_PRODUCT_FOUND_PLAN_H

#include "choose.h"

static void gemmepi__found_describe(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
    const gemmepi__matmul_plan *within = gemmepi__current_plan(plan->v);
    within->route->describe(within, details);
    details->launches++;
}

static void gemmepi__found_explain(const gemmepi__matmul_plan *plan, const char *kernel,
                                   gemmepi__text *text) {
    const gemmepi__found_step *step = (const gemmepi__found_step *)plan->built;
    const gemmepi__matmul_plan *within = gemmepi__current_plan(plan->v);
    int is_tensor = plan->problem.found_scale == GEMMEPI_SCALE_TENSOR;
    if (is_tensor)
        gemmepi__append(text, "  %s: the scale of the amax of %d earlier runs, 1 block of %u threads\n",
                        step->launch.name, (int)plan->problem.amax_history, step->launch.threads_x);
    else
        gemmepi__append(text, "  d in F32, into workspace, by the route %s:\n",
                        gemmepi__route_names[within->route->id]);
    within->route->explain(within, kernel, text);
    if (!is_tensor)
        gemmepi__append(text, "  %s: d and its scales, %u blocks of %u threads\n", step->launch.name,
                        step->launch.blocks, step->launch.threads_x);
}

/* Runs are run.h's. */
static const gemmepi__route gemmepi__found_routes[] = {
    {GEMMEPI_ROUTE_FUSED, NULL, NULL, NULL, NULL, NULL, NULL, gemmepi__found_describe,
     gemmepi__found_explain},
    {GEMMEPI_ROUTE_LT, NULL, NULL, NULL, NULL, NULL, NULL, gemmepi__found_describe, gemmepi__found_explain},
    {GEMMEPI_ROUTE_SPLIT, NULL, NULL, NULL, NULL, NULL, NULL, gemmepi__found_describe,
     gemmepi__found_explain},
    {GEMMEPI_ROUTE_PLAIN, NULL, NULL, NULL, NULL, NULL, NULL, gemmepi__found_describe,
     gemmepi__found_explain},
};

/* Returns the route that a user is told: that of the plan inside, and SPLIT of cuBLASLt's product with a launch behind it. */
static gemmepi_route gemmepi__told_found_route(const gemmepi__problem *problem, gemmepi_route within) {
    return within == GEMMEPI_ROUTE_LT && problem->found_scale != GEMMEPI_SCALE_TENSOR ? GEMMEPI_ROUTE_SPLIT
                                                                                      : within;
}

static const gemmepi__route *gemmepi__found_route(const gemmepi__matmul_plan *plan) {
    gemmepi_route id = gemmepi__told_found_route(&plan->problem, plan->v->route->id);
    const gemmepi__route *row = gemmepi__found_routes;
    while (row->id != id)
        row++;
    return row;
}

/* Workspace: what the launch has of it, then that of the plan within. */
static void gemmepi__finish_found_plan(gemmepi__matmul_plan *plan) {
    const gemmepi__found_step *step = (const gemmepi__found_step *)plan->built;
    plan->route = gemmepi__found_route(plan);
    plan->workspace_size = gemmepi__round_up(step->bytes, 256) + plan->v->workspace_size;
    plan->is_measured = plan->v->is_measured;
}

#endif
