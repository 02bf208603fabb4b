/* Element-wise operations: prepared once, run any number of times, and the calls that do both. */
#ifndef GEMMEPI_ELEMENTWISE_PLAN_H
#define GEMMEPI_ELEMENTWISE_PLAN_H

#include "../device/create.h"
#include "../device/memory.h"
#include "../device/pointers.h"
#ifndef GEMMEPI_NO_HOST
#include "../host/elementwise.h"
#endif
#ifndef GEMMEPI_NO_FORMULA
#include "formula.h"
#endif
#include "reach.h"
#include "scaled.h"
#include "sum.h"

#define GEMMEPI__MAX_SUMS 3 /* da, db and dw */

typedef struct gemmepi__elementwise_plan {
    gemmepi_plan base;
    gemmepi__task task;
    gemmepi_route route;
    size_t workspace_size;
    gemmepi__axis_sum sums[GEMMEPI__MAX_SUMS];
    int sum_count;
    gemmepi__loop loop;
    gemmepi__scaled_step scaled;
    gemmepi__reach_of reach[GEMMEPI__TENSORS];
    struct gemmepi__elementwise_formula *formula; /* in the task's place, which is 0 then; NULL: none */
} gemmepi__elementwise_plan;

/* >>building */

static gemmepi__reach_of gemmepi__reach_of_operand(const gemmepi__task *task, int t) {
    gemmepi__layout layout = gemmepi__layout_of(task, &task->operands[t]);
    return gemmepi__reach_of_layout(&layout, task->operands[t].offset);
}

static void gemmepi__need_workspace(gemmepi__elementwise_plan *plan, size_t bytes) {
    if (bytes > plan->workspace_size)
        plan->workspace_size = bytes;
}

static gemmepi_status gemmepi__build_launches(gemmepi__elementwise_plan *plan) {
    const gemmepi__task *task = &plan->task;
    gemmepi_status status = GEMMEPI_OK;
    uint32_t others = 0;
    int t;
#ifndef GEMMEPI_NO_FORMULA
    if (plan->formula) {
        status = gemmepi__build_formula_launches(plan->base.context, plan->formula);
        plan->workspace_size = plan->formula->pass.state_bytes;
        plan->route = plan->formula->pass.finish.blocks ? GEMMEPI_ROUTE_SUM
                      : plan->formula->is_one_line      ? GEMMEPI_ROUTE_CONTIGUOUS
                                                        : GEMMEPI_ROUTE_STRIDED;
        return status;
    }
#endif
    if (gemmepi__is_scaled(task)) {
        plan->route = GEMMEPI_ROUTE_SCALED;
        status = gemmepi__build_scaled(plan->base.context, task, &plan->scaled);
        gemmepi__need_workspace(plan, plan->scaled.partial_bytes);
        return status;
    }
    for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS && !status; t++) {
        const gemmepi__operand *operand = &task->operands[t];
        if (!gemmepi__task_has(task, t) || gemmepi__operand_is_empty(task, operand))
            continue;
        if (!operand->is_sum) {
            others |= GEMMEPI__BIT(t);
            continue;
        }
        status = gemmepi__build_axis_sum(plan->base.context, task, t, &plan->sums[plan->sum_count]);
        gemmepi__need_workspace(plan, plan->sums[plan->sum_count++].partial_bytes);
    }
    plan->route = GEMMEPI_ROUTE_SUM;
    if (!status && others) {
        status = gemmepi__build_loop(plan->base.context, task, others, &plan->loop);
        if (!plan->sum_count)
            plan->route = plan->loop.is_contiguous ? GEMMEPI_ROUTE_CONTIGUOUS : GEMMEPI_ROUTE_STRIDED;
    }
    return status;
}

static gemmepi_status gemmepi__build_on_device(gemmepi__elementwise_plan *plan) {
    gemmepi__entry entry;
    gemmepi_status status = gemmepi__enter_relaxed(plan->base.context, &entry);
    if (status)
        return status;
    gemmepi__lock(&plan->base.context->build_lock);
    status = gemmepi__build_launches(plan);
    gemmepi__unlock(&plan->base.context->build_lock);
    gemmepi__leave_relaxed(plan->base.context, &entry);
    return status;
}

static void gemmepi__destroy_elementwise(gemmepi_plan *destroyed) {
    gemmepi__elementwise_plan *plan = (gemmepi__elementwise_plan *)destroyed;
#ifndef GEMMEPI_NO_FORMULA
    gemmepi__delete_elementwise_formula(&plan->base.context->allocator, plan->formula);
#endif
    gemmepi__delete(&plan->base.context->allocator, plan);
}

