/* Which way to run a product is fastest, found out by timing. */
#ifndef GEMMEPI_AHEAD_TUNE_H
#define GEMMEPI_AHEAD_TUNE_H

#include "precompile.h"
#include "trial.h"

enum { GPI__TUNE_ROUNDS = 9 };
#define GPI__TUNE_SLOW 1.25 /* a way that takes so much more than the best in the first round is left */
#define GPI__TUNE_GAIN \
    0.99 /* the way that would be chosen untuned stays where another does not come below that */

/* A way as it is timed. */
typedef struct gpi__timed {
    const gpi__candidate *way;
    gpi__matmul_plan *plan; /* NULL: it cannot be built */
    gpi__cu_graph_exec exec;
    int calls, rounds;
    double times[GPI__TUNE_ROUNDS];
    int left; /* it is too slow, or wrong */
} gpi__timed;

/* One product under way. */
typedef struct gpi__tuning {
    gemmepi_context *context;
    const gpi__problem *problem;
    const gemmepi_tune_options *options;
    gpi__ways ways;
    gpi__timed timed[GPI__MOST_WAYS];
    gpi__trial trial;
    double ends; /* seconds; 0: never */
    gpi__mutex lock;
    int next;              /* to be built */
    gemmepi_status failed; /* of the first that could not be built, and why */
    char sentence[GPI__ERROR_TEXT_SIZE];
} gpi__tuning;

static int gpi__has_time(const gpi__tuning *tuning) {
    return tuning->ends <= 0 || gpi__seconds() < tuning->ends;
}

/* >>building all on several threads */

static gemmepi_status gpi__build_way(gpi__tuning *tuning, gpi__timed *timed) {
    gpi__matmul_plan *plan = gpi__new_plan(tuning->context, tuning->problem);
    gpi__entry entry;
    gemmepi_status status = plan ? gpi__enter_relaxed(tuning->context, &entry) : GEMMEPI_OUT_OF_MEMORY;
    if (!status) {
        gpi__lock(&tuning->context->build_lock);
        status = gpi__build_by(plan, timed->way->route, timed->way);
        gpi__unlock(&tuning->context->build_lock);
        gpi__leave_relaxed(tuning->context, &entry);
    }
    if (status)
        gpi__say(&tuning->context->log,
                 status == GEMMEPI_UNSUPPORTED ? GEMMEPI_LOG_DEBUG : GEMMEPI_LOG_WARNING,
                 "tuning leaves out a way of the route %s: %s", gpi__route_names[timed->way->route],
                 gpi__error_text);
    if (!status)
        timed->plan = plan;
    else if (plan)
        gpi__release_plan(&plan->base);
    return status;
}

