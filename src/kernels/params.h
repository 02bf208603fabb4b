/* What the host hands to the kernels. Both sides include this file: C99 on one, CUDA C++ on the other. */
#ifndef GEMMEPI_KERNELS_PARAMS_H
#define GEMMEPI_KERNELS_PARAMS_H

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
    gemmepi__kernel_scale scale_a, scale_b, scale_c, scale_d, scale_aux, scale_residual;
    void *amax_d, *amax_aux; /* of the accumulator's type, 0 before the launch */
    void *partials;          /* BGRAD: [batch][row_tiles][n] sums in the accumulator's type */
    const double *device_alpha, *device_beta;
    double alpha, beta; /* where no device_alpha, device_beta is given */
    double parameter;   /* of the activation */
    long long m, n;
    unsigned row_tiles, column_tiles; /* 32 bits: a 64-bit division costs a thread as much as its work */
    int uses_c;
} gemmepi__epilogue_params;

/* pass.cu: the epilogue over a finished product. */
typedef struct gemmepi__pass_params {
    gemmepi__epilogue_params epilogue;
    gemmepi__kernel_matrix product;
    int row_steps; /* rows that each thread takes: a tile has blockDim.y * row_steps rows, blockDim.x * 8 columns */
} gemmepi__pass_params;

/* gemm_plain.cu: product and epilogue. a and b lie as stored: with its define TRANSPOSED, op() turns them. */
typedef struct gemmepi__plain_params {
    gemmepi__epilogue_params epilogue;
    gemmepi__kernel_matrix a, b;
    long long k;
} gemmepi__plain_params;

/* convert.cu: out = x in another type, rows filled up with zeros to out.ld, which is a multiple of 8. */
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

#endif
