#include "device/chip.h"
#include "test.h"

/* The CUDA C++ Programming Guide, compute capabilities; wgmma and its kin are sm_90a's alone. */
static const struct {
    int arch, mma_f16, mma_sync, mma_fp8, overlaps, clusters, wgmma; /* mma_fp8 2: by way of F16 */
} known[] = {{60, 0, 0, 0, 0, 0, 0},  {70, 0, 0, 0, 0, 0, 0},  {72, 0, 0, 0, 0, 0, 0},
             {75, 1, 0, 2, 0, 0, 0},  {80, 1, 1, 2, 0, 0, 0},  {86, 1, 1, 2, 0, 0, 0},
             {87, 1, 1, 2, 0, 0, 0},  {88, 1, 1, 2, 0, 0, 0},  {89, 1, 1, 1, 0, 0, 0},
             {90, 1, 1, 0, 1, 1, 1},  {99, 1, 1, 0, 1, 1, 0},  {100, 1, 1, 0, 1, 1, 0},
             {101, 1, 1, 0, 1, 1, 0}, {103, 1, 1, 0, 1, 1, 0}, {110, 1, 1, 0, 1, 1, 0},
             {120, 1, 1, 1, 1, 1, 0}, {121, 1, 1, 1, 1, 1, 0}, {130, 1, 1, 1, 1, 1, 0}};

static void a_chip_has_what_its_row_says_or_that_of_the_nearest_older_one(void) {
    size_t i;
    for (i = 0; i < sizeof known / sizeof *known; i++) {
        int arch = known[i].arch;
        CHECK(gpi__chip_has(arch, GPI__MMA_F16) == known[i].mma_f16, "mma.sync of F16, %d", arch);
        CHECK(gpi__chip_has(arch, GPI__MMA_SYNC) == known[i].mma_sync, "mma.sync, %d", arch);
        CHECK(gpi__chip_has(arch, GPI__MMA_FP8) == (known[i].mma_fp8 == 1), "mma.sync of fp8, %d", arch);
        CHECK(gpi__chip_has(arch, GPI__FP8_BY_F16) == (known[i].mma_fp8 == 2), "fp8 by F16, %d", arch);
        CHECK(gpi__chip_has(arch, GPI__OVERLAPS) == known[i].overlaps, "overlaps, %d", arch);
        CHECK(gpi__chip_has(arch, GPI__CLUSTERS) == known[i].clusters, "clusters, %d", arch);
        CHECK(gpi__chip_has(arch, GPI__WGMMA) == known[i].wgmma, "wgmma, %d", arch);
        CHECK(arch == 99 || (gpi__chip_of(arch)->wgmma > 0) == known[i].wgmma, "wgmma's rate, %d", arch);
    }
}

static void rows_are_in_order_and_have_every_rate(void) {
    size_t i;
    for (i = 0; i < sizeof gpi__chips / sizeof *gpi__chips; i++) {
        const gpi__chip *chip = &gpi__chips[i];
        CHECK(i == 0 || chip[-1].arch < chip->arch, "row %d", (int)i);
        CHECK(chip->most_shared >= 64 << 10 && chip->most_shared <= 227 << 10, "%u", chip->most_shared);
        CHECK(chip->mma > 0 && chip->fma > 0 && chip->megahertz > 0 && chip->memory > 0, "row %d", (int)i);
        CHECK(gpi__chip_of(chip->arch) == chip, "row %d", (int)i);
    }
}

/* TFLOP/s that NVIDIA's papers have of F16 with sums in F16 and in F32: RTX 2080 Ti 113.8 and 56.9, A100 312 and 312, RTX 3090 142 and 71,
   RTX 4090 330.3 and 165.2, H100 989.4 and 989.4, RTX 5090 419 and 209.5. */
static void geforce_sums_in_f16_at_twice_the_rate(void) {
    static const struct {
        int arch;
        double times;
    } known[] = {{75, 2}, {80, 1}, {86, 2}, {89, 2}, {90, 1}, {120, 2}};
    size_t i;
    for (i = 0; i < sizeof known / sizeof *known; i++) {
        const gpi__chip *chip = gpi__chip_of(known[i].arch);
        CHECK(chip->mma_f16 == known[i].times * chip->mma, "%d: %g and %g", known[i].arch, chip->mma_f16,
              chip->mma);
    }
}

int main(void) {
    RUN(a_chip_has_what_its_row_says_or_that_of_the_nearest_older_one);
    RUN(rows_are_in_order_and_have_every_rate);
    RUN(geforce_sums_in_f16_at_twice_the_rate);
    return test_finish();
}
