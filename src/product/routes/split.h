/* The route split: a cuBLASLt product, then what cuBLASLt's epilogue cannot do, in one pass of ours, and sums.

   The product takes cuBLASLt's whole epilogue where only sums of an operand are left to do. Else it is bare, in the type
   of its sums: into D itself where D has that type and the pass reads nothing that may be D, else into workspace. So the
   result is rounded once. Operands that cuBLASLt does not multiply as they are (fp8 in other layouts, mixed types) are
   first converted, without loss, to the smallest type that holds both. */
#ifndef GEMMEPI_PRODUCT_ROUTES_SPLIT_H
#define GEMMEPI_PRODUCT_ROUTES_SPLIT_H

#include "../parts/operand_copy.h"
#include "lt.h"

typedef struct gemmepi__split {
    int has_product;              /* 0: k is 0 */
    int bare;                     /* the product leaves the epilogue to the pass */
    int to_workspace;             /* the bare product goes to workspace, else to D */
    int product_takes_c;          /* alpha and beta C are the product's, else the pass's */
    gemmepi__convert converts[2]; /* of A and B */
    gemmepi__lt_product product;
    gemmepi__pass pass;
    gemmepi__sums sums;
    size_t product_bytes;
    const gemmepi__candidate *candidate; /* while it is built */
} gemmepi__split;

/* >>building */

/* Where the bare product goes, and whether it takes alpha and beta C. alone: it must not. */
static gemmepi__view gemmepi__product_view(const gemmepi__problem *problem, int alone,
                                           gemmepi__split *split) {
    gemmepi__view view = problem->views[GEMMEPI__D];
    const gemmepi__view *c = &problem->views[GEMMEPI__C];
    int dtype = gemmepi__product_dtype(problem);
    gemmepi__view in_workspace = gemmepi__product_in_workspace(problem, dtype);
    int reads_aside = gemmepi__has(problem, GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL); /* what may be D */
    /* factors that the pass multiplies by come before beta C */
    int scaled = problem->views[GEMMEPI__A].scale || problem->views[GEMMEPI__B].scale;
    /* with alpha or beta cuBLASLt's I32 results are not modulo 2^32 */
    alone = alone || scaled || dtype == GEMMEPI_I32 || (problem->flags & GEMMEPI_DEVICE_SCALARS) ||
            gemmepi__lt_stores_as_c(problem, c, &view) || gemmepi__lt_stores_as_c(problem, c, &in_workspace);
    split->product_takes_c = c->dtype == dtype && dtype == problem->accumulator && !alone && problem->k != 0;
    reads_aside = reads_aside || (!split->product_takes_c && c->dtype == view.dtype);
    split->to_workspace = view.dtype != dtype || reads_aside || gemmepi__has(problem, GEMMEPI_GATED);
    return split->to_workspace ? in_workspace : view;
}

/* The problem without the sums of an operand. */
static gemmepi__problem gemmepi__without_sums(const gemmepi__problem *problem) {
    gemmepi__problem rest = *problem;
    if (gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B)) {
        rest.epilogue &= ~(GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD);
        memset(&rest.views[GEMMEPI__BIAS_GRAD], 0, sizeof rest.views[GEMMEPI__BIAS_GRAD]);
    }
    return rest;
}

/* What keeps a bare product from cuBLASLt whatever its heuristic says, or NULL. */
static const char *gemmepi__bare_rule(const gemmepi__problem *problem) {
    const gemmepi__view *views = problem->views;
    int varies = gemmepi__scale_varies_along_k(problem, GEMMEPI__A) +
                 gemmepi__scale_varies_along_k(problem, GEMMEPI__B);
    if (views[GEMMEPI__A].dtype != views[GEMMEPI__B].dtype && !gemmepi__is_fp8_product(problem))
        return "a and b differ in dtype";
    if (varies && (varies < 2 || !gemmepi__is_fp8_product(problem)))
        return "it takes scales along k of both fp8 operands, or of none";
    if (varies && problem->batch > 1)
        return "a batch has scales that are more than one number";
    if (problem->common == GEMMEPI_I8 &&
        (problem->n % 4 || problem->k % 4)) /* so its manual; its heuristic takes some */
        return "n or k of a product of I8 is no multiple of 4";
    if (problem->common == GEMMEPI_I8 && problem->accumulator != GEMMEPI_I32 && problem->k > 131071)
        return "sums of more than 131071 products of I8 may pass 2^31";
    return NULL;
}

