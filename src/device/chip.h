/* What is known of a chip, by its compute capability: properties, limits, and what models of time count with. To add one: a row, in order. */
#ifndef GEMMEPI_DEVICE_CHIP_H
#define GEMMEPI_DEVICE_CHIP_H

/* What kernels and launches find on a chip. */
enum {
    GPI__MMA_SYNC = 1,    /* mma.sync of BF16, F16 and TF32, which cp.async feeds */
    GPI__OVERLAPS = 2,    /* a launch may begin before the one ahead of it has ended */
    GPI__CLUSTERS = 4,    /* of blocks that reach each other's shared memory */
    GPI__WGMMA = 8,       /* that of sm_90a, which TMA feeds */
    GPI__MMA_F16 = 16,    /* mma.sync of F16 and I8, which ldmatrix feeds */
    GPI__MMA_FP8 = 32,    /* that of fp8, at twice the rate of 16 bits */
    GPI__MMA_SCALED = 64, /* that of scaled fp8 and, at eight times the rate of 16 bits, E2M1: of sm_120a */
    GPI__FP8_BY_F16 =
        128 /* fp8 is multiplied as F16, which has both its types: nothing else there multiplies it */
};

/* Either of them: mma.sync multiplies fp8. */
#define GPI__ANY_FP8 (GPI__MMA_FP8 | GPI__FP8_BY_F16)

/* Later chips do not have these, even where they are not listed. */
#define GPI__OF_ONE_CHIP (GPI__WGMMA | GPI__MMA_SCALED)

typedef struct gpi__chip {
    int arch;             /* 90 for compute capability 9.0 */
    unsigned has;         /* of the above */
    unsigned most_shared; /* bytes of shared memory that a block may have */
    double
        mma; /* pairs of 16 bits that a multiprocessor multiplies in a cycle and sums in F32, by mma.sync; TF32 half */
    double mma_f16;   /* likewise, and sums in F16 */
    double wgmma;     /* as mma, by wgmma; 0: it has none */
    double fma;       /* pairs of F32, by multiply-adds */
    double megahertz; /* of a multiprocessor at work */
    double
        memory; /* bytes that memory gives in a microsecond, where the driver does not say: four fifths of NVIDIA's data sheets */
    const char *source; /* of the rates before, but for memory */
} gpi__chip;

#define GPI__SINCE_75  GPI__MMA_F16
#define GPI__SINCE_80  (GPI__SINCE_75 | GPI__MMA_SYNC)
#define GPI__BEFORE_89 (GPI__SINCE_80 | GPI__FP8_BY_F16)
#define GPI__SINCE_90  (GPI__SINCE_80 | GPI__OVERLAPS | GPI__CLUSTERS)

/* Limits are those of the CUDA C++ Programming Guide, compute capabilities. Of 7.5 and 8.6 on rates are GeForce's, whose sums in F32 take twice
   as long as those in F16; other cards of these capabilities (T4, A10, RTX A6000, L40S) have F32 sums at the rate of F16. Of 8.8 it says nothing: it is taken for an 8.6. */
static const gpi__chip gpi__chips[] = {
    {75, GPI__SINCE_75 | GPI__FP8_BY_F16, 64u << 10, 230, 460, 0, 58, 1500, 256e3,
     "nine tenths of what NVIDIA's paper on Turing says"},
    {80, GPI__BEFORE_89, 163u << 10, 920, 920, 0, 58, 1700, 1244e3,
     "nine tenths of what NVIDIA's paper on A100 says"},
    {86, GPI__BEFORE_89, 99u << 10, 230, 460, 0, 115, 1700, 749e3,
     "nine tenths of what NVIDIA's paper on GA102 says"},
    {87, GPI__BEFORE_89, 163u << 10, 920, 920, 0, 115, 1700, 163e3, "a guess, as 8.0"},
    {88, GPI__BEFORE_89, 99u << 10, 230, 460, 0, 115, 1700, 163e3, "a guess, as 8.6"},
    {89, GPI__SINCE_80 | GPI__MMA_FP8, 99u << 10, 230, 460, 0, 115, 1700, 806e3,
     "nine tenths of what NVIDIA's paper on Ada says"},
    {90, GPI__SINCE_90 | GPI__WGMMA, 227u << 10, 1240, 1240, 1740, 115, 1700, 2680e3, "measured on an H200"},
    {100, GPI__SINCE_90, 227u << 10, 920, 920, 0, 115, 1700, 6400e3,
     "a guess from NVIDIA's paper on Blackwell"},
    {103, GPI__SINCE_90, 227u << 10, 920, 920, 0, 115, 1700, 6400e3, "a guess, as 10.0"},
    {110, GPI__SINCE_90, 227u << 10, 230, 460, 0, 115, 1700, 218e3, "a guess, as 12.0"},
    {120, GPI__SINCE_90 | GPI__MMA_FP8 | GPI__MMA_SCALED, 99u << 10, 230, 460, 0, 115, 1700, 1433e3,
     "nine tenths of what NVIDIA's paper on RTX Blackwell says"},
    {121, GPI__SINCE_90 | GPI__MMA_FP8 | GPI__MMA_SCALED, 99u << 10, 230, 460, 0, 115, 1700, 218e3,
     "a guess, as 12.0"},
};

/* The chip's row, or that of the nearest older one; of those older than all the first. */
static const gpi__chip *gpi__chip_of(int arch) {
    const gpi__chip *chip = gpi__chips + sizeof gpi__chips / sizeof *gpi__chips - 1;
    while (chip > gpi__chips && chip->arch > arch)
        chip--;
    return chip;
}

/* Whether the chip has the property; one that is not listed has those of the nearest older one, if there is one. */
static int gpi__chip_has(int arch, unsigned property) {
    const gpi__chip *chip = gpi__chip_of(arch);
    return (chip->has & property) != 0 &&
           (chip->arch == arch || (chip->arch < arch && !(property & GPI__OF_ONE_CHIP)));
}

#define GPI__BLOCK_SHARED \
    1024 /* bytes of shared memory that the system keeps for each block, from 8.0 on: as much more is there than one block may have */

/* Returns how many blocks, each with that many bytes of shared memory, a multiprocessor has room for. */
static unsigned gpi__blocks_at_once(int arch, unsigned shared) {
    unsigned kept = arch < 80 ? 0 : GPI__BLOCK_SHARED;
    return (gpi__chip_of(arch)->most_shared + kept) / (shared + kept);
}

#endif
