/* Text built piece by piece into a buffer of fixed size. */
#ifndef GEMMEPI_BASE_TEXT_H
#define GEMMEPI_BASE_TEXT_H

#include "platform.h"

/* Appending never writes past size; length goes on counting, so that length >= size tells of a cut. */
typedef struct gemmepi__text {
    char *data;
    size_t size;
    size_t length;
} gemmepi__text;

static gemmepi__text gemmepi__text_in(char *data, size_t size) {
    gemmepi__text text;
    text.data = data;
    text.size = data ? size : 0;
    text.length = 0;
    if (text.size != 0)
        data[0] = 0;
    return text;
}

GEMMEPI__PRINTF(2, 3)
static void gemmepi__append(gemmepi__text *text, const char *format, ...) {
    size_t left = text->length < text->size ? text->size - text->length : 0;
    int written;
    va_list arguments;
    va_start(arguments, format);
    written = vsnprintf(left ? text->data + text->length : NULL, left, format, arguments);
    va_end(arguments);
    if (written > 0)
        text->length += (size_t)written;
}

static int gemmepi__text_is_cut(const gemmepi__text *text) {
    return text->length >= text->size;
}

/* Whether a field's name goes on. */
static int gemmepi__is_word(char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
}

#endif
