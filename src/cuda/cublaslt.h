/* cuBLASLt's interface, as far as it is used; declared by hand as the driver's in driver.h. */
#ifndef GEMMEPI_CUDA_CUBLASLT_H
#define GEMMEPI_CUDA_CUBLASLT_H

#include "driver.h"

typedef int gpi__lt_status;
typedef struct gpi__lt_handle_opaque *gpi__lt_handle;

/* Descriptors that the library builds in memory of ours, by the functions named _internal, which are told the size. A
   later version may use more of it than an earlier one: 23 words in CUDA 12.0, 32 in 13.0. Copies by value are good. */
typedef struct gpi__lt_matmul_desc {
    uint64_t data[32];
} gpi__lt_matmul_desc;

typedef struct gpi__lt_layout {
    uint64_t data[8];
} gpi__lt_layout;

typedef struct gpi__lt_preference {
    uint64_t data[8];
} gpi__lt_preference;

typedef struct gpi__lt_algo {
    uint64_t data[8];
} gpi__lt_algo;

typedef struct gpi__lt_heuristic {
    gpi__lt_algo algo;
    size_t workspace_size;
    gpi__lt_status state;
    float waves;
    int reserved[4];
} gpi__lt_heuristic;

/* cuBLASLt's name, value; ours has GPI__ before it. The MATMUL_DESC attributes above 26
   came after CUDA 12.0: a library that does not know one answers INVALID_VALUE. */
