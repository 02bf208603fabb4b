/* NVRTC, as far as a kernel of the bench's own needs it, found when the program runs. */
#ifndef GEMMEPI_BENCH_NVRTC_H
#define GEMMEPI_BENCH_NVRTC_H

#include "bench.h"

/* our field, the exported name, parameters; every result is an int, 0 for success */
#define NVRTC_FUNCTIONS(X)                                                                             \
    X(create, nvrtcCreateProgram,                                                                      \
      (void **program, const char *source, const char *name, int headers, const char *const *contents, \
       const char *const *names))                                                                      \
    X(destroy, nvrtcDestroyProgram, (void **program))                                                  \
    X(compile, nvrtcCompileProgram, (void *program, int count, const char *const *options))            \
    X(cubin_size, nvrtcGetCUBINSize, (void *program, size_t *size))                                    \
    X(cubin, nvrtcGetCUBIN, (void *program, char *cubin))                                              \
    X(log_size, nvrtcGetProgramLogSize, (void *program, size_t *size))                                 \
    X(log, nvrtcGetProgramLog, (void *program, char *log))

typedef struct nvrtc {
    void *library; /* NULL: not opened */
#define NVRTC_FIELD(field, symbol, parameters) int(*field) parameters;
    NVRTC_FUNCTIONS(NVRTC_FIELD)
#undef NVRTC_FIELD
} nvrtc;

/* That which gemmepi has loaded, wherever it has found it, else the system's. */
static void *nvrtc_find_library(void) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    void *library = NULL;
    int i;
    for (i = 0; i < COUNT(names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    for (i = 0; i < COUNT(names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static int nvrtc_open(bench *b, nvrtc *n) {
    void *library = nvrtc_find_library(), *address;
    if (n->library)
        return 1;
    if (!library)
        return bench_fail(b, "libnvrtc.so.13 and .12 cannot be opened");
/* by memcpy: ISO C has no conversion from objects to functions */
#define NVRTC_FIND(field, symbol, parameters)                  \
    address = dlsym(library, #symbol);                         \
    if (!address)                                              \
        return bench_fail(b, "libnvrtc.so lacks %s", #symbol); \
    memcpy(&n->field, &address, sizeof address);
    NVRTC_FUNCTIONS(NVRTC_FIND)
#undef NVRTC_FIND
    n->library = library;
    return 1;
}

static int nvrtc_did(bench *b, int result, const char *what) {
    return !result || bench_fail(b, "%s: NVRTC returned %d", what, result);
}

/* The beginning of what the compiler says becomes the fault. */
static int nvrtc_complain(bench *b, const nvrtc *n, void *program) {
    size_t size = 0;
    char *log = !n->log_size(program, &size) && size ? malloc(size) : NULL;
    if (log && !n->log(program, log))
        bench_fail(b, "NVRTC does not compile the bench's kernel: %.400s", log);
    else
        bench_fail(b, "NVRTC does not compile the bench's kernel");
    free(log);
    return 0;
}

static int nvrtc_take_cubin(bench *b, const nvrtc *n, void *program, char **cubin) {
    size_t size = 0;
    if (!nvrtc_did(b, n->cubin_size(program, &size), "nvrtcGetCUBINSize"))
        return 0;
    *cubin = malloc(size ? size : 1);
    return *cubin ? nvrtc_did(b, n->cubin(program, *cubin), "nvrtcGetCUBIN") : bench_fail(b, "out of memory");
}

/* For the architecture, such as 90. *cubin is the caller's to free, also where this fails. */
static int nvrtc_compile(bench *b, const nvrtc *n, const char *source, int arch, char **cubin) {
    char target[40];
    const char *options[2];
    void *program = NULL;
    int done;
    *cubin = NULL;
    snprintf(target, sizeof target, "--gpu-architecture=sm_%d", arch);
    options[0] = target;
    options[1] = "--use_fast_math";
    if (!nvrtc_did(b, n->create(&program, source, "bench_pass.cu", 0, NULL, NULL), "nvrtcCreateProgram"))
        return 0;
    done = !n->compile(program, COUNT(options), options) ? nvrtc_take_cubin(b, n, program, cubin)
                                                         : nvrtc_complain(b, n, program);
    n->destroy(&program);
    return done;
}

#endif
