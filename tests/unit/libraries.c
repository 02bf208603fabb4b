/* The three CUDA libraries are found where they should be, and only whole ones of the right version are taken. */
#include "cuda/load.h"
#include "../test.h"

/* >>a log that keeps its lines, and a loader without wishes */

static char logged[16384];

static void keep_line(void *user, gemmepi_log_level level, const char *message) {
    size_t length = strlen(logged);
    (void)user;
    snprintf(logged + length, sizeof logged - length, "%d %s\n", (int)level, message);
}

static const gpi__log *test_log(void) {
    static gpi__log log;
    log.function = keep_line;
    return &log;
}

static gpi__loader plain_loader(void) {
    gpi__loader loader;
    memset(&loader, 0, sizeof loader);
    loader.log = test_log();
    logged[0] = 0;
    return loader;
}

/* >>a library made of a resolver */

typedef struct fake {
    const char *withhold; /* this function is missing                          */
    const char *fails;    /* this function tells no version                    */
    int major;            /* of CUDA, that every library says it is            */
    int calls[3];         /* of the resolver, for "cuda", "nvrtc", "cublasLt"  */
    int strangers;        /* calls with another library's name                 */
} fake;

static int fake_major;

static int GPI__CUDA_CALL fake_driver_version(int *version) {
    *version = fake_major * 1000 + 40;
    return 0;
}
static int GPI__CUDA_CALL fake_nvrtc_version(int *major, int *minor) {
    *major = fake_major;
    *minor = 4;
    return 0;
}
static size_t GPI__CUDA_CALL fake_lt_version(void) {
    return (size_t)fake_major * 10000 + 402;
}
static int GPI__CUDA_CALL fake_error_name(int error, const char **text) {
    *text = error == 719 ? "FAKE_LAUNCH_FAILED" : error == 2 ? "FAKE_MEMORY" : NULL;
    return *text ? 0 : 1;
}
static const char *GPI__CUDA_CALL fake_text(int error) {
    return error == 6 ? "FAKE_COMPILATION" : "FAKE_OTHER";
}
static int GPI__CUDA_CALL fake_failure(void) {
    return 34;
}

/* ISO C converts no functions to objects */
#define TAKE(function) memcpy(&address, &function##_pointer, sizeof address)

static void *fake_resolve(void *user, const char *library, const char *symbol, void *found) {
    static int(GPI__CUDA_CALL *const fake_driver_version_pointer)(int *) = fake_driver_version;
    static int(GPI__CUDA_CALL *const fake_nvrtc_version_pointer)(int *, int *) = fake_nvrtc_version;
    static size_t(GPI__CUDA_CALL *const fake_lt_version_pointer)(void) = fake_lt_version;
    static int(GPI__CUDA_CALL *const fake_error_name_pointer)(int, const char **) = fake_error_name;
    static const char *(GPI__CUDA_CALL *const fake_text_pointer)(int) = fake_text;
    static int(GPI__CUDA_CALL *const fake_failure_pointer)(void) = fake_failure;
    static const char *const libraries[3] = {"cuda", "nvrtc", "cublasLt"};
    fake *self = (fake *)user;
    void *address;
    int i;
    (void)found;
    for (i = 0; i < 3 && strcmp(library, libraries[i]) != 0; i++)
        continue;
    if (i < 3)
        self->calls[i]++;
    else
        self->strangers++;
    fake_major = self->major;
    TAKE(fake_failure);
    if (self->withhold && strcmp(symbol, self->withhold) == 0)
        return NULL;
    if (strcmp(symbol, "cuDriverGetVersion") == 0)
        TAKE(fake_driver_version);
    else if (strcmp(symbol, "nvrtcVersion") == 0)
        TAKE(fake_nvrtc_version);
    else if (strcmp(symbol, "cublasLtGetVersion") == 0)
        TAKE(fake_lt_version);
    else if (strcmp(symbol, "cuGetErrorName") == 0 || strcmp(symbol, "cuGetErrorString") == 0)
        TAKE(fake_error_name);
    else if (strcmp(symbol, "nvrtcGetErrorString") == 0 || strncmp(symbol, "cublasLtGetStatus", 17) == 0)
        TAKE(fake_text);
    return address;
}

static gpi__loader fake_loader(fake *self, int major) {
    gpi__loader loader = plain_loader();
    memset(self, 0, sizeof *self);
    self->major = major;
    loader.resolve = fake_resolve;
    loader.resolve_user = self;
    return loader;
}

