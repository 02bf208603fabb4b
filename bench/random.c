/* Products raced, drawn ones or those of models: ours as planned and by each route alone against the opponents, in each mode, and
   checked against them. Part of main.c. */
#include "candidates.h"
#include "famous.h"
#include "named.h"
#include "opponents.h"
#include "outcome.h"
#include "ratios.h"

enum {
    RANDOM_ROUTES = 4,
    RANDOM_CHECKED_ROWS = 8,
    RANDOM_FAMOUS_WIDTH = 90,    /* of a name */
    RANDOM_WARM_BYTES = 64 << 20 /* copied ahead of all rows */
};

#define RANDOM_PLAIN_OPERATIONS 2e10 /* beyond, the route plain is not tried where ours does not take it */

/* In the order of their series. */
static const gemmepi_route random_routes[RANDOM_ROUTES] = {GEMMEPI_ROUTE_FUSED, GEMMEPI_ROUTE_LT,
                                                           GEMMEPI_ROUTE_SPLIT, GEMMEPI_ROUTE_PLAIN};

/* What the options say. */
typedef struct random_wishes {
    int count;                 /* of problems */
    const int *famous;         /* the rows of famous.h that they are; NULL: they are drawn, or named */
    const draw_problem *named; /* NULL: they are drawn, or famous */
    int from, to;
    long seed;
    int modes[RACE_MODES];
    double scale;
    const char *csv, *svg; /* NULL: none */
    int tuned;             /* ours takes what gemmepi_tune finds */
    const char
        *candidates; /* the file of candidates' times, which are measured in place of races; NULL: races */
    int answers;     /* of cuBLASLt's answers alone */
} random_wishes;

/* What all rows share. */
static struct {
    gemmepi_context *contexts[RANDOM_ROUTES]; /* whose plans take one route alone */
    lt lt;
    nvrtc nvrtc;
    race_tools tools;
    tensors_blocks blocks;
    triton_list triton;
    outcomes outcomes;
    FILE *csv, *svg;
    int failed;
} shared;

/* One row. */
typedef struct random_work {
    draw_problem problem;
    char name[DRAW_NAME]; /* "": there is no problem yet */
    tensors tensors;
    opponents opponents;
    gemmepi_plan *plans[RACE_SERIES]; /* of ours and of the routes */
    gemmepi_plan_details details;
    int same_as_ours; /* the series of the route that ours took; 0: none */
    char check[8];
} random_work;

/* >>problems */

/* The number of the i-th that is wanted. */
static int random_row_at(const random_wishes *wishes, int i) {
    return wishes->famous ? wishes->famous[i] : i;
}

/* As draw() does, where rows are drawn; a model's row and a name have one problem. */
static int random_problem(const random_wishes *wishes, int row, int *attempt, draw_problem *p) {
    if (!wishes->famous && !wishes->named)
        return draw((uint64_t)wishes->seed, row, attempt, p);
    if ((*attempt)++)
        return 0;
    if (wishes->named)
        *p = wishes->named[row];
    return wishes->named || famous_problem(row, p);
}

/* A model's says what it is for, too. */
static void random_name(const random_wishes *wishes, int row, const draw_problem *p, char *text) {
    char famous[FAMOUS_NAME], product[DRAW_NAME];
    draw_name(p, product);
    if (wishes->famous && famous_name(row, famous, sizeof famous))
        snprintf(text, DRAW_NAME, "%s: %.90s", famous, product);
    else
        snprintf(text, DRAW_NAME, "%s", product);
}

/* >>calls */

static int random_run_plan(bench *b, const random_work *w, const gemmepi_plan *plan, int set) {
    const tensors *t = &w->tensors;
    gemmepi_epilogue e = w->problem.epilogue;
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = tensors_at(t, set, OF_A);
    args.b = tensors_at(t, set, OF_B);
    args.d = tensors_at(t, set, OF_D);
    args.bias = e & GEMMEPI_BIAS ? tensors_at(t, set, OF_BIAS) : NULL;
    args.aux = t->sizes[OF_AUX] ? tensors_at(t, set, OF_AUX) : NULL;
    args.residual = t->sizes[OF_RESIDUAL] ? tensors_at(t, set, OF_RESIDUAL) : NULL;
    args.bias_grad = t->sizes[OF_BIAS_GRAD] ? tensors_at(t, set, OF_BIAS_GRAD) : NULL;
    return bench_ok(b, gemmepi_run_matmul(plan, &args, b->stream));
}

static int random_call(bench *b, void *user, int series, int set) {
    const random_work *w = user;
    switch (series) {
    case RACE_CUBLASLT:
        return opponents_run_epilogue(b, &w->opponents, set);
    case RACE_PASS:
        return opponents_run_pass(b, &w->opponents, set);
    case RACE_BARE:
        return opponents_run_bare(b, &w->opponents, set);
    case RACE_TRITON:
        return opponents_run_triton(b, &w->opponents, set);
    default:
        return random_run_plan(b, w, w->plans[series == RACE_AGAIN ? RACE_OURS : series], set);
    }
}

