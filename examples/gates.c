/* A SwiGLU layer, out = y down with y = value * silu(gate), where value and gate are the halves of h = x w + bias: its
   element-wise operations, forward and backward, and once more in fp8. On the GPU if there is one, else on the host.

       gates [--host] */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 64, WIDTH = 48, INNER = 96 };

/* All there is, row-major. */
typedef struct layer {
    float x[TOKENS][WIDTH], w[WIDTH][2 * INNER], bias[2 * INNER];
    float h[TOKENS][2 * INNER]; /* values, then gates */
    float y[TOKENS][INNER];
    float dy[TOKENS][INNER], dh[TOKENS][2 * INNER], dbias[2 * INNER];
    float down[INNER][WIDTH], out[TOKENS][WIDTH];

    unsigned char y8[TOKENS][INNER], down8[WIDTH][INNER]; /* in E4M3, down transposed */
    float y8_scale[TOKENS], down8_scale[WIDTH];           /* of each row: y = y8 * y8_scale */
    float out8[TOKENS][WIDTH];
} layer;

static layer here;
static layer *there; /* an address on the device: to point into, not to read from here */
static gemmepi_context *context;

static void check(gemmepi_status status) {
    if (status != GEMMEPI_OK) {
        fprintf(stderr, "%s: %s\n", gemmepi_status_name(status), gemmepi_last_error());
        exit(1);
    }
}

static void fill(float *values, size_t bytes, float most) {
    static unsigned state = 1;
    for (size_t i = 0; i < bytes / sizeof *values; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = most * ((float)(state >> 8) / (1 << 23) - 1);
    }
}

/* Tensors as the interface reads them. They keep a pointer to their shape; without strides they are dense. */
static const int64_t inner[] = {TOKENS, INNER}, both[] = {TOKENS, 2 * INNER}, both_bias[] = {2 * INNER};

static gemmepi_tensor tensor(void *data, int rank, const int64_t *shape) {
    gemmepi_tensor result = {.data = data, .dtype = GEMMEPI_F32, .rank = rank, .shape = shape};
    return result;
}

/* h = x w + bias */
static void multiply(void) {
    gemmepi_matmul_desc desc = {.m = TOKENS, .n = 2 * INNER, .k = WIDTH};
    gemmepi_matmul_args args = {.a = there->x, .b = there->w, .bias = there->bias, .d = there->h};
    desc.epilogue = GEMMEPI_BIAS;
    check(gemmepi_matmul(context, &desc, &args, NULL));
}

/* y from h, and the sum of y dy: a loss whose gradient at y is dy. */
static double loss(void) {
    gemmepi_tensor h = tensor(there->h, 2, both), y = tensor(there->y, 2, inner);
    double sum = 0;
    check(gemmepi_gated(context, GEMMEPI_SILU, -1, &h, NULL, &y, NULL)); /* -1: the last axis is split */
    check(gemmepi_download(context, here.y, there->y, sizeof here.y, NULL));
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < INNER; i++)
            sum += (double)here.y[t][i] * (double)here.dy[t][i];
    return sum;
}

/* How far a gradient is from the slope of the loss when one number, at both places, goes up and down. */
static double error(const float *number_here, float *number_there, float gradient) {
    float values[3] = {*number_here + 0.01f, *number_here - 0.01f, *number_here};
    double losses[3];
    for (int i = 0; i < 3; i++) { /* the last time it is put back */
        check(gemmepi_upload(context, number_there, &values[i], sizeof values[i], NULL));
        if (number_there >= there->bias && number_there < there->bias + 2 * INNER)
            multiply();
        losses[i] = loss();
    }
    return fabs((losses[0] - losses[1]) / (double)(values[0] - values[1]) - (double)gradient);
}

static int gradients(void) {
    gemmepi_tensor h = tensor(there->h, 2, both), dy = tensor(there->dy, 2, inner);
    gemmepi_tensor dh = tensor(there->dh, 2, both), dbias = tensor(there->dbias, 1, both_bias);
    gemmepi_elementwise_desc backward = {
        .operation = GEMMEPI_OP_GATED_BACKWARD, .a = &h, .dy = &dy, .da = &dh};
    double of_h = 0, of_bias = 0;
    backward.activation = GEMMEPI_SILU;
    backward.axis = -1;
    check(gemmepi_elementwise(context, &backward, NULL, NULL));  /* no args: on the tensors' own data */
    check(gemmepi_bias_grad(context, &dh, -1, 0, &dbias, NULL)); /* sums over all axes but the last */
    check(gemmepi_download(context, &here, there, sizeof here, NULL));
    for (int i = 0; i < 2 * INNER; i += 19) { /* values and gates */
        int t = i * 7 % TOKENS;
        of_h = fmax(of_h, error(&here.h[t][i], &there->h[t][i], here.dh[t][i]));
        of_bias = fmax(of_bias, error(&here.bias[i], &there->bias[i], here.dbias[i]));
    }
    printf("dh     is the slope of the loss within %.1e\n", of_h);
    printf("dbias  is the slope of the loss within %.1e\n", of_bias);
    return of_h < 1e-3 && of_bias < 1e-2;
}

