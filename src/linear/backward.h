/* The steps of a layer's backward: G, and the gradients. */
#ifndef GEMMEPI_LINEAR_BACKWARD_H
#define GEMMEPI_LINEAR_BACKWARD_H

#include "factors.h"

/* >>G */

/* Whether dY may stand for G: nothing is to be multiplied or rounded, and its items lie as the products want them. */
static int gpi__dy_is_g(const gpi__layer_task *task) {
    gemmepi_matrix dy = gpi__layer_matrix(task, GPI__L_DY);
    uint64_t flags = task->flags;
    if (!gpi__is_affine(task->epilogue) || (int32_t)dy.dtype != task->g_dtype || task->views[GPI__L_DY].scale)
        return 0;
    if (task->batch <= 1)
        return 1;
    return !(task->shares_b && flags & (GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS) &&
             !gpi__stacks_rows(&dy, task->batch, task->m)) &&
           !(task->shares_a && flags & GEMMEPI_LINEAR_DA && !gpi__stacks_columns(&dy, task->batch, task->n));
}

/* G = dY act'(P) of a P that was saved, and dbias on the way. */
static gemmepi_status gpi__add_pass(gpi__linear_plan *layer, const gemmepi_matrix *g) {
    const gpi__layer_task *task = &layer->task;
    const gpi__view *dy = &task->views[GPI__L_DY];
    gpi__step *step = gpi__new_step(layer, GPI__STEP_PASS, "G");
    gemmepi_matmul_desc desc = gpi__step_desc(task, task->m, dy->length, 1, task->batch);
    gemmepi_status status;
    desc.flags &= GEMMEPI_BATCH_INVARIANT;
    desc.epilogue = task->epilogue;
    if (!gpi__is_affine(task->epilogue)) {
        desc.epilogue |= GEMMEPI_BACKWARD;
        desc.aux = gpi__layer_matrix(task, GPI__L_PREACT);
        step->sources[GPI__AUX] = GPI__L_PREACT;
        step->sources[GPI__SCALE_AUX] = GPI__L_SCALE_PREACT;
    }
    gpi__give_parameter(task, &desc);
    desc.a.dtype = dy->dtype == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    desc.d = *g;
    step->sources[GPI__D] = GPI__G;
    gpi__leave_dbias(task, GEMMEPI_BGRAD, &desc, step);
    step->given = *dy;
    step->given_source = GPI__L_DY;
    status = gpi__normalise_step(layer, step, &desc, &step->problem);
    gpi__mark_g(task, &step->problem);
    if (dy->scale) { /* the pass multiplies by it as by that of an operand */
        step->problem.views[GPI__A].scale = dy->scale;
        step->problem.views[GPI__SCALE_A] = task->views[GPI__L_SCALE_DY];
        step->sources[GPI__SCALE_A] = GPI__L_SCALE_DY;
    }
    return status ? status : gpi__build_kernels(layer, step);
}

/* converted: the problem of what makes G, where that is a product or a formula. */
static gemmepi_status gpi__build_g(gpi__linear_plan *layer, const gpi__problem *converted,
                                   gpi__factors *factors) {
    const gpi__layer_task *task = &layer->task;
    int64_t elements;
    factors->g = gpi__g_matrix(task);
    factors->g_source = GPI__G;
    if (!gpi__has_own_formula(task) && (task->m == 0 || task->n == 0))
        return GEMMEPI_OK; /* it has no element, and no step makes it */
    if (!gpi__has_own_formula(task) && gpi__dy_is_g(task)) {
        factors->g = gpi__layer_matrix(task, GPI__L_DY);
        factors->g_source = GPI__L_DY;
        return GEMMEPI_OK;
    }
    elements = gpi__offset(task->m, factors->g.ld, 0);
    elements = elements < 0 || task->shares_a ? elements : gpi__offset(task->batch, elements, 0);
    GPI__INVALID_IF(elements < 0, "G has more than 2^56 elements");
    if (gpi__has_own_formula(task) ? (task->flags & GPI__LINEAR_OUTPUTS) != 0 : !gpi__wants_only_sums(task))
        layer->temporary_bytes[0] =
            gpi__bytes_for(elements, gemmepi_dtype_size((gemmepi_dtype)task->g_dtype));
    if (!gpi__has_own_formula(task) && !(task->flags & GEMMEPI_LINEAR_RECOMPUTE))
        return gpi__add_pass(layer, &factors->g);
    return gpi__writes_nothing(converted) ? GEMMEPI_OK : gpi__add_converted(layer, converted, GPI__G, "G");
}

