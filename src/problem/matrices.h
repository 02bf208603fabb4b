/* The matrices and vectors of a desc: their types, where they lie, and the arithmetic that follows. */
#ifndef GEMMEPI_PROBLEM_MATRICES_H
#define GEMMEPI_PROBLEM_MATRICES_H

#include "scales.h"

static void gpi__append_types(gpi__text *text, uint32_t types) {
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__dtypes); i++)
        if (types >> i & 1 && !gpi__is_left_out((int)i))
            gpi__append(text, "%s%s", text->length ? ", " : "", gpi__dtypes[i].name);
}

static gemmepi_status gpi__check_is_dtype(const char *name, gemmepi_dtype dtype) {
    GPI__UNSUPPORTED_IF(gpi__is_left_out((int)dtype), "desc.%s.dtype is " GPI__WITHOUT_FP8, name,
                        gpi__dtype(dtype)->name);
    GPI__INVALID_IF(
        !gpi__dtype_is_known(dtype),
        "desc.%s.dtype is %d, which is no gemmepi_dtype: accepted are 0 to 8 (GEMMEPI_F32 and so on)%s", name,
        (int)dtype, GPI__UNINITIALISED);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_side_dtype(const gpi__problem *problem, int operand, gemmepi_dtype dtype) {
    char accepted[128];
    gpi__text text = gpi__text_in(accepted, sizeof accepted);
    uint32_t types = gpi__side_types(problem, operand);
    const char *name = gpi__operand_names[operand];
    gemmepi_status status = gpi__check_is_dtype(name, dtype);
    if (status || types >> dtype & 1)
        return status;
    gpi__append_types(&text, types);
    GPI__INVALID_IF(operand == GPI__D, "desc.d.dtype is %s; with %s and %s operands accepted: %s%s",
                    gpi__dtype(dtype)->name, gpi__type(problem->views[GPI__A].dtype),
                    gpi__type(problem->views[GPI__B].dtype), accepted, gpi__where_it_goes((int)dtype));
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s.dtype is %s; with a result in %s accepted: %s%s",
                     name, gpi__dtype(dtype)->name, gpi__type(problem->views[GPI__D].dtype), accepted,
                     gpi__where_it_goes((int)dtype));
}

/* What desc leaves to a: a's, and BF16 where that is fp8 and D is said to have neither a scale nor an amax. */
static gemmepi_dtype gpi__dtype_of_d(const gemmepi_matmul_desc *desc) {
    gemmepi_dtype a = desc->a.dtype ? desc->a.dtype : GEMMEPI_F32;
    int stays = desc->d.scale.mode || (desc->flags & (GEMMEPI_FIND_SCALE_D | GEMMEPI_AMAX_D));
    return desc->d.dtype ? desc->d.dtype : gpi__is_fp8((int)a) && !stays ? GEMMEPI_BF16 : a;
}

/* The type of a tensor that the caller left open, given d's. */
static gemmepi_dtype gpi__default_dtype(int operand, gemmepi_dtype d) {
    if (gpi__is_fp8((int)d) && operand != GPI__AUX)
        return GEMMEPI_BF16;
    return d == GEMMEPI_I8 && operand >= GPI__BIAS ? GEMMEPI_F32 : d;
}

