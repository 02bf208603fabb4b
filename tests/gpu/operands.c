/* operands [all]: operands of the epilogue that no desc has, inside the library. Products with a factor for each row by every candidate
   that can run them, against the same in double; with `all` in every shape of every engine. On the host and, if there is one, on the
   GPU that GEMMEPI_TEST_DEVICE numbers. */
#include "../products/problem.h"
#include "row_factor.h"

static test_device *here;
static int takes_all;

/* >>a problem with the factor, and its tensors one behind the other in a block */

typedef struct product_case {
    gemmepi_dtype dtype, d;
    gemmepi_epilogue epilogue;
    int64_t n;
    int b_transposed, shares_factor; /* by the items of the batch */
    gemmepi_compute compute;
} product_case;

#define BACKWARD (GEMMEPI_BACKWARD | GEMMEPI_BGRAD)
static const product_case cases[] = {
    {GEMMEPI_BF16, 0, GEMMEPI_SILU | GEMMEPI_BIAS, 208, 0, 0, 0},
    {GEMMEPI_F16, GEMMEPI_F32, GEMMEPI_NONE, 77, 1, 1, 0},
    {GEMMEPI_BF16, 0, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_BIAS | GEMMEPI_RESIDUAL, 208, 1, 0, 0},
    {GEMMEPI_BF16, 0, GEMMEPI_GELU_TANH | BACKWARD, 208, 0, 0, 0},
    {GEMMEPI_F16, 0, GEMMEPI_SILU | GEMMEPI_GATED | BACKWARD, 104, 1, 1, 0},
    {GEMMEPI_BF16, 0, GEMMEPI_RELU | GEMMEPI_AUX | GEMMEPI_RESIDUAL, 130, 1, 0, 0},
    {GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_NONE | GEMMEPI_BIAS, 208, 1, 0, 0},
    {GEMMEPI_F32, 0, GEMMEPI_SILU | GEMMEPI_RESIDUAL, 96, 1, 0, GEMMEPI_COMPUTE_TF32},
    {GEMMEPI_F32, 0, GEMMEPI_GELU_ERF | GEMMEPI_AUX, 96, 0, 0, 0},
    {GEMMEPI_F64, 0, GEMMEPI_SILU, 50, 0, 0, 0},
    {GEMMEPI_E4M3, GEMMEPI_BF16, GEMMEPI_NONE, 96, 1, 0, 0},
};
enum { CASES = GPI__COUNT(cases), M = 150, K = 72, BATCH = 2 };

static gemmepi_matmul_desc desc_of(const product_case *c) {
    gemmepi_matmul_desc desc;
    int64_t columns = gpi__result_columns(c->epilogue, c->n);
    memset(&desc, 0, sizeof desc);
    desc.m = M, desc.n = c->n, desc.k = K, desc.batch = BATCH;
    desc.a.dtype = c->dtype, desc.d.dtype = c->d;
    desc.compute = c->compute;
    desc.b.transposed = c->b_transposed;
    desc.epilogue = c->epilogue;
    desc.a.batch_stride = M * K, desc.b.batch_stride = K * c->n;
    desc.d.batch_stride = desc.residual.batch_stride = M * columns;
    desc.aux.batch_stride = c->epilogue & GEMMEPI_BACKWARD ? M * gpi__aux_columns(c->epilogue, c->n)
                                                           : M * ((c->n + 127) / 128 * 128);
    return desc;
}

