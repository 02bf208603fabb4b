/* The calls of element-wise operations: plans, runs, both at once, and short ones. */
#ifndef GEMMEPI_ELEMENTWISE_CALLS_H
#define GEMMEPI_ELEMENTWISE_CALLS_H

#include "../shell/shell.h"
#include "explain.h"
#include "run.h"

/* As args have them, or else the tensors themselves. */
static void gpi__list_data(const gemmepi_elementwise_desc *desc, const gemmepi_elementwise_args *args,
                           void *pointers[GPI__TENSORS]) {
    const gemmepi_tensor *tensors[GPI__TENSORS];
    int t;
    gpi__list_tensors(desc, tensors);
    gpi__list_pointers_of(args, pointers);
    for (t = 0; t < GPI__TENSORS; t++)
        if (!pointers[t] && tensors[t])
            pointers[t] = tensors[t]->data;
}

/* The alignment class of the data, as gpi__alignment_of for products. */
static size_t gpi__alignment_of_data(void *const *pointers) {
    uintptr_t bits = GPI__DEFAULT_ALIGNMENT;
    int t;
    for (t = 0; t < GPI__TENSORS; t++)
        bits |= (uintptr_t)pointers[t];
    return (size_t)(bits & (~bits + 1));
}

static gemmepi_status gpi__make_over_tensors(const gpi__wish *wish, gemmepi_plan **plan) {
    const gemmepi_allocator *allocator = &wish->context->allocator;
    gpi__formula_task task;
    gpi__formula *formula;
    size_t size;
    void *key;
    gemmepi_status status = gpi__convert_formula_task(allocator, (const gemmepi_elementwise_desc *)wish->desc,
                                                      wish->alignment, &task, &formula);
    if (status)
        return status;
    key = gpi__key_of_formula_task(allocator, &task, formula, &size);
    if (!key || gpi__is_found(wish, key, size, plan)) {
        gpi__delete(allocator, formula);
        status = key ? GEMMEPI_OK : GEMMEPI_OUT_OF_MEMORY;
    } else {
        status = gpi__keep_built(wish, key, size,
                                 gpi__build_formula_plan(wish->context, &task, formula, plan), plan);
    }
    gpi__delete(allocator, key);
    return status;
}

static gemmepi_status gpi__make_operation(const gpi__wish *wish, gemmepi_plan **plan) {
    const gemmepi_elementwise_desc *desc = (const gemmepi_elementwise_desc *)wish->desc;
    gpi__task task;
    gemmepi_status status = gpi__check_operation(desc);
    if (!status && GPI__FORMULA(desc))
        return gpi__make_over_tensors(wish, plan);
    if (!status)
        status = gpi__convert_task(desc, wish->alignment, &task);
    if (status || gpi__is_found(wish, &task, sizeof task, plan))
        return status;
    return gpi__keep_built(wish, &task, sizeof task, gpi__build_elementwise(wish->context, &task, plan),
                           plan);
}

static size_t gpi__workspace_of_operation(const gemmepi_plan *plan) {
    return ((const gpi__elementwise_plan *)plan)->workspace_size;
}

/* Texts are not looked for: descs have pointers to tensors. */
static const gpi__plan_row gpi__elementwise_plans = {GEMMEPI_PLAN_ELEMENTWISE,
                                                     {0, 0, {0, 0}, NULL},
                                                     gpi__make_operation,
                                                     gpi__workspace_of_operation,
                                                     gpi__run_elementwise,
                                                     gpi__describe_elementwise,
                                                     gpi__explain_elementwise,
                                                     NULL,
                                                     NULL};

GEMMEPI_API gemmepi_status gemmepi_plan_elementwise(gemmepi_context *context,
                                                    const gemmepi_elementwise_desc *desc,
                                                    gemmepi_plan **plan) {
    return gpi__plan_desc(&gpi__elementwise_plans, context, desc, plan);
}

