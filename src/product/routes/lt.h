/* The route lt: cuBLASLt runs product and epilogue in one kernel. Also the bare product of the route split. */
#ifndef GEMMEPI_PRODUCT_ROUTES_LT_H
#define GEMMEPI_PRODUCT_ROUTES_LT_H

#include "../../device/context.h"
#include "../../problem/arguments.h"

/* What one reduction over k may need; NVIDIA recommends 32 MiB for Hopper, and 4 MiB before. */
#define GEMMEPI__LT_WORKSPACE ((size_t)32 << 20)

/* From this k on the bound for 16-bit results, at least 1.13 (4 + k / 8) 2^-24 |v| = 4.5e-6 |v|, covers the error of
   cuBLASLt's approximate GELU: at most 3.9e-6 |v| (near v = -1.4; 1.2e-6 |v| below 0.5, 3e-7 below 0.25), measured on an
   H200 with cuBLASLt 13.1 over |v| from 2^-13 to 64. */
#define GEMMEPI__LT_GELU_MIN_K 512

/* What a route asks of cuBLASLt. */
typedef enum gemmepi__lt_use {
    GEMMEPI__LT_WHOLE,       /* product and epilogue                              */
    GEMMEPI__LT_BARE,        /* alpha A B + beta C                                */
    GEMMEPI__LT_BARE_ALPHA_1 /* A B alone: alpha will be 1 and beta 0 in each run */
} gemmepi__lt_use;

/* A pointer of the matmul descriptor that each run sets. */
typedef struct gemmepi__lt_pointer {
    int attribute;
    int operand; /* of ours, whose pointer it is */
} gemmepi__lt_pointer;

#define GEMMEPI__LT_MAX_POINTERS 9 /* bias or bias_grad, aux, five scales, two amax */

/* Everything a run hands to cublasLtMatmul but pointers and scalars. */
typedef struct gemmepi__lt_product {
    gemmepi__lt_matmul_desc desc;
    gemmepi__lt_layout a, b, c, d; /* ours, so cuBLASLt's A is b and its B is a */
    gemmepi__lt_algo algo;
    size_t workspace_size;
    int scalars;       /* dtype of alpha and beta */
    int c_as_d;        /* where C is not read, D may stand for it */
    int adds_in_place; /* see gemmepi__lt_adds_in_place */
    int pointer_count;
    gemmepi__lt_pointer pointers[GEMMEPI__LT_MAX_POINTERS];
} gemmepi__lt_product;

/* Whether the product runs on the fp8 tensor cores, whose bound is wider: see the manual. */
static int gemmepi__is_fp8_product(const gemmepi__problem *problem) {
    return gemmepi__is_fp8(problem->views[GEMMEPI__A].dtype) &&
           gemmepi__is_fp8(problem->views[GEMMEPI__B].dtype);
}

/* >>what may go there */

typedef struct gemmepi__lt_epilogue_row {
    uint64_t epilogue;
    int lt;
} gemmepi__lt_epilogue_row;

/* Row-major is folded by exchanging the operands, so that our op(B) is their A. */
static const gemmepi__lt_epilogue_row gemmepi__lt_epilogues[] = {
    {GEMMEPI_EPILOGUE_DEFAULT, GEMMEPI__CUBLASLT_EPILOGUE_DEFAULT},
    {GEMMEPI_EPILOGUE_RELU, GEMMEPI__CUBLASLT_EPILOGUE_RELU},
    {GEMMEPI_EPILOGUE_RELU_AUX, GEMMEPI__CUBLASLT_EPILOGUE_RELU_AUX},
    {GEMMEPI_EPILOGUE_BIAS, GEMMEPI__CUBLASLT_EPILOGUE_BIAS},
    {GEMMEPI_EPILOGUE_RELU_BIAS, GEMMEPI__CUBLASLT_EPILOGUE_RELU_BIAS},
    {GEMMEPI_EPILOGUE_RELU_AUX_BIAS, GEMMEPI__CUBLASLT_EPILOGUE_RELU_AUX_BIAS},
    {GEMMEPI_EPILOGUE_DRELU, GEMMEPI__CUBLASLT_EPILOGUE_DRELU},
    {GEMMEPI_EPILOGUE_DRELU_BGRAD, GEMMEPI__CUBLASLT_EPILOGUE_DRELU_BGRAD},
    {GEMMEPI_EPILOGUE_GELU, GEMMEPI__CUBLASLT_EPILOGUE_GELU},
    {GEMMEPI_EPILOGUE_GELU_AUX, GEMMEPI__CUBLASLT_EPILOGUE_GELU_AUX},
    {GEMMEPI_EPILOGUE_GELU_BIAS, GEMMEPI__CUBLASLT_EPILOGUE_GELU_BIAS},
    {GEMMEPI_EPILOGUE_GELU_AUX_BIAS, GEMMEPI__CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
    {GEMMEPI_EPILOGUE_DGELU, GEMMEPI__CUBLASLT_EPILOGUE_DGELU},
    {GEMMEPI_EPILOGUE_DGELU_BGRAD, GEMMEPI__CUBLASLT_EPILOGUE_DGELU_BGRAD},
    {GEMMEPI_EPILOGUE_BGRADB, GEMMEPI__CUBLASLT_EPILOGUE_BGRADA},
    {GEMMEPI_EPILOGUE_BGRADA, GEMMEPI__CUBLASLT_EPILOGUE_BGRADB},
};

/* cuBLASLt's number for an epilogue, 0 if it has none. */
static int gemmepi__lt_epilogue(uint64_t epilogue) {
    size_t i;
    if (gemmepi__activation(epilogue) == GEMMEPI_NONE)
        epilogue &= ~GEMMEPI_BACKWARD; /* the derivative is 1 */
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__lt_epilogues); i++)
        if (gemmepi__lt_epilogues[i].epilogue == epilogue)
            return gemmepi__lt_epilogues[i].lt;
    return 0;
}

