// Shared memory by its address: words of it, and copies to it that a thread asks for and waits for later.
#pragma once
#include "types.cuh"

constexpr bool ASYNC = __CUDA_ARCH__ >= 800; // cp.async; else operands come through registers

// >>copies

// Of 4, 8 or 16 bytes, both ends at multiples of them.
template <int Unit> __device__ inline void copy_whole(u32 to, const void *from) {
    if constexpr (Unit == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(Unit) : "memory");
}
// Zeros follow so many bytes.
template <int Unit> __device__ inline void copy_some(u32 to, const void *from, int bytes) {
    if constexpr (Unit == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(bytes), "n"(Unit) : "memory");
}
__device__ inline void copies_commit() {
    if constexpr (ASYNC)
        asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int Left> __device__ inline void copies_wait() {
    if constexpr (ASYNC)
        asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

// >>words, as many bytes as they are

__device__ inline void put_word(u32 to, u32 word) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}
__device__ inline void put_words(u32 to, const u32 (&words)[1]) {
    put_word(to, words[0]);
}
__device__ inline void put_words(u32 to, const u32 (&words)[2]) {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(words[0]), "r"(words[1]) : "memory");
}
__device__ inline void put_words(u32 to, const u32 (&words)[4]) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
}
__device__ inline u32 get_word(u32 from) {
    u32 word;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
    return word;
}
__device__ inline void get_words(u32 from, u32 (&words)[1]) {
    words[0] = get_word(from);
}
__device__ inline void get_words(u32 from, u32 (&words)[2]) {
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "r"(from) : "memory");
}
__device__ inline void get_words(u32 from, u32 (&words)[4]) {
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) : "r"(from) : "memory");
}
__device__ inline void get_words(u32 from, float (&words)[4]) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(words[0]), "=f"(words[1]), "=f"(words[2]), "=f"(words[3]) : "r"(from) : "memory");
}
