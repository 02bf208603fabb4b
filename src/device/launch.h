/* One launch of a kernel of ours. */
#ifndef GEMMEPI_DEVICE_LAUNCH_H
#define GEMMEPI_DEVICE_LAUNCH_H

#include "kernel.h"

typedef struct gemmepi__launch {
    gemmepi__cu_function function; /* NULL: nothing to launch */
    unsigned blocks, threads_x, threads_y;
} gemmepi__launch;

static int64_t gemmepi__divide_up(int64_t x, int64_t y) {
    return x / y + (x % y != 0);
}

static size_t gemmepi__round_up(size_t x, size_t unit) {
    return (x + unit - 1) / unit * unit;
}

static gemmepi_status gemmepi__launch_kernel(const gemmepi_context *context, const gemmepi__launch *launch,
                                             void *params, const char *what, gemmepi_stream stream) {
    void *list[1];
    int result;
    list[0] = params;
    result = context->driver.launch_kernel(launch->function, launch->blocks, 1, 1, launch->threads_x,
                                           launch->threads_y, 1, 0, stream, list, NULL);
    return result ? gemmepi__cuda_failed(&context->driver, result, what) : GEMMEPI_OK;
}

#endif
