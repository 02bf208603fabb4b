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
static gemmepi_status gpi__build_by(gpi__matmul_plan *plan, gemmepi_route route,
                                    const gpi__candidate *candidate) {
    plan->route = gpi__route_of(route);
    plan->unit_alpha = candidate && candidate->unit_alpha;
    return plan->route->build(plan, candidate);
}

/* Keeps the calling thread's error text as why the route cannot run the problem. */
static void gpi__keep_reason(gpi__matmul_plan *plan, gemmepi_route route) {
    snprintf(plan->reasons[route], GPI__REASON_SIZE, "%.500s", gpi__error_text);
}

static gemmepi_status gpi__fail_all(const gpi__matmul_plan *plan, gemmepi_status status) {
    char sentences[GPI__COUNT(gpi__told_routes) * GPI__REASON_SIZE];
    gpi__text text = gpi__text_in(sentences, sizeof sentences);
    const char *reasons[GPI__COUNT(gpi__route_names)] = {0};
    int i;
    for (i = 0; i < plan->candidates.count; i++)
        reasons[plan->candidates.list[i].route] = plan->candidates.list[i].refusal;
    for (i = 0; i < (int)GPI__COUNT(gpi__told_routes); i++)
        gpi__append(&text, ". %s: %s", gpi__route_names[gpi__told_routes[i]], reasons[gpi__told_routes[i]]);
    return gpi__fail(status, "no route runs this problem%s", sentences);
}

/* The problem's answer, if there is one whose algorithm, if any, is of this cuBLASLt. With build_lock held, the primary context current. */
static const gpi__answer *gpi__look_up_answer(gemmepi_context *context, const gpi__problem *problem) {
    unsigned char digest[GPI__DIGEST_SIZE];
    const gpi__answer *answer;
    if (!context->answers.count && !context->disk.path)
        return NULL;
    gpi__problem_digest(problem, digest);
    answer = gpi__find_answer(context, digest);
    if (!answer) {
        gpi__fetch_answer(context, digest);
        answer = gpi__find_answer(context, digest);
    }
    if (answer && answer->cublaslt &&
        (gpi__open_lt(context) || context->cublaslt.version != answer->cublaslt))
        return NULL; /* another version has other algorithms */
    return answer;
}

static void gpi__ignore_answer(const gemmepi_context *context, const gpi__answer *answer) {
    gpi__say(&context->log, GEMMEPI_LOG_WARNING, "ignoring a tuning answer that cannot run its problem: %s",
             answer->words);
}

/* Likewise, of those that may be taken; candidates: the problem's. */
static const gpi__answer *gpi__answer_for(gemmepi_context *context, const gpi__problem *problem,
                                          const gpi__candidates *candidates) {
    const gpi__answer *answer = gpi__look_up_answer(context, problem);
    if (!answer || gpi__is_a_way(context, problem, candidates, &answer->candidate))
        return answer;
    gpi__ignore_answer(context, answer);
    return NULL;
}

/* Copies the problem's answer, if plans take one: with a formula it is of what is inside a kernel, or of what makes v. The primary context is
   current. */
static int gpi__find_tuned(gemmepi_context *context, const gpi__problem *problem, gpi__answer *found) {
    const gpi__answer *answer;
    gpi__candidates candidates;
    gpi__problem run = *problem;
    int is_there;
    gpi__lock(&context->build_lock);
    answer = gpi__look_up_answer(context, problem);
    is_there = answer != NULL;
    if (is_there)
        *found = *answer;
    if (is_there && GPI__FORMULA(problem)) {
        if (found->candidate.is_inside && gpi__not_inside(problem))
            is_there = 0;
        else
            run = found->candidate.is_inside ? gpi__problem_inside(problem) : gpi__problem_of_v(problem);
    }
    if (is_there) {
        memset(&candidates, 0, sizeof candidates);
        gpi__enumerate(context, &run, gpi__may_have_unit_alpha(&run), &candidates);
        is_there = gpi__is_a_way(context, &run, &candidates, &found->candidate);
        if (is_there)
            gpi__complete_way(&candidates, &found->candidate);
    }
    if (answer && !is_there)
        gpi__ignore_answer(context, answer);
    gpi__unlock(&context->build_lock);
    return is_there;
}

