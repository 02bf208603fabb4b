/* What a plan of a grouped product is, as a struct and in words. */
#ifndef GEMMEPI_GROUPED_EXPLAIN_H
#define GEMMEPI_GROUPED_EXPLAIN_H

#include "../product/explain.h"
#include "run.h"

static void gpi__describe_grouped(const gemmepi_plan *base, gemmepi_plan_details *details) {
    const gpi__grouped_plan *plan = (const gpi__grouped_plan *)base;
    int i;
    details->route = plan->route;
    if (plan->route == GEMMEPI_ROUTE_FUSED || plan->route == GEMMEPI_ROUTE_PLAIN) {
        gpi__describe_product_kernel(&plan->problem, &plan->built.kernel, details);
        details->launches = 2 + (plan->gathers[0].function != NULL) + (plan->gathers[1].function != NULL) +
                            (plan->maps.function != NULL) + gpi__sums_launches(&plan->sums);
        for (i = GPI__A; i <= GPI__B && plan->around; i++)
            gpi__describe_formula_pass(&plan->around->made[i], details);
    }
    details->bit_stable = !plan->tuned.is_measured;
    gpi__describe_tuned(&plan->tuned, details);
    details->compute = (gemmepi_compute)plan->problem.compute;
    details->accumulator =
        plan->base.context->is_host ? GEMMEPI_F64 : (gemmepi_dtype)plan->problem.accumulator;
}

static void gpi__explain_grouped(gpi__text *text, const gemmepi_plan *base,
                                 const gemmepi_plan_details *details) {
    const gpi__grouped_plan *plan = (const gpi__grouped_plan *)base;
    const gpi__grouping *grouping = &plan->problem.grouping;
    int operand;
    gpi__append(text, "%d groups of %s%s%s%s, a batch of them: ", (int)grouping->groups,
                grouping->is_of_k ? "k" : "rows", grouping->gathered & 1 ? ", rows of a gathered" : "",
                grouping->gathered & 2 ? ", rows of b gathered" : "",
                grouping->scattered ? ", rows of d scattered" : "");
    gpi__explain_problem(text, gpi__asked_of_groups(plan));
    gpi__append(text, "route %s, workspace %llu bytes\n", details->route_name,
                (gpi__ull)details->workspace_size);
    if (!details->kernel[0])
        return;
    if (plan->around)
        gpi__explain_made(text, plan->around);
    gpi__append(text, "  %s: ends and indices checked, groups divided into parts%s\n", plan->groups.name,
                plan->columns > 1 ? " of a tile each" : "");
    for (operand = 0; operand < 2; operand++)
        if (plan->gathers[operand].function)
            gpi__append(text, "  %s: gathered rows of %s to workspace, side by side\n",
                        plan->gathers[operand].name, gpi__operand_names[operand]);
    if (plan->sums.first.function)
        gpi__append(text, "  %s: bias_grad, sums over each group's part of k\n", plan->sums.first.name);
    if (plan->maps.function)
        gpi__append(text, "  %s: for each group where its part of k ends\n", plan->maps.name);
    if (plan->route == GEMMEPI_ROUTE_FUSED)
        plan->engine->explain(&plan->inner, &plan->built.sm90, text);
    else
        gpi__append(text, "  %s: product and epilogue, %u blocks of %u threads at most\n", details->kernel,
                    plan->built.kernel.launch.blocks, plan->built.kernel.launch.threads_x);
    gpi__explain_tuned(text, &plan->tuned, "tuned");
    if (plan->unit_alpha)
        gpi__append(text, "  runs with alpha or C have a kernel of their own\n");
    if (plan->not_fused)
        gpi__append(text, "  not fused: %s\n", plan->not_fused);
}

#endif