/* >>plans */

/* By ours, which may be refused: *supported is 0 then, and the next problem is drawn. */
static int random_plan(bench *b, gemmepi_context *context, const draw_problem *p, gemmepi_plan **plan,
                       int *supported) {
    gemmepi_matmul_desc desc = draw_desc(p);
    double began = bench_seconds();
    gemmepi_status status = gemmepi_plan_matmul(context, &desc, plan);
    *supported = status == GEMMEPI_OK;
    if (status == GEMMEPI_OK)
        status = gemmepi_plan_prepare(*plan, b->stream);
    b->plan_seconds += bench_seconds() - began;
    return status == GEMMEPI_UNSUPPORTED || bench_ok(b, status);
}

/* The row's problem with our plan for it. */
static int random_draw(bench *b, random_work *w, const random_wishes *wishes, int row) {
    int attempt = 0, supported = 0;
    while (!supported) {
        if (!random_problem(wishes, row, &attempt, &w->problem))
            return bench_fail(b, "row %d has no problem that is supported", row);
        random_name(wishes, row, &w->problem, w->name);
        if (!random_plan(b, b->context, &w->problem, &w->plans[RACE_OURS], &supported))
            return 0;
    }
    return bench_ok(b, gemmepi_plan_info(w->plans[RACE_OURS], &w->details));
}

/* Those with cuBLASLt's products have Hopper's kernels. */
static int random_has_route(const bench *b, int i) {
    return !b->is_ampere || (random_routes[i] != GEMMEPI_ROUTE_LT && random_routes[i] != GEMMEPI_ROUTE_SPLIT);
}

/* A route's plan, but for the one that ours took and what takes too long. */
static int random_plan_route(bench *b, random_work *w, int i) {
    int series = RACE_FUSED + i, supported;
    if (!random_has_route(b, i))
        return 1;
    if (random_routes[i] == w->details.route) {
        w->same_as_ours = series;
        return 1;
    }
    if (random_routes[i] == GEMMEPI_ROUTE_PLAIN && draw_operations(&w->problem) > RANDOM_PLAIN_OPERATIONS)
        return 1;
    return random_plan(b, shared.contexts[i], &w->problem, &w->plans[series], &supported);
}

static int random_plan_routes(bench *b, random_work *w) {
    int i;
    w->same_as_ours = 0;
    for (i = 0; i < RANDOM_ROUTES; i++)
        if (!random_plan_route(b, w, i))
            return 0;
    return 1;
}

/* >>is ours right, held against the bare product and its pass; are Triton's kernels, held against ours

   Numbers are about 1. u is the unit roundoff of 16 bits: P is rounded there in between, and both results are. */

static double random_number(gemmepi_dtype dtype, const char *at) {
    uint16_t half;
    float value;
    if (dtype == GEMMEPI_F32) {
        memcpy(&value, at, sizeof value);
        return (double)value;
    }
    memcpy(&half, at, sizeof half);
    if (dtype == GEMMEPI_F16) {
        int exponent = half >> 10 & 31, mantissa = half & 1023;
        double size = exponent == 31
                          ? (mantissa ? NAN : HUGE_VAL)
                          : ldexp(exponent ? 1024 + mantissa : mantissa, (exponent ? exponent : 1) - 25);
        return half >> 15 ? -size : size;
    } else {
        uint32_t word = (uint32_t)half << 16;
        memcpy(&value, &word, sizeof value);
        return (double)value;
    }
}

static double random_roundoff(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_F32 ? ldexp(1, -15) : dtype == GEMMEPI_F16 ? ldexp(1, -11) : ldexp(1, -8);
}

/* Some lines of D or AUX, or all of bias_grad. */
typedef struct random_sample {
    int which;
    const char *name, *other;     /* what it is held against */
    int64_t lines, columns, step; /* bytes from a line to the next */
    double near, more;            /* how far two may lie apart: so much, and so much of their size */
} random_sample;

/* The first line, the last, and some between them. */
static int64_t random_line(const random_sample *s, int i) {
    return s->lines <= RANDOM_CHECKED_ROWS ? i : (s->lines - 1) * i / (RANDOM_CHECKED_ROWS - 1);
}

static int random_lines(const random_sample *s) {
    return s->lines < RANDOM_CHECKED_ROWS ? (int)s->lines : RANDOM_CHECKED_ROWS;
}

/* The samples' bytes, one line after another; the caller's to free. NULL where that fails. */
static char *random_read(bench *b, const random_work *w, const random_sample *s, size_t bytes) {
    char *copy = malloc((size_t)random_lines(s) * bytes);
    int i, read = copy != NULL || bench_fail(b, "out of memory");
    for (i = 0; read && i < random_lines(s); i++)
        read =
            bench_ok(b, gemmepi_download(b->context, copy + (size_t)i * bytes,
                                         tensors_at(&w->tensors, 0, s->which) + random_line(s, i) * s->step,
                                         bytes, b->stream));
    if (read)
        return copy;
    free(copy);
    return NULL;
}

