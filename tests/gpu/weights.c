/* weights [sizes [shape [kernels]]]: the kernel for weights in I8, in each of its shapes, which a plan is made to take here, at random
   sizes against the oracle and again and again. Needs a GPU of compute capability 8.0 or later whose blocks may have 128 KiB of shared
   memory, the first or that which GEMMEPI_TEST_DEVICE numbers. With the number of a shape: of that alone; with one of kernels: as many,
   not the same of each shape. */
#include "candidate.h"

enum { SHAPES = GPI__COUNT(gpi__weights_shapes), LARGEST_K = 1500 };

static test_device device;
static test_device *here = &device;
static int sizes = 4, only = -1, kernels_taken = 0;

/* What a kernel is compiled for; everything else is drawn for each size. */
typedef struct kernel {
    gemmepi_dtype a, d;
    gemmepi_scale_mode scale;
    gemmepi_epilogue epilogue;
    int scaled; /* alpha and C */
    int unit;   /* columns are a multiple of it: 8, else a number that is not */
} kernel;

#define SAME GEMMEPI_DTYPE_DEFAULT
static const kernel kernels[] = {
    {GEMMEPI_BF16, SAME, GEMMEPI_SCALE_OUTER, GEMMEPI_SILU | GEMMEPI_BIAS, 0, 8},
    {GEMMEPI_BF16, SAME, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_NONE, 0, 8},
    {GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_SCALE_OUTER, GEMMEPI_RELU | GEMMEPI_BIAS | GEMMEPI_AUX, 1, 1},
    {GEMMEPI_F16, SAME, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS, 0, 8},
    {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_NONE | GEMMEPI_RESIDUAL | GEMMEPI_BGRAD, 1,
     1},
    {GEMMEPI_BF16, GEMMEPI_F16, GEMMEPI_SCALE_TENSOR,
     GEMMEPI_GELU_TANH | GEMMEPI_GATED | GEMMEPI_AUX | GEMMEPI_RESIDUAL, 1, 1},
    {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_SCALE_NONE, GEMMEPI_NONE | GEMMEPI_BIAS, 0, 1},
    {GEMMEPI_BF16, SAME, GEMMEPI_SCALE_BLOCK_128, GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD, 0, 8},
    {GEMMEPI_F16, SAME, GEMMEPI_SCALE_OUTER, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
     0, 8},
    {GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_RELU | GEMMEPI_RESIDUAL, 0, 8},
    {GEMMEPI_BF16, SAME, GEMMEPI_SCALE_BLOCK_128, GEMMEPI_SILU | GEMMEPI_GATED, 0, 1},
    {GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_NONE | GEMMEPI_BGRAD_A, 0, 8},
    {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_SCALE_OUTER, GEMMEPI_SILU | GEMMEPI_BGRAD_B, 0, 8},
};
enum { KERNELS = GPI__COUNT(kernels) };

/* >>plans of one shape */

/* NULL: the shape does not take the problem. */
static gemmepi_plan *plan_as(const gemmepi_matmul_desc *desc, int shape, int unit_alpha) {
    gpi__candidate candidate = candidate_by(&gpi__weights_engine, shape, unit_alpha);
    gpi__problem problem = problem_of(here->context, desc);
    CHECK(!gpi__weights_rule(here->context, &problem), "%s", gpi__weights_rule(here->context, &problem));
    return gpi__weights_shape_accepts(&problem, &gpi__weights_shapes[shape], here->context->arch)
               ? plan_by(here->context, &problem, &candidate, 0)
               : NULL;
}

/* >>random sizes */

/* Of k, that all parts have a stage of. */
static int steps_of_parts(const gpi__weights_shape *shape) {
    static gpi__problem of_bytes;
    of_bytes.views[GPI__B].bits = 8;
    return shape->parts * gpi__weights_step(&of_bytes, shape);
}

/* Lines of operands begin at multiples of 16 bytes. */
static void draw_layouts(problem *p, const kernel *k, rng *r) {
    gemmepi_matmul_desc *desc = &p->desc;
    desc->batch = rng_one_in(r, 4) ? 3 : 1;
    if (desc->batch > 1) {
        problem_space_out(p, 0);
        problem_space_out_scales(p, 0);
    }
    desc->a.ld = (desc->k + 7) / 8 * 8 + 8 * rng_below(r, 3);
    desc->b.ld = (desc->k + 15) / 16 * 16 + 16 * rng_below(r, 3);
    desc->d.ld =
        (problem_extents(p, T_D).columns + k->unit - 1) / k->unit * k->unit + k->unit * rng_below(r, 3);
    if (desc->batch == 1)
        return;
    desc->a.batch_stride = desc->a.ld * desc->m + 8;
    desc->b.batch_stride = rng_one_in(r, 2) ? 0 : desc->b.ld * desc->n;
    desc->d.batch_stride = desc->d.ld * desc->m + k->unit;
}

