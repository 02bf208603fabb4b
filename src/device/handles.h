/* What the host gave out, memory and streams, so that what is none of it is refused there as a GPU refuses it. */
#ifndef GEMMEPI_DEVICE_HANDLES_H
#define GEMMEPI_DEVICE_HANDLES_H

#include "context.h"
#include "faults.h"

/* What a pointer in context->handles is: the address of one of these. */
static char gpi__handle_kinds[2];
#define GPI__OF_MEMORY (&gpi__handle_kinds[0])
#define GPI__OF_STREAM (&gpi__handle_kinds[1])

/* 0 where there is no memory for it, with the sentence noted. */
static int gpi__note_handle(gemmepi_context *context, void *handle, void *kind) {
    int noted;
    gpi__lock(&context->lock);
    noted = gpi__map_insert(&context->handles, &handle, sizeof handle, kind);
    gpi__unlock(&context->lock);
    return noted;
}

static int gpi__has_handle(gemmepi_context *context, void *handle, const void *kind) {
    int has;
    gpi__lock(&context->lock);
    has = gpi__map_find(&context->handles, &handle, sizeof handle) == kind;
    gpi__unlock(&context->lock);
    return has;
}

/* Whether it was one, which it is no longer: of two threads only one is told so. */
static int gpi__drop_handle(gemmepi_context *context, void *handle, const void *kind) {
    int has;
    gpi__lock(&context->lock);
    has = gpi__map_find(&context->handles, &handle, sizeof handle) == kind;
    if (has)
        gpi__map_remove(&context->handles, &handle, sizeof handle);
    gpi__unlock(&context->lock);
    return has;
}

static gemmepi_status gpi__refuse_stream(gemmepi_stream stream) {
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "stream is %p, which is no stream of this context; accepted on the host are NULL, what "
        "gemmepi_stream_create gave and was not destroyed, and, but for gemmepi_stream_destroy, CUDA's special "
        "handles 1 and 2",
        (void *)stream);
}

/* On the host; on a GPU the driver does. */
static gemmepi_status gpi__check_stream(gemmepi_context *context, gemmepi_stream stream) {
    if (!context->is_host || (uintptr_t)stream <= GPI__CU_STREAM_PER_THREAD ||
        gpi__has_handle(context, (void *)stream, GPI__OF_STREAM))
        return GEMMEPI_OK;
    return gpi__refuse_stream(stream);
}

/* What a run is given beside tensors, whether it needs that or not. */
static gemmepi_status gpi__check_run(gemmepi_context *context, gemmepi_stream stream, const void *workspace,
                                     size_t size) {
    uintptr_t begin = (uintptr_t)workspace;
    if (!begin && size)
        return gpi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "args.workspace is NULL, but args.workspace_size is %llu; leave both 0 for the context's own",
            (gpi__ull)size);
    if (begin & 255)
        return gpi__fail(GEMMEPI_MISALIGNED, "args.workspace is %p; it must be a multiple of 256 bytes",
                         workspace);
    if (begin && size > (size_t)((uintptr_t)-1 - begin))
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.workspace is %p and args.workspace_size %llu; no address space is that large",
                         workspace, (gpi__ull)size);
    {
        gemmepi_status status = gpi__check_stream(context, stream);
        return status ? status : gpi__fetch_fault(context);
    }
}

/* The tokens of streams that were not destroyed. */
static void gpi__free_stream_token(void *user, gpi__map_entry *entry) {
    gemmepi_context *context = (gemmepi_context *)user;
    void *token;
    memcpy(&token, gpi__map_key(entry), sizeof token);
    if (entry->value == GPI__OF_STREAM)
        gpi__delete(&context->allocator, token);
}

#endif
