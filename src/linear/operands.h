/* The operands that the caller of a layer lists for its formula, each checked, and what they are in backward. */
#ifndef GEMMEPI_LINEAR_OPERANDS_H
#define GEMMEPI_LINEAR_OPERANDS_H

#include "../formula/derived_operands.h"
#include "tensors.h"

/* For sentences. */
static const char *gpi__kind_name(gemmepi_operand_kind kind) {
    return kind && (size_t)kind < GPI__COUNT(gpi__kind_names) ? gpi__kind_names[kind]
                                                              : "no gemmepi_operand_kind";
}

static const char *gpi__width_name(gemmepi_width width) {
    static const char *const names[] = {"WIDTH_N", "WIDTH_HALF", "WIDTH_DOUBLE"};
    return (size_t)width < GPI__COUNT(names) ? names[width] : "no gemmepi_width";
}

/* The input or output NAME that d_NAME or dy_NAME is the gradient of, or -1. */
static int gpi__gradient_of(const gemmepi_linear_desc *layer, int gradient) {
    int is_upstream = gpi__layers_role(&layer->operands[gradient]) == GPI__IS_UPSTREAM, i;
    const char *name = layer->operands[gradient].name + (is_upstream ? 3 : 2);
    for (i = 0; i < layer->operand_count; i++)
        if (gpi__layers_role(&layer->operands[i]) == (is_upstream ? GPI__IS_OUTPUT : GPI__IS_INPUT) &&
            strcmp(layer->operands[i].name, name) == 0)
            return i;
    return -1;
}

/* The operand dy_NAME of an output NAME, or -1. */
static int gpi__upstream_of(const gemmepi_linear_desc *layer, int output) {
    int i;
    for (i = 0; i < layer->operand_count; i++)
        if (gpi__layers_role(&layer->operands[i]) == GPI__IS_UPSTREAM && gpi__gradient_of(layer, i) == output)
            return i;
    return -1;
}

/* Where a text has a name, beside its comments; -1: it has it not. */
static int gpi__place_of_name(const char *text, const char *name) {
    size_t at, length;
    for (at = gpi__next_token(text, 0); text[at]; at = gpi__next_token(text, at + (length ? length : 1))) {
        length = gpi__name_length(text + at);
        if (length && gpi__is_name(text + at, length, name))
            return (int)at;
    }
    return -1;
}

/* One of d_NAME and dy_NAME. */
static gemmepi_status gpi__check_layers_gradient_name(const gemmepi_linear_desc *layer, int i) {
    const gemmepi_operand *operand = &layer->operands[i];
    int is_upstream = gpi__layers_role(operand) == GPI__IS_UPSTREAM;
    GPI__INVALID_IF(operand->output != !is_upstream,
                    is_upstream
                        ? "desc.operands[%d].output (of %s) is %d; names that begin with dy_ are those of "
                          "gradients that come in, which are inputs: leave it 0, or choose another name"
                        : "desc.operands[%d].output (of %s) is %d; names that begin with d_ are those of "
                          "gradients, which are outputs: set it to 1, or choose another name",
                    i, operand->name, operand->output);
    GPI__INVALID_IF(gpi__gradient_of(layer, i) < 0,
                    "desc.operands[%d] is called %s, but there is no %s operand %s", i, operand->name,
                    is_upstream ? "output" : "input", operand->name + (is_upstream ? 3 : 2));
    GPI__INVALID_IF(layer->formula && gpi__place_of_name(layer->formula, operand->name) >= 0,
                    "desc.formula has %s, an operand that backward %s by itself: leave it out of the text",
                    operand->name, is_upstream ? "reads" : "makes");
    return GEMMEPI_OK;
}

