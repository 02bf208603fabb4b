/* What is refused, with which status and a sentence that names the field and its value, and nothing
   written; and what looks like it but is accepted. Runs on the devices that GEMMEPI_TEST_DEVICE names; see
   problem.h. */
#include "problem.h"

static test_device *here;

/* The call that each case spoils: a good problem of batch 2, with C, all its pointers in the arena. */
static problem base;
static run placed;
static gemmepi_matmul_desc desc;
static gemmepi_matmul_args args;

enum { M = 6, N = 10, K = 7 };

/* D is [M, N / 2], [M, 2 N] and [M, N]; without a gate it is [M, N]. */
#define GATE      (GEMMEPI_SILU | GEMMEPI_GATED)
#define GATE_BACK (GATE | GEMMEPI_BACKWARD)
#define GATE_ANEW (GATE_BACK | GEMMEPI_UPSTREAM)
#define BACK      (GEMMEPI_SILU | GEMMEPI_BACKWARD)
#define ANEW      (BACK | GEMMEPI_UPSTREAM)

static void end_use(void) {
    run_free(&placed);
    memset(&placed, 0, sizeof placed);
}

/* Starts over from a good F32 problem with this epilogue. */
static void use_problem(problem p) {
    end_use();
    base = p;
    run_make(&placed, &base);
    CHECK(run_upload(&placed, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
    desc = base.desc;
    args = run_args(&placed, &base, here);
}

static void use(gemmepi_epilogue epilogue) {
    problem p = problem_plain(GEMMEPI_F32, M, N, K, epilogue);
    p.desc.batch = 2;
    problem_space_out(&p, 3);
    problem_scale(&p, 1, 1);
    use_problem(p);
}

static void use_turned(gemmepi_epilogue epilogue) {
    problem p = problem_plain(GEMMEPI_F32, M, N, K, epilogue);
    p.desc.batch = 2;
    p.desc.order = GEMMEPI_COLUMN_MAJOR;
    problem_space_out(&p, 3);
    problem_scale(&p, 1, 1);
    use_problem(p);
}

static void use_dtype(gemmepi_dtype dtype, gemmepi_epilogue epilogue) {
    problem p = problem_plain(dtype, M, N, K, epilogue);
    use_problem(p);
}

/* Every matrix of this 8-bit dtype, each with scales: those of a and b along their outer extent. */
static problem problem_scaled(gemmepi_dtype dtype, gemmepi_epilogue epilogue) {
    problem p = problem_plain(dtype, M, N, K, epilogue);
    int t;
    p.desc.batch = 2;
    p.desc.c.dtype = p.desc.aux.dtype = p.desc.residual.dtype = dtype;
    if (problem_has_mask(&p))
        p.desc.aux.dtype = GEMMEPI_DTYPE_DEFAULT;
    problem_space_out(&p, 3);
    problem_scale(&p, 1, 1);
    for (t = T_SCALE_A; t <= T_SCALE_RESIDUAL; t++)
        if (problem_may_scale(&p, tensor_of_scale(t)))
            problem_matrix(&p, t)->scale.mode = t <= T_SCALE_B ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_TENSOR;
    problem_space_out_scales(&p, 2);
    return p;
}

static void use_scaled(gemmepi_dtype dtype, gemmepi_epilogue epilogue) {
    use_problem(problem_scaled(dtype, epilogue));
}

/* Scales of these modes in column-major order, where the operands are exchanged inside. */
static void use_column_major(gemmepi_scale_mode a, gemmepi_scale_mode b) {
    problem p = problem_scaled(GEMMEPI_E4M3, GEMMEPI_NONE);
    p.desc.order = GEMMEPI_COLUMN_MAJOR;
    problem_space_out(&p, 3);
    p.desc.a.scale.mode = a;
    p.desc.b.scale.mode = b;
    p.desc.a.scale.batch_stride = p.desc.b.scale.batch_stride = 0;
    use_problem(p);
}

static void use_amax(gemmepi_dtype dtype, gemmepi_epilogue epilogue, uint64_t flags) {
    problem p =
        dtype == GEMMEPI_F64 ? problem_plain(dtype, M, N, K, epilogue) : problem_scaled(dtype, epilogue);
    p.desc.flags = flags;
    use_problem(p);
}

/* I8 operands with an I32 result. */
static void use_whole(gemmepi_epilogue epilogue) {
    problem p = problem_plain(GEMMEPI_I8, M, N, K, epilogue);
    p.desc.d.dtype = GEMMEPI_I32;
    p.desc.batch = 2;
    problem_space_out(&p, 3);
    problem_scale(&p, 1, 1);
    use_problem(p);
}

static void use_pair(gemmepi_dtype a, gemmepi_dtype b, gemmepi_dtype d, gemmepi_epilogue epilogue) {
    problem p = problem_plain(a, M, N, K, epilogue);
    p.desc.b.dtype = b;
    p.desc.d.dtype = d;
    use_problem(p);
}

/* offset bytes into tensor t, of this problem's or of another's arena */
static void *at(int t, int64_t offset) {
    return (char *)run_pointer(&placed, here, t) + offset;
}

static int is_part_of_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* text has one of the words, which are separated by '|'. */
static int mentions(const char *text, const char *words) {
    while (*words) {
        size_t length = strcspn(words, "|");
        const char *found;
        char word[64] = "";
        memcpy(word, words, length < 63 ? length : 63);
        for (found = strstr(text, word); found != NULL; found = strstr(found + 1, word))
            if ((found == text || !is_part_of_word(found[-1])) && !is_part_of_word(found[length]))
                return 1;
        words += length + (words[length] == '|');
    }
    return 0;
}

typedef struct refusal {
    gemmepi_status status;
    const char *names; /* fields of which the sentence names one */
    const char *value; /* what it gives as the value; NULL: none */
    const char *code;  /* how the call was spoilt                */
} refusal;

static void check_refused(const char *call, gemmepi_status got, const refusal *want) {
    const char *text = gemmepi_last_error();
    CHECK(got == want->status, "%s after '%s' gives %s (%s), want %s", call, want->code,
          gemmepi_status_name(got), got ? text : "", gemmepi_status_name(want->status));
    if (got != want->status)
        return;
    CHECK(mentions(text, want->names), "%s after '%s' does not name %s: %s", call, want->code, want->names,
          text);
    CHECK(want->value == NULL || mentions(text, want->value), "%s after '%s' does not give the value %s: %s",
          call, want->code, want->value, text);
}

static void check_untouched(const refusal *want) {
    CHECK(run_download(&placed, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(memcmp(placed.before, placed.after, placed.size) == 0, "memory changed after '%s'", want->code);
}

/* The desc is wrong: no plan, no needs, no product. */
static void refuse_desc(gemmepi_status status, const char *names, const char *value, const char *code) {
    refusal want = {GEMMEPI_OK, NULL, NULL, NULL};
    gemmepi_epilogue_needs needs;
    gemmepi_plan *plan = NULL;
    want.status = status;
    want.names = names;
    want.value = value;
    want.code = code;
    check_refused("gemmepi_plan_matmul", gemmepi_plan_matmul(here->context, &desc, &plan), &want);
    check_refused("gemmepi_epilogue_info", gemmepi_epilogue_info(&desc, &needs), &want);
    check_refused("gemmepi_matmul", gemmepi_matmul(here->context, &desc, &args, here->stream), &want);
    check_untouched(&want);
    gemmepi_plan_destroy(plan);
}

/* The desc is good, the args are not: a plan, but no run. */
static void refuse_args(gemmepi_status status, const char *names, const char *value, const char *code) {
    refusal want = {GEMMEPI_OK, NULL, NULL, NULL};
    gemmepi_plan *plan = NULL;
    want.status = status;
    want.names = names;
    want.value = value;
    want.code = code;
    CHECK(gemmepi_plan_matmul(here->context, &desc, &plan) == GEMMEPI_OK, "'%s': %s", code,
          gemmepi_last_error());
    if (plan != NULL) {
        CHECK(gemmepi_plan_prepare(plan, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
        check_refused("gemmepi_run_matmul", gemmepi_run_matmul(plan, &args, here->stream), &want);
    }
    check_refused("gemmepi_matmul", gemmepi_matmul(here->context, &desc, &args, here->stream), &want);
    check_untouched(&want);
    gemmepi_plan_destroy(plan);
}

/* REFUSED_DESC(status, fields, value, statements that spoil a good call) */
#define REFUSED_DESC(status, names, value, ...)                    \
    do {                                                           \
        use(GEMMEPI_NONE);                                         \
        __VA_ARGS__;                                               \
        refuse_desc(GEMMEPI_##status, names, value, #__VA_ARGS__); \
    } while (0)

#define REFUSED_ARGS(status, names, value, ...)                    \
    do {                                                           \
        use(GEMMEPI_NONE);                                         \
        __VA_ARGS__;                                               \
        refuse_args(GEMMEPI_##status, names, value, #__VA_ARGS__); \
    } while (0)

#define ACCEPTED(...)                                                                              \
    do {                                                                                           \
        use(GEMMEPI_NONE);                                                                         \
        __VA_ARGS__;                                                                               \
        CHECK(gemmepi_matmul(here->context, &desc, &args, here->stream) == GEMMEPI_OK, "'%s': %s", \
              #__VA_ARGS__, gemmepi_last_error());                                                 \
    } while (0)

#define INT64_MAX_TEXT "9223372036854775807"

/* >>nothing given */

static void null_is_refused_by_name(void) {
    gemmepi_epilogue_needs needs;
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    refusal want = {GEMMEPI_INVALID_ARGUMENT, "context", NULL, "NULL"};
    use(GEMMEPI_NONE);
    check_refused("gemmepi_matmul", gemmepi_matmul(NULL, &desc, &args, NULL), &want);
    check_refused("gemmepi_plan_matmul", gemmepi_plan_matmul(NULL, &desc, &plan), &want);
    want.names = "desc";
    check_refused("gemmepi_matmul", gemmepi_matmul(here->context, NULL, &args, NULL), &want);
    check_refused("gemmepi_plan_matmul", gemmepi_plan_matmul(here->context, NULL, &plan), &want);
    check_refused("gemmepi_epilogue_info", gemmepi_epilogue_info(NULL, &needs), &want);
    want.names = "args";
    check_refused("gemmepi_matmul", gemmepi_matmul(here->context, &desc, NULL, NULL), &want);
    want.names = "plan";
    check_refused("gemmepi_plan_matmul", gemmepi_plan_matmul(here->context, &desc, NULL), &want);
    check_refused("gemmepi_run_matmul", gemmepi_run_matmul(NULL, &args, NULL), &want);
    check_refused("gemmepi_plan_prepare", gemmepi_plan_prepare(NULL, NULL), &want);
    check_refused("gemmepi_plan_info", gemmepi_plan_info(NULL, &details), &want);
    want.names = "needs";
    check_refused("gemmepi_epilogue_info", gemmepi_epilogue_info(&desc, NULL), &want);
    CHECK(gemmepi_plan_matmul(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    want.names = "args";
    check_refused("gemmepi_run_matmul", gemmepi_run_matmul(plan, NULL, NULL), &want);
    want.names = "details";
    check_refused("gemmepi_plan_info", gemmepi_plan_info(plan, NULL), &want);
    CHECK(gemmepi_plan_explain(NULL, NULL, 0) == 0, "explain of no plan");
    CHECK(gemmepi_plan_explain(plan, NULL, 0) > 0, "explain without a buffer gives the length");
    gemmepi_plan_destroy(plan);
    gemmepi_plan_destroy(NULL);
    check_untouched(&want);
}

static void a_needed_pointer_that_is_missing_is_refused(void) {
    static const double seven = 7;
    REFUSED_ARGS(INVALID_ARGUMENT, "args.a", "the product", args.a = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.b", "the product", args.b = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.d", "the product", args.d = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", "NULL", args.beta = &seven, args.c = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", "args.beta", args.beta = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias", "NULL", use(GEMMEPI_RELU | GEMMEPI_BIAS), args.bias = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", "NULL", use(GEMMEPI_SILU | GEMMEPI_AUX), args.aux = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", "NULL", use(GEMMEPI_RELU | GEMMEPI_BACKWARD), args.aux = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.residual", "NULL", use(GEMMEPI_RESIDUAL), args.residual = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", "NULL", use(GEMMEPI_BGRAD), args.bias_grad = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", "NULL", use(GEMMEPI_BGRAD_A), args.bias_grad = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", "NULL", use(GEMMEPI_BGRAD_B), args.bias_grad = NULL);
}

static void a_pointer_that_the_epilogue_would_not_use_is_refused(void) {
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias", "one with BIAS does", use(GEMMEPI_RELU),
                 args.bias = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", "AUX or BACKWARD", use(GEMMEPI_SILU | GEMMEPI_BIAS),
                 args.aux = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.residual", "RESIDUAL", args.residual = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", "BGRAD_A", args.bias_grad = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_residual", "RESIDUAL", args.scale_residual = at(T_A, 0));
}

/* >>sizes and strides */

static void sizes_that_no_memory_has_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "m|desc.m", "-1", desc.m = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "n|desc.n", "-1", desc.n = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "k|desc.k", "-2", desc.k = -2);
    REFUSED_DESC(INVALID_ARGUMENT, "batch|desc.batch", "-1", desc.batch = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "m|desc.m", "-9223372036854775808", desc.m = INT64_MIN);
    REFUSED_DESC(INVALID_ARGUMENT, "m|a|c|d", INT64_MAX_TEXT, desc.m = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "k|a|b", INT64_MAX_TEXT, desc.k = INT64_MAX, desc.a.ld = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "batch|a|b|c|d", INT64_MAX_TEXT, desc.batch = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "a|a.ld", INT64_MAX_TEXT, desc.a.ld = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "d|d.ld", INT64_MAX_TEXT, desc.d.ld = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "b|b.batch_stride", INT64_MAX_TEXT, desc.b.batch_stride = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "d|d.batch_stride", INT64_MAX_TEXT, desc.d.batch_stride = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "n|b|c|d", "4611686018427387904", desc.n = INT64_MAX / 2 + 1,
                 desc.b.ld = 0, desc.c.ld = 0, desc.d.ld = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "bias|bias.batch_stride", INT64_MAX_TEXT, use(GEMMEPI_BIAS),
                 desc.bias.batch_stride = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "bias_grad|bias_grad.batch_stride", INT64_MAX_TEXT, use(GEMMEPI_BGRAD),
                 desc.bias_grad.batch_stride = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "residual|residual.ld", INT64_MAX_TEXT, use(GEMMEPI_RESIDUAL),
                 desc.residual.ld = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "aux|aux.batch_stride", INT64_MAX_TEXT, use(GEMMEPI_SILU | GEMMEPI_AUX),
                 desc.aux.batch_stride = INT64_MAX);
}

static void a_leading_dimension_below_its_row_is_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "a.ld", "6", desc.a.ld = K - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "a.ld", "5", desc.a.transposed = 1, desc.a.ld = M - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "b.ld", "9", desc.b.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "b.ld", "6", desc.b.transposed = 1, desc.b.ld = K - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "c.ld", "9", desc.c.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "d.ld", "9", desc.d.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "d.ld", "-10", desc.d.ld = -N);
    REFUSED_DESC(INVALID_ARGUMENT, "a.ld", "5", desc.order = GEMMEPI_COLUMN_MAJOR, desc.a.ld = M - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.ld", "9", use(GEMMEPI_SILU | GEMMEPI_AUX), desc.aux.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.ld", "9", use(GEMMEPI_SILU | GEMMEPI_BACKWARD), desc.aux.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "residual.ld", "9", use(GEMMEPI_RESIDUAL), desc.residual.ld = N - 1);
}

static void a_mask_is_laid_out_in_multiples_of_128_bits(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "aux.ld", "64", use(GEMMEPI_RELU | GEMMEPI_AUX), desc.aux.ld = 64);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.ld", "200", use(GEMMEPI_RELU | GEMMEPI_BACKWARD), desc.aux.ld = 200);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.batch_stride", "1000", use(GEMMEPI_RELU | GEMMEPI_AUX),
                 desc.aux.batch_stride = 1000);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.ld", "128",
                 use_problem(problem_plain(GEMMEPI_F32, M, 129, K, GEMMEPI_RELU | GEMMEPI_AUX)),
                 desc.aux.ld = 128);
}

static void items_of_an_output_may_not_overlap(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "d.batch_stride", "0", desc.d.batch_stride = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "d.batch_stride", "1", desc.d.batch_stride = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "d.batch_stride", "20", desc.d.ld = N, desc.d.batch_stride = 20);
    REFUSED_DESC(INVALID_ARGUMENT, "d.batch_stride", "-100", desc.d.batch_stride = -100);
    REFUSED_DESC(INVALID_ARGUMENT, "d.batch_stride", "10", desc.batch = 3, desc.d.ld = 2 * N,
                 desc.d.batch_stride = N); /* two fit side by side, three do not */
    REFUSED_DESC(INVALID_ARGUMENT, "aux.batch_stride", "0", use(GEMMEPI_SILU | GEMMEPI_AUX),
                 desc.aux.batch_stride = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.batch_stride", "128", use(GEMMEPI_RELU | GEMMEPI_AUX),
                 desc.aux.batch_stride = 128);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.batch_stride", "at least 768", use(GEMMEPI_RELU | GEMMEPI_AUX),
                 desc.aux.ld = 128, desc.aux.batch_stride = 0); /* 650 bits are used, and 768 accepted */
    REFUSED_DESC(INVALID_ARGUMENT, "bias_grad.batch_stride", "9", use(GEMMEPI_BGRAD),
                 desc.bias_grad.batch_stride = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "bias_grad.batch_stride", "-10", use(GEMMEPI_BGRAD),
                 desc.bias_grad.batch_stride = -N);
    REFUSED_DESC(INVALID_ARGUMENT, "a.batch_stride", "-1", desc.a.batch_stride = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "bias.batch_stride", "-1", use(GEMMEPI_BIAS), desc.bias.batch_stride = -1);
}

/* >>overlap */

static void an_output_that_overlaps_something_is_refused(void) {
    REFUSED_ARGS(INVALID_ARGUMENT, "args.a", NULL, args.d = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.b", NULL, args.d = at(T_B, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.a", NULL, args.a = at(T_D, 64));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", NULL, args.c = at(T_D, 64));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", NULL, args.c = at(T_D, -64));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", NULL, args.c = args.d, desc.c.ld = N);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", NULL, args.c = args.d, desc.c.batch_stride = 0);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias", NULL, use(GEMMEPI_BIAS), args.bias = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias", NULL, use(GEMMEPI_BIAS), args.bias = at(T_D, 64));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.residual", NULL, use(GEMMEPI_RESIDUAL), args.residual = at(T_D, 16));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.residual", NULL, use(GEMMEPI_RESIDUAL), args.residual = args.d,
                 desc.residual.ld = N + 4);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(GEMMEPI_SILU | GEMMEPI_AUX), args.aux = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(GEMMEPI_SILU | GEMMEPI_AUX), args.aux = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(GEMMEPI_RELU | GEMMEPI_BACKWARD), args.aux = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(GEMMEPI_SILU | GEMMEPI_BACKWARD),
                 args.aux = at(T_D, 16));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", NULL, use(GEMMEPI_BGRAD), args.bias_grad = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", NULL, use(GEMMEPI_BGRAD), args.bias_grad = at(T_B, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", NULL, use(GEMMEPI_BGRAD | GEMMEPI_BIAS),
                 args.bias_grad = at(T_BIAS, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", NULL, use(GEMMEPI_BGRAD | GEMMEPI_AUX),
                 args.bias_grad = at(T_AUX, 64));
}