/* A NaN is off, too. */
static int random_compare_numbers(bench *b, const random_work *w, const random_sample *s, const char *ours,
                                  const char *other) {
    size_t element = gemmepi_dtype_size(w->problem.d_dtype);
    int64_t i, count = random_lines(s) * s->columns;
    for (i = 0; i < count; i++) {
        double x = random_number(w->problem.d_dtype, ours + (size_t)i * element);
        double y = random_number(w->problem.d_dtype, other + (size_t)i * element);
        if (!(fabs(x - y) <= s->near + s->more * fabs(y)))
            return bench_fail(b, "%s (%lld, %lld) is %g, and %g by %s", s->name,
                              (long long)random_line(s, (int)(i / s->columns)), (long long)(i % s->columns),
                              x, y, s->other);
    }
    return 1;
}

/* Bits may differ where a sum is nearly 0: one in a hundred, or eight in all. */
static int random_compare_bits(bench *b, const random_sample *s, const char *ours, const char *other) {
    int64_t bytes = (s->columns + 7) / 8, i, j, off = 0, count = random_lines(s) * s->columns;
    for (i = 0; i < random_lines(s); i++)
        for (j = 0; j < s->columns; j++)
            off += (ours[i * bytes + j / 8] ^ other[i * bytes + j / 8]) >> j % 8 & 1;
    return off <= 8 + count / 100 || bench_fail(b, "of %lld bits of the mask %lld are not those of %s",
                                                (long long)count, (long long)off, s->other);
}

static random_sample random_sample_of(const draw_problem *p, int which, int series) {
    double u = random_roundoff(p->d_dtype);
    int gated = p->epilogue & GEMMEPI_GATED ? 1 : 0;
    random_sample s;
    memset(&s, 0, sizeof s);
    s.which = which, s.lines = p->m;
    s.other = series == RACE_TRITON ? "Triton's kernel" : "a product and a pass";
    s.name = which == OF_D ? "D" : which == OF_AUX ? "aux" : "bias_grad";
    s.near = u * (gated ? 32 : 8), s.more = 6 * u;
    s.columns = which == OF_D ? draw_d_columns(p) : draw_aux_columns(p);
    s.step = (which == OF_D ? p->d_ld : p->aux_ld) * (int64_t)gemmepi_dtype_size(p->d_dtype);
    if (which == OF_AUX && draw_aux_is_mask(p))
        s.step = p->aux_ld / 8;
    if (which == OF_BIAS_GRAD) { /* roundings add up as a random walk does */
        double terms = (double)(p->epilogue & (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) ? p->k : p->m);
        s.lines = 1, s.columns = draw_bias_grad_length(p), s.step = 0;
        s.near = 16 * u * sqrt(terms);
    }
    return s;
}

/* What ours has left of a tensor, until the opponent has run. */
typedef struct random_copy {
    random_sample sample;
    size_t bytes; /* of a line */
    char *ours;   /* NULL: not compared */
} random_copy;

static int random_keep(bench *b, const random_work *w, int which, int series, random_copy *c) {
    const draw_problem *p = &w->problem;
    c->sample = random_sample_of(p, which, series);
    c->bytes = which == OF_AUX && draw_aux_is_mask(p)
                   ? (size_t)(c->sample.columns + 7) / 8
                   : (size_t)c->sample.columns * gemmepi_dtype_size(p->d_dtype);
    c->ours = random_read(b, w, &c->sample, c->bytes);
    return c->ours != NULL;
}

static int random_compare(bench *b, const random_work *w, const random_copy *c, int *right) {
    char *other = random_read(b, w, &c->sample, c->bytes);
    if (!other)
        return 0;
    *right = c->sample.which == OF_AUX && draw_aux_is_mask(&w->problem)
                 ? random_compare_bits(b, &c->sample, c->ours, other)
                 : random_compare_numbers(b, w, &c->sample, c->ours, other);
    free(other);
    return 1;
}

/* Runs a series once on the first set, whose outputs are as they were before any run. */
static int random_run_anew(bench *b, random_work *w, int series) {
    return tensors_wipe(b, &shared.blocks, &w->tensors, &w->problem, 0) && random_call(b, w, series, 0) &&
           race_wait(b);
}

static int random_check_copies(bench *b, random_work *w, int series, random_copy *copies, int *right) {
    static const int which[] = {OF_D, OF_AUX, OF_BIAS_GRAD};
    int i, compared = random_run_anew(b, w, RACE_OURS);
    for (i = 0; compared && i < COUNT(which); i++)
        if (w->tensors.sizes[which[i]] && !(which[i] == OF_AUX && w->problem.epilogue & GEMMEPI_BACKWARD))
            compared = random_keep(b, w, which[i], series, &copies[i]);
    compared = compared && random_run_anew(b, w, series);
    for (i = 0; compared && *right && i < COUNT(which); i++)
        if (copies[i].ours)
            compared = random_compare(b, w, &copies[i], right);
    return compared;
}

