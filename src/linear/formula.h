/* What the formula of a layer becomes, a graph: forward the caller's, to which bias and P are added, backward the gradient of it, of the
   product that makes P again, or of none: then P and dY are operands. The caller's operands keep their places, and those that
   the layer adds follow. */
#ifndef GEMMEPI_LINEAR_FORMULA_H
#define GEMMEPI_LINEAR_FORMULA_H

#include "operands.h"

typedef struct gpi__layers_made {
    int is_given;          /* 0: nothing is made, and nothing else counts */
    gpi__problem problem;  /* whose made is the layer's, folded, with a reference for each formula */
    gpi__desc_of_made own; /* in the caller's order */
} gpi__layers_made;

/* What a layer's formulas are made of. */
typedef struct gpi__layers_wish {
    gemmepi_context *context;
    const gemmepi_linear_desc *desc;    /* the caller's */
    const gemmepi_linear_desc *callers; /* in the caller's order, defaults filled in */
    const gemmepi_linear_desc *folded;  /* and row-major; of these two a and b are what is multiplied */
    const gpi__layers_made *made;
    size_t alignment;
} gpi__layers_wish;

typedef struct gpi__draft {
    const gemmepi_linear_desc *layer; /* in the caller's order, defaults filled in */
    const gpi__layer_task *task;
    int through; /* GPI__L_DA or GPI__L_DB: the gradient is that of its product, whose value is dY; 0: it is G */
    gpi__derivation
        said; /* what the caller's text says, and backward its gradients; desc is the next formula's */
    int8_t beside[4]; /* tensors of the layer, behind the caller's operands */
    char names[4][GPI__FORMULA_NAME + 4];
    int name_count;
} gpi__draft;

/* >>what is added up behind */

/* What the formula has of the gradient of a BLOCKED operand: sums of groups of columns, where there are whole ones. */
static int gpi__sums_of(const gpi__draft *draft, const gemmepi_operand *of) {
    const gpi__graph *graph = &draft->said.graph;
    int exchanged = draft->said.desc.exchanged;
    int64_t width = gpi__group_of(of, exchanged), n = draft->task->n;
    if (of->kind != GEMMEPI_BLOCKED)
        return GPI__BY_BLOCKS;
    if (width % 8 || n % width || (gpi__has_halves(graph) && n / width % graph->parts))
        return GPI__BY_ELEMENTS;
    return (exchanged ? of->block_columns : of->block_rows) == 1 ? GPI__BY_BLOCKS : GPI__BY_ROWS;
}

/* Whether the i-th operand is a gradient that the formula has in workspace alone. */
static int gpi__is_added_up(const gpi__draft *draft, int i) {
    const gemmepi_operand *gradient = &draft->layer->operands[i];
    if (gpi__layers_role(gradient) != GPI__IS_GRADIENT || !gradient->output)
        return 0; /* a placeholder: another formula has it */
    return draft->said.sums[gpi__gradient_of(draft->layer, i)] || gpi__is_over_items(draft->layer, gradient);
}

/* The same in workspace, an item after another. */
static void gpi__put_in_workspace(const gpi__draft *draft, int i, gemmepi_operand *operand) {
    const gpi__derivation *d = &draft->said;
    int sums = d->sums[gpi__gradient_of(draft->layer, i)], exchanged = d->desc.exchanged;
    int64_t lines = draft->task->m, n = draft->task->n, elements;
    if (operand->kind == (exchanged ? GEMMEPI_PER_COLUMN : GEMMEPI_PER_ROW))
        n = 1;
    n = operand->width == GEMMEPI_WIDTH_HALF     ? n / d->graph.parts
        : operand->width == GEMMEPI_WIDTH_DOUBLE ? gpi__offset(n, d->graph.parts, 0)
                                                 : n;
    if (operand->kind == GEMMEPI_BLOCKED && sums != GPI__BY_ELEMENTS)
        n /= gpi__group_of(operand, exchanged);
    if (sums == GPI__BY_ROWS)
        *(exchanged ? &operand->block_columns : &operand->block_rows) = 1;
    if (sums == GPI__BY_ELEMENTS) {
        operand->kind = GEMMEPI_FULL;
        operand->block_rows = operand->block_columns = 0;
    }
    elements = gpi__offset(lines, n, 0);
    operand->dtype = d->desc.accumulator == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    operand->ld = operand->accumulate = 0;
    operand->batch_stride = draft->layer->batch > 1 ? elements < 0 ? GPI__MAX_ELEMENTS : elements : 0;
}

