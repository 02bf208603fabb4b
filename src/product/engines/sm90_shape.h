/* How the kernel for Hopper cuts a product up: its shapes, what keeps a problem from it, the boxes that TMA moves, and what shared memory
   holds. */
#ifndef GEMMEPI_PRODUCT_ENGINES_SM90_SHAPE_H
#define GEMMEPI_PRODUCT_ENGINES_SM90_SHAPE_H

#include "engine.h"

#define GEMMEPI__SM90_THREADS 384 /* gemm_sm90.cu */
#define GEMMEPI__SM90_LINE    128 /* bytes of k of a stage */
#define GEMMEPI__SM90_BOX_M   16  /* rows of results that a warp stores at a time, lines of 128 bytes */
#define GEMMEPI__SM90_UNIT_N  64  /* columns of which tiles are made */
#define GEMMEPI__SM90_WARPS   8   /* that store */
#define GEMMEPI__SM90_SUMMERS 3   /* that sum an operand */
#define GEMMEPI__SM90_SHARED  (227u << 10) /* of a block on this chip */
#define GEMMEPI__SM90_PAIR    16           /* bytes of two barriers: of a stage, a warp's buffers, a slot */
#define GEMMEPI__SM90_STAGES  8            /* at most */

/* A way to cut the product up: its kernel is compiled for it. */
typedef struct gemmepi__sm90_shape {
    short tile_m, tile_n; /* of a block */
    short ping_pong;      /* its two warpgroups take a tile each in turns, else they share one */
    short cluster_m, cluster_n;
    short parts; /* blocks that add up a tile, each a part of k */
} gemmepi__sm90_shape;

static const gemmepi__sm90_shape gemmepi__sm90_shapes[] = {
    {128, 128, 1, 2, 1, 1}, /* first the one for everything that the rules admit */
    {128, 128, 1, 1, 2, 1}, {128, 256, 0, 2, 1, 1}, {128, 192, 0, 2, 1, 1}, {128, 128, 0, 1, 1, 2},
    {128, 128, 0, 1, 1, 4}, {128, 128, 0, 1, 1, 8}, {128, 64, 1, 1, 1, 1},  {128, 64, 0, 1, 1, 2},
    {128, 64, 0, 1, 1, 4},  {128, 64, 0, 1, 1, 8},
};

typedef struct gemmepi__sm90 {
    gemmepi__sm90_shape shape;
    int stages, buffers; /* of operands, and of each warp's results */
    int staged;          /* what leaves by shared memory: bits 1 D, 2 AUX */
    int copied; /* of these, what does not lie at multiples of 16 bytes: in words, by each warp; else TMA stores it */
    int loaded; /* ahead for the epilogue: bits 1 the aux of BACKWARD and 2 RESIDUAL by TMA, 4 RELU's mask to registers */
    int applied;        /* alpha is 1 and there is no C: compiled in */
    int summed;         /* the operand that it sums for bias_grad: 1 A, 2 B */
    int tails;          /* some tiles reach beyond m or n by boxes or lines, which are not loaded */
    int last_a, last_b; /* 0, or lines of the last box of A and B, which are another map's */
    gemmepi__launch launch;
    gemmepi__sm90_params params; /* all but pointers and scalars; the maps have an address that is none */
    size_t partial_bytes;        /* BGRAD: of the kernel's sums of a tile's rows */
    gemmepi__sums sums;
} gemmepi__sm90;

/* >>operands */

/* Whether TMA takes a matrix of so many bits an element as it lies. */
static int gemmepi__tma_takes(const gemmepi__problem *problem, const gemmepi__view *view, int bits) {
    int64_t unit = 128 / bits,
            most = ((int64_t)1 << 42) / bits; /* elements: a stride has fewer than 2^40 bytes */
    return view->bits == bits && view->alignment % 16 == 0 &&
           (view->lines <= 1 || (view->ld % unit == 0 && view->ld <= most)) &&
           (problem->batch <= 1 || (view->batch_stride % unit == 0 && view->batch_stride <= most));
}

/* F32 operands multiplied as TF32. */
static int gemmepi__is_tf32(const gemmepi__problem *problem) {
    return problem->common == GEMMEPI_F32 && problem->compute == GEMMEPI_COMPUTE_TF32;
}

