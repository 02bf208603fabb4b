/* >>networks */
#ifndef GEMMEPI_API_NETWORKS_H
#define GEMMEPI_API_NETWORKS_H

#include "formulas.h"
#include "layers.h"

/* Flags of a network. It also has RELAXED and BATCH_INVARIANT (of y, and of dx). */
#define GEMMEPI_NETWORK_BIAS       0x0040000000000000ull /* each layer has a bias */
#define GEMMEPI_NETWORK_TRANSPOSED 0x0080000000000000ull /* w is stored [out, in], and dw is; else [in, out] */
#define GEMMEPI_NETWORK_SAVED      0x0100000000000000ull /* forward keeps what backward needs in args.saved */
#define GEMMEPI_NETWORK_DX         0x0200000000000000ull /* backward computes dx */
#define GEMMEPI_NETWORK_DW         0x0400000000000000ull /* backward computes dw, with BIAS dbias, too */
#define GEMMEPI_ACCUMULATE_DX      0x0800000000000000ull /* args.dx += dx; else it is overwritten */
#define GEMMEPI_ACCUMULATE_DW      0x1000000000000000ull /* args.dw += dw and args.dbias += dbias; else they are overwritten */

/* A layer of a network. formula replaces activation, as in gemmepi_linear_desc: text that computes d, which is as wide as v, from v.
   It assigns only d. operands are its inputs, without scales, and gradients d_NAME of them, which backward writes. */
typedef struct gemmepi_network_layer {
    int64_t width;       /* columns of its output */
    const char *formula; /* NULL: activation */
    const gemmepi_operand *operands;
    int operand_count;           /* of all layers together at most 48 */
    gemmepi_epilogue activation; /* RELU and so on, without GATED; 0: NONE */
    int has_parameter;           /* as in gemmepi_linear_desc */
    double activation_parameter;
} gemmepi_network_layer;

/* A small network, forward and backward. With y_0 = x and, for the layers i from 1 on,

       v_i = y_(i-1) w_i + bias_i        y_i = act_i(v_i), or the formula of v_i        y = y_n, the last one

   Shapes: x and dx [rows, input], w_i [width of i - 1, width of i], bias_i [width of i], y and dy [rows, the last width]; dx, dw_i
   and dbias_i are the gradients of the sum of dy times y. All are row-major. Widths are any; leading dimensions and widths that are multiples
   of 16 bytes are fastest.

   Between layers y_i is rounded to dtype; sums, bias and activation are in F32 or wider. Backward makes v and y_i of the hidden
   layers again, from x. With SAVED it reads what forward kept in args.saved: gemmepi_plan_info has its saved_size, which may be 0, and is
   the same for both directions. Only a backward of the same desc, context and version can read it; the flags DX, DW,
   ACCUMULATE_DX and ACCUMULATE_DW may differ.

   How it runs: on a GPU, narrow networks of 16 bits, and forward of F32 with TF32, are one kernel (docs/networks.md says which; gemmepi_plan_explain, whether and why
   not). It gives a row's y and dx the same bits whatever the number of rows. Others run a layer at a time, by the plans of
   gemmepi_linear, with what is between layers in workspace. The derivative of each layer's activation is in the product that makes
   its dy, if not both the last layer and the one before have formulas.
   Every layer has the bounds of gemmepi_linear, with its y as stored; docs/numerics.md has the bound of a whole network. */
typedef struct gemmepi_network_desc {
    int64_t rows;  /* 0 to 2^31 - 1 */
    int64_t input; /* columns of x */
    const gemmepi_network_layer *layers;
    int layer_count;     /* 1 to 16 */
    gemmepi_dtype dtype; /* of x, w, y, dy and dx: F16, BF16, F32 or F64; 0: F32 */
    uint64_t flags;      /* NETWORK_BIAS and so on, RELAXED, BATCH_INVARIANT */

    gemmepi_compute compute;      /* F32: strict, or TF32, as in gemmepi_matmul_desc; 0: by dtype */
    gemmepi_dtype bias_dtype;     /* F32, F16 or BF16 (F64 in F64); 0: dtype */
    gemmepi_dtype gradient_dtype; /* of dw and dbias, likewise */
    int64_t x_ld, y_ld;           /* elements from one row to the next, of dx and dy, too; 0: dense */
    size_t alignment;             /* bytes that all pointers are multiples of, as in gemmepi_matmul_desc; 0: 16, also in one-shot calls */

    /* The first layer multiplies what this text makes of x, which is called a: the text of gemmepi_linear_desc.a.formula, for instance
       "sin(frequency * a + phase)"; its operands are those of layers[0], each for the text that reads it. NULL: x itself */
    const char *input_formula;
    gemmepi_dtype x_dtype; /* of x and dx, with input_formula; 0: dtype */
} gemmepi_network_desc;

/* The pointers of a network, and arrays of layer_count of them, which are read during the call. Forward reads x, w and, with BIAS, bias, and writes
   y and, with SAVED, saved. Backward reads x, w, bias, dy and, with SAVED, saved, and writes dx, dw and dbias as asked for. One
   struct serves both: each ignores what only the other has. A pointer without its flag is refused. Outputs overlap nothing. */
typedef struct gemmepi_network_args {
    const void *x;
    const void *const *w;
    const void *const *bias; /* with BIAS; else NULL */
    void *y;
    const void *dy;
    void *dx;                     /* with DX */
    void *const *dw;              /* with DW */
    void *const *dbias;           /* with DW and BIAS */
    void *saved;                  /* with SAVED: written by forward, read by backward; a multiple of 256 */
    size_t saved_size;            /* bytes; at least the plan's */
    void *const *const *operands; /* for each layer an array as gemmepi_linear_args.operands, NULL where it has none; NULL: none has */

    void *workspace;       /* on the device, a multiple of 256; NULL: the context's own for that stream */
    size_t workspace_size; /* bytes; at least the plan's; all of it may be used */
} gemmepi_network_args;

#endif
