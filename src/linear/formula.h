/* What the formula of a layer becomes: forward the formula of its product, to which bias and P are added, backward the gradient of it, of the
   product that makes P anew, or of none: then P and dY are operands. What the caller lists as operands stays in its places, and
   what the layer adds stands behind. */
#ifndef GEMMEPI_LINEAR_FORMULA_H
#define GEMMEPI_LINEAR_FORMULA_H

#include "../formula/derived_operands.h"
#include "matrices.h"

enum { GPI__DRAFT_TEXT = GPI__FORMULA_CHARACTERS + 512 }; /* what is too long is refused by who parses it */

/* A formula with its operands before it is parsed. */
typedef struct gpi__draft {
    const gemmepi_linear_desc *layer; /* in the caller's order, defaults filled in */
    const gpi__layer_task *task;
    const char *value, *result; /* what the caller calls P and Y */
    gemmepi_operand operands[GPI__FORMULA_OPERANDS];
    int count;
    int8_t beside[4];     /* tensors of the layer, behind the caller's operands */
    const char *product;  /* what the product is called */
    const char *assigned; /* what D is called */
    char names[4][GPI__FORMULA_NAME + 4], gradient[GPI__FORMULA_NAME + 4];
    int name_count;
    char room[GPI__DRAFT_TEXT];
    gpi__text text;
} gpi__draft;

static gpi__draft *gpi__new_draft(const gemmepi_allocator *allocator, const gemmepi_linear_desc *layer,
                                  const gpi__layer_task *task) {
    gpi__draft *draft = (gpi__draft *)gpi__new(allocator, sizeof *draft);
    if (!draft)
        return NULL;
    draft->layer = layer;
    draft->task = task;
    draft->value = draft->product = layer->formula_value ? layer->formula_value : "v";
    draft->result = draft->assigned = layer->formula_result ? layer->formula_result : "d";
    draft->text = gpi__text_in(draft->room, sizeof draft->room);
    memset(draft->beside, -1, sizeof draft->beside);
    return draft;
}

/* >>the caller's operands */

static int gpi__is_gradients_name(const char *name) {
    return strncmp(name, "d_", 2) == 0;
}

/* What d_NAME is the gradient of: an input's number, or -1. */
static int gpi__gradient_of(const gemmepi_linear_desc *layer, int gradient) {
    int i;
    for (i = 0; i < layer->operand_count; i++)
        if (!layer->operands[i].output &&
            strcmp(layer->operands[i].name, layer->operands[gradient].name + 2) == 0)
            return i;
    return -1;
}

/* Names and directions, which both directions ask about. */
static gemmepi_status gpi__check_layers_operands(const gemmepi_linear_desc *layer) {
    const char *result = layer->formula_result ? layer->formula_result : "d";
    gemmepi_status status = GEMMEPI_OK;
    int i, is_gradient;
    for (i = 0; i < layer->operand_count && !status; i++)
        status = gpi__check_given_name("operands", i, layer->operands[i].name);
    for (i = 0; i < layer->operand_count && !status; i++) {
        const gemmepi_operand *operand = &layer->operands[i];
        is_gradient = gpi__is_gradients_name(operand->name);
        if (operand->output && !is_gradient)
            return gpi__fail(
                GEMMEPI_INVALID_ARGUMENT,
                "desc.operands[%d].output (of %s) is %d; a layer's formula assigns %s alone, and other "
                "outputs are gradients, which are called d_NAME",
                i, operand->name, operand->output, result);
        if (!operand->output && is_gradient)
            return gpi__fail(
                GEMMEPI_INVALID_ARGUMENT,
                "desc.operands[%d].output (of %s) is 0; names that begin with d_ are those of gradients, "
                "which are outputs: set it to 1, or take another name",
                i, operand->name);
        if (is_gradient && gpi__gradient_of(layer, i) < 0)
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.operands[%d] is called %s, but there is no input operand %s", i,
                             operand->name, operand->name + 2);
    }
    return status;
}

/* Why an input has no gradient, or NULL. */
static const char *gpi__lacks_gradient(const gemmepi_operand *of) {
    if (of->kind == GEMMEPI_NUMBER)
        return "is a NUMBER, which lies on the host: make it a SCALAR";
    if (of->dtype == GEMMEPI_I32 || of->dtype == GEMMEPI_I64)
        return "has whole numbers, which have no gradient";
    if (of->row_period || of->column_period)
        return "has a period, and there is no sum over what repeats";
    return NULL;
}

