// Boxes of matrices in shared memory: inputs that TMA brings to a warp, outputs that leave from there.
//
// A box lies as TMA wants it: 16 lines of 128 bytes, of whose eight units of 16 bytes the i-th stands in place i ^ line % 8.
#pragma once
#include "sm90/barriers.cuh"
#include "sm90/schedule.cuh"

// A warp's buffers, and where it is in them.
struct Buffers {
    u32 outputs;
    u32 line; // this lane's of eight: of 16 bits, that whose unit it addresses, of 32 that of its row
    int turn; // the output buffer at hand
    u32 inputs, full;
    u32 asked, taken; // boxes of inputs so far
};
__device__ inline Buffers buffers_of(const Shared &shared) {
    return {shared.outputs(),
            BOX_GROUPS == 1 ? threadIdx.x % 32 / 4 : threadIdx.x % 8,
            0,
            shared.inputs(),
            shared.input_full(),
            0,
            0};
}

// >>where a lane's run is: of eight rows `half`, and 32 columns `group` of the box; of a matrix that has so many halves `member`, the
// first of which is the buffer's `first`

template <int Halves> __device__ inline u32 place_in_box(const Buffers &buffers, int half, int group) {
    if constexpr (STAGED_IN_PIECES<Halves>) { // a lane's first, in the unit of the box's line that has it
        u32 line = threadIdx.x % 32 / 4, unit = THIN ? group * 4 : threadIdx.x % 4 / 2;
        return (half * 8 + line) * LINE + ((unit ^ line) << 4) +
               (THIN ? threadIdx.x % 4 * (BOX_GROUPS == 1 ? 4 : 2) : threadIdx.x % 2 * 8 + group * 4);
    }
    u32 unit = BOX_GROUPS == 1 ? threadIdx.x % 4 / 2 : group * 4 + threadIdx.x % 32 / 8;
    return (half * 8 + buffers.line) * LINE + ((unit ^ buffers.line) << 4) + (BOX_GROUPS == 1 ? threadIdx.x % 2 * 8 : 0);
}
template <int Halves> constexpr bool IS_GROUPS = BOXES_GROUPS && Halves > 1; // each is a group, in the place of a half
template <int Halves> __device__ inline u32 output_at(const Buffers &buffers, int first, int member, int half, int group) {
    int matrix = IS_GROUPS<Halves> ? group : member, within = IS_GROUPS<Halves> ? member : group;
    return buffers.outputs + (buffers.turn * OUTPUTS + (matrix + first)) * BOX_BYTES + place_in_box<Halves>(buffers, half, within);
}
template <int Halves> __device__ inline u32 input_at(const Buffers &buffers, int first, int member, int half, int group) {
    int matrix = IS_GROUPS<Halves> ? group : member, within = IS_GROUPS<Halves> ? member : group;
    return buffers.inputs + (buffers.taken % 2 * INPUTS + (matrix + first)) * BOX_BYTES + place_in_box<Halves>(buffers, half, within);
}
// Of a box's matrix the nth, where `column` is that of the halves.
template <int Halves> __device__ inline Box_place place_of_box(const gpi__epilogue_params &p, int column, int nth) {
    if (IS_GROUPS<Halves>)
        return {column * 2 + nth * BOX_COLUMNS, 0};
    if (IN_GROUPS)
        return {(int)column_of_half<Halves>(p, column, nth), 0};
    return {column, nth};
}

// >>inputs

// Has the inputs of a box brought, whose buffer all lanes have left.
__device__ inline void ask_for_inputs(const gpi__sm90_params &p, Buffers &buffers, const Tile &tile, int row, int group) {
    if (INPUTS == 0)
        return;
    u32 item = GROUPED_ROWS ? 0 : tile.item; // of what is one matrix for all groups
    __syncwarp();
    if (is_elected()) {
        u32 buffer = buffers.asked % 2, full = buffers.full + buffer * 8;
        u32 to = buffers.inputs + buffer * INPUTS * BOX_BYTES;
        int column = tile.n * TILE_COLUMNS + group * GROUP;
        barrier_expect(full, INPUTS * BOX_BYTES);
#pragma unroll
        for (int half = 0; half < INPUT_AUX; half++)
            load_input(p.aux, to + half * BOX_BYTES, full, place_of_box<HALVES_SAVED>(p.epilogue, column, half), row, item);
#pragma unroll
        for (int half = 0; half < INPUTS - INPUT_AUX; half++)
            load_input(p.residual, to + (INPUT_AUX + half) * BOX_BYTES, full, place_of_box<HALVES_OUT>(p.epilogue, column, half), row, item);
    }
    buffers.asked++;
}
__device__ inline void wait_for_inputs(const Buffers &buffers) {
    if (INPUTS)
        barrier_wait(buffers.full + buffers.taken % 2 * 8, buffers.taken / 2 & 1);
}

// >>outputs

