/* The kernels of the route fused for rows of BF16 or F16 and weights of few bits, gemm_weights.cu and on Hopper gemm_weights_sm90.cu: they
   read the weights as they are stored, in I8 with scales, or in 4 or 8 bits of which a text makes 16 (weights_made.h), so that memory gives a half
   or a fourth of what it would of 16 bits. They take weights that are contiguous along k, as nn.Linear has them, and A's rows likewise. */
#ifndef GEMMEPI_PRODUCT_ENGINES_WEIGHTS_H
#define GEMMEPI_PRODUCT_ENGINES_WEIGHTS_H

#include "weights_made.h"
#include "small.h"
#include "sm90.h"

#define GPI__WEIGHTS_SCALES 1024 /* bytes of a stage where scales change along k */
#define GPI__WEIGHTS_STAGES 12   /* at most */
#define GPI__WEIGHTS_WARPS  8    /* that multiply */

/* A way to cut the product up: its kernel is compiled for it. Columns are those of both halves. A stage has 16 KiB of weights, and a
   multiprocessor one block, with as many stages as it has room for: of two the launch behind would find room where one has ended, and
   leave other multiprocessors without. Weights of 4 bits are slower to make than to load: of two blocks one makes them while the other
   begins or ends. */
typedef struct gpi__weights_shape {
    short tile_m, tile_n,
        warps_n;  /* of the warps those that divide the columns, 16 or 32 each; the others divide k */
    short parts;  /* blocks of a cluster, which divide k */
    short blocks; /* of a multiprocessor */
    short wgmma;  /* 1: gemm_weights_sm90.cu; 0: gemm_weights.cu, by mma.sync */
} gpi__weights_shape;

/* Wide tiles read A less often, narrow ones are as many as multiprocessors. */
static const gpi__weights_shape gpi__weights_shapes[] = {
    {8, 32, 1, 1, 1, 0},    {8, 32, 1, 1, 2, 0},    {8, 32, 1, 2, 1, 0},    {8, 32, 1, 2, 2, 0},
    {8, 64, 2, 1, 1, 0},    {8, 128, 4, 1, 1, 0},   {16, 32, 1, 1, 1, 0},   {16, 32, 1, 2, 2, 0},
    {16, 64, 2, 1, 1, 0},   {16, 64, 2, 1, 2, 0},   {16, 128, 4, 1, 1, 0},  {32, 64, 2, 1, 1, 0},
    {32, 64, 2, 2, 1, 0},   {32, 128, 4, 1, 1, 0},  {64, 128, 4, 1, 1, 0},  {32, 64, 4, 4, 1, 1},
    {64, 64, 4, 1, 1, 1},   {64, 64, 4, 2, 1, 1},   {64, 64, 4, 4, 1, 1},   {64, 128, 8, 1, 1, 1},
    {64, 128, 8, 2, 1, 1},  {128, 128, 8, 1, 1, 1}, {128, 128, 8, 2, 1, 1}, {256, 128, 8, 1, 1, 1},
    {256, 128, 8, 2, 1, 1},
};

typedef struct gpi__weights {
    gpi__product_kernel kernel;
    gpi__weights_shape shape;
    int stages;
    gpi__weights_params
        params; /* all but pointers and scalars; gemm_weights.cu takes what is plain of them */
} gpi__weights;

/* >>what may go there */

/* The text that makes B in registers of what is stored, or NULL. */
static const gpi__kept_formula *gpi__made_b(const gpi__problem *problem) {
    return GPI__FORMULA(&problem->made[GPI__B]);
}

/* Of k, that a warp has of a stage, and a stage. */
static int gpi__weights_slice(const gpi__problem *problem, const gpi__weights_shape *shape) {
    if (shape->wgmma)
        return shape->tile_m < 128 ? 128 : 64;
    return problem->views[GPI__B].bits == 4 ? 128 : 64;
}

static int gpi__weights_step(const gpi__problem *problem, const gpi__weights_shape *shape) {
    return GPI__WEIGHTS_WARPS / shape->warps_n * gpi__weights_slice(problem, shape);
}

