/* What the host gave out, memory and streams, so that what is none of it is refused there as a GPU refuses it. */
#ifndef GEMMEPI_DEVICE_HANDLES_H
#define GEMMEPI_DEVICE_HANDLES_H

#include "context.h"
#include "faults.h"

/* What a pointer in context->handles is: the address of one of these. */
static char gemmepi__handle_kinds[2];
#define GEMMEPI__OF_MEMORY (&gemmepi__handle_kinds[0])
#define GEMMEPI__OF_STREAM (&gemmepi__handle_kinds[1])

/* 0 where there is no memory for it, with the sentence noted. */
static int gemmepi__note_handle(gemmepi_context *context, void *handle, void *kind) {
    int noted;
    gemmepi__lock(&context->lock);
    noted = gemmepi__map_insert(&context->handles, &handle, sizeof handle, kind);
    gemmepi__unlock(&context->lock);
    return noted;
}

static int gemmepi__has_handle(gemmepi_context *context, void *handle, const void *kind) {
    int has;
    gemmepi__lock(&context->lock);
    has = gemmepi__map_find(&context->handles, &handle, sizeof handle) == kind;
    gemmepi__unlock(&context->lock);
    return has;
}

/* Whether it was one, which it is no longer: of two threads only one is told so. */
static int gemmepi__drop_handle(gemmepi_context *context, void *handle, const void *kind) {
    int has;
    gemmepi__lock(&context->lock);
    has = gemmepi__map_find(&context->handles, &handle, sizeof handle) == kind;
    if (has)
        gemmepi__map_remove(&context->handles, &handle, sizeof handle);
    gemmepi__unlock(&context->lock);
    return has;
}

static gemmepi_status gemmepi__refuse_stream(gemmepi_stream stream) {
    return gemmepi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "stream is %p, which is no stream of this context; accepted on the host are NULL, what "
        "gemmepi_stream_create gave and was not destroyed, and, but for gemmepi_stream_destroy, CUDA's special "
        "handles 1 and 2",
        (void *)stream);
}

/* On the host; on a GPU the driver does. */
static gemmepi_status gemmepi__check_stream(gemmepi_context *context, gemmepi_stream stream) {
    if (!context->is_host || (uintptr_t)stream <= GEMMEPI__CU_STREAM_PER_THREAD ||
        gemmepi__has_handle(context, (void *)stream, GEMMEPI__OF_STREAM))
        return GEMMEPI_OK;
    return gemmepi__refuse_stream(stream);
}

/* What a run is given beside tensors, whether it needs that or not. */
static gemmepi_status gemmepi__check_run(gemmepi_context *context, gemmepi_stream stream,
                                         const void *workspace, size_t size) {
    uintptr_t begin = (uintptr_t)workspace;
    if (!begin && size)
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "args.workspace is NULL, but args.workspace_size is %llu; leave both 0 for the context's own",
            (gemmepi__ull)size);
    if (begin & 255)
        return gemmepi__fail(GEMMEPI_MISALIGNED, "args.workspace is %p; it must be a multiple of 256 bytes",
                             workspace);
    if (begin && size > (size_t)((uintptr_t)-1 - begin))
        return gemmepi__fail(
            GEMMEPI_INVALID_ARGUMENT,
            "args.workspace is %p and args.workspace_size %llu; no address space is that large", workspace,
            (gemmepi__ull)size);
    {
        gemmepi_status status = gemmepi__check_stream(context, stream);
        return status ? status : gemmepi__take_fault(context);
    }
}

/* The tokens of streams that were not destroyed. */
static void gemmepi__free_stream_token(void *user, gemmepi__map_entry *entry) {
    gemmepi_context *context = (gemmepi_context *)user;
    void *token;
    memcpy(&token, gemmepi__map_key(entry), sizeof token);
    if (entry->value == GEMMEPI__OF_STREAM)
        gemmepi__delete(&context->allocator, token);
}

#endif
