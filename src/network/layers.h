/* The layers of a network as descs of gemmepi_linear: what a network's formulas are checked and derived by, and what it is run by a
   layer at a time. Forward keeps P and Y of each hidden layer for backward, or lets two buffers take turns. Backward goes from the last layer
   to the first, each dA through the activation of the layer before, which so is given its G. */
#ifndef GEMMEPI_NETWORK_LAYERS_H
#define GEMMEPI_NETWORK_LAYERS_H

#include "task.h"

/* >>what is between layers */

/* Elements of a row: a multiple of 16 bytes. */
static int64_t gpi__inner_ld(const gemmepi_network_desc *desc, int64_t width) {
    int64_t run = 16 / (int64_t)gemmepi_dtype_size(desc->dtype);
    return (width + run - 1) / run * run;
}

static int64_t gpi__inputs_of(const gemmepi_network_desc *desc, int i) {
    return i ? desc->layers[i - 1].width : desc->input;
}

/* Whether the derivative of a layer's activation may need P. */
static int gpi__keeps_p(const gemmepi_network_desc *desc, int i) {
    return desc->layers[i].formula || !gpi__is_affine(desc->layers[i].activation);
}

/* P of RELU by name is a mask of bits. */
static int gpi__p_is_mask(const gemmepi_network_desc *desc, int i) {
    return !desc->layers[i].formula && gpi__aux_is_mask(desc->layers[i].activation | GEMMEPI_AUX);
}

static int64_t gpi__p_ld(const gemmepi_network_desc *desc, int i) {
    int64_t width = desc->layers[i].width;
    return gpi__p_is_mask(desc, i) ? (width + 127) / 128 * 128 : gpi__inner_ld(desc, width);
}

static size_t gpi__bytes_of_y(const gemmepi_network_desc *desc, int i) {
    return (size_t)desc->rows * (size_t)gpi__inner_ld(desc, desc->layers[i].width) *
           gemmepi_dtype_size(desc->dtype);
}

static size_t gpi__bytes_of_p(const gemmepi_network_desc *desc, int i) {
    return gpi__p_is_mask(desc, i) ? (size_t)desc->rows * (size_t)gpi__p_ld(desc, i) / 8
                                   : gpi__bytes_of_y(desc, i);
}

/* >>descs */

static gemmepi_matrix gpi__networks_matrix(gemmepi_dtype dtype, int64_t ld) {
    gemmepi_matrix matrix;
    memset(&matrix, 0, sizeof matrix);
    matrix.dtype = dtype;
    matrix.ld = ld;
    return matrix;
}

static void gpi__place_first_input(const gemmepi_network_desc *desc, gemmepi_linear_desc *layer) {
    layer->a = gpi__networks_matrix(desc->x_dtype, desc->x_ld);
    layer->da = layer->a;
    layer->a.formula = desc->input_formula;
    layer->a.compute_dtype = desc->input_formula ? desc->dtype : GEMMEPI_DTYPE_DEFAULT;
}

/* A layer's shapes, types and activation. desc: with its defaults filled in. */
static gemmepi_linear_desc gpi__bare_layer(const gemmepi_network_desc *desc, int i) {
    const gemmepi_network_layer *of = &desc->layers[i];
    int is_last = i + 1 == desc->layer_count;
    gemmepi_linear_desc layer;
    memset(&layer, 0, sizeof layer);
    layer.m = desc->rows;
    layer.n = of->width;
    layer.k = gpi__inputs_of(desc, i);
    layer.compute = desc->compute;
    layer.flags = desc->flags & (GEMMEPI_RELAXED | GEMMEPI_BATCH_INVARIANT);
    layer.flags |= desc->flags & GEMMEPI_NETWORK_BIAS ? GEMMEPI_LINEAR_BIAS : 0;
    layer.alignment = desc->alignment;
    layer.activation = of->activation;
    layer.has_parameter = of->has_parameter;
    layer.activation_parameter = of->activation_parameter;
    layer.formula = of->formula;
    layer.operands = of->operands;
    layer.operand_count = of->operand_count;
    layer.a = layer.da = gpi__networks_matrix(desc->dtype, gpi__inner_ld(desc, layer.k));
    if (i == 0)
        gpi__place_first_input(desc, &layer);
    layer.b = gpi__networks_matrix(desc->dtype, 0);
    layer.db = gpi__networks_matrix(desc->gradient_dtype, 0);
    layer.b.transposed = (desc->flags & GEMMEPI_NETWORK_TRANSPOSED) != 0;
    layer.y = layer.dy =
        gpi__networks_matrix(desc->dtype, is_last ? desc->y_ld : gpi__inner_ld(desc, of->width));
    layer.preact = gpi__networks_matrix(gpi__p_is_mask(desc, i) ? GEMMEPI_DTYPE_DEFAULT : desc->dtype,
                                        gpi__p_ld(desc, i));
    layer.bias.dtype = desc->bias_dtype;
    layer.dbias.dtype = desc->gradient_dtype;
    layer.g_dtype = desc->dtype;
    return layer;
}