/* Bytes of A in a stage, of the weights' scales, and of a stage. */
static unsigned gpi__weights_bytes_of_a(const gpi__problem *problem, const gpi__weights_shape *shape) {
    return (unsigned)(2 * shape->tile_m * gpi__weights_step(problem, shape));
}

static unsigned gpi__weights_bytes_of_scales(const gpi__problem *problem, const gpi__weights_shape *shape) {
    if (gpi__made_b(problem))
        return gpi__made_bytes(gpi__made_b(problem), gpi__weights_step(problem, shape), shape->tile_n);
    return gpi__scale_varies_along_k(problem, GPI__B) ? GPI__WEIGHTS_SCALES : 0;
}

static unsigned gpi__weights_stage(const gpi__problem *problem, const gpi__weights_shape *shape) {
    int bytes = shape->tile_n * gpi__weights_step(problem, shape) * problem->views[GPI__B].bits / 8;
    return gpi__weights_bytes_of_a(problem, shape) + (unsigned)bytes +
           gpi__weights_bytes_of_scales(problem, shape);
}

#define GPI__WEIGHTS_BESIDE      (20u << 10)  /* bytes of shared memory that are left to the sums of BGRAD */
#define GPI__WEIGHTS_MOST_SHARED (128u << 10) /* that a block may have at least */

static int gpi__weights_stages(const gpi__problem *problem, const gpi__weights_shape *shape, int arch) {
    int may_sum = shape->blocks == 1 || problem->views[GPI__BIAS_GRAD].dtype;
    unsigned room = (gpi__chip_of(arch)->most_shared + GPI__BLOCK_SHARED) / (unsigned)shape->blocks -
                    GPI__BLOCK_SHARED - (may_sum ? GPI__WEIGHTS_BESIDE : GPI__BLOCK_SHARED);
    unsigned stages = room / gpi__weights_stage(problem, shape);
    return stages < GPI__WEIGHTS_STAGES ? (int)stages : GPI__WEIGHTS_STAGES;
}

/* Why it does not make what is multiplied of what is stored, or NULL. */
static const char *gpi__weights_types_rule(const gpi__problem *problem) {
    const gpi__kept_formula *made = gpi__made_b(problem);
    if (!gpi__is_of_weights(problem))
        return "it is for b in I8, or in 4 or 8 bits with a formula, and a in BF16 or F16";
    if (!made)
        return NULL;
    if (problem->made[GPI__B].view.dtype != problem->views[GPI__A].dtype || problem->views[GPI__B].scale ||
        problem->views[GPI__A].scale)
        return "b's formula makes another type than a's, or a or b has a scale beside it";
    return gpi__made_rule(made, problem->alignment);
}

static const char *gpi__weights_rule(const gemmepi_context *context, const gpi__problem *problem) {
    const char *rule = gpi__weights_types_rule(problem);
    if (rule)
        return rule;
    if (problem->views[GPI__A].transposed || !problem->views[GPI__B].transposed)
        return "its operands are contiguous along k: a is stored [m, k], b [n, k]";
    if (gpi__copy_unit(problem, GPI__A) < 16 || gpi__copy_unit(problem, GPI__B) < 16)
        return "it copies a and b at multiples of 16 bytes only: their pointers, lines and items";
    if (gpi__chip_of(context->arch)->most_shared < GPI__WEIGHTS_MOST_SHARED)
        return "a block of its kernel needs up to 128 KiB of shared memory";
    if (problem->found_scale)
        return "it finds no scales of d";
    if (gpi__leaves_states(problem))
        return "it leaves no states of rows for a formula's reductions";
    return gpi__half_group_rule(problem);
}

static const char *gpi__weights_varies(const gpi__problem *problem) {
    (void)problem;
    return "BATCH_INVARIANT: its shapes divide k among more warps or fewer";
}

