/* Each call into the driver, NVRTC or cuBLASLt may fail, in each public function and on each route: on the fake GPU of fake_cuda.h
   the first fails, then the second, and so on, until nothing does. The function that was called then reports it with a sentence, or
   works without what failed and says so in the log; called again it works; and in the end nothing is left. With TEST_SHARE=N one call in N
   fails. */
#include "fake_cuda.h"

enum { EDGE = 64, ROWS = 20000, MOST_CALLS = 10000 };

static double memory[8][ROWS * 4]; /* stands for tensors on the device, larger than any of them */

/* What a program holds between its steps. */
typedef struct work {
    gemmepi_config config;
    gemmepi_context *context;
    gemmepi_stream stream;
    void *block;
    gemmepi_matmul_desc product;
    gemmepi_matmul_args product_args;
    gemmepi_plan *plan;
    gemmepi_linear_desc layer;
    gemmepi_linear_args layer_args;
    gemmepi_plan *layer_plan;
    gemmepi_elementwise_desc elementwise;
    gemmepi_elementwise_args elementwise_args;
    gemmepi_plan *elementwise_plan;
    gemmepi_grouped_desc grouped;
    gemmepi_grouped_args grouped_args;
    gemmepi_plan *grouped_plan;
} work;

typedef gemmepi_status (*step)(work *w);

/* A program: what it works on, and its steps in order. */
typedef struct program {
    const char *name;
    unsigned routes; /* config.routes */
    int arch;        /* 0: DEVICE_ARCH */
    void (*begin)(work *w);
    step steps[12];
} program;

/* >>what may fail without an error */

/* The function's work is done all the same, or it is asked another way. */
static const char *const harmless[] = {
    "cuCtxGetCurrent",                      /* the primary context is pushed                 */
    "cuCtxPopCurrent_v2",                   /* an earlier error, which the next call reports */
    "cuCtxGetDevice",                       /* the first device is taken                     */
    "cuMemFree_v2",                         /* of what is no longer needed                   */
    "cuMemFreeHost",                        /* likewise                                      */
    "cuModuleUnload",                       /* likewise                                      */
    "cuGraphDestroy",                       /* likewise                                      */
    "cuGraphExecDestroy",                   /* likewise                                      */
    "cuEventDestroy_v2",                    /* likewise                                      */
    "cuStreamDestroy_v2",                   /* likewise                                      */
    "nvrtcDestroyProgram",                  /* likewise                                      */
    "nvrtcGetProgramLogSize",               /* the sentence has no log                       */
    "nvrtcGetProgramLog",                   /* likewise                                      */
    "cuDriverGetVersion",                   /* another library of that name is tried         */
    "nvrtcVersion",                         /* another library of that name is tried         */
    "cublasLtMatmulAlgoConfigGetAttribute", /* what is told of the algorithm is 0            */
};

static int is_harmless(const char *function) {
    size_t i;
    for (i = 0; i < GPI__COUNT(harmless); i++)
        if (strcmp(harmless[i], function) == 0)
            return 1;
    return 0;
}

/* It takes away what it is called for, whatever it returns. */
static int is_an_end(const char *function) {
    return strcmp(function, "cuMemFree_v2") == 0 || strcmp(function, "cuStreamDestroy_v2") == 0;
}

/* >>failing */

/* The log, or the plan in words, has what a fake says of an error. */
static int is_told(const work *w) {
    static char text[8192];
    text[0] = 0;
    if (w->plan)
        gemmepi_plan_explain(w->plan, text, sizeof text);
    else if (w->layer_plan)
        gemmepi_plan_explain(w->layer_plan, text, sizeof text);
    return strstr(logged, "made up by the test") || strstr(text, "made up by the test");
}

/* A sentence that stays unless a call writes its own. */
static void clear_sentence(void) {
    gemmepi_alloc(NULL, 1, NULL);
}

