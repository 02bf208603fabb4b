/* Host memory through the user's allocator. */
#ifndef GEMMEPI_BASE_MEMORY_H
#define GEMMEPI_BASE_MEMORY_H

#include "status.h"

static void *gpi__default_alloc(void *user, size_t size) {
    (void)user;
    return malloc(size);
}

static void gpi__default_free(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

static gemmepi_allocator gpi__default_allocator(void) {
    gemmepi_allocator allocator;
    allocator.alloc = gpi__default_alloc;
    allocator.free = gpi__default_free;
    allocator.user = NULL;
    return allocator;
}

/* Zeroed memory, or NULL with the sentence noted. */
static void *gpi__new(const gemmepi_allocator *allocator, size_t size) {
    void *pointer = allocator->alloc(allocator->user, size ? size : 1);
    if (pointer)
        memset(pointer, 0, size);
    else
        (void)gpi__fail(GEMMEPI_OUT_OF_MEMORY, "the allocator gave no %llu bytes of host memory",
                        (gpi__ull)size);
    return pointer;
}

static void gpi__delete(const gemmepi_allocator *allocator, void *pointer) {
    if (pointer)
        allocator->free(allocator->user, pointer);
}

#endif
