/* What a plan is, as a struct and in words. */
#ifndef GEMMEPI_PRODUCT_EXPLAIN_H
#define GEMMEPI_PRODUCT_EXPLAIN_H

#include "run.h"
#include "../formula/key.h"

/* >>the route that a user is told */

/* With a formula: the product's own, where that does all or v is PLAIN's, else SPLIT. */
static gemmepi_route gpi__told_with_formula(const gpi__around *around, gemmepi_route product) {
    if (around->lacks_product)
        return gpi__is_empty(&around->inside) ? GEMMEPI_ROUTE_EMPTY : GEMMEPI_ROUTE_SPLIT;
    return around->formula.is_composed || around->formula.is_inside || product == GEMMEPI_ROUTE_PLAIN
               ? product
               : GEMMEPI_ROUTE_SPLIT;
}

/* Of what is inside the launch that finds scales. */
static gemmepi_route gpi__told_inside(const gpi__matmul_plan *plan) {
    gemmepi_route route = gpi__current_plan(plan)->route->id;
    if (plan->around && GPI__FORMULA(&plan->around->inside))
        return gpi__told_with_formula(plan->around, route);
    return route;
}

/* The product's as it runs now, and SPLIT of cuBLASLt's with a launch behind it. */
static gemmepi_route gpi__told_route(const gpi__matmul_plan *plan) {
    gemmepi_route inside = gpi__told_inside(plan);
    return plan->around && plan->around->finds && inside == GEMMEPI_ROUTE_LT &&
                   plan->around->problem.found_scale != GEMMEPI_SCALE_TENSOR
               ? GEMMEPI_ROUTE_SPLIT
               : inside;
}

/* >>as a struct */

/* The product's kernel, else what is launched instead; and all launches. */
static void gpi__describe_launches(const gpi__matmul_plan *plan, gemmepi_plan_details *details) {
    const gpi__matmul_plan *current = gpi__current_plan(plan);
    const gpi__around *around = plan->around;
    if (!around || !around->lacks_product)
        current->route->describe(current, details);
    if (!around)
        return;
    gpi__describe_formula_pass(&around->formula.pass, details);
    gpi__describe_formula_pass(&around->made[0], details);
    gpi__describe_formula_pass(&around->made[1], details);
    details->launches += around->finds;
}

static void gpi__describe_tuned(const gpi__tuned *tuned, gemmepi_plan_details *details) {
    details->microseconds = tuned->microseconds;
    details->ways_timed = tuned->ways_timed;
    details->ways_left = tuned->ways_left;
}

/* Whether what was timed is all that a run is: a product with its formula, but not with the launch that finds scales. */
static int gpi__is_tuned_whole(const gpi__around *around) {
    return !around->finds && !around->formula.is_composed;
}

static void gpi__describe_matmul(const gemmepi_plan *base, gemmepi_plan_details *details) {
    const gpi__matmul_plan *plan = (const gpi__matmul_plan *)base, *current = gpi__current_plan(plan);
    const gpi__problem *problem = gpi__asked(plan);
    details->route = gpi__told_route(plan);
    gpi__describe_launches(plan, details);
    if (problem->exchanged) {
        int tile_m = details->tile_m;
        details->tile_m = details->tile_n;
        details->tile_n = tile_m;
    }
    details->compute = (gemmepi_compute)problem->compute;
    details->accumulator = base->context->is_host ? GEMMEPI_F64 : (gemmepi_dtype)problem->accumulator;
    details->bit_stable = !current->tuned.is_measured; /* another process may measure otherwise */
    if (!plan->around || gpi__is_tuned_whole(plan->around))
        gpi__describe_tuned(&current->tuned, details);
}

/* >>in words */

static const char *const gpi__scale_names[] = {"", "one scale", "a scale for each line of the sum",
                                               "a scale for each 128 of k",
                                               "a scale for each 128 x 128 block"};

