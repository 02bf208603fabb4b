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
#include "../base/log.h"
#include "folders.h"
#include "libraries.h"

typedef struct gpi__loader {
    const gpi__log *log;      /* not NULL                                                             */
    const char *library_path; /* as in gemmepi_config                                                 */
    int library_path_only;    /* as in gemmepi_config                                                 */
    gemmepi_symbol_resolver
        resolve; /* NULL: what the libraries export                                      */
    void *resolve_user;
    int newest_major; /* of CUDA, for NVRTC and cuBLASLt: the driver's own (13.0 gives 13), since older drivers
                         do not run what newer toolkits make; 0: any                                         */
} gpi__loader;

typedef struct gpi__search {
    const gpi__loader *loader;
    const gpi__library_row *row;
    const char *file;     /* the name that is looked for now                 */
    int from_environment; /* the folders looked into come from a variable    */
    void *functions;      /* the struct to fill                              */
    void *library;        /* the answer                                      */
    int version;
    char path[GPI__PATH_SIZE];
    char reason[400]; /* why the first that was there was not taken; "" if nothing was there */
} gpi__search;

GPI__PRINTF(2, 3)
static void gpi__note_reason(gpi__search *search, const char *format, ...) {
    char text[sizeof search->reason];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    gpi__say(search->loader->log, GEMMEPI_LOG_DEBUG, "%s not used: %s", search->row->name, text);
    if (!search->reason[0])
        memcpy(search->reason, text, sizeof text);
}

/* Fills in every function, from the library (NULL: none) and the resolver. Returns how many there are; *missing is
   the first that is not. */
