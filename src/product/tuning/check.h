/* Whether cuBLASLt keeps the bounds where nobody has measured it (config.check): each kind of its products once, a small one of random numbers by
   the plan's algorithm against the route plain. docs/numerics.md has the bounds. */
#ifndef GEMMEPI_PRODUCT_TUNING_CHECK_H
#define GEMMEPI_PRODUCT_TUNING_CHECK_H

#include "tune.h"

/* >>a small product of the same kind */

enum {
    GPI__CHECK_SMALL =
        128, /* extents, of what is larger with the rest that is left: odd ones stay odd. k small, too: */
    GPI__CHECK_LARGE =
        512 /* what is left of sums of random signs is large beside their bound. Then, if that is refused */
};

static int64_t gpi__shrunk(int64_t extent, int64_t to) {
    return extent < 2 * to ? extent : to + extent % to;
}

/* Makes a tensor smaller. Lines, and items of a batch, begin at multiples of as many elements as before, up to 128. */
static void gpi__shrink_view(gpi__problem *probe, int operand, int64_t lines, int64_t length) {
    gpi__view *view = &probe->views[operand];
    int is_scale = operand >= GPI__SCALE_A;
    if (!view->dtype)
        return;
    view->lines = lines;
    view->length = length;
    view->ld = lines == 1 && view->bits != 1 ? length : gpi__divide_up(length, 128) * 128 + view->ld % 128;
    if (is_scale) /* as they lie side by side, of blocks in lines of fours */
        view->ld =
            operand < GPI__AMAX_D && probe->views[operand - GPI__SCALE_A].scale == GEMMEPI_SCALE_BLOCK_128
                ? gpi__divide_up(length, 4) * 4
                : length;
    if (view->batch_stride)
        view->batch_stride = gpi__divide_up(lines * view->ld, 128) * 128 + view->batch_stride % 128;
    view->bytes = gpi__bytes_for_bits(
        ((probe->batch - 1) * view->batch_stride + (lines - 1) * view->ld + length) * view->bits);
}

static void gpi__shrink_scale(gpi__problem *probe, int operand, int64_t outer) {
    int64_t steps = gpi__blocks_of_128(probe->k);
    int mode = probe->views[operand].scale;
    gpi__shrink_view(probe, GPI__SCALE_OF(operand),
                     mode == GEMMEPI_SCALE_VECTOR_128  ? steps
                     : mode == GEMMEPI_SCALE_BLOCK_128 ? gpi__blocks_of_128(outer)
                                                       : 1,
                     mode == GEMMEPI_SCALE_TENSOR      ? 1
                     : mode == GEMMEPI_SCALE_BLOCK_128 ? steps
                                                       : outer);
}

/* Makes the product small. Where k is divided, each part stays as long as two stages or more. */
static void gpi__shrink_product(gpi__problem *probe, int64_t to, int split) {
    static const int of_d[] = {GPI__C, GPI__D, GPI__AUX, GPI__RESIDUAL};
    int64_t m = gpi__shrunk(probe->m, to), n = gpi__shrunk(probe->n, to);
    int64_t k = split > 1 && probe->k > to * split ? to * split
                : split > 1                        ? probe->k
                                                   : gpi__shrunk(probe->k, to);
    size_t i;
    probe->m = m, probe->n = n, probe->k = k;
    probe->batch = probe->batch > 2 ? 2 : probe->batch;
    gpi__shrink_view(probe, GPI__A, probe->views[GPI__A].transposed ? k : m,
                     probe->views[GPI__A].transposed ? m : k);
    gpi__shrink_view(probe, GPI__B, probe->views[GPI__B].transposed ? n : k,
                     probe->views[GPI__B].transposed ? k : n);
    for (i = 0; i < GPI__COUNT(of_d); i++)
        gpi__shrink_view(probe, of_d[i], m, n);
    gpi__shrink_view(probe, GPI__BIAS, 1, n);
    gpi__shrink_view(probe, GPI__BIAS_GRAD, 1, gpi__has(probe, GEMMEPI_BGRAD_A) ? m : n);
    gpi__shrink_scale(probe, GPI__A, m);
    gpi__shrink_scale(probe, GPI__B, n);
    gpi__list_operands(probe);
}

