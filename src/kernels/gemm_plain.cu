// The route plain: product and epilogue in one launch, for any types, layouts, alignment and scales. A block of four
// warps makes a tile of 64 x 64. The operands' lines along k stand in shared memory, 128 bytes at a time, in the type
// in which they are multiplied: on tensor cores what these take without loss, the rest by fused multiply and add.
//
// Also grouped products of any kind (GROUPED): a block's rows are a part of a group, or its steps of k are a group's. There a tile
// has both halves of GATED, 32 columns of each.
#include "epilogue.cuh"
#include "groups.cuh"
#include "mma.cuh"

#ifndef GEMMEPI_A_TYPE
#define GEMMEPI_A_TYPE       F32
#define GEMMEPI_B_TYPE       F32
#define GEMMEPI_A_TRANSPOSED 0   // 0: a is stored [m, k], 1: [k, m]
#define GEMMEPI_B_TRANSPOSED 0   // 0: b is stored [k, n], 1: [n, k]
#define GEMMEPI_A_ALIGNED    0   // 1: every run of a as stored starts at a multiple of its size, 16 bytes at most
#define GEMMEPI_B_ALIGNED    0
#define GEMMEPI_COMPUTE_TYPE F32 // F16, BF16, F32, F64 or I8, which holds every value of both operands
#define GEMMEPI_CHUNK        0   // steps of k after which sums go to the totals, a multiple of 128; 0: all of k
#endif
#ifndef GEMMEPI_ROW_SCALE_A
#define GEMMEPI_ROW_SCALE_A 0 // GROUPED: the mode of a's scales, which the epilogue does not know, as its rows are those of D
#endif

typedef GEMMEPI_A_TYPE A;
typedef GEMMEPI_B_TYPE B;
typedef GEMMEPI_COMPUTE_TYPE Compute;

template <bool Condition, class X, class Y> struct Choice {
    typedef X type;
};
template <class X, class Y> struct Choice<false, X, Y> {
    typedef Y type;
};
template <bool Condition, class X, class Y> using Choose = typename Choice<Condition, X, Y>::type;

constexpr bool TENSOR_CORES = SAME<Compute, F16> || SAME<Compute, I8> ? __CUDA_ARCH__ >= 750 // which Turing has, too
                                                                       : SAME<Compute, BF16> && __CUDA_ARCH__ >= 800;
typedef Choose<SAME<Compute, I8>, int, Choose<SAME<Compute, F64>, double, float>> Accumulated;
typedef Choose<TENSOR_CORES, Compute, Accumulated> Staged; // the type in shared memory

constexpr int THREADS = 128, WARP = 32;
constexpr int TILE = 64;                                   // rows and columns of a block
constexpr int SPLIT = GROUPED ? HALVES_IN : 1;             // halves whose columns a block has
constexpr int TILE_COLUMNS = TILE / SPLIT;                 // of each
constexpr int OCTET = 8;                                   // rows and columns among which a warp's fragments interleave
constexpr int OCTETS = TILE / 2 / OCTET;                   // of a warp, both ways: it makes 32 x 32
constexpr int LINE_BYTES = 128, LINE_PITCH = 144;          // a line along k, and from one to the next
constexpr int PIECE = 16;                                  // bytes of one access to shared memory
constexpr int STEP = LINE_BYTES / (int)sizeof(Staged);     // of k
constexpr int RESULT_PITCH = TILE + 8;                     // of the accumulators in shared memory
constexpr int OPERAND_BYTES = TILE * LINE_PITCH;
constexpr int SHARED_BYTES = TILE * RESULT_PITCH * sizeof(Acc) > 4 * OPERAND_BYTES ? TILE * RESULT_PITCH * sizeof(Acc)
                                                                                   : 4 * OPERAND_BYTES;

constexpr int MODE_OF_A = GROUPED ? GEMMEPI_ROW_SCALE_A : GEMMEPI_SCALE_A;
constexpr bool A_VARIES = MODE_OF_A == SCALE_VECTOR_128 || MODE_OF_A == SCALE_BLOCK_128; // along k
constexpr bool B_VARIES = GEMMEPI_SCALE_B == SCALE_VECTOR_128 || GEMMEPI_SCALE_B == SCALE_BLOCK_128;
constexpr bool CHUNKED = GEMMEPI_CHUNK != 0;
static_assert(GEMMEPI_CHUNK % STEP == 0, "a chunk is whole steps");
static_assert((!A_VARIES && !B_VARIES) || GEMMEPI_CHUNK == SCALE_STEPS, "scales vary from chunk to chunk");

