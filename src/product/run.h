/* Runs of products' plans: whatever the route, and what stands in for a plan whose own cannot do a run; and the call that plans by
   itself. */
#ifndef GEMMEPI_PRODUCT_RUN_H
#define GEMMEPI_PRODUCT_RUN_H

#include "../device/memory.h"
#include "../device/run.h"
#include "../problem/convert_arguments.h"
#include "plan.h"
#include "run_around.h"
#ifndef GEMMEPI_NO_HOST
#include "../host/found_scale.h"
#include "../host/grouped.h"
#endif
#ifndef GEMMEPI_NO_HOST
#include "../host/formula.h"
#endif

/* A run of a plan, once its pointers have been looked at. */
typedef struct gpi__matmul_run {
    const gpi__matmul_plan *plan;
    gpi__arguments *arguments;
} gpi__matmul_run;

static gemmepi_status gpi__run_by_route(const gpi__matmul_plan *plan, const gpi__space *space,
                                        gpi__arguments *arguments);

static gemmepi_status gpi__launch_route(void *user, char *workspace, size_t size, gemmepi_stream stream) {
    const gpi__matmul_run *run = (const gpi__matmul_run *)user;
    (void)size;
    return run->plan->route->run(run->plan, run->arguments, workspace, stream);
}

/* The product, with what is launched around it. Its arguments are made of the run's, which are left as they are where something follows. */
static gemmepi_status gpi__launch_around(void *user, char *workspace, size_t size, gemmepi_stream stream) {
    const gpi__matmul_run *run = (const gpi__matmul_run *)user;
    const gemmepi_context *context = run->plan->base.context;
    const gpi__around *around = run->plan->around;
    gpi__around_space at = gpi__divide_around(around, workspace);
    gpi__space space = {at.product, run->plan->workspace_size, NULL, stream, 0, 0};
    int is_tensor = around->problem.found_scale == GEMMEPI_SCALE_TENSOR;
    gpi__arguments within, *inside = run->arguments, *product;
    gemmepi_status status = GEMMEPI_OK;
    gpi__arguments own;
    (void)size;
    if (around->finds || gpi__makes_operands(&around->problem)) {
        within = *run->arguments;
        inside = &within;
    }
    if (gpi__makes_operands(&around->problem))
        status = gpi__run_made(context, around, &at, inside, stream);
    if (!status && around->finds) {
        gpi__point_within(&around->problem, at.found, inside);
        if (is_tensor)
            status = gpi__run_history(context, &around->found, run->arguments, at.found, stream);
    }
    product = inside;
    if (GPI__FORMULA(&around->inside) && !around->lacks_product) {
        if (around->formula.pass.used_count) {
            own = *inside;
            product = &own;
        }
        gpi__point_product(&around->inside, &around->formula, &at, product);
    }
    if (!status && !around->lacks_product)
        status = gpi__run_by_route(run->plan, &space, product);
    if (!status && GPI__FORMULA(&around->inside))
        status = gpi__run_behind_v(context, &around->inside, &around->formula, inside, &at, stream);
    if (!status && around->finds && !is_tensor)
        status = gpi__run_quantise(context, &around->found, run->arguments, at.found, stream);
    return status;
}

/* What runs of the plan need as it stands now, also those that are not for its own kernel. */
static size_t gpi__workspace_now(const gpi__matmul_plan *plan) {
    const gpi__matmul_plan *current = gpi__current_plan(plan);
    const gpi__matmul_plan *general = (const gpi__matmul_plan *)gpi__load_pointer(current->general_place);
    size_t size = current->workspace_size, other;
    if (plan->around)
        return gpi__workspace_of(plan);
    other = general ? gpi__current_plan(general)->workspace_size : 0;
    return size > other ? size : other;
}

/* Builds a plan by the next route into a place of this one, if no other thread has done so: `runs` in the log. Why this one
   cannot do it stands in gemmepi_last_error; that of a plan for some runs alone was known beforehand, and is nobody's news. */
