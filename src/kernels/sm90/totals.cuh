// SUMMED: totals of A's rows or B's columns over k, for bias_grad, made by three warps that have nothing to load, as tiles pass.
//
// They go through the stages of all tiles, which are free when they, too, have left them.
#pragma once
#include "sm90/pipeline.cuh"
#include "sm90/schedule.cuh"

constexpr bool SUMMED_ROWS = SUMMED == 1 ? A_ROWS : B_ROWS;
constexpr int SUMMED_LINES = SUMMED == 1 ? TILE_M : TILE_N; // of a tile

// >>who adds what

// A tile's lines are slices of 16. Of all tiles along the other axis, through each of which the operand passes whole, each has
// some, so that none is held up: a warp has one at most.
constexpr int SLICES = SUMMED_LINES / 16;

// This warp's in a tile, or a negative number.
__device__ inline int slice_of(const gpi__sm90_params &p, const Tile &tile, int summer) {
    int across = SUMMED == 1 ? tile.n : tile.m, slice = across + summer * p.sum_tiles;
    return across < p.sum_tiles && slice < SLICES ? slice : -1;
}

// >>a slice's lines

// What a lane adds up over a tile's k: half of each line of TILE_K; where lines lie along m or n, eight of them, 4 of each 64 of
// k. Those of some stages together, so that k may be long.
constexpr int SUMMED_AT_ONCE = 64;
struct Slice_totals {
    float at[SUMMED_ROWS ? 1 : 8], before[SUMMED_ROWS ? 1 : 8];
};
__device__ inline void keep_totals(Slice_totals &totals) {
#pragma unroll
    for (int i = 0; i < (SUMMED_ROWS ? 1 : 8); i++) {
        totals.before[i] += totals.at[i];
        totals.at[i] = 0;
    }
}

// Where a lane's first 16 bytes of a stage are: of line lane / 2 of the slice its half; or of 16 of k line lane / 2, but so that
// eight lanes read from all banks, and half of the slice.
__device__ inline u32 slice_lane(int slice) {
    u32 pair = threadIdx.x % 32 / 2, half = threadIdx.x % 2;
    u32 line = SUMMED_ROWS ? slice * 16 + pair : pair % 4 * 2 + pair / 4 % 2 + pair / 8 * 8;
    u32 unit = SUMMED_ROWS ? half * 4 : slice % 4 * 2 + half;
    return (SUMMED == 1 ? 0 : A_BYTES) + (SUMMED_ROWS ? 0 : slice / 4 * LINES_64) + line * LINE + ((unit ^ line % 8) << 4);
}
__device__ inline u32 slice_at(u32 lane, int i) {
    return SUMMED_ROWS ? lane ^ i << 4 : lane + i * 16 * LINE;
}

__device__ inline void to_floats(u32 word, float &low, float &high) {
    if (GEMMEPI_OPERANDS[0] == 'b') {
        low = __uint_as_float(word << 16);
        high = __uint_as_float(word & 0xffff0000);
    } else {
        asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\ncvt.f32.f16 %0, low;\ncvt.f32.f16 %1, high;\n}"
            : "=f"(low), "=f"(high)
            : "r"(word));
    }
}

