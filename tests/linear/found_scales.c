/* Layers whose forward finds the scales of y: against plain loops in double, by every mode, with what else a forward has. On the host
   and on a GPU if there is one. */
#include "../products/problem.h"

static test_device *here;

enum { M = 37, N = 260, K = 72, BATCH = 2, HISTORY = 3, MOST = M * 2 * N * BATCH };

typedef struct layer_case {
    gemmepi_dtype dtype, y;
    gemmepi_scale_mode mode;
    gemmepi_epilogue activation; /* RELU or NONE, or-ed with GATED or not */
    uint64_t flags;
    int column_major, batch, formula; /* formula: in the activation's place: relu */
} layer_case;

static const layer_case cases[] = {
    {GEMMEPI_F32, GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_RELU, GEMMEPI_LINEAR_BIAS, 0, 1, 0},
    {GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_RELU, GEMMEPI_LINEAR_BIAS, 0, BATCH, 0},
    {GEMMEPI_BF16, GEMMEPI_E5M2, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_RELU | GEMMEPI_GATED,
     GEMMEPI_POWER_OF_TWO_SCALE, 0, 1, 0},
    {GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_SCALE_TENSOR, GEMMEPI_RELU,
     GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_SAVED, 0, BATCH, 0},
    {GEMMEPI_F16, GEMMEPI_E5M2, GEMMEPI_SCALE_TENSOR, GEMMEPI_NONE, 0, 1, 1, 0},
    {GEMMEPI_F16, GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_NONE, GEMMEPI_LINEAR_BIAS, 1, BATCH, 0},
    {GEMMEPI_F32, GEMMEPI_E4M3, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_RELU, 0, 1, 1, 0},
    {GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_SCALE_OUTER, GEMMEPI_RELU, GEMMEPI_LINEAR_BIAS, 0, BATCH, 1},
    {GEMMEPI_BF16, GEMMEPI_E4M3, GEMMEPI_SCALE_TENSOR, GEMMEPI_RELU, GEMMEPI_LINEAR_BIAS, 0, 1, 1},
    {GEMMEPI_F16, GEMMEPI_E4M3, GEMMEPI_SCALE_VECTOR_128, GEMMEPI_RELU, GEMMEPI_LINEAR_BIAS, 1, 1, 1},
};
enum { CASES = (int)(sizeof cases / sizeof *cases) };

/* What lies on the device, one behind the other, and the same on the host. */
enum { IN_A, IN_B, IN_BIAS, OUT_Y, OUT_PREACT, FOUND, AMAX, REGIONS };
static unsigned char *host_memory, *device_memory;
static const size_t region = (size_t)MOST * 4 + 256;

static void *host_of(int which) {
    return host_memory + (size_t)which * region;
}
static void *device_of(int which) {
    return device_memory + (size_t)which * region;
}

static double value_at(gemmepi_dtype dtype, int which, int64_t i) {
    return oracle_decode(dtype, (unsigned char *)host_of(which) + i * (int64_t)oracle_format(dtype).size);
}

static void fill_in(gemmepi_dtype dtype, int which, uint64_t seed, double size) {
    rng r = rng_seeded(seed);
    int64_t i;
    for (i = 0; i < MOST; i++)
        oracle_encode(dtype, (unsigned char *)host_of(which) + i * (int64_t)oracle_format(dtype).size,
                      size * (ldexp((double)(rng_next(&r) >> 11), -52) - 1));
}

/* Where row, column of op(A) [m, k] and so on lie, dense in the layer's order. */
static int64_t place_of(const layer_case *c, int64_t item, int64_t rows, int64_t columns, int64_t row,
                        int64_t column) {
    return item * rows * columns + (c->column_major ? column * rows + row : row * columns + column);
}

/* Y's element, in double. The columns of Y are those of P, or with GATED half as many. */
static double y_at(const layer_case *c, int64_t item, int64_t row, int64_t column) {
    int64_t rows = c->column_major ? N : M, columns = c->column_major ? M : N, half,
            halves = c->activation & GEMMEPI_GATED ? 2 : 1, k;
    double p[2] = {0, 0};
    for (half = 0; half < halves; half++) {
        int64_t at = column + half * (columns / halves);
        for (k = 0; k < K; k++)
            p[half] += value_at(c->dtype, IN_A, place_of(c, item, rows, K, row, k)) *
                       value_at(c->dtype, IN_B, place_of(c, 0, K, columns, k, at));
        if (c->flags & GEMMEPI_LINEAR_BIAS)
            p[half] += value_at(GEMMEPI_F32, IN_BIAS, c->column_major ? row : at);
    }
    if ((c->activation & GEMMEPI_ACTIVATION_MASK) == GEMMEPI_RELU)
        p[halves - 1] = p[halves - 1] > 0 ? p[halves - 1] : 0;
    return halves == 2 ? p[0] * p[1] : p[0];
}

