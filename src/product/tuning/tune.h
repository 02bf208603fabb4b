/* Which way to run a problem is fastest, found out by timing. What would be chosen untuned, or an older answer, is replaced only by what is
   faster by more than two timings of one way differ. */
#ifndef GEMMEPI_PRODUCT_TUNING_TUNE_H
#define GEMMEPI_PRODUCT_TUNING_TUNE_H

#include "trial.h"

enum {
    GPI__TUNE_ROUNDS = 9,
    GPI__TUNE_LEAST = 3, /* rounds whatever time there is */
    GPI__TUNE_LAST = 5   /* likewise, in the last comparison */
};
#define GPI__TUNE_SLOW 1.25 /* a way that takes so much more than the best of a round is left */
#define GPI__TUNE_GAIN 0.99 /* what is to replace another is faster than that at least */
#define GPI__TUNE_FAR  3.0  /* a way that takes so much more when it is run once is not timed by turns, */
#define GPI__TUNE_LONG 100  /* if that is so many microseconds, which is more than the host needs */
#define GPI__TUNE_BUSY 0.03 /* of two timings of one way, a warning */

#define GPI__MOST_THREADS 256

/* A way as it is timed. */
typedef struct gpi__timed {
    gpi__candidate *way;
    gemmepi_plan *plan; /* NULL: it cannot be built, or was not */
    gpi__cu_graph_exec exec;
    int calls, rounds;
    double times[GPI__TUNE_ROUNDS];
    int left;   /* it is too slow, wrong or not timed */
    int missed; /* it may be as fast as any, and there was no time or memory for it */
} gpi__timed;

/* One problem under way. */
typedef struct gpi__tuning {
    gemmepi_context *context;
    const gpi__problem *problem;
    const gpi__tuned_kind *kind;
    const gemmepi_tune_options *options;
    gpi__ways ways;
    gpi__timed timed[GPI__MOST_WAYS + 1]; /* the last is the one that stays, again */
    gpi__trial trial;
    double building_ends, half, ends; /* seconds; 0: never */
    double best_once;                 /* the least time of a way that was run once */
    double noise;                     /* by how much two timings of one way differ, of 1 */
    gpi__timed *stays;                /* what is there, or would be chosen untuned */
    gpi__mutex lock;
    int next;              /* to be built */
    gemmepi_status failed; /* of the first that could not be built, and why */
    char sentence[GPI__ERROR_TEXT_SIZE];
} gpi__tuning;

static int gpi__is_before(double ends) {
    return ends <= 0 || gpi__seconds() < ends;
}

static double gpi__ends_after(double milliseconds) {
    return milliseconds > 0 ? gpi__seconds() + 1e-3 * milliseconds : 0;
}

/* >>building all on several threads */

static gemmepi_status gpi__build_way(gpi__tuning *tuning, gpi__timed *timed) {
    gpi__entry entry;
    gemmepi_status status = gpi__enter_relaxed(tuning->context, &entry);
    if (!status) {
        status = tuning->kind->build(tuning->context, tuning->problem, timed->way, &timed->plan);
        gpi__leave_relaxed(tuning->context, &entry);
    }
    if (status)
        gpi__say(&tuning->context->log,
                 status == GEMMEPI_UNSUPPORTED ? GEMMEPI_LOG_DEBUG : GEMMEPI_LOG_WARNING,
                 "tuning leaves out a way of the route %s: %s", gpi__route_names[timed->way->route],
                 gpi__error_text);
    timed->missed &= status == GEMMEPI_OK || status == GEMMEPI_OUT_OF_MEMORY;
    return status;
}

/* The first ways are always built. */
static void gpi__build_some(gpi__tuning *tuning) {
    gpi__lock(&tuning->lock);
    while (tuning->next < tuning->ways.count &&
           (tuning->next < tuning->ways.first || gpi__is_before(tuning->building_ends))) {
        int mine = tuning->next++;
        gemmepi_status status;
        gpi__unlock(&tuning->lock);
        status = gpi__build_way(tuning, &tuning->timed[mine]);
        gpi__lock(&tuning->lock);
        if (!status || tuning->failed)
            continue;
        tuning->failed = status;
        snprintf(tuning->sentence, sizeof tuning->sentence, "%s", gpi__error_text);
    }
    gpi__unlock(&tuning->lock);
}