static const char *const gpi__found_names[] = {"", ", d's scale found from the amax of earlier runs",
                                               ", a scale found for each of d's lines",
                                               ", a scale found for each 128 of d's lines"};

static void gpi__explain_view(gpi__text *text, const gpi__problem *problem, int operand) {
    const gpi__view *view = &problem->views[operand], *d = &problem->views[GPI__D];
    if (!view->dtype || (operand == GPI__C && view->ld == d->ld && view->batch_stride == d->batch_stride &&
                         view->dtype == d->dtype && !view->scale))
        return;
    gpi__append(text, "  %-9s %s%s, %lld x %lld stored%s, ld %lld, batch stride %lld%s%s\n",
                gpi__argument_name(problem, operand), gpi__type(view->dtype),
                view->bits == 1 ? " (bit mask)" : "", (long long)view->lines, (long long)view->length,
                view->transposed ? " transposed" : "", (long long)view->ld, (long long)view->batch_stride,
                view->scale ? ", " : "", gpi__scale_names[view->scale]);
}

/* Which groups an operand of their formula is for. */
static const char *gpi__groups_of_operand(const gpi__problem *problem, int kind, int64_t batch_stride) {
    return !problem->grouping.groups                ? ""
           : gpi__has_rows(kind)                    ? ", with the rows of d"
           : batch_stride && kind != GEMMEPI_NUMBER ? ", its own for each group"
                                                    : ", the same for all groups";
}

/* The formula as it is run, and its operands. */
static void gpi__explain_formula(gpi__text *text, const gpi__problem *problem,
                                 const gpi__kept_formula *kept) {
    const gpi__formula *formula = kept->placed.formula;
    int i;
    gpi__append(text, "  formula   ");
    gpi__print_formula(text, formula);
    gpi__append(text, "\n");
    for (i = 0; i < formula->operand_count; i++) {
        const gpi__formula_operand *operand = &formula->operands[i];
        const gpi__view *view = &kept->views[i];
        int kind = formula->exchanged ? gpi__kind_across(operand->kind) : operand->kind;
        if (gpi__formula_with(problem, i) && gpi__formula_with(problem, i) != kept)
            continue;
        gpi__append(text, "  %-9s %s, %s", formula->names + operand->name, gpi__type(operand->dtype),
                    gpi__kind_names[kind]);
        if (operand->kind == GEMMEPI_BLOCKED)
            gpi__append_block(text, formula, &kept->placed.operands[i]);
        if (operand->kind != GEMMEPI_NUMBER)
            gpi__append(text, ", %lld x %lld stored, ld %lld, batch stride %lld", (long long)view->lines,
                        (long long)view->length, (long long)view->ld, (long long)view->batch_stride);
        gpi__append(text, "%s%s%s\n",
                    gpi__groups_of_operand(problem, kept == problem->formula ? kind : GEMMEPI_SCALAR,
                                           view->batch_stride),
                    operand->output ? ", written"
                    : operand->used ? ""
                                    : ", not needed",
                    kept->placed.operands[i].scale ? ", one scale" : "");
    }
}

/* Terms of random signs, whose sum is then no larger than the bound of COMPUTE_F16. */
#define GPI__F16_SUMS_SAY_LITTLE 16384

static void gpi__explain_f16_sums(gpi__text *text, const gpi__problem *problem) {
    if (problem->compute != GEMMEPI_COMPUTE_F16)
        return;
    gpi__append(text,
                "  COMPUTE_F16: sums in F16 where a kernel below says so, else in F32; off by up to 2^-7 of "
                "the sum of |A B|\n");
    if (problem->k >= GPI__F16_SUMS_SAY_LITTLE)
        gpi__append(
            text, "  of k %lld that bound says little: sums of as many terms of random signs are no larger\n",
            (long long)problem->k);
}

