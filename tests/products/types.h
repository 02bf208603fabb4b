/* The choices of dtypes that products are tested with. */
#ifndef GEMMEPI_TESTS_TYPES_H
#define GEMMEPI_TESTS_TYPES_H

#include "gemmepi.h"

typedef struct types {
    const char *name;
    gemmepi_dtype operands, results, vectors; /* a, b; c, d, aux, residual; bias, bias_grad */
    gemmepi_compute compute;
    gemmepi_dtype second, others; /* b, if not as a; c, aux and residual, if not as d */
} types;

/* DTYPE_DEFAULT for b: as a; for c, aux and residual: as d. bias stands for bias_grad, too. */
/* clang-format off */
#define TYPES_LIST(X)                                                                                            \
    /*                       in words                 a     b              d     c, aux         bias  compute */ \
    X(f64,                  "f64",                   F64,  DTYPE_DEFAULT, F64,  DTYPE_DEFAULT, F64,  DEFAULT)    \
    X(f32,                  "f32",                   F32,  DTYPE_DEFAULT, F32,  DTYPE_DEFAULT, F32,  F32)        \
    X(tf32,                 "tf32",                  F32,  DTYPE_DEFAULT, F32,  DTYPE_DEFAULT, F32,  TF32)       \
    X(f16,                  "f16",                   F16,  DTYPE_DEFAULT, F16,  DTYPE_DEFAULT, F16,  DEFAULT)    \
    X(f16_sums,             "f16, summed in f16",    F16,  DTYPE_DEFAULT, F16,  DTYPE_DEFAULT, F16,  F16)        \
    X(bf16,                 "bf16",                  BF16, DTYPE_DEFAULT, BF16, DTYPE_DEFAULT, BF16, DEFAULT)    \
    X(bf16_to_f32,          "bf16 to f32",           BF16, DTYPE_DEFAULT, F32,  DTYPE_DEFAULT, F32,  F32)        \
    X(f16_with_f32_vectors, "f16, f32 vectors",      F16,  DTYPE_DEFAULT, F16,  DTYPE_DEFAULT, F32,  F32)        \
    X(e4m3_to_f32,          "e4m3 to f32",           E4M3, DTYPE_DEFAULT, F32,  DTYPE_DEFAULT, F32,  DEFAULT)    \
    X(e4m3_to_f16,          "e4m3 to f16",           E4M3, DTYPE_DEFAULT, F16,  DTYPE_DEFAULT, F16,  DEFAULT)    \
    X(e4m3_to_bf16,         "e4m3 to bf16",          E4M3, DTYPE_DEFAULT, BF16, DTYPE_DEFAULT, BF16, DEFAULT)    \
    X(e4m3,                 "e4m3 with bf16",        E4M3, DTYPE_DEFAULT, E4M3, BF16,          BF16, DEFAULT)    \
    X(e4m3_alone,           "e4m3 alone",            E4M3, DTYPE_DEFAULT, E4M3, DTYPE_DEFAULT, BF16, DEFAULT)    \
    X(e4m3_e5m2,            "e4m3 by e5m2 to bf16",  E4M3, E5M2,          BF16, DTYPE_DEFAULT, F32,  DEFAULT)    \
    X(e5m2_e4m3,            "e5m2 by e4m3 to f16",   E5M2, E4M3,          F16,  DTYPE_DEFAULT, F16,  DEFAULT)    \
    X(e5m2_to_f32,          "e5m2 to f32",           E5M2, DTYPE_DEFAULT, F32,  DTYPE_DEFAULT, BF16, DEFAULT)    \
    X(e5m2_e4m3_to_e5m2,    "e5m2 by e4m3 to e5m2",  E5M2, E4M3,          E5M2, DTYPE_DEFAULT, F16,  DEFAULT)    \
    X(e4m3_to_e5m2,         "e4m3 to e5m2 with f16", E4M3, DTYPE_DEFAULT, E5M2, F16,           F16,  DEFAULT)    \
    X(i8,                   "i8",                    I8,   DTYPE_DEFAULT, I8,   DTYPE_DEFAULT, F32,  DEFAULT)    \
    X(i8_to_f16,            "i8 to f16",             I8,   DTYPE_DEFAULT, F16,  DTYPE_DEFAULT, F16,  DEFAULT)    \
    X(i8_to_bf16,           "i8 to bf16",            I8,   DTYPE_DEFAULT, BF16, DTYPE_DEFAULT, BF16, I32)        \
    X(i8_to_f32,            "i8 to f32 with i8",     I8,   DTYPE_DEFAULT, F32,  I8,            F32,  F32)        \
    X(i8_bf16,              "i8 by bf16",            I8,   BF16,          BF16, DTYPE_DEFAULT, BF16, DEFAULT)    \
    X(bf16_e4m3,            "bf16 by e4m3",          BF16, E4M3,          BF16, DTYPE_DEFAULT, F32,  DEFAULT)    \
    X(f16_bf16,             "f16 by bf16 to f32",    F16,  BF16,          F32,  DTYPE_DEFAULT, F32,  DEFAULT)    \
    X(f16_bf16_tf32,        "f16 by bf16, tf32",     F16,  BF16,          BF16, DTYPE_DEFAULT, BF16, TF32)       \
    X(f32_f16,              "f32 by f16",            F32,  F16,           F32,  DTYPE_DEFAULT, F16,  F32)        \
    X(bf16_f32_tf32,        "bf16 by f32, tf32",     BF16, F32,           F32,  DTYPE_DEFAULT, BF16, TF32)       \
    X(e5m2_f16,             "e5m2 by f16 to e5m2",   E5M2, F16,           E5M2, DTYPE_DEFAULT, F16,  DEFAULT)    \
    X(i8_e4m3,              "i8 by e4m3 to f16",     I8,   E4M3,          F16,  DTYPE_DEFAULT, F32,  DEFAULT)    \
    X(f32_i8,               "f32 by i8 to i8",       F32,  I8,            I8,   DTYPE_DEFAULT, F32,  F32)        \
    X(bf16_to_e4m3,         "bf16 to e4m3",          BF16, DTYPE_DEFAULT, E4M3, BF16,          BF16, DEFAULT)    \
    X(f16_to_i8,            "f16 to i8",             F16,  DTYPE_DEFAULT, I8,   F16,           F16,  DEFAULT)    \
    X(f32_to_e5m2,          "f32 to e5m2",           F32,  DTYPE_DEFAULT, E5M2, DTYPE_DEFAULT, F32,  DEFAULT)    \
    X(f32_to_e4m3,          "f32 to e4m3",           F32,  DTYPE_DEFAULT, E4M3, DTYPE_DEFAULT, F32,  F32)        \
    X(i8_to_i32,            "i8 to i32",             I8,   DTYPE_DEFAULT, I32,  DTYPE_DEFAULT, I32,  DEFAULT)
