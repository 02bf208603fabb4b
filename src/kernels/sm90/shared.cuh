// How shared memory is laid out, and the addresses of what lies there.
#pragma once
#include "sm90/options.cuh"

// ADDS_COLUMNS: for each warpgroup a slot, of its four warps the column sums of a unit of columns.
constexpr u32 SLOT_BYTES = UNIT_GROUPS * COLUMN_LINES * WARPGROUP * 4;

struct Shared {
    u32 first; // address of the first byte

    // Each begins where the one before ends; barriers are of 8 bytes.
    static constexpr u32 STAGE = 0;
    static constexpr u32 OUTPUT = STAGE + STAGES * STAGE_BYTES;
    static constexpr u32 INPUT = OUTPUT + WARPS * OUTPUT_BUFFERS * OUTPUTS * BOX_BYTES;
    static constexpr u32 SCALES = INPUT + WARPS * INPUT_BUFFERS * INPUTS * BOX_BYTES;
    static constexpr u32 FULL = SCALES + STAGES * SCALE_BYTES;
    static constexpr u32 EMPTY = FULL + STAGES * 8;
    static constexpr u32 INPUT_FULL = EMPTY + STAGES * 8;
    static constexpr u32 RECEIVED = INPUT_FULL + WARPS * 16;
    // SUMMED with PARTS: the totals of 16 lines of each summer, in F64; ADDS_COLUMNS: slots and their barriers; never both
    static constexpr u32 TOTALS = RECEIVED + (PARTS > 1 ? 16 : 0);
    static constexpr u32 SLOTS = TOTALS;
    static constexpr u32 SLOT_FULL = SLOTS + CONSUMERS * SLOT_BYTES;
    static constexpr u32 SLOT_EMPTY = SLOT_FULL + CONSUMERS * 8;
    static constexpr u32 BYTES = SUMMED ? TOTALS + SUMMERS * 16 * 8 : ADDS_COLUMNS ? SLOT_EMPTY + CONSUMERS * 8 : TOTALS;

    __device__ inline u32 a(u32 stage) const {
        return first + stage * STAGE_BYTES;
    }
    __device__ inline u32 b(u32 stage) const {
        return first + stage * STAGE_BYTES + A_BYTES;
    }
    // of a stage: the scale of a row of A's tile, and the nth of B's
    __device__ inline u32 scale_a(u32 stage, u32 row) const {
        return first + SCALES + stage * SCALE_BYTES + row * 4;
    }
    __device__ inline u32 scale_b(u32 stage, u32 nth) const {
        return scale_a(stage, A_SCALES + nth);
    }
    // of this warp, of those that multiply
    __device__ inline u32 outputs() const {
        return first + OUTPUT + (threadIdx.x / 32 - 4) * (OUTPUT_BUFFERS * OUTPUTS * BOX_BYTES);
    }
    __device__ inline u32 inputs() const {
        return first + INPUT + (threadIdx.x / 32 - 4) * (INPUT_BUFFERS * INPUTS * BOX_BYTES);
    }
    // of a summer's line
    __device__ inline u32 total(int summer, int line) const {
        return first + TOTALS + (summer * 16 + line) * 8;
    }
    // of a thread of the warpgroup: the i-th group of the unit
    __device__ inline u32 slot(u32 warpgroup, u32 thread, int i, int line) const {
        return first + SLOTS + warpgroup * SLOT_BYTES + ((line * UNIT_GROUPS + i) * WARPGROUP + thread) * 4;
    }

    // >>barriers: who arrives and what they guard stands in sm90/barriers.cuh
    __device__ inline u32 full(u32 stage) const {
        return first + FULL + stage * 8;
    }
    __device__ inline u32 empty(u32 stage) const {
        return first + EMPTY + stage * 8;
    }
    __device__ inline u32 input_full() const { // of this warp's first buffer; the second's is the next
        return first + INPUT_FULL + (threadIdx.x / 32 - 4) * 16;
    }
    __device__ inline u32 received() const {
        return first + RECEIVED;
    }
    __device__ inline u32 slot_full(u32 warpgroup) const {
        return first + SLOT_FULL + warpgroup * 8;
    }
    __device__ inline u32 slot_empty(u32 warpgroup) const {
        return first + SLOT_EMPTY + warpgroup * 8;
    }
};
#ifdef GEMMEPI_SHARED // bytes that the host gives
static_assert(Shared::BYTES == GEMMEPI_SHARED, "the host counts the same");
#endif
