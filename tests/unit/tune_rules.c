/* What tuning may be trusted with, on the fake GPU of fake_cuda.h: what is timed whatever the budget, what replaces what was there, and
   tuning on first use. */
#include "tuned.h"

#define NO_TIME 1e-6 /* milliseconds: whatever is compiled takes longer */

/* >>times */

/* Of a launch by the beginning of its kernel's name, or of all others; of a product of cuBLASLt's. */
static struct {
    const char *kernel;
    double its, others, product;
} times;

static void take_times(const fake_launch *launch) {
    gpu.launch_time = times.kernel && strncmp(launch->entry, times.kernel, strlen(times.kernel)) == 0
                          ? times.its
                          : times.others;
}

static void set_times(const char *kernel, double its, double others, double product) {
    times.kernel = kernel, times.its = its, times.others = others, times.product = product;
    gpu.watch = take_times;
    gpu.product_time = product, gpu.answer_time = 0, gpu.heuristic_answers = 2;
}

static gemmepi_context *open_with(double tune, const char *cache) {
    gemmepi_config config = config_with_all_routes();
    config.log = keep_log;
    config.tune = tune;
    config.cache_path = cache;
    return open_fake(&config);
}

static void close_one(gemmepi_context *context) {
    gpu.watch = NULL;
    gemmepi_destroy(context);
    nothing_is_left();
}

static gemmepi_status tune_for(gemmepi_context *context, const gemmepi_any_desc *problem, double milliseconds,
                               int again) {
    gemmepi_tune_options options;
    memset(&options, 0, sizeof options);
    options.threads = 1, options.milliseconds = milliseconds, options.again = again;
    return gemmepi_tune(context, problem, 1, &options, NULL, NULL);
}

static void tune(gemmepi_context *context, const gemmepi_matmul_desc *desc, double milliseconds) {
    gemmepi_any_desc problem = any(desc);
    CHECK(tune_for(context, &problem, milliseconds, 0) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

/* >>what is timed, whatever the budget */

/* Which route is fastest decides, though there is no time to compile more than the first ways. */
static void the_fastest_route_is_taken_without_any_time(void) {
    static const struct {
        int64_t m, n, k;
        const char *kernel;
        double its, others, product;
        gemmepi_route route;
    } cases[] = {
        {2048, 1024, 512, "gemmepi_sm90_", 5, 50, 40, GEMMEPI_ROUTE_FUSED},
        {2048, 1024, 512, "gemmepi_pass", 2, 50, 10, GEMMEPI_ROUTE_SPLIT},
        {2048, 1024, 512, "gemmepi_plain_", 5, 50, 40, GEMMEPI_ROUTE_PLAIN},
        {8, 64, 16, "gemmepi_plain_", 5, 2, 40, GEMMEPI_ROUTE_FUSED},
        {8, 64, 16, "gemmepi_plain_", 5, 20, 40, GEMMEPI_ROUTE_PLAIN},
    };
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        gemmepi_context *context = open_with(0, "");
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_plan_details details;
        desc.m = cases[i].m, desc.n = cases[i].n, desc.k = cases[i].k;
        set_times(cases[i].kernel, cases[i].its, cases[i].others, cases[i].product);
        tune(context, &desc, NO_TIME);
        details = details_for(context, &desc);
        CHECK(details.route == cases[i].route && details.ways_timed >= 3 && details.ways_left > 0,
              "%d: %s, %d ways and %d left", i, details.route_name, details.ways_timed, details.ways_left);
        close_one(context);
    }
}

static void lt_is_timed_whatever_the_budget(void) {
    gemmepi_context *context = open_with(0, "");
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_BIAS);
    gemmepi_plan_details details;
    desc.m = 136, desc.n = 360, desc.k = 10, desc.flags = GEMMEPI_RELAXED;
    details = details_for(context, &desc);
    CHECK(details.route != GEMMEPI_ROUTE_LT, "untuned it is lt's");
    set_times(NULL, 50, 50, 5);
    tune(context, &desc, NO_TIME);
    details = details_for(context, &desc);
    CHECK(details.route == GEMMEPI_ROUTE_LT, "%s", details.route_name);
    close_one(context);
}

