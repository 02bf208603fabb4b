/* A desc becomes a problem: defaults, every rule, column-major folded. */
#ifndef GEMMEPI_PROBLEM_NORMALISE_H
#define GEMMEPI_PROBLEM_NORMALISE_H

#include "scales.h"

static void gemmepi__append_types(gemmepi__text *text, uint32_t types) {
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__dtypes); i++)
        if (types >> i & 1)
            gemmepi__append(text, "%s%s", text->length ? ", " : "", gemmepi__dtypes[i].name);
}

static gemmepi_status gemmepi__refuse_dtype(const char *name, gemmepi_dtype dtype) {
    return gemmepi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "desc.%s.dtype is %d, which is no gemmepi_dtype: accepted are 0 to 8 (GEMMEPI_F32 and so on)%s", name,
        (int)dtype, GEMMEPI__UNINITIALISED);
}

static gemmepi_status gemmepi__check_side_dtype(const gemmepi__problem *problem, int operand,
                                                gemmepi_dtype dtype) {
    char accepted[128];
    gemmepi__text text = gemmepi__text_in(accepted, sizeof accepted);
    uint32_t types = gemmepi__side_types(problem, operand);
    const char *name = gemmepi__operand_names[operand];
    if (!gemmepi__dtype_is_known(dtype))
        return gemmepi__refuse_dtype(name, dtype);
    if (types >> dtype & 1)
        return GEMMEPI_OK;
    gemmepi__append_types(&text, types);
    if (operand == GEMMEPI__D)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.d.dtype is %s; with %s and %s operands accepted: %s",
                             gemmepi__dtype(dtype)->name,
                             gemmepi__dtype((gemmepi_dtype)problem->views[GEMMEPI__A].dtype)->name,
                             gemmepi__dtype((gemmepi_dtype)problem->views[GEMMEPI__B].dtype)->name, accepted);
    return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s.dtype is %s; with a result in %s accepted: %s",
                         name, gemmepi__dtype(dtype)->name,
                         gemmepi__dtype((gemmepi_dtype)problem->views[GEMMEPI__D].dtype)->name, accepted);
}

/* The type of a tensor that the caller left open, given d's. */
static gemmepi_dtype gemmepi__default_dtype(int operand, gemmepi_dtype d) {
    if (gemmepi__is_fp8((int)d) && operand != GEMMEPI__AUX)
        return GEMMEPI_BF16;
    return d == GEMMEPI_I8 && operand >= GEMMEPI__BIAS ? GEMMEPI_F32 : d;
}

/* A matrix in the caller's order: rows x columns of op(), so exchanged here where it is stored transposed. */
static gemmepi_status gemmepi__take_matrix(gemmepi__problem *problem, int operand,
                                           const gemmepi_matrix *matrix, gemmepi_dtype default_dtype,
                                           int64_t rows, int64_t columns, gemmepi_order order) {
    gemmepi__view *view = &problem->views[operand];
    const char *name = gemmepi__operand_names[operand];
    int is_factor = operand == GEMMEPI__A || operand == GEMMEPI__B;
    int lines_are_rows = (order == GEMMEPI_ROW_MAJOR) != (matrix->transposed != 0);
    gemmepi_status status = GEMMEPI_OK;
    if (matrix->transposed != 0 && (matrix->transposed != 1 || !is_factor))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s.transposed is %d; accepted %s%s", name,
                             matrix->transposed,
                             is_factor ? "are 0 and 1" : "is 0: only a and b may be stored transposed",
                             matrix->transposed == 1 ? "" : GEMMEPI__UNINITIALISED);
    view->dtype = (int32_t)(matrix->dtype ? matrix->dtype : default_dtype);
    view->transposed = matrix->transposed;
    view->lines = lines_are_rows ? rows : columns;
    view->length = lines_are_rows ? columns : rows;
    view->ld = matrix->ld;
    view->batch_stride = matrix->batch_stride;
    if (operand == GEMMEPI__AUX && gemmepi__aux_is_mask(problem->epilogue)) {
        view->bits = 1;
        if (matrix->dtype != GEMMEPI_DTYPE_DEFAULT)
            return gemmepi__fail(
                GEMMEPI_INVALID_ARGUMENT,
                "desc.aux.dtype is %d; RELU's aux is a mask of bits, not of numbers: leave it 0",
                (int)matrix->dtype);
    } else {
        if (!is_factor)
            status = gemmepi__check_side_dtype(problem, operand, (gemmepi_dtype)view->dtype);
        view->bits = (int32_t)(8 * gemmepi__dtype((gemmepi_dtype)view->dtype)->size);
    }
    view->alignment = gemmepi__alignment_for(problem, view);
    if (!status)
        status = gemmepi__check_view(view, name, problem->batch);
    if (!status && !(operand == GEMMEPI__D && problem->flags & GEMMEPI_FIND_SCALE_D))
        status = gemmepi__take_scale(problem, operand, &matrix->scale, operand == GEMMEPI__B ? columns : rows,
                                     operand == GEMMEPI__B ? rows : columns);
    return status;
}

