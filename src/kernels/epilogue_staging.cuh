// Runs by way of shared memory, which the kernel stores or has brought.
#pragma once
#include "epilogue_arithmetic.cuh"
#include "epilogue_fragment.cuh"

// STAGED: eight rows and 32 columns of 16 bits to shared memory, by a warp. `to`: lane i's is the place of row i % 8,
// columns i / 8 * 8 on; with STAGES_WORDS the place of its own first pair, whose others are four units on (the unit's number
// xor 1 to 3); of 32 bits likewise (the unit's number xor 2 to 6). Values that do not exist go there too.
// INTERLEAVED: a lane's pieces are apart: THIN elements, four columns from one to the next, or pairs of 16 bits, two runs' in turns.
template <int Halves> constexpr bool STAGED_IN_PIECES = THIN ? Halves == 1 : IN_PAIRS<Halves>;
template <class T> constexpr int STAGED_PIECE = THIN ? sizeof(T) : 4;
template <class T> constexpr int FROM_PIECE_TO_PIECE = THIN ? 4 * STAGED_PIECE<T> : 32;
template <class T, int Halves = 1> __device__ inline void stage_run(u32 to, const Acc (&values)[RUN]) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "pairs are of one or two words");
    Words<T> words = words_of(run_from_acc<T>(values));
    if constexpr (STAGED_IN_PIECES<Halves>) {
#pragma unroll
        for (int i = 0; i < RUN * (int)sizeof(T) / STAGED_PIECE<T>; i++)
            if constexpr (STAGED_PIECE<T> == 4)
                asm volatile("st.shared.b32 [%0], %1;" ::"r"(to ^ i * FROM_PIECE_TO_PIECE<T>), "r"(words.at[i]) : "memory");
            else
                asm volatile("st.shared.b16 [%0], %1;" ::"r"(to ^ i * FROM_PIECE_TO_PIECE<T>), "h"((u16)(words.at[i / 2] >> i % 2 * 16))
                             : "memory");
    } else if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to ^ (u32)i << 5), "r"(words.at[2 * i]),
                         "r"(words.at[2 * i + 1])
                         : "memory");
    } else {
#if GEMMEPI_STAGES_WORDS
#pragma unroll
        for (int i = 0; i < 4; i++)
            asm volatile("st.shared.b32 [%0], %1;" ::"r"(to ^ (u32)i << 4), "r"(words.at[i]) : "memory");
#else
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words.at[0]),
                     "r"(words.at[1]), "r"(words.at[2]), "r"(words.at[3])
                     : "memory");
#endif
    }
}

// A word, or its lower half, to memory, without a branch.
__device__ inline void store_word_if(bool does, u64 to, u32 bits) {
    asm volatile("{\n.reg .pred does;\nsetp.ne.u32 does, %2, 0;\n@does st.global.b32 [%0], %1;\n}" ::"l"(to), "r"(bits), "r"((u32)does)
                 : "memory");
}
__device__ inline void store_half_if(bool does, u64 to, u32 bits) {
    asm volatile("{\n.reg .pred does;\nsetp.ne.u32 does, %2, 0;\n@does st.global.b16 [%0], %1;\n}" ::"l"(to), "h"((u16)bits),
                 "r"((u32)does)
                 : "memory");
}

