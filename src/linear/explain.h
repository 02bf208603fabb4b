/* What a layer's plan is, as a struct and in words. */
#ifndef GEMMEPI_LINEAR_EXPLAIN_H
#define GEMMEPI_LINEAR_EXPLAIN_H

#include "../elementwise/calls.h"
#include "../product/calls.h"
#include "run.h"

static int gpi__step_launches(const gpi__step *step) {
    gemmepi_plan_details details;
    switch (step->kind) {
    case GPI__STEP_PRODUCT:
        gpi__describe(&gpi__product_plans, &step->product->base, &details);
        return details.launches;
    case GPI__STEP_COPY:
        return gpi__elementwise_launches(step->copy);
    default:
        return (step->pass.launch.function != NULL) + gpi__sums_launches(&step->sums);
    }
}

/* Of all steps, by blocks of all blocks. */
static int gpi__layer_launches(const gpi__linear_plan *layer) {
    int64_t rows = layer->block_rows, full = rows ? layer->task.m / rows : 0;
    int i, launches = layer->ahead ? gpi__layer_launches(layer->ahead) : 0;
    for (i = 0; i < layer->step_count; i++)
        launches += gpi__step_launches(&layer->steps[i]);
    for (i = 0; i < GPI__BLOCKS; i++)
        if (layer->blocks[i])
            launches += gpi__layer_launches(layer->blocks[i]) * (i == GPI__NEXT_BLOCK ? (int)full - 1 : 1);
    return launches;
}

/* Whether tuning has measured a product. */
static int gpi__layer_is_measured(const gpi__linear_plan *layer) {
    int i, is_measured = layer->ahead && gpi__layer_is_measured(layer->ahead);
    for (i = 0; i < GPI__BLOCKS; i++)
        is_measured = is_measured || (layer->blocks[i] && gpi__layer_is_measured(layer->blocks[i]));
    for (i = 0; i < layer->step_count; i++)
        is_measured = is_measured || (layer->steps[i].product && layer->steps[i].product->tuned.is_measured);
    return is_measured;
}

static int gpi__layer_is_empty(const gpi__linear_plan *layer) {
    int i, empty = 1;
    for (i = 0; i < layer->step_count; i++)
        empty = empty && layer->steps[i].kind == GPI__STEP_PRODUCT &&
                layer->steps[i].product->route->id == GEMMEPI_ROUTE_EMPTY;
    return empty;
}

/* What makes G; where dY is G, what makes the first gradient. */
static void gpi__describe_first(const gpi__linear_plan *layer, gemmepi_plan_details *details) {
    gemmepi_plan_details product;
    int i = 0, is_turned;
    while (i + 1 < layer->step_count && layer->steps[i].kind == GPI__STEP_COPY)
        i++;
    if (i >= layer->step_count)
        return;
    if (layer->steps[i].kind == GPI__STEP_PRODUCT) {
        gpi__describe(&gpi__product_plans, &layer->steps[i].product->base, &product);
        memcpy(details->kernel, product.kernel, sizeof details->kernel);
        is_turned = layer->task.exchanged && !layer->steps[i].product->problem.exchanged;
        details->tile_m = is_turned ? product.tile_n : product.tile_m;
        details->tile_n = is_turned ? product.tile_m : product.tile_n;
        return;
    }
    snprintf(details->kernel, sizeof details->kernel, "%s",
             layer->base.context->is_host             ? "gpi__host_product"
             : layer->steps[i].kind == GPI__STEP_PASS ? layer->steps[i].pass.launch.name
                                                      : gpi__name_of_sums(&layer->steps[i].sums));
}

static void gpi__describe_layer(const gemmepi_plan *base, gemmepi_plan_details *details) {
    const gpi__linear_plan *layer = (const gpi__linear_plan *)base;
    const gpi__linear_plan *steps = layer->blocks[GPI__FIRST_BLOCK] ? layer->blocks[GPI__FIRST_BLOCK] : layer;
    int is_f64 = layer->task.views[GPI__L_A].dtype == GEMMEPI_F64;
    if (!gpi__is_backward(&layer->task)) {
        gpi__describe_matmul(&layer->steps[0].product->base, details);
        return;
    }
    details->route = gpi__layer_is_empty(steps) ? GEMMEPI_ROUTE_EMPTY
                     : base->context->is_host   ? GEMMEPI_ROUTE_HOST
                                                : GEMMEPI_ROUTE_LINEAR;
    if (details->route != GEMMEPI_ROUTE_EMPTY)
        gpi__describe_first(steps, details);
    details->launches = base->context->is_host ? 0 : gpi__layer_launches(layer);
    if (gpi__layer_is_measured(layer))
        details->bit_stable = 0;
    details->compute =
        is_f64 ? GEMMEPI_COMPUTE_F64
        : layer->task.compute == GEMMEPI_COMPUTE_TF32 || layer->task.compute == GEMMEPI_COMPUTE_F16
            ? (gemmepi_compute)layer->task.compute
            : GEMMEPI_COMPUTE_F32;
    details->accumulator = is_f64 || base->context->is_host ? GEMMEPI_F64 : GEMMEPI_F32;
}