/* Where cuBLASLt's result is looser than the contract: the sentence, or NULL. Measured, see the manual. */
static const char *gemmepi__lt_breach(const gemmepi__problem *problem) {
    int is_narrow = problem->views[GEMMEPI__D].bits <= 16;
    uint32_t activation = gemmepi__activation(problem->epilogue);
    if (activation == GEMMEPI_RELU && gemmepi__has(problem, GEMMEPI_AUX))
        return "its RELU mask has the bit for v >= 0, ours for v > 0";
    if (problem->flags & (GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX) &&
        (problem->views[GEMMEPI__A].dtype == GEMMEPI_E5M2 ||
         problem->views[GEMMEPI__B].dtype == GEMMEPI_E5M2))
        return "its amax is NaN where an infinity of E5M2 makes it infinite";
    if (activation == GEMMEPI_GELU_TANH && problem->accumulator == GEMMEPI_F64)
        return "its GELU is off by up to 3e-10 in F64";
    if (activation == GEMMEPI_GELU_TANH && !is_narrow && !gemmepi__is_fp8_product(problem))
        return "its GELU is off by up to 5.3e-6";
    if (activation == GEMMEPI_GELU_TANH && !gemmepi__is_fp8_product(problem) &&
        problem->k < GEMMEPI__LT_GELU_MIN_K)
        return "its GELU is off by up to 5.3e-6, which the bound for k below 512 does not cover";
    if (gemmepi__has(problem, GEMMEPI_BGRAD) && is_narrow)
        return "it sums bias_grad from values already rounded to D's type";
    return NULL;
}

/* From this many elements of D on a 16-bit DRELU costs cuBLASLt more than a pass of ours: on an H200 1.2 to 1.3 times a
   bare product and a pass at 4096 x 4096 x 4096 and 8192 x 3072 x 768 (m, n, k), as much below. */
#define GEMMEPI__LT_DRELU_MAX_SIZE ((int64_t)1 << 23)

/* Where cuBLASLt's epilogue is slower than the route split: the sentence, or NULL. */
static const char *gemmepi__lt_slower(const gemmepi__problem *problem) {
    if (gemmepi__activation(problem->epilogue) == GEMMEPI_RELU && gemmepi__has(problem, GEMMEPI_BACKWARD) &&
        problem->views[GEMMEPI__D].bits == 16 && problem->m > GEMMEPI__LT_DRELU_MAX_SIZE / problem->n)
        return "its DRELU is slower than a pass of ours from 2^23 elements on";
    return NULL;
}

/* What cuBLASLt takes of types and scales is for its heuristic to say, but for the cases below: there it would compute
   something else, or was not seen to compute the same. */
static const char *gemmepi__lt_type_rule(const gemmepi__problem *problem) {
    const gemmepi__view *views = problem->views, *aux = &views[GEMMEPI__AUX];
    int d = views[GEMMEPI__D].dtype, d_is_fp8 = gemmepi__is_fp8(d), is_fp8 = gemmepi__is_fp8_product(problem);
    if (views[GEMMEPI__A].dtype != views[GEMMEPI__B].dtype && !is_fp8)
        return "a and b differ in dtype";
    if (problem->common == GEMMEPI_I8)
        return d == GEMMEPI_I32 ? "with alpha or beta its I32 results are not modulo 2^32"
                                : "it has no scales for I8";
    if (!is_fp8 && d != GEMMEPI_F32 && d != problem->common && !gemmepi__takes_scale(d))
        return "it was seen to write past a 16-bit d of F32 operands";
    if (gemmepi__takes_scale(d) && !is_fp8)
        return "it stores fp8 and I8 of such operands alone";
    if (views[GEMMEPI__C].dtype != d && !d_is_fp8)
        return "c and d differ in dtype";
    if (views[GEMMEPI__BIAS].dtype && views[GEMMEPI__BIAS].dtype != d && !is_fp8)
        return "bias and d differ in dtype";
    if (views[GEMMEPI__BIAS_GRAD].dtype && views[GEMMEPI__BIAS_GRAD].dtype != d)
        return "bias_grad and d differ in dtype";
    if (aux->dtype && aux->bits != 1 && aux->dtype != d && !d_is_fp8)
        return "aux and d differ in dtype";
    if (gemmepi__has(problem, GEMMEPI_BACKWARD) &&
        gemmepi__activation(problem->epilogue) == GEMMEPI_GELU_TANH)
        return "its GELU derivative is off by up to 1.6e-5, and wrong where aux is D";
    if (views[GEMMEPI__AMAX_D].dtype && !d_is_fp8)
        return "it writes amax of fp8 results alone";
    if (views[GEMMEPI__AMAX_AUX].dtype && !gemmepi__is_fp8(aux->dtype))
        return "it writes amax of an fp8 aux alone";
    return NULL;
}