static gemmepi_status gpi__plan_next(const gpi__matmul_plan *plan, gpi__atomic_pointer *place,
                                     const char *runs) {
    gpi__matmul_plan *next = gpi__new_plan(plan->base.context, &plan->problem);
    gemmepi_status status;
    if (!next)
        return GEMMEPI_OUT_OF_MEMORY;
    memcpy(next->reasons, plan->reasons, sizeof next->reasons);
    if (!plan->unit_alpha)
        gpi__keep_reason(next, plan->route->id);
    status = gpi__choose_on_device(next, plan);
    if (gpi__publish_plan(place, status, &next->base) && !plan->unit_alpha)
        gpi__say(&plan->base.context->log, GEMMEPI_LOG_WARNING,
                 "a product of m %lld, n %lld, k %lld uses another route %s: %s",
                 (long long)gpi__callers_m(&plan->problem), (long long)gpi__callers_n(&plan->problem),
                 (long long)plan->problem.k, runs,
                 ((const gpi__matmul_plan *)gpi__load_pointer(place))->reasons[plan->route->id]);
    return status;
}

static gemmepi_status gpi__launch_current(const gpi__matmul_plan *plan, size_t counted,
                                          const gpi__space *space, gpi__arguments *arguments) {
    gpi__matmul_run run = {plan, arguments};
    return gpi__launch_as_counted(plan->base.context, space, plan->workspace_size, counted, gpi__launch_route,
                                  &run);
}

#define GPI__UNIT_ALPHA "alpha 1 and no C are compiled in"

/* Why the plan is not for this run, or NULL. */
static const char *gpi__needs_other_plan(const gpi__matmul_plan *plan, const gpi__arguments *arguments) {
    int uses_c = arguments->uses_c && !gpi__adds_as_residual(&plan->problem);
    if (plan->unit_alpha && (arguments->alpha != 1 || uses_c || arguments->device_alpha))
        return GPI__UNIT_ALPHA;
    return plan->route->needs_other_plan ? plan->route->needs_other_plan(plan, arguments) : NULL;
}

/* The plan for runs that are not for this one. */
static gemmepi_status gpi__general_plan(const gpi__matmul_plan *plan, const char *why,
                                        const gpi__matmul_plan **general) {
    gemmepi_status status = GEMMEPI_OK;
    if (!gpi__load_pointer(plan->general_place)) {
        (void)gpi__fail(GEMMEPI_UNSUPPORTED, "%s", why);
        status = gpi__plan_next(plan, plan->general_place, "in such runs");
    }
    if (!status)
        *general = gpi__current_plan((const gpi__matmul_plan *)gpi__load_pointer(plan->general_place));
    return status;
}

/* Builds beforehand what runs with alpha or C take where the plan's kernel is not for them. */
static gemmepi_status gpi__build_for_scalars(const gpi__matmul_plan *plan) {
    const gpi__matmul_plan *general;
    if (!plan->unit_alpha)
        return GEMMEPI_OK;
    return gpi__general_plan(plan, GPI__UNIT_ALPHA, &general);
}

/* cuBLASLt may refuse when run what its heuristic accepted. Nothing has run then: the next route takes over for good. */
static gemmepi_status gpi__run_by_route(const gpi__matmul_plan *plan, const gpi__space *space,
                                        gpi__arguments *arguments) {
    const gpi__matmul_plan *current = gpi__current_plan(plan);
    const char *why = gpi__needs_other_plan(current, arguments);
    size_t counted = /* what the caller knows of for certain */
        current->workspace_size < plan->workspace_size ? current->workspace_size : plan->workspace_size;
    gemmepi_status status = why ? gpi__general_plan(current, why, &current) : GEMMEPI_OK;
    if (status)
        return status;
    status = gpi__launch_current(current, counted, space, arguments);
    while (status == GEMMEPI_UNSUPPORTED && current->route->give_up) {
        status = gpi__plan_next(current, current->replacement_place, "from now on");
        if (status)
            break;
        current = gpi__current_plan(current);
        status = gpi__launch_current(current, counted, space, arguments);
    }
    return status;
}

static gemmepi_status gpi__run_on_device(const gpi__matmul_plan *plan, const gpi__space *space,
                                         gpi__arguments *arguments) {
    gpi__matmul_run run = {plan, arguments};
    if (!plan->around)
        return gpi__run_by_route(plan, space, arguments);
    return gpi__launch_in(plan->base.context, space, gpi__workspace_of(plan), gpi__launch_around, &run);
}

