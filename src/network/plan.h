/* Plans of networks: the kernel, or by layers the plans of these, and where what is between them is. */
#ifndef GEMMEPI_NETWORK_PLAN_H
#define GEMMEPI_NETWORK_PLAN_H

#include "kernel.h"
#include "convert.h"

typedef struct gpi__network_plan {
    gemmepi_plan base;
    const char *by_layers; /* why it is run so; NULL: in one kernel, and there are no plans of layers */
    gpi__network_kernel kernel;
    gemmepi_plan *forward[GPI__NETWORK_LAYERS]; /* backward's make again what is not saved */
    gemmepi_plan *backward[GPI__NETWORK_LAYERS];
    size_t p_at[GPI__NETWORK_LAYERS], y_at[GPI__NETWORK_LAYERS]; /* of each layer, in what is kept */
    size_t g_at[GPI__NETWORK_LAYERS];                            /* its G or dY, behind that */
    size_t kept_size, g_size;
    int is_saved;      /* what is kept is in args.saved, else at the beginning of workspace */
    size_t built_size; /* the workspace as it was built: more once a product takes another route */
    gpi__network_task task;
} gpi__network_plan;

static const gpi__plan_row *gpi__row_of_layer(int backward) {
    return &gpi__layer_plans[backward];
}

/* Returns the i'th of twice as many plans as there are layers, or NULL. */
static gemmepi_plan *gpi__layer_plan(const gpi__network_plan *network, int i) {
    return i % 2 ? network->backward[i / 2] : network->forward[i / 2];
}

static void gpi__destroy_network(gemmepi_plan *destroyed) {
    gpi__network_plan *network = (gpi__network_plan *)destroyed;
    int i;
    for (i = 0; i < 2 * network->task.layer_count; i++)
        if (gpi__layer_plan(network, i))
            gpi__release_plan(gpi__layer_plan(network, i));
    gpi__drop_networks_formulas(network->base.context, &network->task);
    gpi__delete(&network->base.context->allocator, network);
}

/* >>workspace */

static size_t gpi__between_layers(const gpi__network_plan *network) {
    return network->g_size + (network->is_saved ? 0 : network->kept_size);
}

static size_t gpi__saved_size(const gpi__network_plan *network) {
    return network->is_saved ? network->kept_size : 0;
}

/* What is between layers, then what the largest of them needs now. On the host 0: there it is allocated for each run. */
static size_t gpi__network_workspace(const gpi__network_plan *network) {
    size_t most = 0, size;
    int i, backward;
    if (network->base.context->is_host)
        return 0;
    if (!network->by_layers)
        return network->kernel.workspace_size;
    for (i = 0; i < network->task.layer_count; i++)
        for (backward = 0; backward < 2; backward++) {
            const gemmepi_plan *plan = backward ? network->backward[i] : network->forward[i];
            size = plan ? gpi__row_of_layer(backward)->workspace(plan) : 0;
            most = size > most ? size : most;
        }
    return gpi__between_layers(network) + most;
}

static size_t gpi__place(size_t *end, size_t bytes) {
    size_t at = *end;
    *end += gpi__round_up(bytes, 256);
    return at;
}

/* P and Y of one layer after another. Backward finds them where forward has put them: that it makes again has no P of the last layer. */
static void gpi__place_all_kept(const gemmepi_network_desc *desc, gpi__network_plan *network) {
    int i, is_last;
    for (i = 0; i < desc->layer_count; i++) {
        is_last = i + 1 == desc->layer_count;
        if (gpi__keeps_p(desc, i) && (!is_last || network->is_saved))
            network->p_at[i] = gpi__place(&network->kept_size, gpi__bytes_of_p(desc, i));
        if (!is_last)
            network->y_at[i] = gpi__place(&network->kept_size, gpi__bytes_of_y(desc, i));
    }
}

/* Two buffers that layers read and write by turns. */
static size_t gpi__place_by_turns(const gemmepi_network_desc *desc, size_t at[GPI__NETWORK_LAYERS]) {
    size_t sizes[2] = {0, 0};
    int i;
    for (i = 0; i + 1 < desc->layer_count; i++) {
        size_t bytes = gpi__round_up(gpi__bytes_of_y(desc, i), 256);
        sizes[i % 2] = sizes[i % 2] > bytes ? sizes[i % 2] : bytes;
    }
    for (i = 0; i + 1 < desc->layer_count; i++)
        at[i] = i % 2 ? sizes[0] : 0;
    return sizes[0] + sizes[1];
}

