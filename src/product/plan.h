/* Plans of products: a route chosen once for a problem, and built. */
#ifndef GEMMEPI_PRODUCT_PLAN_H
#define GEMMEPI_PRODUCT_PLAN_H

#include "../device/create.h"
#include "../problem/normalise.h"
#include "formulas.h"
#include "answers.h"
#include "around.h"

/* >>choosing */

/* By the route and the candidate, as they are. */
static gemmepi_status gemmepi__build_by(gemmepi__matmul_plan *plan, gemmepi_route route,
                                        const gemmepi__candidate *candidate) {
    plan->route = gemmepi__route_of(route);
    plan->applied = candidate && candidate->applied;
    return plan->route->build(plan, candidate);
}

/* Keeps the calling thread's error text as why the route cannot run the problem. */
static void gemmepi__keep_reason(gemmepi__matmul_plan *plan, gemmepi_route route) {
    snprintf(plan->reasons[route], GEMMEPI__REASON_SIZE, "%.500s", gemmepi__error_text);
}

static gemmepi_status gemmepi__fail_all(const gemmepi__matmul_plan *plan, gemmepi_status status) {
    char sentences[GEMMEPI__COUNT(gemmepi__told_routes) * GEMMEPI__REASON_SIZE];
    gemmepi__text text = gemmepi__text_in(sentences, sizeof sentences);
    const char *reasons[GEMMEPI__COUNT(gemmepi__route_names)] = {0};
    int i;
    for (i = 0; i < plan->candidates.count; i++)
        reasons[plan->candidates.list[i].route] = plan->candidates.list[i].refusal;
    for (i = 0; i < (int)GEMMEPI__COUNT(gemmepi__told_routes); i++)
        gemmepi__append(&text, ". %s: %s", gemmepi__route_names[gemmepi__told_routes[i]],
                        reasons[gemmepi__told_routes[i]]);
    return gemmepi__fail(status, "no route runs this problem%s", sentences);
}

/* The problem's answer, if there is one that may be taken; candidates: the problem's. With build_lock held, the primary context
   current. */
static const gemmepi__answer *gemmepi__answer_for(gemmepi_context *context, const gemmepi__problem *problem,
                                                  const gemmepi__candidates *candidates) {
    unsigned char digest[GEMMEPI__DIGEST_SIZE];
    const gemmepi__answer *answer;
    if (!context->answers.count && !context->disk.path)
        return NULL;
    gemmepi__problem_digest(problem, digest);
    answer = gemmepi__find_answer(context, digest);
    if (!answer) {
        gemmepi__fetch_answer(context, digest);
        answer = gemmepi__find_answer(context, digest);
    }
    if (answer && answer->cublaslt &&
        (gemmepi__open_lt(context) || context->cublaslt.version != answer->cublaslt))
        return NULL; /* another version has other algorithms */
    if (!answer || gemmepi__is_a_way(context, problem, candidates, &answer->candidate))
        return answer;
    gemmepi__say(&context->log, GEMMEPI_LOG_WARNING,
                 "an answer is not taken, which is no way to run its problem: %s", answer->words);
    return NULL;
}

/* By the answer, as it is. */
static gemmepi_status gemmepi__build_answer(gemmepi__matmul_plan *plan, const gemmepi__answer *answer) {
    gemmepi__candidate own = answer->candidate;
    int is_measured =
        !answer->is_loaded; /* while a kernel is compiled another thread may change the answer */
    gemmepi_status status;
    own.applied = gemmepi__candidate_like(&plan->candidates, &own)->applied;
    status = gemmepi__build_by(plan, own.route, &own);
    if (status) {
        gemmepi__say(&plan->base.context->log, GEMMEPI_LOG_WARNING, "an answer is not taken: %s",
                     gemmepi__error_text);
        return status;
    }
    plan->tuned_microseconds = own.microseconds;
    plan->is_measured = is_measured;
    return GEMMEPI_OK;
}