/* Whether two blocks on a multiprocessor, whose threads have 128 registers each, were the faster: of weights that are made of 4 bits, whose
   groups are no less than what a warp has of k. Operands in F32 take three registers where others take one, those in F16 next to A in BF16
   two: with more than three the kernel spills. */
static int gpi__has_two_blocks(const gpi__problem *problem) {
    const gpi__kept_formula *made = gpi__made_b(problem);
    int i, registers = 0;
    if (!made || problem->views[GPI__B].bits != 4 || (gpi__made_group(made) && gpi__made_group(made) < 128))
        return 0;
    for (i = 0; i < made->placed.formula->operand_count; i++) {
        const gpi__formula_operand *o = &made->placed.formula->operands[i];
        int is_sum = o->dtype == GEMMEPI_F16 && problem->views[GPI__A].dtype == GEMMEPI_BF16;
        registers += !gpi__is_copied(o) ? 0 : o->dtype == GEMMEPI_F32 ? 3 : 1 + is_sum;
    }
    return registers <= 3;
}

/* Blocks of a cluster have a run of a tile's columns each, and something to add up. */
static int gpi__weights_shape_accepts(const gpi__problem *problem, const gpi__weights_shape *shape,
                                      int arch) {
    if (shape->wgmma && (!gpi__chip_has(arch, GPI__WGMMA) || !GPI__HAS_SM90 || gpi__loads_rule(problem)))
        return 0;
    if (shape->tile_m > 64 && !gpi__made_b(problem) && gpi__scale_varies_along_k(problem, GPI__B))
        return 0; /* registers have no second sums of each element */
    if (shape->blocks > 1 && (!gpi__has_two_blocks(problem) || gpi__weights_stages(problem, shape, arch) < 2))
        return 0;
    if (shape->parts == 1)
        return 1;
    return gpi__chip_has(arch, GPI__CLUSTERS) &&
           shape->tile_n / gpi__halves_in(problem) / shape->parts >= GPI__RUN &&
           problem->k >= (int64_t)shape->parts * gpi__weights_step(problem, shape);
}

/* >>how long it takes */

/* Blocks that there is room for; of all tiles; and those of them that run at once. */
static int64_t gpi__weights_resident(const gemmepi_context *context, const gpi__weights_shape *shape) {
    return shape->blocks * gpi__resident_blocks(context, shape->parts);
}

static int64_t gpi__weights_blocks(const gpi__problem *problem, const gpi__weights_shape *shape) {
    int64_t tiles = gpi__times(
        gpi__times(gpi__divide_up(problem->m, shape->tile_m), gpi__divide_up(problem->n, shape->tile_n)),
        problem->batch);
    return gpi__times(tiles, shape->parts);
}

static int64_t gpi__weights_at_once(const gemmepi_context *context, const gpi__problem *problem,
                                    const gpi__weights_shape *shape) {
    int64_t blocks = gpi__weights_blocks(problem, shape), resident = gpi__weights_resident(context, shape);
    return blocks < resident ? blocks : resident;
}

/* How much longer it takes to make weights than to widen them, with the kernels' cycles for as many bytes. */
static double gpi__weights_made_factor(const gpi__problem *problem, const gpi__weights_shape *shape) {
    const gpi__kept_formula *made = gpi__made_b(problem);
    gpi__made_form form;
    double factor;
    if (!made)
        return 1;
    form = gpi__made_form_of(made->placed.formula);
    factor = form.form == 1 ? 1 : form.form == 2 ? GPI__MADE_ZERO : GPI__MADE_OTHER;
    if (shape->wgmma)
        return factor;
    return factor * (problem->views[GPI__B].bits == 4 ? GPI__MADE_BITS : GPI__MADE_OTHER);
}

/* Cycles of a stage's multiplications. */
static double gpi__weights_work(const gpi__problem *problem, const gpi__weights_shape *shape) {
    double factor = gpi__weights_made_factor(problem, shape);
    if (shape->wgmma && shape->tile_m > 64)
        return factor * (GPI__WGMMA_LARGE_STEP + GPI__WGMMA_LARGE_ROW * shape->tile_m);
    return factor * (shape->wgmma ? GPI__WGMMA_STEP + GPI__WGMMA_ROW * shape->tile_m
                                  : GPI__WEIGHTS_STEP + GPI__WEIGHTS_ROW * shape->tile_m);
}

