// cuBLASLt's functions for bare products of F32, F64, F16, BF16 and I8, in double. It offers nothing else, so that epilogues
// are gemmepi's passes.
#ifndef EMULATOR_PRODUCTS_H
#define EMULATOR_PRODUCTS_H

#include "driver.h"

#include "../../src/cuda/cublaslt.h"

typedef gpi__lt_matmul_desc opaque_desc;
typedef gpi__lt_layout opaque_layout;

struct lt_desc {
    s32 compute, scale, pointer_mode, a_operation, b_operation, epilogue;
    u32 has_more; // something that is not for bare products
};
struct lt_layout {
    s32 type, order, batch;
    s64 ld, stride;
    u64 rows, columns;
};
static_assert(sizeof(lt_desc) <= sizeof(opaque_desc) && sizeof(lt_layout) <= sizeof(opaque_layout),
              "they fit");

template <class To, class From> static To &inside(From *of) {
    return *(To *)of->data;
}

EXPORTED size_t cublasLtGetVersion() {
    return 130000;
}
EXPORTED const char *cublasLtGetStatusName(int) {
    return "a status of the emulator";
}
EXPORTED const char *cublasLtGetStatusString(int) {
    return "see what the emulator said";
}
EXPORTED int cublasLtCreate(gpi__lt_handle *handle) {
    *handle = (gpi__lt_handle)places;
    return GPI__CUBLAS_STATUS_SUCCESS;
}
EXPORTED int cublasLtDestroy(gpi__lt_handle) {
    return GPI__CUBLAS_STATUS_SUCCESS;
}
EXPORTED int cublasLtMatmulDescInit_internal(opaque_desc *desc, size_t, int compute, int scale) {
    memset(desc, 0, sizeof *desc);
    inside<lt_desc>(desc).compute = compute;
    inside<lt_desc>(desc).scale = scale;
    inside<lt_desc>(desc).epilogue = GPI__CUBLASLT_EPILOGUE_DEFAULT;
    return GPI__CUBLAS_STATUS_SUCCESS;
}
static s32 *field_of(lt_desc &of, int attribute) {
    switch (attribute) {
    case GPI__CUBLASLT_MATMUL_DESC_POINTER_MODE:
        return &of.pointer_mode;
    case GPI__CUBLASLT_MATMUL_DESC_TRANSA:
        return &of.a_operation;
    case GPI__CUBLASLT_MATMUL_DESC_TRANSB:
        return &of.b_operation;
    case GPI__CUBLASLT_MATMUL_DESC_EPILOGUE:
        return &of.epilogue;
    }
    return NULL;
}
EXPORTED int cublasLtMatmulDescSetAttribute(opaque_desc *desc, int attribute, const void *value,
                                            size_t size) {
    lt_desc &of = inside<lt_desc>(desc);
    s32 *field = field_of(of, attribute);
    static const char zeros[16] = {0};
    if (field)
        memcpy(field, value, sizeof *field);
    else if (size > sizeof zeros || memcmp(value, zeros, size) != 0)
        of.has_more = 1;
    return GPI__CUBLAS_STATUS_SUCCESS;
}
EXPORTED int cublasLtMatmulDescGetAttribute(opaque_desc *desc, int attribute, void *value, size_t size,
                                            size_t *written) {
    s32 *field = field_of(inside<lt_desc>(desc), attribute);
    if (!field || size < sizeof *field)
        return GPI__CUBLAS_STATUS_INVALID_VALUE;
    memcpy(value, field, sizeof *field);
    if (written)
        *written = sizeof *field;
    return GPI__CUBLAS_STATUS_SUCCESS;
}
EXPORTED int cublasLtMatrixLayoutInit_internal(opaque_layout *layout, size_t, int type, uint64_t rows,
                                               uint64_t columns, int64_t ld) {
    memset(layout, 0, sizeof *layout);
    inside<lt_layout>(layout) = {type, GPI__CUBLASLT_ORDER_COL, 1, ld, 0, rows, columns};
    return GPI__CUBLAS_STATUS_SUCCESS;
}
EXPORTED int cublasLtMatrixLayoutSetAttribute(opaque_layout *layout, int attribute, const void *value,
                                              size_t) {
    lt_layout &of = inside<lt_layout>(layout);
    switch (attribute) {
    case GPI__CUBLASLT_MATRIX_LAYOUT_ORDER:
        memcpy(&of.order, value, sizeof of.order);
        return GPI__CUBLAS_STATUS_SUCCESS;
    case GPI__CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        memcpy(&of.batch, value, sizeof of.batch);
        return GPI__CUBLAS_STATUS_SUCCESS;
    case GPI__CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        memcpy(&of.stride, value, sizeof of.stride);
        return GPI__CUBLAS_STATUS_SUCCESS;
    }
    return GPI__CUBLAS_STATUS_INVALID_VALUE;
}
EXPORTED int cublasLtMatmulPreferenceInit_internal(gpi__lt_preference *, size_t) {
    return GPI__CUBLAS_STATUS_SUCCESS;
}
EXPORTED int cublasLtMatmulPreferenceSetAttribute(gpi__lt_preference *, int, const void *, size_t) {
    return GPI__CUBLAS_STATUS_SUCCESS;
}
static bool is_known(const opaque_layout *layout) {
    const lt_layout &of = inside<const lt_layout>(layout);
    return of.type != GPI__CUDA_R_8F_E4M3 && of.type != GPI__CUDA_R_8F_E5M2 &&
           of.order == GPI__CUBLASLT_ORDER_COL;
}
EXPORTED int cublasLtMatmulAlgoGetHeuristic(gpi__lt_handle, opaque_desc *desc, opaque_layout *a,
                                            opaque_layout *b, opaque_layout *c, opaque_layout *d,
                                            gpi__lt_preference *, int, gpi__lt_heuristic *results,
                                            int *returned) {
    const lt_desc &of = inside<lt_desc>(desc);
    *returned = 0;
    if (of.epilogue != GPI__CUBLASLT_EPILOGUE_DEFAULT || of.has_more || of.pointer_mode > 1 || !is_known(a) ||
        !is_known(b) || !is_known(c) || !is_known(d))
        return GPI__CUBLAS_STATUS_NOT_SUPPORTED;
    memset(results, 0, sizeof *results);
    results->workspace_size = 4096;
    results->waves = 1;
    *returned = 1;
    return GPI__CUBLAS_STATUS_SUCCESS;
}
EXPORTED int cublasLtMatmulAlgoConfigGetAttribute(const gpi__lt_algo *, int, void *value, size_t size,
                                                  size_t *written) {
    memset(value, 0, size);
    *(u8 *)value = 1;
    if (written)
        *written = size;
    return GPI__CUBLAS_STATUS_SUCCESS;
}

