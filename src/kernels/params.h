/* What the host hands to the kernels. Both sides include this file: C99 on one, CUDA C++ on the other. */
#ifndef GEMMEPI_KERNELS_PARAMS_H
#define GEMMEPI_KERNELS_PARAMS_H

/* The tensors of an epilogue that have no field of their own in gemmepi__epilogue_params, a row each: NAME, name and along what it
   runs. All are F32. From its row a tensor has a number among a problem's operands, by which pointers, overlap and alignment are
   checked, explain shows it and a kernel's name has it, its place in `extras` of each kernel's parameters, and its bit in the define
   GEMMEPI_EXTRAS. What is computed of it stands in epilogue.cuh and host/product.h. cuBLASLt knows none of them. */
#define GEMMEPI_EXTRA_OPERANDS(X) \
    X(ROW_FACTOR, row_factor, GEMMEPI__ALONG_ROWS) /* D = row_factor[row] * (all that comes before the residual) + residual */

enum { GEMMEPI__ALONG_ROWS, GEMMEPI__ALONG_COLUMNS, GEMMEPI__ALONG_BOTH }; /* of the result: [m], [n] or [m, n] */

#define GEMMEPI__EXTRA_NUMBER(NAME, name, along) GEMMEPI__EXTRA_##NAME,
enum { GEMMEPI_EXTRA_OPERANDS(GEMMEPI__EXTRA_NUMBER) GEMMEPI__EXTRAS };

/* A matrix of the batch: element (item, row, column) is data[item * stride + row * ld + column]. */
typedef struct gemmepi__kernel_matrix {
    void *data;
    long long ld, stride;
} gemmepi__kernel_matrix;

/* The scales of a matrix: those of an item begin at data[item * stride]. */
typedef struct gemmepi__kernel_scale {
    const float *data;
    long long stride;
} gemmepi__kernel_scale;

/* epilogue.cuh. What the epilogue does not use is zero. */
typedef struct gemmepi__epilogue_params {
    gemmepi__kernel_matrix c, bias, aux, residual, d;
    gemmepi__kernel_scale scale_a, scale_b, scale_c, scale_d, scale_aux, scale_residual; /* FINDS: scale_d is written */
    void *amax_d, *amax_aux; /* of the accumulator's type, 0 before the launch */
    void *partials;          /* BGRAD: [batch][row_tiles] lines of sums in the accumulator's type */
    const double *device_alpha, *device_beta;
    double alpha, beta;               /* where no device_alpha, device_beta is given */
    double parameter;                 /* of the activation */
    long long m, n;                   /* n: columns of the product, or of each of its halves */
    unsigned row_tiles, column_tiles; /* 32 bits: a 64-bit division costs a thread as much as its work */
    int uses_c;
} gemmepi__epilogue_params;

/* An operand of a formula, in elements. Of a NUMBER there is the number alone. */
typedef struct gemmepi__formula_place {
    void *data; /* of a reduction: where tiles leave its states */
    long long ld, stride;
    long long row_period, column_period; /* 0: none */
    const float *scale;
    long long scale_stride; /* from one item's to the next */
    void *amax;             /* of the accumulator's type, 0 before the launch */
    double number;
} gemmepi__formula_place;

/* Of a formula in an epilogue: its operands by their place, of which there are no more. Kernels without one have no such parameters. */
#define GEMMEPI__INSIDE_PLACES 12
#if !defined(__CUDACC_RTC__) || GEMMEPI_FORMULA || GEMMEPI_GROUPED
#define GEMMEPI__PLACES gemmepi__formula_place places[GEMMEPI__INSIDE_PLACES];
#else
#define GEMMEPI__PLACES
#endif

/* groups.cu: a part of a group, as a kernel takes it: of rows as many as a tile has, or all of k. */
typedef struct gemmepi__group_part {
    int group, first, end; /* positions */
    int column;            /* of clusters' tiles, where each is listed; else 0 */
} gemmepi__group_part;

/* What kernels have of groups. Those of no grouped product have no such parameters. */
typedef struct gemmepi__kernel_groups {
    const int *count; /* of the parts; 0 where ends or indices are wrong */
    const gemmepi__group_part *parts;
    const int *index_a, *index_b, *index_d; /* NULL: none */
    long long rows_a;                       /* of a as it is stored, whose scales are by rows */
    const void *maps;                       /* maps_sm90.cu: of each group's A and B */
} gemmepi__kernel_groups;
#if !defined(__CUDACC_RTC__) || GEMMEPI_GROUPED
#define GEMMEPI__GROUPS gemmepi__kernel_groups groups;
#else
#define GEMMEPI__GROUPS
#endif

