/* Where a context keeps its kernels when config.cache_path is NULL: on the fake GPU of fake_cuda.h. */
#if !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "fake_cuda.h"

#if defined(_WIN32)
int main(void) {
    printf("skip default_cache: XDG_CACHE_HOME and HOME are not Windows'\n0 passed, 0 failed, 1 skipped\n");
    return 0;
}
#else

#include <unistd.h>

static char place[512]; /* a new folder for this test */

/* NULL takes the variable away */
static void set(const char *variable, const char *value) {
    if (value)
        setenv(variable, value, 1);
    else
        unsetenv(variable);
}

/* One product in a new context: how many kernels were compiled and how many came from disk, and the folder that it names. */
static gemmepi_context_details use_a_context(const char *cache_path) {
    static double memory[3][64 * 64];
    gemmepi_config config = fake_config();
    gemmepi_context *context;
    gemmepi_context_details details;
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    config.cache_path = cache_path;
    config.routes = 1u << GEMMEPI_ROUTE_PLAIN;
    context = open_fake(&config);
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    desc.m = desc.n = desc.k = 64;
    desc.batch = 1;
    desc.epilogue = GEMMEPI_SILU;
    args.a = memory[0], args.b = memory[1], args.d = memory[2];
    CHECK(gemmepi_matmul(context, &desc, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_context_info(context, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gemmepi_destroy(context);
    nothing_is_left();
    return details;
}

/* The first context compiles and writes to `folder`, the second reads. */
static void check_it_keeps_kernels_in(const char *folder) {
    gemmepi_context_details first = use_a_context(NULL), second = use_a_context(NULL);
    CHECK(strcmp(first.cache_path, folder) == 0, "it is %s, not %s", first.cache_path, folder);
    CHECK(first.kernels_compiled == 1 && first.kernels_from_disk == 0, "%ld compiled, %ld from disk",
          (long)first.kernels_compiled, (long)first.kernels_from_disk);
    CHECK(second.kernels_compiled == 0 && second.kernels_from_disk == 1, "then %ld compiled, %ld from disk",
          (long)second.kernels_compiled, (long)second.kernels_from_disk);
    CHECK(access(folder, W_OK) == 0, "there is no %s", folder);
}

static char *in_place(const char *name) {
    static char path[600];
    snprintf(path, sizeof path, "%s%s", place, name);
    return path;
}

static void kernels_are_kept_in_the_users_cache_folder(void) {
    char xdg[600];
    snprintf(xdg, sizeof xdg, "%s/xdg", place);
    set("XDG_CACHE_HOME", xdg);
    set("HOME", in_place("/home"));
    check_it_keeps_kernels_in(in_place("/xdg/gemmepi"));
    CHECK(access(in_place("/home"), F_OK) != 0, "HOME was used, too");
}

static void without_one_they_are_kept_in_the_home_folder(void) {
    static const char *const none[] = {NULL, "", "relative/folder"};
    char home[600], folder[650];
    int i;
    for (i = 0; i < 3; i++) {
        snprintf(home, sizeof home, "%s/home%d", place, i);
        snprintf(folder, sizeof folder, "%s/.cache/gemmepi", home);
        set("XDG_CACHE_HOME", none[i]);
        set("HOME", home);
        check_it_keeps_kernels_in(folder);
    }
}

static void without_a_home_they_are_kept_nowhere(void) {
    gemmepi_context_details details;
    set("XDG_CACHE_HOME", NULL);
    set("HOME", NULL);
    use_a_context(NULL);
    details = use_a_context(NULL);
    CHECK(details.cache_path[0] == 0, "%s", details.cache_path);
    CHECK(details.kernels_compiled == 1, "%ld compiled", (long)details.kernels_compiled);
}

static void the_empty_path_keeps_them_nowhere(void) {
    gemmepi_context_details details;
    set("XDG_CACHE_HOME", in_place("/unused"));
    set("HOME", in_place("/unused"));
    details = use_a_context("");
    CHECK(details.cache_path[0] == 0 && access(in_place("/unused"), F_OK) != 0, "%s", details.cache_path);
}

int main(void) {
    const char *temporary = getenv("TMPDIR");
    char command[600];
    snprintf(place, sizeof place, "%s/gemmepi_test_XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(place)) {
        printf("FAIL default_cache: no folder in %s\n0 passed, 1 failed, 0 skipped\n", place);
        return 1;
    }
    RUN(kernels_are_kept_in_the_users_cache_folder);
    RUN(without_one_they_are_kept_in_the_home_folder);
    RUN(without_a_home_they_are_kept_nowhere);
    RUN(the_empty_path_keeps_them_nowhere);
    snprintf(command, sizeof command, "rm -rf '%s'", place);
    if (system(command) != 0)
        printf("  %s is left\n", place);
    return test_finish();
}
#endif