static void gpi__explain_problem(gpi__text *text, const gpi__problem *problem) {
    int operand;
    gpi__append(text, "product of m %lld, n %lld, k %lld, batch %lld, %s", (long long)gpi__callers_m(problem),
                (long long)gpi__callers_n(problem), (long long)problem->k, (long long)problem->batch,
                problem->formula ? "a formula" : "epilogue ");
    if (!problem->formula)
        gpi__append_epilogue(text, gpi__callers_epilogue(problem->epilogue, problem->exchanged));
    gpi__append(text, "%s%s%s%s%s%s, pointers aligned to %d bytes%s\n",
                problem->flags & GEMMEPI_RELAXED ? ", relaxed" : "",
                problem->flags & GEMMEPI_FAST_ACCUMULATION ? ", fast accumulation" : "",
                problem->flags & GEMMEPI_DEVICE_SCALARS ? ", scalars on the device" : "",
                gpi__is_invariant(problem) ? ", batch-invariant" : "", gpi__found_names[problem->found_scale],
                problem->flags & GEMMEPI_POWER_OF_TWO_SCALE ? ", powers of two" : "", (int)problem->alignment,
                problem->exchanged ? ", column-major (run as the transposed row-major product)" : "");
    gpi__explain_f16_sums(text, problem);
    for (operand = 0; operand < GPI__OPERANDS; operand++)
        if ((operand < GPI__SCALE_A || operand == GPI__ROW_FACTOR) &&
            !(operand == GPI__D && gpi__lacks_d(problem)))
            gpi__explain_view(text, problem, operand);
    if (problem->formula)
        gpi__explain_formula(text, problem, problem->formula);
    for (operand = GPI__A; operand <= GPI__B; operand++)
        if (problem->made[operand].formula) {
            gpi__explain_formula(text, problem, problem->made[operand].formula);
            if (problem->made[operand].scale.dtype)
                gpi__append(text, "  %-9s %s, %s, found\n", gpi__argument_name(problem, operand),
                            gpi__type(problem->made[operand].view.dtype),
                            gpi__scale_names[problem->made[operand].view.scale]);
        }
}

/* Why a route was not taken: what it said when it was tried, a rule, or that it is slower. */
static const char *gpi__why_not(const gpi__matmul_plan *plan, gemmepi_route route) {
    const gpi__candidate *best = gpi__least_of_routes(&plan->candidates, 1u << route);
    if (plan->reasons[route][0])
        return plan->reasons[route];
    return best->refusal ? best->refusal : best->otherwise;
}

static void gpi__explain_candidate(gpi__text *text, const gpi__problem *problem,
                                   const gpi__candidate *candidate) {
    gpi__append(text, "    %s", gpi__route_names[candidate->route]);
    if (candidate->engine != GPI__ANY_ENGINE)
        gpi__append(text, " by gemmepi_%s", gpi__engines[candidate->engine]->name);
    if (candidate->copies[0] || candidate->copies[1])
        gpi__append(text, " with %s%s%s copied",
                    candidate->copies[0] ? gpi__argument_name(problem, GPI__A) : "",
                    candidate->copies[0] && candidate->copies[1] ? " and " : "",
                    candidate->copies[1] ? gpi__argument_name(problem, GPI__B) : "");
    if (candidate->refusal) {
        gpi__append(text, ": %s\n", candidate->refusal);
        return;
    }
    if (candidate->microseconds >= GPI__NEVER) {
        gpi__append(text, ": no shape has an estimate\n");
        return;
    }
    if (candidate->engine != GPI__ANY_ENGINE) {
        const gpi__engine *engine = gpi__engines[candidate->engine];
        short tile[2];
        memcpy(tile, (const char *)engine->table + engine->shape_size * (size_t)candidate->shape,
               sizeof tile);
        gpi__append(text, ", tile %d x %d", tile[problem->exchanged != 0], tile[!problem->exchanged]);
    }
    if (candidate->microseconds > 0 && candidate->rank > candidate->microseconds)
        gpi__append(text, ": %.1f us, counted as %.1f\n", candidate->microseconds, candidate->rank);
    else if (candidate->microseconds > 0)
        gpi__append(text, ": %.1f us\n", candidate->microseconds);
    else
        gpi__append(text, ": where nothing else can\n");
}

