/* What a desc says by itself, whatever its matrices are: sizes, flags, the parameter, what ACCUMULATE and a formula leave out. */
#ifndef GEMMEPI_PROBLEM_RULES_H
#define GEMMEPI_PROBLEM_RULES_H

#include "scales.h"

/* desc.has_parameter and desc.activation_parameter of any desc. */
static gemmepi_status gpi__check_parameter(gemmepi_epilogue epilogue, int has_parameter, double parameter) {
    GPI__INVALID_IF(has_parameter != 0 && has_parameter != 1,
                    "desc.has_parameter is %d; accepted are 0 and 1%s", has_parameter, GPI__UNINITIALISED);
    if (!has_parameter && parameter == 0)
        return GEMMEPI_OK;
    GPI__INVALID_IF(gpi__default_parameter(epilogue) == 0,
                    "desc.activation_parameter is given (%g), but the activation %s has none: leave "
                    "it and desc.has_parameter 0 (in a short call NAN)",
                    parameter, gpi__activation_name(epilogue));
    GPI__INVALID_IF(
        !has_parameter, "desc.activation_parameter is %g, but desc.has_parameter is 0: %s", parameter,
        parameter == parameter ? "set that to 1" : "leave it 0 for the default (NAN is for the short calls)");
    GPI__INVALID_IF(parameter - parameter != 0, "desc.activation_parameter is %g; it must be finite",
                    parameter);
    return GEMMEPI_OK;
}

/* It is computed with in the accumulator's type. */
static gemmepi_status gpi__check_range_of_parameter(double parameter, int accumulator) {
    GPI__INVALID_IF(accumulator != GEMMEPI_F64 && !(parameter <= FLT_MAX && parameter >= -FLT_MAX),
                    "desc.activation_parameter is %g; the largest F32 is 3.4e38", parameter);
    return GEMMEPI_OK;
}

/* ACCUMULATE adds the product to D before anything else; what would come between the two is refused. */
static gemmepi_status gpi__check_accumulation(const gemmepi_matmul_desc *desc) {
    const gemmepi_matrix *c = &desc->c;
    uint64_t between = desc->epilogue & (GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_AUX | GEMMEPI_BGRAD);
    const char *name = between ? gpi__flag(between)->name : gpi__activation_name(desc->epilogue);
    if (!(desc->flags & GEMMEPI_ACCUMULATE))
        return GEMMEPI_OK;
    GPI__INVALID_IF(
        between || gpi__activation(desc->epilogue) != GEMMEPI_NONE,
        "desc.flags has ACCUMULATE and desc.epilogue %s: it is not clear which comes first. To add D after the "
        "epilogue use RESIDUAL with args.residual = args.d%s",
        name, desc->epilogue & GEMMEPI_GATED ? "" : ", to add it before, args.beta 1 and args.c = args.d");
    GPI__INVALID_IF(c->dtype || c->transposed || c->ld || c->batch_stride || c->scale.mode ||
                        c->scale.batch_stride,
                    "desc.flags has ACCUMULATE, and desc.c is not zero; c is d then: leave it zero");
    GPI__INVALID_IF(desc->d.scale.mode != GEMMEPI_SCALE_NONE,
                    "desc.flags has ACCUMULATE, and desc.d.scale.mode is %s (%d); a d that is read and "
                    "written has no one scale: give c with its own scale and args.beta",
                    gpi__scale_mode_name(desc->d.scale.mode), (int)desc->d.scale.mode);
    return GEMMEPI_OK;
}

static int gpi__is_given_matrix(const gemmepi_matrix *matrix) {
    return matrix->dtype || matrix->transposed || matrix->ld || matrix->batch_stride || matrix->scale.mode ||
           matrix->scale.batch_stride || matrix->formula || matrix->compute_dtype;
}

/* What a desc without a formula leaves 0. */
static gemmepi_status gpi__check_without_formula(const gemmepi_operand *operands, int operand_count,
                                                 const char *value, const char *result) {
    const char *other = operands        ? "operands"
                        : operand_count ? "operand_count"
                        : value         ? "formula_value"
                        : result        ? "formula_result"
                                        : NULL;
    GPI__INVALID_IF(other, "desc.%s is given, but desc.formula%s NULL%s", other,
                    operands || operand_count ? ", desc.a.formula and desc.b.formula are" : " is",
                    GPI__UNINITIALISED);
    return GEMMEPI_OK;
}

