/* >>grouped products */
#ifndef GEMMEPI_API_GROUPED_H
#define GEMMEPI_API_GROUPED_H

#include "products.h"

/* Along what a grouped product is divided. */
typedef enum gemmepi_grouping {
    GEMMEPI_GROUPS_OF_ROWS = 0, /* a group has some rows of A and D, and a B of its own: experts forward, and the gradient of A */
    GEMMEPI_GROUPS_OF_K = 1     /* a group has a part of k, and a D of its own: the gradient of experts' weights */
} gemmepi_grouping;

/* Many products of one n, types and epilogue, whose sizes only the device knows: experts of a mixture. args.ends says there where
   each group ends, as torch._grouped_mm's offs do: group e has the positions ends[e - 1] (0 for the first) to ends[e] - 1. So
   there are as many numbers as groups, and a running sum of counts is what is wanted. Groups may be empty. A position is

   - GROUPS_OF_ROWS: a row. D[i, :] = epilogue(alpha op(A)[i, :] op(B[e]) + beta C[i, :]) for the positions i of each group e.
     product.m is how many positions there are at most; rows from ends[groups - 1] on are not written, and what they hold has no
     effect. B has groups items, and so have bias and the scales of b; all else is one matrix.
   - GROUPS_OF_K: a step of k. D[e] = epilogue(alpha op(A)[:, those of e] op(B)[those of e, :] + beta C[e]), of an empty group
     epilogue(beta C[e]). product.k is how many there are at most. C, D, aux and residual, with their scales, and bias have
     groups items; A and B are one.

   Items lie as batch_stride says, 0: one after another. product.batch is 0 or 1, product.order row-major, and there is
   no BATCH_INVARIANT. BGRAD_A and BGRAD_B go with GROUPS_OF_K, where a is stored [k, m] and b [k, n]: bias_grad has groups items; BGRAD
   does not. Scales along k (VECTOR_128, BLOCK_128) do not go with GROUPS_OF_K.

   A formula goes with GROUPS_OF_ROWS, neither scattered nor weighted: D is its one output, and it reads neither row,
   item and rows nor uniform. A GPU refuses one that no kernel has inside: with even and odd, or with a D wider than v
   and all FULL operands. FULL and PER_ROW operands have the rows of D; those of columns or of one number have
   batch_stride from one group's to the next, 0: the same for all.

   FIND_SCALE_D goes with GROUPS_OF_ROWS, VECTOR_128 (or OUTER, where d has at most 128 columns) and no formula, on the host and
   where the kernel for Hopper takes the product, else it is refused: args.found_scale_d[column / 128 * rows of D + row of D],
   written where D is. */
typedef struct gemmepi_grouped_desc {
    gemmepi_matmul_desc product;
    int groups; /* 1 to 4,096 */
    gemmepi_grouping grouping;

    /* More than 0: position i reads row index_a[i] of a matrix a that has so many rows (as stored, so a.transposed is 1 with
       GROUPS_OF_K and 0 else), with its scale; with GROUPS_OF_K likewise b, stored [k, n]. Rows may be read by many positions.
       0: row i */
    int64_t gather_a, gather_b;

    /* GROUPS_OF_ROWS. More than 0: C, D, aux and residual have so many rows, and position i has row index_d[i] of each. No row may be
       there twice. 0: row i */
    int64_t scatter_d;
    int weighted; /* 1, GROUPS_OF_ROWS: D = weights[row of D] (what comes before the residual) + residual */
} gemmepi_grouped_desc;

/* Pointers on the device, ends and indices at multiples of 4 bytes. What they say is checked there when the product runs: ends
   that are not ascending or pass the last position, or an index that is out of range. Then nothing is written, and the next run
   of any plan of the context, the next upload or download, or gemmepi_synchronize, returns INVALID_ARGUMENT with the sentence,
   also after a graph's replay: once. On the host the call itself does. */
typedef struct gemmepi_grouped_args {
    gemmepi_matmul_args product;
    const int32_t *ends;    /* [groups], ascending */
    const int32_t *index_a; /* [positions], with gather_a */
    const int32_t *index_b; /* [positions], with gather_b */
    const int32_t *index_d; /* [positions], with scatter_d */
    const float *weights;   /* [rows of D], with weighted */
} gemmepi_grouped_args;

#endif
