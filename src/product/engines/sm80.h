/* The second kernel of the route fused, gemm_sm80.cu: from Turing on, and on Hopper for F32, for what TMA does not take and where
   it takes less time. */
#ifndef GEMMEPI_PRODUCT_ENGINES_SM80_H
#define GEMMEPI_PRODUCT_ENGINES_SM80_H

#include "block_scales.h"
#include "sm90_fp8.h"

#define GPI__SM80_LINE        128    /* gemm_sm80.cu: bytes of k of a stage */
#define GPI__NVRTC_HAS_SCALED 12080  /* PTX 8.7 */
#define GPI__MOST_I8_SUM      131071 /* products of at most 2^14 in I32 */

/* A way to cut the product up: its kernel is compiled for it. */
typedef struct gpi__sm80_shape {
    short tile_m, tile_n, warps_m, warps_n, stages;
    short blocks; /* for so many of a multiprocessor registers are shared out */
    short unit;   /* bytes: less at a time to copy would take more registers than there are */
    short kinds;  /* that gain by it, or that it has registers for */
} gpi__sm80_shape;

/* How the kernel multiplies: with mma.sync, or strict F32 by fused multiply-adds. fp8 with FAST_ACCUMULATION is as 16 bits. OF_F16_SUMS is of
   COMPUTE_F16, which may also be as 16 bits: the rates decide. */
enum {
    GPI__OF_16_BITS = 1,
    GPI__OF_TF32 = 2,
    GPI__OF_F32 = 4,
    GPI__OF_FP8 = 8,
    GPI__OF_ALL = 15,
    GPI__OF_F16_SUMS = 16
};

/* Lines along m of 16 bits are of 64 elements; strict F32, fp8 and sums in F16 have two sums of each element in registers. */
static const gpi__sm80_shape gpi__sm80_shapes[] = {
    {64, 128, 2, 2, 3, 2, 2, GPI__OF_ALL}, /* first the one for everything */
    {128, 128, 2, 2, 3, 2, 16, GPI__OF_16_BITS | GPI__OF_TF32},
    {128, 256, 2, 4, 3, 1, 8, GPI__OF_16_BITS | GPI__OF_TF32},
    {64, 64, 2, 2, 4, 3, 2, GPI__OF_ALL},
    {32, 64, 2, 2, 4, 3, 4, GPI__OF_TF32 | GPI__OF_F32 | GPI__OF_FP8},
    {128, 128, 2, 4, 3, 1, 16, GPI__OF_F32 | GPI__OF_FP8},
    {64, 128, 2, 2, 3, 2, 2, GPI__OF_F16_SUMS},
    {128, 128, 4, 2, 3, 1, 8, GPI__OF_F16_SUMS},
    {64, 64, 2, 2, 4, 3, 2, GPI__OF_F16_SUMS},
};

/* How a problem is cut up: into tiles, and k into parts. */
typedef struct gpi__sm80_cut {
    const gpi__sm80_shape *shape;
    int parts; /* more than one: their sums go to workspace, and the pass adds them up and finishes */
} gpi__sm80_cut;

typedef struct gpi__sm80 {
    gpi__product_kernel kernel;
    gpi__sm80_shape shape;
    int parts;
    int arch;                    /* the chip's */
    int staged;                  /* what leaves by way of shared memory: bits 1 D, 2 AUX */
    int copied;                  /* in words, as it does not lie at multiples of 16 bytes */
    gpi__block_scales scales[2]; /* of A and B, where it multiplies by them */
    gpi__sm80_params params;     /* all but pointers and scalars */
} gpi__sm80;

/* >>what may go there */

/* Why the kernel does not take a product of I8, or NULL. On Hopper cuBLASLt was not compared with it. */
static const char *gpi__i8_engines_rule(const gpi__problem *problem) {
    if (problem->accumulator != GEMMEPI_F32)
        return "its kernel for I8 has results of F32 sums, and d is I32";
    if (gpi__is_invariant(problem))
        return "with BATCH_INVARIANT its kernel is not for I8";
    if (gpi__scale_varies_along_k(problem, GPI__A) || gpi__scale_varies_along_k(problem, GPI__B))
        return "its kernel for I8 has no scales that vary along k";
    return problem->k > GPI__MOST_I8_SUM ? "sums of more than 131071 products of I8 may pass I32"
                                         : gpi__extents_rule(problem);
}

