/* The kernel of the route fused for small products, gemm_small.cu: where rows or columns are few, or all is. Its warps read A and B
   from memory themselves, each a part of k. TF32 is multiplied as F32. */
#ifndef GEMMEPI_PRODUCT_ENGINES_SMALL_H
#define GEMMEPI_PRODUCT_ENGINES_SMALL_H

#include "sm80.h"

#define GEMMEPI__SMALL_EDGE  16                 /* of so many rows or columns it takes any product, */
#define GEMMEPI__SMALL_PAIRS ((int64_t)1 << 22) /* of more those of so many multiplications in an item */

/* A way to cut the product up: its kernel is compiled for it. Columns are those of both halves. */
typedef struct gemmepi__small_shape {
    short tile_m, tile_n; /* of a block, and of each of its warps */
    short rows, columns;  /* of a lane; lanes that are left divide k */
    short warps;          /* of a block, which divide k, too */
    short parts;          /* blocks of a cluster, likewise */
} gemmepi__small_shape;

/* Tiles of less than eight columns are for products of no more. */
static const gemmepi__small_shape gemmepi__small_shapes[] = {
    {16, 16, 4, 4, 8, 1}, /* first the one for everything */
    {1, 8, 1, 2, 8, 1},   {2, 16, 2, 4, 8, 1}, {8, 16, 4, 4, 8, 1}, {8, 1, 2, 1, 8, 1},  {16, 4, 4, 4, 8, 1},
    {1, 64, 1, 8, 4, 1},  {1, 8, 1, 8, 4, 4},  {1, 8, 1, 8, 4, 8},  {64, 1, 8, 1, 4, 1}, {64, 1, 8, 1, 4, 8},
};

typedef struct gemmepi__small {
    gemmepi__small_shape shape;
    int applied; /* alpha is 1 and there is no C: compiled in */
    gemmepi__launch launch;
    gemmepi__plain_params params; /* all but pointers and scalars */
    size_t partial_bytes;         /* BGRAD: of the kernel's sums of a tile's rows */
    gemmepi__sums sums;
} gemmepi__small;

/* >>what may go there */

static const char *gemmepi__small_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
    int64_t columns = gemmepi__half_columns(problem);
    (void)context;
    if (gemmepi__is_of_weights(problem))
        return "a and b differ in dtype";
    if (gemmepi__is_fp8_product(problem))
        return "it does not multiply fp8";
    if (problem->m > GEMMEPI__SMALL_EDGE && columns > GEMMEPI__SMALL_EDGE &&
        (double)problem->m * (double)problem->n * (double)problem->k > (double)GEMMEPI__SMALL_PAIRS)
        return "it is for products of 16 rows or columns at most, or of at most 2^22 multiplications";
    if (gemmepi__leaves_states(problem))
        return "it leaves no states of rows for a formula's reductions";
    return problem->found_scale ? "it finds no scales of d" : gemmepi__half_group_rule(problem);
}

static const char *gemmepi__small_varies(const gemmepi__problem *problem) {
    (void)problem;
    return "BATCH_INVARIANT: its shapes divide k among more threads or fewer";
}

static int gemmepi__small_shape_takes(const gemmepi__problem *problem, const gemmepi__small_shape *shape,
                                      int arch) {
    int halves = gemmepi__halves_in(problem), tile_n = shape->tile_n / halves;
    return (shape->parts == 1 || gemmepi__chip_has(arch, GEMMEPI__CLUSTERS)) &&
           shape->columns % halves == 0 &&
           (tile_n % GEMMEPI__RUN == 0 || gemmepi__half_columns(problem) <= tile_n);
}

/* With an operand of one element a line, these side by side, as one that lies along k. */
static gemmepi__problem gemmepi__small_problem(const gemmepi__problem *problem) {
    gemmepi__problem own = *problem;
    int operand;
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++) {
        gemmepi__view *view = &own.views[operand];
        int along_k = operand == GEMMEPI__B; /* transposed where lines lie along k */
        if (view->transposed == along_k || view->length != 1 || view->ld != 1)
            continue;
        view->transposed = along_k;
        view->length = view->ld = problem->k;
        view->lines = 1;
    }
    return own;
}

/* >>how long it takes */

/* Cycles, fitted to some 2000 times of these shapes in CUDA graphs on H100s: of a launch; of a block, of each sum of a
   lane in it, and of the blocks of a cluster together; of a step of k, of each load of a lane in it, and of each sum. Then what a warp takes of its multiprocessor where others are there: in all, and of each load. */
#define GEMMEPI__SMALL_LAUNCH    240
#define GEMMEPI__SMALL_BLOCK     1700
#define GEMMEPI__SMALL_BLOCK_SUM 95
#define GEMMEPI__SMALL_CLUSTER   1900
#define GEMMEPI__SMALL_STEP      590
#define GEMMEPI__SMALL_LOAD      23
#define GEMMEPI__SMALL_SUM       18
#define GEMMEPI__SMALL_WARP      135
#define GEMMEPI__SMALL_WARP_LOAD 3.6

/* Of the time that memory takes to give the operands, which is not all behind the rest (lowered by hand, so that large operands go here
   and not to sm90, which took a quarter longer). */
