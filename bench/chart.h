/* The chart of some products as SVG: a panel for each of four epilogues, in it bars for each shape. */
#ifndef GEMMEPI_BENCH_CHART_H
#define GEMMEPI_BENCH_CHART_H

#include "bench.h"
#include "svg.h"

enum { CHART_OURS, CHART_LT, CHART_PASS, CHART_BARS };

/* class in the SVG, legend and where it stands */
static const struct {
    const char *class_name, *legend;
    int x;
} chart_bars[CHART_BARS] = {
    {"ours", "gemmepi", 60},
    {"lt", "cuBLASLt's own epilogue (no bar: it has none)", 180},
    {"pass", "cuBLASLt's product, then a pass of gemmepi", 540},
};

/* Which rows are drawn. */
static const char *const chart_panels[] = {"BIAS GELU_TANH", "BIAS SILU", "BIAS GELU_TANH AUX",
                                           "BIAS SWIGLU"};

enum { CHART_PANELS = COUNT(chart_panels), CHART_MOST_GROUPS = 16 };

/* Lengths in the SVG's units. */
enum {
    CHART_WIDTH = 1200,
    CHART_HEAD = 84, /* above the panels */
    CHART_LEFT = 60, /* of the first panel's plot, */
    CHART_TOP = 30,  /* from the panel's upper end to its plot's, */
    CHART_PLOT_WIDTH = 530,
    CHART_PLOT_HEIGHT = 210,
    CHART_STEP = 600,    /* from a panel to the next beside it, */
    CHART_PANEL = 300,   /* and to the next below it */
    CHART_BAR_MOST = 24, /* of a bar and the gap behind it */
    CHART_LEGEND_Y = 64
};

typedef struct chart_group {
    int64_t m, n, k;
    double ratios[CHART_PANELS][CHART_BARS]; /* to the bare product's time; 0: no bar */
} chart_group;

typedef struct chart {
    chart_group groups[CHART_MOST_GROUPS];
    int count;
} chart;

/* >>what is drawn */

static chart_group *chart_find(chart *c, const bench_row *row) {
    chart_group *g = c->groups;
    while (g < c->groups + c->count && (g->m != row->m || g->n != row->n || g->k != row->k))
        g++;
    if (g == c->groups + CHART_MOST_GROUPS)
        return NULL;
    if (g == c->groups + c->count) {
        c->count++;
        g->m = row->m, g->n = row->n, g->k = row->k;
    }
    return g;
}

/* Takes a row of products if it is one to be drawn. */
static void chart_add(chart *c, const bench_row *row, double ours, double lt, double pass) {
    chart_group *group;
    int panel = 0;
    while (panel < CHART_PANELS && strcmp(chart_panels[panel], row->epilogue) != 0)
        panel++;
    group = row->drawn && panel < CHART_PANELS ? chart_find(c, row) : NULL;
    if (!group)
        return;
    group->ratios[panel][CHART_OURS] = ours;
    group->ratios[panel][CHART_LT] = lt;
    group->ratios[panel][CHART_PASS] = pass;
}

static int chart_has(const chart *c, int panel) {
    int i;
    for (i = 0; i < c->count; i++)
        if (c->groups[i].ratios[panel][CHART_OURS] > 0)
            return 1;
    return 0;
}

/* The upper end of all axes: 1.25 to 2.5, by quarters. Higher bars are cut off, their numbers are not. */
static double chart_upper(const chart *c) {
    double most = 1.2;
    int i, panel, bar;
    for (i = 0; i < c->count; i++)
        for (panel = 0; panel < CHART_PANELS; panel++)
            for (bar = 0; bar < CHART_BARS; bar++)
                most = fmax(most, c->groups[i].ratios[panel][bar]);
    return fmin(2.5, ceil(4 * (most + 0.05)) / 4);
}

/* >>how */

static double chart_y(double top, double upper, double ratio) {
    return top + CHART_PLOT_HEIGHT * (1 - fmin(ratio, upper) / upper);
}