/* Not tried any more: the candidate's route, or, where bundles may have the kernels of others of it, the candidate alone. */
static void gemmepi__refuse_candidate(gemmepi__matmul_plan *plan, const gemmepi__candidate *refused,
                                      int is_missing) {
    gemmepi__candidate *candidate = &plan->candidates.list[refused - plan->candidates.list];
    gemmepi__keep_reason(plan, candidate->route);
    if (is_missing && plan->base.context->bundles)
        candidate->refusal = plan->reasons[candidate->route];
    else
        gemmepi__refuse_route(&plan->candidates, candidate->route, plan->reasons[candidate->route]);
}

/* PLAIN may be slow beyond all others, and takes what they leave for want of a library. */
static void gemmepi__warn_of_plain(const gemmepi__matmul_plan *plan) {
    const gemmepi_context *context = plan->base.context;
    if (plan->route->id != GEMMEPI_ROUTE_PLAIN || context->only_measures)
        return;
    gemmepi__say(&context->log, GEMMEPI_LOG_WARNING,
                 "a product of m %lld, n %lld, k %lld takes the slow route plain for want of a library; "
                 "gemmepi_plan_explain says which",
                 (long long)gemmepi__callers_m(&plan->problem), (long long)gemmepi__callers_n(&plan->problem),
                 (long long)plan->problem.k);
}

/* Builds the best candidate that can be built, of those that do without a library that is not there. instead_of: the plan, if any,
   that cannot do a run, or cannot any more. */
static gemmepi_status gemmepi__choose(gemmepi__matmul_plan *plan, const gemmepi__matmul_plan *instead_of) {
    const gemmepi__candidate *best;
    const gemmepi__answer *answer;
    int applied = !instead_of && gemmepi__may_be_applied(&plan->problem);
    int misses_library = 0;
    gemmepi__enumerate(plan->base.context, &plan->problem, applied, &plan->candidates);
    answer = instead_of ? NULL : gemmepi__answer_for(plan->base.context, &plan->problem, &plan->candidates);
    if (answer && gemmepi__build_answer(plan, answer) == GEMMEPI_OK)
        return GEMMEPI_OK;
    if (instead_of)
        instead_of->route->give_up(instead_of, &plan->candidates);
    while ((best = gemmepi__least(&plan->candidates)) != NULL) {
        gemmepi_status status = gemmepi__build_by(plan, best->route, best);
        if (!status && misses_library)
            gemmepi__warn_of_plain(plan);
        if (status != GEMMEPI_UNSUPPORTED && status != GEMMEPI_LIBRARY_NOT_FOUND)
            return status;
        misses_library |= status == GEMMEPI_LIBRARY_NOT_FOUND;
        gemmepi__refuse_candidate(plan, best, status == GEMMEPI_LIBRARY_NOT_FOUND);
    }
    return gemmepi__fail_all(plan, misses_library ? GEMMEPI_LIBRARY_NOT_FOUND : GEMMEPI_UNSUPPORTED);
}

/* The context's device: the primary context current, one build at a time. */
static gemmepi_status gemmepi__choose_on_device(gemmepi__matmul_plan *plan,
                                                const gemmepi__matmul_plan *instead_of) {
    gemmepi_context *context = plan->base.context;
    gemmepi__entry entry;
    gemmepi_status status = gemmepi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gemmepi__lock(&context->build_lock);
    status = gemmepi__is_empty(&plan->problem) ? gemmepi__build_by(plan, GEMMEPI_ROUTE_EMPTY, NULL)
                                               : gemmepi__choose(plan, instead_of);
    gemmepi__unlock(&context->build_lock);
    gemmepi__leave_relaxed(context, &entry);
    return status;
}

static void gemmepi__destroy_matmul(gemmepi_plan *destroyed) {
    gemmepi__matmul_plan *plan = (gemmepi__matmul_plan *)destroyed;
    gemmepi_plan *replacement = (gemmepi_plan *)gemmepi__load_pointer(&plan->replacement);
    gemmepi_plan *scaled = (gemmepi_plan *)gemmepi__load_pointer(&plan->scaled);
    if (replacement)
        gemmepi__release_plan(replacement);
    if (scaled)
        gemmepi__release_plan(scaled);
    gemmepi__drop_formula(plan->base.context, gemmepi__asked(plan));
    gemmepi__delete(&plan->base.context->allocator, plan->around);
    gemmepi__delete(&plan->base.context->allocator, plan);
}

