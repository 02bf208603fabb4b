/* What a layer's desc says by itself, and the products of the layer as descs. */
#ifndef GEMMEPI_LINEAR_DESC_H
#define GEMMEPI_LINEAR_DESC_H

#include "../problem/made.h"
#include "../problem/rules.h"
#include "layer.h"

static uint64_t gpi__exchange_bits(uint64_t flags, uint64_t first, uint64_t second) {
    uint64_t rest = flags & ~(first | second);
    return rest | (flags & first ? second : 0) | (flags & second ? first : 0);
}

/* A and B exchanged, and all that goes with them but the order: its own way back. */
static void gpi__exchange_layer(gemmepi_linear_desc *layer) {
    gemmepi_matrix a = layer->a, da = layer->da;
    int64_t m = layer->m;
    layer->a = layer->b;
    layer->b = a;
    layer->da = layer->db;
    layer->db = da;
    layer->m = layer->n;
    layer->n = m;
    layer->flags = gpi__exchange_bits(layer->flags, GEMMEPI_LINEAR_DA, GEMMEPI_LINEAR_DB);
    layer->flags = gpi__exchange_bits(layer->flags, GEMMEPI_ACCUMULATE_DA, GEMMEPI_ACCUMULATE_DB);
}

static int gpi__layer_makes_operands(const gemmepi_linear_desc *layer) {
    return layer->a.formula || layer->b.formula;
}

/* The type in which op(A) is multiplied. */
static gemmepi_dtype gpi__multiplied_in_layer(const gemmepi_linear_desc *layer) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.a = layer->a;
    desc.b = layer->b;
    return gpi__multiplied_dtype(&desc, GPI__A);
}

/* The row-major layer of a column-major one. */
static gemmepi_linear_desc gpi__fold_layer(const gemmepi_linear_desc *desc) {
    gemmepi_linear_desc folded = *desc;
    if (!folded.batch)
        folded.batch = 1;
    if (!folded.a.dtype)
        folded.a.dtype = GEMMEPI_F32;
    if (!folded.b.dtype)
        folded.b.dtype = folded.a.dtype;
    if (!folded.y.dtype)
        folded.y.dtype = gpi__multiplied_in_layer(&folded);
    if (!desc->y.dtype && gpi__is_fp8((int)folded.y.dtype))
        folded.y.dtype = GEMMEPI_BF16;
    if (!folded.da.dtype)
        folded.da.dtype = gpi__is_fp8((int)folded.a.dtype) ? GEMMEPI_BF16 : folded.a.dtype;
    if (!folded.db.dtype)
        folded.db.dtype = gpi__is_fp8((int)folded.b.dtype) ? GEMMEPI_BF16 : folded.b.dtype;
    if (desc->order == GEMMEPI_COLUMN_MAJOR) {
        gpi__exchange_layer(&folded);
        folded.order = GEMMEPI_ROW_MAJOR;
    }
    return folded;
}

/* What an operand of a layer's formula is. d_NAME is the gradient of an input, which backward writes, dy_NAME that of an output, which it
   reads. */
enum { GPI__IS_INPUT, GPI__IS_OUTPUT, GPI__IS_GRADIENT, GPI__IS_UPSTREAM };

/* Its name may be missing: names are checked later. */
static int gpi__layers_role(const gemmepi_operand *operand) {
    if (operand->name && strncmp(operand->name, "d_", 2) == 0)
        return GPI__IS_GRADIENT;
    if (operand->name && strncmp(operand->name, "dy_", 3) == 0)
        return GPI__IS_UPSTREAM;
    return operand->output ? GPI__IS_OUTPUT : GPI__IS_INPUT;
}

/* Whether operands are gradients of others. The formula's fields have been checked. */
static int gpi__asks_for_gradients(const gemmepi_linear_desc *desc) {
    int i;
    for (i = 0; i < desc->operand_count; i++)
        if (gpi__layers_role(&desc->operands[i]) == GPI__IS_GRADIENT)
            return 1;
    return 0;
}

