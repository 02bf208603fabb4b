/* Files that are read and written whole, on either system. */
#ifndef GEMMEPI_BASE_FILE_H
#define GEMMEPI_BASE_FILE_H

#include "file_posix.h"
#include "file_windows.h"
#include "memory.h"
#include "thread.h"

/* Makes a folder that only this user can enter, and its parents likewise where they are missing. One that exists is
   left as it is. */
static int gpi__folder_make(const char *path) {
    char parent[GPI__PATH_SIZE];
    size_t length = strlen(path), i;
    int code;
    if (length >= sizeof parent)
        return GPI__FILE_LONG_NAME;
    /* what becomes of the parents does not matter: if one is missing in the end, the last step fails */
    for (i = 1; i < length; i++) {
        if (gpi__is_slash(path[i])) {
            memcpy(parent, path, i);
            parent[i] = 0;
            gpi__make_one_folder(parent);
        }
    }
    code = gpi__make_one_folder(path);
    return gpi__file_exists_already(code) ? 0 : code;
}

/* Reads and closes a file that has length bytes, and at most `most` of them. *data is from the allocator and the caller's to free,
   not NULL even if *size is 0. A file that shrinks meanwhile gives what it still had. */
static int gpi__file_read_opened(gpi__file file, uint64_t length, const gemmepi_allocator *allocator,
                                 size_t most, unsigned char **data, size_t *size) {
    unsigned char *bytes = NULL;
    size_t have = 0, step = 1;
    int code = 0;
    if (length > most)
        code = GPI__FILE_TOO_LARGE;
    if (!code) {
        /* not gpi__new: that notes a failure, and here none may be noted that the caller recovers from */
        bytes = (unsigned char *)allocator->alloc(allocator->user, length ? (size_t)length : 1);
        if (!bytes)
            code = GPI__FILE_NO_MEMORY;
    }
    while (!code && step != 0 && have < length) {
        code = gpi__file_read_some(file, bytes + have, (size_t)length - have, &step);
        have += step;
    }
    gpi__file_close(file);
    if (code) {
        gpi__delete(allocator, bytes);
        return code;
    }
    *data = bytes;
    *size = have;
    return 0;
}

/* A file in a folder: a regular one (not a link to one) that this user owns and nobody else can write to. */
static int gpi__file_read(const gpi__folder *folder, const char *name, const gemmepi_allocator *allocator,
                          size_t most, unsigned char **data, size_t *size) {
    gpi__file file;
    uint64_t length = 0;
    int code = gpi__file_open(folder, name, &file, &length);
    return code ? code : gpi__file_read_opened(file, length, allocator, most, data, size);
}

/* A regular file, or a link to one, whoever owns it: one that the program has named. */
static int gpi__file_read_path(const char *path, const gemmepi_allocator *allocator, size_t most,
                               unsigned char **data, size_t *size) {
    gpi__file file;
    uint64_t length = 0;
    int code = gpi__file_open_path(path, &file, &length);
    return code ? code : gpi__file_read_opened(file, length, allocator, most, data, size);
}

/* Writes a new file. What a failing call wrote is gone again, unless the name was taken. */
static int gpi__file_write_new(const gpi__folder *folder, const char *name, unsigned mode,
                               const gpi__file_piece *pieces, int count) {
    gpi__file file;
    uint64_t size = 0;
    int i, close_code, code;
    for (i = 0; i < count; i++)
        size += pieces[i].size;
    if (!gpi__file_may_have(size))
        return GPI__FILE_TOO_LARGE;
    code = gpi__file_create(folder, name, mode, &file);
    if (code)
        return code;
    for (i = 0; i < count && !code; i++) {
        const unsigned char *bytes = (const unsigned char *)pieces[i].data;
        size_t have = 0, step;
        while (!code && have < pieces[i].size) {
            code = gpi__file_write_some(file, bytes + have, pieces[i].size - have, &step);
            have += step;
        }
    }
    close_code = gpi__file_close(file); /* network file systems tell of a full disk only here */
    if (!code)
        code = close_code;
    if (code)
        gpi__file_remove(folder, name);
    return code;
}

/* The path, behind the current folder where it is not absolute and that is known: the program may change it later. */
static void gpi__append_absolute(gpi__text *text, const char *path) {
    char current[GPI__PATH_SIZE];
    if (!gpi__is_absolute(path) && gpi__current_folder(current, sizeof current) == 0)
        gpi__append(text, "%s/", current);
    gpi__append(text, "%s", path);
}

static long gpi__file_counter; /* of files written aside by this process */

/* Puts a whole file in place of the one of that name, if there is one: it is written aside, as NAME.PID-COUNT.tmp, and
   renamed, so that nobody ever opens half of it. Of a NAME of more than 200 bytes the first 200 stand there. Not flushed to the
   disk: after a crash of the machine it may be torn, so what reads it must check it. */
static int gpi__file_store(const gpi__folder *folder, const char *name, unsigned mode,
                           const gpi__file_piece *pieces, int count) {
    char aside[512];
    int code = 0, attempt;
    /* other machines that share the folder, and containers, have processes with the same id */
    for (attempt = 0; attempt < 100; attempt++) {
        gpi__text text = gpi__text_in(aside, sizeof aside);
        gpi__append(&text, "%.200s.%lu-%lu.tmp", name, gpi__process_id(),
                    (unsigned long)gpi__add(&gpi__file_counter, 1));
        if (gpi__text_is_cut(&text))
            return GPI__FILE_LONG_NAME;
        code = gpi__file_write_new(folder, aside, mode, pieces, count);
        if (!gpi__file_exists_already(code))
            break;
    }
    if (!code) {
        code = gpi__file_rename(folder, aside, name);
        if (code)
            gpi__file_remove(folder, aside);
    }
    return code;
}

/* The same by a path, in place of a regular file or a link to one, if there is anything. */
static int gpi__file_store_path(const char *path, unsigned mode, const gpi__file_piece *pieces, int count) {
    char above[GPI__PATH_SIZE];
    size_t length = strlen(path);
    gpi__folder folder;
    gpi__file_info info;
    int code;
    while (length > 0 && !gpi__is_slash(path[length - 1]))
        length--;
    if (length >= sizeof above)
        return GPI__FILE_LONG_NAME;
    memcpy(above, length ? path : "./", length ? length : 2);
    above[length ? length : 2] = 0;
    code = gpi__folder_open(&folder, above);
    if (code)
        return code;
    memset(&info, 0, sizeof info);
    code = gpi__file_get_info(&folder, path[length] ? path + length : ".", &info);
    if (!code && !info.is_regular)
        code = GPI__FILE_NOT_REGULAR;
    else if (!code || gpi__file_is_missing(code))
        code = gpi__file_store(&folder, path + length, mode, pieces, count);
    gpi__folder_close(&folder);
    return code;
}

/* The length of NAME if this is what gpi__file_store calls a file while it writes NAME, else 0. */
static size_t gpi__file_aside_stem(const char *name) {
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
