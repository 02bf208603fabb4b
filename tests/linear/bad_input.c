/* Which layers are refused, with which status and a sentence that names the field, and nothing written; and what looks like
   it but is accepted. Runs on the devices that GEMMEPI_TEST_DEVICE names; see ../products/problem.h. */
#include "call.h"

static test_device *here;

/* The call that each case spoils: a good one, all its pointers in the arena. */
static layer base;
static image placed;
static gemmepi_linear_desc desc;
static gemmepi_linear_args args;
static int backward; /* the direction of the calls */

enum { M = 6, N = 10, K = 7 };

#define SAVED     GEMMEPI_LINEAR_SAVED
#define RECOMPUTE GEMMEPI_LINEAR_RECOMPUTE
#define BIAS      GEMMEPI_LINEAR_BIAS

static void use_layer(layer l) {
    image_free(&placed);
    base = l;
    layer_place(&base, &placed);
    layer_fill(&base, &placed, 0);
    layer_fill(&base, &placed, 1);
    CHECK(image_upload(&placed, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
    desc = base.desc;
    args = layer_args(&base, &placed, here, 1);
    backward = 1;
}

/* Two items, with gaps; B and what goes with it shared or not. flags beside those of gradients. */
static layer good(gemmepi_dtype dtype, gemmepi_epilogue activation, uint64_t flags, int items) {
    layer l = layer_plain(dtype, M, N, K, activation, flags);
    if (!(flags & ALL_GRADIENTS))
        l.desc.flags |= ALL_GRADIENTS;
    layer_pad(&l, 3);
    layer_spread(&l, 2, items, 2);
    return l;
}

static void use_items(gemmepi_epilogue activation, uint64_t flags) {
    use_layer(good(GEMMEPI_F32, activation, flags, 1));
}

static void use_shared(gemmepi_epilogue activation, uint64_t flags) {
    use_layer(good(GEMMEPI_F32, activation, flags, 0));
}

/* Everything that a layer can have. */
static void use(void) {
    use_items(GEMMEPI_SILU, BIAS | SAVED);
}

static void use_forward(void) {
    use();
    backward = 0;
}

static void use_dtype(gemmepi_dtype dtype) {
    use_layer(good(dtype, GEMMEPI_SILU, BIAS | SAVED, 1));
}

/* The weight is a, which items are said to have or not. */
static void use_column_major(int items) {
    layer l = layer_plain(GEMMEPI_F32, M, N, K, GEMMEPI_SILU, BIAS | SAVED | ALL_GRADIENTS);
    l.desc.order = GEMMEPI_COLUMN_MAJOR;
    layer_pad(&l, 3);
    layer_spread(&l, 2, items, 2);
    use_layer(l);
}

static void use_column_major_or_row(int column_major) {
    if (column_major)
        use_column_major(1);
}

/* One item of everything, a and b stored transposed. */
static void use_transposed(gemmepi_order order) {
    layer l = layer_plain(GEMMEPI_F32, M, N, K, GEMMEPI_SILU, BIAS | SAVED | ALL_GRADIENTS);
    l.desc.order = order;
    l.desc.a.transposed = l.desc.b.transposed = 1;
    layer_pad(&l, 3);
    use_layer(l);
}

/* Every matrix that may be of 8 bits is, with a scale. */
static void use_scaled(void) {
    layer l = layer_plain(GEMMEPI_E4M3, M, N, K, GEMMEPI_SILU, BIAS | SAVED | ALL_GRADIENTS);
    l.desc.y.dtype = l.desc.preact.dtype = l.desc.dy.dtype = GEMMEPI_E5M2;
    layer_spread(&l, 2, 1, 0);
    layer_scale(&l, L_A, GEMMEPI_SCALE_OUTER, 0);
    layer_scale(&l, L_B, GEMMEPI_SCALE_OUTER, 0);
    layer_scale(&l, L_Y, GEMMEPI_SCALE_TENSOR, 0);
    layer_scale(&l, L_PREACT, GEMMEPI_SCALE_TENSOR, 0);
    layer_scale(&l, L_DY, GEMMEPI_SCALE_TENSOR, 0);
    use_layer(l);
}

/* bytes into tensor t */
static void *at(int t, int64_t bytes) {
    return (char *)here->arena + placed.data[t] + bytes;
}

/* >>what is said */

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
    const char *value; /* what it says beside that; NULL: anything */
    const char *code;  /* how the call was spoilt                */
} refusal;

static void check_refused(const char *call, gemmepi_status got, refusal want) {
    const char *text = gemmepi_last_error();
    CHECK(got == want.status, "%s after '%s' gives %s (%s), want %s", call, want.code,
          gemmepi_status_name(got), got ? text : "", gemmepi_status_name(want.status));
    if (got != want.status)
        return;
    CHECK(text[0] != 0, "%s after '%s' says nothing", call, want.code);
    CHECK(mentions(text, want.names), "%s after '%s' does not name %s: %s", call, want.code, want.names,
          text);
    CHECK(want.value == NULL || mentions(text, want.value), "%s after '%s' does not say %s: %s", call,
          want.code, want.value, text);
}

static void check_untouched(const char *code) {
    CHECK(image_download(&placed, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(memcmp(placed.before, placed.after, placed.size) == 0, "memory changed after '%s'", code);
}

static gemmepi_status make_plan(gemmepi_plan **plan) {
    return backward ? gemmepi_plan_linear_backward(here->context, &desc, plan)
                    : gemmepi_plan_linear(here->context, &desc, plan);
}

static gemmepi_status run_it(const gemmepi_plan *plan) {
    return backward ? gemmepi_run_linear_backward(plan, &args, here->stream)
                    : gemmepi_run_linear(plan, &args, here->stream);
}

static gemmepi_status at_once(void) {
    return backward ? gemmepi_linear_backward(here->context, &desc, &args, here->stream)
                    : gemmepi_linear(here->context, &desc, &args, here->stream);
}

/* The desc is wrong: no plan, no run. */
static void refuse_desc(gemmepi_status status, const char *names, const char *value, const char *code) {
    refusal want = {GEMMEPI_OK, NULL, NULL, NULL};
    gemmepi_plan *plan = NULL;
    want.status = status;
    want.names = names;
    want.value = value;
    want.code = code;
    check_refused("the plan", make_plan(&plan), want);
    check_refused("the call", at_once(), want);
    check_untouched(code);
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
    CHECK(make_plan(&plan) == GEMMEPI_OK, "'%s': %s", code, gemmepi_last_error());
    if (plan != NULL) {
        CHECK(gemmepi_plan_prepare(plan, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
        check_refused("the run", run_it(plan), want);
    }
    check_refused("the call", at_once(), want);
    check_untouched(code);
    gemmepi_plan_destroy(plan);
}

/* REFUSED_DESC(status, fields, value, statements that spoil a good backward) */
#define REFUSED_DESC(status, names, value, ...)                    \
    do {                                                           \
        use();                                                     \
        __VA_ARGS__;                                               \
        refuse_desc(GEMMEPI_##status, names, value, #__VA_ARGS__); \
    } while (0)

#define REFUSED_ARGS(status, names, value, ...)                    \
    do {                                                           \
        use();                                                     \
        __VA_ARGS__;                                               \
        refuse_args(GEMMEPI_##status, names, value, #__VA_ARGS__); \
    } while (0)

#define ACCEPTED(...)                                                                   \
    do {                                                                                \
        use();                                                                          \
        __VA_ARGS__;                                                                    \
        CHECK(at_once() == GEMMEPI_OK, "'%s': %s", #__VA_ARGS__, gemmepi_last_error()); \
    } while (0)

#define INT64_MAX_TEXT "9223372036854775807"

/* >>nothing given */

static void null_is_refused_by_name(void) {
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    refusal want = {GEMMEPI_INVALID_ARGUMENT, "context", NULL, "NULL"};
    use();
    check_refused("forward", gemmepi_linear(NULL, &desc, &args, NULL), want);
    check_refused("backward", gemmepi_linear_backward(NULL, &desc, &args, NULL), want);
    check_refused("plan", gemmepi_plan_linear(NULL, &desc, &plan), want);
    check_refused("backward_plan", gemmepi_plan_linear_backward(NULL, &desc, &plan), want);
    want.names = "desc";
    check_refused("forward", gemmepi_linear(here->context, NULL, &args, NULL), want);
    check_refused("backward", gemmepi_linear_backward(here->context, NULL, &args, NULL), want);
    check_refused("plan", gemmepi_plan_linear(here->context, NULL, &plan), want);
    check_refused("backward_plan", gemmepi_plan_linear_backward(here->context, NULL, &plan), want);
    want.names = "args";
    check_refused("forward", gemmepi_linear(here->context, &desc, NULL, NULL), want);
    check_refused("backward", gemmepi_linear_backward(here->context, &desc, NULL, NULL), want);
    want.names = "plan";
    check_refused("plan", gemmepi_plan_linear(here->context, &desc, NULL), want);
    check_refused("backward_plan", gemmepi_plan_linear_backward(here->context, &desc, NULL), want);
    check_refused("run", gemmepi_run_linear(NULL, &args, NULL), want);
    check_refused("run", gemmepi_run_linear_backward(NULL, &args, NULL), want);
    check_refused("prepare", gemmepi_plan_prepare(NULL, NULL), want);
    check_refused("info", gemmepi_plan_info(NULL, &details), want);
    CHECK(gemmepi_plan_linear_backward(here->context, &desc, &plan) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    want.names = "args";
    check_refused("run", gemmepi_run_linear_backward(plan, NULL, NULL), want);
    want.names = "details";
    check_refused("info", gemmepi_plan_info(plan, NULL), want);
    CHECK(gemmepi_plan_explain(NULL, NULL, 0) == 0, "explain of no plan");
    CHECK(gemmepi_plan_explain(plan, NULL, 0) > 0, "explain without a buffer gives the length");
    gemmepi_plan_destroy(plan);
    gemmepi_plan_destroy(NULL);
    check_untouched("NULL");
}

static void a_plan_of_another_kind_is_refused(void) {
    static const int64_t one[] = {1};
    refusal want = {GEMMEPI_INVALID_ARGUMENT, "plan", NULL, "a plan of another kind"};
    gemmepi_plan *plans[4] = {NULL, NULL, NULL, NULL};
    static const char *const makers[] = {"gemmepi_plan_linear", "gemmepi_plan_linear_backward",
                                         "gemmepi_plan_matmul", "gemmepi_plan_elementwise"};
    gemmepi_matmul_desc product;
    gemmepi_matmul_args of_product;
    gemmepi_elementwise_desc operation;
    gemmepi_elementwise_args of_operation;
    gemmepi_tensor tensor;
    int i;
    memset(&product, 0, sizeof product);
    memset(&of_product, 0, sizeof of_product);
    memset(&operation, 0, sizeof operation);
    memset(&of_operation, 0, sizeof of_operation);
    memset(&tensor, 0, sizeof tensor);
    product.m = product.n = product.k = tensor.rank = 1;
    tensor.shape = one;
    operation.operation = GEMMEPI_OP_CAST;
    operation.a = operation.y = &tensor;
    use();
    CHECK(gemmepi_plan_linear(here->context, &desc, &plans[0]) == GEMMEPI_OK &&
              gemmepi_plan_linear_backward(here->context, &desc, &plans[1]) == GEMMEPI_OK &&
              gemmepi_plan_matmul(here->context, &product, &plans[2]) == GEMMEPI_OK &&
              gemmepi_plan_elementwise(here->context, &operation, &plans[3]) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (i = 0; i < 4; i++) {
        want.value = makers[i];
        if (i != 0)
            check_refused("run_linear", gemmepi_run_linear(plans[i], &args, here->stream), want);
        if (i != 1)
            check_refused("run_linear_backward", gemmepi_run_linear_backward(plans[i], &args, here->stream),
                          want);
        if (i != 2)
            check_refused("run_matmul", gemmepi_run_matmul(plans[i], &of_product, here->stream), want);
        if (i != 3)
            check_refused("run_elementwise", gemmepi_run_elementwise(plans[i], &of_operation, here->stream),
                          want);
    }
    for (i = 0; i < 4; i++)
        gemmepi_plan_destroy(plans[i]);
    check_untouched("a plan of another kind");
}

static void a_needed_pointer_that_is_missing_is_refused(void) {
    REFUSED_ARGS(INVALID_ARGUMENT, "args.a", "NULL", use_forward(), args.a = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.b", "NULL", use_forward(), args.b = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias", "NULL", use_forward(), args.bias = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.y", "NULL", use_forward(), args.y = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.preact", "NULL", use_forward(), args.preact = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.dy", "NULL", args.dy = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.da", "NULL", args.da = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.da", "LINEAR_DA", desc.flags |= GEMMEPI_ACCUMULATE_DA,
                 args.da = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.db", "LINEAR_DB", use_column_major(1), args.db = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.preact", "LINEAR_SAVED", args.preact = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.db", "NULL", args.db = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.dbias", "NULL", args.dbias = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.a", "NULL", args.a = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.b", "NULL", args.b = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.preact", "NULL", args.preact = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.preact", "NULL", use_items(GEMMEPI_RELU, SAVED), args.preact = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.bias", "NULL", use_items(GEMMEPI_SILU, BIAS | RECOMPUTE),
                 args.bias = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.a", "NULL", use_items(GEMMEPI_SILU, GEMMEPI_LINEAR_DA | RECOMPUTE),
                 args.a = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.b", "NULL",
                 use_items(GEMMEPI_SILU, GEMMEPI_LINEAR_DBIAS | RECOMPUTE), args.b = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.db", "NULL", use_column_major(0), args.db = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.da", "NULL", use_column_major(1), args.da = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.a", "NULL", use_column_major(1), args.a = NULL);
}

static void an_output_that_was_not_asked_for_is_refused(void) {
    REFUSED_ARGS(INVALID_ARGUMENT, "args.da", NULL,
                 use_items(GEMMEPI_SILU, SAVED | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS),
                 args.da = at(L_Y, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.db", NULL,
                 use_items(GEMMEPI_SILU, SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DBIAS),
                 args.db = at(L_Y, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.dbias", NULL,
                 use_items(GEMMEPI_SILU, SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB),
                 args.dbias = at(L_Y, 0));
}

static void what_the_layer_has_not_is_refused_in_both_directions(void) {
    int d;
    for (d = 0; d < 2; d++) {
        REFUSED_ARGS(INVALID_ARGUMENT, "args.preact", "LINEAR_SAVED", use_items(GEMMEPI_SILU, RECOMPUTE),
                     backward = d, args.preact = at(L_Y, 0));
        REFUSED_ARGS(INVALID_ARGUMENT, "args.preact", "LINEAR_SAVED", use_items(GEMMEPI_NONE, 0),
                     backward = d, args.preact = at(L_Y, 0));
        REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_preact", "LINEAR_SAVED",
                     use_items(GEMMEPI_SILU, RECOMPUTE), backward = d,
                     args.scale_preact = (const float *)at(L_Y, 0));
        REFUSED_ARGS(INVALID_ARGUMENT, "args.bias", "LINEAR_BIAS", use_items(GEMMEPI_SILU, SAVED),
                     backward = d, args.bias = at(L_Y, 0));
        REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_a", "NONE",
                     use_items(GEMMEPI_SILU, SAVED | GEMMEPI_LINEAR_DA), backward = d,
                     args.scale_a = (const float *)at(L_Y, 0)); /* no backward of these reads a */
    }
    REFUSED_ARGS(INVALID_ARGUMENT, "args.da", "LINEAR_DA", use_column_major(1), args.da = at(L_DA, 0),
                 desc.flags &= ~GEMMEPI_LINEAR_DA);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.db", "LINEAR_DB", use_column_major(1), args.db = at(L_DB, 0),
                 desc.flags &= ~GEMMEPI_LINEAR_DB);
}

/* One struct of arguments serves both directions. */
static void what_the_other_direction_takes_may_be_there_or_not(void) {
    ACCEPTED(use_forward());
    ACCEPTED(use_forward(), args.dy = NULL, args.da = args.db = args.dbias = NULL);
    ACCEPTED((void)0);
    ACCEPTED(args.y = NULL, args.bias = NULL);
    ACCEPTED(use_items(GEMMEPI_SILU, SAVED | GEMMEPI_LINEAR_DA), args.a = NULL);
    ACCEPTED(use_items(GEMMEPI_SILU, SAVED | GEMMEPI_LINEAR_DB), args.b = NULL);
    ACCEPTED(use_items(GEMMEPI_SILU, SAVED | GEMMEPI_LINEAR_DBIAS), args.a = args.b = NULL);
    ACCEPTED(use_scaled(), args.y = NULL, args.scale_y = NULL);
    ACCEPTED(use_scaled());
    ACCEPTED(args.y = args.da); /* backward has no y */
    ACCEPTED(use_forward(), desc.flags = BIAS | SAVED, args.da = at(L_DA, 0));
    ACCEPTED(use_forward(), args.scale_dy = (const float *)at(L_Y, 0));
    ACCEPTED(args.scale_y = args.found_scale_y = args.amax_history = (float *)at(L_Y, 0));
}

/* >>flags */

static void flags_that_do_not_go_together_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "amax_history|POWER_OF_TWO", "FIND_SCALE_D", desc.amax_history = 3);
    REFUSED_DESC(INVALID_ARGUMENT, "amax_history", "FIND_SCALE_D", use_forward(), desc.amax_history = 3);
    REFUSED_DESC(INVALID_ARGUMENT, "POWER_OF_TWO_SCALE", "FIND_SCALE_D",
                 desc.flags |= GEMMEPI_POWER_OF_TWO_SCALE);
    REFUSED_DESC(INVALID_ARGUMENT, "flags|DA|DB|DBIAS", NULL, desc.flags = SAVED | BIAS);
    REFUSED_DESC(INVALID_ARGUMENT, "flags|DA", NULL, use_items(GEMMEPI_NONE, 0), desc.flags = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "SAVED|LINEAR_SAVED|GEMMEPI_LINEAR_SAVED", NULL, desc.flags |= RECOMPUTE);
    REFUSED_DESC(INVALID_ARGUMENT, "SAVED|LINEAR_SAVED|GEMMEPI_LINEAR_SAVED", NULL, desc.flags &= ~SAVED);
    REFUSED_DESC(INVALID_ARGUMENT, "SAVED|LINEAR_SAVED|GEMMEPI_LINEAR_SAVED", NULL,
                 use_items(GEMMEPI_NONE | GEMMEPI_GATED, 0), (void)0);
    REFUSED_DESC(INVALID_ARGUMENT, "SAVED|LINEAR_SAVED|GEMMEPI_LINEAR_SAVED", NULL,
                 use_items(GEMMEPI_NONE, SAVED), (void)0);
    REFUSED_DESC(INVALID_ARGUMENT, "RECOMPUTE|LINEAR_RECOMPUTE|GEMMEPI_LINEAR_RECOMPUTE", NULL,
                 use_items(GEMMEPI_NONE, RECOMPUTE), (void)0);
    REFUSED_DESC(INVALID_ARGUMENT, "ACCUMULATE_DA", NULL,
                 desc.flags = SAVED | GEMMEPI_LINEAR_DB | GEMMEPI_ACCUMULATE_DA);
    REFUSED_DESC(INVALID_ARGUMENT, "ACCUMULATE_DB", NULL,
                 desc.flags = SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_ACCUMULATE_DB);
    REFUSED_DESC(INVALID_ARGUMENT, "ACCUMULATE_DBIAS", NULL,
                 desc.flags = SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_ACCUMULATE_DBIAS);
    REFUSED_DESC(INVALID_ARGUMENT, "ACCUMULATE_DA", NULL, use_column_major(1),
                 desc.flags = SAVED | GEMMEPI_LINEAR_DB | GEMMEPI_ACCUMULATE_DA);
}

#define LAYER_FLAGS                                                                                     \
    (GEMMEPI_RELAXED | GEMMEPI_FAST_ACCUMULATION | GEMMEPI_BATCH_INVARIANT | BIAS | SAVED | RECOMPUTE | \
     ALL_GRADIENTS | GEMMEPI_ACCUMULATE_DA | GEMMEPI_ACCUMULATE_DB | GEMMEPI_ACCUMULATE_DBIAS |         \
     GEMMEPI_FIND_SCALE_D | GEMMEPI_LINEAR_RESIDUAL | GEMMEPI_LINEAR_DY_IS_G | GEMMEPI_LINEAR_FORWARD)
#define UNINITIALISED "did you leave desc uninitialised"

static void unknown_flags_are_refused(void) {
    int bit;
    for (bit = 0; bit < 64; bit++) {
        if (1ull << bit & LAYER_FLAGS)
            continue;
        REFUSED_DESC(INVALID_ARGUMENT, "desc.flags", NULL, desc.flags |= 1ull << bit);
        REFUSED_DESC(INVALID_ARGUMENT, "desc.flags", NULL, use_forward(), desc.flags |= 1ull << bit);
    }
    REFUSED_DESC(INVALID_ARGUMENT, "desc.flags", UNINITIALISED, desc.flags |= 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.flags", UNINITIALISED, desc.flags |= 1ull << 63);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.flags", UNINITIALISED, desc.flags = 0xcdcdcdcdcdcdcdcdull);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.flags", UNINITIALISED, use_forward(), desc.flags = UINT64_MAX);
    ACCEPTED(desc.flags |= GEMMEPI_RELAXED);
    ACCEPTED(desc.flags |= GEMMEPI_BATCH_INVARIANT, desc.alignment = 4);
    ACCEPTED(use_scaled(), desc.flags |= GEMMEPI_RELAXED | GEMMEPI_FAST_ACCUMULATION);
}

/* Then its rows are columns of a product. */
static void batch_invariance_of_a_gradient_that_lies_transposed_is_refused(void) {
    REFUSED_DESC(UNSUPPORTED, "BATCH_INVARIANT", "desc.a", use_transposed(GEMMEPI_ROW_MAJOR),
                 desc.flags |= GEMMEPI_BATCH_INVARIANT);
    REFUSED_DESC(UNSUPPORTED, "LINEAR_DB", "desc.b", use_transposed(GEMMEPI_COLUMN_MAJOR),
                 desc.flags |= GEMMEPI_BATCH_INVARIANT);
}

/* The sentence says where the flag belongs, or what a layer has instead. */
static void flags_in_wrong_fields_are_sent_to_the_right_one(void) {
    static const struct {
        uint64_t flag;
        const char *name, *field;
    } rows[] = {{GEMMEPI_BIAS, "BIAS", "LINEAR_BIAS"},
                {GEMMEPI_AUX, "AUX", "LINEAR_SAVED"},
                {GEMMEPI_BGRAD, "BGRAD", "LINEAR_DBIAS"},
                {GEMMEPI_ACCUMULATE, "ACCUMULATE", "ACCUMULATE_DB"},
                {GEMMEPI_ACCUMULATE_BIAS_GRAD, "ACCUMULATE_BIAS_GRAD", "ACCUMULATE_DBIAS"},
                {GEMMEPI_BACKWARD, "BACKWARD", "gemmepi_matmul_desc.epilogue"},
                {GEMMEPI_RESIDUAL, "RESIDUAL", "LINEAR_RESIDUAL"},
                {GEMMEPI_DEVICE_SCALARS, "DEVICE_SCALARS", "gemmepi_matmul_desc.flags"},
                {GEMMEPI_AMAX_AUX, "AMAX_AUX", "gemmepi_matmul_desc.flags"},
                {GEMMEPI_CAST_SCALE, "CAST_SCALE", "gemmepi_elementwise_desc.flags"}};
    int i, direction;
    for (direction = 0; direction < 2; direction++) {
        for (i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
            REFUSED_DESC(INVALID_ARGUMENT, rows[i].name, rows[i].field, backward = direction,
                         desc.flags |= rows[i].flag);
            REFUSED_DESC(INVALID_ARGUMENT, rows[i].name, rows[i].field, backward = direction,
                         desc.activation |= rows[i].flag);
        }
        REFUSED_DESC(INVALID_ARGUMENT, "GATED", "desc.activation", backward = direction,
                     desc.flags |= GEMMEPI_GATED);
        REFUSED_DESC(INVALID_ARGUMENT, "GATE_FIRST", "desc.activation", backward = direction,
                     desc.flags |= GEMMEPI_GATE_FIRST);
        REFUSED_DESC(INVALID_ARGUMENT, "LINEAR_BIAS", "desc.flags", backward = direction,
                     desc.activation |= BIAS);
        REFUSED_DESC(INVALID_ARGUMENT, "RELAXED", "desc.flags", backward = direction,
                     desc.activation |= GEMMEPI_RELAXED);
    }
}

static void an_activation_is_one_of_the_list_with_gates_or_not(void) {
    int bit, i, j;
    for (bit = 8; bit < 64; bit++) {
        if (1ull << bit == GEMMEPI_GATED || 1ull << bit == GEMMEPI_GATE_FIRST)
            continue;
        REFUSED_DESC(INVALID_ARGUMENT, "activation", NULL, desc.activation |= 1ull << bit);
        REFUSED_DESC(INVALID_ARGUMENT, "activation", NULL, use_forward(), desc.activation |= 1ull << bit);
    }
    for (i = 1; i < ACTIVATION_COUNT; i++)
        for (j = 1; j < i; j++)
            REFUSED_DESC(INVALID_ARGUMENT, "activation", "never two",
                         desc.activation = activation_codes[i] | activation_codes[j]);
    REFUSED_DESC(INVALID_ARGUMENT, "activation", UNINITIALISED, desc.activation = 3);
    REFUSED_DESC(INVALID_ARGUMENT, "activation", UNINITIALISED, desc.activation = 255);
    REFUSED_DESC(INVALID_ARGUMENT, "activation", UNINITIALISED, desc.activation = 0xcdcdcdcdcdcdcdcdull);
    REFUSED_DESC(INVALID_ARGUMENT, "activation|GATE_FIRST", NULL,
                 desc.activation = GEMMEPI_SILU | GEMMEPI_GATE_FIRST);
}

static void numbers_of_cublaslts_epilogues_are_no_activations(void) {
    static const unsigned numbers[] = {1, 2, 4, 6, 32, 36, 130, 134, 136, 152, 160, 164, 192, 208, 256, 512};
    int i, direction;
    for (i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++)
        for (direction = 0; direction < 2; direction++) {
            char value[8];
            snprintf(value, sizeof value, "%u", numbers[i]);
            REFUSED_DESC(INVALID_ARGUMENT, "desc.activation", value, backward = direction,
                         desc.activation = numbers[i]);
        }
    REFUSED_DESC(INVALID_ARGUMENT, "desc.activation", "CUBLASLT_EPILOGUE_BIAS", desc.activation = 4);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.activation", "CUBLASLT_EPILOGUE_GELU_AUX_BIAS",
                 desc.activation = 164);
}

static void a_parameter_is_said_to_be_there(void) {
    int i, direction;
    for (direction = 0; direction < 2; direction++) {
        REFUSED_DESC(INVALID_ARGUMENT, "activation_parameter", NULL, backward = direction,
                     desc.activation_parameter = 0.5);
        REFUSED_DESC(INVALID_ARGUMENT, "has_parameter", "0.5", backward = direction,
                     desc.activation = GEMMEPI_ELU, desc.activation_parameter = 0.5);
        REFUSED_DESC(INVALID_ARGUMENT, "activation_parameter", "finite", backward = direction,
                     desc.activation = GEMMEPI_ELU, desc.has_parameter = 1, desc.activation_parameter = NAN);
        REFUSED_DESC(INVALID_ARGUMENT, "activation_parameter", "finite", backward = direction,
                     desc.activation = GEMMEPI_LEAKY_RELU, desc.has_parameter = 1,
                     desc.activation_parameter = INFINITY);
        REFUSED_DESC(INVALID_ARGUMENT, "has_parameter", UNINITIALISED, backward = direction,
                     desc.activation = GEMMEPI_ELU, desc.has_parameter = 2);
        REFUSED_DESC(INVALID_ARGUMENT, "has_parameter", UNINITIALISED, backward = direction,
                     desc.has_parameter = -858993460);
        for (i = 0; i < ACTIVATION_COUNT; i++) {
            gemmepi_epilogue code = activation_codes[i];
            if (activation_has_parameter(code)) {
                ACCEPTED(backward = direction, desc.activation = code, desc.has_parameter = 1);
                ACCEPTED(backward = direction, desc.activation = code);
            } else if (code != GEMMEPI_NONE && code != GEMMEPI_RELU) {
                REFUSED_DESC(INVALID_ARGUMENT, "has_parameter", activation_names[i], backward = direction,
                             desc.activation = code, desc.has_parameter = 1);
            }
        }
    }
}

/* Stack memory that was never written, in one field or all. */
static void values_of_garbage_get_a_hint(void) {
    const int garbage = -858993460;
    const int64_t wide_garbage = -3689348814741910324;
    REFUSED_DESC(INVALID_ARGUMENT, UNINITIALISED, NULL, memset(&desc, 0xcd, sizeof desc));
    REFUSED_DESC(INVALID_ARGUMENT, UNINITIALISED, NULL, memset(&desc, 0xff, sizeof desc));
    REFUSED_DESC(INVALID_ARGUMENT, "desc.m", UNINITIALISED, desc.m = wide_garbage);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.n", UNINITIALISED, desc.n = wide_garbage);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.k", UNINITIALISED, desc.k = wide_garbage);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.batch", UNINITIALISED, desc.batch = wide_garbage);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.order", UNINITIALISED, desc.order = (gemmepi_order)garbage);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.compute", UNINITIALISED, desc.compute = (gemmepi_compute)garbage);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.alignment", UNINITIALISED, desc.alignment = (size_t)wide_garbage);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.a.dtype", UNINITIALISED, desc.a.dtype = (gemmepi_dtype)garbage);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.b.transposed", UNINITIALISED, desc.b.transposed = garbage);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.dy.transposed", UNINITIALISED, desc.dy.transposed = garbage);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.db.dtype", UNINITIALISED, desc.db.dtype = (gemmepi_dtype)garbage);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.a.scale.mode", UNINITIALISED,
                 desc.a.scale.mode = (gemmepi_scale_mode)garbage);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.g_dtype", UNINITIALISED, desc.g_dtype = (gemmepi_dtype)garbage);
}

static void what_is_halved_is_even(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "n|desc.n", "9", desc.activation |= GEMMEPI_GATED, desc.n = 9);
    REFUSED_DESC(INVALID_ARGUMENT, "n|desc.n", "9", use_forward(), desc.activation |= GEMMEPI_GATED,
                 desc.n = 9);
    REFUSED_DESC(INVALID_ARGUMENT, "m|desc.m", "5", use_column_major(1), desc.activation |= GEMMEPI_GATED,
                 desc.m = 5);
}

