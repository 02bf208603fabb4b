/* planning_fuzz [count] [first seed]: random products, layers and element-wise operations, with sizes and strides up to 2^62,
   planned and run on the fake GPU of fake_cuda.h. Each is refused with a sentence or accepted, in bounded time, and no launch
   is larger than a grid. Memory is addresses alone: nothing is there, and nothing may be touched.
   A failure prints its seed: `planning_fuzz 1 SEED` repeats it. */
#include "fake_cuda.h"

#include <time.h>

#define MOST_MILLISECONDS 100 /* of a case: planning, preparing and running; compiling is not counted */

static uint64_t first = 1, count_of_cases = 3000;

/* >>random numbers: Knuth's MMIX generator */

static uint64_t state;

static uint64_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 31;
}
static int below(int n) {
    return (int)(next() % (uint64_t)n);
}
static int one_in(int n) {
    return below(n) == 0;
}

/* An extent: small ones, and powers of two with their neighbours, up to 2^62. */
static int64_t extent(void) {
    int64_t power;
    switch (below(8)) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
    case 3:
        return 1 + below(300);
    default:
        power = (int64_t)1 << (one_in(8) ? below(63) : below(40));
        return power + below(3) - (power > 1);
    }
}

/* Of four extents so that they fit 2^56 together, most times: each takes what the others leave. */
static void extents(int64_t *out, int n) {
    int64_t left = (int64_t)1 << 56;
    int i, at = below(n);
    for (i = 0; i < n; i++, at = (at + 1) % n) {
        out[at] = extent();
        if (out[at] > left && !one_in(20))
            out[at] = 1 + below(2);
        if (out[at] > 1)
            left /= out[at];
    }
}

static int64_t stride_for(int64_t dense) {
    switch (below(6)) {
    case 0:
        return 0;
    case 1:
        return dense;
    case 2:
        return dense < INT64_MAX - 100 ? dense + below(100) : dense;
    case 3:
        return extent();
    default:
        return dense < INT64_MAX / 8 ? (dense + 7) / 8 * 8 : dense;
    }
}

static int64_t times(int64_t x, int64_t y) {
    return y && x > INT64_MAX / 16 / y ? INT64_MAX / 16 : x * y;
}

static const gemmepi_dtype dtypes[] = {GEMMEPI_F32,  GEMMEPI_F64,  GEMMEPI_F16, GEMMEPI_BF16,
                                       GEMMEPI_E4M3, GEMMEPI_E5M2, GEMMEPI_I8};

static gemmepi_dtype any_dtype(void) {
    return one_in(2) ? GEMMEPI_BF16 : dtypes[below((int)GEMMEPI__COUNT(dtypes))];
}

/* >>one case */

static gemmepi_context *context;
static unsigned long long seed_here;
static long planned, ran;

static void check_status(gemmepi_status status, const char *what) {
    CHECK(strcmp(gemmepi_status_name(status), "unknown status") != 0, "seed %llu: %s is %d", seed_here, what,
          (int)status);
    CHECK(status == GEMMEPI_OK || gemmepi_last_error()[0] != 0, "seed %llu: %s has no sentence", seed_here,
          what);
    CHECK(status != GEMMEPI_CUDA_ERROR, "seed %llu: %s: %s", seed_here, what, gemmepi_last_error());
}

/* Tensors far apart, now and then on top of each other. */
static char *address(int i) {
    uint64_t at = ((uint64_t)1 << 40) + ((uint64_t)i << 59);
    if (one_in(12))
        at = ((uint64_t)1 << 40) + ((uint64_t)below(2) << 59) + 256 * next() % ((uint64_t)1 << below(58));
    return (char *)(uintptr_t)at;
}

static gemmepi_matrix matrix(gemmepi_dtype dtype, int64_t rows, int64_t columns, int may_turn) {
    gemmepi_matrix m;
    int64_t line = columns;
    memset(&m, 0, sizeof m);
    m.dtype = dtype;
    m.transposed = may_turn && one_in(2);
    if (m.transposed)
        line = rows;
    m.ld = one_in(2) ? 0 : stride_for(line);
    m.batch_stride = stride_for(times(m.ld ? m.ld : line, m.transposed ? columns : rows));
    return m;
}

