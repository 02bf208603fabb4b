/* Which element-wise calls are refused, with which status and a sentence that names the argument, and nothing written; and
   what looks like it but is accepted. Runs on the devices that GEMMEPI_TEST_DEVICE names; see ../products/problem.h. */
#include "call.h"

#include <limits.h>

static test_device *here;

/* The call that each case spoils: a good one of [6, 10], all its memory in the arena. */
static call base;
static image placed;
static gemmepi_tensor g[E_TENSORS];
static gemmepi_elementwise_desc desc;
static gemmepi_elementwise_args args;

enum { M = 6, N = 10 };

static void use(call c) {
    image_free(&placed);
    base = c;
    call_place(&base, &placed);
    call_fill(&base, &placed);
    CHECK(image_upload(&placed, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
    call_tensors(&base, &placed, here, 1, g);
    call_desc(&base, g, &desc);
    args = call_args(&base, &placed, here);
}

/* Rows three elements apart. */
static call call_good(gemmepi_operation kind, gemmepi_dtype dtype) {
    static const int64_t shape[] = {M, N};
    call c = call_plain(kind, dtype, 2, shape);
    int t;
    for (t = 0; t < E_TENSORS; t++)
        if (c.o.t[t].used && c.o.t[t].rank == 2)
            c.o.t[t].stride[0] = N + 3;
    if (kind <= GEMMEPI_OP_GATED_BACKWARD)
        c.o.activation = GEMMEPI_SILU;
    return c;
}

static void use_kind(gemmepi_operation kind) {
    use(call_good(kind, GEMMEPI_F32));
}

static void use_dense(gemmepi_operation kind, gemmepi_dtype dtype, int64_t rows, int64_t columns) {
    int64_t shape[2];
    shape[0] = rows;
    shape[1] = columns;
    use(call_plain(kind, dtype, 2, shape));
}

static void use_split(gemmepi_operation kind) {
    call c = call_good(kind, GEMMEPI_F32);
    call_split(&c, 1);
    use(c);
}

/* a dense, y too, of rows of as many columns */
static void use_split_of(int64_t rows, int64_t columns) {
    int64_t shape[2];
    call c;
    shape[0] = rows;
    shape[1] = columns;
    c = call_plain(GEMMEPI_OP_GATED, GEMMEPI_F32, 2, shape);
    c.o.activation = GEMMEPI_SILU;
    c.no_bytes = 1;
    call_split(&c, 1);
    use(c);
}

static void use_rank(gemmepi_operation kind, int rank) {
    static const int64_t shape[] = {4, 4, 4, 4};
    use(call_plain(kind, GEMMEPI_F32, rank, shape));
}

static void use_cast(gemmepi_dtype y, gemmepi_scale_mode mode, uint64_t flags) {
    call c = call_good(GEMMEPI_OP_CAST, GEMMEPI_F32);
    c.o.t[E_Y].dtype = y;
    c.o.mode = mode;
    c.o.flags = flags;
    use(c);
}

/* F16 to BF16: as large, and another type. */
static void use_cast_of_16_bits(void) {
    call c = call_good(GEMMEPI_OP_CAST, GEMMEPI_F16);
    c.o.t[E_Y].dtype = GEMMEPI_BF16;
    use(c);
}

/* Both layouts. */
static void use_turned(gemmepi_dtype y, gemmepi_scale_mode mode, uint64_t flags) {
    call c = call_good(GEMMEPI_OP_CAST, GEMMEPI_F32);
    c.o.t[E_Y].dtype = y;
    c.o.mode = mode;
    c.o.flags = flags;
    call_turn(&c);
    use(c);
}

/* dy of [M, N] and one weight: dw is a sum. */
static void use_summed_weight(gemmepi_dtype dtype) {
    static const int64_t one[] = {1};
    call c = call_good(GEMMEPI_OP_LERP_BACKWARD, dtype);
    strided_set(&c.o.t[E_W], dtype, 1, one);
    strided_set(&c.o.t[E_DW], dtype, 1, one);
    use(c);
}

/* >>what is said */

static int is_part_of_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static int mentions(const char *text, const char *word) {
    const char *found;
    size_t length = strlen(word);
    for (found = strstr(text, word); found != NULL; found = strstr(found + 1, word))
        if ((found == text || !is_part_of_word(found[-1])) && !is_part_of_word(found[length]))
            return 1;
    return 0;
}

static void check_refused(const char *function, gemmepi_status got, gemmepi_status want, const char *names,
                          const char *value, const char *code) {
    const char *text = gemmepi_last_error();
    CHECK(got == want, "%s after '%s' gives %s (%s), want %s", function, code, gemmepi_status_name(got),
          got ? text : "", gemmepi_status_name(want));
    if (got != want)
        return;
    CHECK(mentions(text, names), "%s after '%s' does not name %s: %s", function, code, names, text);
    CHECK(value == NULL || mentions(text, value), "%s after '%s' does not say %s: %s", function, code, value,
          text);
}

static void check_untouched(const char *code) {
    CHECK(image_download(&placed, here) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(memcmp(placed.before, placed.after, placed.size) == 0, "memory changed after '%s'", code);
}

/* The tensors' data are the pointers of args. */
static void point_tensors(void) {
    g[E_A].data = (void *)(uintptr_t)args.a;
    g[E_B].data = (void *)(uintptr_t)args.b;
    g[E_W].data = (void *)(uintptr_t)args.w;
    g[E_DY].data = (void *)(uintptr_t)args.dy;
    g[E_Y].data = args.y;
    g[E_DA].data = args.da;
    g[E_DB].data = args.db;
    g[E_DW].data = args.dw;
    g[E_TURNED].data = args.y_transposed;
}

static gemmepi_status at_once(void) {
    point_tensors();
    return gemmepi_elementwise(here->context, &desc, &args, here->stream);
}

/* desc as a short call; what there is none for as a struct. */
static gemmepi_status short_call(void) {
    gemmepi_context *context = here->context;
    gemmepi_stream stream = here->stream;
    double parameter = desc.has_parameter ? desc.activation_parameter : NAN;
    point_tensors();
    switch (desc.operation) {
    case GEMMEPI_OP_ACTIVATION:
        return gemmepi_activation(context, desc.activation, parameter, desc.a, desc.y, stream);
    case GEMMEPI_OP_ACTIVATION_BACKWARD:
        return gemmepi_activation_backward(context, desc.activation, parameter, desc.a, desc.dy, desc.da,
                                           stream);
    case GEMMEPI_OP_GATED:
        return gemmepi_gated(context, desc.activation, desc.axis, desc.a, desc.b, desc.y, stream);
    case GEMMEPI_OP_LERP:
        return gemmepi_lerp(context, desc.a, desc.b, desc.w, args.weight, desc.y, stream);
    case GEMMEPI_OP_BIAS_GRAD:
        return gemmepi_bias_grad(context, desc.a, desc.axis, (desc.flags & GEMMEPI_ACCUMULATE) != 0, desc.y,
                                 stream);
    default:
        if (desc.operation == GEMMEPI_OP_CAST && !desc.flags && !desc.scale_mode && !desc.y_transposed)
            return gemmepi_cast(context, desc.a, desc.y, stream);
        return gemmepi_elementwise(context, &desc, &args, stream);
    }
}

/* How a call may be made; each kind of refusal holds for one of these and those before it. */
enum { BY_PLAN, BY_STRUCT, BY_SHORT_CALL };

/* desc is wrong: no plan, and no call at once, unless no short call could say it. */
static void refuse_desc(int ways, const char *names, const char *value, const char *code) {
    gemmepi_plan *plan = NULL;
    check_refused("gemmepi_plan_elementwise", gemmepi_plan_elementwise(here->context, &desc, &plan),
                  GEMMEPI_INVALID_ARGUMENT, names, value, code);
    CHECK(plan == NULL, "a plan after '%s'", code);
    check_refused("gemmepi_elementwise", at_once(), GEMMEPI_INVALID_ARGUMENT, names, value, code);
    if (ways == BY_SHORT_CALL)
        check_refused("the short call", short_call(), GEMMEPI_INVALID_ARGUMENT, names, value, code);
    check_untouched(code);
    gemmepi_plan_destroy(plan);
}

/* desc is good, args are not: a plan, but no run. */
static void refuse_args(gemmepi_status want, int ways, const char *names, const char *value,
                        const char *code) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gemmepi_plan_elementwise(here->context, &desc, &plan);
    CHECK(status == GEMMEPI_OK, "'%s': %s", code, gemmepi_last_error());
    if (status == GEMMEPI_OK) {
        CHECK(gemmepi_plan_prepare(plan, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
        check_refused("gemmepi_run_elementwise", gemmepi_run_elementwise(plan, &args, here->stream), want,
                      names, value, code);
    }
    if (ways >= BY_STRUCT)
        check_refused("gemmepi_elementwise", at_once(), want, names, value, code);
    if (ways >= BY_SHORT_CALL)
        check_refused("the short call", short_call(), want, names, value, code);
    check_untouched(code);
    gemmepi_plan_destroy(plan);
}

static void accept(const char *code) {
    gemmepi_plan *plan = NULL;
    gemmepi_status status = gemmepi_plan_elementwise(here->context, &desc, &plan);
    if (status == GEMMEPI_OK)
        status = gemmepi_plan_prepare(plan, here->stream);
    if (status == GEMMEPI_OK)
        status = gemmepi_run_elementwise(plan, &args, here->stream);
    CHECK(status == GEMMEPI_OK, "'%s': %s", code, gemmepi_last_error());
    CHECK(gemmepi_synchronize(here->context, here->stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
}

/* REFUSED(use a good call, name, value, statements that spoil it) */
#define REFUSED(good, names, value, ...)                        \
    do {                                                        \
        good;                                                   \
        __VA_ARGS__;                                            \
        refuse_desc(BY_SHORT_CALL, names, value, #__VA_ARGS__); \
    } while (0)

/* of what no short call can say */
#define REFUSED_STRUCT(good, names, value, ...)             \
    do {                                                    \
        good;                                               \
        __VA_ARGS__;                                        \
        refuse_desc(BY_STRUCT, names, value, #__VA_ARGS__); \
    } while (0)

#define REFUSED_ARGS(good, status, names, value, ...)                             \
    do {                                                                          \
        good;                                                                     \
        __VA_ARGS__;                                                              \
        refuse_args(GEMMEPI_##status, BY_SHORT_CALL, names, value, #__VA_ARGS__); \
    } while (0)

#define REFUSED_STRUCT_ARGS(good, status, names, value, ...)                  \
    do {                                                                      \
        good;                                                                 \
        __VA_ARGS__;                                                          \
        refuse_args(GEMMEPI_##status, BY_STRUCT, names, value, #__VA_ARGS__); \
    } while (0)

/* of what only a plan promises */
#define REFUSED_RUN(good, status, names, value, ...)                        \
    do {                                                                    \
        good;                                                               \
        __VA_ARGS__;                                                        \
        refuse_args(GEMMEPI_##status, BY_PLAN, names, value, #__VA_ARGS__); \
    } while (0)

#define ACCEPTED(good, ...)   \
    do {                      \
        good;                 \
        __VA_ARGS__;          \
        accept(#__VA_ARGS__); \
    } while (0)

#define ACTIVATION          use_kind(GEMMEPI_OP_ACTIVATION)
#define ACTIVATION_BACKWARD use_kind(GEMMEPI_OP_ACTIVATION_BACKWARD)
#define GATED               use_kind(GEMMEPI_OP_GATED)
#define GATED_BACKWARD      use_kind(GEMMEPI_OP_GATED_BACKWARD)
#define LERP                use_kind(GEMMEPI_OP_LERP)
#define LERP_BACKWARD       use_kind(GEMMEPI_OP_LERP_BACKWARD)
#define BIAS_GRAD           use_kind(GEMMEPI_OP_BIAS_GRAD)
#define CAST                use_kind(GEMMEPI_OP_CAST)
#define SPLIT               use_split(GEMMEPI_OP_GATED)
#define SPLIT_BACKWARD      use_split(GEMMEPI_OP_GATED_BACKWARD)

/* What a case changes: the shapes and strides that g points to. */
#define SHAPE(name)  base.o.t[E_##name].shape
#define STRIDE(name) base.o.t[E_##name].stride

static const int64_t huge = (int64_t)1 << 40;

/* >>the cases */

static void null_is_refused_wherever_something_is_needed(void) {
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    char text[8];
    ACTIVATION;
    check_refused("plan", gemmepi_plan_elementwise(NULL, &desc, &plan), GEMMEPI_INVALID_ARGUMENT, "context",
                  "NULL", "context");
    check_refused("plan", gemmepi_plan_elementwise(here->context, NULL, &plan), GEMMEPI_INVALID_ARGUMENT,
                  "desc", "NULL", "desc");
    check_refused("plan", gemmepi_plan_elementwise(here->context, &desc, NULL), GEMMEPI_INVALID_ARGUMENT,
                  "plan", "NULL", "plan");
    CHECK(gemmepi_plan_elementwise(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    check_refused("run", gemmepi_run_elementwise(NULL, &args, here->stream), GEMMEPI_INVALID_ARGUMENT, "plan",
                  "NULL", "plan");
    check_refused("run", gemmepi_run_elementwise(plan, NULL, here->stream), GEMMEPI_INVALID_ARGUMENT, "args",
                  "NULL", "args");
    check_refused("prepare", gemmepi_plan_prepare(NULL, here->stream), GEMMEPI_INVALID_ARGUMENT, "plan",
                  "NULL", "plan");
    check_refused("info", gemmepi_plan_info(NULL, &details), GEMMEPI_INVALID_ARGUMENT, "plan", "NULL",
                  "plan");
    check_refused("info", gemmepi_plan_info(plan, NULL), GEMMEPI_INVALID_ARGUMENT, "details", "NULL",
                  "details");
    CHECK(gemmepi_plan_explain(NULL, text, sizeof text) == 0, "a text for NULL");
    CHECK(gemmepi_plan_explain(plan, NULL, 0) > 0, "no length");
    gemmepi_plan_destroy(plan);
    gemmepi_plan_destroy(NULL);
    check_untouched("NULL");
}

static void a_plan_of_another_kind_is_refused(void) {
    gemmepi_matmul_desc product;
    gemmepi_linear_desc layer;
    gemmepi_matmul_args of_product;
    gemmepi_linear_args of_layer;
    gemmepi_plan *plans[3] = {NULL, NULL, NULL}, *mine = NULL;
    int i;
    memset(&product, 0, sizeof product);
    memset(&layer, 0, sizeof layer);
    memset(&of_product, 0, sizeof of_product);
    memset(&of_layer, 0, sizeof of_layer);
    product.m = product.n = product.k = layer.m = layer.n = layer.k = 4;
    layer.flags = GEMMEPI_LINEAR_DA;
    CHECK(gemmepi_plan_matmul(here->context, &product, &plans[0]) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_linear(here->context, &layer, &plans[1]) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_linear_backward(here->context, &layer, &plans[2]) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    ACTIVATION;
    for (i = 0; i < 3; i++) {
        check_refused("run", gemmepi_run_elementwise(plans[i], &args, here->stream), GEMMEPI_INVALID_ARGUMENT,
                      "plan", NULL, "another kind");
        gemmepi_plan_destroy(plans[i]);
    }
    CHECK(gemmepi_plan_elementwise(here->context, &desc, &mine) == GEMMEPI_OK, "%s", gemmepi_last_error());
    check_refused("run", gemmepi_run_matmul(mine, &of_product, here->stream), GEMMEPI_INVALID_ARGUMENT,
                  "plan", "gemmepi_plan_elementwise", "another kind");
    check_refused("run", gemmepi_run_linear(mine, &of_layer, here->stream), GEMMEPI_INVALID_ARGUMENT, "plan",
                  "gemmepi_plan_elementwise", "another kind");
    check_refused("run", gemmepi_run_linear_backward(mine, &of_layer, here->stream), GEMMEPI_INVALID_ARGUMENT,
                  "plan", "gemmepi_plan_elementwise", "another kind");
    gemmepi_plan_destroy(mine);
    check_untouched("another kind");
}

static void calls_without_a_context_are_refused(void) {
    gemmepi_context *kept = here->context;
    int kind;
    for (kind = 1; kind <= GEMMEPI_OP_CAST; kind++) {
        gemmepi_status status;
        use_kind((gemmepi_operation)kind);
        here->context = NULL;
        status = at_once();
        check_refused("at once", status, GEMMEPI_INVALID_ARGUMENT, "context", "NULL", "context");
        status = short_call();
        here->context = kept;
        check_refused("short", status, GEMMEPI_INVALID_ARGUMENT, "context", "NULL", "context");
        check_untouched("context");
    }
}

static void an_operation_must_be_one(void) {
    REFUSED_STRUCT(ACTIVATION, "operation", "0", desc.operation = (gemmepi_operation)0);
    REFUSED_STRUCT(ACTIVATION, "operation", "9", desc.operation = (gemmepi_operation)9);
    REFUSED_STRUCT(ACTIVATION, "operation", "-1", desc.operation = (gemmepi_operation)-1);
}

static void tensors_that_are_needed_must_be_there(void) {
    REFUSED(ACTIVATION, "a", "NULL", desc.a = NULL);
    REFUSED(ACTIVATION, "y", "NULL", desc.y = NULL);
    REFUSED(ACTIVATION_BACKWARD, "a", "NULL", desc.a = NULL);
    REFUSED(ACTIVATION_BACKWARD, "dy", "NULL", desc.dy = NULL);
    REFUSED(ACTIVATION_BACKWARD, "da", "NULL", desc.da = NULL);
    REFUSED(GATED, "a", "NULL", desc.a = NULL);
    REFUSED(GATED, "y", "NULL", desc.y = NULL);
    REFUSED(GATED_BACKWARD, "a", "NULL", desc.a = NULL);
    REFUSED(GATED_BACKWARD, "dy", "NULL", desc.dy = NULL);
    REFUSED(GATED_BACKWARD, "output", NULL, desc.da = desc.db = NULL);
    REFUSED(SPLIT_BACKWARD, "da", "NULL", desc.da = NULL);
    REFUSED(LERP, "a", "NULL", desc.a = NULL);
    REFUSED(LERP, "b", "NULL", desc.b = NULL);
    REFUSED(LERP, "y", "NULL", desc.y = NULL);
    REFUSED(LERP_BACKWARD, "dy", "NULL", desc.dy = NULL);
    REFUSED(LERP_BACKWARD, "a", "NULL", desc.a = NULL);
    REFUSED(LERP_BACKWARD, "b", "NULL", desc.b = NULL);
    REFUSED(LERP_BACKWARD, "w", "NULL", desc.w = NULL);
    REFUSED(LERP_BACKWARD, "output", NULL, desc.a = desc.b = NULL; desc.da = desc.db = desc.dw = NULL);
    REFUSED(BIAS_GRAD, "a", "NULL", desc.a = NULL);
    REFUSED(BIAS_GRAD, "y", "NULL", desc.y = NULL);
    REFUSED(CAST, "a", "NULL", desc.a = NULL);
    REFUSED(CAST, "y", "NULL", desc.y = NULL);
}

static void tensors_without_a_use_are_refused(void) {
    REFUSED_STRUCT(ACTIVATION, "b", NULL, desc.b = &g[E_A]);
    REFUSED_STRUCT(ACTIVATION, "w", NULL, desc.w = &g[E_A]);
    REFUSED_STRUCT(ACTIVATION, "dy", NULL, desc.dy = &g[E_A]);
    REFUSED_STRUCT(ACTIVATION, "da", NULL, desc.da = &g[E_A]);
    REFUSED_STRUCT(ACTIVATION_BACKWARD, "y", NULL, desc.y = &g[E_A]);
    REFUSED_STRUCT(GATED, "w", NULL, desc.w = &g[E_A]);
    REFUSED_STRUCT(GATED_BACKWARD, "dw", NULL, desc.dw = &g[E_A]);
    REFUSED(SPLIT_BACKWARD, "db", "without", desc.db = &g[E_DA]);
    REFUSED_STRUCT(LERP, "dy", NULL, desc.dy = &g[E_A]);
    REFUSED_STRUCT(LERP_BACKWARD, "y", NULL, desc.y = &g[E_A]);
    REFUSED_STRUCT(LERP_BACKWARD, "a", "without", desc.dw = NULL; desc.b = NULL);
    REFUSED_STRUCT(LERP_BACKWARD, "b", "without", desc.dw = NULL; desc.a = NULL);
    REFUSED_STRUCT(BIAS_GRAD, "db", NULL, desc.db = &g[E_A]);
    REFUSED_STRUCT(CAST, "b", NULL, desc.b = &g[E_A]);
}

static void a_tensor_must_be_one(void) {
    REFUSED(ACTIVATION, "a.dtype", "7", g[E_A].dtype = GEMMEPI_I8);
    REFUSED(CAST, "a.dtype", "8", g[E_A].dtype = GEMMEPI_I32);
    REFUSED(CAST, "y.dtype", "99", g[E_Y].dtype = (gemmepi_dtype)99);
    REFUSED(GATED, "b.dtype", "-1", g[E_B].dtype = (gemmepi_dtype)-1);
    REFUSED(ACTIVATION, "a.rank", "-1", g[E_A].rank = -1);
    REFUSED(ACTIVATION, "y.rank", "9", g[E_Y].rank = 9);
    REFUSED(LERP, "w.rank", "1000000", g[E_W].rank = 1000000);
    REFUSED(ACTIVATION, "a.shape", "NULL", g[E_A].shape = NULL);
    REFUSED(ACTIVATION_BACKWARD, "dy.shape", "-6", SHAPE(DY)[0] = -6);
    REFUSED(ACTIVATION_BACKWARD, "da.shape", "-10", SHAPE(DA)[1] = -10);
    REFUSED(ACTIVATION, "a", "2^56", SHAPE(A)[0] = SHAPE(A)[1] = huge; STRIDE(A)[0] = STRIDE(A)[1] = 0);
    REFUSED(ACTIVATION, "a", "2^56", SHAPE(A)[0] = INT64_MAX; STRIDE(A)[0] = 0);
    REFUSED(ACTIVATION, "a", "2^56", STRIDE(A)[0] = (int64_t)1 << 57);
    REFUSED(ACTIVATION, "y", "2^56", STRIDE(Y)[1] = INT64_MIN);
    REFUSED(ACTIVATION, "a", "2^56", STRIDE(A)[0] = STRIDE(A)[1] = (int64_t)1 << 55);
}

static void offsets_and_sizes_of_buffers_are_looked_at(void) {
    REFUSED(ACTIVATION, "a.offset", "2", g[E_A].offset = 2);
    REFUSED(ACTIVATION, "y.offset", NULL, g[E_Y].offset = (size_t)1 << 57; g[E_Y].bytes = 0);
    REFUSED(ACTIVATION, "a.bytes", NULL, g[E_A].bytes -= 1);
    REFUSED(ACTIVATION, "y.bytes", NULL, g[E_Y].bytes -= 4);
    REFUSED(ACTIVATION, "y.bytes", "1", g[E_Y].bytes = 1);
    REFUSED(ACTIVATION, "a.bytes", NULL, g[E_A].offset = 4);
    REFUSED(ACTIVATION, "a.bytes", NULL, g[E_A].offset = g[E_A].bytes + 4);
    REFUSED(ACTIVATION, "a.bytes", NULL, STRIDE(A)[0] = -(N + 3));
    REFUSED(ACTIVATION, "a.bytes", NULL, STRIDE(A)[1] = -1; g[E_A].offset = 4 * (N - 2));
    REFUSED(GATED_BACKWARD, "db.bytes", NULL, g[E_DB].bytes -= 1);
    ACCEPTED(ACTIVATION, STRIDE(A)[1] = -1; g[E_A].offset = 4 * (N - 1));
    ACCEPTED(ACTIVATION, g[E_A].bytes = g[E_Y].bytes = 0);
    ACCEPTED(ACTIVATION, g[E_A].bytes = g[E_Y].bytes = SIZE_MAX);
}

static void shapes_must_go_together(void) {
    REFUSED(ACTIVATION, "a", "[6, 5]", SHAPE(A)[1] = 5);
    REFUSED(ACTIVATION, "a", "[2, 10]", SHAPE(A)[0] = 2);
    REFUSED(ACTIVATION_BACKWARD, "a", NULL, SHAPE(A)[1] = 5);
    REFUSED(ACTIVATION_BACKWARD, "da", NULL, SHAPE(DA)[1] = 5);
    REFUSED(GATED, "b", NULL, SHAPE(B)[0] = 3);
    REFUSED(LERP, "w", NULL, SHAPE(W)[0] = 2);
    REFUSED(LERP_BACKWARD, "dw", NULL, SHAPE(DW)[1] = 9);
    REFUSED(CAST, "a", NULL, SHAPE(A)[1] = 5);
    /* the output decides, it is not broadcast: so the input has too much */
    REFUSED(ACTIVATION, "a", NULL, SHAPE(Y)[0] = 1);
    REFUSED(ACTIVATION_BACKWARD, "a", NULL, SHAPE(DY)[0] = 1);
    REFUSED((use_rank(GEMMEPI_OP_ACTIVATION, 3)), "a", NULL, g[E_Y].rank = 2);
    REFUSED((use_rank(GEMMEPI_OP_LERP_BACKWARD, 3)), "dw", NULL, SHAPE(DW)[2] = 2);
    ACCEPTED(LERP, SHAPE(A)[0] = 1; SHAPE(B)[1] = 1; g[E_W].rank = 0);
    ACCEPTED(ACTIVATION, SHAPE(A)[0] = 1);
}

static void dtypes_must_go_together(void) {
    REFUSED(ACTIVATION, "y", "F16", g[E_Y].dtype = GEMMEPI_F16; g[E_Y].bytes = 0);
    REFUSED(GATED, "b", "BF16", g[E_B].dtype = GEMMEPI_BF16; g[E_B].bytes = 0);
    REFUSED(LERP, "w", "F64", g[E_W].dtype = GEMMEPI_F64; g[E_W].bytes = 0);
    REFUSED(ACTIVATION_BACKWARD, "da", "F64", g[E_DA].dtype = GEMMEPI_F64; g[E_DA].bytes = 0);
    REFUSED(BIAS_GRAD, "y", "F16", g[E_Y].dtype = GEMMEPI_F16);
    REFUSED(BIAS_GRAD, "y", "F64", g[E_Y].dtype = GEMMEPI_F64; g[E_Y].bytes = 0);
    REFUSED((use(call_good(GEMMEPI_OP_BIAS_GRAD, GEMMEPI_F64))), "y", "F32", g[E_Y].dtype = GEMMEPI_F32);
    REFUSED((use(call_good(GEMMEPI_OP_BIAS_GRAD, GEMMEPI_F16))), "y", "BF16", g[E_Y].dtype = GEMMEPI_BF16);
    REFUSED((use(call_good(GEMMEPI_OP_GATED_BACKWARD, GEMMEPI_F16))), "da", "F32",
            g[E_DA].dtype = GEMMEPI_F32;
            g[E_DA].bytes = 0);
    REFUSED(ACTIVATION, "a", "E4M3", g[E_A].dtype = g[E_Y].dtype = GEMMEPI_E4M3);
    REFUSED(LERP, "a", "E5M2", g[E_A].dtype = g[E_B].dtype = g[E_W].dtype = g[E_Y].dtype = GEMMEPI_E5M2);
    ACCEPTED((use_summed_weight(GEMMEPI_BF16)), g[E_DW].dtype = GEMMEPI_F32; g[E_DW].bytes = 0);
    ACCEPTED(ACTIVATION, g[E_A].dtype = GEMMEPI_DTYPE_DEFAULT);
}

static void activations_are_looked_at(void) {
    static const char hint[] = "did you leave desc uninitialised";
    int i, j;
    REFUSED(ACTIVATION, "desc.activation", "0x3", desc.activation = 3);
    REFUSED(GATED, "desc.activation", hint, desc.activation = 255);
    REFUSED(GATED, "desc.activation", hint, desc.activation = 0xcdcdcdcdcdcdcdcdull);
    REFUSED(ACTIVATION, "desc.activation", hint, desc.activation = UINT64_MAX);
    REFUSED(ACTIVATION, "desc.activation", hint, desc.activation |= 1ull << 63);
    REFUSED(ACTIVATION, "desc.activation", "gemmepi_matmul_desc.epilogue", desc.activation |= GEMMEPI_BIAS);
    REFUSED(ACTIVATION_BACKWARD, "desc.activation", "BACKWARD", desc.activation |= GEMMEPI_BACKWARD);
    REFUSED(ACTIVATION, "desc.activation", "GATE_FIRST", desc.activation |= GEMMEPI_GATE_FIRST);
    REFUSED(GATED, "desc.activation", "GATE_FIRST", desc.activation |= GEMMEPI_GATE_FIRST);
    REFUSED(SPLIT, "desc.activation", "GATED", desc.activation |= GEMMEPI_GATED);
    REFUSED(SPLIT, "desc.activation", "desc.flags", desc.activation |= GEMMEPI_ACCUMULATE);
    REFUSED(ACTIVATION, "desc.activation", "gemmepi_linear_desc.flags",
            desc.activation |= GEMMEPI_LINEAR_SAVED);
    REFUSED_STRUCT(LERP, "desc.activation", "LERP", desc.activation = GEMMEPI_RELU);
    REFUSED_STRUCT(CAST, "desc.activation", "CAST", desc.activation = GEMMEPI_GATE_FIRST);
    ACCEPTED(SPLIT, desc.activation |= GEMMEPI_GATE_FIRST);
    for (i = 0; i < ACTIVATION_COUNT; i++) {
        ACCEPTED(ACTIVATION, desc.activation = activation_codes[i]);
        for (j = 1; j < i; j++) /* two are none, nor a third */
            REFUSED(ACTIVATION, "desc.activation", "never two",
                    desc.activation = activation_codes[i] | activation_codes[j]);
    }
}

static void numbers_of_cublaslts_epilogues_are_no_activations(void) {
    static const struct {
        unsigned number;
        const char *name;
    } rows[] = {{1, "DEFAULT"}, {2, "RELU"},          {4, "BIAS"},       {6, "RELU_BIAS"},
                {32, "GELU"},   {36, "GELU_BIAS"},    {130, "RELU_AUX"}, {134, "RELU_AUX_BIAS"},
                {136, "DRELU"}, {152, "DRELU_BGRAD"}, {160, "GELU_AUX"}, {164, "GELU_AUX_BIAS"},
                {192, "DGELU"}, {208, "DGELU_BGRAD"}, {256, "BGRADA"},   {512, "BGRADB"}};
    char name[64], number[8];
    size_t i;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(name, sizeof name, "CUBLASLT_EPILOGUE_%s", rows[i].name);
        snprintf(number, sizeof number, "%u", rows[i].number);
        REFUSED(ACTIVATION, "desc.activation", name, desc.activation = rows[i].number);
        REFUSED(GATED, "desc.activation", number, desc.activation = rows[i].number);
    }
}

static void set_parameter(gemmepi_epilogue activation, double parameter) {
    desc.activation = activation;
    desc.has_parameter = 1;
    desc.activation_parameter = parameter;
}

static void parameters_are_looked_at(void) {
    static const double some[] = {0, 0.5, -0.0, 1};
    static const gemmepi_epilogue two[] = {GEMMEPI_LEAKY_RELU, GEMMEPI_ELU};
    int i, j;
    for (i = 0; i < ACTIVATION_COUNT; i++)
        for (j = 0; j < 4; j++) {
            gemmepi_epilogue code = activation_codes[i];
            if (activation_has_parameter(code))
                ACCEPTED(ACTIVATION, set_parameter(code, some[j]));
            else
                REFUSED(ACTIVATION, "desc.activation_parameter", activation_names[i],
                        set_parameter(code, some[j]));
        }
    for (i = 0; i < 2; i++) {
        REFUSED_STRUCT(ACTIVATION, "desc.has_parameter", "0.5", desc.activation = two[i];
                       desc.activation_parameter = 0.5);
        REFUSED(ACTIVATION, "desc.activation_parameter", "finite", set_parameter(two[i], INFINITY));
        REFUSED_STRUCT(ACTIVATION, "desc.activation_parameter", "3.4e38", set_parameter(two[i], 1e39));
        REFUSED_STRUCT(GATED, "desc.activation_parameter", "finite", set_parameter(two[i], NAN));
        REFUSED_STRUCT(ACTIVATION, "desc.has_parameter", "0", desc.activation = two[i];
                       desc.activation_parameter = NAN);
        REFUSED_STRUCT(ACTIVATION, "desc.has_parameter", "did you leave desc uninitialised",
                       set_parameter(two[i], 0.5);
                       desc.has_parameter = -1);
        REFUSED_STRUCT(GATED_BACKWARD, "desc.has_parameter", "2", set_parameter(two[i], 0.5);
                       desc.has_parameter = 2);
    }
    REFUSED_STRUCT(ACTIVATION, "desc.activation_parameter", "SILU", desc.activation_parameter = 0.5);
    REFUSED_STRUCT(CAST, "desc.activation_parameter", NULL, desc.activation_parameter = 1);
    REFUSED_STRUCT(CAST, "desc.activation_parameter", NULL, desc.has_parameter = 1);
    REFUSED_STRUCT(LERP, "desc.has_parameter", "3", desc.has_parameter = 3);
}

/* In a positional call NaN stands for the default, and 0 is a parameter. */
static void a_short_calls_parameter_is_nan_or_given(void) {
    ACTIVATION;
    point_tensors();
    check_refused("gemmepi_activation",
                  gemmepi_activation(here->context, GEMMEPI_SILU, 0, &g[E_A], &g[E_Y], here->stream),
                  GEMMEPI_INVALID_ARGUMENT, "NAN", "SILU", "0");
    check_untouched("a parameter of SILU");
    ACTIVATION_BACKWARD;
    point_tensors();
    check_refused("gemmepi_activation_backward",
                  gemmepi_activation_backward(here->context, GEMMEPI_RELU, 0, &g[E_A], &g[E_DY], &g[E_DA],
                                              here->stream),
                  GEMMEPI_INVALID_ARGUMENT, "NAN", "RELU", "0");
    check_untouched("a parameter of RELU");
}

static void flags_go_with_their_operations(void) {
    REFUSED_STRUCT(ACTIVATION, "desc.flags", "ACCUMULATE", desc.flags = GEMMEPI_ACCUMULATE);
    REFUSED_STRUCT(CAST, "desc.flags", "ACCUMULATE", desc.flags = GEMMEPI_ACCUMULATE);
    REFUSED_STRUCT(BIAS_GRAD, "desc.flags", "CAST_SCALE", desc.flags = GEMMEPI_CAST_SCALE);
    REFUSED_STRUCT(GATED, "desc.flags", "CAST_AMAX", desc.flags = GEMMEPI_CAST_AMAX);
    REFUSED_STRUCT(ACTIVATION, "axis", "1", desc.axis = 1);
    REFUSED(GATED, "axis", "1", desc.axis = 1);
    REFUSED_STRUCT(CAST, "axis", "-1", desc.axis = -1);
    REFUSED_STRUCT(ACTIVATION, "alignment", "3", desc.alignment = 3);
    REFUSED_STRUCT(ACTIVATION, "alignment", "512", desc.alignment = 512);
}

/* Each flag of the header belongs to one field, which the sentence names. */
static void flags_of_other_fields_are_sent_there(void) {
    static const struct {
        uint64_t flag;
        const char *name, *field;
    } rows[] = {{GEMMEPI_BIAS, "BIAS", "gemmepi_matmul_desc.epilogue"},
                {GEMMEPI_BGRAD_B, "BGRAD_B", "gemmepi_matmul_desc.epilogue"},
                {GEMMEPI_ACCUMULATE_BIAS_GRAD, "ACCUMULATE_BIAS_GRAD", "gemmepi_matmul_desc.epilogue"},
                {GEMMEPI_GATE_FIRST, "GATE_FIRST", "desc.activation"},
                {GEMMEPI_RELAXED, "RELAXED", "gemmepi_matmul_desc.flags"},
                {GEMMEPI_AMAX_D, "AMAX_D", "gemmepi_matmul_desc.flags"},
                {GEMMEPI_LINEAR_DA, "LINEAR_DA", "gemmepi_linear_desc.flags"},
                {GEMMEPI_ACCUMULATE_DB, "ACCUMULATE_DB", "gemmepi_linear_desc.flags"}};
    size_t i;
    int bit;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        REFUSED_STRUCT(CAST, "desc.flags", rows[i].name, desc.flags = rows[i].flag);
        REFUSED_STRUCT(BIAS_GRAD, rows[i].name, rows[i].field, desc.flags = rows[i].flag);
    }
    for (bit = 0; bit < 64; bit++)
        if (!(1ull << bit &
              (GEMMEPI_CAST_SCALE | GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX | GEMMEPI_CAST_K_IS_ROWS)))
            REFUSED_STRUCT(CAST, "desc.flags", NULL, desc.flags |= 1ull << bit);
    REFUSED_STRUCT(CAST, "desc.flags", "did you leave desc uninitialised", desc.flags = 1);
    REFUSED_STRUCT(ACTIVATION, "desc.flags", "did you leave desc uninitialised",
                   desc.flags = 0xccccccccccccccccull);
    REFUSED_STRUCT(ACTIVATION, "desc.flags", "did you leave desc uninitialised", desc.flags = UINT64_MAX);
}

/* Stack memory that was never written, in one field or all that are no pointers. */
static void values_of_garbage_get_a_hint(void) {
    static const char hint[] = "did you leave desc uninitialised";
    const int garbage = -858993460;
    REFUSED_STRUCT(ACTIVATION, hint, NULL, memset(&desc, 0xcd, offsetof(gemmepi_elementwise_desc, a)));
    REFUSED_STRUCT(ACTIVATION, hint, NULL, memset(&desc, 0xff, offsetof(gemmepi_elementwise_desc, a)));
    REFUSED_STRUCT(ACTIVATION, "desc.operation", hint, desc.operation = (gemmepi_operation)garbage);
    REFUSED_STRUCT(ACTIVATION, "desc.has_parameter", hint, desc.has_parameter = garbage);
    REFUSED_STRUCT(ACTIVATION, "desc.activation", hint, desc.activation = 0xcdcdcdcdcdcdcdcdull);
    REFUSED_STRUCT(ACTIVATION, "desc.flags", hint, desc.flags = 0xcdcdcdcdcdcdcdcdull);
    REFUSED_STRUCT(ACTIVATION, "scale_mode", NULL, desc.scale_mode = (gemmepi_scale_mode)garbage);
    REFUSED_STRUCT(ACTIVATION, "axis", NULL, desc.axis = garbage);
    REFUSED_STRUCT(ACTIVATION, "alignment", NULL, desc.alignment = (size_t)garbage);
}

static void scales_of_casts_are_looked_at(void) {
    REFUSED(CAST, "scale_mode", "5", desc.scale_mode = (gemmepi_scale_mode)5);
    REFUSED(CAST, "scale_mode", "-1", desc.scale_mode = (gemmepi_scale_mode)-1);
    REFUSED(CAST, "scale_mode", "1", desc.scale_mode = GEMMEPI_SCALE_TENSOR);
    REFUSED_STRUCT(ACTIVATION, "scale_mode", "2", desc.scale_mode = GEMMEPI_SCALE_OUTER);
    REFUSED((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE)), "CAST_Y_SCALE", NULL,
            desc.flags |= GEMMEPI_CAST_Y_SCALE;
            args.y_scale = (float *)(uintptr_t)args.scale);
    REFUSED((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_TENSOR, GEMMEPI_CAST_SCALE)), "CAST_K_IS_ROWS", NULL,
            desc.flags |= GEMMEPI_CAST_K_IS_ROWS);
    REFUSED((use_cast(GEMMEPI_F16, GEMMEPI_SCALE_NONE, GEMMEPI_CAST_AMAX)), "CAST_Y_SCALE", "F16",
            desc.flags |= GEMMEPI_CAST_Y_SCALE;
            args.y_scale = (float *)args.amax);
    REFUSED((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE)), "CAST_K_IS_ROWS", "1",
            desc.flags |= GEMMEPI_CAST_K_IS_ROWS;
            g[E_A].rank = g[E_Y].rank = 1; STRIDE(A)[0] = STRIDE(Y)[0] = 1);
    ACCEPTED((use_cast(GEMMEPI_BF16, GEMMEPI_SCALE_BLOCK_128, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX)),
             (void)0);
}

static void numbers_of_casts_are_given_as_flags_say(void) {
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE)), INVALID_ARGUMENT, "scale",
                 "NULL", args.scale = NULL);
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_Y_SCALE)), INVALID_ARGUMENT,
                 "y_scale", "NULL", args.y_scale = NULL);
    REFUSED_STRUCT_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_AMAX)), INVALID_ARGUMENT,
                        "amax", "NULL", args.amax = NULL);
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_AMAX)), INVALID_ARGUMENT, "scale",
                 "given", args.scale = (const float *)args.amax);
    REFUSED_STRUCT_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE)), INVALID_ARGUMENT,
                        "y_scale", "given", args.y_scale = (float *)args.y);
    REFUSED_STRUCT_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_NONE, 0)), INVALID_ARGUMENT, "amax", "given",
                        args.amax = args.y);
    REFUSED_STRUCT_ARGS(ACTIVATION, INVALID_ARGUMENT, "scale", "given", args.scale = (const float *)args.a);
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE)), MISALIGNED, "scale", NULL,
                 args.scale = (const float *)(const void *)((const char *)args.scale + 2));
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_AMAX)), MISALIGNED, "amax", NULL,
                 args.amax = (char *)args.amax + 1);
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_AMAX)), INVALID_ARGUMENT, "amax",
                 "overlaps", args.amax = args.y);
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_AMAX)), INVALID_ARGUMENT, "amax",
                 "overlaps", args.amax = (char *)(uintptr_t)args.a + 8);
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE)), INVALID_ARGUMENT, "scale",
                 "overlaps", args.scale = (const float *)args.y);
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX)),
                 INVALID_ARGUMENT, "y_scale", "overlaps", args.amax = args.y_scale + M - 1);
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_TENSOR, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX)),
                 INVALID_ARGUMENT, "scale", "overlaps", args.scale = (const float *)args.amax);
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX)),
                 INVALID_ARGUMENT, "scale", "overlaps", args.scale = (const float *)args.amax);
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX)),
                 INVALID_ARGUMENT, "scale", "overlaps",
                 args.scale = (const float *)(const void *)((const char *)args.amax + 4 * (M - 1)));
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX)),
                 INVALID_ARGUMENT, "scale", "overlaps",
                 args.scale = (const float *)(const void *)((const char *)args.amax - 4 * (M - 1)));
    ACCEPTED((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX)),
             args.amax = (char *)(uintptr_t)args.scale + 4 * M);
    /* a line of blocks' scales is four numbers, whatever it needs */
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_BLOCK_128, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX)),
                 INVALID_ARGUMENT, "scale", "overlaps", args.amax = (char *)(uintptr_t)args.scale + 4 * 3);
    ACCEPTED((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_BLOCK_128, GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX)),
             args.amax = (char *)(uintptr_t)args.scale + 4 * 4);
}

