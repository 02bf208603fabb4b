/* What is refused of layers with formulas: the status and words of the sentence, nothing written; and what looks like it but is taken. On the
   host. */
#include <stdarg.h>

#include "../test.h"
#include "gemmepi.h"

static gemmepi_context *host;

/* The calls that each case spoils: Y [6, 8] of X [6, 4] W [4, 8] in F32, of batch 2, with operands of every kind and their gradients. */
enum { M = 6, N = 8, K = 4, BATCH = 2, SPACE = 512 };
enum { BETA, D_BETA, UP, D_UP, GAIN, D_GAIN, RATE, D_RATE, NUMBER, LABEL, COUNT };

static gemmepi_linear_desc desc;
static gemmepi_linear_args args;
static gemmepi_operand operands[40];
static void *pointers[COUNT];
static const float *scales[COUNT];
static float memory[24][SPACE];
static double number = 2;
static int64_t labels[M * BATCH];

static void start(void) {
    static const struct {
        const char *name;
        gemmepi_operand_kind kind;
        int output;
        int64_t batch_stride;
    } rows[COUNT] = {{"beta", GEMMEPI_PER_COLUMN, 0, 0}, {"d_beta", GEMMEPI_PER_COLUMN, 1, 0},
                     {"up", GEMMEPI_FULL, 0, 64},        {"d_up", GEMMEPI_FULL, 1, 64},
                     {"gain", GEMMEPI_PER_ROW, 0, M},    {"d_gain", GEMMEPI_PER_ROW, 1, M},
                     {"rate", GEMMEPI_SCALAR, 0, 0},     {"d_rate", GEMMEPI_SCALAR, 1, 0},
                     {"number", GEMMEPI_NUMBER, 0, 0},   {"label", GEMMEPI_PER_ROW, 0, M}};
    int i;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    memset(operands, 0, sizeof operands);
    memset(scales, 0, sizeof scales);
    for (i = 0; i < 24 * SPACE; i++)
        (&memory[0][0])[i] = (float)(i % 7);
    for (i = 0; i < COUNT; i++) {
        operands[i].name = rows[i].name;
        operands[i].kind = rows[i].kind;
        operands[i].output = rows[i].output;
        operands[i].batch_stride = rows[i].batch_stride;
        pointers[i] = memory[10 + i];
    }
    operands[LABEL].dtype = GEMMEPI_I64;
    pointers[NUMBER] = &number;
    pointers[LABEL] = labels;
    desc.m = M, desc.n = N, desc.k = K, desc.batch = BATCH;
    desc.a.batch_stride = desc.da.batch_stride = M * K;
    desc.y.batch_stride = desc.dy.batch_stride = desc.preact.batch_stride = 64;
    desc.flags = GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB |
                 GEMMEPI_LINEAR_DBIAS;
    desc.formula = "d = v * sigmoid(beta * v) * up * gain * rate * number + (column == label)";
    desc.operands = operands;
    desc.operand_count = COUNT;
    args.a = memory[0], args.b = memory[1], args.bias = memory[2], args.y = memory[3];
    args.preact = memory[4], args.dy = memory[5];
    args.da = memory[6], args.db = memory[7], args.dbias = memory[8];
    args.operands = pointers;
}

static gemmepi_status run(int backward) {
    return backward ? gemmepi_linear_backward(host, &desc, &args, NULL)
                    : gemmepi_linear(host, &desc, &args, NULL);
}

static void is_refused(gemmepi_status want, int backward, const char *spoilt, const char *words, ...) {
    static float before[24][SPACE];
    gemmepi_status got;
    const char *word;
    va_list list;
    memcpy(before, memory, sizeof memory);
    got = run(backward);
    CHECK(got == want, "%s: %s (%s), not %s", spoilt, gemmepi_status_name(got),
          got ? gemmepi_last_error() : "", gemmepi_status_name(want));
    va_start(list, words);
    for (word = words; word && got == want; word = va_arg(list, const char *))
        CHECK(strstr(gemmepi_last_error(), word) != NULL, "%s: %s", spoilt, gemmepi_last_error());
    va_end(list);
    CHECK(memcmp(before, memory, sizeof memory) == 0, "%s: memory has changed", spoilt);
    start();
}

static void is_taken(int backward, const char *spoilt) {
    CHECK(run(backward) == GEMMEPI_OK, "%s: %s", spoilt, gemmepi_last_error());
    start();
}

