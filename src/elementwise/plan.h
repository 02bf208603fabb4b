/* Element-wise operations: prepared once, run any number of times, and the calls that do both. */
#ifndef GEMMEPI_ELEMENTWISE_PLAN_H
#define GEMMEPI_ELEMENTWISE_PLAN_H

#include "../device/destroy.h"
#include "../device/memory.h"
#ifndef GEMMEPI_NO_HOST
#include "../host/elementwise.h"
#endif
#include "scaled.h"
#include "sum.h"

#define GEMMEPI__MAX_SUMS 3 /* da, db and dw */

/* Where a tensor lies, for the checks of each run. */
typedef struct gemmepi__reach_of {
    gemmepi__layout layout;
    int64_t low, high; /* bytes from the pointer; both 0: the tensor has no element */
} gemmepi__reach_of;

struct gemmepi_elementwise {
    gemmepi_context *context;
    gemmepi__task task;
    gemmepi_route route;
    size_t workspace_size;
    gemmepi__axis_sum sums[GEMMEPI__MAX_SUMS];
    int sum_count;
    gemmepi__loop loop;
    gemmepi__scaled_step scaled;
    gemmepi__reach_of reach[GEMMEPI__TENSORS];
    gemmepi__kept kept;
};

/* >>building */

static void gemmepi__take_reach(const gemmepi__task *task, int t, gemmepi__reach_of *reach) {
    const gemmepi__operand *operand = &task->operands[t];
    int d;
    reach->layout = gemmepi__layout_of(task, operand);
    reach->low = operand->offset;
    reach->high = operand->offset + reach->layout.size;
    for (d = 0; d < reach->layout.rank; d++) {
        int64_t last = (reach->layout.shape[d] - 1) * reach->layout.stride[d];
        if (reach->layout.shape[d] == 0) {
            reach->low = reach->high = 0;
            return;
        }
        if (last < 0)
            reach->low += last;
        else
            reach->high += last;
    }
}

static void gemmepi__need_workspace(gemmepi_elementwise *plan, size_t bytes) {
    if (bytes > plan->workspace_size)
        plan->workspace_size = bytes;
}

static gemmepi_status gemmepi__build_launches(gemmepi_elementwise *plan) {
    const gemmepi__task *task = &plan->task;
    gemmepi_status status = GEMMEPI_OK;
    uint32_t others = 0;
    int t;
    if (gemmepi__is_scaled(task)) {
        plan->route = GEMMEPI_ROUTE_SCALED;
        status = gemmepi__build_scaled(plan->context, task, &plan->scaled);
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
        status = gemmepi__build_axis_sum(plan->context, task, t, &plan->sums[plan->sum_count]);
        gemmepi__need_workspace(plan, plan->sums[plan->sum_count++].partial_bytes);
    }
    plan->route = GEMMEPI_ROUTE_SUM;
    if (!status && others) {
        status = gemmepi__build_loop(plan->context, task, others, &plan->loop);
        if (!plan->sum_count)
            plan->route = plan->loop.is_contiguous ? GEMMEPI_ROUTE_CONTIGUOUS : GEMMEPI_ROUTE_STRIDED;
    }
    return status;
}

static gemmepi_status gemmepi__build_on_device(gemmepi_elementwise *plan) {
    gemmepi__entry entry;
    gemmepi_status status = gemmepi__enter_relaxed(plan->context, &entry);
    if (status)
        return status;
    gemmepi__lock(&plan->context->build_lock);
    status = gemmepi__build_launches(plan);
    gemmepi__unlock(&plan->context->build_lock);
    gemmepi__leave_relaxed(plan->context, &entry);
    return status;
}

static void gemmepi__destroy_elementwise(void *destroyed) {
    gemmepi_elementwise *plan = (gemmepi_elementwise *)destroyed;
    gemmepi__delete(&plan->context->allocator, plan);
}