static void enums_out_of_range_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "order", "2", desc.order = (gemmepi_order)2);
    REFUSED_DESC(INVALID_ARGUMENT, "order", NULL, use_forward(), desc.order = (gemmepi_order)-1);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", "6", desc.compute = (gemmepi_compute)6);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype|desc.a.dtype", "14", desc.a.dtype = (gemmepi_dtype)14);
    REFUSED_DESC(INVALID_ARGUMENT, "b.dtype|desc.b.dtype", "14", desc.b.dtype = (gemmepi_dtype)14);
    REFUSED_DESC(INVALID_ARGUMENT, "y.dtype|desc.y.dtype", "14", use_forward(),
                 desc.y.dtype = (gemmepi_dtype)14);
    REFUSED_DESC(INVALID_ARGUMENT, "dy.dtype|desc.dy.dtype", "14", desc.dy.dtype = (gemmepi_dtype)14);
    REFUSED_DESC(INVALID_ARGUMENT, "preact.dtype|desc.preact.dtype", "14",
                 desc.preact.dtype = (gemmepi_dtype)14);
    REFUSED_DESC(INVALID_ARGUMENT, "da.dtype|desc.da.dtype", "14", desc.da.dtype = (gemmepi_dtype)14);
    REFUSED_DESC(INVALID_ARGUMENT, "db.dtype|desc.db.dtype", "14", desc.db.dtype = (gemmepi_dtype)14);
    REFUSED_DESC(INVALID_ARGUMENT, "dbias.dtype|desc.dbias.dtype", "14",
                 desc.dbias.dtype = (gemmepi_dtype)14);
    REFUSED_DESC(INVALID_ARGUMENT, "bias.dtype|desc.bias.dtype", "14", desc.bias.dtype = (gemmepi_dtype)14);
    REFUSED_DESC(INVALID_ARGUMENT, "g_dtype", "14", desc.g_dtype = (gemmepi_dtype)14);
    REFUSED_DESC(INVALID_ARGUMENT, "g_dtype", "E2M1", desc.g_dtype = GEMMEPI_E2M1);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype|desc.a.dtype", "I4", desc.a.dtype = GEMMEPI_I4);
    REFUSED_DESC(INVALID_ARGUMENT, "y.dtype|desc.y.dtype", "U4", use_forward(), desc.y.dtype = GEMMEPI_U4);
    REFUSED_DESC(INVALID_ARGUMENT, "db.dtype|desc.db.dtype", "E8M0", desc.db.dtype = GEMMEPI_E8M0);
    REFUSED_DESC(INVALID_ARGUMENT, "g_dtype", NULL, desc.g_dtype = (gemmepi_dtype)-1);
}