/* The layer as backward has it that is given G, of which a dtype of 8 bits is none: what made Y of P does not matter. */
static gemmepi_status gpi__layer_of_g(const gemmepi_linear_desc *desc, gemmepi_linear_desc *layer) {
    GPI__INVALID_IF(
        !gpi__layer_makes_operands(desc) && gpi__asks_for_gradients(desc),
        "desc.flags has LINEAR_DY_IS_G, but desc.operands has gradients d_NAME, which need dY: leave "
        "out one or the other");
    *layer = *desc;
    if (!layer->dy.dtype && gpi__is_fp8((int)layer->y.dtype))
        layer->dy.dtype = GEMMEPI_BF16;
    layer->activation = 0;
    layer->has_parameter = 0;
    layer->activation_parameter = 0;
    layer->formula = layer->formula_value = layer->formula_result = NULL;
    if (!gpi__layer_makes_operands(desc)) {
        layer->operands = NULL;
        layer->operand_count = 0;
    }
    layer->workspace_limit = 0;
    layer->flags &= ~(GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_RECOMPUTE);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_layer_flags(const gemmepi_linear_desc *desc, int backward) {
    static const struct {
        uint64_t accumulate, output;
    } pairs[] = {{GEMMEPI_ACCUMULATE_DA, GEMMEPI_LINEAR_DA},
                 {GEMMEPI_ACCUMULATE_DB, GEMMEPI_LINEAR_DB},
                 {GEMMEPI_ACCUMULATE_DBIAS, GEMMEPI_LINEAR_DBIAS}};
    uint64_t keeps = desc->flags & (GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_RECOMPUTE);
    int affine = !desc->formula && gpi__is_affine(desc->activation);
    size_t i;
    gemmepi_status status = gpi__check_flags_of(GPI__OF_LAYER, desc->flags, 0);
    if (status)
        return status;
    GPI__INVALID_IF(gpi__has_two(keeps),
                    "desc.flags has both LINEAR_SAVED and LINEAR_RECOMPUTE; P is either read from "
                    "preact or computed again");
    GPI__INVALID_IF(!(desc->flags & GEMMEPI_FIND_SCALE_D) &&
                        (desc->flags & GEMMEPI_POWER_OF_TWO_SCALE || desc->amax_history),
                    "desc.%s; it goes with FIND_SCALE_D%s",
                    desc->amax_history ? "amax_history is not 0" : "flags has POWER_OF_TWO_SCALE",
                    desc->amax_history ? GPI__UNINITIALISED : "");
    GPI__INVALID_IF(affine && keeps,
                    "desc.flags has LINEAR_%s, but the activation is NONE: its gradient needs no P",
                    keeps == GEMMEPI_LINEAR_SAVED ? "SAVED" : "RECOMPUTE");
    if (!backward)
        return GEMMEPI_OK;
    GPI__INVALID_IF(!(desc->flags & GPI__LINEAR_OUTPUTS) && !gpi__asks_for_gradients(desc),
                    "desc.flags asks for no output; at least one of LINEAR_DA, LINEAR_DB and "
                    "LINEAR_DBIAS%s",
                    desc->formula ? ", or an operand d_NAME" : "");
    for (i = 0; i < GPI__COUNT(pairs); i++)
        GPI__INVALID_IF(desc->flags & pairs[i].accumulate && !(desc->flags & pairs[i].output),
                        "desc.flags has %s without %s", gpi__flag(pairs[i].accumulate)->name,
                        gpi__flag(pairs[i].output)->name);
    GPI__INVALID_IF(!affine && !keeps && !desc->formula,
                    "desc.flags has neither LINEAR_SAVED nor LINEAR_RECOMPUTE; the gradient of this "
                    "activation needs P");
    return GEMMEPI_OK;
}

/* Operands of texts of a and b alone: nothing assigns an output. */
static gemmepi_status gpi__check_list_without_formula(const gemmepi_linear_desc *desc) {
    gemmepi_status status = gpi__check_without_formula(NULL, 0, desc->formula_value, desc->formula_result);
    int i;
    if (!status)
        status = gpi__check_operand_list(desc->operands, desc->operand_count, GPI__LAYER_OPERANDS);
    for (i = 0; i < desc->operand_count && !status; i++) {
        int role = gpi__layers_role(&desc->operands[i]);
        GPI__INVALID_IF(role == GPI__IS_OUTPUT || role == GPI__IS_UPSTREAM,
                        "desc.operands[%d] (of %s) is %s, but desc.formula is NULL, which would assign it", i,
                        desc->operands[i].name ? desc->operands[i].name : "NULL",
                        role == GPI__IS_OUTPUT ? "an output" : "the gradient of an output");
    }
    return status;
}

/* What a desc without a formula leaves 0, and one with a formula. */
static gemmepi_status gpi__check_beside_layers_formula(const gemmepi_linear_desc *desc) {
    if (!desc->formula && gpi__layer_makes_operands(desc))
        return gpi__check_list_without_formula(desc);
    if (!desc->formula)
        return gpi__check_without_formula(desc->operands, desc->operand_count, desc->formula_value,
                                          desc->formula_result);
    GPI__UNSUPPORTED_IF(!GPI__HAS_FORMULAS, GPI__NO_FORMULAS);
    GPI__INVALID_IF(desc->activation || desc->has_parameter || desc->activation_parameter != 0,
                    "desc.%s is not 0 with desc.formula, which replaces the activation: leave it 0",
                    desc->activation      ? "activation"
                    : desc->has_parameter ? "has_parameter"
                                          : "activation_parameter");
    GPI__INVALID_IF(
        desc->flags & GEMMEPI_LINEAR_RESIDUAL,
        "desc.flags has LINEAR_RESIDUAL with desc.formula: make the residual an operand of it, and "
        "add that in the text");
    return gpi__check_operand_list(desc->operands, desc->operand_count, GPI__LAYER_OPERANDS);
}

/* Only a and b may be made by text. */
static gemmepi_status gpi__check_layers_matrices(const gemmepi_linear_desc *desc) {
    const gemmepi_matrix *const matrices[] = {&desc->a,  &desc->b,  &desc->y,  &desc->preact,
                                              &desc->dy, &desc->da, &desc->db, &desc->residual};
    static const char *const names[] = {"a", "b", "y", "preact", "dy", "da", "db", "residual"};
    gemmepi_status status = GEMMEPI_OK;
    size_t i;
    for (i = 0; i < GPI__COUNT(names) && !status; i++)
        if (i > 1 || !matrices[i]->formula)
            status = gpi__check_is_stored(names[i], matrices[i]);
    return status;
}

static gemmepi_status gpi__check_layer_scalars(const gemmepi_linear_desc *desc) {
    gemmepi_status status = gpi__check_activation("activation", desc->activation);
    if (!status)
        status = gpi__check_flags_of(GPI__OF_LAYERS_ACTIVATION, desc->activation, GEMMEPI_ACTIVATION_MASK);
    if (!status)
        status = gpi__check_beside_layers_formula(desc);
    if (!status)
        status = gpi__check_layers_matrices(desc);
    if (!status)
        status = gpi__check_order(desc->order);
    if (status)
        return status;
    if (desc->batch < 0 || desc->batch > GPI__MAX_ELEMENTS)
        return gpi__check_size("batch", desc->batch);
    return GEMMEPI_OK;
}

/* >>products of the layer, as descs */

/* A matrix between the steps, dense. */
static gemmepi_matrix gpi__dense_matrix(gemmepi_dtype dtype, int64_t lines, int64_t length) {
    gemmepi_matrix matrix;
    memset(&matrix, 0, sizeof matrix);
    matrix.dtype = dtype;
    matrix.ld = length;
    matrix.batch_stride = length != 0 && lines > GPI__MAX_ELEMENTS / length ? 0 : lines * length;
    return matrix;
}

/* What a layer and its product have in common. */
#define GPI__LAYERS_PRODUCT_FLAGS (GEMMEPI_RELAXED | GEMMEPI_FAST_ACCUMULATION | GEMMEPI_BATCH_INVARIANT)

/* Which only forward's has. */
#define GPI__LAYERS_FOUND_FLAGS (GEMMEPI_FIND_SCALE_D | GEMMEPI_POWER_OF_TWO_SCALE)

static gemmepi_matmul_desc gpi__product_of_layer(const gemmepi_linear_desc *layer) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = layer->m;
    desc.n = layer->n;
    desc.k = layer->k;
    desc.batch = layer->batch;
    desc.compute = layer->compute;
    desc.epilogue = layer->activation;
    desc.flags = layer->flags & GPI__LAYERS_PRODUCT_FLAGS;
    desc.has_parameter = layer->has_parameter;
    desc.activation_parameter = layer->activation_parameter;
    desc.a = layer->a;
    desc.b = layer->b;
    desc.bias = layer->bias;
    if (layer->flags & GEMMEPI_LINEAR_BIAS)
        desc.epilogue |= GEMMEPI_BIAS;
    desc.alignment = layer->alignment;
    return desc;
}

/* TF32 and F16 where they fit; other types follow from the operands. */
static gemmepi_compute gpi__gradient_compute(gemmepi_compute wanted, int a, int b) {
    int fits = wanted == GEMMEPI_COMPUTE_TF32 ? gpi__common_dtype(a, b) == GEMMEPI_F32
                                              : wanted == GEMMEPI_COMPUTE_F16 && a == GEMMEPI_F16 && b == a;
    return fits ? wanted : GEMMEPI_COMPUTE_DEFAULT;
}

#endif
