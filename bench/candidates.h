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
    double graph, burst; /* microseconds; 0: not measured */
} candidates_row;

#define CANDIDATES_HEADING "seed,row,problem,route,engine,shape,parts,copy_a,copy_b,graph_us,burst_us"

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
    gpi__enumerate(context, problem, gpi__may_be_applied(problem), &all);
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

/* >>compiling on all processors */

typedef struct candidates_work {
    gemmepi_context *context;
    uint64_t seed;
    int from, to, first;
} candidates_work;

static void *candidates_compile_some(void *argument) {
    const candidates_work *w = argument;
    int row, i;
    for (row = w->from + w->first; row < w->to; row += CANDIDATES_THREADS) {
        gpi__candidate list[CANDIDATES_MOST];
        gpi__problem problem;
        draw_problem p;
        int attempt = 0, count;
        if (!draw(w->seed, row, &attempt, &p) || !candidates_problem(&p, &problem))
            continue;
        count = candidates_list(w->context, &p, &problem, list);
        for (i = 0; i < count; i++)
            gemmepi_plan_destroy(candidates_build(w->context, &problem, &list[i]));
    }
    return NULL;
}

/* Of the rows' candidates all kernels, which the context keeps. What fails is told when it is timed. */
static void candidates_compile(gemmepi_context *context, uint64_t seed, int from, int to) {
    static candidates_work works[CANDIDATES_THREADS];
    pthread_t threads[CANDIDATES_THREADS];
    int started = 0, i;
    for (i = 0; i < CANDIDATES_THREADS; i++) {
        works[i].context = context, works[i].seed = seed;
        works[i].from = from, works[i].to = to, works[i].first = i;
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
    fprintf(file, "%ld,%d,%s,%s,%d,%d,%d,%d,%d,%.3f,%.3f\n", r->seed, r->row, problem, r->route, r->engine,
            r->shape, r->parts, r->copies[0], r->copies[1], r->graph, r->burst);
}

/* 0 for a line that is none, such as the heading. */
static int candidates_read(const char *line, candidates_row *r) {
    char problem[DRAW_NAME];
    return sscanf(line, "%ld,%d,%159[^,],%15[^,],%d,%d,%d,%d,%d,%lf,%lf", &r->seed, &r->row, problem,
                  r->route, &r->engine, &r->shape, &r->parts, &r->copies[0], &r->copies[1], &r->graph,
                  &r->burst) == 11;
}

#endif