/* The rule that keeps a problem from every engine, or NULL. What gemm_sm90.cu takes this kernel takes, too. */
static const char *gpi__engines_rule(const gemmepi_context *context, const gpi__problem *problem) {
    const gpi__view *a = &problem->views[GPI__A], *b = &problem->views[GPI__B];
    if (!gpi__chip_has(context->arch, GPI__MMA_F16))
        return "its kernels are for compute capability 7.5 and later";
    if (gpi__is_scaled_product(problem))
        return gpi__scaled_rule(context, problem);
    if (gpi__is_fp8_product(problem))
        return gpi__fp8_engines_rule(context, problem);
    if (gpi__is_i8_product(problem) && !gpi__chip_has(context->arch, GPI__WGMMA))
        return gpi__i8_engines_rule(problem);
    if (gpi__is_of_weights(problem))
        return gpi__is_invariant(problem)
                   ? "BATCH_INVARIANT: the kernel for weights in I8 divides k among more warps or fewer"
                   : gpi__extents_rule(problem);
    if (a->dtype != b->dtype ||
        (a->dtype != GEMMEPI_BF16 && a->dtype != GEMMEPI_F16 && a->dtype != GEMMEPI_F32))
        return "a and b are not both BF16, both F16, both F32 or both of fp8, nor b weights in I8 and a BF16 or F16";
    return gpi__extents_rule(problem);
}

/* Our kernels read the halves of a gated B each by itself. */
static int gpi__copy_unit(const gpi__problem *problem, int operand) {
    const gpi__view *view = &problem->views[operand];
    int has_halves = operand == GPI__B && gpi__halves_in(problem) > 1 && !view->transposed;
    return gpi__unit_of(problem, view, has_halves ? gpi__half_columns(problem) * view->bits / 8 : 0);
}

/* Without cp.async the next stage comes through registers, and no more than that one is on its way. */
static int gpi__sm80_stages(const gpi__sm80_shape *shape, int arch) {
    return gpi__chip_has(arch, GPI__MMA_SYNC) ? shape->stages : 2;
}

static unsigned gpi__sm80_shared(const gpi__problem *problem, const gpi__sm80_shape *shape, int arch) {
    int line = GPI__SM80_LINE + gpi__block_scales_bytes(problem);
    return (unsigned)((shape->tile_m + shape->tile_n) * line * gpi__sm80_stages(shape, arch));
}

static int gpi__sm80_kind(const gpi__problem *problem) {
    return gpi__promotes(problem)           ? GPI__OF_FP8
           : problem->common != GEMMEPI_F32 ? GPI__OF_16_BITS
           : gpi__is_tf32(problem)          ? GPI__OF_TF32
                                            : GPI__OF_F32;
}

static int gpi__is_fma(const gpi__problem *problem) {
    return gpi__sm80_kind(problem) == GPI__OF_F32;
}

/* Whether fp8 becomes F16 in registers. */
static int gpi__goes_by_f16(const gpi__problem *problem, int arch) {
    return gpi__is_fp8_product(problem) && !gpi__is_scaled_product(problem) &&
           gpi__chip_has(arch, GPI__FP8_BY_F16);
}

static int gpi__has_f16_sums(const gpi__sm80_shape *shape) {
    return (shape->kinds & GPI__OF_F16_SUMS) != 0;
}

/* Whether the shape multiplies so. COMPUTE_F16 with BATCH_INVARIANT has sums of one kind, whatever the tile. */
static int gpi__sm80_multiplies(const gpi__problem *problem, const gpi__sm80_shape *shape, int arch) {
    const gpi__chip *chip = gpi__chip_of(arch);
    int is_f16 = problem->views[GPI__A].dtype == GEMMEPI_F16 && problem->views[GPI__B].dtype == GEMMEPI_F16;
    if (problem->compute != GEMMEPI_COMPUTE_F16 || !is_f16 ||
        !(shape->kinds & (GPI__OF_16_BITS | GPI__OF_F16_SUMS)))
        return (shape->kinds & gpi__sm80_kind(problem)) != 0;
    return !gpi__is_invariant(problem) || gpi__has_f16_sums(shape) == (chip->mma_f16 > chip->mma);
}

