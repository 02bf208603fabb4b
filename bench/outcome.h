/* What one product took in one mode: a line of a CSV that says all by itself, and the report that such lines make. */
#ifndef GEMMEPI_BENCH_OUTCOME_H
#define GEMMEPI_BENCH_OUTCOME_H

#include "draw.h"
#include "pass_source.h"
#include "race.h"
#include "report.h"

/* A view is what one line of a chart shows: a mode, of plans as they are or tuned. */
enum { OUTCOME_VIEWS = 2 * RACE_MODES, OUTCOME_VIEW_NAME = 16 };

enum {
    OUTCOME_LINE = 4096,
    OUTCOME_BOUNDS = 3,
    OUTCOME_WORST = 10,
    OUTCOME_NAME_WIDTH = 62 /* printed at least */
};

typedef struct outcome {
    long seed;
    int row, mode, tuned;
    draw_problem problem;
    char name[DRAW_NAME]; /* of the problem, for people */
    char route[16], kernel[96];
    int tile_m, tile_n, launches;
    char check[8];                       /* "ok" or "FAILED" */
    report_quartiles times[RACE_SERIES]; /* microseconds; middle 0: there is no such series */
    char card[128], driver[16], cublaslt[16], gemmepi[24];
} outcome;

typedef struct outcomes {
    outcome *all;
    int count, room;
} outcomes;

/* >>the list */

static int outcome_view(const outcome *o) {
    return o->mode + RACE_MODES * (o->tuned != 0);
}

/* Of OUTCOME_VIEW_NAME bytes. */
static void outcome_view_name(int view, char *name) {
    snprintf(name, OUTCOME_VIEW_NAME, "%s%s", race_mode_names[view % RACE_MODES],
             view < RACE_MODES ? "" : ", tuned");
}

/* A later one of the same seed, row and view takes the place of an earlier one. Returns 0 where there is no memory. */
static int outcomes_add(outcomes *list, const outcome *o) {
    int i;
    for (i = 0; i < list->count; i++)
        if (list->all[i].seed == o->seed && list->all[i].row == o->row &&
            outcome_view(&list->all[i]) == outcome_view(o)) {
            list->all[i] = *o;
            return 1;
        }
    if (list->count == list->room) {
        int room = list->room ? 2 * list->room : 64;
        outcome *more = realloc(list->all, (size_t)room * sizeof *more);
        if (!more)
            return 0;
        list->all = more, list->room = room;
    }
    list->all[list->count++] = *o;
    return 1;
}

static void outcomes_close(outcomes *list) {
    free(list->all);
    memset(list, 0, sizeof *list);
}

/* >>columns

   Every number and text of a line, in order: kind, name, and where it lies. */

typedef enum outcome_kind { OUTCOME_LONG, OUTCOME_INT, OUTCOME_I64, OUTCOME_U64, OUTCOME_TEXT } outcome_kind;

typedef struct outcome_column {
    outcome_kind kind;
    const char *name;
    size_t offset, size; /* of OUTCOME_TEXT the bytes that there are */
} outcome_column;

#define OUTCOME_AT(kind, name, field) \
    { kind, name, offsetof(outcome, field), sizeof(((outcome *)0)->field) }

