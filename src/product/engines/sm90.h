/* The engine for Hopper: product and epilogue of 16-bit or TF32 operands in one kernel (sm90_fp8.h has that of fp8). It sums operands for bias_grad as
   they pass; of results it leaves a line of sums for each tile's rows, and where a batch shares the sums of an operand one for each
   item, which another launch adds up. */
#ifndef GEMMEPI_PRODUCT_ENGINES_SM90_H
#define GEMMEPI_PRODUCT_ENGINES_SM90_H

#include "engine.h"

#include <math.h>

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
    if (context->arch != 90)
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

/* Why TMA would take A at some m alone, or NULL. */
static const char *gemmepi__tma_varies(const gemmepi__problem *problem) {
    gemmepi__view a = problem->views[GEMMEPI__A];
    if (a.transposed)
        return "BATCH_INVARIANT: TMA takes lines as long as m where they are whole units of 16 bytes, so at some m alone";
    a.lines = 2; /* the rule for one is another */
    return gemmepi__tma_takes(problem, &a, a.bits)
               ? NULL
               : "BATCH_INVARIANT: TMA takes one row of such an operand, but no more";
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
    int64_t columns = (int64_t)gemmepi__b_span(problem, shape) * shape->cluster_n;
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

/* >>the choice of a shape */

/* Tiles of clusters, whose rows and columns it leaves in `rows` and `columns`. */
static int64_t gemmepi__sm90_tiles(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape,
                                   int64_t *rows, int64_t *columns) {
    int halves = gemmepi__halves_in(problem);
    *rows = gemmepi__divide_up(problem->m, (int64_t)shape->tile_m * shape->cluster_m);
    *columns = gemmepi__divide_up(gemmepi__half_columns(problem),
                                  (int64_t)shape->tile_n / halves * shape->cluster_n);
    if (gemmepi__has_groups_of_rows(problem)) {
        *rows = gemmepi__most_parts(problem, shape->tile_m);
        return gemmepi__offset(*rows, *columns, 0);
    }
    return gemmepi__offset(gemmepi__offset(*rows, *columns, 0), problem->batch, 0);
}

/* The shape, and what shared memory holds. */
static void gemmepi__cut_up(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape, int applied,
                            gemmepi__sm90 *sm90) {
    sm90->shape = *shape;
    if (gemmepi__found_beside(problem, applied))
        sm90->shape.ping_pong = 0;
    sm90->applied = applied;
    sm90->staged = gemmepi__results_of(problem, gemmepi__box_bits(problem));
    sm90->copied = sm90->staged - gemmepi__sm90_moved(problem);
    sm90->loaded = gemmepi__sm90_loaded(problem);
    sm90->summed = gemmepi__sm90_summed(problem, shape, applied);
    sm90->tails = gemmepi__sm90_tails(problem, shape);
    if (sm90->tails && !problem->views[GEMMEPI__A].transposed && !gemmepi__has_groups_of_rows(problem))
        sm90->last_a = gemmepi__last_lines(problem->m, gemmepi__a_box(problem, shape));
    if (sm90->tails && problem->views[GEMMEPI__B].transposed)
        sm90->last_b = gemmepi__last_lines(gemmepi__span_columns(problem), gemmepi__b_box(problem, shape));
    gemmepi__share_memory(problem, sm90);
}

/* Whether enough stages fit beside the boxes of a wide tile: with two of them it waits. */
static int gemmepi__has_stages(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape,
                               int applied) {
    gemmepi__sm90 sm90;
    memset(&sm90, 0, sizeof sm90);
    gemmepi__cut_up(problem, shape, applied, &sm90);
    return shape->tile_n <= 128 || sm90.stages > 2;
}

static int gemmepi__makes_gate_anew(const gemmepi__problem *problem) {
    const uint64_t anew = GEMMEPI_GATED | GEMMEPI_UPSTREAM | GEMMEPI_BIAS;
    return (problem->epilogue & anew) == anew;
}

/* Beside wgmma's sums, of 128 columns at most, there are those in F32. Without these a gate that is made anew has fewer registers
   left. What lies at odd places takes more registers. */
static int gemmepi__fp8_has_registers(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
    int is_odd = !gemmepi__epilogue_is_aligned(problem), is_wide = shape->tile_n > 128;
    if (!gemmepi__promotes(problem))
        return !(gemmepi__makes_gate_anew(problem) && is_odd && (is_wide || shape->ping_pong));
    if (shape->ping_pong || shape->tile_n == 192)
        return 0;
    return !is_wide || !(gemmepi__has(problem, GEMMEPI_BGRAD) ||
                         (is_odd && gemmepi__has(problem, GEMMEPI_AUX | GEMMEPI_RESIDUAL | GEMMEPI_GATED)));
}

/* Whether a block has all of the 128 columns whose scale is found, of a half. */
static int gemmepi__has_whole_vectors(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
    return shape->parts == 1 && shape->tile_n / gemmepi__halves_in(problem) % 128 == 0;
}

/* What shapes do not do for want of registers, or as they are made of units of 64 columns. */
static int gemmepi__shape_takes(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape,
                                int applied) {
    int64_t steps = gemmepi__sm90_steps(problem);
    if (gemmepi__has_groups_of_rows(problem) && shape->cluster_m > 1)
        return 0; /* blocks of a cluster have the same rows */
    if (problem->grouping.groups && (shape->parts > 1 || (problem->grouping.is_of_k && shape->ping_pong)))
        return 0; /* warpgroups that take turns would have to know each other's k */
    if (gemmepi__is_invariant(problem) && shape->parts > 1)
        return 0;
    if (gemmepi__is_fp8_product(problem) && !gemmepi__fp8_has_registers(problem, shape))
        return 0;
    if (gemmepi__halves_in(problem) > 1 && shape->tile_n % (2 * GEMMEPI__SM90_UNIT_N))
        return 0;
    if (problem->found_scale && !gemmepi__has_whole_vectors(problem, shape))
        return 0;
    if (gemmepi__found_beside(problem, applied) && gemmepi__halves_in(problem) == 1 && shape->tile_n > 128)
        return 0;
    if (gemmepi__has(problem, GEMMEPI_BGRAD) &&
        (shape->parts > 1 || shape->tile_n % (2 * GEMMEPI__SM90_UNIT_N)))
        return 0; /* in units of columns, of which there is an even number */
    if (!shape->ping_pong && shape->parts == 1 && gemmepi__extras(problem) &&
        (!applied || gemmepi__has(problem, GEMMEPI_RESIDUAL)))
        return 0; /* a register is missing: GELU_ERF spills three */
    return (steps >= 2 * shape->parts || shape->parts == 1) && gemmepi__has_stages(problem, shape, applied);
}

/* Cycles of a warpgroup for an element of the product in each of its threads: to store it, and more where it lies at no multiple of 16
   bytes. */
#define GEMMEPI__STORING_CYCLES 12
#define GEMMEPI__COPYING_CYCLES 20

/* Whether D leaves in whole units: by TMA, or of 8 bits in runs of eight, which takes as long (SWIGLU at 8192 x 28672 x 4096, an H100). */
static int gemmepi__stores_whole(const gemmepi__problem *problem) {
    const gemmepi__view *d = &problem->views[GEMMEPI__D];
    return (gemmepi__sm90_moved(problem) & 1) ||
           (d->bits == 8 && d->length % GEMMEPI__RUN == 0 && gemmepi__runs_are_aligned(problem, d));
}

/* Likewise of what else the epilogue does. Measured on an H200 for what they name; an activation's stand in its row. */
static double gemmepi__epilogue_cycles(const gemmepi__problem *problem) {
    const gemmepi__activation_row *row = gemmepi__activation_of(problem->epilogue);
    int backward = gemmepi__has(problem, GEMMEPI_BACKWARD), gated = gemmepi__has(problem, GEMMEPI_GATED);
    int activation = backward ? row->derivative_cycles : gated ? row->gate_cycles : row->cycles;
    double cycles = gated ? activation / 2.0 : activation;
    if (gemmepi__has(problem, GEMMEPI_AUX))
        cycles += 14;
    if (backward)
        cycles += 14 + 9 * gemmepi__halves_out(problem);
    if (gemmepi__has(problem, GEMMEPI_RESIDUAL))
        cycles += gemmepi__sm90_loaded(problem) & 2 ? 6 : 20;
    if (gemmepi__has(problem, GEMMEPI_BGRAD))
        cycles += 11 * gemmepi__halves_out(problem);
    if (problem->found_scale)
        cycles += 4;
#ifndef GEMMEPI_NO_FORMULA
    if (problem->formula)
        cycles += gemmepi__inside_cycles(problem);
#endif
    return cycles;
}

/* Cycles of a thread for an element of the product, where the epilogue reads others that do not lie in whole units: fitted to random
   products on an H100. */
#define GEMMEPI__ODD_CYCLES 32

static double gemmepi__odd_cycles(const gemmepi__problem *problem) {
    const gemmepi__view *views = problem->views;
    int saved = gemmepi__has(problem, GEMMEPI_BACKWARD) && views[GEMMEPI__AUX].bits > 1 &&
                !gemmepi__runs_are_aligned(problem, &views[GEMMEPI__AUX]);
    int residual = gemmepi__has(problem, GEMMEPI_RESIDUAL) &&
                   !gemmepi__runs_are_aligned(problem, &views[GEMMEPI__RESIDUAL]);
    return GEMMEPI__ODD_CYCLES * (saved * gemmepi__halves_out(problem) + residual);
}

/* Blocks that run at once in clusters, one cluster at least: those of more than two do not fill every set of
   multiprocessors (an H200 runs 30 of 4 and 15 of 8). */
static int64_t gemmepi__resident_blocks(const gemmepi_context *context, int cluster) {
    int64_t blocks = context->multiprocessors;
    if (cluster > 2)
        blocks -= blocks / 11;
    return blocks < cluster ? cluster : blocks / cluster * cluster;
}

static int gemmepi__cluster_blocks(const gemmepi__sm90_shape *shape) {
    return shape->cluster_m * shape->cluster_n * shape->parts;
}

/* Tiles of a block, of which some have one less. */
static int64_t gemmepi__sm90_waves(const gemmepi_context *context, const gemmepi__problem *problem,
                                   const gemmepi__sm90_shape *shape) {
    int64_t rows, columns, tiles = gemmepi__sm90_tiles(problem, shape, &rows, &columns);
    int cluster = gemmepi__cluster_blocks(shape);
    return gemmepi__divide_up(gemmepi__times(tiles, cluster), gemmepi__resident_blocks(context, cluster));
}

/* Of the blocks that run at once, those that have a tile, where each has one at most; else 1. */
static double gemmepi__sm90_share(const gemmepi_context *context, const gemmepi__problem *problem,
                                  const gemmepi__sm90_shape *shape) {
    int64_t rows, columns, tiles = gemmepi__sm90_tiles(problem, shape, &rows, &columns);
    int cluster = gemmepi__cluster_blocks(shape);
    double share = (double)(tiles * cluster) / (double)gemmepi__resident_blocks(context, cluster);
    return share < 1 ? share : 1;
}

/* Whether a cluster's blocks gain by lying side by side, where the lines that they write at about the same time lie together.
   Measured on several H200: up to 8 percent, most where the clock is high. Gradients without a gate lose 1 to 3 where k is 768 or
   2048, and wider tiles do not care. */
static int gemmepi__gains_side_by_side(const gemmepi__problem *problem, const gemmepi__sm90_shape *shape) {
    return shape->cluster_n > 1 && shape->tile_n == 128 &&
           (!gemmepi__has(problem, GEMMEPI_BACKWARD) || gemmepi__has(problem, GEMMEPI_GATED) ||
            problem->k > 2048);
}

/* Lines that are loaded of a tile: those that exist, or where they lie along m or n the boxes in which one does. */
static double gemmepi__lines_loaded(int64_t extent, int lines, int is_side_by_side) {
    int64_t there = is_side_by_side ? extent : gemmepi__divide_up(extent, 64) * 64;
    return there < lines ? (double)there : lines;
}

/* Lines that do not begin with whole lines of 128 bytes of L2's take TMA longer, more so where they do not begin with whole sectors of
   32. */
static double gemmepi__load_slowness(const gemmepi__view *view) {
    int64_t bytes = view->lines > 1 ? view->ld * view->bits / 8 : 0;
    return bytes % 32 ? 1.6 : bytes % 128 ? 1.3 : 1;
}

#define GEMMEPI__SM90_BLOCK_RATE 68 /* bytes a cycle that a block asks for */
#define GEMMEPI__SM90_RATE       6500 /* that all blocks have from L2, where half of what a cluster shares counts */
#define GEMMEPI__SM90_KEPT       (20 << 20) /* bytes of operands that stay in L2 beside what is written */

/* Cycles to load a step of k of a block's tile. All is fitted to random products on an H100: with a tile on every multiprocessor
   128 x 128 is loaded more slowly than it is multiplied, 128 x 256 is not. */
static double gemmepi__load_cycles(const gemmepi_context *context, const gemmepi__problem *problem,
                                   const gemmepi__sm90_shape *shape) {
    const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
    int halves = gemmepi__halves_in(problem), cluster = gemmepi__cluster_blocks(shape);
    double rows = gemmepi__lines_loaded(problem->m, shape->tile_m, !a->transposed) *
                  gemmepi__load_slowness(a) * GEMMEPI__SM90_LINE;
    double columns =
        halves *
        gemmepi__lines_loaded(gemmepi__half_columns(problem), shape->tile_n / halves, b->transposed) *
        gemmepi__load_slowness(b) * GEMMEPI__SM90_LINE;
    double own = rows / shape->cluster_n + columns / shape->cluster_m;
    double blocks =
        gemmepi__sm90_share(context, problem, shape) * (double)gemmepi__resident_blocks(context, cluster);
    double all = blocks * (own + rows + columns) / 2 / GEMMEPI__SM90_RATE;
    own /= GEMMEPI__SM90_BLOCK_RATE;
    return own > all ? own : all;
}

/* Bytes of pairs of fp8 that a multiprocessor multiplies in a cycle, at the clock that the power leaves it: measured on an H100, at
   4096^3 and 4096 x 7168 x 2048 between other products. */
#define GEMMEPI__FP8_RATE 3500

/* Microseconds that the product takes with a shape, roughly. A multiprocessor multiplies 2048 pairs of 16 bits, or half as many of
   TF32, a cycle (of a clock that is a little higher than the chip's row says, where it is not kept down); a launch takes 3200 cycles to
   begin and end, a tile 550. Where warpgroups take turns, the epilogue of one is behind the sums of the other, but half of what it does
   beyond storing shows, in wide tiles 0.7 of it (forward without a gate a seventh more in clusters of blocks one above the other, which
   wait for each other); of the last one half counts. Blocks that divide k take 1000 to add their sums up, and 800 for each doubling of their
   number. Fitted to all shapes' times of 192 random products on an H100, in graphs and in bursts: bench/candidates_h100.csv. */
static double gemmepi__sm90_microseconds(const gemmepi_context *context, const gemmepi__problem *problem,
                                         const gemmepi__sm90_shape *shape, int applied) {
    int cluster = gemmepi__cluster_blocks(shape);
    double megahertz = gemmepi__chip_of(context->arch)->megahertz;
    double waves = (double)gemmepi__sm90_waves(context, problem, shape);
    double area = (double)shape->tile_m * shape->tile_n;
    double steps = (double)gemmepi__divide_up(gemmepi__sm90_steps(problem), shape->parts);
    double multiply =
        area * GEMMEPI__SM90_LINE / (gemmepi__is_fp8_product(problem) ? GEMMEPI__FP8_RATE : 4220);
    double load = gemmepi__load_cycles(context, problem, shape);
    double sums = steps * (multiply > load ? multiply : load) + 550;
    double storing = GEMMEPI__STORING_CYCLES + (gemmepi__stores_whole(problem) ? 0 : GEMMEPI__COPYING_CYCLES);
    double beside = gemmepi__epilogue_cycles(problem) + gemmepi__odd_cycles(problem);
    double finish = area / 128 * (storing + beside) / shape->parts;
    double slowed = area / 128 * beside / shape->parts * (shape->tile_n > 128 ? 0.7 : 0.5);
    double cycles = 3200, tile = steps * multiply + 550;
    if (cluster > 1 && !gemmepi__has(problem, GEMMEPI_GATED | GEMMEPI_BACKWARD) &&
        !gemmepi__gains_side_by_side(problem, shape))
        slowed *= 1.15;
    tile = tile + slowed > sums ? tile + slowed : sums; /* loads do not wait for what is slowed */
    if (shape->ping_pong && !gemmepi__found_beside(problem, applied))
        cycles += (waves - 1) * (tile > finish ? tile : finish) + sums + finish / 2;
    else
        cycles += waves * (sums + finish + (shape->parts > 1 ? 1000 + 800 * log2((double)shape->parts) : 0));
    if (gemmepi__gains_side_by_side(problem, shape))
        cycles *= 0.995; /* enough to decide */
    if (gemmepi__sm90_summed(problem, shape, applied))
        return cycles / megahertz + (gemmepi__sums_items(problem) ? GEMMEPI__SUM_LAUNCH : 0);
    return cycles / megahertz + gemmepi__sums_microseconds(problem);
}

/* Of so many shapes, whose first one takes everything. */
static const gemmepi__sm90_shape *gemmepi__choose_shape(const gemmepi_context *context,
                                                        const gemmepi__problem *problem,
                                                        const gemmepi__sm90_shape *shapes, size_t count,
                                                        int applied, double *microseconds) {
    const gemmepi__sm90_shape *best = NULL;
    size_t i, any = 0; /* the first for everything that the rules admit */
    while (problem->found_scale && !gemmepi__has_whole_vectors(problem, &shapes[any]))
        any++;
    for (i = 0; i < count; i++) {
        const gemmepi__sm90_shape *shape = &shapes[i];
        double time;
        if ((i != any || problem->grouping.groups) &&
            (!gemmepi__shape_takes(problem, shape, applied) ||
             gemmepi__cluster_blocks(shape) > context->multiprocessors))
            continue;
        time = gemmepi__sm90_microseconds(context, problem, shape, applied);
        if (!best || time < *microseconds) {
            best = shape;
            *microseconds = time;
        }
    }
    return best;
}

static const gemmepi__sm90_shape *gemmepi__choose_sm90(const gemmepi_context *context,
                                                       const gemmepi__problem *problem, int applied,
                                                       double *microseconds) {
    return gemmepi__choose_shape(context, problem, gemmepi__sm90_shapes, GEMMEPI__COUNT(gemmepi__sm90_shapes),
                                 applied, microseconds);
}

/* Rows of clusters' tiles in which columns are taken one after another: what is under way at a time is about square; of groups, each of
   whose B is read anew, twice as high. No band is much lower than the others. */
static unsigned gemmepi__sm90_band(const gemmepi_context *context, const gemmepi__problem *problem,
                                   const gemmepi__sm90_shape *shape, int64_t rows) {
    int64_t area = (int64_t)context->multiprocessors * shape->tile_m * shape->tile_n;
    int64_t height = (int64_t)shape->tile_m * shape->cluster_m, high = 1, bands;
    while ((high + 1) * height * (high + 1) * height <= area)
        high++;
    if (gemmepi__has_groups_of_rows(problem))
        high *= 2;
    bands = (rows + high / 2) / high;
    return (unsigned)gemmepi__divide_up(rows, bands ? bands : 1);
}

/* >>building */

typedef struct gemmepi__map_shape {
    uint32_t rank;
    uint64_t extents[4], strides[3]; /* strides in elements, of all but the first axis */
    uint32_t box[4];
} gemmepi__map_shape;

/* promotion: what of DRAM comes to L2 at once where a part of it is read */
static int gemmepi__encode_map(const gemmepi__driver *driver, const gemmepi__view *view,
                               const gemmepi__map_shape *shape, int promotion, gemmepi__tensor_map *map) {
    static const uint32_t ones[4] = {1, 1, 1, 1};
    static const struct {
        int dtype, type;
    } types[] = {{GEMMEPI_BF16, GEMMEPI__CU_TENSOR_MAP_DATA_TYPE_BFLOAT16},
                 {GEMMEPI_F16, GEMMEPI__CU_TENSOR_MAP_DATA_TYPE_FLOAT16},
                 {GEMMEPI_E4M3, GEMMEPI__CU_TENSOR_MAP_DATA_TYPE_UINT8},
                 {GEMMEPI_E5M2, GEMMEPI__CU_TENSOR_MAP_DATA_TYPE_UINT8},
                 {GEMMEPI_F32, GEMMEPI__CU_TENSOR_MAP_DATA_TYPE_FLOAT32}};
    uint64_t strides[3], space[2 * sizeof(gemmepi__cu_tensor_map) / sizeof(uint64_t)];
    gemmepi__cu_tensor_map *aligned =
        (gemmepi__cu_tensor_map *)(((uintptr_t)space + 63) & ~(uintptr_t)63); /* as the driver wants it */
    unsigned axis, type = 0;
    int result;
    for (axis = 0; axis + 1 < shape->rank; axis++)
        strides[axis] = shape->strides[axis] * (uint64_t)view->bits / 8;
    while (types[type].dtype != view->dtype)
        type++;
    result = driver->tensor_map_encode_tiled(
        aligned, types[type].type, shape->rank, (void *)(uintptr_t)256, shape->extents, strides, shape->box,
        ones, GEMMEPI__CU_TENSOR_MAP_INTERLEAVE_NONE, GEMMEPI__CU_TENSOR_MAP_SWIZZLE_128B, promotion,
        GEMMEPI__CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (!result)
        memcpy(map, aligned, sizeof *map);
    return result;
}

/* From one line to the next: a single line's ld may be anything. */
static uint64_t gemmepi__map_line(const gemmepi__view *view) {
    int64_t unit = view->bits < 16 ? 16 : 8; /* whole units of 16 bytes */
    return (uint64_t)(view->lines > 1 ? view->ld : gemmepi__divide_up(view->length, unit) * unit);
}

/* How much of DRAM comes to L2 at once where a part of it is read. Lines that do not begin at multiples of 256 bytes would have more of
   their neighbours brought than they need: measured on an H200, loads from L2 take up to 1.18 of the time then. */
static int gemmepi__operand_promotion(const gemmepi__view *view) {
    return view->lines > 1 && view->ld * view->bits / 8 % 256 ? GEMMEPI__CU_TENSOR_MAP_L2_PROMOTION_L2_128B
                                                              : GEMMEPI__CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
}

/* An operand, as boxes of 128 bytes along its lines and `lines` lines. One item serves the whole batch where it has no stride. */
static int gemmepi__map_operand(const gemmepi__driver *driver, const gemmepi__problem *problem,
                                const gemmepi__view *view, int lines, gemmepi__tensor_map *map) {
    int has_items = problem->batch > 1 && view->batch_stride != 0;
    gemmepi__map_shape shape = {3, {0, 0, 1, 0}, {0, 0, 0}, {0, 0, 1, 0}};
    shape.extents[0] = (uint64_t)view->length;
    shape.extents[1] = (uint64_t)view->lines;
    shape.strides[0] = gemmepi__map_line(view);
    shape.strides[1] = shape.strides[0]; /* of an axis of one */
    if (has_items) {
        shape.extents[2] = (uint64_t)problem->batch;
        shape.strides[1] = (uint64_t)view->batch_stride;
    }
    shape.box[0] = (uint32_t)(GEMMEPI__SM90_LINE * 8 / view->bits);
    shape.box[1] = (uint32_t)lines;
    return gemmepi__encode_map(driver, view, &shape, gemmepi__operand_promotion(view), map);
}

/* A result: columns, rows, halves, items. Halves are an axis, so that one does not write into the other's columns; those of groups are
   of whole boxes. */
static int gemmepi__map_result(const gemmepi__driver *driver, const gemmepi__problem *problem,
                               const gemmepi__view *view, int halves, int promotion,
                               gemmepi__tensor_map *map) {
    gemmepi__map_shape shape = {4, {0, 0, 0, 0}, {0, 0, 0}, {0, GEMMEPI__SM90_BOX_M, 1, 1}};
    int together = gemmepi__half_group(problem) ? halves : 1, apart = halves / together;
    uint64_t line = gemmepi__map_line(view);
    shape.box[0] = (uint32_t)(GEMMEPI__SM90_LINE * 8 / view->bits);
    shape.extents[0] = (uint64_t)(gemmepi__half_columns(problem) * together);
    shape.extents[1] = (uint64_t)problem->m;
    shape.extents[2] = (uint64_t)apart;
    shape.extents[3] = (uint64_t)(gemmepi__has_groups_of_rows(problem) ? 1 : problem->batch);
    shape.strides[0] = line;
    shape.strides[1] = apart > 1 ? shape.extents[0] : line;
    shape.strides[2] = shape.extents[3] > 1 ? (uint64_t)view->batch_stride : line;
    return gemmepi__encode_map(driver, view, &shape, promotion, map);
}

/* Aux and a residual are read once, 128 bytes of a row at a time. To bring the 256 around them to L2 at once, as of operands, takes
   up to 1.6 percent more where k is 768, on an H200; where aux is written it saves up to 2. */
static gemmepi_status gemmepi__make_maps(const gemmepi__driver *driver, const gemmepi__problem *problem,
                                         gemmepi__sm90 *sm90) {
    const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
    const gemmepi__sm90_shape *shape = &sm90->shape;
    const int written = GEMMEPI__CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
              read = GEMMEPI__CU_TENSOR_MAP_L2_PROMOTION_NONE;
    int a_box = gemmepi__a_box(problem, shape), b_box = gemmepi__b_box(problem, shape);
    int moved = sm90->staged - sm90->copied;
    int result = gemmepi__map_operand(driver, problem, a, a_box, &sm90->params.a);
    if (!result)
        result = gemmepi__map_operand(driver, problem, b, b_box, &sm90->params.b);
    if (!result && sm90->last_a)
        result = gemmepi__map_operand(driver, problem, a, sm90->last_a, &sm90->params.a_tail);
    if (!result && sm90->last_b)
        result = gemmepi__map_operand(driver, problem, b, sm90->last_b, &sm90->params.b_tail);
    if (!result && moved & 1)
        result = gemmepi__map_result(driver, problem, &problem->views[GEMMEPI__D],
                                     gemmepi__halves_out(problem), written, &sm90->params.d);
    if (!result && (moved & 2 || sm90->loaded & 1))
        result = gemmepi__map_result(driver, problem, &problem->views[GEMMEPI__AUX],
                                     gemmepi__halves_aside(problem), sm90->loaded & 1 ? read : written,
                                     &sm90->params.aux);
    if (!result && (sm90->loaded & 2))
        result = gemmepi__map_result(driver, problem, &problem->views[GEMMEPI__RESIDUAL],
                                     gemmepi__halves_out(problem), read, &sm90->params.residual);
    return result ? gemmepi__cuda_failed(driver, result, "cuTensorMapEncodeTiled") : GEMMEPI_OK;
}

static void gemmepi__append_sm90_defines(gemmepi__text *text, const gemmepi__problem *problem,
                                         const gemmepi__sm90 *sm90) {
    const gemmepi__sm90_shape *shape = &sm90->shape;
    gemmepi__append_epilogue_defines(text, problem, gemmepi__epilogue_is_aligned(problem),
                                     problem->views[GEMMEPI__A].scale, problem->views[GEMMEPI__B].scale);
    gemmepi__append(text, "#define GEMMEPI_TILE_M %d\n#define GEMMEPI_TILE_N %d\n", shape->tile_m,
                    shape->tile_n);
    gemmepi__append(text, "#define GEMMEPI_STAGES %d\n#define GEMMEPI_PING_PONG %d\n", sm90->stages,
                    shape->ping_pong);
    gemmepi__append(text, "#define GEMMEPI_CLUSTER_M %d\n#define GEMMEPI_CLUSTER_N %d\n", shape->cluster_m,
                    shape->cluster_n);
    gemmepi__append(text, "#define GEMMEPI_PARTS %d\n#define GEMMEPI_BUFFERS %d\n", shape->parts,
                    sm90->buffers);
    gemmepi__append(text, "#define GEMMEPI_STAGED %d\n#define GEMMEPI_LOADED %d\n", sm90->staged,
                    sm90->loaded);
    gemmepi__append(text, "#define GEMMEPI_COPIED %d\n", sm90->copied);
    gemmepi__append(text, "#define GEMMEPI_BOX_GROUPS %d\n#define GEMMEPI_TAILS %d\n",
                    gemmepi__box_bits(problem) == 32 ? 1 : 2, sm90->tails);
    gemmepi__append(text, "#define GEMMEPI_APPLIED %d\n#define GEMMEPI_SHARED %u\n", sm90->applied,
                    gemmepi__sm90_shared(problem, sm90));
    gemmepi__append(text, "#define GEMMEPI_A_ROWS %d\n#define GEMMEPI_B_ROWS %d\n",
                    !problem->views[GEMMEPI__A].transposed, (int)problem->views[GEMMEPI__B].transposed);
    if (sm90->summed)
        gemmepi__append(text,
                        "#define GEMMEPI_SUMMED %d\n#define GEMMEPI_SUMS_TYPE %s\n"
                        "#define GEMMEPI_SUMS_ADD %d\n",
                        sm90->summed,
                        gemmepi__sums_items(problem) ? "F64"
                                                     : gemmepi__type_name(problem, GEMMEPI__BIAS_GRAD),
                        gemmepi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD) && !gemmepi__sums_items(problem));
    gemmepi__append(text, "#define GEMMEPI_WHOLE %d\n", gemmepi__half_columns(problem) % GEMMEPI__RUN == 0);
    gemmepi__append_grouping(text, problem);
    gemmepi__append_operands(text, problem);
    if (gemmepi__promotes(problem))
        gemmepi__append(text, "#define GEMMEPI_PROMOTES 1\n#define GEMMEPI_UNIFORM %d\n",
                        gemmepi__scales_are_uniform(problem));
}

static gemmepi_status gemmepi__get_sm90_kernel(gemmepi_context *context, const gemmepi__problem *problem,
                                               gemmepi__sm90 *sm90) {
    int dtype = problem->views[GEMMEPI__A].dtype, of_b = problem->views[GEMMEPI__B].dtype;
    char prologue[2048], words[160];
    gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
    gemmepi__append_sm90_defines(&text, problem, sm90);
    gemmepi__name_kernel(
        &sm90->launch, "gemmepi_sm90_%s%s%s_%dx%d%s%s%s",
        dtype == GEMMEPI_F32 ? "TF32" : gemmepi__dtype((gemmepi_dtype)dtype)->name, of_b == dtype ? "" : "_",
        of_b == dtype ? "" : gemmepi__dtype((gemmepi_dtype)of_b)->name, sm90->shape.tile_m,
        sm90->shape.tile_n, sm90->shape.parts > 1 ? "_parts" : "", gemmepi__name_of_grouping(problem),
        gemmepi__name_of_epilogue(problem, dtype, words));
    return gemmepi__get_product_kernel(context, problem, "gemm_sm90.cu", prologue, "gemmepi_fused",
                                       &sm90->launch);
}

static gemmepi_status gemmepi__lay_out_grid(const gemmepi_context *context, const gemmepi__problem *problem,
                                            gemmepi__sm90 *sm90) {
    const gemmepi__sm90_shape *shape = &sm90->shape;
    gemmepi__sm90_params *params = &sm90->params;
    int64_t cluster = gemmepi__cluster_blocks(shape), rows, columns;
    int64_t tiles = gemmepi__sm90_tiles(problem, shape, &rows, &columns), most;
    if (tiles <= 0 || tiles > INT_MAX / cluster)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "the result has more tiles than a grid has blocks");
    most = shape->parts > 1 ? tiles /* those of parts do not stay */
                            : gemmepi__resident_blocks(context, (int)cluster) / cluster;
    params->tiles = (unsigned)tiles;
    params->cluster_rows = (unsigned)rows;
    params->cluster_columns = (unsigned)columns;
    params->band = gemmepi__sm90_band(context, problem, shape, rows);
    params->k = (int)problem->k;
    params->a_items = problem->batch > 1 && problem->views[GEMMEPI__A].batch_stride != 0;
    params->b_items = problem->batch > 1 && problem->views[GEMMEPI__B].batch_stride != 0;
    sm90->launch.blocks = (unsigned)((most < tiles ? most : tiles) * cluster);
    sm90->launch.threads_x = GEMMEPI__SM90_THREADS;
    sm90->launch.threads_y = 1;
    sm90->launch.shared = gemmepi__sm90_shared(problem, sm90);
    return GEMMEPI_OK;
}

