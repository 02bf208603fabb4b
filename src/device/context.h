/* A context: one device, what was loaded for it, and what it keeps. */
#ifndef GEMMEPI_DEVICE_CONTEXT_H
#define GEMMEPI_DEVICE_CONTEXT_H

#include "../base/map.h"
#include "../base/memory.h"
#include "../base/thread.h"
#include "../cuda/load.h"
#include "disk_cache.h"

#define GPI__BLOCK_BUCKETS 64

struct gemmepi_context {
    gemmepi_allocator allocator;
    gpi__log log;
    gpi__loader loader;
    int is_host;
    int check_pointers;        /* config.check_pointers */
    char fallback_reason[512]; /* why the host took a GPU's place, or "" */
    const long
        *forks_now; /* gpi__forks of the file that made it: with GEMMEPI_STATIC others have their own */
    long forks;     /* what it was then                                                                  */

    /* the GPU; all of it fixed once the context is created */
    gpi__driver driver;
    gpi__cu_device device;
    gpi__cu_context primary; /* NULL: not retained */
    int ordinal;
    int arch;                  /* 90 for compute capability 9.0 */
    int multiprocessors;       /* that products take */
    int asked_multiprocessors; /* config.multiprocessors where the device has more, else 0 */
    double memory_rate;   /* bytes a microsecond that memory gives, by its clock and width; 0: not known */
    int reaches_pageable; /* kernels may read host memory that CUDA does not know */
    unsigned routes;      /* config.routes */
    double tune;          /* config.tune */
    int check;            /* config.check */
    char name[128];
    gpi__cu_deviceptr ones; /* F32 1 and 1: the scalars of D += A B where they are to lie on the device */

    gpi__mutex build_lock; /* held while a plan is built, but not while NVRTC compiles: guards what follows */
    gpi__condition kernel_built;
    gpi__nvrtc nvrtc;
    gpi__cublaslt cublaslt;
    gpi__lt_handle lt_handle; /* NULL: cuBLASLt not opened */
    int has_nvrtc, has_cublaslt;
    int warned_of_nvrtc;    /* that it serialises wgmma */
    int entered_to_destroy; /* gemmepi_destroy could make the primary context current */
    gpi__disk_cache disk;
    char *dump_path;  /* NULL: nothing is dumped */
    gpi__map kernels; /* gpi__kernel by file and prologue */
    gpi__map codes;   /* of kernels that were compiled or found on disk: see code.h */
    struct gpi__bundle *bundles;
    long kernels_compiled, kernels_from_disk, kernels_from_bundle;
    gpi__map checks;  /* gpi__lt_verdict by the kind of a product of cuBLASLt's: what config.check found */
    gpi__map answers; /* gpi__answer by a problem's digest: what tuning found */
    gpi__mutex
        tune_lock; /* held while a problem is tuned: what is timed is alone, as far as the context goes */
    int only_workspace; /* only workspace is asked for: no kernel is looked for */

    gpi__atomic_pointer faults; /* what kernels found wrong: see faults.h; NULL: no plan has such kernels */

    gpi__mutex lock;  /* held for moments: guards streams, spans, plans, and adding to blocks */
    gpi__map streams; /* the host's, and memory that it gave out, by address: see handles.h */
    struct gpi__span *spans;
    size_t span_count, span_room;
    gpi__map plans; /* of one-shot calls: gpi__kept by problem or task */
    long plan_clock;
    long generation;                    /* of what plans are chosen by: changed under lock, read without */
    gpi__mutex formula_lock;            /* held for moments, within lock too */
    struct gpi__kept_formula *formulas; /* of plans and of calls under way: each once */
    gpi__atomic_pointer blocks[GPI__BLOCK_BUCKETS]; /* workspace, see workspace.h; read without a lock */
};

static int gpi__is_of_parent(const gemmepi_context *context) {
    return *context->forks_now != context->forks;
}

/* 1 with the sentence if the context is the parent's and this is the child. Every public function asks, before it takes a
   lock: where another thread of the parent held one at the fork, nobody lets go of it here. */