__device__ inline void add_stage(u32 lane, Slice_totals &totals) {
    u32 words[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[i][0]), "=r"(words[i][1]), "=r"(words[i][2]), "=r"(words[i][3])
                     : "r"(slice_at(lane, i))
                     : "memory");
    float sums[4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float low, high;
            to_floats(words[i][j], low, high);
            if (SUMMED_ROWS) {
                sums[j] += low + high;
            } else {
                totals.at[SUMMED_ROWS ? 0 : j * 2] += low;
                totals.at[SUMMED_ROWS ? 0 : j * 2 + 1] += high;
            }
        }
    if (SUMMED_ROWS)
        totals.at[0] += (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Of the lanes together: which line's total this lane has then, if any, and that total.
__device__ inline int line_of_total() {
    int lane = threadIdx.x % 32;
    return SUMMED_ROWS ? (lane % 2 ? -1 : lane / 2) : (lane < 16 ? lane % 2 * 8 + lane / 2 : -1);
}
__device__ inline double total_of_slice(const Slice_totals &totals) {
    double mine = 0;
#pragma unroll
    for (int i = 0; i < (SUMMED_ROWS ? 1 : 8); i++) {
        double total = (double)totals.before[i] + totals.at[i];
#pragma unroll
        for (int lanes = SUMMED_ROWS ? 1 : 2; lanes <= (SUMMED_ROWS ? 1 : 16); lanes *= 2)
            total += __shfl_xor_sync(0xffffffffu, total, lanes);
        if (SUMMED_ROWS || threadIdx.x % 32 / 2 == i)
            mine = total;
    }
    return mine;
}

// >>storing

// Into bias_grad, or a line of an item.
__device__ inline void store_total_at(const gpi__sm90_params &p, u32 item, int at, double total) {
    GEMMEPI_SUMS_TYPE *to = (GEMMEPI_SUMS_TYPE *)p.sums + item * p.sums_stride + at;
    if (GEMMEPI_SUMS_ADD)
        total += to_acc<double>(*to);
    *to = from_acc<GEMMEPI_SUMS_TYPE>(total);
}
__device__ inline void store_total(const gpi__sm90_params &p, const Tile &tile, int line, double total) {
    int at = SUMMED == 1 ? tile.m * TILE_M + line : column_of(p, tile, line);
    int left = SUMMED == 1 ? (int)p.epilogue.m - at : span_left(p, tile) - line % SPAN;
    if (left > 0)
        store_total_at(p, tile.item, at, total);
}

// PARTS: each block has totals of its part of k, which the first adds up, always in the same order.
__device__ inline void leave_total(const Shared &shared, int summer, double total) {
    if (line_of_total() >= 0)
        asm volatile("st.shared.f64 [%0], %1;" ::"r"(shared.total(summer, line_of_total())), "d"(total) : "memory");
}
__device__ inline void store_totals(const gpi__sm90_params &p, const Shared &shared, const Tile &tile, int summer) {
    int slice = slice_of(p, tile, summer);
    double total = 0;
    if (slice < 0 || line_of_total() < 0)
        return;
#pragma unroll 1
    for (int block = 0; block < PARTS; block++) {
        double of_block;
        asm volatile("ld.shared::cluster.f64 %0, [%1];"
                     : "=d"(of_block)
                     : "r"(address_in(shared.total(summer, line_of_total()), block))
                     : "memory");
        total += of_block;
    }
    store_total(p, tile, slice * 16 + line_of_total(), total);
}

// >>all tiles

// Three warps. Where nothing is to add they wait for each stage all the same: to leave it before it is full would count for
// another round.
__device__ inline void add_operand(const gpi__sm90_params &p, const Shared &shared, const Work &work) {
    int summer = (int)__shfl_sync(0xffffffffu, threadIdx.x / 32 - 1, 0);
    Pipeline pipeline = Pipeline::of_reader(shared, threadIdx.x % 32, work.rank);
    int blocks = blocks_of_k(p, work.rank);
#pragma unroll 1
    for (u32 t = work.first; t < p.tiles; t += work.step) {
        int slice = slice_of(p, tile_of(p, t, work.rank), summer);
        u32 lane = shared.first + slice_lane(slice < 0 ? 0 : slice);
        Slice_totals totals = {};
#pragma unroll 1
        for (int block = 0; block < blocks; block++) {
            pipeline.wait_full();
            if (slice >= 0)
                add_stage(lane + pipeline.stage * STAGE_BYTES, totals);
            if (block % SUMMED_AT_ONCE == SUMMED_AT_ONCE - 1)
                keep_totals(totals);
            __syncwarp(); // all lanes have read it
            pipeline.release(pipeline.stage);
            pipeline.advance();
        }
        if (slice < 0)
            continue;
        double total = total_of_slice(totals);
        if (PARTS > 1)
            leave_total(shared, summer, total);
        else if (line_of_total() >= 0)
            store_total(p, tile_of(p, t, work.rank), slice * 16 + line_of_total(), total);
    }
}
