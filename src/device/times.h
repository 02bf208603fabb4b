/* What models of time count with, in one table. Rows are cycles, unless they say otherwise, of an H100 in graphs and bursts, fitted to
   bench/candidates_h100.csv; H200 names what was measured there. Behind | is what the choice loses on an H100 without the row, by estimate:
   percent of the time, in the mean of random products of the class that feels it most, or of those of models. Other chips are taken to need
   the same cycles, at the rates of chip.h. */
#ifndef GEMMEPI_DEVICE_TIMES_H
#define GEMMEPI_DEVICE_TIMES_H

/* clang-format off */

/* Launches, and memory. */
#define GPI__ANOTHER_LAUNCH  1.3   /* us, also behind an overlapping launch (0.9 to 1.6); on a stream 2 to 3.5 | 14.0 */
#define GPI__COPY_RATE       3.5e6 /* bytes in a us that copies of operands read and write; the product reads them from L2 | 2.5 */
#define GPI__SUM_RATE        2e6   /* bytes in a us, of an operand that is read once more for its sums, H200 | 0.4 */
#define GPI__HALF_SECTORS    2     /* times: what is written and does not fill sectors of 32 bytes | 0.1 */
#define GPI__BEHIND_MEMORY   0.02  /* of the shorter of two times, of memory and of all else | 0.00 */

/* Epilogues, of a warpgroup for an element in each of its threads. */
#define GPI__PASS_PART       0.026 /* us, each part of k more, of 16 to 384 and up to 128 rows and columns, H100 */
#define GPI__STORING         14    /* | 0.3 */
#define GPI__COPYING         20    /* more, of what does not lie at multiples of 16 bytes | 0.4 */
#define GPI__MATRIX          12    /* each matrix, half of one and sum of columns more | 0.6 */
#define GPI__EXACT           20    /* of F32 where activations are exact, H200 | 0.2 */

/* The kernel for Hopper. */
#define GPI__SM90_LAUNCH     3200  /* | 1.8 */
#define GPI__SM90_FEW        1400  /* where rows are so few that B's beginning comes to L2 before the launch | 0.6 */
#define GPI__SM90_AHEAD      20    /* at most so many less for each stage of k: a short k has little to fetch ahead | 0.3 */
#define GPI__SM90_HIDDEN     350   /* of an epilogue that is behind the other warpgroup's sums, and half of the rest | 0.2 */
#define GPI__SM90_MEET       1200  /* blocks that divide k add up | 1.5 */
#define GPI__SM90_MEET_AGAIN 800   /* for each doubling of their number | 1.0 */
#define GPI__SM90_AGAIN      0.35  /* more of their tiles but the first, by 1,600 times; 15 products of GPT-2's step, H100 | 5.3, random none */
#define GPI__SM90_PAIRS      4220  /* bytes of pairs that a multiprocessor multiplies in a cycle | 2.5 */
#define GPI__SM90_LEAST      8192  /* elements of a tile: fewer are multiplied no faster, as a warpgroup waits for each step; decode, H200 | 2.4 */
#define GPI__SM90_FP8_PAIRS  3500  /* of fp8, at the clock that the power leaves it | 0.1 */
#define GPI__SM90_BLOCK_RATE 68    /* bytes in a cycle that a block asks for | 0.9 */
#define GPI__SM90_RATE       6500  /* that all blocks have from L2, where half of what a cluster shares counts | 1.6 */
#define GPI__SM90_SECTORS    1.6   /* times: loads of lines that begin within sectors of 32 bytes | 0.1 */
#define GPI__SM90_LINES      1.3   /* of lines that begin within 128 bytes of L2's | 0.5 */
#define GPI__SM90_TOGETHER   1.09  /* times, in tiles that two warpgroups share; 66 products of models, to which it was fitted, H200 | 1.3 */
#define GPI__SM90_GROUPS     1.25  /* of groups, which read B anew */
#define GPI__SM90_NARROW     0.92  /* steps of tiles of 64 columns, unless rows are few | 0.04 */
#define GPI__SM90_FEW_STAGES 1.1   /* of formulas with four stages: 4096^3 with a gate of squares 231 us, in wide tiles 207 */
#define GPI__SM90_ABREAST    0.995 /* clusters whose blocks lie side by side: up to 0.92 on H200s, and enough to decide | 0.05 */