/* Likewise, and what one with a formula leaves 0. */
static gemmepi_status gpi__check_beside_formula(const gemmepi_matmul_desc *desc) {
    const char *other = gpi__is_given_matrix(&desc->aux)                        ? "aux"
                        : gpi__is_given_matrix(&desc->residual)                 ? "residual"
                        : desc->bias.dtype || desc->bias.batch_stride           ? "bias"
                        : desc->bias_grad.dtype || desc->bias_grad.batch_stride ? "bias_grad"
                                                                                : NULL;
    if (!desc->formula && (desc->a.formula || desc->b.formula)) /* which read operands, too */
        return gpi__check_without_formula(NULL, 0, desc->formula_value, desc->formula_result);
    if (!desc->formula)
        return gpi__check_without_formula(desc->operands, desc->operand_count, desc->formula_value,
                                          desc->formula_result);
    GPI__INVALID_IF(desc->epilogue,
                    "desc.epilogue is 0x%llx with desc.formula, which replaces the epilogue: "
                    "leave it 0",
                    (gpi__ull)desc->epilogue);
    GPI__INVALID_IF(other, "desc.%s is not 0 with desc.formula, which has operands instead: leave it 0",
                    other);
    GPI__INVALID_IF(
        desc->flags & GEMMEPI_ACCUMULATE,
        "desc.flags has ACCUMULATE with desc.formula: it is not clear which comes first. To add D before it, "
        "give args.beta 1 and args.c = args.d; to add it after, an operand that is args.d");
    return GEMMEPI_OK;
}

/* The fields that are of a and b alone, in matrices of any desc. */
static gemmepi_status gpi__check_is_stored(const char *name, const gemmepi_matrix *matrix) {
    GPI__INVALID_IF(matrix->formula,
                    "desc.%s.formula is given; accepted are those of a and b of products and layers%s", name,
                    GPI__UNINITIALISED);
    GPI__INVALID_IF(matrix->compute_dtype, "desc.%s.compute_dtype is %d, but desc.%s.formula is NULL%s", name,
                    (int)matrix->compute_dtype, name, GPI__UNINITIALISED);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_where_formulas_are(const gemmepi_matmul_desc *desc) {
    gemmepi_status status = gpi__check_is_stored("c", &desc->c);
    if (!status)
        status = gpi__check_is_stored("d", &desc->d);
    if (!status)
        status = gpi__check_is_stored("aux", &desc->aux);
    if (!status)
        status = gpi__check_is_stored("residual", &desc->residual);
    if (!status && !desc->a.formula)
        status = gpi__check_is_stored("a", &desc->a);
    if (!status && !desc->b.formula)
        status = gpi__check_is_stored("b", &desc->b);
    return status;
}

/* First of all checks: what is made of sizes overflows where they are not. */
static gemmepi_status gpi__check_extents(const gemmepi_matmul_desc *desc) {
    gemmepi_status status = gpi__check_size("m", desc->m);
    if (!status)
        status = gpi__check_size("n", desc->n);
    return status ? status : gpi__check_size("k", desc->k);
}

static gemmepi_status gpi__check_order(gemmepi_order order) {
    GPI__INVALID_IF((unsigned)order > GEMMEPI_COLUMN_MAJOR,
                    "desc.order is %d, which is no gemmepi_order: accepted are GEMMEPI_ROW_MAJOR (0) and "
                    "GEMMEPI_COLUMN_MAJOR (1)%s",
                    (int)order, GPI__UNINITIALISED);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_alignment(size_t alignment) {
    GPI__INVALID_IF(alignment > 256 || (alignment & (alignment - 1)),
                    "desc.alignment is %llu; accepted are powers of two up to 256, and 0%s",
                    (gpi__ull)alignment, GPI__UNINITIALISED);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_scalars_of_desc(const gemmepi_matmul_desc *desc) {
    gemmepi_status status = gpi__check_extents(desc);
    if (!status)
        status = gpi__check_size("batch", desc->batch);
    if (!status)
        status = gpi__check_order(desc->order);
    if (!status)
        status = gpi__check_flags_of(GPI__OF_PRODUCT, desc->flags, 0);
    if (!status)
        status = gpi__check_alignment(desc->alignment);
    if (!status)
        status = gpi__check_where_formulas_are(desc);
    if (!status)
        status = gpi__check_beside_formula(desc);
    if (!status)
        status = gpi__check_epilogue(desc->epilogue);
    if (!status)
        status = gpi__check_parameter(desc->epilogue, desc->has_parameter, desc->activation_parameter);
    if (!status)
        status = gpi__check_finding(desc);
    return status ? status : gpi__check_accumulation(desc);
}

#endif