static void gpi__place_between(const gemmepi_network_desc *desc, gpi__network_plan *network) {
    int backward = gpi__is_network_backward(&network->task);
    network->is_saved = (desc->flags & GEMMEPI_NETWORK_SAVED) != 0;
    if (backward || network->is_saved)
        gpi__place_all_kept(desc, network);
    else
        network->kept_size = gpi__place_by_turns(desc, network->y_at);
    if (backward)
        network->g_size = gpi__place_by_turns(desc, network->g_at);
}

/* >>building */

static gemmepi_status gpi__build_networks_layer(gpi__network_plan *network, int i, int backward,
                                                const gemmepi_linear_desc *layer) {
    gpi__wish wish = {network->base.context,
                      backward ? GEMMEPI_PLAN_LINEAR_BACKWARD : GEMMEPI_PLAN_LINEAR,
                      layer,
                      layer->alignment,
                      0,
                      NULL};
    return gpi__in_networks_words(
        gpi__make_layer(&wish, backward ? &network->backward[i] : &network->forward[i]), i);
}

static gemmepi_status gpi__build_networks_forward(const gemmepi_network_desc *desc, int count,
                                                  gpi__network_plan *network) {
    int backward = gpi__is_network_backward(&network->task), i;
    gemmepi_status status = GEMMEPI_OK;
    for (i = 0; i < count && !status; i++) {
        gemmepi_linear_desc layer = gpi__forward_layer(desc, i, backward || network->is_saved);
        status = gpi__build_networks_layer(network, i, 0, &layer);
    }
    return status;
}

static gemmepi_status gpi__build_networks_backward(const gemmepi_network_desc *desc,
                                                   gpi__network_plan *network) {
    int i, is_given_g = 0, goes_through, lowest = gpi__lowest_layer(desc);
    gemmepi_status status = GEMMEPI_OK;
    if (!network->is_saved)
        status = gpi__build_networks_forward(desc, desc->layer_count - 1, network);
    for (i = desc->layer_count - 1; i >= lowest && !status; i--) {
        gemmepi_linear_desc layer = gpi__backward_layer(desc, i), before;
        goes_through = gpi__goes_through_before(desc, i, is_given_g);
        if (is_given_g)
            layer.flags |= GEMMEPI_LINEAR_DY_IS_G;
        if (goes_through) {
            before = gpi__forward_layer(desc, i - 1, 1);
            layer.before = &before;
        }
        status = gpi__build_networks_layer(network, i, 1, &layer);
        is_given_g = goes_through;
    }
    return status;
}

static gemmepi_status gpi__build_by_layers(const gemmepi_network_desc *desc, gpi__network_plan *network) {
    gpi__place_between(desc, network);
    return gpi__is_network_backward(&network->task)
               ? gpi__build_networks_backward(desc, network)
               : gpi__build_networks_forward(desc, desc->layer_count, network);
}

/* task: its formulas are the plan's from now on. */
static gemmepi_status gpi__build_network(gemmepi_context *context, const gemmepi_network_desc *desc,
                                         const gpi__network_task *task, gemmepi_plan **result) {
    gpi__network_plan *network = (gpi__network_plan *)gpi__new(&context->allocator, sizeof *network);
    int backward = gpi__is_network_backward(task);
    gemmepi_status status;
    if (!network) {
        gpi__drop_networks_formulas(context, task);
        return GEMMEPI_OUT_OF_MEMORY;
    }
    network->base = gpi__plan_base(context, backward ? GEMMEPI_PLAN_NETWORK_BACKWARD : GEMMEPI_PLAN_NETWORK,
                                   gpi__destroy_network);
    network->base.block_number = 2;
    memcpy(&network->task, task, sizeof *task);
    network->by_layers = context->is_host ? "it is on the host" : gpi__network_refusal(context, task);
    status = network->by_layers ? gpi__build_by_layers(desc, network)
                                : gpi__build_network_kernel(context, &network->task, &network->kernel);
    network->built_size = status ? 0 : gpi__network_workspace(network);
    return gpi__finish_plan(&network->base, status, result);
}

#endif