// A box from there to memory, by a warp: 16 rows of so many columns. Its lines are 128 bytes apart, and of their eight units of 16 the
// i-th stands in place i ^ line % 8. `to` has row 0, column 0; what is left may be more than the box, or less than nothing.
template <class T, int Columns, bool InWords>
__device__ inline void copy_box(u32 from, T *to, long long ld, int rows_left, int columns_left) {
    constexpr int per_word = 4 / sizeof(T), words = InWords ? Columns / per_word : Columns / per_word / 4;
    constexpr int at_once = words < 32 ? 32 / words : 1; // lines
    constexpr int under_way = HALVES_OUT > 1 ? 2 : sizeof(T) == 4 ? 8 : 4; // loads, for which there are registers
    constexpr int rounds = 16 / at_once, loaded = rounds < under_way ? rounds : under_way;
    int line = (int)threadIdx.x % 32 / words, word = (int)threadIdx.x % words;
    int left = columns_left < Columns ? columns_left : Columns, first = word * (InWords ? per_word : 4 * per_word);
    u64 at = (u64)(to + line * ld), step = (u64)(at_once * ld) * sizeof(T);
#pragma unroll 1
    for (int i = 0; i < rounds && i * at_once < rows_left; i += loaded) {
        u32 bits[loaded][InWords ? 1 : 4], next[loaded];
#pragma unroll
        for (int j = 0; j < loaded; j++) {
            u32 of_line = from + (line + j * at_once) * 128;
            int turn = (line + j * at_once) % 8;
            if constexpr (InWords)
                asm volatile("ld.shared.b32 %0, [%1];"
                             : "=r"(bits[j][0])
                             : "r"(of_line + ((word / 4 ^ turn) << 4) + word % 4 * 4)
                             : "memory");
            else
                asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(bits[j][0]), "=r"(bits[j][1]), "=r"(bits[j][2]), "=r"(bits[j][3])
                             : "r"(of_line + ((word ^ turn) << 4))
                             : "memory");
        }
        if constexpr (InWords && per_word == 2)
#pragma unroll
            for (int j = 0; j < loaded; j++)
                next[j] = __shfl_sync(0xffffffffu, bits[j][0], (int)threadIdx.x % 32 + 1);
#pragma unroll
        for (int j = 0; j < loaded; j++, at += step) {
            int left_here = line + j * at_once < rows_left ? left : 0;
            if constexpr (!InWords) {
                uint4 unit;
                memcpy(&unit, bits[j], sizeof unit);
                if (first < left_here)
                    *reinterpret_cast<uint4 *>(at + word * 16) = unit;
            } else if constexpr (per_word == 1)
                store_word_if(first < left_here, at + word * 4, bits[j][0]);
            else { // words of memory may be the halves of two of these
                u32 between = (u32)at >> 1 & 1;
                int left_of_word = left_here - first - (int)between;
                u64 of_word = at + word * 4 + between * 2;
                u32 here = __byte_perm(bits[j][0], next[j], between ? 0x5432 : 0x3210);
                store_half_if(between && word == 0 && left_here > 0, at, bits[j][0]);
                store_word_if(left_of_word >= 2, of_word, here);
                store_half_if(left_of_word == 1, of_word, here);
            }
        }
        line += loaded * at_once;
    }
}

// LOADED: likewise from there.
template <class T, int Halves = 1> __device__ inline Read<T> unstage_run(u32 from) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "pairs are of one or two words");
    u32 words[sizeof(T) * 2];
    if constexpr (STAGED_IN_PIECES<Halves>) {
#pragma unroll
        for (int i = 0; i < RUN * (int)sizeof(T) / STAGED_PIECE<T>; i++)
            if constexpr (STAGED_PIECE<T> == 4) {
                asm volatile("ld.shared.b32 %0, [%1];" : "=r"(words[i]) : "r"(from ^ i * FROM_PIECE_TO_PIECE<T>) : "memory");
            } else {
                u16 piece;
                asm volatile("ld.shared.b16 %0, [%1];" : "=h"(piece) : "r"(from ^ i * FROM_PIECE_TO_PIECE<T>) : "memory");
                words[i / 2] = i % 2 ? words[i / 2] | (u32)piece << 16 : piece;
            }
    } else if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                         : "=r"(words[2 * i]), "=r"(words[2 * i + 1])
                         : "r"(from ^ (u32)i << 5)
                         : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                     : "r"(from)
                     : "memory");
    }
    Read<T> read;
    memcpy(&read, words, sizeof read);
    return read;
}

template <class T, bool Staged, int Halves = 1>
__device__ inline void store(const gpi__kernel_matrix &x, u32 staged, long long item, long long row,
                             long long column, int valid, const Acc (&values)[RUN]) {
    if constexpr (Staged)
        stage_run<T, Halves>(staged, values);
    else
        store_at<T, Halves>((T *)x.data + offset(x, item, row, column), valid, values);
}

// All members of a matrix that has halves, times its scale if it is Scaled.
template <class T, bool Staged, bool Scaled, int Halves>
__device__ inline void store_halves(const gpi__epilogue_params &p, const gpi__kernel_matrix &x, const u32 *staged, Acc scale, long long item,
                                    long long row, long long column, int valid, const Acc (*members)[RUN]) {
    Acc runs[Halves][RUN];
#pragma unroll
    for (int i = 0; i < Halves * RUN; i++)
        runs[i / RUN][i % RUN] = Scaled ? product(members[i / RUN][i % RUN], scale) : members[i / RUN][i % RUN];
    regroup<true>(runs);
#pragma unroll
    for (int half = 0; half < Halves; half++)
        store<T, Staged, Halves>(x, Staged ? staged[half] : 0, item, row, column_of_half<Halves>(p, column, half),
                                 valid_of_half<Halves>(valid, half), runs[half]);
}
