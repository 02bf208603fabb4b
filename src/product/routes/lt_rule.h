/* What may go to cuBLASLt with its epilogue: what that has, and where it breaks the contract. */
#ifndef GEMMEPI_PRODUCT_ROUTES_LT_RULE_H
#define GEMMEPI_PRODUCT_ROUTES_LT_RULE_H

#include "../../device/context.h"
#include "../../problem/arguments.h"

/* From this k on the bound for 16-bit results, at least 1.13 (4 + k / 8) 2^-24 |v| = 4.5e-6 |v|, covers the error of
   cuBLASLt's approximate GELU: at most 3.9e-6 |v| (near v = -1.4; 1.2e-6 |v| below 0.5, 3e-7 below 0.25), measured on an
   H200 with cuBLASLt 13.1 over |v| from 2^-13 to 64. */
#define GPI__LT_GELU_MIN_K 512

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

/* Whether cuBLASLt would store d as c lies: its algorithm 21 did so in F32 and BF16, where lines of c begin at multiples of 16 bytes and
   those of d do not, and the GPU ended with CUDA_ERROR_MISALIGNED_ADDRESS (H200, cuBLASLt 13.1; the other way round it was right).
   Counted in elements, as c and d may differ in dtype. */
static int gpi__lt_stores_as_c(const gpi__problem *problem, const gpi__view *c, const gpi__view *d) {
    return gpi__unit_of(problem, c, 0) / (c->bits / 8) > gpi__unit_of(problem, d, 0) / (d->bits / 8);
}

/* Where cuBLASLt's result is looser than the contract: the sentence, or NULL. Measured, see the manual. */
static const char *gpi__lt_breach(const gpi__problem *problem) {
    int is_narrow = problem->views[GPI__D].bits <= 16;
    uint32_t activation = gpi__activation(problem->epilogue);
    if (activation == GEMMEPI_RELU && gpi__has(problem, GEMMEPI_AUX))
        return "its RELU mask has the bit for v >= 0, ours for v > 0";
    if (problem->flags & (GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX) &&
        (problem->views[GPI__A].dtype == GEMMEPI_E5M2 || problem->views[GPI__B].dtype == GEMMEPI_E5M2))
        return "its amax is NaN where an infinity of E5M2 makes it infinite";
    if (activation == GEMMEPI_GELU_TANH && problem->accumulator == GEMMEPI_F64)
        return "its GELU is off by up to 3e-10 in F64";
    if (activation == GEMMEPI_GELU_TANH && !is_narrow && !gpi__is_fp8_product(problem))
        return "its GELU is off by up to 5.3e-6";
    if (activation == GEMMEPI_GELU_TANH && !gpi__is_fp8_product(problem) && problem->k < GPI__LT_GELU_MIN_K)
        return "its GELU is off by up to 5.3e-6, which the bound for k below 512 does not cover";
    if (gpi__has(problem, GEMMEPI_BGRAD) && is_narrow)
        return "it sums bias_grad from values already rounded to D's type";
    return NULL;
}

/* From this many elements of D on a 16-bit DRELU costs cuBLASLt more than a pass of ours: on an H200 1.2 to 1.3 times a
   bare product and a pass at 4096 x 4096 x 4096 and 8192 x 3072 x 768 (m, n, k), as much below. */
#define GPI__LT_DRELU_MAX_SIZE ((int64_t)1 << 23)

/* Where cuBLASLt's epilogue is slower than the route split: the sentence, or NULL. */
static const char *gpi__lt_slower(const gpi__problem *problem) {
    if (gpi__activation(problem->epilogue) == GEMMEPI_RELU && gpi__has(problem, GEMMEPI_BACKWARD) &&
        problem->views[GPI__D].bits == 16 && problem->m > GPI__LT_DRELU_MAX_SIZE / problem->n)
        return "its DRELU is slower than a pass of ours from 2^23 elements on";
    return NULL;
}

/* What cuBLASLt takes of types and scales is for its heuristic to say, but for the cases below: there it would compute
   something else, or was not seen to compute the same. */
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
    if (!is_fp8 && d != GEMMEPI_F32 && d != problem->common && !gpi__is_scaled_dtype(d))
        return "it was seen to write past a 16-bit d of F32 operands";
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
    if (gpi__has(problem, GEMMEPI_BACKWARD) && gpi__activation(problem->epilogue) == GEMMEPI_GELU_TANH)
        return "its GELU derivative is off by up to 1.6e-5, and wrong where aux is D";
    if (views[GPI__AMAX_D].dtype && !d_is_fp8)
        return "it writes only amax of fp8 results";
    if (views[GPI__AMAX_AUX].dtype && !gpi__is_fp8(aux->dtype))
        return "it writes only amax of an fp8 aux";
    return NULL;
}

static const char *gpi__lt_scale_rule(const gpi__problem *problem) {
    const gpi__view *views = problem->views;
    int operand, summed = gpi__has(problem, GEMMEPI_BGRAD_A) ? GPI__A : GPI__B;
    for (operand = GPI__A; operand <= GPI__RESIDUAL && problem->batch > 1; operand++)
        if (views[operand].scale > GEMMEPI_SCALE_TENSOR || views[GPI__SCALE_OF(operand)].batch_stride)
            return "a batch has scales that are more than one number";
    if (gpi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) && views[summed].scale)
        return "it sums an operand without its scale";
    if (gpi__has(problem, GEMMEPI_BACKWARD) && views[GPI__AUX].scale)
        return "it has no scale for an aux that is read";
    return NULL;
}

/* The rule that keeps a problem from cuBLASLt, or NULL. */
static const char *gpi__lt_rule(const gemmepi_context *context, const gpi__problem *problem) {
    const gpi__view *views = problem->views;
    const gpi__view *aux = &views[GPI__AUX];
    const char *rule;
    (void)context;
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
    if (gpi__lt_stores_as_c(problem, &views[GPI__C], &views[GPI__D]))
        return "lines or items of d begin at multiples of fewer elements than those of c, as which it stores d";
    if (aux->dtype && aux->bits != 1 && (aux->ld % 8 || aux->batch_stride % 8))
        return "aux.ld or aux.batch_stride is no multiple of 8";
    if (views[GPI__BIAS_GRAD].dtype && problem->batch > 1 && views[GPI__BIAS_GRAD].batch_stride == 0)
        return "it does not sum bias_grad over the batch";
    if (gpi__lt_slower(problem))
        return gpi__lt_slower(problem);
    return problem->flags & GEMMEPI_RELAXED ? NULL : gpi__lt_breach(problem);
}

#endif
