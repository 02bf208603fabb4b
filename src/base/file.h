/* Files and folders. A folder is opened first, and what is in it is then reached through the opened folder: so what
   was checked is what is used, whatever happens to the path meanwhile. (On Windows an opened folder is its path.)

   Functions that can fail return 0, or the system's error code (errno; GetLastError on Windows), or NOT_REGULAR, which is none of
   the system's. */
#ifndef GEMMEPI_BASE_FILE_H
#define GEMMEPI_BASE_FILE_H

#include "environment.h"
#include "memory.h"
#include "text.h"
#include "thread.h"

#if !GEMMEPI__WINDOWS
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#endif

typedef struct gemmepi__folder {
    const char *path; /* borrowed */
#if !GEMMEPI__WINDOWS
    int descriptor;
#endif
} gemmepi__folder;

typedef struct gemmepi__file_info {
    int is_regular;
    uint64_t size;
    int64_t modified; /* seconds since 1970 */
    long modified_nanoseconds;
} gemmepi__file_info;

/* One stretch of bytes of a file to be written. */
typedef struct gemmepi__file_piece {
    const void *data;
    size_t size;
} gemmepi__file_piece;

#define GEMMEPI__FILE_NOT_REGULAR (-1)

/* Who may read a new file, as POSIX's mode has it; the umask takes from it. Windows does not look at it. */
#define GEMMEPI__FILE_FOR_USER 0600
#define GEMMEPI__FILE_FOR_ALL  0666

#if GEMMEPI__WINDOWS

#define GEMMEPI__FILE_NO_MEMORY ((int)ERROR_NOT_ENOUGH_MEMORY)
#define GEMMEPI__FILE_TOO_LARGE ((int)ERROR_FILE_TOO_LARGE)
#define GEMMEPI__FILE_LONG_NAME ((int)ERROR_FILENAME_EXCED_RANGE)

static int gemmepi__file_is_missing(int code) {
    return code == (int)ERROR_FILE_NOT_FOUND || code == (int)ERROR_PATH_NOT_FOUND;
}

static int gemmepi__file_exists_already(int code) {
    return code == (int)ERROR_FILE_EXISTS || code == (int)ERROR_ALREADY_EXISTS;
}

static void gemmepi__file_error(gemmepi__text *text, int code) {
    if (code == GEMMEPI__FILE_NOT_REGULAR)
        gemmepi__append(text, "it is no regular file");
    else
        gemmepi__append(text, "Windows error %d", code);
}

static int gemmepi__current_folder(char *path, size_t size) {
    DWORD length = GetCurrentDirectoryA((DWORD)size, path);
    return length == 0 ? (int)GetLastError() : length >= size ? GEMMEPI__FILE_LONG_NAME : 0;
}

static int gemmepi__make_one_folder(const char *path) {
    return CreateDirectoryA(path, NULL) ? 0 : (int)GetLastError();
}

static int gemmepi__folder_open(gemmepi__folder *folder, const char *path) {
    DWORD attributes = GetFileAttributesA(path);
    folder->path = path;
    if (attributes == INVALID_FILE_ATTRIBUTES)
        return (int)GetLastError();
    return attributes & FILE_ATTRIBUTE_DIRECTORY ? 0 : (int)ERROR_DIRECTORY;
}

static void gemmepi__folder_close(gemmepi__folder *folder) {
    folder->path = NULL;
}

/* The user's folders are private by their access lists, which are not examined. */
static int gemmepi__folder_is_private(const gemmepi__folder *folder, gemmepi__text *why) {
    (void)folder;
    (void)why;
    return 1;
}

static int gemmepi__path_join(char path[GEMMEPI__PATH_SIZE], const gemmepi__folder *folder,
                              const char *name) {
    gemmepi__text text = gemmepi__text_in(path, GEMMEPI__PATH_SIZE);
    gemmepi__append(&text, "%s\\%s", folder->path, name);
    return gemmepi__text_is_cut(&text) ? GEMMEPI__FILE_LONG_NAME : 0;
}

static int gemmepi__folder_list(const gemmepi__folder *folder, void (*visit)(void *user, const char *name),
                                void *user) {
    char pattern[GEMMEPI__PATH_SIZE];
    WIN32_FIND_DATAA found;
    HANDLE search;
    int code = gemmepi__path_join(pattern, folder, "*");
    if (code)
        return code;
    search = FindFirstFileA(pattern, &found);
    if (search == INVALID_HANDLE_VALUE)
        return (int)GetLastError();
    do {
        if (strcmp(found.cFileName, ".") != 0 && strcmp(found.cFileName, "..") != 0)
            visit(user, found.cFileName);
    } while (FindNextFileA(search, &found));
    FindClose(search);
    return 0;
}

