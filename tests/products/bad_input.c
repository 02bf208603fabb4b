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

static void use_dtype(gemmepi_dtype dtype, gemmepi_epilogue epilogue) {
    problem p = problem_plain(dtype, M, N, K, epilogue);
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
        CHECK(gemmepi_prepare(plan, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
        check_refused("gemmepi_plan_run", gemmepi_plan_run(plan, &args, here->stream), &want);
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
    check_refused("gemmepi_plan_run", gemmepi_plan_run(NULL, &args, NULL), &want);
    check_refused("gemmepi_prepare", gemmepi_prepare(NULL, NULL), &want);
    check_refused("gemmepi_plan_info", gemmepi_plan_info(NULL, &details), &want);
    want.names = "needs";
    check_refused("gemmepi_epilogue_info", gemmepi_epilogue_info(&desc, NULL), &want);
    CHECK(gemmepi_plan_matmul(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    want.names = "args";
    check_refused("gemmepi_plan_run", gemmepi_plan_run(plan, NULL, NULL), &want);
    want.names = "details";
    check_refused("gemmepi_plan_info", gemmepi_plan_info(plan, NULL), &want);
    CHECK(gemmepi_explain(NULL, NULL, 0) == 0, "explain of no plan");
    CHECK(gemmepi_explain(plan, NULL, 0) > 0, "explain without a buffer gives the length");
    gemmepi_plan_destroy(plan);
    gemmepi_plan_destroy(NULL);
    check_untouched(&want);
}

static void a_needed_pointer_that_is_missing_is_refused(void) {
    static const double seven = 7;
    REFUSED_ARGS(INVALID_ARGUMENT, "args.a", "NULL", args.a = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.b", "NULL", args.b = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.d", "NULL", args.d = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.c", "NULL", args.beta = &seven, args.c = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias", "NULL", use(GEMMEPI_RELU | GEMMEPI_BIAS), args.bias = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", "NULL", use(GEMMEPI_SILU | GEMMEPI_AUX), args.aux = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", "NULL", use(GEMMEPI_RELU | GEMMEPI_BACKWARD), args.aux = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.residual", "NULL", use(GEMMEPI_RESIDUAL), args.residual = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", "NULL", use(GEMMEPI_BGRAD), args.bias_grad = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", "NULL", use(GEMMEPI_BGRAD_A), args.bias_grad = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", "NULL", use(GEMMEPI_BGRAD_B), args.bias_grad = NULL);
}

static void a_pointer_that_the_epilogue_would_not_use_is_refused(void) {
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias", NULL, use(GEMMEPI_RELU), args.bias = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.aux", NULL, use(GEMMEPI_SILU | GEMMEPI_BIAS), args.aux = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.residual", NULL, args.residual = at(T_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias_grad", NULL, args.bias_grad = at(T_A, 0));
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
    REFUSED_DESC(INVALID_ARGUMENT, "aux.ld", "128", use_problem(problem_plain(GEMMEPI_F32, M, 129, K, 0x201)),
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

/* d with an operand laid somewhere over it: refused where a byte is shared, and only there. */
static void overlap_is_refused_where_a_byte_is_shared(void) {
    static const int others[] = {T_A, T_B, T_C, T_BIAS, T_AUX, T_BIAS_GRAD, T_RESIDUAL};
    static const gemmepi_epilogue epilogues[] = {
        GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD | GEMMEPI_AUX,
        GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_BIAS | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_A};
    rng r = rng_seeded(7);
    int i, refused = 0, tries = here->is_host ? 3000 : 400;
    for (i = 0; i < tries; i++) {
        problem p = problem_plain(GEMMEPI_F32, 1 + rng_below(&r, 5), 1 + rng_below(&r, 5),
                                  1 + rng_below(&r, 5), epilogues[rng_below(&r, 2)]);
        int t = others[rng_below(&r, 7)], same, shared, range;
        gemmepi_status status;
        p.desc.order = (gemmepi_order)rng_below(&r, 2);
        p.desc.batch = 1 + rng_below(&r, 2);
        problem_space_out(&p, rng_below(&r, 9));
        problem_scale(&p, 1, 1);
        if (t == T_C && rng_one_in(&r, 2))
            p.desc.c.ld += 2;
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
        same = placed.tensors[t].offset == placed.tensors[T_D].offset && (t == T_C || t == T_RESIDUAL);
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
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", NULL, desc.epilogue = 7);
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", NULL, desc.epilogue = 0xff);
    REFUSED_DESC(INVALID_ARGUMENT, "epilogue", NULL, desc.epilogue = 0x40000);
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
    REFUSED_DESC(INVALID_ARGUMENT, "BGRAD_ACCUMULATE|GEMMEPI_BGRAD_ACCUMULATE", NULL, use(GEMMEPI_BIAS),
                 desc.epilogue |= GEMMEPI_BGRAD_ACCUMULATE);
}

static void gated_products_are_unsupported(void) {
    REFUSED_DESC(UNSUPPORTED, "GATED|GEMMEPI_GATED", NULL, desc.epilogue = GEMMEPI_SILU | GEMMEPI_GATED);
    REFUSED_DESC(UNSUPPORTED, "GATED|GEMMEPI_GATED", NULL,
                 desc.epilogue = GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST);
}

static void unknown_values_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "order", "2", desc.order = (gemmepi_order)2);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "4", desc.compute = (gemmepi_compute)4);
    REFUSED_DESC(INVALID_ARGUMENT, "flags", "4|0x4", desc.flags = 4);
    REFUSED_DESC(INVALID_ARGUMENT, "alignment", "3", desc.alignment = 3);
    REFUSED_DESC(INVALID_ARGUMENT, "alignment", "512", desc.alignment = 512);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype", "5", desc.a.dtype = (gemmepi_dtype)5);
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
}

static void dtypes_that_do_not_go_together_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "b.dtype", NULL, use_dtype(GEMMEPI_F16, 0), desc.b.dtype = GEMMEPI_BF16);
    REFUSED_DESC(INVALID_ARGUMENT, "b.dtype", NULL, use_dtype(GEMMEPI_F32, 0), desc.b.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", NULL, use_dtype(GEMMEPI_F16, 0), desc.d.dtype = GEMMEPI_BF16);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", NULL, use_dtype(GEMMEPI_F32, 0), desc.d.dtype = GEMMEPI_F16);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", NULL, use_dtype(GEMMEPI_F32, 0), desc.d.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "d.dtype", NULL, use_dtype(GEMMEPI_F64, 0), desc.d.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "c.dtype", NULL, use_dtype(GEMMEPI_F64, 0), desc.c.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "bias.dtype", NULL, use_dtype(GEMMEPI_F64, GEMMEPI_BIAS),
                 desc.bias.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "bias.dtype", NULL, use_dtype(GEMMEPI_BF16, GEMMEPI_BIAS),
                 desc.bias.dtype = GEMMEPI_F16);
    REFUSED_DESC(INVALID_ARGUMENT, "aux.dtype", NULL, use_dtype(GEMMEPI_F64, GEMMEPI_SILU | GEMMEPI_AUX),
                 desc.aux.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "residual.dtype", NULL, use_dtype(GEMMEPI_BF16, GEMMEPI_RESIDUAL),
                 desc.residual.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "bias_grad.dtype", NULL, use_dtype(GEMMEPI_F32, GEMMEPI_BGRAD),
                 desc.bias_grad.dtype = GEMMEPI_F16);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", NULL, use_dtype(GEMMEPI_F16, 0),
                 desc.compute = GEMMEPI_COMPUTE_TF32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", NULL, use_dtype(GEMMEPI_F64, 0),
                 desc.compute = GEMMEPI_COMPUTE_TF32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", NULL, use_dtype(GEMMEPI_F64, 0),
                 desc.compute = GEMMEPI_COMPUTE_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", NULL, use_dtype(GEMMEPI_F32, 0),
                 desc.compute = GEMMEPI_COMPUTE_F64);
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

