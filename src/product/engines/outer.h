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

/* Steps of k whose columns of B a thread loads at once: registers hold so many. */
static int gpi__outer_steps(const gpi__problem *problem) {
    int is_wide = problem->views[GPI__B].bits > 16;
    return gpi__halves_in(problem) == 1 ? GPI__OUTER_DEPTH
           : is_wide                    ? GPI__OUTER_DEPTH / 4
                                        : GPI__OUTER_DEPTH / 2;
}

/* The operand whose sums for bias_grad are the kernel's own, 1 A or 2 B; 0: none. */
static int gpi__outer_sums(const gpi__problem *problem) {
    int operand = gpi__summed_operand(problem);
    if (operand < 0 || problem->batch > 1 || problem->views[operand].scale ||
        problem->k > gpi__outer_steps(problem))
        return 0;
    return operand == GPI__A ? 1 : 2;
}

/* Columns of a thread's run that lie side by side. */
static int gpi__outer_stretch(const gpi__problem *problem) {
    const gpi__view *b = &problem->views[GPI__B];
    const gpi__view *along_n = b->transposed ? &problem->views[GPI__D] : b;
    int aligned =
        gpi__epilogue_is_aligned(problem) && (b->transposed || gpi__copy_unit(problem, GPI__B) >= 16);
    return gpi__pass_stretch(problem, along_n, aligned);
}

/* Whether eight lines of B are one piece of memory that begins at a multiple of 16 bytes. */
static int gpi__outer_is_dense(const gpi__problem *problem) {
    const gpi__view *b = &problem->views[GPI__B];
    int halves = gpi__halves_in(problem);
    return b->transposed && b->ld == problem->k && problem->k <= gpi__outer_steps(problem) &&
           b->alignment % 16 == 0 && (problem->batch <= 1 || b->batch_stride * b->bits / 8 % 16 == 0) &&
           (halves == 1 || gpi__half_columns(problem) % GPI__RUN == 0);
}

/* >>how long it takes */

/* Cycles of a warp's loads of B, of `lanes` runs side by side: each for the lines of 128 bytes that it touches, 4 at least. */
static double gpi__outer_loads(const gpi__problem *problem, int lanes) {
    const gpi__view *b = &problem->views[GPI__B];
    int size = b->bits / 8, unit = gpi__copy_unit(problem, GPI__B), stretch = gpi__outer_stretch(problem);
    int64_t of_run = problem->k * GPI__RUN * size, of_k = problem->k * size;
    double lines = (double)lanes * GPI__RUN * (double)b->ld * size / 128, most = b->transposed ? lanes : 4;
    double loads = !b->transposed ? (double)of_run / (stretch < GPI__RUN ? stretch * size : 16)
                   : gpi__outer_is_dense(problem) ? (double)of_run / 16
                                                  : (double)(GPI__RUN * gpi__divide_up(of_k, unit));
    lines = lines < most ? lines : most;
    return gpi__halves_in(problem) * loads * (lines > 4 ? lines : 4);
}

/* Microseconds with a shape, roughly. Where lines of a matrix begin anywhere a run is several loads or stores, which wait for each row. */
static double gpi__outer_microseconds(const gemmepi_context *context, const gpi__problem *problem,
                                      const gpi__outer_shape *shape) {
    int halves = gpi__halves_in(problem), width = shape->tile_n / halves / GPI__RUN;
    int lanes = width < 32 ? width : 32, pieces = GPI__RUN / gpi__outer_stretch(problem);
    int matrices = gpi__halves_out(problem) + gpi__has(problem, GEMMEPI_RESIDUAL) +
                   gpi__has(problem, GEMMEPI_AUX | GEMMEPI_BACKWARD);
    double tiles = (double)gpi__divide_up(problem->m, shape->tile_m) *
                   (double)gpi__divide_up(problem->n, shape->tile_n) * (double)problem->batch;
    double warps = tiles * shape->tile_m * width / 32 / context->multiprocessors;
    double of_matrix =
        pieces > 1 ? pieces * (GPI__OUTER_PIECE + GPI__OUTER_ROW * 32.0 / lanes) : GPI__OUTER_MATRIX;
    double of_warp = matrices * of_matrix + gpi__outer_loads(problem, lanes) +
                     GPI__OUTER_MULTIPLY * (double)problem->k * halves;
    double cycles = GPI__OUTER_LAUNCH + warps * of_warp;
    return cycles / gpi__chip_of(context->arch)->megahertz +
           (gpi__outer_sums(problem) ? 0 : gpi__sums_microseconds(problem));
}

/* >>building */

static void gpi__append_outer_defines(gpi__text *text, const gpi__problem *problem,
                                      const gpi__outer_shape *shape, int unit_alpha) {
    int stretch = gpi__outer_stretch(problem);
    gpi__append_tile_defines(text, problem, 0, shape->tile_m, shape->tile_n, unit_alpha);
    gpi__append_lines(text, problem);
    gpi__append(text, "#define GEMMEPI_K %d\n", (int)problem->k);
    gpi__append(text, "#define GEMMEPI_BATCHED %d\n#define GEMMEPI_B_DENSE %d\n", problem->batch > 1,
                gpi__outer_is_dense(problem));
    gpi__append(text, "#define GEMMEPI_WHOLE %d\n", gpi__half_columns(problem) % GPI__RUN == 0);
    gpi__append(text, "#define GEMMEPI_SUMS %d\n#define GEMMEPI_SUMS_TYPE %s\n#define GEMMEPI_SUMS_ADD %d\n",
                gpi__outer_sums(problem), gpi__type_name(problem, GPI__BIAS_GRAD),
                gpi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD));
    if (stretch < GPI__RUN)
        gpi__append(text, "#define GEMMEPI_STRETCH %d\n#define GEMMEPI_ABREAST %d\n", stretch,
                    shape->tile_n / gpi__halves_in(problem) / GPI__RUN);
}

static gemmepi_status gpi__outer_build(gemmepi_context *context, const gpi__problem *problem,
                                       const gpi__candidate *candidate, void *built) {
    gpi__outer *outer = (gpi__outer *)built;
    const gpi__outer_shape *shape = &gpi__outer_shapes[candidate->shape];
    int threads = shape->tile_m * (shape->tile_n / gpi__halves_in(problem) / GPI__RUN);
    char prologue[2048];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gemmepi_status status;
    memset(outer, 0, sizeof *outer);
    gpi__start_kernel(shape->tile_m, shape->tile_n, candidate->unit_alpha, &outer->kernel);
    status = gpi__lay_out_tiles(problem, threads, 1, &outer->kernel, &outer->params);
    if (status)
        return status;
    gpi__append_outer_defines(&text, problem, shape, candidate->unit_alpha);
    outer->kernel.sums_operand = gpi__outer_sums(problem);
    return gpi__finish_small(context, problem, prologue, "", 1, outer);
}

static void gpi__outer_explain(const gpi__problem *problem, const void *built, gpi__text *text) {
    gpi__explain_tiles(text, built, "");
    if (gpi__outer_sums(problem))
        gpi__append(text, "  bias_grad: sums of %s by the same threads\n",
                    gpi__argument_name(problem, gpi__outer_sums(problem) == 1 ? GPI__A : GPI__B));
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
