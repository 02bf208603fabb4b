// What each lane computes for itself. Results are those of PTX to the bit, but for ex2.approx and rcp.approx, which are
// rounded from double here.
#ifndef EMULATOR_ARITHMETIC_H
#define EMULATOR_ARITHMETIC_H

#include <cmath>
#include <type_traits>

#include "machine.h"

template <class To, class From> static inline To same_bits(From from) {
    To to;
    static_assert(sizeof to == sizeof from, "of one size");
    memcpy(&to, &from, sizeof to);
    return to;
}

// >>number formats

static inline float f32_of_bf16(u16 x) {
    return same_bits<float>((u32)x << 16);
}

static inline u16 bf16_of_f32(float x) {
    u32 bits = same_bits<u32>(x);
    return x != x ? 0x7fff : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// A number of `exponents` and `fractions` bits, e.g. 5 and 10 of f16. `top` is the largest of what e4m3 has (0x7e, 0x7f being
// NaN), or 0 where the last exponent is infinity's and NaN's.
static inline double from_bits(u32 x, int exponents, int fractions, u32 top) {
    int bias = (1 << (exponents - 1)) - 1, exponent = (int)(x >> fractions & ((1u << exponents) - 1));
    u32 fraction = x & ((1u << fractions) - 1), magnitude = x & ((1u << (exponents + fractions)) - 1);
    double sign = x >> (exponents + fractions) & 1 ? -1 : 1;
    if (top ? magnitude > top : exponent == (1 << exponents) - 1)
        return top || fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp((1u << fractions) + fraction, exponent - bias - fractions)
                            : ldexp(fraction, 1 - bias - fractions));
}

// The nearest one, ties to even. Beyond the largest: that one if saturates, else infinity. NaN has all bits set.
static inline u32 to_bits(double x, int exponents, int fractions, u32 top, bool saturates) {
    int bias = (1 << (exponents - 1)) - 1, exponent;
    u32 sign = std::signbit(x) ? 1u << (exponents + fractions) : 0, nan = (1u << (exponents + fractions)) - 1;
    u32 infinity = ((1u << exponents) - 1) << fractions, largest = top ? top : infinity - 1;
    double magnitude = fabs(x), unit;
    u64 count;
    if (x != x)
        return nan;
    if (std::isinf(magnitude))
        return sign | (saturates ? largest : infinity);
    frexp(magnitude, &exponent);
    if (magnitude == 0 || exponent - 1 < 1 - bias)
        exponent = 1 - bias + 1;
    unit = ldexp(1, exponent - 1 - fractions);
    count = (u64)nearbyint(magnitude / unit); // up to twice 2^fractions, which is the next exponent's first
    count += (u64)(exponent - 1 + bias - 1) << fractions;
    return sign | (u32)(count <= largest ? count : saturates ? largest : infinity);
}

static inline float f32_of_f16(u16 x) {
    return (float)from_bits(x, 5, 10, 0);
}
static inline u16 f16_of_f32(float x) {
    return (u16)to_bits(x, 5, 10, 0, false);
}

// >>functions of lanes

template <class T, T (*F)(T)> static void one(warp &w, const op &o, u32 lanes) {
    T *d = w.at<T>(o.x[0]);
    const T *a = w.at<T>(o.x[1]);
    for_lanes(lanes, [=](u32 i) { d[i] = F(a[i]); });
}

template <class T, T (*F)(T, T)> static void two(warp &w, const op &o, u32 lanes) {
    T *d = w.at<T>(o.x[0]);
    const T *a = w.at<T>(o.x[1]), *b = w.at<T>(o.x[2]);
    for_lanes(lanes, [=](u32 i) { d[i] = F(a[i], b[i]); });
}

template <class T, T (*F)(T, T, T)> static void three(warp &w, const op &o, u32 lanes) {
    T *d = w.at<T>(o.x[0]);
    const T *a = w.at<T>(o.x[1]), *b = w.at<T>(o.x[2]), *c = w.at<T>(o.x[3]);
    for_lanes(lanes, [=](u32 i) { d[i] = F(a[i], b[i], c[i]); });
}