/* Returns 0 where it could not be found out; *right is 0, with a sentence in b->fault, where ours and the series are not alike. */
static int random_check(bench *b, random_work *w, int series, int *right) {
    random_copy copies[3];
    int checked, i;
    memset(copies, 0, sizeof copies);
    *right = 1;
    checked = random_check_copies(b, w, series, copies, right);
    for (i = 0; i < COUNT(copies); i++)
        free(copies[i].ours);
    return checked;
}

/* >>a row's race */

static void random_version(char *text, size_t size, int version, int major_unit, int minor_unit) {
    snprintf(text, size, "%d.%d", version / major_unit, version % major_unit / minor_unit);
}

static void random_describe(bench *b, const random_work *w, const random_wishes *wishes, int row,
                            outcome *o) {
    memset(o, 0, sizeof *o);
    o->seed = wishes->seed, o->row = row, o->tuned = wishes->tuned;
    o->problem = w->problem;
    snprintf(o->name, sizeof o->name, "%s", w->name);
    snprintf(o->route, sizeof o->route, "%s", w->details.route_name);
    snprintf(o->kernel, sizeof o->kernel, "%s", w->details.kernel);
    o->tile_m = w->details.tile_m, o->tile_n = w->details.tile_n, o->launches = w->details.launches;
    snprintf(o->check, sizeof o->check, "%s", w->check);
    snprintf(o->card, sizeof o->card, "%s", b->details.name);
    random_version(o->driver, sizeof o->driver, b->details.driver_version, 1000, 10);
    random_version(o->cublaslt, sizeof o->cublaslt, b->cublaslt_version, 10000, 100);
    snprintf(o->gemmepi, sizeof o->gemmepi, "%s%s", GEMMEPI_VERSION_STRING, b->is_ampere ? " ampere" : "");
}

/* A mode's times into an outcome: raced, or left at what was found on trial. */
static void random_take_times(const random_work *w, const race *r, outcome *o) {
    int s;
    for (s = 0; s < RACE_SERIES; s++) {
        memset(&o->times[s], 0, sizeof o->times[s]);
        if (r->has[s] == 1)
            o->times[s] = report_quarter(r->times[s], r->rounds);
        else if (r->has[s] == 2)
            o->times[s].low = o->times[s].middle = o->times[s].high = r->once[s];
    }
    if (w->same_as_ours)
        o->times[w->same_as_ours] = o->times[RACE_OURS];
}

/* Which series there are, each tried. */
static int random_try(bench *b, const random_work *w, race *r) {
    int s;
    for (s = RACE_OURS; s <= RACE_PLAIN; s++)
        r->has[s] = w->plans[s == RACE_AGAIN ? RACE_OURS : s] != NULL;
    r->has[RACE_BARE] = 1;
    r->has[RACE_CUBLASLT] = w->opponents.epilogue.count != 0;
    r->has[RACE_PASS] = !pass_is_product(&w->problem);
    r->has[RACE_TRITON] = w->opponents.triton.count != 0;
    for (s = 0; s < RACE_SERIES; s++) {
        if (!r->has[s] || race_try(b, r, s))
            continue;
        if (s < RACE_FUSED || s > RACE_PLAIN)
            return 0;
        r->has[s] = 0; /* what nobody asked for but this bench */
        fprintf(stderr, "the route %s does not run: %s\n", race_series_names[s], b->fault);
    }
    race_leave_out_slow(r);
    return 1;
}

/* The first run may have taken another route than was planned. */
static int random_choose(bench *b, random_work *w, race *r, const random_wishes *wishes) {
    if (!opponents_choose(b, r, &w->opponents, wishes->modes[RACE_BURST]))
        return 0;
    opponents_set_mode(&w->opponents, RACE_GRAPH);
    return random_try(b, w, r) && bench_ok(b, gemmepi_plan_info(w->plans[RACE_OURS], &w->details));
}

/* The times of kernels of Triton's that are not like ours, which are right, do not count. */
static int random_check_triton(bench *b, random_work *w, outcome *of_modes) {
    int mode, right;
    if (!random_check(b, w, RACE_TRITON, &right))
        return 0;
    for (mode = 0; !right && mode < RACE_MODES; mode++)
        memset(&of_modes[mode].times[RACE_TRITON], 0, sizeof of_modes[mode].times[RACE_TRITON]);
    if (!right)
        printf("       Triton's kernel does not count: %s\n", b->fault);
    return 1;
}