static int has_own_sentence(void) {
    return gemmepi_last_error()[0] && strcmp(gemmepi_last_error(), "context is NULL") != 0;
}

/* A status that means a mistake of the caller's would mislead. */
static int is_of_a_library(gemmepi_status status) {
    return status == GEMMEPI_CUDA_ERROR || status == GEMMEPI_CUBLAS_ERROR ||
           status == GEMMEPI_COMPILE_ERROR || status == GEMMEPI_OUT_OF_MEMORY ||
           status == GEMMEPI_LIBRARY_NOT_FOUND || status == GEMMEPI_NO_DEVICE;
}

/* Where the primary context cannot be made current at the end, what is on the device goes with it. */
static void forgive_the_end(void) {
    if (gpu.failed_call && strcmp(gpu.failed_call, "cuCtxPushCurrent_v2") == 0)
        gpu.device_blocks = gpu.modules = gpu.wrong_context = 0;
}

/* A thread whose capture mode cannot be set back keeps the other one; the step has done its work. */
static int has_lost_its_mode(const char *function) {
    int has = strcmp(function, "cuThreadExchangeStreamCaptureMode") == 0 && capture_mode != 0;
    if (has)
        capture_mode = 0;
    return has;
}

/* At the end of a call inside of tuning, which sets the mode back itself; and what is built beside the way that is taken. */
static gemmepi_status product_tuned(work *w);
static int is_inside_of_tuning(const program *p, int number, const char *function) {
    return p->steps[number] == product_tuned &&
           (strcmp(function, "cuThreadExchangeStreamCaptureMode") == 0 ||
            strcmp(function, "cuMemAlloc_v2") == 0 || /* a trial has fewer sets, or a way is not timed */
            strstr(logged, "tuning leaves out a way of the route"));
}

/* 1: go on with the next step. */
static int take_step(work *w, const program *p, int number) {
    gemmepi_status status, again;
    const char *function;
    gpu.failed_call = NULL;
    logged[0] = 0;
    clear_sentence();
    status = p->steps[number](w);
    function = gpu.failed_call;
    if (!function) {
        CHECK(status == GEMMEPI_OK, "%s: step %d, without a failure: %s", p->name, number,
              gemmepi_last_error());
        return status == GEMMEPI_OK;
    }
    if (!status) {
        CHECK(has_lost_its_mode(function) || is_harmless(function) || is_told(w) ||
                  is_inside_of_tuning(p, number, function),
              "%s: step %d is silent of a failed %s", p->name, number, function);
        return 1;
    }
    CHECK(is_of_a_library(status), "%s: step %d, %s: status %s: %s", p->name, number, function,
          gemmepi_status_name(status), gemmepi_last_error());
    CHECK(has_own_sentence(), "%s: step %d, %s: no sentence", p->name, number, function);
    if (is_an_end(function))
        return 1;
    again = p->steps[number](w);
    CHECK(again == GEMMEPI_OK, "%s: step %d does not work after a failed %s: %s", p->name, number, function,
          gemmepi_last_error());
    return again == GEMMEPI_OK;
}

/* Whether the failure came about. */
static int run_program(const program *p, long fails_at, int code) {
    work w;
    int i;
    memset(&w, 0, sizeof w);
    w.config = fake_config();
    w.config.routes = p->routes;
    w.config.device = GEMMEPI_DEVICE(0);
    w.config.log = keep_log;
    gpu.other_arch = p->arch;
    gpu.fails_at = fails_at;
    gpu.fail_code = code;
    p->begin(&w);
    for (i = 0; i < (int)GPI__COUNT(p->steps) && p->steps[i]; i++)
        if (!take_step(&w, p, i))
            break;
    gemmepi_plan_destroy(w.plan);
    gemmepi_plan_destroy(w.layer_plan);
    gemmepi_plan_destroy(w.elementwise_plan);
    gemmepi_plan_destroy(w.grouped_plan);
    gpu.failed_call = NULL;
    if (w.context && w.block)
        gemmepi_free(w.context, w.block);
    gemmepi_destroy(w.context);
    forgive_the_end();
    nothing_is_left();
    return fails_at <= gpu.calls;
}

