/* The CUDA driver's interface, as far as it is used: declared by hand, because the toolkit's headers may be missing
   and their names belong to others. tests/compile/declarations.cpp compares every line with those headers. */
#ifndef GEMMEPI_CUDA_DRIVER_H
#define GEMMEPI_CUDA_DRIVER_H

#include "../base/status.h"

typedef int gemmepi__cu_result;
typedef int gemmepi__cu_device;
typedef unsigned long long gemmepi__cu_deviceptr;
typedef gemmepi_stream gemmepi__cu_stream;
typedef struct gemmepi__cu_context_opaque *gemmepi__cu_context;
typedef struct gemmepi__cu_module_opaque *gemmepi__cu_module;
typedef struct gemmepi__cu_function_opaque *gemmepi__cu_function;
typedef struct gemmepi__cu_event_opaque *gemmepi__cu_event;
typedef struct gemmepi__cu_graph_opaque *gemmepi__cu_graph;
typedef struct gemmepi__cu_graph_exec_opaque *gemmepi__cu_graph_exec;

/* A CUtensorMap, which wants to lie at a multiple of 64. */
typedef struct gemmepi__cu_tensor_map {
    uint64_t words[16];
} gemmepi__cu_tensor_map;

/* A CUlaunchAttribute: what it says comes first in `value`. */
typedef struct gemmepi__cu_launch_attribute {
    int id;
    char pad[4];
    uint64_t value[8];
} gemmepi__cu_launch_attribute;

typedef struct gemmepi__cu_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_size;
    gemmepi__cu_stream stream;
    gemmepi__cu_launch_attribute *attributes;
    unsigned attribute_count;
} gemmepi__cu_launch_config;

/* CUDA's name, value; ours has GEMMEPI__ before it */
#define GEMMEPI__DRIVER_CONSTANTS(X)                             \
    X(CUDA_SUCCESS, 0)                                           \
    X(CUDA_ERROR_INVALID_VALUE, 1)                               \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                               \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                             \
    X(CUDA_ERROR_DEINITIALIZED, 4)                               \
    X(CUDA_ERROR_STUB_LIBRARY, 34)                               \
    X(CUDA_ERROR_NO_DEVICE, 100)                                 \
    X(CUDA_ERROR_INVALID_DEVICE, 101)                            \
    X(CUDA_ERROR_INVALID_IMAGE, 200)                             \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                           \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                         \
    X(CUDA_ERROR_INVALID_PTX, 218)                               \
    X(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)                    \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                   \
    X(CUDA_ERROR_INVALID_SOURCE, 300)                            \
    X(CUDA_ERROR_INVALID_HANDLE, 400)                            \
    X(CUDA_ERROR_NOT_FOUND, 500)                                 \
    X(CUDA_ERROR_NOT_READY, 600)                                 \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)                   \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)              \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                 \
    X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)           \
    X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                     \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)          \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)          \
    X(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 88)            \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
    X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                       \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)        \
    X(CU_TENSOR_MAP_DATA_TYPE_UINT8, 0)                          \
    X(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6)                        \
    X(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 7)                        \
    X(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 9)                       \
    X(CU_TENSOR_MAP_INTERLEAVE_NONE, 0)                          \
    X(CU_TENSOR_MAP_SWIZZLE_128B, 3)                             \
    X(CU_TENSOR_MAP_L2_PROMOTION_NONE, 0)                        \
    X(CU_TENSOR_MAP_L2_PROMOTION_L2_128B, 2)                     \
    X(CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 3)                     \
    X(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0)                      \
    X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)  \
    X(CU_MEMHOSTALLOC_PORTABLE, 1)                               \
    X(CU_MEMHOSTALLOC_DEVICEMAP, 2)                              \
    X(CU_STREAM_DEFAULT, 0)                                      \
    X(CU_STREAM_NON_BLOCKING, 1)                                 \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                         \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                          \
    X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                        \
    X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)

/* handles that stand for streams, as casts of these numbers: CU_STREAM_LEGACY and CU_STREAM_PER_THREAD */
#define GEMMEPI__CU_STREAM_LEGACY     1
#define GEMMEPI__CU_STREAM_PER_THREAD 2

enum {
#define GEMMEPI__DRIVER_CONSTANT(name, value) GEMMEPI__##name = value,
    GEMMEPI__DRIVER_CONSTANTS(GEMMEPI__DRIVER_CONSTANT)
#undef GEMMEPI__DRIVER_CONSTANT
};

