/* What a kernel finds wrong with the lists of a grouped product, in words: the host's own check says the same. */
#ifndef GEMMEPI_BASE_FAULT_H
#define GEMMEPI_BASE_FAULT_H

#include "status.h"

/* In the order of kernels/params.h, which counts them. */
static const char *const gpi__names_of_lists[] = {"ends", "index_a", "index_b", "index_d"};

#define GPI__LISTS 4

/* value: what the list says at `at`; beside: of ends what the one before says, or the most, and of indices what they must be less than. */
static gemmepi_status gpi__refuse_list(int list, int at, int value, int beside) {
    const char *name = gpi__names_of_lists[list];
    GPI__INVALID_IF(list, "args.%s[%d] of a grouped product is %d; accepted are 0 to %d: nothing was written",
                    name, at, value, beside - 1);
    GPI__INVALID_IF(
        value < beside,
        "args.ends[%d] of a grouped product is %d, but %d comes before it; ends say where groups end, not how large they are: "
        "nothing was written",
        at, value, beside);
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "args.ends[%d] of a grouped product is %d, but there are %d positions: nothing was written", at,
        value, beside);
}

#endif