static void d_in_place_needs_the_same_dtype(void) {
    problem p = problem_plain(GEMMEPI_BF16, M, N, K, GEMMEPI_NONE);
    problem_scale(&p, 1, 1);
    p.desc.c.dtype = GEMMEPI_F32;
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", NULL, use_problem(p), args.c = args.d);
}

/* What overlaps as ranges only, in one parent of twice the row: first and second are its left and right
   half. */
static int halves_of_one_parent_hold(gemmepi_epilogue epilogue, int first, int second) {
    problem p = problem_plain(GEMMEPI_F32, N, N, N, epilogue); /* square, so that any two fit */
    run r;
    gemmepi_status status;
    int right;
    p.desc.batch = 2;
    problem_space_out(&p, N);
    problem_scale(&p, 1, 0.5);
    run_lay_out(&r, &p);
    r.tensors[second].offset = r.tensors[first].offset + 4 * N;
    run_fill(&r, &p);
    status = run_execute(&r, &p, here, NULL);
    CHECK(status == GEMMEPI_OK, "%s and %s: %s", tensor_names[first], tensor_names[second],
          gemmepi_last_error());
    right = status == GEMMEPI_OK && run_compare(&r, &p, here);
    run_free(&r);
    return right;
}

static void halves_of_one_parent_do_not_overlap(void) {
    CHECK(halves_of_one_parent_hold(GEMMEPI_NONE, T_C, T_D), "c left of d");
    CHECK(halves_of_one_parent_hold(GEMMEPI_NONE, T_D, T_C), "c right of d");
    CHECK(halves_of_one_parent_hold(GEMMEPI_NONE, T_A, T_D), "a left of d");
    CHECK(halves_of_one_parent_hold(GEMMEPI_NONE, T_D, T_B), "b right of d");
    CHECK(halves_of_one_parent_hold(GEMMEPI_SILU | GEMMEPI_AUX, T_D, T_AUX), "aux right of d");
    CHECK(halves_of_one_parent_hold(GEMMEPI_SILU | GEMMEPI_BACKWARD, T_AUX, T_D), "aux left of d");
    CHECK(halves_of_one_parent_hold(GEMMEPI_RESIDUAL, T_RESIDUAL, T_D), "residual left of d");
}

/* The bytes of tensor t, bits counting for the byte they lie in. */
static void mark_bytes(const run *r, int t, unsigned char *bytes) {
    const tensor *x = r->tensors + t;
    int64_t item, i, j, size = (int64_t)oracle_format(x->at.dtype).size, index;
    for (item = 0; item < x->items; item++)
        for (i = 0; i < x->rows; i++)
            for (j = 0; j < x->columns; j++) {
                index = view_index(&x->at, item, i, j);
                memset(bytes + (int64_t)x->offset + (size ? index * size : index / 8), 1,
                       size ? (size_t)size : 1);
            }
}

static int share_bytes(const run *r, int one, int other) {
    unsigned char *first = calloc(r->size, 1), *second = calloc(r->size, 1);
    size_t i, shared = 0;
    mark_bytes(r, one, first);
    mark_bytes(r, other, second);
    for (i = 0; i < r->size; i++)
        shared += first[i] & second[i];
    free(first);
    free(second);
    return shared > 0;
}

static problem overlapping_problem(rng *r) {
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD | GEMMEPI_AUX,
        GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_A,
        GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_AUX | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_B,
        GATE_BACK | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD,
        GATE_ANEW | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD};
    problem p = problem_plain(GEMMEPI_F32, 1 + rng_below(r, 5), 1 + rng_below(r, 5), 1 + rng_below(r, 5),
                              epilogues[rng_below(r, 5)]);
    p.desc.order = (gemmepi_order)rng_below(r, 2);
    p.desc.batch = 1 + rng_below(r, 2);
    problem_make_even(&p);
    problem_space_out(&p, rng_below(r, 9));
    problem_scale(&p, 1, 1);
    if (rng_one_in(r, 2))
        p.desc.c.ld += 2;
    return p;
}

/* d with an operand laid somewhere over it: refused where a byte is shared, and only there. On a GPU, where a problem's kernels are
   compiled, each has eight such places. */
