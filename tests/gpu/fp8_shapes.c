/* fp8_shapes [sizes [shape [kernels]]]: the engine for fp8 in each of its shapes, which a plan is made to take here: every pairing, mode
   of scales, kind of epilogue and result, at random sizes against the oracle, with whole numbers to the bit. The first shapes are of the
   kernel for Hopper, the others of that for mma.sync, with k whole, then in parts: fp8 runs there on 7.5 to 8.9 and 12.0, too, I8 on all from
   7.5 on but Hopper. The GPU is the first or
   that which GEMMEPI_TEST_DEVICE numbers. With the number of a shape that one alone, with one of kernels as many, not the same of each
   shape. */
#include "candidate.h"

enum {
    LARGEST = 600,
    HOPPER_SHAPES = GPI__COUNT(gpi__sm90_fp8_shapes),
    MMA_SHAPES = GPI__COUNT(gpi__sm80_shapes),
    SHAPES = HOPPER_SHAPES + 2 * MMA_SHAPES
};

static test_device device;
static test_device *here = &device;
static int sizes = 3, only = -1, kernels_taken = 0, shape_here;

/* What a kernel is compiled for; everything else is drawn for each size. */
typedef struct kernel {
    gemmepi_dtype a, b, d;
    gemmepi_epilogue epilogue;
    gemmepi_scale_mode scale_a, scale_b;
    int fast;
    int scaled; /* with alpha and C */
    int layout; /* bits: A transposed, B; 2 is as the kernel takes them, others are copied */
    int unit;   /* columns are a multiple of it: 16, else a number that is not of 8 */
    int line;   /* bytes at whose multiples lines of operands begin: less than 16 is copied */
} kernel;

#define SAME GEMMEPI_DTYPE_DEFAULT
#define FOUND \
    ((gemmepi_dtype)100) /* E4M3 with scales that are found, of a row's 128 columns each or, where it has no more, of rows */
