/* The table of element types. */
#ifndef GEMMEPI_NUMBERS_DTYPE_H
#define GEMMEPI_NUMBERS_DTYPE_H

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
    {GEMMEPI_E4M3, "E4M3", 1},
    {GEMMEPI_E5M2, "E5M2", 1},
    {GEMMEPI_I8, "I8", 1},
    {GEMMEPI_I32, "I32", 4},
    {GEMMEPI_I64, "I64", 8},
};

static int gemmepi__is_fp8(int dtype) {
    return dtype == GEMMEPI_E4M3 || dtype == GEMMEPI_E5M2;
}

/* The types of so few bits that scales go with them. */
static int gemmepi__takes_scale(int dtype) {
    return gemmepi__is_fp8(dtype) || dtype == GEMMEPI_I8;
}

/* The smallest type that holds every value of both: F64 with F64 alone, I8 for two I8. */
static int gemmepi__common_dtype(int a, int b) {
    int takes_bf16 = a == GEMMEPI_BF16 || b == GEMMEPI_BF16, takes_f16 = a == GEMMEPI_F16 || b == GEMMEPI_F16;
    if (a == b && !gemmepi__is_fp8(a))
        return a;
    if (a == GEMMEPI_F32 || b == GEMMEPI_F32 || (takes_bf16 && takes_f16))
        return GEMMEPI_F32;
    return takes_bf16 ? GEMMEPI_BF16 : GEMMEPI_F16;
}

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
