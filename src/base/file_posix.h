/* The functions of files and folders that POSIX has. */
#ifndef GEMMEPI_BASE_FILE_POSIX_H
#define GEMMEPI_BASE_FILE_POSIX_H

#include "file_types.h"

#if !GPI__WINDOWS

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define GPI__FILE_NO_MEMORY ENOMEM
#define GPI__FILE_TOO_LARGE EFBIG
#define GPI__FILE_LONG_NAME ENAMETOOLONG

/* What strict C99 hides. glibc has the numbers under names of its own in any mode; the last resort is Linux's own
   numbers, which arm and powerpc keep apart from the rest. */
#if defined(O_NOFOLLOW) && defined(O_DIRECTORY) && defined(O_CLOEXEC)
#define GPI__O_NOFOLLOW  O_NOFOLLOW
#define GPI__O_DIRECTORY O_DIRECTORY
#define GPI__O_CLOEXEC   O_CLOEXEC
#elif defined(__O_NOFOLLOW) && defined(__O_DIRECTORY) && defined(__O_CLOEXEC)
#define GPI__O_NOFOLLOW  __O_NOFOLLOW
#define GPI__O_DIRECTORY __O_DIRECTORY
#define GPI__O_CLOEXEC   __O_CLOEXEC
#elif defined(__linux__) && (defined(__arm__) || defined(__aarch64__) || defined(__powerpc__))
#define GPI__O_NOFOLLOW  0100000
#define GPI__O_DIRECTORY 040000
#define GPI__O_CLOEXEC   02000000
#elif defined(__linux__) && (defined(__i386__) || defined(__x86_64__) || defined(__riscv))
#define GPI__O_NOFOLLOW  0400000
#define GPI__O_DIRECTORY 0200000
#define GPI__O_CLOEXEC   02000000
#else
#error "gemmepi: the numbers of O_NOFOLLOW, O_DIRECTORY and O_CLOEXEC are not known for this system"
#endif

/* These are functions in every glibc since 2.6; fstatat and lstat are not before 2.33, so they are done without. */
#if GPI__HEADERS_HIDE
extern int gpi__openat(int folder, const char *name, int flags, ...) GPI__SYSTEM_NAME("openat");
extern int gpi__renameat(int from_folder, const char *from, int to_folder, const char *to)
    GPI__SYSTEM_NAME("renameat");
extern int gpi__unlinkat(int folder, const char *name, int flags) GPI__SYSTEM_NAME("unlinkat");
extern int gpi__utimensat(int folder, const char *name, const void *times, int flags)
    GPI__SYSTEM_NAME("utimensat");
extern DIR *gpi__fdopendir(int descriptor) GPI__SYSTEM_NAME("fdopendir");
#else
#define gpi__openat    openat
#define gpi__renameat  renameat
#define gpi__unlinkat  unlinkat
#define gpi__utimensat utimensat
#define gpi__fdopendir fdopendir
#endif

static int gpi__file_is_missing(int code) {
    return code == ENOENT;
}

static int gpi__file_exists_already(int code) {
    return code == EEXIST;
}

static void gpi__file_error(gpi__text *text, int code) {
    gpi__append(text, "%s", code == GPI__FILE_NOT_REGULAR ? "it is no regular file" : strerror(code));
}

static int gpi__current_folder(char *path, size_t size) {
    return getcwd(path, size) ? 0 : errno;
}

static int gpi__make_one_folder(const char *path) {
    return mkdir(path, 0700) == 0 ? 0 : errno;
}

static int gpi__folder_open(gpi__folder *folder, const char *path) {
    folder->path = path;
    folder->descriptor = open(path, O_RDONLY | GPI__O_DIRECTORY | GPI__O_CLOEXEC);
    return folder->descriptor < 0 ? errno : 0;
}

static void gpi__folder_close(gpi__folder *folder) {
    close(folder->descriptor);
    folder->path = NULL;
    folder->descriptor = -1;
}

/* 1 if this user owns the folder and nobody else can write to it, else 0 with the reason and the mend appended. It
   is the opened folder that counts, not the path: a symbolic link may lead here, and whoever can change the link
   can only make it lead to another private folder of this user. */
static int gpi__folder_is_private(const gpi__folder *folder, gpi__text *why) {
    struct stat status;
    if (fstat(folder->descriptor, &status) != 0) {
        gpi__file_error(why, errno);
    } else if (status.st_uid != geteuid()) {
        gpi__append(why,
                    "user %lu owns it, and this program runs as user %lu: choose a folder of that user's own",
                    (unsigned long)status.st_uid, (unsigned long)geteuid());
    } else if (status.st_mode & 022) {
        gpi__append(why,
                    "others can write to it (its mode is %03lo): forbid that with 'chmod go-w', after "
                    "removing what they may have put there",
                    (unsigned long)status.st_mode & 0777);
    } else {
        return 1;
    }
    return 0;
}