static const char *gemmepi__lt_scale_rule(const gemmepi__problem *problem) {
    const gemmepi__view *views = problem->views;
    int operand, summed = gemmepi__has(problem, GEMMEPI_BGRAD_A) ? GEMMEPI__A : GEMMEPI__B;
    for (operand = GEMMEPI__A; operand <= GEMMEPI__RESIDUAL && problem->batch > 1; operand++)
        if (views[operand].scale > GEMMEPI_SCALE_TENSOR || views[GEMMEPI__SCALE_OF(operand)].batch_stride)
            return "a batch has scales that are more than one number";
    if (gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) && views[summed].scale)
        return "it sums an operand without its scale";
    if (gemmepi__has(problem, GEMMEPI_BACKWARD) && views[GEMMEPI__AUX].scale)
        return "it has no scale for an aux that is read";
    return NULL;
}

/* The rule that keeps a problem from cuBLASLt, or NULL. */
static const char *gemmepi__lt_rule(const gemmepi__problem *problem) {
    const gemmepi__view *views = problem->views;
    const gemmepi__view *aux = &views[GEMMEPI__AUX];
    const char *rule;
    if (problem->flags & GEMMEPI_DEVICE_SCALARS)
        return "alpha and beta lie on the device as doubles";
    if (problem->k == 0)
        return "k is 0";
    if (!gemmepi__lt_epilogue(problem->epilogue) || gemmepi__extras(problem))
        return "cuBLASLt has no such epilogue";
    rule = gemmepi__lt_type_rule(problem);
    if (!rule)
        rule = gemmepi__lt_scale_rule(problem);
    if (rule)
        return rule;
    if (aux->dtype && aux->bits != 1 && (aux->ld % 8 || aux->batch_stride % 8))
        return "aux.ld or aux.batch_stride is no multiple of 8";
    if (views[GEMMEPI__BIAS_GRAD].dtype && problem->batch > 1 && views[GEMMEPI__BIAS_GRAD].batch_stride == 0)
        return "it does not sum bias_grad over the batch";
    if (gemmepi__lt_slower(problem))
        return gemmepi__lt_slower(problem);
    return problem->flags & GEMMEPI_RELAXED ? NULL : gemmepi__lt_breach(problem);
}

/* >>building */

static gemmepi_status gemmepi__open_lt(gemmepi_context *context) {
    gemmepi_status status = GEMMEPI_OK;
    int result;
    if (context->lt_handle)
        return GEMMEPI_OK;
    if (!context->has_cublaslt)
        status = gemmepi__load_cublaslt(&context->loader, &context->cublaslt);
    if (status)
        return status;
    context->has_cublaslt = 1;
    result = context->cublaslt.create(&context->lt_handle);
    if (result) {
        context->lt_handle = NULL;
        return gemmepi__cublaslt_failed(&context->cublaslt, result, "cublasLtCreate");
    }
    return GEMMEPI_OK;
}

static int gemmepi__lt_type(int dtype) {
    static const int types[] = {
        GEMMEPI__CUDA_R_32F,     GEMMEPI__CUDA_R_32F,  GEMMEPI__CUDA_R_64F,
        GEMMEPI__CUDA_R_16F,     GEMMEPI__CUDA_R_16BF, GEMMEPI__CUDA_R_8F_E4M3,
        GEMMEPI__CUDA_R_8F_E5M2, GEMMEPI__CUDA_R_8I,   GEMMEPI__CUDA_R_32I,
    }; /* by gemmepi_dtype */
    return types[dtype];
}

/* A view as cuBLASLt sees it: column-major, so a line of ours is a column. */
static int gemmepi__lt_layout_of(const gemmepi__cublaslt *lt, const gemmepi__view *view, int64_t batch,
                                 gemmepi__lt_layout *layout) {
    int32_t count = (int32_t)batch;
    int result = lt->layout_init(layout, sizeof *layout, gemmepi__lt_type(view->dtype),
                                 (uint64_t)view->length, (uint64_t)view->lines, view->ld);
    if (!result && batch > 1)
        result = lt->layout_set_attribute(layout, GEMMEPI__CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                          sizeof count);
    if (!result && batch > 1)
        result = lt->layout_set_attribute(layout, GEMMEPI__CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                          &view->batch_stride, sizeof view->batch_stride);
    return result;
}