#define X       GEMMEPI_E4M3
#define Y       GEMMEPI_E5M2
#define I       GEMMEPI_I8
#define FORWARD (GEMMEPI_BIAS | GEMMEPI_AUX)
#define BACK    (GEMMEPI_BACKWARD | GEMMEPI_BGRAD)
#define NONE    GEMMEPI_SCALE_NONE
#define ONE     GEMMEPI_SCALE_TENSOR
#define OUTER   GEMMEPI_SCALE_OUTER
#define VECTOR  GEMMEPI_SCALE_VECTOR_128
#define BLOCK   GEMMEPI_SCALE_BLOCK_128
static const kernel kernels[] = {
    {X, X, GEMMEPI_BF16, GEMMEPI_NONE, ONE, ONE, 0, 0, 2, 16, 16},
    {X, Y, GEMMEPI_F32, GEMMEPI_BIAS, NONE, NONE, 0, 1, 2, 1, 16},
    {Y, X, GEMMEPI_F32, GEMMEPI_NONE, VECTOR, BLOCK, 0, 0, 2, 16, 16},
    {Y, Y, GEMMEPI_F16, GEMMEPI_NONE, BLOCK, VECTOR, 0, 0, 2, 16, 16},
    {X, X, GEMMEPI_F32, GEMMEPI_NONE, VECTOR, VECTOR, 0, 0, 2, 16, 16},
    {X, X, GEMMEPI_F32, GEMMEPI_NONE, BLOCK, BLOCK, 0, 1, 2, 1, 16},
    {X, X, GEMMEPI_F32, GEMMEPI_NONE, OUTER, OUTER, 0, 0, 2, 16, 16},
    {X, Y, SAME, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS, VECTOR, BLOCK, 0, 0, 2, 16, 16},
    {X, X, SAME, GEMMEPI_GELU_TANH | FORWARD, ONE, OUTER, 0, 0, 2, 16, 16},
    {Y, X, GEMMEPI_BF16, GEMMEPI_GELU_TANH | BACK, VECTOR, VECTOR, 0, 0, 2, 16, 16},
    {X, X, GEMMEPI_BF16, GEMMEPI_RELU | FORWARD, OUTER, VECTOR, 0, 0, 2, 16, 16},
    {X, X, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_GATED | BACK, BLOCK, ONE, 0, 0, 2, 16, 16},
    {X, Y, GEMMEPI_F32, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_AUX, BLOCK, BLOCK, 0, 1, 2, 1, 16},
    {X, X, GEMMEPI_BF16, GEMMEPI_GELU_ERF | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, VECTOR, BLOCK, 0, 0, 2, 16, 16},
    {X, X, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_GATED | GEMMEPI_UPSTREAM | GEMMEPI_BACKWARD,
     ONE, ONE, 0, 0, 2, 16, 16},
    {X, X, GEMMEPI_BF16, GEMMEPI_BGRAD_A, OUTER, OUTER, 0, 0, 2, 16, 16},
    {X, Y, GEMMEPI_BF16, GEMMEPI_BGRAD_B, BLOCK, VECTOR, 0, 0, 2, 16, 16},
    {X, X, GEMMEPI_BF16, GEMMEPI_NONE, ONE, ONE, 0, 0, 0, 16, 16},
    {X, Y, GEMMEPI_BF16, GEMMEPI_SILU, VECTOR, BLOCK, 0, 0, 1, 16, 1},
    {Y, X, GEMMEPI_BF16, GEMMEPI_NONE, BLOCK, OUTER, 0, 0, 3, 1, 4},
    {X, X, GEMMEPI_BF16, GEMMEPI_NONE, VECTOR, VECTOR, 0, 0, 2, 1, 1},
    {X, X, GEMMEPI_BF16, GEMMEPI_NONE, ONE, ONE, 1, 0, 2, 16, 16},
    {X, Y, GEMMEPI_F32, GEMMEPI_SILU | FORWARD, OUTER, OUTER, 1, 1, 2, 16, 16},
    {Y, X, SAME, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS, ONE, OUTER, 1, 0, 2, 16, 16},
    {X, X, GEMMEPI_BF16, GEMMEPI_GELU_TANH | BACK, ONE, ONE, 1, 0, 2, 16, 16},
    {Y, Y, GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_GATED | BACK, ONE, ONE, 1, 0, 0, 16, 16},
    {X, X, GEMMEPI_BF16, GEMMEPI_NONE, VECTOR, BLOCK, 1, 0, 2, 16, 16},
    {X, X, FOUND, GEMMEPI_SILU | GEMMEPI_GATED, VECTOR, BLOCK, 0, 0, 2, 16, 16},
    {X, Y, FOUND, GEMMEPI_GELU_TANH | GEMMEPI_BIAS, ONE, OUTER, 0, 0, 2, 1, 16},
    {Y, X, FOUND, GEMMEPI_NONE, ONE, ONE, 1, 0, 2, 16, 16},
    {I, I, GEMMEPI_BF16, GEMMEPI_GELU_TANH | FORWARD, OUTER, OUTER, 0, 0, 2, 16, 16},
    {I, I, GEMMEPI_F32, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS, ONE, OUTER, 0, 1, 2, 1, 4},
    {I, I, GEMMEPI_I8, GEMMEPI_RELU | GEMMEPI_BIAS, ONE, ONE, 0, 0, 2, 16, 16},
    {I, I, GEMMEPI_F16, GEMMEPI_NONE, NONE, NONE, 0, 0, 1, 16, 16},
};

/* >>plans of one shape */

static int is_hoppers(int shape) {
    return shape < HOPPER_SHAPES;
}

static int parts_of(int shape) {
    return is_hoppers(shape) ? gpi__sm90_fp8_shapes[shape].parts : shape < SHAPES - MMA_SHAPES ? 1 : 3;
}

/* Of mma.sync on Hopper as on 8.9. */
static int takes(const gpi__problem *problem, int shape, int unit_alpha) {
    int arch = here->context->arch, as = device.has_fused ? 89 : arch, is_refused;
    if (is_hoppers(shape))
        return !gpi__fp8_rule(here->context, problem) &&
               gpi__shape_accepts(problem, &gpi__sm90_fp8_shapes[shape], unit_alpha);
    here->context->arch = as;
    is_refused = gpi__sm80_rule(here->context, problem) != NULL;
    here->context->arch = arch;
    return !is_refused &&
           gpi__sm80_shape_accepts(problem, &gpi__sm80_shapes[(shape - HOPPER_SHAPES) % MMA_SHAPES], as);
}

/* Whether no kernel of the route may be for it: Hopper has none for I8, and 10.0 no fp8. */
static int may_lack(const gemmepi_matmul_desc *desc) {
    return device.has_fused
               ? desc->a.dtype == GEMMEPI_I8
               : desc->flags & GEMMEPI_FIND_SCALE_D || !gpi__chip_has(here->context->arch, GPI__ANY_FP8);
}

