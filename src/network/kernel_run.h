/* A network's run in one kernel, and, of dw, the launch that adds up what its blocks leave. */
#ifndef GEMMEPI_NETWORK_KERNEL_RUN_H
#define GEMMEPI_NETWORK_KERNEL_RUN_H

#include "pointers.h"

static void gpi__point_network_to_operands(const gpi__network_task *task, const gpi__network_pointers *at,
                                           gpi__network_params *params) {
    int i, j, place = 0;
    for (i = 0; i < task->layer_count; i++)
        for (j = 0; j < task->layers[i].operand_count; j++, place++) {
            const gpi__kept_formula *kept = gpi__networks_formula_with(task, i, j);
            if (!kept)
                continue;
            if (kept->placed.formula->operands[j].kind == GEMMEPI_NUMBER)
                params->places[place].number = *(const double *)at->operands[i][j];
            else
                params->places[place].data = at->operands[i][j];
        }
}

/* The primary context is current; workspace has what the kernel wants, at a multiple of 256. */
static gemmepi_status gpi__launch_network(const gemmepi_context *context, const gpi__network_kernel *kernel,
                                          const gpi__network_task *task, const gpi__network_pointers *at,
                                          char *workspace, gemmepi_stream stream) {
    gpi__network_params params = kernel->params;
    gpi__reduce_params sums = kernel->sums_params;
    gemmepi_status status;
    int i, output = 0;
    params.x = at->alone[GPI__N_X];
    params.y = at->alone[GPI__N_Y];
    params.dy = at->alone[GPI__N_DY];
    params.dx = at->alone[GPI__N_DX];
    params.partials = (float *)(void *)workspace;
    sums.x.data = params.partials;
    for (i = 0; i < task->layer_count; i++) {
        params.w[i] = at->of_layers[GPI__N_W - GPI__N_W][i];
        params.bias[i] = at->of_layers[GPI__N_BIAS - GPI__N_W][i];
        sums.output[output++] = at->of_layers[GPI__N_DW - GPI__N_W][i];
        if (gpi__network_is(task, GEMMEPI_NETWORK_BIAS))
            sums.output[output++] = at->of_layers[GPI__N_DBIAS - GPI__N_W][i];
    }
    gpi__point_network_to_operands(task, at, &params);
    status = gpi__launch_kernel(context, &kernel->launch, &params, "a network", stream);
    if (!status && kernel->sums.blocks)
        status = gpi__launch_kernel(context, &kernel->sums, &sums, "the sums of a network's dw", stream);
    return status;
}

#endif
