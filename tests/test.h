/* The smallest test frame: a test is a function whose name says what is true, run by RUN(). It prints one line, and
   the program closes with 'N passed, N failed, N skipped' and exits with 1 if anything failed. With TEST_PART=I/N in its
   environment it runs each N-th test alone, from the I-th on, the first being 0. */
#ifndef GEMMEPI_TEST_H
#define GEMMEPI_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int test_passed, test_failed, test_skipped;
static int test_failures_here;     /* failed checks of the running test */
static const char *test_skip_here; /* why the running test is skipped   */
static const char *test_name_here;
static int test_count_here; /* of tests begun: tells one from the next */

/* A check that fails prints where and what, and lets the test go on. Only the first few are printed. */
#define CHECK(condition, ...)                                                                     \
    do {                                                                                          \
        if (!(condition) && test_failures_here++ < 5) {                                           \
            printf("  %s:%d: in %s: not (%s): ", __FILE__, __LINE__, test_name_here, #condition); \
            printf(__VA_ARGS__);                                                                  \
            printf("\n");                                                                         \
        }                                                                                         \
    } while (0)

/* Leaves the running test function, counted as skipped with a reason. */
#define SKIP(reason)               \
    do {                           \
        test_skip_here = (reason); \
        return;                    \
    } while (0)

#define RUN(function) test_run(#function, function)

static int test_is_of_this_part(void) {
    static int count;
    const char *part = getenv("TEST_PART");
    int mine = 0, of = 1;
    if (part && (sscanf(part, "%d/%d", &mine, &of) != 2 || mine < 0 || of <= mine)) {
        printf("TEST_PART is %s, which is no part\n", part);
        exit(2);
    }
    return count++ % of == mine;
}

static void test_run(const char *name, void (*function)(void)) {
    if (!test_is_of_this_part())
        return;
    test_failures_here = 0;
    test_skip_here = NULL;
    test_name_here = name;
    test_count_here++;
    function();
    if (test_failures_here) {
        test_failed++;
        printf("FAIL %s (%d checks)\n", name, test_failures_here);
    } else if (test_skip_here) {
        test_skipped++;
        printf("skip %s: %s\n", name, test_skip_here);
    } else {
        test_passed++;
        printf("ok   %s\n", name);
    }
    fflush(stdout);
}

static int test_finish(void) {
    printf("%d passed, %d failed, %d skipped\n", test_passed, test_failed, test_skipped);
    return test_failed != 0;
}

#endif
