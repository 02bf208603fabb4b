// Sums over axes of what an operation computes, in a fixed order: `gemmepi_sum_kept` where the innermost axis is kept (the
// columns of a matrix), `gemmepi_sum_along` where it is added up (its rows). They end in the output, or, where one block
// for each sum would not fill the device, in partial sums that another launch adds up.
//
// 16-bit values are added in f32, eight at a time, all else in f64: an axis may have millions of indices.
//
//     GEMMEPI_OUTPUT     the tensor that is summed, named for its operation; in the formula it has the type of an input
//     GEMMEPI_OUT_TYPE   as it lies in memory; F64 of partial sums
//     GEMMEPI_ACCUMULATE 1: add to what it holds
//     GEMMEPI_VECTORS    1: every input is dense and aligned, or repeats, along the innermost axis
//     GEMMEPI_REPEATS    bit t: tensor t is one number along the innermost axis
//     GEMMEPI_AT_ONCE    rows or vectors that a thread has under way, a power of two
//     GEMMEPI_KEPT       1: gemmepi_sum_kept, 0: gemmepi_sum_along
//     GEMMEPI_ONE_AXIS   1: what is added up is one axis, or none
#include "operations.cuh"

constexpr int THREADS = 256, AT_ONCE = GEMMEPI_AT_ONCE; // rows, or vectors, under way at a time
constexpr bool IN_F32 = LARGEST_SIZE <= 2;         // how the first eight are added
constexpr int WIDE = GEMMEPI_VECTORS ? VECTOR : 1;
typedef GEMMEPI_OUT_TYPE Out;

template <int Tensor> constexpr bool REPEATS = (GEMMEPI_REPEATS >> Tensor & 1) != 0;

// The elements from one index on along the innermost axis, as they lie in memory.
template <int Tensor> struct Line {
    Words<Type<Tensor>, WIDE> words;
};
template <int Tensor> __device__ inline Line<Tensor> load_line(const gpi__sum_params &p, long long at, int valid) {
    Line<Tensor> line = {};
    const Type<Tensor> *from = (const Type<Tensor> *)p.data[Tensor] + at;
    if constexpr (REPEATS<Tensor> || WIDE == 1) {
        Run<Type<Tensor>, WIDE> run = {};
        if (valid > 0)
            run.at[0] = *from;
        line.words = words_of(run);
    } else if (valid >= WIDE) {
        line.words = *reinterpret_cast<const Words<Type<Tensor>, WIDE> *>(from);
    } else {
        line.words = words_of(read_elements<WIDE>(from, valid));
    }
    return line;
}

#define LINE(place, name, kind, ...) OF_##kind(Line<place> name;)
struct Lines {
    FORMULA_INPUTS(LINE)
};

template <int Tensor> __device__ inline void take_line(const Line<Tensor> &line, Acc (&v)[TENSORS][WIDE]) {
    words_to_acc(line.words, v[Tensor]);
    if (REPEATS<Tensor>)
#pragma unroll
        for (int i = 1; i < WIDE; i++)
            v[Tensor][i] = v[Tensor][0];
}

#define TAKE_LINE(place, name, kind, ...) OF_##kind(take_line(lines.name, v);)

// What is to be added, for each of the elements; 0 for those that do not exist.
__device__ inline void values_of(const Lines &lines, const Scalars &s, int valid, Acc (&sums)[WIDE]) {
    Acc v[TENSORS][WIDE];
    FORMULA_INPUTS(TAKE_LINE)
#pragma unroll
    for (int i = 0; i < WIDE; i++) {
        Acc one[TENSORS];
#pragma unroll
        for (int t = 0; t < TENSORS; t++)
            one[t] = v[t][i];
        compute(one, s);
        sums[i] = i < valid ? one[GEMMEPI_OUTPUT] : Acc(0);
    }
}

// >>indices: along several axes as one number, the innermost axis counted in lines of WIDE

struct Index {
    long long at[4]; // offset of each input
};
__device__ inline Index operator+(const Index &x, const Index &y) {
    return {x.at[0] + y.at[0], x.at[1] + y.at[1], x.at[2] + y.at[2], x.at[3] + y.at[3]};
}

#define ADD_OFFSET(place, name, kind, ...) OF_##kind(result.at[place] += at * axes.stride[place][d];)

