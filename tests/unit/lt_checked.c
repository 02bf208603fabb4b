/* With config.check cuBLASLt is checked where nobody has measured it, on the fake GPU of fake_cuda.h, whose cuBLASLt can be wrong. There kernels
   and products leave their results as they were, so that what is not wrong is right to the bit. */
#include "fake_program.h"

enum {
    BY_LT = 1u << GEMMEPI_ROUTE_LT,
    BY_SPLIT = 1u << GEMMEPI_ROUTE_SPLIT,
    BY_PLAIN = 1u << GEMMEPI_ROUTE_PLAIN
};
static const unsigned char right[4], one_unit[4] = {1, 0, 0, 0}, four_units[4] = {4, 0, 0, 0},
                                     far_off[4] = {0, 0, 0, 0x40};

/* A context that checks, on a chip with a version of cuBLASLt whose first answer is one algorithm and whose second is another. */
static gemmepi_context *begin(int arch, int version, uint32_t routes, const char *cache) {
    gemmepi_config config = config_with_all_routes();
    gpu.other_arch = arch, gpu.other_cublaslt = version;
    gpu.heuristic_answers = 2;
    memset(gpu.algorithms, 0, sizeof gpu.algorithms);
    gpu.algorithms[0].id = 24, gpu.algorithms[1].id = 31;
    config.routes = routes;
    config.check = 1;
    config.log = keep_log;
    config.cache_path = cache;
    gpu.lt_calls = gpu.products = 0;
    return open_fake(&config);
}

static void spoil(int algorithm, const unsigned char bits[4]) {
    gpu.wrong_algorithm = algorithm;
    memcpy(gpu.wrong_bits, bits, sizeof gpu.wrong_bits);
}

static void end(gemmepi_context *context) {
    gemmepi_destroy(context);
    gpu.other_arch = gpu.other_cublaslt = gpu.wrong_algorithm = 0;
    gpu.heuristic_answers = 1;
    memset(gpu.algorithms, 0, sizeof gpu.algorithms);
    nothing_is_left();
}

static gemmepi_matmul_desc with_bias(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_BIAS);
    desc.b.transposed = 1;
    return desc;
}

/* What the plan of the desc runs, and whether explain says so much; destroys it. */
static gemmepi_plan_details planned_details(gemmepi_context *context, const gemmepi_matmul_desc *desc,
                                            const char *says) {
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    memset(&details, 0, sizeof details);
    if (gemmepi_plan_matmul(context, desc, &plan) == GEMMEPI_OK &&
        gemmepi_plan_info(plan, &details) == GEMMEPI_OK) {
        char text[4096];
        gemmepi_plan_explain(plan, text, sizeof text);
        CHECK(strstr(text, says), "explain lacks '%s': %s", says, text);
    } else {
        CHECK(0, "%s", gemmepi_last_error());
    }
    gemmepi_plan_destroy(plan);
    return details;
}

static void a_right_algorithm_is_checked_once_and_used(void) {
    gemmepi_context *context = begin(86, 130100, BY_LT | BY_PLAIN, "");
    gemmepi_matmul_desc desc = with_bias();
    gemmepi_plan_details details =
        planned_details(context, &desc, "found this algorithm off by 0 of the bound");
    long calls = gpu.lt_calls;
    CHECK(details.route == GEMMEPI_ROUTE_LT && strstr(details.kernel, "algorithm 24"), "%s", details.kernel);
    CHECK(calls == 2, "%ld calls, of which one is with C", calls);
    desc.m = 640;
    desc.n = 648;
    details = planned_details(context, &desc, "found this algorithm off by 0 of the bound");
    CHECK(gpu.lt_calls == calls, "another size of the kind: %ld calls more", gpu.lt_calls - calls);
    desc.b.transposed = 0;
    details = planned_details(context, &desc, "found this algorithm off by 0 of the bound");
    CHECK(gpu.lt_calls == calls + 2, "another kind: %ld calls more", gpu.lt_calls - calls);
    end(context);
}

