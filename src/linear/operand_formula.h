/* A and B of a layer that text makes. The layer is one of what they make, and at the end what is stored is put in its place: each step that
   multiplies one of both makes it again. dA or dB goes through the gradient of its text, as dA does through that of a layer before. */
#ifndef GEMMEPI_LINEAR_OPERAND_FORMULA_H
#define GEMMEPI_LINEAR_OPERAND_FORMULA_H

#include "before_formula.h"

typedef struct gpi__layers_made {
    int is_given;                /* 0: nothing is made, and nothing else counts */
    gpi__problem problem;        /* whose made is the layer's, folded, with a reference for each formula */
    gpi__desc_of_made own;       /* in the caller's order */
    int factor;                  /* A or B, through whose text its gradient goes */
    gemmepi_linear_desc through; /* and this text as that of a layer before */
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
    if (exchanged)
        gpi__exchange_made(problem);
    layer->a = exchanged ? made->own.desc.b : made->own.desc.a;
    layer->b = exchanged ? made->own.desc.a : made->own.desc.b;
    layer->operands = made->own.operands;
    return GEMMEPI_OK;
}

/* >>dA and dB */

/* Which gradients of operands there are. flags: folded. */
static gemmepi_status gpi__check_texts_gradients(const gemmepi_linear_desc *desc,
                                                 const gpi__layers_made *made, uint64_t flags) {
    int i;
    for (i = 0; i < desc->operand_count; i++) {
        const gemmepi_operand *operand = &desc->operands[i];
        int of = gpi__layers_role(operand) == GPI__IS_GRADIENT ? gpi__gradient_of(desc, i) : -1;
        int in_a = of >= 0 && gpi__text_reads(made, GPI__A, of),
            in_b = of >= 0 && gpi__text_reads(made, GPI__B, of);
        const char *factor = gpi__factor_name(desc, in_b ? GPI__B : GPI__A);
        GPI__UNSUPPORTED_IF(in_a && in_b,
                            "desc.operands[%d] is %s, but desc.a.formula and desc.b.formula both read %s", i,
                            operand->name, desc->operands[of].name);
        GPI__INVALID_IF(
            (in_a || in_b) && !(flags & (in_a ? GEMMEPI_LINEAR_DA : GEMMEPI_LINEAR_DB)),
            "desc.operands[%d] is %s, but desc.flags has no LINEAR_D%s, with which the gradients of "
            "what desc.%s.formula reads are made",
            i, operand->name, factor[0] == 'a' ? "A" : "B", factor);
        GPI__INVALID_IF(of >= 0 && !in_a && !in_b && !desc->formula,
                        "desc.operands[%d] is %s, but no formula of this backward reads %s", i, operand->name,
                        desc->operands[of].name);
    }
    return GEMMEPI_OK;
}

/* What a gradient through the text of A or B is not for. flags: folded. */
static gemmepi_status gpi__check_through_text(const gemmepi_linear_desc *desc, const gpi__layers_made *made,
                                              uint64_t flags) {
    const char *name = gpi__factor_name(desc, made->factor), *of = name[0] == 'a' ? "A" : "B";
    gemmepi_dtype stored = (gemmepi_dtype)made->own.stored[name[0] == 'b'].dtype;
    int i;
    GPI__INVALID_IF(
        gpi__is_packed((int)stored) || stored == GEMMEPI_I8,
        "desc.flags has LINEAR_D%s, but desc.%s.dtype is %s, a type without a gradient: leave the "
        "flag out",
        of, name, gpi__dtype(stored)->name);
    GPI__UNSUPPORTED_IF(
        desc->formula,
        "desc.flags has LINEAR_D%s, and desc.formula and desc.%s.formula are both given, but a "
        "backward has one formula's gradient: leave the flag out, and derive the text of %s "
        "with gemmepi_derive",
        of, name, name);
    GPI__INVALID_IF(flags & (made->factor == GPI__A ? GEMMEPI_ACCUMULATE_DA : GEMMEPI_ACCUMULATE_DB),
                    "desc.flags has ACCUMULATE_D%s with desc.%s.formula, but d%s is overwritten by what goes "
                    "through it: leave the flag out",
                    of, name, name);
    for (i = 0; i < desc->operand_count; i++) {
        int role = gpi__layers_role(&desc->operands[i]);
        GPI__UNSUPPORTED_IF(role == GPI__IS_OUTPUT || role == GPI__IS_UPSTREAM,
                            "desc.operands[%d] (of %s) is that of an output, which LINEAR_D%s through "
                            "desc.%s.formula does not go with",
                            i, desc->operands[i].name, of, name);
    }
    return GEMMEPI_OK;
}

/* The operands as the text has them, whose widths count from what is stored. */
static void gpi__list_through_text(const gemmepi_linear_desc *desc, gpi__layers_made *made, int exchanged) {
    int i, other,
        width = made->problem.made[made->factor].formula->placed.formula->operands[GPI__RESULT].width;
    for (i = 0; i < desc->operand_count; i++) {
        made->operands[i] = desc->operands[i];
        if (gpi__layers_role(&desc->operands[i]) == GPI__IS_INPUT && !gpi__text_reads(made, made->factor, i))
            gpi__put_placeholder(&made->operands[i]);
        other = 0; /* those of a third width have been refused */
        gpi__count_from_value(&made->operands[i], exchanged, width, &other);
    }
}