/* NULL: the shape does not take the problem. processors: as plan_by has them. */
static gemmepi_plan *plan_as(const gemmepi_matmul_desc *desc, int shape, int unit_alpha, int processors) {
    gpi__candidate candidate =
        is_hoppers(shape) ? candidate_by(&gpi__sm90_fp8_engine, shape, unit_alpha)
                          : candidate_by(&gpi__sm80_engine, (shape - HOPPER_SHAPES) % MMA_SHAPES, unit_alpha);
    gpi__problem problem = problem_of(here->context, desc), product = product_of(&problem), packed;
    const char *rule = gpi__fused_rule(here->context, &product);
    int operand;
    CHECK(!rule || may_lack(desc), "%s", rule);
    if (rule)
        return NULL;
    candidate.parts = is_hoppers(shape) ? 1 : parts_of(shape);
    for (operand = GPI__A; operand <= GPI__B; operand++)
        candidate.copies[operand] = gpi__pack_of(&product, operand, 1);
    gpi__pack_views(&product, candidate.copies, &packed);
    return takes(&packed, shape, unit_alpha) ? plan_by(here->context, &problem, &candidate, processors)
                                             : NULL;
}

/* >>random sizes */

static int64_t draw_size(rng *r, int most) {
    return 1 + rng_below(r, rng_one_in(r, 4) ? 20 : most);
}

/* A length in memory of lines that hold so many elements. */
static int64_t draw_line(rng *r, int64_t length, int64_t unit) {
    return (length + unit - 1) / unit * unit + unit * rng_below(r, 3);
}

static int has_aux(const kernel *k) {
    return (k->epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD)) != 0;
}

static void draw_layouts(problem *p, const kernel *k, rng *r) {
    gemmepi_matmul_desc *desc = &p->desc;
    desc->a.ld = draw_line(r, desc->a.transposed ? desc->m : desc->k, k->line);
    desc->b.ld = draw_line(r, desc->b.transposed ? desc->k : desc->n, k->line);
    desc->d.ld = draw_line(r, problem_extents(p, T_D).columns, k->unit);
    if (has_aux(k) && !problem_has_mask(p))
        desc->aux.ld = draw_line(r, problem_extents(p, T_AUX).columns, k->unit);
    desc->batch = rng_one_in(r, 3) && k->d != FOUND ? 3 : 1;
    if (desc->batch == 1)
        return;
    desc->a.batch_stride = desc->a.ld * (desc->a.transposed ? desc->k : desc->m) + k->line;
    desc->b.batch_stride = rng_one_in(r, 2) ? 0 : desc->b.ld * (desc->b.transposed ? desc->n : desc->k);
    desc->d.batch_stride = desc->d.ld * desc->m + k->unit;
    if (has_aux(k))
        desc->aux.batch_stride = (desc->aux.ld ? desc->aux.ld : (desc->n + 127) / 128 * 128) * desc->m;
    if (rng_one_in(r, 2))
        problem_space_out_scales(p, rng_below(r, 3));
}

static problem draw(const kernel *k, uint64_t seed, int parts) {
    rng r = rng_seeded(seed);
    int exact = rng_one_in(&r, 2);
    int most = parts > 1 ? LARGEST / 4 : LARGEST;
    problem p =
        problem_plain(k->a, draw_size(&r, most), draw_size(&r, most), draw_size(&r, most), k->epilogue);
    p.seed = seed;
    p.fill = exact ? INTEGERS : (fill)rng_below(&r, 3);
    p.desc.b.dtype = k->b;
    p.desc.d.dtype = k->d;
    p.desc.a.transposed = k->layout & 1;
    p.desc.b.transposed = k->layout >> 1;
    p.desc.a.scale.mode = k->scale_a, p.desc.b.scale.mode = k->scale_b;
    p.desc.flags = k->fast ? GEMMEPI_FAST_ACCUMULATION : 0;
    if (p.desc.k < 256 * parts && parts > 1)
        p.desc.k += 256 * parts;
    if (k->unit == 16)
        p.desc.n = (p.desc.n + 31) / 32 * 32;
    else if (p.desc.n % 8 == 0)
        p.desc.n++;
    problem_make_even(&p);
    if (k->d == FOUND) {
        p.desc.d.dtype = GEMMEPI_E4M3;
        p.desc.d.scale.mode =
            problem_extents(&p, T_D).columns <= 128 ? GEMMEPI_SCALE_OUTER : GEMMEPI_SCALE_VECTOR_128;
        p.desc.flags |= GEMMEPI_FIND_SCALE_D;
    } else if (k->d == SAME) {
        p.desc.d.scale.mode = GEMMEPI_SCALE_TENSOR;
        p.desc.flags |= GEMMEPI_AMAX_D;
    }
    draw_layouts(&p, k, &r);
    if (k->scaled)
        problem_scale(&p, 1.5, rng_one_in(&r, 2) ? 0.75 : 0);
    return p;
}

