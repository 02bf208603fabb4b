/* The memory of a run: what may share bytes with what, at the borders. None of the pointers leads anywhere. */
#include "base/regions.h"

#include "test.h"

static const char *const names[] = {"args.first", "args.second", "args.third"};

static const char *name_of(const void *owner, const gpi__region *region, char room[128]) {
    (void)owner, (void)room;
    return names[region->place];
}

/* The last two that were judged. */
static int judged[2];

static gemmepi_status refuse(const gpi__regions *regions, const gpi__region *output,
                             const gpi__region *other) {
    judged[0] = output->place, judged[1] = other->place;
    return gpi__refuse_overlap(regions, output, other, "", "; say more");
}

static gemmepi_status allow(const gpi__regions *regions, const gpi__region *output,
                            const gpi__region *other) {
    (void)regions;
    judged[0] += output->written, judged[1] += other->written;
    return GEMMEPI_OK;
}

static gpi__regions regions;

static gpi__region *add(uintptr_t begin, int64_t bytes, int written) {
    return gpi__add_region(&regions, 0, regions.count, written, (void *)begin, bytes);
}

static void begin(void) {
    memset(&regions, 0, sizeof regions);
    regions.name = name_of;
    regions.judge = refuse;
    memset(judged, 0, sizeof judged);
}

/* A region of 100 bytes against one of `bytes` at `place`. */
static int shares(uintptr_t place, int64_t bytes, int first_writes, int second_writes) {
    begin();
    add(1000, 100, first_writes);
    add(place, bytes, second_writes);
    return gpi__check_regions(&regions) != GEMMEPI_OK;
}

static void an_output_shares_no_byte_with_anything_and_inputs_may(void) {
    static const struct {
        uintptr_t place;
        int64_t bytes;
        int shares;
    } cases[] = {{1100, 8, 0},  {1099, 8, 1}, {992, 8, 0},  {993, 8, 1},  {1000, 100, 1},
                 {900, 500, 1}, {1050, 1, 1}, {1050, 0, 0}, {1000, 0, 0}, {0, 8, 0}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(shares(cases[i].place, cases[i].bytes, 1, 0) == cases[i].shares, "case %d, written first",
              (int)i);
        CHECK(shares(cases[i].place, cases[i].bytes, 0, 1) == cases[i].shares, "case %d, written last",
              (int)i);
        CHECK(!cases[i].shares || (judged[0] == 1 && judged[1] == 0), "case %d: %d is the output", (int)i,
              judged[0]);
        CHECK(shares(cases[i].place, cases[i].bytes, 1, 1) == cases[i].shares, "case %d, both", (int)i);
        CHECK(!cases[i].shares || (judged[0] == 0 && judged[1] == 1), "case %d: %d comes first", (int)i,
              judged[0]);
        CHECK(!shares(cases[i].place, cases[i].bytes, 0, 0), "case %d, neither is written", (int)i);
    }
}

static void what_has_no_byte_or_is_not_read_shares_nothing(void) {
    begin();
    add(1000, 0, 1), add(900, 200, 0);
    CHECK(gpi__check_regions(&regions) == GEMMEPI_OK, "%s", gemmepi_last_error());
    begin();
    add(1000, 100, 1), add(1000, 100, 0)->idle = 1;
    CHECK(gpi__check_regions(&regions) == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static void each_pair_with_an_output_is_judged_once(void) {
    begin();
    add(1000, 100, 1), add(1000, 100, 0), add(1000, 100, 1);
    regions.judge = allow;
    CHECK(gpi__check_regions(&regions) == GEMMEPI_OK && judged[0] == 3 && judged[1] == 1, "%d and %d",
          judged[0], judged[1]);
}

static void a_sentence_names_both_and_says_how_large_they_are(void) {
    begin();
    add(0x1000, 100, 1), add(0x1010, 8, 0);
    CHECK(gpi__check_regions(&regions) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), ", 100 bytes) overlaps args.second (") &&
              strstr(gemmepi_last_error(), ", 8 bytes); say more"),
          "%s", gemmepi_last_error());
    regions.list[1].note = ", on the device";
    CHECK(gpi__check_regions(&regions) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), ", on the device); say more"),
          "%s", gemmepi_last_error());
}

static void workspace_touches_a_region_and_shares_no_byte_of_it(void) {
    int i;
    begin();
    add(10000, 100, 0), add(20000, 100, 1), add(30000, 100, 0)->idle = 1;
    for (i = 0; i < 3; i++) {
        uintptr_t place = (uintptr_t)(10000 * (i + 1));
        CHECK(gpi__check_workspace(&regions, (void *)(place + 100), 256, "") == GEMMEPI_OK &&
                  gpi__check_workspace(&regions, (void *)(place - 256), 256, "") == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        CHECK(gpi__check_workspace(&regions, (void *)(place + 99), 256, " used") ==
                      GEMMEPI_INVALID_ARGUMENT &&
                  strstr(gemmepi_last_error(), names[i]) && strstr(gemmepi_last_error(), ", 256 bytes used)"),
              "%s", gemmepi_last_error());
        CHECK(gpi__check_workspace(&regions, (void *)(place - 255), 256, "") == GEMMEPI_INVALID_ARGUMENT,
              "%d: a byte is shared", i);
    }
}

int main(void) {
    RUN(an_output_shares_no_byte_with_anything_and_inputs_may);
    RUN(what_has_no_byte_or_is_not_read_shares_nothing);
    RUN(each_pair_with_an_output_is_judged_once);
    RUN(a_sentence_names_both_and_says_how_large_they_are);
    RUN(workspace_touches_a_region_and_shares_no_byte_of_it);
    return test_finish();
}
