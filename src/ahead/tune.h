/* Which way to run a product is fastest, found out by timing. */
#ifndef GEMMEPI_AHEAD_TUNE_H
#define GEMMEPI_AHEAD_TUNE_H

#include "precompile.h"
#include "trial.h"

enum { GEMMEPI__TUNE_ROUNDS = 9 };
#define GEMMEPI__TUNE_SLOW 1.25 /* a way that takes so much more than the best in the first round is left */
#define GEMMEPI__TUNE_GAIN \
    0.99 /* the way that would be chosen untuned stays where another does not come below that */

/* A way as it is timed. */
typedef struct gemmepi__timed {
    const gemmepi__candidate *way;
    gemmepi__matmul_plan *plan; /* NULL: it cannot be built */
    gemmepi__cu_graph_exec exec;
    int calls, rounds;
    double times[GEMMEPI__TUNE_ROUNDS];
    int left; /* it is too slow, or wrong */
} gemmepi__timed;

/* One product under way. */
typedef struct gemmepi__tuning {
    gemmepi_context *context;
    const gemmepi__problem *problem;
    const gemmepi_tune_options *options;
    gemmepi__ways ways;
    gemmepi__timed timed[GEMMEPI__MOST_WAYS];
    gemmepi__trial trial;
    double ends; /* seconds; 0: never */
    gemmepi__mutex lock;
    int next;              /* to be built */
    gemmepi_status failed; /* of the first that could not be built, and why */
    char sentence[GEMMEPI__ERROR_TEXT_SIZE];
} gemmepi__tuning;

static int gemmepi__has_time(const gemmepi__tuning *tuning) {
    return tuning->ends <= 0 || gemmepi__seconds() < tuning->ends;
}

/* >>building all on several threads */

static gemmepi_status gemmepi__build_way(gemmepi__tuning *tuning, gemmepi__timed *timed) {
    gemmepi__matmul_plan *plan = gemmepi__new_plan(tuning->context, tuning->problem);
    gemmepi__entry entry;
    gemmepi_status status = plan ? gemmepi__enter_relaxed(tuning->context, &entry) : GEMMEPI_OUT_OF_MEMORY;
    if (!status) {
        gemmepi__lock(&tuning->context->build_lock);
        status = gemmepi__build_by(plan, timed->way->route, timed->way);
        gemmepi__unlock(&tuning->context->build_lock);
        gemmepi__leave_relaxed(tuning->context, &entry);
    }
    if (status)
        gemmepi__say(&tuning->context->log,
                     status == GEMMEPI_UNSUPPORTED ? GEMMEPI_LOG_DEBUG : GEMMEPI_LOG_WARNING,
                     "tuning leaves out a way of the route %s: %s", gemmepi__route_names[timed->way->route],
                     gemmepi__error_text);
    if (!status)
        timed->plan = plan;
    else if (plan)
        gemmepi__release_plan(&plan->base);
    return status;
}

/* The first is always built. */
static void gemmepi__build_some(gemmepi__tuning *tuning) {
    gemmepi__lock(&tuning->lock);
    while (tuning->next < tuning->ways.count && (tuning->next == 0 || gemmepi__has_time(tuning))) {
        int mine = tuning->next++;
        gemmepi_status status;
        gemmepi__unlock(&tuning->lock);
        status = gemmepi__build_way(tuning, &tuning->timed[mine]);
        gemmepi__lock(&tuning->lock);
        if (!status || tuning->failed)
            continue;
        tuning->failed = status;
        snprintf(tuning->sentence, sizeof tuning->sentence, "%s", gemmepi__error_text);
    }
    gemmepi__unlock(&tuning->lock);
}

GEMMEPI__THREAD_BODY(gemmepi__build_body) {
    gemmepi__build_some((gemmepi__tuning *)user);
    return 0;
}

static void gemmepi__build_ways(gemmepi__tuning *tuning) {
    gemmepi__thread others[GEMMEPI__MOST_THREADS];
    int threads = tuning->options->threads ? tuning->options->threads : gemmepi__core_count(), started = 0, i;
    if (threads > GEMMEPI__MOST_THREADS)
        threads = GEMMEPI__MOST_THREADS;
    while (started < threads - 1 && gemmepi__thread_start(&others[started], gemmepi__build_body, tuning))
        started++;
    gemmepi__build_some(tuning);
    for (i = 0; i < started; i++)
        gemmepi__thread_join(others[i]);
}

