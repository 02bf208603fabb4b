/* The beginning of a context, last in this room: what fails half-way is destroyed. */
#ifndef GEMMEPI_DEVICE_CREATE_H
#define GEMMEPI_DEVICE_CREATE_H

#include "destroy.h"

/* A copy of a path, or of a list of folders, each of which is absolute then. */
static char *gpi__copy_paths(const gemmepi_allocator *allocator, const char *paths, int is_list) {
    char folder[GPI__PATH_SIZE];
    const char separator[2] = {GPI__LIST_SEPARATOR, 0};
    gpi__text text = gpi__growing_text(allocator);
    const char *rest = paths;
    while (is_list && gpi__next_folder(&rest, folder)) {
        gpi__append(&text, "%s", text.length ? separator : "");
        gpi__append_absolute(&text, folder);
    }
    if (!is_list)
        gpi__append_absolute(&text, paths);
    return text.data;
}

/* The CUDA device that config.device 0 stands for: the current one of the calling thread, else the first. */
static int gpi__current_ordinal(const gpi__driver *driver) {
    gpi__cu_context current = NULL;
    gpi__cu_device device = 0, candidate;
    int count = 0, i;
    if (driver->ctx_get_current(&current) != 0 || !current || driver->ctx_get_device(&device) != 0 ||
        driver->device_get_count(&count) != 0)
        return 0;
    for (i = 0; i < count; i++)
        if (driver->device_get(&candidate, i) == 0 && candidate == device)
            return i;
    return 0;
}

static gemmepi_status gpi__make_ones(gemmepi_context *context) {
    static const float ones[2] = {1, 1};
    const gpi__driver *driver = &context->driver;
    gpi__cu_stream stream = NULL;
    gpi__entry entry;
    gemmepi_status status = gpi__enter_relaxed(context, &entry);
    int result, ended;
    if (status)
        return status;
    result = driver->mem_alloc(&context->ones, sizeof ones);
    if (result)
        context->ones = 0;
    if (!result)
        result = driver->stream_create(&stream, GPI__CU_STREAM_NON_BLOCKING);
    if (!result) {
        result = driver->memcpy_htod_async(context->ones, ones, sizeof ones, stream);
        if (!result)
            result = driver->stream_synchronize(stream);
        ended = driver->stream_destroy(stream);
        result = result ? result : ended;
    }
    if (result && context->ones) {
        driver->mem_free(context->ones);
        context->ones = 0;
    }
    gpi__leave_relaxed(context, &entry);
    return result ? gpi__cuda_failed(driver, result, "putting two numbers on the device") : GEMMEPI_OK;
}

/* Bytes a microsecond: four fifths of two transfers a clock, which a pass over large tensors reaches on an H100 and an H200. 0 where the
   driver gives nothing that may be. */
static double gpi__rate_of_memory(int kilohertz, int bits) {
    double rate = 0.8 * 2 * kilohertz * 1e-3 * bits / 8;
    return rate > 1e4 && rate < 1e9 ? rate : 0;
}

