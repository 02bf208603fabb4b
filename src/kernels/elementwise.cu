// An element-wise operation over tensors: `gemmepi_contiguous` where all are dense in the same order, `gemmepi_strided`
// for any strides.
//
//     GEMMEPI_AMAX       1: of a cast, that finds the largest |a|, too
//     GEMMEPI_AT_ONCE    gemmepi_contiguous: vectors that a thread has under way
//     GEMMEPI_REPEATS    gemmepi_contiguous: bit t: tensor t is one number for all
//     GEMMEPI_TILE       gemmepi_strided: a tile's extent along the first axis, a power of two from 8 to 4096; else 0
//     GEMMEPI_PER_THREAD gemmepi_strided: elements of a tile that a thread makes
//     GEMMEPI_MODES      gemmepi_strided: four bits for each tensor, of the enum below
#include "operations.cuh"

constexpr int THREADS = 256;

#if GEMMEPI_TILE == 0

// >>dense tensors

constexpr int AT_ONCE = GEMMEPI_AT_ONCE;

template <int Tensor> constexpr bool REPEATS = (GEMMEPI_REPEATS >> Tensor & 1) != 0;

template <int Tensor> struct Loaded {
    Vector<Tensor> words[AT_ONCE];
};

template <int Tensor>
__device__ inline void load_dense(const gpi__contiguous_params &p, long long first, Loaded<Tensor> &x) {
    if constexpr (!REPEATS<Tensor>)
#pragma unroll
        for (int r = 0; r < AT_ONCE; r++) {
            long long at = first + (long long)r * THREADS * VECTOR, left = p.count - at;
            const Type<Tensor> *from = (const Type<Tensor> *)p.data[Tensor] + at;
            x.words[r] = load_vector<Tensor>(from, left >= VECTOR ? VECTOR : (int)left);
        }
}

template <int Tensor>
__device__ inline void take_dense(const gpi__contiguous_params &p, const Loaded<Tensor> &x, int r,
                                  Acc (&v)[TENSORS][VECTOR]) {
    if constexpr (REPEATS<Tensor>)
        repeat_value<Tensor>(*(const Type<Tensor> *)p.data[Tensor], v);
    else
        to_values<Tensor>(x.words[r], v);
}

template <int Tensor>
__device__ inline void store_dense(const gpi__contiguous_params &p, long long at, int valid,
                                   const Acc (&v)[TENSORS][VECTOR]) {
    store_vector<Tensor>((Type<Tensor> *)p.data[Tensor] + at, valid, from_values<Tensor>(v));
}

#define LOAD_DENSE(place, name, kind, ...) OF_##kind(Loaded<place> name; load_dense<place>(p, first, name);)
#define TAKE_DENSE(place, name, kind, ...) OF_##kind(take_dense<place>(p, name, r, v);)
#define STORE_DENSE(place, ...)            store_dense<place>(p, at, valid, v);

// Blocks: count elements divided by THREADS * AT_ONCE vectors.
extern "C" __global__ void __launch_bounds__(THREADS)
    gemmepi_contiguous(GEMMEPI_PARAMS gpi__contiguous_params p) {
    long long first = (long long)blockIdx.x * (THREADS * AT_ONCE * VECTOR) + threadIdx.x * VECTOR;
    Scalars s = scalars_of(p.operation);
    Magnitude largest = 0;
    FORMULA_INPUTS(LOAD_DENSE)
#pragma unroll
    for (int r = 0; r < AT_ONCE; r++) {
        long long at = first + (long long)r * THREADS * VECTOR, left = p.count - at;
        Acc v[TENSORS][VECTOR];
        FORMULA_INPUTS(TAKE_DENSE)
        operate_on(v, s, largest);
        int valid = left >= VECTOR ? VECTOR : (int)left;
        FORMULA_OUTPUTS(STORE_DENSE)
    }
    if (CAST_AMAX)
        store_largest_of_block<THREADS>(p.operation.amax, largest);
}

#else

// >>any strides