/* >>what the layer adds */

static gpi__draft *gpi__new_draft(const gemmepi_allocator *allocator, const gemmepi_linear_desc *layer,
                                  const gpi__layer_task *task) {
    gpi__draft *draft = (gpi__draft *)gpi__new(allocator, sizeof *draft);
    gpi__formula_desc *desc;
    int i;
    if (!draft)
        return NULL;
    desc = &draft->said.desc;
    draft->layer = layer;
    draft->task = task;
    memset(draft->beside, -1, sizeof draft->beside);
    desc->text = layer->formula;
    desc->value = layer->formula_value;
    desc->result = layer->formula_result;
    desc->exchanged = layer->order == GEMMEPI_COLUMN_MAJOR;
    desc->accumulator = layer->a.dtype == GEMMEPI_F64   ? GEMMEPI_F64
                        : layer->y.dtype == GEMMEPI_I32 ? GEMMEPI_I32
                                                        : GEMMEPI_F32;
    desc->d = layer->y.dtype;
    desc->operands = draft->said.operands;
    desc->operand_count = layer->operand_count;
    for (i = 0; i < layer->operand_count; i++)
        if (gpi__layers_role(&layer->operands[i]) < GPI__IS_GRADIENT) {
            draft->said.operands[i] = layer->operands[i];
        } else { /* forward knows of no gradients: a NUMBER that nobody reads has their place */
            draft->said.operands[i].name = layer->operands[i].name;
            draft->said.operands[i].kind = GEMMEPI_NUMBER;
        }
    return draft;
}

/* This name, with a number where an operand, P or Y has it. */
static const char *gpi__new_name(gpi__draft *draft, const char *before, const char *like) {
    char *name = draft->names[draft->name_count++];
    const gpi__formula_desc *desc = &draft->said.desc;
    int number = 1;
    snprintf(name, sizeof draft->names[0], "%s%s", before, like);
    while (gpi__who_is_called(desc, name, desc->operand_count))
        snprintf(name, sizeof draft->names[0], "%s%s%d", before, like, ++number);
    return name;
}

/* Behind the caller's operands one that is a tensor of the layer, as it lies. */
static gemmepi_operand *gpi__add_beside(gpi__draft *draft, int tensor, const char *name) {
    const gpi__view *view = &draft->task->views[tensor];
    int i = draft->said.desc.operand_count++, is_vector = tensor == GPI__L_BIAS || tensor == GPI__L_DBIAS;
    gemmepi_operand *operand = &draft->said.operands[i];
    draft->beside[i - draft->layer->operand_count] = (int8_t)tensor;
    memset(operand, 0, sizeof *operand);
    operand->name = name;
    operand->kind = !is_vector                   ? GEMMEPI_FULL
                    : draft->said.desc.exchanged ? GEMMEPI_PER_ROW
                                                 : GEMMEPI_PER_COLUMN;
    operand->dtype = (gemmepi_dtype)view->dtype;
    operand->ld = is_vector ? 0 : view->ld;
    operand->batch_stride = view->batch_stride;
    if (tensor <= GPI__L_DY)
        operand->scale.mode = (gemmepi_scale_mode)view->scale;
    return operand;
}

/* A bias, if the layer has one: behind the caller's operands. */
static void gpi__add_bias(gpi__draft *draft) {
    if (!(draft->layer->flags & GEMMEPI_LINEAR_BIAS))
        return;
    draft->said.desc.value = gpi__new_name(draft, "", "product");
    draft->said.desc.product = 2 + draft->said.desc.operand_count;
    gpi__add_beside(draft, GPI__L_BIAS, gpi__new_name(draft, "", "bias"));
}

/* >>forward */

static gemmepi_status gpi__draft_forward(gpi__draft *draft) {
    gpi__formula_desc *desc = &draft->said.desc;
    int saves = (draft->layer->flags & GEMMEPI_LINEAR_SAVED) != 0;
    gemmepi_status status;
    desc->product = draft->layer->flags & GEMMEPI_LINEAR_BIAS ? 2 + desc->operand_count : saves;
    status = gpi__parse(&draft->said.parser, &draft->said.graph, desc);
    if (status)
        return status;
    gpi__add_bias(draft);
    if (!saves)
        return GEMMEPI_OK;
    draft->said.graph.assigned[desc->operand_count].node = (int16_t)draft->said.graph.product;
    gpi__add_beside(draft, GPI__L_PREACT, gpi__new_name(draft, "", "preact"))->output = 1;
    return GEMMEPI_OK;
}

