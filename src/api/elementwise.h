/* >>element-wise operations */
#ifndef GEMMEPI_API_ELEMENTWISE_H
#define GEMMEPI_API_ELEMENTWISE_H

#include "products.h"

/* A tensor as in DLPack: element (i, j, ..) is stored (i stride[0] + j stride[1] + ..) elements after the first one.
   Any strides: 0 repeats an input, a negative one runs backwards. */
typedef struct gemmepi_tensor {
    void *data;            /* on the device; only read where the tensor is an input */
    gemmepi_dtype dtype;   /* 0: F32 */
    int rank;              /* 0 to 8; 0 is a single element */
    const int64_t *shape;  /* rank extents; NULL where rank is 0 */
    const int64_t *stride; /* rank strides in elements; NULL: dense, the last axis contiguous */
    size_t offset;         /* bytes from data to the element whose indices are all 0 */
    size_t bytes;          /* of the buffer from data on, which contains all elements; 0: not checked */
} gemmepi_tensor;

/* What is computed for every index of the operation's shape, which is y's, or dy's if there is no y. The inputs a, b and w are
   broadcast to it as in NumPy: axes are compared from the last one on, and an axis that is missing or has the extent 1
   repeats. da, db and dw are broadcast, too, and are then sums over the axes that repeat. BIAS_GRAD has its own rule.

   GATED: SIGMOID is GLU, RELU ReGLU, SILU SwiGLU, the GELUs GeGLU. Without b, a's axis `axis` has twice y's extent: its first
   half is the value, its second the gate (GATE_FIRST: exchanged), and GATED_BACKWARD's da is the gradient of both.

   Accuracy: with f the function, u the unit roundoff of the stored type and some |d| <= 2 u, |e| <= 4 u, a result is
   f(x (1 + d)) (1 + e), or off by at most 4 u of the largest term that is added, and the smallest subnormal. A product with dy or
   with a gate's value is one rounding more. Results of 16 bits use shorter forms of the functions (2^-12), and results below 2^-126
   may be 0. docs/numerics.md has the rest. */
typedef enum gemmepi_operation {
    GEMMEPI_OP_ACTIVATION = 1,          /* y = act(a) */
    GEMMEPI_OP_ACTIVATION_BACKWARD = 2, /* da = dy act'(a) */
    GEMMEPI_OP_GATED = 3,               /* y = a act(b) */
    GEMMEPI_OP_GATED_BACKWARD = 4,      /* da = dy act(b), db = dy a act'(b) */
    GEMMEPI_OP_LERP = 5,                /* y = a + w (b - a) where |w| < 1/2, else b - (b - a) (1 - w) */
    GEMMEPI_OP_LERP_BACKWARD = 6,       /* da = (1 - w) dy, db = w dy, dw = dy (b - a) */
    GEMMEPI_OP_BIAS_GRAD = 7,           /* y[i] = the sum of a over all axes except `axis` */
    GEMMEPI_OP_CAST = 8                 /* y = a in another type, with scales and amax */
} gemmepi_operation;

/* Flags of an operation, besides ACCUMULATE (BIAS_GRAD: add to y instead of overwriting it).
   CAST_Y_SCALE: y_scale = amax / the largest number of y's type, held between 2^-126 and the largest F32 (1 where amax is 0
   or not finite), and y = round(a / y_scale). Products read y_scale as y's scale. CAST_SCALE multiplies: give it
   y_scale to convert y back, and 1 / y_scale to make y. An empty cast writes neither y_scale nor amax.
   CAST_K_IS_ROWS: rows, vectors and blocks are those of a matrix whose k is the last axis but one (a B of [k, n] that is not
   transposed); else k is the last axis (an A of [m, k], a transposed B of [n, k]). */
#define GEMMEPI_CAST_SCALE     0x100000000ull /* CAST: y = round(scale a), with args.scale read */
#define GEMMEPI_CAST_Y_SCALE   0x200000000ull /* CAST: find y's scale, and write it to args.y_scale */
#define GEMMEPI_CAST_AMAX      0x400000000ull /* CAST: write args.amax, the largest |a| */
#define GEMMEPI_CAST_K_IS_ROWS 0x800000000ull /* CAST: k is the last axis but one */

