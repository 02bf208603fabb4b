/* The pointers of an element-wise formula's run, checked. */
#ifndef GEMMEPI_ELEMENTWISE_FORMULA_REGIONS_H
#define GEMMEPI_ELEMENTWISE_FORMULA_REGIONS_H

#include "../problem/arguments.h"
#include "../problem/elementwise_formula.h"
#include "regions.h"

static const gpi__reach_of gpi__reach_of_f32 = {{0, 4, {0}, {0}}, 0, 4};

/* Adds a pointer, if it is there exactly where it is wanted. why: what wants it, and does not. */
static gemmepi_status gpi__add_tensor_region(gpi__tensor_regions *regions, const gpi__tensor_region *region,
                                             int is_wanted, size_t alignment, const char *const why[2]) {
    char name[128];
    if (is_wanted == (region->base != 0) && region->base % alignment == 0) {
        if (is_wanted)
            regions->list[regions->count++] = *region;
        return GEMMEPI_OK;
    }
    gpi__name_tensor_region(region, name);
    if (is_wanted != (region->base != 0))
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is %s, but %s", name, is_wanted ? "NULL" : "given",
                         why[!is_wanted]);
    return gpi__fail(GEMMEPI_MISALIGNED, "%s is %p; it must be a multiple of %d bytes (%s)", name,
                     (void *)region->base, (int)alignment,
                     region->dtype ? "the size of an element, or desc.alignment, 16 by default"
                                   : "the size of an element");
}

/* An operand, or y, without its pointer. */
static gpi__tensor_region gpi__region_of_tensor(const gpi__formula_task *task, int i,
                                                const gpi__reach_of *reach) {
    const gpi__formula *formula = task->placed.formula;
    const gpi__formula_operand *operand = &formula->operands[i];
    gpi__tensor_region region;
    region.name = i == GPI__RESULT ? "args.y" : "args.operands";
    region.of = i == GPI__RESULT ? NULL : formula->names + operand->name;
    region.place = i;
    region.dtype = operand->dtype;
    region.written = operand->output;
    region.may_be_other = operand->kind == GEMMEPI_FULL && !operand->periods && !task->is_halved[i];
    region.base = 0;
    region.offset = task->offsets[i];
    region.reach = reach;
    return region;
}

/* An operand's scale or amax, which is written. */
static gemmepi_status gpi__add_number(gpi__tensor_regions *regions, const gpi__tensor_region *of, int is_amax,
                                      int is_wanted, const void *pointer) {
    static const char *const whys[2][2] = {
        {"desc has a scale.mode for it", "desc has no scale.mode for it, or nothing depends on it"},
        {"desc has amax for it", "desc has no amax for it"}};
    gpi__tensor_region region = *of;
    region.name = is_amax ? "args.operand_amax" : "args.operand_scales";
    region.dtype = region.may_be_other = 0;
    region.written = is_amax;
    region.base = (uintptr_t)pointer;
    region.offset = 0;
    region.reach = &gpi__reach_of_f32;
    return gpi__add_tensor_region(regions, &region, is_wanted, sizeof(float), whys[is_amax]);
}

