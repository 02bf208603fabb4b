/* The pointers of a run of an element-wise operation: whether they are there, aligned and apart. */
#ifndef GEMMEPI_ELEMENTWISE_POINTERS_H
#define GEMMEPI_ELEMENTWISE_POINTERS_H

#include "plan.h"

/* What a run writes or reads beside tensors. */
typedef struct gpi__numbers_row {
    const char *name, *flag_name;
    uint64_t flag;
} gpi__numbers_row;

static const gpi__numbers_row gpi__numbers[] = {{"args.scale", "CAST_SCALE", GEMMEPI_CAST_SCALE},
                                                {"args.y_scale", "CAST_Y_SCALE", GEMMEPI_CAST_Y_SCALE},
                                                {"args.amax", "CAST_AMAX", GEMMEPI_CAST_AMAX},
                                                {"args.y_transposed_scale", "", 0}};

static const char *gpi__name_of_operation(const void *owner, const gpi__region *region, char room[128]) {
    const gpi__task *task = (const gpi__task *)owner;
    (void)room;
    return gpi__is_tensor(region) ? gpi__tensor_names[task->operands[region->place].pointer]
                                  : gpi__numbers[region->place].name;
}

static gemmepi_status gpi__judge_operation(const gpi__regions *regions, const gpi__region *output,
                                           const gpi__region *other) {
    const gpi__task *task = (const gpi__task *)regions->owner;
    int64_t distance = (int64_t)((uintptr_t)other->pointer - (uintptr_t)output->pointer);
    const gpi__operand *p = gpi__is_tensor(output) ? &task->operands[output->place] : NULL;
    const gpi__operand *q = gpi__is_tensor(other) ? &task->operands[other->place] : NULL;
    distance += (q ? q->offset : 0) - (p ? p->offset : 0);
    return gpi__judge_tensors(
        regions, output, other, distance,
        p && q && !other->written && !p->is_sum && !q->is_sum && p->dtype == q->dtype &&
            !gpi__is_scaled(task),
        "an output may only be exactly an input (the same pointer, dtype, shape and strides), and no sum or cast "
        "with scales of rows or blocks, or to both layouts, may");
}

/* Adds so many numbers, if they are given. */
static gemmepi_status gpi__add_numbers(gpi__regions *regions, int place, const void *pointer, int64_t count,
                                       size_t size) {
    GPI__REFUSE_IF((uintptr_t)pointer % size, GEMMEPI_MISALIGNED,
                   "%s is %p; it must be a multiple of %d bytes", gpi__numbers[place].name, pointer,
                   (int)size);
    if (pointer)
        gpi__add_region(regions, GPI__OF_SCALES, place, place > 0, pointer, count * (int64_t)size);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_numbers(const gpi__task *task, const gemmepi_elementwise_args *args,
                                         gpi__regions *regions) {
    const void *given[3];
    gemmepi_status status = GEMMEPI_OK;
    int i;
    given[0] = args->scale;
    given[1] = args->y_scale;
    given[2] = args->amax;
    for (i = 0; i < 3 && !status; i++) {
        const gpi__numbers_row *row = &gpi__numbers[i];
        GPI__INVALID_IF(((task->flags & row->flag) != 0) != (given[i] != NULL),
                        "%s is %s, but flags has %s %s", row->name, given[i] ? "given" : "NULL",
                        given[i] ? "no" : "the flag", row->flag_name);
        status = gpi__add_numbers(regions, i, given[i], gpi__scale_count(task, 0),
                                  i == 2 ? gpi__amax_size(task) : sizeof(float));
    }
    GPI__INVALID_IF(!status && gpi__turned_has_scales(task) != (args->y_transposed_scale != NULL),
                    "args.y_transposed_scale is %s",
                    args->y_transposed_scale
                        ? "given; it goes with y_transposed and the modes VECTOR_128 and BLOCK_128"
                        : "NULL, but y_transposed has scales of its own, which go there");
    return status ? status
                  : gpi__add_numbers(regions, 3, args->y_transposed_scale, gpi__scale_count(task, 1),
                                     sizeof(float));
}

static gemmepi_status gpi__check_tensors(const gpi__elementwise_plan *plan, int one_shot,
                                         void *const *pointers, gpi__regions *regions) {
    const gpi__task *task = &plan->task;
    int t;
    for (t = 0; t < GPI__TENSORS; t++) {
        int given = (int)(task->given >> t & 1), size = gpi__size_of(task->operands[t].dtype);
        int alignment = size > task->alignment ? size : task->alignment;
        GPI__INVALID_IF(!given && pointers[t], "args.%s is given, but the plan has no such tensor",
                        gpi__tensor_names[t]);
        if (gpi__task_has(task, t))
            gpi__add_tensor(regions, t, t >= GPI__OUT_Y, pointers[task->operands[t].pointer],
                            &plan->reach[t]);
        if (!given)
            continue;
        GPI__INVALID_IF(!pointers[t] && plan->reach[t].low != plan->reach[t].high,
                        one_shot ? "%s.data is NULL, and so is args.%s"
                                 : "args.%s is NULL; a plan's run does not use a tensor's own data",
                        gpi__tensor_names[t], gpi__tensor_names[t]);
        GPI__REFUSE_IF((uintptr_t)pointers[t] % (uintptr_t)alignment, GEMMEPI_MISALIGNED,
                       "the data of %s is %p; it must be a multiple of %d bytes (%s)", gpi__tensor_names[t],
                       pointers[t], alignment,
                       alignment == size ? "the size of an element" : "desc.alignment, 16 by default");
    }
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_weight(const gpi__task *task, double weight) {
    GPI__INVALID_IF(weight != 0 && gpi__task_has(task, GPI__IN_W),
                    "args.weight is %g, and w is given; leave one of them out", weight);
    GPI__INVALID_IF(weight != 0 && task->operation != GEMMEPI_OP_LERP &&
                        task->operation != GEMMEPI_OP_LERP_BACKWARD,
                    "args.weight is %g; the operation %s has none: leave it 0", weight,
                    gpi__operation(task->operation)->name);
    GPI__INVALID_IF(task->accumulator != GEMMEPI_F64 && fabs(weight) > FLT_MAX && fabs(weight) <= DBL_MAX,
                    "args.weight is %g; the largest F32 is 3.4e38", weight);
    return GEMMEPI_OK;
}

/* All rules for a run's pointers. one_shot: as gpi__run_matmul's. */
static gemmepi_status gpi__check_pointers(const gpi__elementwise_plan *plan,
                                          const gemmepi_elementwise_args *args, int one_shot,
                                          void *const *pointers, gpi__regions *regions) {
    gemmepi_status status;
    if (GPI__FORMULA(plan))
        return gpi__check_formula_pointers(&plan->formula->task, plan->formula->reach, pointers, args,
                                           regions);
    regions->owner = &plan->task;
    regions->name = gpi__name_of_operation;
    regions->judge = gpi__judge_operation;
    regions->count = 0;
    status = gpi__check_weight(&plan->task, args->weight);
    if (!status)
        status = gpi__check_tensors(plan, one_shot, pointers, regions);
    if (!status && (plan->task.operation == GEMMEPI_OP_CAST || args->scale || args->y_scale || args->amax ||
                    args->y_transposed_scale))
        status = gpi__check_numbers(&plan->task, args, regions);
    return status;
}

#endif
