/* FIND_SCALE_D: scales that are found for D. Those of vectors of 128 columns, which rows of no more are, too, the pass finds, and the kernel
   for Hopper, as they store D.
   Around all other products stands a launch: one behind, which makes D and its scales of rows or vectors from a D in F32 in workspace, or
   one ahead, which makes the scale of this run from the amax of earlier ones, and room for its own. */
#ifndef GEMMEPI_PRODUCT_PARTS_FOUND_SCALE_H
#define GEMMEPI_PRODUCT_PARTS_FOUND_SCALE_H

#include "pass.h"

#define GEMMEPI__QUANTISE_THREADS 256 /* found_scales.cu */

typedef struct gemmepi__found_step {
    gemmepi__launch launch;          /* behind the product, or with TENSOR ahead of it */
    gemmepi__quantise_params params; /* all but pointers */
    gemmepi__history_params history; /* likewise, with TENSOR */
    size_t bytes; /* of workspace beside the product's: D in F32, or the scale's reciprocal */
} gemmepi__found_step;

/* Whether what stores D finds its scales. The kernels for weights in I8 find none: a launch behind them does. */
static int gemmepi__finds_inside(const gemmepi__problem *problem) {
    return problem->found_scale == GEMMEPI_SCALE_VECTOR_128 && !problem->formula &&
           !gemmepi__is_of_weights(problem) &&
           (gemmepi__halves_out(problem) == 1 || gemmepi__half_columns(problem) % 128 == 0);
}

/* Whether a launch around the product finds them. */
static int gemmepi__finds_around(const gemmepi__problem *problem) {
    return problem->found_scale && !gemmepi__is_empty(problem) && !gemmepi__finds_inside(problem);
}

/* The product that the launch is around: D in F32, lying as D does, or, with TENSOR, itself with a scale and an amax that are given. */
static gemmepi__problem gemmepi__problem_within(const gemmepi__problem *problem) {
    gemmepi__problem within = *problem;
    gemmepi__view *d = &within.views[GEMMEPI__D];
    memset(&within.views[GEMMEPI__FOUND_SCALE_D], 0, sizeof *d);
    memset(&within.views[GEMMEPI__AMAX_HISTORY], 0, sizeof *d);
    within.flags &= ~(GEMMEPI_FIND_SCALE_D | GEMMEPI_POWER_OF_TWO_SCALE);
    within.found_scale = within.amax_history = 0;
    if (problem->found_scale == GEMMEPI_SCALE_TENSOR) {
        within.flags |= GEMMEPI__AMAX_TO_HISTORY;
    } else {
        d->dtype = GEMMEPI_F32;
        d->bits = 32;
        d->bytes *= 4;
        d->alignment = 256;
    }
    gemmepi__list_operands(&within);
    return within;
}

/* Where the product within has D, its scale and its amax: `place` is what is of workspace. */
static void gemmepi__point_within(const gemmepi__problem *problem, void *place,
                                  gemmepi__arguments *arguments) {
    void **pointers = arguments->pointers;
    if (problem->found_scale == GEMMEPI_SCALE_TENSOR) {
        pointers[GEMMEPI__SCALE_D] = place;
        pointers[GEMMEPI__AMAX_D] = pointers[GEMMEPI__AMAX_HISTORY];
    } else {
        pointers[GEMMEPI__D] = place;
    }
    pointers[GEMMEPI__FOUND_SCALE_D] = pointers[GEMMEPI__AMAX_HISTORY] = NULL;
}

/* >>building */

/* Fours of a row that each thread of a block keeps, a power of two; 0: rows are too long. */
static int gemmepi__kept_of_row(int64_t columns) {
    int kept = 1;
    while (kept <= 16 && columns > (int64_t)4 * GEMMEPI__QUANTISE_THREADS * kept)
        kept *= 2;
    return kept <= 16 ? kept : 0;
}