static gemmepi_status gemmepi__build_elementwise(gemmepi_context *context, const gemmepi__task *task,
                                                 gemmepi_elementwise **result) {
    gemmepi_elementwise *plan = (gemmepi_elementwise *)gemmepi__new(&context->allocator, sizeof *plan);
    gemmepi_status status = GEMMEPI_OK;
    int t;
    if (!plan)
        return GEMMEPI_OUT_OF_MEMORY;
    plan->context = context;
    plan->task = *task;
    plan->kept.references = 1;
    plan->kept.plan = plan;
    plan->kept.destroy = gemmepi__destroy_elementwise;
    for (t = 0; t < GEMMEPI__TENSORS; t++)
        if (gemmepi__task_has(task, t))
            gemmepi__take_reach(task, t, &plan->reach[t]);
    if (task->is_empty)
        plan->route = GEMMEPI_ROUTE_EMPTY;
    else if (context->is_host)
        plan->route = GEMMEPI_ROUTE_HOST;
    else
        status = gemmepi__build_on_device(plan);
    if (status)
        gemmepi__release_kept(&plan->kept);
    else
        *result = plan;
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_elementwise_plan(gemmepi_context *context,
                                                    const gemmepi_elementwise_desc *desc,
                                                    gemmepi_elementwise **plan) {
    gemmepi__task task;
    gemmepi_status status;
    if (!context || !plan)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", context ? "plan" : "context");
    status = gemmepi__take_task(desc, GEMMEPI__DEFAULT_ALIGNMENT, &task);
    return status ? status : gemmepi__build_elementwise(context, &task, plan);
}

GEMMEPI_API void gemmepi_elementwise_destroy(gemmepi_elementwise *plan) {
    if (plan)
        gemmepi__release_kept(&plan->kept);
}

/* >>the pointers of a run */

/* What a run writes or reads beside tensors. */
typedef struct gemmepi__numbers_row {
    const char *name, *flag_name;
    uint32_t flag;
} gemmepi__numbers_row;

static const gemmepi__numbers_row gemmepi__numbers[] = {{"scale", "CAST_SCALE", GEMMEPI_CAST_SCALE},
                                                        {"y_scale", "CAST_Y_SCALE", GEMMEPI_CAST_Y_SCALE},
                                                        {"amax", "CAST_AMAX", GEMMEPI_CAST_AMAX}};

static gemmepi_status gemmepi__check_numbers(const gemmepi_elementwise *plan,
                                             const gemmepi_elementwise_args *args) {
    const gemmepi__task *task = &plan->task;
    const void *given[3];
    int64_t count = gemmepi__scale_count(task);
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
        for (t = GEMMEPI__IN_A; given[i] && t < GEMMEPI__TENSORS; t += GEMMEPI__OUT_Y - GEMMEPI__IN_A) {
            uintptr_t base = (uintptr_t)(t == GEMMEPI__IN_A ? args->a : args->y);
            if ((i > 0 || t == GEMMEPI__OUT_Y) && begin < base + (uintptr_t)plan->reach[t].high &&
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
    return GEMMEPI_OK;
}

/* In place: the very same elements in the same order. */
static int gemmepi__is_in_place(const gemmepi__task *task, int output, int input) {
    const gemmepi__operand *p = &task->operands[output], *q = &task->operands[input];
    return input < GEMMEPI__OUT_Y && !p->is_sum && p->dtype == q->dtype && !gemmepi__is_scaled(task) &&
           memcmp(p->stride, q->stride, sizeof p->stride) == 0;
}

static gemmepi_status gemmepi__check_apart(const gemmepi_elementwise *plan, void *const *pointers, int output,
                                           int other) {
    const gemmepi__reach_of *p = &plan->reach[output], *q = &plan->reach[other];
    intptr_t p_base = (intptr_t)pointers[plan->task.operands[output].pointer];
    intptr_t q_base = (intptr_t)pointers[plan->task.operands[other].pointer];
    int64_t distance;
    if (p_base + p->high <= q_base + q->low || q_base + q->high <= p_base + p->low || p->low == p->high ||
        q->low == q->high)
        return GEMMEPI_OK;
    distance = q_base + plan->task.operands[other].offset - (p_base + plan->task.operands[output].offset);
    if ((distance == 0 && gemmepi__is_in_place(&plan->task, output, other)) ||
        !gemmepi__layouts_share(&p->layout, &q->layout, distance))
        return GEMMEPI_OK;
    return gemmepi__fail(
        GEMMEPI_INVALID_ARGUMENT,
        "%s (%p), which is written, overlaps %s (%p); an output may only be exactly an input (the same "
        "pointer, dtype, shape and strides), and no sum or cast with scales of rows or blocks may",
        gemmepi__tensor_names[plan->task.operands[output].pointer], (void *)p_base,
        gemmepi__tensor_names[plan->task.operands[other].pointer], (void *)q_base);
}

static gemmepi_status gemmepi__check_pointers(const gemmepi_elementwise *plan, void *const *pointers) {
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
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "the data of %s is NULL",
                                 gemmepi__tensor_names[t]);
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
}

static gemmepi_status gemmepi__launch_all(const gemmepi_elementwise *plan,
                                          const gemmepi_elementwise_args *args, void *const *pointers,
                                          void *workspace, gemmepi_stream stream) {
    gemmepi__operation_params operation;
    gemmepi_status status = GEMMEPI_OK;
    int i;
    if (plan->route == GEMMEPI_ROUTE_SCALED)
        return gemmepi__run_scaled(plan->context, &plan->scaled, args, pointers, workspace, stream);
    operation.parameter = plan->task.parameter;
    operation.weight = args->weight;
    operation.scale = args->scale;
    operation.amax = args->amax;
    for (i = 0; i < plan->sum_count && !status; i++)
        status =
            gemmepi__run_axis_sum(plan->context, &plan->sums[i], &operation, pointers, workspace, stream);
    if (!status && operation.amax)
        status =
            gemmepi__clear_numbers(plan->context, operation.amax, gemmepi__amax_size(&plan->task), stream);
    if (!status && plan->loop.launch.function)
        status = gemmepi__run_loop(plan->context, &plan->loop, &operation, pointers, stream);
    return status;
}

/* Workspace is an output like any other. */
static gemmepi_status gemmepi__check_own_workspace(const gemmepi_elementwise *plan,
                                                   const gemmepi_elementwise_args *args,
                                                   void *const *pointers) {
    uintptr_t begin = (uintptr_t)args->workspace, end = begin + plan->workspace_size;
    int t;
    gemmepi_status status =
        gemmepi__check_given_workspace(args->workspace, args->workspace_size, plan->workspace_size);
    if (status)
        return status;
    for (t = 0; t < GEMMEPI__TENSORS; t++) {
        uintptr_t base =
            gemmepi__task_has(&plan->task, t) ? (uintptr_t)pointers[plan->task.operands[t].pointer] : 0;
        if (base && begin < base + (uintptr_t)plan->reach[t].high &&
            base + (uintptr_t)plan->reach[t].low < end)
            return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "args.workspace (%p, %llu bytes used) overlaps %s",
                                 args->workspace, (gemmepi__ull)plan->workspace_size,
                                 gemmepi__tensor_names[plan->task.operands[t].pointer]);
    }
    if (args->y_scale && begin < (uintptr_t)(args->y_scale + gemmepi__scale_count(&plan->task)) &&
        (uintptr_t)args->y_scale < end)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT,
                             "args.workspace (%p, %llu bytes used) overlaps args.y_scale (%p)",
                             args->workspace, (gemmepi__ull)plan->workspace_size, (void *)args->y_scale);
    return GEMMEPI_OK;
}

