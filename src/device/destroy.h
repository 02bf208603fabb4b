/* The end of a context, which knows all of it. Also of one whose creation failed half-way. In the child
   of a fork() a parent's context is left as it is: another thread may have been changing it, and CUDA belongs to the parent. */
#ifndef GEMMEPI_DEVICE_DESTROY_H
#define GEMMEPI_DEVICE_DESTROY_H

#include "code.h"
#include "handles.h"
#include "kept.h"
#include "kernel.h"
#include "workspace.h"

static void gemmepi__free_value(void *user, gemmepi__map_entry *entry) {
    gemmepi__delete(&((gemmepi_context *)user)->allocator, entry->value);
}

static void gemmepi__close_device(gemmepi_context *context) {
    gemmepi__entry entry;
    int entered = context->primary && gemmepi__enter(context, &entry) == GEMMEPI_OK;
    context->entered_to_destroy = entered;
    if (entered)
        context->driver.ctx_synchronize();
    gemmepi__map_each(&context->kernels, gemmepi__free_kernel, context);
    gemmepi__free_blocks(context, entered);
    if (context->lt_handle)
        context->cublaslt.destroy(context->lt_handle);
    if (entered && context->ones)
        context->driver.mem_free(context->ones);
    if (entered && gemmepi__load_pointer(&context->faults))
        context->driver.mem_free_host(gemmepi__load_pointer(&context->faults));
    if (entered)
        gemmepi__leave(context, &entry);
    if (context->primary)
        context->driver.device_primary_ctx_release(context->device);
    if (context->has_cublaslt)
        gemmepi__unload_cublaslt(&context->cublaslt);
    if (context->has_nvrtc)
        gemmepi__unload_nvrtc(&context->nvrtc);
    gemmepi__disk_cache_close(&context->disk);
}

GEMMEPI_API void gemmepi_destroy(gemmepi_context *context) {
    gemmepi_allocator allocator;
    if (!context || gemmepi__is_of_parent(context))
        return;
    allocator = context->allocator;
    gemmepi__map_each(&context->plans, gemmepi__release_entry, context);
    if (!context->is_host)
        gemmepi__close_device(context);
    gemmepi__unload_driver(&context->driver);
    gemmepi__map_each(&context->handles, gemmepi__free_stream_token, context);
    gemmepi__map_each(&context->answers, gemmepi__free_value, context);
    gemmepi__map_free(&context->answers);
    gemmepi__map_free(&context->handles);
    gemmepi__map_free(&context->plans);
    gemmepi__map_free(&context->kernels);
    gemmepi__free_codes(context);
    gemmepi__mutex_destroy(&context->lock);
    gemmepi__mutex_destroy(&context->build_lock);
    gemmepi__mutex_destroy(&context->tune_lock);
    gemmepi__mutex_destroy(&context->formula_lock);
    gemmepi__condition_destroy(&context->kernel_built);
    gemmepi__delete(&allocator, context->dump_path);
    if (context->loader.library_path) {
        char *path;
        memcpy(&path, &context->loader.library_path, sizeof path);
        gemmepi__delete(&allocator, path);
    }
    gemmepi__delete(&allocator, context);
}

#endif
