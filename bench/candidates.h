/* Times of every way that gemmepi has to run a drawn product: each candidate, and each other shape of an engine, built as it is,
   in CUDA graphs, and the fastest in bursts. The models of time are fitted to such times, and tests/unit/choice.c holds the choice against them. It looks
   inside gemmepi. Part of main.c. */
#ifndef GEMMEPI_BENCH_CANDIDATES_H
#define GEMMEPI_BENCH_CANDIDATES_H

#include <pthread.h>

#include "draw.h"
#include "race.h"

/* A line of the CSV. */
typedef struct candidates_row {
    long seed;
    int row;
    char route[16];
    int engine, shape, parts, copies[2];
    double graph, burst;         /* microseconds; 0: not measured */
    int nth;                     /* of --answers: which of cuBLASLt's answers, from 1 on, */
    gpi__lt_algorithm algorithm; /* and what it is */
    double waves;                /* as cuBLASLt says */
} candidates_row;

#define CANDIDATES_HEADING "seed,row,problem,route,engine,shape,parts,copy_a,copy_b,graph_us,burst_us"
#define CANDIDATES_ANSWERS_HEADING \
    CANDIDATES_HEADING ",answer,id,tile,stages,split_k,reduction,swizzle,custom,inner,cluster,waves"

enum {
    CANDIDATES_MOST = 64,    /* of one product */
    CANDIDATES_THREADS = 16, /* that compile */
    CANDIDATES_FACTOR =
        4, /* what is estimated to take so many times the least, and so many microseconds, is left out */
    CANDIDATES_SLOW = 40,
    CANDIDATES_LINE = 256
};

#define CANDIDATES_SECONDS          0.015 /* of rounds, for each */
#define CANDIDATES_BURST_LEAST      30 /* microseconds: what takes less has the clock of a burst in a graph, too */
#define CANDIDATES_BURST_MOST       1.35 /* of the fastest in a graph, for those that are timed in a burst */
#define CANDIDATES_PLAIN_OPERATIONS 2e9
#define CANDIDATES_LT_OPERATIONS    1e9 /* --answers: a product of less is left out */

/* >>which there are */

/* own: the problem as the kernel has it */
static int candidates_has_shape(const gemmepi_context *context, const gpi__problem *own,
                                const gpi__candidate *c) {
    const gpi__engine *engine = gpi__engines[c->engine];
    return c->shape < engine->shapes && engine->estimate(context, own, c) < GPI__NEVER;
}

/* Whether a candidate that was enumerated is timed. */
static int candidates_is_timed(const gpi__candidate *c, double least, double operations) {
    return !c->refusal && c->microseconds <= CANDIDATES_SLOW + CANDIDATES_FACTOR * least &&
           (c->route != GEMMEPI_ROUTE_PLAIN || operations <= CANDIDATES_PLAIN_OPERATIONS);
}

/* Those to be timed, into list; their number. */
static int candidates_list(const gemmepi_context *context, const draw_problem *p, const gpi__problem *problem,
                           gpi__candidate *list) {
    gpi__candidates all;
    gpi__problem own;
    const gpi__candidate *least;
    int count = 0, i;
    memset(&all, 0, sizeof all);
    gpi__enumerate(context, problem, gpi__may_have_unit_alpha(problem), &all);
    least = gpi__least(&all);
    for (i = 0; least && i < all.count; i++) {
        gpi__candidate one = all.list[i];
        if (!candidates_is_timed(&one, least->microseconds, draw_operations(p)))
            continue;
        list[count++] = one;
        if (one.route != GEMMEPI_ROUTE_FUSED)
            continue;
        gpi__pack_views(problem, one.copies, &own);
        for (one.shape = 0; one.shape < CANDIDATES_MOST && count < CANDIDATES_MOST - GPI__MOST_CANDIDATES;
             one.shape++)
            if (one.shape != all.list[i].shape && candidates_has_shape(context, &own, &one))
                list[count++] = one;
    }
    return count;
}

/* cuBLASLt's first answers, for its epilogue and for its bare product with a pass; likewise. */
static int candidates_list_answers(const gemmepi_context *context, const draw_problem *p,
                                   const gpi__problem *problem, gpi__candidate *list) {
    gpi__candidates all;
    int count = 0, i;
    if (draw_operations(p) < CANDIDATES_LT_OPERATIONS)
        return 0;
    memset(&all, 0, sizeof all);
    gpi__enumerate(context, problem, gpi__may_have_unit_alpha(problem), &all);
    for (i = 0; i < all.count; i++) {
        gpi__candidate one = all.list[i];
        if (one.refusal || (one.route != GEMMEPI_ROUTE_LT && one.route != GEMMEPI_ROUTE_SPLIT))
            continue;
        for (one.nth = 1; one.nth <= GPI__LT_FIRST; one.nth++)
            list[count++] = one;
    }
    return count;
}