/* The rules of a gradient beside those of any output. */
static gemmepi_status gpi__check_layers_gradient(const gemmepi_linear_desc *layer, int i) {
    const gemmepi_operand *gradient = &layer->operands[i], *of = &layer->operands[gpi__gradient_of(layer, i)];
    uint32_t accepted = layer->a.dtype == GEMMEPI_F64 ? 1u << GEMMEPI_F64 : GPI__VECTOR_TYPES;
    const char *why = gpi__lacks_gradient(of), *name = gradient->name;
    if (why)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.operands[%d] is %s, but %s %s", i, name, of->name,
                         why);
    if (gradient->kind != of->kind || gradient->width != of->width)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.operands[%d].%s (of %s) is %d; it is that of %s, %d",
                         i, gradient->kind != of->kind ? "kind" : "width", name,
                         gradient->kind != of->kind ? (int)gradient->kind : (int)gradient->width, of->name,
                         gradient->kind != of->kind ? (int)of->kind : (int)of->width);
    if (gradient->dtype && !(gpi__dtype_is_known(gradient->dtype) && accepted >> gradient->dtype & 1))
        return gpi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.operands[%d].dtype (of %s) is %d (%s); accepted for gradients are F32, F16 and BF16 (F64 in F64)",
            i, name, (int)gradient->dtype,
            gpi__dtype_is_known(gradient->dtype) ? gpi__dtype(gradient->dtype)->name : "no gemmepi_dtype");
    if (gradient->scale.mode || gradient->amax)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "desc.operands[%d].%s (of %s) is %d; a gradient takes none: leave it 0", i,
                         gradient->amax ? "amax" : "scale.mode", name,
                         gradient->amax ? gradient->amax : (int)gradient->scale.mode);
    if (gradient->accumulate && gradient->kind == GEMMEPI_FULL)
        return gpi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.operands[%d].accumulate (of %s) is %d; of a FULL operand the gradient is no sum, and "
            "sums alone accumulate",
            i, name, gradient->accumulate);
    if (layer->batch > 1 && of->batch_stride && !gradient->batch_stride)
        return gpi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.operands[%d].batch_stride (of %s) is 0, but %s has one for each item of the batch (its "
            "stride is %lld): then its gradient has, too",
            i, name, of->name, (long long)of->batch_stride);
    return GEMMEPI_OK;
}

/* What an operand's dtype 0 means where D is Y. */
static gemmepi_dtype gpi__dtype_beside_y(const gemmepi_linear_desc *layer) {
    return gpi__is_fp8((int)layer->y.dtype) ? GEMMEPI_BF16 : layer->y.dtype;
}

/* As backward has it, whose D is G. */
static gemmepi_operand gpi__operand_of_backward(const gemmepi_linear_desc *layer, int i) {
    gemmepi_operand operand = layer->operands[i];
    gemmepi_dtype of;
    if (!operand.output && operand.kind != GEMMEPI_NUMBER && !operand.dtype)
        operand.dtype = gpi__dtype_beside_y(layer);
    if (!operand.output || operand.dtype || operand.kind != GEMMEPI_FULL)
        return operand;
    of = layer->operands[gpi__gradient_of(layer, i)].dtype;
    operand.dtype = of ? of : gpi__dtype_beside_y(layer);
    if (gemmepi_dtype_size(operand.dtype) == 1)
        operand.dtype = GEMMEPI_BF16;
    return operand;
}

/* Forward knows of no gradients: a NUMBER that nobody reads has their place. */
static gemmepi_operand gpi__operand_of_forward(const gemmepi_linear_desc *layer, int i) {
    gemmepi_operand operand = layer->operands[i];
    if (!operand.output)
        return operand;
    memset(&operand, 0, sizeof operand);
    operand.name = layer->operands[i].name;
    operand.kind = GEMMEPI_NUMBER;
    return operand;
}

/* >>what the layer adds */

/* Where a text has a name, beside its comments; -1: it has it not. */
static int gpi__place_of_name(const char *text, const char *name) {
    size_t at, length;
    for (at = gpi__next_token(text, 0); text[at]; at = gpi__next_token(text, at + (length ? length : 1))) {
        length = gpi__name_length(text + at);
        if (length && gpi__is_name(text + at, length, name))
            return (int)at;
    }
    return -1;
}

static int gpi__text_has_name(const char *text, const char *name) {
    return gpi__place_of_name(text, name) >= 0;
}

