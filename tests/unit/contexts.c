/* Contexts are opened and closed, and leave alone what is the caller's or the parent's: on the fake GPU of fake_cuda.h. */
#if !defined _WIN32
#if !defined _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>

static int no_watch; /* the system has no memory to watch fork() */

/* The linker has the library call this one (--wrap). */
int __real_pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void));
int __wrap_pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void));
int __wrap_pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
    return no_watch ? 12 : __real_pthread_atfork(before, parent, child);
}
#endif

#include "fake_operations.h"

/* >>opening */

#if !GPI__WINDOWS
static void without_memory_to_watch_forks_there_is_no_context(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = NULL;
    no_watch = 1;
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_OUT_OF_MEMORY && !context && sentence_has("fork()"),
          "%s", gemmepi_last_error());
    no_watch = 0;
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_OK, "%s", gemmepi_last_error());
    no_watch = 1; /* they are watched by now */
    gemmepi_destroy(context);
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    no_watch = 0;
    nothing_is_left();
}
#endif

static void a_program_of_another_header_is_refused(void) {
    size_t sizes[GPI__COUNT(gpi__struct_sizes)];
    gemmepi_config config = fake_config();
    gemmepi_context *context = (gemmepi_context *)&config;
    const int version = GEMMEPI_VERSION;
    size_t i;
    for (i = 0; i < GPI__COUNT(sizes); i++) {
        memcpy(sizes, gpi__struct_sizes, sizeof sizes);
        sizes[i] += 8;
        CHECK(gemmepi_create_for(version, sizes, GPI__COUNT(sizes), &config, &context) ==
                      GEMMEPI_INVALID_ARGUMENT &&
                  !context && sentence_has(gpi__struct_names[i]),
              "%s", gemmepi_last_error());
    }
    memcpy(sizes, gpi__struct_sizes, sizeof sizes);
    CHECK(gemmepi_create_for(version - 100, sizes, GPI__COUNT(sizes), &config, &context) ==
                  GEMMEPI_INVALID_ARGUMENT &&
              sentence_has(GEMMEPI_VERSION_STRING) && sentence_has("same gemmepi.h"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_create_for(version, sizes, GPI__COUNT(sizes) - 1, &config, &context) ==
              GEMMEPI_INVALID_ARGUMENT,
          "a struct was not told of");
    CHECK(gemmepi_create_for(version, NULL, 3, &config, &context) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("sizes is NULL, but count is 3"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_create_for(version, sizes, GPI__COUNT(sizes), &config, NULL) == GEMMEPI_INVALID_ARGUMENT,
          "there is no context");
    CHECK(gemmepi_create_for(version + 1, sizes, GPI__COUNT(sizes), &config, &context) == GEMMEPI_OK, "%s",
          gemmepi_last_error()); /* a patch version */
    gemmepi_destroy(context);
    CHECK(gemmepi_create_for(version, NULL, 0, &config, &context) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void without_a_gpu_the_host_is_taken_unless_a_device_is_asked_for(void) {
    static const char *const ways[] = {"cuInit fails", "no device", "no driver"};
    size_t way;
    for (way = 0; way < GPI__COUNT(ways); way++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context = NULL;
        gemmepi_context_details details;
        if (way == 0)
            break_function("cuInit", GPI__CUDA_ERROR_NO_DEVICE);
        else if (way == 1)
            gpu.device_count = 0;
        else
            gpu.missing = "cuda";
        config.log = keep_log;
        CHECK(gemmepi_create(&config, &context) == GEMMEPI_OK, "%s: %s", ways[way], gemmepi_last_error());
        CHECK(gemmepi_context_info(context, &details) == GEMMEPI_OK && details.is_host, "%s", ways[way]);
        CHECK(strstr(logged, "no GPU can be used, so the host is"), "%s: the log has: %s", ways[way], logged);
        gemmepi_destroy(context);
        context = NULL;
        config.device = GEMMEPI_DEVICE(0);
        CHECK(gemmepi_create(&config, &context) == (way == 2 ? GEMMEPI_LIBRARY_NOT_FOUND : GEMMEPI_NO_DEVICE),
              "%s: %s", ways[way], gemmepi_last_error());
        CHECK(context == NULL, "%s: a context was given", ways[way]);
        nothing_is_left();
    }
}

static void a_device_beyond_the_last_is_refused_by_number(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = NULL;
    config.device = GEMMEPI_DEVICE(3);
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_NO_DEVICE, "%s", gemmepi_last_error());
    CHECK(sentence_has("CUDA device 3") && sentence_has("has 1"), "%s", gemmepi_last_error());
    nothing_is_left();
}

static void library_path_only_needs_a_library_path(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = NULL;
    config.library_path_only = 1;
    config.library_path = NULL;
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_INVALID_ARGUMENT, "%s", gemmepi_last_error());
    CHECK(sentence_has("config.library_path_only is 1 and config.library_path is NULL"), "%s",
          gemmepi_last_error());
    config.library_path = "";
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_INVALID_ARGUMENT, "%s", gemmepi_last_error());
    config.library_path_only = 7;
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("config.library_path_only is 7"),
          "%s", gemmepi_last_error());
    nothing_is_left();
}

