/* Element-wise operations that the tests on the fake GPU share, and what each does when it runs. */
#ifndef GEMMEPI_TESTS_FAKE_OPERATIONS_H
#define GEMMEPI_TESTS_FAKE_OPERATIONS_H

#include "fake_program.h"

enum { SUM_ROWS = 20000, SUM_COLUMNS = 8, CAST_ROWS = 40, CAST_COLUMNS = 300 };

/* Stands for tensors and numbers on the device; of the host's too, so that it is as large as they are. */
static double element_memory[9][SUM_ROWS * SUM_COLUMNS / 2], number_memory[4][2 * CAST_COLUMNS];

enum { A, B, W, DY, Y, DA, DB, DW, TURNED, ELEMENT_TENSORS };

/* An operation as both interfaces take it. Its parts point to one another: it is not copied. */
typedef struct element_call {
    gemmepi_tensor t[ELEMENT_TENSORS];
    int64_t shape[ELEMENT_TENSORS][2], stride[ELEMENT_TENSORS][2];
    gemmepi_elementwise_desc desc;
    gemmepi_elementwise_args args;
    gemmepi_operand operands[4]; /* of a formula */
    void *pointers[4];
    const float *scales[4];
    void *amax[4];
} element_call;

static void *element_pointer(int t, size_t bytes) {
    return (char *)element_memory[t] + bytes;
}

/* t[which] is dense */
static void give_tensor(element_call *c, int which, gemmepi_dtype dtype, int64_t rows, int64_t columns) {
    gemmepi_tensor *t = &c->t[which];
    c->shape[which][0] = rows, c->shape[which][1] = columns;
    t->data = element_pointer(which, 0);
    t->dtype = dtype;
    t->rank = 2;
    t->shape = c->shape[which];
}

/* of one axis */
static void give_line(element_call *c, int which, gemmepi_dtype dtype, int64_t count_of_elements) {
    give_tensor(c, which, dtype, count_of_elements, 0);
    c->t[which].rank = 1;
}

static void begin_call(element_call *c, gemmepi_operation operation) {
    memset(c, 0, sizeof *c);
    c->desc.operation = operation;
}

static const gemmepi_tensor *tensor_or_null(const element_call *c, int which) {
    return c->t[which].data ? &c->t[which] : NULL;
}

/* desc and args, of the tensors that were given */
static void end_call(element_call *c) {
    c->desc.a = tensor_or_null(c, A), c->desc.b = tensor_or_null(c, B);
    c->desc.w = tensor_or_null(c, W), c->desc.dy = tensor_or_null(c, DY);
    c->desc.y = tensor_or_null(c, Y), c->desc.da = tensor_or_null(c, DA);
    c->desc.db = tensor_or_null(c, DB), c->desc.dw = tensor_or_null(c, DW);
    c->args.a = c->t[A].data, c->args.b = c->t[B].data, c->args.w = c->t[W].data, c->args.dy = c->t[DY].data;
    c->args.y = c->t[Y].data, c->args.da = c->t[DA].data;
    c->args.db = c->t[DB].data, c->args.dw = c->t[DW].data;
    c->args.scale = c->desc.flags & GEMMEPI_CAST_SCALE ? (float *)number_memory[0] : NULL;
    c->args.y_scale = c->desc.flags & GEMMEPI_CAST_Y_SCALE ? (float *)number_memory[1] : NULL;
    c->args.amax = c->desc.flags & GEMMEPI_CAST_AMAX ? number_memory[2] : NULL;
}

static void activation_call(element_call *c, int64_t rows, int64_t columns) {
    begin_call(c, GEMMEPI_OP_ACTIVATION);
    c->desc.activation = GEMMEPI_SILU;
    give_tensor(c, A, GEMMEPI_F32, rows, columns);
    give_tensor(c, Y, GEMMEPI_F32, rows, columns);
    end_call(c);
}

static void transposed_call(element_call *c) {
    activation_call(c, EDGE, EDGE);
    c->stride[A][0] = 1, c->stride[A][1] = EDGE;
    c->t[A].stride = c->stride[A];
}

static void split_call(element_call *c) {
    begin_call(c, GEMMEPI_OP_GATED_BACKWARD);
    c->desc.activation = GEMMEPI_SILU;
    c->desc.axis = -1;
    give_tensor(c, A, GEMMEPI_BF16, EDGE, 2 * EDGE);
    give_tensor(c, DY, GEMMEPI_BF16, EDGE, EDGE);
    give_tensor(c, DA, GEMMEPI_BF16, EDGE, 2 * EDGE);
    end_call(c);
}

static void sum_call(element_call *c, int64_t rows) {
    begin_call(c, GEMMEPI_OP_BIAS_GRAD);
    c->desc.axis = 1;
    give_tensor(c, A, GEMMEPI_F32, rows, SUM_COLUMNS);
    give_line(c, Y, GEMMEPI_F32, SUM_COLUMNS);
    end_call(c);
}

