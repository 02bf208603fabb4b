/* Kernels compiled ahead of the first run, by gemmepi_precompile and in plans: on the fake GPU of fake_cuda.h. */
#include "fake_program.h"

enum { AHEAD = 12 };

/* A list in which every kind of problem is, and some twice. */
typedef struct ahead_list {
    gemmepi_matmul_desc products[AHEAD];
    gemmepi_linear_desc layer;
    gemmepi_any_desc problems[AHEAD];
    size_t told; /* by progress */
    int in_order;
} ahead_list;

static void make_ahead(ahead_list *list) {
    static const gemmepi_epilogue activations[] = {GEMMEPI_SILU, GEMMEPI_MISH, GEMMEPI_GELU_ERF,
                                                   GEMMEPI_QUICK_GELU};
    int i;
    memset(list, 0, sizeof *list);
    for (i = 0; i < AHEAD; i++) {
        list->products[i] = product(GEMMEPI_BF16, activations[i % 4] | GEMMEPI_BIAS);
        list->problems[i].matmul = &list->products[i];
    }
    list->layer.m = list->layer.k = EDGE, list->layer.n = DEPTH;
    list->layer.batch = 1;
    list->layer.a.dtype = GEMMEPI_BF16;
    list->layer.activation = GEMMEPI_SILU;
    list->layer.flags = GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DBIAS;
    list->problems[AHEAD - 1].matmul = NULL;
    list->problems[AHEAD - 1].linear_backward = &list->layer;
    list->in_order = 1;
}

static void note_progress(void *user, size_t done, size_t total) {
    ahead_list *list = (ahead_list *)user;
    list->in_order = list->in_order && done == list->told + 1 && total == AHEAD;
    list->told = done;
}

