/* fuzz [count] [first seed]: random layers against the oracle, forward and backward, and random garbage as descs, which is
   refused or planned but never crashes. Runs on the devices that GEMMEPI_TEST_DEVICE names; see ../products/problem.h.
   A failure prints its seed: `fuzz 1 SEED` repeats it. */
#include "../garbage.h"
#include "call.h"

static test_device *here;
static uint64_t first = 1, count = 500;

static void random_backwards_are_within_the_bound(void) {
    uint64_t seed;
    for (seed = first; seed < first + count; seed++) {
        layer l = layer_random(seed);
        CHECK(backward_holds(here, &l), "seed %llu", (unsigned long long)seed);
    }
}

static void random_forwards_are_within_the_bound(void) {
    uint64_t seed;
    for (seed = first; seed < first + count / 2 + 1; seed++) {
        layer l = layer_random(seed);
        CHECK(forward_holds(here, &l), "seed %llu", (unsigned long long)seed);
    }
}

static void random_forwards_feed_their_backwards(void) {
    uint64_t seed;
    for (seed = first; seed < first + count / 2 + 1; seed++) {
        layer l = layer_random(seed);
        CHECK(both_hold(here, &l), "seed %llu", (unsigned long long)seed);
    }
}

/* >>garbage */

static gemmepi_linear_desc garbage(uint64_t seed) {
    gemmepi_linear_desc good = layer_random(first + seed % count).desc, desc = good;
    garbage_spoil_desc(&desc, offsetof(gemmepi_linear_desc, formula), seed);
    desc.a.formula = good.a.formula, desc.b.formula = good.b.formula; /* pointers stay good */
    return desc;
}

static void check_garbage(const gemmepi_linear_desc *desc, int backward, unsigned long long number) {
    gemmepi_linear_args none = {0};
    gemmepi_plan *plan = NULL;
    char text[64];
    gemmepi_status planned = backward ? gemmepi_plan_linear_backward(here->context, desc, &plan)
                                      : gemmepi_plan_linear(here->context, desc, &plan);
    CHECK(garbage_is_known(planned), "garbage %llu: %d", number, (int)planned);
    CHECK((planned == GEMMEPI_OK) == (plan != NULL), "garbage %llu: a plan goes with OK", number);
    CHECK(planned == GEMMEPI_OK || gemmepi_last_error()[0] != 0, "garbage %llu: refused without a sentence",
          number);
    if (planned == GEMMEPI_OK) {
        int empty = desc->m == 0 || desc->n == 0 || (desc->k == 0 && backward);
        gemmepi_plan_details details;
        gemmepi_status status = backward ? gemmepi_run_linear_backward(plan, &none, here->stream)
                                         : gemmepi_run_linear(plan, &none, here->stream);
        CHECK(gemmepi_plan_explain(plan, text, sizeof text) > 0, "nothing to explain");
        CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK &&
                  details.kind == (backward ? GEMMEPI_PLAN_LINEAR_BACKWARD : GEMMEPI_PLAN_LINEAR),
              "garbage %llu: kind %d", number, (int)details.kind);
        CHECK(status == GEMMEPI_INVALID_ARGUMENT || (empty && status == GEMMEPI_OK),
              "garbage %llu ran without pointers: %d", number, (int)status);
    }
    gemmepi_plan_destroy(plan);
}

static void garbage_is_refused_or_planned_but_never_crashes(void) {
    uint64_t i, tries = here->is_host ? count * 20 : count / 3;
    for (i = 0; i < tries; i++) {
        gemmepi_linear_desc desc = garbage(first + i);
        check_garbage(&desc, 0, (unsigned long long)(first + i));
        check_garbage(&desc, 1, (unsigned long long)(first + i));
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
        RUN(random_backwards_are_within_the_bound);
        RUN(random_forwards_are_within_the_bound);
        RUN(random_forwards_feed_their_backwards);
        RUN(garbage_is_refused_or_planned_but_never_crashes);
        test_device_close(here);
    }
    return test_finish() || opened == 0;
}