/* With what is kept for backward, or not. */
static gemmepi_linear_desc gpi__forward_layer(const gemmepi_network_desc *desc, int i, int keeps) {
    gemmepi_linear_desc layer = gpi__bare_layer(desc, i);
    if (keeps && gpi__keeps_p(desc, i))
        layer.flags |= GEMMEPI_LINEAR_SAVED;
    return layer;
}

static int gpi__asks_layer_for_gradients(const gemmepi_network_desc *desc, int i) {
    gemmepi_linear_desc layer;
    memset(&layer, 0, sizeof layer);
    layer.operands = desc->layers[i].operands;
    layer.operand_count = desc->layers[i].operand_count;
    return gpi__asks_for_gradients(&layer);
}

/* The first layer that has something to do in backward; all above it have. */
static int gpi__lowest_layer(const gemmepi_network_desc *desc) {
    int i = 0;
    if (desc->flags & (GEMMEPI_NETWORK_DX | GEMMEPI_NETWORK_DW))
        return 0;
    while (i + 1 < desc->layer_count && !gpi__asks_layer_for_gradients(desc, i))
        i++;
    return i;
}

/* What a layer's backward computes, and how it has P. */
static gemmepi_linear_desc gpi__backward_layer(const gemmepi_network_desc *desc, int i) {
    gemmepi_linear_desc layer = gpi__bare_layer(desc, i);
    int has_bias = (desc->flags & GEMMEPI_NETWORK_BIAS) != 0;
    if (desc->flags & GEMMEPI_NETWORK_DW)
        layer.flags |= GEMMEPI_LINEAR_DB | (has_bias ? GEMMEPI_LINEAR_DBIAS : 0);
    if (desc->flags & GEMMEPI_ACCUMULATE_DW)
        layer.flags |= GEMMEPI_ACCUMULATE_DB | (has_bias ? GEMMEPI_ACCUMULATE_DBIAS : 0);
    if (i > gpi__lowest_layer(desc) || desc->flags & GEMMEPI_NETWORK_DX)
        layer.flags |= GEMMEPI_LINEAR_DA;
    if (i == 0 && desc->flags & GEMMEPI_ACCUMULATE_DX)
        layer.flags |= GEMMEPI_ACCUMULATE_DA;
    if (gpi__keeps_p(desc, i))
        layer.flags |= i + 1 < desc->layer_count || desc->flags & GEMMEPI_NETWORK_SAVED
                           ? GEMMEPI_LINEAR_SAVED
                           : GEMMEPI_LINEAR_RECOMPUTE;
    return layer;
}

/* Whether a layer's dA goes through the activation of the layer before. That needs the layer's own formula to be done with, as it is
   where the layer after it has given it G. */
static int gpi__goes_through_before(const gemmepi_network_desc *desc, int i, int is_given_g) {
    if (i <= gpi__lowest_layer(desc) || gpi__asks_layer_for_gradients(desc, i - 1))
        return 0;
    return is_given_g || !desc->layers[i].formula || !desc->layers[i - 1].formula;
}

#endif
