/* Finds the CUDA driver, NVRTC and cuBLASLt on this machine and takes their functions.

   For every file name that a library may have, newest CUDA first, the places are tried in this order: the folders
   of the user's library_path; the system's own search, which also finds a library that the process has already;
   the toolkit; the wheels of pip. A newer CUDA in a later place beats an older one in an earlier place, except that
   library_path always wins. What is opened must have every function and a version that the driver takes, else the
   search goes on. Code is loaded from there, so a folder that comes from the environment is left out where others can
   write to it or to what it lies in. */
#ifndef GEMMEPI_CUDA_LOAD_H
#define GEMMEPI_CUDA_LOAD_H

#include "../base/dynamic_library.h"
#include "../base/environment.h"
#include "../base/log.h"
#include "../base/text.h"
#include "cublaslt.h"
#include "driver.h"
#include "nvrtc.h"

#if !GEMMEPI__WINDOWS
#include <dirent.h>
#endif

#define GEMMEPI__OLDEST_CUDA_MAJOR 12

typedef struct gemmepi__loader {
    const gemmepi__log *log;  /* not NULL                                                             */
    const char *library_path; /* as in gemmepi_config                                                 */
    int library_path_only;    /* as in gemmepi_config                                                 */
    gemmepi_symbol_resolver
        resolve; /* NULL: what the libraries export                                      */
    void *resolve_user;
    int newest_major; /* of CUDA, for NVRTC and cuBLASLt: the driver's own (13.0 gives 13), since older drivers
                         do not run what newer toolkits make; 0: any                                         */
} gemmepi__loader;

/* >>tables */

typedef struct gemmepi__symbol {
    const char *name;
    size_t offset; /* of the function pointer in the library's struct */
} gemmepi__symbol;

typedef struct gemmepi__library_file {
    const char *name; /* NULL ends the list                     */
    int major;        /* of CUDA; 0: the name does not tell     */
} gemmepi__library_file;

/* Every root is tried with every folder behind it. A root may begin with $NAME, an environment variable, or with
   $(python3), the installation that the python3 on PATH belongs to, or $(python3 resolved), the same through its
   symbolic links, which lead out of a virtual environment. A * ends a component and stands for any end of it;
   a folder whose own name has one is not found. */
typedef struct gemmepi__places {
    const char *what; /* NULL ends the list */
    const char *const *roots;
    const char *const *folders;
} gemmepi__places;

typedef struct gemmepi__library_row {
    const char *name;  /* for the resolver and the log */
    const char *title; /* for sentences                */
    const char *advice;
    gemmepi__library_file files[4];
    gemmepi__places places[3];
    const gemmepi__symbol *symbols;
    size_t symbol_count;
    int (*version)(const void *functions); /* 0: it does not tell; NULL: not asked                     */
    int version_unit;                      /* what one major version counts in the version's number    */
    int follows_driver;                    /* 1: newest_major holds                                    */
    int has_builtins;                      /* 1: of no use without its builtins, a file of their own   */
} gemmepi__library_row;

static const gemmepi__symbol gemmepi__driver_symbols[] = {
#define GEMMEPI__DRIVER_SYMBOL(field, symbol, result, parameters) {#symbol, offsetof(gemmepi__driver, field)},
    GEMMEPI__DRIVER_FUNCTIONS(GEMMEPI__DRIVER_SYMBOL)
#undef GEMMEPI__DRIVER_SYMBOL
};

static const gemmepi__symbol gemmepi__nvrtc_symbols[] = {
#define GEMMEPI__NVRTC_SYMBOL(field, symbol, result, parameters) {#symbol, offsetof(gemmepi__nvrtc, field)},
    GEMMEPI__NVRTC_FUNCTIONS(GEMMEPI__NVRTC_SYMBOL)
#undef GEMMEPI__NVRTC_SYMBOL
};

