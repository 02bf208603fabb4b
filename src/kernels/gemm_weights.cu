// Few rows in BF16 or F16 and weights in I8 by mma.sync, from Ampere on; weights.cuh has all but the multiplication. A lane has 16
// elements side by side of weights and of A's rows, in whatever order mma.sync takes them, for both have the same.
#define GEMMEPI_WGMMA 0
#include "weights.cuh"

__device__ inline void multiply_16(BF16, float (&sums)[4], const u32 (&weights)[4], u32 first, u32 second) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(weights[0]), "r"(weights[1]), "r"(weights[2]), "r"(weights[3]), "r"(first), "r"(second));
}
__device__ inline void multiply_16(F16, float (&sums)[4], const u32 (&weights)[4], u32 first, u32 second) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(weights[0]), "r"(weights[1]), "r"(weights[2]), "r"(weights[3]), "r"(first), "r"(second));
}

// Half of a slice at a time: 32 of k. All of its products with the same 16 of k lie between two of one sum.
__device__ inline void add_products(int stage, Octet (&sums)[OCTETS]) {
    int warp_n = (int)threadIdx.x / 32 % WARPS_N, warp_k = (int)threadIdx.x / 32 / WARPS_N;
    int eighth = (int)threadIdx.x % 32 / 4, quarter = (int)threadIdx.x % 4;
    const u8 *a = shared + stage + eighth * A_LINE, *b = shared + stage + A_BYTES + (warp_n * WARP_N + eighth) * B_LINE;
    Four bytes[SIXTEENS * 2];
    a += place_of_unit<2>(eighth, warp_k * (SLICE * 2 / UNIT) + 2 * quarter);
    b += place_of_unit<1>(eighth, warp_k * (SLICE / UNIT) + quarter);
#pragma unroll
    for (int i = 0; i < SIXTEENS * 2; i++)
        bytes[i] = *reinterpret_cast<const Four *>(b + i * 8 * B_LINE);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u32 weights[SIXTEENS][2][4];
        Four rows[OCTETS];
#pragma unroll
        for (int octet = 0; octet < OCTETS; octet++) // the second unit is the first one's neighbour
            rows[octet] = *reinterpret_cast<const Four *>(a + octet * 8 * A_LINE + (half ? eighth % 2 ? -UNIT : UNIT : 0));
#pragma unroll
        for (int i = 0; i < SIXTEENS * 8; i++) {
            int j = i / 2 % 2, second = i / 4 % 2, of = i / 8;
            weights[of][j][i % 2 + second * 2] =
                widen_two(In(), bytes[of * 2 + i % 2].at[half * 2 + j], second ? 0x4342 : 0x4140);
        }
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int octet = 0; octet < OCTETS; octet++)
#pragma unroll
                for (int i = 0; i < SIXTEENS; i++)
                    multiply_16(In(), sums[octet][i], weights[i][j], rows[octet].at[j * 2], rows[octet].at[j * 2 + 1]);
    }
}