static size_t gpi__load_symbols(gpi__search *search, void *library, const char **missing) {
    const gpi__loader *loader = search->loader;
    const gpi__library_row *row = search->row;
    size_t i, count = 0;
    *missing = NULL;
    for (i = 0; i < row->symbol_count; i++) {
        const gpi__symbol *symbol = &row->symbols[i];
        void *address = library ? gpi__library_symbol(library, symbol->name) : NULL;
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
static int gpi__check_version(gpi__search *search, const char *from) {
    const gpi__library_row *row = search->row;
    int newest = row->follows_driver ? search->loader->newest_major : 0, major, minor;
    if (!row->version)
        return 1;
    search->version = row->version(search->functions);
    major = search->version / row->version_unit;
    minor = search->version % row->version_unit / (row->version_unit / 100);
    if (search->version <= 0)
        gpi__note_reason(search, "%s does not tell its version", from);
    else if (major < GPI__OLDEST_CUDA_MAJOR)
        gpi__note_reason(search, "%s has version %d.%d, and the oldest that can be used is %d.0", from, major,
                         minor, GPI__OLDEST_CUDA_MAJOR);
    else if (newest && major > newest)
        gpi__note_reason(search, "%s has version %d.%d, and this driver accepts CUDA %d at most", from, major,
                         minor, newest);
    else
        return 1;
    return 0;
}

/* path: PATH_SIZE. Of what links stand for; 0 where it is not there. */
static int gpi__real_path(const char *link, char *path) {
#if GPI__WINDOWS
    (void)link, (void)path;
    return 0;
#else
    return gpi__realpath(link, path) != NULL;
#endif
}

/* Opens the builtins of the NVRTC of a path: beside it, beside what a link of that name stands for, or by the system's search. NULL with
   the reason. NVRTC opens them by their plain name when it compiles, which fails where their folder is not on the system's search
   path; once they are in the process, that name finds them. */
static void *gpi__open_builtins(const char *nvrtc, int version, char *reason, size_t size) {
    char name[64], folder[GPI__PATH_SIZE], path[GPI__PATH_SIZE];
    void *library = NULL;
    int real;
    snprintf(name, sizeof name, GPI__FILE_BUILTINS, version / 1000, version % 1000 / 10);
    for (real = 0; real < 2 && !library; real++) {
        if (!(real ? gpi__real_path(nvrtc, folder) : gpi__join(folder, nvrtc, "", "")))
            continue;
        if (gpi__to_folder(folder) && gpi__join(path, folder, GPI__SLASH, name) && gpi__file_exists(path))
            library = gpi__library_open(path, reason, size);
    }
    return library ? library : gpi__library_open(name, reason, size);
}

static int gpi__check_builtins(gpi__search *search) {
    char reason[200];
    void *builtins;
    if (!search->row->has_builtins)
        return 1;
    builtins = gpi__open_builtins(search->path, search->version, reason, sizeof reason);
    if (!builtins)
        gpi__note_reason(search, "%.150s is without its builtins: %s", search->path, reason);
    gpi__library_close(builtins);
    return builtins != NULL;
}

/* Opens a file by a path or a plain name. 1 if it is what is wanted. */
static int gpi__try_library(gpi__search *search, const char *name, int has_folder) {
    const char *missing;
    char text[300];
    void *library = gpi__library_open(name, text, sizeof text);
    if (!library) {
        if (has_folder) /* then it was there, and something else is wrong */
            gpi__note_reason(search, "%s", text);
        return 0;
    }
    if (has_folder ||
        !gpi__library_path(library, search->row->symbols[0].name, search->path, sizeof search->path))
        gpi__join(search->path, name, "", "");
    gpi__load_symbols(search, library, &missing);
    if (missing)
        gpi__note_reason(search, "%.250s has no function %s", search->path, missing);
    else if (gpi__check_version(search, search->path) && gpi__check_builtins(search)) {
        search->library = library;
        return 1;
    }
    gpi__library_close(library);
    return 0;
}

static int gpi__try_folder(gpi__search *search, const char *folder) {
    char path[GPI__PATH_SIZE];
    if (!gpi__join(path, folder, GPI__SLASH, search->file) || !gpi__file_exists(path))
        return 0;
    if (search->from_environment && (gpi__others_can_write(folder) || gpi__others_can_write(path))) {
        gpi__note_reason(search, "%.250s is in a folder that others can write to, or replace", path);
        return 0;
    }
    return gpi__try_library(search, path, 1);
}

/* Tries every folder that done followed by rest stands for; only rest may have a *. */
static int gpi__try_pattern(gpi__search *search, const char *done, const char *rest) {
    const char *star = strchr(rest, '*');
    char folder[GPI__PATH_SIZE], next[GPI__PATH_SIZE];
    char prefix[GPI__ENTRY_SIZE], entry[GPI__ENTRY_SIZE] = "";
    const char *last;
    if (!gpi__join(folder, done, rest, ""))
        return 0;
    if (!star)
        return gpi__try_folder(search, folder);
    folder[strlen(done) + (size_t)(star - rest)] = 0;
    last = strrchr(folder, GPI__SLASH[0]);
    if (!last || strlen(last + 1) >= sizeof prefix)
        return 0;
    memcpy(prefix, last + 1, strlen(last + 1) + 1);
    gpi__to_folder(folder);
    while (gpi__next_entry(folder, prefix, entry))
        if (gpi__join(next, folder, GPI__SLASH, entry) && gpi__try_pattern(search, next, star + 1))
            return 1;
    return 0;
}

static int gpi__try_places(gpi__search *search) {
    const gpi__places *places;
    size_t r, f;
    for (places = search->row->places; places->what; places++)
        for (r = 0; places->roots[r]; r++) {
            char root[GPI__PATH_SIZE], pattern[GPI__PATH_SIZE];
            if (!gpi__expand_root(places->roots[r], root))
                continue;
            search->from_environment = places->roots[r][0] == '$';
            for (f = 0; places->folders[f]; f++)
                if (gpi__join(pattern, root, places->folders[f], "") && gpi__try_pattern(search, "", pattern))
                    return 1;
        }
    return 0;
}

static int gpi__is_wanted(const gpi__search *search, const gpi__library_file *file) {
    int newest = search->row->follows_driver ? search->loader->newest_major : 0;
    return newest == 0 || file->major <= newest;
}

/* The folders of library_path, each with every name before the next folder; then name by name everywhere else. */
static int gpi__find_library(gpi__search *search) {
    const char *list = search->loader->library_path;
    const gpi__library_file *files = search->row->files;
    char folder[GPI__PATH_SIZE];
    size_t i;
    while (gpi__next_folder(&list, folder))
        for (i = 0; i < GPI__COUNT(search->row->files) && files[i].name; i++) {
            search->file = files[i].name;
            if (gpi__is_wanted(search, &files[i]) && gpi__try_folder(search, folder))
                return 1;
        }
    for (i = 0; i < GPI__COUNT(search->row->files) && files[i].name && !search->loader->library_path_only;
         i++) {
        search->file = files[i].name;
        if (gpi__is_wanted(search, &files[i]) &&
            (gpi__try_library(search, search->file, 0) || gpi__try_places(search)))
            return 1;
    }
    return 0;
}

/* 1 if the resolver has a whole library of its own, as tests do. */
static int gpi__resolve_without_library(gpi__search *search) {
    const char *missing;
    if (!search->loader->resolve)
        return 0;
    if (gpi__load_symbols(search, NULL, &missing) > 0 && missing)
        gpi__note_reason(search, "the symbol resolver has no function %s", missing);
    if (missing || !gpi__check_version(search, "what the symbol resolver gives"))
        return 0;
    gpi__join(search->path, "the symbol resolver", "", "");
    return 1;
}

/* What was looked for, and where; what helps stands first, because a very long sentence loses its end. */
static gemmepi_status gpi__library_not_found(const gpi__search *search) {
    const gpi__library_row *row = search->row;
    const gpi__places *places;
    char data[GPI__ERROR_TEXT_SIZE], path[GPI__PATH_SIZE];
    gpi__text text = gpi__text_in(data, sizeof data);
    size_t i;
    if (search->reason[0])
        gpi__append(&text, "%s cannot be used: %s. %s Tried:", row->title, search->reason, row->advice);
    else
        gpi__append(&text, "%s was not found. %s Tried:", row->title, row->advice);
    for (i = 0; i < GPI__COUNT(row->files) && row->files[i].name; i++)
        if (gpi__is_wanted(search, &row->files[i]))
            gpi__append(&text, " %s", row->files[i].name);
    if (search->loader->library_path && search->loader->library_path[0])
        gpi__append(&text, ", in library_path (%.200s)", search->loader->library_path);
    else
        gpi__append(&text, ", in library_path (not set)");
    if (search->loader->library_path_only) {
        gpi__append(&text, " and nowhere else (library_path_only)");
        return gpi__fail(GEMMEPI_LIBRARY_NOT_FOUND, "%s", data);
    }
    gpi__append(&text, ", the system's library search");
    for (places = row->places; places->what; places++)
        for (i = 0; places->roots[i]; i++)
            gpi__append(&text, ", %s%s%s", i ? "" : places->what, places->roots[i],
                        gpi__expand_root(places->roots[i], path) ? "" : " (not set)");
    return gpi__fail(GEMMEPI_LIBRARY_NOT_FOUND, "%s", data);
}

/* Fills the struct of functions, sets *library (NULL: the resolver has it all) and *version (0: not asked). file, if
   not NULL, has room for GPI__PATH_SIZE bytes and gets the file's path. Unless that succeeds, all of the struct is 0. */
static gemmepi_status gpi__load_library(const gpi__loader *loader, const gpi__library_row *row,
                                        void *functions, void **library, int *version, char *file) {
    gpi__search search;
    memset(&search, 0, sizeof search);
    memset(functions, 0, row->size);
    search.loader = loader;
    search.row = row;
    search.functions = functions;
    if (!gpi__find_library(&search) && !gpi__resolve_without_library(&search)) {
        memset(functions, 0, row->size);
        return gpi__library_not_found(&search);
    }
    *library = search.library;
    *version = search.version;
    if (file)
        memcpy(file, search.path, sizeof search.path);
    gpi__say(loader->log, GEMMEPI_LOG_INFO, "%s %d.%d from %s", row->name, search.version / row->version_unit,
             search.version % row->version_unit / (row->version_unit / 100), search.path);
    return GEMMEPI_OK;
}

/* >>the three libraries */

/* Each takes a struct of any content. On failure it is all zero, the status LIBRARY_NOT_FOUND. Not for two threads on
   the same struct at once. */
static gemmepi_status gpi__load_driver(const gpi__loader *loader, gpi__driver *driver) {
    return gpi__load_library(loader, &gpi__driver_row, driver, &driver->library, &driver->version, NULL);
}

static void gpi__unload_driver(gpi__driver *driver) {
    gpi__library_close(driver->library);
    memset(driver, 0, sizeof *driver);
}

static gemmepi_status gpi__load_nvrtc(const gpi__loader *loader, gpi__nvrtc *nvrtc) {
    char file[GPI__PATH_SIZE], reason[200];
    gemmepi_status status =
        gpi__load_library(loader, &gpi__nvrtc_row, nvrtc, &nvrtc->library, &nvrtc->version, file);
    if (!status && nvrtc->library)
        nvrtc->builtins = gpi__open_builtins(file, nvrtc->version, reason, sizeof reason);
    return status;
}

static void gpi__unload_nvrtc(gpi__nvrtc *nvrtc) {
    gpi__library_close(nvrtc->library);
    gpi__library_close(nvrtc->builtins);
    memset(nvrtc, 0, sizeof *nvrtc);
}

static gemmepi_status gpi__load_cublaslt(const gpi__loader *loader, gpi__cublaslt *lt) {
    return gpi__load_library(loader, &gpi__cublaslt_row, lt, &lt->library, &lt->version, NULL);
}

static void gpi__unload_cublaslt(gpi__cublaslt *lt) {
    gpi__library_close(lt->library);
    memset(lt, 0, sizeof *lt);
}

#endif
