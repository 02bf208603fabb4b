/* A text that is parsed: its tokens, and the sentence that tells where the first mistake is. */
#ifndef GEMMEPI_FORMULA_PARSER_H
#define GEMMEPI_FORMULA_PARSER_H

#include "operands.h"

typedef struct gpi__local {
    const char *name;
    int16_t length, node, is_read;
} gpi__local;

typedef struct gpi__parser {
    gpi__graph *graph;
    const char *text;
    size_t at, token; /* where the next character is, and where the last token began */
    int depth;
    int is_of_widths;    /* the mistake is one that may be none for an n of the other width */
    const int16_t *rule; /* the nodes of a rule's x, y, z, r and g, or of a written function's; else NULL */
    const char *whole;   /* the text that calls a written function, whose own is parsed; else NULL */
    const char *called;  /* its name */
    int call;            /* and where it stands */
    int local_count;
    gpi__local locals[GPI__FORMULA_CHARACTERS / 4];
} gpi__parser;

enum { GPI__PLACE_TEXT = 64 };

/* "desc.formula, line 2, column 17"; at -1: "desc.formula". */
static const char *gpi__name_place(const char *text, int at, char place[GPI__PLACE_TEXT]) {
    char line[24] = "";
    int i, start = 0, lines = 1;
    for (i = 0; i < at; i++)
        if (text[i] == '\n')
            lines++, start = i + 1;
    if (lines > 1)
        snprintf(line, sizeof line, "line %d, ", lines);
    if (at < 0)
        snprintf(place, GPI__PLACE_TEXT, "desc.formula");
    else
        snprintf(place, GPI__PLACE_TEXT, "desc.formula, %scolumn %d", line, at - start + 1);
    return place;
}

/* Notes "desc.formula, column 17: " and the rest; -1. */
GPI__PRINTF(3, 4)
static int gpi__refuse(const gpi__parser *p, size_t at, const char *format, ...) {
    char what[512], place[GPI__PLACE_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    (void)gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s: %s",
                    gpi__name_place(p->whole ? p->whole : p->text, p->whole ? p->call : (int)at, place),
                    what);
    return -1;
}

/* >>tokens */

/* Where the next token begins, over blanks and comments; of a comment that has no end where that begins. */
static size_t gpi__next_token(const char *text, size_t at) {
    const char *end;
    for (;;) {
        while (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r')
            at++;
        if (text[at] != '/' || (text[at + 1] != '/' && text[at + 1] != '*'))
            return at;
        if (text[at + 1] == '/') {
            while (text[at] && text[at] != '\n')
                at++;
        } else {
            end = strstr(text + at + 2, "*/");
            if (!end)
                return at;
            at = (size_t)(end - text) + 2;
        }
    }
}

/* To the next token, whose place is noted. 0: a comment has no end. */
static int gpi__skip_blanks(gpi__parser *p) {
    p->at = p->token = gpi__next_token(p->text, p->at);
    return p->text[p->at] != '/' || p->text[p->at + 1] != '*';
}

/* Goes past this sign if it is the next token, and returns whether it is. */
static int gpi__accept(gpi__parser *p, const char *sign) {
    size_t length = strlen(sign);
    if (!gpi__skip_blanks(p) || strncmp(p->text + p->at, sign, length) != 0)
        return 0;
    p->at += length;
    return 1;
}

/* What stands there, for a sentence. */
static const char *gpi__found(const gpi__parser *p, char *room, size_t size) {
    const char *at = p->text + p->token;
    size_t length = gpi__name_length(at);
    unsigned char c = (unsigned char)*at;
    if (length == 0)
        length = gpi__number_length(at);
    if (c == 0)
        snprintf(room, size, "the end");
    else if (length)
        snprintf(room, size, "%.*s", (int)(length > 60 ? 60 : length), at);
    else if (c < 32 || c > 126)
        snprintf(room, size, "the byte 0x%02x", c);
    else
        snprintf(room, size, "'%c'", c);
    return room;
}

static int gpi__refuse_token(gpi__parser *p, const char *wanted) {
    const char *at;
    char room[72];
    if (!gpi__skip_blanks(p))
        return gpi__refuse(p, p->token, "a comment begins that has no end: */ is missing");
    at = p->text + p->token;
    return gpi__refuse(
        p, p->token, "%s is not expected here, but %s%s", gpi__found(p, room, sizeof room), wanted,
        *at == '^' || (*at == '*' && p->token && at[-1] == '*') ? "; a power is pow(x, y)"
        : *at && strchr("+-*/", *at) && at[1] == '=' ? "; to add to d write d = c + v with an input c, "
                                                       "and likewise with -, * and /"
                                                     : "");
}

static int gpi__want(gpi__parser *p, const char *sign, const char *wanted) {
    return gpi__accept(p, sign) ? 0 : gpi__refuse_token(p, wanted);
}

#endif