/* The text of A or B as the formula of a layer before. layer: folded. */
static void gpi__fill_through_text(const gemmepi_linear_desc *desc, gemmepi_linear_desc *layer,
                                   gpi__layers_made *made) {
    const char *name = gpi__factor_name(desc, made->factor);
    const gemmepi_matrix *stored = name[0] == 'a' ? &desc->a : &desc->b;
    gemmepi_linear_desc *through = &made->through;
    memset(through, 0, sizeof *through);
    through->order = (gemmepi_order)((desc->order == GEMMEPI_COLUMN_MAJOR) != (stored->transposed != 0));
    through->batch = 1;
    through->a.dtype = through->y.dtype = (made->factor == GPI__A ? &layer->a : &layer->b)->dtype;
    through->formula = stored->formula;
    through->formula_value = name;
    through->operands = made->operands;
    through->operand_count = desc->operand_count;
    through->flags = GEMMEPI_LINEAR_SAVED;
    gpi__list_through_text(desc, made, through->order == GEMMEPI_COLUMN_MAJOR);
    layer->before = through;
}

/* Of backward: what is refused, and which text dA or dB goes through. layer: folded. */
static gemmepi_status gpi__start_through_text(const gemmepi_linear_desc *desc, gemmepi_linear_desc *layer,
                                              gpi__layers_made *made, gpi__layer_task *task) {
    const gpi__made *texts = made->problem.made;
    int of_a, of_b;
    gemmepi_status status;
    if (!made->is_given)
        return GEMMEPI_OK;
    of_a = texts[GPI__A].formula && layer->flags & GEMMEPI_LINEAR_DA;
    of_b = texts[GPI__B].formula && layer->flags & GEMMEPI_LINEAR_DB;
    GPI__UNSUPPORTED_IF(desc->before,
                        "desc.before is given, and desc.%s.formula: leave before NULL, and give that layer's "
                        "backward d%s as its dy",
                        desc->a.formula ? "a" : "b", task->exchanged ? "b" : "a");
    GPI__UNSUPPORTED_IF(
        of_a && of_b,
        "desc.flags has LINEAR_DA and LINEAR_DB, and desc.a.formula and desc.b.formula are both "
        "given, but a backward has one formula's gradient: leave one of the flags out");
    status = gpi__check_texts_gradients(desc, made, layer->flags);
    if (status || (!of_a && !of_b))
        return status;
    made->factor = of_a ? GPI__A : GPI__B;
    status = gpi__check_through_text(desc, made, layer->flags);
    if (status)
        return status;
    gpi__fill_through_text(desc, layer, made);
    task->goes_through = 1 + made->factor;
    return GEMMEPI_OK;
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

/* Puts a sentence about a text in the words of this layer. */
static gemmepi_status gpi__in_words_of_text(gemmepi_status status, const char *factor) {
    gpi__renaming names[] = {{"desc.formula", "desc.a.formula"},
                             {"desc.before->formula", "desc.a.formula"},
                             {"desc.g", "desc.da"}};
    if (factor[0] == 'b') {
        names[0].to = names[1].to = "desc.b.formula";
        names[2].to = "desc.db";
    }
    if (status)
        gpi__rename_error(names, GPI__COUNT(names));
    return status;
}

/* dA's product, or dB's: its problem, with the gradient of the text. */
static gemmepi_status gpi__convert_through_text(gemmepi_context *context, const gemmepi_linear_desc *layer,
                                                const gpi__layers_made *made, size_t alignment,
                                                gpi__layer_task *task, gpi__problem *problem) {
    int is_a = made->factor == GPI__A, to = is_a ? GPI__L_DA : GPI__L_DB;
    int of = task->exchanged ? !made->factor : made->factor; /* as the caller has it */
    const gpi__view *stored = &made->own.stored[of];
    gpi__layer_task of_text;
    gpi__draft *draft;
    gemmepi_status status;
    task->views[GPI__L_BEFORE] = *stored;
    task->views[GPI__L_BEFORE].transposed = 0;
    task->views[GPI__L_SCALE_BEFORE] = made->own.scales[of];
    of_text = *task;
    of_text.m = stored->lines;
    of_text.n = stored->length;
    of_text.batch = 1;
    of_text.g_dtype = (int32_t)(is_a ? layer->da.dtype : layer->db.dtype);
    draft = gpi__new_draft(&context->allocator, &made->through, &of_text);
    if (!draft)
        return GEMMEPI_OUT_OF_MEMORY;
    status = gpi__draft_through_text(draft, &context->allocator);
    if (!status)
        status = gpi__convert_befores_draft(context, draft, layer, alignment, problem);
    memcpy(task->beside, draft->beside, sizeof task->beside);
    gpi__delete(&context->allocator, draft);
    gpi__forget_unread_before(task);
    task->views[to] = problem->views[GPI__D];
    task->views[to].transposed = is_a ? layer->a.transposed : layer->b.transposed;
    task->has_befores_formula = 1;
    return gpi__in_words_of_text(status, gpi__operand_names[of]);
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
    for (i = GPI__A; i <= GPI__B && !status && !task->goes_through; i++)
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