static int gpi__sm80_shape_accepts(const gpi__problem *problem, const gpi__sm80_shape *shape, int arch) {
    int halves = gpi__halves_in(problem), unit = gpi__copy_unit(problem, GPI__A);
    if (unit > gpi__copy_unit(problem, GPI__B))
        unit = gpi__copy_unit(problem, GPI__B);
    if (shape->tile_n / halves / shape->warps_n % 32)
        return 0; /* a warp's runs are of 32 columns, of both halves */
    if (!gpi__has_whole_states(problem, shape->tile_n / halves / shape->warps_n))
        return 0;
    if (halves > 1 && !problem->views[GPI__B].transposed && shape->tile_n / halves % 64)
        return 0; /* lines of 64 along n are of one half */
    if (!gpi__sm80_multiplies(problem, shape, arch))
        return 0;
    if (unit < shape->unit ||
        (shape->tile_m > 64 && gpi__column_lines(problem) &&
         (shape->tile_n > 128 || gpi__is_fma(problem) || gpi__promotes(problem) ||
          gpi__has(problem, GEMMEPI_GATED) || gpi__activation_has(problem->epilogue, GPI__IS_WIDE_IN_SUMS))))
        return 0; /* registers would not do */
    if (gpi__scale_varies_along_k(problem, GPI__B) && shape->tile_n > 64 &&
        (halves > 1 || problem->views[GPI__B].scale == GEMMEPI_SCALE_VECTOR_128))
        return 0; /* nor beside a scale for each column */
    if (!gpi__chip_has(arch, GPI__MMA_SYNC) && shape->tile_n > 64 &&
        (gpi__is_fma(problem) ||
         (shape->tile_m > 64 && (problem->formula || (gpi__is_i8_product(problem) && halves > 1) ||
                                 (gpi__is_invariant(problem) && gpi__has(problem, GEMMEPI_AUX))))))
        return 0; /* nor beside what is on its way without cp.async */
    return gpi__sm80_shared(problem, shape, arch) <= gpi__chip_of(arch)->most_shared;
}

/* >>how long it takes */

static int64_t gpi__sm80_tiles(const gpi__problem *problem, const gpi__sm80_shape *shape, int64_t *rows,
                               int64_t *columns) {
    *rows = gpi__divide_up(problem->m, shape->tile_m);
    *columns = gpi__divide_up(gpi__half_columns(problem), shape->tile_n / gpi__halves_in(problem));
    return gpi__offset(gpi__offset(*rows, *columns, 0), problem->batch, 0);
}

/* Of k. */
static int64_t gpi__stage_k(const gpi__problem *problem) {
    return GPI__SM80_LINE * 8 / problem->views[GPI__A].bits;
}

/* Pairs that a multiprocessor multiplies in a cycle. */
static double gpi__sm80_rate(const gpi__problem *problem, const gpi__chip *chip) {
    if (gpi__is_fma(problem))
        return chip->fma;
    if (gpi__is_byte_product(problem) && !gpi__goes_by_f16(problem, chip->arch))
        return (problem->views[GPI__A].bits == 4 ? 8 : 2) * chip->mma;
    return problem->common == GEMMEPI_F32 ? chip->mma / 2 : chip->mma;
}

/* Returns the cycles that a multiprocessor multiplies for a stage of a tile. Sums in F16 are converted and added, two instructions each; fp8 that
   becomes F16 does in each warp, beside tensor cores. */
static double gpi__sm80_cycles(const gpi__problem *problem, const gpi__sm80_shape *shape,
                               const gpi__chip *chip) {
    double area = (double)shape->tile_m * shape->tile_n, pairs = area * (double)gpi__stage_k(problem);
    double cycles = pairs / gpi__sm80_rate(problem, chip);
    double lines = shape->tile_m * shape->warps_n + shape->tile_n * shape->warps_m;
    if (gpi__has_f16_sums(shape))
        return pairs / chip->mma_f16 + 2 * area / chip->fma;
    return gpi__goes_by_f16(problem, chip->arch) && cycles < GPI__SM80_WIDEN * lines ? GPI__SM80_WIDEN * lines
                                                                                     : cycles;
}