/* The kernel for Ampere and later. */
#define GPI__SM80_MARGIN     0.92  /* on Hopper it counts as its time over this | 0.2 */
#define GPI__SM80_LAUNCH     2400  /* | 4.6 */
#define GPI__SM80_STEP       600   /* | 5.6 */
#define GPI__SM80_AT_WORK    2.5   /* blocks for whose copies of 2 bytes a few wait, too | 1.0 */
#define GPI__SM80_FMA        1.25  /* times: multiply-adds, H200 | 1.0 */
#define GPI__SM80_FMA_TURNED 1.42  /* where A lies along m, which is read a word at a time | 0.1 */
#define GPI__SM80_FMA_LOW    1.1   /* in tiles of 32 rows | 0.1 */
#define GPI__SM80_FMA_HIGH   0.9   /* of 128 | 0.1 */
#define GPI__SM80_FMA_ALONE  2.1   /* in wide tiles, by four warps on a multiprocessor | 0.1 */
#define GPI__SM80_WIDEN      7.5   /* fp8 becomes F16: each row and column of a warp in a stage; 7168 x 2048 x 4096, compiled as for 8.0 */

/* That for small products. */
#define GPI__SMALL_BLOCK     1900  /* | 1.2 */
#define GPI__SMALL_BLOCK_SUM 95    /* each sum of a lane | 0.8 */
#define GPI__SMALL_CLUSTER   1900  /* blocks that divide k add up | 0.4 */
#define GPI__SMALL_STEP      590   /* | 2.1 */
#define GPI__SMALL_LOAD      26    /* of a lane in a step | 0.3 */
#define GPI__SMALL_AT_ONCE   3     /* blocks of few warps or sums that run on a multiprocessor as fast as one | 1.8 */
#define GPI__SMALL_WARP      135   /* of a multiprocessor where others are there, | 0.2 */
#define GPI__SMALL_WARP_LOAD 3.6   /* and of each load | 0.2 */
#define GPI__SMALL_SECTORS   25    /* bytes of L2 in a cycle of a multiprocessor, where a sector is of one line of k; dB of 8 and 16 columns, H100 */
#define GPI__SMALL_READ      0.43  /* of the time of memory, by hand: larger operands took sm90 a quarter longer | 0.3 */

/* That for a short k, H100: 33 plans of 11 products. */
#define GPI__OUTER_MARGIN    1     /* counts as its time over this */
#define GPI__OUTER_LAUNCH    1900
#define GPI__OUTER_MATRIX    25    /* of a warp, each matrix, */
#define GPI__OUTER_PIECE     3     /* or, of one whose lines begin anywhere, each piece of a run, */
#define GPI__OUTER_ROW       2     /* and each row of such a piece */
#define GPI__OUTER_MULTIPLY  3     /* a step of k */

