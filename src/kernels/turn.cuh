// Elements of as many lines as a word has, turned in registers.
#pragma once
#include "types.cuh"

// Of four lines four bytes each, to four columns of as many.
__device__ inline void turn(u32 (&four)[4]) {
    u32 first = __byte_perm(four[0], four[1], 0x5140), second = __byte_perm(four[2], four[3], 0x5140); // columns 0 and 1
    u32 third = __byte_perm(four[0], four[1], 0x7362), fourth = __byte_perm(four[2], four[3], 0x7362); // 2 and 3
    four[0] = __byte_perm(first, second, 0x5410);
    four[1] = __byte_perm(first, second, 0x7632);
    four[2] = __byte_perm(third, fourth, 0x5410);
    four[3] = __byte_perm(third, fourth, 0x7632);
}

// Of two lines two elements of 16 bits each.
__device__ inline void turn(u32 (&two)[2]) {
    u32 first = __byte_perm(two[0], two[1], 0x5410);
    two[1] = __byte_perm(two[0], two[1], 0x7632);
    two[0] = first;
}

__device__ inline void turn(u32 (&)[1]) {}