static problem draw(const kernel *k, uint64_t seed, const gpi__weights_shape *shape) {
    rng r = rng_seeded(seed);
    int64_t rows = rng_one_in(&r, 3) ? 2 * shape->tile_m + 3 : shape->tile_m;
    problem p = problem_plain(k->a, 1 + rng_below(&r, rows), 1 + rng_below(&r, 300),
                              1 + rng_below(&r, LARGEST_K), k->epilogue);
    p.seed = seed;
    p.fill = (fill)rng_below(&r, 4);
    p.desc.b.dtype = GEMMEPI_I8;
    p.desc.b.transposed = 1;
    p.desc.b.scale.mode = k->scale;
    p.desc.d.dtype = k->d;
    if (k->d == GEMMEPI_E4M3)
        p.desc.d.scale.mode = GEMMEPI_SCALE_TENSOR;
    if (p.desc.k < steps_of_parts(shape))
        p.desc.k += steps_of_parts(shape);
    if (k->unit == 8)
        p.desc.n = (p.desc.n + 15) / 16 * 16;
    else if (p.desc.n % 8 == 0)
        p.desc.n++;
    problem_make_even(&p);
    draw_layouts(&p, k, &r);
    if (k->scaled)
        problem_scale(&p, 1.5, rng_one_in(&r, 2) ? 0.75 : 0);
    return p;
}

/* Shapes with two blocks on a multiprocessor are of weights in 4 bits: weights_made.c. */
static int is_of_8_bits(int shape) {
    return gpi__weights_shapes[shape].blocks == 1;
}

static int shape_here;

static void the_shape_is_within_the_bound(void) {
    const gpi__weights_shape *shape = &gpi__weights_shapes[shape_here];
    int least = sizes * (kernels_taken ? kernels_taken : 1), i, k, size, runs = 0;
    for (i = 0; i < KERNELS && (!kernels_taken || runs < least); i++)
        for (k = (i + shape_here * kernels_taken) % KERNELS, size = 0; size < sizes; size++) {
            problem p = draw(&kernels[k], (uint64_t)(1000 * shape_here + 100 * k + size), shape);
            gemmepi_plan *plan = plan_as(&p.desc, shape_here, !kernels[k].scaled);
            run r;
            if (!plan)
                continue;
            CHECK(problem_holds_run(here, &p, plan, &r), "shape %d, kernel %d, size %d", shape_here, k, size);
            run_free(&r);
            drop_plan(plan);
            runs++;
        }
    CHECK(runs >= (least + 1) / 2, "shape %d: %d runs", shape_here, runs);
}

/* Beyond m, n and k lies anything. */
static void special_values_stay_in_their_rows(void) {
    enum { M = 19, N = 21, K = 141, LINE = 160 };
    static double a[M * K], b[K * N], scale[2 * N];
    int shape = shape_here, mode, i;
    for (i = 0; i < M * K; i++)
        a[i] = 1 + i % 7;
    for (i = 0; i < K * N; i++)
        b[i] = i % 5 - 2;
    for (i = 0; i < 2 * N; i++)
        scale[i] = i % 3 ? 0.5 : 2;
    a[2 * K + K - 1] = INFINITY, a[(M - 1) * K] = NAN;
    for (mode = (int)GEMMEPI_SCALE_OUTER; mode <= (int)GEMMEPI_SCALE_VECTOR_128; mode++) {
        problem p = problem_plain(GEMMEPI_BF16, M, N, K, GEMMEPI_NONE);
        gemmepi_plan *plan;
        run r;
        p.desc.b.dtype = GEMMEPI_I8, p.desc.b.transposed = 1, p.desc.b.scale.mode = (gemmepi_scale_mode)mode;
        p.desc.d.dtype = GEMMEPI_F32;
        p.given[T_A] = a, p.given[T_B] = b, p.given[T_SCALE_B] = scale;
        p.desc.a.ld = p.desc.b.ld = LINE;
        plan = plan_as(&p.desc, shape, 1);
        if (!plan) /* so little of k is in no parts */
            continue;
        CHECK(problem_holds_run(here, &p, plan, &r), "shape %d, mode %d", shape, mode);
        run_free(&r);
        drop_plan(plan);
    }
}

