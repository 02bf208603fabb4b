/* What cuBLASLt would take for a product and for an epilogue of its own, by a small model. */
#ifndef GEMMEPI_PRODUCT_ESTIMATE_H
#define GEMMEPI_PRODUCT_ESTIMATE_H

#include "routes/fused.h"

/* Returns what the engine would take for runs with unit alpha; by: the shape */
static double gpi__microseconds_by(const gemmepi_context *context, const gpi__problem *problem,
                                   const gpi__engine *engine, gpi__candidate *by) {
    memset(by, 0, sizeof *by);
    by->unit_alpha = 1;
    return gpi__choose_shape(context, problem, engine, by);
}

/* Returns what the bare product takes by cuBLASLt where all lines begin at multiples of 16 bytes: as ours, and where tiles are fewer than
   multiprocessors a long k is divided. */
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
        return gpi__is_fma(bare) ? GPI__LT_FMA * microseconds + GPI__LT_FMA_MORE : microseconds;
    }
    microseconds = gpi__microseconds_by(context, &side_by_side, &gpi__sm90_engine, &by);
    if (gpi__is_tf32(bare))
        return microseconds * (1 + GPI__LT_TURNED * transposes) + GPI__LT_TF32;
    divided =
        microseconds * gpi__sm90_share(context, &side_by_side, &gpi__sm90_shapes[by.shape]) + GPI__LT_DIVIDES;
    return divided < microseconds + GPI__LT_MORE ? divided : microseconds + GPI__LT_MORE;
}

/* Whether cuBLASLt multiplies fp8 as it lies: along k, in multiples of 16, not E5M2 twice. */
static int gpi__lt_accepts_fp8(const gpi__problem *problem) {
    const gpi__view *a = &problem->views[GPI__A], *b = &problem->views[GPI__B];
    return gpi__is_side_by_side(problem, GPI__A) && gpi__is_side_by_side(problem, GPI__B) &&
           gpi__unit_of(problem, a, 0) == 16 && gpi__unit_of(problem, b, 0) == 16 && problem->k % 16 == 0 &&
           problem->n % 16 == 0 && (a->dtype != GEMMEPI_E5M2 || b->dtype != GEMMEPI_E5M2);
}

/* The bare product of fp8 or I8 by cuBLASLt: as ours, or where it does not take the operands of copies in F16. */
static double gpi__bytes_microseconds(const gemmepi_context *context, const gpi__problem *problem) {
    gpi__problem bare = *problem;
    gpi__candidate by;
    double copies = 0;
    int operand, takes = gpi__is_i8_product(problem) || gpi__lt_accepts_fp8(problem);
    for (operand = GPI__A; operand <= GPI__B; operand++) {
        gpi__view *view = &bare.views[operand];
        copies += gpi__copy_microseconds(3 * (double)view->lines * (double)view->length);
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
    if (!gpi__chip_has(context->arch, GPI__WGMMA))
        return gpi__microseconds_by(context, &bare, &gpi__sm80_engine, &by) +
               (takes ? GPI__LT_MORE : copies * (double)problem->batch);
    return gpi__microseconds_by(context, &bare, takes ? &gpi__sm90_fp8_engine : &gpi__sm90_engine, &by) +
           (takes ? GPI__LT_MORE : copies * (double)problem->batch);
}

/* Returns what the bare product takes by cuBLASLt: more where lines of A or B, or as many elements as op(B) has columns, begin or end
   anywhere, though lines be padded (4352 x 256 x 2031 took an H200 64 us, and the kernel for Hopper 17). Strict F32 takes no longer. */
static double gpi__bare_microseconds(const gemmepi_context *context, const gpi__problem *problem) {
    gpi__problem bare = *problem;
    const gpi__view *a = &problem->views[GPI__A], *b = &problem->views[GPI__B];
    const gpi__chip *chip = gpi__chip_of(context->arch);
    double pairs = (double)problem->m * (double)problem->n * (double)problem->k * (double)problem->batch;
    double rate = gpi__sm80_rate(problem, chip), least, otherwise;
    int packs[2] = {GPI__IN_UNITS, GPI__IN_UNITS};
    int unit = gpi__unit_of(problem, a, (problem->n | a->length) * a->bits / 8);
    int unit_b = gpi__unit_of(problem, b, b->length * b->bits / 8);
    if (bare.compute == GEMMEPI_COMPUTE_F16)
        bare.compute = GEMMEPI_COMPUTE_F32; /* as it is handed to cuBLASLt */
    if (gpi__is_of_weights(problem)) {      /* which are converted to 16 bits first */
        bare.views[GPI__B] = gpi__converted_view(b, problem->batch, problem->common);
        return gpi__bare_microseconds(context, &bare) +
               gpi__copy_microseconds(1.5 * (double)bare.views[GPI__B].bytes);
    }
    if (gpi__is_byte_product(problem))
        return gpi__bytes_microseconds(context, problem);
    gpi__pack_views(problem, packs, &bare);
    bare.epilogue = GEMMEPI_NONE;
    least = gpi__aligned_microseconds(context, &bare);
    unit = unit < unit_b ? unit : unit_b;
    if (unit == 16 || gpi__is_fma(problem))
        return least;
    if (chip->wgmma > 0)
        rate = problem->common == GEMMEPI_F32 ? chip->wgmma / 2 : chip->wgmma;
    otherwise = GPI__LT_ODD + GPI__LT_ODD_K * (double)problem->k / ((double)problem->k + 200) +
                (double)(a->bytes + b->bytes) / (GPI__LT_ODD_RATE * gpi__memory_rate(context)) +
                GPI__LT_ODD_PAIRS * pairs / (rate * context->multiprocessors * chip->megahertz);
    return otherwise > least ? otherwise : least;
}

/* Returns what an epilogue of cuBLASLt's own costs beside the bare product. */
static double gpi__lt_epilogue_microseconds(const gpi__problem *problem) {
    double elements = (double)problem->m * (double)problem->n * (double)problem->batch;
    int costs = gpi__activation_costs(problem->epilogue) || gpi__has(problem, GEMMEPI_BIAS | GEMMEPI_AUX);
    double each = gpi__has(problem, GEMMEPI_BACKWARD) ? GPI__LT_BACKWARD : costs ? GPI__LT_ACTIVATION : 0;
    if (gpi__has(problem, GEMMEPI_AUX))
        each += GPI__LT_AUX;
    return (gpi__has(problem, GEMMEPI_BGRAD) ? GPI__LT_BGRAD : 0) + elements * 1e-6 * each;
}

#endif