/* Returns how many times as long multiply-adds take. */
static double gpi__fma_slowness(const gpi__problem *problem, const gpi__sm80_shape *shape, int blocks) {
    double slowness = problem->views[GPI__A].transposed ? GPI__SM80_FMA_TURNED : GPI__SM80_FMA;
    slowness *= shape->tile_m < 64 ? GPI__SM80_FMA_LOW : shape->tile_m > 64 ? GPI__SM80_FMA_HIGH : 1;
    return shape->tile_n > 64 && blocks * shape->warps_m * shape->warps_n <= 4
               ? slowness * GPI__SM80_FMA_ALONE
               : slowness;
}

/* Bytes that a multiprocessor copies in a cycle, 16, 8, 4 or 2 at a time. Measured on an H200. */
static double gpi__copy_rate(int unit) {
    return unit == 16 ? 50 : unit == 8 ? 25 : unit == 4 ? 17 : 10;
}

/* That a multiprocessor runs at a time. */
static int gpi__sm80_blocks(const gemmepi_context *context, const gpi__problem *problem,
                            const gpi__sm80_shape *shape) {
    int blocks =
        (int)(gpi__chip_of(context->arch)->most_shared / gpi__sm80_shared(problem, shape, context->arch));
    return blocks < shape->blocks ? blocks : shape->blocks;
}

/* Returns the microseconds with a shape, roughly. All blocks of a multiprocessor share it. own: the kernel's problem, bare where k is in parts */
static double gpi__sm80_microseconds(const gemmepi_context *context, const gpi__problem *problem,
                                     const gpi__problem *own, const gpi__sm80_cut *cut) {
    const gpi__sm80_shape *shape = cut->shape;
    const gpi__chip *chip = gpi__chip_of(context->arch);
    int64_t rows, columns, tiles = gpi__sm80_tiles(own, shape, &rows, &columns);
    int64_t each = gpi__divide_up(gpi__times(tiles, cut->parts),
                                  context->multiprocessors); /* tiles of a multiprocessor */
    int blocks = gpi__sm80_blocks(context, own, shape);
    double area = (double)shape->tile_m * shape->tile_n, lines[2];
    int64_t of_stage = gpi__stage_k(problem);
    double steps = (double)gpi__divide_up(gpi__divide_up(problem->k, cut->parts), of_stage);
    double multiply = gpi__sm80_cycles(problem, shape, chip), copy;
    double finish = GPI__STORING + (cut->parts > 1 ? 0 : gpi__epilogue_cycles(problem)), waves;
    if (cut->parts > 1 && gpi__leaves_states(problem))
        return GPI__NEVER; /* the pass behind it has no row's lanes side by side */
    lines[0] = shape->tile_m / gpi__copy_rate(gpi__copy_unit(problem, GPI__A));
    lines[1] = shape->tile_n / gpi__copy_rate(gpi__copy_unit(problem, GPI__B));
    copy = (lines[0] + lines[1]) * GPI__SM80_LINE;
    if (blocks > each)
        blocks = (int)each;
    if (gpi__is_fma(problem))
        multiply *= gpi__fma_slowness(own, shape, blocks);
    if (gpi__copy_unit(problem, GPI__A) > 2 && gpi__copy_unit(problem, GPI__B) > 2)
        copy *= blocks;
    else
        copy *= blocks > GPI__SM80_AT_WORK ? blocks : GPI__SM80_AT_WORK; /* loads of the threads' own */
    waves = (double)gpi__divide_up(each, blocks ? blocks : 1);
    if (problem->common == GEMMEPI_F32 && cut->parts == 1 && gpi__wants_exact(problem))
        finish += gpi__activation_costs(problem->epilogue) ? GPI__EXACT : 0;
    finish *= blocks * area / 128;
    return (GPI__SM80_LAUNCH +
            waves *
                (steps * (GPI__SM80_STEP + (blocks * multiply > copy ? blocks * multiply : copy)) + finish)) /
               chip->megahertz +
           (cut->parts > 1 ? gpi__pass_microseconds(context, problem, cut->parts)
                           : gpi__sums_microseconds(problem));
}

