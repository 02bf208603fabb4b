// A stage of F32 multiplied by fused multiply-adds, whose threads have the sums that mma.sync would leave them.
#pragma once
#include "sm80/multiply.cuh"

__device__ inline void load_words(u32 from, float &to0, float &to1) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to0), "=f"(to1) : "r"(from) : "memory");
}

// Where a lane's first value is: A's of a warp's row row_of_lane(), B's of columns lane_of_row() * 2 and the next.
template <bool Rows> __device__ inline u32 value_lane(int first, int at) {
    return Rows ? (u32)((first + at) * LINE + (at % 8 << 4)) : (u32)(first / TILE_K * BOX + first % TILE_K * ELEMENT + (at / 4 << 4) + at % 4 * 4);
}
// Eight further along m or n, i times, and four further along k.
template <bool Rows> __device__ inline u32 value_at(u32 lane, int i, int four) {
    return Rows ? (lane ^ (u32)four << 4) + i * 8 * LINE : (lane ^ (u32)(i % 4) << 5) + i / 4 * BOX + four * 4 * LINE;
}
// Along m or n: of the k-th of the four lines.
__device__ inline u32 line_at(u32 from, int k) {
    return (from ^ (u32)turn_of<false>(k) << 4) + k * LINE;
}

__device__ inline void load_a_values(u32 from, float (&to)[4]) {
    if constexpr (A_ROWS)
        get_words(from, to);
    else
#pragma unroll
        for (int k = 0; k < 4; k++)
            to[k] = __uint_as_float(get_word(line_at(from, k)));
}
__device__ inline void load_b_values(u32 from, float (&to)[2][4]) {
    if constexpr (B_ROWS) {
        get_words(from, to[0]);
        get_words((from ^ 16) + LINE, to[1]);
    } else {
#pragma unroll
        for (int k = 0; k < 4; k++)
            load_words(line_at(from, k), to[0][k], to[1][k]);
    }
}

// sums += A B: a warp's rows and columns, 32 bytes of k. In order of k.
__device__ inline void multiply_add(u32 a, u32 b, int step, float (&sums)[ROW_BLOCKS][PAIRS * 2][4]) {
    constexpr int of_half = PAIRS * 2 / HALVES_IN;
#pragma unroll
    for (int four = step * 2; four < step * 2 + 2; four++) {
        float rows[ROW_BLOCKS * 2][4];
#pragma unroll
        for (int i = 0; i < ROW_BLOCKS * 2; i++)
            load_a_values(value_at<A_ROWS>(a, i, four), rows[i]);
#pragma unroll
        for (int j = 0; j < PAIRS * 2; j++) {
            float columns[2][4];
            load_b_values(value_at<B_ROWS>(b, j % of_half, four) + j / of_half * TILE_COLUMNS * LINE, columns);
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
                for (int i = 0; i < ROW_BLOCKS * 4; i++) {
                    float &sum = sums[i / 4][j][i % 4];
                    sum = __fmaf_rn(rows[i / 2][k], columns[i % 2][k], sum);
                }
        }
    }
}

__device__ inline void take_sums(const float (&from)[ROW_BLOCKS][PAIRS * 2][4], float (&sums)[ROW_BLOCKS][PAIRS * 2][4]) {
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS * PAIRS * 8; i++)
        sums[i / (PAIRS * 8)][i / 4 % (PAIRS * 2)][i % 4] += from[i / (PAIRS * 8)][i / 4 % (PAIRS * 2)][i % 4];
}
