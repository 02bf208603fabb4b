/* Element types on the host: to double without loss, from double with one rounding to nearest even. */
#ifndef GEMMEPI_NUMBERS_CONVERT_H
#define GEMMEPI_NUMBERS_CONVERT_H

#include "dtype.h"

#include <math.h>

/* A binary float of 16 bits or fewer. */
typedef struct gpi__float_format {
    int exponent_bits, mantissa_bits;
    uint32_t
        largest; /* code of what is too large: infinity, or the largest number where the type saturates */
    uint32_t nan;
    int special; /* the highest exponent means infinity and NaN; else only the code nan is not a number */
} gpi__float_format;

/* The row of a dtype of 8 or 16 bits, or NULL. */
static const gpi__float_format *gpi__format_of(int dtype) {
    static const gpi__float_format f16 = {5, 10, 0x7c00, 0x7e00, 1}, bf16 = {8, 7, 0x7f80, 0x7fc0, 1},
                                   e4m3 = {4, 3, 0x7e, 0x7f, 0}, e5m2 = {5, 2, 0x7b, 0x7f, 1};
    switch (dtype) {
    case GEMMEPI_F16:
        return &f16;
    case GEMMEPI_BF16:
        return &bf16;
    case GEMMEPI_E4M3:
        return &e4m3;
    case GEMMEPI_E5M2:
        return &e5m2;
    default:
        return NULL;
    }
}

static uint32_t gpi__encode(const gpi__float_format *format, double value) {
    uint64_t bits, significand, kept, rest, half;
    int bias = (1 << (format->exponent_bits - 1)) - 1, exponent, shift;
    uint32_t sign, result;
    memcpy(&bits, &value, sizeof bits);
    sign = (uint32_t)(bits >> 63) << (format->exponent_bits + format->mantissa_bits);
    exponent = (int)((bits >> 52) & 0x7ff) - 1023;
    significand = bits & (((uint64_t)1 << 52) - 1);
    if (exponent == 1024)
        return sign | (significand ? format->nan : format->largest);
    if (exponent == -1023) /* zero, or a double far below half the smallest result */
        return sign;
    significand |= (uint64_t)1 << 52;
    shift = 52 - format->mantissa_bits + (exponent < 1 - bias ? 1 - bias - exponent : 0);
    if (shift > 54)
        return sign;
    half = (uint64_t)1 << (shift - 1);
    kept = significand >> shift;
    rest = significand & (2 * half - 1);
    kept += rest > half || (rest == half && (kept & 1));
    /* the leading one of a normal significand counts as one step of the exponent, and so does a carry */
    result =
        (uint32_t)kept + (exponent < 1 - bias ? 0 : (uint32_t)(exponent + bias - 1) << format->mantissa_bits);
    return sign | (result > format->largest ? format->largest : result);
}

