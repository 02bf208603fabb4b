/* desc to task, with the problem of the step that has the layer's formula. */
#ifndef GEMMEPI_LINEAR_TAKE_H
#define GEMMEPI_LINEAR_TAKE_H

#include "matrices.h"
#ifndef GEMMEPI_NO_FORMULA
#include "formula.h"
#endif

#ifndef GEMMEPI_NO_FORMULA
/* >>with a formula */

/* The problem of a draft, whose D is this: to be given to gpi__drop_formula. what: D, in the caller's words. */
static gemmepi_status gpi__convert_draft(gemmepi_context *context, const gpi__draft *draft,
                                         const gemmepi_matrix *d, const char *what, size_t alignment,
                                         gpi__problem *problem) {
    gemmepi_matmul_desc desc = gpi__product_of_layer(draft->layer);
    gemmepi_status status;
    if (d == &draft->layer->y)
        gpi__find_scale_of_y(draft->layer, &desc);
    desc.order = draft->layer->order;
    desc.epilogue = 0; /* a bias is an operand */
    memset(&desc.bias, 0, sizeof desc.bias);
    desc.d = *d;
    desc.formula = draft->room;
    desc.operands = draft->operands;
    desc.operand_count = draft->count;
    desc.formula_value = draft->product;
    desc.formula_result = draft->assigned;
    status = gpi__convert_problem(context, &desc, alignment, problem);
    return gpi__in_layers_words(status, 0, "desc.a", "desc.b", what, "desc.aux");
}

/* In place of this thread's sentence, where the text that is wrong has a gradient. */
static void gpi__say_that_gradients_are_made(const gemmepi_linear_desc *layer) {
    int i;
    for (i = 0; i < layer->operand_count; i++)
        if (layer->operands[i].output && gpi__text_has_name(layer->formula, layer->operands[i].name))
            (void)gpi__fail(
                GEMMEPI_OK,
                "desc.formula has %s, an operand that backward makes by itself: leave it out of the text",
                layer->operands[i].name);
}

/* The formula as the caller has it alone, for places in its text. Backward does not look at Y, which is dense here, and as wide as any is. */
static gemmepi_status gpi__convert_bare_formula(gemmepi_context *context, const gemmepi_linear_desc *layer,
                                                const gpi__layer_task *task, size_t alignment,
                                                int64_t *columns) {
    gpi__draft *draft = gpi__new_draft(&context->allocator, layer, task);
    gemmepi_matrix y = gpi__dense_matrix(layer->y.dtype, task->m, 2 * task->n);
    gpi__problem problem;
    gemmepi_status status;
    if (!draft)
        return GEMMEPI_OUT_OF_MEMORY;
    y.ld = 0;
    gpi__draft_bare(draft);
    status = gpi__convert_draft(context, draft, &y, "desc.y", alignment, &problem);
    if (!status) {
        *columns = gpi__d_columns(problem.formula, problem.n);
        gpi__drop_formula(context, &problem);
    }
    gpi__delete(&context->allocator, draft);
    if (status == GEMMEPI_INVALID_ARGUMENT)
        gpi__say_that_gradients_are_made(layer);
    return status;
}

/* "line 3, " in a sentence about a draft as the caller counts: lines that the layer adds, in which nothing is wrong, are ahead of its text. */
static void gpi__count_callers_lines(const gpi__draft *draft, char *sentence) {
    size_t own = strlen(draft->room) - strlen(draft->layer->formula), i;
    char *at = strstr(sentence, "desc.formula, line "), head[24] = "";
    int line, length = 0, lines = 0;
    for (i = 0; i < own; i++)
        lines += draft->room[i] == '\n';
    at = at ? at + strlen("desc.formula, ") : NULL;
    if (!at || sscanf(at, "line %d, %n", &line, &length) != 1)
        return;
    if (line - lines > 1)
        snprintf(head, sizeof head, "line %d, ", line - lines);
    memmove(at + strlen(head), at + length, strlen(at + length) + 1);
    memcpy(at, head, strlen(head));
}

static gemmepi_status gpi__convert_forward_formula(gemmepi_context *context, const gemmepi_linear_desc *layer,
                                                   size_t alignment, gpi__layer_task *task,
                                                   gpi__problem *problem) {
    gpi__draft *draft = gpi__new_draft(&context->allocator, layer, task);
    char sentence[GPI__ERROR_TEXT_SIZE];
    gemmepi_status status;
    int64_t columns;
    if (!draft)
        return GEMMEPI_OUT_OF_MEMORY;
    gpi__draft_forward(draft);
    status = gpi__convert_draft(context, draft, &layer->y, "desc.y", alignment, problem);
    memcpy(task->beside, draft->beside, sizeof task->beside);
    memcpy(sentence, gpi__error_text, sizeof sentence);
    if (status)
        gpi__count_callers_lines(draft, sentence);
    gpi__delete(&context->allocator, draft);
    if (!status) {
        gpi__convert_y_view(task, problem);
        return GEMMEPI_OK;
    }
    if (!gpi__convert_bare_formula(context, layer, task, alignment, &columns))
        return gpi__fail(status, "%s", sentence); /* the text by itself is right */
    return status;
}

