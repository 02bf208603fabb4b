/* What a drawn product is held against: cuBLASLt with its own epilogue, where it expresses the problem, and cuBLASLt's bare product in
   16 bits with one pass of the bench's behind it. Each by the fastest of 16 of the heuristic's answers, found in the mode in which
   they race. Without Hopper's kernels, where there are such: Triton's with the epilogue inside, but for sums of bias_grad, by the fastest of its
   tiles, found likewise. */
#ifndef GEMMEPI_BENCH_OPPONENTS_H
#define GEMMEPI_BENCH_OPPONENTS_H

#include "lt.h"
#include "pass_source.h"
#include "race.h"
#include "tensors.h"
#include "triton.h"

enum {
    OPPONENT_ANSWERS = 16,
    OPPONENT_ASKED = 200,       /* where Hopper's kernels are left out of them, */
    OPPONENT_LISTED = 400,      /* and that are listed where none is left */
    OPPONENT_BURST_ANSWERS = 4, /* the best of those, which race again in burst */
    OPPONENT_TIME = 300,        /* microseconds of a graph on trial, about */
    OPPONENT_TRIALS = 3,
    OPPONENT_BURSTS = 2
};

#define OPPONENT_WARM 0.03 /* seconds of trials that do not count */

/* A cuBLASLt product with its answers, in the end OPPONENT_ANSWERS of them, the best first. The races by graphs take the first, burst takes the one
   it found. Of Triton's an answer's algorithm is a kernel's number. */
typedef struct opponent {
    lt_product product;
    lt_answer answers[OPPONENT_LISTED];
    int count; /* 0: cuBLASLt does not have it */
    int burst; /* of the answers */
} opponent;

typedef struct opponents {
    const draw_problem *problem;
    const tensors *tensors;
    const lt *lt;
    pass_shape shape;
    opponent epilogue, bare, triton;
    triton_kernels kernels;
    char *product, *parts; /* P, which is one for all sets, and the partial sums with their counters */
    void *module, *pass, *column_sums, *line_sums;
} opponents;

/* >>cuBLASLt's form of a problem

   Row-major matrices are column-major ones transposed: D^T = op(B)^T op(A)^T, so that its A is our B, and the other way round. */

static int opponents_lt_type(gemmepi_dtype dtype) {
    return dtype == GEMMEPI_F16 ? LT_REAL_16F : LT_REAL_16BF;
}

/* At multiples of how many elements lines begin, 8 at most. */
static int64_t opponents_unit(int64_t ld) {
    return ld % 8 ? ld & -ld : 8;
}

/* Else cuBLASLt 13.1 may end in a misaligned store: it stores D as the residual lies. */
static int opponents_may_add(const draw_problem *p) {
    return opponents_unit(p->residual_ld) <= opponents_unit(p->d_ld);
}

/* Its epilogue for a problem's; -1: it has none. */
static int opponents_lt_epilogue(const draw_problem *p) {
    gemmepi_epilogue e = p->epilogue, activation = draw_activation_of(e);
    int is_relu = activation == GEMMEPI_RELU, bias = e & GEMMEPI_BIAS ? LT_EPILOGUE_BIAS : 0;
    if (e & GEMMEPI_GATED || (e & GEMMEPI_RESIDUAL && !opponents_may_add(p)))
        return -1;
    if (activation == GEMMEPI_NONE)
        return e & GEMMEPI_BGRAD_B ? LT_EPILOGUE_BGRADA : e & GEMMEPI_BGRAD_A ? LT_EPILOGUE_BGRADB : bias;
    if ((!is_relu && activation != GEMMEPI_GELU_TANH) || e & GEMMEPI_RESIDUAL)
        return -1;
    if (e & GEMMEPI_BACKWARD)
        return (is_relu ? LT_EPILOGUE_DRELU : LT_EPILOGUE_DGELU) | LT_EPILOGUE_AUX |
               (e & GEMMEPI_BGRAD ? LT_EPILOGUE_BGRAD : 0);
    return (is_relu ? LT_EPILOGUE_RELU : LT_EPILOGUE_GELU) | bias | (e & GEMMEPI_AUX ? LT_EPILOGUE_AUX : 0);
}

