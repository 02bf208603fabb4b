/* What plans of every kind have in common: made of a desc, kept for calls that plan by themselves, prepared, run and explained. */
#ifndef GEMMEPI_SHELL_SHELL_H
#define GEMMEPI_SHELL_SHELL_H

#include "../base/text.h"
#include "../device/kept.h"
#include "../device/run.h"
#include "../problem/view.h"
#include "text_key.h"

/* What a plan is made of. */
typedef struct gpi__wish {
    gemmepi_context *context;
    gemmepi_plan_kind kind;
    const void *desc;
    size_t alignment;             /* that pointers have where desc promises none */
    int is_kept;                  /* for calls that plan by themselves */
    const gemmepi_stream *stream; /* that it is to run on; NULL: not known */
} gpi__wish;

/* A kind of plans. */
typedef struct gpi__plan_row {
    gemmepi_plan_kind kind;
    gpi__text_places texts; /* of desc */
    gemmepi_status (*make)(const gpi__wish *wish, gemmepi_plan **plan);
    size_t (*workspace)(const gemmepi_plan *plan); /* of runs, as the plan stands now */
    gemmepi_status (*run)(const gemmepi_plan *plan, const void *args, int one_shot, gemmepi_stream stream);
    void (*describe)(const gemmepi_plan *plan, gemmepi_plan_details *details);
    void (*explain)(gpi__text *text, const gemmepi_plan *plan, const gemmepi_plan_details *details);
    /* Both are for plans made later, which go by what is found. NULL: there is nothing to find. */
    gemmepi_status (*tune)(const gemmepi_plan *plan,
                           const gemmepi_tune_options *options); /* the fastest ways */
    void (*check)(const gemmepi_plan *plan);                     /* whether cuBLASLt is right in it */
} gpi__plan_row;

/* A row whose functions have the name in theirs; behind it the places of texts. */
#define GPI__PLAN_ROW(kind, name, ...)                                                     \
    {                                                                                      \
        kind, __VA_ARGS__, gpi__make_##name, gpi__workspace_of_##name, gpi__run_##name,    \
            gpi__describe_##name, gpi__explain_##name, gpi__tune_##name, gpi__check_##name \
    }
/* Those of a desc with a formula, of its own and of a and b. */
#define GPI__TEXTS_OF(desc) \
    { offsetof(desc, formula), sizeof(desc), {offsetof(desc, a.formula), offsetof(desc, b.formula)}, NULL }

/* >>making */

/* Whether a plan is kept that is the same: the caller has a reference then. */
static int gpi__is_found(const gpi__wish *wish, const void *key, size_t size, gemmepi_plan **plan) {
    *plan = wish->is_kept ? gpi__find_kept(wish->context, key, size) : NULL;
    return *plan != NULL;
}

/* Keeps a plan that was built: status says whether it was. */
static gemmepi_status gpi__keep_built(const gpi__wish *wish, const void *key, size_t size,
                                      gemmepi_status status, gemmepi_plan **plan) {
    if (!status && wish->is_kept)
        *plan = gpi__keep(wish->context, key, size, *plan);
    return status;
}

/* >>tuning and checking on first use */

