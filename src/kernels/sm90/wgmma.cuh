// wgmma: its operands are as many registers as half of its columns, each named in the text and in the list.
#pragma once
#include "sm90/options.cuh"
#include "wgmma_groups.cuh"

// Columns of an instruction: the tile's, but where registers have two sums of each element no more than 128.
#if GEMMEPI_PROMOTES && GEMMEPI_TILE_N > 128
#define GEMMEPI_COLUMNS 128
#else
#define GEMMEPI_COLUMNS GEMMEPI_TILE_N
#endif
constexpr int COLUMNS = GEMMEPI_COLUMNS;

// >>the instruction

#define GEMMEPI_8(list, i) list(i), list(i + 1), list(i + 2), list(i + 3), list(i + 4), list(i + 5), list(i + 6), list(i + 7)
#define GEMMEPI_32(list, i) GEMMEPI_8(list, i), GEMMEPI_8(list, i + 8), GEMMEPI_8(list, i + 16), GEMMEPI_8(list, i + 24)
#define GEMMEPI_SUM(i) "+f"(sums[i])
#define GEMMEPI_0_TO_31 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GEMMEPI_32_TO_63 \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GEMMEPI_64_TO_95 \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define GEMMEPI_96_TO_127 \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#if GEMMEPI_COLUMNS == 64
#define GEMMEPI_NAMES GEMMEPI_0_TO_31
#define GEMMEPI_SUMS GEMMEPI_32(GEMMEPI_SUM, 0)
#define GEMMEPI_ADDS "%34"
#define GEMMEPI_MATRICES "%32, %33"
#define GEMMEPI_TRANSPOSED ", %35, %36"
#elif GEMMEPI_COLUMNS == 128
#define GEMMEPI_NAMES GEMMEPI_0_TO_31 ", " GEMMEPI_32_TO_63
#define GEMMEPI_SUMS GEMMEPI_32(GEMMEPI_SUM, 0), GEMMEPI_32(GEMMEPI_SUM, 32)
#define GEMMEPI_ADDS "%66"
#define GEMMEPI_MATRICES "%64, %65"
#define GEMMEPI_TRANSPOSED ", %67, %68"
#elif GEMMEPI_COLUMNS == 192
#define GEMMEPI_NAMES GEMMEPI_0_TO_31 ", " GEMMEPI_32_TO_63 ", " GEMMEPI_64_TO_95
#define GEMMEPI_SUMS GEMMEPI_32(GEMMEPI_SUM, 0), GEMMEPI_32(GEMMEPI_SUM, 32), GEMMEPI_32(GEMMEPI_SUM, 64)
#define GEMMEPI_ADDS "%98"
#define GEMMEPI_MATRICES "%96, %97"
#define GEMMEPI_TRANSPOSED ", %99, %100"
#else
#define GEMMEPI_NAMES GEMMEPI_0_TO_31 ", " GEMMEPI_32_TO_63 ", " GEMMEPI_64_TO_95 ", " GEMMEPI_96_TO_127
#define GEMMEPI_SUMS \
    GEMMEPI_32(GEMMEPI_SUM, 0), GEMMEPI_32(GEMMEPI_SUM, 32), GEMMEPI_32(GEMMEPI_SUM, 64), GEMMEPI_32(GEMMEPI_SUM, 96)
#define GEMMEPI_ADDS "%130"
#define GEMMEPI_MATRICES "%128, %129"
#define GEMMEPI_TRANSPOSED ", %131, %132"
#endif
#if GEMMEPI_ELEMENT != 2
#undef GEMMEPI_TRANSPOSED
#define GEMMEPI_TRANSPOSED ""
#endif
#if GEMMEPI_ELEMENT == 4
#define GEMMEPI_STEP_K "k8"
#elif GEMMEPI_ELEMENT == 1
#define GEMMEPI_STEP_K "k32"
#else
#define GEMMEPI_STEP_K "k16"
#endif
#define GEMMEPI_TEXT_OF(x) #x
#define GEMMEPI_TEXT(x)    GEMMEPI_TEXT_OF(x)

// sums = A B, or with `adds` sums + A B: 64 rows, COLUMNS columns, STEP_BYTES of k.
__device__ inline void multiply(float (&sums)[COLUMNS / 2], u64 a, u64 b, int adds) {
    asm volatile("{\n"
                 ".reg .pred adds;\n"
                 "setp.ne.b32 adds, " GEMMEPI_ADDS ", 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n" GEMMEPI_TEXT(GEMMEPI_COLUMNS) GEMMEPI_STEP_K ".f32." GEMMEPI_OPERANDS
                 "." GEMMEPI_OPERAND_B " {" GEMMEPI_NAMES "}, " GEMMEPI_MATRICES ", adds, 1, 1" GEMMEPI_TRANSPOSED ";\n"
                 "}"
                 : GEMMEPI_SUMS
                 : "l"(a), "l"(b), "r"(adds), "n"(!A_ROWS), "n"(!B_ROWS));
}

// What reads the sums comes behind this, and so behind the wait before it.
template <int Count> __device__ inline void sums_are_there(float (&sums)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; i++)
        asm volatile("" : "+f"(sums[i])::"memory");
}

// ptxas before CUDA 13 serialises wgmma whose first sums were never set, though it does not read them.
__device__ inline void begin_sums(float (&sums)[STRIPS][TILE_N / 2]) {
    if (PROMOTES || __CUDACC_VER_MAJOR__ < 13)
#pragma unroll
        for (int i = 0; i < STRIPS * TILE_N / 2; i++)
            sums[i / (TILE_N / 2)][i % (TILE_N / 2)] = 0;
}

// Matrix descriptor of swizzled lines of 128 bytes: where it begins, the bytes from one 64 along m or n to the next where
// those lie side by side, and from 8 lines to the next.
__device__ inline u64 descriptor(u32 address) {
    return (u64)1 << 62 | (u64)(1024 >> 4) << 32 | (u64)(LINES_64 >> 4) << 16 | (u64)(address >> 4 & 0x3fff);
}
// What an instruction takes of k, and of a descriptor, from there to what the next one takes.
constexpr int STEP_BYTES = 32, STEPS = LINE / STEP_BYTES;
template <bool Rows> constexpr u64 STEP = (Rows ? STEP_BYTES : STEP_BYTES / 2 * LINE) >> 4;
