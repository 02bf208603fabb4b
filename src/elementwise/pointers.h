/* The pointers of a run of an element-wise operation: whether they are there, aligned and apart. */
#ifndef GEMMEPI_ELEMENTWISE_POINTERS_H
#define GEMMEPI_ELEMENTWISE_POINTERS_H

#include "../device/pointers.h"
#include "plan.h"

/* What a run writes or reads beside tensors. */
typedef struct gpi__numbers_row {
    const char *name, *flag_name;
    uint64_t flag;
} gpi__numbers_row;

static const gpi__numbers_row gpi__numbers[] = {{"scale", "CAST_SCALE", GEMMEPI_CAST_SCALE},
                                                {"y_scale", "CAST_Y_SCALE", GEMMEPI_CAST_Y_SCALE},
                                                {"amax", "CAST_AMAX", GEMMEPI_CAST_AMAX}};

/* y_transposed_scale: where it is given, and nothing else lies. */
static gemmepi_status gpi__check_turned_scale(const gpi__elementwise_plan *plan,
                                              const gemmepi_elementwise_args *args) {
    const gpi__task *task = &plan->task;
    const void *scale = args->y_transposed_scale, *tensors[3];
    static const int which[] = {GPI__IN_A, GPI__OUT_Y, GPI__OUT_Y_TRANSPOSED};
    uintptr_t begin = (uintptr_t)scale, end;
    uintptr_t count = (uintptr_t)gpi__scale_count(task, 0);
    int i;
    if (gpi__turned_has_scales(task) != (scale != NULL))
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.y_transposed_scale is %s",
                         scale ? "given; it goes with y_transposed and the modes VECTOR_128 and BLOCK_128"
                               : "NULL, but y_transposed has scales of its own, which go there");
    if (!scale)
        return GEMMEPI_OK;
    end = begin + (uintptr_t)gpi__scale_count(task, 1) * sizeof(float);
    if (begin % sizeof(float))
        return gpi__fail(GEMMEPI_MISALIGNED,
                         "args.y_transposed_scale is %p; it must be a multiple of 4 bytes", scale);
    tensors[0] = args->a, tensors[1] = args->y, tensors[2] = args->y_transposed;
    for (i = 0; i < 3; i++) {
        uintptr_t base = (uintptr_t)tensors[i];
        if (begin < base + (uintptr_t)plan->reach[which[i]].high &&
            base + (uintptr_t)plan->reach[which[i]].low < end)
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.y_transposed_scale (%p, %llu bytes) overlaps %s",
                             scale, (gpi__ull)(end - begin), gpi__tensor_names[which[i]]);
    }
    if (begin < (uintptr_t)args->y_scale + count * sizeof(float) && (uintptr_t)args->y_scale < end)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.y_transposed_scale (%p) overlaps args.y_scale (%p)",
                         scale, (void *)args->y_scale);
    if (args->amax && begin < (uintptr_t)args->amax + count * gpi__amax_size(task) &&
        (uintptr_t)args->amax < end)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.y_transposed_scale (%p) overlaps args.amax (%p)",
                         scale, args->amax);
    return GEMMEPI_OK;
}

static gemmepi_status gpi__check_numbers(const gpi__elementwise_plan *plan,
                                         const gemmepi_elementwise_args *args) {
    const gpi__task *task = &plan->task;
    const void *given[3];
    int64_t count = gpi__scale_count(task, 0);
    size_t i;
    int t;
    given[0] = args->scale;
    given[1] = args->y_scale;
    given[2] = args->amax;
    for (i = 0; i < GPI__COUNT(gpi__numbers); i++) {
        const gpi__numbers_row *row = &gpi__numbers[i];
        size_t size = i == 2 ? gpi__amax_size(task) : sizeof(float);
        uintptr_t begin = (uintptr_t)given[i], end = begin + (uintptr_t)count * size;
        if (((task->flags & row->flag) != 0) != (given[i] != NULL))
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is %s, but flags has %s %s", row->name,
                             given[i] ? "given" : "NULL", given[i] ? "no" : "the flag", row->flag_name);
        if (begin % size)
            return gpi__fail(GEMMEPI_MISALIGNED, "args.%s is %p; it must be a multiple of %d bytes",
                             row->name, given[i], (int)size);
        /* a, y and y_transposed */
        for (t = GPI__IN_A; given[i] && t < GPI__TENSORS; t += GPI__OUT_Y - GPI__IN_A) {
            uintptr_t base = (uintptr_t)(t == GPI__IN_A    ? args->a
                                         : t == GPI__OUT_Y ? args->y
                                                           : args->y_transposed);
            if ((i > 0 || t != GPI__IN_A) && begin < base + (uintptr_t)plan->reach[t].high &&
                base + (uintptr_t)plan->reach[t].low < end)
                return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s (%p, %llu bytes) overlaps %s", row->name,
                                 given[i], (gpi__ull)(end - begin), gpi__tensor_names[t]);
        }
        if (i < 2 && given[i] && given[2] &&
            begin < (uintptr_t)given[2] + (uintptr_t)count * gpi__amax_size(task) &&
            (uintptr_t)given[2] < end)
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s (%p) overlaps args.amax (%p)", row->name,
                             given[i], given[2]);
    }
    return gpi__check_turned_scale(plan, args);
}