// Chunks of whole numbers without scales stay whole: the totals then have the upper bits, the sums keep the lower 16.
constexpr bool HIGH_TOTALS = CHUNKED && SAME<Accumulated, int> && !A_VARIES && !B_VARIES;
typedef Choose<HIGH_TOTALS, int, Acc> Total;

// Where byte `byte` of line `outer` is. Four pieces change places from one octet of lines to the next, so that neither
// a fragment's lines nor the octets into which transposed runs are scattered crowd the same banks. The lines of a warp's
// fragments begin at multiples of four octets, so that the order is known when compiling.
__device__ constexpr int place(int outer, int byte) {
    return outer * LINE_PITCH + ((byte / PIECE ^ outer / OCTET % 4) * PIECE | byte % PIECE);
}

// >>an operand on its way from memory to shared memory: the next step's is fetched to registers during multiplication

// But not where it comes in so many single bytes, each in a register of its own, that these would not suffice.
constexpr int SINGLE_BYTES = (sizeof(A) == 1 && !GEMMEPI_A_ALIGNED) + (sizeof(B) == 1 && !GEMMEPI_B_ALIGNED);
constexpr bool FETCHES_AHEAD = SINGLE_BYTES * TILE * STEP / THREADS < 64;

// What a tile of an operand is, beside where it begins. k: its first step; index: of stored lines, where Gathers.
struct Tile_place {
    long long outer, k;
    const int *index;
    long long other_half; // Split: columns from a half to the other
};