static gpi__tuned gpi__tuned_by(const gpi__answer *answer) {
    gpi__tuned tuned;
    tuned.microseconds = answer->candidate.microseconds;
    tuned.is_measured = !answer->is_loaded;
    tuned.ways_timed = answer->ways_timed;
    tuned.ways_left = answer->ways_left;
    return tuned;
}

static gemmepi_status gpi__build_answer(gpi__matmul_plan *plan, const gpi__answer *answer) {
    gpi__answer own = *answer; /* while a kernel is compiled another thread may change it */
    gemmepi_status status;
    gpi__complete_way(&plan->candidates, &own.candidate);
    status = gpi__build_by(plan, own.candidate.route, &own.candidate);
    if (status) {
        gpi__say(&plan->base.context->log, GEMMEPI_LOG_WARNING, "ignoring a tuning answer: %s",
                 gpi__error_text);
        return status;
    }
    plan->tuned = gpi__tuned_by(&own);
    return GEMMEPI_OK;
}

/* Not tried any more: the candidate's route, or, where bundles may have the kernels of others of it, the candidate alone. */
static void gpi__refuse_candidate(gpi__matmul_plan *plan, const gpi__candidate *refused, int is_missing) {
    gpi__candidate *candidate = &plan->candidates.list[refused - plan->candidates.list];
    gpi__keep_reason(plan, candidate->route);
    if (is_missing && plan->base.context->bundles)
        candidate->refusal = plan->reasons[candidate->route];
    else
        gpi__refuse_route(&plan->candidates, candidate->route, plan->reasons[candidate->route]);
}

/* PLAIN may be slow beyond all others, and takes what they leave for want of a library. */
static void gpi__warn_of_plain(const gpi__matmul_plan *plan) {
    const gemmepi_context *context = plan->base.context;
    if (plan->route->id != GEMMEPI_ROUTE_PLAIN || context->only_workspace)
        return;
    gpi__say(&context->log, GEMMEPI_LOG_WARNING,
             "a product of m %lld, n %lld, k %lld uses the slow route plain, as a library is missing; "
             "gemmepi_plan_explain says which",
             (long long)gpi__callers_m(&plan->problem), (long long)gpi__callers_n(&plan->problem),
             (long long)plan->problem.k);
}

/* Builds the best candidate that can be built, of those that do without a library that is not there. instead_of: the plan, if any,
   that cannot do a run, or cannot any more. */
static gemmepi_status gpi__choose(gpi__matmul_plan *plan, const gpi__matmul_plan *instead_of) {
    const gpi__candidate *best;
    const gpi__answer *answer;
    int unit_alpha = !instead_of && gpi__may_have_unit_alpha(&plan->problem);
    int misses_library = 0;
    gpi__enumerate(plan->base.context, &plan->problem, unit_alpha, &plan->candidates);
    if (plan->forced)
        return gpi__build_by(plan, plan->forced->route, plan->forced);
    answer = instead_of ? NULL : gpi__answer_for(plan->base.context, &plan->problem, &plan->candidates);
    if (answer && gpi__build_answer(plan, answer) == GEMMEPI_OK)
        return GEMMEPI_OK;
    if (instead_of)
        instead_of->route->give_up(instead_of, &plan->candidates);
    while ((best = gpi__least(&plan->candidates)) != NULL) {
        gemmepi_status status = gpi__build_by(plan, best->route, best);
        if (!status && misses_library)
            gpi__warn_of_plain(plan);
        if (status != GEMMEPI_UNSUPPORTED && status != GEMMEPI_LIBRARY_NOT_FOUND)
            return status;
        misses_library |= status == GEMMEPI_LIBRARY_NOT_FOUND;
        gpi__refuse_candidate(plan, best, status == GEMMEPI_LIBRARY_NOT_FOUND);
    }
    return gpi__fail_all(plan, misses_library ? GEMMEPI_LIBRARY_NOT_FOUND : GEMMEPI_UNSUPPORTED);
}

