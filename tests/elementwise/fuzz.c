/* fuzz [count] [first seed]: random element-wise operations against the oracle, and random garbage as descs, which is
   refused or planned but never crashes. Runs on the devices that GEMMEPI_TEST_DEVICE names; see ../products/problem.h.
   A failure prints its seed: `fuzz 1 SEED` repeats it. */
#include "../garbage.h"
#include "call.h"

static test_device *here;
static uint64_t first = 1, count, given; /* given: 0 for the default */

static void random_operations_are_within_the_bound(void) {
    uint64_t seed;
    for (seed = first; seed < first + count; seed++) {
        call c = call_random(seed);
        CHECK(call_holds(here, &c), "seed %llu", (unsigned long long)seed);
    }
}

/* >>garbage */

/* Spoils numbers of the desc, of a tensor, or a shape or strides, but no pointer. */
static void spoil_one(gemmepi_elementwise_desc *desc, gemmepi_tensor g[E_TENSORS], call *c, rng *r) {
    int t = rng_below(r, E_TENSORS);
    switch (rng_below(r, 6)) {
    case 0:
        garbage_spoil(desc, offsetof(gemmepi_elementwise_desc, a), r);
        break;
    case 1:
        garbage_spoil(&desc->alignment, sizeof desc->alignment, r);
        break;
    case 2:
        g[t].dtype = (gemmepi_dtype)(int)(garbage_number(r) & 0xff);
        break;
    case 3:
        g[t].rank = rng_below(r, 12) - 2;
        break;
    case 4:
        g[t].offset = (size_t)garbage_number(r);
        g[t].bytes = (size_t)garbage_number(r);
        break;
    default:
        garbage_spoil(rng_one_in(r, 2) ? c->o.t[t].shape : c->o.t[t].stride, sizeof c->o.t[t].shape, r);
    }
}

static void garbage_is_refused_or_planned_but_never_crashes(void) {
    uint64_t i, tries = here->is_host ? count * 2 : count / 3;
    for (i = 0; i < tries; i++) {
        rng r = rng_seeded((first + i) ^ 0xbadu);
        call c = call_random(first + i % count);
        gemmepi_elementwise_desc desc;
        gemmepi_tensor g[E_TENSORS];
        gemmepi_elementwise_args none;
        gemmepi_plan *plan = NULL;
        gemmepi_status status;
        image m;
        int times = 1 + rng_below(&r, 3);
        memset(&none, 0, sizeof none);
        call_place(&c, &m);
        call_tensors(&c, &m, here, 0, g);
        call_desc(&c, g, &desc);
        image_free(&m);
        while (times-- > 0)
            spoil_one(&desc, g, &c, &r);
        status = gemmepi_plan_elementwise(here->context, &desc, &plan);
        CHECK(garbage_is_known(status), "garbage %llu: %d", (unsigned long long)(first + i), (int)status);
        CHECK((status == GEMMEPI_OK) == (plan != NULL), "garbage %llu: a plan goes with OK",
              (unsigned long long)(first + i));
        CHECK(status == GEMMEPI_OK || gemmepi_last_error()[0] != 0,
              "garbage %llu: refused without a sentence", (unsigned long long)(first + i));
        if (status == GEMMEPI_OK) {
            gemmepi_plan_details details;
            CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK, "%s", gemmepi_last_error());
            CHECK(details.route == GEMMEPI_ROUTE_EMPTY ||
                      gemmepi_run_elementwise(plan, &none, here->stream) == GEMMEPI_INVALID_ARGUMENT,
                  "garbage %llu ran without pointers", (unsigned long long)(first + i));
        }
        gemmepi_plan_destroy(plan);
    }
}

int main(int argc, char **argv) {
    test_device devices[2];
    int opened = test_devices_open(devices), i;
    if (argc > 1)
        given = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        first = strtoull(argv[2], NULL, 10);
    for (i = 0; i < opened; i++) {
        here = devices + i;
        count = given ? given : here->is_host ? 10000 : 300; /* a GPU compiles a kernel for every few */
        printf("on %s, seeds %llu to %llu:\n", here->name, (unsigned long long)first,
               (unsigned long long)(first + count - 1));
        RUN(random_operations_are_within_the_bound);
        RUN(garbage_is_refused_or_planned_but_never_crashes);
        test_device_close(here);
    }
    return test_finish() || opened == 0;
}