static gemmepi_status gemmepi__take_vector(gemmepi__problem *problem, int operand,
                                           const gemmepi_vector *vector, int64_t length) {
    gemmepi__view *view = &problem->views[operand];
    gemmepi_dtype d = (gemmepi_dtype)problem->views[GEMMEPI__D].dtype;
    gemmepi_dtype dtype = vector->dtype ? vector->dtype : gemmepi__default_dtype(operand, d);
    gemmepi_status status = gemmepi__check_side_dtype(problem, operand, dtype);
    if (status)
        return status;
    view->dtype = (int32_t)dtype;
    view->bits = (int32_t)(8 * gemmepi__dtype(dtype)->size);
    view->alignment = gemmepi__alignment_for(problem, view);
    view->lines = 1;
    view->length = length;
    view->batch_stride = vector->batch_stride;
    return gemmepi__check_view(view, gemmepi__operand_names[operand], problem->batch);
}

static const char *const gemmepi__compute_names[] = {"DEFAULT", "F32", "TF32", "F64", "I32"};

/* The arithmetic of operands whose values `common` holds, and of a result in d. */
static gemmepi_status gemmepi__take_compute(gemmepi__problem *problem, const gemmepi_matmul_desc *desc,
                                            gemmepi_dtype a, gemmepi_dtype b, gemmepi_dtype d) {
    gemmepi_compute compute = desc->compute;
    int common = gemmepi__common_dtype((int)a, (int)b);
    int fits;
    if (d == GEMMEPI_I32 && common != GEMMEPI_I8)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.d.dtype is I32 with %s and %s operands; I32 is for results of two I8 operands",
            gemmepi__dtype(a)->name, gemmepi__dtype(b)->name);
    if ((unsigned)compute > GEMMEPI_COMPUTE_I32)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.compute is %d, which is no gemmepi_compute: accepted are 0 (DEFAULT) to 4 (I32)%s",
            (int)compute, GEMMEPI__UNINITIALISED);
    if (compute == GEMMEPI_COMPUTE_DEFAULT)
        compute = common == GEMMEPI_F64  ? GEMMEPI_COMPUTE_F64
                  : common == GEMMEPI_I8 ? GEMMEPI_COMPUTE_I32
                                         : GEMMEPI_COMPUTE_F32;
    fits = compute == GEMMEPI_COMPUTE_F64    ? common == GEMMEPI_F64
           : compute == GEMMEPI_COMPUTE_TF32 ? common == GEMMEPI_F32
           : compute == GEMMEPI_COMPUTE_I32  ? common == GEMMEPI_I8
                                             : common != GEMMEPI_F64 && d != GEMMEPI_I32;
    if (!fits)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.compute is %s with %s and %s operands and a result in %s; F64 goes with F64 alone, "
            "TF32 where F32 is the type that holds both, I32 with I8 operands, F32 with all but F64 and I32 results",
            gemmepi__compute_names[compute], gemmepi__dtype(a)->name, gemmepi__dtype(b)->name,
            gemmepi__dtype(d)->name);
    if ((problem->flags & GEMMEPI_FAST_ACCUMULATION) && !(gemmepi__is_fp8((int)a) && gemmepi__is_fp8((int)b)))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.flags has FAST_ACCUMULATION with %s and %s operands; it goes with E4M3 and E5M2",
            gemmepi__dtype(a)->name, gemmepi__dtype(b)->name);
    problem->compute = (int32_t)compute;
    problem->common = common;
    problem->accumulator = common == GEMMEPI_F64                      ? GEMMEPI_F64
                           : common == GEMMEPI_I8 && d == GEMMEPI_I32 ? GEMMEPI_I32
                                                                      : GEMMEPI_F32;
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_factor_dtype(const char *name, gemmepi_dtype dtype) {
    if (!gemmepi__dtype_is_known(dtype))
        return gemmepi__refuse_dtype(name, dtype);
    if (dtype == GEMMEPI_I32)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.%s.dtype is I32, which is for results of I8 operands", name);
    if (dtype == GEMMEPI_I64)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.%s.dtype is I64, which is for operands of formulas", name);
    return GEMMEPI_OK;
}