/* Those by mma.sync take fewer kernels, and of one that is not of fp8 only where that is as 16 bits, if at all. */
static int least_of_shape(int least) {
    if (is_hoppers(shape_here))
        return least;
    return (gpi__sm80_shapes[(shape_here - HOPPER_SHAPES) % MMA_SHAPES].kinds & GPI__OF_FP8) != 0;
}

static void the_shape_is_within_the_bound(void) {
    enum { KERNELS = GPI__COUNT(kernels) };
    int least = sizes * (kernels_taken ? kernels_taken : 1), i, k, size, runs = 0;
    for (i = 0; i < KERNELS && (!kernels_taken || runs < least); i++)
        for (k = (i + shape_here * kernels_taken) % KERNELS, size = 0; size < sizes; size++) {
            problem p =
                draw(&kernels[k], (uint64_t)(1000 * shape_here + 100 * k + size), parts_of(shape_here));
            gemmepi_plan *plan = plan_as(&p.desc, shape_here, !kernels[k].scaled, size % 2 * 3);
            run r;
            if (!plan)
                continue;
            CHECK(problem_holds_run(here, &p, plan, &r), "shape %d, kernel %d, size %d", shape_here, k, size);
            run_free(&r);
            drop_plan(plan);
            runs++;
        }
    CHECK(runs >= least_of_shape(least), "shape %d: %d runs", shape_here, runs);
}

/* >>large sizes */

/* Whole numbers from -3 to 3 in E4M3. */
static const uint8_t codes[7] = {0xc4, 0xc0, 0xb8, 0x00, 0x38, 0x40, 0x44};

static int number_at(uint64_t seed) {
    return (int)(random_hash(seed) % 7) - 3;
}

static double power_at(uint64_t seed) {
    return ldexp(1, (int)(random_hash(seed) % 3) - 1);
}

typedef struct large {
    int64_t m, n, k;
    gemmepi_scale_mode a, b; /* TENSOR: 1 */
    int repetitions;
} large;

/* The scale of row or column `outer` in the block of k that has l. */
static int64_t scale_index(gemmepi_scale_mode mode, int64_t outer, int64_t extent, int64_t k, int64_t l) {
    return mode == GEMMEPI_SCALE_VECTOR_128  ? l / 128 * extent + outer
           : mode == GEMMEPI_SCALE_BLOCK_128 ? outer / 128 * ((k + 511) / 512 * 4) + l / 128
           : mode == GEMMEPI_SCALE_OUTER     ? outer
                                             : 0;
}

static double exact_element(const large *c, const uint8_t *a, const uint8_t *b, const float *scale_a,
                            const float *scale_b, int64_t row, int64_t column) {
    double sum = 0;
    int64_t l;
    for (l = 0; l < c->k; l++)
        sum += oracle_decode(GEMMEPI_E4M3, a + row * c->k + l) *
               oracle_decode(GEMMEPI_E4M3, b + column * c->k + l) *
               (double)scale_a[scale_index(c->a, row, c->m, c->k, l)] *
               (double)scale_b[scale_index(c->b, column, c->n, c->k, l)];
    return sum;
}

