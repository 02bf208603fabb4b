/* What is added up behind the products of a backward, where no formula has the sum: gradients of blocks of several rows, and sums over the
   items of a batch that go through a text or belong to rows. A product leaves the terms in workspace. */
#ifndef GEMMEPI_LINEAR_ADDED_H
#define GEMMEPI_LINEAR_ADDED_H

#include "before_formula.h"

/* How d_NAME, the i-th operand, is stored, of which the problem of the draft has the terms. */
static gemmepi_status gpi__convert_added_operand(const gpi__draft *draft, const gpi__kept_formula *kept,
                                                 int i, gpi__added *added) {
    int of = gpi__gradient_of(draft->layer, i);
    gemmepi_operand gradient = gpi__operand_of_backward(&draft->said.graph, draft->layer, i);
    const gpi__placed_operand *blocks = &kept->placed.operands[of];
    gpi__view *to = &added->to;
    char name[32];
    gemmepi_status status;
    added->tensor = GPI__L_OPERANDS + i;
    added->accumulates = gradient.accumulate;
    added->rows = added->columns = 1;
    if (gradient.kind == GEMMEPI_BLOCKED && blocks->row_period)
        added->rows = blocks->row_period;
    if (draft->said.sums[of] == GPI__BY_ELEMENTS && blocks->column_period)
        added->columns = blocks->column_period;
    added->from = kept->views[i];
    *to = kept->views[of];
    to->dtype = gradient.dtype ? (int32_t)gradient.dtype : added->from.dtype;
    to->bits = gpi__bits_of(to->dtype);
    to->alignment = to->bits / 8;
    to->scale = 0;
    to->written = 1;
    to->ld = gradient.ld;
    to->batch_stride = gradient.batch_stride;
    snprintf(name, sizeof name, "operands[%d]", i);
    status = gpi__check_view(to, name, draft->layer->batch);
    if (!status && to->batch_stride)
        status = gpi__check_output(to, name, draft->layer->batch);
    return status ? gpi__fail(status, "%s (of %s)", gpi__error_text, gradient.name) : GEMMEPI_OK;
}

/* The operands of a draft whose problem there is. */
static gemmepi_status gpi__convert_added(const gpi__draft *draft, const gpi__problem *problem,
                                         gpi__layer_task *task) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < draft->layer->operand_count && !status; i++)
        if (gpi__is_added_up(draft, i))
            status =
                gpi__convert_added_operand(draft, problem->formula, i, &task->added[task->added_count++]);
    return status;
}

/* dA or dB, whose terms are those of each item. terms: the matrix that they are. */
static gemmepi_status gpi__convert_added_gradient(gpi__layer_task *task, int tensor, gemmepi_dtype dtype,
                                                  gemmepi_matrix *terms) {
    gpi__added *added = &task->added[task->added_count++];
    const gpi__view *to = &task->views[tensor];
    int64_t elements;
    *terms = gpi__dense_matrix(dtype, to->lines, gpi__padded(to->length));
    elements = gpi__offset(task->batch, terms->batch_stride, 0);
    GPI__INVALID_IF(
        to->lines && to->length && (terms->batch_stride == 0 || elements < 0),
        "desc.%s is added up over the items of desc.batch, which together have more than 2^56 elements",
        gpi__layer_name(task, tensor));
    added->tensor = tensor;
    added->accumulates =
        (task->flags & (tensor == GPI__L_DA ? GEMMEPI_ACCUMULATE_DA : GEMMEPI_ACCUMULATE_DB)) != 0;
    added->rows = added->columns = 1;
    added->to = added->from = *to;
    added->from.dtype = (int32_t)dtype;
    added->from.bits = gpi__bits_of((int)dtype);
    added->from.ld = terms->ld;
    added->from.batch_stride = terms->batch_stride;
    return GEMMEPI_OK;
}

#endif