/* >>chains and residuals */

static gemmepi_linear_desc before;
static gemmepi_linear_args of_before;

/* The good backward behind a layer of [M, 3] [3, K], whose P is in y's memory, which no backward uses. */
static void use_chain(void) {
    memset(&before, 0, sizeof before);
    memset(&of_before, 0, sizeof of_before);
    before.m = M, before.n = K, before.k = 3, before.batch = 2;
    before.activation = GEMMEPI_GELU_TANH, before.flags = SAVED;
    before.preact.batch_stride = M * K;
    of_before.preact = at(L_Y, 0);
    desc.before = &before;
    args.before = &of_before;
}

/* The same by columns: b is the y of the layer before, and db goes through it. */
static void use_chain_of_columns(void) {
    use_column_major(1);
    use_chain();
    before.order = GEMMEPI_COLUMN_MAJOR;
    before.m = K, before.n = N;
    before.preact.batch_stride = K * N;
}

static void a_layer_before_fits_the_layer(void) {
    ACCEPTED(use_chain());
    ACCEPTED(use_chain_of_columns());
    ACCEPTED(use_chain(), of_before.preact = at(L_Y, 4)); /* a call finds out how it is aligned */
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->order", "desc.order", use_chain(),
                 before.order = GEMMEPI_COLUMN_MAJOR);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->m", "desc.m", use_chain(), before.m = M + 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->m", "desc.m", use_chain(), before.m = M - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->n", "desc.k", use_chain(), before.n = K + 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->n", "desc.k", use_chain(), before.n = K - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->n", "desc.k", use_chain(),
                 before.activation |= GEMMEPI_GATED, before.n = 2 * K + 2);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->batch", "2", use_chain(), before.batch = 3);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->n", "desc.n", use_chain_of_columns(), before.n = N + 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->m", "desc.k", use_chain_of_columns(), before.m = K + 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.a.transposed", "desc.before", use_transposed(GEMMEPI_ROW_MAJOR),
                 use_chain(), before.batch = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.b.transposed", "desc.before", use_transposed(GEMMEPI_COLUMN_MAJOR),
                 use_chain(), before.order = GEMMEPI_COLUMN_MAJOR, before.m = K, before.n = N,
                 before.batch = 1);
}

