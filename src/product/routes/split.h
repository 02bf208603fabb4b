/* The route split: a cuBLASLt product, then what cuBLASLt's epilogue cannot do, in one pass of ours, and sums.

   The product takes cuBLASLt's whole epilogue where only sums of an operand are left to do. Else it is bare, in the type
   of its sums: into D itself where D has that type and the pass reads nothing that may be D, else into workspace. So the
   result is rounded once. Operands that cuBLASLt does not multiply as they are (fp8 in other layouts, mixed types) are
   first converted, without loss, to the smallest type that holds both. */
#ifndef GEMMEPI_PRODUCT_ROUTES_SPLIT_H
#define GEMMEPI_PRODUCT_ROUTES_SPLIT_H

#include "../parts/operand_copy.h"
#include "lt.h"

typedef struct gpi__split {
    int has_product;          /* 0: k is 0 */
    int bare;                 /* the product leaves the epilogue to the pass */
    int to_workspace;         /* the bare product goes to workspace, else to D */
    int product_adds_c;       /* alpha and beta C are the product's, else the pass's */
    gpi__convert converts[2]; /* of A and B */
    gpi__lt_product product;
    gpi__pass pass;
    gpi__sums sums;
    size_t product_bytes;
    const gpi__candidate *candidate; /* while it is built */
} gpi__split;

/* >>building */

/* Whether C is kept from a product into the view. */
static int gpi__lt_leaves_c(const gemmepi_context *context, const gpi__problem *problem,
                            const gpi__view *view) {
    gpi__lt_question question = gpi__lt_question_of(context, problem, GPI__LT_BARE);
    question.d = view;
    return gpi__lt_known(&question, GPI__LT_ASKED_C) != NULL;
}

/* Where the bare product goes, and whether it takes alpha and beta C. alone: it must not. */
static gpi__view gpi__product_view(const gemmepi_context *context, const gpi__problem *problem, int alone,
                                   gpi__split *split) {
    gpi__view view = problem->views[GPI__D];
    const gpi__view *c = &problem->views[GPI__C];
    int dtype = gpi__product_dtype(problem);
    gpi__view in_workspace = gpi__product_in_workspace(problem, dtype);
    int reads_aside = gpi__has(problem, GEMMEPI_BACKWARD | GEMMEPI_RESIDUAL); /* what may be D */
    /* factors that the pass multiplies by come before beta C */
    int scaled = problem->views[GPI__A].scale || problem->views[GPI__B].scale;
    /* with alpha or beta cuBLASLt's I32 results are not modulo 2^32 */
    alone = alone || scaled || dtype == GEMMEPI_I32 || (problem->flags & GEMMEPI_DEVICE_SCALARS) ||
            gpi__lt_leaves_c(context, problem, &view) || gpi__lt_leaves_c(context, problem, &in_workspace);
    split->product_adds_c = c->dtype == dtype && dtype == problem->accumulator && !alone && problem->k != 0;
    reads_aside = reads_aside || (!split->product_adds_c && c->dtype == view.dtype);
    split->to_workspace = view.dtype != dtype || reads_aside || gpi__has(problem, GEMMEPI_GATED);
    return split->to_workspace ? in_workspace : view;
}

