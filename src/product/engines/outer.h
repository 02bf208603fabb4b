/* The kernel of the route fused for products whose k is short, gemm_outer.cu: each thread adds up runs of its own. TF32 is multiplied as
   F32. */
#ifndef GEMMEPI_PRODUCT_ENGINES_OUTER_H
#define GEMMEPI_PRODUCT_ENGINES_OUTER_H

#include "small.h"

#define GPI__OUTER_DEPTH 16 /* of k, at most */

/* A way to cut the product up: its kernel is compiled for it. A thread has eight columns of a row, of either half. */
typedef struct gpi__outer_shape {
    short tile_m, tile_n; /* of a block; columns of both halves, eight of each at least */
} gpi__outer_shape;

static const gpi__outer_shape gpi__outer_shapes[] = {{8, 256}, {32, 64}, {128, 16}};

typedef gpi__tiled_kernel gpi__outer;

/* >>what may go there */

static const char *gpi__outer_rule(const gemmepi_context *context, const gpi__problem *problem) {
    (void)context;
    if (gpi__is_of_weights(problem))
        return "a and b differ in dtype";
    if (gpi__is_byte_product(problem))
        return "it does not multiply fp8 or I8";
    if (problem->k > GPI__OUTER_DEPTH)
        return "it is for a k of 16 at most";
    if (gpi__leaves_states(problem))
        return "it leaves no states of rows for a formula's reductions";
    return problem->found_scale ? "it finds no scales of d" : gpi__half_group_rule(problem);
}

/* Its sums are the same at any m. But where m may not decide, an engine before it runs all m. */
static const char *gpi__outer_varies(const gpi__problem *problem) {
    (void)problem;
    return "BATCH_INVARIANT: one kernel runs all m";
}

/* >>how long it takes */

/* Microseconds with a shape, roughly. Where lines of a matrix begin anywhere a run is eight loads or stores. */
static double gpi__outer_microseconds(const gemmepi_context *context, const gpi__problem *problem,
                                      const gpi__outer_shape *shape) {
    const gpi__view *b = &problem->views[GPI__B];
    int halves = gpi__halves_in(problem), width = shape->tile_n / halves / GPI__RUN;
    int rows = width < 32 ? 32 / width : 1; /* of a warp */
    int matrices = gpi__halves_out(problem) + gpi__has(problem, GEMMEPI_RESIDUAL) +
                   gpi__has(problem, GEMMEPI_AUX | GEMMEPI_BACKWARD);
    int of_b = !b->transposed && gpi__copy_unit(problem, GPI__B) >= 16 ? 1 : GPI__RUN;
    int of_matrix = gpi__epilogue_is_aligned(problem) ? 1 : GPI__RUN;
    double tiles = (double)gpi__divide_up(problem->m, shape->tile_m) *
                   (double)gpi__divide_up(problem->n, shape->tile_n) * (double)problem->batch;
    double warps = tiles * shape->tile_m * width / 32 / context->multiprocessors;
    double of_warp = matrices * (GPI__OUTER_ROW * rows + GPI__OUTER_MATRIX * of_matrix) +
                     (double)problem->k * halves * GPI__OUTER_LINE * of_b;
    double cycles = GPI__OUTER_LAUNCH + GPI__OUTER_STEP * (double)problem->k + warps * of_warp;
    return cycles / gpi__chip_of(context->arch)->megahertz + gpi__sums_microseconds(problem);
}

/* >>building */

static void gpi__append_outer_defines(gpi__text *text, const gpi__problem *problem,
                                      const gpi__outer_shape *shape, int applied) {
    gpi__append_tile_defines(text, problem, 0, shape->tile_m, shape->tile_n, applied);
    gpi__append_lines(text, problem);
}

static gemmepi_status gpi__outer_build(gemmepi_context *context, const gpi__problem *problem,
                                       const gpi__candidate *candidate, void *built) {
    gpi__outer *outer = (gpi__outer *)built;
    const gpi__outer_shape *shape = &gpi__outer_shapes[candidate->shape];
    int threads = shape->tile_m * (shape->tile_n / gpi__halves_in(problem) / GPI__RUN);
    char prologue[1536];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gemmepi_status status;
    memset(outer, 0, sizeof *outer);
    gpi__start_kernel(shape->tile_m, shape->tile_n, candidate->applied, &outer->kernel);
    status = gpi__lay_out_tiles(problem, threads, 1, &outer->kernel, &outer->params);
    if (status)
        return status;
    gpi__append_outer_defines(&text, problem, shape, candidate->applied);
    return gpi__finish_small(context, problem, prologue, "", 1, outer);
}

static void gpi__outer_explain(const gpi__problem *problem, const void *built, gpi__text *text) {
    (void)problem;
    gpi__explain_tiles(text, built, "");
}

/* >>the engine */

static double gpi__outer_estimate(const gemmepi_context *context, const gpi__problem *problem,
                                  const gpi__candidate *candidate) {
    const gpi__outer_shape *shape = &gpi__outer_shapes[candidate->shape];
    return candidate->parts == 1 ? gpi__outer_microseconds(context, problem, shape) : GPI__NEVER;
}

GPI__ENGINE(outer, GPI__HAS_SM80, GPI__OUTER_MARGIN, gpi__outer_rule, gpi__outer_varies, outer,
            gpi__outer_explain, gpi__run_tiles);

#endif