static int gpi__came_by_fork(const gemmepi_context *context) {
    if (!gpi__is_of_parent(context))
        return 0;
    (void)gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        context->forks < 0
            ? "the context has been destroyed"
            : "the context was made before fork(), and this process is the child: a child makes its own "
              "(or it, or the plan, has been destroyed)");
    return 1;
}

/* What a call asks first. other: a pointer that it needs; name: its. */
static gemmepi_status gpi__check_call(const gemmepi_context *context, const void *other, const char *name) {
    GPI__INVALID_IF(!context || !other, "%s is NULL", context ? name : "context");
    return gpi__came_by_fork(context) ? GEMMEPI_INVALID_ARGUMENT : GEMMEPI_OK;
}

/* >>entering: the primary context is current while the library works, and the caller's own again afterwards */

typedef struct gpi__entry {
    int pushed;
    int previous_mode;
} gpi__entry;

static gemmepi_status gpi__enter(const gemmepi_context *context, gpi__entry *entry) {
    gpi__cu_context current = NULL;
    int result = context->driver.ctx_get_current(&current);
    entry->pushed = 0;
    if (result == 0 && current == context->primary)
        return GEMMEPI_OK;
    result = context->driver.ctx_push_current(context->primary);
    if (result)
        return gpi__cuda_failed(&context->driver, result, "cuCtxPushCurrent");
    entry->pushed = 1;
    return GEMMEPI_OK;
}

static void gpi__leave(const gemmepi_context *context, const gpi__entry *entry) {
    gpi__cu_context popped;
    if (entry->pushed)
        context->driver.ctx_pop_current(&popped);
}

/* For work that allocates, loads code or waits: allowed also while some other stream is being captured, because none of it
   touches that one. */
static gemmepi_status gpi__enter_relaxed(const gemmepi_context *context, gpi__entry *entry) {
    gemmepi_status status = gpi__enter(context, entry);
    int result;
    entry->previous_mode = GPI__CU_STREAM_CAPTURE_MODE_RELAXED;
    if (status)
        return status;
    result = context->driver.thread_exchange_stream_capture_mode(&entry->previous_mode);
    if (!result)
        return GEMMEPI_OK;
    gpi__leave(context, entry); /* the mode is as it was, and so must it stay */
    return gpi__cuda_failed(&context->driver, result, "cuThreadExchangeStreamCaptureMode");
}

static void gpi__leave_relaxed(const gemmepi_context *context, gpi__entry *entry) {
    context->driver.thread_exchange_stream_capture_mode(&entry->previous_mode);
    gpi__leave(context, entry);
}

/* >>info */

GEMMEPI_API gemmepi_status gemmepi_context_info(gemmepi_context *context, gemmepi_context_details *details) {
    gemmepi_status status;
    if (details)
        memset(details, 0, sizeof *details);
    status = gpi__check_call(context, details, "details");
    if (status)
        return status;
    details->is_host = context->is_host;
    memcpy(details->fallback_reason, context->fallback_reason, sizeof details->fallback_reason);
    details->device = context->ordinal;
    memcpy(details->name, context->name, sizeof details->name);
    details->compute_capability = context->arch;
    details->multiprocessors = context->multiprocessors;
    if (context->is_host)
        return GEMMEPI_OK;
    gpi__lock(&context->build_lock);
    details->driver_version = context->driver.version;
    details->nvrtc_version = context->has_nvrtc ? context->nvrtc.version : 0;
    details->cublaslt_version = context->has_cublaslt ? context->cublaslt.version : 0;
    details->kernels_compiled = context->kernels_compiled;
    details->kernels_from_disk = context->kernels_from_disk;
    details->kernels_from_bundle = context->kernels_from_bundle;
    snprintf(details->cache_path, sizeof details->cache_path, "%s", gpi__disk_cache_path(&context->disk));
    gpi__unlock(&context->build_lock);
    return GEMMEPI_OK;
}

#endif