/* >>right or wrong */

/* Whether the way is of no use for a run: it could not be built, cuBLASLt refuses it, or there is no memory for its workspace. */
static int gemmepi__is_no_way(const gemmepi__tuning *tuning, gemmepi_status status) {
    return status == GEMMEPI_UNSUPPORTED || (status == GEMMEPI_OUT_OF_MEMORY && tuning->trial.has_no_room);
}

/* Reads what the others are held against: what PLAIN leaves, whose kernel is the simplest, else the first that runs. Which that is in
   *reference. */
static gemmepi_status gemmepi__read_reference(gemmepi__tuning *tuning, int *reference) {
    gemmepi_status status = gemmepi__fail(tuning->failed ? tuning->failed : GEMMEPI_UNSUPPORTED,
                                          "no way to run the problem could be built: %s", tuning->sentence);
    int plain, i;
    for (plain = 1; plain >= 0; plain--)
        for (i = 0; i < tuning->ways.count; i++) {
            const gemmepi__timed *timed = &tuning->timed[i];
            if (!timed->plan || (timed->way->route == GEMMEPI_ROUTE_PLAIN) != plain)
                continue;
            status = gemmepi__read_way(&tuning->trial, timed->plan, tuning->trial.reference);
            *reference = i;
            if (!gemmepi__is_no_way(tuning, status))
                return status;
        }
    return status;
}

static void gemmepi__tell_wrong_way(const gemmepi__tuning *tuning, const gemmepi__timed *timed) {
    char words[GEMMEPI__WORDS_SIZE];
    gemmepi__text text = gemmepi__text_in(words, sizeof words);
    gemmepi__append_words(&text, tuning->problem);
    gemmepi__say(
        &tuning->context->log, GEMMEPI_LOG_WARNING,
        "tuning left out the route %s, shape %d, answer %d of cuBLASLt, whose results are not those of the reference: %s",
        gemmepi__route_names[timed->way->route], timed->way->shape, timed->way->nth, words);
}

/* Leaves those that do not run or are wrong, those that are there to compare with, and, once there is no time, all others. */
static gemmepi_status gemmepi__check_ways(gemmepi__tuning *tuning) {
    gemmepi__trial *trial = &tuning->trial;
    int reference = 0, right = 0, i;
    gemmepi_status status = gemmepi__read_reference(tuning, &reference);
    for (i = 0; i < tuning->ways.count && !status; i++) {
        gemmepi__timed *timed = &tuning->timed[i];
        timed->left = timed->plan == NULL || (right && !gemmepi__has_time(tuning));
        if (!timed->left && i != reference) {
            status = gemmepi__read_way(trial, timed->plan, trial->compared);
            timed->left = gemmepi__is_no_way(tuning, status);
            status = timed->left ? GEMMEPI_OK : status;
            if (!status && !timed->left && !gemmepi__outputs_agree(trial)) {
                timed->left = 1;
                gemmepi__tell_wrong_way(tuning, timed);
            }
        }
        timed->left |= timed->way->rank >= GEMMEPI__NEVER && tuning->ways.count > 1 && right;
        right += !timed->left;
    }
    return status;
}

/* >>timing by turns */

static int gemmepi__compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double gemmepi__median(const gemmepi__timed *timed) {
    double sorted[GEMMEPI__TUNE_ROUNDS];
    memcpy(sorted, timed->times, (size_t)timed->rounds * sizeof *sorted);
    qsort(sorted, (size_t)timed->rounds, sizeof *sorted, gemmepi__compare_times);
    return timed->rounds ? sorted[timed->rounds / 2] : GEMMEPI__NEVER;
}

