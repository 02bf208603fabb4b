/* What a plan of a grouped product is, as a struct and in words. */
#ifndef GEMMEPI_GROUPED_EXPLAIN_H
#define GEMMEPI_GROUPED_EXPLAIN_H

#include "../product/explain.h"
#include "run.h"

static void gemmepi__grouped_info(const gemmepi__grouped_plan *plan, gemmepi_plan_details *details) {
    const gemmepi__launch *launch = plan->route == GEMMEPI_ROUTE_FUSED   ? &plan->built.sm90.launch
                                    : plan->route == GEMMEPI_ROUTE_PLAIN ? &plan->built.plain.launch
                                                                         : NULL;
    memset(details, 0, sizeof *details);
    details->kind = GEMMEPI_PLAN_GROUPED;
    details->route = plan->route;
    details->route_name = gemmepi__route_names[plan->route];
    if (launch) {
        memcpy(details->kernel, launch->name, sizeof details->kernel);
        details->tile_m =
            plan->route == GEMMEPI_ROUTE_FUSED ? plan->built.sm90.shape.tile_m : GEMMEPI__PLAIN_TILE;
        details->tile_n =
            plan->route == GEMMEPI_ROUTE_FUSED ? plan->built.sm90.shape.tile_n : GEMMEPI__PLAIN_TILE;
        details->launches = 2 + (plan->gathers[0].function != NULL) + (plan->gathers[1].function != NULL) +
                            (plan->maps.function != NULL) + (plan->sums.function != NULL);
    }
    details->workspace_size = gemmepi__grouped_workspace(plan);
    details->compute = (gemmepi_compute)plan->problem.compute;
    details->accumulator =
        plan->base.context->is_host ? GEMMEPI_F64 : (gemmepi_dtype)plan->problem.accumulator;
    details->deterministic = 1;
    details->bit_stable = 1;
}

static void gemmepi__explain_grouped(gemmepi__text *text, const gemmepi__grouped_plan *plan) {
    const gemmepi__grouping *grouping = &plan->problem.grouping;
    gemmepi_plan_details details;
    int operand;
    gemmepi__grouped_info(plan, &details);
    gemmepi__append(text, "%d groups of %s%s%s%s, a batch of them: ", (int)grouping->groups,
                    grouping->is_of_k ? "k" : "rows", grouping->gathered & 1 ? ", rows of a gathered" : "",
                    grouping->gathered & 2 ? ", rows of b gathered" : "",
                    grouping->scattered ? ", rows of d scattered" : "");
    gemmepi__explain_problem(text, &plan->problem);
    gemmepi__append(text, "route %s, workspace %llu bytes\n", details.route_name,
                    (gemmepi__ull)details.workspace_size);
    if (!details.kernel[0])
        return;
    gemmepi__append(text, "  %s: ends and indices checked, groups divided into parts%s\n", plan->groups.name,
                    plan->columns > 1 ? " of a tile each" : "");
    for (operand = 0; operand < 2; operand++)
        if (plan->gathers[operand].function)
            gemmepi__append(text, "  %s: gathered rows of %s to workspace, side by side\n",
                            plan->gathers[operand].name, gemmepi__operand_names[operand]);
    if (plan->sums.function)
        gemmepi__append(text, "  %s: bias_grad, sums over each group's part of k\n", plan->sums.name);
    if (plan->maps.function)
        gemmepi__append(text, "  %s: for each group where its part of k ends\n", plan->maps.name);
    if (plan->route == GEMMEPI_ROUTE_FUSED)
        plan->engine->explain(&plan->inner, &plan->built.sm90, text);
    else
        gemmepi__append(text, "  %s: product and epilogue, %u blocks of %u threads at most\n", details.kernel,
                        plan->built.plain.launch.blocks, plan->built.plain.launch.threads_x);
    if (plan->applied)
        gemmepi__append(text, "  runs with alpha or C have a kernel of their own\n");
    if (plan->not_fused)
        gemmepi__append(text, "  not fused: %s\n", plan->not_fused);
}

#endif
