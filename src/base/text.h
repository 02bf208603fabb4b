/* Text built piece by piece into a buffer of fixed size. */
#ifndef GEMMEPI_BASE_TEXT_H
#define GEMMEPI_BASE_TEXT_H

#include "platform.h"

/* Appending never writes past size; length goes on counting, so that length >= size tells of a cut. */
typedef struct gpi__text {
    char *data;
    size_t size;
    size_t length;
} gpi__text;

static gpi__text gpi__text_in(char *data, size_t size) {
    gpi__text text;
    text.data = data;
    text.size = data ? size : 0;
    text.length = 0;
    if (text.size != 0)
        data[0] = 0;
    return text;
}

GPI__PRINTF(2, 3)
static void gpi__append(gpi__text *text, const char *format, ...) {
    size_t left = text->length < text->size ? text->size - text->length : 0;
    int written;
    va_list arguments;
    va_start(arguments, format);
    written = vsnprintf(left ? text->data + text->length : NULL, left, format, arguments);
    va_end(arguments);
    if (written > 0)
        text->length += (size_t)written;
}

static int gpi__text_is_cut(const gpi__text *text) {
    return text->length >= text->size;
}

/* Whether a field's name goes on. */
static int gpi__is_word(char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
}

#endif
