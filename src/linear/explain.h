/* What a layer's plan is, as a struct and in words. */
#ifndef GEMMEPI_LINEAR_EXPLAIN_H
#define GEMMEPI_LINEAR_EXPLAIN_H

#include "../elementwise/explain.h"
#include "../product/explain.h"
#include "run.h"

static int gpi__step_launches(const gpi__step *step) {
    gemmepi_plan_details details;
    switch (step->kind) {
    case GPI__STEP_PRODUCT:
        gpi__matmul_info(step->product, &details);
        return details.launches;
    case GPI__STEP_COPY:
        return gpi__elementwise_launches(step->copy);
    default:
        return (step->pass.launch.function != NULL) + (step->sums.first.function != NULL) +
               (step->sums.second.function != NULL);
    }
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
        gpi__matmul_info(layer->steps[i].product, &product);
        memcpy(details->kernel, product.kernel, sizeof details->kernel);
        is_turned = layer->task.exchanged && !layer->steps[i].product->problem.exchanged;
        details->tile_m = is_turned ? product.tile_n : product.tile_m;
        details->tile_n = is_turned ? product.tile_m : product.tile_n;
        return;
    }
    snprintf(details->kernel, sizeof details->kernel, "%s",
             layer->base.context->is_host             ? "gpi__host_product"
             : layer->steps[i].kind == GPI__STEP_PASS ? layer->steps[i].pass.launch.name
                                                      : layer->steps[i].sums.first.name);
}

static void gpi__layer_info(const gpi__linear_plan *layer, gemmepi_plan_details *details) {
    int i, is_f64;
    if (!gpi__is_backward(&layer->task)) {
        gpi__matmul_info(layer->steps[0].product, details);
        details->kind = GEMMEPI_PLAN_LINEAR;
        details->workspace_size = gpi__layer_workspace(layer);
        return;
    }
    memset(details, 0, sizeof *details);
    details->kind = GEMMEPI_PLAN_LINEAR_BACKWARD;
    is_f64 = layer->task.views[GPI__L_DY].dtype == GEMMEPI_F64;
    details->route = gpi__layer_is_empty(layer)     ? GEMMEPI_ROUTE_EMPTY
                     : layer->base.context->is_host ? GEMMEPI_ROUTE_HOST
                                                    : GEMMEPI_ROUTE_LINEAR;
    details->route_name = gpi__route_names[details->route];
    if (details->route != GEMMEPI_ROUTE_EMPTY)
        gpi__describe_first(layer, details);
    for (i = 0; i < layer->step_count && !layer->base.context->is_host; i++)
        details->launches += gpi__step_launches(&layer->steps[i]);
    details->deterministic = details->bit_stable = 1;
    for (i = 0; i < layer->step_count; i++)
        if (layer->steps[i].product && layer->steps[i].product->is_measured)
            details->bit_stable = 0;
    details->workspace_size = gpi__layer_workspace(layer);
    details->compute = is_f64                                        ? GEMMEPI_COMPUTE_F64
                       : layer->task.compute == GEMMEPI_COMPUTE_TF32 ? GEMMEPI_COMPUTE_TF32
                                                                     : GEMMEPI_COMPUTE_F32;
    details->accumulator = is_f64 || layer->base.context->is_host ? GEMMEPI_F64 : GEMMEPI_F32;
}

/* Whether a step with a formula makes the product, or the formula reads operands alone. */
static int gpi__multiplies(const gpi__step *step) {
#ifndef GEMMEPI_NO_FORMULA
    const gpi__kept_formula *kept = step->product ? gpi__asked(step->product)->formula : NULL;
    return !kept || kept->placed.formula->reads_value;
#else
    (void)step;
    return 1;
#endif
}

static void gpi__explain_step(gpi__text *text, const gpi__linear_plan *layer, const gpi__step *step) {
    gpi__append(text, "%s: %s", step->what,
                gpi__multiplies(step) ? "" : "no product is made, only the formula is run: ");
    if (step->kind == GPI__STEP_PRODUCT)
        gpi__explain_matmul(text, step->product);
    else if (step->kind == GPI__STEP_COPY)
        gpi__explain_elementwise(text, step->copy);
    else if (layer->base.context->is_host)
        gpi__append(text, "plain C, accumulated in F64\n");
    else
        gpi__append(text, "%s%d launches, sums of dbias in a fixed order\n",
                    step->kind == GPI__STEP_PASS ? "one pass over dY and P, of " : "",
                    gpi__step_launches(step));
}

static void gpi__explain_layer(gpi__text *text, const gpi__linear_plan *layer) {
    const gpi__layer_task *task = &layer->task;
    int i;
    gpi__append(text, "%s of a layer of m %lld, n %lld, k %lld, batch %lld, %s",
                gpi__is_backward(task) ? "backward" : "forward",
                (long long)(task->exchanged ? task->n : task->m),
                (long long)(task->exchanged ? task->m : task->n), (long long)task->k, (long long)task->batch,
                task->formula ? "a formula" : "activation ");
    if (!task->formula)
        gpi__append_epilogue(text, task->epilogue);
    gpi__append(text, ": %d step%s, workspace %llu bytes\n", layer->step_count,
                layer->step_count == 1 ? "" : "s", (gpi__ull)gpi__layer_workspace(layer));
    if (task->exchanged)
        gpi__append(text, "column-major: in the steps A and B are exchanged, row-major\n");
    for (i = 0; i < layer->step_count; i++)
        gpi__explain_step(text, layer, &layer->steps[i]);
}

#endif
