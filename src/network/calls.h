/* The calls of networks: plans, runs, and both at once. */
#ifndef GEMMEPI_NETWORK_CALLS_H
#define GEMMEPI_NETWORK_CALLS_H

#include "explain.h"

/* A layer with its texts, in place of the pointers to them; 0: it has no key. */
static int gpi__add_layer_to_key(gpi__text_key *key, const gemmepi_network_layer *layer) {
    gemmepi_network_layer bare = *layer;
    int i, fits = layer->operand_count == 0 || (layer->operands && layer->operand_count > 0 &&
                                                layer->operand_count <= GPI__LAYER_OPERANDS);
    bare.formula = NULL;
    bare.operands = NULL;
    fits = fits && gpi__add_to_key(key, &bare, sizeof bare) && gpi__add_text_to_key(key, layer->formula);
    for (i = 0; fits && i < layer->operand_count; i++)
        fits = gpi__add_operand_to_key(key, &layer->operands[i]);
    return fits;
}

/* A call's desc as bytes: what its plan is found by without a text being parsed. */
static int gpi__add_network_to_key(gpi__text_key *key, const void *given) {
    const gemmepi_network_desc *desc = (const gemmepi_network_desc *)given;
    gemmepi_network_desc bare = *desc;
    int i, fits = desc->layers && desc->layer_count > 0 && desc->layer_count <= GPI__NETWORK_LAYERS;
    bare.layers = NULL;
    bare.input_formula = NULL;
    fits = fits && gpi__add_to_key(key, &bare, sizeof bare) && gpi__add_text_to_key(key, desc->input_formula);
    for (i = 0; fits && i < desc->layer_count; i++)
        fits = gpi__add_layer_to_key(key, &desc->layers[i]);
    return fits;
}

/* A plan that is kept is found by its task, too. */
static gemmepi_status gpi__make_network(const gpi__wish *wish, gemmepi_plan **plan) {
    gemmepi_context *context = wish->context;
    gpi__network_task *task = (gpi__network_task *)gpi__new(&context->allocator, sizeof *task);
    gemmepi_network_desc desc;
    gemmepi_status status;
    if (!task)
        return GEMMEPI_OUT_OF_MEMORY;
    status = gpi__convert_network(context, (const gemmepi_network_desc *)wish->desc,
                                  wish->kind == GEMMEPI_PLAN_NETWORK_BACKWARD, &desc, task);
    if (!status && gpi__is_found(wish, task, gpi__network_task_size(task), plan))
        gpi__drop_networks_formulas(context, task);
    else if (!status)
        status = gpi__keep_built(wish, task, gpi__network_task_size(task),
                                 gpi__build_network(context, &desc, task, plan), plan);
    gpi__delete(&context->allocator, task);
    return status;
}

static size_t gpi__workspace_of_network(const gemmepi_plan *plan) {
    return gpi__network_workspace((const gpi__network_plan *)plan);
}

static gemmepi_status gpi__tune_network(const gemmepi_plan *plan, const gemmepi_tune_options *options) {
    const gpi__network_plan *network = (const gpi__network_plan *)plan;
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < 2 * network->task.layer_count && !status; i++)
        if (gpi__layer_plan(network, i))
            status = gpi__tune_layer(gpi__layer_plan(network, i), options);
    return status;
}

static void gpi__check_network(const gemmepi_plan *plan) {
    const gpi__network_plan *network = (const gpi__network_plan *)plan;
    int i;
    for (i = 0; i < 2 * network->task.layer_count; i++)
        if (gpi__layer_plan(network, i))
            gpi__check_layer(gpi__layer_plan(network, i));
}

/* Forward, and backward. */
static const gpi__plan_row gpi__network_plans[2] = {
    GPI__PLAN_ROW(GEMMEPI_PLAN_NETWORK, network, {0, 0, {0, 0}, gpi__add_network_to_key}),
    GPI__PLAN_ROW(GEMMEPI_PLAN_NETWORK_BACKWARD, network, {0, 0, {0, 0}, gpi__add_network_to_key})};

GEMMEPI_API gemmepi_status gemmepi_plan_network(gemmepi_context *context, const gemmepi_network_desc *desc,
                                                gemmepi_plan **plan) {
    return gpi__plan_desc(&gpi__network_plans[0], context, desc, plan);
}

GEMMEPI_API gemmepi_status gemmepi_plan_network_backward(gemmepi_context *context,
                                                         const gemmepi_network_desc *desc,
                                                         gemmepi_plan **plan) {
    return gpi__plan_desc(&gpi__network_plans[1], context, desc, plan);
}

GEMMEPI_API gemmepi_status gemmepi_run_network(const gemmepi_plan *plan, const gemmepi_network_args *args,
                                               gemmepi_stream stream) {
    return gpi__run_plan(&gpi__network_plans[0], plan, args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_run_network_backward(const gemmepi_plan *plan,
                                                        const gemmepi_network_args *args,
                                                        gemmepi_stream stream) {
    return gpi__run_plan(&gpi__network_plans[1], plan, args, stream);
}

static gemmepi_status gpi__call_network(gemmepi_context *context, const gemmepi_network_desc *desc,
                                        const gemmepi_network_args *args, int backward,
                                        gemmepi_stream stream) {
    const gpi__plan_row *row = &gpi__network_plans[backward];
    gpi__wish wish = {context, row->kind, desc, GPI__DEFAULT_ALIGNMENT, 1, NULL};
    gemmepi_status status = gpi__check_call(context, args, "args");
    return status ? status : gpi__run_once(row, &wish, args, args->workspace, stream);
}

GEMMEPI_API gemmepi_status gemmepi_network(gemmepi_context *context, const gemmepi_network_desc *desc,
                                           const gemmepi_network_args *args, gemmepi_stream stream) {
    return gpi__call_network(context, desc, args, 0, stream);
}

GEMMEPI_API gemmepi_status gemmepi_network_backward(gemmepi_context *context,
                                                    const gemmepi_network_desc *desc,
                                                    const gemmepi_network_args *args, gemmepi_stream stream) {
    return gpi__call_network(context, desc, args, 1, stream);
}

#endif