/* Converts a matrix in the caller's order. extents: of op(), so exchanged here where it is stored transposed. */
static gemmepi_status gpi__convert_matrix(gpi__problem *problem, int operand, const gemmepi_matrix *matrix,
                                          gemmepi_dtype default_dtype, const int64_t extents[2],
                                          gemmepi_order order) {
    gpi__view *view = &problem->views[operand];
    const char *name = gpi__operand_names[operand];
    int is_factor = operand == GPI__A || operand == GPI__B;
    int lines_are_rows = (order == GEMMEPI_ROW_MAJOR) != (matrix->transposed != 0);
    gemmepi_status status = GEMMEPI_OK;
    GPI__INVALID_IF(matrix->transposed != 0 && (matrix->transposed != 1 || !is_factor),
                    "desc.%s.transposed is %d; accepted %s%s", name, matrix->transposed,
                    is_factor ? "are 0 and 1" : "is 0: only a and b may be stored transposed",
                    matrix->transposed == 1 ? "" : GPI__UNINITIALISED);
    view->dtype = (int32_t)(matrix->dtype ? matrix->dtype : default_dtype);
    view->transposed = matrix->transposed;
    view->lines = extents[!lines_are_rows];
    view->length = extents[lines_are_rows];
    view->ld = matrix->ld;
    view->batch_stride = matrix->batch_stride;
    if (operand == GPI__AUX && gpi__aux_is_mask(problem->epilogue)) {
        view->bits = 1;
        GPI__INVALID_IF(matrix->dtype != GEMMEPI_DTYPE_DEFAULT,
                        "desc.aux.dtype is %s (%d); RELU's aux is a mask of bits, not of numbers: leave it 0",
                        gpi__dtype_name(matrix->dtype), (int)matrix->dtype);
    } else {
        if (!is_factor)
            status = gpi__check_side_dtype(problem, operand, (gemmepi_dtype)view->dtype);
        view->bits = gpi__bits_of(view->dtype);
    }
    view->alignment = gpi__alignment_for(problem, view);
    if (!status)
        status = gpi__check_view(view, name, problem->batch);
    if (!status && !(operand == GPI__D && problem->flags & GEMMEPI_FIND_SCALE_D))
        status = gpi__convert_scale(problem, operand, &matrix->scale, extents[operand == GPI__B],
                                    extents[operand != GPI__B]);
    return status;
}

static gemmepi_status gpi__convert_vector(gpi__problem *problem, int operand, const gemmepi_vector *vector,
                                          int64_t length) {
    gpi__view *view = &problem->views[operand];
    gemmepi_dtype d = (gemmepi_dtype)problem->views[GPI__D].dtype;
    gemmepi_dtype dtype = vector->dtype ? vector->dtype : gpi__default_dtype(operand, d);
    gemmepi_status status = gpi__check_side_dtype(problem, operand, dtype);
    if (status)
        return status;
    view->dtype = (int32_t)dtype;
    view->bits = (int32_t)(8 * gpi__dtype(dtype)->size);
    view->alignment = gpi__alignment_for(problem, view);
    view->lines = 1;
    view->length = length;
    view->batch_stride = vector->batch_stride;
    return gpi__check_view(view, gpi__operand_names[operand], problem->batch);
}

static const char *const gpi__compute_names[] = {"DEFAULT", "F32", "TF32", "F64", "I32", "F16"};

