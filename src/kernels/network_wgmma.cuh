// Products by wgmma, on Hopper: four warps have 64 rows together, what they have of these are A's registers, and the weights lie in shared memory
// as it reads them. Its sums are with the threads that mma.sync would leave them to.
#pragma once
#include "wgmma_groups.cuh"

#define NETWORK_FOUR(step, half) "+f"(sums[step].at[0][half][0]), "+f"(sums[step].at[0][half][1]), "+f"(sums[step].at[0][half][2]), "+f"(sums[step].at[0][half][3])
#define NETWORK_EIGHT(step) NETWORK_FOUR(step, 0), NETWORK_FOUR(step, 1)
#define NETWORK_0_TO_7 "%0, %1, %2, %3, %4, %5, %6, %7"
#define NETWORK_0_TO_15 NETWORK_0_TO_7 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define NETWORK_0_TO_31 NETWORK_0_TO_15 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NETWORK_PRODUCT(type, columns, sums, a, b, rest) \
    "{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\n" \
    "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" sums "}, " a ", " b ", adds, 1, 1, " rest ";\n}"
// sums += A B: 16 of k, and 16 columns or 64. B's matrices have lines of k, or, Turned, of columns.
#define NETWORK_PRODUCTS(element, type)                                                                                              \
    template <int Steps, bool Turned> __device__ inline void multiply_64(element, Sums *sums, const u32 (&a)[4], u64 b) {            \
        static_assert(Steps == 1 || Steps == 4, "");                                                                                 \
        if constexpr (Steps == 1)                                                                                                    \
            asm volatile(NETWORK_PRODUCT(type, "16", NETWORK_0_TO_7, "{%8, %9, %10, %11}", "%12", "%13")                             \
                         : NETWORK_EIGHT(0)                                                                                          \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(Turned));                                         \
        else                                                                                                                         \
            asm volatile(NETWORK_PRODUCT(type, "64", NETWORK_0_TO_31, "{%32, %33, %34, %35}", "%36", "%37")                          \
                         : NETWORK_EIGHT(0), NETWORK_EIGHT(1), NETWORK_EIGHT(2), NETWORK_EIGHT(3)                                    \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(Turned));                                         \
    }                                                                                                                                \
    /* sums += A B, both in shared memory with lines of rows and of columns */                                                       \
    template <int Steps> __device__ inline void multiply_64(element, Sums *sums, u64 a, u64 b) {                                     \
        static_assert(Steps == 1 || Steps == 2, "");                                                                                 \
        if constexpr (Steps == 1)                                                                                                    \
            asm volatile(NETWORK_PRODUCT(type, "16", NETWORK_0_TO_7, "%8", "%9", "1, 1") : NETWORK_EIGHT(0) : "l"(a), "l"(b));       \
        else                                                                                                                         \
            asm volatile(NETWORK_PRODUCT(type, "32", NETWORK_0_TO_15, "%16", "%17", "1, 1")                                          \
                         : NETWORK_EIGHT(0), NETWORK_EIGHT(1)                                                                        \
                         : "l"(a), "l"(b));                                                                                          \
    }
NETWORK_PRODUCTS(F16, "f16")
NETWORK_PRODUCTS(BF16, "bf16")

// Of matrices of 8 x 8: bytes from one to the next along rows or columns, and along k.
__device__ inline u64 descriptor(u32 address, u32 along, u32 along_k) {
    return (u64)(along >> 4) << 32 | (u64)(along_k >> 4) << 16 | (u64)(address >> 4 & 0x3fff);
}

// What sums or a fragment are stands between what comes before and what comes behind.
__device__ inline void pin(float (&sums)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++)
        asm volatile("" : "+f"(sums[i])::"memory");
}
__device__ inline void pin(u32 (&a)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++)
        asm volatile("" : "+r"(a[i])::"memory");
}
template <int Count> __device__ inline void pin(Sums *sums) {
#pragma unroll
    for (int i = 0; i < Count * 2; i++)
        pin(sums[i / 2].at[0][i % 2]);
}
// Of 64 columns at a time there is a group, so that what becomes of the first is computed while the others are multiplied; of 16 of those that are left.
__device__ constexpr int steps_of_group(int step, int steps) {
    return step + 4 <= steps ? 4 : 1;
}
__device__ constexpr int groups_of(int steps) {
    return steps / 4 + steps % 4;
}
// sums += a's rows times the weights, whose matrices are so far from each other along columns and along k.
template <int K, int Columns, bool Turned> __device__ inline void begin_products(Fragments &a, u32 weights, u32 along, u32 along_k, Sums (&sums)[steps_of(Columns)]) {
    u64 b = descriptor(weights, along, along_k);
    pin<steps_of(Columns)>(sums);
#pragma unroll
    for (int k = 0; k < steps_of(K); k++)
        pin(a.at[k][0][0]);
    multiply_begin();
#pragma unroll
    for (int step = 0; step < steps_of(Columns); step += steps_of_group(step, steps_of(Columns))) {
#pragma unroll
        for (int k = 0; k < steps_of(K); k++) {
            u64 from = b + (k * along_k + step * along) / 8;
            if (steps_of_group(step, steps_of(Columns)) == 4)
                multiply_64<4, Turned>(Element(), &sums[step], a.at[k][0][0], from);
            else
                multiply_64<1, Turned>(Element(), &sums[step], a.at[k][0][0], from);
        }
        multiply_commit();
    }
}
// A layer's sums, as sum_products has them. weights, bias: in shared memory.
template <int In, int Out> __device__ inline void begin_layer(Fragments &a, u32 weights, u32 bias, Sums (&sums)[steps_of(Out)]) {
#pragma unroll
    for (int step = 0; step < steps_of(Out); step++)
        begin_sums<Out>(step, bias, sums[step]);
    begin_products<In, Out, false>(a, weights, 128, steps_of(Out) * 256, sums);
}
// What becomes of sums, 16 columns after 16, as soon as they are there. Behind: groups that were begun behind them.
template <int Columns, int Behind, int Step, class Each> __device__ inline void for_products(Sums (&sums)[steps_of(Columns)], Each each) {
    if constexpr (Step < steps_of(Columns)) {
        constexpr int count = steps_of_group(Step, steps_of(Columns)), end = Step + count;
        multiply_wait<Behind + groups_of(steps_of(Columns) - end)>();
        pin<count>(&sums[Step]);
#pragma unroll
        for (int step = Step; step < end; step++)
            each(step);
        for_products<Columns, Behind, end>(sums, each);
    }
}