static gemmepi_linear_desc desc_of(const layer_case *c) {
    gemmepi_linear_desc desc;
    int64_t columns = c->activation & GEMMEPI_GATED ? N / 2 : N;
    memset(&desc, 0, sizeof desc);
    desc.m = c->column_major ? N : M, desc.n = c->column_major ? M : N, desc.k = K, desc.batch = c->batch;
    desc.order = c->column_major ? GEMMEPI_COLUMN_MAJOR : GEMMEPI_ROW_MAJOR;
    desc.a.dtype = c->dtype, desc.y.dtype = c->y, desc.bias.dtype = GEMMEPI_F32;
    desc.a.batch_stride = c->batch > 1 ? (c->column_major ? N : M) * K : 0;
    desc.y.batch_stride = c->batch > 1 ? M * columns : 0;
    desc.y.scale.mode = c->mode;
    desc.y.scale.batch_stride = c->batch > 1 && c->mode != GEMMEPI_SCALE_TENSOR ? 4 * N : 0;
    desc.flags = c->flags | GEMMEPI_FIND_SCALE_D;
    desc.amax_history = c->mode == GEMMEPI_SCALE_TENSOR ? HISTORY : 0;
    if (c->formula)
        desc.formula = "d = relu(v)";
    else
        desc.activation = c->activation;
    if (c->flags & GEMMEPI_LINEAR_SAVED)
        desc.preact.batch_stride = c->batch > 1 ? M * ((N + 127) / 128 * 128) : 0;
    return desc;
}

static gemmepi_linear_args args_of(const layer_case *c) {
    gemmepi_linear_args args;
    memset(&args, 0, sizeof args);
    args.a = device_of(IN_A), args.b = device_of(IN_B), args.y = device_of(OUT_Y);
    args.bias = c->flags & GEMMEPI_LINEAR_BIAS ? device_of(IN_BIAS) : NULL;
    args.preact = c->flags & GEMMEPI_LINEAR_SAVED ? device_of(OUT_PREACT) : NULL;
    args.found_scale_y = (float *)device_of(FOUND);
    args.amax_history = c->mode == GEMMEPI_SCALE_TENSOR ? (float *)device_of(AMAX) : NULL;
    return args;
}

/* As the manual says: of an amax, 1 where there is none. */
static double scale_for(const layer_case *c, double amax) {
    double scale = amax > 0 ? amax / (c->y == GEMMEPI_E4M3 ? 448 : 57344) : 1, power = 1;
    while (power < scale)
        power *= 2;
    while (power / 2 >= scale)
        power /= 2;
    return c->flags & GEMMEPI_POWER_OF_TWO_SCALE && amax > 0 ? power : scale;
}

/* y's lines are what runs along memory: rows, column-major columns. */
static void check_line(const layer_case *c, int64_t item, int64_t line, int64_t lines, int64_t length,
                       const double *want, double *amax_of_all) {
    int64_t step = c->mode == GEMMEPI_SCALE_VECTOR_128 ? 128 : length, first, i;
    const float *found = (const float *)host_of(FOUND);
    for (first = 0; first < length; first += step) {
        int64_t count = length - first < step ? length - first : step;
        double amax = 0, scale;
        for (i = 0; i < count; i++)
            amax = fabs(want[first + i]) > amax ? fabs(want[first + i]) : amax;
        *amax_of_all = amax > *amax_of_all ? amax : *amax_of_all;
        scale = (double)found[c->mode == GEMMEPI_SCALE_TENSOR
                                  ? 0
                                  : item * (c->batch > 1 ? 4 * N : 0) + first / 128 * lines + line];
        CHECK(c->mode == GEMMEPI_SCALE_TENSOR || c->flags & GEMMEPI_POWER_OF_TWO_SCALE ||
                  fabs(scale - scale_for(c, amax)) <= 1e-4 * scale,
              "item %d, line %d: scale %g, want %g", (int)item, (int)line, scale, scale_for(c, amax));
        CHECK(!(c->flags & GEMMEPI_POWER_OF_TWO_SCALE) || scale == scale_for(c, amax), "scale %g, want %g",
              scale, scale_for(c, amax));
        for (i = 0; i < count; i++) {
            double got = value_at(c->y, OUT_Y, (item * lines + line) * length + first + i) * scale,
                   x = want[first + i];
            double most = (c->y == GEMMEPI_E4M3 ? 448 : 57344) * scale, to = x > most    ? most
                                                                             : x < -most ? -most
                                                                                         : x;
            CHECK(fabs(got - to) <= fabs(to) * (c->y == GEMMEPI_E4M3 ? 0.0626 : 0.1251) + scale * 0.01 + 1e-4,
                  "item %d, line %d, place %d is %g, want %g", (int)item, (int)line, (int)(first + i), got,
                  x);
        }
    }
}