/* That for weights in I8, 11 percent off in the mean; by wgmma, H200, 4 percent. */
#define GPI__WEIGHTS_WAVE    3100  /* | 0.5 */
#define GPI__WEIGHTS_STEP    720   /* | 11.3 */
#define GPI__WEIGHTS_ROW     13    /* of a tile, in a step | 1.9 */
#define GPI__WEIGHTS_MEET    1150  /* each part that a cluster adds up | 1.4 */
#define GPI__WEIGHTS_RATE    21.7  /* bytes in a cycle that come to a multiprocessor where all ask | 0.4 */
#define GPI__WEIGHTS_TWO     0.8   /* of two blocks on a multiprocessor the work of the second, and a wave; H100, weights of 4 bits */
#define GPI__WGMMA_WAVE      5600  /* | 41.6 */
#define GPI__WGMMA_STEP      660   /* | 2.8 */
#define GPI__WGMMA_ROW       8     /* | 0.9 */
#define GPI__WGMMA_MEET      600   /* | 0.2 */
#define GPI__WGMMA_LARGE_STEP 600  /* of tiles of 128 and 256 rows; H100, m 128 to 4096 */
#define GPI__WGMMA_LARGE_ROW 2.4
#define GPI__MADE_ZERO       1.1   /* times, where weights are made: (b - zero) * scale, */
#define GPI__MADE_OTHER      1.3   /* what is computed in F32, */
#define GPI__MADE_BITS       2.3   /* and in 4 bits, by mma.sync, of the same bytes */
#define GPI__WGMMA_FEW       1.5   /* times, of up to 32 rows, for which mma.sync was the faster | 0.08 */

/* The route plain, of 48 random products a quarter off in the mean. */
#define GPI__PLAIN_LAUNCH    2900  /* | 4.8 */
#define GPI__PLAIN_BLOCK     700   /* | 0.4 */
#define GPI__PLAIN_ODD       2200  /* of tiles of odd lines, which wait for each other's | 0.4 */
#define GPI__PLAIN_C         1400  /* it waits for what D holds | 0.2 */

/* Of functions of all columns of all layers, for one row, above which a network's backward computes formulas for two values at a time. Chosen by 26 networks,
   16 to 64 wide, of 1 to 8 layers, one run each: of the 15 above it 13 so take 0.55 to 0.97 of the time, and two, of 8 layers, 1.06 and 1.07. H100. */
#define GPI__NETWORK_FUNCTIONS 23000

/* cuBLASLt 13.1, in us, and ps for an element of D; H200. */
#define GPI__LT_MARGIN       0.99  /* counts as so much of its time: there is nothing to compile | 0.07 */
#define GPI__LT_MORE         0.8   /* than the kernel for Hopper takes | 1.4 */
#define GPI__LT_DIVIDES      4.3   /* to divide a long k among all multiprocessors | 5.8 */
#define GPI__LT_TF32         2.5   /* | 0.7 */
#define GPI__LT_TURNED       0.3   /* of the time, of TF32 for each operand that does not lie along k | 0.6 */
#define GPI__LT_FMA          0.75  /* of ours, strict F32, | 1.0 */
#define GPI__LT_FMA_MORE     3     /* and so much more | 4.2 */
#define GPI__LT_ODD          4     /* operands that begin or end anywhere | 1.5 */
#define GPI__LT_ODD_K        6.5   /* at most, for k, of which a long one is divided | 2.4 */
#define GPI__LT_ODD_RATE     0.62  /* of memory's | 2.0 */
#define GPI__LT_ODD_PAIRS    6.5   /* times what it takes to multiply | 9.5 */
#define GPI__LT_BACKWARD     6     /* ps | 0.2 */
#define GPI__LT_ACTIVATION   0.6   /* ps; RELU has none | 0.3 */
#define GPI__LT_AUX          0.7   /* ps more; 4096^3 with GELU, BIAS and AUX took it 200 us, and the kernel for Hopper 186 */
#define GPI__LT_BGRAD        7     /* | 0.00 */
#define GPI__LT_SUM          3.5   /* sums of an operand; H100, as the next two | 0.3 */
#define GPI__LT_SUM_F32      0.07  /* each step of k, where D is in F32, | 1.7 */
#define GPI__LT_SUM_ODD      0.4   /* or lines begin anywhere | 2.4 */
#define GPI__LT_READS        1.05  /* times, where products wait for A and B: 158 us against 154 for heads of attention (192 of 64 x 1024 x 1024) | 0.5 */

/* clang-format on */

#endif