static const gemmepi__symbol gemmepi__cublaslt_symbols[] = {
#define GEMMEPI__CUBLASLT_SYMBOL(field, symbol, result, parameters) \
    {#symbol, offsetof(gemmepi__cublaslt, field)},
    GEMMEPI__CUBLASLT_FUNCTIONS(GEMMEPI__CUBLASLT_SYMBOL)
#undef GEMMEPI__CUBLASLT_SYMBOL
};

static int gemmepi__driver_version_of(const void *functions) {
    int version = 0;
    if (((const gemmepi__driver *)functions)->driver_get_version(&version) != GEMMEPI__CUDA_SUCCESS)
        return 0;
    return version;
}

static int gemmepi__nvrtc_version_of(const void *functions) {
    int major = 0, minor = 0;
    if (((const gemmepi__nvrtc *)functions)->get_version(&major, &minor) != GEMMEPI__NVRTC_SUCCESS)
        return 0;
    return major * 1000 + minor * 10;
}

static int gemmepi__cublaslt_version_of(const void *functions) {
    return (int)((const gemmepi__cublaslt *)functions)->get_version();
}

#if GEMMEPI__WINDOWS
#define GEMMEPI__FILES_CUDA \
    {                       \
        { "nvcuda.dll", 0 } \
    }
#define GEMMEPI__FILES_NVRTC         \
    {                                \
        {"nvrtc64_130_0.dll", 13}, { \
            "nvrtc64_120_0.dll", 12  \
        }                            \
    }
#define GEMMEPI__FILES_CUBLASLT      \
    {                                \
        {"cublasLt64_13.dll", 13}, { \
            "cublasLt64_12.dll", 12  \
        }                            \
    }
#define GEMMEPI__FILE_BUILTINS "nvrtc-builtins64_%d%d.dll"

static const char *const gemmepi__driver_roots[] = {NULL};
static const char *const gemmepi__driver_folders[] = {NULL};
static const char *const gemmepi__toolkit_roots[] = {"$CUDA_PATH", "$CUDA_HOME", "$CONDA_PREFIX\\Library",
                                                     "$ProgramFiles\\NVIDIA GPU Computing Toolkit\\CUDA\\v*",
                                                     NULL};
static const char *const gemmepi__toolkit_folders[] = {"\\bin\\x64", "\\bin", NULL};
static const char *const gemmepi__python_roots[] = {"$VIRTUAL_ENV\\Lib",
                                                    "$CONDA_PREFIX\\Lib",
                                                    "$(python3)\\Lib",
                                                    "$LOCALAPPDATA\\Programs\\Python\\Python3*\\Lib",
                                                    "$APPDATA\\Python\\Python3*",
                                                    NULL};
static const char *const gemmepi__python_folders[] = {
    "\\site-packages\\nvidia\\cu13\\bin\\x86_64", "\\site-packages\\nvidia\\cu13\\bin",
    "\\site-packages\\nvidia\\cu12\\bin",         "\\site-packages\\nvidia\\cuda_nvrtc\\bin",
    "\\site-packages\\nvidia\\cublas\\bin",       NULL};
#else
#define GEMMEPI__FILES_CUDA    \
    {                          \
        {"libcuda.so.1", 0}, { \
            "libcuda.so", 0    \
        }                      \
    }
#define GEMMEPI__FILES_NVRTC                              \
    {                                                     \
        {"libnvrtc.so.13", 13}, {"libnvrtc.so.12", 12}, { \
            "libnvrtc.so", 0                              \
        }                                                 \
    }
#define GEMMEPI__FILES_CUBLASLT                                 \
    {                                                           \
        {"libcublasLt.so.13", 13}, {"libcublasLt.so.12", 12}, { \
            "libcublasLt.so", 0                                 \
        }                                                       \
    }
#define GEMMEPI__FILE_BUILTINS "libnvrtc-builtins.so.%d.%d"

/* where WSL, NixOS and Kubernetes put the driver */
static const char *const gemmepi__driver_roots[] = {"/usr/lib/wsl/lib", "/run/opengl-driver/lib",
                                                    "/usr/local/nvidia/lib64", NULL};
static const char *const gemmepi__driver_folders[] = {"", NULL};
static const char *const gemmepi__toolkit_roots[] = {
    "$CUDA_PATH", "$CUDA_HOME", "$CONDA_PREFIX", "/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda", NULL};
static const char *const gemmepi__toolkit_folders[] = {"/lib64", "/lib", "/targets/x86_64-linux/lib",
                                                       "/targets/sbsa-linux/lib", NULL};
static const char *const gemmepi__python_roots[] = {
    "$VIRTUAL_ENV/lib/python3*", "$CONDA_PREFIX/lib/python3*",
    "$(python3)/lib/python3*",   "$(python3 resolved)/lib/python3*",
    "$HOME/.local/lib/python3*", "/usr/local/lib/python3*",
    "/usr/lib/python3*",         NULL};
static const char *const gemmepi__python_folders[] = {"/site-packages/nvidia/cu13/lib",
                                                      "/site-packages/nvidia/cu12/lib",
                                                      "/site-packages/nvidia/cuda_nvrtc/lib",
                                                      "/site-packages/nvidia/cublas/lib",
                                                      "/dist-packages/nvidia/cu13/lib",
                                                      "/dist-packages/nvidia/cu12/lib",
                                                      "/dist-packages/nvidia/cuda_nvrtc/lib",
                                                      "/dist-packages/nvidia/cublas/lib",
                                                      NULL};
#endif

#define GEMMEPI__PLACES_DRIVER                                  \
    {                                                           \
        {"", gemmepi__driver_roots, gemmepi__driver_folders}, { \
            NULL, NULL, NULL                                    \
        }                                                       \
    }
#define GEMMEPI__PLACES_TOOLKIT                                                               \
    {                                                                                         \
        {"the toolkit's folders under ", gemmepi__toolkit_roots, gemmepi__toolkit_folders},   \
            {"pip's nvidia wheels under ", gemmepi__python_roots, gemmepi__python_folders}, { \
            NULL, NULL, NULL                                                                  \
        }                                                                                     \
    }

#if defined(__APPLE__)
#define GEMMEPI__ADVICE_CUDA "There is none for macOS: take GEMMEPI_DEVICE_HOST."
#else
#define GEMMEPI__ADVICE_CUDA "It is part of NVIDIA's display driver: install that, 525 or later."
#endif

static const gemmepi__library_row gemmepi__driver_row = {"cuda",
                                                         "the CUDA driver",
                                                         GEMMEPI__ADVICE_CUDA,
                                                         GEMMEPI__FILES_CUDA,
                                                         GEMMEPI__PLACES_DRIVER,
                                                         gemmepi__driver_symbols,
                                                         GEMMEPI__COUNT(gemmepi__driver_symbols),
                                                         gemmepi__driver_version_of,
                                                         1000,
                                                         0,
                                                         0};

static const gemmepi__library_row gemmepi__nvrtc_row = {
    "nvrtc",
    "NVRTC, CUDA's run-time compiler,",
    "Install the CUDA toolkit, or `pip install nvidia-cuda-nvrtc` (nvidia-cuda-nvrtc-cu12 for a driver of CUDA 12), "
    "or NVIDIA's package cuda-nvrtc-13-0, or set library_path of gemmepi_config to its folder.",
    GEMMEPI__FILES_NVRTC,
    GEMMEPI__PLACES_TOOLKIT,
    gemmepi__nvrtc_symbols,
    GEMMEPI__COUNT(gemmepi__nvrtc_symbols),
    gemmepi__nvrtc_version_of,
    1000,
    1,
    1};

static const gemmepi__library_row gemmepi__cublaslt_row = {
    "cublasLt",
    "cuBLASLt",
    "Install the CUDA toolkit, or `pip install nvidia-cublas` (nvidia-cublas-cu12 for a driver of CUDA 12), or NVIDIA's "
    "package libcublas-13-0, or set library_path of gemmepi_config to its folder.",
    GEMMEPI__FILES_CUBLASLT,
    GEMMEPI__PLACES_TOOLKIT,
    gemmepi__cublaslt_symbols,
    GEMMEPI__COUNT(gemmepi__cublaslt_symbols),
    gemmepi__cublaslt_version_of,
    10000,
    1,
    0};

/* >>the system's answers */

static int gemmepi__file_exists(const char *path) {
#if GEMMEPI__WINDOWS
    DWORD attributes = GetFileAttributesA(path);
    return attributes != INVALID_FILE_ATTRIBUTES && !(attributes & FILE_ATTRIBUTE_DIRECTORY);
#else
    return access(path, F_OK) == 0;
#endif
}

/* The three texts in one path; 0 if they do not fit. */
static int gemmepi__join(char *path, const char *first, const char *second, const char *third) {
    gemmepi__text text = gemmepi__text_in(path, GEMMEPI__PATH_SIZE);
    gemmepi__append(&text, "%s%s%s", first, second, third);
    return !gemmepi__text_is_cut(&text);
}

/* Cuts the last component off; 0 if there is none. */
static int gemmepi__to_folder(char *path) {
    size_t length = strlen(path);
    while (length > 0 && !gemmepi__is_slash(path[length - 1]))
        length--;
    if (length == 0)
        return 0;
    path[length - 1] = 0;
    return 1;
}

/* Takes the next item off a list of folders; 0 at its end. Empty items are left out. */
static int gemmepi__next_folder(const char **list, char *folder) {
    while (*list && **list) {
        const char *end = strchr(*list, GEMMEPI__LIST_SEPARATOR);
        size_t length = end ? (size_t)(end - *list) : strlen(*list);
        const char *item = *list;
        *list = end ? end + 1 : NULL;
        if (length > 0 && length < GEMMEPI__PATH_SIZE) {
            memcpy(folder, item, length);
            folder[length] = 0;
            return 1;
        }
    }
    return 0;
}

#define GEMMEPI__ENTRY_SIZE 256

/* Newer versions first: 3.13 before 3.9, 13.0 before 12.9. */
static int gemmepi__comes_before(const char *a, const char *b) {
    return strlen(a) != strlen(b) ? strlen(a) > strlen(b) : strcmp(a, b) > 0;
}

/* Keeps name in best if it comes after previous and before what best holds. */
static void gemmepi__consider_entry(const char *name, const char *prefix, const char *previous, char *best) {
    if (strncmp(name, prefix, strlen(prefix)) != 0 || strlen(name) >= GEMMEPI__ENTRY_SIZE)
        return;
    if (previous[0] && !gemmepi__comes_before(previous, name))
        return;
    if (!best[0] || gemmepi__comes_before(name, best))
        memcpy(best, name, strlen(name) + 1);
}

/* Replaces entry by the one after it among those of the folder that begin with prefix ("" asks for the first); 0 after
   the last. Reads the folder anew each time, so that nothing is to be kept. */
static int gemmepi__next_entry(const char *folder, const char *prefix, char *entry) {
    char best[GEMMEPI__ENTRY_SIZE] = "";
#if GEMMEPI__WINDOWS
    char pattern[GEMMEPI__PATH_SIZE];
    WIN32_FIND_DATAA data;
    HANDLE list;
    if (!gemmepi__join(pattern, folder, "\\", "*"))
        return 0;
    list = FindFirstFileA(pattern, &data);
    if (list == INVALID_HANDLE_VALUE)
        return 0;
    do
        gemmepi__consider_entry(data.cFileName, prefix, entry, best);
    while (FindNextFileA(list, &data));
    FindClose(list);
#else
    struct dirent *item;
    DIR *list = opendir(folder);
    if (!list)
        return 0;
    while ((item = readdir(list)) != NULL)
        gemmepi__consider_entry(item->d_name, prefix, entry, best);
    closedir(list);
#endif
    memcpy(entry, best, sizeof best);
    return entry[0] != 0;
}

#if !GEMMEPI__WINDOWS
/* Whether the path's last component is this. */
static int gemmepi__ends_in_folder(const char *path, const char *name) {
    size_t length = strlen(path), size = strlen(name);
    return length > size && gemmepi__is_slash(path[length - size - 1]) &&
           strcmp(path + length - size, name) == 0;
}
#endif

/* The folder that holds bin, and beside it the lib folder, of the first Python on PATH. Items of PATH that are relative,
   that others can write to, or (but on Windows) that are not called bin, are left out: code is loaded from what is found. */
static int gemmepi__python_prefix(int resolved, char *prefix) {
    char variable[4 * GEMMEPI__PATH_SIZE], folder[GEMMEPI__PATH_SIZE], program[GEMMEPI__PATH_SIZE];
    const char *list = variable;
    if (!gemmepi__environment("PATH", variable, sizeof variable))
        return 0;
    while (gemmepi__next_folder(&list, folder)) {
        if (!gemmepi__is_absolute(folder) || gemmepi__others_can_write(folder))
            continue;
#if GEMMEPI__WINDOWS
        (void)resolved;
        if (!gemmepi__join(program, folder, "\\", "python.exe") || !gemmepi__file_exists(program))
            continue;
        /* a virtual environment keeps it in Scripts, an installation beside Lib */
        memcpy(prefix, folder, sizeof folder);
        if (gemmepi__join(program, folder, "\\", "activate.bat") && gemmepi__file_exists(program))
            gemmepi__to_folder(prefix);
        return 1;
#else
        while (strlen(folder) > 1 && gemmepi__is_slash(folder[strlen(folder) - 1]))
            folder[strlen(folder) - 1] = 0;
        if (!gemmepi__ends_in_folder(folder, "bin") || !gemmepi__join(program, folder, "/", "python3") ||
            !gemmepi__file_exists(program))
            continue;
        if (!resolved)
            memcpy(prefix, program, sizeof program);
        else if (!gemmepi__realpath(program, prefix))
            return 0;
        return gemmepi__to_folder(prefix) && gemmepi__ends_in_folder(prefix, "bin") &&
               gemmepi__to_folder(prefix);
#endif
    }
    return 0;
}

/* Replaces what a root begins with by what it stands for; 0 if that is not set, or not an absolute path. */
static int gemmepi__expand_root(const char *root, char *path) {
    char name[64], value[GEMMEPI__PATH_SIZE];
    size_t length = 0;
    if (root[0] != '$')
        return gemmepi__join(path, root, "", "");
    while (root[1 + length] && !gemmepi__is_slash(root[1 + length]) && length < sizeof name - 1) {
        name[length] = root[1 + length];
        length++;
    }
    name[length] = 0;
    if (name[0] == '(') {
        if (!gemmepi__python_prefix(strcmp(name, "(python3 resolved)") == 0, value))
            return 0;
    } else if (!gemmepi__environment(name, value, sizeof value)) {
        return 0;
    }
    return gemmepi__is_absolute(value) && gemmepi__join(path, value, root + 1 + length, "");
}

/* >>the search */

typedef struct gemmepi__search {
    const gemmepi__loader *loader;
    const gemmepi__library_row *row;
    const char *file;     /* the name that is looked for now                 */
    int from_environment; /* the folders looked into come from a variable    */
    void *functions;      /* the struct to fill                              */
    void *library;        /* the answer                                      */
    int version;
    char path[GEMMEPI__PATH_SIZE];
    char reason[400]; /* why the first that was there was not taken; "" if nothing was there */
} gemmepi__search;

GEMMEPI__PRINTF(2, 3)
static void gemmepi__note_reason(gemmepi__search *search, const char *format, ...) {
    char text[sizeof search->reason];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    gemmepi__say(search->loader->log, GEMMEPI_LOG_DEBUG, "%s not taken: %s", search->row->name, text);
    if (!search->reason[0])
        memcpy(search->reason, text, sizeof text);
}

/* Fills in every function, from the library (NULL: none) and the resolver. Returns how many there are; *missing is
   the first that is not. */
static size_t gemmepi__take_symbols(gemmepi__search *search, void *library, const char **missing) {
    const gemmepi__loader *loader = search->loader;
    const gemmepi__library_row *row = search->row;
    size_t i, count = 0;
    *missing = NULL;
    for (i = 0; i < row->symbol_count; i++) {
        const gemmepi__symbol *symbol = &row->symbols[i];
        void *address = library ? gemmepi__library_symbol(library, symbol->name) : NULL;
        if (loader->resolve)
            address = loader->resolve(loader->resolve_user, row->name, symbol->name, address);
        if (address)
            count++;
        else if (!*missing)
            *missing = symbol->name;
        memcpy((char *)search->functions + symbol->offset, &address, sizeof address);
    }
    return count;
}

/* The version of what the functions belong to is asked for and noted; 0 with the reason if it is not to be used. */
static int gemmepi__check_version(gemmepi__search *search, const char *from) {
    const gemmepi__library_row *row = search->row;
    int newest = row->follows_driver ? search->loader->newest_major : 0, major, minor;
    if (!row->version)
        return 1;
    search->version = row->version(search->functions);
    major = search->version / row->version_unit;
    minor = search->version % row->version_unit / (row->version_unit / 100);
    if (search->version <= 0)
        gemmepi__note_reason(search, "%s does not tell its version", from);
    else if (major < GEMMEPI__OLDEST_CUDA_MAJOR)
        gemmepi__note_reason(search, "%s has version %d.%d, and the oldest that can be used is %d.0", from,
                             major, minor, GEMMEPI__OLDEST_CUDA_MAJOR);
    else if (newest && major > newest)
        gemmepi__note_reason(search, "%s has version %d.%d, and this driver takes CUDA %d at most", from,
                             major, minor, newest);
    else
        return 1;
    return 0;
}

/* path: PATH_SIZE. Of what links stand for; 0 where it is not there. */
static int gemmepi__real_path(const char *link, char *path) {
#if GEMMEPI__WINDOWS
    (void)link, (void)path;
    return 0;
#else
    return gemmepi__realpath(link, path) != NULL;
#endif
}

/* Opens the builtins of the NVRTC of a path: beside it, beside what a link of that name stands for, or by the system's search. NULL with
   the reason. NVRTC opens them by their plain name when it compiles, which fails where their folder is not on the system's search
   path; once they are in the process, that name finds them. */
static void *gemmepi__open_builtins(const char *nvrtc, int version, char *reason, size_t size) {
    char name[64], folder[GEMMEPI__PATH_SIZE], path[GEMMEPI__PATH_SIZE];
    void *library = NULL;
    int real;
    snprintf(name, sizeof name, GEMMEPI__FILE_BUILTINS, version / 1000, version % 1000 / 10);
    for (real = 0; real < 2 && !library; real++) {
        if (!(real ? gemmepi__real_path(nvrtc, folder) : gemmepi__join(folder, nvrtc, "", "")))
            continue;
        if (gemmepi__to_folder(folder) && gemmepi__join(path, folder, GEMMEPI__SLASH, name) &&
            gemmepi__file_exists(path))
            library = gemmepi__library_open(path, reason, size);
    }
    return library ? library : gemmepi__library_open(name, reason, size);
}

static int gemmepi__check_builtins(gemmepi__search *search) {
    char reason[200];
    void *builtins;
    if (!search->row->has_builtins)
        return 1;
    builtins = gemmepi__open_builtins(search->path, search->version, reason, sizeof reason);
    if (!builtins)
        gemmepi__note_reason(search, "%.150s is without its builtins: %s", search->path, reason);
    gemmepi__library_close(builtins);
    return builtins != NULL;
}

/* Opens a file by a path or a plain name. 1 if it is what is wanted. */
static int gemmepi__try_library(gemmepi__search *search, const char *name, int has_folder) {
    const char *missing;
    char text[300];
    void *library = gemmepi__library_open(name, text, sizeof text);
    if (!library) {
        if (has_folder) /* then it was there, and something else is wrong */
            gemmepi__note_reason(search, "%s", text);
        return 0;
    }
    if (has_folder ||
        !gemmepi__library_path(library, search->row->symbols[0].name, search->path, sizeof search->path))
        gemmepi__join(search->path, name, "", "");
    gemmepi__take_symbols(search, library, &missing);
    if (missing)
        gemmepi__note_reason(search, "%.250s has no function %s", search->path, missing);
    else if (gemmepi__check_version(search, search->path) && gemmepi__check_builtins(search)) {
        search->library = library;
        return 1;
    }
    gemmepi__library_close(library);
    return 0;
}

static int gemmepi__try_folder(gemmepi__search *search, const char *folder) {
    char path[GEMMEPI__PATH_SIZE];
    if (!gemmepi__join(path, folder, GEMMEPI__SLASH, search->file) || !gemmepi__file_exists(path))
        return 0;
    if (search->from_environment && (gemmepi__others_can_write(folder) || gemmepi__others_can_write(path))) {
        gemmepi__note_reason(search, "%.250s is in a folder that others can write to, or replace", path);
        return 0;
    }
    return gemmepi__try_library(search, path, 1);
}

/* Tries every folder that done followed by rest stands for; only rest may have a *. */
static int gemmepi__try_pattern(gemmepi__search *search, const char *done, const char *rest) {
    const char *star = strchr(rest, '*');
    char folder[GEMMEPI__PATH_SIZE], next[GEMMEPI__PATH_SIZE];
    char prefix[GEMMEPI__ENTRY_SIZE], entry[GEMMEPI__ENTRY_SIZE] = "";
    const char *last;
    if (!gemmepi__join(folder, done, rest, ""))
        return 0;
    if (!star)
        return gemmepi__try_folder(search, folder);
    folder[strlen(done) + (size_t)(star - rest)] = 0;
    last = strrchr(folder, GEMMEPI__SLASH[0]);
    if (!last || strlen(last + 1) >= sizeof prefix)
        return 0;
    memcpy(prefix, last + 1, strlen(last + 1) + 1);
    gemmepi__to_folder(folder);
    while (gemmepi__next_entry(folder, prefix, entry))
        if (gemmepi__join(next, folder, GEMMEPI__SLASH, entry) &&
            gemmepi__try_pattern(search, next, star + 1))
            return 1;
    return 0;
}

static int gemmepi__try_places(gemmepi__search *search) {
    const gemmepi__places *places;
    size_t r, f;
    for (places = search->row->places; places->what; places++)
        for (r = 0; places->roots[r]; r++) {
            char root[GEMMEPI__PATH_SIZE], pattern[GEMMEPI__PATH_SIZE];
            if (!gemmepi__expand_root(places->roots[r], root))
                continue;
            search->from_environment = places->roots[r][0] == '$';
            for (f = 0; places->folders[f]; f++)
                if (gemmepi__join(pattern, root, places->folders[f], "") &&
                    gemmepi__try_pattern(search, "", pattern))
                    return 1;
        }
    return 0;
}

static int gemmepi__is_wanted(const gemmepi__search *search, const gemmepi__library_file *file) {
    int newest = search->row->follows_driver ? search->loader->newest_major : 0;
    return newest == 0 || file->major <= newest;
}

/* The folders of library_path, each with every name before the next folder; then name by name everywhere else. */
static int gemmepi__find_library(gemmepi__search *search) {
    const char *list = search->loader->library_path;
    const gemmepi__library_file *files = search->row->files;
    char folder[GEMMEPI__PATH_SIZE];
    size_t i;
    while (gemmepi__next_folder(&list, folder))
        for (i = 0; i < GEMMEPI__COUNT(search->row->files) && files[i].name; i++) {
            search->file = files[i].name;
            if (gemmepi__is_wanted(search, &files[i]) && gemmepi__try_folder(search, folder))
                return 1;
        }
    for (i = 0; i < GEMMEPI__COUNT(search->row->files) && files[i].name && !search->loader->library_path_only;
         i++) {
        search->file = files[i].name;
        if (gemmepi__is_wanted(search, &files[i]) &&
            (gemmepi__try_library(search, search->file, 0) || gemmepi__try_places(search)))
            return 1;
    }
    return 0;
}

/* 1 if the resolver has a whole library of its own, as tests do. */
static int gemmepi__resolve_without_library(gemmepi__search *search) {
    const char *missing;
    if (!search->loader->resolve)
        return 0;
    if (gemmepi__take_symbols(search, NULL, &missing) > 0 && missing)
        gemmepi__note_reason(search, "the symbol resolver has no function %s", missing);
    if (missing || !gemmepi__check_version(search, "what the symbol resolver gives"))
        return 0;
    gemmepi__join(search->path, "the symbol resolver", "", "");
    return 1;
}

/* What was looked for, and where; what helps stands first, because a very long sentence loses its end. */
static gemmepi_status gemmepi__library_not_found(const gemmepi__search *search) {
    const gemmepi__library_row *row = search->row;
    const gemmepi__places *places;
    char data[GEMMEPI__ERROR_TEXT_SIZE], path[GEMMEPI__PATH_SIZE];
    gemmepi__text text = gemmepi__text_in(data, sizeof data);
    size_t i;
    if (search->reason[0])
        gemmepi__append(&text, "%s cannot be used: %s. %s Tried:", row->title, search->reason, row->advice);
    else
        gemmepi__append(&text, "%s was not found. %s Tried:", row->title, row->advice);
    for (i = 0; i < GEMMEPI__COUNT(row->files) && row->files[i].name; i++)
        if (gemmepi__is_wanted(search, &row->files[i]))
            gemmepi__append(&text, " %s", row->files[i].name);
    if (search->loader->library_path && search->loader->library_path[0])
        gemmepi__append(&text, ", in library_path (%.200s)", search->loader->library_path);
    else
        gemmepi__append(&text, ", in library_path (not set)");
    if (search->loader->library_path_only) {
        gemmepi__append(&text, " alone (library_path_only)");
        return gemmepi__fail(GEMMEPI_LIBRARY_NOT_FOUND, "%s", data);
    }
    gemmepi__append(&text, ", the system's library search");
    for (places = row->places; places->what; places++)
        for (i = 0; places->roots[i]; i++)
            gemmepi__append(&text, ", %s%s%s", i ? "" : places->what, places->roots[i],
                            gemmepi__expand_root(places->roots[i], path) ? "" : " (not set)");
    return gemmepi__fail(GEMMEPI_LIBRARY_NOT_FOUND, "%s", data);
}

/* Fills the struct of functions, sets *library (NULL: the resolver has it all) and *version (0: not asked). file, if
   not NULL, has room for GEMMEPI__PATH_SIZE bytes and gets the file's path. Unless that succeeds, the functions have
   no meaning. */
static gemmepi_status gemmepi__load_library(const gemmepi__loader *loader, const gemmepi__library_row *row,
                                            void *functions, void **library, int *version, char *file) {
    gemmepi__search search;
    memset(&search, 0, sizeof search);
    search.loader = loader;
    search.row = row;
    search.functions = functions;
    if (!gemmepi__find_library(&search) && !gemmepi__resolve_without_library(&search))
        return gemmepi__library_not_found(&search);
    *library = search.library;
    *version = search.version;
    if (file)
        memcpy(file, search.path, sizeof search.path);
    gemmepi__say(loader->log, GEMMEPI_LOG_INFO, "%s %d.%d from %s", row->name,
                 search.version / row->version_unit,
                 search.version % row->version_unit / (row->version_unit / 100), search.path);
    return GEMMEPI_OK;
}

/* >>the three libraries */

/* Each takes a struct of any content. On failure it is all zero, the status LIBRARY_NOT_FOUND. Not for two threads on
   the same struct at once. */
static gemmepi_status gemmepi__load_driver(const gemmepi__loader *loader, gemmepi__driver *driver) {
    gemmepi_status status;
    memset(driver, 0, sizeof *driver);
    status =
        gemmepi__load_library(loader, &gemmepi__driver_row, driver, &driver->library, &driver->version, NULL);
    if (status != GEMMEPI_OK)
        memset(driver, 0, sizeof *driver);
    return status;
}

static void gemmepi__unload_driver(gemmepi__driver *driver) {
    gemmepi__library_close(driver->library);
    memset(driver, 0, sizeof *driver);
}

static gemmepi_status gemmepi__load_nvrtc(const gemmepi__loader *loader, gemmepi__nvrtc *nvrtc) {
    char file[GEMMEPI__PATH_SIZE], reason[200];
    gemmepi_status status;
    memset(nvrtc, 0, sizeof *nvrtc);
    status =
        gemmepi__load_library(loader, &gemmepi__nvrtc_row, nvrtc, &nvrtc->library, &nvrtc->version, file);
    if (status != GEMMEPI_OK)
        memset(nvrtc, 0, sizeof *nvrtc);
    else if (nvrtc->library)
        nvrtc->builtins = gemmepi__open_builtins(file, nvrtc->version, reason, sizeof reason);
    return status;
}

static void gemmepi__unload_nvrtc(gemmepi__nvrtc *nvrtc) {
    gemmepi__library_close(nvrtc->library);
    gemmepi__library_close(nvrtc->builtins);
    memset(nvrtc, 0, sizeof *nvrtc);
}

static gemmepi_status gemmepi__load_cublaslt(const gemmepi__loader *loader, gemmepi__cublaslt *lt) {
    gemmepi_status status;
    memset(lt, 0, sizeof *lt);
    status = gemmepi__load_library(loader, &gemmepi__cublaslt_row, lt, &lt->library, &lt->version, NULL);
    if (status != GEMMEPI_OK)
        memset(lt, 0, sizeof *lt);
    return status;
}

static void gemmepi__unload_cublaslt(gemmepi__cublaslt *lt) {
    gemmepi__library_close(lt->library);
    memset(lt, 0, sizeof *lt);
}

#endif
