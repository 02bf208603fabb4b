/* >>layers */
#ifndef GEMMEPI_API_LAYERS_H
#define GEMMEPI_API_LAYERS_H

#include "products.h"

/* Flags of a layer, beside RELAXED, FAST_ACCUMULATION, FIND_SCALE_D with POWER_OF_TWO_SCALE, which are of y, and BATCH_INVARIANT, which
   is of y, preact and da (where a is not stored transposed), not of db and dbias. Those of gradients say what
   gemmepi_linear_backward makes. */
#define GEMMEPI_LINEAR_BIAS      0x0010000000000ull /* P has a bias */
#define GEMMEPI_LINEAR_SAVED     0x0020000000000ull /* forward stores P in args.preact, backward reads it there */
#define GEMMEPI_LINEAR_RECOMPUTE 0x0040000000000ull /* backward computes P anew, from a, b and bias */
#define GEMMEPI_LINEAR_DA        0x0080000000000ull /* dA is asked for */
#define GEMMEPI_LINEAR_DB        0x0100000000000ull /* dB is asked for */
#define GEMMEPI_LINEAR_DBIAS     0x0200000000000ull /* dbias is asked for */
#define GEMMEPI_ACCUMULATE_DA    0x0400000000000ull /* args.da += dA; else it is overwritten */
#define GEMMEPI_ACCUMULATE_DB    0x0800000000000ull /* args.db += dB */
#define GEMMEPI_ACCUMULATE_DBIAS 0x1000000000000ull /* args.dbias += dbias */

/* A layer of a network, forward and backward, for every item of a batch:

       P = op(A) op(B) + bias        Y = act(P), with GATED value act(gate) of the halves of P
       G = dY act'(P)                dA = G op(B)^T     dB = op(A)^T G     dbias = the sums of G's columns

   Shapes: op(A) [m, k], op(B) [k, n], P and G [m, n], Y and dY [m, n] (GATED: n is even, [m, n/2]), bias and dbias [n].
   da and db lie as a and b are stored: a weight stored [n, k] (b.transposed) has a db of [n, k]. Their own `transposed` is
   0 or the operand's. preact holds P, for RELU without GATED its bit mask, as AUX stores it. dA, dB and dbias are summed in F32
   or wider (dbias over values of G that are not rounded) and rounded once.
   Column-major: the same layer with A and B exchanged, so bias, dbias and the halves run along m, and what is said of B in
   a batch holds for A.

   Where act is not NONE backward needs P: one of SAVED and RECOMPUTE. NONE without GATED takes neither.

   Bounds are those of gemmepi_matmul, with the terms of G as stored: u |g| more in each where g_dtype is coarser than the
   accumulator. In a recomputed G the error E of P stands times |dy| and the largest |act''| nearby; a saved P is taken as preact stores
   it, so that where its rounding leads over a jump of act' (HARDSIGMOID's at 3) G has the other side's. fp8 operands whose scales change
   along a gradient's sum (OUTER, VECTOR_128 and BLOCK_128 may) are first written out in F32: right, but slow. An A of a batch that
   shares B, whose items are not stored one after another, is copied for dB.

   Batch: either B is shared (b.batch_stride 0): then so are its scale, bias, db and dbias (strides 0), and dB and dbias are
   the sums over the batch. Or B has items: then db has (its stride is not 0), and dbias as bias. An A that is the same for all items
   (a.batch_stride 0) may have a da of one item for each, or (da.batch_stride 0, B has items) the sum; then its scale has no
   items either. dy may be the same for all items.

   Dtypes: a, b, y, bias and preact as a product's a, b, d, bias and aux. Backward takes a and b of F64 (with F64
   alone), F32, F16, BF16, E4M3 and E5M2; dy any of these or I8, da, db and dbias F32, F16 or BF16. Scales go with a, b, y,
   preact and dy: any mode of a and b, TENSOR of the others. With FIND_SCALE_D forward finds y's scales, in the modes OUTER, VECTOR_128
   and TENSOR, as a product finds its d's; backward takes no notice of it.

   A formula takes the activation's place: d = v * sigmoid(beta * v), say. v is P, with the bias, d is Y, and nothing else is assigned.
   Y and dY are as wide as what d is assigned, [m, n], [m, n/2] or [m, 2n]; gates are formulas with halves. preact holds P
   itself, whatever the formula is, and where it and dy have a scale, that is one for the batch. Backward runs the formula's
   gradient, as gemmepi_derive gives it; what has no derivative is refused. Where that gradient reads P it needs SAVED or
   RECOMPUTE, else neither, and then preact is not read. uniform gives both directions the same numbers. The gradient of an
   input operand NAME is an output operand d_NAME, of its kind and width, in F32, F16 or BF16 (F64 in F64; dtype 0: of FULL the
   input's, BF16 where that has 8 bits, of others F32 or F64). One that is listed is asked for: backward writes it, or, with
   accumulate and but for FULL, adds to it, and forward takes no notice of it. It has no scale and no amax. There are none of
   NUMBERs, of whole numbers, and of inputs with periods. In a batch d_NAME has a batch_stride for items, or 0, PER_COLUMN
   (column-major: PER_ROW) and SCALAR alone, where NAME has 0, too: the sum over the batch. */
