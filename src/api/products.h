/* >>problems */
#ifndef GEMMEPI_API_PRODUCTS_H
#define GEMMEPI_API_PRODUCTS_H

#include "types.h"

typedef enum gemmepi_dtype {
    GEMMEPI_DTYPE_DEFAULT = 0, /* the field that has it says which type that is */
    GEMMEPI_F32 = 1,
    GEMMEPI_F64 = 2,
    GEMMEPI_F16 = 3,  /* IEEE binary16                                                                 */
    GEMMEPI_BF16 = 4, /* the upper 16 bits of an F32                                                   */
    GEMMEPI_E4M3 = 5, /* fp8 of 4 exponent and 3 mantissa bits: up to 448, NaN is 0x7f, no infinity    */
    GEMMEPI_E5M2 = 6, /* fp8 of 5 exponent and 2 mantissa bits: up to 57344, the upper half of an F16  */
    GEMMEPI_I8 = 7,
    GEMMEPI_I32 = 8, /* results of I8 operands, and what is added to them                              */
    GEMMEPI_I64 = 9, /* operands of formulas that are only read: labels, seeds; and so are all below   */

    /* Four bits: two elements a byte, the first in the lower half, along the axis that is contiguous in memory, on which extents, ld,
       strides and periods are even. ld and strides count elements. For operands of the kinds FULL and BLOCKED. */
    GEMMEPI_I4 = 10,   /* -8 to 7                                                                        */
    GEMMEPI_U4 = 11,   /* 0 to 15                                                                        */
    GEMMEPI_E2M1 = 12, /* fp4 of 2 exponent bits and 1 of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and these with a sign */
    GEMMEPI_E8M0 = 13  /* 8 bits, 2^(code - 127), 255 is NaN: scales                                     */
} gemmepi_dtype;

typedef enum gemmepi_order {
    GEMMEPI_ROW_MAJOR = 0,
    GEMMEPI_COLUMN_MAJOR = 1
} gemmepi_order;

/* How operands are multiplied and summed. The accumulator is F64 for F64 operands, I32 for I8 operands with an I32
   result, and F32 for all others (the host accumulates in F64 always).
   COMPUTE_F16 is for GPUs that sum in F16 at twice the rate, as GeForce does from Turing on. Sums of 64 steps of k may be in F16; they are
   added up in F32. That adds up to 2^-7 sum_k |alpha A B| to the error, and a sum of 64 products beyond 65504 is infinite. Other kernels,
   other GPUs and the host sum in F32 and F64: what is promised is the bound (docs/numerics.md), no bits. */
typedef enum gemmepi_compute {
    GEMMEPI_COMPUTE_DEFAULT = 0, /* F64 for F64 operands, I32 where both are I8, else F32         */
    GEMMEPI_COMPUTE_F32 = 1,     /* exact products of operands of any type but F64, summed in F32 */
    GEMMEPI_COMPUTE_TF32 = 2,    /* F32 operands of 11 significant bits, the others cut or rounded */
    GEMMEPI_COMPUTE_F64 = 3,     /* F64 operands                                                  */
    GEMMEPI_COMPUTE_I32 = 4,     /* I8 operands: exact products and sums                          */
    GEMMEPI_COMPUTE_F16 = 5      /* F16 operands: exact products, sums of 64 in F16, these in F32 */
} gemmepi_compute;

/* Factors of a matrix, F32 numbers on the device. Elements are multiplied by them when they are read (a, b, c, residual, and aux with
   BACKWARD) or before they are rounded and stored (d, and aux with AUX).
   Only matrices of E4M3, E5M2 and I8 have scales; a and b may have different modes. BGRAD_A and BGRAD_B sum the scaled operand.
   Amax (AMAX_D, AMAX_AUX) tells which scale the next result needs. OUTER, VECTOR_128 and BLOCK_128 are modes of a and b;
   with FIND_SCALE_D d may have OUTER and VECTOR_128.

   The layouts are cuBLASLt 13's. For op(A) of m x k (op(B): exchange m and n, rows and columns):

       TENSOR       one number       s[0]
       OUTER        m numbers        s[row]
                                                 row 0  1  2 ...  m-1
       VECTOR_128   ceil(k / 128) lines of m:    s[k / 128 * m + row]         k 0..127     | s s s ... s |
                                                                              k 128..255   | s s s ... s |
                                                 k 0..127  128..255  ...
       BLOCK_128    ceil(m / 128) lines of L:    s[row / 128 * L + k / 128]   rows 0..127  | s s s . |
                    L = ceil(k / 128) up to a    numbers past ceil(k / 128)   rows 128..   | s s s . |
                    multiple of 4                are not read

   Others call VECTOR_128 groups of 1 x 128 along k, and BLOCK_128 tiles of 128 x 128. Weights in I8 with an a of 16 bits are a b
   with OUTER, one for each output, or VECTOR_128; they are fast where they are stored [n, k] and a has few rows. */