/* >>backward */

static void gpi__drop_layers_formulas(gemmepi_context *context, const gpi__layer_problems *problems) {
    int i;
    for (i = 0; i < GPI__LAYER_FORMULAS; i++)
        gpi__drop_formulas(context, &problems->of[i]);
}

/* The caller's formula alone. *columns: Y's, -1: there is no Y. *uses: bits of the operands that it has. */
static gemmepi_status gpi__read_formula(gpi__draft *draft, const gemmepi_allocator *allocator,
                                        int64_t *columns, uint32_t *uses) {
    const gpi__layer_task *task = draft->task;
    gpi__formula *formula;
    int i;
    gemmepi_status status = gpi__parse(&draft->said.parser, &draft->said.graph, &draft->said.desc);
    if (!status)
        status = gpi__formula_of(allocator, &draft->said.graph, &formula);
    if (status)
        return status;
    for (i = 0; i < draft->layer->operand_count; i++)
        *uses |= (uint32_t)(formula->operands[i].used != 0) << i;
    *columns = formula->operands[GPI__RESULT].used
                   ? gpi__columns_of_width(formula, task->n, formula->operands[GPI__RESULT].width)
                   : -1;
    status = gpi__check_formula_extents(formula, draft->layer->formula, task->m, task->n, task->batch);
    gpi__delete(allocator, formula);
    return status;
}

/* Whether G is to be stored, or only gradients of operands are asked for. */
static int gpi__wants_g(const gpi__layer_task *task) {
    return (task->flags & GPI__LINEAR_OUTPUTS) != 0;
}

/* What comes in: an output without dy_NAME passes nothing on, and of outputs reductions alone may be read. */
static gemmepi_status gpi__list_upstreams(gpi__draft *draft) {
    const gemmepi_linear_desc *layer = draft->layer;
    gpi__derivation *d = &draft->said;
    int i, any = d->graph.assigned[GPI__RESULT].node >= 0;
    gemmepi_status status = GEMMEPI_OK;
    for (i = 0; i < layer->operand_count && !status; i++) {
        int role = gpi__layers_role(&layer->operands[i]);
        any = any || role == GPI__IS_UPSTREAM;
        if (role == GPI__IS_UPSTREAM)
            status = gpi__check_layers_upstream(layer, i);
        if (role != GPI__IS_OUTPUT)
            continue;
        d->readable[i] = d->graph.assigned[i].reduction != 0;
        if (gpi__upstream_of(layer, i) < 0)
            d->graph.assigned[i].node = -1;
    }
    if (status || any)
        return status;
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "desc.formula does not assign %s, and no operand is called dy_NAME after an output NAME: no gradient "
        "comes into backward",
        gpi__result_name(&d->desc));
}

/* All but Y may be read. outputs: where each gradient goes, G's first. */
static gemmepi_status gpi__ask_for_gradients(gpi__draft *draft, int16_t outputs[GPI__FORMULA_OPERANDS + 1]) {
    const gemmepi_linear_desc *layer = draft->layer;
    gpi__derivation *d = &draft->said;
    gpi__formula_desc callers = d->desc;
    const gpi__renaming wrt = {"desc.wrt", "desc.operands"};
    gemmepi_status status;
    int i;
    callers.operands = layer->operands;
    status = gpi__check_names_for_gradient(&callers, 1);
    memset(d->readable, 1, sizeof d->readable);
    d->readable[GPI__RESULT] = 0;
    outputs[0] = GPI__RESULT;
    if (!status)
        status = gpi__list_upstreams(draft);
    if (!status && gpi__wants_g(draft->task))
        status = gpi__ask_for_gradient(d, GPI__OF_VALUE);
    for (i = 0; i < layer->operand_count && !status; i++) {
        if (gpi__layers_role(&layer->operands[i]) != GPI__IS_GRADIENT || !layer->operands[i].output)
            continue; /* a placeholder: another formula has it */
        outputs[d->wrt_count] = (int16_t)i;
        status = gpi__check_layers_gradient(layer, i);
        if (!status)
            d->sums[gpi__gradient_of(layer, i)] = (uint8_t)gpi__sums_of(draft, &layer->operands[i]);
        if (!status && (status = gpi__ask_for_gradient(d, gpi__gradient_of(layer, i))) != GEMMEPI_OK)
            gpi__rename_error(&wrt, 1);
    }
    return status;
}