/* And of its loads, beside those of the other blocks. */
static double gpi__weights_load(const gemmepi_context *context, const gpi__problem *problem,
                                const gpi__weights_shape *shape) {
    double at_once = (double)gpi__weights_at_once(context, problem, shape);
    unsigned stage = gpi__weights_stage(problem, shape);
    if (shape->wgmma)
        return (stage - gpi__weights_bytes_of_a(problem, shape)) * at_once *
               gpi__chip_of(context->arch)->megahertz / gpi__memory_rate(context);
    return stage * at_once / (GPI__WEIGHTS_RATE * context->multiprocessors);
}

/* Microseconds with a shape, roughly. */
static double gpi__weights_microseconds(const gemmepi_context *context, const gpi__problem *problem,
                                        const gpi__weights_shape *shape) {
    int64_t blocks = gpi__weights_blocks(problem, shape);
    double waves = (double)gpi__divide_up(blocks, gpi__weights_resident(context, shape));
    double steps =
        (double)gpi__divide_up(gpi__divide_up(problem->k, gpi__weights_step(problem, shape)), shape->parts);
    double load = gpi__weights_load(context, problem, shape);
    double share = (double)gpi__weights_at_once(context, problem, shape) / context->multiprocessors;
    double work = gpi__weights_work(problem, shape) * (share > 1 ? 1 + GPI__WEIGHTS_TWO * (share - 1) : 1);
    double wave =
        shape->wgmma ? GPI__WGMMA_WAVE : GPI__WEIGHTS_WAVE * (shape->blocks > 1 ? GPI__WEIGHTS_TWO : 1);
    double cycles = waves * (wave + steps * (work > load ? work : load));
    if (shape->parts > 1)
        cycles += waves * shape->parts * (shape->wgmma ? GPI__WGMMA_MEET : GPI__WEIGHTS_MEET);
    if (shape->wgmma && !gpi__made_b(problem) && problem->m <= 32 && (shape->tile_m > 32 || waves > 1))
        cycles *= GPI__WGMMA_FEW;
    return cycles / gpi__chip_of(context->arch)->megahertz + gpi__sums_microseconds(problem);
}

/* >>building */

/* All that is before the kernel's text. */
static void gpi__append_weights_prologue(gpi__text *text, const gpi__problem *problem,
                                         const gpi__weights_shape *shape, int stages, int unit_alpha) {
    gpi__append_tile_defines(text, problem, problem->views[GPI__B].scale, shape->tile_m, shape->tile_n,
                             unit_alpha);
    gpi__append(text, "#define GEMMEPI_WARPS_N %d\n#define GEMMEPI_PARTS %d\n", shape->warps_n, shape->parts);
    gpi__append(text, "#define GEMMEPI_STAGES %d\n#define GEMMEPI_BLOCKS %d\n", stages, shape->blocks);
    if (gpi__made_b(problem))
        gpi__append_made(text, gpi__made_b(problem), problem->views[GPI__B].dtype,
                         problem->views[GPI__A].dtype);
}

static void gpi__name_weights(const gpi__problem *problem, gpi__weights *weights) {
    static const char *const scales[] = {"", "", "", "_vector_128", "_block_128"};
    const gpi__weights_shape *shape = &weights->shape;
    char words[160];
    gpi__name_kernel(
        &weights->kernel.launch, "gemmepi_weights_%s_%s%s_%s%dx%d%s%s", gpi__type_name(problem, GPI__A),
        gpi__made_b(problem) ? gpi__type(problem->views[GPI__B].dtype) : "i8",
        gpi__made_b(problem) ? "_made" : scales[problem->views[GPI__B].scale], shape->wgmma ? "wgmma_" : "",
        shape->tile_m, shape->tile_n, shape->parts > 1 ? "_parts" : "",
        gpi__name_of_epilogue(problem, problem->common, words));
}