// the same with a second operand in 32 bits, as shifts have
template <class T, T (*F)(T, u32)> static void shift(warp &w, const op &o, u32 lanes) {
    T *d = w.at<T>(o.x[0]);
    const T *a = w.at<T>(o.x[1]);
    const u32 *b = w.at<u32>(o.x[2]);
    for_lanes(lanes, [=](u32 i) { d[i] = F(a[i], b[i]); });
}

template <class To, class From, To (*F)(From)> static void convert(warp &w, const op &o, u32 lanes) {
    To *d = w.at<To>(o.x[0]);
    const From *a = w.at<From>(o.x[1]);
    for_lanes(lanes, [=](u32 i) { d[i] = F(a[i]); });
}

template <class T, bool (*F)(T, T)> static void compare(warp &w, const op &o, u32 lanes) {
    const T *a = w.at<T>(o.x[1]), *b = w.at<T>(o.x[2]);
    u32 bits = 0;
    for_lanes(lanes, [&](u32 i) { bits |= (u32)F(a[i], b[i]) << i; });
    w.bits(o.x[0]) = (w.bits(o.x[0]) & ~lanes) | bits;
}

template <class T> static void select(warp &w, const op &o, u32 lanes) {
    T *d = w.at<T>(o.x[0]);
    const T *a = w.at<T>(o.x[1]), *b = w.at<T>(o.x[2]);
    u32 p = w.bits(o.x[3]);
    for_lanes(lanes, [=](u32 i) { d[i] = p >> i & 1 ? a[i] : b[i]; });
}

template <u32 (*F)(u32, u32)> static void of_predicates(warp &w, const op &o, u32 lanes) {
    u32 result = F(w.bits(o.x[1]), w.bits(o.x[o.x.size() - 1]));
    w.bits(o.x[0]) = (w.bits(o.x[0]) & ~lanes) | (result & lanes);
}

// mov of two halves into one register, or of one into two
template <class Half, class Whole> static void join(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 i) {
        w.at<Whole>(o.x[0])[i] =
            (Whole)((Whole)w.at<Half>(o.x[2])[i] << 8 * sizeof(Half) | w.at<Half>(o.x[1])[i]);
    });
}
template <class Half, class Whole> static void part(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 i) {
        Whole from = w.at<Whole>(o.x[2])[i];
        w.at<Half>(o.x[0])[i] = (Half)from;
        w.at<Half>(o.x[1])[i] = (Half)(from >> 8 * sizeof(Half));
    });
}

static void nothing(warp &, const op &, u32) {
}

