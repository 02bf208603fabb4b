/* The pointers of an element-wise formula's run, checked. */
#ifndef GEMMEPI_ELEMENTWISE_FORMULA_REGIONS_H
#define GEMMEPI_ELEMENTWISE_FORMULA_REGIONS_H

#include "../problem/arguments.h"
#include "../problem/elementwise_formula.h"
#include "reach.h"

/* What a run reads or writes. */
typedef enum gpi__region_role { GPI__TENSOR_REGION, GPI__SCALE_REGION, GPI__AMAX_REGION } gpi__region_role;

typedef struct gpi__tensor_region {
    gpi__region_role role;
    int place, written;
    uintptr_t base;
    const gpi__reach_of *reach;
} gpi__tensor_region;

typedef struct gpi__tensor_regions {
    int count;
    gpi__tensor_region list[3 * (GPI__RESULT + 1)];
} gpi__tensor_regions;

static const gpi__reach_of gpi__reach_of_f32 = {{0, 4, {0}, {0}}, 0, 4};

static void gpi__name_tensor_region(const gpi__formula *formula, gpi__region_role role, int place,
                                    char name[128]) {
    static const char *const arrays[] = {"operands", "operand_scales", "operand_amax"};
    if (place == GPI__RESULT)
        snprintf(name, 128, "args.y");
    else
        snprintf(name, 128, "args.%s[%d] (of %s)", arrays[role], place,
                 formula->names + formula->operands[place].name);
}

/* Adds a pointer, if it is there exactly where it is wanted. why: what wants it, and does not. */
static gemmepi_status gpi__add_tensor_region(const gpi__formula *formula, gpi__tensor_regions *regions,
                                             gpi__tensor_region region, int is_wanted, size_t alignment) {
    static const char *const whys[3][2] = {
        {"the formula has it, and its tensor an element", "the plan has no such tensor"},
        {"desc has a scale.mode for it", "desc has no scale.mode for it, or nothing depends on it"},
        {"desc has amax for it", "desc has no amax for it"}};
    char name[128];
    if (is_wanted == (region.base != 0) && region.base % alignment == 0) {
        if (is_wanted)
            regions->list[regions->count++] = region;
        return GEMMEPI_OK;
    }
    gpi__name_tensor_region(formula, region.role, region.place, name);
    if (is_wanted != (region.base != 0))
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is %s, but %s", name, is_wanted ? "NULL" : "given",
                         whys[region.role][!is_wanted]);
    return gpi__fail(GEMMEPI_MISALIGNED, "%s is %p; it must be a multiple of %d bytes (%s)", name,
                     (void *)region.base, (int)alignment,
                     region.role == GPI__TENSOR_REGION
                         ? "the size of an element, or desc.alignment, 16 by default"
                         : "the size of an element");
}

static gpi__tensor_region gpi__tensor_region_of(gpi__region_role role, int place, int written,
                                                const void *pointer, const gpi__reach_of *reach) {
    gpi__tensor_region region;
    region.role = role;
    region.place = place;
    region.written = written;
    region.base = (uintptr_t)pointer;
    region.reach = reach;
    return region;
}

/* The tensor of an operand, or y, its scale and its amax. */
static gemmepi_status gpi__add_tensor_regions(const gpi__formula_task *task, int i,
                                              const gpi__reach_of *reach, void *const *pointers,
                                              const gemmepi_elementwise_args *args,
                                              gpi__tensor_regions *regions) {
    const gpi__formula *formula = task->placed.formula;
    const gpi__formula_operand *operand = &formula->operands[i];
    const gpi__placed_operand *place = &task->placed.operands[i];
    size_t size = gpi__dtype((gemmepi_dtype)operand->dtype)->size;
    int is_empty = reach->low == reach->high;
    gemmepi_status status = GEMMEPI_OK;
    if (task->has_tensor[i] && !operand->output && !operand->used)
        return GEMMEPI_OK; /* not looked at */
    if (!task->has_tensor[i] || !is_empty || pointers[i])
        status = gpi__add_tensor_region(
            formula, regions,
            gpi__tensor_region_of(GPI__TENSOR_REGION, i, operand->output, pointers[i], reach),
            task->has_tensor[i], size > (size_t)task->alignment ? size : (size_t)task->alignment);
    if (status || i == GPI__RESULT)
        return status;
    status = gpi__add_tensor_region(
        formula, regions,
        gpi__tensor_region_of(GPI__SCALE_REGION, i, 0, args->operand_scales ? args->operand_scales[i] : NULL,
                              &gpi__reach_of_f32),
        place->scale && operand->used, sizeof(float));
    return status ? status
                  : gpi__add_tensor_region(
                        formula, regions,
                        gpi__tensor_region_of(GPI__AMAX_REGION, i, 1,
                                              args->operand_amax ? args->operand_amax[i] : NULL,
                                              &gpi__reach_of_f32),
                        place->amax && operand->used, sizeof(float));
}

