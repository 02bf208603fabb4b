/* How the kernel for Hopper cuts a product up: its shapes, what keeps a problem from it, the boxes that TMA moves, and what shared memory
   holds. */
#ifndef GEMMEPI_PRODUCT_ENGINES_SM90_SHAPE_H
#define GEMMEPI_PRODUCT_ENGINES_SM90_SHAPE_H

#include "engine.h"

#define GPI__SM90_THREADS 384          /* gemm_sm90.cu */
#define GPI__SM90_LINE    128          /* bytes of k of a stage */
#define GPI__SM90_BOX_M   16           /* rows of results that a warp stores at a time, lines of 128 bytes */
#define GPI__SM90_UNIT_N  64           /* columns of which tiles are made */
#define GPI__SM90_WARPS   8            /* that store */
#define GPI__SM90_SUMMERS 3            /* that sum an operand */
#define GPI__SM90_SHARED  (227u << 10) /* of a block on this chip */
#define GPI__SM90_PAIR    16           /* bytes of two barriers: of a stage, a warp's buffers, a slot */
#define GPI__SM90_STAGES  8            /* at most */

/* A way to cut the product up: its kernel is compiled for it. */
typedef struct gpi__sm90_shape {
    short tile_m, tile_n; /* of a block */
    short ping_pong;      /* its two warpgroups take a tile each in turns, else they share one */
    short cluster_m, cluster_n;
    short parts; /* blocks that add up a tile, each a part of k */
} gpi__sm90_shape;

static const gpi__sm90_shape gpi__sm90_shapes[] = {
    {128, 128, 1, 2, 1, 1}, /* first the one for everything that the rules admit */
    {128, 128, 1, 1, 2, 1}, {128, 256, 0, 2, 1, 1}, {128, 192, 0, 2, 1, 1}, {128, 128, 0, 1, 1, 2},
    {128, 128, 0, 1, 1, 4}, {128, 128, 0, 1, 1, 8}, {128, 64, 1, 1, 1, 1},  {128, 64, 0, 1, 1, 2},
    {128, 64, 0, 1, 1, 4},  {128, 64, 0, 1, 1, 8},  {64, 64, 1, 1, 1, 1},   {64, 128, 1, 1, 1, 1},
};

/* Those of fp8. */
static const gpi__sm90_shape
    gpi__sm90_fp8_shapes
        [] =
            {
                {128, 128, 0, 2, 1, 1}, /* likewise */
                {128, 128, 0, 1, 2, 1}, {128, 256, 0, 2, 1, 1}, {128, 256, 0, 1, 2, 1},
                {128, 128, 0, 1, 1, 1}, {128, 128, 0, 1, 1, 2}, {128, 128, 0, 1, 1, 4},
                {128, 128, 0, 1, 1, 8}, {128, 64, 0, 1, 1, 1},  {128, 64, 0, 1, 1, 2},
                {128, 64, 0, 1, 1, 4},  {128, 64, 0, 1, 1, 8}, /* from here on with FAST_ACCUMULATION alone */
                {128, 128, 1, 2, 1, 1}, {128, 128, 1, 1, 2, 1}, {128, 192, 0, 2, 1, 1},
                {128, 64, 1, 1, 1, 1},
};

static const gpi__sm90_shape *gpi__shapes_for(const gpi__problem *problem) {
    return gpi__is_fp8_product(problem) ? gpi__sm90_fp8_shapes : gpi__sm90_shapes;
}

typedef struct gpi__sm90 {
    gpi__product_kernel kernel;
    gpi__sm90_shape shape;
    int stages, buffers; /* of operands, and of each warp's results */
    int staged;          /* what leaves by shared memory: bits 1 D, 2 AUX */
    int copied; /* of these, what does not lie at multiples of 16 bytes: in words, by each warp; else TMA stores it */
    int loaded; /* ahead for the epilogue: bits 1 the aux of BACKWARD and 2 RESIDUAL by TMA, 4 RELU's mask to registers */
    int summed;              /* the operand that it sums for bias_grad: 1 A, 2 B */
    int tails;               /* some tiles reach beyond m or n by boxes or lines, which are not loaded */
    int last_a, last_b;      /* 0, or lines of the last box of A and B, which are another map's */
    gpi__sm90_params params; /* all but pointers and scalars; the maps have an address that is none */
} gpi__sm90;

/* >>operands */