// Transposed: the stored lines run along the outer index, else along k. Split: of the outer indices the upper half are the other half's.
template <class T, bool Transposed, bool Aligned, bool Split = false, bool Gathers = false> struct Operand {
    static constexpr int PACKED = Transposed && sizeof(Staged) < 4 ? 4 / (int)sizeof(Staged) : 1; // lines for a word
    static constexpr int LINE_RUNS = (Transposed ? TILE : STEP) / RUN; // threads beside each other on a stored line
    static constexpr int LINES = THREADS / LINE_RUNS;                  // stored lines of a unit, if not PACKED
    static constexpr int UNITS = TILE * STEP / RUN / THREADS / PACKED;

    Words<T> runs[UNITS][PACKED];
    const T *from; // the thread's first run
    long long ld;
    int line, run; // the thread's stored line of a unit, and where its run begins on it
    const int *index;     // Gathers: of the tile's first line
    long long other_half; // Split: from where the upper half would be to where it is

    __device__ Operand(const gpi__kernel_matrix &x, long long item, const Tile_place &at) {
        ld = x.ld;
        line = (int)threadIdx.x / LINE_RUNS * PACKED;
        run = (int)threadIdx.x % LINE_RUNS * RUN;
        from = (const T *)x.data + item * x.stride + (Gathers ? 0 : line * ld) + run + (Transposed ? at.outer : at.k);
        long long first = Transposed ? at.k : at.outer;
        from += Gathers ? 0 : first * ld;
        index = Gathers ? at.index + first : nullptr;
        other_half = Split ? (at.other_half - TILE / 2) * (Transposed ? 1 : ld) : 0;
        if (Split && Transposed && run >= TILE / 2)
            from += other_half;
    }

    // From the thread's first line to one that exists.
    __device__ long long to_line(int next) const {
        if constexpr (Gathers)
            return index[line + next] * ld;
        else if constexpr (Split && !Transposed)
            return next * ld + (line + next >= TILE / 2 ? other_half : 0);
        else
            return next * ld;
    }

    // outer_left, k_left: how much of the tile and of the step exists
    __device__ void fetch(int outer_left, int k_left) {
        int lines_left = (Transposed ? k_left : outer_left) - line;
        int run_left = (Transposed ? outer_left : k_left) - (Split && Transposed ? run % (TILE / 2) : run);
        int valid = existing(run_left);
        if (Aligned && valid == RUN && lines_left > ((UNITS - 1) * LINES + 1) * PACKED - 1)
            fetch_runs<true>(lines_left, valid);
        else
            fetch_runs<false>(lines_left, valid);
        if (Gathers && Transposed)
            index += STEP;
        else
            from += Transposed ? STEP * ld : STEP;
    }

    // Whole: every run exists
    template <bool Whole> __device__ void fetch_runs(int lines_left, int valid) {
#pragma unroll
        for (int unit = 0; unit < UNITS; unit++)
#pragma unroll
            for (int i = 0; i < PACKED; i++) {
                int next = unit * LINES * PACKED + i;
                if constexpr (Gathers || (Split && !Transposed)) {
                    bool exists = Split && !Transposed ? (line + next) % (TILE / 2) < lines_left + line : next < lines_left;
                    runs[unit][i] = read_run<Aligned>(exists ? from + to_line(next) : from, exists ? valid : 0);
                } else {
                    runs[unit][i] = read_run<Aligned>(from + next * ld, Whole ? RUN : next < lines_left ? valid : 0);
                }
            }
    }

    __device__ void put(u8 *shared) const {
#pragma unroll
        for (int unit = 0; unit < UNITS; unit++) {
            int at = line + unit * LINES * PACKED;
            Words<Staged> staged[PACKED];
#pragma unroll
            for (int i = 0; i < PACKED; i++)
                staged[i] = convert_run<Staged>(runs[unit][i]);
            if constexpr (Transposed)
                put_across(shared, at, staged);
            else
                put_along(shared, at, staged[0]);
        }
    }

    // a run along k
    __device__ void put_along(u8 *shared, int outer, const Words<Staged> &staged) const {
        constexpr int bytes = sizeof(staged) < PIECE ? sizeof(staged) : PIECE, words = bytes / sizeof(u32);
        struct alignas(bytes) Part {
            u32 at[words];
        };
#pragma unroll
        for (int i = 0; i < (int)sizeof(staged) / bytes; i++) {
            Part part;
#pragma unroll
            for (int word = 0; word < words; word++)
                part.at[word] = staged.at[i * words + word];
            *reinterpret_cast<Part *>(shared + place(outer, run * (int)sizeof(Staged) + i * bytes)) = part;
        }
    }

    // runs along the outer index at PACKED steps of k from `k` on
    __device__ void put_across(u8 *shared, int k, const Words<Staged> (&staged)[PACKED]) const {
        struct alignas(PACKED * sizeof(Staged)) Element {
            u32 at[PACKED * sizeof(Staged) / sizeof(u32)];
        };
#pragma unroll
        for (int outer = 0; outer < RUN; outer++) {
            Element element;
            if constexpr (PACKED == 1) {
                constexpr int words = sizeof(element) / sizeof(u32);
#pragma unroll
                for (int word = 0; word < words; word++)
                    element.at[word] = staged[0].at[outer * words + word];
            } else if constexpr (PACKED == 2) {
                element.at[0] = __byte_perm(staged[0].at[outer / 2], staged[1].at[outer / 2],
                                            outer % 2 ? 0x7632 : 0x5410);
            } else {
                constexpr u32 front = 0x5140, back = 0x7362; // bytes 0 and 1, or 2 and 3, of two words in turn
                u32 pick = outer % 4 < 2 ? front : back;
                u32 first = __byte_perm(staged[0].at[outer / 4], staged[1].at[outer / 4], pick);
                u32 second = __byte_perm(staged[2].at[outer / 4], staged[3].at[outer / 4], pick);
                element.at[0] = __byte_perm(first, second, outer % 2 ? 0x7632 : 0x5410);
            }
            *reinterpret_cast<Element *>(shared + place(run + outer, k * (int)sizeof(Staged))) = element;
        }
    }
};

// >>multiplication. Thread (eighth, quarter) of a warp has row `eighth` and columns 2 * quarter and the next of each octet
// of rows and columns: so the tensor cores want it. sums[i][j] are those of octet i of rows and j of columns.

template <class T> __device__ inline void multiply_octets(T, float (&sums)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    multiply_16(T(), sums, a, b[0], b[1]);
}
__device__ inline void multiply_octets(I8, int (&sums)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    multiply_32(sums, a, b[0], b[1]);
}