static int is_of_share(int program, int code, int call) {
    const int numbers[] = {program, code, call};
    return test_takes(test_key(numbers, 3));
}

static void each_call_fails_once(const program *programs, int count_of_programs) {
    static const int codes[] = {999, GPI__CUDA_ERROR_OUT_OF_MEMORY};
    int i, c;
    for (i = 0; i < count_of_programs; i++)
        for (c = 0; c < (int)GPI__COUNT(codes); c++) {
            int k = 1;
            while (k < MOST_CALLS && (!is_of_share(i, c, k) || run_program(&programs[i], k, codes[c])))
                k++;
            CHECK(k > 10 && k < MOST_CALLS, "%s: %d calls", programs[i].name, k);
        }
}

#define EACH_CALL_FAILS_ONCE(programs) each_call_fails_once(programs, (int)GPI__COUNT(programs))

/* >>steps */

static gemmepi_status create(work *w) {
    return gemmepi_create(&w->config, &w->context);
}
static gemmepi_status ask(work *w) {
    gemmepi_context_details details;
    return gemmepi_context_info(w->context, &details);
}
static gemmepi_status create_stream(work *w) {
    return gemmepi_stream_create(w->context, &w->stream);
}
static gemmepi_status destroy_stream(work *w) {
    return gemmepi_stream_destroy(w->context, w->stream);
}
static gemmepi_status allocate(work *w) {
    return gemmepi_alloc(w->context, 1000, &w->block);
}
static gemmepi_status upload(work *w) {
    return gemmepi_upload(w->context, w->block, memory[0], 1000, w->stream);
}
static gemmepi_status download(work *w) {
    return gemmepi_download(w->context, memory[0], w->block, 1000, w->stream);
}
static gemmepi_status synchronize(work *w) {
    return gemmepi_synchronize(w->context, w->stream);
}
static gemmepi_status release(work *w) {
    void *block = w->block;
    gemmepi_status status = gemmepi_free(w->context, block);
    if (!status || (gpu.failed_call && is_an_end(gpu.failed_call)))
        w->block = NULL;
    return status;
}

static gemmepi_status product_at_once(work *w) {
    return gemmepi_matmul(w->context, &w->product, &w->product_args, NULL);
}
static gemmepi_status plan_product(work *w) {
    return gemmepi_plan_matmul(w->context, &w->product, &w->plan);
}
static gemmepi_status prepare_product(work *w) {
    return gemmepi_plan_prepare(w->plan, w->stream);
}
static gemmepi_status run_product(work *w) {
    return gemmepi_run_matmul(w->plan, &w->product_args, w->stream);
}
static gemmepi_status tell_product(work *w) {
    gemmepi_plan_details details;
    char text[64];
    gemmepi_plan_explain(w->plan, text, sizeof text);
    return gemmepi_plan_info(w->plan, &details);
}
static gemmepi_status product_ahead(work *w) {
    gemmepi_any_desc problem;
    memset(&problem, 0, sizeof problem);
    problem.matmul = &w->product;
    return gemmepi_precompile(w->context, &problem, 1, 1, NULL, NULL);
}

/* So little time that the first ways alone are built. */
static gemmepi_status product_tuned(work *w) {
    gemmepi_any_desc problem;
    gemmepi_tune_options options;
    memset(&problem, 0, sizeof problem);
    memset(&options, 0, sizeof options);
    problem.matmul = &w->product;
    options.threads = 1, options.milliseconds = 1e-6;
    return gemmepi_tune(w->context, &problem, 1, &options, NULL, NULL);
}

