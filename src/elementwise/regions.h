/* What a run of an element-wise plan reads and writes: whether outputs are apart from all else, and whether a GPU reaches it. */
#ifndef GEMMEPI_ELEMENTWISE_REGIONS_H
#define GEMMEPI_ELEMENTWISE_REGIONS_H

#include "../device/pointers.h"
#include "../problem/overlap.h"

#define GPI__MOST_POINTERS 33 /* of a formula: 32 operands and y */
#define GPI__MOST_REGIONS  99 /* each with a scale and an amax */
#define GPI__MOST_NUMBERS  4  /* of a cast: scales and amax */

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

typedef struct gpi__tensor_region {
    const char *name,
        *of;   /* an argument's; of: the operand, where the argument is an array of all of theirs */
    int place; /* in that array */
    int dtype; /* of a tensor; 0: scales, or an amax */
    int written;
    int may_be_other; /* an output that may be exactly an input, or an input that may be exactly an output */
    uintptr_t base;
    int64_t offset; /* bytes to the element of index 0 */
    const gpi__reach_of *reach;
} gpi__tensor_region;

/* Filled up to the counts alone: a run has no time for more. */
typedef struct gpi__tensor_regions {
    const char *rule; /* of outputs that may be inputs, for the sentence */
    int count, number_count;
    gpi__tensor_region list[GPI__MOST_REGIONS];
    gpi__reach_of numbers[GPI__MOST_NUMBERS];
} gpi__tensor_regions;

static void gpi__name_tensor_region(const gpi__tensor_region *region, char name[128]) {
    if (region->of)
        snprintf(name, 128, "%s[%d] (of %s)", region->name, region->place, region->of);
    else
        snprintf(name, 128, "%s", region->name);
}

/* In place: the very same elements in the same order. */
static int gpi__is_in_place(const gpi__tensor_region *output, const gpi__tensor_region *other) {
    const gpi__layout *p = &output->reach->layout, *q = &other->reach->layout;
    return output->may_be_other && other->may_be_other && !other->written && output->dtype == other->dtype &&
           output->base + (uintptr_t)output->offset == other->base + (uintptr_t)other->offset &&
           p->rank == q->rank && memcmp(p->shape, q->shape, sizeof p->shape) == 0 &&
           memcmp(p->stride, q->stride, sizeof p->stride) == 0;
}

static gemmepi_status gpi__refuse_tensor_regions(const gpi__tensor_regions *regions,
                                                 const gpi__tensor_region *output,
                                                 const gpi__tensor_region *other, int shares) {
    const gpi__tensor_region *first = other->dtype ? output : other,
                             *second = first == output ? other : output;
    char name[128], others[128];
    gpi__name_tensor_region(first, name);
    gpi__name_tensor_region(second, others);
    if (!first->dtype)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s (%p, %llu bytes) overlaps %s (%p)", name,
                         (void *)first->base, (gpi__ull)(first->reach->high - first->reach->low), others,
                         (void *)second->base);
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s (%p), which is written, overlaps %s (%p)%s; %s", name,
                     (void *)first->base, others, (void *)second->base, gpi__if_undecided(shares),
                     regions->rule);
}

static gemmepi_status gpi__check_apart(const gpi__tensor_regions *regions, const gpi__tensor_region *output,
                                       const gpi__tensor_region *other) {
    const gpi__reach_of *p = output->reach, *q = other->reach;
    intptr_t p_base = (intptr_t)output->base, q_base = (intptr_t)other->base;
    int shares;
    if (p_base + p->high <= q_base + q->low || q_base + q->high <= p_base + p->low || p->low == p->high ||
        q->low == q->high || gpi__is_in_place(output, other))
        return GEMMEPI_OK;
    shares = gpi__layouts_share(&p->layout, &q->layout, q_base + other->offset - (p_base + output->offset));
    return shares ? gpi__refuse_tensor_regions(regions, output, other, shares) : GEMMEPI_OK;
}

/* All that is written against all else. */
static gemmepi_status gpi__check_tensor_regions(const gpi__tensor_regions *regions) {
    const gpi__tensor_region *p, *q, *end = regions->list + regions->count;
    gemmepi_status status = GEMMEPI_OK;
    for (p = regions->list; p < end; p++)
        for (q = p + 1; q < end && !status; q++) {
            if (p->written)
                status = gpi__check_apart(regions, p, q);
            else if (q->written)
                status = gpi__check_apart(regions, q, p);
        }
    return status;
}

/* Workspace is an output like any other. */
static gemmepi_status gpi__check_workspace_apart(const gpi__tensor_regions *regions, const void *workspace,
                                                 size_t size) {
    uintptr_t begin = (uintptr_t)workspace;
    char name[128];
    int i;
    for (i = 0; i < regions->count; i++) {
        const gpi__tensor_region *region = &regions->list[i];
        if (begin >= region->base + (uintptr_t)region->reach->high ||
            region->base + (uintptr_t)region->reach->low >= begin + size)
            continue;
        gpi__name_tensor_region(region, name);
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.workspace (%p, %llu bytes used) overlaps %s (%p)",
                         workspace, (gpi__ull)size, name, (void *)region->base);
    }
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_tensors_reachable(gemmepi_context *context,
                                                   const gpi__tensor_regions *regions) {
    static const char args[] = "args.";
    gemmepi_status status = GEMMEPI_OK;
    char name[128];
    int i;
    for (i = 0; i < regions->count && !status; i++) {
        const gpi__tensor_region *region = &regions->list[i];
        uintptr_t lowest = region->base ? region->base + (uintptr_t)region->reach->low : 0;
        gpi__name_tensor_region(region, name);
        status =
            gpi__check_reachable(context, strncmp(name, args, strlen(args)) == 0 ? name + strlen(args) : name,
                                 (void *)lowest, region->reach->high - region->reach->low);
    }
    return status;
}

#endif