/* The context's device: the primary context current, one build at a time. */
static gemmepi_status gpi__choose_on_device(gpi__matmul_plan *plan, const gpi__matmul_plan *instead_of) {
    gemmepi_context *context = plan->base.context;
    gpi__entry entry;
    gemmepi_status status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gpi__lock(&context->build_lock);
    status = gpi__is_empty(&plan->problem) ? gpi__build_by(plan, GEMMEPI_ROUTE_EMPTY, NULL)
                                           : gpi__choose(plan, instead_of);
    gpi__unlock(&context->build_lock);
    gpi__leave_relaxed(context, &entry);
    return status;
}

static void gpi__destroy_matmul(gemmepi_plan *destroyed) {
    gpi__matmul_plan *plan = (gpi__matmul_plan *)destroyed;
    gemmepi_plan *replacement = (gemmepi_plan *)gpi__load_pointer(&plan->replacement);
    gemmepi_plan *general = (gemmepi_plan *)gpi__load_pointer(&plan->general);
    if (replacement)
        gpi__release_plan(replacement);
    if (general)
        gpi__release_plan(general);
    gpi__drop_formulas(plan->base.context, gpi__asked(plan));
    gpi__delete(&plan->base.context->allocator, plan->around);
    gpi__delete(&plan->base.context->allocator, plan);
}

static gpi__matmul_plan *gpi__new_plan(gemmepi_context *context, const gpi__problem *problem) {
    gpi__routed_plan *routed = (gpi__routed_plan *)gpi__new(&context->allocator, sizeof *routed);
    gpi__matmul_plan *plan;
    if (!routed)
        return NULL;
    plan = &routed->plan;
    plan->built = &routed->built;
    plan->base = gpi__plan_base(context, GEMMEPI_PLAN_MATMUL, gpi__destroy_matmul);
    plan->problem = *problem;
    gpi__hold_formulas(context, problem);
    plan->replacement_place = &plan->replacement;
    plan->general_place = &plan->general;
    return plan;
}

/* Builds the product that is launched around, whatever was built for another. */
static gemmepi_status gpi__build_product(gpi__matmul_plan *plan, const gpi__problem *product) {
    plan->problem = *product;
    memset(&plan->tuned, 0, sizeof plan->tuned);
    memset(plan->reasons, 0, sizeof plan->reasons);
    return gpi__choose_on_device(plan, NULL);
}

/* Builds the product that the formula becomes: *is_built. The status is OK unless memory has run out, or it was forced. */
static gemmepi_status gpi__try_product(gpi__matmul_plan *plan, const gpi__problem *product, int *is_built) {
    gemmepi_status status = gpi__build_product(plan, product);
    *is_built = !status;
    if (!status || status == GEMMEPI_OUT_OF_MEMORY || plan->forced)
        return status;
    gpi__say(&plan->base.context->log, GEMMEPI_LOG_WARNING,
             "a formula is not %s, which could not be built: %s",
             product->formula ? "inside a kernel" : "run as the epilogue that it says", gpi__error_text);
    return GEMMEPI_OK;
}

/* Builds the product whose kernel has the formula, where that is better: then step->is_inside, else step->not_inside is why. */
static gemmepi_status gpi__try_inside(gpi__matmul_plan *plan, const gpi__problem *v) {
    const gpi__problem *problem = &plan->around->inside;
    gpi__formula_step *step = &plan->around->formula;
    gpi__problem inside;
    step->not_inside = !plan->forced             ? gpi__why_not_inside(plan->base.context, problem, v)
                       : plan->forced->is_inside ? NULL
                                                 : "v and a pass over it took less when it was tuned";
    if (step->not_inside)
        return GEMMEPI_OK;
    step->not_inside = "its kernel could not be built";
    inside = gpi__problem_inside(problem);
    step->said = gpi__slots_of(problem);
    return gpi__try_product(plan, &inside, &step->is_inside);
}

/* Builds the product with the epilogue that the formula says, where it says one: then step->is_composed. */
static gemmepi_status gpi__try_composed(gpi__matmul_plan *plan) {
    gpi__formula_step *step = &plan->around->formula;
    gpi__problem composed;
    return gpi__find_composition(&plan->around->inside, &step->said, &composed)
               ? gpi__try_product(plan, &composed, &step->is_composed)
               : GEMMEPI_OK;
}

