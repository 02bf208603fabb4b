/* The kernels of our own that have the epilogue inside, a row each. To add one: its file, and its row here. */
#ifndef GEMMEPI_PRODUCT_ENGINES_ENGINES_H
#define GEMMEPI_PRODUCT_ENGINES_ENGINES_H

#include "sm80.h"

/* Engines that are left out of the program. What they would take is still known: cuBLASLt's time is estimated by it. */
#ifdef GEMMEPI_NO_SM80
#define GEMMEPI__HAS_SM80 0
#else
#define GEMMEPI__HAS_SM80 1
#endif
#ifdef GEMMEPI_NO_SM90
#define GEMMEPI__HAS_SM90 0
#else
#define GEMMEPI__HAS_SM90 1
#endif

/* What an engine has built. */
typedef union gemmepi__built {
    gemmepi__sm90 sm90;
    gemmepi__sm80 sm80;
} gemmepi__built;

/* What is asked of every engine when it has built. */
typedef struct gemmepi__built_details {
    const gemmepi__launch *launch, *pass; /* the kernel, and the pass behind it, if any */
    const gemmepi__sums *sums;
    int tile_m, tile_n;
    size_t workspace_size;
} gemmepi__built_details;

typedef struct gemmepi__engine {
    const char *name;
    int is_there;
    /* Of the least estimate of the rows above: its own must be less than that, so good are the models. */
    double margin;
    /* Why it does not take a problem that gemmepi__engines_rule lets pass, or NULL. */
    const char *(*rule)(const gemmepi_context *context, const gemmepi__problem *problem);
    /* The shape of the least estimate. The rule has been asked; candidate->applied is given. */
    void (*choose)(const gemmepi_context *context, const gemmepi__problem *problem,
                   gemmepi__candidate *candidate);
    void (*tile)(const gemmepi__candidate *candidate, int *tile_m, int *tile_n);
    /* Builds the candidate as it is. */
    gemmepi_status (*build)(gemmepi_context *context, const gemmepi__problem *problem,
                            const gemmepi__candidate *candidate, gemmepi__built *built);
    void (*describe)(const gemmepi__built *built, gemmepi__built_details *details);
    /* In words, after the kernel's name. */
    void (*explain)(const gemmepi__problem *problem, const gemmepi__built *built, gemmepi__text *text);
    /* The primary context is current. */
    gemmepi_status (*run)(const gemmepi_context *context, const gemmepi__problem *problem,
                          const gemmepi__built *built, const gemmepi__arguments *arguments, char *workspace,
                          gemmepi_stream stream);
} gemmepi__engine;

/* >>Hopper */

static void gemmepi__engine_sm90_choose(const gemmepi_context *context, const gemmepi__problem *problem,
                                        gemmepi__candidate *candidate) {
    const gemmepi__sm90_shape *shape =
        gemmepi__choose_sm90(context, problem, candidate->applied, &candidate->microseconds);
    candidate->shape = (int)(shape - gemmepi__sm90_shapes);
    candidate->parts = 1;
}

static void gemmepi__engine_sm90_tile(const gemmepi__candidate *candidate, int *tile_m, int *tile_n) {
    *tile_m = gemmepi__sm90_shapes[candidate->shape].tile_m;
    *tile_n = gemmepi__sm90_shapes[candidate->shape].tile_n;
}

static gemmepi_status gemmepi__engine_sm90_build(gemmepi_context *context, const gemmepi__problem *problem,
                                                 const gemmepi__candidate *candidate, gemmepi__built *built) {
    return gemmepi__sm90_build(context, problem, &gemmepi__sm90_shapes[candidate->shape], candidate->applied,
                               &built->sm90);
}

static void gemmepi__engine_sm90_describe(const gemmepi__built *built, gemmepi__built_details *details) {
    details->launch = &built->sm90.launch;
    details->pass = NULL;
    details->sums = &built->sm90.sums;
    details->tile_m = built->sm90.shape.tile_m;
    details->tile_n = built->sm90.shape.tile_n;
    details->workspace_size = gemmepi__sm90_workspace(&built->sm90);
}

static void gemmepi__engine_sm90_explain(const gemmepi__problem *problem, const gemmepi__built *built,
                                         gemmepi__text *text) {
    gemmepi__explain_sm90(text, problem, &built->sm90);
}

static gemmepi_status gemmepi__engine_sm90_run(const gemmepi_context *context,
                                               const gemmepi__problem *problem, const gemmepi__built *built,
                                               const gemmepi__arguments *arguments, char *workspace,
                                               gemmepi_stream stream) {
    return gemmepi__sm90_run(context, problem, &built->sm90, arguments, workspace, stream);
}