// One step of k on tensor cores; a and b are the lines of the warp's rows and columns.
template <class T>
__device__ inline void multiply_fragments(const u8 *a, const u8 *b, Accumulated (&sums)[OCTETS][OCTETS][2]) {
    int eighth = threadIdx.x % WARP / 4, quarter = threadIdx.x % 4;
    a += eighth * LINE_PITCH + quarter * sizeof(u32);
    b += eighth * LINE_PITCH + quarter * sizeof(u32);
#pragma unroll
    for (int byte = 0; byte < LINE_BYTES; byte += 2 * PIECE) {
        u32 left[OCTETS / 2][4], right[OCTETS][2];
#pragma unroll
        for (int i = 0; i < OCTETS; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int at = place(i * OCTET, byte + half * PIECE);
                left[i / 2][i % 2 + 2 * half] = *reinterpret_cast<const u32 *>(a + at);
                right[i][half] = *reinterpret_cast<const u32 *>(b + at);
            }
#pragma unroll
        for (int i = 0; i < OCTETS; i += 2)
#pragma unroll
            for (int j = 0; j < OCTETS; j++) {
                Accumulated both[4] = {sums[i][j][0], sums[i][j][1], sums[i + 1][j][0], sums[i + 1][j][1]};
                multiply_octets(T(), both, left[i / 2], right[j]);
#pragma unroll
                for (int e = 0; e < 4; e++)
                    sums[i + e / 2][j][e % 2] = both[e];
            }
    }
}

__device__ inline int multiply_add(int x, int y, int z) {
    return sum(product(x, y), z);
}
__device__ inline float multiply_add(float x, float y, float z) {
    return fmaf(x, y, z);
}
__device__ inline double multiply_add(double x, double y, double z) {
    return fma(x, y, z);
}

// One step of k without tensor cores, in the same order.
__device__ inline void multiply_elements(const u8 *a, const u8 *b, Accumulated (&sums)[OCTETS][OCTETS][2]) {
    constexpr int count = PIECE / (int)sizeof(Accumulated);
    struct alignas(PIECE) Part {
        Accumulated at[count];
    };
    int eighth = threadIdx.x % WARP / 4, quarter = threadIdx.x % 4;
    a += eighth * LINE_PITCH;
    b += quarter * 2 * LINE_PITCH;
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int byte = 0; byte < LINE_BYTES / 2; byte += PIECE) {
            Part left[OCTETS], right[OCTETS][2];
#pragma unroll
            for (int i = 0; i < OCTETS; i++) {
                left[i] = *reinterpret_cast<const Part *>(a + place(i * OCTET, byte));
#pragma unroll
                for (int e = 0; e < 2; e++)
                    right[i][e] = *reinterpret_cast<const Part *>(b + place(i * OCTET + e, byte));
            }
#pragma unroll
            for (int k = 0; k < count; k++)
#pragma unroll
                for (int i = 0; i < OCTETS; i++)
#pragma unroll
                    for (int j = 0; j < OCTETS; j++)
#pragma unroll
                        for (int e = 0; e < 2; e++)
                            sums[i][j][e] = multiply_add(left[i].at[k], right[j][e].at[k], sums[i][j][e]);
        }
        a += LINE_BYTES / 2;
        b += LINE_BYTES / 2;
    }
}

// >>sums of chunks

// The scales along k of a thread's `Each` neighboring lines of each octet, from line `first` on; `extent` lines exist.
template <int Mode, int Each> struct Chunk_scales {
    const float *at;
    long long step;
    long long left;
    float values[OCTETS][Each];

    __device__ Chunk_scales(const gpi__kernel_scale &scale, long long item, long long first, long long extent,
                            long long k) {
        // lines past the end take the last one's
        long long outer = first < extent ? first : extent - 1;
        Scale_line line = scale_line<Mode>(scale.data + item * scale.stride, outer, extent, k);
        at = line.at;
        step = line.step;
        left = extent - first;
    }
    __device__ void next() {
#pragma unroll
        for (int i = 0; i < OCTETS; i++)
#pragma unroll
            for (int e = 0; e < Each; e++) {
                int line = i * OCTET + e;
                if (Mode == SCALE_BLOCK_128) // a warp's lines are of one block
                    values[i][e] = i + e == 0 ? *at : values[0][0];
                else
                    values[i][e] = line < left ? at[line] : 0;
            }
        at += step;
    }
};