static int gpi__is_callers_name(const gpi__draft *draft, const char *name) {
    int i;
    for (i = 0; i < draft->layer->operand_count; i++)
        if (strcmp(draft->layer->operands[i].name, name) == 0)
            return 1;
    return strcmp(draft->value, name) == 0 || strcmp(draft->result, name) == 0 ||
           gpi__text_has_name(draft->layer->formula, name);
}

/* This name, with a number where the caller has it. */
static const char *gpi__new_name(gpi__draft *draft, const char *like) {
    char *name = draft->names[draft->name_count++];
    int number = 1;
    snprintf(name, sizeof draft->names[0], "%s", like);
    while (gpi__is_callers_name(draft, name))
        snprintf(name, sizeof draft->names[0], "%s%d", like, ++number);
    return name;
}

/* Behind the caller's operands one that is a tensor of the layer, as it lies. */
static gemmepi_operand *gpi__add_beside(gpi__draft *draft, int tensor, gemmepi_operand_kind kind,
                                        const char *name) {
    const gpi__view *view = &draft->task->views[tensor];
    gemmepi_operand *operand = &draft->operands[draft->count];
    draft->beside[draft->count - draft->layer->operand_count] = (int8_t)tensor;
    draft->count++;
    operand->name = name;
    operand->kind = kind;
    operand->dtype = (gemmepi_dtype)view->dtype;
    operand->ld = kind == GEMMEPI_FULL ? view->ld : 0;
    operand->batch_stride = view->batch_stride;
    if (tensor <= GPI__L_DY)
        operand->scale.mode = (gemmepi_scale_mode)view->scale;
    return operand;
}

/* The kind of what runs along a bias. */
static gemmepi_operand_kind gpi__kind_of_bias(const gpi__draft *draft) {
    return draft->layer->order == GEMMEPI_COLUMN_MAJOR ? GEMMEPI_PER_ROW : GEMMEPI_PER_COLUMN;
}

/* "v = product + bias;" where the layer has a bias. */
static void gpi__draft_bias(gpi__draft *draft) {
    const char *bias;
    if (!(draft->layer->flags & GEMMEPI_LINEAR_BIAS))
        return;
    draft->product = gpi__new_name(draft, "product");
    bias = gpi__new_name(draft, "bias");
    gpi__add_beside(draft, GPI__L_BIAS, gpi__kind_of_bias(draft), bias);
    gpi__append(&draft->text, "%s = %s + %s;\n", draft->value, draft->product, bias);
}

/* >>forward */

static void gpi__list_operands_of_forward(gpi__draft *draft) {
    for (; draft->count < draft->layer->operand_count; draft->count++)
        draft->operands[draft->count] = gpi__operand_of_forward(draft->layer, draft->count);
}

/* The caller's text and operands alone. */
static void gpi__draft_bare(gpi__draft *draft) {
    gpi__list_operands_of_forward(draft);
    gpi__append(&draft->text, "%s", draft->layer->formula);
}

static void gpi__draft_forward(gpi__draft *draft) {
    const char *preact;
    int saves = (draft->layer->flags & GEMMEPI_LINEAR_SAVED) != 0;
    gpi__list_operands_of_forward(draft);
    if (saves || gpi__text_has_name(draft->layer->formula, draft->value)) /* else nothing reads P */
        gpi__draft_bias(draft);
    if (saves) {
        preact = gpi__new_name(draft, "preact");
        gpi__add_beside(draft, GPI__L_PREACT, GEMMEPI_FULL, preact)->output = 1;
        gpi__append(&draft->text, "%s = %s;\n", preact, draft->value);
    }
    gpi__append(&draft->text, "%s", draft->layer->formula);
}

/* >>backward */

/* The names of the inputs whose gradients are asked for, P's first where G is, or of all inputs. */
static void gpi__list_names(const gpi__draft *draft, int of_gradients, int with_value, gpi__text *text) {
    const gemmepi_linear_desc *layer = draft->layer;
    int i;
    if (with_value)
        gpi__append(text, "%s", draft->value);
    for (i = 0; i < layer->operand_count; i++)
        if (layer->operands[i].output == of_gradients)
            gpi__append(text, "%s%s", text->length ? ", " : "",
                        layer->operands[i].name + (of_gradients ? 2 : 0));
}

/* Whether G is to be stored, or only gradients of operands are asked for. */
static int gpi__wants_g(const gpi__layer_task *task) {
    return (task->flags & GPI__LINEAR_OUTPUTS) != 0;
}