static gemmepi_status gemmepi__launch_elementwise(const gemmepi_elementwise *plan,
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
    block = gemmepi__take_block(plan->context, gemmepi__key_of_stream(stream), plan->workspace_size,
                                "gemmepi_elementwise_prepare");
    if (!block)
        return GEMMEPI_BUFFER_TOO_SMALL;
    status = gemmepi__launch_all(plan, args, pointers, (void *)(uintptr_t)block->address, stream);
    gemmepi__give_block(block);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_elementwise_run(const gemmepi_elementwise *plan,
                                                   const gemmepi_elementwise_args *args,
                                                   gemmepi_stream stream) {
    void *pointers[GEMMEPI__TENSORS];
    gemmepi__entry entry;
    gemmepi_status status;
    if (!plan || !args)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "%s is NULL", plan ? "args" : "plan");
    if (plan->route == GEMMEPI_ROUTE_EMPTY)
        return GEMMEPI_OK;
    if (gemmepi__task_has(&plan->task, GEMMEPI__IN_W) && args->weight != 0)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "weight is %g beside w; leave it 0, or w NULL",
                             args->weight);
    gemmepi__take_pointers_of(args, pointers);
    status = gemmepi__check_pointers(plan, pointers);
    if (!status && (plan->task.operation == GEMMEPI_OP_CAST || args->scale || args->y_scale || args->amax))
        status = gemmepi__check_numbers(plan, args);
    if (status)
        return status;
