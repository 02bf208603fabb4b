/* FIND_SCALE_D: scales that are found for D. Those of vectors of 128 columns, which rows of no more are, too, the pass finds, and the kernel
   for Hopper, as they store D.
   Around all other products stands a launch: one behind, which makes D and its scales of rows or vectors from a D in F32 in workspace, or
   one ahead, which makes the scale of this run from the amax of earlier ones, and room for its own. */
#ifndef GEMMEPI_PRODUCT_PARTS_FOUND_SCALE_H
#define GEMMEPI_PRODUCT_PARTS_FOUND_SCALE_H

#include "pass.h"

#define GPI__QUANTISE_THREADS 256 /* found_scales.cu */

typedef struct gpi__found_step {
    gpi__launch launch;          /* behind the product, or with TENSOR ahead of it */
    gpi__quantise_params params; /* all but pointers */
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

/* Fours of a row that each thread of a block keeps, a power of two; 0: rows are too long. */
static int gpi__kept_of_row(int64_t columns) {
    int kept = 1;
    while (kept <= 16 && columns > (int64_t)4 * GPI__QUANTISE_THREADS * kept)
        kept *= 2;
    return kept <= 16 ? kept : 0;
}

static void gpi__append_found_defines(gpi__text *text, const gpi__problem *problem) {
    const gpi__view *d = &problem->views[GPI__D];
    int aligned = d->alignment % 4 == 0 && (d->lines <= 1 || d->ld % 4 == 0) &&
                  (problem->batch <= 1 || d->batch_stride % 4 == 0);
    gpi__append(text, "#define GEMMEPI_D_TYPE %s\n#define GEMMEPI_MODE %d\n#define GEMMEPI_ALIGNED %d\n",
                gpi__type_name(problem, GPI__D), (int)problem->found_scale, aligned);
    gpi__append(text, "#define GEMMEPI_KEPT %d\n",
                problem->found_scale == GEMMEPI_SCALE_OUTER ? gpi__kept_of_row(d->length) : 1);
    gpi__append(text, "#define GEMMEPI_POWER_OF_TWO %d\n",
                (problem->flags & GEMMEPI_POWER_OF_TWO_SCALE) != 0);
}

/* The launch behind the product: a block for a row, or a warp of it for a vector. */
static gemmepi_status gpi__lay_out_quantise(const gpi__problem *problem, gpi__found_step *step) {
    const gpi__view *d = &problem->views[GPI__D];
    int is_vector = problem->found_scale == GEMMEPI_SCALE_VECTOR_128;
    int64_t spans =
        gpi__times(gpi__times(d->lines, problem->batch), is_vector ? gpi__divide_up(d->length, 128) : 1);
    int64_t blocks = gpi__divide_up(spans, is_vector ? GPI__QUANTISE_THREADS / 32 : 1);
    GPI__UNSUPPORTED_IF(blocks > INT_MAX, "d has more scales to be found than a grid has blocks");
    step->bytes = gpi__bytes_for(d->bytes, sizeof(float));
    step->params.x = step->params.d = gpi__kernel_matrix_of(d);
    step->params.scale_stride = problem->views[GPI__FOUND_SCALE_D].batch_stride;
    step->params.rows = d->lines;
    step->params.columns = d->length;
    step->params.items = problem->batch;
    step->launch.blocks = (unsigned)blocks;
    step->launch.threads_x = GPI__QUANTISE_THREADS;
    return GEMMEPI_OK;
}

/* With build_lock held, the primary context current. */
static gemmepi_status gpi__build_found_step(gemmepi_context *context, const gpi__problem *problem,
                                            gpi__found_step *step) {
    int is_tensor = problem->found_scale == GEMMEPI_SCALE_TENSOR;
    char prologue[256];
    gpi__text text = gpi__text_in(prologue, sizeof prologue);
    gemmepi_status status = is_tensor ? GEMMEPI_OK : gpi__lay_out_quantise(problem, step);
    if (status)
        return status;
    if (is_tensor) {
        step->bytes = sizeof(float);
        step->history.count = problem->amax_history;
        step->launch.blocks = 1;
        step->launch.threads_x = (unsigned)(problem->amax_history + 31) / 32 * 32;
    }
    step->launch.threads_y = 1;
    gpi__append_found_defines(&text, problem);
    gpi__name_kernel(&step->launch, "gemmepi_%s_%s", is_tensor ? "scale_of_history" : "find_scales",
                     gpi__type_name(problem, GPI__D));
    return gpi__get_waiting_kernel(context, "found_scales.cu", prologue,
                                   is_tensor ? "gemmepi_history" : "gemmepi_quantise", &step->launch);
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
    gpi__quantise_params params = step->params;
    params.x.data = place;
    params.d.data = arguments->pointers[GPI__D];
    params.scale = (float *)arguments->pointers[GPI__FOUND_SCALE_D];
    return gpi__launch_kernel(context, &step->launch, &params, "scales of d", stream);
}

#endif