static void a_wrong_algorithm_is_left_for_the_next(void) {
    gemmepi_context *context = begin(86, 130100, BY_LT | BY_PLAIN, "");
    gemmepi_matmul_desc desc = with_bias();
    gemmepi_plan_details details;
    spoil(24, four_units);
    details = planned_details(context, &desc, "left out other algorithms, which are wrong on this GPU");
    CHECK(strstr(details.kernel, "algorithm 31"), "%s", details.kernel);
    CHECK(strstr(logged, "is wrong here") && strstr(logged, "algorithm 24: BF16 x BF16 transposed") &&
              strstr(logged, "BIAS"),
          "%s", logged);
    end(context);
}

static void where_all_are_wrong_another_route_runs_the_product(void) {
    gemmepi_context *context = begin(89, 130100, BY_LT | BY_SPLIT | BY_PLAIN, "");
    gemmepi_matmul_desc desc = with_bias();
    gemmepi_plan_details details;
    gpu.algorithms[1].id = 24;
    spoil(24, far_off);
    details = planned_details(context, &desc, "are wrong on this GPU, as config.check has found");
    CHECK(details.route == GEMMEPI_ROUTE_PLAIN || details.route == GEMMEPI_ROUTE_FUSED, "%s",
          details.route_name);
    end(context);
}

/* Half a unit is what both may round by. */
static void a_unit_of_the_result_is_within_the_bound_and_four_are_not(void) {
    static const struct {
        const unsigned char *bits;
        int is_wrong;
    } cases[] = {{right, 0}, {one_unit, 0}, {four_units, 1}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_context *context = begin(86, 130100, BY_LT | BY_PLAIN, "");
        gemmepi_matmul_desc desc = with_bias();
        gemmepi_plan_details details;
        spoil(24, cases[i].bits);
        details = planned_details(context, &desc, "off by");
        CHECK((strstr(details.kernel, "algorithm 31") != NULL) == cases[i].is_wrong, "%d: %s", (int)i,
              details.kernel);
        end(context);
    }
}

static void bare_products_of_split_are_checked(void) {
    static const gemmepi_dtype types[] = {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_F64, GEMMEPI_I8, GEMMEPI_E4M3};
    size_t i;
    for (i = 0; i < GPI__COUNT(types); i++) {
        int wrong;
        for (wrong = 0; wrong < 2; wrong++) {
            gemmepi_context *context = begin(80, 130100, BY_SPLIT | BY_PLAIN, "");
            gemmepi_matmul_desc desc = product(types[i], GEMMEPI_SILU | GEMMEPI_BIAS);
            gemmepi_plan_details details;
            desc.b.transposed = 1;
            desc.a.scale.mode = types[i] == GEMMEPI_E4M3 ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
            spoil(wrong ? 24 : 0, far_off);
            details =
                planned_details(context, &desc, wrong ? "are wrong on this GPU" : "found this algorithm");
            CHECK(details.route == GEMMEPI_ROUTE_SPLIT &&
                      (strstr(details.kernel, "algorithm 31") != NULL) == wrong,
                  "%d: %s", (int)i, details.kernel);
            end(context);
        }
    }
}

/* The extents of what is checked, as the last product was described, cannot be seen here; that they are small can: the trial has memory for
   them alone. */
static void large_products_are_checked_by_small_ones(void) {
    gemmepi_context *context = begin(86, 130100, BY_LT | BY_PLAIN, "");
    gemmepi_matmul_desc desc = with_bias();
    size_t before = gpu.device_bytes;
    desc.m = desc.n = desc.k = 16384 + 8;
    desc.batch = 5;
    desc.a.batch_stride = desc.m * desc.k, desc.b.batch_stride = 0, desc.d.batch_stride = desc.m * desc.n;
    planned_details(context, &desc, "found this algorithm");
    CHECK(gpu.device_bytes - before < (size_t)4 << 20, "%llu bytes", (gpi__ull)(gpu.device_bytes - before));
    end(context);
}

static void what_the_table_has_is_not_checked(void) {
    static const struct {
        int arch, version, is_checked;
    } cases[] = {{90, 130100, 0}, {90, 130199, 0},  {90, 130200, 1},
                 {90, 120900, 1}, {100, 130100, 1}, {89, 130100, 1}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_context *context = begin(cases[i].arch, cases[i].version, BY_LT | BY_PLAIN, "");
        gemmepi_matmul_desc desc = lt_product();
        gemmepi_plan *plan = NULL;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gpu.lt_calls == 2 * cases[i].is_checked, "%d, version %d: %ld calls", cases[i].arch,
              cases[i].version, gpu.lt_calls);
        CHECK(explain_has(plan, "is not measured on compute capability") == cases[i].is_checked, "%d",
              (int)i);
        gemmepi_plan_destroy(plan);
        end(context);
    }
}

