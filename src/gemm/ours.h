/* The route fused: which of our two kernels runs a problem, and which operands are packed for it first. */
#ifndef GEMMEPI_GEMM_OURS_H
#define GEMMEPI_GEMM_OURS_H

#include "convert.h"
#include "mma.h"

/* Kernels that are left out of the program. What they would take is still known: cuBLASLt's time is estimated by it. */
#ifdef GEMMEPI_NO_SM80
#define GEMMEPI__HAS_SM80 0
#else
#define GEMMEPI__HAS_SM80 1
#endif
#ifdef GEMMEPI_NO_SM90
#define GEMMEPI__HAS_SM90 0
#else
#define GEMMEPI__HAS_SM90 1
#endif
#define GEMMEPI__NEVER 1e300 /* microseconds */

typedef struct gemmepi__ours {
    int is_mma; /* gemmepi_mma, else gemmepi_fused */
    gemmepi__fused fused;
    gemmepi__mma mma;
    gemmepi__convert packs[2]; /* of A and B */
} gemmepi__ours;

/* How an operand is packed. */
enum {
    GEMMEPI__NOT_PACKED,
    GEMMEPI__IN_UNITS,    /* into lines that begin at multiples of 16 bytes */
    GEMMEPI__SIDE_BY_SIDE /* into such that lie along k */
};

/* >>packing */

static gemmepi__view gemmepi__packed_view(const gemmepi__problem *problem, int operand, int pack) {
    const gemmepi__view *view = &problem->views[operand];
    return pack == GEMMEPI__SIDE_BY_SIDE ? gemmepi__transposed_view(view, problem->batch)
                                         : gemmepi__converted_view(view, problem->batch, view->dtype);
}

/* Whether its lines lie along k. */
static int gemmepi__is_side_by_side(const gemmepi__problem *problem, int operand) {
    return (problem->views[operand].transposed != 0) == (operand == GEMMEPI__B);
}

/* How the operand is packed, if operands are: so that it is taken 16 bytes at a time or, side_by_side, lies as the kernel for Hopper
   has to have TF32. Items that overlap would be far larger. */
static int gemmepi__pack_of(const gemmepi__problem *problem, int operand, int side_by_side) {
    gemmepi__problem packed = *problem;
    int pack = side_by_side && !gemmepi__is_side_by_side(problem, operand) ? GEMMEPI__SIDE_BY_SIDE
               : gemmepi__copy_unit(problem, operand) < 16                 ? GEMMEPI__IN_UNITS
                                                                           : GEMMEPI__NOT_PACKED;
    if (pack == GEMMEPI__NOT_PACKED)
        return pack;
    packed.views[operand] = gemmepi__packed_view(problem, operand, pack);
    return gemmepi__copy_unit(&packed, operand) == 16 &&
                   packed.views[operand].bytes / 16 <= problem->views[operand].bytes
               ? pack
               : GEMMEPI__NOT_PACKED;
}

/* The problem as the kernel has it. */
static void gemmepi__pack_views(const gemmepi__problem *problem, const int packs[2],
                                gemmepi__problem *packed) {
    int operand;
    *packed = *problem;
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
        if (packs[operand])
            packed->views[operand] = gemmepi__packed_view(problem, operand, packs[operand]);
}

/* A launch more, and 2.5 TB/s read and written: measured on an H200. */
static double gemmepi__pack_microseconds(const gemmepi__problem *packed, const int packs[2]) {
    double microseconds = 0;
    int operand;
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
        if (packs[operand])
            microseconds += 3.5 + 2 * (double)packed->views[operand].bytes / 2.5e6;
    return microseconds;
}

/* >>choosing */

/* The time of the kernel that takes less; leaves in `is_mma` whether that is gemmepi_mma. Where there is a choice it must be less
   by a tenth: so good are the models. */
static double gemmepi__choose_kernel(const gemmepi_context *context, const gemmepi__problem *problem,
                                     int applied, int *is_mma) {
    double by_mma = GEMMEPI__NEVER, by_tma = GEMMEPI__NEVER;
    if (GEMMEPI__HAS_SM80)
        gemmepi__choose_mma(context, problem, &by_mma);
    if (GEMMEPI__HAS_SM90 && !gemmepi__tma_rule(context, problem))
        gemmepi__choose_shape(context, problem, applied, &by_tma);
    *is_mma = by_mma < 0.9 * by_tma;
    return *is_mma ? by_mma : by_tma;
}

/* Leaves in `packs` how to pack the operands, in the way that takes least time. Returns the time. */
static double gemmepi__choose_packs(const gemmepi_context *context, const gemmepi__problem *problem,
                                    int applied, int packs[2]) {
    int side_by_side, is_mma, ways = context->arch == 90 && gemmepi__is_tf32(problem) ? 2 : 1;
    double least = gemmepi__choose_kernel(context, problem, applied, &is_mma);
    packs[0] = packs[1] = GEMMEPI__NOT_PACKED;
    for (side_by_side = 0; side_by_side < ways; side_by_side++) {
        int tried[2];
        gemmepi__problem packed;
        double time;
        tried[0] = gemmepi__pack_of(problem, GEMMEPI__A, side_by_side);
        tried[1] = gemmepi__pack_of(problem, GEMMEPI__B, side_by_side);
        gemmepi__pack_views(problem, tried, &packed);
        time = gemmepi__pack_microseconds(&packed, tried) +
               gemmepi__choose_kernel(context, &packed, applied, &is_mma);
        if (time < least) {
            least = time;
            memcpy(packs, tried, sizeof tried);
        }
    }
    return least;
}

