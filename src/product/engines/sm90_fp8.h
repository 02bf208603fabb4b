/* The engine for fp8 on Hopper: E4M3 and E5M2 in any pairing, product and epilogue in the kernel of sm90.h, whose model and builder it
   shares. wgmma keeps fewer bits of such sums than F32 has: without FAST_ACCUMULATION, and with scales that vary along k, what it adds up
   of each 128 of k goes to sums in F32, times these scales. Then both warpgroups share a tile, so that one multiplies while the other
   adds. */
#ifndef GEMMEPI_PRODUCT_ENGINES_SM90_FP8_H
#define GEMMEPI_PRODUCT_ENGINES_SM90_FP8_H

#include "sm90.h"

typedef gpi__sm90 gpi__sm90_fp8;

/* What keeps a problem from this kernel wherever its operands lie, or NULL. */
static const char *gpi__fp8_layout_rule(const gemmepi_context *context, const gpi__problem *problem) {
    if (!gpi__chip_has(context->arch, GPI__WGMMA))
        return "its kernel is for compute capability 9.0";
    if (!gpi__is_fp8_product(problem))
        return "a and b are not both E4M3 or E5M2";
    if (problem->views[GPI__A].transposed || !problem->views[GPI__B].transposed)
        return "wgmma reads fp8 only where the elements along k are contiguous";
    if (problem->found_scale && gpi__has(problem, GEMMEPI_AUX | GEMMEPI_RESIDUAL | GEMMEPI_BACKWARD))
        return "with sums of fp8, and aux or a residual, registers are too few for a vector whose scale is found";
    if (problem->found_scale && gpi__halves_in(problem) > 1 && !gpi__promotes(problem))
        return "with FAST_ACCUMULATION and a gate registers are too few for a vector whose scale is found";
    return gpi__sm90_found_rule(context, problem);
}

/* The rule that keeps a problem from this kernel, or NULL. */
static const char *gpi__fp8_rule(const gemmepi_context *context, const gpi__problem *problem) {
    const char *rule = gpi__fp8_layout_rule(context, problem);
    return rule ? rule : gpi__loads_rule(problem);
}

/* What keeps such a problem from every engine, however its operands are copied, or NULL. With BATCH_INVARIANT they are not turned. */
static const char *gpi__fp8_engines_rule(const gemmepi_context *context, const gpi__problem *problem) {
    const char *rule = NULL;
    if (!gpi__chip_has(context->arch, GPI__WGMMA) && !gpi__chip_has(context->arch, GPI__ANY_FP8))
        return "its kernels for fp8 are for compute capability 7.5 to 9.0, 12.0 and 12.1";
    if (gpi__is_invariant(problem))
        rule = gpi__chip_has(context->arch, GPI__WGMMA)
                   ? gpi__fp8_layout_rule(context, problem)
                   : "with BATCH_INVARIANT its kernel for fp8 is for compute capability 9.0";
    return rule ? rule : gpi__extents_rule(problem);
}

static void gpi__explain_promotion(const gpi__problem *problem, gpi__text *text) {
    int varies = gpi__scale_varies_along_k(problem, GPI__A) || gpi__scale_varies_along_k(problem, GPI__B);
    if (gpi__promotes(problem))
        gpi__append(text, "  sums of each %d of k go to sums in F32%s\n", 1024 / problem->views[GPI__A].bits,
                    varies ? ", times the scales that vary along k" : "");
}

static void gpi__sm90_fp8_explain(const gpi__problem *problem, const void *built, gpi__text *text) {
    gpi__sm90_explain(problem, built, text);
    gpi__explain_promotion(problem, text);
}

GPI__ENGINE(sm90_fp8, (GPI__HAS_SM90 && GPI__HAS_FP8), 1, gpi__fp8_rule, gpi__tma_varies, sm90,
            gpi__sm90_fp8_explain, gpi__sm90_run);

#endif
