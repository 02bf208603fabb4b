/* Lists of problems tuned, each by the row of its kind of plans. */
#ifndef GEMMEPI_AHEAD_TUNE_H
#define GEMMEPI_AHEAD_TUNE_H

#include "precompile.h"

/* A plan of its own, whatever config.tune says: the options are the caller's. */
static gemmepi_status gpi__tune_any(gemmepi_context *context, const gemmepi_any_desc *problem,
                                    const gemmepi_tune_options *options) {
    gpi__wish wish = {context, GEMMEPI_PLAN_MATMUL, NULL, GPI__DEFAULT_ALIGNMENT, 0, NULL};
    const gpi__plan_row *row = NULL;
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gpi__row_of_any(problem, &row, &wish.desc);
    if (status)
        return status;
    wish.kind = row->kind;
    status = row->make(&wish, &plan);
    if (!status && row->tune)
        status = row->tune(plan, options);
    if (plan)
        gpi__release_plan(plan);
    return status;
}

static gemmepi_status gpi__check_tune_options(const gemmepi_tune_options *options) {
    GPI__INVALID_IF(options->mode != GEMMEPI_TUNE_GRAPH && options->mode != GEMMEPI_TUNE_BURST &&
                        options->mode != GEMMEPI_TUNE_STREAM,
                    "options.mode is %d; accepted are GEMMEPI_TUNE_GRAPH, _BURST and _STREAM",
                    (int)options->mode);
    GPI__INVALID_IF(!(options->milliseconds >= 0) || options->milliseconds > 1e9,
                    "options.milliseconds is %g; accepted are 0 to 1e9", options->milliseconds);
    GPI__INVALID_IF(options->threads < 0,
                    "options.threads is %d; accepted are 0, for as many as there are cores, and more",
                    options->threads);
    GPI__INVALID_IF(options->again < 0 || options->again > 1, "options.again is %d; accepted are 0 and 1",
                    options->again);
    return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_tune(gemmepi_context *context, const gemmepi_any_desc *problems,
                                        size_t count, const gemmepi_tune_options *options,
                                        gemmepi_progress_function progress, void *user) {
    gemmepi_tune_options usual;
    const gemmepi_tune_options *wished = options ? options : &usual;
    char sentence[GPI__ERROR_TEXT_SIZE];
    gemmepi_status first = GEMMEPI_OK, status;
    size_t i, failed = 0;
    memset(&usual, 0, sizeof usual);
    status = gpi__check_problems(context, problems, count);
    if (!status)
        status = gpi__check_tune_options(wished);
    if (status)
        return status;
    for (i = 0; i < count; i++) {
        status = gpi__tune_any(context, &problems[i], wished);
        if (status && !first) {
            first = status;
            failed = i;
            snprintf(sentence, sizeof sentence, "%s", gpi__error_text);
        }
        if (progress)
            progress(user, i + 1, count);
    }
    return first ? gpi__fail(first, "problems[%llu]: %s", (gpi__ull)failed, sentence) : GEMMEPI_OK;
}

#endif