// Likewise of lines that may be any, as groups' rows, and columns of two halves.
template <int Mode, int Each> struct Line_scales {
    const float *at[OCTETS][Each];
    long long step;
    float values[OCTETS][Each];

    __device__ void point(int i, int e, const float *scale, long long line, long long extent, long long k) {
        Scale_line first = scale_line<Mode == SCALE_OUTER ? SCALE_VECTOR_128 : Mode>(scale, line, extent, k);
        at[i][e] = first.at;
        step = first.step;
    }
    __device__ void next() {
#pragma unroll
        for (int i = 0; i < OCTETS; i++)
#pragma unroll
            for (int e = 0; e < Each; e++) {
                values[i][e] = *at[i][e];
                at[i][e] += step;
            }
    }
};

#if GEMMEPI_GROUPED
// Of a thread's rows from position `first` on, eight apart; those from `left` on take the first one's.
typedef Line_scales<MODE_OF_A, 1> Row_scales;
__device__ inline Row_scales scales_of_rows(const gpi__plain_params &params, long long first, int left) {
    Row_scales scales;
#pragma unroll
    for (int i = 0; i < OCTETS; i++) {
        long long position = first + (i * OCTET < left ? i * OCTET : 0);
        long long row = left <= 0 ? 0 : GATHERS_A && GROUPED_ROWS ? params.groups.index_a[position] : position;
        scales.point(i, 0, params.epilogue.scale_a.data, row, params.groups.rows_a, params.k);
    }
    return scales;
}

// Of a thread's two columns of each octet from `first` on, of a half of n columns.
typedef Line_scales<GEMMEPI_SCALE_B, 2> Column_scales;
__device__ inline Column_scales scales_of_columns(const gpi__plain_params &params, long long item, long long first, int half) {
    const gpi__epilogue_params &p = params.epilogue;
    Column_scales scales;
#pragma unroll
    for (int i = 0; i < OCTETS * 2; i++) {
        long long column = first + i / 2 * OCTET + i % 2;
        column = (column < p.n ? column : p.n - 1) + half * p.n;
        scales.point(i / 2, i % 2, p.scale_b.data + item * p.scale_b.stride, column, p.n * SPLIT, params.k);
    }
    return scales;
}
#endif

template <class T> __device__ inline void add_to_total(T &value, Total &total, float factor) {
    if constexpr (HIGH_TOTALS) {
        total += value >> 16;
        value &= 0xffff;
    } else {
        total += (Acc)value * (Acc)factor;
        value = 0;
    }
}

