/* What a chip gets compiled for, and that NVRTC alone compiles our sources. */
#include "device/create.h"
#include "test.h"

static int known_archs[3] = {75, 90, 120};

static int GPI__CUDA_CALL count_archs(int *count) {
    *count = 3;
    return 0;
}

static int GPI__CUDA_CALL list_archs(int *archs) {
    memcpy(archs, known_archs, sizeof known_archs);
    return 0;
}

static int lists_of_one; /* asked for */

static int GPI__CUDA_CALL count_one_arch(int *count) {
    *count = 1;
    return 0;
}

static int GPI__CUDA_CALL list_one_arch(int *archs) {
    lists_of_one++;
    archs[0] = 90;
    return 0;
}

static int GPI__CUDA_CALL refuse_count(int *count) {
    *count = 0;
    return 5;
}

static const char *GPI__CUDA_CALL say_error(int result) {
    return result ? "an error" : "no error";
}

static gpi__nvrtc fake_nvrtc(void) {
    gpi__nvrtc nvrtc;
    memset(&nvrtc, 0, sizeof nvrtc);
    nvrtc.version = 13000;
    nvrtc.get_num_supported_archs = count_archs;
    nvrtc.get_supported_archs = list_archs;
    nvrtc.get_error_string = say_error;
    return nvrtc;
}

static void a_chip_that_nvrtc_knows_gets_machine_code(void) {
    gpi__nvrtc nvrtc = fake_nvrtc();
    gpi__target target;
    CHECK(gpi__choose_target(&nvrtc, 90, &target) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strcmp(target.name, "sm_90") == 0 && !target.is_ptx, "%s", target.name);
}

static void a_newer_chip_gets_ptx_of_the_newest_older_one(void) {
    gpi__nvrtc nvrtc = fake_nvrtc();
    gpi__target target;
    CHECK(gpi__choose_target(&nvrtc, 130, &target) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strcmp(target.name, "compute_120") == 0 && target.is_ptx, "%s", target.name);
    CHECK(gpi__choose_target(&nvrtc, 103, &target) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strcmp(target.name, "compute_90") == 0 && target.is_ptx, "%s", target.name);
}

static void an_nvrtc_that_knows_one_architecture_is_used(void) {
    gpi__nvrtc nvrtc = fake_nvrtc();
    gpi__target target;
    nvrtc.get_num_supported_archs = count_one_arch;
    nvrtc.get_supported_archs = list_one_arch;
    CHECK(gpi__choose_target(&nvrtc, 90, &target) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strcmp(target.name, "sm_90") == 0 && !target.is_ptx && lists_of_one == 1, "%s", target.name);
    CHECK(gpi__choose_target(&nvrtc, 120, &target) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strcmp(target.name, "compute_90") == 0 && target.is_ptx && lists_of_one == 2, "%s", target.name);
    CHECK(gpi__choose_target(&nvrtc, 80, &target) == GEMMEPI_UNSUPPORTED && lists_of_one == 3, "%s",
          gemmepi_last_error());
}

static void a_chip_older_than_all_is_refused_in_words(void) {
    gpi__nvrtc nvrtc = fake_nvrtc();
    gpi__target target;
    CHECK(gpi__choose_target(&nvrtc, 61, &target) == GEMMEPI_UNSUPPORTED, "%s", gemmepi_last_error());
    CHECK(strstr(gemmepi_last_error(), "6.1") != NULL, "%s", gemmepi_last_error());
    nvrtc.get_num_supported_archs = refuse_count;
    CHECK(gpi__choose_target(&nvrtc, 90, &target) == GEMMEPI_COMPILE_ERROR, "%s", gemmepi_last_error());
}

static gpi__log no_log;

static int open_nvrtc(gpi__nvrtc *nvrtc) {
    gpi__loader loader;
    memset(&loader, 0, sizeof loader);
    loader.log = &no_log;
    return gpi__load_nvrtc(&loader, nvrtc) == GEMMEPI_OK;
}

static void every_kernel_file_compiles_to_cubin_and_to_ptx(void) {
    static const char *const files[] = {"pass.cu", "reduce.cu"};
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__nvrtc nvrtc;
    size_t i;
    int is_ptx;
    if (!open_nvrtc(&nvrtc))
        SKIP("there is no NVRTC on this machine");
    for (i = 0; i < GPI__COUNT(files); i++)
        for (is_ptx = 0; is_ptx < 2; is_ptx++) {
            gpi__target target;
            gpi__image image;
            gemmepi_status status;
            snprintf(target.name, sizeof target.name, "%s_90", is_ptx ? "compute" : "sm");
            target.is_ptx = is_ptx;
            target.keeps_ptx = target.reports = 0;
            status = gpi__compile(&nvrtc, &allocator, files[i], "", &target, &image);
            CHECK(status == GEMMEPI_OK, "%s: %s", files[i], gemmepi_last_error());
            if (status)
                continue;
            CHECK(is_ptx ? strstr(image.data, ".target sm_90") != NULL && image.data[image.size - 1] == 0
                         : memcmp(image.data, "\177ELF", 4) == 0,
                  "%s is neither PTX nor a cubin", files[i]);
            gpi__delete(&allocator, image.data);
        }
    gpi__unload_nvrtc(&nvrtc);
}

