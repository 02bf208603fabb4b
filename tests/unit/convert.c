/* Element types on the host, against what their bits mean, worked out here with ldexp and floor. */
#include "numbers/convert.h"
#include "test.h"

typedef struct type_row {
    gemmepi_dtype dtype;
    const char *name;
    int exponent_bits, mantissa_bits, bias;
    int has_infinity;
    int saturates;
    uint32_t largest, nan; /* codes: of the largest number, and of what a NaN is stored as */
} type_row;

static const type_row types[] = {
    {GEMMEPI_F16, "F16", 5, 10, 15, 1, 0, 0x7bff, 0x7e00},
    {GEMMEPI_BF16, "BF16", 8, 7, 127, 1, 0, 0x7f7f, 0x7fc0},
    {GEMMEPI_E4M3, "E4M3", 4, 3, 7, 0, 1, 0x7e, 0x7f},
    {GEMMEPI_E5M2, "E5M2", 5, 2, 15, 1, 1, 0x7b, 0x7f},
};

enum { TYPES = sizeof types / sizeof types[0] };

static uint32_t sign_of(const type_row *type) {
    return 1u << (type->exponent_bits + type->mantissa_bits);
}

/* The number of a code without a sign if there were neither infinity nor NaN. */
static double number(const type_row *type, uint32_t code) {
    int exponent = (int)(code >> type->mantissa_bits), hidden = exponent > 0;
    uint32_t mantissa = code % (1u << type->mantissa_bits) + ((uint32_t)hidden << type->mantissa_bits);
    return ldexp((double)mantissa, (hidden ? exponent : 1) - type->bias - type->mantissa_bits);
}

static double meaning(const type_row *type, uint32_t code) {
    uint32_t magnitude = code % sign_of(type);
    double value = magnitude <= type->largest                             ? number(type, magnitude)
                   : type->has_infinity && magnitude == type->largest + 1 ? (double)INFINITY
                                                                          : (double)NAN;
    return code == magnitude ? value : -value;
}

/* E5M2 saturates, so that its infinity has a code that is never stored. */
static uint32_t infinity_of(const type_row *type) {
    return type->saturates ? type->largest : type->largest + 1;
}

static double decode(const type_row *type, uint32_t code) {
    return gpi__decode(gpi__format_of(type->dtype), code);
}

static uint32_t encode(const type_row *type, double value) {
    return gpi__encode(gpi__format_of(type->dtype), value);
}

/* value becomes code, and -value the code with a sign. */
static void check_encodes(const type_row *type, double value, uint32_t code) {
    CHECK(encode(type, value) == code, "%s: %.17g becomes 0x%x, not 0x%x", type->name, value,
          (unsigned)encode(type, value), (unsigned)code);
    CHECK(encode(type, -value) == (code | sign_of(type)), "%s: %.17g becomes 0x%x, not 0x%x", type->name,
          -value, (unsigned)encode(type, -value), (unsigned)(code | sign_of(type)));
}

static double above(double value) {
    return nextafter(value, (double)INFINITY);
}

static double below(double value) {
    return nextafter(value, -(double)INFINITY);
}

/* >>floating point */

static void every_code_stands_for_the_number_that_its_bits_say(void) {
    int i;
    for (i = 0; i < TYPES; i++) {
        uint32_t code;
        for (code = 0; code < 2 * sign_of(&types[i]); code++) {
            double got = decode(&types[i], code), want = meaning(&types[i], code);
            int same = want == want ? got == want && copysign(1, got) == copysign(1, want) : got != got;
            CHECK(same, "%s: 0x%x is %.17g, not %.17g", types[i].name, (unsigned)code, got, want);
        }
    }
}

static void the_largest_and_smallest_numbers_are_those_of_the_standards(void) {
    static const double largest[] = {65504, 3.3895313892515355e38, 448, 57344};
    static const int smallest[] = {-24, -133, -9, -16}; /* powers of two */
    int i;
    for (i = 0; i < TYPES; i++) {
        CHECK(decode(&types[i], types[i].largest) == largest[i], "%s: %.17g", types[i].name,
              decode(&types[i], types[i].largest));
        CHECK(decode(&types[i], 1) == ldexp(1, smallest[i]), "%s: %.17g", types[i].name,
              decode(&types[i], 1));
    }
}

