/* The driver's own functions, taken by name, as a program of the driver API has them: the primary context, and graphs. Linux. */
#ifndef GEMMEPI_TESTS_GPU_DRIVER_H
#define GEMMEPI_TESTS_GPU_DRIVER_H

#include "gemmepi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { CAPTURE_GLOBAL = 0 };

typedef struct driver {
    int (*get_device)(int *device, int ordinal);
    int (*get_attribute)(int *value, int attribute, int device);
    int (*retain)(void **primary, int device);
    int (*set_current)(void *current);
    int (*get_current)(void **current);
    int (*begin_capture)(gemmepi_stream stream, int mode);
    int (*end_capture)(gemmepi_stream stream, void **graph);
    int (*instantiate)(void **executable, void *graph, unsigned long long flags);
    int (*launch)(void *executable, gemmepi_stream stream);
    int (*destroy_executable)(void *executable);
    int (*destroy_graph)(void *graph);
} driver;

static driver cuda;

static int driver_has(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static int find_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    return library && driver_has(library, "cuDeviceGet", &cuda.get_device) &&
           driver_has(library, "cuDeviceGetAttribute", &cuda.get_attribute) &&
           driver_has(library, "cuDevicePrimaryCtxRetain", &cuda.retain) &&
           driver_has(library, "cuCtxSetCurrent", &cuda.set_current) &&
           driver_has(library, "cuCtxGetCurrent", &cuda.get_current) &&
           driver_has(library, "cuStreamBeginCapture_v2", &cuda.begin_capture) &&
           driver_has(library, "cuStreamEndCapture", &cuda.end_capture) &&
           driver_has(library, "cuGraphInstantiateWithFlags", &cuda.instantiate) &&
           driver_has(library, "cuGraphLaunch", &cuda.launch) &&
           driver_has(library, "cuGraphExecDestroy", &cuda.destroy_executable) &&
           driver_has(library, "cuGraphDestroy", &cuda.destroy_graph);
}

/* What GEMMEPI_TEST_DEVICE numbers, else the first. */
static int device_number(void) {
    const char *name = getenv("GEMMEPI_TEST_DEVICE");
    return name ? atoi(name) : 0;
}

/* Makes that device's primary context current on this thread. */
static int make_current(void) {
    void *primary = NULL;
    int device;
    return find_driver() && !cuda.get_device(&device, device_number()) && !cuda.retain(&primary, device) &&
           !cuda.set_current(primary);
}

#endif
