/* The smallest test frame: a test is a function whose name says what is true, run by RUN(). It prints one line, and
   the program closes with 'N passed, N failed, N skipped' and exits with 1 if anything failed. With TEST_PART=I/N in its
   environment it runs each N-th test alone, from the I-th on, the first being 0. With TEST_SHARE=N a test of many cases runs those of
   one key in N, and of the key that it has first: cases of one key share their kernels, which take most of the time on a GPU.
   The line of a test that computes for at least a second says for how long, in all threads. */
#ifndef GEMMEPI_TEST_H
#define GEMMEPI_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int test_passed, test_failed, test_skipped;
static int test_failures_here;     /* failed checks of the running test */
static const char *test_skip_here; /* why the running test is skipped   */
static const char *test_name_here;
static int test_count_here; /* of tests begun: tells one from the next */

/* With TEST_STOP in the environment the first failure ends the program. */
static void test_stop_if_asked(void) {
    if (getenv("TEST_STOP")) {
        fflush(stdout);
        _Exit(1);
    }
}

/* A check that fails prints where and what, and lets the test go on. Only the first few are printed. */
#define CHECK(condition, ...)                                                                     \
    do {                                                                                          \
        if (!(condition) && test_failures_here++ < 5) {                                           \
            printf("  %s:%d: in %s: not (%s): ", __FILE__, __LINE__, test_name_here, #condition); \
            printf(__VA_ARGS__);                                                                  \
            printf("\n");                                                                         \
            test_stop_if_asked();                                                                 \
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

static uint64_t test_first_key; /* of the running test; 0: none yet */

/* FNV-1a, and once more mixed; never 0 */
static uint64_t test_key(const int *numbers, int count) {
    uint64_t hash = 0xcbf29ce484222325u;
    int i;
    for (i = 0; i < count; i++)
        hash = (hash ^ (unsigned)numbers[i]) * 0x100000001b3u;
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
    return (hash ^ hash >> 32) | 1;
}

/* TEST_SHARE */
static long test_share(void) {
    static long kept; /* 0: not asked for yet; threads may ask at once */
    long share = __atomic_load_n(&kept, __ATOMIC_RELAXED);
    if (!share) {
        const char *text = getenv("TEST_SHARE");
        share = text ? strtol(text, NULL, 10) : 1;
        if (share < 1) {
            printf("TEST_SHARE is %s; accepted are 1, 2 and so on\n", text);
            exit(2);
        }
        __atomic_store_n(&kept, share, __ATOMIC_RELAXED);
    }
    return share;
}

/* Whether the case with this key is to be run; asked once before each case of a test that has many. */
static int test_takes(uint64_t key) {
    uint64_t none = 0;
    int is_first =
        __atomic_compare_exchange_n(&test_first_key, &none, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return is_first || key == none || (key >> 1) % (uint64_t)test_share() == 0;
}

static void test_run(const char *name, void (*function)(void)) {
    double seconds = (double)clock();
    if (!test_is_of_this_part())
        return;
    test_first_key = 0;
    test_failures_here = 0;
    test_skip_here = NULL;
    test_name_here = name;
    test_count_here++;
    function();
    seconds = ((double)clock() - seconds) / CLOCKS_PER_SEC;
    if (test_failures_here) {
        test_failed++;
        printf("FAIL %s (%d checks)\n", name, test_failures_here);
    } else if (test_skip_here) {
        test_skipped++;
        printf("skip %s: %s\n", name, test_skip_here);
    } else {
        test_passed++;
        printf("ok   %s", name);
        if (seconds >= 1)
            printf(" (%.0f s)", seconds);
        printf("\n");
    }
    fflush(stdout);
}

static int test_finish(void) {
    printf("%d passed, %d failed, %d skipped\n", test_passed, test_failed, test_skipped);
    return test_failed != 0;
}

#endif
