// Instructions of tensor cores that several kernels have, from Turing on: ldmatrix, and mma.sync of 16 bits, of TF32 and of I8.
#pragma once
#include "types.cuh"

// Four matrices of 8 x 8, of which each lane has the address of a line.
template <bool Turned> __device__ inline void load_matrices(u32 from, u32 (&to)[4]) {
    if constexpr (Turned)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
}

// What asm has of an instruction that adds to sums: its name, with extents and types, and what the sums are in, "f" or "r".
#define MULTIPLIED(name, kind)                                                                           \
    "mma.sync.aligned." name " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"          \
        : "+" kind(sums[0]), "+" kind(sums[1]), "+" kind(sums[2]), "+" kind(sums[3])                     \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)

// sums += A B: 16 rows, 16 of k, 8 columns. Of F32 8 of k, of which it reads the upper 19 bits.
__device__ inline void multiply_16(BF16, float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm(MULTIPLIED("m16n8k16.row.col.f32.bf16.bf16.f32", "f"));
}
__device__ inline void multiply_16(F32, float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm(MULTIPLIED("m16n8k8.row.col.f32.tf32.tf32.f32", "f"));
}
__device__ inline void multiply_16(F16, float (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
    asm(MULTIPLIED("m16n8k16.row.col.f32.f16.f16.f32", "f"));
#else // half as many
#pragma unroll
    for (int i = 0; i < 2; i++)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(i ? b1 : b0));
#endif
}
// The same of I8, 32 of k.
__device__ inline void multiply_32(int (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
    asm(MULTIPLIED("m16n8k32.row.col.s32.s8.s8.s32", "r"));
#else // a quarter
#pragma unroll
    for (int i = 0; i < 4; i++)
        asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+r"(sums[i % 2 * 2]), "+r"(sums[i % 2 * 2 + 1])
            : "r"(a[i]), "r"(i / 2 ? b1 : b0));
#endif
}
