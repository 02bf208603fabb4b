/* What a run of an element-wise plan reads and writes: tensors that lie by strides, and scales and amax, which lie by themselves. */
#ifndef GEMMEPI_ELEMENTWISE_REGIONS_H
#define GEMMEPI_ELEMENTWISE_REGIONS_H

#include "../device/run.h"
#include "../problem/product_regions.h"

#define GPI__MOST_POINTERS 33 /* of a formula: 32 operands and y */

typedef struct gpi__reach_of {
    gpi__layout layout;
    int64_t low, high; /* bytes from the pointer; both 0: there is no element */
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

static int gpi__is_tensor(const gpi__region *region) {
    return region->kind == GPI__OF_OPERANDS;
}

/* Adds a tensor; low and high may be beyond its pointer either way. */
static void gpi__add_tensor(gpi__regions *regions, int place, int written, const void *pointer,
                            const gpi__reach_of *reach) {
    gpi__region *region = gpi__add_region(regions, GPI__OF_OPERANDS, place, written, pointer, 0);
    region->begin += (uintptr_t)reach->low;
    region->end += (uintptr_t)reach->high;
    region->lies = reach;
}

static gpi__layout gpi__layout_of_region(const gpi__region *region) {
    gpi__layout number;
    if (gpi__is_tensor(region))
        return ((const gpi__reach_of *)region->lies)->layout;
    memset(&number, 0, sizeof number);
    number.size = (int64_t)(region->end - region->begin);
    return number;
}

static gemmepi_status gpi__refuse_tensors(const gpi__regions *regions, const gpi__region *output,
                                          const gpi__region *other, int shares, const char *rule) {
    const gpi__region *first = gpi__is_tensor(other) ? output : other,
                      *second = first == output ? other : output;
    char room[128], others[128];
    const char *name = regions->name(regions->owner, first, room);
    const char *beside = regions->name(regions->owner, second, others);
    GPI__INVALID_IF(!gpi__is_tensor(first), "%s (%p, %llu bytes) overlaps %s (%p)", name, first->pointer,
                    (gpi__ull)(first->end - first->begin), beside, second->pointer);
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s (%p), which is written, overlaps %s (%p)%s; %s", name,
                     first->pointer, beside, second->pointer, gpi__if_undecided(shares), rule);
}

/* distance: bytes from the output's element of index 0 to the other's. may_be: the other may be the output in the very same order. */
static gemmepi_status gpi__judge_tensors(const gpi__regions *regions, const gpi__region *output,
                                         const gpi__region *other, int64_t distance, int may_be,
                                         const char *rule) {
    gpi__layout p = gpi__layout_of_region(output), q = gpi__layout_of_region(other);
    int shares;
    if (may_be && distance == 0 && p.rank == q.rank && memcmp(p.shape, q.shape, sizeof p.shape) == 0 &&
        memcmp(p.stride, q.stride, sizeof p.stride) == 0)
        return GEMMEPI_OK;
    shares = gpi__layouts_share(&p, &q, distance);
    return shares ? gpi__refuse_tensors(regions, output, other, shares, rule) : GEMMEPI_OK;
}

#endif