/* Whether TMA takes a matrix of so many bits an element as it lies. */
static int gpi__tma_accepts(const gpi__problem *problem, const gpi__view *view, int bits) {
    int64_t unit = 128 / bits,
            most = ((int64_t)1 << 42) / bits; /* elements: a stride has fewer than 2^40 bytes */
    return view->bits == bits && view->alignment % 16 == 0 &&
           (view->lines <= 1 || (view->ld % unit == 0 && view->ld <= most)) &&
           (problem->batch <= 1 || (view->batch_stride % unit == 0 && view->batch_stride <= most));
}

/* F32 operands multiplied as TF32. */
static int gpi__is_tf32(const gpi__problem *problem) {
    return problem->common == GEMMEPI_F32 && problem->compute == GEMMEPI_COMPUTE_TF32;
}

/* What the kernels multiply. */
static const char *gpi__multiplied_type(const gpi__problem *problem, int operand) {
    const char *type = gpi__dtype((gemmepi_dtype)problem->views[operand].dtype)->operand;
    return type ? type : "bf16";
}

static void gpi__append_operands(gpi__text *text, const gpi__problem *problem) {
    gpi__append(text, "#define GEMMEPI_OPERANDS \"%s\"\n#define GEMMEPI_ELEMENT %d\n",
                gpi__multiplied_type(problem, GPI__A), (int)(problem->views[GPI__A].bits + 7) / 8);
    if (problem->views[GPI__A].dtype != problem->views[GPI__B].dtype)
        gpi__append(text, "#define GEMMEPI_OPERAND_B \"%s\"\n", gpi__multiplied_type(problem, GPI__B));
}

/* >>fp8: sums in F32 beside wgmma's */

/* Whether what wgmma adds up of each 128 of k goes to sums in F32: for the bits that it does not keep, or for scales. */
static int gpi__promotes(const gpi__problem *problem) {
    return (gpi__is_fp8_product(problem) || gpi__is_scaled_product(problem)) &&
           (!(problem->flags & GEMMEPI_FAST_ACCUMULATION) || gpi__scale_varies_along_k(problem, GPI__A) ||
            gpi__scale_varies_along_k(problem, GPI__B));
}

/* Whether each 64 columns of a tile of B, from a multiple of 64 on, are of one block of scales. */
static int gpi__scales_are_uniform(const gpi__problem *problem) {
    return problem->views[GPI__B].scale == GEMMEPI_SCALE_BLOCK_128 &&
           (gpi__halves_in(problem) == 1 || gpi__half_columns(problem) % GPI__SM90_UNIT_N == 0);
}

/* Those that come beside a stage, where sums are promoted: a number for each row of A, and each column or unit of columns of B. */
static unsigned gpi__scale_bytes(const gpi__problem *problem, const gpi__sm90_shape *shape) {
    unsigned a = problem->views[GPI__A].scale > GEMMEPI_SCALE_TENSOR ? (unsigned)shape->tile_m : 0;
    unsigned columns = gpi__scales_are_uniform(problem)
                           ? (unsigned)shape->tile_n / GPI__SM90_UNIT_N
                           : (unsigned)(shape->tile_n + gpi__divide_up(shape->tile_n, 128) * 16);
    unsigned b = problem->views[GPI__B].scale > GEMMEPI_SCALE_TENSOR ? columns : 0;
    return gpi__promotes(problem) ? (a + b + 3) / 4 * 16 : 0;
}

/* >>what may go there */

/* Stages that all of k fills. */
static int64_t gpi__sm90_steps(const gpi__problem *problem) {
    return gpi__divide_up(problem->k, GPI__SM90_LINE * 8 / problem->views[GPI__A].bits);
}

/* What no kernel of the route has, or NULL. */
static const char *gpi__extents_rule(const gpi__problem *problem) {
    if (problem->k == 0)
        return "k is 0";
    if (problem->m > INT_MAX / 2 || problem->n > INT_MAX / 2 || problem->k > INT_MAX / 2)
        return "m, n or k is 2^30 or more";
    return NULL;
}

/* Whether registers are missing for scales of all rows of a tile that one warpgroup has: then two share it. */
static int gpi__found_beside(const gpi__problem *problem, int unit_alpha) {
    return problem->found_scale &&
           (!unit_alpha || gpi__has(problem, GEMMEPI_AUX | GEMMEPI_RESIDUAL | GEMMEPI_BACKWARD));
}

