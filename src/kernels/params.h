/* What the host hands to the kernels. Both sides include this file: C99 on one, CUDA C++ on the other. */
#ifndef GEMMEPI_KERNELS_PARAMS_H
#define GEMMEPI_KERNELS_PARAMS_H

/* A matrix of the batch: element (item, row, column) is data[item * stride + row * ld + column]. */
typedef struct gpi__kernel_matrix {
    void *data;
    long long ld, stride;
} gpi__kernel_matrix;

/* The scales of a matrix: those of an item begin at data[item * stride]. */
typedef struct gpi__kernel_scale {
    const float *data;
    long long stride;
} gpi__kernel_scale;

/* epilogue.cuh. What the epilogue does not use is zero. First what every launch reads: it waits for each 64 bytes. */
typedef struct gpi__epilogue_params {
    gpi__kernel_matrix d;
    long long m, n;                   /* n: columns of the product, or of each of its halves */
    unsigned row_tiles, column_tiles; /* 32 bits: a 64-bit division costs a thread as much as its work */
    int uses_c;
    double parameter; /* of the activation */
    gpi__kernel_matrix bias, residual, aux, c;
    gpi__kernel_scale scale_a, scale_b, scale_c, scale_d, scale_aux, scale_residual; /* FINDS: scale_d is written */
    gpi__kernel_scale row_factor;
    void *amax_d, *amax_aux; /* of the accumulator's type, 0 before the launch */
    void *sums;              /* gemm_outer.cu: bias_grad, of an operand */
    const double *device_alpha, *device_beta;
    double alpha, beta;               /* where no device_alpha, device_beta is given */
} gpi__epilogue_params;

/* An operand of a formula, in elements. Of a NUMBER there is the number alone. */
typedef struct gpi__formula_place {
    void *data; /* of a reduction: where tiles leave its states, of columns and of all [batch][row_tiles] lines */
    long long ld, stride;
    long long row_period, column_period; /* 0: none; of what is BLOCKED a block's rows and columns, 0: one */
    const float *scale;
    long long scale_stride; /* from one item's to the next */
    void *amax;             /* of the accumulator's type, 0 before the launch */
    double number;
} gpi__formula_place;

/* Of a formula in an epilogue: its operands by their place, of which there are no more. Kernels without one have no such parameters. */
#define GPI__INSIDE_PLACES 12
#if !defined(__CUDACC_RTC__) || GEMMEPI_HAS_PLACES || GEMMEPI_GROUPED
#define GPI__PLACES gpi__formula_place places[GPI__INSIDE_PLACES];
#else
#define GPI__PLACES
#endif

/* groups.cu: a part of a group, as a kernel takes it: of rows as many as a tile has, or all of k. */
typedef struct gpi__group_part {
    int group, first, end; /* positions */
    int column;            /* of clusters' tiles, where each is listed; else 0 */
} gpi__group_part;

/* What kernels have of groups. Those of no grouped product have no such parameters. */
typedef struct gpi__kernel_groups {
    const int *count; /* of the parts; 0 where ends or indices are wrong */
    const gpi__group_part *parts;
    const int *index_a, *index_b, *index_d; /* NULL: none */
    long long rows_a;                       /* of a as it is stored, whose scales are by rows */
    const void *maps;                       /* maps_sm90.cu: of each group's A and B */
} gpi__kernel_groups;
#if !defined(__CUDACC_RTC__) || GEMMEPI_GROUPED
#define GPI__GROUPS gpi__kernel_groups groups;
#else
#define GPI__GROUPS
#endif

/* groups.cu: what was wrong with a list of ends or indices; in memory of the host's. */
typedef struct gpi__fault {
    int is_set, at; /* the first place, */
    int value, beside; /* what it says, and, of ends, what the end before it does, else what it must be less than */
} gpi__fault;
enum { GPI__FAULT_ENDS, GPI__FAULT_A, GPI__FAULT_B, GPI__FAULT_D, GPI__FAULTS };

#define GPI__MOST_GROUPS 4096