/* Whether a step with a formula makes the product, or the formula reads operands alone. */
static int gpi__multiplies(const gpi__step *step) {
    const gpi__kept_formula *kept = step->product ? gpi__asked(step->product)->formula : NULL;
    return !kept || kept->placed.formula->reads_value;
}

static void gpi__explain_step(gpi__text *text, const gpi__linear_plan *layer, const gpi__step *step) {
    gpi__append(text, "%s: %s", step->what,
                gpi__multiplies(step) ? "" : "no product is made, only the formula is run: ");
    if (step->kind == GPI__STEP_PRODUCT)
        gpi__explain(&gpi__product_plans, text, &step->product->base);
    else if (step->kind == GPI__STEP_COPY)
        gpi__explain(&gpi__elementwise_plans, text, &step->copy->base);
    else if (layer->base.context->is_host)
        gpi__append(text, "plain C, accumulated in F64\n");
    else
        gpi__append(text, "%s%d launches, sums of dbias in a fixed order\n",
                    step->kind == GPI__STEP_PASS ? "one pass over dY and P, of " : "",
                    gpi__step_launches(step));
}

static void gpi__explain_block(gpi__text *text, const gpi__linear_plan *layer, int which) {
    static const char *const names[GPI__BLOCKS] = {
        "the first block", "blocks behind it, which add to its sums", "the last block"};
    const gpi__linear_plan *block = layer->blocks[which];
    int i;
    if (!block)
        return;
    gpi__append(text, "%s, %lld rows:\n", names[which], (long long)block->task.m);
    if (block->ahead)
        gpi__explain_step(text, block->ahead, &block->ahead->steps[0]);
    for (i = 0; i < block->step_count; i++)
        gpi__explain_step(text, block, &block->steps[i]);
}

static void gpi__explain_layer(gpi__text *text, const gemmepi_plan *base,
                               const gemmepi_plan_details *details) {
    const gpi__linear_plan *layer = (const gpi__linear_plan *)base;
    const gpi__layer_task *task = &layer->task;
    int i;
    gpi__append(text, "%s of a layer of m %lld, n %lld, k %lld, batch %lld, %s",
                gpi__is_backward(task) ? "backward" : "forward",
                (long long)(task->exchanged ? task->n : task->m),
                (long long)(task->exchanged ? task->m : task->n), (long long)task->k, (long long)task->batch,
                gpi__has_own_formula(task) ? "a formula" : "activation ");
    if (!gpi__has_own_formula(task))
        gpi__append_epilogue(text, task->epilogue);
    if (gpi__is_given_g(task))
        gpi__append(text, ", dY is G");
    if (task->has_before) {
        gpi__append(text, ", dA through %s", gpi__has_befores_formula(task) ? "the formula" : "activation ");
        if (!gpi__has_befores_formula(task))
            gpi__append_epilogue(text, task->before);
        gpi__append(text, " of the layer before");
    }
    for (i = GPI__A; i <= GPI__B; i++)
        if (task->goes_through >> i & 1)
            gpi__append(text, ", d%s through the formula of %s", i == GPI__A ? "A" : "B",
                        gpi__layer_name(task, i));
    if (layer->blocks[GPI__FIRST_BLOCK])
        gpi__append(text, ": by blocks of %lld rows", (long long)layer->block_rows);
    else
        gpi__append(text, ": %d step%s", layer->step_count, layer->step_count == 1 ? "" : "s");
    gpi__append(text, ", workspace %llu bytes\n", (gpi__ull)details->workspace_size);
    if (task->exchanged)
        gpi__append(text, "column-major: in the steps A and B are exchanged, row-major\n");
    for (i = 0; i < layer->step_count; i++)
        gpi__explain_step(text, layer, &layer->steps[i]);
    for (i = 0; i < GPI__BLOCKS; i++)
        gpi__explain_block(text, layer, i);
}

#endif
