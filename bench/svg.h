/* What the charts share: the document on its own ground, light or dark as the viewer is, text, and the keys of a legend. */
#ifndef GEMMEPI_BENCH_SVG_H
#define GEMMEPI_BENCH_SVG_H

#include <stdio.h>

/* The chart's own rules of style, for light viewers and for dark ones. */
static void svg_begin(FILE *file, int width, int height, const char *light, const char *dark) {
    fprintf(
        file,
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif' "
        "font-size='13'>\n<style>\n"
        "text { fill: #333 } path { stroke: #ddd } .one { stroke: #333; stroke-width: 1.5 }\n"
        ".title { font-size: 16px; font-weight: bold } .ground { fill: #fff }\n%s"
        "@media (prefers-color-scheme: dark) {\n"
        "    .ground { fill: #16191d } text { fill: #ccc } path { stroke: #3a3f46 } .one { stroke: #eee }\n"
        "%s}\n</style>\n<rect class='ground' width='%d' height='%d'/>\n",
        width, height, light, dark, width, height);
}

static void svg_end(FILE *file) {
    fputs("</svg>\n", file);
}

/* Any text, such as a device's name. */
static void svg_escape(FILE *file, const char *text) {
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", file);
            break;
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        default:
            fputc(*text, file);
        }
}

/* class_name "": none */
static void svg_text(FILE *file, const char *class_name, double x, double y, const char *text) {
    if (class_name[0])
        fprintf(file, "<text class='%s' x='%.1f' y='%.1f'>", class_name, x, y);
    else
        fprintf(file, "<text x='%.1f' y='%.1f'>", x, y);
    svg_escape(file, text);
    fputs("</text>\n", file);
}

/* A square of a series and what it stands for. */
static void svg_key(FILE *file, const char *class_name, int x, int y, const char *text) {
    fprintf(file, "<rect class='%s' x='%d' y='%d' width='12' height='12'/>", class_name, x, y - 10);
    svg_text(file, "", x + 18, y, text);
}

#endif