static double check_y(const layer_case *c) {
    int64_t columns = c->activation & GEMMEPI_GATED ? N / 2 : N, item, line, i;
    int64_t lines = M, length = columns; /* column-major M columns of N rows */
    double want[N], amax = 0;
    for (item = 0; item < c->batch; item++)
        for (line = 0; line < lines; line++) {
            for (i = 0; i < length; i++)
                want[i] = c->column_major ? y_at(c, item, i, line) : y_at(c, item, line, i);
            check_line(c, item, line, lines, length, want, &amax);
        }
    return amax;
}

static void forward(const layer_case *c, int by_plan) {
    gemmepi_linear_desc desc = desc_of(c);
    gemmepi_linear_args args = args_of(c);
    gemmepi_plan *plan = NULL;
    gemmepi_status status;
    if (!by_plan) {
        status = gemmepi_linear(here->context, &desc, &args, here->stream);
    } else {
        status = gemmepi_plan_linear(here->context, &desc, &plan);
        if (!status)
            status = gemmepi_plan_prepare(plan, here->stream);
        if (!status)
            status = gemmepi_run_linear(plan, &args, here->stream);
        gemmepi_plan_destroy(plan);
    }
    CHECK(status == GEMMEPI_OK, "%s", gemmepi_last_error());
    CHECK(gemmepi_download(here->context, host_memory, device_memory, REGIONS * region, here->stream) ==
              GEMMEPI_OK,
          "%s", gemmepi_last_error());
}

static void hold(const layer_case *c, int which) {
    float *history = (float *)host_of(AMAX);
    double amax;
    memset(host_memory, 0xff, REGIONS * region);
    fill_in(c->dtype, IN_A, (uint64_t)which + 1, 1);
    fill_in(c->dtype, IN_B, (uint64_t)which + 100, 0.25);
    fill_in(GEMMEPI_F32, IN_BIAS, (uint64_t)which + 200, 1);
    history[0] = 2, history[1] = 6, history[2] = 1;
    CHECK(gemmepi_upload(here->context, device_memory, host_memory, REGIONS * region, here->stream) ==
              GEMMEPI_OK,
          "%s", gemmepi_last_error());
    forward(c, which % 2);
    if (c->mode == GEMMEPI_SCALE_TENSOR)
        CHECK(fabs((double)*(float *)host_of(FOUND) - scale_for(c, 6)) <= 1e-6 * scale_for(c, 6),
              "the scale of 6 is %g", (double)*(float *)host_of(FOUND));
    amax = check_y(c);
    if (c->mode != GEMMEPI_SCALE_TENSOR)
        return;
    CHECK(fabs((double)history[0] - amax) <= 1e-3 * amax && history[1] == 2 && history[2] == 6,
          "history %g %g %g after an amax of %g", (double)history[0], (double)history[1], (double)history[2],
          amax);
    forward(c, which % 2);
    CHECK(history[2] == 2, "the history does not move on");
}

static void forward_finds_the_scales_of_y(void) {
    int i;
    for (i = 0; i < CASES; i++)
        hold(&cases[i], i);
}