/* What is left of bias_grad when the kernel has run. */
static gemmepi_status gemmepi__finish_sums(gemmepi_context *context, const gemmepi__problem *problem,
                                           gemmepi__sm90 *sm90) {
    const gemmepi__view *out = &problem->views[GEMMEPI__BIAS_GRAD];
    if (!sm90->summed)
        return gemmepi__build_sums(context, problem, sm90->params.epilogue.row_tiles, &sm90->sums);
    sm90->params.sum_tiles = (int)gemmepi__tiles_across(problem, &sm90->shape);
    sm90->params.sums_stride = gemmepi__sums_items(problem) ? out->length : out->batch_stride;
    if (!gemmepi__sums_items(problem))
        return GEMMEPI_OK;
    return gemmepi__build_sum_of_lines(context, problem, 1, problem->batch, &sm90->sums);
}

/* As a shape that takes it. */
static gemmepi_status gemmepi__build_as_shape(gemmepi_context *context, const gemmepi__problem *problem,
                                              const gemmepi__sm90_shape *shape, int applied,
                                              gemmepi__sm90 *sm90) {
    gemmepi_status status;
    memset(sm90, 0, sizeof *sm90);
    gemmepi__cut_up(problem, shape, applied, sm90);
    gemmepi__fill_epilogue(problem, &sm90->params.epilogue, sm90->params.extras, sm90->params.places);
    sm90->params.epilogue.row_tiles =
        (unsigned)gemmepi__divide_up(problem->m, sm90->shape.ping_pong ? shape->tile_m : shape->tile_m / 2);
    sm90->partial_bytes = gemmepi__line_bytes(problem, sm90->params.epilogue.row_tiles);
    status = gemmepi__lay_out_grid(context, problem, sm90);
    if (!status)
        status = gemmepi__make_maps(&context->driver, problem, sm90);
    if (!status)
        status = gemmepi__get_sm90_kernel(context, problem, sm90);
    if (!status && gemmepi__has(problem, GEMMEPI__ANY_BGRAD))
        status = gemmepi__finish_sums(context, problem, sm90);
    return status;
}