/* >>gradients */

/* What dA's and dB's products have in common: D, which they overwrite or add to. */
static gpi__step *gpi__new_gradient(gpi__linear_plan *layer, int tensor, gemmepi_matmul_desc *desc) {
    const gpi__layer_task *task = &layer->task;
    int is_da = tensor == GPI__L_DA, added = gpi__added_of(task, tensor);
    gpi__step *step = gpi__new_step(layer, GPI__STEP_PRODUCT, is_da ? "dA" : "dB");
    desc->d = gpi__gradient_matrix(task, tensor);
    desc->d.transposed = 0;
    desc->flags = is_da ? task->flags & GEMMEPI_BATCH_INVARIANT : 0; /* dB is a sum over m */
    step->sources[GPI__D] = (int8_t)(added < 0 ? tensor : GPI__ADDED + added);
    step->formula = (int8_t)gpi__nth_of_gradient(tensor);
    step->accumulates = added < 0 && !gpi__has_formula_of(task, tensor) && /* which adds by itself */
                        task->flags & (is_da ? GEMMEPI_ACCUMULATE_DA : GEMMEPI_ACCUMULATE_DB);
    if (step->accumulates) {
        desc->flags |= GEMMEPI_ACCUMULATE;
        step->sources[GPI__C] = (int8_t)tensor;
    }
    return step;
}

/* D = L R as it stands, or the transposed product, D^T = R^T L^T, where D is stored transposed. */
static void gpi__turn_product(gemmepi_matmul_desc *desc, gpi__step *step) {
    gemmepi_matrix left = desc->a;
    int64_t m = desc->m;
    int8_t source = step->sources[GPI__A], scale = step->sources[GPI__SCALE_A];
    desc->a = desc->b;
    desc->b = left;
    desc->a.transposed = !desc->a.transposed;
    desc->b.transposed = !desc->b.transposed;
    desc->m = desc->n;
    desc->n = m;
    step->sources[GPI__A] = step->sources[GPI__B];
    step->sources[GPI__B] = source;
    step->sources[GPI__SCALE_A] = step->sources[GPI__SCALE_B];
    step->sources[GPI__SCALE_B] = scale;
    desc->epilogue = gpi__callers_epilogue(desc->epilogue, 1);
}

/* Multiplies dA by the derivative of the layer before, in its product. stacks: whether items were one after another so far. */
static int gpi__multiply_by_before(const gpi__layer_task *task, int stacks, gemmepi_matmul_desc *desc,
                                   gpi__step *step) {
    gemmepi_matrix preact = gpi__layer_matrix(task, GPI__L_BEFORE);
    if (gpi__is_affine(task->before))
        return stacks;
    gpi__go_through_before(task, &preact, desc);
    step->sources[GPI__AUX] = GPI__L_BEFORE;
    step->sources[GPI__SCALE_AUX] = GPI__L_SCALE_BEFORE;
    return stacks && gpi__stacks_rows(&preact, task->batch, task->m) && !preact.scale.batch_stride;
}

/* dA's product, or dB's, whose D and formula are those of the problem that gpi__convert_layer has made: by the gradient of the formula of the
   layer before, or of what makes the operand. desc: without both. */
