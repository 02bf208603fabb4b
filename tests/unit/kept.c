/* Which plans one-shot calls keep. */
#include "fake_program.h"

enum { MOST = GPI__MAX_KEPT + 8 };

static gemmepi_plan plans[MOST];
static int destroyed[MOST];

static void note_end(gemmepi_plan *plan) {
    destroyed[plan - plans]++;
}

static int ended(void) {
    int i, count_of_ended = 0;
    for (i = 0; i < MOST; i++)
        count_of_ended += destroyed[i];
    return count_of_ended;
}

static gemmepi_context *open_empty(void) {
    gemmepi_config config = fake_config();
    memset(destroyed, 0, sizeof destroyed);
    return open_fake(&config);
}

static void make(gemmepi_context *context, int i) {
    plans[i] = gpi__plan_base(context, GEMMEPI_PLAN_MATMUL, note_end);
}

/* Keeps plan i under its number, and gives the caller's reference back. */
static void keep(gemmepi_context *context, int i) {
    gemmepi_plan *kept = gpi__keep(context, &i, sizeof i, &plans[i]);
    CHECK(kept == &plans[i], "%d: another is kept", i);
    gpi__release_plan(kept);
}

static int is_kept(gemmepi_context *context, int i) {
    gemmepi_plan *found = gpi__find_kept(context, &i, sizeof i);
    CHECK(!found || found == &plans[i], "%d is found as another", i);
    if (found)
        gpi__release_plan(found);
    return found != NULL;
}

static void the_plan_that_was_used_longest_ago_goes_first(void) {
    gemmepi_context *context = open_empty();
    int i;
    for (i = 0; i < GPI__MAX_KEPT; i++)
        make(context, i), keep(context, i);
    CHECK(ended() == 0 && context->plans.count == GPI__MAX_KEPT, "%d ended, %d are kept", ended(),
          (int)context->plans.count);
    CHECK(is_kept(context, 0) && is_kept(context, 2),
          "plans are lost"); /* so that 1 is the oldest, and then 3 */
    make(context, GPI__MAX_KEPT), keep(context, GPI__MAX_KEPT);
    CHECK(ended() == 1 && destroyed[1] == 1 && context->plans.count == GPI__MAX_KEPT,
          "plan 1 was used longest ago");
    make(context, GPI__MAX_KEPT + 1), keep(context, GPI__MAX_KEPT + 1);
    CHECK(ended() == 2 && destroyed[3] == 1, "plan 3 was used longest ago");
    CHECK(!is_kept(context, 1) && is_kept(context, 0) && is_kept(context, GPI__MAX_KEPT), "others are kept");
    gemmepi_destroy(context);
    CHECK(ended() == GPI__MAX_KEPT + 2, "%d ended", ended());
    nothing_is_left();
}

static void a_plan_in_use_ends_with_its_last_user(void) {
    gemmepi_context *context = open_empty();
    gemmepi_plan *found;
    int key = 0;
    make(context, 0), keep(context, 0);
    found = gpi__find_kept(context, &key, sizeof key);
    gpi__forget_all_kept(context);
    CHECK(found == &plans[0] && ended() == 0 && !is_kept(context, 0), "%d ended", ended());
    gpi__release_plan(found);
    CHECK(destroyed[0] == 1, "it has not ended");
    gemmepi_destroy(context);
    CHECK(ended() == 1, "%d ended", ended());
    nothing_is_left();
}

static void of_two_plans_for_one_problem_the_first_is_kept(void) {
    gemmepi_context *context = open_empty();
    int key = 0;
    make(context, 0), make(context, 1), keep(context, 0);
    CHECK(gpi__keep(context, &key, sizeof key, &plans[1]) == &plans[0], "the second is kept");
    CHECK(destroyed[1] == 1 && destroyed[0] == 0, "the second has not ended");
    gpi__release_plan(&plans[0]);
    CHECK(is_kept(context, 0), "the first is lost");
    gemmepi_destroy(context);
    nothing_is_left();
}

static void a_plan_begun_before_all_were_forgotten_is_not_kept(void) {
    gemmepi_context *context = open_empty();
    int key = 0;
    make(context, 0);
    gpi__forget_all_kept(context);
    CHECK(gpi__keep(context, &key, sizeof key, &plans[0]) == &plans[0] && !is_kept(context, 0), "it is kept");
    gpi__release_plan(&plans[0]);
    CHECK(destroyed[0] == 1, "its caller's was not the last reference");
    make(context, 1), keep(context, 1);
    CHECK(is_kept(context, 1), "one begun afterwards is not");
    gemmepi_destroy(context);
    nothing_is_left();
}

int main(void) {
    keep_libraries_open();
    RUN(the_plan_that_was_used_longest_ago_goes_first);
    RUN(a_plan_in_use_ends_with_its_last_user);
    RUN(of_two_plans_for_one_problem_the_first_is_kept);
    RUN(a_plan_begun_before_all_were_forgotten_is_not_kept);
    return test_finish();
}
