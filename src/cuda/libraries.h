/* The libraries of CUDA as a table: their functions, the names of their files, and the places where they may be. */
#ifndef GEMMEPI_CUDA_LIBRARIES_H
#define GEMMEPI_CUDA_LIBRARIES_H

#include "../base/environment.h"
#include "cublaslt.h"
#include "driver.h"
#include "nvrtc.h"

#define GPI__OLDEST_CUDA_MAJOR 12

typedef struct gpi__symbol {
    const char *name;
    size_t offset; /* of the function pointer in the library's struct */
} gpi__symbol;

typedef struct gpi__library_file {
    const char *name; /* NULL ends the list                     */
    int major;        /* of CUDA; 0: the name does not tell     */
} gpi__library_file;

/* Every root is tried with every folder behind it. A root may begin with $NAME, an environment variable, or with
   $(python3), the installation that the python3 on PATH belongs to, or $(python3 resolved), the same through its
   symbolic links, which lead out of a virtual environment. A * ends a component and stands for any end of it;
   a folder whose own name has one is not found. */
typedef struct gpi__places {
    const char *what; /* NULL ends the list */
    const char *const *roots;
    const char *const *folders;
} gpi__places;

typedef struct gpi__library_row {
    const char *name;  /* for the resolver and the log */
    const char *title; /* for sentences                */
    const char *advice;
    gpi__library_file files[4];
    gpi__places places[3];
    const gpi__symbol *symbols;
    size_t symbol_count, size;             /* size: of the struct of functions                         */
    int (*version)(const void *functions); /* 0: it does not tell; NULL: not asked                     */
    int version_unit;                      /* what one major version counts in the version's number    */
    int follows_driver;                    /* 1: newest_major holds                                    */
    int has_builtins;                      /* 1: of no use without its builtins, a file of their own   */
} gpi__library_row;

static const gpi__symbol gpi__driver_symbols[] = {
#define GPI__DRIVER_SYMBOL(field, symbol, result, parameters) {#symbol, offsetof(gpi__driver, field)},
    GPI__DRIVER_FUNCTIONS(GPI__DRIVER_SYMBOL)
#undef GPI__DRIVER_SYMBOL
};

static const gpi__symbol gpi__nvrtc_symbols[] = {
#define GPI__NVRTC_SYMBOL(field, symbol, result, parameters) {#symbol, offsetof(gpi__nvrtc, field)},
    GPI__NVRTC_FUNCTIONS(GPI__NVRTC_SYMBOL)
#undef GPI__NVRTC_SYMBOL
};

static const gpi__symbol gpi__cublaslt_symbols[] = {
#define GPI__CUBLASLT_SYMBOL(field, symbol, result, parameters) {#symbol, offsetof(gpi__cublaslt, field)},
    GPI__CUBLASLT_FUNCTIONS(GPI__CUBLASLT_SYMBOL)
#undef GPI__CUBLASLT_SYMBOL
};

static int gpi__driver_version_of(const void *functions) {
    int version = 0;
    if (((const gpi__driver *)functions)->driver_get_version(&version) != GPI__CUDA_SUCCESS)
        return 0;
    return version;
}

static int gpi__nvrtc_version_of(const void *functions) {
    int major = 0, minor = 0;
    if (((const gpi__nvrtc *)functions)->get_version(&major, &minor) != GPI__NVRTC_SUCCESS)
        return 0;
    return major * 1000 + minor * 10;
}

static int gpi__cublaslt_version_of(const void *functions) {
    return (int)((const gpi__cublaslt *)functions)->get_version();
}

#if GPI__WINDOWS
#define GPI__FILES_CUDA     \
    {                       \
        { "nvcuda.dll", 0 } \
    }
#define GPI__FILES_NVRTC             \
    {                                \
        {"nvrtc64_130_0.dll", 13}, { \
            "nvrtc64_120_0.dll", 12  \
        }                            \
    }
#define GPI__FILES_CUBLASLT          \
    {                                \
        {"cublasLt64_13.dll", 13}, { \
            "cublasLt64_12.dll", 12  \
        }                            \
    }
#define GPI__FILE_BUILTINS "nvrtc-builtins64_%d%d.dll"

static const char *const gpi__driver_roots[] = {NULL};
static const char *const gpi__driver_folders[] = {NULL};
static const char *const gpi__toolkit_roots[] = {"$CUDA_PATH", "$CUDA_HOME", "$CONDA_PREFIX\\Library",
                                                 "$ProgramFiles\\NVIDIA GPU Computing Toolkit\\CUDA\\v*",
                                                 NULL};
static const char *const gpi__toolkit_folders[] = {"\\bin\\x64", "\\bin", NULL};
static const char *const gpi__python_roots[] = {"$VIRTUAL_ENV\\Lib",
                                                "$CONDA_PREFIX\\Lib",
                                                "$(python3)\\Lib",
                                                "$LOCALAPPDATA\\Programs\\Python\\Python3*\\Lib",
                                                "$APPDATA\\Python\\Python3*",
                                                NULL};
static const char *const gpi__python_folders[] = {
    "\\site-packages\\nvidia\\cu13\\bin\\x86_64", "\\site-packages\\nvidia\\cu13\\bin",
    "\\site-packages\\nvidia\\cu12\\bin",         "\\site-packages\\nvidia\\cuda_nvrtc\\bin",
    "\\site-packages\\nvidia\\cublas\\bin",       NULL};
