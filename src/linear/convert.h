/* desc to task, with the problem of the step that has the layer's formula. */
#ifndef GEMMEPI_LINEAR_CONVERT_H
#define GEMMEPI_LINEAR_CONVERT_H

#include "before.h"
#include "operand_formula.h"

enum { GPI__DEFAULT_WORKSPACE_LIMIT = 256 << 20 };

/* A backward whose G is there for a block of rows alone, and how much workspace it may have. */
static gemmepi_status gpi__convert_workspace_limit(const gemmepi_linear_desc *layer, gpi__layer_task *task) {
    size_t limit = layer->workspace_limit ? layer->workspace_limit : (size_t)GPI__DEFAULT_WORKSPACE_LIMIT;
    GPI__INVALID_IF(
        layer->workspace_limit && !task->lacks_y,
        "desc.workspace_limit is %llu; it goes with a formula that does not assign the result: leave it 0%s",
        (gpi__ull)layer->workspace_limit, GPI__UNINITIALISED);
    GPI__INVALID_IF(layer->flags & GEMMEPI_LINEAR_FORWARD && !task->lacks_y,
                    "desc.flags has LINEAR_FORWARD; it goes with a formula that does not assign the result");
    if (gpi__is_backward(task) && task->lacks_y && layer->flags & GPI__LINEAR_OUTPUTS)
        task->workspace_limit = limit < INT64_MAX ? (int64_t)limit : INT64_MAX;
    return GEMMEPI_OK;
}

/* >>with a formula */

/* The problem of what a draft is. */
static gemmepi_status gpi__convert_draft(gemmepi_context *context, const gpi__draft *draft, size_t alignment,
                                         gpi__problem *problem) {
    const gemmepi_linear_desc *layer = draft->layer;
    gemmepi_matmul_desc desc = gpi__product_of_layer(layer);
    gemmepi_status status = gpi__check_scales_beside(draft);
    int backward = gpi__is_backward(draft->task);
    if (status)
        return status;
    desc.order = layer->order;
    desc.epilogue = 0; /* a bias is an operand */
    memset(&desc.bias, 0, sizeof desc.bias);
    desc.d = backward ? gpi__g_matrix(draft->task) : layer->y;
    if (!backward)
        gpi__find_scale_of_y(layer, &desc);
    else if (!gpi__wants_g(draft->task)) /* it is not stored */
        desc.d.ld = desc.d.batch_stride = 0;
    desc.formula = layer->formula;
    desc.operands = draft->said.operands;
    desc.operand_count = draft->said.desc.operand_count;
    status =
        gpi__normalise_in(&context->allocator, &desc, backward ? &draft->said.gradient : &draft->said.graph,
                          NULL, alignment, problem);
    if (status)
        return gpi__in_layers_words(status, 0, "desc.a", "desc.b", backward ? "desc.g" : "desc.y",
                                    "desc.aux");
    gpi__share_formulas(context, problem);
    return GEMMEPI_OK;
}

/* The layer's own. */
static gemmepi_status gpi__convert_layers_formula(const gpi__layers_wish *wish, gpi__layer_task *task,
                                                  gpi__problem *problem) {
    const gemmepi_allocator *allocator = &wish->context->allocator;
    gpi__draft *draft = gpi__new_draft(allocator, wish->callers, task);
    gemmepi_status status;
    if (!draft)
        return GEMMEPI_OUT_OF_MEMORY;
    status = gpi__is_backward(task)
                 ? gpi__draft_backward(draft, allocator, wish->folded, wish->alignment, task)
                 : gpi__draft_forward(draft);
    task->lacks_y = draft->said.graph.assigned[GPI__RESULT].node < 0;
    if (!status)
        status = gpi__convert_workspace_limit(wish->folded, task);
    if (!status)
        status = gpi__convert_draft(wish->context, draft, wish->alignment, problem);
    if (!status && gpi__is_backward(task))
        status = gpi__convert_added(draft, problem, task);
    else if (!status)
        gpi__convert_y_view(task, problem);
    memcpy(task->formulas[GPI__OF_FIRST].beside, draft->beside, sizeof draft->beside);
    gpi__delete(allocator, draft);
    return status;
}

/* >>all */