// Adds the scaled sums of a chunk to the totals; the sums begin anew.
template <class Left, class Right>
__device__ inline void add_chunk(const Left &left, const Right &right, Accumulated (&sums)[OCTETS][OCTETS][2],
                                 Total (&totals)[OCTETS][OCTETS][2]) {
#pragma unroll
    for (int i = 0; i < OCTETS; i++)
#pragma unroll
        for (int j = 0; j < OCTETS; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                add_to_total(sums[i][j][e], totals[i][j][e],
                             (A_VARIES ? left.values[i][0] : 1) * (B_VARIES ? right.values[j][e] : 1));
}

__device__ inline Acc finished(Accumulated value, Total total) {
    if (HIGH_TOTALS)
        return (Acc)((long long)total * 65536 + (long long)value);
    return CHUNKED ? (Acc)total : (Acc)value;
}

// >>a step of k, and what a block makes

template <class Left, class Right>
__device__ inline void fetch(Left &a, Right &b, int rows, int columns, int k_left) {
    a.fetch(rows, k_left);
    b.fetch(columns, k_left);
}

template <class Left, class Right>
__device__ inline void put(Left &a, Right &b, int rows, int columns, int k_left, u8 *shared) {
    if (!FETCHES_AHEAD)
        a.fetch(rows, k_left);
    a.put(shared);
    if (!FETCHES_AHEAD) {
        __syncthreads(); // so that b does not start before a is through
        b.fetch(columns, k_left);
    }
    b.put(shared + OPERAND_BYTES);
}

// What a block makes: rows [row, row + rows) and columns of an item, over `depth` steps of k from the first on.
struct Block_tile {
    u32 part, item; // part: item * row tiles + row tile
    long long row, first_k, depth;
    int rows;
};

// GROUPED: the part of the groups that it takes; none where rows is 0.
__device__ inline Block_tile tile_of_block(const gpi__plain_params &params) {
    const gpi__epilogue_params &p = params.epilogue;
    u32 part = blockIdx.x / p.column_tiles;
#if GEMMEPI_GROUPED
    u32 nth = GROUPED_K ? part / p.row_tiles : part;
    if ((int)nth >= *params.groups.count)
        return {};
    gpi__group_part of = params.groups.parts[nth];
    long long row = GROUPED_K ? (long long)(part - nth * p.row_tiles) * TILE : of.first;
    long long left = GROUPED_K ? p.m - row : of.end - row;
    return {part, (u32)of.group, row, GROUPED_K ? of.first : 0, GROUPED_K ? of.end - of.first : params.k,
            left < TILE ? (int)left : TILE};
#else
    u32 item = part / p.row_tiles;
    long long tile_row = (long long)(part - item * p.row_tiles) * TILE;
    return {part, item, tile_row, 0, params.k, p.m - tile_row < TILE ? (int)(p.m - tile_row) : TILE};
#endif
}

#if GEMMEPI_GROUPED
#define GEMMEPI_INDEX_OF(params, name) params.groups.index_##name
#define GEMMEPI_ROW_OF_D(params, row)  row_of_d(params.groups, row)
#else
#define GEMMEPI_INDEX_OF(params, name) nullptr
#define GEMMEPI_ROW_OF_D(params, row)  (row)
#endif

// >>the end of a tile

// All sums to shared memory, where the operands were, so that a thread finds runs of a row there. row, column: of a warp's in the tile.
template <class Left>
__device__ inline void put_results(Acc *results, int row, int column, const Left &left, const Accumulated (&sums)[OCTETS][OCTETS][2],
                                   const Total (&totals)[OCTETS][OCTETS][2]) {
    int eighth = threadIdx.x % WARP / 4, quarter = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < OCTETS; i++)
#pragma unroll
        for (int j = 0; j < OCTETS; j++) {
            int at = (row + i * OCTET + eighth) * RESULT_PITCH + column + j * OCTET + quarter * 2;
            results[at] = finished(sums[i][j][0], totals[i][j][0]);
            results[at + 1] = finished(sums[i][j][1], totals[i][j][1]);
#if GEMMEPI_GROUPED
            if (MODE_OF_A == SCALE_OUTER) {
                results[at] = product(results[at], (Acc)*left.at[i][0]);
                results[at + 1] = product(results[at + 1], (Acc)*left.at[i][0]);
            }
#endif
        }
}

// A thread's runs of `columns` columns from `tile_column` on, in each of its rows.
__device__ inline void finish_tile(const gpi__plain_params &params, const Block_tile &tile, long long tile_column, int columns,
                                   const Acc *results) {
    const gpi__epilogue_params &p = params.epilogue;
    constexpr int width = TILE_COLUMNS / RUN, height = THREADS / width;
    int x = (int)threadIdx.x % width, y = (int)threadIdx.x / width;
    int valid = existing(columns - x * RUN);
    long long first = tile_column + x * RUN;
    Epilogue_state state = begin_epilogue(p, PLACES_OF(params), tile.item, first, valid);
    Column_sums<false> column_sums;
#pragma unroll 1
    for (int r = y; r < tile.rows && valid > 0; r += height) {
        Acc v[HALVES][RUN];
        Saved saved;
        long long row_of_result = GEMMEPI_ROW_OF_D(params, tile.row + r);
        load_saved(p, state, tile.item, row_of_result, first, valid, saved);
#pragma unroll
        for (int i = 0; i < SPLIT * RUN; i++)
            v[i / RUN][i % RUN] = results[r * RESULT_PITCH + i / RUN * TILE_COLUMNS + x * RUN + i % RUN];
        epilogue(p, state, load_columns(p, tile.item, first, valid), saved, tile.item, row_of_result, first, valid, v);
        store_result(p, state, tile.item, row_of_result, first, valid, v);
        if constexpr (ADDS_COLUMNS)
            column_sums.add(state, true);
    }
    if constexpr (ADDS_COLUMNS)
        store_sums_of_threads<THREADS>(p, PLACES_OF(params), {(u32)x, (u32)y, width, tile.part, first, valid}, column_sums.of_lane);
    end_epilogue(p, state);
}