#define TURNED  use_turned(GEMMEPI_E4M3, GEMMEPI_SCALE_TENSOR, GEMMEPI_CAST_SCALE)
#define VECTORS use_turned(GEMMEPI_E4M3, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_CAST_Y_SCALE)

static void both_layouts_are_looked_at(void) {
    ACCEPTED(TURNED, (void)0);
    ACCEPTED(VECTORS, (void)0);
    REFUSED(TURNED, "y_transposed", "shape", SHAPE(TURNED)[0] = M; SHAPE(TURNED)[1] = N);
    REFUSED(TURNED, "y_transposed", "shape", g[E_TURNED].rank = 1);
    REFUSED(TURNED, "y_transposed", "1", g[E_A].rank = g[E_Y].rank = g[E_TURNED].rank = 1;
            STRIDE(A)[0] = STRIDE(Y)[0] = 1);
    REFUSED(TURNED, "y_transposed", "same place", STRIDE(TURNED)[0] = 0);
    REFUSED((use_turned(GEMMEPI_BF16, GEMMEPI_SCALE_TENSOR, GEMMEPI_CAST_SCALE)), "y_transposed", "BF16",
            (void)0);
    REFUSED(TURNED, "y_transposed", "E5M2", g[E_TURNED].dtype = GEMMEPI_E5M2);
    REFUSED((use_turned(GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_CAST_Y_SCALE)), "y_transposed", "OUTER",
            (void)0);
    REFUSED((use_turned(GEMMEPI_E4M3, GEMMEPI_SCALE_BLOCK_128, GEMMEPI_CAST_SCALE)), "y_transposed",
            "CAST_Y_SCALE", (void)0);
    REFUSED_STRUCT(ACTIVATION, "y_transposed", "ACTIVATION", desc.y_transposed = &g[E_Y]);
    REFUSED_ARGS(TURNED, INVALID_ARGUMENT, "y_transposed", "NULL", args.y_transposed = NULL);
    REFUSED_ARGS(TURNED, INVALID_ARGUMENT, "y", "overlaps", args.y_transposed = args.y);
    REFUSED_ARGS(TURNED, INVALID_ARGUMENT, "y_transposed", "overlaps",
                 args.y_transposed = (void *)(uintptr_t)args.a);
    REFUSED_ARGS(TURNED, INVALID_ARGUMENT, "scale", "overlaps",
                 args.scale = (const float *)args.y_transposed);
    REFUSED_ARGS(TURNED, INVALID_ARGUMENT, "y_transposed_scale", "given",
                 args.y_transposed_scale = (float *)args.y);
    REFUSED_STRUCT_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_NONE, 0)), INVALID_ARGUMENT, "y_transposed",
                        "given", args.y_transposed = args.y);
    REFUSED_STRUCT_ARGS(ACTIVATION, INVALID_ARGUMENT, "y_transposed_scale", "given",
                        args.y_transposed_scale = (float *)(uintptr_t)args.a);
    REFUSED_ARGS(VECTORS, INVALID_ARGUMENT, "y_transposed_scale", "NULL", args.y_transposed_scale = NULL);
    REFUSED_ARGS(VECTORS, MISALIGNED, "y_transposed_scale", "4",
                 args.y_transposed_scale = (float *)(void *)((char *)args.y_transposed_scale + 2));
    REFUSED_ARGS(VECTORS, INVALID_ARGUMENT, "y_transposed_scale", "y_scale",
                 args.y_transposed_scale = args.y_scale);
    REFUSED_ARGS(VECTORS, INVALID_ARGUMENT, "y_transposed_scale", "overlaps",
                 args.y_transposed_scale = (float *)args.y_transposed);
    REFUSED_ARGS(VECTORS, INVALID_ARGUMENT, "y_transposed_scale", "overlaps",
                 args.y_transposed_scale = (float *)(uintptr_t)args.a);
    REFUSED_ARGS(
        (use_turned(GEMMEPI_E4M3, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX)),
        INVALID_ARGUMENT, "y_transposed_scale", "amax", args.y_transposed_scale = (float *)args.amax);
}