/* One operation. Tensors that it does not have are NULL. A plan ignores the tensors' data: each run has its own pointers.

   Tensors: ACTIVATION a, y. ACTIVATION_BACKWARD a, dy, da. GATED a, [b], y. GATED_BACKWARD a, [b], dy, and da, with b also
   db: one of them or both. LERP a, b, [w], y. LERP_BACKWARD dy, [w] and any of da, db, dw; a and b only with dw, dw only with
   w. BIAS_GRAD a, y. CAST a, y, [y_transposed].
   Dtypes: F32, F16, BF16 or F64, one for all tensors of an operation, computed in F32 (F64 in F64) and rounded once;
   y of BIAS_GRAD, and da, db and dw where they are sums, may be F32 in 16 bits. CAST: a and y any of F32, F64, F16, BF16,
   E4M3 and E5M2; stores to the last two saturate as in products.
   Sums add 16-bit values eight at a time in F32, those sums and all other values in F64, in a fixed order.

   CAST's scales and amax: one number for all (SCALE_TENSOR or NONE), or one for each row (SCALE_OUTER), for each 128
   steps of k of a row (SCALE_VECTOR_128), or for each block of 128 rows and 128 steps of k (SCALE_BLOCK_128) of the matrices that
   are the last two axes (of rank 1: one row). gemmepi_scale_mode draws their layout; scales of further axes
   follow one another. Numbers beyond the last of a line are not written.

   CAST's y_transposed: both layouts of an operand in fp8 from one read of a, y of shape [.., m, k] and y_transposed of [.., k, m]. An
   activation needs both: forward, and in the gradient of the weight, where its k is m. y_transposed has y's dtype, E4M3 or E5M2, and any strides,
   and is what the same cast makes of a with its last two axes exchanged. With one number for all the scale is y's. With VECTOR_128 its
   vectors run along the other axis, and with BLOCK_128 its blocks are transposed, so that it has scales of its own, which are written to
   args.y_transposed_scale. Not with OUTER (its rows are y's columns: cast twice); VECTOR_128 and BLOCK_128 only with CAST_Y_SCALE.

   A formula is computed for every index of the shape [.., rows, columns] that y and the operands' tensors are broadcast to: columns are the
   last axis, rows the last but one, items all axes before, counted as in a dense tensor; depth is 0. HALF and DOUBLE have half and twice as
   many columns. Inputs are broadcast as above: PER_ROW inputs have the extent 1 in columns, PER_COLUMN inputs in rows, SCALARs in both; an
   axis with a period has the period's extent. y and FULL outputs have the whole shape, other outputs 1 in columns (PER_ROW), rows (PER_COLUMN)
   or both (SCALAR). PER_COLUMN and SCALAR outputs with 1 in all axes before cover all items (not column_argmax). Else the axes before the
   last two of an output PER_ROW, PER_COLUMN or SCALAR have one stride from item to item, as in a dense tensor; those of y and FULL outputs may
   have any. Types are the tensors': y F32, F16, BF16, E4M3, E5M2, I8, I32 or F64, operands as with products; computed
   in F32, in F64 if a tensor is F64, in I32 if y is. */
typedef struct gemmepi_elementwise_desc {
    gemmepi_operation operation;
    gemmepi_epilogue activation;            /* RELU and so on; for a tensor that is split GATE_FIRST may be added */
    int has_parameter;                      /* 1: activation_parameter counts; 0: it must be 0, and the default holds */
    double activation_parameter;            /* p of LEAKY_RELU and ELU */
    int axis;                               /* GATED without b: the axis to split; BIAS_GRAD: the axis to keep; -1: the last */
    gemmepi_scale_mode scale_mode;          /* CAST: of scale, y_scale and amax */
    uint64_t flags;                         /* ACCUMULATE, CAST_SCALE and so on */
    const gemmepi_tensor *a, *b, *w, *dy;   /* inputs */
    const gemmepi_tensor *y, *da, *db, *dw; /* outputs */
    const gemmepi_tensor *y_transposed;     /* CAST: a second y with its last two axes exchanged; NULL: none */
    size_t alignment;                       /* bytes, a power of two up to 256, that all pointers are multiples of; 0: 16 */

    /* Replaces the operation: a formula (the language is described at gemmepi_operand) without v. operation, activation, axis, flags and
       all tensors except y are 0 then. y is D, as wide as what is assigned to it, NULL if the formula does not assign it. NULL: none */
    const char *formula;
    const struct gemmepi_operand *operands; /* what it reads and assigns besides y; each has a tensor, except NUMBERs */
    int operand_count;
    const char *formula_result; /* the formula's name of y; NULL: "d" */
} gemmepi_elementwise_desc;

/* The data of desc's tensors, and what else changes from run to run. An output must not overlap anything, except that it
   may be exactly (pointer, dtype, strides) an input, or the half of an input that is split. Sums, and casts with
   CAST_Y_SCALE, scales of rows or blocks, or y_transposed, may overlap nothing. */
typedef struct gemmepi_elementwise_args {
    const void *a, *b, *w, *dy;
    void *y, *da, *db, *dw;
    double weight;             /* LERP and LERP_BACKWARD without w */
    const float *scale;        /* CAST_SCALE */
    float *y_scale;            /* CAST_Y_SCALE */
    void *amax;                /* CAST_AMAX: F32, or F64 where a is F64; NaN where any of its numbers is NaN */
    void *y_transposed;        /* CAST */
    float *y_transposed_scale; /* CAST_Y_SCALE with y_transposed and VECTOR_128 or BLOCK_128 */
    void *workspace;           /* on the device, a multiple of 256; NULL: the context's own for that stream */
    size_t workspace_size;     /* bytes; at least the plan's */

    /* With a formula: as in gemmepi_matmul_args, and y. For a NULL pointer gemmepi_elementwise uses the operand's tensor. Operands that
       no output depends on are ignored. An output of the kind FULL, or y, may be exactly an input of the kind FULL (pointer, dtype,
       strides), without periods, that is not read through left, right, even or odd */
    void *const *operands;
    const float *const *operand_scales;
    void *const *operand_amax;
} gemmepi_elementwise_args;

#endif