/* What of the plan's problem cuBLASLt multiplies, as a problem: all of it by LT, else the bare product. 0: it has no part. */
static int gpi__product_of_lt(const gpi__matmul_plan *plan, gpi__problem *product,
                              const gpi__lt_product **by) {
    const gpi__split *split = (const gpi__split *)plan->built;
    int operand, dtype;
    *product = plan->problem;
    if (plan->route->id == GEMMEPI_ROUTE_LT) {
        *by = (const gpi__lt_product *)plan->built;
        return 1;
    }
    if (plan->route->id != GEMMEPI_ROUTE_SPLIT || !split->has_product)
        return 0;
    *by = &split->product;
    if (!split->bare) {
        *product = gpi__without_sums(&plan->problem);
        return 1;
    }
    dtype = gpi__product_dtype(&plan->problem);
    *product = gpi__bare_problem(&plan->problem);
    product->views[GPI__D] = product->views[GPI__C] = gpi__product_in_workspace(&plan->problem, dtype);
    product->views[GPI__D].written = 1;
    product->views[GPI__C].written = 0;
    product->accumulator = dtype;
    for (operand = GPI__A; operand <= GPI__B; operand++) {
        gpi__view *view = &product->views[operand];
        if (split->converts[operand].launch.function) {
            *view = gpi__converted_view(view, product->batch, product->common);
            product->flags &= ~(uint64_t)GEMMEPI_FAST_ACCUMULATION;
        }
        if (gpi__scale_varies_along_k(product, operand))
            continue;
        view->scale = 0; /* the pass's */
        memset(&product->views[GPI__SCALE_OF(operand)], 0, sizeof *view);
    }
    return 1;
}

/* >>what is allowed */

/* Of a stored type: its unit roundoff, and its smallest number. */
static void gpi__rounding_of(int dtype, double *unit, double *least) {
    const gpi__dtype_row *row = gpi__dtype((gemmepi_dtype)dtype);
    *unit = row->digits ? ldexp(1.0, -row->digits) : 0;
    *least = row->digits ? ldexp(1.0, -row->least) : 0;
}

/* How far a sum of so many terms may be from the exact one, for each 1 of the sum of their magnitudes. */
static double gpi__error_of_sum(const gpi__problem *problem, int64_t terms) {
    double unit, least;
    gpi__rounding_of(problem->accumulator, &unit, &least);
    return (4 + (double)terms / 8) * unit;
}

/* Likewise, of products along k, as tensor cores add them up. */
static double gpi__error_of_product(const gpi__problem *problem) {
    double error = gpi__error_of_sum(problem, problem->k), steps = (double)gpi__divide_up(problem->k, 32);
    if (problem->compute == GEMMEPI_COMPUTE_TF32)
        error += ldexp(1.0, -9);
    if (gpi__is_fp8_product(problem))
        error += ldexp(1.0, -10) * (steps > 4 && !(problem->flags & GEMMEPI_FAST_ACCUMULATION) ? 4 : steps);
    return error;
}

/* Numbers of A and B, and their scales, are GPI__TRIAL_LARGEST at most, and so are those of C and bias. */
static double gpi__largest_sum(const gpi__problem *problem) {
    const gpi__view *views = problem->views;
    const double largest = GPI__TRIAL_LARGEST;
    return (double)problem->k * largest * largest * (views[GPI__A].scale ? largest : 1) *
               (views[GPI__B].scale ? largest : 1) +
           (problem->flags & GEMMEPI_ACCUMULATE ? largest * (views[GPI__C].scale ? largest : 1) : 0) +
           (gpi__has(problem, GEMMEPI_BIAS) ? largest : 0);
}

/* The bounds of docs/numerics.md, of both results, where all sums are as large as any may be. */
static gpi__allowance gpi__allow_by_bounds(const gpi__trial *trial, int number) {
    const gpi__problem *problem = trial->problem;
    const gpi__view *view = &problem->views[number];
    double sum = gpi__largest_sum(problem), unit, least, each, exact;
    double slope = gpi__activation(problem->epilogue) == GEMMEPI_GELU_TANH ? 1.13 : 1;
    int64_t terms = gpi__has(problem, GEMMEPI_BGRAD) ? problem->m : problem->k;
    gpi__allowance allowance;
    gpi__rounding_of(problem->accumulator, &exact, &least);
    each = (slope * gpi__error_of_product(problem) + 4 * exact) * sum;
    if (number == GPI__BIAS_GRAD) /* of such results, or of an operand's numbers, which are exact */
        each = gpi__has(problem, GEMMEPI_BGRAD)
                   ? (double)terms * (each + gpi__error_of_sum(problem, terms) * sum)
                   : gpi__error_of_sum(problem, terms) * (double)terms * GPI__TRIAL_LARGEST;
    else if (number < GPI__SCALE_A && view->scale)
        each *= GPI__TRIAL_LARGEST;
    gpi__rounding_of(view->dtype, &unit, &least);
    allowance.absolute = 2 * (each + least);
    allowance.of_size = 2 * unit;
    allowance.of_all = 0;
    return allowance;
}