static gemmepi_status forward_at_once(work *w) {
    return gemmepi_linear(w->context, &w->layer, &w->layer_args, NULL);
}
static gemmepi_status backward_at_once(work *w) {
    return gemmepi_linear_backward(w->context, &w->layer, &w->layer_args, NULL);
}
static gemmepi_status plan_forward(work *w) {
    return gemmepi_plan_linear(w->context, &w->layer, &w->layer_plan);
}
static gemmepi_status plan_backward(work *w) {
    return gemmepi_plan_linear_backward(w->context, &w->layer, &w->layer_plan);
}
static gemmepi_status prepare_layer(work *w) {
    return gemmepi_plan_prepare(w->layer_plan, w->stream);
}
static gemmepi_status run_layer(work *w) {
    gemmepi_plan_details details;
    gemmepi_status status = gemmepi_plan_info(w->layer_plan, &details);
    if (status)
        return status;
    return details.kind == GEMMEPI_PLAN_LINEAR
               ? gemmepi_run_linear(w->layer_plan, &w->layer_args, w->stream)
               : gemmepi_run_linear_backward(w->layer_plan, &w->layer_args, w->stream);
}
static gemmepi_status tell_layer(work *w) {
    gemmepi_plan_details details;
    char text[64];
    gemmepi_plan_explain(w->layer_plan, text, sizeof text);
    return gemmepi_plan_info(w->layer_plan, &details);
}
static gemmepi_status grouped_at_once(work *w) {
    return gemmepi_grouped(w->context, &w->grouped, &w->grouped_args, NULL);
}
static gemmepi_status plan_grouped(work *w) {
    return gemmepi_plan_grouped(w->context, &w->grouped, &w->grouped_plan);
}
static gemmepi_status prepare_grouped(work *w) {
    return gemmepi_plan_prepare(w->grouped_plan, w->stream);
}
static gemmepi_status run_grouped(work *w) {
    return gemmepi_run_grouped(w->grouped_plan, &w->grouped_args, w->stream);
}
static gemmepi_status run_grouped_with_alpha(work *w) {
    static const double two = 2;
    gemmepi_grouped_args args = w->grouped_args;
    args.product.alpha = &two;
    return gemmepi_run_grouped(w->grouped_plan, &args, w->stream);
}
static gemmepi_status tell_grouped(work *w) {
    gemmepi_plan_details details;
    char text[64];
    gemmepi_plan_explain(w->grouped_plan, text, sizeof text);
    return gemmepi_plan_info(w->grouped_plan, &details);
}
static gemmepi_status layer_ahead(work *w) {
    gemmepi_any_desc problems[2];
    memset(problems, 0, sizeof problems);
    problems[0].linear = problems[1].linear_backward = &w->layer;
    return gemmepi_precompile(w->context, problems, 2, 1, NULL, NULL);
}

static gemmepi_status elementwise_at_once(work *w) {
    const gemmepi_elementwise_desc *d = &w->elementwise;
    gemmepi_context *context = w->context;
    switch (d->operation) {
    case GEMMEPI_OP_ACTIVATION:
        return gemmepi_activation(context, d->activation, NAN, d->a, d->y, NULL);
    case GEMMEPI_OP_ACTIVATION_BACKWARD:
        return gemmepi_activation_backward(context, d->activation, NAN, d->a, d->dy, d->da, NULL);
    case GEMMEPI_OP_GATED:
        return gemmepi_gated(context, d->activation, 0, d->a, d->b, d->y, NULL);
    case GEMMEPI_OP_LERP:
        return gemmepi_lerp(context, d->a, d->b, d->w, 0, d->y, NULL);
    case GEMMEPI_OP_BIAS_GRAD:
        return gemmepi_bias_grad(context, d->a, d->axis, 0, d->y, NULL);
    default:
        return gemmepi_elementwise(context, d, &w->elementwise_args, NULL);
    }
}
static gemmepi_status plan_elementwise(work *w) {
    return gemmepi_plan_elementwise(w->context, &w->elementwise, &w->elementwise_plan);
}
static gemmepi_status prepare_elementwise(work *w) {
    return gemmepi_plan_prepare(w->elementwise_plan, w->stream);
}
static gemmepi_status run_elementwise(work *w) {
    return gemmepi_run_elementwise(w->elementwise_plan, &w->elementwise_args, w->stream);
}
static gemmepi_status tell_elementwise(work *w) {
    gemmepi_plan_details details;
    char text[64];
    gemmepi_plan_explain(w->elementwise_plan, text, sizeof text);
    return gemmepi_plan_info(w->elementwise_plan, &details);
}
static gemmepi_status elementwise_ahead(work *w) {
    gemmepi_any_desc problem;
    memset(&problem, 0, sizeof problem);
    problem.elementwise = &w->elementwise;
    return gemmepi_precompile(w->context, &problem, 1, 1, NULL, NULL);
}

