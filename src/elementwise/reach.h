/* Where a tensor lies, for the checks of each run. */
#ifndef GEMMEPI_ELEMENTWISE_REACH_H
#define GEMMEPI_ELEMENTWISE_REACH_H

#include "../problem/overlap.h"

typedef struct gpi__reach_of {
    gpi__layout layout;
    int64_t low, high; /* bytes from the pointer; both 0: the tensor has no element */
} gpi__reach_of;

/* offset: bytes from the pointer to the element of index 0. */
static gpi__reach_of gpi__reach_of_layout(const gpi__layout *layout, int64_t offset) {
    gpi__reach_of reach;
    int d;
    reach.layout = *layout;
    reach.low = offset;
    reach.high = offset + layout->size;
    for (d = 0; d < layout->rank; d++) {
        int64_t last = (layout->shape[d] - 1) * layout->stride[d];
        if (layout->shape[d] == 0) {
            reach.low = reach.high = 0;
            return reach;
        }
        if (last < 0)
            reach.low += last;
        else
            reach.high += last;
    }
    return reach;
}

#endif
