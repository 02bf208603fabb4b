/* Device memory, copies and streams, alike on a GPU and on the host. */
#ifndef GEMMEPI_DEVICE_MEMORY_H
#define GEMMEPI_DEVICE_MEMORY_H

#include "pointers.h"

#define GPI__HOST_ALIGNMENT 256

/* On the host the block's own address stands just before the aligned one. */
static gemmepi_status gpi__host_alloc(gemmepi_context *context, size_t bytes, void **pointer) {
    char *block, *aligned;
    GPI__REFUSE_IF(bytes > (size_t)-1 - 2 * GPI__HOST_ALIGNMENT, GEMMEPI_OUT_OF_MEMORY,
                   "%llu bytes are more than an address space holds", (gpi__ull)bytes);
    block = (char *)context->allocator.alloc(context->allocator.user,
                                             bytes + GPI__HOST_ALIGNMENT + sizeof(char *));
    GPI__REFUSE_IF(!block, GEMMEPI_OUT_OF_MEMORY, "the allocator gave no %llu bytes of host memory",
                   (gpi__ull)bytes);
    aligned = block + sizeof(char *);
    aligned += (GPI__HOST_ALIGNMENT - (uintptr_t)aligned % GPI__HOST_ALIGNMENT) % GPI__HOST_ALIGNMENT;
    memcpy(aligned - sizeof(char *), &block, sizeof block);
    if (!gpi__note_memory(context, aligned, bytes)) {
        context->allocator.free(context->allocator.user, block);
        return GEMMEPI_OUT_OF_MEMORY;
    }
    *pointer = aligned;
    return GEMMEPI_OK;
}

static gemmepi_status gpi__host_free(gemmepi_context *context, void *pointer) {
    char *block;
    GPI__INVALID_IF(
        !gpi__drop_memory(context, pointer),
        "pointer is %p, which gemmepi_alloc of this context did not give, or which is free already", pointer);
    memcpy(&block, (char *)pointer - sizeof(char *), sizeof block);
    context->allocator.free(context->allocator.user, block);
    return GEMMEPI_OK;
}