/* All take as long: the kernel that is chosen untuned stays, with and without time for others. */
static void what_is_chosen_untuned_stays_where_nothing_is_faster(void) {
    static const double budgets[] = {NO_TIME, 0};
    int i, k;
    for (i = 0; i < 2; i++)
        for (k = 0; k < 3; k++) {
            gemmepi_context *context = open_with(0, "");
            gemmepi_matmul_desc desc = k == 2 ? lt_product() : fused_product();
            gemmepi_plan_details before, after;
            if (k == 1)
                desc.m = 8, desc.k = 16;
            before = details_for(context, &desc);
            set_times("gemmepi_pass", 0.01, 5, 4.96);
            tune(context, &desc, budgets[i]);
            after = details_for(context, &desc);
            CHECK(strcmp(before.kernel, after.kernel) == 0 && before.route == after.route &&
                      after.microseconds > 0,
                  "%d %d: %s became %s", i, k, before.kernel, after.kernel);
            CHECK(after.ways_timed > 2 && (after.ways_left > 0) == (i == 0), "%d %d: %d of %d", i, k,
                  after.ways_left, after.ways_timed);
            close_one(context);
        }
}

static void what_was_not_timed_is_told(void) {
    int has_time;
    for (has_time = 0; has_time < 2; has_time++) {
        gemmepi_context *context = open_with(0, "");
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_plan *plan = NULL;
        set_times(NULL, 5, 5, 5);
        tune(context, &desc, has_time ? 0 : NO_TIME);
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(explain_has(plan, "and was the fastest of ") &&
                  explain_has(plan, " other ways were not timed") == !has_time,
              "has time: %d", has_time);
        CHECK((strstr(logged, "others were not timed") != NULL) == !has_time, "%s", logged);
        gemmepi_plan_destroy(plan);
        close_one(context);
    }
}

static void a_way_replaces_another_by_more_than_two_timings_differ(void) {
    static const struct {
        double way, one, other;
        int replaces;
    } cases[] = {{98, 100, 100, 1}, {99.5, 100, 100, 0}, {101, 100, 100, 0},  {98, 100, 101, 1},
                 {98, 100, 103, 0}, {98, 103, 100, 0},   {90, 100, 103, 1},   {70, 100, 150, 0},
                 {49, 100, 150, 1}, {100, 100, 200, 0},  {99.1, 101, 100, 0}, {96.9, 101, 99, 1}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++)
        CHECK(gpi__replaces(cases[i].way, cases[i].one, cases[i].other) == cases[i].replaces, "%d", i);
}

/* >>what was there is kept */

static void an_older_answer_stays_where_tuning_again_fails_or_finds_nothing_faster(void) {
    gemmepi_context *context = open_with(0, "");
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_any_desc problem = any(&desc);
    gemmepi_plan_details first, after;
    set_times("gemmepi_pass", 2, 50, 10);
    tune(context, &desc, 0);
    first = details_for(context, &desc);
    CHECK(first.route == GEMMEPI_ROUTE_SPLIT, "%s", first.route_name);
    gpu.largest_block = 1;
    CHECK(tune_for(context, &problem, 0, 1) == GEMMEPI_OUT_OF_MEMORY, "%s", gemmepi_last_error());
    gpu.largest_block = 0;
    after = details_for(context, &desc);
    CHECK(strcmp(after.kernel, first.kernel) == 0 && after.microseconds == first.microseconds, "%s",
          after.kernel);
    set_times("gemmepi_pass", 2, 11.95, 10); /* half a percent is no reason */
    CHECK(tune_for(context, &problem, 0, 1) == GEMMEPI_OK, "%s", gemmepi_last_error());
    after = details_for(context, &desc);
    CHECK(strcmp(after.kernel, first.kernel) == 0, "%s", after.kernel);
    set_times("gemmepi_pass", 2, 11, 10);
    CHECK(tune_for(context, &problem, 0, 1) == GEMMEPI_OK, "%s", gemmepi_last_error());
    after = details_for(context, &desc);
    CHECK(after.route == GEMMEPI_ROUTE_FUSED, "%s", after.route_name);
    close_one(context);
}