static void what_goes_through_the_layer_before_is_asked_for_and_overwritten(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "LINEAR_DA", "desc.before", use_chain(), desc.flags &= ~GEMMEPI_LINEAR_DA,
                 args.da = NULL);
    REFUSED_DESC(INVALID_ARGUMENT, "ACCUMULATE_DA", "desc.before", use_chain(),
                 desc.flags |= GEMMEPI_ACCUMULATE_DA);
    REFUSED_DESC(INVALID_ARGUMENT, "LINEAR_DB", "desc.before", use_chain_of_columns(),
                 desc.flags &= ~GEMMEPI_LINEAR_DB, args.db = NULL);
    REFUSED_DESC(INVALID_ARGUMENT, "ACCUMULATE_DB", "desc.before", use_chain_of_columns(),
                 desc.flags |= GEMMEPI_ACCUMULATE_DB);
    ACCEPTED(use_chain(), desc.flags |= GEMMEPI_ACCUMULATE_DB | GEMMEPI_ACCUMULATE_DBIAS);
}

static void a_layer_before_has_saved_its_p_and_no_residual(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->flags", "LINEAR_SAVED", use_chain(), before.flags = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->flags", "LINEAR_SAVED", use_chain(),
                 before.flags = RECOMPUTE);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->flags", "LINEAR_RESIDUAL", use_chain(),
                 before.flags |= GEMMEPI_LINEAR_RESIDUAL);
    ACCEPTED(use_chain(), before.activation = 0, before.flags = 0, args.before = NULL);
}

static gemmepi_operand of_text[2];
static void *text_pointers[2];
static const float text_scale = 1;
static const float *const text_scales[2] = {&text_scale, NULL};

/* The layer before says its activation as text, with an operand. */
static void use_chain_by(const char *text) {
    use_chain();
    memset(of_text, 0, sizeof of_text);
    of_text[0].name = "up", of_text[0].kind = GEMMEPI_FULL;
    text_pointers[0] = text_pointers[1] = at(L_Y, 0);
    before.activation = 0, before.formula = text;
    before.operands = of_text, before.operand_count = 1;
    of_before.operands = text_pointers;
}

