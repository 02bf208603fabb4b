/* Workspace: a block for each stream, found without a lock.

   A bucket is a list that only grows at its head: a block is published whole, and neither moved nor freed before the
   context goes, because captured graphs keep its address. A stream is known by its id, which CUDA never gives twice
   and which tells the per-thread default streams of different threads apart. */
#ifndef GEMMEPI_DEVICE_WORKSPACE_H
#define GEMMEPI_DEVICE_WORKSPACE_H

#include "context.h"

typedef struct gemmepi__block {
    struct gemmepi__block *next;
    unsigned long long stream_id;
    gemmepi__cu_deviceptr address;
    size_t size;
} gemmepi__block;

/* Blocks below this double, so that growing problems do not leave a trail of them. */
#define GEMMEPI__BLOCK_DOUBLES_BELOW ((size_t)64 << 20)

static gemmepi__block *gemmepi__find_block(const gemmepi_context *context, unsigned long long stream_id,
                                           size_t size) {
    gemmepi__block *block =
        (gemmepi__block *)gemmepi__load_pointer(&context->blocks[stream_id % GEMMEPI__BLOCK_BUCKETS]);
    while (block && (block->stream_id != stream_id || block->size < size))
        block = block->next;
    return block;
}

/* Memory of the stream for a run, or NULL. The primary context is current. */
static void *gemmepi__workspace_of(const gemmepi_context *context, gemmepi_stream stream, size_t size) {
    unsigned long long stream_id = 0;
    gemmepi__block *block;
    if (context->driver.stream_get_id(stream, &stream_id) != 0)
        return NULL;
    block = gemmepi__find_block(context, stream_id, size);
    return block ? (void *)(uintptr_t)block->address : NULL;
}

static gemmepi_status gemmepi__add_block(gemmepi_context *context, unsigned long long stream_id,
                                         size_t size) {
    gemmepi__atomic_pointer *bucket = &context->blocks[stream_id % GEMMEPI__BLOCK_BUCKETS];
    gemmepi__block *older = gemmepi__find_block(context, stream_id, 0), *block;
    int result;
    if (older && older->size < GEMMEPI__BLOCK_DOUBLES_BELOW && size < 2 * older->size)
        size = 2 * older->size;
    block = (gemmepi__block *)gemmepi__new(&context->allocator, sizeof *block);
    if (!block)
        return GEMMEPI_OUT_OF_MEMORY;
    result = context->driver.mem_alloc(&block->address, size);
    if (result) {
        char what[96];
        gemmepi__delete(&context->allocator, block);
        snprintf(what, sizeof what, "allocating %llu bytes of workspace", (gemmepi__ull)size);
        return gemmepi__cuda_failed(&context->driver, result, what);
    }
    block->stream_id = stream_id;
    block->size = size;
    block->next = (gemmepi__block *)gemmepi__load_pointer(bucket);
    gemmepi__publish_pointer(bucket, block);
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__reserve_entered(gemmepi_context *context, gemmepi_stream stream, size_t size) {
    unsigned long long stream_id = 0;
    int capture = 0, result = context->driver.stream_get_id(stream, &stream_id);
    gemmepi_status status = GEMMEPI_OK;
    if (result)
        return gemmepi__cuda_failed(&context->driver, result,
                                    "cuStreamGetId (is stream a stream of this device?)");
    if (gemmepi__find_block(context, stream_id, size))
        return GEMMEPI_OK;
    result = context->driver.stream_is_capturing(stream, &capture);
    if (result)
        return gemmepi__cuda_failed(&context->driver, result, "cuStreamIsCapturing");
    if (capture != GEMMEPI__CU_STREAM_CAPTURE_STATUS_NONE)
        return gemmepi__fail(
            GEMMEPI_BUFFER_TOO_SMALL,
            "stream is being captured and has no %llu bytes of workspace; call gemmepi_prepare before the "
            "capture, or give args.workspace",
            (gemmepi__ull)size);
    gemmepi__lock(&context->lock);
    if (!gemmepi__find_block(context, stream_id, size))
        status = gemmepi__add_block(context, stream_id, size);
    gemmepi__unlock(&context->lock);
    return status;
}

static gemmepi_status gemmepi__reserve(gemmepi_context *context, gemmepi_stream stream, size_t size) {
    gemmepi__entry entry;
    gemmepi_status status;
    if (size == 0)
        return GEMMEPI_OK;
    status = gemmepi__enter_relaxed(context, &entry);
    if (status)
        return status;
    status = gemmepi__reserve_entered(context, stream, size);
    gemmepi__leave_relaxed(context, &entry);
    return status;
}

static void gemmepi__free_blocks(gemmepi_context *context) {
    size_t i;
    for (i = 0; i < GEMMEPI__BLOCK_BUCKETS; i++) {
        gemmepi__block *block = (gemmepi__block *)gemmepi__load_pointer(&context->blocks[i]), *next;
        for (; block; block = next) {
            next = block->next;
            context->driver.mem_free(block->address);
            gemmepi__delete(&context->allocator, block);
        }
    }
}

#endif
