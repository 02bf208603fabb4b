// RELU's mask, which its gradient reads: a word of a lane for each 32 columns of a tile.
#pragma once
#include "sm90/schedule.cuh"

// LOADS_MASK: of a tile's columns, for two strips of 64 rows the warp's 16 of each: lane i has row i % 16 of strip i / 16.
constexpr int MASK_WORDS = TILE_COLUMNS / 32;
struct alignas(MASK_WORDS == 4 ? 16 : 8) Masks {
    u32 words[MASK_WORDS];
};
// row: the warp's first
__device__ inline Masks load_masks(const gpi__sm90_params &params, const Tile &tile, int row) {
    const gpi__epilogue_params &p = params.epilogue;
    Masks masks = {};
    int column = tile.n * TILE_COLUMNS;
    row += (int)threadIdx.x % 32 / 16 * 64 + threadIdx.x % 16;
    if (!LOADS_MASK || row >= (int)p.m)
        return masks;
    const u8 *bytes = (const u8 *)p.aux.data + offset(p.aux, tile.item, row, column) / 8;
    if (column + TILE_COLUMNS <= (int)p.n)
        masks = *reinterpret_cast<const Masks *>(bytes);
    else // a line may end with its last byte
#pragma unroll
        for (int i = 0; i < MASK_WORDS * 4; i++)
            if (column + i * 8 < (int)p.n)
                masks.words[i / 4] |= (u32)bytes[i] << i % 4 * 8;
    return masks;
}
// Those of this lane's row of eight, `half` of 16 of `strip`, and of 32 columns.
__device__ inline u32 mask_of(const Masks &masks, int strip, int half, int group) {
    u32 word = masks.words[0];
#pragma unroll
    for (int i = 1; i < MASK_WORDS; i++)
        word = group == i ? masks.words[i] : word;
    return __shfl_sync(0xffffffffu, word, strip * 16 + half * 8 + (int)threadIdx.x % 32 / 4);
}
