/* files_fuzz [count] [first seed]: bundles and files of answers that are good, spoiled, or any bytes, read on the fake GPU of fake_cuda.h.
   Each is refused with a sentence or accepted; what was accepted is written and read again, and a product is planned and run with it. The
   check of a bundle and the hash of answers are mended, so that what is behind them is reached. A failure prints its seed:
   `files_fuzz 1 SEED` repeats it. With GEMMEPI_LIBFUZZER it is a fuzzer for libFuzzer (tests/fuzz.sh). */
#include "fake_program.h"

#include "draw.h"

static uint64_t first = 1, count_of_cases = 1000;
static unsigned long long seed_here;
static long accepted[2], refused[2];

enum { MOST = 1 << 16 };

static unsigned char bundle[MOST]; /* a good one, of fused_product on DEVICE_ARCH */
static size_t bundle_size;
static char answers[MOST]; /* likewise */

static void check_status(gemmepi_status status, const char *what) {
    CHECK(status == GEMMEPI_OK || (gemmepi_last_error()[0] != 0 && !strstr(gemmepi_last_error(), "(null)")),
          "seed %llu: %s: %s", seed_here, what, gemmepi_last_error());
    (void)gpi__fail(GEMMEPI_OK, "%s", "");
}

static gemmepi_context *open_here(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    config.allocator.alloc = NULL, config.allocator.free = NULL;
    config.device = GEMMEPI_DEVICE(0);
    context = open_fake(&config);
    gpu.is_untouched = 1;
    return context;
}

static const char *path_here(void) {
    static char path[300];
    const char *temporary = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.200s/gemmepi-answers-%ld", temporary ? temporary : "/tmp", (long)getpid());
    return path;
}

static size_t read_file(char *to) {
    FILE *file = fopen(path_here(), "rb");
    size_t size = file ? fread(to, 1, MOST - 1, file) : 0;
    if (file)
        fclose(file);
    to[size] = 0;
    return size;
}

static void write_file(const char *text, size_t size) {
    FILE *file = fopen(path_here(), "wb");
    CHECK(file && fwrite(text, 1, size, file) == size, "cannot write %s", path_here());
    if (file)
        fclose(file);
}

/* The good ones are of two products: ours is faster for one, cuBLASLt for the other. */
static gemmepi_matmul_desc product_here(int which) {
    gemmepi_matmul_desc desc = fused_product();
    if (which)
        desc.epilogue = GEMMEPI_BIAS | GEMMEPI_RELU, desc.flags = GEMMEPI_RELAXED;
    return desc;
}

