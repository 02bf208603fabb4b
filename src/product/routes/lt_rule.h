/* What cuBLASLt does by its documentation: its epilogues, and what keeps a problem from them. What was found out besides stands in the table
   of lt_known.h. */
#ifndef GEMMEPI_PRODUCT_ROUTES_LT_RULE_H
#define GEMMEPI_PRODUCT_ROUTES_LT_RULE_H

#include "../../device/context.h"
#include "../../problem/arguments.h"

typedef struct gpi__lt_epilogue_row {
    uint64_t epilogue;
    int lt;
} gpi__lt_epilogue_row;

/* Row-major is folded by exchanging the operands, so that our op(B) is their A. */
static const gpi__lt_epilogue_row gpi__lt_epilogues[] = {
    {GEMMEPI_EPILOGUE_DEFAULT, GPI__CUBLASLT_EPILOGUE_DEFAULT},
    {GEMMEPI_EPILOGUE_RELU, GPI__CUBLASLT_EPILOGUE_RELU},
    {GEMMEPI_EPILOGUE_RELU_AUX, GPI__CUBLASLT_EPILOGUE_RELU_AUX},
    {GEMMEPI_EPILOGUE_BIAS, GPI__CUBLASLT_EPILOGUE_BIAS},
    {GEMMEPI_EPILOGUE_RELU_BIAS, GPI__CUBLASLT_EPILOGUE_RELU_BIAS},
    {GEMMEPI_EPILOGUE_RELU_AUX_BIAS, GPI__CUBLASLT_EPILOGUE_RELU_AUX_BIAS},
    {GEMMEPI_EPILOGUE_DRELU, GPI__CUBLASLT_EPILOGUE_DRELU},
    {GEMMEPI_EPILOGUE_DRELU_BGRAD, GPI__CUBLASLT_EPILOGUE_DRELU_BGRAD},
    {GEMMEPI_EPILOGUE_GELU, GPI__CUBLASLT_EPILOGUE_GELU},
    {GEMMEPI_EPILOGUE_GELU_AUX, GPI__CUBLASLT_EPILOGUE_GELU_AUX},
    {GEMMEPI_EPILOGUE_GELU_BIAS, GPI__CUBLASLT_EPILOGUE_GELU_BIAS},
    {GEMMEPI_EPILOGUE_GELU_AUX_BIAS, GPI__CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
    {GEMMEPI_EPILOGUE_DGELU, GPI__CUBLASLT_EPILOGUE_DGELU},
    {GEMMEPI_EPILOGUE_DGELU_BGRAD, GPI__CUBLASLT_EPILOGUE_DGELU_BGRAD},
    {GEMMEPI_EPILOGUE_BGRADB, GPI__CUBLASLT_EPILOGUE_BGRADA},
    {GEMMEPI_EPILOGUE_BGRADA, GPI__CUBLASLT_EPILOGUE_BGRADB},
};

/* cuBLASLt's number for an epilogue, 0 if it has none. */
static int gpi__lt_epilogue(uint64_t epilogue) {
    size_t i;
    if (gpi__activation(epilogue) == GEMMEPI_NONE)
        epilogue &= ~GEMMEPI_BACKWARD; /* the derivative is 1 */
    for (i = 0; i < GPI__COUNT(gpi__lt_epilogues); i++)
        if (gpi__lt_epilogues[i].epilogue == epilogue)
            return gpi__lt_epilogues[i].lt;
    return 0;
}

/* What cuBLASLt takes of types and scales is for its heuristic to say, but for the cases below: there it would compute
   something else. */
static const char *gpi__lt_type_rule(const gpi__problem *problem) {
    const gpi__view *views = problem->views, *aux = &views[GPI__AUX];
    int d = views[GPI__D].dtype, d_is_fp8 = gpi__is_fp8(d), is_fp8 = gpi__is_fp8_product(problem);
    if (problem->found_scale)
        return "it finds no scales of rows or vectors";
    if (views[GPI__A].dtype != views[GPI__B].dtype && !is_fp8)
        return "a and b differ in dtype";
    if (problem->common == GEMMEPI_I8)
        return d == GEMMEPI_I32 ? "with alpha or beta its I32 results are not modulo 2^32"
                                : "it has no scales for I8";
    if (gpi__is_scaled_dtype(d) && !is_fp8)
        return "it stores fp8 and I8 only of fp8 operands";
    if (views[GPI__C].dtype != d && !d_is_fp8)
        return "c and d differ in dtype";
    if (views[GPI__BIAS].dtype && views[GPI__BIAS].dtype != d && !is_fp8)
        return "bias and d differ in dtype";
    if (views[GPI__BIAS_GRAD].dtype && views[GPI__BIAS_GRAD].dtype != d)
        return "bias_grad and d differ in dtype";
    if (aux->dtype && aux->bits != 1 && aux->dtype != d && !d_is_fp8)
        return "aux and d differ in dtype";
    if (views[GPI__AMAX_D].dtype && !d_is_fp8)
        return "it writes only amax of fp8 results";
    if (views[GPI__AMAX_AUX].dtype && !gpi__is_fp8(aux->dtype))
        return "it writes only amax of an fp8 aux";
    return NULL;
}

static const char *gpi__lt_scale_rule(const gpi__problem *problem) {
    const gpi__view *views = problem->views;
    int operand, summed = gpi__summed_operand(problem);
    for (operand = GPI__A; operand <= GPI__RESIDUAL && problem->batch > 1; operand++)
        if (views[operand].scale > GEMMEPI_SCALE_TENSOR || views[GPI__SCALE_OF(operand)].batch_stride)
            return "a batch has scales that are more than one number";
    if (summed >= 0 && views[summed].scale)
        return "it sums an operand without its scale";
    if (gpi__has(problem, GEMMEPI_BACKWARD) && views[GPI__AUX].scale)
        return "it has no scale for an aux that is read";
    return NULL;
}

/* What keeps a problem from cuBLASLt's epilogues whatever the chip and the version, or NULL. */
static const char *gpi__lt_documented(const gpi__problem *problem) {
    const gpi__view *aux = &problem->views[GPI__AUX], *bias_grad = &problem->views[GPI__BIAS_GRAD];
    const char *rule;
    if (problem->flags & GEMMEPI_DEVICE_SCALARS)
        return "alpha and beta are on the device as doubles";
    if (problem->k == 0)
        return "k is 0";
    if (!gpi__lt_epilogue(problem->epilogue) || gpi__has_operand(problem, GPI__ROW_FACTOR))
        return "cuBLASLt has no such epilogue";
    rule = gpi__lt_type_rule(problem);
    if (!rule)
        rule = gpi__lt_scale_rule(problem);
    if (rule)
        return rule;
    if (aux->dtype && aux->bits != 1 && (aux->ld % 8 || aux->batch_stride % 8))
        return "aux.ld or aux.batch_stride is no multiple of 8";
    if (bias_grad->dtype && problem->batch > 1 && bias_grad->batch_stride == 0)
        return "it does not sum bias_grad over the batch";
    return NULL;
}

#endif
