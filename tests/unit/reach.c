/* Pointers that a GPU cannot follow, as they are of host memory that CUDA does not know: calls without a plan refuse each of them by its
   name, and with config.check_pointers every run does, and refuses memory that ends before the tensor. On the fake GPU of fake_cuda.h. */
#include "fake_operations.h"

/* A field of args, and its place in them. */
typedef struct field {
    const char *name;
    size_t place;
} field;

#define FIELD(type, name) \
    { #name, offsetof(type, name) }

static void *address(size_t i) {
    return (void *)(uintptr_t)(0x10000000u * (i + 1));
}

/* Points each field to memory of its own, far from the others. */
static void point_all(void *args, const field *fields, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        void *there = address(i);
        memcpy((char *)args + fields[i].place, &there, sizeof there);
    }
}

typedef gemmepi_status (*call_function)(gemmepi_context *context, const void *desc, const void *args);

/* A call without a plan, and a run by a plan. */
typedef struct calls {
    call_function at_once, planned;
} calls;

/* All pointers the same: memory that ends too early is told first, as the caller may mend it and still have given it twice. */
static void check_order(gemmepi_context *context, const calls *of, const void *desc, void *args,
                        const field *fields, size_t count) {
    void *there = address(0);
    size_t i;
    for (i = 0; i < count; i++)
        memcpy((char *)args + fields[i].place, &there, sizeof there);
    context->check_pointers = 1;
    gpu.short_one = there;
    CHECK(of->at_once(context, desc, args) == GEMMEPI_BUFFER_TOO_SMALL && sentence_has("ends after 1 bytes"),
          "too small, and given twice: %s", gemmepi_last_error());
    gpu.short_one = NULL;
    CHECK(of->at_once(context, desc, args) == GEMMEPI_INVALID_ARGUMENT && sentence_has("overlaps"),
          "given twice: %s", gemmepi_last_error());
    point_all(args, fields, count);
}