static gemmepi_status gpi__add_gradient_by_formula(gpi__linear_plan *layer, gemmepi_matmul_desc *desc,
                                                   const gpi__problem *formula, gpi__step *step) {
    gpi__problem problem;
    gemmepi_status status;
    desc->d = gpi__dense_matrix(desc->d.dtype, desc->m, desc->n);
    status = gpi__normalise_step(layer, step, desc, &problem);
    problem.formula = formula->formula;
    problem.views[GPI__D] = formula->views[GPI__D];
    gpi__list_operands(&problem);
    return status ? status : gpi__build_step(layer, &problem, step);
}

/* dA = G op(B)^T: one product of all items where they are stacked, or where dA sums over them. formula: the problem of what comes behind,
   if the layer before has a formula. */
static gemmepi_status gpi__add_da(gpi__linear_plan *layer, const gpi__problem *formula,
                                  const gpi__factors *factors) {
    const gpi__layer_task *task = &layer->task;
    gemmepi_matrix da = gpi__gradient_matrix(task, GPI__L_DA);
    int over_items = task->shares_a, stacks;
    gemmepi_matmul_desc desc = gpi__step_desc(task, task->m, task->k, task->n, over_items ? 1 : task->batch);
    gpi__step *step = gpi__new_gradient(layer, GPI__L_DA, &desc);
    desc.a = factors->g;
    desc.b = factors->b;
    desc.b.transposed = !desc.b.transposed;
    stacks = !over_items && task->shares_b && task->batch > 1 && !gpi__has_formula_of(task, GPI__L_DA) &&
             gpi__stacks_rows(&desc.a, task->batch, task->m) && gpi__stacks_rows(&da, task->batch, task->m);
    stacks = gpi__multiply_by_before(task, stacks, &desc, step);
    if (over_items)
        desc.k = gpi__times(task->batch, task->n);
    if (stacks) {
        desc.m = gpi__times(task->batch, task->m);
        desc.batch = 1;
    }
    desc.compute =
        gpi__gradient_compute((gemmepi_compute)task->compute, (int)desc.a.dtype, (int)desc.b.dtype);
    step->sources[GPI__A] = (int8_t)factors->g_source;
    step->sources[GPI__B] = (int8_t)factors->b_source;
    step->sources[GPI__SCALE_B] = GPI__L_SCALE_B;
    if (da.transposed)
        gpi__turn_product(&desc, step);
    if (gpi__has_formula_of(task, GPI__L_DA))
        return gpi__add_gradient_by_formula(layer, &desc, formula, step);
    return gpi__build_product_step(layer, step, &desc);
}

/* dB = op(A)^T G, and dbias where nothing else leaves it. */
static void gpi__fill_db(const gpi__layer_task *task, const gpi__factors *factors, int sums_dbias,
                         gemmepi_matmul_desc *desc, gpi__step *step) {
    desc->a = factors->a;
    desc->a.transposed = !desc->a.transposed;
    desc->b = factors->g;
    desc->compute =
        gpi__gradient_compute((gemmepi_compute)task->compute, (int)desc->a.dtype, (int)desc->b.dtype);
    step->sources[GPI__A] = (int8_t)factors->a_source;
    step->sources[GPI__B] = (int8_t)factors->g_source;
    step->sources[GPI__SCALE_A] = GPI__L_SCALE_A;
    if (sums_dbias)
        gpi__leave_dbias(task, GEMMEPI_BGRAD_B, desc, step);
}

/* The product that dB is, of `rows` rows of op(A)^T: one sum over all items, or an item for each. */
static gemmepi_matmul_desc gpi__db_desc(const gpi__layer_task *task, int64_t rows, int over_items) {
    return gpi__step_desc(task, rows, task->n, over_items ? gpi__times(task->batch, task->m) : task->m,
                          over_items ? 1 : task->batch);
}