static lt_form opponents_form(const draw_problem *p) {
    lt_form form;
    memset(&form, 0, sizeof form);
    form.rows = p->n, form.columns = p->m, form.inner = p->k;
    form.a_transposed = p->b_transposed, form.b_transposed = p->a_transposed;
    form.a_ld = p->b_ld, form.b_ld = p->a_ld;
    form.type = opponents_lt_type(p->dtype);
    return form;
}

/* With its own epilogue: a residual without an activation is its C, as is a D that accumulates. */
static lt_form opponents_epilogue_form(const draw_problem *p, int epilogue) {
    lt_form form = opponents_form(p);
    form.epilogue = epilogue;
    form.d_is_f32 = p->d_dtype == GEMMEPI_F32;
    form.d_ld = p->d_ld;
    form.adds = p->accumulates || p->epilogue & GEMMEPI_RESIDUAL;
    form.c_ld = p->residual_ld;
    form.aux_ld = p->aux_ld;
    return form;
}

/* Into P, or, where no pass follows, into D. */
static lt_form opponents_bare_form(const draw_problem *p, const pass_shape *s) {
    lt_form form = opponents_form(p);
    if (s->has_pass) {
        form.d_ld = s->p_ld;
        return form;
    }
    form.d_is_f32 = p->d_dtype == GEMMEPI_F32;
    form.d_ld = p->d_ld;
    form.adds = p->accumulates;
    return form;
}

static lt_pointers opponents_pointers(const opponents *o, int set, int is_bare) {
    const tensors *t = o->tensors;
    lt_pointers at;
    at.a = tensors_at(t, set, OF_B);
    at.b = tensors_at(t, set, OF_A);
    at.d = is_bare && o->shape.has_pass ? o->product : tensors_at(t, set, OF_D);
    at.c = o->problem->residual_ld ? tensors_at(t, set, OF_RESIDUAL) : tensors_at(t, set, OF_D);
    at.bias = tensors_at(t, set, o->shape.has_sums ? OF_BIAS_GRAD : OF_BIAS);
    at.aux = tensors_at(t, set, OF_AUX);
    return at;
}

/* >>one call of each */

static int opponents_run_epilogue(bench *b, const opponents *o, int set) {
    lt_pointers at = opponents_pointers(o, set, 0);
    return lt_run(b, o->lt, &o->epilogue.product, &at);
}

static int opponents_run_bare(bench *b, const opponents *o, int set) {
    lt_pointers at = opponents_pointers(o, set, 1);
    return lt_run(b, o->lt, &o->bare.product, &at);
}

static int opponents_launch(bench *b, void *function, unsigned grid_x, unsigned grid_y, void **parameters) {
    return bench_did(
        b, b->driver.launch(function, grid_x, grid_y, 1, PASS_THREADS, 1, 1, 0, b->stream, parameters, NULL),
        "launching the bench's pass");
}

static int opponents_launch_pass(bench *b, const opponents *o, int set) {
    const tensors *t = o->tensors;
    void *p = o->product, *d = tensors_at(t, set, OF_D), *bias = tensors_at(t, set, OF_BIAS);
    void *aux = tensors_at(t, set, OF_AUX), *residual = tensors_at(t, set, OF_RESIDUAL);
    void *parameters[5];
    parameters[0] = &p, parameters[1] = &d, parameters[2] = &bias, parameters[3] = &aux;
    parameters[4] = &residual;
    return opponents_launch(b, o->pass, o->shape.grid, 1, parameters);
}

