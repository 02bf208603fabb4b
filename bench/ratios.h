/* The chart of outcomes as SVG: for each view (a mode, untuned or tuned) a line of ours over the best alternative, the products sorted
   by it. */
#ifndef GEMMEPI_BENCH_RATIOS_H
#define GEMMEPI_BENCH_RATIOS_H

#include "outcome.h"
#include "svg.h"

/* Lengths in the SVG's units. */
enum {
    RATIOS_WIDTH = 960,
    RATIOS_LEFT = 60, /* of the plot */
    RATIOS_PLOT_WIDTH = 840,
    RATIOS_PLOT_HEIGHT = 420,
    RATIOS_LEGEND_Y = 66, /* of the first view, */
    RATIOS_LEGEND_STEP = 19,
    RATIOS_GAP = 27,  /* from the legend to the plot, */
    RATIOS_FOOT = 50, /* and below the plot */
    RATIOS_TEXT = 400
};

/* What the axis shows at least, and at most: a ratio beyond is drawn at its end. */
#define RATIOS_LEAST_SHOWN  0.45
#define RATIOS_MOST_SHOWN   2.2
#define RATIOS_LOWEST_SHOWN 0.09
#define RATIOS_TOP_SHOWN    11.0

/* The bounds of the report stand on the right, where there is room between 1.00 and 1.02. */
static const struct {
    double ratio;
    const char *label;
    int is_bound;
} ratios_grid[] = {
    {0.1, "0.1", 0}, {0.25, "0.25", 0}, {0.5, "0.5", 0},   {0.75, "0.75", 0},
    {1, "1.0", 0},   {1.02, "1.02", 1}, {1.15, "1.15", 1}, {1.5, "1.5", 0},
    {2, "2", 0},     {4, "4", 0},       {8, "8", 0},
};

static const char ratios_light[] =
    ".end { text-anchor: end } .middle { text-anchor: middle } .bound { stroke: #b33; stroke-dasharray: 4 4 }\n"
    ".mode { fill: none; stroke: currentColor; stroke-width: 2 }\n"
    ".tuned { stroke-dasharray: 6 3 } .key { fill: currentColor }\n"
    ".graph { color: #1f6fd0 } .spaced { color: #c9661a } .burst { color: #2a8a4c } .stream { color: #8a56c2 }\n";

static const char ratios_dark[] =
    "    .bound { stroke: #e77 } .graph { color: #5a9cf0 } .spaced { color: #e39a55 }\n"
    "    .burst { color: #5cc585 } .stream { color: #b48af0 }\n";

/* What one view's line shows. */
typedef struct ratios_view {
    const outcome **sorted; /* the largest ratio first */
    int count;
    outcome_summary summary;
} ratios_view;

typedef struct ratios {
    ratios_view views[OUTCOME_VIEWS];
    double least, most; /* of the axis */
    int products;       /* of the view that has most */
    int top;            /* of the plot */
} ratios;

/* >>what is drawn */

static void ratios_close(ratios *r) {
    int view;
    for (view = 0; view < OUTCOME_VIEWS; view++)
        free(r->views[view].sorted);
}

static int ratios_take_view(ratios *r, const outcomes *list, int view) {
    ratios_view *m = &r->views[view];
    double *noises = malloc((size_t)(list->count + 1) * sizeof *noises);
    m->sorted = malloc((size_t)(list->count + 1) * sizeof *m->sorted);
    if (noises && m->sorted) {
        m->summary = outcomes_summarise(list, view, noises);
        m->count = outcomes_sort(list, view, m->sorted);
    }
    free(noises);
    if (m->count) {
        r->top += RATIOS_LEGEND_STEP;
        r->most = fmax(r->most, 1.05 * outcome_ratio(m->sorted[0]));
        r->least = fmin(r->least, 0.95 * outcome_ratio(m->sorted[m->count - 1]));
    }
    if (m->count > r->products)
        r->products = m->count;
    return noises && m->sorted;
}

/* ratios_close takes whatever this leaves. Returns 0 where there is no memory. */
static int ratios_take(ratios *r, const outcomes *list) {
    int taken = 1, view;
    memset(r, 0, sizeof *r);
    r->top = RATIOS_LEGEND_Y + RATIOS_GAP;
    r->least = RATIOS_LEAST_SHOWN, r->most = RATIOS_MOST_SHOWN;
    for (view = 0; view < OUTCOME_VIEWS && taken; view++)
        taken = ratios_take_view(r, list, view);
    r->least = fmax(r->least, RATIOS_LOWEST_SHOWN);
    r->most = fmin(r->most, RATIOS_TOP_SHOWN);
    return taken;
}

/* >>text */

/* Adds ", " and a part to a text of RATIOS_TEXT bytes; ahead of the first there is no comma. */
static void ratios_append(char *text, const char *part) {
    size_t length = strlen(text);
    snprintf(text + length, RATIOS_TEXT - length, "%s%s", length ? ", " : "", part);
}

