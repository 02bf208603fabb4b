/* The functions of files and folders that POSIX has. */
#ifndef GEMMEPI_BASE_FILE_POSIX_H
#define GEMMEPI_BASE_FILE_POSIX_H

#include "file_types.h"

#if !GEMMEPI__WINDOWS

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define GEMMEPI__FILE_NO_MEMORY ENOMEM
#define GEMMEPI__FILE_TOO_LARGE EFBIG
#define GEMMEPI__FILE_LONG_NAME ENAMETOOLONG

/* What strict C99 hides. glibc has the numbers under names of its own in any mode; the last resort is Linux's own
   numbers, which arm and powerpc keep apart from the rest. */
#if defined(O_NOFOLLOW) && defined(O_DIRECTORY) && defined(O_CLOEXEC)
#define GEMMEPI__O_NOFOLLOW  O_NOFOLLOW
#define GEMMEPI__O_DIRECTORY O_DIRECTORY
#define GEMMEPI__O_CLOEXEC   O_CLOEXEC
#elif defined(__O_NOFOLLOW) && defined(__O_DIRECTORY) && defined(__O_CLOEXEC)
#define GEMMEPI__O_NOFOLLOW  __O_NOFOLLOW
#define GEMMEPI__O_DIRECTORY __O_DIRECTORY
#define GEMMEPI__O_CLOEXEC   __O_CLOEXEC
#elif defined(__linux__) && (defined(__arm__) || defined(__aarch64__) || defined(__powerpc__))
#define GEMMEPI__O_NOFOLLOW  0100000
#define GEMMEPI__O_DIRECTORY 040000
#define GEMMEPI__O_CLOEXEC   02000000
#elif defined(__linux__) && (defined(__i386__) || defined(__x86_64__) || defined(__riscv))
#define GEMMEPI__O_NOFOLLOW  0400000
#define GEMMEPI__O_DIRECTORY 0200000
#define GEMMEPI__O_CLOEXEC   02000000
#else
#error "gemmepi: the numbers of O_NOFOLLOW, O_DIRECTORY and O_CLOEXEC are not known for this system"
#endif

/* These are functions in every glibc since 2.6; fstatat and lstat are not before 2.33, so they are done without. */
#if GEMMEPI__HEADERS_HIDE
extern int gemmepi__openat(int folder, const char *name, int flags, ...) GEMMEPI__SYSTEM_NAME("openat");
extern int gemmepi__renameat(int from_folder, const char *from, int to_folder, const char *to)
    GEMMEPI__SYSTEM_NAME("renameat");
extern int gemmepi__unlinkat(int folder, const char *name, int flags) GEMMEPI__SYSTEM_NAME("unlinkat");
extern int gemmepi__utimensat(int folder, const char *name, const void *times, int flags)
    GEMMEPI__SYSTEM_NAME("utimensat");
extern DIR *gemmepi__fdopendir(int descriptor) GEMMEPI__SYSTEM_NAME("fdopendir");
#else
#define gemmepi__openat    openat
#define gemmepi__renameat  renameat
#define gemmepi__unlinkat  unlinkat
#define gemmepi__utimensat utimensat
#define gemmepi__fdopendir fdopendir
#endif

static int gemmepi__file_is_missing(int code) {
    return code == ENOENT;
}

static int gemmepi__file_exists_already(int code) {
    return code == EEXIST;
}

static void gemmepi__file_error(gemmepi__text *text, int code) {
    gemmepi__append(text, "%s", code == GEMMEPI__FILE_NOT_REGULAR ? "it is no regular file" : strerror(code));
}

static int gemmepi__current_folder(char *path, size_t size) {
    return getcwd(path, size) ? 0 : errno;
}

static int gemmepi__make_one_folder(const char *path) {
    return mkdir(path, 0700) == 0 ? 0 : errno;
}

static int gemmepi__folder_open(gemmepi__folder *folder, const char *path) {
    folder->path = path;
    folder->descriptor = open(path, O_RDONLY | GEMMEPI__O_DIRECTORY | GEMMEPI__O_CLOEXEC);
    return folder->descriptor < 0 ? errno : 0;
}

static void gemmepi__folder_close(gemmepi__folder *folder) {
    close(folder->descriptor);
    folder->path = NULL;
    folder->descriptor = -1;
}

/* 1 if this user owns the folder and nobody else can write to it, else 0 with the reason and the mend appended. It
   is the opened folder that counts, not the path: a symbolic link may lead here, and whoever can change the link
   can only make it lead to another private folder of this user. */
static int gemmepi__folder_is_private(const gemmepi__folder *folder, gemmepi__text *why) {
    struct stat status;
    if (fstat(folder->descriptor, &status) != 0) {
        gemmepi__file_error(why, errno);
    } else if (status.st_uid != geteuid()) {
        gemmepi__append(
            why, "user %lu owns it, and this program runs as user %lu: choose a folder of that user's own",
            (unsigned long)status.st_uid, (unsigned long)geteuid());
    } else if (status.st_mode & 022) {
        gemmepi__append(
            why,
            "others can write to it (its mode is %03lo): take that from them with 'chmod go-w', after "
            "removing what they may have put there",
            (unsigned long)status.st_mode & 0777);
    } else {
        return 1;
    }
    return 0;
}

