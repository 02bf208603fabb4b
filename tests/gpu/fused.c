/* fused [sizes [shape [kernels]]]: the route fused in each shape of its kernels, which a plan is made to take here, at random
   sizes from 1 to 600 against the oracle, at large sizes against sums in double of some elements, and again and again. Needs a
   GPU of compute capability 9.0, the first or that which GEMMEPI_TEST_DEVICE numbers; with a shape that is not of the kernel for
   Hopper, one of 7.5 or later. With the number of
   a shape: the first of these alone, of that shape, with one of kernels: as many, not the same of each shape, and of the gradients
   and the shapes that run again and again a share. */
#include "candidate.h"

enum { LARGEST = 600 };

static test_device device;
static test_device *here = &device;
static int sizes = 4, only = -1, kernels_taken = 0;

/* >>plans of one shape */

/* A shape of the kernel for Hopper, or of those for chips from 7.5 on, which run here as well. */
typedef struct cut {
    const gpi__sm90_shape *sm90;
    const gpi__sm80_shape *mma;
    const gpi__small_shape *small;
    const gpi__outer_shape *outer;
    int engine, shape, parts, least_k;
} cut;

/* Those of the second kernel also with k in parts. */
enum {
    FUSED_CUTS = GPI__COUNT(gpi__sm90_shapes),
    MMA_CUTS = GPI__COUNT(gpi__sm80_shapes),
    SMALL_CUTS = GPI__COUNT(gpi__small_shapes),
    FIRST_SMALL = FUSED_CUTS + 2 * MMA_CUTS,
    FIRST_OUTER = FIRST_SMALL + SMALL_CUTS,
    CUTS = FIRST_OUTER + GPI__COUNT(gpi__outer_shapes),
    PARTS = 5
};

static cut cut_at(int i) {
    cut c = {NULL, NULL, NULL, NULL, 0, 0, 1, 1};
    c.shape = i;
    if (i >= FIRST_OUTER) {
        while (gpi__engines[c.engine] != &gpi__outer_engine)
            c.engine++;
        c.shape = i - FIRST_OUTER;
        c.outer = &gpi__outer_shapes[c.shape];
    } else if (i >= FIRST_SMALL) {
        c.engine = 2;
        c.shape = i - FIRST_SMALL;
        c.small = &gpi__small_shapes[c.shape];
    } else if (i >= FUSED_CUTS) {
        c.engine = 1;
        c.shape = (i - FUSED_CUTS) % MMA_CUTS;
        c.mma = &gpi__sm80_shapes[c.shape];
        if (i >= FUSED_CUTS + MMA_CUTS) {
            c.parts = PARTS;
            c.least_k = 2 * 64 * PARTS;
        }
    } else {
        c.sm90 = &gpi__sm90_shapes[i];
        if (c.sm90->parts > 1)
            c.least_k = 128 * c.sm90->parts;
    }
    return c;
}

/* As the cut's kernel has it: TF32 is transposed for that for Hopper, and b of a gate with halves of no whole units. */
static gpi__problem cut_problem(const cut *c, const gpi__problem *problem, int packs[2]) {
    gpi__problem packed;
    int operand;
    for (operand = GPI__A; operand <= GPI__B; operand++)
        packs[operand] = c->sm90 && gpi__wants_side_by_side(problem, operand)
                             ? gpi__pack_of(problem, operand, 1)
                             : GPI__AS_IT_LIES;
    gpi__pack_views(problem, packs, &packed);
    return packed;
}

static int cut_takes(const cut *c, const gpi__problem *problem, int unit_alpha) {
    int packs[2];
    gpi__problem packed = cut_problem(c, problem, packs);
    if (c->outer)
        return !gpi__outer_rule(here->context, problem);
    if (c->small)
        return gpi__small_shape_accepts(problem, c->small, here->context->arch);
    if (c->mma)
        return !gpi__sm80_rule(here->context, problem) &&
               gpi__sm80_shape_accepts(problem, c->mma, here->context->arch);
    return !gpi__tma_rule(here->context, &packed) && gpi__shape_accepts(&packed, c->sm90, unit_alpha);
}

static const gpi__built *built_of(const gemmepi_plan *plan) {
    return &((const gpi__fused *)matmul_of(plan)->built)->built;
}

/* NULL: the shape does not take the problem. processors: as plan_by has them. */
static gemmepi_plan *plan_as(const gemmepi_matmul_desc *desc, const cut *c, int unit_alpha, int processors) {
    gpi__candidate candidate = candidate_by(gpi__engines[c->engine], c->shape, unit_alpha);
    gpi__problem problem = problem_of(here->context, desc);
    const char *rule = gpi__fused_rule(here->context, &problem);
    CHECK(!rule || !here->has_fused, "%s", rule);
    if (rule || !cut_takes(c, &problem, unit_alpha))
        return NULL;
    candidate.parts = c->parts;
    cut_problem(c, &problem, candidate.copies);
    return plan_by(here->context, &problem, &candidate, processors);
}

/* >>random sizes */