static gemmepi__matmul_plan *gemmepi__new_plan(gemmepi_context *context, const gemmepi__problem *problem) {
    gemmepi__routed_plan *routed = (gemmepi__routed_plan *)gemmepi__new(&context->allocator, sizeof *routed);
    gemmepi__matmul_plan *plan;
    if (!routed)
        return NULL;
    plan = &routed->plan;
    plan->built = &routed->built;
    plan->base = gemmepi__plan_base(context, GEMMEPI_PLAN_MATMUL, gemmepi__destroy_matmul);
    plan->problem = *problem;
    gemmepi__hold_formula(context, problem);
    plan->replacement_place = &plan->replacement;
    plan->scaled_place = &plan->scaled;
    return plan;
}

/* Builds the product that is launched around, whatever was built for another. */
static gemmepi_status gemmepi__build_product(gemmepi__matmul_plan *plan, const gemmepi__problem *product) {
    plan->problem = *product;
    plan->tuned_microseconds = 0;
    plan->is_measured = 0;
    memset(plan->reasons, 0, sizeof plan->reasons);
    return gemmepi__choose_on_device(plan, NULL);
}

#ifndef GEMMEPI_NO_FORMULA
/* Builds the product whose kernel has the formula, where that is better and can be built: then step->is_inside. Else step->not_inside is
   why, and the status is OK unless memory has run out. */
static gemmepi_status gemmepi__try_inside(gemmepi__matmul_plan *plan, const gemmepi__problem *v) {
    gemmepi_context *context = plan->base.context;
    const gemmepi__problem *problem = &plan->around->inside;
    gemmepi__formula_step *step = &plan->around->formula;
    gemmepi__problem inside;
    gemmepi_status status;
    step->not_inside = gemmepi__why_not_inside(context, problem, v);
    if (step->not_inside)
        return GEMMEPI_OK;
    inside = gemmepi__problem_inside(problem);
    step->slots = gemmepi__slots_of(problem);
    status = gemmepi__build_product(plan, &inside);
    step->is_inside = !status;
    if (!status || status == GEMMEPI_OUT_OF_MEMORY)
        return status;
    step->not_inside = "its kernel could not be built";
    gemmepi__say(&context->log, GEMMEPI_LOG_WARNING,
                 "a formula is not inside a kernel, which could not be built: %s", gemmepi__error_text);
    return GEMMEPI_OK;
}

/* Builds the product with the epilogue that the formula says, where it says one and that can be built: then step->is_composed. The status
   is OK unless memory has run out. */
static gemmepi_status gemmepi__try_composed(gemmepi__matmul_plan *plan) {
    gemmepi_context *context = plan->base.context;
    gemmepi__formula_step *step = &plan->around->formula;
    gemmepi__problem composed;
    int is_composed;
    gemmepi_status status =
        gemmepi__take_composition(context, &plan->around->inside, &step->said, &composed, &is_composed);
    if (status || !is_composed)
        return status;
    status = gemmepi__build_product(plan, &composed);
    step->is_composed = !status;
    if (!status || status == GEMMEPI_OUT_OF_MEMORY)
        return status;
    gemmepi__say(&context->log, GEMMEPI_LOG_WARNING,
                 "a formula is not run as the epilogue that it says, which could not be built: %s",
                 gemmepi__error_text);
    return GEMMEPI_OK;
}

/* Builds an epilogue's product, one with the formula inside, or v and a pass over it. */
static gemmepi_status gemmepi__build_with_formula(gemmepi__matmul_plan *plan) {
    const gemmepi__problem *problem = &plan->around->inside;
    gemmepi__formula_step *step = &plan->around->formula;
    gemmepi__problem v = gemmepi__problem_of_v(problem);
    gemmepi_status status = gemmepi__check_size_of_v(&v);
    plan->around->lacks_product = !gemmepi__wants_v(problem);
    if (plan->around->lacks_product)
        plan->route = gemmepi__route_of(GEMMEPI_ROUTE_EMPTY);
    if (!status && !plan->around->lacks_product) {
        status = gemmepi__try_composed(plan);
        if (!status && !step->is_composed)
            status = gemmepi__try_inside(plan, &v);
        if (!status && !step->is_composed && !step->is_inside)
            status = gemmepi__build_product(plan, &v);
    }
    if (!status && !step->is_composed && (!step->is_inside || gemmepi__reduces_inside(problem)))
        status = gemmepi__build_behind_v(plan, &v);
    return status;
}
#endif