/* >>a check */

/* A plan that runs the small product by the algorithm, whatever the heuristic says of it. */
static gemmepi_status gpi__plan_probe(gemmepi_context *context, const gpi__problem *probe,
                                      const gpi__lt_product *by, gemmepi_plan **result) {
    gpi__matmul_plan *plan = gpi__new_plan(context, probe);
    gpi__lt_product *product;
    gpi__lt_question question;
    gemmepi_status status = GEMMEPI_OK;
    int failed;
    if (!plan)
        return GEMMEPI_OUT_OF_MEMORY;
    plan->route = gpi__route_of(GEMMEPI_ROUTE_LT);
    product = (gpi__lt_product *)plan->built;
    question = gpi__lt_question_of(context, &plan->problem, GPI__LT_WHOLE);
    failed = gpi__lt_describe_product(&question, product);
    if (failed)
        status = gpi__cublaslt_failed(&context->cublaslt, failed, "describing a small product");
    product->algo = by->algo;
    product->algorithm = by->algorithm;
    product->workspace_size = plan->workspace_size = by->workspace_size;
    return gpi__finish_plan(&plan->base, status, result);
}

/* Runs both plans on the same numbers, once as they are and once with D for C: the largest difference over what is allowed. */
static gemmepi_status gpi__compare_probe(gpi__trial *trial, const gpi__problem *probe,
                                         gemmepi_plan *const plans[2], int has_c, double *off) {
    gpi__problem with_c = *probe;
    gemmepi_status status = GEMMEPI_OK;
    int i;
    with_c.flags |= GEMMEPI_ACCUMULATE;
    trial->allowed = gpi__allow_by_bounds;
    for (i = 0; i <= has_c && !status; i++) {
        double now;
        trial->problem = i ? &with_c : probe;
        status = gpi__read_way(trial, plans[0], trial->reference);
        if (!status)
            status = gpi__read_way(trial, plans[1], trial->compared);
        now = status ? 0 : gpi__outputs_off(trial);
        *off = now > *off ? now : *off;
    }
    return status;
}

/* The primary context is current. UNSUPPORTED where cuBLASLt refuses the algorithm for so small a product. */
static gemmepi_status gpi__run_probe(gemmepi_context *context, const gpi__problem *probe,
                                     const gpi__lt_product *by, double *off) {
    gpi__trial *trial = (gpi__trial *)gpi__new(&context->allocator, sizeof *trial);
    gemmepi_plan *plans[2] = {NULL, NULL};
    gpi__candidate plain;
    gemmepi_tune_options options;
    gemmepi_status status = trial ? GEMMEPI_OK : GEMMEPI_OUT_OF_MEMORY;
    int i;
    memset(&options, 0, sizeof options);
    options.memory = 1; /* one set */
    memset(&plain, 0, sizeof plain);
    plain.route = GEMMEPI_ROUTE_PLAIN;
    plain.engine = GPI__ANY_ENGINE;
    if (!status)
        status = gpi__plan_probe(context, probe, by, &plans[1]);
    if (!status)
        status = gpi__build_plan_by(context, probe, &plain, &plans[0]);
    if (!status)
        status = gpi__open_trial(trial, context, probe, &gpi__tuned_products, &options);
    for (i = 0; i < 2 && !status; i++)
        gpi__acquire_trial_workspace(trial, plans[i]);
    *off = 0;
    if (!status)
        status = gpi__compare_probe(trial, probe, plans,
                                    probe->views[GPI__C].dtype == probe->views[GPI__D].dtype &&
                                        probe->accumulator != GEMMEPI_I32 && !by->not_with_c,
                                    off);
    if (trial && trial->stream) {
        gemmepi_status waited = gpi__trial_wait(trial);
        status = status ? status : waited;
    }
    if (trial && trial->context)
        gpi__close_trial(trial);
    gpi__delete(&context->allocator, trial);
    for (i = 0; i < 2; i++)
        if (plans[i])
            gpi__release_plan(plans[i]);
    return status;
}

/* Compares a small product of the kind by the algorithm and by PLAIN. Fast accumulation is a permission, which an algorithm may not have. */
static gemmepi_status gpi__check_product(gemmepi_context *context, const gpi__problem *product,
                                         const gpi__lt_product *by, double *off) {
    gemmepi_status status = GEMMEPI_UNSUPPORTED;
    gpi__entry entry;
    int i;
    for (i = 0; i < 4 && status == GEMMEPI_UNSUPPORTED; i++) {
        gpi__problem probe = *product;
        probe.flags &= i < 2 ? GEMMEPI_FAST_ACCUMULATION | GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX
                             : GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX;
        if (i >= 2 && !(product->flags & GEMMEPI_FAST_ACCUMULATION))
            break;
        gpi__shrink_product(&probe, i % 2 ? GPI__CHECK_LARGE : GPI__CHECK_SMALL, by->algorithm.split);
        status = gpi__enter_relaxed(context, &entry);
        if (status)
            break;
        status = gpi__run_probe(context, &probe, by, off);
        gpi__leave_relaxed(context, &entry);
    }
    return status;
}