// >>the kernel

// Multiplies a step's lines of both operands; row, column: the warp's in its tile.
__device__ inline void multiply_step(const u8 *lines, int row, int column, Accumulated (&sums)[OCTETS][OCTETS][2]) {
    const u8 *a = lines + row * LINE_PITCH, *b = lines + OPERAND_BYTES + column * LINE_PITCH;
    if constexpr (TENSOR_CORES)
        multiply_fragments<Staged>(a, b, sums);
    else
        multiply_elements(a, b, sums);
}

// Blocks: items * row tiles * column tiles.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    gemmepi_plain(GEMMEPI_PARAMS gpi__plain_params params) {
    __shared__ alignas(PIECE) u8 shared[SHARED_BYTES];
    const gpi__epilogue_params &p = params.epilogue;
    const Block_tile tile = tile_of_block(params);
    u32 item = tile.item;
    int rows = tile.rows;
    long long tile_row = tile.row, tile_column = (long long)(blockIdx.x - tile.part * p.column_tiles) * TILE_COLUMNS;
    int columns = p.n - tile_column < TILE_COLUMNS ? (int)(p.n - tile_column) : TILE_COLUMNS;
    if (GROUPED && rows == 0)
        return;
    int row = (int)threadIdx.x / WARP % 2 * (TILE / 2), column = (int)threadIdx.x / WARP / 2 * (TILE / 2);
    int eighth = threadIdx.x % WARP / 4, quarter = threadIdx.x % 4;

    Accumulated sums[OCTETS][OCTETS][2] = {};
    Total totals[OCTETS][OCTETS][2] = {};
    Operand<A, GEMMEPI_A_TRANSPOSED, GEMMEPI_A_ALIGNED, false, GATHERS_A> a(
        params.a, item, {tile_row, tile.first_k, GEMMEPI_INDEX_OF(params, a), 0});
    Operand<B, !GEMMEPI_B_TRANSPOSED, GEMMEPI_B_ALIGNED, (SPLIT > 1), GATHERS_B> b(
        params.b, item, {tile_column, tile.first_k, GEMMEPI_INDEX_OF(params, b), p.n});
#if GEMMEPI_GROUPED
    Row_scales scales_a = scales_of_rows(params, tile_row + row + eighth, rows - row - eighth);
    int half = column / TILE_COLUMNS; // a warp's columns are of one
    Column_scales scales_b = scales_of_columns(params, item, tile_column + column % TILE_COLUMNS + quarter * 2, half);
#else
    Chunk_scales<GEMMEPI_SCALE_A, 1> scales_a(p.scale_a, item, tile_row + row + eighth, p.m, params.k);
    Chunk_scales<GEMMEPI_SCALE_B, 2> scales_b(p.scale_b, item, tile_column + column + quarter * 2, p.n, params.k);
#endif
    u8 *now = shared, *next = shared + 2 * OPERAND_BYTES, *last;
    int k_left = tile.depth < STEP ? (int)tile.depth : STEP;
    if (FETCHES_AHEAD && k_left > 0)
        fetch(a, b, rows, columns, k_left);
    if (k_left > 0)
        put(a, b, rows, columns, k_left, now);
    __syncthreads();
    int chunk_left = 0;
    for (long long left = tile.depth; left > 0; left -= STEP) {
        k_left = left - STEP < STEP ? (int)(left - STEP) : STEP;
        if (FETCHES_AHEAD && k_left > 0)
            fetch(a, b, rows, columns, k_left);
        if (CHUNKED && chunk_left == 0) {
            chunk_left = GEMMEPI_CHUNK / STEP;
            if (A_VARIES)
                scales_a.next();
            if (B_VARIES)
                scales_b.next();
        }
        multiply_step(now, row, column, sums);
        if (CHUNKED && (--chunk_left == 0 || k_left <= 0))
            add_chunk(scales_a, scales_b, sums, totals);
        if (k_left > 0)
            put(a, b, rows, columns, k_left, next);
        __syncthreads();
        last = now, now = next, next = last;
    }

    Acc *results = reinterpret_cast<Acc *>(shared);
    put_results(results, row, column, scales_a, sums, totals);
    __syncthreads();
    finish_tile(params, tile, tile_column, columns, results);
}
