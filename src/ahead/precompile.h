/* Kernels compiled before they are needed: problems are planned on several threads, and the plans thrown away. */
#ifndef GEMMEPI_AHEAD_PRECOMPILE_H
#define GEMMEPI_AHEAD_PRECOMPILE_H

#include "../plans/plans.h"

/* What the threads share. The lock guards what stands behind it, and calls of progress. */
typedef struct gpi__precompilation {
    gemmepi_context *context;
    const gemmepi_any_desc *problems;
    size_t count;
    gemmepi_progress_function progress;
    void *user;
    gpi__mutex lock;
    size_t next, done;
    size_t failed; /* the first in the list that failed, if status is not OK */
    gemmepi_status status;
    char sentence[GPI__ERROR_TEXT_SIZE];
} gpi__precompilation;

/* The row and the desc of a problem; UNSUPPORTED for kinds that were left out of the program. */
static gemmepi_status gpi__row_of_any(const gemmepi_any_desc *problem, const gpi__plan_row **row,
                                      const void **desc) {
    int is_network = problem->network || problem->network_backward;
    int given = (problem->matmul != NULL) + (problem->elementwise != NULL) + (problem->linear != NULL) +
                (problem->linear_backward != NULL) + (problem->grouped != NULL) + (problem->network != NULL) +
                (problem->network_backward != NULL);
    GPI__INVALID_IF(given != 1,
                    "%d of matmul, elementwise, linear, linear_backward, grouped, network and "
                    "network_backward are given; exactly one is",
                    given);
    *row = problem->matmul ? &gpi__product_plans : problem->grouped ? &gpi__grouped_plans : NULL;
    *desc = problem->matmul ? (const void *)problem->matmul : problem->grouped;
#ifndef GEMMEPI_NO_ELEMENTWISE
    if (problem->elementwise)
        *row = &gpi__elementwise_plans, *desc = problem->elementwise;
#endif
#ifndef GEMMEPI_NO_LINEAR
    if (problem->linear || problem->linear_backward) {
        *row = &gpi__layer_plans[problem->linear_backward != NULL];
        *desc = problem->linear ? problem->linear : problem->linear_backward;
    }
#endif
#ifndef GEMMEPI_NO_NETWORK
    if (is_network) {
        *row = &gpi__network_plans[problem->network_backward != NULL];
        *desc = problem->network ? problem->network : problem->network_backward;
    }
#endif
    return *row ? GEMMEPI_OK
                : gpi__fail(GEMMEPI_UNSUPPORTED, "%s were left out of this program (%s)",
                            problem->elementwise ? "element-wise operations"
                            : is_network         ? "networks"
                                                 : "layers",
                            problem->elementwise ? "GEMMEPI_NO_ELEMENTWISE"
                            : is_network         ? "GEMMEPI_NO_NETWORK"
                                                 : "GEMMEPI_NO_LINEAR");
}

static gemmepi_status gpi__plan_and_drop(gemmepi_context *context, const gemmepi_any_desc *problem) {
    const gpi__plan_row *row;
    const void *desc;
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gpi__row_of_any(problem, &row, &desc);
    if (!status)
        status = gpi__plan_desc(row, context, desc, &plan);
    if (!status && problem->matmul)
        status = gpi__build_for_scalars((const gpi__matmul_plan *)plan);
    if (!status && problem->grouped)
        status = gpi__build_groups_for_scalars((const gpi__grouped_plan *)plan);
    gemmepi_plan_destroy(plan);
    return status;
}

/* Takes problems until none is left. */
static void gpi__precompile_some(gpi__precompilation *all) {
    gpi__lock(&all->lock);
    while (all->next < all->count) {
        size_t mine = all->next++;
        gemmepi_status status;
        gpi__unlock(&all->lock);
        status = gpi__plan_and_drop(all->context, &all->problems[mine]);
        gpi__lock(&all->lock);
        if (status && (!all->status || mine < all->failed)) {
            all->status = status;
            all->failed = mine;
            snprintf(all->sentence, sizeof all->sentence, "%s", gpi__error_text);
        }
        all->done++;
        if (all->progress)
            all->progress(all->user, all->done, all->count);
    }
    gpi__unlock(&all->lock);
}

GPI__THREAD_BODY(gpi__precompile_body) {
    gpi__precompile_some((gpi__precompilation *)user);
    return 0;
}

/* What functions over lists of problems are given. */
static gemmepi_status gpi__check_problems(const gemmepi_context *context, const gemmepi_any_desc *problems,
                                          size_t count) {
    gemmepi_status status = gpi__check_call(context, count ? (const void *)problems : context, "problems");
    if (!status && count > (size_t)-1 / sizeof *problems)
        status = gpi__fail(GEMMEPI_INVALID_ARGUMENT, "count is %llu; no array is so long", (gpi__ull)count);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_precompile(gemmepi_context *context, const gemmepi_any_desc *problems,
                                              size_t count, int threads, gemmepi_progress_function progress,
                                              void *user) {
    gpi__precompilation all;
    gpi__thread others[GPI__MOST_THREADS];
    int started = 0, i;
    gemmepi_status status = gpi__check_problems(context, problems, count);
    if (status)
        return status;
    GPI__INVALID_IF(threads < 0, "threads is %d; accepted are 0, for as many as there are cores, and more",
                    threads);
    memset(&all, 0, sizeof all);
    all.context = context;
    all.problems = problems;
    all.count = count;
    all.progress = progress;
    all.user = user;
    GPI__REFUSE_IF(!gpi__mutex_init(&all.lock), GEMMEPI_OUT_OF_MEMORY, "the system gave no mutex");
    threads = threads ? threads : gpi__core_count();
    if (threads > GPI__MOST_THREADS)
        threads = GPI__MOST_THREADS;
    if ((size_t)threads > count)
        threads = (int)count;
    /* where the system gives fewer threads, these do it all */
    while (started < threads - 1 && gpi__thread_start(&others[started], gpi__precompile_body, &all))
        started++;
    gpi__precompile_some(&all);
    for (i = 0; i < started; i++)
        gpi__thread_join(others[i]);
    gpi__mutex_destroy(&all.lock);
    GPI__REFUSE_IF(all.status, all.status, "problems[%llu]: %s", (gpi__ull)all.failed, all.sentence);
    return GEMMEPI_OK;
}

#endif
