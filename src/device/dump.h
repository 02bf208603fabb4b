/* What was compiled, to look at: config.dump_path. */
#ifndef GEMMEPI_DEVICE_DUMP_H
#define GEMMEPI_DEVICE_DUMP_H

#include "compile.h"
#include "context.h"

/* Lines with each file that they include in place, once. #line and #pragma once would only confuse a compiler that is given the whole. */
static void gpi__append_whole(gpi__text *text, const char *line, gpi__source_set *seen) {
    const char *end, *const *part;
    for (; *line; line = end) {
        int included = gpi__included_by_line(gpi__sources, line);
        end = strchr(line, '\n');
        end = end ? end + 1 : line + strlen(line);
        if (included >= 0 && !gpi__has_source(seen, included)) {
            gpi__add_source(seen, included);
            for (part = gpi__sources[included].parts; *part; part++)
                gpi__append_whole(text, *part, seen);
        }
        if (included < 0 && strncmp(line, "#line ", 6) != 0 && strncmp(line, "#pragma once", 12) != 0)
            gpi__append(text, "%.*s", (int)(end - line), line);
    }
}

/* From the allocator, or NULL. */
static char *gpi__whole_source(const gemmepi_allocator *allocator, const gpi__source *source,
                               const char *prologue) {
    char *data = NULL;
    const char *const *part;
    size_t size = 0;
    int pass;
    for (pass = 0; pass < 2; pass++) { /* the first measures */
        gpi__text text = gpi__text_in(data, size);
        gpi__source_set seen;
        memset(&seen, 0, sizeof seen);
        gpi__append_whole(&text, prologue, &seen);
        for (part = source->parts; *part; part++)
            gpi__append_whole(&text, *part, &seen);
        size = text.length + 1;
        if (!pass)
            data = (char *)gpi__new(allocator, size);
        if (!data)
            return NULL;
    }
    return data;
}

/* Puts NAME.KIND in place of what the folder has of that name. Returns the system's error code. */
static int gpi__dump_file(const gpi__folder *folder, const char *name, const char *kind, const void *data,
                          size_t size) {
    char file[GPI__KERNEL_NAME + 8];
    gpi__file_piece piece;
    snprintf(file, sizeof file, "%s.%s", name, kind);
    piece.data = data;
    piece.size = size;
    return gpi__file_store(folder, file, GPI__FILE_FOR_USER, &piece, 1);
}

/* Needs no lock. */
static void gpi__dump_kernel(const gemmepi_context *context, const gpi__source *source, const char *prologue,
                             const char *name, const gpi__target *target, const gpi__image *image) {
    const char *ptx = target->is_ptx ? image->data : image->ptx;
    char *text = gpi__whole_source(&context->allocator, source, prologue), reason[256];
    gpi__text why = gpi__text_in(reason, sizeof reason);
    gpi__folder folder;
    int code = gpi__folder_make(context->dump_path);
    if (!code)
        code = gpi__folder_open(&folder, context->dump_path);
    if (!code) {
        code = text ? gpi__dump_file(&folder, name, "cu", text, strlen(text)) : GPI__FILE_NO_MEMORY;
        if (!code && ptx)
            code = gpi__dump_file(&folder, name, "ptx", ptx, strlen(ptx));
        if (!code && !target->is_ptx)
            code = gpi__dump_file(&folder, name, "cubin", image->data, image->size);
        gpi__folder_close(&folder);
    }
    gpi__delete(&context->allocator, text);
    if (!code)
        return;
    gpi__file_error(&why, code);
    gpi__say(&context->log, GEMMEPI_LOG_WARNING, "%s cannot be written to config.dump_path (%s): %s", name,
             context->dump_path, reason);
}

#endif
