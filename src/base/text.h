/* Text built piece by piece into a buffer of fixed size, or into one that grows. */
#ifndef GEMMEPI_BASE_TEXT_H
#define GEMMEPI_BASE_TEXT_H

#include "memory.h"

/* Appending never writes past size; length goes on counting, so that length >= size tells of a cut. */
typedef struct gpi__text {
    char *data;
    size_t size;
    size_t length;
    const gemmepi_allocator *grows; /* NULL: it does not */
} gpi__text;

static gpi__text gpi__text_in(char *data, size_t size) {
    gpi__text text;
    text.data = data;
    text.size = data ? size : 0;
    text.length = 0;
    text.grows = NULL;
    if (text.size != 0)
        data[0] = 0;
    return text;
}

#define GPI__TEXT_BEGINS 16384 /* longer than most that are compiled */

/* Text of any length. Its data is to be given to gpi__delete; NULL: there was no memory for it, with the sentence noted. */
static gpi__text gpi__growing_text(const gemmepi_allocator *allocator) {
    gpi__text text = gpi__text_in((char *)gpi__new(allocator, GPI__TEXT_BEGINS), GPI__TEXT_BEGINS);
    text.grows = allocator;
    return text;
}

/* Makes room for a text that has become too long: whether there is memory for it. */
static int gpi__grow_text(gpi__text *text) {
    size_t size = 2 * (text->length + 1);
    char *data = text->data ? (char *)gpi__new(text->grows, size) : NULL;
    if (data)
        memcpy(data, text->data, text->size);
    gpi__delete(text->grows, text->data);
    text->data = data;
    text->size = data ? size : 0;
    return data != NULL;
}

GPI__PRINTF(2, 3)
static void gpi__append(gpi__text *text, const char *format, ...) {
    size_t before = text->length, left;
    int written;
    va_list arguments;
    do {
        left = before < text->size ? text->size - before : 0;
        va_start(arguments, format);
        written = vsnprintf(left ? text->data + before : NULL, left, format, arguments);
        va_end(arguments);
        if (written > 0)
            text->length = before + (size_t)written;
    } while (text->grows && text->length >= text->size && gpi__grow_text(text));
}

static int gpi__text_is_cut(const gpi__text *text) {
    return text->length >= text->size;
}

/* Whether a field's name goes on. */
static int gpi__is_word(char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
}

#endif