/* What a kernel is compiled for; everything else is drawn for each size. */
typedef struct kernel {
    gemmepi_dtype dtype, d;
    gemmepi_epilogue epilogue;
    int layout, scaled; /* bits: A transposed, B; alpha and C */
    int unit;           /* columns are a multiple of it: 8, else a number that is not */
    int operand_unit;   /* elements at whose multiples the operands' lines begin; TMA takes 8 */
    gemmepi_compute compute;
} kernel;

#define FORWARD          (GEMMEPI_BIAS | GEMMEPI_AUX)
#define BACKWARD         (GEMMEPI_BACKWARD | GEMMEPI_BGRAD)
#define SAME             GEMMEPI_DTYPE_DEFAULT
#define DEFAULT          GEMMEPI_COMPUTE_DEFAULT
#define SUMS_OF_OPERANDS (GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B)
static const kernel kernels[] = {
    {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_GELU_TANH | GEMMEPI_GATED | GEMMEPI_BACKWARD, 0, 1, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_GELU_TANH | GEMMEPI_BIAS, 2, 0, 8, 8, DEFAULT},
    {GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM, 2, 0, 8, 8,
     DEFAULT},
    {GEMMEPI_F16, SAME, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS, 0, 0, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_RELU | FORWARD, 1, 1, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_GELU_ERF | GEMMEPI_GATED | FORWARD, 3, 1, 8, 8, DEFAULT},
    {GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_SILU | FORWARD | GEMMEPI_RESIDUAL, 2, 1, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_SILU | FORWARD, 0, 0, 1, 8, DEFAULT},
    {GEMMEPI_F16, SAME, GEMMEPI_RELU | FORWARD, 2, 0, 1, 8, DEFAULT},
    {GEMMEPI_F32, SAME, GEMMEPI_GELU_TANH | FORWARD, 0, 0, 8, 4, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_NONE | GEMMEPI_BIAS, 3, 0, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_NONE | GEMMEPI_BIAS, 0, 0, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, 2, 0, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_GELU_TANH | BACKWARD, 0, 0, 8, 8, DEFAULT},
    {GEMMEPI_F16, SAME, GEMMEPI_RELU | BACKWARD, 2, 0, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_SILU | GEMMEPI_GATED | BACKWARD, 0, 0, 8, 8, DEFAULT},
    {GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_GELU_ERF | GEMMEPI_BACKWARD, 3, 1, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_GELU_ERF | GEMMEPI_GATED | GEMMEPI_BACKWARD, 1, 1, 1, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_RELU | BACKWARD, 0, 1, 1, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_NONE | GEMMEPI_BGRAD, 2, 0, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_SILU | FORWARD, 2, 0, 1, 1, DEFAULT},
    {GEMMEPI_F16, SAME, GEMMEPI_GELU_TANH | GEMMEPI_GATED | FORWARD, 2, 0, 8, 2, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_SILU | BACKWARD, 0, 0, 1, 1, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_SILU | GEMMEPI_GATED | BACKWARD, 1, 0, 8, 4, DEFAULT},
    {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_NONE, 1, 1, 1, 1, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_SILU | GEMMEPI_RESIDUAL | BACKWARD, 0, 0, 8, 8, DEFAULT},
    {GEMMEPI_F16, SAME, GEMMEPI_GELU_TANH | GEMMEPI_GATED | GEMMEPI_RESIDUAL | GEMMEPI_BACKWARD, 2, 0, 8, 8,
     DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_RESIDUAL | BACKWARD, 0, 1, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_GATED | GEMMEPI_UPSTREAM | BACKWARD, 0, 0, 8,
     8, DEFAULT},
    {GEMMEPI_F16, SAME, GEMMEPI_TANH | GEMMEPI_BIAS | GEMMEPI_GATED | GEMMEPI_UPSTREAM | BACKWARD, 2, 1, 8, 8,
     DEFAULT},
    {GEMMEPI_F16, SAME, GEMMEPI_SILU | GEMMEPI_UPSTREAM | BACKWARD, 2, 0, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_GELU_TANH | GEMMEPI_GATED | GEMMEPI_UPSTREAM | BACKWARD, 2, 0, 8, 8,
     DEFAULT},
    {GEMMEPI_F32, SAME, GEMMEPI_SILU | FORWARD | GEMMEPI_RESIDUAL, 2, 1, 1, 1, GEMMEPI_COMPUTE_F32},
    {GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_GELU_TANH | GEMMEPI_GATED | FORWARD, 1, 0, 8, 4, GEMMEPI_COMPUTE_F32},
    {GEMMEPI_F32, SAME, GEMMEPI_RELU | BACKWARD, 3, 0, 8, 2, GEMMEPI_COMPUTE_F32},
    {GEMMEPI_F32, SAME, GEMMEPI_SILU | GEMMEPI_GATED | BACKWARD, 0, 0, 1, 1, GEMMEPI_COMPUTE_F32},
    {GEMMEPI_F32, SAME, GEMMEPI_SILU | FORWARD, 0, 0, 8, 4, GEMMEPI_COMPUTE_F32},
    {GEMMEPI_F32, SAME, GEMMEPI_GELU_ERF | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, 3, 1, 8, 4, GEMMEPI_COMPUTE_F32},
    {GEMMEPI_F32, SAME, GEMMEPI_NONE | FORWARD, 2, 0, 1, 4, GEMMEPI_COMPUTE_F32},
    {GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_SILU | GEMMEPI_GATED | FORWARD, 2, 1, 8, 2, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_F32, SAME, GEMMEPI_SILU | BACKWARD, 1, 0, 1, 1, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_F32, SAME, GEMMEPI_RELU | GEMMEPI_RESIDUAL | GEMMEPI_BIAS, 3, 0, 8, 4, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_F32, SAME, GEMMEPI_SILU | FORWARD, 2, 0, 8, 4, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_F32, GEMMEPI_BF16, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 2, 0, 8, 4, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_F32, SAME, GEMMEPI_SILU | GEMMEPI_GATED | FORWARD, 2, 1, 8, 4, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_F32, SAME, GEMMEPI_GELU_TANH | BACKWARD, 2, 0, 1, 4, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_F32, GEMMEPI_F16, GEMMEPI_SILU | GEMMEPI_GATED | BACKWARD, 2, 0, 8, 4, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_F32, SAME, GEMMEPI_RELU | GEMMEPI_RESIDUAL | BACKWARD, 2, 1, 8, 4, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_F32, SAME, GEMMEPI_BIAS | GEMMEPI_BGRAD_A, 2, 0, 8, 4, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_F32, SAME, GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_BGRAD_A, 1, 0, 8, 4, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_F32, SAME, GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD, 0, 0, 8, 4, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_RELU | FORWARD, 2, 0, 8, 8, DEFAULT},
    {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_GELU_TANH | GEMMEPI_RESIDUAL | BACKWARD, 0, 0, 8, 8, DEFAULT},
    {GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_SILU | GEMMEPI_GATED | BACKWARD, 2, 0, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_BGRAD_A, 0, 0, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_BGRAD_A | GEMMEPI_ACCUMULATE_BIAS_GRAD, 3, 0, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_BGRAD_B, 1, 0, 8, 8, DEFAULT},
    {GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_BGRAD_A | GEMMEPI_ACCUMULATE_BIAS_GRAD, 1, 1, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_SILU | GEMMEPI_BIAS | GEMMEPI_BGRAD_A, 3, 0, 1, 8, DEFAULT},
    {GEMMEPI_F16, SAME, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BGRAD_A | GEMMEPI_ACCUMULATE_BIAS_GRAD, 2, 0,
     8, 8, DEFAULT},
    {GEMMEPI_BF16, GEMMEPI_F32, GEMMEPI_BGRAD_B, 1, 1, 8, 8, DEFAULT},
    {GEMMEPI_F16, SAME, GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD, 2, 0, 8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD_B, 2, 0, 1, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_GELU_ERF | GEMMEPI_GATED | FORWARD | GEMMEPI_BGRAD_B, 0, 0, 8, 8, DEFAULT},
    {GEMMEPI_F16, SAME, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD, 2, 0,
     8, 8, DEFAULT},
    {GEMMEPI_BF16, SAME, GEMMEPI_SILU | GEMMEPI_GATED | FORWARD | GEMMEPI_BGRAD_B, 0, 1, 1, 8, DEFAULT},
    {GEMMEPI_F16, SAME, GEMMEPI_SILU | FORWARD, 0, 0, 8, 8, GEMMEPI_COMPUTE_F16},
    {GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_NONE, 2, 1, 1, 4, GEMMEPI_COMPUTE_F16},
    {GEMMEPI_F16, SAME, GEMMEPI_GELU_TANH | GEMMEPI_GATED | FORWARD, 2, 0, 8, 8, GEMMEPI_COMPUTE_F16},
    {GEMMEPI_F16, SAME, GEMMEPI_SILU | BACKWARD, 1, 0, 8, 4, GEMMEPI_COMPUTE_F16},
    {GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_RELU | FORWARD | GEMMEPI_RESIDUAL, 3, 1, 8, 8, GEMMEPI_COMPUTE_F16},
    {GEMMEPI_F16, SAME, GEMMEPI_SILU | GEMMEPI_GATED | BACKWARD, 3, 0, 8, 8, GEMMEPI_COMPUTE_F16},
    {GEMMEPI_F16, SAME, GEMMEPI_BIAS | GEMMEPI_BGRAD_A, 2, 0, 8, 8, GEMMEPI_COMPUTE_F16},
    {GEMMEPI_F16, SAME, GEMMEPI_GELU_ERF | GEMMEPI_BIAS, 0, 0, 1, 1, GEMMEPI_COMPUTE_F16},
};

