/* What a product's run reads and writes, in the caller's words, and what of it may be D. */
#ifndef GEMMEPI_PROBLEM_PRODUCT_REGIONS_H
#define GEMMEPI_PROBLEM_PRODUCT_REGIONS_H

#include "../base/fault.h"
#include "../base/regions.h"
#include "problem.h"
#include "overlap.h"

/* The kinds of its regions: where each stands is its place among those of its kind. */
enum {
    GPI__OF_PRODUCT_ITSELF,
    GPI__OF_OPERANDS, /* of a formula, their scales and their amax */
    GPI__OF_SCALES,
    GPI__OF_AMAX,
    GPI__OF_SCALARS, /* alpha and beta on the device */
    GPI__OF_LISTS    /* of groups */
};

static const gpi__view gpi__one_f64 = {GEMMEPI_F64, 0, 64, 0, 8, 0, 1, 1, 1, 0, 8};

/* >>names */

/* The caller's name of an operand. */
static const char *gpi__argument_name(const gpi__problem *problem, int operand) {
    int is_a = operand == GPI__A || operand == GPI__SCALE_A;
    int is_b = operand == GPI__B || operand == GPI__SCALE_B;
    if (operand == GPI__ROW_FACTOR && problem->grouping.groups)
        return "weights";
    if (problem->exchanged && (is_a || is_b))
        operand += is_a ? 1 : -1;
    return gpi__operand_names[operand];
}

static const char *const gpi__scalar_names[] = {"alpha", "beta"};

static const char *gpi__name_operand(const gpi__formula *formula, const gpi__region *region, char room[128]) {
    static const char *const arrays[] = {"", "operands", "operand_scales", "operand_amax"};
    snprintf(room, 128, "args.%s[%d] (of %s)", arrays[region->kind], region->place,
             formula->names + formula->operands[region->place].name);
    return room;
}

static int gpi__is_of_formula(const gpi__region *region) {
    return region->kind >= GPI__OF_OPERANDS && region->kind <= GPI__OF_AMAX;
}

static const char *gpi__name_region(const void *owner, const gpi__region *region, char room[128]) {
    const gpi__problem *problem = (const gpi__problem *)owner;
    if (gpi__is_of_formula(region))
        return gpi__name_operand(gpi__formula_with(problem, region->place)->placed.formula, region, room);
    snprintf(room, 128, "args.%s",
             region->kind == GPI__OF_SCALARS ? gpi__scalar_names[region->place]
             : region->kind == GPI__OF_LISTS ? gpi__names_of_lists[region->place]
                                             : gpi__argument_name(problem, region->place));
    return room;
}

/* >>what may share */

/* D may be read where it is written: by C, the residual and a pre-activation, if they are the very same matrix. */
static int gpi__may_be_d(const gpi__problem *problem, int operand) {
    return operand == GPI__C || operand == GPI__RESIDUAL ||
           (operand == GPI__AUX && !problem->views[operand].written && problem->views[operand].bits != 1);
}

static int gpi__same_layout(const gpi__problem *problem, const gpi__view *p, const gpi__view *q) {
    return p->dtype == q->dtype && p->bits == q->bits && p->lines == q->lines && p->length == q->length &&
           (p->lines <= 1 || p->ld == q->ld) && (problem->batch <= 1 || p->batch_stride == q->batch_stride);
}

static int64_t gpi__bytes_of(const gpi__view *view, int64_t elements) {
    return gpi__bytes_for_bits(elements * view->bits);
}

/* A view in bytes, items of lines; `batch` items where they have a stride. */
static gpi__layout gpi__layout_of_view(const gpi__view *view, int64_t batch) {
    gpi__layout layout;
    layout.rank = 2;
    layout.size = gpi__bytes_of(view, view->length);
    layout.shape[0] = view->lines;
    layout.stride[0] = view->lines > 1 ? gpi__bytes_of(view, view->ld) : 0;
    layout.shape[1] = view->batch_stride ? batch : 1;
    layout.stride[1] = gpi__bytes_of(view, view->batch_stride);
    return layout;
}

