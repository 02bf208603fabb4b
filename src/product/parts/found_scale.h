/* FIND_SCALE_D: scales that are found for D. Those of vectors of 128 columns, which rows of no more are, too, the pass finds, and the kernel
   for Hopper, as they store D.
   Around all other products stands a launch: one behind, which makes D and its scales of rows or vectors from a D in F32 in workspace, or
   one ahead, which makes the scale of this run from the amax of earlier ones, and room for its own. */
#ifndef GEMMEPI_PRODUCT_PARTS_FOUND_SCALE_H
#define GEMMEPI_PRODUCT_PARTS_FOUND_SCALE_H

#include "pass.h"
#include "../../elementwise/scaled_rows.h"

typedef struct gpi__found_step {
    gpi__launch launch;          /* behind the product, or with TENSOR ahead of it */
    gpi__scaled_params params;   /* all but pointers */
    gpi__history_params history; /* likewise, with TENSOR */
    size_t bytes;                /* of workspace beside the product's: D in F32, or the scale's reciprocal */
} gpi__found_step;

/* Whether what stores D finds its scales. The kernels for weights in I8 find none: a launch behind them does. */
static int gpi__finds_inside(const gpi__problem *problem) {
    return problem->found_scale == GEMMEPI_SCALE_VECTOR_128 && !problem->formula &&
           !gpi__is_of_weights(problem) &&
           (gpi__halves_out(problem) == 1 || gpi__half_columns(problem) % 128 == 0);
}

/* Whether a launch around the product finds them. */
static int gpi__finds_around(const gpi__problem *problem) {
    return gpi__finds_scales(problem) && !gpi__is_empty(problem) && !gpi__finds_inside(problem);
}

/* The product that the launch is around: D in F32, lying as D does, or, with TENSOR, itself with a scale and an amax that are given. */
static gpi__problem gpi__problem_within(const gpi__problem *problem) {
    gpi__problem within = *problem;
    gpi__view *d = &within.views[GPI__D];
    memset(&within.views[GPI__FOUND_SCALE_D], 0, sizeof *d);
    memset(&within.views[GPI__AMAX_HISTORY], 0, sizeof *d);
    within.flags &= ~(GEMMEPI_FIND_SCALE_D | GEMMEPI_POWER_OF_TWO_SCALE);
    within.found_scale = within.amax_history = 0;
    if (problem->found_scale == GEMMEPI_SCALE_TENSOR) {
        within.flags |= GPI__AMAX_TO_HISTORY;
    } else {
        d->dtype = GEMMEPI_F32;
        d->bits = 32;
        d->bytes *= 4;
        d->alignment = 256;
    }
    gpi__list_operands(&within);
    return within;
}

/* Where the product within has D, its scale and its amax: `place` is what is of workspace. */
static void gpi__point_within(const gpi__problem *problem, void *place, gpi__arguments *arguments) {
    void **pointers = arguments->pointers;
    if (problem->found_scale == GEMMEPI_SCALE_TENSOR) {
        pointers[GPI__SCALE_D] = place;
        pointers[GPI__AMAX_D] = pointers[GPI__AMAX_HISTORY];
    } else {
        pointers[GPI__D] = place;
    }
    pointers[GPI__FOUND_SCALE_D] = pointers[GPI__AMAX_HISTORY] = NULL;
}

/* >>building */

/* Of a row: vectors of 128 columns, or 1. */
static int64_t gpi__found_spans(const gpi__problem *problem) {
    return problem->found_scale == GEMMEPI_SCALE_VECTOR_128
               ? gpi__divide_up(problem->views[GPI__D].length, 128)
               : 1;
}

/* Where fours of D begin at multiples of their size, those of its F32 do, too. */
static gpi__row_way gpi__found_way(const gpi__problem *problem) {
    const gpi__view *d = &problem->views[GPI__D];
    int has_vectors = gpi__found_spans(problem) > 1;
    gpi__row_way way = gpi__row_way_for(gpi__divide_up(has_vectors ? 128 : d->length, 4), 4);
    way.aligned = d->alignment % 4 == 0 && (d->lines <= 1 || d->ld % 4 == 0) &&
                  (problem->batch <= 1 || d->batch_stride % 4 == 0);
    way.rest = has_vectors ? (int)(d->length % 128) : 0;
    way.rank = 2 + has_vectors + (problem->batch > 1);
    return way;
}