static int64_t draw_size(rng *r) {
    return 1 + rng_below(r, rng_one_in(r, 4) ? 20 : LARGEST);
}

/* A length in memory of lines that hold so many elements. */
static int64_t draw_line(rng *r, int64_t length, int64_t unit) {
    return (length + unit - 1) / unit * unit + unit * rng_below(r, 3);
}

static int64_t draw_operand(rng *r, const kernel *k, gemmepi_matrix *x, int64_t rows, int64_t columns) {
    x->ld = draw_line(r, x->transposed ? rows : columns, k->operand_unit);
    return x->ld * (x->transposed ? columns : rows); /* elements of an item */
}

static int has_aux(const kernel *k) {
    return (k->epilogue & (GEMMEPI_AUX | GEMMEPI_BACKWARD)) != 0;
}

/* Operands lie at multiples of the kernel's unit; the others as they come. */
static void draw_layouts(problem *p, const kernel *k, rng *r) {
    gemmepi_matmul_desc *desc = &p->desc;
    int64_t a = draw_operand(r, k, &desc->a, desc->m, desc->k),
            b = draw_operand(r, k, &desc->b, desc->k, desc->n);
    desc->d.ld = draw_line(r, problem_extents(p, T_D).columns, k->unit);
    if (has_aux(k) && !problem_has_mask(p))
        desc->aux.ld = draw_line(r, problem_extents(p, T_AUX).columns, k->unit);
    desc->batch = rng_one_in(r, 3) ? 3 : 1;
    if (desc->batch == 1)
        return;
    desc->a.batch_stride = a + k->operand_unit;
    desc->b.batch_stride = rng_one_in(r, 2) ? 0 : b;
    desc->d.batch_stride = desc->d.ld * desc->m + k->unit;
    if ((k->epilogue & SUMS_OF_OPERANDS) && rng_one_in(r, 2)) /* else one for all items */
        desc->bias_grad.batch_stride = problem_length(p, T_BIAS_GRAD) + rng_below(r, 3);
    if (has_aux(k))
        desc->aux.batch_stride = (desc->aux.ld ? desc->aux.ld : (desc->n + 127) / 128 * 128) * desc->m;
}

