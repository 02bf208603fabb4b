/* The CUDA driver's interface, as far as it is used: declared by hand, because the toolkit's headers may be missing
   and their names belong to others. tests/compile/declarations.cpp compares every line with those headers. */
#ifndef GEMMEPI_CUDA_DRIVER_H
#define GEMMEPI_CUDA_DRIVER_H

#include "../base/status.h"

typedef int gpi__cu_result;
typedef int gpi__cu_device;
typedef unsigned long long gpi__cu_deviceptr;
typedef gemmepi_stream gpi__cu_stream;
typedef struct gpi__cu_context_opaque *gpi__cu_context;
typedef struct gpi__cu_module_opaque *gpi__cu_module;
typedef struct gpi__cu_function_opaque *gpi__cu_function;
typedef struct gpi__cu_event_opaque *gpi__cu_event;
typedef struct gpi__cu_graph_opaque *gpi__cu_graph;
typedef struct gpi__cu_graph_exec_opaque *gpi__cu_graph_exec;

/* A CUtensorMap, which wants to lie at a multiple of 64. */
typedef struct gpi__cu_tensor_map {
    uint64_t words[16];
} gpi__cu_tensor_map;

/* A CUlaunchAttribute: what it says comes first in `value`. */
typedef struct gpi__cu_launch_attribute {
    int id;
    char pad[4];
    uint64_t value[8];
} gpi__cu_launch_attribute;

typedef struct gpi__cu_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_size;
    gpi__cu_stream stream;
    gpi__cu_launch_attribute *attributes;
    unsigned attribute_count;
} gpi__cu_launch_config;

/* CUDA's name, value; ours has GPI__ before it */
#define GPI__DRIVER_CONSTANTS(X)                                 \
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
    X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                 \
    X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                       \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)        \
    X(CU_TENSOR_MAP_DATA_TYPE_UINT8, 0)                          \
    X(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6)                        \
    X(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 7)                        \
    X(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 9)                       \
    X(CU_TENSOR_MAP_INTERLEAVE_NONE, 0)                          \
    X(CU_TENSOR_MAP_SWIZZLE_32B, 1)                              \
    X(CU_TENSOR_MAP_SWIZZLE_64B, 2)                              \
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
#define GPI__CU_STREAM_LEGACY     1
#define GPI__CU_STREAM_PER_THREAD 2

enum {
#define GPI__DRIVER_CONSTANT(name, value) GPI__##name = value,
    GPI__DRIVER_CONSTANTS(GPI__DRIVER_CONSTANT)
#undef GPI__DRIVER_CONSTANT
};