/* clang-format on */

#define TYPES_OF(variable, words, a, b, d, others, vectors, compute)                             \
    static const types variable = {                                                              \
        words,       GEMMEPI_##a,     GEMMEPI_##d, GEMMEPI_##vectors, GEMMEPI_COMPUTE_##compute, \
        GEMMEPI_##b, GEMMEPI_##others};
TYPES_LIST(TYPES_OF)

static const types *const all_types[] = {&f64, &f32, &tf32, &f16, &bf16, &bf16_to_f32, &f16_with_f32_vectors};
static const types *const plain_types[] = {&f64, &f32, &f16, &bf16};
/* Of 8 bits somewhere, or mixed; without I32 results. */
static const types *const new_types[] = {
    &e4m3_to_f32, &e4m3_to_f16,   &e4m3_to_bf16,      &e4m3,         &e4m3_alone, &e4m3_e5m2,
    &e5m2_e4m3,   &e5m2_to_f32,   &e5m2_e4m3_to_e5m2, &e4m3_to_e5m2, &i8,         &i8_to_f16,
    &i8_to_bf16,  &i8_to_f32,     &i8_bf16,           &bf16_e4m3,    &f16_bf16,   &f16_bf16_tf32,
    &f32_f16,     &bf16_f32_tf32, &e5m2_f16,          &i8_e4m3,      &f32_i8,     &bf16_to_e4m3,
    &f16_to_i8,   &f32_to_e5m2,   &f32_to_e4m3};
static const types *const integer_types[] = {
    &f64,         &f32,  &tf32,      &f16, &f16_sums,   &bf16,     &bf16_to_f32, &f16_with_f32_vectors,
    &e4m3_to_f32, &e4m3, &e5m2_e4m3, &i8,  &i8_to_bf16, &f16_to_i8};

/* Operands that hold infinity and NaN. */
static const types *const special_types[] = {
    &f64,         &f32,         &tf32,      &f16,        &bf16, &bf16_to_f32, &f16_with_f32_vectors,
    &f32_to_e4m3, &f32_to_e5m2, &f16_to_i8, &e5m2_to_f32};

static const types *const bit_types[] = {&f64, &f32, &f16, &bf16, &e4m3_to_bf16, &i8_to_f32};

#endif
