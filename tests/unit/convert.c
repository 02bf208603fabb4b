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
    RUN(a_whole_number_wraps_modulo_2_to_the_32);
    RUN(what_is_no_whole_number_of_62_bits_wraps_to_0);
    RUN(a_run_is_stored_and_loaded_where_it_was_said);
    return test_finish();
}