/* What the kernels multiply. */
static const char *gemmepi__multiplied_type(const gemmepi__problem *problem, int operand) {
    int dtype = problem->views[operand].dtype;
    return dtype == GEMMEPI_E4M3   ? "e4m3"
           : dtype == GEMMEPI_E5M2 ? "e5m2"
           : dtype == GEMMEPI_F16  ? "f16"
           : dtype == GEMMEPI_F32  ? "tf32"
                                   : "bf16";
}

static void gemmepi__append_operands(gemmepi__text *text, const gemmepi__problem *problem) {
    gemmepi__append(text, "#define GEMMEPI_OPERANDS \"%s\"\n#define GEMMEPI_ELEMENT %d\n",
                    gemmepi__multiplied_type(problem, GEMMEPI__A), (int)problem->views[GEMMEPI__A].bits / 8);
    if (problem->views[GEMMEPI__A].dtype != problem->views[GEMMEPI__B].dtype)
        gemmepi__append(text, "#define GEMMEPI_OPERAND_B \"%s\"\n",
                        gemmepi__multiplied_type(problem, GEMMEPI__B));
}

/* >>fp8: sums in F32 beside wgmma's */

/* Whether what wgmma adds up of each 128 of k goes to sums in F32: for the bits that it does not keep, or for scales. */
static int gemmepi__promotes(const gemmepi__problem *problem) {
    return gemmepi__is_fp8_product(problem) && (!(problem->flags & GEMMEPI_FAST_ACCUMULATION) ||
                                                gemmepi__scale_varies_along_k(problem, GEMMEPI__A) ||
                                                gemmepi__scale_varies_along_k(problem, GEMMEPI__B));
}

/* Whether each 64 columns of a tile of B, from a multiple of 64 on, are of one block of scales. */
static int gemmepi__scales_are_uniform(const gemmepi__problem *problem) {
    return problem->views[GEMMEPI__B].scale == GEMMEPI_SCALE_BLOCK_128 &&
           (gemmepi__halves_in(problem) == 1 || gemmepi__half_columns(problem) % GEMMEPI__SM90_UNIT_N == 0);
}

/* Those that come beside a stage, where sums are promoted: a number for each row of A, and each column or unit of columns of B. */
static unsigned gemmepi__scale_bytes(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
    unsigned a = problem->views[GEMMEPI__A].scale > GEMMEPI_SCALE_TENSOR ? (unsigned)shape->tile_m : 0;
    unsigned columns = gemmepi__scales_are_uniform(problem)
                           ? (unsigned)shape->tile_n / GEMMEPI__SM90_UNIT_N
                           : (unsigned)(shape->tile_n + gemmepi__divide_up(shape->tile_n, 128) * 16);
    unsigned b = problem->views[GEMMEPI__B].scale > GEMMEPI_SCALE_TENSOR ? columns : 0;
    return gemmepi__promotes(problem) ? (a + b + 3) / 4 * 16 : 0;
}

/* >>what may go there */

/* Stages that all of k fills. */
static int64_t gemmepi__sm90_steps(const gemmepi__problem *problem) {
    return gemmepi__divide_up(problem->k, GEMMEPI__SM90_LINE * 8 / problem->views[GEMMEPI__A].bits);
}

/* What no kernel of the route has, or NULL. */
static const char *gemmepi__extents_rule(const gemmepi__problem *problem) {
    if (problem->k == 0)
        return "k is 0";
    if (problem->m > INT_MAX / 2 || problem->n > INT_MAX / 2 || problem->k > INT_MAX / 2)
        return "m, n or k is 2^30 or more";
    return NULL;
}

/* Whether registers are missing for scales of all rows of a tile that one warpgroup has: then two share it. */
static int gemmepi__found_beside(const gemmepi__problem *problem, int applied) {
    return problem->found_scale &&
           (!applied || gemmepi__has(problem, GEMMEPI_AUX | GEMMEPI_RESIDUAL | GEMMEPI_BACKWARD));
}