static void a_driver_without_a_function_is_refused_by_the_functions_name(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = NULL;
    config.device = GEMMEPI_DEVICE(0);
    gpu.missing = "cuLaunchKernel";
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_LIBRARY_NOT_FOUND, "%s", gemmepi_last_error());
    CHECK(sentence_has("cuLaunchKernel"), "%s", gemmepi_last_error());
    nothing_is_left();
}

/* >>closing */

static void a_failed_create_leaves_nothing_behind(void) {
    static const struct {
        const char *function;
        int code;
        gemmepi_status status;
    } rows[] = {
        {"cuInit", 999, GEMMEPI_NO_DEVICE},
        {"cuDeviceGetCount", 999, GEMMEPI_CUDA_ERROR},
        {"cuDeviceGet", 999, GEMMEPI_CUDA_ERROR},
        {"cuDeviceGetName", 999, GEMMEPI_CUDA_ERROR},
        {"cuDeviceGetAttribute", 999, GEMMEPI_CUDA_ERROR},
        {"cuDevicePrimaryCtxRetain", 999, GEMMEPI_CUDA_ERROR},
        {"cuDevicePrimaryCtxRetain", GPI__CUDA_ERROR_OUT_OF_MEMORY, GEMMEPI_OUT_OF_MEMORY},
        {"cuDriverGetVersion", 999, GEMMEPI_LIBRARY_NOT_FOUND},
    };
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context = NULL;
        gemmepi_status status;
        config.device = GEMMEPI_DEVICE(0);
        break_function(rows[i].function, rows[i].code);
        status = gemmepi_create(&config, &context);
        CHECK(status == rows[i].status, "%s gives %s: %s", rows[i].function, gemmepi_status_name(status),
              gemmepi_last_error());
        CHECK(context == NULL, "%s: a context was given", rows[i].function);
        config.device = 0;
        if (i > 0) /* on the host; cuInit has it already */
            gemmepi_destroy(open_fake(&config));
        nothing_is_left();
    }
}

