// A copy of an operand in a type that holds every value of it, for a cuBLASLt that does not take the operand's own. A
// thread makes one run of eight; what a row lacks up to out.ld is 0.
#include "types.cuh"
#include "params.h"

#ifndef GEMMEPI_X_TYPE
#define GEMMEPI_X_TYPE   E4M3
#define GEMMEPI_OUT_TYPE F16
#define GEMMEPI_ALIGNED  0 // 1: every run of x starts at a multiple of its size, 16 bytes at most
#endif

constexpr int THREADS = 256;

// Blocks: items * rows * runs of a row, divided by THREADS.
extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_convert(GEMMEPI_PARAMS gemmepi__convert_params p) {
    long long runs = p.out.ld / RUN, lines = p.items * p.rows;
    long long at = (long long)blockIdx.x * THREADS + threadIdx.x, line, item;
    if (at >= lines * runs)
        return;
    if (lines * runs <= 0xffffffff) { // a 64-bit division costs as much as the rest
        line = (u32)at / (u32)runs;
        item = (u32)line / (u32)p.rows;
    } else {
        line = at / runs;
        item = line / p.rows;
    }
    after_launches_before(); // behind the divisions
    long long row = line - item * p.rows, column = (at - line * runs) * RUN, left = p.columns - column;
    int valid = left < RUN ? (int)left : RUN; // a run has at least one
    const GEMMEPI_X_TYPE *x = (const GEMMEPI_X_TYPE *)p.x.data + item * p.x.stride + row * p.x.ld + column;
    GEMMEPI_OUT_TYPE *out = (GEMMEPI_OUT_TYPE *)p.out.data + item * p.out.stride + row * p.out.ld + column;
    *reinterpret_cast<Words<GEMMEPI_OUT_TYPE> *>(out) =
        convert_run<GEMMEPI_OUT_TYPE>(read_run<GEMMEPI_ALIGNED>(x, valid));
}