/* What the plan was chosen from, where estimates are known. */
static void gpi__explain_candidates(gpi__text *text, const gpi__matmul_plan *plan) {
    const gpi__candidates *candidates = &plan->candidates;
    const gpi__chip *chip = gpi__chip_of(plan->base.context->arch);
    int i, is_known = 0;
    for (i = 0; i < candidates->count; i++)
        is_known |= candidates->list[i].microseconds > 0;
    if (!is_known)
        return;
    gpi__append(text, "  chosen from, by estimates for compute capability %d.%d (%s)%s:\n", chip->arch / 10,
                chip->arch % 10, chip->source,
                chip->arch == plan->base.context->arch ? "" : ", the nearest that is known");
    for (i = 0; i < candidates->count; i++)
        gpi__explain_candidate(text, &plan->problem, &candidates->list[i]);
}

static void gpi__explain_others(gpi__text *text, const gpi__matmul_plan *plan) {
    size_t i;
    for (i = 0; i < GPI__COUNT(gpi__told_routes); i++) {
        gemmepi_route route = gpi__told_routes[i];
        if (plan->route->id != route)
            gpi__append(text, "  not %s: %s\n", gpi__route_names[route], gpi__why_not(plan, route));
    }
    gpi__append(text, "  not host: the context runs on a GPU\n");
    gpi__explain_candidates(text, plan);
}

/* What tuning has found, if it has: of how many ways. */
static void gpi__explain_tuned(gpi__text *text, const gpi__tuned *tuned, const char *what) {
    if (tuned->microseconds <= 0)
        return;
    gpi__append(text, "  %s: it took %.1f us, and was the fastest of %d ways%s\n", what, tuned->microseconds,
                tuned->ways_timed, tuned->is_measured ? "" : ", by an answer that was loaded");
    if (tuned->ways_left)
        gpi__append(text, "  %d other ways were not timed, for want of time or memory\n", tuned->ways_left);
}

/* Says what the product was chosen from: nothing of an empty one, and of a formula that reads no product. */
static void gpi__explain_choice(gpi__text *text, const gpi__matmul_plan *plan) {
    const gpi__matmul_plan *current = gpi__current_plan(plan);
    const gpi__around *around = plan->around;
    if (!current->route->enumerate)
        return;
    if (around && !gpi__is_tuned_whole(around))
        gpi__explain_tuned(text, &current->tuned, "the product is tuned");
    if (around && GPI__FORMULA(&around->inside) && !around->formula.is_composed) {
        if (!around->formula.is_inside)
            gpi__append(text, "  not inside a kernel: %s\n", around->formula.not_inside);
        gpi__append(text, "  not lt: cuBLASLt runs no formulas\n  not host: the context runs on a GPU\n");
        gpi__explain_candidates(text, current);
        return;
    }
    gpi__explain_others(text, current);
}

/* That BATCH_INVARIANT holds, and what it costs, where that is known. */
static void gpi__explain_invariance(gpi__text *text, const gpi__matmul_plan *plan) {
    const gpi__problem *problem = gpi__asked(plan);
    const gpi__candidate *without = &plan->candidates.without_flag;
    const gpi__candidate *taken = gpi__least_of_routes(&plan->candidates, 1u << plan->route->id);
    if (!gpi__is_invariant(problem))
        return;
    gpi__append(text, "  BATCH_INVARIANT: a %s has the same bits at any %c and for any addresses\n",
                problem->exchanged ? "column" : "row", problem->exchanged ? 'n' : 'm');
    if (!taken || without->route == GEMMEPI_ROUTE_EMPTY || plan->around)
        return;
    if (without->microseconds <= 0 || taken->microseconds <= 0) {
        gpi__append(text, "  without it %s would be tried first; its time is not known\n",
                    gpi__route_names[without->route]);
        return;
    }
    if (taken->microseconds < GPI__NEVER)
        gpi__append(text, "  it takes %.1f us by estimate; without it:\n", taken->microseconds);
    else
        gpi__append(text, "  no shape of its kernel has an estimate; without it:\n");
    gpi__explain_candidate(text, problem, without);
}

