/* Element types on the host: to double without loss, from double with one rounding to nearest even. */
#ifndef GEMMEPI_HOST_CONVERT_H
#define GEMMEPI_HOST_CONVERT_H

#include "../base/platform.h"

/* A binary float of 16 bits or fewer by the widths of its exponent and mantissa, with IEEE's infinities and NaN. */
static uint32_t gemmepi__encode(double value, int exponent_bits, int mantissa_bits) {
    uint64_t bits, significand, kept, rest, half;
    int bias = (1 << (exponent_bits - 1)) - 1, exponent, shift;
    uint32_t sign, infinity = ((1u << exponent_bits) - 1) << mantissa_bits, result;
    memcpy(&bits, &value, sizeof bits);
    sign = (uint32_t)(bits >> 63) << (exponent_bits + mantissa_bits);
    exponent = (int)((bits >> 52) & 0x7ff) - 1023;
    significand = bits & (((uint64_t)1 << 52) - 1);
    if (exponent == 1024)
        return sign | infinity | (significand ? 1u << (mantissa_bits - 1) : 0);
    if (exponent == -1023) /* zero, or a double far below half the smallest result */
        return sign;
    significand |= (uint64_t)1 << 52;
    shift = 52 - mantissa_bits + (exponent < 1 - bias ? 1 - bias - exponent : 0);
    if (shift > 54)
        return sign;
    half = (uint64_t)1 << (shift - 1);
    kept = significand >> shift;
    rest = significand & (2 * half - 1);
    kept += rest > half || (rest == half && (kept & 1));
    /* the leading one of a normal significand counts as one step of the exponent, and so does a carry */
    result = (uint32_t)kept + (exponent < 1 - bias ? 0 : (uint32_t)(exponent + bias - 1) << mantissa_bits);
    return sign | (result > infinity ? infinity : result);
}

static double gemmepi__decode(uint32_t code, int exponent_bits, int mantissa_bits) {
    int bias = (1 << (exponent_bits - 1)) - 1;
    uint32_t exponent = (code >> mantissa_bits) & ((1u << exponent_bits) - 1);
    uint64_t mantissa = code & ((1u << mantissa_bits) - 1), bits;
    uint64_t sign = (uint64_t)(code >> (exponent_bits + mantissa_bits)) << 63;
    double value, unit;
    if (exponent == 0) { /* mantissa units of the smallest subnormal; a double holds the product exactly */
        bits = (uint64_t)(1023 + 1 - bias - mantissa_bits) << 52;
        memcpy(&unit, &bits, sizeof unit);
        value = (double)mantissa * unit;
        return sign ? -value : value;
    }
    bits =
        exponent == (1u << exponent_bits) - 1 ? (uint64_t)0x7ff : (uint64_t)exponent + 1023 - (uint64_t)bias;
    bits = sign | bits << 52 | mantissa << (52 - mantissa_bits);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* count elements from `first` on, `step` apart, to double. */
static void gemmepi__load_run(int dtype, const void *base, int64_t first, int64_t step, int64_t count,
                              double *out) {
    int64_t i;
    if (dtype == GEMMEPI_F32)
        for (i = 0; i < count; i++)
            out[i] = (double)((const float *)base)[first + i * step];
    else if (dtype == GEMMEPI_F64)
        for (i = 0; i < count; i++)
            out[i] = ((const double *)base)[first + i * step];
    else if (dtype == GEMMEPI_F16)
        for (i = 0; i < count; i++)
            out[i] = gemmepi__decode(((const uint16_t *)base)[first + i * step], 5, 10);
    else
        for (i = 0; i < count; i++)
            out[i] = gemmepi__decode(((const uint16_t *)base)[first + i * step], 8, 7);
}

static void gemmepi__store_run(int dtype, void *base, int64_t first, int64_t count, const double *values) {
    int64_t i;
    if (dtype == GEMMEPI_F32)
        for (i = 0; i < count; i++)
            ((float *)base)[first + i] = (float)values[i];
    else if (dtype == GEMMEPI_F64)
        for (i = 0; i < count; i++)
            ((double *)base)[first + i] = values[i];
    else if (dtype == GEMMEPI_F16)
        for (i = 0; i < count; i++)
            ((uint16_t *)base)[first + i] = (uint16_t)gemmepi__encode(values[i], 5, 10);
    else
        for (i = 0; i < count; i++)
            ((uint16_t *)base)[first + i] = (uint16_t)gemmepi__encode(values[i], 8, 7);
}

#endif