/* Few rows or columns by turns, or both; a narrow tile takes no more columns than it has. */
static void draw_small(problem *p, const gpi__small_shape *shape, rng *r) {
    p->desc.m = 1 + rng_below(r, rng_one_in(r, 2) ? 17 : 80);
    p->desc.n = 1 + rng_below(r, p->desc.m > 17 || rng_one_in(r, 2) ? 40 : 200);
    if (shape->tile_n % GPI__RUN)
        p->desc.n = 1 + rng_below(r, shape->tile_n);
}

static problem draw(const kernel *k, uint64_t seed, const cut *c) {
    rng r = rng_seeded(seed);
    problem p = problem_plain(k->dtype, draw_size(&r), draw_size(&r), draw_size(&r), k->epilogue);
    p.seed = seed;
    p.fill = (fill)rng_below(&r, 4);
    p.desc.d.dtype = k->d;
    p.desc.compute = k->compute;
    p.desc.a.transposed = k->layout & 1;
    p.desc.b.transposed = k->layout >> 1;
    if (p.desc.k < c->least_k)
        p.desc.k = c->least_k;
    if (c->outer)
        p.desc.k = 1 + p.desc.k % GPI__OUTER_DEPTH;
    if (c->small)
        draw_small(&p, c->small, &r);
    else if (k->unit == 8)
        p.desc.n = (p.desc.n + 15) / 16 * 16;
    else if (p.desc.n % 8 == 0)
        p.desc.n++;
    problem_make_even(&p);
    draw_layouts(&p, k, &r);
    if (k->scaled)
        problem_scale(&p, 1.5, rng_one_in(&r, 2) ? 0.75 : 0);
    random_in_place(&p, &r);
    return p;
}

static int shape_here;

static void the_shape_is_within_the_bound(void) {
    enum { KERNELS = GPI__COUNT(kernels) };
    cut c = cut_at(shape_here);
    int least = sizes * (kernels_taken ? kernels_taken : 1), i, k, size, runs = 0;
    for (i = 0; i < KERNELS && (!kernels_taken || runs < least); i++)
        for (k = (i + shape_here * kernels_taken) % KERNELS, size = 0; size < sizes; size++) {
            problem p = draw(&kernels[k], (uint64_t)(1000 * shape_here + 100 * k + size), &c);
            gemmepi_plan *plan = plan_as(&p.desc, &c, !kernels[k].scaled, size % 2 * 3);
            run r;
            if (!plan)
                continue;
            CHECK(problem_holds_run(here, &p, plan, &r), "shape %d, kernel %d, size %d", shape_here, k, size);
            run_free(&r);
            drop_plan(plan);
            runs++;
        }
    CHECK(runs >= (here->has_fused ? least : 1), "shape %d: %d runs", shape_here,
          runs); /* others lack types and clusters */
}