static int gemmepi__lt_set(const gemmepi__cublaslt *lt, gemmepi__lt_product *product, int attribute,
                           const void *value, size_t size) {
    return lt->matmul_desc_set_attribute(&product->desc, attribute, value, size);
}

/* Notes a pointer that runs set; here it is set to its alignment alone, which the heuristic reads. */
static int gemmepi__lt_add_pointer(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
                                   gemmepi__lt_product *product, int attribute, int operand) {
    void *aligned = (void *)(uintptr_t)problem->views[operand].alignment;
    gemmepi__lt_pointer *pointer = &product->pointers[product->pointer_count++];
    pointer->attribute = attribute;
    pointer->operand = operand;
    return gemmepi__lt_set(lt, product, attribute, &aligned, sizeof aligned);
}

static int gemmepi__lt_describe_vector(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
                                       int operand, gemmepi__lt_product *product) {
    const gemmepi__view *vector = &problem->views[operand];
    int32_t type = gemmepi__lt_type(vector->dtype);
    int result =
        gemmepi__lt_add_pointer(lt, problem, product, GEMMEPI__CUBLASLT_MATMUL_DESC_BIAS_POINTER, operand);
    /* D's type is the default, but beside fp8 operands BF16 is, also where D is F32 */
    if (!result && (vector->dtype != problem->views[GEMMEPI__D].dtype || gemmepi__is_fp8_product(problem)))
        result =
            gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
    if (!result && problem->batch > 1)
        result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE,
                                 &vector->batch_stride, sizeof vector->batch_stride);
    return result;
}

static int gemmepi__lt_describe_aux(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
                                    gemmepi__lt_product *product) {
    const gemmepi__view *aux = &problem->views[GEMMEPI__AUX];
    int32_t type = gemmepi__lt_type(aux->dtype);
    int result = gemmepi__lt_add_pointer(lt, problem, product,
                                         GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, GEMMEPI__AUX);
    if (!result && aux->bits != 1 && aux->dtype != problem->views[GEMMEPI__D].dtype)
        result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &type,
                                 sizeof type);
    if (!result)
        result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &aux->ld,
                                 sizeof aux->ld);
    if (!result && problem->batch > 1)
        result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE,
                                 &aux->batch_stride, sizeof aux->batch_stride);
    if (!result && problem->views[GEMMEPI__AMAX_AUX].dtype)
        result = gemmepi__lt_add_pointer(
            lt, problem, product, GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, GEMMEPI__AMAX_AUX);
    return result;
}

static int gemmepi__lt_describe_epilogue(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
                                         gemmepi__lt_product *product) {
    int32_t epilogue = gemmepi__lt_epilogue(problem->epilogue);
    int vector = gemmepi__has(problem, GEMMEPI_BIAS) ? GEMMEPI__BIAS : GEMMEPI__BIAS_GRAD;
    int result =
        gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (!result && gemmepi__has_operand(problem, vector))
        result = gemmepi__lt_describe_vector(lt, problem, vector, product);
    if (!result && gemmepi__has_operand(problem, GEMMEPI__AUX) &&
        gemmepi__activation(problem->epilogue) != GEMMEPI_NONE)
        result = gemmepi__lt_describe_aux(lt, problem, product);
    if (!result && gemmepi__has_operand(problem, GEMMEPI__AMAX_D))
        result = gemmepi__lt_add_pointer(lt, problem, product, GEMMEPI__CUBLASLT_MATMUL_DESC_AMAX_D_POINTER,
                                         GEMMEPI__AMAX_D);
    return result;
}

/* Our matrix, and the attributes of its scale; our A is cuBLASLt's B. */
typedef struct gemmepi__lt_scale_row {
    int operand, pointer, mode;
} gemmepi__lt_scale_row;

static const gemmepi__lt_scale_row gemmepi__lt_scales[] = {
    {GEMMEPI__A, GEMMEPI__CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, GEMMEPI__CUBLASLT_MATMUL_DESC_B_SCALE_MODE},
    {GEMMEPI__B, GEMMEPI__CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, GEMMEPI__CUBLASLT_MATMUL_DESC_A_SCALE_MODE},
    {GEMMEPI__C, GEMMEPI__CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, GEMMEPI__CUBLASLT_MATMUL_DESC_C_SCALE_MODE},
    {GEMMEPI__D, GEMMEPI__CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, GEMMEPI__CUBLASLT_MATMUL_DESC_D_SCALE_MODE},
    {GEMMEPI__AUX, GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER,
     GEMMEPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE},
};