static void gemmepi__append_found_defines(gemmepi__text *text, const gemmepi__problem *problem) {
    const gemmepi__view *d = &problem->views[GEMMEPI__D];
    int aligned = d->alignment % 4 == 0 && (d->lines <= 1 || d->ld % 4 == 0) &&
                  (problem->batch <= 1 || d->batch_stride % 4 == 0);
    gemmepi__append(text, "#define GEMMEPI_D_TYPE %s\n#define GEMMEPI_MODE %d\n#define GEMMEPI_ALIGNED %d\n",
                    gemmepi__type_name(problem, GEMMEPI__D), (int)problem->found_scale, aligned);
    gemmepi__append(text, "#define GEMMEPI_KEPT %d\n",
                    problem->found_scale == GEMMEPI_SCALE_OUTER ? gemmepi__kept_of_row(d->length) : 1);
    gemmepi__append(text, "#define GEMMEPI_POWER_OF_TWO %d\n",
                    (problem->flags & GEMMEPI_POWER_OF_TWO_SCALE) != 0);
}

/* The launch behind the product: a block for a row, or a warp of it for a vector. */
static gemmepi_status gemmepi__lay_out_quantise(const gemmepi__problem *problem, gemmepi__found_step *step) {
    const gemmepi__view *d = &problem->views[GEMMEPI__D];
    int is_vector = problem->found_scale == GEMMEPI_SCALE_VECTOR_128;
    int64_t spans = gemmepi__times(gemmepi__times(d->lines, problem->batch),
                                   is_vector ? gemmepi__divide_up(d->length, 128) : 1);
    int64_t blocks = gemmepi__divide_up(spans, is_vector ? GEMMEPI__QUANTISE_THREADS / 32 : 1);
    if (blocks > INT_MAX)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "d has more scales to be found than a grid has blocks");
    step->bytes = gemmepi__bytes_for(d->bytes, sizeof(float));
    step->params.x = step->params.d = gemmepi__kernel_matrix_of(d);
    step->params.scale_stride = problem->views[GEMMEPI__FOUND_SCALE_D].batch_stride;
    step->params.rows = d->lines;
    step->params.columns = d->length;
    step->params.items = problem->batch;
    step->launch.blocks = (unsigned)blocks;
    step->launch.threads_x = GEMMEPI__QUANTISE_THREADS;
    return GEMMEPI_OK;
}

/* With build_lock held, the primary context current. */
static gemmepi_status gemmepi__build_found_step(gemmepi_context *context, const gemmepi__problem *problem,
                                                gemmepi__found_step *step) {
    int is_tensor = problem->found_scale == GEMMEPI_SCALE_TENSOR;
    char prologue[256];
    gemmepi__text text = gemmepi__text_in(prologue, sizeof prologue);
    gemmepi_status status = is_tensor ? GEMMEPI_OK : gemmepi__lay_out_quantise(problem, step);
    if (status)
        return status;
    if (is_tensor) {
        step->bytes = sizeof(float);
        step->history.count = problem->amax_history;
        step->launch.blocks = 1;
        step->launch.threads_x = (unsigned)(problem->amax_history + 31) / 32 * 32;
    }
    step->launch.threads_y = 1;
    gemmepi__append_found_defines(&text, problem);
    gemmepi__name_kernel(&step->launch, "gemmepi_%s_%s", is_tensor ? "scale_of_history" : "find_scales",
                         gemmepi__type_name(problem, GEMMEPI__D));
    return gemmepi__get_waiting_kernel(context, "found_scales.cu", prologue,
                                       is_tensor ? "gemmepi_history" : "gemmepi_quantise", &step->launch);
}

/* >>running */

/* With TENSOR, ahead of the product. */
static gemmepi_status gemmepi__run_history(const gemmepi_context *context, const gemmepi__found_step *step,
                                           const gemmepi__arguments *arguments, void *place,
                                           gemmepi_stream stream) {
    gemmepi__history_params params = step->history;
    params.history = (float *)arguments->pointers[GEMMEPI__AMAX_HISTORY];
    params.scale = (float *)arguments->pointers[GEMMEPI__FOUND_SCALE_D];
    params.reciprocal = (float *)place;
    return gemmepi__launch_kernel(context, &step->launch, &params, "the scale of earlier runs", stream);
}

/* With OUTER and VECTOR_128, behind it. */
static gemmepi_status gemmepi__run_quantise(const gemmepi_context *context, const gemmepi__found_step *step,
                                            const gemmepi__arguments *arguments, void *place,
                                            gemmepi_stream stream) {
    gemmepi__quantise_params params = step->params;
    params.x.data = place;
    params.d.data = arguments->pointers[GEMMEPI__D];
    params.scale = (float *)arguments->pointers[GEMMEPI__FOUND_SCALE_D];
    return gemmepi__launch_kernel(context, &step->launch, &params, "scales of d", stream);
}

#endif