#define FORWARD(spoilt, ...)    (spoilt), is_refused(GEMMEPI_INVALID_ARGUMENT, 0, #spoilt, __VA_ARGS__, NULL)
#define BACKWARD(spoilt, ...)   (spoilt), is_refused(GEMMEPI_INVALID_ARGUMENT, 1, #spoilt, __VA_ARGS__, NULL)
#define BOTH(spoilt, ...)       FORWARD(spoilt, __VA_ARGS__), BACKWARD(spoilt, __VA_ARGS__)
#define TAKEN(backward, spoilt) (spoilt), is_taken(backward, #spoilt)

/* >>the desc */

static void fields_that_go_with_a_formula_alone_are_refused_without_one(void) {
    BOTH(desc.formula = NULL,
         "desc.operands is given, but desc.formula, desc.a.formula and desc.b.formula are NULL");
    BOTH((desc.formula = NULL, desc.operands = NULL), "desc.operand_count is given");
    BOTH((desc.formula = NULL, desc.operands = NULL, desc.operand_count = 0, desc.formula_value = "x"),
         "desc.formula_value is given");
    BOTH((desc.formula = NULL, desc.operands = NULL, desc.operand_count = 0, desc.formula_result = "x"),
         "desc.formula_result is given");
}

static void a_residual_is_an_operand_beside_a_formula(void) {
    BOTH(desc.flags |= GEMMEPI_LINEAR_RESIDUAL, "desc.flags has LINEAR_RESIDUAL with desc.formula",
         "an operand of it");
}

/* Which need dY. */
static void gradients_of_operands_are_refused_where_g_is_given(void) {
    BACKWARD(desc.flags |= GEMMEPI_LINEAR_DY_IS_G, "desc.flags has LINEAR_DY_IS_G", "d_NAME");
    TAKEN(0, desc.flags |= GEMMEPI_LINEAR_DY_IS_G);
    TAKEN(1, (desc.flags |= GEMMEPI_LINEAR_DY_IS_G,
              operands[D_BETA] = operands[D_UP] = operands[D_GAIN] = operands[D_RATE] = operands[BETA],
              operands[D_BETA].name = "e", operands[D_UP].name = "f", operands[D_GAIN].name = "g",
              operands[D_RATE].name = "h"));
}

static void an_activation_is_refused_beside_a_formula(void) {
    BOTH(desc.activation = GEMMEPI_SILU, "desc.activation is not 0 with desc.formula", "leave it 0");
    BOTH(desc.activation = GEMMEPI_GATED, "desc.activation is not 0 with desc.formula");
    BOTH(desc.has_parameter = 1, "desc.has_parameter is not 0 with desc.formula");
    BOTH(desc.activation_parameter = 0.5, "desc.activation_parameter is not 0 with desc.formula");
}

static void operands_are_counted_and_named(void) {
    BOTH(desc.operand_count = -1, "desc.operand_count is -1; accepted are 0 to 28");
    BOTH(desc.operand_count = 29, "desc.operand_count is 29; accepted are 0 to 28");
    BOTH(desc.operands = NULL, "desc.operands is NULL, but desc.operand_count is 10");
    BOTH(operands[UP].name = NULL, "desc.operands[2].name is NULL");
    BOTH(operands[UP].name = "2up", "desc.operands[2].name is \"2up\"");
    BOTH(operands[UP].name = "silu", "desc.operands[2].name is silu");
    BOTH(operands[GAIN].name = "up", "there is no input operand gain");
    BOTH(operands[LABEL].name = "up", "desc.operands[9].name is up");
}

/* As many operations as there may be, and one more where a bias is added, in lines ahead of the caller's. */
static void places_are_the_callers_behind_lines_that_a_layer_adds(void) {
    static char text[3000];
    int bias, line;
    for (bias = 0; bias < 2; bias++)
        for (line = 1; line <= 2; line++) {
            int i, at = snprintf(text, sizeof text, "d = v");
            for (i = 1; i <= 1024; i++)
                at +=
                    snprintf(text + at, sizeof text - (size_t)at, "%s*v", line == 2 && i == 1024 ? "\n" : "");
            desc.formula = text;
            desc.flags = bias ? GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED : GEMMEPI_LINEAR_SAVED;
            if (!bias)
                args.bias = NULL, is_taken(0, "1024 operations");
            else
                is_refused(
                    GEMMEPI_INVALID_ARGUMENT, 0, "1025 operations", "more than 1024 operations",
                    line == 1 ? "desc.formula, column 2052: " : "desc.formula, line 2, column 1: ", NULL);
        }
}