static gemmepi_status gemmepi__sm90_build(gemmepi_context *context, const gemmepi__problem *problem,
                                          const gemmepi__candidate *candidate, void *built) {
    return gemmepi__build_as_shape(context, problem, &gemmepi__sm90_shapes[candidate->shape],
                                   candidate->applied, (gemmepi__sm90 *)built);
}

static void gemmepi__sm90_describe(const void *built, gemmepi__built_details *details) {
    const gemmepi__sm90 *sm90 = (const gemmepi__sm90 *)built;
    details->launch = &sm90->launch;
    details->pass = NULL;
    details->sums = &sm90->sums;
    details->tile_m = sm90->shape.tile_m;
    details->tile_n = sm90->shape.tile_n;
    details->workspace_size = gemmepi__round_up(sm90->partial_bytes, 256) + sm90->sums.partial_bytes;
}

/* >>running */

static int gemmepi__point_map(const gemmepi__driver *driver, gemmepi__tensor_map *map, void *pointer) {
    return driver->tensor_map_replace_address((gemmepi__cu_tensor_map *)(void *)map, pointer);
}

/* The primary context is current. */
static gemmepi_status gemmepi__sm90_run(const gemmepi_context *context, const gemmepi__problem *problem,
                                        const void *built, const gemmepi__arguments *arguments,
                                        char *workspace, gemmepi_stream stream) {
    const gemmepi__sm90 *sm90 = (const gemmepi__sm90 *)built;
    const gemmepi__driver *driver = &context->driver;
    void *const *pointers = arguments->pointers;
    char *between = gemmepi__past(workspace, sm90->partial_bytes);
    uint64_t space[(sizeof(gemmepi__sm90_params) + 128) / sizeof(uint64_t)];
    gemmepi__sm90_params *params = (gemmepi__sm90_params *)(((uintptr_t)space + 63) & ~(uintptr_t)63);
    gemmepi_status status = gemmepi__clear_amax(context, problem, arguments, stream);
    int moved = sm90->staged - sm90->copied, result;
    if (status)
        return status;
    memcpy(params, &sm90->params, sizeof *params);
    gemmepi__point_epilogue(arguments, sm90->applied, workspace, &params->epilogue, params->extras,
                            params->places);
    if (problem->grouping.groups)
        params->groups = arguments->groups;
    if (sm90->summed)
        params->sums = sm90->sums.second.function ? between : pointers[GEMMEPI__BIAS_GRAD];
    result = gemmepi__point_map(driver, &params->a, pointers[GEMMEPI__A]);
    if (!result)
        result = gemmepi__point_map(driver, &params->b, pointers[GEMMEPI__B]);
    if (!result && sm90->last_a)
        result = gemmepi__point_map(driver, &params->a_tail, pointers[GEMMEPI__A]);
    if (!result && sm90->last_b)
        result = gemmepi__point_map(driver, &params->b_tail, pointers[GEMMEPI__B]);
    if (!result && moved & 1)
        result = gemmepi__point_map(driver, &params->d, pointers[GEMMEPI__D]);
    if (!result && (moved & 2 || sm90->loaded & 1))
        result = gemmepi__point_map(driver, &params->aux, pointers[GEMMEPI__AUX]);
    if (!result && (sm90->loaded & 2))
        result = gemmepi__point_map(driver, &params->residual, pointers[GEMMEPI__RESIDUAL]);
    if (result)
        return gemmepi__cuda_failed(driver, result, "cuTensorMapReplaceAddress");
    status = gemmepi__launch_kernel(context, &sm90->launch, params, "the product", stream);
    if (status)
        return status;
    return gemmepi__run_sums(context, &sm90->sums, arguments, workspace, between, stream);
}