static void check_fields(gemmepi_context *context, const calls *of, const void *desc, void *args,
                         const field *fields, size_t count) {
    size_t i;
    int checks;
    check_order(context, of, desc, args, fields, count);
    for (checks = 0; checks < 2; checks++) {
        context->check_pointers = checks;
        gpu.unknown = NULL;
        CHECK(of->at_once(context, desc, args) == GEMMEPI_OK &&
                  of->planned(context, desc, args) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        for (i = 0; i < count; i++) {
            char says[100];
            gpu.unknown = address(i);
            snprintf(says, sizeof says, "args.%s is ", fields[i].name);
            CHECK(of->at_once(context, desc, args) == GEMMEPI_INVALID_ARGUMENT && sentence_has(says) &&
                      sentence_has("the GPU cannot reach"),
                  "args.%s: %s", fields[i].name, gemmepi_last_error());
            CHECK(of->planned(context, desc, args) == (checks ? GEMMEPI_INVALID_ARGUMENT : GEMMEPI_OK) &&
                      (!checks || sentence_has(says)),
                  "args.%s of a plan: %s", fields[i].name, gemmepi_last_error());
            gpu.unknown = NULL;
            gpu.short_one = address(i);
            CHECK(of->planned(context, desc, args) == (checks ? GEMMEPI_BUFFER_TOO_SMALL : GEMMEPI_OK) &&
                      (!checks || (sentence_has(says) && sentence_has("ends after 1 bytes"))),
                  "args.%s that ends too early: %s", fields[i].name, gemmepi_last_error());
            gpu.short_one = NULL;
        }
    }
    break_function("cuPointerGetAttribute", 700);
    CHECK(of->at_once(context, desc, args) == GEMMEPI_CUDA_ERROR, "%s", gemmepi_last_error());
    gpu.fails = NULL;
    context->reaches_pageable = 1;
    gpu.unknown = address(0);
    CHECK(of->at_once(context, desc, args) == GEMMEPI_OK, "a device that reaches all: %s",
          gemmepi_last_error());
    gpu.unknown = NULL;
}

static gemmepi_context *open_untouched(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gpu.is_untouched = 1;
    return context;
}

static void close_untouched(gemmepi_context *context) {
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>products */

static gemmepi_status product_at_once(gemmepi_context *context, const void *desc, const void *args) {
    return gemmepi_matmul(context, (const gemmepi_matmul_desc *)desc, (const gemmepi_matmul_args *)args,
                          NULL);
}

static gemmepi_status product_planned(gemmepi_context *context, const void *desc, const void *args) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gemmepi_plan_matmul(context, (const gemmepi_matmul_desc *)desc, &plan);
    if (!status)
        status = gemmepi_run_matmul(plan, (const gemmepi_matmul_args *)args, NULL);
    gemmepi_plan_destroy(plan);
    return status;
}
static const calls product_calls = {product_at_once, product_planned};

#define OF_PRODUCT(name) FIELD(gemmepi_matmul_args, name)

static void each_pointer_of_a_product_is_asked_about(void) {
    static const field fields[] = {OF_PRODUCT(a),        OF_PRODUCT(b),        OF_PRODUCT(c),
                                   OF_PRODUCT(d),        OF_PRODUCT(bias),     OF_PRODUCT(aux),
                                   OF_PRODUCT(residual), OF_PRODUCT(scale_a),  OF_PRODUCT(scale_b),
                                   OF_PRODUCT(scale_d),  OF_PRODUCT(amax_d),   OF_PRODUCT(alpha),
                                   OF_PRODUCT(beta),     OF_PRODUCT(workspace)};
    gemmepi_context *context = open_untouched();
    gemmepi_matmul_desc desc =
        product(GEMMEPI_E4M3, GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_AUX | GEMMEPI_RESIDUAL);
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    desc.d.dtype = GEMMEPI_E4M3, desc.aux.dtype = desc.residual.dtype = desc.c.dtype = GEMMEPI_BF16;
    desc.bias.dtype = GEMMEPI_BF16;
    desc.a.scale.mode = desc.b.scale.mode = desc.d.scale.mode = GEMMEPI_SCALE_TENSOR;
    desc.flags = GEMMEPI_AMAX_D | GEMMEPI_DEVICE_SCALARS;
    point_all(&args, fields, GPI__COUNT(fields));
    args.workspace_size = 1 << 24;
    check_fields(context, &product_calls, &desc, &args, fields, GPI__COUNT(fields));
    close_untouched(context);
}

static void each_operand_of_a_formula_is_asked_about(void) {
    static const field fields[] = {OF_PRODUCT(a), OF_PRODUCT(b), OF_PRODUCT(d)};
    static const char *const names[] = {"args.operands[0] (of x)", "args.operands[1] (of s)"};
    gemmepi_context *context = open_untouched();
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_NONE);
    gemmepi_matmul_args args;
    gemmepi_operand operands[2];
    void *pointers[2];
    int i;
    memset(&args, 0, sizeof args);
    memset(operands, 0, sizeof operands);
    operands[0].name = "x", operands[0].kind = GEMMEPI_FULL;
    operands[1].name = "s", operands[1].kind = GEMMEPI_PER_ROW, operands[1].output = 1;
    operands[1].dtype = GEMMEPI_F32;
    desc.formula = "d = v * x; s = row_sum(d)", desc.operands = operands, desc.operand_count = 2;
    point_all(&args, fields, GPI__COUNT(fields));
    pointers[0] = address(8), pointers[1] = address(9);
    args.operands = pointers;
    check_fields(context, &product_calls, &desc, &args, fields, GPI__COUNT(fields));
    context->reaches_pageable = 0;
    for (i = 0; i < 2; i++) {
        gpu.unknown = pointers[i];
        CHECK(product_at_once(context, &desc, &args) == GEMMEPI_INVALID_ARGUMENT && sentence_has(names[i]),
              "%s", gemmepi_last_error());
    }
    close_untouched(context);
}