/* As gemmepi has it inside; 0 where it is refused. */
static int candidates_problem(const draw_problem *p, gpi__problem *problem) {
    gemmepi_matmul_desc desc = draw_desc(p);
    return gpi__normalise(&desc, GPI__DEFAULT_ALIGNMENT, problem) == GEMMEPI_OK;
}

/* A plan by the candidate, or NULL. */
static gemmepi_plan *candidates_build(gemmepi_context *context, const gpi__problem *problem,
                                      const gpi__candidate *candidate) {
    gpi__matmul_plan *plan = gpi__new_plan(context, problem);
    gpi__entry entry;
    gemmepi_status status;
    if (!plan)
        return NULL;
    status = gpi__enter_relaxed(context, &entry);
    if (!status) {
        gpi__lock(&context->build_lock);
        status = gpi__build_by(plan, candidate->route, candidate);
        gpi__unlock(&context->build_lock);
        gpi__leave_relaxed(context, &entry);
    }
    if (!status)
        return &plan->base;
    gemmepi_plan_destroy(&plan->base);
    return NULL;
}

/* What cuBLASLt's algorithm of the plan is. */
static void candidates_name(const gemmepi_plan *plan, candidates_row *line) {
    const gpi__matmul_plan *built = (const gpi__matmul_plan *)plan;
    const gpi__lt_product *product;
    if (!plan || !line->nth)
        return;
    product = built->route->id == GEMMEPI_ROUTE_LT ? (const gpi__lt_product *)built->built
                                                   : &((const gpi__split *)built->built)->product;
    line->algorithm = product->algorithm;
    line->waves = (double)product->waves;
}

/* >>compiling on all processors */

typedef struct candidates_work {
    gemmepi_context *context;
    const draw_problem *problems;
    int count, first;
    int answers; /* --answers */
} candidates_work;

static void *candidates_compile_some(void *argument) {
    const candidates_work *w = argument;
    int row, i;
    for (row = w->first; row < w->count; row += CANDIDATES_THREADS) {
        const draw_problem *p = &w->problems[row];
        gpi__candidate list[CANDIDATES_MOST];
        gpi__problem problem;
        int count;
        if (!candidates_problem(p, &problem))
            continue;
        count = w->answers ? candidates_list_answers(w->context, p, &problem, list)
                           : candidates_list(w->context, p, &problem, list);
        for (i = 0; i < count; i++)
            gemmepi_plan_destroy(candidates_build(w->context, &problem, &list[i]));
    }
    return NULL;
}

/* Of the rows' candidates all kernels, which the context keeps. What fails is told when it is timed. */
static void candidates_compile(const candidates_work *all) {
    static candidates_work works[CANDIDATES_THREADS];
    pthread_t threads[CANDIDATES_THREADS];
    int started = 0, i;
    for (i = 0; i < CANDIDATES_THREADS; i++) {
        works[i] = *all;
        works[i].first = i;
        if (pthread_create(&threads[started], NULL, candidates_compile_some, &works[i]) == 0)
            started++;
        else
            candidates_compile_some(&works[i]);
    }
    for (i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* >>the file */

static void candidates_write(FILE *file, const candidates_row *r, const char *problem) {
    const gpi__lt_algorithm *a = &r->algorithm;
    fprintf(file, "%ld,%d,%s,%s,%d,%d,%d,%d,%d,%.3f,%.3f", r->seed, r->row, problem, r->route, r->engine,
            r->shape, r->parts, r->copies[0], r->copies[1], r->graph, r->burst);
    if (r->nth)
        fprintf(file, ",%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%.3f", r->nth, a->id, a->tile, a->stages, a->split,
                a->reduction, a->swizzle, a->custom, a->inner, a->cluster, r->waves);
    fprintf(file, "\n");
}

/* 0 for a line that is none, such as the heading. */
static int candidates_read(const char *line, candidates_row *r) {
    char problem[DRAW_NAME];
    gpi__lt_algorithm *a = &r->algorithm;
    int there;
    memset(r, 0, sizeof *r);
    there = sscanf(line, "%ld,%d,%159[^,],%15[^,],%d,%d,%d,%d,%d,%lf,%lf,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%lf",
                   &r->seed, &r->row, problem, r->route, &r->engine, &r->shape, &r->parts, &r->copies[0],
                   &r->copies[1], &r->graph, &r->burst, &r->nth, &a->id, &a->tile, &a->stages, &a->split,
                   &a->reduction, &a->swizzle, &a->custom, &a->inner, &a->cluster, &r->waves);
    return there == 11 || there == 22;
}

#endif