static gemmepi_status gpi__get_weights_kernel(gemmepi_context *context, const gpi__problem *problem,
                                              gpi__weights *weights) {
    const gpi__weights_shape *shape = &weights->shape;
    gpi__text text = gpi__growing_text(&context->allocator);
    gemmepi_status status = GEMMEPI_OUT_OF_MEMORY;
    gpi__append_weights_prologue(&text, problem, shape, weights->stages, weights->kernel.unit_alpha);
    gpi__name_weights(problem, weights);
    if (text.data)
        status = gpi__get_product_kernel(context, problem,
                                         shape->wgmma ? "gemm_weights_sm90.cu" : "gemm_weights.cu", text.data,
                                         "gemmepi_weights", &weights->kernel.launch);
    gpi__delete(&context->allocator, text.data);
    return status;
}

/* Whether weights for the first stages are brought to L2 while launches ahead end. On an H100, in graphs, a product takes 0.94 of the time
   so where k is long, and about 0.86 where few blocks leave multiprocessors to the next launch, but up to 1.09 where the ring has most
   of k. */
static int gpi__weights_are_ahead(const gemmepi_context *context, const gpi__problem *problem,
                                  const gpi__weights *weights) {
    int64_t step = (int64_t)gpi__weights_step(problem, &weights->shape) * weights->shape.parts;
    return gpi__chip_has(context->arch, GPI__OVERLAPS) &&
           (2 * (int64_t)weights->kernel.launch.blocks <= context->multiprocessors ||
            problem->k >= 2 * step * (weights->stages - 1));
}

/* What TMA loads. */
static gemmepi_status gpi__weights_maps(const gemmepi_context *context, const gpi__problem *problem,
                                        gpi__weights *weights) {
    const gpi__view *a = &problem->views[GPI__A], *b = &problem->views[GPI__B];
    int line = gpi__weights_slice(problem, &weights->shape) * b->bits / 8;
    int columns = weights->shape.tile_n / gpi__halves_in(problem), result;
    int rows = problem->m < weights->shape.tile_m ? (int)problem->m : weights->shape.tile_m;
    weights->params.a_items = problem->batch > 1 && a->batch_stride != 0;
    weights->params.b_items = problem->batch > 1 && b->batch_stride != 0;
    weights->params.a_bytes = (unsigned)(2 * rows * gpi__weights_step(problem, &weights->shape));
    result = gpi__map_boxes(&context->driver, problem, a, GPI__SM90_LINE, rows, &weights->params.a);
    if (!result)
        result = gpi__map_boxes(&context->driver, problem, b, line, columns, &weights->params.b);
    return result ? gpi__cuda_failed(&context->driver, result, "cuTensorMapEncodeTiled") : GEMMEPI_OK;
}

/* Threads that load: as the kernel has them. */
static unsigned gpi__weights_loaders(const gpi__problem *problem, const gpi__weights_shape *shape) {
    if (!shape->wgmma)
        return 0;
    return shape->tile_m > 128 || (gpi__made_b(problem) && gpi__weights_bytes_of_scales(problem, shape)) ? 128
                                                                                                         : 32;
}

static gemmepi_status gpi__weights_build(gemmepi_context *context, const gpi__problem *problem,
                                         const gpi__candidate *candidate, void *built) {
    gpi__weights *weights = (gpi__weights *)built;
    const gpi__weights_shape *shape = &gpi__weights_shapes[candidate->shape];
    gemmepi_status status;
    memset(weights, 0, sizeof *weights);
    weights->shape = *shape;
    weights->stages = gpi__weights_stages(problem, shape, context->arch);
    gpi__start_kernel(shape->tile_m, shape->tile_n, candidate->unit_alpha, &weights->kernel);
    status = gpi__lay_out_tiles(problem, 32 * GPI__WEIGHTS_WARPS, shape->parts, &weights->kernel,
                                &weights->params.plain);
    if (!status && shape->wgmma)
        status = gpi__weights_maps(context, problem, weights);
    if (status)
        return status;
    weights->kernel.launch.threads_x += gpi__weights_loaders(problem, shape);
    weights->params.plain.ahead = gpi__weights_are_ahead(context, problem, weights);
    weights->kernel.launch.shared = (unsigned)weights->stages * gpi__weights_stage(problem, shape);
    if (gpi__made_b(problem))
        gpi__fill_made(gpi__made_b(problem), weights->params.made);
    status = gpi__get_weights_kernel(context, problem, weights);
    return status ? status
                  : gpi__build_behind_kernel(context, problem, weights->params.plain.epilogue.row_tiles,
                                             &weights->kernel);
}