/* groups.cu: what was wrong with a list of ends or indices; in memory of the host's. */
typedef struct gemmepi__fault {
    int is_set, at; /* the first place, */
    int value, beside; /* what it says, and, of ends, what the end before it does, else what it must be less than */
} gemmepi__fault;
enum { GEMMEPI__FAULT_ENDS, GEMMEPI__FAULT_A, GEMMEPI__FAULT_B, GEMMEPI__FAULT_D, GEMMEPI__FAULTS };

#define GEMMEPI__MOST_GROUPS 4096

typedef struct gemmepi__groups_params {
    const int *ends;
    const int *indices[3]; /* of A, B and D; NULL: none */
    int limits[3];         /* what an index is less than */
    int groups, positions; /* positions: at most */
    int tile;              /* rows of a part; 0: a group is one */
    int low;     /* of so few rows, if any are left at a group's end, a part has two columns */
    int columns; /* of tiles, where each tile is listed, else 1 */
    int band;    /* columns of tiles in which rows are taken one after another; even where there is `low` */
    int *count;
    gemmepi__group_part *parts;
    gemmepi__fault *faults;
    unsigned *amax[2]; /* of D and AUX, which become 0 unless something is wrong; NULL: none */
    int amax_words;    /* of 32 bits each */
} gemmepi__groups_params;

/* groups.cu: rows gathered, in units of 16 bytes */
typedef struct gemmepi__gather_params {
    const void *from;
    void *to;
    const int *index, *ends, *count;
    long long ld, to_ld; /* in units */
    int groups, units;   /* units: of a row */
} gemmepi__gather_params;

/* group_sums.cu: sums of each group's lines of x */
typedef struct gemmepi__group_sums_params {
    gemmepi__kernel_matrix x;
    const float *scale;
    void *out;
    long long out_stride;
    const int *index, *count; /* index: of x's lines; NULL: none */
    const gemmepi__group_part *parts;
    int columns;
    unsigned column_tiles;
} gemmepi__group_sums_params;

/* pass.cu: the epilogue over a finished product. */
typedef struct gemmepi__pass_params {
    gemmepi__epilogue_params epilogue;
    gemmepi__kernel_matrix product;
    long long part; /* elements from one part of the product to the next, of an item */
    int row_steps; /* rows that each thread takes: a tile has blockDim.y * row_steps rows, blockDim.x * 8 columns */
    gemmepi__kernel_matrix extras[GEMMEPI__EXTRAS];
    GEMMEPI__PLACES
} gemmepi__pass_params;

/* gemm_plain.cu, gemm_small.cu, gemm_weights.cu: product and epilogue. a and b lie as stored. */
typedef struct gemmepi__plain_params {
    gemmepi__epilogue_params epilogue;
    gemmepi__kernel_matrix a, b;
    long long k;
    int ahead; /* gemm_weights.cu: 1 where it brings weights to L2 before launches ahead of it have ended */
    gemmepi__kernel_matrix extras[GEMMEPI__EXTRAS];
    GEMMEPI__PLACES
    GEMMEPI__GROUPS
} gemmepi__plain_params;

/* found_scales.cu: D = x / scale, the scale of each row, or of each 128 columns of it, made of its amax. scale_stride: from one item's. */
typedef struct gemmepi__quantise_params {
    gemmepi__kernel_matrix x, d;
    float *scale;
    long long scale_stride, rows, columns, items;
} gemmepi__quantise_params;

/* found_scales.cu: from the amax of `count` runs the scale of the next one, to whose place all of them make room. */
typedef struct gemmepi__history_params {
    float *history, *scale, *reciprocal;
    int count;
} gemmepi__history_params;

/* convert.cu, pack.cu: out = x in another type or its own, rows filled up with zeros to out.ld, which is a multiple of 8.
   transpose.cu: out = x transposed, rows not filled up. */
typedef struct gemmepi__convert_params {
    gemmepi__kernel_matrix x, out;
    long long rows, columns, items;
} gemmepi__convert_params;

/* reduce.cu: sums of x, a batch of items of rows x columns, along its columns or rows. */
typedef struct gemmepi__reduce_params {
    gemmepi__kernel_matrix x;
    gemmepi__kernel_scale scale; /* of x: summed along k, the other extent is the outer one */
    void *out;
    long long out_stride; /* between the sums of two items, or of two parts */
    long long rows, columns;
    long long parts;     /* sum_columns: into which an item's rows are divided */
    long long part_rows; /* sum_columns: rows of a part                        */
} gemmepi__reduce_params;