/* With the formula inside a kernel, or v and a pass: as forced, else by estimates. */
static gemmepi_status gpi__build_inside_or_behind(gpi__matmul_plan *plan, const gpi__problem *v) {
    gemmepi_status status = gpi__try_inside(plan, v);
    return status || plan->around->formula.is_inside ? status : gpi__build_product(plan, v);
}

/* By the formula's answer, if it has one that can be built: *is_built */
static gemmepi_status gpi__try_answer_of_formula(gpi__matmul_plan *plan, const gpi__problem *v,
                                                 int *is_built) {
    gemmepi_context *context = plan->base.context;
    gpi__answer answer;
    gpi__entry entry;
    gemmepi_status status = gpi__enter_relaxed(context, &entry);
    *is_built = 0;
    if (status)
        return status;
    *is_built = gpi__find_tuned(context, &plan->around->inside, &answer);
    gpi__leave_relaxed(context, &entry);
    if (!*is_built)
        return GEMMEPI_OK;
    plan->forced = &answer.candidate;
    status = gpi__build_inside_or_behind(plan, v);
    plan->forced = NULL;
    *is_built = !status;
    if (!status)
        plan->tuned = gpi__tuned_by(&answer);
    else if (status != GEMMEPI_OUT_OF_MEMORY)
        gpi__say(&context->log, GEMMEPI_LOG_WARNING, "ignoring a tuning answer: %s", gpi__error_text);
    return status == GEMMEPI_OUT_OF_MEMORY ? status : GEMMEPI_OK;
}

/* Builds an epilogue's product, one with the formula inside, or v and a pass over it. */
static gemmepi_status gpi__build_with_formula(gpi__matmul_plan *plan) {
    const gpi__problem *problem = &plan->around->inside;
    gpi__formula_step *step = &plan->around->formula;
    gpi__problem v = gpi__problem_of_v(problem);
    gemmepi_status status = gpi__check_size_of_v(&v);
    int is_built = 0;
    plan->around->lacks_product = !gpi__wants_v(problem);
    if (plan->around->lacks_product)
        plan->route = gpi__route_of(GEMMEPI_ROUTE_EMPTY);
    if (!status && !plan->around->lacks_product) {
        if (!plan->forced)
            status = gpi__try_composed(plan);
        if (!status && !plan->forced && !step->is_composed)
            status = gpi__try_answer_of_formula(plan, &v, &is_built);
        if (!status && !step->is_composed && !is_built)
            status = gpi__build_inside_or_behind(plan, &v);
    }
    if (!status && !step->is_composed && !step->is_inside)
        status = gpi__build_behind_v(plan, &v);
    return status;
}

/* Builds the launch that finds D's scales, and those that make operands. */
static gemmepi_status gpi__build_beside(gpi__matmul_plan *plan) {
    gemmepi_context *context = plan->base.context;
    gpi__entry entry;
    gemmepi_status status = gpi__enter_relaxed(context, &entry);
    if (status)
        return status;
    gpi__lock(&context->build_lock);
    if (plan->around->finds)
        status = gpi__build_found_step(context, &plan->around->problem, &plan->around->found);
    if (!status)
        status = gpi__build_made(context, plan->around);
    gpi__unlock(&context->build_lock);
    gpi__leave_relaxed(context, &entry);
    return status;
}

/* Builds the product `inside`, and what is launched around it. */
static gemmepi_status gpi__build_around(gpi__matmul_plan *plan, const gpi__problem *inside) {
    gpi__around *around = plan->around;
    int has_formula = GPI__FORMULA(inside) && !(inside->flags & GPI__IS_INSIDE);
    int finds = gpi__finds_around(&around->problem);
    gemmepi_status status = GEMMEPI_OK;
    around->inside = *inside;
    if (finds && has_formula && !plan->forced && gpi__wants_v(inside))
        status = gpi__try_composed(plan); /* as epilogues find scales of vectors where they store D */
    around->finds = finds && !around->formula.is_composed;
    if (around->finds)
        around->inside = gpi__problem_within(inside);
    if (!status && (around->finds || gpi__makes_operands(&around->problem)))
        status = gpi__build_beside(plan);
    if (status || around->formula.is_composed)
        return status;
    return has_formula ? gpi__build_with_formula(plan) : gpi__build_product(plan, &around->inside);
}

