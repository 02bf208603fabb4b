/* Variables of the environment, and whether a folder that one of them names may be trusted with code. */
#ifndef GEMMEPI_BASE_ENVIRONMENT_H
#define GEMMEPI_BASE_ENVIRONMENT_H

#include "platform.h"

#if GPI__WINDOWS

static int gpi__environment(const char *name, char *value, size_t size) {
    DWORD length = GetEnvironmentVariableA(name, value, (DWORD)size);
    return length > 0 && length < size;
}

/* Folders are private by their access lists, which are not examined. */
static int gpi__others_can_write(const char *folder) {
    (void)folder;
    return 0;
}

#else

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#if GPI__HEADERS_HIDE
extern char *gpi__realpath(const char *path, char *resolved) GPI__SYSTEM_NAME("realpath");
#else
#define gpi__realpath realpath
#endif

/* NULL if the variable is not set, or if the program runs with more rights than its user: code is loaded from where it
   points to. */
#if defined(__linux__)
extern char *gpi__secure_getenv(const char *name) GPI__SYSTEM_NAME("secure_getenv");
#else
#if GPI__HEADERS_HIDE
extern int gpi__issetugid(void) GPI__SYSTEM_NAME("issetugid");
#else
#define gpi__issetugid issetugid
#endif
static char *gpi__secure_getenv(const char *name) {
    return gpi__issetugid() ? NULL : getenv(name);
}
#endif

/* 0 if the variable may not be looked at, is empty or too long. */
static int gpi__environment(const char *name, char *value, size_t size) {
    const char *found = gpi__secure_getenv(name);
    if (!found || !found[0] || strlen(found) >= size)
        return 0;
    memcpy(value, found, strlen(found) + 1);
    return 1;
}

/* 1 if others than a folder's owner and root may put files there. A group of the owner's number is the user's own, of
   which nobody else is a member: so systems of one group for each user make folders. */
static int gpi__mode_lets_others_write(const struct stat *status) {
    if (status->st_mode & 0002)
        return 1;
    return (status->st_mode & 0020) && (unsigned long)status->st_gid != (unsigned long)status->st_uid;
}

/* 1 if somebody else than the owner of the folder, or of one that it lies in, can put files there or exchange it. In a
   folder like /tmp others cannot exchange what this user or root has made. Symbolic links are followed first. 0 if it
   does not exist. */
static int gpi__others_can_write(const char *folder) {
    char path[GPI__PATH_SIZE];
    struct stat status;
    int is_last = 1, is_mine;
    size_t length;
    if (!gpi__realpath(folder, path) || stat(path, &status) != 0)
        return 0;
    for (;;) {
        is_mine = status.st_uid == 0 || status.st_uid == geteuid();
        if (is_last && gpi__mode_lets_others_write(&status))
            return 1;
        is_last = 0;
        length = strlen(path);
        if (length <= 1)
            return 0;
        while (length > 1 && path[length - 1] != '/')
            length--;
        path[length > 1 ? length - 1 : 1] = 0;
        if (stat(path, &status) != 0)
            return 1;
        /* sticky: only the owner of an entry, or of the folder, may rename it */
        if (gpi__mode_lets_others_write(&status) && !((status.st_mode & 01000) && is_mine))
            return 1;
    }
}

#endif

#endif