/* Each card once, and each seed. */
static void ratios_describe(const outcomes *list, char *text) {
    char part[64];
    int i, j;
    text[0] = 0;
    for (i = 0; i < list->count; i++) {
        for (j = 0; j < i && strcmp(list->all[j].card, list->all[i].card) != 0; j++) {
        }
        if (j == i)
            ratios_append(text, list->all[i].card);
    }
    for (i = 0; i < list->count; i++) {
        for (j = 0; j < i && list->all[j].seed != list->all[i].seed; j++) {
        }
        snprintf(part, sizeof part, "seed %ld", list->all[i].seed);
        if (j == i)
            ratios_append(text, list->all[i].seed < 0 ? "products of well-known models" : part);
    }
}

static const char *ratios_tuned(int view) {
    return view < RACE_MODES ? "" : " tuned";
}

static void ratios_head(FILE *file, const ratios *r, const outcomes *list) {
    char text[RATIOS_TEXT], part[64], key[32], name[OUTCOME_VIEW_NAME];
    int y = RATIOS_LEGEND_Y, view;
    svg_text(file, "title", RATIOS_LEFT, 24,
             "Products with their epilogue: time / time of the best alternative");
    ratios_describe(list, text);
    snprintf(part, sizeof part, "%d products, each line sorted; lower is better", r->products);
    ratios_append(text, part);
    svg_text(file, "", RATIOS_LEFT, 44, text);
    for (view = 0; view < OUTCOME_VIEWS; view++) {
        const outcome_summary *s = &r->views[view].summary;
        if (!s->count)
            continue;
        outcome_view_name(view, name);
        snprintf(key, sizeof key, "key %s%s", race_mode_names[view % RACE_MODES], ratios_tuned(view));
        snprintf(text, sizeof text, "%s: geometric mean %.3f, above 1.02: %d of %d, above 1.15: %d", name,
                 s->mean, s->above[0], s->count, s->above[1]);
        svg_key(file, key, RATIOS_LEFT, y, text);
        y += RATIOS_LEGEND_STEP;
    }
}

/* >>the plot */

static double ratios_x(double part) {
    return RATIOS_LEFT + RATIOS_PLOT_WIDTH * part;
}

/* Logarithmic */
static double ratios_y(const ratios *r, double ratio) {
    double shown = fmin(fmax(ratio, r->least), r->most);
    return r->top + RATIOS_PLOT_HEIGHT * log(r->most / shown) / log(r->most / r->least);
}

static void ratios_axes(FILE *file, const ratios *r) {
    char text[16];
    int i;
    for (i = 0; i < COUNT(ratios_grid); i++) {
        double y = ratios_y(r, ratios_grid[i].ratio);
        int is_bound = ratios_grid[i].is_bound;
        if (ratios_grid[i].ratio < r->least || ratios_grid[i].ratio > r->most)
            continue;
        fprintf(file, "<path class='%s' d='M%d %.1fh%d'/>",
                ratios_grid[i].ratio == 1 ? "one"
                : is_bound                ? "bound"
                                          : "grid",
                RATIOS_LEFT, y, RATIOS_PLOT_WIDTH);
        svg_text(file, is_bound ? "" : "end", is_bound ? ratios_x(1) + 6 : RATIOS_LEFT - 6, y + 4,
                 ratios_grid[i].label);
    }
    for (i = 0; i <= 4; i++) {
        snprintf(text, sizeof text, "%d %%", 25 * i);
        svg_text(file, "middle", ratios_x(i / 4.0), r->top + RATIOS_PLOT_HEIGHT + 18, text);
    }
    svg_text(file, "middle", ratios_x(0.5), r->top + RATIOS_PLOT_HEIGHT + 38, "of the products");
}

/* A step for each product, the least ratio first. */
static void ratios_line(FILE *file, const ratios *r, int view) {
    const ratios_view *m = &r->views[view];
    int i;
    if (!m->count)
        return;
    fprintf(file, "<path class='mode %s%s' d='M%d", race_mode_names[view % RACE_MODES], ratios_tuned(view),
            RATIOS_LEFT);
    for (i = 0; i < m->count; i++)
        fprintf(file, "%s%.1fH%.1f", i ? "V" : " ", ratios_y(r, outcome_ratio(m->sorted[m->count - 1 - i])),
                ratios_x((i + 1.0) / m->count));
    fputs("'/>\n", file);
}

/* Returns 0 where there is no memory. */
static int ratios_draw(const outcomes *list, FILE *file) {
    ratios r;
    int taken = ratios_take(&r, list), view;
    if (taken) {
        svg_begin(file, RATIOS_WIDTH, r.top + RATIOS_PLOT_HEIGHT + RATIOS_FOOT, ratios_light, ratios_dark);
        ratios_head(file, &r, list);
        ratios_axes(file, &r);
        for (view = 0; view < OUTCOME_VIEWS; view++)
            ratios_line(file, &r, view);
        svg_end(file);
    }
    ratios_close(&r);
    return taken;
}

#endif
