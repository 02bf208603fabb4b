// What weights become on their way from the bytes that are stored to the pairs of 16 bits that are multiplied: as they are, or by the
// text of an operand (GEMMEPI_MADE), rounded once.
//
// A word has pairs of neighbours along k, of 4 bits four, of 8 two, of 16 one. Where numbers are whole, of few bits, and the text is
// b * scale or (b - zero) * scale, a product in 16 bits is the same rounding as one in F32: that is taken where scale is one of 16 bits,
// or of two in BF16, and zero whole, which is looked at for each group. All else is computed in F32.
//
// The prologue defines, with GEMMEPI_MADE, MADE_COUNT, how many operands the text reads, in the order `copied, held`;
// MADE_COPIED(X): X(i, Type, rows, columns, along_k), of those that come with the stages: an element for so many rows of k (0: all)
// and columns, side by side along k or along columns; MADE_HELD(X): X(i, Type): one for all; MADE_TABLES(X): X(i, Type): read by index; MADE_GROUP: rows with the same elements, 0: all;
// MADE_FORM and with 1, b * MADE_SCALE(o), or 2, (b - MADE_ZERO(o)) * MADE_SCALE(o), these; MADE_FITS: 1 where any scale fits 16 bits; and
// made_of(b, o, tables).
#pragma once
#include "types.cuh"

#ifndef GEMMEPI_STORED
#define GEMMEPI_STORED I8
#endif
#ifndef GEMMEPI_MADE
#define GEMMEPI_MADE 0
#endif
#if !GEMMEPI_MADE
#define MADE_COUNT     1
#define MADE_GROUP     0
#define MADE_FORM      0
#define MADE_FITS      0
#define MADE_COPIED(X)
#define MADE_HELD(X)
#define MADE_TABLES(X)
__device__ inline float made_of(float b, const float (&)[MADE_COUNT], const void *const (&)[MADE_COUNT]) {
    return b;
}
#endif

typedef GEMMEPI_STORED Stored;
constexpr bool MADE = GEMMEPI_MADE;
constexpr int BITS = IS_PACKED<Stored> ? 4 : 8 * (int)sizeof(Stored), PAIRS_OF_WORD = 16 / BITS;

// >>pairs of 16 bits

__device__ inline u32 add_two(F16, u32 x, u32 y) {
    u32 z;
    asm("add.f16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    return z;
}
__device__ inline u32 multiply_add_two(BF16, u32 x, u32 y, u32 z) {
    asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(z) : "r"(x), "r"(y));
    return z;
}
__device__ inline u32 add_two(BF16, u32 x, u32 y) {
    return multiply_add_two(BF16(), x, 0x3f803f80, y);
}
__device__ inline u32 multiply_two(F16, u32 x, u32 y) {
    u32 z;
    asm("mul.f16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    return z;
}
__device__ inline u32 multiply_two(BF16, u32 x, u32 y) {
    return multiply_add_two(BF16(), x, y, 0x80008000); // + -0
}
__device__ inline u32 round_two(F16, float first, float second) {
    u32 z;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(z) : "f"(second), "f"(first));
    return z;
}
__device__ inline u32 round_two(BF16, float first, float second) {
    u32 z;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(z) : "f"(second), "f"(first));
    return z;
}
__device__ inline void to_two(F16, u32 two, float (&x)[2]) {
    asm("{\n.reg .b16 first, second;\nmov.b32 {first, second}, %2;\ncvt.f32.f16 %0, first;\ncvt.f32.f16 %1, second;\n}"
        : "=f"(x[0]), "=f"(x[1])
        : "r"(two));
}
__device__ inline void to_two(BF16, u32 two, float (&x)[2]) {
    x[0] = __uint_as_float(two << 16);
    x[1] = __uint_as_float(two & 0xffff0000);
}
template <class T> constexpr u32 TWICE = 0; // 1
template <> constexpr u32 TWICE<F16> = 0x3c003c00;
template <> constexpr u32 TWICE<BF16> = 0x3f803f80;

// (x & y) ^ z in one instruction, whose constants the compiler would take two for.
__device__ inline u32 and_xor(u32 x, u32 y, u32 z) {
    u32 to;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(to) : "r"(x), "r"(y), "r"(z));
    return to;
}

// >>as they are stored: the j-th pair of a word, whose other bits are 0 where it has but one (GEMMEPI_WGMMA)