static void mistakes_in_the_text_are_told_by_the_callers_places(void) {
    BOTH(desc.formula = "d = v +", "desc.formula, column 8: the end is not expected here");
    BOTH(desc.formula = "x = v;\nd = x * y", "desc.formula, line 2, column 9: y is not known here");
    BOTH(desc.formula = "", "has assigned no output");
    BOTH(desc.formula = "d = up;\nupp = v",
         "desc.formula, line 2, column 1: upp is assigned, but nothing reads it", "did you mean up?");
    BOTH(desc.formula = "d = v;;", "desc.formula, column 7: ';' is not expected here");
    BOTH(desc.formula = "d = v / 1e-46", "desc.formula, column 9: the number is out of range");
    BOTH(desc.formula = "d = bias", "desc.formula, column 5: bias is not known here");
    BOTH(desc.formula = "d = row_sum(v)", "d is a matrix and cannot be a reduction");
    BOTH(desc.formula = "d = v; d_beta = column_sum(v)",
         "desc.formula has d_beta, an operand that backward makes by itself: leave it out of the text");
    BOTH(desc.formula = "d = v * d_beta",
         "desc.formula has d_beta, an operand that backward makes by itself: leave it out of the text");
    BOTH(desc.formula = "d = up + left(v)", "equal widths");
    BOTH(operands[UP].ld = 3, "desc.operands[2].ld is 3", "calls it up");
    BOTH(operands[UP].dtype = GEMMEPI_F64, "desc.operands[2].dtype (of up) is F64");
}

static void names_tell_gradients_from_outputs(void) {
    BOTH((operands[NUMBER].output = 1, operands[NUMBER].kind = GEMMEPI_SCALAR),
         "number is an output and has no value yet; assign it first");
    BOTH(operands[D_UP].output = 0, "desc.operands[3].output (of d_up) is 0", "set it to 1");
    BOTH(operands[D_UP].name = "d_down",
         "desc.operands[3] is called d_down, but there is no input operand down");
    BOTH(operands[D_UP].name = "d_v", "desc.operands[3] is called d_v, but there is no input operand v");
    BACKWARD(operands[D_UP].name = "d_beta", "desc.operands[3]");
}

static void gradients_have_rules(void) {
    BACKWARD(operands[D_UP].name = "d_number", "desc.operands[3] is d_number, but number is a NUMBER",
             "make it a SCALAR");
    BACKWARD(operands[D_UP].name = "d_label", "desc.operands[3] is d_label, but label has whole numbers");
    BACKWARD(operands[UP].dtype = GEMMEPI_I4,
             "desc.operands[3] is d_up, but up is in 4 bits or E8M0, types without a gradient");
    BACKWARD(operands[BETA].column_period = 4, "desc.operands[1] is d_beta, but beta has a period");
    BACKWARD((operands[BETA].kind = operands[D_BETA].kind = GEMMEPI_BLOCKED, operands[BETA].block_rows = 2,
              operands[BETA].block_columns = 4, operands[D_BETA].block_rows = 2,
              operands[D_BETA].block_columns = 4, operands[D_BETA].batch_stride = 3),
             "desc.operands[1].batch_stride is 3", "would overlap");
    BACKWARD(operands[D_UP].kind = GEMMEPI_PER_ROW,
             "desc.operands[3].kind (of d_up) is PER_ROW; it is that of up, FULL");
    BACKWARD(operands[D_UP].width = GEMMEPI_WIDTH_HALF,
             "desc.operands[3].width (of d_up) is WIDTH_HALF; it is that of up, WIDTH_N");
    BACKWARD(operands[D_UP].dtype = GEMMEPI_E4M3, "desc.operands[3].dtype (of d_up) is", "F32, F16 and BF16");
    BACKWARD(operands[D_BETA].dtype = GEMMEPI_F64, "desc.operands[1].dtype (of d_beta) is");
    BACKWARD(operands[D_UP].amax = 1, "desc.operands[3].amax (of d_up) is 1; a gradient has none");
    BACKWARD(operands[D_UP].scale.mode = GEMMEPI_SCALE_TENSOR, "desc.operands[3].scale.mode (of d_up) is 1");
    BACKWARD(operands[D_UP].accumulate = 1, "desc.operands[3].accumulate (of d_up) is 1",
             "only sums accumulate");
    BACKWARD(operands[D_UP].batch_stride = 0,
             "desc.operands[3].batch_stride (of d_up) is 0, but up has one for each item");
    BACKWARD(operands[D_GAIN].batch_stride = 1, "desc.operands[5].batch_stride is 1", "would overlap");
    BACKWARD(operands[BETA].batch_stride = N, "desc.operands[1].batch_stride (of d_beta) is 0, but beta has");
    BACKWARD(operands[D_GAIN].ld = 8, "desc.operands[5].ld (of d_gain) is 8; accepted are 0 and, of FULL");
    BACKWARD((desc.formula = "d = part(v, 0, 4) + up", desc.y.batch_stride = desc.dy.batch_stride = 0,
              operands[UP].width = operands[D_UP].width = GEMMEPI_WIDTH_HALF,
              operands[BETA].width = operands[D_BETA].width = GEMMEPI_WIDTH_DOUBLE),
             "desc.operands names beta, which is 4 n columns wide and not read");
    TAKEN(1, operands[D_BETA].accumulate = 1);
    TAKEN(1, operands[D_BETA].batch_stride = N); /* one of each item, though they share beta */
    TAKEN(0, operands[D_UP].amax = 1);           /* forward takes no notice of gradients */
    TAKEN(0, operands[D_UP].ld = 3);
}