/* a, b and the kind of arithmetic */
static gemmepi_status gemmepi__take_operands(gemmepi__problem *problem, const gemmepi_matmul_desc *desc) {
    gemmepi_dtype a = desc->a.dtype ? desc->a.dtype : GEMMEPI_F32, b = desc->b.dtype ? desc->b.dtype : a;
    gemmepi_status status = gemmepi__check_factor_dtype("a", a);
    if (!status)
        status = gemmepi__check_factor_dtype("b", b);
    if (!status && (a == GEMMEPI_F64) != (b == GEMMEPI_F64))
        status = gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                               "desc.b.dtype is %s and desc.a.dtype %s; F64 goes with F64 alone",
                               gemmepi__dtype(b)->name, gemmepi__dtype(a)->name);
    if (!status)
        status = gemmepi__take_compute(problem, desc, a, b, desc->d.dtype ? desc->d.dtype : a);
    if (!status)
        status = gemmepi__take_matrix(problem, GEMMEPI__A, &desc->a, a, desc->m, desc->k, desc->order);
    if (!status)
        status = gemmepi__take_matrix(problem, GEMMEPI__B, &desc->b, b, desc->k, desc->n, desc->order);
    return status;
}

/* What an I32 result cannot have besides scales and amax. */
static gemmepi_status gemmepi__check_integer_epilogue(const gemmepi__problem *problem) {
    char name[256];
    gemmepi__text text = gemmepi__text_in(name, sizeof name);
    if (problem->accumulator != GEMMEPI_I32)
        return GEMMEPI_OK;
    gemmepi__append_epilogue(&text, problem->epilogue);
    if (!gemmepi__activation_has(problem->epilogue, GEMMEPI__OF_INTEGERS))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.epilogue is %s with a result in I32; its activation may be NONE or RELU: "
                             "others need a floating-point or I8 result",
                             name);
    if (gemmepi__has(problem, GEMMEPI_BACKWARD | GEMMEPI_BGRAD))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.epilogue is %s with a result in I32; BACKWARD and BGRAD have no meaning there", name);
    return GEMMEPI_OK;
}

/* A matrix of op(A) op(B)'s shape, but for its extent along the bias, which is `along`. */
static gemmepi_status gemmepi__take_beside(gemmepi__problem *problem, int operand,
                                           const gemmepi_matmul_desc *desc, const gemmepi_matrix *matrix,
                                           gemmepi_dtype default_dtype, int64_t along) {
    int by_rows = desc->order == GEMMEPI_ROW_MAJOR;
    return gemmepi__take_matrix(problem, operand, matrix, default_dtype, by_rows ? desc->m : along,
                                by_rows ? along : desc->n, desc->order);
}

static gemmepi_status gemmepi__take_epilogue(gemmepi__problem *problem, const gemmepi_matmul_desc *desc,
                                             int64_t along) {
    int64_t result = gemmepi__result_columns(desc->epilogue, along);
    gemmepi_dtype d = (gemmepi_dtype)problem->views[GEMMEPI__D].dtype;
    gemmepi_status status = gemmepi__check_integer_epilogue(problem);
    if (!status && gemmepi__has(problem, GEMMEPI_AUX | GEMMEPI_BACKWARD))
        status = gemmepi__take_beside(problem, GEMMEPI__AUX, desc, &desc->aux, d,
                                      gemmepi__aux_columns(desc->epilogue, along));
    if (!status && gemmepi__has(problem, GEMMEPI_RESIDUAL))
        status = gemmepi__take_beside(problem, GEMMEPI__RESIDUAL, desc, &desc->residual,
                                      gemmepi__default_dtype(GEMMEPI__RESIDUAL, d), result);
    if (!status && gemmepi__has(problem, GEMMEPI_BIAS))
        status = gemmepi__take_vector(problem, GEMMEPI__BIAS, &desc->bias, along);
    if (!status && gemmepi__has(problem, GEMMEPI_BGRAD))
        status = gemmepi__take_vector(problem, GEMMEPI__BIAS_GRAD, &desc->bias_grad, result);
    if (!status && gemmepi__has(problem, GEMMEPI_BGRAD_A))
        status = gemmepi__take_vector(problem, GEMMEPI__BIAS_GRAD, &desc->bias_grad, desc->m);
    if (!status && gemmepi__has(problem, GEMMEPI_BGRAD_B))
        status = gemmepi__take_vector(problem, GEMMEPI__BIAS_GRAD, &desc->bias_grad, desc->n);
    return status;
}