#ifndef GEMMEPI_NO_HOST
static gemmepi_status gpi__run_on_host(const gpi__problem *problem, gpi__arguments *arguments,
                                       const gpi__group_lists *lists, const gemmepi_allocator *allocator);

/* lists: of a grouped product, else NULL. */
static gemmepi_status gpi__run_problem_on_host(const gpi__problem *problem, const gpi__arguments *arguments,
                                               const gpi__group_lists *lists,
                                               const gemmepi_allocator *allocator) {
    if (lists)
        return gpi__host_grouped(problem, arguments, lists, allocator);
    return gpi__host_product(problem, arguments, allocator);
}

/* A or B as its formula makes it: a product without k whose C is what is stored. alpha is -0, so that zeros keep their sign. */
static gemmepi_status gpi__host_make(const gpi__problem *problem, int i, const gpi__arguments *arguments,
                                     const gemmepi_allocator *allocator, void *made) {
    const gpi__placed_formula *placed = &problem->made[i].formula->placed;
    gpi__arguments own = *arguments;
    gpi__problem of;
    memset(&of, 0, sizeof of);
    of.m = placed->rows;
    of.n = placed->columns;
    of.batch = placed->items;
    of.accumulator = placed->formula->accumulator;
    of.compute = of.accumulator == GEMMEPI_F64 ? GEMMEPI_COMPUTE_F64 : GEMMEPI_COMPUTE_F32;
    of.common = of.accumulator;
    of.formula = problem->made[i].formula;
    of.views[GPI__A].dtype = of.views[GPI__B].dtype = of.accumulator;
    of.views[GPI__C] = problem->views[i];
    of.views[GPI__SCALE_C] = problem->views[GPI__SCALE_OF(i)];
    of.views[GPI__D] = problem->made[i].view;
    of.views[GPI__C].transposed = of.views[GPI__D].transposed = of.views[GPI__D].scale = 0;
    own.pointers[GPI__C] = arguments->pointers[i];
    own.pointers[GPI__SCALE_C] = arguments->pointers[GPI__SCALE_OF(i)];
    own.pointers[GPI__D] = made;
    own.pointers[GPI__SCALE_D] = own.pointers[GPI__AMAX_D] = NULL;
    own.alpha = -0.0;
    own.beta = 1;
    own.uses_c = 1;
    return gpi__host_product(&of, &own, allocator);
}

/* The same in F32, of which its scales are found, behind it in memory. */
static gemmepi_status gpi__host_make_scaled(const gpi__problem *problem, int i,
                                            const gpi__arguments *arguments,
                                            const gemmepi_allocator *allocator, void *made) {
    gpi__problem of = gpi__problem_of_found(problem, i);
    float *f32 = (float *)gpi__new(allocator, gpi__bytes_for(of.views[GPI__D].bytes, sizeof(float)));
    gpi__arguments own = *arguments;
    gemmepi_status status =
        f32 ? gpi__host_make(problem, i, arguments, allocator, f32) : GEMMEPI_OUT_OF_MEMORY;
    own.pointers[GPI__D] = made;
    own.pointers[GPI__FOUND_SCALE_D] = gpi__past((char *)made, (size_t)of.views[GPI__D].bytes);
    if (!status)
        gpi__host_find_scales(&of, &own, NULL, f32);
    gpi__delete(allocator, f32);
    return status;
}

/* The product of operands that are made in memory of the allocator. */
static gemmepi_status gpi__run_made_on_host(const gpi__problem *problem, gpi__arguments *arguments,
                                            const gpi__group_lists *lists,
                                            const gemmepi_allocator *allocator) {
    gpi__problem product = gpi__problem_of_made(problem);
    gpi__arguments own = *arguments;
    void *made[2] = {NULL, NULL};
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = GPI__A; i <= GPI__B && !status; i++) {
        const gpi__made *of = &problem->made[i];
        if (!of->formula || !of->view.bytes || !gpi__reads_operands(problem))
            continue;
        own.pointers[i] = made[i] =
            gpi__new(allocator, gpi__bytes_for(of->view.bytes + of->scale.bytes + 256, 1));
        if (of->scale.dtype)
            own.pointers[GPI__SCALE_OF(i)] = gpi__past((char *)made[i], (size_t)of->view.bytes);
        if (!made[i])
            status = GEMMEPI_OUT_OF_MEMORY;
        else
            status = (of->scale.dtype ? gpi__host_make_scaled : gpi__host_make)(problem, i, arguments,
                                                                                allocator, made[i]);
    }
    if (!status)
        status = gpi__run_on_host(&product, &own, lists, allocator);
    gpi__delete(allocator, made[0]);
    gpi__delete(allocator, made[1]);
    return status;
}

