/* >>grouped products */
#ifndef GEMMEPI_API_GROUPED_H
#define GEMMEPI_API_GROUPED_H

#include "products.h"

/* The dimension that divides a grouped product into groups. */
typedef enum gemmepi_grouping {
    GEMMEPI_GROUPS_OF_ROWS = 0, /* a group has some rows of A and D, and a B of its own: experts forward, and the gradient of A */
    GEMMEPI_GROUPS_OF_K = 1     /* a group has a part of k, and a D of its own: the gradient of experts' weights */
} gemmepi_grouping;

/* Many products with the same n, types and epilogue, whose sizes only the device knows: experts of a mixture. args.ends says where
   each group ends, as torch._grouped_mm's offs do: group e has the positions ends[e - 1] (0 for the first) to ends[e] - 1. ends
   has a number for each group, the running sum of the groups' counts. Groups may be empty. A position is

   - GROUPS_OF_ROWS: a row. D[i, :] = epilogue(alpha op(A)[i, :] op(B[e]) + beta C[i, :]) for the positions i of each group e.
     product.m is the largest number of positions; rows from ends[groups - 1] on are not written and have no
     effect. B has `groups` items, and so have bias and the scales of b; everything else is one matrix.
   - GROUPS_OF_K: a step of k. D[e] = epilogue(alpha op(A)[:, steps of e] op(B)[steps of e, :] + beta C[e]); an empty group gives
     epilogue(beta C[e]). product.k is the largest number of positions. C, D, aux and residual, with their scales, and bias have
     `groups` items; A and B are one matrix each.

   Items are batch_stride apart, with 0 one after another. product.batch is 0 or 1, product.order row-major, and
   BATCH_INVARIANT is refused. BGRAD_A needs GROUPS_OF_K with a stored [k, m], BGRAD_B with b stored [k, n]: bias_grad has `groups` items. BGRAD is
   refused, and so are scales along k (VECTOR_128, BLOCK_128) with GROUPS_OF_K.

   a.formula and b.formula need GROUPS_OF_ROWS. That of a is of all its rows, before they are gathered, and has no item and no operand of groups.
   A formula needs GROUPS_OF_ROWS, not weighted. It assigns D and, if wanted, FULL outputs, but no reductions, and reads neither row, item
   and rows nor random numbers (uniform, stochastic). A GPU refuses a formula that no kernel can run inside: with even and odd, with more
   than two parts, or with a D wider than v and all FULL operands. FULL and PER_ROW operands have the rows of D: position i reads and
   writes the row of each that it writes of D. PER_COLUMN and SCALAR operands are batch_stride apart from group to group, with 0 the same
   for all.

   FIND_SCALE_D needs GROUPS_OF_ROWS, VECTOR_128 (or OUTER, if d has at most 128 columns), no formula, and the host or
   the kernel for Hopper; else it is refused. It writes args.found_scale_d[column / 128 * rows of D + row of D]
   where it writes D. */
typedef struct gemmepi_grouped_desc {
    gemmepi_matmul_desc product;
    int groups; /* 1 to 4,096 */
    gemmepi_grouping grouping;

    /* More than 0: position i reads row index_a[i], with its scale, of a matrix a that has so many rows as stored (a.transposed is 1 with
       GROUPS_OF_K and 0 else). With GROUPS_OF_K the same for b, stored [k, n]. Many positions may read a row.
       0: row i */
    int64_t gather_a, gather_b;

    /* GROUPS_OF_ROWS. More than 0: C, D, aux, residual and a formula's FULL and PER_ROW operands have so many rows, and position i
       has row index_d[i] of each. No two positions may have the same row, which only the host checks. 0: row i */
    int64_t scatter_d;
    int weighted; /* 1, GROUPS_OF_ROWS: D = weights[row of D] (result before the residual) + residual */
} gemmepi_grouped_desc;

/* Pointers on the device, ends and indices at multiples of 4 bytes. The device checks ends and indices when the product runs. If ends
   are not ascending or pass the last position, or an index is out of range, nothing is written, and the next run
   of any plan of the context, the next upload or download, or gemmepi_synchronize returns INVALID_ARGUMENT with the sentence,
   once, also after a graph's replay. On the host the call itself returns it. */
typedef struct gemmepi_grouped_args {
    gemmepi_matmul_args product;
    const int32_t *ends;    /* [groups], ascending */
    const int32_t *index_a; /* [positions], with gather_a */
    const int32_t *index_b; /* [positions], with gather_b */
    const int32_t *index_d; /* [positions], with scatter_d */
    const float *weights;   /* [rows of D], with weighted */
} gemmepi_grouped_args;

#endif
