/* What a plan is, as a struct and in words. */
#ifndef GEMMEPI_PRODUCT_EXPLAIN_H
#define GEMMEPI_PRODUCT_EXPLAIN_H

#include "run.h"
#ifndef GEMMEPI_NO_FORMULA
#include "../formula/key.h"
#endif

/* Returns the route that runs the product now: with a plan inside, what that one has become decides. */
static gemmepi_route gemmepi__told_route(const gemmepi__matmul_plan *plan) {
    if (!plan->v)
        return plan->route->id;
    if (gemmepi__finds_around(&plan->problem))
        return gemmepi__told_found_route(&plan->problem, gemmepi__told_route(gemmepi__current_plan(plan->v)));
#ifndef GEMMEPI_NO_FORMULA
    return gemmepi__told_formula_route(plan);
#else
    return plan->route->id;
#endif
}

static void gemmepi__matmul_info(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
    plan = gemmepi__current_plan(plan);
    memset(details, 0, sizeof *details);
    details->kind = GEMMEPI_PLAN_MATMUL;
    details->route = gemmepi__told_route(plan);
    details->route_name = gemmepi__route_names[details->route];
    plan->route->describe(plan, details);
    if (plan->problem.exchanged) {
        int tile_m = details->tile_m;
        details->tile_m = details->tile_n;
        details->tile_n = tile_m;
    }
    details->workspace_size = gemmepi__workspace_now(plan);
    details->compute = (gemmepi_compute)plan->problem.compute;
    details->accumulator =
        plan->base.context->is_host ? GEMMEPI_F64 : (gemmepi_dtype)plan->problem.accumulator;
    details->deterministic = 1; /* our sums have a fixed order, and cuBLASLt is kept from reducing in place */
    details->bit_stable = !plan->is_measured; /* another process may measure otherwise */
    details->microseconds = plan->tuned_microseconds;
}

static const char *const gemmepi__scale_names[] = {"", "one scale", "a scale for each line of the sum",
                                                   "a scale for each 128 of k",
                                                   "a scale for each 128 x 128 block"};

static const char *const gemmepi__found_names[] = {"", ", d's scale found from the amax of earlier runs",
                                                   ", a scale found for each of d's lines",
                                                   ", a scale found for each 128 of d's lines"};

static void gemmepi__explain_view(gemmepi__text *text, const gemmepi__problem *problem, int operand) {
    const gemmepi__view *view = &problem->views[operand], *d = &problem->views[GEMMEPI__D];
    if (!view->dtype || (operand == GEMMEPI__C && view->ld == d->ld &&
                         view->batch_stride == d->batch_stride && view->dtype == d->dtype && !view->scale))
        return;
    gemmepi__append(text, "  %-9s %s%s, %lld x %lld stored%s, ld %lld, batch stride %lld%s%s\n",
                    gemmepi__argument_name(problem, operand),
                    gemmepi__dtype((gemmepi_dtype)view->dtype)->name, view->bits == 1 ? " (bit mask)" : "",
                    (long long)view->lines, (long long)view->length, view->transposed ? " transposed" : "",
                    (long long)view->ld, (long long)view->batch_stride, view->scale ? ", " : "",
                    gemmepi__scale_names[view->scale]);
}

#ifndef GEMMEPI_NO_FORMULA
/* The formula as it is run, and its operands. */
static void gemmepi__explain_formula(gemmepi__text *text, const gemmepi__kept_formula *kept) {
    const gemmepi__formula *formula = kept->placed.formula;
    int i;
    gemmepi__append(text, "  formula   ");
    gemmepi__print_formula(text, formula);
    gemmepi__append(text, "\n");
    for (i = 0; i < formula->operand_count; i++) {
        const gemmepi__formula_operand *operand = &formula->operands[i];
        const gemmepi__view *view = &kept->views[i];
        int kind = formula->exchanged ? gemmepi__kind_across(operand->kind) : operand->kind;
        gemmepi__append(text, "  %-9s %s, %s", formula->names + operand->name,
                        gemmepi__dtype((gemmepi_dtype)operand->dtype)->name, gemmepi__kind_names[kind]);
        if (operand->kind != GEMMEPI_NUMBER)
            gemmepi__append(text, ", %lld x %lld stored, ld %lld, batch stride %lld", (long long)view->lines,
                            (long long)view->length, (long long)view->ld, (long long)view->batch_stride);
        gemmepi__append(text, "%s%s\n",
                        operand->output ? ", written"
                        : operand->used ? ""
                                        : ", not needed",
                        kept->placed.operands[i].scale ? ", one scale" : "");
    }
}
#endif

