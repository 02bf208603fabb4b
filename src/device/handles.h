/* What the host gave out, memory and streams, so that what is none of it is refused there as a GPU refuses it. */
#ifndef GEMMEPI_DEVICE_HANDLES_H
#define GEMMEPI_DEVICE_HANDLES_H

#include "context.h"
#include "faults.h"

/* >>memory: spans by address, so that what is inside of one finds its end */

struct gpi__span {
    uintptr_t begin;
    size_t bytes;
};

/* How many spans begin at the address or before it. Under lock. */
static size_t gpi__spans_up_to(const gemmepi_context *context, uintptr_t address) {
    size_t low = 0, high = context->span_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (context->spans[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Room for one more. 0 where there is no memory for it, with the sentence noted. Under lock. */
static int gpi__grow_spans(gemmepi_context *context) {
    size_t room = context->span_room ? 2 * context->span_room : 16;
    struct gpi__span *spans;
    if (context->span_count < context->span_room)
        return 1;
    spans = (struct gpi__span *)gpi__new(&context->allocator, room * sizeof *spans);
    if (!spans)
        return 0;
    if (context->span_count)
        memcpy(spans, context->spans, context->span_count * sizeof *spans);
    gpi__delete(&context->allocator, context->spans);
    context->spans = spans;
    context->span_room = room;
    return 1;
}

/* 0 where there is no memory for it, with the sentence noted. */
static int gpi__note_memory(gemmepi_context *context, const void *pointer, size_t bytes) {
    int noted;
    gpi__lock(&context->lock);
    noted = gpi__grow_spans(context);
    if (noted) {
        size_t at = gpi__spans_up_to(context, (uintptr_t)pointer);
        struct gpi__span *place = context->spans + at;
        memmove(place + 1, place, (context->span_count++ - at) * sizeof *place);
        place->begin = (uintptr_t)pointer;
        place->bytes = bytes;
    }
    gpi__unlock(&context->lock);
    return noted;
}

/* Whether it was the beginning of a span, which it is no longer: of two threads only one is told so. */
static int gpi__drop_memory(gemmepi_context *context, const void *pointer) {
    size_t at;
    int has;
    gpi__lock(&context->lock);
    at = gpi__spans_up_to(context, (uintptr_t)pointer);
    has = at > 0 && context->spans[at - 1].begin == (uintptr_t)pointer;
    if (has) {
        memmove(context->spans + at - 1, context->spans + at,
                (context->span_count - at) * sizeof *context->spans);
        context->span_count--;
    }
    gpi__unlock(&context->lock);
    return has;
}

/* The span that has the address; 0: none has. */
static int gpi__find_span(gemmepi_context *context, const void *pointer, struct gpi__span *span) {
    size_t at;
    int has;
    gpi__lock(&context->lock);
    at = gpi__spans_up_to(context, (uintptr_t)pointer);
    has = at > 0 && (uintptr_t)pointer - context->spans[at - 1].begin < context->spans[at - 1].bytes;
    if (has)
        *span = context->spans[at - 1];
    gpi__unlock(&context->lock);
    return has;
}

/* >>streams */

/* What a stream in context->handles is: this address. */
static char gpi__is_stream;

/* 0 where there is no memory for it, with the sentence noted. */
static int gpi__note_stream(gemmepi_context *context, void *stream) {
    int noted;
    gpi__lock(&context->lock);
    noted = gpi__map_insert(&context->streams, &stream, sizeof stream, &gpi__is_stream);
    gpi__unlock(&context->lock);
    return noted;
}

static int gpi__has_stream(gemmepi_context *context, void *stream) {
    int has;
    gpi__lock(&context->lock);
    has = gpi__map_find(&context->streams, &stream, sizeof stream) != NULL;
    gpi__unlock(&context->lock);
    return has;
}

/* Whether it was one, which it is no longer: of two threads only one is told so. */
static int gpi__drop_stream(gemmepi_context *context, void *stream) {
    int has;
    gpi__lock(&context->lock);
    has = gpi__map_find(&context->streams, &stream, sizeof stream) != NULL;
    if (has)
        gpi__map_remove(&context->streams, &stream, sizeof stream);
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
        gpi__has_stream(context, (void *)stream))
        return GEMMEPI_OK;
    return gpi__refuse_stream(stream);
}

/* What a run is given beside tensors, whether it needs that or not. */
static gemmepi_status gpi__check_run(gemmepi_context *context, gemmepi_stream stream, const void *workspace,
                                     size_t size) {
    uintptr_t begin = (uintptr_t)workspace;
    GPI__INVALID_IF(
        !begin && size,
        "args.workspace is NULL, but args.workspace_size is %llu; leave both 0 for the context's own",
        (gpi__ull)size);
    GPI__REFUSE_IF(begin & 255, GEMMEPI_MISALIGNED,
                   "args.workspace is %p; it must be a multiple of 256 bytes", workspace);
    GPI__INVALID_IF(begin && size > (size_t)((uintptr_t)-1 - begin),
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
    gpi__delete(&context->allocator, token);
}

#endif