static void a_resolver_supplies_whole_libraries(void) {
    fake self;
    gpi__loader loader = fake_loader(&self, 12);
    gpi__driver driver;
    gpi__nvrtc nvrtc;
    gpi__cublaslt lt;
    int major = 0, minor = 0;
    CHECK(gpi__load_driver(&loader, &driver) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpi__load_nvrtc(&loader, &nvrtc) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gpi__load_cublaslt(&loader, &lt) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(driver.version == 12040, "%d", driver.version);
    CHECK(nvrtc.version == 12040, "%d", nvrtc.version);
    CHECK(lt.version == 120402, "%d", lt.version);
    CHECK(driver.launch_kernel && nvrtc.compile_program && lt.matmul, "a function is missing");
    CHECK(nvrtc.get_version(&major, &minor) == 0 && major == 12, "%d: not the fake's", major);
    CHECK(self.calls[0] >= (int)GPI__COUNT(gpi__driver_symbols), "%d calls", self.calls[0]);
    CHECK(self.calls[1] >= (int)GPI__COUNT(gpi__nvrtc_symbols), "%d calls", self.calls[1]);
    CHECK(self.calls[2] >= (int)GPI__COUNT(gpi__cublaslt_symbols), "%d calls", self.calls[2]);
    CHECK(self.strangers == 0, "%d calls for other libraries", self.strangers);
    CHECK(strstr(logged, "3 cublasLt 12.4 from "), "the log has: %s", logged);
    gpi__unload_driver(&driver);
    gpi__unload_nvrtc(&nvrtc);
    gpi__unload_cublaslt(&lt);
    CHECK(!lt.library && !lt.matmul, "unloading leaves nothing");
}

static void *resolve_nothing(void *user, const char *library, const char *name, void *found) {
    (void)user, (void)library, (void)name, (void)found;
    return NULL;
}

static void a_resolver_that_has_nothing_lacks_no_function(void) {
    fake self;
    gpi__loader loader = fake_loader(&self, 12);
    gpi__driver driver;
    loader.resolve = resolve_nothing;
    CHECK(gpi__load_driver(&loader, &driver) == GEMMEPI_LIBRARY_NOT_FOUND, "it was taken");
    CHECK(!strstr(gemmepi_last_error(), "the symbol resolver has no function"), "%s", gemmepi_last_error());
}

static void a_missing_function_is_named(void) {
    fake self;
    gpi__loader loader = fake_loader(&self, 12);
    gpi__driver driver;
    gpi__nvrtc nvrtc;
    gpi__cublaslt lt;
    self.withhold = "cuStreamIsCapturing";
    CHECK(gpi__load_driver(&loader, &driver) == GEMMEPI_LIBRARY_NOT_FOUND, "it was taken");
    CHECK(strstr(gemmepi_last_error(), "cuStreamIsCapturing"), "%s", gemmepi_last_error());
    CHECK(!driver.init && !driver.library, "a failed load leaves the struct zero");
    self.withhold = "nvrtcGetCUBIN";
    CHECK(gpi__load_nvrtc(&loader, &nvrtc) == GEMMEPI_LIBRARY_NOT_FOUND, "it was taken");
    CHECK(strstr(gemmepi_last_error(), "nvrtcGetCUBIN"), "%s", gemmepi_last_error());
    self.withhold = "cublasLtMatmulAlgoGetHeuristic";
    CHECK(gpi__load_cublaslt(&loader, &lt) == GEMMEPI_LIBRARY_NOT_FOUND, "it was taken");
    CHECK(strstr(gemmepi_last_error(), "cublasLtMatmulAlgoGetHeuristic"), "%s", gemmepi_last_error());
}

static void versions_that_do_not_fit_are_refused(void) {
    fake self;
    gpi__loader loader = fake_loader(&self, 11);
    gpi__driver driver;
    gpi__nvrtc nvrtc;
    CHECK(gpi__load_driver(&loader, &driver) == GEMMEPI_LIBRARY_NOT_FOUND, "11 was taken");
    CHECK(strstr(gemmepi_last_error(), "11.4"), "%s", gemmepi_last_error());
    self.major = 13;
    loader.newest_major = 12;
    CHECK(gpi__load_nvrtc(&loader, &nvrtc) == GEMMEPI_LIBRARY_NOT_FOUND, "13 was taken");
    CHECK(strstr(gemmepi_last_error(), "13.4"), "%s", gemmepi_last_error());
    CHECK(gpi__load_driver(&loader, &driver) == GEMMEPI_OK, "the driver is its own measure");
    gpi__unload_driver(&driver);
    loader.newest_major = 13;
    CHECK(gpi__load_nvrtc(&loader, &nvrtc) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gpi__unload_nvrtc(&nvrtc);
}

static void error_codes_become_statuses_and_sentences(void) {
    fake self;
    gpi__loader loader = fake_loader(&self, 13);
    gpi__driver driver;
    gpi__nvrtc nvrtc;
    gpi__cublaslt lt;
    if (gpi__load_driver(&loader, &driver) || gpi__load_nvrtc(&loader, &nvrtc) ||
        gpi__load_cublaslt(&loader, &lt)) {
        CHECK(0, "%s", gemmepi_last_error());
        return;
    }
    CHECK(gpi__cuda_failed(&driver, 2, "x") == GEMMEPI_OUT_OF_MEMORY, "%s", gemmepi_last_error());
    CHECK(gpi__cuda_failed(&driver, 719, "launching k") == GEMMEPI_CUDA_ERROR, "%s", gemmepi_last_error());
    CHECK(strstr(gemmepi_last_error(), "launching k") &&
              strstr(gemmepi_last_error(), "FAKE_LAUNCH_FAILED (719)"),
          "%s", gemmepi_last_error());
    CHECK(gpi__cuda_failed(&driver, 77777, "x") == GEMMEPI_CUDA_ERROR &&
              strstr(gemmepi_last_error(), "77777"),
          "%s", gemmepi_last_error());
    CHECK(gpi__nvrtc_failed(&nvrtc, 1, "x") == GEMMEPI_OUT_OF_MEMORY, "%s", gemmepi_last_error());
    CHECK(gpi__nvrtc_failed(&nvrtc, 6, "x") == GEMMEPI_COMPILE_ERROR &&
              strstr(gemmepi_last_error(), "FAKE_COMPILATION (6)"),
          "%s", gemmepi_last_error());
    CHECK(gpi__cublaslt_failed(&lt, 3, "x") == GEMMEPI_OUT_OF_MEMORY, "%s", gemmepi_last_error());
    CHECK(gpi__cublaslt_failed(&lt, 7, "x") == GEMMEPI_CUBLAS_ERROR &&
              strstr(gemmepi_last_error(), "FAKE_OTHER (7)"),
          "%s", gemmepi_last_error());
    gpi__unload_driver(&driver);
    gpi__unload_nvrtc(&nvrtc);
    gpi__unload_cublaslt(&lt);
}

/* >>a library of the system under names that only this test has, so that the real ones do not matter */

typedef struct stand_in {
    double (*cosine)(double);
} stand_in;

static const gpi__symbol stand_in_symbols[] = {{"cos", offsetof(stand_in, cosine)}};

/* NVRTC's row: its places, not its names */
static gpi__library_row stand_in_row(void) {
    gpi__library_row row = gpi__nvrtc_row;
    row.files[0].name = "libgemmepi-stand-in.so.13";
    row.files[0].major = 13;
    row.files[1].name = "libgemmepi-stand-in.so.12";
    row.files[1].major = 12;
    row.files[2].name = NULL;
    row.symbols = stand_in_symbols;
    row.symbol_count = 1;
    row.size = sizeof(stand_in);
    row.version = NULL;
    row.has_builtins = 0;
    return row;
}

static void a_missing_library_names_what_was_tried(void) {
    gpi__loader loader = plain_loader();
    gpi__library_row row = stand_in_row();
    stand_in functions;
    void *library;
    int version;
    gemmepi_status status = gpi__load_library(&loader, &row, &functions, &library, &version, NULL);
    const char *sentence = gemmepi_last_error();
    CHECK(status == GEMMEPI_LIBRARY_NOT_FOUND, "status %d", (int)status);
    CHECK(strstr(sentence, "libgemmepi-stand-in.so.13"), "%s", sentence);
    CHECK(strstr(sentence, "libgemmepi-stand-in.so.12"), "%s", sentence);
    CHECK(strstr(sentence, "NVRTC") && strstr(sentence, "pip install nvidia-cuda-nvrtc"), "%s", sentence);
    CHECK(strstr(sentence, "CUDA_PATH") && strstr(sentence, "VIRTUAL_ENV"), "%s", sentence);
    loader.newest_major = 12;
    gpi__load_library(&loader, &row, &functions, &library, &version, NULL);
    CHECK(!strstr(gemmepi_last_error(), "stand-in.so.13") && strstr(gemmepi_last_error(), "stand-in.so.12"),
          "%s", gemmepi_last_error());
}

static void the_sentence_is_whole_with_a_long_library_path(void) {
    static char folders[40000];
    gpi__loader loader = plain_loader();
    gpi__library_row row = stand_in_row();
    stand_in functions;
    void *library;
    int version;
    size_t length;
    memset(folders, 'x', sizeof folders - 1);
    folders[5000] = GPI__LIST_SEPARATOR;
    folders[5001] = GPI__LIST_SEPARATOR;
    folders[7000] = GPI__LIST_SEPARATOR;
    loader.library_path = folders;
    CHECK(gpi__load_library(&loader, &row, &functions, &library, &version, NULL) == GEMMEPI_LIBRARY_NOT_FOUND,
          "it was found");
    length = strlen(gemmepi_last_error());
    CHECK(length < GPI__ERROR_TEXT_SIZE - 1, "%d characters", (int)length);
    CHECK(strstr(gemmepi_last_error(), "xxx"), "%s", gemmepi_last_error());
}

#if !GPI__WINDOWS
#include <sys/stat.h>

extern int test_setenv(const char *name, const char *value, int overwrite) __asm__("setenv");
extern int test_unsetenv(const char *name) __asm__("unsetenv");
extern int test_symlink(const char *target, const char *path) __asm__("symlink");

static const gpi__symbol absent_symbols[] = {{"gemmepi_absent_function", offsetof(stand_in, cosine)}};

static char tree[200];     /* the folder that the test makes           */
static char made[64][400]; /* everything in it, in the order of making */
static size_t made_count;
static char stand_in_file[GPI__PATH_SIZE]; /* the library that all links lead to  */
static char kept[5][GPI__PATH_SIZE];
static const char *const variables[5] = {"CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "VIRTUAL_ENV", "PATH"};

static void note_made(const char *path) {
    if (made_count < GPI__COUNT(made))
        snprintf(made[made_count++], sizeof made[0], "%s", path);
}

/* Makes the folders that path has and are not there yet. */
static void make_folders(const char *path) {
    char part[400];
    size_t i;
    for (i = strlen(tree); path[i]; i++)
        if (path[i] == '/' && i > 0 && i < sizeof part) {
            memcpy(part, path, i);
            part[i] = 0;
            if (mkdir(part, 0700) == 0)
                note_made(part);
        }
}

static void make_link(const char *target, const char *path) {
    char full[400];
    snprintf(full, sizeof full, "%s/%s", tree, path);
    make_folders(full);
    CHECK(test_symlink(target, full) == 0, "no link at %s", full);
    note_made(full);
}

/* A file of its own, with target's bytes. */
static void make_copy(const char *target, const char *path) {
    static char bytes[1 << 16];
    char full[400];
    FILE *from = fopen(target, "rb"), *to;
    size_t size;
    snprintf(full, sizeof full, "%s/%s", tree, path);
    make_folders(full);
    to = fopen(full, "wb");
    CHECK(from && to, "no copy at %s", full);
    while (from && to && (size = fread(bytes, 1, sizeof bytes, from)) > 0)
        CHECK(fwrite(bytes, 1, size, to) == size, "%s is not whole", full);
    if (from)
        fclose(from);
    if (to)
        fclose(to);
    note_made(full);
}

static void make_file(const char *path) {
    char full[400];
    FILE *file;
    snprintf(full, sizeof full, "%s/%s", tree, path);
    make_folders(full);
    file = fopen(full, "wb");
    CHECK(file != NULL, "no file at %s", full);
    if (file)
        fclose(file);
    note_made(full);
}

static void set_variable(const char *name, const char *path) {
    char full[400];
    snprintf(full, sizeof full, "%s/%s", tree, path);
    test_setenv(name, full, 1);
}

/* 0 if there is nothing to stand in for a library. The environment is the tree's until unplant(). */
static int plant(void) {
    char reason[200];
    const char *folder = getenv("TMPDIR");
    void *library = gpi__library_open("libm.so.6", reason, sizeof reason);
    size_t i;
    if (!library || !gpi__library_path(library, "cos", stand_in_file, sizeof stand_in_file))
        return 0;
    gpi__library_close(library);
    snprintf(tree, sizeof tree, "%.100s/gemmepi-libraries-%ld", folder ? folder : "/tmp", (long)getpid());
    made_count = 0;
    if (mkdir(tree, 0700) != 0)
        return 0;
    for (i = 0; i < GPI__COUNT(variables); i++) {
        const char *value = getenv(variables[i]);
        snprintf(kept[i], sizeof kept[i], "%s", value ? value : "");
        test_unsetenv(variables[i]);
    }
    return 1;
}

static void unplant(void) {
    size_t i;
    while (made_count > 0)
        CHECK(remove(made[--made_count]) == 0, "%s is left behind", made[made_count]);
    CHECK(remove(tree) == 0, "%s is left behind", tree);
    for (i = 0; i < GPI__COUNT(variables); i++) {
        if (kept[i][0])
            test_setenv(variables[i], kept[i], 1);
        else
            test_unsetenv(variables[i]);
    }
}

/* The path under the tree of what is found; "" if nothing is. */
static const char *found_in_tree(const char *library_path, int newest_major) {
    static char file[GPI__PATH_SIZE];
    gpi__loader loader = plain_loader();
    gpi__library_row row = stand_in_row();
    stand_in functions;
    void *library;
    int version;
    loader.library_path = library_path;
    loader.newest_major = newest_major;
    file[0] = 0;
    if (gpi__load_library(&loader, &row, &functions, &library, &version, file) != GEMMEPI_OK)
        return "";
    CHECK(functions.cosine(0.0) == 1.0, "the function is another one");
    gpi__library_close(library);
    return strncmp(file, tree, strlen(tree)) == 0 ? file + strlen(tree) + 1 : file;
}

#define CHECK_FOUND(expected, library_path, newest_major)                   \
    do {                                                                    \
        const char *found_here = found_in_tree(library_path, newest_major); \
        CHECK(strcmp(found_here, expected) == 0, "found '%s'", found_here); \
    } while (0)

static const char no_library[] =
    "nothing to stand in for a CUDA library (no libm.so.6, or no temporary folder)";

static void the_toolkit_is_found_through_the_environment(void) {
    if (!plant())
        SKIP(no_library);
    CHECK_FOUND("", NULL, 0);
    make_link(stand_in_file, "kit/targets/x86_64-linux/lib/libgemmepi-stand-in.so.12");
    set_variable("CUDA_HOME", "kit");
    CHECK_FOUND("kit/targets/x86_64-linux/lib/libgemmepi-stand-in.so.12", NULL, 0);
    make_link(stand_in_file, "kit/lib64/libgemmepi-stand-in.so.12");
    CHECK_FOUND("kit/lib64/libgemmepi-stand-in.so.12", NULL, 0);
    make_link(stand_in_file, "other/lib/libgemmepi-stand-in.so.12");
    set_variable("CUDA_PATH", "other");
    CHECK_FOUND("other/lib/libgemmepi-stand-in.so.12", NULL, 0);
    unplant();
}

static void wheels_are_found_in_every_python(void) {
    if (!plant())
        SKIP(no_library);
    make_link(stand_in_file,
              "venv/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libgemmepi-stand-in.so.12");
    make_link(stand_in_file,
              "venv/lib/python3.13/site-packages/nvidia/cuda_nvrtc/lib/libgemmepi-stand-in.so.12");
    make_link(stand_in_file, "python/lib/python3/dist-packages/nvidia/cu13/lib/libgemmepi-stand-in.so.13");
    make_file("python/bin/python3.13");
    make_link("../../python/bin/python3.13", "link/bin/python3");
    set_variable("VIRTUAL_ENV", "venv");
    CHECK_FOUND("venv/lib/python3.13/site-packages/nvidia/cuda_nvrtc/lib/libgemmepi-stand-in.so.12", NULL, 0);
    set_variable("PATH", "link/bin");
    /* only the end is compared: the temporary folder may be a link itself */
    CHECK(strstr(found_in_tree(NULL, 0), "python/lib/python3/dist-packages/nvidia/cu13/lib/"), "found '%s'",
          found_in_tree(NULL, 0));
    test_unsetenv("PATH");
    set_variable("CONDA_PREFIX", "python");
    CHECK_FOUND("python/lib/python3/dist-packages/nvidia/cu13/lib/libgemmepi-stand-in.so.13", NULL, 0);
    unplant();
}

static void a_newer_cuda_in_a_later_place_beats_an_older_one(void) {
    if (!plant())
        SKIP(no_library);
    make_link(stand_in_file, "kit/lib64/libgemmepi-stand-in.so.12");
    make_link(stand_in_file, "venv/lib/python3.11/site-packages/nvidia/cu13/lib/libgemmepi-stand-in.so.13");
    set_variable("CUDA_HOME", "kit");
    set_variable("VIRTUAL_ENV", "venv");
    CHECK_FOUND("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libgemmepi-stand-in.so.13", NULL, 0);
    CHECK_FOUND("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libgemmepi-stand-in.so.13", NULL, 13);
    CHECK_FOUND("kit/lib64/libgemmepi-stand-in.so.12", NULL, 12);
    unplant();
}

static void library_path_wins_and_its_first_folder_first(void) {
    char path[1000];
    if (!plant())
        SKIP(no_library);
    make_link(stand_in_file, "kit/lib64/libgemmepi-stand-in.so.13");
    make_link(stand_in_file, "one/libgemmepi-stand-in.so.12");
    make_link(stand_in_file, "two/libgemmepi-stand-in.so.13");
    set_variable("CUDA_HOME", "kit");
    snprintf(path, sizeof path, "/nowhere::%s/one:%s/two", tree, tree);
    CHECK_FOUND("one/libgemmepi-stand-in.so.12", path, 0);
    snprintf(path, sizeof path, "%s/two:%s/one", tree, tree);
    CHECK_FOUND("two/libgemmepi-stand-in.so.13", path, 0);
    CHECK_FOUND("one/libgemmepi-stand-in.so.12", path, 12);
    CHECK_FOUND("kit/lib64/libgemmepi-stand-in.so.13", "/nowhere", 0);
    unplant();
}

static void relative_folders_of_the_environment_are_not_followed(void) {
    char here[GPI__PATH_SIZE], path[500];
    if (!plant())
        SKIP(no_library);
    make_link(stand_in_file, "kit/lib64/libgemmepi-stand-in.so.13");
    if (!getcwd(here, sizeof here) || chdir(tree) != 0) {
        unplant();
        SKIP("the working folder cannot be changed");
    }
    test_setenv("CUDA_HOME", "kit", 1);
    CHECK_FOUND("", NULL, 0);
    set_variable("CUDA_HOME", "kit");
    CHECK_FOUND("kit/lib64/libgemmepi-stand-in.so.13", NULL, 0);
    make_link(stand_in_file, "lib/python3/site-packages/nvidia/cu13/lib/libgemmepi-stand-in.so.13");
    make_file("other/bin/python3");
    make_file("bin/python3");
    snprintf(path, sizeof path, "other/bin:%s/bin", tree); /* the one that is followed comes behind */
    test_setenv("PATH", path, 1);
    test_setenv("CUDA_HOME", "kit", 1);
    CHECK_FOUND("lib/python3/site-packages/nvidia/cu13/lib/libgemmepi-stand-in.so.13", NULL, 0);
    CHECK(chdir(here) == 0, "not back in %s", here);
    unplant();
}

static void set_mode(const char *path, unsigned mode) {
    char full[400];
    snprintf(full, sizeof full, "%s/%s", tree, path);
    CHECK(chmod(full, (mode_t)mode) == 0, "the mode of %s stays", full);
}

static void python_counts_only_in_folders_called_bin(void) {
    char path[500];
    if (!plant())
        SKIP(no_library);
    make_link(stand_in_file, "lib/python3/site-packages/nvidia/cu13/lib/libgemmepi-stand-in.so.13");
    make_file("tools/python3");
    set_variable("PATH", "tools");
    CHECK_FOUND("", NULL, 0);
    make_link("../tools/python3", "bin/python3");
    snprintf(path, sizeof path, "%s/tools:%s/bin//", tree, tree);
    test_setenv("PATH", path, 1);
    CHECK_FOUND("lib/python3/site-packages/nvidia/cu13/lib/libgemmepi-stand-in.so.13", NULL, 0);
    set_mode("bin", 0777);
    CHECK_FOUND("", NULL, 0);
    set_mode("bin", 0755);
    unplant();
}

static void folders_of_the_environment_that_others_can_write_are_left_out(void) {
    char path[500];
    if (!plant())
        SKIP(no_library);
    make_link(stand_in_file, "kit/lib64/libgemmepi-stand-in.so.13");
    set_variable("CUDA_HOME", "kit");
    set_mode("kit/lib64", 0777);
    CHECK_FOUND("", NULL, 0);
    CHECK(strstr(gemmepi_last_error(), "others can write"), "%s", gemmepi_last_error());
    snprintf(path, sizeof path, "%s/kit/lib64", tree);
    CHECK_FOUND("kit/lib64/libgemmepi-stand-in.so.13", path, 0); /* what the program itself says, holds */
    set_mode("kit/lib64", 01777);
    CHECK_FOUND("", NULL, 0);
    set_mode("kit/lib64", 0755);
    CHECK_FOUND("kit/lib64/libgemmepi-stand-in.so.13", NULL, 0);
    set_mode("kit", 0777); /* then others can exchange lib64 */
    CHECK_FOUND("", NULL, 0);
    set_mode("kit", 01777); /* then they cannot */
    CHECK_FOUND("kit/lib64/libgemmepi-stand-in.so.13", NULL, 0);
    unplant();
}

static void a_group_of_more_than_the_owner_counts_as_others(void) {
    struct stat status;
    memset(&status, 0, sizeof status);
    status.st_uid = 1000;
    status.st_gid = 100;
    status.st_mode = 0775;
    CHECK(gpi__mode_lets_others_write(&status), "group 100 of user 1000");
    status.st_mode = 0755;
    CHECK(!gpi__mode_lets_others_write(&status), "nobody else");
    status.st_gid = 1000;
    status.st_mode = 0775;
    CHECK(!gpi__mode_lets_others_write(&status), "the user's own group");
    status.st_mode = 0777;
    CHECK(gpi__mode_lets_others_write(&status), "everybody");
}

static void nothing_but_library_path_is_looked_at_where_that_is_asked_for(void) {
    gpi__loader loader = plain_loader();
    gpi__library_row row = stand_in_row();
    stand_in functions;
    void *library;
    int version;
    char path[500];
    if (!plant())
        SKIP(no_library);
    make_link(stand_in_file, "kit/lib64/libgemmepi-stand-in.so.13");
    set_variable("CUDA_HOME", "kit");
    loader.library_path = "/nowhere";
    loader.library_path_only = 1;
    CHECK(gpi__load_library(&loader, &row, &functions, &library, &version, NULL) == GEMMEPI_LIBRARY_NOT_FOUND,
          "CUDA_HOME was looked at");
    CHECK(strstr(gemmepi_last_error(), "in library_path (/nowhere) and nowhere else") &&
              !strstr(gemmepi_last_error(), "CUDA_HOME"),
          "%s", gemmepi_last_error());
    row.files[0].name = "libm.so.6"; /* the system's own search has it */
    CHECK(gpi__load_library(&loader, &row, &functions, &library, &version, NULL) == GEMMEPI_LIBRARY_NOT_FOUND,
          "the system's search was asked");
    row = stand_in_row();
    snprintf(path, sizeof path, "%s/kit/lib64", tree);
    loader.library_path = path;
    CHECK(gpi__load_library(&loader, &row, &functions, &library, &version, NULL) == GEMMEPI_OK, "%s",
          gemmepi_last_error());
    gpi__library_close(library);
    unplant();
}

static void a_library_that_is_broken_or_lacks_a_function_is_passed_over(void) {
    gpi__loader loader = plain_loader();
    gpi__library_row row = stand_in_row();
    stand_in functions;
    void *library;
    int version;
    if (!plant())
        SKIP(no_library);
    make_file("broken/lib64/libgemmepi-stand-in.so.13");
    make_link(stand_in_file, "broken/lib/libgemmepi-stand-in.so.12");
    set_variable("CUDA_HOME", "broken");
    CHECK_FOUND("broken/lib/libgemmepi-stand-in.so.12", NULL, 0);
    CHECK(strstr(logged, "stand-in.so.13"), "the log tells why: %s", logged);
    row.symbols = absent_symbols;
    CHECK(gpi__load_library(&loader, &row, &functions, &library, &version, NULL) == GEMMEPI_LIBRARY_NOT_FOUND,
          "it was taken");
    CHECK(strstr(gemmepi_last_error(), "broken/lib64/libgemmepi"), "the first reason: %s",
          gemmepi_last_error());
    loader.newest_major = 12;
    CHECK(gpi__load_library(&loader, &row, &functions, &library, &version, NULL) == GEMMEPI_LIBRARY_NOT_FOUND,
          "it was taken");
    CHECK(strstr(gemmepi_last_error(), "gemmepi_absent_function"), "%s", gemmepi_last_error());
    unplant();
}
#endif

#if !GPI__WINDOWS
static int version_13_99(const void *functions) {
    (void)functions;
    return 13990;
}

/* The first lacks them, the second has them beside it, the third beside what its name is a link to. */
static void an_nvrtc_without_its_builtins_gives_way_to_the_next_one(void) {
    static const char *const found[] = {"second/lib/libgemmepi-stand-in.so.12",
                                        "third/lib/libgemmepi-stand-in.so.12"};
    gpi__loader loader = plain_loader();
    gpi__library_row row = stand_in_row();
    char folders[3 * GPI__PATH_SIZE], file[GPI__PATH_SIZE];
    stand_in functions;
    void *library;
    int version, i;
    if (!plant())
        SKIP(no_library);
    row.has_builtins = 1, row.version = version_13_99;
    make_link(stand_in_file, "first/lib/libgemmepi-stand-in.so.13");
    snprintf(folders, sizeof folders, "%s/first/lib:%s/second/lib:%s/third/lib", tree, tree, tree);
    loader.library_path = folders, loader.library_path_only = 1;
    CHECK(gpi__load_library(&loader, &row, &functions, &library, &version, NULL) ==
                  GEMMEPI_LIBRARY_NOT_FOUND &&
              strstr(gemmepi_last_error(), "first/lib/libgemmepi-stand-in.so.13 is without its builtins") &&
              strstr(gemmepi_last_error(), "libnvrtc-builtins.so.13.99"),
          "%s", gemmepi_last_error());
    make_copy(stand_in_file, "real/nvrtc.so");
    make_link(stand_in_file, "real/libnvrtc-builtins.so.13.99");
    snprintf(file, sizeof file, "%s/real/nvrtc.so", tree);
    make_link(file, found[1]);
    for (i = 1; i >= 0; i--) {
        if (i == 0) {
            make_link(stand_in_file, found[i]);
            make_link(stand_in_file, "second/lib/libnvrtc-builtins.so.13.99");
        }
        file[0] = 0;
        CHECK(gpi__load_library(&loader, &row, &functions, &library, &version, file) == GEMMEPI_OK &&
                  strstr(file, found[i]),
              "%s: %s", file, gemmepi_last_error());
        gpi__library_close(library);
    }
    unplant();
}
#endif

/* >>the real libraries, where there are any */

static void nvrtc_compiles_a_kernel_for_sm_90(void) {
    static const char source[] = "extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }\n";
    static const char *const options[] = {"--gpu-architecture=sm_90"};
    gpi__loader loader = plain_loader();
    gpi__nvrtc nvrtc;
    gpi__nvrtc_program program = NULL;
    char *cubin;
    size_t size = 0;
    int result;
    if (gpi__load_nvrtc(&loader, &nvrtc) != GEMMEPI_OK)
        SKIP("there is no NVRTC on this machine");
    CHECK(nvrtc.version >= 12000, "version %d", nvrtc.version);
    CHECK(nvrtc.builtins != NULL, "the builtins are not loaded: %s", logged);
    CHECK(strstr(logged, "3 nvrtc "), "the log has: %s", logged);
    result = nvrtc.create_program(&program, source, "twice.cu", 0, NULL, NULL);
    CHECK(result == GPI__NVRTC_SUCCESS, "%d", result);
    result = nvrtc.compile_program(program, 1, options);
    CHECK(result == GPI__NVRTC_SUCCESS, "%s", nvrtc.get_error_string(result));
    result = nvrtc.get_cubin_size(program, &size);
    CHECK(result == GPI__NVRTC_SUCCESS && size > 100, "%d: %d bytes", result, (int)size);
    cubin = (char *)malloc(size + 1);
    if (cubin && size > 4) {
        result = nvrtc.get_cubin(program, cubin);
        CHECK(result == GPI__NVRTC_SUCCESS && memcmp(cubin, "\177ELF", 4) == 0, "%d: no ELF file", result);
    }
    free(cubin);
    nvrtc.destroy_program(&program);
    CHECK(gpi__nvrtc_failed(&nvrtc, GPI__NVRTC_ERROR_COMPILATION, "twice") == GEMMEPI_COMPILE_ERROR &&
              strstr(gemmepi_last_error(), "NVRTC_ERROR_COMPILATION"),
          "%s", gemmepi_last_error());
    gpi__unload_nvrtc(&nvrtc);
}

/* Descriptors need no GPU. */
static void cublaslt_builds_descriptors_in_memory_of_ours(void) {
    gpi__loader loader = plain_loader();
    gpi__cublaslt lt;
    gpi__lt_matmul_desc desc, copy;
    gpi__lt_layout layout;
    gpi__lt_preference preference;
    int32_t epilogue = 0, bias = GPI__CUBLASLT_EPILOGUE_BIAS;
    uint64_t workspace = 1 << 20;
    size_t written = 0;
    if (gpi__load_cublaslt(&loader, &lt) != GEMMEPI_OK)
        SKIP("there is no cuBLASLt on this machine");
    CHECK(lt.version >= 120000, "version %d", lt.version);
    CHECK(lt.matmul_desc_init(&desc, sizeof desc, GPI__CUBLAS_COMPUTE_32F, GPI__CUDA_R_32F) == 0, "refused");
    CHECK(lt.matmul_desc_set_attribute(&desc, GPI__CUBLASLT_MATMUL_DESC_EPILOGUE, &bias, sizeof bias) == 0,
          "refused");
    copy = desc;
    CHECK(lt.matmul_desc_get_attribute(&copy, GPI__CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue,
                                       &written) == 0 &&
              epilogue == bias,
          "%d", epilogue);
    CHECK(lt.layout_init(&layout, sizeof layout, GPI__CUDA_R_16BF, 64, 32, 64) == 0, "refused");
    CHECK(lt.preference_init(&preference, sizeof preference) == 0, "refused");
    CHECK(lt.preference_set_attribute(&preference, GPI__CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                      sizeof workspace) == 0,
          "refused");
    CHECK(gpi__cublaslt_failed(&lt, GPI__CUBLAS_STATUS_NOT_SUPPORTED, "x") == GEMMEPI_CUBLAS_ERROR &&
              strstr(gemmepi_last_error(), "CUBLAS_STATUS_NOT_SUPPORTED"),
          "%s", gemmepi_last_error());
    gpi__unload_cublaslt(&lt);
}

static void the_driver_is_loaded_or_its_absence_explained(void) {
    gpi__loader loader = plain_loader();
    gpi__driver driver;
    gemmepi_status status = gpi__load_driver(&loader, &driver);
    if (status == GEMMEPI_OK)
        CHECK(driver.version >= 12000 && driver.library, "version %d", driver.version);
    else
        CHECK(status == GEMMEPI_LIBRARY_NOT_FOUND && strstr(gemmepi_last_error(), "the CUDA driver"), "%s",
              gemmepi_last_error());
    gpi__unload_driver(&driver);
}

int main(void) {
    RUN(a_resolver_supplies_whole_libraries);
    RUN(a_resolver_that_has_nothing_lacks_no_function);
    RUN(a_missing_function_is_named);
    RUN(versions_that_do_not_fit_are_refused);
    RUN(error_codes_become_statuses_and_sentences);
    RUN(a_missing_library_names_what_was_tried);
    RUN(the_sentence_is_whole_with_a_long_library_path);
#if !GPI__WINDOWS
    RUN(the_toolkit_is_found_through_the_environment);
    RUN(wheels_are_found_in_every_python);
    RUN(a_newer_cuda_in_a_later_place_beats_an_older_one);
    RUN(library_path_wins_and_its_first_folder_first);
    RUN(relative_folders_of_the_environment_are_not_followed);
    RUN(python_counts_only_in_folders_called_bin);
    RUN(folders_of_the_environment_that_others_can_write_are_left_out);
    RUN(a_group_of_more_than_the_owner_counts_as_others);
    RUN(nothing_but_library_path_is_looked_at_where_that_is_asked_for);
    RUN(a_library_that_is_broken_or_lacks_a_function_is_passed_over);
    RUN(an_nvrtc_without_its_builtins_gives_way_to_the_next_one);
#endif
    RUN(nvrtc_compiles_a_kernel_for_sm_90);
    RUN(cublaslt_builds_descriptors_in_memory_of_ours);
    RUN(the_driver_is_loaded_or_its_absence_explained);
    return test_finish();
}
