/* The tensors of a layer, of a desc that is folded. The rules of matrices and vectors are those of the products that the layer is
   made of: each is normalised once to check them, and to take the views over. */
#ifndef GEMMEPI_LINEAR_TENSORS_H
#define GEMMEPI_LINEAR_TENSORS_H

#include "matrices.h"

static void gpi__convert_layer_view(gpi__layer_task *task, int tensor, const gpi__problem *problem,
                                    int operand) {
    task->views[tensor] = problem->views[operand];
    if (tensor <= GPI__L_DY)
        task->views[GPI__L_SCALE_OF(tensor)] = problem->views[GPI__SCALE_OF(operand)];
}

/* Y, and what is found for it. */
static void gpi__convert_y_view(gpi__layer_task *task, const gpi__problem *problem) {
    gpi__convert_layer_view(task, GPI__L_Y, problem, GPI__D);
    task->found_scale = problem->found_scale;
    task->amax_history = problem->amax_history;
    if (!problem->found_scale)
        return;
    task->views[GPI__L_Y].scale = 0;
    memset(&task->views[GPI__L_SCALE_Y], 0, sizeof task->views[GPI__L_SCALE_Y]);
    gpi__convert_layer_view(task, GPI__L_FOUND_SCALE_Y, problem, GPI__FOUND_SCALE_D);
    gpi__convert_layer_view(task, GPI__L_AMAX_HISTORY, problem, GPI__AMAX_HISTORY);
}

/* Of a layer's product, D being Y: whether its scales are found. */
static void gpi__find_scale_of_y(const gemmepi_linear_desc *layer, gemmepi_matmul_desc *desc) {
    desc->flags |= layer->flags & GPI__LAYERS_FOUND_FLAGS;
    desc->amax_history = layer->amax_history;
}

static void gpi__add_residual(const gemmepi_linear_desc *layer, gemmepi_matmul_desc *desc) {
    if (!(layer->flags & GEMMEPI_LINEAR_RESIDUAL))
        return;
    desc->epilogue |= GEMMEPI_RESIDUAL;
    desc->residual = layer->residual;
}

/* problem: forward's, where that has no formula. A, B, bias, and Y or, for backward, the P that forward left. A formula's Y is not looked at, but as P has a type by it. */
static gemmepi_status gpi__convert_forward(const gemmepi_linear_desc *layer, int backward, size_t alignment,
                                           gpi__layer_task *task, gpi__problem *problem) {
    gemmepi_matmul_desc desc = gpi__product_of_layer(layer);
    gemmepi_status status;
    desc.d = layer->y;
    desc.aux = layer->preact;
    if (!desc.aux.dtype && !gpi__aux_is_mask(desc.epilogue | GEMMEPI_AUX))
        desc.aux.dtype = layer->y.dtype;
    if (layer->flags & GEMMEPI_LINEAR_SAVED)
        desc.epilogue |= GEMMEPI_AUX;
    if (backward || layer->formula) { /* Y is not looked at */
        int64_t columns = gpi__result_columns(layer->activation, layer->n);
        desc.d = gpi__dense_matrix(layer->y.dtype, layer->m > 0 ? layer->m : 0, columns > 0 ? columns : 0);
    } else {
        gpi__find_scale_of_y(layer, &desc);
        gpi__add_residual(layer, &desc);
    }
    status = gpi__normalise(&desc, alignment, problem);
    if (status)
        return gpi__in_layers_words(status, task->exchanged, "desc.a", "desc.b", "desc.y", "desc.preact");
    gpi__convert_layer_view(task, GPI__L_RESIDUAL, problem, GPI__RESIDUAL);
    gpi__convert_layer_view(task, GPI__L_A, problem, GPI__A);
    gpi__convert_layer_view(task, GPI__L_B, problem, GPI__B);
    gpi__convert_layer_view(task, GPI__L_BIAS, problem, GPI__BIAS);
    if (!backward && !layer->formula)
        gpi__convert_y_view(task, problem);
    if (layer->flags & GEMMEPI_LINEAR_SAVED)
        gpi__convert_layer_view(task, GPI__L_PREACT, problem, GPI__AUX);
    task->parameter = problem->parameter;
    task->alignment = problem->alignment;
    return GEMMEPI_OK;
}