static double gpi__decode(const gpi__float_format *format, uint32_t code) {
    int bias = (1 << (format->exponent_bits - 1)) - 1, mantissa_bits = format->mantissa_bits;
    uint32_t exponent = (code >> mantissa_bits) & ((1u << format->exponent_bits) - 1);
    uint64_t mantissa = code & ((1u << mantissa_bits) - 1), bits;
    uint64_t sign = (uint64_t)(code >> (format->exponent_bits + mantissa_bits)) << 63;
    int highest = exponent == (1u << format->exponent_bits) - 1;
    double value, unit;
    if (exponent == 0) { /* mantissa units of the smallest subnormal; a double holds the product exactly */
        bits = (uint64_t)(1023 + 1 - bias - mantissa_bits) << 52;
        memcpy(&unit, &bits, sizeof unit);
        value = (double)mantissa * unit;
        return sign ? -value : value;
    }
    if (!format->special)
        highest = highest && mantissa == ((uint64_t)1 << mantissa_bits) - 1;
    bits = highest ? 0x7ff : (uint64_t)exponent + 1023 - (uint64_t)bias;
    bits = sign | bits << 52 | mantissa << (52 - mantissa_bits);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Nearest whole number in least to most, ties to even; NaN gives 0. */
static int gpi__encode_whole(double value, int least, int most) {
    return value >= most ? most : value <= least ? least : value == value ? (int)rint(value) : 0;
}

static int8_t gpi__encode_i8(double value) {
    return (int8_t)gpi__encode_whole(value, -128, 127);
}

/* The four bits of I4, U4 and E2M1; they saturate, and NaN gives 0. */
static uint32_t gpi__encode_4_bits(int dtype, double value) {
    static const gpi__float_format e2m1 = {2, 1, 7, 0, 0};
    if (dtype == GEMMEPI_E2M1)
        return value == value ? gpi__encode(&e2m1, value) : 0;
    return (uint32_t)gpi__encode_whole(value, dtype == GEMMEPI_I4 ? -8 : 0, dtype == GEMMEPI_I4 ? 7 : 15) &
           15;
}

static double gpi__decode_4_bits(int dtype, uint32_t code) {
    static const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    if (dtype == GEMMEPI_E2M1)
        return code & 8 ? -e2m1[code & 7] : e2m1[code & 7];
    return dtype == GEMMEPI_I4 && code & 8 ? (double)code - 16 : (double)code;
}

/* The power of two that is nearest, in the middle between two that of the even code; what is below 2^-127 or negative gives that, what is
   above 2^127 that, NaN 255. */
static uint8_t gpi__encode_e8m0(double value) {
    int exponent;
    double part;
    if (value != value)
        return 255;
    if (value <= ldexp(1.0, -127))
        return 0;
    if (value >= ldexp(1.0, 127))
        return 254;
    part = frexp(value, &exponent); /* value is 2 part 2^(exponent - 1), part from 1/2 on */
    exponent += 126;
    return (uint8_t)(exponent + (part > 0.75 || (part >= 0.75 && exponent % 2)));
}

static double gpi__decode_e8m0(uint32_t code) {
    return code == 255 ? (double)NAN : ldexp(1.0, (int)code - 127);
}

/* What the byte of element i of 4 bits has of it. */
static int gpi__half_byte_of(int64_t i) {
    return i & 1 ? 4 : 0;
}

static int64_t gpi__byte_of(int64_t i) {
    return (i - (i & 1)) / 2;
}

/* The other element of the byte stays as it is. */
static void gpi__store_4_bits(uint8_t *base, int64_t i, uint32_t code) {
    uint8_t *byte = base + gpi__byte_of(i);
    int at = gpi__half_byte_of(i);
    *byte = (uint8_t)((*byte & 0xf0 >> at) | code << at);
}

/* And of a mask the other bits. */
static void gpi__store_bit(uint8_t *base, int64_t i, int is_set) {
    uint8_t one = (uint8_t)(1 << (i & 7));
    base[i >> 3] = (uint8_t)(is_set ? base[i >> 3] | one : base[i >> 3] & ~one);
}

static int32_t gpi__signed(uint32_t bits) {
    int32_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A whole number modulo 2^32; what is no number or passes 2^62 gives 0. */
static int32_t gpi__wrap(double value) {
    return value > -4611686018427387904.0 && value < 4611686018427387904.0
               ? gpi__signed((uint32_t)(uint64_t)(int64_t)value)
               : 0;
}

/* count elements from `first` on, `step` apart, to double. */
static void gpi__load_run(int dtype, const void *base, int64_t first, int64_t step, int64_t count,
                          double *out) {
    const gpi__float_format *format = gpi__format_of(dtype);
    int64_t i;
    if (dtype == GEMMEPI_F32)
        for (i = 0; i < count; i++)
            out[i] = (double)((const float *)base)[first + i * step];
    else if (dtype == GEMMEPI_F64)
        for (i = 0; i < count; i++)
            out[i] = ((const double *)base)[first + i * step];
    else if (dtype == GEMMEPI_I8)
        for (i = 0; i < count; i++)
            out[i] = (double)((const int8_t *)base)[first + i * step];
    else if (dtype == GEMMEPI_I32)
        for (i = 0; i < count; i++)
            out[i] = (double)((const int32_t *)base)[first + i * step];
    else if (dtype == GEMMEPI_F16 || dtype == GEMMEPI_BF16)
        for (i = 0; i < count; i++)
            out[i] = gpi__decode(format, ((const uint16_t *)base)[first + i * step]);
    else if (gpi__is_packed(dtype))
        for (i = 0; i < count; i++, first += step)
            out[i] = gpi__decode_4_bits(dtype, (uint32_t)((const uint8_t *)base)[gpi__byte_of(first)] >>
                                                       gpi__half_byte_of(first) &
                                                   15);
    else if (dtype == GPI__BIT_OF_MASK)
        for (i = 0; i < count; i++, first += step)
            out[i] = ((const uint8_t *)base)[first >> 3] >> (first & 7) & 1;
    else if (dtype == GEMMEPI_E8M0)
        for (i = 0; i < count; i++)
            out[i] = gpi__decode_e8m0(((const uint8_t *)base)[first + i * step]);
    else
        for (i = 0; i < count; i++)
            out[i] = gpi__decode(format, ((const uint8_t *)base)[first + i * step]);
}

static void gpi__store_run(int dtype, void *base, int64_t first, int64_t count, const double *values) {
    const gpi__float_format *format = gpi__format_of(dtype);
    int64_t i;
    if (dtype == GEMMEPI_F32)
        for (i = 0; i < count; i++)
            ((float *)base)[first + i] = (float)values[i];
    else if (dtype == GEMMEPI_F64)
        for (i = 0; i < count; i++)
            ((double *)base)[first + i] = values[i];
    else if (dtype == GEMMEPI_I8)
        for (i = 0; i < count; i++)
            ((int8_t *)base)[first + i] = gpi__encode_i8(values[i]);
    else if (dtype == GEMMEPI_I32)
        for (i = 0; i < count; i++)
            ((int32_t *)base)[first + i] = gpi__wrap(values[i]);
    else if (dtype == GEMMEPI_F16 || dtype == GEMMEPI_BF16)
        for (i = 0; i < count; i++)
            ((uint16_t *)base)[first + i] = (uint16_t)gpi__encode(format, values[i]);
    else if (gpi__is_packed(dtype))
        for (i = 0; i < count; i++)
            gpi__store_4_bits((uint8_t *)base, first + i, gpi__encode_4_bits(dtype, values[i]));
    else if (dtype == GPI__BIT_OF_MASK)
        for (i = 0; i < count; i++, first++)
            gpi__store_bit((uint8_t *)base, first, values[i] > 0);
    else if (dtype == GEMMEPI_E8M0)
        for (i = 0; i < count; i++)
            ((uint8_t *)base)[first + i] = gpi__encode_e8m0(values[i]);
    else
        for (i = 0; i < count; i++)
            ((uint8_t *)base)[first + i] = (uint8_t)gpi__encode(format, values[i]);
}

#endif