/* How long a call takes, about, and a graph of as many as are timed. */
static gemmepi_status gemmepi__prepare_way(gemmepi__tuning *tuning, gemmepi__timed *timed) {
    gemmepi__trial *trial = &tuning->trial;
    double once = 0;
    gemmepi_status status = gemmepi__time_once(trial, timed->plan, 2, NULL, &once);
    if (status)
        return status;
    timed->calls = once > 0 ? (int)(GEMMEPI__TRIAL_TIME / once) : GEMMEPI__TRIAL_CALLS;
    if (trial->mode == GEMMEPI_TUNE_BURST && timed->calls > GEMMEPI__TRIAL_BURST)
        timed->calls = GEMMEPI__TRIAL_BURST;
    timed->calls = timed->calls < 2                      ? 2
                   : timed->calls > GEMMEPI__TRIAL_CALLS ? GEMMEPI__TRIAL_CALLS
                                                         : timed->calls;
    return trial->mode == GEMMEPI_TUNE_STREAM
               ? GEMMEPI_OK
               : gemmepi__capture_calls(trial, timed->plan, timed->calls, &timed->exec);
}

/* A round of all that are not left, and who is left after it. */
static gemmepi_status gemmepi__time_round(gemmepi__tuning *tuning, int round) {
    gemmepi_status status = GEMMEPI_OK;
    double best = GEMMEPI__NEVER;
    int i;
    for (i = 0; i < tuning->ways.count && !status; i++) {
        gemmepi__timed *timed = &tuning->timed[round % 2 ? tuning->ways.count - 1 - i : i];
        if (timed->left)
            continue;
        if (round == 0)
            status = gemmepi__prepare_way(tuning, timed);
        if (gemmepi__is_no_way(tuning, status)) {
            status = GEMMEPI_OK;
            timed->left = 1;
            continue;
        }
        if (!status)
            status = gemmepi__time_once(&tuning->trial, timed->plan, timed->calls, timed->exec,
                                        &timed->times[round]);
        timed->rounds = round + 1;
        if (!status && timed->times[round] < best)
            best = timed->times[round];
    }
    for (i = 0; i < tuning->ways.count; i++)
        tuning->timed[i].left |= tuning->timed[i].rounds == round + 1 &&
                                 gemmepi__median(&tuning->timed[i]) > GEMMEPI__TUNE_SLOW * best;
    return status;
}

static gemmepi_status gemmepi__time_ways(gemmepi__tuning *tuning) {
    gemmepi_status status = GEMMEPI_OK;
    int round;
    for (round = 0; round < GEMMEPI__TUNE_ROUNDS && !status; round++)
        if (round < 3 || gemmepi__has_time(tuning))
            status = gemmepi__time_round(tuning, round);
    return status;
}

/* Whether it is what would be chosen without tuning, as far as that can be said. */
static int gemmepi__is_least(const gemmepi__candidate *least, const gemmepi__candidate *way) {
    return least && least->route == way->route && least->engine == way->engine && way->nth <= 1 &&
           (way->route != GEMMEPI_ROUTE_FUSED ||
            (least->shape == way->shape && least->parts == way->parts && least->copies[0] == way->copies[0] &&
             least->copies[1] == way->copies[1]));
}

/* The fastest; of two that are about as fast the one that is chosen untuned. NULL: none was timed. */
static const gemmepi__timed *gemmepi__fastest_way(const gemmepi__tuning *tuning) {
    const gemmepi__timed *best = NULL, *untuned = NULL;
    gemmepi__candidates candidates;
    int i;
    memset(&candidates, 0, sizeof candidates);
    gemmepi__enumerate(tuning->context, tuning->problem, gemmepi__may_be_applied(tuning->problem),
                       &candidates);
    for (i = 0; i < tuning->ways.count; i++) {
        const gemmepi__timed *timed = &tuning->timed[i];
        if (timed->left || !timed->rounds)
            continue;
        if (!best || gemmepi__median(timed) < gemmepi__median(best))
            best = timed;
        if (gemmepi__is_least(gemmepi__least(&candidates), timed->way))
            untuned = timed;
    }
    return untuned && gemmepi__median(best) > GEMMEPI__TUNE_GAIN * gemmepi__median(untuned) ? untuned : best;
}

/* >>a product */

static void gemmepi__drop_ways(gemmepi__tuning *tuning) {
    int i;
    for (i = 0; i < tuning->ways.count; i++) {
        if (tuning->timed[i].exec)
            tuning->context->driver.graph_exec_destroy(tuning->timed[i].exec);
        if (tuning->timed[i].plan)
            gemmepi__release_plan(&tuning->timed[i].plan->base);
    }
}