static gemmepi_status gemmepi__build_elementwise(gemmepi_context *context, const gemmepi__task *task,
                                                 gemmepi__elementwise_plan **result) {
    gemmepi__elementwise_plan *plan =
        (gemmepi__elementwise_plan *)gemmepi__new(&context->allocator, sizeof *plan);
    gemmepi_status status = GEMMEPI_OK;
    int t;
    if (!plan)
        return GEMMEPI_OUT_OF_MEMORY;
    plan->base = gemmepi__plan_base(context, GEMMEPI_PLAN_ELEMENTWISE, gemmepi__destroy_elementwise);
    plan->task = *task;
    for (t = 0; t < GEMMEPI__TENSORS; t++)
        if (gemmepi__task_has(task, t))
            plan->reach[t] = gemmepi__reach_of_operand(task, t);
    if (task->is_empty)
        plan->route = GEMMEPI_ROUTE_EMPTY;
    else if (context->is_host)
        plan->route = GEMMEPI_ROUTE_HOST;
    else
        status = gemmepi__build_on_device(plan);
    if (status)
        gemmepi__release_plan(&plan->base);
    else
        *result = plan;
    return status;
}

#ifndef GEMMEPI_NO_FORMULA
static gemmepi_status gemmepi__choose_for_formula(gemmepi__elementwise_plan *plan) {
    if (plan->formula->task.is_empty)
        plan->route = GEMMEPI_ROUTE_EMPTY;
    else if (plan->base.context->is_host)
        plan->route = GEMMEPI_ROUTE_HOST;
    else
        return gemmepi__build_on_device(plan);
    return GEMMEPI_OK;
}

/* formula becomes the plan's, or is freed. */
static gemmepi_status gemmepi__build_formula_plan(gemmepi_context *context, const gemmepi__formula_task *task,
                                                  gemmepi__formula *formula,
                                                  gemmepi__elementwise_plan **result) {
    gemmepi__elementwise_plan *plan =
        (gemmepi__elementwise_plan *)gemmepi__new(&context->allocator, sizeof *plan);
    gemmepi_status status = GEMMEPI_OUT_OF_MEMORY;
    if (plan) {
        plan->base = gemmepi__plan_base(context, GEMMEPI_PLAN_ELEMENTWISE, gemmepi__destroy_elementwise);
        plan->formula = gemmepi__new_elementwise_formula(&context->allocator, task, formula);
        if (plan->formula)
            status = gemmepi__choose_for_formula(plan);
    }
    if (!plan || !plan->formula)
        gemmepi__delete(&context->allocator, formula);
    if (!status)
        *result = plan;
    else if (plan)
        gemmepi__release_plan(&plan->base);
    return status;
}

static gemmepi_status gemmepi__plan_formula(gemmepi_context *context, const gemmepi_elementwise_desc *desc,
                                            gemmepi__elementwise_plan **plan) {
    gemmepi__formula_task task;
    gemmepi__formula *formula;
    gemmepi_status status =
        gemmepi__take_formula_task(&context->allocator, desc, GEMMEPI__DEFAULT_ALIGNMENT, &task, &formula);
    return status ? status : gemmepi__build_formula_plan(context, &task, formula, plan);
}
#endif

static gemmepi_status gemmepi__plan_elementwise(gemmepi_context *context,
                                                const gemmepi_elementwise_desc *desc,
                                                gemmepi__elementwise_plan **plan) {
    gemmepi__task task;
    gemmepi_status status = gemmepi__check_operation(desc);
#ifndef GEMMEPI_NO_FORMULA
    if (!status && desc->formula)
        return gemmepi__plan_formula(context, desc, plan);
#endif
    if (!status)
        status = gemmepi__take_task(desc, GEMMEPI__DEFAULT_ALIGNMENT, &task);
    return status ? status : gemmepi__build_elementwise(context, &task, plan);
}

GEMMEPI_API gemmepi_status gemmepi_plan_elementwise(gemmepi_context *context,
                                                    const gemmepi_elementwise_desc *desc,
                                                    gemmepi_plan **result) {
    gemmepi__elementwise_plan *plan = NULL;
    gemmepi_status status;
    if (result)
        *result = NULL; /* also after a failure */
    if (!context || !result)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__plan_elementwise(context, desc, &plan);
    if (!status)
        *result = &plan->base;
    return status;
}

/* >>the pointers of a run */

/* What a run writes or reads beside tensors. */
typedef struct gemmepi__numbers_row {
    const char *name, *flag_name;
    uint64_t flag;
} gemmepi__numbers_row;

static const gemmepi__numbers_row gemmepi__numbers[] = {{"scale", "CAST_SCALE", GEMMEPI_CAST_SCALE},
                                                        {"y_scale", "CAST_Y_SCALE", GEMMEPI_CAST_Y_SCALE},
                                                        {"amax", "CAST_AMAX", GEMMEPI_CAST_AMAX}};