static const outcome_column outcome_columns[] = {
    OUTCOME_AT(OUTCOME_LONG, "seed", seed),
    OUTCOME_AT(OUTCOME_INT, "row", row),
    OUTCOME_AT(OUTCOME_INT, "mode", mode),
    OUTCOME_AT(OUTCOME_INT, "tuned", tuned),
    OUTCOME_AT(OUTCOME_I64, "m", problem.m),
    OUTCOME_AT(OUTCOME_I64, "n", problem.n),
    OUTCOME_AT(OUTCOME_I64, "k", problem.k),
    OUTCOME_AT(OUTCOME_INT, "dtype", problem.dtype),
    OUTCOME_AT(OUTCOME_INT, "d_dtype", problem.d_dtype),
    OUTCOME_AT(OUTCOME_INT, "a_transposed", problem.a_transposed),
    OUTCOME_AT(OUTCOME_INT, "b_transposed", problem.b_transposed),
    OUTCOME_AT(OUTCOME_I64, "a_ld", problem.a_ld),
    OUTCOME_AT(OUTCOME_I64, "b_ld", problem.b_ld),
    OUTCOME_AT(OUTCOME_I64, "d_ld", problem.d_ld),
    OUTCOME_AT(OUTCOME_I64, "aux_ld", problem.aux_ld),
    OUTCOME_AT(OUTCOME_I64, "residual_ld", problem.residual_ld),
    OUTCOME_AT(OUTCOME_U64, "epilogue", problem.epilogue),
    OUTCOME_AT(OUTCOME_INT, "accumulates", problem.accumulates),
    OUTCOME_AT(OUTCOME_TEXT, "route", route),
    OUTCOME_AT(OUTCOME_TEXT, "kernel", kernel),
    OUTCOME_AT(OUTCOME_INT, "tile_m", tile_m),
    OUTCOME_AT(OUTCOME_INT, "tile_n", tile_n),
    OUTCOME_AT(OUTCOME_INT, "launches", launches),
    OUTCOME_AT(OUTCOME_TEXT, "check", check),
    OUTCOME_AT(OUTCOME_TEXT, "card", card),
    OUTCOME_AT(OUTCOME_TEXT, "driver", driver),
    OUTCOME_AT(OUTCOME_TEXT, "cublaslt", cublaslt),
    OUTCOME_AT(OUTCOME_TEXT, "gemmepi", gemmepi),
    OUTCOME_AT(OUTCOME_TEXT, "problem", name),
};

/* Behind those the name of the mode, for people, then three columns for each series. */
static void outcome_heading(char *line, size_t size) {
    size_t length = 0;
    int i;
    for (i = 0; i < COUNT(outcome_columns); i++)
        length += (size_t)snprintf(line + length, size - length, "%s,", outcome_columns[i].name);
    length += (size_t)snprintf(line + length, size - length, "mode_name");
    for (i = 0; i < RACE_SERIES; i++)
        length += (size_t)snprintf(line + length, size - length, ",%s_us,%s_low,%s_high",
                                   race_series_names[i], race_series_names[i], race_series_names[i]);
}

static void outcome_write_column(FILE *file, const outcome *o, const outcome_column *c) {
    const char *at = (const char *)o + c->offset;
    int number;
    int64_t wide;
    long longer;
    switch (c->kind) {
    case OUTCOME_LONG:
        memcpy(&longer, at, sizeof longer);
        fprintf(file, "%ld,", longer);
        break;
    case OUTCOME_INT:
        memcpy(&number, at, sizeof number);
        fprintf(file, "%d,", number);
        break;
    case OUTCOME_I64:
    case OUTCOME_U64:
        memcpy(&wide, at, sizeof wide);
        fprintf(file, "%lld,", (long long)wide);
        break;
    case OUTCOME_TEXT:
        for (; *at; at++)
            fputc(*at == ',' || *at == '\n' ? ' ' : *at, file);
        fputc(',', file);
        break;
    }
}

static void outcome_write(FILE *file, const outcome *o) {
    int i;
    for (i = 0; i < COUNT(outcome_columns); i++)
        outcome_write_column(file, o, &outcome_columns[i]);
    fprintf(file, "%s", race_mode_names[o->mode]);
    for (i = 0; i < RACE_SERIES; i++) {
        const report_quartiles *t = &o->times[i];
        if (t->middle > 0)
            fprintf(file, ",%.4f,%.4f,%.4f", t->middle, t->low, t->high);
        else
            fprintf(file, ",,,");
    }
    fprintf(file, "\n");
}

/* >>reading */

