/* The end of a context, which knows all of it. Also of one whose creation failed half-way. In the child
   of a fork() a parent's context is left as it is: another thread may have been changing it, and CUDA belongs to the parent. */
#ifndef GEMMEPI_DEVICE_DESTROY_H
#define GEMMEPI_DEVICE_DESTROY_H

#include "code.h"
#include "handles.h"
#include "kept.h"
#include "kernel.h"
#include "workspace.h"

static void gpi__free_value(void *user, gpi__map_entry *entry) {
    gpi__delete(&((gemmepi_context *)user)->allocator, entry->value);
}

static void gpi__close_device(gemmepi_context *context) {
    gpi__entry entry;
    int entered = context->primary && gpi__enter(context, &entry) == GEMMEPI_OK;
    context->entered_to_destroy = entered;
    if (entered)
        context->driver.ctx_synchronize();
    gpi__map_each(&context->kernels, gpi__free_kernel, context);
    gpi__free_blocks(context, entered);
    if (context->lt_handle)
        context->cublaslt.destroy(context->lt_handle);
    if (entered && context->ones)
        context->driver.mem_free(context->ones);
    if (entered && gpi__load_pointer(&context->faults))
        context->driver.mem_free_host(gpi__load_pointer(&context->faults));
    if (entered)
        gpi__leave(context, &entry);
    if (context->primary)
        context->driver.device_primary_ctx_release(context->device);
    if (context->has_cublaslt)
        gpi__unload_cublaslt(&context->cublaslt);
    if (context->has_nvrtc)
        gpi__unload_nvrtc(&context->nvrtc);
    gpi__disk_cache_close(&context->disk);
}

GEMMEPI_API void gemmepi_destroy(gemmepi_context *context) {
    gemmepi_allocator allocator;
    if (!context || gpi__is_of_parent(context))
        return;
    allocator = context->allocator;
    gpi__map_each(&context->plans, gpi__release_entry, context);
    if (!context->is_host)
        gpi__close_device(context);
    gpi__unload_driver(&context->driver);
    gpi__map_each(&context->streams, gpi__free_stream_token, context);
    gpi__map_each(&context->answers, gpi__free_value, context);
    gpi__map_free(&context->answers);
    gpi__map_each(&context->checks, gpi__free_value, context);
    gpi__map_free(&context->checks);
    gpi__map_free(&context->streams);
    gpi__map_free(&context->plans);
    gpi__map_free(&context->kernels);
    gpi__free_codes(context);
    gpi__mutex_destroy(&context->lock);
    gpi__mutex_destroy(&context->build_lock);
    gpi__mutex_destroy(&context->tune_lock);
    gpi__mutex_destroy(&context->formula_lock);
    gpi__condition_destroy(&context->kernel_built);
    gpi__delete(&allocator, context->spans);
    gpi__delete(&allocator, context->dump_path);
    if (context->loader.library_path) {
        char *path;
        memcpy(&path, &context->loader.library_path, sizeof path);
        gpi__delete(&allocator, path);
    }
    context->forks =
        -1; /* where the memory is not used again at once, calls with the context are refused in words */
    gpi__delete(&allocator, context);
}

#endif