typedef struct gemmepi_linear_desc {
    int64_t m, n, k;             /* as in gemmepi_matmul_desc */
    int64_t batch;               /* the number of items; 0: 1 */
    gemmepi_order order;         /* of all matrices; 0: row-major */
    gemmepi_compute compute;     /* of all products that it fits, as in gemmepi_matmul_desc */
    gemmepi_epilogue activation; /* RELU and so on, or-ed with GATED and GATE_FIRST or not */
    uint64_t flags;              /* LINEAR_BIAS and so on, RELAXED, FAST_ACCUMULATION, BATCH_INVARIANT, FIND_SCALE_D */
    int has_parameter;           /* 1: activation_parameter counts; 0: it must be 0, and the default holds */
    double activation_parameter; /* p of LEAKY_RELU and ELU */

    gemmepi_matrix a, b;   /* dtype 0: F32, a's */
    gemmepi_matrix y;      /* dtype 0: a's, BF16 where a is E4M3 or E5M2 */
    gemmepi_matrix preact; /* dtype 0: y's (RELU's mask: leave it 0); read only with SAVED */
    gemmepi_matrix dy;     /* dtype 0: y's */
    gemmepi_matrix da, db; /* dtype 0: a's, b's, BF16 where that is E4M3 or E5M2 */
    gemmepi_vector bias;   /* dtype 0: as a product's */
    gemmepi_vector dbias;  /* dtype 0: bias's; without BIAS what a bias's would be */
    int amax_history;      /* FIND_SCALE_D with TENSOR, as in gemmepi_matmul_desc */

    /* Of G between the passes: F32, F16 or BF16 (F64 in F64). 0: that of a and b, where they differ the one that holds both,
       BF16 for E4M3 and E5M2. A dy that has it already, and no activation, is G itself */
    gemmepi_dtype g_dtype;
    size_t alignment; /* as in gemmepi_matmul_desc */

    /* In the activation's place: what becomes of P, as text. activation and has_parameter are 0 then. NULL: none */
    const char *formula;
    const struct gemmepi_operand *operands; /* what it reads beside P, and gradients of these, d_NAME */
    int operand_count;                      /* at most 28 */
    const char *formula_value;              /* what it calls P; NULL: "v" */
    const char *formula_result;             /* what it calls Y; NULL: "d" */
} gemmepi_linear_desc;

/* The pointers of a layer. Forward reads a, b and, with BIAS, bias, and writes y and, with SAVED, preact. Backward reads dy, b for da,
   a for db, both and bias for RECOMPUTE, and with SAVED preact, and writes da, db and dbias as asked for. Outputs must not overlap
   anything of their direction.
   One struct serves both: forward does not look at dy, da, db, dbias and scale_dy, backward not at y, scale_y, found_scale_y and
   amax_history. All else that desc has no flag or scale mode for is NULL, or the call is refused: bias without BIAS, preact without
   SAVED, backward's da without DA.
   A scale multiplies what is read and what is stored: a preact that forward stored times scale_preact comes back from
   backward's scale_preact, the reciprocal. */
typedef struct gemmepi_linear_args {
    const void *a, *b, *bias;
    void *y;
    void *preact; /* written by forward, read by backward */
    const void *dy;
    void *da, *db, *dbias;
    const float *scale_a, *scale_b, *scale_y, *scale_preact, *scale_dy; /* where desc has a mode */
    float *found_scale_y, *amax_history;                                /* FIND_SCALE_D, in the place of scale_y: as those of a product */

    void *workspace;       /* on the device, a multiple of 256; NULL: the context's own for that stream */
    size_t workspace_size; /* bytes; at least the plan's; all of it may be used */

    /* Of a formula, a pointer for each of desc's operands, in their order: of a NUMBER to a double on the host, of those that
       have more than one element at a multiple of desc.alignment. The array is needed, and may be the same, in both directions;
       each takes those that it needs. The caller's memory, which is read while the call is made */
    void *const *operands;
    const float *const *operand_scales; /* likewise of those with a scale mode, else NULL; NULL: none has one */
} gemmepi_linear_args;

#endif