/* What keeps scales of D from being found in this kernel, or NULL. */
static const char *gpi__sm90_found_rule(const gemmepi_context *context, const gpi__problem *problem) {
    if (!problem->found_scale)
        return NULL;
    if (gpi__halves_out(problem) > 1 || gpi__column_lines(problem))
        return "with a second half of d, or sums of its columns, registers are too few for a vector whose scale is found";
    if (gpi__halves_in(problem) > 1 && gpi__has(problem, GEMMEPI_AUX | GEMMEPI_RESIDUAL))
        return "with a gate's aux or residual registers are too few for a vector whose scale is found";
    return context->multiprocessors < 2 ? "where it finds scales its blocks come in pairs" : NULL;
}

/* Whether the second half of b's columns begins within a unit of 16 bytes. Of groups of 32 none does. */
static int gpi__half_begins_within(const gpi__problem *problem) {
    const gpi__view *b = &problem->views[GPI__B];
    return gpi__halves_in(problem) > 1 && gpi__half_group(problem) != 32 && !b->transposed &&
           gpi__half_columns(problem) * b->bits % 128 != 0;
}

/* What keeps TMA from its operands, whatever their type, or NULL. */
static const char *gpi__loads_rule(const gpi__problem *problem) {
    const gpi__view *a = &problem->views[GPI__A], *b = &problem->views[GPI__B];
    if (!gpi__tma_accepts(problem, a, a->bits) || !gpi__tma_accepts(problem, b, b->bits))
        return "TMA reads a and b at multiples of 16 bytes only: their pointers, lines and items";
    return gpi__extents_rule(problem);
}

/* The rule that keeps a problem from this kernel, or NULL. */
static const char *gpi__tma_rule(const gemmepi_context *context, const gpi__problem *problem) {
    const gpi__view *a = &problem->views[GPI__A], *b = &problem->views[GPI__B];
    if (!gpi__chip_has(context->arch, GPI__WGMMA))
        return "its kernel is for compute capability 9.0";
    if (a->dtype != b->dtype ||
        (a->dtype != GEMMEPI_BF16 && a->dtype != GEMMEPI_F16 && !gpi__is_tf32(problem)))
        return "a and b are not both BF16, both F16 or both F32 with TF32";
    if (gpi__is_tf32(problem) && (a->transposed || !b->transposed))
        return "wgmma reads TF32 only where the elements along k are contiguous";
    if (gpi__half_begins_within(problem))
        return "TMA reads the second half of b at a multiple of 16 bytes only";
    if (gpi__sm90_found_rule(context, problem))
        return gpi__sm90_found_rule(context, problem);
    return gpi__loads_rule(problem);
}

/* Why TMA would take A at some m alone, or NULL. What does not lie at multiples of 16 bytes is copied (routes/fused.h). */
static const char *gpi__tma_varies(const gpi__problem *problem) {
    return problem->views[GPI__A].transposed
               ? "BATCH_INVARIANT: TMA reads lines as long as m where they are whole units of 16 bytes, so only at some m"
               : NULL;
}

/* Of aux, whether it is written or read. */
static int gpi__halves_aside(const gpi__problem *problem) {
    return gpi__has(problem, GEMMEPI_GATED) && !gpi__has(problem, GEMMEPI_UPSTREAM) ? 2 : 1;
}

/* Bits of an element of the matrices that TMA moves for the epilogue: of one width, that of D where it can be. */
static int gpi__box_bits(const gpi__problem *problem) {
    return problem->views[GPI__D].bits == 32 ? 32 : 16;
}

/* Whether matrices with two halves have every second column of 32 bits, and the product has none: a lane's pairs come and go without
   shared memory then. */
static int gpi__is_of_wide_pairs(const gpi__problem *problem, int bits) {
    return bits == 32 && GPI__FORMULA(problem) && gpi__is_interleaved(problem->formula->placed.formula) &&
           gpi__halves_in(problem) == 1;
}

/* Whether one is of so many bits, and its lines, and halves of them, are whole units of 16 bytes: TMA moves those, whatever the
   extents of its map say. */
static int gpi__moves_box(const gpi__problem *problem, int operand, int bits) {
    return !gpi__is_of_wide_pairs(problem, bits) && gpi__half_columns(problem) * bits % 128 == 0 &&
           gpi__tma_accepts(problem, &problem->views[operand], bits);
}

/* Results of so many bits: bits 1 D, 2 AUX. */
static int gpi__results_of(const gpi__problem *problem, int bits) {
    int results = 0;
    if (problem->views[GPI__D].bits == bits && !(problem->flags & GPI__ONLY_SUMS) &&
        !gpi__is_of_wide_pairs(problem, bits))
        results |= 1;
    if (gpi__has(problem, GEMMEPI_AUX) && problem->views[GPI__AUX].bits == bits)
        results |= 2;
    return results;
}