/* A bare product takes the scales that change along k; the pass takes the others. */
static int gemmepi__lt_describe_scales(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
                                       gemmepi__lt_use use, gemmepi__lt_product *product) {
    static const int32_t modes[] = {0, GEMMEPI__CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
                                    GEMMEPI__CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
                                    GEMMEPI__CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
                                    GEMMEPI__CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F};
    size_t i;
    int result = 0;
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__lt_scales) && !result; i++) {
        const gemmepi__lt_scale_row *row = &gemmepi__lt_scales[i];
        int mode = problem->views[row->operand].scale;
        int bare = use != GEMMEPI__LT_WHOLE;
        if (!mode ||
            (bare && (row->operand > GEMMEPI__B || !gemmepi__scale_varies_along_k(problem, row->operand))))
            continue;
        result = gemmepi__lt_add_pointer(lt, problem, product, row->pointer, GEMMEPI__SCALE_OF(row->operand));
        if (!result && mode != GEMMEPI_SCALE_TENSOR) /* a library without the attribute has that mode alone */
            result = gemmepi__lt_set(lt, product, row->mode, &modes[mode], sizeof modes[mode]);
    }
    return result;
}

static int gemmepi__lt_describe(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
                                const gemmepi__view *c, const gemmepi__view *d,
                                gemmepi__lt_product *product) {
    const gemmepi__view *a = &problem->views[GEMMEPI__A], *b = &problem->views[GEMMEPI__B];
    int sums = gemmepi__product_dtype(problem);
    int compute = sums == GEMMEPI_F64                        ? GEMMEPI__CUBLAS_COMPUTE_64F
                  : sums == GEMMEPI_I32                      ? GEMMEPI__CUBLAS_COMPUTE_32I
                  : problem->compute == GEMMEPI_COMPUTE_TF32 ? GEMMEPI__CUBLAS_COMPUTE_32F_FAST_TF32
                                                             : GEMMEPI__CUBLAS_COMPUTE_32F;
    int32_t transpose_a = b->transposed ? GEMMEPI__CUBLAS_OP_T : GEMMEPI__CUBLAS_OP_N;
    int32_t transpose_b = a->transposed ? GEMMEPI__CUBLAS_OP_T : GEMMEPI__CUBLAS_OP_N;
    int result;
    int8_t fast = 1;
    product->scalars = sums;
    product->c_as_d = c->dtype == d->dtype;
    result = lt->matmul_desc_init(&product->desc, sizeof product->desc, compute, gemmepi__lt_type(sums));
    if (!result && (problem->flags & GEMMEPI_FAST_ACCUMULATION))
        result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
    if (!result)
        result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_TRANSA, &transpose_a,
                                 sizeof transpose_a);
    if (!result)
        result = gemmepi__lt_set(lt, product, GEMMEPI__CUBLASLT_MATMUL_DESC_TRANSB, &transpose_b,
                                 sizeof transpose_b);
    if (!result)
        result = gemmepi__lt_layout_of(lt, b, problem->batch, &product->b);
    if (!result)
        result = gemmepi__lt_layout_of(lt, a, problem->batch, &product->a);
    if (!result)
        result = gemmepi__lt_layout_of(lt, c, problem->batch, &product->c);
    if (!result)
        result = gemmepi__lt_layout_of(lt, d, problem->batch, &product->d);
    return result;
}