/* A desc that was never filled in, as debuggers and allocators leave memory, is refused before a pointer of it is followed. */
static void a_desc_left_uninitialised_is_refused_by_the_call(void) {
    static const unsigned char fillings[] = {0xcd, 0xff, 0xaa, 0x55};
    gemmepi_elementwise_desc garbage;
    size_t i;
    for (i = 0; i < sizeof fillings; i++) {
        memset(&garbage, fillings[i], sizeof garbage);
        CHECK(gemmepi_elementwise(here->context, &garbage, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
                  strstr(gemmepi_last_error(), "= {0}") != NULL,
              "0x%x: %s", fillings[i], gemmepi_last_error());
    }
}

static void accumulate_of_a_short_call_is_0_or_1(void) {
    int64_t shape[2] = {2, 3}, columns[1] = {3};
    float a[6] = {1, 2, 3, 4, 5, 6}, y[3] = {0};
    gemmepi_tensor ta, ty;
    memset(&ta, 0, sizeof ta);
    ta.data = a, ta.rank = 2, ta.shape = shape;
    ty = ta;
    ty.data = y, ty.rank = 1, ty.shape = columns;
    CHECK(gemmepi_bias_grad(here->context, &ta, 1, 2, &ty, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "accumulate is 2") != NULL,
          "%s", gemmepi_last_error());
}

static void a_weight_without_lerp_is_refused(void) {
    int64_t shape[1] = {3};
    float data[3] = {1, 2, 3};
    gemmepi_elementwise_desc described;
    gemmepi_elementwise_args weighted;
    gemmepi_tensor tensor;
    memset(&described, 0, sizeof described);
    memset(&weighted, 0, sizeof weighted);
    memset(&tensor, 0, sizeof tensor);
    tensor.data = data, tensor.rank = 1, tensor.shape = shape;
    described.operation = GEMMEPI_OP_ACTIVATION;
    described.a = described.y = &tensor;
    weighted.weight = 0.5;
    CHECK(gemmepi_elementwise(here->context, &described, &weighted, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "args.weight is 0.5") != NULL,
          "%s", gemmepi_last_error());
}

static void a_weight_beside_weights_is_refused(void) {
    REFUSED_ARGS(LERP, INVALID_ARGUMENT, "weight", NULL, args.weight = 0.25);
    REFUSED_ARGS(LERP, INVALID_ARGUMENT, "weight", NULL, args.weight = NAN);
    REFUSED_ARGS(LERP_BACKWARD, INVALID_ARGUMENT, "weight", NULL, args.weight = -1e-300);
    ACCEPTED(LERP, args.weight = -0.0);
    ACCEPTED(LERP, desc.w = NULL; args.w = NULL; args.weight = 0.25);
    REFUSED_ARGS(LERP, INVALID_ARGUMENT, "weight", "3.4e38", desc.w = NULL; args.w = NULL;
                 args.weight = 1e39);
    ACCEPTED(LERP, desc.w = NULL; args.w = NULL; args.weight = INFINITY);
    ACCEPTED(LERP, desc.w = NULL; args.w = NULL; args.weight = NAN);
}

static void strides_that_nothing_uses_may_be_any(void) {
    ACCEPTED((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 1, 2)), STRIDE(A)[0] = INT64_MAX);
    ACCEPTED((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 1, 2)), STRIDE(A)[0] = INT64_MIN);
    ACCEPTED((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 1, 2)), STRIDE(Y)[0] = INT64_MAX);
    ACCEPTED((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 1, 2)), STRIDE(Y)[0] = INT64_MIN);
    ACCEPTED((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 2, 1)), STRIDE(Y)[1] = 0);
    ACCEPTED((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 0, 3)), STRIDE(A)[0] = INT64_MAX;
             STRIDE(A)[1] = INT64_MIN);
    ACCEPTED((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 3, 0)), STRIDE(Y)[0] = INT64_MAX;
             STRIDE(Y)[1] = INT64_MIN);
    ACCEPTED((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 3, 0)), STRIDE(Y)[0] = STRIDE(Y)[1] = 0);
    REFUSED((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 2, 2)), "a", NULL, STRIDE(A)[0] = INT64_MAX);
    REFUSED((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 2, 2)), "a", NULL, STRIDE(A)[0] = INT64_MIN);
}