/* Those that leave in whole units. */
static int gpi__moved_of(const gpi__problem *problem, int bits) {
    int moved = gpi__results_of(problem, bits);
    if ((moved & 1) && !gpi__moves_box(problem, GPI__D, bits))
        moved -= 1;
    if ((moved & 2) && !gpi__moves_box(problem, GPI__AUX, bits))
        moved -= 2;
    return moved;
}

/* What TMA stores. */
static int gpi__sm90_moved(const gpi__problem *problem) {
    return gpi__moved_of(problem, gpi__box_bits(problem));
}

/* What it loads for the epilogue, likewise; the mask without TMA. */
static int gpi__sm90_loaded(const gpi__problem *problem) {
    int loaded = 0, bits = gpi__box_bits(problem);
    if (problem->grouping.scattered) /* rows of a box lie anywhere */
        return 0;
    if (gpi__has(problem, GEMMEPI_BACKWARD) && gpi__mask_is_aligned(problem))
        loaded |= 4;
    if (gpi__has(problem, GEMMEPI_BACKWARD) && gpi__moves_box(problem, GPI__AUX, bits))
        loaded |= 1;
    if (gpi__has(problem, GEMMEPI_RESIDUAL) && gpi__moves_box(problem, GPI__RESIDUAL, bits))
        loaded |= 2;
    return loaded;
}

/* Tiles along the axis that a sum of an operand is not of: in each, three warps add up 16 lines of the operand's tile at most. */
static int64_t gpi__tiles_across(const gpi__problem *problem, const gpi__sm90_shape *shape) {
    return gpi__summed_operand(problem) == GPI__A
               ? gpi__divide_up(gpi__half_columns(problem), shape->tile_n / gpi__halves_in(problem))
               : gpi__divide_up(problem->m, shape->tile_m);
}

/* The operand that the kernel sums, 1 A or 2 B. Other than 16 bits, few tiles, and an epilogue that leaves too few registers, leave it to another
   launch. */
static int gpi__sm90_summed(const gpi__problem *problem, const gpi__sm90_shape *shape, int unit_alpha) {
    int operand = gpi__summed_operand(problem), lines = operand == GPI__A ? shape->tile_m : shape->tile_n;
    if (operand < 0 || problem->views[GPI__A].bits != 16 ||
        GPI__SM90_SUMMERS * 16 * gpi__tiles_across(problem, shape) < lines ||
        (gpi__has(problem, GEMMEPI_GATED) && gpi__has(problem, GEMMEPI_AUX) && !unit_alpha))
        return 0;
    return operand == GPI__A ? 1 : 2;
}

/* Whether bias_grad is a sum over the batch, for which the kernel leaves a line of each item. */
static int gpi__sums_items(const gpi__problem *problem) {
    return problem->batch > 1 && problem->views[GPI__BIAS_GRAD].batch_stride == 0;
}

/* >>boxes of operands */

/* Columns of the product that lie side by side in a tile of B: of all its columns, or of either half's; where groups are of 64 columns
   a tile has whole ones. */
static int gpi__b_spans(const gpi__problem *problem) {
    return gpi__half_group(problem) == 32 ? 1 : gpi__halves_in(problem);
}

static int gpi__b_span(const gpi__problem *problem, const gpi__sm90_shape *shape) {
    return shape->tile_n / gpi__b_spans(problem);
}

static int64_t gpi__span_columns(const gpi__problem *problem) {
    return problem->n / gpi__b_spans(problem);
}

/* Lines of a box: along k those that a block loads of a tile of A, or of a half of B's. */
static int gpi__a_box(const gpi__problem *problem, const gpi__sm90_shape *shape) {
    return problem->views[GPI__A].transposed ? 64 : shape->tile_m / shape->cluster_n;
}

static int gpi__b_box(const gpi__problem *problem, const gpi__sm90_shape *shape) {
    int lines = shape->tile_n / shape->cluster_m, columns = gpi__b_span(problem, shape);
    int most = lines < columns ? lines : columns;
    return !problem->views[GPI__B].transposed ||
                   (gpi__b_spans(problem) > 1 && gpi__half_group(problem) % most)
               ? 64
               : most;
}

/* Whether tiles of clusters reach so far beyond an extent that there is less to load: a line, or where these lie along k a whole box. */
static int gpi__has_tail(int64_t extent, int64_t cluster, int is_side_by_side) {
    return (cluster - extent % cluster) % cluster >= (is_side_by_side ? 1 : 64);
}