static void a_plan_without_a_promise_takes_multiples_of_16(void) {
    gemmepi_plan *plan = NULL;
    refusal want = {GEMMEPI_MISALIGNED, "args.b", NULL, "shift(T_B, 8)"};
    use(GEMMEPI_NONE);
    shift(T_A, 16);
    shift(T_B, 8);
    CHECK(gemmepi_plan_matmul(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_prepare(plan, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    check_refused("gemmepi_plan_run", gemmepi_plan_run(plan, &args, here->stream), &want);
    check_untouched(&want);
    CHECK(gemmepi_matmul(here->context, &desc, &args, here->stream) == GEMMEPI_OK,
          "one shot takes what it gets: %s", gemmepi_last_error());
    shift(T_B, 16);
    CHECK(gemmepi_plan_run(plan, &args, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
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
    check_refused("gemmepi_plan_run", gemmepi_plan_run(plan, &args, here->stream), &want);
    check_untouched(&want);
    args.workspace = (char *)here->workspace + 16;
    args.workspace_size = size;
    want.status = GEMMEPI_MISALIGNED;
    want.names = "args.workspace";
    want.code = "workspace not a multiple of 256";
    check_refused("gemmepi_plan_run", gemmepi_plan_run(plan, &args, here->stream), &want);
    check_untouched(&want);
    CHECK(gemmepi_stream_create(here->context, &stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    args.workspace = NULL;
    args.workspace_size = 0;
    want.status = GEMMEPI_BUFFER_TOO_SMALL;
    want.names = "workspace|args.workspace|gemmepi_prepare";
    want.code = "a stream that nothing was prepared for";
    check_refused("gemmepi_plan_run", gemmepi_plan_run(plan, &args, stream), &want);
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
    RUN(gated_products_are_unsupported);
    RUN(unknown_values_are_refused);
    RUN(dtypes_that_do_not_go_together_are_refused);
    RUN(only_a_and_b_may_be_transposed);
    RUN(a_pointer_below_its_element_or_the_promise_is_misaligned);
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