/* The next field of a line, ended in place; NULL where there is none. */
static char *outcome_field(char **rest) {
    char *field = *rest;
    if (!field)
        return NULL;
    *rest = strchr(field, ',');
    if (*rest)
        *(*rest)++ = 0;
    return field;
}

static int outcome_read_column(char **rest, outcome *o, const outcome_column *c) {
    char *at = (char *)o + c->offset, *field = outcome_field(rest), *end;
    long long value;
    if (!field)
        return 0;
    if (c->kind == OUTCOME_TEXT) {
        snprintf(at, c->size, "%s", field);
        return 1;
    }
    value = strtoll(field, &end, 10);
    if (end == field || *end)
        return 0;
    if (c->kind == OUTCOME_INT) {
        int number = (int)value;
        memcpy(at, &number, sizeof number);
    } else if (c->kind == OUTCOME_LONG) {
        long number = (long)value;
        memcpy(at, &number, sizeof number);
    } else {
        int64_t number = (int64_t)value;
        memcpy(at, &number, sizeof number);
    }
    return 1;
}

static int outcome_read_time(char **rest, double *time) {
    char *field = outcome_field(rest), *end;
    *time = 0;
    if (!field || !*field)
        return field != NULL;
    *time = strtod(field, &end);
    return end != field && !*end;
}

/* A line without its end. Returns 0 where it is none of ours. */
static int outcome_read(char *line, outcome *o) {
    char *rest = line;
    int i;
    memset(o, 0, sizeof *o);
    for (i = 0; i < COUNT(outcome_columns); i++)
        if (!outcome_read_column(&rest, o, &outcome_columns[i]))
            return 0;
    if (!outcome_field(&rest) || o->mode < 0 || o->mode >= RACE_MODES)
        return 0;
    for (i = 0; i < RACE_SERIES; i++)
        if (!outcome_read_time(&rest, &o->times[i].middle) || !outcome_read_time(&rest, &o->times[i].low) ||
            !outcome_read_time(&rest, &o->times[i].high))
            return 0;
    return !rest && o->times[RACE_OURS].middle > 0;
}

/* Adds a file's lines. Lines that begin with # or are the heading say nothing; what is none of ours, as the half line of a run that
   was ended, is told and left. Returns 0 with a sentence on stderr. */
static int outcomes_read(outcomes *list, const char *path) {
    static char line[OUTCOME_LINE], heading[OUTCOME_LINE];
    FILE *file = fopen(path, "r");
    outcome o;
    int number = 0, added = 1;
    if (!file) {
        fprintf(stderr, "%s cannot be read\n", path);
        return 0;
    }
    outcome_heading(heading, sizeof heading);
    while (added && fgets(line, sizeof line, file)) {
        number++;
        line[strcspn(line, "\r\n")] = 0;
        if (!line[0] || line[0] == '#' || strcmp(line, heading) == 0)
            continue;
        if (outcome_read(line, &o))
            added = outcomes_add(list, &o);
        else
            fprintf(stderr, "%s, line %d, is left out: --random --csv of this version writes no such\n", path,
                    number);
    }
    if (!added)
        fprintf(stderr, "out of memory\n");
    fclose(file);
    return added;
}

/* >>what a line says */

/* The fastest of those that compute the same; the bare product does where that is all. */
static int outcome_best(const outcome *o) {
    static const int others[] = {RACE_CUBLASLT, RACE_TRITON};
    int best = pass_is_product(&o->problem) ? RACE_BARE : RACE_PASS, i;
    for (i = 0; i < COUNT(others); i++) {
        double time = o->times[others[i]].middle;
        if (time > 0 && (time < o->times[best].middle || o->times[best].middle <= 0))
            best = others[i];
    }
    return best;
}

/* Ours over the best alternative; 0: there is none. */
static double outcome_ratio(const outcome *o) {
    double best = o->times[outcome_best(o)].middle;
    return best > 0 ? o->times[RACE_OURS].middle / best : 0;
}