/* A number is read now: its memory is the host's. */
static gemmepi_status gpi__check_number(const gpi__formula *formula, int i, const void *pointer) {
    char name[128];
    double number;
    if (!formula->operands[i].used)
        return GEMMEPI_OK;
    if (pointer && (uintptr_t)pointer % sizeof(double) == 0 && formula->accumulator != GEMMEPI_I32)
        return GEMMEPI_OK;
    gpi__name_tensor_region(formula, GPI__TENSOR_REGION, i, name);
    if (!pointer)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL; it is a NUMBER, so a double on the host",
                         name);
    if ((uintptr_t)pointer % sizeof(double))
        return gpi__fail(GEMMEPI_MISALIGNED, "%s is %p; it must be a multiple of 8 bytes (a double)", name,
                         pointer);
    memcpy(&number, pointer, sizeof number);
    return gpi__check_whole(name + strlen("args."), number);
}

/* Whether an input may be the output that begins where it does. */
static int gpi__tensor_is_in_place(const gpi__formula_task *task, const gpi__tensor_region *output,
                                   const gpi__tensor_region *other) {
    const gpi__formula_operand *p = &task->placed.formula->operands[output->place],
                               *q = &task->placed.formula->operands[other->place];
    return output->role == GPI__TENSOR_REGION && other->role == GPI__TENSOR_REGION && !other->written &&
           p->kind == GEMMEPI_FULL && q->kind == GEMMEPI_FULL && p->dtype == q->dtype &&
           p->width == q->width && !q->periods && !task->is_halved[other->place] &&
           output->base + (uintptr_t)task->offsets[output->place] ==
               other->base + (uintptr_t)task->offsets[other->place] &&
           memcmp(&task->strides.operands[output->place], &task->strides.operands[other->place],
                  sizeof(gpi__steps)) == 0;
}

static int64_t gpi__offset_of_region(const gpi__formula_task *task, const gpi__tensor_region *region) {
    return region->role == GPI__TENSOR_REGION ? task->offsets[region->place] : 0;
}

static gemmepi_status gpi__check_regions_apart(const gpi__formula_task *task,
                                               const gpi__tensor_region *output,
                                               const gpi__tensor_region *other) {
    const gpi__reach_of *p = output->reach, *q = other->reach;
    intptr_t p_base = (intptr_t)output->base, q_base = (intptr_t)other->base;
    char first[128], second[128];
    int shares;
    if (p_base + p->high <= q_base + q->low || q_base + q->high <= p_base + p->low || p->low == p->high ||
        q->low == q->high || gpi__tensor_is_in_place(task, output, other))
        return GEMMEPI_OK;
    shares = gpi__layouts_share(&p->layout, &q->layout,
                                q_base + gpi__offset_of_region(task, other) -
                                    (p_base + gpi__offset_of_region(task, output)));
    if (!shares)
        return GEMMEPI_OK;
    gpi__name_tensor_region(task->placed.formula, output->role, output->place, first);
    gpi__name_tensor_region(task->placed.formula, other->role, other->place, second);
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "%s (%p), which is written, overlaps %s (%p)%s; y or a FULL output may be exactly a FULL input (pointer, dtype, "
        "shape and strides), without periods, that is not read through left, right, even or odd",
        first, (void *)output->base, second, (void *)other->base, gpi__if_undecided(shares));
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
    int i, j;
    regions->count = 0;
    for (i = 0; i <= GPI__RESULT && !status; i++) {
        if (i >= formula->operand_count && i < GPI__RESULT)
            continue;
        status = formula->operands[i].kind == GEMMEPI_NUMBER
                     ? gpi__check_number(formula, i, pointers[i])
                     : gpi__add_tensor_regions(task, i, &reach[i], pointers, args, regions);
    }
    for (i = 0; i < regions->count; i++)
        for (j = i + 1; j < regions->count && !status; j++) {
            if (regions->list[i].written)
                status = gpi__check_regions_apart(task, &regions->list[i], &regions->list[j]);
            else if (regions->list[j].written)
                status = gpi__check_regions_apart(task, &regions->list[j], &regions->list[i]);
        }
    return status;
}

static gemmepi_status gpi__check_workspace_of_formula(const gpi__formula *formula,
                                                      const gpi__tensor_regions *regions,
                                                      const void *workspace, size_t size) {
    uintptr_t begin = (uintptr_t)workspace;
    char name[128];
    int i;
    for (i = 0; i < regions->count; i++) {
        const gpi__tensor_region *region = &regions->list[i];
        if (begin >= region->base + (uintptr_t)region->reach->high ||
            region->base + (uintptr_t)region->reach->low >= begin + size)
            continue;
        gpi__name_tensor_region(formula, region->role, region->place, name);
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.workspace (%p, %llu bytes used) overlaps %s (%p)",
                         workspace, (gpi__ull)size, name, (void *)region->base);
    }
    return GEMMEPI_OK;
}

#endif
