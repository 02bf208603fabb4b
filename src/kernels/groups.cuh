// What a kernel has of a grouped product: nothing, unless GEMMEPI_GROUPED.
#pragma once
#include "params.h"

#ifndef GEMMEPI_GROUPED
#define GEMMEPI_GROUPED 0 // 1: groups of rows, 2: of k
#endif
#ifndef GEMMEPI_GATHERED
#define GEMMEPI_GATHERED  0 // whose rows an index says: bits 1 A, 2 B
#define GEMMEPI_SCATTERED 0 // 1: an index says the rows of D, and of what lies as it does
#endif
#ifndef GEMMEPI_SCALES_GATHERED
#define GEMMEPI_SCALES_GATHERED 0 // 1: an index says the rows of A's scales, but no more A's own, which lie side by side
#endif

constexpr bool GROUPED = GEMMEPI_GROUPED != 0, GROUPED_ROWS = GEMMEPI_GROUPED == 1, GROUPED_K = GEMMEPI_GROUPED == 2;
constexpr bool SCATTERED = GEMMEPI_SCATTERED;
constexpr bool GATHERS_A = (GEMMEPI_GATHERED & 1) != 0, GATHERS_B = (GEMMEPI_GATHERED & 2) != 0;

#if GEMMEPI_GROUPED
// The row of D of a position.
__device__ inline long long row_of_d(const gpi__kernel_groups &groups, long long position) {
    return SCATTERED ? groups.index_d[position] : position;
}
#endif