// A block makes a tile of TILE_I x TILE_J indices of the first two axes, in which a thread owns vectors along the first. How
// a tensor comes to be in, or leaves, the threads' registers:
enum {
    ALONG_VECTORS, // dense and aligned along the first axis: by vectors
    REPEATED,      // one number along the first axis
    ALONG_I,       // element by element, neighbouring threads along the first axis, and exchanged in shared memory
    ALONG_J,       // likewise along the second: the tensor is transposed
    COLUMNS        // transposed, dense and aligned along the second axis: by vectors, and exchanged
};
template <int Tensor> constexpr int MODE = GEMMEPI_MODES >> 4 * Tensor & 15;
template <int Tensor> constexpr bool IS_TRANSPOSED = MODE<Tensor> == ALONG_J || MODE<Tensor> == COLUMNS;
template <int Tensor> constexpr bool IS_EXCHANGED = MODE<Tensor> == ALONG_I || IS_TRANSPOSED<Tensor>;

constexpr int PER_THREAD = GEMMEPI_PER_THREAD;
constexpr int TILE_I = GEMMEPI_TILE, TILE_J = THREADS * PER_THREAD / TILE_I;
constexpr int VECTORS = PER_THREAD / VECTOR; // of a thread
static_assert(TILE_J >= 1, "the tile is larger than a block's elements");

#define OR_TRANSPOSED(place, name, kind, ...) OF_##kind(|| IS_TRANSPOSED<place>)
#define OR_EXCHANGED(place, name, kind, ...)  OF_##kind(|| IS_EXCHANGED<place>)
constexpr bool TRANSPOSES = false FORMULA_INPUTS(OR_TRANSPOSED) FORMULA_OUTPUTS(OR_TRANSPOSED);
constexpr bool EXCHANGES = false FORMULA_INPUTS(OR_EXCHANGED) FORMULA_OUTPUTS(OR_EXCHANGED);

// In shared memory: rows along the first axis, an odd number of words long where columns are read or written, so that
// they meet all banks.
template <class T> constexpr int PITCH = TILE_I + (TRANSPOSES ? (sizeof(T) < 4 ? 4 / sizeof(T) : 1) : 0);
constexpr int SHARED_BYTES = EXCHANGES ? TILE_J * (TILE_I + (TRANSPOSES ? 4 : 0)) * LARGEST_SIZE : 16;

// How a thread goes through the tile in a mode: in steps of Unit elements along one axis, Width of them in a line. Both
// Width and THREADS are powers of two, so each step moves by a distance that is known now.
template <int Mode> struct Walk {
    static constexpr bool BY_J = Mode == ALONG_J || Mode == COLUMNS;
    static constexpr int UNIT = Mode == ALONG_I || Mode == ALONG_J ? 1 : VECTOR;
    static constexpr int WIDTH = (BY_J ? TILE_J : TILE_I) / UNIT;
    static constexpr int STEPS = PER_THREAD / UNIT;
    int i, j; // at the first step
    __device__ Walk() {
        int along = threadIdx.x % WIDTH * UNIT, across = threadIdx.x / WIDTH;
        i = BY_J ? across : along;
        j = BY_J ? along : across;
    }
    static constexpr __device__ int along(int step) {
        return step * THREADS % WIDTH * UNIT;
    }
    static constexpr __device__ int across(int step) {
        return step * THREADS / WIDTH;
    }
    static constexpr __device__ int i_of(int step) {
        return BY_J ? across(step) : along(step);
    }
    static constexpr __device__ int j_of(int step) {
        return BY_J ? along(step) : across(step);
    }
};

// Where a tile lies: its extents within the tensors, and its first index along each axis.
struct Place {
    int extent_i, extent_j;
    long long i, j;
    u32 outer; // of the other axes
};

template <int Tensor> __device__ inline Type<Tensor> *tile_of(const gpi__strided_params &p, const Place &place) {
    long long at = place.i * p.stride[Tensor][0] + place.j * p.stride[Tensor][1];
    u32 outer = place.outer;
    for (int d = 2; d < p.rank; d++) {
        u32 rest = outer / p.extent[d];
        at += (long long)(outer - rest * p.extent[d]) * p.stride[Tensor][d];
        outer = rest;
    }
    return (Type<Tensor> *)p.data[Tensor] + at;
}

template <int Tensor> struct Tile {
    Vector<Tensor> words[VECTORS];     // of this thread; COLUMNS: also on the way
    Type<Tensor> single[VECTORS];      // REPEATED
    Type<Tensor> elements[PER_THREAD]; // ALONG_I, ALONG_J: on the way to or from shared memory
};