typedef enum gemmepi_scale_mode {
    GEMMEPI_SCALE_NONE = 0,       /* every element by 1                                              */
    GEMMEPI_SCALE_TENSOR = 1,     /* one number for the matrix                                       */
    GEMMEPI_SCALE_OUTER = 2,      /* one for each row of op(A), for each column of op(B)             */
    GEMMEPI_SCALE_VECTOR_128 = 3, /* one for each row of op(A) (column of op(B)) and 128 steps of k  */
    GEMMEPI_SCALE_BLOCK_128 = 4   /* one for each 128 rows of op(A) (columns of op(B)) and 128 of k  */
} gemmepi_scale_mode;

typedef struct gemmepi_scale {
    gemmepi_scale_mode mode;
    int64_t batch_stride; /* F32 numbers between the scales of two items of the batch; 0: the same for all */
} gemmepi_scale;

/* An epilogue is one activation, or-ed with flags. The flags act in this order, all in the accumulator's type;
   results are rounded once, when stored:

           v = alpha * sum_k op(A)[m,k] op(B)[k,n] + beta * C[m,n]        (C is not read when beta is 0)
       BIAS       v += bias[n]
       AUX        aux[m,n] = round(scale_aux * v); for RELU the bit v > 0 instead; amax_aux = max |v|
       forward    v = act(v)
       BACKWARD   v = v * act'(aux[m,n]) instead; RELU selects: v or 0
       RESIDUAL   v += residual[m,n]
       BGRAD      bias_grad[n] = sum_m v
       D[m,n] = round(scale_d * v); amax_d = max |v|
       BGRAD_A    bias_grad[m] = sum_k op(A)[m,k];   BGRAD_B  bias_grad[n] = sum_k op(B)[k,n]

   GATED replaces act. It makes one column of a value column and a gate column, or, backward, two of one:
       forward    n is even; value and gate of column j are columns j and j + n/2 of v (GATE_FIRST: the other way round),
                  v = value act(gate). C and aux are [m,n], D and residual [m,n/2]. aux is the pre-activation, for RELU too
       BACKWARD   v [m,n] is the upstream gradient, aux the saved [m,2n]. With its value and gate the two halves of
                  D, residual [m,2n] and bias_grad [2n] are v act(gate) and v value act'(gate)
       UPSTREAM   v [m,n] is the pre-activation of both halves, aux [m,n/2] the upstream gradient; D and residual [m,n]
   UPSTREAM without GATED has aux [m,n], for RELU too: there is no bit mask.

   A, B, C, residual and the aux that BACKWARD reads are elements times scales. Stores round to nearest
   even; stores of E4M3, E5M2 and I8 saturate, infinities too (NaN stays NaN, and is 0 in I8). With an I32 result
   everything is whole numbers modulo 2^32.

   RELU's mask (AUX or BACKWARD with RELU, without GATED and UPSTREAM): bit n % 8 of byte (m * ld + n) / 8 is set where v > 0, as
   cuBLASLt packs it. ld and batch stride count bits and are multiples of 128; bits past n stay unchanged. In column-major
   order exchange m and n.

   In column-major order bias and bias_grad of BGRAD run along m (length m), and GATED's halves are halves of the m rows,
   as in cuBLASLt. */
typedef uint64_t gemmepi_epilogue;

