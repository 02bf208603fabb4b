/* The route fused: which of our two kernels runs a problem, and which operands are packed for it first. */
#ifndef GEMMEPI_GEMM_OURS_H
#define GEMMEPI_GEMM_OURS_H

#include "convert.h"
#include "mma.h"

typedef struct gemmepi__ours {
    int is_mma; /* gemmepi_mma, else gemmepi_fused */
    gemmepi__fused fused;
    gemmepi__mma mma;
    gemmepi__convert packs[2]; /* of A and B, into lines that begin at multiples of 16 bytes */
} gemmepi__ours;

/* >>packing */

/* Whether a copy of the operand would be taken 16 bytes at a time where it is not. Items that overlap would be far larger. */
static int gemmepi__packing_helps(const gemmepi__problem *problem, int operand) {
    gemmepi__problem packed = *problem;
    gemmepi__view *view = &packed.views[operand];
    if (gemmepi__copy_unit(problem, operand) == 16)
        return 0;
    *view = gemmepi__converted_view(&problem->views[operand], problem->batch, view->dtype);
    return gemmepi__copy_unit(&packed, operand) == 16 && view->bytes / 16 <= problem->views[operand].bytes;
}

/* The problem as the kernel has it. */
static void gemmepi__pack_views(const gemmepi__problem *problem, const int packs[2],
                                gemmepi__problem *packed) {
    int operand;
    *packed = *problem;
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
        if (packs[operand])
            packed->views[operand] = gemmepi__converted_view(&problem->views[operand], problem->batch,
                                                             problem->views[operand].dtype);
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
    double by_mma = 0, by_tma = 0;
    gemmepi__choose_mma(context, problem, &by_mma);
    *is_mma = 1;
    if (gemmepi__tma_rule(context, problem))
        return by_mma;
    gemmepi__choose_shape(context, problem, applied, &by_tma);
    *is_mma = by_mma < 0.9 * by_tma;
    return *is_mma ? by_mma : by_tma;
}

/* Leaves in `packs` which operands to pack: those that it helps, if it takes less time than to do without. Returns the time. */
static double gemmepi__choose_packs(const gemmepi_context *context, const gemmepi__problem *problem,
                                    int applied, int packs[2]) {
    int is_mma;
    double as_it_is = gemmepi__choose_kernel(context, problem, applied, &is_mma), with_packs;
    gemmepi__problem packed;
    packs[0] = gemmepi__packing_helps(problem, GEMMEPI__A);
    packs[1] = gemmepi__packing_helps(problem, GEMMEPI__B);
    gemmepi__pack_views(problem, packs, &packed);
    with_packs = gemmepi__pack_microseconds(&packed, packs) +
                 gemmepi__choose_kernel(context, &packed, applied, &is_mma);
    if (with_packs < as_it_is)
        return with_packs;
    packs[0] = packs[1] = 0;
    return as_it_is;
}

/* >>building */

/* The rule has been asked. applied: for runs whose alpha is 1 and which have no C. */
static gemmepi_status gemmepi__ours_build(gemmepi_context *context, const gemmepi__problem *problem,
                                          int applied, gemmepi__ours *ours) {
    gemmepi__problem packed;
    gemmepi_status status = GEMMEPI_OK;
    int packs[2], operand;
    memset(ours, 0, sizeof *ours);
    gemmepi__choose_packs(context, problem, applied, packs);
    gemmepi__pack_views(problem, packs, &packed);
    for (operand = GEMMEPI__A; !status && operand <= GEMMEPI__B; operand++)
        if (packs[operand])
            status = gemmepi__build_pack(context, problem, operand, &ours->packs[operand]);
    if (status)
        return status;
    gemmepi__choose_kernel(context, &packed, applied, &ours->is_mma);
    return ours->is_mma ? gemmepi__mma_build(context, &packed, applied, &ours->mma)
                        : gemmepi__fused_build(context, &packed, applied, &ours->fused);
}

static int gemmepi__is_applied(const gemmepi__ours *ours) {
    return ours->is_mma ? ours->mma.applied : ours->fused.applied;
}

static const gemmepi__sums *gemmepi__sums_of(const gemmepi__ours *ours) {
    return ours->is_mma ? &ours->mma.sums : &ours->fused.sums;
}

static int gemmepi__ours_launches(const gemmepi__ours *ours, const gemmepi__problem *problem) {
    const gemmepi__sums *sums = gemmepi__sums_of(ours);
    return 1 + (ours->mma.pass.launch.function != NULL) + gemmepi__amax_count(problem) +
           (ours->packs[0].launch.function != NULL) + (ours->packs[1].launch.function != NULL) +
           (sums->first.function != NULL) + (sums->second.function != NULL);
}

static size_t gemmepi__ours_workspace(const gemmepi__ours *ours) {
    return gemmepi__round_up(ours->packs[0].bytes, 256) + gemmepi__round_up(ours->packs[1].bytes, 256) +
           (ours->is_mma ? gemmepi__mma_workspace(&ours->mma) : gemmepi__fused_workspace(&ours->fused));
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
    return ours->is_mma ? gemmepi__mma_run(context, problem, &ours->mma, &packed, workspace, stream)
                        : gemmepi__fused_run(context, problem, &ours->fused, &packed, workspace, stream);
}

#endif