static gemmepi_status gemmepi__check_outputs(gemmepi__problem *problem) {
    gemmepi__view *bias_grad = &problem->views[GEMMEPI__BIAS_GRAD];
    gemmepi_status status;
    problem->views[GEMMEPI__D].written = 1;
    problem->views[GEMMEPI__AUX].written = gemmepi__has(problem, GEMMEPI_AUX);
    bias_grad->written = bias_grad->dtype != 0;
    status = gemmepi__take_amax(problem, GEMMEPI_AMAX_D, GEMMEPI__AMAX_D, GEMMEPI__D);
    if (!status)
        status = gemmepi__take_amax(problem, GEMMEPI_AMAX_AUX, GEMMEPI__AMAX_AUX, GEMMEPI__AUX);
    if (status)
        return status;
    status = gemmepi__check_output(&problem->views[GEMMEPI__D], "d", problem->batch);
    if (!status && gemmepi__has(problem, GEMMEPI_AUX))
        status = gemmepi__check_output(&problem->views[GEMMEPI__AUX], "aux", problem->batch);
    if (!status && bias_grad->dtype && bias_grad->batch_stride)
        status = gemmepi__check_output(bias_grad, "bias_grad", problem->batch);
    return status;
}

/* Column-major is the same memory read as the transposed row-major product, D^T = op(B)^T op(A)^T: the operands
   exchange, every view stays as it lies. */
static void gemmepi__fold_column_major(gemmepi__problem *problem) {
    gemmepi__view *views = problem->views, a = views[GEMMEPI__A], scale_a = views[GEMMEPI__SCALE_A];
    int64_t m = problem->m;
    views[GEMMEPI__A] = views[GEMMEPI__B];
    views[GEMMEPI__B] = a;
    views[GEMMEPI__SCALE_A] = views[GEMMEPI__SCALE_B];
    views[GEMMEPI__SCALE_B] = scale_a;
    problem->m = problem->n;
    problem->n = m;
    problem->exchanged = 1;
    problem->epilogue = gemmepi__callers_epilogue(problem->epilogue, 1); /* the way back is the same */
}

/* desc.has_parameter and desc.activation_parameter of any desc. */
static gemmepi_status gemmepi__check_parameter(gemmepi_epilogue epilogue, int has_parameter,
                                               double parameter) {
    if (has_parameter != 0 && has_parameter != 1)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.has_parameter is %d; accepted are 0 and 1%s",
                             has_parameter, GEMMEPI__UNINITIALISED);
    if (!has_parameter && parameter == 0)
        return GEMMEPI_OK;
    if (gemmepi__default_parameter(epilogue) == 0)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.activation_parameter is given (%g), but the activation %s has none: leave "
                             "it and desc.has_parameter 0 (in a short call NAN)",
                             parameter, gemmepi__activation_name(epilogue));
    if (!has_parameter)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.activation_parameter is %g, but desc.has_parameter is 0: %s", parameter,
                             parameter == parameter
                                 ? "set that to 1"
                                 : "leave it 0 for the default (NAN is for the short calls)");
    if (parameter - parameter != 0)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.activation_parameter is %g; it must be finite",
                             parameter);
    return GEMMEPI_OK;
}

/* It is computed with in the accumulator's type. */
static gemmepi_status gemmepi__check_range_of_parameter(double parameter, int accumulator) {
    if (accumulator == GEMMEPI_F64 || (parameter <= FLT_MAX && parameter >= -FLT_MAX))
        return GEMMEPI_OK;
    return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "desc.activation_parameter is %g; the largest F32 is 3.4e38", parameter);
}

