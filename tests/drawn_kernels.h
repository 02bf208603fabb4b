/* Every kernel that drawn problems take on a chip, planned and run on the fake GPU: its file, its prologue, its target, and what its launches
   ask for. No GPU, and no NVRTC. */
#ifndef GEMMEPI_TESTS_DRAWN_KERNELS_H
#define GEMMEPI_TESTS_DRAWN_KERNELS_H

#include "unit/fake_cuda.h"

#include "bench/draw.h"

enum { MOST_DRAWN = 4096, MOST_ENTRIES = 4, DRAWN_SEED = 2026 };

typedef struct drawn_kernel {
    const char *file;
    char *prologue; /* malloc's */
    char target[16];
    struct {
        char entry[100];
        int threads, shared;  /* the most that a launch asks for */
    } launches[MOST_ENTRIES]; /* an entry: "" where there are no more */
} drawn_kernel;

static drawn_kernel drawn_kernels[MOST_DRAWN]; /* of a chip, in the order of their compilation */
static int drawn_count;

/* What is ahead of the file's own text. */
static char *drawn_prologue(const char *file, const char *source) {
    const gpi__source *own = gpi__find_source(file);
    size_t length = strlen(source);
    const char *const *part;
    char *prologue;
    for (part = own->parts; *part; part++)
        length -= strlen(*part);
    prologue = (char *)malloc(length + 1);
    if (prologue) {
        memcpy(prologue, source, length);
        prologue[length] = 0;
    }
    return prologue;
}

static void see_drawn_source(const char *file, const char *source) {
    drawn_kernel *drawn = &drawn_kernels[drawn_count];
    memset(drawn, 0, sizeof *drawn);
    drawn->file = gpi__find_source(file)->name;
    drawn->prologue = drawn_prologue(file, source);
    snprintf(drawn->target, sizeof drawn->target, "sm_%d%s", device_arch(), gpi__target_suffix(file, source));
    if (!drawn->prologue || ++drawn_count == MOST_DRAWN) {
        printf("there are more drawn kernels than there is room for\n");
        exit(1);
    }
}

static void see_drawn_launch(const fake_launch *launch) {
    drawn_kernel *drawn = &drawn_kernels[launch->program];
    int threads = (int)(launch->block_x * launch->block_y), i = 0;
    if (launch->program < 0 || launch->program >= drawn_count)
        return;
    while (i < MOST_ENTRIES && drawn->launches[i].entry[0] &&
           strcmp(drawn->launches[i].entry, launch->entry) != 0)
        i++;
    if (i == MOST_ENTRIES) {
        printf("%s has more entries than there is room for\n", drawn->file);
        exit(1);
    }
    snprintf(drawn->launches[i].entry, sizeof drawn->launches[i].entry, "%s", launch->entry);
    if (threads > drawn->launches[i].threads)
        drawn->launches[i].threads = threads;
    if ((int)launch->shared > drawn->launches[i].shared)
        drawn->launches[i].shared = (int)launch->shared;
}

/* The random products of the bench are BF16 and F16; every eighth row each is made F16, half of them with sums in F16, TF32, strict F32, I8 and
   fp8. */
static void drawn_as_other_kind(gemmepi_matmul_desc *desc, int row) {
    int kind = row % 8;
    gemmepi_dtype dtype = kind == 3   ? GEMMEPI_F16
                          : kind <= 5 ? GEMMEPI_F32
                          : kind == 6 ? GEMMEPI_I8
                                      : GEMMEPI_E4M3;
    if (kind < 3)
        return;
    desc->a.dtype = desc->b.dtype = dtype;
    desc->d.dtype = dtype == GEMMEPI_F32 ? GEMMEPI_F32 : GEMMEPI_F16;
    if (desc->residual.dtype)
        desc->residual.dtype = desc->d.dtype;
    desc->compute = kind == 4                  ? GEMMEPI_COMPUTE_TF32
                    : kind == 3 && row / 8 % 2 ? GEMMEPI_COMPUTE_F16
                                               : GEMMEPI_COMPUTE_DEFAULT;
    if (kind >= 6) { /* k is contiguous, and lines begin at multiples of 16 bytes */
        desc->a.transposed = 0, desc->b.transposed = 1;
        desc->k = (desc->k + 15) / 16 * 16;
        desc->a.ld = desc->b.ld = 0;
    }
}

static void *drawn_place(int i) {
    return (void *)(uintptr_t)((uint64_t)(i + 1) << 40);
}

static int run_drawn(gemmepi_context *context, const gemmepi_matmul_desc *desc) {
    gemmepi_epilogue_needs needs;
    gemmepi_matmul_args args;
    gemmepi_plan *plan = NULL;
    int ran;
    memset(&args, 0, sizeof args);
    if (gemmepi_epilogue_info(desc, &needs) != GEMMEPI_OK)
        return 0;
    args.a = drawn_place(0), args.b = drawn_place(1), args.d = drawn_place(2);
    args.bias = needs.reads_bias ? drawn_place(3) : NULL;
    args.aux = needs.reads_aux || needs.writes_aux ? drawn_place(4) : NULL;
    args.residual = needs.reads_residual ? drawn_place(5) : NULL;
    args.bias_grad = needs.writes_bias_grad ? drawn_place(6) : NULL;
    args.workspace = drawn_place(7), args.workspace_size = (size_t)1 << 40;
    ran = gemmepi_plan_matmul(context, desc, &plan) == GEMMEPI_OK &&
          gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK;
    gemmepi_plan_destroy(plan);
    return ran;
}

/* Fills drawn_kernels with what so many problems take on a chip; returns how many problems ran. What a chip has not is skipped. */
static int draw_kernels(int arch, int multiprocessors, int problems) {
    gemmepi_config config = config_with_all_routes();
    gemmepi_context *context;
    int row, ran = 0;
    config.allocator.alloc = NULL, config.allocator.free = NULL;
    gpu.other_arch = arch, gpu.multiprocessors = multiprocessors;
    gpu.is_untouched = 1, gpu.archs_spared = 1 << 20;
    gpu.reads = see_drawn_source, gpu.watch = see_drawn_launch;
    drawn_count = 0;
    context = open_fake(&config);
    for (row = 0; row < problems; row++) {
        gemmepi_matmul_desc desc;
        draw_problem p;
        int attempt = 0;
        if (!draw(DRAWN_SEED, row, &attempt, &p))
            continue;
        desc = draw_desc(&p);
        drawn_as_other_kind(&desc, row);
        ran += run_drawn(context, &desc);
    }
    gemmepi_destroy(context);
    return ran;
}

#endif