// Offsets of one index; with `lines` the innermost axis counts in lines, of which `first` receives the first element.
__device__ inline Index index_of(const gpi__axes &axes, long long index, bool lines, long long &first) {
    Index result = {};
    first = 0;
#pragma unroll 1
    for (int d = 0; d < axes.rank; d++) {
        long long extent = d == 0 && lines ? (axes.extent[d] + WIDE - 1) / WIDE : axes.extent[d], rest = 0, at = index;
        if (d + 1 < axes.rank) {
            rest = (index | extent) >> 32 ? index / extent : (long long)((u32)index / (u32)extent);
            at = index - rest * extent;
        }
        if (d == 0 && lines) {
            at *= WIDE;
            first = at;
        }
        FORMULA_INPUTS(ADD_OFFSET)
        index = rest;
    }
    return result;
}

#define LOAD_LINE(place, name, kind, ...) OF_##kind(load_line<place>(p, index.at[place], valid), )
__device__ inline Lines load_lines(const gpi__sum_params &p, const Index &index, int valid) {
    return {FORMULA_INPUTS(LOAD_LINE)};
}

#define ADD_STEPS(place, name, kind, ...) OF_##kind(result.at[place] = count * p.summed.stride[place][0];)

// `count` steps along the only axis that is added up.
__device__ inline Index steps_of(const gpi__sum_params &p, long long count) {
    Index result = {};
    FORMULA_INPUTS(ADD_STEPS)
    return result;
}

// >>the end of a sum

// sums: the index among all sums, counted from the innermost kept axis on.
__device__ inline void finish(const gpi__sum_params &p, u32 part, long long index, double sum) {
    long long at = 0, rest = index;
    if (p.part_count < p.summed_count) {
        ((double *)p.data[GEMMEPI_OUTPUT])[part * p.kept_count + index] = sum;
        return;
    }
#pragma unroll 1
    for (int d = 0; d < p.kept.rank; d++) {
        long long next = d + 1 < p.kept.rank ? rest / p.kept.extent[d] : 0;
        at += (rest - next * p.kept.extent[d]) * p.kept.stride[GEMMEPI_OUTPUT][d];
        rest = next;
    }
    Out *out = (Out *)p.data[GEMMEPI_OUTPUT] + at;
    if (GEMMEPI_ACCUMULATE)
        sum += to_acc<double>(*out);
    *out = from_acc<Out>(sum);
}

// In pairs: of eight values each goes through three additions.
template <int N> __device__ inline Acc sum_of(const Acc (&x)[N]) {
    if constexpr (N == 1) {
        return x[0];
    } else {
        Acc pairs[N / 2];
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            pairs[i] = x[2 * i] + x[2 * i + 1];
        return sum_of(pairs);
    }
}

// Count rows to one, likewise.
template <int Count>
__device__ inline void sum_of_rows(const Lines *rows, const Scalars &s, const int *exist, Acc (&sums)[WIDE]) {
    if constexpr (Count == 1) {
        values_of(*rows, s, *exist, sums);
    } else {
        Acc others[WIDE];
        sum_of_rows<Count / 2>(rows, s, exist, sums);
        sum_of_rows<Count / 2>(rows + Count / 2, s, exist + Count / 2, others);
#pragma unroll
        for (int i = 0; i < WIDE; i++)
            sums[i] += others[i];
    }
}

#if GEMMEPI_KEPT

