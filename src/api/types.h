/* Everything a user hands over or gets back. */
#ifndef GEMMEPI_API_TYPES_H
#define GEMMEPI_API_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define GEMMEPI_VERSION_MAJOR  0
#define GEMMEPI_VERSION_MINOR  15
#define GEMMEPI_VERSION_PATCH  0
#define GEMMEPI_VERSION_STRING "0.15.0"
#define GEMMEPI_VERSION        (GEMMEPI_VERSION_MAJOR * 10000 + GEMMEPI_VERSION_MINOR * 100 + GEMMEPI_VERSION_PATCH)

/* Every struct below is zero-initialised by the user: = {0} in C, = {} in C++. A field left 0 has the default that its
   comment states. Sizes m, n and k have none: 0 is an empty matrix. */

/* Compilers that can warn of an ignored status. */
#ifndef GEMMEPI_NODISCARD
#if (defined(__cplusplus) && __cplusplus >= 201703L) || (!defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
#define GEMMEPI_NODISCARD [[nodiscard]]
#else
#define GEMMEPI_NODISCARD
#endif
#endif

/* >>statuses */

/* Every function that can fail returns one. gemmepi_last_error() has the sentence. */
#define GEMMEPI_STATUS_LIST(X)                                                                   \
    X(GEMMEPI_OK, 0, "success")                                                                  \
    X(GEMMEPI_INVALID_ARGUMENT, 1, "an argument has a value that is never accepted")             \
    X(GEMMEPI_UNSUPPORTED, 2, "the problem has a meaning, but no route of this version runs it") \
    X(GEMMEPI_MISALIGNED, 3, "a pointer is less aligned than promised")                          \
    X(GEMMEPI_BUFFER_TOO_SMALL, 4, "a buffer is too small, or workspace was not reserved")       \
    X(GEMMEPI_OUT_OF_MEMORY, 5, "host or device memory is exhausted")                            \
    X(GEMMEPI_NO_DEVICE, 6, "the device that was asked for does not exist or cannot be used")    \
    X(GEMMEPI_LIBRARY_NOT_FOUND, 7, "a CUDA library was not found, or lacks a function")         \
    X(GEMMEPI_COMPILE_ERROR, 8, "NVRTC did not compile a kernel")                                \
    X(GEMMEPI_CUDA_ERROR, 9, "the CUDA driver returned an error")                                \
    X(GEMMEPI_CUBLAS_ERROR, 10, "cuBLASLt returned an error")                                    \
    X(GEMMEPI_FILE_ERROR, 11, "a file cannot be read or written, or a bundle cannot be used")

typedef enum GEMMEPI_NODISCARD gemmepi_status {
#define GEMMEPI_STATUS_ENUM(name, value, text) name = value,
    GEMMEPI_STATUS_LIST(GEMMEPI_STATUS_ENUM)
#undef GEMMEPI_STATUS_ENUM
        GEMMEPI_STATUS_FORCE_INT = 0x7fffffff
} gemmepi_status;

/* >>handles */

typedef struct gemmepi_context gemmepi_context; /* one device; any number of threads may use it at once */
typedef struct gemmepi_plan gemmepi_plan;       /* one problem of any kind, prepared; immutable, so threads share it */
typedef void *gemmepi_stream;                   /* a CUstream or cudaStream_t; NULL is the default stream */

/* >>configuration */

#define GEMMEPI_DEVICE_HOST (-1)      /* no GPU: the same interface in plain C on host memory */
#define GEMMEPI_DEVICE(i)   ((i) + 1) /* the i-th CUDA device, counted from 0 */

typedef enum gemmepi_log_level {
    GEMMEPI_LOG_ERROR = 1,   /* something failed that the library works around */
    GEMMEPI_LOG_WARNING = 2, /* something that the user may want to change */
    GEMMEPI_LOG_INFO = 3,    /* choices made: device, libraries, routes */
    GEMMEPI_LOG_DEBUG = 4    /* compilations, cache hits and misses */
} gemmepi_log_level;

/* Receives one line without a line end, valid during the call. Any thread that uses the context may call it. It must not call
   back into the context. */