static void an_output_must_have_a_place_for_each_element(void) {
    REFUSED(ACTIVATION, "y", "written", STRIDE(Y)[0] = 0);
    REFUSED(ACTIVATION, "y", "written", STRIDE(Y)[1] = 0);
    REFUSED(ACTIVATION, "y", "written", STRIDE(Y)[0] = STRIDE(Y)[1]);
    REFUSED(ACTIVATION, "y", "written", STRIDE(Y)[0] = N - 1);
    REFUSED(ACTIVATION_BACKWARD, "da", "written", STRIDE(DA)[0] = 3; STRIDE(DA)[1] = 2);
    REFUSED(SPLIT_BACKWARD, "da", "written", STRIDE(DA)[0] = 2 * N - 1);
    REFUSED(SPLIT_BACKWARD, "da", NULL, STRIDE(DA)[1] = 0);
    REFUSED(BIAS_GRAD, "y", "written", STRIDE(Y)[0] = 0);
    ACCEPTED(ACTIVATION, STRIDE(A)[0] = 0);
    ACCEPTED(ACTIVATION, STRIDE(A)[1] = 0);
    ACCEPTED(ACTIVATION, STRIDE(Y)[0] = N);
    ACCEPTED(ACTIVATION, STRIDE(Y)[0] = 1; STRIDE(Y)[1] = M);
}

