/* A way to run a product, as a value: what is enumerated, compared, built and, in words, explained. */
#ifndef GEMMEPI_PRODUCT_CANDIDATE_H
#define GEMMEPI_PRODUCT_CANDIDATE_H

#include "../device/context.h"
#include "../problem/problem.h"

/* How an operand is copied to workspace first. */
enum {
    GPI__AS_IT_LIES,
    GPI__IN_UNITS,    /* into lines that begin at multiples of 16 bytes */
    GPI__SIDE_BY_SIDE /* into such that lie along k */
};

/* An algorithm of cuBLASLt's by what its attributes CUBLASLT_ALGO_CONFIG_... say, so that it is the same whatever else is offered. */
#define GPI__LT_ALGORITHM_NUMBERS 9
typedef struct gpi__lt_algorithm {
    int32_t id, tile, stages, split, reduction, swizzle, custom, inner, cluster; /* id 0: none */
} gpi__lt_algorithm;

typedef struct gpi__candidate {
    gemmepi_route route;
    int engine;     /* of FUSED: a row of gpi__engines, or ANY_ENGINE of a refusal for all */
    int shape;      /* of the engine: a row of its shapes */
    int parts;      /* of the engine: k in so many, whose sums are added up by a pass */
    int unit_alpha; /* of FUSED: only for runs whose alpha is 1 and that have no C */
    int copies[2];  /* of FUSED: of A and B */
    int bare;       /* of SPLIT: without an epilogue of cuBLASLt's */
    int is_inside;  /* of a problem with a formula: that is inside the kernel, and else a pass over v */
    int nth;        /* of LT and SPLIT, while tuning: which of cuBLASLt's algorithms, from 1 on */
    gpi__lt_algorithm algorithm; /* of LT and SPLIT where nth is 0: cuBLASLt's, or one by a rule of ours */
    double microseconds;         /* an estimate; 0: not known */
    double rank;                 /* what is compared: the estimate, or more where that is too low */
    const char *refusal;         /* why it cannot run the problem, or NULL */
    const char *otherwise;       /* what explain says of it where it could run the problem and another does */
} gpi__candidate;

/* What tuning has found of a plan; all 0 where it was chosen by estimates. */
typedef struct gpi__tuned {
    double microseconds;       /* of a run */
    int is_measured;           /* by this process, and another may find another way */
    int ways_timed, ways_left; /* how many were timed, and how many for want of time or memory were not */
} gpi__tuned;

#define GPI__ANY_ENGINE      (-1)
#define GPI__MOST_PARTS      16
#define GPI__NEVER           1e300 /* microseconds */
#define GPI__MOST_CANDIDATES 24 /* FUSED has engines times three ways to copy the operands; choose.h looks */

typedef struct gpi__candidates {
    int count;
    gpi__candidate list[GPI__MOST_CANDIDATES];
    gpi__candidate without_flag; /* with BATCH_INVARIANT: what is best without it; its route 0: nothing is */
} gpi__candidates;

/* What every route is asked for candidates of. */
typedef struct gpi__wanted {
    const gemmepi_context *context;
    const gpi__problem *problem;
    int unit_alpha;
    double bare_microseconds; /* what cuBLASLt would take without an epilogue; 0: not known */
} gpi__wanted;

static gpi__candidate *gpi__add_candidate(gpi__candidates *candidates, gemmepi_route route) {
    gpi__candidate *added = &candidates->list[candidates->count++];
    memset(added, 0, sizeof *added);
    added->route = route;
    added->engine = GPI__ANY_ENGINE;
    return added;
}

/* Compares two candidates, also for qsort: less than 0 where the first goes before the second. */
static int gpi__compare_candidates(const void *first, const void *second) {
    const gpi__candidate *a = (const gpi__candidate *)first, *b = (const gpi__candidate *)second;
    if (a->refusal || b->refusal)
        return (a->refusal != NULL) - (b->refusal != NULL);
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Returns the best of those of the routes, a bit each: where all are refused the first of them, NULL where there is none. */
static const gpi__candidate *gpi__least_of_routes(const gpi__candidates *candidates, unsigned routes) {
    const gpi__candidate *least = NULL;
    int i;
    for (i = 0; i < candidates->count; i++)
        if (routes >> candidates->list[i].route & 1 &&
            (!least || gpi__compare_candidates(&candidates->list[i], least) < 0))
            least = &candidates->list[i];
    return least;
}

/* Returns the best that is not refused, or NULL. */
static const gpi__candidate *gpi__least(const gpi__candidates *candidates) {
    const gpi__candidate *least = gpi__least_of_routes(candidates, ~0u);
    return least && !least->refusal ? least : NULL;
}

/* Nothing of the route is tried any more. */
static void gpi__refuse_route(gpi__candidates *candidates, gemmepi_route route, const char *refusal) {
    int i;
    for (i = 0; i < candidates->count; i++)
        if (candidates->list[i].route == route && !candidates->list[i].refusal)
            candidates->list[i].refusal = refusal;
}

#endif