static void overlap_is_refused_where_a_byte_is_shared(void) {
    static const int others[] = {T_A, T_B, T_C, T_BIAS, T_AUX, T_BIAS_GRAD, T_RESIDUAL};
    problem p;
    rng r = rng_seeded(7);
    int i, refused = 0,
           tries = here->is_host      ? 3000
                   : test_share() > 1 ? 160
                                      : 400,
           each = here->is_host ? 1 : 8;
    for (i = 0; i < tries; i++) {
        int t = others[rng_below(&r, 7)], same, shared, range;
        gemmepi_status status;
        if (i % each == 0)
            p = overlapping_problem(&r);
        end_use();
        base = p;
        run_lay_out(&placed, &base);
        range = (int)(placed.tensors[T_D].bytes + placed.tensors[t].bytes) / 4 + 2;
        placed.tensors[T_D].offset = (placed.size + 2048) / 256 * 256; /* behind all others */
        placed.tensors[t].offset = placed.tensors[T_D].offset + placed.tensors[T_D].bytes / 4 * 4 + 4;
        placed.tensors[t].offset -= 4 * (size_t)rng_below(&r, range);
        placed.size += 8192;
        run_fill(&placed, &base);
        CHECK(run_upload(&placed, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
        args = run_args(&placed, &base, here);
        status = gemmepi_matmul(here->context, &base.desc, &args, here->stream);
        same = placed.tensors[t].offset == placed.tensors[T_D].offset && problem_fits_d(&p, t) &&
               (t == T_C || t == T_RESIDUAL || (t == T_AUX && problem_has(&p, GEMMEPI_BACKWARD)));
        shared = share_bytes(&placed, T_D, t);

        if (!same)
            CHECK(shared == (status == GEMMEPI_INVALID_ARGUMENT), "%s at d%+d: %s\n    %s", tensor_names[t],
                  (int)placed.tensors[t].offset - (int)placed.tensors[T_D].offset,
                  gemmepi_status_name(status), problem_line(&p).text);
        refused += status != GEMMEPI_OK;
    }
    CHECK(refused > tries / 4 && refused < tries, "%d of %d refused", refused, tries);
}

static void what_only_looks_like_overlap_is_accepted(void) {
    ACCEPTED(args.b = args.a, desc.n = M, desc.b = desc.a, desc.b.transposed = 1); /* inputs may be one */
    ACCEPTED(use(GEMMEPI_BIAS), args.bias = at(T_A, 16));
    ACCEPTED(args.c = args.d);
    ACCEPTED(use(GEMMEPI_RESIDUAL), args.residual = args.d, args.c = args.d);
    ACCEPTED(use(GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD), args.aux = args.d);
    ACCEPTED(desc.a.batch_stride = 1);                    /* items of an input may overlap */
    ACCEPTED(desc.d.ld = 2 * N, desc.d.batch_stride = N); /* items side by side */
    ACCEPTED(use_dtype(GEMMEPI_F32, GEMMEPI_BGRAD), args.bias_grad = at(T_D, 4 * M * N)); /* just behind */
}

/* With one row an ld means nothing, however large; it must not overflow on the way. */
static void an_ld_that_no_line_uses_may_be_anything(void) {
    gemmepi_matmul_desc one;
    gemmepi_matmul_args its;
    void *memory = NULL;
    float zeros[1024] = {0};
    memset(&one, 0, sizeof one);
    memset(&its, 0, sizeof its);
    one.m = 1;
    one.n = one.k = 4;
    one.batch = 2;
    one.a.ld = one.d.ld = (int64_t)1 << 55;
    one.a.batch_stride = one.d.batch_stride = 64;
    CHECK(gemmepi_alloc(here->context, sizeof zeros, &memory) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_upload(here->context, memory, zeros, sizeof zeros, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    its.d = memory;
    its.a = (float *)memory + 8;
    its.b = (float *)memory + 512;
    CHECK(gemmepi_matmul(here->context, &one, &its, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    one.a.ld = one.d.ld = (int64_t)1 << 62;
    CHECK(gemmepi_matmul(here->context, &one, &its, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_synchronize(here->context, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_free(here->context, memory);
}

/* >>values without a meaning */

static void epilogues_without_a_meaning_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", NULL, desc.epilogue = 14);
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", NULL, desc.epilogue = 0xff);
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", NULL, desc.epilogue = 1ull << 35);
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", NULL, desc.epilogue = 0x80000000u);
    REFUSED_DESC(INVALID_ARGUMENT, "GATE_FIRST|GEMMEPI_GATE_FIRST", NULL,
                 desc.epilogue = GEMMEPI_SILU | GEMMEPI_GATE_FIRST);
    REFUSED_DESC(INVALID_ARGUMENT, "BGRAD_A|GEMMEPI_BGRAD_A", NULL, use(GEMMEPI_BGRAD),
                 desc.epilogue |= GEMMEPI_BGRAD_A);
    REFUSED_DESC(INVALID_ARGUMENT, "BGRAD_B|GEMMEPI_BGRAD_B", NULL, use(GEMMEPI_BGRAD_A),
                 desc.epilogue |= GEMMEPI_BGRAD_B);
    REFUSED_DESC(INVALID_ARGUMENT, "AUX|GEMMEPI_AUX", NULL, use(GEMMEPI_SILU | GEMMEPI_BACKWARD),
                 desc.epilogue |= GEMMEPI_AUX);
    REFUSED_DESC(INVALID_ARGUMENT, "BGRAD|GEMMEPI_BGRAD", NULL, use(GEMMEPI_SILU),
                 desc.epilogue |= GEMMEPI_BGRAD);
    REFUSED_DESC(INVALID_ARGUMENT, "ACCUMULATE_BIAS_GRAD|GEMMEPI_ACCUMULATE_BIAS_GRAD", NULL,
                 use(GEMMEPI_BIAS), desc.epilogue |= GEMMEPI_ACCUMULATE_BIAS_GRAD);
}

static void gates_and_upstream_gradients_without_a_meaning_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "GATE_FIRST|GEMMEPI_GATE_FIRST", "GATED", use(BACK),
                 desc.epilogue |= GEMMEPI_GATE_FIRST);
    REFUSED_DESC(INVALID_ARGUMENT, "GATE_FIRST|GEMMEPI_GATE_FIRST", "GATED", use(ANEW),
                 desc.epilogue |= GEMMEPI_GATE_FIRST);
    REFUSED_DESC(INVALID_ARGUMENT, "UPSTREAM|GEMMEPI_UPSTREAM", "BACKWARD", desc.epilogue = GEMMEPI_UPSTREAM);
    REFUSED_DESC(INVALID_ARGUMENT, "UPSTREAM|GEMMEPI_UPSTREAM", "BACKWARD",
                 desc.epilogue = GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_UPSTREAM);
    REFUSED_DESC(INVALID_ARGUMENT, "UPSTREAM|GEMMEPI_UPSTREAM", "BACKWARD", use(GATE),
                 desc.epilogue |= GEMMEPI_UPSTREAM);
    REFUSED_DESC(INVALID_ARGUMENT, "AUX|GEMMEPI_AUX", "BACKWARD", use(GATE_BACK),
                 desc.epilogue |= GEMMEPI_AUX);
    REFUSED_DESC(INVALID_ARGUMENT, "AUX|GEMMEPI_AUX", "BACKWARD", use(GATE_ANEW),
                 desc.epilogue |= GEMMEPI_AUX);
    REFUSED_DESC(INVALID_ARGUMENT, "BGRAD|GEMMEPI_BGRAD", NULL, use(GATE), desc.epilogue |= GEMMEPI_BGRAD);
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", NULL, use(GATE), desc.epilogue |= 0x200000);
    REFUSED_DESC(INVALID_ARGUMENT, "activation_parameter", "SILU", use(GATE),
                 desc.activation_parameter = 0.5);
    ACCEPTED(use(GATE), desc.epilogue = GEMMEPI_ELU | GEMMEPI_GATED, desc.has_parameter = 1,
             desc.activation_parameter = 0.5);
    ACCEPTED(use(GATE_BACK | GEMMEPI_BGRAD));
    ACCEPTED(use(GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_BGRAD));
}

/* n, in column-major order m, where it counts a value's and a gate's columns. */
static void halves_of_different_lengths_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "desc.n", "9", use(GATE), desc.n = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.n", "1", use(GATE), desc.epilogue |= GEMMEPI_GATE_FIRST, desc.n = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.n", "even", use(GATE), desc.n = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.n", "9", use(GATE_ANEW), desc.n = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.m", "5", use_turned(GATE), desc.m = M - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.m", "5", use_turned(GATE_ANEW), desc.m = M - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.n", "9", use_whole(GEMMEPI_GATED), desc.n = N - 1);
    ACCEPTED(use(GATE_BACK), desc.n = N - 1);
    ACCEPTED(use(GATE), desc.m = M - 1);
    ACCEPTED(use_turned(GATE), desc.n = N - 1);
    ACCEPTED(use_turned(GATE_BACK), desc.m = M - 1);
    ACCEPTED(use(ANEW), desc.n = N - 1);
}

/* Twice n is a length too, of D, aux and the residual. */
static void sizes_of_gates_that_no_memory_has_are_refused(void) {
    static const int64_t large[] = {INT64_MAX / 2, INT64_MAX / 2 + 1, INT64_MAX - 1};
    int i;
    REFUSED_DESC(INVALID_ARGUMENT, "n|desc.n", "-2", use(GATE), desc.n = -2);
    REFUSED_DESC(INVALID_ARGUMENT, "n|desc.n", "-1", use(GATE_BACK), desc.n = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "n|desc.n", "-9223372036854775808", use(GATE_BACK), desc.n = INT64_MIN);
    REFUSED_DESC(INVALID_ARGUMENT, "m|desc.m", "-2", use_turned(GATE_ANEW), desc.m = -2);
    for (i = 0; i < 3; i++) {
        REFUSED_DESC(INVALID_ARGUMENT, "n|b|c|d|aux", NULL, use(GATE_BACK), desc.n = large[i],
                     desc.b.ld = desc.c.ld = desc.d.ld = desc.aux.ld = 0);
        CHECK(!mentions(gemmepi_last_error(), "even"), "n of %lld: %s", (long long)large[i],
              gemmepi_last_error());
        REFUSED_DESC(INVALID_ARGUMENT, "n|b|c|d|aux", NULL, use(GATE), desc.n = large[i] / 2 * 2,
                     desc.b.ld = desc.c.ld = desc.d.ld = 0);
    }
}

static void matrices_beside_a_gate_have_lengths_of_their_own(void) {
    static const gemmepi_epilogue both = GEMMEPI_RESIDUAL | GEMMEPI_AUX;
    REFUSED_DESC(INVALID_ARGUMENT, "d.ld", "4", use(GATE), desc.d.ld = N / 2 - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "c.ld", "9", use(GATE), desc.c.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.ld", "9", use(GATE | both), desc.aux.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.ld", "9", use(GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_AUX),
                 desc.aux.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "residual.ld", "4", use(GATE | both), desc.residual.ld = N / 2 - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "d.ld", "19", use(GATE_BACK), desc.d.ld = 2 * N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "c.ld", "9", use(GATE_BACK), desc.c.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.ld", "19", use(GATE_BACK), desc.aux.ld = 2 * N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "residual.ld", "19", use(GATE_BACK | GEMMEPI_RESIDUAL),
                 desc.residual.ld = 2 * N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "d.ld", "9", use(GATE_ANEW), desc.d.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.ld", "4", use(GATE_ANEW), desc.aux.ld = N / 2 - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.ld", "9", use(GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM),
                 desc.aux.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "d.ld", "2", use_turned(GATE), desc.d.ld = M / 2 - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "d.ld", "11", use_turned(GATE_BACK), desc.d.ld = 2 * M - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "d.batch_stride", "20", use(GATE), desc.d.ld = 5,
                 desc.d.batch_stride = 20);
    REFUSED_DESC(INVALID_ARGUMENT, "d.batch_stride", "100", use(GATE_BACK), desc.d.ld = 2 * N,
                 desc.d.batch_stride = 100);
    REFUSED_DESC(INVALID_ARGUMENT, "bias_grad.batch_stride", "19", use(GATE_BACK | GEMMEPI_BGRAD),
                 desc.bias_grad.batch_stride = 2 * N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "bias_grad.batch_stride", "4", use(GEMMEPI_GATED | GEMMEPI_BGRAD),
                 desc.bias_grad.batch_stride = N / 2 - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "bias_grad.batch_stride", "9", use(GATE_ANEW | GEMMEPI_BGRAD),
                 desc.bias_grad.batch_stride = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.transposed", NULL, use(GATE_BACK), desc.aux.transposed = 1);
    ACCEPTED(use(GATE), desc.d.ld = N / 2, desc.d.batch_stride = M * N / 2);
}

static void beside_a_gate_only_what_has_the_shape_of_d_may_be_d(void) {
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", NULL, use(GATE), args.c = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", NULL, use(GATE), desc.d.ld = desc.c.ld,
                 desc.d.batch_stride = desc.c.batch_stride, args.d = (void *)args.c);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", NULL, use(GATE), desc.m = desc.batch = 1, args.c = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", NULL, use(GATE_BACK), desc.c.ld = desc.d.ld,
                 desc.c.batch_stride = desc.d.batch_stride, args.c = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", NULL, use(GATE_BACK), desc.m = desc.batch = 1, args.c = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", NULL, use(GATE_BACK), desc.c.ld = desc.d.ld, desc.alignment = 4,
                 desc.c.batch_stride = desc.d.batch_stride, args.c = at(T_D, 4 * N)); /* the second half */
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(GATE | GEMMEPI_AUX), args.aux = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(GATE_BACK), desc.alignment = 4,
                 args.aux = at(T_D, 4 * N));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(GATE_BACK), desc.aux.ld++, args.aux = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(GATE_ANEW), args.aux = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(GATE_ANEW), desc.aux.ld = desc.d.ld,
                 desc.aux.batch_stride = desc.d.batch_stride, args.aux = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(GATE_ANEW), desc.m = desc.batch = 1,
                 args.aux = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(ANEW), desc.alignment = 4, args.aux = at(T_D, 4));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.residual", NULL, use(GATE | GEMMEPI_RESIDUAL), desc.alignment = 4,
                 args.residual = at(T_D, 4));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", NULL, use(GATE_BACK | GEMMEPI_BGRAD), desc.alignment = 4,
                 args.bias_grad = at(T_AUX, 4 * N)); /* lines of aux are twice as long as those of v */
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias", NULL, use(GATE_BACK | GEMMEPI_BIAS), desc.alignment = 4,
                 args.bias = at(T_D, 4 * (2 * N - 1)));
    ACCEPTED(use(GATE | GEMMEPI_RESIDUAL), args.residual = args.d);
    ACCEPTED(use(GATE_BACK | GEMMEPI_RESIDUAL), args.residual = args.aux = args.d);
    ACCEPTED(use(GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BACKWARD), args.aux = args.d);
    ACCEPTED(use(GATE_ANEW | GEMMEPI_RESIDUAL), args.residual = args.c = args.d);
    ACCEPTED(use(ANEW), args.c = args.aux = args.d);
    ACCEPTED(use(GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM), args.aux = args.d);
}

