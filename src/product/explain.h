/* What a plan is, as a struct and in words. */
#ifndef GEMMEPI_PRODUCT_EXPLAIN_H
#define GEMMEPI_PRODUCT_EXPLAIN_H

#include "run.h"

static void gemmepi__describe_kernel(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
    const gemmepi__split *split = &plan->split;
    if (plan->route == GEMMEPI_ROUTE_LT)
        gemmepi__lt_describe_algo(&plan->base.context->cublaslt, &plan->lt, details->kernel,
                                  sizeof details->kernel, &details->tile_m, &details->tile_n);
    else if (plan->route == GEMMEPI_ROUTE_SPLIT && split->has_product)
        gemmepi__lt_describe_algo(&plan->base.context->cublaslt, &split->product, details->kernel,
                                  sizeof details->kernel, &details->tile_m, &details->tile_n);
    else if (plan->route == GEMMEPI_ROUTE_SPLIT)
        memcpy(details->kernel, split->pass.launch.name, sizeof details->kernel);
    else if (plan->route == GEMMEPI_ROUTE_EMPTY && split->sums.first.function)
        memcpy(details->kernel, split->sums.first.name, sizeof details->kernel);
    else if (plan->route == GEMMEPI_ROUTE_PLAIN) {
        memcpy(details->kernel, plan->plain.launch.name, sizeof details->kernel);
        details->tile_m = details->tile_n = GEMMEPI__PLAIN_TILE;
    } else if (plan->route == GEMMEPI_ROUTE_FUSED) {
        gemmepi__built_details built = gemmepi__describe_built(&plan->fused);
        memcpy(details->kernel, built.launch->name, sizeof details->kernel);
        details->tile_m = built.tile_m;
        details->tile_n = built.tile_n;
    } else if (plan->route == GEMMEPI_ROUTE_HOST)
        snprintf(details->kernel, sizeof details->kernel, "gemmepi__host_product");
#ifndef GEMMEPI_NO_HOST
    if (plan->route == GEMMEPI_ROUTE_HOST)
        details->tile_m = details->tile_n = GEMMEPI__HOST_TILE;
#endif
}

static void gemmepi__matmul_info(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
    plan = gemmepi__current_plan(plan);
    memset(details, 0, sizeof *details);
    details->kind = GEMMEPI_PLAN_MATMUL;
    details->route = plan->route;
    details->route_name = gemmepi__route_names[plan->route];
    gemmepi__describe_kernel(plan, details);
    if (plan->problem.exchanged) {
        int tile_m = details->tile_m;
        details->tile_m = details->tile_n;
        details->tile_n = tile_m;
    }
    details->launches = plan->route == GEMMEPI_ROUTE_LT ? 1 : 0;
    if (plan->route == GEMMEPI_ROUTE_SPLIT || plan->route == GEMMEPI_ROUTE_EMPTY)
        details->launches = gemmepi__split_launches(&plan->split, &plan->problem);
    if (plan->route == GEMMEPI_ROUTE_PLAIN)
        details->launches = gemmepi__plain_launches(&plan->plain, &plan->problem);
    if (plan->route == GEMMEPI_ROUTE_FUSED)
        details->launches = gemmepi__fused_launches(&plan->fused, &plan->problem);
    details->workspace_size = gemmepi__workspace_now(plan);
    details->compute = (gemmepi_compute)plan->problem.compute;
    details->accumulator =
        plan->base.context->is_host ? GEMMEPI_F64 : (gemmepi_dtype)plan->problem.accumulator;
    details->deterministic = 1; /* our sums have a fixed order, and cuBLASLt is kept from reducing in place */
    details->bit_stable = 1;
}

static const char *const gemmepi__scale_names[] = {"", "one scale", "a scale for each line of the sum",
                                                   "a scale for each 128 of k",
                                                   "a scale for each 128 x 128 block"};

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

static void gemmepi__explain_problem(gemmepi__text *text, const gemmepi__problem *problem) {
    int operand;
    gemmepi__append(text, "product of m %lld, n %lld, k %lld, batch %lld, epilogue ",
                    (long long)gemmepi__callers_m(problem), (long long)gemmepi__callers_n(problem),
                    (long long)problem->k, (long long)problem->batch);
    gemmepi__append_epilogue(text, gemmepi__callers_epilogue(problem->epilogue, problem->exchanged));
    gemmepi__append(
        text, "%s%s%s, pointers aligned to %d bytes%s\n", problem->flags & GEMMEPI_RELAXED ? ", relaxed" : "",
        problem->flags & GEMMEPI_FAST_ACCUMULATION ? ", fast accumulation" : "",
        problem->flags & GEMMEPI_DEVICE_SCALARS ? ", scalars on the device" : "", (int)problem->alignment,
        problem->exchanged ? ", column-major (run as the transposed row-major product)" : "");
    for (operand = 0; operand < GEMMEPI__SCALE_A; operand++)
        gemmepi__explain_view(text, problem, operand);
}

