/* >>formulas */
#ifndef GEMMEPI_API_FORMULAS_H
#define GEMMEPI_API_FORMULAS_H

#include "elementwise.h"

/* A formula is text that computes D from the elements of a matrix:

       d = silu(v + bias) * up + residual; ss = row_sum(d * d)

   formula     statement { ';' statement } [ ';' ]
   statement   name '=' expression
   expression  c ? a : b    || && !    < <= > >= == !=    + - * /    unary -    function(...)    (...)    number    name

   Precedence is C's, and so are comments. At most 4,096 characters (of gradients 32,000), 1,024 operations, 32 operands with names of
   up to 60 characters, and 64 nested expressions.

   Names: v is the value that the formula is applied to, operands have names of the caller's choice. A name is defined once, before it is
   used, and must be used.
   row, column and item count from 0; rows, columns and depth are the extents. They, and operands in I32 and I64, are whole numbers:
   exact in comparisons with each other, numbers like others in arithmetic. The names of functions are reserved; names that
   begin with d_ or dy_ are for operands only.
   Outputs: a statement that assigns d or an output operand writes it, rounded once in its type. A later statement that reads it gets the
   number before rounding. rounded(x) is the value of d once it has stored x: the stored number, divided by the scale that d is multiplied
   by, if any (with FIND_SCALE_D and TENSOR times the scale that is found ahead; with OUTER and VECTOR_128, whose scales are found from d,
   rounded is refused). If d is not stored, its type is the one that it would have, without a scale; over tensors without y it is the type of
   the computation, so that rounded(x) is x.

   Functions: abs sign min max clamp(x, low, high) exp exp2 expm1 log log2 log1p pow sqrt rsqrt sin cos tan atan sinh cosh tanh erf erfc
   logaddexp(x, y) floor ceil trunc round mod fma isnan isinf, and pi and inf; every activation above by its name in small letters (silu(x), leaky_relu(x, p)), and its derivative (d_silu(x)). c ? a : b selects: a
   NaN in the other branch has no effect. min, max and clamp propagate NaN, clamp is min(max(x, low), high), round is half to even, and
   mod(a, b) has a's sign, as C's fmod.
   Widths: an expression is n, n / 2 or 2 n columns wide, and operators need equal widths; what does not change along columns fits any.
   left(x) and right(x) are the halves, pair(a, b) joins them; even(x), odd(x) and interleave(a, b) do the same for every second column.
   With a last argument w, a number, left, right and pair work on each group of w columns. part(x, i, p) is the i-th of p equal parts, i
   from 0 and p from 2 to 16, both numbers of the text, and parts(a, b, c) joins three, or as many as it is given; widths are n / p and p n
   then. A formula has two widths at most and divides columns in one way. column and columns count in the wider of the two.
   table[index] is an element of an operand: of one PER_ROW or PER_COLUMN the index-th, of one FULL (in row-major order) the row's with index
   in place of the column. The index is a whole number: an operand in I32 or I64, one in I8, I4 or U4 without a scale (of a text that makes a or b also
   a or b itself), row and so on, or a number of the text; with results in I32 any expression. Where there is no such element it is 0, and nothing
   is read. A table has m or n elements or, if more or less, its period.
   Reductions: row_sum row_mean row_max row_min row_logsumexp row_argmax (I32: the lowest column), column_sum column_max column_min
   column_logsumexp column_argmax, all_sum all_max. row_sum(x, w), row_mean(x, w), row_max(x, w) and row_min(x, w) are of each group of w columns,
   a multiple of 8 in the text that x's columns are a multiple of: the output is BLOCKED, with block_rows 1 and block_columns w. In column-major
   order they are column_sum, column_max and column_min, with block_rows w and block_columns 1. A reduction is the whole right side of a statement that assigns an output, and no later statement reads that output.
   Over nothing they are 0 (sums, argmax), inf (min) and -inf. They run in a fixed order, in F32 or wider, and all propagate NaN. An output PER_COLUMN or
   SCALAR with the batch_stride 0 covers the whole batch; other outputs, and argmax, need a stride if batch is above 1.
   uniform(seed, i) is a random number in [0, 1): Philox4x32-10 with the key seed, a scalar operand in I64, and the counter
   (column / 4, row, item, i), word column % 4, of which the upper 24 bits count.
   stochastic(x, seed) and stochastic(x, seed, i) are the whole right side of a statement that assigns d or an output in BF16 or F16: x is
   rounded to one of its two neighbours there by chance, to that of larger magnitude where its share of the way to it and
   uniform(seed, i), without an i that of 2^32 - 1, come to at least 1. NaN and infinity stay, and beyond the largest number comes infinity.
   In F32 and F64 it is x; types of 8 bits are refused. Later statements read x, and the gradient is that of x.

   Order: row, column and kinds are those of the matrix in either order; left, right, even, odd and pair run along D's
   contiguous axis. In column-major order widths are therefore of m, for operands PER_ROW and FULL, and PER_ROW outputs may cover the
   batch.

   Operands: desc.a.formula and desc.b.formula make what is multiplied of what is stored, before the product,

       "a * rstd * gain"      "silu(left(a)) * right(a)"      "uniform(seed, 0) < p ? 0 : a / (1 - p)"

   in the same language. The text is an expression, or statements of which the last is one. It reads the element that is stored by the
   name of its matrix, a or b, has no reductions and assigns no operand. row and column count in op(A) [m, k] or op(B) [k, n], and so do the
   kinds of the operands that it reads: PER_ROW is [m] of a, [k] of b; depth is k. FULL and BLOCKED ones are stored as the matrix is,
   transposed with it. left and so on go along the axis that is contiguous in memory, and what is stored is as wide along it as the text
   says: "silu(left(a)) * right(a)" reads an a of [m, 2k]. An operand PER_ROW, PER_COLUMN, FULL or BLOCKED is read by one text only; list
   it twice for two.

   Products run formulas (gemmepi_matmul_desc.formula), and so do layers (gemmepi_linear_desc.formula) and element-wise operations
   (gemmepi_elementwise_desc.formula), these without v. gemmepi_derive writes their gradients.
   All is computed in the accumulator's type. I32 results allow + - * min max relu, comparisons and c ? a : b, modulo 2^32. */