/* Beyond m, n and k lies anything, and what a lane has there is multiplied, too. */
static void special_values_stay_in_their_rows_and_columns(void) {
    enum { M = 19, MOST_N = 21, K = 37 };
    static double a[M * K], b[K * MOST_N];
    int which, layout, i;
    for (which = FIRST_SMALL; which < FIRST_OUTER; which++)
        for (layout = 0; layout < 4; layout++) {
            cut c = cut_at(which);
            int n = c.small->tile_n % GPI__RUN ? c.small->tile_n : MOST_N;
            problem p = problem_plain(layout % 2 ? GEMMEPI_BF16 : GEMMEPI_F32, M, n, K, GEMMEPI_NONE);
            gemmepi_plan *plan;
            run r;
            for (i = 0; i < M * K; i++)
                a[i] = 1 + i % 7;
            for (i = 0; i < K * n; i++)
                b[i] = i % 5 - 2;
            a[2 * K + K - 1] = INFINITY, a[(M - 1) * K] = NAN, b[5 * n + n - 1] = -INFINITY;
            p.given[T_A] = a, p.given[T_B] = b;
            p.desc.a.transposed = layout & 1, p.desc.b.transposed = layout >> 1;
            p.desc.a.ld = p.desc.b.ld = 41;
            plan = plan_as(&p.desc, &c, 1, 0);
            if (!plan && !here->has_fused)
                continue; /* without clusters */
            CHECK(plan && problem_holds_run(here, &p, plan, &r), "shape %d, layout %d", which, layout);
            if (plan)
                run_free(&r);
            drop_plan(plan);
        }
}

/* Derivatives of aux at the ends of their ranges and beyond, one here and there in boxes of 16 rows and 64 columns, times gradients small
   and large. */
static void gradients_hold_wherever_aux_lies(void) {
    enum { M = 200, N = 208, K = 8 };
    static const gemmepi_epilogue activations[] = {GEMMEPI_SILU, GEMMEPI_GELU_TANH, GEMMEPI_QUICK_GELU,
                                                   GEMMEPI_GELU_ERF};
    static const double beyond[] = {-80,  -80.5, -100,   -170,    -1e30,    -INFINITY, INFINITY,
                                    NAN,  1e30,  1e7,    80,      -9.75,    -9.8125,   -12,
                                    -64,  -47,   -47.25, 1048576, 3e38,     -20,       2097152,
                                    -0.0, 1e-30, -1e-30, -12.5,   -12.5625, 12.5,      -0.75};
    static const double factors[2][6] = {{1, -2, 0.25, 1e30, -1e20, 3e-20}, {1, -2, 0.25, 1e4, -6e4, 3e-4}};
    static double a[M * K], b[K * N], aux[M * N];
    int which, activation, half, sums, i, runs = 0, looked = 0;
    for (i = 0; i < N; i++)
        b[i] = 1; /* the first row */
    for (i = 0; i < M * N; i++) {
        int box = i / N / 16 * ((N + 63) / 64) + i % N / 64, which_box = box / 3 * 2 + box % 3 - 1;
        uint64_t number = random_hash((uint64_t)i);
        aux[i] = (double)(number % 2001) / 250 - 4;
        if (box % 3 && number / 4096 % 7 == 0)
            aux[i] = beyond[which_box % (int)GPI__COUNT(beyond)];
    }
    for (which = 0; which < FUSED_CUTS; which++)
        for (activation = 0; activation < (int)GPI__COUNT(activations); activation++)
            for (half = 0; half < 2; half++)
                for (sums = 0; sums < 2; sums++) {
                    cut c = cut_at(which);
                    problem p = problem_plain(half ? GEMMEPI_F16 : GEMMEPI_BF16, M, N, K,
                                              activations[activation] | GEMMEPI_BACKWARD |
                                                  (sums ? GEMMEPI_BGRAD : GEMMEPI_NONE));
                    gemmepi_plan *plan;
                    run r;
                    if (kernels_taken && (which + activation + half + sums) % 8)
                        continue;
                    for (i = 0; i < M; i++)
                        a[i * K] = factors[half][random_hash((uint64_t)i) % (sums ? 3 : 6)];
                    p.given[T_A] = a, p.given[T_B] = b, p.given[T_AUX] = aux;
                    plan = c.least_k > K ? NULL : plan_as(&p.desc, &c, 1, 2);
                    if (!plan)
                        continue;
                    looked += built_of(plan)->sm90.loaded & 1;
                    CHECK(problem_holds_run(here, &p, plan, &r), "shape %d, activation %d, %s%s", which,
                          activation, half ? "F16" : "BF16", sums ? ", sums" : "");
                    run_free(&r);
                    drop_plan(plan);
                    runs++;
                }
    CHECK(runs >= (kernels_taken ? 8 : 32) && looked == runs, "%d runs, of which TMA loads aux in %d", runs,
          looked);
}