static gpi__problem problem_of(const product_case *c) {
    gemmepi_matmul_desc desc = desc_of(c);
    gpi__problem problem;
    CHECK(gpi__normalise(&desc, 16, &problem) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(take_row_factor(&problem, c->shares_factor ? 0 : M + 3) == GEMMEPI_OK, "%s", gemmepi_last_error());
    return problem;
}

/* Small numbers of which all sums are exact: the factors are not. */
static double number_at(int operand, int64_t i) {
    uint64_t drawn = random_hash((uint64_t)(operand * 1000003 + i));
    if (operand == GPI__ROW_FACTOR)
        return drawn % 16 == 0 ? 0 : (double)(drawn % 2001) / 777 - 1.3;
    return operand == GPI__A ? (double)(drawn % 3) - 1 : (double)(drawn % 7) / 4 - 0.75;
}

/* C is not given. */
static size_t lay_out(const gpi__problem *problem, char *block, gpi__arguments *arguments) {
    size_t at = 0;
    int i;
    memset(arguments, 0, sizeof *arguments);
    arguments->alpha = 1;
    for (i = 0; i < problem->count; i++) {
        int operand = problem->list[i];
        if (operand == GPI__C)
            continue;
        arguments->pointers[operand] = block + at;
        at += ((size_t)problem->views[operand].bytes + 511) / 256 * 256;
    }
    return at;
}

static void fill_tensors(const gpi__problem *problem, const gpi__arguments *arguments) {
    int i;
    for (i = 0; i < problem->count; i++) {
        int operand = problem->list[i];
        const gpi__view *view = &problem->views[operand];
        int64_t elements = view->bits == 1 ? 0 : view->bytes * 8 / view->bits, e;
        for (e = 0; e < elements && arguments->pointers[operand]; e++) {
            double number = number_at(operand, e);
            gpi__store_run(view->dtype, arguments->pointers[operand], e, 1, &number);
        }
    }
}

/* Of the rounding of a type, and of short forms of activations, which are hidden by it. */
static double units_of(int dtype) {
    static const double units[] = {0, 4e-6, 1e-13, 1.0 / 1024, 1.0 / 128, 1.0 / 8, 1.0 / 4};
    return units[dtype];
}

/* Elements of all outputs that differ by more. */
static int count_wrong(const gpi__problem *problem, const gpi__arguments *got,
                       const gpi__arguments *expected) {
    int i, wrong = 0;
    for (i = 0; i < problem->outputs; i++) {
        int operand = problem->list[i];
        const gpi__view *view = &problem->views[operand];
        int64_t e;
        if (view->bits == 1) {
            wrong += memcmp(got->pointers[operand], expected->pointers[operand], (size_t)view->bytes) != 0;
            continue;
        }
        for (e = 0; e < view->bytes * 8 / view->bits; e++) {
            double x, y, bound = operand == GPI__BIAS_GRAD ? 0.02 : 1e-5;
            gpi__load_run(view->dtype, got->pointers[operand], e, 1, 1, &x);
            gpi__load_run(view->dtype, expected->pointers[operand], e, 1, 1, &y);
            wrong += !(fabs(x - y) <= units_of(view->dtype) * fabs(y) + bound);
        }
    }
    return wrong;
}

/* >>the host: with the factor against without it */

static void the_host_multiplies_what_comes_before_the_residual(void) {
    static const product_case with = {GEMMEPI_F32, 0, GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_RESIDUAL, 48, 0,
                                      0,           0};
    enum { COLUMNS = 24 };
    product_case without = with;
    gpi__problem problem = problem_of(&with), bare;
    gemmepi_matmul_desc desc;
    gpi__arguments arguments, others;
    char *block = (char *)calloc(1, lay_out(&problem, NULL, &arguments));
    float *plain = (float *)calloc(BATCH * M * COLUMNS, sizeof *plain);
    int64_t i;
    int wrong = 0;
    without.epilogue &= ~(uint64_t)GEMMEPI_RESIDUAL;
    desc = desc_of(&without);
    lay_out(&problem, block, &arguments);
    fill_tensors(&problem, &arguments);
    CHECK(gpi__normalise(&desc, 16, &bare) == GEMMEPI_OK, "%s", gemmepi_last_error());
    others = arguments;
    others.pointers[GPI__D] = plain;
    gpi__host_flags(&problem, &arguments, NULL);
    gpi__host_flags(&bare, &others, NULL);
    for (i = 0; i < BATCH * M * COLUMNS; i++) {
        int64_t item = i / (M * COLUMNS), row = i / COLUMNS % M;
        double expected = plain[i] * (double)(float)number_at(GPI__ROW_FACTOR, item * (M + 3) + row) +
                          number_at(GPI__RESIDUAL, i);
        wrong += !(fabs(((const float *)arguments.pointers[GPI__D])[i] - expected) <=
                   2e-7 * (fabs(expected) + fabs(number_at(GPI__RESIDUAL, i))));
    }
    CHECK(wrong == 0, "%d of %d are wrong", wrong, BATCH * M * COLUMNS);
    free(block), free(plain);
}

/* >>checks */

static gemmepi_status check_arguments(const gpi__problem *problem, gpi__arguments *arguments) {
    gpi__regions regions;
    gemmepi_status status = gpi__check_arguments(problem, arguments, &regions);
    return status ? status : gpi__check_regions(&regions);
}

static void pointers_to_factors_are_checked_like_others(void) {
    gpi__problem problem = problem_of(&cases[0]);
    gpi__arguments arguments, bad;
    char *block = (char *)malloc(lay_out(&problem, NULL, &arguments) + 256);
    lay_out(&problem, block + (256 - (uintptr_t)block % 256), &arguments);
    CHECK(check_arguments(&problem, &arguments) == GEMMEPI_OK, "%s", gemmepi_last_error());
    bad = arguments;
    bad.pointers[GPI__ROW_FACTOR] = NULL;
    CHECK(check_arguments(&problem, &bad) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "args.row_factor is NULL"),
          "%s", gemmepi_last_error());
    bad.pointers[GPI__ROW_FACTOR] = (char *)arguments.pointers[GPI__ROW_FACTOR] + 2;
    CHECK(check_arguments(&problem, &bad) == GEMMEPI_MISALIGNED &&
              strstr(gemmepi_last_error(), "args.row_factor"),
          "%s", gemmepi_last_error());
    bad.pointers[GPI__ROW_FACTOR] = (char *)arguments.pointers[GPI__D] + 64;
    CHECK(check_arguments(&problem, &bad) == GEMMEPI_INVALID_ARGUMENT &&
              strstr(gemmepi_last_error(), "args.d") &&
              strstr(gemmepi_last_error(), "overlaps args.row_factor"),
          "%s", gemmepi_last_error());
    free(block);
}