/* Whether k has so many parts of two stages, and there are not already as many tiles as run at a time, of which m must not decide.
   problem: the kernel's */
static int gpi__sm80_divides(const gemmepi_context *context, const gpi__problem *problem,
                             const gpi__sm80_cut *cut) {
    const gpi__sm80_shape *shape = cut->shape;
    int64_t rows, columns, tiles = gpi__sm80_tiles(problem, shape, &rows, &columns);
    int64_t of_stage = gpi__stage_k(problem);
    int64_t at_a_time = (int64_t)context->multiprocessors * gpi__sm80_blocks(context, problem, shape);
    return cut->parts == 1 ||
           (!gpi__is_invariant(problem) && !gpi__is_i8_product(problem) &&
            problem->k >= 2 * of_stage * cut->parts && tiles > 0 && tiles * cut->parts <= at_a_time);
}

/* >>building */

/* Of each part but the last: whole stages. */
static int64_t gpi__part_k(const gpi__problem *problem, int parts) {
    int64_t of_stage = gpi__stage_k(problem);
    return gpi__divide_up(gpi__divide_up(problem->k, parts), of_stage) * of_stage;
}

/* How the operands lie. */
static void gpi__append_lines(gpi__text *text, const gpi__problem *problem) {
    gpi__append(text, "#define GEMMEPI_A_ROWS %d\n#define GEMMEPI_B_ROWS %d\n",
                !problem->views[GPI__A].transposed, (int)problem->views[GPI__B].transposed);
    gpi__append(text, "#define GEMMEPI_A_UNIT %d\n#define GEMMEPI_B_UNIT %d\n",
                gpi__copy_unit(problem, GPI__A), gpi__copy_unit(problem, GPI__B));
}

/* The mode of the scales that the kernel multiplies by: of k in parts those alone that vary along it, as the pass has the others. */
static int gpi__sm80_scale(const gpi__problem *problem, int operand, int parts) {
    return parts <= 1 || gpi__scale_varies_along_k(problem, operand) ? problem->views[operand].scale : 0;
}

static void gpi__append_sm80_defines(gpi__text *text, const gpi__problem *problem, const gpi__sm80 *sm80) {
    const gpi__sm80_shape *shape = &sm80->shape;
    int scale_a = gpi__sm80_scale(problem, GPI__A, sm80->parts),
        scale_b = gpi__sm80_scale(problem, GPI__B, sm80->parts);
    gpi__append_epilogue_defines(text, problem, gpi__epilogue_is_aligned(problem), scale_a, scale_b);
    gpi__append(text, "#define GEMMEPI_TILE_M %d\n#define GEMMEPI_TILE_N %d\n", shape->tile_m, shape->tile_n);
    gpi__append(text, "#define GEMMEPI_WARPS_M %d\n#define GEMMEPI_WARPS_N %d\n", shape->warps_m,
                shape->warps_n);
    gpi__append(text, "#define GEMMEPI_STAGES %d\n#define GEMMEPI_BLOCKS %d\n", shape->stages, shape->blocks);
    gpi__append(text, "#define GEMMEPI_STAGED %d\n#define GEMMEPI_COPIED %d\n", sm80->staged, sm80->copied);
    gpi__append(text, "#define GEMMEPI_UNIT_ALPHA %d\n", sm80->kernel.unit_alpha || sm80->parts > 1);
    gpi__append(text, "#define GEMMEPI_IN_PARTS %d\n", sm80->parts > 1);
    gpi__append_lines(text, problem);
    gpi__append(text, "#define GEMMEPI_WHOLE %d\n", gpi__half_columns(problem) % GPI__RUN == 0);
    gpi__append(text, "#define GEMMEPI_FMA %d\n", gpi__is_fma(problem));
    gpi__append_operands(text, problem);
    if (gpi__promotes(problem))
        gpi__append(text, "#define GEMMEPI_PROMOTES 1\n");
    if (gpi__has_f16_sums(shape))
        gpi__append(text, "#define GEMMEPI_F16_SUMS 1\n");
    if (gpi__is_i8_product(problem))
        gpi__append(text, "#define GEMMEPI_OF_I8 1\n");
    gpi__append_block_scales(text, problem);
}