static void choose_scale(gemmepi_scale *scale, int may_vary) {
    if (one_in(3))
        scale->mode = (gemmepi_scale_mode)(may_vary ? below(5) : below(2));
    if (scale->mode && one_in(3))
        scale->batch_stride = extent();
}

static gemmepi_epilogue any_epilogue(void) {
    static const gemmepi_epilogue flags[] = {
        0,
        GEMMEPI_BIAS,
        GEMMEPI_BGRAD,
        GEMMEPI_BGRAD_A,
        GEMMEPI_BGRAD_B,
        GEMMEPI_BIAS | GEMMEPI_AUX,
        GEMMEPI_BACKWARD,
        GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
        GEMMEPI_GATED,
        GEMMEPI_GATED | GEMMEPI_BACKWARD,
        GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_BGRAD,
        GEMMEPI_GATED | GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM | GEMMEPI_BGRAD,
        GEMMEPI_BACKWARD | GEMMEPI_UPSTREAM,
        GEMMEPI_RESIDUAL,
        GEMMEPI_RESIDUAL | GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD};
    gemmepi_epilogue epilogue = flags[below((int)GEMMEPI__COUNT(flags))];
    if (!(epilogue & GEMMEPI_BGRAD) || epilogue & GEMMEPI_BACKWARD)
        epilogue |= (gemmepi_epilogue)(one_in(2) ? 0 : below(4));
    return epilogue;
}

static gemmepi_matmul_desc any_product(void) {
    gemmepi_matmul_desc desc;
    gemmepi_dtype a = any_dtype(), b = one_in(4) && a != GEMMEPI_F64 ? any_dtype() : a;
    int64_t e[4];
    memset(&desc, 0, sizeof desc);
    extents(e, 4);
    desc.m = e[0], desc.n = e[1], desc.k = e[2], desc.batch = one_in(2) ? 1 : e[3];
    desc.order = one_in(3) ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    desc.epilogue = any_epilogue();
    if (desc.epilogue & GEMMEPI_GATED)
        desc.n &= ~(int64_t)1, desc.m &= ~(int64_t)1;
    desc.a = matrix(a, desc.m, desc.k, desc.order == GEMMEPI_ROW_MAJOR);
    desc.b = matrix(b, desc.k, desc.n, desc.order == GEMMEPI_ROW_MAJOR);
    choose_scale(&desc.a.scale, 1);
    choose_scale(&desc.b.scale, 1);
    desc.d.dtype = a == GEMMEPI_F64 ? a : one_in(2) ? GEMMEPI_DTYPE_DEFAULT : any_dtype();
    desc.d.batch_stride = times(desc.m, times(desc.n, 2));
    if (one_in(2))
        desc.d = matrix(desc.d.dtype, desc.m, desc.n, 0);
    desc.aux.batch_stride = times((desc.m + 127) / 128 * 128, times((desc.n + 127) / 128 * 128, 2));
    desc.residual.batch_stride = one_in(2) ? 0 : desc.aux.batch_stride;
    desc.bias_grad.batch_stride = one_in(2) ? 0 : 2 * (desc.m > desc.n ? desc.m : desc.n);
    desc.flags = one_in(4) ? GEMMEPI_AMAX_D : one_in(4) ? GEMMEPI_DEVICE_SCALARS : 0;
    desc.flags |= one_in(4) ? GEMMEPI_BATCH_INVARIANT : 0;
    desc.alignment = one_in(3) ? (size_t)1 << below(9) : 0;
    return desc;
}

