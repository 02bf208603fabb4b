/* All ways to run a product, the least estimate first: what tuning times. */
#ifndef GEMMEPI_AHEAD_WAYS_H
#define GEMMEPI_AHEAD_WAYS_H

#include "../plans/plans.h"

enum {
    GEMMEPI__MOST_WAYS = 512,
    GEMMEPI__TIMED_WAYS = 32 /* of engines, at most */
};
#define GEMMEPI__WAYS_FACTOR 3.0  /* estimated at more than so many times the least */
#define GEMMEPI__WAYS_SLOW   10.0 /* and so many microseconds, a way is not timed */

typedef struct gemmepi__ways {
    int count;
    gemmepi__candidate list[GEMMEPI__MOST_WAYS];
} gemmepi__ways;

static void gemmepi__add_way(gemmepi__ways *ways, const gemmepi__candidate *candidate) {
    if (ways->count < GEMMEPI__MOST_WAYS)
        ways->list[ways->count++] = *candidate;
}

/* By every shape of the engine and every number of parts. */
static void gemmepi__add_ways_of_engine(const gemmepi_context *context, const gemmepi__problem *problem,
                                        const gemmepi__candidate *enumerated, gemmepi__ways *ways) {
    const gemmepi__engine *engine = gemmepi__engines[enumerated->engine];
    gemmepi__candidate one = *enumerated;
    gemmepi__problem packed;
    double copying;
    gemmepi__pack_views(problem, enumerated->copies, &packed);
    copying = gemmepi__pack_microseconds(&packed, enumerated->copies);
    for (one.shape = 0; one.shape < engine->shapes; one.shape++)
        for (one.parts = 1; one.parts <= GEMMEPI__MOST_PARTS; one.parts++) {
            double own = engine->estimate(context, &packed, &one);
            one.microseconds = gemmepi__with_memory(context, &packed, own) + copying;
            if (own < GEMMEPI__NEVER && (one.parts <= 4 || one.parts % 4 == 0 || one.parts == 6))
                gemmepi__add_way(ways, &one);
        }
}

static void gemmepi__add_algorithms_of_lt(const gemmepi__candidate *enumerated, int has_product,
                                          gemmepi__ways *ways) {
    gemmepi__candidate one = *enumerated;
    if (!has_product)
        gemmepi__add_way(ways, &one);
    else
        for (one.nth = 1; one.nth <= GEMMEPI__LT_ALGORITHMS; one.nth++)
            gemmepi__add_way(ways, &one);
}

static int gemmepi__compare_ways(const void *a, const void *b) {
    double x = ((const gemmepi__candidate *)a)->microseconds,
           y = ((const gemmepi__candidate *)b)->microseconds;
    return (x > y) - (x < y);
}

/* Leaves those that may be the fastest. cuBLASLt's all stay: of what they take little is known. */
static void gemmepi__prune_ways(gemmepi__ways *ways) {
    double most = GEMMEPI__WAYS_FACTOR * ways->list[0].microseconds + GEMMEPI__WAYS_SLOW;
    int count = ways->count, engines = 0, i;
    ways->count = 0;
    for (i = 0; i < count; i++) {
        const gemmepi__candidate *one = &ways->list[i];
        int by_lt = one->route == GEMMEPI_ROUTE_LT || one->route == GEMMEPI_ROUTE_SPLIT;
        if (one->route == GEMMEPI_ROUTE_PLAIN && i > 0 && one->microseconds > most) {
            ways->list[ways->count] = *one; /* others are held against it, and it is not timed */
            ways->list[ways->count++].rank = GEMMEPI__NEVER;
        } else if (by_lt || i == 0 || (one->microseconds <= most && engines < GEMMEPI__TIMED_WAYS))
            ways->list[ways->count++] = *one;
        engines += !by_lt;
    }
}

/* PLAIN behind the first: it is built early, whatever time there is. */
static void gemmepi__bring_plain_forward(gemmepi__ways *ways) {
    int i;
    for (i = 2; i < ways->count; i++)
        if (ways->list[i].route == GEMMEPI_ROUTE_PLAIN) {
            gemmepi__candidate plain = ways->list[i];
            memmove(&ways->list[2], &ways->list[1], (size_t)(i - 1) * sizeof plain);
            ways->list[1] = plain;
        }
}

static void gemmepi__enumerate_ways(const gemmepi_context *context, const gemmepi__problem *problem,
                                    gemmepi__ways *ways) {
    gemmepi__candidates candidates;
    int i;
    memset(&candidates, 0, sizeof candidates);
    gemmepi__enumerate(context, problem, gemmepi__may_be_applied(problem), &candidates);
    ways->count = 0;
    for (i = 0; i < candidates.count; i++) {
        const gemmepi__candidate *one = &candidates.list[i];
        if (one->refusal)
            continue;
        if (one->route == GEMMEPI_ROUTE_FUSED)
            gemmepi__add_ways_of_engine(context, problem, one, ways);
        else if (one->route == GEMMEPI_ROUTE_PLAIN)
            gemmepi__add_way(ways, one);
        else
            gemmepi__add_algorithms_of_lt(one, problem->k != 0, ways);
    }
    if (!ways->count)
        return;
    qsort(ways->list, (size_t)ways->count, sizeof *ways->list, gemmepi__compare_ways);
    gemmepi__prune_ways(ways);
    gemmepi__bring_plain_forward(ways);
}

#endif