/* our field, the exported name (present in every driver from CUDA 12.0 on, the newest form then), result, parameters */
#define GPI__DRIVER_FUNCTIONS(X)                                                                           \
    X(init, cuInit, gpi__cu_result, (unsigned flags))                                                      \
    X(driver_get_version, cuDriverGetVersion, gpi__cu_result, (int *version))                              \
    X(device_get, cuDeviceGet, gpi__cu_result, (gpi__cu_device * device, int ordinal))                     \
    X(device_get_count, cuDeviceGetCount, gpi__cu_result, (int *count))                                    \
    X(device_get_name, cuDeviceGetName, gpi__cu_result, (char *name, int size, gpi__cu_device device))     \
    X(device_get_attribute, cuDeviceGetAttribute, gpi__cu_result,                                          \
      (int *value, int attribute, gpi__cu_device device))                                                  \
    X(device_primary_ctx_retain, cuDevicePrimaryCtxRetain, gpi__cu_result,                                 \
      (gpi__cu_context * context, gpi__cu_device device))                                                  \
    X(device_primary_ctx_release, cuDevicePrimaryCtxRelease_v2, gpi__cu_result, (gpi__cu_device device))   \
    X(ctx_get_current, cuCtxGetCurrent, gpi__cu_result, (gpi__cu_context * context))                       \
    X(ctx_push_current, cuCtxPushCurrent_v2, gpi__cu_result, (gpi__cu_context context))                    \
    X(ctx_pop_current, cuCtxPopCurrent_v2, gpi__cu_result, (gpi__cu_context * context))                    \
    X(ctx_get_device, cuCtxGetDevice, gpi__cu_result, (gpi__cu_device * device))                           \
    X(ctx_synchronize, cuCtxSynchronize, gpi__cu_result, (void))                                           \
    X(mem_alloc, cuMemAlloc_v2, gpi__cu_result, (gpi__cu_deviceptr * pointer, size_t size))                \
    X(mem_free, cuMemFree_v2, gpi__cu_result, (gpi__cu_deviceptr pointer))                                 \
    X(mem_host_alloc, cuMemHostAlloc, gpi__cu_result, (void **pointer, size_t size, unsigned flags))       \
    X(mem_free_host, cuMemFreeHost, gpi__cu_result, (void *pointer))                                       \
    X(pointer_get_attribute, cuPointerGetAttribute, gpi__cu_result,                                        \
      (void *value, int attribute, gpi__cu_deviceptr pointer))                                             \
    X(memcpy_htod_async, cuMemcpyHtoDAsync_v2, gpi__cu_result,                                             \
      (gpi__cu_deviceptr to, const void *from, size_t size, gpi__cu_stream stream))                        \
    X(memcpy_dtoh_async, cuMemcpyDtoHAsync_v2, gpi__cu_result,                                             \
      (void *to, gpi__cu_deviceptr from, size_t size, gpi__cu_stream stream))                              \
    X(memset_d8_async, cuMemsetD8Async, gpi__cu_result,                                                    \
      (gpi__cu_deviceptr to, unsigned char value, size_t count, gpi__cu_stream stream))                    \
    X(stream_create, cuStreamCreate, gpi__cu_result, (gpi__cu_stream * stream, unsigned flags))            \
    X(stream_destroy, cuStreamDestroy_v2, gpi__cu_result, (gpi__cu_stream stream))                         \
    X(stream_synchronize, cuStreamSynchronize, gpi__cu_result, (gpi__cu_stream stream))                    \
    X(stream_is_capturing, cuStreamIsCapturing, gpi__cu_result, (gpi__cu_stream stream, int *status))      \
    X(stream_begin_capture, cuStreamBeginCapture_v2, gpi__cu_result, (gpi__cu_stream stream, int mode))    \
    X(stream_end_capture, cuStreamEndCapture, gpi__cu_result,                                              \
      (gpi__cu_stream stream, gpi__cu_graph * graph))                                                      \
    X(graph_instantiate, cuGraphInstantiateWithFlags, gpi__cu_result,                                      \
      (gpi__cu_graph_exec * exec, gpi__cu_graph graph, unsigned long long flags))                          \
    X(graph_launch, cuGraphLaunch, gpi__cu_result, (gpi__cu_graph_exec exec, gpi__cu_stream stream))       \
    X(graph_exec_destroy, cuGraphExecDestroy, gpi__cu_result, (gpi__cu_graph_exec exec))                   \
    X(graph_destroy, cuGraphDestroy, gpi__cu_result, (gpi__cu_graph graph))                                \
    X(event_create, cuEventCreate, gpi__cu_result, (gpi__cu_event * event, unsigned flags))                \
    X(event_destroy, cuEventDestroy_v2, gpi__cu_result, (gpi__cu_event event))                             \
    X(event_record, cuEventRecord, gpi__cu_result, (gpi__cu_event event, gpi__cu_stream stream))           \
    X(event_synchronize, cuEventSynchronize, gpi__cu_result, (gpi__cu_event event))                        \
    X(event_elapsed_time, cuEventElapsedTime, gpi__cu_result,                                              \
      (float *milliseconds, gpi__cu_event from, gpi__cu_event to))                                         \
    X(thread_exchange_stream_capture_mode, cuThreadExchangeStreamCaptureMode, gpi__cu_result, (int *mode)) \
    X(module_load_data, cuModuleLoadData, gpi__cu_result, (gpi__cu_module * module, const void *image))    \
    X(module_unload, cuModuleUnload, gpi__cu_result, (gpi__cu_module module))                              \
    X(module_get_function, cuModuleGetFunction, gpi__cu_result,                                            \
      (gpi__cu_function * function, gpi__cu_module module, const char *name))                              \
    X(func_set_attribute, cuFuncSetAttribute, gpi__cu_result,                                              \
      (gpi__cu_function function, int attribute, int value))                                               \
    X(tensor_map_encode_tiled, cuTensorMapEncodeTiled, gpi__cu_result,                                     \
      (gpi__cu_tensor_map * map, int type, uint32_t rank, void *address, const uint64_t *extents,          \
       const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,   \
       int promotion, int fill))                                                                           \
    X(tensor_map_replace_address, cuTensorMapReplaceAddress, gpi__cu_result,                               \
      (gpi__cu_tensor_map * map, void *address))                                                           \
    X(launch_kernel, cuLaunchKernel, gpi__cu_result,                                                       \
      (gpi__cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,     \
       unsigned block_y, unsigned block_z, unsigned shared_size, gpi__cu_stream stream, void **parameters, \
       void **extra))                                                                                      \
    X(launch_kernel_ex, cuLaunchKernelEx, gpi__cu_result,                                                  \
      (const gpi__cu_launch_config *config, gpi__cu_function function, void **parameters, void **extra))   \
    X(get_error_name, cuGetErrorName, gpi__cu_result, (gpi__cu_result error, const char **name))           \
    X(get_error_string, cuGetErrorString, gpi__cu_result, (gpi__cu_result error, const char **text))

/* Filled by gpi__load_driver; then every function is there. */
typedef struct gpi__driver {
    void *library; /* NULL if a resolver supplied everything */
    int version;   /* 13000 for CUDA 13.0                    */
#define GPI__DRIVER_FIELD(field, symbol, result, parameters) result(GPI__CUDA_CALL *field) parameters;
    GPI__DRIVER_FUNCTIONS(GPI__DRIVER_FIELD)
#undef GPI__DRIVER_FIELD
} gpi__driver;

/* The status and the sentence for an error code of the driver; what says what was being done. */
static gemmepi_status gpi__cuda_failed(const gpi__driver *driver, gpi__cu_result result, const char *what) {
    const char *name = NULL, *text = NULL;
    driver->get_error_name(result, &name);
    driver->get_error_string(result, &text);
    return gpi__fail(result == GPI__CUDA_ERROR_OUT_OF_MEMORY ? GEMMEPI_OUT_OF_MEMORY : GEMMEPI_CUDA_ERROR,
                     "%s: the CUDA driver returned %s (%d), %s", what, name ? name : "an unknown error",
                     result, text ? text : "for which it has no text");
}

#endif
