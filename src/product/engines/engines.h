/* The kernels of our own that have the epilogue inside. To add one: its file, and its row here. */
#ifndef GEMMEPI_PRODUCT_ENGINES_ENGINES_H
#define GEMMEPI_PRODUCT_ENGINES_ENGINES_H

#include "sm90.h"
#include "sm90_fp8.h"
#include "sm80.h"
#include "small.h"
#include "weights.h"

#define GEMMEPI__ENGINES(X) X(sm90) X(sm80) X(small) X(weights) X(sm90_fp8)

#define GEMMEPI__BUILT_OF(name)  gemmepi__##name name;
#define GEMMEPI__ENGINE_OF(name) &gemmepi__##name##_engine,

/* What an engine has built. */
typedef union gemmepi__built {
    GEMMEPI__ENGINES(GEMMEPI__BUILT_OF)
} gemmepi__built;

static const gemmepi__engine *const gemmepi__engines[] = {GEMMEPI__ENGINES(GEMMEPI__ENGINE_OF)};

/* Why the engine does not take the problem, or NULL. taken: one before it does, which with BATCH_INVARIANT is for all m. */
static const char *gemmepi__engine_refusal(const gemmepi_context *context, const gemmepi__problem *problem,
                                           const gemmepi__engine *row, int taken) {
    const char *refusal = row->is_there ? row->rule(context, problem) : "left out of this program";
    if (!refusal && gemmepi__is_invariant(problem) && row->varies)
        refusal = row->varies(problem);
    if (!refusal && gemmepi__is_invariant(problem) && taken)
        refusal = "BATCH_INVARIANT: one kernel takes all m";
    return refusal;
}

/* Adds a candidate for each engine, refused or not. like: how it is applied and what is copied, which takes copying. */
static void gemmepi__enumerate_engines(const gemmepi_context *context, const gemmepi__problem *problem,
                                       const gemmepi__candidate *like, double copying,
                                       gemmepi__candidates *candidates) {
    int engine, count = (int)GEMMEPI__COUNT(gemmepi__engines);
    double least = GEMMEPI__NEVER;
    for (engine = 0; engine < count; engine++) {
        const gemmepi__engine *row = gemmepi__engines[engine];
        gemmepi__candidate *added = gemmepi__add_candidate(candidates, GEMMEPI_ROUTE_FUSED);
        double own;
        *added = *like;
        added->engine = engine;
        added->parts = 1;
        added->refusal = gemmepi__engine_refusal(context, problem, row, least < GEMMEPI__NEVER);
        if (added->refusal)
            continue;
        row->choose(context, problem, added);
        own = gemmepi__with_memory(context, problem, added->microseconds);
        added->microseconds = copying + own;
        added->rank = copying + (own < row->margin * least || own > least ? own : least);
        if (own < row->margin * least)
            least = own;
    }
}

#endif