static void what_is_precompiled_is_there(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    static ahead_list list;
    gemmepi_matmul_args args;
    long compiled;
    int i;
    make_ahead(&list);
    CHECK(gemmepi_precompile(context, list.problems, AHEAD, 0, note_progress, &list) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    CHECK(list.told == AHEAD && list.in_order, "told of %d problems", (int)list.told);
    compiled = gpu.compilations;
    CHECK(compiled == 6, "%ld kernels, of 4 activations and a gradient with its sums", compiled);
    CHECK(gpu.products == 0 && gpu.launches == 0, "%ld products, %ld launches", gpu.products, gpu.launches);
    for (i = 0; i < AHEAD - 1; i++) {
        args = args_for(&list.products[i]);
        CHECK(gemmepi_matmul(context, &list.products[i], &args, NULL) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
    }
    CHECK(gpu.compilations == compiled, "%ld more", gpu.compilations - compiled);
    CHECK(gemmepi_precompile(context, list.problems, AHEAD, 3, NULL, NULL) == GEMMEPI_OK &&
              gpu.compilations == compiled,
          "again: %s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void kernels_are_compiled_side_by_side(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    static ahead_list list;
    make_ahead(&list);
    gpu.meeting = 4;
    CHECK(gemmepi_precompile(context, list.problems, 4, 4, NULL, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    CHECK(gpu.met == 4, "at most %ld at a time", gpu.met);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void grouped_products_are_compiled_ahead(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_grouped_desc desc;
    gemmepi_any_desc problem;
    gemmepi_plan *plan = NULL;
    gpu.other_arch = 90;
    context = open_fake(&config);
    context->multiprocessors = 132;
    memset(&desc, 0, sizeof desc);
    memset(&problem, 0, sizeof problem);
    desc.product.m = 256, desc.product.n = 128, desc.product.k = 64;
    desc.product.a.dtype = GEMMEPI_BF16;
    desc.groups = 4;
    problem.grouped = &desc;
    CHECK(gemmepi_precompile(context, &problem, 1, 1, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.compilations == 3, "%ld kernels: the check of groups, the product, and that with alpha and C",
          gpu.compilations);
    CHECK(gemmepi_plan_grouped(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.compilations == 3, "%ld kernels", gpu.compilations);
    gemmepi_plan_destroy(plan);
    desc.groups = 0;
    CHECK(gemmepi_precompile(context, &problem, 1, 1, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("desc.groups is 0"),
          "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void threads_that_want_the_same_kernel_wait_for_one(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_any_desc problems[8];
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_SILU);
    int i;
    memset(problems, 0, sizeof problems);
    for (i = 0; i < 8; i++)
        problems[i].matmul = &desc;
    gpu.meeting = 2; /* the one takes its time, so that the others come meanwhile */
    gpu.patience = 100000;
    CHECK(gemmepi_precompile(context, problems, 8, 8, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.compilations == 1, "%ld compiled", gpu.compilations);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_problem_that_fails_keeps_no_other_from_being_compiled(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    static ahead_list list;
    make_ahead(&list);
    list.products[2].m = -1;
    list.problems[5].matmul = NULL;
    list.problems[7].linear = &list.layer;
    CHECK(gemmepi_precompile(context, list.problems, AHEAD, 4, note_progress, &list) ==
              GEMMEPI_INVALID_ARGUMENT,
          "%s", gemmepi_last_error());
    CHECK(sentence_has("problems[2]") && sentence_has("desc.m"), "%s", gemmepi_last_error());
    CHECK(list.told == AHEAD && gpu.compilations == 6, "%d told, %ld compiled", (int)list.told,
          gpu.compilations);
    CHECK(gemmepi_precompile(context, list.problems + 5, 1, 1, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("problems[0]: 0 of matmul"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_precompile(context, list.problems + 7, 1, 1, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("problems[0]: 2 of matmul"),
          "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_kernel_that_did_not_compile_is_tried_again(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_SILU);
    gemmepi_any_desc problems[4];
    int i;
    memset(problems, 0, sizeof problems);
    for (i = 0; i < 4; i++)
        problems[i].matmul = &desc;
    break_function("nvrtcCompileProgram", GPI__NVRTC_ERROR_COMPILATION);
    CHECK(gemmepi_precompile(context, problems, 4, 4, NULL, NULL) == GEMMEPI_COMPILE_ERROR &&
              sentence_has("problems[0]"),
          "%s", gemmepi_last_error());
    gpu.fails = NULL;
    CHECK(gemmepi_precompile(context, problems, 4, 4, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.compilations == 5, "%ld compilations, four that failed and one", gpu.compilations);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_list_that_is_none_is_refused(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    static ahead_list list;
    make_ahead(&list);
    CHECK(gemmepi_precompile(NULL, list.problems, 1, 0, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("context is NULL"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_precompile(context, NULL, 1, 0, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("problems is NULL"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_precompile(context, list.problems, (size_t)-1, 1, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("no array is so long") &&
              gemmepi_tune(context, list.problems, (size_t)-1, NULL, NULL, NULL) ==
                  GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("no array is so long"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_precompile(context, list.problems, 1, -2, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("threads is -2"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_precompile(context, NULL, 0, 0, note_progress, &list) == GEMMEPI_OK && list.told == 0, "%s",
          gemmepi_last_error());
    CHECK(gpu.compilations == 0, "%ld compiled", gpu.compilations);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* What is made ahead of its runs has both kernels: a list's product. A gradient that is added to another reads that as a residual. */
static void kernels_for_alpha_and_c_are_built_ahead(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    gemmepi_any_desc problem;
    gemmepi_linear_desc layer;
    gemmepi_linear_args run;
    gemmepi_plan *backward = NULL;
    double two = 2;
    long kernels;
    config.routes = 1u << GEMMEPI_ROUTE_FUSED;
    context = open_fake(&config);
    memset(&problem, 0, sizeof problem);
    problem.matmul = &desc;
    CHECK(gemmepi_precompile(context, &problem, 1, 1, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    kernels = gpu.compilations;
    args.alpha = &two;
    CHECK(kernels == 2 && gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK &&
              gpu.compilations == kernels,
          "%ld kernels, then %ld: %s", kernels, gpu.compilations, gemmepi_last_error());
    memset(&layer, 0, sizeof layer);
    memset(&run, 0, sizeof run);
    layer.m = 2048, layer.n = 1024, layer.k = 512, layer.batch = 1;
    layer.a.dtype = GEMMEPI_BF16;
    layer.flags = GEMMEPI_LINEAR_DB | GEMMEPI_ACCUMULATE_DB;
    CHECK(gemmepi_plan_linear_backward(context, &layer, &backward) == GEMMEPI_OK, "%s", gemmepi_last_error());
    kernels = gpu.compilations;
    run.a = args.a, run.dy = args.b, run.db = args.d;
    CHECK(gemmepi_run_linear_backward(backward, &run, NULL) == GEMMEPI_OK && gpu.compilations == kernels &&
              !gpu.last_fused.epilogue.uses_c && gpu.last_fused.epilogue.residual.data == run.db,
          "%ld kernels more: %s", gpu.compilations - kernels, gemmepi_last_error());
    gemmepi_plan_destroy(backward);
    gemmepi_destroy(context);
    nothing_is_left();
}

int main(void) {
    keep_libraries_open();
    RUN(what_is_precompiled_is_there);
    RUN(kernels_are_compiled_side_by_side);
    RUN(grouped_products_are_compiled_ahead);
    RUN(threads_that_want_the_same_kernel_wait_for_one);
    RUN(a_problem_that_fails_keeps_no_other_from_being_compiled);
    RUN(a_kernel_that_did_not_compile_is_tried_again);
    RUN(a_list_that_is_none_is_refused);
    RUN(kernels_for_alpha_and_c_are_built_ahead);
    return test_finish();
}