/* Builds the launch that finds D's scales. */
static gemmepi_status gemmepi__build_finding(gemmepi__matmul_plan *plan) {
    gemmepi_context *context = plan->base.context;
    gemmepi__entry entry;
    gemmepi_status status = gemmepi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gemmepi__lock(&context->build_lock);
    status = gemmepi__build_found_step(context, &plan->around->problem, &plan->around->found);
    gemmepi__unlock(&context->build_lock);
    gemmepi__leave_relaxed(context, &entry);
    return status;
}

static gemmepi_status gemmepi__build_for_gpu(gemmepi__matmul_plan *plan) {
    int finds = gemmepi__finds_around(&plan->problem);
    int has_formula = plan->problem.formula && !(plan->problem.flags & GEMMEPI__IS_INSIDE);
    gemmepi_status status = GEMMEPI_OK;
    if (!finds && !has_formula)
        return gemmepi__choose_on_device(plan, NULL);
    plan->around = (gemmepi__around *)gemmepi__new(&plan->base.context->allocator, sizeof *plan->around);
    if (!plan->around)
        return GEMMEPI_OUT_OF_MEMORY;
    plan->around->finds = finds;
    plan->around->problem = plan->problem;
    plan->around->inside = finds ? gemmepi__problem_within(&plan->problem) : plan->problem;
    if (finds)
        status = gemmepi__build_finding(plan);
    if (status)
        return status;
#ifndef GEMMEPI_NO_FORMULA
    if (has_formula)
        return gemmepi__build_with_formula(plan);
#endif
    return gemmepi__build_product(plan, &plan->around->inside);
}

static gemmepi_status gemmepi__build_plan(gemmepi_context *context, const gemmepi__problem *problem,
                                          gemmepi__matmul_plan **result) {
    gemmepi__matmul_plan *plan = gemmepi__new_plan(context, problem);
    gemmepi_status status = GEMMEPI_OK;
    if (!plan)
        return GEMMEPI_OUT_OF_MEMORY;
    if (gemmepi__is_empty(problem)) {
        int only_sums = !gemmepi__writes_nothing(problem);
        plan->route = gemmepi__route_of(GEMMEPI_ROUTE_EMPTY);
        gemmepi__say(&context->log, GEMMEPI_LOG_INFO,
                     "a product of m %lld, n %lld, batch %lld is empty: runs write %s",
                     (long long)gemmepi__callers_m(problem), (long long)gemmepi__callers_n(problem),
                     (long long)problem->batch,
                     !only_sums         ? "nothing"
                     : problem->formula ? "reductions alone"
                                        : "bias_grad alone");
        if (only_sums && !context->is_host)
            status = gemmepi__build_for_gpu(plan);
    } else if (context->is_host) {
        plan->route = gemmepi__route_of(GEMMEPI_ROUTE_HOST);
    } else {
        status = gemmepi__build_for_gpu(plan);
    }
    if (status)
        gemmepi__release_plan(&plan->base);
    else
        *result = plan;
    return status;
}

/* The problem of a desc, which a context plans: to be given to gemmepi__drop_formula. */
static gemmepi_status gemmepi__take_problem(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                            size_t alignment, gemmepi__problem *problem) {
    gemmepi_status status = gemmepi__normalise_in(&context->allocator, desc, alignment, problem);
    if (!status)
        gemmepi__share_formula(context, problem);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_plan_matmul(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                               gemmepi_plan **result) {
    gemmepi__problem problem;
    gemmepi__matmul_plan *plan = NULL;
    gemmepi_status status;
    if (result)
        *result = NULL; /* also after a failure */
    if (!context || !result)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__take_problem(context, desc, GEMMEPI__DEFAULT_ALIGNMENT, &problem);
    if (status)
        return status;
    status = gemmepi__build_plan(context, &problem, &plan);
    if (!status)
        *result = &plan->base;
    gemmepi__drop_formula(context, &problem);
    return status;
}

#endif
