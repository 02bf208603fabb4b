// What kernels that copy an operand have in common: a thread makes one run of eight, of lines of out.ld.
#pragma once
#include "types.cuh"
#include "params.h"

struct Copied_run {
    long long item, row, column;
};

// Blocks: items * rows * runs of a row, divided by Threads. False for a thread that has none; else launches before have ended, whose
// end is waited for behind the divisions.
template <int Threads> __device__ inline bool find_copied_run(const gpi__convert_params &p, Copied_run &mine) {
    long long runs = p.out.ld / RUN, lines = p.items * p.rows;
    long long at = (long long)blockIdx.x * Threads + threadIdx.x, line;
    if (at >= lines * runs)
        return false;
    if (lines * runs <= 0xffffffff) { // a 64-bit division costs as much as the rest
        line = (u32)at / (u32)runs;
        mine.item = (u32)line / (u32)p.rows;
    } else {
        line = at / runs;
        mine.item = line / p.rows;
    }
    after_launches_before();
    mine.row = line - mine.item * p.rows;
    mine.column = (at - line * runs) * RUN;
    return true;
}

// Its first element, in x or out.
template <class T> __device__ inline T *start_of_run(const gpi__kernel_matrix &matrix, const Copied_run &run) {
    return (T *)matrix.data + run.item * matrix.stride + run.row * matrix.ld + run.column;
}