GEMMEPI_API gemmepi_status gemmepi_run_elementwise(const gemmepi_plan *plan,
                                                   const gemmepi_elementwise_args *args,
                                                   gemmepi_stream stream) {
    return gpi__run_plan(&gpi__elementwise_plans, plan, args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_elementwise(gemmepi_context *context, const gemmepi_elementwise_desc *desc,
                                               const gemmepi_elementwise_args *given, gemmepi_stream stream) {
    gpi__wish wish = {context, GEMMEPI_PLAN_ELEMENTWISE, desc, 0, 1, NULL};
    gpi__elementwise_call call;
    gemmepi_status status = gpi__check_call(context, context, "context");
    if (!status)
        status = gpi__check_operation(desc);
    if (!status && GPI__FORMULA(desc))
        status = gpi__check_beside_elementwise_formula(desc);
    if (status)
        return status;
    memset(&call.args, 0, sizeof call.args);
    if (given)
        call.args = *given;
    if (GPI__FORMULA(desc)) {
        gpi__list_formula_pointers(&call.args, desc->operand_count, desc, call.pointers);
        wish.alignment = gpi__alignment_of_formula(desc, call.pointers);
        return gpi__run_once(&gpi__elementwise_plans, &wish, &call, call.args.workspace, stream);
    }
    gpi__list_data(desc, &call.args, call.pointers);
    wish.alignment = gpi__alignment_of_data(call.pointers);
    return gpi__run_once(&gpi__elementwise_plans, &wish, &call, call.args.workspace, stream);
}

/* >>short calls */

/* Zeroed, but for what the operation is. */
static gemmepi_elementwise_desc gpi__desc_of(gemmepi_operation operation, const gemmepi_tensor *a,
                                             const gemmepi_tensor *y) {
    gemmepi_elementwise_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.operation = operation;
    desc.a = a;
    desc.y = y;
    return desc;
}

/* A positional call's parameter: NaN is the default. */
static void gpi__set_parameter(gemmepi_elementwise_desc *desc, double parameter) {
    desc->has_parameter = parameter == parameter;
    desc->activation_parameter = desc->has_parameter ? parameter : 0;
}

GEMMEPI_API gemmepi_status gemmepi_activation(gemmepi_context *context, gemmepi_epilogue activation,
                                              double parameter, const gemmepi_tensor *a,
                                              const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gpi__desc_of(GEMMEPI_OP_ACTIVATION, a, y);
    desc.activation = activation;
    gpi__set_parameter(&desc, parameter);
    return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_activation_backward(gemmepi_context *context, gemmepi_epilogue activation,
                                                       double parameter, const gemmepi_tensor *a,
                                                       const gemmepi_tensor *dy, const gemmepi_tensor *da,
                                                       gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gpi__desc_of(GEMMEPI_OP_ACTIVATION_BACKWARD, a, NULL);
    desc.activation = activation;
    gpi__set_parameter(&desc, parameter);
    desc.dy = dy;
    desc.da = da;
    return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_gated(gemmepi_context *context, gemmepi_epilogue activation, int split_dim,
                                         const gemmepi_tensor *a, const gemmepi_tensor *b,
                                         const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gpi__desc_of(GEMMEPI_OP_GATED, a, y);
    desc.activation = activation;
    desc.axis = split_dim;
    desc.b = b;
    return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_lerp(gemmepi_context *context, const gemmepi_tensor *a,
                                        const gemmepi_tensor *b, const gemmepi_tensor *w, double weight,
                                        const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gpi__desc_of(GEMMEPI_OP_LERP, a, y);
    gemmepi_elementwise_args args;
    memset(&args, 0, sizeof args);
    args.weight = weight;
    desc.b = b;
    desc.w = w;
    return gemmepi_elementwise(context, &desc, &args, stream);
}

GEMMEPI_API gemmepi_status gemmepi_bias_grad(gemmepi_context *context, const gemmepi_tensor *a, int axis,
                                             int accumulate, const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gpi__desc_of(GEMMEPI_OP_BIAS_GRAD, a, y);
    desc.axis = axis;
    desc.flags = accumulate ? GEMMEPI_ACCUMULATE : 0;
    GPI__INVALID_IF(accumulate != 0 && accumulate != 1, "accumulate is %d; accepted are 0 and 1", accumulate);
    return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_cast(gemmepi_context *context, const gemmepi_tensor *a,
                                        const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gpi__desc_of(GEMMEPI_OP_CAST, a, y);
    return gemmepi_elementwise(context, &desc, NULL, stream);
}

#endif
