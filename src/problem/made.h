/* Operands that text makes: desc.a.formula and desc.b.formula. What is left is a product of what they make, which the rest of
   normalise.h sees; what is stored is put in its place at the end. */
#ifndef GEMMEPI_PROBLEM_MADE_H
#define GEMMEPI_PROBLEM_MADE_H

#include "matrices.h"

/* The desc of the product of what is made. */
typedef struct gpi__desc_of_made {
    gemmepi_matmul_desc desc;
    gemmepi_operand operands[GPI__FORMULA_OPERANDS]; /* those that A's or B's text reads are placeholders */
    gpi__view stored[2], scales[2];                  /* in the caller's order */
} gpi__desc_of_made;

static const gemmepi_matrix *gpi__factor_of_desc(const gemmepi_matmul_desc *desc, int i) {
    return i == GPI__A ? &desc->a : &desc->b;
}

/* >>types */

static gemmepi_dtype gpi__stored_dtype(const gemmepi_matmul_desc *desc, int i) {
    gemmepi_dtype a = desc->a.dtype ? desc->a.dtype : GEMMEPI_F32;
    return i == GPI__B && desc->b.dtype ? desc->b.dtype : a;
}

/* The type that is multiplied. */
static gemmepi_dtype gpi__multiplied_dtype(const gemmepi_matmul_desc *desc, int i) {
    const gemmepi_matrix *matrix = gpi__factor_of_desc(desc, i), *other = gpi__factor_of_desc(desc, !i);
    gemmepi_dtype own = gpi__stored_dtype(desc, i), others = gpi__stored_dtype(desc, !i);
    if (!matrix->formula || own == GEMMEPI_F16 || own == GEMMEPI_BF16)
        return matrix->compute_dtype ? matrix->compute_dtype : own;
    if (matrix->compute_dtype)
        return matrix->compute_dtype;
    if (other->formula && other->compute_dtype)
        others = other->compute_dtype;
    return others == GEMMEPI_F32 || others == GEMMEPI_F16 || others == GEMMEPI_BF16 || others == GEMMEPI_F64
               ? others
               : GEMMEPI_BF16;
}

/* Whether scales are found of what is made. */
static int gpi__finds_factor(const gemmepi_matmul_desc *desc, int i) {
    return (desc->flags & (i == GPI__A ? GEMMEPI_FIND_SCALE_A : GEMMEPI_FIND_SCALE_B)) != 0;
}

