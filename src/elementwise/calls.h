/* Element-wise calls that plan by themselves, and short ones. */
#ifndef GEMMEPI_ELEMENTWISE_CALLS_H
#define GEMMEPI_ELEMENTWISE_CALLS_H

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

#ifndef GEMMEPI_NO_FORMULA
/* As gpi__get_elementwise_plan, of a desc with a formula. */
static gemmepi_status gpi__get_formula_plan(gemmepi_context *context, const gemmepi_elementwise_desc *desc,
                                            const gemmepi_elementwise_args *args, void **pointers,
                                            gemmepi_plan **kept) {
    gpi__formula_task task;
    gpi__formula *formula;
    gpi__elementwise_plan *plan;
    size_t size;
    void *key;
    gemmepi_status status = gpi__check_beside_elementwise_formula(desc);
    if (status)
        return status;
    gpi__list_formula_pointers(args, desc->operand_count, desc, pointers);
    status = gpi__convert_formula_task(&context->allocator, desc, gpi__alignment_of_formula(desc, pointers),
                                       &task, &formula);
    if (status)
        return status;
    key = gpi__key_of_formula_task(&context->allocator, &task, formula, &size);
    *kept = key ? gpi__find_kept(context, key, size) : NULL;
    if (!key || *kept)
        gpi__delete(&context->allocator, formula);
    if (!key)
        status = GEMMEPI_OUT_OF_MEMORY;
    else if (!*kept)
        status = gpi__build_formula_plan(context, &task, formula, &plan);
    if (!status && !*kept)
        *kept = gpi__keep(context, key, size, &plan->base);
    gpi__delete(&context->allocator, key);
    return status;
}
#endif

/* The plan that is kept for a desc, or a new one, with a reference for the caller, and a run's pointers. */
static gemmepi_status gpi__get_elementwise_plan(gemmepi_context *context,
                                                const gemmepi_elementwise_desc *desc,
                                                const gemmepi_elementwise_args *args, void **pointers,
                                                gemmepi_plan **kept) {
    gpi__elementwise_plan *plan;
    gpi__task task;
    gemmepi_status status;
#ifndef GEMMEPI_NO_FORMULA
    if (desc->formula)
        return gpi__get_formula_plan(context, desc, args, pointers, kept);
#endif
    gpi__list_data(desc, args, pointers);
    status = gpi__convert_task(desc, gpi__alignment_of_data(pointers), &task);
    if (status)
        return status;
    *kept = gpi__find_kept(context, &task, sizeof task);
    if (*kept)
        return GEMMEPI_OK;
    status = gpi__build_elementwise(context, &task, &plan);
    if (!status)
        *kept = gpi__keep(context, &task, sizeof task, &plan->base);
    return status;
}

GEMMEPI_API gemmepi_status gemmepi_elementwise(gemmepi_context *context, const gemmepi_elementwise_desc *desc,
                                               const gemmepi_elementwise_args *given, gemmepi_stream stream) {
    gemmepi_elementwise_args args;
    void *pointers[GPI__MOST_POINTERS];
    gemmepi_plan *kept;
    gemmepi_status status;
    if (!context)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "context is NULL");
    if (gpi__came_by_fork(context))
        return GEMMEPI_INVALID_ARGUMENT;
    status = gpi__check_operation(desc);
    if (status)
        return status;
    memset(&args, 0, sizeof args);
    if (given)
        args = *given;
    status = gpi__get_elementwise_plan(context, desc, &args, pointers, &kept);
    if (status)
        return status;
    if (!args.workspace)
        status = gpi__prepare_elementwise((const gpi__elementwise_plan *)kept, stream);
    if (!status)
        status = gpi__run_elementwise((const gpi__elementwise_plan *)kept, &args, pointers, 1, stream);
    gpi__release_plan(kept);
    return status;
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
    if (accumulate != 0 && accumulate != 1)
        return gpi__fail(GEMMEPI_INVALID_ARGUMENT, "accumulate is %d; accepted are 0 and 1", accumulate);
    return gemmepi_elementwise(context, &desc, NULL, stream);
}

GEMMEPI_API gemmepi_status gemmepi_cast(gemmepi_context *context, const gemmepi_tensor *a,
                                        const gemmepi_tensor *y, gemmepi_stream stream) {
    gemmepi_elementwise_desc desc = gpi__desc_of(GEMMEPI_OP_CAST, a, y);
    return gemmepi_elementwise(context, &desc, NULL, stream);
}

#endif
