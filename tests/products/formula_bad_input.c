/* What is refused of products with formulas: the status and words of the sentence, nothing written; and what looks like it but is taken. */
#include <stdarg.h>

#include "../test.h"
#include "gemmepi.h"

static gemmepi_context *host;

/* The call that each case spoils: D [6, 8] = A [6, 4] B [4, 8] of batch 2 in F32, with operands of every kind. */
enum { M = 6, N = 8, K = 4, BATCH = 2, SPACE = 1024 };
enum { FULL, UP, GAIN, RSTD, SCALE, NUMBER, COPY, SUM, TOTAL, COUNT };

static gemmepi_matmul_desc desc;
static gemmepi_matmul_args args;
static gemmepi_operand operands[40];
static void *pointers[COUNT];
static const float *scales[COUNT];
static void *amax[COUNT];
static float memory[16][SPACE];
static double number = 2;

static void start(void) {
    static const struct {
        const char *name;
        gemmepi_operand_kind kind;
        int output;
        int64_t batch_stride;
    } rows[COUNT] = {{"full", GEMMEPI_FULL, 0, 64},      {"up", GEMMEPI_FULL, 0, 64},
                     {"gain", GEMMEPI_PER_COLUMN, 0, 0}, {"rstd", GEMMEPI_PER_ROW, 0, M},
                     {"scale", GEMMEPI_SCALAR, 0, 0},    {"number", GEMMEPI_NUMBER, 0, 0},
                     {"copy", GEMMEPI_FULL, 1, 64},      {"sum", GEMMEPI_PER_ROW, 1, M},
                     {"total", GEMMEPI_PER_COLUMN, 1, 0}};
    int i;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    memset(operands, 0, sizeof operands);
    memset(scales, 0, sizeof scales);
    memset(amax, 0, sizeof amax);
    for (i = 0; i < 16 * SPACE; i++)
        (&memory[0][0])[i] = (float)(i % 7);
    for (i = 0; i < COUNT; i++) {
        operands[i].name = rows[i].name;
        operands[i].kind = rows[i].kind;
        operands[i].output = rows[i].output;
        operands[i].batch_stride = rows[i].batch_stride;
        pointers[i] = rows[i].kind == GEMMEPI_NUMBER ? (void *)&number : (void *)memory[3 + i];
    }
    desc.m = M, desc.n = N, desc.k = K, desc.batch = BATCH;
    desc.a.batch_stride = M * K, desc.d.batch_stride = 64;
    desc.formula =
        "copy = v * gain + full; d = copy * rstd * scale * number + up; sum = row_sum(v); total = column_sum(v)";
    desc.operands = operands;
    desc.operand_count = COUNT;
    args.a = memory[0], args.b = memory[1], args.d = memory[2];
    args.operands = pointers;
}

static gemmepi_status run(void) {
    return gemmepi_matmul(host, &desc, &args, NULL);
}

