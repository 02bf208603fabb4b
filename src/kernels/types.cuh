// Element types and runs of eight of them in memory. No CUDA header: NVRTC alone compiles this.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

template <class X, class Y> constexpr bool SAME = false;
template <class X> constexpr bool SAME<X, X> = true;

// A kernel's struct of parameters, read where it lies. Before Volta a plain parameter does, at the price of a copy.
#if __CUDA_ARCH__ >= 700
#define GEMMEPI_PARAMS const __grid_constant__
#else
#define GEMMEPI_PARAMS const
#endif

// What embed.py writes for these two, each before nearly every function or loop.
#define DEVICE __device__ inline
#define UNROLL _Pragma("unroll")

// A launch may begin before the one ahead of it in the stream has ended; what that one writes is there from here on. The next
// launch may begin as soon.
__device__ inline void after_launches_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The next launch may begin already: what it does before it waits for this one costs nothing.
__device__ inline void begin_launch_behind() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Asks for bytes to come to L2, which is right whatever is written there meanwhile. Of a run whole units of 16 bytes.
__device__ inline void fetch_line(const void *from) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}
__device__ inline void fetch_run(const void *from, u32 bytes) {
#if __CUDA_ARCH__ >= 900
    u64 begin = ((u64)from + 15) / 16 * 16, end = ((u64)from + bytes) / 16 * 16;
    if (begin < end)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(begin), "r"((u32)(end - begin)) : "memory");
#endif
}

typedef float F32;
typedef double F64;
typedef signed char I8;
typedef int I32;
struct F16 {
    u16 bits;
};
struct BF16 {
    u16 bits;
};
struct E4M3 {
    u8 bits;
    static constexpr int MANTISSA = 3, BIAS = 7; // bits of the mantissa, bias of the exponent
    static constexpr u32 LARGEST = 0x7e;
};
struct E5M2 {
    u8 bits;
    static constexpr int MANTISSA = 2, BIAS = 15;
    static constexpr u32 LARGEST = 0x7b;
};
// Of 4 bits memory has two in a byte, the first in the lower half; these are one by itself.
struct I4 {
    u8 bits;
};
struct U4 {
    u8 bits;
};
struct E2M1 {
    u8 bits;
};
struct E8M0 {
    u8 bits;
};
template <class T> constexpr bool IS_PACKED = SAME<T, I4> || SAME<T, U4> || SAME<T, E2M1>;
template <class T> constexpr bool IS_FP8 = SAME<T, E4M3> || SAME<T, E5M2>;

// The public modes of a scale.
enum { SCALE_NONE, SCALE_TENSOR, SCALE_OUTER, SCALE_VECTOR_128, SCALE_BLOCK_128 };
constexpr int SCALE_STEPS = 128; // of k, and of rows or columns in BLOCK_128

// VECTOR_128 and BLOCK_128: the numbers of one outer index (row of op(A), column of op(B)) are `step` apart, one for
// each 128 steps of k.
struct Scale_line {
    const float *at;
    long long step;
};
template <int Mode>
__device__ inline Scale_line scale_line(const float *scale, long long outer, long long extent, long long k) {
    if (Mode == SCALE_VECTOR_128)
        return {scale + outer, extent};
    return {scale + outer / SCALE_STEPS * ((k + 4 * SCALE_STEPS - 1) / (4 * SCALE_STEPS) * 4), 1};
}

// fp8's own instructions: sm_89 has them, but not as CUDA 12.0 knows it
#if __CUDA_ARCH__ >= 900 || (__CUDA_ARCH__ >= 890 && (__CUDACC_VER_MAJOR__ > 12 || __CUDACC_VER_MINOR__ > 0))
#define GEMMEPI_FP8_INSTRUCTIONS 1
#else
#define GEMMEPI_FP8_INSTRUCTIONS 0
#endif

