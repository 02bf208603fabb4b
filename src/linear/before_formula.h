/* The formula of the layer before as that of dA's product: its gradient, in which dY is the product's value. */
#ifndef GEMMEPI_LINEAR_BEFORE_FORMULA_H
#define GEMMEPI_LINEAR_BEFORE_FORMULA_H

#include "before.h"
#include "formula.h"

/* columns: of that layer's y; k: of the other's a. */
static gemmepi_status gpi__check_befores_formula(const gpi__draft *draft, int64_t columns, int64_t k) {
    int exchanged = draft->said.desc.exchanged;
    GPI__INVALID_IF(
        columns < 0,
        "desc.before->formula does not assign %s, so that layer has no y, which desc.%s is: leave before "
        "NULL",
        gpi__result_name(&draft->said.desc), exchanged ? "b" : "a");
    GPI__INVALID_IF(columns != k,
                    "desc.before->%s is %lld, of which its y has %lld, but desc.k is %lld: %s is that y",
                    exchanged ? "m" : "n", (long long)draft->task->n, (long long)columns, (long long)k,
                    exchanged ? "b" : "a");
    GPI__INVALID_IF(
        gpi__asks_for_gradients(draft->layer),
        "desc.before->operands has gradients d_NAME, which need that layer's dY, and it is not stored: leave "
        "before NULL, and give that layer's backward dA as its dy");
    return GEMMEPI_OK;
}

/* Where y has not P's n columns, columns are counted otherwise, and a gradient that is one number for all has no width. */
static int gpi__depends_on_width(const gpi__draft *draft) {
    const gpi__derivation *d = &draft->said;
    return gpi__width_of_output(d, GPI__RESULT) != d->graph.n_width &&
           (gpi__counts_columns(d) ||
            (gpi__wants_g(draft->task) && !d->graph.nodes[d->printer.outputs[0].node].width));
}

static gemmepi_status gpi__check_befores_widths(const gpi__draft *draft) {
    GPI__UNSUPPORTED_IF(
        gpi__depends_on_width(draft),
        "desc.before->formula counts columns, or has no gradient, where its y is not as wide as its P: "
        "leave before NULL, and give that layer's backward dA as its dy");
    return GEMMEPI_OK;
}

static gemmepi_status gpi__draft_before(gpi__draft *draft, const gemmepi_allocator *allocator, int64_t k) {
    uint32_t uses = 0;
    int64_t columns;
    gemmepi_status status = gpi__check_layers_operands(draft->layer);
    if (!status)
        status = gpi__read_formula(draft, allocator, &columns, &uses);
    if (!status)
        status = gpi__check_befores_formula(draft, columns, k);
    if (!status)
        status = gpi__draft_gradients(draft);
    if (!status)
        status = gpi__check_befores_widths(draft);
    return status ? status : gpi__check_scales_beside(draft);
}

/* The problem of the product of dA or dB of the folded layer, of which gpi__add_da and gpi__add_db have D and the formula. */
static gemmepi_status gpi__convert_through_draft(const gpi__layers_wish *wish,
                                                 const gemmepi_linear_desc *layer, const gpi__draft *draft,
                                                 gpi__problem *problem) {
    int exchanged = draft->task->exchanged, is_db = draft->through == GPI__L_DB;
    int64_t rows = is_db ? layer->k : layer->m, columns = is_db ? layer->n : layer->k;
    gemmepi_matmul_desc desc = gpi__product_of_gradient(layer, draft->through, draft->task->batch);
    gemmepi_status status;
    desc.m = exchanged ? columns : rows;
    desc.n = exchanged ? rows : columns;
    desc.k = is_db ? layer->m : layer->n;
    desc.order = draft->layer->order;
    desc.formula = draft->layer->formula;
    desc.operands = draft->said.operands;
    desc.operand_count = draft->said.desc.operand_count;
    status = gpi__normalise_in(&wish->context->allocator, &desc, &draft->said.gradient, NULL, wish->alignment,
                               problem);
    if (status)
        return gpi__in_layers_words(status, exchanged, "desc.a", "desc.b", is_db ? "desc.db" : "desc.da",
                                    "desc.aux");
    problem->formula->placed.depth = draft->task->k; /* of the product that the text is of */
    gpi__share_formulas(wish->context, problem);
    return GEMMEPI_OK;
}

/* P that the gradient does not read, but its scale may be given. */
static void gpi__forget_unread_before(gpi__layer_task *task) {
    int32_t scale = task->views[GPI__L_BEFORE].scale;
    if (task->formulas[GPI__OF_DA].beside[0] >= 0)
        return;
    memset(&task->views[GPI__L_BEFORE], 0, sizeof task->views[GPI__L_BEFORE]);
    task->views[GPI__L_BEFORE].scale = scale;
    memset(&task->views[GPI__L_SCALE_BEFORE], 0, sizeof task->views[GPI__L_SCALE_BEFORE]);
}

/* The layer before in the caller's order, with what its gradient here depends on. */
static gemmepi_linear_desc gpi__before_in_callers_order(const gemmepi_linear_desc *before,
                                                        const gpi__layer_task *task) {
    gemmepi_linear_desc callers = gpi__fold_layer(before);
    if (task->exchanged)
        gpi__exchange_layer(&callers);
    callers.order = before->order;
    callers.flags &= GEMMEPI_LINEAR_SAVED;
    return callers;
}

static gemmepi_status gpi__convert_befores_formula(const gpi__layers_wish *wish, gpi__layer_task *task,
                                                   gpi__problem *problem) {
    const gemmepi_allocator *allocator = &wish->context->allocator;
    const gemmepi_linear_desc *layer = wish->folded;
    gemmepi_linear_desc callers = gpi__before_in_callers_order(wish->desc->before, task);
    gpi__layer_task of_before;
    gpi__draft *draft;
    gemmepi_status status = GEMMEPI_OK;
    if (callers.flags)
        status = gpi__convert_read(layer, GPI__L_BEFORE, layer->before->n, wish->alignment, task);
    if (status)
        return status;
    of_before = *task;
    of_before.n = layer->before->n;
    of_before.k = layer->before->k;
    of_before.batch = layer->before->batch;
    of_before.g_dtype = (int32_t)layer->da.dtype;
    draft = gpi__new_draft(allocator, &callers, &of_before);
    if (!draft)
        return GEMMEPI_OUT_OF_MEMORY;
    draft->through = GPI__L_DA;
    status = gpi__draft_before(draft, allocator, layer->k);
    if (!status)
        status = gpi__convert_through_draft(wish, layer, draft, problem);
    memcpy(task->formulas[GPI__OF_DA].beside, draft->beside, sizeof draft->beside);
    gpi__forget_unread_before(task);
    gpi__delete(allocator, draft);
    task->views[GPI__L_DA] = problem->views[GPI__D];
    task->operand_count = wish->desc->before->operand_count;
    return gpi__in_words_of_before(status);
}

#endif