static void hold_large(const large *c) {
    size_t a_size = (size_t)(c->m * c->k), b_size = (size_t)(c->n * c->k), d_size = (size_t)(c->m * c->n), i;
    size_t scales = (size_t)((c->m + c->n + 128) * (c->k / 128 + 4)), sizes_of[5];
    uint8_t *a = (uint8_t *)malloc(a_size), *b = (uint8_t *)malloc(b_size);
    float *d = (float *)malloc(4 * d_size), *first = (float *)malloc(4 * d_size);
    float *scale_a = (float *)malloc(4 * scales), *scale_b = (float *)malloc(4 * scales);
    const void *from[5];
    void *memory[5];
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    int wrong = 0, differ = 0, repetition, x;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    for (i = 0; i < a_size; i++)
        a[i] = codes[number_at(i) + 3];
    for (i = 0; i < b_size; i++)
        b[i] = codes[number_at(i + a_size) + 3];
    for (i = 0; i < scales; i++) {
        scale_a[i] = c->a == GEMMEPI_SCALE_TENSOR ? 1 : (float)power_at(i);
        scale_b[i] = c->b == GEMMEPI_SCALE_TENSOR ? 1 : (float)power_at(i + 77);
    }
    desc.m = c->m, desc.n = c->n, desc.k = c->k, desc.batch = 1;
    desc.a.dtype = desc.b.dtype = GEMMEPI_E4M3, desc.d.dtype = GEMMEPI_F32;
    desc.a.scale.mode = c->a, desc.b.scale.mode = c->b;
    desc.b.transposed = 1;
    from[0] = a, from[1] = b, from[2] = scale_a, from[3] = scale_b, from[4] = NULL;
    sizes_of[0] = a_size, sizes_of[1] = b_size, sizes_of[2] = sizes_of[3] = 4 * scales,
    sizes_of[4] = 4 * d_size;
    for (x = 0; x < 5; x++)
        CHECK(gemmepi_alloc(here->context, sizes_of[x], &memory[x]) == GEMMEPI_OK &&
                  (!from[x] ||
                   gemmepi_upload(here->context, memory[x], from[x], sizes_of[x], NULL) == GEMMEPI_OK),
              "%s", gemmepi_last_error());
    args.a = memory[0], args.b = memory[1], args.d = memory[4];
    args.scale_a = (const float *)memory[2], args.scale_b = (const float *)memory[3];
    for (repetition = 0; repetition < c->repetitions; repetition++) {
        memset(d, 0xff, 4 * d_size);
        CHECK(gemmepi_upload(here->context, memory[4], d, 4 * d_size, NULL) == GEMMEPI_OK &&
                  gemmepi_matmul(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
                  gemmepi_download(here->context, d, memory[4], 4 * d_size, NULL) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        if (repetition == 0)
            memcpy(first, d, 4 * d_size);
        differ += memcmp(first, d, 4 * d_size) != 0;
    }
    for (i = 0; i < 3000; i++) {
        int64_t row = (int64_t)(random_hash(i) % (uint64_t)c->m),
                column = (int64_t)(random_hash(i + 9999) % (uint64_t)c->n);
        wrong += (double)d[row * c->n + column] != exact_element(c, a, b, scale_a, scale_b, row, column);
    }
    CHECK(wrong == 0 && differ == 0, "%d x %d x %d, scales %d and %d: %d of 3000 wrong, %d runs differ",
          (int)c->m, (int)c->n, (int)c->k, (int)c->a, (int)c->b, wrong, differ);
    for (x = 0; x < 5; x++)
        gemmepi_free(here->context, memory[x]);
    free(a), free(b), free(d), free(first), free(scale_a), free(scale_b);
}

static void large_products_are_exact_each_time(void) {
    static const large all[] = {{4096, 3072, 1024, ONE, ONE, 20},       {520, 8192, 4096, VECTOR, BLOCK, 20},
                                {2048, 2056, 2048, VECTOR, VECTOR, 20}, {2048, 4096, 1040, BLOCK, BLOCK, 20},
                                {4096, 2048, 528, OUTER, OUTER, 20},    {24, 1024, 8192, BLOCK, VECTOR, 5}};
    size_t i;
    for (i = 0; i < GPI__COUNT(all); i++)
        hold_large(&all[i]);
}

int main(int argc, char **argv) {
    const char *name = getenv("GEMMEPI_TEST_DEVICE");
    int is_number = name && name[0] >= '0' && name[0] <= '9';
    if (argc > 1)
        sizes = atoi(argv[1]);
    if (argc > 2)
        only = atoi(argv[2]);
    if (argc > 3)
        kernels_taken = atoi(argv[3]);
    if ((name && !is_number) ||
        !test_device_open(&device, GEMMEPI_DEVICE(is_number ? atoi(name) : 0), 1u << GEMMEPI_ROUTE_FUSED)) {
        printf("skip fp8_shapes: there is no GPU\n");
        test_skipped++;
        return test_finish();
    }
    take_for_other_chip(&device);
    if (!device.has_fused && (device.is_host || !gpi__chip_has(device.context->arch, GPI__MMA_F16))) {
        printf("skip fp8_shapes: the GPU has neither wgmma nor mma.sync\n");
        test_device_close(&device);
        test_skipped++;
        return test_finish();
    }
    for (shape_here = device.has_fused ? 0 : HOPPER_SHAPES; shape_here < SHAPES; shape_here++)
        if (only < 0 || only % SHAPES == shape_here)
            RUN(the_shape_is_within_the_bound);
    if (only < 0)
        RUN(large_products_are_exact_each_time);
    test_device_close(&device);
    return test_finish();
}
