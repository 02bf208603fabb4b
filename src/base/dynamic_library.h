/* Libraries opened while the program runs. */
#ifndef GEMMEPI_BASE_DYNAMIC_LIBRARY_H
#define GEMMEPI_BASE_DYNAMIC_LIBRARY_H

#include "platform.h"

#if !GPI__WINDOWS
#include <dlfcn.h>
#endif

#if GPI__WINDOWS
#define GPI__SLASH          "\\"
#define GPI__LIST_SEPARATOR ';'
#else
#define GPI__SLASH          "/"
#define GPI__LIST_SEPARATOR ':'

#if GPI__HEADERS_HIDE
typedef struct gpi__dl_info { /* Dl_info */
    const char *file;
    void *base;
    const char *symbol;
    void *address;
} gpi__dl_info;

#define GPI__DL_FILE(info) ((info).file)
extern int gpi__dladdr(const void *address, gpi__dl_info *info) GPI__SYSTEM_NAME("dladdr");
#else
typedef Dl_info gpi__dl_info;
#define GPI__DL_FILE(info) ((info).dli_fname)
#define gpi__dladdr        dladdr
#endif
#endif

/* Opens a library by a path with a folder in it, or by its plain name where the system looks for such; a plain name
   also finds a library that the process has already. NULL if that fails: then reason (of size bytes) says why. */
static void *gpi__library_open(const char *name, char *reason, size_t size) {
#if GPI__WINDOWS
    /* a full path lets the library find its neighbours; a plain name is not sought in the current folder, where anyone
       may have put it */
    void *library = (void *)LoadLibraryExA(name, NULL,
                                           gpi__is_absolute(name) ? LOAD_WITH_ALTERED_SEARCH_PATH
                                                                  : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    if (!library)
        snprintf(reason, size, "%s: Windows error %lu", name, GetLastError());
#else
    /* local: the program may have its own version of the library, whose symbols must stay apart. Never unmapped:
       CUDA's libraries leak their own memory then, and some leave threads behind */
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *text = dlerror();
        snprintf(reason, size, "%s", text ? text : name);
    }
#endif
    return library;
}

/* Two opens need two closes. NULL is accepted. */
static void gpi__library_close(void *library) {
    if (!library)
        return;
#if GPI__WINDOWS
    FreeLibrary((HMODULE)library);
#else
    dlclose(library);
#endif
}

/* The address of an exported symbol, or NULL. */
static void *gpi__library_symbol(void *library, const char *symbol) {
#if GPI__WINDOWS
    FARPROC function = GetProcAddress((HMODULE)library, symbol);
    void *address;
    memcpy(&address, &function, sizeof address); /* ISO C has no conversion from functions to objects */
    return address;
#else
    return dlsym(library, symbol);
#endif
}

/* The file that the library was loaded from, asked for by one of its symbols. "" and 0 if that is unknown. */
static int gpi__library_path(void *library, const char *symbol, char *path, size_t size) {
    path[0] = 0;
#if GPI__WINDOWS
    {
        DWORD length = GetModuleFileNameA((HMODULE)library, path, (DWORD)size);
        (void)symbol;
        if (length >= size)
            path[0] = 0;
    }
#else
    {
        void *address = dlsym(library, symbol);
        gpi__dl_info info;
        const char *file = address && gpi__dladdr(address, &info) ? GPI__DL_FILE(info) : NULL;
        if (file && strlen(file) < size)
            memcpy(path, file, strlen(file) + 1);
    }
#endif
    return path[0] != 0;
}

#endif
