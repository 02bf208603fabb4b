/* The calls of products: plans, runs, and both at once. */
#ifndef GEMMEPI_PRODUCT_CALLS_H
#define GEMMEPI_PRODUCT_CALLS_H

#include "../shell/shell.h"
#include "explain.h"
#include "tuning/check.h"

/* Tells of fields that describe what the product does not have: they are not read, but a flag may have been forgotten. */
static void gpi__tell_of_unread(const gpi__log *log, const gemmepi_matmul_desc *desc,
                                const gpi__problem *problem) {
    gemmepi_matrix nothing;
    const struct {
        int operand;
        const char *name, *flags;
        const void *field;
        size_t size;
    } fields[] = {
        {GPI__AUX, "aux", "AUX or BACKWARD", &desc->aux, sizeof desc->aux},
        {GPI__RESIDUAL, "residual", "RESIDUAL", &desc->residual, sizeof desc->residual},
        {GPI__BIAS, "bias", "BIAS", &desc->bias, sizeof desc->bias},
        {GPI__BIAS_GRAD, "bias_grad", "one of the BGRADs", &desc->bias_grad, sizeof desc->bias_grad}};
    size_t i;
    memset(&nothing, 0, sizeof nothing);
    for (i = 0; i < GPI__COUNT(fields); i++)
        if (memcmp(fields[i].field, &nothing, fields[i].size) != 0 &&
            !gpi__has_operand(problem, fields[i].operand))
            gpi__say(log, GEMMEPI_LOG_INFO,
                     "desc.%s has fields other than 0, which are read only with %s in desc.epilogue",
                     fields[i].name, fields[i].flags);
}

static gemmepi_status gpi__make_matmul(const gpi__wish *wish, gemmepi_plan **plan) {
    gpi__problem problem;
    gpi__plan_key key;
    gemmepi_status status = gpi__convert_problem(wish->context, (const gemmepi_matmul_desc *)wish->desc,
                                                 wish->alignment, &problem);
    if (status)
        return status;
    gpi__make_plan_key(&problem, &key);
    if (!gpi__is_found(wish, key.bytes, key.size, plan)) {
        gpi__tell_of_unread(&wish->context->log, (const gemmepi_matmul_desc *)wish->desc, &problem);
        status =
            gpi__keep_built(wish, key.bytes, key.size, gpi__build_plan(wish->context, &problem, plan), plan);
    }
    gpi__drop_formulas(wish->context, &problem); /* the plan has it */
    return status;
}

static size_t gpi__workspace_of_matmul(const gemmepi_plan *plan) {
    return gpi__workspace_now((const gpi__matmul_plan *)plan);
}

static const gpi__plan_row gpi__product_plans =
    GPI__PLAN_ROW(GEMMEPI_PLAN_MATMUL, matmul, GPI__TEXTS_OF(gemmepi_matmul_desc));

GEMMEPI_API gemmepi_status gemmepi_plan_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                               gemmepi_plan **plan) {
    return gpi__plan_desc(&gpi__product_plans, context, desc, plan);
}

GEMMEPI_API gemmepi_status gemmepi_run_matmul(const gemmepi_plan *plan, const gemmepi_matmul_args *args,
                                              gemmepi_stream stream) {
    return gpi__run_plan(&gpi__product_plans, plan, args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                          const gemmepi_matmul_args *args, gemmepi_stream stream) {
    gpi__wish wish = {context, GEMMEPI_PLAN_MATMUL, desc, 0, 1, NULL};
    gemmepi_status status = gpi__check_call(context, args, "args");
    if (status)
        return status;
    wish.alignment = gpi__alignment_of(desc, args);
    return gpi__run_once(&gpi__product_plans, &wish, args, args->workspace, stream);
}

#endif