/* In place: the very same elements in the same order. */
static int gpi__is_in_place(const gpi__task *task, int output, int input) {
    const gpi__operand *p = &task->operands[output], *q = &task->operands[input];
    return input < GPI__OUT_Y && !p->is_sum && p->dtype == q->dtype && !gpi__is_scaled(task) &&
           memcmp(p->stride, q->stride, sizeof p->stride) == 0;
}

static gemmepi_status gpi__check_apart(const gpi__elementwise_plan *plan, void *const *pointers, int output,
                                       int other) {
    const gpi__reach_of *p = &plan->reach[output], *q = &plan->reach[other];
    intptr_t p_base = (intptr_t)pointers[plan->task.operands[output].pointer];
    intptr_t q_base = (intptr_t)pointers[plan->task.operands[other].pointer];
    int64_t distance;
    int shares;
    if (p_base + p->high <= q_base + q->low || q_base + q->high <= p_base + p->low || p->low == p->high ||
        q->low == q->high)
        return GEMMEPI_OK;
    distance = q_base + plan->task.operands[other].offset - (p_base + plan->task.operands[output].offset);
    if (distance == 0 && gpi__is_in_place(&plan->task, output, other))
        return GEMMEPI_OK;
    shares = gpi__layouts_share(&p->layout, &q->layout, distance);
    if (!shares)
        return GEMMEPI_OK;
    return gpi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "%s (%p), which is written, overlaps %s (%p)%s; an output may only be exactly an input (the same "
        "pointer, dtype, shape and strides), and no sum or cast with scales of rows or blocks, or to both layouts, may",
        gpi__tensor_names[plan->task.operands[output].pointer], (void *)p_base,
        gpi__tensor_names[plan->task.operands[other].pointer], (void *)q_base, gpi__if_undecided(shares));
}

static gemmepi_status gpi__check_pointers(const gpi__elementwise_plan *plan, int one_shot,
                                          void *const *pointers) {
    const gpi__task *task = &plan->task;
    gemmepi_status status = GEMMEPI_OK;
    int t, other;
    for (t = 0; t < GPI__TENSORS; t++) {
        int given = (int)(task->given >> t & 1), size = gpi__size_of(task->operands[t].dtype);
        int alignment = size > task->alignment ? size : task->alignment;
        if (!given && pointers[t])
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is given, but the plan has no such tensor",
                             gpi__tensor_names[t]);
        if (!given)
            continue;
        if (!pointers[t] && plan->reach[t].low != plan->reach[t].high)
            return gpi__fail(GEMMEPI_INVALID_ARGUMENT,
                             one_shot ? "%s.data is NULL, and so is args.%s"
                                      : "args.%s is NULL; a plan's run does not take a tensor's own data",
                             gpi__tensor_names[t], gpi__tensor_names[t]);
        if ((uintptr_t)pointers[t] % (uintptr_t)alignment)
            return gpi__fail(GEMMEPI_MISALIGNED,
                             "the data of %s is %p; it must be a multiple of %d bytes (%s)",
                             gpi__tensor_names[t], pointers[t], alignment,
                             alignment == size ? "the size of an element" : "desc.alignment, 16 by default");
    }
    for (t = GPI__OUT_Y; t < GPI__TENSORS && !status; t++)
        for (other = 0; gpi__task_has(task, t) && other < GPI__TENSORS && !status; other++)
            if (gpi__task_has(task, other) && (other < GPI__OUT_Y || other > t))
                status = gpi__check_apart(plan, pointers, t, other);
    return status;
}

#endif