static int64_t gemmepi__file_seconds(FILETIME time, long *nanoseconds) {
    /* in units of 100 ns since 1601, which was 11644473600 seconds before 1970 */
    uint64_t units = (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
    *nanoseconds = (long)(units % 10000000u) * 100;
    return (int64_t)(units / 10000000u) - 11644473600;
}

static int64_t gemmepi__file_now(void) {
    FILETIME now;
    long nanoseconds;
    GetSystemTimeAsFileTime(&now);
    return gemmepi__file_seconds(now, &nanoseconds);
}

static int gemmepi__file_get_info(const gemmepi__folder *folder, const char *name, gemmepi__file_info *info) {
    char path[GEMMEPI__PATH_SIZE];
    WIN32_FILE_ATTRIBUTE_DATA data;
    int code = gemmepi__path_join(path, folder, name);
    if (code)
        return code;
    if (!GetFileAttributesExA(path, GetFileExInfoStandard, &data))
        return (int)GetLastError();
    info->is_regular = !(data.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT));
    info->size = (uint64_t)data.nFileSizeHigh << 32 | data.nFileSizeLow;
    info->modified = gemmepi__file_seconds(data.ftLastWriteTime, &info->modified_nanoseconds);
    return 0;
}

static int gemmepi__file_touch(const gemmepi__folder *folder, const char *name) {
    char path[GEMMEPI__PATH_SIZE];
    FILETIME now;
    HANDLE file;
    int code = gemmepi__path_join(path, folder, name);
    if (code)
        return code;
    file = CreateFileA(path, FILE_WRITE_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                       NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return (int)GetLastError();
    GetSystemTimeAsFileTime(&now);
    code = SetFileTime(file, NULL, NULL, &now) ? 0 : (int)GetLastError();
    CloseHandle(file);
    return code;
}

static int gemmepi__file_remove(const gemmepi__folder *folder, const char *name) {
    char path[GEMMEPI__PATH_SIZE];
    int code = gemmepi__path_join(path, folder, name);
    if (code)
        return code;
    return DeleteFileA(path) ? 0 : (int)GetLastError();
}

static int gemmepi__file_rename(const gemmepi__folder *folder, const char *from, const char *to) {
    char from_path[GEMMEPI__PATH_SIZE], to_path[GEMMEPI__PATH_SIZE];
    int attempt, code = gemmepi__path_join(from_path, folder, from);
    if (!code)
        code = gemmepi__path_join(to_path, folder, to);
    if (code)
        return code;
    /* a file that someone has open, or replaces at this moment, cannot be replaced: readers take milliseconds */
    for (attempt = 0; attempt < 50; attempt++) {
        code = MoveFileExA(from_path, to_path, MOVEFILE_REPLACE_EXISTING) ? 0 : (int)GetLastError();
        if (code != (int)ERROR_ACCESS_DENIED && code != (int)ERROR_SHARING_VIOLATION)
            break;
        Sleep(2);
    }
    return code;
}

static unsigned long gemmepi__process_id(void) {
    return GetCurrentProcessId();
}

typedef HANDLE gemmepi__file;

static int gemmepi__file_open_path(const char *path, gemmepi__file *file, uint64_t *size) {
    LARGE_INTEGER length;
    int code = 0;
    *file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                        OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (*file == INVALID_HANDLE_VALUE)
        return (int)GetLastError();
    if (GetFileType(*file) != FILE_TYPE_DISK)
        code = GEMMEPI__FILE_NOT_REGULAR;
    else if (!GetFileSizeEx(*file, &length))
        code = (int)GetLastError();
    if (code) {
        CloseHandle(*file);
        return code;
    }
    *size = (uint64_t)length.QuadPart;
    return 0;
}

static int gemmepi__file_open(const gemmepi__folder *folder, const char *name, gemmepi__file *file,
                              uint64_t *size) {
    char path[GEMMEPI__PATH_SIZE];
    int code = gemmepi__path_join(path, folder, name);
    return code ? code : gemmepi__file_open_path(path, file, size);
}

static int gemmepi__file_create(const gemmepi__folder *folder, const char *name, unsigned mode,
                                gemmepi__file *file) {
    char path[GEMMEPI__PATH_SIZE];
    int code = gemmepi__path_join(path, folder, name);
    (void)mode;
    if (code)
        return code;
    *file = CreateFileA(path, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    return *file == INVALID_HANDLE_VALUE ? (int)GetLastError() : 0;
}

static int gemmepi__file_close(gemmepi__file file) {
    return CloseHandle(file) ? 0 : (int)GetLastError();
}

/* Reads or writes at most size bytes, and tells how many. */
static int gemmepi__file_read_some(gemmepi__file file, void *data, size_t size, size_t *done) {
    DWORD got = 0;
    int code =
        ReadFile(file, data, size < 1u << 30 ? (DWORD)size : 1u << 30, &got, NULL) ? 0 : (int)GetLastError();
    *done = got;
    return code;
}

static int gemmepi__file_write_some(gemmepi__file file, const void *data, size_t size, size_t *done) {
    DWORD put = 0;
    int code =
        WriteFile(file, data, size < 1u << 30 ? (DWORD)size : 1u << 30, &put, NULL) ? 0 : (int)GetLastError();
    *done = put;
    return code;
}

static int gemmepi__file_may_have(uint64_t size) {
    (void)size;
    return 1;
}

/* Appends the folder where programs of this user keep what they can make again. 0 if the user has none. */
static int gemmepi__user_cache_folder(gemmepi__text *text) {
    char path[GEMMEPI__PATH_SIZE];
    DWORD length = GetEnvironmentVariableA("LOCALAPPDATA", path, sizeof path);
    if (length == 0 || length >= sizeof path || !gemmepi__is_absolute(path))
        return 0;
    gemmepi__append(text, "%s", path);
    return 1;
}

#else

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

/* Makes a folder that only this user can enter, and its parents likewise where they are missing. One that exists is
   left as it is. */
static int gemmepi__folder_make(const char *path) {
    char parent[GEMMEPI__PATH_SIZE];
    size_t length = strlen(path), i;
    int code;
    if (length >= sizeof parent)
        return GEMMEPI__FILE_LONG_NAME;
    /* what becomes of the parents does not matter: if one is missing in the end, the last step fails */
    for (i = 1; i < length; i++) {
        if (gemmepi__is_slash(path[i])) {
            memcpy(parent, path, i);
            parent[i] = 0;
            gemmepi__make_one_folder(parent);
        }
    }
    code = gemmepi__make_one_folder(path);
    return gemmepi__file_exists_already(code) ? 0 : code;
}

/* Reads and closes a file that has length bytes, and at most `most` of them. *data is from the allocator and the caller's to free,
   not NULL even if *size is 0. A file that shrinks meanwhile gives what it still had. */
static int gemmepi__file_read_opened(gemmepi__file file, uint64_t length, const gemmepi_allocator *allocator,
                                     size_t most, unsigned char **data, size_t *size) {
    unsigned char *bytes = NULL;
    size_t have = 0, step = 1;
    int code = 0;
    if (length > most)
        code = GEMMEPI__FILE_TOO_LARGE;
    if (!code) {
        /* not gemmepi__new: that notes a failure, and here none may be noted that the caller recovers from */
        bytes = (unsigned char *)allocator->alloc(allocator->user, length ? (size_t)length : 1);
        if (!bytes)
            code = GEMMEPI__FILE_NO_MEMORY;
    }
    while (!code && step != 0 && have < length) {
        code = gemmepi__file_read_some(file, bytes + have, (size_t)length - have, &step);
        have += step;
    }
    gemmepi__file_close(file);
    if (code) {
        gemmepi__delete(allocator, bytes);
        return code;
    }
    *data = bytes;
    *size = have;
    return 0;
}

/* A file in a folder: a regular one (not a link to one) that this user owns and nobody else can write to. */
static int gemmepi__file_read(const gemmepi__folder *folder, const char *name,
                              const gemmepi_allocator *allocator, size_t most, unsigned char **data,
                              size_t *size) {
    gemmepi__file file;
    uint64_t length = 0;
    int code = gemmepi__file_open(folder, name, &file, &length);
    return code ? code : gemmepi__file_read_opened(file, length, allocator, most, data, size);
}

/* A regular file, or a link to one, whoever owns it: one that the program has named. */
static int gemmepi__file_read_path(const char *path, const gemmepi_allocator *allocator, size_t most,
                                   unsigned char **data, size_t *size) {
    gemmepi__file file;
    uint64_t length = 0;
    int code = gemmepi__file_open_path(path, &file, &length);
    return code ? code : gemmepi__file_read_opened(file, length, allocator, most, data, size);
}

/* Writes a new file. What a failing call wrote is gone again, unless the name was taken. */
static int gemmepi__file_write_new(const gemmepi__folder *folder, const char *name, unsigned mode,
                                   const gemmepi__file_piece *pieces, int count) {
    gemmepi__file file;
    uint64_t size = 0;
    int i, close_code, code;
    for (i = 0; i < count; i++)
        size += pieces[i].size;
    if (!gemmepi__file_may_have(size))
        return GEMMEPI__FILE_TOO_LARGE;
    code = gemmepi__file_create(folder, name, mode, &file);
    if (code)
        return code;
    for (i = 0; i < count && !code; i++) {
        const unsigned char *bytes = (const unsigned char *)pieces[i].data;
        size_t have = 0, step;
        while (!code && have < pieces[i].size) {
            code = gemmepi__file_write_some(file, bytes + have, pieces[i].size - have, &step);
            have += step;
        }
    }
    close_code = gemmepi__file_close(file); /* network file systems tell of a full disk only here */
    if (!code)
        code = close_code;
    if (code)
        gemmepi__file_remove(folder, name);
    return code;
}

/* The path, behind the current folder where it is not absolute and that is known: the program may change it later. */
static void gemmepi__append_absolute(gemmepi__text *text, const char *path) {
    char current[GEMMEPI__PATH_SIZE];
    if (!gemmepi__is_absolute(path) && gemmepi__current_folder(current, sizeof current) == 0)
        gemmepi__append(text, "%s/", current);
    gemmepi__append(text, "%s", path);
}

static long gemmepi__file_counter; /* of files written aside by this process */

/* Puts a whole file in place of the one of that name, if there is one: it is written aside, as NAME.PID-COUNT.tmp, and
   renamed, so that nobody ever opens half of it. Of a NAME of more than 200 bytes the first 200 stand there. Not flushed to the
   disk: after a crash of the machine it may be torn, so what reads it must check it. */
static int gemmepi__file_store(const gemmepi__folder *folder, const char *name, unsigned mode,
                               const gemmepi__file_piece *pieces, int count) {
    char aside[512];
    int code = 0, attempt;
    /* other machines that share the folder, and containers, have processes with the same id */
    for (attempt = 0; attempt < 100; attempt++) {
        gemmepi__text text = gemmepi__text_in(aside, sizeof aside);
        gemmepi__append(&text, "%.200s.%lu-%lu.tmp", name, gemmepi__process_id(),
                        (unsigned long)gemmepi__add(&gemmepi__file_counter, 1));
        if (gemmepi__text_is_cut(&text))
            return GEMMEPI__FILE_LONG_NAME;
        code = gemmepi__file_write_new(folder, aside, mode, pieces, count);
        if (!gemmepi__file_exists_already(code))
            break;
    }
    if (!code) {
        code = gemmepi__file_rename(folder, aside, name);
        if (code)
            gemmepi__file_remove(folder, aside);
    }
    return code;
}

/* The same by a path, in place of a regular file or a link to one, if there is anything. */
static int gemmepi__file_store_path(const char *path, unsigned mode, const gemmepi__file_piece *pieces,
                                    int count) {
    char above[GEMMEPI__PATH_SIZE];
    size_t length = strlen(path);
    gemmepi__folder folder;
    gemmepi__file_info info;
    int code;
    while (length > 0 && !gemmepi__is_slash(path[length - 1]))
        length--;
    if (length >= sizeof above)
        return GEMMEPI__FILE_LONG_NAME;
    memcpy(above, length ? path : "./", length ? length : 2);
    above[length ? length : 2] = 0;
    code = gemmepi__folder_open(&folder, above);
    if (code)
        return code;
    memset(&info, 0, sizeof info);
    code = gemmepi__file_get_info(&folder, path[length] ? path + length : ".", &info);
    if (!code && !info.is_regular)
        code = GEMMEPI__FILE_NOT_REGULAR;
    else if (!code || gemmepi__file_is_missing(code))
        code = gemmepi__file_store(&folder, path + length, mode, pieces, count);
    gemmepi__folder_close(&folder);
    return code;
}

/* The length of NAME if this is what gemmepi__file_store calls a file while it writes NAME, else 0. */
static size_t gemmepi__file_aside_stem(const char *name) {
    static const char digits[] = "0123456789";
    const char *end = name + strlen(name), *dot = end, *counter;
    size_t length;
    if (end - name < 4 || strcmp(end - 4, ".tmp") != 0)
        return 0;
    for (dot = end - 5; dot > name && *dot != '.'; dot--) {
    }
    if (dot <= name)
        return 0;
    length = strspn(dot + 1, digits);
    if (length == 0 || dot[1 + length] != '-')
        return 0;
    counter = dot + 2 + length;
    length = strspn(counter, digits);
    return length != 0 && counter + length == end - 4 ? (size_t)(dot - name) : 0;
}

#endif
