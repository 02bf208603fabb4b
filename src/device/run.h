/* What every run does around its launches, whatever the plan: pointers that the device reaches, and workspace. */
#ifndef GEMMEPI_DEVICE_RUN_H
#define GEMMEPI_DEVICE_RUN_H

#include "../base/regions.h"
#include "pointers.h"
#include "workspace.h"

/* Where a run may work. */
typedef struct gpi__space {
    void *workspace; /* the caller's; NULL: a block of the context's */
    size_t size;
    const gpi__regions *regions; /* what workspace shares no byte with; NULL: that has been looked at */
    gemmepi_stream stream;
    int block_number; /* of the stream's: see gpi__key_of_block */
    int uses_all;     /* of the caller's, whatever is needed */
} gpi__space;

/* Whether the run may use what it was given, from its beginning to its end. Where nothing is written nothing is used. */
static gemmepi_status gpi__check_memory(gemmepi_context *context, const gpi__space *space) {
    gemmepi_status status = gpi__check_reachable(context, "workspace", space->workspace, 0, space->size);
    char room[128];
    int i, writes = 0;
    for (i = 0; i < space->regions->count; i++)
        writes |=
            space->regions->list[i].written && space->regions->list[i].begin < space->regions->list[i].end;
    for (i = 0; i < space->regions->count && !status && writes; i++) {
        const gpi__region *region = &space->regions->list[i];
        const char *name = space->regions->name(space->regions->owner, region, room);
        int is_used = !region->idle && region->begin < region->end;
        uintptr_t pointer = (uintptr_t)region->pointer;
        status =
            gpi__check_reachable(context, strncmp(name, "args.", 5) == 0 ? name + 5 : name, region->pointer,
                                 is_used && region->begin < pointer ? (size_t)(pointer - region->begin) : 0,
                                 is_used && region->end > pointer ? (size_t)(region->end - pointer) : 0);
    }
    return status;
}

/* Whether the run has its memory, if that is asked, and no output shares bytes with anything else. */
static gemmepi_status gpi__check_space(gemmepi_context *context, const gpi__space *space, int asks) {
    gemmepi_status status = asks ? gpi__check_memory(context, space) : GEMMEPI_OK;
    return status ? status : gpi__check_regions(space->regions);
}

/* Looks at the run's memory and makes the context current, until gpi__leave; the host has nothing to leave. asks: whether the device reaches
   each pointer, which takes the driver a microsecond for each. */
static gemmepi_status gpi__enter_run(gemmepi_context *context, const gpi__space *space, int asks,
                                     gpi__entry *entry) {
    gemmepi_status status;
    if (context->is_host)
        return gpi__check_space(context, space, 1);
    status = gpi__enter(context, entry);
    if (status)
        return status;
    status = gpi__check_space(context, space, asks || context->check_pointers);
    if (status)
        gpi__leave(context, entry);
    return status;
}

/* What launches, in a workspace of so many bytes. */
typedef gemmepi_status (*gpi__launcher)(void *run, char *workspace, size_t size, gemmepi_stream stream);

#ifndef GEMMEPI_NO_LINEAR
/* On the host: workspace is memory for the time of the run. */
static gemmepi_status gpi__launch_on_host(gemmepi_context *context, const gpi__space *space, size_t needed,
                                          gpi__launcher launch, void *run) {
    gemmepi_status status = space->workspace
                                ? gpi__check_workspace(space->regions, space->workspace, space->size, "")
                                : GEMMEPI_OK;
    void *memory = !status && needed ? gpi__new(&context->allocator, needed) : NULL;
    if (!status && needed && !memory)
        return GEMMEPI_OUT_OF_MEMORY;
    if (!status)
        status = launch(run, (char *)memory, needed, NULL);
    if (memory)
        gpi__delete(&context->allocator, memory);
    return status;
}
#endif

static gemmepi_status gpi__launch_in_block(gemmepi_context *context, const gpi__space *space, size_t needed,
                                           gpi__launcher launch, void *run) {
    gpi__block *block =
        gpi__acquire_block(context, gpi__key_of_block(space->stream, space->block_number), needed);
    gemmepi_status status;
    if (!block)
        return GEMMEPI_BUFFER_TOO_SMALL;
    status = launch(run, (char *)(uintptr_t)block->address, block->size, space->stream);
    gpi__give_block(block);
    return status;
}

static gemmepi_status gpi__launch_in(gemmepi_context *context, const gpi__space *space, size_t needed,
                                     gpi__launcher launch, void *run) {
    int uses_all = space->workspace && space->uses_all;
    size_t used = uses_all ? space->size : needed;
    gemmepi_status status = GEMMEPI_OK;
    if (needed == 0 && used == 0)
        return launch(run, NULL, 0, space->stream);
    if (!space->workspace)
        return gpi__launch_in_block(context, space, needed, launch, run);
    if (space->regions) {
        status = gpi__check_given_workspace(space->size, needed);
        if (!status)
            status = gpi__check_workspace(space->regions, space->workspace, used, uses_all ? "" : " used");
    }
    return status ? status : launch(run, (char *)space->workspace, space->size, space->stream);
}

/* What stands for another plan, or has a product that another plan stands for, may need more than was counted without the caller knowing:
   where less was given or reserved, it takes the context's. */
static gemmepi_status gpi__launch_as_counted(gemmepi_context *context, const gpi__space *space, size_t needed,
                                             size_t counted, gpi__launcher launch, void *run) {
    gemmepi_status status;
    if (needed <= counted || (space->workspace && space->size >= needed))
        return gpi__launch_in(context, space, needed, launch, run);
    status = gpi__reserve(context, space->stream, space->block_number, needed);
    return status ? status : gpi__launch_in_block(context, space, needed, launch, run);
}

#endif
