/* What the host hands to the kernels. Both sides include this file: C99 on one, CUDA C++ on the other. */
#ifndef GEMMEPI_KERNELS_PARAMS_H
#define GEMMEPI_KERNELS_PARAMS_H

/* A matrix of the batch: element (item, row, column) is data[item * stride + row * ld + column]. */
typedef struct gemmepi__kernel_matrix {
    void *data;
    long long ld, stride;
} gemmepi__kernel_matrix;

/* pass.cu: the epilogue over a finished product. What the epilogue does not use is zero. */
typedef struct gemmepi__pass_params {
    gemmepi__kernel_matrix product, c, bias, aux, residual, d;
    void *partials; /* BGRAD: [batch][row_tiles][n] sums in the accumulator type */
    const double *device_alpha, *device_beta;
    double alpha, beta; /* where no device_alpha, device_beta is given */
    long long m, n;
    unsigned row_tiles, column_tiles; /* 32 bits: a 64-bit division costs a thread as much as its work */
    int row_steps; /* rows that each thread takes: a tile has blockDim.y * row_steps rows, blockDim.x * 8 columns */
    int uses_c;
} gemmepi__pass_params;

/* reduce.cu: sums of x, a batch of items of rows x columns, along its columns or rows. */
typedef struct gemmepi__reduce_params {
    gemmepi__kernel_matrix x;
    void *out;
    long long out_stride; /* between the sums of two items, or of two parts */
    long long rows, columns;
    long long parts;     /* sum_columns: into which an item's rows are divided */
    long long part_rows; /* sum_columns: rows of a part                        */
} gemmepi__reduce_params;

#endif