static void a_formula_of_the_layer_before_is_checked_in_its_words(void) {
    const char *const good = "d = up * v * v";
    ACCEPTED(use_chain_by(good));
    ACCEPTED(use_chain_by(good), text_pointers[0] = at(L_Y, 4)); /* a call finds out how it is aligned */
    ACCEPTED(use_chain_by("d = v + up"), before.flags = 0, of_before.preact = NULL);
    ACCEPTED(use_chain_by("d = v + up"), of_before.preact = NULL);
    ACCEPTED(use_chain_by("d = rounded(v) * v * up"));
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->formula",
                 "desc.da.dtype is BF16, and the gradient has rounded",
                 use_chain_by("d = rounded(v) * v * up"), desc.da.dtype = GEMMEPI_BF16);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->a.dtype is F64", "desc.a.dtype is F32",
                 use_chain_by("d = 2 * v * up"), before.a.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->formula", "column 12", use_chain_by("d = up * (v"));
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->formula", "frexp", use_chain_by("d = frexp(v) * up"));
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->activation", "desc.before->formula", use_chain_by(good),
                 before.activation = GEMMEPI_SILU);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->operand_count", "29", use_chain_by(good),
                 before.operand_count = 29);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->operands[0].name", "NULL", use_chain_by(good),
                 of_text[0].name = NULL);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->operands[0].ld", NULL, use_chain_by(good),
                 of_text[0].ld = 1);
    REFUSED_DESC(UNSUPPORTED, "desc.before->formula", "desc.formula", use_chain_by(good), desc.activation = 0,
                 desc.formula = "d = 2 * v");
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->flags has no LINEAR_SAVED", "reads v: set it, forward too",
                 use_chain_by(good), before.flags = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->flags has AMAX_D", "belongs in gemmepi_matmul_desc.flags",
                 use_chain_by(good), before.flags |= GEMMEPI_AMAX_D);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->flags", "LINEAR_SAVED", use_chain_by(good),
                 before.flags = RECOMPUTE);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->n", "desc.k", use_chain_by("d = pair(v, v) * up"),
                 of_text[0].width = GEMMEPI_WIDTH_DOUBLE);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->formula", "d", use_chain_by("s = row_sum(v * up)"),
                 of_text[1].name = "s", of_text[1].kind = GEMMEPI_PER_ROW, of_text[1].output = 1,
                 before.operand_count = 2);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->operands", "d_NAME", use_chain_by(good),
                 of_text[1].name = "d_up", of_text[1].kind = GEMMEPI_FULL, of_text[1].output = 1,
                 before.operand_count = 2);
    REFUSED_DESC(UNSUPPORTED, "desc.before->formula", "columns",
                 use_chain_by("d = left(v) * right(v) * (left(column) < 3) * up"), before.n = 2 * K,
                 of_text[0].width = GEMMEPI_WIDTH_HALF, before.preact.batch_stride = 2 * M * K);
}

static void operands_of_the_layer_before_are_checked(void) {
    const char *const good = "d = up * v * v";
    REFUSED_ARGS(INVALID_ARGUMENT, "args.before->operands", "NULL", use_chain_by(good),
                 of_before.operands = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.before->operands[0]", "NULL", use_chain_by(good),
                 text_pointers[0] = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.before", "NULL", use_chain_by(good), args.before = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.before->operand_scales[0]", "desc.before has no scale.mode",
                 use_chain_by(good), of_before.operand_scales = text_scales);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.da", "args.before->operands[0]", use_chain_by(good),
                 text_pointers[0] = args.da);
    REFUSED_ARGS(MISALIGNED, "args.before->operands[0]", NULL, use_chain_by(good), desc.alignment = 4,
                 text_pointers[0] = at(L_Y, 2));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.operands", "desc.formula", use_chain_by(good),
                 args.operands = text_pointers);
}

/* In the words of the layer before. */
static void a_layer_before_that_is_wrong_by_itself_is_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->activation", NULL, use_chain(), before.activation = 3);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->activation", NULL, use_chain(),
                 before.activation |= GEMMEPI_BACKWARD);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->activation_parameter", NULL, use_chain(),
                 before.activation_parameter = 0.5);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->flags", UNINITIALISED, use_chain(),
                 before.flags = UINT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->order", "desc.order", use_chain(),
                 before.order = (gemmepi_order)7);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->batch", NULL, use_chain(), before.batch = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->preact.dtype", UNINITIALISED, use_chain(),
                 before.preact.dtype = (gemmepi_dtype)-858993460);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->preact.ld", "6", use_chain(), before.preact.ld = K - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->preact.transposed", NULL, use_chain(),
                 before.preact.transposed = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.before->preact.scale.mode", NULL, use_chain(),
                 before.preact.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, UNINITIALISED, NULL, use_chain(), memset(&before, 0xcd, sizeof before),
                 before.formula = NULL);
}

static void pointers_of_the_layer_before_are_checked(void) {
    REFUSED_ARGS(INVALID_ARGUMENT, "args.before", "desc.before", use_chain(), args.before = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.before", "desc.before", use_chain(), desc.before = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.before->preact", "NULL", use_chain(), of_before.preact = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.before->scale_preact", "NONE", use_chain(),
                 of_before.scale_preact = (const float *)at(L_Y, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.da", "args.before->preact", use_chain(), of_before.preact = args.da);
    REFUSED_ARGS(MISALIGNED, "args.before->preact", NULL, use_chain(), desc.alignment = 4,
                 of_before.preact = at(L_Y, 2));
}

/* It need not even be right. */
static void forward_ignores_the_layer_before_and_that_backward_is_given_g(void) {
    ACCEPTED(use_forward(), use_chain(), before.m = -1, desc.flags |= GEMMEPI_LINEAR_DY_IS_G);
    ACCEPTED(use_forward(), use_chain(), desc.before = NULL);
    ACCEPTED(use_forward(), use_chain(), args.before = NULL);
}

static void g_that_is_given_has_its_own_shape_and_nothing_of_the_activation(void) {
    const uint64_t given = GEMMEPI_LINEAR_DY_IS_G;
    ACCEPTED(desc.flags |= given);
    ACCEPTED(desc.flags |= given, args.preact = NULL);
    ACCEPTED(use_items(GEMMEPI_SILU, BIAS | RECOMPUTE), desc.flags |= given, args.bias = NULL);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.dy.ld", "9", desc.flags |= given, desc.dy.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.dy.ld", "9", desc.flags |= given, desc.activation |= GEMMEPI_GATED,
                 desc.dy.ld = N - 1);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.dy", "NULL", desc.flags |= given, args.dy = NULL);
    REFUSED_DESC(INVALID_ARGUMENT, "LINEAR_SAVED", NULL, desc.flags |= given | RECOMPUTE);
}

static void use_residual(void) {
    use_forward();
    desc.flags |= GEMMEPI_LINEAR_RESIDUAL;
    desc.residual.batch_stride = M * N;
    args.residual = at(L_DY, 0);
}

static void a_residual_is_y_or_apart_from_it(void) {
    ACCEPTED(use_residual());
    ACCEPTED(use_residual(), desc.residual = desc.y, args.residual = args.y);
    ACCEPTED(desc.flags |= GEMMEPI_LINEAR_RESIDUAL); /* backward reads none */
    REFUSED_ARGS(INVALID_ARGUMENT, "args.residual", "LINEAR_RESIDUAL", use_residual(), args.residual = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.residual", "LINEAR_RESIDUAL", use_residual(),
                 desc.flags &= ~GEMMEPI_LINEAR_RESIDUAL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.y", "args.residual", use_residual(), args.residual = at(L_Y, 4),
                 desc.alignment = 4);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.y", "args.residual", use_residual(), args.residual = args.y,
                 desc.residual = desc.y, desc.residual.ld++);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.preact", "args.residual", use_residual(),
                 args.residual = args.preact);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_residual", "NONE", use_residual(),
                 args.scale_residual = (const float *)at(L_DY, 0));
    REFUSED_ARGS(MISALIGNED, "args.residual", NULL, use_residual(), desc.alignment = 4,
                 args.residual = at(L_DY, 2));
    REFUSED_DESC(INVALID_ARGUMENT, "desc.residual.ld", "9", use_residual(), desc.residual.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.residual.dtype", UNINITIALISED, use_residual(),
                 desc.residual.dtype = (gemmepi_dtype)-858993460);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.residual.transposed", NULL, use_residual(),
                 desc.residual.transposed = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.residual.scale.mode", NULL, use_residual(),
                 desc.residual.scale.mode = GEMMEPI_SCALE_TENSOR);
}

/* >>sizes and strides */