/* >>grouped products */

static gemmepi_status grouped_at_once(gemmepi_context *context, const void *desc, const void *args) {
    return gemmepi_grouped(context, (const gemmepi_grouped_desc *)desc, (const gemmepi_grouped_args *)args,
                           NULL);
}

static gemmepi_status grouped_planned(gemmepi_context *context, const void *desc, const void *args) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gemmepi_plan_grouped(context, (const gemmepi_grouped_desc *)desc, &plan);
    if (!status)
        status = gemmepi_run_grouped(plan, (const gemmepi_grouped_args *)args, NULL);
    gemmepi_plan_destroy(plan);
    return status;
}

#define OF_GROUPS(name) FIELD(gemmepi_grouped_args, name)

static void each_list_of_a_grouped_product_is_asked_about(void) {
    static const calls of = {grouped_at_once, grouped_planned};
    static const field fields[] = {OF_GROUPS(product.a), OF_GROUPS(product.b),        OF_GROUPS(product.d),
                                   OF_GROUPS(ends),      OF_GROUPS(index_a),          OF_GROUPS(index_d),
                                   OF_GROUPS(weights),   OF_GROUPS(product.workspace)};
    gemmepi_context *context = open_untouched();
    gemmepi_grouped_desc desc;
    gemmepi_grouped_args args;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    desc.product = product(GEMMEPI_BF16, GEMMEPI_NONE);
    desc.groups = 3, desc.gather_a = 20, desc.scatter_d = 80, desc.weighted = 1;
    point_all(&args, fields, GPI__COUNT(fields));
    args.product.workspace_size = 1 << 24;
    check_fields(context, &of, &desc, &args, fields, GPI__COUNT(fields));
    close_untouched(context);
}

/* >>layers */

static gemmepi_status layer_at_once(gemmepi_context *context, const void *desc, const void *args) {
    return gemmepi_linear_backward(context, (const gemmepi_linear_desc *)desc,
                                   (const gemmepi_linear_args *)args, NULL);
}

static gemmepi_status layer_planned(gemmepi_context *context, const void *desc, const void *args) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gemmepi_plan_linear_backward(context, (const gemmepi_linear_desc *)desc, &plan);
    if (!status)
        status = gemmepi_run_linear_backward(plan, (const gemmepi_linear_args *)args, NULL);
    gemmepi_plan_destroy(plan);
    return status;
}

#define OF_LAYER(name) FIELD(gemmepi_linear_args, name)

static void each_pointer_of_a_layer_is_asked_about(void) {
    static const calls of = {layer_at_once, layer_planned};
    static const field fields[] = {OF_LAYER(a),  OF_LAYER(b),  OF_LAYER(preact), OF_LAYER(dy),
                                   OF_LAYER(da), OF_LAYER(db), OF_LAYER(dbias),  OF_LAYER(workspace)};
    gemmepi_context *context = open_untouched();
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    desc.m = desc.n = desc.k = EDGE;
    desc.a.dtype = GEMMEPI_BF16;
    desc.activation = GEMMEPI_SILU;
    desc.flags = GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB |
                 GEMMEPI_LINEAR_DBIAS;
    point_all(&args, fields, GPI__COUNT(fields));
    args.workspace_size = 1 << 24;
    check_fields(context, &of, &desc, &args, fields, GPI__COUNT(fields));
    close_untouched(context);
}

/* >>element-wise */

static gemmepi_status element_at_once(gemmepi_context *context, const void *desc, const void *args) {
    return gemmepi_elementwise(context, (const gemmepi_elementwise_desc *)desc,
                               (const gemmepi_elementwise_args *)args, NULL);
}