/* y_transposed_scale: where it is given, and nothing else lies. */
static gemmepi_status gemmepi__check_turned_scale(const gemmepi__elementwise_plan *plan,
                                                  const gemmepi_elementwise_args *args) {
    const gemmepi__task *task = &plan->task;
    const void *scale = args->y_transposed_scale, *tensors[3];
    static const int which[] = {GEMMEPI__IN_A, GEMMEPI__OUT_Y, GEMMEPI__OUT_Y_TRANSPOSED};
    uintptr_t begin = (uintptr_t)scale, end;
    uintptr_t count = (uintptr_t)gemmepi__scale_count(task, 0);
    int i;
    if (gemmepi__turned_has_scales(task) != (scale != NULL))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.y_transposed_scale is %s",
                             scale ? "given; it goes with y_transposed and the modes VECTOR_128 and BLOCK_128"
                                   : "NULL, but y_transposed has scales of its own, which go there");
    if (!scale)
        return GEMMEPI_OK;
    end = begin + (uintptr_t)gemmepi__scale_count(task, 1) * sizeof(float);
    if (begin % sizeof(float))
        return gemmepi__fail(GEMMEPI_MISALIGNED,
                             "args.y_transposed_scale is %p; it must be a multiple of 4 bytes", scale);
    tensors[0] = args->a, tensors[1] = args->y, tensors[2] = args->y_transposed;
    for (i = 0; i < 3; i++) {
        uintptr_t base = (uintptr_t)tensors[i];
        if (begin < base + (uintptr_t)plan->reach[which[i]].high &&
            base + (uintptr_t)plan->reach[which[i]].low < end)
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 "args.y_transposed_scale (%p, %llu bytes) overlaps %s", scale,
                                 (gemmepi__ull)(end - begin), gemmepi__tensor_names[which[i]]);
    }
    if (begin < (uintptr_t)args->y_scale + count * sizeof(float) && (uintptr_t)args->y_scale < end)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "args.y_transposed_scale (%p) overlaps args.y_scale (%p)", scale,
                             (void *)args->y_scale);
    if (args->amax && begin < (uintptr_t)args->amax + count * gemmepi__amax_size(task) &&
        (uintptr_t)args->amax < end)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.y_transposed_scale (%p) overlaps args.amax (%p)",
                             scale, args->amax);
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__check_numbers(const gemmepi__elementwise_plan *plan,
                                             const gemmepi_elementwise_args *args) {
    const gemmepi__task *task = &plan->task;
    const void *given[3];
    int64_t count = gemmepi__scale_count(task, 0);
    size_t i;
    int t;
    given[0] = args->scale;
    given[1] = args->y_scale;
    given[2] = args->amax;
    for (i = 0; i < GEMMEPI__COUNT(gemmepi__numbers); i++) {
        const gemmepi__numbers_row *row = &gemmepi__numbers[i];
        size_t size = i == 2 ? gemmepi__amax_size(task) : sizeof(float);
        uintptr_t begin = (uintptr_t)given[i], end = begin + (uintptr_t)count * size;
        if (((task->flags & row->flag) != 0) != (given[i] != NULL))
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s is %s, but flags has %s %s", row->name,
                                 given[i] ? "given" : "NULL", given[i] ? "no" : "the flag", row->flag_name);
        if (begin % size)
            return gemmepi__fail(GEMMEPI_MISALIGNED, "args.%s is %p; it must be a multiple of %d bytes",
                                 row->name, given[i], (int)size);
        /* a, y and y_transposed */
        for (t = GEMMEPI__IN_A; given[i] && t < GEMMEPI__TENSORS; t += GEMMEPI__OUT_Y - GEMMEPI__IN_A) {
            uintptr_t base = (uintptr_t)(t == GEMMEPI__IN_A    ? args->a
                                         : t == GEMMEPI__OUT_Y ? args->y
                                                               : args->y_transposed);
            if ((i > 0 || t != GEMMEPI__IN_A) && begin < base + (uintptr_t)plan->reach[t].high &&
                base + (uintptr_t)plan->reach[t].low < end)
                return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s (%p, %llu bytes) overlaps %s",
                                     row->name, given[i], (gemmepi__ull)(end - begin),
                                     gemmepi__tensor_names[t]);
        }
        if (i < 2 && given[i] && given[2] &&
            begin < (uintptr_t)given[2] + (uintptr_t)count * gemmepi__amax_size(task) &&
            (uintptr_t)given[2] < end)
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.%s (%p) overlaps args.amax (%p)", row->name,
                                 given[i], given[2]);
    }
    return gemmepi__check_turned_scale(plan, args);
}