/* All modes, then the checks, which all of them bear. */
static int random_race(bench *b, random_work *w, race *r, const random_wishes *wishes, int row,
                       outcome *of_modes, int *right) {
    int mode;
    for (mode = 0; mode < RACE_MODES; mode++) {
        if (!wishes->modes[mode])
            continue;
        opponents_set_mode(&w->opponents, mode);
        if (!race_in_mode(b, r, mode))
            return 0;
        random_take_times(w, r, &of_modes[mode]);
    }
    opponents_set_mode(&w->opponents, RACE_GRAPH);
    if (!random_check(b, w, pass_is_product(&w->problem) ? RACE_BARE : RACE_PASS, right) ||
        (*right && w->opponents.triton.count && !random_check_triton(b, w, of_modes)))
        return 0;
    snprintf(w->check, sizeof w->check, "%s", *right ? "ok" : "FAILED");
    for (mode = 0; mode < RACE_MODES; mode++) {
        report_quartiles times[RACE_SERIES];
        memcpy(times, of_modes[mode].times, sizeof times);
        random_describe(b, w, wishes, row, &of_modes[mode]);
        memcpy(of_modes[mode].times, times, sizeof times);
        of_modes[mode].mode = mode;
    }
    return 1;
}

static int random_open_tensors(bench *b, random_work *w) {
    tensors *t = &w->tensors;
    void *pointer = NULL;
    tensors_lay_out(t, &w->problem);
    if (!bench_ok(b, gemmepi_alloc(b->context, t->set * (size_t)t->sets, &pointer)))
        return 0;
    t->memory = pointer;
    return tensors_fill_inputs(b, &shared.blocks, t, &w->problem);
}

static void random_close_row(bench *b, random_work *w) {
    gemmepi_status freed;
    int s;
    if (w->opponents.problem)
        opponents_close(b, &w->opponents);
    for (s = 0; s < RACE_SERIES; s++)
        gemmepi_plan_destroy(w->plans[s]);
    freed = gemmepi_free(b->context, w->tensors.memory);
    (void)freed;
}

static void random_begin_race(race *r, random_work *w, const random_wishes *wishes, int rounds) {
    memset(r, 0, sizeof *r);
    r->tools = &shared.tools;
    r->call = random_call;
    r->user = w;
    r->sets = w->tensors.sets;
    r->scale = wishes->scale;
    r->most_rounds = rounds < RACE_LEAST_ROUNDS ? RACE_LEAST_ROUNDS : rounds;
}

/* >>what is said of a row */

static void random_print(const random_work *w, const random_wishes *wishes, const outcome *of_modes) {
    char tile[32];
    int mode, row = of_modes[0].row, width = wishes->famous ? RANDOM_FAMOUS_WIDTH : OUTCOME_NAME_WIDTH;
    outcome_tile(&of_modes[0], tile, sizeof tile);
    printf("%5d  %-*s %-6s %-8s", row, width, w->name, w->details.route_name, tile);
    for (mode = 0; mode < RACE_MODES; mode++)
        if (wishes->modes[mode]) {
            const outcome *o = &of_modes[mode];
            printf("  %s %.2f/%.2f %.3f", race_mode_names[mode], o->times[RACE_OURS].middle,
                   o->times[outcome_best(o)].middle, outcome_ratio(o));
        }
    printf("  %s\n", w->check);
    fflush(stdout);
}

static int random_record(bench *b, const random_wishes *wishes, const outcome *of_modes) {
    int mode;
    for (mode = 0; mode < RACE_MODES; mode++) {
        if (!wishes->modes[mode])
            continue;
        if (shared.csv) {
            outcome_write(shared.csv, &of_modes[mode]);
            fflush(shared.csv);
        }
        if (!outcomes_add(&shared.outcomes, &of_modes[mode]))
            return bench_fail(b, "out of memory");
    }
    return 1;
}

static int random_measure(bench *b, progress *rows, random_work *w, const random_wishes *wishes, int row) {
    static race r;
    static outcome of_modes[RACE_MODES];
    int right = 1;
    memset(of_modes, 0, sizeof of_modes);
    if (!random_open_tensors(b, w) || !random_plan_routes(b, w) ||
        !opponents_open(b, &w->opponents, &w->problem, &w->tensors, &shared.lt, &shared.nvrtc) ||
        !opponents_add_triton(b, &w->opponents, &shared.triton))
        return 0;
    random_begin_race(&r, w, wishes, b->rounds);
    if (!random_choose(b, w, &r, wishes) || !random_race(b, w, &r, wishes, row, of_modes, &right))
        return 0;
    progress_wipe(rows);
    random_print(w, wishes, of_modes);
    if (!right) {
        printf("       FAILED: %s\n", b->fault);
        shared.failed++;
    }
    return random_record(b, wishes, of_modes);
}

/* >>every candidate */

static double random_median(const race *r) {
    return report_quarter(r->times[RACE_OURS], r->rounds).middle;
}

/* The candidate's median in a mode; 0 where it does not run. line: has what cuBLASLt's algorithm is. */
static double random_time_candidate(bench *b, random_work *w, race *r, const gpi__problem *problem,
                                    const gpi__candidate *candidate, int mode, candidates_row *line) {
    gemmepi_plan *ours = w->plans[RACE_OURS];
    double median = 0;
    w->plans[RACE_OURS] = candidates_build(b->context, problem, candidate);
    candidates_name(w->plans[RACE_OURS], line);
    if (w->plans[RACE_OURS] && gemmepi_plan_prepare(w->plans[RACE_OURS], b->stream) == GEMMEPI_OK &&
        race_try(b, r, RACE_OURS) && race_run(b, r, &race_modes[mode], CANDIDATES_SECONDS, 0) && race_wait(b))
        median = random_median(r);
    gemmepi_plan_destroy(w->plans[RACE_OURS]);
    w->plans[RACE_OURS] = ours;
    return median;
}