static int opponents_launch_sums(bench *b, const opponents *o, int set) {
    const pass_sums *s = &o->shape.sums;
    gemmepi_epilogue e = o->problem->epilogue;
    void *from = tensors_at(o->tensors, set, e & GEMMEPI_BGRAD_A ? OF_A : e & GEMMEPI_BGRAD_B ? OF_B : OF_D);
    void *to = tensors_at(o->tensors, set, OF_BIAS_GRAD), *parts = o->parts;
    void *counters = o->parts + pass_partial_bytes(&o->shape), *parameters[4];
    parameters[0] = &from, parameters[1] = &to, parameters[2] = &parts, parameters[3] = &counters;
    return opponents_launch(b, s->of_lines ? o->line_sums : o->column_sums, s->grid_x, s->grid_y, parameters);
}

static int opponents_run_pass(bench *b, const opponents *o, int set) {
    return opponents_run_bare(b, o, set) && (!o->shape.has_pass || opponents_launch_pass(b, o, set)) &&
           (!o->shape.has_sums || opponents_launch_sums(b, o, set));
}

static int opponents_run_triton(bench *b, const opponents *o, int set) {
    const triton_kernel *kernel = &o->kernels.all[o->triton.product.answer.algorithm[0]];
    return triton_launch(b, kernel, o->tensors, set) &&
           (!o->shape.has_sums || opponents_launch_sums(b, o, set));
}

/* >>opening */

static int opponents_load(bench *b, opponents *o, const nvrtc *n) {
    static pass_text text;
    char *cubin = NULL;
    int loaded;
    if (!pass_write(&text, o->problem, &o->shape))
        return bench_fail(b, "the pass's source does not fit into %d bytes", (int)PASS_SOURCE);
    if (!text.length)
        return 1;
    loaded = nvrtc_compile(b, n, text.text, b->details.compute_capability, &cubin) &&
             bench_did(b, b->driver.module_load(&o->module, cubin), "loading the bench's pass") &&
             (!o->shape.has_pass || race_function(b, &o->pass, o->module, "bench_pass")) &&
             (!o->shape.has_sums || (race_function(b, &o->column_sums, o->module, "bench_column_sums") &&
                                     race_function(b, &o->line_sums, o->module, "bench_line_sums")));
    free(cubin);
    return loaded;
}

static int opponents_alloc(bench *b, opponents *o) {
    size_t product = pass_product_bytes(o->problem, &o->shape);
    size_t parts = o->shape.has_sums ? pass_partial_bytes(&o->shape) + pass_counter_bytes(&o->shape) : 0;
    void *pointer = NULL;
    if (!bench_ok(b, gemmepi_alloc(b->context, product, &pointer)))
        return 0;
    o->product = pointer;
    if (!bench_ok(b, gemmepi_alloc(b->context, parts, &pointer)))
        return 0;
    o->parts = pointer;
    return !parts || bench_set_bytes(b, o->parts, 0, parts);
}

/* The heuristic looks at the pointers' alignment. */
static int opponents_ask(bench *b, const opponents *o, opponent *to, const lt_form *form, int is_bare) {
    lt_pointers at = opponents_pointers(o, 0, is_bare);
    if (!lt_describe(b, o->lt, &to->product, form) || !lt_point(b, o->lt, &to->product, &at) ||
        !lt_ask(b, o->lt, &to->product, b->is_ampere ? OPPONENT_ASKED : OPPONENT_ANSWERS, to->answers,
                &to->count))
        return 0;
    if (b->is_ampere)
        to->count = lt_leave_out_hopper(o->lt, to->answers, to->count, OPPONENT_ANSWERS);
    if (b->is_ampere && !to->count)
        to->count = lt_list_others(o->lt, &to->product, form, to->answers, OPPONENT_LISTED);
    return 1;
}

/* Whether it runs; the fault that says why not is of no interest. */
static int opponents_keep_those_that_run(bench *b, race *r, int series, opponent *to) {
    int kept = 0, i;
    for (i = 0; i < to->count; i++) {
        to->product.answer = to->answers[i];
        if (!to->answers[i].state && r->call(b, r->user, series, 0))
            to->answers[kept++] = to->answers[i];
    }
    to->count = kept;
    return race_wait(b);
}

/* >>the choice of an algorithm */

