/* What was compiled, to look at: config.dump_path. */
#ifndef GEMMEPI_DEVICE_DUMP_H
#define GEMMEPI_DEVICE_DUMP_H

#include "compile.h"
#include "context.h"

/* The source's lines with each file that they include in place, once. #line and #pragma once would only confuse a compiler
   that is given the whole. */
static void gemmepi__append_source(gemmepi__text *text, const gemmepi__source *source,
                                   gemmepi__source_set *seen) {
    const char *const *part;
    gemmepi__add_source(seen, (int)(source - gemmepi__sources));
    for (part = source->parts; *part; part++) {
        const char *line = *part, *end;
        for (; *line; line = end) {
            int included;
            end = strchr(line, '\n');
            end = end ? end + 1 : line + strlen(line);
            included = gemmepi__included_by_line(gemmepi__sources, line);
            if (included >= 0 && !gemmepi__has_source(seen, included))
                gemmepi__append_source(text, &gemmepi__sources[included], seen);
            if (included < 0 && strncmp(line, "#line ", 6) != 0 && strncmp(line, "#pragma once", 12) != 0)
                gemmepi__append(text, "%.*s", (int)(end - line), line);
        }
    }
}

/* From the allocator, or NULL. */
static char *gemmepi__whole_source(const gemmepi_allocator *allocator, const gemmepi__source *source,
                                   const char *prologue) {
    char *data = NULL;
    size_t size = 0;
    int pass;
    for (pass = 0; pass < 2; pass++) { /* the first measures */
        gemmepi__text text = gemmepi__text_in(data, size);
        gemmepi__source_set seen;
        memset(&seen, 0, sizeof seen);
        gemmepi__append(&text, "%s", prologue);
        gemmepi__append_source(&text, source, &seen);
        size = text.length + 1;
        if (!pass)
            data = (char *)gemmepi__new(allocator, size);
        if (!data)
            return NULL;
    }
    return data;
}

/* Puts NAME.KIND in place of what the folder has of that name. Returns the system's error code. */
static int gemmepi__dump_file(const gemmepi__folder *folder, const char *name, const char *kind,
                              const void *data, size_t size) {
    char file[GEMMEPI__KERNEL_NAME + 8];
    gemmepi__file_piece piece;
    snprintf(file, sizeof file, "%s.%s", name, kind);
    piece.data = data;
    piece.size = size;
    return gemmepi__file_store(folder, file, GEMMEPI__FILE_FOR_USER, &piece, 1);
}

/* Needs no lock. */
static void gemmepi__dump_kernel(const gemmepi_context *context, const gemmepi__source *source,
                                 const char *prologue, const char *name, const gemmepi__target *target,
                                 const gemmepi__image *image) {
    const char *ptx = target->is_ptx ? image->data : image->ptx;
    char *text = gemmepi__whole_source(&context->allocator, source, prologue), reason[256];
    gemmepi__text why = gemmepi__text_in(reason, sizeof reason);
    gemmepi__folder folder;
    int code = gemmepi__folder_make(context->dump_path);
    if (!code)
        code = gemmepi__folder_open(&folder, context->dump_path);
    if (!code) {
        code = text ? gemmepi__dump_file(&folder, name, "cu", text, strlen(text)) : GEMMEPI__FILE_NO_MEMORY;
        if (!code && ptx)
            code = gemmepi__dump_file(&folder, name, "ptx", ptx, strlen(ptx));
        if (!code && !target->is_ptx)
            code = gemmepi__dump_file(&folder, name, "cubin", image->data, image->size);
        gemmepi__folder_close(&folder);
    }
    gemmepi__delete(&context->allocator, text);
    if (!code)
        return;
    gemmepi__file_error(&why, code);
    gemmepi__say(&context->log, GEMMEPI_LOG_WARNING, "%s cannot be written to config.dump_path (%s): %s",
                 name, context->dump_path, reason);
}

#endif