/* >>in words */

static void gemmepi__sm90_explain(const gemmepi__problem *problem, const void *built, gemmepi__text *text) {
    const gemmepi__sm90 *sm90 = (const gemmepi__sm90 *)built;
    const gemmepi__sm90_shape *shape = &sm90->shape;
    gemmepi__append(text, "  %s: product and epilogue, %u blocks, tiles of %d x %d%s, %d stages, ",
                    sm90->launch.name, sm90->launch.blocks, shape->tile_m, shape->tile_n,
                    shape->ping_pong ? " by two warpgroups in turns" : "", sm90->stages);
    if (shape->parts > 1)
        gemmepi__append(text, "each by %d blocks that divide k\n", shape->parts);
    else
        gemmepi__append(text, "clusters of %d x %d\n", shape->cluster_m, shape->cluster_n);
    if (sm90->summed)
        gemmepi__append(text, "  bias_grad: sums of %s as its tiles pass%s\n",
                        gemmepi__argument_name(problem, sm90->summed == 1 ? GEMMEPI__A : GEMMEPI__B),
                        sm90->sums.second.function ? ", of its items by 1 more launch" : "");
    else
        gemmepi__explain_sums(text, &sm90->sums);
}

/* >>the engine */

static void gemmepi__sm90_choose(const gemmepi_context *context, const gemmepi__problem *problem,
                                 gemmepi__candidate *candidate) {
    candidate->shape =
        (int)(gemmepi__choose_sm90(context, problem, candidate->applied, &candidate->microseconds) -
              gemmepi__sm90_shapes);
}