/* The rule that keeps a problem from the route, or NULL. */
static const char *gemmepi__ours_rule(const gemmepi_context *context, const gemmepi__problem *problem) {
    const char *rule = gemmepi__fused_rule(context, problem);
    int packs[2];
    if (!rule && !GEMMEPI__HAS_SM80 && !GEMMEPI__HAS_SM90)
        rule = "its kernels were left out of this program (GEMMEPI_NO_SM80, GEMMEPI_NO_SM90)";
    if (!rule && !GEMMEPI__HAS_SM80 && gemmepi__choose_packs(context, problem, 1, packs) >= GEMMEPI__NEVER)
        rule = "its kernel for this problem was left out of this program (GEMMEPI_NO_SM80)";
    return rule;
}

/* >>building */

static int gemmepi__is_mma(const gemmepi__ours *ours) {
    return GEMMEPI__HAS_SM80 && (!GEMMEPI__HAS_SM90 || ours->is_mma);
}

static gemmepi_status gemmepi__build_packs(gemmepi_context *context, const gemmepi__problem *problem,
                                           const int packs[2], gemmepi__convert *built) {
    gemmepi_status status = GEMMEPI_OK;
    int operand;
    for (operand = GEMMEPI__A; !status && operand <= GEMMEPI__B; operand++)
        if (packs[operand] == GEMMEPI__IN_UNITS)
            status = gemmepi__build_pack(context, problem, operand, &built[operand]);
        else if (packs[operand] == GEMMEPI__SIDE_BY_SIDE)
            status = gemmepi__build_transpose(context, problem, operand, &built[operand]);
    return status;
}

/* The rule has been asked. applied: for runs whose alpha is 1 and which have no C. */
static gemmepi_status gemmepi__ours_build(gemmepi_context *context, const gemmepi__problem *problem,
                                          int applied, gemmepi__ours *ours) {
    gemmepi__problem packed;
    gemmepi_status status;
    int packs[2];
    memset(ours, 0, sizeof *ours);
    gemmepi__choose_packs(context, problem, applied, packs);
    gemmepi__pack_views(problem, packs, &packed);
    status = gemmepi__build_packs(context, problem, packs, ours->packs);
    if (status)
        return status;
    gemmepi__choose_kernel(context, &packed, applied, &ours->is_mma);
    return gemmepi__is_mma(ours) ? gemmepi__mma_build(context, &packed, applied, &ours->mma)
                                 : gemmepi__fused_build(context, &packed, applied, &ours->fused);
}

static int gemmepi__is_applied(const gemmepi__ours *ours) {
    return gemmepi__is_mma(ours) ? ours->mma.applied : ours->fused.applied;
}

static const gemmepi__sums *gemmepi__sums_of(const gemmepi__ours *ours) {
    return gemmepi__is_mma(ours) ? &ours->mma.sums : &ours->fused.sums;
}

static int gemmepi__ours_launches(const gemmepi__ours *ours, const gemmepi__problem *problem) {
    const gemmepi__sums *sums = gemmepi__sums_of(ours);
    return 1 + (ours->mma.pass.launch.function != NULL) + gemmepi__amax_count(problem) +
           (ours->packs[0].launch.function != NULL) + (ours->packs[1].launch.function != NULL) +
           (sums->first.function != NULL) + (sums->second.function != NULL);
}

static size_t gemmepi__ours_workspace(const gemmepi__ours *ours) {
    return gemmepi__round_up(ours->packs[0].bytes, 256) + gemmepi__round_up(ours->packs[1].bytes, 256) +
           (gemmepi__is_mma(ours) ? gemmepi__mma_workspace(&ours->mma)
                                  : gemmepi__fused_workspace(&ours->fused));
}

/* >>running */

/* The primary context is current. */
static gemmepi_status gemmepi__ours_run(const gemmepi_context *context, const gemmepi__problem *problem,
                                        const gemmepi__ours *ours, const gemmepi__arguments *arguments,
                                        char *workspace, gemmepi_stream stream) {
    gemmepi__arguments packed = *arguments;
    gemmepi_status status = GEMMEPI_OK;
    int operand;
    for (operand = GEMMEPI__A; !status && operand <= GEMMEPI__B; operand++)
        if (ours->packs[operand].launch.function) {
            status = gemmepi__run_convert(context, &ours->packs[operand], arguments->pointers[operand],
                                          workspace, stream);
            packed.pointers[operand] = workspace;
            workspace = gemmepi__past(workspace, ours->packs[operand].bytes);
        }
    if (status)
        return status;
    return gemmepi__is_mma(ours)
               ? gemmepi__mma_run(context, problem, &ours->mma, &packed, workspace, stream)
               : gemmepi__fused_run(context, problem, &ours->fused, &packed, workspace, stream);
}

#endif
