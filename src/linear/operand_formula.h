/* A and B of a layer that text makes. The layer is one of what they make, and at the end what is stored is put in its place: each step that
   multiplies one of both makes it again. dA goes through the gradient of A's text, as through that of a layer before. */
#ifndef GEMMEPI_LINEAR_OPERAND_FORMULA_H
#define GEMMEPI_LINEAR_OPERAND_FORMULA_H

#include "before_formula.h"

typedef struct gpi__layers_made {
    int is_given;                /* 0: nothing is made, and nothing else counts */
    gpi__problem problem;        /* whose made is the layer's, folded, with a reference for each formula */
    gpi__desc_of_made own;       /* in the caller's order */
    gemmepi_linear_desc through; /* what makes A of what is stored, as a layer before */
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
} gpi__layers_made;

/* Whether A's or B's text, folded, reads an operand. */
static int gpi__text_reads(const gpi__layers_made *made, int factor, int operand) {
    const gpi__kept_formula *kept = made->problem.made[factor].formula;
    return kept && kept->placed.formula->operands[operand].used;
}

/* The caller's name of A or B, folded. */
static const char *gpi__factor_name(const gemmepi_linear_desc *desc, int factor) {
    return gpi__operand_names[(desc->order == GEMMEPI_COLUMN_MAJOR) != (factor == GPI__B) ? GPI__B : GPI__A];
}

/* Names, and that texts of a and b read inputs alone. */
static gemmepi_status gpi__check_texts_operands(const gemmepi_linear_desc *desc,
                                                const gpi__layers_made *made) {
    gemmepi_status status = gpi__check_layers_operands(desc);
    int i, factor;
    for (i = 0; i < desc->operand_count && !status; i++)
        for (factor = GPI__A; factor <= GPI__B; factor++)
            if (gpi__text_reads(made, factor, i) && gpi__layers_role(&desc->operands[i]) != GPI__IS_INPUT)
                return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 "desc.%s.formula reads %s; names that begin with dy_ are those of gradients "
                                 "that come in: choose another name",
                                 gpi__factor_name(desc, factor), desc->operands[i].name);
    return status;
}

/* desc: the caller's; layer: the same, folded, of which a and b become what is multiplied. */
static gemmepi_status gpi__make_layers_operands(gemmepi_context *context, const gemmepi_linear_desc *desc,
                                                size_t alignment, gemmepi_linear_desc *layer,
                                                gpi__layers_made *made) {
    int exchanged = desc->order == GEMMEPI_COLUMN_MAJOR;
    gemmepi_matmul_desc product;
    gpi__problem *problem = &made->problem;
    gpi__made a;
    gemmepi_status status;
    made->is_given = gpi__layer_makes_operands(desc);
    if (!made->is_given)
        return GEMMEPI_OK;
    GPI__UNSUPPORTED_IF(!GPI__HAS_FORMULAS, GPI__NO_FORMULAS);
    product = gpi__product_of_layer(desc);
    product.order = desc->order;
    product.operands = desc->operands;
    product.operand_count = desc->operand_count;
    status = gpi__check_extents(&product);
    if (status)
        return status;
    memset(problem, 0, sizeof *problem);
    problem->batch = 1;
    problem->alignment = (int32_t)(desc->alignment ? desc->alignment : alignment);
    status = gpi__make_operands(&context->allocator, &product, problem, &made->own);
    if (!status)
        status = gpi__check_texts_operands(desc, made);
    if (status) {
        gpi__free_formulas(problem, &context->allocator);
        return status;
    }
    gpi__share_formulas(context, problem);
    a = problem->made[0];
    if (exchanged) {
        problem->made[0] = problem->made[1];
        problem->made[1] = a;
    }
    layer->a = exchanged ? made->own.desc.b : made->own.desc.a;
    layer->b = exchanged ? made->own.desc.a : made->own.desc.b;
    layer->operands = made->own.operands;
    return GEMMEPI_OK;
}

/* >>dA */

/* Which gradients of operands there are. */
static gemmepi_status gpi__check_texts_gradients(const gemmepi_linear_desc *desc,
                                                 const gpi__layers_made *made, uint64_t folded_flags) {
    const char *a = gpi__factor_name(desc, GPI__A), *b = gpi__factor_name(desc, GPI__B);
    int i;
    for (i = 0; i < desc->operand_count; i++) {
        const gemmepi_operand *operand = &desc->operands[i];
        int of = gpi__layers_role(operand) == GPI__IS_GRADIENT ? gpi__gradient_of(desc, i) : -1;
        if (of < 0)
            continue;
        GPI__UNSUPPORTED_IF(
            gpi__text_reads(made, GPI__B, of),
            "desc.operands[%d] is %s, but desc.%s.formula reads %s: only what desc.%s.formula "
            "alone reads has a gradient here",
            i, operand->name, b, desc->operands[of].name, a);
        GPI__INVALID_IF(
            gpi__text_reads(made, GPI__A, of) && !(folded_flags & GEMMEPI_LINEAR_DA),
            "desc.operands[%d] is %s, but desc.flags has no LINEAR_D%s, with which the gradients of "
            "what desc.%s.formula reads are made",
            i, operand->name, a[0] == 'a' ? "A" : "B", a);
        GPI__INVALID_IF(!gpi__text_reads(made, GPI__A, of) && !desc->formula,
                        "desc.operands[%d] is %s, but no formula of this backward reads %s", i, operand->name,
                        desc->operands[of].name);
    }
    return GEMMEPI_OK;
}