/* In place: the very same elements in the same order. */
static int gemmepi__is_in_place(const gemmepi__task *task, int output, int input) {
    const gemmepi__operand *p = &task->operands[output], *q = &task->operands[input];
    return input < GEMMEPI__OUT_Y && !p->is_sum && p->dtype == q->dtype && !gemmepi__is_scaled(task) &&
           memcmp(p->stride, q->stride, sizeof p->stride) == 0;
}

static gemmepi_status gemmepi__check_apart(const gemmepi__elementwise_plan *plan, void *const *pointers,
                                           int output, int other) {
    const gemmepi__reach_of *p = &plan->reach[output], *q = &plan->reach[other];
    intptr_t p_base = (intptr_t)pointers[plan->task.operands[output].pointer];
    intptr_t q_base = (intptr_t)pointers[plan->task.operands[other].pointer];
    int64_t distance;
    int shares;
    if (p_base + p->high <= q_base + q->low || q_base + q->high <= p_base + p->low || p->low == p->high ||
        q->low == q->high)
        return GEMMEPI_OK;
    distance = q_base + plan->task.operands[other].offset - (p_base + plan->task.operands[output].offset);
    if (distance == 0 && gemmepi__is_in_place(&plan->task, output, other))
        return GEMMEPI_OK;
    shares = gemmepi__layouts_share(&p->layout, &q->layout, distance);
    if (!shares)
        return GEMMEPI_OK;
    return gemmepi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "%s (%p), which is written, overlaps %s (%p)%s; an output may only be exactly an input (the same "
        "pointer, dtype, shape and strides), and no sum or cast with scales of rows or blocks, or to both layouts, may",
        gemmepi__tensor_names[plan->task.operands[output].pointer], (void *)p_base,
        gemmepi__tensor_names[plan->task.operands[other].pointer], (void *)q_base,
        gemmepi__if_undecided(shares));
}

static gemmepi_status gemmepi__check_pointers(const gemmepi__elementwise_plan *plan, int one_shot,
                                              void *const *pointers) {
    const gemmepi__task *task = &plan->task;
    gemmepi_status status = GEMMEPI_OK;
    int t, other;
    for (t = 0; t < GEMMEPI__TENSORS; t++) {
        int given = (int)(task->given >> t & 1), size = gemmepi__size_of(task->operands[t].dtype);
        int alignment = size > task->alignment ? size : task->alignment;
        if (!given && pointers[t])
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 "args.%s is given, but the plan has no such tensor",
                                 gemmepi__tensor_names[t]);
        if (!given)
            continue;
        if (!pointers[t] && plan->reach[t].low != plan->reach[t].high)
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                                 one_shot ? "%s.data is NULL, and so is args.%s"
                                          : "args.%s is NULL; a plan's run does not take a tensor's own data",
                                 gemmepi__tensor_names[t], gemmepi__tensor_names[t]);
        if ((uintptr_t)pointers[t] % (uintptr_t)alignment)
            return gemmepi__fail(
                GEMMEPI_MISALIGNED, "the data of %s is %p; it must be a multiple of %d bytes (%s)",
                gemmepi__tensor_names[t], pointers[t], alignment,
                alignment == size ? "the size of an element" : "desc.alignment, 16 by default");
    }
    for (t = GEMMEPI__OUT_Y; t < GEMMEPI__TENSORS && !status; t++)
        for (other = 0; gemmepi__task_has(task, t) && other < GEMMEPI__TENSORS && !status; other++)
            if (gemmepi__task_has(task, other) && (other < GEMMEPI__OUT_Y || other > t))
                status = gemmepi__check_apart(plan, pointers, t, other);
    return status;
}

/* >>running */

static void gemmepi__take_pointers_of(const gemmepi_elementwise_args *args,
                                      void *pointers[GEMMEPI__TENSORS]) {
    const void *inputs[GEMMEPI__OUT_Y];
    inputs[GEMMEPI__IN_A] = args->a;
    inputs[GEMMEPI__IN_B] = args->b;
    inputs[GEMMEPI__IN_W] = args->w;
    inputs[GEMMEPI__IN_DY] = args->dy;
    memcpy(pointers, inputs, sizeof inputs);
    pointers[GEMMEPI__OUT_Y] = args->y;
    pointers[GEMMEPI__OUT_DA] = args->da;
    pointers[GEMMEPI__OUT_DB] = args->db;
    pointers[GEMMEPI__OUT_DW] = args->dw;
    pointers[GEMMEPI__OUT_Y_TRANSPOSED] = args->y_transposed;
}

