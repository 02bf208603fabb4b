/* A problem in cuBLASLt's words: operands, epilogue and scales. */
#ifndef GEMMEPI_PRODUCT_ROUTES_LT_DESCRIBE_H
#define GEMMEPI_PRODUCT_ROUTES_LT_DESCRIBE_H

#include "../candidate.h"
#include "lt_rule.h"

/* What a route asks of cuBLASLt. */
typedef enum gpi__lt_use {
    GPI__LT_WHOLE,       /* product and epilogue                              */
    GPI__LT_BARE,        /* alpha A B + beta C                                */
    GPI__LT_BARE_ALPHA_1 /* A B alone: alpha will be 1 and beta 0 in each run */
} gpi__lt_use;

/* A pointer of the matmul descriptor that each run sets. */
typedef struct gpi__lt_pointer {
    int attribute;
    int operand; /* of ours, whose pointer it is */
} gpi__lt_pointer;

#define GPI__LT_MAX_POINTERS 9 /* bias or bias_grad, aux, five scales, two amax */

/* Everything a run hands to cublasLtMatmul but pointers and scalars. */
typedef struct gpi__lt_product {
    gpi__lt_matmul_desc desc;
    gpi__lt_layout a, b, c, d; /* ours, so cuBLASLt's A is b and its B is a */
    gpi__lt_algo algo;
    gpi__lt_algorithm algorithm; /* its name */
    float waves;                 /* its blocks over those that run at once, as cuBLASLt says */
    const char *left_out;        /* what another algorithm is known to do wrong, or NULL */
    int left_out_wrong;          /* others were found wrong on this GPU */
    uint64_t kind;               /* see gpi__lt_kind */
    const char *not_with_c;      /* what this one is known to do wrong where beta is not 0, or NULL */
    size_t workspace_size;
    int scalars;       /* dtype of alpha and beta */
    int c_as_d;        /* where C is not read, D may stand for it */
    int adds_in_place; /* see gpi__lt_may_add_in_memory */
    int pointer_count;
    gpi__lt_pointer pointers[GPI__LT_MAX_POINTERS];
} gpi__lt_product;

static int gpi__lt_type(int dtype) {
    static const int types[] = {
        GPI__CUDA_R_32F,     GPI__CUDA_R_32F,     GPI__CUDA_R_64F, GPI__CUDA_R_16F, GPI__CUDA_R_16BF,
        GPI__CUDA_R_8F_E4M3, GPI__CUDA_R_8F_E5M2, GPI__CUDA_R_8I,  GPI__CUDA_R_32I,
    }; /* by gemmepi_dtype */
    return types[dtype];
}