static int gpi__last_lines(int64_t extent, int box) {
    return (int)((extent - 1) % box) + 1;
}

static int gpi__sm90_tails(const gpi__problem *problem, const gpi__sm90_shape *shape) {
    int beside = gpi__has_groups_of_rows(problem) ? shape->cluster_m : 1; /* of a group's last rows */
    int64_t columns = (int64_t)gpi__b_span(problem, shape) * shape->cluster_n * beside;
    return (!gpi__has_groups_of_rows(problem) && gpi__has_tail(problem->m, shape->tile_m * shape->cluster_m,
                                                               !problem->views[GPI__A].transposed)) ||
           gpi__has_tail(gpi__span_columns(problem), columns, problem->views[GPI__B].transposed);
}

/* >>shared memory */

static unsigned gpi__sm90_stage_bytes(const gpi__sm90_shape *shape) {
    return (unsigned)(shape->tile_m + shape->tile_n) * GPI__SM90_LINE;
}

/* Of one matrix in every warp's buffer. */
#define GPI__SM90_BOXES (GPI__SM90_WARPS * GPI__SM90_BOX_M * GPI__SM90_LINE)

static unsigned gpi__staged_matrices(const gpi__problem *problem, const gpi__sm90 *sm90) {
    return (unsigned)((sm90->staged & 1 ? gpi__halves_out(problem) : 0) +
                      (sm90->staged & 2 ? gpi__halves_aside(problem) : 0));
}

static unsigned gpi__loaded_matrices(const gpi__problem *problem, int loaded) {
    return (unsigned)((loaded & 1 ? gpi__halves_aside(problem) : 0) +
                      (loaded & 2 ? gpi__halves_out(problem) : 0));
}

/* Sums of columns: a slot of either warpgroup, in which each lane leaves one of every 32 columns for each line: of 32 of a gate's and
   where tiles have no multiple of 128 columns, of 64 of others. */
static unsigned gpi__slot_bytes(const gpi__problem *problem, const gpi__sm90_shape *shape) {
    int groups = gpi__has(problem, GEMMEPI_GATED) || shape->tile_n % 128 ? 1 : 2,
        lines = gpi__column_lines(problem);
    return lines ? (unsigned)(groups * lines) * GPI__SM90_WARPS * 32 * 4 + 2 * GPI__SM90_PAIR : 0;
}

static unsigned gpi__sm90_shared(const gpi__problem *problem, const gpi__sm90 *sm90) {
    unsigned stage =
        gpi__sm90_stage_bytes(&sm90->shape) + gpi__scale_bytes(problem, &sm90->shape) + GPI__SM90_PAIR;
    unsigned boxes = (unsigned)sm90->buffers * gpi__staged_matrices(problem, sm90) +
                     2 * gpi__loaded_matrices(problem, sm90->loaded);
    unsigned divided = sm90->shape.parts > 1 ? GPI__SM90_PAIR : 0;
    unsigned sums = sm90->summed ? GPI__SM90_SUMMERS * 16 * 8 : gpi__slot_bytes(problem, &sm90->shape);
    return (unsigned)sm90->stages * stage + boxes * GPI__SM90_BOXES + GPI__SM90_WARPS * GPI__SM90_PAIR +
           divided + sums;
}

/* As many stages as fit beside the buffers. */
static void gpi__fill_with_stages(const gpi__problem *problem, gpi__sm90 *sm90) {
    sm90->stages = GPI__SM90_STAGES;
    while (gpi__sm90_shared(problem, sm90) > GPI__SM90_SHARED)
        sm90->stages--;
}

/* Two buffers, where four stages are left, or five where there are two results: on an H200 a gate of SILU that leaves its
   pre-activations takes 0.95 of the time so at 8192 x 14336 x 4096 and 4096^3, and 0.97 at 8192 x 3072 x 768. One is enough for what is copied,
   which is free at once. */
static void gpi__share_memory(const gpi__problem *problem, gpi__sm90 *sm90) {
    int wanted = sm90->staged == 3 ? 5 : 4;
    sm90->buffers = sm90->staged == sm90->copied ? 1 : 2;
    gpi__fill_with_stages(problem, sm90);
    if (sm90->stages < wanted && sm90->buffers > 1) {
        sm90->buffers = 1;
        gpi__fill_with_stages(problem, sm90);
    }
}

#endif