template <class T> static T same(T a) {
    return a;
}
template <class T> static T add(T a, T b) {
    return (T)(a + b);
}
template <class T> static T sub(T a, T b) {
    return (T)(a - b);
}
template <class T> static T mul(T a, T b) {
    return (T)(a * b);
}
template <class T> static T mul_high(T a, T b) {
    typedef typename std::conditional<std::is_signed<T>::value, __int128, unsigned __int128>::type wide;
    return (T)((wide)a * (wide)b >> 8 * sizeof(T));
}
template <class T> static T fma_of(T a, T b, T c) {
    return std::fma(a, b, c);
}
// of two halves of a word, each rounded once
static u32 fma_bf16x2(u32 a, u32 b, u32 c) {
    u32 word = 0;
    for (int half = 0; half < 2; half++) {
        float x = f32_of_bf16((u16)(a >> 16 * half)), y = f32_of_bf16((u16)(b >> 16 * half)),
              z = f32_of_bf16((u16)(c >> 16 * half));
        double exact = (double)x * y + z; // 16 bits of a product and 8 far from it fit, but for far exponents
        word |= (u32)bf16_of_f32((float)exact) << 16 * half;
    }
    return word;
}
template <float (*F)(float, float)> static u32 two_f16x2(u32 a, u32 b) {
    u32 word = 0;
    for (int half = 0; half < 2; half++)
        word |= (u32)f16_of_f32(F(f32_of_f16((u16)(a >> 16 * half)), f32_of_f16((u16)(b >> 16 * half))))
                << 16 * half;
    return word;
}
static void logic_of_three(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 i) {
        u32 a = w.at<u32>(o.x[1])[i], b = w.at<u32>(o.x[2])[i], c = w.at<u32>(o.x[3])[i], to = 0;
        for (u32 row = 0; row < 8; row++)
            if (o.numbers[0] >> row & 1)
                to |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
        w.at<u32>(o.x[0])[i] = to;
    });
}
template <class T> static T mad(T a, T b, T c) {
    return (T)(a * b + c);
}
template <class T> static T div_of(T a, T b) { // PTX leaves a division by zero open
    return b == 0 ? (T)-1 : b == (T)-1 ? (T)(0 - a) : (T)(a / b);
}
template <> u16 div_of(u16 a, u16 b) {
    return b ? (u16)(a / b) : (u16)~0u;
}
template <> u32 div_of(u32 a, u32 b) {
    return b ? a / b : ~0u;
}
template <> u64 div_of(u64 a, u64 b) {
    return b ? a / b : ~(u64)0;
}
template <class T> static T rem_of(T a, T b) {
    return b == 0 ? a : b == (T)-1 && (T)-1 < 0 ? 0 : (T)(a % b);
}
template <class T> static T neg(T a) {
    return (T)(-a);
}
template <class T> static T neg_whole(T a) {
    return (T)(0 - a);
}
template <class T> static T abs_of(T a) {
    return std::fabs(a);
}
template <class T> static T and_of(T a, T b) {
    return a & b;
}
template <class T> static T or_of(T a, T b) {
    return a | b;
}
template <class T> static T xor_of(T a, T b) {
    return a ^ b;
}
template <class T> static T not_of(T a) {
    return (T)~a;
}
template <class T> static T min_whole(T a, T b) {
    return a < b ? a : b;
}
template <class T> static T max_whole(T a, T b) {
    return a > b ? a : b;
}
// NaN only if both are; -0 is less than 0
template <class T> static T min_float(T a, T b) {
    return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
}
template <class T> static T max_float(T a, T b) {
    return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
}
static float max_nan(float a, float b) {
    return a != a || b != b ? same_bits<float>(0x7fffffffu) : max_float(a, b);
}
static float min_nan(float a, float b) {
    return a != a || b != b ? same_bits<float>(0x7fffffffu) : min_float(a, b);
}
template <class T> static T copysign_of(T sign, T magnitude) {
    return std::copysign(magnitude, sign);
}
template <class T> static T quotient(T a, T b) {
    return a / b;
}
template <class T> static T root(T a) {
    return std::sqrt(a);
}
// a b + c is less than its nearest float (-1), that (0) or greater (1): the product is exact in double, and so is what the sum leaves off.
static int beside_nearest(float a, float b, float c) {
    double product = (double)a * b, sum = product + c, back = sum - product;
    double off = (product - (sum - back)) + (c - back), left = (sum - std::fma(a, b, c)) + off;
    return std::isfinite(sum) ? (left > 0) - (left < 0) : 0;
}
static float fma_down(float a, float b, float c) {
    float nearest = std::fma(a, b, c);
    return beside_nearest(a, b, c) < 0 ? std::nextafter(nearest, -INFINITY) : nearest;
}
static float fma_to_zero(float a, float b, float c) {
    float nearest = std::fma(a, b, c);
    int beside = beside_nearest(a, b, c);
    return beside * nearest < 0 ? std::nextafter(nearest, 0.f) : nearest;
}
static float add_to_zero(float a, float b) {
    return fma_to_zero(a, 1, b);
}
template <class T> static T rcp(T a) {
    return 1 / a;
}
static float flushed(float x) {
    return std::fabs(x) < 1.17549435e-38f ? std::copysign(0.f, x) : x;
}
static float ex2_approx(float x) {
    return flushed((float)std::exp2((double)flushed(x)));
}
static float ex2_approx_subnormal(float x) {
    return (float)std::exp2((double)x);
}
static float rsqrt_approx(float x) {
    return (float)(1 / std::sqrt((double)x));
}
static float rcp_approx(float x) {
    return flushed((float)(1 / (double)flushed(x)));
}
static float div_approx(float x, float y) {
    return flushed(flushed(x) / flushed(y));
}
static double rsqrt_approx_64(double x) { // CUDA's rsqrt is this alone
    return 1 / std::sqrt(std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0., x) : x);
}
static double rcp_approx_64(double x) { // the upper half alone
    double y = std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(INFINITY, x) : 1 / x;
    y = std::fpclassify(y) == FP_SUBNORMAL ? std::copysign(0., y) : y;
    return same_bits<double>(same_bits<u64>(y) & 0xffffffff00000000ull);
}

