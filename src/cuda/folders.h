/* What the system says of folders: which there are, and what a root of a place stands for. */
#ifndef GEMMEPI_CUDA_FOLDERS_H
#define GEMMEPI_CUDA_FOLDERS_H

#include "../base/dynamic_library.h"
#include "../base/environment.h"
#include "../base/text.h"

#if !GPI__WINDOWS
#include <dirent.h>
#endif

static int gpi__file_exists(const char *path) {
#if GPI__WINDOWS
    DWORD attributes = GetFileAttributesA(path);
    return attributes != INVALID_FILE_ATTRIBUTES && !(attributes & FILE_ATTRIBUTE_DIRECTORY);
#else
    return access(path, F_OK) == 0;
#endif
}

/* The three texts in one path; 0 if they do not fit. */
static int gpi__join(char *path, const char *first, const char *second, const char *third) {
    gpi__text text = gpi__text_in(path, GPI__PATH_SIZE);
    gpi__append(&text, "%s%s%s", first, second, third);
    return !gpi__text_is_cut(&text);
}

/* Cuts the last component off; 0 if there is none. */
static int gpi__to_folder(char *path) {
    size_t length = strlen(path);
    while (length > 0 && !gpi__is_slash(path[length - 1]))
        length--;
    if (length == 0)
        return 0;
    path[length - 1] = 0;
    return 1;
}

/* Takes the next item off a list of folders; 0 at its end. Empty items are left out. */
static int gpi__next_folder(const char **list, char *folder) {
    while (*list && **list) {
        const char *end = strchr(*list, GPI__LIST_SEPARATOR);
        size_t length = end ? (size_t)(end - *list) : strlen(*list);
        const char *item = *list;
        *list = end ? end + 1 : NULL;
        if (length > 0 && length < GPI__PATH_SIZE) {
            memcpy(folder, item, length);
            folder[length] = 0;
            return 1;
        }
    }
    return 0;
}

#define GPI__ENTRY_SIZE 256

/* Newer versions first: 3.13 before 3.9, 13.0 before 12.9. */
static int gpi__comes_before(const char *a, const char *b) {
    return strlen(a) != strlen(b) ? strlen(a) > strlen(b) : strcmp(a, b) > 0;
}

/* Keeps name in best if it comes after previous and before what best holds. */
static void gpi__consider_entry(const char *name, const char *prefix, const char *previous, char *best) {
    if (strncmp(name, prefix, strlen(prefix)) != 0 || strlen(name) >= GPI__ENTRY_SIZE)
        return;
    if (previous[0] && !gpi__comes_before(previous, name))
        return;
    if (!best[0] || gpi__comes_before(name, best))
        memcpy(best, name, strlen(name) + 1);
}

/* Replaces entry by the one after it among those of the folder that begin with prefix ("" asks for the first); 0 after
   the last. Reads the folder anew each time, so that nothing is to be kept. */
static int gpi__next_entry(const char *folder, const char *prefix, char *entry) {
    char best[GPI__ENTRY_SIZE] = "";
#if GPI__WINDOWS
    char pattern[GPI__PATH_SIZE];
    WIN32_FIND_DATAA data;
    HANDLE list;
    if (!gpi__join(pattern, folder, "\\", "*"))
        return 0;
    list = FindFirstFileA(pattern, &data);
    if (list == INVALID_HANDLE_VALUE)
        return 0;
    do
        gpi__consider_entry(data.cFileName, prefix, entry, best);
    while (FindNextFileA(list, &data));
    FindClose(list);
#else
    struct dirent *item;
    DIR *list = opendir(folder);
    if (!list)
        return 0;
    while ((item = readdir(list)) != NULL)
        gpi__consider_entry(item->d_name, prefix, entry, best);
    closedir(list);
#endif
    memcpy(entry, best, sizeof best);
    return entry[0] != 0;
}

#if !GPI__WINDOWS
/* Whether the path's last component is this. */
static int gpi__ends_in_folder(const char *path, const char *name) {
    size_t length = strlen(path), size = strlen(name);
    return length > size && gpi__is_slash(path[length - size - 1]) && strcmp(path + length - size, name) == 0;
}
#endif

/* The folder that holds bin, and beside it the lib folder, of the first Python on PATH. Items of PATH that are relative,
   that others can write to, or (but on Windows) that are not called bin, are left out: code is loaded from what is found. */
static int gpi__python_prefix(int resolved, char *prefix) {
    char variable[4 * GPI__PATH_SIZE], folder[GPI__PATH_SIZE], program[GPI__PATH_SIZE];
    const char *list = variable;
    if (!gpi__environment("PATH", variable, sizeof variable))
        return 0;
    while (gpi__next_folder(&list, folder)) {
        if (!gpi__is_absolute(folder) || gpi__others_can_write(folder))
            continue;
#if GPI__WINDOWS
        (void)resolved;
        if (!gpi__join(program, folder, "\\", "python.exe") || !gpi__file_exists(program))
            continue;
        /* a virtual environment keeps it in Scripts, an installation beside Lib */
        memcpy(prefix, folder, sizeof folder);
        if (gpi__join(program, folder, "\\", "activate.bat") && gpi__file_exists(program))
            gpi__to_folder(prefix);
        return 1;
#else
        while (strlen(folder) > 1 && gpi__is_slash(folder[strlen(folder) - 1]))
            folder[strlen(folder) - 1] = 0;
        if (!gpi__ends_in_folder(folder, "bin") || !gpi__join(program, folder, "/", "python3") ||
            !gpi__file_exists(program))
            continue;
        if (!resolved)
            memcpy(prefix, program, sizeof program);
        else if (!gpi__realpath(program, prefix))
            return 0;
        return gpi__to_folder(prefix) && gpi__ends_in_folder(prefix, "bin") && gpi__to_folder(prefix);
#endif
    }
    return 0;
}

/* Replaces what a root begins with by what it stands for; 0 if that is not set, or not an absolute path. */
static int gpi__expand_root(const char *root, char *path) {
    char name[64], value[GPI__PATH_SIZE];
    size_t length = 0;
    if (root[0] != '$')
        return gpi__join(path, root, "", "");
    while (root[1 + length] && !gpi__is_slash(root[1 + length]) && length < sizeof name - 1) {
        name[length] = root[1 + length];
        length++;
    }
    name[length] = 0;
    if (name[0] == '(') {
        if (!gpi__python_prefix(strcmp(name, "(python3 resolved)") == 0, value))
            return 0;
    } else if (!gpi__environment(name, value, sizeof value)) {
        return 0;
    }
    return gpi__is_absolute(value) && gpi__join(path, value, root + 1 + length, "");
}

#endif
