/* Kernels kept on disk or dumped there: on the fake GPU of fake_cuda.h. */
#include "fake_operations.h"

static void run_split_and_pass(const gemmepi_config *config, gemmepi_context_details *details) {
    gemmepi_context *context = open_fake(config);
    gemmepi_matmul_desc descs[2];
    int i;
    descs[0] = split_product(), descs[1] = pass_alone();
    for (i = 0; i < 2; i++) {
        gemmepi_matmul_args args = args_for(&descs[i]);
        CHECK(gemmepi_matmul(context, &descs[i], &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    }
    CHECK(gemmepi_context_info(context, details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_second_context_compiles_nothing_and_never_looks_for_nvrtc(void) {
    gemmepi_config config = fake_config();
    gemmepi_context_details cold, warm;
    config.cache_path = new_folder();
    config.log = keep_log;
    run_split_and_pass(&config, &cold);
    CHECK(cold.kernels_compiled == gpu.compilations && gpu.compilations >= 2, "%ld compiled",
          gpu.compilations);
    CHECK(cold.nvrtc_version == 13000 && gpu.asked_nvrtc > 0, "version %d", cold.nvrtc_version);
    plug_in();
    gpu.missing = "nvrtc";
    run_split_and_pass(&config, &warm);
    CHECK(gpu.compilations == 0 && warm.kernels_compiled == 0, "%ld compiled; the log: %s", gpu.compilations,
          logged);
    CHECK(warm.kernels_from_disk == cold.kernels_compiled, "%d from disk", (int)warm.kernels_from_disk);
    CHECK(gpu.asked_nvrtc == 0 && warm.nvrtc_version == 0, "nvrtc was asked for %ld functions",
          gpu.asked_nvrtc);
    empty_folder();
}

/* The kernels of element-wise operations come from disk as all others do. */
static void a_second_context_compiles_no_elementwise_kernel(void) {
    gemmepi_config config = fake_config();
    const char *cache = new_folder();
    long compiled = 0;
    int second, i;
    for (second = 0; second < 2; second++) {
        gemmepi_context *context;
        gemmepi_context_details details;
        config = fake_config();
        config.cache_path = cache;
        gpu.missing = second ? "nvrtc" : NULL;
        context = open_fake(&config);
        for (i = 0; i < ELEMENT_CALLS; i++) {
            element_call c;
            element_calls[i].make(&c);
            CHECK(call_at_any_time(context, &c, NULL) == GEMMEPI_OK, "%s: %s", element_calls[i].name,
                  gemmepi_last_error());
        }
        CHECK(gemmepi_context_info(context, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
        if (!second)
            compiled = (long)details.kernels_compiled;
        CHECK(gpu.compilations == (second ? 0 : compiled) &&
                  details.kernels_from_disk == (second ? compiled : 0),
              "%ld compiled, %d from disk", gpu.compilations, (int)details.kernels_from_disk);
        gemmepi_destroy(context);
        nothing_is_left_and_cublaslt_was_not_loaded();
    }
    empty_folder();
}

static void a_kernel_on_disk_that_the_driver_refuses_is_compiled_anew(void) {
    gemmepi_config config = fake_config();
    gemmepi_context_details details;
    config.cache_path = new_folder();
    run_split_and_pass(&config, &details);
    plug_in();
    break_function("cuModuleLoadData", GPI__CUDA_ERROR_INVALID_IMAGE);
    {
        gemmepi_context *context = open_fake(&config);
        gemmepi_matmul_desc desc = pass_alone();
        gemmepi_plan *plan = NULL;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_CUDA_ERROR && !plan, "%s",
              gemmepi_last_error());
        CHECK(gpu.compilations == 1, "%ld compiled", gpu.compilations);
        gpu.fails = NULL;
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
    }
    nothing_is_left();
    empty_folder();
}

/* The file's bytes, with a zero behind them; -1 if there is no such file in the folder. */
static long read_dumped(const char *name, char *data, size_t size) {
    char path[1000];
    long length;
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (!file)
        return -1;
    length = (long)fread(data, 1, size - 1, file);
    data[length] = 0;
    fclose(file);
    return length;
}

/* Kernels by two NVRTCs in one folder, of which the older one was there last. */
static void a_kernel_of_this_nvrtc_is_found_where_another_was_used_last(void) {
    gemmepi_config config = fake_config();
    gemmepi_matmul_desc other = pass_alone();
    int i;
    config.cache_path = new_folder();
    other.epilogue = GEMMEPI_TANH;
    for (i = 0; i < 3; i++) {
        gemmepi_matmul_desc desc = i == 1 ? other : pass_alone();
        gemmepi_context *context;
        gemmepi_plan *plan = NULL;
        plug_in();
        gpu.other_nvrtc = i == 1 ? 124 : 0;
        context = open_fake(&config);
        CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        CHECK(gpu.compilations == (i < 2), "context %d compiles %ld", i, gpu.compilations);
        gemmepi_plan_destroy(plan);
        gemmepi_destroy(context);
    }
    gpu.other_nvrtc = 0;
    nothing_is_left();
    empty_folder();
}

/* What the log of a compilation says counts, not the version: later kernels are not serialised where earlier ones were. */
static void an_nvrtc_that_serialises_wgmma_is_told_once(void) {
    static const struct { int version, serialises; } rows[] = {{120, 1}, {123, 0}, {0, 1}, {0, 0}};
    size_t i;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        gemmepi_config config = fake_config();
        gemmepi_matmul_desc first = fused_product(), second = split_product();
        gemmepi_context *context;
        gemmepi_plan *plan = NULL;
        gpu.other_arch = 90, gpu.other_nvrtc = rows[i].version;
        config.log = keep_log;
        context = open_fake(&config);
        gpu.serialises_wgmma = rows[i].serialises;
        CHECK(gemmepi_plan_matmul(context, &first, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gemmepi_plan_destroy(plan);
        CHECK(gemmepi_plan_matmul(context, &second, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
        gemmepi_plan_destroy(plan);
        CHECK(lines_of(rows[i].version ? "2 NVRTC 12." : "2 NVRTC 13.") == rows[i].serialises &&
                  (strstr(logged, "wait after each instruction of gemmepi_") != NULL) == rows[i].serialises,
              "%d: the log has: %s", (int)i, logged);
        gemmepi_destroy(context);
    }
    gpu.other_arch = gpu.other_nvrtc = gpu.serialises_wgmma = 0;
}

static void what_is_compiled_is_dumped_where_that_is_asked_for(void) {
    static char data[1 << 20];
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = pass_alone();
    gemmepi_plan *plan = NULL;
    config.dump_path = new_folder();
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
    CHECK(read_dumped("gemmepi_pass_f32_tanh_bias.cubin", data, sizeof data) == CUBIN_SIZE &&
              memcmp(data, "fake cubin ", 11) == 0,
          "no cubin in %s", folder);
    CHECK(read_dumped("gemmepi_pass_f32_tanh_bias.ptx", data, sizeof data) >= 0 &&
              strcmp(data, fake_ptx) == 0,
          "no PTX in %s", folder);
    CHECK(read_dumped("gemmepi_pass_f32_tanh_bias.cu", data, sizeof data) > 0, "no source in %s", folder);
    CHECK(strncmp(data, "#define gemmepi_pass gemmepi_pass_f32_tanh_bias\n", 48) == 0, "%.100s", data);
    CHECK(strstr(data, "gemmepi_pass(") && strstr(data, "gpi__epilogue_params") &&
              !strstr(data, "#include \""),
          "not the whole source");
    empty_folder();
}

/* A program may go elsewhere after it has made its context. */
static void a_relative_dump_path_is_in_the_folder_of_when_the_context_was_made(void) {
    static char data[1 << 20];
    char here[500], name[80];
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = pass_alone();
    gemmepi_plan *plan = NULL;
    long length;
    CHECK(getcwd(here, sizeof here) != NULL, "no current folder");
    snprintf(name, sizeof name, "gemmepi-dump-%ld", (long)getpid());
    snprintf(folder, sizeof folder, "%s/%s", here, name);
    config.dump_path = name;
    context = open_fake(&config);
    CHECK(chdir("..") == 0, "cannot go up");
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(chdir(here) == 0, "cannot go back");
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
    length = read_dumped("gemmepi_pass_f32_tanh_bias.cu", data, sizeof data);
    CHECK(length > 0, "nothing is in %s", folder);
    empty_folder();
}

static void a_dump_that_cannot_be_written_is_a_warning(void) {
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_matmul_desc desc = pass_alone();
    gemmepi_plan *plan = NULL;
    char path[700];
    FILE *file = fopen(new_folder(), "wb"); /* a file where the folder should be */
    CHECK(file != NULL, "no file %s", folder);
    if (file)
        fclose(file);
    snprintf(path, sizeof path, "%s/dump", folder);
    config.dump_path = path;
    config.log = keep_log;
    context = open_fake(&config);
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strstr(logged, "2 gemmepi_pass_f32_tanh_bias cannot be written to config.dump_path"),
          "the log has: %s", logged);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    nothing_is_left();
    remove(folder);
}

int main(void) {
    keep_libraries_open();
    RUN(a_second_context_compiles_nothing_and_never_looks_for_nvrtc);
    RUN(a_second_context_compiles_no_elementwise_kernel);
    RUN(a_kernel_on_disk_that_the_driver_refuses_is_compiled_anew);
    RUN(a_kernel_of_this_nvrtc_is_found_where_another_was_used_last);
    RUN(an_nvrtc_that_serialises_wgmma_is_told_once);
    RUN(what_is_compiled_is_dumped_where_that_is_asked_for);
    RUN(a_relative_dump_path_is_in_the_folder_of_when_the_context_was_made);
    RUN(a_dump_that_cannot_be_written_is_a_warning);
    return test_finish();
}
