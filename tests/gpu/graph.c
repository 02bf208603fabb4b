/* CUDA graphs and the caller's context, on the GPU that GEMMEPI_TEST_DEVICE numbers. */
#include "gemmepi.h"
#include "test.h"

#if defined(_WIN32)
int main(void) {
    printf("skip graphs: not tested on Windows\n0 passed, 0 failed, 1 skipped\n");
    return 0;
}
#else

#include "driver.h"

#include <math.h>
#include <stddef.h>

enum { M = 192, N = 160, K = 640, PAGEABLE_MEMORY_ACCESS = 88 }; /* k enough for packing to pay */

static gemmepi_context *context;
static gemmepi_stream stream;
static char *memory; /* A, B, D and bias_grad, a quarter of SIZE each */

#define SIZE ((size_t)1 << 20)

static gemmepi_matmul_desc description(gemmepi_epilogue epilogue) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = M;
    desc.n = N;
    desc.k = K;
    desc.batch = 1;
    desc.a.dtype = GEMMEPI_BF16;
    desc.epilogue = epilogue;
    return desc;
}

static gemmepi_matmul_args arguments(gemmepi_epilogue epilogue) {
    gemmepi_matmul_args args;
    memset(&args, 0, sizeof args);
    args.a = memory;
    args.b = memory + SIZE / 4;
    args.d = memory + SIZE / 2;
    if (epilogue & GEMMEPI_BGRAD)
        args.bias_grad = memory + 3 * (SIZE / 4);
    return args;
}