static void what_has_no_derivative_is_refused(void) {
    BACKWARD(operands[UP].name = "dy", "there is no input operand up");
    BACKWARD(
        (operands[UP].name = "dy", operands[D_UP].name = "d_dy", desc.formula = "d = v * dy"),
        "an operand is called dy; dy and names that begin with d_ or dy_ are for its gradient's operands");
}

static void the_gradient_says_whether_it_needs_p(void) {
    BACKWARD(
        desc.flags &= ~GEMMEPI_LINEAR_SAVED,
        "desc.flags has neither LINEAR_SAVED nor LINEAR_RECOMPUTE, but the gradient of desc.formula reads v: set one of them");
    BACKWARD((desc.flags &= ~GEMMEPI_LINEAR_SAVED, desc.formula_value = "x", desc.formula = "d = x * x"),
             "the gradient of desc.formula reads x");
    BACKWARD(desc.flags |= GEMMEPI_LINEAR_RECOMPUTE, "desc.flags has both LINEAR_SAVED and LINEAR_RECOMPUTE");
    BACKWARD((desc.operands = NULL, desc.operand_count = 0, args.operands = NULL, desc.formula = "d = v * v",
              desc.flags = GEMMEPI_LINEAR_SAVED),
             "desc.flags asks for no output", "or an operand d_NAME");
    TAKEN(1, (desc.flags = GEMMEPI_LINEAR_SAVED, args.da = args.db = args.dbias = NULL, args.bias = NULL));
    TAKEN(1, (desc.operand_count = 0, desc.operands = NULL, args.operands = NULL, desc.formula = "d = 2 * v",
              desc.flags &= ~GEMMEPI_LINEAR_SAVED, args.preact = NULL, args.bias = NULL, args.b = memory[1]));
}

static void a_formula_need_not_read_the_product(void) {
    TAKEN(0, desc.formula = "d = up");
    TAKEN(0, (desc.formula = "d = up // not of v", desc.flags &= ~GEMMEPI_LINEAR_SAVED, args.preact = NULL));
    TAKEN(1, desc.formula = "d = up /* v */");
}

