/* Bundles: the kernels of a context in a file or in memory, and what is refused: on the fake GPU of fake_cuda.h. */
#if !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#if !defined(_WIN32)
#include <sys/resource.h>

static int hides_limit; /* then the library does not learn of the limit, and a write fails midway */

/* The linker has the library call this one (--wrap). */
int __real_getrlimit(int resource, struct rlimit *limit);
int __wrap_getrlimit(int resource, struct rlimit *limit);
int __wrap_getrlimit(int resource, struct rlimit *limit) {
    return hides_limit ? -1 : __real_getrlimit(resource, limit);
}
#endif
#include "fake_operations.h"

#if !GPI__WINDOWS
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#endif

/* >>programs, files, and what a bundle has by a reader of its own */

enum { MOST_BYTES = 1 << 20 };

/* Products of three kinds and an operation, and what the context says afterwards. */
static void run_products(gemmepi_context *context, gemmepi_context_details *details) {
    gemmepi_matmul_desc descs[3];
    gemmepi_matmul_args fused = fused_args();
    element_call c;
    int i;
    descs[0] = split_product(), descs[1] = pass_alone(), descs[2] = fused_product();
    for (i = 0; i < 3; i++) {
        gemmepi_matmul_args args = args_for(&descs[i]);
        CHECK(gemmepi_matmul(context, &descs[i], i < 2 ? &args : &fused, NULL) == GEMMEPI_OK,
              "product %d: %s", i, gemmepi_last_error());
    }
    dense_call(&c);
    CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_context_info(context, details) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static const char *bundle_path(void) {
    static char path[700];
    snprintf(path, sizeof path, "%s/kernels.gemmepi", folder);
    return path;
}

/* A folder with nothing in it. */
static void begin_folder(void) {
    CHECK(gpi__folder_make(new_folder()) == 0, "cannot make %s", folder);
}

static size_t read_path(const char *path, unsigned char *data) {
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(data, 1, MOST_BYTES, file) : 0;
    if (file)
        fclose(file);
    return size;
}

static void write_path(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(data, 1, size, file) == size, "cannot write %s", path);
    if (file)
        fclose(file);
}

static size_t written(gemmepi_context *context, unsigned char *data) {
    size_t size = 0;
    CHECK(gemmepi_bundle_write(context, data, MOST_BYTES, &size) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return size;
}

/* A bundle of the products, made on a chip: 0 is DEVICE_ARCH. Returns its size, and how many kernels there are in *kernels. */
static size_t make_bundle(int arch, unsigned char *data, long *kernels) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_context_details details;
    size_t size;
    gpu.other_arch = arch;
    context = open_fake(&config);
    run_products(context, &details);
    size = written(context, data);
    *kernels = (long)details.kernels_compiled;
    CHECK(*kernels >= 4, "%ld kernels", *kernels);
    gemmepi_destroy(context);
    nothing_is_left();
    return size;
}

static void keep_all_but_searches(void *user, gemmepi_log_level level, const char *message) {
    if (level < GEMMEPI_LOG_DEBUG)
        keep_log(user, level, message);
}

/* A context whose kernels can come from bundles alone. */
static gemmepi_context *open_without_nvrtc(int arch) {
    gemmepi_config config = config_with_all_routes();
    config.log = keep_all_but_searches;
    gpu.missing = "nvrtc";
    gpu.other_arch = arch;
    return open_fake(&config);
}

static void runs_from_bundle(gemmepi_context *context, long kernels) {
    gemmepi_context_details details;
    run_products(context, &details);
    CHECK(details.kernels_compiled == 0 && details.kernels_from_disk == 0 &&
              details.kernels_from_bundle == kernels,
          "%d compiled, %d from disk, %d of %ld from a bundle", (int)details.kernels_compiled,
          (int)details.kernels_from_disk, (int)details.kernels_from_bundle, kernels);
    CHECK(gpu.compilations == 0 && gpu.asked_nvrtc == 0, "NVRTC was asked for %ld functions",
          gpu.asked_nvrtc);
}

static uint64_t number_at(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | at[bytes];
    return value;
}

static void put_number(unsigned char *at, int bytes, uint64_t value) {
    for (; bytes-- > 0; value >>= 8)
        *at++ = (unsigned char)value;
}

/* How many kernels a bundle of one section has whose keys begin so. */
static long kernels_of(const unsigned char *data, size_t size, const char *start) {
    size_t at = 56;
    long found = 0;
    while (at < size) {
        size_t key = (size_t)number_at(data + at, 4), image = (size_t)number_at(data + at + 8, 8);
        found += strncmp((const char *)data + at + 16, start, strlen(start)) == 0;
        at += 16 + key + image;
    }
    CHECK(at == size, "the kernels end at %d of %d", (int)at, (int)size);
    return found;
}

/* So that what is wrong is found by what else is checked. */
static void mend_check(unsigned char *data, size_t size) {
    put_number(data + 24, 8, size);
    if (size >= 40)
        put_number(data + 32, 8, gpi__bundle_check(data, size));
}

static unsigned char bytes[MOST_BYTES], others[MOST_BYTES];