/* ACCUMULATE adds the product to D before anything else; what would come between the two is refused. */
static gemmepi_status gemmepi__check_accumulation(const gemmepi_matmul_desc *desc) {
    const gemmepi_matrix *c = &desc->c;
    uint64_t between = desc->epilogue & (GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_AUX | GEMMEPI_BGRAD);
    const char *name = between ? gemmepi__flag(between)->name : gemmepi__activation_name(desc->epilogue);
    if (!(desc->flags & GEMMEPI_ACCUMULATE))
        return GEMMEPI_OK;
    if (between || gemmepi__activation(desc->epilogue) != GEMMEPI_NONE)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.flags has ACCUMULATE and desc.epilogue %s: it is not clear which comes first. To add D after the "
            "epilogue take RESIDUAL with args.residual = args.d%s",
            name,
            desc->epilogue & GEMMEPI_GATED ? "" : ", to add it before, args.beta 1 and args.c = args.d");
    if (c->dtype || c->transposed || c->ld || c->batch_stride || c->scale.mode || c->scale.batch_stride)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.flags has ACCUMULATE, and desc.c is not zero; c is d then: leave it zero");
    if (desc->d.scale.mode != GEMMEPI_SCALE_NONE)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.flags has ACCUMULATE, and desc.d.scale.mode is %d; a d that is read and "
                             "written has no one scale: give c with its own scale and args.beta",
                             (int)desc->d.scale.mode);
    return GEMMEPI_OK;
}

static int gemmepi__is_given_matrix(const gemmepi_matrix *matrix) {
    return matrix->dtype || matrix->transposed || matrix->ld || matrix->batch_stride || matrix->scale.mode ||
           matrix->scale.batch_stride;
}

/* What a desc without a formula leaves 0. */
static gemmepi_status gemmepi__check_without_formula(const gemmepi_operand *operands, int operand_count,
                                                     const char *value, const char *result) {
    const char *other = operands        ? "operands"
                        : operand_count ? "operand_count"
                        : value         ? "formula_value"
                        : result        ? "formula_result"
                                        : NULL;
    if (other)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s is given, but desc.formula is NULL%s", other,
                             GEMMEPI__UNINITIALISED);
    return GEMMEPI_OK;
}

/* Likewise, and what one with a formula leaves 0. */
static gemmepi_status gemmepi__check_beside_formula(const gemmepi_matmul_desc *desc) {
    const char *other = gemmepi__is_given_matrix(&desc->aux)                    ? "aux"
                        : gemmepi__is_given_matrix(&desc->residual)             ? "residual"
                        : desc->bias.dtype || desc->bias.batch_stride           ? "bias"
                        : desc->bias_grad.dtype || desc->bias_grad.batch_stride ? "bias_grad"
                                                                                : NULL;
    if (!desc->formula)
        return gemmepi__check_without_formula(desc->operands, desc->operand_count, desc->formula_value,
                                              desc->formula_result);
    if (desc->epilogue)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.epilogue is 0x%llx beside desc.formula, which says all that an epilogue does: "
            "leave it 0",
            (gemmepi__ull)desc->epilogue);
    if (other)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.%s is not 0 beside desc.formula, which has operands instead: leave it 0",
                             other);
    if (desc->flags & GEMMEPI_ACCUMULATE)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.flags has ACCUMULATE beside desc.formula: it is not clear which comes first. To add D before it, "
            "give args.beta 1 and args.c = args.d; to add it after, an operand that is args.d");
    return GEMMEPI_OK;
}

/* First of all checks: what is made of sizes overflows where they are not. */
static gemmepi_status gemmepi__check_extents(const gemmepi_matmul_desc *desc) {
    gemmepi_status status = gemmepi__check_size("m", desc->m);
    if (!status)
        status = gemmepi__check_size("n", desc->n);
    return status ? status : gemmepi__check_size("k", desc->k);
}

static gemmepi_status gemmepi__check_scalars_of_desc(const gemmepi_matmul_desc *desc) {
    gemmepi_status status = gemmepi__check_extents(desc);
    if (!status)
        status = gemmepi__check_size("batch", desc->batch);
    if (status)
        return status;
    if ((unsigned)desc->order > GEMMEPI_COLUMN_MAJOR)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "desc.order is %d, which is no gemmepi_order: accepted are GEMMEPI_ROW_MAJOR (0) and "
            "GEMMEPI_COLUMN_MAJOR (1)%s",
            (int)desc->order, GEMMEPI__UNINITIALISED);
    status = gemmepi__check_flags_of(GEMMEPI__OF_PRODUCT, desc->flags, 0);
    if (status)
        return status;
    if (desc->alignment > 256 || (desc->alignment & (desc->alignment - 1)))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.alignment is %llu; accepted are powers of two up to 256, and 0%s",
                             (gemmepi__ull)desc->alignment, GEMMEPI__UNINITIALISED);
    status = gemmepi__check_beside_formula(desc);
    if (!status)
        status = gemmepi__check_epilogue(desc->epilogue);
    if (!status)
        status = gemmepi__check_parameter(desc->epilogue, desc->has_parameter, desc->activation_parameter);
    if (!status)
        status = gemmepi__check_finding(desc);
    return status ? status : gemmepi__check_accumulation(desc);
}

