/* The calls of grouped products: plans, runs, and both at once. */
#ifndef GEMMEPI_GROUPED_CALLS_H
#define GEMMEPI_GROUPED_CALLS_H

#include "../product/calls.h"
#include "explain.h"
#include "tuning.h"

static gemmepi_status gpi__make_grouped(const gpi__wish *wish, gemmepi_plan **plan) {
    gpi__problem problem;
    gpi__plan_key key;
    gemmepi_status status = gpi__convert_grouped(
        &wish->context->allocator, (const gemmepi_grouped_desc *)wish->desc, wish->alignment, &problem);
    if (status)
        return status;
    gpi__share_formulas(wish->context, &problem);
    gpi__make_plan_key(&problem, &key);
    if (!gpi__is_found(wish, key.bytes, key.size, plan))
        status = gpi__keep_built(
            wish, key.bytes, key.size,
            gpi__build_grouped(wish->context, &problem, gpi__may_have_unit_alpha(&problem), NULL, plan),
            plan);
    gpi__drop_formulas(wish->context, &problem); /* the plan has it */
    return status;
}

static const gpi__plan_row gpi__grouped_plans =
    GPI__PLAN_ROW(GEMMEPI_PLAN_GROUPED, grouped,
                  {offsetof(gemmepi_grouped_desc, product.formula),
                   offsetof(gemmepi_grouped_desc, weighted) + sizeof(int),
                   {0, 0},
                   NULL});

GEMMEPI_API gemmepi_status gemmepi_plan_grouped(gemmepi_context *context, const gemmepi_grouped_desc *desc,
                                                gemmepi_plan **plan) {
    return gpi__plan_desc(&gpi__grouped_plans, context, desc, plan);
}

GEMMEPI_API gemmepi_status gemmepi_run_grouped(const gemmepi_plan *plan, const gemmepi_grouped_args *args,
                                               gemmepi_stream stream) {
    return gpi__in_groups_words(gpi__run_plan(&gpi__grouped_plans, plan, args, stream));
}

GEMMEPI_API gemmepi_status gemmepi_grouped(gemmepi_context *context, const gemmepi_grouped_desc *desc,
                                           const gemmepi_grouped_args *args, gemmepi_stream stream) {
    gpi__wish wish = {context, GEMMEPI_PLAN_GROUPED, desc, 0, 1, NULL};
    gemmepi_status status =
        gpi__check_call(context, args ? (const void *)desc : args, args ? "desc" : "args");
    if (status)
        return status;
    wish.alignment = gpi__alignment_of(&desc->product, &args->product);
    return gpi__in_groups_words(
        gpi__run_once(&gpi__grouped_plans, &wish, args, args->product.workspace, stream));
}

#endif