/* >>found again */

static void kernels_of_a_bundle_need_neither_nvrtc_nor_a_cache(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_context_details details;
    long overlapping;
    begin_folder();
    run_products(context, &details);
    overlapping = gpu.overlapping;
    CHECK(gemmepi_bundle_save(context, bundle_path()) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
    context = open_without_nvrtc(0);
    CHECK(gemmepi_bundle_load(context, bundle_path()) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpu.modules == 0, "%ld modules were loaded before they are needed", gpu.modules);
    CHECK(strstr(logged, "3 kernels in the bundle ") && strstr(logged, "compute capability 9.0"),
          "the log: %s", logged);
    runs_from_bundle(context, (long)details.kernels_compiled);
    CHECK(overlapping > 0 && gpu.overlapping == overlapping,
          "%ld launches overlap, with kernels that are compiled %ld", gpu.overlapping, overlapping);
    gemmepi_destroy(context);
    nothing_is_left();
    empty_folder();
}

/* Formulas inside kernels, whole and of groups, one that is an epilogue and one behind its v, by plans: how many of them are SPLIT. */
static void plan_formulas(gemmepi_context *context, gemmepi_context_details *details, int *split) {
    static const char *const formulas[] = {"d = silu(v + bias) * r", "d = left(v, 64) * silu(right(v, 64))",
                                           "d = relu(v + bias) + r", "d = left(v, 32) + right(v, 32)",
                                           "s = row_logsumexp(v)"};
    gemmepi_operand operands[3];
    size_t i;
    *split = 0;
    context->multiprocessors = 132;
    memset(operands, 0, sizeof operands);
    operands[0].name = "bias", operands[0].kind = GEMMEPI_PER_COLUMN;
    operands[1].name = "r", operands[1].kind = GEMMEPI_FULL;
    operands[2].name = "s", operands[2].kind = GEMMEPI_PER_ROW, operands[2].output = 1;
    for (i = 0; i < sizeof formulas / sizeof *formulas; i++) {
        gemmepi_matmul_desc desc = product(GEMMEPI_BF16, GEMMEPI_NONE);
        gemmepi_plan *plan = NULL;
        desc.m = 4096, desc.n = 4096;
        desc.formula = formulas[i];
        desc.operands = operands, desc.operand_count = formulas[i][0] == 's' ? 3 : 2;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s: %s", formulas[i],
              gemmepi_last_error());
        *split += plan && route_of(plan) == GEMMEPI_ROUTE_SPLIT;
        gemmepi_plan_destroy(plan);
    }
    CHECK(gemmepi_context_info(context, details) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static void formulas_of_a_bundle_are_inside_as_before(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_context_details made, found;
    size_t size;
    int split, split_from_bundle;
    plan_formulas(context, &made, &split);
    CHECK(split == 1 && made.kernels_compiled >= 5, "%d split, %ld kernels", split,
          (long)made.kernels_compiled);
    size = written(context, bytes);
    gemmepi_destroy(context);
    nothing_is_left();
    context = open_without_nvrtc(0);
    CHECK(gemmepi_bundle_read(context, bytes, size) == GEMMEPI_OK, "%s", gemmepi_last_error());
    plan_formulas(context, &found, &split_from_bundle);
    CHECK(split_from_bundle == split && found.kernels_compiled == 0 &&
              found.kernels_from_bundle == made.kernels_compiled,
          "%d split, %ld compiled, %ld of %ld from the bundle", split_from_bundle,
          (long)found.kernels_compiled, (long)found.kernels_from_bundle, (long)made.kernels_compiled);
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_bundle_in_const_memory_may_lie_at_any_address(void) {
    long kernels;
    size_t size = make_bundle(0, bytes, &kernels), shift;
    for (shift = 0; shift < 3; shift++) {
        gemmepi_context *context = open_without_nvrtc(0);
        memcpy(others + shift, bytes, size);
        CHECK(gemmepi_bundle_read(context, others + shift, size) == GEMMEPI_OK, "%s", gemmepi_last_error());
        runs_from_bundle(context, kernels);
        gemmepi_destroy(context);
        nothing_is_left();
    }
}

static void the_same_kernels_give_the_same_bytes_each_once(void) {
    gemmepi_config config;
    gemmepi_context *context;
    gemmepi_context_details details;
    long kernels;
    size_t size = make_bundle(0, bytes, &kernels);
    int way;
    CHECK(kernels_of(bytes, size, "arch 90\nsources ") == kernels && kernels_of(bytes, size, "") == kernels,
          "%ld kernels", kernels_of(bytes, size, ""));
    for (way = 0; way < 4; way++) { /* compiled, from disk, from a bundle, and from one that came too late */
        config = config_with_all_routes();
        config.cache_path = way == 0 ? new_folder() : way == 1 ? folder : "";
        context = open_fake(&config);
        if (way == 3)
            run_products(context, &details);
        if (way >= 2)
            CHECK(gemmepi_bundle_read(context, bytes, size) == GEMMEPI_OK &&
                      gemmepi_bundle_read(context, bytes, size) == GEMMEPI_OK,
                  "%s", gemmepi_last_error());
        run_products(context, &details);
        run_products(context, &details);
        CHECK((way == 1   ? details.kernels_from_disk
               : way == 2 ? details.kernels_from_bundle
                          : details.kernels_compiled) == kernels,
              "%d compiled", (int)details.kernels_compiled);
        CHECK(written(context, others) == size && memcmp(bytes, others, size) == 0, "other bytes, way %d",
              way);
        gemmepi_destroy(context);
        nothing_is_left();
    }
    empty_folder();
}

static void bundles_of_two_chips_are_merged_by_loading_and_saving(void) {
    static unsigned char both[MOST_BYTES], merged[MOST_BYTES];
    long on_80, on_90;
    size_t size_80 = make_bundle(80, bytes, &on_80), size_90 = make_bundle(90, others, &on_90), size;
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_context_details details;
    int arch;
    CHECK(gemmepi_bundle_read(context, bytes, size_80) == GEMMEPI_OK, "%s", gemmepi_last_error());
    run_products(context, &details);
    CHECK(details.kernels_compiled == on_90 && details.kernels_from_bundle == 0, "%d compiled",
          (int)details.kernels_compiled);
    size = written(context, both);
    CHECK(kernels_of(both, size, "arch 80\n") == on_80 && kernels_of(both, size, "arch 90\n") == on_90,
          "%ld kernels", kernels_of(both, size, ""));
    gemmepi_destroy(context);
    nothing_is_left();
    for (arch = 80; arch <= 90; arch += 10) {
        context = open_without_nvrtc(arch);
        CHECK(gemmepi_bundle_read(context, both, size) == GEMMEPI_OK, "%s", gemmepi_last_error());
        runs_from_bundle(context, arch == 80 ? on_80 : on_90);
        gemmepi_destroy(context);
        nothing_is_left();
    }
    config = fake_config(); /* the host merges, too */
    config.device = GEMMEPI_DEVICE_HOST;
    context = open_fake(&config);
    CHECK(gemmepi_bundle_read(context, others, size_90) == GEMMEPI_OK &&
              gemmepi_bundle_read(context, bytes, size_80) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    CHECK(written(context, merged) == size && memcmp(merged, both, size) == 0, "the host merges otherwise");
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_kernel_that_no_bundle_has_is_compiled_or_named(void) {
    long kernels;
    size_t size = make_bundle(80, bytes, &kernels);
    gemmepi_context *context = open_without_nvrtc(0);
    gemmepi_matmul_desc desc = pass_alone();
    gemmepi_plan *plan = NULL;
    CHECK(gemmepi_bundle_read(context, bytes, size) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strstr(logged, "2 kernels in the bundle in memory: ") && strstr(logged, "which this GPU has: 0"),
          "the log: %s", logged);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_LIBRARY_NOT_FOUND && !plan &&
              sentence_has("no bundle has gemmepi_pass_f32_tanh_bias for compute capability 9.0") &&
              sentence_has("nvrtc"),
          "%s", gemmepi_last_error());
    gpu.missing = NULL;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK && gpu.compilations == 1, "%s",
          gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* The candidates of the route fused have kernels of their own: one that a bundle lacks leaves the others, and plain. */
static void of_candidates_those_run_whose_kernels_a_bundle_has(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_matmul_args args = fused_args();
    size_t size;
    config.routes = 1u << GEMMEPI_ROUTE_PLAIN;
    context = open_fake(&config);
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    size = written(context, bytes);
    gemmepi_destroy(context);
    nothing_is_left();
    context = open_without_nvrtc(0);
    CHECK(gemmepi_bundle_read(context, bytes, size) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan_on(context, &desc, GEMMEPI_ROUTE_PLAIN));
    CHECK(strstr(logged, "2 a product of m 2048, n 1024, k 512 uses the slow route plain"), "the log: %s",
          logged);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* The bundle in `bytes`, of whose images the driver refuses that of the first program, in `others`: compiled again that is the first one's,
   too. Images are in no order of theirs. */
static void spoil_first_image(size_t size) {
    static const char first[] = "fake cubin 000000000000";
    size_t at = 56;
    memcpy(others, bytes, size);
    while (at + sizeof first < size && memcmp(others + at, first, sizeof first - 1) != 0)
        at++;
    others[at] = 'F';
    mend_check(others, size);
}

static void code_that_the_driver_refuses_is_compiled_anew_and_replaced(void) {
    long kernels;
    size_t size = make_bundle(0, bytes, &kernels);
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_context_details details;
    spoil_first_image(size);
    CHECK(gemmepi_bundle_read(context, others, size) == GEMMEPI_OK, "%s", gemmepi_last_error());
    run_products(context, &details);
    CHECK(details.kernels_compiled == 1 && details.kernels_from_bundle == kernels - 1, "%d compiled",
          (int)details.kernels_compiled);
    CHECK(written(context, others + size) == size && memcmp(others + size, bytes, size) == 0,
          "the bundle is not mended");
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Another compiler's code for the same kernels, in a bundle that is loaded later. */
static void where_the_driver_refuses_code_another_bundle_has_its_turn(void) {
    long kernels;
    size_t size = make_bundle(0, bytes, &kernels);
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_context_details details;
    spoil_first_image(size);
    gpu.missing = "nvrtc";
    CHECK(gemmepi_bundle_read(context, others, size) == GEMMEPI_OK &&
              gemmepi_bundle_read(context, bytes, size) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    run_products(context, &details);
    CHECK(details.kernels_compiled == 0 && details.kernels_from_bundle == kernels, "%d from bundles",
          (int)details.kernels_from_bundle);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* Memory that has run out is no fault of the bundle. */
static void what_the_device_lacks_is_told(void) {
    long kernels;
    size_t size = make_bundle(0, bytes, &kernels);
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = fused_product();
    gemmepi_plan *plan = NULL;
    config.routes = 1u << GEMMEPI_ROUTE_FUSED;
    context = open_fake(&config);
    gpu.missing = "nvrtc";
    CHECK(gemmepi_bundle_read(context, bytes, size) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gpu.fails = "cuModuleLoadData", gpu.fail_code = 2;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OUT_OF_MEMORY, "%s", gemmepi_last_error());
    gpu.fails = NULL;
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>host, memory, arguments */

static void the_host_checks_bundles_and_says_that_it_has_none(void) {
    long kernels;
    size_t size = make_bundle(0, bytes, &kernels), needed = 7;
    gemmepi_config config = fake_config();
    gemmepi_context *host;
    config.device = GEMMEPI_DEVICE_HOST;
    host = open_fake(&config);
    CHECK(gemmepi_bundle_write(host, NULL, 0, &needed) == GEMMEPI_UNSUPPORTED && needed == 0 &&
              sentence_has("on the host") && gemmepi_bundle_save(host, "no-bundle") == GEMMEPI_UNSUPPORTED,
          "%s", gemmepi_last_error());
    CHECK(gemmepi_bundle_read(host, bytes, size - 1) == GEMMEPI_FILE_ERROR, "%s", gemmepi_last_error());
    CHECK(gemmepi_bundle_read(host, bytes, size) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(host);
    nothing_is_left();
}

static void a_bundle_without_kernels_is_one(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    size_t size = written(context, bytes);
    CHECK(size == 56 && memcmp(bytes, "gemmepi bundle\r\n", 16) == 0, "%d bytes", (int)size);
    CHECK(number_at(bytes + 16, 4) == 1 && number_at(bytes + 20, 4) == GEMMEPI_VERSION &&
              number_at(bytes + 24, 8) == size && memcmp(bytes + 40, "kernels", 8) == 0 &&
              number_at(bytes + 48, 8) == 0,
          "not laid out as documented");
    CHECK(gemmepi_bundle_read(context, bytes, size) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_bundle_read(context, bytes, 40) == GEMMEPI_FILE_ERROR, "cut short");
    mend_check(bytes, 40);
    CHECK(gemmepi_bundle_read(context, bytes, 40) == GEMMEPI_OK, "no section: %s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void what_a_call_lacks_is_named(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    size_t size = 1, needed = 0;
    CHECK(gemmepi_bundle_save(NULL, "x") == GEMMEPI_INVALID_ARGUMENT && sentence_has("context is NULL"), "%s",
          gemmepi_last_error());
    CHECK(gemmepi_bundle_load(context, NULL) == GEMMEPI_INVALID_ARGUMENT && sentence_has("path is NULL"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_bundle_read(context, NULL, 5) == GEMMEPI_INVALID_ARGUMENT && sentence_has("data is NULL"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_bundle_write(context, bytes, 5, NULL) == GEMMEPI_INVALID_ARGUMENT &&
              sentence_has("size is NULL"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_bundle_write(NULL, bytes, 5, &size) == GEMMEPI_INVALID_ARGUMENT && size == 0, "size %d",
          (int)size);
    CHECK(gemmepi_bundle_write(context, NULL, 0, &needed) == GEMMEPI_OK && needed == 56, "it takes %d",
          (int)needed);
    bytes[0] = 'x';
    CHECK(gemmepi_bundle_write(context, bytes, needed - 1, &size) == GEMMEPI_BUFFER_TOO_SMALL &&
              size == needed && bytes[0] == 'x' && sentence_has("capacity is 55"),
          "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* The kth allocation after the context is made fails. */
static gemmepi_status load_run_and_save(size_t size, long k) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = NULL;
    gemmepi_matmul_desc desc = pass_alone();
    gemmepi_matmul_args args = args_for(&desc);
    gemmepi_status status;
    context = open_fake(&config);
    fails_at = allocations + k;
    status = gemmepi_bundle_read(context, bytes, size);
    if (!status)
        status = gemmepi_matmul(context, &desc, &args, NULL);
    if (!status)
        status = gemmepi_bundle_save(context, bundle_path());
    if (!status)
        status = gemmepi_bundle_load(context, bundle_path());
    gemmepi_destroy(context);
    nothing_is_left();
    return status;
}

static void without_host_memory_a_bundle_is_refused_whole(void) {
    long kernels, k, refused = 0;
    size_t size = make_bundle(0, bytes, &kernels);
    begin_folder();
    for (k = 1; k < 60; k++) {
        gemmepi_status status;
        status = load_run_and_save(size, k);
        CHECK(status == GEMMEPI_OK || status == GEMMEPI_OUT_OF_MEMORY, "allocation %ld: %s: %s", k,
              gemmepi_status_name(status), gemmepi_last_error());
        refused += status != GEMMEPI_OK;
    }
    fails_at = 0;
    CHECK(refused > 10 && refused < 59, "%ld allocations matter", refused);
    empty_folder();
}

/* >>damaged and crafted */

/* What is refused leaves the context as it was. */
static void is_refused(gemmepi_context *context, const unsigned char *data, size_t size, const char *words,
                       const char *what, size_t where) {
    gemmepi_status status = gemmepi_bundle_read(context, data, size);
    CHECK(status == GEMMEPI_FILE_ERROR && sentence_has("the bundle in memory is refused: ") &&
              sentence_has(words),
          "%s %d: %s: %s", what, (int)where, gemmepi_status_name(status), gemmepi_last_error());
    CHECK(!context->bundles, "%s %d changed the context", what, (int)where);
}

static void a_bundle_cut_short_grown_or_changed_in_any_byte_is_refused(void) {
    long kernels;
    size_t size = make_bundle(0, bytes, &kernels), i;
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    for (i = 0; i < size; i++) {
        unsigned char *exact =
            (unsigned char *)malloc(i + 1); /* so that what reads beyond it is caught by a sanitizer */
        memcpy(exact, bytes, i);
        is_refused(context, exact, i, i < 40 ? "does not begin" : "cut short", "cut to", i);
        free(exact);
    }
    is_refused(context, bytes, size + 1, "or grew", "grown", 1);
    for (i = 0; i < size; i++) {
        unsigned flip = 1u << i % 8;
        bytes[i] = (unsigned char)(bytes[i] ^ flip);
        is_refused(context, bytes, size, "", "changed at", i);
        bytes[i] = (unsigned char)(bytes[i] ^ flip);
    }
    CHECK(gemmepi_bundle_read(context, bytes, size) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void another_version_format_or_kind_is_refused_in_words(void) {
    long kernels;
    size_t size = make_bundle(0, bytes, &kernels);
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    put_number(bytes + 20, 4, 1203);
    mend_check(bytes, size);
    is_refused(context, bytes, size, "gemmepi 0.12.3 made it, and this is " GEMMEPI_VERSION_STRING, "version",
               0);
    put_number(bytes + 20, 4, GEMMEPI_VERSION), put_number(bytes + 16, 4, 2);
    mend_check(bytes, size);
    is_refused(context, bytes, size, "its format is 2", "format", 0);
    put_number(bytes + 16, 4, 1);
    memcpy(bytes + 40, "answers", 8);
    mend_check(bytes, size);
    is_refused(context, bytes, size, "a kind that this version does not know", "kind", 0);
    memcpy(bytes + 40, "kernelsx", 8);
    mend_check(bytes, size);
    is_refused(context, bytes, size, "a kind that this version does not know", "kind", 1);
    gemmepi_destroy(context);
    nothing_is_left();
}

/* With a check that fits each field has sizes that do not, up to 2^64 - 1. */
static void sizes_that_do_not_fit_are_refused(void) {
    static const uint64_t sizes[] = {0,           1,           15,          16,          17,
                                     0x7fffffffu, 0x80000000u, 0xfffffff0u, 0xffffffffu, ~0ull >> 1,
                                     ~0ull - 15,  ~0ull - 16,  ~0ull - 40,  ~0ull - 56,  ~0ull};
    static const struct {
        size_t at;
        int bytes;
    } fields[] = {{48, 8}, {56, 4}, {64, 8}};
    long kernels;
    size_t size = make_bundle(0, bytes, &kernels), f, i;
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    for (f = 0; f < GPI__COUNT(fields); f++) {
        uint64_t right = number_at(bytes + fields[f].at, fields[f].bytes);
        for (i = 0; i < GPI__COUNT(sizes) + 2; i++) {
            uint64_t wrong = i < GPI__COUNT(sizes) ? sizes[i] : right + 2 * (i - GPI__COUNT(sizes)) - 1;
            put_number(bytes + fields[f].at, fields[f].bytes, wrong);
            mend_check(bytes, size);
            is_refused(context, bytes, size, "", "size at", fields[f].at);
        }
        put_number(bytes + fields[f].at, fields[f].bytes, right);
    }
    mend_check(bytes, size);
    CHECK(gemmepi_bundle_read(context, bytes, size) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

/* >>kernels one by one */

static void a_kernel_has_a_key_and_an_image_of_some_bytes(void) {
    static const struct {
        size_t key_size, size;
        int is_good;
    } cases[] = {{1, 1, 1}, {0, 1, 0}, {1, 0, 0}, {GPI__CODE_KEY_SIZE - 1, 5, 1}, {GPI__CODE_KEY_SIZE, 5, 0}};
    size_t i;
    for (i = 0; i < GPI__COUNT(cases); i++) {
        size_t all = 16 + cases[i].key_size + cases[i].size;
        gpi__bundle_rest rest;
        gpi__bundled kernel;
        memset(bytes, 'x', all);
        put_number(bytes, 4, cases[i].key_size), put_number(bytes + 4, 4, 90),
            put_number(bytes + 8, 8, cases[i].size);
        rest.at = bytes, rest.left = all;
        CHECK(gpi__parse_kernel(&rest, &kernel) == cases[i].is_good, "a key of %d, an image of %d",
              (int)cases[i].key_size, (int)cases[i].size);
        CHECK(!cases[i].is_good ||
                  (rest.left == 0 && kernel.code.size == cases[i].size && kernel.code.arch == 90 &&
                   kernel.code.image == bytes + 16 + cases[i].key_size),
              "%d bytes are left", (int)rest.left);
        rest.at = bytes, rest.left = all - 1;
        CHECK(!gpi__parse_kernel(&rest, &kernel), "an image that is cut");
    }
}

/* Maps of one key each, whose entries a bundle is written of. */
static gpi__map_entry *entry_of(gpi__map *map, const char *key, gpi__code *code) {
    gemmepi_allocator allocator = gpi__default_allocator();
    size_t i = 0;
    gpi__map_init(map, &allocator);
    CHECK(gpi__map_insert(map, key, strlen(key), code), "no memory");
    while (!map->buckets[i])
        i++;
    return map->buckets[i];
}

static void of_two_kernels_with_one_key_the_first_is_found(void) {
    gpi__code first, second;
    gpi__map maps[3];
    const gpi__map_entry *entries[3];
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__bundle *bundle = NULL;
    const gpi__code *found;
    size_t size, i;
    first.image = "first", first.size = 6, first.arch = 90;
    second.image = "second", second.size = 7, second.arch = 90;
    entries[0] = entry_of(&maps[0], "key", &first), entries[1] = entry_of(&maps[1], "key", &second);
    entries[2] = entry_of(&maps[2], "keys", &second);
    size = gpi__bundle_size(entries, 3);
    gpi__write_bundle(entries, 3, bytes, size);
    CHECK(size == 40 + 16 + 3 * 16 + 3 + 6 + 3 + 7 + 4 + 7, "%d bytes", (int)size);
    CHECK(number_at(bytes + 32, 8) == gpi__hash_word(gpi__hash(bytes, 32), gpi__hash(bytes + 40, size - 40)),
          "the check is not that of bytes 0 to 31 and of what follows");
    CHECK(gpi__parse_bundle(&allocator, bytes, size, &bundle) == GEMMEPI_OK, "%s", gemmepi_last_error());
    if (bundle) {
        found = (const gpi__code *)gpi__map_find(&bundle->by_key, "key", 3);
        CHECK(found && found->size == 6 && bundle->by_key.count == 2, "the second is found");
        gpi__free_bundle(&allocator, bundle);
    }
    CHECK(gpi__by_key(&entries[0], &entries[2]) < 0 && gpi__by_key(&entries[2], &entries[0]) > 0 &&
              gpi__by_key(&entries[0], &entries[1]) == 0,
          "of keys that begin alike the shorter comes first");
    for (i = 0; i < 3; i++)
        gpi__map_free(&maps[i]);
}

/* Random changes with a check that fits: it is taken or refused, and what is taken is found or not. */
static void a_crafted_bundle_is_taken_or_refused(void) {
    long kernels, taken = 0;
    size_t size = make_bundle(0, bytes, &kernels);
    uint64_t state = 1;
    int round;
    for (round = 0; round < 400; round++) {
        gemmepi_context *context = open_without_nvrtc(0);
        size_t cut = size, changes;
        unsigned char *copy;
        gemmepi_matmul_desc desc = pass_alone();
        gemmepi_plan *plan = NULL;
        state = (state + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u, state ^= state >> 31;
        if (state % 4 == 0)
            cut = 41 + (size_t)(state >> 8) % (size - 41);
        copy = (unsigned char *)malloc(cut);
        memcpy(copy, bytes, cut);
        for (changes = 1 + state % 3; changes-- > 0; state = state * 0xbf58476d1ce4e5b9u + 1)
            copy[40 + (size_t)(state >> 20) % (state % 2 && cut > 72 ? 32 : cut - 40)] ^=
                (unsigned char)(state >> 8);
        mend_check(copy, cut);
        if (gemmepi_bundle_read(context, copy, cut) == GEMMEPI_OK)
            taken++;
        if (gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK)
            gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
        nothing_is_left();
        free(copy);
    }
    CHECK(taken > 10 && taken < 390, "%ld of 400 were taken", taken);
}

/* >>files */

static void what_is_no_file_or_no_bundle_is_refused(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    const char *path;
    begin_folder();
    path = bundle_path();
    CHECK(gemmepi_bundle_load(context, path) == GEMMEPI_FILE_ERROR && sentence_has("cannot be read") &&
              sentence_has(path),
          "%s", gemmepi_last_error());
    write_path(path, "", 0);
    CHECK(gemmepi_bundle_load(context, path) == GEMMEPI_FILE_ERROR &&
              sentence_has("does not begin as a bundle"),
          "%s", gemmepi_last_error());
    write_path(path, "The kernels of a program, so to say", 35);
    CHECK(gemmepi_bundle_load(context, path) == GEMMEPI_FILE_ERROR &&
              sentence_has("does not begin as a bundle"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_bundle_load(context, folder) == GEMMEPI_FILE_ERROR, "a folder: %s", gemmepi_last_error());
    CHECK(gemmepi_bundle_load(context, "") == GEMMEPI_FILE_ERROR, "an empty path: %s", gemmepi_last_error());
    CHECK(gemmepi_bundle_save(context, folder) == GEMMEPI_FILE_ERROR &&
              gemmepi_bundle_save(context, "") == GEMMEPI_FILE_ERROR,
          "%s", gemmepi_last_error());
    CHECK(gemmepi_bundle_save(context, "no-such-folder/kernels") == GEMMEPI_FILE_ERROR &&
              sentence_has("no-such-folder/kernels"),
          "%s", gemmepi_last_error());
    CHECK(!context->bundles, "the context was changed");
    gemmepi_destroy(context);
    nothing_is_left();
    empty_folder();
}

#if !GPI__WINDOWS

static void a_pipe_does_not_hang_and_stays(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    struct stat status;
    begin_folder();
    CHECK(mkfifo(bundle_path(), 0600) == 0, "cannot make a pipe");
    CHECK(gemmepi_bundle_load(context, bundle_path()) == GEMMEPI_FILE_ERROR &&
              sentence_has("no regular file"),
          "%s", gemmepi_last_error());
    CHECK(gemmepi_bundle_save(context, bundle_path()) == GEMMEPI_FILE_ERROR &&
              sentence_has("no regular file"),
          "%s", gemmepi_last_error());
    CHECK(stat(bundle_path(), &status) == 0 && S_ISFIFO(status.st_mode), "the pipe is gone");
    CHECK(gemmepi_bundle_save(context, "/dev/null") == GEMMEPI_FILE_ERROR, "%s", gemmepi_last_error());
    CHECK(gemmepi_bundle_load(context, "/dev/zero") == GEMMEPI_FILE_ERROR, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
    empty_folder();
}

static void a_file_of_more_than_a_gibibyte_is_not_read(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    begin_folder();
    write_path(bundle_path(), "gemmepi bundle\r\n", 16);
    if (truncate(bundle_path(), (off_t)3 << 30) == 0)
        CHECK(gemmepi_bundle_load(context, bundle_path()) == GEMMEPI_FILE_ERROR &&
                  sentence_has(strerror(EFBIG)),
              "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
    empty_folder();
}

static void the_umask_says_who_may_read_a_bundle(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context = open_fake(&config);
    struct stat status;
    mode_t mask;
    begin_folder();
    mask = umask(022);
    CHECK(gemmepi_bundle_save(context, bundle_path()) == GEMMEPI_OK && stat(bundle_path(), &status) == 0 &&
              (status.st_mode & 0777) == 0644,
          "mode %o", (unsigned)status.st_mode);
    umask(mask);
    CHECK(chmod(bundle_path(), 0444) == 0 && gemmepi_bundle_load(context, bundle_path()) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
    empty_folder();
}

/* In a process of its own, which is nobody's where this is root's: how many checks failed there. */
static int in_child(void (*body)(gemmepi_context *), gemmepi_context *context) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        test_failures_here = 0;
        gpi__forks = context->forks; /* the fake GPU is there for children, too */
        if (geteuid() == 0) {
            CHECK(setgid(65534) == 0 && setuid(65534) == 0, "cannot become nobody");
        }
        body(context);
        fflush(stdout);
        _exit(test_failures_here > 100 ? 100 : test_failures_here);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 1000;
    return WEXITSTATUS(status);
}

static void save_without_room(gemmepi_context *context) {
    struct rlimit limit;
    limit.rlim_cur = limit.rlim_max = 1000; /* bytes in a file: what goes beyond fails as on a full disk */
    if (hides_limit)
        signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "cannot set the limit");
    CHECK(gemmepi_bundle_save(context, bundle_path()) == GEMMEPI_FILE_ERROR && sentence_has(strerror(EFBIG)),
          "%s", gemmepi_last_error());
}

static void save_without_permission(gemmepi_context *context) {
    CHECK(gemmepi_bundle_save(context, bundle_path()) == GEMMEPI_FILE_ERROR && sentence_has(strerror(EACCES)),
          "%s", gemmepi_last_error());
}

static void count_any(void *user, const char *name) {
    (void)name;
    ++*(int *)user;
}

static void a_save_that_fails_leaves_the_old_file_alone(void) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context = open_fake(&config);
    gemmepi_context_details details;
    int way, failed, files;
    run_products(context, &details);
    for (
        way = 0; way < 3;
        way++) { /* a full disk that is known before, one that is not, and a folder that may not be written */
        gpi__folder opened;
        begin_folder();
        CHECK(chmod(folder, 0777) == 0, "cannot set the mode");
        write_path(bundle_path(), "old", 3);
        if (way == 2)
            CHECK(chmod(folder, 0555) == 0, "cannot set the mode");
        hides_limit = way == 1;
        failed = in_child(way < 2 ? save_without_room : save_without_permission, context);
        hides_limit = 0;
        CHECK(failed == 0, "%d checks in the child, way %d", failed, way);
        CHECK(read_path(bundle_path(), bytes) == 3 && memcmp(bytes, "old", 3) == 0,
              "the old file is gone, way %d", way);
        files = 0;
        CHECK(gpi__folder_open(&opened, folder) == 0, "no folder");
        gpi__folder_list(&opened, count_any, &files);
        gpi__folder_close(&opened);
        CHECK(files == 1, "%d files are left, way %d", files, way);
        CHECK(chmod(folder, 0700) == 0, "cannot set the mode");
        CHECK(gemmepi_bundle_save(context, bundle_path()) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(read_path(bundle_path(), bytes) > 1000, "no bundle took its place");
        empty_folder();
    }
    gemmepi_destroy(context);
    nothing_is_left();
}

#endif

/* >>threads */

enum { THREADS = 4, ROUNDS = 30 };

static gemmepi_context *shared;
static long failed_calls;
static size_t shared_size;
static char shared_path[700];

/* Some plan and run, others load and save. */
static void *work_at_once(void *user) {
    int mine = *(const int *)user, i;
    unsigned char *data = (unsigned char *)malloc(MOST_BYTES);
    for (i = 0; i < ROUNDS; i++) {
        gemmepi_matmul_desc desc = i % 2 ? pass_alone() : split_product();
        gemmepi_matmul_args args;
        size_t size = 0;
        desc.m = 8 + 8 * (i % 7);
        args = args_for(&desc);
        if (mine % 2) {
            count(&failed_calls, gemmepi_matmul(shared, &desc, &args, NULL) != GEMMEPI_OK);
        } else {
            count(&failed_calls, gemmepi_bundle_write(shared, data, MOST_BYTES, &size) != GEMMEPI_OK);
            count(&failed_calls, gemmepi_bundle_read(shared, bytes, shared_size) != GEMMEPI_OK);
            count(&failed_calls, gemmepi_bundle_save(shared, shared_path) != GEMMEPI_OK);
            count(&failed_calls, gemmepi_bundle_load(shared, shared_path) != GEMMEPI_OK);
        }
    }
    free(data);
    return NULL;
}

static void threads_load_and_save_while_others_run(void) {
    long kernels;
    gemmepi_config config;
    pthread_t threads[THREADS];
    int numbers[THREADS], i;
    shared_size = make_bundle(80, bytes, &kernels);
    begin_folder();
    snprintf(shared_path, sizeof shared_path, "%s", bundle_path());
    config = config_with_all_routes();
    shared = open_fake(&config);
    failed_calls = 0;
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, work_at_once, &numbers[i]) != 0) {
            printf("the system gives no thread\n");
            exit(1);
        }
    }
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(failed_calls == 0, "%ld calls failed", failed_calls);
    CHECK(kernels_of(others, written(shared, others), "arch 80\n") == kernels, "kernels were lost");
    gemmepi_destroy(shared);
    nothing_is_left();
    empty_folder();
}

int main(void) {
    keep_libraries_open();
    RUN(kernels_of_a_bundle_need_neither_nvrtc_nor_a_cache);
    RUN(formulas_of_a_bundle_are_inside_as_before);
    RUN(a_bundle_in_const_memory_may_lie_at_any_address);
    RUN(the_same_kernels_give_the_same_bytes_each_once);
    RUN(bundles_of_two_chips_are_merged_by_loading_and_saving);
    RUN(a_kernel_that_no_bundle_has_is_compiled_or_named);
    RUN(of_candidates_those_run_whose_kernels_a_bundle_has);
    RUN(code_that_the_driver_refuses_is_compiled_anew_and_replaced);
    RUN(where_the_driver_refuses_code_another_bundle_has_its_turn);
    RUN(what_the_device_lacks_is_told);
    RUN(the_host_checks_bundles_and_says_that_it_has_none);
    RUN(a_bundle_without_kernels_is_one);
    RUN(what_a_call_lacks_is_named);
    RUN(without_host_memory_a_bundle_is_refused_whole);
    RUN(a_bundle_cut_short_grown_or_changed_in_any_byte_is_refused);
    RUN(another_version_format_or_kind_is_refused_in_words);
    RUN(sizes_that_do_not_fit_are_refused);
    RUN(a_kernel_has_a_key_and_an_image_of_some_bytes);
    RUN(of_two_kernels_with_one_key_the_first_is_found);
    RUN(a_crafted_bundle_is_taken_or_refused);
    RUN(what_is_no_file_or_no_bundle_is_refused);
#if !GPI__WINDOWS
    RUN(a_pipe_does_not_hang_and_stays);
    RUN(a_file_of_more_than_a_gibibyte_is_not_read);
    RUN(the_umask_says_who_may_read_a_bundle);
    RUN(a_save_that_fails_leaves_the_old_file_alone);
#endif
    RUN(threads_load_and_save_while_others_run);
    return test_finish();
}
