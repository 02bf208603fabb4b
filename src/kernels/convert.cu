// A copy of an operand in a type that holds every value of it, for a cuBLASLt that does not take the operand's own. What
// a row lacks up to out.ld is 0.
#include "copy.cuh"

#ifndef GEMMEPI_X_TYPE
#define GEMMEPI_X_TYPE   E4M3
#define GEMMEPI_OUT_TYPE F16
#define GEMMEPI_ALIGNED  0 // 1: every run of x starts at a multiple of its size, 16 bytes at most
#endif

constexpr int THREADS = 256;

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_convert(GEMMEPI_PARAMS gpi__convert_params p) {
    Copied_run run;
    if (!find_copied_run<THREADS>(p, run))
        return;
    long long left = p.columns - run.column;
    int valid = left < RUN ? (int)left : RUN; // a run has at least one
    const GEMMEPI_X_TYPE *x = start_of_run<const GEMMEPI_X_TYPE>(p.x, run);
    GEMMEPI_OUT_TYPE *out = start_of_run<GEMMEPI_OUT_TYPE>(p.out, run);
    *reinterpret_cast<Words<GEMMEPI_OUT_TYPE> *>(out) =
        convert_run<GEMMEPI_OUT_TYPE>(read_run<GEMMEPI_ALIGNED>(x, valid));
}