static void sizes_that_no_memory_has_are_refused(void) {
    int direction;
    for (direction = 0; direction < 2; direction++) {
        REFUSED_DESC(INVALID_ARGUMENT, "m|desc.m", "-1", backward = direction, desc.m = -1);
        REFUSED_DESC(INVALID_ARGUMENT, "n|desc.n", "-1", backward = direction, desc.n = -1);
        REFUSED_DESC(INVALID_ARGUMENT, "k|desc.k", "-2", backward = direction, desc.k = -2);
        REFUSED_DESC(INVALID_ARGUMENT, "batch|desc.batch", "-1", backward = direction, desc.batch = -1);
        REFUSED_DESC(INVALID_ARGUMENT, "m|desc.m", "-1", use_column_major(1), backward = direction,
                     desc.m = -1);
        REFUSED_DESC(INVALID_ARGUMENT, "n|desc.n", "-3", use_column_major(1), backward = direction,
                     desc.n = -3);
        REFUSED_DESC(INVALID_ARGUMENT, "m|desc.m", "-9223372036854775808", backward = direction,
                     desc.m = INT64_MIN);
        REFUSED_DESC(INVALID_ARGUMENT, "m|a|y|dy|da|preact", INT64_MAX_TEXT, backward = direction,
                     desc.m = INT64_MAX);
        REFUSED_DESC(INVALID_ARGUMENT, "batch|a|b|y|dy", INT64_MAX_TEXT, backward = direction,
                     desc.batch = INT64_MAX);
        REFUSED_DESC(INVALID_ARGUMENT, "a|a.ld", INT64_MAX_TEXT, backward = direction, desc.a.ld = INT64_MAX);
        REFUSED_DESC(INVALID_ARGUMENT, "b|b.batch_stride", INT64_MAX_TEXT, backward = direction,
                     desc.b.batch_stride = INT64_MAX);
    }
    REFUSED_DESC(INVALID_ARGUMENT, "y|y.ld", INT64_MAX_TEXT, use_forward(), desc.y.ld = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "dy|dy.ld", INT64_MAX_TEXT, desc.dy.ld = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "da|da.ld", INT64_MAX_TEXT, desc.da.ld = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "db|db.batch_stride", INT64_MAX_TEXT, desc.db.batch_stride = INT64_MAX);
    REFUSED_DESC(INVALID_ARGUMENT, "dbias|dbias.batch_stride", INT64_MAX_TEXT,
                 desc.dbias.batch_stride = INT64_MAX);
}

static void a_leading_dimension_below_its_line_is_refused(void) {
    int direction;
    for (direction = 0; direction < 2; direction++) {
        REFUSED_DESC(INVALID_ARGUMENT, "a.ld|desc.a.ld", "6", backward = direction, desc.a.ld = K - 1);
        REFUSED_DESC(INVALID_ARGUMENT, "a.ld|desc.a.ld", "5", backward = direction, desc.a.transposed = 1,
                     desc.a.ld = M - 1);
        REFUSED_DESC(INVALID_ARGUMENT, "b.ld|desc.b.ld", "9", backward = direction, desc.b.ld = N - 1);
        REFUSED_DESC(INVALID_ARGUMENT, "preact.ld|desc.preact.ld", "9", backward = direction,
                     desc.preact.ld = N - 1);
        REFUSED_DESC(INVALID_ARGUMENT, "preact.ld|desc.preact.ld", "100", use_items(GEMMEPI_RELU, SAVED),
                     backward = direction, desc.preact.ld = 100);
        REFUSED_DESC(INVALID_ARGUMENT, "preact.batch_stride|desc.preact.batch_stride", "129",
                     use_items(GEMMEPI_RELU, SAVED), backward = direction, desc.preact.ld = 128,
                     desc.preact.batch_stride = 129);
    }
    REFUSED_DESC(INVALID_ARGUMENT, "y.ld|desc.y.ld", "9", use_forward(), desc.y.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "dy.ld|desc.dy.ld", "9", desc.dy.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "dy.ld|desc.dy.ld", "4", desc.activation |= GEMMEPI_GATED,
                 desc.dy.ld = N / 2 - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "da.ld|desc.da.ld", "6", desc.da.ld = K - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "db.ld|desc.db.ld", "9", desc.db.ld = N - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "db.ld|desc.db.ld", "-10", desc.db.ld = -N);
    REFUSED_DESC(INVALID_ARGUMENT, "da.ld|desc.da.ld", "5", use_column_major(1), desc.da.ld = M - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "db.ld|desc.db.ld", "6", use_column_major(1), desc.db.ld = K - 1);
    ACCEPTED(desc.y.ld = N - 1); /* backward has no y */
    ACCEPTED(use_forward(), desc.dy.ld = N - 1, desc.da.ld = 1, desc.db.ld = -1);
}

static void strides_below_zero_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "a.batch_stride|desc.a.batch_stride", "-1", desc.a.batch_stride = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "b.batch_stride|desc.b.batch_stride", "-1", desc.b.batch_stride = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "dy.batch_stride|desc.dy.batch_stride", "-1", desc.dy.batch_stride = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "da.batch_stride|desc.da.batch_stride", "-1", desc.da.batch_stride = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "db.batch_stride|desc.db.batch_stride", "-1", desc.db.batch_stride = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "dbias.batch_stride|desc.dbias.batch_stride", "-1",
                 desc.dbias.batch_stride = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "bias.batch_stride|desc.bias.batch_stride", "-1",
                 use_items(GEMMEPI_SILU, BIAS | RECOMPUTE), desc.bias.batch_stride = -1);
}

/* Forward looks at neither. */
static void a_gradients_transposed_is_0_or_its_operands(void) {
    int direction, value;
    static const int wrong[] = {1, 2, -1};
    for (direction = 0; direction < 2; direction++)
        for (value = 0; value < 3; value++) {
            REFUSED_DESC(INVALID_ARGUMENT, "desc.da.transposed", NULL, use_column_major_or_row(direction),
                         desc.da.transposed = wrong[value]);
            REFUSED_DESC(INVALID_ARGUMENT, "desc.db.transposed", NULL, use_column_major_or_row(direction),
                         desc.db.transposed = wrong[value]);
        }
    REFUSED_DESC(INVALID_ARGUMENT, "desc.da.transposed", "2", use_transposed(GEMMEPI_ROW_MAJOR),
                 desc.da.transposed = 2);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.db.transposed", UNINITIALISED, use_transposed(GEMMEPI_COLUMN_MAJOR),
                 desc.db.transposed = -858993460);
    ACCEPTED(use_transposed(GEMMEPI_ROW_MAJOR));
    ACCEPTED(use_transposed(GEMMEPI_ROW_MAJOR), desc.da.transposed = 1);
    ACCEPTED(use_transposed(GEMMEPI_COLUMN_MAJOR), desc.da.transposed = desc.db.transposed = 1);
    ACCEPTED(use_forward(), desc.da.transposed = desc.db.transposed = 7);
    /* a line as stored decides about ld: [k, m] and [n, k] */
    REFUSED_DESC(INVALID_ARGUMENT, "desc.da.ld", "5", use_transposed(GEMMEPI_ROW_MAJOR), desc.da.ld = M - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.db.ld", "6", use_transposed(GEMMEPI_ROW_MAJOR), desc.db.ld = K - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.da.ld", "6", use_transposed(GEMMEPI_COLUMN_MAJOR),
                 desc.da.ld = K - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "desc.db.ld", "9", use_transposed(GEMMEPI_COLUMN_MAJOR),
                 desc.db.ld = N - 1);
    ACCEPTED(use_transposed(GEMMEPI_ROW_MAJOR), desc.da.ld = M, desc.db.ld = K);
    ACCEPTED(use_transposed(GEMMEPI_COLUMN_MAJOR), desc.da.ld = K, desc.db.ld = N);
}

static void only_a_and_b_may_be_transposed(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "y.transposed|desc.y.transposed", NULL, use_forward(),
                 desc.y.transposed = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "preact.transposed|desc.preact.transposed", NULL, use_forward(),
                 desc.preact.transposed = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "preact.transposed|desc.preact.transposed", NULL,
                 desc.preact.transposed = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "dy.transposed|desc.dy.transposed", NULL, desc.dy.transposed = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "da.transposed|desc.da.transposed", NULL, desc.da.transposed = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "db.transposed|desc.db.transposed", NULL, desc.db.transposed = 1);
}

/* >>batches */

static void forms_of_a_batch_are_not_mixed(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "db.batch_stride", NULL, use_shared(GEMMEPI_SILU, BIAS | SAVED),
                 desc.db.batch_stride = 200);
    REFUSED_DESC(INVALID_ARGUMENT, "dbias.batch_stride", NULL, use_shared(GEMMEPI_SILU, BIAS | SAVED),
                 desc.dbias.batch_stride = N);
    REFUSED_DESC(INVALID_ARGUMENT, "bias.batch_stride", NULL, use_shared(GEMMEPI_SILU, BIAS | RECOMPUTE),
                 desc.bias.batch_stride = N);
    REFUSED_DESC(INVALID_ARGUMENT, "db.batch_stride", NULL, desc.db.batch_stride = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "dbias.batch_stride", NULL, desc.dbias.batch_stride = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "dbias.batch_stride|bias.batch_stride", NULL, desc.bias.batch_stride = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "da.batch_stride", NULL, desc.da.batch_stride = 0);
    REFUSED_DESC(UNSUPPORTED, "da.batch_stride", NULL, use_shared(GEMMEPI_SILU, SAVED),
                 desc.a.batch_stride = desc.da.batch_stride = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "da.batch_stride", NULL, use_shared(GEMMEPI_SILU, SAVED),
                 desc.da.batch_stride = 0);
    ACCEPTED(desc.a.batch_stride = desc.da.batch_stride = 0);
    ACCEPTED(desc.a.batch_stride = 0);
    ACCEPTED(desc.dy.batch_stride = 0);
    ACCEPTED(desc.bias.batch_stride = desc.dbias.batch_stride = 0);
    ACCEPTED(use_shared(GEMMEPI_SILU, BIAS | SAVED));
}

/* Of no element, but 2^63 rows or columns over which a gradient is summed. */
static void use_endless(int64_t m, int64_t n, int64_t k, int sums_da) {
    use_layer(layer_plain(GEMMEPI_F32, M, N, K, GEMMEPI_NONE, ALL_GRADIENTS));
    desc.m = m, desc.n = n, desc.k = k;
    desc.batch = (int64_t)1 << 23;
    if (sums_da)
        desc.b.batch_stride = desc.db.batch_stride = 1;
    else
        desc.da.batch_stride = m * k + 1;
}