static void what_lies_otherwise_is_refused(void) {
    BOTH((desc.preact.dtype = GEMMEPI_E4M3, desc.preact.scale.mode = GEMMEPI_SCALE_TENSOR,
          desc.preact.scale.batch_stride = 1),
         "desc.preact.scale.batch_stride is 1 with desc.formula");
    BACKWARD((desc.dy.dtype = GEMMEPI_E4M3, desc.dy.scale.mode = GEMMEPI_SCALE_TENSOR,
              desc.dy.scale.batch_stride = 1),
             "desc.dy.scale.batch_stride is 1 with desc.formula");
    BACKWARD(
        (desc.formula = "d = rounded(v) * v", desc.y.dtype = GEMMEPI_BF16, desc.preact.dtype = GEMMEPI_F32),
        "desc.formula, column 5: desc.g_dtype is F32, and the gradient has rounded",
        "BF16: then G is in that");
    BACKWARD((desc.formula = "x = v; /* rounded */\nd = x * rounded(x)", desc.a.dtype = GEMMEPI_BF16,
              desc.y.dtype = GEMMEPI_E4M3, operands[D_UP].dtype = operands[D_GAIN].dtype = GEMMEPI_BF16),
             "desc.formula, line 2, column 9: desc.g_dtype is BF16, and the gradient has rounded",
             "E4M3, which G cannot be");
    FORWARD(
        (desc.formula = "x = v;\nd = x * rounded(x)", desc.a.dtype = GEMMEPI_BF16,
         desc.y.dtype = GEMMEPI_E4M3, desc.y.scale.mode = GEMMEPI_SCALE_OUTER, desc.y.scale.batch_stride = 8,
         desc.flags |= GEMMEPI_FIND_SCALE_D),
        "desc.formula, line 2, column 9: rounded is the value that d stores, but desc.flags has FIND_SCALE_D");
    TAKEN(1, (desc.formula = "d = rounded(v) * v", desc.y.dtype = GEMMEPI_BF16,
              desc.preact.dtype = GEMMEPI_F32, desc.g_dtype = GEMMEPI_BF16));
    FORWARD(desc.y.ld = 3, "desc.y.ld is 3");
    FORWARD(desc.preact.ld = 3, "desc.preact.ld is 3");
    BACKWARD(desc.dy.ld = 3, "desc.dy.ld is 3");
    BACKWARD(desc.dy.transposed = 1, "desc.dy.transposed");
    BOTH((desc.n = 7, desc.formula = "d = left(v)"), "desc.formula, column 5: n is 7", "it must be even");
    BOTH(desc.formula = "x = left(v, 6);\nd = x * right(up, 6)",
         "desc.formula, column 5: halves are of groups of 6, and");
    FORWARD(desc.y.batch_stride = 1, "desc.y.batch_stride is 1");
    BACKWARD(desc.dbias.batch_stride = 8, "desc.dbias.batch_stride is 8");
}

/* Text is not what limits them, which is longer here than a formula's may be, but operations. */
static void gradients_that_are_too_large_are_refused(void) {
    static char text[4000], gradient[8192];
    gemmepi_derive_desc derive;
    int i;
    strcpy(text, "d = v");
    for (i = 0; i < 300; i++) {
        if (i == 150) {
            memset(&derive, 0, sizeof derive);
            derive.formula = text, derive.operands = &operands[UP], derive.operand_count = 1,
            derive.wrt = "v";
            CHECK(gemmepi_derive(&derive, gradient, sizeof gradient) > 4096, "%d", (int)strlen(gradient));
            TAKEN(0, desc.formula = text);
            TAKEN(1, desc.formula = text);
        }
        strcat(text, "*sin(v*up)");
    }
    TAKEN(0, desc.formula = text);
    BACKWARD(desc.formula = text, "the gradient of desc.formula has more than 1024 operations");
}

/* >>args */