/* gemm_sm90.cu sums G on the way. By cuBLASLt dbias costs 23, 9 and 121 us at m 8192 and (n, k) = (3072, 768), (768, 3072),
   (14336, 4096) in BF16 on an H200, and an element-wise sum of G 25, 13 and 92. */
static gemmepi_status gpi__add_db(gpi__linear_plan *layer, const gpi__problem *formula,
                                  const gpi__factors *factors, int sums_dbias) {
    const gpi__layer_task *task = &layer->task;
    gemmepi_matmul_desc desc = gpi__db_desc(task, task->k, gpi__sums_db_over_items(task));
    gpi__step *step = gpi__new_gradient(layer, GPI__L_DB, &desc);
    gpi__fill_db(task, factors, sums_dbias, &desc, step);
    if (task->views[GPI__L_DB].transposed)
        gpi__turn_product(&desc, step);
    if (gpi__has_formula_of(task, GPI__L_DB))
        return gpi__add_gradient_by_formula(layer, &desc, formula, step);
    return gpi__build_product_step(layer, step, &desc);
}

/* dbias as the sums of G's columns alone: those of a product that is not made. */
static gemmepi_status gpi__add_dbias(gpi__linear_plan *layer, const gpi__factors *factors) {
    gpi__step *step = gpi__new_step(layer, GPI__STEP_SUM, "dbias");
    gpi__factors sums = *factors;
    gemmepi_matmul_desc desc = gpi__db_desc(&layer->task, 1, layer->task.shares_b);
    gemmepi_status status;
    memset(&sums.a, 0, sizeof sums.a);
    sums.a.dtype = sums.g.dtype;
    desc.flags = 0;
    gpi__fill_db(&layer->task, &sums, 1, &desc, step);
    desc.d = gpi__dense_matrix(sums.g.dtype, 1, desc.n);
    status = gpi__normalise_step(layer, step, &desc, &step->problem);
    return status ? status : gpi__build_kernels(layer, step);
}

/* >>sums of what is in workspace */

/* Whole blocks, or the rest (is_rest) of `all` elements along an axis, of which `block` become one. */
typedef struct gpi__part_of_axis {
    int64_t blocks, block, first;
} gpi__part_of_axis;

static gpi__part_of_axis gpi__part_of_axis_of(int64_t all, int64_t block, int is_rest) {
    gpi__part_of_axis part;
    part.blocks = is_rest ? all % block != 0 : all / block;
    part.block = is_rest ? all % block : block;
    part.first = is_rest ? all / block : 0;
    return part;
}

/* As BIAS_GRAD over a tensor of five axes: items, rows and columns of blocks, and those inside of them. */
static void gpi__fill_sum(const gpi__layer_task *task, const gpi__added *added, const gpi__part_of_axis *rows,
                          const gpi__part_of_axis *columns, gpi__task *sum) {
    gpi__operand *a = &sum->operands[GPI__IN_A], *y = &sum->operands[GPI__OUT_Y];
    const gpi__view *from = &added->from, *to = &added->to;
    const int64_t shape[5] = {task->batch, rows->blocks, rows->block, columns->blocks, columns->block};
    const int64_t strides[5] = {from->batch_stride, rows->block * from->ld, from->ld, columns->block, 1};
    memset(sum, 0, sizeof *sum);
    sum->tag = -1;
    sum->operation = GEMMEPI_OP_BIAS_GRAD;
    sum->flags = added->accumulates ? GEMMEPI_ACCUMULATE : 0;
    sum->accumulator = from->dtype;
    sum->alignment = task->alignment;
    sum->used = sum->given = GPI__BIT_A | GPI__BIT_Y;
    sum->rank = 5;
    memcpy(sum->shape, shape, sizeof shape);
    a->dtype = from->dtype;
    a->pointer = GPI__IN_A;
    a->offset = (rows->first * added->rows * from->ld + columns->first * added->columns) * from->bits / 8;
    memcpy(a->stride, strides, sizeof strides);
    y->dtype = to->dtype;
    y->pointer = GPI__OUT_Y;
    y->offset = (rows->first * to->ld + columns->first) * to->bits / 8;
    y->stride[0] = to->batch_stride;
    y->stride[1] = to->ld;
    y->stride[3] = 1;
    y->is_sum = 1;
    y->summed = 1 << 2 | 1 << 4 | (to->batch_stride == 0);
}