#define GEMMEPI__SMALL_READ 0.43

/* Loads of a lane in a step. lines: of a lane, along m or n. Runs that begin anywhere are read as the two words that cover them. */
static double gemmepi__small_loads(const gemmepi__problem *problem, int operand, int lines) {
    const gemmepi__view *view = &problem->views[operand];
    int element = view->bits / 8, unit = gemmepi__copy_unit(problem, operand), depth = 16 / element;
    int along_k = (operand == GEMMEPI__B) == view->transposed, bytes = along_k ? 16 : lines * element;
    int runs = along_k ? lines : depth;
    return runs * (bytes > 2 * unit ? 2 : bytes > unit ? bytes / unit : 1);
}

/* Microseconds with a shape, roughly. */
static double gemmepi__small_microseconds(const gemmepi_context *context, const gemmepi__problem *problem,
                                          const gemmepi__small_shape *shape) {
    const gemmepi__view *views = problem->views;
    int64_t tiles = gemmepi__times(gemmepi__times(gemmepi__divide_up(problem->m, shape->tile_m),
                                                  gemmepi__divide_up(problem->n, shape->tile_n)),
                                   problem->batch);
    int halves = gemmepi__halves_in(problem), sums = shape->rows * shape->columns;
    int lanes = 32 / (shape->tile_m / shape->rows * (shape->tile_n / shape->columns));          /* along k */
    int depth = 128 / views[GEMMEPI__A].bits, at_once = shape->warps == 4 || sums <= 2 ? 3 : 1; /* blocks */
    double loads = gemmepi__small_loads(problem, GEMMEPI__A, shape->rows) +
                   halves * gemmepi__small_loads(problem, GEMMEPI__B, shape->columns / halves);
    double steps = ceil((double)problem->k / (lanes * shape->warps * shape->parts * depth));
    double blocks = (double)tiles * shape->parts / context->multiprocessors; /* of each */
    double block = GEMMEPI__SMALL_BLOCK + GEMMEPI__SMALL_BLOCK_SUM * sums;
    double read = GEMMEPI__SMALL_READ * (double)(views[GEMMEPI__A].bytes + views[GEMMEPI__B].bytes) /
                  gemmepi__memory_rate(context);
    double alone, beside;
    block +=
        steps * (GEMMEPI__SMALL_STEP + GEMMEPI__SMALL_LOAD * loads + GEMMEPI__SMALL_SUM * sums * depth / 8.0);
    if (shape->parts > 1)
        block += GEMMEPI__SMALL_CLUSTER;
    alone = ceil(blocks / at_once) * block;
    beside = ceil(blocks) * shape->warps * (GEMMEPI__SMALL_WARP + steps * GEMMEPI__SMALL_WARP_LOAD * loads);
    return (GEMMEPI__SMALL_LAUNCH + (alone > beside ? alone : beside)) /
               gemmepi__chip_of(context->arch)->megahertz +
           read + gemmepi__sums_microseconds(problem);
}

static void gemmepi__small_choose(const gemmepi_context *context, const gemmepi__problem *problem,
                                  gemmepi__candidate *candidate) {
    gemmepi__problem own = gemmepi__small_problem(problem);
    int i;
    for (i = 0; i < (int)GEMMEPI__COUNT(gemmepi__small_shapes); i++) {
        double time;
        if (i && !gemmepi__small_shape_takes(problem, &gemmepi__small_shapes[i], context->arch))
            continue;
        time = gemmepi__small_microseconds(context, &own, &gemmepi__small_shapes[i]);
        if (i && time >= candidate->microseconds)
            continue;
        candidate->shape = i;
        candidate->microseconds = time;
    }
}

/* >>building */

/* problem: as gemmepi__small_problem has it */
static void gemmepi__append_small_defines(gemmepi__text *text, const gemmepi__problem *problem,
                                          const gemmepi__small_shape *shape, int applied) {
    gemmepi__append_epilogue_defines(text, problem, gemmepi__epilogue_is_aligned(problem), 0, 0);
    gemmepi__append(text, "#define GEMMEPI_INPUT %s\n#define GEMMEPI_APPLIED %d\n",
                    gemmepi__type_name(problem, GEMMEPI__A), applied);
    gemmepi__append(text, "#define GEMMEPI_TILE_M %d\n#define GEMMEPI_TILE_N %d\n", shape->tile_m,
                    shape->tile_n);
    gemmepi__append(text, "#define GEMMEPI_ROWS %d\n#define GEMMEPI_COLUMNS %d\n", shape->rows,
                    shape->columns);
    gemmepi__append(text, "#define GEMMEPI_WARPS %d\n#define GEMMEPI_PARTS %d\n", shape->warps, shape->parts);
    gemmepi__append_lines(text, problem);
}