static gemmepi_status gemmepi__launch_all(const gemmepi__elementwise_plan *plan,
                                          const gemmepi_elementwise_args *args, void *const *pointers,
                                          void *workspace, gemmepi_stream stream) {
    gemmepi__operation_params operation;
    gemmepi_status status = GEMMEPI_OK;
    int i;
#ifndef GEMMEPI_NO_FORMULA
    if (plan->formula)
        return gemmepi__run_formula_on_device(plan->base.context, plan->formula, args, pointers, workspace,
                                              stream);
#endif
    if (plan->route == GEMMEPI_ROUTE_SCALED)
        return gemmepi__run_scaled(plan->base.context, &plan->scaled, args, pointers, workspace, stream);
    operation.parameter = plan->task.parameter;
    operation.weight = args->weight;
    operation.scale = args->scale;
    operation.amax = args->amax;
    for (i = 0; i < plan->sum_count && !status; i++)
        status = gemmepi__run_axis_sum(plan->base.context, &plan->sums[i], &operation, pointers, workspace,
                                       stream);
    if (!status && operation.amax)
        status = gemmepi__clear_numbers(plan->base.context, operation.amax, gemmepi__amax_size(&plan->task),
                                        stream);
    if (!status && plan->loop.launch.function)
        status = gemmepi__run_loop(plan->base.context, &plan->loop, &operation, pointers, stream);
    return status;
}

/* Workspace is an output like any other. */
static gemmepi_status gemmepi__check_own_workspace(const gemmepi__elementwise_plan *plan,
                                                   const gemmepi_elementwise_args *args,
                                                   void *const *pointers) {
    uintptr_t begin = (uintptr_t)args->workspace, end = begin + plan->workspace_size;
    int t;
    gemmepi_status status =
        gemmepi__check_given_workspace(args->workspace, args->workspace_size, plan->workspace_size);
    if (status)
        return status;
    for (t = 0; t < GEMMEPI__TENSORS; t++) { /* of a formula none: its regions have been looked at */
        uintptr_t base =
            gemmepi__task_has(&plan->task, t) ? (uintptr_t)pointers[plan->task.operands[t].pointer] : 0;
        if (base && begin < base + (uintptr_t)plan->reach[t].high &&
            base + (uintptr_t)plan->reach[t].low < end)
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.workspace (%p, %llu bytes used) overlaps %s",
                                 args->workspace, (gemmepi__ull)plan->workspace_size,
                                 gemmepi__tensor_names[plan->task.operands[t].pointer]);
    }
    if (args->y_scale && begin < (uintptr_t)(args->y_scale + gemmepi__scale_count(&plan->task, 0)) &&
        (uintptr_t)args->y_scale < end)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "args.workspace (%p, %llu bytes used) overlaps args.y_scale (%p)",
                             args->workspace, (gemmepi__ull)plan->workspace_size, (void *)args->y_scale);
    if (args->amax &&
        begin < (uintptr_t)args->amax +
                    (uintptr_t)gemmepi__scale_count(&plan->task, 0) * gemmepi__amax_size(&plan->task) &&
        (uintptr_t)args->amax < end)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "args.workspace (%p, %llu bytes used) overlaps args.amax (%p)", args->workspace,
                             (gemmepi__ull)plan->workspace_size, args->amax);
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__launch_elementwise(const gemmepi__elementwise_plan *plan,
                                                  const gemmepi_elementwise_args *args, void *const *pointers,
                                                  gemmepi_stream stream) {
    gemmepi__block *block;
    gemmepi_status status;
    if (plan->workspace_size == 0)
        return gemmepi__launch_all(plan, args, pointers, NULL, stream);
    if (args->workspace) {
        status = gemmepi__check_own_workspace(plan, args, pointers);
        return status ? status : gemmepi__launch_all(plan, args, pointers, args->workspace, stream);
    }
    block = gemmepi__take_block(plan->base.context, gemmepi__key_of_stream(stream), plan->workspace_size,
                                "gemmepi_plan_prepare");
    if (!block)
        return GEMMEPI_BUFFER_TOO_SMALL;
    status = gemmepi__launch_all(plan, args, pointers, (void *)(uintptr_t)block->address, stream);
    gemmepi__give_block(block);
    return status;
}

static gemmepi_status gemmepi__check_reach_of(const gemmepi__elementwise_plan *plan,
                                              const gemmepi_elementwise_args *args, void *const *pointers) {
    const gemmepi_context *context = plan->base.context;
    gemmepi_status status = gemmepi__check_reachable(context, "workspace", args->workspace);
    int t;
    for (t = 0; t < GEMMEPI__TENSORS && !status; t++)
        status = gemmepi__check_reachable(context, gemmepi__tensor_names[t], pointers[t]);
    if (!status)
        status = gemmepi__check_reachable(context, "scale", args->scale);
    if (!status)
        status = gemmepi__check_reachable(context, "y_scale", args->y_scale);
    if (!status)
        status = gemmepi__check_reachable(context, "y_transposed_scale", args->y_transposed_scale);
    return status ? status : gemmepi__check_reachable(context, "amax", args->amax);
}