/* may_read_p: P is saved or computed anew. */
static gemmepi_status gpi__derive_layer(const gpi__draft *draft, const gemmepi_allocator *allocator,
                                        int may_read_p, gpi__derivation **derivation) {
    const gemmepi_linear_desc *layer = draft->layer;
    char wrt[GPI__FORMULA_OPERANDS * (GPI__FORMULA_NAME + 2)], saved[sizeof wrt];
    gpi__text wrt_text = gpi__text_in(wrt, sizeof wrt), saved_text = gpi__text_in(saved, sizeof saved);
    gemmepi_operand inputs[GPI__LAYER_OPERANDS];
    gemmepi_derive_desc desc;
    int i;
    memset(&desc, 0, sizeof desc);
    desc.formula = layer->formula;
    desc.operands = inputs;
    for (i = 0; i < layer->operand_count; i++)
        if (!layer->operands[i].output)
            inputs[desc.operand_count++] = layer->operands[i];
    desc.value = draft->value;
    gpi__list_names(draft, 1, gpi__wants_g(draft->task), &wrt_text);
    desc.wrt = wrt;
    gpi__list_names(draft, 0, 0, &saved_text);
    desc.saved = may_read_p ? NULL : saved;
    return gpi__derivation_of(allocator, &desc, draft->result, layer->order == GEMMEPI_COLUMN_MAJOR,
                              derivation);
}

/* The derivation, or what is wrong in the words of a layer. */
static gemmepi_status gpi__derive_layer_or_say(const gpi__draft *draft, const gemmepi_allocator *allocator,
                                               gpi__derivation **derivation) {
    int may_read_p = (draft->layer->flags & (GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_RECOMPUTE)) != 0;
    gemmepi_status status = gpi__derive_layer(draft, allocator, may_read_p, derivation);
    if (!status || may_read_p)
        return status;
    status = gpi__derive_layer(draft, allocator, 1, derivation);
    if (status)
        return status; /* it is not that which is wrong */
    gpi__delete(allocator, *derivation);
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "desc.flags has neither LINEAR_SAVED nor LINEAR_RECOMPUTE, but the gradient of desc.formula reads %s",
        draft->value);
}

/* The text, where P comes from, and dbias. */
static void gpi__draft_gradient(gpi__draft *draft, gpi__derivation *derivation) {
    const gemmepi_linear_desc *layer = draft->layer;
    int reads_p = gpi__gradient_reads(derivation, GPI__OP_VALUE, 0);
    const char *dbias;
    if (reads_p && layer->flags & GEMMEPI_LINEAR_RECOMPUTE) {
        gpi__draft_bias(draft);
    } else {
        if (reads_p)
            gpi__add_beside(draft, GPI__L_PREACT, GEMMEPI_FULL, draft->value);
        draft->product = gpi__new_name(draft, "product"); /* which nobody reads */
    }
    gpi__add_beside(draft, GPI__L_DY, GEMMEPI_FULL, "dy")->width =
        gpi__public_width(&derivation->graph, gpi__width_of_output(derivation, GPI__RESULT));
    snprintf(draft->gradient, sizeof draft->gradient, "d_%s", draft->value);
    draft->assigned = draft->gradient;
    gpi__print_gradient(derivation, &draft->text);
    if (!(layer->flags & GEMMEPI_LINEAR_DBIAS))
        return;
    dbias = gpi__new_name(draft, "dbias");
    gpi__add_beside(draft, GPI__L_DBIAS, gpi__kind_of_bias(draft), dbias);
    draft->operands[draft->count - 1].output = 1;
    draft->operands[draft->count - 1].accumulate = (layer->flags & GEMMEPI_ACCUMULATE_DBIAS) != 0;
    gpi__append(&draft->text, ";\n%s = %s_sum(%s)", dbias,
                layer->order == GEMMEPI_COLUMN_MAJOR ? "row" : "column", draft->gradient);
}

static gemmepi_status gpi__draft_backward(gpi__draft *draft, const gemmepi_allocator *allocator) {
    gpi__derivation *derivation;
    gemmepi_status status;
    for (; draft->count < draft->layer->operand_count; draft->count++)
        draft->operands[draft->count] = gpi__operand_of_backward(draft->layer, draft->count);
    status = gpi__derive_layer_or_say(draft, allocator, &derivation);
    if (status)
        return status;
    gpi__draft_gradient(draft, derivation);
    gpi__delete(allocator, derivation);
    if (draft->text.length <= GPI__FORMULA_CHARACTERS)
        return GEMMEPI_OK;
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                     "the gradient of desc.formula has %llu characters; a formula has at most %d",
                     (gpi__ull)draft->text.length, GPI__FORMULA_CHARACTERS);
}

#endif
