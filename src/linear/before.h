/* The layer before, through whose activation dA goes: what it says, and that both fit. */
#ifndef GEMMEPI_LINEAR_BEFORE_H
#define GEMMEPI_LINEAR_BEFORE_H

#include "tensors.h"

/* What both layers of a chain agree in. */
static gemmepi_status gpi__check_chain(const gemmepi_linear_desc *desc, const gemmepi_linear_desc *before) {
    const gemmepi_linear_desc layer = gpi__fold_layer(desc), of = gpi__fold_layer(before);
    int exchanged = desc->order == GEMMEPI_COLUMN_MAJOR;
    int64_t columns = gpi__result_columns(of.activation, of.n);
    int64_t batch = layer.a.batch_stride == 0 && layer.da.batch_stride == 0 ? 1 : layer.batch;
    const char *a = exchanged ? "b" : "a", *m = exchanged ? "n" : "m", *n = exchanged ? "m" : "n";
    GPI__INVALID_IF(before->order != desc->order,
                    "desc.before->order is %d, but desc.order is %d: give both the same", (int)before->order,
                    (int)desc->order);
    GPI__INVALID_IF(of.m != layer.m,
                    "desc.before->%s is %lld, but desc.%s is %lld: %s is the y of the layer before", m,
                    (long long)of.m, m, (long long)layer.m, a);
    GPI__INVALID_IF(
        columns != layer.k,
        "desc.before->%s is %lld, of which its y has %lld, but desc.k is %lld: %s is the y of the layer "
        "before",
        n, (long long)of.n, (long long)columns, (long long)layer.k, a);
    GPI__INVALID_IF(of.batch != batch, "desc.before->batch is %lld; d%s has %lld items", (long long)of.batch,
                    a, (long long)batch);
    GPI__INVALID_IF(
        layer.a.transposed,
        "desc.%s.transposed is %d with desc.before: %s is the y of the layer before, which is not "
        "transposed",
        a, layer.a.transposed, a);
    GPI__INVALID_IF(
        !(layer.flags & GEMMEPI_LINEAR_DA),
        "desc.before is given, but desc.flags has no LINEAR_D%s, which goes through it: set it, or leave "
        "before NULL",
        exchanged ? "B" : "A");
    GPI__INVALID_IF(
        layer.flags & GEMMEPI_ACCUMULATE_DA,
        "desc.flags has ACCUMULATE_D%s with desc.before: what d%s gets through an activation overwrites "
        "it; leave one of them out",
        exchanged ? "B" : "A", a);
    return GEMMEPI_OK;
}

/* What the layer before says, and that backward can go through it. */
static gemmepi_status gpi__check_before(const gemmepi_linear_desc *before) {
    gemmepi_status status;
    GPI__UNSUPPORTED_IF(
        before->formula != NULL,
        "desc.before->formula is given, but dA goes only through an activation: leave before NULL, and give that "
        "layer's backward dA as its dy");
    status = gpi__check_layer_scalars(before);
    if (!status)
        status = gpi__check_layer_flags(before, 0);
    if (!status)
        status =
            gpi__check_parameter(before->activation, before->has_parameter, before->activation_parameter);
    if (status) {
        const gpi__renaming names[] = {{"desc.activation", "desc.before->activation"},
                                       {"desc.activation_parameter", "desc.before->activation_parameter"},
                                       {"desc.has_parameter", "desc.before->has_parameter"},
                                       {"desc.flags", "desc.before->flags"},
                                       {"desc.order", "desc.before->order"},
                                       {"desc.batch", "desc.before->batch"},
                                       {"desc.amax_history", "desc.before->amax_history"},
                                       {"desc.formula", "desc.before->formula"},
                                       {"desc.operands", "desc.before->operands"},
                                       {"desc.operand_count", "desc.before->operand_count"},
                                       {"desc.formula_value", "desc.before->formula_value"},
                                       {"desc.formula_result", "desc.before->formula_result"}};
        gpi__rename_error(names, GPI__COUNT(names));
        return status;
    }
    GPI__INVALID_IF(
        before->flags & GEMMEPI_LINEAR_RESIDUAL,
        "desc.before->flags has LINEAR_RESIDUAL, whose gradient is that layer's dY, which is not stored then: "
        "leave before NULL, and give that layer's backward dA as its dy");
    GPI__INVALID_IF(
        !gpi__is_affine(before->activation) && !(before->flags & GEMMEPI_LINEAR_SAVED),
        "desc.before->flags has no LINEAR_SAVED, but the derivative of its activation reads the P that its "
        "forward saves: set it, there and where its forward is called");
    return GEMMEPI_OK;
}

/* layer: in row-major order, whose before becomes `folded`, with its defaults filled in. */
static gemmepi_status gpi__convert_before(const gemmepi_linear_desc *desc, gemmepi_linear_desc *layer,
                                          gemmepi_linear_desc *folded, gpi__layer_task *task) {
    gemmepi_status status = gpi__check_before(desc->before);
    if (!status)
        status = gpi__check_chain(desc, desc->before);
    if (status)
        return status;
    *folded = gpi__fold_layer(desc->before);
    if (!folded->preact.dtype && !gpi__aux_is_mask(folded->activation | GEMMEPI_AUX))
        folded->preact.dtype = folded->y.dtype;
    layer->before = folded;
    task->has_before = 1;
    task->before = folded->activation;
    task->before_parameter =
        folded->has_parameter ? folded->activation_parameter : gpi__default_parameter(folded->activation);
    return GEMMEPI_OK;
}

#endif