// to_f32/from_f32 and to_acc/from_acc: without loss one way (but I32 in f32), one rounding to nearest even the other
__device__ inline float to_f32(F32 x) {
    return x;
}
__device__ inline float to_f32(F16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
__device__ inline float to_f32(BF16 x) {
    return __uint_as_float((u32)x.bits << 16);
}
__device__ inline float to_f32(I8 x) {
    return (float)x;
}
__device__ inline float to_f32(I32 x) {
    return (float)x;
}
__device__ inline float to_f32(I4 x) {
    return (float)((int)((u32)x.bits << 28) >> 28);
}
__device__ inline float to_f32(U4 x) {
    return (float)x.bits;
}
__device__ inline float to_f32(E2M1 x) { // 0.5 is a subnormal number
    return __uint_as_float(((u32)x.bits & 8) << 28 | ((u32)x.bits & 7) << 22) * __uint_as_float((127 + 126) << 23);
}
__device__ inline float to_f32(E8M0 x) {
    return __uint_as_float(x.bits == 255 ? 0x7fc00000 : x.bits ? (u32)x.bits << 23 : 0x400000);
}
__device__ inline void from_f32(float x, F32 &y) {
    y = x;
}
__device__ inline void from_f32(float x, F16 &y) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
}
__device__ inline void from_f32(float x, BF16 &y) {
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
    u32 bits = __float_as_uint(x);
    y.bits = x != x ? (u16)0x7fff : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
}
__device__ inline void from_f32(float x, I8 &y) {
    int whole = __float2int_rn(x); // saturates, and NaN is 0
    y = (I8)(whole < -128 ? -128 : whole > 127 ? 127 : whole);
}

// Two of fp8, the first in the lower half, from f32 and to F16, which holds both types. They saturate, and NaN is 0x7f.
#if GEMMEPI_FP8_INSTRUCTIONS
template <class T> __device__ inline u16 pack_fp8(float first, float second) {
    u16 two;
    if constexpr (SAME<T, E4M3>)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(two) : "f"(second), "f"(first));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(two) : "f"(second), "f"(first));
    return two;
}
template <class T> __device__ inline u32 unpack_fp8(u16 two) {
    u32 wide;
    if constexpr (SAME<T, E4M3>)
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(wide) : "h"(two));
    else
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(wide) : "h"(two));
    return wide;
}
template <class T> __device__ inline void unpack_fp8(u32 four, u32 (&wide)[2]) {
    wide[0] = unpack_fp8<T>((u16)four);
    wide[1] = unpack_fp8<T>((u16)(four >> 16));
}
#else
template <class T> __device__ inline u32 encode_fp8(float x) {
    constexpr int shift = 23 - T::MANTISSA;
    // the spacing of the f32 from this one on is that of T's subnormals, so adding it rounds to them
    constexpr u32 rounder = (u32)(127 + 23 + 1 - T::BIAS - T::MANTISSA) << 23;
    u32 bits = __float_as_uint(x), size = bits & 0x7fffffff, code;
    if (size < (u32)(128 - T::BIAS) << 23)
        code = __float_as_uint(__uint_as_float(size) + __uint_as_float(rounder)) - rounder;
    else
        code = ((size + (1u << (shift - 1)) - 1 + (size >> shift & 1)) >> shift) -
               ((u32)(127 - T::BIAS) << T::MANTISSA);
    code = code > T::LARGEST ? T::LARGEST : code;
    return x != x ? 0x7f : bits >> 24 & 0x80 | code;
}
template <class T> __device__ inline u16 pack_fp8(float first, float second) {
    return (u16)(encode_fp8<T>(first) | encode_fp8<T>(second) << 8);
}
__device__ inline u32 times_256(u32 two) {
#if __CUDA_ARCH__ >= 530
    asm("mul.f16x2 %0, %0, %1;" : "+r"(two) : "r"(0x5c005c00));
    return two;
#else
    F16 x, y;
    from_f32(to_f32(F16{(u16)two}) * 256, x);
    from_f32(to_f32(F16{(u16)(two >> 16)}) * 256, y);
    return x.bits | (u32)y.bits << 16;
#endif
}
// Four. E5M2 is the upper half of an F16; E4M3's exponent in the place of F16's is too small by 2^8, and has its highest bit for NaN.
template <class T> __device__ inline void unpack_fp8(u32 four, u32 (&wide)[2]) {
    if constexpr (SAME<T, E5M2>) {
        wide[0] = __byte_perm(four, 0, 0x1404);
        wide[1] = __byte_perm(four, 0, 0x3424);
    } else {
        u32 nan = (four & 0x7f7f7f7f) + 0x01010101, lower = four << 7 & 0x80808080;
        u32 upper = four & 0x80808080 | four >> 1 & 0x3f3f3f3f | nan >> 1 & 0x40404040;
        wide[0] = times_256(__byte_perm(lower, upper, 0x5140));
        wide[1] = times_256(__byte_perm(lower, upper, 0x7362));
    }
}
template <class T> __device__ inline u32 unpack_fp8(u16 two) {
    u32 wide[2];
    unpack_fp8<T>((u32)two, wide);
    return wide[0];
}
#endif