/* Widths by the n columns of Y, in the place of P's. */
static gemmepi_width gpi__shifted_width(gemmepi_width width, int by) {
    int at = by + (width == GEMMEPI_WIDTH_DOUBLE) - (width == GEMMEPI_WIDTH_HALF);
    return at > 0 ? GEMMEPI_WIDTH_DOUBLE : at < 0 ? GEMMEPI_WIDTH_HALF : GEMMEPI_WIDTH_N;
}

/* The operands of backward, dY last, if there is one that is not the value, and before it P, if it is read; and the names of the product and
   G. */
static void gpi__list_operands_of_backward(gpi__draft *draft) {
    const gemmepi_linear_desc *layer = draft->layer;
    gpi__derivation *d = &draft->said;
    const char *value = gpi__value_name(&d->desc);
    int i, reads_p = gpi__gradient_reads(d, GPI__OP_VALUE, 0);
    for (i = 0; i < layer->operand_count; i++) {
        d->operands[i] = gpi__operand_of_backward(&d->graph, layer, i);
        if (gpi__is_added_up(draft, i))
            gpi__put_in_workspace(draft, i, &d->operands[i]);
    }
    d->desc.d = (gemmepi_dtype)draft->task->g_dtype;
    d->desc.result = gpi__new_name(draft, "d_", value);
    if (reads_p && layer->flags & GEMMEPI_LINEAR_RECOMPUTE) {
        gpi__add_bias(draft);
    } else {
        d->desc.value = gpi__new_name(draft, "", draft->through ? "dy" : "product"); /* which nobody reads */
        if (reads_p)
            gpi__add_beside(draft, draft->through ? GPI__L_BEFORE : GPI__L_PREACT, value);
    }
    if (d->graph.assigned[GPI__RESULT].node >= 0 && !draft->through)
        gpi__add_beside(draft, GPI__L_DY, "dy")->width =
            gpi__public_width(d->graph.n_width, gpi__width_of_output(d, GPI__RESULT));
    for (i = 0; i < d->desc.operand_count && draft->through; i++)
        if (gpi__has_width((int)d->operands[i].kind, d->desc.exchanged))
            d->operands[i].width = gpi__shifted_width(
                d->operands[i].width, d->graph.n_width - gpi__width_of_output(d, GPI__RESULT));
}

/* Which operand of backward is the gradient that comes in for each output, Y's last. */
static void gpi__point_to_upstreams(const gpi__draft *draft, int16_t upstreams[GPI__RESULT + 1]) {
    int i;
    for (i = 0; i < draft->layer->operand_count; i++)
        upstreams[i] = (int16_t)gpi__upstream_of(draft->layer, i);
    upstreams[GPI__RESULT] = (int16_t)(draft->through ? -1 : draft->said.desc.operand_count - 1);
}

static void gpi__sum_dbias(gpi__draft *draft) {
    gpi__assigned *assigned = draft->said.gradient.assigned;
    gpi__assigned *sum = &assigned[draft->said.desc.operand_count];
    gemmepi_operand *dbias;
    if (!(draft->layer->flags & GEMMEPI_LINEAR_DBIAS))
        return;
    dbias = gpi__add_beside(draft, GPI__L_DBIAS, gpi__new_name(draft, "", "dbias"));
    dbias->output = 1;
    dbias->accumulate = (draft->layer->flags & GEMMEPI_ACCUMULATE_DBIAS) != 0;
    sum->node = assigned[GPI__RESULT].node;
    sum->reduction = (int16_t)gpi__reduction_called("column_sum", 10);
}

/* With ACCUMULATE_DA through a formula: the gradient of a text of A or B is added to what is there. */
static void gpi__add_what_was(gpi__draft *draft) {
    gpi__derivation *d = &draft->said;
    gpi__assigned *result = &d->gradient.assigned[GPI__RESULT];
    gpi__node was = gpi__node_of(GPI__OP_OPERAND, -1, -1, -1);
    gemmepi_operand *operand;
    if (!draft->through || !(draft->layer->flags & GEMMEPI_ACCUMULATE_DA))
        return;
    was.place = (int16_t)d->desc.operand_count;
    operand = gpi__add_beside(draft, draft->through, gpi__new_name(draft, "", "was"));
    operand->width =
        gpi__shifted_width(GEMMEPI_WIDTH_N, d->graph.n_width - gpi__width_of_output(d, GPI__RESULT));
    was.width = (uint8_t)gpi__width_of(&d->gradient, operand->kind, operand->width);
    result->node =
        (int16_t)gpi__make(&d->gradient, GPI__OP_ADD, gpi__intern(&d->gradient, &was), result->node, -1);
}