// Of 4 bits: the lower four bits of each half.
__device__ inline u32 spread_nibbles(u32 word, int j) {
    return GEMMEPI_WGMMA ? word * 0x1001 : __byte_perm(word, word >> 4, (4 + j) << 8 | j);
}
// Its upper four bits.
__device__ inline u32 raise_nibbles(u32 word, int j) {
    return GEMMEPI_WGMMA ? word * 0x1001000 : __byte_perm(word << 4, word, (4 + j) << 12 | j << 4);
}

// Whole numbers in the lowest bits of one that has a bit for each: in F16 1024, in BF16 128, of I4 8 more.
template <class In> constexpr u32 MARK = SAME<In, F16> ? 0x64006400 : 0x43004300;
template <class In> constexpr float MARKED = SAME<In, F16> ? 1024 : 128;
template <class T> constexpr int LOWEST = SAME<T, I4> ? 8 : 0;
template <class In> __device__ inline u32 mark_nibbles(In, u32 word, int j) {
    return and_xor(spread_nibbles(word, j), 0x000f000f, MARK<In> | LOWEST<Stored> * 0x00010001);
}

// Two of I8, bytes of a word beside those of a constant. BF16: 128 + the lower seven bits, less 128 or, where the eighth is set, 256; F16:
// 1152 + x, less 1152. All of these are exact.
__device__ inline u32 widen_bytes(BF16, u32 word, int j) {
    u32 two = __byte_perm(word, 0x43434343, j ? 0x4342 : 0x4140), wide;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(wide) : "r"(two & 0xff80ff80), "r"(0xbf80bf80), "r"(two & 0xff7fff7f)); // times -1
    return wide;
}
__device__ inline u32 widen_bytes(F16, u32 word, int j) {
    u32 wide;
    asm("sub.f16x2 %0, %1, %2;" : "=r"(wide) : "r"(__byte_perm(word ^ 0x80808080, 0x64646464, j ? 0x4342 : 0x4140)), "r"(0x64806480));
    return wide;
}

// Numbers of 4 bits with an exponent in the place of one of 16, times what that is too small by.
template <class In> __device__ inline u32 widen_e2m1(In, u32 word, int j) {
    constexpr int down = SAME<In, F16> ? 3 : 6;
    u32 two = raise_nibbles(word, j);
    two = and_xor(two, 0x80008000, two >> down & 0x70007000 >> down);
    return multiply_two(In(), two, SAME<In, F16> ? 0x74007400 : 0x7e807e80); // 2^14, 2^126
}

// Whether a pair becomes 16 bits without F32.
template <class T, class In>
constexpr bool WIDENS = IS_PACKED<T> || SAME<T, I8> || (IS_FP8<T> && SAME<In, F16>) || SAME<T, In>;
template <class In, class Stored = ::Stored> __device__ inline u32 widen_two(In, u32 word, int j) {
    if constexpr (SAME<Stored, E2M1>)
        return widen_e2m1(In(), word, j);
    else if constexpr (IS_PACKED<Stored>)
        return add_two(In(), mark_nibbles(In(), word, j), round_two(In(), -MARKED<In> - LOWEST<Stored>, -MARKED<In> - LOWEST<Stored>));
    else if constexpr (SAME<Stored, I8>)
        return widen_bytes(In(), word, j);
    else if constexpr (IS_FP8<Stored>)
        return unpack_fp8<Stored>((u16)(word >> 16 * j));
    else
        return word;
}

// In F32: whole numbers in the lowest bits of 2^23, or of less.
__device__ inline float nibble_to_float(u32 word, int i) {
    int at = i < 5 ? 4 * i : 4 * i - 12;
    u32 bits = and_xor(i < 5 ? word : word >> 12, 15u << at, 0x4b000000 | LOWEST<Stored> << at);
    return fmaf(__uint_as_float(bits), 1.f / (1 << at), -8388608.f / (1 << at) - LOWEST<Stored>);
}
template <class Stored = ::Stored> __device__ inline void two_to_floats(u32 word, int j, float (&x)[2]) {
    if constexpr (SAME<Stored, I4> || SAME<Stored, U4>) {
        x[0] = nibble_to_float(word, 2 * j);
        x[1] = nibble_to_float(word, 2 * j + 1);
    } else if constexpr (SAME<Stored, E2M1>) {
        to_two(F16(), widen_e2m1(F16(), word, j), x);
    } else if constexpr (SAME<Stored, I8>) {
#pragma unroll
        for (int i = 0; i < 2; i++)
            x[i] = __uint_as_float(__byte_perm(word ^ 0x80808080, 0x4b000000, 0x7540 | (2 * j + i))) - 8388736;
    } else if constexpr (IS_FP8<Stored>) {
        to_two(F16(), unpack_fp8<Stored>((u16)(word >> 16 * j)), x);
    } else {
        to_two(Stored(), word, x);
    }
}