template <class T> __device__ inline F16 fp8_to_f16(T x) {
    return {(u16)unpack_fp8<T>(x.bits)};
}
__device__ inline float to_f32(E4M3 x) {
    return to_f32(fp8_to_f16(x));
}
__device__ inline float to_f32(E5M2 x) {
    return to_f32(fp8_to_f16(x));
}
__device__ inline void from_f32(float x, E4M3 &y) {
    y.bits = (u8)pack_fp8<E4M3>(x, 0);
}
__device__ inline void from_f32(float x, E5M2 &y) {
    y.bits = (u8)pack_fp8<E5M2>(x, 0);
}

// A whole number modulo 2^32; what is no number or passes 2^62 gives 0.
__device__ inline I32 wrap(double x) {
    return x > -4611686018427387904.0 && x < 4611686018427387904.0 ? (I32)__double2ll_rn(x) : 0;
}

// T to the accumulator type A (float, double or int) and back. An int goes with I32 alone.
template <class A, class T> __device__ inline A to_acc(T x) {
    if constexpr (SAME<A, T>)
        return x;
    else if constexpr (SAME<T, I32>)
        return (A)x;
    else
        return to_f32(x);
}
template <class T, class A> __device__ inline T from_acc(A x) {
    T y;
    if constexpr (SAME<A, T>) {
        y = x;
    } else if constexpr (SAME<A, F32>) {
        from_f32(x, y);
    } else if constexpr (SAME<A, F64> && SAME<T, F32>) {
        y = (float)x;
    } else if constexpr (SAME<A, F64> && SAME<T, I32>) {
        y = wrap(x);
    } else {
        // By way of an f32 whose last bit tells of what was cut off ("round to odd"): so it is rounded once.
        float cut = __double2float_rz(x);
        from_f32(cut == x ? cut : __uint_as_float(__float_as_uint(cut) | 1), y);
    }
    return y;
}

// To a type that holds every value of T.
template <class To, class T> __device__ inline To convert(T x) {
    To y;
    if constexpr (SAME<To, T>)
        y = x;
    else if constexpr (SAME<To, I32>)
        y = x;
    else if constexpr (SAME<To, F16> && IS_FP8<T>)
        y = fp8_to_f16(x);
    else if constexpr (SAME<To, BF16>)
        y.bits = (u16)(__float_as_uint(to_f32(x)) >> 16);
    else
        from_f32(to_f32(x), y);
    return y;
}

// Eight elements of a row, the unit of every pass of ours: one byte of RELU's mask, one 16-byte access in 16 bits.
constexpr int RUN = 8;

// How many of a run's elements exist where `left` are left, none if that is negative. Not clamped from below: of such a
// min and max and a comparison with RUN ptxas 13.0 makes one instruction whose two predicates share a register.
__device__ inline int existing(int left) {
    return left < RUN ? left : RUN;
}

template <class T, int N = RUN> struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) Run {
    T at[N];
};

// A run as words, as it goes from and to memory: so elements of fewer bits share a register.
template <int Bytes> struct Word_of {
    typedef u32 type;
};
template <> struct Word_of<2> {
    typedef u16 type;
};
template <> struct Word_of<1> {
    typedef u8 type;
};
template <class T, int N> constexpr int BYTES_OF = (int)sizeof(T) * N / (IS_PACKED<T> ? 2 : 1);
template <class T, int N = RUN> struct alignas(BYTES_OF<T, N> > 16 ? 16 : BYTES_OF<T, N>) Words {
    typedef typename Word_of<BYTES_OF<T, N>>::type Word;
    Word at[BYTES_OF<T, N> / sizeof(Word)];
};
template <class T, int N> __device__ inline Run<T, N> run_of(const Words<T, N> &words) {
    Run<T, N> run;
    if constexpr (IS_PACKED<T>)
#pragma unroll
        for (int i = 0; i < N; i++)
            run.at[i].bits = (u8)(words.at[0] >> 4 * i & 15);
    else
        memcpy(&run, &words, sizeof run);
    return run;
}
template <class T, int N> __device__ inline Words<T, N> words_of(const Run<T, N> &run) {
    Words<T, N> words;
    if constexpr (IS_PACKED<T>) {
        words.at[0] = 0;
#pragma unroll
        for (int i = 0; i < N; i++)
            words.at[0] |= (u32)run.at[i].bits << 4 * i;
    } else {
        memcpy(&words, &run, sizeof words);
    }
    return words;
}
// To global memory, 16 bytes or 8 at once: of an address that is a sum of several the compiler would store four bytes at a time.
template <class T, int N> __device__ inline void store_words(T *to, const Words<T, N> &words) {
    constexpr int BYTES = sizeof words;
    if constexpr (BYTES >= 16)
#pragma unroll
        for (int i = 0; i < BYTES / 16; i++)
            asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"((u64)to + 16 * i), "r"(words.at[4 * i]), "r"(words.at[4 * i + 1]),
                         "r"(words.at[4 * i + 2]), "r"(words.at[4 * i + 3])
                         : "memory");
    else if constexpr (BYTES == 8)
        asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(words.at[0]), "r"(words.at[1]) : "memory");
    else
        *reinterpret_cast<Words<T, N> *>(to) = words;
}