static void give_pointers(const gemmepi__problem *problem, gemmepi_matmul_args *args) {
    char *at[GEMMEPI__OPERANDS];
    int operand, swap = problem->exchanged;
    memset(args, 0, sizeof *args);
    for (operand = 0; operand < GEMMEPI__OPERANDS; operand++)
        at[operand] = problem->used >> operand & 1 ? address(operand) : NULL;
    args->a = at[swap ? GEMMEPI__B : GEMMEPI__A];
    args->b = at[swap ? GEMMEPI__A : GEMMEPI__B];
    args->c = at[GEMMEPI__C];
    args->d = at[GEMMEPI__D];
    args->aux = at[GEMMEPI__AUX];
    args->residual = at[GEMMEPI__RESIDUAL];
    args->bias = at[GEMMEPI__BIAS];
    args->bias_grad = at[GEMMEPI__BIAS_GRAD];
    args->scale_a = (float *)(void *)at[swap ? GEMMEPI__SCALE_B : GEMMEPI__SCALE_A];
    args->scale_b = (float *)(void *)at[swap ? GEMMEPI__SCALE_A : GEMMEPI__SCALE_B];
    args->amax_d = at[GEMMEPI__AMAX_D];
}

static void one_product(void) {
    static const double one = 1;
    gemmepi_matmul_desc desc = any_product();
    gemmepi_matmul_args args;
    gemmepi__problem problem;
    gemmepi_plan *plan = NULL;
    gemmepi_plan_details details;
    char text[2048];
    gemmepi_status status = gemmepi_plan_matmul(context, &desc, &plan);
    check_status(status, "planning");
    if (status)
        return;
    planned++;
    CHECK(gemmepi_plan_info(plan, &details) == GEMMEPI_OK &&
              gemmepi_plan_explain(plan, text, sizeof text) > 0,
          "seed %llu", seed_here);
    CHECK(gemmepi__normalise(&desc, GEMMEPI__DEFAULT_ALIGNMENT, &problem) == GEMMEPI_OK, "seed %llu",
          seed_here);
    give_pointers(&problem, &args);
    if (one_in(2) && !(desc.flags & GEMMEPI_DEVICE_SCALARS))
        args.beta = &one;
    check_status(gemmepi_plan_prepare(plan, NULL), "preparing");
    status = gemmepi_run_matmul(plan, &args, NULL);
    check_status(status, "running");
    ran += status == GEMMEPI_OK;
    gemmepi_plan_destroy(plan);
}

static gemmepi_linear_desc any_layer(void) {
    static const gemmepi_epilogue activations[] = {GEMMEPI_NONE, GEMMEPI_RELU, GEMMEPI_GELU_TANH,
                                                   GEMMEPI_SILU | GEMMEPI_GATED};
    gemmepi_linear_desc desc;
    gemmepi_dtype a = any_dtype();
    int64_t e[4];
    memset(&desc, 0, sizeof desc);
    extents(e, 4);
    desc.m = e[0], desc.n = e[1], desc.k = e[2], desc.batch = one_in(2) ? 1 : e[3];
    desc.activation = activations[below((int)GEMMEPI__COUNT(activations))];
    if (desc.activation & GEMMEPI_GATED)
        desc.n &= ~(int64_t)1;
    desc.order = one_in(4) ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    desc.flags = GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB | GEMMEPI_LINEAR_DBIAS;
    desc.flags |= one_in(4) ? GEMMEPI_BATCH_INVARIANT : 0;
    if (one_in(3))
        desc.flags = below(2) ? GEMMEPI_LINEAR_DB : GEMMEPI_LINEAR_DBIAS;
    if (one_in(2))
        desc.flags |= GEMMEPI_LINEAR_BIAS;
    if (desc.activation)
        desc.flags |= one_in(2) ? GEMMEPI_LINEAR_SAVED : GEMMEPI_LINEAR_RECOMPUTE;
    desc.a = matrix(a, desc.m, desc.k, desc.order == GEMMEPI_ROW_MAJOR);
    desc.b = matrix(a, desc.k, desc.n, desc.order == GEMMEPI_ROW_MAJOR);
    if (one_in(2))
        desc.b.batch_stride = 0;
    choose_scale(&desc.a.scale, 1);
    choose_scale(&desc.b.scale, 1);
    desc.y.batch_stride = desc.dy.batch_stride = times(desc.m, desc.n);
    desc.preact.batch_stride = times((desc.m + 127) / 128 * 128, (desc.n + 127) / 128 * 128);
    desc.da.batch_stride = times(desc.m, desc.k);
    desc.db.batch_stride = desc.b.batch_stride ? times(desc.k, desc.n) : 0;
    desc.bias.batch_stride = desc.dbias.batch_stride = desc.b.batch_stride ? desc.n : 0;
    return desc;
}

