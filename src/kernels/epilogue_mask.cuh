// RELU's mask, in bits.
#pragma once
#include "epilogue_fragment.cuh"

// RELU's mask: offsets count bits, and a run side by side begins at a multiple of 8, so that it is one byte. Bits past n
// stay.
__device__ inline void store_mask_byte(u8 *byte, u32 bits, int valid) {
    u32 mine = (1u << valid) - 1;
    *byte = valid == RUN ? (u8)bits : (u8)((*byte & ~mine) | (bits & mine));
}
__device__ inline u32 mask_of_run(const Acc (&v)[RUN]) {
    u32 bits = 0;
#pragma unroll
    for (int i = 0; i < RUN; i++)
        bits |= (u32)(v[i] > 0) << place(i);
    return bits;
}
// SPREAD: that of 32 columns of a row, in all of its lanes.
__device__ inline u32 mask_of_row(const Acc (&v)[RUN]) {
    u32 bits = mask_of_run(v) << 2 * lane_of_row();
    bits |= __shfl_xor_sync(0xffffffffu, bits, 1);
    return bits | __shfl_xor_sync(0xffffffffu, bits, IN_ROW);
}
__device__ inline void store_mask(const gpi__kernel_matrix &x, long long item, long long row, long long column,
                                  int valid, const Acc (&v)[RUN]) {
    u32 bits;
    if (SPREAD) { // of which each lane writes eight
        int lane = lane_of_row();
        bits = mask_of_row(v) >> 8 * lane & 0xff;
        column += 6 * lane;
        valid = existing(valid - 6 * lane);
        if (valid <= 0)
            return;
    } else {
        bits = mask_of_run(v);
        if (FINDS && valid == 0) // a lane that is there for its neighbours
            return;
    }
    store_mask_byte((u8 *)x.data + offset(x, item, row, column) / 8, bits, valid);
}

// RELU's mask of a row's 32 columns: each of its four lanes reads the byte of eight of them. Bit place(i) is the i-th's.
__device__ inline u32 load_spread_mask(const gpi__epilogue_params &p, long long item, long long row, long long column,
                                       int valid) {
    int lane = lane_of_row();
    u32 byte = 0;
    if (valid > 6 * lane)
        byte = ((const u8 *)p.aux.data)[offset(p.aux, item, row, column + 6 * lane) / 8];
    u32 bits = byte << 8 * lane;
    bits |= __shfl_xor_sync(0xffffffffu, bits, 1);
    bits |= __shfl_xor_sync(0xffffffffu, bits, IN_ROW);
    return bits >> 2 * lane;
}

// KEEPS_MASK: each of a row's four lanes keeps the mask of one of the box's runs,
__device__ inline void keep_mask(Epilogue_state &state, const Acc (&v)[RUN]) {
    u32 bits = mask_of_row(v);
    if (lane_of_row() == state.mask_place)
        state.kept_mask = bits;
}
// until the box of 16 rows and as many groups of 32 columns has ended: row and column are its first.
__device__ inline void store_kept_masks(const gpi__epilogue_params &p, const Epilogue_state &state, long long item,
                                        int row, int column, int groups) {
    int group = lane_of_row() / 2;
    row += lane_of_row() % 2 * 8 + row_of_lane();
    column += group * 32;
    if (group >= groups || row >= (int)p.m)
        return;
    u8 *bytes = (u8 *)p.aux.data + offset(p.aux, item, row, column) / 8;
    if (column + 32 <= (int)p.n)
        *reinterpret_cast<u32 *>(bytes) = state.kept_mask;
    else
        for (int i = 0; column + i * RUN < (int)p.n; i++)
            store_mask_byte(bytes + i, state.kept_mask >> i * RUN & 0xff, existing((int)p.n - column - i * RUN));
}
