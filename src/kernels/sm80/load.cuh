// Tiles of operands on their way from memory to a stage: by cp.async, or through registers.
#pragma once
#include "sm80/options.cuh"

// Of one operand: Lines rows of op(A) or columns of op(B), whose elements along k (Rows) or those lie side by side. As many
// threads as a line has pieces copy it together, each its piece of some lines of each stage, a quarter of them at a time.
// Halves: of B, which lie `apart` elements along Lines.
template <bool Rows, int Lines, int Unit, int Halves> struct Loader {
    static constexpr int PIECE = Unit == 2 ? 16 : Unit, PIECES = LINE / PIECE, ELEMENTS = PIECE / ELEMENT;
    static constexpr int STEP = THREADS / PIECES, COUNT = Lines / STEP; // lines between two of a thread's
    static constexpr int PART = (COUNT + 3) / 4; // of them at a time, at most
    static_assert(TILE_K % STEP == 0 && Lines / Halves % STEP == 0, "all threads copy as much");
    const Element *from, *at; // this thread's first piece of the stage, and its next one
    long long ld, apart;
    int exist;                       // from this thread's first line or piece on, along m or n
    bool inside;                     // all of the block's exist
    u32 to;                          // in a stage
    Element held[Unit == 2 ? PART * ELEMENTS : 1]; // what comes through registers, an element at a time
    static constexpr bool BY_WORDS = !ASYNC && Unit > 2;
    Words<Element, ELEMENTS> pieces[BY_WORDS ? PART : 1]; // or a piece

    // first, extent: along m or n; first_k: of the block's part
    __device__ inline Loader(const gpi__kernel_matrix &x, long long item, long long first, long long extent,
                             long long first_k) {
        int line = (int)threadIdx.x / PIECES, piece = (int)threadIdx.x % PIECES, unit = piece * PIECE / 16;
        ld = x.ld;
        apart = extent;
        from = (const Element *)x.data + item * x.stride +
               (Rows ? (first + line) * ld + first_k + piece * ELEMENTS : (first_k + line) * ld + first + piece * ELEMENTS);
        long long left = extent - first - (Rows ? line : piece * ELEMENTS);
        exist = left < Lines ? (int)left : Lines;
        inside = first + Lines / Halves <= extent;
        to = line * LINE + ((unit ^ turn_of<Rows>(line)) << 4) + piece * PIECE % 16;
    }

    // Goes on to the i-th piece, of which so many elements exist; k_left: from the stage's first on
    __device__ inline int go_to(int i, int k_left) {
        constexpr int of_half = Lines / Halves, of_run = Rows ? of_half : TILE_K; // lines that are ld apart
        int line = i * STEP, half = line / of_half, within = line % of_half;
        int piece_k = (int)threadIdx.x % PIECES * ELEMENTS, line_k = (int)threadIdx.x / PIECES;
        if (line % of_run)
            at += STEP * ld;
        else
            at = from + (Rows ? half * apart * ld : within / TILE_K * TILE_K + half * apart);
        asm volatile("" : "+l"(at), "+r"(exist)); // one after another: all at once would take registers
        if (Rows)
            return within < exist ? k_left - piece_k : 0;
        return line_k + line % TILE_K < k_left ? exist - within / TILE_K * TILE_K : 0;
    }
    __device__ inline u32 place_of(u32 stage, int i) const {
        return ((stage + to) ^ (u32)(turn_of<Rows>(i * STEP) << 4)) + i * STEP * LINE;
    }

    template <bool Whole> __device__ inline void fetch_part(u32 stage, int part, int k_left) {
#pragma unroll
        for (int p = 0; p < PART; p++) {
            int i = part * PART + p;
            if (i >= COUNT)
                break;
            int valid = go_to(i, k_left);
            if constexpr (Unit == 2) {
#pragma unroll
                for (int j = 0; j < ELEMENTS; j++)
                    held[p * ELEMENTS + j] = Whole || j < valid ? at[j] : (Element)0;
            } else if constexpr (BY_WORDS)
                pieces[p] = Whole || valid >= ELEMENTS ? *reinterpret_cast<const Words<Element, ELEMENTS> *>(at)
                                                       : words_of(read_elements<ELEMENTS>(at, valid));
            else if (Whole)
                copy_whole<Unit>(place_of(stage, i), at);
            else
                copy_some<Unit>(place_of(stage, i), at, valid <= 0 ? 0 : valid >= ELEMENTS ? PIECE : valid * ELEMENT);
        }
    }
    __device__ inline void fetch(u32 stage, int part, int k_left) {
        if (inside && k_left >= TILE_K)
            fetch_part<true>(stage, part, k_left);
        else
            fetch_part<false>(stage, part, k_left);
    }
    // What came through registers goes where it was fetched for.
    __device__ inline void put(u32 stage, int part) const {
        if constexpr (Unit == 2 || BY_WORDS) {
#pragma unroll
            for (int p = 0; p < PART; p++) {
                u32 words[PIECE / 4];
                if (BY_WORDS)
                    memcpy(words, &pieces[p], sizeof words);
                else
                    memcpy(words, held + p * ELEMENTS, sizeof words);
                if (part * PART + p < COUNT)
                    put_words(place_of(stage, part * PART + p), words);
            }
        }
    }

    __device__ inline void next() {
        from += Rows ? TILE_K : TILE_K * ld;
        asm volatile("" : "+l"(ld)); // so that what follows from it does not stay in registers
    }
};