/* Each of the 256 numbers that a weight may be, times powers of two: exact. */
static void every_weight_is_taken_as_it_is(void) {
    enum { M = 5, N = 40, K = 512 };
    static double a[M * K], b[K * N];
    static const gemmepi_dtype dtypes[] = {GEMMEPI_BF16, GEMMEPI_F16};
    int shape = shape_here, type, i;
    for (i = 0; i < M * K; i++)
        a[i] = i % K % (7 + i / K) ? 0 : 0.5;
    for (i = 0; i < K * N; i++)
        b[i] = (i / N * 3 + i % N * 7) % 256 - 128;
    for (type = 0; type < 2; type++) {
        problem p = problem_plain(dtypes[type], M, N, K, GEMMEPI_NONE);
        gemmepi_plan *plan;
        run r;
        double *got, want;
        int row, column, k, wrong = 0;
        p.desc.b.dtype = GEMMEPI_I8, p.desc.b.transposed = 1;
        p.desc.d.dtype = GEMMEPI_F32;
        p.given[T_A] = a, p.given[T_B] = b;
        plan = plan_as(&p.desc, shape, 1);
        if (!plan)
            continue;
        CHECK(problem_holds_run(here, &p, plan, &r), "shape %d", shape);
        got = run_values(&r, T_D);
        for (row = 0; row < M; row++)
            for (column = 0; column < N; column++) {
                for (want = 0, k = 0; k < K; k++)
                    want += a[row * K + k] * b[k * N + column];
                wrong += got[row * N + column] != want;
            }
        CHECK(wrong == 0, "shape %d, %s: %d of %d are wrong", shape, type ? "F16" : "BF16", wrong, M * N);
        free(got);
        run_free(&r);
        drop_plan(plan);
    }
}

/* >>again and again */

/* Launches overlap, and clusters end beside others. */
static void a_thousand_repetitions_have_the_same_bits(void) {
    enum { M = 61, N = 1040, K = 4096, A = M * K, B = K * N, D = M * N };
    static uint16_t numbers[A], first[D], again[D];
    static int8_t weights[B];
    void *a, *b, *d;
    int i, shape;
    for (i = 0; i < A; i++)
        numbers[i] = (uint16_t)(0x3d00 | (random_hash((uint64_t)i) & 0x80ff));
    for (i = 0; i < B; i++)
        weights[i] = (int8_t)random_hash((uint64_t)i + A);
    CHECK(gemmepi_alloc(here->context, sizeof numbers, &a) == GEMMEPI_OK &&
              gemmepi_alloc(here->context, sizeof weights, &b) == GEMMEPI_OK &&
              gemmepi_alloc(here->context, sizeof first, &d) == GEMMEPI_OK &&
              gemmepi_upload(here->context, a, numbers, sizeof numbers, NULL) == GEMMEPI_OK &&
              gemmepi_upload(here->context, b, weights, sizeof weights, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (shape = 0; shape < SHAPES; shape++) {
        gemmepi_matmul_desc desc;
        gemmepi_matmul_args args;
        gemmepi_plan *plan;
        int repetition, differ = 0, failed = 0;
        if (!is_of_8_bits(shape))
            continue;
        memset(&desc, 0, sizeof desc);
        memset(&args, 0, sizeof args);
        desc.m = M, desc.n = N, desc.k = K;
        desc.a.dtype = GEMMEPI_BF16, desc.b.dtype = GEMMEPI_I8;
        desc.d.dtype = GEMMEPI_BF16;
        desc.b.transposed = 1;
        args.a = a, args.b = b, args.d = d;
        plan = plan_as(&desc, shape, 1);
        CHECK(plan && gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "shape %d: %s", shape,
              gemmepi_last_error());
        for (repetition = 0; plan && repetition < 1000; repetition++) {
            failed += gemmepi_run_matmul(plan, &args, NULL) != GEMMEPI_OK;
            if (repetition % 4)
                continue;
            failed += gemmepi_download(here->context, repetition ? again : first, d, sizeof first, NULL) !=
                      GEMMEPI_OK;
            differ += repetition && memcmp(first, again, sizeof first);
        }
        CHECK(failed == 0 && differ == 0, "shape %d: %d runs failed, %d repetitions differ", shape, failed,
              differ);
        drop_plan(plan);
    }
    gemmepi_free(here->context, a), gemmepi_free(here->context, b), gemmepi_free(here->context, d);
}

int main(int argc, char **argv) {
    const char *name = getenv("GEMMEPI_TEST_DEVICE");
    int is_number = name && name[0] >= '0' && name[0] <= '9';
    if (argc > 1)
        sizes = atoi(argv[1]);
    if (argc > 2)
        only = atoi(argv[2]) % SHAPES;
    if (argc > 3)
        kernels_taken = atoi(argv[3]);
    if ((name && !is_number) ||
        !test_device_open(&device, GEMMEPI_DEVICE(is_number ? atoi(name) : 0), 1u << GEMMEPI_ROUTE_FUSED)) {
        printf("skip weights: there is no GPU\n");
        test_skipped++;
        return test_finish();
    }
    if (device.context->arch < 80 ||
        gpi__chip_of(device.context->arch)->most_shared < GPI__WEIGHTS_MOST_SHARED) {
        printf("skip weights: the GPU is not one that has the kernel\n");
        test_device_close(&device);
        test_skipped++;
        return test_finish();
    }
    for (shape_here = 0; shape_here < SHAPES; shape_here++)
        if ((only < 0 || only == shape_here) && is_of_8_bits(shape_here)) {
            RUN(the_shape_is_within_the_bound);
            RUN(special_values_stay_in_their_rows);
            RUN(every_weight_is_taken_as_it_is);
        }
    if (only < 0)
        RUN(a_thousand_repetitions_have_the_same_bits);
    test_device_close(&device);
    return test_finish();
}
