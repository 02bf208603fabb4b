/* The pointers of a formula's operands in one run, checked like all others. */
#ifndef GEMMEPI_PROBLEM_FORMULA_ARGUMENTS_H
#define GEMMEPI_PROBLEM_FORMULA_ARGUMENTS_H

#include "arguments.h"

static const gpi__view gpi__one_f32 = {GEMMEPI_F32, 0, 32, 0, 4, 0, 1, 1, 1, 0, 4};

/* What the pointer of an operand's tensor is a multiple of: where it has rows or columns, as of matrices and vectors, what desc has
   promised. */
static int gpi__alignment_of_operand(const gpi__problem *problem, int i, const gpi__view *view) {
    return gpi__formula_with(problem, i)->placed.formula->operands[i].kind >= GEMMEPI_PER_ROW &&
                   problem->alignment > view->alignment
               ? problem->alignment
               : view->alignment;
}

/* Looks at what was listed last, of a formula: its pointer is there exactly where it is wanted, else it is not listed. */
static gemmepi_status gpi__check_last(gpi__regions *regions, int is_wanted, int alignment, int element) {
    /* what wants it, and does not */
    static const char *const whys[3][2] = {
        {"the formula has it", "the plan has no such tensor"},
        {"desc has a scale.mode for it", "desc has no scale.mode for it, or nothing depends on it"},
        {"desc has amax for it", "desc has no amax for it, or nothing depends on it"}};
    const gpi__region *region = &regions->list[regions->count - 1];
    const char *name;
    char room[128];
    if (is_wanted == (region->pointer != NULL) &&
        ((uintptr_t)region->pointer & (uintptr_t)(alignment - 1)) == 0) {
        regions->count -= !is_wanted;
        return GEMMEPI_OK;
    }
    name = regions->name(regions->owner, region, room);
    GPI__INVALID_IF(is_wanted != (region->pointer != NULL), "%s is %s, but %s", name,
                    is_wanted ? "NULL" : "given", whys[region->kind - GPI__OF_OPERANDS][!is_wanted]);
    return gpi__fail(GEMMEPI_MISALIGNED, "%s is %p; it must be a multiple of %d bytes (%s)", name,
                     region->pointer, alignment,
                     alignment > element ? "desc.alignment, 16 where it is 0" : "the size of an element");
}

/* Lists one of a formula's pointers, if it is there exactly where it is wanted. A NUMBER's is not listed: it is read now. */
static gemmepi_status gpi__list_pointer(const gpi__problem *problem, gpi__regions *regions, int kind, int i,
                                        const void *pointer, const gpi__view *view) {
    const gpi__placed_formula *placed = &gpi__formula_with(problem, i)->placed;
    const gpi__formula_operand *operand = &placed->formula->operands[i];
    const gpi__placed_operand *place = &placed->operands[i];
    int is_wanted = kind == GPI__OF_SCALES ? place->scale : kind == GPI__OF_AMAX ? place->amax : 1;
    int written = kind == GPI__OF_OPERANDS ? operand->output : kind == GPI__OF_AMAX;
    int alignment = kind == GPI__OF_OPERANDS ? gpi__alignment_of_operand(problem, i, view) : view->alignment;
    gpi__region *region;
    gemmepi_status status;
    char room[128];
    if (!pointer && (!is_wanted || view->bytes == 0))
        return GEMMEPI_OK;
    region = gpi__add_region(regions, kind, i, written, pointer, view->bytes);
    region->lies = view;
    status = gpi__check_last(regions, is_wanted, alignment, view->alignment);
    GPI__INVALID_IF(!status && region->end < region->begin, "%s is %p; no %lld bytes begin there",
                    gpi__name_region(problem, region, room), pointer, (long long)view->bytes);
    regions->count -= view == &gpi__one_f64;
    return status;
}

/* A number is read now: its memory is the host's. */
static gemmepi_status gpi__fetch_number(const gpi__problem *problem, gpi__arguments *arguments, int i) {
    char room[128];
    gpi__region region;
    memcpy(&arguments->numbers[i], arguments->operands[i], sizeof(double));
    if (problem->accumulator != GEMMEPI_I32)
        return GEMMEPI_OK;
    region.kind = GPI__OF_OPERANDS;
    region.place = (int16_t)i;
    return gpi__check_whole(gpi__name_region(problem, &region, room) + strlen("args."),
                            arguments->numbers[i]);
}

/* The tensor, the scale and the amax of an operand. An input that nothing depends on is not looked at. */
static gemmepi_status gpi__list_formula_operand(const gpi__problem *problem, gpi__arguments *arguments, int i,
                                                gpi__regions *regions) {
    const gpi__kept_formula *kept = gpi__formula_with(problem, i);
    int is_number = kept->placed.formula->operands[i].kind == GEMMEPI_NUMBER;
    gemmepi_status status = gpi__list_pointer(problem, regions, GPI__OF_OPERANDS, i, arguments->operands[i],
                                              is_number ? &gpi__one_f64 : &kept->views[i]);
    if (!status)
        status =
            gpi__list_pointer(problem, regions, GPI__OF_SCALES, i,
                              arguments->operand_scales ? arguments->operand_scales[i] : NULL, &gpi__one_f32);
    if (!status)
        status =
            gpi__list_pointer(problem, regions, GPI__OF_AMAX, i,
                              arguments->operand_amax ? arguments->operand_amax[i] : NULL, &gpi__one_f32);
    return status || !is_number ? status : gpi__fetch_number(problem, arguments, i);
}

/* Operands, scales and amax of all formulas, behind the product's own. */
static gemmepi_status gpi__list_formula_arguments(const gpi__problem *problem,
                                                  const gemmepi_matmul_args *args, gpi__arguments *arguments,
                                                  gpi__regions *regions) {
    int count = gpi__operands_of_formulas(problem), i;
    gemmepi_status status = GEMMEPI_OK;
    arguments->operands = args->operands;
    arguments->operand_scales = args->operand_scales;
    arguments->operand_amax = args->operand_amax;
    GPI__INVALID_IF(count && !args->operands,
                    "args.operands is NULL; desc.operand_count is %d, so it has as many pointers", count);
    for (i = 0; i < count && !status; i++)
        if (gpi__formula_with(problem, i))
            status = gpi__list_formula_operand(problem, arguments, i, regions);
    return status;
}

#endif
