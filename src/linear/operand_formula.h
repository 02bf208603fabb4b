/* A and B of a layer that text makes. The layer is one of what they make, and at the end what is stored is put in its place: each step that
   multiplies one of both makes it again. dA and dB go through the gradients of their texts, as dA does through that of a layer before. */
#ifndef GEMMEPI_LINEAR_OPERAND_FORMULA_H
#define GEMMEPI_LINEAR_OPERAND_FORMULA_H

#include "added.h"

/* Whether A's or B's text, folded, reads an operand. */
static int gpi__text_reads(const gpi__layers_made *made, int factor, int operand) {
    const gpi__kept_formula *kept = made->problem.made[factor].formula;
    return kept && kept->placed.formula->operands[operand].used;
}

/* The caller's name of A or B, folded. */
static const char *gpi__factor_name(const gemmepi_linear_desc *desc, int factor) {
    return gpi__operand_names[(desc->order == GEMMEPI_COLUMN_MAJOR) != (factor == GPI__B) ? GPI__B : GPI__A];
}

/* That texts of a and b read inputs alone, whose gradients are none of the layer's own formula. */
static gemmepi_status gpi__check_texts_operands(const gemmepi_linear_desc *desc, gpi__layers_made *made) {
    int i, factor, of;
    for (i = 0; i < desc->operand_count; i++) {
        int role = gpi__layers_role(&desc->operands[i]);
        of = role == GPI__IS_GRADIENT ? gpi__gradient_of(desc, i) : i;
        for (factor = GPI__A; factor <= GPI__B; factor++) {
            if (!gpi__text_reads(made, factor, of))
                continue;
            GPI__INVALID_IF(of == i && role != GPI__IS_INPUT,
                            "desc.%s.formula reads %s; names that begin with dy_ are those of gradients "
                            "that come in: choose another name",
                            gpi__factor_name(desc, factor), desc->operands[i].name);
            if (of != i)
                gpi__put_placeholder(&made->own.operands[i]);
        }
    }
    return GEMMEPI_OK;
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
    problem->batch = layer->batch;
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

/* Which gradients of operands there are. layer: folded, which gets the flag of the product that makes them. */
static gemmepi_status gpi__check_texts_gradients(const gemmepi_linear_desc *desc,
                                                 const gpi__layers_made *made, gemmepi_linear_desc *layer,
                                                 gpi__layer_task *task) {
    int i;
    for (i = 0; i < desc->operand_count; i++) {
        const gemmepi_operand *operand = &desc->operands[i];
        int of = gpi__layers_role(operand) == GPI__IS_GRADIENT ? gpi__gradient_of(desc, i) : -1;
        const char *name = of < 0 ? "" : desc->operands[of].name;
        int in_a = of >= 0 && gpi__text_reads(made, GPI__A, of),
            in_b = of >= 0 && gpi__text_reads(made, GPI__B, of),
            in_own = of >= 0 && desc->formula && gpi__place_of_name(desc->formula, name) >= 0;
        const char *factor = gpi__factor_name(desc, in_b ? GPI__B : GPI__A);
        GPI__UNSUPPORTED_IF(in_a + in_b + in_own > 1,
                            "desc.operands[%d] is %s, but desc.%s.formula and desc.%s both read %s: list %s "
                            "twice, under two names, and add their gradients",
                            i, operand->name, in_a && in_b ? "a" : factor,
                            in_a && in_b ? "b.formula" : "formula", name, name);
        if (in_a || in_b)
            task->lacks_gradient |= 1 << (in_a ? GPI__A : GPI__B);
        GPI__INVALID_IF(of >= 0 && !in_a && !in_b && !in_own,
                        "desc.operands[%d] is %s, but no formula of this backward reads %s", i, operand->name,
                        name);
    }
    task->lacks_gradient &= ~((layer->flags & GEMMEPI_LINEAR_DA ? 1 << GPI__A : 0) |
                              (layer->flags & GEMMEPI_LINEAR_DB ? 1 << GPI__B : 0));
    for (i = GPI__A; i <= GPI__B; i++)
        if (task->lacks_gradient >> i & 1)
            layer->flags |= i == GPI__A ? GEMMEPI_LINEAR_DA : GEMMEPI_LINEAR_DB;
    task->flags |= layer->flags & (GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB);
    return GEMMEPI_OK;
}

/* The text of A or B as the formula of a layer before, that has `operands`, whose widths count from what is stored: those that the text
   reads, and their gradients. flags: folded. */
static gemmepi_linear_desc gpi__text_as_before(const gemmepi_linear_desc *desc, const gpi__layers_made *made,
                                               int factor, uint64_t flags,
                                               gemmepi_operand operands[GPI__FORMULA_OPERANDS]) {
    const char *name = gpi__factor_name(desc, factor);
    const gemmepi_matrix *stored = name[0] == 'a' ? &desc->a : &desc->b;
    int width = made->problem.made[factor].formula->placed.formula->operands[GPI__RESULT].width, i, of;
    gemmepi_linear_desc through;
    memset(&through, 0, sizeof through);
    through.order = (gemmepi_order)((desc->order == GEMMEPI_COLUMN_MAJOR) != (stored->transposed != 0));
    through.batch = desc->batch ? desc->batch : 1;
    through.a.dtype = through.y.dtype = (name[0] == 'a' ? &made->own.desc.a : &made->own.desc.b)->dtype;
    through.formula = stored->formula;
    through.formula_value = name;
    through.operands = operands;
    through.operand_count = desc->operand_count;
    through.flags = GEMMEPI_LINEAR_SAVED;
    if (flags & (factor == GPI__A ? GEMMEPI_ACCUMULATE_DA : GEMMEPI_ACCUMULATE_DB))
        through.flags |= GEMMEPI_ACCUMULATE_DA;
    for (i = 0; i < desc->operand_count; i++) {
        int role = gpi__layers_role(&desc->operands[i]), other = 0; /* a third width has been refused */
        operands[i] = desc->operands[i];
        of = role == GPI__IS_GRADIENT ? gpi__gradient_of(desc, i) : i;
        if (!gpi__text_reads(made, factor, of))
            gpi__put_placeholder(&operands[i]);
        gpi__count_from_value(&operands[i], through.order == GEMMEPI_COLUMN_MAJOR, width, &other);
    }
    return through;
}

/* Which gradients are sums over items of what a text makes: of each item they are its product's, and are added up behind. layer: folded. */
static void gpi__find_sums_over_items(const gemmepi_linear_desc *desc, const gemmepi_linear_desc *layer,
                                      const gpi__layers_made *made, gpi__layer_task *task) {
    const gpi__made *texts = made->problem.made;
    int i;
    for (i = GPI__A; i <= GPI__B && layer->batch > 1; i++) {
        int is_shared = i == GPI__A ? task->shares_a : task->shares_b;
        const gpi__view *stored = &made->own.stored[gpi__factor_name(desc, i)[0] == 'b'];
        const gemmepi_matrix *gradient = i == GPI__A ? &layer->da : &layer->db;
        if (layer->flags & (i == GPI__A ? GEMMEPI_LINEAR_DA : GEMMEPI_LINEAR_DB) &&
            (is_shared || (texts[i].formula && !stored->batch_stride && !gradient->batch_stride)) &&
            (texts[GPI__A].formula || texts[GPI__B].formula))
            task->adds_items |= 1 << i;
    }
    if (task->adds_items & 1 << GPI__A)
        task->shares_a = 0; /* its product has an item for each */
}

/* Of backward: what is refused, and whose gradients go through texts. layer: folded. */
static gemmepi_status gpi__start_through_texts(const gemmepi_linear_desc *desc, gemmepi_linear_desc *layer,
                                               const gpi__layers_made *made, gpi__layer_task *task) {
    const gpi__made *texts = made->problem.made;
    gemmepi_status status;
    int i;
    if (!made->is_given)
        return GEMMEPI_OK;
    GPI__UNSUPPORTED_IF(desc->before && (texts[GPI__A].formula || desc->before->formula),
                        "desc.before%s is given, and desc.%s.formula: leave before NULL, and give that "
                        "layer's backward d%s as its dy",
                        desc->before->formula ? "->formula" : "",
                        gpi__factor_name(desc, texts[GPI__A].formula ? GPI__A : GPI__B),
                        gpi__factor_name(desc, GPI__A));
    status = gpi__check_texts_gradients(desc, made, layer, task);
    if (!status)
        gpi__find_sums_over_items(desc, layer, made, task);
    for (i = GPI__A; i <= GPI__B && !status; i++) {
        const char *name = gpi__factor_name(desc, i);
        gemmepi_dtype stored = (gemmepi_dtype)made->own.stored[name[0] == 'b'].dtype;
        if (!texts[i].formula || !(layer->flags & (i == GPI__A ? GEMMEPI_LINEAR_DA : GEMMEPI_LINEAR_DB)))
            continue;
        GPI__INVALID_IF(
            (gpi__is_packed((int)stored) || stored == GEMMEPI_I8) && !(task->lacks_gradient >> i & 1),
            "desc.flags has LINEAR_D%s, but desc.%s.dtype is %s, a type without a gradient: leave the "
            "flag out",
            name[0] == 'a' ? "A" : "B", name, gpi__dtype(stored)->name);
        task->goes_through |= 1 << i;
    }
    return status;
}

static gemmepi_status gpi__draft_through_text(gpi__draft *draft, const gemmepi_allocator *allocator) {
    uint32_t uses = 0;
    int64_t columns;
    gemmepi_status status;
    draft->said.desc.is_of_operand = draft->said.desc.without_result = 1;
    status = gpi__read_formula(draft, allocator, &columns, &uses);
    if (!status)
        status = gpi__draft_gradients(draft);
    GPI__UNSUPPORTED_IF(
        !status && gpi__depends_on_width(draft),
        "desc.formula counts columns, has a d_NAME that sums along them, or no gradient, where what it "
        "makes is not as wide as what is stored: leave d_NAME or the flag of its gradient out");
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

/* Where dA or dB goes that is a sum over items, with the type of what is multiplied. stored: as A or B is, where text makes it; NULL: its view
   is there. layer: the wish's, folded, whose gradient becomes that of each item. */
static gemmepi_status gpi__convert_sum_over_items(const gpi__layers_wish *wish, int factor,
                                                  const gpi__view *stored, gpi__layer_task *task,
                                                  gemmepi_linear_desc *layer) {
    int tensor = GPI__L_DA + factor;
    gemmepi_matmul_desc desc = gpi__product_of_gradient(layer, tensor, 1);
    gpi__problem problem;
    gemmepi_status status = GEMMEPI_OK;
    if (stored) {
        desc.m = stored->lines;
        desc.n = stored->length;
        status = gpi__normalise(&desc, wish->alignment, &problem);
        task->views[tensor] = problem.views[GPI__D];
        task->views[tensor].transposed = (factor == GPI__A ? &layer->a : &layer->b)->transposed;
    }
    if (status)
        return gpi__in_layers_words(status, task->exchanged, "desc.a", "desc.b",
                                    factor == GPI__A ? "desc.da" : "desc.db", "desc.aux");
    layer->flags &= ~(factor == GPI__A ? GEMMEPI_ACCUMULATE_DA : GEMMEPI_ACCUMULATE_DB);
    return gpi__convert_added_gradient(task, tensor, desc.a.dtype,
                                       factor == GPI__A ? &layer->da : &layer->db);
}

/* dA's product, or dB's: its problem, with the gradient of the text. layer: folded. */
static gemmepi_status gpi__convert_through_text(const gpi__layers_wish *wish,
                                                const gemmepi_linear_desc *layer, int factor,
                                                gpi__layer_task *task, gpi__problem *problem) {
    const gemmepi_allocator *allocator = &wish->context->allocator;
    const gpi__layers_made *made = wish->made;
    int of = task->exchanged ? !factor : factor; /* as the caller has it */
    const gpi__view *stored = &made->own.stored[of];
    const gemmepi_matrix *gradient = factor == GPI__A ? &layer->da : &layer->db;
    int8_t *beside = task->formulas[GPI__OF_DA + factor].beside;
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    gemmepi_linear_desc through = gpi__text_as_before(wish->desc, made, factor, layer->flags, operands);
    gpi__layer_task of_text = *task;
    gpi__draft *draft;
    gemmepi_status status;
    of_text.views[GPI__L_BEFORE] = *stored;
    of_text.views[GPI__L_SCALE_BEFORE] = made->own.scales[of];
    of_text.views[GPI__L_DA + factor].ld = gradient->ld;
    of_text.views[GPI__L_DA + factor].batch_stride = gradient->batch_stride;
    of_text.views[GPI__L_DA + factor].dtype = of_text.g_dtype = (int32_t)gradient->dtype;
    of_text.m = stored->lines;
    of_text.n = stored->length;
    if (task->lacks_gradient >> factor & 1)
        of_text.flags &= ~GPI__LINEAR_OUTPUTS;
    draft = gpi__new_draft(allocator, &through, &of_text);
    if (!draft)
        return GEMMEPI_OUT_OF_MEMORY;
    draft->through = GPI__L_DA + factor;
    status = gpi__draft_through_text(draft, allocator);
    if (!status)
        status = gpi__convert_through_draft(wish, layer, draft, problem);
    if (!status)
        status = gpi__convert_added(draft, problem, task);
    memcpy(beside, draft->beside, sizeof draft->beside);
    if (beside[0] == GPI__L_BEFORE)
        beside[0] = (int8_t)(GPI__L_A + factor);
    gpi__delete(allocator, draft);
    if (!(task->adds_items & ~task->lacks_gradient & 1 << factor)) {
        task->views[GPI__L_DA + factor] = problem->views[GPI__D];
        task->views[GPI__L_DA + factor].transposed = (factor == GPI__A ? &layer->a : &layer->b)->transposed;
    }
    return gpi__in_words_of_text(status, gpi__operand_names[of]);
}

/* dA and dB: those that go through texts, and those that are added up over items. */
static gemmepi_status gpi__convert_gradients_of_texts(const gpi__layers_wish *wish, gpi__layer_task *task,
                                                      gpi__layer_problems *problems) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = GPI__A; i <= GPI__B && !status; i++) {
        int is_through = task->goes_through >> i & 1;
        gemmepi_linear_desc layer = *wish->folded;
        if (task->lacks_gradient >> i & 1) /* it is not stored */
            *(i == GPI__A ? &layer.da : &layer.db) =
                gpi__dense_matrix(layer.a.dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32, 0, 0);
        if (task->adds_items & ~task->lacks_gradient & 1 << i)
            status = gpi__convert_sum_over_items(
                wish, i, is_through ? &wish->made->own.stored[task->exchanged ? !i : i] : NULL, task, &layer);
        if (!status && is_through)
            status = gpi__convert_through_text(wish, &layer, i, task, &problems->of[GPI__OF_DA + i]);
    }
    return status;
}

/* >>the end */

/* Puts what is stored in the place of what is made of it. Where something was wrong the references are given back. */
static gemmepi_status gpi__finish_layers_operands(const gpi__layers_wish *wish, gemmepi_status status,
                                                  gpi__layer_task *task, gpi__layer_problems *problems) {
    const gpi__layers_made *made = wish->made;
    gpi__problem *problem = &problems->of[GPI__OF_FIRST];
    gemmepi_matmul_desc listed;
    int i;
    if (!made->is_given)
        return status;
    memset(&listed, 0, sizeof listed);
    listed.operands = wish->desc->operands;
    listed.operand_count = wish->desc->operand_count;
    for (i = GPI__A; i <= GPI__B && !status; i++)
        status = gpi__check_apart(&listed, problem->formula, made->problem.made[i].formula);
    if (status) {
        gpi__drop_formulas(wish->context, &made->problem);
        gpi__drop_layers_formulas(wish->context, problems);
        memset(problems, 0, sizeof *problems);
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
