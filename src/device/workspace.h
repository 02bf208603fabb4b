/* Workspace: a block for each stream, found without a lock.

   A bucket is a list that only grows at its head: a block is published whole, and neither moved nor freed before the
   context goes, because captured graphs keep its address. A stream is known by its handle (its id would be better, but
   CUDA does not tell it while the stream is being captured); the handle of the per-thread default stream stands for a
   stream of each thread, and of each file where such have implementations of their own (GEMMEPI_STATIC).

   A run is several launches through one block, so threads that run on one stream take turns for the time of them. */
#ifndef GEMMEPI_DEVICE_WORKSPACE_H
#define GEMMEPI_DEVICE_WORKSPACE_H

#include "handles.h"

typedef struct gpi__stream_key {
    uintptr_t handle;
    uintptr_t thread; /* 0 but for the per-thread default stream: the thread's number, and who numbered it */
    uintptr_t numbered_by;
} gpi__stream_key;

typedef struct gpi__block {
    struct gpi__block *next;
    gpi__stream_key stream;
    gpi__cu_deviceptr address;
    size_t size;
    gpi__mutex turn; /* held while a run launches */
} gpi__block;

static gpi__stream_key gpi__key_of_stream(gemmepi_stream stream) {
    gpi__stream_key key;
    key.handle = (uintptr_t)stream;
    key.thread = key.numbered_by = 0;
    if (key.handle == GPI__CU_STREAM_LEGACY)
        key.handle = 0; /* the same stream as NULL */
    if (key.handle == GPI__CU_STREAM_PER_THREAD) {
        key.thread = gpi__thread_number();
        key.numbered_by = (uintptr_t)&gpi__threads_numbered;
    }
    return key;
}

/* Returns the key of a stream's block: 0 is that of products, 1 of runs that products are parts of, 2 of runs that those are parts of. */
static gpi__stream_key gpi__key_of_block(gemmepi_stream stream, int number) {
    gpi__stream_key key = gpi__key_of_stream(stream);
    if (number)
        key.thread = ~key.thread; /* no thread has that number */
    if (number > 1)
        key.numbered_by = ~key.numbered_by;
    return key;
}

static gpi__atomic_pointer *gpi__bucket_of(gemmepi_context *context, gpi__stream_key key) {
    /* handles are addresses of allocations: their low bits say little */
    return &context->blocks[(key.handle >> 4 ^ key.handle >> 12 ^ key.thread) % GPI__BLOCK_BUCKETS];
}

static int gpi__is_of_stream(const gpi__block *block, gpi__stream_key key) {
    return block->stream.handle == key.handle && block->stream.thread == key.thread &&
           block->stream.numbered_by == key.numbered_by;
}

static gpi__block *gpi__find_block(gemmepi_context *context, gpi__stream_key key, size_t size) {
    gpi__block *block = (gpi__block *)gpi__load_pointer(gpi__bucket_of(context, key));
    while (block && !(gpi__is_of_stream(block, key) && block->size >= size))
        block = block->next;
    return block;
}

/* At least twice as large as the stream's last one, so that all those of growing problems together are less than four times
   what the largest needs; where there is no memory for that, as large as is needed. */
