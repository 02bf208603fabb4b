/* The pointers of a formula's operands in one run, checked like all others. */
#ifndef GEMMEPI_PROBLEM_FORMULA_ARGUMENTS_H
#define GEMMEPI_PROBLEM_FORMULA_ARGUMENTS_H

#include "arguments.h"
#include "formula.h"

/* What a run reads or writes, of whatever kind: where the operand stands among those of its kind. */
typedef enum gpi__region_kind {
    GPI__OF_PRODUCT_ITSELF,
    GPI__OF_OPERANDS,
    GPI__OF_SCALES,
    GPI__OF_AMAX,
    GPI__OF_SCALARS
} gpi__region_kind;

typedef struct gpi__region {
    gpi__region_kind kind;
    int place, written;
    const void *pointer;
    const gpi__view *view;
} gpi__region;

typedef struct gpi__regions {
    int count;
    gpi__region list[GPI__OPERANDS + 3 * GPI__FORMULA_OPERANDS + 2];
} gpi__regions;

static void gpi__name_region(const gpi__problem *problem, const gpi__region *region, char *name,
                             size_t size) {
    static const char *const arrays[] = {"", "operands", "operand_scales", "operand_amax"};
    const gpi__formula *formula = problem->formula->placed.formula;
    if (region->kind == GPI__OF_PRODUCT_ITSELF || region->kind == GPI__OF_SCALARS)
        snprintf(name, size, "args.%s",
                 region->kind == GPI__OF_SCALARS ? gpi__scalar_names[region->place]
                                                 : gpi__argument_name(problem, region->place));
    else
        snprintf(name, size, "args.%s[%d] (of %s)", arrays[region->kind], region->place,
                 formula->names + formula->operands[region->place].name);
}

/* What its pointer is a multiple of: of what has rows or columns, as of matrices and vectors, what desc has promised. */
static int gpi__alignment_of_region(const gpi__problem *problem, const gpi__region *region) {
    const gpi__formula *formula = problem->formula->placed.formula;
    int alignment = region->view->alignment;
    return region->kind == GPI__OF_OPERANDS && formula->operands[region->place].kind >= GEMMEPI_PER_ROW &&
                   problem->alignment > alignment
               ? problem->alignment
               : alignment;
}

/* What is wrong with one of a formula's pointers. why: what wants it, and does not. */
static gemmepi_status gpi__refuse_region(const gpi__problem *problem, const gpi__region *region,
                                         int is_wanted, const char *const why[2]) {
    char name[128];
    int alignment = gpi__alignment_of_region(problem, region);
    gpi__name_region(problem, region, name, sizeof name);
    if (is_wanted != (region->pointer != NULL))
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is %s, but %s", name, is_wanted ? "NULL" : "given",
                         why[!is_wanted]);
    if ((uintptr_t)region->pointer > (uintptr_t)-1 - (uintptr_t)region->view->bytes)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is %p; no %lld bytes begin there", name,
                         region->pointer, (long long)region->view->bytes);
    return gpi__fail(GEMMEPI_MISALIGNED, "%s is %p; it must be a multiple of %d bytes (%s)", name,
                     region->pointer, alignment,
                     alignment > region->view->alignment ? "desc.alignment, 16 where it is 0"
                                                         : "the size of an element");
}

/* Adds one of a formula's pointers, if it is there exactly where it is wanted. */
static gemmepi_status gpi__add_region(const gpi__problem *problem, gpi__regions *regions, gpi__region region,
                                      int is_wanted, const char *const why[2]) {
    uintptr_t pointer = (uintptr_t)region.pointer;
    int alignment = gpi__alignment_of_region(problem, &region);
    if (!pointer && (!is_wanted || region.view->bytes == 0))
        return GEMMEPI_OK;
    if (!is_wanted || !pointer || pointer > (uintptr_t)-1 - (uintptr_t)region.view->bytes ||
        (pointer & (uintptr_t)(alignment - 1)))
        return gpi__refuse_region(problem, &region, is_wanted, why);
    regions->list[regions->count++] = region;
    return GEMMEPI_OK;
}

static gpi__region gpi__region_of(gpi__region_kind kind, int place, int written, const void *pointer,
                                  const gpi__view *view) {
    gpi__region region;
    region.kind = kind;
    region.place = place;
    region.written = written;
    region.pointer = pointer;
    region.view = view;
    return region;
}