/* What keeps scales of D from being found in this kernel, or NULL. */
static const char *gemmepi__sm90_found_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
    if (!problem->found_scale)
        return NULL;
    if (gemmepi__halves_out(problem) > 1 || gemmepi__has(problem, GEMMEPI_BGRAD))
        return "beside a second half of d, or sums of its columns, registers are too few for a vector whose scale is found";
    if (gemmepi__halves_in(problem) > 1 && gemmepi__has(problem, GEMMEPI_AUX | GEMMEPI_RESIDUAL))
        return "beside a gate's aux or residual registers are too few for a vector whose scale is found";
    if (gemmepi__halves_in(problem) > 1 && gemmepi__has(problem, GEMMEPI_BIAS) &&
        gemmepi__activation(problem->epilogue) == GEMMEPI_TANH)
        return "beside alpha, C and a bias a gate of TANH leaves too few registers for a vector whose scale is found";
    return context->multiprocessors < 2 ? "where it finds scales its blocks come in pairs" : NULL;
}

/* What keeps TMA from its operands, whatever their type, or NULL. */
static const char *gemmepi__loads_rule(const gemmepi__problem *problem) {
    const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
    if (!gemmepi__tma_takes(problem, a, a->bits) || !gemmepi__tma_takes(problem, b, b->bits))
        return "TMA takes a and b at multiples of 16 bytes only: their pointers, lines and items";
    return gemmepi__extents_rule(problem);
}

/* The rule that keeps a problem from this kernel, or NULL. */
static const char *gemmepi__tma_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
    const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
    if (!gemmepi__chip_has(context->arch, GEMMEPI__WGMMA))
        return "its kernel is for compute capability 9.0";
    if (a->dtype != b->dtype ||
        (a->dtype != GEMMEPI_BF16 && a->dtype != GEMMEPI_F16 && !gemmepi__is_tf32(problem)))
        return "a and b are not both BF16, both F16 or both F32 with TF32";
    if (gemmepi__is_tf32(problem) && (a->transposed || !b->transposed))
        return "wgmma takes TF32 only where the elements along k lie side by side";
    if (gemmepi__halves_in(problem) > 1 && !b->transposed && gemmepi__half_columns(problem) % 8)
        return "TMA takes the second half of b at a multiple of 16 bytes only";
    if (gemmepi__sm90_found_rule(context, problem))
        return gemmepi__sm90_found_rule(context, problem);
    return gemmepi__loads_rule(problem);
}

/* Why TMA would take A at some m alone, or NULL. What does not lie at multiples of 16 bytes is copied (routes/fused.h). */
static const char *gemmepi__tma_varies(const gemmepi__problem *problem) {
    return problem->views[GEMMEPI__A].transposed
               ? "BATCH_INVARIANT: TMA takes lines as long as m where they are whole units of 16 bytes, so at some m alone"
               : NULL;
}

/* Of aux, whether it is written or read. */
static int gemmepi__halves_aside(const gemmepi__problem *problem) {
    return gemmepi__has(problem, GEMMEPI_GATED) && !gemmepi__has(problem, GEMMEPI_UPSTREAM) ? 2 : 1;
}

/* Bits of an element of the matrices that TMA moves for the epilogue: of one width, that of D where it can be. */
static int gemmepi__box_bits(const gemmepi__problem *problem) {
    return problem->views[GEMMEPI__D].bits == 32 ? 32 : 16;
}

/* Whether one is of so many bits, and its lines, and halves of them, are whole units of 16 bytes: TMA moves those, whatever the
   extents of its map say. */
static int gemmepi__moves_box(const gemmepi__problem *problem, int operand, int bits) {
    return gemmepi__half_columns(problem) * bits % 128 == 0 &&
           gemmepi__tma_takes(problem, &problem->views[operand], bits);
}

/* Results of so many bits: bits 1 D, 2 AUX. */
static int gemmepi__results_of(const gemmepi__problem *problem, int bits) {
    int results = 0;
    if (problem->views[GEMMEPI__D].bits == bits && !(problem->flags & GEMMEPI__ONLY_SUMS))
        results |= 1;
    if (gemmepi__has(problem, GEMMEPI_AUX) && problem->views[GEMMEPI__AUX].bits == bits)
        results |= 2;
    return results;
}

/* Those that leave in whole units. */
static int gemmepi__moved_of(const gemmepi__problem *problem, int bits) {
    int moved = gemmepi__results_of(problem, bits);
    if ((moved & 1) && !gemmepi__moves_box(problem, GEMMEPI__D, bits))
        moved -= 1;
    if ((moved & 2) && !gemmepi__moves_box(problem, GEMMEPI__AUX, bits))
        moved -= 2;
    return moved;
}