/* Activations: name, value, derivative; s is the logistic function, Phi and phi the normal distribution's, c = sqrt(2 / pi), p the
   parameter.

       NONE          x                                          1
       RELU          x > 0 ? x : 0, NaN stays NaN               x > 0, applied by selection: v or 0
       GELU_TANH     x q, q = s(2 w), w = c (x + 0.044715 x^3)  q + 2 x q s(-2 w) c (1 + 0.134145 x^2)
       GELU_ERF      x Phi(x)                                   Phi(x) + x phi(x)
       SILU          x s(x)                                     s(x) (1 + x s(-x))
       SIGMOID       s(x)                                       s(x) s(-x)
       TANH          tanh x                                     4 s(2 x) s(-2 x)
       LEAKY_RELU    x > 0 ? x : p x                            x > 0 ? 1 : p
       ELU           x > 0 ? x : p (exp(x) - 1)                 x > 0 ? 1 : p exp(x)
       SQUARED_RELU  x > 0 ? x^2 : 0, NaN stays NaN             2 x, by selection: 0 below
       QUICK_GELU    x s(1.702 x)                               s(z) (1 + z s(-z)), z = 1.702 x
       SOFTPLUS      log(1 + exp(x))                            s(x)
       HARDSWISH     x min(max(x + 3, 0), 6) / 6                0 up to -3, x / 3 + 1 / 2, 1 from 3 on
       MISH          x t, t = tanh(log(1 + exp(x)))             t + x s(x) (1 - t^2)
       HARDSIGMOID   min(max(x + 3, 0), 6) / 6, NaN stays NaN   1 / 6 where -3 < x < 3, by selection: 0 elsewhere

   The formulas hold exactly, also at infinities and NaN: where one says inf * 0 (SILU, the GELUs, MISH and HARDSWISH at
   -inf, the derivatives of all these but HARDSWISH at either infinity) the result is NaN, as in PyTorch.

   Each code has four of its eight bits set, so that neither two activations or-ed together nor an epilogue number of cuBLASLt is a
   code. */
#define GEMMEPI_NONE         0x00ull /* x */
#define GEMMEPI_RELU         0x0full /* x > 0 ? x : 0, NaN stays NaN */
#define GEMMEPI_GELU_TANH    0x17ull /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
#define GEMMEPI_GELU_ERF     0x1bull /* x Phi(x) = 0.5 x (1 + erf(x / sqrt 2)) */
#define GEMMEPI_SILU         0x1dull /* x / (1 + exp(-x)) */
#define GEMMEPI_SIGMOID      0x1eull /* 1 / (1 + exp(-x)) */
#define GEMMEPI_TANH         0x27ull /* tanh x */
#define GEMMEPI_LEAKY_RELU   0x2bull /* x > 0 ? x : p x, p = 0.01 unless given */
#define GEMMEPI_ELU          0x2dull /* x > 0 ? x : p (exp(x) - 1), p = 1 unless given */
#define GEMMEPI_SQUARED_RELU 0x2eull /* x > 0 ? x^2 : 0, NaN stays NaN */
#define GEMMEPI_QUICK_GELU   0x33ull /* x / (1 + exp(-1.702 x)) */
#define GEMMEPI_SOFTPLUS     0x35ull /* log(1 + exp(x)) */
#define GEMMEPI_HARDSWISH    0x36ull /* x min(max(x + 3, 0), 6) / 6 */
#define GEMMEPI_MISH         0x39ull /* x tanh(log(1 + exp(x))) */
#define GEMMEPI_HARDSIGMOID  0x3aull /* min(max(x + 3, 0), 6) / 6, NaN stays NaN */

#define GEMMEPI_ACTIVATION_MASK 0xffull

/* Flags of an epilogue. No two flags of this header share a bit, even in different fields. */
#define GEMMEPI_BIAS       0x0000400ull /* add bias */
#define GEMMEPI_AUX        0x0000800ull /* store the pre-activation; with RELU a bit mask of v > 0 */
#define GEMMEPI_BACKWARD   0x0001000ull /* multiply by act'(aux), which AUX with the same activation stored */
#define GEMMEPI_RESIDUAL   0x0002000ull /* add residual after the activation */
#define GEMMEPI_BGRAD      0x0004000ull /* column sums of the result; with BACKWARD or the activation NONE */
#define GEMMEPI_BGRAD_A    0x0008000ull /* sums of op(A) over k */
#define GEMMEPI_BGRAD_B    0x0010000ull /* sums of op(B) over k; one of the three BGRADs at a time */
#define GEMMEPI_GATED      0x0040000ull /* the columns of v are halves: v = value act(gate); see above */
#define GEMMEPI_GATE_FIRST 0x0080000ull /* with GATED: the first half is the gate, not the second */
#define GEMMEPI_UPSTREAM   0x0100000ull /* with BACKWARD: v = aux act'(v), v computed again, aux the upstream gradient */

#define GEMMEPI_ACCUMULATE_BIAS_GRAD 0x0020000ull /* with a BGRAD: add to bias_grad instead of overwriting it */