GPI__THREAD_BODY(gpi__build_body) {
    gpi__build_some((gpi__tuning *)user);
    return 0;
}

static void gpi__build_ways(gpi__tuning *tuning) {
    gpi__thread others[GPI__MOST_THREADS];
    int threads = tuning->options->threads ? tuning->options->threads : gpi__core_count(), started = 0, i;
    if (threads > GPI__MOST_THREADS)
        threads = GPI__MOST_THREADS;
    while (started < threads - 1 && gpi__thread_start(&others[started], gpi__build_body, tuning))
        started++;
    gpi__build_some(tuning);
    for (i = 0; i < started; i++)
        gpi__thread_join(others[i]);
}

/* >>right or wrong */

/* Whether the way is of no use for a run: it could not be built, cuBLASLt refuses it, or there is no memory for its workspace. */
static int gpi__is_no_way(const gpi__tuning *tuning, gemmepi_status status) {
    return status == GEMMEPI_UNSUPPORTED || (status == GEMMEPI_OUT_OF_MEMORY && tuning->trial.has_no_room);
}

/* Reads what the others are held against: what PLAIN leaves, whose kernel is the simplest, else the first that runs. Which that is in
   *reference. */
static gemmepi_status gpi__read_reference(gpi__tuning *tuning, const gpi__timed **reference) {
    gemmepi_status status = gpi__fail(tuning->failed ? tuning->failed : GEMMEPI_UNSUPPORTED,
                                      "no way to run the problem could be built: %s", tuning->sentence);
    int plain, i;
    for (plain = 1; plain >= 0; plain--)
        for (i = 0; i < tuning->ways.count; i++) {
            const gpi__timed *timed = &tuning->timed[i];
            if (!timed->plan || (timed->way->route == GEMMEPI_ROUTE_PLAIN) != plain)
                continue;
            status = gpi__read_way(&tuning->trial, timed->plan, tuning->trial.reference);
            *reference = timed;
            if (!gpi__is_no_way(tuning, status))
                return status;
        }
    return status;
}

static void gpi__tell_wrong_way(const gpi__tuning *tuning, const gpi__timed *timed) {
    char words[GPI__WORDS_SIZE];
    gpi__text text = gpi__text_in(words, sizeof words);
    gpi__append_words(&text, tuning->problem);
    gpi__say(
        &tuning->context->log, GEMMEPI_LOG_WARNING,
        "tuning left out the route %s, shape %d, answer %d of cuBLASLt, whose results are not those of the reference: %s",
        gpi__route_names[timed->way->route], timed->way->shape, timed->way->nth, words);
}

/* Leaves the way where it does not run, or is wrong. */
static gemmepi_status gpi__check_way(gpi__tuning *tuning, gpi__timed *timed) {
    gemmepi_status status = gpi__read_way(&tuning->trial, timed->plan, tuning->trial.compared);
    timed->left = gpi__is_no_way(tuning, status);
    timed->missed = status == GEMMEPI_OUT_OF_MEMORY;
    if (timed->left)
        return GEMMEPI_OK;
    timed->left = !status && gpi__outputs_off(&tuning->trial) > 1;
    if (timed->left)
        gpi__tell_wrong_way(tuning, timed);
    return status;
}

/* Whether one of the first ways has the algorithm already. */
static int gpi__is_timed_already(const gpi__tuning *tuning, const gpi__timed *timed) {
    int i;
    for (i = 0; timed->way->nth && i < tuning->ways.first; i++) {
        const gpi__candidate *first = tuning->timed[i].way;
        if (tuning->timed[i].plan && !tuning->timed[i].left && first->route == timed->way->route &&
            first->is_inside == timed->way->is_inside &&
            memcmp(&first->algorithm, &timed->way->algorithm, sizeof first->algorithm) == 0)
            return 1;
    }
    return 0;
}