/* The first is always built. */
static void gpi__build_some(gpi__tuning *tuning) {
    gpi__lock(&tuning->lock);
    while (tuning->next < tuning->ways.count && (tuning->next == 0 || gpi__has_time(tuning))) {
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
static gemmepi_status gpi__read_reference(gpi__tuning *tuning, int *reference) {
    gemmepi_status status = gpi__fail(tuning->failed ? tuning->failed : GEMMEPI_UNSUPPORTED,
                                      "no way to run the problem could be built: %s", tuning->sentence);
    int plain, i;
    for (plain = 1; plain >= 0; plain--)
        for (i = 0; i < tuning->ways.count; i++) {
            const gpi__timed *timed = &tuning->timed[i];
            if (!timed->plan || (timed->way->route == GEMMEPI_ROUTE_PLAIN) != plain)
                continue;
            status = gpi__read_way(&tuning->trial, timed->plan, tuning->trial.reference);
            *reference = i;
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

/* Leaves those that do not run or are wrong, those that are there to compare with, and, once there is no time, all others. */
static gemmepi_status gpi__check_ways(gpi__tuning *tuning) {
    gpi__trial *trial = &tuning->trial;
    int reference = 0, right = 0, i;
    gemmepi_status status = gpi__read_reference(tuning, &reference);
    for (i = 0; i < tuning->ways.count && !status; i++) {
        gpi__timed *timed = &tuning->timed[i];
        timed->left = timed->plan == NULL || (right && !gpi__has_time(tuning));
        if (!timed->left && i != reference) {
            status = gpi__read_way(trial, timed->plan, trial->compared);
            timed->left = gpi__is_no_way(tuning, status);
            status = timed->left ? GEMMEPI_OK : status;
            if (!status && !timed->left && !gpi__outputs_agree(trial)) {
                timed->left = 1;
                gpi__tell_wrong_way(tuning, timed);
            }
        }
        timed->left |= timed->way->rank >= GPI__NEVER && tuning->ways.count > 1 && right;
        right += !timed->left;
    }
    return status;
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

/* How long a call takes, about, and a graph of as many as are timed. */
static gemmepi_status gpi__prepare_way(gpi__tuning *tuning, gpi__timed *timed) {
    gpi__trial *trial = &tuning->trial;
    double once = 0;
    gemmepi_status status = gpi__time_once(trial, timed->plan, 2, NULL, &once);
    if (status)
        return status;
    timed->calls = once > 0 ? (int)(GPI__TRIAL_TIME / once) : GPI__TRIAL_CALLS;
    if (trial->mode == GEMMEPI_TUNE_BURST && timed->calls > GPI__TRIAL_BURST)
        timed->calls = GPI__TRIAL_BURST;
    timed->calls = timed->calls < 2 ? 2 : timed->calls > GPI__TRIAL_CALLS ? GPI__TRIAL_CALLS : timed->calls;
    return trial->mode == GEMMEPI_TUNE_STREAM
               ? GEMMEPI_OK
               : gpi__capture_calls(trial, timed->plan, timed->calls, &timed->exec);
}

/* A round of all that are not left, and who is left after it. */
static gemmepi_status gpi__time_round(gpi__tuning *tuning, int round) {
    gemmepi_status status = GEMMEPI_OK;
    double best = GPI__NEVER;
    int i;
    for (i = 0; i < tuning->ways.count && !status; i++) {
        gpi__timed *timed = &tuning->timed[round % 2 ? tuning->ways.count - 1 - i : i];
        if (timed->left)
            continue;
        if (round == 0)
            status = gpi__prepare_way(tuning, timed);
        if (gpi__is_no_way(tuning, status)) {
            status = GEMMEPI_OK;
            timed->left = 1;
            continue;
        }
        if (!status)
            status =
                gpi__time_once(&tuning->trial, timed->plan, timed->calls, timed->exec, &timed->times[round]);
        timed->rounds = round + 1;
        if (!status && timed->times[round] < best)
            best = timed->times[round];
    }
    for (i = 0; i < tuning->ways.count; i++)
        tuning->timed[i].left |=
            tuning->timed[i].rounds == round + 1 && gpi__median(&tuning->timed[i]) > GPI__TUNE_SLOW * best;
    return status;
}

static gemmepi_status gpi__time_ways(gpi__tuning *tuning) {
    gemmepi_status status = GEMMEPI_OK;
    int round;
    for (round = 0; round < GPI__TUNE_ROUNDS && !status; round++)
        if (round < 3 || gpi__has_time(tuning))
            status = gpi__time_round(tuning, round);
    return status;
}

/* Whether it is what would be chosen without tuning, as far as that can be said. */
static int gpi__is_least(const gpi__candidate *least, const gpi__candidate *way) {
    return least && least->route == way->route && least->engine == way->engine && way->nth <= 1 &&
           (way->route != GEMMEPI_ROUTE_FUSED ||
            (least->shape == way->shape && least->parts == way->parts && least->copies[0] == way->copies[0] &&
             least->copies[1] == way->copies[1]));
}

/* The fastest; of two that are about as fast the one that is chosen untuned. NULL: none was timed. */
static const gpi__timed *gpi__fastest_way(const gpi__tuning *tuning) {
    const gpi__timed *best = NULL, *untuned = NULL;
    gpi__candidates candidates;
    int i;
    memset(&candidates, 0, sizeof candidates);
    gpi__enumerate(tuning->context, tuning->problem, gpi__may_be_applied(tuning->problem), &candidates);
    for (i = 0; i < tuning->ways.count; i++) {
        const gpi__timed *timed = &tuning->timed[i];
        if (timed->left || !timed->rounds)
            continue;
        if (!best || gpi__median(timed) < gpi__median(best))
            best = timed;
        if (gpi__is_least(gpi__least(&candidates), timed->way))
            untuned = timed;
    }
    return untuned && gpi__median(best) > GPI__TUNE_GAIN * gpi__median(untuned) ? untuned : best;
}

/* >>a product */

static void gpi__drop_ways(gpi__tuning *tuning) {
    int i;
    for (i = 0; i < tuning->ways.count; i++) {
        if (tuning->timed[i].exec)
            tuning->context->driver.graph_exec_destroy(tuning->timed[i].exec);
        if (tuning->timed[i].plan)
            gpi__release_plan(&tuning->timed[i].plan->base);
    }
}

static gemmepi_status gpi__note_fastest(gpi__tuning *tuning) {
    const gpi__timed *best = gpi__fastest_way(tuning);
    gemmepi_context *context = tuning->context;
    gpi__answer answer;
    gpi__text words;
    gemmepi_status status;
    if (!best)
        return gpi__fail(GEMMEPI_UNSUPPORTED, "no way to run the problem was right and could be timed");
    memset(&answer, 0, sizeof answer);
    gpi__problem_digest(tuning->problem, answer.digest);
    answer.candidate = *best->way;
    answer.candidate.microseconds = gpi__median(best);
    answer.candidate.nth = 0;
    answer.candidate.algorithm = best->plan->algorithm;
    if (best->plan->algorithm.id)
        answer.cublaslt = context->cublaslt.version;
    words = gpi__text_in(answer.words, sizeof answer.words);
    gpi__append_words(&words, tuning->problem);
    gpi__lock(&context->build_lock);
    status = gpi__keep_answer(context, &answer);
    gpi__unlock(&context->build_lock);
    if (status)
        return status;
    gpi__store_answer(context, &answer);
    gpi__forget_all_kept(context);
    gpi__say(&context->log, GEMMEPI_LOG_INFO, "tuned %s: %s, %.1f us", answer.words,
             gpi__route_names[answer.candidate.route], answer.candidate.microseconds);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__time_product(gpi__tuning *tuning) {
    gemmepi_status status;
    int i;
    for (i = 0; i < tuning->ways.count; i++)
        tuning->timed[i].way = &tuning->ways.list[i];
    gpi__build_ways(tuning);
    status = gpi__open_trial(&tuning->trial, tuning->context, tuning->problem, tuning->options);
    if (!status)
        status = gpi__check_ways(tuning);
    if (!status)
        status = gpi__time_ways(tuning);
    if (tuning->trial.stream) {
        gemmepi_status waited = gpi__trial_wait(&tuning->trial);
        status = status ? status : waited;
    }
    gpi__close_trial(&tuning->trial);
    if (!status)
        status = gpi__note_fastest(tuning);
    gpi__drop_ways(tuning);
    return status;
}

/* Whether plans take an answer for it. The primary context is current. */
static int gpi__has_answer(gemmepi_context *context, const gpi__problem *problem) {
    gpi__candidates candidates;
    int has;
    memset(&candidates, 0, sizeof candidates);
    gpi__enumerate(context, problem, gpi__may_be_applied(problem), &candidates);
    gpi__lock(&context->build_lock);
    has = gpi__answer_for(context, problem, &candidates) != NULL;
    gpi__unlock(&context->build_lock);
    return has;
}

static gemmepi_status gpi__tune_now(gemmepi_context *context, const gpi__problem *problem,
                                    const gemmepi_tune_options *options) {
    gpi__tuning *tuning;
    gpi__entry entry;
    gemmepi_status status;
    tuning = (gpi__tuning *)gpi__new(&context->allocator, sizeof *tuning);
    if (!tuning)
        return GEMMEPI_OUT_OF_MEMORY;
    tuning->context = context;
    tuning->problem = problem;
    tuning->options = options;
    tuning->ends = options->milliseconds > 0 ? gpi__seconds() + 1e-3 * options->milliseconds : 0;
    gpi__enumerate_ways(context, problem, &tuning->ways);
    if (!gpi__mutex_init(&tuning->lock)) {
        gpi__delete(&context->allocator, tuning);
        return gpi__fail(GEMMEPI_OUT_OF_MEMORY, "the system gave no mutex");
    }
    status = gpi__enter_relaxed(context, &entry);
    if (!status) {
        if (options->again || !gpi__has_answer(context, problem))
            status = gpi__time_product(tuning);
        gpi__leave_relaxed(context, &entry);
    }
    gpi__mutex_destroy(&tuning->lock);
    gpi__delete(&context->allocator, tuning);
    return status;
}

/* Returns the product of a plan that is to be tuned. NULL: none is, as with a formula inside a kernel, or without a product. */
static const gpi__problem *gpi__tuned_problem(const gpi__matmul_plan *plan) {
    return plan->problem.formula ? NULL : &plan->problem;
}

/* One problem at a time; another thread may have found its answer meanwhile. */
static gemmepi_status gpi__tune_product(gemmepi_context *context, const gpi__matmul_plan *plan,
                                        const gemmepi_tune_options *options) {
    const gpi__problem *problem = gpi__tuned_problem(plan);
    gemmepi_status status = GEMMEPI_OK;
    gpi__lock(&context->tune_lock);
    if (problem && !gpi__is_empty(problem))
        status = gpi__tune_now(context, problem, options);
    gpi__unlock(&context->tune_lock);
    return status;
}

/* >>a problem of any kind */

#ifndef GEMMEPI_NO_LINEAR
/* A layer's steps are products for the runs of which alpha is 1. */
static gemmepi_status gpi__tune_steps(gemmepi_context *context, const gpi__linear_plan *layer,
                                      const gemmepi_tune_options *options) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < layer->step_count && !status; i++)
        if (layer->steps[i].product)
            status = gpi__tune_product(context, layer->steps[i].product, options);
    return status;
}
#endif

static gemmepi_status gpi__tune_any(gemmepi_context *context, const gemmepi_any_desc *problem,
                                    const gemmepi_tune_options *options) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gpi__check_any(problem);
    if (!status)
        status = gpi__plan_any(context, problem, &plan);
    if (!status && !context->is_host && problem->matmul)
        status = gpi__tune_product(context, (gpi__matmul_plan *)plan, options);
#ifndef GEMMEPI_NO_LINEAR
    if (!status && !context->is_host && (problem->linear || problem->linear_backward))
        status = gpi__tune_steps(context, (const gpi__linear_plan *)plan, options);
#endif
    gemmepi_plan_destroy(plan);
    return status;
}

static gemmepi_status gpi__check_tune_options(const gemmepi_tune_options *options) {
    if (options->mode != GEMMEPI_TUNE_GRAPH && options->mode != GEMMEPI_TUNE_BURST &&
        options->mode != GEMMEPI_TUNE_STREAM)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "options.mode is %d; accepted are GEMMEPI_TUNE_GRAPH, _BURST and _STREAM",
                         (int)options->mode);
    if (!(options->milliseconds >= 0) || options->milliseconds > 1e9)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "options.milliseconds is %g; accepted are 0 to 1e9",
                         options->milliseconds);
    if (options->threads < 0 || options->again < 0 || options->again > 1)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "options.%s is %d",
                         options->threads < 0 ? "threads" : "again",
                         options->threads < 0 ? options->threads : options->again);
    return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_tune(gemmepi_context *context, const gemmepi_any_desc *problems,
                                        size_t count, const gemmepi_tune_options *options,
                                        gemmepi_progress_function progress, void *user) {
    gemmepi_tune_options usual;
    const gemmepi_tune_options *wished = options ? options : &usual;
    char sentence[GPI__ERROR_TEXT_SIZE];
    gemmepi_status first = GEMMEPI_OK, status;
    size_t i, failed = 0;
    memset(&usual, 0, sizeof usual);
    status = gpi__check_problems(context, problems, count);
    if (!status)
        status = gpi__check_tune_options(wished);
    if (status)
        return status;
    for (i = 0; i < count; i++) {
        status = gpi__tune_any(context, &problems[i], wished);
        if (status && !first) {
            first = status;
            failed = i;
            snprintf(sentence, sizeof sentence, "%s", gpi__error_text);
        }
        if (progress)
            progress(user, i + 1, count);
    }
    return first ? gpi__fail(first, "problems[%llu]: %s", (gpi__ull)failed, sentence) : GEMMEPI_OK;
}

#endif