static void a_context_gives_everything_back(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc descs[3];
    gemmepi_stream stream = NULL;
    void *pointer = NULL;
    int i;
    descs[0] = lt_product(), descs[1] = split_product(), descs[2] = pass_alone();
    CHECK(gemmepi_stream_create(context, &stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < 3; i++) {
        gemmepi_matmul_args args = args_for(&descs[i]);
        CHECK(gemmepi_matmul(context, &descs[i], &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_matmul(context, &descs[i], &args, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    }
    CHECK(gpu.products == 4 && gpu.launches == 6, "%ld products, %ld launches", gpu.products, gpu.launches);
    CHECK(gpu.heuristics == 2, "a plan was built more than once: %ld", gpu.heuristics);
    CHECK(gemmepi_alloc(context, 1000, &pointer) == GEMMEPI_OK && pointer, "%s", gemmepi_last_error());
    CHECK(gemmepi_free(context, pointer) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_stream_destroy(context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>what is loaded, said and asked */

/* Blocks between which nothing is free, or a gap: each is known from its first byte to its last, until it is given back, once. */
static void blocks_of_memory_are_known_by_their_bounds_however_many_there_are(void) {
    enum { BLOCKS = 300, STEP = 4096 };
    static char known[BLOCKS];
    const uintptr_t base = (uintptr_t)1 << 40;
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    long before = allocations;
    int turn, i, at;
    memset(known, 0, sizeof known);
    for (turn = 0; turn < 2 * BLOCKS; turn++) {
        int moved = turn < BLOCKS ? turn * 77 % BLOCKS : turn * 131 % BLOCKS;
        void *pointer = (void *)(base + (uintptr_t)moved * STEP);
        if (turn < BLOCKS)
            CHECK(gpi__note_memory(context, pointer, moved % 3 ? STEP : 8), "block %d", moved);
        else
            CHECK(gpi__drop_memory(context, pointer) && !gpi__drop_memory(context, pointer) &&
                      !gpi__drop_memory(context, (char *)pointer + 1),
                  "block %d", moved);
        known[moved] = turn < BLOCKS;
        for (i = turn % 7; i < BLOCKS; i += 7)
            for (at = 0; at < STEP; at += at == 0 ? 7 : at == 7 ? 1 : STEP - 9) { /* 0, 7, 8, STEP - 1 */
                size_t size = i % 3 ? STEP : 8, left = size - (size_t)at;
                const char *there = (const char *)(base + (uintptr_t)i * STEP + (uintptr_t)at);
                struct gpi__span span;
                int has = gpi__find_span(context, there, &span);
                CHECK(has == (known[i] && (size_t)at < size), "%d of block %d: %d", at, i, has);
                CHECK(!has || (there - (const char *)span.begin == at && span.bytes - (size_t)at == left),
                      "%d of block %d: %llu bytes", at, i, (gpi__ull)span.bytes);
            }
        if (turn == BLOCKS - 1)
            CHECK(allocations - before == 6, "%ld allocations for 16, 32 and so on to 512",
                  allocations - before);
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

/* 2 x 2619 MHz x 640 bytes are 3.35 TB/s, of which a pass reaches four fifths. */
static void the_rate_of_memory_is_the_drivers_or_that_of_the_chip(void) {
    int unknown;
    for (unknown = 0; unknown < 2; unknown++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context;
        gpu.memory_is_unknown = unknown;
        context = open_fake(&config);
        CHECK(fabs(gpi__memory_rate(context) - (unknown ? gpi__chip_of(DEVICE_ARCH)->memory : 2681856)) < 1,
              "unknown %d: %g", unknown, gpi__memory_rate(context));
        CHECK((context->memory_rate > 0) == !unknown, "unknown %d: %g", unknown, context->memory_rate);
        gpu.memory_is_unknown = 0;
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* Blocks of a product that has more tiles than the device multiprocessors. */
static int blocks_of(gemmepi_context *context) {
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_plan *plan;
    const gpi__fused *fused;
    int blocks;
    desc.m = desc.n = 4096;
    plan = plan_on(context, &desc, GEMMEPI_ROUTE_FUSED);
    if (!plan)
        return 0;
    fused = (const gpi__fused *)matmul_of(plan)->built;
    blocks = (int)fused->built.kernel.launch.blocks;
    gemmepi_plan_destroy(plan);
    return blocks;
}

/* The device has 132. */
static void products_take_no_more_multiprocessors_than_config_says(void) {
    static const struct {
        int asked, are, told;
    } rows[] = {{0, 132, 0}, {100, 100, 100}, {132, 132, 0}, {1000, 132, 0}, {2, 2, 2}};
    gemmepi_config config = fake_config();
    gemmepi_context *context = NULL;
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        gemmepi_context_details details;
        gemmepi_matmul_desc lt = lt_product();
        int blocks;
        memset(&details, 0, sizeof details);
        config.multiprocessors = rows[i].asked, config.routes = 1 << GEMMEPI_ROUTE_FUSED;
        context = open_fake(&config);
        CHECK(gemmepi_context_info(context, &details) == GEMMEPI_OK && details.multiprocessors == rows[i].are,
              "%d: %d", rows[i].asked, details.multiprocessors);
        blocks = blocks_of(context);
        CHECK(blocks <= rows[i].are && 2 * blocks > rows[i].are, "%d: %d blocks", rows[i].asked, blocks);
        gemmepi_destroy(context);
        nothing_is_left();
        config.routes = 1 << GEMMEPI_ROUTE_LT;
        context = open_fake(&config);
        gpu.lt_multiprocessors = 0;
        gemmepi_plan_destroy(plan_on(context, &lt, GEMMEPI_ROUTE_LT));
        CHECK(gpu.lt_multiprocessors == rows[i].told, "%d: cuBLASLt counts on %d", rows[i].asked,
              gpu.lt_multiprocessors);
        gemmepi_destroy(context);
        nothing_is_left();
    }
    config.multiprocessors = -1;
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_INVALID_ARGUMENT && !context &&
              strstr(gemmepi_last_error(), "config.multiprocessors is -1"),
          "%s", gemmepi_last_error());
}

static void libraries_are_loaded_when_first_needed(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc lt = lt_product(), pass = pass_alone();
    gemmepi_matmul_args lt_args = args_for(&lt), pass_args = args_for(&pass);
    CHECK(gpu.asked_cuda > 0 && gpu.asked_nvrtc == 0 && gpu.asked_lt == 0,
          "create loads more than the driver");
    CHECK(gemmepi_matmul(context, &lt, &lt_args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.asked_lt > 0 && gpu.asked_nvrtc == 0, "lt needs no NVRTC");
    gemmepi_destroy(context);
    config = fake_config();
    context = open_fake(&config);
    CHECK(gemmepi_matmul(context, &pass, &pass_args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.asked_nvrtc > 0 && gpu.asked_lt == 0, "a pass alone needs no cuBLASLt");
    gemmepi_destroy(context);
    nothing_is_left();
}

/* The count of forks is raised by hand, which is all that a fork() does. */
static void a_child_asks_nothing_of_the_parents_gpu(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config), *own = NULL;
    gemmepi_matmul_desc desc = split_product();
    gemmepi_matmul_args args = args_for(&desc);
    gemmepi_stream stream = NULL;
    void *memory = NULL;
    long modules, blocks;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    modules = gpu.modules;
    blocks = gpu.device_blocks;
    gpi__forks++;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_INVALID_ARGUMENT && sentence_has("fork()"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_alloc(context, 16, &memory) == GEMMEPI_INVALID_ARGUMENT, "memory");
    CHECK(gemmepi_stream_create(context, &stream) == GEMMEPI_INVALID_ARGUMENT, "a stream");
    CHECK(gemmepi_synchronize(context, NULL) == GEMMEPI_INVALID_ARGUMENT, "the parent's work");
    gemmepi_destroy(context);
    CHECK(gpu.modules == modules && gpu.device_blocks == blocks && gpu.released == 0,
          "%ld modules, %ld blocks, released %ld times", gpu.modules, gpu.device_blocks, gpu.released);
    config.device = GEMMEPI_DEVICE(0);
    break_function("cuInit", 3);
    CHECK(gemmepi_create(&config, &own) == GEMMEPI_NO_DEVICE && sentence_has("after a fork()"), "%s",
          gemmepi_last_error());
    gpi__forks--;
    gemmepi_destroy(context);
    nothing_is_left();
}

#if !GPI__WINDOWS
extern int test_setenv(const char *name, const char *value, int overwrite) __asm__("setenv");
extern int test_unsetenv(const char *name) __asm__("unsetenv");
extern int fileno_of(FILE *file) __asm__("fileno");

/* What a context and a plan write to stderr where GEMMEPI_LOG is value (NULL: not set). */
static const char *said_to_stderr(const char *value, gemmepi_log_function callback) {
    static char said[8192];
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = pass_alone();
    gemmepi_plan *plan = NULL;
    FILE *file = tmpfile();
    int kept = dup(2);
    size_t length = 0;
    if (value)
        test_setenv("GEMMEPI_LOG", value, 1);
    else
        test_unsetenv("GEMMEPI_LOG");
    config.log = callback;
    if (file && kept >= 0) {
        fflush(stderr);
        dup2(fileno_of(file), 2);
        context = open_fake(&config);
        gemmepi_plan_matmul(context, &desc, &plan);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        fflush(stderr);
        dup2(kept, 2);
        rewind(file);
        length = fread(said, 1, sizeof said - 1, file);
    }
    said[length] = 0;
    if (file)
        fclose(file);
    close(kept);
    test_unsetenv("GEMMEPI_LOG");
    return said;
}

static void the_environment_sends_the_log_to_stderr_and_nothing_else_does(void) {
    const char *said;
    CHECK(said_to_stderr(NULL, NULL)[0] == 0, "not asked for: %s", said_to_stderr(NULL, NULL));
    CHECK(said_to_stderr("loud", NULL)[0] == 0, "an unknown value: %s", said_to_stderr("loud", NULL));
    CHECK(said_to_stderr("error", NULL)[0] == 0, "nothing failed: %s", said_to_stderr("error", NULL));
    said = said_to_stderr("info", NULL);
    CHECK(strstr(said, "gemmepi info: ") && !strstr(said, "gemmepi debug: "), "info: %s", said);
    said = said_to_stderr("debug", NULL);
    CHECK(strstr(said, "gemmepi info: ") && strstr(said, "gemmepi debug: compiled pass.cu"), "debug: %s",
          said);
    CHECK(said[0] && said[strlen(said) - 1] == '\n', "no whole line: %s", said);
    CHECK(said_to_stderr("debug", keep_log)[0] == 0, "beside a callback: %s",
          said_to_stderr("debug", keep_log));
}
#endif

/* >>the caller's current context */

static void the_callers_current_context_stays_as_it_was(void) {
    gpi__cu_context currents[3];
    int i;
    currents[0] = NULL, currents[1] = callers_own, currents[2] = primary;
    for (i = 0; i < 3; i++) {
        gemmepi_config config = fake_config();
        gemmepi_context *context;
        gemmepi_matmul_desc desc = split_product();
        gemmepi_matmul_args args = args_for(&desc);
        gemmepi_plan *plan = NULL;
        gemmepi_stream stream = NULL;
        void *pointer = NULL;
        float value = 1;
#define STAYS(call)                                                                                    \
    do {                                                                                               \
        CHECK((call) == GEMMEPI_OK, "%s", gemmepi_last_error());                                       \
        CHECK(depth == 0 && stack[0] == currents[i] && capture_mode == 1, "depth %d, capture mode %d", \
              depth, capture_mode);                                                                    \
    } while (0)
        stack[0] = currents[i];
        capture_mode = 1;
        STAYS(gemmepi_create(&config, &context));
        STAYS(gemmepi_alloc(context, 256, &pointer));
        STAYS(gemmepi_upload(context, pointer, &value, sizeof value, NULL));
        STAYS(gemmepi_download(context, &value, pointer, sizeof value, NULL));
        STAYS(gemmepi_free(context, pointer));
        STAYS(gemmepi_stream_create(context, &stream));
        STAYS(gemmepi_plan_matmul(context, &desc, &plan));
        STAYS(gemmepi_plan_prepare(plan, stream));
        STAYS(gemmepi_run_matmul(plan, &args, stream));
        STAYS(gemmepi_matmul(context, &desc, &args, NULL));
        STAYS(gemmepi_synchronize(context, stream));
        STAYS(gemmepi_stream_destroy(context, stream));
        gemmepi_plan_destroy(plan);
        break_function("cublasLtMatmul", GPI__CUBLAS_STATUS_EXECUTION_FAILED);
        CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_CUBLAS_ERROR, "%s",
              gemmepi_last_error());
        CHECK(depth == 0 && stack[0] == currents[i] && capture_mode == 1, "after a failure: depth %d", depth);
        gemmepi_destroy(context);
        CHECK(depth == 0 && stack[0] == currents[i] && capture_mode == 1, "after destroy: depth %d", depth);
        capture_mode = 0;
        nothing_is_left();
    }
}

static void the_callers_current_context_stays_as_it_was_after_elementwise_calls(void) {
    int i, broken_one;
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    stack[0] = callers_own;
    capture_mode = 1;
    context = open_fake(&config);
    for (i = 0; i < ELEMENT_CALLS; i++)
        for (broken_one = 0; broken_one < 2; broken_one++) {
            element_call c;
            element_calls[i].make(&c);
            if (broken_one)
                break_function("cuLaunchKernel", 719);
            call_at_any_time(context, &c, NULL);
            gpu.fails = NULL;
            CHECK(depth == 0 && stack[0] == callers_own && capture_mode == 1, "%s: depth %d, capture mode %d",
                  element_calls[i].name, depth, capture_mode);
        }
    gemmepi_destroy(context);
    capture_mode = 0;
    nothing_is_left_and_cublaslt_was_not_loaded();
}

int main(void) {
    keep_libraries_open();
#if !GPI__WINDOWS
    RUN(without_memory_to_watch_forks_there_is_no_context);
#endif
    RUN(a_program_of_another_header_is_refused);
    RUN(without_a_gpu_the_host_is_taken_unless_a_device_is_asked_for);
    RUN(a_device_beyond_the_last_is_refused_by_number);
    RUN(library_path_only_needs_a_library_path);
    RUN(a_driver_without_a_function_is_refused_by_the_functions_name);
    RUN(a_failed_create_leaves_nothing_behind);
    RUN(a_context_gives_everything_back);
    RUN(blocks_of_memory_are_known_by_their_bounds_however_many_there_are);
    RUN(the_rate_of_memory_is_the_drivers_or_that_of_the_chip);
    RUN(products_take_no_more_multiprocessors_than_config_says);
    RUN(libraries_are_loaded_when_first_needed);
    RUN(a_child_asks_nothing_of_the_parents_gpu);
#if !GPI__WINDOWS
    RUN(the_environment_sends_the_log_to_stderr_and_nothing_else_does);
#endif
    RUN(the_callers_current_context_stays_as_it_was);
    RUN(the_callers_current_context_stays_as_it_was_after_elementwise_calls);
    return test_finish();
}
