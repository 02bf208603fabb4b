/* gemmepi_tune on a GPU that is not there, whose launches and products take what the test says: the fastest way is taken from then on,
   by other processes, too; and answers in text, good and bad. */
#include "tuned.h"

/* >>the clock of the fake GPU */

enum { ANSWERS = 8 }; /* of cuBLASLt */

static void take(double launch, double product, double answer) {
    gpu.launch_time = launch, gpu.product_time = product, gpu.answer_time = answer;
    gpu.heuristic_answers = ANSWERS;
}

static void tune(gemmepi_context *context, const gemmepi_matmul_desc *desc) {
    gemmepi_any_desc problem = any(desc);
    gemmepi_tune_options options;
    memset(&options, 0, sizeof options);
    options.threads = 2;
    CHECK(gemmepi_tune(context, &problem, 1, &options, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.graphs == 0 && gpu.events == 0 && gpu.streams == 0,
          "%ld graphs, %ld events, %ld streams are left", gpu.graphs, gpu.events, gpu.streams);
}

/* >>the fastest is taken */

/* A launch of ours takes 5 us and a product of cuBLASLt's 50, and the other way round. */
static void the_fastest_way_is_taken(void) {
    static const struct {
        double launch, product;
        gemmepi_route route;
    } cases[] = {{5, 50, GEMMEPI_ROUTE_FUSED}, {50, 5, GEMMEPI_ROUTE_LT}};
    int i;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_BIAS | GEMMEPI_RELU);
        gemmepi_plan_details details;
        desc.m = 2048, desc.n = 1024, desc.k = 512;
        desc.flags = GEMMEPI_RELAXED;
        details = details_for(context, &desc);
        CHECK(details.microseconds <= 0 && details.bit_stable, "before: %g us", details.microseconds);
        take(cases[i].launch, cases[i].product, 0);
        tune(context, &desc);
        details = details_for(context, &desc);
        CHECK(details.route == cases[i].route, "%d: route %s", i, details.route_name);
        CHECK(fabs(details.microseconds - 5) < 0.1, "%d: %g us", i, details.microseconds);
        CHECK(!details.bit_stable && details.deterministic, "%d: bit_stable %d", i, details.bit_stable);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* Each of cuBLASLt's answers takes 2 us less than the one before. */
static void the_fastest_of_cublaslts_answers_is_taken(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = lt_product();
    gemmepi_plan_details details;
    take(90, 60, -2);
    tune(context, &desc);
    details = details_for(context, &desc);
    CHECK(details.route == GEMMEPI_ROUTE_LT && fabs(details.microseconds - (60 - 2 * (ANSWERS - 1))) < 0.1,
          "route %s, %g us", details.route_name, details.microseconds);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* One-shot calls have a plan already, and make another. */
static void one_shot_calls_take_it_too(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_BIAS | GEMMEPI_RELU);
    gemmepi_matmul_args args = fused_args();
    long products;
    desc.m = 2048, desc.n = 1024, desc.k = 512, desc.flags = GEMMEPI_RELAXED;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK && gpu.products == 0, "%s",
          gemmepi_last_error());
    take(50, 5, 0);
    gpu.is_untouched = 0;
    tune(context, &desc);
    products = gpu.products;
    gpu.is_untouched = 1;
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK && gpu.products == products + 1, "%s",
          gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void layers_have_their_products_tuned(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_linear_desc layer;
    gemmepi_any_desc problem;
    gemmepi_plan_details details;
    gemmepi_plan *plan = NULL;
    memset(&layer, 0, sizeof layer);
    memset(&problem, 0, sizeof problem);
    layer.m = 512, layer.n = 256, layer.k = 128;
    layer.a.dtype = GEMMEPI_BF16;
    layer.flags = GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB;
    problem.linear_backward = &layer;
    take(5, 50, 0);
    CHECK(gemmepi_tune(context, &problem, 1, NULL, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(context->answers.count == 2, "%lu answers", (unsigned long)context->answers.count);
    CHECK(gemmepi_plan_linear_backward(context, &layer, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK && !details.bit_stable, "bit_stable %d",
          details.bit_stable);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void each_mode_times_and_the_budget_ends_it(void) {
    static const gemmepi_tune_mode modes[] = {GEMMEPI_TUNE_GRAPH, GEMMEPI_TUNE_BURST, GEMMEPI_TUNE_STREAM};
    int i;
    for (i = 0; i < 3; i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_any_desc problem = any(&desc);
        gemmepi_tune_options options;
        memset(&options, 0, sizeof options);
        options.mode = modes[i], options.milliseconds = 1, options.threads = 1;
        take(5, 50, 0);
        CHECK(gemmepi_tune(context, &problem, 1, &options, NULL, NULL) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        CHECK(context->answers.count == 1, "mode %d: %lu answers", i, (unsigned long)context->answers.count);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

/* Tunes a product whose ways need workspace of several sizes. */
static void tune_by_several_sizes(size_t largest_block) {
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_BIAS | GEMMEPI_SILU);
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    desc.m = desc.n = 1024, desc.k = 512;
    take(5, 4, 0);
    gpu.frees = gpu.stale_launches = 0;
    if (largest_block)
        gpu.largest_block = largest_block;
    tune(context, &desc);
    CHECK(gpu.frees > 2 && gpu.stale_launches == 0, "%ld blocks freed, %ld launches after", gpu.frees,
          gpu.stale_launches);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void no_graph_is_launched_after_memory_was_freed_that_it_has(void) {
    tune_by_several_sizes(0);
}

static void ways_without_room_are_left_out(void) {
    tune_by_several_sizes(7000000); /* room for some ways' workspace, and not for others' */
    CHECK(gpu.lt_calls > 0 && gpu.lt_nowhere == 0, "%ld of %ld products of cuBLASLt have no workspace",
          gpu.lt_nowhere, gpu.lt_calls);
}

/* Eight threads that want the same product tuned, and run it: one times it, and all take what that found. */
enum { THREADS = 8 };

typedef struct tuner {
    gemmepi_context *context;
    gemmepi_plan_details details;
    int failed;
} tuner;

static void *tune_and_plan(void *user) {
    tuner *t = (tuner *)user;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_any_desc problem = any(&desc);
    gemmepi_plan *plan = NULL;
    t->failed = gemmepi_tune(t->context, &problem, 1, NULL, NULL, NULL) != GEMMEPI_OK ||
                gemmepi_plan_matmul(t->context, &desc, &plan) != GEMMEPI_OK ||
                gemmepi_plan_info(plan, &t->details) != GEMMEPI_OK;
    gemmepi_plan_destroy(plan);
    return NULL;
}

static void threads_tune_once_and_agree(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    pthread_t threads[THREADS];
    static tuner tuners[THREADS];
    int i;
    take(5, 50, 0);
    for (i = 0; i < THREADS; i++) {
        tuners[i].context = context;
        CHECK(pthread_create(&threads[i], NULL, tune_and_plan, &tuners[i]) == 0, "no thread");
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(!tuners[i].failed && tuners[i].details.microseconds > 0 &&
                  strcmp(tuners[i].details.kernel, tuners[0].details.kernel) == 0 &&
                  tuners[i].details.microseconds == tuners[0].details.microseconds,
              "thread %d: %s, %g us", i, tuners[i].details.kernel, tuners[i].details.microseconds);
    }
    CHECK(gpu.graphs == 0 && gpu.events == 0 && gpu.streams == 0, "%ld graphs are left", gpu.graphs);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>answers that are kept */

static char file[700];

static void make_places(void) {
    snprintf(file, sizeof file, "%s/answers.txt", new_folder());
    CHECK(gpi__folder_make(folder) == 0, "%s", folder);
}

/* The fake's books are new with each config. */
static gemmepi_context *another(const char *cache) {
    gemmepi_config config = config_with_all_routes();
    config.cache_path = cache;
    config.log = keep_log;
    take(5, 50, 0);
    return open_fake(&config);
}

/* Two products, as a file. */
static void save_two(void) {
    gemmepi_context *context = another("");
    gemmepi_matmul_desc desc = fused_product(), other = lt_product();
    tune(context, &desc);
    take(90, 5, -0.1);
    tune(context, &other);
    CHECK(gemmepi_answers_save(context, file) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void saved_answers_are_loaded_and_nothing_is_timed(void) {
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product(), other = lt_product();
    gemmepi_plan_details details;
    double now;
    save_two();
    context = another("");
    CHECK(gemmepi_answers_load(context, file) == GEMMEPI_OK, "%s", gemmepi_last_error());
    details = details_for(context, &desc);
    CHECK(details.route == GEMMEPI_ROUTE_FUSED && details.microseconds > 0 && details.bit_stable, "%s, %g us",
          details.route_name, details.microseconds);
    details = details_for(context, &other);
    CHECK(details.route == GEMMEPI_ROUTE_LT && details.microseconds > 0 && details.bit_stable, "%s, %g us",
          details.route_name, details.microseconds);
    now = gpu.now;
    tune(context, &desc);
    tune(context, &other);
    CHECK(gpu.now <= now, "%g us were timed", gpu.now - now);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* By a shape that takes the problem for alpha 1 and no C alone, which an answer's text does not say. */
static void answers_for_scales_that_are_found_are_loaded(void) {
    gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_BIAS | GEMMEPI_SILU);
    gemmepi_context *context;
    gemmepi_plan_details details;
    int way;
    desc.m = desc.n = desc.k = 4096;
    desc.d.dtype = GEMMEPI_E4M3, desc.d.scale.mode = GEMMEPI_SCALE_VECTOR_128;
    desc.flags = GEMMEPI_FIND_SCALE_D;
    for (way = 0; way < 2; way++) { /* the first of ours to be timed is the fastest, then the last */
        context = another("");
        take(way ? 5 : 50, way ? 50 : 5, 0);
        tune(context, &desc);
        CHECK(gemmepi_answers_save(context, file) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gemmepi_destroy(context);
        context = another("");
        CHECK(gemmepi_answers_load(context, file) == GEMMEPI_OK, "%s", gemmepi_last_error());
        details = details_for(context, &desc);
        CHECK(details.microseconds > 0, "the answer is not taken: %s", details.kernel);
        gemmepi_destroy(context);
    }
    nothing_is_left();
}

/* Its place among the algorithms is another where some of them are left out, and it may not be offered at all. */
static void an_answer_names_its_algorithm(void) {
    static const struct { int first, is_offered; } cases[] = {{3, 1}, {40, 0}};
    gemmepi_matmul_desc desc = lt_product();
    gemmepi_context *context;
    gemmepi_plan_details details;
    int i, n;
    for (i = 0; i < (int)GPI__COUNT(cases); i++) {
        context = another("");
        take(90, 60, -2);
        tune(context, &desc);
        details = details_for(context, &desc);
        CHECK(strstr(details.kernel, "algorithm 107"), "%s",
              details.kernel); /* the last of 8, which is the fastest */
        CHECK(gemmepi_answers_save(context, file) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gemmepi_destroy(context);
        context = another("");
        for (n = 0; n < ANSWERS; n++)
            gpu.algorithms[n].id = 100 + cases[i].first + n;
        CHECK(gemmepi_answers_load(context, file) == GEMMEPI_OK, "%s", gemmepi_last_error());
        details = details_for(context, &desc);
        CHECK((details.microseconds > 0) == cases[i].is_offered &&
                  (strstr(details.kernel, "algorithm 107") != NULL) == cases[i].is_offered,
              "%s, %g us", details.kernel, details.microseconds);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void the_cache_folder_keeps_them_by_itself(void) {
    gemmepi_context *context = another(folder);
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_plan_details details;
    double now;
    tune(context, &desc);
    gemmepi_destroy(context);
    nothing_is_left();
    context = another(folder);
    details = details_for(context, &desc);
    CHECK(details.microseconds > 0 && details.bit_stable, "%g us", details.microseconds);
    now = gpu.now;
    tune(context, &desc);
    CHECK(gpu.now <= now, "%g us were timed", gpu.now - now);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>files that are not to be taken */

static char *whole;
static size_t whole_size;

static void read_whole(void) {
    FILE *in = fopen(file, "rb");
    whole = (char *)malloc(1 << 16);
    whole_size = in ? fread(whole, 1, 1 << 16, in) : 0;
    if (in)
        fclose(in);
    CHECK(whole_size > 100, "%lu bytes", (unsigned long)whole_size);
}

static void write_bytes(const char *bytes, size_t size) {
    FILE *out = fopen(file, "wb");
    CHECK(out && fwrite(bytes, 1, size, out) == size && fclose(out) == 0, "%s", file);
}

/* Nothing is changed, and the log says so. */
static void loads_nothing(const char *what, long at) {
    gemmepi_context *context = another("");
    CHECK(gemmepi_answers_load(context, file) == GEMMEPI_OK, "%s %ld: %s", what, at, gemmepi_last_error());
    CHECK(context->answers.count == 0 && strstr(logged, "change nothing"), "%s %ld: %lu answers; %s", what,
          at, (unsigned long)context->answers.count, logged);
    gemmepi_destroy(context);
}

static void is_refused(const char *what, long at) {
    gemmepi_context *context = another("");
    CHECK(gemmepi_answers_load(context, file) == GEMMEPI_FILE_ERROR && context->answers.count == 0 &&
              sentence_has("are refused: "),
          "%s %ld: %s, %lu answers; %s", what, at, logged, (unsigned long)context->answers.count,
          gemmepi_last_error());
    gemmepi_destroy(context);
}

/* Each allocation of a load fails once: what is not whole is an error. */
static void answers_that_are_loaded_without_memory_are_an_error(void) {
    gemmepi_status status = GEMMEPI_OUT_OF_MEMORY;
    long k;
    save_two();
    for (k = 1; status && k < 20; k++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        fails_at = allocations + k;
        status = gemmepi_answers_load(context, file);
        CHECK(status ? sentence_has("memory") : context->answers.count == 2,
              "allocation %ld: %s, %lu answers", k, status ? gemmepi_last_error() : "",
              (unsigned long)context->answers.count);
        gemmepi_destroy(context);
        nothing_is_left();
    }
    CHECK(k > 4 && !status, "allocation %ld: %s", k, gemmepi_last_error());
}

static void damaged_files_are_refused(void) {
    size_t i;
    save_two();
    read_whole();
    for (i = 0; i < whole_size; i++) {
        write_bytes(whole, i);
        is_refused("cut at", (long)i);
    }
    for (i = 0; i < whole_size; i++) {
        whole[i] ^= 1;
        write_bytes(whole, whole_size);
        whole[i] ^= 1;
        is_refused("changed at", (long)i);
    }
    free(whole);
}

/* With the right checksum. */
static void write_signed(const char *text, size_t count) {
    char out[8192];
    gpi__text to = gpi__text_in(out, sizeof out);
    gpi__append(&to, "%s", text);
    gpi__append_end(&to, count);
    write_bytes(out, to.length);
}

/* The file with `from` replaced, signed anew; its answers are as many as they were. */
static void write_changed(const char *from, const char *to) {
    char text[8192], *at, *end;
    memcpy(text, whole, whole_size);
    text[whole_size] = 0;
    end = strstr(text, "end of");
    *end = 0;
    at = strstr(text, from);
    CHECK(at != NULL, "no '%s'", from);
    if (at) {
        memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
        memcpy(at, to, strlen(to));
    }
    write_signed(text, 2);
}

static void foreign_files_change_nothing_and_others_are_refused(void) {
    static const char *const changes[][2] = {
        {"chip 90", "chip 80"}, {"driver 1", "driver 2"}, {"gemmepi answers 2", "gemmepi answers 1"}};
    static const char *const faults[][2] = {{" fused ", " fuses "},
                                            {" shape ", " shapes "},
                                            {" : m ", " ; m "},
                                            {"gemmepi answers", "gemmepi_answers"}};
    int i;
    save_two();
    read_whole();
    for (i = 0; i < (int)GPI__COUNT(changes); i++) {
        write_changed(changes[i][0], changes[i][1]);
        loads_nothing(changes[i][1], i);
    }
    for (i = 0; i < (int)GPI__COUNT(faults); i++) {
        write_changed(faults[i][0], faults[i][1]);
        is_refused(faults[i][1], i);
    }
    write_signed("gemmepi answers 2\n", 0);
    loads_nothing("without a maker", 0);
    write_bytes("", 0);
    is_refused("empty", 0);
    free(whole);
}

/* Well formed, but no way to run the problem: it is loaded, and not taken. */
/* The hash may fit: text ends at its first zero, and what is behind that is not looked at as text. */
static void answers_with_a_zero_inside_are_not_whole(void) {
    char text[300];
    int zero;
    for (zero = 0; zero < 2; zero++) {
        gpi__text out = gpi__text_in(text, sizeof text);
        unsigned char digest[GPI__SHA256_SIZE];
        char hex[2 * GPI__SHA256_SIZE + 1];
        size_t size, count = 7;
        gpi__append(&out, "gemmepi answers 2\nof something\n");
        if (zero)
            text[20] = 0;
        gpi__sha256_of(text, out.length, digest);
        gpi__sha256_hex(digest, hex);
        size = out.length + (size_t)sprintf(text + out.length, "end of 0 answers, %s\n", hex);
        CHECK(gpi__answers_are_whole(text, size, &count) == !zero, "with %d zeros", zero);
        CHECK(zero || (count == 0 && !gpi__answers_are_whole(text, size - 1, &count)), "%d answers",
              (int)count);
    }
}

/* A line of answers, piece by piece: as it is read, and with one piece that is none. */
static void a_line_of_answers_has_every_piece(void) {
    static const struct {
        const char *piece, *instead;
        int is_read;
    } cases[] = {
        {" fused ", " lt ", 1},
        {" fused ", " fast ", 0},
        {" fused ", " fusedfusedfusedfused ", 0},
        {" sm90 ", " - ", 1},
        {" sm90 ", " sm7 ", 0},
        {"shape 3", "shape -3", 0},
        {"shape 3", "shape ", 0},
        {"shape 3", "shade 3", 0},
        {"shape 3", "shape 100000000", 1},
        {"shape 3", "shape 100000001", 0},
        {"inside 1", "inside 0", 1},
        {"inside 1", "inside 2", 0},
        {"timed 4", "timed", 0},
        {"left 2", "lest 2", 0},
        {"algorithm 0", "algorithm 7", 0},
        {"cublaslt 0", "cublaslt 130100", 0},
        {"nanoseconds 1234", "nanoseconds 100000001", 1},
        {" : ", " ; ", 0},
        {"words", "wo\x7frds", 0},
        {"words", "wo\trds", 0},
        {"words", "", 1},
        {"0 fused", "g fused", 0},
        {"0 fused", " fused", 0},
    };
    char digest[2 * GPI__DIGEST_SIZE + 1], good[400];
    gpi__answer answer;
    size_t i;
    memset(digest, '0', sizeof digest - 1), digest[sizeof digest - 1] = 0;
    snprintf(
        good, sizeof good,
        "%s fused sm90 shape 3 parts 2 copies 1 0 inside 1 algorithm 0 tile 0 stages 0 split 0 reduction 0 swizzle 0 custom 0 inner 0 "
        "cluster 0 cublaslt 0 timed 4 left 2 nanoseconds 1234 : words\n",
        digest);
    CHECK(gpi__read_answer(good, &answer) && answer.candidate.shape == 3 && answer.candidate.parts == 2 &&
              answer.candidate.copies[0] == 1 && answer.candidate.copies[1] == 0 &&
              answer.candidate.microseconds == 1.234 && answer.candidate.is_inside &&
              answer.ways_timed == 4 && answer.ways_left == 2 && answer.is_loaded &&
              strcmp(answer.words, "words") == 0,
          "%s", good);
    for (i = 0; i < GPI__COUNT(cases); i++) {
        const char *at = strstr(good, cases[i].piece);
        char line[500];
        CHECK(at != NULL, "there is no '%s'", cases[i].piece);
        if (!at)
            continue;
        snprintf(line, sizeof line, "%.*s%s%s", (int)(at - good), good, cases[i].instead,
                 at + strlen(cases[i].piece));
        CHECK(!gpi__read_answer(line, &answer) == !cases[i].is_read, "'%s' in place of '%s' is %s",
              cases[i].instead, cases[i].piece, cases[i].is_read ? "refused" : "read");
    }
}

static void crafted_answers_are_not_taken(void) {
    static const char *const crafted[][2] = {
        {"shape ", "shape 99"}, {" parts ", " parts 7"}, {" copies ", " copies 9"}};
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_plan_details details;
    int i;
    save_two();
    read_whole();
    for (i = 0; i < (int)GPI__COUNT(crafted); i++) {
        char *line = strstr(whole, " fused "), from[64];
        const char *at = line ? strstr(line, crafted[i][0]) : NULL;
        gemmepi_context *context;
        CHECK(at != NULL, "no fused answer");
        if (!at)
            break;
        snprintf(from, sizeof from, "%.*s", (int)(strcspn(at + 1, " ") + 3), at);
        write_changed(from, crafted[i][1]);
        context = another("");
        CHECK(gemmepi_answers_load(context, file) == GEMMEPI_OK, "%s", gemmepi_last_error());
        if (context->answers.count) {
            details = details_for(context, &desc);
            CHECK(details.microseconds <= 0 && strstr(logged, "ignoring a tuning answer"), "%s: %g us; %s",
                  from, details.microseconds, logged);
        } else {
            CHECK(strstr(logged, "change nothing"), "%s", logged);
        }
        gemmepi_destroy(context);
    }
    free(whole);
}

/* >>comparing */

/* Whether tuning takes them for the same. */
static int numbers_agree(const float *x, const float *y) {
    gpi__trial trial;
    gpi__view *view = &trial.tensors[GPI__D].view;
    gpi__allowance allowance;
    memset(&trial, 0, sizeof trial);
    view->dtype = GEMMEPI_F32, view->bits = 32;
    allowance = gpi__allow_of_size(&trial, GPI__D);
    return gpi__numbers_off(view, &allowance, (const char *)x, (const char *)y, 64 * sizeof *x) <= 1;
}

static void numbers_agree_where_they_are_about_the_same(void) {
    float x[64], y[64];
    int i;
    for (i = 0; i < 64; i++)
        x[i] = y[i] = (float)(i % 2 ? i : -i);
    CHECK(numbers_agree(x, y), "the same");
    y[7] *= 1.01f;
    CHECK(numbers_agree(x, y), "about the same");
    y[7] = 70;
    CHECK(!numbers_agree(x, y), "one is off");
    y[7] = NAN;
    CHECK(!numbers_agree(x, y), "one is NaN");
    x[7] = NAN;
    CHECK(numbers_agree(x, y), "both are NaN");
    for (i = 0; i < 64; i++)
        y[i] = 0;
    CHECK(!numbers_agree(x, y), "nothing was written");
}

/* >>what is refused */

static void bad_input_is_refused(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_any_desc problem = any(&desc), none;
    gemmepi_tune_options options;
    memset(&none, 0, sizeof none);
    CHECK(gemmepi_tune(NULL, &problem, 1, NULL, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("context"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_tune(context, NULL, 1, NULL, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("problems"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_tune(context, &none, 1, NULL, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("problems[0]"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_tune(context, NULL, 0, NULL, NULL, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    memset(&options, 0, sizeof options);
    options.mode = (gemmepi_tune_mode)7;
    CHECK(gemmepi_tune(context, &problem, 1, &options, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("options.mode is 7"),
          "%s", gemmepi_last_error());
    options.mode = GEMMEPI_TUNE_GRAPH, options.milliseconds = -1;
    CHECK(gemmepi_tune(context, &problem, 1, &options, NULL, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("milliseconds"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_answers_save(context, NULL) == GEMMEPI_INVALID_ARGUMENT && sentence_has("path"), "%s",
          gemmepi_last_error());
    CHECK(gemmepi_answers_load(context, "/nowhere/at/all") == GEMMEPI_FILE_ERROR, "%s", gemmepi_last_error());
    CHECK(gemmepi_answers_save(context, "/nowhere/at/all") == GEMMEPI_FILE_ERROR, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Each option at both its borders, and one past them: the refusal names it alone. */
static void options_are_accepted_to_their_borders_and_named_past_them(void) {
    static const struct {
        gemmepi_tune_options options;
        const char *word; /* NULL: accepted */
    } cases[] = {
        {{0, 0, 0, 0, GEMMEPI_TUNE_GRAPH}, NULL},
        {{1e9, (size_t)-1, 1, 4096, GEMMEPI_TUNE_STREAM}, NULL},
        {{0, 0, 0, 0, GEMMEPI_TUNE_BURST}, NULL},
        {{-1, 0, 0, 0, GEMMEPI_TUNE_GRAPH}, "options.milliseconds is -1;"},
        {{1e9 + 1, 0, 0, 0, GEMMEPI_TUNE_GRAPH}, "options.milliseconds is 1e+09;"},
        {{NAN, 0, 0, 0, GEMMEPI_TUNE_GRAPH}, "options.milliseconds is "},
        {{0, 0, -1, 0, GEMMEPI_TUNE_GRAPH}, "options.again is -1; accepted are 0 and 1"},
        {{0, 0, 2, 0, GEMMEPI_TUNE_GRAPH}, "options.again is 2"},
        {{0, 0, 2, 1, GEMMEPI_TUNE_GRAPH}, "options.again is 2"},
        {{0, 0, 0, -1, GEMMEPI_TUNE_GRAPH}, "options.threads is -1; accepted are 0"},
        {{0, 0, 0, 0, (gemmepi_tune_mode)(GEMMEPI_TUNE_STREAM + 1)}, "options.mode is "},
    };
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        gemmepi_status status = gemmepi_tune(context, NULL, 0, &cases[i].options, NULL, NULL);
        CHECK(cases[i].word ? status == GEMMEPI_INVALID_ARGUMENT && sentence_has(cases[i].word)
                            : status == GEMMEPI_OK,
              "%d: %s", (int)i, gemmepi_last_error());
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Whatever the driver refuses while it is tuned, nothing is left behind. */
static void a_driver_that_fails_is_told(void) {
    static const char *const functions[] = {"cuStreamCreate",       "cuMemAlloc_v2",
                                            "cuEventCreate",        "cuMemcpyHtoDAsync_v2",
                                            "cuMemcpyDtoHAsync_v2", "cuStreamBeginCapture_v2",
                                            "cuStreamEndCapture",   "cuGraphInstantiateWithFlags",
                                            "cuGraphLaunch",        "cuEventRecord",
                                            "cuEventSynchronize",   "cuEventElapsedTime"};
    int i;
    for (i = 0; i < (int)GPI__COUNT(functions); i++) {
        gemmepi_config config = config_with_all_routes();
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = fused_product();
        gemmepi_any_desc problem = any(&desc);
        take(5, 50, 0);
        gpu.fails = functions[i], gpu.fail_code = 719;
        CHECK(gemmepi_tune(context, &problem, 1, NULL, NULL, NULL) == GEMMEPI_CUDA_ERROR, "%s: %s",
              functions[i], gemmepi_last_error());
        gpu.fails = NULL;
        CHECK(gpu.graphs == 0 && gpu.events == 0 && gpu.streams == 0,
              "%s: %ld graphs, %ld events, %ld streams", functions[i], gpu.graphs, gpu.events, gpu.streams);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

int main(void) {
    make_places();
    RUN(the_fastest_way_is_taken);
    RUN(the_fastest_of_cublaslts_answers_is_taken);
    RUN(one_shot_calls_take_it_too);
    RUN(layers_have_their_products_tuned);
    RUN(each_mode_times_and_the_budget_ends_it);
    RUN(no_graph_is_launched_after_memory_was_freed_that_it_has);
    RUN(ways_without_room_are_left_out);
    RUN(threads_tune_once_and_agree);
    RUN(saved_answers_are_loaded_and_nothing_is_timed);
    RUN(answers_for_scales_that_are_found_are_loaded);
    RUN(an_answer_names_its_algorithm);
    RUN(the_cache_folder_keeps_them_by_itself);
    RUN(answers_that_are_loaded_without_memory_are_an_error);
    RUN(damaged_files_are_refused);
    RUN(foreign_files_change_nothing_and_others_are_refused);
    RUN(answers_with_a_zero_inside_are_not_whole);
    RUN(a_line_of_answers_has_every_piece);
    RUN(crafted_answers_are_not_taken);
    RUN(numbers_agree_where_they_are_about_the_same);
    RUN(bad_input_is_refused);
    RUN(options_are_accepted_to_their_borders_and_named_past_them);
    RUN(a_driver_that_fails_is_told);
    empty_folder();
    return test_finish();
}