static double gemmepi__estimate_shape(const gemmepi_context *context, const gemmepi__problem *problem,
                                      const gemmepi__candidate *candidate, const gemmepi__sm90_shape *shape) {
    int takes = candidate->parts == 1 && gemmepi__shape_takes(problem, shape, candidate->applied) &&
                gemmepi__cluster_blocks(shape) <= context->multiprocessors;
    return takes ? gemmepi__sm90_microseconds(context, problem, shape, candidate->applied) : GEMMEPI__NEVER;
}

static double gemmepi__sm90_estimate(const gemmepi_context *context, const gemmepi__problem *problem,
                                     const gemmepi__candidate *candidate) {
    return gemmepi__estimate_shape(context, problem, candidate, &gemmepi__sm90_shapes[candidate->shape]);
}

static void gemmepi__sm90_tile(const gemmepi__candidate *candidate, int *tile_m, int *tile_n) {
    *tile_m = gemmepi__sm90_shapes[candidate->shape].tile_m;
    *tile_n = gemmepi__sm90_shapes[candidate->shape].tile_n;
}

static const gemmepi__engine gemmepi__sm90_engine = {"sm90",
                                                     GEMMEPI__HAS_SM90,
                                                     1,
                                                     gemmepi__tma_rule,
                                                     gemmepi__tma_varies,
                                                     gemmepi__sm90_choose,
                                                     GEMMEPI__COUNT(gemmepi__sm90_shapes),
                                                     gemmepi__sm90_estimate,
                                                     gemmepi__sm90_tile,
                                                     GEMMEPI__HAS_SM90 ? gemmepi__sm90_build : NULL,
                                                     gemmepi__sm90_describe,
                                                     gemmepi__sm90_explain,
                                                     GEMMEPI__HAS_SM90 ? gemmepi__sm90_run : NULL};

#endif