typedef struct gpi__groups_params {
    const int *ends;
    const int *indices[3]; /* of A, B and D; NULL: none */
    int limits[3];         /* what an index is less than */
    int groups, positions; /* positions: at most */
    int tile;              /* rows of a part; 0: a group is one */
    int low;     /* of so few rows, if any are left at a group's end, a part has two columns */
    int columns; /* of tiles, where each tile is listed, else 1 */
    int band;    /* columns of tiles in which rows are taken one after another; even where there is `low` */
    int *count;
    gpi__group_part *parts;
    gpi__fault *faults;
    unsigned *amax[2]; /* of D and AUX, which become 0 unless something is wrong; NULL: none */
    int amax_words;    /* of 32 bits each */
} gpi__groups_params;

/* groups.cu: rows gathered, in units of 16 bytes */
typedef struct gpi__gather_params {
    const void *from;
    void *to;
    const int *index, *ends, *count;
    long long ld, to_ld; /* in units */
    int groups, units;   /* units: of a row */
} gpi__gather_params;

/* pass.cu: the epilogue over a finished product. */
typedef struct gpi__pass_params {
    gpi__epilogue_params epilogue;
    gpi__kernel_matrix product;
    long long part; /* elements from one part of the product to the next, of an item */
    int row_steps; /* rows that each thread takes: a tile has blockDim.y * row_steps rows, blockDim.x * 8 columns */
    GPI__PLACES
} gpi__pass_params;

#define GPI__MADE_PLACES 4 /* operands of an operand's text that is computed on the way to the product */

/* gemm_plain.cu, gemm_small.cu, gemm_outer.cu, gemm_weights.cu: product and epilogue. a and b lie as stored. */
typedef struct gpi__plain_params {
    gpi__kernel_matrix a, b;
    long long k;
    int ahead; /* gemm_weights.cu: 1 where it brings weights to L2 before launches ahead of it have ended */
    gpi__epilogue_params epilogue;
    GPI__PLACES
    GPI__GROUPS
} gpi__plain_params;

/* history.cu: from the amax of `count` runs the scale of the next one, to whose place all of them make room. */
typedef struct gpi__history_params {
    float *history, *scale, *reciprocal;
    int count;
} gpi__history_params;

/* convert.cu, pack.cu: out = x in another type or its own, rows filled up with zeros to out.ld, which is a multiple of 8.
   transpose.cu: out = x transposed, rows not filled up. */
typedef struct gpi__convert_params {
    gpi__kernel_matrix x, out;
    long long rows, columns, items;
} gpi__convert_params;

/* reduce.cu: sums of x, a batch of items, along its rows or over them: `results` sums of `terms` numbers each. */
typedef struct gpi__reduce_params {
    gpi__kernel_matrix x;
    gpi__kernel_scale scale; /* of x: summed along k, the other extent is the outer one */
    void *out;
    long long out_stride; /* between the sums of two items, of two parts or of two groups */
    long long results, terms;
    long long parts;      /* into which an item's terms are divided, */
    long long part_terms; /* so many each */
    gpi__kernel_groups groups; /* index_a: of x */
#if !defined(__CUDACC_RTC__) || GEMMEPI_OF_NETWORK
    int outputs, begins[32]; /* in place of `out` dw and dbias of each layer, and their first sums */
    void *output[32];
#endif
} gpi__reduce_params;

/* cuda.h's CUtensorMap, which a kernel wants at a multiple of 64. */
#ifdef __CUDACC_RTC__
struct alignas(64) gpi__tensor_map {
    unsigned long long words[16];
};
#else
typedef struct gpi__tensor_map {
    unsigned long long words[16];
} gpi__tensor_map;
#endif

/* gemm_weights_sm90.cu: product and epilogue, a and b as TMA loads them; those of `plain` are not used. */
typedef struct gpi__weights_params {
    gpi__tensor_map a, b;
    int a_items, b_items;        /* whether the batch has its own */
    unsigned a_bytes;            /* of a that come to a stage: of no more rows than there are */
    gpi__formula_place made[GPI__MADE_PLACES]; /* operands of B's text */
    gpi__plain_params plain; /* last: kernels have as much of it as they use */
} gpi__weights_params;