#ifndef GEMMEPI_NO_FORMULA
/* pointers: as gemmepi__take_formula_pointers has them. */
static gemmepi_status gemmepi__run_formula(const gemmepi__elementwise_plan *plan,
                                           const gemmepi_elementwise_args *args, void *const *pointers,
                                           int one_shot, gemmepi_stream stream) {
    const gemmepi__elementwise_formula *own = plan->formula;
    gemmepi__tensor_regions regions;
    gemmepi__entry entry;
    gemmepi_status status =
        gemmepi__check_run(plan->base.context, stream, args->workspace, args->workspace_size);
    if (status || plan->route == GEMMEPI_ROUTE_EMPTY)
        return status;
    status = gemmepi__check_formula_pointers(&own->task, own->reach, pointers, args, &regions);
    if (status)
        return status;
#ifndef GEMMEPI_NO_HOST
    if (plan->route == GEMMEPI_ROUTE_HOST)
        return gemmepi__run_formula_on_host(own, args, pointers, &plan->base.context->allocator);
#endif
    if (args->workspace && plan->workspace_size)
        status = gemmepi__check_workspace_of_formula(own->formula, &regions, args->workspace,
                                                     plan->workspace_size);
    if (!status)
        status = gemmepi__enter(plan->base.context, &entry);
    if (status)
        return status;
    if (one_shot || plan->base.context->check_pointers)
        status = gemmepi__check_reachable(plan->base.context, "workspace", args->workspace);
    if (!status && (one_shot || plan->base.context->check_pointers))
        status = gemmepi__check_reach_of_formula(plan->base.context, own->formula, &regions);
    if (!status)
        status = gemmepi__launch_elementwise(plan, args, pointers, stream);
    gemmepi__leave(plan->base.context, &entry);
    return status;
}
#endif

/* one_shot: as gemmepi__run_matmul's. */
static gemmepi_status gemmepi__run_elementwise(const gemmepi__elementwise_plan *plan,
                                               const gemmepi_elementwise_args *args, int one_shot,
                                               gemmepi_stream stream) {
    void *pointers[GEMMEPI__TENSORS];
    gemmepi__entry entry;
    gemmepi_status status;
    status = gemmepi__check_run(plan->base.context, stream, args->workspace, args->workspace_size);
    if (status || plan->route == GEMMEPI_ROUTE_EMPTY)
        return status;
    if (args->weight != 0 && gemmepi__task_has(&plan->task, GEMMEPI__IN_W))
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.weight is %g beside w; leave it 0, or w NULL",
                             args->weight);
    if (args->weight != 0 && plan->task.operation != GEMMEPI_OP_LERP &&
        plan->task.operation != GEMMEPI_OP_LERP_BACKWARD)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "args.weight is %g; the operation %s has none: leave it 0", args->weight,
                             gemmepi__operation(plan->task.operation)->name);
    if (plan->task.accumulator != GEMMEPI_F64 && fabs(args->weight) > FLT_MAX &&
        fabs(args->weight) <= DBL_MAX)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.weight is %g; the largest F32 is 3.4e38",
                             args->weight);
    gemmepi__take_pointers_of(args, pointers);
    status = gemmepi__check_pointers(plan, one_shot, pointers);
    if (!status && (plan->task.operation == GEMMEPI_OP_CAST || args->scale || args->y_scale || args->amax ||
                    args->y_transposed_scale))
        status = gemmepi__check_numbers(plan, args);
    if (status)
        return status;
#ifndef GEMMEPI_NO_HOST
    if (plan->route == GEMMEPI_ROUTE_HOST) {
        gemmepi__host_elementwise(&plan->task, pointers, args);
        return GEMMEPI_OK;
    }
#endif
    status = gemmepi__enter(plan->base.context, &entry);
    if (status)
        return status;
    if (one_shot || plan->base.context->check_pointers)
        status = gemmepi__check_reach_of(plan, args, pointers);
    if (!status)
        status = gemmepi__launch_elementwise(plan, args, pointers, stream);
    gemmepi__leave(plan->base.context, &entry);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_run_elementwise(const gemmepi_plan *plan,
                                                   const gemmepi_elementwise_args *args,
                                                   gemmepi_stream stream) {
    const gemmepi__elementwise_plan *own = (const gemmepi__elementwise_plan *)plan;
    gemmepi_status status = gemmepi__check_plan(plan, args, GEMMEPI_PLAN_ELEMENTWISE);
#ifndef GEMMEPI_NO_FORMULA
    void *pointers[GEMMEPI__RESULT + 1];
    if (!status && own->formula) {
        gemmepi__take_formula_pointers(args, own->formula->formula->operand_count, NULL, pointers);
        return gemmepi__run_formula(own, args, pointers, 0, stream);
    }
#endif
    return status ? status : gemmepi__run_elementwise(own, args, 0, stream);
}