static void bias_grad_keeps_one_axis(void) {
    REFUSED(BIAS_GRAD, "axis", "2", desc.axis = 2);
    REFUSED(BIAS_GRAD, "axis", "-3", desc.axis = -3);
    REFUSED(BIAS_GRAD, "axis", NULL, desc.axis = INT_MIN);
    REFUSED(BIAS_GRAD, "y", NULL, desc.axis = 0);
    REFUSED(BIAS_GRAD, "y", "[9]", SHAPE(Y)[0] = 9);
    REFUSED(BIAS_GRAD, "y", NULL, g[E_Y] = g[E_A]);
    REFUSED(BIAS_GRAD, "a", "rank", g[E_A].rank = 0);
}

static void a_split_takes_an_even_axis(void) {
    REFUSED(SPLIT, "axis", "2", desc.axis = 2);
    REFUSED(SPLIT, "axis", "-3", desc.axis = -3);
    REFUSED(SPLIT, "axis", NULL, desc.axis = INT_MAX);
    REFUSED(SPLIT, "a", "even", SHAPE(A)[1] = 2 * N - 1);
    REFUSED(SPLIT, "a", NULL, SHAPE(A)[1] = 2 * N - 2);
    REFUSED(SPLIT, "a", NULL, desc.axis = 0);
    REFUSED(SPLIT, "a", NULL, g[E_A].rank = 1);
    REFUSED(SPLIT, "a", "rank", g[E_A].rank = g[E_Y].rank = 0);
    REFUSED(SPLIT_BACKWARD, "da", NULL, SHAPE(DA)[1] = N);
    REFUSED(SPLIT_BACKWARD, "da", NULL, g[E_DA].rank = 1);
    REFUSED(SPLIT_BACKWARD, "da", NULL, SHAPE(DA)[1] = 1);
    ACCEPTED(SPLIT, desc.axis = -1);
}