static void a_dumped_source_compiles_by_itself_to_the_same_ptx(void) {
    static const char prologue[] = "#define gemmepi_pass gemmepi_renamed\n";
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__target target = {"sm_90", 0, 1, 0};
    const char *options[] = {"--gpu-architecture=sm_90", "--std=c++17"};
    gpi__image image;
    gpi__nvrtc nvrtc;
    gpi__nvrtc_program program = NULL;
    char *whole, *ptx = NULL;
    if (!open_nvrtc(&nvrtc))
        SKIP("there is no NVRTC on this machine");
    CHECK(gpi__compile(&nvrtc, &allocator, "pass.cu", prologue, &target, &image) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    CHECK(image.ptx && strstr(image.ptx, ".entry gemmepi_renamed("),
          "no PTX beside the cubin, or another name");
    whole = gpi__whole_source(&allocator, gpi__find_source("pass.cu"), prologue);
    if (whole && !nvrtc.create_program(&program, whole, "pass.cu", 0, NULL, NULL) &&
        !nvrtc.compile_program(program, 2, options))
        ptx = gpi__load_ptx(&nvrtc, &allocator, program);
    CHECK(image.ptx && ptx && strcmp(image.ptx, ptx) == 0, "another PTX");
    if (program)
        nvrtc.destroy_program(&program);
    gpi__delete(&allocator, whole);
    gpi__delete(&allocator, ptx);
    gpi__free_image(&allocator, &image);
    gpi__unload_nvrtc(&nvrtc);
}

static void a_source_that_does_not_compile_gives_nvrtcs_words(void) {
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__target target = {"sm_90", 0, 0, 0};
    gpi__image image;
    gpi__nvrtc nvrtc;
    gemmepi_status status;
    if (!open_nvrtc(&nvrtc))
        SKIP("there is no NVRTC on this machine");
    status = gpi__compile(&nvrtc, &allocator, "reduce.cu", "#error wrong on purpose\n", &target, &image);
    CHECK(status == GEMMEPI_COMPILE_ERROR, "%s", gemmepi_status_name(status));
    CHECK(strstr(gemmepi_last_error(), "wrong on purpose") != NULL, "%s", gemmepi_last_error());
    CHECK(image.data == NULL, "an image all the same");
    gpi__unload_nvrtc(&nvrtc);
}

/* The line of the repository's file that has the text; 0 if there is no such file here. */
static int line_of(const char *file, const char *text) {
    char path[100], line[1000];
    int number = 0, found = 0;
    FILE *source;
    snprintf(path, sizeof path, "src/kernels/%s", file);
    source = fopen(path, "r");
    while (source && !found && fgets(line, sizeof line, source)) {
        number++;
        if (strstr(line, text))
            found = number;
    }
    if (source)
        fclose(source);
    return found;
}

static void errors_point_at_the_line_of_the_file_in_the_repository(void) {
    static const struct {
        const char *file, *name, *in; /* the name, which becomes a number, and the file that has it */
    } rows[] = {{"pass.cu", "gemmepi_pass", "pass.cu"},
                {"reduce.cu", "gemmepi_reduce", "reduce.cu"},
                {"scaled.cu", "gemmepi_scaled", "scaled.cu"},
                {"gemm_plain.cu", "gemmepi_plain", "gemm_plain.cu"},
                {"transpose.cu", "gemmepi_transpose", "transpose.cu"},
                {"pass.cu", "fast_reciprocal", "activation_functions.cuh"}};
    gemmepi_allocator allocator = gpi__default_allocator();
    gpi__target target = {"sm_90", 0, 0, 0};
    gpi__image image;
    gpi__nvrtc nvrtc;
    size_t i;
    if (!open_nvrtc(&nvrtc))
        SKIP("there is no NVRTC on this machine");
    for (i = 0; i < GPI__COUNT(rows); i++) {
        char prologue[100], call[100], expected[100];
        int line;
        snprintf(call, sizeof call, "%s(", rows[i].name);
        line = line_of(rows[i].in, call);
        if (!line)
            SKIP("the kernels' sources are not in src/kernels/ of the current folder");
        snprintf(prologue, sizeof prologue, "#define %s 7\n", rows[i].name);
        snprintf(expected, sizeof expected, "src/kernels/%s(%d): error", rows[i].in, line);
        CHECK(gpi__compile(&nvrtc, &allocator, rows[i].file, prologue, &target, &image) ==
                  GEMMEPI_COMPILE_ERROR,
              "%s compiles", rows[i].file);
        CHECK(strstr(gemmepi_last_error(), expected), "no '%s' in: %.600s", expected, gemmepi_last_error());
    }
    gpi__unload_nvrtc(&nvrtc);
}

static void kernels_are_embedded_without_comments_and_indentation(void) {
    const gpi__source *source;
    const char *const *part;
    for (source = gpi__sources; source->name; source++)
        for (part = source->parts; *part; part++) {
            CHECK(!strstr(*part, "\n ") && **part != ' ', "%s has an indented line", source->name);
            CHECK(!strstr(*part, "//") && !strstr(*part, "/*"), "%s has a comment", source->name);
        }
}

int main(void) {
    RUN(a_chip_that_nvrtc_knows_gets_machine_code);
    RUN(a_newer_chip_gets_ptx_of_the_newest_older_one);
    RUN(an_nvrtc_that_knows_one_architecture_is_used);
    RUN(a_chip_older_than_all_is_refused_in_words);
    RUN(every_kernel_file_compiles_to_cubin_and_to_ptx);
    RUN(a_dumped_source_compiles_by_itself_to_the_same_ptx);
    RUN(errors_point_at_the_line_of_the_file_in_the_repository);
    RUN(kernels_are_embedded_without_comments_and_indentation);
    RUN(a_source_that_does_not_compile_gives_nvrtcs_words);
    return test_finish();
}