static void gemmepi__explain_split(gemmepi__text *text, const gemmepi__matmul_plan *plan,
                                   const char *kernel) {
    const gemmepi__split *split = &plan->split;
    const gemmepi__launch *pass = &split->pass.launch;
    int operand;
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
        if (split->converts[operand].launch.function)
            gemmepi__append(text, "  %s: %s to %s in workspace\n", split->converts[operand].launch.name,
                            gemmepi__argument_name(&plan->problem, operand),
                            gemmepi__dtype((gemmepi_dtype)plan->problem.common)->name);
    if (split->has_product)
        gemmepi__append(text, "  %s%s%s\n", kernel, split->bare ? ", bare" : ", with its epilogue",
                        split->to_workspace ? ", into workspace in the type of its sums" : "");
    gemmepi__explain_pass(text, pass, "");
    gemmepi__explain_sums(text, &split->sums);
}

static void gemmepi__explain_plain(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
    const gemmepi__launch *launch = &plan->plain.launch;
    const gemmepi__launch *pass = &plan->plain.pass.launch;
    gemmepi__append(text, "  %s: product%s, %u blocks of %u threads\n", launch->name,
                    pass->function ? ", into workspace" : " and epilogue", launch->blocks, launch->threads_x);
    gemmepi__explain_pass(text, pass, "");
    gemmepi__explain_sums(text, &plan->plain.sums);
}

/* Why a route was not taken: what it said when it was tried, a rule, or that it is slower. */
static const char *gemmepi__why_not(const gemmepi__matmul_plan *plan, gemmepi_route route) {
    const gemmepi__candidate *best = gemmepi__least_of_route(&plan->candidates, route);
    if (plan->reasons[route][0])
        return plan->reasons[route];
    if (best->refusal)
        return best->refusal;
    if (route == GEMMEPI_ROUTE_PLAIN)
        return plan->route == GEMMEPI_ROUTE_SPLIT && !plan->split.has_product ? "there is no product"
                                                                              : "slower than the others";
    return route == GEMMEPI_ROUTE_SPLIT ? "it takes a pass more" : "its estimate is not less";
}

static void gemmepi__explain_fused(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
    const gemmepi__fused *fused = &plan->fused;
    int operand;
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
        if (fused->packs[operand].launch.function)
            gemmepi__append(text, "  %s: %s to workspace, lines of whole 16 bytes\n",
                            fused->packs[operand].launch.name,
                            gemmepi__argument_name(&plan->problem, operand));
    fused->engine->explain(&plan->problem, &fused->built, text);
    if (fused->applied)
        gemmepi__append(text, "  runs with alpha or C have a kernel of their own\n");
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
    static const gemmepi_route routes[] = {GEMMEPI_ROUTE_FUSED, GEMMEPI_ROUTE_LT, GEMMEPI_ROUTE_SPLIT,
                                           GEMMEPI_ROUTE_PLAIN};
    size_t i;
    for (i = 0; i < GEMMEPI__COUNT(routes); i++)
        if (plan->route != routes[i])
            gemmepi__append(text, "  not %s: %s\n", gemmepi__route_names[routes[i]],
                            gemmepi__why_not(plan, routes[i]));
    gemmepi__append(text, "  not host: the context runs on a GPU\n");
    gemmepi__explain_candidates(text, plan);
}

static void gemmepi__explain_routes(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
    gemmepi_plan_details details;
    gemmepi__matmul_info(plan, &details);
    gemmepi__append(text, "route %s, workspace %llu bytes\n", details.route_name,
                    (gemmepi__ull)details.workspace_size);
    switch (plan->route) {
    case GEMMEPI_ROUTE_EMPTY:
        gemmepi__append(text, "  m or n is 0: %s\n",
                        gemmepi__writes_nothing(&plan->problem) ? "nothing runs, nothing is written"
                                                                : "only the sums of bias_grad are written");
        return;
    case GEMMEPI_ROUTE_HOST:
        gemmepi__append(text, "  plain C, accumulated in F64\n"
                              "  not fused, not lt, not split, not plain: the context runs on the host\n");
        return;
    case GEMMEPI_ROUTE_LT:
        gemmepi__append(text, "  %s\n", details.kernel);
        break;
    case GEMMEPI_ROUTE_FUSED:
        gemmepi__explain_fused(text, plan);
        break;
    case GEMMEPI_ROUTE_PLAIN:
        gemmepi__explain_plain(text, plan);
        break;
    default:
        gemmepi__explain_split(text, plan, details.kernel);
        break;
    }
    gemmepi__explain_others(text, plan);
}

static void gemmepi__explain_matmul(gemmepi__text *text, const gemmepi__matmul_plan *plan) {
    plan = gemmepi__current_plan(plan);
    gemmepi__explain_problem(text, &plan->problem);
    gemmepi__explain_routes(text, plan);
}

#endif
