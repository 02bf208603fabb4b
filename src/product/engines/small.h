/* The kernel of the route fused for small products, gemm_small.cu: where rows or columns are few, or all is. Its warps read A and B
   from memory themselves, each a part of k. TF32 is multiplied as F32. */
#ifndef GEMMEPI_PRODUCT_ENGINES_SMALL_H
#define GEMMEPI_PRODUCT_ENGINES_SMALL_H

#include "sm80.h"

#define GPI__SMALL_EDGE  16                 /* of so many rows or columns it takes any product, */
#define GPI__SMALL_PAIRS ((int64_t)1 << 22) /* of more those of so many multiplications in an item */

/* A way to cut the product up: its kernel is compiled for it. Columns are those of both halves. */
typedef struct gpi__small_shape {
    short tile_m, tile_n; /* of a block, and of each of its warps */
    short rows, columns;  /* of a lane; lanes that are left divide k */
    short warps;          /* of a block, which divide k, too */
    short parts;          /* blocks of a cluster, likewise */
} gpi__small_shape;

/* Tiles of less than eight columns are for products of no more. */
static const gpi__small_shape gpi__small_shapes[] = {
    {16, 16, 4, 4, 8, 1}, /* first the one for everything */
    {1, 8, 1, 2, 8, 1},   {2, 16, 2, 4, 8, 1}, {8, 16, 4, 4, 8, 1}, {8, 1, 2, 1, 8, 1},  {16, 4, 4, 4, 8, 1},
    {1, 64, 1, 8, 4, 1},  {1, 8, 1, 8, 4, 4},  {1, 8, 1, 8, 4, 8},  {64, 1, 8, 1, 4, 1}, {64, 1, 8, 1, 4, 8},
};

typedef gpi__tiled_kernel gpi__small;

/* >>what may go there */

static const char *gpi__small_rule(const gemmepi_context *context, const gpi__problem *problem) {
    int64_t columns = gpi__half_columns(problem);
    (void)context;
    if (gpi__is_of_weights(problem))
        return "a and b differ in dtype";
    if (gpi__is_byte_product(problem))
        return "it does not multiply fp8 or I8";
    if (problem->m > GPI__SMALL_EDGE && columns > GPI__SMALL_EDGE &&
        (double)problem->m * (double)problem->n * (double)problem->k > (double)GPI__SMALL_PAIRS)
        return "it is for products of 16 rows or columns at most, or of at most 2^22 multiplications";
    if (gpi__leaves_states(problem))
        return "it leaves no states of rows for a formula's reductions";
    return problem->found_scale ? "it finds no scales of d" : gpi__half_group_rule(problem);
}

static const char *gpi__small_varies(const gpi__problem *problem) {
    (void)problem;
    return "BATCH_INVARIANT: its shapes divide k among more threads or fewer";
}

static int gpi__small_shape_accepts(const gpi__problem *problem, const gpi__small_shape *shape, int arch) {
    int halves = gpi__halves_in(problem), tile_n = shape->tile_n / halves;
    return (shape->parts == 1 || gpi__chip_has(arch, GPI__CLUSTERS)) && shape->columns % halves == 0 &&
           (tile_n % GPI__RUN == 0 || gpi__half_columns(problem) <= tile_n);
}

/* With an operand of one element a line, these side by side, as one that lies along k. */
static gpi__problem gpi__small_problem(const gpi__problem *problem) {
    gpi__problem own = *problem;
    int operand;
    for (operand = GPI__A; operand <= GPI__B; operand++) {
        gpi__view *view = &own.views[operand];
        int along_k = operand == GPI__B; /* transposed where lines lie along k */
        if (view->transposed == along_k || view->length != 1 || view->ld != 1)
            continue;
        view->transposed = along_k;
        view->length = view->ld = problem->k;
        view->lines = 1;
    }
    return own;
}

/* >>how long it takes */