static void make_good_ones(void) {
    gemmepi_context *context = open_here();
    gemmepi_tune_options options;
    gemmepi_any_desc problem;
    int which;
    memset(&problem, 0, sizeof problem);
    memset(&options, 0, sizeof options);
    options.threads = 1;
    gpu.heuristic_answers = 4;
    for (which = 0; which < 2; which++) {
        gemmepi_matmul_desc desc = product_here(which);
        problem.matmul = &desc;
        gpu.launch_time = which ? 50 : 5, gpu.product_time = which ? 5 : 50;
        CHECK(gemmepi_tune(context, &problem, 1, &options, NULL, NULL) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
    }
    CHECK(gemmepi_bundle_write(context, bundle, sizeof bundle, &bundle_size) == GEMMEPI_OK &&
              gemmepi_answers_save(context, path_here()) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    read_file(answers);
    gemmepi_destroy(context);
}

/* A kernel's image may be what no driver loads. */
static void plan_with_it(gemmepi_context *context) {
    static char text[1 << 14];
    int which;
    for (which = 0; which < 2; which++) {
        gemmepi_matmul_desc desc = product_here(which);
        gemmepi_matmul_args args = fused_args();
        gemmepi_plan *plan = NULL;
        gemmepi_status status = gemmepi_plan_matmul(context, &desc, &plan);
        check_status(status, "planning");
        if (status)
            continue;
        CHECK(gemmepi_plan_explain(plan, text, sizeof text) > 0 && !strstr(text, "(null)"), "seed %llu: %s",
              seed_here, text);
        check_status(gemmepi_plan_prepare(plan, NULL), "preparing");
        status = gemmepi_run_matmul(plan, &args, NULL);
        CHECK(status == GEMMEPI_OK, "seed %llu: %s", seed_here, gemmepi_last_error());
        gemmepi_plan_destroy(plan);
    }
}

/* >>bundles */

static void put_number(unsigned char *to, uint64_t value, int count_of_bytes) {
    int i;
    for (i = 0; i < count_of_bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

static void mend_bundle(unsigned char *data, size_t size) {
    if (size < GPI__BUNDLE_HEADER)
        return;
    memcpy(data, bundle, 24);
    put_number(data + 24, size, 8);
    put_number(data + 32, gpi__bundle_check(data, size), 8);
}

/* A section with kernels, whose sizes are right most times; at most 4000 bytes. */
static size_t draw_section(unsigned char *to) {
    static const char key[] = "kernel of no program";
    size_t size = GPI__BUNDLE_SECTION, key_size, image_size;
    int i, kernels = below(4);
    memset(to, 0, GPI__BUNDLE_SECTION);
    memcpy(to, one_in(12) ? "others" : "kernels", 7);
    for (i = 0; i < kernels; i++) {
        key_size = 1 + (size_t)below((int)sizeof key - 1), image_size = (size_t)below(600);
        put_number(to + size, one_in(10) ? garbage() : key_size, 4);
        put_number(to + size + 4, one_in(4) ? garbage() : 90, 4);
        put_number(to + size + 8, one_in(10) ? garbage() : image_size, 8);
        memcpy(to + size + 16, key, key_size);
        memset(to + size + 16 + key_size, (int)draw_byte(), image_size);
        size += 16 + key_size + image_size;
    }
    put_number(to + 8, one_in(10) ? garbage() : size - GPI__BUNDLE_SECTION, 8);
    return size;
}

static size_t draw_bundle(unsigned char *data) {
    size_t size = GPI__BUNDLE_HEADER, i;
    int turns = below(4), how = below(4);
    if (how == 0) { /* spoiled */
        memcpy(data, bundle, size = bundle_size);
        for (i = 0; i <= (size_t)turns; i++)
            spoil(data, size, NULL, 0);
        size -= one_in(4) ? (size_t)below(64) : 0;
    } else if (how == 1) {
        for (i = 0; i < (size_t)turns; i++)
            size += draw_section(data + size);
    } else {
        for (size = 0; size < MOST && drawn_from < drawn_end; size++)
            data[size] = (unsigned char)draw_byte();
    }
    if (how < 3)
        mend_bundle(data, size);
    return size;
}

static void one_bundle(void) {
    static unsigned char data[MOST + 16], again[MOST * 2];
    size_t size = draw_bundle(data), written = 0;
    unsigned char *exact = (unsigned char *)malloc(size + !size);
    gemmepi_context *context = open_here();
    gemmepi_status status;
    memcpy(exact, data, size);
    status = gemmepi_bundle_read(context, exact, size);
    check_status(status, "reading a bundle");
    refused[0] += status != GEMMEPI_OK, accepted[0] += status == GEMMEPI_OK;
    if (!status) {
        status = gemmepi_bundle_write(context, again, sizeof again, &written);
        check_status(status, "writing a bundle");
        if (!status)
            CHECK(gemmepi_bundle_read(context, again, written) == GEMMEPI_OK, "seed %llu: %s", seed_here,
                  gemmepi_last_error());
    }
    plan_with_it(context);
    gemmepi_destroy(context);
    free(exact);
}

/* >>answers */

/* Adds the last line to what ends with a line. */
static void end_answers(char *text, size_t size, int lines) {
    unsigned char digest[GPI__SHA256_SIZE];
    char hex[2 * GPI__SHA256_SIZE + 1];
    gpi__sha256_of(text, size, digest);
    gpi__sha256_hex(digest, hex);
    snprintf(text + size, 200, "end of %d answers, %s\n", lines, hex);
}

/* A line of the good ones with other numbers and words; what it says for people stays. */
static size_t draw_line(const char *line, char *to) {
    static const char *const words[] = {"fused", "lt",      "split",    "plain", "host", "sm90",  "sm80",
                                        "small", "weights", "sm90_fp8", "outer", "-",    "empty", "tile"};
    size_t size = 0;
    int is_spoiled = 1;
    while (*line && *line != '\n') {
        size_t length = strcspn(line, " \n");
        int is_number = *line >= '0' && *line <= '9';
        is_spoiled = is_spoiled && *line != ':';
        if (is_spoiled && length < 32 && one_in(is_number ? 12 : 60)) {
            if (is_number)
                size += (size_t)sprintf(to + size, "%llu",
                                        (unsigned long long)(one_in(2) ? garbage() : (uint64_t)below(20)));
            else
                size += (size_t)sprintf(to + size, "%s", words[below((int)GPI__COUNT(words))]);
        } else {
            memcpy(to + size, line, length);
            size += length;
        }
        line += length;
        if (*line == ' ')
            to[size++] = *line++;
    }
    to[size++] = '\n';
    return size;
}

static size_t draw_answers(char *text) {
    const char *second = strchr(answers, '\n') + 1, *line = strchr(second, '\n') + 1;
    size_t size = (size_t)(line - answers);
    int i, how = below(4), lines = 1 + below(3);
    memcpy(text, answers, size);
    if (how <= 1) {
        for (i = 0; i < lines; i++)
            size += draw_line(one_in(2) ? strchr(line, '\n') + 1 : line, text + size);
        if (how == 1)
            text[below((int)size)] = (char)draw_byte();
    } else {
        size = how == 2 ? size : 0;
        while (size < 4000 && drawn_from < drawn_end)
            text[size++] = (char)draw_byte();
        text[size] = 0;
    }
    if (how < 3)
        end_answers(text, size, lines);
    return how < 3 ? size + strlen(text + size) : size;
}

static void one_file_of_answers(void) {
    static char text[MOST];
    gemmepi_context *context = open_here();
    size_t size = draw_answers(text);
    gemmepi_status status;
    int is_taken;
    write_file(text, size);
    status = gemmepi_answers_load(context, path_here());
    check_status(status, "loading answers");
    is_taken = context->answers.count > 0; /* what is no such file is left, and the log says so */
    refused[1] += !is_taken, accepted[1] += is_taken;
    if (!status)
        CHECK(gemmepi_answers_save(context, path_here()) == GEMMEPI_OK &&
                  gemmepi_answers_load(context, path_here()) == GEMMEPI_OK,
              "seed %llu: %s", seed_here, gemmepi_last_error());
    plan_with_it(context);
    gemmepi_destroy(context);
}

static void one_case(void) {
    if (!bundle_size) {
        keep_libraries_open();
        make_good_ones();
    }
    if (one_in(2))
        one_file_of_answers();
    else
        one_bundle();
}

#ifdef GEMMEPI_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    draw_from_bytes(data, size);
    one_case();
    if (test_failures_here)
        abort();
    return 0;
}
#else
static void run_seed(const unsigned char *bytes, size_t size) {
    draw_from_bytes(bytes, size);
    seed_here = 0;
    one_case();
}

static void what_found_something_is_found_no_more(void) {
    CHECK(run_seeds("tests/unit/files_fuzz_seeds.txt", run_seed) > 0, "there are no seeds");
}

static void files_are_refused_in_words_or_serve(void) {
    for (seed_here = first; seed_here < first + count_of_cases; seed_here++) {
        static unsigned char bytes[256];
        size_t i;
        draw_from_seed(seed_here);
        for (i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)draw_byte();
        draw_from_bytes(bytes, sizeof bytes);
        one_case();
    }
    if (count_of_cases >= 1000)
        CHECK(accepted[0] > 50 && accepted[1] > 20 && refused[0] > 50 && refused[1] > 50,
              "%ld bundles accepted, %ld refused; %ld answers accepted, %ld refused", accepted[0], refused[0],
              accepted[1], refused[1]);
}

int main(int argc, char **argv) {
    if (argc > 1)
        count_of_cases = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        first = strtoull(argv[2], NULL, 10);
    RUN(what_found_something_is_found_no_more);
    RUN(files_are_refused_in_words_or_serve);
    remove(path_here());
    return test_finish();
}
#endif