// How many of a step's elements exist.
template <int Mode> __device__ inline int exist(const Place &place, const Walk<Mode> &walk, int step) {
    int i = place.extent_i - walk.i - Walk<Mode>::i_of(step), j = place.extent_j - walk.j - Walk<Mode>::j_of(step);
    int left = Walk<Mode>::BY_J ? j : i;
    if ((Walk<Mode>::BY_J ? i : j) <= 0)
        return 0;
    return left < Walk<Mode>::UNIT ? left : Walk<Mode>::UNIT;
}

template <int Tensor>
__device__ inline void load_tile(const gpi__strided_params &p, const Place &place, Tile<Tensor> &x) {
    typedef Walk<MODE<Tensor>> W;
    W walk;
    long long step_i = p.stride[Tensor][0], step_j = p.stride[Tensor][1];
    const Type<Tensor> *from = tile_of<Tensor>(p, place) + walk.i * step_i + walk.j * step_j;
#pragma unroll
    for (int step = 0; step < W::STEPS; step++) {
        const Type<Tensor> *at = from + (W::i_of(step) * step_i + W::j_of(step) * step_j);
        int valid = exist(place, walk, step);
        if constexpr (W::UNIT == 1) {
            x.elements[step] = Type<Tensor>();
            if (valid > 0)
                x.elements[step] = *at;
        } else if constexpr (MODE<Tensor> == REPEATED) {
            x.single[step] = Type<Tensor>();
            if (valid > 0)
                x.single[step] = *at;
        } else {
            x.words[step] = load_vector<Tensor>(at, valid);
        }
    }
}

// Between this thread's vectors and shared memory, by words, as rows need not be aligned to more.
template <int Tensor> __device__ inline Vector<Tensor> vector_from_shared(const Type<Tensor> *from) {
    if constexpr (!TRANSPOSES) {
        return *reinterpret_cast<const Vector<Tensor> *>(from);
    } else {
        Vector<Tensor> words;
#pragma unroll
        for (int k = 0; k < sizeof words / sizeof words.at[0]; k++)
            words.at[k] = reinterpret_cast<const typename Vector<Tensor>::Word *>(from)[k];
        return words;
    }
}
template <int Tensor> __device__ inline void vector_to_shared(Type<Tensor> *to, const Vector<Tensor> &words) {
    if constexpr (!TRANSPOSES) {
        *reinterpret_cast<Vector<Tensor> *>(to) = words;
    } else {
#pragma unroll
        for (int k = 0; k < sizeof words / sizeof words.at[0]; k++)
            reinterpret_cast<typename Vector<Tensor>::Word *>(to)[k] = words.at[k];
    }
}

// An input's elements, in the order in which they were loaded, become this thread's vectors. Every thread takes part.
template <int Tensor> __device__ inline void exchange_input(char *shared, Tile<Tensor> &x) {
    if constexpr (IS_EXCHANGED<Tensor>) {
        typedef Walk<MODE<Tensor>> W;
        typedef Walk<ALONG_VECTORS> V;
        constexpr int pitch = PITCH<Type<Tensor>>;
        W walk;
        V vectors;
        Type<Tensor> *tile = (Type<Tensor> *)shared;
        __syncthreads();
#pragma unroll
        for (int step = 0; step < W::STEPS; step++) {
            Type<Tensor> *to = tile + (walk.j * pitch + walk.i) + (W::j_of(step) * pitch + W::i_of(step));
            if constexpr (W::UNIT == 1) {
                *to = x.elements[step];
            } else {
                Run<Type<Tensor>, VECTOR> run = run_of(x.words[step]);
#pragma unroll
                for (int k = 0; k < VECTOR; k++)
                    to[k * pitch] = run.at[k];
            }
        }
        __syncthreads();
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            x.words[v] = vector_from_shared<Tensor>(tile + (vectors.j * pitch + vectors.i) + (V::j_of(v) * pitch + V::i_of(v)));
    }
}

template <int Tensor>
__device__ inline void take_tile(const Tile<Tensor> &x, int v, Acc (&values)[TENSORS][VECTOR]) {
    if constexpr (MODE<Tensor> == REPEATED)
        repeat_value<Tensor>(x.single[v], values);
    else
        to_values<Tensor>(x.words[v], values);
}