/* Whether two views share a byte, q beginning `distance` bytes after p: GPI__APART and so on. */
static int gpi__views_share(const gpi__view *p, const gpi__view *q, int64_t batch, int64_t distance) {
    gpi__layout first = gpi__layout_of_view(p, batch), second = gpi__layout_of_view(q, batch);
    return gpi__layouts_share(&first, &second, distance);
}

/* What keeps an operand at D's address from being D. */
static gemmepi_status gpi__refuse_in_place(const gpi__problem *problem, int other) {
    const gpi__view *d = &problem->views[GPI__D], *view = &problem->views[other];
    const char *name = gpi__argument_name(problem, other);
    GPI__INVALID_IF(view->dtype != d->dtype,
                    "args.%s is args.d, but desc.%s.dtype is %s and d's %s: to be d it must be the same",
                    name, name, gpi__type(view->dtype), gpi__type(d->dtype));
    GPI__INVALID_IF(view->lines == d->lines && view->length == d->length && view->ld != d->ld,
                    "args.%s is args.d, but desc.%s.ld is %lld and d's %lld: to be d it must be the same",
                    name, name, (long long)view->ld, (long long)d->ld);
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "args.%s is args.d, but its %s differs: %lld x %lld and batch_stride %lld, d's %lld x %lld and "
        "%lld",
        name, view->lines == d->lines && view->length == d->length ? "batch_stride" : "shape",
        (long long)view->lines, (long long)view->length, (long long)view->batch_stride, (long long)d->lines,
        (long long)d->length, (long long)d->batch_stride);
}

/* Whether an input may be the output that begins where it does: D of those that may be it, and a FULL one of a formula's. */
static int gpi__may_be_in_place(const gpi__problem *problem, const gpi__region *output,
                                const gpi__region *other) {
    int is_d = output->kind == GPI__OF_PRODUCT_ITSELF && output->place == GPI__D;
    if (other->kind == GPI__OF_OPERANDS && gpi__formula_with(problem, other->place) != problem->formula)
        return 0;
    if (other->kind == GPI__OF_OPERANDS) {
        const gpi__formula_operand *operands = problem->formula->placed.formula->operands;
        int is_full = output->kind == GPI__OF_OPERANDS && operands[output->place].kind == GEMMEPI_FULL;
        return (is_d || is_full) && !other->written && operands[other->place].kind == GEMMEPI_FULL &&
               !operands[other->place].periods && !problem->formula->is_halved[other->place];
    }
    return is_d && other->kind == GPI__OF_PRODUCT_ITSELF && gpi__may_be_d(problem, other->place);
}

static gemmepi_status gpi__judge_product(const gpi__regions *regions, const gpi__region *output,
                                         const gpi__region *other) {
    const gpi__problem *problem = (const gpi__problem *)regions->owner;
    const gpi__view *p = (const gpi__view *)output->lies, *q = (const gpi__view *)other->lies;
    int of_formula = gpi__is_of_formula(output) || gpi__is_of_formula(other);
    int may_be = gpi__may_be_in_place(problem, output, other);
    int shares = q ? gpi__views_share(p, q, problem->batch, (int64_t)(other->begin - output->begin))
                   : (int)GPI__SHARED;
    if (!shares || (may_be && p && q && output->begin == other->begin && gpi__same_layout(problem, p, q)))
        return GEMMEPI_OK;
    if (may_be && !of_formula && output->begin == other->begin)
        return gpi__refuse_in_place(problem, other->place);
    return gpi__refuse_overlap(
        regions, output, other, gpi__if_undecided(shares),
        of_formula ? "; a FULL output may be exactly a FULL input of its width, dtype, ld and batch stride, "
                     "without periods, that is not read through left, right, even or odd"
        : may_be   ? "; it may be exactly d (pointer, dtype, ld, batch stride)"
                   : "");
}

#endif