static gemmepi_status gemmepi__prepare_elementwise(const gemmepi__elementwise_plan *plan,
                                                   gemmepi_stream stream) {
    return gemmepi__reserve_for(plan->base.context, stream, gemmepi__key_of_stream(stream),
                                plan->workspace_size);
}

/* >>calls that plan by themselves */

/* The pointer that args has, or else the tensor's own. */
static const void *gemmepi__data_of(const gemmepi_tensor *tensor, const void *given) {
    return given || !tensor ? given : tensor->data;
}

static void *gemmepi__output_of(const gemmepi_tensor *tensor, void *given) {
    return given || !tensor ? given : tensor->data;
}

/* args as given, the tensors' own data where they are NULL. */
static gemmepi_elementwise_args gemmepi__filled_args(const gemmepi_elementwise_desc *desc,
                                                     const gemmepi_elementwise_args *given) {
    gemmepi_elementwise_args args;
    memset(&args, 0, sizeof args);
    if (given)
        args = *given;
    args.a = gemmepi__data_of(desc->a, args.a);
    args.b = gemmepi__data_of(desc->b, args.b);
    args.w = gemmepi__data_of(desc->w, args.w);
    args.dy = gemmepi__data_of(desc->dy, args.dy);
    args.y = gemmepi__output_of(desc->y, args.y);
    args.da = gemmepi__output_of(desc->da, args.da);
    args.db = gemmepi__output_of(desc->db, args.db);
    args.dw = gemmepi__output_of(desc->dw, args.dw);
    args.y_transposed = gemmepi__output_of(desc->y_transposed, args.y_transposed);
    return args;
}

/* The alignment class of the data, as gemmepi__alignment_of for products. */
static size_t gemmepi__alignment_of_data(void *const *pointers) {
    uintptr_t bits = GEMMEPI__DEFAULT_ALIGNMENT;
    int t;
    for (t = 0; t < GEMMEPI__TENSORS; t++)
        bits |= (uintptr_t)pointers[t];
    return (size_t)(bits & (~bits + 1));
}

#ifndef GEMMEPI_NO_FORMULA
/* The plan that is kept for a task, or a new one, with a reference for the caller. formula is the plan's, or freed. */
static gemmepi_status gemmepi__get_formula_plan(gemmepi_context *context, const gemmepi__formula_task *task,
                                                gemmepi__formula *formula, gemmepi_plan **kept) {
    gemmepi__elementwise_plan *plan;
    gemmepi_status status = GEMMEPI_OUT_OF_MEMORY;
    size_t size;
    void *key = gemmepi__key_of_formula_task(&context->allocator, task, formula, &size);
    *kept = key ? gemmepi__find_kept(context, key, size) : NULL;
    if (!key || *kept)
        gemmepi__delete(&context->allocator, formula);
    if (*kept)
        status = GEMMEPI_OK;
    else if (key)
        status = gemmepi__build_formula_plan(context, task, formula, &plan);
    if (!status && !*kept)
        *kept = gemmepi__keep(context, key, size, &plan->base);
    gemmepi__delete(&context->allocator, key);
    return status;
}

static gemmepi_status gemmepi__elementwise_by_formula(gemmepi_context *context,
                                                      const gemmepi_elementwise_desc *desc,
                                                      const gemmepi_elementwise_args *given,
                                                      gemmepi_stream stream) {
    gemmepi_elementwise_args args;
    gemmepi__formula_task task;
    gemmepi__formula *formula;
    gemmepi_plan *kept;
    void *pointers[GEMMEPI__RESULT + 1];
    gemmepi_status status = gemmepi__check_beside_elementwise_formula(desc);
    if (status)
        return status;
    memset(&args, 0, sizeof args);
    if (given)
        args = *given;
    gemmepi__take_formula_pointers(&args, desc->operand_count, desc, pointers);
    status = gemmepi__take_formula_task(&context->allocator, desc,
                                        gemmepi__alignment_of_formula(desc, pointers), &task, &formula);
    if (!status)
        status = gemmepi__get_formula_plan(context, &task, formula, &kept);
    if (status)
        return status;
    if (!args.workspace)
        status = gemmepi__prepare_elementwise((const gemmepi__elementwise_plan *)kept, stream);
    if (!status)
        status = gemmepi__run_formula((const gemmepi__elementwise_plan *)kept, &args, pointers, 1, stream);
    gemmepi__release_plan(kept);
    return status;
}
#endif