/* The names of cuBLASLt. GELU is the tanh form, as in cuBLASLt. */
#define GEMMEPI_EPILOGUE_DEFAULT       GEMMEPI_NONE
#define GEMMEPI_EPILOGUE_RELU          GEMMEPI_RELU
#define GEMMEPI_EPILOGUE_RELU_AUX      (GEMMEPI_RELU | GEMMEPI_AUX)
#define GEMMEPI_EPILOGUE_BIAS          GEMMEPI_BIAS
#define GEMMEPI_EPILOGUE_RELU_BIAS     (GEMMEPI_RELU | GEMMEPI_BIAS)
#define GEMMEPI_EPILOGUE_RELU_AUX_BIAS (GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_BIAS)
#define GEMMEPI_EPILOGUE_DRELU         (GEMMEPI_RELU | GEMMEPI_BACKWARD)
#define GEMMEPI_EPILOGUE_DRELU_BGRAD   (GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD)
#define GEMMEPI_EPILOGUE_GELU          GEMMEPI_GELU_TANH
#define GEMMEPI_EPILOGUE_GELU_AUX      (GEMMEPI_GELU_TANH | GEMMEPI_AUX)
#define GEMMEPI_EPILOGUE_GELU_BIAS     (GEMMEPI_GELU_TANH | GEMMEPI_BIAS)
#define GEMMEPI_EPILOGUE_GELU_AUX_BIAS (GEMMEPI_GELU_TANH | GEMMEPI_AUX | GEMMEPI_BIAS)
#define GEMMEPI_EPILOGUE_DGELU         (GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD)
#define GEMMEPI_EPILOGUE_DGELU_BGRAD   (GEMMEPI_GELU_TANH | GEMMEPI_BACKWARD | GEMMEPI_BGRAD)
#define GEMMEPI_EPILOGUE_BGRADA        GEMMEPI_BGRAD_A
#define GEMMEPI_EPILOGUE_BGRADB        GEMMEPI_BGRAD_B

/* Flags of a product (desc.flags). */
#define GEMMEPI_RELAXED           0x01000000ull /* admit cuBLASLt's epilogues where they are looser than the contract */
#define GEMMEPI_DEVICE_SCALARS    0x02000000ull /* args.alpha and args.beta are on the device, read when the product runs */
#define GEMMEPI_FAST_ACCUMULATION 0x04000000ull /* E4M3 and E5M2 operands: fewer bits in the sums where that is faster */
#define GEMMEPI_AMAX_D            0x08000000ull /* write args.amax_d */
#define GEMMEPI_AMAX_AUX          0x10000000ull /* write args.amax_aux; with AUX, where aux is no bit mask */

/* D += alpha op(A) op(B) (+ bias): c is d, beta is 1, and args.c and args.beta stay NULL. Also a flag of the element-wise
   operation BIAS_GRAD, which then adds to y. */
#define GEMMEPI_ACCUMULATE 0x20000000ull

/* A row of D and of AUX has the same bits at any m and at any place among the rows (in column-major order a column, at any n). Addresses
   have no effect: any pointers, ld, strides of items and desc.alignment, in plans and calls. This holds on one GPU with the
   same gemmepi, NVRTC and driver. Runs with other scalars than alpha 1 and no c agree among themselves. bias_grad and amax depend on all
   rows. Types, transposition, n, k and the epilogue choose one kernel of gemmepi for all m, even if another is faster for some m. Operands
   that the kernel cannot read where they are stored are copied first. explain says how much that costs. */
#define GEMMEPI_BATCH_INVARIANT 0x40000000ull

/* The product finds the scales of a d in E4M3 or E5M2 and writes them to args.found_scale_d; d = round(v / scale). desc.d.scale.mode
   says which scales. They are laid out as those of a product's a, with d's columns as k (column-major: of its b, with d's rows), so
   that the next product reads both. A scale is this run's amax over the largest number of d's type, held between 2^-126 and the
   largest F32, and 1 where amax is 0 or not finite, as CAST_Y_SCALE computes it; it may differ by the error of an activation's short
   form (2^-12).

       OUTER        one for each row (column-major: each column); of at most 128 numbers as with VECTOR_128, where its kernels find them
       VECTOR_128   one for each row and 128 columns: 1 x 128 vectors, the last of which may be shorter
       TENSOR       one for the whole batch, from the amax of earlier runs (delayed scaling)

   TENSOR: args.amax_history holds the amax of the last desc.amax_history runs, the newest first, 0 where there was none. A run computes its
   scale from the largest finite one, moves all one place on and writes its own amax to the first, all on the device,
   so that a graph may hold the run. Set the history to 0, or its first number to what a cast finds. Runs that share a history must not overlap.
   d.scale.batch_stride: F32 numbers between the scales of two items; with TENSOR 0. An empty product writes neither scales nor history.
   Not with ACCUMULATE, and TENSOR not with AMAX_D, because the history has that amax. */
