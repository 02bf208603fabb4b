/* The models by which a route is chosen: on the fake GPU of fake_cuda.h. */
#include "fake_program.h"

/* >>what was measured */

/* The model against an H200: the times of the route fused there, in microseconds, which clock and power move by some 5 %. */
static void estimates_are_near_what_was_measured(void) {
    static const struct {
        int64_t m, n, k;
        gemmepi_epilogue epilogue;
        double microseconds;
    } rows[] = {
        {8192, 3072, 768, GEMMEPI_BIAS, 54.5},
        {8192, 3072, 768, GEMMEPI_BIAS | GEMMEPI_SILU, 58},
        {8192, 3072, 768, GEMMEPI_BIAS | GEMMEPI_GELU_ERF, 62.5},
        {8192, 3072, 768, GEMMEPI_BIAS | GEMMEPI_SILU | GEMMEPI_AUX, 65},
        {8192, 3072, 768, GEMMEPI_BACKWARD | GEMMEPI_SILU, 70.2},
        {8192, 3072, 768, GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_SILU, 79.1},
        {8192, 3072, 768, GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_GELU_TANH, 87.4},
        {8192, 3072, 768, GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_GELU_ERF, 88.2},
        {2048, 50304, 768, GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_GELU_TANH, 331},
        {8192, 768, 3072, GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_RELU, 60.5},
        {2048, 2048, 2048, GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_SILU, 32.3},
        {2048, 2048, 2048, GEMMEPI_BIAS | GEMMEPI_SILU, 27},
        {4096, 4096, 4096, GEMMEPI_BIAS | GEMMEPI_SILU, 183},
    };
    static gemmepi_context h200;
    size_t i;
    h200.arch = 90, h200.multiprocessors = 132;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        gemmepi_matmul_desc desc;
        gpi__problem problem;
        gpi__candidates candidates;
        double fused;
        memset(&desc, 0, sizeof desc);
        desc.m = rows[i].m, desc.n = rows[i].n, desc.k = rows[i].k, desc.batch = 1;
        desc.a.dtype = GEMMEPI_BF16;
        desc.epilogue = rows[i].epilogue;
        CHECK(gpi__normalise(&desc, GPI__DEFAULT_ALIGNMENT, &problem) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        gpi__enumerate(&h200, &problem, 1, &candidates);
        fused = estimate_of(&candidates, GEMMEPI_ROUTE_FUSED);
        CHECK(fabs(fused / rows[i].microseconds - 1) < 0.12, "row %d: %g us, not %g", (int)i, fused,
              rows[i].microseconds);
        CHECK(gpi__least(&candidates)->route == GEMMEPI_ROUTE_FUSED, "row %d takes another route", (int)i);
    }
}

/* dB of narrow layers on an H100: k in 128 parts by the kernel for Ampere, and by that for small products, which reads sectors of L2 for few of their
   numbers. */
