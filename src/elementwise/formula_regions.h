/* The pointers of an element-wise formula's run, checked. */
#ifndef GEMMEPI_ELEMENTWISE_FORMULA_REGIONS_H
#define GEMMEPI_ELEMENTWISE_FORMULA_REGIONS_H

#include "../problem/formula_arguments.h"
#include "../problem/elementwise_formula.h"
#include "regions.h"

static const char *gpi__name_of_formula(const void *owner, const gpi__region *region, char room[128]) {
    return region->place == GPI__RESULT
               ? "args.y"
               : gpi__name_operand(((const gpi__formula_task *)owner)->placed.formula, region, room);
}

static int gpi__may_be_other(const gpi__formula_task *task, const gpi__region *region) {
    const gpi__formula_operand *operand = &task->placed.formula->operands[region->place];
    return gpi__is_tensor(region) && operand->kind == GEMMEPI_FULL && !operand->periods &&
           !task->is_halved[region->place];
}

static gemmepi_status gpi__judge_formula(const gpi__regions *regions, const gpi__region *output,
                                         const gpi__region *other) {
    const gpi__formula_task *task = (const gpi__formula_task *)regions->owner;
    const gpi__formula_operand *operands = task->placed.formula->operands;
    int64_t distance = (int64_t)((uintptr_t)other->pointer - (uintptr_t)output->pointer);
    distance += (gpi__is_tensor(other) ? task->offsets[other->place] : 0) -
                (gpi__is_tensor(output) ? task->offsets[output->place] : 0);
    return gpi__judge_tensors(
        regions, output, other, distance,
        gpi__may_be_other(task, output) && gpi__may_be_other(task, other) && !other->written &&
            operands[output->place].dtype == operands[other->place].dtype,
        "y or a FULL output may be exactly a FULL input (pointer, dtype, shape and strides), without periods, that "
        "is not read through left, right, even or odd");
}

/* The tensor of an operand, or y, its scale and its amax. */
static gemmepi_status gpi__add_tensor_regions(const gpi__formula_task *task, int i,
                                              const gpi__reach_of *reach, void *const *pointers,
                                              const gemmepi_elementwise_args *args, gpi__regions *regions) {
    const gpi__formula_operand *operand = &task->placed.formula->operands[i];
    const gpi__placed_operand *place = &task->placed.operands[i];
    int size = (int)gpi__dtype((gemmepi_dtype)operand->dtype)->size, number = (int)sizeof(float);
    gemmepi_status status = GEMMEPI_OK;
    if (task->has_tensor[i] && !operand->output && !operand->used)
        return GEMMEPI_OK; /* not looked at */
    if (!task->has_tensor[i] || reach->low != reach->high || pointers[i]) {
        gpi__add_tensor(regions, i, operand->output, pointers[i], reach);
        status = gpi__check_last(regions, task->has_tensor[i],
                                 size > task->alignment ? size : task->alignment, size);
    }
    if (status || i == GPI__RESULT)
        return status;
    gpi__add_region(regions, GPI__OF_SCALES, i, 0, args->operand_scales ? args->operand_scales[i] : NULL,
                    sizeof(float));
    status = gpi__check_last(regions, place->scale && operand->used, number, number);
    if (status)
        return status;
    gpi__add_region(regions, GPI__OF_AMAX, i, 1, args->operand_amax ? args->operand_amax[i] : NULL,
                    sizeof(float));
    return gpi__check_last(regions, place->amax && operand->used, number, number);
}

/* A number is read now: its memory is the host's. */
static gemmepi_status gpi__check_number(const gpi__formula_task *task, int i, const void *pointer) {
    const gpi__formula *formula = task->placed.formula;
    gpi__region region;
    const char *name;
    char room[128];
    double number;
    if (!formula->operands[i].used)
        return GEMMEPI_OK;
    if (pointer && (uintptr_t)pointer % sizeof(double) == 0 && formula->accumulator != GEMMEPI_I32)
        return GEMMEPI_OK;
    region.kind = GPI__OF_OPERANDS;
    region.place = (int16_t)i;
    name = gpi__name_of_formula(task, &region, room);
    GPI__INVALID_IF(!pointer, "%s is NULL; it is a NUMBER, so a double on the host", name);
    GPI__REFUSE_IF((uintptr_t)pointer % sizeof(double), GEMMEPI_MISALIGNED,
                   "%s is %p; it must be a multiple of 8 bytes (a double)", name, pointer);
    memcpy(&number, pointer, sizeof number);
    return gpi__check_whole(name + strlen("args."), number);
}

/* Of args what a formula does not take. */
static gemmepi_status gpi__check_args_beside_formula(const gemmepi_elementwise_args *args) {
    const char *name = args->scale                ? "scale"
                       : args->y_scale            ? "y_scale"
                       : args->amax               ? "amax"
                       : args->y_transposed_scale ? "y_transposed_scale"
                                                  : NULL;
    void *pointers[GPI__TENSORS];
    int t;
    gpi__list_pointers_of(args, pointers);
    for (t = 0; t < GPI__TENSORS; t++)
        if (pointers[t] && t != GPI__OUT_Y)
            name = gpi__tensor_names[t];
    GPI__INVALID_IF(args->weight < 0 || args->weight > 0 || args->weight != args->weight,
                    "args.weight is %g, but a formula has none: leave it 0", args->weight);
    GPI__INVALID_IF(name, "args.%s is given, but a formula has only y and operands: leave it NULL", name);
    return GEMMEPI_OK;
}

/* All rules for a run's pointers. pointers: by place, y's at RESULT. reach: likewise. */
static gemmepi_status gpi__check_formula_pointers(const gpi__formula_task *task, const gpi__reach_of *reach,
                                                  void *const *pointers, const gemmepi_elementwise_args *args,
                                                  gpi__regions *regions) {
    const gpi__formula *formula = task->placed.formula;
    gemmepi_status status = gpi__check_args_beside_formula(args);
    int i;
    regions->owner = task;
    regions->name = gpi__name_of_formula;
    regions->judge = gpi__judge_formula;
    regions->count = 0;
    for (i = gpi__next_place(formula, -1); i <= GPI__RESULT && !status; i = gpi__next_place(formula, i))
        status = formula->operands[i].kind == GEMMEPI_NUMBER
                     ? gpi__check_number(task, i, pointers[i])
                     : gpi__add_tensor_regions(task, i, &reach[i], pointers, args, regions);
    return status;
}

#endif