/* What a gradient through A's text is not for. layer: folded. */
static gemmepi_status gpi__check_through_text(const gemmepi_linear_desc *desc,
                                              const gemmepi_linear_desc *layer, gemmepi_dtype stored) {
    const char *a = gpi__factor_name(desc, GPI__A), *of = a[0] == 'a' ? "A" : "B";
    int i;
    GPI__INVALID_IF(
        gpi__is_packed((int)stored) || stored == GEMMEPI_I8,
        "desc.flags has LINEAR_D%s, but desc.%s.dtype is %s, a type without a gradient: leave the "
        "flag out",
        of, a, gpi__dtype(stored)->name);
    GPI__UNSUPPORTED_IF(
        desc->formula,
        "desc.flags has LINEAR_D%s, and desc.formula and desc.%s.formula are both given, but a "
        "backward has one formula's gradient: leave the flag out, and derive the text of %s "
        "with gemmepi_derive",
        of, a, a);
    GPI__INVALID_IF(layer->flags & GEMMEPI_ACCUMULATE_DA,
                    "desc.flags has ACCUMULATE_D%s with desc.%s.formula, but d%s is overwritten by what goes "
                    "through it: leave the flag out",
                    of, a, a);
    for (i = 0; i < desc->operand_count; i++) {
        int role = gpi__layers_role(&desc->operands[i]);
        GPI__UNSUPPORTED_IF(role == GPI__IS_OUTPUT || role == GPI__IS_UPSTREAM,
                            "desc.operands[%d] (of %s) is that of an output, which LINEAR_D%s through "
                            "desc.%s.formula does not go with",
                            i, desc->operands[i].name, of, a);
    }
    return GEMMEPI_OK;
}

/* The operands as A's text has them, whose widths count from what is stored. */
static void gpi__list_through_text(const gemmepi_linear_desc *desc, gpi__layers_made *made, int exchanged) {
    int i, other, width = made->problem.made[GPI__A].formula->placed.formula->operands[GPI__RESULT].width;
    for (i = 0; i < desc->operand_count; i++) {
        made->operands[i] = desc->operands[i];
        if (gpi__layers_role(&desc->operands[i]) == GPI__IS_INPUT && !gpi__text_reads(made, GPI__A, i))
            gpi__put_placeholder(&made->operands[i]);
        other = 0; /* those of a third width have been refused */
        gpi__count_from_value(&made->operands[i], exchanged, width, &other);
    }
}

/* Of backward: what is refused, and A's text as the formula of a layer before, if dA goes through it. layer: folded. */
static gemmepi_status gpi__start_through_text(const gemmepi_linear_desc *desc, gemmepi_linear_desc *layer,
                                              gpi__layers_made *made, gpi__layer_task *task) {
    int exchanged = task->exchanged;
    const gemmepi_matrix *stored = exchanged ? &desc->b : &desc->a;
    gemmepi_linear_desc *through = &made->through;
    gemmepi_status status =
        made->is_given ? gpi__check_texts_gradients(desc, made, layer->flags) : GEMMEPI_OK;
    if (!made->is_given)
        return GEMMEPI_OK;
    GPI__UNSUPPORTED_IF(!status && desc->before,
                        "desc.before is given, and desc.%s.formula: leave before NULL, and give that layer's "
                        "backward d%s as its dy",
                        desc->a.formula ? "a" : "b", exchanged ? "b" : "a");
    GPI__UNSUPPORTED_IF(
        !status && made->problem.made[GPI__B].formula && layer->flags & GEMMEPI_LINEAR_DB,
        "desc.flags has LINEAR_D%s, but desc.%s is made by a formula: only d%s goes through one. "
        "Leave the flag out",
        exchanged ? "A" : "B", exchanged ? "a" : "b", exchanged ? "b" : "a");
    if (status || !made->problem.made[GPI__A].formula || !(layer->flags & GEMMEPI_LINEAR_DA))
        return status;
    status = gpi__check_through_text(desc, layer, (gemmepi_dtype)made->own.stored[exchanged].dtype);
    memset(through, 0, sizeof *through);
    through->order = (gemmepi_order)(exchanged != (stored->transposed != 0));
    through->batch = 1;
    through->a.dtype = through->y.dtype = layer->a.dtype;
    through->formula = stored->formula;
    through->formula_value = gpi__factor_name(desc, GPI__A);
    through->operands = made->operands;
    through->operand_count = desc->operand_count;
    through->flags = GEMMEPI_LINEAR_SAVED;
    gpi__list_through_text(desc, made, through->order == GEMMEPI_COLUMN_MAJOR);
    layer->before = through;
    task->goes_through_a = 1;
    return status;
}