#else
#define GPI__FILES_CUDA        \
    {                          \
        {"libcuda.so.1", 0}, { \
            "libcuda.so", 0    \
        }                      \
    }
#define GPI__FILES_NVRTC                                  \
    {                                                     \
        {"libnvrtc.so.13", 13}, {"libnvrtc.so.12", 12}, { \
            "libnvrtc.so", 0                              \
        }                                                 \
    }
#define GPI__FILES_CUBLASLT                                     \
    {                                                           \
        {"libcublasLt.so.13", 13}, {"libcublasLt.so.12", 12}, { \
            "libcublasLt.so", 0                                 \
        }                                                       \
    }
#define GPI__FILE_BUILTINS "libnvrtc-builtins.so.%d.%d"

/* where WSL, NixOS and Kubernetes put the driver */
static const char *const gpi__driver_roots[] = {"/usr/lib/wsl/lib", "/run/opengl-driver/lib",
                                                "/usr/local/nvidia/lib64", NULL};
static const char *const gpi__driver_folders[] = {"", NULL};
static const char *const gpi__toolkit_roots[] = {
    "$CUDA_PATH", "$CUDA_HOME", "$CONDA_PREFIX", "/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda", NULL};
static const char *const gpi__toolkit_folders[] = {"/lib64", "/lib", "/targets/x86_64-linux/lib",
                                                   "/targets/sbsa-linux/lib", NULL};
static const char *const gpi__python_roots[] = {
    "$VIRTUAL_ENV/lib/python3*", "$CONDA_PREFIX/lib/python3*",
    "$(python3)/lib/python3*",   "$(python3 resolved)/lib/python3*",
    "$HOME/.local/lib/python3*", "/usr/local/lib/python3*",
    "/usr/lib/python3*",         NULL};
static const char *const gpi__python_folders[] = {"/site-packages/nvidia/cu13/lib",
                                                  "/site-packages/nvidia/cu12/lib",
                                                  "/site-packages/nvidia/cuda_nvrtc/lib",
                                                  "/site-packages/nvidia/cublas/lib",
                                                  "/dist-packages/nvidia/cu13/lib",
                                                  "/dist-packages/nvidia/cu12/lib",
                                                  "/dist-packages/nvidia/cuda_nvrtc/lib",
                                                  "/dist-packages/nvidia/cublas/lib",
                                                  NULL};
#endif

#define GPI__PLACES_DRIVER                              \
    {                                                   \
        {"", gpi__driver_roots, gpi__driver_folders}, { \
            NULL, NULL, NULL                            \
        }                                               \
    }
#define GPI__PLACES_TOOLKIT                                                           \
    {                                                                                 \
        {"the toolkit's folders under ", gpi__toolkit_roots, gpi__toolkit_folders},   \
            {"pip's nvidia wheels under ", gpi__python_roots, gpi__python_folders}, { \
            NULL, NULL, NULL                                                          \
        }                                                                             \
    }

#if defined(__APPLE__)
#define GPI__ADVICE_CUDA "There is none for macOS: use GEMMEPI_DEVICE_HOST."
#else
#define GPI__ADVICE_CUDA "It is part of NVIDIA's display driver: install that, 525 or later."
#endif

static const gpi__library_row gpi__driver_row = {"cuda",
                                                 "the CUDA driver",
                                                 GPI__ADVICE_CUDA,
                                                 GPI__FILES_CUDA,
                                                 GPI__PLACES_DRIVER,
                                                 gpi__driver_symbols,
                                                 GPI__COUNT(gpi__driver_symbols),
                                                 sizeof(gpi__driver),
                                                 gpi__driver_version_of,
                                                 1000,
                                                 0,
                                                 0};

static const gpi__library_row gpi__nvrtc_row = {
    "nvrtc",
    "NVRTC, CUDA's run-time compiler,",
    "Install the CUDA toolkit, or `pip install nvidia-cuda-nvrtc` (nvidia-cuda-nvrtc-cu12 for a driver of CUDA 12), "
    "or NVIDIA's package cuda-nvrtc-13-0, or set library_path of gemmepi_config to its folder.",
    GPI__FILES_NVRTC,
    GPI__PLACES_TOOLKIT,
    gpi__nvrtc_symbols,
    GPI__COUNT(gpi__nvrtc_symbols),
    sizeof(gpi__nvrtc),
    gpi__nvrtc_version_of,
    1000,
    1,
    1};

static const gpi__library_row gpi__cublaslt_row = {
    "cublasLt",
    "cuBLASLt",
    "Install the CUDA toolkit, or `pip install nvidia-cublas` (nvidia-cublas-cu12 for a driver of CUDA 12), or NVIDIA's "
    "package libcublas-13-0, or set library_path of gemmepi_config to its folder.",
    GPI__FILES_CUBLASLT,
    GPI__PLACES_TOOLKIT,
    gpi__cublaslt_symbols,
    GPI__COUNT(gpi__cublaslt_symbols),
    sizeof(gpi__cublaslt),
    gpi__cublaslt_version_of,
    10000,
    1,
    0};

#endif