static gemmepi_status gpi__add_block(gemmepi_context *context, gpi__stream_key key, size_t size) {
    gpi__atomic_pointer *bucket = gpi__bucket_of(context, key);
    gpi__block *older = gpi__find_block(context, key, 0), *block;
    size_t needed = size;
    int result;
    if (older && size < 2 * older->size)
        size = 2 * older->size;
    block = (gpi__block *)gpi__new(&context->allocator, sizeof *block);
    if (!block)
        return GEMMEPI_OUT_OF_MEMORY;
    if (!gpi__mutex_init(&block->turn)) {
        gpi__delete(&context->allocator, block);
        return gpi__fail(GEMMEPI_OUT_OF_MEMORY, "the system gave no mutex");
    }
    result = context->driver.mem_alloc(&block->address, size);
    if (result && size > needed) {
        size = needed;
        result = context->driver.mem_alloc(&block->address, size);
    }
    if (result) {
        char what[96];
        gpi__mutex_destroy(&block->turn);
        gpi__delete(&context->allocator, block);
        snprintf(what, sizeof what, "allocating %llu bytes of workspace", (gpi__ull)size);
        return gpi__cuda_failed(&context->driver, result, what);
    }
    block->stream = key;
    block->size = size;
    block->next = (gpi__block *)gpi__load_pointer(bucket);
    gpi__publish_pointer(bucket, block);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__reserve_entered(gemmepi_context *context, gemmepi_stream stream,
                                           gpi__stream_key key, size_t size) {
    gemmepi_status status = GEMMEPI_OK;
    int capture = 0, result;
    if (gpi__find_block(context, key, size))
        return GEMMEPI_OK;
    result = context->driver.stream_is_capturing(stream, &capture);
    if (result)
        return gpi__cuda_failed(&context->driver, result, "cuStreamIsCapturing");
    GPI__REFUSE_IF(
        capture != GPI__CU_STREAM_CAPTURE_STATUS_NONE, GEMMEPI_BUFFER_TOO_SMALL,
        "stream is being captured and has no %llu bytes of workspace; reserve it before the capture "
        "(gemmepi_plan_prepare), or run a plan with "
        "args.workspace",
        (gpi__ull)size);
    gpi__lock(&context->lock);
    if (!gpi__find_block(context, key, size))
        status = gpi__add_block(context, key, size);
    gpi__unlock(&context->lock);
    return status;
}

/* block_number: as in gpi__key_of_block. */
static gemmepi_status gpi__reserve(gemmepi_context *context, gemmepi_stream stream, int block_number,
                                   size_t size) {
    gpi__entry entry;
    gemmepi_status status = gpi__check_stream(context, stream);
    if (status || size == 0)
        return status;
    status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    status = gpi__reserve_entered(context, stream, gpi__key_of_block(stream, block_number), size);
    gpi__leave_relaxed(context, &entry);
    return status;
}

/* For a run: a block that was reserved, whose turn it is until gpi__give_block; or NULL with the sentence. */
static gpi__block *gpi__acquire_block(gemmepi_context *context, gpi__stream_key key, size_t size) {
    gpi__block *block = gpi__find_block(context, key, size);
    if (block)
        gpi__lock(&block->turn);
    else
        (void)gpi__fail(
            GEMMEPI_BUFFER_TOO_SMALL,
            "args.workspace is NULL and gemmepi_plan_prepare has reserved no %llu bytes for this stream",
            (gpi__ull)size);
    return block;
}

static void gpi__give_block(gpi__block *block) {
    gpi__unlock(&block->turn);
}

/* A workspace of the caller's, which gpi__check_run has looked at: what it overlaps is another question. */
static gemmepi_status gpi__check_given_workspace(size_t given, size_t needed) {
    GPI__REFUSE_IF(given < needed, GEMMEPI_BUFFER_TOO_SMALL,
                   "args.workspace_size is %llu; this plan needs %llu bytes", (gpi__ull)given,
                   (gpi__ull)needed);
    return GEMMEPI_OK;
}

/* entered: the primary context is current; without it only host memory can be freed */
static void gpi__free_blocks(gemmepi_context *context, int entered) {
    size_t i;
    for (i = 0; i < GPI__BLOCK_BUCKETS; i++) {
        gpi__block *block = (gpi__block *)gpi__load_pointer(&context->blocks[i]), *next;
        for (; block; block = next) {
            next = block->next;
            if (entered)
                context->driver.mem_free(block->address);
            gpi__mutex_destroy(&block->turn);
            gpi__delete(&context->allocator, block);
        }
    }
}

#endif