/* How far two races of the same lie apart. */
static double outcome_noise(const outcome *o) {
    double again = o->times[RACE_AGAIN].middle;
    return again > 0 ? fabs(again / o->times[RACE_OURS].middle - 1) : 0;
}

/* >>the report */

typedef struct outcome_summary {
    int count, failed;
    double mean;                /* geometric */
    int above[OUTCOME_BOUNDS];  /* those of outcome_bounds */
    int beyond[OUTCOME_BOUNDS]; /* likewise, with the row's own noise added */
    int best[RACE_SERIES];      /* of which series is the best */
    int triton;                 /* that Triton's kernels ran */
    double noise;               /* the median */
} outcome_summary;

static const double outcome_bounds[OUTCOME_BOUNDS] = {1.02, 1.15, 1.05};

static void outcome_count(outcome_summary *s, const outcome *o) {
    double ratio = outcome_ratio(o);
    int i;
    for (i = 0; i < OUTCOME_BOUNDS; i++) {
        s->above[i] += ratio > outcome_bounds[i];
        s->beyond[i] += ratio > outcome_bounds[i] * (1 + outcome_noise(o));
    }
    s->best[outcome_best(o)]++;
    s->triton += o->times[RACE_TRITON].middle > 0;
    s->failed += strcmp(o->check, "ok") != 0;
    s->mean += log(ratio);
    s->count++;
}

/* Of the lines of a view. noises has room for all. */
static outcome_summary outcomes_summarise(const outcomes *list, int view, double *noises) {
    outcome_summary s;
    int i;
    memset(&s, 0, sizeof s);
    for (i = 0; i < list->count; i++) {
        const outcome *o = list->all + i;
        if (outcome_view(o) != view || outcome_ratio(o) <= 0)
            continue;
        noises[s.count] = outcome_noise(o);
        outcome_count(&s, o);
    }
    if (!s.count)
        return s;
    s.mean = exp(s.mean / s.count);
    qsort(noises, (size_t)s.count, sizeof *noises, report_compare);
    s.noise = report_quantile(noises, s.count, 0.5);
    return s;
}

static int outcome_compare(const void *a, const void *b) {
    double x = outcome_ratio(*(const outcome *const *)a), y = outcome_ratio(*(const outcome *const *)b);
    return (x < y) - (x > y);
}

static void outcome_tile(const outcome *o, char *text, size_t size) {
    if (o->tile_m)
        snprintf(text, size, "%dx%d", o->tile_m, o->tile_n);
    else
        snprintf(text, size, "-");
}

/* A line of the worst: what it took, what the best alternative took, and what each route takes. */
static void outcome_print(const outcome *o, int width) {
    char tile[32];
    int best = outcome_best(o), s;
    outcome_tile(o, tile, sizeof tile);
    printf("  %6.3f  %5d  %-*s %-6s %-8s %10.2f  %8s %10.2f  ", outcome_ratio(o), o->row, width, o->name,
           o->route, tile, o->times[RACE_OURS].middle, race_series_names[best], o->times[best].middle);
    for (s = RACE_FUSED; s <= RACE_PLAIN; s++)
        if (o->times[s].middle > 0)
            printf(" %s %.2f", race_series_names[s], o->times[s].middle);
    printf("  bare %.2f  noise %.3f%s\n", o->times[RACE_BARE].middle, outcome_noise(o),
           strcmp(o->check, "ok") == 0 ? "" : "  FAILED");
}

/* A view's lines that have a ratio, the largest first; their number. */
static int outcomes_sort(const outcomes *list, int view, const outcome **sorted) {
    int count = 0, i;
    for (i = 0; i < list->count; i++)
        if (outcome_view(&list->all[i]) == view && outcome_ratio(list->all + i) > 0)
            sorted[count++] = list->all + i;
    qsort(sorted, (size_t)count, sizeof *sorted, outcome_compare);
    return count;
}

