/* How grouped products are tuned: by each shape of their kernel, and by the route plain, with groups of one size. */
#ifndef GEMMEPI_GROUPED_TUNING_H
#define GEMMEPI_GROUPED_TUNING_H

#include "../product/tuning/tune.h"
#include "run.h"

/* The shape of the least estimate and PLAIN first, where they are, in the order in which they are chosen untuned. */
static void gpi__enumerate_group_ways(const gemmepi_context *context, const gpi__problem *problem,
                                      gpi__ways *ways) {
    int unit_alpha = gpi__may_have_unit_alpha(problem),
        has_fused = !gpi__grouped_rule(context, problem, unit_alpha);
    int has_plain = !problem->found_scale && (!context->routes || context->routes >> GEMMEPI_ROUTE_PLAIN & 1);
    const gpi__engine *engine = gpi__engine_of_groups(problem);
    gpi__problem like = has_fused ? gpi__estimated_groups(problem) : *problem;
    gpi__candidate one = gpi__candidate_of_groups(problem, unit_alpha), plain = one;
    gpi__way_group group;
    memset(&group, 0, sizeof group);
    ways->count = ways->first = 0;
    if (has_fused) {
        one.rank = one.microseconds = gpi__choose_shape(context, &like, engine, &one);
        gpi__add_way(&group, &one, ways);
    }
    plain.route = GEMMEPI_ROUTE_PLAIN;
    plain.engine = GPI__ANY_ENGINE;
    if (has_plain)
        gpi__add_way(&group, &plain, ways);
    ways->first = ways->count;
    for (one.shape = 0; has_fused && one.shape < engine->shapes; one.shape++) {
        one.rank = one.microseconds = engine->estimate(context, &like, &one);
        if (one.microseconds < GPI__NEVER && !gpi__is_first_way(ways, &one, 0))
            gpi__add_way(&group, &one, ways);
    }
    gpi__prune_ways(ways);
}

static int gpi__find_tuned_groups(gemmepi_context *context, const gpi__problem *problem, gpi__answer *found) {
    int is_there;
    gpi__lock(&context->build_lock);
    is_there = gpi__find_answer_of_groups(context, problem, found);
    gpi__unlock(&context->build_lock);
    return is_there;
}

static gemmepi_status gpi__build_group_way(gemmepi_context *context, const gpi__problem *problem,
                                           gpi__candidate *way, gemmepi_plan **plan) {
    return gpi__build_grouped(context, problem, gpi__may_have_unit_alpha(problem), way, plan);
}

static size_t gpi__workspace_of_grouped(const gemmepi_plan *plan) {
    return gpi__grouped_workspace((const gpi__grouped_plan *)plan);
}

static gemmepi_status gpi__run_group_way(const gemmepi_plan *plan, const gpi__trial *trial, int set,
                                         gpi__arguments *arguments) {
    gpi__grouped_run run;
    int i;
    memset(&run.lists, 0, sizeof run.lists);
    run.plan = (const gpi__grouped_plan *)plan;
    run.arguments = *arguments;
    for (i = 0; i < GPI__FAULTS; i++)
        run.lists.lists[i] = (const int32_t *)(const void *)gpi__at_trial(trial, set, GPI__OF_GROUPS + i);
    gpi__limit_group_lists(trial->problem, run.lists.limits);
    return gpi__launch_grouped(&run, trial->workspace, trial->workspace_size, trial->stream);
}

static const gpi__tuned_kind gpi__tuned_groups = {gpi__enumerate_group_ways, gpi__find_tuned_groups,
                                                  gpi__build_group_way, gpi__workspace_of_grouped,
                                                  gpi__run_group_way};

static gemmepi_status gpi__tune_grouped(const gemmepi_plan *base, const gemmepi_tune_options *options) {
    return gpi__tune_problem(base->context, &((const gpi__grouped_plan *)base)->problem, &gpi__tuned_groups,
                             options);
}

#define gpi__check_grouped NULL /* cuBLASLt multiplies no groups */

#endif