/* Loads of a lane in a step. lines: of a lane, along m or n. Runs that begin anywhere are read as the two words that cover them. */
static double gpi__small_loads(const gpi__problem *problem, int operand, int lines) {
    const gpi__view *view = &problem->views[operand];
    int element = view->bits / 8, unit = gpi__copy_unit(problem, operand), depth = 16 / element;
    int along_k = (operand == GPI__B) == view->transposed, bytes = along_k ? 16 : lines * element;
    int runs = along_k ? lines : depth;
    return runs * (bytes > 2 * unit ? 2 : bytes > unit ? bytes / unit : 1);
}

/* Cycles for what tiles read again and again, as far as it is more than twice what there is: of an operand whose lines are along m or n each k is a
   sector, however few of its numbers a tile wants. */
static double gpi__small_sectors(const gemmepi_context *context, const gpi__problem *problem, int64_t tiles) {
    const gpi__view *views = problem->views;
    int across = (int)views[GPI__A].transposed + !views[GPI__B].transposed;
    double bytes = 32.0 * across * (double)tiles * (double)problem->k -
                   2.0 * (double)(views[GPI__A].bytes + views[GPI__B].bytes);
    return bytes > 0 ? bytes / (GPI__SMALL_SECTORS * context->multiprocessors) : 0;
}

/* Microseconds with a shape, roughly. */
static double gpi__small_microseconds(const gemmepi_context *context, const gpi__problem *problem,
                                      const gpi__small_shape *shape) {
    const gpi__view *views = problem->views;
    int64_t tiles = gpi__times(
        gpi__times(gpi__divide_up(problem->m, shape->tile_m), gpi__divide_up(problem->n, shape->tile_n)),
        problem->batch);
    int halves = gpi__halves_in(problem), sums = shape->rows * shape->columns;
    int lanes = 32 / (shape->tile_m / shape->rows * (shape->tile_n / shape->columns)); /* along k */
    int depth = 128 / views[GPI__A].bits,
        at_once = shape->warps == 4 || sums <= 2 ? GPI__SMALL_AT_ONCE : 1; /* blocks */
    double loads = gpi__small_loads(problem, GPI__A, shape->rows) +
                   halves * gpi__small_loads(problem, GPI__B, shape->columns / halves);
    double steps = ceil((double)problem->k / (lanes * shape->warps * shape->parts * depth));
    double blocks = (double)tiles * shape->parts / context->multiprocessors; /* of each */
    double block = GPI__SMALL_BLOCK + GPI__SMALL_BLOCK_SUM * sums;
    double read =
        GPI__SMALL_READ * (double)(views[GPI__A].bytes + views[GPI__B].bytes) / gpi__memory_rate(context);
    double alone, beside;
    block += steps * (GPI__SMALL_STEP + GPI__SMALL_LOAD * loads);
    if (shape->parts > 1)
        block += GPI__SMALL_CLUSTER;
    alone = ceil(blocks / at_once) * block;
    beside = ceil(blocks) * shape->warps * (GPI__SMALL_WARP + steps * GPI__SMALL_WARP_LOAD * loads);
    alone = alone > beside ? alone : beside;
    return (alone + gpi__small_sectors(context, problem, tiles)) / gpi__chip_of(context->arch)->megahertz +
           read + gpi__sums_microseconds(problem);
}

/* >>building */

/* The defines of a kernel of tiles, but for those of its own. */
static void gpi__append_tile_defines(gpi__text *text, const gpi__problem *problem, int scale_b, int tile_m,
                                     int tile_n, int unit_alpha) {
    gpi__append_epilogue_defines(text, problem, gpi__epilogue_is_aligned(problem), 0, scale_b);
    gpi__append(text, "#define GEMMEPI_INPUT %s\n#define GEMMEPI_UNIT_ALPHA %d\n",
                gpi__type_name(problem, GPI__A), unit_alpha);
    gpi__append(text, "#define GEMMEPI_TILE_M %d\n#define GEMMEPI_TILE_N %d\n", tile_m, tile_n);
}

