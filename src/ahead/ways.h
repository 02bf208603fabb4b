/* All ways to run a product, the least estimate first: what tuning times. */
#ifndef GEMMEPI_AHEAD_WAYS_H
#define GEMMEPI_AHEAD_WAYS_H

#include "../plans/plans.h"

enum {
    GPI__MOST_WAYS = 512,
    GPI__TIMED_WAYS = 32 /* of engines, at most */
};
#define GPI__WAYS_FACTOR 3.0  /* estimated at more than so many times the least */
#define GPI__WAYS_SLOW   10.0 /* and so many microseconds, a way is not timed */

typedef struct gpi__ways {
    int count;
    gpi__candidate list[GPI__MOST_WAYS];
} gpi__ways;

static void gpi__add_way(gpi__ways *ways, const gpi__candidate *candidate) {
    if (ways->count < GPI__MOST_WAYS)
        ways->list[ways->count++] = *candidate;
}

/* By every shape of the engine and every number of parts. */
static void gpi__add_ways_of_engine(const gemmepi_context *context, const gpi__problem *problem,
                                    const gpi__candidate *enumerated, gpi__ways *ways) {
    const gpi__engine *engine = gpi__engines[enumerated->engine];
    gpi__candidate one = *enumerated;
    gpi__problem packed;
    double copying;
    size_t i;
    gpi__pack_views(problem, enumerated->copies, &packed);
    copying = gpi__pack_microseconds(&packed, enumerated->copies);
    for (one.shape = 0; one.shape < engine->shapes; one.shape++)
        for (i = 0; i < GPI__COUNT(gpi__parts); i++) {
            double own;
            one.parts = gpi__parts[i];
            own = engine->estimate(context, &packed, &one);
            gpi__count_engine(context, &packed, own, copying, &one);
            if (own < GPI__NEVER)
                gpi__add_way(ways, &one);
        }
}

static void gpi__add_algorithms_of_lt(const gpi__candidate *enumerated, int has_product, gpi__ways *ways) {
    gpi__candidate one = *enumerated;
    if (!has_product)
        gpi__add_way(ways, &one);
    else
        for (one.nth = 1; one.nth <= GPI__LT_ALGORITHMS; one.nth++)
            gpi__add_way(ways, &one);
}

/* Leaves those that may be the fastest. cuBLASLt's all stay: of what they take little is known. */
static void gpi__prune_ways(gpi__ways *ways) {
    double most = GPI__WAYS_FACTOR * ways->list[0].microseconds + GPI__WAYS_SLOW;
    int count = ways->count, engines = 0, i;
    ways->count = 0;
    for (i = 0; i < count; i++) {
        const gpi__candidate *one = &ways->list[i];
        int by_lt = one->route == GEMMEPI_ROUTE_LT || one->route == GEMMEPI_ROUTE_SPLIT;
        if (one->route == GEMMEPI_ROUTE_PLAIN && i > 0 && one->microseconds > most) {
            ways->list[ways->count] = *one; /* others are held against it, and it is not timed */
            ways->list[ways->count++].rank = GPI__NEVER;
        } else if (by_lt || i == 0 || (one->microseconds <= most && engines < GPI__TIMED_WAYS))
            ways->list[ways->count++] = *one;
        engines += !by_lt;
    }
}

/* PLAIN behind the first: it is built early, whatever time there is. */
static void gpi__bring_plain_forward(gpi__ways *ways) {
    int i;
    for (i = 2; i < ways->count; i++)
        if (ways->list[i].route == GEMMEPI_ROUTE_PLAIN) {
            gpi__candidate plain = ways->list[i];
            memmove(&ways->list[2], &ways->list[1], (size_t)(i - 1) * sizeof plain);
            ways->list[1] = plain;
        }
}

static void gpi__enumerate_ways(const gemmepi_context *context, const gpi__problem *problem,
                                gpi__ways *ways) {
    gpi__candidates candidates;
    int i;
    memset(&candidates, 0, sizeof candidates);
    gpi__enumerate(context, problem, gpi__may_be_applied(problem), &candidates);
    ways->count = 0;
    for (i = 0; i < candidates.count; i++) {
        const gpi__candidate *one = &candidates.list[i];
        if (one->refusal)
            continue;
        if (one->route == GEMMEPI_ROUTE_FUSED)
            gpi__add_ways_of_engine(context, problem, one, ways);
        else if (one->route == GEMMEPI_ROUTE_PLAIN)
            gpi__add_way(ways, one);
        else
            gpi__add_algorithms_of_lt(one, problem->k != 0, ways);
    }
    if (!ways->count)
        return;
    qsort(ways->list, (size_t)ways->count, sizeof *ways->list, gpi__compare_candidates);
    gpi__prune_ways(ways);
    gpi__bring_plain_forward(ways);
}

#endif