#define GEMMEPI_FIND_SCALE_D 0x10000000000000ull

/* The same of an a (b) that a formula makes in E4M3 or E5M2, for each row of op(A), each column of op(B): desc.a.scale.mode is OUTER or
   VECTOR_128 and says which scales, of what the formula makes. They stay in workspace, next to what is multiplied, and args.scale_a is NULL.
   k runs along the contiguous axis: with ROW_MAJOR a.transposed is 0 and b.transposed 1. The stored a (b) has its scale, if any, as an
   operand of the formula. Not for layers. */
#define GEMMEPI_FIND_SCALE_A 0x2000000000000000ull
#define GEMMEPI_FIND_SCALE_B 0x4000000000000000ull

/* With FIND_SCALE_D, FIND_SCALE_A or FIND_SCALE_B: scales are rounded up to powers of two, so that division by them is exact. */
#define GEMMEPI_POWER_OF_TWO_SCALE 0x20000000000000ull

/* A matrix operand. */
typedef struct gemmepi_matrix {
    gemmepi_dtype dtype; /* 0: see gemmepi_matmul_desc */
    int transposed;      /* a and b only: 1 if the matrix is stored transposed; op() transposes it back */

    /* Elements between the starts of two stored rows (columns in column-major order), at least the length of one; 0: that
       length. For RELU's mask bits, a multiple of 128; 0: the length rounded up to one */
    int64_t ld;

    /* Elements (bits of RELU's mask) between two items of the batch. Inputs: 0 gives all items the same matrix (but a c
       without ld has d's layout). Outputs: items must not overlap */
    int64_t batch_stride;
    gemmepi_scale scale; /* zero: 1 for every element */

    /* a and b of gemmepi_matmul_desc and gemmepi_linear_desc only: text that makes what is multiplied of what is stored, "a * rstd * gain" (see gemmepi_operand),
       rounded once to compute_dtype. NULL: what is stored is multiplied. The scale mode is NONE or TENSOR then, of what is
       stored, but with FIND_SCALE_A (FIND_SCALE_B) OUTER or VECTOR_128, of what is multiplied */
    const char *formula;
    gemmepi_dtype compute_dtype; /* 0: dtype where that is F16 or BF16, else what the other operand has (its compute_dtype, if given) where that is F32, F16, BF16 or F64, else BF16 */
} gemmepi_matrix;

/* bias or bias_grad, contiguous. */
typedef struct gemmepi_vector {
    gemmepi_dtype dtype;  /* 0: d's; BF16 where d is E4M3 or E5M2, F32 where it is I8 */
    int64_t batch_stride; /* elements between two items of the batch; 0: one for all, and a bias_grad is the sum over the batch */
} gemmepi_vector;

/* D = epilogue(alpha op(A) op(B) + beta C) for every item of a batch.

   Shapes: op(A) [m, k], op(B) [k, n], C, D, aux and residual [m, n], bias [n]; with GATED see gemmepi_epilogue.
   Dtypes: if a or b is F64, all are F64. Else a and b are any of F32, F16, BF16, E4M3, E5M2 and I8, also
   different ones; c, d, aux and residual any of these; bias and bias_grad F32, F16 or BF16. If a and b are I8, d may
   also be I32; then c, aux, residual, bias and bias_grad are I32, nothing has a scale, the activation is NONE or RELU,
   BACKWARD and BGRAD have no meaning, and alpha and beta are whole numbers of 32 bits. */
