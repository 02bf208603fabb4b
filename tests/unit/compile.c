/* What a chip gets compiled for, and that NVRTC alone compiles our sources. */
#include "device/destroy.h"
#include "test.h"

static int known_archs[3] = {75, 90, 120};

static int GEMMEPI__CUDA_CALL count_archs(int *count) {
    *count = 3;
    return 0;
}

static int GEMMEPI__CUDA_CALL list_archs(int *archs) {
    memcpy(archs, known_archs, sizeof known_archs);
    return 0;
}

static int GEMMEPI__CUDA_CALL refuse_count(int *count) {
    *count = 0;
    return 5;
}

static const char *GEMMEPI__CUDA_CALL say_error(int result) {
    return result ? "an error" : "no error";
}

static gemmepi__nvrtc fake_nvrtc(void) {
    gemmepi__nvrtc nvrtc;
    memset(&nvrtc, 0, sizeof nvrtc);
    nvrtc.version = 13000;
    nvrtc.get_num_supported_archs = count_archs;
    nvrtc.get_supported_archs = list_archs;
    nvrtc.get_error_string = say_error;
    return nvrtc;
}

static void a_chip_that_nvrtc_knows_gets_machine_code(void) {
    gemmepi__nvrtc nvrtc = fake_nvrtc();
    gemmepi__target target;
    CHECK(gemmepi__choose_target(&nvrtc, 90, &target) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strcmp(target.name, "sm_90") == 0 && !target.is_ptx, "%s", target.name);
}

static void a_newer_chip_gets_ptx_of_the_newest_older_one(void) {
    gemmepi__nvrtc nvrtc = fake_nvrtc();
    gemmepi__target target;
    CHECK(gemmepi__choose_target(&nvrtc, 130, &target) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strcmp(target.name, "compute_120") == 0 && target.is_ptx, "%s", target.name);
    CHECK(gemmepi__choose_target(&nvrtc, 103, &target) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(strcmp(target.name, "compute_90") == 0 && target.is_ptx, "%s", target.name);
}

static void a_chip_older_than_all_is_refused_in_words(void) {
    gemmepi__nvrtc nvrtc = fake_nvrtc();
    gemmepi__target target;
    CHECK(gemmepi__choose_target(&nvrtc, 61, &target) == GEMMEPI_UNSUPPORTED, "%s", gemmepi_last_error());
    CHECK(strstr(gemmepi_last_error(), "6.1") != NULL, "%s", gemmepi_last_error());
    nvrtc.get_num_supported_archs = refuse_count;
    CHECK(gemmepi__choose_target(&nvrtc, 90, &target) == GEMMEPI_COMPILE_ERROR, "%s", gemmepi_last_error());
}

static gemmepi__log no_log;

static int open_nvrtc(gemmepi__nvrtc *nvrtc) {
    gemmepi__loader loader;
    memset(&loader, 0, sizeof loader);
    loader.log = &no_log;
    return gemmepi__load_nvrtc(&loader, nvrtc) == GEMMEPI_OK;
}

static void every_kernel_file_compiles_to_cubin_and_to_ptx(void) {
    static const char *const files[] = {"pass.cu", "reduce.cu"};
    gemmepi_allocator allocator = gemmepi__default_allocator();
    gemmepi__nvrtc nvrtc;
    size_t i;
    int is_ptx;
    if (!open_nvrtc(&nvrtc))
        SKIP("there is no NVRTC on this machine");
    for (i = 0; i < GEMMEPI__COUNT(files); i++)
        for (is_ptx = 0; is_ptx < 2; is_ptx++) {
            gemmepi__target target;
            gemmepi__image image;
            gemmepi_status status;
            snprintf(target.name, sizeof target.name, "%s_90", is_ptx ? "compute" : "sm");
            target.is_ptx = is_ptx;
            target.keeps_ptx = 0;
            status = gemmepi__compile(&nvrtc, &allocator, files[i], "", &target, &image, NULL);
            CHECK(status == GEMMEPI_OK, "%s: %s", files[i], gemmepi_last_error());
            if (status)
                continue;
            CHECK(is_ptx ? strstr(image.data, ".target sm_90") != NULL && image.data[image.size - 1] == 0
                         : memcmp(image.data, "\177ELF", 4) == 0,
                  "%s is neither PTX nor a cubin", files[i]);
            gemmepi__delete(&allocator, image.data);
        }
    gemmepi__unload_nvrtc(&nvrtc);
}

static void a_dumped_source_compiles_by_itself_to_the_same_ptx(void) {
    static const char prologue[] = "#define gemmepi_pass gemmepi_renamed\n";
    gemmepi_allocator allocator = gemmepi__default_allocator();
    gemmepi__target target = {"sm_90", 0, 1};
    const char *options[] = {"--gpu-architecture=sm_90", "--std=c++17"};
    gemmepi__image image;
    gemmepi__nvrtc nvrtc;
    gemmepi__nvrtc_program program = NULL;
    char *whole, *ptx = NULL;
    if (!open_nvrtc(&nvrtc))
        SKIP("there is no NVRTC on this machine");
    CHECK(gemmepi__compile(&nvrtc, &allocator, "pass.cu", prologue, &target, &image, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    CHECK(image.ptx && strstr(image.ptx, ".entry gemmepi_renamed("),
          "no PTX beside the cubin, or another name");
    whole = gemmepi__whole_source(&allocator, gemmepi__find_source("pass.cu"), prologue);
    if (whole && !nvrtc.create_program(&program, whole, "pass.cu", 0, NULL, NULL) &&
        !nvrtc.compile_program(program, 2, options))
        ptx = gemmepi__take_ptx(&nvrtc, &allocator, program);
    CHECK(image.ptx && ptx && strcmp(image.ptx, ptx) == 0, "another PTX");
    if (program)
        nvrtc.destroy_program(&program);
    gemmepi__delete(&allocator, whole);
    gemmepi__delete(&allocator, ptx);
    gemmepi__free_image(&allocator, &image);
    gemmepi__unload_nvrtc(&nvrtc);
}

static void a_source_that_does_not_compile_gives_nvrtcs_words(void) {
    gemmepi_allocator allocator = gemmepi__default_allocator();
    gemmepi__target target = {"sm_90", 0, 0};
    gemmepi__image image;
    gemmepi__nvrtc nvrtc;
    gemmepi_status status;
    if (!open_nvrtc(&nvrtc))
        SKIP("there is no NVRTC on this machine");
    status =
        gemmepi__compile(&nvrtc, &allocator, "reduce.cu", "#error wrong on purpose\n", &target, &image, NULL);
    CHECK(status == GEMMEPI_COMPILE_ERROR, "%s", gemmepi_status_name(status));
    CHECK(strstr(gemmepi_last_error(), "wrong on purpose") != NULL, "%s", gemmepi_last_error());
    CHECK(image.data == NULL, "an image all the same");
    gemmepi__unload_nvrtc(&nvrtc);
}

int main(void) {
    RUN(a_chip_that_nvrtc_knows_gets_machine_code);
    RUN(a_newer_chip_gets_ptx_of_the_newest_older_one);
    RUN(a_chip_older_than_all_is_refused_in_words);
    RUN(every_kernel_file_compiles_to_cubin_and_to_ptx);
    RUN(a_dumped_source_compiles_by_itself_to_the_same_ptx);
    RUN(a_source_that_does_not_compile_gives_nvrtcs_words);
    return test_finish();
}