/* The tensor of an operand, or y, its scale and its amax. */
static gemmepi_status gpi__add_tensor_regions(const gpi__formula_task *task, int i,
                                              const gpi__reach_of *reach, void *const *pointers,
                                              const gemmepi_elementwise_args *args,
                                              gpi__tensor_regions *regions) {
    static const char *const why[2] = {"the formula has it, and its tensor an element",
                                       "the plan has no such tensor"};
    const gpi__formula_operand *operand = &task->placed.formula->operands[i];
    const gpi__placed_operand *place = &task->placed.operands[i];
    size_t size = gpi__dtype((gemmepi_dtype)operand->dtype)->size;
    gpi__tensor_region region = gpi__region_of_tensor(task, i, reach);
    gemmepi_status status = GEMMEPI_OK;
    if (task->has_tensor[i] && !operand->output && !operand->used)
        return GEMMEPI_OK; /* not looked at */
    region.base = (uintptr_t)pointers[i];
    if (!task->has_tensor[i] || reach->low != reach->high || pointers[i])
        status = gpi__add_tensor_region(regions, &region, task->has_tensor[i],
                                        size > (size_t)task->alignment ? size : (size_t)task->alignment, why);
    if (status || i == GPI__RESULT)
        return status;
    status = gpi__add_number(regions, &region, 0, place->scale && operand->used,
                             args->operand_scales ? args->operand_scales[i] : NULL);
    return status ? status
                  : gpi__add_number(regions, &region, 1, place->amax && operand->used,
                                    args->operand_amax ? args->operand_amax[i] : NULL);
}

/* A number is read now: its memory is the host's. */
static gemmepi_status gpi__check_number(const gpi__formula_task *task, int i, const void *pointer) {
    const gpi__formula *formula = task->placed.formula;
    gpi__tensor_region region = gpi__region_of_tensor(task, i, NULL);
    char name[128];
    double number;
    if (!formula->operands[i].used)
        return GEMMEPI_OK;
    if (pointer && (uintptr_t)pointer % sizeof(double) == 0 && formula->accumulator != GEMMEPI_I32)
        return GEMMEPI_OK;
    gpi__name_tensor_region(&region, name);
    if (!pointer)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL; it is a NUMBER, so a double on the host",
                         name);
    if ((uintptr_t)pointer % sizeof(double))
        return gpi__fail(GEMMEPI_MISALIGNED, "%s is %p; it must be a multiple of 8 bytes (a double)", name,
                         pointer);
    memcpy(&number, pointer, sizeof number);
    return gpi__check_whole(name + strlen("args."), number);
}

/* Of args what a formula does not take. */
static gemmepi_status gpi__check_args_beside_formula(const gemmepi_elementwise_args *args) {
    const char *name = args->a                    ? "a"
                       : args->b                  ? "b"
                       : args->w                  ? "w"
                       : args->dy                 ? "dy"
                       : args->da                 ? "da"
                       : args->db                 ? "db"
                       : args->dw                 ? "dw"
                       : args->scale              ? "scale"
                       : args->y_scale            ? "y_scale"
                       : args->amax               ? "amax"
                       : args->y_transposed       ? "y_transposed"
                       : args->y_transposed_scale ? "y_transposed_scale"
                                                  : NULL;
    if (args->weight < 0 || args->weight > 0 || args->weight != args->weight)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.weight is %g, but a formula has none: leave it 0",
                         args->weight);
    if (!name)
        return GEMMEPI_OK;
    return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                     "args.%s is given, but a formula has y and operands alone: leave it NULL", name);
}

/* All rules for a run's pointers. pointers: by place, y's at RESULT. reach: likewise. */
static gemmepi_status gpi__check_formula_pointers(const gpi__formula_task *task, const gpi__reach_of *reach,
                                                  void *const *pointers, const gemmepi_elementwise_args *args,
                                                  gpi__tensor_regions *regions) {
    const gpi__formula *formula = task->placed.formula;
    gemmepi_status status = gpi__check_args_beside_formula(args);
    int i;
    regions->count = 0;
    regions->rule =
        "y or a FULL output may be exactly a FULL input (pointer, dtype, shape and strides), without periods, that "
        "is not read through left, right, even or odd";
    for (i = 0; i <= GPI__RESULT && !status; i++) {
        if (i >= formula->operand_count && i < GPI__RESULT)
            continue;
        status = formula->operands[i].kind == GEMMEPI_NUMBER
                     ? gpi__check_number(task, i, pointers[i])
                     : gpi__add_tensor_regions(task, i, &reach[i], pointers, args, regions);
    }
    return status ? status : gpi__check_tensor_regions(regions);
}

#endif
