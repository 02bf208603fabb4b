/* The table of element types. */
#ifndef GEMMEPI_PROBLEM_DTYPE_H
#define GEMMEPI_PROBLEM_DTYPE_H

#include "../base/platform.h"

typedef struct gemmepi__dtype_row {
    gemmepi_dtype dtype;
    const char *name; /* as in GEMMEPI_F32, and as kernels name it */
    size_t size;
} gemmepi__dtype_row;

static const gemmepi__dtype_row gemmepi__dtypes[] = {
    {GEMMEPI_DTYPE_DEFAULT, "DEFAULT", 0},
    {GEMMEPI_F32, "F32", 4},
    {GEMMEPI_F64, "F64", 8},
    {GEMMEPI_F16, "F16", 2},
    {GEMMEPI_BF16, "BF16", 2},
};

/* The row of a known dtype, or that of DEFAULT. */
static const gemmepi__dtype_row *gemmepi__dtype(gemmepi_dtype dtype) {
    size_t i = (size_t)dtype < GEMMEPI__COUNT(gemmepi__dtypes) ? (size_t)dtype : 0;
    return &gemmepi__dtypes[i];
}

static int gemmepi__dtype_is_known(gemmepi_dtype dtype) {
    return gemmepi__dtype(dtype)->size != 0;
}

GEMMEPI_API size_t gemmepi_dtype_size(gemmepi_dtype dtype) {
    return gemmepi__dtype(dtype)->size;
}

#endif
