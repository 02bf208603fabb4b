// Few rows in BF16 or F16 and weights in I8 by wgmma, on Hopper; weights.cuh has all but the multiplication. A warpgroup has 64 of a
// tile's columns, or twice that, and all of its rows: weights come from registers, and the tensor cores read A's rows in shared memory.
// Of each eight of k that an instruction takes, a lane has a quarter.
#define GEMMEPI_WGMMA 1
#include "weights.cuh"

// >>the instruction: its sums are as many registers as half of A's rows, each named in the text and in the list

#define GEMMEPI_OCTET(o) "+f"(sums[o][i][0]), "+f"(sums[o][i][1]), "+f"(sums[o][i][2]), "+f"(sums[o][i][3])
#if GEMMEPI_TILE_M == 8
#define GEMMEPI_NAMES  "m64n8k16", "%0, %1, %2, %3", "%4, %5, %6, %7", "%8"
#define GEMMEPI_OCTETS GEMMEPI_OCTET(0)
#elif GEMMEPI_TILE_M == 16
#define GEMMEPI_NAMES  "m64n16k16", "%0, %1, %2, %3, %4, %5, %6, %7", "%8, %9, %10, %11", "%12"
#define GEMMEPI_OCTETS GEMMEPI_OCTET(0), GEMMEPI_OCTET(1)
#elif GEMMEPI_TILE_M == 32
#define GEMMEPI_NAMES \
    "m64n32k16", "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15", "%16, %17, %18, %19", "%20"
#define GEMMEPI_OCTETS GEMMEPI_OCTET(0), GEMMEPI_OCTET(1), GEMMEPI_OCTET(2), GEMMEPI_OCTET(3)
#else
#define GEMMEPI_NAMES \
    "m64n64k16", \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31", \
        "%32, %33, %34, %35", "%36"
#define GEMMEPI_OCTETS \
    GEMMEPI_OCTET(0), GEMMEPI_OCTET(1), GEMMEPI_OCTET(2), GEMMEPI_OCTET(3), GEMMEPI_OCTET(4), GEMMEPI_OCTET(5), GEMMEPI_OCTET(6), \
        GEMMEPI_OCTET(7)
#endif
#define GEMMEPI_TEXT(type, shape, sums, weights, rows) \
    "{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\n" \
    "wgmma.mma_async.sync.aligned." shape ".f32." type "." type " {" sums "}, {" weights "}, " rows ", adds, 1, 1, 0;\n}"
#define GEMMEPI_APPLY(macro, ...) macro(__VA_ARGS__)

// Of the i-th 16 columns of each warp.
__device__ inline void multiply_64(BF16, Octet (&sums)[OCTETS], int i, const u32 (&weights)[4], u64 rows) {
    asm volatile(GEMMEPI_APPLY(GEMMEPI_TEXT, "bf16", GEMMEPI_NAMES)
                 : GEMMEPI_OCTETS
                 : "r"(weights[0]), "r"(weights[1]), "r"(weights[2]), "r"(weights[3]), "l"(rows));
}
__device__ inline void multiply_64(F16, Octet (&sums)[OCTETS], int i, const u32 (&weights)[4], u64 rows) {
    asm volatile(GEMMEPI_APPLY(GEMMEPI_TEXT, "f16", GEMMEPI_NAMES)
                 : GEMMEPI_OCTETS
                 : "r"(weights[0]), "r"(weights[1]), "r"(weights[2]), "r"(weights[3]), "l"(rows));
}

// >>a slice

// Of lines of 128 bytes, turned, eight of them in 1024 bytes: 64 of k.
__device__ inline u64 descriptor(u32 address) {
    return (u64)1 << 62 | (u64)(1024 >> 4) << 32 | (u64)(address >> 4 & 0x3fff);
}

constexpr int STEPS = SLICE / 16, FOURS = SIXTEENS * 4; // instructions along k; a lane's pairs of weights for each

// Pairs are all loaded first: wgmma's fences let none pass.
__device__ inline void load_pairs(int stage, u32 (&pairs)[STEPS][FOURS]) {
    int warp_n = (int)threadIdx.x / 32 % WARPS_N, warp_k = (int)threadIdx.x / 32 / WARPS_N;
    int eighth = (int)threadIdx.x % 32 / 4, quarter = (int)threadIdx.x % 4;
    int line = stage + A_BYTES + (warp_n * WARP_N + eighth) * B_LINE + quarter * 2;
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        const u8 *unit = shared + (line + place_of_unit<1>(eighth, warp_k * STEPS + step));
#pragma unroll
        for (int i = 0; i < FOURS; i++) // mma's order: a line, the eighth behind it, and both again eight of k further
            pairs[step][i] = *reinterpret_cast<const unsigned short *>(unit + (i / 4 * 2 + i % 2) * 8 * B_LINE + i % 4 / 2 * 8);
    }
}

// What the sums are stands between what comes before and what comes behind.
__device__ inline void pin(Octet (&sums)[OCTETS]) {
#pragma unroll
    for (int i = 0; i < OCTETS * SIXTEENS * 4; i++)
        asm volatile("" : "+f"(sums[i / (SIXTEENS * 4)][i / 4 % SIXTEENS][i % 4])::"memory");
}

__device__ inline void add_products(int stage, Octet (&sums)[OCTETS]) {
    int warp_k = (int)threadIdx.x / 32 / WARPS_N;
    u64 rows = descriptor((u32)__cvta_generic_to_shared(shared) + stage + warp_k * (SLICE / 64 * TILE_M * 128));
    u32 pairs[STEPS][FOURS];
    load_pairs(stage, pairs);
    pin(sums);
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        u32 weights[SIXTEENS][4];
#pragma unroll
        for (int i = 0; i < FOURS; i++)
            weights[i / 4][i % 4] = widen_two(In(), pairs[step][i], 0x4140);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < SIXTEENS; i++)
            multiply_64(In(), sums, i, weights[i], rows + (step / 4 * (TILE_M * 128) + step % 4 * 32) / 16);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    pin(sums);
}