static void gemmepi__explain_problem(gemmepi__text *text, const gemmepi__problem *problem) {
    int operand;
    gemmepi__append(text, "product of m %lld, n %lld, k %lld, batch %lld, %s",
                    (long long)gemmepi__callers_m(problem), (long long)gemmepi__callers_n(problem),
                    (long long)problem->k, (long long)problem->batch,
                    problem->formula ? "a formula" : "epilogue ");
    if (!problem->formula)
        gemmepi__append_epilogue(text, gemmepi__callers_epilogue(problem->epilogue, problem->exchanged));
    gemmepi__append(
        text, "%s%s%s%s%s%s, pointers aligned to %d bytes%s\n",
        problem->flags & GEMMEPI_RELAXED ? ", relaxed" : "",
        problem->flags & GEMMEPI_FAST_ACCUMULATION ? ", fast accumulation" : "",
        problem->flags & GEMMEPI_DEVICE_SCALARS ? ", scalars on the device" : "",
        gemmepi__is_invariant(problem) ? ", batch-invariant" : "", gemmepi__found_names[problem->found_scale],
        problem->flags & GEMMEPI_POWER_OF_TWO_SCALE ? ", powers of two" : "", (int)problem->alignment,
        problem->exchanged ? ", column-major (run as the transposed row-major product)" : "");
    for (operand = 0; operand < GEMMEPI__OPERANDS; operand++)
        if ((operand < GEMMEPI__SCALE_A || operand >= GEMMEPI__FIRST_EXTRA) &&
            !(operand == GEMMEPI__D && gemmepi__lacks_d(problem)))
            gemmepi__explain_view(text, problem, operand);
#ifndef GEMMEPI_NO_FORMULA
    if (problem->formula)
        gemmepi__explain_formula(text, problem->formula);
#endif
}

/* Why a route was not taken: what it said when it was tried, a rule, or that it is slower. */
static const char *gemmepi__why_not(const gemmepi__matmul_plan *plan, gemmepi_route route) {
    const gemmepi__candidate *best = gemmepi__least_of_route(&plan->candidates, route);
    if (plan->reasons[route][0])
        return plan->reasons[route];
    return best->refusal ? best->refusal : best->otherwise;
}

static void gemmepi__explain_candidate(gemmepi__text *text, const gemmepi__problem *problem,
                                       const gemmepi__candidate *candidate) {
    gemmepi__append(text, "    %s", gemmepi__route_names[candidate->route]);
    if (candidate->engine != GEMMEPI__ANY_ENGINE)
        gemmepi__append(text, " by gemmepi_%s", gemmepi__engines[candidate->engine]->name);
    if (candidate->copies[0] || candidate->copies[1])
        gemmepi__append(text, " with %s%s%s copied",
                        candidate->copies[0] ? gemmepi__argument_name(problem, GEMMEPI__A) : "",
                        candidate->copies[0] && candidate->copies[1] ? " and " : "",
                        candidate->copies[1] ? gemmepi__argument_name(problem, GEMMEPI__B) : "");
    if (candidate->refusal) {
        gemmepi__append(text, ": %s\n", candidate->refusal);
        return;
    }
    if (candidate->engine != GEMMEPI__ANY_ENGINE) {
        int tile_m, tile_n;
        gemmepi__engines[candidate->engine]->tile(candidate, &tile_m, &tile_n);
        gemmepi__append(text, ", tile %d x %d", problem->exchanged ? tile_n : tile_m,
                        problem->exchanged ? tile_m : tile_n);
    }
    if (candidate->microseconds > 0 && candidate->rank > candidate->microseconds)
        gemmepi__append(text, ": %.1f us, counted as %.1f\n", candidate->microseconds, candidate->rank);
    else if (candidate->microseconds > 0)
        gemmepi__append(text, ": %.1f us\n", candidate->microseconds);
    else
        gemmepi__append(text, ": where nothing else can\n");
}

