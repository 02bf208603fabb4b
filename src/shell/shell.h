/* What plans of every kind have in common: made of a desc, kept for calls that plan by themselves, prepared, run and explained. */
#ifndef GEMMEPI_SHELL_SHELL_H
#define GEMMEPI_SHELL_SHELL_H

#include "../base/text.h"
#include "../device/kept.h"
#include "../device/run.h"
#include "../problem/view.h"
#ifndef GEMMEPI_NO_FORMULA
#include "text_key.h"
#endif

/* What a plan is made of. */
typedef struct gpi__wish {
    gemmepi_context *context;
    gemmepi_plan_kind kind;
    const void *desc;
    size_t alignment; /* that pointers have where desc promises none */
    int is_kept;      /* for calls that plan by themselves */
} gpi__wish;

/* A kind of plans. */
typedef struct gpi__plan_row {
    gemmepi_plan_kind kind;
    size_t written,
        size; /* of desc: where its formula is, and what tells those with one apart; 0: no text is looked for */
    gemmepi_status (*make)(const gpi__wish *wish, gemmepi_plan **plan);
    size_t (*workspace)(const gemmepi_plan *plan); /* of runs, as the plan stands now */
    gemmepi_status (*run)(const gemmepi_plan *plan, const void *args, int one_shot, gemmepi_stream stream);
    void (*describe)(const gemmepi_plan *plan, gemmepi_plan_details *details);
    void (*explain)(gpi__text *text, const gemmepi_plan *plan, const gemmepi_plan_details *details);
} gpi__plan_row;

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

static gemmepi_status gpi__plan_desc(const gpi__plan_row *row, gemmepi_context *context, const void *desc,
                                     gemmepi_plan **plan) {
    gpi__wish wish = {context, row->kind, desc, GPI__DEFAULT_ALIGNMENT, 0};
    gemmepi_status status;
    if (plan)
        *plan = NULL; /* also after a failure */
    status = gpi__check_call(context, plan, "plan");
    return status ? status : row->make(&wish, plan);
}

/* The plan of a call with a reference for it to release: one with a formula is looked for by its text first. */
static gemmepi_status gpi__plan_of_call(const gpi__plan_row *row, const gpi__wish *wish,
                                        gemmepi_plan **plan) {
#ifndef GEMMEPI_NO_FORMULA
    const char *text = NULL;
    gpi__text_key key;
    gemmepi_status status;
    if (wish->desc && row->written)
        memcpy(&text, (const char *)wish->desc + row->written, sizeof text);
    if (text) {
        gpi__make_text_key(&key, -4 - (int64_t)row->kind, wish->alignment, wish->desc, row->written,
                           row->size);
        if (gpi__is_found(wish, key.bytes, key.size, plan))
            return GEMMEPI_OK;
        status = row->make(wish, plan);
        if (!status && key.size) {
            gpi__add(&(*plan)->references, 1);
            gpi__release_plan(gpi__keep(wish->context, key.bytes, key.size, *plan));
        }
        return status;
    }
#endif
    return row->make(wish, plan);
}

/* >>runs */

/* Whose block of workspace it is. What has products among its parts has one next to that of products, because a product, once cuBLASLt
   refuses it, may reserve that in the middle of a run. */
static gemmepi_status gpi__prepare(const gpi__plan_row *row, const gemmepi_plan *plan,
                                   gemmepi_stream stream) {
    return gpi__reserve(plan->context, stream, plan->is_beside, row->workspace(plan));
}

/* A call that plans by itself. workspace: args.workspace. */
static gemmepi_status gpi__run_once(const gpi__plan_row *row, const gpi__wish *wish, const void *args,
                                    const void *workspace, gemmepi_stream stream) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gpi__plan_of_call(row, wish, &plan);
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