GEMMEPI_API gemmepi_status gemmepi_elementwise(gemmepi_context *context, const gemmepi_elementwise_desc *desc,
                                               const gemmepi_elementwise_args *given, gemmepi_stream stream) {
    gemmepi_elementwise_args args;
    void *pointers[GEMMEPI__TENSORS];
    gemmepi__elementwise_plan *plan;
    gemmepi__task task;
    gemmepi_plan *kept;
    gemmepi_status status;
    if (!context)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "context is NULL");
    if (gemmepi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gemmepi__check_operation(desc);
    if (status)
        return status;
#ifndef GEMMEPI_NO_FORMULA
    if (desc->formula)
        return gemmepi__elementwise_by_formula(context, desc, given, stream);
#endif
    args = gemmepi__filled_args(desc, given);
    gemmepi__take_pointers_of(&args, pointers);
    status = gemmepi__take_task(desc, gemmepi__alignment_of_data(pointers), &task);
    if (status)
        return status;
    kept = gemmepi__find_kept(context, &task, sizeof task);
    if (!kept) {
        status = gemmepi__build_elementwise(context, &task, &plan);
        if (status)
            return status;
        kept = gemmepi__keep(context, &task, sizeof task, &plan->base);
    }
    plan = (gemmepi__elementwise_plan *)kept;
    if (!args.workspace)
        status = gemmepi__prepare_elementwise(plan, stream);
    if (!status)
        status = gemmepi__run_elementwise(plan, &args, 1, stream);
    gemmepi__release_plan(kept);
    return status;
}

/* >>short calls */

/* Zeroed, but for what the operation is. */
static gemmepi_elementwise_desc gemmepi__desc_of(gemmepi_operation operation, const gemmepi_tensor *a,
                                                 const gemmepi_tensor *y) {
    gemmepi_elementwise_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.operation = operation;
    desc.a = a;
    desc.y = y;
    return desc;
}

/* A positional call's parameter: NaN is the default. */
static void gemmepi__take_parameter(gemmepi_elementwise_desc *desc, double parameter) {
    desc->has_parameter = parameter == parameter;
    desc->activation_parameter = desc->has_parameter ? parameter : 0;
}

GEMMEPI_API gemmepi_status gemmepi_activation(gemmepi_context *context, gemmepi_epilogue activation,
                                              double parameter, const gemmepi_tensor *a,
                                              const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gemmepi__desc_of(GEMMEPI_OP_ACTIVATION, a, y);
    desc.activation = activation;
    gemmepi__take_parameter(&desc, parameter);
    return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_activation_backward(gemmepi_context *context, gemmepi_epilogue activation,
                                                       double parameter, const gemmepi_tensor *a,
                                                       const gemmepi_tensor *dy, const gemmepi_tensor *da,
                                                       gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gemmepi__desc_of(GEMMEPI_OP_ACTIVATION_BACKWARD, a, NULL);
    desc.activation = activation;
    gemmepi__take_parameter(&desc, parameter);
    desc.dy = dy;
    desc.da = da;
    return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_gated(gemmepi_context *context, gemmepi_epilogue activation, int split_dim,
                                         const gemmepi_tensor *a, const gemmepi_tensor *b,
                                         const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gemmepi__desc_of(GEMMEPI_OP_GATED, a, y);
    desc.activation = activation;
    desc.axis = split_dim;
    desc.b = b;
    return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_lerp(gemmepi_context *context, const gemmepi_tensor *a,
                                        const gemmepi_tensor *b, const gemmepi_tensor *w, double weight,
                                        const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gemmepi__desc_of(GEMMEPI_OP_LERP, a, y);
    gemmepi_elementwise_args args;
    memset(&args, 0, sizeof args);
    args.weight = weight;
    desc.b = b;
    desc.w = w;
    return gemmepi_elementwise(context, &desc, &args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_bias_grad(gemmepi_context *context, const gemmepi_tensor *a, int axis,
                                             int accumulate, const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gemmepi__desc_of(GEMMEPI_OP_BIAS_GRAD, a, y);
    desc.axis = axis;
    desc.flags = accumulate ? GEMMEPI_ACCUMULATE : 0;
    if (accumulate != 0 && accumulate != 1)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "accumulate is %d; accepted are 0 and 1", accumulate);
    return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_cast(gemmepi_context *context, const gemmepi_tensor *a,
                                        const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gemmepi__desc_of(GEMMEPI_OP_CAST, a, y);
    return gemmepi_elementwise(context, &desc, NULL, stream);
}

#endif