static void ask_for(uint64_t gradients) {
    desc.flags = gradients;
    args.da = gradients & GEMMEPI_LINEAR_DA ? args.da : NULL;
    args.db = gradients & GEMMEPI_LINEAR_DB ? args.db : NULL;
    args.dbias = gradients & GEMMEPI_LINEAR_DBIAS ? args.dbias : NULL;
}

static void empty_layers_are_of_any_size(void) {
    const int64_t endless = (int64_t)1 << 40;
    ACCEPTED(use_endless(endless, 0, 0, 0));
    ACCEPTED(use_endless(endless, 0, 0, 0), desc.da.ld = desc.da.batch_stride = endless);
    ACCEPTED(use_endless(endless, 0, 3, 0), ask_for(GEMMEPI_LINEAR_DB));
    ACCEPTED(use_endless(endless, 0, 3, 0), ask_for(GEMMEPI_LINEAR_DBIAS));
    ACCEPTED(use_endless(0, endless, 0, 1), ask_for(GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB));
    ACCEPTED(use_endless(0, endless, 3, 1), ask_for(GEMMEPI_LINEAR_DA));
    ACCEPTED(use_endless(endless, 0, 0, 0), ask_for(GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB),
             desc.order = GEMMEPI_COLUMN_MAJOR, desc.a.batch_stride = desc.da.batch_stride = 1,
             desc.b.batch_stride = desc.db.batch_stride = 0);
    check_untouched("empty layers");
}

/* An A that all items share and that their sum takes one after another. */
static void a_copy_that_no_memory_has_is_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "a|desc.a", NULL, use_endless((int64_t)1 << 28, 1, (int64_t)1 << 20, 0),
                 desc.flags = GEMMEPI_LINEAR_DB, desc.batch = (int64_t)1 << 28);
}

static void in_column_major_order_the_callers_a_and_b_are_named(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "da.batch_stride", NULL, use_column_major(0), desc.da.batch_stride = 200);
    REFUSED_DESC(INVALID_ARGUMENT, "da.batch_stride", NULL, use_column_major(1), desc.da.batch_stride = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "db.batch_stride", NULL, use_column_major(1), desc.db.batch_stride = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "dbias.batch_stride", NULL, use_column_major(0),
                 desc.dbias.batch_stride = M);
    REFUSED_DESC(INVALID_ARGUMENT, "a.ld|desc.a.ld", "5", use_column_major(1), desc.a.ld = M - 1);
    REFUSED_DESC(INVALID_ARGUMENT, "b.ld|desc.b.ld", "6", use_column_major(1), desc.b.ld = K - 1);
    ACCEPTED(use_column_major(0));
    ACCEPTED(use_column_major(1), desc.b.batch_stride = desc.db.batch_stride = 0);
}

static void items_of_an_output_that_overlap_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "y.batch_stride|y", NULL, use_forward(), desc.y.batch_stride = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "preact.batch_stride|preact", NULL, use_forward(),
                 desc.preact.batch_stride = 0);
    REFUSED_DESC(INVALID_ARGUMENT, "da.batch_stride|da", NULL, desc.da.batch_stride = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "db.batch_stride|db", NULL, desc.db.batch_stride = 1);
    REFUSED_DESC(INVALID_ARGUMENT, "dbias.batch_stride|dbias", NULL, desc.dbias.batch_stride = N - 1);
}

/* >>dtypes and scales */

static void types_that_do_not_go_together_are_refused(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "b.dtype|b", NULL, use_dtype(GEMMEPI_F64), desc.b.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "a.dtype|b.dtype|a|b", NULL, desc.b.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "dy.dtype", NULL, use_dtype(GEMMEPI_F64), desc.dy.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "da.dtype", "layer in F64 are in F64", use_dtype(GEMMEPI_F64),
                 desc.da.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "db.dtype", NULL, use_dtype(GEMMEPI_F64), desc.db.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "dbias.dtype", NULL, use_dtype(GEMMEPI_F64),
                 desc.dbias.dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "g_dtype", NULL, use_dtype(GEMMEPI_F64), desc.g_dtype = GEMMEPI_F32);
    REFUSED_DESC(INVALID_ARGUMENT, "g_dtype", NULL, desc.g_dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "g_dtype", NULL, desc.g_dtype = GEMMEPI_E4M3);
    REFUSED_DESC(INVALID_ARGUMENT, "g_dtype", NULL, desc.g_dtype = GEMMEPI_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "dy.dtype", NULL, desc.dy.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "dy.dtype", NULL, desc.dy.dtype = GEMMEPI_I32);
    REFUSED_DESC(INVALID_ARGUMENT, "da.dtype", "a layer in", desc.da.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "da.dtype", NULL, desc.da.dtype = GEMMEPI_E4M3);
    REFUSED_DESC(INVALID_ARGUMENT, "db.dtype", NULL, desc.db.dtype = GEMMEPI_E5M2);
    REFUSED_DESC(INVALID_ARGUMENT, "db.dtype", NULL, desc.db.dtype = GEMMEPI_I8);
    REFUSED_DESC(INVALID_ARGUMENT, "dbias.dtype", NULL, desc.dbias.dtype = GEMMEPI_E4M3);
    REFUSED_DESC(INVALID_ARGUMENT, "dbias.dtype", NULL, desc.dbias.dtype = GEMMEPI_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "bias.dtype", NULL, use_forward(), desc.bias.dtype = GEMMEPI_E4M3);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", NULL, desc.compute = GEMMEPI_COMPUTE_F64);
    REFUSED_DESC(INVALID_ARGUMENT, "compute", NULL, use_dtype(GEMMEPI_F64),
                 desc.compute = GEMMEPI_COMPUTE_TF32);
    REFUSED_DESC(INVALID_ARGUMENT, "db.dtype", NULL, use_column_major(1), desc.db.dtype = GEMMEPI_E5M2);
    REFUSED_DESC(INVALID_ARGUMENT, "da.dtype", NULL, use_column_major(1), desc.da.dtype = GEMMEPI_E5M2);
}

static void the_backward_of_whole_numbers_is_unsupported(void) {
    REFUSED_DESC(UNSUPPORTED, "a.dtype|b.dtype|a|b", "I8", desc.a.dtype = GEMMEPI_I8,
                 desc.y.dtype = desc.dy.dtype = GEMMEPI_F32, desc.da.dtype = desc.db.dtype = GEMMEPI_F32,
                 desc.g_dtype = GEMMEPI_F32);
    REFUSED_DESC(UNSUPPORTED, "b.dtype|b", "I8", desc.a.dtype = GEMMEPI_BF16, desc.b.dtype = GEMMEPI_I8,
                 desc.da.dtype = desc.db.dtype = GEMMEPI_F32);
    ACCEPTED(use_forward(), desc.a.dtype = desc.b.dtype = GEMMEPI_I8, desc.y.dtype = GEMMEPI_F32);
}

static void a_scale_is_for_8_bits_and_of_its_modes(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "a.scale.mode|a.scale", NULL, desc.a.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "b.scale.mode|b.scale", NULL, desc.b.scale.mode = GEMMEPI_SCALE_OUTER);
    REFUSED_DESC(INVALID_ARGUMENT, "dy.scale.mode|dy.scale", NULL, desc.dy.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "y.scale.mode|y.scale", NULL, use_forward(),
                 desc.y.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "preact.scale.mode|preact.scale", NULL,
                 desc.preact.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "da.scale.mode|da.scale", NULL, desc.da.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "db.scale.mode|db.scale", NULL, desc.db.scale.mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_DESC(INVALID_ARGUMENT, "a.scale.mode", "7", use_scaled(),
                 desc.a.scale.mode = (gemmepi_scale_mode)7);
    REFUSED_DESC(INVALID_ARGUMENT, "dy.scale.mode", NULL, use_scaled(),
                 desc.dy.scale.mode = GEMMEPI_SCALE_OUTER);
    REFUSED_DESC(INVALID_ARGUMENT, "preact.scale.mode", NULL, use_scaled(),
                 desc.preact.scale.mode = GEMMEPI_SCALE_VECTOR_128);
    REFUSED_DESC(INVALID_ARGUMENT, "y.scale.mode", NULL, use_scaled(), backward = 0,
                 desc.y.scale.mode = GEMMEPI_SCALE_BLOCK_128);
    REFUSED_DESC(INVALID_ARGUMENT, "a.scale.batch_stride", "-1", use_scaled(),
                 desc.a.scale.batch_stride = -1);
    REFUSED_DESC(INVALID_ARGUMENT, "dy.scale.batch_stride", "3", desc.dy.scale.batch_stride = 3);
}

/* What all items share has one scale, or one of each mode. */
static void a_shared_weight_has_shared_scales(void) {
    REFUSED_DESC(INVALID_ARGUMENT, "b.scale.batch_stride", NULL, use_scaled(), desc.b.batch_stride = 0,
                 desc.db.batch_stride = desc.bias.batch_stride = desc.dbias.batch_stride = 0);
    ACCEPTED(use_scaled(), desc.b.batch_stride = desc.b.scale.batch_stride = 0,
             desc.db.batch_stride = desc.bias.batch_stride = desc.dbias.batch_stride = 0);
}