/* Whether the stream is captured; where none is known, whether any blocking stream is, of which the legacy stream knows. */
static int gpi__is_captured(const gpi__wish *wish) {
    const gpi__driver *driver = &wish->context->driver;
    gemmepi_stream stream = wish->stream ? *wish->stream : (gemmepi_stream)(uintptr_t)GPI__CU_STREAM_LEGACY;
    int capture = GPI__CU_STREAM_CAPTURE_STATUS_NONE, result;
    gpi__entry entry;
    if (gpi__enter(wish->context, &entry))
        return 1;
    result = driver->stream_is_capturing(stream, &capture);
    gpi__leave(wish->context, &entry);
    return result != 0 || capture != GPI__CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Makes the plan again where what plans are chosen by has changed since: whether it has. If that fails what there is stays. */
static int gpi__make_again(const gpi__plan_row *row, const gpi__wish *wish, gemmepi_plan **plan) {
    gemmepi_plan *before = *plan;
    if (before->generation == gpi__read(&wish->context->generation))
        return 0;
    *plan = NULL;
    if (row->make(wish, plan)) {
        *plan = before;
        return 0;
    }
    gpi__release_plan(before);
    return 1;
}

#define GPI__MOST_CHECKS 64 /* of one plan: each leaves out an algorithm, for all parts of a layer */

/* Tunes what the plan runs, and makes it again by what was found. Where tuning fails it stays as it is. */
static void gpi__tune_first(const gpi__plan_row *row, const gpi__wish *wish, gemmepi_plan **plan) {
    gemmepi_tune_options options;
    memset(&options, 0, sizeof options);
    options.milliseconds = wish->context->tune;
    if (row->tune(*plan, &options))
        gpi__say(&wish->context->log, GEMMEPI_LOG_WARNING, "a plan stays untuned: %s", gpi__error_text);
    (void)gpi__make_again(row, wish, plan);
}

/* Checks what the plan runs by cuBLASLt, and makes it again until nothing is wrong. */
static void gpi__check_first(const gpi__plan_row *row, const gpi__wish *wish, gemmepi_plan **plan) {
    int i = 0;
    do
        row->check(*plan);
    while (gpi__make_again(row, wish, plan) && ++i < GPI__MOST_CHECKS);
}

/* Tunes and checks a plan, as the context's config has it, once. While a stream is captured it leaves this to a later call. */
static void gpi__try_plan(const gpi__plan_row *row, const gpi__wish *wish, gemmepi_plan **plan) {
    const gemmepi_context *context = wish->context;
    int tunes = context->tune > 0 && row->tune, checks = context->check && row->check;
    if ((!tunes && !checks) || context->is_host || gpi__read(&(*plan)->is_tried))
        return;
    if (gpi__is_captured(wish)) {
        gpi__say(&context->log, GEMMEPI_LOG_INFO,
                 "a plan is not %s while a stream is captured: the next call outside of a capture does it",
                 tunes ? "tuned" : "checked");
        return;
    }
    if (tunes)
        gpi__tune_first(row, wish, plan);
    if (checks)
        gpi__check_first(row, wish, plan);
    gpi__add(&(*plan)->is_tried, 1);
}

static gemmepi_status gpi__make_tried(const gpi__plan_row *row, const gpi__wish *wish, gemmepi_plan **plan) {
    gemmepi_status status = row->make(wish, plan);
    if (!status)
        gpi__try_plan(row, wish, plan);
    return status;
}

static gemmepi_status gpi__plan_desc(const gpi__plan_row *row, gemmepi_context *context, const void *desc,
                                     gemmepi_plan **plan) {
    gpi__wish wish = {context, row->kind, desc, GPI__DEFAULT_ALIGNMENT, 0, NULL};
    gemmepi_status status;
    if (plan)
        *plan = NULL; /* also after a failure */
    status = gpi__check_call(context, plan, "plan");
    return status ? status : gpi__make_tried(row, &wish, plan);
}

/* The plan of a call with a reference for it to release: one with a formula is looked for by its text first. */
static gemmepi_status gpi__plan_of_call(const gpi__plan_row *row, const gpi__wish *wish,
                                        gemmepi_plan **plan) {
    gpi__text_key key;
    gemmepi_status status;
    gpi__make_text_key(&key, -4 - (int64_t)row->kind, wish->alignment, wish->desc, &row->texts);
    if (key.size && gpi__is_found(wish, key.bytes, key.size, plan)) {
        gpi__try_plan(row, wish, plan);
        return GEMMEPI_OK;
    }
    status = gpi__make_tried(row, wish, plan);
    if (!status && key.size) {
        gpi__add(&(*plan)->references, 1);
        gpi__release_plan(gpi__keep(wish->context, key.bytes, key.size, *plan));
    }
    return status;
}

/* >>runs */

/* Whose block of workspace it is. What has products among its parts has one next to that of products, because a product, once cuBLASLt
   refuses it, may reserve that in the middle of a run. */
static gemmepi_status gpi__prepare(const gpi__plan_row *row, const gemmepi_plan *plan,
                                   gemmepi_stream stream) {
    return gpi__reserve(plan->context, stream, plan->block_number, row->workspace(plan));
}

/* A call that plans by itself. workspace: args.workspace. */
static gemmepi_status gpi__run_once(const gpi__plan_row *row, gpi__wish *wish, const void *args,
                                    const void *workspace, gemmepi_stream stream) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status;
    wish->stream = &stream;
    status = gpi__plan_of_call(row, wish, &plan);
    if (status)
        return status;
    if (!workspace)
        status = gpi__prepare(row, plan, stream);
    if (!status)
        status = row->run(plan, args, 1, stream);
    gpi__release_plan(plan);
    return status;
}

static gemmepi_status gpi__run_plan(const gpi__plan_row *row, const gemmepi_plan *plan, const void *args,
                                    gemmepi_stream stream) {
    gemmepi_status status = gpi__check_plan(plan, args, row->kind);
    return status ? status : row->run(plan, args, 0, stream);
}

/* >>what a plan is */

static void gpi__describe(const gpi__plan_row *row, const gemmepi_plan *plan, gemmepi_plan_details *details) {
    memset(details, 0, sizeof *details);
    details->kind = plan->kind;
    details->workspace_size = row->workspace(plan);
    details->deterministic = 1; /* our sums have a fixed order, and cuBLASLt is kept from reducing in place */
    details->bit_stable = 1;
    row->describe(plan, details);
    details->route_name = gpi__route_names[details->route];
}

static void gpi__explain(const gpi__plan_row *row, gpi__text *text, const gemmepi_plan *plan) {
    gemmepi_plan_details details;
    gpi__describe(row, plan, &details);
    row->explain(text, plan, &details);
}

#endif