static void data_must_be_there(void) {
    REFUSED_ARGS(ACTIVATION, INVALID_ARGUMENT, "a", "NULL", args.a = NULL);
    REFUSED_ARGS(ACTIVATION, INVALID_ARGUMENT, "y", "NULL", args.y = NULL);
    REFUSED_ARGS(GATED, INVALID_ARGUMENT, "b", "NULL", args.b = NULL);
    REFUSED_ARGS(LERP, INVALID_ARGUMENT, "w", "NULL", args.w = NULL);
    REFUSED_ARGS(GATED_BACKWARD, INVALID_ARGUMENT, "dy", "NULL", args.dy = NULL);
    REFUSED_ARGS(GATED_BACKWARD, INVALID_ARGUMENT, "db", "NULL", args.db = NULL);
    REFUSED_ARGS(LERP_BACKWARD, INVALID_ARGUMENT, "dw", "NULL", args.dw = NULL);
    REFUSED_STRUCT_ARGS(ACTIVATION, INVALID_ARGUMENT, "b", "given", args.b = args.a);
    REFUSED_STRUCT_ARGS(ACTIVATION, INVALID_ARGUMENT, "dw", "given", args.dw = args.y);
    REFUSED_STRUCT_ARGS(SPLIT, INVALID_ARGUMENT, "b", "given", args.b = args.a);
}

