/* What examples/parallel.c has measured, as a table and as bars in an SVG. */
#ifndef PARALLEL_REPORT_H
#define PARALLEL_REPORT_H

#include <math.h>
#include <stdio.h>

/* Seconds of one step with so many ranks; 0: not measured. */
typedef struct timing {
    double plain, overlapped; /* sums after products, and at the same time */
    double sums;              /* all-reduces of a step, with nothing else running */
    int overlaps;             /* whether the program's steps do */
} timing;

static double step_of(const timing *is) {
    return is->overlaps ? is->overlapped : is->plain;
}

static void show_number(const char *format, double value, double scale) {
    char text[32] = "-";
    if (value > 0)
        snprintf(text, sizeof text, format, value * scale);
    printf("  %15s", text);
}

/* of: by the number of ranks, up to most. unit: what a rank is. */
static void show_table(const timing *of, int most, const char *unit) {
    printf("\n%4ss  %15s  %15s  %15s  %15s  %15s  %15s\n", unit, "step, ms", "speed-up", "overlap, ms",
           "no overlap, ms", "all-reduce, ms", "of the step");
    for (int i = 1; i <= most; i++) {
        const timing *is = &of[i];
        const double step = step_of(is);
        if (step == 0)
            continue;
        printf("%5d", i);
        show_number("%.3f", step, 1e3);
        show_number("%.2f", of[1].plain / step, 1);
        show_number("%.3f", is->overlapped, 1e3);
        show_number("%.3f", is->plain, 1e3);
        show_number("%.3f", is->sums, 1e3);
        show_number("%.1f %%", is->sums / step, 1e2);
        putchar('\n');
    }
    printf(
        "A step is forward, backward and update. Without overlap products and sums each have all of the GPU; "
        "all-reduce is only its sums.\n");
    for (int i = 2; i <= most; i++) {
        const double step = step_of(&of[i]), other = of[i].overlaps ? of[i].plain : of[i].overlapped;
        if (step > 0 && other < 0.98 * step)
            printf("%d %ss: --%soverlap takes %.2f of this step\n", i, unit, of[i].overlaps ? "no-" : "",
                   other / step);
    }
}

/* The plot's rectangle, and the height of one bar with the gap below it. */
enum { LEFT = 88, RIGHT = 520, TOP = 92, BAR = 19, GAP = 16 };

static double bar_length(double time, double longest) {
    return (RIGHT - LEFT) * time / longest;
}

/* Returns the y of what comes next. */
static double write_bar(FILE *file, const char *class, double y, double time, double longest,
                        const char *more) {
    if (time == 0)
        return y;
    const double length = bar_length(time, longest);
    fprintf(file, "<rect class='%s' x='%d' y='%.0f' width='%.1f' height='%d'/>", class, LEFT, y, length,
            BAR - 3);
    fprintf(file, "<text x='%.1f' y='%.0f'>%.3g ms%s</text>\n", LEFT + length + 6, y + 13, time * 1e3, more);
    return y + BAR;
}

static double write_group(FILE *file, const timing *of, int ranks, const char *unit, double y,
                          double longest) {
    const timing *is = &of[ranks];
    char more[48] = "";
    if (ranks > 1 && of[1].plain > 0)
        snprintf(more, sizeof more, ", %.2f times as fast", of[1].plain / step_of(is));
    fprintf(file, "<text x='%d' y='%.0f' text-anchor='end'>%d %s%s</text>\n", LEFT - 8, y + 13, ranks, unit,
            ranks == 1 ? "" : "s");
    double next = write_bar(file, "step", y, is->overlapped, longest, is->overlaps ? more : "");
    next = write_bar(file, "plain", next, is->plain, longest, is->overlaps ? "" : more);
    next = write_bar(file, "sums", next, is->sums, longest, "");
    if (*more)
        fprintf(file, "<path d='M%.1f %.0fV%.0f'/>\n", LEFT + bar_length(of[1].plain / ranks, longest), y - 3,
                next);
    return next + GAP;
}

static void write_legend(FILE *file) {
    static const char *const entries[4][2] = {{"step", "a step with overlap"},
                                              {"plain", "without overlap"},
                                              {"sums", "only its all-reduces"},
                                              {"", "one's time, divided"}};
    static const int places[4] = {0, 155, 290, 445};
    for (int i = 0; i < 4; i++) {
        const int x = LEFT + places[i];
        if (i < 3)
            fprintf(file, "<rect class='%s' x='%d' y='52' width='12' height='12'/>", entries[i][0], x);
        else
            fprintf(file, "<path d='M%d 50v16'/>", x + 6);
        fprintf(file, "<text x='%d' y='63'>%s</text>\n", x + 18, entries[i][1]);
    }
}

/* Returns 0 if the file cannot be written. */
static int write_svg(const char *path, const char *title, const timing *of, int most, const char *unit) {
    FILE *file = fopen(path, "w");
    double longest = 0, y = TOP;
    int height = TOP;
    if (!file)
        return 0;
    for (int i = 1; i <= most; i++) {
        const timing *is = &of[i];
        longest = fmax(longest, fmax(is->plain, is->overlapped));
        if (is->plain > 0)
            height += GAP + BAR * (1 + (is->overlapped > 0) + (is->sums > 0));
    }
    fprintf(
        file,
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 720 %d' font-family='sans-serif' font-size='13'>\n"
        "<style>\n"
        ".paper { fill: #fff } text { fill: #333 } path { stroke: #333; stroke-width: 2; stroke-dasharray: 3 }\n"
        ".step { fill: #1f6fd0 } .plain { fill: #9db8d9 } .sums { fill: #d9540f }\n"
        "@media (prefers-color-scheme: dark) {\n"
        "    .paper { fill: #16191d } text { fill: #ccc } path { stroke: #ccc }\n"
        "    .step { fill: #6aa9f4 } .plain { fill: #4d6482 } .sums { fill: #f59c5b }\n"
        "}\n"
        "</style>\n<title>%s</title>\n<rect class='paper' width='720' height='%d'/>\n"
        "<text x='%d' y='30' font-size='16'>%s</text>\n",
        height, title, height, LEFT, title);
    write_legend(file);
    for (int i = 1; i <= most; i++)
        if (of[i].plain > 0)
            y = write_group(file, of, i, unit, y, longest);
    fputs("</svg>\n", file);
    const int broken = ferror(file);
    return !fclose(file) && !broken;
}

#endif