static void one_layer(void) {
    gemmepi_linear_desc desc = any_layer();
    gemmepi_linear_args args;
    gemmepi_plan *layer = NULL;
    int backward = below(2), t;
    char *at[GEMMEPI__L_COUNT];
    gemmepi_status status = backward ? gemmepi_plan_linear_backward(context, &desc, &layer)
                                     : gemmepi_plan_linear(context, &desc, &layer);
    check_status(status, "planning a layer");
    if (status)
        return;
    planned++;
    for (t = 0; t < GEMMEPI__L_COUNT; t++)
        at[t] = address(t);
    memset(&args, 0, sizeof args);
    args.a = at[GEMMEPI__L_A], args.b = at[GEMMEPI__L_B], args.y = at[GEMMEPI__L_Y];
    args.preact = desc.flags & GEMMEPI_LINEAR_SAVED ? at[GEMMEPI__L_PREACT] : NULL;
    args.bias = desc.flags & GEMMEPI_LINEAR_BIAS ? at[GEMMEPI__L_BIAS] : NULL;
    args.dy = at[GEMMEPI__L_DY];
    args.da = desc.flags & GEMMEPI_LINEAR_DA ? at[GEMMEPI__L_DA] : NULL;
    args.db = desc.flags & GEMMEPI_LINEAR_DB ? at[GEMMEPI__L_DB] : NULL;
    args.dbias = desc.flags & GEMMEPI_LINEAR_DBIAS ? at[GEMMEPI__L_DBIAS] : NULL;
    args.scale_a = desc.a.scale.mode ? (float *)(void *)address(20) : NULL;
    args.scale_b = desc.b.scale.mode ? (float *)(void *)address(21) : NULL;
    check_status(gemmepi_plan_prepare(layer, NULL), "preparing a layer");
    status =
        backward ? gemmepi_run_linear_backward(layer, &args, NULL) : gemmepi_run_linear(layer, &args, NULL);
    check_status(status, "running a layer");
    ran += status == GEMMEPI_OK;
    gemmepi_plan_destroy(layer);
}

/* >>element-wise */

typedef struct operands {
    int64_t shape[4][8], stride[4][8];
    gemmepi_tensor tensor[4];
} operands;

static gemmepi_tensor *any_tensor(operands *o, int i, gemmepi_dtype dtype, int rank, const int64_t *shape,
                                  int is_output) {
    gemmepi_tensor *tensor = &o->tensor[i];
    int64_t dense = 1;
    int d;
    memset(tensor, 0, sizeof *tensor);
    tensor->dtype = dtype;
    tensor->rank = rank;
    tensor->shape = o->shape[i];
    for (d = rank - 1; d >= 0; d--) {
        o->shape[i][d] = !is_output && one_in(8) ? 1 : shape[d];
        o->stride[i][d] = is_output && !one_in(8) ? times(dense, 1 + one_in(8)) : stride_for(dense);
        if (one_in(6))
            o->stride[i][d] = -o->stride[i][d];
        dense = times(o->stride[i][d] < 0 ? -o->stride[i][d] : o->stride[i][d], shape[d]);
    }
    if (!one_in(3))
        tensor->stride = o->stride[i];
    return tensor;
}