#define PRODUCT_STEPS                                                                                        \
    {                                                                                                        \
        create, product_at_once, product_at_once, create_stream, plan_product, prepare_product, run_product, \
            tell_product, ask, destroy_stream, NULL                                                          \
    }
#define AHEAD_STEPS(ahead, at_once) \
    { create, ahead, at_once, NULL }

/* >>what they work on */

static void nothing_more(work *w) {
    (void)w;
}

static void a_product(work *w, gemmepi_dtype dtype, gemmepi_epilogue epilogue) {
    gemmepi_matmul_args *args = &w->product_args;
    w->product.m = w->product.n = w->product.k = EDGE;
    w->product.batch = 1;
    w->product.a.dtype = dtype;
    w->product.epilogue = epilogue;
    args->a = memory[0], args->b = memory[1], args->d = memory[2];
    args->bias = epilogue & GEMMEPI_BIAS ? memory[3] : NULL;
    args->aux = epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD) ? memory[4] : NULL;
    args->bias_grad = epilogue & (GEMMEPI_BGRAD | GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B) ? memory[5] : NULL;
}
static void with_bias(work *w) {
    a_product(w, GEMMEPI_F32, GEMMEPI_BIAS);
}
static void with_silu(work *w) {
    a_product(w, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_BIAS);
}
static void with_a_gradient(work *w) {
    a_product(w, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD);
}
static void with_sums_of_b(work *w) {
    a_product(w, GEMMEPI_BF16, GEMMEPI_BGRAD_B);
}
/* Its operands are not of types that are multiplied as they are. */
static void of_mixed_types(work *w) {
    a_product(w, GEMMEPI_BF16, GEMMEPI_SILU);
    w->product.b.dtype = GEMMEPI_F32;
}
static void at_odd_lines(work *w) {
    a_product(w, GEMMEPI_BF16, GEMMEPI_SILU);
    w->product.a.ld = EDGE + 1;
    w->product.k = 4 * EDGE;
    w->product.a.ld = 4 * EDGE + 1;
}
static void without_terms(work *w) {
    a_product(w, GEMMEPI_F32, GEMMEPI_TANH | GEMMEPI_BIAS);
    w->product.k = 0;
    w->product_args.a = w->product_args.b = NULL;
}
static void without_rows(work *w) {
    a_product(w, GEMMEPI_BF16, GEMMEPI_BGRAD_B);
    w->product.m = 0;
}
/* A second kernel where the plan has one for alpha 1 alone. */
static void with_alpha(work *w) {
    static const double two = 2;
    with_silu(w);
    w->product_args.alpha = &two;
}
/* cuBLASLt takes it when it plans and refuses it when it runs. */
static void refused_when_run(work *w) {
    a_product(w, GEMMEPI_BF16, GEMMEPI_RELU);
    gpu.refuses_epilogues = 1;
}