static const gpi__view gpi__one_f32 = {GEMMEPI_F32, 0, 32, 0, 4, 0, 1, 1, 1, 0, 4};
static const gpi__view gpi__one_f64 = {GEMMEPI_F64, 0, 64, 0, 8, 0, 1, 1, 1, 0, 8};

/* The tensor, the scale and the amax of an operand. An input that nothing depends on is not looked at. */
static gemmepi_status gpi__convert_formula_operand(const gpi__problem *problem, gpi__arguments *arguments,
                                                   int i, gpi__regions *regions) {
    static const char *const whys[3][2] = {{"the formula has it", ""},
                                           {"desc has a scale.mode for it", "desc has no scale.mode for it"},
                                           {"desc has amax for it", "desc has no amax for it"}};
    const gpi__formula_operand *operand = &problem->formula->placed.formula->operands[i];
    const gpi__placed_operand *place = &problem->formula->placed.operands[i];
    const gpi__view *view = operand->kind == GEMMEPI_NUMBER ? &gpi__one_f64 : &problem->formula->views[i];
    gemmepi_status status;
    if (!operand->used)
        return GEMMEPI_OK;
    status = gpi__add_region(
        problem, regions, gpi__region_of(GPI__OF_OPERANDS, i, operand->output, arguments->operands[i], view),
        1, whys[0]);
    if (!status)
        status = gpi__add_region(
            problem, regions,
            gpi__region_of(GPI__OF_SCALES, i, 0,
                           arguments->operand_scales ? arguments->operand_scales[i] : NULL, &gpi__one_f32),
            place->scale, whys[1]);
    if (!status)
        status = gpi__add_region(problem, regions,
                                 gpi__region_of(GPI__OF_AMAX, i, 1,
                                                arguments->operand_amax ? arguments->operand_amax[i] : NULL,
                                                &gpi__one_f32),
                                 place->amax, whys[2]);
    return status;
}

/* A number is read now: its memory is the host's. */
static gemmepi_status gpi__fetch_number(const gpi__problem *problem, gpi__arguments *arguments, int i) {
    char name[128];
    gpi__region region = gpi__region_of(GPI__OF_OPERANDS, i, 0, NULL, &gpi__one_f64);
    memcpy(&arguments->numbers[i], arguments->operands[i], sizeof(double));
    if (problem->accumulator != GEMMEPI_I32)
        return GEMMEPI_OK;
    gpi__name_region(problem, &region, name, sizeof name);
    return gpi__check_whole(name + strlen("args."), arguments->numbers[i]);
}

/* Whether an input may be the output that begins where it does. */
static int gpi__may_be_in_place(const gpi__problem *problem, const gpi__region *output,
                                const gpi__region *other) {
    const gpi__placed_formula *placed = &problem->formula->placed;
    int kind = output->kind == GPI__OF_OPERANDS ? placed->formula->operands[output->place].kind
               : output->kind == GPI__OF_PRODUCT_ITSELF && output->place == GPI__D ? (int)GEMMEPI_FULL
                                                                                   : 0;
    return other->kind == GPI__OF_OPERANDS && !other->written && kind == GEMMEPI_FULL &&
           placed->formula->operands[other->place].kind == GEMMEPI_FULL &&
           !placed->formula->operands[other->place].periods && !problem->formula->is_halved[other->place] &&
           output->pointer == other->pointer && gpi__same_layout(problem, output->view, other->view);
}

static gemmepi_status gpi__check_regions(const gpi__problem *problem, const gpi__region *output,
                                         const gpi__region *other) {
    uintptr_t p = (uintptr_t)output->pointer, q = (uintptr_t)other->pointer;
    char first[128], second[128];
    int shares;
    if (p + (uintptr_t)output->view->bytes <= q || q + (uintptr_t)other->view->bytes <= p ||
        !output->view->bytes || !other->view->bytes || gpi__may_be_in_place(problem, output, other))
        return GEMMEPI_OK;
    shares = gpi__views_share(output->view, other->view, problem->batch, (int64_t)(q - p));
    if (!shares)
        return GEMMEPI_OK;
    gpi__name_region(problem, output, first, sizeof first);
    gpi__name_region(problem, other, second, sizeof second);
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "%s (%p, %lld bytes) overlaps %s (%p, %lld bytes)%s; a FULL output may be exactly a FULL input of its "
        "width, dtype, ld and batch stride, without periods, that is not read through left, right, even or odd",
        first, output->pointer, (long long)output->view->bytes, second, other->pointer,
        (long long)other->view->bytes, gpi__if_undecided(shares));
}