static void a_long_k_of_few_rows_and_columns_is_in_parts_for_all_multiprocessors(void) {
    static const struct {
        int64_t columns, k;
        double sm80, small; /* 0: not measured */
    } rows[] = {{8, 1 << 20, 52.7, 170}, {16, 1 << 20, 54.1, 476}, {32, 1 << 20, 60.4, 0},
                {64, 1 << 20, 97.8, 0},  {8, 1 << 17, 12.5, 0},    {32, 1 << 17, 13.7, 0},
                {16, 1 << 16, 0, 35.7},  {64, 1 << 17, 14.5, 0}};
    static gemmepi_context h100;
    size_t i;
    int j;
    h100.arch = 90, h100.multiprocessors = 132;
    for (i = 0; i < GPI__COUNT(rows); i++) {
        gemmepi_matmul_desc desc;
        gpi__problem problem;
        gpi__candidates list;
        memset(&desc, 0, sizeof desc);
        desc.m = desc.n = rows[i].columns, desc.k = rows[i].k, desc.batch = 1;
        desc.a.dtype = GEMMEPI_F16, desc.a.transposed = 1;
        CHECK(gpi__normalise(&desc, GPI__DEFAULT_ALIGNMENT, &problem) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        gpi__enumerate(&h100, &problem, 1, &list);
        for (j = 0; j < list.count; j++) {
            const gpi__candidate *c = &list.list[j];
            const char *engine = c->route == GEMMEPI_ROUTE_FUSED ? gpi__engines[c->engine]->name : "";
            double us = c->microseconds;
            if (strcmp(engine, "sm80") == 0 && rows[i].sm80 > 0)
                CHECK(c->parts >= 96 && us < 1.6 * rows[i].sm80 && us > rows[i].sm80 / 1.2,
                      "row %d: %d parts, %g us", (int)i, c->parts, us);
            if (strcmp(engine, "small") == 0 && rows[i].small > 0)
                CHECK(us < 1.2 * rows[i].small && us > rows[i].small / 1.2, "row %d: small, %g us", (int)i,
                      us);
        }
    }
}

/* Of a product with such operands, by that route. */
static double estimate_for(gemmepi_route route, gemmepi_dtype dtype, gemmepi_compute compute,
                           gemmepi_epilogue epilogue, int layout, int64_t edge, int64_t n) {
    planned p = planned_begin(0, 0);
    double microseconds = 0;
    p.desc.a.dtype = dtype, p.desc.compute = compute, p.desc.epilogue = epilogue;
    p.desc.m = p.desc.k = edge, p.desc.n = n;
    p.desc.a.transposed = layout & 1, p.desc.b.transposed = layout >> 1;
    if (planned_plan(&p))
        microseconds = estimate_of(&matmul_of(p.plan)->candidates, route);
    planned_end(&p);
    return microseconds;
}

/* A call of cuBLASLt takes the host longer than a launch; its TF32 is slower for each operand that does not lie along k, all but
   strict F32 where lines of D are no whole units, and DRELU_BGRAD takes 7 us more. */
static void cublaslt_is_estimated_as_long_as_it_takes(void) {
    const gemmepi_epilogue drelu = GEMMEPI_RELU | GEMMEPI_BACKWARD;
    double of_layout[4], whole, odd, without, with;
    int layout, small, sums;
    for (small = 0; small < 2; small++) {
        planned p = planned_begin(0, 0);
        p.desc.epilogue = GEMMEPI_NONE, p.args.bias = NULL;
        p.desc.m = p.desc.n = small ? 128 : 4096, p.desc.k = small ? 64 : 2048;
        if (planned_plan(&p))
            CHECK(p.details.route == (small ? GEMMEPI_ROUTE_FUSED : GEMMEPI_ROUTE_LT), "small %d by %s",
                  small, p.details.route_name);
        planned_end(&p);
    }
    for (sums = 0; sums < 2; sums++) { /* tiles for three multiprocessors of four, and a k to divide */
        planned p = planned_begin(0, 0);
        p.desc.epilogue = sums ? GEMMEPI_BGRAD_B : GEMMEPI_NONE;
        p.args.bias = NULL, p.args.bias_grad = sums ? (void *)(uintptr_t)0x50000000 : NULL;
        p.desc.m = 768, p.desc.n = 3072, p.desc.k = 8192, p.desc.a.transposed = 1;
        if (planned_plan(&p))
            CHECK(p.details.route == (sums ? GEMMEPI_ROUTE_FUSED : GEMMEPI_ROUTE_LT), "sums %d by %s", sums,
                  p.details.route_name);
        planned_end(&p);
    }
    for (layout = 0; layout < 4; layout++)
        of_layout[layout] = estimate_for(GEMMEPI_ROUTE_SPLIT, GEMMEPI_F32, GEMMEPI_COMPUTE_TF32, GEMMEPI_SILU,
                                         layout, 2048, 2048);
    CHECK(of_layout[2] < of_layout[0] && of_layout[0] == of_layout[3] && of_layout[0] < of_layout[1],
          "%g %g %g %g", of_layout[0], of_layout[1], of_layout[2], of_layout[3]);
    whole =
        estimate_for(GEMMEPI_ROUTE_SPLIT, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SILU, 2, 2048, 2048);
    odd =
        estimate_for(GEMMEPI_ROUTE_SPLIT, GEMMEPI_BF16, GEMMEPI_COMPUTE_DEFAULT, GEMMEPI_SILU, 2, 2048, 2044);
    CHECK(odd > 2 * whole, "%g, with lines of 2044 %g", whole, odd);
    without = estimate_for(GEMMEPI_ROUTE_LT, GEMMEPI_F32, GEMMEPI_COMPUTE_F32, drelu, 0, 128, 128);
    with =
        estimate_for(GEMMEPI_ROUTE_LT, GEMMEPI_F32, GEMMEPI_COMPUTE_F32, drelu | GEMMEPI_BGRAD, 0, 128, 128);
    CHECK(without > 0 && with > without + 6, "%g, with the sums %g", without, with);
}

/* cuBLASLt reads the operand once more. */
static void a_product_that_sums_an_operand_goes_fused(void) {
    static gemmepi_context h200;
    gemmepi_matmul_desc desc;
    gpi__problem problem;
    gpi__candidates bare, summing;
    double fused[2], lt[2];
    h200.arch = 90, h200.multiprocessors = 132;
    memset(&desc, 0, sizeof desc);
    desc.m = desc.n = desc.k = 4096, desc.batch = 1;
    desc.a.dtype = GEMMEPI_BF16;
    desc.a.transposed = 1;
    CHECK(gpi__normalise(&desc, GPI__DEFAULT_ALIGNMENT, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gpi__enumerate(&h200, &problem, 1, &bare);
    desc.epilogue = GEMMEPI_BGRAD_B;
    CHECK(gpi__normalise(&desc, GPI__DEFAULT_ALIGNMENT, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gpi__enumerate(&h200, &problem, 1, &summing);
    fused[0] = estimate_of(&bare, GEMMEPI_ROUTE_FUSED), fused[1] = estimate_of(&summing, GEMMEPI_ROUTE_FUSED);
    lt[0] = estimate_of(&bare, GEMMEPI_ROUTE_LT), lt[1] = estimate_of(&summing, GEMMEPI_ROUTE_LT);
    CHECK(fused[1] == fused[0] && lt[1] > lt[0] + 10, "fused %g and %g us, lt %g and %g", fused[0], fused[1],
          lt[0], lt[1]);
    CHECK(gpi__least(&bare)->route == GEMMEPI_ROUTE_LT && gpi__least(&summing)->route == GEMMEPI_ROUTE_FUSED,
          "another route");
}

/* >>what must hold of any model */

static const struct { int arch, multiprocessors; } chips[] = {{80, 108}, {89, 128}, {90, 132}};

static const struct {
    gemmepi_dtype dtype;
    gemmepi_epilogue epilogue;
} kinds[] = {
    {GEMMEPI_BF16, GEMMEPI_NONE},
    {GEMMEPI_BF16, GEMMEPI_RELU | GEMMEPI_BIAS},
    {GEMMEPI_BF16, GEMMEPI_SILU | GEMMEPI_GATED},
    {GEMMEPI_F16, GEMMEPI_SILU | GEMMEPI_BACKWARD | GEMMEPI_BGRAD},
    {GEMMEPI_F32, GEMMEPI_BGRAD_A},
    {GEMMEPI_F32, GEMMEPI_GELU_TANH | GEMMEPI_BIAS | GEMMEPI_AUX},
};

enum { CHIPS = (int)GPI__COUNT(chips), KINDS = (int)GPI__COUNT(kinds), LAYOUTS = 4 };

static gemmepi_matmul_desc desc_of(int kind, int layout, int64_t m, int64_t n, int64_t k) {
    gemmepi_matmul_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = m, desc.n = n, desc.k = k;
    desc.a.dtype = kinds[kind].dtype;
    desc.epilogue = kinds[kind].epilogue;
    desc.a.transposed = layout & 1, desc.b.transposed = layout >> 1;
    return desc;
}

/* Of a route's best candidate, in microseconds. */
typedef struct {
    double fused, lt, split;
} route_times;

static route_times estimates_on(int chip, const gemmepi_matmul_desc *desc) {
    static gemmepi_context context;
    gpi__problem problem;
    gpi__candidates candidates;
    route_times times;
    context.arch = chips[chip].arch, context.multiprocessors = chips[chip].multiprocessors;
    CHECK(gpi__normalise(desc, GPI__DEFAULT_ALIGNMENT, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
    gpi__enumerate(&context, &problem, 1, &candidates);
    times.fused = estimate_of(&candidates, GEMMEPI_ROUTE_FUSED);
    times.lt = estimate_of(&candidates, GEMMEPI_ROUTE_LT);
    times.split = estimate_of(&candidates, GEMMEPI_ROUTE_SPLIT);
    return times;
}

/* Lines of all of these are whole units of 16 bytes: there a larger product may be the faster one. */
static const int64_t even_sizes[] = {64, 256, 1000, 3072, 65536, (int64_t)1 << 24};
enum {
    EVEN_SIZES = (int)GPI__COUNT(even_sizes),
    ALL_EVEN = CHIPS * KINDS * LAYOUTS * EVEN_SIZES * EVEN_SIZES
};

/* The so-manyth choice of a chip, a kind, a layout, m and n. */
static gemmepi_matmul_desc even_case(int number, int64_t k, int *chip) {
    int m = number % EVEN_SIZES, n = number / EVEN_SIZES % EVEN_SIZES,
        rest = number / EVEN_SIZES / EVEN_SIZES;
    *chip = rest / LAYOUTS / KINDS;
    return desc_of(rest / LAYOUTS % KINDS, rest % LAYOUTS, even_sizes[m], even_sizes[n], k);
}

static void a_longer_k_never_takes_less(void) {
    int i, chip;
    for (i = 0; i < ALL_EVEN; i++) {
        route_times last = {0, 0, 0};
        int64_t k;
        for (k = 64; k < (int64_t)1 << 30; k *= 2) {
            gemmepi_matmul_desc desc = even_case(i, k, &chip);
            route_times now = estimates_on(chip, &desc);
            CHECK(now.fused >= 0.999 * last.fused && now.lt >= 0.999 * last.lt &&
                      now.split >= 0.999 * last.split,
                  "case %d, k %d: %g, %g, %g us after %g, %g, %g", i, (int)k, now.fused, now.lt, now.split,
                  last.fused, last.lt, last.split);
            last = now;
        }
        CHECK(last.fused > 1e4 && last.split > 1e4, "case %d: %g and %g us for 2^29 terms", i, last.fused,
              last.split);
    }
}

static void a_batch_takes_no_less_than_one_item_and_no_more_than_all_by_themselves(void) {
    int i, chip;
    for (i = 0; i < ALL_EVEN; i++) {
        gemmepi_matmul_desc desc = even_case(i, 512, &chip);
        route_times one = estimates_on(chip, &desc), four;
        if (desc.m * desc.n >= (int64_t)1 << 38) /* TMA takes strides below 2^40 bytes */
            continue;
        desc.batch = 4;
        desc.a.batch_stride = desc.m * desc.k, desc.b.batch_stride = desc.k * desc.n;
        desc.d.batch_stride = desc.aux.batch_stride = desc.m * desc.n;
        desc.bias_grad.batch_stride = desc.epilogue & GEMMEPI_BGRAD_A ? desc.m : desc.n;
        four = estimates_on(chip, &desc);
        CHECK(four.fused >= 0.999 * one.fused && four.fused <= 4.001 * one.fused,
              "case %d: fused %g us, four %g", i, one.fused, four.fused);
        CHECK(four.split >= 0.999 * one.split && four.split <= 4.001 * one.split,
              "case %d: split %g us, four %g", i, one.split, four.split);
    }
}

/* The same memory is a row-major product with the operands exchanged: the same kernels run. */
static void a_column_major_product_takes_as_long_as_the_row_major_one_of_the_same_memory(void) {
    int i, chip;
    for (i = 0; i < ALL_EVEN; i++) {
        gemmepi_matmul_desc desc = even_case(i, 512, &chip), other = desc;
        route_times rows, columns;
        rows = estimates_on(chip, &desc);
        other.order = GEMMEPI_COLUMN_MAJOR;
        other.m = desc.n, other.n = desc.m;
        other.a.transposed = desc.b.transposed, other.b.transposed = desc.a.transposed;
        other.epilogue ^= desc.epilogue & GEMMEPI_BGRAD_A ? GEMMEPI_BGRAD_A | GEMMEPI_BGRAD_B : 0;
        columns = estimates_on(chip, &other);
        CHECK(rows.fused == columns.fused && rows.lt == columns.lt && rows.split == columns.split,
              "case %d: %g, %g, %g us and %g, %g, %g", i, rows.fused, rows.lt, rows.split, columns.fused,
              columns.lt, columns.split);
    }
}

/* D^T = B^T A^T, row-major both, of a bare product: tiles are not square, so that one may be cut up better. */
static void a_product_and_its_transpose_take_the_same_but_for_a_factor_of_2(void) {
    int chip, layout, i, j;
    for (chip = 0; chip < CHIPS; chip++)
        for (layout = 0; layout < LAYOUTS; layout++)
            for (i = 0; i < EVEN_SIZES; i++)
                for (j = 0; j < EVEN_SIZES; j++) {
                    int back = ((layout >> 1) ^ 1) | ((layout & 1) ^ 1) << 1;
                    gemmepi_matmul_desc desc = desc_of(0, layout, even_sizes[i], even_sizes[j], 1024);
                    gemmepi_matmul_desc other = desc_of(0, back, even_sizes[j], even_sizes[i], 1024);
                    double one = estimates_on(chip, &desc).fused, two = estimates_on(chip, &other).fused;
                    CHECK(one <= 2 * two && two <= 2 * one, "arch %d, layout %d, %d x %d: %g and %g us",
                          chips[chip].arch, layout, (int)desc.m, (int)desc.n, one, two);
                }
}

/* 0 says that a route does not run the problem. */
static void every_estimate_is_a_time_up_to_2_to_the_40(void) {
    static const int64_t sizes[] = {2, 14, 100, 1 << 15, 1 << 29, (int64_t)1 << 30, (int64_t)1 << 40};
    enum { SIZES = (int)GPI__COUNT(sizes) };
    int i;
    for (i = 0; i < CHIPS * KINDS * LAYOUTS * SIZES * SIZES * SIZES; i++) {
        int rest = i / SIZES / SIZES / SIZES, chip = rest / LAYOUTS / KINDS;
        int64_t m = sizes[i % SIZES], n = sizes[i / SIZES % SIZES], k = sizes[i / SIZES / SIZES % SIZES];
        double most = ldexp(1, 55), at_least = m < 1 << 30 && n < 1 << 30 && k < 1 << 30 ? 1 : 0;
        gemmepi_matmul_desc desc = desc_of(rest / LAYOUTS % KINDS, rest % LAYOUTS, m, n, k);
        route_times is;
        if ((double)m * (double)n > most || (double)m * (double)k > most || (double)n * (double)k > most)
            continue; /* refused */
        is = estimates_on(chip, &desc);
        CHECK(is.fused >= at_least && is.split >= at_least && is.lt >= 0, "%d x %d x %d: %g, %g, %g us",
              (int)m, (int)n, (int)k, is.fused, is.lt, is.split);
        CHECK(isfinite(is.fused) && isfinite(is.split) && isfinite(is.lt), "%d x %d x %d: %g, %g, %g us",
              (int)m, (int)n, (int)k, is.fused, is.lt, is.split);
    }
}

int main(void) {
    keep_libraries_open();
    RUN(estimates_are_near_what_was_measured);
    RUN(a_long_k_of_few_rows_and_columns_is_in_parts_for_all_multiprocessors);
    RUN(cublaslt_is_estimated_as_long_as_it_takes);
    RUN(a_product_that_sums_an_operand_goes_fused);
    RUN(a_longer_k_never_takes_less);
    RUN(a_batch_takes_no_less_than_one_item_and_no_more_than_all_by_themselves);
    RUN(a_column_major_product_takes_as_long_as_the_row_major_one_of_the_same_memory);
    RUN(a_product_and_its_transpose_take_the_same_but_for_a_factor_of_2);
    RUN(every_estimate_is_a_time_up_to_2_to_the_40);
    return test_finish();
}
