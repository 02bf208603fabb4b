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

/* Bytes from the pointer to the end of what was allocated there; the largest number where that is not known. On a GPU the primary context
   is current. */
static size_t gpi__bytes_left(gemmepi_context *context, const void *pointer) {
    gpi__cu_deviceptr address = (gpi__cu_deviceptr)(uintptr_t)pointer, begin = 0;
    size_t size = 0;
    if (context->is_host)
        return gpi__bytes_left_on_host(context, pointer);
    if (context->driver.pointer_get_attribute(&begin, GPI__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) ||
        context->driver.pointer_get_attribute(&size, GPI__CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) ||
        address - begin >= size)
        return (size_t)-1;
    return size - (size_t)(address - begin);
}

/* Refuses memory that ends before `bytes` bytes: on the host what gemmepi_alloc gave, on a GPU, with config.check_pointers, what CUDA knows.
   of and name: what the caller calls the pointer. */
static gemmepi_status gpi__check_room(gemmepi_context *context, const char *of, const char *name,
                                      const void *pointer, size_t bytes) {
    size_t left;
    if (!context->is_host && !context->check_pointers)
        return GEMMEPI_OK;
    left = gpi__bytes_left(context, pointer);
    if (bytes <= left)
        return GEMMEPI_OK;
    return gpi__fail(
        GEMMEPI_BUFFER_TOO_SMALL,
        "%s%s is %p, and the memory that was allocated there ends after %llu bytes; %llu are needed", of,
        name, pointer, (gpi__ull)left, (gpi__ull)bytes);
}

/* Whether a run may use `bytes` bytes from the pointer on, which may be NULL. name: as in args.name. On a GPU the primary context is
   current. */
static gemmepi_status gpi__check_reachable(gemmepi_context *context, const char *name, const void *pointer,
                                           int64_t bytes) {
    gemmepi_status status = pointer ? gpi__check_known(context, name, pointer) : GEMMEPI_OK;
    return status || !pointer ? status : gpi__check_room(context, "args.", name, pointer, (size_t)bytes);
}

#endif
