// What casts with scales and amax have in common: their types.
#pragma once
#include "found_scale.cuh"
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