static void a_saved_gate_in_place_needs_the_same_dtype(void) {
    problem p = problem_plain(GEMMEPI_BF16, M, N, K, GATE_BACK);
    p.desc.aux.dtype = GEMMEPI_F32;
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use_problem(p), args.aux = args.d);
    p = problem_plain(GEMMEPI_BF16, M, N, K, ANEW);
    p.desc.aux.dtype = GEMMEPI_F16;
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use_problem(p), args.aux = args.d);
}

static void gates_and_upstream_gradients_need_their_pointers(void) {
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", "NULL", use(GATE | GEMMEPI_AUX), args.aux = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", "NULL", use(GATE_BACK), args.aux = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", "NULL", use(GATE_ANEW), args.aux = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", "NULL", use(ANEW), args.aux = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias", "NULL", use(GATE_ANEW | GEMMEPI_BIAS), args.bias = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(GATE), args.aux = at(T_A, 0));
    REFUSED_ARGS(MISALIGNED, "args.aux", NULL, use(GATE_ANEW), desc.alignment = 64, args.aux = at(T_AUX, 32));
}

/* No mask: the pre-activation of a gate and an upstream gradient are matrices for RELU too. */
static void relu_has_no_mask_beside_a_gate_or_an_upstream_gradient(void) {
    static const gemmepi_epilogue gate = GEMMEPI_RELU | GEMMEPI_GATED, back = gate | GEMMEPI_BACKWARD,
                                  anew = GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM;
    static const uint32_t both = GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX;
    ACCEPTED(use_amax(GEMMEPI_E4M3, gate | GEMMEPI_AUX, both));
    ACCEPTED(use_scaled(GEMMEPI_I8, back));
    ACCEPTED(use_scaled(GEMMEPI_E4M3, anew));
    REFUSED_DESC(INVALID_ARGUMENT, "aux.scale.mode", "F32", use(gate | GEMMEPI_AUX),
                 desc.aux.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.dtype", "F64", use(anew), desc.aux.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "AMAX_AUX", use(back), desc.flags = GEMMEPI_AMAX_AUX);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "AMAX_AUX", use(anew), desc.flags = GEMMEPI_AMAX_AUX);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_aux", "NULL", use_scaled(GEMMEPI_E4M3, back),
                 args.scale_aux = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_aux", "NULL", use_scaled(GEMMEPI_E4M3, anew),
                 args.scale_aux = NULL);
}

static void a_parameter_goes_with_leaky_relu_and_elu_alone(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "activation_parameter", "0.5", desc.activation_parameter = 0.5);
    REFUSED_DESC(INVALID_ARGUMENT, "activation_parameter", "SILU", desc.epilogue = GEMMEPI_SILU,
                 desc.activation_parameter = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "activation_parameter", "finite", desc.epilogue = GEMMEPI_ELU,
                 desc.has_parameter = 1, desc.activation_parameter = NAN);
    REFUSED_DESC(INVALID_ARGUMENT, "activation_parameter", "finite", desc.epilogue = GEMMEPI_LEAKY_RELU,
                 desc.has_parameter = 1, desc.activation_parameter = -INFINITY);
    REFUSED_DESC(INVALID_ARGUMENT, "activation_parameter|has_parameter", "0.5", desc.epilogue = GEMMEPI_ELU,
                 desc.activation_parameter = 0.5);
    REFUSED_DESC(INVALID_ARGUMENT, "has_parameter", "SILU", desc.epilogue = GEMMEPI_SILU,
                 desc.has_parameter = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "has_parameter", "2", desc.epilogue = GEMMEPI_ELU, desc.has_parameter = 2);
    ACCEPTED(desc.epilogue = GEMMEPI_ELU, desc.has_parameter = 1, desc.activation_parameter = -1.5);
    ACCEPTED(desc.epilogue = GEMMEPI_LEAKY_RELU, desc.has_parameter = 1);
}

static void numbers_of_cublaslt_are_refused_with_the_name_to_use(void) {
    static const struct {
        gemmepi_epilogue number;
        const char *name;
    } rows[] = {{1, "GEMMEPI_EPILOGUE_DEFAULT"},    {2, "GEMMEPI_EPILOGUE_RELU"},
                {130, "GEMMEPI_EPILOGUE_RELU_AUX"}, {4, "GEMMEPI_EPILOGUE_BIAS"},
                {6, "GEMMEPI_EPILOGUE_RELU_BIAS"},  {134, "GEMMEPI_EPILOGUE_RELU_AUX_BIAS"},
                {136, "GEMMEPI_EPILOGUE_DRELU"},    {152, "GEMMEPI_EPILOGUE_DRELU_BGRAD"},
                {32, "GEMMEPI_EPILOGUE_GELU"},      {160, "GEMMEPI_EPILOGUE_GELU_AUX"},
                {36, "GEMMEPI_EPILOGUE_GELU_BIAS"}, {164, "GEMMEPI_EPILOGUE_GELU_AUX_BIAS"},
                {192, "GEMMEPI_EPILOGUE_DGELU"},    {208, "GEMMEPI_EPILOGUE_DGELU_BGRAD"},
                {256, "GEMMEPI_EPILOGUE_BGRADA"},   {512, "GEMMEPI_EPILOGUE_BGRADB"}};
    int i;
    for (i = 0; i < (int)(sizeof rows / sizeof rows[0]); i++)
        REFUSED_DESC(INVALID_ARGUMENT, "epilogue", rows[i].name, desc.epilogue = rows[i].number);
}

static void two_activations_or_ed_are_refused(void) {
    int i, j;
    for (i = 1; i < ACTIVATION_COUNT; i++)
        for (j = 1; j < i; j++)
            REFUSED_DESC(INVALID_ARGUMENT, "epilogue", "never two",
                         desc.epilogue = activation_codes[i] | activation_codes[j]);
}

static void a_flag_in_another_field_is_refused_with_the_name_of_its_own(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "desc.epilogue", desc.flags = GEMMEPI_BIAS);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "desc.epilogue", desc.flags = GEMMEPI_ACCUMULATE_BIAS_GRAD);
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", "desc.flags", desc.epilogue = GEMMEPI_ACCUMULATE);
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", "desc.flags", desc.epilogue = GEMMEPI_SILU | GEMMEPI_RELAXED);
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", "desc.flags", desc.epilogue = GEMMEPI_BATCH_INVARIANT);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "gemmepi_linear_desc.flags", desc.flags = GEMMEPI_LINEAR_BIAS);
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", "gemmepi_elementwise_desc.flags",
                 desc.epilogue = GEMMEPI_CAST_AMAX);
}

/* Rows of a matrix begin anywhere. */
static void batch_invariance_takes_pointers_of_any_alignment(void) {
    ACCEPTED(desc.flags = GEMMEPI_BATCH_INVARIANT, desc.alignment = 4);
    ACCEPTED(use(GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD), desc.flags = GEMMEPI_BATCH_INVARIANT,
             desc.alignment = 4);
    ACCEPTED(desc.flags = GEMMEPI_BATCH_INVARIANT, desc.alignment = 0, args.a = at(T_A, 4));
}

static void accumulation_is_refused_where_it_is_not_clear_what_comes_first(void) {
    static const gemmepi_epilogue unclear[] = {GEMMEPI_RELU,  GEMMEPI_SILU,  GEMMEPI_AUX,
                                               GEMMEPI_BGRAD, GEMMEPI_GATED, GEMMEPI_SILU | GEMMEPI_BACKWARD};
    static const double one = 1;
    int i;
    for (i = 0; i < (int)(sizeof unclear / sizeof unclear[0]); i++) {
        REFUSED_DESC(INVALID_ARGUMENT, "flags", unclear[i] & GEMMEPI_GATED ? "ACCUMULATE" : "args.beta",
                     use(unclear[i]), memset(&desc.c, 0, sizeof desc.c), desc.flags = GEMMEPI_ACCUMULATE);
        REFUSED_DESC(INVALID_ARGUMENT, "flags", "RESIDUAL", use(unclear[i]),
                     memset(&desc.c, 0, sizeof desc.c), desc.flags = GEMMEPI_ACCUMULATE);
    }
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", "ACCUMULATE", memset(&desc.c, 0, sizeof desc.c),
                 desc.flags = GEMMEPI_ACCUMULATE);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.beta", "ACCUMULATE", memset(&desc.c, 0, sizeof desc.c),
                 desc.flags = GEMMEPI_ACCUMULATE, args.c = NULL, args.beta = &one);
    REFUSED_DESC(INVALID_ARGUMENT, "c", "ACCUMULATE", desc.flags = GEMMEPI_ACCUMULATE, desc.c.ld = 2 * N);
    ACCEPTED(memset(&desc.c, 0, sizeof desc.c), desc.flags = GEMMEPI_ACCUMULATE, args.c = NULL,
             args.beta = NULL);
    ACCEPTED(use(GEMMEPI_BIAS), memset(&desc.c, 0, sizeof desc.c), desc.flags = GEMMEPI_ACCUMULATE,
             args.c = NULL, args.beta = NULL);
}

static void use_accumulating(void) {
    memset(&desc.c, 0, sizeof desc.c);
    desc.flags = GEMMEPI_ACCUMULATE;
    args.c = NULL, args.beta = NULL;
}

/* C is D then, and beta 1: the caller has set neither. */
static void sentences_about_accumulate_speak_of_d(void) {
#define OF_D(refused, names, value, status, ...)                                                             \
    refused(status, names, value, use_accumulating(), __VA_ARGS__);                                          \
    CHECK(!mentions(gemmepi_last_error(), "c|desc.c|args.c|beta|args.beta"), "after '%s': %s", #__VA_ARGS__, \
          gemmepi_last_error())
    OF_D(REFUSED_ARGS, "args.d", "ACCUMULATE", INVALID_ARGUMENT, args.d = NULL);
    OF_D(REFUSED_ARGS, "args.d", NULL, MISALIGNED, args.d = at(T_D, 2));
    OF_D(REFUSED_ARGS, "args.d", "args.a", INVALID_ARGUMENT, args.d = (void *)(uintptr_t)args.a);
    OF_D(REFUSED_ARGS, "args.d", "begin there", INVALID_ARGUMENT, args.d = (void *)~(uintptr_t)63);
    OF_D(REFUSED_DESC, "desc.d.ld", "9", INVALID_ARGUMENT, desc.d.ld = N - 1);
    OF_D(REFUSED_DESC, "desc.d.batch_stride", "1", INVALID_ARGUMENT, desc.d.batch_stride = 1);
    OF_D(REFUSED_DESC, "desc.d", "2^56", INVALID_ARGUMENT, desc.d.ld = (int64_t)1 << 55);
    OF_D(REFUSED_DESC, "desc.d.dtype", "F64", INVALID_ARGUMENT, desc.d.dtype = GEMMEPI_F64);
}

static void what_would_be_ignored_or_wrap_is_refused(void) {
    gemmepi_plan *plan = NULL;
    REFUSED_DESC(INVALID_ARGUMENT, "aux.dtype", "leave it 0", use(GEMMEPI_RELU | GEMMEPI_AUX),
                 desc.aux.dtype = GEMMEPI_F32); /* d's own type, too */
    REFUSED_DESC(INVALID_ARGUMENT, "activation_parameter", "F32", desc.epilogue = GEMMEPI_ELU,
                 desc.has_parameter = 1, desc.activation_parameter = 1e300);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.workspace", "4096", args.workspace_size = 4096);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.a", "begin there", args.a = (void *)~(uintptr_t)63);
    use(GEMMEPI_NONE);
    CHECK(gemmepi_plan_matmul(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_explain(plan, NULL, 100) == gemmepi_plan_explain(plan, NULL, 0),
          "a text without room has its length");
    gemmepi_plan_destroy(plan);
}

/* An operand at d's address is told what keeps it from being d. */
static void an_operand_that_is_nearly_d_is_told_the_difference(void) {
    REFUSED_ARGS(INVALID_ARGUMENT, "desc.c.ld", "must be the same", args.c = args.d,
                 desc.c.ld = desc.d.ld + 8);
    REFUSED_ARGS(INVALID_ARGUMENT, "desc.residual.ld", "must be the same", use(GEMMEPI_RESIDUAL),
                 desc.residual.ld = desc.d.ld + 8, args.residual = args.d);
    REFUSED_ARGS(INVALID_ARGUMENT, "desc.c.dtype", "BF16", use_dtype(GEMMEPI_F32, GEMMEPI_NONE),
                 desc.c.dtype = GEMMEPI_BF16, args.c = args.d, args.beta = &(double){1});
}