static void small_sum_call(element_call *c) {
    sum_call(c, 20);
}
static void large_sum_call(element_call *c) {
    sum_call(c, SUM_ROWS);
}
static void sum_of_nothing_call(element_call *c) {
    sum_call(c, 0);
}
static void dense_call(element_call *c) {
    activation_call(c, EDGE, EDGE);
}
static void empty_call(element_call *c) {
    activation_call(c, 0, EDGE);
}

/* One gradient for each index, and two that are sums. */
static void lerp_call(element_call *c) {
    begin_call(c, GEMMEPI_OP_LERP_BACKWARD);
    give_tensor(c, A, GEMMEPI_F32, SUM_ROWS, SUM_COLUMNS);
    give_line(c, B, GEMMEPI_F32, SUM_COLUMNS);
    give_line(c, W, GEMMEPI_F32, SUM_COLUMNS);
    give_tensor(c, DY, GEMMEPI_F32, SUM_ROWS, SUM_COLUMNS);
    give_tensor(c, DA, GEMMEPI_F32, SUM_ROWS, SUM_COLUMNS);
    give_line(c, DB, GEMMEPI_F32, SUM_COLUMNS);
    give_line(c, DW, GEMMEPI_F32, SUM_COLUMNS);
    end_call(c);
}

static void cast_call(element_call *c, gemmepi_scale_mode mode, uint64_t flags) {
    begin_call(c, GEMMEPI_OP_CAST);
    c->desc.scale_mode = mode;
    c->desc.flags = flags;
    give_tensor(c, A, GEMMEPI_F32, CAST_ROWS, CAST_COLUMNS);
    give_tensor(c, Y, GEMMEPI_E4M3, CAST_ROWS, CAST_COLUMNS);
    end_call(c);
}

static void plain_cast(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_NONE, 0);
}
static void cast_with_scale(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_TENSOR, GEMMEPI_CAST_SCALE);
}
static void cast_with_amax(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_NONE, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX);
}
static void cast_of_new_scale(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_TENSOR, GEMMEPI_CAST_Y_SCALE);
}
/* of rows without vectors */
static void cast_of_new_scale_of_odd_rows(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_TENSOR, GEMMEPI_CAST_Y_SCALE);
    c->shape[A][1] = c->shape[Y][1] = CAST_COLUMNS + 1;
}
static void cast_to_both_layouts(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_CAST_Y_SCALE);
    give_tensor(c, TURNED, GEMMEPI_E4M3, CAST_COLUMNS, CAST_ROWS);
    c->desc.y_transposed = &c->t[TURNED];
    c->args.y_transposed = c->t[TURNED].data, c->args.y_transposed_scale = (float *)number_memory[3];
}
static void cast_of_rows(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE);
}
static void cast_of_rows_with_amax(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_AMAX);
}
static void cast_of_new_rows(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_K_IS_ROWS);
}
static void cast_of_new_rows_with_amax(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX);
}
static void cast_of_new_blocks(element_call *c) {
    cast_call(c, GEMMEPI_SCALE_BLOCK_128, GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX);
}

/* Operands of a formula, each with the tensor of a place, which may be y's. */
static void give_operand(element_call *c, const char *name, gemmepi_operand_kind kind, int tensor,
                         int output) {
    gemmepi_operand *o = &c->operands[c->desc.operand_count];
    o->name = name, o->kind = kind, o->tensor = &c->t[tensor], o->output = output;
    c->pointers[c->desc.operand_count++] = c->t[tensor].data;
}

static void end_formula(element_call *c, const char *formula) {
    c->desc.formula = formula;
    c->desc.operands = c->operands;
    c->desc.y = tensor_or_null(c, Y);
    c->args.y = c->t[Y].data;
    c->args.operands = c->pointers, c->args.operand_scales = c->scales, c->args.operand_amax = c->amax;
}

static void formula_call(element_call *c, int64_t rows) {
    begin_call(c, (gemmepi_operation)0);
    give_tensor(c, A, GEMMEPI_F32, rows, EDGE);
    give_tensor(c, Y, GEMMEPI_F32, rows, EDGE);
    give_operand(c, "x", GEMMEPI_FULL, A, 0);
    end_formula(c, "d = silu(x) + 1");
}

static void dense_formula(element_call *c) {
    formula_call(c, EDGE);
}
static void empty_formula(element_call *c) {
    formula_call(c, 0);
}

static void transposed_formula(element_call *c) {
    formula_call(c, EDGE);
    c->stride[A][0] = 1, c->stride[A][1] = EDGE;
    c->t[A].stride = c->stride[A];
}

static void formula_with_sums_and_amax(element_call *c) {
    begin_call(c, (gemmepi_operation)0);
    give_tensor(c, A, GEMMEPI_BF16, CAST_ROWS, CAST_COLUMNS);
    give_tensor(c, DA, GEMMEPI_E4M3, CAST_ROWS, CAST_COLUMNS);
    give_tensor(c, DB, GEMMEPI_F32, CAST_ROWS, 1);
    give_line(c, DW, GEMMEPI_F32, CAST_COLUMNS);
    give_operand(c, "x", GEMMEPI_FULL, A, 0);
    give_operand(c, "small", GEMMEPI_FULL, DA, 1);
    give_operand(c, "s", GEMMEPI_PER_ROW, DB, 1);
    give_operand(c, "t", GEMMEPI_PER_COLUMN, DW, 1);
    c->operands[1].scale.mode = GEMMEPI_SCALE_TENSOR, c->operands[1].amax = 1;
    c->scales[1] = (float *)number_memory[0], c->amax[1] = number_memory[2];
    end_formula(c, "small = 2 * x; s = row_sum(x); t = column_sum(x * x)");
}

