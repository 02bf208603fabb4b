/* The table of element types, and the names of scale modes. */
#ifndef GEMMEPI_NUMBERS_DTYPE_H
#define GEMMEPI_NUMBERS_DTYPE_H

#include "../base/platform.h"

#ifdef GEMMEPI_NO_FP8
#define GPI__HAS_FP8 0
#else
#define GPI__HAS_FP8 1
#endif
#define GPI__WITHOUT_FP8 "%s, but E4M3 and E5M2 were left out of this program (GEMMEPI_NO_FP8)"

/* What RELU's mask is of, which no dtype says: the bit x > 0 of each element. */
#define GPI__BIT_OF_MASK 255

typedef struct gpi__dtype_row {
    gemmepi_dtype dtype;
    const char *name;    /* as in GEMMEPI_F32, and as kernels name it */
    size_t size;         /* of 4 bits 1: a byte has two elements */
    short digits;        /* of a significand; 0: nothing is stored in it that cuBLASLt has rounded */
    short least;         /* the smallest number is 2^-least */
    const char *operand; /* what tensor cores call it; NULL: they multiply none, and are asked for BF16 */
} gpi__dtype_row;

static const gpi__dtype_row gpi__dtypes[] = {
    {GEMMEPI_DTYPE_DEFAULT, "DEFAULT", 0, 0, 0, NULL},
    {GEMMEPI_F32, "F32", 4, 24, 149, "tf32"},
    {GEMMEPI_F64, "F64", 8, 53, 1022, NULL},
    {GEMMEPI_F16, "F16", 2, 11, 24, "f16"},
    {GEMMEPI_BF16, "BF16", 2, 8, 133, "bf16"},
    {GEMMEPI_E4M3, "E4M3", 1, 4, 9, "e4m3"},
    {GEMMEPI_E5M2, "E5M2", 1, 3, 16, "e5m2"},
    {GEMMEPI_I8, "I8", 1, 0, 0, "s8"},
    {GEMMEPI_I32, "I32", 4, 0, 0, NULL},
    {GEMMEPI_I64, "I64", 8, 0, 0, NULL},
    {GEMMEPI_I4, "I4", 1, 0, 0, NULL},
    {GEMMEPI_U4, "U4", 1, 0, 0, NULL},
    {GEMMEPI_E2M1, "E2M1", 1, 0, 0, "e2m1"},
    {GEMMEPI_E8M0, "E8M0", 1, 0, 0, NULL},
};

static int gpi__is_e4m3_or_e5m2(int dtype) {
    return dtype == GEMMEPI_E4M3 || dtype == GEMMEPI_E5M2;
}

/* Never where fp8 was left out: what asks is left out, too. */
static int gpi__is_fp8(int dtype) {
    return GPI__HAS_FP8 && gpi__is_e4m3_or_e5m2(dtype);
}

static int gpi__is_left_out(int dtype) {
    return !GPI__HAS_FP8 && gpi__is_e4m3_or_e5m2(dtype);
}

/* The types of 4 bits, of which a byte has two. */
static int gpi__is_packed(int dtype) {
    return dtype >= GEMMEPI_I4 && dtype <= GEMMEPI_E2M1;
}

/* The types that operands of formulas have which are only read. */
static int gpi__is_only_read(int dtype) {
    return dtype >= GEMMEPI_I64 && dtype <= GEMMEPI_E8M0;
}

/* The types of so few bits that scales go with them. */
static int gpi__is_scaled_dtype(int dtype) {
    return gpi__is_fp8(dtype) || dtype == GEMMEPI_I8;
}

/* The smallest type that holds every value of both: F64 with F64 alone, I8 for two I8. */
static int gpi__common_dtype(int a, int b) {
    int takes_bf16 = a == GEMMEPI_BF16 || b == GEMMEPI_BF16, takes_f16 = a == GEMMEPI_F16 || b == GEMMEPI_F16;
    if (a == b && !gpi__is_fp8(a))
        return a;
    if (a == GEMMEPI_F32 || b == GEMMEPI_F32 || (takes_bf16 && takes_f16))
        return GEMMEPI_F32;
    return takes_bf16 ? GEMMEPI_BF16 : GEMMEPI_F16;
}

/* The row of a known dtype, or that of DEFAULT. */
static const gpi__dtype_row *gpi__dtype(gemmepi_dtype dtype) {
    size_t i = (size_t)dtype < GPI__COUNT(gpi__dtypes) ? (size_t)dtype : 0;
    return &gpi__dtypes[i];
}

/* Its name, as kernels and sentences have it. */
static const char *gpi__type(int dtype) {
    return gpi__dtype((gemmepi_dtype)dtype)->name;
}

static int gpi__bits_of(int dtype) {
    return gpi__is_packed(dtype) ? 4 : (int)(8 * gpi__dtype((gemmepi_dtype)dtype)->size);
}

static int gpi__dtype_is_known(gemmepi_dtype dtype) {
    return gpi__dtype(dtype)->size != 0;
}

/* What follows a sentence that refuses a type that is only read. */
static const char *gpi__where_it_goes(int dtype) {
    return gpi__is_packed(dtype)
               ? "; types of 4 bits are for operands of the kinds FULL and BLOCKED that a formula reads, and for "
                 "a and b with a formula of their own"
           : gpi__is_only_read(dtype) ? "; it is for operands that a formula reads"
                                      : "";
}

/* For sentences. */
static const char *gpi__dtype_name(gemmepi_dtype dtype) {
    return gpi__dtype_is_known(dtype) ? gpi__dtype(dtype)->name : "no gemmepi_dtype";
}

static const char *gpi__scale_mode_name(gemmepi_scale_mode mode) {
    static const char *const names[] = {"NONE", "TENSOR", "OUTER", "VECTOR_128", "BLOCK_128"};
    return (size_t)mode < GPI__COUNT(names) ? names[mode] : "no gemmepi_scale_mode";
}

GEMMEPI_API size_t gemmepi_dtype_size(gemmepi_dtype dtype) {
    return gpi__dtype(dtype)->size;
}

#endif
