/* What cuBLASLt would take for a product and for an epilogue of its own, by a small model. */
#ifndef GEMMEPI_PRODUCT_ESTIMATE_H
#define GEMMEPI_PRODUCT_ESTIMATE_H

#include "routes/fused.h"

/* Returns what the engine would take for runs whose alpha is 1 and which have no C; by: the shape */
static double gpi__microseconds_by(const gemmepi_context *context, const gpi__problem *problem,
                                   const gpi__engine *engine, gpi__candidate *by) {
    memset(by, 0, sizeof *by);
    by->applied = 1;
    return gpi__choose_shape(context, problem, engine, by);
}

/* The bare product by cuBLASLt where all lines begin at multiples of 16 bytes. On Hopper it takes what ours does in 16 bits and 0.8 us,
   mostly 0.9 to 1.2 of it, large or small. Where tiles are fewer than multiprocessors it divides a long k among all of these
   (4.3 us). Its TF32 takes 2.5 us more than ours, and 0.3 of the time for each operand that does not lie along k; its strict F32 0.75 of
   ours and 3 us. All measured on an H200. */
static double gpi__aligned_microseconds(const gemmepi_context *context, const gpi__problem *bare) {
    gpi__problem side_by_side = *bare;
    gpi__candidate by;
    double microseconds, divided;
    int transposes = 0, operand;
    for (operand = GPI__A; gpi__is_tf32(bare) && operand <= GPI__B; operand++) {
        transposes += !gpi__is_side_by_side(bare, operand);
        side_by_side.views[operand].transposed = operand == GPI__B;
    }
    if (gpi__tma_rule(context, &side_by_side)) {
        microseconds = gpi__microseconds_by(context, bare, &gpi__sm80_engine, &by);
        return gpi__is_fma(bare) ? 0.75 * microseconds + 3 : microseconds;
    }
    microseconds = gpi__microseconds_by(context, &side_by_side, &gpi__sm90_engine, &by);
    if (gpi__is_tf32(bare))
        return microseconds * (1 + 0.3 * transposes) + 2.5;
    divided = microseconds * gpi__sm90_share(context, &side_by_side, &gpi__sm90_shapes[by.shape]) + 4.3;
    return divided < microseconds + 0.8 ? divided : microseconds + 0.8;
}

/* Whether cuBLASLt multiplies fp8 as it lies: along k, in multiples of 16, not E5M2 twice. */
static int gpi__lt_accepts_fp8(const gpi__problem *problem) {
    const gpi__view *a = &problem->views[GPI__A], *b = &problem->views[GPI__B];
    return gpi__is_side_by_side(problem, GPI__A) && gpi__is_side_by_side(problem, GPI__B) &&
           gpi__unit_of(problem, a, 0) == 16 && gpi__unit_of(problem, b, 0) == 16 && problem->k % 16 == 0 &&
           problem->n % 16 == 0 && (a->dtype != GEMMEPI_E5M2 || b->dtype != GEMMEPI_E5M2);
}

/* The bare product of fp8 by cuBLASLt: as ours, or where it does not take the operands of copies in F16. */
static double gpi__fp8_microseconds(const gemmepi_context *context, const gpi__problem *problem) {
    gpi__problem bare = *problem;
    gpi__candidate by;
    double copies = 0;
    int operand, takes = gpi__lt_accepts_fp8(problem);
    for (operand = GPI__A; operand <= GPI__B; operand++) {
        gpi__view *view = &bare.views[operand];
        copies += 1.4 + 3 * (double)view->lines * (double)view->length / 3.5e6;
        if (!takes) {
            view->dtype = GEMMEPI_F16;
            view->bits = 16;
        }
        view->scale = 0;
        view->transposed = operand == GPI__B;
        view->ld = gpi__divide_up(problem->k, 64) * 64;
    }
    bare.epilogue = GEMMEPI_NONE;
    bare.formula = NULL;
    return gpi__microseconds_by(context, &bare, takes ? &gpi__sm90_fp8_engine : &gpi__sm90_engine, &by) +
           (takes ? 0.8 : copies * (double)problem->batch);
}

/* Weights in I8 are converted to 16 bits first, which are written and read at 3.5 TB/s as copies of operands are. */
static double gpi__bare_microseconds(const gemmepi_context *context, const gpi__problem *problem);
static double gpi__widened_microseconds(const gemmepi_context *context, const gpi__problem *problem) {
    gpi__problem wide = *problem;
    gpi__view *b = &wide.views[GPI__B];
    *b = gpi__converted_view(b, problem->batch, problem->common);
    return gpi__bare_microseconds(context, &wide) + 1.4 + 1.5 * (double)b->bytes / 3.5e6;
}

/* Where they, or as many elements as op(B) has columns, begin or end otherwise: a time for k, of which a long one is divided, 1.6
   times what memory takes, and 6.5 times what it takes to multiply (3.4 times where they do at multiples of 4). Strict F32 takes no
   longer. Fitted to times in CUDA graphs on an H100, of which it is some 0.2 off in the mean. */
static double gpi__bare_microseconds(const gemmepi_context *context, const gpi__problem *problem) {
    gpi__problem bare;
    double least,
        pairs = (double)problem->m * (double)problem->n * (double)problem->k * (double)problem->batch;
    const gpi__chip *chip = gpi__chip_of(context->arch);
    double rate = gpi__sm80_rate(problem, chip), otherwise;
    int packs[2] = {GPI__IN_UNITS, GPI__IN_UNITS};
    int unit = gpi__unit_of(problem, &problem->views[GPI__A], problem->n * problem->views[GPI__A].bits / 8);
    if (gpi__is_of_weights(problem))
        return gpi__widened_microseconds(context, problem);
    if (unit > gpi__unit_of(problem, &problem->views[GPI__B], 0))
        unit = gpi__unit_of(problem, &problem->views[GPI__B], 0);
    gpi__pack_views(problem, packs, &bare);
    bare.epilogue = GEMMEPI_NONE;
    least = gpi__is_fp8_product(problem) ? gpi__fp8_microseconds(context, problem)
                                         : gpi__aligned_microseconds(context, &bare);
    if (gpi__is_fp8_product(problem))
        return least;
    if (unit == 16 || gpi__is_fma(problem))
        return least;
    if (chip->wgmma > 0)
        rate = problem->common == GEMMEPI_F32 ? chip->wgmma / 2 : chip->wgmma;
    otherwise = 3 + 6.5 * (double)problem->k / ((double)problem->k + 200) +
                (double)(problem->views[GPI__A].bytes + problem->views[GPI__B].bytes) /
                    (0.62 * gpi__memory_rate(context)) +
                (unit > 2 ? 3.4 : 6.5) * pairs / (rate * context->multiprocessors * chip->megahertz);
    return otherwise > least ? otherwise : least;
}

/* Returns what an epilogue of cuBLASLt's own costs beside the bare product: picoseconds for an element of D, and 7 us where it sums a
   gradient, measured on an H200 with cuBLASLt 13.1. */
static double gpi__lt_epilogue_microseconds(const gpi__problem *problem) {
    double elements = (double)problem->m * (double)problem->n * (double)problem->batch;
    int costs = gpi__activation_costs(problem->epilogue) || gpi__has(problem, GEMMEPI_BIAS | GEMMEPI_AUX);
    double each = gpi__has(problem, GEMMEPI_BACKWARD) ? 6 : costs ? 0.6 : 0;
    return (gpi__has(problem, GEMMEPI_BGRAD) ? 7 : 0) + elements * 1e-6 * each;
}

#endif