static void fill_at(void *to, size_t bytes, int pattern) {
    unsigned short *values = (unsigned short *)malloc(bytes);
    unsigned state = (unsigned)pattern * 2654435761u + 1;
    size_t i;
    for (i = 0; i < bytes / 2; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (unsigned short)(0x3f00 + (state >> 25) + (state >> 8 & 0x8000)); /* +-0.5 to 1 in bf16 */
    }
    CHECK(gemmepi_upload(context, to, values, bytes, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    free(values);
}

static void fill(size_t offset, size_t bytes, int pattern) {
    fill_at(memory + offset, bytes, pattern);
}

static void read_results(unsigned char *to) {
    CHECK(gemmepi_download(context, to, memory + SIZE / 2, SIZE / 2, stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
}

/* alignment: of the pointers; with 2 operands are packed first. */
static void replay_gives_the_bits_of_a_run(gemmepi_epilogue epilogue, int alignment, int least_launches) {
    gemmepi_matmul_desc desc = description(epilogue);
    gemmepi_matmul_args args = arguments(epilogue);
    unsigned char *direct = (unsigned char *)malloc(SIZE / 2), *replayed = (unsigned char *)malloc(SIZE / 2);
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    void *graph = NULL, *executable = NULL;
    int launch;
    desc.alignment = alignment;
    fill(0, SIZE / 2, 1);
    fill(SIZE / 2, SIZE / 2, 2);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(plan, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_run_matmul(plan, &args, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.launches >= least_launches,
          "%d launches", details.launches);
    read_results(direct);
    CHECK(cuda.begin_capture(stream, CAPTURE_GLOBAL) == 0, "capture does not begin");
    CHECK(gemmepi_run_matmul(plan, &args, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_matmul(context, &desc, &args, stream) == GEMMEPI_OK, "one-shot, workspace reserved: %s",
          gemmepi_last_error());
    CHECK(cuda.end_capture(stream, &graph) == 0 && graph, "capture does not end");
    CHECK(cuda.instantiate(&executable, graph, 0) == 0, "the graph cannot be instantiated");
    gemmepi_plan_destroy(plan); /* the graph outlives it */
    for (launch = 0; launch < 3; launch++) {
        fill(SIZE / 2, SIZE / 2, 3 + launch);
        CHECK(cuda.launch(executable, stream) == 0, "the graph cannot be launched");
        read_results(replayed);
        CHECK(memcmp(direct, replayed, (size_t)M * N * 2) == 0, "%d: D differs", launch);
        if (epilogue & GEMMEPI_BGRAD)
            CHECK(memcmp(direct + SIZE / 4, replayed + SIZE / 4, (size_t)N * 2) == 0, "%d: bias_grad differs",
                  launch);
    }
    cuda.destroy_executable(executable);
    cuda.destroy_graph(graph);
    free(direct);
    free(replayed);
}

static void a_captured_plain_product_replays_with_the_same_bits(void) {
    replay_gives_the_bits_of_a_run(GEMMEPI_NONE, 0, 1);
}

static void a_captured_product_of_several_launches_replays_with_the_same_bits(void) {
    replay_gives_the_bits_of_a_run(GEMMEPI_SILU, 2, 2);
    replay_gives_the_bits_of_a_run(GEMMEPI_BGRAD, 2, 2);
}

static void a_captured_product_of_16_bits_replays_with_the_same_bits(void) {
    replay_gives_the_bits_of_a_run(GEMMEPI_SILU, 0, 1);
    replay_gives_the_bits_of_a_run(GEMMEPI_BGRAD, 0, 1);
}

/* Operands that are packed first take more workspace than the other tests' streams had, whose handles the driver may give again. */
static void a_one_shot_call_reserves_nothing_while_its_stream_is_captured(void) {
    gemmepi_matmul_desc desc = description(GEMMEPI_BGRAD);
    gemmepi_matmul_args args = arguments(GEMMEPI_BGRAD);
    gemmepi_stream fresh = NULL;
    gemmepi_status status;
    void *graph = NULL;
    desc.alignment = 2;
    CHECK(gemmepi_stream_create(context, &fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(cuda.begin_capture(fresh, CAPTURE_GLOBAL) == 0, "capture does not begin");
    status = gemmepi_matmul(context, &desc, &args, fresh);
    CHECK(status == GEMMEPI_BUFFER_TOO_SMALL, "%s", gemmepi_status_name(status));
    CHECK(cuda.end_capture(fresh, &graph) == 0, "the refused call spoiled the capture");
    cuda.destroy_graph(graph);
    CHECK(gemmepi_matmul(context, &desc, &args, fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_stream_destroy(context, fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static void plans_are_built_and_workspace_reserved_while_another_stream_is_captured(void) {
    gemmepi_matmul_desc desc = description(GEMMEPI_TANH);
    gemmepi_matmul_args args = arguments(GEMMEPI_TANH);
    gemmepi_stream fresh = NULL;
    gemmepi_plan *plan = NULL;
    void *graph = NULL, *pointer = NULL;
    desc.alignment = 2;
    CHECK(gemmepi_stream_create(context, &fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
    desc.m = 2 * M / 3;
    CHECK(cuda.begin_capture(stream, CAPTURE_GLOBAL) == 0, "capture does not begin");
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(plan, fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_run_matmul(plan, &args, fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_alloc(context, 4096, &pointer) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(cuda.end_capture(stream, &graph) == 0, "the other stream's capture was spoiled");
    cuda.destroy_graph(graph);
    CHECK(gemmepi_free(context, pointer) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    CHECK(gemmepi_stream_destroy(context, fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static void memory_and_streams_come_and_go_while_another_stream_is_captured(void) {
    gemmepi_stream fresh = NULL;
    void *graph = NULL, *pointer = NULL;
    int sent = 7, back = 0;
    CHECK(cuda.begin_capture(stream, CAPTURE_GLOBAL) == 0, "capture does not begin");
    CHECK(gemmepi_stream_create(context, &fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_alloc(context, sizeof sent, &pointer) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_upload(context, pointer, &sent, sizeof sent, fresh) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    CHECK(gemmepi_download(context, &back, pointer, sizeof back, fresh) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    CHECK(back == sent, "%d came back", back);
    CHECK(gemmepi_synchronize(context, fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_free(context, pointer) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_stream_destroy(context, fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(cuda.end_capture(stream, &graph) == 0, "the other stream's capture was spoiled");
    cuda.destroy_graph(graph);
}

/* A one-shot call asks whose memory each pointer is, which must not end a capture; a plan with check_pointers asks, too. */
static void host_memory_is_refused_and_a_capture_goes_on(void) {
    static unsigned short on_host[M * K];
    gemmepi_matmul_desc desc = description(GEMMEPI_SILU);
    gemmepi_matmul_args args = arguments(GEMMEPI_SILU), wrong = args;
    gemmepi_status status;
    void *graph = NULL;
    int captured, reaches = 0;
    CHECK(cuda.get_attribute(&reaches, PAGEABLE_MEMORY_ACCESS, 0) == 0, "the attribute cannot be read");
    if (reaches)
        SKIP("this GPU reaches all of the host's memory");
    wrong.b = on_host;
    for (captured = 0; captured < 2; captured++) {
        if (captured)
            CHECK(cuda.begin_capture(stream, CAPTURE_GLOBAL) == 0, "capture does not begin");
        status = gemmepi_matmul(context, &desc, &wrong, stream);
        CHECK(status == GEMMEPI_INVALID_ARGUMENT && strstr(gemmepi_last_error(), "args.b") &&
                  strstr(gemmepi_last_error(), "host memory"),
              "captured %d: %s: %s", captured, gemmepi_status_name(status), gemmepi_last_error());
        CHECK(gemmepi_matmul(context, &desc, &args, stream) == GEMMEPI_OK, "captured %d: %s", captured,
              gemmepi_last_error());
    }
    CHECK(cuda.end_capture(stream, &graph) == 0 && graph, "the refused call spoiled the capture");
    cuda.destroy_graph(graph);
    CHECK(gemmepi_synchronize(context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

/* >>element-wise operations */

enum { ROWS = 1024, COLUMNS = 64, STEPS = 5 };

/* What they read and write: 16-bit ones are BF16, 8-bit ones E4M3. */
typedef struct gates {
    unsigned short h[ROWS][2 * COLUMNS], dy[ROWS][COLUMNS];
    float scale[4];
    unsigned short y[ROWS][2 * COLUMNS], dh[ROWS][2 * COLUMNS];
    unsigned char y8[ROWS][2 * COLUMNS], dh8[ROWS][2 * COLUMNS];
    float dbias[2 * COLUMNS], y_scale, amax;
} gates;

#define RESULTS offsetof(gates, y) /* from there on everything is written */

/* A sequence, each of which may read what those before it wrote. */
typedef struct sequence {
    gemmepi_plan *plans[STEPS];
    gemmepi_elementwise_args args[STEPS];
} sequence;

static const int64_t both_shape[] = {ROWS, 2 * COLUMNS}, half_shape[] = {ROWS, COLUMNS},
                     bias_shape[] = {2 * COLUMNS};

static gemmepi_tensor tensor(void *data, gemmepi_dtype dtype, int rank, const int64_t *shape) {
    gemmepi_tensor t;
    memset(&t, 0, sizeof t);
    t.data = data;
    t.dtype = dtype;
    t.rank = rank;
    t.shape = shape;
    return t;
}

static void prepare_step(sequence *s, int step, const gemmepi_elementwise_desc *desc) {
    CHECK(gemmepi_plan_elementwise(context, desc, &s->plans[step]) == GEMMEPI_OK, "step %d: %s", step,
          gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(s->plans[step], stream) == GEMMEPI_OK, "step %d: %s", step,
          gemmepi_last_error());
}

static void prepare_sequence(sequence *s, gates *on_device) {
    gemmepi_tensor both = tensor(NULL, GEMMEPI_BF16, 2, both_shape),
                   half = tensor(NULL, GEMMEPI_BF16, 2, half_shape),
                   bias = tensor(NULL, GEMMEPI_F32, 1, bias_shape),
                   narrow = tensor(NULL, GEMMEPI_E4M3, 2, both_shape);
    gemmepi_elementwise_desc activation, backward, sum, with_amax, whole;
    memset(s, 0, sizeof *s);
    memset(&activation, 0, sizeof activation);
    backward = sum = with_amax = whole = activation;

    activation.operation = GEMMEPI_OP_ACTIVATION;
    activation.activation = GEMMEPI_GELU_TANH;
    activation.a = &both, activation.y = &both;
    s->args[0].a = on_device->h, s->args[0].y = on_device->y;

    backward.operation = GEMMEPI_OP_GATED_BACKWARD;
    backward.activation = GEMMEPI_SILU;
    backward.axis = -1;
    backward.a = &both, backward.dy = &half, backward.da = &both;
    s->args[1].a = on_device->h, s->args[1].dy = on_device->dy, s->args[1].da = on_device->dh;

    sum.operation = GEMMEPI_OP_BIAS_GRAD;
    sum.axis = -1;
    sum.a = &both, sum.y = &bias;
    s->args[2].a = on_device->dh, s->args[2].y = on_device->dbias;

    with_amax.operation = whole.operation = GEMMEPI_OP_CAST;
    with_amax.flags = GEMMEPI_CAST_SCALE | GEMMEPI_CAST_AMAX;
    with_amax.a = &both, with_amax.y = &narrow;
    s->args[3].a = on_device->dh, s->args[3].y = on_device->dh8;
    s->args[3].scale = on_device->scale, s->args[3].amax = &on_device->amax;

    whole.flags = GEMMEPI_CAST_Y_SCALE;
    whole.scale_mode = GEMMEPI_SCALE_TENSOR;
    whole.a = &both, whole.y = &narrow;
    s->args[4].a = on_device->y, s->args[4].y = on_device->y8, s->args[4].y_scale = &on_device->y_scale;

    prepare_step(s, 0, &activation);
    prepare_step(s, 1, &backward);
    prepare_step(s, 2, &sum);
    prepare_step(s, 3, &with_amax);
    prepare_step(s, 4, &whole);
}

static void run_sequence(const sequence *s) {
    int step;
    for (step = 0; step < STEPS; step++)
        CHECK(gemmepi_run_elementwise(s->plans[step], &s->args[step], stream) == GEMMEPI_OK, "step %d: %s",
              step, gemmepi_last_error());
}

/* Inputs of one pattern, and something else where results go. */
static void fill_gates(gates *on_device, int pattern, int before) {
    float scale = (float)(1 << pattern);
    fill_at(on_device->h, sizeof on_device->h, pattern);
    fill_at(on_device->dy, sizeof on_device->dy, pattern + 10);
    CHECK(gemmepi_upload(context, on_device->scale, &scale, sizeof scale, stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    fill_at((char *)on_device + RESULTS, sizeof *on_device - RESULTS, before);
}

static void read_gates(const gates *on_device, gates *to) {
    CHECK(gemmepi_download(context, to, on_device, sizeof *to, stream) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
}

static int results_differ(const gates *p, const gates *q) {
    return memcmp((const char *)p + RESULTS, (const char *)q + RESULTS, sizeof *p - RESULTS) != 0;
}

static void captured_elementwise_operations_replay_with_the_same_bits_on_other_inputs(void) {
    static gates direct[2], replayed;
    gemmepi_plan_details sum, whole;
    gemmepi_tensor dh, dbias;
    sequence s;
    gates *on_device;
    void *block = NULL, *graph = NULL, *executable = NULL;
    int i;
    CHECK(gemmepi_alloc(context, sizeof *on_device, &block) == GEMMEPI_OK, "%s", gemmepi_last_error());
    on_device = (gates *)block;
    prepare_sequence(&s, on_device);
    CHECK(gemmepi_plan_info(s.plans[2], &sum) == GEMMEPI_OK && sum.workspace_size &&
              gemmepi_plan_info(s.plans[4], &whole) == GEMMEPI_OK && whole.workspace_size,
          "the sum and the cast are to share workspace");
    for (i = 0; i < 2; i++) {
        fill_gates(on_device, 1 + i, 5);
        run_sequence(&s);
        read_gates(on_device, &direct[i]);
    }
    CHECK(results_differ(&direct[0], &direct[1]), "other inputs give other results");

    fill_gates(on_device, 3, 6);
    CHECK(gemmepi_synchronize(context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(cuda.begin_capture(stream, CAPTURE_GLOBAL) == 0, "capture does not begin");
    run_sequence(&s);
    dh = tensor(on_device->dh, GEMMEPI_BF16, 2, both_shape);
    dbias = tensor(on_device->dbias, GEMMEPI_F32, 1, bias_shape);
    CHECK(gemmepi_bias_grad(context, &dh, -1, 0, &dbias, stream) == GEMMEPI_OK,
          "one-shot, workspace reserved: %s", gemmepi_last_error());
    CHECK(cuda.end_capture(stream, &graph) == 0 && graph, "capture does not end");
    CHECK(cuda.instantiate(&executable, graph, 0) == 0, "the graph cannot be instantiated");
    for (i = 0; i < STEPS; i++)
        gemmepi_plan_destroy(s.plans[i]); /* the graph outlives them */
    for (i = 0; i < 2; i++) {
        fill_gates(on_device, 1 + i, 7);
        CHECK(cuda.launch(executable, stream) == 0, "the graph cannot be launched");
        read_gates(on_device, &replayed);
        CHECK(!results_differ(&direct[i], &replayed), "replay %d differs from direct runs", i);
    }
    cuda.destroy_executable(executable);
    cuda.destroy_graph(graph);
    CHECK(gemmepi_free(context, block) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static void a_one_shot_elementwise_call_reserves_nothing_while_its_stream_is_captured(void) {
    gemmepi_stream fresh = NULL;
    gemmepi_tensor a, sums;
    gemmepi_status status;
    void *block = NULL, *graph = NULL;
    CHECK(gemmepi_alloc(context, sizeof(gates), &block) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_stream_create(context, &fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
    a = tensor(((gates *)block)->h, GEMMEPI_BF16, 2, both_shape);
    sums = tensor(((gates *)block)->dbias, GEMMEPI_F32, 1, bias_shape);
    CHECK(cuda.begin_capture(fresh, CAPTURE_GLOBAL) == 0, "capture does not begin");
    status = gemmepi_bias_grad(context, &a, -1, 0, &sums, fresh);
    CHECK(status == GEMMEPI_BUFFER_TOO_SMALL, "%s", gemmepi_status_name(status));
    CHECK(gemmepi_activation(context, GEMMEPI_RELU, NAN, &a, &a, fresh) == GEMMEPI_OK,
          "what needs no workspace is captured: %s", gemmepi_last_error());
    CHECK(cuda.end_capture(fresh, &graph) == 0, "the refused call spoiled the capture");
    cuda.destroy_graph(graph);
    CHECK(gemmepi_bias_grad(context, &a, -1, 0, &sums, fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_stream_destroy(context, fresh) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_free(context, block) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static void the_current_context_of_the_thread_stays_as_it_was(void) {
    gemmepi_matmul_desc desc = description(GEMMEPI_SILU);
    gemmepi_matmul_args args = arguments(GEMMEPI_SILU);
    void *primary = NULL, *after = &desc;
    int i;
    CHECK(cuda.get_current(&primary) == 0 && primary, "the test has made the primary context current");
    for (i = 0; i < 2; i++) { /* once with that, once with none */
        void *before = i ? NULL : primary;
        CHECK(cuda.set_current(before) == 0, "the current context cannot be set");
        CHECK(gemmepi_matmul(context, &desc, &args, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gemmepi_synchronize(context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(cuda.get_current(&after) == 0 && before == after, "%p became %p", before, after);
    }
    CHECK(cuda.set_current(primary) == 0, "the current context cannot be set");
}

/* >>a training step */

enum { TOKENS = 256, WIDTH = 96, INNER = 160, OUT = 64, DIRECTIONS = 4 };

/* Two layers, a SwiGLU one whose P is saved and a GELU one whose P is computed anew: BF16, gradients of the weights in F32. */
typedef struct training {
    unsigned short x[TOKENS][WIDTH], w1[WIDTH][2 * INNER], w2[INNER][OUT], dout[TOKENS][OUT];
    unsigned short bias1[2 * INNER], bias2[OUT];
    float dw1[WIDTH][2 * INNER], dw2[INNER][OUT], dbias1[2 * INNER], dbias2[OUT]; /* added to */
    unsigned short preact[TOKENS][2 * INNER], hidden[TOKENS][INNER], out[TOKENS][OUT];
    unsigned short dhidden[TOKENS][INNER], dx[TOKENS][WIDTH];
} training;

typedef struct step {
    gemmepi_plan *layers[DIRECTIONS]; /* in the order of a step */
    gemmepi_linear_args args[DIRECTIONS];
} step;

static gemmepi_linear_desc layer_of(int n, int k, gemmepi_epilogue activation, uint64_t flags) {
    gemmepi_linear_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = TOKENS;
    desc.n = n;
    desc.k = k;
    desc.batch = 1;
    desc.a.dtype = GEMMEPI_BF16;
    desc.db.dtype = desc.dbias.dtype = GEMMEPI_F32;
    desc.activation = activation;
    desc.flags = flags | GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS |
                 GEMMEPI_ACCUMULATE_DB | GEMMEPI_ACCUMULATE_DBIAS;
    return desc;
}

static void prepare_training(step *s, training *there) {
    gemmepi_linear_desc first =
        layer_of(2 * INNER, WIDTH, GEMMEPI_SILU | GEMMEPI_GATED, GEMMEPI_LINEAR_SAVED);
    gemmepi_linear_desc second = layer_of(OUT, INNER, GEMMEPI_GELU_TANH, GEMMEPI_LINEAR_RECOMPUTE);
    int i;
    memset(s, 0, sizeof *s);
    s->args[0].a = there->x, s->args[0].b = there->w1, s->args[0].bias = there->bias1;
    s->args[0].y = there->hidden, s->args[0].preact = there->preact, s->args[0].dy = there->dhidden;
    s->args[0].da = there->dx, s->args[0].db = there->dw1, s->args[0].dbias = there->dbias1;
    s->args[1].a = there->hidden, s->args[1].b = there->w2, s->args[1].bias = there->bias2;
    s->args[1].y = there->out, s->args[1].dy = there->dout;
    s->args[1].da = there->dhidden, s->args[1].db = there->dw2, s->args[1].dbias = there->dbias2;
    s->args[2] = s->args[1];
    s->args[3] = s->args[0];
    CHECK(gemmepi_plan_linear(context, &first, &s->layers[0]) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_linear(context, &second, &s->layers[1]) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_linear_backward(context, &second, &s->layers[2]) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    CHECK(gemmepi_plan_linear_backward(context, &first, &s->layers[3]) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    for (i = 0; i < DIRECTIONS; i++)
        CHECK(gemmepi_plan_prepare(s->layers[i], stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

/* Two forwards, then two backwards. */
static gemmepi_status run_direction(const step *s, int i) {
    return i < 2 ? gemmepi_run_linear(s->layers[i], &s->args[i], stream)
                 : gemmepi_run_linear_backward(s->layers[i], &s->args[i], stream);
}

static void run_training(const step *s) {
    int i;
    for (i = 0; i < DIRECTIONS; i++)
        CHECK(run_direction(s, i) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
}

static void fill_training(training *there, int pattern) {
    fill_at(there, offsetof(training, dw1), pattern);
    fill_at(there->dw1, offsetof(training, preact) - offsetof(training, dw1),
            40); /* as F32 it is some number */
    fill_at(there->preact, sizeof *there - offsetof(training, preact), pattern + 20);
}

static void a_captured_training_step_replays_with_the_same_bits(void) {
    static training direct[2], replayed;
    training *there;
    step s;
    void *block = NULL, *graph = NULL, *executable = NULL;
    int i;
    CHECK(gemmepi_alloc(context, sizeof *there, &block) == GEMMEPI_OK, "%s", gemmepi_last_error());
    there = (training *)block;
    prepare_training(&s, there);
    for (i = 0; i < 2; i++) {
        fill_training(there, 1 + i);
        run_training(&s);
        CHECK(gemmepi_download(context, &direct[i], there, sizeof *there, stream) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
    }
    CHECK(memcmp(direct[0].dw1, direct[1].dw1, sizeof direct[0].dw1) != 0, "other inputs give other results");
    CHECK(gemmepi_synchronize(context, stream) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(cuda.begin_capture(stream, CAPTURE_GLOBAL) == 0, "capture does not begin");
    run_training(&s);
    CHECK(cuda.end_capture(stream, &graph) == 0 && graph, "capture does not end");
    CHECK(cuda.instantiate(&executable, graph, 0) == 0, "the graph cannot be instantiated");
    for (i = 0; i < DIRECTIONS; i++)
        gemmepi_plan_destroy(s.layers[i]); /* the graph outlives them */
    for (i = 0; i < 2; i++) {
        fill_training(there, 1 + i);
        CHECK(cuda.launch(executable, stream) == 0, "the graph cannot be launched");
        CHECK(gemmepi_download(context, &replayed, there, sizeof *there, stream) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        CHECK(memcmp(&direct[i], &replayed, sizeof replayed) == 0, "replay %d differs from direct runs", i);
    }
    cuda.destroy_executable(executable);
    cuda.destroy_graph(graph);
    CHECK(gemmepi_free(context, block) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

int main(void) {
    gemmepi_config config;
    void *block = NULL;
    memset(&config, 0, sizeof config);
    config.device = GEMMEPI_DEVICE(device_number());
    if (gemmepi_create(&config, &context) != GEMMEPI_OK) {
        printf("skip graphs: %s\n0 passed, 0 failed, 1 skipped\n", gemmepi_last_error());
        return 0;
    }
    if (gemmepi_stream_create(context, &stream) || gemmepi_alloc(context, SIZE, &block)) {
        printf("FAIL graphs: %s\n0 passed, 1 failed, 0 skipped\n", gemmepi_last_error());
        return 1;
    }
    memory = (char *)block;
    /* the program's own use of graphs needs a current context, as with the runtime API */
    if (!make_current()) {
        printf("FAIL graphs: the primary context cannot be made current\n0 passed, 1 failed, 0 skipped\n");
        return 1;
    }
    /* first, since a later stream may have the handle, and with it the workspace, of one that was destroyed */
    RUN(a_one_shot_elementwise_call_reserves_nothing_while_its_stream_is_captured);
    RUN(a_captured_plain_product_replays_with_the_same_bits);
    RUN(a_captured_product_of_several_launches_replays_with_the_same_bits);
    RUN(a_captured_product_of_16_bits_replays_with_the_same_bits);
    RUN(a_one_shot_call_reserves_nothing_while_its_stream_is_captured);
    RUN(plans_are_built_and_workspace_reserved_while_another_stream_is_captured);
    RUN(memory_and_streams_come_and_go_while_another_stream_is_captured);
    RUN(host_memory_is_refused_and_a_capture_goes_on);
    RUN(captured_elementwise_operations_replay_with_the_same_bits_on_other_inputs);
    RUN(a_captured_training_step_replays_with_the_same_bits);
    RUN(the_current_context_of_the_thread_stays_as_it_was);
    gemmepi_free(context, memory);
    gemmepi_stream_destroy(context, stream);
    gemmepi_destroy(context);
    return test_finish();
}
#endif
