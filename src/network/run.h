/* Runs of networks: in one kernel, or a layer at a time. */
#ifndef GEMMEPI_NETWORK_RUN_H
#define GEMMEPI_NETWORK_RUN_H

#include "kernel_run.h"

typedef struct gpi__network_run {
    const gpi__network_plan *network;
    gpi__network_pointers at;
    char *kept, *between; /* P and Y of layers; G or dY */
    char *workspace;      /* of a layer */
    size_t workspace_size;
} gpi__network_run;

/* Runs a layer without a look at its pointers: the network has looked; on the host, or with the primary context current. */
static gemmepi_status gpi__run_inner_layer(const gemmepi_plan *base, const gemmepi_linear_args *args,
                                           gemmepi_stream stream) {
    const gpi__linear_plan *layer = (const gpi__linear_plan *)base;
    gpi__space space = {args->workspace, args->workspace_size, NULL, stream, base->block_number, 1};
    gpi__layer_run run;
    run.layer = layer;
    gpi__list_layer_pointers(&layer->task, args, run.sources);
    return base->context->is_host
               ? gpi__launch_on_host(base->context, &space, gpi__all_temporaries(layer), gpi__run_steps, &run)
               : gpi__run_layer_on_device(&run, &space);
}

/* What both directions of a layer read. */
static void gpi__point_to_forward(const gpi__network_run *run, int i, gemmepi_linear_args *args) {
    const gpi__network_plan *network = run->network;
    memset(args, 0, sizeof *args);
    args->a = i ? gpi__past(run->kept, network->y_at[i - 1]) : run->at.alone[GPI__N_X];
    args->b = run->at.of_layers[0][i];
    args->bias = run->at.of_layers[GPI__N_BIAS - GPI__N_W][i];
    args->operands = run->at.operands[i];
    args->workspace = run->workspace;
    args->workspace_size = run->workspace_size;
}

/* Whether a layer's plan has P in preact. */
static int gpi__has_saved_p(const gemmepi_plan *plan) {
    return (((const gpi__linear_plan *)plan)->task.flags & GEMMEPI_LINEAR_SAVED) != 0;
}

static gemmepi_status gpi__run_networks_forward(const gpi__network_run *run, int i, gemmepi_stream stream) {
    const gpi__network_plan *network = run->network;
    int is_last = i + 1 == network->task.layer_count;
    gemmepi_linear_args args;
    gpi__point_to_forward(run, i, &args);
    args.y = is_last ? run->at.alone[GPI__N_Y] : gpi__past(run->kept, network->y_at[i]);
    args.preact = gpi__has_saved_p(network->forward[i]) ? gpi__past(run->kept, network->p_at[i]) : NULL;
    return gpi__run_inner_layer(network->forward[i], &args, stream);
}

static gemmepi_status gpi__run_networks_backward(const gpi__network_run *run, int i, gemmepi_stream stream) {
    const gpi__network_plan *network = run->network;
    const gpi__layer_task *layer = &((const gpi__linear_plan *)network->backward[i])->task;
    int is_last = i + 1 == network->task.layer_count;
    gemmepi_linear_args args, before;
    gpi__point_to_forward(run, i, &args);
    args.dy = is_last ? run->at.alone[GPI__N_DY] : gpi__past(run->between, network->g_at[i]);
    if (layer->flags & GEMMEPI_LINEAR_DA)
        args.da = i ? gpi__past(run->between, network->g_at[i - 1]) : run->at.alone[GPI__N_DX];
    args.db = run->at.of_layers[GPI__N_DW - GPI__N_W][i];
    args.dbias = run->at.of_layers[GPI__N_DBIAS - GPI__N_W][i];
    args.preact = gpi__has_saved_p(network->backward[i]) ? gpi__past(run->kept, network->p_at[i]) : NULL;
    if (layer->has_before) {
        memset(&before, 0, sizeof before);
        before.preact = gpi__past(run->kept, network->p_at[i - 1]);
        before.operands = run->at.operands[i - 1];
        args.before = &before;
    }
    return gpi__run_inner_layer(network->backward[i], &args, stream);
}

/* In a workspace of so many bytes; on the host, or with the primary context current. */
static gemmepi_status gpi__run_by_layers(void *user, char *workspace, size_t size, gemmepi_stream stream) {
    gpi__network_run *run = (gpi__network_run *)user;
    const gpi__network_plan *network = run->network;
    size_t between = gpi__between_layers(network);
    gemmepi_status status = GEMMEPI_OK;
    int i;
    run->kept = network->is_saved ? (char *)run->at.alone[GPI__N_SAVED] : workspace;
    run->between = network->is_saved ? workspace : gpi__past(workspace, network->kept_size);
    if (!network->base.context->is_host && size > between) {
        run->workspace = workspace + between;
        run->workspace_size = size - between;
    }
    for (i = 0; i < network->task.layer_count && !status; i++)
        if (network->forward[i])
            status = gpi__run_networks_forward(run, i, stream);
    for (i = network->task.layer_count - 1; i >= 0 && !status; i--)
        if (network->backward[i])
            status = gpi__run_networks_backward(run, i, stream);
    return status;
}

static gemmepi_status gpi__launch_networks_work(void *user, char *workspace, size_t size,
                                                gemmepi_stream stream) {
    const gpi__network_run *run = (const gpi__network_run *)user;
    const gpi__network_plan *network = run->network;
    return network->by_layers ? gpi__run_by_layers(user, workspace, size, stream)
                              : gpi__launch_network(network->base.context, &network->kernel, &network->task,
                                                    &run->at, workspace, stream);
}

static gemmepi_status gpi__run_network_on_device(gpi__network_run *run, const gpi__space *space) {
    const gpi__network_plan *network = run->network;
    return gpi__launch_as_counted(network->base.context, space, gpi__network_workspace(network),
                                  network->built_size, gpi__launch_networks_work, run);
}

/* one_shot: as gpi__run_matmul's. */
static gemmepi_status gpi__run_network(const gemmepi_plan *base, const void *given, int one_shot,
                                       gemmepi_stream stream) {
    const gpi__network_plan *network = (const gpi__network_plan *)base;
    const gemmepi_network_args *args = (const gemmepi_network_args *)given;
    gemmepi_context *context = network->base.context;
    gpi__network_run run;
    gpi__regions regions;
    gpi__space space = {args->workspace, args->workspace_size, &regions, stream, base->block_number, 1};
    gpi__entry entry;
    gemmepi_status status = gpi__check_run(context, stream, args->workspace, args->workspace_size);
    if (status)
        return status;
    memset(&run, 0, sizeof run);
    run.network = network;
    status = gpi__convert_network_pointers(network, args, &run.at, &regions);
    if (!status)
        status = gpi__enter_run(context, &space, one_shot, &entry);
    if (status)
        return status;
    if (context->is_host)
        return gpi__launch_on_host(context, &space, gpi__between_layers(network), gpi__run_by_layers, &run);
    status = gpi__run_network_on_device(&run, &space);
    gpi__leave(context, &entry);
    return status;
}

#endif