static void a_plan_of_another_kind_is_refused(void) {
    gemmepi_elementwise_args other = {0};
    gemmepi_linear_args layers = {0};
    gemmepi_plan *plan = NULL;
    use(GEMMEPI_NONE);
    CHECK(gemmepi_plan_matmul(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_run_elementwise(plan, &other, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "gemmepi_plan_matmul") != NULL,
          "%s", gemmepi_last_error());
    CHECK(gemmepi_run_linear(plan, &layers, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "gemmepi_plan_linear") != NULL,
          "%s", gemmepi_last_error());
    CHECK(gemmepi_run_linear_backward(plan, &layers, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "gemmepi_plan_linear_backward") != NULL,
          "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
}

static void unknown_values_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "order", "2", desc.order = (gemmepi_order)2);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "6", desc.compute = (gemmepi_compute)6);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "0x20", desc.flags = 0x20);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "= {0}", desc.flags = 0x80000001u);
    REFUSED_DESC(INVALID_ARGUMENT, "order", "= {0}", desc.order = (gemmepi_order)-7);
    REFUSED_DESC(INVALID_ARGUMENT, "m", "= {0}", desc.m = INT64_MIN);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype", "= {0}", desc.a.dtype = (gemmepi_dtype)77);
    REFUSED_DESC(INVALID_ARGUMENT, "a.transposed", "= {0}", desc.a.transposed = 1234);
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", "= {0}", desc.epilogue = 0xfefefefefefefefeull);
    REFUSED_DESC(INVALID_ARGUMENT, "alignment", "3", desc.alignment = 3);
    REFUSED_DESC(INVALID_ARGUMENT, "alignment", "512", desc.alignment = 512);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype", "14", desc.a.dtype = (gemmepi_dtype)14);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype", "I4", desc.a.dtype = GEMMEPI_I4);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", "E8M0", desc.d.dtype = GEMMEPI_E8M0);
    REFUSED_DESC(INVALID_ARGUMENT, "bias.dtype", "E2M1", use(GEMMEPI_BIAS), desc.bias.dtype = GEMMEPI_E2M1);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype", "-1", desc.a.dtype = (gemmepi_dtype)-1);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype", "I64", desc.a.dtype = GEMMEPI_I64);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", "I64", desc.d.dtype = GEMMEPI_I64);
    REFUSED_DESC(INVALID_ARGUMENT, "b.dtype", "99", desc.b.dtype = (gemmepi_dtype)99);
    REFUSED_DESC(INVALID_ARGUMENT, "c.dtype", "99", desc.c.dtype = (gemmepi_dtype)99);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", "99", desc.d.dtype = (gemmepi_dtype)99);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.dtype", "99", use(GEMMEPI_SILU | GEMMEPI_AUX),
                 desc.aux.dtype = (gemmepi_dtype)99);
    REFUSED_DESC(INVALID_ARGUMENT, "residual.dtype", "99", use(GEMMEPI_RESIDUAL),
                 desc.residual.dtype = (gemmepi_dtype)99);
    REFUSED_DESC(INVALID_ARGUMENT, "bias.dtype", "99", use(GEMMEPI_BIAS),
                 desc.bias.dtype = (gemmepi_dtype)99);
    REFUSED_DESC(INVALID_ARGUMENT, "bias_grad.dtype", "99", use(GEMMEPI_BGRAD),
                 desc.bias_grad.dtype = (gemmepi_dtype)99);
    REFUSED_DESC(INVALID_ARGUMENT, "a.scale.mode", "5", use_scaled(GEMMEPI_E4M3, 0),
                 desc.a.scale.mode = (gemmepi_scale_mode)5);
    REFUSED_DESC(INVALID_ARGUMENT, "b.scale.mode", "-1", use_scaled(GEMMEPI_I8, 0),
                 desc.b.scale.mode = (gemmepi_scale_mode)-1);
    REFUSED_DESC(INVALID_ARGUMENT, "c.scale.mode", "99", use_scaled(GEMMEPI_E5M2, 0),
                 desc.c.scale.mode = (gemmepi_scale_mode)99);
    REFUSED_DESC(INVALID_ARGUMENT, "d.scale.mode", "99", desc.d.scale.mode = (gemmepi_scale_mode)99);
}

static void dtypes_that_do_not_go_together_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "b.dtype", "F64", use_dtype(GEMMEPI_F32, 0), desc.b.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype|b.dtype", "F64", use_dtype(GEMMEPI_F64, 0),
                 desc.b.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype|b.dtype", "F64", use_dtype(GEMMEPI_E4M3, 0),
                 desc.a.dtype = GEMMEPI_F64, desc.b.dtype = GEMMEPI_E4M3);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype|b.dtype", "F64", use_dtype(GEMMEPI_I8, 0),
                 desc.b.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype", "I32", use_dtype(GEMMEPI_I8, 0), desc.a.dtype = GEMMEPI_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "b.dtype", "I32", use_dtype(GEMMEPI_I8, 0), desc.b.dtype = GEMMEPI_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "b.dtype", "I32", desc.b.dtype = GEMMEPI_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", "F64", use_dtype(GEMMEPI_F32, 0), desc.d.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", "F64", use_dtype(GEMMEPI_I8, 0), desc.d.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", "F32", use_dtype(GEMMEPI_F64, 0), desc.d.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", "E4M3", use_dtype(GEMMEPI_F64, 0), desc.d.dtype = GEMMEPI_E4M3);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", "I32", use_dtype(GEMMEPI_F64, 0), desc.d.dtype = GEMMEPI_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", "I32", use_dtype(GEMMEPI_BF16, 0), desc.d.dtype = GEMMEPI_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", "I32", use_pair(GEMMEPI_I8, GEMMEPI_E4M3, GEMMEPI_F32, 0),
                 desc.d.dtype = GEMMEPI_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "c.dtype", "F32", use_dtype(GEMMEPI_F64, 0), desc.c.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "c.dtype", "F64", desc.c.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "c.dtype", "I32", use_dtype(GEMMEPI_I8, 0), desc.c.dtype = GEMMEPI_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.dtype", "F32", use_dtype(GEMMEPI_F64, GEMMEPI_SILU | GEMMEPI_AUX),
                 desc.aux.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.dtype", "I32", use_dtype(GEMMEPI_F16, GEMMEPI_SILU | GEMMEPI_AUX),
                 desc.aux.dtype = GEMMEPI_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.dtype", "F64",
                 use_dtype(GEMMEPI_E5M2, GEMMEPI_TANH | GEMMEPI_BACKWARD), desc.aux.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "residual.dtype", "F64", use_dtype(GEMMEPI_BF16, GEMMEPI_RESIDUAL),
                 desc.residual.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "residual.dtype", "I32", use_dtype(GEMMEPI_E4M3, GEMMEPI_RESIDUAL),
                 desc.residual.dtype = GEMMEPI_I32);
}

static void a_bias_is_of_f32_f16_or_bf16(void) {
    static const gemmepi_dtype refused[] = {GEMMEPI_F64, GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8, GEMMEPI_I32};
    static const char *const names[] = {"F64", "E4M3", "E5M2", "I8", "I32"};
    static const gemmepi_dtype operands[] = {GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_I8};
    int i, j;
    for (i = 0; i < 5; i++)
        for (j = 0; j < 4; j++) {
            REFUSED_DESC(INVALID_ARGUMENT, "bias.dtype", names[i], use_dtype(operands[j], GEMMEPI_BIAS),
                         desc.bias.dtype = refused[i]);
            REFUSED_DESC(INVALID_ARGUMENT, "bias_grad.dtype", names[i],
                         use_dtype(operands[j], GEMMEPI_BGRAD_B), desc.bias_grad.dtype = refused[i]);
        }
    REFUSED_DESC(INVALID_ARGUMENT, "bias.dtype", "F32", use_dtype(GEMMEPI_F64, GEMMEPI_BIAS),
                 desc.bias.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "bias_grad.dtype", "F32", use_dtype(GEMMEPI_F64, GEMMEPI_BGRAD),
                 desc.bias_grad.dtype = GEMMEPI_F32);
}

static void arithmetic_that_the_operands_do_not_have_is_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "TF32", use_dtype(GEMMEPI_F16, 0),
                 desc.compute = GEMMEPI_COMPUTE_TF32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "TF32", use_dtype(GEMMEPI_BF16, 0),
                 desc.compute = GEMMEPI_COMPUTE_TF32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "TF32", use_dtype(GEMMEPI_F64, 0),
                 desc.compute = GEMMEPI_COMPUTE_TF32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "TF32", use_dtype(GEMMEPI_I8, 0),
                 desc.compute = GEMMEPI_COMPUTE_TF32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "TF32", use_dtype(GEMMEPI_E4M3, 0),
                 desc.compute = GEMMEPI_COMPUTE_TF32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "TF32", use_pair(GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_F32, 0),
                 desc.compute = GEMMEPI_COMPUTE_TF32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "F32", use_dtype(GEMMEPI_F64, 0),
                 desc.compute = GEMMEPI_COMPUTE_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "F64", use_dtype(GEMMEPI_F32, 0),
                 desc.compute = GEMMEPI_COMPUTE_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "F64", use_dtype(GEMMEPI_I8, 0),
                 desc.compute = GEMMEPI_COMPUTE_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "I32", desc.compute = GEMMEPI_COMPUTE_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "I32", use_dtype(GEMMEPI_E5M2, 0),
                 desc.compute = GEMMEPI_COMPUTE_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "I32", use_pair(GEMMEPI_I8, GEMMEPI_F16, GEMMEPI_F32, 0),
                 desc.compute = GEMMEPI_COMPUTE_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "F32", use_whole(GEMMEPI_NONE),
                 desc.compute = GEMMEPI_COMPUTE_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "F16 with F16 operands", desc.compute = GEMMEPI_COMPUTE_F16);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "F16 with F16 operands", use_dtype(GEMMEPI_BF16, 0),
                 desc.compute = GEMMEPI_COMPUTE_F16);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "F16 with F16 operands", use_dtype(GEMMEPI_F64, 0),
                 desc.compute = GEMMEPI_COMPUTE_F16);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "F16 with F16 operands", use_whole(GEMMEPI_NONE),
                 desc.compute = GEMMEPI_COMPUTE_F16);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "F16 with F16 operands", use_dtype(GEMMEPI_E5M2, 0),
                 desc.compute = GEMMEPI_COMPUTE_F16);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "F16 with F16 operands",
                 use_pair(GEMMEPI_E5M2, GEMMEPI_F16, GEMMEPI_F16, 0), desc.compute = GEMMEPI_COMPUTE_F16);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "F16 with F16 operands",
                 use_pair(GEMMEPI_F16, GEMMEPI_I8, GEMMEPI_F16, 0), desc.compute = GEMMEPI_COMPUTE_F16);
    ACCEPTED(use_dtype(GEMMEPI_F16, 0), desc.compute = GEMMEPI_COMPUTE_F16);
    ACCEPTED(use_pair(GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_F32, 0), desc.compute = GEMMEPI_COMPUTE_F16);
    ACCEPTED(use_pair(GEMMEPI_F16, GEMMEPI_F16, GEMMEPI_E4M3, 0), desc.compute = GEMMEPI_COMPUTE_F16);
}

static void fast_accumulation_is_for_fp8_alone(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "FAST_ACCUMULATION", desc.flags = GEMMEPI_FAST_ACCUMULATION);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "FAST_ACCUMULATION", use_dtype(GEMMEPI_F16, 0),
                 desc.flags = GEMMEPI_FAST_ACCUMULATION);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "FAST_ACCUMULATION", use_dtype(GEMMEPI_I8, 0),
                 desc.flags = GEMMEPI_FAST_ACCUMULATION);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "FAST_ACCUMULATION", use_whole(GEMMEPI_NONE),
                 desc.flags = GEMMEPI_FAST_ACCUMULATION);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "FAST_ACCUMULATION",
                 use_pair(GEMMEPI_E4M3, GEMMEPI_F16, GEMMEPI_F16, 0), desc.flags = GEMMEPI_FAST_ACCUMULATION);
    ACCEPTED(use_pair(GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_BF16, 0), desc.flags = GEMMEPI_FAST_ACCUMULATION);
}