template <int Tensor>
__device__ inline void keep_tile(Tile<Tensor> &y, int v, const Acc (&values)[TENSORS][VECTOR]) {
    y.words[v] = from_values<Tensor>(values);
}

template <int Tensor>
__device__ inline void store_tile(const gpi__strided_params &p, const Place &place, char *shared, const Tile<Tensor> &y) {
    typedef Walk<MODE<Tensor>> W;
    typedef Walk<ALONG_VECTORS> V;
    constexpr int pitch = PITCH<Type<Tensor>>;
    W walk;
    V vectors;
    long long step_i = p.stride[Tensor][0], step_j = p.stride[Tensor][1];
    Type<Tensor> *tile = (Type<Tensor> *)shared, *to = tile_of<Tensor>(p, place) + walk.i * step_i + walk.j * step_j;
    if constexpr (IS_EXCHANGED<Tensor>) {
        __syncthreads();
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            vector_to_shared<Tensor>(tile + (vectors.j * pitch + vectors.i) + (V::j_of(v) * pitch + V::i_of(v)), y.words[v]);
        __syncthreads();
    }
#pragma unroll
    for (int step = 0; step < W::STEPS; step++) {
        const Type<Tensor> *from = tile + (walk.j * pitch + walk.i) + (W::j_of(step) * pitch + W::i_of(step));
        Type<Tensor> *at = to + (W::i_of(step) * step_i + W::j_of(step) * step_j);
        int valid = exist(place, walk, step);
        if constexpr (MODE<Tensor> == ALONG_VECTORS) {
            store_vector<Tensor>(at, valid, y.words[step]);
        } else if constexpr (W::UNIT == 1) {
            if (valid > 0)
                *at = *from;
        } else {
            Run<Type<Tensor>, VECTOR> run;
#pragma unroll
            for (int k = 0; k < VECTOR; k++)
                run.at[k] = from[k * pitch];
            store_vector<Tensor>(at, valid, words_of(run));
        }
    }
}

#define TILE(place, name, kind, ...)          OF_##kind(Tile<place> name;)
#define LOAD_TILE(place, name, kind, ...)     OF_##kind(load_tile(p, tile, name);)
#define EXCHANGE_TILE(place, name, kind, ...) OF_##kind(exchange_input(shared, name);)
#define TAKE_TILE(place, name, kind, ...)     OF_##kind(take_tile(name, v, values);)
#define KEEP_TILE(place, name, ...)           keep_tile(name, v, values);
#define STORE_TILE(place, name, ...)          store_tile(p, tile, shared, name);

// Blocks: tiles of the first axis, of the second, and the other axes' indices.
extern "C" __global__ void __launch_bounds__(THREADS) gemmepi_strided(GEMMEPI_PARAMS gpi__strided_params p) {
    __shared__ alignas(16) char shared[SHARED_BYTES];
    u32 rest = blockIdx.x / p.tiles_i;
    Place tile;
    tile.i = (long long)(blockIdx.x - rest * p.tiles_i) * TILE_I;
    tile.outer = rest / p.tiles_j;
    tile.j = (long long)(rest - tile.outer * p.tiles_j) * TILE_J;
    tile.extent_i = p.extent_i - tile.i < TILE_I ? (int)(p.extent_i - tile.i) : TILE_I;
    tile.extent_j = p.extent_j - tile.j < TILE_J ? (int)(p.extent_j - tile.j) : TILE_J;
    Scalars s = scalars_of(p.operation);
    Magnitude largest = 0;
    FORMULA_INPUTS(TILE)
    FORMULA_OUTPUTS(TILE)
    FORMULA_INPUTS(LOAD_TILE)
    FORMULA_INPUTS(EXCHANGE_TILE)
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        Acc values[TENSORS][VECTOR];
        FORMULA_INPUTS(TAKE_TILE)
        operate_on(values, s, largest);
        FORMULA_OUTPUTS(KEEP_TILE)
    }
    FORMULA_OUTPUTS(STORE_TILE)
    if (CAST_AMAX)
        store_largest_of_block<THREADS>(p.operation.amax, largest);
}

#endif