static int gemmepi__lt_prefer(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
                              const gemmepi__view *c, const gemmepi__view *d,
                              gemmepi__lt_preference *preference) {
    static const int alignments[] = {GEMMEPI__CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                     GEMMEPI__CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                     GEMMEPI__CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                     GEMMEPI__CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    size_t workspace = GEMMEPI__LT_WORKSPACE, i;
    /* the other schemes add up in D's type or in place, which rounds more than once */
    uint32_t schemes = GEMMEPI__CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, alignment;
    const gemmepi__view *views[4];
    int result = lt->preference_init(preference, sizeof *preference);
    views[0] = &problem->views[GEMMEPI__B];
    views[1] = &problem->views[GEMMEPI__A];
    views[2] = c;
    views[3] = d;
    if (!result)
        result = lt->preference_set_attribute(preference, GEMMEPI__CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &workspace, sizeof workspace);
    if (!result)
        result = lt->preference_set_attribute(preference, GEMMEPI__CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                              &schemes, sizeof schemes);
    for (i = 0; i < GEMMEPI__COUNT(alignments) && !result; i++) {
        alignment = (uint32_t)views[i]->alignment;
        result = lt->preference_set_attribute(preference, alignments[i], &alignment, sizeof alignment);
    }
    return result;
}

static int gemmepi__lt_config(const gemmepi__cublaslt *lt, const gemmepi__lt_algo *algo, int attribute) {
    int32_t value = 0;
    size_t written = 0;
    return lt->algo_config_get_attribute(algo, attribute, &value, sizeof value, &written) ? 0 : value;
}

/* The algorithm that was seen to keep its sums in F32 until bias and GELU are done (H200, cuBLASLt 13.1). Others, 24
   for one, round them to 16 bits before: off by a unit of the sum, however small the result is. */
#define GEMMEPI__LT_ROUNDS_ONCE 66

/* An algorithm for one row or column that leaves D as it is where alpha is 0 (the same library). */
#define GEMMEPI__LT_SKIPS_ALPHA_0 13

/* NULL if an algorithm keeps the contract for the problem, else what it breaks. */
static const char *gemmepi__lt_algo_fault(const gemmepi__cublaslt *lt, const gemmepi__problem *problem,
                                          gemmepi__lt_use use, const gemmepi__lt_algo *algo) {
    int id = gemmepi__lt_config(lt, algo, GEMMEPI__CUBLASLT_ALGO_CONFIG_ID);
    int rounds_early =
        problem->views[GEMMEPI__D].bits <= 16 && !(problem->flags & GEMMEPI_RELAXED) &&
        use == GEMMEPI__LT_WHOLE &&
        (gemmepi__has(problem, GEMMEPI_BIAS) || gemmepi__activation(problem->epilogue) == GEMMEPI_GELU_TANH);
    if (id == GEMMEPI__LT_SKIPS_ALPHA_0 && use != GEMMEPI__LT_BARE_ALPHA_1)
        return "do not write D where alpha is 0";
    if (rounds_early && id != GEMMEPI__LT_ROUNDS_ONCE)
        return "may round to 16 bits before the epilogue";
    return NULL;
}

/* Whether D = alpha A B + D is left to the memory, which adds in D's type what was rounded to it before. So algorithm 66
   does (H200, cuBLASLt 13.1) where it knows C to be D and beta to be 1, with no epilogue and with BIAS. */
static int gemmepi__lt_adds_in_place(const gemmepi__problem *problem, gemmepi__lt_use use) {
    return problem->views[GEMMEPI__D].bits == 16 && !(problem->flags & GEMMEPI_RELAXED) &&
           use == GEMMEPI__LT_WHOLE && gemmepi__activation(problem->epilogue) == GEMMEPI_NONE;
}

#define GEMMEPI__LT_ANSWERS 8

/* Where k is short cuBLASLt's heuristic puts tiles of 128 x 256 first, which store their results while nothing is multiplied.
   On an H200 (cuBLASLt 13.1, BF16, products of 1000 to 16384 rows, 768 to 8192 columns and k 200 to 2048, all layouts) an
   answer with one of these tiles took 0.90 of the first answer's time in the mean and 1.03 at most where that has two waves
   or more (238 and 195 products; 0.87 and 1.00 where the results are F32); with fewer waves up to 1.06. F16 is taken to be
   like BF16. */
static const int gemmepi__lt_short_tiles[] = {20, 29}; /* 128 x 128, 128 x 160 */
#define GEMMEPI__LT_SHORT_K     2048
#define GEMMEPI__LT_SHORT_WAVES 2

/* The answer to take, of `count` good ones in the heuristic's order. */
static int gemmepi__lt_choose(const gemmepi_context *context, const gemmepi__problem *problem,
                              const gemmepi__lt_heuristic *good, int count) {
    const gemmepi__cublaslt *lt = &context->cublaslt;
    size_t t;
    int i;
    if (context->arch != 90 || gemmepi__dtype((gemmepi_dtype)problem->common)->size != 2 ||
        problem->k > GEMMEPI__LT_SHORT_K || good[0].waves < GEMMEPI__LT_SHORT_WAVES)
        return 0;
    for (t = 0; t < GEMMEPI__COUNT(gemmepi__lt_short_tiles); t++)
        for (i = 0; i < count; i++)
            if (gemmepi__lt_config(lt, &good[i].algo, GEMMEPI__CUBLASLT_ALGO_CONFIG_TILE_ID) ==
                    gemmepi__lt_short_tiles[t] &&
                gemmepi__lt_config(lt, &good[i].algo, GEMMEPI__CUBLASLT_ALGO_CONFIG_SPLITK_NUM) <= 1)
                return i;
    return 0;
}

static gemmepi_status gemmepi__lt_ask(gemmepi_context *context, const gemmepi__problem *problem,
                                      gemmepi__lt_use use, const gemmepi__view *c, const gemmepi__view *d,
                                      gemmepi__lt_product *product) {
    const gemmepi__cublaslt *lt = &context->cublaslt;
    gemmepi__lt_heuristic answers[GEMMEPI__LT_ANSWERS];
    gemmepi__lt_preference preference;
    const char *fault = NULL;
    int count = 0, good = 0, i, result;
    memset(product, 0, sizeof *product);
    if (problem->batch > INT_MAX)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "batch is %lld; cuBLASLt takes up to 2^31 - 1",
                             (long long)problem->batch);
    result = gemmepi__lt_describe(lt, problem, c, d, product);
    if (!result)
        result = gemmepi__lt_describe_scales(lt, problem, use, product);
    if (!result && use == GEMMEPI__LT_WHOLE)
        result = gemmepi__lt_describe_epilogue(lt, problem, product);
    if (!result)
        result = gemmepi__lt_prefer(lt, problem, c, d, &preference);
    if (!result)
        result =
            lt->algo_get_heuristic(context->lt_handle, &product->desc, &product->b, &product->a, &product->c,
                                   &product->d, &preference, GEMMEPI__LT_ANSWERS, answers, &count);
    for (i = 0; i < count && !result; i++) {
        const char *found =
            answers[i].state ? NULL : gemmepi__lt_algo_fault(lt, problem, use, &answers[i].algo);
        if (!found && !answers[i].state)
            answers[good++] = answers[i];
        fault = found ? found : fault;
    }
    if (good) {
        const gemmepi__lt_heuristic *chosen = &answers[gemmepi__lt_choose(context, problem, answers, good)];
        product->algo = chosen->algo;
        product->workspace_size = chosen->workspace_size;
        product->adds_in_place = gemmepi__lt_adds_in_place(problem, use);
        return GEMMEPI_OK;
    }
    if (fault)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "cuBLASLt %d's algorithms for this shape %s", lt->version,
                             fault);
    if (result && result != GEMMEPI__CUBLAS_STATUS_NOT_SUPPORTED &&
        result != GEMMEPI__CUBLAS_STATUS_INVALID_VALUE)
        return gemmepi__cublaslt_failed(lt, result, "asking cuBLASLt for an algorithm");
    return gemmepi__fail(GEMMEPI_UNSUPPORTED, "cuBLASLt %d has no algorithm for it (%s)", lt->version,
                         lt->get_status_string(result ? result : GEMMEPI__CUBLAS_STATUS_NOT_SUPPORTED));
}

