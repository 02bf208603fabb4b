/* What is known of a chip, by its compute capability: limits, and what the models of time count with. To add one: its row, in order. */
#ifndef GEMMEPI_DEVICE_CHIP_H
#define GEMMEPI_DEVICE_CHIP_H

typedef struct gemmepi__chip {
    int arch;             /* 90 for compute capability 9.0 */
    unsigned most_shared; /* bytes of shared memory that a block may have */
    double
        mma; /* pairs of 16 bits that a multiprocessor multiplies in a cycle and sums in F32, by mma.sync; TF32 half */
    double wgmma;     /* likewise by wgmma; 0: it has none */
    double fma;       /* pairs of F32, by multiply-adds */
    double megahertz; /* of a multiprocessor at work */
    double
        memory; /* bytes that memory gives in a microsecond, where the driver does not say: four fifths of NVIDIA's data sheets */
    const char *source; /* of the rates before, but for memory */
} gemmepi__chip;

/* Limits are those of the CUDA C++ Programming Guide, compute capabilities. Of 8.8 it says nothing: it is taken for an 8.6. */
static const gemmepi__chip gemmepi__chips[] = {
    {80, 163u << 10, 920, 0, 58, 1700, 1244e3, "nine tenths of what NVIDIA's paper on A100 says"},
    {86, 99u << 10, 230, 0, 115, 1700, 749e3, "nine tenths of what NVIDIA's paper on GA102 says"},
    {87, 163u << 10, 920, 0, 115, 1700, 163e3, "a guess, as 8.0"},
    {88, 99u << 10, 230, 0, 115, 1700, 163e3, "a guess, as 8.6"},
    {89, 99u << 10, 230, 0, 115, 1700, 806e3, "nine tenths of what NVIDIA's paper on Ada says"},
    {90, 227u << 10, 1240, 1740, 115, 1700, 2680e3, "measured on an H200"},
    {100, 227u << 10, 920, 0, 115, 1700, 6400e3, "a guess from NVIDIA's paper on Blackwell"},
    {103, 227u << 10, 920, 0, 115, 1700, 6400e3, "a guess, as 10.0"},
    {110, 227u << 10, 230, 0, 115, 1700, 218e3, "a guess, as 12.0"},
    {120, 99u << 10, 230, 0, 115, 1700, 1433e3, "nine tenths of what NVIDIA's paper on RTX Blackwell says"},
    {121, 99u << 10, 230, 0, 115, 1700, 218e3, "a guess, as 12.0"},
};

/* The chip's row, or that of the nearest older one; of those older than all the first. */
static const gemmepi__chip *gemmepi__chip_of(int arch) {
    const gemmepi__chip *chip = gemmepi__chips + sizeof gemmepi__chips / sizeof *gemmepi__chips - 1;
    while (chip > gemmepi__chips && chip->arch > arch)
        chip--;
    return chip;
}

#endif