/* cuda.h's CUtensorMap, which a kernel wants at a multiple of 64. */
#ifdef __CUDACC_RTC__
struct alignas(64) gemmepi__tensor_map {
    unsigned long long words[16];
};
#else
typedef struct gemmepi__tensor_map {
    unsigned long long words[16];
} gemmepi__tensor_map;
#endif

/* gemm_weights_sm90.cu: product and epilogue, a and b as TMA loads them; those of `plain` are not used. */
typedef struct gemmepi__weights_params {
    gemmepi__tensor_map a, b;
    int a_items, b_items;        /* whether the batch has its own */
    unsigned a_bytes;            /* of a that come to a stage: of no more rows than there are */
    gemmepi__plain_params plain; /* last: kernels have as much of it as they use */
} gemmepi__weights_params;

/* maps_sm90.cu: a and b as they lie, for all groups */
typedef struct gemmepi__maps_params {
    gemmepi__tensor_map a, b;
    void *maps;
    const int *count;
    const gemmepi__group_part *parts;
} gemmepi__maps_params;

/* gemm_sm90.cu: product and epilogue. A cluster's tile is its blocks' tiles side by side. */
typedef struct gemmepi__sm90_params {
    gemmepi__tensor_map a, b;
    gemmepi__tensor_map a_tail, b_tail;   /* boxes of the last lines, where these lie along k and are fewer */
    gemmepi__tensor_map d, aux, residual; /* where TMA stores or loads them; of halves, too */
    gemmepi__epilogue_params epilogue;
    unsigned tiles;                         /* of clusters, of all items */
    unsigned cluster_rows, cluster_columns; /* tiles of clusters in an item */
    unsigned band; /* tiles of clusters one below the other before the next column is begun */
    int k;
    int a_items, b_items; /* 0: one matrix for all items of the batch */
    void *sums;           /* of an operand: bias_grad, or a line in F64 of each item */
    long long sums_stride;
    int sum_tiles; /* along the other axis, among which sums of an operand are shared out */
    gemmepi__kernel_matrix extras[GEMMEPI__EXTRAS];
    GEMMEPI__PLACES
    GEMMEPI__GROUPS
} gemmepi__sm90_params;

/* gemm_sm80.cu: product and epilogue. a and b lie as stored. */
typedef struct gemmepi__sm80_params {
    gemmepi__epilogue_params epilogue; /* row_tiles: of the rows of one warp */
    gemmepi__kernel_matrix a, b;
    unsigned tile_rows; /* in an item */
    unsigned band;      /* tiles one below the other before the next column is begun */
    unsigned parts;     /* IN_PARTS: of k, each of part_k but the last; D has parts * batch items */
    int k, part_k;
    gemmepi__kernel_matrix extras[GEMMEPI__EXTRAS];
    GEMMEPI__PLACES
} gemmepi__sm80_params;

#define GEMMEPI__FORMULA_PLACES 33 /* operands by their place, and D */

/* formula_pass.cu: a formula over a finished product, or any matrix. rows and units, see there. */
typedef struct gemmepi__formula_pass_params {
    gemmepi__kernel_matrix value, c;
    gemmepi__kernel_scale scale_a, scale_b, scale_c;
    const double *device_alpha, *device_beta;
    double alpha, beta; /* where no device_alpha, device_beta is given */
    long long part;     /* elements from one part of v to the next, of an item */
    long long rows, units, columns, depth;
    unsigned row_tiles, column_tiles;
    int row_steps; /* rows that each thread takes, blockDim.y apart */
    int uses_c;
    gemmepi__formula_place places[GEMMEPI__FORMULA_PLACES];
} gemmepi__formula_pass_params;

/* formula_pass.cu with GEMMEPI_STRIDED: items have up to five axes. Of an operand, in elements: from one column to the next, and to the next
   item of each axis but the innermost, whose step is the place's stride. */
#define GEMMEPI__FORMULA_OUTER_AXES 4

typedef struct gemmepi__formula_steps {
    long long column, items[GEMMEPI__FORMULA_OUTER_AXES];
} gemmepi__formula_steps;