/* maps_sm90.cu: a and b as they lie, for all groups */
typedef struct gpi__maps_params {
    gpi__tensor_map a, b;
    void *maps;
    const int *count;
    const gpi__group_part *parts;
} gpi__maps_params;

/* gemm_sm90.cu: product and epilogue. A cluster's tile is its blocks' tiles side by side. */
typedef struct gpi__sm90_params {
    gpi__tensor_map a, b;
    gpi__tensor_map a_tail, b_tail;   /* boxes of the last lines, where these lie along k and are fewer */
    gpi__tensor_map d, aux, residual; /* where TMA stores or loads them; of halves, too */
    gpi__epilogue_params epilogue;
    unsigned tiles;                         /* of clusters, of all items */
    unsigned cluster_rows, cluster_columns; /* tiles of clusters in an item */
    unsigned band; /* tiles of clusters one below the other before the next column is begun */
    int k;
    int a_items, b_items; /* 0: one matrix for all items of the batch */
    void *sums;           /* of an operand: bias_grad, or a line in F64 of each item */
    long long sums_stride;
    int sum_tiles; /* along the other axis, among which sums of an operand are shared out */
    GPI__PLACES
    GPI__GROUPS
} gpi__sm90_params;

/* gemm_sm80.cu: product and epilogue. a and b lie as stored. */
typedef struct gpi__sm80_params {
    gpi__epilogue_params epilogue; /* row_tiles: of the rows of one warp */
    gpi__kernel_matrix a, b;
    unsigned tile_rows; /* in an item */
    unsigned band;      /* tiles one below the other before the next column is begun */
    unsigned parts;     /* IN_PARTS: of k, each of part_k but the last; D has parts * batch items */
    int k, part_k;      /* E2M1: in bytes, as ld and strides of a and b are */
    gpi__kernel_matrix scales_a, scales_b; /* of blocks of k, bytes along k */
    GPI__PLACES
} gpi__sm80_params;

#define GPI__FORMULA_VALUE  33 /* the place of v, behind those of operands and D; C's is the next */
#define GPI__FORMULA_PLACES 35

/* formula_pass.cu: a formula over tensors. rows and units, see there. */
typedef struct gpi__formula_pass_params {
    const double *device_beta;
    double beta; /* where no device_beta is given */
    long long rows, units, columns, depth;
    unsigned row_tiles, column_tiles;
    int row_steps; /* rows that each thread takes, blockDim.y apart */
    int uses_c;
    gpi__formula_place places[GPI__FORMULA_PLACES];
} gpi__formula_pass_params;

/* formula_pass.cu with GEMMEPI_STRIDED: items have up to five axes. Of an operand, in elements: from one column to the next, and to the next
   item of each axis but the innermost, whose step is the place's stride. */
#define GPI__FORMULA_OUTER_AXES 4

typedef struct gpi__formula_steps {
    long long column, items[GPI__FORMULA_OUTER_AXES];
} gpi__formula_steps;

typedef struct gpi__formula_strides {
    long long extents[GPI__FORMULA_OUTER_AXES]; /* of the axes of items, from the innermost on; 1 where there is none */
    gpi__formula_steps steps[GPI__FORMULA_PLACES];
} gpi__formula_strides;

typedef struct gpi__strided_formula_params {
    gpi__formula_pass_params pass;
    gpi__formula_strides strides;
} gpi__strided_formula_params;

/* formula_reduce.cu: `count` results of each of `groups`, each of `lines` states, some of which a thread takes. A result's first state
   is group * group_step + result * result_step, the next ones line_step on. */
typedef struct gpi__formula_reduction {
    const void *states;
    void *out;
    const float *scale;
    void *amax;
    long long groups, count, lines;
    long long group_step, result_step, line_step;
    long long out_stride, out_step; /* from one group to the next, and from one result */
    long long out_line;           /* where results have lines, from one to the next */
    unsigned of_line;             /* results of a line; 0: they have none */
    unsigned first_block, blocks; /* that are for these results */
    unsigned short lanes;         /* threads of a result, a power of two */
    unsigned short is_along_lines; /* 1: threads side by side take states of one result, else of several */
} gpi__formula_reduction;