/* One struct serves both directions. */
static void backward_takes_no_notice_of_them(void) {
    gemmepi_linear_desc desc = desc_of(&cases[4]), bare;
    gemmepi_linear_args args = args_of(&cases[4]);
    unsigned char *first = (unsigned char *)malloc(region);
    int turn;
    desc.dy.dtype = desc.da.dtype = GEMMEPI_F32, desc.flags |= GEMMEPI_LINEAR_DA;
    bare = desc;
    bare.flags = GEMMEPI_LINEAR_DA, bare.amax_history = 0, bare.y.scale.mode = GEMMEPI_SCALE_NONE;
    memset(host_memory, 0xff, REGIONS * region);
    fill_in(GEMMEPI_F16, IN_B, 5, 1);
    fill_in(GEMMEPI_F32, IN_BIAS, 6, 1);
    args.dy = device_of(IN_BIAS), args.da = device_of(OUT_Y);
    for (turn = 0; turn < 2; turn++) {
        CHECK(gemmepi_upload(here->context, device_memory, host_memory, REGIONS * region, here->stream) ==
                  GEMMEPI_OK,
              "%s", gemmepi_last_error());
        CHECK(gemmepi_linear_backward(here->context, turn ? &bare : &desc, &args, here->stream) == GEMMEPI_OK,
              "%s", gemmepi_last_error());
        CHECK(gemmepi_download(here->context, host_memory, device_memory, REGIONS * region, here->stream) ==
                  GEMMEPI_OK,
              "%s", gemmepi_last_error());
        if (!turn)
            memcpy(first, host_of(OUT_Y), region);
    }
    CHECK(memcmp(first, host_of(OUT_Y), region) == 0 &&
              value_at(GEMMEPI_F32, OUT_Y, 3) == value_at(GEMMEPI_F32, OUT_Y, 3),
          "dA is another, or none");
    free(first);
}

static void refuse(gemmepi_linear_desc desc, gemmepi_linear_args args, const char *names, const char *also) {
    gemmepi_status status = gemmepi_linear(here->context, &desc, &args, here->stream);
    CHECK(status == GEMMEPI_INVALID_ARGUMENT && strstr(gemmepi_last_error(), names) &&
              strstr(gemmepi_last_error(), also),
          "status %s: %s", gemmepi_status_name(status), status ? gemmepi_last_error() : "");
}

static void what_does_not_go_with_found_scales_is_refused(void) {
    gemmepi_linear_desc desc = desc_of(&cases[3]);
    gemmepi_linear_args args = args_of(&cases[3]);
    desc.y.dtype = GEMMEPI_BF16;
    refuse(desc, args, "desc.y.dtype", "FIND_SCALE_D");
    desc = desc_of(&cases[3]), desc.amax_history = 0;
    refuse(desc, args, "desc.amax_history", "1 to 1024");
    desc = desc_of(&cases[3]), desc.y.scale.mode = GEMMEPI_SCALE_BLOCK_128;
    refuse(desc, args, "desc.y.scale.mode", "VECTOR_128");
    desc = desc_of(&cases[3]), desc.flags &= ~GEMMEPI_FIND_SCALE_D, desc.amax_history = 0;
    desc.y.scale.mode = GEMMEPI_SCALE_NONE;
    refuse(desc, args, "args.found_scale_y", "FIND_SCALE_D");
    desc.flags |= GEMMEPI_POWER_OF_TWO_SCALE;
    refuse(desc, args, "POWER_OF_TWO_SCALE", "FIND_SCALE_D");
    desc = desc_of(&cases[3]), args.found_scale_y = NULL;
    refuse(desc, args, "args.found_scale_y", "NULL");
    args = args_of(&cases[3]), args.scale_y = args.found_scale_y;
    refuse(desc, args, "args.scale_y", "found");
    args = args_of(&cases[3]), args.amax_history = args.found_scale_y;
    refuse(desc, args, "amax_history", "overlaps");
    args = args_of(&cases[0]), args.amax_history = args.found_scale_y + 1024;
    refuse(desc_of(&cases[0]), args, "args.amax_history", "TENSOR");
}

int main(void) {
    test_device devices[TEST_MOST_DEVICES];
    int opened = test_devices_open_with_routes(devices), i;
    host_memory = (unsigned char *)malloc(REGIONS * region);
    for (i = 0; i < opened; i++) {
        void *block = NULL;
        here = devices + i;
        printf("on %s:\n", here->name);
        CHECK(gemmepi_alloc(here->context, REGIONS * region, &block) == GEMMEPI_OK, "%s",
              gemmepi_last_error());
        device_memory = (unsigned char *)block;
        RUN(forward_finds_the_scales_of_y);
        RUN(backward_takes_no_notice_of_them);
        RUN(what_does_not_go_with_found_scales_is_refused);
        gemmepi_free(here->context, block);
        test_device_close(here);
    }
    free(host_memory);
    return test_finish() || opened == 0;
}