static gemmepi_status gpi__get_sm80_kernel(gemmepi_context *context, const gpi__problem *problem,
                                           gpi__sm80 *sm80) {
    int dtype = problem->views[GPI__A].dtype;
    gemmepi_status status;
    char prologue[2048], words[160];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gpi__append_sm80_defines(&text, problem, sm80);
    gpi__name_kernel(&sm80->kernel.launch, "gemmepi_sm80_%s%s_%dx%d%s%s",
                     dtype == GEMMEPI_F32 && !gpi__is_fma(problem) ? "TF32" : gpi__type(dtype),
                     gpi__is_scaled_product(problem) ? "_scaled" : "", sm80->shape.tile_m, sm80->shape.tile_n,
                     sm80->parts > 1 ? "_parts" : "", gpi__name_of_epilogue(problem, dtype, words));
    status = gpi__get_product_kernel(context, problem, "gemm_sm80.cu", prologue, "gemmepi_mma",
                                     &sm80->kernel.launch);
    GPI__UNSUPPORTED_IF(status == GEMMEPI_COMPILE_ERROR && gpi__is_scaled_product(problem) &&
                            context->nvrtc.version < GPI__NVRTC_HAS_SCALED,
                        "NVRTC %d.%d has no mma.sync of scaled formats; 12.8 and later have",
                        context->nvrtc.version / 1000, context->nvrtc.version % 1000 / 10);
    return status;
}

/* The shape, and what follows from it. problem: as the kernel has it, bare where k is in parts */
static void gpi__cut_up_sm80(const gpi__problem *problem, const gpi__sm80_cut *cut, int unit_alpha, int arch,
                             gpi__sm80 *sm80) {
    /* of 32 bits a row's four lanes write whole sectors, but for these */
    int wide = gpi__results_of(problem, 32) - gpi__moved_of(problem, 32);
    sm80->shape = *cut->shape;
    sm80->shape.stages = (short)gpi__sm80_stages(cut->shape, arch);
    sm80->arch = arch;
    sm80->parts = (int)gpi__divide_up(problem->k, gpi__part_k(problem, cut->parts)); /* none empty */
    gpi__start_kernel(cut->shape->tile_m, cut->shape->tile_n, unit_alpha, &sm80->kernel);
    sm80->staged = gpi__results_of(problem, 16) | wide;
    sm80->copied = sm80->staged - gpi__moved_of(problem, 16);
}

/* What a block asks for: so much that no multiprocessor has more than its share. Those with room for more would take it, and others
   have less: 1.5 of the time on an H200, where the launch before is still on some of them, or three have room and two are a share. */
static unsigned gpi__sm80_asked(const gemmepi_context *context, const gpi__problem *problem,
                                const gpi__sm80 *sm80) {
    unsigned each = (unsigned)gpi__divide_up(sm80->kernel.launch.blocks, context->multiprocessors);
    unsigned needed = gpi__sm80_shared(problem, &sm80->shape, context->arch);
    unsigned least = gpi__chip_of(context->arch)->most_shared / (each + 1) + 16;
    return needed < least ? least / 16 * 16 : needed;
}

static gemmepi_status gpi__lay_out_sm80(const gemmepi_context *context, const gpi__problem *problem,
                                        gpi__sm80 *sm80) {
    const gpi__sm80_shape *shape = &sm80->shape;
    gpi__sm80_params *params = &sm80->params;
    int64_t rows, columns, tiles = gpi__sm80_tiles(problem, shape, &rows, &columns), square = 1, bands;
    int64_t area = (int64_t)context->multiprocessors * shape->blocks * shape->tile_m * shape->tile_n;
    int warp_rows = shape->tile_m / shape->warps_m, elements = problem->views[GPI__A].bits == 4 ? 2 : 1;
    GPI__UNSUPPORTED_IF(tiles <= 0 || tiles > INT_MAX / sm80->parts,
                        "the result has more tiles than a grid has blocks");
    while ((square + 1) * shape->tile_m * (square + 1) * shape->tile_m <= area)
        square++; /* what is under way at a time is about square */
    bands = (rows + square / 2) / square;
    params->tile_rows = (unsigned)rows;
    params->band = (unsigned)gpi__divide_up(rows, bands ? bands : 1);
    params->k = (int)problem->k / elements;
    params->parts = (unsigned)sm80->parts;
    params->part_k = (int)gpi__part_k(problem, sm80->parts) / elements;
    params->a = gpi__matrix_in_bytes(&problem->views[GPI__A]);
    params->b = gpi__matrix_in_bytes(&problem->views[GPI__B]);
    gpi__lay_out_block_scales(problem, sm80->scales, params);
    params->epilogue.column_tiles = (unsigned)columns;
    params->epilogue.row_tiles = (unsigned)gpi__divide_up(problem->m, warp_rows);
    sm80->kernel.launch.blocks = (unsigned)(tiles * sm80->parts);
    sm80->kernel.launch.threads_x = (unsigned)(32 * shape->warps_m * shape->warps_n);
    sm80->kernel.launch.threads_y = 1;
    sm80->kernel.launch.shared = gpi__sm80_asked(context, problem, sm80);
    return GEMMEPI_OK;
}