/* >>formulas */

#ifndef GEMMEPI_NO_FORMULA
/* What D cannot have where the formula does not assign it. */
static gemmepi_status gemmepi__check_without_d(const gemmepi__problem *problem,
                                               const gemmepi_matmul_desc *desc) {
    const char *what = desc->flags & GEMMEPI_AMAX_D         ? "flags has AMAX_D"
                       : desc->flags & GEMMEPI_FIND_SCALE_D ? "flags has FIND_SCALE_D"
                       : desc->d.scale.mode                 ? "d.scale.mode is given"
                       : desc->d.ld                         ? "d.ld is given"
                       : desc->d.batch_stride               ? "d.batch_stride is given"
                                                            : NULL;
    if (!gemmepi__lacks_d(problem) || !what)
        return GEMMEPI_OK;
    return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc.%s, but the formula does not assign %s", what,
                         desc->formula_result ? desc->formula_result : "d");
}
#endif

/* The formula, for the types that the problem has, and the columns of D along the bias. */
static gemmepi_status gemmepi__take_formula(gemmepi__problem *problem, const gemmepi_matmul_desc *desc,
                                            const gemmepi_allocator *allocator, int64_t *result) {
#ifdef GEMMEPI_NO_FORMULA
    (void)problem, (void)allocator, (void)result;
    if (desc->formula)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED,
                             "desc.formula is given, but formulas are left out of this build "
                             "(GEMMEPI_NO_FORMULA)");
    return GEMMEPI_OK;
#else
    int by_rows = desc->order == GEMMEPI_ROW_MAJOR;
    gemmepi_dtype d = desc->d.dtype ? desc->d.dtype : desc->a.dtype ? desc->a.dtype : GEMMEPI_F32;
    gemmepi_status status;
    if (!desc->formula)
        return GEMMEPI_OK;
    status = gemmepi__check_side_dtype(problem, GEMMEPI__D, d);
    if (!status)
        status = gemmepi__make_formula(allocator, desc, problem->accumulator, d, &problem->formula);
    if (!status)
        status = gemmepi__check_formula_extents(problem->formula->placed.formula, desc->formula,
                                                by_rows ? desc->m : desc->n, by_rows ? desc->n : desc->m,
                                                problem->batch);
    if (!status)
        *result = gemmepi__d_columns(problem->formula, *result);
    return status;
#endif
}

#ifndef GEMMEPI_NO_FORMULA
/* Scales that are found of what the formula makes are not there while it is computed. */
static gemmepi_status gemmepi__check_rounded(const gemmepi__problem *problem, const char *text) {
    const gemmepi__formula *formula = problem->formula->placed.formula;
    char place[GEMMEPI__PLACE_TEXT];
    if (!formula->rounds || problem->found_scale <= GEMMEPI_SCALE_TENSOR)
        return GEMMEPI_OK;
    return gemmepi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "%s: rounded is what d stands for, but desc.flags has FIND_SCALE_D, which finds d's scales behind "
        "the formula: compute it of d afterwards, or take one scale (desc.d.scale.mode TENSOR)",
        gemmepi__name_place(text, formula->places.rounded, place));
}
#endif

/* Its operands, once the row-major problem is there. */
static gemmepi_status gemmepi__finish_formula(gemmepi__problem *problem, const gemmepi_matmul_desc *desc) {
#ifdef GEMMEPI_NO_FORMULA
    (void)problem, (void)desc;
    return GEMMEPI_OK;
#else
    int64_t extents[4];
    gemmepi_status status;
    if (!problem->formula)
        return GEMMEPI_OK;
    extents[0] = problem->m, extents[1] = problem->n, extents[2] = problem->k, extents[3] = problem->batch;
    status = gemmepi__check_without_d(problem, desc);
    if (!status)
        status = gemmepi__check_rounded(problem, desc->formula);
    if (!status)
        status = gemmepi__place_formula(problem->formula, desc, extents, &problem->views[GEMMEPI__D]);
    problem->formula->placed.operands[GEMMEPI__RESULT].scale_stride =
        problem->views[GEMMEPI__SCALE_D].batch_stride;
    problem->formula->placed.operands[GEMMEPI__RESULT].amax = problem->views[GEMMEPI__AMAX_D].dtype != 0;
    if (problem->found_scale >
        GEMMEPI_SCALE_TENSOR) /* D is stored in F32, and its scales are found of that */
        problem->formula->owned->operands[GEMMEPI__RESULT].dtype = GEMMEPI_F32;
    return status;
#endif
}