static void data_must_be_aligned_as_promised(void) {
    REFUSED_ARGS(ACTIVATION, MISALIGNED, "a", "element", args.a = (const char *)args.a + 2;
                 desc.alignment = 1);
    REFUSED_ARGS(ACTIVATION, MISALIGNED, "y", NULL, args.y = (char *)args.y + 1; desc.alignment = 1);
    REFUSED_RUN(ACTIVATION, MISALIGNED, "a", "16", args.a = (const char *)args.a + 4);
    REFUSED_RUN(GATED_BACKWARD, MISALIGNED, "db", "16", args.db = (char *)args.db + 8);
    REFUSED_STRUCT_ARGS(ACTIVATION, MISALIGNED, "y", "256", desc.alignment = 256;
                        args.y = (char *)args.y + 128);
    ACCEPTED(ACTIVATION, desc.alignment = 4; args.a = (const char *)args.a + 4);
    ACCEPTED(ACTIVATION, desc.alignment = 1; args.a = (const char *)args.a + 4);
    ACCEPTED(ACTIVATION, desc.alignment = 256);
    ACTIVATION;
    args.a = (const char *)args.a + 4;
    CHECK(at_once() == GEMMEPI_OK, "a call at once takes what there is: %s", gemmepi_last_error());
}

static void outputs_overlap_nothing_but_what_they_are_exactly(void) {
    REFUSED_ARGS(ACTIVATION, INVALID_ARGUMENT, "y", "overlaps", args.y = (char *)(uintptr_t)args.a + 16);
    REFUSED_ARGS(ACTIVATION, INVALID_ARGUMENT, "y", "overlaps", args.y = (char *)(uintptr_t)args.a - 16);
    REFUSED_ARGS(ACTIVATION, INVALID_ARGUMENT, "y", "overlaps", args.y = (void *)(uintptr_t)args.a;
                 STRIDE(Y)[0] = N);
    REFUSED_ARGS((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 8, 8)), INVALID_ARGUMENT, "y", "overlaps",
                 args.y = (void *)(uintptr_t)args.a;
                 STRIDE(Y)[0] = 1; STRIDE(Y)[1] = 8);
    REFUSED_ARGS(ACTIVATION, INVALID_ARGUMENT, "y", "overlaps", args.y = (void *)(uintptr_t)args.a;
                 STRIDE(Y)[1] = -1; g[E_Y].offset = 4 * (N - 1));
    /* its rows begin behind a, and go back into it */
    REFUSED_ARGS((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 8, 8)), INVALID_ARGUMENT, "y", "overlaps",
                 args.y = (char *)(uintptr_t)args.a + 256;
                 STRIDE(Y)[0] = 8; STRIDE(Y)[1] = -1; g[E_Y].bytes = 0);
    REFUSED_ARGS(use_cast_of_16_bits(), INVALID_ARGUMENT, "y", "overlaps",
                 args.y = (void *)(uintptr_t)args.a);
    REFUSED_ARGS(GATED_BACKWARD, INVALID_ARGUMENT, "da", "overlaps", args.da = args.db);
    REFUSED_ARGS(GATED_BACKWARD, INVALID_ARGUMENT, "da", "overlaps",
                 args.da = args.db = (void *)(uintptr_t)args.a);
    REFUSED_ARGS(LERP_BACKWARD, INVALID_ARGUMENT, "db", "overlaps", args.dw = args.db);
    REFUSED_ARGS(LERP, INVALID_ARGUMENT, "w", "overlaps", SHAPE(W)[0] = 1;
                 args.y = (void *)(uintptr_t)args.w);
    REFUSED_ARGS((use_cast(GEMMEPI_BF16, GEMMEPI_SCALE_NONE, 0)), INVALID_ARGUMENT, "y", "overlaps",
                 args.y = (void *)(uintptr_t)args.a);
    REFUSED_ARGS((use_summed_weight(GEMMEPI_F32)), INVALID_ARGUMENT, "dw", "overlaps",
                 args.dw = (void *)(uintptr_t)args.w);
    REFUSED_ARGS((use_summed_weight(GEMMEPI_F32)), INVALID_ARGUMENT, "dw", "overlaps",
                 args.dw = (void *)(uintptr_t)args.dy);
    REFUSED_ARGS((use_rank(GEMMEPI_OP_BIAS_GRAD, 1)), INVALID_ARGUMENT, "y", "overlaps",
                 args.y = (void *)(uintptr_t)args.a);
    REFUSED_ARGS(BIAS_GRAD, INVALID_ARGUMENT, "y", "overlaps", args.y = (void *)(uintptr_t)args.a);
    REFUSED_ARGS(SPLIT, INVALID_ARGUMENT, "y", "overlaps", args.y = (char *)(uintptr_t)args.a + 16;
                 STRIDE(Y)[0] = STRIDE(A)[0]; g[E_Y].bytes = 0);
    REFUSED_ARGS((use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_NONE, GEMMEPI_CAST_Y_SCALE)), INVALID_ARGUMENT, "y",
                 "overlaps", args.y = (void *)(uintptr_t)args.a);
}