// The buffer whose turn it is has been read.
__device__ inline void begin_outputs() {
    wait_for_stores<OUTPUT_BUFFERS - 1>(); // of the elected lane, the others have none
    __syncwarp();
}

// What TMA does not take: a matrix of the box whose first row and column these are.
template <class T, int Halves>
__device__ inline void copy_matrix(const gpi__epilogue_params &p, const gpi__kernel_matrix &x, u32 from, int column,
                                   int row, int half, int item) {
    if constexpr (IN_GROUPS && Halves > 1) {
        int first = place_of_box<Halves>(p, column, half).column;
        copy_box<T, BOX_COLUMNS, true>(from, (T *)x.data + offset(x, item, row, first), x.ld, (int)p.m - row, (int)p.n * 2 - first);
    } else {
        copy_box<T, BOX_COLUMNS, true>(from, (T *)x.data + offset(x, item, row, column + half * p.n), x.ld, (int)p.m - row,
                                       (int)p.n - column);
    }
}

#if GEMMEPI_GROUPED == 1
// Of a box whose rows go anywhere, or are not all the group's: those that are, in units of 16 bytes.
template <class T>
__device__ inline void store_rows(const gpi__sm90_params &p, const gpi__kernel_matrix &x, u32 from, int column, int half, int row,
                                  int end) {
    constexpr int of_unit = 16 / sizeof(T);
    int unit = threadIdx.x % 8, line = threadIdx.x % 32 / 8, first = column + unit * of_unit;
#pragma unroll
    for (int i = 0; i < 4; i++, line += 4) {
        u32 words[4];
        get_words(from + line * LINE + ((unit ^ line % 8) << 4), words);
        if (row + line < end && first < (int)p.epilogue.n)
            *reinterpret_cast<uint4 *>((T *)x.data + offset(x, 0, row_of_d(p.groups, row + line), first + half * p.epilogue.n)) = make_uint4(words[0], words[1], words[2], words[3]);
    }
}
__device__ inline void store_rows_of_box(const gpi__sm90_params &p, u32 from, int column, int row, int end) {
    static_assert(!COPIES_D && !COPIES_AUX && !IN_GROUPS, "units of 16 bytes are whole");
#pragma unroll
    for (int half = 0; half < OUTPUT_D; half++)
        store_rows<GEMMEPI_D_TYPE>(p, p.epilogue.d, from + half * BOX_BYTES, column, half, row, end);
    if constexpr (STAGES_AUX)
#pragma unroll
        for (int half = 0; half < HALVES_IN; half++)
            store_rows<GEMMEPI_AUX_TYPE>(p, p.epilogue.aux, from + (half + OUTPUT_D) * BOX_BYTES, column, half, row, end);
}
#endif

__device__ inline void end_outputs(const gpi__sm90_params &p, Buffers &buffers, int column, int row, const Tile &tile) {
    int item = (int)tile.item;
    u32 from = buffers.outputs + buffers.turn * OUTPUTS * BOX_BYTES; // the box at hand
#if GEMMEPI_GROUPED == 1
    if (SCATTERED || row + 16 > end_of_rows(p, tile)) {
        __syncwarp();
        store_rows_of_box(p, from, column, row, end_of_rows(p, tile));
        if (is_elected())
            commit_stores(); // of none, as boxes are counted
        buffers.turn = buffers.turn + 1 == OUTPUT_BUFFERS ? 0 : buffers.turn + 1;
        return;
    }
    item = 0; // D is one for all groups
#endif
    constexpr int moved_d = COPIES_D ? 0 : OUTPUT_D, moved_aux = COPIES_AUX ? 0 : OUTPUTS - OUTPUT_D;
    if (moved_d || moved_aux)
        show_stores();
    __syncwarp();
    if ((moved_d || moved_aux) && is_elected()) {
#pragma unroll
        for (int half = 0; half < moved_d; half++)
            store_output(p.d, from + half * BOX_BYTES, place_of_box<HALVES_OUT>(p.epilogue, column, half), row, item);
#pragma unroll
        for (int half = 0; half < moved_aux; half++)
            store_output(p.aux, from + (half + OUTPUT_D) * BOX_BYTES, place_of_box<HALVES_IN>(p.epilogue, column, half), row, item);
        commit_stores();
    }
#pragma unroll
    for (int half = 0; half < (COPIES_D ? OUTPUT_D : 0); half++)
        copy_matrix<GEMMEPI_D_TYPE, HALVES_OUT>(p.epilogue, p.epilogue.d, from + half * BOX_BYTES, column, row,
                                                half, item);
#pragma unroll
    for (int half = 0; half < (COPIES_AUX ? OUTPUTS - OUTPUT_D : 0); half++)
        copy_matrix<GEMMEPI_AUX_TYPE, HALVES_IN>(p.epilogue, p.epilogue.aux, from + (half + OUTPUT_D) * BOX_BYTES,
                                                 column, row, half, item);
    buffers.turn = buffers.turn + 1 == OUTPUT_BUFFERS ? 0 : buffers.turn + 1;
}