/* >>timing by turns */

static int gpi__compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double gpi__median(const gpi__timed *timed) {
    double sorted[GPI__TUNE_ROUNDS];
    memcpy(sorted, timed->times, (size_t)timed->rounds * sizeof *sorted);
    qsort(sorted, (size_t)timed->rounds, sizeof *sorted, gpi__compare_times);
    return timed->rounds ? sorted[timed->rounds / 2] : GPI__NEVER;
}

/* How long a call takes, about, and a graph of as many as are timed. What is far slower than another is left. */
static gemmepi_status gpi__prepare_way(gpi__tuning *tuning, gpi__timed *timed) {
    gpi__trial *trial = &tuning->trial;
    double once = 0;
    gemmepi_status status = gpi__time_once(trial, timed->plan, 2, NULL, &once);
    if (status)
        return status;
    timed->left = once > GPI__TUNE_LONG && once > GPI__TUNE_FAR * tuning->best_once;
    if (timed->left)
        return GEMMEPI_OK;
    if (once < tuning->best_once)
        tuning->best_once = once;
    timed->calls = once > 0 ? (int)(GPI__TRIAL_TIME / once) : GPI__TRIAL_CALLS;
    if (trial->mode == GEMMEPI_TUNE_BURST && timed->calls > GPI__TRIAL_BURST)
        timed->calls = GPI__TRIAL_BURST;
    timed->calls = timed->calls < 2 ? 2 : timed->calls > GPI__TRIAL_CALLS ? GPI__TRIAL_CALLS : timed->calls;
    return trial->mode == GEMMEPI_TUNE_STREAM
               ? GEMMEPI_OK
               : gpi__capture_calls(trial, timed->plan, timed->calls, &timed->exec);
}

/* Times it once more. */
static gemmepi_status gpi__time_way(gpi__tuning *tuning, gpi__timed *timed) {
    gemmepi_status status = timed->calls ? GEMMEPI_OK : gpi__prepare_way(tuning, timed);
    if (gpi__is_no_way(tuning, status)) {
        timed->left = 1;
        return GEMMEPI_OK;
    }
    if (!status && !timed->left)
        status = gpi__time_once(&tuning->trial, timed->plan, timed->calls, timed->exec,
                                &timed->times[timed->rounds++]);
    return status;
}

/* Way by way: whether it is right, and how long it takes. Behind the first ways only for half of the time. */
static gemmepi_status gpi__time_first_round(gpi__tuning *tuning) {
    const gpi__timed *reference = NULL;
    gemmepi_status status;
    int i;
    for (i = 0; i < tuning->ways.count; i++)
        if (tuning->timed[i].plan)
            gpi__acquire_trial_workspace(&tuning->trial, tuning->timed[i].plan);
    status = gpi__read_reference(tuning, &reference);
    for (i = 0; i < tuning->ways.count && !status; i++) {
        gpi__timed *timed = &tuning->timed[i];
        timed->left = !timed->plan || (i >= tuning->ways.first && !gpi__is_before(tuning->half));
        if (timed->left)
            continue;
        timed->missed = 0;
        timed->left = gpi__is_timed_already(tuning, timed);
        if (!timed->left && timed != reference)
            status = gpi__check_way(tuning, timed);
        if (!status && !timed->left)
            status = gpi__time_way(tuning, timed);
        if (!status && !timed->left && !tuning->stays)
            tuning->stays = timed;
    }
    return status;
}

/* What stays takes part a second time, by the same plan and graph. */
static gemmepi_status gpi__time_again(gpi__tuning *tuning) {
    gpi__timed *again = &tuning->timed[tuning->ways.count];
    GPI__UNSUPPORTED_IF(!tuning->stays, "no way to run the problem was right and could be timed");
    *again = *tuning->stays;
    again->rounds = again->missed = 0;
    return gpi__time_way(tuning, again);
}

