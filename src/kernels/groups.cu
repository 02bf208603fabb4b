// Grouped products, before their kernel: the ends and indices checked, and the groups divided into parts, one for each tile's rows.
//
// One block, as groups are few: what it takes is behind the launch, but for long indices. Of many parts several blocks list some each, and
// each checks all. Where anything is wrong there are no parts, so that nothing is written, and the host's memory says what.
#include "types.cuh"
#include "params.h"

#ifndef GEMMEPI_THREADS
#define GEMMEPI_THREADS 1024
#endif

constexpr int THREADS = GEMMEPI_THREADS, WARP = 32;
constexpr int EACH = GPI__MOST_GROUPS / THREADS; // groups of a thread
constexpr int NONE = 0x7fffffff;

// >>checks

// The first place that is wrong, of this thread's.
__device__ inline int wrong_end(const gpi__groups_params &p, const int (&ends)[EACH], int before) {
    for (int i = 0; i < EACH; i++) {
        int group = (int)threadIdx.x * EACH + i;
        if (group < p.groups && (ends[i] < before || ends[i] > p.positions))
            return group;
        before = ends[i];
    }
    return NONE;
}
// Some are asked for at a time, as each takes long to come.
__device__ inline int wrong_index(const int *index, int limit, int positions) {
    constexpr int AT_ONCE = 16;
    int wrong = NONE;
    for (int first = (int)threadIdx.x; first < positions && wrong == NONE; first += THREADS * AT_ONCE) {
        int values[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            values[i] = first + i * THREADS < positions ? index[first + i * THREADS] : 0;
#pragma unroll
        for (int i = AT_ONCE; i-- > 0;)
            if (first + i * THREADS < positions && (values[i] < 0 || values[i] >= limit))
                wrong = first + i * THREADS;
    }
    return wrong;
}

__device__ inline void say_fault(const gpi__groups_params &p, int which, int at) {
    gpi__fault *fault = p.faults + which;
    const int *list = which == GPI__FAULT_ENDS ? p.ends : p.indices[which - GPI__FAULT_A];
    int before = at ? list[at - 1] : 0;
    fault->at = at;
    fault->value = list[at];
    fault->beside = which != GPI__FAULT_ENDS ? p.limits[which - GPI__FAULT_A] : list[at] < before ? before : p.positions;
    __threadfence_system(); // the host reads is_set first
    *(volatile int *)&fault->is_set = 1;
}

// >>sums

// The sum of `own` of all threads before this one. shared: a number of each warp.
__device__ inline int sum_before(int own, int *shared) {
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, sum = own;
    for (int step = 1; step < WARP; step *= 2) {
        int other = __shfl_sync(0xffffffffu, sum, lane - step);
        sum += lane >= step ? other : 0;
    }
    if (lane == WARP - 1)
        shared[warp] = sum;
    __syncthreads();
    int of_warps = 0;
    for (int i = 0; i < warp; i++)
        of_warps += shared[i];
    return of_warps + sum - own;
}

// The least of all threads' numbers. shared: a number of each warp, which no thread reads any more.
__device__ inline int least(int own, int *shared) {
    for (int step = WARP / 2; step; step /= 2) {
        int other = __shfl_xor_sync(0xffffffffu, own, step);
        own = other < own ? other : own;
    }
    if (threadIdx.x % WARP == 0)
        shared[threadIdx.x / WARP] = own;
    __syncthreads();
    for (int i = 0; i < THREADS / WARP; i++)
        own = shared[i] < own ? shared[i] : own;
    __syncthreads();
    return own;
}

// >>which group

// Of the first `count` numbers, which ascend, how many are at most x: there is one.
__device__ inline int last_at_most(const int *numbers, int count, int x) {
    int low = 0, high = count;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (numbers[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// >>parts of a group: rows of tiles, times columns

// Rows of tiles; `low` says that of the last rows, which are few, a tile has two columns.
struct Tile_rows {
    int full, low;
};
__device__ inline Tile_rows tile_rows_of(const gpi__groups_params &p, int rows) {
    if (!p.tile)
        return {1, 0};
    int full = rows / p.tile, rest = rows - full * p.tile, low = rest > 0 && rest <= p.low;
    return {full + (rest > 0 && !low), low};
}
__device__ inline int parts_of(const gpi__groups_params &p, Tile_rows rows) {
    return rows.full * p.columns + (rows.low ? (p.columns + 1) / 2 : 0);
}

struct Part_place {
    int row, column;
};
// The nth part of a group: columns within bands of columns, row after row, so that what is under way at a time is all of a band in a few
// rows. A band's low tiles come last; bands have an even number of columns, but for the last one.
__device__ inline Part_place place_of_part(const gpi__groups_params &p, Tile_rows rows, int nth) {
    int of_band = rows.full * p.band + (rows.low ? p.band / 2 : 0), band = nth / of_band, first = band * p.band;
    int width = p.columns - first < p.band ? p.columns - first : p.band, within = nth - band * of_band, row = within / width;
    if (row < rows.full)
        return {row, first + within - row * width};
    return {rows.full, first + 2 * (within - rows.full * width)};
}

// >>the kernel

// Whether an end or an index is wrong, which the first thread says. before: the end ahead of this thread's; positions: as many as there are.
__device__ inline bool find_faults(const gpi__groups_params &p, const int (&ends)[EACH], int before, int *sums, int &positions) {
    int wrong[GPI__FAULTS];
    wrong[GPI__FAULT_ENDS] = least(wrong_end(p, ends, before), sums);
    positions = wrong[GPI__FAULT_ENDS] == NONE ? p.ends[p.groups - 1] : 0;
    for (int i = 0; i < 3; i++) // the same of all threads
        wrong[GPI__FAULT_A + i] =
            p.indices[i] ? least(wrong_index(p.indices[i], p.limits[i], positions), sums) : NONE;
    bool is_wrong = false, is_first = blockIdx.x == 0 && threadIdx.x == 0;
    for (int i = 0; i < GPI__FAULTS; i++) {
        is_wrong = is_wrong || wrong[i] != NONE;
        if (is_first && wrong[i] != NONE)
            say_fault(p, i, wrong[i]);
    }
    if (is_wrong && is_first)
        *p.count = 0;
    return is_wrong;
}

extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_groups(GEMMEPI_PARAMS gpi__groups_params p) {
    __shared__ int starts[GPI__MOST_GROUPS + 1], parts[GPI__MOST_GROUPS + 1]; // of each group: its first position and part
    __shared__ int sums[THREADS / WARP];
    after_launches_before();

    int ends[EACH], first = (int)threadIdx.x * EACH, positions;
    for (int i = 0; i < EACH; i++)
        ends[i] = first + i < p.groups ? p.ends[first + i] : 0;
    int before = first && first <= p.groups ? p.ends[first - 1] : 0;
    if (find_faults(p, ends, before, sums, positions))
        return;

    // What the product's kernel raises
    for (int i = 0; i < 2; i++)
        if (p.amax[i] && blockIdx.x == 0 && (int)threadIdx.x < p.amax_words)
            p.amax[i][threadIdx.x] = 0;

    // Parts of groups
    int own = 0, of_group[EACH], start = before;
    for (int i = 0; i < EACH; i++) {
        of_group[i] = first + i < p.groups ? parts_of(p, tile_rows_of(p, ends[i] - start)) : 0;
        own += of_group[i];
        if (first + i < p.groups) {
            starts[first + i] = start;
            start = ends[i];
        }
    }
    int part = sum_before(own, sums);
    for (int i = 0; i < EACH; i++) {
        if (first + i < p.groups)
            parts[first + i] = part;
        part += of_group[i];
    }
    if (threadIdx.x == THREADS - 1) {
        starts[p.groups] = positions;
        parts[p.groups] = part;
        if (blockIdx.x == 0)
            *p.count = part;
    }
    __syncthreads();

    // Written side by side. A group that follows empty ones has the same first part as they: the last of them is it.
    int count = parts[p.groups];
    for (int i = (int)(blockIdx.x * THREADS + threadIdx.x); i < count; i += (int)gridDim.x * THREADS) {
        int group = last_at_most(parts, p.groups, i), from = starts[group], end = starts[group + 1];
        Part_place at = place_of_part(p, tile_rows_of(p, end - from), i - parts[group]);
        from += at.row * p.tile;
        gpi__group_part one = {group, from, p.tile && end - from > p.tile ? from + p.tile : end, at.column};
        p.parts[i] = one;
    }
}

// Rows of A that an index says, side by side. A warp copies a row.
extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_gather(GEMMEPI_PARAMS gpi__gather_params p) {
    after_launches_before();
    constexpr int ROWS = THREADS / WARP; // of a block at a time
    int positions = *p.count ? p.ends[p.groups - 1] : 0;
    for (int row = (int)(blockIdx.x * ROWS + threadIdx.x / WARP); row < positions; row += (int)gridDim.x * ROWS) {
        const uint4 *from = (const uint4 *)p.from + p.index[row] * p.ld;
        uint4 *to = (uint4 *)p.to + row * p.to_ld;
        for (int i = (int)threadIdx.x % WARP; i < p.units; i += WARP * 4) {
            uint4 units[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (i + j * WARP < p.units)
                    units[j] = from[i + j * WARP];
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (i + j * WARP < p.units)
                    to[i + j * WARP] = units[j];
        }
    }
}
