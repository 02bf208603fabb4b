/* What gemmepi_tune holds against each other, on the fake GPU of fake_cuda.h: ways whose results are others are left out, every kind of
   kernel has ways, problems that differ have answers of their own, and progress is told. */
#include "tuned.h"

enum { ROWS = 512, COLUMNS = 256, K = 128 };

static gemmepi_matmul_desc small_product(gemmepi_dtype dtype, gemmepi_epilogue epilogue) {
    gemmepi_matmul_desc desc = product(dtype, epilogue);
    desc.m = ROWS, desc.n = COLUMNS, desc.k = K;
    return desc;
}

/* Launches take 5 us, products of cuBLASLt 50. */
static gemmepi_context *open_timed(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    config.log = keep_log;
    context = open_fake(&config);
    gpu.launch_time = 5, gpu.product_time = 50, gpu.heuristic_answers = 2;
    return context;
}

static void close_timed(gemmepi_context *context) {
    gpu.watch = NULL;
    gemmepi_destroy(context);
    nothing_is_left();
}

static void tune(gemmepi_context *context, const gemmepi_matmul_desc *desc) {
    gemmepi_any_desc problem = any(desc);
    gemmepi_tune_options options;
    memset(&options, 0, sizeof options);
    options.threads = 1;
    CHECK(gemmepi_tune(context, &problem, 1, &options, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

/* >>results that are others */

/* The kernel for Hopper, which is the fastest, writes something. */
static void spoil_d(const fake_launch *launch) {
    const gpi__sm90_params *p = (const gpi__sm90_params *)launch->params;
    if (strncmp(launch->entry, "gemmepi_sm90_", 13) == 0)
        memset(p->epilogue.d.data, 0x41, 2 * ROWS * COLUMNS);
}

static void a_way_whose_results_are_others_is_left_out_and_told(void) {
    int spoils;
    for (spoils = 0; spoils < 2; spoils++) {
        gemmepi_context *context = open_timed();
        gemmepi_matmul_desc desc = small_product(GEMMEPI_BF16, GEMMEPI_BIAS | GEMMEPI_SILU);
        gemmepi_plan_details details;
        gpu.watch = spoils ? spoil_d : NULL;
        tune(context, &desc);
        details = details_for(context, &desc);
        CHECK(details.microseconds > 0 && (strncmp(details.kernel, "gemmepi_sm90_", 13) == 0) == !spoils,
              "%s is taken", details.kernel);
        CHECK((strstr(logged, "tuning left out the route fused") != NULL) == spoils &&
                  (strstr(logged, "whose results are not those of the reference: ") != NULL) == spoils,
              "the log has: %s", logged);
        close_timed(context);
    }
}

/* PLAIN takes 1 us, all others 5, whatever its estimate. */
static void be_fast_in_plain(const fake_launch *launch) {
    gpu.launch_time = strncmp(launch->entry, "gemmepi_plain_", 14) == 0 ? 1 : 5;
}

static void plain_is_timed_whatever_its_estimate(void) {
    static const struct { int64_t m, k; } cases[] = {{8, 16}, {4096, 2048}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        gemmepi_context *context = open_timed();
        gemmepi_matmul_desc desc = small_product(GEMMEPI_BF16, GEMMEPI_BIAS | GEMMEPI_SILU);
        gemmepi_plan_details details;
        desc.m = cases[i].m, desc.k = cases[i].k;
        gpu.watch = be_fast_in_plain;
        tune(context, &desc);
        details = details_for(context, &desc);
        CHECK(details.route == GEMMEPI_ROUTE_PLAIN, "%d: %s, %g us", i, details.kernel, details.microseconds);
        close_timed(context);
    }
}

/* PLAIN takes 350 us, and all others 110, or 120: what is more than three times as slow is not timed by turns. */
static long plain_launches;
static double other_time;

static void be_slow_in_plain(const fake_launch *launch) {
    int is_plain = strncmp(launch->entry, "gemmepi_plain_", 14) == 0;
    gpu.launch_time = is_plain ? 350 : other_time;
    plain_launches += is_plain;
}

static void what_is_far_slower_when_run_once_is_not_timed_by_turns(void) {
    int is_far;
    for (is_far = 0; is_far < 2; is_far++) {
        gemmepi_context *context = open_timed();
        gemmepi_matmul_desc desc = small_product(GEMMEPI_BF16, GEMMEPI_BIAS | GEMMEPI_SILU);
        other_time = is_far ? 110 : 120;
        gpu.product_time = 400;
        gpu.watch = be_slow_in_plain;
        plain_launches = 0;
        tune(context, &desc);
        CHECK((plain_launches == 3) == is_far, "%ld launches of plain",
              plain_launches); /* as the reference, and two */
        close_timed(context);
    }
}

/* Of so many bits of a mask. */
static unsigned char spoiled_bits;

static void spoil_mask(const fake_launch *launch) {
    const gpi__sm90_params *p = (const gpi__sm90_params *)launch->params;
    if (strncmp(launch->entry, "gemmepi_sm90_", 13) == 0) {
        unsigned char *mask = (unsigned char *)p->epilogue.aux.data;
        int i;
        for (i = 0; i < 1024; i++)
            mask[i] ^= spoiled_bits;
    }
}

static void a_few_bits_of_a_mask_may_differ(void) {
    int many;
    for (many = 0; many < 2; many++) {
        gemmepi_context *context = open_timed();
        gemmepi_matmul_desc desc = small_product(GEMMEPI_BF16, GEMMEPI_BIAS | GEMMEPI_RELU | GEMMEPI_AUX);
        spoiled_bits = many ? 0xff : 0;
        gpu.watch = spoil_mask;
        tune(context, &desc);
        CHECK((strstr(logged, "tuning left out the route fused") != NULL) == many, "the log has: %s", logged);
        close_timed(context);
    }
    {
        char x[100], y[100];
        int i;
        memset(x, 0x55, sizeof x);
        memcpy(y, x, sizeof y);
        for (i = 0; i < 18; i++) /* 8 and a tenth of the bytes */
            y[5 * i] ^= (char)(1 << i % 8);
        CHECK(gpi__bits_agree(x, y, sizeof x), "18 bits of 100 bytes");
        y[99] ^= (char)0x80;
        CHECK(!gpi__bits_agree(x, y, sizeof x), "19 bits of 100 bytes");
    }
}

/* A product of cuBLASLt adds something to D, and is told that D is C. */
static long added, not_added;

static void add_to_d(const fake_product *made) {
    float *d = (float *)(uintptr_t)made->pointers[3];
    int i;
    for (i = 0; i < ROWS * COLUMNS; i += 64)
        d[i] += 64;
    added++;
    not_added += made->beta != 1 || made->pointers[2] != made->pointers[3];
}

static void each_way_adds_to_the_same_d(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = small_product(GEMMEPI_BF16, GEMMEPI_NONE);
    config.routes = 1u << GEMMEPI_ROUTE_LT;
    config.log = keep_log;
    context = open_fake(&config);
    gpu.launch_time = 5, gpu.product_time = 50, gpu.heuristic_answers = 2;
    gpu.multiplies = add_to_d;
    added = not_added = 0;
    desc.d.dtype = GEMMEPI_F32, desc.flags = GEMMEPI_ACCUMULATE;
    tune(context, &desc);
    CHECK(added > 2 && not_added == 0, "%ld of %ld runs do not add to D", not_added, added);
    CHECK(!strstr(logged, "tuning left out"), "the log has: %s", logged);
    gpu.multiplies = NULL;
    close_timed(context);
}

static void the_time_of_a_way_is_the_median_of_its_rounds(void) {
    static const double times[] = {5, 1, 9, 7, 3};
    static const double medians[] = {GPI__NEVER, 5, 5, 5, 7, 5}; /* of an even count the upper of both */
    int rounds;
    for (rounds = 0; rounds <= 5; rounds++) {
        gpi__timed timed;
        memset(&timed, 0, sizeof timed);
        memcpy(timed.times, times, sizeof times < sizeof timed.times ? sizeof times : sizeof timed.times);
        timed.rounds = rounds;
        CHECK(gpi__median(&timed) == medians[rounds] && timed.times[0] == 5, "%d rounds: %g", rounds,
              gpi__median(&timed));
    }
}

/* >>a trial's memory */

enum { CACHE = 10000 };

static gpi__cu_result tell_cache(int *value, int attribute, gpi__cu_device device) {
    (void)attribute, (void)device;
    *value = CACHE;
    return 0;
}

/* So many sets as are not less than three caches, 64 at most, and no more than the memory holds, but for one. */
static void sets_of_a_trial_fill_three_caches_or_the_memory(void) {
    static const size_t sizes[] = {256, 468, 469, 470, 14999, 15000, 15001, 29999, 30000, 30001, 100000};
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    size_t i, wanted, most;
    context->driver.device_get_attribute = tell_cache;
    for (i = 0; i < GPI__COUNT(sizes); i++)
        for (most = sizes[i] - 1; most < 70 * sizes[i]; most += most % sizes[i] ? 1 : sizes[i] - 1) {
            gpi__trial trial;
            memset(&trial, 0, sizeof trial);
            trial.context = context, trial.set = sizes[i];
            for (wanted = 0; wanted < 64 && wanted * sizes[i] < 3 * CACHE;)
                wanted++;
            while (wanted > 1 && wanted * sizes[i] > most)
                wanted--;
            CHECK(gpi__count_sets(&trial, most) == GEMMEPI_OK && trial.sets == (int)wanted,
                  "%d bytes, %d at most: %d sets, not %d", (int)sizes[i], (int)most, trial.sets, (int)wanted);
        }
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_trial_has_half_its_sets_where_there_is_no_memory_for_all(void) {
    size_t room;
    for (room = 0; room <= 8; room++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gpi__trial trial;
        gemmepi_status status;
        int wanted = 7;
        memset(&trial, 0, sizeof trial);
        trial.context = context, trial.set = 4096, trial.sets = 7;
        gpu.largest_block = room ? 4096 * room : 1;
        while (wanted > (int)room)
            wanted /= 2;
        status = gpi__acquire_trial_memory(&trial);
        CHECK(trial.sets == wanted && status == (wanted ? GEMMEPI_OK : GEMMEPI_OUT_OF_MEMORY) &&
                  (trial.memory != NULL) == (wanted != 0),
              "room for %d: %d sets, not %d; %s", (int)room, trial.sets, wanted, gemmepi_last_error());
        gpu.largest_block = 0;
        if (trial.memory)
            gemmepi_free(context, trial.memory);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* >>which ways there are */

static void kernels_for_fp8_and_for_weights_in_i8_are_timed(void) {
    static const struct {
        gemmepi_dtype a, b;
        int arch;
        const char *kernel;
    } cases[] = {{GEMMEPI_BF16, GEMMEPI_BF16, 90, "gemmepi_sm90_"},
                 {GEMMEPI_E4M3, GEMMEPI_E4M3, 90, "gemmepi_sm90_"},
                 {GEMMEPI_BF16, GEMMEPI_I8, 80, "gemmepi_weights_"}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        gemmepi_context *context;
        gemmepi_matmul_desc desc = small_product(cases[i].a, GEMMEPI_NONE);
        gemmepi_plan_details before, details;
        gemmepi_config config = config_with_all_routes();
        gpu.other_arch = cases[i].arch;
        context = open_fake(&config);
        gpu.launch_time = 5, gpu.product_time = 50, gpu.heuristic_answers = 2;
        desc.b.dtype = cases[i].b, desc.b.transposed = 1, desc.d.dtype = GEMMEPI_BF16;
        if (cases[i].b == GEMMEPI_I8)
            desc.m = 16, desc.b.scale.mode = GEMMEPI_SCALE_OUTER;
        before = details_for(context, &desc);
        CHECK(strncmp(before.kernel, cases[i].kernel, strlen(cases[i].kernel)) == 0, "%d: %s", i,
              before.kernel);
        tune(context, &desc);
        details = details_for(context, &desc);
        CHECK(details.route == GEMMEPI_ROUTE_FUSED && fabs(details.microseconds - 5) < 0.1 &&
                  details.tile_m > 0 && details.tile_n > 0,
              "%d: %s, %g us", i, details.kernel, details.microseconds);
        gpu.other_arch = 0;
        close_timed(context);
    }
}

/* Of a product that many shapes run, with k in up to 32 parts, 32 ways of engines are timed at most, and some numbers of parts stand for all. */
static void ways_of_engines_are_32_at_most_and_of_few_numbers_of_parts(void) {
    static gpi__ways ways;
    gemmepi_context *context = open_timed();
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_SILU);
    gpi__problem problem;
    int i, engines = 0, plain = 0;
    uint64_t parts = 0;
    context->multiprocessors = 132;
    desc.m = desc.n = 128, desc.k = 4096;
    CHECK(gpi__normalise(&desc, 256, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gpi__enumerate_ways(context, &problem, &ways);
    for (i = 0; i < ways.count; i++) {
        engines += ways.list[i].route == GEMMEPI_ROUTE_FUSED;
        plain += ways.list[i].route == GEMMEPI_ROUTE_PLAIN;
        parts |= ways.list[i].route == GEMMEPI_ROUTE_FUSED ? (uint64_t)1 << ways.list[i].parts : 0;
    }
    CHECK(engines == 32 && plain == 1, "%d ways of engines, %d of PLAIN", engines, plain);
    CHECK(parts ==
              ((uint64_t)1 << 32 | 1u << 24 | 1u << 16 | 1u << 12 | 1u << 8 | 1u << 6 | 1u << 4 | 1u << 1),
          "parts are 0x%llx", (unsigned long long)parts);
    close_timed(context);
}

/* A call takes 4 us: in a burst 8 calls are timed at once, in a graph 200 at most. */
static void calls_of_a_graph_are_as_many_as_the_mode_says(void) {
    static const struct {
        gemmepi_tune_mode mode;
        double launch;
        long calls;
    } cases[] = {{GEMMEPI_TUNE_BURST, 5, 8},
                 {GEMMEPI_TUNE_BURST, 200, 4},
                 {GEMMEPI_TUNE_GRAPH, 5, 160},
                 {GEMMEPI_TUNE_GRAPH, 2, 200},
                 {GEMMEPI_TUNE_GRAPH, 900, 2}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context;
        gemmepi_matmul_desc desc = small_product(GEMMEPI_BF16, GEMMEPI_NONE);
        gemmepi_any_desc problem = any(&desc);
        gemmepi_tune_options options;
        long least;
        memset(&options, 0, sizeof options);
        config.routes = 1u << GEMMEPI_ROUTE_PLAIN; /* one way */
        context = open_fake(&config);
        options.mode = cases[i].mode, options.threads = 1;
        gpu.launch_time = cases[i].launch;
        CHECK(gemmepi_tune(context, &problem, 1, &options, NULL, NULL) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        least = cases[i].calls;
        CHECK(gpu.launches >= least && gpu.launches < least + 8, "%d: %ld launches for graphs of %ld", i,
              gpu.launches, least);
        close_timed(context);
    }
}

/* >>answers */

/* Those of formulas that differ in what they compute or in where an operand lies are others, and saved they are found again. */
static void a_formula_has_an_answer_of_its_own(void) {
    static const char *const formulas[] = {"d = max(min(v, 3) + x, 0) * row",
                                           "d = max(min(v, 4) + x, 0) * row",
                                           "d = max(min(v, 3) - x, 0) * row"};
    gemmepi_context *context = open_timed();
    gemmepi_operand operand;
    unsigned char digests[4][GPI__DIGEST_SIZE];
    int i, j;
    memset(&operand, 0, sizeof operand);
    operand.name = "x", operand.kind = GEMMEPI_FULL;
    for (i = 0; i < 5; i++) {
        gemmepi_matmul_desc desc = small_product(GEMMEPI_BF16, GEMMEPI_NONE);
        gpi__problem problem;
        desc.operands = &operand, desc.operand_count = 1;
        desc.formula = formulas[i < 3 ? i : 0];
        operand.ld = i == 3 ? COLUMNS + 8 : 0;
        CHECK(gpi__convert_problem(context, &desc, 16, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gpi__problem_digest(&problem, digests[i < 4 ? i : 3]);
        for (j = 0; j < i && i < 4; j++)
            CHECK(memcmp(digests[i], digests[j], sizeof digests[0]) != 0, "%d and %d have one answer", i, j);
        if (i == 4) /* the first one again */
            CHECK(memcmp(digests[3], digests[0], sizeof digests[0]) == 0, "the same has two answers");
        gpi__drop_formulas(context, &problem);
    }
    close_timed(context);
}

/* >>progress */

typedef struct told {
    size_t calls, done, count;
} told;

static void keep_told(void *user, size_t done, size_t count) {
    told *t = (told *)user;
    t->calls++;
    CHECK(done == t->calls, "%lu are done at call %lu", (unsigned long)done, (unsigned long)t->calls);
    t->done = done, t->count = count;
}

static void progress_is_told_of_each_problem_and_the_first_that_fails_is_named(void) {
    gemmepi_context *context = open_timed();
    gemmepi_matmul_desc good = small_product(GEMMEPI_BF16, GEMMEPI_NONE), bad = good, worse = good;
    gemmepi_any_desc problems[4];
    gemmepi_tune_options options;
    told t;
    memset(&t, 0, sizeof t);
    memset(&options, 0, sizeof options);
    options.threads = 1;
    bad.m = -5, worse.n = -7;
    problems[0] = any(&good), problems[1] = any(&bad), problems[2] = any(&worse), problems[3] = any(&good);
    good.k = 2 * K;
    CHECK(gemmepi_tune(context, problems, 4, &options, keep_told, &t) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("problems[1]: ") && sentence_has("-5"),
          "%s", gemmepi_last_error());
    CHECK(t.calls == 4 && t.done == 4 && t.count == 4, "told %lu times, %lu of %lu", (unsigned long)t.calls,
          (unsigned long)t.done, (unsigned long)t.count);
    CHECK(context->answers.count == 1, "%lu answers", (unsigned long)context->answers.count);
    close_timed(context);
}

int main(void) {
    keep_libraries_open();
    RUN(a_way_whose_results_are_others_is_left_out_and_told);
    RUN(plain_is_timed_whatever_its_estimate);
    RUN(what_is_far_slower_when_run_once_is_not_timed_by_turns);
    RUN(a_few_bits_of_a_mask_may_differ);
    RUN(each_way_adds_to_the_same_d);
    RUN(sets_of_a_trial_fill_three_caches_or_the_memory);
    RUN(a_trial_has_half_its_sets_where_there_is_no_memory_for_all);
    RUN(the_time_of_a_way_is_the_median_of_its_rounds);
    RUN(kernels_for_fp8_and_for_weights_in_i8_are_timed);
    RUN(ways_of_engines_are_32_at_most_and_of_few_numbers_of_parts);
    RUN(calls_of_a_graph_are_as_many_as_the_mode_says);
    RUN(a_formula_has_an_answer_of_its_own);
    RUN(progress_is_told_of_each_problem_and_the_first_that_fails_is_named);
    return test_finish();
}