typedef struct opponent_trial {
    void *graph;
    lt_answer answer;
    double times[OPPONENT_TRIALS], middle;
} opponent_trial;

static int opponents_compare(const void *a, const void *b) {
    double x = ((const opponent_trial *)a)->middle, y = ((const opponent_trial *)b)->middle;
    return (x > y) - (x < y);
}

static double opponents_middle(const double *t) {
    double low = t[0] < t[1] ? t[0] : t[1], high = t[0] < t[1] ? t[1] : t[0];
    return t[2] < low ? low : t[2] > high ? high : t[2];
}

/* Leaves OPPONENT_ANSWERS of more answers, by the time of one call each. */
static int opponents_shorten(bench *b, race *r, int series, opponent *to) {
    static opponent_trial trials[OPPONENT_LISTED];
    int i;
    for (i = 0; i < to->count; i++) {
        to->product.answer = trials[i].answer = to->answers[i];
        if (!race_hold(b, r->tools) || !race_mark(b, b->began) || !r->call(b, r->user, series, 0) ||
            !race_mark(b, b->ended) || !race_elapsed(b, &trials[i].middle))
            return 0;
    }
    qsort(trials, (size_t)to->count, sizeof *trials, opponents_compare);
    to->count = to->count < OPPONENT_ANSWERS ? to->count : OPPONENT_ANSWERS;
    for (i = 0; i < to->count; i++)
        to->answers[i] = trials[i].answer;
    return 1;
}

/* Short graphs over the sets, each of its own answer, by turns; until the clocks are those of the race none counts. */
static int opponents_time_trials(bench *b, const race *r, opponent_trial *trials, int count, double about) {
    double began = bench_seconds(), unused;
    int i;
    for (i = 0; i % count || bench_seconds() - began < OPPONENT_WARM * r->scale; i++)
        if (!race_replay(b, trials[i % count].graph, about, &unused))
            return 0;
    for (i = 0; i < OPPONENT_TRIALS * count; i++)
        if (!race_replay(b, trials[i % count].graph, about, &trials[i % count].times[i / count]))
            return 0;
    for (i = 0; i < count; i++)
        trials[i].middle = opponents_middle(trials[i].times);
    return 1;
}

/* An answer that cannot be captured is left out. */
static int opponents_capture_trials(bench *b, race *r, int series, opponent *to, opponent_trial *trials,
                                    int calls) {
    race_body body;
    int kept = 0, i;
    body.series = series, body.count = calls, body.spaced = 0;
    for (i = 0; i < to->count; i++) {
        to->product.answer = trials[kept].answer = to->answers[i];
        r->next[series] = 0;
        kept += race_capture(b, r, &body, &trials[kept].graph);
    }
    to->count = kept;
    return kept > 0;
}

/* Orders the answers by their times in graphs, the fastest first. `series` runs the product with its answer. */
static int opponents_order(bench *b, race *r, int series, opponent *to) {
    opponent_trial trials[OPPONENT_ANSWERS];
    int calls, done, i;
    memset(trials, 0, sizeof trials);
    to->product.answer = to->answers[0];
    if (!race_try(b, r, series))
        return 0;
    calls = race_clamp(ceil(OPPONENT_TIME / r->once[series]), 2, TENSORS_MOST_SETS);
    done = opponents_capture_trials(b, r, series, to, trials, calls) &&
           opponents_time_trials(b, r, trials, to->count, calls * r->once[series]);
    for (i = 0; i < to->count; i++)
        if (trials[i].graph)
            b->driver.executable_destroy(trials[i].graph);
    qsort(trials, (size_t)to->count, sizeof *trials, opponents_compare);
    for (i = 0; done && i < to->count; i++)
        to->answers[i] = trials[i].answer;
    return done;
}