/* As a shape that takes it, and parts that are not too many. */
static gemmepi_status gpi__sm80_build(gemmepi_context *context, const gpi__problem *asked,
                                      const gpi__candidate *candidate, void *built) {
    gpi__sm80 *sm80 = (gpi__sm80 *)built;
    gpi__sm80_cut cut;
    gpi__problem whole = gpi__with_whole_scales(asked), bare;
    const gpi__problem *problem = &whole, *own = &whole; /* own: the kernel's */
    gemmepi_status status;
    memset(sm80, 0, sizeof *sm80);
    cut.shape = &gpi__sm80_shapes[candidate->shape];
    cut.parts = candidate->parts;
    if (cut.parts > 1) {
        gpi__view *d = &bare.views[GPI__D];
        bare = gpi__bare_problem(problem);
        d->batch_stride =
            (int64_t)gpi__round_up((size_t)d->batch_stride, 4); /* parts begin at multiples of 16 bytes */
        own = &bare;
    }
    gpi__cut_up_sm80(own, &cut, candidate->unit_alpha, context->arch, sm80);
    gpi__fill_epilogue(own, &sm80->params.epilogue, sm80->params.places);
    status = gpi__lay_out_sm80(context, own, sm80);
    if (!status)
        status = gpi__get_sm80_kernel(context, own, sm80);
    if (!status && cut.parts > 1)
        status = gpi__build_pass_behind(context, problem, &own->views[GPI__D], sm80->parts, &sm80->kernel);
    return status
               ? status
               : gpi__build_behind_kernel(context, problem, sm80->params.epilogue.row_tiles, &sm80->kernel);
}

/* >>running */

/* The primary context is current. */
static gemmepi_status gpi__sm80_run(const gemmepi_context *context, const gpi__problem *problem,
                                    const void *built, const gpi__arguments *arguments, char *workspace,
                                    gemmepi_stream stream) {
    const gpi__sm80 *sm80 = (const gpi__sm80 *)built;
    gpi__sm80_params params = sm80->params;
    gpi__arguments own;
    gemmepi_status status = gpi__clear_amax(context, problem, arguments, stream);
    if (status)
        return status;
    if (gpi__is_scaled_product(problem)) {
        own = *arguments;
        gpi__point_block_scales(sm80->scales, &own, &params);
        arguments = &own;
    }
    gpi__point_epilogue(arguments, sm80->kernel.unit_alpha, &params.epilogue, params.places);
    gpi__point_states(&sm80->kernel.sums, workspace, params.places);
    params.a.data = arguments->pointers[GPI__A];
    params.b.data = arguments->pointers[GPI__B];
    if (sm80->parts > 1)
        params.epilogue.d.data = workspace;
    return gpi__run_product_kernel(context, &sm80->kernel, &params, arguments, workspace, stream);
}

/* >>in words */

