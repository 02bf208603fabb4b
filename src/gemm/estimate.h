/* What the routes of a product would take, by a small model: it chooses between them, and gemmepi_explain shows it. */
#ifndef GEMMEPI_GEMM_ESTIMATE_H
#define GEMMEPI_GEMM_ESTIMATE_H

#include "ours.h"
#include "split.h"

/* Microseconds; 0 where the route does not run the problem, or nothing is known of the device. */
typedef struct gemmepi__estimates {
    double fused, lt, split;
} gemmepi__estimates;

#define GEMMEPI__MANY_TILES 20 /* of 128 x 128, for each multiprocessor */

/* The bare product by cuBLASLt where all lines begin at multiples of 16 bytes. On Hopper it has kernels of the same shapes as
   ours, and others where blocks are few: measured, it takes 0.8 of the time of ours there in 16 bits. Where they are many its first answer
   takes 1.03 to 1.09 of its best in 16 bits. Its TF32 takes as long as ours where k lies side by side, and 1 us, its strict F32 0.78
   of ours and 3 us: measured on an H200 from 64^3 to 1536^3. */
static double gemmepi__aligned_microseconds(const gemmepi_context *context, const gemmepi__problem *bare) {
    gemmepi__problem side_by_side = *bare;
    const gemmepi__fused_shape *shape;
    double microseconds = 0;
    int64_t rows, columns, tiles;
    if (gemmepi__is_tf32(bare)) {
        side_by_side.views[GEMMEPI__A].transposed = 0;
        side_by_side.views[GEMMEPI__B].transposed = 1;
    }
    if (gemmepi__tma_rule(context, &side_by_side)) {
        gemmepi__choose_mma(context, bare, &microseconds);
        return gemmepi__is_fma(bare) ? 0.78 * microseconds + 3 : microseconds;
    }
    shape = gemmepi__choose_shape(context, &side_by_side, 1, &microseconds);
    if (bare->common == GEMMEPI_F32)
        return microseconds + 1;
    if ((double)bare->m * (double)bare->n * (double)bare->batch >
        128.0 * 128 * GEMMEPI__MANY_TILES * context->multiprocessors)
        microseconds *= 1.03;
    tiles = gemmepi__fused_tiles(&side_by_side, shape, &rows, &columns);
    if (tiles > 0 && tiles <= context->multiprocessors / 2 / (shape->cluster_m * shape->cluster_n))
        microseconds *= 0.8;
    return microseconds;
}

/* Where they begin otherwise: measured on an H200, 10 us and six times what it takes to multiply (three times where they
   begin at multiples of 4). Strict F32 takes no longer. */
static double gemmepi__bare_microseconds(const gemmepi_context *context, const gemmepi__problem *problem) {
    gemmepi__problem bare;
    double aligned,
        pairs = (double)problem->m * (double)problem->n * (double)problem->k * (double)problem->batch;
    double rate = gemmepi__mma_rate(problem, context->arch), otherwise;
    int packs[2] = {1, 1}, unit = gemmepi__unit_of(problem, &problem->views[GEMMEPI__A], 0);
    if (unit > gemmepi__unit_of(problem, &problem->views[GEMMEPI__B], 0))
        unit = gemmepi__unit_of(problem, &problem->views[GEMMEPI__B], 0);
    gemmepi__pack_views(problem, packs, &bare);
    bare.epilogue = GEMMEPI_NONE;
    aligned = gemmepi__aligned_microseconds(context, &bare);
    if (unit == 16 || gemmepi__is_fma(problem))
        return aligned;
    if (context->arch == 90)
        rate = problem->common == GEMMEPI_F32 ? 870 : 1740; /* of wgmma, as it is reached */
    otherwise = 10 + (unit > 2 ? 3 : 6) * pairs / (rate * context->multiprocessors * 1700);
    return otherwise > aligned ? otherwise : aligned;
}

/* Picoseconds for an element of D that cuBLASLt's own epilogues cost beside the bare product, measured on an H200 with
   cuBLASLt 13.1: the first row whose flags and activation the problem has. */
static const struct {
    gemmepi_epilogue flags;
    double relu, others;
} gemmepi__lt_costs[] = {{GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 5.9, 7.5},
                         {GEMMEPI_BACKWARD, 6, 1.5},
                         {GEMMEPI_AUX, 0.8, 1.25},
                         {GEMMEPI_BIAS, 0.37, 0.64}};

static double gemmepi__lt_epilogue_picoseconds(const gemmepi__problem *problem) {
    int is_relu = gemmepi__activation(problem->epilogue) <= GEMMEPI_RELU;
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__lt_costs); i++)
        if ((problem->epilogue & gemmepi__lt_costs[i].flags) == gemmepi__lt_costs[i].flags)
            return is_relu ? gemmepi__lt_costs[i].relu : gemmepi__lt_costs[i].others;
    return is_relu ? 0 : 0.64;
}

static int gemmepi__is_left_out(const gemmepi_context *context, gemmepi_route route) {
    return context->routes && !(context->routes >> route & 1);
}

/* cuBLASLt is not asked: to load it takes longer than to build a plan. */
static void gemmepi__estimate_routes(const gemmepi_context *context, const gemmepi__problem *problem,
                                     gemmepi__estimates *estimates) {
    double elements = (double)problem->m * (double)problem->n * (double)problem->batch, bare;
    int applied = !(problem->flags & GEMMEPI_DEVICE_SCALARS), packs[2];
    memset(estimates, 0, sizeof *estimates);
    if (gemmepi__fused_rule(context, problem))
        return;
    bare = gemmepi__bare_microseconds(context, problem);
    if (!gemmepi__is_left_out(context, GEMMEPI_ROUTE_FUSED))
        estimates->fused = gemmepi__choose_packs(context, problem, applied, packs);
    if (!gemmepi__is_left_out(context, GEMMEPI_ROUTE_LT) && !gemmepi__lt_rule(problem))
        estimates->lt = bare + elements * gemmepi__lt_epilogue_picoseconds(problem) * 1e-6 +
                        gemmepi__operand_sum_microseconds(problem);
    if (!gemmepi__is_left_out(context, GEMMEPI_ROUTE_SPLIT))
        estimates->split = bare + gemmepi__pass_microseconds(problem, 1);
}

/* Where nothing is to be gained cuBLASLt has no kernel to compile. */
static int gemmepi__fused_is_least(const gemmepi__estimates *estimates) {
    double other = estimates->lt > 0 ? estimates->lt : estimates->split;
    return estimates->fused > 0 && (other <= 0 || estimates->fused < 0.99 * other);
}

#endif