/* Leaves what is slower than the best of the round by far, but what stays. */
static void gpi__leave_slow_ways(gpi__tuning *tuning, int rounds) {
    double best = GPI__NEVER;
    int i;
    for (i = 0; i < tuning->ways.count; i++)
        if (tuning->timed[i].rounds == rounds && tuning->timed[i].times[rounds - 1] < best)
            best = tuning->timed[i].times[rounds - 1];
    for (i = 0; i < tuning->ways.count; i++)
        tuning->timed[i].left |=
            &tuning->timed[i] != tuning->stays && gpi__median(&tuning->timed[i]) > GPI__TUNE_SLOW * best;
}

static gemmepi_status gpi__time_ways(gpi__tuning *tuning) {
    gemmepi_status status = gpi__time_first_round(tuning);
    int round, i, count = tuning->ways.count + 1;
    if (!status)
        status = gpi__time_again(tuning);
    for (round = 1; round < GPI__TUNE_ROUNDS && !status; round++) {
        gpi__leave_slow_ways(tuning, round);
        for (i = 0; i < count && !status && (round < GPI__TUNE_LEAST || gpi__is_before(tuning->ends)); i++) {
            gpi__timed *timed = &tuning->timed[round % 2 ? count - 1 - i : i];
            if (!timed->left)
                status = gpi__time_way(tuning, timed);
        }
    }
    return status;
}

/* >>which is taken */

static gpi__timed *gpi__fastest_way(gpi__tuning *tuning) {
    gpi__timed *best = tuning->stays;
    int i;
    for (i = 0; i < tuning->ways.count; i++)
        if (!tuning->timed[i].left && gpi__median(&tuning->timed[i]) < gpi__median(best))
            best = &tuning->timed[i];
    return best;
}

/* Whether a way replaces what stays, of which there are two timings: it is faster than both, by more than they differ. */
static int gpi__replaces(double microseconds, double one, double other) {
    double least = one < other ? one : other;
    return microseconds < GPI__TUNE_GAIN * least && microseconds < least - fabs(one - other);
}

/* The fastest against what stays, which is timed twice, by turns again: the least of many times is too low by chance. Returns which is
   taken. */
static gemmepi_status gpi__compare_last(gpi__tuning *tuning, gpi__timed **taken) {
    gpi__timed *stays = tuning->stays, *again = &tuning->timed[tuning->ways.count], *best = *taken;
    gpi__timed *const turns[3] = {stays, best, again};
    gemmepi_status status = GEMMEPI_OK;
    double one, other;
    int round, i, count = best == stays ? 0 : 3;
    for (i = 0; i < count; i++)
        turns[i]->rounds = 0;
    for (round = 0; round < GPI__TUNE_ROUNDS; round++)
        for (i = 0; i < count && !status && (round < GPI__TUNE_LAST || gpi__is_before(tuning->ends)); i++)
            status = gpi__time_way(tuning, turns[round % 2 ? 2 - i : i]);
    one = gpi__median(stays), other = gpi__median(again);
    tuning->noise = one > 0 ? fabs(one - other) / one : 0;
    if (!gpi__replaces(gpi__median(best), one, other))
        *taken = stays;
    return status;
}

/* >>a problem */

static void gpi__drop_ways(gpi__tuning *tuning) {
    int i;
    for (i = 0; i < tuning->ways.count; i++) {
        if (tuning->timed[i].exec)
            tuning->context->driver.graph_exec_destroy(tuning->timed[i].exec);
        if (tuning->timed[i].plan)
            gpi__release_plan(tuning->timed[i].plan);
    }
}

static void gpi__count_ways(const gpi__tuning *tuning, gpi__answer *answer) {
    int i;
    for (i = 0; i < tuning->ways.count; i++) {
        answer->ways_timed += tuning->timed[i].rounds > 0;
        answer->ways_left += tuning->timed[i].missed;
    }
}