static void gpi__start_layer_task(const gemmepi_linear_desc *layer, int backward, int exchanged,
                                  gpi__layer_task *task) {
    task->tag = backward ? -3 : -2;
    task->exchanged = exchanged;
    task->m = layer->m;
    task->n = layer->n;
    task->k = layer->k;
    task->batch = layer->batch;
    task->shares_b = layer->batch != 1 && layer->b.batch_stride == 0;
    task->shares_a = backward && layer->batch != 1 && layer->flags & GEMMEPI_LINEAR_DA &&
                     layer->a.batch_stride == 0 && layer->da.batch_stride == 0;
    task->epilogue = layer->activation;
    task->compute = (int32_t)layer->compute;
    task->flags = backward
                      ? layer->flags & ~GPI__LAYERS_FOUND_FLAGS
                      : layer->flags & (GPI__LAYERS_PRODUCT_FLAGS | GPI__LAYERS_FOUND_FLAGS |
                                        GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_RESIDUAL);
}

/* With LINEAR_FORWARD: the layer whose P is saved, in workspace. Its fields have not been checked. */
static gemmepi_status gpi__layer_with_forward(const gemmepi_linear_desc *desc, gemmepi_linear_desc *layer) {
    int64_t n = desc->order == GEMMEPI_COLUMN_MAJOR ? desc->m : desc->n;
    gemmepi_operand_kind row = desc->order == GEMMEPI_COLUMN_MAJOR ? GEMMEPI_PER_COLUMN : GEMMEPI_PER_ROW;
    int i;
    GPI__INVALID_IF(!desc->formula,
                    "desc.flags has LINEAR_FORWARD; it goes with a formula that does not assign the result");
    GPI__INVALID_IF(
        desc->flags & (GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_RECOMPUTE),
        "desc.flags has LINEAR_FORWARD and LINEAR_%s; P is in workspace then: leave out one of them",
        desc->flags & GEMMEPI_LINEAR_SAVED ? "SAVED" : "RECOMPUTE");
    GPI__UNSUPPORTED_IF(desc->batch > 1,
                        "desc.flags has LINEAR_FORWARD, but desc.batch is %lld: rows of all items follow one "
                        "another as one matrix, with batch 1",
                        (long long)desc->batch);
    for (i = 0; i < desc->operand_count; i++)
        GPI__UNSUPPORTED_IF(
            gpi__layers_role(&desc->operands[i]) == GPI__IS_OUTPUT && desc->operands[i].kind != row &&
                desc->operands[i].kind != GEMMEPI_FULL,
            "desc.flags has LINEAR_FORWARD, but desc.operands[%d].kind (of %s) is %s (%d); accepted for its "
            "outputs are %s and FULL: run forward by itself",
            i, desc->operands[i].name ? desc->operands[i].name : "NULL",
            gpi__kind_name(desc->operands[i].kind), (int)desc->operands[i].kind, gpi__kind_names[row]);
    GPI__INVALID_IF(
        desc->preact.scale.mode != GEMMEPI_SCALE_NONE,
        "desc.flags has LINEAR_FORWARD, but desc.preact.scale.mode is %s (%d); P in workspace has no scale",
        gpi__scale_mode_name(desc->preact.scale.mode), (int)desc->preact.scale.mode);
    *layer = *desc;
    layer->flags |= GEMMEPI_LINEAR_SAVED;
    layer->preact.ld = n > 0 && n < GPI__MAX_ELEMENTS ? gpi__padded(n) : 0;
    return GEMMEPI_OK;
}

/* With LINEAR_FORWARD: P is no pointer of args, and outputs are. */
static void gpi__use_outputs(const gemmepi_linear_desc *desc, gpi__layer_task *task) {
    int i;
    task->used &= ~(1u << GPI__L_PREACT);
    gpi__use_layer(task, GPI__L_A);
    gpi__use_layer(task, GPI__L_B);
    if (desc->flags & GEMMEPI_LINEAR_BIAS)
        gpi__use_layer(task, GPI__L_BIAS);
    for (i = 0; i < desc->operand_count; i++)
        if (task->formula_uses >> i & 1 && gpi__layers_role(&desc->operands[i]) == GPI__IS_OUTPUT)
            task->outputs |= 1u << i;
    task->ahead_uses = task->formula_uses;
}