static gemmepi_status gpi__check_finding_factor(const gemmepi_matmul_desc *desc, int i,
                                                gemmepi_dtype multiplied) {
    const char *name = gpi__operand_names[i], *flag = i == GPI__A ? "FIND_SCALE_A" : "FIND_SCALE_B";
    const gemmepi_matrix *matrix = gpi__factor_of_desc(desc, i);
    int lines_are_rows = (desc->order == GEMMEPI_ROW_MAJOR) != (matrix->transposed != 0);
    GPI__INVALID_IF(
        matrix->scale.mode != GEMMEPI_SCALE_OUTER && matrix->scale.mode != GEMMEPI_SCALE_VECTOR_128,
        "desc.flags has %s, and desc.%s.scale.mode is %s (%d); scales of what a formula makes are "
        "found for OUTER (2) and VECTOR_128 (3)",
        flag, name, gpi__scale_mode_name(matrix->scale.mode), (int)matrix->scale.mode);
    GPI__INVALID_IF(matrix->scale.batch_stride,
                    "desc.%s.scale.batch_stride is %lld with %s, whose scales are in workspace: leave it 0",
                    name, (long long)matrix->scale.batch_stride, flag);
    GPI__INVALID_IF(
        !gpi__is_fp8((int)multiplied),
        "desc.flags has %s, and %s is multiplied in %s; accepted for desc.%s.compute_dtype are E4M3 "
        "and E5M2",
        flag, name, gpi__dtype_name(multiplied), name);
    GPI__INVALID_IF(lines_are_rows != (i == GPI__A), /* else along k */
                    "desc.flags has %s, and desc.%s.transposed is %d; scales are found along k, which is "
                    "contiguous where it is %d",
                    flag, name, matrix->transposed, !matrix->transposed);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_made_dtypes(const gemmepi_matmul_desc *desc, int i,
                                             gemmepi_dtype multiplied) {
    const char *name = gpi__operand_names[i];
    gemmepi_dtype stored = gpi__stored_dtype(desc, i);
    gemmepi_status status = gpi__is_packed((int)stored) ? GEMMEPI_OK : gpi__check_factor_dtype(name, stored);
    if (status)
        return status;
    GPI__INVALID_IF(!((GPI__MATRIX_TYPES | 1u << GEMMEPI_F64) >> multiplied & 1) ||
                        gpi__is_left_out((int)multiplied),
                    "desc.%s.compute_dtype is %s (%d); accepted are F32, F64, F16, BF16, E4M3, E5M2 and I8",
                    name, gpi__dtype_name(multiplied), (int)multiplied);
    GPI__INVALID_IF((stored == GEMMEPI_F64) != (multiplied == GEMMEPI_F64),
                    "desc.%s.dtype is %s, and %s is multiplied; F64 goes only with F64", name,
                    gpi__dtype(stored)->name, gpi__dtype(multiplied)->name);
    if (gpi__finds_factor(desc, i))
        return gpi__check_finding_factor(desc, i, multiplied);
    GPI__INVALID_IF(
        gpi__factor_of_desc(desc, i)->scale.mode > GEMMEPI_SCALE_TENSOR,
        "desc.%s.scale.mode is %s (%d) with desc.%s.formula; accepted are NONE and TENSOR: other scales "
        "are operands of the formula, or found of what it makes (FIND_SCALE_A, FIND_SCALE_B)",
        name, gpi__scale_mode_name(gpi__factor_of_desc(desc, i)->scale.mode),
        (int)gpi__factor_of_desc(desc, i)->scale.mode, name);
    return GEMMEPI_OK;
}

/* >>the formula as one of a result: D is what is multiplied, v what is stored */

/* A number that nothing reads, so that operands keep their places. */
static void gpi__put_placeholder(gemmepi_operand *operand) {
    const char *name = operand->name;
    memset(operand, 0, sizeof *operand);
    operand->name = name;
    operand->kind = GEMMEPI_NUMBER;
}

/* Whether items differ though one is stored for all. */
static int gpi__varies_by_item(const gpi__formula *formula, const gemmepi_operand *operands) {
    int i, varies = (formula->indices >> GPI__INDEX_ITEM & 1) != 0;
    for (i = 0; i < formula->operand_count; i++)
        varies = varies || (formula->operands[i].used && operands[i].batch_stride);
    return varies;
}

/* Elements along the axis that is contiguous, of which `made` are made; -1: that is not whole. */
static int64_t gpi__stored_length(const gpi__formula *formula, int64_t made) {
    int width = formula->operands[GPI__RESULT].width;
    return width == GEMMEPI_WIDTH_HALF ? gpi__offset(made, formula->parts, 0)
           : width == GEMMEPI_WIDTH_N  ? made
           : made % formula->parts     ? -1
                                       : made / formula->parts;
}

/* What is stored, checked like any matrix. */
static gemmepi_status gpi__convert_stored(gpi__problem *problem, const gemmepi_matmul_desc *desc, int i,
                                          const int64_t extents[2], gpi__desc_of_made *own) {
    gpi__view *view = &problem->views[i], *scale = &problem->views[GPI__SCALE_OF(i)];
    gemmepi_matrix matrix = *gpi__factor_of_desc(desc, i);
    int64_t lines = extents[matrix.transposed != 0], length = extents[!matrix.transposed], stride;
    gemmepi_status status;
    if (gpi__finds_factor(desc, i))
        matrix.scale.mode = GEMMEPI_SCALE_NONE;
    stride = gpi__offset(lines, matrix.ld ? matrix.ld : length, 0);
    if (problem->grouping.groups && i == GPI__B && !matrix.batch_stride && stride > 0) /* one after another */
        matrix.batch_stride = stride;
    status = gpi__convert_matrix(problem, i, &matrix, gpi__stored_dtype(desc, i), extents, desc->order);
    if (!status)
        status = gpi__check_packed(view, gpi__operand_names[i], "", matrix.ld, matrix.batch_stride);
    own->stored[i] = *view;
    own->scales[i] = *scale;
    memset(view, 0, sizeof *view);
    memset(scale, 0, sizeof *scale);
    return status;
}

/* Lines of what is made begin at multiples of 16 elements, so that every kernel reads them as it likes. */
static int64_t gpi__ld_of_made(int64_t length) {
    return length ? gpi__offset((length + 15) / 16, 16, 0) : 16;
}

/* The scales that are found of it, one item's after another; of nothing there are none. */
static void gpi__lay_out_scale(gemmepi_scale_mode mode, int64_t outer, int64_t k, int64_t items,
                               gemmepi_scale *scale) {
    int64_t count = gpi__offset(outer, mode == GEMMEPI_SCALE_VECTOR_128 ? gpi__blocks_of_128(k) : 1, 0);
    scale->mode = k ? mode : GEMMEPI_SCALE_NONE;
    scale->batch_stride = items > 1 && k && count > 0 ? count : 0;
}

static void gpi__lay_out_made(const gpi__formula_desc *from, int64_t rows, int64_t columns, int64_t items,
                              gemmepi_matrix *made) {
    int64_t lines = from->exchanged ? columns : rows;
    memset(made, 0, sizeof *made);
    made->ld = gpi__ld_of_made(from->exchanged ? rows : columns);
    made->batch_stride = items > 1 ? gpi__offset(lines ? lines : 1, made->ld, 0) : 0;
    if (made->batch_stride < 0)
        made->batch_stride = 0; /* too large: the product's own sizes are refused */
}

/* Makes the operand's formula of its graph, and says in own how the product of what it makes has it. */
static gemmepi_status gpi__make_operand(const gemmepi_allocator *allocator, const gpi__graph *graph,
                                        const gpi__formula *formula, const gemmepi_matmul_desc *desc, int i,
                                        gpi__problem *problem, gpi__desc_of_made *own) {
    const gpi__formula_desc *from = graph->desc;
    gemmepi_matrix *made = i == GPI__A ? &own->desc.a : &own->desc.b;
    int64_t rows_a = problem->grouping.rows_a ? problem->grouping.rows_a : desc->m;
    int64_t extents[2] = {i == GPI__A ? rows_a : desc->k, i == GPI__A ? desc->k : desc->n},
            items = problem->batch;
    int varies = gpi__varies_by_item(formula, desc->operands),
        is_one = problem->grouping.groups && i == GPI__A;
    int64_t *along = &extents[!from->exchanged];
    int64_t placed[5];
    gemmepi_matmul_desc result; /* of which what is stored is v */
    gemmepi_status status;
    gpi__view d;
    GPI__UNSUPPORTED_IF(
        is_one && varies,
        "it reads item, or an operand with a batch_stride, but a is one matrix for all groups");
    if (is_one || (!problem->grouping.groups && !gpi__factor_of_desc(desc, i)->batch_stride && !varies))
        items = 1;
    gpi__lay_out_made(from, extents[0], extents[1], items, made);
    made->transposed = gpi__factor_of_desc(desc, i)->transposed;
    made->dtype = gpi__multiplied_dtype(desc, i);
    if (gpi__finds_factor(desc, i))
        gpi__lay_out_scale(gpi__factor_of_desc(desc, i)->scale.mode, extents[i == GPI__B], desc->k, items,
                           &made->scale);
    *along = gpi__stored_length(formula, *along);
    GPI__INVALID_IF(
        *along < 0,
        "it makes %d columns of one (rows where that is contiguous), which are not a multiple of that",
        (int)formula->parts);
    status = gpi__convert_stored(problem, desc, i, extents, own);
    if (status)
        return status;
    memset(&result, 0, sizeof result);
    result.order = from->exchanged ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    result.formula = from->text;
    result.operands = from->operands;
    result.operand_count = from->operand_count;
    memset(&d, 0, sizeof d);
    d.ld = made->ld;
    d.batch_stride = made->batch_stride;
    placed[0] = extents[from->exchanged], placed[1] = *along, placed[2] = desc->k,
    placed[3] = placed[4] = items;
    status = gpi__make_formula(allocator, &result, graph, (int)from->accumulator, from->d,
                               &problem->made[i].formula);
    if (!status)
        status = gpi__check_formula_extents(formula, from->text, extents[from->exchanged], *along, items);
    return status ? status : gpi__place_formula(problem->made[i].formula, &result, placed, &d);
}

/* Whether an operand has a width along the axis that is not contiguous here, as one that another text reads may have. */
static int gpi__is_wide_across(const gemmepi_operand *operand, int exchanged) {
    return (operand->width == GEMMEPI_WIDTH_HALF || operand->width == GEMMEPI_WIDTH_DOUBLE) &&
           (int)operand->kind == (exchanged ? GEMMEPI_PER_COLUMN : GEMMEPI_PER_ROW);
}

static void gpi__copy_operands(const gemmepi_matmul_desc *desc, gpi__desc_of_made *own) {
    if (desc->operand_count)
        memcpy(own->operands, desc->operands, (size_t)desc->operand_count * sizeof own->operands[0]);
}

/* A's or B's formula. */
static gemmepi_status gpi__parse_operand(const gemmepi_allocator *allocator, const gemmepi_matmul_desc *desc,
                                         int i, gpi__problem *problem, gpi__desc_of_made *own) {
    const gemmepi_matrix *matrix = gpi__factor_of_desc(desc, i);
    gpi__formula_work *work = (gpi__formula_work *)gpi__new(allocator, sizeof *work);
    gpi__formula *formula = NULL;
    gpi__formula_desc from;
    gemmepi_status status;
    int o;
    if (!work)
        return GEMMEPI_OUT_OF_MEMORY;
    memset(&from, 0, sizeof from);
    from.text = matrix->formula;
    from.operands = own->operands;
    from.operand_count = desc->operand_count;
    from.value = gpi__operand_names[i];
    from.result = i == GPI__A ? "op(A)" : "op(B)"; /* as explain prints it */
    from.without_result = from.is_of_operand = 1;
    from.stored =
        matrix->scale.mode == GEMMEPI_SCALE_TENSOR ? GEMMEPI_DTYPE_DEFAULT : gpi__stored_dtype(desc, i);
    from.exchanged = (desc->order == GEMMEPI_COLUMN_MAJOR) != (matrix->transposed != 0);
    from.d = gpi__finds_factor(desc, i) ? GEMMEPI_F32 : gpi__multiplied_dtype(desc, i);
    from.accumulator = from.d == GEMMEPI_F64 ? GEMMEPI_F64 : GEMMEPI_F32;
    gpi__copy_operands(desc, own);
    for (o = 0; o < desc->operand_count; o++) {
        if (own->operands[o].output) /* it assigns none */
            gpi__put_placeholder(&own->operands[o]);
        if (gpi__is_wide_across(&own->operands[o], from.exchanged))
            own->operands[o].width = GEMMEPI_WIDTH_N;
    }
    status = gpi__parse_text_of_operand(&work->parser, &work->graph, &from, own->operands);
    if (!status)
        status = gpi__formula_of(allocator, &work->graph, &formula);
    if (!status && !formula->reads_value)
        status =
            gpi__fail(GEMMEPI_INVALID_ARGUMENT, "it does not read %s, which is what is stored", from.value);
    for (o = 0; !status && o < desc->operand_count; o++) {
        if (!formula->operands[o].used)
            gpi__put_placeholder(&own->operands[o]);
        else if (desc->operands[o].output)
            status = gpi__fail(GEMMEPI_INVALID_ARGUMENT, "it reads %s, an output, which is not there yet",
                               desc->operands[o].name);
        else if (gpi__is_wide_across(&desc->operands[o], from.exchanged)) {
            own->operands[o].width = desc->operands[o].width;
            status = gpi__check_fields_of_operand(&from, o);
        }
    }
    if (!status)
        status = gpi__make_operand(allocator, &work->graph, formula, desc, i, problem, own);
    gpi__delete(allocator, formula);
    gpi__delete(allocator, work);
    return status;
}

/* The sentence of its formula as of desc.a's; those of other fields are as they are. */
static gemmepi_status gpi__in_words_of_operand(gemmepi_status status, int i) {
    const char *text = "desc.formula";
    char own[GPI__ERROR_TEXT_SIZE];
    memcpy(own, gpi__error_text, sizeof own);
    GPI__REFUSE_IF(strncmp(own, text, strlen(text)) == 0, status, "desc.%s.formula%s", gpi__operand_names[i],
                   own + strlen(text));
    return strncmp(own, "desc.", 5) == 0
               ? status
               : gpi__fail(status, "desc.%s.formula: %s", gpi__operand_names[i], own);
}

/* Operands of rows or columns that a text before has read are not for this one: kept is its formula. */
static gemmepi_status gpi__check_apart(const gemmepi_matmul_desc *desc, const gpi__kept_formula *first,
                                       const gpi__kept_formula *second) {
    int o;
    for (o = 0; first && second && o < desc->operand_count; o++)
        GPI__INVALID_IF(
            desc->operands[o].kind >= GEMMEPI_PER_ROW && first->placed.formula->operands[o].used &&
                second->placed.formula->operands[o].used,
            "desc.operands[%d] (%s) is read by two formulas of desc, whose rows and columns are others: "
            "list it twice, under two names",
            o, desc->operands[o].name);
    return GEMMEPI_OK;
}

/* Makes own of desc: as if what the formulas of A and B make were stored. */
static gemmepi_status gpi__make_operands(const gemmepi_allocator *allocator, const gemmepi_matmul_desc *desc,
                                         gpi__problem *problem, gpi__desc_of_made *own) {
    gemmepi_status status =
        gpi__check_operand_list(desc->operands, desc->operand_count, GPI__FORMULA_OPERANDS);
    int i, o;
    if (status)
        return status;
    own->desc = *desc;
    own->desc.a.dtype = gpi__multiplied_dtype(desc, GPI__A);
    own->desc.b.dtype = gpi__multiplied_dtype(desc, GPI__B);
    for (i = GPI__A; i <= GPI__B && !status; i++) {
        if (!gpi__factor_of_desc(desc, i)->formula)
            continue;
        status = gpi__check_made_dtypes(desc, i, gpi__multiplied_dtype(desc, i));
        if (!status)
            status = gpi__parse_operand(allocator, desc, i, problem, own);
        if (status)
            return gpi__in_words_of_operand(status, i);
    }
    status = gpi__check_apart(desc, problem->made[0].formula, problem->made[1].formula);
    gpi__copy_operands(desc, own);
    for (o = 0; o < desc->operand_count; o++)
        if (desc->operands[o].kind >= GEMMEPI_PER_ROW && gpi__formula_with(problem, o))
            gpi__put_placeholder(&own->operands[o]);
    own->desc.operands = own->operands;
    if (!desc->formula)
        own->desc.operands = NULL, own->desc.operand_count = 0;
    return status;
}

/* Puts what is stored in the place of what is made of it. */
static gemmepi_status gpi__put_stored(const gemmepi_matmul_desc *desc, gpi__problem *problem,
                                      const gpi__desc_of_made *own) {
    gemmepi_status status;
    int i;
    problem->flags &= ~(GEMMEPI_FIND_SCALE_A | GEMMEPI_FIND_SCALE_B); /* made has what they say */
    if (problem->exchanged)
        gpi__exchange_made(problem);
    for (i = GPI__A; i <= GPI__B; i++)
        if (problem->made[i].formula) {
            problem->made[i].view = problem->views[i];
            problem->made[i].view.alignment = 256; /* workspace's */
            problem->made[i].scale = problem->views[GPI__SCALE_OF(i)];
            problem->views[i] = own->stored[problem->exchanged ? !i : i];
            problem->views[GPI__SCALE_OF(i)] = own->scales[problem->exchanged ? !i : i];
        }
    status = gpi__check_apart(desc, problem->formula, problem->made[0].formula);
    return status ? status : gpi__check_apart(desc, problem->formula, problem->made[1].formula);
}

#endif