/* A stream of the host is a token: a byte of its own. */
static gemmepi_status gpi__host_stream(gemmepi_context *context, gemmepi_stream *stream) {
    void *token = gpi__new(&context->allocator, 1);
    if (!token)
        return GEMMEPI_OUT_OF_MEMORY;
    if (!gpi__note_stream(context, token)) {
        gpi__delete(&context->allocator, token);
        return GEMMEPI_OUT_OF_MEMORY;
    }
    *stream = (gemmepi_stream)token;
    return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_alloc(gemmepi_context *context, size_t bytes, void **pointer) {
    gpi__entry entry;
    gpi__cu_deviceptr address = 0;
    gemmepi_status status;
    int result;
    if (pointer)
        *pointer = NULL; /* also after a failure */
    status = gpi__check_call(context, pointer, "pointer");
    if (status)
        return status;
    if (bytes == 0)
        return GEMMEPI_OK;
    if (context->is_host)
        return gpi__host_alloc(context, bytes, pointer);
    status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    result = context->driver.mem_alloc(&address, bytes);
    gpi__leave_relaxed(context, &entry);
    if (result) {
        char what[64];
        snprintf(what, sizeof what, "allocating %llu bytes", (gpi__ull)bytes);
        return gpi__cuda_failed(&context->driver, result, what);
    }
    *pointer = (void *)(uintptr_t)address;
    return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_free(gemmepi_context *context, void *pointer) {
    gpi__entry entry;
    gemmepi_status status;
    int result;
    status = gpi__check_call(context, context, "context");
    if (status)
        return status;
    if (!pointer)
        return GEMMEPI_OK;
    if (context->is_host) {
        return gpi__host_free(context, pointer);
    }
    status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    result = context->driver.mem_free((gpi__cu_deviceptr)(uintptr_t)pointer);
    gpi__leave_relaxed(context, &entry);
    return result ? gpi__cuda_failed(&context->driver, result, "freeing device memory") : GEMMEPI_OK;
}

/* A copy in either direction, complete on return. */
static gemmepi_status gpi__copy(gemmepi_context *context, void *device, void *host, size_t bytes, int up,
                                gemmepi_stream stream) {
    gpi__cu_deviceptr address = (gpi__cu_deviceptr)(uintptr_t)device;
    gpi__entry entry;
    gemmepi_status status;
    int result;
    status = gpi__check_call(context, context, "context");
    if (status)
        return status;
    status = gpi__check_stream(context, stream);
    if (status || bytes == 0)
        return status;
    GPI__INVALID_IF(!device || !host, "%s is NULL", device ? "host" : "device");
    if (context->is_host) {
        status = gpi__check_room(context, "", "device", device, 0, bytes);
        if (!status)
            memmove(up ? device : host, up ? host : device, bytes);
        return status;
    }
    status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    status = gpi__check_room(context, "", "device", device, 0, bytes);
    if (status) {
        gpi__leave_relaxed(context, &entry);
        return status;
    }
    result = up ? context->driver.memcpy_htod_async(address, host, bytes, stream)
                : context->driver.memcpy_dtoh_async(host, address, bytes, stream);
    if (!result)
        result = context->driver.stream_synchronize(stream);
    gpi__leave_relaxed(context, &entry);
    return result ? gpi__cuda_failed(&context->driver, result,
                                     up ? "copying to the device" : "copying to the host")
                  : gpi__fetch_fault(context);
}

GEMMEPI_API gemmepi_status gemmepi_upload(gemmepi_context *context, void *device, const void *host,
                                          size_t bytes, gemmepi_stream stream) {
    return gpi__copy(context, device, (void *)(uintptr_t)host, bytes, 1, stream); /* which only reads it */
}

GEMMEPI_API gemmepi_status gemmepi_alloc_from(gemmepi_context *context, const void *host, size_t bytes,
                                              void **pointer) {
    char sentence[GPI__ERROR_TEXT_SIZE];
    gemmepi_status status = gemmepi_alloc(context, bytes, pointer);
    if (status)
        return status;
    status = gemmepi_upload(context, *pointer, host, bytes, NULL);
    if (!status)
        return GEMMEPI_OK;
    memcpy(sentence, gpi__error_text, sizeof sentence);
    (void)gemmepi_free(context, *pointer);
    *pointer = NULL;
    return gpi__fail(status, "%s", sentence);
}

GEMMEPI_API gemmepi_status gemmepi_download(gemmepi_context *context, void *host, const void *device,
                                            size_t bytes, gemmepi_stream stream) {
    return gpi__copy(context, (void *)(uintptr_t)device, host, bytes, 0, stream);
}

GEMMEPI_API gemmepi_status gemmepi_synchronize(gemmepi_context *context, gemmepi_stream stream) {
    gpi__entry entry;
    gemmepi_status status;
    int result;
    status = gpi__check_call(context, context, "context");
    if (status)
        return status;
    if (context->is_host)
        return gpi__check_stream(context, stream);
    status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    result = context->driver.stream_synchronize(stream);
    gpi__leave_relaxed(context, &entry);
    return result ? gpi__cuda_failed(&context->driver, result, "waiting for the stream")
                  : gpi__fetch_fault(context);
}

GEMMEPI_API gemmepi_status gemmepi_stream_create(gemmepi_context *context, gemmepi_stream *stream) {
    gpi__entry entry;
    gemmepi_status status;
    int result;
    if (stream)
        *stream = NULL; /* also after a failure */
    status = gpi__check_call(context, stream, "stream");
    if (status)
        return status;
    if (context->is_host)
        return gpi__host_stream(context, stream);
    status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    result = context->driver.stream_create(stream, GPI__CU_STREAM_NON_BLOCKING);
    gpi__leave_relaxed(context, &entry);
    return result ? gpi__cuda_failed(&context->driver, result, "cuStreamCreate") : GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_stream_destroy(gemmepi_context *context, gemmepi_stream stream) {
    gpi__entry entry;
    gemmepi_status status;
    int result;
    status = gpi__check_call(context, context, "context");
    if (status)
        return status;
    if (!stream)
        return GEMMEPI_OK;
    if (context->is_host) {
        if (!gpi__drop_stream(context, (void *)stream))
            return gpi__refuse_stream(stream);
        gpi__delete(&context->allocator, (void *)stream);
        return GEMMEPI_OK;
    }
    status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    result = context->driver.stream_synchronize(stream);
    if (!result)
        result = context->driver.stream_destroy(stream);
    gpi__leave_relaxed(context, &entry);
    return result ? gpi__cuda_failed(&context->driver, result, "ending the stream") : GEMMEPI_OK;
}

#endif