/* Names and directions, which both directions ask about. */
static gemmepi_status gpi__check_layers_operands(const gemmepi_linear_desc *layer) {
    gemmepi_status status = GEMMEPI_OK;
    int i, role;
    for (i = 0; i < layer->operand_count && !status; i++)
        status = gpi__check_given_name("operands", i, layer->operands[i].name);
    for (i = 0; i < layer->operand_count && !status; i++) {
        const gemmepi_operand *operand = &layer->operands[i];
        role = gpi__layers_role(operand);
        GPI__INVALID_IF(
            role == GPI__IS_OUTPUT && (operand->scale.mode || operand->amax),
            "desc.operands[%d].%s (of %s) is %d; outputs of a layer's formula have none: leave it 0", i,
            operand->amax ? "amax" : "scale.mode", operand->name,
            operand->amax ? operand->amax : (int)operand->scale.mode);
        if (role >= GPI__IS_GRADIENT)
            status = gpi__check_layers_gradient_name(layer, i);
    }
    return status;
}

/* Why an input has no gradient, or NULL. */
static const char *gpi__lacks_gradient(const gemmepi_operand *of) {
    if (of->kind == GEMMEPI_NUMBER)
        return "is a NUMBER, which is on the host: make it a SCALAR";
    if (of->dtype == GEMMEPI_I32 || of->dtype == GEMMEPI_I64)
        return "has whole numbers, which have no gradient";
    if (gpi__is_only_read((int)of->dtype))
        return "is in 4 bits or E8M0, types without a gradient";
    if (of->row_period || of->column_period)
        return "has a period, and there is no sum over what repeats";
    return NULL;
}

/* Whether kind, width and blocks are the same. */
static int gpi__is_shaped_as(const gemmepi_operand *x, const gemmepi_operand *y) {
    return x->kind == y->kind && x->width == y->width && x->block_rows == y->block_rows &&
           x->block_columns == y->block_columns;
}

static gemmepi_status gpi__refuse_shape_of_gradient(int i, const gemmepi_operand *operand,
                                                    const gemmepi_operand *of, const char *further) {
    int is_kind = operand->kind != of->kind;
    GPI__INVALID_IF(
        !is_kind && operand->width == of->width,
        "desc.operands[%d].block_rows and block_columns (of %s) are %lld and %lld; they are those of %s, "
        "%lld and %lld%s",
        i, operand->name, (long long)operand->block_rows, (long long)operand->block_columns, of->name,
        (long long)of->block_rows, (long long)of->block_columns, further);
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.operands[%d].%s (of %s) is %s; it is that of %s, %s%s",
                     i, is_kind ? "kind" : "width", operand->name,
                     is_kind ? gpi__kind_name(operand->kind) : gpi__width_name(operand->width), of->name,
                     is_kind ? gpi__kind_name(of->kind) : gpi__width_name(of->width), further);
}

/* Whether d_NAME has rows that are sums over items: no reduction of a formula is, but of what is along D's lines or one number. */
static int gpi__is_over_items(const gemmepi_linear_desc *layer, const gemmepi_operand *gradient) {
    int exchanged = layer->order == GEMMEPI_COLUMN_MAJOR, kind = (int)gradient->kind;
    return layer->batch > 1 && !gradient->batch_stride &&
           gpi__has_rows(exchanged ? gpi__kind_across(kind) : kind);
}