static void gpi__append_found_defines(gpi__text *text, const gpi__problem *problem) {
    gpi__row_way way = gpi__found_way(problem);
    gpi__append(text, "#define GEMMEPI_A_TYPE F32\n#define GEMMEPI_Y_TYPE %s\n#define GEMMEPI_ACC F32\n",
                gpi__type_name(problem, GPI__D));
    gpi__append(text, "#define GEMMEPI_AMAX 0\n#define GEMMEPI_POWER_OF_TWO %d\n",
                (problem->flags & GEMMEPI_POWER_OF_TWO_SCALE) != 0);
    if (problem->found_scale != GEMMEPI_SCALE_TENSOR)
        gpi__append_row_way(text, &way);
}

static void gpi__set_axis(gpi__scaled_params *params, int64_t extent, int64_t stride) {
    params->extent[params->rank] = extent;
    params->stride_a[params->rank] = params->stride_y[params->rank] = stride;
    params->rank++;
}

/* The launch behind the product: rows, or vectors of the same columns. D in F32 lies as D does. */
static gemmepi_status gpi__lay_out_quantise(const gpi__problem *problem, gpi__found_step *step) {
    const gpi__view *d = &problem->views[GPI__D];
    int64_t spans = gpi__found_spans(problem);
    int64_t lines = gpi__times(gpi__times(d->lines, problem->batch), spans);
    gpi__row_way way = gpi__found_way(problem);
    GPI__UNSUPPORTED_IF(lines > INT_MAX, "d has more scales to be found than a grid has blocks");
    step->bytes = gpi__bytes_for(d->bytes, sizeof(float));
    gpi__set_axis(&step->params, spans > 1 ? 128 : d->length, 1);
    gpi__set_axis(&step->params, d->lines, d->ld);
    if (spans > 1)
        gpi__set_axis(&step->params, spans, 128);
    if (problem->batch > 1) {
        gpi__set_axis(&step->params, problem->batch, d->batch_stride);
        step->params.scale_gap = problem->views[GPI__FOUND_SCALE_D].batch_stride - d->lines * spans;
    }
    gpi__share_out_rows(lines, &way, &step->launch);
    return GEMMEPI_OK;
}

/* With build_lock held, the primary context current. */
static gemmepi_status gpi__build_found_step(gemmepi_context *context, const gpi__problem *problem,
                                            gpi__found_step *step) {
    int is_tensor = problem->found_scale == GEMMEPI_SCALE_TENSOR;
    char prologue[512];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gemmepi_status status = is_tensor ? GEMMEPI_OK : gpi__lay_out_quantise(problem, step);
    if (status)
        return status;
    if (is_tensor) {
        step->bytes = sizeof(float);
        step->history.count = problem->amax_history;
        step->launch.blocks = 1;
        step->launch.threads_x = (unsigned)(problem->amax_history + 31) / 32 * 32;
        step->launch.threads_y = 1;
    }
    gpi__append_found_defines(&text, problem);
    gpi__name_kernel(&step->launch, "gemmepi_%s_%s", is_tensor ? "scale_of_history" : "find_scales",
                     gpi__type_name(problem, GPI__D));
    return gpi__get_waiting_kernel(context, is_tensor ? "history.cu" : "scaled_rows.cu", prologue,
                                   is_tensor ? "gemmepi_history" : "gemmepi_scaled_rows", &step->launch);
}

/* >>running */

/* With TENSOR, ahead of the product. */
static gemmepi_status gpi__run_history(const gemmepi_context *context, const gpi__found_step *step,
                                       const gpi__arguments *arguments, void *place, gemmepi_stream stream) {
    gpi__history_params params = step->history;
    params.history = (float *)arguments->pointers[GPI__AMAX_HISTORY];
    params.scale = (float *)arguments->pointers[GPI__FOUND_SCALE_D];
    params.reciprocal = (float *)place;
    return gpi__launch_kernel(context, &step->launch, &params, "the scale of earlier runs", stream);
}

/* With OUTER and VECTOR_128, behind it. */
static gemmepi_status gpi__run_quantise(const gemmepi_context *context, const gpi__found_step *step,
                                        const gpi__arguments *arguments, void *place, gemmepi_stream stream) {
    gpi__scaled_params params = step->params;
    params.a = place;
    params.y = arguments->pointers[GPI__D];
    params.y_scale = (float *)arguments->pointers[GPI__FOUND_SCALE_D];
    return gpi__launch_kernel(context, &step->launch, &params, "scales of d", stream);
}

#endif