/* What the product is to the formula. */
static void gpi__explain_product_of_formula(gpi__text *text, const gpi__around *around,
                                            const gpi__matmul_plan *product) {
    const gpi__formula *formula = around->inside.formula->placed.formula;
    if (around->formula.is_composed) {
        gpi__append(text, "  the formula is ");
        gpi__append_epilogue(text, product->problem.epilogue);
        gpi__append(text, ":\n");
    } else if (around->formula.is_inside) {
        gpi__append(text, "  the formula is inside the kernel:\n");
    } else {
        gpi__append(text, "  %s, into workspace in %s, by the route %s:\n",
                    formula->names + formula->value_name, gpi__type(around->inside.accumulator),
                    gpi__route_names[product->route->id]);
    }
}

/* The passes that make operands. */
static void gpi__explain_made(gpi__text *text, const gpi__around *around) {
    int i;
    for (i = GPI__A; i <= GPI__B; i++)
        if (around->made[i].used_count) {
            gpi__append(text, "  %s in %s%s, into workspace:\n", gpi__argument_name(&around->problem, i),
                        gpi__type(around->problem.made[i].view.dtype),
                        around->problem.made[i].scale.dtype ? " and its scales" : "");
            gpi__explain_formula_pass(text, &around->made[i], "");
        }
}

/* The launches in their order; kernel: as describe has named the product's. */
static void gpi__explain_launches(gpi__text *text, const gpi__matmul_plan *plan, const char *kernel) {
    const gpi__matmul_plan *current = gpi__current_plan(plan);
    const gpi__around *around = plan->around;
    const gpi__launch *finds = around && around->finds ? &around->found.launch : NULL;
    int is_tensor = finds && around->problem.found_scale == GEMMEPI_SCALE_TENSOR;
    if (around)
        gpi__explain_made(text, around);
    if (is_tensor)
        gpi__append(text, "  %s: the scale of the amax of %d earlier runs, 1 block of %u threads\n",
                    finds->name, (int)around->problem.amax_history, finds->threads_x);
    else if (finds)
        gpi__append(text, "  d in F32, into workspace, by the route %s:\n",
                    gpi__route_names[gpi__told_inside(plan)]);
    if (around && GPI__FORMULA(&around->inside) && !around->lacks_product)
        gpi__explain_product_of_formula(text, around, current);
    if (!around || !around->lacks_product)
        current->route->explain(current, kernel, text);
    if (around && GPI__FORMULA(&around->inside))
        gpi__explain_formula_pass(text, &around->formula.pass, "");
    if (finds && !is_tensor)
        gpi__append(text, "  %s: d and its scales, %u blocks of %u threads\n", finds->name, finds->blocks,
                    finds->threads_x);
}

static void gpi__explain_matmul(gpi__text *text, const gemmepi_plan *base,
                                const gemmepi_plan_details *details) {
    const gpi__matmul_plan *plan = (const gpi__matmul_plan *)base, *current = gpi__current_plan(plan);
    gpi__explain_problem(text, gpi__asked(plan));
    gpi__append(text, "route %s, workspace %llu bytes\n", details->route_name,
                (gpi__ull)details->workspace_size);
    gpi__explain_launches(text, plan, details->kernel);
    if (!plan->around || gpi__is_tuned_whole(plan->around))
        gpi__explain_tuned(text, &current->tuned, "tuned");
    gpi__explain_invariance(text, plan->around ? plan : current);
    gpi__explain_choice(text, plan);
}

#endif