/* >>running, and in words */

/* The primary context is current. */
static gemmepi_status gpi__weights_run(const gemmepi_context *context, const gpi__problem *problem,
                                       const void *built, const gpi__arguments *arguments, char *workspace,
                                       gemmepi_stream stream) {
    const gpi__weights *weights = (const gpi__weights *)built;
    uint64_t space[(sizeof(gpi__weights_params) + 128) / sizeof(uint64_t)];
    gpi__weights_params *params = (gpi__weights_params *)(((uintptr_t)space + 63) & ~(uintptr_t)63);
    gemmepi_status status = gpi__clear_amax(context, problem, arguments, stream);
    int result = 0;
    memcpy(params, &weights->params, sizeof *params);
    gpi__point_epilogue(arguments, weights->kernel.unit_alpha, &params->plain.epilogue, params->plain.places);
    gpi__point_states(&weights->kernel.sums, workspace, params->plain.places);
    params->plain.a.data = arguments->pointers[GPI__A];
    params->plain.b.data = arguments->pointers[GPI__B];
    if (gpi__made_b(problem))
        gpi__point_made(gpi__made_b(problem), arguments->operands, arguments->numbers, params->made);
    if (!status && weights->shape.wgmma)
        result = gpi__point_map(&context->driver, &params->a, params->plain.a.data);
    if (!status && weights->shape.wgmma && !result)
        result = gpi__point_map(&context->driver, &params->b, params->plain.b.data);
    if (result)
        return gpi__cuda_failed(&context->driver, result, "cuTensorMapReplaceAddress");
    return status
               ? status
               : gpi__run_product_kernel(
                     context, &weights->kernel,
                     weights->shape.wgmma || gpi__made_b(problem) ? (void *)params : (void *)&params->plain,
                     arguments, workspace, stream);
}

static void gpi__weights_explain(const gpi__problem *problem, const void *built, gpi__text *text) {
    const gpi__weights *weights = (const gpi__weights *)built;
    gpi__append(
        text, "  %s: product and epilogue, weights %s, %u blocks of %u threads, tiles of %d x %d, %d stages",
        weights->kernel.launch.name,
        gpi__made_b(problem) ? "made of b's formula in registers" : "read as bytes",
        weights->kernel.launch.blocks, weights->kernel.launch.threads_x, weights->shape.tile_m,
        weights->shape.tile_n, weights->stages);
    if (weights->shape.parts > 1)
        gpi__append(text, ", each by %d blocks that divide k", weights->shape.parts);
    gpi__append(text, "\n");
    gpi__explain_behind_kernel(text, &weights->kernel, "");
}

/* >>the engine */

static double gpi__weights_estimate(const gemmepi_context *context, const gpi__problem *problem,
                                    const gpi__candidate *candidate) {
    const gpi__weights_shape *shape = &gpi__weights_shapes[candidate->shape];
    return candidate->parts == 1 && gpi__weights_shape_accepts(problem, shape, context->arch)
               ? gpi__weights_microseconds(context, problem, shape)
               : GPI__NEVER;
}

/* GEMMEPI_NO_SM80 leaves out all kernels that are for 7.5 and later. */
GPI__ENGINE(weights, GPI__HAS_SM80, 1, gpi__weights_rule, gpi__weights_varies, weights, gpi__weights_explain,
            gpi__weights_run);

#endif
