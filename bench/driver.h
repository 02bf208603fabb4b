/* The few functions of the CUDA driver that a measurement needs besides gemmepi's own, found when the program runs. */
#ifndef GEMMEPI_BENCH_DRIVER_H
#define GEMMEPI_BENCH_DRIVER_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long long driver_address;

/* our field, the exported name, parameters; every result is an int, 0 for success */
#define DRIVER_FUNCTIONS(X)                                                                                 \
    X(device_get, cuDeviceGet, (int *device, int ordinal))                                                  \
    X(primary_retain, cuDevicePrimaryCtxRetain, (void **context, int device))                               \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (int device))                                          \
    X(set_current, cuCtxSetCurrent, (void *context))                                                        \
    X(copy, cuMemcpyDtoDAsync_v2, (driver_address to, driver_address from, size_t bytes, void *stream))     \
    X(set_bytes, cuMemsetD8Async, (driver_address to, unsigned char value, size_t count, void *stream))     \
    X(set_words, cuMemsetD32Async, (driver_address to, unsigned value, size_t count, void *stream))         \
    X(event_create, cuEventCreate, (void **event, unsigned flags))                                          \
    X(event_destroy, cuEventDestroy_v2, (void *event))                                                      \
    X(event_record, cuEventRecord, (void *event, void *stream))                                             \
    X(event_synchronize, cuEventSynchronize, (void *event))                                                 \
    X(event_elapsed, cuEventElapsedTime, (float *milliseconds, void *from, void *to))                       \
    X(stream_synchronize, cuStreamSynchronize, (void *stream))                                              \
    X(begin_capture, cuStreamBeginCapture_v2, (void *stream, int mode))                                     \
    X(end_capture, cuStreamEndCapture, (void *stream, void **graph))                                        \
    X(instantiate, cuGraphInstantiateWithFlags, (void **executable, void *graph, unsigned long long flags)) \
    X(graph_launch, cuGraphLaunch, (void *executable, void *stream))                                        \
    X(executable_destroy, cuGraphExecDestroy, (void *executable))                                           \
    X(graph_destroy, cuGraphDestroy, (void *graph))                                                         \
    X(module_load, cuModuleLoadData, (void **module, const void *image))                                    \
    X(module_open, cuModuleLoad, (void **module, const char *path))                                         \
    X(module_unload, cuModuleUnload, (void *module))                                                        \
    X(module_function, cuModuleGetFunction, (void **function, void *module, const char *name))              \
    X(function_set, cuFuncSetAttribute, (void *function, int attribute, int value))                         \
    X(launch, cuLaunchKernel,                                                                               \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,                 \
       unsigned block_y, unsigned block_z, unsigned shared_size, void *stream, void **parameters,           \
       void **extra))                                                                                       \
    X(error_name, cuGetErrorName, (int error, const char **name))

typedef struct driver {
#define DRIVER_FIELD(field, symbol, parameters) int(*field) parameters;
    DRIVER_FUNCTIONS(DRIVER_FIELD)
#undef DRIVER_FIELD
} driver;

/* Returns 1, or 0 with what is missing in reason. */
static int driver_load(driver *d, char *reason, size_t size) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *address;
    if (!library) {
        snprintf(reason, size, "libcuda.so.1 cannot be opened");
        return 0;
    }
/* by memcpy: ISO C has no conversion from objects to functions */
#define DRIVER_FIND(field, symbol, parameters)                    \
    address = dlsym(library, #symbol);                            \
    if (!address) {                                               \
        snprintf(reason, size, "libcuda.so.1 lacks %s", #symbol); \
        return 0;                                                 \
    }                                                             \
    memcpy(&d->field, &address, sizeof address);
    DRIVER_FUNCTIONS(DRIVER_FIND)
#undef DRIVER_FIND
    return 1;
}

#endif