static void some_groups(work *w) {
    w->grouped.product.m = w->grouped.product.n = w->grouped.product.k = EDGE;
    w->grouped.product.a.dtype = GEMMEPI_BF16;
    w->grouped.groups = 4;
    w->grouped.gather_a = EDGE;
    w->grouped_args.product.a = memory[0];
    w->grouped_args.product.b = memory[1];
    w->grouped_args.product.d = memory[2];
    w->grouped_args.ends = (const int32_t *)memory[3];
    w->grouped_args.index_a = (const int32_t *)memory[4];
}
static void groups_of_k(work *w) {
    some_groups(w);
    w->grouped.grouping = GEMMEPI_GROUPS_OF_K;
    w->grouped.product.a.transposed = 1;
}

static void a_layer(work *w) {
    gemmepi_linear_args *args = &w->layer_args;
    w->layer.m = w->layer.n = w->layer.k = EDGE;
    w->layer.batch = 1;
    w->layer.a.dtype = GEMMEPI_BF16;
    w->layer.activation = GEMMEPI_SILU;
    w->layer.flags = GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB |
                     GEMMEPI_LINEAR_DBIAS;
    args->a = memory[0], args->b = memory[1], args->bias = memory[2], args->preact = memory[3];
    args->dy = memory[4], args->da = memory[5], args->db = memory[6], args->dbias = memory[7];
    args->y = memory[4] + ROWS;
}

static gemmepi_tensor tensors[8];
static int64_t shapes[2][2] = {{ROWS, 8}, {8, 0}};
enum { MATRIX, LINE };

static const gemmepi_tensor *tensor(int number, int shape, gemmepi_dtype dtype) {
    gemmepi_tensor *t = &tensors[number];
    memset(t, 0, sizeof *t);
    t->data = memory[number];
    t->dtype = dtype;
    t->rank = shape == LINE ? 1 : 2;
    t->shape = shapes[shape];
    return t;
}

/* Of the operands, those that are bits of `which`, the first being a; lines are bits of `lines`. */
static void an_operation(work *w, gemmepi_operation operation, unsigned which, unsigned lines) {
    const gemmepi_tensor *t[8];
    int i;
    for (i = 0; i < 8; i++)
        t[i] = which >> i & 1 ? tensor(i, lines >> i & 1 ? LINE : MATRIX, GEMMEPI_F32) : NULL;
    w->elementwise.operation = operation;
    w->elementwise.activation = operation <= GEMMEPI_OP_GATED_BACKWARD ? GEMMEPI_SILU : GEMMEPI_NONE;
    w->elementwise.a = t[0], w->elementwise.b = t[1], w->elementwise.w = t[2], w->elementwise.dy = t[3];
    w->elementwise.y = t[4], w->elementwise.da = t[5], w->elementwise.db = t[6], w->elementwise.dw = t[7];
#define DATA(i) (t[i] ? (void *)memory[i] : NULL)
    w->elementwise_args.a = DATA(0), w->elementwise_args.b = DATA(1), w->elementwise_args.w = DATA(2);
    w->elementwise_args.dy = DATA(3), w->elementwise_args.y = DATA(4), w->elementwise_args.da = DATA(5);
    w->elementwise_args.db = DATA(6), w->elementwise_args.dw = DATA(7);
#undef DATA
}
enum { OF_A = 1, OF_B = 2, OF_W = 4, OF_DY = 8, OF_Y = 16, OF_DA = 32, OF_DB = 64, OF_DW = 128 };