static double take_number(int type, const void *from, s64 at) {
    switch (type) {
    case GPI__CUDA_R_32F:
        return ((const float *)from)[at];
    case GPI__CUDA_R_64F:
        return ((const double *)from)[at];
    case GPI__CUDA_R_16F:
        return f32_of_f16(((const u16 *)from)[at]);
    case GPI__CUDA_R_16BF:
        return f32_of_bf16(((const u16 *)from)[at]);
    case GPI__CUDA_R_8I:
        return ((const s8 *)from)[at];
    }
    return ((const s32 *)from)[at];
}
static void put_number(int type, void *to, s64 at, double x) {
    switch (type) {
    case GPI__CUDA_R_32F:
        ((float *)to)[at] = (float)x;
        return;
    case GPI__CUDA_R_64F:
        ((double *)to)[at] = x;
        return;
    case GPI__CUDA_R_16F:
        ((u16 *)to)[at] = f16_of_f32((float)x);
        return;
    case GPI__CUDA_R_16BF:
        ((u16 *)to)[at] = bf16_of_f32((float)x);
        return;
    }
    ((s32 *)to)[at] = (s32)(s64)x; // of I8: wraps, as the kernels do
}
EXPORTED int cublasLtMatmul(gpi__lt_handle, opaque_desc *desc, const void *alpha, const void *a,
                            opaque_layout *a_layout, const void *b, opaque_layout *b_layout, const void *beta,
                            const void *c, opaque_layout *c_layout, void *d, opaque_layout *d_layout,
                            const gpi__lt_algo *, void *workspace, size_t workspace_size, gpi__cu_stream) {
    const lt_desc &of = inside<lt_desc>(desc);
    const lt_layout &la = inside<lt_layout>(a_layout), &lb = inside<lt_layout>(b_layout),
                    &lc = inside<lt_layout>(c_layout), &ld = inside<lt_layout>(d_layout);
    double by = take_number(of.scale, alpha, 0), by_c = take_number(of.scale, beta, 0);
    s64 k = (s64)(of.a_operation ? la.rows : la.columns);
    std::vector<double> row((size_t)k);
    if (!has((u64)workspace, workspace_size))
        return GPI__CUBLAS_STATUS_INVALID_VALUE;
    memset(workspace, 0xff, workspace_size);
    for (s64 t = 0; t < ld.batch; t++)
        for (s64 i = 0; i < (s64)ld.rows; i++) {
            for (s64 l = 0; l < k; l++)
                row[(size_t)l] =
                    take_number(la.type, a, t * la.stride + (of.a_operation ? i * la.ld + l : l * la.ld + i));
            for (s64 j = 0; j < (s64)ld.columns; j++) {
                double sum = 0;
                for (s64 l = 0; l < k; l++)
                    sum += row[(size_t)l] *
                           take_number(lb.type, b,
                                       t * lb.stride + (of.b_operation ? l * lb.ld + j : j * lb.ld + l));
                sum *= by;
                if (by_c != 0)
                    sum += by_c * take_number(lc.type, c, t * lc.stride + j * lc.ld + i);
                put_number(ld.type, d, t * ld.stride + j * ld.ld + i, sum);
            }
        }
    return GPI__CUBLAS_STATUS_SUCCESS;
}

#endif