/* The product without its epilogue. Where cuBLASLt's algorithms are not to be trusted with alpha and beta, the pass takes
   both. */
static gemmepi_status gemmepi__build_bare(gemmepi_context *context, const gemmepi__problem *problem,
                                          gemmepi__view *view, gemmepi__split *split) {
    const char *rule = gemmepi__bare_rule(problem);
    gemmepi__lt_question question;
    gemmepi_status status = GEMMEPI_OK;
    int alone;
    if (rule && split->has_product)
        return gemmepi__fail(GEMMEPI_UNSUPPORTED, "%s", rule);
    for (alone = 0; alone < 2; alone++) {
        *view = gemmepi__product_view(problem, alone, split);
        if (!split->has_product)
            return GEMMEPI_OK;
        if (split->to_workspace)
            split->product_bytes = gemmepi__bytes_for(gemmepi__times(problem->batch, view->batch_stride),
                                                      (size_t)(view->bits / 8));
        question = gemmepi__lt_question_of(
            context, problem, split->product_takes_c ? GEMMEPI__LT_BARE : GEMMEPI__LT_BARE_ALPHA_1);
        question.c = split->product_takes_c ? question.c : view;
        question.d = view;
        status = gemmepi__lt_build(&question, split->candidate, &split->product);
        if (status != GEMMEPI_UNSUPPORTED || !split->product_takes_c)
            break;
    }
    return status;
}

/* The bare product of converted operands. UNSUPPORTED where a conversion has nothing to give. */
static gemmepi_status gemmepi__build_converted(gemmepi_context *context, const gemmepi__problem *problem,
                                               gemmepi__view *view, gemmepi__split *split) {
    gemmepi__problem converted = *problem;
    gemmepi_status status = GEMMEPI_OK;
    int operand;
    if (problem->common == GEMMEPI_I8 || (problem->views[GEMMEPI__A].dtype == problem->common &&
                                          problem->views[GEMMEPI__B].dtype == problem->common))
        return GEMMEPI_UNSUPPORTED;
    if (gemmepi__scale_varies_along_k(problem, GEMMEPI__A) ||
        gemmepi__scale_varies_along_k(problem, GEMMEPI__B))
        return gemmepi__fail(GEMMEPI_UNSUPPORTED,
                             "scales that change along k cannot be taken out of a converted product");
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B && !status; operand++)
        if (problem->views[operand].dtype != problem->common)
            status = gemmepi__build_convert(context, problem, operand, problem->common,
                                            &converted.views[operand], &split->converts[operand]);
    /* the pass still multiplies by the operands' scales */
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B && !status; operand++)
        converted.views[operand].scale = problem->views[operand].scale;
    converted.flags &= ~GEMMEPI_FAST_ACCUMULATION;
    return status ? status : gemmepi__build_bare(context, &converted, view, split);
}

static gemmepi_status gemmepi__build_bare_or_converted(gemmepi_context *context,
                                                       const gemmepi__problem *problem, gemmepi__view *view,
                                                       gemmepi__split *split) {
    char reason[256];
    gemmepi_status status = gemmepi__build_bare(context, problem, view, split);
    if (status != GEMMEPI_UNSUPPORTED)
        return status;
    snprintf(reason, sizeof reason, "%.255s", gemmepi__error_text);
    split->product_bytes = 0;
    status = gemmepi__build_converted(context, problem, view, split);
    if (status != GEMMEPI_UNSUPPORTED)
        return status;
    return gemmepi__fail(GEMMEPI_UNSUPPORTED, "%s", reason);
}