static void gpi__tell_answer(const gpi__tuning *tuning, const gpi__answer *answer) {
    const gpi__log *log = &tuning->context->log;
    if (tuning->noise > GPI__TUNE_BUSY)
        gpi__say(
            log, GEMMEPI_LOG_WARNING,
            "two timings of one way differ by %.1f percent, so other work seems to use the GPU: what was chosen before stays, but "
            "for what is faster by more: %s",
            100 * tuning->noise, answer->words);
    gpi__say(log, GEMMEPI_LOG_INFO, "tuned %s: %s, %.1f us, the fastest of %d ways%s", answer->words,
             gpi__route_names[answer->candidate.route], answer->candidate.microseconds, answer->ways_timed,
             answer->ways_left ? "; others were not timed, for want of time or memory" : "");
}

static gemmepi_status gpi__note_answer(const gpi__tuning *tuning, const gpi__timed *taken) {
    gemmepi_context *context = tuning->context;
    gpi__answer answer;
    gpi__text words;
    gemmepi_status status;
    memset(&answer, 0, sizeof answer);
    gpi__problem_digest(tuning->problem, answer.digest);
    answer.candidate = *taken->way;
    answer.candidate.microseconds = gpi__median(taken);
    answer.candidate.nth = 0;
    if (answer.candidate.algorithm.id)
        answer.cublaslt = context->cublaslt.version;
    gpi__count_ways(tuning, &answer);
    words = gpi__text_in(answer.words, sizeof answer.words);
    gpi__append_words(&words, tuning->problem);
    gpi__lock(&context->build_lock);
    status = gpi__keep_answer(context, &answer);
    gpi__unlock(&context->build_lock);
    if (status)
        return status;
    gpi__store_answer(context, &answer);
    gpi__forget_all_kept(context);
    gpi__tell_answer(tuning, &answer);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__time_problem(gpi__tuning *tuning) {
    gpi__timed *taken = NULL;
    gemmepi_status status;
    int i;
    for (i = 0; i < tuning->ways.count; i++) {
        tuning->timed[i].way = &tuning->ways.list[i];
        tuning->timed[i].missed = 1;
    }
    tuning->best_once = GPI__NEVER;
    tuning->building_ends = gpi__ends_after(tuning->options->milliseconds);
    gpi__build_ways(tuning);
    status = gpi__open_trial(&tuning->trial, tuning->context, tuning->problem, tuning->kind, tuning->options);
    tuning->half = gpi__ends_after(tuning->options->milliseconds / 2);
    tuning->ends = gpi__ends_after(tuning->options->milliseconds);
    if (!status)
        status = gpi__time_ways(tuning);
    if (!status) {
        taken = gpi__fastest_way(tuning);
        status = gpi__compare_last(tuning, &taken);
    }
    if (tuning->trial.stream) {
        gemmepi_status waited = gpi__trial_wait(&tuning->trial);
        status = status ? status : waited;
    }
    gpi__close_trial(&tuning->trial);
    if (!status)
        status = gpi__note_answer(tuning, taken);
    gpi__drop_ways(tuning);
    return status;
}

/* An older answer goes first, and stays where nothing is faster. */
static void gpi__put_first(const gpi__candidate *older, gpi__ways *ways) {
    if (ways->count == GPI__MOST_WAYS)
        ways->count--;
    memmove(ways->list + 1, ways->list, (size_t)ways->count * sizeof *ways->list);
    ways->list[0] = *older;
    ways->count++;
    ways->first++;
}

static gemmepi_status gpi__tune_now(gemmepi_context *context, const gpi__problem *problem,
                                    const gpi__tuned_kind *kind, const gemmepi_tune_options *options) {
    gpi__tuning *tuning = (gpi__tuning *)gpi__new(&context->allocator, sizeof *tuning);
    gpi__answer answer;
    gpi__entry entry;
    gemmepi_status status;
    if (!tuning)
        return GEMMEPI_OUT_OF_MEMORY;
    tuning->context = context;
    tuning->problem = problem;
    tuning->kind = kind;
    tuning->options = options;
    if (!gpi__mutex_init(&tuning->lock)) {
        gpi__delete(&context->allocator, tuning);
        return gpi__fail(GEMMEPI_OUT_OF_MEMORY, "the system gave no mutex");
    }
    status = gpi__enter_relaxed(context, &entry);
    if (!status) {
        int has_answer = kind->find(context, problem, &answer);
        kind->enumerate(context, problem, &tuning->ways);
        if (has_answer)
            gpi__put_first(&answer.candidate, &tuning->ways);
        if (options->again || !has_answer)
            status = gpi__time_problem(tuning);
        gpi__leave_relaxed(context, &entry);
    }
    gpi__mutex_destroy(&tuning->lock);
    gpi__delete(&context->allocator, tuning);
    return status;
}

/* One problem at a time; another thread may have found its answer meanwhile. */
static gemmepi_status gpi__tune_problem(gemmepi_context *context, const gpi__problem *problem,
                                        const gpi__tuned_kind *kind, const gemmepi_tune_options *options) {
    gemmepi_status status;
    if (context->is_host || gpi__is_empty(problem))
        return GEMMEPI_OK;
    gpi__lock(&context->tune_lock);
    status = gpi__tune_now(context, problem, kind, options);
    gpi__unlock(&context->tune_lock);
    return status;
}

/* >>products */

static gemmepi_status gpi__build_product_way(gemmepi_context *context, const gpi__problem *problem,
                                             gpi__candidate *way, gemmepi_plan **plan) {
    gemmepi_status status = gpi__build_plan_by(context, problem, way, plan);
    if (!status)
        way->algorithm = ((const gpi__matmul_plan *)*plan)->algorithm;
    return status;
}

static size_t gpi__workspace_of_way(const gemmepi_plan *plan) {
    return gpi__workspace_of((const gpi__matmul_plan *)plan);
}

/* A way is run as it is: no plan replaces it that would take over from cuBLASLt in other runs. */
static gemmepi_status gpi__run_product_way(const gemmepi_plan *base, const gpi__trial *trial, int set,
                                           gpi__arguments *arguments) {
    const gpi__matmul_plan *plan = (const gpi__matmul_plan *)base;
    gpi__space space = {trial->workspace, trial->workspace_size, NULL, trial->stream, 0, 0};
    gemmepi_status status;
    (void)set;
    if (plan->around) {
        status = gpi__run_on_device(plan, &space, arguments);
        return status || gpi__current_plan(plan) == plan
                   ? status
                   : gpi__fail(GEMMEPI_UNSUPPORTED, "cuBLASLt refused it when it was run");
    }
    GPI__UNSUPPORTED_IF(gpi__needs_other_plan(plan, arguments), "%s", gpi__needs_other_plan(plan, arguments));
    return plan->route->run(plan, arguments, plan->workspace_size ? trial->workspace : NULL, trial->stream);
}

static const gpi__tuned_kind gpi__tuned_products = {gpi__enumerate_ways, gpi__find_tuned,
                                                    gpi__build_product_way, gpi__workspace_of_way,
                                                    gpi__run_product_way};

/* What is tuned of a plan: with a formula that is no epilogue, the product with that; else the product that its route runs. The launch that
   finds scales is the same in all ways. NULL: there is no product. */
static const gpi__problem *gpi__tuned_problem(const gpi__matmul_plan *plan) {
    const gpi__around *around = plan->around;
    if (around && around->lacks_product)
        return NULL;
    if (around && GPI__FORMULA(&around->inside) && !around->formula.is_composed)
        return &around->inside;
    return &plan->problem;
}

static gemmepi_status gpi__tune_matmul(const gemmepi_plan *base, const gemmepi_tune_options *options) {
    const gpi__problem *problem = gpi__tuned_problem((const gpi__matmul_plan *)base);
    return problem ? gpi__tune_problem(base->context, problem, &gpi__tuned_products, options) : GEMMEPI_OK;
}

#endif