/* problem: as gpi__small_problem has it */
static void gpi__append_small_defines(gpi__text *text, const gpi__problem *problem,
                                      const gpi__small_shape *shape, int unit_alpha) {
    gpi__append_tile_defines(text, problem, 0, shape->tile_m, shape->tile_n, unit_alpha);
    gpi__append(text, "#define GEMMEPI_ROWS %d\n#define GEMMEPI_COLUMNS %d\n", shape->rows, shape->columns);
    gpi__append(text, "#define GEMMEPI_WARPS %d\n#define GEMMEPI_PARTS %d\n", shape->warps, shape->parts);
    gpi__append_lines(text, problem);
}

/* What gemm_small.cu and gemm_outer.cu have in common: the kernel by its prologue, and what is behind it. */
static gemmepi_status gpi__finish_small(gemmepi_context *context, const gpi__problem *problem,
                                        const char *prologue, const char *parts, int is_outer,
                                        gpi__small *small) {
    gpi__product_kernel *kernel = &small->kernel;
    gemmepi_status status;
    char words[160];
    gpi__name_kernel(&kernel->launch, "gemmepi_%s_%s_%dx%d%s%s", is_outer ? "outer" : "small",
                     gpi__type_name(problem, GPI__A), kernel->tile_m, kernel->tile_n, parts,
                     gpi__name_of_epilogue(problem, problem->common, words));
    status = gpi__get_product_kernel(context, problem, is_outer ? "gemm_outer.cu" : "gemm_small.cu", prologue,
                                     is_outer ? "gemmepi_outer" : "gemmepi_small", &kernel->launch);
    return status ? status
                  : gpi__build_behind_kernel(context, problem, small->params.epilogue.row_tiles, kernel);
}

static gemmepi_status gpi__small_build(gemmepi_context *context, const gpi__problem *problem,
                                       const gpi__candidate *candidate, void *built) {
    gpi__problem own = gpi__small_problem(problem);
    gpi__small *small = (gpi__small *)built;
    const gpi__small_shape *shape = &gpi__small_shapes[candidate->shape];
    char prologue[2048];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gemmepi_status status;
    memset(small, 0, sizeof *small);
    gpi__start_kernel(shape->tile_m, shape->tile_n, candidate->unit_alpha, &small->kernel);
    status = gpi__lay_out_tiles(&own, 32 * shape->warps, shape->parts, &small->kernel, &small->params);
    if (status)
        return status;
    gpi__append_small_defines(&text, &own, shape, candidate->unit_alpha);
    return gpi__finish_small(context, problem, prologue, shape->parts > 1 ? "_parts" : "", 0, small);
}

/* >>in words */

static void gpi__explain_tiles(gpi__text *text, const void *built, const char *threads) {
    const gpi__product_kernel *kernel = (const gpi__product_kernel *)built;
    gpi__append(text, "  %s: product and epilogue, %u blocks of %u threads%s, tiles of %d x %d\n",
                kernel->launch.name, kernel->launch.blocks, kernel->launch.threads_x, threads, kernel->tile_m,
                kernel->tile_n);
    gpi__explain_behind_kernel(text, kernel, "");
}

static void gpi__small_explain(const gpi__problem *problem, const void *built, gpi__text *text) {
    (void)problem;
    gpi__explain_tiles(text, built, " that divide k");
}

/* >>the engine */

static double gpi__small_estimate(const gemmepi_context *context, const gpi__problem *problem,
                                  const gpi__candidate *candidate) {
    const gpi__small_shape *shape = &gpi__small_shapes[candidate->shape];
    gpi__problem own = gpi__small_problem(problem);
    return candidate->parts == 1 && gpi__small_shape_accepts(problem, shape, context->arch)
               ? gpi__small_microseconds(context, &own, shape)
               : GPI__NEVER;
}

/* GEMMEPI_NO_SM80 leaves out all kernels that are for 7.5 and later. */
GPI__ENGINE(small, GPI__HAS_SM80, 1, gpi__small_rule, gpi__small_varies, small, gpi__small_explain,
            gpi__run_tiles);

#endif