static void activation(work *w) {
    an_operation(w, GEMMEPI_OP_ACTIVATION, OF_A | OF_Y, 0);
}
static void activation_backward(work *w) {
    an_operation(w, GEMMEPI_OP_ACTIVATION_BACKWARD, OF_A | OF_DY | OF_DA, 0);
}
static void gated(work *w) {
    an_operation(w, GEMMEPI_OP_GATED, OF_A | OF_B | OF_Y, 0);
}
static void gated_backward(work *w) {
    an_operation(w, GEMMEPI_OP_GATED_BACKWARD, OF_A | OF_B | OF_DY | OF_DA | OF_DB, 0);
}
static void lerp(work *w) {
    an_operation(w, GEMMEPI_OP_LERP, OF_A | OF_B | OF_W | OF_Y, OF_B | OF_W);
}
/* One gradient for each index, and two that are sums. */
static void lerp_backward(work *w) {
    an_operation(w, GEMMEPI_OP_LERP_BACKWARD, OF_A | OF_B | OF_W | OF_DY | OF_DA | OF_DB | OF_DW,
                 OF_B | OF_W | OF_DB | OF_DW);
}
static void bias_grad(work *w) {
    an_operation(w, GEMMEPI_OP_BIAS_GRAD, OF_A | OF_Y, OF_Y);
    w->elementwise.axis = 1;
}
static void cast_with_a_new_scale(work *w) {
    an_operation(w, GEMMEPI_OP_CAST, OF_A | OF_Y, 0);
    tensors[4].dtype = GEMMEPI_E4M3;
    w->elementwise.scale_mode = GEMMEPI_SCALE_TENSOR;
    w->elementwise.flags = GEMMEPI_CAST_Y_SCALE;
    w->elementwise_args.y_scale = (float *)(void *)memory[6];
}

/* >>tests */

#define ONLY(route) (1u << GEMMEPI_ROUTE_##route)

static void each_call_of_memory_and_streams_may_fail(void) {
    static const program programs[] = {
        {"memory",
         0,
         0,
         nothing_more,
         {create, ask, create_stream, allocate, upload, download, synchronize, release, destroy_stream}},
    };
    EACH_CALL_FAILS_ONCE(programs);
}

static void each_call_of_a_product_may_fail_on_each_route(void) {
    static const program programs[] = {
        {"lt", ONLY(LT), 0, with_bias, PRODUCT_STEPS},
        {"split", ONLY(SPLIT), 0, with_silu, PRODUCT_STEPS},
        {"split with sums", ONLY(SPLIT), 0, with_a_gradient, PRODUCT_STEPS},
        {"split with sums of b", ONLY(SPLIT), 0, with_sums_of_b, PRODUCT_STEPS},
        {"split of mixed types", ONLY(SPLIT), 0, of_mixed_types, PRODUCT_STEPS},
        {"plain", ONLY(PLAIN), 0, with_silu, PRODUCT_STEPS},
        {"plain with sums", ONLY(PLAIN), 0, with_a_gradient, PRODUCT_STEPS},
        {"without terms", 0, 0, without_terms, PRODUCT_STEPS},
        {"without rows", 0, 0, without_rows, PRODUCT_STEPS},
        {"any route", 0, 0, with_silu, PRODUCT_STEPS},
    };
    EACH_CALL_FAILS_ONCE(programs);
}

static void each_call_of_a_kernel_of_ours_may_fail(void) {
    static const program programs[] = {
        {"fused on hopper", ONLY(FUSED), 90, with_silu, PRODUCT_STEPS},
        {"fused with sums", ONLY(FUSED), 90, with_a_gradient, PRODUCT_STEPS},
        {"fused with alpha", ONLY(FUSED), 90, with_alpha, PRODUCT_STEPS},
        {"fused at odd lines", ONLY(FUSED), 90, at_odd_lines, PRODUCT_STEPS},
        {"fused on ampere", ONLY(FUSED), 80, with_silu, PRODUCT_STEPS},
        {"fused in f32", ONLY(FUSED), 80, with_bias, PRODUCT_STEPS},
        {"fused on blackwell", ONLY(FUSED), 120, with_a_gradient, PRODUCT_STEPS},
    };
    EACH_CALL_FAILS_ONCE(programs);
}

static void each_call_may_fail_after_a_refusal_of_cublaslt(void) {
    static const program programs[] = {
        {"refused, then split", ONLY(LT) | ONLY(SPLIT), 0, refused_when_run, PRODUCT_STEPS},
        {"refused, then plain", ONLY(LT) | ONLY(PLAIN), 0, refused_when_run, PRODUCT_STEPS},
    };
    EACH_CALL_FAILS_ONCE(programs);
}