/* Whether the layer has what the gradient reads: P, and Y's type, in which rounded(x) is, but here in D's, which is G. */
static gemmepi_status gpi__check_gradient_reads(const gpi__draft *draft) {
    const gemmepi_linear_desc *layer = draft->layer;
    gemmepi_dtype g = (gemmepi_dtype)draft->task->g_dtype;
    char place[GPI__PLACE_TEXT];
    GPI__INVALID_IF(!(layer->flags & (GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_RECOMPUTE)) &&
                        gpi__gradient_reads(&draft->said, GPI__OP_VALUE, 0),
                    "desc.flags has %s, but the gradient of desc.formula reads %s: set %s",
                    draft->through ? "no LINEAR_SAVED" : "neither LINEAR_SAVED nor LINEAR_RECOMPUTE",
                    gpi__value_name(&draft->said.desc), draft->through ? "it, forward too" : "one of them");
    GPI__INVALID_IF(layer->y.dtype != g && gpi__gradient_reads(&draft->said, GPI__OP_ROUNDED, 0),
                    "%s: desc.%s is %s, and the gradient has rounded, which is as y stores it, in %s%s",
                    gpi__name_place(layer->formula, gpi__place_of_name(layer->formula, "rounded"), place),
                    !draft->through              ? "g_dtype"
                    : draft->said.desc.exchanged ? "db.dtype"
                                                 : "da.dtype",
                    gpi__dtype(g)->name, gpi__dtype(layer->y.dtype)->name,
                    gpi__is_scaled_dtype((int)layer->y.dtype)
                        ? ", which G cannot be: round in another product"
                        : ": then G is in that, too");
    return GEMMEPI_OK;
}

/* P and dY, once they are read as operands, have one scale. */
static gemmepi_status gpi__check_scales_beside(const gpi__draft *draft) {
    int8_t both[] = {GPI__L_PREACT, GPI__L_DY};
    size_t i, count = draft->through ? 1 : 2;
    both[0] = draft->through ? GPI__L_BEFORE : GPI__L_PREACT;
    for (i = 0; i < count; i++) {
        int64_t stride = draft->task->views[GPI__L_SCALE_OF(both[i])].batch_stride;
        GPI__INVALID_IF(stride,
                        "desc.%s.scale.batch_stride is %lld with desc.formula, where it has one scale "
                        "for the whole batch: leave it 0",
                        gpi__layer_names[both[i]], (long long)stride);
    }
    return GEMMEPI_OK;
}

/* The gradients of a formula that has been read. */
static gemmepi_status gpi__draft_gradients(gpi__draft *draft) {
    gpi__derivation *d = &draft->said;
    int16_t outputs[GPI__FORMULA_OPERANDS + 1], upstreams[GPI__RESULT + 1];
    gemmepi_status status = gpi__ask_for_gradients(draft, outputs);
    if (!status)
        status = gpi__derive(d);
    if (!status)
        status = gpi__check_gradient_reads(draft);
    if (status)
        return status;
    gpi__list_operands_of_backward(draft);
    gpi__point_to_upstreams(draft, upstreams);
    status = gpi__copy_gradient(d, &d->desc,
                                draft->layer->flags & GEMMEPI_LINEAR_SAVED ? draft->layer->operand_count : -1,
                                upstreams, outputs);
    if (status)
        return status;
    gpi__sum_dbias(draft);
    gpi__add_what_was(draft);
    return gpi__check_formula_desc(&d->desc);
}

/* folded: the layer in row-major order, whose gradients go to task. */
static gemmepi_status gpi__draft_backward(gpi__draft *draft, const gemmepi_allocator *allocator,
                                          const gemmepi_linear_desc *folded, size_t alignment,
                                          gpi__layer_task *task) {
    int64_t columns;
    gemmepi_status status = gpi__read_formula(draft, allocator, &columns, &task->formula_uses);
    if (!status)
        status = gpi__convert_gradients(folded, columns, alignment, task, NULL);
    return status ? status : gpi__draft_gradients(draft);
}

#endif
