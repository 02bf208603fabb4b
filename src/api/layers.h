/* >>layers */
#ifndef GEMMEPI_API_LAYERS_H
#define GEMMEPI_API_LAYERS_H

#include "products.h"

/* Flags of a layer. It also has RELAXED, FAST_ACCUMULATION, FIND_SCALE_D with POWER_OF_TWO_SCALE (of y), and BATCH_INVARIANT (of
   y, preact and, unless a is stored transposed, da; not of db and dbias). Flags of gradients say what gemmepi_linear_backward
   computes. */
#define GEMMEPI_LINEAR_BIAS      0x0010000000000ull /* P has a bias */
#define GEMMEPI_LINEAR_SAVED     0x0020000000000ull /* forward stores P in args.preact, backward reads it there */
#define GEMMEPI_LINEAR_RECOMPUTE 0x0040000000000ull /* backward computes P again, from a, b and bias */
#define GEMMEPI_LINEAR_DA        0x0080000000000ull /* dA is asked for */
#define GEMMEPI_LINEAR_DB        0x0100000000000ull /* dB is asked for */
#define GEMMEPI_LINEAR_DBIAS     0x0200000000000ull /* dbias is asked for */
#define GEMMEPI_ACCUMULATE_DA    0x0400000000000ull /* args.da += dA; else it is overwritten */
#define GEMMEPI_ACCUMULATE_DB    0x0800000000000ull /* args.db += dB */
#define GEMMEPI_ACCUMULATE_DBIAS 0x1000000000000ull /* args.dbias += dbias */
#define GEMMEPI_LINEAR_RESIDUAL  0x2000000000000ull /* Y has a residual */
#define GEMMEPI_LINEAR_DY_IS_G   0x4000000000000ull /* backward finds G in args.dy, not dY */
#define GEMMEPI_LINEAR_FORWARD   0x8000000000000ull /* backward runs forward, too: see formulas without d */