/* What went wrong before there were scales and narrow types. */
static void types_that_only_look_apart_are_accepted(void) {
    problem p = problem_plain(GEMMEPI_F32, M, N, K, GEMMEPI_BIAS | GEMMEPI_BGRAD);
    p.desc.bias.dtype = GEMMEPI_F16;
    p.desc.bias_grad.dtype = GEMMEPI_BF16;
    ACCEPTED(use_problem(p));
    ACCEPTED(use_pair(GEMMEPI_F16, GEMMEPI_BF16, GEMMEPI_F32, 0), desc.compute = GEMMEPI_COMPUTE_TF32);
    ACCEPTED(use_pair(GEMMEPI_I8, GEMMEPI_F32, GEMMEPI_E4M3, 0), desc.compute = GEMMEPI_COMPUTE_TF32);
    ACCEPTED(use_pair(GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_BF16, 0), desc.compute = GEMMEPI_COMPUTE_F32);
    ACCEPTED(use_pair(GEMMEPI_I8, GEMMEPI_I8, GEMMEPI_I8, 0), desc.compute = GEMMEPI_COMPUTE_I32);
    ACCEPTED(use_whole(GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_A));
    ACCEPTED(desc.residual.scale.mode = (gemmepi_scale_mode)99); /* is read with RESIDUAL alone */
}

/* >>results in I32 */

static void an_i32_result_has_no_floating_point_beside_it(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "c.dtype", "F32", use_whole(0), desc.c.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "c.dtype", "I8", use_whole(0), desc.c.dtype = GEMMEPI_I8);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.dtype", "I8", use_whole(GEMMEPI_AUX), desc.aux.dtype = GEMMEPI_I8);
    REFUSED_DESC(INVALID_ARGUMENT, "residual.dtype", "BF16", use_whole(GEMMEPI_RESIDUAL),
                 desc.residual.dtype = GEMMEPI_BF16);
    REFUSED_DESC(INVALID_ARGUMENT, "bias.dtype", "F32", use_whole(GEMMEPI_BIAS),
                 desc.bias.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "bias_grad.dtype", "F32", use_whole(GEMMEPI_BGRAD_A),
                 desc.bias_grad.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "bias_grad.dtype", "F64", use_whole(GEMMEPI_BGRAD_B),
                 desc.bias_grad.dtype = GEMMEPI_F64);
}

static void an_i32_result_has_few_epilogues(void) {
    static const gemmepi_epilogue refused[] = {GEMMEPI_GELU_TANH,
                                               GEMMEPI_GELU_ERF | GEMMEPI_BIAS,
                                               GEMMEPI_SILU | GEMMEPI_AUX,
                                               GEMMEPI_SIGMOID,
                                               GEMMEPI_TANH,
                                               GEMMEPI_BACKWARD,
                                               GEMMEPI_RELU | GEMMEPI_BACKWARD,
                                               GEMMEPI_BGRAD,
                                               GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD};
    static const gemmepi_epilogue gated[] = {GATE, GEMMEPI_GATED | GEMMEPI_BGRAD,
                                             GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_BACKWARD,
                                             GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM,
                                             GEMMEPI_RELU | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM};
    size_t i;
    for (i = 0; i < sizeof refused / sizeof refused[0]; i++)
        REFUSED_DESC(INVALID_ARGUMENT, "epilogue", "I32", use_whole(0), desc.epilogue = refused[i]);
    for (i = 0; i < sizeof gated / sizeof gated[0]; i++)
        REFUSED_DESC(INVALID_ARGUMENT, "epilogue", "I32", use_whole(gated[i]));
    ACCEPTED(use_whole(GEMMEPI_GATED | GEMMEPI_BGRAD_B));
    ACCEPTED(use_whole(GEMMEPI_RELU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST | GEMMEPI_AUX | GEMMEPI_RESIDUAL));
}

static void an_i32_result_has_neither_scales_nor_amax(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "a.scale.mode", "I32", use_whole(0),
                 desc.a.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "b.scale.mode", "I32", use_whole(0),
                 desc.b.scale.mode = GEMMEPI_SCALE_OUTER);
    REFUSED_DESC(INVALID_ARGUMENT, "c.scale.mode", "I32", use_whole(0),
                 desc.c.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "d.scale.mode", "I32", use_whole(0),
                 desc.d.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.scale.mode", "I32", use_whole(GEMMEPI_AUX),
                 desc.aux.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "residual.scale.mode", "I32", use_whole(GEMMEPI_RESIDUAL),
                 desc.residual.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "AMAX_D", "I32", use_whole(0), desc.flags = GEMMEPI_AMAX_D);
    REFUSED_DESC(INVALID_ARGUMENT, "AMAX_AUX", "I32", use_whole(GEMMEPI_AUX), desc.flags = GEMMEPI_AMAX_AUX);
}

static void an_i32_result_takes_whole_numbers_of_32_bits_as_alpha_and_beta(void) {
    static const double refused[] = {0.5, -1.25, 2147483648.0, -2147483649.0, 1e300, 2147483646.5};
    static const char *const texts[] = {"0.5", "1.25", "2147483648", "2147483649", "300", "2147483646.5"};
    static const double accepted[] = {2147483647, -2147483648.0, -0.0, 3};
    double none = (double)NAN, endless = -(double)INFINITY;
    int i;
    for (i = 0; i < 6; i++) {
        REFUSED_ARGS(INVALID_ARGUMENT, "args.alpha", texts[i], use_whole(0), args.alpha = &refused[i]);
        REFUSED_ARGS(INVALID_ARGUMENT, "args.beta", texts[i], use_whole(0), args.beta = &refused[i]);
    }
    REFUSED_ARGS(INVALID_ARGUMENT, "args.alpha", NULL, use_whole(0), args.alpha = &none);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.beta", NULL, use_whole(0), args.beta = &none);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.alpha", NULL, use_whole(0), args.alpha = &endless);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.beta", NULL, use_whole(0), args.beta = &endless);
    for (i = 0; i < 4; i++)
        ACCEPTED(use_whole(0), args.alpha = args.beta = &accepted[i]);
    ACCEPTED(use_scaled(GEMMEPI_I8, 0), args.alpha = args.beta = &refused[0]);
}

/* >>scales */

static void types_of_more_than_8_bits_take_no_scale(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "a.scale.mode", "F32", desc.a.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "b.scale.mode", "F16", use_dtype(GEMMEPI_F16, 0),
                 desc.b.scale.mode = GEMMEPI_SCALE_OUTER);
    REFUSED_DESC(INVALID_ARGUMENT, "a.scale.mode", "F64", use_dtype(GEMMEPI_F64, 0),
                 desc.a.scale.mode = GEMMEPI_SCALE_BLOCK_128);
    REFUSED_DESC(INVALID_ARGUMENT, "b.scale.mode", "BF16",
                 use_pair(GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_E4M3, 0),
                 desc.b.scale.mode = GEMMEPI_SCALE_VECTOR_128);
    REFUSED_DESC(INVALID_ARGUMENT, "c.scale.mode", "BF16", use_dtype(GEMMEPI_E4M3, 0), /* c's default */
                 desc.c.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "d.scale.mode", "F32",
                 use_pair(GEMMEPI_E5M2, GEMMEPI_E5M2, GEMMEPI_F32, 0),
                 desc.d.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.scale.mode", "BF16",
                 use_dtype(GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_AUX),
                 desc.aux.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.scale.mode", "F16",
                 use_scaled(GEMMEPI_E4M3, GEMMEPI_TANH | GEMMEPI_BACKWARD), desc.aux.dtype = GEMMEPI_F16);
    REFUSED_DESC(INVALID_ARGUMENT, "residual.scale.mode", "F32", use_scaled(GEMMEPI_I8, GEMMEPI_RESIDUAL),
                 desc.residual.dtype = GEMMEPI_F32);
}

static void a_mask_takes_no_scale(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "aux.scale.mode", "1",
                 use_scaled(GEMMEPI_E4M3, GEMMEPI_RELU | GEMMEPI_AUX),
                 desc.aux.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.scale.mode", "1",
                 use_scaled(GEMMEPI_I8, GEMMEPI_RELU | GEMMEPI_BACKWARD),
                 desc.aux.scale.mode = GEMMEPI_SCALE_TENSOR);
}

static void only_a_and_b_have_more_than_one_scale(void) {
    static const char *const texts[] = {"2", "3", "4"};
    static const gemmepi_epilogue both = GEMMEPI_SILU | GEMMEPI_AUX | GEMMEPI_RESIDUAL;
    int i;
    for (i = 0; i < 3; i++) {
        gemmepi_scale_mode mode = (gemmepi_scale_mode)(i + 2);
        REFUSED_DESC(INVALID_ARGUMENT, "c.scale.mode", texts[i], use_scaled(GEMMEPI_E4M3, both),
                     desc.c.scale.mode = mode);
        REFUSED_DESC(INVALID_ARGUMENT, "d.scale.mode", texts[i], use_scaled(GEMMEPI_E5M2, both),
                     desc.d.scale.mode = mode);
        REFUSED_DESC(INVALID_ARGUMENT, "aux.scale.mode", texts[i], use_scaled(GEMMEPI_I8, both),
                     desc.aux.scale.mode = mode);
        REFUSED_DESC(INVALID_ARGUMENT, "residual.scale.mode", texts[i], use_scaled(GEMMEPI_E4M3, both),
                     desc.residual.scale.mode = mode);
    }
}

static void a_stride_of_scales_goes_with_a_mode_and_forward(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "a.scale.batch_stride", "7", desc.a.scale.batch_stride = 7);
    REFUSED_DESC(INVALID_ARGUMENT, "b.scale.batch_stride", "-7", desc.b.scale.batch_stride = -7);
    REFUSED_DESC(INVALID_ARGUMENT, "d.scale.batch_stride", "1", use_dtype(GEMMEPI_E4M3, 0),
                 desc.d.scale.batch_stride = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.scale.batch_stride", "1",
                 use_scaled(GEMMEPI_E4M3, GEMMEPI_RELU | GEMMEPI_AUX), desc.aux.scale.batch_stride = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "a.scale.batch_stride", "-1", use_scaled(GEMMEPI_E4M3, 0),
                 desc.a.scale.batch_stride = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "residual.scale.batch_stride", "-8",
                 use_scaled(GEMMEPI_I8, GEMMEPI_RESIDUAL), desc.residual.scale.batch_stride = -8);
    REFUSED_DESC(INVALID_ARGUMENT, "d.scale|d.scale.batch_stride", INT64_MAX_TEXT,
                 use_scaled(GEMMEPI_E4M3, 0), desc.d.scale.batch_stride = INT64_MAX);
}

static void a_scale_that_has_a_mode_needs_its_pointer(void) {
    static const gemmepi_epilogue both = GEMMEPI_SILU | GEMMEPI_AUX | GEMMEPI_RESIDUAL;
    static const double zero = 0;
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_a", "NULL", use_scaled(GEMMEPI_E4M3, both),
                 args.scale_a = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_b", "NULL", use_scaled(GEMMEPI_E4M3, both),
                 args.scale_b = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_c", "NULL", use_scaled(GEMMEPI_E4M3, both),
                 args.scale_c = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_d", "NULL", use_scaled(GEMMEPI_E4M3, both),
                 args.scale_d = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_aux", "NULL", use_scaled(GEMMEPI_E4M3, both),
                 args.scale_aux = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_residual", "NULL", use_scaled(GEMMEPI_E4M3, both),
                 args.scale_residual = NULL);
    ACCEPTED(use_scaled(GEMMEPI_E4M3, both), args.beta = &zero, args.c = args.scale_c = NULL);
    ACCEPTED(use_scaled(GEMMEPI_E4M3, both), args.beta = &zero); /* given all the same */
}

static void a_scale_without_a_mode_takes_no_pointer(void) {
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_a", "NONE", args.scale_a = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_b", "NONE", args.scale_b = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_c", "NONE", args.scale_c = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_d", "NONE", args.scale_d = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_aux", NULL, args.scale_aux = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_residual", NULL, args.scale_residual = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_a", "NONE", use_dtype(GEMMEPI_E4M3, 0),
                 args.scale_a = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_aux", NULL,
                 use_scaled(GEMMEPI_E4M3, GEMMEPI_RELU | GEMMEPI_AUX), args.scale_aux = at(T_A, 0));
}

/* >>amax */

static void an_amax_of_what_is_not_stored_is_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "AMAX_AUX", desc.flags = GEMMEPI_AMAX_AUX);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "AMAX_AUX", use(GEMMEPI_SILU | GEMMEPI_BACKWARD),
                 desc.flags = GEMMEPI_AMAX_AUX);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "AMAX_AUX", use(GEMMEPI_RELU | GEMMEPI_BACKWARD),
                 desc.flags = GEMMEPI_AMAX_AUX);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "AMAX_AUX", use(GEMMEPI_RELU | GEMMEPI_AUX),
                 desc.flags = GEMMEPI_AMAX_AUX);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "AMAX_AUX", use_scaled(GEMMEPI_E4M3, GEMMEPI_RELU | GEMMEPI_AUX),
                 desc.flags = GEMMEPI_AMAX_AUX | GEMMEPI_AMAX_D);
}

