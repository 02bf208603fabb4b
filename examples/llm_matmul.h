/* The products of llm.c (llmc/matmul.cuh) by gemmepi, with the names and parameters that they have there: include this
   instead, define LLM_DTYPE as floatX is (GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_F32), and open llm_context where llm.c
   creates its cuBLASLt handle. Errors end the program, as they do there. C99 and C++11. */
#include "gemmepi.h"
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
#define LLM_OR(value) = value /* llm.c's default arguments */
#define LLM_ZERO {}
#else
#define LLM_OR(value)
#define LLM_ZERO {0}
#endif

static gemmepi_context *llm_context; /* gemmepi_create(NULL, &llm_context) */

static inline void llm_check(gemmepi_status status) {
    if (status != GEMMEPI_OK) {
        fprintf(stderr, "%s: %s\n", gemmepi_status_name(status), gemmepi_last_error());
        exit(EXIT_FAILURE);
    }
}

/* Column-major, d [m, n] = op(a) op(b) + bias [m]. pre_gelu: forward it is saved and d is its gelu, backward d is multiplied
   by gelu'(pre_gelu). */
static inline void matmul_cublaslt(void *d, const void *a, const void *b, const void *bias, int m, int n,
                                   int k, gemmepi_stream stream, int transA LLM_OR(1), int transB LLM_OR(0),
                                   int batch_count LLM_OR(0), size_t strideA LLM_OR(0),
                                   size_t strideB LLM_OR(0), size_t strideOut LLM_OR(0),
                                   int accumulate LLM_OR(0), void *pre_gelu LLM_OR(NULL),
                                   int backward LLM_OR(0)) {
    gemmepi_matmul_desc desc = LLM_ZERO;
    gemmepi_matmul_args args = LLM_ZERO;
    desc.m = m, desc.n = n, desc.k = k, desc.batch = batch_count;
    desc.order = GEMMEPI_COLUMN_MAJOR, desc.a.dtype = LLM_DTYPE;
    desc.a.transposed = transA, desc.b.transposed = transB;
    desc.a.batch_stride = (int64_t)strideA, desc.b.batch_stride = (int64_t)strideB;
    desc.d.batch_stride = desc.aux.batch_stride = (int64_t)strideOut;
    desc.epilogue |= bias ? GEMMEPI_BIAS : 0;
    desc.epilogue |= pre_gelu ? GEMMEPI_GELU_TANH | (backward ? GEMMEPI_BACKWARD : GEMMEPI_AUX) : 0;
    desc.flags = accumulate ? GEMMEPI_ACCUMULATE : 0;
    args.a = a, args.b = b, args.d = d, args.bias = bias, args.aux = pre_gelu;
    llm_check(gemmepi_matmul(llm_context, &desc, &args, stream));
}

/* out [B T, OC] = inp [B T, C] weight^T + bias, weight [OC, C]; with pre_gelu it is saved there and out is its gelu. */
static inline void matmul_forward_cublaslt(void *out, const void *inp, const void *weight, const void *bias,
                                           int B, int T, int C, int OC, gemmepi_stream stream,
                                           void *pre_gelu LLM_OR(NULL), int gelu_fusion LLM_OR(1)) {
    (void)gelu_fusion; /* always fused */
    matmul_cublaslt(out, weight, inp, bias, OC, B * T, C, stream, 1, 0, 0, 0, 0, 0, 0, pre_gelu, 0);
}

/* dinp = dout weight, times gelu'(pre_gelu) where inp is the gelu of one; dweight += dout^T inp; dbias += dout's sums. */
static inline void matmul_backward(void *dinp, void *dweight, void *dbias, const void *dout, const void *inp,
                                   const void *weight, float *dbias_buffer, int B, int T, int C, int OC,
                                   gemmepi_stream stream, void *pre_gelu LLM_OR(NULL),
                                   int gelu_fusion LLM_OR(1)) {
    gemmepi_linear_desc desc = LLM_ZERO, before = LLM_ZERO; /* before: the layer whose gelu inp is */
    gemmepi_linear_args args = LLM_ZERO, of_before = LLM_ZERO;
    (void)dbias_buffer, (void)gelu_fusion;
    before.m = desc.m = (int64_t)B * T, before.n = desc.k = C, desc.n = OC;
    before.a.dtype = desc.a.dtype = LLM_DTYPE, desc.b.transposed = 1;
    before.activation = GEMMEPI_GELU_TANH, before.flags = GEMMEPI_LINEAR_SAVED;
    desc.before = pre_gelu ? &before : NULL;
    desc.flags = GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_ACCUMULATE_DB;
    desc.flags |= dbias ? GEMMEPI_LINEAR_DBIAS | GEMMEPI_ACCUMULATE_DBIAS : 0;
    of_before.preact = pre_gelu, args.before = pre_gelu ? &of_before : NULL;
    args.dy = dout, args.a = inp, args.b = weight;
    args.da = dinp, args.db = dweight, args.dbias = dbias;
    llm_check(gemmepi_linear_backward(llm_context, &desc, &args, stream));
}