/* All in graphs, then those near the fastest in bursts. */
static void random_time_candidates(bench *b, random_work *w, race *r, const gpi__problem *problem,
                                   const gpi__candidate *list, candidates_row *lines, int count) {
    double best = 0;
    int i;
    for (i = 0; i < count; i++) {
        double graph = lines[i].graph =
            random_time_candidate(b, w, r, problem, &list[i], RACE_GRAPH, &lines[i]);
        if (graph > 0 && (best <= 0 || graph < best))
            best = graph;
    }
    for (i = 0; best >= CANDIDATES_BURST_LEAST && i < count; i++)
        if (lines[i].graph > 0 && lines[i].graph <= CANDIDATES_BURST_MOST * best)
            lines[i].burst = random_time_candidate(b, w, r, problem, &list[i], RACE_BURST, &lines[i]);
}

static int random_measure_candidates(bench *b, random_work *w, const random_wishes *wishes, int row) {
    static race r;
    gpi__candidate list[CANDIDATES_MOST];
    candidates_row lines[CANDIDATES_MOST];
    gpi__problem problem;
    int count, i;
    if (!random_open_tensors(b, w) || !candidates_problem(&w->problem, &problem))
        return 0;
    random_begin_race(&r, w, wishes, RACE_LEAST_ROUNDS);
    r.has[RACE_OURS] = 1;
    count = wishes->answers ? candidates_list_answers(b->context, &w->problem, &problem, list)
                            : candidates_list(b->context, &w->problem, &problem, list);
    memset(lines, 0, sizeof lines);
    for (i = 0; i < count; i++) {
        const gpi__candidate *c = &list[i];
        lines[i].seed = wishes->seed, lines[i].row = row;
        snprintf(lines[i].route, sizeof lines[i].route, "%s", gpi__route_names[c->route]);
        lines[i].nth = c->nth;
        lines[i].engine = c->engine, lines[i].shape = c->shape, lines[i].parts = c->parts;
        lines[i].copies[0] = c->copies[0], lines[i].copies[1] = c->copies[1];
    }
    random_time_candidates(b, w, &r, &problem, list, lines, count);
    for (i = 0; i < count; i++)
        if (lines[i].graph > 0)
            candidates_write(shared.csv, &lines[i], w->name);
    fflush(shared.csv);
    return 1;
}

/* >>a row */

/* Whether there is nothing that a row of --ampere may be held against. */
static int random_is_left_out(const bench *b, const random_work *w) {
    return b->is_ampere && w->opponents.lt && !w->opponents.bare.count;
}

/* A row that does not run is told, and the next one goes on. */
static void random_row(bench *b, progress *rows, const random_wishes *wishes, int row) {
    static random_work w;
    int drawn;
    memset(&w, 0, sizeof w);
    drawn = random_draw(b, &w, wishes, row);
    progress_show(rows, w.name);
    if (!drawn || !(wishes->candidates ? random_measure_candidates(b, &w, wishes, row)
                                       : random_measure(b, rows, &w, wishes, row))) {
        progress_wipe(rows);
        printf("%5d  %-*s %s: %s\n", row, OUTCOME_NAME_WIDTH, w.name,
               random_is_left_out(b, &w) ? "left out" : "FAILED", b->fault);
        fflush(stdout);
        shared.failed += !random_is_left_out(b, &w);
    }
    random_close_row(b, &w);
}

/* >>ahead of all rows */

static void random_count_done(void *user, size_t done, size_t count) {
    progress *plans = user;
    plans->done = (int)done, plans->total = (int)count;
    progress_show(plans, "are compiled");
}

static void random_count_tuned(void *user, size_t done, size_t count) {
    progress *problems = user;
    problems->done = (int)done, problems->total = (int)count;
    progress_show(problems, "are tuned");
}

/* On all processors. What cannot be compiled is told when the row is measured. */
static void random_precompile_for(gemmepi_context *context, const gemmepi_any_desc *problems, size_t count) {
    progress plans;
    gemmepi_status status;
    progress_begin(&plans, "plans", (int)count);
    status = gemmepi_precompile(context, problems, count, 0, random_count_done, &plans);
    (void)status;
    progress_wipe(&plans);
}

static void random_tune(gemmepi_context *context, const gemmepi_any_desc *problems, size_t count) {
    progress tuned;
    progress_begin(&tuned, "problems", (int)count);
    if (gemmepi_tune(context, problems, count, NULL, random_count_tuned, &tuned)) {
        progress_wipe(&tuned);
        fprintf(stderr, "tuning: %s\n", gemmepi_last_error());
    }
    progress_wipe(&tuned);
}