template <class T> static T shl(T a, u32 by) {
    return by < 8 * sizeof(T) ? (T)(a << by) : 0;
}
template <class T> static T shr(T a, u32 by) {
    return by < 8 * sizeof(T) ? (T)(a >> by) : a < 0 ? (T)-1 : 0;
}
static u32 funnel_right(u32 low, u32 high, u32 by) {
    return (u32)(((u64)high << 32 | low) >> (by & 31));
}
static u32 permute(u32 a, u32 b, u32 selectors) {
    u64 from = (u64)b << 32 | a;
    u32 made = 0;
    for (int i = 0; i < 4; i++) {
        u32 selector = selectors >> 4 * i & 15, byte = (u32)(from >> 8 * (selector & 7)) & 255;
        made |= (selector & 8 ? (byte & 128 ? 255u : 0) : byte) << 8 * i;
    }
    return made;
}
template <class Narrow, class Wide> static void mul_wide(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 i) {
        w.at<Wide>(o.x[0])[i] = (Wide)((Wide)w.at<Narrow>(o.x[1])[i] * (Wide)w.at<Narrow>(o.x[2])[i]);
    });
}
template <class T> static void bit_field(warp &w, const op &o, u32 lanes) { // bfe
    for_lanes(lanes, [&](u32 i) {
        T a = w.at<T>(o.x[1])[i];
        u32 size = 8 * sizeof(T), from = w.at<u32>(o.x[2])[i] & 255, count = w.at<u32>(o.x[3])[i] & 255;
        if (count == 0 || from >= size) {
            w.at<T>(o.x[0])[i] = count && a < 0 ? (T)-1 : 0;
            return;
        }
        u32 left = from + count < size ? size - from - count : 0;
        T up = (T)((u64)a << left);
        w.at<T>(o.x[0])[i] = (T)(up >> (left + from));
    });
}
static void bit_insert(warp &w, const op &o, u32 lanes) { // bfi.b32 d, a into b
    for_lanes(lanes, [&](u32 i) {
        u32 a = w.at<u32>(o.x[1])[i], b = w.at<u32>(o.x[2])[i], from = w.at<u32>(o.x[3])[i] & 255,
            count = w.at<u32>(o.x[4])[i] & 255;
        u32 ones = from >= 32 ? 0 : (count >= 32 ? ~0u : (1u << count) - 1) << from;
        w.at<u32>(o.x[0])[i] = (b & ~ones) | (from >= 32 ? 0 : a << from & ones);
    });
}
static void bit_insert_64(warp &w, const op &o, u32 lanes) { // bfi.b64
    for_lanes(lanes, [&](u32 i) {
        u64 a = w.at<u64>(o.x[1])[i], b = w.at<u64>(o.x[2])[i];
        u32 from = w.at<u32>(o.x[3])[i] & 255, count = w.at<u32>(o.x[4])[i] & 255;
        u64 ones = from >= 64 ? 0 : (count >= 64 ? ~(u64)0 : ((u64)1 << count) - 1) << from;
        w.at<u64>(o.x[0])[i] = (b & ~ones) | (from >= 64 ? 0 : a << from & ones);
    });
}
template <class Half, class Less> static u32 of_halves(u32 a, u32 b, Less first) {
    Half low_a = (Half)a, low_b = (Half)b, high_a = (Half)(a >> 16), high_b = (Half)(b >> 16);
    return (u32)(u16)first(low_a, low_b) | (u32)(u16)first(high_a, high_b) << 16;
}
static u32 max_u16x2(u32 a, u32 b) {
    return of_halves<u16>(a, b, max_whole<u16>);
}
static u32 max_s16x2(u32 a, u32 b) {
    return of_halves<s16>(a, b, max_whole<s16>);
}