/* >>desc to problem */

/* C as desc has it, with what it leaves to D. */
static gemmepi_status gemmepi__take_c(gemmepi__problem *problem, const gemmepi_matmul_desc *desc,
                                      int is_as_d) {
    gemmepi_matrix c = desc->c;
    gemmepi_dtype d = (gemmepi_dtype)problem->views[GEMMEPI__D].dtype;
    if (!c.dtype && !c.transposed && !c.ld && !c.batch_stride && is_as_d) {
        c.ld = problem->views[GEMMEPI__D].ld;
        c.batch_stride = problem->views[GEMMEPI__D].batch_stride;
    } else if (!c.dtype && !c.transposed && !c.ld && !c.batch_stride) {
        c.batch_stride = desc->m <= 0 || desc->n <= GEMMEPI__MAX_ELEMENTS / desc->m ? desc->m * desc->n : 0;
    }
    return gemmepi__take_matrix(problem, GEMMEPI__C, &c,
                                desc->flags & GEMMEPI_ACCUMULATE ? d : gemmepi__default_dtype(GEMMEPI__C, d),
                                desc->m, desc->n, desc->order);
}

/* All but what says nothing about others. along: the extents along the bias of the product; result: and of D. */
static gemmepi_status gemmepi__take_tensors(gemmepi__problem *problem, const gemmepi_matmul_desc *desc,
                                            const gemmepi_allocator *allocator, int64_t along,
                                            int64_t result) {
    gemmepi_matrix d = desc->d;
    gemmepi_status status = gemmepi__take_operands(problem, desc);
    if (!status)
        status = gemmepi__check_range_of_parameter(problem->parameter, problem->accumulator);
    if (!status)
        status = gemmepi__take_formula(problem, desc, allocator, &result);
    if (!status && gemmepi__lacks_d(problem) && !d.batch_stride) /* as far as D says how others lie: dense */
        d.batch_stride = desc->m <= 0 || desc->n <= GEMMEPI__MAX_ELEMENTS / desc->m ? desc->m * desc->n : 0;
    if (!status)
        status = gemmepi__take_beside(problem, GEMMEPI__D, desc, &d,
                                      desc->a.dtype ? desc->a.dtype : GEMMEPI_F32, result);
    if (!status && desc->flags & GEMMEPI_FIND_SCALE_D && !gemmepi__lacks_d(problem)) {
        d.scale.mode = gemmepi__found_mode(desc, &problem->views[GEMMEPI__D], d.scale.mode);
        status = gemmepi__take_found_scale(problem, &d.scale, desc->amax_history);
    }
    if (!status)
        status = gemmepi__take_c(problem, desc, result == along);
    if (!status)
        status = gemmepi__take_epilogue(problem, desc, along);
    if (!status)
        status = gemmepi__check_outputs(problem);
    if (status)
        return status;
    if (desc->order == GEMMEPI_COLUMN_MAJOR)
        gemmepi__fold_column_major(problem);
    return gemmepi__finish_formula(problem, desc);
}

/* desc -> problem, or the sentence that says what is wrong with it. alignment is that of all matrices and vectors. A formula is made in
   memory of the allocator, to be given to gemmepi__free_formula. */