typedef struct gpi__formula_reduce_params {
    gpi__formula_reduction reductions[GPI__FORMULA_VALUE - 1];
} gpi__formula_reduce_params;

/* The tensors of an element-wise operation, in the order of operations.cuh, which has no y_transposed. */
#define GPI__PARAMS_TENSORS 8
#define GPI__PARAMS_AXES    8

/* operations.cuh: what is the same for all indices. */
typedef struct gpi__operation_params {
    double parameter; /* of the activation */
    double weight;    /* LERP without w    */
    const float *scale;
    void *amax; /* F64 where a is, else F32; 0 before the launch */
} gpi__operation_params;

/* elementwise.cu, gemmepi_contiguous */
typedef struct gpi__contiguous_params {
    gpi__operation_params operation;
    void *data[GPI__PARAMS_TENSORS];
    long long count;
} gpi__contiguous_params;

/* elementwise.cu, gemmepi_strided: strides in elements, of the tile's two axes and the others */
typedef struct gpi__strided_params {
    gpi__operation_params operation;
    void *data[GPI__PARAMS_TENSORS];
    long long stride[GPI__PARAMS_TENSORS][GPI__PARAMS_AXES];
    long long extent_i, extent_j;          /* of the first two axes */
    unsigned extent[GPI__PARAMS_AXES]; /* of the others, from 2 on */
    unsigned tiles_i, tiles_j;             /* 32 bits: a 64-bit division costs a thread as much as its work */
    int rank;                              /* 2 at least */
} gpi__strided_params;

/* sum.cu: axes of the sums that are made, and of what is added up, each from the innermost on */
typedef struct gpi__axes {
    long long extent[GPI__PARAMS_AXES];
    long long stride[GPI__PARAMS_TENSORS][GPI__PARAMS_AXES];
    int rank;
} gpi__axes;
typedef struct gpi__sum_params {
    gpi__operation_params operation;
    void *data[GPI__PARAMS_TENSORS]; /* of the output: y's place, or partial sums [parts][sums] in F64 */
    gpi__axes kept, summed;
    long long kept_count,
        summed_count;     /* of vectors or elements along the innermost axis, times the other axes */
    long long part_count; /* of summed_count, in one part */
    unsigned kept_blocks; /* the grid is these times the parts */
} gpi__sum_params;

/* scaled.cu, scaled_rows.cu, scaled_tensor.cu: axis 0 is the one along which tiles are fast, 1 the other of the matrix, the rest its
   items' */
typedef struct gpi__scaled_params {
    void *a, *y, *turned; /* turned: y transposed, by the same index */
    const float *scale;   /* read, or with Y_SCALE of whole tensors and rows */
    float *y_scale, *turned_scale; /* written */
    void *amax;
    long long extent[GPI__PARAMS_AXES];
    long long stride_a[GPI__PARAMS_AXES], stride_y[GPI__PARAMS_AXES], stride_turned[GPI__PARAMS_AXES];
    unsigned tiles[2];
    int rank; /* 2 at least */
    long long scale_gap; /* scaled_rows.cu: scales between those of one index of the last axis, of 3 at least, and the next */
    /* scaled_tensor.cu */
    int phase;
    unsigned tile_count; /* of all items */
    void *partials;      /* an amax of each block */
} gpi__scaled_params;

/* network.cu, network_backward.cu: a layer's operands come one after another, of a NUMBER the number alone. */
#define GPI__NETWORK_LAYERS 16
#define GPI__NETWORK_PLACES 24

typedef struct gpi__network_operand {
    const void *data;
    long long ld;
    double number;
} gpi__network_operand;

typedef struct gpi__network_params {
    const void *x, *dy;
    void *y, *dx;
    long long x_ld, y_ld; /* of dx, too; of dy */
    int rows;
    const void *w[GPI__NETWORK_LAYERS], *bias[GPI__NETWORK_LAYERS];
    float parameter[GPI__NETWORK_LAYERS]; /* of activations */
    gpi__network_operand places[GPI__NETWORK_PLACES];
    float *partials; /* backward: of each block its sums of dw and dbias of all layers */
} gpi__network_params;

#endif