/* The rules of a gradient beside those of any output. */
static gemmepi_status gpi__check_layers_gradient(const gemmepi_linear_desc *layer, int i) {
    const gemmepi_operand *gradient = &layer->operands[i], *of = &layer->operands[gpi__gradient_of(layer, i)];
    uint32_t accepted = layer->a.dtype == GEMMEPI_F64 ? 1u << GEMMEPI_F64 : GPI__VECTOR_TYPES;
    const char *why = gpi__lacks_gradient(of), *name = gradient->name;
    GPI__INVALID_IF(why, "desc.operands[%d] is %s, but %s %s", i, name, of->name, why);
    if (!gpi__is_shaped_as(gradient, of))
        return gpi__refuse_shape_of_gradient(i, gradient, of, "");
    GPI__INVALID_IF(
        gradient->dtype && !(gpi__dtype_is_known(gradient->dtype) && accepted >> gradient->dtype & 1),
        "desc.operands[%d].dtype (of %s) is %d (%s); accepted for gradients are F32, F16 and BF16 (F64 in F64)",
        i, name, (int)gradient->dtype, gpi__dtype_name(gradient->dtype));
    GPI__INVALID_IF(gradient->scale.mode || gradient->amax,
                    "desc.operands[%d].%s (of %s) is %d; a gradient has none: leave it 0", i,
                    gradient->amax ? "amax" : "scale.mode", name,
                    gradient->amax ? gradient->amax : (int)gradient->scale.mode);
    GPI__INVALID_IF(
        gradient->accumulate && gradient->kind == GEMMEPI_FULL && !gpi__is_over_items(layer, gradient),
        "desc.operands[%d].accumulate (of %s) is %d; of a FULL operand the gradient is no sum, and "
        "only sums accumulate",
        i, name, gradient->accumulate);
    GPI__INVALID_IF(
        layer->batch > 1 && of->batch_stride && !gradient->batch_stride,
        "desc.operands[%d].batch_stride (of %s) is 0, but %s has one for each item of the batch (its "
        "stride is %lld): then its gradient has, too",
        i, name, of->name, (long long)of->batch_stride);
    return GEMMEPI_OK;
}

/* The rules of a gradient that comes in. */
static gemmepi_status gpi__check_layers_upstream(const gemmepi_linear_desc *layer, int i) {
    const gemmepi_operand *upstream = &layer->operands[i], *of = &layer->operands[gpi__gradient_of(layer, i)];
    if (gpi__is_one_number(upstream) || gpi__is_shaped_as(upstream, of))
        return GEMMEPI_OK;
    return gpi__refuse_shape_of_gradient(i, upstream, of, ", or the operand is a SCALAR or NUMBER");
}

/* What an operand's dtype 0 means where D is Y. */
static gemmepi_dtype gpi__dtype_beside_y(const gemmepi_linear_desc *layer) {
    return gpi__is_fp8((int)layer->y.dtype) ? GEMMEPI_BF16 : layer->y.dtype;
}

/* What forward wrote, or the gradient that comes in for it: an input of backward. */
static gemmepi_operand gpi__output_in_backward(const gpi__graph *graph, const gemmepi_linear_desc *layer,
                                               int i) {
    gemmepi_operand operand = layer->operands[i];
    if (!operand.dtype && operand.kind != GEMMEPI_NUMBER)
        operand.dtype = gpi__dtype_of_operand(
            graph, gpi__layers_role(&operand) == GPI__IS_UPSTREAM ? gpi__gradient_of(layer, i) : i);
    operand.output = operand.accumulate = 0;
    return operand;
}

/* As backward has it, whose D is G. graph: forward's. */
static gemmepi_operand gpi__operand_of_backward(const gpi__graph *graph, const gemmepi_linear_desc *layer,
                                                int i) {
    gemmepi_operand operand = layer->operands[i];
    int role = gpi__layers_role(&operand);
    gemmepi_dtype of;
    if (role == GPI__IS_OUTPUT || role == GPI__IS_UPSTREAM)
        return gpi__output_in_backward(graph, layer, i);
    if (!operand.output && operand.kind != GEMMEPI_NUMBER && !operand.dtype)
        operand.dtype = gpi__dtype_beside_y(layer);
    if (!operand.output || operand.dtype || operand.kind != GEMMEPI_FULL)
        return operand;
    of = layer->operands[gpi__gradient_of(layer, i)].dtype;
    operand.dtype = of ? of : gpi__dtype_beside_y(layer);
    if (gemmepi_dtype_size(operand.dtype) == 1)
        operand.dtype = GEMMEPI_BF16;
    return operand;
}

#endif