/* What a run of each does, in the order of calls of the driver. */
static const struct {
    const char *name;
    void (*make)(element_call *c);
    gemmepi_route route;
    int memsets, kernels, has_workspace;
} element_calls[] = {
    {"dense", dense_call, GEMMEPI_ROUTE_CONTIGUOUS, 0, 1, 0},
    {"transposed", transposed_call, GEMMEPI_ROUTE_STRIDED, 0, 1, 0},
    {"split", split_call, GEMMEPI_ROUTE_STRIDED, 0, 1, 0},
    {"small sum", small_sum_call, GEMMEPI_ROUTE_SUM, 0, 1, 0},
    {"sum of nothing", sum_of_nothing_call, GEMMEPI_ROUTE_SUM, 0, 1, 0},
    {"large sum", large_sum_call, GEMMEPI_ROUTE_SUM, 0, 2, 1},
    {"sums beside a loop", lerp_call, GEMMEPI_ROUTE_SUM, 0, 5, 1},
    {"cast", plain_cast, GEMMEPI_ROUTE_CONTIGUOUS, 0, 1, 0},
    {"cast with scale", cast_with_scale, GEMMEPI_ROUTE_CONTIGUOUS, 0, 1, 0},
    {"cast with amax", cast_with_amax, GEMMEPI_ROUTE_CONTIGUOUS, 1, 1, 0},
    {"cast of a new scale", cast_of_new_scale, GEMMEPI_ROUTE_SCALED, 0, 2, 1},
    {"cast of a new scale of odd rows", cast_of_new_scale_of_odd_rows, GEMMEPI_ROUTE_SCALED, 1, 2, 1},
    {"cast to both layouts", cast_to_both_layouts, GEMMEPI_ROUTE_SCALED, 0, 1, 0},
    {"cast of rows", cast_of_rows, GEMMEPI_ROUTE_SCALED, 0, 1, 0},
    {"cast of rows with amax", cast_of_rows_with_amax, GEMMEPI_ROUTE_SCALED, 1, 1, 0},
    {"cast of new rows", cast_of_new_rows, GEMMEPI_ROUTE_SCALED, 1, 2, 1},
    {"cast of new rows with amax", cast_of_new_rows_with_amax, GEMMEPI_ROUTE_SCALED, 0, 1, 0},
    {"cast of new blocks", cast_of_new_blocks, GEMMEPI_ROUTE_SCALED, 0, 1, 0},
    {"empty", empty_call, GEMMEPI_ROUTE_EMPTY, 0, 0, 0},
    {"formula", dense_formula, GEMMEPI_ROUTE_CONTIGUOUS, 0, 1, 0},
    {"transposed formula", transposed_formula, GEMMEPI_ROUTE_STRIDED, 0, 1, 0},
    {"formula with sums and amax", formula_with_sums_and_amax, GEMMEPI_ROUTE_SUM, 1, 2, 1},
    {"empty formula", empty_formula, GEMMEPI_ROUTE_EMPTY, 0, 0, 0},
};

enum { ELEMENT_CALLS = (int)GPI__COUNT(element_calls) };

static gemmepi_status call_at_any_time(gemmepi_context *context, const element_call *c,
                                       gemmepi_stream stream) {
    const gemmepi_elementwise_desc *d = &c->desc;
    switch (d->operation) {
    case GEMMEPI_OP_ACTIVATION:
        return gemmepi_activation(context, d->activation, NAN, d->a, d->y, stream);
    case GEMMEPI_OP_BIAS_GRAD:
        return gemmepi_bias_grad(context, d->a, d->axis, 0, d->y, stream);
    default:
        return d->operation == GEMMEPI_OP_CAST && !d->flags
                   ? gemmepi_cast(context, d->a, d->y, stream)
                   : gemmepi_elementwise(context, d, &c->args, stream);
    }
}

/* NULL where it has none, which CHECK has said. */
static gemmepi_plan *plan_elementwise(gemmepi_context *context, const element_call *c) {
    gemmepi_plan *plan = NULL;
    CHECK(gemmepi_plan_elementwise(context, &c->desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return plan;
}

/* Kernels launched and numbers cleared, since the last time it was asked. */
static long calls_of_the_driver(void) {
    long calls = gpu.launches + gpu.memsets;
    gpu.launches = gpu.memsets = 0;
    return calls;
}

static void nothing_is_left_and_cublaslt_was_not_loaded(void) {
    CHECK(gpu.asked_lt == 0, "cuBLASLt was asked for %ld functions", gpu.asked_lt);
    nothing_is_left();
}

#endif
