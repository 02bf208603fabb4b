/* What is refused of element-wise formulas: the status and words of the sentence, nothing written; and what looks like it but is taken. */
#include <stdarg.h>

#include "../test.h"
#include "gemmepi.h"

static gemmepi_context *host;

/* The call that each case spoils: y [2, 6, 8] with operands of every kind, in F32. */
enum { ITEMS = 2, ROWS = 6, COLUMNS = 8, SPACE = 1024 };
enum { X, UP, GAIN, RSTD, SCALE, NUMBER, COPY, SUM, TOTAL, COUNT };

static gemmepi_elementwise_desc desc;
static gemmepi_elementwise_args args;
static gemmepi_operand operands[40];
static gemmepi_tensor tensors[COUNT], y;
static int64_t shapes[COUNT][3], strides[COUNT][3], y_shape[3];
static void *pointers[COUNT];
static const float *scales[COUNT];
static void *amax[COUNT];
static float memory[16][SPACE];
static double number = 2;

static void start(void) {
    static const struct {
        const char *name;
        gemmepi_operand_kind kind;
        int output, rank;
        int64_t shape[3];
    } rows[COUNT] = {{"x", GEMMEPI_FULL, 0, 3, {ITEMS, ROWS, COLUMNS}},
                     {"up", GEMMEPI_FULL, 0, 2, {ROWS, COLUMNS, 0}},
                     {"gain", GEMMEPI_PER_COLUMN, 0, 1, {COLUMNS, 0, 0}},
                     {"rstd", GEMMEPI_PER_ROW, 0, 3, {ITEMS, ROWS, 1}},
                     {"scale", GEMMEPI_SCALAR, 0, 0, {0, 0, 0}},
                     {"number", GEMMEPI_NUMBER, 0, 0, {0, 0, 0}},
                     {"copy", GEMMEPI_FULL, 1, 3, {ITEMS, ROWS, COLUMNS}},
                     {"sum", GEMMEPI_PER_ROW, 1, 3, {ITEMS, ROWS, 1}},
                     {"total", GEMMEPI_PER_COLUMN, 1, 1, {COLUMNS, 0, 0}}};
    int i, d;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    memset(operands, 0, sizeof operands);
    memset(tensors, 0, sizeof tensors);
    memset(&y, 0, sizeof y);
    memset(scales, 0, sizeof scales);
    memset(amax, 0, sizeof amax);
    for (i = 0; i < 16 * SPACE; i++)
        (&memory[0][0])[i] = (float)(i % 7);
    for (i = 0; i < COUNT; i++) {
        int64_t dense = 1;
        operands[i].name = rows[i].name;
        operands[i].kind = rows[i].kind;
        operands[i].output = rows[i].output;
        pointers[i] = rows[i].kind == GEMMEPI_NUMBER ? (void *)&number : (void *)memory[3 + i];
        operands[i].tensor = rows[i].kind == GEMMEPI_NUMBER ? NULL : &tensors[i];
        tensors[i].rank = rows[i].rank, tensors[i].shape = shapes[i], tensors[i].stride = strides[i];
        memcpy(shapes[i], rows[i].shape, sizeof shapes[i]);
        for (d = rows[i].rank - 1; d >= 0; d--)
            strides[i][d] = dense, dense *= shapes[i][d];
    }
    y_shape[0] = ITEMS, y_shape[1] = ROWS, y_shape[2] = COLUMNS;
    y.rank = 3, y.shape = y_shape;
    desc.formula =
        "copy = x * gain; d = copy * rstd * scale * number + up; sum = row_sum(x); total = column_sum(x)";
    desc.operands = operands, desc.operand_count = COUNT, desc.y = &y;
    args.y = memory[0];
    args.operands = pointers, args.operand_scales = scales, args.operand_amax = amax;
}