static void a_scale_goes_with_its_mode(void) {
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_a", "NULL", use_scaled(), args.scale_a = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_b", "NULL", use_scaled(), args.scale_b = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_dy", "NULL", use_scaled(), args.scale_dy = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_preact", "NULL", use_scaled(), args.scale_preact = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_y", "NULL", use_scaled(), backward = 0, args.scale_y = NULL);
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_a", NULL, args.scale_a = (const float *)at(L_Y, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_b", NULL, args.scale_b = (const float *)at(L_Y, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_dy", NULL, args.scale_dy = (const float *)at(L_Y, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_preact", NULL, args.scale_preact = (const float *)at(L_Y, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.scale_y", NULL, use_forward(),
                 args.scale_y = (const float *)at(L_DY, 0));
}

/* >>pointers */

static void **pointer_of(int t) {
    void **const all[] = {(void **)&args.a,
                          (void **)&args.b,
                          (void **)&args.bias,
                          &args.y,
                          &args.preact,
                          (void **)&args.dy,
                          &args.da,
                          &args.db,
                          &args.dbias,
                          (void **)&args.scale_a,
                          (void **)&args.scale_b,
                          (void **)&args.scale_y,
                          (void **)&args.scale_preact,
                          (void **)&args.scale_dy};
    return all[t];
}

static void a_pointer_below_its_element_or_the_promise_is_misaligned(void) {
    char name[32];
    int t, direction;
    for (t = L_A; t < L_SCALE_A; t++)
        for (direction = 0; direction < 2; direction++) {
            use();
            if (!layer_needs(&base, t, direction) || (!direction && t >= L_DY))
                continue;
            snprintf(name, sizeof name, "args.%s", layer_names[t]);
            REFUSED_ARGS(MISALIGNED, name, NULL, backward = direction, desc.alignment = 1,
                         *pointer_of(t) = at(t, 2));
            REFUSED_ARGS(MISALIGNED, name, NULL, backward = direction, desc.alignment = 4,
                         *pointer_of(t) = at(t, 6));
            REFUSED_ARGS(MISALIGNED, name, NULL, backward = direction, desc.alignment = 64,
                         *pointer_of(t) = at(t, 32));
        }
    REFUSED_ARGS(MISALIGNED, "args.scale_a", NULL, use_scaled(),
                 args.scale_a = (const float *)at(L_SCALE_A, 4));
    REFUSED_ARGS(MISALIGNED, "args.scale_b", NULL, use_scaled(),
                 args.scale_b = (const float *)at(L_SCALE_B, 8));
    REFUSED_ARGS(MISALIGNED, "args.scale_dy", NULL, use_scaled(),
                 args.scale_dy = (const float *)at(L_SCALE_DY, 2));
    REFUSED_DESC(INVALID_ARGUMENT, "alignment", "3", desc.alignment = 3);
    REFUSED_DESC(INVALID_ARGUMENT, "alignment", "512", desc.alignment = 512);
    REFUSED_DESC(INVALID_ARGUMENT, "alignment", "24", use_forward(), desc.alignment = 24);
}

/* Output t placed on the first number of another tensor of the direction, and on its last one (and on what follows). */
static void refuse_overlap(int t, int other, int direction) {
    char name[32];
    int64_t last = (int64_t)(placed.bytes[other] - 1) / 4 * 4;
    snprintf(name, sizeof name, "args.%s", layer_names[t]);
    REFUSED_ARGS(INVALID_ARGUMENT, name, layer_names[other], backward = direction, desc.alignment = 4,
                 *pointer_of(t) = at(other, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, name, NULL, backward = direction, desc.alignment = 4,
                 *pointer_of(t) = at(other, last));
}

static void an_output_that_overlaps_anything_of_its_direction_is_refused(void) {
    static const int forward_outputs[] = {L_Y, L_PREACT}, outputs[] = {L_DA, L_DB, L_DBIAS};
    int i, other;
    for (other = L_A; other < L_SCALE_A; other++) {
        use();
        for (i = 0; i < 2; i++)
            if (other != forward_outputs[i] && other <= L_PREACT)
                refuse_overlap(forward_outputs[i], other, 0);
        for (i = 0; i < 3; i++)
            if (other != outputs[i] && layer_needs(&base, other, 1))
                refuse_overlap(outputs[i], other, 1);
    }
    REFUSED_ARGS(INVALID_ARGUMENT, "args.da", "args.scale_a", use_scaled(), args.da = at(L_SCALE_A, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.db", "args.scale_dy", use_scaled(), args.db = at(L_SCALE_DY, 0));
    REFUSED_ARGS(INVALID_ARGUMENT, "args.dbias", "bias", use_items(GEMMEPI_SILU, BIAS | RECOMPUTE),
                 args.dbias = (void *)(uintptr_t)args.bias);
    ACCEPTED(args.dbias = (void *)(uintptr_t)args.bias); /* SAVED: backward has no bias */
}

static void workspace_that_is_no_good_is_refused(void) {
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    refusal want = {GEMMEPI_BUFFER_TOO_SMALL, "workspace_size|args.workspace_size", NULL, "workspace"};
    use();
    CHECK(gemmepi_plan_linear_backward(here->context, &desc, &plan) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    CHECK(plan && gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    if (plan == NULL ||
        details.workspace_size == 0) { /* on the host: what is given is held to tensors all the same */
        args.workspace = at(L_A, 0), args.workspace_size = 1;
        want.status = GEMMEPI_INVALID_ARGUMENT, want.names = "args.workspace";
        check_refused("the run", plan ? run_it(plan) : GEMMEPI_OK, want);
        gemmepi_plan_destroy(plan);
        return;
    }
    CHECK(test_device_reserve(here, &here->workspace, &here->workspace_size, details.workspace_size + 512),
          "%s", gemmepi_last_error());
    args.workspace = here->workspace;
    args.workspace_size = details.workspace_size - 1;
    check_refused("the run", run_it(plan), want);
    args.workspace_size = 0;
    check_refused("the run", run_it(plan), want);
    args.workspace_size = details.workspace_size;
    args.workspace = (char *)here->workspace + 128;
    want.status = GEMMEPI_MISALIGNED;
    want.names = "args.workspace";
    check_refused("the run", run_it(plan), want);
    args.workspace = at(L_A, 0);
    want.status = GEMMEPI_INVALID_ARGUMENT;
    check_refused("the run", run_it(plan), want);
    check_untouched("workspace");
    gemmepi_plan_destroy(plan);
}

static void what_is_said_of_gradients_does_not_matter_to_forward(void) {
    ACCEPTED(use_forward(), desc.flags = BIAS | SAVED, args.da = args.db = args.dbias = NULL);
    ACCEPTED(use_forward(), desc.db.batch_stride = 0, desc.dbias.batch_stride = 3);
    ACCEPTED(use_forward(), desc.da.dtype = GEMMEPI_E4M3, desc.dy.transposed = 1);
    ACCEPTED(use_forward(), desc.flags = BIAS, args.preact = NULL);
    ACCEPTED(use_forward(), desc.flags = BIAS | RECOMPUTE, args.preact = NULL);
}

static void run_all(void) {
    RUN(null_is_refused_by_name);
    RUN(a_plan_of_another_kind_is_refused);
    RUN(a_needed_pointer_that_is_missing_is_refused);
    RUN(an_output_that_was_not_asked_for_is_refused);
    RUN(what_the_layer_has_not_is_refused_in_both_directions);
    RUN(what_the_other_direction_takes_may_be_there_or_not);
    RUN(flags_that_do_not_go_together_are_refused);
    RUN(unknown_flags_are_refused);
    RUN(batch_invariance_of_a_gradient_that_lies_transposed_is_refused);
    RUN(flags_in_wrong_fields_are_sent_to_the_right_one);
    RUN(an_activation_is_one_of_the_list_with_gates_or_not);
    RUN(a_layer_before_fits_the_layer);
    RUN(what_goes_through_the_layer_before_is_asked_for_and_overwritten);
    RUN(a_layer_before_has_saved_its_p_and_no_residual);
    RUN(a_formula_of_the_layer_before_is_checked_in_its_words);
    RUN(operands_of_the_layer_before_are_checked);
    RUN(a_layer_before_that_is_wrong_by_itself_is_refused);
    RUN(pointers_of_the_layer_before_are_checked);
    RUN(forward_ignores_the_layer_before_and_that_backward_is_given_g);
    RUN(g_that_is_given_has_its_own_shape_and_nothing_of_the_activation);
    RUN(a_residual_is_y_or_apart_from_it);
    RUN(numbers_of_cublaslts_epilogues_are_no_activations);
    RUN(a_parameter_is_said_to_be_there);
    RUN(values_of_garbage_get_a_hint);
    RUN(what_is_halved_is_even);
    RUN(enums_out_of_range_are_refused);
    RUN(sizes_that_no_memory_has_are_refused);
    RUN(a_leading_dimension_below_its_line_is_refused);
    RUN(strides_below_zero_are_refused);
    RUN(a_gradients_transposed_is_0_or_its_operands);
    RUN(only_a_and_b_may_be_transposed);
    RUN(forms_of_a_batch_are_not_mixed);
    RUN(empty_layers_are_of_any_size);
    RUN(a_copy_that_no_memory_has_is_refused);
    RUN(in_column_major_order_the_callers_a_and_b_are_named);
    RUN(items_of_an_output_that_overlap_are_refused);
    RUN(types_that_do_not_go_together_are_refused);
    RUN(the_backward_of_whole_numbers_is_unsupported);
    RUN(a_scale_is_for_8_bits_and_of_its_modes);
    RUN(a_shared_weight_has_shared_scales);
    RUN(a_scale_goes_with_its_mode);
    RUN(a_pointer_below_its_element_or_the_promise_is_misaligned);
    RUN(an_output_that_overlaps_anything_of_its_direction_is_refused);
    RUN(workspace_that_is_no_good_is_refused);
    RUN(what_is_said_of_gradients_does_not_matter_to_forward);
}

int main(void) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    for (i = 0; i < count; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        run_all();
        image_free(&placed);
        test_device_close(here);
    }
    return test_finish() || count == 0;
}