static void an_amax_needs_its_pointer_and_only_then(void) {
    static const gemmepi_epilogue aux = GEMMEPI_SILU | GEMMEPI_AUX;
    static const uint32_t both = GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX;
    REFUSED_ARGS(INVALID_ARGUMENT, "args.amax_d", "NULL", use_amax(GEMMEPI_E4M3, aux, both),
                 args.amax_d = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.amax_aux", "NULL", use_amax(GEMMEPI_E4M3, aux, both),
                 args.amax_aux = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.amax_d", "given", args.amax_d = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.amax_aux", "given", args.amax_aux = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.amax_aux", "given", use_amax(GEMMEPI_E4M3, aux, GEMMEPI_AMAX_D),
                 args.amax_aux = at(T_A, 0));
}

static void a_scale_or_an_amax_that_overlaps_an_output_is_refused(void) {
    static const gemmepi_epilogue all = GEMMEPI_SILU | GEMMEPI_AUX | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_A;
    static const uint32_t amax = GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX;
    static const double zero = 0;
    int t;
    for (t = T_SCALE_A; t <= T_SCALE_RESIDUAL; t++) {
        char name[32];
        snprintf(name, sizeof name, "args.%s", tensor_names[t]);
        REFUSED_ARGS(INVALID_ARGUMENT, name, "args.amax_d", use_amax(GEMMEPI_E4M3, all, amax),
                     args.amax_d = at(t, 0));
        REFUSED_ARGS(INVALID_ARGUMENT, name, "args.amax_aux", use_amax(GEMMEPI_E4M3, all, amax),
                     args.amax_aux = at(t, 0));
        REFUSED_ARGS(INVALID_ARGUMENT, name, "args.d", use_amax(GEMMEPI_E4M3, all, amax), args.d = at(t, 0));
        REFUSED_ARGS(INVALID_ARGUMENT, name, "args.aux", use_amax(GEMMEPI_E4M3, all, amax),
                     args.aux = at(t, 0));
        REFUSED_ARGS(INVALID_ARGUMENT, name, "args.bias_grad", use_amax(GEMMEPI_E4M3, all, amax),
                     args.bias_grad = at(t, 0));
    }
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_a", "args.amax_d", use_amax(GEMMEPI_E4M3, all, amax),
                 args.amax_d = at(T_SCALE_A, 4 * (M - 1))); /* its last number of the first item */
    REFUSED_ARGS(INVALID_ARGUMENT, "args.amax_aux", "args.amax_d", use_amax(GEMMEPI_E4M3, all, amax),
                 args.amax_aux = args.amax_d);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.d", "args.amax_d", use_amax(GEMMEPI_E4M3, all, amax),
                 args.amax_d = at(T_D, 4));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.b", "args.amax_d", use_amax(GEMMEPI_E4M3, all, amax),
                 args.amax_d = at(T_B, 0));
    ACCEPTED(use_amax(GEMMEPI_E4M3, all, amax), args.amax_d = at(T_SCALE_A, 4 * M)); /* between two items' */
    ACCEPTED(use_amax(GEMMEPI_E4M3, all, amax), args.scale_d = args.scale_aux = args.scale_residual);
    ACCEPTED(use_amax(GEMMEPI_E4M3, all, amax), args.beta = &zero, args.scale_c = args.amax_d);
    ACCEPTED(use_scaled(GEMMEPI_E4M3, GEMMEPI_RESIDUAL), args.c = args.residual = args.d);
}

/* >>scales that are found */

static void use_finding(gemmepi_scale_mode mode, int64_t batch) {
    problem p = problem_plain(GEMMEPI_BF16, M, N, K, GEMMEPI_NONE);
    p.desc.d.dtype = GEMMEPI_E4M3;
    p.desc.flags = GEMMEPI_FIND_SCALE_D;
    p.desc.d.scale.mode = mode;
    p.desc.amax_history = mode == GEMMEPI_SCALE_TENSOR ? 4 : 0;
    p.desc.batch = batch;
    problem_space_out(&p, 0);
    if (batch > 1 && mode != GEMMEPI_SCALE_TENSOR)
        p.desc.d.scale.batch_stride = M;
    use_problem(p);
}

static void scales_are_found_of_fp8_alone_in_three_modes(void) {
    static const gemmepi_scale_mode tensor = GEMMEPI_SCALE_TENSOR, outer = GEMMEPI_SCALE_OUTER,
                                    vector = GEMMEPI_SCALE_VECTOR_128;
    ACCEPTED(use_finding(tensor, 1));
    ACCEPTED(use_finding(outer, 2));
    ACCEPTED(use_finding(vector, 2));
    REFUSED_DESC(INVALID_ARGUMENT, "d.scale.mode", "0", use_finding(vector, 1),
                 desc.d.scale.mode = GEMMEPI_SCALE_NONE);
    REFUSED_DESC(INVALID_ARGUMENT, "d.scale.mode", "4", use_finding(vector, 1),
                 desc.d.scale.mode = GEMMEPI_SCALE_BLOCK_128);
    REFUSED_DESC(INVALID_ARGUMENT, "d.scale.mode", "7", use_finding(vector, 1),
                 desc.d.scale.mode = (gemmepi_scale_mode)7);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", "BF16", use_finding(vector, 1), desc.d.dtype = GEMMEPI_BF16);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", "I8", use_finding(vector, 1), desc.d.dtype = GEMMEPI_I8);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "ACCUMULATE", use_finding(vector, 1),
                 desc.flags |= GEMMEPI_ACCUMULATE);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "POWER_OF_TWO_SCALE", desc.flags = GEMMEPI_POWER_OF_TWO_SCALE);
    REFUSED_DESC(INVALID_ARGUMENT, "d.scale.batch_stride", "5", use_finding(vector, 2),
                 desc.d.scale.batch_stride = M - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "d.scale.batch_stride", "0", use_finding(outer, 2),
                 desc.d.scale.batch_stride = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "d.scale.batch_stride", "8", use_finding(tensor, 2),
                 desc.d.scale.batch_stride = 8);
    REFUSED_DESC(INVALID_ARGUMENT, "d.scale.mode", "3", use_finding(vector, 1), desc.flags = 0);
}

static void a_history_has_1_to_1024_runs_and_goes_with_one_scale(void) {
    static const gemmepi_scale_mode tensor = GEMMEPI_SCALE_TENSOR, vector = GEMMEPI_SCALE_VECTOR_128;
    REFUSED_DESC(INVALID_ARGUMENT, "amax_history", "0", use_finding(tensor, 1), desc.amax_history = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "amax_history", "-1", use_finding(tensor, 1), desc.amax_history = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "amax_history", "1025", use_finding(tensor, 1), desc.amax_history = 1025);
    REFUSED_DESC(INVALID_ARGUMENT, "amax_history", "4", use_finding(vector, 1), desc.amax_history = 4);
    REFUSED_DESC(INVALID_ARGUMENT, "amax_history", "4", desc.amax_history = 4);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "AMAX_D", use_finding(tensor, 1), desc.flags |= GEMMEPI_AMAX_D);
}