// A block has blockDim.x lines of kept elements, and adds up blockDim.y rows at a time.
extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_sum_kept(GEMMEPI_PARAMS gpi__sum_params p) {
    __shared__ double shared[THREADS * WIDE];
    Scalars s = scalars_of(p.operation);
    u32 part = blockIdx.x / p.kept_blocks, thread = threadIdx.y * blockDim.x + threadIdx.x;
    long long lines = (p.kept.extent[0] + WIDE - 1) / WIDE, kept = p.kept_count / p.kept.extent[0] * lines;
    long long line = (long long)(blockIdx.x - part * p.kept_blocks) * blockDim.x + threadIdx.x, first;
    Index base = index_of(p.kept, line, true, first);
    int valid = line < kept ? p.kept.extent[0] - first < WIDE ? (int)(p.kept.extent[0] - first) : WIDE : 0;
    long long row = part * p.part_count + threadIdx.y, end = (part + 1) * p.part_count, unused;
    end = end < p.summed_count ? end : p.summed_count;
    double sums[WIDE] = {};
    Index next = GEMMEPI_ONE_AXIS ? base + steps_of(p, row) : base, step = steps_of(p, blockDim.y);
    for (; row < end && valid; row += (long long)AT_ONCE * blockDim.y) {
        Lines loaded[AT_ONCE];
        int exist[AT_ONCE];
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            long long at = row + (long long)r * blockDim.y;
            if (!GEMMEPI_ONE_AXIS)
                next = base + index_of(p.summed, at < end ? at : row, false, unused);
            exist[r] = at < end ? valid : 0;
            loaded[r] = load_lines(p, next, exist[r]);
            if (GEMMEPI_ONE_AXIS)
                next = next + step;
        }
        if (IN_F32) {
            Acc values[WIDE];
            sum_of_rows<AT_ONCE>(loaded, s, exist, values);
#pragma unroll
            for (int i = 0; i < WIDE; i++)
                sums[i] += values[i];
        } else {
#pragma unroll
            for (int r = 0; r < AT_ONCE; r++) {
                Acc values[WIDE];
                values_of(loaded[r], s, exist[r], values);
#pragma unroll
                for (int i = 0; i < WIDE; i++)
                    sums[i] += values[i];
            }
        }
    }
#pragma unroll
    for (int i = 0; i < WIDE; i++)
        shared[i * THREADS + thread] = sums[i];
    for (u32 half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
#pragma unroll
            for (int i = 0; i < WIDE; i++)
                shared[i * THREADS + thread] += shared[i * THREADS + thread + half * blockDim.x];
    }
    if (threadIdx.y == 0)
        for (int i = 0; i < valid; i++)
            finish(p, part, line / lines * p.kept.extent[0] + first + i, shared[i * THREADS + thread]);
}

#else

// A block makes blockDim.y sums, each by blockDim.x threads that go through the lines of what is added up. Both are powers
// of two, so a sum's threads are part of one warp, or whole warps.
extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_sum_along(GEMMEPI_PARAMS gpi__sum_params p) {
    __shared__ double warps[THREADS / 32];
    Scalars s = scalars_of(p.operation);
    u32 part = blockIdx.x / p.kept_blocks, thread = threadIdx.y * blockDim.x + threadIdx.x;
    long long index = (long long)(blockIdx.x - part * p.kept_blocks) * blockDim.y + threadIdx.y, unused;
    bool exists = index < p.kept_count;
    Index base = index_of(p.kept, exists ? index : 0, false, unused);
    long long line = part * p.part_count + threadIdx.x, end = (part + 1) * p.part_count;
    end = !exists ? 0 : end < p.summed_count ? end : p.summed_count;
    Index next = GEMMEPI_ONE_AXIS ? base + steps_of(p, line * WIDE) : base, step = steps_of(p, blockDim.x * WIDE);
    double sum = 0;
    for (; line < end; line += (long long)AT_ONCE * blockDim.x) {
        Lines loaded[AT_ONCE];
        int valid[AT_ONCE];
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            long long at = line + (long long)r * blockDim.x, first = at * WIDE;
            if (!GEMMEPI_ONE_AXIS)
                next = base + index_of(p.summed, at < end ? at : line, true, first);
            valid[r] = at >= end ? 0 : p.summed.extent[0] - first < WIDE ? (int)(p.summed.extent[0] - first) : WIDE;
            loaded[r] = load_lines(p, next, valid[r]);
            if (GEMMEPI_ONE_AXIS)
                next = next + step;
        }
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            Acc values[WIDE];
            values_of(loaded[r], s, valid[r], values);
            if (IN_F32)
                sum += sum_of(values);
            else
#pragma unroll
                for (int i = 0; i < WIDE; i++)
                    sum += values[i];
        }
    }
    for (u32 half = (blockDim.x < 32 ? blockDim.x : 32) / 2; half > 0; half /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, half);
    if (blockDim.x > 32) {
        if (thread % 32 == 0)
            warps[thread / 32] = sum;
        __syncthreads();
        for (u32 other = 1; other < blockDim.x / 32; other++)
            sum = threadIdx.x == 0 ? sum + warps[thread / 32 + other] : sum;
    }
    if (threadIdx.x == 0 && exists)
        finish(p, part, index, sum);
}

#endif