/* The rows and columns that an operand of a formula has elements for. */
typedef enum gemmepi_operand_kind {
    GEMMEPI_NUMBER = 1,     /* a double on the host, read by each run: args.operands has gemmepi_number(&x) */
    GEMMEPI_SCALAR = 2,     /* one element: [] */
    GEMMEPI_PER_ROW = 3,    /* one for each row: [m] */
    GEMMEPI_PER_COLUMN = 4, /* one for each column: [n] */
    GEMMEPI_FULL = 5,       /* one for each row and column: [m, n] */
    GEMMEPI_BLOCKED = 6     /* one for each block_rows x block_columns of them: [ceil(m / block_rows), ceil(n / block_columns)];
                               an input, or an output of reductions of groups, row_sum(x, w) */
} gemmepi_operand_kind;

/* How many columns an operand PER_COLUMN, FULL or BLOCKED is for. */
typedef enum gemmepi_width {
    GEMMEPI_WIDTH_N = 0,
    GEMMEPI_WIDTH_HALF = 1,  /* n / 2; with part(x, i, p) and parts, n / p */
    GEMMEPI_WIDTH_DOUBLE = 2 /* 2 n; with those, p n */
} gemmepi_width;

/* An operand of a formula: an input, which it reads, or an output, which it assigns. */
typedef struct gemmepi_operand {
    const char *name;          /* in the formula */
    gemmepi_operand_kind kind; /* never 0 */
    gemmepi_width width;       /* of PER_COLUMN, FULL and BLOCKED */

    /* F32, F16, BF16, E4M3, E5M2, I8 or, with F64 products, F64; inputs also I32, I64, E8M0 and, FULL or BLOCKED, I4, U4 and E2M1. 0: d's, BF16 where d is fp8; for reductions
       F32 (F64), for row_argmax and column_argmax I32 */
    gemmepi_dtype dtype;
    int output;                        /* 1: the formula assigns it */
    int accumulate;                    /* 1, for sums: add to the output */
    int64_t ld, batch_stride;          /* as in gemmepi_matrix; a batch_stride of 0 repeats an input over the batch */
    int64_t row_period, column_period; /* inputs: element (row % p, column % q), as of tables of positions; 0: none */
    gemmepi_scale scale;               /* of E4M3, E5M2 and I8: NONE or TENSOR, one for the whole batch */
    int amax;                          /* 1, of outputs in those: the largest magnitude is written */

    /* Element-wise: its memory; gemmepi_elementwise_desc says of what shape. dtype is 0 or the tensor's, ld and batch_stride are 0.
       NULL for a NUMBER, and in products */
    const gemmepi_tensor *tensor;
    int64_t block_rows, block_columns; /* BLOCKED: element (row / r, column / c), as of scales of blocks; of other kinds 0 */
} gemmepi_operand;