typedef struct gemmepi__formula_strides {
    long long extents[GEMMEPI__FORMULA_OUTER_AXES]; /* of the axes of items, from the innermost on; 1 where there is none */
    gemmepi__formula_steps steps[GEMMEPI__FORMULA_PLACES];
} gemmepi__formula_strides;

typedef struct gemmepi__strided_formula_params {
    gemmepi__formula_pass_params pass;
    gemmepi__formula_strides strides;
} gemmepi__strided_formula_params;

/* formula_reduce.cu: `count` results of each of `groups`, each of `lines` states, some of which a thread takes. A result's first state
   is group * group_step + result * result_step, the next ones line_step on. */
typedef struct gemmepi__formula_reduction {
    const void *states;
    void *out;
    const float *scale;
    void *amax;
    long long groups, count, lines;
    long long group_step, result_step, line_step;
    long long out_stride, out_step; /* from one group to the next, and from one result */
    unsigned first_block, blocks; /* that are for these results */
    unsigned lanes;               /* threads of a result, a power of two */
    int is_along_lines;           /* 1: threads side by side take states of one result, else of several */
} gemmepi__formula_reduction;

typedef struct gemmepi__formula_reduce_params {
    gemmepi__formula_reduction reductions[GEMMEPI__FORMULA_PLACES - 1];
} gemmepi__formula_reduce_params;

/* The tensors of an element-wise operation, in the order of operations.cuh, which has no y_transposed. */
#define GEMMEPI__PARAMS_TENSORS 8
#define GEMMEPI__PARAMS_AXES    8

/* operations.cuh: what is the same for all indices. */
typedef struct gemmepi__operation_params {
    double parameter; /* of the activation */
    double weight;    /* LERP without w    */
    const float *scale;
    void *amax; /* F64 where a is, else F32; 0 before the launch */
} gemmepi__operation_params;

/* elementwise.cu, gemmepi_contiguous */
typedef struct gemmepi__contiguous_params {
    gemmepi__operation_params operation;
    void *data[GEMMEPI__PARAMS_TENSORS];
    long long count;
} gemmepi__contiguous_params;

/* elementwise.cu, gemmepi_strided: strides in elements, of the tile's two axes and the others */
typedef struct gemmepi__strided_params {
    gemmepi__operation_params operation;
    void *data[GEMMEPI__PARAMS_TENSORS];
    long long stride[GEMMEPI__PARAMS_TENSORS][GEMMEPI__PARAMS_AXES];
    long long extent_i, extent_j;          /* of the first two axes */
    unsigned extent[GEMMEPI__PARAMS_AXES]; /* of the others, from 2 on */
    unsigned tiles_i, tiles_j;             /* 32 bits: a 64-bit division costs a thread as much as its work */
    int rank;                              /* 2 at least */
} gemmepi__strided_params;

/* sum.cu: axes of the sums that are made, and of what is added up, each from the innermost on */
typedef struct gemmepi__axes {
    long long extent[GEMMEPI__PARAMS_AXES];
    long long stride[GEMMEPI__PARAMS_TENSORS][GEMMEPI__PARAMS_AXES];
    int rank;
} gemmepi__axes;
typedef struct gemmepi__sum_params {
    gemmepi__operation_params operation;
    void *data[GEMMEPI__PARAMS_TENSORS]; /* of the output: y's place, or partial sums [parts][sums] in F64 */
    gemmepi__axes kept, summed;
    long long kept_count,
        summed_count;     /* of vectors or elements along the innermost axis, times the other axes */
    long long part_count; /* of summed_count, in one part */
    unsigned kept_blocks; /* the grid is these times the parts */
} gemmepi__sum_params;

/* scaled.cu, scaled_rows.cu, scaled_tensor.cu: axis 0 is the one along which tiles are fast, 1 the other of the matrix, the rest its
   items' */
typedef struct gemmepi__scaled_params {
    void *a, *y, *turned; /* turned: y transposed, by the same index */
    const float *scale;   /* read, or with Y_SCALE of whole tensors and rows */
    float *y_scale, *turned_scale; /* written */
    void *amax;
    long long extent[GEMMEPI__PARAMS_AXES];
    long long stride_a[GEMMEPI__PARAMS_AXES], stride_y[GEMMEPI__PARAMS_AXES], stride_turned[GEMMEPI__PARAMS_AXES];
    unsigned tiles[2];
    int rank; /* 2 at least */
    /* scaled_tensor.cu */
    int phase;
    unsigned tile_count; /* of all items */
    void *partials;      /* an amax of each block */
} gemmepi__scaled_params;

#endif
