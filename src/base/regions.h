/* The memory of one run, a region for each pointer, listed once for all that is asked of it: an output shares no byte with anything else,
   workspace none with any, and the device reaches each. */
#ifndef GEMMEPI_BASE_REGIONS_H
#define GEMMEPI_BASE_REGIONS_H

#include "status.h"

typedef struct gpi__region {
    const void *pointer;
    uintptr_t begin, end; /* the bytes that are used */
    const void *lies;     /* how it lies, for who listed it; NULL: one after another */
    const char *note;     /* said of it in place of how many bytes it has, or NULL */
    int16_t kind, place;  /* what it is, for who listed it */
    int8_t written;
    int8_t idle; /* not read in this run: it may share */
} gpi__region;

#define GPI__ALL_REGIONS 128 /* a product's own, three for each operand of a formula, scalars and lists */

typedef struct gpi__regions gpi__regions;
struct gpi__regions {
    const void *owner;
    /* The caller's name of one, in room or elsewhere. */
    const char *(*name)(const void *owner, const gpi__region *region, char room[128]);
    /* Returns whether an output may share bytes with another region, or the sentence that says that it may not. */
    gemmepi_status (*judge)(const gpi__regions *regions, const gpi__region *output, const gpi__region *other);
    int count;
    gpi__region list[GPI__ALL_REGIONS];
};

static gpi__region *gpi__add_region(gpi__regions *regions, int kind, int place, int written,
                                    const void *pointer, int64_t bytes) {
    gpi__region *region = &regions->list[regions->count++];
    region->pointer = pointer;
    region->begin = (uintptr_t)pointer;
    region->end = region->begin + (uintptr_t)bytes;
    region->lies = NULL;
    region->note = NULL;
    region->kind = (int16_t)kind;
    region->place = (int16_t)place;
    region->written = (int8_t)written;
    region->idle = 0;
    return region;
}

static int gpi__ranges_meet(const gpi__region *p, const gpi__region *q) {
    return p->begin < q->end && q->begin < p->end && p->begin < p->end && q->begin < q->end && !q->idle;
}

/* Each output against all others. The quick answer, by ranges, is the usual one. */
static gemmepi_status gpi__check_regions(const gpi__regions *regions) {
    gemmepi_status status;
    int i, j;
    for (i = 0; i < regions->count; i++) {
        const gpi__region *output = &regions->list[i];
        if (!output->written)
            continue;
        for (j = 0; j < regions->count; j++) {
            const gpi__region *other = &regions->list[j];
            if (gpi__ranges_meet(output, other) && j != i && !(j < i && other->written) &&
                (status = regions->judge(regions, output, other)) != GEMMEPI_OK)
                return status;
        }
    }
    return GEMMEPI_OK;
}

/* "args.d (0x.., 16 bytes) overlaps args.a (0x.., 16 bytes)", and what follows. */
static gemmepi_status gpi__refuse_overlap(const gpi__regions *regions, const gpi__region *output,
                                          const gpi__region *other, const char *undecided,
                                          const char *further) {
    char first[128], second[128], bytes[40];
    snprintf(bytes, sizeof bytes, ", %lld bytes", (long long)(other->end - other->begin));
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s (%p, %lld bytes) overlaps %s (%p%s)%s%s",
                     regions->name(regions->owner, output, first), output->pointer,
                     (long long)(output->end - output->begin), regions->name(regions->owner, other, second),
                     other->pointer, other->note ? other->note : bytes, undecided, further);
}

/* Workspace is an output like any other. used: what is said of its bytes. */
static gemmepi_status gpi__check_workspace(const gpi__regions *regions, const void *workspace, size_t bytes,
                                           const char *used) {
    uintptr_t begin = (uintptr_t)workspace, end = begin + bytes;
    char room[128];
    int i;
    for (i = 0; i < regions->count; i++) {
        const gpi__region *region = &regions->list[i];
        GPI__INVALID_IF(region->begin < end && begin < region->end,
                        "args.workspace (%p, %llu bytes%s) overlaps %s (%p%s)", workspace, (gpi__ull)bytes,
                        used, regions->name(regions->owner, region, room), region->pointer,
                        region->note ? region->note : "");
    }
    return GEMMEPI_OK;
}

#endif