// >>a column's operands in a group of k, and its pairs

constexpr bool BY_FORM = MADE_FORM != 0 && IS_PACKED<Stored>; // so that 16 bits are enough, if they are
struct Of_group {
    float o[MADE_COUNT];
    const void *tables[MADE_COUNT];
};
template <class In> constexpr float MARKED_HERE = SAME<Stored, E2M1> ? 0 : MARKED<In> + LOWEST<Stored>;
#ifndef MADE_ZERO
#define MADE_ZERO(o) 0.f
#endif
#ifndef MADE_SCALE
#define MADE_SCALE(o) 1.f
#endif

// A scale of up to 11 bits, as F16 has, is in BF16 a sum of two: the rest has two bits, and is exact times a number of up to 7.
template <class In> constexpr bool SPLITS = SAME<In, BF16> && !MADE_FITS;
__device__ inline bool splits(float scale) {
    u32 bits = __float_as_uint(scale), size = bits & 0x7fffffff;
    return (bits & 0x1fff) == 0 && (size == 0 || (size > 0x0d800000 && size < 0x7e800000)); // 2^-100, 2^126
}

// Whether 16 bits are enough for a column with these operands.
template <class In> __device__ inline bool fits_in_16_bits(const float (&o)[MADE_COUNT]) {
    float scale = MADE_SCALE(o), minus = -MARKED_HERE<In> - MADE_ZERO(o), again[2];
    bool fits = true;
    if (SPLITS<In>) {
        fits = splits(scale);
    } else if (!MADE_FITS) {
        to_two(In(), round_two(In(), scale, scale), again);
        fits = again[0] == scale;
    }
    if (MADE_FORM == 2) {
        to_two(In(), round_two(In(), minus, minus), again);
        fits = fits && again[0] == minus && fabsf(MADE_ZERO(o)) <= 32;
    }
    return fits && !(SAME<Stored, E2M1> && MADE_FORM == 2 && rintf(minus) != minus);
}
// Twice each, if 16 bits are enough; minus the zero and the mark.
struct In_pairs {
    u32 scale, rest, minus_zero;
};
template <class In> __device__ inline In_pairs in_pairs(In, const Of_group &of) {
    float scale = MADE_SCALE(of.o), minus = -MARKED_HERE<In> - MADE_ZERO(of.o), most[2];
    In_pairs pairs = {round_two(In(), scale, scale), 0, round_two(In(), minus, minus)};
    to_two(In(), pairs.scale, most);
    if (SPLITS<In>)
        pairs.rest = round_two(In(), scale - most[0], scale - most[0]);
    return pairs;
}
template <class In> __device__ inline u32 scale_two(In, u32 two, const In_pairs &of) {
    if constexpr (SPLITS<In>)
        return multiply_add_two(In(), two, of.scale, multiply_two(In(), two, of.rest));
    else
        return multiply_two(In(), two, of.scale);
}

// A pair, where 16 bits are enough, and else.
template <class In> __device__ inline u32 make_two(In, u32 word, int j, const In_pairs &of) {
    if constexpr (IS_PACKED<Stored> && !SAME<Stored, E2M1>)
        return scale_two(In(), add_two(In(), mark_nibbles(In(), word, j), of.minus_zero), of);
    u32 two = widen_two(In(), word, j);
    return scale_two(In(), MADE_FORM == 2 ? add_two(In(), two, of.minus_zero) : two, of);
}
template <class In> __device__ inline u32 make_two(In, u32 word, int j, const Of_group &of) {
    if constexpr (!MADE) {
        return widen_two(In(), word, j);
    } else {
        float x[2];
        two_to_floats(word, j, x);
        return round_two(In(), made_of(x[0], of.o, of.tables), made_of(x[1], of.o, of.tables));
    }
}

// What of a pair is there, of so much of k that is left from the pair on. A text, or an infinite scale, may make no number of the zeros
// behind it, and no number times A's zeros is none.
__device__ inline u32 cut_two(u32 two, int left) {
    return left > 1 ? two : left > 0 ? two & 0xffff : 0;
}