#ifndef GEMMEPI_NO_HOST
    if (plan->route == GEMMEPI_ROUTE_HOST) {
        gemmepi__host_elementwise(&plan->task, pointers, args->weight, args->scale, args->y_scale,
                                  args->amax);
        return GEMMEPI_OK;
    }
#endif
    status = gemmepi__enter(plan->context, &entry);
    if (status)
        return status;
    status = gemmepi__launch_elementwise(plan, args, pointers, stream);
    gemmepi__leave(plan->context, &entry);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_elementwise_prepare(const gemmepi_elementwise *plan,
                                                       gemmepi_stream stream) {
    if (!plan)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "plan is NULL");
    return gemmepi__reserve(plan->context, stream, plan->workspace_size);
}

/* >>calls that plan by themselves */

static void *gemmepi__data_of(const gemmepi_tensor *tensor) {
    return tensor ? tensor->data : NULL;
}

/* The alignment class of the data, as gemmepi__alignment_of for products. */
static size_t gemmepi__alignment_of_data(void *const *pointers) {
    uintptr_t bits = GEMMEPI__DEFAULT_ALIGNMENT;
    int t;
    for (t = 0; t < GEMMEPI__TENSORS; t++)
        bits |= (uintptr_t)pointers[t];
    return (size_t)(bits & (~bits + 1));
}

/* Runs desc, whose tensors have their data. args brings the rest. */
static gemmepi_status gemmepi__call(gemmepi_context *context, const gemmepi_elementwise_desc *desc,
                                    gemmepi_elementwise_args *args, gemmepi_stream stream) {
    void *pointers[GEMMEPI__TENSORS];
    gemmepi_elementwise *plan;
    gemmepi__task task;
    gemmepi__kept *kept;
    gemmepi_status status;
    if (!context)
        return gemmepi__fail(GEMMEPI_INVALID_ARGUMENT, "context is NULL");
    args->a = gemmepi__data_of(desc->a);
    args->b = gemmepi__data_of(desc->b);
    args->w = gemmepi__data_of(desc->w);
    args->dy = gemmepi__data_of(desc->dy);
    args->y = gemmepi__data_of(desc->y);
    args->da = gemmepi__data_of(desc->da);
    args->db = gemmepi__data_of(desc->db);
    args->dw = gemmepi__data_of(desc->dw);
    gemmepi__take_pointers_of(args, pointers);
    status = gemmepi__take_task(desc, gemmepi__alignment_of_data(pointers), &task);
    if (status)
        return status;
    kept = gemmepi__find_kept(context, &task, sizeof task);
    if (!kept) {
        status = gemmepi__build_elementwise(context, &task, &plan);
        if (status)
            return status;
        kept = gemmepi__keep(context, &task, sizeof task, &plan->kept);
    }
    plan = (gemmepi_elementwise *)kept->plan;
    status = gemmepi_elementwise_prepare(plan, stream);
    if (!status)
        status = gemmepi_elementwise_run(plan, args, stream);
    gemmepi__release_kept(kept);
    return status;
}

/* Zeroed, but for what the operation is. */
typedef struct gemmepi__request {
    gemmepi_elementwise_desc desc;
    gemmepi_elementwise_args args;
} gemmepi__request;

static void gemmepi__request_of(gemmepi_operation operation, gemmepi__request *request) {
    memset(request, 0, sizeof *request);
    request->desc.operation = operation;
}