static void arrays_and_pointers_are_wanted(void) {
    BOTH(args.operands = NULL, "args.operands is NULL; desc.operand_count is 10");
    BOTH(pointers[UP] = NULL, "args.operands[2] (of up) is NULL; this");
    BOTH(pointers[NUMBER] = NULL, "args.operands[8] (of number) is NULL");
    BACKWARD(pointers[D_UP] = NULL, "args.operands[3] (of d_up) is NULL; this backward needs it");
    TAKEN(0, pointers[D_UP] = NULL);
    TAKEN(0, desc.formula = "d = 1 > 3 ? up * beta * gain * rate * number : v");
    TAKEN(0, (desc.formula = "d = 1 > 3 ? up * beta * gain * rate * number : v",
              pointers[UP] = pointers[BETA] = pointers[NUMBER] = NULL));
    TAKEN(1, (desc.formula = "d = 1 > 3 ? beta : v * up * gain * rate", pointers[NUMBER] = NULL));
    TAKEN(1, pointers[LABEL] = NULL); /* no gradient depends on it */
    BOTH((operands[UP].dtype = GEMMEPI_E4M3, operands[D_UP].dtype = GEMMEPI_F32,
          operands[UP].scale.mode = GEMMEPI_SCALE_TENSOR),
         "args.operand_scales[2] (of up) is NULL");
    TAKEN(1, (operands[UP].dtype = GEMMEPI_E4M3, operands[D_UP].dtype = GEMMEPI_F32,
              operands[UP].scale.mode = GEMMEPI_SCALE_TENSOR, scales[UP] = memory[23],
              args.operand_scales = scales));
    BOTH((scales[UP] = memory[23], args.operand_scales = scales), "args.operand_scales[2] (of up) is given",
         "scale.mode");
    BOTH((scales[D_UP] = memory[23], args.operand_scales = scales),
         "args.operand_scales[3] (of d_up) is given");
    BOTH((desc.flags = (desc.flags & ~GEMMEPI_LINEAR_SAVED) | GEMMEPI_LINEAR_RECOMPUTE,
          args.preact = memory[4]),
         "args.preact is given", "LINEAR_SAVED");
    BOTH((desc.formula = NULL, desc.operands = NULL, desc.operand_count = 0,
          desc.flags &= ~GEMMEPI_LINEAR_SAVED, args.preact = NULL),
         "args.operands is given, but desc.formula is NULL");
    BACKWARD(args.preact = NULL, "args.preact is NULL; this backward needs it");
}

static void pointers_are_aligned_and_overlap_nothing(void) {
    gemmepi_plan *plan = NULL;
    void *odd = (char *)memory[12] + 2;
    (pointers[UP] = odd), is_refused(GEMMEPI_MISALIGNED, 0, "odd", "args.operands[2] (of up)", NULL);
    (pointers[UP] = memory[12] + 1);
    is_taken(0, "a call takes what the pointers have");
    CHECK(gemmepi_plan_linear(host, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    pointers[UP] = memory[12] + 1;
    CHECK(gemmepi_run_linear(plan, &args, NULL) == GEMMEPI_MISALIGNED &&
              strstr(gemmepi_last_error(), "args.operands[2] (of up)") != NULL,
          "%s", gemmepi_last_error());
    pointers[UP] = memory[12], pointers[RATE] = memory[16] + 1;
    CHECK(gemmepi_run_linear(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    start();
    BACKWARD(pointers[D_UP] = memory[6], "args.da", "overlaps args.operands[3] (of d_up)");
    BACKWARD(pointers[D_UP] = pointers[UP], "args.operands[3] (of d_up)",
             "overlaps args.operands[2] (of up)");
    BACKWARD(pointers[D_BETA] = memory[5], "args.operands[1] (of d_beta)", "overlaps args.dy");
    FORWARD(pointers[UP] = memory[3], "args.y", "overlaps args.operands[2] (of up)");
    TAKEN(0, pointers[D_UP] = memory[3]);
    TAKEN(1, pointers[D_UP] = memory[13] + 1);
    TAKEN(1, pointers[UP] = pointers[LABEL]); /* what is read may lie anywhere */
}

int main(void) {
    gemmepi_config config = {0};
    config.device = GEMMEPI_DEVICE_HOST;
    if (gemmepi_create(&config, &host) != GEMMEPI_OK) {
        printf("the host does not open: %s\n", gemmepi_last_error());
        return 1;
    }
    start();
    CHECK(run(0) == GEMMEPI_OK && run(1) == GEMMEPI_OK, "%s", gemmepi_last_error());
    start();
    RUN(fields_that_go_with_a_formula_alone_are_refused_without_one);
    RUN(an_activation_is_refused_beside_a_formula);
    RUN(a_residual_is_an_operand_beside_a_formula);
    RUN(gradients_of_operands_are_refused_where_g_is_given);
    RUN(operands_are_counted_and_named);
    RUN(places_are_the_callers_behind_lines_that_a_layer_adds);
    RUN(mistakes_in_the_text_are_told_by_the_callers_places);
    RUN(names_tell_gradients_from_outputs);
    RUN(gradients_have_rules);
    RUN(what_has_no_derivative_is_refused);
    RUN(the_gradient_says_whether_it_needs_p);
    RUN(a_formula_need_not_read_the_product);
    RUN(what_lies_otherwise_is_refused);
    RUN(gradients_that_are_too_large_are_refused);
    RUN(arrays_and_pointers_are_wanted);
    RUN(pointers_are_aligned_and_overlap_nothing);
    gemmepi_destroy(host);
    return test_finish();
}