/* What keeps a bare product from cuBLASLt whatever its heuristic says, or NULL. */
static const char *gpi__bare_rule(const gpi__problem *problem) {
    const gpi__view *views = problem->views;
    int varies = gpi__scale_varies_along_k(problem, GPI__A) + gpi__scale_varies_along_k(problem, GPI__B);
    if (views[GPI__A].dtype != views[GPI__B].dtype && !gpi__is_fp8_product(problem))
        return "a and b differ in dtype";
    if (varies && (varies < 2 || !gpi__is_fp8_product(problem)))
        return "it multiplies with scales along k of both fp8 operands, or of none";
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
static gemmepi_status gpi__build_bare(gemmepi_context *context, const gpi__problem *problem, gpi__view *view,
                                      gpi__split *split) {
    const char *rule = gpi__bare_rule(problem);
    gpi__lt_question question;
    gemmepi_status status = GEMMEPI_OK;
    int alone;
    GPI__UNSUPPORTED_IF(rule && split->has_product, "%s", rule);
    for (alone = 0; alone < 2; alone++) {
        *view = gpi__product_view(context, problem, alone, split);
        if (!split->has_product)
            return GEMMEPI_OK;
        if (split->to_workspace)
            split->product_bytes =
                gpi__bytes_for(gpi__times(problem->batch, view->batch_stride), (size_t)(view->bits / 8));
        question = gpi__lt_question_of(context, problem,
                                       split->product_adds_c ? GPI__LT_BARE : GPI__LT_BARE_ALPHA_1);
        question.c = split->product_adds_c ? question.c : view;
        question.d = view;
        status = gpi__lt_build(&question, split->candidate, &split->product);
        if (status != GEMMEPI_UNSUPPORTED || !split->product_adds_c)
            break;
    }
    return status;
}

/* The bare product of converted operands. UNSUPPORTED where a conversion has nothing to give. */
static gemmepi_status gpi__build_converted(gemmepi_context *context, const gpi__problem *problem,
                                           gpi__view *view, gpi__split *split) {
    gpi__problem converted = *problem;
    gemmepi_status status = GEMMEPI_OK;
    int operand;
    if (problem->common == GEMMEPI_I8 ||
        (problem->views[GPI__A].dtype == problem->common && problem->views[GPI__B].dtype == problem->common))
        return GEMMEPI_UNSUPPORTED;
    GPI__UNSUPPORTED_IF(gpi__scale_varies_along_k(problem, GPI__A) ||
                            gpi__scale_varies_along_k(problem, GPI__B),
                        "scales that change along k are no factors of a converted product");
    for (operand = GPI__A; operand <= GPI__B && !status; operand++)
        if (problem->views[operand].dtype != problem->common)
            status = gpi__build_convert(context, problem, operand, problem->common, &converted.views[operand],
                                        &split->converts[operand]);
    /* the pass still multiplies by the operands' scales */
    for (operand = GPI__A; operand <= GPI__B && !status; operand++)
        converted.views[operand].scale = problem->views[operand].scale;
    converted.flags &= ~GEMMEPI_FAST_ACCUMULATION;
    return status ? status : gpi__build_bare(context, &converted, view, split);
}

static gemmepi_status gpi__build_bare_or_converted(gemmepi_context *context, const gpi__problem *problem,
                                                   gpi__view *view, gpi__split *split) {
    char reason[256];
    gemmepi_status status = gpi__build_bare(context, problem, view, split);
    if (status != GEMMEPI_UNSUPPORTED)
        return status;
    snprintf(reason, sizeof reason, "%.255s", gpi__error_text);
    split->product_bytes = 0;
    status = gpi__build_converted(context, problem, view, split);
    if (status != GEMMEPI_UNSUPPORTED)
        return status;
    return gpi__fail(GEMMEPI_UNSUPPORTED, "%s", reason);
}

/* The workspace divided, each part at a multiple of 256. */
typedef struct gpi__split_places {
    char *operands[2], *product, *sums, *lt;
} gpi__split_places;

static gpi__split_places gpi__divide_workspace(const gpi__split *split, char *workspace) {
    gpi__split_places places;
    places.operands[0] = workspace;
    places.operands[1] = gpi__past(places.operands[0], split->converts[0].bytes);
    places.product = gpi__past(places.operands[1], split->converts[1].bytes);
    places.sums = gpi__past(places.product, split->product_bytes);
    places.lt = gpi__past(places.sums, split->sums.bytes);
    return places;
}

/* candidate->bare: cuBLASLt has refused the whole epilogue. */
static gemmepi_status gpi__split_build(gpi__matmul_plan *plan, const gpi__candidate *candidate) {
    gemmepi_context *context = plan->base.context;
    const gpi__problem *problem = &plan->problem;
    gpi__split *split = (gpi__split *)plan->built;
    gpi__problem rest = gpi__without_sums(problem);
    gpi__view view;
    gemmepi_status status = problem->k ? gpi__open_lt(context) : GEMMEPI_OK;
    if (status)
        return status;
    memset(split, 0, sizeof *split);
    split->candidate = candidate;
    split->has_product = problem->k != 0;
    split->bare =
        candidate->bare || gpi__summed_operand(problem) < 0 ||
        gpi__lt_rule(context, &rest) != NULL; /* without sums of an operand lt is cuBLASLt's epilogue */
    if (!split->bare) {
        gpi__lt_question question = gpi__lt_question_of(context, &rest, GPI__LT_WHOLE);
        status = gpi__lt_build(&question, candidate, &split->product);
        split->product_adds_c = 1;
        if (status == GEMMEPI_UNSUPPORTED)
            split->bare = 1;
    }
    if (split->bare) {
        status = gpi__build_bare_or_converted(context, problem, &view, split);
        if (!status)
            status = gpi__build_pass(context, problem, &view, 1, split->product_adds_c, &split->pass);
    }
    if (!status)
        status = gpi__build_sums(context, problem, split->pass.params.epilogue.row_tiles, &split->sums);
    split->candidate = NULL;
    plan->algorithm = split->product.algorithm;
    plan->workspace_size = gpi__round_up(split->converts[0].bytes, 256) +
                           gpi__round_up(split->converts[1].bytes, 256) +
                           gpi__round_up(split->product_bytes, 256) + gpi__round_up(split->sums.bytes, 256) +
                           split->product.workspace_size;
    return status;
}

/* >>running */

static gemmepi_status gpi__run_product(const gemmepi_context *context, const gpi__split *split,
                                       const gpi__arguments *arguments, const gpi__split_places *places,
                                       void *product, gemmepi_stream stream) {
    gpi__lt_call call = gpi__lt_call_of(arguments, places->lt);
    gemmepi_status status = GEMMEPI_OK;
    int i;
    for (i = 0; i < 2 && !status; i++)
        if (split->converts[i].launch.function)
            status = gpi__run_convert(context, &split->converts[i], arguments->pointers[i],
                                      places->operands[i], stream);
    if (status)
        return status;
    if (split->converts[GPI__A].launch.function)
        call.a = places->operands[GPI__A];
    if (split->converts[GPI__B].launch.function)
        call.b = places->operands[GPI__B];
    if (!split->product_adds_c) {
        call.alpha = 1;
        call.beta = 0;
    }
    call.d = product;
    return gpi__lt_run(context, &split->product, arguments, &call, stream);
}

static gemmepi_status gpi__split_run(const gpi__matmul_plan *plan, const gpi__arguments *arguments,
                                     char *workspace, gemmepi_stream stream) {
    const gemmepi_context *context = plan->base.context;
    const gpi__split *split = (const gpi__split *)plan->built;
    gpi__split_places places = gpi__divide_workspace(split, workspace);
    void *product = split->to_workspace ? (void *)places.product : arguments->pointers[GPI__D];
    gemmepi_status status = GEMMEPI_OK;
    if (split->has_product)
        status = gpi__run_product(context, split, arguments, &places, product, stream);
    if (!status && split->bare) {
        status = gpi__clear_amax(context, &plan->problem, arguments, stream);
        if (!status)
            status =
                gpi__run_pass(context, &split->pass, &split->sums, arguments, product, places.sums, stream);
    }
    if (!status)
        status = gpi__run_sums(context, &split->sums, arguments, places.sums, stream);
    return status;
}

static const char *gpi__split_needs_other_plan(const gpi__matmul_plan *plan,
                                               const gpi__arguments *arguments) {
    const gpi__split *split = (const gpi__split *)plan->built;
    return split->bare ? NULL : gpi__lt_needs_other_plan(plan->base.context, &split->product, arguments);
}

static void gpi__split_give_up(const gpi__matmul_plan *plan, gpi__candidates *candidates) {
    if (((const gpi__split *)plan->built)->bare)
        gpi__refuse_route(candidates, GEMMEPI_ROUTE_SPLIT, GPI__LT_REFUSED_RUN);
    gpi__lt_route_give_up(plan, candidates);
}

/* >>in words */

static void gpi__split_describe(const gpi__matmul_plan *plan, gemmepi_plan_details *details) {
    const gpi__split *split = (const gpi__split *)plan->built;
    if (split->has_product)
        gpi__lt_describe_algo(&plan->base.context->cublaslt, &split->product, details);
    else
        memcpy(details->kernel, split->pass.launch.name, sizeof details->kernel);
    details->launches =
        (split->converts[0].launch.function != NULL) + (split->converts[1].launch.function != NULL) +
        split->has_product + (split->pass.launch.function != NULL) +
        (split->bare ? gpi__amax_count(&plan->problem) : 0) + gpi__sums_launches(&split->sums);
}

static void gpi__split_explain(const gpi__matmul_plan *plan, const char *kernel, gpi__text *text) {
    const gpi__split *split = (const gpi__split *)plan->built;
    int operand;
    for (operand = GPI__A; operand <= GPI__B; operand++)
        if (split->converts[operand].launch.function)
            gpi__append(text, "  %s: %s to %s in workspace\n", split->converts[operand].launch.name,
                        gpi__argument_name(&plan->problem, operand), gpi__type(plan->problem.common));
    if (split->has_product)
        gpi__append(text, "  %s%s%s\n", kernel, split->bare ? ", bare" : ", with its epilogue",
                    split->to_workspace ? ", into workspace in the type of its sums" : "");
    if (split->has_product)
        gpi__lt_explain_product(plan->base.context, text, &split->product);
    gpi__explain_pass(text, &split->pass.launch, "");
    gpi__explain_sums(text, &split->sums);
}

#endif