/* A view as cuBLASLt sees it: column-major, so a line of ours is a column. */
static int gpi__lt_layout_of(const gpi__cublaslt *lt, const gpi__view *view, int64_t batch,
                             gpi__lt_layout *layout) {
    int32_t count = (int32_t)batch;
    int result = lt->layout_init(layout, sizeof *layout, gpi__lt_type(view->dtype), (uint64_t)view->length,
                                 (uint64_t)view->lines, view->ld);
    if (!result && batch > 1)
        result =
            lt->layout_set_attribute(layout, GPI__CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    if (!result && batch > 1)
        result = lt->layout_set_attribute(layout, GPI__CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                          &view->batch_stride, sizeof view->batch_stride);
    return result;
}

static int gpi__lt_set(const gpi__cublaslt *lt, gpi__lt_product *product, int attribute, const void *value,
                       size_t size) {
    return lt->matmul_desc_set_attribute(&product->desc, attribute, value, size);
}

/* Notes a pointer that runs set; here it is set to its alignment alone, which the heuristic reads. */
static int gpi__lt_add_pointer(const gpi__cublaslt *lt, const gpi__problem *problem, gpi__lt_product *product,
                               int attribute, int operand) {
    void *aligned = (void *)(uintptr_t)problem->views[operand].alignment;
    gpi__lt_pointer *pointer = &product->pointers[product->pointer_count++];
    pointer->attribute = attribute;
    pointer->operand = operand;
    return gpi__lt_set(lt, product, attribute, &aligned, sizeof aligned);
}

static int gpi__lt_describe_vector(const gpi__cublaslt *lt, const gpi__problem *problem, int operand,
                                   gpi__lt_product *product) {
    const gpi__view *vector = &problem->views[operand];
    int32_t type = gpi__lt_type(vector->dtype);
    int result = gpi__lt_add_pointer(lt, problem, product, GPI__CUBLASLT_MATMUL_DESC_BIAS_POINTER, operand);
    /* D's type is the default, but beside fp8 operands BF16 is, also where D is F32 */
    if (!result && (vector->dtype != problem->views[GPI__D].dtype || gpi__is_fp8_product(problem)))
        result = gpi__lt_set(lt, product, GPI__CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
    if (!result && problem->batch > 1)
        result = gpi__lt_set(lt, product, GPI__CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &vector->batch_stride,
                             sizeof vector->batch_stride);
    return result;
}

static int gpi__lt_describe_aux(const gpi__cublaslt *lt, const gpi__problem *problem,
                                gpi__lt_product *product) {
    const gpi__view *aux = &problem->views[GPI__AUX];
    int32_t type = gpi__lt_type(aux->dtype);
    int result =
        gpi__lt_add_pointer(lt, problem, product, GPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, GPI__AUX);
    /* as with bias: beside an fp8 D, too, BF16 is the default (H100, cuBLASLt 13.1) */
    if (!result && aux->bits != 1 &&
        (aux->dtype != problem->views[GPI__D].dtype || gpi__is_fp8_product(problem)))
        result =
            gpi__lt_set(lt, product, GPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &type, sizeof type);
    if (!result)
        result =
            gpi__lt_set(lt, product, GPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &aux->ld, sizeof aux->ld);
    if (!result && problem->batch > 1)
        result = gpi__lt_set(lt, product, GPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE,
                             &aux->batch_stride, sizeof aux->batch_stride);
    if (!result && problem->views[GPI__AMAX_AUX].dtype)
        result = gpi__lt_add_pointer(lt, problem, product,
                                     GPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, GPI__AMAX_AUX);
    return result;
}

static int gpi__lt_describe_epilogue(const gpi__cublaslt *lt, const gpi__problem *problem,
                                     gpi__lt_product *product) {
    int32_t epilogue = gpi__lt_epilogue(problem->epilogue);
    int vector = gpi__has(problem, GEMMEPI_BIAS) ? GPI__BIAS : GPI__BIAS_GRAD;
    int result = gpi__lt_set(lt, product, GPI__CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (!result && gpi__has_operand(problem, vector))
        result = gpi__lt_describe_vector(lt, problem, vector, product);
    if (!result && gpi__has_operand(problem, GPI__AUX) && gpi__activation(problem->epilogue) != GEMMEPI_NONE)
        result = gpi__lt_describe_aux(lt, problem, product);
    if (!result && gpi__has_operand(problem, GPI__AMAX_D))
        result =
            gpi__lt_add_pointer(lt, problem, product, GPI__CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, GPI__AMAX_D);
    return result;
}

/* Our matrix, and the attributes of its scale; our A is cuBLASLt's B. */
typedef struct gpi__lt_scale_row {
    int operand, pointer, mode;
} gpi__lt_scale_row;

static const gpi__lt_scale_row gpi__lt_scales[] = {
    {GPI__A, GPI__CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, GPI__CUBLASLT_MATMUL_DESC_B_SCALE_MODE},
    {GPI__B, GPI__CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, GPI__CUBLASLT_MATMUL_DESC_A_SCALE_MODE},
    {GPI__C, GPI__CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, GPI__CUBLASLT_MATMUL_DESC_C_SCALE_MODE},
    {GPI__D, GPI__CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, GPI__CUBLASLT_MATMUL_DESC_D_SCALE_MODE},
    {GPI__AUX, GPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER,
     GPI__CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE},
};

/* A bare product takes the scales that change along k; the pass takes the others. */
static int gpi__lt_describe_scales(const gpi__cublaslt *lt, const gpi__problem *problem, gpi__lt_use use,
                                   gpi__lt_product *product) {
    static const int32_t modes[] = {
        0, GPI__CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, GPI__CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
        GPI__CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F, GPI__CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F};
    size_t i;
    int result = 0;
    for (i = 0; i < GPI__COUNT(gpi__lt_scales) && !result; i++) {
        const gpi__lt_scale_row *row = &gpi__lt_scales[i];
        int mode = problem->views[row->operand].scale;
        int bare = use != GPI__LT_WHOLE;
        if (!mode || (bare && (row->operand > GPI__B || !gpi__scale_varies_along_k(problem, row->operand))))
            continue;
        result = gpi__lt_add_pointer(lt, problem, product, row->pointer, GPI__SCALE_OF(row->operand));
        if (!result && mode != GEMMEPI_SCALE_TENSOR) /* a library without the attribute has that mode alone */
            result = gpi__lt_set(lt, product, row->mode, &modes[mode], sizeof modes[mode]);
    }
    return result;
}

static int gpi__lt_describe(const gpi__cublaslt *lt, const gpi__problem *problem, const gpi__view *c,
                            const gpi__view *d, gpi__lt_product *product) {
    const gpi__view *a = &problem->views[GPI__A], *b = &problem->views[GPI__B];
    int dtype = gpi__product_dtype(problem);
    int compute = dtype == GEMMEPI_F64                       ? GPI__CUBLAS_COMPUTE_64F
                  : dtype == GEMMEPI_I32                     ? GPI__CUBLAS_COMPUTE_32I
                  : problem->compute == GEMMEPI_COMPUTE_TF32 ? GPI__CUBLAS_COMPUTE_32F_FAST_TF32
                                                             : GPI__CUBLAS_COMPUTE_32F;
    int32_t transpose_a = b->transposed ? GPI__CUBLAS_OP_T : GPI__CUBLAS_OP_N;
    int32_t transpose_b = a->transposed ? GPI__CUBLAS_OP_T : GPI__CUBLAS_OP_N;
    int result;
    int8_t fast = 1;
    product->scalars = dtype;
    product->c_as_d = c->dtype == d->dtype;
    result = lt->matmul_desc_init(&product->desc, sizeof product->desc, compute, gpi__lt_type(dtype));
    if (!result && (problem->flags & GEMMEPI_FAST_ACCUMULATION))
        result = gpi__lt_set(lt, product, GPI__CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
    if (!result)
        result = gpi__lt_set(lt, product, GPI__CUBLASLT_MATMUL_DESC_TRANSA, &transpose_a, sizeof transpose_a);
    if (!result)
        result = gpi__lt_set(lt, product, GPI__CUBLASLT_MATMUL_DESC_TRANSB, &transpose_b, sizeof transpose_b);
    if (!result)
        result = gpi__lt_layout_of(lt, b, problem->batch, &product->b);
    if (!result)
        result = gpi__lt_layout_of(lt, a, problem->batch, &product->a);
    if (!result)
        result = gpi__lt_layout_of(lt, c, problem->batch, &product->c);
    if (!result)
        result = gpi__lt_layout_of(lt, d, problem->batch, &product->d);
    return result;
}

#endif