static void one_elementwise(void) {
    static const gemmepi_operation operations[] = {GEMMEPI_OP_ACTIVATION, GEMMEPI_OP_ACTIVATION_BACKWARD,
                                                   GEMMEPI_OP_GATED,      GEMMEPI_OP_LERP,
                                                   GEMMEPI_OP_BIAS_GRAD,  GEMMEPI_OP_CAST};
    gemmepi_elementwise_desc desc;
    gemmepi_elementwise_args args;
    gemmepi_plan *plan = NULL;
    gemmepi_status status;
    operands o;
    gemmepi_dtype dtype = dtypes[below(4)], other = dtype;
    int rank = 1 + below(5), sum = one_in(3), axis;
    int64_t shape[8];
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    extents(shape, rank);
    desc.operation = operations[below((int)GEMMEPI__COUNT(operations))];
    desc.axis = axis = below(rank);
    if (desc.operation == GEMMEPI_OP_CAST) {
        other = dtypes[below(6)];
        desc.flags = (uint64_t)(next() & (GEMMEPI_CAST_SCALE | GEMMEPI_CAST_Y_SCALE | GEMMEPI_CAST_AMAX |
                                          GEMMEPI_CAST_K_IS_ROWS));
        if (desc.flags & GEMMEPI_CAST_SCALE)
            desc.flags &= ~GEMMEPI_CAST_Y_SCALE;
        if (desc.flags)
            desc.scale_mode = (gemmepi_scale_mode)below(5);
        if (desc.scale_mode < GEMMEPI_SCALE_OUTER)
            desc.flags &= ~GEMMEPI_CAST_K_IS_ROWS;
    }
    desc.a = any_tensor(&o, 0, dtype, rank, shape, sum);
    args.a = address(0);
    if (desc.operation == GEMMEPI_OP_ACTIVATION_BACKWARD) {
        desc.activation = GEMMEPI_SILU;
        desc.dy = any_tensor(&o, 1, dtype, rank, shape, 1);
        desc.da = any_tensor(&o, 2, dtype, rank, o.shape[0], 1);
        args.dy = address(1), args.da = address(2);
    } else if (desc.operation == GEMMEPI_OP_BIAS_GRAD) {
        desc.y = any_tensor(&o, 2, dtype, 1, shape + axis, 1);
        args.y = address(2);
    } else {
        desc.y = any_tensor(&o, 2, other, rank, shape, 1);
        args.y = address(2);
        desc.activation = desc.operation == GEMMEPI_OP_GATED        ? GEMMEPI_SILU
                          : desc.operation == GEMMEPI_OP_ACTIVATION ? GEMMEPI_GELU_ERF
                                                                    : 0;
    }
    if (desc.operation == GEMMEPI_OP_LERP || desc.operation == GEMMEPI_OP_GATED) {
        desc.b = any_tensor(&o, 1, dtype, rank, shape, 0);
        args.b = address(1);
        desc.axis = desc.operation == GEMMEPI_OP_GATED ? -1 : 0;
    } else if (desc.operation != GEMMEPI_OP_BIAS_GRAD) {
        desc.axis = 0;
    }
    args.weight = desc.operation == GEMMEPI_OP_LERP ? 0.25 : 0;
    args.scale = desc.flags & GEMMEPI_CAST_SCALE ? (float *)(void *)address(3) : NULL;
    args.y_scale = desc.flags & GEMMEPI_CAST_Y_SCALE ? (float *)(void *)address(4) : NULL;
    args.amax = desc.flags & GEMMEPI_CAST_AMAX ? address(5) : NULL;
    status = gemmepi_plan_elementwise(context, &desc, &plan);
    check_status(status, "planning an operation");
    if (status)
        return;
    planned++;
    check_status(gemmepi_plan_prepare(plan, NULL), "preparing an operation");
    status = gemmepi_run_elementwise(plan, &args, NULL);
    check_status(status, "running an operation");
    ran += status == GEMMEPI_OK;
    gemmepi_plan_destroy(plan);
}

/* >>the tests */

static void open_gpu(int arch, unsigned routes) {
    gemmepi_config config = fake_config();
    config.routes = routes;
    config.allocator.alloc = NULL, config.allocator.free = NULL;
    gpu.other_arch = arch;
    gpu.largest_block = 1 << 24;
    gpu.is_untouched = 1;
    context = open_fake(&config);
}

static void open_any_gpu(void) {
    static const int archs[] = {90, 80, 75, 100, 90, 89};
    static const unsigned routes[] = {0, 0, NOT_FUSED, 1u << GEMMEPI_ROUTE_PLAIN, 1u << GEMMEPI_ROUTE_FUSED};
    int arch = archs[below((int)GEMMEPI__COUNT(archs))];
    open_gpu(arch, routes[below((int)GEMMEPI__COUNT(routes))]);
}

static double milliseconds(void) {
    return 1e3 * (double)clock() / CLOCKS_PER_SEC;
}