static gemmepi_status gemmepi__note_fastest(gemmepi__tuning *tuning) {
    const gemmepi__timed *best = gemmepi__fastest_way(tuning);
    gemmepi_context *context = tuning->context;
    gemmepi__answer answer;
    gemmepi__text words;
    gemmepi_status status;
    if (!best)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "no way to run the problem was right and could be timed");
    memset(&answer, 0, sizeof answer);
    gemmepi__problem_digest(tuning->problem, answer.digest);
    answer.candidate = *best->way;
    answer.candidate.microseconds = gemmepi__median(best);
    answer.candidate.nth = 0;
    answer.candidate.algorithm = best->plan->algorithm;
    if (best->plan->algorithm.id)
        answer.cublaslt = context->cublaslt.version;
    words = gemmepi__text_in(answer.words, sizeof answer.words);
    gemmepi__append_words(&words, tuning->problem);
    gemmepi__lock(&context->build_lock);
    status = gemmepi__keep_answer(context, &answer);
    gemmepi__unlock(&context->build_lock);
    if (status)
        return status;
    gemmepi__store_answer(context, &answer);
    gemmepi__forget_all_kept(context);
    gemmepi__say(&context->log, GEMMEPI_LOG_INFO, "tuned %s: %s, %.1f us", answer.words,
                 gemmepi__route_names[answer.candidate.route], answer.candidate.microseconds);
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__time_product(gemmepi__tuning *tuning) {
    gemmepi_status status;
    int i;
    for (i = 0; i < tuning->ways.count; i++)
        tuning->timed[i].way = &tuning->ways.list[i];
    gemmepi__build_ways(tuning);
    status = gemmepi__open_trial(&tuning->trial, tuning->context, tuning->problem, tuning->options);
    if (!status)
        status = gemmepi__check_ways(tuning);
    if (!status)
        status = gemmepi__time_ways(tuning);
    if (tuning->trial.stream) {
        gemmepi_status waited = gemmepi__trial_wait(&tuning->trial);
        status = status ? status : waited;
    }
    gemmepi__close_trial(&tuning->trial);
    if (!status)
        status = gemmepi__note_fastest(tuning);
    gemmepi__drop_ways(tuning);
    return status;
}

/* Whether plans take an answer for it. The primary context is current. */
static int gemmepi__has_answer(gemmepi_context *context, const gemmepi__problem *problem) {
    gemmepi__candidates candidates;
    int has;
    memset(&candidates, 0, sizeof candidates);
    gemmepi__enumerate(context, problem, gemmepi__may_be_applied(problem), &candidates);
    gemmepi__lock(&context->build_lock);
    has = gemmepi__answer_for(context, problem, &candidates) != NULL;
    gemmepi__unlock(&context->build_lock);
    return has;
}

static gemmepi_status gemmepi__tune_now(gemmepi_context *context, const gemmepi__problem *problem,
                                        const gemmepi_tune_options *options) {
    gemmepi__tuning *tuning;
    gemmepi__entry entry;
    gemmepi_status status;
    tuning = (gemmepi__tuning *)gemmepi__new(&context->allocator, sizeof *tuning);
    if (!tuning)
        return GEMMEPI_OUT_OF_MEMORY;
    tuning->context = context;
    tuning->problem = problem;
    tuning->options = options;
    tuning->ends = options->milliseconds > 0 ? gemmepi__seconds() + 1e-3 * options->milliseconds : 0;
    gemmepi__enumerate_ways(context, problem, &tuning->ways);
    if (!gemmepi__mutex_init(&tuning->lock)) {
        gemmepi__delete(&context->allocator, tuning);
        return gemmepi__fail(GEMMEPI_OUT_OF_MEMORY, "the system gave no mutex");
    }
    status = gemmepi__enter_relaxed(context, &entry);
    if (!status) {
        if (options->again || !gemmepi__has_answer(context, problem))
            status = gemmepi__time_product(tuning);
        gemmepi__leave_relaxed(context, &entry);
    }
    gemmepi__mutex_destroy(&tuning->lock);
    gemmepi__delete(&context->allocator, tuning);
    return status;
}

