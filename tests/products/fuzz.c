/* fuzz [count] [first seed]: random products against the oracle, and random garbage as descs, which is
   refused or planned but never crashes. Runs on the devices that GEMMEPI_TEST_DEVICE names; see problem.h.
   A failure prints its seed: `fuzz 1 SEED` repeats it. */
#include "../garbage.h"

static test_device *here;
static uint64_t first = 1, count = 300;

static void random_products_are_within_the_bound(void) {
    uint64_t seed;
    for (seed = first; seed < first + count; seed++) {
        problem p = problem_random(seed);
        CHECK(problem_holds(here, &p), "seed %llu", (unsigned long long)seed);
    }
}

/* Whatever route is right for all m must be there. */
static void with_batch_invariance_they_are_too(void) {
    uint64_t seed;
    if (strstr(here->name, " by fused") || strstr(here->name, " without fused"))
        SKIP("config.routes leaves routes out");
    for (seed = first; seed < first + (count + 5) / 6; seed++) {
        problem p = problem_random(~seed);
        size_t all = 256;
        int t;
        for (t = 0; t < T_SCALARS; t++)
            all |= p.shift[t];
        if (!p.desc.alignment) /* that of the pointers is not asked for */
            p.desc.alignment = all & (~all + 1);
        p.desc.flags |= GEMMEPI_BATCH_INVARIANT;
        CHECK(problem_holds(here, &p), "seed ~%llu", (unsigned long long)seed);
    }
}

/* >>garbage */

static gemmepi_matmul_desc garbage(uint64_t seed) {
    gemmepi_matmul_desc good = problem_random(first + seed % count).desc, desc = good;
    garbage_spoil_desc(&desc, offsetof(gemmepi_matmul_desc, formula), seed);
    desc.a.formula = good.a.formula, desc.b.formula = good.b.formula; /* pointers stay good */
    return desc;
}

static void garbage_is_refused_or_planned_but_never_crashes(void) {
    uint64_t i, tries = here->is_host ? count * 20 : count / 3;
    for (i = 0; i < tries; i++) {
        gemmepi_matmul_desc desc = garbage(first + i);
        gemmepi_matmul_args none = {0};
        gemmepi_epilogue_needs needs;
        gemmepi_plan *plan = NULL;
        char text[64];
        gemmepi_status told = gemmepi_epilogue_info(&desc, &needs);
        gemmepi_status planned = gemmepi_plan_matmul(here->context, &desc, &plan);
        CHECK(garbage_is_known(told) && garbage_is_known(planned), "garbage %llu: %d %d",
              (unsigned long long)(first + i), (int)told, (int)planned);
        CHECK((planned == GEMMEPI_OK) == (plan != NULL), "garbage %llu: a plan goes with OK",
              (unsigned long long)(first + i));
        CHECK(planned != GEMMEPI_OK || told == GEMMEPI_OK, "garbage %llu: planned, but epilogue_info says %s",
              (unsigned long long)(first + i), gemmepi_last_error());
        CHECK(planned == GEMMEPI_OK || gemmepi_last_error()[0] != 0,
              "garbage %llu: refused without a sentence", (unsigned long long)(first + i));
        if (planned == GEMMEPI_OK) {
            int empty = desc.m == 0 || desc.n == 0;
            int writes = !empty || needs.bias_grad_length != 0;
            CHECK(gemmepi_plan_explain(plan, text, sizeof text) > 0, "nothing to explain");
            CHECK(gemmepi_run_matmul(plan, &none, here->stream) ==
                      (writes ? GEMMEPI_INVALID_ARGUMENT : GEMMEPI_OK),
                  "garbage %llu ran without pointers", (unsigned long long)(first + i));
        }
        gemmepi_plan_destroy(plan);
    }
}

int main(int argc, char **argv) {
    test_device devices[TEST_MOST_DEVICES];
    int opened = test_devices_open_with_routes(devices), i;
    if (argc > 1)
        count = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        first = strtoull(argv[2], NULL, 10);
    if (count == 0)
        count = 1;
    for (i = 0; i < opened; i++) {
        here = devices + i;
        printf("on %s, seeds %llu to %llu:\n", here->name, (unsigned long long)first,
               (unsigned long long)(first + count - 1));
        RUN(random_products_are_within_the_bound);
        RUN(with_batch_invariance_they_are_too);
        RUN(garbage_is_refused_or_planned_but_never_crashes);
        test_device_close(here);
    }
    return test_finish() || opened == 0;
}
