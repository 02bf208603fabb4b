/* The scales and largest magnitudes that a desc asks for. */
#ifndef GEMMEPI_PROBLEM_SCALES_H
#define GEMMEPI_PROBLEM_SCALES_H

#include "problem.h"

/* Numbers beside the matrices, whose extents and strides are set; their pointer needs `alignment` bytes. */
static gemmepi_status gpi__convert_scale_numbers(gpi__problem *problem, int operand, int dtype,
                                                 int32_t alignment) {
    gpi__view *view = &problem->views[operand];
    int of = operand == GPI__FOUND_SCALE_D ? (int)GPI__D
             : operand < GPI__AMAX_D       ? operand - GPI__SCALE_A
                                           : operand;
    char name[32];
    view->dtype = dtype;
    view->bits = dtype == GEMMEPI_F64 ? 64 : 32;
    view->alignment = alignment;
    snprintf(name, sizeof name, "%s%s", gpi__operand_names[of], of == operand ? "" : ".scale");
    return gpi__check_view(view, name, problem->batch);
}

static int64_t gpi__blocks_of_128(int64_t extent) {
    return extent / 128 + (extent % 128 != 0);
}

/* The scales of a matrix whose rows (columns for b) number `outer`; k is used for a and b alone. */
static gemmepi_status gpi__convert_scale(gpi__problem *problem, int operand, const gemmepi_scale *scale,
                                         int64_t outer, int64_t k) {
    gpi__view *view = &problem->views[operand];
    const char *name = gpi__operand_names[operand];
    int is_factor = operand == GPI__A || operand == GPI__B;
    int64_t steps = gpi__blocks_of_128(k);
    GPI__INVALID_IF(
        (unsigned)scale->mode > GEMMEPI_SCALE_BLOCK_128,
        "desc.%s.scale.mode is %d, which is no gemmepi_scale_mode: accepted are 0 (NONE) to 4 (BLOCK_128)%s",
        name, (int)scale->mode, GPI__UNINITIALISED);
    GPI__INVALID_IF(scale->mode == GEMMEPI_SCALE_NONE && scale->batch_stride,
                    "desc.%s.scale.batch_stride is %lld, but its mode is NONE", name,
                    (long long)scale->batch_stride);
    if (scale->mode == GEMMEPI_SCALE_NONE)
        return GEMMEPI_OK;
    GPI__INVALID_IF(view->bits == 1,
                    "desc.aux.scale.mode is %s (%d); RELU's aux is a bit mask and has no scale",
                    gpi__scale_mode_name(scale->mode), (int)scale->mode);
    GPI__INVALID_IF(!gpi__is_scaled_dtype(view->dtype) || problem->accumulator == GEMMEPI_I32,
                    "desc.%s.scale.mode is %s (%d); %s has no scale: %s", name,
                    gpi__scale_mode_name(scale->mode), (int)scale->mode, gpi__type(view->dtype),
                    gpi__is_scaled_dtype(view->dtype) ? "the result is in I32"
                                                      : "accepted with E4M3, E5M2 and I8");
    GPI__INVALID_IF(
        !is_factor && scale->mode != GEMMEPI_SCALE_TENSOR,
        "desc.%s.scale.mode is %s (%d); accepted are NONE (0) and TENSOR (1): the others are for a and b%s",
        name, gpi__scale_mode_name(scale->mode), (int)scale->mode,
        operand == GPI__D ? ", and OUTER and VECTOR_128 for scales of d that FIND_SCALE_D in desc.flags finds"
                          : "");
    view->scale = (int32_t)scale->mode;
    view = &problem->views[GPI__SCALE_OF(operand)];
    view->lines = scale->mode == GEMMEPI_SCALE_VECTOR_128  ? steps
                  : scale->mode == GEMMEPI_SCALE_BLOCK_128 ? gpi__blocks_of_128(outer)
                                                           : 1;
    view->length = scale->mode == GEMMEPI_SCALE_TENSOR      ? 1
                   : scale->mode == GEMMEPI_SCALE_BLOCK_128 ? steps
                                                            : outer;
    view->ld = scale->mode == GEMMEPI_SCALE_BLOCK_128 ? (steps + 3) / 4 * 4 : view->length;
    view->batch_stride = scale->batch_stride;
    return gpi__convert_scale_numbers(problem, GPI__SCALE_OF(operand), GEMMEPI_F32,
                                      scale->mode == GEMMEPI_SCALE_TENSOR ? 4 : 16);
}

/* The scales that are found for D. Along D's lines there are vectors, so that in column-major order they are as of a b. TENSOR is a scale
   that D has and an amax that is taken, of which args have neither. */
