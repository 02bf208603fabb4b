/* Numbers as text, in locales whose point is a comma or has several bytes: they are pretended, as few machines have them. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "test.h"

static const char *point = "."; /* the pretended locale's */

/* The text with one point in place of another. */
static void exchange_point(char *out, size_t size, const char *from, const char *old, const char *new_point) {
    const char *at = strstr(from, old);
    if (at)
        snprintf(out, size, "%.*s%s%s", (int)(at - from), from, new_point, at + strlen(old));
    else
        snprintf(out, size, "%s", from);
}

static int print_there(char *out, size_t size, const char *format, ...) {
    char plain[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(plain, sizeof plain, format, arguments);
    va_end(arguments);
    exchange_point(out, size, plain, ".", point);
    return (int)strlen(out);
}

static double read_there(const char *text, char **end) {
    char plain[1100];
    exchange_point(plain, sizeof plain, text, point, ".");
    return strtod(plain, end);
}

#define snprintf print_there
#define strtod   read_there
#include "formula/number.h"
#undef snprintf
#undef strtod

static const char *const points[] = {".", ",", "\xd9\xab", "\xe2\x8e\x96"};

/* Numbers of every size, of few digits and of many. */
static double drawn_number(void) {
    double x = (double)below(1 << 24) * (one_in(2) ? 1 : 1e-4);
    int i;
    if (one_in(2))
        x += (double)below(1 << 20) / (double)(1 << 20);
    for (i = below(12); i > 0; i--)
        x *= one_in(2) ? 1e7 : 1.25e-8;
    return one_in(3) ? -x : x;
}

/* The digits of a number, the zeros at either end aside. */
static int digits_of(const char *text) {
    int count = 0, zeros = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (count || *text != '0')) {
            zeros = *text == '0' ? zeros + 1 : 0;
            count++;
        }
    return count - zeros;
}

static void check_number(double x) {
    char text[GPI__NUMBER_SIZE], shorter[GPI__NUMBER_SIZE], *end;
    double magnitude = x < 0 ? -x : x;
    int digits;
    gpi__print_number(text, x);
    CHECK(strtod(text, &end) == x && *end == 0, "%.17g is %s with the point %s", x, text, point);
    CHECK(gpi__number_length(text[0] == '-' ? text + 1 : text) == strlen(text) - (text[0] == '-'),
          "of %s less is read", text);
    CHECK(gpi__number_of(text, strlen(text)) == x, "%s is read as another with the point %s", text, point);
    digits = digits_of(text);
    if (digits > 1) {
        snprintf(shorter, sizeof shorter, "%.*e", digits - 2, x);
        CHECK(strtod(shorter, NULL) != x, "%s is longer than %s", text, shorter);
    }
    CHECK(!(magnitude >= 1 && magnitude < 1e6 && strchr(text, 'e')), "%s has an exponent", text);
}

static void numbers_read_back_whatever_the_point(void) {
    static const double few[] = {0,       0.5,      1,     30,     1e5,    999999, 1e6,     1e-5, 0.1,
                                 1.0 / 3, 999999.5, 1e300, 1e-300, 4e-320, 12.25,  1048576, 1e15, 123456.75};
    size_t p, i;
    for (p = 0; p < GPI__COUNT(points); p++) {
        point = points[p];
        draw_from_seed(3);
        for (i = 0; i < GPI__COUNT(few); i++)
            check_number(few[i]), check_number(-few[i]);
        for (i = 0; i < 4000; i++)
            check_number(drawn_number());
    }
    point = ".";
}

/* What follows a number is none of it. */
static void numbers_end_where_they_end(void) {
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {{"", 0},       {".", 0},     {"e5", 0},    {".e5", 0},   {"1", 1},      {"1.", 2},
                 {".5", 2},     {"1.5.5", 3}, {"1e5", 3},   {"1E+5x", 4}, {"1e-12 ", 5}, {"1e", 1},
                 {"1e+", 1},    {"1e-x", 1},  {"2.e3", 4},  {"0x10", 1},  {"9:", 1},     {"0/", 1},
                 {"12e3e4", 4}, {"-1", 0},    {"1e5.5", 3}, {"007", 3},   {"1ee5", 1},   {"..5", 0}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++)
        CHECK(gpi__number_length(cases[i].text) == cases[i].length, "%s: %d", cases[i].text,
              (int)gpi__number_length(cases[i].text));
}

/* Digits before and behind the point, to the longest text that is accepted. */
static void a_long_number_is_read_whole(void) {
    char text[1001];
    size_t p, length, at;
    for (p = 0; p < GPI__COUNT(points); p++)
        for (length = 3; length < sizeof text - 1; length++)
            for (at = 1; at < length - 1;
                 at += at == 1 ? length - 3 : 1) { /* the first place, and the last but one */
                point = points[p];
                memset(text, '0', sizeof text);
                text[at] = '.', text[at - 1] = '4', text[length] = '7'; /* what follows is none of it */
                CHECK(gpi__number_of(text, length) == 4, "%d characters: %g", (int)length,
                      gpi__number_of(text, length));
                if (length == 3)
                    break;
            }
    point = ".";
}

int main(void) {
    RUN(numbers_read_back_whatever_the_point);
    RUN(numbers_end_where_they_end);
    RUN(a_long_number_is_read_whole);
    return test_finish();
}