static int gemmepi__folder_list(const gemmepi__folder *folder, void (*visit)(void *user, const char *name),
                                void *user) {
    struct dirent *entry;
    DIR *listing;
    int descriptor =
        gemmepi__openat(folder->descriptor, ".", O_RDONLY | GEMMEPI__O_DIRECTORY | GEMMEPI__O_CLOEXEC);
    if (descriptor < 0)
        return errno;
    listing = gemmepi__fdopendir(descriptor);
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

static int64_t gemmepi__file_now(void) {
    return (int64_t)time(NULL);
}

/* By path, the one function here that is: it is for sizes and ages, on which no safety rests. */
static int gemmepi__file_get_info(const gemmepi__folder *folder, const char *name, gemmepi__file_info *info) {
    char path[GEMMEPI__PATH_SIZE];
    struct stat status;
    gemmepi__text text = gemmepi__text_in(path, sizeof path);
    gemmepi__append(&text, "%s/%s", folder->path, name);
    if (gemmepi__text_is_cut(&text))
        return GEMMEPI__FILE_LONG_NAME;
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

static int gemmepi__file_touch(const gemmepi__folder *folder, const char *name) {
    return gemmepi__utimensat(folder->descriptor, name, NULL, 0) == 0 ? 0 : errno;
}

static int gemmepi__file_remove(const gemmepi__folder *folder, const char *name) {
    return gemmepi__unlinkat(folder->descriptor, name, 0) == 0 ? 0 : errno;
}

static int gemmepi__file_rename(const gemmepi__folder *folder, const char *from, const char *to) {
    return gemmepi__renameat(folder->descriptor, from, folder->descriptor, to) == 0 ? 0 : errno;
}

static unsigned long gemmepi__process_id(void) {
    return (unsigned long)getpid();
}

typedef int gemmepi__file;

/* O_NONBLOCK, because opening a pipe would wait for its other end. */
static int gemmepi__file_open_path(const char *path, gemmepi__file *file, uint64_t *size) {
    struct stat status;
    int code = 0;
    *file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | GEMMEPI__O_CLOEXEC);
    if (*file < 0)
        return errno;
    if (fstat(*file, &status) != 0)
        code = errno;
    else if (!S_ISREG(status.st_mode))
        code = GEMMEPI__FILE_NOT_REGULAR;
    if (code) {
        close(*file);
        return code;
    }
    *size = (uint64_t)status.st_size;
    return 0;
}

/* One that only this user can have written. */
static int gemmepi__file_open(const gemmepi__folder *folder, const char *name, gemmepi__file *file,
                              uint64_t *size) {
    struct stat status;
    int code = 0;
    *file = gemmepi__openat(folder->descriptor, name,
                            O_RDONLY | O_NONBLOCK | GEMMEPI__O_NOFOLLOW | GEMMEPI__O_CLOEXEC);
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

static int gemmepi__file_create(const gemmepi__folder *folder, const char *name, unsigned mode,
                                gemmepi__file *file) {
    *file = gemmepi__openat(folder->descriptor, name,
                            O_WRONLY | O_CREAT | O_EXCL | GEMMEPI__O_NOFOLLOW | GEMMEPI__O_CLOEXEC, mode);
    return *file < 0 ? errno : 0;
}

static int gemmepi__file_close(gemmepi__file file) {
    return close(file) == 0 ? 0 : errno;
}

/* Reads or writes at most size bytes, and tells how many. */
static int gemmepi__file_read_some(gemmepi__file file, void *data, size_t size, size_t *done) {
    ssize_t got;
    do
        got = read(file, data, size < 1u << 30 ? size : 1u << 30);
    while (got < 0 && errno == EINTR);
    *done = got > 0 ? (size_t)got : 0;
    return got < 0 ? errno : 0;
}

static int gemmepi__file_write_some(gemmepi__file file, const void *data, size_t size, size_t *done) {
    ssize_t put;
    do
        put = write(file, data, size < 1u << 30 ? size : 1u << 30);
    while (put < 0 && errno == EINTR);
    *done = put > 0 ? (size_t)put : 0;
    return put < 0 ? errno : put == 0 ? ENOSPC : 0;
}

/* Whether this process may make a file so large: a write beyond its limit sends it SIGXFSZ, which ends it. */
static int gemmepi__file_may_have(uint64_t size) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           size <= (uint64_t)limit.rlim_cur;
}

/* Appends the folder where programs of this user keep what they can make again, as the XDG base directory
   specification finds it. 0 if the user has none. */
static int gemmepi__user_cache_folder(gemmepi__text *text) {
    const char *cache = gemmepi__secure_getenv("XDG_CACHE_HOME"); /* code is loaded from there */
    const char *home = gemmepi__secure_getenv("HOME");
    if (cache && gemmepi__is_absolute(cache))
        gemmepi__append(text, "%s", cache);
    else if (home && gemmepi__is_absolute(home))
        gemmepi__append(text, "%s/.cache", home);
    else
        return 0;
    return 1;
}

#endif

#endif