static gemmepi_status gpi__choose_g_dtype(const gemmepi_linear_desc *layer, gpi__layer_task *task) {
    int a = (int)layer->a.dtype, b = (int)layer->b.dtype, common = gpi__common_dtype(a, b);
    uint32_t accepted = a == GEMMEPI_F64 ? 1u << GEMMEPI_F64 : GPI__VECTOR_TYPES;
    task->g_dtype = layer->g_dtype                     ? (int32_t)layer->g_dtype
                    : gpi__is_fp8(a) && gpi__is_fp8(b) ? (int32_t)GEMMEPI_BF16
                                                       : (int32_t)common;
    GPI__UNSUPPORTED_IF(a == GEMMEPI_I8 || b == GEMMEPI_I8,
                        "desc.%s.dtype is I8; gradients go to operands of F64, F32, F16, BF16, E4M3 and "
                        "E5M2",
                        (a == GEMMEPI_I8) != (task->exchanged != 0) ? "a" : "b");
    GPI__INVALID_IF((unsigned)task->g_dtype > GEMMEPI_I32 || !(accepted >> task->g_dtype & 1),
                    "desc.g_dtype is %d (%s); accepted %s here%s", (int)layer->g_dtype,
                    gpi__dtype_name(layer->g_dtype), a == GEMMEPI_F64 ? "is F64" : "are F32, F16 and BF16",
                    gpi__dtype_is_known(layer->g_dtype) ? "" : GPI__UNINITIALISED);
    return GEMMEPI_OK;
}

/* dY, or P of the layer before, of so many columns, as what a product without terms reads. */
static gemmepi_status gpi__convert_read(const gemmepi_linear_desc *layer, int tensor, int64_t columns,
                                        size_t alignment, gpi__layer_task *task) {
    int is_dy = tensor == GPI__L_DY;
    gemmepi_matmul_desc desc;
    gpi__problem problem;
    gemmepi_status status;
    memset(&desc, 0, sizeof desc);
    desc.m = layer->m;
    desc.n = columns;
    desc.batch = is_dy ? layer->batch : layer->before->batch;
    desc.alignment = layer->alignment;
    desc.epilogue = GEMMEPI_BACKWARD;
    desc.a.dtype = layer->a.dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    desc.aux = is_dy ? layer->dy : layer->before->preact;
    if (!desc.aux.dtype)
        desc.aux.dtype = layer->y.dtype;
    desc.d = gpi__dense_matrix(desc.a.dtype, layer->m, columns);
    status = gpi__normalise(&desc, alignment, &problem);
    if (status)
        return gpi__in_layers_words(status, task->exchanged, "desc.a", "desc.b", "desc.g",
                                    is_dy ? "desc.dy" : "desc.before->preact");
    gpi__convert_layer_view(task, tensor, &problem, GPI__AUX);
    return GEMMEPI_OK;
}

/* dY and dbias, and without a formula the problem of the product that makes G of P made again. columns: of dY, if the layer has a
   formula; below 0: there is no dY. */
static gemmepi_status gpi__convert_upstream(const gemmepi_linear_desc *layer, int64_t columns,
                                            size_t alignment, gpi__layer_task *task, gpi__problem *g) {
    gemmepi_matmul_desc desc = gpi__product_of_layer(layer);
    gpi__problem problem;
    gemmepi_status status;
    desc.epilogue |= GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM;
    desc.aux = layer->dy;
    if (!desc.aux.dtype)
        desc.aux.dtype = layer->y.dtype;
    desc.d = layer->flags & GEMMEPI_LINEAR_RECOMPUTE
                 ? gpi__g_matrix(task)
                 : gpi__dense_matrix((gemmepi_dtype)task->g_dtype, layer->m, layer->n);
    if (layer->flags & GEMMEPI_LINEAR_BIAS)
        desc.bias.dtype = (gemmepi_dtype)task->views[GPI__L_BIAS].dtype;
    if (layer->flags & GEMMEPI_LINEAR_DBIAS) {
        desc.epilogue |= GEMMEPI_BGRAD;
        if (layer->flags & GEMMEPI_ACCUMULATE_DBIAS)
            desc.epilogue |= GEMMEPI_ACCUMULATE_BIAS_GRAD;
        desc.bias_grad = layer->dbias;
        if (!desc.bias_grad.dtype && layer->flags & GEMMEPI_LINEAR_BIAS)
            desc.bias_grad.dtype = (gemmepi_dtype)task->views[GPI__L_BIAS].dtype;
        if (!desc.bias_grad.dtype)
            desc.bias_grad.dtype = gpi__default_dtype(GPI__BIAS, layer->y.dtype);
    }
    if (layer->formula) /* which says how wide dY is */
        memset(&desc.aux, 0, sizeof desc.aux);
    status = gpi__normalise(&desc, alignment, &problem);
    if (status)
        return gpi__in_layers_words(status, task->exchanged, "desc.a", "desc.b", "desc.g", "desc.dy");
    gpi__convert_layer_view(task, GPI__L_DBIAS, &problem, GPI__BIAS_GRAD);
    if (layer->formula)
        return columns < 0 ? GEMMEPI_OK : gpi__convert_read(layer, GPI__L_DY, columns, alignment, task);
    gpi__convert_layer_view(task, GPI__L_DY, &problem, GPI__AUX);
    *g = problem;
    return GEMMEPI_OK;
}