template <class T> static bool is_eq(T a, T b) {
    return a == b;
}
template <class T> static bool is_ne(T a, T b) { // of floats: and neither is NaN
    return a < b || a > b;
}
template <class T> static bool is_lt(T a, T b) {
    return a < b;
}
template <class T> static bool is_le(T a, T b) {
    return a <= b;
}
template <class T> static bool is_gt(T a, T b) {
    return a > b;
}
template <class T> static bool is_ge(T a, T b) {
    return a >= b;
}
template <class T> static bool is_equ(T a, T b) {
    return !is_ne(a, b);
}
template <class T> static bool is_neu(T a, T b) {
    return !(a == b);
}
template <class T> static bool is_ltu(T a, T b) {
    return !(a >= b);
}
template <class T> static bool is_leu(T a, T b) {
    return !(a > b);
}
template <class T> static bool is_gtu(T a, T b) {
    return !(a <= b);
}
template <class T> static bool is_geu(T a, T b) {
    return !(a < b);
}
template <class T> static bool is_nan(T a, T b) {
    return a != a || b != b;
}
template <class T> static bool is_num(T a, T b) {
    return a == a && b == b;
}

// >>conversions

template <class To, class From> static To cast(From a) {
    return (To)a;
}
template <class To, class From> static void convert_whole(warp &w, const op &o, u32 lanes) {
    place d = o.x[0], a = o.x[1];
    if (d.bytes < sizeof(To) || a.bytes < sizeof(From))
        fail("a conversion of more bytes than the register has");
    for_lanes(lanes, [&](u32 i) {
        From from;
        memcpy(&from, w.at<u8>(a) + i * a.bytes, sizeof from);
        s64 value = (s64)(To)from;
        memcpy(w.at<u8>(d) + i * d.bytes, &value, d.bytes);
    });
}
template <class To, class From> static To to_whole(From a) { // nearest; beyond the ends: the ends; NaN: 0
    const double low = sizeof(To) == 4 ? -0x1p31 : -0x1p63;
    double x = std::nearbyint((double)a);
    if (x != x)
        return sizeof(To) == 4 ? 0 : (To)((u64)1 << 63);
    return x >= -low ? (To)(((u64)1 << (8 * sizeof(To) - 1)) - 1)
           : x < low ? (To)((u64)1 << (8 * sizeof(To) - 1))
                     : (To)x;
}
static float to_f32_down(double a) { // towards zero
    float x = (float)a;
    if (std::isinf(x) && !std::isinf(a))
        return std::copysign(3.40282347e38f, x);
    return std::fabs((double)x) > std::fabs(a) ? std::nextafter(x, 0.f) : x;
}
template <class To, class From> static To cut_to_whole(From a) {
    return to_whole<To, From>(std::trunc(a));
}
template <class T> static T nearest_whole(T a) {
    return std::nearbyint(a);
}
template <class T> static T whole_below(T a) {
    return std::floor(a);
}
template <class T> static T whole_towards_0(T a) {
    return std::trunc(a);
}
static float saturated(float a) {
    return a > 0 ? (a < 1 ? a : 1) : 0;
}
template <int Exponents, int Fractions, u32 Top> static void two_fp8(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 i) {
        u32 high = to_bits(w.at<float>(o.x[1])[i], Exponents, Fractions, Top, true);
        u32 low = to_bits(w.at<float>(o.x[2])[i], Exponents, Fractions, Top, true);
        w.at<u16>(o.x[0])[i] = (u16)(high << 8 | low);
    });
}
// the first number goes to the upper half
template <u16 (*F)(float)> static void halves_of_two(warp &w, const op &o, u32 lanes) {
    for_lanes(lanes, [&](u32 i) {
        w.at<u32>(o.x[0])[i] = (u32)F(w.at<float>(o.x[1])[i]) << 16 | F(w.at<float>(o.x[2])[i]);
    });
}
template <int Exponents, int Fractions, u32 Top> static u32 two_f16(u16 a) {
    u32 low = to_bits(from_bits(a & 255u, Exponents, Fractions, Top), 5, 10, 0, false);
    return low | to_bits(from_bits(a >> 8u, Exponents, Fractions, Top), 5, 10, 0, false) << 16;
}

#endif
