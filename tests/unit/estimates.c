/* The models by which a route is chosen: on the fake GPU of fake_cuda.h. */
#include "fake_program.h"

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
    for (i = 0; i < GEMMEPI__COUNT(rows); i++) {
        gemmepi_matmul_desc desc;
        gemmepi__problem problem;
        gemmepi__candidates candidates;
        double fused;
        memset(&desc, 0, sizeof desc);
        desc.m = rows[i].m, desc.n = rows[i].n, desc.k = rows[i].k, desc.batch = 1;
        desc.a.dtype = GEMMEPI_BF16;
        desc.epilogue = rows[i].epilogue;
        CHECK(gemmepi__normalise(&desc, GEMMEPI__DEFAULT_ALIGNMENT, &problem) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        gemmepi__enumerate(&h200, &problem, 1, &candidates);
        fused = estimate_of(&candidates, GEMMEPI_ROUTE_FUSED);
        CHECK(fabs(fused / rows[i].microseconds - 1) < 0.12, "row %d: %g us, not %g", (int)i, fused,
              rows[i].microseconds);
        CHECK(gemmepi__least(&candidates)->route == GEMMEPI_ROUTE_FUSED, "row %d takes another route",
              (int)i);
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

int main(void) {
    keep_libraries_open();
    RUN(estimates_are_near_what_was_measured);
    RUN(cublaslt_is_estimated_as_long_as_it_takes);
    return test_finish();
}