typedef void (*gemmepi_log_function)(void *user, gemmepi_log_level level, const char *message);

/* Host memory for the library's own bookkeeping. Set both functions or neither; every thread that uses the context may call them.
   alloc returns memory aligned as malloc's, or NULL. */
typedef struct gemmepi_allocator {
    void *(*alloc)(void *user, size_t size);
    void (*free)(void *user, void *pointer);
    void *user;
} gemmepi_allocator;

/* Called for each function that gemmepi loads from a CUDA library: library is "cuda", "nvrtc" or "cublasLt",
   symbol the name, found what the library exports (NULL if the function or the whole library is missing).
   Returns the address to use: found for no change, NULL for "missing". It must not call back into the context. */
typedef void *(*gemmepi_symbol_resolver)(void *user, const char *library, const char *symbol, void *found);

typedef struct gemmepi_config {
    /* GEMMEPI_DEVICE(i) or GEMMEPI_DEVICE_HOST. 0: the calling thread's current CUDA device, else the first one, else the
       host (gemmepi_context_details.fallback_reason says why) */
    int device;

    /* NULL: no log, unless the environment variable GEMMEPI_LOG (error, warning, info, debug) asks for one on stderr */
    gemmepi_log_function log;
    void *log_user;
    gemmepi_allocator allocator; /* zero: malloc and free */

    /* Folders that are searched for the CUDA libraries before the usual ones, separated by ':' (';' on Windows). NULL: none. Relative
       folders, here and below, are those of the current folder when the context is created */
    const char *library_path;
    int library_path_only;                  /* 1: search only library_path, for the driver too */
    gemmepi_symbol_resolver resolve_symbol; /* NULL: what the libraries export */
    void *resolve_user;

    /* Folder for compiled kernels, created with mode 0700. A folder that others own or can write is not used, and the log says so.
       "": none. NULL: gemmepi/ in XDG_CACHE_HOME or ~/.cache (on Windows in LOCALAPPDATA), none where these are not set */
    const char *cache_path;
    size_t cache_size; /* bound on that folder in bytes; 0: 256 MiB */

    /* Folder for NAME.cu, .ptx and .cubin of each kernel that is compiled (kernels in the cache are not compiled: set cache_path
       to "" for all). If a file cannot be written, the log warns. NULL: none */
    const char *dump_path;

    unsigned routes; /* bits 1 << gemmepi_route of the routes that products on a GPU may use; 0: all */
    /* 1: every run refuses pointers that the device cannot reach, and memory that ends before the tensor does, as CUDA knows
       the allocation; 0: only calls without a plan refuse pointers out of reach. On the host every call refuses memory that
       gemmepi_alloc of its context gave and that begins too late or ends too early */
    int check_pointers;

    /* The most multiprocessors that a product uses, in the kernel for Hopper or cuBLASLt. The rest are for kernels that run at the
       same time, such as NCCL's: a product that waits for one multiprocessor waits as a whole. 0, or more than there are: all */
    int multiprocessors;

    /* Tuning on first use: milliseconds for each product that has no answer yet, as of gemmepi_tune_options. The call that plans it tunes
       it first, a one-shot call, too, but not while its stream is captured: then a later call does. Where it fails, for want of memory
       say, the plan is untuned, and the log warns. 0: only gemmepi_tune tunes */
    double tune;

    /* 1: cuBLASLt's results are checked where nobody has measured them (docs/routes.md has a table of chips and versions). The call that
       first plans an algorithm for an epilogue and types runs a small product of random numbers by it and by the route PLAIN, of 128 rows
       and columns or some more: tens of milliseconds, and where its kernel is not in the cache up to a second to compile it. An algorithm that is off by
       more than the bounds of docs/numerics.md is not used, and gemmepi_plan_explain and the log say so. Results of checks are kept in the cache
       folder. Where it cannot be checked, for want of memory or NVRTC say, the log warns, and the algorithm is used as documented; so it is
       while a stream is captured, until a later call plans it, and with RELAXED. 0: as documented. On the host: no effect */
    int check;
} gemmepi_config;

#endif