/* FIND_SCALE_D: D in F32 in memory of the allocator, unless its scale is that of earlier runs. */
static gemmepi_status gpi__run_found_on_host(const gpi__problem *problem, const gpi__arguments *arguments,
                                             const gpi__group_lists *lists,
                                             const gemmepi_allocator *allocator) {
    gpi__problem within = gpi__problem_within(problem);
    int is_tensor = problem->found_scale == GEMMEPI_SCALE_TENSOR;
    gpi__arguments own = *arguments;
    float reciprocal, *d = &reciprocal;
    gemmepi_status status;
    if (is_tensor)
        reciprocal = gpi__host_scale_of_history(problem, arguments);
    else if ((d = (float *)gpi__new(allocator,
                                    gpi__bytes_for(problem->views[GPI__D].bytes, sizeof(float)))) == NULL)
        return GEMMEPI_OUT_OF_MEMORY;
    gpi__point_within(problem, d, &own);
    status = gpi__run_problem_on_host(&within, &own, lists, allocator);
    if (!status && !is_tensor)
        gpi__host_find_scales(problem, arguments, lists, d);
    if (!is_tensor)
        gpi__delete(allocator, d);
    return status;
}

/* Scalars that lie on the device, which is the host. */
static void gpi__fetch_scalars(const gpi__problem *problem, gpi__arguments *arguments) {
    if (arguments->device_alpha)
        memcpy(&arguments->alpha, arguments->device_alpha, sizeof(double));
    if (arguments->device_beta)
        memcpy(&arguments->beta, arguments->device_beta, sizeof(double));
    if (problem->accumulator == GEMMEPI_I32) {
        arguments->alpha = rint(arguments->alpha);
        arguments->beta = rint(arguments->beta);
    }
}

static gemmepi_status gpi__run_on_host(const gpi__problem *problem, gpi__arguments *arguments,
                                       const gpi__group_lists *lists, const gemmepi_allocator *allocator) {
    gpi__fetch_scalars(problem, arguments);
    if (gpi__makes_operands(problem))
        return gpi__run_made_on_host(problem, arguments, lists, allocator);
    return gpi__finds_scales(problem) && !gpi__is_empty(problem)
               ? gpi__run_found_on_host(problem, arguments, lists, allocator)
               : gpi__run_problem_on_host(problem, arguments, lists, allocator);
}
#endif

/* one_shot: each pointer is asked about at the driver. */
static gemmepi_status gpi__run_matmul(const gemmepi_plan *base, const void *given, int one_shot,
                                      gemmepi_stream stream) {
    const gpi__matmul_plan *plan = (const gpi__matmul_plan *)base;
    const gemmepi_matmul_args *args = (const gemmepi_matmul_args *)given;
    gemmepi_context *context = plan->base.context;
    const gpi__problem *problem = gpi__asked(plan);
    gpi__arguments arguments;
    gpi__regions regions;
    gpi__space space = {args->workspace, args->workspace_size, &regions, stream, base->block_number, 0};
    gpi__entry entry;
    gemmepi_status status = gpi__check_run(context, stream, args->workspace, args->workspace_size);
    if (status || gpi__writes_nothing(problem))
        return status;
    status = gpi__convert_arguments(problem, args, NULL, &arguments, &regions);
    if (!status)
        status = gpi__enter_run(context, &space, one_shot, &entry);
    if (status)
        return status;
#ifndef GEMMEPI_NO_HOST
    if (context->is_host)
        return gpi__run_on_host(problem, &arguments, NULL, &context->allocator);
#endif
    status = gpi__run_on_device(plan, &space, &arguments);
    gpi__leave(context, &entry);
    return status;
}

#endif