static int gpi__folder_list(const gpi__folder *folder, void (*visit)(void *user, const char *name),
                            void *user) {
    struct dirent *entry;
    DIR *listing;
    int descriptor = gpi__openat(folder->descriptor, ".", O_RDONLY | GPI__O_DIRECTORY | GPI__O_CLOEXEC);
    if (descriptor < 0)
        return errno;
    listing = gpi__fdopendir(descriptor);
    if (!listing) {
        int code = errno;
        close(descriptor);
        return code;
    }
    while ((entry = readdir(listing)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            visit(user, entry->d_name);
    closedir(listing);
    return 0;
}

static int64_t gpi__file_now(void) {
    return (int64_t)time(NULL);
}

/* By path, the one function here that is: it is for sizes and ages, on which no safety rests. */
static int gpi__file_get_info(const gpi__folder *folder, const char *name, gpi__file_info *info) {
    char path[GPI__PATH_SIZE];
    struct stat status;
    gpi__text text = gpi__text_in(path, sizeof path);
    gpi__append(&text, "%s/%s", folder->path, name);
    if (gpi__text_is_cut(&text))
        return GPI__FILE_LONG_NAME;
    if (stat(path, &status) != 0)
        return errno;
    info->is_regular = S_ISREG(status.st_mode);
    info->size = (uint64_t)status.st_size;
    info->modified = (int64_t)status.st_mtime;
#if defined(st_mtime) && defined(__linux__)
    info->modified_nanoseconds = (long)status.st_mtim.tv_nsec;
#elif defined(__GLIBC__)
    info->modified_nanoseconds = (long)status.st_mtimensec;
#else
    info->modified_nanoseconds = 0;
#endif
    return 0;
}

static int gpi__file_touch(const gpi__folder *folder, const char *name) {
    return gpi__utimensat(folder->descriptor, name, NULL, 0) == 0 ? 0 : errno;
}

static int gpi__file_remove(const gpi__folder *folder, const char *name) {
    return gpi__unlinkat(folder->descriptor, name, 0) == 0 ? 0 : errno;
}

static int gpi__file_rename(const gpi__folder *folder, const char *from, const char *to) {
    return gpi__renameat(folder->descriptor, from, folder->descriptor, to) == 0 ? 0 : errno;
}

static unsigned long gpi__process_id(void) {
    return (unsigned long)getpid();
}

typedef int gpi__file;

/* O_NONBLOCK, because opening a pipe would wait for its other end. */
static int gpi__file_open_path(const char *path, gpi__file *file, uint64_t *size) {
    struct stat status;
    int code = 0;
    *file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | GPI__O_CLOEXEC);
    if (*file < 0)
        return errno;
    if (fstat(*file, &status) != 0)
        code = errno;
    else if (!S_ISREG(status.st_mode))
        code = GPI__FILE_NOT_REGULAR;
    if (code) {
        close(*file);
        return code;
    }
    *size = (uint64_t)status.st_size;
    return 0;
}

/* One that only this user can have written. */
static int gpi__file_open(const gpi__folder *folder, const char *name, gpi__file *file, uint64_t *size) {
    struct stat status;
    int code = 0;
    *file = gpi__openat(folder->descriptor, name, O_RDONLY | O_NONBLOCK | GPI__O_NOFOLLOW | GPI__O_CLOEXEC);
    if (*file < 0)
        return errno;
    if (fstat(*file, &status) != 0)
        code = errno;
    else if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022))
        code = EPERM;
    if (code) {
        close(*file);
        return code;
    }
    *size = (uint64_t)status.st_size;
    return 0;
}

static int gpi__file_create(const gpi__folder *folder, const char *name, unsigned mode, gpi__file *file) {
    *file = gpi__openat(folder->descriptor, name,
                        O_WRONLY | O_CREAT | O_EXCL | GPI__O_NOFOLLOW | GPI__O_CLOEXEC, mode);
    return *file < 0 ? errno : 0;
}

static int gpi__file_close(gpi__file file) {
    return close(file) == 0 ? 0 : errno;
}

/* Reads or writes at most size bytes, and tells how many. */
static int gpi__file_read_some(gpi__file file, void *data, size_t size, size_t *done) {
    ssize_t got;
    do
        got = read(file, data, size < 1u << 30 ? size : 1u << 30);
    while (got < 0 && errno == EINTR);
    *done = got > 0 ? (size_t)got : 0;
    return got < 0 ? errno : 0;
}

static int gpi__file_write_some(gpi__file file, const void *data, size_t size, size_t *done) {
    ssize_t put;
    do
        put = write(file, data, size < 1u << 30 ? size : 1u << 30);
    while (put < 0 && errno == EINTR);
    *done = put > 0 ? (size_t)put : 0;
    return put < 0 ? errno : put == 0 ? ENOSPC : 0;
}

/* Whether this process may make a file so large: a write beyond its limit sends it SIGXFSZ, which ends it. */
static int gpi__file_may_have(uint64_t size) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           size <= (uint64_t)limit.rlim_cur;
}

/* Appends the folder where programs of this user keep what they can make again, as the XDG base directory
   specification finds it. 0 if the user has none. */
static int gpi__user_cache_folder(gpi__text *text) {
    const char *cache = gpi__secure_getenv("XDG_CACHE_HOME"); /* code is loaded from there */
    const char *home = gpi__secure_getenv("HOME");
    if (cache && gpi__is_absolute(cache))
        gpi__append(text, "%s", cache);
    else if (home && gpi__is_absolute(home))
        gpi__append(text, "%s/.cache", home);
    else
        return 0;
    return 1;
}

#endif

#endif