/* >>formulas and groups */

static const char formula[] = "d = max(min(v, 3) + x, 0) * row";

/* The formula is inside the kernel for Hopper, inside that of PLAIN, or a pass behind cuBLASLt's product. */
static void a_formula_is_where_it_takes_least(void) {
    static const struct {
        const char *kernel;
        double its, others, product;
        gemmepi_route route;
        const char *explained;
    } cases[] = {{"gemmepi_sm90_", 5, 50, 40, GEMMEPI_ROUTE_FUSED, "inside the kernel"},
                 {"gemmepi_formula", 2, 50, 10, GEMMEPI_ROUTE_SPLIT,
                  "not inside a kernel: v and a pass over it took less"},
                 {"gemmepi_plain_", 5, 50, 40, GEMMEPI_ROUTE_PLAIN, "inside the kernel"}};
    int i, loads;
    for (i = 0; i < (int)GPI__COUNT(cases); i++)
        for (loads = 0; loads < 2; loads++) {
            gemmepi_context *context = open_with(0, loads ? folder : new_folder());
            gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_NONE);
            gemmepi_operand operand;
            gemmepi_plan_details details;
            gemmepi_plan *plan = NULL;
            memset(&operand, 0, sizeof operand);
            operand.name = "x", operand.kind = GEMMEPI_FULL;
            desc.m = 1024, desc.n = 512, desc.k = 256;
            desc.operands = &operand, desc.operand_count = 1, desc.formula = formula;
            set_times(cases[i].kernel, cases[i].its, cases[i].others, cases[i].product);
            if (!loads)
                tune(context, &desc, 0);
            CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.route == cases[i].route &&
                      details.microseconds > 0 && explain_has(plan, cases[i].explained) &&
                      details.bit_stable == loads,
                  "%d %d: %s, %s, %g us; %s", i, loads, details.route_name, details.kernel,
                  details.microseconds, logged);
            gemmepi_plan_destroy(plan);
            close_one(context);
        }
    empty_folder();
}

/* What checks and gathers takes 1 us, and products 50 or, of the kernel that is to be taken, 5. */
static void take_times_of_groups(const fake_launch *launch) {
    int is_product =
        strncmp(launch->entry, "gemmepi_sm90_", 13) == 0 || strncmp(launch->entry, "gemmepi_plain_", 14) == 0;
    take_times(launch);
    if (!is_product)
        gpu.launch_time = 1;
}

static void groups_have_their_shapes_timed(void) {
    static const struct {
        const char *kernel;
        gemmepi_route route;
    } cases[] = {{"gemmepi_sm90_", GEMMEPI_ROUTE_FUSED}, {"gemmepi_plain_", GEMMEPI_ROUTE_PLAIN}};
    int i, of_k, gathers, loads;
    for (i = 0; i < 16; i++) {
        gemmepi_context *context;
        gemmepi_grouped_desc desc;
        gemmepi_any_desc problem;
        gemmepi_plan_details details;
        gemmepi_plan *plan = NULL;
        of_k = i >> 1 & 1, gathers = i >> 2 & 1, loads = i >> 3;
        memset(&desc, 0, sizeof desc), memset(&problem, 0, sizeof problem);
        desc.groups = 5;
        desc.grouping = of_k ? GEMMEPI_GROUPS_OF_K : GEMMEPI_GROUPS_OF_ROWS;
        desc.product.m = 512, desc.product.n = 256, desc.product.k = 128;
        desc.product.a.dtype = GEMMEPI_BF16, desc.product.a.transposed = of_k;
        desc.gather_a = gathers ? 700 : 0, desc.scatter_d = gathers && !of_k ? 900 : 0;
        problem.grouped = &desc;
        context = open_with(loads ? 20 : 0, "");
        set_times(cases[i & 1].kernel, 5, 50, 40);
        gpu.watch = take_times_of_groups;
        if (!loads)
            CHECK(tune_for(context, &problem, 0, 0) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(gemmepi_plan_grouped(context, &desc, &plan) == GEMMEPI_OK, "%d: %s", i, gemmepi_last_error());
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && details.route == cases[i & 1].route &&
                  details.microseconds > 0 && details.ways_timed > 1 && explain_has(plan, "tuned: it took"),
              "%d: %s, %g us, %d ways; %s", i, details.kernel, details.microseconds, details.ways_timed,
              logged);
        gemmepi_plan_destroy(plan);
        close_one(context);
    }
}