static void found_scales_need_their_pointers_and_only_then(void) {
    static const gemmepi_scale_mode tensor = GEMMEPI_SCALE_TENSOR, vector = GEMMEPI_SCALE_VECTOR_128;
    REFUSED_ARGS(INVALID_ARGUMENT, "args.found_scale_d", "NULL", use_finding(vector, 1),
                 args.found_scale_d = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.amax_history", "NULL", use_finding(tensor, 1),
                 args.amax_history = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.found_scale_d", "given", args.found_scale_d = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.amax_history", "given", args.amax_history = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.amax_history", "given", use_finding(vector, 1),
                 args.amax_history = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_d", "FIND_SCALE_D", use_finding(vector, 1),
                 args.scale_d = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_d", "FIND_SCALE_D", use_finding(tensor, 1),
                 args.scale_d = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.amax_d", "given", use_finding(tensor, 1), args.amax_d = at(T_A, 0));
    REFUSED_ARGS(MISALIGNED, "args.found_scale_d", "16", use_finding(vector, 1),
                 args.found_scale_d = at(T_FOUND_SCALE, 4));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.found_scale_d", "args.d", use_finding(vector, 1),
                 args.found_scale_d = at(T_D, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.amax_history", "args.found_scale_d", use_finding(tensor, 1),
                 args.found_scale_d = at(T_AMAX_HISTORY, 12));
}

/* >>column-major order, where a is the second operand inside */

static void in_column_major_order_the_callers_a_and_b_are_named(void) {
    static const gemmepi_scale_mode outer = GEMMEPI_SCALE_OUTER, one = GEMMEPI_SCALE_TENSOR;
    REFUSED_ARGS(INVALID_ARGUMENT, "args.a", "NULL", use_column_major(outer, one), args.a = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.b", "NULL", use_column_major(outer, one), args.b = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_a", "NULL", use_column_major(outer, one), args.scale_a = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_b", "NULL", use_column_major(outer, one), args.scale_b = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_a", "NONE", use_column_major(GEMMEPI_SCALE_NONE, one),
                 args.scale_a = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_b", "NONE", use_column_major(one, GEMMEPI_SCALE_NONE),
                 args.scale_b = at(T_B, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_a", "a.scale.mode", use_column_major(GEMMEPI_SCALE_NONE, one),
                 args.scale_a = at(T_A, 0));
    REFUSED_ARGS(MISALIGNED, "args.scale_a", "16", use_column_major(outer, one),
                 args.scale_a = at(T_SCALE_A, 4));
    REFUSED_ARGS(MISALIGNED, "args.scale_b", "4", use_column_major(outer, one),
                 args.scale_b = at(T_SCALE_B, 2));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_a", "args.d", use_column_major(outer, one),
                 args.d = at(T_SCALE_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_b", "args.d", use_column_major(outer, one),
                 args.d = at(T_SCALE_B, 0));
    REFUSED_DESC(INVALID_ARGUMENT, "a.scale.mode", "7", use_column_major(outer, one),
                 desc.a.scale.mode = (gemmepi_scale_mode)7);
    REFUSED_DESC(INVALID_ARGUMENT, "b.scale.mode", "BF16", use_column_major(outer, one),
                 desc.b.dtype = GEMMEPI_BF16);
    REFUSED_DESC(INVALID_ARGUMENT, "a.scale.batch_stride", "3", use_column_major(GEMMEPI_SCALE_NONE, one),
                 desc.a.scale.batch_stride = 3);
}

/* The scales of a are one for each of the caller's m rows, of b for each of the n columns, in either order. */
static void scales_have_the_lengths_of_the_callers_m_and_n(void) {
    static const gemmepi_scale_mode modes[] = {GEMMEPI_SCALE_TENSOR, GEMMEPI_SCALE_OUTER,
                                               GEMMEPI_SCALE_VECTOR_128, GEMMEPI_SCALE_BLOCK_128};
    static const size_t a_bytes[] = {4, 4 * 300, 4 * 600, 4 * 10}, b_bytes[] = {4, 4 * 500, 4 * 1000, 4 * 14};
    gemmepi_epilogue_needs needs;
    int i, order;
    for (i = 0; i < 4; i++)
        for (order = 0; order < 2; order++) {
            problem p = problem_plain(GEMMEPI_E4M3, 300, 500, 200, GEMMEPI_NONE);
            p.desc.order = (gemmepi_order)order;
            p.desc.a.transposed = order;
            p.desc.a.scale.mode = p.desc.b.scale.mode = modes[i];
            CHECK(gemmepi_epilogue_info(&p.desc, &needs) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(needs.scale_a_bytes == a_bytes[i] && needs.scale_b_bytes == b_bytes[i],
                  "mode %d, order %d: %d and %d bytes", (int)modes[i], order, (int)needs.scale_a_bytes,
                  (int)needs.scale_b_bytes);
        }
}

static void only_a_and_b_may_be_transposed(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "c.transposed", NULL, desc.c.transposed = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "d.transposed", NULL, desc.d.transposed = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.transposed", NULL, use(GEMMEPI_SILU | GEMMEPI_AUX),
                 desc.aux.transposed = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.transposed", NULL, use(GEMMEPI_RELU | GEMMEPI_BACKWARD),
                 desc.aux.transposed = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "residual.transposed", NULL, use(GEMMEPI_RESIDUAL),
                 desc.residual.transposed = 1);
}

/* >>alignment and workspace */

/* Every pointer of a call, to be spoilt one at a time. */
static void **pointer_of(int t) {
    return t == T_A           ? (void **)&args.a
           : t == T_B         ? (void **)&args.b
           : t == T_C         ? (void **)&args.c
           : t == T_D         ? &args.d
           : t == T_BIAS      ? (void **)&args.bias
           : t == T_AUX       ? &args.aux
           : t == T_BIAS_GRAD ? &args.bias_grad
                              : (void **)&args.residual;
}

static void shift(int t, int bytes) {
    *pointer_of(t) = at(t, bytes);
}

static void a_pointer_below_its_element_or_the_promise_is_misaligned(void) {
    static const gemmepi_epilogue everything =
        GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD;
    char name[32];
    int t;
    for (t = T_A; t <= T_RESIDUAL; t++) {
        snprintf(name, sizeof name, "args.%s", tensor_names[t]);
        REFUSED_ARGS(MISALIGNED, name, NULL, use(everything), desc.alignment = 1, shift(t, 2));
        REFUSED_ARGS(MISALIGNED, name, NULL, use(everything), desc.alignment = 4, shift(t, 6));
        REFUSED_ARGS(MISALIGNED, name, NULL, use(everything), desc.alignment = 64, shift(t, 32));
    }
}

/* Whatever desc.alignment is: scales that are more than one number at multiples of 16, the others of their size. */
static void a_misaligned_scale_or_amax_is_refused(void) {
    static const gemmepi_epilogue all = GEMMEPI_SILU | GEMMEPI_AUX | GEMMEPI_RESIDUAL;
    static const uint32_t amax = GEMMEPI_AMAX_D | GEMMEPI_AMAX_AUX;
    problem p = problem_scaled(GEMMEPI_E4M3, all);
    int mode;
    p.desc.alignment = 1;
    for (mode = GEMMEPI_SCALE_OUTER; mode <= GEMMEPI_SCALE_BLOCK_128; mode++) {
        p.desc.a.scale.mode = p.desc.b.scale.mode = (gemmepi_scale_mode)mode;
        REFUSED_ARGS(MISALIGNED, "args.scale_a", "16", use_problem(p), args.scale_a = at(T_SCALE_A, 8));
        REFUSED_ARGS(MISALIGNED, "args.scale_b", "16", use_problem(p), args.scale_b = at(T_SCALE_B, 4));
    }
    p.desc.a.scale.mode = p.desc.b.scale.mode = GEMMEPI_SCALE_TENSOR;
    REFUSED_ARGS(MISALIGNED, "args.scale_a", "4", use_problem(p), args.scale_a = at(T_SCALE_A, 2));
    REFUSED_ARGS(MISALIGNED, "args.scale_b", "4", use_problem(p), args.scale_b = at(T_SCALE_B, 1));
    REFUSED_ARGS(MISALIGNED, "args.scale_c", "4", use_problem(p), args.scale_c = at(T_SCALE_C, 2));
    REFUSED_ARGS(MISALIGNED, "args.scale_d", "4", use_problem(p), args.scale_d = at(T_SCALE_D, 2));
    REFUSED_ARGS(MISALIGNED, "args.scale_aux", "4", use_problem(p), args.scale_aux = at(T_SCALE_AUX, 3));
    REFUSED_ARGS(MISALIGNED, "args.scale_residual", "4", use_problem(p),
                 args.scale_residual = at(T_SCALE_RESIDUAL, 2));
    REFUSED_ARGS(MISALIGNED, "args.amax_d", "4", use_amax(GEMMEPI_E4M3, all, amax),
                 args.amax_d = at(T_AMAX_D, 2));
    REFUSED_ARGS(MISALIGNED, "args.amax_aux", "4", use_amax(GEMMEPI_E4M3, all, amax),
                 args.amax_aux = at(T_AMAX_AUX, 1));
    REFUSED_ARGS(MISALIGNED, "args.amax_d", "8", use_amax(GEMMEPI_F64, 0, GEMMEPI_AMAX_D),
                 args.amax_d = at(T_AMAX_D, 4));
    p.shift[T_SCALE_A] = p.shift[T_SCALE_D] = 4;
    p.desc.alignment = 256; /* of matrices and vectors */
    ACCEPTED(use_problem(p));
}

static void use_device_scalars(gemmepi_epilogue epilogue) {
    problem p = problem_plain(GEMMEPI_F32, M, N, K, epilogue);
    p.desc.batch = 2;
    p.desc.flags = GEMMEPI_DEVICE_SCALARS;
    p.desc.alignment = 4;
    problem_space_out(&p, 4);
    problem_scale(&p, 2, 3);
    use_problem(p);
}

/* Kernels load them as doubles, and may do so when some of an output is written. */
static void scalars_on_the_device_are_operands_too(void) {
    static const gemmepi_epilogue all = GEMMEPI_SILU | GEMMEPI_AUX | GEMMEPI_BGRAD_A;
    REFUSED_ARGS(MISALIGNED, "args.alpha", "8", use_device_scalars(all), args.alpha = at(T_SCALARS, 4));
    REFUSED_ARGS(MISALIGNED, "args.beta", "8", use_device_scalars(all), args.beta = at(T_SCALARS, 12));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.d", "args.alpha", use_device_scalars(all), args.alpha = at(T_D, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.d", "args.beta", use_device_scalars(all),
                 args.beta = at(T_D, 4 * (N - 2)));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", "args.alpha", use_device_scalars(all),
                 args.alpha = at(T_AUX, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", "args.beta", use_device_scalars(all),
                 args.beta = at(T_BIAS_GRAD, 8));
    ACCEPTED(use_device_scalars(all));
    ACCEPTED(use_device_scalars(all), args.beta = args.alpha);
    ACCEPTED(use_device_scalars(all), args.alpha = at(T_A, 0));
    ACCEPTED(use_device_scalars(all), args.alpha = at(T_D, 4 * N)); /* between two lines */
}

static void a_plan_without_a_promise_takes_multiples_of_16(void) {
    gemmepi_plan *plan = NULL;
    refusal want = {GEMMEPI_MISALIGNED, "args.b", NULL, "shift(T_B, 8)"};
    use(GEMMEPI_NONE);
    shift(T_A, 16);
    shift(T_B, 8);
    CHECK(gemmepi_plan_matmul(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(plan, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    check_refused("gemmepi_run_matmul", gemmepi_run_matmul(plan, &args, here->stream), &want);
    check_untouched(&want);
    CHECK(gemmepi_matmul(here->context, &desc, &args, here->stream) == GEMMEPI_OK,
          "one shot takes what it gets: %s", gemmepi_last_error());
    shift(T_B, 16);
    CHECK(gemmepi_run_matmul(plan, &args, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_synchronize(here->context, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
}

/* A plan that needs workspace, if this device has one. */
static gemmepi_plan *plan_with_workspace(size_t *size) {
    static const gemmepi_epilogue epilogues[] = {GEMMEPI_NONE, GEMMEPI_SILU | GEMMEPI_BIAS,
                                                 GEMMEPI_TANH | GEMMEPI_BACKWARD | GEMMEPI_BGRAD};
    static const gemmepi_dtype dtypes[] = {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_F64};
    int i;
    for (i = 0; i < 9; i++) {
        problem p = problem_plain(dtypes[i / 3], 40, 64, 4000, epilogues[i % 3]);
        gemmepi_plan *plan = NULL;
        gemmepi_plan_details details = {0};
        use_problem(p);
        if (gemmepi_plan_matmul(here->context, &desc, &plan) == GEMMEPI_OK &&
            gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.workspace_size > 0) {
            *size = details.workspace_size;
            return plan;
        }
        gemmepi_plan_destroy(plan);
    }
    return NULL;
}

static void a_workspace_too_small_or_misaligned_is_refused(void) {
    refusal want = {GEMMEPI_BUFFER_TOO_SMALL, "args.workspace_size", NULL, "workspace one byte short"};
    gemmepi_stream stream = NULL;
    size_t size = 0;
    gemmepi_plan *plan = plan_with_workspace(&size);
    if (plan == NULL)
        SKIP("no plan on this device needs a workspace");
    CHECK(test_device_reserve(here, &here->workspace, &here->workspace_size, size), "%s",
          gemmepi_last_error());
    args.workspace = here->workspace;
    args.workspace_size = size - 1;
    check_refused("gemmepi_run_matmul", gemmepi_run_matmul(plan, &args, here->stream), &want);
    check_untouched(&want);
    args.workspace = (char *)here->workspace + 16;
    args.workspace_size = size;
    want.status = GEMMEPI_MISALIGNED;
    want.names = "args.workspace";
    want.code = "workspace not a multiple of 256";
    check_refused("gemmepi_run_matmul", gemmepi_run_matmul(plan, &args, here->stream), &want);
    check_untouched(&want);
    CHECK(gemmepi_stream_create(here->context, &stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    args.workspace = NULL;
    args.workspace_size = 0;
    want.status = GEMMEPI_BUFFER_TOO_SMALL;
    want.names = "workspace|args.workspace|gemmepi_plan_prepare";
    want.code = "a stream that nothing was prepared for";
    check_refused("gemmepi_run_matmul", gemmepi_run_matmul(plan, &args, stream), &want);
    check_untouched(&want);
    CHECK(gemmepi_stream_destroy(here->context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
}

static void run_all(void) {
    RUN(null_is_refused_by_name);
    RUN(a_needed_pointer_that_is_missing_is_refused);
    RUN(a_pointer_that_the_epilogue_would_not_use_is_refused);
    RUN(sizes_that_no_memory_has_are_refused);
    RUN(a_leading_dimension_below_its_row_is_refused);
    RUN(a_mask_is_laid_out_in_multiples_of_128_bits);
    RUN(items_of_an_output_may_not_overlap);
    RUN(an_output_that_overlaps_something_is_refused);
    RUN(d_in_place_needs_the_same_dtype);
    RUN(halves_of_one_parent_do_not_overlap);
    RUN(overlap_is_refused_where_a_byte_is_shared);
    RUN(what_only_looks_like_overlap_is_accepted);
    RUN(an_ld_that_no_line_uses_may_be_anything);
    RUN(epilogues_without_a_meaning_are_refused);
    RUN(gates_and_upstream_gradients_without_a_meaning_are_refused);
    RUN(halves_of_different_lengths_are_refused);
    RUN(sizes_of_gates_that_no_memory_has_are_refused);
    RUN(matrices_beside_a_gate_have_lengths_of_their_own);
    RUN(beside_a_gate_only_what_has_the_shape_of_d_may_be_d);
    RUN(a_saved_gate_in_place_needs_the_same_dtype);
    RUN(gates_and_upstream_gradients_need_their_pointers);
    RUN(relu_has_no_mask_beside_a_gate_or_an_upstream_gradient);
    RUN(numbers_of_cublaslt_are_refused_with_the_name_to_use);
    RUN(two_activations_or_ed_are_refused);
    RUN(a_flag_in_another_field_is_refused_with_the_name_of_its_own);
    RUN(batch_invariance_takes_pointers_of_any_alignment);
    RUN(accumulation_is_refused_where_it_is_not_clear_what_comes_first);
    RUN(sentences_about_accumulate_speak_of_d);
    RUN(what_would_be_ignored_or_wrap_is_refused);
    RUN(an_operand_that_is_nearly_d_is_told_the_difference);
    RUN(a_plan_of_another_kind_is_refused);
    RUN(unknown_values_are_refused);
    RUN(a_parameter_goes_with_leaky_relu_and_elu_alone);
    RUN(dtypes_that_do_not_go_together_are_refused);
    RUN(a_bias_is_of_f32_f16_or_bf16);
    RUN(arithmetic_that_the_operands_do_not_have_is_refused);
    RUN(fast_accumulation_is_for_fp8_alone);
    RUN(types_that_only_look_apart_are_accepted);
    RUN(an_i32_result_has_no_floating_point_beside_it);
    RUN(an_i32_result_has_few_epilogues);
    RUN(an_i32_result_has_neither_scales_nor_amax);
    RUN(an_i32_result_takes_whole_numbers_of_32_bits_as_alpha_and_beta);
    RUN(types_of_more_than_8_bits_take_no_scale);
    RUN(a_mask_takes_no_scale);
    RUN(only_a_and_b_have_more_than_one_scale);
    RUN(a_stride_of_scales_goes_with_a_mode_and_forward);
    RUN(a_scale_that_has_a_mode_needs_its_pointer);
    RUN(a_scale_without_a_mode_takes_no_pointer);
    RUN(an_amax_of_what_is_not_stored_is_refused);
    RUN(an_amax_needs_its_pointer_and_only_then);
    RUN(a_scale_or_an_amax_that_overlaps_an_output_is_refused);
    RUN(scales_are_found_of_fp8_alone_in_three_modes);
    RUN(a_history_has_1_to_1024_runs_and_goes_with_one_scale);
    RUN(found_scales_need_their_pointers_and_only_then);
    RUN(in_column_major_order_the_callers_a_and_b_are_named);
    RUN(scales_have_the_lengths_of_the_callers_m_and_n);
    RUN(only_a_and_b_may_be_transposed);
    RUN(a_pointer_below_its_element_or_the_promise_is_misaligned);
    RUN(a_misaligned_scale_or_amax_is_refused);
    RUN(scalars_on_the_device_are_operands_too);
    RUN(a_plan_without_a_promise_takes_multiples_of_16);
    RUN(a_workspace_too_small_or_misaligned_is_refused);
    end_use();
}

int main(void) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        run_all();
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
