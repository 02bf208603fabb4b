/* How far a long run is, on stderr: on a terminal a bar with the time left, elsewhere a line for each tenth. */
#ifndef GEMMEPI_BENCH_PROGRESS_H
#define GEMMEPI_BENCH_PROGRESS_H

#include <unistd.h>

#include "bench.h"

enum { PROGRESS_TEXT = 160, PROGRESS_TIME = 32 };

typedef struct progress {
    const char *what; /* is counted, such as "rows" */
    int total, done;
    int told; /* done when a line was written last */
    int terminal;
    double began;
} progress;

static void progress_begin(progress *p, const char *what, int total) {
    memset(p, 0, sizeof *p);
    p->what = what;
    p->total = total;
    p->terminal = isatty(2);
    p->began = bench_seconds();
}

/* "0:07", "12:30", "1:02:03" */
static void progress_time(double seconds, char *text, size_t size) {
    long all = seconds < 0 ? 0 : (long)(seconds + 0.5);
    if (all < 3600)
        snprintf(text, size, "%ld:%02ld", all / 60, all % 60);
    else
        snprintf(text, size, "%ld:%02ld:%02ld", all / 3600, all / 60 % 60, all % 60);
}

/* After so many seconds: what is left takes as long as what is done took. "" where nothing is done. */
static void progress_left(const progress *p, double seconds, char *text, size_t size) {
    char time[PROGRESS_TIME];
    text[0] = 0;
    if (!p->done)
        return;
    progress_time(seconds / p->done * (p->total - p->done), time, sizeof time);
    snprintf(text, size, ", %s left", time);
}

/* "[#####...............] 15/60 rows, 3:05 left  name" */
static void progress_bar(const progress *p, double seconds, const char *name, char *text, size_t size) {
    static const char full[] = "####################", none[] = "....................";
    int width = (int)sizeof full - 1, filled = (int)((long)width * p->done / p->total);
    char left[PROGRESS_TIME + 16];
    progress_left(p, seconds, left, sizeof left);
    snprintf(text, size, "[%.*s%.*s] %d/%d %s%s  %.30s", filled, full, width - filled, none, p->done,
             p->total, p->what, left, name);
}

/* "20 %: 12 of 60 rows, 0:46, 3:05 left" */
static void progress_line(const progress *p, double seconds, char *text, size_t size) {
    char left[PROGRESS_TIME + 16], time[PROGRESS_TIME];
    progress_left(p, seconds, left, sizeof left);
    progress_time(seconds, time, sizeof time);
    snprintf(text, size, "%d %%: %d of %d %s, %s%s", (int)(100L * p->done / p->total), p->done, p->total,
             p->what, time, left);
}

/* Takes the bar away, so that something else can be printed. */
static void progress_wipe(const progress *p) {
    fflush(stdout);
    if (p->terminal)
        fprintf(stderr, "\r\033[K");
}

/* With `name` under way. */
static void progress_show(progress *p, const char *name) {
    char text[PROGRESS_TEXT];
    double seconds = bench_seconds() - p->began;
    if (p->terminal) {
        progress_bar(p, seconds, name, text, sizeof text);
        fprintf(stderr, "\r\033[K%s", text);
    } else if (10L * p->done / p->total > 10L * p->told / p->total) {
        progress_line(p, seconds, text, sizeof text);
        fprintf(stderr, "%s\n", text);
        p->told = p->done;
    }
    fflush(stderr);
}

#endif
