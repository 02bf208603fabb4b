/* What fuzzers make of a desc that was good: garbage. */
#ifndef GEMMEPI_TESTS_GARBAGE_H
#define GEMMEPI_TESTS_GARBAGE_H

#include "products/problem.h"

/* A number at which something may change its meaning, or any. */
static uint64_t garbage_number(rng *r) {
    static const uint64_t edges[] = {0,          1,          2,          7,          16,          127,
                                     128,        129,        UINT64_MAX, 0x7fffffff, 0x80000000u, 0xffffffff,
                                     1ull << 32, 1ull << 40, 1ull << 62, 1ull << 63, INT64_MAX};
    return rng_one_in(r, 3) ? rng_next(r) : edges[rng_below(r, (int)(sizeof edges / sizeof edges[0]))];
}

/* Overwrites 4 or 8 bytes somewhere: a field of a struct, or part of one. */
static void garbage_spoil(void *block, size_t size, rng *r) {
    size_t width = rng_one_in(r, 2) ? 4 : 8;
    size_t at = (size_t)rng_below(r, (int)(size / width)) * width;
    uint64_t value = garbage_number(r);
    memcpy((char *)block + at, &value, width);
}

/* Spoils up to three fields of a desc, which are no pointers, or all of it. */
static void garbage_spoil_desc(void *desc, size_t size, uint64_t seed) {
    rng r = rng_seeded(seed ^ 0xbadu);
    size_t i;
    int times = 1 + rng_below(&r, 3);
    if (rng_one_in(&r, 10)) {
        for (i = 0; i < size; i++)
            ((unsigned char *)desc)[i] = (unsigned char)rng_next(&r);
        return;
    }
    while (times-- > 0)
        garbage_spoil(desc, size, &r);
}

static int garbage_is_known(gemmepi_status status) {
    return strcmp(gemmepi_status_name(status), "unknown status") != 0;
}

#endif