static void each_call_of_a_layer_may_fail(void) {
    static const program programs[] = {
        {"forward",
         0,
         0,
         a_layer,
         {create, forward_at_once, create_stream, plan_forward, prepare_layer, run_layer, tell_layer,
          destroy_stream}},
        {"backward",
         0,
         0,
         a_layer,
         {create, backward_at_once, create_stream, plan_backward, prepare_layer, run_layer, tell_layer,
          destroy_stream}},
        {"backward by cublaslt",
         ONLY(LT) | ONLY(SPLIT),
         0,
         a_layer,
         {create, backward_at_once, create_stream, plan_backward, prepare_layer, run_layer, tell_layer,
          destroy_stream}},
    };
    EACH_CALL_FAILS_ONCE(programs);
}

static void each_call_of_a_grouped_product_may_fail(void) {
    static const program programs[] = {
        {"rows",
         0,
         90,
         some_groups,
         {create, grouped_at_once, create_stream, plan_grouped, prepare_grouped, run_grouped,
          run_grouped_with_alpha, tell_grouped, destroy_stream}},
        {"of k",
         0,
         90,
         groups_of_k,
         {create, grouped_at_once, create_stream, plan_grouped, prepare_grouped, run_grouped, tell_grouped,
          destroy_stream}},
        {"by plain",
         ONLY(PLAIN),
         0,
         some_groups,
         {create, grouped_at_once, create_stream, plan_grouped, prepare_grouped, run_grouped, tell_grouped,
          destroy_stream}},
    };
    EACH_CALL_FAILS_ONCE(programs);
}

#define ELEMENTWISE_STEPS                                                                                   \
    {                                                                                                       \
        create, elementwise_at_once, create_stream, plan_elementwise, prepare_elementwise, run_elementwise, \
            tell_elementwise, destroy_stream, NULL                                                          \
    }

static void each_call_of_an_elementwise_operation_may_fail(void) {
    static const program programs[] = {
        {"activation", 0, 0, activation, ELEMENTWISE_STEPS},
        {"activation_backward", 0, 0, activation_backward, ELEMENTWISE_STEPS},
        {"gated", 0, 0, gated, ELEMENTWISE_STEPS},
        {"gated_backward", 0, 0, gated_backward, ELEMENTWISE_STEPS},
        {"lerp", 0, 0, lerp, ELEMENTWISE_STEPS},
        {"lerp_backward", 0, 0, lerp_backward, ELEMENTWISE_STEPS},
        {"bias_grad", 0, 0, bias_grad, ELEMENTWISE_STEPS},
        {"cast", 0, 0, cast_with_a_new_scale, ELEMENTWISE_STEPS},
    };
    EACH_CALL_FAILS_ONCE(programs);
}

static void each_call_of_work_ahead_may_fail(void) {
    static const program programs[] = {
        {"products ahead", 0, 0, with_silu, AHEAD_STEPS(product_ahead, product_at_once)},
        {"products tuned", 0, 0, with_silu, AHEAD_STEPS(product_tuned, product_at_once)},
        {"layers ahead", 0, 0, a_layer, AHEAD_STEPS(layer_ahead, backward_at_once)},
        {"element-wise ahead", 0, 0, lerp_backward, AHEAD_STEPS(elementwise_ahead, elementwise_at_once)},
    };
    EACH_CALL_FAILS_ONCE(programs);
}

int main(void) {
    RUN(each_call_of_memory_and_streams_may_fail);
    RUN(each_call_of_a_product_may_fail_on_each_route);
    RUN(each_call_of_a_kernel_of_ours_may_fail);
    RUN(each_call_may_fail_after_a_refusal_of_cublaslt);
    RUN(each_call_of_a_layer_may_fail);
    RUN(each_call_of_a_grouped_product_may_fail);
    RUN(each_call_of_an_elementwise_operation_may_fail);
    RUN(each_call_of_work_ahead_may_fail);
    return test_finish();
}
