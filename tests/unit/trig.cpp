/* sin and cos of formulas, src/kernels/trig.cuh compiled for the host, against the C library's in long double: random numbers of all
   exponents, multiples of pi/2 and what lies beside them, and what is no number. With GEMMEPI_EXACT 0 those of results of 16 bits. */
#include <cmath>
#include <cstdint>
#include <cstring>

#include "test.h"

#define __device__
#define __constant__
#define GEMMEPI_HAS_FUNCTIONS
typedef uint32_t u32;
typedef unsigned long long u64;

static uint32_t __float_as_uint(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static float __uint_as_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static long long __double_as_longlong(double x) {
    long long bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static u64 __umul64hi(u64 x, u64 y) { /* by halves */
    u64 a = x >> 32, b = x & 0xffffffff, c = y >> 32, d = y & 0xffffffff;
    u64 middle = a * d + (b * d >> 32), other = b * c + (middle & 0xffffffff);
    return a * c + (middle >> 32) + (other >> 32);
}

#include "kernels/trig.cuh"

template <class A> static A sine(A x) {
    bool is_far = false;
    return formula_sin(x, false, is_far);
}
template <class A> static A cosine(A x) {
    bool is_far = false;
    return formula_cos(x, false, is_far);
}

static uint64_t state = 1;

static uint64_t random_bits() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

/* By how many units in the last place of a type with so many bits, and no exponent below `least`, the result is off. */
static double units_off(long double exact, double got, int bits, int least) {
    int exponent;
    frexpl(exact, &exponent);
    return (double)(fabsl(got - exact) / ldexpl(1, (exponent < least ? least : exponent) - bits));
}

static const double SHORT = 1.36e-6 /* 2^-19.5 */, SMALLEST = ldexp(1, -149);

/* The short forms, of an argument that may be off by 2^-48 of itself. */
static void check_short(float x) {
    double of_sin = sin((double)x), of_cos = cos((double)x), moved = 0x1p-48 * fabs((double)x) + SMALLEST;
    CHECK(fabs(sine(x) - of_sin) <= SHORT * fabs(of_sin) + moved, "short sin(%a) is %a", (double)x,
          (double)sine(x));
    CHECK(fabs(cosine(x) - of_cos) <= SHORT * fabs(of_cos) + moved, "short cos(%a) is %a", (double)x,
          (double)cosine(x));
}

template <class A> static void check(A x, int bits, int least) {
    if (!GEMMEPI_EXACT && sizeof x == sizeof(float)) {
        check_short((float)x);
        return;
    }
    double of_sin = units_off(sinl(x), (double)sine(x), bits, least);
    double of_cos = units_off(cosl(x), (double)cosine(x), bits, least);
    CHECK(of_sin <= 1.75, "sin(%a) is %a, %g units off", (double)x, (double)sine(x), of_sin);
    CHECK(of_cos <= 1.75, "cos(%a) is %a, %g units off", (double)x, (double)cosine(x), of_cos);
}

static void numbers_of_32_bits_are_as_accurate_as_told() {
    for (int i = 0; i < 1000000; i++) {
        uint32_t bits = (uint32_t)(random_bits() >> 32);
        float x;
        if (i % 2) /* between 2^-12 and 2^20 */
            bits = (bits & 0x807fffff) | (uint32_t)(115 + random_bits() % 32) << 23;
        memcpy(&x, &bits, sizeof x);
        if (x - x == 0)
            check(x, 24, -125);
    }
}

static void numbers_of_64_bits_are_less_than_two_units_off() {
    for (int i = 0; i < 1000000; i++) {
        uint64_t bits = random_bits() ^ random_bits() << 20;
        double x;
        if (i % 2)
            bits = (bits & 0x800fffffffffffffu) | (1003 + random_bits() % 62) << 52;
        memcpy(&x, &bits, sizeof x);
        if (x - x == 0 && fabs(x) < 1e18) /* as far as the C library's are known to be right in long double */
            check(x, 53, -1021);
    }
}

static void beside_multiples_of_a_quarter_the_rest_is_exact() {
    for (int i = 1; i < 200000; i++) {
        double x = i * 1.5707963267948966;
        float y = (float)x;
        check(x, 53, -1021);
        check(nextafter(x, 0.0), 53, -1021);
        check(y, 24, -125);
        check(nextafterf(y, 1e9f), 24, -125);
    }
    /* the double that lies nearest to a multiple of pi/2, and what its cosine is */
    CHECK(fabs(cosine(6381956970095103.0 * ldexp(1, 797)) + 4.68716592425462761112e-19) < 1e-34, "%.20g",
          cosine(6381956970095103.0 * ldexp(1, 797)));
}

static void what_is_no_number_gives_nan_and_zero_keeps_its_sign() {
    CHECK(std::isnan(sine(HUGE_VAL)) && std::isnan(cosine(-HUGE_VAL)) && std::isnan(sine(NAN)) &&
              std::isnan((double)sine(-HUGE_VALF)) && std::isnan((double)cosine(HUGE_VALF)),
          "a number came of none");
    CHECK(std::signbit(sine(-0.0)) && !std::signbit(sine(0.0)) && std::signbit(sine(-0.0f)),
          "a zero lost its sign");
    CHECK(cosine(0.0) == 1 && fabs(cosine(-0.0f) - 1) <= (GEMMEPI_EXACT ? 0 : SHORT), "cos(0) is not 1");
}

/* Where the compiler knows that no number is far, one that is far is told, and others have the same bits. */
template <class A> static void check_near(A x, double bound) {
    bool of_sin = false, of_cos = false;
    A s = formula_sin(x, true, of_sin), c = formula_cos(x, true, of_cos);
    CHECK(of_sin == of_cos && of_sin == (fabs((double)x) > bound), "%a is%s far", (double)x,
          of_sin ? "" : " not");
    CHECK(of_sin || std::isnan(x) || (s == sine(x) && c == cosine(x)),
          "%a has other bits where it is known to be near", (double)x);
}

static void far_numbers_are_told_and_near_ones_have_the_same_bits() {
    static const double numbers[] = {0, -0.0, 1, -1e5, 100001, 1e9, -1000000001.0, HUGE_VAL, -HUGE_VAL, NAN};
    for (int i = 0; i < 100000; i++) {
        double x = ldexp((double)(long long)random_bits(), (int)(random_bits() % 60) - 80);
        check_near((float)x, 1e5);
        check_near(x, 1e9);
    }
    for (double x : numbers)
        check_near((float)x, 1e5), check_near(x, 1e9);
    bool is_far = true;
    (void)formula_sin(1.0f, true, is_far);
    CHECK(is_far, "a number that is near made another near");
}

int main() {
    RUN(numbers_of_32_bits_are_as_accurate_as_told);
#if GEMMEPI_EXACT
    RUN(numbers_of_64_bits_are_less_than_two_units_off);
#else
    (void)numbers_of_64_bits_are_less_than_two_units_off;
#endif
    RUN(beside_multiples_of_a_quarter_the_rest_is_exact);
    RUN(far_numbers_are_told_and_near_ones_have_the_same_bits);
    RUN(what_is_no_number_gives_nan_and_zero_keeps_its_sign);
    return test_finish();
}