#define GPI__CUBLASLT_CONSTANTS(X)                            \
    X(CUBLAS_STATUS_SUCCESS, 0)                               \
    X(CUBLAS_STATUS_NOT_INITIALIZED, 1)                       \
    X(CUBLAS_STATUS_ALLOC_FAILED, 3)                          \
    X(CUBLAS_STATUS_INVALID_VALUE, 7)                         \
    X(CUBLAS_STATUS_ARCH_MISMATCH, 8)                         \
    X(CUBLAS_STATUS_EXECUTION_FAILED, 13)                     \
    X(CUBLAS_STATUS_INTERNAL_ERROR, 14)                       \
    X(CUBLAS_STATUS_NOT_SUPPORTED, 15)                        \
    X(CUDA_R_32F, 0)                                          \
    X(CUDA_R_64F, 1)                                          \
    X(CUDA_R_16F, 2)                                          \
    X(CUDA_R_8I, 3)                                           \
    X(CUDA_R_32I, 10)                                         \
    X(CUDA_R_16BF, 14)                                        \
    X(CUDA_R_8F_E4M3, 28)                                     \
    X(CUDA_R_8F_E5M2, 29)                                     \
    X(CUBLAS_COMPUTE_16F, 64)                                 \
    X(CUBLAS_COMPUTE_32F, 68)                                 \
    X(CUBLAS_COMPUTE_32F_PEDANTIC, 69)                        \
    X(CUBLAS_COMPUTE_64F, 70)                                 \
    X(CUBLAS_COMPUTE_32I, 72)                                 \
    X(CUBLAS_COMPUTE_32F_FAST_16F, 74)                        \
    X(CUBLAS_COMPUTE_32F_FAST_16BF, 75)                       \
    X(CUBLAS_COMPUTE_32F_FAST_TF32, 77)                       \
    X(CUBLAS_OP_N, 0)                                         \
    X(CUBLAS_OP_T, 1)                                         \
    X(CUBLASLT_POINTER_MODE_HOST, 0)                          \
    X(CUBLASLT_POINTER_MODE_DEVICE, 1)                        \
    X(CUBLASLT_POINTER_MODE_DEVICE_VECTOR, 2)                 \
    X(CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO, 3) \
    X(CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST, 4) \
    X(CUBLASLT_ORDER_COL, 0)                                  \
    X(CUBLASLT_ORDER_ROW, 1)                                  \
    X(CUBLASLT_EPILOGUE_DEFAULT, 1)                           \
    X(CUBLASLT_EPILOGUE_RELU, 2)                              \
    X(CUBLASLT_EPILOGUE_BIAS, 4)                              \
    X(CUBLASLT_EPILOGUE_RELU_BIAS, 6)                         \
    X(CUBLASLT_EPILOGUE_GELU, 32)                             \
    X(CUBLASLT_EPILOGUE_GELU_BIAS, 36)                        \
    X(CUBLASLT_EPILOGUE_RELU_AUX, 130)                        \
    X(CUBLASLT_EPILOGUE_RELU_AUX_BIAS, 134)                   \
    X(CUBLASLT_EPILOGUE_DRELU, 136)                           \
    X(CUBLASLT_EPILOGUE_DRELU_BGRAD, 152)                     \
    X(CUBLASLT_EPILOGUE_GELU_AUX, 160)                        \
    X(CUBLASLT_EPILOGUE_GELU_AUX_BIAS, 164)                   \
    X(CUBLASLT_EPILOGUE_DGELU, 192)                           \
    X(CUBLASLT_EPILOGUE_DGELU_BGRAD, 208)                     \
    X(CUBLASLT_EPILOGUE_BGRADA, 256)                          \
    X(CUBLASLT_EPILOGUE_BGRADB, 512)                          \
    X(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, 0)                   \
    X(CUBLASLT_MATMUL_DESC_SCALE_TYPE, 1)                     \
    X(CUBLASLT_MATMUL_DESC_POINTER_MODE, 2)                   \
    X(CUBLASLT_MATMUL_DESC_TRANSA, 3)                         \
    X(CUBLASLT_MATMUL_DESC_TRANSB, 4)                         \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE, 7)                       \
    X(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)                   \
    X(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, 10)             \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 11)          \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 12)               \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, 13)     \
    X(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, 14)     \
    X(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, 15)               \
    X(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 17)               \
    X(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 18)               \
    X(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, 19)               \
    X(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, 20)               \
    X(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, 21)                \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, 22)        \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, 23)    \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, 24)     \
    X(CUBLASLT_MATMUL_DESC_FAST_ACCUM, 25)                    \
    X(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 26)                \
    X(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 31)                  \
    X(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 32)                  \
    X(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, 33)                  \
    X(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, 34)                  \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, 35)       \
    X(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, 36)           \
    X(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, 37)              \
    X(CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, 0)             \
    X(CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3, 1)            \
    X(CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0, 2)            \
    X(CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F, 3)          \
    X(CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F, 4)             \
    X(CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F, 5)         \
    X(CUBLASLT_MATRIX_LAYOUT_TYPE, 0)                         \
    X(CUBLASLT_MATRIX_LAYOUT_ORDER, 1)                        \
    X(CUBLASLT_MATRIX_LAYOUT_ROWS, 2)                         \
    X(CUBLASLT_MATRIX_LAYOUT_COLS, 3)                         \
    X(CUBLASLT_MATRIX_LAYOUT_LD, 4)                           \
    X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5)                  \
    X(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6)         \
    X(CUBLASLT_MATMUL_PREF_SEARCH_MODE, 0)                    \
    X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)            \
    X(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3)          \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)          \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)          \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)          \
    X(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)          \
    X(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, 9)                \
    X(CUBLASLT_REDUCTION_SCHEME_NONE, 0)                      \
    X(CUBLASLT_REDUCTION_SCHEME_INPLACE, 1)                   \
    X(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2)              \
    X(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 4)               \
    X(CUBLASLT_REDUCTION_SCHEME_MASK, 7)                      \
    X(CUBLASLT_ALGO_CONFIG_ID, 0)                             \
    X(CUBLASLT_ALGO_CONFIG_TILE_ID, 1)                        \
    X(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2)                     \
    X(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 3)               \
    X(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4)                  \
    X(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 5)                  \
    X(CUBLASLT_ALGO_CONFIG_STAGES_ID, 6)                      \
    X(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 7)                 \
    X(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 8)

enum {
#define GPI__CUBLASLT_CONSTANT(name, value) GPI__##name = value,
    GPI__CUBLASLT_CONSTANTS(GPI__CUBLASLT_CONSTANT)
#undef GPI__CUBLASLT_CONSTANT
};