/* Compiles the rows' kernels, in the context of each route. */
static void random_precompile(bench *b, const random_wishes *wishes) {
    size_t count = (size_t)(wishes->to - wishes->from), i;
    gemmepi_matmul_desc *descs = calloc(count, sizeof *descs);
    gemmepi_any_desc *problems = calloc(count, sizeof *problems);
    for (i = 0; descs && problems && i < count; i++) {
        draw_problem p;
        int attempt = 0;
        if (!random_problem(wishes, random_row_at(wishes, wishes->from + (int)i), &attempt, &p))
            break;
        descs[i] = draw_desc(&p);
        problems[i].matmul = &descs[i];
    }
    if (descs && problems && i == count) {
        int route;
        random_precompile_for(b->context, problems, count);
        if (wishes->tuned)
            random_tune(b->context, problems, count);
        for (route = 0; route < RANDOM_ROUTES - 1; route++) /* plain is one kernel for many */
            if (random_has_route(b, route))
                random_precompile_for(shared.contexts[route], problems, count);
    }
    free(descs);
    free(problems);
}

/* A plan of the route split loads cuBLASLt and NVRTC, which the system's loader need not find by itself. */
static int random_open_libraries(bench *b) {
    gemmepi_context_details details;
    gemmepi_plan *plan = NULL;
    gemmepi_context *split = shared.contexts[2];
    draw_problem p;
    int supported;
    memset(&p, 0, sizeof p);
    p.m = p.n = p.k = p.a_ld = p.b_ld = p.d_ld = 64;
    p.dtype = p.d_dtype = GEMMEPI_BF16;
    p.epilogue = GEMMEPI_SILU | GEMMEPI_BIAS;
    if (!random_plan(b, split, &p, &plan, &supported))
        return 0;
    gemmepi_plan_destroy(plan);
    if (!bench_ok(b, gemmepi_context_info(split, &details)))
        return 0;
    b->cublaslt_version = details.cublaslt_version;
    return nvrtc_open(b, &shared.nvrtc) && lt_open(b, &shared.lt);
}

static int random_open(bench *b) {
    void *pointer = NULL;
    int i;
    for (i = 0; i < RANDOM_ROUTES; i++)
        if (!bench_open_route(b, random_routes[i], &shared.contexts[i]))
            return 0;
    if (!random_open_libraries(b) || !bench_ok(b, gemmepi_alloc(b->context, LT_WORKSPACE, &pointer)))
        return 0;
    shared.lt.workspace = pointer;
    return race_tools_open(b, &shared.nvrtc, &shared.tools) && race_wait(b);
}

/* Whatever random_open has left. */
static void random_close(bench *b) {
    gemmepi_status freed;
    int i;
    lt_close(&shared.lt);
    triton_close(&shared.triton);
    freed = gemmepi_free(b->context, shared.lt.workspace);
    (void)freed;
    race_tools_close(b, &shared.tools);
    tensors_close_blocks(b, &shared.blocks);
    for (i = 0; i < RANDOM_ROUTES; i++)
        gemmepi_destroy(shared.contexts[i]);
    outcomes_close(&shared.outcomes);
}

/* Lines are added to a file that is there, so that rows may be measured in several runs. */
static int random_open_csv(const random_wishes *wishes) {
    char heading[OUTCOME_LINE];
    const char *path = wishes->candidates ? wishes->candidates : wishes->csv;
    if (!path)
        return 1;
    shared.csv = fopen(path, "a");
    if (!shared.csv || fseek(shared.csv, 0, SEEK_END)) {
        fprintf(stderr, "%s cannot be written\n", path);
        return 0;
    }
    outcome_heading(heading, sizeof heading);
    if (wishes->candidates)
        snprintf(heading, sizeof heading, "%s",
                 wishes->answers ? CANDIDATES_ANSWERS_HEADING : CANDIDATES_HEADING);
    if (ftell(shared.csv) == 0)
        fprintf(shared.csv, "%s\n", heading);
    return 1;
}

static int random_open_svg(const char *path) {
    shared.svg = path ? fopen(path, "w") : NULL;
    if (path && !shared.svg)
        fprintf(stderr, "%s cannot be written\n", path);
    return !path || shared.svg;
}

static int random_close_file(FILE *file, const char *path) {
    int whole = !file || report_close(file);
    if (!whole)
        fprintf(stderr, "%s could not be written whole\n", path);
    return whole;
}

/* What is measured, as text and as chart. Returns 0 where there is nothing, or something could not be written. */
static int random_tell(const outcomes *list, const char *svg) {
    int told = outcomes_report(list) && (!shared.svg || ratios_draw(list, shared.svg));
    return random_close_file(shared.svg, svg) && told;
}

/* >>the whole */

/* Of all rows the kernels of all candidates. */
static void random_compile_candidates(bench *b, const random_wishes *wishes) {
    int count = wishes->to - wishes->from, attempt;
    draw_problem *problems = calloc((size_t)count, sizeof *problems);
    candidates_work all;
    memset(&all, 0, sizeof all);
    all.context = b->context, all.problems = problems, all.answers = wishes->answers;
    for (; problems && all.count < count; all.count++) {
        attempt = 0;
        if (!random_problem(wishes, random_row_at(wishes, wishes->from + all.count), &attempt,
                            &problems[all.count]))
            break;
    }
    candidates_compile(&all);
    free(problems);
}

