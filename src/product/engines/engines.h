/* The kernels of our own that have the epilogue inside. To add one: its file, and its row here. */
#ifndef GEMMEPI_PRODUCT_ENGINES_ENGINES_H
#define GEMMEPI_PRODUCT_ENGINES_ENGINES_H

#include "sm90.h"
#include "sm90_fp8.h"
#include "sm80.h"
#include "small.h"
#include "weights.h"
#include "outer.h"

#define GPI__ENGINES(X) X(sm90) X(sm80) X(small) X(weights) X(sm90_fp8) X(outer)

#define GPI__BUILT_OF(name)  gpi__##name name;
#define GPI__ENGINE_OF(name) &gpi__##name##_engine,

/* What an engine has built. */
typedef union gpi__built {
    gpi__product_kernel kernel;
    GPI__ENGINES(GPI__BUILT_OF)
} gpi__built;

static const gpi__engine *const gpi__engines[] = {GPI__ENGINES(GPI__ENGINE_OF)};

/* Why the engine does not take the problem, or NULL. taken: one before it does, which with BATCH_INVARIANT is for all m. */
static const char *gpi__engine_refusal(const gemmepi_context *context, const gpi__problem *problem,
                                       const gpi__engine *row, int taken) {
    const char *refusal = row->is_there ? row->rule(context, problem) : "left out of this program";
    if (!refusal && gpi__is_invariant(problem) && row->varies)
        refusal = row->varies(problem);
    if (!refusal && gpi__is_invariant(problem) && taken)
        refusal = "BATCH_INVARIANT: one kernel runs all m";
    return refusal;
}

/* Says what a candidate of an engine takes, and what it counts as. own: what it would take if memory did not hold it up; copying: what
   copies of its operands take; problem: as the kernel has it */
static void gpi__count_engine(const gemmepi_context *context, const gpi__problem *problem, double own,
                              double copying, gpi__candidate *candidate) {
    candidate->microseconds = copying + gpi__with_memory(context, problem, own);
    candidate->rank = candidate->microseconds;
    if (gpi__chip_has(context->arch, GPI__WGMMA))
        candidate->rank /= gpi__engines[candidate->engine]->margin;
}

/* Adds a candidate for each engine, refused or not. like: whether it has unit alpha, and what is copied, which takes copying. */
static void gpi__enumerate_engines(const gemmepi_context *context, const gpi__problem *problem,
                                   const gpi__candidate *like, double copying, gpi__candidates *candidates) {
    int engine, taken = 0;
    for (engine = 0; engine < (int)GPI__COUNT(gpi__engines); engine++) {
        const gpi__engine *row = gpi__engines[engine];
        gpi__candidate *added = gpi__add_candidate(candidates, GEMMEPI_ROUTE_FUSED);
        *added = *like;
        added->engine = engine;
        added->parts = 1;
        added->refusal = gpi__engine_refusal(context, problem, row, taken);
        if (added->refusal)
            continue;
        taken = 1;
        gpi__count_engine(context, problem, gpi__choose_shape(context, problem, row, added), copying, added);
    }
}

#endif