static gemmepi_status element_planned(gemmepi_context *context, const void *desc, const void *args) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gemmepi_plan_elementwise(context, (const gemmepi_elementwise_desc *)desc, &plan);
    if (!status)
        status = gemmepi_run_elementwise(plan, (const gemmepi_elementwise_args *)args, NULL);
    gemmepi_plan_destroy(plan);
    return status;
}
static const calls element_calls_of = {element_at_once, element_planned};

#define OF_ELEMENTS(name) FIELD(gemmepi_elementwise_args, name)

static void each_pointer_of_an_elementwise_operation_is_asked_about(void) {
    static const field cast_fields[] = {OF_ELEMENTS(a),
                                        OF_ELEMENTS(y),
                                        OF_ELEMENTS(y_transposed),
                                        OF_ELEMENTS(y_scale),
                                        OF_ELEMENTS(y_transposed_scale),
                                        OF_ELEMENTS(amax),
                                        OF_ELEMENTS(workspace)},
                       scaled_fields[] = {OF_ELEMENTS(a), OF_ELEMENTS(y), OF_ELEMENTS(scale)},
                       lerp_fields[] = {OF_ELEMENTS(a),  OF_ELEMENTS(b),        OF_ELEMENTS(w),
                                        OF_ELEMENTS(dy), OF_ELEMENTS(da),       OF_ELEMENTS(db),
                                        OF_ELEMENTS(dw), OF_ELEMENTS(workspace)};
    gemmepi_context *context = open_untouched();
    static element_call c;
    cast_to_both_layouts(&c);
    c.desc.flags |= GEMMEPI_CAST_AMAX;
    point_all(&c.args, cast_fields, GPI__COUNT(cast_fields));
    c.args.workspace_size = 1 << 24;
    check_fields(context, &element_calls_of, &c.desc, &c.args, cast_fields, GPI__COUNT(cast_fields));
    context->reaches_pageable = 0;
    cast_with_scale(&c);
    point_all(&c.args, scaled_fields, GPI__COUNT(scaled_fields));
    check_fields(context, &element_calls_of, &c.desc, &c.args, scaled_fields, GPI__COUNT(scaled_fields));
    context->reaches_pageable = 0;
    lerp_call(&c);
    point_all(&c.args, lerp_fields, GPI__COUNT(lerp_fields));
    c.args.workspace_size = 1 << 24;
    check_fields(context, &element_calls_of, &c.desc, &c.args, lerp_fields, GPI__COUNT(lerp_fields));
    close_untouched(context);
}

static void each_tensor_of_a_formula_is_asked_about(void) {
    static const field fields[] = {OF_ELEMENTS(y)};
    static const char *const says[] = {"args.operands[0] (of x)", "args.operands[1] (of small)",
                                       "args.operand_scales[1]", "args.operand_amax[1]"};
    gemmepi_context *context = open_untouched();
    static element_call c;
    int i;
    formula_with_sums_and_amax(&c);
    for (i = 0; i < 2; i++)
        c.pointers[i] = address(5 + (size_t)i);
    c.scales[1] = (const float *)address(7), c.amax[1] = address(8);
    c.pointers[2] = address(9), c.pointers[3] = address(10);
    (void)fields;
    CHECK(element_at_once(context, &c.desc, &c.args) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < 4; i++) {
        gpu.unknown = address(5 + (size_t)i);
        CHECK(element_at_once(context, &c.desc, &c.args) == GEMMEPI_INVALID_ARGUMENT && sentence_has(says[i]),
              "%d: %s", i, gemmepi_last_error());
        CHECK(element_planned(context, &c.desc, &c.args) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
    }
    close_untouched(context);
}

int main(void) {
    keep_libraries_open();
    RUN(each_pointer_of_a_product_is_asked_about);
    RUN(each_operand_of_a_formula_is_asked_about);
    RUN(each_list_of_a_grouped_product_is_asked_about);
    RUN(each_pointer_of_a_layer_is_asked_about);
    RUN(each_pointer_of_an_elementwise_operation_is_asked_about);
    RUN(each_tensor_of_a_formula_is_asked_about);
    return test_finish();
}
