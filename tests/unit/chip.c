#include "device/chip.h"
#include "test.h"

/* The CUDA C++ Programming Guide, compute capabilities; wgmma and its kin are sm_90a's alone. */
static const struct {
    int arch, mma_sync, overlaps, clusters, wgmma;
} known[] = {{60, 0, 0, 0, 0},  {70, 0, 0, 0, 0},  {75, 0, 0, 0, 0},  {80, 1, 0, 0, 0},  {86, 1, 0, 0, 0},
             {87, 1, 0, 0, 0},  {88, 1, 0, 0, 0},  {89, 1, 0, 0, 0},  {90, 1, 1, 1, 1},  {99, 1, 1, 1, 0},
             {100, 1, 1, 1, 0}, {101, 1, 1, 1, 0}, {103, 1, 1, 1, 0}, {110, 1, 1, 1, 0}, {120, 1, 1, 1, 0},
             {121, 1, 1, 1, 0}, {130, 1, 1, 1, 0}};

static void a_chip_has_what_its_row_says_or_that_of_the_nearest_older_one(void) {
    size_t i;
    for (i = 0; i < sizeof known / sizeof *known; i++) {
        int arch = known[i].arch;
        CHECK(gemmepi__chip_has(arch, GEMMEPI__MMA_SYNC) == known[i].mma_sync, "mma.sync, %d", arch);
        CHECK(gemmepi__chip_has(arch, GEMMEPI__OVERLAPS) == known[i].overlaps, "overlaps, %d", arch);
        CHECK(gemmepi__chip_has(arch, GEMMEPI__CLUSTERS) == known[i].clusters, "clusters, %d", arch);
        CHECK(gemmepi__chip_has(arch, GEMMEPI__WGMMA) == known[i].wgmma, "wgmma, %d", arch);
        CHECK(gemmepi__chip_has(arch, GEMMEPI__HOPPER) == (arch == 90), "Hopper, %d", arch);
        CHECK(arch == 99 || (gemmepi__chip_of(arch)->wgmma > 0) == known[i].wgmma, "wgmma's rate, %d", arch);
    }
}

static void rows_are_in_order_and_have_every_rate(void) {
    size_t i;
    for (i = 0; i < sizeof gemmepi__chips / sizeof *gemmepi__chips; i++) {
        const gemmepi__chip *chip = &gemmepi__chips[i];
        CHECK(i == 0 || chip[-1].arch < chip->arch, "row %d", (int)i);
        CHECK(chip->most_shared >= 64 << 10 && chip->most_shared <= 227 << 10, "%u", chip->most_shared);
        CHECK(chip->mma > 0 && chip->fma > 0 && chip->megahertz > 0 && chip->memory > 0, "row %d", (int)i);
        CHECK(gemmepi__chip_of(chip->arch) == chip, "row %d", (int)i);
    }
}

int main(void) {
    RUN(a_chip_has_what_its_row_says_or_that_of_the_nearest_older_one);
    RUN(rows_are_in_order_and_have_every_rate);
    return test_finish();
}
