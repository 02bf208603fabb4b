/* Pointers that a kernel could not follow: host memory that is unknown to CUDA. */
#ifndef GEMMEPI_DEVICE_POINTERS_H
#define GEMMEPI_DEVICE_POINTERS_H

#include "context.h"

/* Refuses host memory that is not registered with CUDA, where the device cannot reach pageable memory. name: of the pointer,
   as in args.name. The primary context is current. */
static gemmepi_status gpi__check_reachable(const gemmepi_context *context, const char *name,
                                           const void *pointer) {
    unsigned type = 0;
    int result;
    if (!pointer || context->reaches_pageable)
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

#endif