static void every_number_becomes_its_own_code(void) {
    int i;
    for (i = 0; i < TYPES; i++) {
        uint32_t code;
        for (code = 0; code <= types[i].largest; code++)
            check_encodes(&types[i], number(&types[i], code), code);
    }
}

static void halfway_between_two_numbers_the_even_one_is_taken_and_beside_it_the_nearer_one(void) {
    int i;
    for (i = 0; i < TYPES; i++) {
        const type_row *type = &types[i];
        uint32_t code;
        for (code = 0; code < type->largest; code++) {
            double low = number(type, code), high = number(type, code + 1), half = (low + high) / 2;
            check_encodes(type, half, code + code % 2);
            check_encodes(type, above(half), code + 1);
            check_encodes(type, below(half), code);
            check_encodes(type, below(high), code + 1);
            check_encodes(type, above(low), code);
            check_encodes(type, (low + 3 * high) / 4, code + 1);
            check_encodes(type, (3 * low + high) / 4, code);
        }
    }
}

static void what_is_too_large_becomes_infinity_or_the_largest_number(void) {
    int i;
    for (i = 0; i < TYPES; i++) {
        const type_row *type = &types[i];
        double largest = number(type, type->largest), next = number(type, type->largest + 1);
        double half = (largest + next) / 2;
        uint32_t beyond = infinity_of(type);
        check_encodes(type, above(largest), type->largest);
        check_encodes(type, below(half), type->largest);
        /* the largest number of F16 and BF16 is odd */
        check_encodes(type, half, beyond);
        check_encodes(type, above(half), beyond);
        check_encodes(type, next, beyond);
        check_encodes(type, 2 * next, beyond);
        check_encodes(type, ldexp(1, 200), beyond);
        check_encodes(type, ldexp(1, 1023), beyond);
        check_encodes(type, (double)INFINITY, beyond);
    }
}

static void what_is_too_small_becomes_zero_of_its_sign(void) {
    int i, exponent;
    for (i = 0; i < TYPES; i++) {
        const type_row *type = &types[i];
        double half = number(type, 1) / 2;
        check_encodes(type, 0, 0);
        check_encodes(type, half, 0);
        check_encodes(type, above(half), 1);
        for (exponent = -1074; ldexp(1, exponent) < half; exponent++) {
            check_encodes(type, ldexp(1, exponent), 0);
            check_encodes(type, below(ldexp(2, exponent)), 0);
        }
    }
}

static double nan_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void a_nan_stays_one_whatever_its_bits(void) {
    static const uint64_t nans[] = {0x7ff8000000000000u, 0xfff8000000000000u, 0x7ff8000000000001u,
                                    0x7fffffffffffffffu, 0xffffffffffffffffu, 0x7ff0000000000001u};
    size_t i;
    int t;
    for (t = 0; t < TYPES; t++)
        for (i = 0; i < GPI__COUNT(nans); i++) {
            uint32_t code = encode(&types[t], nan_of_bits(nans[i]));
            CHECK(code % sign_of(&types[t]) == types[t].nan, "%s: 0x%x", types[t].name, (unsigned)code);
            CHECK(code < 2 * sign_of(&types[t]), "%s: 0x%x has bits beyond its sign", types[t].name,
                  (unsigned)code);
            CHECK(decode(&types[t], code) != decode(&types[t], code), "%s: 0x%x is a number", types[t].name,
                  (unsigned)code);
        }
}

static void an_infinity_of_e5m2_is_read_as_one_and_never_stored(void) {
    const type_row *type = &types[3];
    CHECK(decode(type, 0x7c) == (double)INFINITY && decode(type, 0xfc) == -(double)INFINITY, "%g and %g",
          decode(type, 0x7c), decode(type, 0xfc));
    check_encodes(type, decode(type, 0x7c), 0x7b);
}

/* >>whole numbers */

/* The nearest whole number, ties to even, between least and most. */
static int nearest(double value, int least, int most) {
    double low = floor(value), rest = value - low;
    int whole = (int)low;
    whole += rest > 0.5 || (rest == 0.5 && whole % 2 != 0);
    return whole < least ? least : whole > most ? most : whole;
}

