// A copy of an operand of 16-bit elements whose lines begin at multiples of 16 bytes, for kernels that read so many at a time. A
// run is a unit of 16 bytes; what a line lacks up to out.ld is 0.
#include "copy.cuh"

#ifndef GEMMEPI_THREADS
#define GEMMEPI_THREADS 256
#endif

constexpr int THREADS = GEMMEPI_THREADS;

__device__ inline void load_unit(u64 from, u32 *to) {
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "l"(from)
                 : "memory");
}
__device__ inline void store_unit(void *to, const u32 (&words)[4]) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
}

// The 16 bytes at `from`, a multiple of 2, out of the two aligned units that they lie in.
__device__ inline void load_across(const u16 *from, u32 (&to)[4]) {
    u64 address = (u64)from, first = address & ~(u64)15;
    u32 words[8];
    load_unit(first, words);
    load_unit(first + 16, words + 4);
#pragma unroll
    for (int i = 0; i < 6; i++)
        words[i] = address & 8 ? words[i + 2] : words[i];
#pragma unroll
    for (int i = 0; i < 5; i++)
        words[i] = address & 4 ? words[i + 1] : words[i];
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = __funnelshift_r(words[i], words[i + 1], (u32)(address & 2) * 8);
}

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_pack(GEMMEPI_PARAMS gpi__convert_params p) {
    Copied_run run;
    if (!find_copied_run<THREADS>(p, run))
        return;
    long long left = p.columns - run.column;
    const u16 *x = start_of_run<const u16>(p.x, run);
    u32 words[4] = {};
    if (run.column >= RUN && left >= 2 * RUN) { // both units are the line's own
        load_across(x, words);
    } else {
#pragma unroll
        for (int i = 0; i < RUN; i++)
            if (i < left)
                words[i / 2] |= (u32)x[i] << i % 2 * 16;
    }
    store_unit(start_of_run<u16>(p.out, run), words);
}