static gemmepi_status gemmepi__normalise_in(const gemmepi_allocator *allocator,
                                            const gemmepi_matmul_desc *desc, size_t alignment,
                                            gemmepi__problem *problem) {
    gemmepi_status status;
    int64_t along, result;
    memset(problem, 0, sizeof *problem);
    if (!desc)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "desc is NULL");
    status = gemmepi__check_scalars_of_desc(desc);
    if (status)
        return status;
    problem->m = desc->m;
    problem->n = desc->n;
    problem->k = desc->k;
    problem->batch = desc->batch ? desc->batch : 1;
    problem->epilogue = desc->epilogue;
    problem->parameter =
        desc->has_parameter ? desc->activation_parameter : gemmepi__default_parameter(desc->epilogue);
    problem->flags = desc->flags;
    problem->alignment = (int32_t)(desc->alignment ? desc->alignment : alignment);
    along = desc->order == GEMMEPI_ROW_MAJOR ? desc->n : desc->m;
    result = gemmepi__result_columns(desc->epilogue, along);
    if (result < 0)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "desc.%s is %lld; with GATED it counts both halves and must be even",
                             desc->order == GEMMEPI_ROW_MAJOR ? "n" : "m", (long long)along);
    status = gemmepi__take_tensors(problem, desc, allocator, along, result);
    if (status)
        gemmepi__free_formula(problem, allocator);
    else
        gemmepi__list_operands(problem);
    return status;
}

#ifndef GEMMEPI_NO_LINEAR
/* The same of a desc that has no formula. */
static gemmepi_status gemmepi__normalise(const gemmepi_matmul_desc *desc, size_t alignment,
                                         gemmepi__problem *problem) {
    return gemmepi__normalise_in(NULL, desc, alignment, problem);
}
#endif

static void gemmepi__fill_needs(const gemmepi__problem *problem, gemmepi_epilogue_needs *needs) {
    const gemmepi__view *views = problem->views;
    memset(needs, 0, sizeof *needs);
    needs->reads_bias = views[GEMMEPI__BIAS].dtype != 0;
    needs->reads_aux = gemmepi__has(problem, GEMMEPI_BACKWARD);
    needs->reads_residual = views[GEMMEPI__RESIDUAL].dtype != 0;
    needs->writes_aux = gemmepi__has(problem, GEMMEPI_AUX);
    needs->writes_bias_grad = views[GEMMEPI__BIAS_GRAD].dtype != 0;
    needs->accumulates_bias_grad = gemmepi__has(problem, GEMMEPI_ACCUMULATE_BIAS_GRAD);
    needs->aux_is_mask = views[GEMMEPI__AUX].bits == 1;
    needs->bias_dtype = (gemmepi_dtype)views[GEMMEPI__BIAS].dtype;
    needs->aux_dtype = needs->aux_is_mask ? GEMMEPI_DTYPE_DEFAULT : (gemmepi_dtype)views[GEMMEPI__AUX].dtype;
    needs->residual_dtype = (gemmepi_dtype)views[GEMMEPI__RESIDUAL].dtype;
    needs->bias_grad_dtype = (gemmepi_dtype)views[GEMMEPI__BIAS_GRAD].dtype;
    needs->bias_length = views[GEMMEPI__BIAS].length;
    needs->bias_grad_length = views[GEMMEPI__BIAS_GRAD].length;
    needs->aux_ld = views[GEMMEPI__AUX].ld;
    needs->bias_bytes = (size_t)views[GEMMEPI__BIAS].bytes;
    needs->aux_bytes = (size_t)views[GEMMEPI__AUX].bytes;
    needs->residual_bytes = (size_t)views[GEMMEPI__RESIDUAL].bytes;
    needs->bias_grad_bytes = (size_t)views[GEMMEPI__BIAS_GRAD].bytes;
    needs->scale_a_bytes = (size_t)views[problem->exchanged ? GEMMEPI__SCALE_B : GEMMEPI__SCALE_A].bytes;
    needs->scale_b_bytes = (size_t)views[problem->exchanged ? GEMMEPI__SCALE_A : GEMMEPI__SCALE_B].bytes;
    needs->found_scale_d_bytes = (size_t)views[GEMMEPI__FOUND_SCALE_D].bytes;
}

GEMMEPI_API gemmepi_status gemmepi_epilogue_info(const gemmepi_matmul_desc *desc,
                                                 gemmepi_epilogue_needs *needs) {
    gemmepi_allocator allocator;
    gemmepi__problem problem;
    gemmepi_status status;
    if (!needs)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "needs is NULL");
    memset(needs, 0, sizeof *needs);
    allocator = gemmepi__default_allocator();
    status = gemmepi__normalise_in(&allocator, desc, GEMMEPI__DEFAULT_ALIGNMENT, &problem);
    if (!status)
        gemmepi__fill_needs(&problem, needs);
    if (!status)
        gemmepi__free_formula(&problem, &allocator);
    return status;
}

#endif
