/* Numbers that fuzzers draw: of the bytes that libFuzzer gives, or of a seed (Knuth's MMIX generator), by the same decoder. */
#ifndef GEMMEPI_TESTS_DRAW_H
#define GEMMEPI_TESTS_DRAW_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const unsigned char *drawn_from, *drawn_end; /* the bytes that are left */
static uint64_t draw_state; /* of the generator, once they are used up; 0: zeros come then */

static void draw_from_bytes(const void *bytes, size_t size) {
    drawn_from = (const unsigned char *)bytes;
    drawn_end = drawn_from + size;
    draw_state = 0;
}

static unsigned draw_byte(void) {
    if (drawn_from < drawn_end)
        return *drawn_from++;
    if (!draw_state)
        return 0;
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(draw_state >> 56);
}

static void draw_from_seed(uint64_t seed) {
    drawn_from = drawn_end = NULL;
    draw_state = seed * 0x9e3779b97f4a7c15u | 1;
    (void)draw_byte();
}

static uint64_t next(void) {
    uint64_t value = 0;
    int i;
    for (i = 0; i < 8; i++)
        value = value << 8 | draw_byte();
    return value;
}

/* One byte where that will do, so that a byte changed is one choice changed. */
static int below(int n) {
    unsigned value = draw_byte();
    if (n > 256)
        value = value << 16 | draw_byte() << 8 | draw_byte();
    return (int)(value % (unsigned)n);
}

/* Rare things do not happen where bytes have run out. */
static int one_in(int n) {
    return below(n) == n - 1;
}

static int draw_is_modest; /* extents and strides fit the memory of a host */

/* An extent: small ones, and powers of two with their neighbours, up to 2^62. */
static int64_t extent(void) {
    int64_t power;
    if (draw_is_modest)
        return below(one_in(12) ? 70 : 12);
    switch (below(8)) {
    case 0:
        return 1 + below(9);
    case 1:
        return one_in(3) ? 0 : 1;
    case 2:
    case 3:
        return 1 + below(300);
    default:
        power = (int64_t)1 << (one_in(8) ? below(63) : below(40));
        return power + below(3) - (power > 1);
    }
}

/* Of n extents so that they fit 2^56 together, most times, and modest ones what a host computes at once: each takes what others leave. */
static void extents(int64_t *out, int n) {
    int64_t left = (int64_t)1 << (draw_is_modest ? 14 : 56);
    int i, at = below(n);
    for (i = 0; i < n; i++, at = (at + 1) % n) {
        out[at] = extent();
        if (out[at] > left && (draw_is_modest || !one_in(20)))
            out[at] = 1 + below(2);
        if (out[at] > 1)
            left /= out[at];
    }
}

static int64_t stride_for(int64_t dense) {
    switch (below(6)) {
    case 0:
        return dense;
    case 1:
        return 0;
    case 2:
        return dense < INT64_MAX - 100 ? dense + below(100) : dense;
    case 3:
        return extent();
    default:
        return dense < INT64_MAX / 8 ? (dense + 7) / 8 * 8 : dense;
    }
}

static int64_t times(int64_t x, int64_t y) {
    return y && x > INT64_MAX / 16 / y ? INT64_MAX / 16 : x * y;
}

/* A number at which something may change its meaning, or any. */
static uint64_t garbage(void) {
    static const uint64_t edges[] = {0,          UINT64_MAX, 1,          2,          3,          7,
                                     16,         127,        128,        129,        1024,       4096,
                                     4097,       0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, 1ull << 40,
                                     1ull << 62, 1ull << 63, INT64_MAX};
    int edge = below(1 + (int)(sizeof edges / sizeof edges[0]));
    return edge < (int)(sizeof edges / sizeof edges[0]) ? edges[edge] : next();
}

/* Has each line of hex in the file, which may end with a remark behind '#', run as bytes. Returns how many there are. */
static int run_seeds(const char *path, void (*run)(const unsigned char *bytes, size_t size)) {
    static char line[8192];
    unsigned char bytes[sizeof line / 2];
    int count = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        size_t size = 0;
        unsigned byte;
        while (sscanf(line + 2 * size, "%2x", &byte) == 1)
            bytes[size++] = (unsigned char)byte;
        if (!size)
            continue;
        run(bytes, size);
        count++;
    }
    if (file)
        fclose(file);
    return count;
}

/* Overwrites 4 or 8 bytes of a struct, but no pointer: `pointers` are their places, ended by 0 behind the first. */
static void spoil(void *block, size_t size, const size_t *pointers, int count) {
    size_t width = one_in(2) ? 8 : 4, at = (size_t)below((int)(size / width)) * width;
    uint64_t value = garbage();
    int i;
    for (i = 0; i < count; i++)
        if (at < pointers[i] + sizeof(void *) && pointers[i] < at + width)
            return;
    memcpy((char *)block + at, &value, width);
}

#endif