/* The arithmetic of operands whose values `common` holds, and of a result in d. */
static gemmepi_status gpi__convert_compute(gpi__problem *problem, const gemmepi_matmul_desc *desc,
                                           gemmepi_dtype a, gemmepi_dtype b, gemmepi_dtype d) {
    gemmepi_compute compute = desc->compute;
    int common = gpi__common_dtype((int)a, (int)b);
    int fits;
    GPI__INVALID_IF(d == GEMMEPI_I32 && common != GEMMEPI_I8,
                    "desc.d.dtype is I32 with %s and %s operands; I32 is for results of two I8 operands",
                    gpi__dtype(a)->name, gpi__dtype(b)->name);
    GPI__INVALID_IF((unsigned)compute > GEMMEPI_COMPUTE_F16,
                    "desc.compute is %d, which is no gemmepi_compute: accepted are 0 (DEFAULT) to 5 (F16)%s",
                    (int)compute, GPI__UNINITIALISED);
    if (compute == GEMMEPI_COMPUTE_DEFAULT)
        compute = common == GEMMEPI_F64  ? GEMMEPI_COMPUTE_F64
                  : common == GEMMEPI_I8 ? GEMMEPI_COMPUTE_I32
                                         : GEMMEPI_COMPUTE_F32;
    fits = compute == GEMMEPI_COMPUTE_F64    ? common == GEMMEPI_F64
           : compute == GEMMEPI_COMPUTE_TF32 ? common == GEMMEPI_F32
           : compute == GEMMEPI_COMPUTE_I32  ? common == GEMMEPI_I8
           : compute == GEMMEPI_COMPUTE_F16  ? a == GEMMEPI_F16 && b == GEMMEPI_F16
                                             : common != GEMMEPI_F64 && d != GEMMEPI_I32;
    GPI__INVALID_IF(
        !fits,
        "desc.compute is %s with %s and %s operands and a result in %s; F64 goes only with F64, "
        "TF32 where F32 is the type that holds both, I32 with I8 operands, F16 with F16 operands, F32 with all but "
        "F64 and I32 results",
        gpi__compute_names[compute], gpi__dtype(a)->name, gpi__dtype(b)->name, gpi__dtype(d)->name);
    GPI__INVALID_IF((problem->flags & GEMMEPI_FAST_ACCUMULATION) &&
                        !(gpi__is_fp8((int)a) && gpi__is_fp8((int)b)),
                    "desc.flags has FAST_ACCUMULATION with %s and %s operands; it goes with E4M3 and E5M2",
                    gpi__dtype(a)->name, gpi__dtype(b)->name);
    problem->compute = (int32_t)compute;
    problem->common = common;
    problem->accumulator = common == GEMMEPI_F64                      ? GEMMEPI_F64
                           : common == GEMMEPI_I8 && d == GEMMEPI_I32 ? GEMMEPI_I32
                                                                      : GEMMEPI_F32;
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_factor_dtype(const char *name, gemmepi_dtype dtype) {
    GPI__INVALID_IF(dtype == GEMMEPI_I32, "desc.%s.dtype is I32, which is for results of I8 operands", name);
    GPI__INVALID_IF(gpi__is_only_read((int)dtype),
                    "desc.%s.dtype is %s, which is for operands of formulas that are only read%s", name,
                    gpi__dtype(dtype)->name,
                    gpi__is_packed((int)dtype) ? ", and for a and b with a formula of their own" : "");
    return gpi__check_is_dtype(name, dtype);
}

/* a, b and the kind of arithmetic */
static gemmepi_status gpi__convert_operands(gpi__problem *problem, const gemmepi_matmul_desc *desc) {
    gemmepi_dtype a = desc->a.dtype ? desc->a.dtype : GEMMEPI_F32, b = desc->b.dtype ? desc->b.dtype : a;
    const int64_t of_a[2] = {desc->m, desc->k}, of_b[2] = {desc->k, desc->n};
    gemmepi_status status = gpi__check_factor_dtype("a", a);
    if (!status)
        status = gpi__check_factor_dtype("b", b);
    if (!status && (a == GEMMEPI_F64) != (b == GEMMEPI_F64))
        status = gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                           "desc.b.dtype is %s and desc.a.dtype %s; F64 goes only with F64",
                           gpi__dtype(b)->name, gpi__dtype(a)->name);
    if (!status)
        status = gpi__convert_compute(problem, desc, a, b, gpi__dtype_of_d(desc));
    if (!status)
        status = gpi__convert_matrix(problem, GPI__A, &desc->a, a, of_a, desc->order);
    if (!status)
        status = gpi__convert_matrix(problem, GPI__B, &desc->b, b, of_b, desc->order);
    return status;
}