static void check_i8(double value, int want) {
    CHECK(gpi__encode_i8(value) == want, "%.17g becomes %d, not %d", value, gpi__encode_i8(value), want);
}

static void i8_rounds_to_nearest_even_and_saturates(void) {
    int halves;
    for (halves = -260; halves <= 260; halves++) {
        double value = halves / 2.0;
        check_i8(value, nearest(value, -128, 127));
        check_i8(above(value), nearest(above(value), -128, 127));
        check_i8(below(value), nearest(below(value), -128, 127));
    }
    check_i8(127.5, 127);
    check_i8(below(127.5), 127);
    check_i8(-128.5, -128);
    check_i8(below(-128.5), -128);
    check_i8(1e10, 127);
    check_i8(-1e10, -128);
    check_i8(ldexp(1, 1023), 127);
    check_i8(-ldexp(1, 1023), -128);
    check_i8((double)INFINITY, 127);
    check_i8(-(double)INFINITY, -128);
    check_i8(ldexp(1, -1074), 0);
}

static void a_nan_becomes_0_in_i8(void) {
    check_i8((double)NAN, 0);
    check_i8(-(double)NAN, 0);
}

/* >>4 bits, and scales */

static const double numbers_of_i4[16] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
static const double numbers_of_u4[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const double numbers_of_e2m1[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

static const struct {
    gemmepi_dtype dtype;
    const double *numbers;
} fours[] = {{GEMMEPI_I4, numbers_of_i4}, {GEMMEPI_U4, numbers_of_u4}, {GEMMEPI_E2M1, numbers_of_e2m1}};

static void two_elements_of_4_bits_are_in_a_byte_the_first_in_the_lower_half(void) {
    unsigned char bytes[9];
    double values[18];
    int t, i, step;
    for (i = 0; i < 9; i++)
        bytes[i] = (unsigned char)(i == 8 ? 0x3a : 2 * i + 16 * (2 * i + 1));
    for (t = 0; t < 3; t++)
        for (step = 1; step <= 3; step++) {
            gpi__load_run(fours[t].dtype, bytes, 0, step, 18 / step, values);
            for (i = 0; i < 18 / step; i++) {
                unsigned code = i * step < 16 ? (unsigned)(i * step) : i * step == 16 ? 10 : 3;
                CHECK(values[i] == fours[t].numbers[code] &&
                          signbit(values[i]) == signbit(fours[t].numbers[code]),
                      "type %d: element %d is %g, not %g", (int)fours[t].dtype, i * step, values[i],
                      fours[t].numbers[code]);
            }
            gpi__load_run(fours[t].dtype, bytes + 8, -3, 1, 1, values);
            CHECK(values[0] == fours[t].numbers[13], "element -3 is %g", values[0]);
        }
}

/* The code of the nearest number; of two as near that of the even code. */
static unsigned nearest_code(const double *numbers, double value) {
    unsigned code, best = 0;
    value = value > 99 ? 99 : value < -99 ? -99 : value;
    for (code = 1; code < 16; code++) {
        double off = fabs(numbers[code] - value), least = fabs(numbers[best] - value);
        if (off < least || (off == least && code % 2 == 0 && best % 2))
            best = code;
    }
    return best;
}

static void check_4_bits(int t, double value) {
    unsigned char bytes[2];
    double back;
    int place;
    for (place = 0; place < 4; place++) {
        unsigned want = nearest_code(fours[t].numbers, value), code;
        memset(bytes, 0x5b, sizeof bytes);
        gpi__store_run(fours[t].dtype, bytes, place, 1, &value);
        code = bytes[place / 2] >> (place % 2 ? 4 : 0) & 15u;
        CHECK(fours[t].numbers[code] == fours[t].numbers[want], "type %d: %.17g becomes %u, not %u",
              (int)fours[t].dtype, value, code, want);
        CHECK((place % 2 ? bytes[place / 2] & 15 : bytes[place / 2] >> 4) == (place % 2 ? 0xb : 5) &&
                  bytes[1 - place / 2] == 0x5b,
              "type %d: place %d: a neighbour has changed", (int)fours[t].dtype, place);
        gpi__load_run(fours[t].dtype, bytes, place, 1, 1, &back);
        CHECK(back == fours[t].numbers[want], "%g is read", back);
    }
}

static void types_of_4_bits_round_to_nearest_even_and_saturate(void) {
    static const double others[] = {1e10,    -1e10,  1e308,   -1e308, 1e-300,
                                    -1e-300, 7.4999, 15.4999, 5.0001, 4.9999};
    int t, quarters;
    size_t i;
    for (t = 0; t < 3; t++) {
        for (quarters = -80; quarters <= 80; quarters++) {
            check_4_bits(t, quarters / 4.0);
            check_4_bits(t, above(quarters / 4.0));
            check_4_bits(t, below(quarters / 4.0));
        }
        for (i = 0; i < GPI__COUNT(others); i++)
            check_4_bits(t, others[i]);
    }
}

static void infinities_saturate_in_4_bits_and_a_nan_is_0(void) {
    static const unsigned codes[3][3] = {{0x87, 0, 0x77}, {0x0f, 0, 0xff}, {0xf7, 0, 0x77}};
    double values[3][2] = {
        {(double)INFINITY, -(double)INFINITY}, {(double)NAN, -(double)NAN}, {1e300, (double)INFINITY}};
    int t, i;
    for (t = 0; t < 3; t++)
        for (i = 0; i < 3; i++) {
            unsigned char byte = 0xa5;
            gpi__store_run(fours[t].dtype, &byte, 0, 2, values[i]);
            CHECK(byte == codes[t][i], "type %d: 0x%x, not 0x%x", (int)fours[t].dtype, byte, codes[t][i]);
        }
}

static unsigned e8m0_of(double value) {
    unsigned char byte = 0xa5;
    gpi__store_run(GEMMEPI_E8M0, &byte, 0, 1, &value);
    return byte;
}

static void e8m0_is_a_power_of_two(void) {
    unsigned char bytes[256];
    double values[256];
    int code;
    for (code = 0; code < 256; code++)
        bytes[code] = (unsigned char)code;
    gpi__load_run(GEMMEPI_E8M0, bytes, 0, 1, 256, values);
    for (code = 0; code < 255; code++) {
        double here = ldexp(1, code - 127), middle = 1.5 * here;
        CHECK(values[code] == here, "%d is %g", code, values[code]);
        CHECK(e8m0_of(here) == (unsigned)code, "%g becomes %u", here, e8m0_of(here));
        if (code < 254) {
            CHECK(e8m0_of(middle) == (unsigned)(code + code % 2), "%g becomes %u", middle, e8m0_of(middle));
            CHECK(e8m0_of(below(middle)) == (unsigned)code, "below %g: %u", middle, e8m0_of(below(middle)));
            CHECK(e8m0_of(above(middle)) == (unsigned)code + 1, "above %g: %u", middle,
                  e8m0_of(above(middle)));
        }
    }
    CHECK(values[255] != values[255], "255 is %g", values[255]);
    CHECK(e8m0_of((double)NAN) == 255 && e8m0_of((double)INFINITY) == 254 && e8m0_of(1e300) == 254 &&
              e8m0_of(0) == 0 && e8m0_of(-3) == 0 && e8m0_of(-(double)INFINITY) == 0 && e8m0_of(1e-300) == 0,
          "%u %u %u %u %u", e8m0_of((double)NAN), e8m0_of((double)INFINITY), e8m0_of(1e300), e8m0_of(0),
          e8m0_of(-3));
}

static void check_wraps(double value, int32_t want) {
    CHECK(gpi__wrap(value) == want, "%.17g becomes %ld, not %ld", value, (long)gpi__wrap(value), (long)want);
}

static void a_whole_number_wraps_modulo_2_to_the_32(void) {
    static const int32_t some[] = {
        0,      1,       -1,       2,         -2,      127,        -128,        65536,
        -70001, INT_MAX, -INT_MAX, INT32_MIN, 1 << 30, -(1 << 30), INT_MAX - 1, INT32_MIN + 1};
    size_t i;
    int turns;
    for (i = 0; i < GPI__COUNT(some); i++)
        for (turns = -3; turns <= 3; turns++)
            check_wraps((double)some[i] + turns * ldexp(1, 32), some[i]);
    check_wraps(2147483648.0, INT32_MIN);
    check_wraps(-2147483649.0, INT_MAX);
    check_wraps(4294967295.0, -1);
    check_wraps(ldexp(1, 53) - 1, -1);
    check_wraps(1 - ldexp(1, 53), 1);
    check_wraps(ldexp(1, 60) + ldexp(1, 31), INT32_MIN);
    check_wraps(ldexp(1, 61), 0);
    check_wraps(-0.0, 0);
}

static void what_is_no_whole_number_of_62_bits_wraps_to_0(void) {
    check_wraps(ldexp(1, 62), 0);
    check_wraps(-ldexp(1, 62), 0);
    check_wraps(ldexp(1, 63) + ldexp(1, 31), 0);
    check_wraps(ldexp(1, 1023), 0);
    check_wraps((double)INFINITY, 0);
    check_wraps(-(double)INFINITY, 0);
    check_wraps((double)NAN, 0);
}

/* >>runs of elements */

enum { FIRST = 3, STEP = 5, COUNT = 4 };

/* Stored at FIRST, read back one by one from there and STEP apart. */
static void a_run_is_stored_and_loaded_where_it_was_said(void) {
    static const gemmepi_dtype all[] = {GEMMEPI_F32,  GEMMEPI_F64,  GEMMEPI_F16, GEMMEPI_BF16,
                                        GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8,  GEMMEPI_I32};
    static const size_t sizes[] = {4, 8, 2, 2, 1, 1, 1, 4};
    static const double values[COUNT] = {1, -2, 96, -7}; /* which every type has */
    size_t i;
    int j;
    for (i = 0; i < GPI__COUNT(all); i++) {
        double base[FIRST + STEP * COUNT + 1], before[GPI__COUNT(base)], got[COUNT];
        size_t size = sizes[i], end = (FIRST + COUNT) * size;
        memset(base, 0x11, sizeof base);
        memcpy(before, base, sizeof base);
        gpi__store_run((int)all[i], base, FIRST, COUNT, values);
        CHECK(memcmp(base, before, FIRST * size) == 0, "dtype %d: bytes before the run", (int)all[i]);
        CHECK(memcmp((char *)base + end, before, sizeof base - end) == 0, "dtype %d: bytes behind the run",
              (int)all[i]);
        gpi__load_run((int)all[i], base, FIRST, 1, COUNT, got);
        memset(base, 0x11, sizeof base);
        for (j = 0; j < COUNT; j++) {
            CHECK(got[j] == values[j], "dtype %d: %g, not %g", (int)all[i], got[j], values[j]);
            gpi__store_run((int)all[i], base, FIRST + STEP * j, 1, &values[j]);
        }
        gpi__load_run((int)all[i], base, FIRST, STEP, COUNT, got);
        for (j = 0; j < COUNT; j++)
            CHECK(got[j] == values[j], "dtype %d, apart: %g, not %g", (int)all[i], got[j], values[j]);
    }
}

int main(void) {
    RUN(every_code_stands_for_the_number_that_its_bits_say);
    RUN(the_largest_and_smallest_numbers_are_those_of_the_standards);
    RUN(every_number_becomes_its_own_code);
    RUN(halfway_between_two_numbers_the_even_one_is_taken_and_beside_it_the_nearer_one);
    RUN(what_is_too_large_becomes_infinity_or_the_largest_number);
    RUN(what_is_too_small_becomes_zero_of_its_sign);
    RUN(a_nan_stays_one_whatever_its_bits);
    RUN(an_infinity_of_e5m2_is_read_as_one_and_never_stored);
    RUN(i8_rounds_to_nearest_even_and_saturates);
    RUN(a_nan_becomes_0_in_i8);
    RUN(two_elements_of_4_bits_are_in_a_byte_the_first_in_the_lower_half);
    RUN(types_of_4_bits_round_to_nearest_even_and_saturate);
    RUN(infinities_saturate_in_4_bits_and_a_nan_is_0);
    RUN(e8m0_is_a_power_of_two);
    RUN(a_whole_number_wraps_modulo_2_to_the_32);
    RUN(what_is_no_whole_number_of_62_bits_wraps_to_0);
    RUN(a_run_is_stored_and_loaded_where_it_was_said);
    return test_finish();
}