/* What TMA stores. */
static int gemmepi__sm90_moved(const gemmepi__problem *problem) {
    return gemmepi__moved_of(problem, gemmepi__box_bits(problem));
}

/* What it loads for the epilogue, likewise; the mask without TMA. */
static int gemmepi__sm90_loaded(const gemmepi__problem *problem) {
    int loaded = 0, bits = gemmepi__box_bits(problem);
    if (problem->grouping.scattered) /* rows of a box lie anywhere */
        return 0;
    if (gemmepi__has(problem, GEMMEPI_BACKWARD) && gemmepi__mask_is_aligned(problem))
        loaded |= 4;
    if (gemmepi__has(problem, GEMMEPI_BACKWARD) && gemmepi__moves_box(problem, GEMMEPI__AUX, bits))
        loaded |= 1;
    if (gemmepi__has(problem, GEMMEPI_RESIDUAL) && gemmepi__moves_box(problem, GEMMEPI__RESIDUAL, bits))
        loaded |= 2;
    return loaded;
}

/* Tiles along the axis that a sum of an operand is not of: in each, three warps add up 16 lines of the operand's tile at most. */
static int64_t gemmepi__tiles_across(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
    return gemmepi__has(problem, GEMMEPI_BGRAD_A)
               ? gemmepi__divide_up(gemmepi__half_columns(problem),
                                    shape->tile_n / gemmepi__halves_in(problem))
               : gemmepi__divide_up(problem->m, shape->tile_m);
}

/* The operand that the kernel sums, 1 A or 2 B. Other than 16 bits, few tiles, and an epilogue that leaves too few registers, leave it to another
   launch. */
static int gemmepi__sm90_summed(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape,
                                int applied) {
    int sums_a = gemmepi__has(problem, GEMMEPI_BGRAD_A), lines = sums_a ? shape->tile_m : shape->tile_n;
    if (!gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) || problem->views[GEMMEPI__A].bits != 16 ||
        GEMMEPI__SM90_SUMMERS * 16 * gemmepi__tiles_across(problem, shape) < lines ||
        (gemmepi__has(problem, GEMMEPI_GATED) && gemmepi__has(problem, GEMMEPI_AUX) && !applied))
        return 0;
    return sums_a ? 1 : 2;
}

/* Whether bias_grad is a sum over the batch, for which the kernel leaves a line of each item. */
static int gemmepi__sums_items(const gemmepi__problem *problem) {
    return problem->batch > 1 && problem->views[GEMMEPI__BIAS_GRAD].batch_stride == 0;
}

/* >>boxes of operands */

/* Columns of the product that lie side by side in a tile of B: of all its columns, or of either half's; where groups are of 64 columns
   a tile has whole ones. */
static int gemmepi__b_spans(const gemmepi__problem *problem) {
    return gemmepi__half_group(problem) == 32 ? 1 : gemmepi__halves_in(problem);
}

static int gemmepi__b_span(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
    return shape->tile_n / gemmepi__b_spans(problem);
}

static int64_t gemmepi__span_columns(const gemmepi__problem *problem) {
    return problem->n / gemmepi__b_spans(problem);
}

/* Lines of a box: along k those that a block loads of a tile of A, or of a half of B's. */
static int gemmepi__a_box(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
    return problem->views[GEMMEPI__A].transposed ? 64 : shape->tile_m / shape->cluster_n;
}

static int gemmepi__b_box(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
    int lines = shape->tile_n / shape->cluster_m, columns = gemmepi__b_span(problem, shape);
    int most = lines < columns ? lines : columns;
    return !problem->views[GEMMEPI__B].transposed ||
                   (gemmepi__b_spans(problem) > 1 && gemmepi__half_group(problem) % most)
               ? 64
               : most;
}

/* Whether tiles of clusters reach so far beyond an extent that there is less to load: a line, or where these lie along k a whole box. */
static int gemmepi__has_tail(int64_t extent, int64_t cluster, int is_side_by_side) {
    return (cluster - extent % cluster) % cluster >= (is_side_by_side ? 1 : 64);
}