/* The product's own tensors and scalars, whose pointers have been checked, ahead of the formula's. */
static void gpi__add_own_regions(const gpi__problem *problem, const gpi__arguments *arguments,
                                 gpi__regions *regions) {
    int i;
    for (i = 0; i < problem->count; i++) {
        int operand = problem->list[i];
        if (arguments->pointers[operand] &&
            ((operand != GPI__C && operand != GPI__SCALE_C) || arguments->uses_c))
            regions->list[regions->count++] =
                gpi__region_of(GPI__OF_PRODUCT_ITSELF, operand, problem->views[operand].written,
                               arguments->pointers[operand], &problem->views[operand]);
    }
    for (i = 0; i < 2; i++)
        if (gpi__device_scalar(arguments, i))
            regions->list[regions->count++] =
                gpi__region_of(GPI__OF_SCALARS, i, 0, gpi__device_scalar(arguments, i), &gpi__one_f64);
}

/* Operands, scales and amax of the formula, after gpi__convert_arguments. */
static gemmepi_status gpi__convert_formula_arguments(const gpi__problem *problem,
                                                     const gemmepi_matmul_args *args,
                                                     gpi__arguments *arguments) {
    const gpi__formula *formula = problem->formula->placed.formula;
    gpi__regions regions;
    gemmepi_status status = GEMMEPI_OK;
    int i, j, own;
    regions.count = 0;
    arguments->operands = args->operands;
    arguments->operand_scales = args->operand_scales;
    arguments->operand_amax = args->operand_amax;
    if (!formula->operand_count)
        return GEMMEPI_OK;
    if (!args->operands)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                         "args.operands is NULL; desc.operand_count is %d, so it has as many pointers",
                         (int)formula->operand_count);
    gpi__add_own_regions(problem, arguments, &regions);
    own = regions.count;
    for (i = 0; i < formula->operand_count && !status; i++) {
        status = gpi__convert_formula_operand(problem, arguments, i, &regions);
        if (!status && formula->operands[i].kind == GEMMEPI_NUMBER && formula->operands[i].used)
            status = gpi__fetch_number(problem, arguments, i);
    }
    for (i = 0; i < regions.count; i++)
        for (j = i < own ? own : i + 1; j < regions.count && !status; j++) {
            if (regions.list[i].written)
                status = gpi__check_regions(problem, &regions.list[i], &regions.list[j]);
            else if (regions.list[j].written)
                status = gpi__check_regions(problem, &regions.list[j], &regions.list[i]);
        }
    return status;
}

/* >>once they are taken */

/* What lies on the device of the formula's operands, their scales and amax. */
static void gpi__list_regions(const gpi__problem *problem, const gpi__arguments *arguments,
                              gpi__regions *regions) {
    const gpi__placed_formula *placed = &problem->formula->placed;
    const gpi__formula *formula = placed->formula;
    int i;
    regions->count = 0;
    for (i = 0; i < formula->operand_count; i++) {
        const gpi__formula_operand *operand = &formula->operands[i];
        if (!operand->used || operand->kind == GEMMEPI_NUMBER)
            continue;
        regions->list[regions->count++] = gpi__region_of(GPI__OF_OPERANDS, i, operand->output,
                                                         arguments->operands[i], &problem->formula->views[i]);
        if (placed->operands[i].scale)
            regions->list[regions->count++] =
                gpi__region_of(GPI__OF_SCALES, i, 0, arguments->operand_scales[i], &gpi__one_f32);
        if (placed->operands[i].amax)
            regions->list[regions->count++] =
                gpi__region_of(GPI__OF_AMAX, i, 1, arguments->operand_amax[i], &gpi__one_f32);
    }
}

static gemmepi_status gpi__check_formula_workspace(const gpi__problem *problem,
                                                   const gpi__arguments *arguments, const void *workspace,
                                                   size_t needed) {
    uintptr_t begin = (uintptr_t)workspace;
    gpi__regions regions;
    char name[128];
    int i;
    gpi__list_regions(problem, arguments, &regions);
    for (i = 0; i < regions.count; i++) {
        const gpi__region *region = &regions.list[i];
        uintptr_t other = (uintptr_t)region->pointer;
        if (!other || other >= begin + needed || begin >= other + (uintptr_t)region->view->bytes)
            continue;
        gpi__name_region(problem, region, name, sizeof name);
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.workspace (%p, %llu bytes used) overlaps %s (%p)",
                         workspace, (gpi__ull)needed, name, region->pointer);
    }
    return GEMMEPI_OK;
}

#endif