/* A layer of a network, forward and backward, for every item of a batch:

       P = op(A) op(B) + bias        Y = act(P) + residual, with GATED value act(gate) of the halves of P
       G = dY act'(P)                dA = G op(B)^T     dB = op(A)^T G     dbias = the sums of G's columns

   Shapes: op(A) [m, k], op(B) [k, n], P and G [m, n], Y and dY [m, n] (GATED: n is even, [m, n/2]), bias and dbias [n].
   da and db are stored as a and b are: a weight stored [n, k] (b.transposed) has a db of [n, k]. Their own `transposed` is
   0 or the operand's. preact holds P, for RELU without GATED its bit mask, as AUX stores it. dA, dB and dbias are summed in F32
   or wider (dbias over values of G that are not rounded) and rounded once.
   Column-major: the same layer with A and B exchanged. Bias, dbias and the halves run along m, and the rules of B in
   a batch hold for A.

   Backward needs P if act is not NONE: set SAVED or RECOMPUTE. NONE without GATED has neither. residual has Y's shape, and may be
   exactly y (same pointer, dtype, ld and batch_stride). Its gradient is dY itself: backward does not read it.

   A chain of layers: where a is the y of another layer, desc.before may be that layer's desc, and args.before its args. Then DA gives that
   layer's G, by one product and without its dY in memory:

       dA = (G op(B)^T) act'(P), act and P of the layer before, [m, k], where that is GATED [m, 2k]

   That layer's args.dy is this da, and its flags have DY_IS_G: its backward then has nothing to do for G, and ignores activation, formula
   and preact. dy has G's shape [m, n]; forward ignores the flag, so that one desc serves both directions. Of the layer before are read
   order, m, n, k (the depth of its formula), batch, the dtypes of a and y, activation with its parameter, formula with its operands,
   flags and preact, of its args preact, scale_preact (backward's), operands and operand_scales. Its P must be SAVED where the gradient
   reads it (that of NONE does not), and it has no residual, whose gradient would be that dY. Its formula assigns d, and has no operands
   d_NAME; only one of both layers may have a formula, but with DY_IS_G this one's does not count. a is not transposed, and da is
   overwritten. Column-major: b is the y of the layer before, and DB gives its G.

   Bounds are those of gemmepi_matmul, with the terms of G as stored: u |g| more in each if g_dtype is coarser than the
   accumulator. A recomputed G has the error E of P times |dy| and the largest |act''| nearby. A saved P is the P that preact stores:
   if its rounding crosses a jump of act' (HARDSIGMOID's at 3), G has the value of the other side. fp8 operands whose scales change
   along a gradient's sum (OUTER, VECTOR_128 and BLOCK_128 may) are first written out in F32, which is exact but slow. An A of a batch that
   shares B, whose items are not stored one after another, is copied for dB.

   Batch: if B is shared (b.batch_stride 0), its scale, bias, db and dbias are shared, too (strides 0), and dB and dbias are
   the sums over the batch. If B has items, db has items (its stride is not 0), and dbias as bias. With an A that all items share
   (a.batch_stride 0) da has an item for each, or (da.batch_stride 0, B has items) is the sum; then A's scale has no
   items either. All items may share dy.

   Dtypes: a, b, y, bias and preact as a product's a, b, d, bias and aux. Backward accepts a and b of F64 (all are F64
   then), F32, F16, BF16, E4M3 and E5M2; dy any of these or I8, da, db and dbias F32, F16 or BF16. a, b, y, preact and dy may have
   scales: any mode for a and b, TENSOR for the others. With FIND_SCALE_D forward finds y's scales, in the modes OUTER, VECTOR_128
   and TENSOR, as a product finds its d's; backward ignores the flag.

   A formula replaces the activation, for instance d = v * sigmoid(beta * v). v is P, with the bias, and d is Y.
   Y and dY are as wide as what d is assigned, [m, n], [m, n/2] or [m, 2n] (of p parts n/p or pn); gates are formulas with halves. preact holds P
   itself, for any formula; its scale and dy's are one for the batch. Backward runs the formula's
   gradient, as gemmepi_derive writes it; a formula without a derivative is refused. If that gradient reads P, it needs SAVED or
   RECOMPUTE, else neither, and then preact is not read. uniform gives both directions the same numbers. The gradient of an
   input operand NAME is an output operand d_NAME, of the same kind and width, in F32, F16 or BF16 (F64 in F64; dtype 0: for FULL the
   input's, BF16 where that has 8 bits, for others F32 or F64). List it in operands to ask for it: backward writes it, or, with
   accumulate and except for FULL, adds to it; forward ignores it. It has no scale and no amax. NUMBERs, whole
   numbers, what is in 4 bits or E8M0, and inputs with periods have no gradient. In a batch d_NAME has a batch_stride for items, or 0 for the sum over
   the batch, where NAME has 0, too; a FULL one then accumulates as others do. That of BLOCKED operands with several rows in a block, and of what has rows
   over the batch, has its terms in workspace.

   A formula may assign output operands, too, next to d or in its place, as a loss does without storing its logits:

       lse = row_logsumexp(v); hit = row_sum(column == label ? v : 0)

   Forward writes them; they have no scale and no amax. The gradient of a loss by an output NAME comes in as an input operand dy_NAME, of
   NAME's kind and width, or one SCALAR or NUMBER for all its elements (dtype 0: NAME's); forward ignores it. An output without one passes
   nothing on. If the gradient reads a reduction's result, as that of row_logsumexp does, backward reads NAME where forward wrote it.

   Without d there is no Y: args.y and args.dy are NULL, and backward runs by blocks of rows (column-major: of columns), so that G is
   there for only one block. Blocks are as large as workspace_limit admits, in multiples of 128 rows; if the smallest needs more, the
   layer is refused with the number of bytes. da is written block by block. db, dbias and those d_NAME that are sums over rows are added up
   by blocks in their own dtypes, rounded once for each: F32 is right for them. Everything is one block where batch is above 1, where A has
   scales that are not TENSOR, and where the gradient (with FORWARD the formula) reads row, rows, uniform, stochastic or an operand with a row_period or block_rows above 1 (column-major:
   column, columns, a column_period, block_columns above 1), or has terms in workspace.

   a.formula and b.formula make what is multiplied of what is stored, as in a product: P = op(A) op(B) + bias of what they make, and
   desc.operands has their operands, too, each for the text that reads it. Each product of backward that multiplies what they
   make makes it again: it is not kept. DA then is the gradient of a as it is stored, through its text's gradient, in the product that makes it, and operands
   d_NAME are those of what that text reads, as of desc.formula's; the same of DB and b. A d_NAME needs no flag: without it only operands'
   gradients are made. Sums along the axis that is contiguous need a text as
   wide as what is stored. A matrix in 4 bits or I8 has no gradient: leave its flag out. In a batch a gradient that is a sum over the items of what a text
   makes (da.batch_stride 0 with a.batch_stride 0) has those of each item in workspace. before goes only with a text of b, and a backward without d has one block. To derive more: gemmepi_derive.

   With LINEAR_FORWARD backward does forward's work, too, so that only one of both is run, and each P is computed once: a block's P is stored in
   workspace, in preact's dtype, the outputs are written, and G is made of it, as of one that is SAVED. dy_NAME must then be known ahead, as for a mean. Outputs are
   PER_ROW (column-major: PER_COLUMN) or FULL. Neither SAVED nor RECOMPUTE goes with it, and args.preact is NULL; forward ignores it. */