/* What an I32 result cannot have besides scales and amax. */
static gemmepi_status gpi__check_integer_epilogue(const gpi__problem *problem) {
    char name[256];
    gpi__text text = gpi__text_in(name, sizeof name);
    if (problem->accumulator != GEMMEPI_I32)
        return GEMMEPI_OK;
    gpi__append_epilogue(&text, problem->epilogue);
    GPI__INVALID_IF(!gpi__activation_has(problem->epilogue, GPI__OF_INTEGERS),
                    "desc.epilogue is %s with a result in I32; its activation may be NONE or RELU: "
                    "others need a floating-point or I8 result",
                    name);
    GPI__INVALID_IF(gpi__has(problem, GEMMEPI_BACKWARD | GEMMEPI_BGRAD),
                    "desc.epilogue is %s with a result in I32; BACKWARD and BGRAD have no meaning there",
                    name);
    return GEMMEPI_OK;
}

/* A matrix of op(A) op(B)'s shape, but for its extent along the bias, which is `along`. */
static gemmepi_status gpi__convert_beside(gpi__problem *problem, int operand, const gemmepi_matmul_desc *desc,
                                          const gemmepi_matrix *matrix, gemmepi_dtype default_dtype,
                                          int64_t along) {
    int64_t extents[2] = {desc->m, desc->n};
    extents[desc->order == GEMMEPI_ROW_MAJOR] = along;
    return gpi__convert_matrix(problem, operand, matrix, default_dtype, extents, desc->order);
}

static gemmepi_status gpi__convert_epilogue(gpi__problem *problem, const gemmepi_matmul_desc *desc,
                                            int64_t along) {
    int64_t result = gpi__result_columns(desc->epilogue, along);
    gemmepi_dtype d = (gemmepi_dtype)problem->views[GPI__D].dtype;
    gemmepi_status status = gpi__check_integer_epilogue(problem);
    if (!status && gpi__has(problem, GEMMEPI_AUX | GEMMEPI_BACKWARD))
        status = gpi__convert_beside(problem, GPI__AUX, desc, &desc->aux, d,
                                     gpi__aux_columns(desc->epilogue, along));
    if (!status && gpi__has(problem, GEMMEPI_RESIDUAL))
        status = gpi__convert_beside(problem, GPI__RESIDUAL, desc, &desc->residual,
                                     gpi__default_dtype(GPI__RESIDUAL, d), result);
    if (!status && gpi__has(problem, GEMMEPI_BIAS))
        status = gpi__convert_vector(problem, GPI__BIAS, &desc->bias, along);
    if (!status && gpi__has(problem, GEMMEPI_BGRAD))
        status = gpi__convert_vector(problem, GPI__BIAS_GRAD, &desc->bias_grad, result);
    if (!status && gpi__has(problem, GEMMEPI_BGRAD_A))
        status = gpi__convert_vector(problem, GPI__BIAS_GRAD, &desc->bias_grad, desc->m);
    if (!status && gpi__has(problem, GEMMEPI_BGRAD_B))
        status = gpi__convert_vector(problem, GPI__BIAS_GRAD, &desc->bias_grad, desc->n);
    return status;
}

static gemmepi_status gpi__check_outputs(gpi__problem *problem) {
    gpi__view *bias_grad = &problem->views[GPI__BIAS_GRAD];
    gemmepi_status status;
    problem->views[GPI__D].written = 1;
    problem->views[GPI__AUX].written = gpi__has(problem, GEMMEPI_AUX);
    bias_grad->written = bias_grad->dtype != 0;
    status = gpi__convert_amax(problem, GEMMEPI_AMAX_D, GPI__AMAX_D, GPI__D);
    if (!status)
        status = gpi__convert_amax(problem, GEMMEPI_AMAX_AUX, GPI__AMAX_AUX, GPI__AUX);
    if (status)
        return status;
    status = gpi__check_output(&problem->views[GPI__D], "d", gpi__items_of_d(problem));
    if (!status && gpi__has(problem, GEMMEPI_AUX))
        status = gpi__check_output(&problem->views[GPI__AUX], "aux", gpi__items_of_d(problem));
    if (!status && bias_grad->dtype && bias_grad->batch_stride)
        status = gpi__check_output(bias_grad, "bias_grad", problem->batch);
    return status;
}

#endif