static gemmepi_status gemmepi__small_build(gemmepi_context *context, const gemmepi__problem *problem,
                                           const gemmepi__candidate *candidate, void *built) {
    gemmepi__problem own = gemmepi__small_problem(problem);
    gemmepi__small *small = (gemmepi__small *)built;
    const gemmepi__small_shape *shape = &gemmepi__small_shapes[candidate->shape];
    char prologue[1536], words[160];
    gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
    gemmepi_status status;
    memset(small, 0, sizeof *small);
    small->shape = *shape;
    small->applied = candidate->applied;
    status = gemmepi__lay_out_tiles(&own, shape->tile_m, shape->tile_n, 32 * shape->warps, &small->launch,
                                    &small->params);
    if (!status && small->launch.blocks > (unsigned)(INT_MAX / shape->parts))
        status = gemmepi__fail(GEMMEPI_UNSUPPORTED, "the result has more tiles than a grid has blocks");
    if (status)
        return status;
    small->launch.blocks *= (unsigned)shape->parts;
    small->partial_bytes = gemmepi__line_bytes(problem, small->params.epilogue.row_tiles);
    gemmepi__append_small_defines(&text, &own, shape, candidate->applied);
    gemmepi__name_kernel(&small->launch, "gemmepi_small_%s_%dx%d%s%s",
                         gemmepi__type_name(problem, GEMMEPI__A), shape->tile_m, shape->tile_n,
                         shape->parts > 1 ? "_parts" : "",
                         gemmepi__name_of_epilogue(problem, problem->common, words));
    status = gemmepi__get_product_kernel(context, problem, "gemm_small.cu", prologue, "gemmepi_small",
                                         &small->launch);
    if (!status && gemmepi__has(problem, GEMMEPI__ANY_BGRAD))
        status = gemmepi__build_sums(context, problem, small->params.epilogue.row_tiles, &small->sums);
    return status;
}

static void gemmepi__small_describe(const void *built, gemmepi__built_details *details) {
    const gemmepi__small *small = (const gemmepi__small *)built;
    details->launch = &small->launch;
    details->pass = NULL;
    details->sums = &small->sums;
    details->tile_m = small->shape.tile_m;
    details->tile_n = small->shape.tile_n;
    details->workspace_size = gemmepi__round_up(small->partial_bytes, 256) + small->sums.partial_bytes;
}

/* >>running, and in words */

/* The primary context is current. */
static gemmepi_status gemmepi__small_run(const gemmepi_context *context, const gemmepi__problem *problem,
                                         const void *built, const gemmepi__arguments *arguments,
                                         char *workspace, gemmepi_stream stream) {
    const gemmepi__small *small = (const gemmepi__small *)built;
    gemmepi__plain_params params = small->params;
    gemmepi_status status = gemmepi__clear_amax(context, problem, arguments, stream);
    gemmepi__point_epilogue(arguments, small->applied, workspace, &params.epilogue, params.extras,
                            params.places);
    params.a.data = arguments->pointers[GEMMEPI__A];
    params.b.data = arguments->pointers[GEMMEPI__B];
    if (!status)
        status = gemmepi__launch_kernel(context, &small->launch, &params, "the product", stream);
    if (!status)
        status = gemmepi__run_sums(context, &small->sums, arguments, workspace,
                                   gemmepi__past(workspace, small->partial_bytes), stream);
    return status;
}

static void gemmepi__small_explain(const gemmepi__problem *problem, const void *built, gemmepi__text *text) {
    const gemmepi__small *small = (const gemmepi__small *)built;
    (void)problem;
    gemmepi__append(text,
                    "  %s: product and epilogue, %u blocks of %u threads that divide k, tiles of %d x %d\n",
                    small->launch.name, small->launch.blocks, small->launch.threads_x, small->shape.tile_m,
                    small->shape.tile_n);
    gemmepi__explain_sums(text, &small->sums);
}

/* >>the engine */

static double gemmepi__small_estimate(const gemmepi_context *context, const gemmepi__problem *problem,
                                      const gemmepi__candidate *candidate) {
    const gemmepi__small_shape *shape = &gemmepi__small_shapes[candidate->shape];
    gemmepi__problem own = gemmepi__small_problem(problem);
    return candidate->parts == 1 && gemmepi__small_shape_takes(problem, shape, context->arch)
               ? gemmepi__small_microseconds(context, &own, shape)
               : GEMMEPI__NEVER;
}

static void gemmepi__small_tile(const gemmepi__candidate *candidate, int *tile_m, int *tile_n) {
    *tile_m = gemmepi__small_shapes[candidate->shape].tile_m;
    *tile_n = gemmepi__small_shapes[candidate->shape].tile_n;
}

/* GEMMEPI_NO_SM80 leaves out all kernels that are for 8.0 and later. */
static const gemmepi__engine gemmepi__small_engine = {"small",
                                                      GEMMEPI__HAS_SM80,
                                                      1,
                                                      gemmepi__small_rule,
                                                      gemmepi__small_varies,
                                                      gemmepi__small_choose,
                                                      GEMMEPI__COUNT(gemmepi__small_shapes),
                                                      gemmepi__small_estimate,
                                                      gemmepi__small_tile,
                                                      GEMMEPI__HAS_SM80 ? gemmepi__small_build : NULL,
                                                      gemmepi__small_describe,
                                                      gemmepi__small_explain,
                                                      GEMMEPI__HAS_SM80 ? gemmepi__small_run : NULL};

#endif