/* Asks cuBLASLt for an algorithm. c and d are the problem's, or those of a bare product into a buffer of ours.
   GEMMEPI_UNSUPPORTED with the sentence if cuBLASLt has none. Fast accumulation is a permission: block-scaled products do
   not have it. */
static gemmepi_status gemmepi__lt_build(gemmepi_context *context, const gemmepi__problem *problem,
                                        gemmepi__lt_use use, const gemmepi__view *c, const gemmepi__view *d,
                                        gemmepi__lt_product *product) {
    gemmepi_status status = gemmepi__lt_ask(context, problem, use, c, d, product);
    gemmepi__problem slow = *problem;
    slow.flags &= ~GEMMEPI_FAST_ACCUMULATION;
    if (status == GEMMEPI_UNSUPPORTED && slow.flags != problem->flags)
        status = gemmepi__lt_ask(context, &slow, use, c, d, product);
    return status;
}

/* >>running */

/* What one run hands over beside the plan's product. */
typedef struct gemmepi__lt_call {
    double alpha, beta;
    const void *a, *b, *c;
    void *d, *workspace;
} gemmepi__lt_call;

typedef union gemmepi__lt_scalar {
    double f64;
    float f32;
    int32_t i32;
} gemmepi__lt_scalar;

static gemmepi__lt_scalar gemmepi__lt_scalar_of(int dtype, double value) {
    gemmepi__lt_scalar scalar;
    if (dtype == GEMMEPI_F64)
        scalar.f64 = value;
    else if (dtype == GEMMEPI_I32)
        scalar.i32 = (int32_t)value;
    else
        scalar.f32 = (float)value;
    return scalar;
}

/* Whether cuBLASLt refused to start, rather than failed while it ran. */
static int gemmepi__lt_refused(int result) {
    return result == GEMMEPI__CUBLAS_STATUS_INVALID_VALUE || result == GEMMEPI__CUBLAS_STATUS_ARCH_MISMATCH ||
           result == GEMMEPI__CUBLAS_STATUS_INTERNAL_ERROR || result == GEMMEPI__CUBLAS_STATUS_NOT_SUPPORTED;
}

/* Whether D = alpha A B + D is to be kept from the memory. */
static int gemmepi__lt_is_in_place(const gemmepi__lt_product *product, const gemmepi__lt_call *call) {
    return product->adds_in_place && (float)call->beta == 1 && call->c == call->d;
}

/* Whether it cannot be kept, and another route is to run it: the sentence, or NULL. */
static const char *gemmepi__lt_rounds_early(const gemmepi_context *context,
                                            const gemmepi__lt_product *product,
                                            const gemmepi__lt_call *call) {
    if (!gemmepi__lt_is_in_place(product, call) || ((float)call->alpha == 1 && context->ones))
        return NULL;
    return context->ones ? "with such an alpha it rounds the product to d's type before it adds d"
                         : "without scalars on the device it rounds the product to d's type before it adds d";
}

