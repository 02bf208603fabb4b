/* A problem in cuBLASLt's words: operands, epilogue and scales. */
#ifndef GEMMEPI_PRODUCT_ROUTES_LT_DESCRIBE_H
#define GEMMEPI_PRODUCT_ROUTES_LT_DESCRIBE_H

#include "../candidate.h"
#include "lt_rule.h"

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
    gemmepi__lt_algorithm algorithm; /* its name */
    const char *left_out;            /* what another algorithm is known to do wrong, or NULL */
    const char *not_with_c;          /* what this one is known to do wrong where beta is not 0, or NULL */
    size_t workspace_size;
    int scalars;       /* dtype of alpha and beta */
    int c_as_d;        /* where C is not read, D may stand for it */
    int adds_in_place; /* see gemmepi__lt_adds_in_place */
    int pointer_count;
    gemmepi__lt_pointer pointers[GEMMEPI__LT_MAX_POINTERS];
} gemmepi__lt_product;

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
    int dtype = gemmepi__product_dtype(problem);
    int compute = dtype == GEMMEPI_F64                       ? GEMMEPI__CUBLAS_COMPUTE_64F
                  : dtype == GEMMEPI_I32                     ? GEMMEPI__CUBLAS_COMPUTE_32I
                  : problem->compute == GEMMEPI_COMPUTE_TF32 ? GEMMEPI__CUBLAS_COMPUTE_32F_FAST_TF32
                                                             : GEMMEPI__CUBLAS_COMPUTE_32F;
    int32_t transpose_a = b->transposed ? GEMMEPI__CUBLAS_OP_T : GEMMEPI__CUBLAS_OP_N;
    int32_t transpose_b = a->transposed ? GEMMEPI__CUBLAS_OP_T : GEMMEPI__CUBLAS_OP_N;
    int result;
    int8_t fast = 1;
    product->scalars = dtype;
    product->c_as_d = c->dtype == d->dtype;
    result = lt->matmul_desc_init(&product->desc, sizeof product->desc, compute, gemmepi__lt_type(dtype));
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

#endif