/* The epilogue with which dA becomes the G of the layer before: 0 where it is that as it is. */
static void gpi__go_through_before(const gpi__layer_task *task, const gemmepi_matrix *preact,
                                   gemmepi_matmul_desc *desc) {
    if (gpi__is_affine(task->before))
        return;
    desc->epilogue = task->before | GEMMEPI_BACKWARD;
    desc->has_parameter = gpi__default_parameter(task->before) != 0;
    desc->activation_parameter = desc->has_parameter ? task->before_parameter : 0;
    desc->aux = *preact;
}

/* dA's or dB's own rules. */
static gemmepi_status gpi__check_gradient(const gemmepi_linear_desc *layer, int tensor,
                                          const gpi__layer_task *task) {
    int is_da = tensor == GPI__L_DA;
    const gemmepi_matrix *matrix = is_da ? &layer->da : &layer->db, *of = is_da ? &layer->a : &layer->b;
    int is_f64 = layer->a.dtype == GEMMEPI_F64;
    uint32_t accepted = is_f64 ? 1u << GEMMEPI_F64 : GPI__VECTOR_TYPES;
    GPI__INVALID_IF(matrix->transposed && matrix->transposed != of->transposed,
                    "desc.%s.transposed is %d; a gradient is stored as its operand is, so leave it 0%s",
                    gpi__layer_name(task, tensor), matrix->transposed,
                    matrix->transposed == 1 ? "" : GPI__UNINITIALISED);
    GPI__UNSUPPORTED_IF(
        is_da && of->transposed && layer->flags & GEMMEPI_BATCH_INVARIANT,
        "desc.flags has BATCH_INVARIANT and LINEAR_%s, and desc.%s is stored transposed, as its gradient is, whose "
        "rows then depend on m; leave one of the flags out",
        task->exchanged ? "DB" : "DA", gpi__layer_name(task, GPI__L_A));
    GPI__INVALID_IF(matrix->scale.mode != GEMMEPI_SCALE_NONE,
                    "desc.%s.scale.mode is %s (%d); a gradient has no scale", gpi__layer_name(task, tensor),
                    gpi__scale_mode_name(matrix->scale.mode), (int)matrix->scale.mode);
    GPI__INVALID_IF(!gpi__dtype_is_known(matrix->dtype) || !(accepted >> matrix->dtype & 1),
                    "desc.%s.dtype is %d (%s); gradients of a layer in %s are in %s%s",
                    gpi__layer_name(task, tensor), (int)matrix->dtype, gpi__dtype_name(matrix->dtype),
                    gpi__dtype(layer->a.dtype)->name, is_f64 ? "F64" : "F32, F16 or BF16",
                    gpi__dtype_is_known(matrix->dtype) ? "" : GPI__UNINITIALISED);
    return GEMMEPI_OK;
}

/* The product without terms that a gradient is. batch: the number of its items. */
static gemmepi_matmul_desc gpi__product_of_gradient(const gemmepi_linear_desc *layer, int tensor,
                                                    int64_t batch) {
    int is_da = tensor == GPI__L_DA;
    const gemmepi_matrix *of = is_da ? &layer->a : &layer->b;
    int64_t rows = is_da ? layer->m : layer->k, columns = is_da ? layer->k : layer->n;
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = of->transposed ? columns : rows;
    desc.n = of->transposed ? rows : columns;
    desc.batch = batch;
    desc.a.dtype = desc.b.dtype = layer->a.dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    desc.d = is_da ? layer->da : layer->db;
    desc.d.transposed = 0;
    desc.flags = layer->flags & GEMMEPI_BATCH_INVARIANT;
    desc.alignment = layer->alignment;
    return desc;
}