static gemmepi_status gpi__convert_found_scale(gpi__problem *problem, const gemmepi_scale *scale,
                                               int amax_history) {
    gpi__view *d = &problem->views[GPI__D], *found = &problem->views[GPI__FOUND_SCALE_D],
              *history = &problem->views[GPI__AMAX_HISTORY];
    int is_tensor = scale->mode == GEMMEPI_SCALE_TENSOR;
    gemmepi_status status;
    GPI__INVALID_IF(scale->mode != GEMMEPI_SCALE_VECTOR_128 && scale->mode != GEMMEPI_SCALE_OUTER &&
                        !is_tensor,
                    "desc.flags has FIND_SCALE_D, and desc.d.scale.mode is %s (%d); scales are found for "
                    "TENSOR (1), OUTER (2) and VECTOR_128 (3)",
                    gpi__scale_mode_name(scale->mode), (int)scale->mode);
    GPI__INVALID_IF(!gpi__is_fp8(d->dtype),
                    "desc.flags has FIND_SCALE_D, and desc.d.dtype is %s; accepted are E4M3 and E5M2",
                    gpi__type(d->dtype));
    GPI__INVALID_IF(is_tensor ? amax_history < 1 || amax_history > 1024 : amax_history != 0,
                    is_tensor ? "desc.amax_history is %d; a scale of one number is found from the amax of "
                                "earlier runs, of 1 to 1024 (scales of rows or vectors are of this run)"
                              : "desc.amax_history is %d; it goes only with FIND_SCALE_D and the scale "
                                "mode TENSOR",
                    amax_history);
    GPI__INVALID_IF(is_tensor && problem->flags & GEMMEPI_AMAX_D,
                    "desc.flags has AMAX_D and FIND_SCALE_D with the scale mode TENSOR, whose "
                    "args.amax_history[0] is that amax");
    GPI__INVALID_IF(is_tensor && scale->batch_stride,
                    "desc.d.scale.batch_stride is %lld; with FIND_SCALE_D one scale is that of the whole "
                    "batch: leave it 0",
                    (long long)scale->batch_stride);
    problem->found_scale = (int32_t)scale->mode;
    problem->amax_history = amax_history;
    found->written = 1;
    found->lines = scale->mode == GEMMEPI_SCALE_VECTOR_128 ? gpi__blocks_of_128(d->length) : 1;
    found->length = found->ld = is_tensor ? 1 : d->lines;
    found->batch_stride = scale->batch_stride;
    status = gpi__convert_scale_numbers(problem, GPI__FOUND_SCALE_D, GEMMEPI_F32, is_tensor ? 4 : 16);
    if (!status && !is_tensor)
        return gpi__check_output(found, "d.scale", gpi__items_of_d(problem));
    if (status)
        return status;
    history->written = 1;
    history->lines = 1;
    history->length = history->ld = amax_history;
    problem->flags |= GEMMEPI_AMAX_D;
    d->scale = GEMMEPI_SCALE_TENSOR;
    problem->views[GPI__SCALE_D].lines = problem->views[GPI__SCALE_D].length = 1;
    status = gpi__convert_scale_numbers(problem, GPI__SCALE_D, GEMMEPI_F32, 4);
    return status ? status : gpi__convert_scale_numbers(problem, GPI__AMAX_HISTORY, GEMMEPI_F32, 4);
}

/* The mode by which scales are found: a row of at most 128 columns is one vector, whose scale is the same number in the same place, and
   which kernels find as they store D. With BATCH_INVARIANT all rows are rows: of the kernels that find none more keep their bits. */
static gemmepi_scale_mode gpi__found_mode(const gemmepi_matmul_desc *desc, const gpi__view *d,
                                          gemmepi_scale_mode mode) {
    return mode == GEMMEPI_SCALE_OUTER && d->length > 0 && d->length <= 128 &&
                   !(desc->flags & GEMMEPI_BATCH_INVARIANT)
               ? GEMMEPI_SCALE_VECTOR_128
               : mode;
}

/* What FIND_SCALE_A, FIND_SCALE_B and FIND_SCALE_D go with, and what goes with them. */
static gemmepi_status gpi__check_finding(const gemmepi_matmul_desc *desc) {
    uint64_t made = desc->flags & (GEMMEPI_FIND_SCALE_A | GEMMEPI_FIND_SCALE_B);
    uint64_t stored =
        made & ((desc->a.formula ? 0 : GEMMEPI_FIND_SCALE_A) | (desc->b.formula ? 0 : GEMMEPI_FIND_SCALE_B));
    GPI__INVALID_IF(
        stored,
        "desc.flags has %s, but desc.%s.formula is NULL: scales are found of what a formula makes; "
        "to find those of what is stored, cast it (CAST_Y_SCALE)",
        gpi__flag(stored)->name, stored & GEMMEPI_FIND_SCALE_A ? "a" : "b");
    GPI__INVALID_IF(desc->flags & GEMMEPI_FIND_SCALE_D && desc->flags & GEMMEPI_ACCUMULATE,
                    "desc.flags has ACCUMULATE and FIND_SCALE_D: a d that is read and written has no "
                    "one scale; give c with its own scale and args.beta");
    if (desc->flags & GEMMEPI_FIND_SCALE_D)
        return GEMMEPI_OK;
    GPI__INVALID_IF(
        desc->flags & GEMMEPI_POWER_OF_TWO_SCALE && !made,
        "desc.flags has POWER_OF_TWO_SCALE; it goes with FIND_SCALE_D, FIND_SCALE_A or FIND_SCALE_B");
    GPI__INVALID_IF(desc->amax_history,
                    "desc.amax_history is %d; it goes with FIND_SCALE_D and the scale mode TENSOR%s",
                    desc->amax_history, GPI__UNINITIALISED);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__convert_amax(gpi__problem *problem, uint64_t flag, int operand, int of) {
    const gpi__view *view = &problem->views[of];
    gpi__view *amax = &problem->views[operand];
    const char *name = flag == GEMMEPI_AMAX_D ? "AMAX_D" : "AMAX_AUX";
    int dtype = problem->accumulator;
    if (!(problem->flags & flag))
        return GEMMEPI_OK;
    GPI__INVALID_IF(of == GPI__AUX && !view->written,
                    "desc.flags has AMAX_AUX, but the epilogue stores no aux: it goes with AUX");
    GPI__INVALID_IF(view->bits == 1 || dtype == GEMMEPI_I32, "desc.flags has %s; %s has no amax", name,
                    view->bits == 1 ? "RELU's bit mask" : "an I32 tensor");
    amax->written = 1;
    amax->lines = amax->length = amax->ld = 1;
    return gpi__convert_scale_numbers(problem, operand, dtype, dtype == GEMMEPI_F64 ? 8 : 4);
}

#endif
