/* What a network's plan is, as a struct and in words. */
#ifndef GEMMEPI_NETWORK_EXPLAIN_H
#define GEMMEPI_NETWORK_EXPLAIN_H

#include "run.h"

static void gpi__describe_network_kernel(const gpi__network_plan *network, gemmepi_plan_details *details) {
    const gpi__network_kernel *kernel = &network->kernel;
    memcpy(details->kernel, kernel->launch.name, sizeof details->kernel);
    details->tile_m = (int)gpi__network_tile(&kernel->shape);
    details->tile_n = (int)gpi__widest(&network->task);
    details->compute = gpi__is_tf32_network(&network->task) ? GEMMEPI_COMPUTE_TF32 : GEMMEPI_COMPUTE_F32;
    details->accumulator = GEMMEPI_F32;
    details->launches = kernel->sums.blocks ? 2 : 1;
    details->route = GEMMEPI_ROUTE_FUSED;
}

/* Adds up what the layers' plans are: launches, and the first one's kernel. */
static void gpi__describe_layers_of_network(const gpi__network_plan *network, gemmepi_plan_details *details) {
    gemmepi_plan_details of_layer;
    int i, j, is_first = 1;
    for (j = 0; j < 2 * network->task.layer_count; j++) {
        int backward = j >= network->task.layer_count;
        const gemmepi_plan *plan;
        i = backward ? 2 * network->task.layer_count - 1 - j : j;
        plan = backward ? network->backward[i] : network->forward[i];
        if (!plan)
            continue;
        gpi__describe(gpi__row_of_layer(backward), plan, &of_layer);
        if (is_first) {
            memcpy(details->kernel, of_layer.kernel, sizeof details->kernel);
            details->tile_m = of_layer.tile_m;
            details->tile_n = of_layer.tile_n;
            details->compute = of_layer.compute;
            details->accumulator = of_layer.accumulator;
        }
        is_first = 0;
        details->launches += of_layer.launches;
        details->bit_stable &= of_layer.bit_stable;
    }
    details->saved_size = gpi__saved_size(network);
    details->route = network->base.context->is_host ? GEMMEPI_ROUTE_HOST : GEMMEPI_ROUTE_LINEAR;
}

static void gpi__describe_network(const gemmepi_plan *base, gemmepi_plan_details *details) {
    const gpi__network_plan *network = (const gpi__network_plan *)base;
    if (network->by_layers)
        gpi__describe_layers_of_network(network, details);
    else
        gpi__describe_network_kernel(network, details);
}

static void gpi__explain_network(gpi__text *text, const gemmepi_plan *base,
                                 const gemmepi_plan_details *details) {
    const gpi__network_plan *network = (const gpi__network_plan *)base;
    const gpi__network_task *task = &network->task;
    int i;
    gpi__append(text, "%s of a network of %lld rows, widths %lld",
                gpi__is_network_backward(task) ? "backward" : "forward", (long long)task->rows,
                (long long)task->layers[0].inputs);
    for (i = 0; i < task->layer_count; i++)
        gpi__append(text, " %lld", (long long)task->layers[i].width);
    gpi__append(text, ", %s: ", gpi__dtype_name((gemmepi_dtype)task->dtype));
    if (network->by_layers)
        gpi__append(text, "a layer at a time, as %s", network->by_layers);
    else
        gpi__append(text,
                    "all layers in one kernel, %s, %u blocks of %d rows by turns, shared memory %u bytes%s",
                    network->kernel.launch.name, network->kernel.launch.blocks, details->tile_m,
                    network->kernel.launch.shared,
                    gpi__network_goes_by_turns(task) ? ", formulas for two values at a time" : "");
    gpi__append(text, "; %d launches, workspace %llu bytes, saved %llu bytes\n", details->launches,
                (gpi__ull)details->workspace_size, (gpi__ull)details->saved_size);
    for (i = 0; i < task->layer_count; i++)
        if (network->forward[i]) {
            gpi__append(text, "layer %d, ", i);
            gpi__explain(gpi__row_of_layer(0), text, network->forward[i]);
        }
    for (i = task->layer_count - 1; i >= 0; i--)
        if (network->backward[i]) {
            gpi__append(text, "layer %d, ", i);
            gpi__explain(gpi__row_of_layer(1), text, network->backward[i]);
        }
}

#endif
