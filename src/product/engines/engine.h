/* What the kernels of our own that have the epilogue inside have in common: each is a row of such functions, at its file's end. */
#ifndef GEMMEPI_PRODUCT_ENGINES_ENGINE_H
#define GEMMEPI_PRODUCT_ENGINES_ENGINE_H

#include "../../device/chip.h"
#include "../candidate.h"
#include "../parts/product_kernel.h"

/* Engines that are left out of the program. What they would take is still known: cuBLASLt's time is estimated by it. */
#ifdef GEMMEPI_NO_SM80
#define GPI__HAS_SM80 0
#else
#define GPI__HAS_SM80 1
#endif
#ifdef GEMMEPI_NO_SM90
#define GPI__HAS_SM90 0
#else
#define GPI__HAS_SM90 1
#endif

/* built: the engine's own struct, which build fills, and which begins with a gpi__product_kernel. */
typedef struct gpi__engine {
    const char *name;
    int is_there;
    double margin; /* on Hopper it counts as its time over this: so good are the models */
    /* Why it does not take a problem that gpi__engines_rule lets pass, or NULL. */
    const char *(*rule)(const gemmepi_context *context, const gpi__problem *problem);
    /* With BATCH_INVARIANT: why it would not give all m the same bits, or NULL; without it, it does. What it says must not depend on m,
       nor may the rule where it says nothing. */
    const char *(*varies)(const gpi__problem *problem);
    /* The table of shapes, each of which begins with the rows and columns of its tile. */
    const void *table;
    size_t shape_size;
    int shapes;
    /* Returns the microseconds that the candidate's shape takes in its parts where memory does not hold it up; NEVER where that does not
       accept the problem. The rule has been asked. */
    double (*estimate)(const gemmepi_context *context, const gpi__problem *problem,
                       const gpi__candidate *candidate);
    /* Builds the candidate as it is. */
    gemmepi_status (*build)(gemmepi_context *context, const gpi__problem *problem,
                            const gpi__candidate *candidate, void *built);
    /* In words, after the kernel's name. */
    void (*explain)(const gpi__problem *problem, const void *built, gpi__text *text);
    /* The primary context is current. */
    gemmepi_status (*run)(const gemmepi_context *context, const gpi__problem *problem, const void *built,
                          const gpi__arguments *arguments, char *workspace, gemmepi_stream stream);
} gpi__engine;

/* A row whose table has its name in its own, and its estimate and build that of `like`, whose kernel it shares. */
#define GPI__ENGINE(name, is_there, margin, rule, varies, like, explain, run)               \
    static const gpi__engine gpi__##name##_engine = {#name,                                 \
                                                     is_there,                              \
                                                     margin,                                \
                                                     rule,                                  \
                                                     varies,                                \
                                                     gpi__##name##_shapes,                  \
                                                     sizeof *gpi__##name##_shapes,          \
                                                     GPI__COUNT(gpi__##name##_shapes),      \
                                                     gpi__##like##_estimate,                \
                                                     is_there ? gpi__##like##_build : NULL, \
                                                     explain,                               \
                                                     is_there ? run : NULL}

/* Into how many parts k is divided. */
static const int gpi__parts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};

/* Chooses shape and parts of the least estimate, which it returns. candidate->unit_alpha is given. */
static double gpi__choose_shape(const gemmepi_context *context, const gpi__problem *problem,
                                const gpi__engine *engine, gpi__candidate *candidate) {
    gpi__candidate one = *candidate;
    double least = GPI__NEVER;
    size_t i;
    for (one.shape = 0; one.shape < engine->shapes; one.shape++)
        for (i = 0; i < GPI__COUNT(gpi__parts); i++) {
            double own;
            one.parts = gpi__parts[i];
            own = engine->estimate(context, problem, &one);
            if (own >= least)
                continue;
            least = own;
            candidate->shape = one.shape;
            candidate->parts = one.parts;
        }
    return least;
}

#endif
