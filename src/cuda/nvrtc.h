/* NVRTC's interface, as far as it is used; declared by hand as the driver's in driver.h. */
#ifndef GEMMEPI_CUDA_NVRTC_H
#define GEMMEPI_CUDA_NVRTC_H

#include "../base/status.h"

typedef int gpi__nvrtc_result;
typedef struct gpi__nvrtc_program_opaque *gpi__nvrtc_program;

/* NVRTC's name, value; ours has GPI__ before it */
#define GPI__NVRTC_CONSTANTS(X)                 \
    X(NVRTC_SUCCESS, 0)                         \
    X(NVRTC_ERROR_OUT_OF_MEMORY, 1)             \
    X(NVRTC_ERROR_INVALID_INPUT, 3)             \
    X(NVRTC_ERROR_INVALID_OPTION, 5)            \
    X(NVRTC_ERROR_COMPILATION, 6)               \
    X(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, 7) \
    X(NVRTC_ERROR_INTERNAL_ERROR, 11)

enum {
#define GPI__NVRTC_CONSTANT(name, value) GPI__##name = value,
    GPI__NVRTC_CONSTANTS(GPI__NVRTC_CONSTANT)
#undef GPI__NVRTC_CONSTANT
};

/* our field, the exported name (present since CUDA 12.0), result, parameters */
#define GPI__NVRTC_FUNCTIONS(X)                                                                          \
    X(get_version, nvrtcVersion, gpi__nvrtc_result, (int *major, int *minor))                            \
    X(get_error_string, nvrtcGetErrorString, const char *, (gpi__nvrtc_result result))                   \
    X(get_num_supported_archs, nvrtcGetNumSupportedArchs, gpi__nvrtc_result, (int *count))               \
    X(get_supported_archs, nvrtcGetSupportedArchs, gpi__nvrtc_result, (int *archs))                      \
    X(create_program, nvrtcCreateProgram, gpi__nvrtc_result,                                             \
      (gpi__nvrtc_program * program, const char *source, const char *name, int header_count,             \
       const char *const *headers, const char *const *header_names))                                     \
    X(destroy_program, nvrtcDestroyProgram, gpi__nvrtc_result, (gpi__nvrtc_program * program))           \
    X(compile_program, nvrtcCompileProgram, gpi__nvrtc_result,                                           \
      (gpi__nvrtc_program program, int option_count, const char *const *options))                        \
    X(get_cubin_size, nvrtcGetCUBINSize, gpi__nvrtc_result, (gpi__nvrtc_program program, size_t * size)) \
    X(get_cubin, nvrtcGetCUBIN, gpi__nvrtc_result, (gpi__nvrtc_program program, char *cubin))            \
    X(get_ptx_size, nvrtcGetPTXSize, gpi__nvrtc_result, (gpi__nvrtc_program program, size_t * size))     \
    X(get_ptx, nvrtcGetPTX, gpi__nvrtc_result, (gpi__nvrtc_program program, char *ptx))                  \
    X(get_program_log_size, nvrtcGetProgramLogSize, gpi__nvrtc_result,                                   \
      (gpi__nvrtc_program program, size_t * size))                                                       \
    X(get_program_log, nvrtcGetProgramLog, gpi__nvrtc_result, (gpi__nvrtc_program program, char *log))

/* Filled by gpi__load_nvrtc; then every function is there. */
typedef struct gpi__nvrtc {
    void *library;  /* NULL if a resolver supplied everything                                */
    void *builtins; /* the library that NVRTC loads by name when it compiles; NULL: left to it */
    int version;    /* 13000 for CUDA 13.0                                                   */
#define GPI__NVRTC_FIELD(field, symbol, result, parameters) result(GPI__CUDA_CALL *field) parameters;
    GPI__NVRTC_FUNCTIONS(GPI__NVRTC_FIELD)
#undef GPI__NVRTC_FIELD
} gpi__nvrtc;

/* The status and the sentence for an error code of NVRTC; what says what was being done. */
static gemmepi_status gpi__nvrtc_failed(const gpi__nvrtc *nvrtc, gpi__nvrtc_result result, const char *what) {
    const char *name = nvrtc->get_error_string(result);
    return gpi__fail(result == GPI__NVRTC_ERROR_OUT_OF_MEMORY ? GEMMEPI_OUT_OF_MEMORY : GEMMEPI_COMPILE_ERROR,
                     "%s: NVRTC returned %s (%d)", what, name ? name : "an unknown error", result);
}

#endif