/* >>Ampere and later */

static const char *gemmepi__engine_sm80_rule(const gemmepi_context *context,
                                             const gemmepi__problem *problem) {
    (void)context;
    (void)problem;
    return NULL;
}

static void gemmepi__engine_sm80_choose(const gemmepi_context *context, const gemmepi__problem *problem,
                                        gemmepi__candidate *candidate) {
    gemmepi__sm80_cut cut = gemmepi__choose_sm80(context, problem, &candidate->microseconds);
    candidate->shape = (int)(cut.shape - gemmepi__sm80_shapes);
    candidate->parts = cut.parts;
}

static void gemmepi__engine_sm80_tile(const gemmepi__candidate *candidate, int *tile_m, int *tile_n) {
    *tile_m = gemmepi__sm80_shapes[candidate->shape].tile_m;
    *tile_n = gemmepi__sm80_shapes[candidate->shape].tile_n;
}

static gemmepi_status gemmepi__engine_sm80_build(gemmepi_context *context, const gemmepi__problem *problem,
                                                 const gemmepi__candidate *candidate, gemmepi__built *built) {
    gemmepi__sm80_cut cut;
    cut.shape = &gemmepi__sm80_shapes[candidate->shape];
    cut.parts = candidate->parts;
    return gemmepi__sm80_build(context, problem, &cut, candidate->applied, &built->sm80);
}

static void gemmepi__engine_sm80_describe(const gemmepi__built *built, gemmepi__built_details *details) {
    details->launch = &built->sm80.launch;
    details->pass = built->sm80.pass.launch.function ? &built->sm80.pass.launch : NULL;
    details->sums = &built->sm80.sums;
    details->tile_m = built->sm80.shape.tile_m;
    details->tile_n = built->sm80.shape.tile_n;
    details->workspace_size = gemmepi__sm80_workspace(&built->sm80);
}

static void gemmepi__engine_sm80_explain(const gemmepi__problem *problem, const gemmepi__built *built,
                                         gemmepi__text *text) {
    (void)problem;
    gemmepi__explain_sm80(text, &built->sm80);
}

static gemmepi_status gemmepi__engine_sm80_run(const gemmepi_context *context,
                                               const gemmepi__problem *problem, const gemmepi__built *built,
                                               const gemmepi__arguments *arguments, char *workspace,
                                               gemmepi_stream stream) {
    return gemmepi__sm80_run(context, problem, &built->sm80, arguments, workspace, stream);
}

/* >>the table */

static const gemmepi__engine gemmepi__engines[] = {
    {"sm90", GEMMEPI__HAS_SM90, 1, gemmepi__tma_rule, gemmepi__engine_sm90_choose, gemmepi__engine_sm90_tile,
     GEMMEPI__HAS_SM90 ? gemmepi__engine_sm90_build : NULL, gemmepi__engine_sm90_describe,
     gemmepi__engine_sm90_explain, GEMMEPI__HAS_SM90 ? gemmepi__engine_sm90_run : NULL},
    {"sm80", GEMMEPI__HAS_SM80, 0.9, gemmepi__engine_sm80_rule, gemmepi__engine_sm80_choose,
     gemmepi__engine_sm80_tile, GEMMEPI__HAS_SM80 ? gemmepi__engine_sm80_build : NULL,
     gemmepi__engine_sm80_describe, gemmepi__engine_sm80_explain,
     GEMMEPI__HAS_SM80 ? gemmepi__engine_sm80_run : NULL},
};

/* Adds a candidate for each engine, refused or not. like: how it is applied and what is copied, which takes copying. */
static void gemmepi__enumerate_engines(const gemmepi_context *context, const gemmepi__problem *problem,
                                       const gemmepi__candidate *like, double copying,
                                       gemmepi__candidates *candidates) {
    int engine, count = (int)GEMMEPI__COUNT(gemmepi__engines);
    double least = GEMMEPI__NEVER;
    for (engine = 0; engine < count; engine++) {
        const gemmepi__engine *row = &gemmepi__engines[engine];
        gemmepi__candidate *added = gemmepi__add_candidate(candidates, GEMMEPI_ROUTE_FUSED);
        double own;
        *added = *like;
        added->engine = engine;
        added->refusal = row->is_there ? row->rule(context, problem) : "left out of this program";
        if (added->refusal)
            continue;
        row->choose(context, problem, added);
        own = added->microseconds;
        added->microseconds = copying + own;
        added->rank = copying + (own < row->margin * least || own > least ? own : least);
        if (own < row->margin * least)
            least = own;
    }
}

#endif