static gemmepi_status gpi__draft_through_text(gpi__draft *draft, const gemmepi_allocator *allocator) {
    uint32_t uses = 0;
    int64_t columns;
    gemmepi_status status;
    draft->is_before = draft->said.desc.is_of_operand = draft->said.desc.without_result = 1;
    status = gpi__read_formula(draft, allocator, &columns, &uses);
    if (!status)
        status = gpi__draft_gradients(draft);
    GPI__UNSUPPORTED_IF(
        !status && gpi__depends_on_width(draft),
        "desc.formula counts columns, or has no gradient, where what it makes is not as wide as "
        "what is stored: leave the flag of its gradient out");
    return status;
}

/* Puts a sentence about A's text in the words of this layer. */
static gemmepi_status gpi__in_words_of_text(gemmepi_status status, const gpi__layer_task *task) {
    gpi__renaming names[] = {{"desc.formula", "desc.a.formula"},
                             {"desc.before->formula", "desc.a.formula"},
                             {"desc.g", "desc.da"}};
    if (task->exchanged) {
        names[0].to = names[1].to = "desc.b.formula";
        names[2].to = "desc.db";
    }
    if (status)
        gpi__rename_error(names, GPI__COUNT(names));
    return status;
}

/* dA's product: its problem, with the gradient of A's text. */
static gemmepi_status gpi__convert_through_text(gemmepi_context *context, const gemmepi_linear_desc *layer,
                                                const gpi__layers_made *made, size_t alignment,
                                                gpi__layer_task *task, gpi__problem *problem) {
    const gpi__view *stored = &made->own.stored[task->exchanged];
    gpi__layer_task of_text;
    gpi__draft *draft;
    gemmepi_status status;
    task->views[GPI__L_BEFORE] = *stored;
    task->views[GPI__L_BEFORE].transposed = 0;
    task->views[GPI__L_SCALE_BEFORE] = made->own.scales[task->exchanged];
    of_text = *task;
    of_text.m = stored->lines;
    of_text.n = stored->length;
    of_text.batch = 1;
    of_text.g_dtype = (int32_t)layer->da.dtype;
    draft = gpi__new_draft(&context->allocator, &made->through, &of_text);
    if (!draft)
        return GEMMEPI_OUT_OF_MEMORY;
    status = gpi__draft_through_text(draft, &context->allocator);
    if (!status)
        status = gpi__convert_befores_draft(context, draft, layer, alignment, problem);
    memcpy(task->beside, draft->beside, sizeof task->beside);
    gpi__delete(&context->allocator, draft);
    gpi__forget_unread_before(task);
    task->views[GPI__L_DA] = problem->views[GPI__D];
    task->views[GPI__L_DA].transposed = layer->a.transposed;
    task->has_befores_formula = 1;
    return gpi__in_words_of_text(status, task);
}

/* >>the end */

/* Puts what is stored in the place of what is made of it. Where something was wrong the references are given back. */
static gemmepi_status gpi__finish_layers_operands(gemmepi_context *context, gemmepi_status status,
                                                  const gemmepi_linear_desc *desc, gpi__layers_made *made,
                                                  gpi__layer_task *task, gpi__problem *problem) {
    gemmepi_matmul_desc listed;
    int i;
    if (!made->is_given)
        return status;
    memset(&listed, 0, sizeof listed);
    listed.operands = desc->operands;
    listed.operand_count = desc->operand_count;
    for (i = GPI__A; i <= GPI__B && !status && !task->goes_through_a; i++)
        status = gpi__check_apart(&listed, problem->formula, made->problem.made[i].formula);
    if (status) {
        gpi__drop_formulas(context, &made->problem);
        gpi__drop_formulas(context, problem);
        memset(problem, 0, sizeof *problem);
        return status;
    }
    for (i = GPI__A; i <= GPI__B; i++) {
        problem->made[i] = made->problem.made[i];
        if (!problem->made[i].formula)
            continue;
        task->made[i].formula = problem->made[i].formula;
        task->made[i].view = task->views[i];
        task->made[i].view.alignment = 256;
        task->views[i] = made->own.stored[task->exchanged ? !i : i];
        task->views[GPI__L_SCALE_OF(i)] = made->own.scales[task->exchanged ? !i : i];
    }
    return GEMMEPI_OK;
}

#endif