static void chart_axes(FILE *file, double left, double top, double upper, const char *title) {
    double ratio;
    fprintf(file, "<text class='title' x='%.0f' y='%.0f'>%s</text>\n", left, top - 12, title);
    for (ratio = 0; ratio < upper + 0.01; ratio += 0.25)
        fprintf(file, "<path d='M%.0f %.1fh%d'/><text x='%.0f' y='%.1f' text-anchor='end'>%.2f</text>\n",
                left, chart_y(top, upper, ratio), CHART_PLOT_WIDTH, left - 6, chart_y(top, upper, ratio) + 4,
                ratio);
    fprintf(file,
            "<text transform='translate(%.0f %.0f) rotate(-90)' text-anchor='middle'>time / bare "
            "product's</text>\n",
            left - 42, top + CHART_PLOT_HEIGHT / 2);
}

static void chart_bar(FILE *file, int bar, double x, double width, double top, double upper, double ratio) {
    double y = chart_y(top, upper, ratio);
    fprintf(file, "<rect class='%s' x='%.1f' y='%.1f' width='%.1f' height='%.1f'/>",
            chart_bars[bar].class_name, x, y, width - 1, top + CHART_PLOT_HEIGHT - y);
    fprintf(file, "<text class='small' x='%.1f' y='%.1f'>%.2f</text>\n", x + (width - 1) / 2,
            fmin(y, chart_y(top, upper, 1)) - 3, ratio);
}

static void chart_panel(FILE *file, const chart *c, int panel, double left, double top, double upper) {
    double group = (double)CHART_PLOT_WIDTH / c->count,
           width = fmin(CHART_BAR_MOST, 0.9 * group / CHART_BARS);
    int i, bar;
    chart_axes(file, left, top, upper, chart_panels[panel]);
    for (i = 0; i < c->count; i++) {
        const chart_group *g = c->groups + i;
        double middle = left + (i + 0.5) * group, bottom = top + CHART_PLOT_HEIGHT;
        for (bar = 0; bar < CHART_BARS; bar++)
            if (g->ratios[panel][bar] > 0)
                chart_bar(file, bar, middle + (bar - CHART_BARS / 2.0) * width, width, top, upper,
                          g->ratios[panel][bar]);
        fprintf(file,
                "<text class='shape' x='%.1f' y='%.1f'>%ld x %ld</text>"
                "<text class='shape' x='%.1f' y='%.1f'>x %ld</text>\n",
                middle, bottom + 16, (long)g->m, (long)g->n, middle, bottom + 30, (long)g->k);
    }
    fprintf(file, "<path class='one' d='M%.0f %.1fh%d'/>\n", left, chart_y(top, upper, 1), CHART_PLOT_WIDTH);
}

static void chart_head(FILE *file, const char *device) {
    char text[300];
    int bar;
    svg_text(file, "title", CHART_LEFT, 24,
             "Products with an epilogue: time / time of cuBLASLt's fastest bare product");
    snprintf(text, sizeof text, "%s, BF16, m x n x k, medians of one run; lower is better", device);
    svg_text(file, "", CHART_LEFT, 44, text);
    for (bar = 0; bar < CHART_BARS; bar++)
        svg_key(file, chart_bars[bar].class_name, chart_bars[bar].x, CHART_LEGEND_Y, chart_bars[bar].legend);
}

static const char chart_light[] = ".shape, .small { text-anchor: middle } .shape { font-size: 11px } "
                                  ".small { font-size: 9.5px }\n"
                                  ".ours { fill: #1f6fd0 } .lt { fill: #e08a3c } .pass { fill: #a3a9b2 }\n";

static const char chart_dark[] =
    "    .ours { fill: #5a9cf0 } .lt { fill: #e39a55 } .pass { fill: #747b85 }\n";

/* Panels without a bar are left out. */
static void chart_write(const chart *c, FILE *file, const char *device) {
    int panel, shown = 0;
    for (panel = 0; panel < CHART_PANELS; panel++)
        shown += chart_has(c, panel);
    svg_begin(file, CHART_WIDTH, CHART_HEAD + (shown + 1) / 2 * CHART_PANEL, chart_light, chart_dark);
    chart_head(file, device);
    shown = 0;
    for (panel = 0; panel < CHART_PANELS; panel++)
        if (chart_has(c, panel)) {
            chart_panel(file, c, panel, CHART_LEFT + shown % 2 * CHART_STEP,
                        CHART_HEAD + shown / 2 * CHART_PANEL + CHART_TOP, chart_upper(c));
            shown++;
        }
    svg_end(file);
}

#endif