/* The workspace divided, each part at a multiple of 256. */
typedef struct gemmepi__split_places {
    char *operands[2], *product, *pass_partials, *sum_partials, *lt;
} gemmepi__split_places;

static gemmepi__split_places gemmepi__divide_workspace(const gemmepi__split *split, char *workspace) {
    gemmepi__split_places places;
    places.operands[0] = workspace;
    places.operands[1] = gemmepi__past(places.operands[0], split->converts[0].bytes);
    places.product = gemmepi__past(places.operands[1], split->converts[1].bytes);
    places.pass_partials = gemmepi__past(places.product, split->product_bytes);
    places.sum_partials = gemmepi__past(places.pass_partials, split->pass.partial_bytes);
    places.lt = gemmepi__past(places.sum_partials, split->sums.partial_bytes);
    return places;
}

static size_t gemmepi__split_workspace(const gemmepi__split *split) {
    return gemmepi__round_up(split->converts[0].bytes, 256) +
           gemmepi__round_up(split->converts[1].bytes, 256) + gemmepi__round_up(split->product_bytes, 256) +
           gemmepi__round_up(split->pass.partial_bytes, 256) +
           gemmepi__round_up(split->sums.partial_bytes, 256) + split->product.workspace_size;
}

/* candidate->bare: cuBLASLt has refused the whole epilogue. */
static gemmepi_status gemmepi__split_build(gemmepi__matmul_plan *plan, const gemmepi__candidate *candidate) {
    gemmepi_context *context = plan->base.context;
    const gemmepi__problem *problem = &plan->problem;
    gemmepi__split *split = (gemmepi__split *)plan->built;
    gemmepi__problem rest = gemmepi__without_sums(problem);
    gemmepi__view view;
    gemmepi_status status = problem->k ? gemmepi__open_lt(context) : GEMMEPI_OK;
    if (status)
        return status;
    memset(split, 0, sizeof *split);
    split->candidate = candidate;
    split->has_product = problem->k != 0;
    split->bare =
        candidate->bare || !gemmepi__has(problem, GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) ||
        gemmepi__lt_rule(context, &rest) != NULL; /* without sums of an operand lt is cuBLASLt's epilogue */
    if (!split->bare) {
        gemmepi__lt_question question = gemmepi__lt_question_of(context, &rest, GEMMEPI__LT_WHOLE);
        status = gemmepi__lt_build(&question, candidate, &split->product);
        split->product_takes_c = 1;
        if (status == GEMMEPI_UNSUPPORTED)
            split->bare = 1;
    }
    if (split->bare) {
        status = gemmepi__build_bare_or_converted(context, problem, &view, split);
        if (!status)
            status = gemmepi__build_pass(context, problem, &view, 1, split->product_takes_c, &split->pass);
    }
    if (!status && gemmepi__has(problem, GEMMEPI__ANY_BGRAD))
        status = gemmepi__build_sums(context, problem, split->pass.params.epilogue.row_tiles, &split->sums);
    split->candidate = NULL;
    plan->algorithm = split->product.algorithm;
    plan->workspace_size = gemmepi__split_workspace(split);
    return status;
}

/* >>running */

static gemmepi_status gemmepi__run_product(const gemmepi_context *context, const gemmepi__split *split,
                                           const gemmepi__arguments *arguments,
                                           const gemmepi__split_places *places, void *product,
                                           gemmepi_stream stream) {
    gemmepi__lt_call call = gemmepi__lt_call_of(arguments, places->lt);
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < 2 && !status; i++)
        if (split->converts[i].launch.function)
            status = gemmepi__run_convert(context, &split->converts[i], arguments->pointers[i],
                                          places->operands[i], stream);
    if (status)
        return status;
    if (split->converts[GEMMEPI__A].launch.function)
        call.a = places->operands[GEMMEPI__A];
    if (split->converts[GEMMEPI__B].launch.function)
        call.b = places->operands[GEMMEPI__B];
    if (!split->product_takes_c) {
        call.alpha = 1;
        call.beta = 0;
    }
    call.d = product;
    return gemmepi__lt_run(context, &split->product, arguments, &call, stream);
}