/* D = A B + D, which a product that adds in place makes right where it does not know that beta is 1: where beta lies on the
   device, and alpha too. */
static int gemmepi__lt_hide_scalars(const gemmepi_context *context, gemmepi__lt_product *run,
                                    const void **alpha, const void **beta) {
    int32_t mode = GEMMEPI__CUBLASLT_POINTER_MODE_DEVICE;
    *alpha = (const float *)(uintptr_t)context->ones;
    *beta = (const float *)(uintptr_t)context->ones + 1;
    return gemmepi__lt_set(&context->cublaslt, run, GEMMEPI__CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode,
                           sizeof mode);
}

/* The primary context is current. UNSUPPORTED, and nothing runs, where cuBLASLt refuses what its heuristic had accepted. */
static gemmepi_status gemmepi__lt_run(const gemmepi_context *context, const gemmepi__lt_product *product,
                                      const gemmepi__arguments *arguments, const gemmepi__lt_call *call,
                                      gemmepi_stream stream) {
    const gemmepi__cublaslt *lt = &context->cublaslt;
    gemmepi__lt_product run = *product; /* the plan's own stays as it is: other threads use it */
    gemmepi__lt_scalar alpha = gemmepi__lt_scalar_of(run.scalars, call->alpha);
    gemmepi__lt_scalar beta = gemmepi__lt_scalar_of(run.scalars, call->beta);
    const void *c = call->c, *at_alpha = &alpha, *at_beta = &beta;
    int in_place = gemmepi__lt_is_in_place(&run, call), result = 0, i;
    for (i = 0; i < run.pointer_count && !result; i++)
        result = gemmepi__lt_set(lt, &run, run.pointers[i].attribute,
                                 &arguments->pointers[run.pointers[i].operand], sizeof(void *));
    if (!result && in_place)
        result = gemmepi__lt_hide_scalars(context, &run, &at_alpha, &at_beta);
    if (call->beta == 0) { /* cuBLASLt wants a C all the same, and does not read it */
        c = run.c_as_d ? call->d : call->a;
        if (run.c_as_d)
            run.c = run.d;
    }
    if (!result)
        result =
            lt->matmul(context->lt_handle, &run.desc, at_alpha, call->b, &run.b, call->a, &run.a, at_beta, c,
                       &run.c, call->d, &run.d, &run.algo, call->workspace, run.workspace_size, stream);
    /* after an internal error something may have run, and a C that is D may be lost */
    if (gemmepi__lt_refused(result) &&
        !(result == GEMMEPI__CUBLAS_STATUS_INTERNAL_ERROR && call->beta != 0 && call->c == call->d))
        return gemmepi__fail(GEMMEPI_UNSUPPORTED,
                             "cublasLtMatmul refused what its heuristic had accepted: %s (%d)",
                             lt->get_status_name(result), result);
    return result ? gemmepi__cublaslt_failed(lt, result, "cublasLtMatmul") : GEMMEPI_OK;
}

/* >>telling */

/* Rows x columns of cuBLASLt's tile, by CUBLASLT_ALGO_CONFIG_TILE_ID from 1 on. */
static const short gemmepi__lt_tiles[][2] = {
    {8, 8},    {8, 16},    {16, 8},    {8, 32},    {16, 16},   {32, 8},    {8, 64},   {16, 32},  {32, 16},
    {64, 8},   {32, 32},   {32, 64},   {64, 32},   {32, 128},  {64, 64},   {128, 32}, {64, 128}, {128, 64},
    {64, 256}, {128, 128}, {256, 64},  {64, 512},  {128, 256}, {256, 128}, {512, 64}, {64, 96},  {96, 64},
    {96, 128}, {128, 160}, {160, 128}, {192, 128}, {128, 192}, {128, 96},  {32, 256}, {256, 32},
};

/* The algorithm in words; its tile in rows and columns of our D, 0 where its number is not in the table. */
static void gemmepi__lt_describe_algo(const gemmepi__cublaslt *lt, const gemmepi__lt_product *product,
                                      char *text, size_t size, int *tile_m, int *tile_n) {
    int id = gemmepi__lt_config(lt, &product->algo, GEMMEPI__CUBLASLT_ALGO_CONFIG_ID);
    int tile = gemmepi__lt_config(lt, &product->algo, GEMMEPI__CUBLASLT_ALGO_CONFIG_TILE_ID);
    int split_k = gemmepi__lt_config(lt, &product->algo, GEMMEPI__CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
    int known = tile >= 1 && tile <= (int)GEMMEPI__COUNT(gemmepi__lt_tiles);
    *tile_n = known ? gemmepi__lt_tiles[tile - 1][0] : 0;
    *tile_m = known ? gemmepi__lt_tiles[tile - 1][1] : 0;
    snprintf(text, size, "cuBLASLt %d algorithm %d, tile %d, split-k %d", lt->version, id, tile, split_k);
}

#endif