static void gpi__sm80_explain(const gpi__problem *problem, const void *built, gpi__text *text) {
    const gpi__sm80 *sm80 = (const gpi__sm80 *)built;
    const gpi__sm80_shape *shape = &sm80->shape;
    gpi__append(text, "  %s: product%s, %u blocks of %u threads, tiles of %d x %d, %d stages",
                sm80->kernel.launch.name, sm80->parts > 1 ? "" : " and epilogue", sm80->kernel.launch.blocks,
                sm80->kernel.launch.threads_x, shape->tile_m, shape->tile_n, shape->stages);
    if (sm80->parts > 1)
        gpi__append(text, ", k in %d parts", sm80->parts);
    gpi__append(text, "\n");
    if (gpi__goes_by_f16(problem, sm80->arch))
        gpi__append(text, "  a and b become F16 in registers, as this chip's tensor cores have no fp8\n");
    gpi__explain_promotion(problem, text);
    gpi__explain_block_scales(problem, text);
    if (gpi__has_f16_sums(shape))
        gpi__append(text, "  sums of each 64 of k in F16 go to sums in F32\n");
    gpi__explain_behind_kernel(text, &sm80->kernel, "the sum of k's parts, ");
}

/* >>the engine */

/* What the chip does not multiply, or NULL. */
static const char *gpi__sm80_type_rule(const gemmepi_context *context, const gpi__problem *problem) {
    return problem->common == GEMMEPI_F16 || problem->common == GEMMEPI_I8 || gpi__is_fma(problem) ||
                   gpi__chip_has(context->arch, GPI__MMA_SYNC)
               ? NULL
               : "its kernel multiplies BF16 and TF32 on compute capability 8.0 and later";
}

static const char *gpi__sm80_bytes_rule(const gemmepi_context *context, const gpi__problem *problem) {
    if (gpi__is_fp8_product(problem) && !gpi__is_scaled_product(problem) &&
        !gpi__chip_has(context->arch, GPI__ANY_FP8))
        return "it multiplies fp8 on compute capability 7.5 to 8.9, 12.0 and 12.1";
    if (problem->views[GPI__A].transposed || !problem->views[GPI__B].transposed)
        return "mma.sync reads fp8 and I8 only where the elements along k are contiguous";
    if (gpi__copy_unit(problem, GPI__A) < 4 || gpi__copy_unit(problem, GPI__B) < 4)
        return "it copies fp8 and I8 at multiples of 4 bytes: pointers, lines and items";
    return NULL;
}

static const char *gpi__sm80_rule(const gemmepi_context *context, const gpi__problem *problem) {
    if (problem->found_scale)
        return "it finds no scales of d";
    if (gpi__is_byte_product(problem) && gpi__sm80_bytes_rule(context, problem))
        return gpi__sm80_bytes_rule(context, problem);
    if (gpi__is_of_weights(problem))
        return "a and b differ in dtype";
    return gpi__sm80_type_rule(context, problem) ? gpi__sm80_type_rule(context, problem)
                                                 : gpi__half_group_rule(problem);
}

/* Whether so many parts would be too many, by what is quick to ask. */
static int gpi__sm80_has_no_room(const gemmepi_context *context, const gpi__problem *problem,
                                 const gpi__sm80_cut *cut) {
    double tiles = (double)problem->m * (double)problem->n * (double)problem->batch /
                   (cut->shape->tile_m * cut->shape->tile_n);
    return cut->parts > 1 && (problem->k < 2 * gpi__stage_k(problem) * cut->parts ||
                              tiles * cut->parts > (double)context->multiprocessors * cut->shape->blocks);
}

static double gpi__sm80_estimate(const gemmepi_context *context, const gpi__problem *problem,
                                 const gpi__candidate *candidate) {
    gpi__problem own;
    gpi__sm80_cut cut;
    cut.shape = &gpi__sm80_shapes[candidate->shape];
    cut.parts = candidate->parts;
    if (gpi__sm80_has_no_room(context, problem, &cut))
        return GPI__NEVER;
    own = cut.parts > 1 ? gpi__bare_problem(problem) : *problem;
    return gpi__sm80_shape_accepts(&own, cut.shape, context->arch) && gpi__sm80_divides(context, &own, &cut)
               ? gpi__sm80_microseconds(context, problem, &own, &cut)
               : GPI__NEVER;
}

GPI__ENGINE(sm80, GPI__HAS_SM80, GPI__SM80_MARGIN, gpi__sm80_rule, NULL, sm80, gpi__sm80_explain,
            gpi__sm80_run);

#endif