/* >>a GPU */

static int runs, engines_seen;

/* The plan built as the candidate, run, against the host. */
static void candidate_holds(const gpi__problem *problem, const gpi__candidates *candidates,
                            const gpi__candidate *candidate, int which) {
    gemmepi_context *context = here->context;
    gpi__matmul_plan *plan = gpi__new_plan(context, problem);
    gpi__space space;
    gpi__arguments expected, got, on_device;
    gpi__entry entry;
    size_t size = lay_out(problem, NULL, &expected);
    char *host = (char *)calloc(2, size), said[4096];
    void *device = NULL;
    gemmepi_status status;
    int wrong;
    plan->candidates = *candidates; /* explain shows them */
    memset(&space, 0, sizeof space);
    lay_out(problem, host, &expected);
    lay_out(problem, host + size, &got);
    fill_tensors(problem, &expected);
    memcpy(host + size, host, size);
    status = gemmepi_alloc(context, size, &device);
    if (!status)
        status = gemmepi_upload(context, device, host, size, NULL);
    CHECK(status == GEMMEPI_OK && !gpi__enter_relaxed(context, &entry), "%s", gemmepi_last_error());
    gpi__lock(&context->build_lock);
    status = gpi__build_by(plan, candidate->route, candidate);
    gpi__unlock(&context->build_lock);
    gpi__leave_relaxed(context, &entry);
    if (status != GEMMEPI_UNSUPPORTED) {
        CHECK(status == GEMMEPI_OK && gemmepi_plan_prepare(&plan->base, NULL) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        gemmepi_plan_explain(&plan->base, said, sizeof said);
        CHECK(strstr(said, "row_factor F32, 1 x 150 stored") != NULL, "%s", said);
        lay_out(problem, (char *)device, &on_device);
        status = check_arguments(problem, &on_device);
        if (!status)
            status = gpi__enter(context, &entry);
        if (!status) {
            status = gpi__run_on_device(plan, &space, &on_device);
            gpi__leave(context, &entry);
        }
        CHECK(status == GEMMEPI_OK &&
                  gemmepi_download(context, host + size, device, size, NULL) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        gpi__host_flags(problem, &expected, NULL);
        wrong = count_wrong(problem, &got, &expected);
        CHECK(wrong == 0, "case %d, %s, engine %d, shape %d: %d elements are wrong", which,
              gpi__route_names[plan->route->id], candidate->engine, candidate->shape, wrong);
        runs++;
        engines_seen |= candidate->route == GEMMEPI_ROUTE_FUSED   ? 1 << candidate->engine
                        : candidate->route == GEMMEPI_ROUTE_SPLIT ? 16
                                                                  : 32;
    }
    gemmepi_free(context, device);
    gemmepi_plan_destroy(&plan->base);
    free(host);
}

static int has_shape(const gpi__problem *problem, const gpi__candidate *candidate) {
    if (candidate->engine == 0)
        return candidate->shape < (int)GPI__COUNT(gpi__sm90_shapes) &&
               gpi__shape_accepts(problem, &gpi__sm90_shapes[candidate->shape], candidate->unit_alpha);
    if (candidate->engine == 2)
        return candidate->shape < (int)GPI__COUNT(gpi__small_shapes) &&
               gpi__small_shape_accepts(problem, &gpi__small_shapes[candidate->shape], here->context->arch);
    return candidate->shape < (int)GPI__COUNT(gpi__sm80_shapes) &&
           gpi__sm80_shape_accepts(problem, &gpi__sm80_shapes[candidate->shape], here->context->arch);
}

static void each_row_has_its_factor(void) {
    int which, i, most = (int)(GPI__COUNT(gpi__sm90_shapes) + GPI__COUNT(gpi__sm80_shapes));
    for (which = 0; which < CASES; which++) {
        gpi__problem problem = problem_of(&cases[which]);
        gpi__candidates candidates;
        memset(&candidates, 0, sizeof candidates);
        gpi__enumerate(here->context, &problem, 1, &candidates);
        for (i = 0; i < candidates.count; i++) {
            gpi__candidate candidate = candidates.list[i];
            int is_fused = candidate.route == GEMMEPI_ROUTE_FUSED;
            CHECK(candidate.route != GEMMEPI_ROUTE_LT || candidate.refusal, "cuBLASLt takes it");
            if (candidate.refusal)
                continue;
            candidate_holds(&problem, &candidates, &candidate, which);
            if (!takes_all || !is_fused || candidate.copies[0] || candidate.copies[1])
                continue;
            for (candidate.shape = 0; candidate.shape < most; candidate.shape++)
                if (candidate.shape != candidates.list[i].shape && has_shape(&problem, &candidate))
                    candidate_holds(&problem, &candidates, &candidate, which);
        }
    }
    CHECK(runs >= CASES, "%d runs", runs);
    printf("   %d runs; engines and routes as bits: %x\n", runs, (unsigned)engines_seen);
}

int main(int argc, char **argv) {
    test_device devices[2];
    int count = test_devices_open(devices), i;
    takes_all = argc > 1 && strcmp(argv[1], "all") == 0;
    RUN(the_host_multiplies_what_comes_before_the_residual);
    RUN(pointers_to_factors_are_checked_like_others);
    for (i = 0; i < count; i++) {
        here = &devices[i];
        if (!here->is_host)
            RUN(each_row_has_its_factor);
        test_device_close(here);
    }
    return test_finish();
}
