/* One launch of a kernel of ours. */
#ifndef GEMMEPI_DEVICE_LAUNCH_H
#define GEMMEPI_DEVICE_LAUNCH_H

#include "chip.h"
#include "kernel.h"
#include "times.h"

typedef struct gpi__launch {
    gpi__cu_function function; /* NULL: nothing to launch */
    unsigned blocks, threads_x, threads_y;
    unsigned shared;             /* bytes of dynamic shared memory */
    int arch;                    /* that the kernel was compiled for: 90 for 9.0 */
    int overlaps;                /* the kernel waits itself for what is ahead of it in the stream */
    char name[GPI__KERNEL_NAME]; /* the kernel's, as gemmepi_plan_details has it; empty: that in its file */
} gpi__launch;

/* Says what a kernel is, of what its prologue says alone: one prologue has one name. Anything but letters and digits becomes
   an underscore, and what does not fit is cut off. */
GPI__PRINTF(2, 3)
static void gpi__name_kernel(gpi__launch *launch, const char *format, ...) {
    char *at;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(launch->name, sizeof launch->name, format, arguments);
    va_end(arguments);
    for (at = launch->name; *at; at++) {
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
        else if (!((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9')))
            *at = '_';
    }
}

static int64_t gpi__divide_up(int64_t x, int64_t y) {
    return x / y + (x % y != 0);
}

/* More than any grid, count or block of memory has; some of them added up still fit 64 bits. */
#define GPI__TOO_MANY ((int64_t)1 << 58)

/* x y of numbers from 0 on, TOO_MANY where it is that or more. What counts blocks, parts and lines multiplies so, or by
   gpi__offset: sizes may go to 2^56, and items of operands may all be one. */
static int64_t gpi__times(int64_t x, int64_t y) {
    return y > 0 && x >= GPI__TOO_MANY / y ? GPI__TOO_MANY : x * y;
}

/* The bytes of so many elements in workspace: where they are too many, so many that nothing gives them. */
static size_t gpi__bytes_for(int64_t count, size_t size) {
    const size_t most = (size_t)-1 / 16;
    return count < 0 || (uint64_t)count > most / size ? most : (size_t)count * size;
}

static size_t gpi__round_up(size_t x, size_t unit) {
    return (x + unit - 1) / unit * unit;
}

/* What follows a part of workspace, at a multiple of 256; a plan without workspace has none of it. */
static char *gpi__past(char *part, size_t bytes) {
    return part ? part + gpi__round_up(bytes, 256) : NULL;
}

/* Plans of one kernel may ask for more shared memory or less: what it may have is only ever raised. */
static gemmepi_status gpi__give_shared(gemmepi_context *context, const gpi__launch *launch,
                                       gpi__kernel *kernel) {
    char what[160];
    int result;
    if (launch->shared <= kernel->shared)
        return GEMMEPI_OK;
    result = context->driver.func_set_attribute(
        kernel->function, GPI__CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)launch->shared);
    snprintf(what, sizeof what, "giving %s its shared memory", launch->name);
    if (result)
        return gpi__cuda_failed(&context->driver, result, what);
    kernel->shared = launch->shared;
    return GEMMEPI_OK;
}

/* The kernel `entry` of `file`, under the name that launch has. launch->shared is known. */
static gemmepi_status gpi__get_kernel(gemmepi_context *context, const char *file, const char *prologue,
                                      const char *entry, gpi__launch *launch) {
    gpi__kernel *found = NULL;
    gemmepi_status status;
    if (!launch->name[0])
        gpi__name_kernel(launch, "%s", entry);
    status = gpi__find_kernel(context, file, prologue, entry, launch->name, &found);
    if (status)
        return status;
    launch->function = found->function; /* the context's */
    launch->arch = found->arch;
    return gpi__give_shared(context, launch, found);
}

/* One that calls after_launches_before(). Compiled for a chip without OVERLAPS it cannot wait, and so may not overlap. */
static gemmepi_status gpi__get_waiting_kernel(gemmepi_context *context, const char *file,
                                              const char *prologue, const char *entry, gpi__launch *launch) {
    gemmepi_status status;
    if (context->only_workspace)
        return GEMMEPI_OK;
    status = gpi__get_kernel(context, file, prologue, entry, launch);
    launch->overlaps = !status && gpi__chip_has(launch->arch, GPI__OVERLAPS);
    return status;
}

/* From CUDA 12.3 on a captured launch may overlap, too. */
#define GPI__GRAPHS_KEEP_OVERLAPS 12030

static gemmepi_status gpi__launch_failed(const gemmepi_context *context, const gpi__launch *launch,
                                         int result, const char *what) {
    char sentence[200];
    snprintf(sentence, sizeof sentence, "launching %s (%s)", what, launch->name);
    return gpi__cuda_failed(&context->driver, result, sentence);
}

/* what: is launched. The launch may begin before the one ahead of it in the stream has ended. */
static gemmepi_status gpi__launch_overlapping(const gemmepi_context *context, const gpi__launch *launch,
                                              void **list, const char *what, gemmepi_stream stream) {
    gpi__cu_launch_attribute attribute;
    gpi__cu_launch_config config;
    int allowed = 1, result;
    memset(&attribute, 0, sizeof attribute);
    attribute.id = GPI__CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    memcpy(attribute.value, &allowed, sizeof allowed);
    config.grid_x = launch->blocks;
    config.block_x = launch->threads_x;
    config.block_y = launch->threads_y;
    config.grid_y = config.grid_z = config.block_z = 1;
    config.shared_size = launch->shared;
    config.stream = stream;
    config.attributes = &attribute;
    config.attribute_count = 1;
    result = context->driver.launch_kernel_ex(&config, launch->function, list, NULL);
    return result ? gpi__launch_failed(context, launch, result, what) : GEMMEPI_OK;
}

static gemmepi_status gpi__launch_kernel(const gemmepi_context *context, const gpi__launch *launch,
                                         void *params, const char *what, gemmepi_stream stream) {
    void *list[1];
    int result;
    list[0] = params;
    if (launch->overlaps && context->driver.version >= GPI__GRAPHS_KEEP_OVERLAPS)
        return gpi__launch_overlapping(context, launch, list, what, stream);
    result = context->driver.launch_kernel(launch->function, launch->blocks, 1, 1, launch->threads_x,
                                           launch->threads_y, 1, launch->shared, stream, list, NULL);
    return result ? gpi__launch_failed(context, launch, result, what) : GEMMEPI_OK;
}

/* >>what launches take, for estimates */

/* Bytes that memory gives in a microsecond. */
static double gpi__memory_rate(const gemmepi_context *context) {
    return context->memory_rate > 0 ? context->memory_rate : gpi__chip_of(context->arch)->memory;
}

#endif