/* Refused, each of the words in the sentence, and no tensor changed. */
static void refuse_as(gemmepi_status status, int line, int count, ...) {
    static float before[16][SPACE];
    gemmepi_status got;
    va_list words;
    memcpy(before, memory, sizeof before);
    got = gemmepi_elementwise(host, &desc, &args, NULL);
    CHECK(got == status, "line %d: %s: %s", line, gemmepi_status_name(got), gemmepi_last_error());
    va_start(words, count);
    while (count-- > 0) {
        const char *word = va_arg(words, const char *);
        CHECK(strstr(gemmepi_last_error(), word) != NULL, "line %d: \"%s\" is not in: %s", line, word,
              gemmepi_last_error());
    }
    va_end(words);
    CHECK(memcmp(before, memory, sizeof before) == 0, "line %d: something was written", line);
    start();
}

#define REFUSED(a, b, c) refuse_as(GEMMEPI_INVALID_ARGUMENT, __LINE__, 3, a, b, c)

#define TAKEN()                                                                                         \
    do {                                                                                                \
        CHECK(gemmepi_elementwise(host, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error()); \
        start();                                                                                        \
    } while (0)

static void the_base_is_taken(void) {
    start();
    TAKEN();
}

static void a_formula_takes_the_operations_place(void) {
    start();
    desc.operation = GEMMEPI_OP_LERP;
    REFUSED("desc.formula is given, and desc.operation", "5", "");
    desc.operation = GEMMEPI_OP_LERP, desc.formula = NULL;
    REFUSED("desc.operands is given, and desc.operation", "", "");
    desc.formula = NULL;
    REFUSED("desc.operands is given", "desc.formula is NULL", "");
    desc.formula = NULL, desc.operands = NULL, desc.operand_count = 0;
    REFUSED("desc.operation is 0", "0 with a formula", "");
    desc.activation = GEMMEPI_RELU;
    REFUSED("desc.activation is not 0 with desc.formula", "", "");
    desc.axis = 1;
    REFUSED("desc.axis", "leave it 0", "");
    desc.flags = GEMMEPI_ACCUMULATE;
    REFUSED("desc.flags", "leave it 0", "");
    desc.a = &y;
    REFUSED("desc.a, b, w or dy", "", "");
    desc.dw = &y;
    REFUSED("desc.da, db or dw", "", "");
    desc.alignment = 3;
    REFUSED("desc.alignment is 3", "", "");
    args.a = memory[15];
    REFUSED("args.a is given", "y and operands", "");
    args.amax = memory[15];
    REFUSED("args.amax is given", "", "");
    args.weight = 2;
    REFUSED("args.weight is 2", "", "");
}

static void texts_are_refused_where_they_go_wrong(void) {
    start();
    desc.formula = "d = x +";
    REFUSED("desc.formula", "column 8", "");
    desc.formula = "d = v";
    REFUSED("v is not known here", "", "");
    desc.formula_result = "x";
    REFUSED("desc.operands[0].name is x", "the result", "");
    desc.y = NULL, args.y = NULL;
    REFUSED("y is NULL", "assigns d", "");
    desc.formula = "copy = x; sum = row_sum(x); total = column_sum(x)";
    REFUSED("y is given", "does not assign d", "");
}

static void operands_are_refused(void) {
    start();
    operands[X].tensor = NULL;
    REFUSED("desc.operands[0].tensor is NULL", "each operand but a NUMBER", "");
    operands[NUMBER].tensor = &y;
    REFUSED("desc.operands[5].tensor is given", "NUMBER", "");
    operands[X].ld = 8;
    REFUSED("desc.operands[0].ld is 8", "strides", "");
    operands[X].batch_stride = 8;
    REFUSED("desc.operands[0].batch_stride is 8", "strides", "");
    operands[X].dtype = GEMMEPI_BF16;
    REFUSED("desc.operands[0].dtype is BF16", "its tensor has F32", "");
    tensors[X].dtype = (gemmepi_dtype)99;
    REFUSED("desc.operands[0].tensor.dtype is 99", "no gemmepi_dtype", "");
    tensors[COPY].dtype = GEMMEPI_I64;
    REFUSED("desc.operands[6].tensor.dtype (of copy) is I64", "accepted here", "");
    tensors[UP].dtype = GEMMEPI_F64;
    REFUSED("y has the dtype F32", "F64", "");
    y.dtype = GEMMEPI_F64;
    REFUSED("desc.operands[0].tensor.dtype (of x) is F32", "F64", "");
    y.dtype = GEMMEPI_I64;
    REFUSED("y.dtype is I64", "", "");
    tensors[X].rank = 9;
    REFUSED("desc.operands[0].tensor.rank is 9", "0 to 8", "");
    tensors[X].shape = NULL;
    REFUSED("desc.operands[0].tensor.shape is NULL", "", "");
    tensors[X].bytes = 100;
    REFUSED("desc.operands[0].tensor.bytes is 100", "", "");
    operands[UP].kind = (gemmepi_operand_kind)0;
    REFUSED("desc.operands[1].kind (of up) is 0", "", "");
    operands[RSTD].width = GEMMEPI_WIDTH_HALF;
    REFUSED("desc.operands[3].width", "", "");
    operands[COPY].accumulate = 1;
    REFUSED("copy accumulates", "", "");
    desc.operand_count = 33;
    REFUSED("desc.operand_count is 33", "32", "");
    desc.operands = NULL;
    REFUSED("desc.operands is NULL", "", "");
    operands[X].dtype = GEMMEPI_F32;
    TAKEN();
}

static void shapes_are_refused(void) {
    start();
    shapes[UP][1] = 7;
    REFUSED("desc.operands[1].tensor has the shape [6, 7], the operation [2, 6, 8]", "same extent or 1", "");
    shapes[RSTD][2] = COLUMNS;
    REFUSED("desc.operands[3].tensor", "PER_ROW operands have the extent 1 in columns", "");
    tensors[GAIN].rank = 2, shapes[GAIN][0] = ROWS, shapes[GAIN][1] = COLUMNS;
    REFUSED("desc.operands[2].tensor", "PER_COLUMN operands have the extent 1 in rows", "");
    tensors[SCALE].rank = 1, shapes[SCALE][0] = COLUMNS;
    REFUSED("desc.operands[4].tensor", "SCALARs", "");
    shapes[COPY][0] = 1;
    REFUSED("desc.operands[6].tensor", "FULL have all of it", "");
    tensors[COPY].rank = 2;
    REFUSED("desc.operands[6].tensor has the shape [2, 6]", "FULL have all of it", "");
    y_shape[0] = 1;
    REFUSED("y has the shape [1, 6, 8], the operation [2, 6, 8]", "", "");
    shapes[SUM][0] = 1;
    REFUSED("desc.operands[7].tensor", "an output has all of it", "");
    shapes[TOTAL][0] = 1;
    REFUSED("desc.operands[8].tensor", "an output has all of it", "");
    operands[UP].row_period = 3;
    REFUSED("desc.operands[1].tensor", "an axis with a period has that extent", "");
    operands[UP].kind = GEMMEPI_BLOCKED, operands[UP].block_rows = 1, operands[UP].block_columns = 4;
    REFUSED("desc.operands[1].tensor", "of what is BLOCKED each axis has the extent through block_rows", "");
    operands[UP].kind = GEMMEPI_BLOCKED, operands[UP].block_columns = 4;
    REFUSED("desc.operands[1].block_rows (of up) is 0", "", "");
    desc.formula =
        "d = left(x) * number + right(up) * scale * rstd; copy = x * gain; sum = row_sum(x); total = column_sum(x)";
    REFUSED("desc.operands[0].tensor has the shape [2, 6, 8], the operation [2, 6, 16]", "HALF half", "");
    operands[UP].row_period = 3, shapes[UP][0] = 3;
    TAKEN();
    shapes[UP][0] = 1;
    TAKEN();
}

static void items_of_reductions_are_refused_where_no_one_step_leads_to_the_next(void) {
    static int64_t shape[4] = {2, 2, 6, 8}, of_sum[4] = {2, 2, 6, 1}, wrong[4] = {6, 13, 1, 1};
    start();
    y.rank = tensors[X].rank = tensors[COPY].rank = tensors[SUM].rank = tensors[RSTD].rank = 4;
    y.shape = tensors[X].shape = tensors[COPY].shape = shape, tensors[SUM].shape = of_sum,
    tensors[RSTD].shape = of_sum;
    tensors[X].stride = tensors[COPY].stride = tensors[SUM].stride = tensors[RSTD].stride = NULL;
    tensors[SUM].stride = wrong;
    REFUSED("desc.operands[7].tensor is a reduction's", "dense", "");
}

/* y and a FULL output, beside a sum by rows whose items are dense. */
static void outputs_that_are_no_reductions_have_any_strides(void) {
    static int64_t shape[4] = {2, 2, 6, 8}, of_sum[4] = {2, 2, 6, 1}, sparse[4] = {200, 50, 8, 1};
    start();
    y.rank = tensors[X].rank = tensors[COPY].rank = tensors[SUM].rank = tensors[RSTD].rank = 4;
    y.shape = tensors[X].shape = tensors[COPY].shape = shape, tensors[SUM].shape = of_sum,
    tensors[RSTD].shape = of_sum;
    y.stride = tensors[COPY].stride = sparse;
    tensors[X].stride = tensors[SUM].stride = tensors[RSTD].stride = NULL;
    TAKEN();
}

/* y, or what all is computed in: F32, F64 where a tensor is. */
static void over_tensors_rounded_is_of_what_y_has(void) {
    static double in_f64[2] = {0.1, 1 + 0x1p-40}, out_of_f64[2];
    int64_t shape[1] = {2};
    start();
    desc.formula = "copy = rounded(x)";
    desc.operands = operands, operands[1] = operands[COPY], desc.operand_count = 2, desc.y = NULL;
    tensors[X].rank = tensors[COPY].rank = 1;
    tensors[X].shape = tensors[COPY].shape = shape, tensors[X].stride = tensors[COPY].stride = NULL;
    args.y = NULL, pointers[1] = memory[4], memory[3][0] = 1 + 0x1p-20f;
    CHECK(gemmepi_elementwise(host, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(memory[4][0] == 1 + 0x1p-20f, "F32: %.9g", (double)memory[4][0]);
    desc.formula = "copy = rounded(x); d = x";
    desc.y = &y, y.rank = 1, y.shape = shape, y.dtype = GEMMEPI_BF16, args.y = memory[0];
    CHECK(gemmepi_elementwise(host, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(memory[4][0] == 1, "BF16: %.9g", (double)memory[4][0]);
    desc.formula = "copy = rounded(x)";
    desc.y = NULL, args.y = NULL, tensors[X].dtype = tensors[COPY].dtype = GEMMEPI_F64;
    pointers[X] = in_f64, pointers[1] = out_of_f64;
    CHECK(gemmepi_elementwise(host, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(out_of_f64[0] == in_f64[0] && out_of_f64[1] == in_f64[1], "F64: %.17g and %.17g", out_of_f64[0],
          out_of_f64[1]);
    start();
}

static void an_output_in_one_place_is_refused(void) {
    start();
    strides[COPY][1] = 0;
    REFUSED("desc.operands[6].tensor is written", "same place", "");
    strides[SUM][0] = 3;
    REFUSED("desc.operands[7].tensor is written", "same place", "");
}

static void pointers_are_refused(void) {
    start();
    args.y = NULL;
    REFUSED("args.y is NULL", "the formula has it", "");
    pointers[X] = NULL;
    REFUSED("args.operands[0] (of x) is NULL", "", "");
    pointers[NUMBER] = NULL;
    REFUSED("args.operands[5] (of number) is NULL", "double", "");
    args.operands = NULL;
    REFUSED("is NULL", "(of x)", "");
    scales[X] = memory[15];
    REFUSED("args.operand_scales[0] (of x) is given", "no scale.mode", "");
    amax[COPY] = memory[15];
    REFUSED("args.operand_amax[6] (of copy) is given", "no amax", "");
    pointers[X] = (char *)memory[3] + 2;
    refuse_as(GEMMEPI_MISALIGNED, __LINE__, 2, "args.operands[0] (of x)", "multiple of 4");
    args.workspace_size = 8;
    REFUSED("args.workspace is NULL", "", "");
    tensors[X].data = memory[3], pointers[X] = NULL;
    TAKEN();
}

static void scales_come_where_they_are_asked_for(void) {
    start();
    tensors[COPY].dtype = GEMMEPI_E4M3;
    TAKEN();
    tensors[COPY].dtype = GEMMEPI_E4M3, operands[COPY].scale.mode = GEMMEPI_SCALE_TENSOR,
    operands[COPY].amax = 1;
    REFUSED("args.operand_scales[6] (of copy) is NULL", "desc has a scale.mode", "");
    tensors[COPY].dtype = GEMMEPI_E4M3, operands[COPY].amax = 1;
    REFUSED("args.operand_amax[6] (of copy) is NULL", "desc has amax", "");
    tensors[COPY].dtype = GEMMEPI_E4M3, operands[COPY].amax = 1, amax[COPY] = memory[0];
    REFUSED("args.operand_amax[6] (of copy)", "overlaps", "args.y");
    operands[COPY].amax = 1;
    REFUSED("desc.operands[6].amax", "E4M3", "");
}

static void overlaps_are_refused(void) {
    static const int64_t by_turns[3] = {2 * ROWS * COLUMNS, 2 * COLUMNS, 2};
    int i;
    start();
    pointers[COPY] = memory[0];
    REFUSED("args.y", "overlaps", "args.operands[6] (of copy)");
    args.y = memory[3] + 4;
    REFUSED("args.y", "overlaps args.operands[0] (of x)", "exactly a FULL input");
    pointers[SUM] = memory[3];
    REFUSED("args.operands[7] (of sum)", "overlaps args.operands[0] (of x)", "");
    for (i = 1; i < COLUMNS; i++) { /* within a row */
        args.y = memory[3] + i;
        REFUSED("args.y", "overlaps args.operands[0] (of x)", "");
    }
    for (i = 1; i <= 2; i++) { /* columns of both by turns */
        y.stride = by_turns;
        memcpy(strides[X], by_turns, sizeof by_turns);
        args.y = memory[3] + i;
        if (i == 1)
            TAKEN();
        else
            REFUSED("args.y", "overlaps args.operands[0] (of x)", "");
    }
    args.y = memory[3];
    TAKEN();
    strides[X][0] = 64;
    args.y = memory[3];
    REFUSED("args.y", "overlaps args.operands[0] (of x)", "");
    desc.formula =
        "copy = left(x) * gain; d = number * rstd * scale + up; sum = row_sum(x); total = column_sum(x)";
    operands[COPY].width = operands[GAIN].width = GEMMEPI_WIDTH_HALF;
    shapes[COPY][2] = shapes[GAIN][0] = COLUMNS / 2;
    args.y = memory[3];
    REFUSED("args.y", "not read through left", "");
}

static void plans_take_no_data_of_tensors(void) {
    gemmepi_plan *plan = NULL;
    start();
    tensors[X].data = memory[3];
    pointers[X] = NULL;
    CHECK(gemmepi_plan_elementwise(host, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_run_elementwise(plan, &args, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "(of x) is NULL"),
          "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    start();
}

static void products_take_no_tensors(void) {
    gemmepi_matmul_desc product;
    start();
    memset(&product, 0, sizeof product);
    product.m = ROWS, product.n = COLUMNS, product.k = 2;
    product.formula = "d = v + up";
    product.operands = &operands[UP], product.operand_count = 1;
    CHECK(gemmepi_matmul(host, &product, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT, "%s", gemmepi_last_error());
    {
        gemmepi_plan *plan = NULL;
        CHECK(gemmepi_plan_matmul(host, &product, &plan) == GEMMEPI_INVALID_ARGUMENT &&
                  strstr(gemmepi_last_error(), "desc.operands[0].tensor (of up) is given"),
              "%s", gemmepi_last_error());
    }
}

static void derivation_knows_the_types_of_tensors(void) {
    gemmepi_derive_desc derive;
    gemmepi_operand derived[8];
    char text[256];
    start();
    memset(&derive, 0, sizeof derive);
    derive.formula = "d = x * up", derive.operands = operands, derive.operand_count = 2, derive.wrt = "x";
    tensors[X].dtype = GEMMEPI_I64;
    CHECK(gemmepi_derive(&derive, text, sizeof text) == 0 && strstr(gemmepi_last_error(), "whole numbers"),
          "%s", gemmepi_last_error());
    tensors[X].dtype = GEMMEPI_F64, tensors[UP].dtype = GEMMEPI_F64;
    CHECK(gemmepi_derive_operands(&derive, derived, 8) == 3, "%s", gemmepi_last_error());
    CHECK(derived[1].tensor == &tensors[UP] && derived[2].tensor == NULL &&
              derived[2].dtype == GEMMEPI_DTYPE_DEFAULT,
          "operands have no tensors");
}

/* x is [2, 6, 8] with strides 48, 8, 1: of 4 bits 48 bytes. */
static void tensors_of_4_bits_have_whole_bytes(void) {
    start();
    tensors[X].dtype = GEMMEPI_I4;
    TAKEN();
    tensors[X].dtype = GEMMEPI_I4, strides[X][1] = 9;
    REFUSED("desc.operands[0].tensor.stride (of x) is 9 along axis 1", "I4", "even numbers");
    tensors[X].dtype = GEMMEPI_U4, strides[X][0] = -47;
    REFUSED("desc.operands[0].tensor.stride (of x) is -47 along axis 0", "U4", "even numbers");
    tensors[X].dtype = GEMMEPI_E2M1, strides[X][2] = 6, strides[X][1] = 2;
    REFUSED("desc.operands[0].tensor.stride (of x) is 6 along axis 2", "E2M1", "1 along the last axis");
    tensors[UP].dtype = GEMMEPI_I4, shapes[UP][1] = 1;
    REFUSED("desc.operands[1].tensor (of up) has 1 elements along the last axis", "I4", "even numbers");
    tensors[UP].dtype = GEMMEPI_I4, shapes[UP][1] = 5, operands[UP].column_period = 5;
    REFUSED("desc.operands[1].tensor (of up) has 5 elements along the last axis", "I4", "even numbers");
    tensors[X].dtype = GEMMEPI_I4, tensors[X].bytes = 48;
    TAKEN();
    tensors[X].dtype = GEMMEPI_I4, tensors[X].bytes = 47;
    REFUSED("desc.operands[0].tensor.bytes is 47", "from byte 0 to byte 48", "");
    tensors[X].dtype = GEMMEPI_I4, args.y = memory[1], pointers[X] = (char *)memory[1] - 48;
    TAKEN();
    tensors[X].dtype = GEMMEPI_I4, args.y = memory[1], pointers[X] = (char *)memory[1] - 48 + 16;
    REFUSED("args.y", "overlaps args.operands[0] (of x)", "");
    tensors[X].dtype = GEMMEPI_I4, pointers[X] = memory[0];
    REFUSED("args.y", "overlaps args.operands[0] (of x)", "");
    tensors[GAIN].dtype = GEMMEPI_I4;
    REFUSED("desc.operands[2].tensor.dtype (of gain) is I4", "accepted here", "of the kinds FULL");
    y.dtype = GEMMEPI_E2M1;
    REFUSED("y.dtype is E2M1", "accepted are F32", "of the kinds FULL");
    y.dtype = GEMMEPI_E8M0;
    REFUSED("y.dtype is E8M0", "accepted are F32", "");
    tensors[GAIN].dtype = GEMMEPI_E8M0;
    TAKEN();
}

int main(void) {
    gemmepi_config config;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    if (gemmepi_create(&config, &host) != GEMMEPI_OK) {
        printf("%s\n", gemmepi_last_error());
        return 1;
    }
    RUN(the_base_is_taken);
    RUN(a_formula_takes_the_operations_place);
    RUN(texts_are_refused_where_they_go_wrong);
    RUN(operands_are_refused);
    RUN(shapes_are_refused);
    RUN(items_of_reductions_are_refused_where_no_one_step_leads_to_the_next);
    RUN(outputs_that_are_no_reductions_have_any_strides);
    RUN(over_tensors_rounded_is_of_what_y_has);
    RUN(an_output_in_one_place_is_refused);
    RUN(pointers_are_refused);
    RUN(scales_come_where_they_are_asked_for);
    RUN(overlaps_are_refused);
    RUN(plans_take_no_data_of_tensors);
    RUN(products_take_no_tensors);
    RUN(derivation_knows_the_types_of_tensors);
    RUN(tensors_of_4_bits_have_whole_bytes);
    gemmepi_destroy(host);
    return test_finish();
}