/* Returns the product of a plan that is to be tuned. NULL: none is, as with a formula inside a kernel, or without a product. */
static const gemmepi__problem *gemmepi__tuned_problem(const gemmepi__matmul_plan *plan) {
    return plan->problem.formula ? NULL : &plan->problem;
}

/* One problem at a time; another thread may have found its answer meanwhile. */
static gemmepi_status gemmepi__tune_product(gemmepi_context *context, const gemmepi__matmul_plan *plan,
                                            const gemmepi_tune_options *options) {
    const gemmepi__problem *problem = gemmepi__tuned_problem(plan);
    gemmepi_status status = GEMMEPI_OK;
    gemmepi__lock(&context->tune_lock);
    if (problem && !gemmepi__is_empty(problem))
        status = gemmepi__tune_now(context, problem, options);
    gemmepi__unlock(&context->tune_lock);
    return status;
}

/* >>a problem of any kind */

#ifndef GEMMEPI_NO_LINEAR
/* A layer's steps are products for the runs of which alpha is 1. */
static gemmepi_status gemmepi__tune_steps(gemmepi_context *context, const gemmepi__linear_plan *layer,
                                          const gemmepi_tune_options *options) {
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < layer->step_count && !status; i++)
        if (layer->steps[i].product)
            status = gemmepi__tune_product(context, layer->steps[i].product, options);
    return status;
}
#endif

static gemmepi_status gemmepi__tune_any(gemmepi_context *context, const gemmepi_any_desc *problem,
                                        const gemmepi_tune_options *options) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gemmepi__check_any(problem);
    if (!status)
        status = gemmepi__plan_any(context, problem, &plan);
    if (!status && !context->is_host && problem->matmul)
        status = gemmepi__tune_product(context, (gemmepi__matmul_plan *)plan, options);
#ifndef GEMMEPI_NO_LINEAR
    if (!status && !context->is_host && (problem->linear || problem->linear_backward))
        status = gemmepi__tune_steps(context, (const gemmepi__linear_plan *)plan, options);
#endif
    gemmepi_plan_destroy(plan);
    return status;
}

static gemmepi_status gemmepi__check_tune_options(const gemmepi_tune_options *options) {
    if (options->mode != GEMMEPI_TUNE_GRAPH && options->mode != GEMMEPI_TUNE_BURST &&
        options->mode != GEMMEPI_TUNE_STREAM)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "options.mode is %d; accepted are GEMMEPI_TUNE_GRAPH, _BURST and _STREAM",
                             (int)options->mode);
    if (!(options->milliseconds >= 0) || options->milliseconds > 1e9)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "options.milliseconds is %g; accepted are 0 to 1e9",
                             options->milliseconds);
    if (options->threads < 0 || options->again < 0 || options->again > 1)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "options.%s is %d",
                             options->threads < 0 ? "threads" : "again",
                             options->threads < 0 ? options->threads : options->again);
    return GEMMEPI_OK;
}

GEMMEPI_API gemmepi_status gemmepi_tune(gemmepi_context *context, const gemmepi_any_desc *problems,
                                        size_t count, const gemmepi_tune_options *options,
                                        gemmepi_progress_function progress, void *user) {
    gemmepi_tune_options usual;
    const gemmepi_tune_options *wished = options ? options : &usual;
    char sentence[GEMMEPI__ERROR_TEXT_SIZE];
    gemmepi_status first = GEMMEPI_OK, status;
    size_t i, failed = 0;
    memset(&usual, 0, sizeof usual);
    if (!context || (!problems && count))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "problems" : "context");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__check_tune_options(wished);
    if (status)
        return status;
    for (i = 0; i < count; i++) {
        status = gemmepi__tune_any(context, &problems[i], wished);
        if (status && !first) {
            first = status;
            failed = i;
            snprintf(sentence, sizeof sentence, "%s", gemmepi__error_text);
        }
        if (progress)
            progress(user, i + 1, count);
    }
    return first ? gemmepi__fail(first, "problems[%llu]: %s", (gemmepi__ull)failed, sentence) : GEMMEPI_OK;
}

#endif
