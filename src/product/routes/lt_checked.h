/* What config.check has found of cuBLASLt where nobody has measured it: of each kind of its products, how far one was from the route plain.
   product/tuning/check.h looks; here is what it has found. */
#ifndef GEMMEPI_PRODUCT_ROUTES_LT_CHECKED_H
#define GEMMEPI_PRODUCT_ROUTES_LT_CHECKED_H

#include "lt_known.h"

/* Of a kind of products; the context keeps them, under its build_lock. */
typedef struct gpi__lt_verdict {
    double
        off; /* the largest error over what is allowed: above 1 the kind is not used; negative: it could not be checked */
} gpi__lt_verdict;

static void gpi__lt_append_operand(gpi__text *text, const gpi__view *view, int scale) {
    gpi__append(text, "%s%s%s%s", gpi__type(view->dtype), view->transposed ? " transposed" : "",
                scale ? " with scales of mode " : "",
                scale ? gpi__scale_mode_name((gemmepi_scale_mode)scale) : "");
}

/* Appends what a kind of products is called: the algorithm, the types, and what the epilogue does. A bare product has no scales but along k. */
static void gpi__lt_append_kind(gpi__text *text, const gpi__lt_question *q) {
    static const int others[] = {GPI__C, GPI__D, GPI__AUX, GPI__BIAS, GPI__BIAS_GRAD};
    const gpi__problem *problem = q->problem;
    const gpi__view *views = problem->views;
    char epilogue[256];
    gpi__text names = gpi__text_in(epilogue, sizeof epilogue);
    int is_whole = q->use == GPI__LT_WHOLE, operand;
    size_t i;
    gpi__append(text, "algorithm %d%s", q->algorithm->id, q->algorithm->split > 1 ? " with k divided" : "");
    for (operand = GPI__A; operand <= GPI__B; operand++) {
        gpi__append(text, operand == GPI__A ? ": " : " x ");
        gpi__lt_append_operand(text, &views[operand],
                               is_whole || gpi__scale_varies_along_k(problem, operand) ? views[operand].scale
                                                                                       : 0);
    }
    for (i = 0; i < GPI__COUNT(others); i++) {
        const gpi__view *view = others[i] == GPI__C ? q->c : others[i] == GPI__D ? q->d : &views[others[i]];
        if (!view->dtype || (!is_whole && others[i] > GPI__D))
            continue;
        gpi__append(text, ", %s ", gpi__operand_names[others[i]]);
        gpi__lt_append_operand(text, view, is_whole ? view->scale : 0);
    }
    gpi__append(text, "%s%s%s", problem->compute == GEMMEPI_COMPUTE_TF32 ? ", TF32" : "",
                problem->flags & GEMMEPI_FAST_ACCUMULATION ? ", fast" : "",
                problem->batch > 1 ? ", a batch" : "");
    if (is_whole && problem->epilogue != GEMMEPI_NONE) {
        gpi__append_epilogue(&names, (gemmepi_epilogue)problem->epilogue);
        gpi__append(text, ", %s", epilogue);
    }
}

#define GPI__LT_KIND_SIZE 384

/* The kind as a number; 0: the table has that tests look at it, or RELAXED admits whatever it is. */
static uint64_t gpi__lt_kind(const gpi__lt_question *question) {
    char words[GPI__LT_KIND_SIZE];
    gpi__text text = gpi__text_in(words, sizeof words);
    if (question->problem->flags & GEMMEPI_RELAXED || gpi__lt_known(question, GPI__LT_ASKED_SEEN))
        return 0;
    gpi__lt_append_kind(&text, question);
    return gpi__hash(words, strlen(words)) | 1;
}

/* What was found of the kind, or NULL. */
static const gpi__lt_verdict *gpi__lt_verdict_of(const gemmepi_context *context, uint64_t kind) {
    return kind ? (const gpi__lt_verdict *)gpi__map_find(&context->checks, &kind, sizeof kind) : NULL;
}

/* Whether config.check has found the algorithm wrong. */
static int gpi__lt_is_found_wrong(const gpi__lt_question *question) {
    const gpi__lt_verdict *verdict =
        question->context->check ? gpi__lt_verdict_of(question->context, gpi__lt_kind(question)) : NULL;
    return verdict && verdict->off > 1;
}

#endif