/* One row of fewer than eight columns: parts of k lie as close as they ever do. */
static void narrow_rows_of_parts_are_within_the_bound(void) {
    static const gemmepi_dtype dtypes[] = {GEMMEPI_BF16, GEMMEPI_F32};
    int which, n, type;
    for (which = FUSED_CUTS + MMA_CUTS; which < FIRST_SMALL; which++)
        for (type = 0; type < 2; type++)
            for (n = 1; n < 8; n++) {
                cut c = cut_at(which);
                const int many = n % 4 == 3 ? 9 : 1; /* parts, of which the pass loads more at a time */
                problem p = problem_plain(dtypes[type], 1, n, many * c.least_k + n,
                                          type ? GEMMEPI_SILU | GEMMEPI_BIAS : GEMMEPI_NONE | GEMMEPI_BGRAD);
                gemmepi_plan *plan;
                run r;
                c.parts *= many;
                plan = plan_as(&p.desc, &c, 1, 0);
                if (!plan) /* that odd lines are not for */
                    continue;
                CHECK(problem_holds_run(here, &p, plan, &r), "shape %d, n %d, type %d", which, n, type);
                run_free(&r);
                drop_plan(plan);
            }
}

/* >>large sizes */

static float bf16_to_float(uint16_t bits) {
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* Whole numbers from -3 to 3: exact in BF16, and so are their sums. */
static uint16_t whole(uint64_t seed) {
    static const uint16_t numbers[7] = {0xc040, 0xc000, 0xbf80, 0, 0x3f80, 0x4000, 0x4040};
    return numbers[random_hash(seed) % 7];
}

/* D = relu(A B + bias) to the bit in some rows and columns, B transposed. */
static void large_products_are_exact(void) {
    static const int64_t extents[][3] = {
        {8192, 3072, 768}, {2048, 8192, 4096}, {513, 24576, 320}, {16, 4096, 8192}, {30000, 264, 72}};
    size_t i;
    for (i = 0; i < GPI__COUNT(extents); i++) {
        int64_t m = extents[i][0], n = extents[i][1], k = extents[i][2], x;
        size_t a_size = (size_t)(m * k), b_size = (size_t)(n * k), d_size = (size_t)(m * n);
        uint16_t *a = (uint16_t *)malloc(2 * a_size), *b = (uint16_t *)malloc(2 * b_size);
        uint16_t *d = (uint16_t *)malloc(2 * d_size), *bias = (uint16_t *)malloc(2 * (size_t)n);
        void *on_device[4];
        gemmepi_matmul_desc desc;
        gemmepi_matmul_args args;
        int wrong = 0;
        memset(&desc, 0, sizeof desc);
        memset(&args, 0, sizeof args);
        for (x = 0; x < (int64_t)a_size; x++)
            a[x] = whole((uint64_t)x);
        for (x = 0; x < (int64_t)b_size; x++)
            b[x] = whole((uint64_t)x + a_size);
        for (x = 0; x < n; x++)
            bias[x] = whole((uint64_t)x + 7);
        desc.m = m, desc.n = n, desc.k = k, desc.batch = 1;
        desc.a.dtype = GEMMEPI_BF16;
        desc.b.transposed = 1;
        desc.epilogue = GEMMEPI_RELU | GEMMEPI_BIAS;
        if (gemmepi_alloc(here->context, 2 * a_size, &on_device[0]) ||
            gemmepi_alloc(here->context, 2 * b_size, &on_device[1]) ||
            gemmepi_alloc(here->context, 2 * d_size, &on_device[2]) ||
            gemmepi_alloc(here->context, 2 * (size_t)n, &on_device[3]) ||
            gemmepi_upload(here->context, on_device[0], a, 2 * a_size, NULL) ||
            gemmepi_upload(here->context, on_device[1], b, 2 * b_size, NULL) ||
            gemmepi_upload(here->context, on_device[3], bias, 2 * (size_t)n, NULL)) {
            CHECK(0, "%s", gemmepi_last_error());
            return;
        }
        args.a = on_device[0], args.b = on_device[1], args.d = on_device[2], args.bias = on_device[3];
        CHECK(gemmepi_matmul(here->context, &desc, &args, NULL) == GEMMEPI_OK &&
                  gemmepi_download(here->context, d, on_device[2], 2 * d_size, NULL) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        for (x = 0; x < 4000; x++) {
            int64_t row = (int64_t)(random_hash((uint64_t)x) % (uint64_t)m), l;
            int64_t column = (int64_t)(random_hash((uint64_t)x + 9999) % (uint64_t)n);
            float sum = bf16_to_float(bias[column]), got = bf16_to_float(d[row * n + column]);
            uint32_t word, rounded;
            for (l = 0; l < k; l++)
                sum += bf16_to_float(a[row * k + l]) * bf16_to_float(b[column * k + l]);
            sum = sum > 0 ? sum : 0;
            memcpy(&word, &sum, sizeof word);
            rounded = (word + 0x7fff + (word >> 16 & 1)) & 0xffff0000u;
            memcpy(&sum, &rounded, sizeof sum);
            wrong += got != sum;
        }
        CHECK(wrong == 0, "%lld x %lld x %lld: %d of 4000 elements are wrong", (long long)m, (long long)n,
              (long long)k, wrong);
        for (x = 0; x < 4; x++)
            gemmepi_free(here->context, on_device[x]);
        free(a), free(b), free(d), free(bias);
    }
}

/* >>again and again */

/* Products that each read the result before, without a wait between them, so that launches overlap, and sum an operand where
   the shape does; then those that leave BGRAD's sums of columns, of three tiles a block. */
static void a_thousand_repetitions_have_the_same_bits(void) {
    enum { EXTENT = 1032, CHAIN = 4 };             /* k enough for eight parts */
    static const int summing[] = {0, 1, 2, 3, 11}; /* of shapes, those of 128, 256, 192 and 64 columns */
    int which;
    for (which = kernels_taken ? 1 : 0; which < CUTS + (int)GPI__COUNT(summing);
         which += kernels_taken ? 3 : 1) {
        int sums_columns = which >= CUTS;
        cut c = cut_at(sums_columns ? summing[which - CUTS] : which);
        int has_f16_sums = c.mma && gpi__has_f16_sums(c.mma);
        int is_strict = c.mma && !has_f16_sums && !(c.mma->kinds & GPI__OF_16_BITS);
        size_t bytes = (size_t)EXTENT * EXTENT * (is_strict ? 4 : 2);
        gemmepi_matmul_desc desc;
        gemmepi_matmul_args args;
        gemmepi_plan *plan;
        char *first = (char *)malloc(bytes), *again = (char *)malloc(bytes);
        float first_sums[EXTENT], sums[EXTENT];
        void *memory[CHAIN + 1], *sums_memory;
        int i, repetition, differ = 0, failed = 0;
        memset(&desc, 0, sizeof desc);
        memset(&args, 0, sizeof args);
        desc.m = desc.n = desc.k = desc.a.ld = desc.b.ld = EXTENT;
        if (c.outer)
            desc.k = GPI__OUTER_DEPTH;
        desc.batch = 1;
        desc.a.dtype = is_strict ? GEMMEPI_F32 : has_f16_sums ? GEMMEPI_F16 : GEMMEPI_BF16;
        desc.compute = is_strict      ? GEMMEPI_COMPUTE_F32
                       : has_f16_sums ? GEMMEPI_COMPUTE_F16
                                      : GEMMEPI_COMPUTE_DEFAULT;
        desc.b.transposed = 1;
        desc.epilogue = GEMMEPI_TANH; /* holds the numbers in their range */
        if (sums_columns)
            desc.epilogue = GEMMEPI_NONE | GEMMEPI_BGRAD;
        else
            desc.epilogue |= which % 2 ? GEMMEPI_BGRAD_A : GEMMEPI_BGRAD_B;
        desc.bias_grad.dtype =
            desc.epilogue & (GEMMEPI_BGRAD | SUMS_OF_OPERANDS) ? GEMMEPI_F32 : GEMMEPI_DTYPE_DEFAULT;
        for (i = 0; i < EXTENT * EXTENT; i++) {
            uint32_t word = (uint32_t)(0x3d00 | (random_hash((uint64_t)i) & 0x80ff)) << 16;
            uint16_t half = (uint16_t)(word >> 16);
            if (is_strict)
                memcpy(first + 4 * i, &word, 4);
            else
                memcpy(first + 2 * i, &half, 2);
        }
        for (i = 0; i <= CHAIN; i++)
            CHECK(gemmepi_alloc(here->context, bytes, &memory[i]) == GEMMEPI_OK &&
                      gemmepi_upload(here->context, memory[i], first, bytes, NULL) == GEMMEPI_OK,
                  "%s", gemmepi_last_error());
        memset(first_sums, 0, sizeof first_sums);
        CHECK(gemmepi_alloc(here->context, sizeof sums, &sums_memory) == GEMMEPI_OK &&
                  gemmepi_upload(here->context, sums_memory, first_sums, sizeof sums, NULL) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        args.bias_grad = desc.epilogue & (GEMMEPI_BGRAD | SUMS_OF_OPERANDS) ? sums_memory : NULL;
        plan = plan_as(&desc, &c, 1, sums_columns ? 32 : 0);
        CHECK(plan != NULL || (c.small && c.small->tile_n % GPI__RUN), "shape %d does not take it", which);
        CHECK(!plan || gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
        for (repetition = 0; plan && repetition < 1000 / CHAIN; repetition++) {
            for (i = 0; i < CHAIN; i++) {
                args.a = args.b = memory[i];
                args.d = memory[i + 1];
                failed += gemmepi_run_matmul(plan, &args, NULL) != GEMMEPI_OK;
                if (repetition == 0)
                    failed += gemmepi_synchronize(here->context, NULL) != GEMMEPI_OK;
            }
            failed += gemmepi_download(here->context, repetition ? again : first, memory[CHAIN], bytes,
                                       NULL) != GEMMEPI_OK;
            differ += repetition && memcmp(first, again, bytes) != 0;
            failed += gemmepi_download(here->context, repetition ? sums : first_sums, sums_memory,
                                       sizeof sums, NULL) != GEMMEPI_OK;
            differ += repetition && memcmp(first_sums, sums, sizeof sums) != 0;
        }
        CHECK(failed == 0 && differ == 0, "shape %d: %d runs failed, %d repetitions differ", which, failed,
              differ);
        drop_plan(plan);
        gemmepi_free(here->context, sums_memory);
        for (i = 0; i <= CHAIN; i++)
            gemmepi_free(here->context, memory[i]);
        free(first), free(again);
    }
}

/* Both halves of a gate's gradients, while the aux of the next box is already asked for. */
static void a_gates_gradients_have_the_same_bits_each_time(void) {
    enum { M = 1032, N = 1040, K = 520, A = M * K, B = K * N, AUX = 2 * M * N, SUMS = 2 * N };
    static const int cuts[] = {0, 1}; /* wide tiles have too few stages beside such boxes */
    static uint16_t numbers[A + B + AUX], first[AUX], again[AUX];
    static float first_sums[SUMS], sums[SUMS];
    void *memory, *d, *sums_memory;
    int i, which;
    for (i = 0; i < A + B + AUX; i++)
        numbers[i] = (uint16_t)(0x3d00 | (random_hash((uint64_t)i) & 0x80ff));
    CHECK(gemmepi_alloc(here->context, sizeof numbers, &memory) == GEMMEPI_OK &&
              gemmepi_alloc(here->context, sizeof first, &d) == GEMMEPI_OK &&
              gemmepi_alloc(here->context, sizeof sums, &sums_memory) == GEMMEPI_OK &&
              gemmepi_upload(here->context, memory, numbers, sizeof numbers, NULL) == GEMMEPI_OK,
          "%s", gemmepi_last_error());
    for (which = 0; which < (int)GPI__COUNT(cuts); which++) {
        cut c = cut_at(cuts[which]);
        gemmepi_matmul_desc desc;
        gemmepi_matmul_args args;
        gemmepi_plan *plan;
        int repetition, differ = 0, failed = 0;
        memset(&desc, 0, sizeof desc);
        memset(&args, 0, sizeof args);
        desc.m = M, desc.n = N, desc.k = K, desc.batch = 1;
        desc.a.dtype = GEMMEPI_BF16;
        desc.epilogue = GEMMEPI_SILU | GEMMEPI_GATED | BACKWARD;
        desc.bias_grad.dtype = GEMMEPI_F32;
        args.a = memory;
        args.b = (uint16_t *)memory + A;
        args.aux = (uint16_t *)memory + A + B;
        args.d = d;
        args.bias_grad = sums_memory;
        plan = plan_as(&desc, &c, 1, 16);
        CHECK(plan && gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "shape %d: %s", cuts[which],
              gemmepi_last_error());
        for (repetition = 0; plan && repetition < 1000; repetition++) {
            failed += gemmepi_run_matmul(plan, &args, NULL) != GEMMEPI_OK;
            if (repetition % 4)
                continue;
            failed += gemmepi_download(here->context, repetition ? again : first, d, sizeof first, NULL) !=
                      GEMMEPI_OK;
            failed += gemmepi_download(here->context, repetition ? sums : first_sums, sums_memory,
                                       sizeof sums, NULL) != GEMMEPI_OK;
            differ +=
                repetition && (memcmp(first, again, sizeof first) || memcmp(first_sums, sums, sizeof sums));
        }
        CHECK(failed == 0 && differ == 0, "shape %d: %d runs failed, %d repetitions differ", cuts[which],
              failed, differ);
        drop_plan(plan);
    }
    gemmepi_free(here->context, memory), gemmepi_free(here->context, d),
        gemmepi_free(here->context, sums_memory);
}

int main(int argc, char **argv) {
    const char *name = getenv("GEMMEPI_TEST_DEVICE");
    int is_number = name && name[0] >= '0' && name[0] <= '9';
    if (argc > 1)
        sizes = atoi(argv[1]);
    if (argc > 2)
        only = atoi(argv[2]) % CUTS;
    if (argc > 3)
        kernels_taken = atoi(argv[3]);
    if ((name && !is_number) ||
        !test_device_open(&device, GEMMEPI_DEVICE(is_number ? atoi(name) : 0), 1u << GEMMEPI_ROUTE_FUSED)) {
        printf("skip fused: there is no GPU\n");
        test_skipped++;
        return test_finish();
    }
    take_for_other_chip(&device);
    if (!device.has_fused && (device.is_host || only < FUSED_CUTS)) {
        printf(
            "skip fused: the GPU is not of compute capability 9.0, or with a number of a shape of other kernels 7.5\n");
        test_device_close(&device);
        test_skipped++;
        return test_finish();
    }
    for (shape_here = 0; shape_here < CUTS; shape_here++)
        if (only < 0 || only == shape_here)
            RUN(the_shape_is_within_the_bound);
    if (only < 0 || only == FIRST_SMALL)
        RUN(special_values_stay_in_their_rows_and_columns);
    if (only < 0)
        RUN(gradients_hold_wherever_aux_lies);
    if (only < 0)
        RUN(narrow_rows_of_parts_are_within_the_bound);
    if (only < 0)
        RUN(large_products_are_exact);
    if (only < 0)
        RUN(a_thousand_repetitions_have_the_same_bits);
    if (only < 0)
        RUN(a_gates_gradients_have_the_same_bits_each_time);
    test_device_close(&device);
    return test_finish();
}