/* What the plan was chosen from, where estimates are known. */
static void gemmepi__explain_candidates(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
    const gemmepi__candidates *candidates = &plan->candidates;
    const gemmepi__chip *chip = gemmepi__chip_of(plan->base.context->arch);
    int i, is_known = 0;
    for (i = 0; i < candidates->count; i++)
        is_known |= candidates->list[i].microseconds > 0;
    if (!is_known)
        return;
    gemmepi__append(text, "  chosen from, by estimates for compute capability %d.%d (%s)%s:\n",
                    chip->arch / 10, chip->arch % 10, chip->source,
                    chip->arch == plan->base.context->arch ? "" : ", the nearest that is known");
    for (i = 0; i < candidates->count; i++)
        gemmepi__explain_candidate(text, &plan->problem, &candidates->list[i]);
}

static void gemmepi__explain_others(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__told_routes); i++) {
        gemmepi_route route = gemmepi__told_routes[i];
        if (plan->route->id != route)
            gemmepi__append(text, "  not %s: %s\n", gemmepi__route_names[route],
                            gemmepi__why_not(plan, route));
    }
    gemmepi__append(text, "  not host: the context runs on a GPU\n");
    gemmepi__explain_candidates(text, plan);
}

#ifndef GEMMEPI_NO_FORMULA
/* Says why a formula is not inside a kernel, and what the plan of v was chosen from. */
static void gemmepi__explain_around_v(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
    const gemmepi__formula_step *step = (const gemmepi__formula_step *)plan->built;
    const gemmepi__matmul_plan *v = gemmepi__current_plan(plan->v);
    if (step->is_composed) {
        gemmepi__explain_others(text, v);
        return;
    }
    if (!step->is_inside)
        gemmepi__append(text, "  not inside a kernel: %s\n", step->not_inside);
    gemmepi__append(text, "  not lt: cuBLASLt takes no formulas\n  not host: the context runs on a GPU\n");
    gemmepi__explain_candidates(text, v);
}
#endif

/* Says what the plan, or the plan inside it, was chosen from: nothing of an empty product, and of a formula that reads no product. */
static void gemmepi__explain_choice(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
    const gemmepi__matmul_plan *inside = plan->v ? gemmepi__current_plan(plan->v) : NULL;
    if (plan->route->enumerate)
        gemmepi__explain_others(text, plan);
    if (!inside)
        return;
    if (inside->tuned_microseconds > 0)
        gemmepi__append(text, "  the product is tuned: it took %.1f us\n", inside->tuned_microseconds);
    if (gemmepi__finds_around(&plan->problem))
        gemmepi__explain_choice(text, inside);
#ifndef GEMMEPI_NO_FORMULA
    else
        gemmepi__explain_around_v(text, plan);
#endif
}

/* That BATCH_INVARIANT holds, and what it costs, where that is known. */
static void gemmepi__explain_invariance(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
    const gemmepi__candidate *without = &plan->candidates.without_flag;
    const gemmepi__candidate *taken = gemmepi__least_of_route(&plan->candidates, plan->route->id);
    if (!gemmepi__is_invariant(&plan->problem))
        return;
    gemmepi__append(text,
                    "  BATCH_INVARIANT: a %s has the same bits whatever %c is and wherever tensors lie\n",
                    plan->problem.exchanged ? "column" : "row", plan->problem.exchanged ? 'n' : 'm');
    if (!taken || without->route == GEMMEPI_ROUTE_EMPTY)
        return;
    if (without->microseconds <= 0 || taken->microseconds <= 0) {
        gemmepi__append(text, "  without it %s would be tried first; what that takes is not known\n",
                        gemmepi__route_names[without->route]);
        return;
    }
    gemmepi__append(text, "  it takes %.1f us by estimate; without it:\n", taken->microseconds);
    gemmepi__explain_candidate(text, &plan->problem, without);
}

static void gemmepi__explain_routes(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
    gemmepi_plan_details details;
    gemmepi__matmul_info(plan, &details);
    gemmepi__append(text, "route %s, workspace %llu bytes\n", details.route_name,
                    (gemmepi__ull)details.workspace_size);
    plan->route->explain(plan, details.kernel, text);
    if (plan->tuned_microseconds > 0)
        gemmepi__append(text, "  tuned: it took %.1f us, and was the fastest of what was tried%s\n",
                        plan->tuned_microseconds, plan->is_measured ? "" : ", by an answer that was loaded");
    gemmepi__explain_invariance(text, plan);
    gemmepi__explain_choice(text, plan);
}

static void gemmepi__explain_matmul(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
    plan = gemmepi__current_plan(plan);
    gemmepi__explain_problem(text, &plan->problem);
    gemmepi__explain_routes(text, plan);
}

#endif
