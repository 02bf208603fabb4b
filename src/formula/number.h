/* Numbers as text, whatever the program's locale is. */
#ifndef GEMMEPI_FORMULA_NUMBER_H
#define GEMMEPI_FORMULA_NUMBER_H

#include "../base/text.h"

enum { GPI__NUMBER_SIZE = 40 }; /* 17 digits, sign, exponent, and a point of several bytes */

static int gpi__is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The length of the number at the beginning of text: digits with a point or not, and an exponent or not; 0: there is none. */
static size_t gpi__number_length(const char *text) {
    size_t at = 0, digits = 0, exponent;
    for (; gpi__is_digit(text[at]); at++)
        digits++;
    if (text[at] == '.')
        for (at++; gpi__is_digit(text[at]); at++)
            digits++;
    if (digits == 0)
        return 0;
    if (text[at] == 'e' || text[at] == 'E') {
        exponent = at + 1 + (text[at + 1] == '+' || text[at + 1] == '-');
        if (gpi__is_digit(text[exponent]))
            for (at = exponent; gpi__is_digit(text[at]);)
                at++;
    }
    return at;
}

/* The number of so many characters, fewer than 1000. */
static double gpi__number_of(const char *text, size_t length) {
    char local[1024], half[GPI__NUMBER_SIZE];
    size_t i, at = 0, point;
    snprintf(half, sizeof half, "%.1f", 0.5); /* what stands between the digits is this locale's point */
    point = strlen(half) - 2;
    for (i = 0; i < length && at + point < sizeof local - 1; i++)
        if (text[i] == '.') {
            memcpy(local + at, half + 1, point);
            at += point;
        } else {
            local[at++] = text[i];
        }
    local[at] = 0;
    return strtod(local, NULL);
}

/* In as few digits as read back to the same bits; 30 and its kin without an exponent. */
static void gpi__print_number(char text[GPI__NUMBER_SIZE], double number) {
    double magnitude = number < 0 ? -number : number;
    char *from, *to = text;
    int digits, in_point = 0, is_plain = magnitude >= 1 && magnitude < 1e6;
    for (digits = 1; digits <= 17; digits++) {
        snprintf(text, GPI__NUMBER_SIZE, "%.*g", digits, number);
        if (strtod(text, NULL) == number && !(is_plain && strchr(text, 'e')))
            break;
    }
    for (from = text; *from; from++)
        if (gpi__is_digit(*from) || *from == '-' || *from == '+' || *from == 'e') {
            *to++ = *from;
            in_point = 0;
        } else if (!in_point) {
            *to++ = '.';
            in_point = 1;
        }
    *to = 0;
}

#endif