typedef struct gemmepi_matmul_desc {
    /* m or n 0: d is empty, and only a bias_grad with elements is written (sums over no rows are 0). k 0: only beta C and
       the epilogue */
    int64_t m, n, k;
    int64_t batch;           /* the number of products; 0: 1 */
    gemmepi_order order;     /* of all matrices; 0: row-major */
    gemmepi_compute compute; /* 0: by the operands' dtype */
    gemmepi_epilogue epilogue;
    uint64_t flags;              /* RELAXED and so on, above */
    int has_parameter;           /* 1: activation_parameter counts; 0: it must be 0, and the default holds */
    double activation_parameter; /* p of LEAKY_RELU and ELU */

    gemmepi_matrix a;         /* dtype 0: F32 */
    gemmepi_matrix b;         /* dtype 0: a's */
    gemmepi_matrix c;         /* dtype 0: d's, BF16 where d is fp8. ld and batch_stride both 0: d's (of another shape: dense items) */
    gemmepi_matrix d;         /* dtype 0: a's; BF16 where a is fp8, unless d has a scale or an amax */
    gemmepi_matrix aux;       /* dtype 0: d's (RELU's mask: leave it 0); read only with AUX or BACKWARD */
    gemmepi_matrix residual;  /* dtype 0: as c's; read only with RESIDUAL. Its ld and batch stride are its own, not d's */
    gemmepi_vector bias;      /* read only with BIAS */
    gemmepi_vector bias_grad; /* read only with one of the BGRADs */
    int amax_history;         /* FIND_SCALE_D with TENSOR: runs whose amax args.amax_history holds, 1 to 1024; else 0 */

    /* Bytes, a power of two up to 256: pointers of matrices and vectors are multiples of it in every run. 0: 16 for
       plans; gemmepi_matmul looks at the pointers. They are always multiples of an element's size */
    size_t alignment;

    /* Replaces the epilogue: text that computes D from v = alpha op(A) op(B) + beta C (the language is described at gemmepi_operand).
       epilogue, aux, residual, bias and bias_grad are 0 then, and ACCUMULATE is refused. On a GPU a formula that says an
       epilogue, but for a gate's gradient, runs as that epilogue. NULL: none */
    const char *formula;
    const struct gemmepi_operand *operands; /* what the formula reads and assigns besides v and d, and what a.formula and b.formula read */
    int operand_count;
    const char *formula_value;  /* the formula's name of v; NULL: "v" */
    const char *formula_result; /* the formula's name of d; NULL: "d" */
} gemmepi_matmul_desc;

/* Pointers, on the device of the context. Pointers that the epilogue needs are set, all others are NULL. Outputs must not overlap
   anything, except that c, residual and an aux that BACKWARD reads and that is no mask may be exactly d (same pointer, dtype, ld
   and batch stride). */
typedef struct gemmepi_matmul_args {
    const void *a;
    const void *b;
    const void *c; /* given with beta, which may be 0: then it is not read */
    void *d;
    const void *bias;     /* with BIAS */
    void *aux;            /* written with AUX, only read with BACKWARD */
    void *bias_grad;      /* with BGRAD, BGRAD_A, BGRAD_B */
    const void *residual; /* with RESIDUAL */

    /* For matrices with a scale mode in desc. TENSOR: a multiple of 4 bytes, the other modes of 16 */
    const float *scale_a, *scale_b, *scale_c, *scale_d, *scale_aux, *scale_residual;

    /* With AMAX_D, AMAX_AUX: one F32 (F64 with F64 operands), overwritten with the largest |v| of the whole batch before the
       scale and rounding; NaN if any is NaN. Where m or n is 0 nothing is written */
    void *amax_d, *amax_aux;

    /* FIND_SCALE_D: overwritten with d's scales; TENSOR: a multiple of 4 bytes, the other modes of 16 */
    float *found_scale_d;
    float *amax_history; /* with TENSOR: desc.amax_history numbers, read and written */

    const double *alpha; /* NULL: 1. On the host, with GEMMEPI_DEVICE_SCALARS on the device (rounded to a whole number for I32) */
    const double *beta;  /* NULL: 0, and c is NULL, too. Where alpha is */

    void *workspace;       /* on the device, a multiple of 256; NULL: the context's own for that stream */
    size_t workspace_size; /* bytes; at least the plan's */

    /* With formulas: a pointer for each of desc's operands, in their order, at a multiple of its element's size; for a NUMBER to a double on
       the host. Operands that no output depends on are ignored. Inputs are only read: cast const away for them. Outputs overlap nothing, except
       that D and outputs of the kind FULL may be exactly an input FULL of the same width, dtype, ld and batch stride, without periods, that is
       not read through left, right, even or odd */
    void *const *operands;
    const float *const *operand_scales; /* the same for operands with a scale mode, else NULL; NULL: none has one */
    void *const *operand_amax;          /* the same for operands with amax: one F32, as amax_d */
} gemmepi_matmul_args;

#endif
