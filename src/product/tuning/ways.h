/* The ways to run a problem, as tuning times them: first the best of each route and engine, by rank, then all others that may be the fastest. */
#ifndef GEMMEPI_PRODUCT_TUNING_WAYS_H
#define GEMMEPI_PRODUCT_TUNING_WAYS_H

#include "../plan.h"

enum {
    GPI__MOST_WAYS = 512,
    GPI__TIMED_WAYS = 32 /* of engines, at most */
};
#define GPI__WAYS_FACTOR 3.0  /* estimated at more than so many times the least */
#define GPI__WAYS_SLOW   10.0 /* and so many microseconds, a way is not timed, unless it is among the first */

typedef struct gpi__ways {
    int count,
        first; /* the first of these are timed whatever time there is; the first of all is chosen untuned */
    gpi__candidate list[GPI__MOST_WAYS];
} gpi__ways;

/* What all ways of a problem have in common, as its formula is inside its kernel or not. */
typedef struct gpi__way_group {
    gpi__problem problem; /* as a route runs it */
    int is_inside;
    double more; /* microseconds of what is launched behind it */
    gpi__candidates candidates;
} gpi__way_group;

static void gpi__add_way(const gpi__way_group *group, const gpi__candidate *candidate, gpi__ways *ways) {
    gpi__candidate *added = &ways->list[ways->count];
    if (ways->count == GPI__MOST_WAYS)
        return;
    ways->count++;
    *added = *candidate;
    added->is_inside = group->is_inside;
    added->microseconds += group->more;
    added->rank += group->more;
}

/* >>the first */

static int gpi__has_way_by(const gpi__ways *ways, int from, const gpi__candidate *one) {
    int i;
    for (i = from; i < ways->count; i++)
        if (ways->list[i].route == one->route && ways->list[i].engine == one->engine)
            return 1;
    return 0;
}

/* The best of each route and engine of the group, in the order in which plans try them. */
static void gpi__add_first_ways(const gpi__way_group *group, gpi__ways *ways) {
    gpi__candidates rest = group->candidates;
    const gpi__candidate *least;
    int from = ways->count;
    while ((least = gpi__least(&rest)) != NULL) {
        if (!gpi__has_way_by(ways, from, least))
            gpi__add_way(group, least, ways);
        rest.list[least - rest.list].refusal = "it is a way already";
    }
    ways->first = ways->count;
}

/* >>the others */

static int gpi__is_first_way(const gpi__ways *ways, const gpi__candidate *one, int is_inside) {
    int i;
    for (i = 0; i < ways->first; i++) {
        const gpi__candidate *first = &ways->list[i];
        if (first->route == one->route && first->engine == one->engine && first->shape == one->shape &&
            first->parts == one->parts && first->is_inside == is_inside &&
            memcmp(first->copies, one->copies, sizeof one->copies) == 0)
            return 1;
    }
    return 0;
}

/* By every shape of the engine and every number of parts. */
static void gpi__add_ways_of_engine(const gemmepi_context *context, const gpi__way_group *group,
                                    const gpi__candidate *enumerated, gpi__ways *ways) {
    const gpi__engine *engine = gpi__engines[enumerated->engine];
    gpi__candidate one = *enumerated;
    gpi__problem packed;
    double copying;
    size_t i;
    gpi__pack_views(&group->problem, enumerated->copies, &packed);
    copying = gpi__pack_microseconds(&packed, enumerated->copies);
    for (one.shape = 0; one.shape < engine->shapes; one.shape++)
        for (i = 0; i < GPI__COUNT(gpi__parts); i++) {
            double own;
            one.parts = gpi__parts[i];
            own = engine->estimate(context, &packed, &one);
            gpi__count_engine(context, &packed, own, copying, &one);
            if (own < GPI__NEVER && !gpi__is_first_way(ways, &one, group->is_inside))
                gpi__add_way(group, &one, ways);
        }
}

static void gpi__add_other_ways(const gemmepi_context *context, const gpi__way_group *group,
                                gpi__ways *ways) {
    int i;
    for (i = 0; i < group->candidates.count; i++) {
        gpi__candidate one = group->candidates.list[i];
        if (one.refusal || one.route == GEMMEPI_ROUTE_PLAIN)
            continue;
        if (one.route == GEMMEPI_ROUTE_FUSED)
            gpi__add_ways_of_engine(context, group, &one, ways);
        else
            for (one.nth = 1; group->problem.k && one.nth <= GPI__LT_ALGORITHMS; one.nth++)
                gpi__add_way(group, &one, ways);
    }
}

/* Sorts those behind the first, and leaves those that may be the fastest. cuBLASLt's all stay: of what they take little is known. */
static void gpi__prune_ways(gpi__ways *ways) {
    double most;
    int count = ways->count, engines = 0, i;
    if (!ways->first)
        return;
    most = GPI__WAYS_FACTOR * ways->list[0].microseconds + GPI__WAYS_SLOW;
    qsort(ways->list + ways->first, (size_t)(count - ways->first), sizeof *ways->list,
          gpi__compare_candidates);
    ways->count = 0;
    for (i = 0; i < count; i++) {
        const gpi__candidate *one = &ways->list[i];
        int by_engine = one->route == GEMMEPI_ROUTE_FUSED;
        if (i < ways->first || !by_engine || (one->microseconds <= most && engines < GPI__TIMED_WAYS)) {
            ways->list[ways->count++] = *one;
            engines += by_engine;
        }
    }
}

/* >>all */

static void gpi__fill_way_group(const gemmepi_context *context, const gpi__problem *problem,
                                gpi__way_group *group) {
    memset(group, 0, sizeof *group);
    group->problem = *problem;
    gpi__enumerate(context, problem, gpi__may_have_unit_alpha(problem), &group->candidates);
}

/* With the formula inside a kernel, and as a pass behind v: what would be chosen untuned goes first. With BATCH_INVARIANT that alone, which
   does not depend on m. */
static int gpi__fill_groups_of_formula(const gemmepi_context *context, const gpi__problem *problem,
                                       gpi__way_group groups[2]) {
    gpi__problem v = gpi__problem_of_v(problem), inside;
    gpi__formula_source source = gpi__v_as_source(problem, &v);
    int is_inside = gpi__why_not_inside(context, problem, &v) == NULL;
    source.matrices[1].dtype = 0;
    gpi__fill_way_group(context, &v, &groups[is_inside]);
    groups[is_inside].more = gpi__formula_pass_microseconds(context, &problem->formula->placed, &source);
    if (gpi__not_inside(problem))
        return 1;
    inside = gpi__problem_inside(problem);
    gpi__fill_way_group(context, &inside, &groups[!is_inside]);
    groups[!is_inside].is_inside = 1;
    return gpi__is_invariant(problem) ? 1 : 2;
}

static void gpi__enumerate_ways(const gemmepi_context *context, const gpi__problem *problem,
                                gpi__ways *ways) {
    gpi__way_group groups[2];
    int count = 1, i;
    if (GPI__FORMULA(problem))
        count = gpi__fill_groups_of_formula(context, problem, groups);
    else
        gpi__fill_way_group(context, problem, &groups[0]);
    ways->count = ways->first = 0;
    for (i = 0; i < count; i++)
        gpi__add_first_ways(&groups[i], ways);
    for (i = 0; i < count; i++)
        gpi__add_other_ways(context, &groups[i], ways);
    gpi__prune_ways(ways);
}

#endif