/* dA or dB as the result of a product, of which only its own rules are new. */
static gemmepi_status gpi__convert_gradient(const gemmepi_linear_desc *layer, int tensor, int64_t batch,
                                            size_t alignment, gpi__layer_task *task) {
    int is_da = tensor == GPI__L_DA;
    gemmepi_matmul_desc desc = gpi__product_of_gradient(layer, tensor, batch);
    gpi__problem problem;
    gemmepi_status status = GEMMEPI_OK;
    if (task->lacks_gradient >> (tensor - GPI__L_DA) & 1)
        return GEMMEPI_OK;
    status = gpi__check_gradient(layer, tensor, task);
    if (status || (task->goes_through >> (tensor - GPI__L_DA) & 1) ||
        (tensor == GPI__L_DA && layer->before && layer->before->formula)) /* convert.h makes its problem */
        return status;
    if (is_da && layer->before)
        gpi__go_through_before(task, &layer->before->preact, &desc);
    status = gpi__normalise(&desc, alignment, &problem);
    if (status)
        return gpi__in_layers_words(status, task->exchanged, "desc.a", "desc.b",
                                    is_da ? "desc.da" : "desc.db", "desc.before->preact");
    gpi__convert_layer_view(task, tensor, &problem, GPI__D);
    if (is_da)
        gpi__convert_layer_view(task, GPI__L_BEFORE, &problem, GPI__AUX);
    task->views[tensor].transposed = is_da ? layer->a.transposed : layer->b.transposed;
    return GEMMEPI_OK;
}

/* One batch form for all: see gemmepi_linear_desc. The fields are those of the folded layer. */
static gemmepi_status gpi__check_batch_form(const gemmepi_linear_desc *layer, const gpi__layer_task *task,
                                            int backward) {
    int exchanged = task->exchanged;
    const char *b = exchanged ? "a" : "b", *db = exchanged ? "da" : "db", *da = exchanged ? "db" : "da";
    int shared = task->shares_b;
    int has_bias = (layer->flags & GEMMEPI_LINEAR_BIAS) != 0;
    if (layer->batch == 1)
        return GEMMEPI_OK;
    GPI__INVALID_IF(shared && has_bias && layer->bias.batch_stride,
                    "desc.bias.batch_stride is %lld, but %s is shared by the batch (its stride is 0): "
                    "then bias is too",
                    (long long)layer->bias.batch_stride, b);
    GPI__INVALID_IF(shared && layer->b.scale.batch_stride,
                    "desc.%s.scale.batch_stride is %lld, but %s is shared by the batch (its stride is "
                    "0): then its scale is too",
                    b, (long long)layer->b.scale.batch_stride, b);
    if (!backward)
        return GEMMEPI_OK;
    GPI__INVALID_IF(task->shares_a && layer->a.scale.batch_stride,
                    "desc.%s.scale.batch_stride is %lld, but %s is the sum over the batch (its stride "
                    "is 0): then the scale is shared too",
                    exchanged ? "b" : "a", (long long)layer->a.scale.batch_stride, da);
    GPI__INVALID_IF(layer->flags & GEMMEPI_LINEAR_DB &&
                        !((task->adds_items | task->lacks_gradient) >> GPI__B & 1) &&
                        shared != (layer->db.batch_stride == 0),
                    "desc.%s.batch_stride is %lld and desc.%s.batch_stride %lld; either both are 0 "
                    "(shared by the batch, its gradient a sum over it), or neither is",
                    db, (long long)layer->db.batch_stride, b, (long long)layer->b.batch_stride);
    GPI__INVALID_IF(layer->flags & GEMMEPI_LINEAR_DBIAS && shared && layer->dbias.batch_stride,
                    "desc.dbias.batch_stride is %lld, but %s is shared by the batch (its stride is 0): "
                    "then dbias is the sum over it, with stride 0",
                    (long long)layer->dbias.batch_stride, b);
    GPI__INVALID_IF(layer->flags & GEMMEPI_LINEAR_DBIAS && has_bias &&
                        (layer->dbias.batch_stride == 0) != (layer->bias.batch_stride == 0),
                    "desc.dbias.batch_stride is %lld and desc.bias.batch_stride %lld; either both are "
                    "0, or neither is",
                    (long long)layer->dbias.batch_stride, (long long)layer->bias.batch_stride);
    GPI__UNSUPPORTED_IF(task->shares_a && shared,
                        "desc.%s.batch_stride is 0 where a and b are both the same for all items; the "
                        "gradient is that of the sum of dy over the batch: add dy up, and leave batch 1",
                        da);
    return GEMMEPI_OK;
}