/* What desc says by itself. Backward's that is given G, or runs forward, is another, in changed. */
static gemmepi_status gpi__check_layer_desc(const gemmepi_linear_desc **desc, int backward,
                                            gemmepi_linear_desc changed[2]) {
    gemmepi_status status = gpi__check_layer_scalars(*desc);
    if (!status)
        status = gpi__check_layer_flags(*desc, 0);
    if (!status && backward && (*desc)->flags & GEMMEPI_LINEAR_DY_IS_G) {
        status = gpi__layer_of_g(*desc, &changed[0]);
        *desc = &changed[0];
    }
    if (!status && backward && (*desc)->flags & GEMMEPI_LINEAR_FORWARD) {
        status = gpi__layer_with_forward(*desc, &changed[1]);
        *desc = &changed[1];
    }
    return status || !backward ? status : gpi__check_layer_flags(*desc, 1);
}

/* The problems of the steps with a formula. */
static gemmepi_status gpi__convert_step_formulas(const gpi__layers_wish *wish, gpi__layer_task *task,
                                                 gpi__layer_problems *problems) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    if (wish->folded->formula)
        status = gpi__convert_layers_formula(wish, task, &problems->of[GPI__OF_FIRST]);
    if (!status && wish->folded->before && wish->folded->before->formula)
        status = gpi__convert_befores_formula(wish, task, &problems->of[GPI__OF_DA]);
    if (!status)
        status = gpi__convert_gradients_of_texts(wish, task, problems);
    for (i = 0; i < GPI__LAYER_FORMULAS; i++)
        task->formulas[i].formula = problems->of[i].formula;
    return status;
}

/* desc -> task, or the sentence that says what is wrong with it. problems: of the direction's steps with a formula, and forward's. */
static gemmepi_status gpi__convert_layer(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                         int backward, size_t alignment, gpi__layer_task *task,
                                         gpi__layer_problems *problems) {
    gemmepi_linear_desc layer, callers, changed[2], before;
    gpi__layers_made made;
    gpi__layers_wish wish = {context, NULL, &callers, &layer, &made, alignment};
    gemmepi_status status;
    memset(task, 0, sizeof *task);
    memset(problems, 0, sizeof *problems);
    GPI__INVALID_IF(!desc, "desc is NULL");
    status = gpi__check_layer_desc(&desc, backward, changed);
    if (status)
        return status;
    wish.desc = desc;
    layer = gpi__fold_layer(desc);
    if (GPI__FORMULA(desc) || gpi__layer_makes_operands(desc))
        status = gpi__check_layers_operands(desc);
    if (!status)
        status = gpi__make_layers_operands(context, desc, alignment, &layer, &made);
    if (status)
        return status;
    callers = layer;
    gpi__start_layer_task(&layer, backward, desc->order == GEMMEPI_COLUMN_MAJOR, task);
    status = backward && desc->before ? gpi__convert_before(desc, &layer, &before, task) : GEMMEPI_OK;
    if (!backward)
        layer.before = NULL;
    else if (!status)
        status = gpi__start_through_texts(desc, &layer, &made, task);
    if (!status)
        status = gpi__convert_forward(&layer, backward, alignment, task, &problems->of[GPI__OF_FIRST]);
    if (!status)
        status = gpi__check_batch_form(&layer, task, backward);
    if (task->exchanged)
        gpi__exchange_layer(&callers);
    callers.order = desc->order;
    if (!status && !layer.formula)
        status = gpi__convert_workspace_limit(&layer, task);
    if (!status && backward && !layer.formula)
        status = gpi__convert_gradients(&layer, 0, alignment, task, &problems->of[GPI__OF_FIRST]);
    task->operand_count = GPI__FORMULA(&layer) || made.is_given ? layer.operand_count : 0;
    if (GPI__HAS_FORMULAS && !status)
        status = gpi__convert_step_formulas(&wish, task, problems);
    status = gpi__finish_layers_operands(&wish, status, task, problems);
    if (!status)
        gpi__use_tensors(task, backward);
    if (!status && backward && layer.flags & GEMMEPI_LINEAR_FORWARD)
        gpi__use_outputs(desc, task);
    return status;
}

#endif