/* >>what was found, also by other processes */

/* The key of a kind in the cache folder. */
static size_t gpi__check_key(const gemmepi_context *context, const char *kind, char key[1024]) {
    gpi__text text = gpi__text_in(key, 1024);
    gpi__append_maker(&text, context);
    gpi__append(&text, ", cuBLASLt %d, %s", context->cublaslt.version, kind);
    return strlen(key);
}

static int gpi__fetch_check(gemmepi_context *context, const char *kind, double *off) {
    char key[1024];
    size_t size = gpi__check_key(context, kind, key), found = 0;
    void *stored = NULL;
    int is_found =
        gpi__disk_cache_get(&context->disk, "check", key, size, &stored, &found) && found == sizeof *off;
    if (is_found)
        memcpy(off, stored, sizeof *off);
    gpi__delete(&context->allocator, stored);
    return is_found && *off >= 0;
}

static void gpi__keep_check(gemmepi_context *context, uint64_t kind, double off) {
    gpi__lt_verdict *verdict = (gpi__lt_verdict *)gpi__new(&context->allocator, sizeof *verdict);
    if (!verdict)
        return;
    verdict->off = off;
    gpi__lock(&context->build_lock);
    if (gpi__lt_verdict_of(context, kind) || !gpi__map_insert(&context->checks, &kind, sizeof kind, verdict))
        gpi__delete(&context->allocator, verdict);
    gpi__add(&context->generation, off > 1); /* who sees the verdict sees that plans are made again, too */
    gpi__unlock(&context->build_lock);
    if (off > 1)
        gpi__forget_all_kept(context);
}

static int gpi__has_verdict(gemmepi_context *context, uint64_t kind) {
    int has;
    gpi__lock(&context->build_lock);
    has = gpi__lt_verdict_of(context, kind) != NULL;
    gpi__unlock(&context->build_lock);
    return has;
}

/* Checks the kind of a plan's product, and keeps what was found. */
static void gpi__check_kind(gemmepi_context *context, const gpi__problem *product,
                            const gpi__lt_product *by) {
    char kind[GPI__LT_KIND_SIZE], key[1024];
    gpi__text words = gpi__text_in(kind, sizeof kind);
    gpi__lt_question question = gpi__lt_question_of(context, product, GPI__LT_WHOLE);
    gemmepi_status status = GEMMEPI_OK;
    double off = -1;
    question.algorithm = &by->algorithm;
    gpi__lt_append_kind(&words, &question);
    if (!gpi__fetch_check(context, kind, &off)) {
        status = gpi__check_product(context, product, by, &off);
        if (status)
            off = -1;
        else
            gpi__disk_cache_put(&context->disk, "check", key, gpi__check_key(context, kind, key), &off,
                                sizeof off);
    }
    if (status)
        gpi__say(&context->log, GEMMEPI_LOG_WARNING,
                 "cuBLASLt %d could not be checked, and is taken for right, as documented: %s: %s",
                 context->cublaslt.version, kind, gpi__error_text);
    else
        gpi__say(&context->log, off > 1 ? GEMMEPI_LOG_WARNING : GEMMEPI_LOG_INFO,
                 "cuBLASLt %d was checked and is %s: off by %.2g of the bound: %s", context->cublaslt.version,
                 off > 1 ? "wrong here, so that this is not used" : "right", off, kind);
    gpi__keep_check(context, by->kind, off);
}

/* With config.check: checks what cuBLASLt multiplies of the plan, unless it is known. One at a time. */
static void gpi__check_matmul(const gemmepi_plan *plan) {
    gemmepi_context *context = plan->context;
    const gpi__matmul_plan *current = gpi__current_plan((const gpi__matmul_plan *)plan);
    const gpi__lt_product *by;
    gpi__problem product;
    if (!gpi__product_of_lt(current, &product, &by) || !by->kind || gpi__has_verdict(context, by->kind))
        return;
    gpi__lock(&context->tune_lock);
    if (!gpi__has_verdict(context, by->kind))
        gpi__check_kind(context, &product, by);
    gpi__unlock(&context->tune_lock);
}

#endif