static void gpi__use_layer(gpi__layer_task *task, int tensor) {
    task->used |= 1u << tensor;
    if (tensor <= GPI__L_DY && task->views[tensor].scale)
        task->used |= 1u << GPI__L_SCALE_OF(tensor);
}

static void gpi__write_layer(gpi__layer_task *task, int tensor) {
    gpi__use_layer(task, tensor);
    task->written |= 1u << tensor;
}

/* Whether G needs P. */
static int gpi__reads_p(const gpi__layer_task *task) {
    const gpi__step_formula *own = &task->formulas[GPI__OF_FIRST];
    int i;
    if (!gpi__has_own_formula(task) || own->formula->placed.formula->reads_value)
        return 1;
    for (i = 0; i < (int)sizeof own->beside; i++)
        if (own->beside[i] == GPI__L_PREACT)
            return 1;
    return 0;
}

/* What the gradients of the texts of A and B read beside operands: A or B as it is stored, and what they add to. */
static void gpi__use_beside_gradients(gpi__layer_task *task) {
    int f, i;
    for (f = GPI__OF_DA; f < GPI__LAYER_FORMULAS; f++)
        for (i = 0; i < (int)sizeof task->formulas[f].beside; i++)
            if (GPI__FORMULA(&task->formulas[f]) && task->formulas[f].beside[i] >= 0)
                gpi__use_layer(task, task->formulas[f].beside[i]);
}

/* Which tensors this direction reads and writes. */
static void gpi__use_tensors(gpi__layer_task *task, int backward) {
    uint64_t flags = task->flags;
    int recomputes = (flags & GEMMEPI_LINEAR_RECOMPUTE) != 0 && gpi__reads_p(task);
    if (!backward || recomputes || flags & GEMMEPI_LINEAR_DB)
        gpi__use_layer(task, GPI__L_A);
    if (!backward || recomputes || flags & GEMMEPI_LINEAR_DA)
        gpi__use_layer(task, GPI__L_B);
    if (flags & GEMMEPI_LINEAR_BIAS && (!backward || recomputes))
        gpi__use_layer(task, GPI__L_BIAS);
    if (flags & GEMMEPI_LINEAR_SAVED && backward && gpi__reads_p(task))
        gpi__use_layer(task, GPI__L_PREACT);
    if (flags & GEMMEPI_LINEAR_SAVED && !backward)
        gpi__write_layer(task, GPI__L_PREACT);
    if (flags & GEMMEPI_LINEAR_RESIDUAL && !backward)
        gpi__use_layer(task, GPI__L_RESIDUAL);
    if (backward && task->views[GPI__L_BEFORE].dtype)
        gpi__use_layer(task, GPI__L_BEFORE);
    if (backward)
        gpi__use_beside_gradients(task);
    if (!backward) {
        if (!task->lacks_y)
            gpi__write_layer(task, GPI__L_Y);
        if (task->found_scale)
            gpi__write_layer(task, GPI__L_FOUND_SCALE_Y);
        if (task->found_scale == GEMMEPI_SCALE_TENSOR)
            gpi__write_layer(task, GPI__L_AMAX_HISTORY);
        return;
    }
    if (!task->lacks_y)
        gpi__use_layer(task, GPI__L_DY);
    if (flags & GEMMEPI_LINEAR_DA && !(task->lacks_gradient >> GPI__A & 1))
        gpi__write_layer(task, GPI__L_DA);
    if (flags & GEMMEPI_LINEAR_DB && !(task->lacks_gradient >> GPI__B & 1))
        gpi__write_layer(task, GPI__L_DB);
    if (flags & GEMMEPI_LINEAR_DBIAS)
        gpi__write_layer(task, GPI__L_DBIAS);
}

static gemmepi_status gpi__convert_gradients(const gemmepi_linear_desc *layer, int64_t columns,
                                             size_t alignment, gpi__layer_task *task, gpi__problem *g) {
    gemmepi_status status = gpi__choose_g_dtype(layer, task);
    if (!status)
        status = gpi__convert_upstream(layer, columns, alignment, task, g);
    if (!status && layer->flags & GEMMEPI_LINEAR_DA)
        status = gpi__convert_gradient(layer, GPI__L_DA,
                                       task->shares_a || task->adds_items >> GPI__A & 1 ? 1 : layer->batch,
                                       alignment, task);
    if (!status && layer->flags & GEMMEPI_LINEAR_DB)
        status = gpi__convert_gradient(layer, GPI__L_DB, task->shares_b ? 1 : layer->batch, alignment, task);
    return status;
}

#endif