/* our field, the exported name (present since CUDA 12.0), result, parameters; what cuBLASLt calls an enum is an int */
#define GPI__CUBLASLT_FUNCTIONS(X)                                                                         \
    X(get_version, cublasLtGetVersion, size_t, (void))                                                     \
    X(get_status_name, cublasLtGetStatusName, const char *, (gpi__lt_status status))                       \
    X(get_status_string, cublasLtGetStatusString, const char *, (gpi__lt_status status))                   \
    X(create, cublasLtCreate, gpi__lt_status, (gpi__lt_handle * handle))                                   \
    X(destroy, cublasLtDestroy, gpi__lt_status, (gpi__lt_handle handle))                                   \
    X(matmul, cublasLtMatmul, gpi__lt_status,                                                              \
      (gpi__lt_handle handle, gpi__lt_matmul_desc * desc, const void *alpha, const void *a,                \
       gpi__lt_layout *a_layout, const void *b, gpi__lt_layout *b_layout, const void *beta, const void *c, \
       gpi__lt_layout *c_layout, void *d, gpi__lt_layout *d_layout, const gpi__lt_algo *algo,              \
       void *workspace, size_t workspace_size, gpi__cu_stream stream))                                     \
    X(matmul_desc_init, cublasLtMatmulDescInit_internal, gpi__lt_status,                                   \
      (gpi__lt_matmul_desc * desc, size_t size, int compute_type, int scale_type))                         \
    X(matmul_desc_set_attribute, cublasLtMatmulDescSetAttribute, gpi__lt_status,                           \
      (gpi__lt_matmul_desc * desc, int attribute, const void *value, size_t size))                         \
    X(matmul_desc_get_attribute, cublasLtMatmulDescGetAttribute, gpi__lt_status,                           \
      (gpi__lt_matmul_desc * desc, int attribute, void *value, size_t size, size_t *written))              \
    X(layout_init, cublasLtMatrixLayoutInit_internal, gpi__lt_status,                                      \
      (gpi__lt_layout * layout, size_t size, int type, uint64_t rows, uint64_t cols, int64_t ld))          \
    X(layout_set_attribute, cublasLtMatrixLayoutSetAttribute, gpi__lt_status,                              \
      (gpi__lt_layout * layout, int attribute, const void *value, size_t size))                            \
    X(preference_init, cublasLtMatmulPreferenceInit_internal, gpi__lt_status,                              \
      (gpi__lt_preference * preference, size_t size))                                                      \
    X(preference_set_attribute, cublasLtMatmulPreferenceSetAttribute, gpi__lt_status,                      \
      (gpi__lt_preference * preference, int attribute, const void *value, size_t size))                    \
    X(algo_get_heuristic, cublasLtMatmulAlgoGetHeuristic, gpi__lt_status,                                  \
      (gpi__lt_handle handle, gpi__lt_matmul_desc * desc, gpi__lt_layout * a, gpi__lt_layout * b,          \
       gpi__lt_layout * c, gpi__lt_layout * d, gpi__lt_preference * preference, int requested,             \
       gpi__lt_heuristic *results, int *returned))                                                         \
    X(algo_config_get_attribute, cublasLtMatmulAlgoConfigGetAttribute, gpi__lt_status,                     \
      (const gpi__lt_algo *algo, int attribute, void *value, size_t size, size_t *written))

/* Filled by gpi__load_cublaslt; then every function is there. */
typedef struct gpi__cublaslt {
    void *library; /* NULL if a resolver supplied everything */
    int version;   /* 130100 for cuBLASLt 13.1.0             */
#define GPI__CUBLASLT_FIELD(field, symbol, result, parameters) result(GPI__CUDA_CALL *field) parameters;
    GPI__CUBLASLT_FUNCTIONS(GPI__CUBLASLT_FIELD)
#undef GPI__CUBLASLT_FIELD
} gpi__cublaslt;

/* The status and the sentence for an error code of cuBLASLt; what says what was being done. */
static gemmepi_status gpi__cublaslt_failed(const gpi__cublaslt *lt, gpi__lt_status result, const char *what) {
    const char *name = lt->get_status_name(result), *text = lt->get_status_string(result);
    return gpi__fail(result == GPI__CUBLAS_STATUS_ALLOC_FAILED ? GEMMEPI_OUT_OF_MEMORY : GEMMEPI_CUBLAS_ERROR,
                     "%s: cuBLASLt returned %s (%d), %s", what, name ? name : "an unknown error", result,
                     text ? text : "for which it has no text");
}

#endif
