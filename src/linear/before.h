/* The layer before, through whose activation dA goes: what it says, and that both fit. */
#ifndef GEMMEPI_LINEAR_BEFORE_H
#define GEMMEPI_LINEAR_BEFORE_H

#include "tensors.h"

/* What both layers of a chain agree in. Both are folded. */
static gemmepi_status gpi__check_chain(const gemmepi_linear_desc *layer, const gemmepi_linear_desc *before,
                                       int exchanged) {
    const char *a = exchanged ? "b" : "a", *m = exchanged ? "n" : "m", *n = exchanged ? "m" : "n";
    int64_t columns = gpi__result_columns(before->activation, before->n);
    int64_t batch = layer->a.batch_stride == 0 && layer->da.batch_stride == 0 ? 1 : layer->batch;
    GPI__INVALID_IF(before->m != layer->m,
                    "desc.before->%s is %lld, but desc.%s is %lld: %s is the y of the layer before", m,
                    (long long)before->m, m, (long long)layer->m, a);
    GPI__INVALID_IF(!before->formula && columns != layer->k, /* a formula says itself how wide y is */
                    "desc.before->%s is %lld, of which its y has %lld, but desc.k is %lld: %s is that y", n,
                    (long long)before->n, (long long)columns, (long long)layer->k, a);
    GPI__INVALID_IF(before->formula && (before->a.dtype == GEMMEPI_F64) != (layer->a.dtype == GEMMEPI_F64),
                    "desc.before->%s.dtype is %s, but desc.%s.dtype is %s: give both F64, or neither", a,
                    gpi__dtype_name(before->a.dtype), a, gpi__dtype_name(layer->a.dtype));
    GPI__INVALID_IF(before->batch != batch, "desc.before->batch is %lld, but d%s has %lld items",
                    (long long)before->batch, a, (long long)batch);
    GPI__INVALID_IF(layer->a.transposed,
                    "desc.%s.transposed is %d with desc.before, but %s is the y of the layer before, which "
                    "is not transposed",
                    a, layer->a.transposed, a);
    GPI__INVALID_IF(!(layer->flags & GEMMEPI_LINEAR_DA),
                    "desc.before is given, but desc.flags has no LINEAR_D%s, which goes through it: set it, "
                    "or leave before NULL",
                    exchanged ? "B" : "A");
    GPI__INVALID_IF(layer->flags & GEMMEPI_ACCUMULATE_DA,
                    "desc.flags has ACCUMULATE_D%s with desc.before, but d%s is overwritten by what goes "
                    "through the layer before: leave one of them out",
                    exchanged ? "B" : "A", a);
    return GEMMEPI_OK;
}

/* Puts a sentence about the layer before in the words of this one. */
static gemmepi_status gpi__in_words_of_before(gemmepi_status status) {
    static const gpi__renaming names[] = {{"desc.activation", "desc.before->activation"},
                                          {"desc.activation_parameter", "desc.before->activation_parameter"},
                                          {"desc.has_parameter", "desc.before->has_parameter"},
                                          {"desc.flags", "desc.before->flags"},
                                          {"desc.formula", "desc.before->formula"},
                                          {"desc.formula_value", "desc.before->formula_value"},
                                          {"desc.formula_result", "desc.before->formula_result"},
                                          {"desc.operands", "desc.before->operands"},
                                          {"desc.operand_count", "desc.before->operand_count"},
                                          {"desc.preact", "desc.before->preact"},
                                          {"desc.g", "desc.da"}};
    if (status)
        gpi__rename_error(names, GPI__COUNT(names));
    return status;
}

/* That backward can go through the layer before. layer: the other. */
static gemmepi_status gpi__check_before(const gemmepi_linear_desc *layer, const gemmepi_linear_desc *before) {
    gemmepi_status status = gpi__check_activation("activation", before->activation);
    if (!status)
        status = gpi__check_flags_of(GPI__OF_LAYERS_ACTIVATION, before->activation, GEMMEPI_ACTIVATION_MASK);
    if (!status)
        status =
            gpi__check_parameter(before->activation, before->has_parameter, before->activation_parameter);
    if (!status)
        status = gpi__check_flags_of(GPI__OF_LAYER, before->flags, 0);
    if (!status)
        status = gpi__check_beside_layers_formula(before);
    if (status)
        return gpi__in_words_of_before(status);
    GPI__UNSUPPORTED_IF(
        before->formula && layer->formula,
        "desc.before->formula and desc.formula are both given, but a backward has one formula: leave "
        "before NULL, and give that layer's backward dA as its dy");
    GPI__INVALID_IF(before->flags & GEMMEPI_LINEAR_RESIDUAL,
                    "desc.before->flags has LINEAR_RESIDUAL, whose gradient is that layer's dY, which is not "
                    "stored then: leave before NULL, and give that layer's backward dA as its dy");
    GPI__INVALID_IF(
        !before->formula && !gpi__is_affine(before->activation) && !(before->flags & GEMMEPI_LINEAR_SAVED),
        "desc.before->flags has no LINEAR_SAVED, but the derivative of its activation reads the P "
        "that its forward saves: set it there, too");
    return GEMMEPI_OK;
}

/* layer: folded, whose before becomes `folded`, with its defaults filled in. */
static gemmepi_status gpi__convert_before(const gemmepi_linear_desc *desc, gemmepi_linear_desc *layer,
                                          gemmepi_linear_desc *folded, gpi__layer_task *task) {
    gemmepi_status status = gpi__check_before(desc, desc->before);
    GPI__INVALID_IF(!status && desc->before->order != desc->order,
                    "desc.before->order is %d, but desc.order is %s (%d): give both the same",
                    (int)desc->before->order,
                    desc->order == GEMMEPI_COLUMN_MAJOR ? "COLUMN_MAJOR" : "ROW_MAJOR", (int)desc->order);
    *folded = gpi__fold_layer(desc->before);
    if (!status)
        status = gpi__check_chain(layer, folded, task->exchanged);
    if (!folded->preact.dtype && !gpi__aux_is_mask(folded->activation | GEMMEPI_AUX))
        folded->preact.dtype = folded->y.dtype;
    layer->before = folded;
    task->has_before = 1;
    task->before = folded->activation;
    task->before_parameter =
        folded->has_parameter ? folded->activation_parameter : gpi__default_parameter(folded->activation);
    return status;
}

#endif