/* The i-th of what is added up. */
static gemmepi_status gpi__add_up(gpi__linear_plan *layer, int i) {
    const gpi__layer_task *task = &layer->task;
    const gpi__added *added = &task->added[i];
    const gpi__view *from = &added->from;
    gemmepi_status status = GEMMEPI_OK;
    int part;
    layer->temporary_bytes[GPI__ADDED + i - GPI__G] =
        gpi__bytes_for(gpi__times(gpi__times(from->lines, from->ld), task->batch), (size_t)from->bits / 8);
    for (part = 0; part < GPI__STEPS_OF_SUM && !status; part++) {
        gpi__part_of_axis rows = gpi__part_of_axis_of(from->lines, added->rows, part & 1);
        gpi__part_of_axis columns = gpi__part_of_axis_of(from->length, added->columns, part >> 1);
        gpi__step *step;
        gpi__task sum;
        if (!rows.blocks || !columns.blocks)
            continue;
        step = gpi__new_step(layer, GPI__STEP_COPY,
                             added->rows * added->columns == 1 ? "sums over items" : "sums of blocks");
        gpi__fill_sum(task, added, &rows, &columns, &sum);
        status = gpi__build_elementwise_step(layer, step, &sum);
        step->sources[GPI__A] = (int8_t)(GPI__ADDED + i);
        step->sources[GPI__D] = (int8_t)added->tensor;
    }
    return status;
}

/* A gradient without an element has no step, but where its formula has other outputs that have. */
static int gpi__has_step_of(const gpi__layer_task *task, const gpi__layer_problems *problems, int gradient) {
    if (!(task->flags & (gradient == GPI__L_DA ? GEMMEPI_LINEAR_DA : GEMMEPI_LINEAR_DB)))
        return 0;
    if (gpi__has_formula_of(task, gradient))
        return !gpi__writes_nothing(&problems->of[gpi__nth_of_gradient(gradient)]);
    return (gradient == GPI__L_DA ? task->m : task->n) != 0 && task->k != 0;
}

/* Of one without a step: the axes that its product would sum over may be longer than any product's. Where it
   has one, batch * m * n is a number of elements. */
static gemmepi_status gpi__build_backward(gpi__linear_plan *layer, const gpi__layer_problems *problems) {
    const gpi__layer_task *task = &layer->task;
    gpi__factors factors;
    gemmepi_status status = gpi__build_factors(layer, &factors);
    int has_da = gpi__has_step_of(task, problems, GPI__L_DA),
        has_db = gpi__has_step_of(task, problems, GPI__L_DB);
    int before = layer->step_count, sums_dbias, with_db, i;
    if (!status)
        status = gpi__build_g(layer, &problems->of[GPI__OF_FIRST], &factors);
    /* dY itself, or no element at all, leaves no sums */
    sums_dbias = task->flags & GEMMEPI_LINEAR_DBIAS && layer->step_count == before;
    with_db = has_db && !gpi__has_formula_of(task, GPI__L_DB) && !(task->adds_items >> GPI__B & 1);
    if (!status && has_da)
        status = gpi__add_da(layer, &problems->of[GPI__OF_DA], &factors);
    if (!status && has_db)
        status = gpi__add_db(layer, &problems->of[GPI__OF_DB], &factors, sums_dbias && with_db);
    if (!status && sums_dbias && !with_db && task->n != 0)
        status = gpi__add_dbias(layer, &factors);
    for (i = 0; i < task->added_count && !status; i++)
        status = gpi__add_up(layer, i);
    return status;
}

#endif