/* Triton's kernels for all rows, while others are compiled. */
static void random_begin_triton(bench *b, const random_wishes *wishes) {
    FILE *names = fopen(TRITON_NAMES, "w");
    int i;
    for (i = wishes->from; names && i < wishes->to; i++) {
        draw_problem p;
        char name[DRAW_NAME];
        int attempt = 0;
        if (random_problem(wishes, random_row_at(wishes, i), &attempt, &p))
            draw_name(&p, name), fprintf(names, "%s\n", name);
    }
    if (names && !fclose(names))
        triton_begin(b, &shared.triton);
}

static void random_measure_rows(bench *b, const random_wishes *wishes) {
    progress rows;
    int i;
    if (b->is_ampere)
        random_begin_triton(b, wishes);
    if (wishes->candidates)
        random_compile_candidates(b, wishes);
    else
        random_precompile(b, wishes);
    if (b->is_ampere)
        triton_end(&shared.triton);
    progress_begin(&rows, "rows", wishes->to - wishes->from);
    for (i = wishes->from; i < wishes->to; i++) {
        random_row(b, &rows, wishes, random_row_at(wishes, i));
        rows.done++;
    }
    progress_wipe(&rows);
}

static void random_print_end(const bench *b, const random_wishes *wishes, double began) {
    if (wishes->famous || wishes->named)
        printf(wishes->famous ? "famous" : "named");
    else
        printf("seed %ld", wishes->seed);
    printf(", rows %d..%d: %d failed; %.0f s, of which %.0f s made plans\n", wishes->from, wishes->to,
           shared.failed, bench_seconds() - began, b->plan_seconds);
}

/* With b open. Returns the program's status. */
static int random_run(bench *b, const random_wishes *wishes) {
    double began = bench_seconds();
    int told;
    if (!random_open(b)) {
        fprintf(stderr, "%s\n", b->fault);
        random_close(b);
        return 1;
    }
    if (!random_open_csv(wishes) || !random_open_svg(wishes->svg)) {
        random_close(b);
        return 1;
    }
    random_measure_rows(b, wishes);
    told = random_tell(&shared.outcomes, wishes->svg) || wishes->candidates;
    random_print_end(b, wishes, began);
    random_close(b);
    return !random_close_file(shared.csv, wishes->candidates ? wishes->candidates : wishes->csv) || !told ||
           shared.failed != 0;
}

/* What is measured on, with every library loaded. Returns the program's status. */
static int random_card(bench *b) {
    char driver[16], nvrtc_version[16], cublaslt[16];
    gemmepi_context_details details;
    int opened = random_open(b) && bench_ok(b, gemmepi_context_info(shared.contexts[2], &details));
    random_close(b);
    if (!opened) {
        fprintf(stderr, "%s\n", b->fault);
        return 1;
    }
    random_version(driver, sizeof driver, details.driver_version, 1000, 10);
    random_version(nvrtc_version, sizeof nvrtc_version, details.nvrtc_version, 1000, 10);
    random_version(cublaslt, sizeof cublaslt, details.cublaslt_version, 10000, 100);
    printf("gemmepi %s\n%s, compute capability %d.%d, %d multiprocessors\n", GEMMEPI_VERSION_STRING,
           details.name, details.compute_capability / 10, details.compute_capability % 10,
           details.multiprocessors);
    printf("driver of CUDA %s, NVRTC %s, cuBLASLt %s\n", driver, nvrtc_version, cublaslt);
    return 0;
}

/* The rows' problems, as they are drawn where none is refused. */
static int random_list(const random_wishes *wishes) {
    int i;
    for (i = wishes->from; i < wishes->to; i++) {
        draw_problem p;
        char name[DRAW_NAME];
        int attempt = 0, row = random_row_at(wishes, i);
        if (!random_problem(wishes, row, &attempt, &p))
            return 1;
        random_name(wishes, row, &p, name);
        printf("%5d  %-*s %10.3f GFLOP %8.1f MiB\n", row,
               wishes->famous ? RANDOM_FAMOUS_WIDTH : OUTCOME_NAME_WIDTH, name, draw_operations(&p) * 1e-9,
               (double)draw_bytes(&p) / 1048576);
    }
    return 0;
}

/* Prints the report of CSVs, and draws it. Returns the program's status. */
static int random_report(const char *const *paths, int count, const char *svg) {
    outcomes list;
    int right = 1, i;
    memset(&list, 0, sizeof list);
    for (i = 0; i < count && right; i++)
        right = outcomes_read(&list, paths[i]);
    if (right && !list.count) {
        fprintf(stderr, "there is nothing to report\n");
        right = 0;
    }
    right = right && random_open_svg(svg) && random_tell(&list, svg);
    outcomes_close(&list);
    return !right;
}