/* a in y's type, with a new scale for each row: a = y * scale. */
static void cast_rows(const gemmepi_tensor *a, const gemmepi_tensor *y, float *scale) {
    gemmepi_elementwise_desc desc = {.operation = GEMMEPI_OP_CAST, .a = a, .y = y};
    gemmepi_elementwise_args args = {.y_scale = scale};
    desc.scale_mode = GEMMEPI_SCALE_OUTER;
    desc.flags = GEMMEPI_CAST_Y_SCALE;
    check(gemmepi_elementwise(context, &desc, &args, NULL));
}

/* y and down in E4M3, with new scales that make the most of each row, and their product next to the one in F32. */
static int eight_bits(void) {
    static const int64_t transposed[] = {WIDTH, INNER}, strides[] = {1, WIDTH};
    gemmepi_tensor y = tensor(there->y, 2, inner), y8 = tensor(there->y8, 2, inner);
    gemmepi_tensor down = tensor(there->down, 2, transposed), down8 = tensor(there->down8, 2, transposed);
    gemmepi_matmul_desc desc = {.m = TOKENS, .n = WIDTH, .k = INNER};
    gemmepi_matmul_args args = {.a = there->y, .b = there->down, .d = there->out};
    double difference = 0, size = 0;
    check(gemmepi_matmul(context, &desc, &args, NULL));

    y8.dtype = down8.dtype = GEMMEPI_E4M3;
    down.stride = strides; /* its transpose: fp8 products are fastest where k is the last axis of both */
    cast_rows(&y, &y8, there->y8_scale);
    cast_rows(&down, &down8, there->down8_scale);

    desc.a.dtype = desc.b.dtype = GEMMEPI_E4M3;
    desc.a.scale.mode = desc.b.scale.mode = GEMMEPI_SCALE_OUTER;
    desc.b.transposed = 1;
    desc.d.dtype = GEMMEPI_F32;
    args.a = there->y8, args.scale_a = there->y8_scale;
    args.b = there->down8, args.scale_b = there->down8_scale;
    args.d = there->out8;
    check(gemmepi_matmul(context, &desc, &args, NULL));

    check(gemmepi_download(context, &here, there, sizeof here, NULL));
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < WIDTH; i++) {
            difference += pow((double)here.out8[t][i] - (double)here.out[t][i], 2);
            size += pow((double)here.out[t][i], 2);
        }
    printf("fp8    out differs from that in F32 by %.1f %%\n", 100 * sqrt(difference / size));
    return difference < 0.05 * 0.05 * size;
}

int main(int argc, char **argv) {
    gemmepi_config config = {.device = argc > 1 && strcmp(argv[1], "--host") == 0 ? GEMMEPI_DEVICE_HOST : 0};
    gemmepi_context_details details;
    void *memory;
    check(gemmepi_create(&config, &context));
    check(gemmepi_context_info(context, &details));
    if (details.fallback_reason[0])
        fprintf(stderr, "no GPU is used: %s\n", details.fallback_reason);
    check(gemmepi_alloc(context, sizeof here, &memory));
    there = memory;
    fill(&here.x[0][0], sizeof here.x, 1);
    fill(&here.w[0][0], sizeof here.w, .5f);
    fill(here.bias, sizeof here.bias, 1);
    fill(&here.dy[0][0], sizeof here.dy, 1);
    fill(&here.down[0][0], sizeof here.down, .5f);
    check(gemmepi_upload(context, there, &here, sizeof here, NULL));

    multiply();
    printf("%d tokens through %d gates by %s: loss %.4f\n", TOKENS, INNER, details.name, loss());
    int good = gradients() & eight_bits();
    check(gemmepi_free(context, memory));
    gemmepi_destroy(context);
    return !good;
}
