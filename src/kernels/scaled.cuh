// What casts with scales and amax have in common: their types, and a scale made of an amax.
#pragma once
#include "amax.cuh"
#include "params.h"
#include "types.cuh"

#ifndef GEMMEPI_A_TYPE
#define GEMMEPI_A_TYPE F32
#define GEMMEPI_Y_TYPE E4M3
#define GEMMEPI_ACC    F32
#define GEMMEPI_AMAX   0 // 1: amax is written
#endif

typedef GEMMEPI_ACC Acc;
typedef GEMMEPI_A_TYPE A;
typedef GEMMEPI_Y_TYPE Y;
typedef Amax_of<A> Amax;
typedef decltype(magnitude(Amax())) Magnitude;

constexpr int LARGEST_SIZE = sizeof(A) > sizeof(Y) ? sizeof(A) : sizeof(Y);
constexpr int VECTOR = 16 / LARGEST_SIZE < RUN ? 16 / LARGEST_SIZE : RUN; // elements that a thread reads or writes at a time

__device__ inline float number_of(u32 bits) {
    return __uint_as_float(bits);
}
__device__ inline double number_of(u64 bits) {
    return __longlong_as_double((long long)bits);
}

// amax over the largest number of y's type; 1 where amax is 0 or not finite
__device__ inline float scale_from(Magnitude bits) {
    constexpr float largest = SAME<Y, E5M2> ? 57344.f : 448.f;
    Acc amax = number_of(bits);
    constexpr float least = 1.17549435e-38f, most = 3.40282347e38f; // where an f64 amax would lead out of f32
    Acc scale = amax / largest;
    return amax == 0 || amax - amax != 0 ? 1.f : scale < least ? least : scale > most ? most : (float)scale;
}
