/* What the host does in rare cases, by public calls. */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.in.h"

#include "activations.h"
#include "test.h"

#include <math.h>

static gemmepi_context *host;

static void open_host(void) {
    gemmepi_config config;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    CHECK(gemmepi_create(&config, &host) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static void close_host(void) {
    gemmepi_destroy(host);
    host = NULL;
}

static gemmepi_matmul_desc product(gemmepi_dtype dtype, int64_t m, int64_t n, int64_t k,
                                   gemmepi_epilogue epilogue) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = m, desc.n = n, desc.k = k, desc.batch = 1;
    desc.a.dtype = dtype;
    desc.alignment = 4;
    desc.epilogue = epilogue;
    return desc;
}

/* >>what is left open in a desc */

/* Of k = 0 and beta 1: C is the pre-activation, whose halves change places as dY is 1. Its lines are D's, padding included. */
static void c_lies_as_d_does_where_a_gates_gradient_has_its_shape(void) {
    enum { ROWS = 3, COLUMNS = 4, LD = 7 };
    float c[ROWS * LD], d[ROWS * LD], dy[ROWS * COLUMNS / 2];
    double one = 1;
    int order, i, j;
    open_host();
    for (order = 0; order < 2; order++) {
        gemmepi_matmul_desc desc =
            product(GEMMEPI_F32, ROWS, COLUMNS, 0,
                    GEMMEPI_NONE | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM);
        gemmepi_matmul_args args;
        memset(&args, 0, sizeof args);
        if (order) { /* the same memory, its axes exchanged */
            desc.order = GEMMEPI_COLUMN_MAJOR;
            desc.m = COLUMNS, desc.n = ROWS;
        }
        desc.d.ld = LD;
        for (i = 0; i < ROWS * LD; i++) {
            c[i] = i % LD < COLUMNS ? (float)i + 1 : NAN;
            d[i] = -1;
        }
        for (i = 0; i < ROWS * COLUMNS / 2; i++)
            dy[i] = 1;
        args.c = c, args.d = d, args.aux = dy, args.beta = &one;
        CHECK(gemmepi_matmul(host, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        for (i = 0; i < ROWS; i++)
            for (j = 0; j < LD; j++) {
                float expected = j < COLUMNS ? c[i * LD + (j + COLUMNS / 2) % COLUMNS] : -1;
                CHECK(d[i * LD + j] == expected, "order %d: [%d, %d] is %g, not %g", order, i, j,
                      (double)d[i * LD + j], (double)expected);
            }
    }
    close_host();
}

/* >>types */

/* The type with at least the exponents and the bits of both, the smallest such: of I8 7 bits, which BF16 holds. */
static gemmepi_dtype holds_both(gemmepi_dtype x, gemmepi_dtype y) {
    static const struct {
        gemmepi_dtype dtype;
        int exponent, bits;
    } types[] = {{GEMMEPI_I8, 3, 7},   {GEMMEPI_E4M3, 4, 4}, {GEMMEPI_E5M2, 5, 3},
                 {GEMMEPI_F16, 5, 11}, {GEMMEPI_BF16, 8, 8}, {GEMMEPI_F32, 8, 24}};
    int exponent = 0, bits = 0, i;
    if (x == y && x != GEMMEPI_E4M3 && x != GEMMEPI_E5M2)
        return x;
    for (i = 0; i < 6; i++)
        if (types[i].dtype == x || types[i].dtype == y) {
            exponent = types[i].exponent > exponent ? types[i].exponent : exponent;
            bits = types[i].bits > bits ? types[i].bits : bits;
        }
    for (i = 3; i < 5; i++)
        if (types[i].exponent >= exponent && types[i].bits >= bits)
            return types[i].dtype;
    return GEMMEPI_F32;
}

static void operands_of_two_types_have_the_smallest_that_holds_both(void) {
    static const gemmepi_dtype types[] = {GEMMEPI_F32,  GEMMEPI_F16,  GEMMEPI_BF16,
                                          GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};
    int i, j;
    open_host();
    for (i = 0; i < 6; i++)
        for (j = 0; j < 6; j++) {
            gemmepi_matmul_desc desc = product(types[i], 1, 1, 1, GEMMEPI_NONE);
            gemmepi_plan *plan = NULL;
            gemmepi_dtype both = holds_both(types[i], types[j]);
            CHECK(gpi__common_dtype(types[i], types[j]) == (int)both, "%d with %d: %d, not %d", (int)types[i],
                  (int)types[j], gpi__common_dtype(types[i], types[j]), (int)both);
            desc.b.dtype = types[j]; /* TF32 goes where that is F32, whatever the operands are */
            desc.d.dtype = GEMMEPI_F32;
            desc.compute = GEMMEPI_COMPUTE_TF32;
            CHECK((gemmepi_plan_matmul(host, &desc, &plan) == GEMMEPI_OK) == (both == GEMMEPI_F32),
                  "TF32 of %d with %d", (int)types[i], (int)types[j]);
            gemmepi_plan_destroy(plan);
        }
    close_host();
}

/* Of 129 rows and 257 of k: two lines of three numbers, four apart; an item's begin 16 numbers after the last one's. */
static void scales_of_blocks_reach_to_the_last_number_of_the_last_item(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_E4M3, 129, 128, 257, GEMMEPI_NONE);
    gemmepi_epilogue_needs needs;
    desc.batch = 3;
    desc.a.batch_stride = 129 * 257;
    desc.d.batch_stride = 129 * 128;
    desc.a.scale.mode = desc.b.scale.mode = GEMMEPI_SCALE_BLOCK_128;
    desc.a.scale.batch_stride = desc.b.scale.batch_stride = 16;
    CHECK(gemmepi_epilogue_info(&desc, &needs) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(needs.scale_a_bytes == 4 * (2 * 16 + 4 + 3), "A: %d bytes", (int)needs.scale_a_bytes);
    CHECK(needs.scale_b_bytes == 4 * (2 * 16 + 3), "B: %d bytes", (int)needs.scale_b_bytes);
}

/* >>gates */

/* HARDSWISH' is (2 x + 3) / 6 near 2.9, above 1: dy value, which is subnormal, may not be rounded before. */
static void a_gates_gradient_is_right_where_dy_value_is_subnormal(void) {
    enum { COUNT = 2000 };
    static double a[COUNT], b[COUNT], dy[COUNT], da[COUNT], db[COUNT];
    int64_t shape[1] = {COUNT};
    gemmepi_elementwise_desc desc;
    gemmepi_tensor t[5];
    double *data[5];
    int i;
    data[0] = a, data[1] = b, data[2] = dy, data[3] = da, data[4] = db;
    memset(t, 0, sizeof t);
    for (i = 0; i < 5; i++) {
        t[i].data = data[i];
        t[i].dtype = GEMMEPI_F64;
        t[i].rank = 1;
        t[i].shape = shape;
    }
    for (i = 0; i < COUNT; i++) {
        a[i] = ldexp(1 + i * 0.00037, -540 - i % 7);
        dy[i] = ldexp(1 + (i * 7919 % COUNT) * 0.00043, -525) * (i % 3 ? 1 : -1);
        b[i] = 2.5 + i % 100 * 0.0049;
    }
    open_host();
    memset(&desc, 0, sizeof desc);
    desc.operation = GEMMEPI_OP_GATED_BACKWARD;
    desc.activation = GEMMEPI_HARDSWISH;
    desc.a = &t[0], desc.b = &t[1], desc.dy = &t[2], desc.da = &t[3], desc.db = &t[4];
    CHECK(gemmepi_elementwise(host, &desc, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < COUNT; i++) {
        long double exact = (long double)dy[i] * a[i] * (2 * (long double)b[i] + 3) / 6;
        long double off = fabsl((long double)db[i] - exact) / ldexpl(1, -1074);
        CHECK(off <= 0.51L, "%d: %g, not %Lg: %.3Lf smallest subnormals off", i, db[i], exact, off);
    }
    close_host();
}

/* >>memory and streams */

static int refused(gemmepi_status status, const char *sentence_has) {
    return status == GEMMEPI_INVALID_ARGUMENT && strstr(gemmepi_last_error(), sentence_has) != NULL;
}

static void memory_that_was_not_given_is_not_freed(void) {
    void *first = NULL, *second = NULL;
    char own[512];
    open_host();
    CHECK(gemmepi_alloc(host, 1000, &first) == GEMMEPI_OK && gemmepi_alloc(host, 1, &second) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    CHECK(refused(gemmepi_free(host, own + 256), "gemmepi_alloc"), "%s", gemmepi_last_error());
    CHECK(refused(gemmepi_free(host, (char *)first + 256), "gemmepi_alloc"), "%s", gemmepi_last_error());
    CHECK(gemmepi_free(host, first) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(refused(gemmepi_free(host, first), "free already"), "%s", gemmepi_last_error());
    CHECK(gemmepi_free(host, second) == GEMMEPI_OK && gemmepi_free(host, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    close_host();
}

static int is_too_small(gemmepi_status status, const char *name, int left) {
    char says[64];
    snprintf(says, sizeof says, "ends after %d bytes", left);
    return status == GEMMEPI_BUFFER_TOO_SMALL && strstr(gemmepi_last_error(), name) &&
           strstr(gemmepi_last_error(), says);
}

static void copies_beyond_the_end_of_memory_are_refused(void) {
    char own[3000], *memory = NULL, *others[20];
    void *pointer = NULL;
    int i;
    open_host();
    memset(own, 7, sizeof own);
    for (i = 0; i < 20; i++, pointer = NULL) { /* what is around it changes nothing */
        CHECK(gemmepi_alloc(host, 100, &pointer) == GEMMEPI_OK, "%s", gemmepi_last_error());
        others[i] = (char *)pointer;
    }
    memory = others[11];
    CHECK(is_too_small(gemmepi_upload(host, memory, own, 3000, NULL), "device is", 100), "%s",
          gemmepi_last_error());
    CHECK(is_too_small(gemmepi_upload(host, memory + 60, own, 41, NULL), "device is", 40), "%s",
          gemmepi_last_error());
    CHECK(is_too_small(gemmepi_download(host, own, memory + 99, 2, NULL), "device is", 1), "%s",
          gemmepi_last_error());
    CHECK(is_too_small(gemmepi_upload(host, memory + 100, own, 1, NULL), "device is", 0), "%s",
          gemmepi_last_error());
    for (i = 1; i <= 8; i++)
        CHECK(gemmepi_upload(host, memory - i, own, 1, NULL) == GEMMEPI_BUFFER_TOO_SMALL &&
                  strstr(gemmepi_last_error(), "bytes before the memory that was allocated there"),
              "%d bytes before: %s", i, gemmepi_last_error());
    CHECK(gemmepi_upload(host, memory, own, 100, NULL) == GEMMEPI_OK &&
              gemmepi_upload(host, memory + 60, own, 40, NULL) == GEMMEPI_OK &&
              gemmepi_download(host, own, memory + 99, 1, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (i = 0; i < 20; i++)
        CHECK(gemmepi_free(host, others[(i * 7) % 20]) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_upload(host, own + 1, own + 2, 2000, NULL) == GEMMEPI_OK, "own memory: %s",
          gemmepi_last_error());
    close_host();
}

static void tensors_beyond_the_end_of_memory_are_refused(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_F32, 4, 4, 4, GEMMEPI_BIAS);
    gemmepi_matmul_args args;
    const void **fields[3];
    void *of[4], *small = NULL;
    float values[16] = {1};
    const double zero = 0;
    int i;
    open_host();
    memset(&args, 0, sizeof args);
    for (i = 0; i < 4; i++)
        CHECK(gemmepi_alloc_from(host, values, i == 3 ? 16 : 64, &of[i]) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
    args.a = of[0], args.b = of[1], args.d = of[2], args.bias = of[3];
    CHECK(gemmepi_matmul(host, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_alloc(host, 15, &small) == GEMMEPI_OK, "%s", gemmepi_last_error());
    fields[0] = &args.a, fields[1] = &args.b, fields[2] = &args.bias;
    for (i = 0; i < 3; i++) {
        static const char *const names[] = {"args.a is", "args.b is", "args.bias is"};
        const void *before = *fields[i];
        *fields[i] = small;
        CHECK(is_too_small(gemmepi_matmul(host, &desc, &args, NULL), names[i], 15), "%s",
              gemmepi_last_error());
        *fields[i] = before;
    }
    args.d = (char *)of[2] + 4;
    CHECK(is_too_small(gemmepi_matmul(host, &desc, &args, NULL), "args.d is", 60), "%s",
          gemmepi_last_error());
    args.d = small;
    args.c = small, args.beta = &zero; /* is not read */
    CHECK(is_too_small(gemmepi_matmul(host, &desc, &args, NULL), "args.d is", 15), "%s",
          gemmepi_last_error());
    args.d = of[2];
    CHECK(gemmepi_matmul(host, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_free(host, small) == GEMMEPI_OK, "%s", gemmepi_last_error());
    for (i = 0; i < 4; i++)
        CHECK(gemmepi_free(host, of[i]) == GEMMEPI_OK, "%s", gemmepi_last_error());
    close_host();
}

static void tensors_before_the_beginning_of_memory_are_refused(void) {
    const int64_t shape[2] = {4, 4}, reversed[2] = {-4, 1};
    gemmepi_elementwise_desc desc;
    gemmepi_tensor from, to;
    float values[16];
    void *memory = NULL;
    memset(values, 0, sizeof values);
    memset(&desc, 0, sizeof desc);
    memset(&from, 0, sizeof from);
    open_host();
    CHECK(gemmepi_alloc(host, 64, &memory) == GEMMEPI_OK, "%s", gemmepi_last_error());
    from.data = values, from.rank = 2, from.shape = shape;
    to = from;
    to.data = memory, to.stride = reversed; /* the last row's beginning is meant */
    desc.operation = GEMMEPI_OP_ACTIVATION, desc.activation = GEMMEPI_RELU;
    desc.a = &from, desc.y = &to;
    CHECK(gemmepi_elementwise(host, &desc, NULL, NULL) == GEMMEPI_BUFFER_TOO_SMALL &&
              strstr(gemmepi_last_error(), "begins 0 bytes before; 48 are needed there"),
          "%s", gemmepi_last_error());
    to.data = (float *)memory + 12;
    CHECK(gemmepi_elementwise(host, &desc, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    to.data = (float *)memory + 13;
    CHECK(is_too_small(gemmepi_elementwise(host, &desc, NULL, NULL), "y", 12), "%s", gemmepi_last_error());
    CHECK(gemmepi_free(host, memory) == GEMMEPI_OK, "%s", gemmepi_last_error());
    close_host();
}

static void memory_and_its_values_come_in_one_call(void) {
    float values[3] = {1, -2, 3}, back[3] = {0};
    void *memory = NULL;
    open_host();
    CHECK(gemmepi_alloc_from(host, values, sizeof values, &memory) == GEMMEPI_OK && memory &&
              gemmepi_download(host, back, memory, sizeof back, NULL) == GEMMEPI_OK &&
              memcmp(values, back, sizeof back) == 0,
          "%s", gemmepi_last_error());
    CHECK(gemmepi_free(host, memory) == GEMMEPI_OK, "%s", gemmepi_last_error());
    memory = values;
    CHECK(gemmepi_alloc_from(host, values, 0, &memory) == GEMMEPI_OK && !memory, "no bytes: %s",
          gemmepi_last_error());
    memory = values;
    CHECK(refused(gemmepi_alloc_from(host, NULL, 12, &memory), "host is NULL") && !memory, "%s",
          gemmepi_last_error());
    CHECK(refused(gemmepi_alloc_from(NULL, values, 12, &memory), "context is NULL"), "%s",
          gemmepi_last_error());
    close_host();
}

static char said[2048];

static void keep_log(void *user, gemmepi_log_level level, const char *message) {
    (void)user, (void)level;
    snprintf(said, sizeof said, "%s", message);
}

static void open_host_that_logs(void) {
    gemmepi_config config;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    config.log = keep_log;
    CHECK(gemmepi_create(&config, &host) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

/* Three groups of eight rows, A [8, 2] and three B [2, 2]. */
static gemmepi_status run_groups(const int32_t *ends) {
    static const float a[16] = {1}, b[12] = {1};
    gemmepi_grouped_desc desc;
    gemmepi_grouped_args args;
    float d[16];
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    desc.product = product(GEMMEPI_F32, 8, 2, 2, GEMMEPI_NONE);
    desc.product.batch = 0;
    desc.groups = 3;
    args.product.a = a, args.product.b = b, args.product.d = d;
    args.ends = ends;
    said[0] = 0;
    return gemmepi_grouped(host, &desc, &args, NULL);
}

static void positions_of_no_group_are_told(void) {
    static const struct {
        int32_t ends[3];
        const char *says;
    } cases[] = {{{2, 5, 8}, ""},
                 {{2, 3, 3}, "the last of args.ends is 3, and rows from there up to desc.product.m (8)"},
                 {{0, 2, 5}, "the last of args.ends is 5"}};
    size_t i;
    open_host_that_logs();
    for (i = 0; i < GPI__COUNT(cases); i++)
        CHECK(run_groups(cases[i].ends) == GEMMEPI_OK && strstr(said, cases[i].says) &&
                  (cases[i].says[0] || !strstr(said, "args.ends")),
              "%s; the log: %s", gemmepi_last_error(), said);
    close_host();
}

static void refused_ends_are_told_once(void) {
    static const int32_t ends[3] = {5, 2, 3};
    open_host_that_logs();
    CHECK(run_groups(ends) == GEMMEPI_INVALID_ARGUMENT && !said[0], "%s; the log: %s", gemmepi_last_error(),
          said);
    close_host();
}

static void a_k_of_0_is_told(void) {
    int64_t k;
    open_host_that_logs();
    for (k = 0; k < 2; k++) {
        gemmepi_matmul_desc desc = product(GEMMEPI_F32, 2, 2, k, GEMMEPI_NONE);
        gemmepi_matmul_args args;
        float a[2] = {1, 2}, b[2] = {3, 4}, d[4] = {9, 9, 9, 9};
        memset(&args, 0, sizeof args);
        args.a = a, args.b = b, args.d = d;
        said[0] = 0;
        CHECK(gemmepi_matmul(host, &desc, &args, NULL) == GEMMEPI_OK && d[3] == (k ? 8 : 0), "%g",
              (double)d[3]);
        CHECK(!strstr(said, "desc.k is 0") == (k != 0), "the log: %s", said);
    }
    close_host();
}

static void fields_without_their_flag_are_told(void) {
    int field, has;
    open_host_that_logs();
    for (field = 0; field < 4; field++)
        for (has = 0; has < 2; has++) {
            static const struct {
                gemmepi_epilogue flags;
                const char *says;
            } fields[] = {{GEMMEPI_BIAS, "desc.bias has fields"},
                          {GEMMEPI_SILU | GEMMEPI_AUX, "desc.aux has fields"},
                          {GEMMEPI_RESIDUAL, "desc.residual has fields"},
                          {GEMMEPI_BGRAD_A, "desc.bias_grad has fields"}};
            gemmepi_matmul_desc desc =
                product(GEMMEPI_F32, 4, 4, 4, has ? fields[field].flags : GEMMEPI_NONE);
            gemmepi_plan *plan = NULL;
            desc.bias.dtype = field == 0 ? GEMMEPI_F32 : GEMMEPI_DTYPE_DEFAULT;
            desc.aux.ld = field == 1 ? 4 : 0;
            desc.residual.ld = field == 2 ? 4 : 0;
            desc.bias_grad.dtype = field == 3 ? GEMMEPI_F32 : GEMMEPI_DTYPE_DEFAULT;
            said[0] = 0;
            CHECK(gemmepi_plan_matmul(host, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK((strstr(said, fields[field].says) == NULL) == has, "field %d, %d: %s", field, has, said);
            gemmepi_plan_destroy(plan);
        }
    close_host();
}

/* A heap that gives nothing back until the end, as many do for a while. */
static struct {
    void *all[4096];
    int count;
} heap;

static void *heap_alloc(void *user, size_t size) {
    void *pointer = heap.count < 4096 ? malloc(size) : NULL;
    (void)user;
    if (pointer)
        heap.all[heap.count++] = pointer;
    return pointer;
}

static void heap_free(void *user, void *pointer) {
    (void)user, (void)pointer;
}

static void open_host_with_heap(void) {
    gemmepi_config config;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE_HOST;
    config.allocator.alloc = heap_alloc, config.allocator.free = heap_free;
    CHECK(gemmepi_create(&config, &host) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static void free_heap(void) {
    while (heap.count > 0)
        free(heap.all[--heap.count]);
    host = NULL;
}

static void a_context_that_has_ended_is_refused_where_its_memory_is_still_there(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_F32, 1, 1, 1, GEMMEPI_NONE);
    gemmepi_matmul_args args;
    float a = 2, b = 3, d = 0;
    void *memory = NULL;
    memset(&args, 0, sizeof args);
    args.a = &a, args.b = &b, args.d = &d;
    open_host_with_heap();
    gemmepi_destroy(host);
    gemmepi_destroy(host); /* does nothing */
    CHECK(refused(gemmepi_matmul(host, &desc, &args, NULL), "has been destroyed"), "%s",
          gemmepi_last_error());
    CHECK(refused(gemmepi_alloc(host, 1, &memory), "has been destroyed"), "%s", gemmepi_last_error());
    free_heap();
}

static void a_plan_that_was_destroyed_is_refused_where_its_memory_is_still_there(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_F32, 1, 1, 1, GEMMEPI_NONE);
    gemmepi_matmul_args args;
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL, *left = NULL;
    float a = 2, b = 3, d = 0;
    char text[64];
    memset(&args, 0, sizeof args);
    args.a = &a, args.b = &b, args.d = &d;
    open_host_with_heap();
    CHECK(!gemmepi_plan_matmul(host, &desc, &plan) && !gemmepi_plan_matmul(host, &desc, &left), "%s",
          gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    CHECK(refused(gemmepi_run_matmul(plan, &args, NULL), "the plan has been destroyed") && d == 0, "%s",
          gemmepi_last_error());
    CHECK(refused(gemmepi_plan_prepare(plan, NULL), "the plan has been destroyed"), "%s",
          gemmepi_last_error());
    CHECK(refused(gemmepi_plan_info(plan, &details), "the plan has been destroyed"), "%s",
          gemmepi_last_error());
    CHECK(gemmepi_plan_explain(plan, text, sizeof text) == 0, "%s", text);
    (void)gemmepi_alloc(NULL, 1, NULL); /* another sentence */
    gemmepi_plan_destroy(plan);
    CHECK(strstr(gemmepi_last_error(), "the plan has been destroyed"), "%s", gemmepi_last_error());
    gemmepi_destroy(host);
    CHECK(refused(gemmepi_run_matmul(left, &args, NULL), "the context has been destroyed") && d == 0, "%s",
          gemmepi_last_error());
    gemmepi_plan_destroy(left); /* does nothing */
    free_heap();
}

/* Every function that takes a stream. */
static void check_stream(gemmepi_stream stream, int is_one) {
    gemmepi_status expected = is_one ? GEMMEPI_OK : GEMMEPI_INVALID_ARGUMENT;
    gemmepi_matmul_desc desc = product(GEMMEPI_F32, 1, 1, 1, GEMMEPI_NONE);
    gemmepi_linear_desc layer_desc;
    gemmepi_elementwise_desc cast;
    gemmepi_matmul_args args;
    gemmepi_linear_args layer_args;
    gemmepi_elementwise_args cast_args;
    gemmepi_plan *plan = NULL;
    gemmepi_plan *layer = NULL;
    gemmepi_plan *elementwise = NULL;
    gemmepi_tensor ta, ty;
    float a = 2, b = 3, d = 0;
    memset(&args, 0, sizeof args);
    memset(&layer_desc, 0, sizeof layer_desc);
    memset(&layer_args, 0, sizeof layer_args);
    memset(&cast, 0, sizeof cast);
    memset(&cast_args, 0, sizeof cast_args);
    memset(&ta, 0, sizeof ta);
    layer_desc.m = layer_desc.n = layer_desc.k = layer_desc.batch = 1;
    layer_desc.alignment = cast.alignment = 4;
    args.a = layer_args.a = cast_args.a = ta.data = &a;
    args.b = layer_args.b = &b;
    args.d = layer_args.y = cast_args.y = &d;
    ty = ta;
    ty.data = &d;
    cast.operation = GEMMEPI_OP_CAST;
    cast.a = &ta, cast.y = &ty;
    CHECK(gemmepi_plan_matmul(host, &desc, &plan) == GEMMEPI_OK &&
              gemmepi_plan_linear(host, &layer_desc, &layer) == GEMMEPI_OK &&
              gemmepi_plan_elementwise(host, &cast, &elementwise) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(plan, stream) == expected &&
              gemmepi_run_matmul(plan, &args, stream) == expected &&
              gemmepi_matmul(host, &desc, &args, stream) == expected,
          "a product");
    CHECK(gemmepi_plan_prepare(layer, stream) == expected &&
              gemmepi_run_linear(layer, &layer_args, stream) == expected &&
              gemmepi_linear(host, &layer_desc, &layer_args, stream) == expected,
          "a layer");
    CHECK(gemmepi_plan_prepare(elementwise, stream) == expected &&
              gemmepi_run_elementwise(elementwise, &cast_args, stream) == expected &&
              gemmepi_cast(host, &ta, &ty, stream) == expected,
          "a cast");
    CHECK(gemmepi_upload(host, &d, &a, 4, stream) == expected &&
              gemmepi_download(host, &d, &a, 4, stream) == expected &&
              gemmepi_synchronize(host, stream) == expected,
          "copies");
    CHECK(is_one || strstr(gemmepi_last_error(), "stream"), "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_plan_destroy(layer);
    gemmepi_plan_destroy(elementwise);
}

static void streams_are_those_that_were_created_and_not_destroyed(void) {
    gemmepi_stream stream = NULL, other = NULL;
    void *block = NULL;
    open_host();
    CHECK(gemmepi_stream_create(host, &stream) == GEMMEPI_OK &&
              gemmepi_stream_create(host, &other) == GEMMEPI_OK && stream != other,
          "%s", gemmepi_last_error());
    CHECK(gemmepi_alloc(host, 1, &block) == GEMMEPI_OK, "%s", gemmepi_last_error());
    check_stream(NULL, 1);
    check_stream((gemmepi_stream)(uintptr_t)1, 1);
    check_stream((gemmepi_stream)(uintptr_t)2, 1);
    check_stream((gemmepi_stream)(uintptr_t)3, 0);
    check_stream(stream, 1);
    check_stream(host, 0);
    check_stream(block, 0);
    CHECK(gemmepi_stream_destroy(host, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(refused(gemmepi_stream_destroy(host, stream), "gemmepi_stream_create"), "%s", gemmepi_last_error());
    CHECK(refused(gemmepi_stream_destroy(host, block), "gemmepi_stream_create"), "%s", gemmepi_last_error());
    CHECK(refused(gemmepi_free(host, other), "gemmepi_alloc"), "%s", gemmepi_last_error());
    check_stream(stream, 0);
    gemmepi_free(host, block);
    close_host(); /* with the other one */
}

static void a_workspace_that_is_no_good_is_refused_though_none_is_needed(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_F32, 1, 1, 1, GEMMEPI_NONE);
    gemmepi_matmul_args args;
    float a = 2, b = 3, d = 0;
    open_host();
    memset(&args, 0, sizeof args);
    args.a = &a, args.b = &b, args.d = &d;
    args.workspace = (void *)(uintptr_t)4097;
    CHECK(gemmepi_matmul(host, &desc, &args, NULL) == GEMMEPI_MISALIGNED, "%s", gemmepi_last_error());
    args.workspace = (void *)(uintptr_t)4096;
    args.workspace_size = (size_t)-4000;
    CHECK(refused(gemmepi_matmul(host, &desc, &args, NULL), "workspace_size"), "%s", gemmepi_last_error());
    args.workspace_size = 4096;
    CHECK(gemmepi_matmul(host, &desc, &args, NULL) == GEMMEPI_OK && d == 6, "%s", gemmepi_last_error());
    close_host();
}

#define INF HUGE_VAL

static int is_same(double x, double y) {
    return x == y || (x != x && y != y);
}

/* 1 times the derivative, which is 0 by selection where the manual says so. */
static double derivative_of(gemmepi_epilogue activation, double x) {
    double magnitude;
    return oracle_selects_0((unsigned)activation, x)
               ? 0
               : oracle_derivative((unsigned)activation, 0.25, x, &magnitude);
}

static void activations_of_infinities_and_nan_are_their_formulas(void) {
    static const double ends[] = {INF, -INF, NAN};
    int i, end;
    for (i = 0; i < ACTIVATION_COUNT; i++)
        for (end = 0; end < 3; end++) {
            uint32_t activation = (uint32_t)activation_codes[i];
            double value = gpi__activate(activation, 0.25, ends[end]);
            double derivative = gpi__times_derivative(activation, 0.25, 1, ends[end]);
            CHECK(is_same(value, oracle_activation(activation, 0.25, ends[end])), "%s of %g is %g",
                  activation_names[i], ends[end], value);
            CHECK(is_same(derivative, derivative_of(activation, ends[end])),
                  "the derivative of %s at %g is %g", activation_names[i], ends[end], derivative);
        }
}

static void activations_bend_where_the_manual_says(void) {
    static const double bends[] = {-3, 0, 3};
    int i, bend, side;
    for (i = 0; i < ACTIVATION_COUNT; i++)
        for (bend = 0; bend < 3; bend++)
            for (side = -1; side <= 1; side++) {
                double x = bends[bend] + side * 1e-12, expected = derivative_of(activation_codes[i], x);
                double derivative = gpi__times_derivative((uint32_t)activation_codes[i], 0.25, 1, x);
                CHECK(fabs(derivative - expected) < 1e-15, "the derivative of %s at %.15g is %g, not %g",
                      activation_names[i], x, derivative, expected);
            }
}

/* Units have columns of both halves, so that places do not come in order. */
static void the_place_of_the_largest_is_the_first_of_equals_in_any_order(void) {
    static const double values[] = {1, 2, NAN, 2, -INF, INF, 0};
    uint64_t state = 1;
    int round;
    for (round = 0; round < 2000; round++) {
        double row[6];
        int order[6], i, count = 1 + round % 6, kinds = 2 + round % 6, wanted = 0;
        gpi__reduced cell;
        for (i = 0; i < count; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            row[i] = values[(state >> 33) % (uint64_t)kinds];
            order[i] = i;
        }
        for (i = count - 1; i > 0; i--) { /* shuffled */
            int j, kept = order[i];
            state = state * 6364136223846793005u + 1442695040888963407u;
            j = (int)((state >> 33) % (uint64_t)(i + 1));
            order[i] = order[j], order[j] = kept;
        }
        for (i = 1; i < count; i++)
            if (row[wanted] == row[wanted] && (row[i] != row[i] || row[i] > row[wanted]))
                wanted = i;
        memset(&cell, 0, sizeof cell);
        for (i = 0; i < count; i++) {
            gpi__reduce(&cell, GPI__REDUCE_ARGMAX, row[order[i]], order[i]);
            cell.has_any = 1;
        }
        CHECK(cell.place == wanted && is_same(cell.most, row[wanted]), "round %d: %d, not %d of %d", round,
              (int)cell.place, wanted, count);
    }
}

int main(void) {
    RUN(operands_of_two_types_have_the_smallest_that_holds_both);
    RUN(scales_of_blocks_reach_to_the_last_number_of_the_last_item);
    RUN(a_gates_gradient_is_right_where_dy_value_is_subnormal);
    RUN(activations_of_infinities_and_nan_are_their_formulas);
    RUN(activations_bend_where_the_manual_says);
    RUN(the_place_of_the_largest_is_the_first_of_equals_in_any_order);
    RUN(memory_that_was_not_given_is_not_freed);
    RUN(copies_beyond_the_end_of_memory_are_refused);
    RUN(tensors_beyond_the_end_of_memory_are_refused);
    RUN(tensors_before_the_beginning_of_memory_are_refused);
    RUN(memory_and_its_values_come_in_one_call);
    RUN(positions_of_no_group_are_told);
    RUN(refused_ends_are_told_once);
    RUN(a_k_of_0_is_told);
    RUN(fields_without_their_flag_are_told);
    RUN(a_context_that_has_ended_is_refused_where_its_memory_is_still_there);
    RUN(a_plan_that_was_destroyed_is_refused_where_its_memory_is_still_there);
    RUN(streams_are_those_that_were_created_and_not_destroyed);
    RUN(a_workspace_that_is_no_good_is_refused_though_none_is_needed);
    RUN(c_lies_as_d_does_where_a_gates_gradient_has_its_shape);
    return test_finish();
}