/* What the driver says of the device; returns its result. */
static int gpi__read_properties(gemmepi_context *context) {
    int major = 0, minor = 0, kilohertz = 0, bits = 0, result = 0;
    const struct {
        int attribute;
        int *to;
    } properties[] = {{GPI__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                      {GPI__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
                      {GPI__CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &context->multiprocessors},
                      {GPI__CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, &context->reaches_pageable},
                      {GPI__CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &kilohertz},
                      {GPI__CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &bits}};
    size_t i;
    for (i = 0; !result && i < GPI__COUNT(properties); i++)
        result =
            context->driver.device_get_attribute(properties[i].to, properties[i].attribute, context->device);
    if (context->asked_multiprocessors && context->asked_multiprocessors < context->multiprocessors)
        context->multiprocessors = context->asked_multiprocessors;
    else
        context->asked_multiprocessors = 0;
    context->arch = 10 * major + minor;
    context->memory_rate = gpi__rate_of_memory(kilohertz, bits);
    return result;
}

/* Everything that can fail between the driver's library and a device that is ready. */
static gemmepi_status gpi__open_device(gemmepi_context *context, int wanted) {
    gpi__driver *driver = &context->driver;
    int count = 0, result;
    gemmepi_status status = gpi__load_driver(&context->loader, driver);
    if (status)
        return status;
    context->loader.newest_major = driver->version / 1000;
    result = driver->init(0);
    if (result) {
        (void)gpi__cuda_failed(driver, result, "cuInit");
        if (gpi__forks)
            (void)gpi__fail(
                GEMMEPI_NO_DEVICE,
                "%s (after a fork() CUDA works in the parent or, if that has not used it, in the child)",
                gpi__error_text);
        return GEMMEPI_NO_DEVICE;
    }
    result = driver->device_get_count(&count);
    if (result)
        return gpi__cuda_failed(driver, result, "cuDeviceGetCount");
    context->ordinal = wanted ? wanted - 1 : gpi__current_ordinal(driver);
    GPI__REFUSE_IF(context->ordinal >= count, GEMMEPI_NO_DEVICE,
                   "config.device asks for CUDA device %d; this machine has %d", context->ordinal, count);
    result = driver->device_get(&context->device, context->ordinal);
    if (!result)
        result = driver->device_get_name(context->name, (int)sizeof context->name, context->device);
    if (!result)
        result = gpi__read_properties(context);
    if (result)
        return gpi__cuda_failed(driver, result, "reading the device's properties");
    result = driver->device_primary_ctx_retain(&context->primary, context->device);
    if (result) {
        context->primary = NULL;
        return gpi__cuda_failed(driver, result, "cuDevicePrimaryCtxRetain");
    }
    if (gpi__make_ones(context))
        gpi__say(&context->log, GEMMEPI_LOG_WARNING, "D = A B + D in 16 bits uses the route split: %s",
                 gpi__error_text);
    gpi__say(&context->log, GEMMEPI_LOG_INFO, "device %d: %s, compute capability %d.%d", context->ordinal,
             context->name, context->arch / 10, context->arch % 10);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__open_host(gemmepi_context *context) {
#ifdef GEMMEPI_NO_HOST
    (void)context;
    return gpi__fail(GEMMEPI_NO_DEVICE, "the host was left out of this program (GEMMEPI_NO_HOST)");
#else
    context->is_host = 1;
    context->ordinal = -1;
    context->arch = context->multiprocessors = 0; /* a GPU that could not be used may have left its own */
    memset(context->name, 0, sizeof context->name);
    memcpy(context->name, "host", 5);
    return GEMMEPI_OK;
#endif
}

/* config.device 0 takes the host where no GPU can be used, and says so. */
static gemmepi_status gpi__open_any(gemmepi_context *context, int wanted) {
    gemmepi_status status;
    if (wanted == GEMMEPI_DEVICE_HOST)
        return gpi__open_host(context);
    status = gpi__open_device(context, wanted);
    if (!status || wanted != 0)
        return status;
#ifdef GEMMEPI_NO_HOST
    return status;
#else
    snprintf(context->fallback_reason, sizeof context->fallback_reason, "%.500s", gpi__error_text);
    gpi__say(&context->log, GEMMEPI_LOG_INFO, "no GPU can be used, so the host is: %s", gpi__error_text);
    return gpi__open_host(context);
#endif
}

#define GPI__PRODUCT_ROUTES                                                           \
    (1u << GEMMEPI_ROUTE_LT | 1u << GEMMEPI_ROUTE_SPLIT | 1u << GEMMEPI_ROUTE_PLAIN | \
     1u << GEMMEPI_ROUTE_FUSED)

static gemmepi_status gpi__check_config(const gemmepi_config *config) {
    GPI__INVALID_IF(config->device < GEMMEPI_DEVICE_HOST,
                    "config.device is %d; accepted are 0, GEMMEPI_DEVICE(i) and GEMMEPI_DEVICE_HOST "
                    "(did you leave config uninitialised? = {0})",
                    config->device);
    GPI__INVALID_IF((config->allocator.alloc == NULL) != (config->allocator.free == NULL),
                    "config.allocator has %s without %s; both or neither are set",
                    config->allocator.alloc ? "alloc" : "free", config->allocator.alloc ? "free" : "alloc");
    GPI__INVALID_IF(config->check_pointers != 0 && config->check_pointers != 1,
                    "config.check_pointers is %d; accepted are 0 and 1 (did you leave config "
                    "uninitialised? = {0})",
                    config->check_pointers);
    GPI__INVALID_IF(config->multiprocessors < 0, "config.multiprocessors is %d; it must not be negative",
                    config->multiprocessors);
    GPI__INVALID_IF(config->library_path_only != 0 && config->library_path_only != 1,
                    "config.library_path_only is %d; accepted are 0 and 1", config->library_path_only);
    GPI__INVALID_IF(config->library_path_only && (!config->library_path || !config->library_path[0]),
                    "config.library_path_only is 1 and config.library_path is %s: set it to the folders of "
                    "libcuda, NVRTC and cuBLASLt",
                    config->library_path ? "empty" : "NULL");
    GPI__INVALID_IF(config->routes & ~GPI__PRODUCT_ROUTES,
                    "config.routes is 0x%x; accepted are 0 and the bits 1 << GEMMEPI_ROUTE_LT, SPLIT, "
                    "PLAIN and FUSED",
                    config->routes);
    GPI__INVALID_IF(
        !(config->tune >= 0) || config->tune > 1e9,
        "config.tune is %g; accepted are 0, for no tuning on first use, and up to 1e9 milliseconds",
        config->tune);
    GPI__INVALID_IF(config->check != 0 && config->check != 1,
                    "config.check is %d; accepted are 0 and 1 (did you leave config uninitialised? = {0})",
                    config->check);
    return GEMMEPI_OK;
}

#define GPI__SIZE_OF_STRUCT(type) sizeof(type),
static const size_t gpi__struct_sizes[] = {GEMMEPI_STRUCT_LIST(GPI__SIZE_OF_STRUCT)};
#define GPI__NAME_OF_STRUCT(type) #type,
static const char *const gpi__struct_names[] = {GEMMEPI_STRUCT_LIST(GPI__NAME_OF_STRUCT)};

/* Whether the caller was compiled with this header, or with one whose structs are the same. */
static gemmepi_status gpi__check_interface(int version, const size_t *sizes, size_t count) {
    size_t i;
    GPI__INVALID_IF(count && !sizes, "sizes is NULL, but count is %llu; accepted is 0 then", (gpi__ull)count);
    GPI__INVALID_IF(
        version / 100 != GEMMEPI_VERSION / 100 || (count && count != GPI__COUNT(gpi__struct_sizes)),
        "the program was compiled with gemmepi.h of version %d.%d.%d (%llu structs), and the library that it runs "
        "with is of version %s (%d structs): compile both with the same gemmepi.h",
        version / 10000, version / 100 % 100, version % 100, (gpi__ull)count, GEMMEPI_VERSION_STRING,
        (int)GPI__COUNT(gpi__struct_sizes));
    for (i = 0; i < count; i++)
        GPI__INVALID_IF(
            sizes[i] != gpi__struct_sizes[i],
            "%s has %llu bytes in the program and %llu in the library (%s) that it runs with: compile both with the "
            "same gemmepi.h and the same packing of structs",
            gpi__struct_names[i], (gpi__ull)sizes[i], (gpi__ull)gpi__struct_sizes[i], GEMMEPI_VERSION_STRING);
    return GEMMEPI_OK;
}

/* Locks, and what wakes threads that wait for a kernel: all or none. */
static gemmepi_status gpi__make_locks(gemmepi_context *context) {
    gpi__mutex *const mutexes[] = {&context->lock, &context->build_lock, &context->tune_lock,
                                   &context->formula_lock};
    const int count = (int)GPI__COUNT(mutexes);
    int made = 0, has_condition;
    while (made < count && gpi__mutex_init(mutexes[made]))
        made++;
    has_condition = made == count && gpi__condition_init(&context->kernel_built);
    if (has_condition)
        return GEMMEPI_OK;
    while (made > 0)
        gpi__mutex_destroy(mutexes[--made]);
    return gpi__fail(GEMMEPI_OUT_OF_MEMORY, "the system gave no mutex or condition variable");
}

/* All that takes no memory. */
static void gpi__fill_context(gemmepi_context *context, const gemmepi_config *config) {
    context->forks_now = &gpi__forks;
    context->forks = gpi__forks;
    context->routes = config->routes;
    context->tune = config->tune;
    context->check = config->check;
    context->check_pointers = config->check_pointers;
    context->asked_multiprocessors = config->multiprocessors;
    context->log = gpi__choose_log(config->log, config->log_user);
    context->loader.log = &context->log;
    context->loader.library_path_only = config->library_path_only;
    context->loader.resolve = config->resolve_symbol;
    context->loader.resolve_user = config->resolve_user;
    gpi__map_init(&context->kernels, &context->allocator);
    gpi__map_init(&context->codes, &context->allocator);
    gpi__map_init(&context->plans, &context->allocator);
    gpi__map_init(&context->answers, &context->allocator);
    gpi__map_init(&context->checks, &context->allocator);
    gpi__map_init(&context->streams, &context->allocator);
}

static gemmepi_status gpi__create(const gemmepi_config *config, gemmepi_context **result) {
    gemmepi_config defaults;
    gemmepi_allocator allocator;
    gemmepi_context *context;
    gemmepi_status status;
    memset(&defaults, 0, sizeof defaults);
    if (!config)
        config = &defaults;
    status = gpi__check_config(config);
    if (status)
        return status;
    GPI__REFUSE_IF(!gpi__watch_forks(), GEMMEPI_OUT_OF_MEMORY, "the system gave no memory to watch fork()");
    allocator = config->allocator.alloc ? config->allocator : gpi__default_allocator();
    context = (gemmepi_context *)gpi__new(&allocator, sizeof *context);
    if (!context)
        return GEMMEPI_OUT_OF_MEMORY;
    context->allocator = allocator;
    gpi__fill_context(context, config);
    status = gpi__make_locks(context);
    if (status) {
        gpi__delete(&allocator, context);
        return status;
    }
    if (config->library_path) {
        context->loader.library_path = gpi__copy_paths(&allocator, config->library_path, 1);
        status = context->loader.library_path ? GEMMEPI_OK : GEMMEPI_OUT_OF_MEMORY;
    }
    if (!status && config->dump_path && config->dump_path[0]) {
        context->dump_path = gpi__copy_paths(&allocator, config->dump_path, 0);
        status = context->dump_path ? GEMMEPI_OK : GEMMEPI_OUT_OF_MEMORY;
    }
    if (!status)
        status = gpi__open_any(context, config->device);
    if (!status && !context->is_host)
        gpi__disk_cache_open(&context->disk, &context->allocator, &context->log, config->cache_path,
                             config->cache_size);
    if (status) {
        gemmepi_destroy(context);
        return status;
    }
    *result = context;
    return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_create_for(int version, const size_t *sizes, size_t count,
                                              const gemmepi_config *config, gemmepi_context **result) {
    gemmepi_status status;
    GPI__INVALID_IF(!result, "context is NULL; it receives the new context");
    *result = NULL;
    status = gpi__check_interface(version, sizes, count);
    return status ? status : gpi__create(config, result);
}

#ifdef GEMMEPI_STATIC
GEMMEPI_API gemmepi_status gemmepi_create(const gemmepi_config *config, gemmepi_context **result) {
    return gemmepi_create_for(GEMMEPI_VERSION, gpi__struct_sizes, GPI__COUNT(gpi__struct_sizes), config,
                              result);
}
#endif

#endif
