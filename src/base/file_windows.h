/* The functions of files and folders that Windows has. */
#ifndef GEMMEPI_BASE_FILE_WINDOWS_H
#define GEMMEPI_BASE_FILE_WINDOWS_H

#include "file_types.h"

#if GPI__WINDOWS

#define GPI__FILE_NO_MEMORY ((int)ERROR_NOT_ENOUGH_MEMORY)
#define GPI__FILE_TOO_LARGE ((int)ERROR_FILE_TOO_LARGE)
#define GPI__FILE_LONG_NAME ((int)ERROR_FILENAME_EXCED_RANGE)

static int gpi__file_is_missing(int code) {
    return code == (int)ERROR_FILE_NOT_FOUND || code == (int)ERROR_PATH_NOT_FOUND;
}

static int gpi__file_exists_already(int code) {
    return code == (int)ERROR_FILE_EXISTS || code == (int)ERROR_ALREADY_EXISTS;
}

static void gpi__file_error(gpi__text *text, int code) {
    if (code == GPI__FILE_NOT_REGULAR)
        gpi__append(text, "it is no regular file");
    else
        gpi__append(text, "Windows error %d", code);
}

static int gpi__current_folder(char *path, size_t size) {
    DWORD length = GetCurrentDirectoryA((DWORD)size, path);
    return length == 0 ? (int)GetLastError() : length >= size ? GPI__FILE_LONG_NAME : 0;
}

static int gpi__make_one_folder(const char *path) {
    return CreateDirectoryA(path, NULL) ? 0 : (int)GetLastError();
}

static int gpi__folder_open(gpi__folder *folder, const char *path) {
    DWORD attributes = GetFileAttributesA(path);
    folder->path = path;
    if (attributes == INVALID_FILE_ATTRIBUTES)
        return (int)GetLastError();
    return attributes & FILE_ATTRIBUTE_DIRECTORY ? 0 : (int)ERROR_DIRECTORY;
}

static void gpi__folder_close(gpi__folder *folder) {
    folder->path = NULL;
}

/* The user's folders are private by their access lists, which are not examined. */
static int gpi__folder_is_private(const gpi__folder *folder, gpi__text *why) {
    (void)folder;
    (void)why;
    return 1;
}

static int gpi__path_join(char path[GPI__PATH_SIZE], const gpi__folder *folder, const char *name) {
    gpi__text text = gpi__text_in(path, GPI__PATH_SIZE);
    gpi__append(&text, "%s\\%s", folder->path, name);
    return gpi__text_is_cut(&text) ? GPI__FILE_LONG_NAME : 0;
}

static int gpi__folder_list(const gpi__folder *folder, void (*visit)(void *user, const char *name),
                            void *user) {
    char pattern[GPI__PATH_SIZE];
    WIN32_FIND_DATAA found;
    HANDLE search;
    int code = gpi__path_join(pattern, folder, "*");
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

static int64_t gpi__file_seconds(FILETIME time, long *nanoseconds) {
    /* in units of 100 ns since 1601, which was 11644473600 seconds before 1970 */
    uint64_t units = (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
    *nanoseconds = (long)(units % 10000000u) * 100;
    return (int64_t)(units / 10000000u) - 11644473600;
}

static int64_t gpi__file_now(void) {
    FILETIME now;
    long nanoseconds;
    GetSystemTimeAsFileTime(&now);
    return gpi__file_seconds(now, &nanoseconds);
}

static int gpi__file_get_info(const gpi__folder *folder, const char *name, gpi__file_info *info) {
    char path[GPI__PATH_SIZE];
    WIN32_FILE_ATTRIBUTE_DATA data;
    int code = gpi__path_join(path, folder, name);
    if (code)
        return code;
    if (!GetFileAttributesExA(path, GetFileExInfoStandard, &data))
        return (int)GetLastError();
    info->is_regular = !(data.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT));
    info->size = (uint64_t)data.nFileSizeHigh << 32 | data.nFileSizeLow;
    info->modified = gpi__file_seconds(data.ftLastWriteTime, &info->modified_nanoseconds);
    return 0;
}

static int gpi__file_touch(const gpi__folder *folder, const char *name) {
    char path[GPI__PATH_SIZE];
    FILETIME now;
    HANDLE file;
    int code = gpi__path_join(path, folder, name);
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

static int gpi__file_remove(const gpi__folder *folder, const char *name) {
    char path[GPI__PATH_SIZE];
    int code = gpi__path_join(path, folder, name);
    if (code)
        return code;
    return DeleteFileA(path) ? 0 : (int)GetLastError();
}

static int gpi__file_rename(const gpi__folder *folder, const char *from, const char *to) {
    char from_path[GPI__PATH_SIZE], to_path[GPI__PATH_SIZE];
    int attempt, code = gpi__path_join(from_path, folder, from);
    if (!code)
        code = gpi__path_join(to_path, folder, to);
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

static unsigned long gpi__process_id(void) {
    return GetCurrentProcessId();
}

typedef HANDLE gpi__file;

static int gpi__file_open_path(const char *path, gpi__file *file, uint64_t *size) {
    LARGE_INTEGER length;
    int code = 0;
    *file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                        OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (*file == INVALID_HANDLE_VALUE)
        return (int)GetLastError();
    if (GetFileType(*file) != FILE_TYPE_DISK)
        code = GPI__FILE_NOT_REGULAR;
    else if (!GetFileSizeEx(*file, &length))
        code = (int)GetLastError();
    if (code) {
        CloseHandle(*file);
        return code;
    }
    *size = (uint64_t)length.QuadPart;
    return 0;
}

static int gpi__file_open(const gpi__folder *folder, const char *name, gpi__file *file, uint64_t *size) {
    char path[GPI__PATH_SIZE];
    int code = gpi__path_join(path, folder, name);
    return code ? code : gpi__file_open_path(path, file, size);
}

static int gpi__file_create(const gpi__folder *folder, const char *name, unsigned mode, gpi__file *file) {
    char path[GPI__PATH_SIZE];
    int code = gpi__path_join(path, folder, name);
    (void)mode;
    if (code)
        return code;
    *file = CreateFileA(path, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    return *file == INVALID_HANDLE_VALUE ? (int)GetLastError() : 0;
}

static int gpi__file_close(gpi__file file) {
    return CloseHandle(file) ? 0 : (int)GetLastError();
}

/* Reads or writes at most size bytes, and tells how many. */
static int gpi__file_read_some(gpi__file file, void *data, size_t size, size_t *done) {
    DWORD got = 0;
    int code =
        ReadFile(file, data, size < 1u << 30 ? (DWORD)size : 1u << 30, &got, NULL) ? 0 : (int)GetLastError();
    *done = got;
    return code;
}

static int gpi__file_write_some(gpi__file file, const void *data, size_t size, size_t *done) {
    DWORD put = 0;
    int code =
        WriteFile(file, data, size < 1u << 30 ? (DWORD)size : 1u << 30, &put, NULL) ? 0 : (int)GetLastError();
    *done = put;
    return code;
}

static int gpi__file_may_have(uint64_t size) {
    (void)size;
    return 1;
}

/* Appends the folder where programs of this user keep what they can make again. 0 if the user has none. */
static int gpi__user_cache_folder(gpi__text *text) {
    char path[GPI__PATH_SIZE];
    DWORD length = GetEnvironmentVariableA("LOCALAPPDATA", path, sizeof path);
    if (length == 0 || length >= sizeof path || !gpi__is_absolute(path))
        return 0;
    gpi__append(text, "%s", path);
    return 1;
}

#endif

#endif