/* our field, the exported name (present in every driver from CUDA 12.0 on, the newest form then), result, parameters */
#define GEMMEPI__DRIVER_FUNCTIONS(X)                                                                         \
    X(init, cuInit, gemmepi__cu_result, (unsigned flags))                                                    \
    X(driver_get_version, cuDriverGetVersion, gemmepi__cu_result, (int *version))                            \
    X(device_get, cuDeviceGet, gemmepi__cu_result, (gemmepi__cu_device * device, int ordinal))               \
    X(device_get_count, cuDeviceGetCount, gemmepi__cu_result, (int *count))                                  \
    X(device_get_name, cuDeviceGetName, gemmepi__cu_result,                                                  \
      (char *name, int size, gemmepi__cu_device device))                                                     \
    X(device_get_attribute, cuDeviceGetAttribute, gemmepi__cu_result,                                        \
      (int *value, int attribute, gemmepi__cu_device device))                                                \
    X(device_primary_ctx_retain, cuDevicePrimaryCtxRetain, gemmepi__cu_result,                               \
      (gemmepi__cu_context * context, gemmepi__cu_device device))                                            \
    X(device_primary_ctx_release, cuDevicePrimaryCtxRelease_v2, gemmepi__cu_result,                          \
      (gemmepi__cu_device device))                                                                           \
    X(ctx_get_current, cuCtxGetCurrent, gemmepi__cu_result, (gemmepi__cu_context * context))                 \
    X(ctx_push_current, cuCtxPushCurrent_v2, gemmepi__cu_result, (gemmepi__cu_context context))              \
    X(ctx_pop_current, cuCtxPopCurrent_v2, gemmepi__cu_result, (gemmepi__cu_context * context))              \
    X(ctx_get_device, cuCtxGetDevice, gemmepi__cu_result, (gemmepi__cu_device * device))                     \
    X(ctx_synchronize, cuCtxSynchronize, gemmepi__cu_result, (void))                                         \
    X(mem_alloc, cuMemAlloc_v2, gemmepi__cu_result, (gemmepi__cu_deviceptr * pointer, size_t size))          \
    X(mem_free, cuMemFree_v2, gemmepi__cu_result, (gemmepi__cu_deviceptr pointer))                           \
    X(mem_host_alloc, cuMemHostAlloc, gemmepi__cu_result, (void **pointer, size_t size, unsigned flags))     \
    X(mem_free_host, cuMemFreeHost, gemmepi__cu_result, (void *pointer))                                     \
    X(pointer_get_attribute, cuPointerGetAttribute, gemmepi__cu_result,                                      \
      (void *value, int attribute, gemmepi__cu_deviceptr pointer))                                           \
    X(memcpy_htod_async, cuMemcpyHtoDAsync_v2, gemmepi__cu_result,                                           \
      (gemmepi__cu_deviceptr to, const void *from, size_t size, gemmepi__cu_stream stream))                  \
    X(memcpy_dtoh_async, cuMemcpyDtoHAsync_v2, gemmepi__cu_result,                                           \
      (void *to, gemmepi__cu_deviceptr from, size_t size, gemmepi__cu_stream stream))                        \
    X(memset_d8_async, cuMemsetD8Async, gemmepi__cu_result,                                                  \
      (gemmepi__cu_deviceptr to, unsigned char value, size_t count, gemmepi__cu_stream stream))              \
    X(stream_create, cuStreamCreate, gemmepi__cu_result, (gemmepi__cu_stream * stream, unsigned flags))      \
    X(stream_destroy, cuStreamDestroy_v2, gemmepi__cu_result, (gemmepi__cu_stream stream))                   \
    X(stream_synchronize, cuStreamSynchronize, gemmepi__cu_result, (gemmepi__cu_stream stream))              \
    X(stream_is_capturing, cuStreamIsCapturing, gemmepi__cu_result,                                          \
      (gemmepi__cu_stream stream, int *status))                                                              \
    X(stream_begin_capture, cuStreamBeginCapture_v2, gemmepi__cu_result,                                     \
      (gemmepi__cu_stream stream, int mode))                                                                 \
    X(stream_end_capture, cuStreamEndCapture, gemmepi__cu_result,                                            \
      (gemmepi__cu_stream stream, gemmepi__cu_graph * graph))                                                \
    X(graph_instantiate, cuGraphInstantiateWithFlags, gemmepi__cu_result,                                    \
      (gemmepi__cu_graph_exec * exec, gemmepi__cu_graph graph, unsigned long long flags))                    \
    X(graph_launch, cuGraphLaunch, gemmepi__cu_result,                                                       \
      (gemmepi__cu_graph_exec exec, gemmepi__cu_stream stream))                                              \
    X(graph_exec_destroy, cuGraphExecDestroy, gemmepi__cu_result, (gemmepi__cu_graph_exec exec))             \
    X(graph_destroy, cuGraphDestroy, gemmepi__cu_result, (gemmepi__cu_graph graph))                          \
    X(event_create, cuEventCreate, gemmepi__cu_result, (gemmepi__cu_event * event, unsigned flags))          \
    X(event_destroy, cuEventDestroy_v2, gemmepi__cu_result, (gemmepi__cu_event event))                       \
    X(event_record, cuEventRecord, gemmepi__cu_result, (gemmepi__cu_event event, gemmepi__cu_stream stream)) \
    X(event_synchronize, cuEventSynchronize, gemmepi__cu_result, (gemmepi__cu_event event))                  \
    X(event_elapsed_time, cuEventElapsedTime, gemmepi__cu_result,                                            \
      (float *milliseconds, gemmepi__cu_event from, gemmepi__cu_event to))                                   \
    X(thread_exchange_stream_capture_mode, cuThreadExchangeStreamCaptureMode, gemmepi__cu_result,            \
      (int *mode))                                                                                           \
    X(module_load_data, cuModuleLoadData, gemmepi__cu_result,                                                \
      (gemmepi__cu_module * module, const void *image))                                                      \
    X(module_unload, cuModuleUnload, gemmepi__cu_result, (gemmepi__cu_module module))                        \
    X(module_get_function, cuModuleGetFunction, gemmepi__cu_result,                                          \
      (gemmepi__cu_function * function, gemmepi__cu_module module, const char *name))                        \
    X(func_set_attribute, cuFuncSetAttribute, gemmepi__cu_result,                                            \
      (gemmepi__cu_function function, int attribute, int value))                                             \
    X(tensor_map_encode_tiled, cuTensorMapEncodeTiled, gemmepi__cu_result,                                   \
      (gemmepi__cu_tensor_map * map, int type, uint32_t rank, void *address, const uint64_t *extents,        \
       const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,     \
       int promotion, int fill))                                                                             \
    X(tensor_map_replace_address, cuTensorMapReplaceAddress, gemmepi__cu_result,                             \
      (gemmepi__cu_tensor_map * map, void *address))                                                         \
    X(launch_kernel, cuLaunchKernel, gemmepi__cu_result,                                                     \
      (gemmepi__cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
       unsigned block_y, unsigned block_z, unsigned shared_size, gemmepi__cu_stream stream,                  \
       void **parameters, void **extra))                                                                     \
    X(launch_kernel_ex, cuLaunchKernelEx, gemmepi__cu_result,                                                \
      (const gemmepi__cu_launch_config *config, gemmepi__cu_function function, void **parameters,            \
       void **extra))                                                                                        \
    X(get_error_name, cuGetErrorName, gemmepi__cu_result, (gemmepi__cu_result error, const char **name))     \
    X(get_error_string, cuGetErrorString, gemmepi__cu_result, (gemmepi__cu_result error, const char **text))

/* Filled by gemmepi__load_driver; then every function is there. */
typedef struct gemmepi__driver {
    void *library; /* NULL if a resolver supplied everything */
    int version;   /* 13000 for CUDA 13.0                    */
#define GEMMEPI__DRIVER_FIELD(field, symbol, result, parameters) result(GEMMEPI__CUDA_CALL *field) parameters;
    GEMMEPI__DRIVER_FUNCTIONS(GEMMEPI__DRIVER_FIELD)
#undef GEMMEPI__DRIVER_FIELD
} gemmepi__driver;

/* The status and the sentence for an error code of the driver; what says what was being done. */
static gemmepi_status gemmepi__cuda_failed(const gemmepi__driver *driver, gemmepi__cu_result result,
                                           const char *what) {
    const char *name = NULL, *text = NULL;
    driver->get_error_name(result, &name);
    driver->get_error_string(result, &text);
    return gemmepi__fail(result == GEMMEPI__CUDA_ERROR_OUT_OF_MEMORY ? GEMMEPI_OUT_OF_MEMORY
                                                                     : GEMMEPI_CUDA_ERROR,
                         "%s: the CUDA driver returned %s (%d), %s", what, name ? name : "an unknown error",
                         result, text ? text : "for which it has no text");
}

#endif