GEMMEPI_API gemmepi_status gemmepi_activation(gemmepi_context *context, gemmepi_epilogue activation,
                                              double parameter, const gemmepi_tensor *a,
                                              const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi__request request;
    gemmepi__request_of(GEMMEPI_OP_ACTIVATION, &request);
    request.desc.activation = activation;
    request.desc.activation_parameter = parameter;
    request.desc.a = a;
    request.desc.y = y;
    return gemmepi__call(context, &request.desc, &request.args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_activation_backward(gemmepi_context *context, gemmepi_epilogue activation,
                                                       double parameter, const gemmepi_tensor *a,
                                                       const gemmepi_tensor *dy, const gemmepi_tensor *da,
                                                       gemmepi_stream stream) {
    gemmepi__request request;
    gemmepi__request_of(GEMMEPI_OP_ACTIVATION_BACKWARD, &request);
    request.desc.activation = activation;
    request.desc.activation_parameter = parameter;
    request.desc.a = a;
    request.desc.dy = dy;
    request.desc.da = da;
    return gemmepi__call(context, &request.desc, &request.args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_gated(gemmepi_context *context, gemmepi_epilogue activation, int split_dim,
                                         const gemmepi_tensor *a, const gemmepi_tensor *b,
                                         const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi__request request;
    gemmepi__request_of(GEMMEPI_OP_GATED, &request);
    request.desc.activation = activation;
    request.desc.axis = split_dim;
    request.desc.a = a;
    request.desc.b = b;
    request.desc.y = y;
    return gemmepi__call(context, &request.desc, &request.args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_gated_backward(gemmepi_context *context, gemmepi_epilogue activation,
                                                  int split_dim, const gemmepi_tensor *a,
                                                  const gemmepi_tensor *b, const gemmepi_tensor *dy,
                                                  const gemmepi_tensor *da, const gemmepi_tensor *db,
                                                  gemmepi_stream stream) {
    gemmepi__request request;
    gemmepi__request_of(GEMMEPI_OP_GATED_BACKWARD, &request);
    request.desc.activation = activation;
    request.desc.axis = split_dim;
    request.desc.a = a;
    request.desc.b = b;
    request.desc.dy = dy;
    request.desc.da = da;
    request.desc.db = db;
    return gemmepi__call(context, &request.desc, &request.args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_lerp(gemmepi_context *context, const gemmepi_tensor *a,
                                        const gemmepi_tensor *b, const gemmepi_tensor *w, double weight,
                                        const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi__request request;
    gemmepi__request_of(GEMMEPI_OP_LERP, &request);
    request.desc.a = a;
    request.desc.b = b;
    request.desc.w = w;
    request.desc.y = y;
    request.args.weight = weight;
    return gemmepi__call(context, &request.desc, &request.args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_lerp_backward(gemmepi_context *context, const gemmepi_tensor *a,
                                                 const gemmepi_tensor *b, const gemmepi_tensor *w,
                                                 double weight, const gemmepi_tensor *dy,
                                                 const gemmepi_tensor *da, const gemmepi_tensor *db,
                                                 const gemmepi_tensor *dw, gemmepi_stream stream) {
    gemmepi__request request;
    gemmepi__request_of(GEMMEPI_OP_LERP_BACKWARD, &request);
    request.desc.a = dw ? a : NULL;
    request.desc.b = dw ? b : NULL;
    request.desc.w = w;
    request.desc.dy = dy;
    request.desc.da = da;
    request.desc.db = db;
    request.desc.dw = dw;
    request.args.weight = weight;
    return gemmepi__call(context, &request.desc, &request.args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_bias_grad(gemmepi_context *context, const gemmepi_tensor *a, int axis,
                                             int accumulate, const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi__request request;
    gemmepi__request_of(GEMMEPI_OP_BIAS_GRAD, &request);
    request.desc.axis = axis;
    request.desc.flags = accumulate ? GEMMEPI_ACCUMULATE : 0;
    request.desc.a = a;
    request.desc.y = y;
    return gemmepi__call(context, &request.desc, &request.args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_cast(gemmepi_context *context, const gemmepi_tensor *a,
                                        const gemmepi_tensor *y, gemmepi_scale_mode mode, uint32_t flags,
                                        float *scale, void *amax, gemmepi_stream stream) {
    gemmepi__request request;
    gemmepi__request_of(GEMMEPI_OP_CAST, &request);
    request.desc.scale_mode = mode;
    request.desc.flags = flags | (amax ? GEMMEPI_CAST_AMAX : 0);
    request.desc.a = a;
    request.desc.y = y;
    if (flags & GEMMEPI_CAST_Y_SCALE)
        request.args.y_scale = scale;
    else
        request.args.scale = scale;
    request.args.amax = amax;
    return gemmepi__call(context, &request.desc, &request.args, stream);
}

#endif