/* An answer's time in burst: the least of a few. */
static int opponents_burst_time(bench *b, race *r, int series, double *least) {
    race_lane lane;
    double time;
    int done, i;
    memset(&lane, 0, sizeof lane);
    done = race_burst_prepare(b, r, series, &lane);
    for (i = 0; done && i < OPPONENT_BURSTS; i++) {
        done = race_burst_measure(b, r, series, &lane, &time);
        if (done && (!i || time < *least))
            *least = time;
    }
    race_drop(b, &lane);
    return done;
}

static int opponents_choose_in_burst(bench *b, race *r, int series, opponent *to) {
    double least = 0, time = 0;
    int i;
    for (i = 0; i < to->count && i < OPPONENT_BURST_ANSWERS; i++) {
        to->product.answer = to->answers[i];
        if (!opponents_burst_time(b, r, series, &time))
            return 0;
        if (!i || time < least)
            least = time, to->burst = i;
    }
    return 1;
}

static int opponents_choose_one(bench *b, race *r, int series, opponent *to, int in_burst) {
    if (!opponents_keep_those_that_run(b, r, series, to))
        return 0;
    if (!to->count)
        return 1;
    if (to->count > OPPONENT_ANSWERS && !opponents_shorten(b, r, series, to))
        return 0;
    return opponents_order(b, r, series, to) && (!in_burst || opponents_choose_in_burst(b, r, series, to));
}

/* The algorithms with which a mode runs. */
static void opponents_set_mode(opponents *o, int mode) {
    opponent *all[3];
    int i;
    all[0] = &o->epilogue, all[1] = &o->bare, all[2] = &o->triton;
    for (i = 0; i < 3; i++)
        all[i]->product.answer = all[i]->answers[mode == RACE_BURST ? all[i]->burst : 0];
}

/* With r->call ready to run RACE_CUBLASLT, RACE_BARE and RACE_TRITON by o. A bare product there must be. */
static int opponents_choose(bench *b, race *r, opponents *o, int in_burst) {
    if (!opponents_choose_one(b, r, RACE_BARE, &o->bare, in_burst))
        return 0;
    if (!o->bare.count)
        return bench_fail(b, b->is_ampere ? "cuBLASLt runs no algorithm but Hopper's for the bare product"
                                          : "cuBLASLt runs no algorithm for the bare product");
    return (!o->epilogue.count || opponents_choose_one(b, r, RACE_CUBLASLT, &o->epilogue, in_burst)) &&
           (!o->triton.count || opponents_choose_one(b, r, RACE_TRITON, &o->triton, in_burst));
}

/* opponents_close takes whatever this leaves. */
static int opponents_open(bench *b, opponents *o, const draw_problem *p, const tensors *t, const lt *l,
                          const nvrtc *n) {
    int epilogue = pass_is_product(p) ? -1 : opponents_lt_epilogue(p);
    lt_form form, bare;
    memset(o, 0, sizeof *o);
    o->problem = p, o->tensors = t, o->lt = l;
    o->shape = pass_shape_of(p);
    form = opponents_epilogue_form(p, epilogue);
    bare = opponents_bare_form(p, &o->shape);
    return opponents_alloc(b, o) && opponents_load(b, o, n) && opponents_ask(b, o, &o->bare, &bare, 1) &&
           (epilogue < 0 || opponents_ask(b, o, &o->epilogue, &form, 0));
}

/* What the list has for the problem of an open o. */
static int opponents_add_triton(bench *b, opponents *o, const triton_list *list) {
    int i, opened = triton_open(b, list, o->problem, &o->kernels);
    o->triton.count = o->kernels.count;
    for (i = 0; i < o->triton.count; i++)
        o->triton.answers[i].algorithm[0] = (uint64_t)i;
    return opened;
}

static void opponents_close(bench *b, opponents *o) {
    gemmepi_status first, second;
    triton_unload(b, &o->kernels);
    lt_forget(o->lt, &o->epilogue.product);
    lt_forget(o->lt, &o->bare.product);
    if (o->module)
        b->driver.module_unload(o->module);
    first = gemmepi_free(b->context, o->product);
    second = gemmepi_free(b->context, o->parts);
    (void)first, (void)second;
}

#endif