/* rounded(x) is what D stands for, which backward is G. */
static gemmepi_status gpi__check_layers_rounded(const gemmepi_linear_desc *layer, const gpi__layer_task *task,
                                                const gpi__formula *formula) {
    char place[GPI__PLACE_TEXT];
    if (!formula->rounds || (int32_t)layer->y.dtype == task->g_dtype)
        return GEMMEPI_OK;
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                     "%s: desc.g_dtype is %s, and the gradient has rounded, which is as y stores it, in %s%s",
                     gpi__name_place(layer->formula, gpi__place_of_name(layer->formula, "rounded"), place),
                     gpi__dtype((gemmepi_dtype)task->g_dtype)->name, gpi__dtype(layer->y.dtype)->name,
                     gpi__is_scaled_dtype((int)layer->y.dtype)
                         ? ", which G cannot be: round in another product"
                         : ": then G is in that, too");
}

/* P and dY, once they are read as operands, have one scale. */
static gemmepi_status gpi__check_scales_beside(const gpi__layer_task *task) {
    static const int8_t both[] = {GPI__L_PREACT, GPI__L_DY};
    size_t i;
    for (i = 0; i < sizeof both; i++) {
        int64_t stride = task->views[GPI__L_SCALE_OF(both[i])].batch_stride;
        if (stride)
            return gpi__fail(
                GEMMEPI_INVALID_ARGUMENT,
                "desc.%s.scale.batch_stride is %lld beside desc.formula, with which it has one scale "
                "for the whole batch: leave it 0",
                gpi__layer_names[both[i]], (long long)stride);
    }
    return GEMMEPI_OK;
}

static gemmepi_status gpi__convert_backward_formula(gemmepi_context *context,
                                                    const gemmepi_linear_desc *layer, size_t alignment,
                                                    gpi__layer_task *task, gpi__problem *problem) {
    gpi__draft *draft = gpi__new_draft(&context->allocator, layer, task);
    gemmepi_matrix g = gpi__g_matrix(task);
    gemmepi_status status = GEMMEPI_OK;
    int i;
    if (!draft)
        return GEMMEPI_OUT_OF_MEMORY;
    if (!gpi__wants_g(task)) /* it is not stored */
        g.ld = g.batch_stride = 0;
    for (i = 0; i < layer->operand_count && !status; i++)
        if (layer->operands[i].output)
            status = gpi__check_layers_gradient(layer, i);
    if (!status)
        status = gpi__draft_backward(draft, &context->allocator);
    if (!status)
        status = gpi__convert_draft(context, draft, &g, "desc.g", alignment, problem);
    memcpy(task->beside, draft->beside, sizeof task->beside);
    gpi__delete(&context->allocator, draft);
    if (status)
        return status;
    status = gpi__check_layers_rounded(layer, task, problem->formula->placed.formula);
    if (status)
        gpi__drop_formula(context, problem);
    return status;
}
#endif

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
    task->shares_dbias = layer->batch != 1 && layer->dbias.batch_stride == 0;
    task->epilogue = layer->activation;
    task->compute = (int32_t)layer->compute;
    task->flags = backward ? layer->flags & ~GPI__LAYERS_FOUND_FLAGS
                           : layer->flags & (GPI__LAYERS_PRODUCT_FLAGS | GPI__LAYERS_FOUND_FLAGS |
                                             GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED);
}

/* What a formula says before gradients are looked at: forward all, backward how wide dY is. */
static gemmepi_status gpi__convert_layers_formula(gemmepi_context *context, const gemmepi_linear_desc *layer,
                                                  size_t alignment, gpi__layer_task *task,
                                                  gpi__problem *problem, int64_t *columns) {
#ifndef GEMMEPI_NO_FORMULA
    gemmepi_status status = gpi__check_layers_operands(layer);
    if (!status)
        status = gpi__check_scales_beside(task);
    if (status)
        return status;
    return gpi__is_backward(task) ? gpi__convert_bare_formula(context, layer, task, alignment, columns)
                                  : gpi__convert_forward_formula(context, layer, alignment, task, problem);
#else
    (void)context, (void)layer, (void)alignment, (void)task, (void)problem, (void)columns;
    return GEMMEPI_OK;
#endif
}

/* desc -> task, or the sentence that says what is wrong with it. problem: of the direction's step with a formula, if the layer has
   one, to be given to gpi__drop_formula. */
static gemmepi_status gpi__convert_layer(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                         int backward, size_t alignment, gpi__layer_task *task,
                                         gpi__problem *problem) {
    gemmepi_linear_desc layer, callers;
    gemmepi_status status;
    int64_t columns = 0;
    memset(task, 0, sizeof *task);
    memset(problem, 0, sizeof *problem);
    if (!desc)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc is NULL");
    status = gpi__check_layer_scalars(desc);
    if (!status)
        status = gpi__check_layer_flags(desc, backward);
    if (status)
        return status;
    callers = layer = gpi__fold_layer(desc);
    gpi__start_layer_task(&layer, backward, desc->order == GEMMEPI_COLUMN_MAJOR, task);
    status = gpi__convert_forward(&layer, backward, alignment, task);
    if (!status)
        status = gpi__check_batch_form(&layer, task, backward);
    if (task->exchanged)
        gpi__exchange_layer(&callers);
    callers.order = desc->order;
    if (!status && layer.formula)
        status = gpi__convert_layers_formula(context, &callers, alignment, task, problem, &columns);
    if (!status && backward)
        status = gpi__convert_gradients(&layer, columns, alignment, task);
#ifndef GEMMEPI_NO_FORMULA
    if (!status && layer.formula && backward)
        status = gpi__convert_backward_formula(context, &callers, alignment, task, problem);
#endif
    task->operand_count = layer.formula ? layer.operand_count : 0;
    task->formula = problem->formula;
    if (!status)
        gpi__use_tensors(task, backward);
    return status;
}

#endif