// A line of a matrix that begins so many elements behind another, a whole byte, and an element of it.
template <class T> __device__ inline const T *line_from(const void *data, long long elements) {
    return (const T *)data + (IS_PACKED<T> ? elements / 2 : elements);
}
template <class T> __device__ inline T element_of(const T *line, long long i) {
    if constexpr (IS_PACKED<T>)
        return {(u8)((i & 1 ? line[i >> 1].bits >> 4 : line[i >> 1].bits) & 15)};
    else
        return line[i];
}

// Runs from type to type, fp8 two at a time.
template <class To, class T> __device__ inline Words<To> convert_run(const Words<T> &x) {
    if constexpr (SAME<To, T>) {
        return x;
    } else {
        Run<T> from = run_of(x);
        Run<To> to;
        Words<To> words;
#pragma unroll
        for (int i = 0; i < RUN; i += 2) {
            if constexpr (IS_FP8<T>) {
                u32 two = unpack_fp8<T>((u16)(x.at[i / 4] >> i % 4 * 8));
                if constexpr (SAME<To, F16>)
                    words.at[i / 2] = two;
                to.at[i] = convert<To>(F16{(u16)two});
                to.at[i + 1] = convert<To>(F16{(u16)(two >> 16)});
            } else {
                to.at[i] = convert<To>(from.at[i]);
                to.at[i + 1] = convert<To>(from.at[i + 1]);
            }
        }
        if constexpr (IS_FP8<T> && SAME<To, F16>)
            return words;
        else
            return words_of(to);
    }
}
template <class A, class T, int N> __device__ inline void run_to_acc(const Run<T, N> &x, A (&values)[N]) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        if constexpr (N == 1) {
            values[i] = to_acc<A>(x.at[i]);
        } else if constexpr (IS_FP8<T>) {
            u32 two = unpack_fp8<T>((u16)(x.at[i].bits | x.at[i + 1].bits << 8));
            values[i] = to_acc<A>(F16{(u16)two});
            values[i + 1] = to_acc<A>(F16{(u16)(two >> 16)});
        } else {
            values[i] = to_acc<A>(x.at[i]);
            values[i + 1] = to_acc<A>(x.at[i + 1]);
        }
    }
}
// The same in fewer instructions, though ptxas may take more registers: two of BF16 from a word by one each.
template <class A, class T, int N> __device__ inline void words_to_acc(const Words<T, N> &words, A (&values)[N]) {
    if constexpr (SAME<T, BF16> && N > 1) {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            values[i] = (A)__uint_as_float(words.at[i / 2] << 16);
            values[i + 1] = (A)__uint_as_float(words.at[i / 2] & 0xffff0000);
        }
    } else {
        run_to_acc(run_of(words), values);
    }
}
template <class T, class A, int N> __device__ inline Run<T, N> run_from_acc(const A (&values)[N]) {
    Run<T, N> y;
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        if constexpr (N == 1) {
            y.at[i] = from_acc<T>(values[i]);
        } else if constexpr (IS_FP8<T> && SAME<A, F32>) {
            u16 two = pack_fp8<T>(values[i], values[i + 1]);
            y.at[i].bits = (u8)two;
            y.at[i + 1].bits = (u8)(two >> 8);
        } else {
            y.at[i] = from_acc<T>(values[i]);
            y.at[i + 1] = from_acc<T>(values[i + 1]);
        }
    }
    return y;
}

// A run of which `valid` elements exist (the others become 0), one by one.
template <int N = RUN, class T> __device__ inline Run<T, N> read_elements(const T *from, int valid) {
    Run<T, N> run = {};
#pragma unroll
    for (int i = 0; i < N; i++)
        if (i < valid)
            run.at[i] = from[i];
    return run;
}

// Aligned: the whole run may be read at once.
template <bool Aligned, class T> __device__ inline Words<T> read_run(const T *from, int valid) {
    if (Aligned && valid == RUN)
        return *reinterpret_cast<const Words<T> *>(from);
    return words_of(read_elements(from, valid));
}

template <bool Aligned, class A, class T>
__device__ inline void store_run(T *to, int valid, const A (&values)[RUN]) {
    Run<T> run = run_from_acc<T>(values);
    if (Aligned && valid == RUN) {
        store_words(to, words_of(run));
    } else {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            if (i < valid)
                to[i] = run.at[i];
    }
}