/* With B made in registers, where that is better or the way that is forced: *is_built. */
static gemmepi_status gpi__try_in_registers(gpi__matmul_plan *plan, int *is_built) {
    gpi__around *around = plan->around;
    gpi__problem inside = gpi__problem_in_registers(plan->base.context, &around->problem);
    gemmepi_status status;
    *is_built = 0;
    if (!(plan->forced && inside.made[GPI__B].formula) &&
        !gpi__is_better_in_registers(plan->base.context, &around->problem))
        return GEMMEPI_OK;
    status = gpi__build_around(plan, &inside);
    *is_built = !status;
    if (!status || status == GEMMEPI_OUT_OF_MEMORY || plan->forced)
        return status;
    gpi__say(&plan->base.context->log, GEMMEPI_LOG_WARNING,
             "operands are made by passes, for the kernel that reads them as stored could not be built: %s",
             gpi__error_text);
    memset(&around->formula, 0, sizeof around->formula);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__build_for_gpu(gpi__matmul_plan *plan) {
    int finds = gpi__finds_around(&plan->problem), makes = gpi__makes_operands(&plan->problem), is_built = 0;
    int has_formula = plan->problem.formula && !(plan->problem.flags & GPI__IS_INSIDE);
    gemmepi_status status = GEMMEPI_OK;
    gpi__problem inside;
    if (!finds && !has_formula && !makes)
        return gpi__choose_on_device(plan, NULL);
    plan->around = (gpi__around *)gpi__new(&plan->base.context->allocator, sizeof *plan->around);
    if (!plan->around)
        return GEMMEPI_OUT_OF_MEMORY;
    plan->base.block_number = 1;
    plan->around->problem = plan->problem;
    if (makes)
        status = gpi__try_in_registers(plan, &is_built);
    if (status || is_built)
        return status;
    inside = gpi__problem_of_made(&plan->around->problem);
    return gpi__build_around(plan, &inside);
}

/* forced: the way to run it, or NULL */
static gemmepi_status gpi__build_plan_by(gemmepi_context *context, const gpi__problem *problem,
                                         const gpi__candidate *forced, gemmepi_plan **result) {
    gpi__matmul_plan *plan = gpi__new_plan(context, problem);
    gemmepi_status status = GEMMEPI_OK;
    if (!plan)
        return GEMMEPI_OUT_OF_MEMORY;
    plan->forced = forced;
    if (gpi__is_empty(problem)) {
        int only_sums = !gpi__writes_nothing(problem);
        plan->route = gpi__route_of(GEMMEPI_ROUTE_EMPTY);
        gpi__say(&context->log, GEMMEPI_LOG_INFO,
                 "a product of m %lld, n %lld, batch %lld is empty: runs write %s",
                 (long long)gpi__callers_m(problem), (long long)gpi__callers_n(problem),
                 (long long)problem->batch,
                 !only_sums         ? "nothing"
                 : problem->formula ? "only reductions"
                                    : "only bias_grad");
        if (only_sums && !context->is_host)
            status = gpi__build_for_gpu(plan);
    } else if (context->is_host) {
        plan->route = gpi__route_of(GEMMEPI_ROUTE_HOST);
    } else {
        status = gpi__build_for_gpu(plan);
    }
    if (problem->k == 0 && !gpi__is_empty(problem))
        gpi__say(&context->log, GEMMEPI_LOG_INFO,
                 "desc.k is 0 (was it forgotten?): a and b are not read, and their product is 0");
    plan->forced = NULL;
    return gpi__finish_plan(&plan->base, status, result);
}

static gemmepi_status gpi__build_plan(gemmepi_context *context, const gpi__problem *problem,
                                      gemmepi_plan **result) {
    return gpi__build_plan_by(context, problem, NULL, result);
}

/* The problem of a desc, which a context plans: to be given to gpi__drop_formulas. */
static gemmepi_status gpi__convert_problem(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                           size_t alignment, gpi__problem *problem) {
    gemmepi_status status = gpi__normalise_in(&context->allocator, desc, NULL, NULL, alignment, problem);
    if (!status)
        gpi__share_formulas(context, problem);
    return status;
}

#endif