typedef struct gemmepi_linear_desc {
    int64_t m, n, k;             /* as in gemmepi_matmul_desc */
    int64_t batch;               /* the number of items; 0: 1 */
    gemmepi_order order;         /* of all matrices; 0: row-major */
    gemmepi_compute compute;     /* of all products that it suits, as in gemmepi_matmul_desc */
    gemmepi_epilogue activation; /* RELU and so on, or-ed with GATED and GATE_FIRST or not */
    uint64_t flags;              /* LINEAR_BIAS and so on, RELAXED, FAST_ACCUMULATION, BATCH_INVARIANT, FIND_SCALE_D */
    int has_parameter;           /* 1: activation_parameter counts; 0: it must be 0, and the default holds */
    double activation_parameter; /* p of LEAKY_RELU and ELU */

    gemmepi_matrix a, b;   /* dtype 0: F32, a's */
    gemmepi_matrix y;      /* dtype 0: a's (as it is multiplied), BF16 where a is E4M3 or E5M2 */
    gemmepi_matrix preact; /* dtype 0: y's (RELU's mask: leave it 0); read only with SAVED */
    gemmepi_matrix dy;     /* dtype 0: y's; with DY_IS_G BF16 where that is E4M3 or E5M2 */
    gemmepi_matrix da, db; /* dtype 0: a's, b's, BF16 where that is E4M3 or E5M2 */
    gemmepi_vector bias;   /* dtype 0: as a product's */
    gemmepi_vector dbias;  /* dtype 0: bias's; without BIAS what a bias's would be */
    int amax_history;      /* FIND_SCALE_D with TENSOR, as in gemmepi_matmul_desc */

    /* Type of G between the passes: F32, F16 or BF16 (F64 in F64). 0: that of a and b, if they differ the one that holds both,
       BF16 for E4M3 and E5M2. Without an activation a dy of this type is G itself */
    gemmepi_dtype g_dtype;
    size_t alignment; /* as in gemmepi_matmul_desc */

    /* Replaces the activation: text that computes Y from P. activation and has_parameter are 0 then. NULL: none */
    const char *formula;
    const struct gemmepi_operand *operands; /* inputs, outputs, and gradients: d_NAME, dy_NAME */
    int operand_count;                      /* at most 28 */
    const char *formula_value;              /* the formula's name of P; NULL: "v" */
    const char *formula_result;             /* the formula's name of Y; NULL: "d" */

    gemmepi_matrix residual;                  /* with RESIDUAL; dtype 0: y's, BF16 where that is E4M3 or E5M2 */
    const struct gemmepi_linear_desc *before; /* the layer whose y is a, for DA; read during the call. NULL: none */

    size_t workspace_limit; /* of backward, if the formula assigns no d: bytes at most; 0: 256 MiB */
} gemmepi_linear_desc;

/* The pointers of a layer. Forward reads a, b and, with BIAS, bias, and writes y and, with SAVED, preact. Backward reads dy, b for da,
   a for db, both and bias for RECOMPUTE, and with SAVED preact, and writes da, db and dbias as asked for. Outputs must not overlap
   anything of their direction.
   One struct serves both: forward ignores dy, da, db, dbias and scale_dy, backward ignores y, scale_y, found_scale_y and
   amax_history. All other pointers without a flag or scale mode in desc are NULL, or the call is refused: bias without BIAS, preact
   without SAVED, backward's da without DA.
   A scale multiplies what is read and what is stored: backward's scale_preact is the reciprocal of forward's. */
typedef struct gemmepi_linear_args {
    const void *a, *b, *bias;
    void *y;
    void *preact; /* written by forward, read by backward */
    const void *dy;
    void *da, *db, *dbias;
    const float *scale_a, *scale_b, *scale_y, *scale_preact, *scale_dy; /* where desc has a mode */
    float *found_scale_y, *amax_history;                                /* FIND_SCALE_D, instead of scale_y: as those of a product */

    void *workspace;       /* on the device, a multiple of 256; NULL: the context's own for that stream */
    size_t workspace_size; /* bytes; at least the plan's; all of it may be used */

    /* With a formula: a pointer for each of desc's operands, in their order; for a NUMBER to a double on the host, for operands
       with more than one element at a multiple of desc.alignment. Both directions need the array, which may be the same, and
       use what they need of it. It is read during the call */
    void *const *operands;
    const float *const *operand_scales; /* the same for operands with a scale mode, else NULL; NULL: none has one */

    const void *residual;        /* with RESIDUAL; backward ignores it */
    const float *scale_residual; /* where desc has a mode */

    const struct gemmepi_linear_args *before; /* of desc.before; read during the call. Forward ignores it */
} gemmepi_linear_args;

#endif