static int gemmepi__last_lines(int64_t extent, int box) {
    return (int)((extent - 1) % box) + 1;
}

static int gemmepi__sm90_tails(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
    int beside = gemmepi__has_groups_of_rows(problem) ? shape->cluster_m : 1; /* of a group's last rows */
    int64_t columns = (int64_t)gemmepi__b_span(problem, shape) * shape->cluster_n * beside;
    return (!gemmepi__has_groups_of_rows(problem) &&
            gemmepi__has_tail(problem->m, shape->tile_m * shape->cluster_m,
                              !problem->views[GEMMEPI__A].transposed)) ||
           gemmepi__has_tail(gemmepi__span_columns(problem), columns, problem->views[GEMMEPI__B].transposed);
}

/* >>shared memory */

static unsigned gemmepi__sm90_stage_bytes(const gemmepi__sm90_shape *shape) {
    return (unsigned)(shape->tile_m + shape->tile_n) * GEMMEPI__SM90_LINE;
}

/* Of one matrix in every warp's buffer. */
#define GEMMEPI__SM90_BOXES (GEMMEPI__SM90_WARPS * GEMMEPI__SM90_BOX_M * GEMMEPI__SM90_LINE)

static unsigned gemmepi__staged_matrices(const gemmepi__problem *problem, const gemmepi__sm90 *sm90) {
    return (unsigned)((sm90->staged & 1 ? gemmepi__halves_out(problem) : 0) +
                      (sm90->staged & 2 ? gemmepi__halves_aside(problem) : 0));
}

static unsigned gemmepi__loaded_matrices(const gemmepi__problem *problem, int loaded) {
    return (unsigned)((loaded & 1 ? gemmepi__halves_aside(problem) : 0) +
                      (loaded & 2 ? gemmepi__halves_out(problem) : 0));
}

/* BGRAD: a slot of either warpgroup, in which each lane leaves a sum of every 32 columns: of 32 of a gate's, of 64 of others. */
static unsigned gemmepi__slot_bytes(const gemmepi__problem *problem) {
    int groups = gemmepi__has(problem, GEMMEPI_GATED) ? gemmepi__halves_out(problem) : 2;
    unsigned sums = (unsigned)groups * GEMMEPI__SM90_WARPS * 32 * 4;
    return gemmepi__has(problem, GEMMEPI_BGRAD) ? sums + 2 * GEMMEPI__SM90_PAIR : 0;
}

static unsigned gemmepi__sm90_shared(const gemmepi__problem *problem, const gemmepi__sm90 *sm90) {
    unsigned stage = gemmepi__sm90_stage_bytes(&sm90->shape) + gemmepi__scale_bytes(problem, &sm90->shape) +
                     GEMMEPI__SM90_PAIR;
    unsigned boxes = (unsigned)sm90->buffers * gemmepi__staged_matrices(problem, sm90) +
                     2 * gemmepi__loaded_matrices(problem, sm90->loaded);
    unsigned divided = sm90->shape.parts > 1 ? GEMMEPI__SM90_PAIR : 0;
    unsigned sums = sm90->summed ? GEMMEPI__SM90_SUMMERS * 16 * 8 : gemmepi__slot_bytes(problem);
    return (unsigned)sm90->stages * stage + boxes * GEMMEPI__SM90_BOXES +
           GEMMEPI__SM90_WARPS * GEMMEPI__SM90_PAIR + divided + sums;
}

/* As many stages as fit beside the buffers. */
static void gemmepi__fill_with_stages(const gemmepi__problem *problem, gemmepi__sm90 *sm90) {
    sm90->stages = GEMMEPI__SM90_STAGES;
    while (gemmepi__sm90_shared(problem, sm90) > GEMMEPI__SM90_SHARED)
        sm90->stages--;
}

/* Two buffers, where four stages are left. One is enough for what is copied, which is free at once. */
static void gemmepi__share_memory(const gemmepi__problem *problem, gemmepi__sm90 *sm90) {
    sm90->buffers = sm90->staged == sm90->copied ? 1 : 2;
    gemmepi__fill_with_stages(problem, sm90);
    if (sm90->stages < 4 && sm90->buffers > 1) {
        sm90->buffers = 1;
        gemmepi__fill_with_stages(problem, sm90);
    }
}

#endif