static void what_shares_a_range_but_no_byte_is_accepted(void) {
    ACCEPTED(ACTIVATION, args.y = (void *)(uintptr_t)args.a);
    ACCEPTED(GATED_BACKWARD, args.da = (void *)(uintptr_t)args.a; args.db = (void *)(uintptr_t)args.b);
    ACCEPTED(SPLIT_BACKWARD, args.da = (void *)(uintptr_t)args.a);
    ACCEPTED(LERP, args.y = (void *)(uintptr_t)args.w);
    ACCEPTED(SPLIT, args.y = (void *)(uintptr_t)args.a; STRIDE(Y)[0] = STRIDE(A)[0]; g[E_Y].bytes = 0);
    /* halves of one element each */
    ACCEPTED((use_split_of(4, 1)), args.y = (void *)(uintptr_t)args.a; STRIDE(Y)[0] = 2);
    ACCEPTED((use_split_of(4, 1)), args.y = (void *)(uintptr_t)args.a; STRIDE(Y)[0] = STRIDE(Y)[1] = 2);
    ACCEPTED((use_split_of(4, 2)), args.y = (void *)(uintptr_t)args.a; STRIDE(Y)[0] = 4);
    /* even and odd elements of one buffer */
    ACCEPTED((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F32, 8, 8)), args.y = (void *)(uintptr_t)args.a;
             STRIDE(A)[0] = STRIDE(Y)[0] = 8; STRIDE(A)[1] = STRIDE(Y)[1] = 2; SHAPE(A)[1] = SHAPE(Y)[1] = 4;
             g[E_Y].offset = 4);
    /* left and right columns */
    ACCEPTED((use_dense(GEMMEPI_OP_ACTIVATION, GEMMEPI_F16, 8, 8)), args.y = (void *)(uintptr_t)args.a;
             SHAPE(A)[1] = SHAPE(Y)[1] = 4; g[E_Y].offset = 8);
    /* the outputs of one call in rows by turns */
    ACCEPTED(GATED_BACKWARD, args.db = args.da; STRIDE(DA)[0] = STRIDE(DB)[0] = 2 * N;
             g[E_DA].bytes = g[E_DB].bytes = 0;
             SHAPE(DA)[0] = SHAPE(DB)[0] = SHAPE(A)[0] = SHAPE(B)[0] = SHAPE(DY)[0] = 3;
             g[E_DB].offset = 4 * N);
    /* inputs may be one another */
    ACCEPTED(LERP, args.b = args.a; args.w = (const char *)args.a + 16);
    /* an empty output lies nowhere */
    ACCEPTED(ACTIVATION, SHAPE(A)[0] = SHAPE(Y)[0] = 0; args.y = (char *)(uintptr_t)args.a + 16);
}

/* >>workspace, which sums need on a GPU */

static void workspace_is_looked_at(void) {
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    gemmepi_stream stream = NULL;
    call c;
    int64_t shape[] = {60000, 8};
    if (here->is_host)
        SKIP("the host needs none");
    c = call_plain(GEMMEPI_OP_BIAS_GRAD, GEMMEPI_F32, 2, shape);
    c.o.axis = 1;
    strided_set(&c.o.t[E_Y], GEMMEPI_F32, 1, &shape[1]);
    use(c);
    CHECK(gemmepi_plan_elementwise(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(details.workspace_size > 0, "a long sum takes no workspace");
    if (details.workspace_size > 0 &&
        test_device_reserve(here, &here->workspace, &here->workspace_size, details.workspace_size + 512)) {
        args.workspace = here->workspace;
        args.workspace_size = details.workspace_size - 1;
        check_refused("run", gemmepi_run_elementwise(plan, &args, here->stream), GEMMEPI_BUFFER_TOO_SMALL,
                      "args.workspace_size", NULL, "too small");
        args.workspace_size = details.workspace_size;
        args.workspace = (char *)here->workspace + 128;
        check_refused("run", gemmepi_run_elementwise(plan, &args, here->stream), GEMMEPI_MISALIGNED,
                      "args.workspace", "256", "misaligned");
        args.workspace = args.y;
        check_refused("run", gemmepi_run_elementwise(plan, &args, here->stream), GEMMEPI_INVALID_ARGUMENT,
                      "args.workspace", "overlaps", "overlaps y");
        args.workspace = NULL;
        check_refused("run", gemmepi_run_elementwise(plan, &args, here->stream), GEMMEPI_INVALID_ARGUMENT,
                      "args.workspace is NULL", "args.workspace_size", "a size without workspace");
        args.workspace_size = 0;
        CHECK(gemmepi_stream_create(here->context, &stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
        check_refused("run", gemmepi_run_elementwise(plan, &args, stream), GEMMEPI_BUFFER_TOO_SMALL,
                      "args.workspace", "NULL", "not prepared");
        CHECK(gemmepi_stream_destroy(here->context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
        check_untouched("workspace");
    }
    gemmepi_plan_destroy(plan);
}

/* A cast that finds one scale has what it needs of it there. */
static void workspace_of_a_cast_is_apart_from_its_numbers(void) {
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    if (here->is_host)
        SKIP("the host needs none");
    use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_TENSOR, GEMMEPI_CAST_Y_SCALE);
    CHECK(gemmepi_plan_elementwise(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(details.workspace_size > 0, "a cast that finds a scale takes no workspace");
    args.workspace = args.y_scale; /* a multiple of 256, as all places of call_place */
    args.workspace_size = details.workspace_size;
    if (details.workspace_size > 0) {
        check_refused("run", gemmepi_run_elementwise(plan, &args, here->stream), GEMMEPI_INVALID_ARGUMENT,
                      "args.workspace", "y_scale", "contains y_scale");
        check_untouched("workspace");
    }
    gemmepi_plan_destroy(plan);
    use_cast(GEMMEPI_E4M3, GEMMEPI_SCALE_TENSOR, GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX);
    CHECK(gemmepi_plan_elementwise(here->context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    args.workspace = args.amax;
    args.workspace_size = details.workspace_size;
    if (details.workspace_size > 0) {
        check_refused("run", gemmepi_run_elementwise(plan, &args, here->stream), GEMMEPI_INVALID_ARGUMENT,
                      "args.workspace", "amax", "contains amax");
        check_untouched("workspace");
    }
    gemmepi_plan_destroy(plan);
}

int main(void) {
    test_device devices[2];
    int opened = test_devices_open(devices), i;
    for (i = 0; i < opened; i++) {
        here = devices + i;
        printf("on %s:\n", here->name);
        RUN(null_is_refused_wherever_something_is_needed);
        RUN(a_plan_of_another_kind_is_refused);
        RUN(calls_without_a_context_are_refused);
        RUN(an_operation_must_be_one);
        RUN(tensors_that_are_needed_must_be_there);
        RUN(tensors_without_a_use_are_refused);
        RUN(a_tensor_must_be_one);
        RUN(offsets_and_sizes_of_buffers_are_looked_at);
        RUN(shapes_must_go_together);
        RUN(dtypes_must_go_together);
        RUN(activations_are_looked_at);
        RUN(numbers_of_cublaslts_epilogues_are_no_activations);
        RUN(parameters_are_looked_at);
        RUN(a_short_calls_parameter_is_nan_or_given);
        RUN(flags_go_with_their_operations);
        RUN(flags_of_other_fields_are_sent_there);
        RUN(a_desc_left_uninitialised_is_refused_by_the_call);
        RUN(accumulate_of_a_short_call_is_0_or_1);
        RUN(values_of_garbage_get_a_hint);
        RUN(scales_of_casts_are_looked_at);
        RUN(numbers_of_casts_are_given_as_flags_say);
        RUN(both_layouts_are_looked_at);
        RUN(a_weight_without_lerp_is_refused);
        RUN(a_weight_beside_weights_is_refused);
        RUN(strides_that_nothing_uses_may_be_any);
        RUN(an_output_must_have_a_place_for_each_element);
        RUN(bias_grad_keeps_one_axis);
        RUN(a_split_takes_an_even_axis);
        RUN(data_must_be_there);
        RUN(data_must_be_aligned_as_promised);
        RUN(outputs_overlap_nothing_but_what_they_are_exactly);
        RUN(what_shares_a_range_but_no_byte_is_accepted);
        RUN(workspace_is_looked_at);
        RUN(workspace_of_a_cast_is_apart_from_its_numbers);
        image_free(&placed);
        test_device_close(here);
    }
    return test_finish() || opened == 0;
}