static gemmepi_status gemmepi__split_run(const gemmepi__matmul_plan *plan,
                                         const gemmepi__arguments *arguments, char *workspace,
                                         gemmepi_stream stream) {
    const gemmepi_context *context = plan->base.context;
    const gemmepi__split *split = (const gemmepi__split *)plan->built;
    gemmepi__split_places places = gemmepi__divide_workspace(split, workspace);
    void *product = split->to_workspace ? (void *)places.product : arguments->pointers[GEMMEPI__D];
    gemmepi_status status = GEMMEPI_OK;
    if (split->has_product)
        status = gemmepi__run_product(context, split, arguments, &places, product, stream);
    if (!status && split->bare) {
        status = gemmepi__clear_amax(context, &plan->problem, arguments, stream);
        if (!status)
            status =
                gemmepi__run_pass(context, &split->pass, arguments, product, places.pass_partials, stream);
    }
    if (!status)
        status = gemmepi__run_sums(context, &split->sums, arguments, places.pass_partials,
                                   places.sum_partials, stream);
    return status;
}

static const char *gemmepi__split_not_for(const gemmepi__matmul_plan *plan,
                                          const gemmepi__arguments *arguments) {
    const gemmepi__split *split = (const gemmepi__split *)plan->built;
    return split->bare ? NULL : gemmepi__lt_not_for_run(plan->base.context, &split->product, arguments);
}

static void gemmepi__split_give_up(const gemmepi__matmul_plan *plan, gemmepi__candidates *candidates) {
    if (((const gemmepi__split *)plan->built)->bare)
        gemmepi__refuse_route(candidates, GEMMEPI_ROUTE_SPLIT, GEMMEPI__LT_REFUSED_RUN);
    gemmepi__lt_route_give_up(plan, candidates);
}

/* >>in words */

static void gemmepi__split_describe(const gemmepi__matmul_plan *plan, gemmepi_plan_details *details) {
    const gemmepi__split *split = (const gemmepi__split *)plan->built;
    if (split->has_product)
        gemmepi__lt_describe_algo(&plan->base.context->cublaslt, &split->product, details);
    else
        memcpy(details->kernel, split->pass.launch.name, sizeof details->kernel);
    details->launches =
        (split->converts[0].launch.function != NULL) + (split->converts[1].launch.function != NULL) +
        split->has_product + (split->pass.launch.function != NULL) +
        (split->bare ? gemmepi__amax_count(&plan->problem) : 0) + gemmepi__sums_launches(&split->sums);
}

static void gemmepi__split_explain(const gemmepi__matmul_plan *plan, const char *kernel,
                                   gemmepi__text *text) {
    const gemmepi__split *split = (const gemmepi__split *)plan->built;
    int operand;
    for (operand = GEMMEPI__A; operand <= GEMMEPI__B; operand++)
        if (split->converts[operand].launch.function)
            gemmepi__append(text, "  %s: %s to %s in workspace\n", split->converts[operand].launch.name,
                            gemmepi__argument_name(&plan->problem, operand),
                            gemmepi__dtype((gemmepi_dtype)plan->problem.common)->name);
    if (split->has_product)
        gemmepi__append(text, "  %s%s%s\n", kernel, split->bare ? ", bare" : ", with its epilogue",
                        split->to_workspace ? ", into workspace in the type of its sums" : "");
    if (split->has_product)
        gemmepi__lt_explain_product(text, &split->product);
    gemmepi__explain_pass(text, &split->pass.launch, "");
    gemmepi__explain_sums(text, &split->sums);
}

#endif