static void outcomes_print_worst(const outcomes *list, int view, const outcome **sorted) {
    int count = outcomes_sort(list, view, sorted), width = OUTCOME_NAME_WIDTH, i;
    for (i = 0; i < count && i < OUTCOME_WORST; i++)
        if ((int)strlen(sorted[i]->name) > width)
            width = (int)strlen(sorted[i]->name);
    printf("  %6s  %5s  %-*s %-6s %-8s %10s  %8s %10s   the routes, us\n", "ratio", "row", width,
           "problem m x n x k", "route", "tile", "ours us", "best", "us");
    for (i = 0; i < count && i < OUTCOME_WORST; i++)
        outcome_print(sorted[i], width);
}

/* Ours over each alternative by itself, where Triton's kernels ran. */
static void outcomes_print_triton(const outcomes *list, int view, const outcome_summary *s) {
    double lt = 0, triton = 0;
    int i;
    for (i = 0; i < list->count; i++) {
        outcome o = list->all[i];
        double ours = o.times[RACE_OURS].middle, time = o.times[RACE_TRITON].middle;
        if (outcome_view(&o) != view || outcome_ratio(&o) <= 0 || time <= 0)
            continue;
        triton += log(ours / time);
        o.times[RACE_TRITON].middle = 0;
        lt += log(outcome_ratio(&o));
    }
    printf(
        "the best is Triton's kernel in %d, cuBLASLt's in %d; of the %d where Triton's ran: ours over it %.3f, "
        "over cuBLASLt's %.3f\n",
        s->best[RACE_TRITON], s->count - s->best[RACE_TRITON], s->triton, exp(triton / s->triton),
        exp(lt / s->triton));
}

static void outcomes_print_view(const outcomes *list, int view, double *noises, const outcome **sorted) {
    outcome_summary s = outcomes_summarise(list, view, noises);
    char name[OUTCOME_VIEW_NAME];
    if (!s.count)
        return;
    outcome_view_name(view, name);
    printf(
        "\n%s: %d products, ours over the best alternative: geometric mean %.3f; above 1.02: %d (%d beyond "
        "noise), above 1.05: %d (%d), above 1.15: %d (%d); noise %.3f%s",
        name, s.count, s.mean, s.above[0], s.beyond[0], s.above[2], s.beyond[2], s.above[1], s.beyond[1],
        s.noise, s.failed ? "" : "\n");
    if (s.failed)
        printf("; FAILED: %d\n", s.failed);
    if (s.triton)
        outcomes_print_triton(list, view, &s);
    outcomes_print_worst(list, view, sorted);
}

/* Ratios hold within one card. */
static void outcomes_print_cards(const outcomes *list) {
    int i, j;
    for (i = 0; i < list->count; i++) {
        const outcome *o = list->all + i;
        for (j = 0; j < i; j++)
            if (strcmp(list->all[j].card, o->card) == 0 && strcmp(list->all[j].driver, o->driver) == 0 &&
                strcmp(list->all[j].cublaslt, o->cublaslt) == 0 &&
                strcmp(list->all[j].gemmepi, o->gemmepi) == 0)
                break;
        if (j == i)
            printf("%s, driver %s, cuBLASLt %s, gemmepi %s\n", o->card, o->driver, o->cublaslt, o->gemmepi);
    }
}

/* Returns 0 where there is no memory, or nothing to report. */
static int outcomes_report(const outcomes *list) {
    double *noises = malloc((size_t)(list->count + 1) * sizeof *noises);
    const outcome **sorted = malloc((size_t)(list->count + 1) * sizeof *sorted);
    int made = noises && sorted && list->count, view;
    for (view = 0; made && view < OUTCOME_VIEWS; view++)
        outcomes_print_view(list, view, noises, sorted);
    if (made) {
        printf("\n");
        outcomes_print_cards(list);
    }
    free(noises);
    free(sorted);
    return made;
}

#endif