/* >>on first use */

static int is_timed(void) {
    return gpu.now > 0;
}

static gemmepi_status call(gemmepi_context *context, const gemmepi_matmul_desc *desc) {
    gemmepi_matmul_args args = fused_args();
    gemmepi_status status;
    gpu.is_untouched = 1;
    status = gemmepi_matmul(context, desc, &args, NULL);
    gpu.is_untouched = 0;
    return status;
}

static void a_call_is_tuned_on_first_use_and_never_again(void) {
    double tune_for_ms, now;
    for (tune_for_ms = 0; tune_for_ms < 60; tune_for_ms += 50) {
        gemmepi_context *context = open_with(tune_for_ms, "");
        gemmepi_matmul_desc desc = fused_product();
        long products;
        set_times("gemmepi_pass", 2, 50, 10);
        CHECK(call(context, &desc) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK((context->answers.count == 1) == (tune_for_ms > 0), "%lu answers",
              (unsigned long)context->answers.count);
        now = gpu.now, products = gpu.products;
        CHECK(call(context, &desc) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gpu.now < now + 100, "%g us were timed", gpu.now - now);
        CHECK((gpu.products == products + 1) == (tune_for_ms > 0), "%ld products", gpu.products - products);
        close_one(context);
    }
}

static void plans_and_layers_are_tuned_on_first_use(void) {
    gemmepi_context *context = open_with(50, "");
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_linear_desc layer;
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    set_times(NULL, 5, 5, 50);
    details = details_for(context, &desc);
    CHECK(details.microseconds > 0 && context->answers.count == 1, "%g us", details.microseconds);
    memset(&layer, 0, sizeof layer);
    layer.m = 512, layer.n = 256, layer.k = 128;
    layer.a.dtype = GEMMEPI_BF16;
    layer.flags = GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB;
    CHECK(gemmepi_plan_linear_backward(context, &layer, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && !details.bit_stable &&
              context->answers.count == 3,
          "%lu answers", (unsigned long)context->answers.count);
    gemmepi_plan_destroy(plan);
    close_one(context);
}

/* With a formula, too, whose plan is found by its text. */
static void in_a_capture_nothing_is_tuned_and_the_next_call_does_it(void) {
    int has_formula;
    for (has_formula = 0; has_formula < 2; has_formula++) {
        gemmepi_context *context = open_with(50, "");
        gemmepi_matmul_desc desc = fused_product();
        if (has_formula) {
            desc.epilogue = GEMMEPI_NONE;
            desc.formula = "d = min(max(v, -3), 3) * 0.3";
        }
        set_times(NULL, 5, 5, 50);
        gpu.is_capturing = 1;
        if (has_formula) {
            gemmepi_matmul_args args = fused_args();
            args.bias = NULL;
            CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(context->answers.count == 0 && strstr(logged, "not tuned while a stream is captured"), "%s",
                  logged);
            gpu.is_capturing = 0;
            CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        } else {
            CHECK(call(context, &desc) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(details_for(context, &desc).microseconds <= 0, "a plan is tuned in a capture");
            CHECK(context->answers.count == 0 && strstr(logged, "not tuned while a stream is captured"), "%s",
                  logged);
            gpu.is_capturing = 0;
            CHECK(call(context, &desc) == GEMMEPI_OK, "%s", gemmepi_last_error());
        }
        CHECK(context->answers.count == 1 && is_timed(), "%d: %lu answers; %s", has_formula,
              (unsigned long)context->answers.count, logged);
        close_one(context);
    }
}

static void a_call_without_memory_to_tune_runs_untuned_and_does_not_try_again(void) {
    gemmepi_context *context = open_with(50, "");
    gemmepi_matmul_desc desc = fused_product();
    int i;
    set_times(NULL, 5, 5, 50);
    gpu.largest_block = 1;
    for (i = 0; i < 3; i++)
        CHECK(call(context, &desc) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(context->answers.count == 0 && lines_of("2 a plan stays untuned: ") == 1, "%s", logged);
    gpu.largest_block = 0;
    close_one(context);
}

static void the_cache_folder_keeps_what_first_uses_find(void) {
    gemmepi_context *context = open_with(50, new_folder());
    gemmepi_matmul_desc desc = fused_product();
    double now;
    set_times(NULL, 5, 5, 50);
    CHECK(call(context, &desc) == GEMMEPI_OK && context->answers.count == 1, "%s", gemmepi_last_error());
    close_one(context);
    context = open_with(50, folder);
    set_times(NULL, 5, 5, 50);
    now = gpu.now;
    CHECK(call(context, &desc) == GEMMEPI_OK && gpu.now <= now + 100 && context->answers.count == 1, "%g us",
          gpu.now - now);
    close_one(context);
    empty_folder();
}

static void gemmepi_tune_has_its_own_time_where_plans_are_tuned_on_first_use(void) {
    gemmepi_context *context = open_with(NO_TIME, "");
    gemmepi_matmul_desc desc = fused_product();
    set_times(NULL, 5, 5, 50);
    tune(context, &desc, 0);
    CHECK(details_for(context, &desc).ways_left == 0, "the time was config.tune");
    close_one(context);
}

enum { THREADS = 8 };

static void *call_often(void *user) {
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    int i;
    for (i = 0; i < 20; i++)
        if (gemmepi_matmul((gemmepi_context *)user, &desc, &args, NULL))
            return user;
    return NULL;
}

static void threads_that_call_at_once_tune_once(void) {
    gemmepi_context *context = open_with(50, "");
    pthread_t threads[THREADS];
    void *failed;
    int i;
    gpu.launch_time = 5, gpu.product_time = 50;
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, call_often, context) == 0, "no thread");
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        CHECK(!failed, "thread %d", i);
    }
    CHECK(lines_of("3 tuned ") == 1 && context->answers.count == 1, "%s", logged);
    close_one(context);
}

static void times_of_first_uses_that_are_no_times_are_refused(void) {
    static const double refused[] = {-1, NAN, 2e9};
    int i;
    for (i = 0; i < 3; i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = NULL;
        config.tune = refused[i];
        CHECK(gemmepi_create(&config, &context) == GEMMEPI_INVALID_ARGUMENT &&
                  sentence_has("config.tune is "),
              "%s", gemmepi_last_error());
    }
}

int main(void) {
    keep_libraries_open();
    RUN(the_fastest_route_is_taken_without_any_time);
    RUN(lt_is_timed_whatever_the_budget);
    RUN(what_is_chosen_untuned_stays_where_nothing_is_faster);
    RUN(what_was_not_timed_is_told);
    RUN(a_way_replaces_another_by_more_than_two_timings_differ);
    RUN(an_older_answer_stays_where_tuning_again_fails_or_finds_nothing_faster);
    RUN(a_formula_is_where_it_takes_least);
    RUN(groups_have_their_shapes_timed);
    RUN(a_call_is_tuned_on_first_use_and_never_again);
    RUN(plans_and_layers_are_tuned_on_first_use);
    RUN(in_a_capture_nothing_is_tuned_and_the_next_call_does_it);
    RUN(a_call_without_memory_to_tune_runs_untuned_and_does_not_try_again);
    RUN(the_cache_folder_keeps_what_first_uses_find);
    RUN(gemmepi_tune_has_its_own_time_where_plans_are_tuned_on_first_use);
    RUN(threads_that_call_at_once_tune_once);
    RUN(times_of_first_uses_that_are_no_times_are_refused);
    return test_finish();
}
