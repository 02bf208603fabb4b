/* Pointers that a kernel could not follow: host memory that is unknown to CUDA, and memory that ends too early. */
#ifndef GEMMEPI_DEVICE_POINTERS_H
#define GEMMEPI_DEVICE_POINTERS_H

#include "handles.h"

/* Refuses host memory that is not registered with CUDA, where the device cannot reach pageable memory. */
static gemmepi_status gpi__check_known(const gemmepi_context *context, const char *name,
                                       const void *pointer) {
    unsigned type = 0;
    int result;
    if (context->is_host || context->reaches_pageable)
        return GEMMEPI_OK;
    result = context->driver.pointer_get_attribute(&type, GPI__CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                   (gpi__cu_deviceptr)(uintptr_t)pointer);
    if (!result)
        return GEMMEPI_OK;
    if (result != GPI__CUDA_ERROR_INVALID_VALUE)
        return gpi__cuda_failed(&context->driver, result, "asking whose memory a pointer is");
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                     "args.%s is %p, host memory that the GPU cannot reach: allocate with gemmepi_alloc and "
                     "copy with gemmepi_upload, or register it with CUDA",
                     name, pointer);
}

/* On the host a pointer to the end of memory counts as one to it, and so does one to the few bytes ahead of it, where its block is noted. */
static int gpi__find_memory_of_host(gemmepi_context *context, const void *pointer, struct gpi__span *span) {
    uintptr_t address = (uintptr_t)pointer;
    return gpi__find_span(context, pointer, span) || gpi__find_span(context, (void *)(address - 1), span) ||
           gpi__find_span(context, (void *)(address + sizeof(char *)), span);
}

/* What was allocated where the pointer is, or next to it; 0: that is not known. On a GPU the primary context is current. */
static int gpi__find_memory(gemmepi_context *context, const void *pointer, struct gpi__span *span) {
    gpi__cu_deviceptr address = (gpi__cu_deviceptr)(uintptr_t)pointer, begin = 0;
    if (context->is_host)
        return gpi__find_memory_of_host(context, pointer, span);
    span->bytes = 0;
    if (context->driver.pointer_get_attribute(&begin, GPI__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) ||
        context->driver.pointer_get_attribute(&span->bytes, GPI__CU_POINTER_ATTRIBUTE_RANGE_SIZE, address))
        return 0;
    span->begin = (uintptr_t)begin;
    return address - begin < span->bytes;
}

/* Refuses memory that begins less than `before` bytes before the pointer or ends before `bytes` bytes from there on: on the host what
   gemmepi_alloc gave, on a GPU, with config.check_pointers, what CUDA knows. of and name: what the caller calls the pointer. */
static gemmepi_status gpi__check_room(gemmepi_context *context, const char *of, const char *name,
                                      const void *pointer, size_t before, size_t bytes) {
    struct gpi__span span;
    size_t ahead, left;
    if ((!context->is_host && !context->check_pointers) || !(before || bytes) ||
        !gpi__find_memory(context, pointer, &span))
        return GEMMEPI_OK;
    GPI__REFUSE_IF((uintptr_t)pointer < span.begin, GEMMEPI_BUFFER_TOO_SMALL,
                   "%s%s is %p, %llu bytes before the memory that was allocated there", of, name, pointer,
                   (gpi__ull)(span.begin - (uintptr_t)pointer));
    ahead = (size_t)((uintptr_t)pointer - span.begin);
    left = span.bytes - ahead;
    GPI__REFUSE_IF(
        before > ahead, GEMMEPI_BUFFER_TOO_SMALL,
        "%s%s is %p, and the memory that was allocated there begins %llu bytes before; %llu are needed there",
        of, name, pointer, (gpi__ull)ahead, (gpi__ull)before);
    GPI__REFUSE_IF(
        bytes > left, GEMMEPI_BUFFER_TOO_SMALL,
        "%s%s is %p, and the memory that was allocated there ends after %llu bytes; %llu are needed", of,
        name, pointer, (gpi__ull)left, (gpi__ull)bytes);
    return GEMMEPI_OK;
}

/* Whether a run may use what is `before` bytes before the pointer, which may be NULL, and `bytes` bytes from there on. name: as in
   args.name. On a GPU the primary context is current. */
static gemmepi_status gpi__check_reachable(gemmepi_context *context, const char *name, const void *pointer,
                                           size_t before, size_t bytes) {
    gemmepi_status status = pointer ? gpi__check_known(context, name, pointer) : GEMMEPI_OK;
    return status || !pointer ? status : gpi__check_room(context, "args.", name, pointer, before, bytes);
}

#endif