/* What args.operands has of a NUMBER. The address of a float is an error in C++ and a warning in C. */
static inline void *gemmepi_number(const double *number) {
#ifdef __cplusplus
    return const_cast<double *>(number);
#else
    return (void *)(uintptr_t)number;
#endif
}

/* Numbers of the host that gemmepi_pack stores in fewer bits, for operands that formulas read:

       packed[row, column] = round(source[row, column] / (divisor scale) + zero)

   with the scale and the zero of the element's block, to the nearest, ties to even, saturating (as gemmepi_dtype says; NaN is 0 in I4, U4, E2M1
   and I8). A formula has the numbers back by `(w - zero) * scale`. Blocks are those of a BLOCKED operand: element
   [row / block_rows, column / block_columns] of scale and zero, rows of ceil(columns / block_columns) one behind the other. */
typedef struct gemmepi_pack_desc {
    int64_t rows, columns;
    const void *source;
    gemmepi_dtype source_dtype; /* F32 (0), F64, F16, BF16, E4M3, E5M2, I8 or I32 */
    int64_t source_ld;          /* elements from one row to the next; 0: columns */
    void *packed;
    gemmepi_dtype dtype;               /* I4, U4, E2M1, E8M0, I8, E4M3, E5M2, F16 or BF16; of 4 bits columns and ld are even */
    int64_t ld;                        /* 0: columns */
    int64_t block_rows, block_columns; /* that have one scale and zero; 0: all */
    void *scale;                       /* NULL: 1 */
    gemmepi_dtype scale_dtype;         /* F32, F16, BF16, E4M3 or E8M0; 0 only without scale */
    void *zero;                        /* with I4, U4 and I8; NULL: 0 */
    gemmepi_dtype zero_dtype;          /* F32, F16, BF16 or I8; 0 only without zero */
    double divisor;                    /* a second scale, of all, as NVFP4 has it; 0: 1 */

    /* 1: scale and zero are written. The scale is a block's amax over the largest number of dtype (I4 7, U4 15, E2M1 6, E4M3 448), with zero
       its largest less its least number, 0 among them, over that of dtype (of 4 bits 15), and zero is the code of 0. It is rounded to its
       type, in E8M0 upward, held from the least number above 0 (F32, BF16, E8M0: 2^-126) to the largest, and 1 where amax is 0 or not
       finite. 0: both are read */
    int find;
} gemmepi_pack_desc;

/* What gemmepi_derive derives. */
typedef struct gemmepi_derive_desc {
    const char *formula;
    const gemmepi_operand *operands;
    int operand_count;
    const char *value;    /* the name of what the formula is applied to; NULL: "v" */
    const char *wrt;      /* names of inputs or the value, separated by commas, whose gradients are wanted */
    const char *saved;    /* names that the gradient may read: inputs, outputs, the value. NULL: all inputs and the value */
    const char *upstream; /* names of the outputs that have an upstream; nothing comes in from others. NULL: all outputs have one */
    int ties_to_first;    /* 1: of equal inputs of min and max the first has the gradient; 0: they share it */
} gemmepi_derive_desc;

#endif