/* Compiling is a fake, but its key is computed: a few milliseconds for each kernel. */
static void cases(void (*one)(void)) {
    uint64_t i;
    planned = ran = 0;
    for (i = 0; i < count_of_cases; i++) {
        double began, took;
        long compiled;
        state = seed_here = first + i;
        next();
        if (!context || i % 500 == 0 || count_of_cases == 1) {
            gemmepi_destroy(context);
            state = seed_here / 500 * 500;
            open_any_gpu();
            state = seed_here;
            next();
        }
        compiled = gpu.compilations;
        began = milliseconds();
        one();
        took = milliseconds() - began;
        CHECK(took < MOST_MILLISECONDS + 80 * (double)(gpu.compilations - compiled), "seed %llu took %.0f ms",
              seed_here, took);
    }
    gemmepi_destroy(context);
    context = NULL;
    CHECK(gpu.wrong_context == 0 && gpu.device_blocks == 0, "%ld blocks are left", gpu.device_blocks);
    if (count_of_cases >= 1000)
        CHECK(planned > (long)count_of_cases / 10 && ran > (long)count_of_cases / 20,
              "only %ld planned and %ld ran", planned, ran);
}

/* Its tiles times its items are 2^64. */
static void sums_of_more_tiles_than_a_number_has_are_refused_or_planned(void) {
    gemmepi_matmul_desc desc;
    gemmepi_plan *plan = NULL;
    open_gpu(90, 0);
    memset(&desc, 0, sizeof desc);
    desc.n = (int64_t)1 << 45;
    desc.batch = 1 << 24;
    desc.epilogue = GEMMEPI_BGRAD_B;
    check_status(gemmepi_plan_matmul(context, &desc, &plan), "planning");
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    context = NULL;
}

/* Lines of 2 bytes, 12 and 8 bytes apart: they meet, or never do, and 2^32 of them are not walked. */
static void whether_2_to_32_lines_overlap_takes_no_time(void) {
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_plan *plan = NULL;
    double began;
    open_gpu(90, 1u << GEMMEPI_ROUTE_PLAIN);
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    desc.m = (int64_t)1 << 32;
    desc.n = desc.k = desc.batch = 1;
    desc.alignment = 2;
    desc.a.dtype = GEMMEPI_BF16;
    desc.epilogue = GEMMEPI_RESIDUAL;
    desc.d.ld = 6;
    desc.residual.ld = 4;
    CHECK(gemmepi_plan_matmul(context, &desc, &plan) == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_plan_prepare(plan, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    args.a = (char *)(uintptr_t)((uint64_t)1 << 50);
    args.b = (char *)(uintptr_t)((uint64_t)1 << 51);
    args.d = (char *)(uintptr_t)((uint64_t)1 << 40);
    args.residual = (char *)args.d + 2;
    began = milliseconds();
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_OK, "%s", gemmepi_last_error());
    args.residual = (char *)args.d + 4 * ((int64_t)1 << 31);
    CHECK(gemmepi_run_matmul(plan, &args, NULL) == GEMMEPI_INVALID_ARGUMENT && sentence_has("overlaps"), "%s",
          gemmepi_last_error());
    CHECK(milliseconds() - began < 10, "%.0f ms", milliseconds() - began);
    gemmepi_plan_destroy(plan);
    gemmepi_destroy(context);
    context = NULL;
}

static void products_of_any_size_are_refused_or_run(void) {
    cases(one_product);
}
static void layers_of_any_size_are_refused_or_run(void) {
    cases(one_layer);
}
static void elementwise_operations_of_any_size_are_refused_or_run(void) {
    cases(one_elementwise);
}

int main(int argc, char **argv) {
    if (argc > 1)
        count_of_cases = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        first = strtoull(argv[2], NULL, 10);
    RUN(sums_of_more_tiles_than_a_number_has_are_refused_or_planned);
    RUN(whether_2_to_32_lines_overlap_takes_no_time);
    RUN(products_of_any_size_are_refused_or_run);
    RUN(layers_of_any_size_are_refused_or_run);
    RUN(elementwise_operations_of_any_size_are_refused_or_run);
    return test_finish();
}