/* What nobody has seen of an algorithm is not relied on without a check. */
static void without_config_check_nothing_is_run_and_the_documentation_is_relied_on(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_matmul_desc documented = lt_product(), bias = with_bias();
    gemmepi_context *context;
    gemmepi_plan *plan = NULL;
    config.routes = BY_LT;
    gpu.other_arch = 86, gpu.lt_calls = 0;
    context = open_fake(&config);
    planned_details(context, &documented, "is taken for right, as documented; config.check would check it");
    CHECK(gpu.lt_calls == 0, "%ld calls", gpu.lt_calls);
    CHECK(gemmepi_plan_matmul(context, &bias, &plan) == GEMMEPI_UNSUPPORTED &&
              sentence_has("not measured on this chip"),
          "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    gpu.other_arch = 0;
    nothing_is_left();
}

static void what_was_found_is_kept_on_disk(void) {
    int i;
    gemmepi_matmul_desc desc = with_bias();
    new_folder();
    for (i = 0; i < 2; i++) {
        gemmepi_context *context = begin(86, 130100, BY_LT | BY_PLAIN, folder);
        gemmepi_plan_details details;
        spoil(24, four_units);
        details = planned_details(context, &desc, "left out other algorithms");
        CHECK(strstr(details.kernel, "algorithm 31") && (gpu.lt_calls == 0) == i, "%s, %ld calls",
              details.kernel, gpu.lt_calls);
        end(context);
    }
    { /* of another version nothing is known */
        gemmepi_context *context = begin(86, 130200, BY_LT | BY_PLAIN, folder);
        planned_details(context, &desc, "found this algorithm");
        CHECK(gpu.lt_calls == 2, "%ld calls", gpu.lt_calls);
        end(context);
    }
    empty_folder();
}

static void nothing_is_checked_in_a_capture_but_later(void) {
    gemmepi_context *context = begin(86, 130100, BY_LT | BY_PLAIN, "");
    gemmepi_matmul_desc desc = lt_product();
    gpu.is_capturing = 1;
    planned_details(context, &desc, "it has not been checked yet");
    CHECK(gpu.lt_calls == 0 && strstr(logged, "a plan is not checked while a stream is captured"), "%s",
          logged);
    gpu.is_capturing = 0;
    planned_details(context, &desc, "found this algorithm");
    CHECK(gpu.lt_calls == 2, "%ld calls", gpu.lt_calls);
    end(context);
}

static void what_cannot_be_checked_is_used_with_a_warning(void) {
    static const char *const broken_ones[] = {"nvrtcCompileProgram", "cuMemAlloc_v2", "cublasLtMatmul",
                                              "cuStreamCreate"};
    size_t i;
    for (i = 0; i < GPI__COUNT(broken_ones); i++) {
        gemmepi_context *context = begin(86, 130100, BY_LT | BY_PLAIN, "");
        gemmepi_matmul_desc desc = lt_product();
        gemmepi_plan_details details;
        break_function(broken_ones[i], i == 2 ? GPI__CUBLAS_STATUS_NOT_SUPPORTED : 2);
        details = planned_details(context, &desc, "could not be");
        CHECK(details.route == GEMMEPI_ROUTE_LT && strstr(logged, "could not be checked"), "%s: %s",
              broken_ones[i], logged);
        gpu.fails = NULL;
        end(context);
    }
}

static void one_shot_calls_layers_and_networks_check_too(void) {
    gemmepi_context *context = begin(86, 130100, BY_LT | BY_SPLIT | BY_PLAIN, "");
    gemmepi_matmul_desc desc = with_bias();
    gemmepi_matmul_args args = args_for(&desc);
    gemmepi_linear_desc layer;
    gemmepi_network_layer wide;
    gemmepi_network_desc network;
    gemmepi_plan *plan = NULL;
    spoil(24, four_units);
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strstr(logged, "is wrong here"), "%s", logged);
    memset(&layer, 0, sizeof layer);
    layer.m = layer.n = EDGE, layer.k = DEPTH;
    layer.a.dtype = GEMMEPI_F16;
    layer.activation = GEMMEPI_SILU,
    layer.flags = GEMMEPI_LINEAR_SAVED | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB;
    CHECK(gemmepi_plan_linear_backward(context, &layer, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strstr(logged, ": F16 x F16"), "%s", logged);
    gemmepi_plan_destroy(plan);
    memset(&wide, 0, sizeof wide), memset(&network, 0, sizeof network);
    wide.width = 2 * DEPTH;
    network.rows = EDGE, network.input = DEPTH, network.layers = &wide, network.layer_count = 1;
    network.dtype = GEMMEPI_F64;
    CHECK(gemmepi_plan_network(context, &network, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strstr(logged, ": F64 x F64"), "%s", logged);
    gemmepi_plan_destroy(plan);
    end(context);
}

static gemmepi_context *shared_by_threads;

static void *plan_one(void *unused) {
    gemmepi_matmul_desc desc = with_bias();
    (void)unused;
    planned_details(shared_by_threads, &desc, "left out other algorithms");
    return NULL;
}

static void threads_that_plan_one_kind_check_it_once(void) {
    pthread_t threads[4];
    int i;
    shared_by_threads = begin(86, 130100, BY_LT | BY_PLAIN, "");
    spoil(24, far_off);
    for (i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, plan_one, NULL) == 0, "no thread");
    for (i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(gpu.lt_calls == 4, "%ld calls, of which two are of each algorithm", gpu.lt_calls);
    end(shared_by_threads);
}

/* Tuning compares with the other ways, but by percents; the answer is checked as what is chosen untuned is. */
static void an_answer_of_tuning_that_is_wrong_is_not_used(void) {
    int wrong;
    for (wrong = 0; wrong < 2; wrong++) {
        gemmepi_context *context = begin(86, 130100, BY_LT | BY_PLAIN, "");
        gemmepi_matmul_desc desc = with_bias();
        gemmepi_any_desc any;
        gemmepi_tune_options options;
        gemmepi_plan_details details;
        memset(&any, 0, sizeof any);
        memset(&options, 0, sizeof options);
        any.matmul = &desc;
        options.milliseconds = 200, options.threads = 1;
        gpu.launch_time = 50, gpu.product_time = 5, gpu.answer_time = 1;
        spoil(wrong ? 24 : 0, four_units);
        CHECK(gemmepi_tune(context, &any, 1, &options, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        details = planned_details(context, &desc, "off by");
        CHECK(wrong || details.ways_timed > 1, "the answer is not used");
        CHECK(strstr(details.kernel, wrong ? "algorithm 31" : "algorithm 24"), "%s", details.kernel);
        CHECK(!wrong || strstr(logged, "ignoring a tuning answer"), "%s", logged);
        gpu.launch_time = gpu.product_time = gpu.answer_time = 0;
        end(context);
    }
}

static void bad_values_are_refused(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = NULL;
    config.check = 2;
    CHECK(gemmepi_create(&config, &context) == GEMMEPI_INVALID_ARGUMENT && !context &&
              sentence_has("config.check is 2; accepted are 0 and 1"),
          "%s", gemmepi_last_error());
}

int main(void) {
    plug_in();
    keep_libraries_open();
    RUN(a_right_algorithm_is_checked_once_and_used);
    RUN(a_wrong_algorithm_is_left_for_the_next);
    RUN(where_all_are_wrong_another_route_runs_the_product);
    RUN(a_unit_of_the_result_is_within_the_bound_and_four_are_not);
    RUN(bare_products_of_split_are_checked);
    RUN(large_products_are_checked_by_small_ones);
    RUN(what_the_table_has_is_not_checked);
    RUN(without_config_check_nothing_is_run_and_the_documentation_is_relied_on);
    RUN(what_was_found_is_kept_on_disk);
    RUN(nothing_is_checked_in_a_capture_but_later);
    RUN(what_cannot_be_checked_is_used_with_a_warning);
    RUN(one_shot_calls_layers_and_networks_check_too);
    RUN(threads_that_plan_one_kind_check_it_once);
    RUN(an_answer_of_tuning_that_is_wrong_is_not_used);
    RUN(bad_values_are_refused);
    return test_finish();
}