/* Refused, each of the words in the sentence, and no tensor changed. */
static void refuse_as(gemmepi_status status, int line, int count, ...) {
    static float before[16][SPACE];
    gemmepi_status got;
    va_list words;
    memcpy(before, memory, sizeof before);
    got = run();
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

#define TAKEN()                                                 \
    do {                                                        \
        CHECK(run() == GEMMEPI_OK, "%s", gemmepi_last_error()); \
        start();                                                \
    } while (0)

static void the_base_is_taken(void) {
    start();
    TAKEN();
}

static void texts_are_refused_where_they_go_wrong(void) {
    start();
    desc.operands = NULL, desc.operand_count = 0;
    desc.formula = "d = v +";
    REFUSED("desc.formula", "column 8", "");
    desc.formula = "d = v + unknown";
    REFUSED("desc.formula, column 9", "unknown is not known here", "");
    desc.operands = NULL, desc.operand_count = 0;
    desc.formula = "";
    REFUSED("desc.formula", "no output", "");
    desc.formula = "d = v; d = 2 * v";
    REFUSED("d has a value already", "", "");
    desc.formula = "d = row_sum(v)";
    REFUSED("d is a matrix", "", "");
    desc.formula = "d = left(v) + v";
    desc.operands = NULL, desc.operand_count = 0;
    REFUSED("equal widths", "n / 2", "");
    desc.formula = "d = v; full = v";
    REFUSED("full is an input", "desc.operands[0].output", "");
    desc.formula = "sum = column_sum(v)";
    REFUSED("sum is PER_ROW", "column_sum", "row_sum");
    desc.formula = "copy = v; sum = row_sum(v)";
    REFUSED("total", "has not been assigned", "");
}

static void names_are_refused(void) {
    start();
    operands[UP].name = "full";
    REFUSED("desc.operands[1].name is full", "before it", "");
    operands[UP].name = "v";
    REFUSED("desc.operands[1].name is v", "the value", "");
    operands[UP].name = NULL;
    REFUSED("desc.operands[1].name", "NULL", "");
    operands[UP].name = "silu";
    REFUSED("silu", "a name of the language", "");
    desc.formula_value = "3v";
    REFUSED("desc.formula_value", "3v", "");
    desc.formula_result = desc.formula_value = "same";
    REFUSED("desc.formula_value and desc.formula_result", "same", "");
}

static void operands_are_refused(void) {
    start();
    operands[UP].kind = (gemmepi_operand_kind)0;
    REFUSED("desc.operands[1].kind (of up) is 0", "GEMMEPI_BLOCKED", "");
    operands[RSTD].width = GEMMEPI_WIDTH_HALF;
    REFUSED("desc.operands[3].width (of rstd) is 1", "PER_COLUMN", "");
    operands[GAIN].dtype = GEMMEPI_F64;
    REFUSED("desc.operands[2].dtype (of gain) is F64", "BF16", "");
    operands[GAIN].dtype = (gemmepi_dtype)99;
    REFUSED("desc.operands[2].dtype", "99", "");
    operands[COPY].dtype = GEMMEPI_I64;
    REFUSED("desc.operands[6].dtype", "I64", "");
    operands[GAIN].output = 2;
    REFUSED("desc.operands[2].output (of gain) is 2", "", "");
    operands[NUMBER].output = 1;
    REFUSED("desc.operands[5].output", "NUMBER", "");
    operands[COPY].accumulate = 1;
    REFUSED("copy accumulates", "only sums", "");
    operands[GAIN].accumulate = 1;
    REFUSED("desc.operands[2].accumulate", "outputs", "");
    operands[RSTD].ld = 9;
    REFUSED("desc.operands[3].ld (of rstd) is 9", "FULL", "");
    operands[FULL].ld = 7;
    REFUSED("desc.operands[0].ld is 7", "has 8 elements", "the formula calls it full");
    operands[FULL].batch_stride = -1;
    REFUSED("desc.operands[0].batch_stride (of full) is -1", "", "");
    operands[NUMBER].batch_stride = 4;
    REFUSED("desc.operands[5].batch_stride (of number) is 4", "", "");
    operands[COPY].row_period = 2;
    REFUSED("desc.operands[6].row_period (of copy) is 2", "inputs", "");
    operands[SCALE].column_period = 2;
    REFUSED("desc.operands[4].column_period", "", "");
    operands[UP].kind = GEMMEPI_BLOCKED, operands[UP].block_columns = 4;
    REFUSED("desc.operands[1].block_rows (of up) is 0", "1 or more", "");
    operands[UP].kind = GEMMEPI_BLOCKED, operands[UP].block_rows = 2;
    REFUSED("desc.operands[1].block_columns (of up) is 0", "1 or more", "");
    operands[GAIN].block_columns = 4;
    REFUSED("desc.operands[2].block_columns (of gain) is 4", "other kinds 0", "");
    operands[UP].kind = GEMMEPI_BLOCKED, operands[UP].block_rows = 2, operands[UP].block_columns = 3,
    operands[UP].ld = 2;
    REFUSED("desc.operands[1].ld is 2", "has 3 elements", "the formula calls it up");
    operands[FULL].amax = 1;
    REFUSED("desc.operands[0].amax (of full) is 1", "outputs", "");
    operands[FULL].scale.mode = GEMMEPI_SCALE_TENSOR;
    REFUSED("desc.operands[0].scale.mode (of full) is TENSOR (1)", "E4M3", "");
    operands[FULL].dtype = GEMMEPI_E4M3, operands[FULL].scale.mode = GEMMEPI_SCALE_OUTER;
    REFUSED("desc.operands[0].scale.mode (of full) is OUTER (2)", "", "");
    operands[FULL].dtype = GEMMEPI_E4M3, operands[FULL].scale.mode = GEMMEPI_SCALE_TENSOR,
    operands[FULL].scale.batch_stride = 1;
    REFUSED("desc.operands[0].scale.batch_stride (of full) is 1", "one scale", "");
    operands[SUM].dtype = GEMMEPI_E4M3, operands[SUM].scale.mode = GEMMEPI_SCALE_TENSOR,
    operands[SUM].accumulate = 1;
    REFUSED("desc.operands[7].scale.mode (of sum)", "accumulates", "");
    operands[COPY].batch_stride = 0;
    REFUSED("desc.operands[6].batch_stride is 0", "overlap", "copy");
    operands[COPY].batch_stride = 47;
    REFUSED("desc.operands[6].batch_stride is 47", "at least 48", "");
    operands[SUM].batch_stride = 0;
    REFUSED("desc.operands[7].batch_stride is 0", "overlap", "sum");
    operands[TOTAL].dtype = GEMMEPI_I32, desc.d.batch_stride = 0;
    desc.formula = "sum = row_sum(v); total = column_argmax(v); copy = v";
    REFUSED("desc.operands[8].batch_stride is 0", "overlap", "total");
    desc.operand_count = 33;
    REFUSED("desc.operand_count is 33", "32", "");
    desc.operand_count = -1;
    REFUSED("desc.operand_count is -1", "", "");
    desc.operands = NULL;
    REFUSED("desc.operands is NULL", "desc.operand_count is 9", "");
}

/* up is [6, 8] of batch 2: in 4 bits 32 bytes from one item to the next, of which 24 are used. */
static void operands_of_4_bits_have_whole_bytes(void) {
    start();
    operands[UP].dtype = GEMMEPI_I4, operands[UP].ld = 9;
    REFUSED("desc.operands[1].ld (of up) is 9", "I4", "even numbers");
    operands[UP].dtype = GEMMEPI_U4, operands[UP].batch_stride = 63;
    REFUSED("desc.operands[1].batch_stride (of up) is 63", "U4", "even numbers");
    operands[UP].dtype = GEMMEPI_E2M1, operands[UP].column_period = 3;
    REFUSED("desc.operands[1].column_period (of up) is 3", "E2M1", "even numbers");
    operands[UP].dtype = GEMMEPI_E2M1, operands[UP].row_period = 3, desc.order = GEMMEPI_COLUMN_MAJOR;
    REFUSED("desc.operands[1].row_period (of up) is 3", "E2M1", "even numbers");
    operands[UP].dtype = GEMMEPI_I4, desc.n = 7;
    REFUSED("desc.operands[1].dtype (of up) is I4", "has 7", "even numbers");
    operands[UP].dtype = GEMMEPI_I4, desc.m = 5, desc.order = GEMMEPI_COLUMN_MAJOR;
    REFUSED("desc.operands[1].dtype (of up) is I4", "has 5", "even numbers");
    operands[UP].dtype = GEMMEPI_I4, operands[UP].row_period = 3;
    TAKEN();
    operands[UP].dtype = GEMMEPI_I4, desc.m = 5;
    TAKEN();
    operands[UP].dtype = GEMMEPI_I4, pointers[UP] = (char *)memory[2] - 56;
    TAKEN();
    operands[UP].dtype = GEMMEPI_I4, pointers[UP] = (char *)memory[2] - 55;
    REFUSED("args.d", "overlaps args.operands[1] (of up)", ", 56 bytes");
    operands[UP].dtype = GEMMEPI_I4, pointers[UP] = (char *)(memory[2] + 48); /* between the items of d */
    TAKEN();
}

static void types_that_are_only_read_go_nowhere_else(void) {
    start();
    operands[GAIN].dtype = GEMMEPI_I4;
    REFUSED("desc.operands[2].dtype (of gain) is I4 (10)", "accepted here: F32",
            "types of 4 bits are for operands of the kinds FULL and BLOCKED that a formula reads");
    operands[COPY].dtype = GEMMEPI_U4;
    REFUSED("desc.operands[6].dtype (of copy) is U4", "accepted here", "of the kinds FULL");
    operands[COPY].dtype = GEMMEPI_E8M0;
    REFUSED("desc.operands[6].dtype (of copy) is E8M0", "accepted here", "");
    operands[UP].dtype = GEMMEPI_E8M0, operands[UP].scale.mode = GEMMEPI_SCALE_TENSOR;
    REFUSED("desc.operands[1].scale.mode (of up)", "E4M3, E5M2 and I8", "");
    desc.a.dtype = GEMMEPI_I4;
    REFUSED("desc.a.dtype is I4", "operands of formulas", "only read");
    desc.b.dtype = GEMMEPI_E2M1;
    REFUSED("desc.b.dtype is E2M1", "operands of formulas", "only read");
    desc.d.dtype = GEMMEPI_E8M0;
    REFUSED("desc.d.dtype is E8M0", "accepted: F32", "; it is for operands that a formula reads");
    desc.c.dtype = GEMMEPI_U4, args.c = memory[14], args.beta = &number;
    REFUSED("desc.c.dtype is U4", "accepted: F32", "; types of 4 bits are for operands of the kinds FULL");
    operands[GAIN].dtype = GEMMEPI_E8M0, operands[RSTD].dtype = GEMMEPI_E8M0,
    operands[SCALE].dtype = GEMMEPI_E8M0;
    TAKEN();
}

static void what_stands_beside_a_formula_is_refused(void) {
    start();
    desc.epilogue = GEMMEPI_SILU;
    REFUSED("desc.epilogue is 0x1d", "desc.formula", "leave it 0");
    desc.aux.dtype = GEMMEPI_F32;
    REFUSED("desc.aux is not 0", "desc.formula", "");
    desc.residual.ld = 8;
    REFUSED("desc.residual is not 0", "", "");
    desc.bias.batch_stride = 8;
    REFUSED("desc.bias is not 0", "", "");
    desc.bias_grad.dtype = GEMMEPI_F32;
    REFUSED("desc.bias_grad is not 0", "", "");
    desc.flags = GEMMEPI_ACCUMULATE;
    REFUSED("ACCUMULATE", "args.c = args.d", "");
    desc.flags = GEMMEPI_AMAX_AUX;
    REFUSED("AMAX_AUX", "", "");
    desc.has_parameter = 1, desc.activation_parameter = 2;
    REFUSED("activation_parameter", "", "");
    args.bias = memory[14];
    REFUSED("args.bias is given", "operands instead", "");
    args.residual = memory[14];
    REFUSED("args.residual is given", "operands instead", "");
    desc.formula = NULL;
    REFUSED("desc.operands is given", "desc.formula, desc.a.formula and desc.b.formula are NULL", "");
    desc.formula = NULL, desc.operands = NULL;
    REFUSED("desc.operand_count is given", "desc.formula, desc.a.formula and desc.b.formula are NULL", "");
    desc.formula = NULL, desc.operands = NULL, desc.operand_count = 0, desc.formula_value = "x";
    REFUSED("desc.formula_value is given", "desc.formula is NULL", "");
    desc.formula = NULL, desc.operands = NULL, desc.operand_count = 0;
    REFUSED("args.operands is given", "desc.formula is NULL", "");
}

static void extents_are_refused(void) {
    start();
    desc.n = 7;
    desc.operands = NULL, desc.operand_count = 0;
    desc.formula = "d = left(v)";
    REFUSED("desc.formula, column 5: n is 7", "must be even", "");
    desc.operands = NULL, desc.operand_count = 0;
    desc.formula = "d = left(v, 6) + right(v, 6)";
    REFUSED("desc.formula, column 5", "8 columns", "groups of 6");
    desc.m = 7, desc.order = GEMMEPI_COLUMN_MAJOR;
    desc.operands = NULL, desc.operand_count = 0;
    desc.formula = "d = left(v)";
    REFUSED("m is 7", "must be even", "");
    desc.d.ld = 15;
    desc.operands = NULL, desc.operand_count = 0;
    desc.formula = "d = pair(v, v)";
    REFUSED("desc.d.ld is 15", "has 16 elements", "");
}

static void without_d_its_fields_are_refused(void) {
    const char *formula = "copy = v; sum = row_sum(v); total = column_sum(v)";
    start();
    desc.formula = formula;
    REFUSED("desc.d.batch_stride is given", "does not assign d", "");
    desc.formula = formula, desc.d.batch_stride = 0, desc.d.ld = 8;
    REFUSED("desc.d.ld is given", "does not assign d", "");
    desc.formula = formula, desc.flags = GEMMEPI_AMAX_D;
    REFUSED("desc.flags has AMAX_D", "does not assign d", "");
    desc.formula = formula, desc.d.batch_stride = 0;
    REFUSED("args.d is given", "does not assign", "");
    desc.formula = formula, desc.d.batch_stride = 0, args.d = NULL;
    TAKEN();
}

/* Nor its alignment, nor whether an output overlaps it, nor its scale. */
static void pointers_of_what_nothing_depends_on_are_not_looked_at(void) {
    static const char *const formulas[] = {
        "copy = v; d = v; sum = row_sum(v); total = column_sum(v)",
        "copy = 1 > 3 ? full : v; d = 2 < 3 ? v : gain * rstd * scale * number * up; sum = row_sum(v); total = "
        "column_sum(v)"};
    size_t f;
    int i;
    start();
    for (f = 0; f < 2; f++) {
        desc.formula = formulas[f];
        TAKEN();
        desc.formula = formulas[f];
        for (i = FULL; i < COPY; i++)
            pointers[i] = (char *)memory[2] + 1; /* within d */
        TAKEN();
        desc.formula = formulas[f];
        memset(pointers, 0, COPY * sizeof pointers[0]);
        TAKEN();
        desc.formula = formulas[f];
        operands[UP].dtype = GEMMEPI_E4M3, operands[UP].scale.mode = GEMMEPI_SCALE_TENSOR;
        scales[GAIN] = memory[0], args.operand_scales = scales;
        TAKEN();
    }
}

static void pointers_are_refused(void) {
    start();
    args.operands = NULL;
    REFUSED("args.operands is NULL", "desc.operand_count is 9", "");
    pointers[GAIN] = NULL;
    REFUSED("args.operands[2] (of gain) is NULL", "", "");
    pointers[NUMBER] = NULL;
    REFUSED("args.operands[5] (of number) is NULL", "", "");
    pointers[SUM] = NULL;
    REFUSED("args.operands[7] (of sum) is NULL", "", "");
    pointers[GAIN] = (char *)pointers[GAIN] + 2;
    refuse_as(GEMMEPI_MISALIGNED, __LINE__, 2, "args.operands[2] (of gain)", "multiple of 4 bytes");
    args.operand_scales = scales, scales[GAIN] = memory[14];
    REFUSED("args.operand_scales[2] (of gain) is given", "no scale.mode", "");
    args.operand_amax = amax, amax[COPY] = memory[14];
    REFUSED("args.operand_amax[6] (of copy) is given", "no amax", "");
    operands[FULL].dtype = GEMMEPI_E4M3, operands[FULL].scale.mode = GEMMEPI_SCALE_TENSOR;
    REFUSED("args.operand_scales[0] (of full) is NULL", "scale.mode", "");
    operands[COPY].dtype = GEMMEPI_E5M2, operands[COPY].amax = 1, args.operand_scales = scales;
    REFUSED("args.operand_amax[6] (of copy) is NULL", "amax", "");
    args.a = NULL;
    REFUSED("args.a is NULL", "", "");
}

static void overlaps_are_refused(void) {
    start();
    pointers[COPY] = memory[0];
    REFUSED("args.operands[6] (of copy)", "overlaps args.a", "; a FULL output may be exactly");
    pointers[SUM] = memory[2];
    REFUSED("args.d", "overlaps args.operands[7] (of sum)", "; a FULL output may be exactly");
    pointers[COPY] = memory[2];
    REFUSED("args.d", "overlaps args.operands[6] (of copy)", "; a FULL output may be exactly");
    pointers[UP] = memory[2] + 1;
    REFUSED("args.d", "overlaps args.operands[1] (of up)", "; a FULL output may be exactly");
    pointers[GAIN] = pointers[TOTAL];
    REFUSED("(of total)", "overlaps", "(of gain)");
    operands[UP].batch_stride = 0, pointers[UP] = memory[2];
    REFUSED("args.d", "(of up)", "batch stride");
    operands[UP].row_period = M, pointers[UP] = memory[2];
    REFUSED("args.d", "(of up)", "periods");
    operands[UP].kind = GEMMEPI_BLOCKED, operands[UP].block_rows = operands[UP].block_columns = 1,
    pointers[UP] = memory[2];
    REFUSED("args.d", "overlaps", "(of up)");
    operands[FULL].dtype = GEMMEPI_E4M3, operands[FULL].scale.mode = GEMMEPI_SCALE_TENSOR;
    args.operand_scales = scales, scales[FULL] = memory[2] + 3;
    REFUSED("args.d", "overlaps args.operand_scales[0] (of full)", "");
    desc.formula =
        "copy = pair(left(full), right(full)); d = v * gain * rstd * scale * number + up; sum = row_sum(v); "
        "total = column_sum(v)";
    pointers[COPY] = pointers[FULL];
    REFUSED("(of copy)", "(of full)", "left, right, even or odd");
    pointers[COPY] = pointers[FULL]; /* as they lie alike */
    TAKEN();
    pointers[UP] = memory[2];
    TAKEN();
    pointers[GAIN] = pointers[SCALE]; /* inputs may share */
    TAKEN();
}

int main(void) {
    gemmepi_config config = {0};
    config.device = GEMMEPI_DEVICE_HOST;
    if (gemmepi_create(&config, &host) != GEMMEPI_OK) {
        printf("the host does not open: %s\n", gemmepi_last_error());
        return 1;
    }
    RUN(the_base_is_taken);
    RUN(texts_are_refused_where_they_go_wrong);
    RUN(names_are_refused);
    RUN(operands_are_refused);
    RUN(operands_of_4_bits_have_whole_bytes);
    RUN(types_that_are_only_read_go_nowhere_else);
    RUN(what_stands_beside_a_formula_is_refused);
    RUN(extents_are_refused);
    RUN(without_d_its_fields_are_refused);
    RUN(pointers_of_what_nothing_depends_on_are_not_looked_at);
    RUN(pointers_are_refused);
    RUN(overlaps_are_refused);
    gemmepi_destroy(host);
    return test_finish();
}
